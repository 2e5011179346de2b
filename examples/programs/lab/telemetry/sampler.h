/* A thread that reads the machine's telemetry at fixed times and hands it to the session database.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TELEMETRY_SAMPLER_H
#define COX_EXAMPLES_LAB_TELEMETRY_SAMPLER_H

#include "lab/store/database.h"
#include "telemetry.h"

struct lab_sampler;

/* What quickly changes is read every `period_ns`, everything about once a second. The sources are recorded at once:
 * call it after lab_store_begin_run, before the first session. The sampler uses `telemetry` and `store` until it is
 * stopped; both stay the caller's. NULL if there is no thread for it. */
struct lab_sampler *lab_sampler_start(struct lab_telemetry *telemetry, struct lab_store *store,
                                      uint64_t period_ns);

/* While it is paused nothing is read; on return no reading is under way, and the store's queue has all that were. When
 * it goes on it reads at once, and power from energy counters is that since then. NULL is accepted. */
void lab_sampler_pause(struct lab_sampler *sampler, bool paused);

struct lab_sampler_cost {
    uint64_t readings;
    double cpu_ns; /* of all of them: processor time of the thread */
};

/* Ends the thread; sets to NULL, NULL is accepted and cost nothing. */
void lab_sampler_stop(struct lab_sampler **sampler, struct lab_sampler_cost *cost);

#endif
