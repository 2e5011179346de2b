/* Chooses the core to reserve: by kind, then by the number of GPUs near it, then the last one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cores.h"

#include <stdio.h>

size_t cox__cores_choose(const struct cox__core *cores, size_t count, char *why, size_t why_bytes)
{
    /* If one core's kind is unknown, the ranks of the others say nothing: that core might be the
     * least powerful one. */
    bool kinds_known = true;
    int least = cores[0].kind, most = cores[0].kind;

    for (size_t i = 0; i < count; i++) {
        kinds_known = kinds_known && cores[i].kind >= 0;
        if (cores[i].kind < least)
            least = cores[i].kind;
        if (cores[i].kind > most)
            most = cores[i].kind;
    }
    bool by_kind = kinds_known && least < most;

    size_t best = count;
    uint32_t farthest = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        if (by_kind && cores[i].kind != least)
            continue;

        if (best == count || cores[i].near_gpus >= cores[best].near_gpus)
            best = i;
        if (cores[i].near_gpus < farthest)
            farthest = cores[i].near_gpus;
    }
    bool by_gpu = cores[best].near_gpus > farthest;

    const char *core = "the last core";
    if (by_kind)
        core = "an efficiency core";
    const char *near = "";
    if (by_gpu)
        near = " near the GPU";
    snprintf(why, why_bytes, "%s%s", core, near);
    return best;
}
