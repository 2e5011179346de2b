/* The built-in policies, each defined in the file of its name; `adaptive` in
 * sched/adaptive/adaptive.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_POLICIES_POLICIES_H
#define COX_POLICIES_POLICIES_H

#include <coxswain/sched.h>

extern const struct cox_policy cox__policy_adaptive;
extern const struct cox_policy cox__policy_chunks;
extern const struct cox_policy cox__policy_static;
extern const struct cox_policy cox__policy_single;

#endif
