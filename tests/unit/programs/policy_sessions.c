/* The policies to compare with in sessions of the library, as an application's own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "common/policies/registry.h"
#include "unit/engine/slow_device.h"

Test(compared_policies, run_in_sessions_and_follow_a_device_that_becomes_slow, .timeout = 300)
{
    for (uint32_t p = 0; program_policy_at(p); p++) {
        const struct cox_policy *policy = program_policy_at(p);
        if (cox_policy_find(policy->name))
            continue;
        check_slow_device(&(const struct cox__session_spec){.custom_policy = policy}, policy->name,
                          policy != &policy_inter_frame && policy != &policy_qilin && policy != &policy_ucb);
    }
}
