/* The list of policies, and the search by name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/registry.h"

#include <stdio.h>
#include <string.h>

/* In display order; NULL = the library's next policy. Further ones of the library come last. */
static const struct cox_policy *const order[] = {
    NULL,           &policy_ewma,   NULL,        &policy_hguided,     &policy_last_frame,
    &policy_mean10, NULL,           NULL,        &policy_inter_frame, &policy_qilin,
    &policy_fpm,    &policy_kalman, &policy_ucb,
};

const struct cox_policy *program_policy_at(uint32_t index)
{
    const uint32_t count = sizeof order / sizeof order[0];
    uint32_t own = 0; /* of these programs, before the index */

    if (index < count && order[index])
        return order[index];

    for (uint32_t i = 0; i < index && i < count; i++)
        own += order[i] != NULL;
    return cox_policy_at(index - own);
}

const struct cox_policy *program_policy_find(const char *name)
{
    const struct cox_policy *policy;

    for (uint32_t i = 0; (policy = program_policy_at(i)); i++)
        if (strcmp(policy->name, name) == 0)
            return policy;

    return NULL;
}

const char *program_policy_names(char *text, size_t bytes)
{
    const struct cox_policy *policy;
    size_t used = 0;

    for (uint32_t i = 0; (policy = program_policy_at(i)) && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", policy->name);
    return text;
}
