/* The policies with which cox-bench split measures another one. Thread-safety: set the rows from
 * any thread; choose the blind policy before its session is created.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SPLIT_POLICIES_H
#define BENCH_SPLIT_POLICIES_H

#include <coxswain/coxswain.h>

/* Splits each frame over two devices as the caller says. */
extern const struct cox_policy split_sweep_policy;

/* Rows of the first device in the next frame of split_sweep_policy's session. */
void split_sweep_set(uint32_t rows);

/* Asks another policy, without warm-up times and with equal hints for all devices. */
extern const struct cox_policy split_blind_policy;

/* The policy that split_blind_policy asks. */
void split_blind_use(const struct cox_policy *policy);

#endif
