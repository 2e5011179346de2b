/* A report's figures as rows, for CSV and JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_FIGURE_ROWS_H
#define COX_EXAMPLES_LAB_REPORT_FIGURE_ROWS_H

#include "runs.h"
#include "lab/rows.h"

/* For each run and policy a row over all frames, without a phase, and one for each phase. False:
 * out of memory. */
bool report_rows(const struct report_source *source, struct lab_rows *rows);

#endif
