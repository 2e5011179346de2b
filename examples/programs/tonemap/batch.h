/* Several inputs, one after the other, into a folder.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_BATCH_H
#define TONEMAP_BATCH_H

#include "options.h"

/* Whether there are several inputs, or the output is a folder. */
bool batch_is(const struct options *options);

/* Each input becomes a file of its name in the folder: of the kind that --to says, else Matroska of video and PNG of a
 * picture. The others are done even if one fails, but not after an interruption. Returns the exit status. */
int batch_run(const struct options *options);

#endif
