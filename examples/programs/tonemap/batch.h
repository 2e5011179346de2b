/* Several inputs, one after the other, into a folder.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_BATCH_H
#define TONEMAP_BATCH_H

#include "options.h"

/* Whether there are several inputs, or the output is a folder. */
bool batch_is(const struct options *options);

/* Each input becomes a file of its name in the folder. The kind is the one of --to; without --to it
 * is Matroska for video and PNG for a picture. If one input fails, the others are still done; after
 * an interruption they are not. Returns the exit status. */
int batch_run(const struct options *options);

#endif
