/* Records simulated policies in a session database, so that what reads one can be tried without devices, and a
 * simulation be looked at in the report.
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
    const char *scenario;            /* its name: the run's kernel */
    const char *command;             /* as typed; may be NULL */
    const char *const *device_names; /* NULL = "device 0", ... */
    const struct lab_record_phase
        *phases; /* NULL = one of all frames; else they cover the frames */
    uint32_t phase_count;
    const struct cox_policy *const *policies;
    uint32_t policy_count;
    const struct lab_sim_options *options; /* for each policy; NULL = the defaults */
    uint64_t seed;    /* of the first repeat; the next ones take the next seeds */
    uint32_t repeats; /* 0 = 1 */
    bool
        no_tape; /* without the policies' calls: much smaller, cannot be replayed with --decisions */
};

/* One run: a session for each policy and repeat; one of the oracle for each repeat (kind "policy", policy "oracle", its
 * bands without times); one of each device alone; medians of these as references of each phase. Times are virtual: but
 * for run.started_at the same simulation gives the same rows in the database.
 * False if a simulation fails, with a sentence in `why`; what the store cannot write, lab_store_close tells. */
bool lab_record_simulation(struct lab_store *store, const struct lab_world *world,
                           const struct lab_record *record, char *why, size_t why_bytes);

/* The same of a scenario: the phases are what lies between its changes. `policies` may hold NULL for the oracle, which
 * is recorded in any case. */
bool lab_record_scenario(struct lab_store *store, const struct lab_scenario *scenario,
                         const struct cox_policy *const *policies, uint32_t policy_count,
                         const struct lab_sim_options *options, uint64_t seed, char *why,
                         size_t why_bytes);

#endif
