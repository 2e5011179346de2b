/* Chance that can be looked up: the number for a seed and four coordinates, without a state in between. What one policy
 * draws does not shift what another one gets.
 *
 * All functions use integers, + - * / and sqrt on doubles only, which IEEE 754 fixes to the last bit; none of the C
 * library's, whose last bits differ from machine to machine.
 *
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_RANDOM_H
#define COX_EXAMPLES_LAB_RANDOM_H

#include <stdint.h>

/* 64 random bits. `stream` tells apart the different uses of the same frame, device and launch. */
uint64_t lab_random_bits(uint64_t seed, uint32_t stream, uint64_t frame, uint32_t device,
                         uint32_t launch);

/* Uniform in (0, 1), neither end included. */
double lab_random_uniform(uint64_t bits);

/* The standard normal quantile of `u` in (0, 1). Relative error below 1.2e-9.
 * Source: P. J. Acklam, An algorithm for computing the inverse normal cumulative distribution function. */
double lab_random_normal(double u);

/* e to the x, for |x| <= 700; beyond that the value at the end. Relative error below 1e-15. */
double lab_exp(double x);

/* The natural logarithm of a positive, normal, finite x. Relative error below 1e-14 away from x = 1, absolute 1e-16
 * near it. */
double lab_log(double x);

#endif
