/* Makes the findings of each part from its database.
 * Thread-safety: one struct findings from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_PART_PLOTS_H
#define COX_EXAMPLES_LAB_LAPTOP_PART_PLOTS_H

#include "findings.h"

/* Of a part that is done. Prints the reason if it returns false; the caller frees the findings in
 * any case. */
bool findings_make(const struct laptop_machine *machine, const struct laptop_record *record,
                   struct findings *findings);

/* Compare a measurement on mains with one on battery. */
bool findings_supplies(const struct laptop_record *mains, const struct laptop_record *battery,
                       struct findings *findings);

#endif
