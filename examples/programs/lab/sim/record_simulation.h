/* Records simulated policies in a session database: for the report, and to try readers of such
 * databases without devices. `cox-lab sim --record` uses it.
 *
 * Thread-safety: as for the store.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_RECORD_H
#define COX_EXAMPLES_LAB_RECORD_H

#include "scenario.h"
#include "lab/store/database.h"

/* Frames first_frame .. end_frame - 1. */
struct lab_record_phase {
    uint64_t first_frame, end_frame;
    const char *text;
};

struct lab_record {
    const char *scenario; /* its name, as the run's kernel */
    const char *const *device_names;
    const struct lab_record_phase *phases; /* cover all frames */
    uint32_t phase_count;
    const struct cox_policy *const *policies;
    uint32_t policy_count;
    const struct lab_sim_options *options; /* with split_each_pass: policies observe each pass */
    uint64_t seed;
};

/* Record one run:
 *   - a session of each device alone
 *   - a session for each policy
 *   - a session of the oracle
 *   - for each phase, medians of the devices alone and of the oracle as references
 *
 * The oracle's session has kind "policy", policy "oracle" and bands without times.
 *
 * Times are virtual: apart from run.started_at the same simulation gives the same rows. False if a
 * simulation fails, with the reason in `why`. lab_store_close reports write errors. */
bool lab_record_simulation(struct lab_store *store, const struct lab_world *world,
                           const struct lab_record *record, char *why, size_t why_bytes);

/* The same for a scenario. A phase lasts from one of its changes to the next. `policies` may hold
 * NULL for the oracle, which is recorded in any case. */
bool lab_record_scenario(struct lab_store *store, const struct lab_scenario *scenario,
                         const struct cox_policy *const *policies, uint32_t policy_count,
                         const struct lab_sim_options *options, uint64_t seed, char *why,
                         size_t why_bytes);

#endif
