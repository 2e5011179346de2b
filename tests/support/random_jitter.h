/* One stream of random numbers for models of devices, the same on every machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_RANDOM_JITTER_H
#define COX_TESTS_RANDOM_JITTER_H

#include <stdint.h>

/* Begin the stream of a seed, which is not 0. Without it the stream is that of 1. */
void random_begin(uint64_t seed);

/* Of [0, 1). */
double random_unit(void);

/* Of 0 .. bound - 1. */
uint32_t random_index(uint32_t bound);

/* A log-normal factor: sigma of its logarithm, whose mean is 0. */
double random_jitter(double sigma);

#endif
