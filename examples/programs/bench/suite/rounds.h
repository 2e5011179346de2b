/* One case of cox-bench suite: its entrants, their times, and whether their results are right.
 *
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SUITE_ROUNDS_H
#define BENCH_SUITE_ROUNDS_H

#include "common/quiet.h"
#include "library.h"
#include "problem.h"

enum { SUITE_ROUNDS_MAX = 101 };

/* Times are medians of the rounds, in milliseconds. */
struct suite_figures {
    const struct suite_case *of;
    uint32_t device_count;
    uint32_t best; /* the fastest device alone, in hand-written OpenCL */
    double hand_one_ms, hand_all_ms, library_one_ms, library_all_ms;
    double shares[COX_DEVICES_MAX]; /* of the rows, in the best split that was found */
    double library_shares[COX_DEVICES_MAX];
    double device_ms[COX_DEVICES_MAX]; /* hand-written, each device alone, when it was tuned */

    /* What a run of the library on all devices cost on each of them. */
    struct suite_device_cost costs[COX_DEVICES_MAX];
    struct suite_turns turns;

    bool equal_bits; /* the library on all devices and on the best one */
    double error;    /* the largest of all entrants */
    bool right;      /* `error` is within the tolerance */
};

struct suite_conditions {
    cox_runtime *runtime;
    enum suite_size size;
    uint32_t rounds; /* 0 = one run of each entrant with fixed shares, for its results alone */
    struct quiet *quiet;
};

/* Measure a case. False after a message. */
bool suite_measure(const struct suite_case *of, const struct suite_conditions *conditions,
                   struct suite_figures *figures);

#endif
