/* The results in the current folder: the page, the plots' CSV files with the gnuplot script, and
 * the description of the machine. An archive holds these and the databases, with a README, the
 * licence and checksums.
 * Thread-safety: from one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_BUNDLE_H
#define COX_EXAMPLES_LAB_LAPTOP_BUNDLE_H

#include "progress.h"

/* Prints the reason if it returns false. */
bool laptop_write_results(const struct laptop_options *options,
                          const struct laptop_machine *machine,
                          const struct laptop_records *records);

#endif
