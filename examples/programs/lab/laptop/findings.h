/* The plots of the parts, from their databases.
 * Thread-safety: one set of figures from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_FINDINGS_H
#define COX_EXAMPLES_LAB_LAPTOP_FINDINGS_H

#include "plan.h"
#include "lab/plot/plot.h"

enum { FIGURES_MAX = 4 /* plots of a part on one supply */ };

/* What the page says of a part on one supply, and draws. */
struct figures {
    const struct laptop_record *record;
    uint32_t count;
    struct plot plots[FIGURES_MAX];
    struct html words;   /* paragraphs of HTML */
    struct html finding; /* of the whole page, in a sentence or two; empty = none */
    bool busy;           /* other programs kept the machine busy meanwhile */
};

/* Of a part that is done. False after saying why. */
bool figures_make(const struct laptop_machine *machine, const struct laptop_record *record,
                  struct figures *figures);
void figures_free(struct figures *figures);

/* A plot to be filled: its name gets the supply. NULL if there is no room. */
struct plot *figures_plot(struct figures *figures, const char *name, const char *title,
                          const char *x, const char *y);

/* What was measured on mains beside what was on battery. */
bool figures_supplies(const struct laptop_record *mains, const struct laptop_record *battery,
                      struct figures *figures);

/* --- Of single parts, for figures.c ----------------------------------------------------------- */

struct source;
bool figures_corun(struct source *source, struct figures *figures);

#endif
