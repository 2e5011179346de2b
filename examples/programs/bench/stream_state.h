/* The state of cox-bench stream, which stream.c fills and stream_bars.c and stream_print.c read.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_STREAM_STATE_H
#define BENCH_STREAM_STATE_H

#include "calls.h"
#include "common/json.h"
#include "common/quiet.h"
#include "hand.h"
#include "stream_hand.h"

#include <stdatomic.h>

enum {
    STREAM_ROUNDS = 7,
    STREAM_LEAD = 8,   /* frames of each run before its timed ones */
    STREAM_JUDGED = 3, /* frames in flight that most bars are for */
    STREAM_ENTRANTS_MAX = 3 * COX_DEVICES_MAX + 2 + BENCH_POLICIES_MAX,
    STREAM_RESULTS_MAX = 2 * COX_DEVICES_MAX + 8 * BENCH_POLICIES_MAX + 32,
};

enum stream_kind {
    STREAM_HAND_ONE, /* hand-written, one staged device */
    STREAM_HAND_ALL, /* hand-written, all staged devices, each frame in equal bands */
    STREAM_SINGLE,   /* the library, one device */
    STREAM_PROFILED, /* the library, one staged device, with the times of all commands */
    STREAM_STAGED,   /* the library, all staged devices, default policy */
    STREAM_TOGETHER, /* the library, all devices, a policy of the list */
};

/* The results of one run of an entrant. */
struct stream_round {
    double interval_ns; /* mean of the intervals between deliveries */
    struct bench_calls calls;
    /* By the library's reports. */
    uint64_t bands;                         /* with warm-ups and shadows, whose calls count too */
    uint64_t rows, copy_in_ns, copy_out_ns; /* of delivered frames */
};

struct stream_entrant {
    enum stream_kind kind;
    uint32_t device; /* HAND_ONE, SINGLE */
    char name[64];
    cox_session *session;
    struct stream_round rounds[STREAM_ROUNDS];
    double *interval_ns; /* [round * frame_count + frame] */
    /* Known after all rounds. */
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
    struct stream_hand *hands[COX_DEVICES_MAX]; /* of the staged devices, without gaps */
    struct bench_link links[COX_DEVICES_MAX];
    struct stream_frames frames;
    struct stream_kernel kernel;
    uint32_t frame_count; /* timed frames of a run */
    struct quiet quiet;
    struct json json;
    /* For the current number of frames in flight. */
    uint32_t in_flight, entrant_count;
    struct stream_entrant entrants[STREAM_ENTRANTS_MAX];
    double *intervals;
    uint64_t hash; /* 0 = no run yet */
    /* Of the current run. */
    uint64_t *done_ns;
    uint32_t done;
    struct stream_round *round;
    atomic_int status;
    /* Of the whole command. */
    bool same_output, judged;
    struct stream_result results[STREAM_RESULTS_MAX];
    uint32_t result_count;
};

#endif
