/* All experiments of cox-bench guides, in the order of the page.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GUIDES_CATALOGUE_H
#define BENCH_GUIDES_CATALOGUE_H

#include "experiment.h"

/* NULL after the last one. */
const struct guides_experiment *guides_experiment_at(uint32_t index);

#endif
