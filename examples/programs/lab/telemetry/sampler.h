/* A thread that reads the machine's telemetry at regular times and sends it to the session
 * database.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TELEMETRY_SAMPLER_H
#define COX_EXAMPLES_LAB_TELEMETRY_SAMPLER_H

#include "lab/store/database.h"
#include "sources.h"

struct lab_sampler;

/* Read quick sources every `period_ns` and all sources about once a second. Call this after
 * lab_store_begin_run and before the first session: it records the sources at once. The caller
 * keeps `telemetry` and `store`, and the sampler uses them until it is stopped. NULL if no thread
 * can be started. */
struct lab_sampler *lab_sampler_start(struct lab_telemetry *telemetry, struct lab_store *store,
                                      uint64_t period_ns);

/* Nothing is read while the sampler is paused. On return no reading is under way, and all earlier
 * readings are in the store's queue. When the sampler continues, it reads at once, and power from
 * energy counters is measured from then on. NULL is accepted. */
void lab_sampler_pause(struct lab_sampler *sampler, bool paused);

struct lab_sampler_cost {
    uint64_t readings;
    double cpu_ns; /* CPU time of the thread, for all readings */
};

/* Ends the thread and sets the pointer to NULL. NULL is accepted; its cost is 0. */
void lab_sampler_stop(struct lab_sampler **sampler, struct lab_sampler_cost *cost);

#endif
