/* Comparison of results.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SUITE_ERRORS_H
#define BENCH_SUITE_ERRORS_H

#include "problem.h"

/* The largest difference of two results, relative to the largest value of `right`. For memories
 * that have no floats, 1 if a byte differs. Infinite if a float is not a number. */
double suite_error(const struct suite_memory *memory, const void *result, const void *right);

#endif
