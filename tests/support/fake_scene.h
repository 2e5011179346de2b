/* A session over scripted devices whose frames follow one another from inside their callbacks, so that the virtual
 * clock never runs ahead while nothing is submitted: how an engine test meets a device in the middle of its trouble.
 * Nothing here asserts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAKE_SCENE_H
#define COX_TESTS_FAKE_SCENE_H

#include "specs.h"
#include "fake_shapes.h"
#include <semaphore.h>

enum { SCENE_ROWS = 90, SCENE_COLUMNS = 16, SCENE_FRAMES_MAX = 4096 };

struct scene;

/* Called in a frame's callback, once its bits were looked at, before the next frame is submitted. */
typedef void scene_watch_fn(struct scene *scene, uint32_t frame, cox_status status);

/* Plain: written by callbacks, read when none is to come. */
struct scene {
    struct rig *rig;
    struct fake *fake;
    struct shape_frames *frames;
    cox_session *session;
    uint32_t depth;  /* frames under way at once */
    uint32_t target; /* until so many are done */
    uint32_t submitted;
    uint32_t done;
    cox_status refused; /* what submit said when it refused; the play ends then */
    cox_status status[SCENE_FRAMES_MAX];
    uint64_t done_ns[SCENE_FRAMES_MAX]; /* when the callback came */
    scene_watch_fn *watch;
    void *user; /* the test's */
    char wrong[300];
    sem_t over;
};

/* `extra`: as for shape_session; its report is set, its in_flight is at least 2. `buffers`: sets of frame buffers, used
 * in turn; 0 = so many that none comes twice within 64 frames. */
void scene_begin(struct scene *scene, const struct fake_params *devices, enum shape shape, uint32_t buffers,
                 const struct cox__session_spec *extra);

/* Play so many more frames; fewer if one is refused. */
void scene_play(struct scene *scene, uint32_t frames);

/* Destroy everything. Says what was wrong: callbacks out of order, wrong bits in a frame that was said to be good,
 * steps outside the backend's contract; "" if nothing (static storage). */
const char *scene_end(struct scene *scene);

struct cox_session_device scene_device(struct scene *scene, uint32_t device);

/* The report of a frame, NULL if there is none. */
const struct rig_report *scene_report(struct scene *scene, uint32_t frame);

/* Its time from start to end. */
uint64_t scene_took(struct scene *scene, uint32_t frame);

/* Frames from `first` up to `end` that were not COX_OK. */
uint32_t scene_failed(const struct scene *scene, uint32_t first, uint32_t end);

/* Whether a record's job worked on a frame's own buffers, not on copies. */
bool scene_own(const struct scene *scene, const struct fake_record *record);

#endif
