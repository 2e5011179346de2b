/* A film on its way through the devices. A reader thread reads ahead, the caller's thread sends
 * frames through a stream and receives them, a writer thread writes the mapped frames. Each side
 * has a few slots, so that memory depends on the frames in flight and not on the length of the
 * film.
 *
 *     file ─ reader ─► input slots ─ film_run ─► stream ─► output slots ─ writer ─► file
 *
 * Frame n uses slot n modulo the slots of its side. Frames stay in order, so that one count for
 * each step is enough: read >= submitted >= mapped >= written.
 *
 * Thread-safety: from one thread. film_plan.h says on which thread each callback runs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_FILM_H
#define TONEMAP_FILM_H

#include "film_plan.h"
#include "film_side.h"
#include "report.h"

#include <coxswain/coxswain.h>
#include <pthread.h>

/* More than the frames that are read and not yet written. */
enum { FILM_FRAMES = 2 * FILM_SLOTS_MAX };

/* What the next frame waits for. */
enum film_wait { FILM_WAIT_INPUT = 0, FILM_WAIT_DEVICES, FILM_WAIT_OUTPUT, FILM_WAITS };

struct film {
    struct film_plan plan;
    struct film_side in, out;
    cox_video_stream *stream;

    struct video_colours colours;   /* of the last frame that was submitted */
    uint64_t changes, first_change; /* of the colours that frames are mapped by: count, frame */

    struct report_scene *scenes;
    uint64_t scene_count, scene_capacity;

    /* While the curve follows the film. The first scene is not counted as a cut. */
    uint64_t cuts;
    uint64_t curveless; /* frames that have no curve for the operator hdr10plus */
    bool scene_begun;
    float least_peak_nits, most_peak_nits; /* of the curves of all frames; 0 = no frame yet */

    pthread_mutex_t lock; /* around all that follows, up to the threads */
    pthread_cond_t reader_wake, writer_wake;
    uint64_t read, submitted, mapped, written;
    struct video_frame frames[FILM_FRAMES]; /* frame n at n modulo FILM_FRAMES */
    bool read_ended, write_ended;           /* the thread has ended, or is about to */
    bool stop_reading, stop_writing;
    bool failed; /* the fields up to `write_error` say why */
    cox_status status;
    uint64_t failed_frame;
    const char *failed_step; /* for `status`: the step that failed */
    bool read_failed, write_failed;
    struct error read_error, write_error;

    int main_wake; /* an eventfd, for the caller's thread */
    pthread_t reader, writer;
    bool reader_runs, writer_runs;
    uint64_t reader_cpu_ns; /* processor time of the reader's thread; set at its end */
    uint64_t waited_ns[FILM_WAITS];
    uint64_t began_ns, ended_ns; /* from film_run to the end of the last write */
};

/* Plan the slots. From here on the film needs film_end. */
void film_begin(struct film *film, const struct film_plan *plan);

/* Bytes of all slots, when all are made; without frames that the input lends. */
double film_bytes(const struct film *film);

/* Start to read, and build the pipelines meanwhile. */
cox_status film_start(struct film *film);

/* Do all frames, until the input ends, something fails, or `enough` returns true. Frames in flight
 * are finished in any case. Afterwards `failed` and the fields below it tell what went wrong. */
void film_run(struct film *film);

/* End the threads and free everything. */
void film_end(struct film *film);

/* The number of frame `n` in the input. */
uint64_t film_frame(const struct film *film, uint64_t n);

/* "input", "devices" or "output". */
const char *film_wait_name(enum film_wait wait);

#endif
