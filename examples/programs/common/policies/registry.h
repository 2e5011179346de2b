/* The policies that cox-lab and cox-bench offer: the library's, and those here, which exist only to
 * be compared with. These use the public headers alone, as an application's own policy does.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMPARED_REGISTRY_H
#define COMPARED_REGISTRY_H

#include <coxswain/sched.h>
#include <stddef.h>

/* The policies for comparison. The head of each file says how it divides the rows. Give one as
 * cox_session_params.custom_policy. */
extern const struct cox_policy policy_ewma;
extern const struct cox_policy policy_hguided;
extern const struct cox_policy policy_last_frame;
extern const struct cox_policy policy_mean10;
extern const struct cox_policy policy_inter_frame;
extern const struct cox_policy policy_qilin;
extern const struct cox_policy policy_fpm;
extern const struct cox_policy policy_kalman;
extern const struct cox_policy policy_ucb;

/* All policies in display order, the library's and those for comparison. The first is the default.
 * NULL for an index past the end. */
const struct cox_policy *program_policy_at(uint32_t index);

/* The names of all policies, separated by ", ", for messages. Returns `text`. */
const char *program_policy_names(char *text, size_t bytes);

/* NULL for an unknown name. */
const struct cox_policy *program_policy_find(const char *name);

#endif
