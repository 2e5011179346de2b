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
    const char *scenario;                  /* its name, as the run's kernel */
    const char *command;                   /* as typed; may be NULL */
    const char *const *device_names;       /* NULL = "device 0", ... */
    const struct lab_record_phase *phases; /* that cover all frames; NULL = one phase */
    uint32_t phase_count;
    const struct cox_policy *const *policies;
    uint32_t policy_count;
    const struct lab_sim_options *options; /* NULL = the defaults */
    uint64_t seed;                         /* of the first repeat; the others take the next ones */
    uint32_t repeats;                      /* 0 = 1 */

    /* Leave out the policies' calls. The database is much smaller, but `cox-lab replay --decisions`
     * needs them. */
    bool no_tape;
};

/* Record one run:
 *   - a session for each policy and repeat,
 *   - a session of the oracle for each repeat (kind "policy", policy "oracle", bands without
 *     times),
 *   - a session of each device alone,
 *   - medians of these as references of each phase. Times are virtual: apart from run.started_at
 *     the same simulation gives the same rows. False if a simulation fails, with the reason in
 *     `why`. lab_store_close reports write errors. */
bool lab_record_simulation(struct lab_store *store, const struct lab_world *world,
                           const struct lab_record *record, char *why, size_t why_bytes);

/* The same for a scenario. A phase lasts from one of its changes to the next. `policies` may hold
 * NULL for the oracle, which is recorded in any case. */
bool lab_record_scenario(struct lab_store *store, const struct lab_scenario *scenario,
                         const struct cox_policy *const *policies, uint32_t policy_count,
                         const struct lab_sim_options *options, uint64_t seed, char *why,
                         size_t why_bytes);

#endif
