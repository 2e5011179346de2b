/* Random numbers without a state: each is a function of a seed and four coordinates. What one
 * policy draws does not change what another one gets.
 *
 * All functions use only integers, and + - * / and sqrt on doubles, whose last bit IEEE 754
 * defines. The functions of the C library differ in their last bits from machine to machine.
 *
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_RANDOM_H
#define COX_EXAMPLES_LAB_RANDOM_H

#include <stdint.h>

/* 64 random bits. `stream` separates the uses of chance in one frame, device and launch. */
uint64_t lab_random_bits(uint64_t seed, uint32_t stream, uint64_t frame, uint32_t device,
                         uint32_t launch);

/* Uniform in (0, 1), without both ends. */
double lab_random_uniform(uint64_t bits);

/* The standard normal quantile of `u` in (0, 1). Relative error below 1.2e-9. Source: P. J. Acklam,
 * An algorithm for computing the inverse normal cumulative distribution function. */
double lab_random_normal(double u);

/* e to the power of x. Relative error below 1e-15. Beyond |x| = 700: the value at 700. */
double lab_exp(double x);

/* The natural logarithm of a positive, normal, finite x. Relative error below 1e-14 away from x =
 * 1, absolute 1e-16 near it. */
double lab_log(double x);

#endif
