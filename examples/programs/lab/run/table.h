/* The results of a run, for people and for programs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_RUN_TABLE_H
#define COX_EXAMPLES_LAB_RUN_TABLE_H

#include "frame_figures.h"
#include "options.h"

#include <stdio.h>

/* The confidence of one policy's figures in one phase. */
struct lab_run_certainty {
    struct lab_intervals of; /* ratio: T/single, of medians */
    double over_off;         /* with a reserved core over without, medians; NaN = not compared */
    struct lab_interval over_off_interval;
};

struct lab_run_table {
    const struct lab_run_options *options;
    int64_t run; /* in the database */
    const char *kernel, *reserve;
    struct lab_size size;
    uint32_t ratio; /* 0 = the kernel is not `work` */
    uint32_t phase_count;
    const struct lab_phase *phases;
    const struct lab_run_reference *references; /* of each phase */
    const struct lab_run_figures *figures;      /* [policy * phase_count + phase] */
    const struct lab_run_certainty *certainties;
    double foreign_load; /* negative = unknown */

    /* Of each policy: blocks with compared outputs, and those that were wrong. */
    uint32_t compared[LAB_RUN_POLICIES_MAX], different[LAB_RUN_POLICIES_MAX];
};
void lab_run_print(FILE *to, const struct lab_run_table *table);

/* The same as CSV or JSON; nothing with the format LAB_TABLE. */
void lab_run_rows(struct lab_rows *rows, const struct lab_run_table *table);

#endif
