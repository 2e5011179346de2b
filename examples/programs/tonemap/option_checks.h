/* Options against each other: combinations that mean nothing are refused, and what an option leaves
 * open follows from the others.
 *
 * Each function returns false, and *error says why, if the options are refused.
 * Thread-safety: pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_OPTION_CHECKS_H
#define TONEMAP_OPTION_CHECKS_H

#include "options.h"

enum options_job { OPTIONS_PICTURE, OPTIONS_VIDEO };

/* What can be checked before the kind of the input is known. */
bool options_check(struct options *options, struct options_error *error);

/* Make `input`, one of `inputs`, the current one. Checks the options about raw frames for it. */
bool options_take(struct options *options, const char *input, struct options_error *error);

/* Check all given options for this kind of input, and set `to` and `depth` if they are not
 * given. */
bool options_suit(struct options *options, enum options_job job, struct options_error *error);

#endif
