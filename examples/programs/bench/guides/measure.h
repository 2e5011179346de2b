/* Measures an experiment on a device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GUIDES_MEASURE_H
#define BENCH_GUIDES_MEASURE_H

#include "experiment.h"

/* Fill the cells and the finding of `result`. False = not possible at all, after a message. If one
 * variant fails or is wrong, its cell says so. */
bool guides_measure(struct guides_device *device, struct guides_result *result);

#endif
