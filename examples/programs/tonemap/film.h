/* A film on its way through the devices: one thread reads ahead, the caller's sends frames through a stream and
 * receives them, one writes what came back. Each side has a few slots, made when they are first needed, so that memory
 * depends on how many frames are under way and not on the film.
 *
 *     file ─ reader ─► input slots ─ film_run ─► stream ─► output slots ─ writer ─► file
 *
 * Frame n uses slot n modulo the slots of its side. Frames stay in order, so that one count for each step is enough:
 * read >= submitted >= mapped >= written.
 *
 * Thread-safety: from one thread. What calls back says on which thread it does.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_FILM_H
#define TONEMAP_FILM_H

#include "tonemap/report.h"
#include "film_side.h"

#include <coxswain/coxswain.h>
#include <pthread.h>

struct scenes;

enum { FILM_TIMES = 2 * FILM_SLOTS_MAX };

/* What the next frame had to wait for. */
enum film_wait { FILM_WAIT_INPUT = 0, FILM_WAIT_DEVICES, FILM_WAIT_OUTPUT, FILM_WAITS };

/* How the curve follows the film; all zeros = it does not. */
struct film_steering {
    bool on;
    bool lookahead;        /* each frame's own histogram steers it */
    float known_peak_nits; /* what the input says of its light; 0 = nothing */
    bool trusts;           /* and no light is brighter */
};

/* Set by the caller before film_run; all other fields of struct film are zero then. */
struct film_plan {
    cox_runtime *runtime;
    struct video_input *input;
    uint64_t start, frames;             /* pass over so many, then take so many; 0 = all */
    struct cox_video_shape shape;       /* without pitches */
    uint32_t out_width, out_height;     /* pixels of an output frame */
    struct cox_video_settings settings; /* with steering its gain comes on top of what that finds */
    struct film_steering steering;
    const struct scenes *
        scenes; /* each frame's peak and gain, which then is not followed; NULL = as `steering` says */
    struct cox_session_params
        session;      /* policy, frames in flight, no_warmup, report; the rest is set here */
    bool keep_scenes; /* one for each frame, for statistics */
    bool discard;     /* the frames are not written */

    /* Before the first frame is given to the devices, on the caller's thread. Returns false to end the film. */
    bool (*begin)(void *user);
    /* A frame is done, on the writer's thread. Valid during the call. `time` is the input's, see video_input_time. */
    bool (*take)(void *user, const void *const planes[], const size_t pitch_bytes[], int64_t time,
                 struct error *error);
    /* Now and then, on the caller's thread: so many frames are done. */
    void (*show)(void *user, uint64_t mapped);
    /* Whether to end before the last frame; asked often, on the caller's thread. */
    bool (*enough)(void *user);
    void *user;
};

struct film {
    struct film_plan plan;
    struct film_side in, out;
    cox_video_stream *stream;

    struct report_scene *scenes;
    uint64_t scene_count, scene_capacity;
    uint64_t cuts;    /* where steering is on */
    bool scene_begun; /* `cuts` has not the beginning of the first scene */
    float least_peak_nits,
        most_peak_nits; /* that frames were mapped with, where steering is on; 0 = none was */

    pthread_mutex_t lock; /* around what follows, down to the threads */
    pthread_cond_t reader_wake, writer_wake;
    uint64_t read, submitted, mapped, written;
    int64_t times
        [FILM_TIMES]; /* of frame n at n modulo FILM_TIMES: so many are read and not written at most */
    bool read_ended, write_ended; /* no more frames will come; the writer's thread ends */
    bool stop_reading, stop_writing;
    bool failed; /* there is a reason to stop, in the fields down to `write_error` */
    cox_status status;
    uint64_t failed_frame;
    const char *failed_step; /* for `status`: what could not be done */
    bool read_failed, write_failed;
    struct error read_error, write_error;

    int main_wake; /* an eventfd, for the caller's thread */
    pthread_t reader, writer;
    bool reader_runs, writer_runs;
    uint64_t reader_cpu_ns; /* that the reader's thread took in all; set at its end */
    uint64_t waited_ns[FILM_WAITS];
    uint64_t began_ns, ended_ns; /* the first frame went to the devices; the last one was written */
};

/* Plan the slots. film_end is to be called from here on. */
void film_begin(struct film *film, const struct film_plan *plan);

/* Bytes of all slots, once they are all made; not of frames that the input lends. */
double film_bytes(const struct film *film);

/* Start to read, and build the pipelines meanwhile. COX_OK or why not. */
cox_status film_start(struct film *film);

/* All frames, until the input ends, something fails, or `enough` says so. What is under way is finished in any case.
 * Then read `failed` and what follows it. */
void film_run(struct film *film);

/* End the threads and free everything. */
void film_end(struct film *film);

/* The names of what a frame waits for: "input", "devices", "output". */
const char *film_wait_name(enum film_wait wait);

#endif
