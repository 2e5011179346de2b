/* A stream of random numbers for models of devices, the same on every machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_RANDOM_JITTER_H
#define COX_TESTS_RANDOM_JITTER_H

#include <math.h>
#include <stdint.h>

static uint64_t random_state = 1;

/* Start the stream with a seed other than 0. Without this call, the seed is 1. */
static inline void random_begin(uint64_t seed)
{
    random_state = seed;
}

/* Uniform in [0, 1), by xorshift64*. */
static inline double random_unit(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (double)((random_state * 0x2545F4914F6CDD1Dull) >> 11) * 0x1p-53;
}

/* One of 0 .. bound - 1. */
static inline uint32_t random_index(uint32_t bound)
{
    return (uint32_t)(random_unit() * bound);
}

/* A log-normal factor. Its logarithm has the mean 0 and the standard deviation `sigma`. */
static inline double random_jitter(double sigma)
{
    const double u = random_unit() + 1e-18, v = random_unit();
    return exp(sigma * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

#endif
