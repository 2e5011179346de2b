/* A problem in a session of the library.
 *
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SUITE_LIBRARY_H
#define BENCH_SUITE_LIBRARY_H

#include "problem.h"

struct suite_library;

/* What the bands of a run cost on one device of the session. */
struct suite_device_cost {
    uint32_t bands;
    uint64_t rows;                      /* of all passes */
    double kernel_ms, copy_ms, busy_ms; /* busy: from submission to the end */
};

/* Where the time of a run's passes went. Each pass counts by the band that ends last, from the end of
 * the pass before it. */
struct suite_turns {
    uint32_t passes;
    double start_ms; /* from the pass's first submission to the start of the kernel */
    double kernel_ms;
    double notice_ms; /* until the library noticed its end */
    double next_ms;   /* until the first band of the next pass was submitted */
};

/* Make a session over `devices` and buffers. `devices`, `policy` and `profile` are as in
 * cox_session_params. `problem` must outlive it. NULL after a message. */
struct suite_library *suite_library_create(const struct suite_problem *problem,
                                           cox_runtime *runtime, const char *devices,
                                           const char *policy, bool profile);

/* Run all frames on fresh data. `*wall_ns` is from data in the host's memory to results in the
 * host's memory. False after a message. */
bool suite_library_run(struct suite_library *library, double *wall_ns);

/* The content of a memory after a run. */
const void *suite_library_data(const struct suite_library *library, uint32_t memory);

/* The costs of the last run, by the session's devices. Returns the number of devices. */
uint32_t suite_library_costs(const struct suite_library *library,
                             struct suite_device_cost costs[COX_DEVICES_MAX]);
struct suite_turns suite_library_turns(const struct suite_library *library);

/* Accepts NULL. */
void suite_library_destroy(struct suite_library **library);

#endif
