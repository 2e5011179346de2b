/* From the options of one input to the job that does it, and from its end to an exit status.
 * Called by main.c, batch.c and the ranks of MPI.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_DISPATCH_H
#define TONEMAP_DISPATCH_H

#include "option_checks.h"

/* Exit statuses. INCOMPATIBLE: a retry with the same inputs would not help. */
enum { EXIT_BAD = 1, EXIT_USAGE = 2, EXIT_INCOMPATIBLE = 3 };

/* The kind of the current input: a picture, unless its content or the options about raw frames make
 * it video. An input that cannot be read counts as video, whose job says why. */
enum options_job dispatch_by_input(const struct options *options);

/* Do one input, or all inputs of a step, and print results and errors. Returns the exit status.
 * Sets options that follow from the kind of the input. */
int dispatch_run(struct options *options);

#endif
