/* A run on the devices of this machine: policies and their references take turns, with
 * disturbances, and everything is recorded. Called by `cox-lab run`.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_RUN_MEASURE_H
#define COX_EXAMPLES_LAB_RUN_MEASURE_H

#include "options.h"

/* Returns an exit status. */
int lab_run(const struct lab_run_options *options);

#endif
