/* A session on scripted devices whose frames are submitted from callbacks. The virtual clock thus never advances
 * while nothing is submitted. Tests of the engine use it to observe a device during a fault. Nothing here asserts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAKE_SCENE_H
#define COX_TESTS_FAKE_SCENE_H

#include "specs.h"
#include "fake_shapes.h"
#include <semaphore.h>

enum { SCENE_ROWS = 90, SCENE_COLUMNS = 16, SCENE_FRAMES_MAX = 4096 };

struct scene;

/* Called in a frame's callback, after the result was checked and before the next frame is submitted. */
typedef void scene_watch_fn(struct scene *scene, uint32_t frame, cox_status status);

/* Not atomic: written by callbacks, read when no more will come. */
struct scene {
    struct rig *rig;
    struct fake *fake;
    struct shape_frames *frames;
    cox_session *session;
    uint32_t depth;  /* frames in flight at once */
    uint32_t target; /* play until this many are done */
    uint32_t submitted;
    uint32_t done;
    cox_status refused; /* the status of a refused submit, which ends the play */
    cox_status status[SCENE_FRAMES_MAX];
    uint64_t done_ns[SCENE_FRAMES_MAX]; /* when the callback came */
    scene_watch_fn *watch;
    void *user; /* for the test */
    char wrong[300];
    sem_t over;
};

/* Create the session.
 *   `extra`: as for shape_session; `report` is set here, and `in_flight` is at least 2.
 *   `buffers`: sets of frame buffers, used one after the other; 0 = enough that none repeats within 64 frames. */
void scene_begin(struct scene *scene, const struct fake_params *devices, enum shape shape, uint32_t buffers,
                 const struct cox__session_spec *extra);

/* Play `frames` more frames, or fewer if one is refused. */
void scene_play(struct scene *scene, uint32_t frames);

/* Destroy everything. Returns what was wrong, "" if nothing (static storage): callbacks out of order, wrong bits in
 * a frame with COX_OK, or steps outside the backend's contract. */
const char *scene_end(struct scene *scene);

struct cox_session_device scene_device(struct scene *scene, uint32_t device);

/* The report of a frame, or NULL. */
const struct rig_report *scene_report(struct scene *scene, uint32_t frame);

/* The frame's time from start to end. */
uint64_t scene_took(struct scene *scene, uint32_t frame);

/* How many frames from `first` up to `end` did not end with COX_OK. */
uint32_t scene_failed(const struct scene *scene, uint32_t first, uint32_t end);

/* Whether a recorded job worked on a frame's own buffers, not on copies. */
bool scene_own(const struct scene *scene, const struct fake_record *record);

#endif
