/* The plots and words about one part on one supply. part_plots.c and corun.c fill them in,
 * summary.c shows them.
 * Thread-safety: one struct findings from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_FINDINGS_H
#define COX_EXAMPLES_LAB_LAPTOP_FINDINGS_H

#include "lab/plot/plot.h"
#include "progress.h"

enum { FINDINGS_PLOTS_MAX = 4 };

struct findings {
    const struct laptop_record *record;
    const struct laptop_machine *machine; /* NULL if not needed */
    uint32_t count;
    struct plot plots[FINDINGS_PLOTS_MAX];
    struct html words;   /* paragraphs of HTML */
    struct html finding; /* for the top of the page, in a sentence or two; empty = none */
    bool busy;           /* other programs kept the machine busy during the measurement */
};

/* A new plot. Its name and title say "battery" if the record was measured on battery. NULL if there
 * is no room. */
struct plot *findings_plot(struct findings *findings, const char *name, const char *title,
                           const char *x, const char *y);
void findings_free(struct findings *findings);

#endif
