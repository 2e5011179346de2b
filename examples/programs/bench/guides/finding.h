/* What the figures of an experiment show, in sentences.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GUIDES_FINDING_H
#define BENCH_GUIDES_FINDING_H

#include "experiment.h"

/* Write the finding: the fastest variant, by how much, and which variants do not differ from it. */
void guides_find(const struct guides_device *device, struct guides_result *result);

#endif
