/* SPDX-License-Identifier: Apache-2.0 */
#include "random_jitter.h"

#include <math.h>

static uint64_t state = 1;

void random_begin(uint64_t seed)
{
    state = seed;
}

/* xorshift64* */
double random_unit(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (double)((state * 0x2545F4914F6CDD1Dull) >> 11) * 0x1p-53;
}

uint32_t random_index(uint32_t bound)
{
    return (uint32_t)(random_unit() * bound);
}

double random_jitter(double sigma)
{
    double u = random_unit() + 1e-18, v = random_unit();
    return exp(sigma * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}
