/* Analysis of variance of a factorial design: each combination of the factors' levels was measured
 * equally often. The values are logarithms of times, so effects are ratios.
 *
 * A replicate may be a block: a seed, or a repeat, whose conditions are the same for all levels of
 * the other factors. Then differences between blocks are not counted as errors.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_ANOVA_H
#define COX_EXAMPLES_LAB_ANOVA_H

#include "rows.h"

#include <stdbool.h>
#include <stdint.h>

enum { ANOVA_FACTORS_MAX = 3, ANOVA_ROWS_MAX = 10 };

struct anova_factor {
    const char *name;
    uint32_t levels; /* one: the factor is left out */
    const char *const *level_names;
};

struct anova_design {
    uint32_t factor_count;
    struct anova_factor factors[ANOVA_FACTORS_MAX];
    uint32_t replicates;    /* at least 2 */
    const char *block_name; /* what a replicate is: "seed" */
    uint32_t block_within;  /* replicates are alike within each level of this factor only;
                             * factor_count = within the whole design */

    /* Times, greater than 0: the last factor and then the replicate change fastest. */
    const double *times;
};

struct anova_row {
    char name[128];
    double squares, degrees;
    double f, p;         /* NaN for the last two rows */
    double eta, partial; /* squares over the total; over the sum with the residual's. NaN alike */
};

/* The factors, their interactions, the blocks, the residual and the total. `rows` has room for
 * ANOVA_ROWS_MAX. False with one sentence in `why`. */
bool anova_compute(const struct anova_design *design, struct anova_row *rows, uint32_t *count,
                   char *why, size_t why_bytes);

/* Compute and print as a table with each level's ratio, as CSV or as JSON. */
bool anova_print(const struct anova_design *design, enum lab_format format, char *why,
                 size_t why_bytes);

#endif
