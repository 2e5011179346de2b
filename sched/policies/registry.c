/* The list of built-in policies, and the search by name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "policies.h"

#include <string.h>

static const struct cox_policy *const built_in[] = {
    &cox__policy_adaptive, /* first = the default */
    &cox__policy_chunks,
    &cox__policy_static,
    &cox__policy_single,
};

const struct cox_policy *cox_policy_at(uint32_t index)
{
    if (index >= sizeof built_in / sizeof built_in[0])
        return NULL;
    return built_in[index];
}

const struct cox_policy *cox_policy_find(const char *name)
{
    if (!name)
        return built_in[0];

    for (uint32_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++)
        if (strcmp(built_in[i]->name, name) == 0)
            return built_in[i];

    return NULL;
}
