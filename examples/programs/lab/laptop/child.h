/* A part's commands, each in its own process.
 * Thread-safety: from one thread; installs signal handlers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_CHILD_H
#define COX_EXAMPLES_LAB_LAPTOP_CHILD_H

#include "progress.h"

/* Run the commands of the record's plan. Sets the record's status, seconds and supply at the end.
 * False if interrupted. */
bool laptop_run_part(const struct laptop_options *options, struct laptop_record *record);

#endif
