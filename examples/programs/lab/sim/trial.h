/* A trial runs policies in a scenario and reduces the simulated frames to figures.
 * commands/sim.c runs trials, trial_output.c prints them.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SIM_TRIAL_H
#define COX_EXAMPLES_LAB_SIM_TRIAL_H

#include "by_seed.h"
#include "scenario.h"

enum {
    LAB_SEEDS_MAX = 1000,
    LAB_RECONVERGED_FRAMES = 8, /* good frames in a row that end a convergence */
    LAB_WHY_MAX = 640
};

/* Figures over all seeds. */
struct lab_figures {
    double value[LAB_FIGURE_COUNT]; /* negative = not known */
    double reconverged_worst;       /* of one step in one seed */

    /* Means per frame. */
    double mean_ns;   /* the period */
    double static_ns; /* the period with the best fixed split of each seed */
    double oracle_ns; /* the oracle's period; with several frames in flight the same as static_ns */
    double joules;    /* negative = not modelled */

    struct lab_certainty certainty;

    uint64_t refused;      /* frames whose split was refused */
    char why[LAB_WHY_MAX]; /* the reason of the first one, or of an error */
};

struct lab_trial {
    const struct lab_scenario *scenario;
    const struct lab_sim_options *options; /* without `oracles`, objective and deadline */
    uint64_t first_seed;
    uint32_t seeds; /* 1 .. LAB_SEEDS_MAX */
    uint32_t policy_count;
    const struct cox_policy *const *policies; /* NULL among them = the oracle */
    double *seed_ns; /* filled: [policy * seeds + seed], the mean period; NULL = not wanted */
};

/* Run every policy on every seed and fill `out[policy_count]`. LAB_FIGURE_BEATEN compares the
 * policies with each other. Errors: COX_E_NOMEM, and those of lab_simulate; `failed` is then the
 * index of the policy, and its `why` is filled. */
cox_status lab_trial_run(const struct lab_trial *trial, struct lab_figures *out, uint32_t *failed);

#endif
