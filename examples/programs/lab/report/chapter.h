/* What the parts of a report about one run share, and those parts.
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_CHAPTER_H
#define COX_EXAMPLES_LAB_REPORT_CHAPTER_H

#include "charts.h"

/* What the page of one run is made from. */
struct chapter {
    struct html *out;
    const struct report_source *source;
    const struct report_run *run;
    uint32_t order[REPORT_POLICIES_MAX]; /* fastest first */
    uint32_t count;
    struct report_figures *all;
    struct report_figures (*phases)[REPORT_PHASES_MAX];
    struct chart_policies charts;
};

/* --- Words -------------------------------------------------------------------------------------------------------- */

/* The text, or what stands for its absence. */
void words_or(struct html *out, const char *text, const char *instead);

/* A whole number; a dash for NaN. */
void words_whole(struct html *out, double value);

/* A square of a policy's (kind "p") or device's ("d") colour. */
void words_swatch(struct html *out, const char *kind, uint32_t colour);

void chapter_policy_name(const struct chapter *chapter, uint32_t policy);

/* --- Tables ------------------------------------------------------------------------------------------------------- */

/* Between the two stand <thead> and <tbody>, and the rows; the end of the body is written by table_end. */
void table_begin(struct html *out, const char *class, const char *caption);
void table_end(struct html *out);

enum table_form { CELL_COUNT, CELL_RATIO, CELL_PERCENT, CELL_TENTHS, CELL_JOULES };

/* A cell with a number, a dash for one that is not finite; `best` makes it bold. */
void table_cell(struct html *out, enum table_form form, double value, bool best);
void table_cell_ms(struct html *out, double ns, bool best);

/* --- What is asked of a run --------------------------------------------------------------------------------------- */

bool run_is_simulated(const struct report_run *run);
bool chapter_is_oracle(const struct chapter *chapter, uint32_t policy);

/* --- Its parts ---------------------------------------------------------------------------------------------------- */

/* The finding, the table, what to know first, the charts that compare policies. */
void chapter_results(const struct chapter *chapter);

/* One policy over time, its reasons and shares. False if out of memory. */
bool chapter_policy_part(const struct chapter *chapter, uint32_t policy);

/* gauge_charts.c. What was read of the machine: while the session's frames ran, and by the split, with the figures.
 * Nothing where there is no telemetry. False if out of memory. */
bool chapter_session_gauges(const struct chapter *chapter, const struct report_session *session);
bool chapter_gauges(const struct chapter *chapter);

/* Devices, references, disturbances, definitions. */
void chapter_machine(const struct chapter *chapter);

#endif
