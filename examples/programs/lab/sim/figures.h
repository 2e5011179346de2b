/* What the lab says of a policy in a scenario, from its simulated frames.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_FIGURES_H
#define COX_EXAMPLES_LAB_FIGURES_H

#include "scenario.h"

enum {
    LAB_SEEDS_MAX = 1000,
    LAB_RECONVERGED_FRAMES = 8, /* in a row, to count as staying */
    LAB_WHY_MAX = 640
};

/* Figures over all seeds. */
struct lab_figures {
    double value[LAB_FIGURE_COUNT]; /* negative = there is nothing to say */
    double reconverged_worst;       /* of one step in one seed */
    /* A frame: its period; that of the oracle, with several frames in flight of the best fixed split; that of the best
     * fixed split in hindsight, one for each seed; joules, negative = not modelled. */
    double mean_ns, oracle_ns, static_ns, joules;
    uint64_t refused;      /* frames */
    char why[LAB_WHY_MAX]; /* of the first of them; with an error what went wrong */
};

struct lab_trial {
    const struct lab_scenario *scenario;
    const struct lab_sim_options
        *options; /* `oracles` is not used; objective and deadline come from the scenario */
    uint64_t first_seed;
    uint32_t seeds; /* 1 .. LAB_SEEDS_MAX */
    uint32_t policy_count;
    const struct cox_policy *const *policies; /* NULL among them = the oracle */
};

/* Run every policy on every seed and fill `out[policy_count]`. LAB_FIGURE_BEATEN compares with the others in the list.
 * Errors: COX_E_NOMEM, and those of lab_simulate with `failed` = index of the policy and its `why` filled. */
cox_status lab_trial_run(const struct lab_trial *trial, struct lab_figures *out, uint32_t *failed);

extern const char *const lab_figure_keys[LAB_FIGURE_COUNT];
extern const char *const lab_figure_headings[LAB_FIGURE_COUNT];

#endif
