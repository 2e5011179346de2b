/* Prints the figures of trials for `cox-lab sim`: as a table, CSV or JSON.
 * Thread-safety: an output is used by one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SIM_TRIAL_OUTPUT_H
#define COX_EXAMPLES_LAB_SIM_TRIAL_OUTPUT_H

#include "trial.h"
#include "common/json.h"
#include "lab/rows.h"

struct lab_output {
    enum lab_format format;
    bool summary_only;
    uint32_t policy_count;
    const struct cox_policy *const *policies; /* NULL among them = the oracle */
    uint64_t seeds, first_seed;
    struct json json; /* for this file only */
};

const char *lab_policy_name(const struct cox_policy *policy);

/* Call these in order: begin, the scenarios, begin_summary, a summary for each number of frames in
 * flight, end. After an error call end at once. */
void lab_output_begin(struct lab_output *output);

/* `figures` has an entry for each policy, here and below. */
void lab_output_scenario(struct lab_output *output, const struct lab_scenario *scenario,
                         uint32_t in_flight, const struct lab_figures *figures);

void lab_output_begin_summary(struct lab_output *output);

/* Print the means over all scenarios. */
void lab_output_summary(struct lab_output *output, uint32_t in_flight,
                        const struct lab_figures *const *figures, uint32_t scenario_count);

void lab_output_end(struct lab_output *output);

#endif
