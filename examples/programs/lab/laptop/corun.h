/* The findings of the part `corun`. Called by part_plots.c.
 * Thread-safety: one struct findings from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_CORUN_H
#define COX_EXAMPLES_LAB_LAPTOP_CORUN_H

#include "findings.h"
#include "source.h"

/* Prints the reason if it returns false. */
bool findings_corun(struct source *source, struct findings *findings);

#endif
