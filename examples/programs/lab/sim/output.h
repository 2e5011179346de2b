/* What `cox-lab sim` prints: a table, CSV or JSON.
 * Thread-safety: an output is used by one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SIM_OUTPUT_H
#define COX_EXAMPLES_LAB_SIM_OUTPUT_H

#include "figures.h"
#include "common/json.h"
#include "lab/rows.h"

struct lab_output {
    enum lab_format format;
    bool summary_only;
    uint32_t policy_count;
    const struct cox_policy *const *policies; /* NULL among them = the oracle */
    uint64_t seeds, first_seed;
    struct json json; /* the output's own */
};

const char *lab_policy_name(const struct cox_policy *policy);

/* In this order: begin, the scenarios, begin_summary, a summary for each number of frames in flight, end;
 * after what went wrong, end at once. */
void lab_output_begin(struct lab_output *output);

/* `figures` are those of each policy, as below. */
void lab_output_scenario(struct lab_output *output, const struct lab_scenario *scenario,
                         uint32_t in_flight, const struct lab_figures *figures);

void lab_output_begin_summary(struct lab_output *output);

/* Means over so many scenarios. */
void lab_output_summary(struct lab_output *output, uint32_t in_flight,
                        const struct lab_figures *const *figures, uint32_t scenario_count);

void lab_output_end(struct lab_output *output);

#endif
