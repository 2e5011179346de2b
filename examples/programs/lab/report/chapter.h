/* What the parts of a report about one run share, and those parts. document.c calls the parts in
 * the order of the page. The tables are used by the other pages of cox-lab too.
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_CHAPTER_H
#define COX_EXAMPLES_LAB_REPORT_CHAPTER_H

#include "charts.h"

/* The page of one run is made from this. */
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

/* --- Words ------------------------------------------------------------------------------------ */

/* The text, or `instead` if it is NULL or empty. */
void words_or(struct html *out, const char *text, const char *instead);

/* A whole number; a dash for NaN. */
void words_whole(struct html *out, double value);

/* A square of a policy's (kind "p") or device's ("d") colour. */
void words_swatch(struct html *out, const char *kind, uint32_t colour);

void chapter_policy_name(const struct chapter *chapter, uint32_t policy);

/* Begin the rows of a policy in a table: its name, for all of its rows, and the head of the first
 * row if there are `phases`. The caller writes the cells and </tr>. */
void chapter_policy_rows(const struct chapter *chapter, uint32_t policy, bool phases);

/* A row of a table with the device's name and colour. The caller writes the cells and </tr>. */
void chapter_device_row(const struct chapter *chapter, uint32_t device);

/* --- Tables ----------------------------------------------------------------------------------- */

/* Between the two the caller writes <thead> and <tbody>, and the rows; table_end closes the
 * body. */
void table_begin(struct html *out, const char *class, const char *caption);
void table_end(struct html *out);

/* Open the table with these heads of columns, as HTML, and its body. NULL ends them. */
void table_open(struct html *out, const char *class, const char *caption,
                const char *const columns[]);

/* Only the heads. */
void table_head(struct html *out, const char *const names[]);

/* A row with its name, which may be NULL. The caller writes the cells and </tr>. */
void table_row_begin(struct html *out, const char *name);

enum table_form { CELL_COUNT, CELL_RATIO, CELL_PERCENT, CELL_TENTHS, CELL_JOULES };

/* A cell with a number, or a dash for one that is not finite; `best` makes it bold. */
void table_cell(struct html *out, enum table_form form, double value, bool best);
void table_cell_ms(struct html *out, double ns, bool best);

/* A cell with a text, or a dash for none. */
void table_cell_text(struct html *out, const char *text);

/* --- Questions about a run -------------------------------------------------------------------- */

bool run_is_simulated(const struct report_run *run);
bool chapter_is_oracle(const struct chapter *chapter, uint32_t policy);

/* --- The parts -------------------------------------------------------------------------------- */

/* results_part.c: the finding, the table, the warnings; the charts that compare policies. */
void chapter_results(const struct chapter *chapter);
void chapter_comparisons(const struct chapter *chapter);

/* certainty_part.c: intervals, and each policy against the first. False if out of memory. */
bool chapter_certainty(const struct chapter *chapter);

/* policy_part.c: one policy over time, its reasons and shares. False if out of memory. */
bool chapter_policy_part(const struct chapter *chapter, uint32_t policy);

/* gauges_part.c: the readings while the session's frames ran; and by the split, with a table.
 * Nothing without telemetry. False if out of memory. */
bool chapter_session_gauges(const struct chapter *chapter, const struct report_session *session);
bool chapter_gauges(const struct chapter *chapter);

/* machine_part.c: devices, references, disturbances, definitions. */
void chapter_machine(const struct chapter *chapter);

#endif
