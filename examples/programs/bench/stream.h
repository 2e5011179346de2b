/* What the files of cox-bench stream share.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_STREAM_H
#define BENCH_STREAM_H

#include "shared.h"
#include "common/json.h"

#include <stdatomic.h>

enum {
    STREAM_ROUNDS = 7,
    STREAM_LEAD = 8, /* frames of each run before its timed ones */
    STREAM_IN_FLIGHT_MAX = 8,
    STREAM_JUDGED = 3, /* frames in flight that most bars are for */
    STREAM_BUFFERS_MAX = 2 * COX_VIDEO_PLANES_MAX,
    STREAM_ENTRANTS_MAX = 3 * COX_DEVICES_MAX + 2 + BENCH_POLICIES_MAX,
    STREAM_RESULTS_MAX = 2 * COX_DEVICES_MAX + 8 * BENCH_POLICIES_MAX + 32,
};

/* --- the frames (stream_frames.c) --- */

/* The pipeline, and as many sets of buffers as frames may be in flight. `pipeline` points into the struct. */
struct stream_frames {
    uint32_t width, height, sets;
    enum cox_arithmetic arithmetic; /* of the runtime */
    union {
        struct cox_tonemap_storage picture;
        struct cox_video_storage video;
    } storage;
    union {
        struct cox_tonemap_params picture;
        struct cox_video_params video;
    } params;
    struct cox_session_params pipeline;
    size_t row_bytes[STREAM_BUFFERS_MAX]; /* of a buffer row, without its padding */
    cox_buffer *buffers[STREAM_IN_FLIGHT_MAX][STREAM_BUFFERS_MAX];
};

bool stream_frames_make(struct stream_frames *frames, cox_runtime *runtime,
                        const struct bench_options *options, uint32_t sets);
void stream_frames_free(struct stream_frames *frames);

/* Zeros into the outputs of the first `sets` sets; the hash of what is in them, padding left out. */
void stream_frames_clear(struct stream_frames *frames, uint32_t sets);
uint64_t stream_frames_hash(const struct stream_frames *frames, uint32_t sets);

/* Bytes of one row of the frame in all buffers that are read, or written. */
double stream_frames_row_bytes(const struct stream_frames *frames, bool in);

/* What a band touches of a buffer: `rows` buffer rows from `first`, with its halo. */
struct stream_span {
    uint32_t first, rows;
    size_t offset, bytes;
};
struct stream_span stream_frames_span(const struct stream_frames *frames, uint32_t buffer,
                                      uint32_t first_row, uint32_t rows);

/* --- the stream in hand-written OpenCL (stream_hand.c) --- */

struct stream_hand;

/* A staged device's stream with a ring of `frames->sets` slots, their inputs copied from `frames`, which must outlive
 * it; for runs of up to `most` frames. NULL after a message. */
struct stream_hand *stream_hand_create(const struct cox_device_info *info,
                                       const struct stream_frames *frames, uint32_t most);
void stream_hand_destroy(struct stream_hand **hand);

/* Share the rows out in equal bands over the `count` streams. Before stream_hand_run. */
bool stream_hand_split(struct stream_hand *const *hands, uint32_t count, uint32_t in_flight);

/* Run `frame_count` frames, one feeding thread for each stream; `done_ns` of each frame: when its last band was in. */
bool stream_hand_run(struct stream_hand *const *hands, uint32_t count, uint32_t frame_count,
                     uint64_t *done_ns);

/* Copy the rows that the streams wrote last into the outputs of `frames`. */
void stream_hand_collect(struct stream_hand *const *hands, uint32_t count,
                         struct stream_frames *frames);

/* --- entrants and rounds (stream.c) --- */

enum stream_kind {
    STREAM_HAND_ONE, /* hand-written, one staged device */
    STREAM_HAND_ALL, /* hand-written, all staged devices: each frame in equal bands */
    STREAM_SINGLE,   /* the library, one device */
    STREAM_PROFILED, /* the same with times of all commands, one staged device */
    STREAM_STAGED,   /* the library, all staged devices, default policy */
    STREAM_TOGETHER, /* the library, all devices, a policy of the list */
};

/* What one run of an entrant gave. */
struct stream_round {
    double interval_ns; /* mean of the intervals between deliveries */
    struct bench_calls calls;
    /* the library's, by its reports */
    uint64_t bands; /* warm-ups and shadows too: their calls are counted as well */
    uint64_t rows, copy_in_ns, copy_out_ns; /* of delivered frames */
};

struct stream_entrant {
    enum stream_kind kind;
    uint32_t device; /* HAND_ONE, SINGLE */
    char name[64];
    cox_session *session;
    struct stream_round rounds[STREAM_ROUNDS];
    double *interval_ns; /* [round * frame_count + frame] */
    /* figures, once all rounds are done */
    double fps, fps_low, fps_high; /* median, least, most of the rounds */
    double mean_ms, p99_ms;        /* of the intervals of all rounds */
    struct bench_calls calls;      /* of all rounds */
    uint64_t bands;
};

struct stream_result {
    char name[128];
    double value, low, high; /* low == high: no range */
    double bar;
    bool at_most, met;
};

struct stream {
    const struct bench_options *options;
    cox_runtime *runtime;
    uint32_t device_count, staged_count;
    struct cox_device_info devices[COX_DEVICES_MAX];
    struct stream_hand *hands[COX_DEVICES_MAX]; /* of the staged devices, one after the other */
    struct bench_cl_link links[COX_DEVICES_MAX];
    struct stream_frames frames;
    uint32_t frame_count; /* timed frames of a run */
    struct quiet quiet;
    struct json json;
    /* of the frames in flight under way */
    uint32_t in_flight, entrant_count;
    struct stream_entrant entrants[STREAM_ENTRANTS_MAX];
    double *intervals;
    uint64_t hash; /* 0 = no run yet */
    /* of the run under way */
    uint64_t *done_ns;
    uint32_t done;
    struct stream_round *round;
    atomic_int status;
    /* the whole command's */
    bool same_output, judged;
    struct stream_result results[STREAM_RESULTS_MAX];
    uint32_t result_count;
};

/* --- bars (stream_bars.c) --- */

/* Adds the results of the entrants that have run. */
void stream_judge(struct stream *stream);
bool stream_met(const struct stream *stream);
/* Which results there are not, and why; "" if all are there. */
void stream_left_out(const struct stream *stream, char *text, size_t bytes);

/* --- output (stream_print.c) --- */

void stream_print_head(struct stream *stream);
void stream_print_entrants(struct stream *stream);
void stream_print_tail(struct stream *stream);

#endif
