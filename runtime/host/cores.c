/* Which core to reserve: by kind, then by the nearness of GPUs, then the last one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cores.h"

#include <stdio.h>

size_t cox__cores_choose(const struct cox__core *cores, size_t count, char *why, size_t why_bytes)
{
    /* With one core of unknown kind the ranks of the others say nothing: that core might be the least powerful one. */
    bool kinds_known = true;
    int least = cores[0].kind, most = cores[0].kind;
    for (size_t i = 0; i < count; i++) {
        kinds_known = kinds_known && cores[i].kind >= 0;
        least = cores[i].kind < least ? cores[i].kind : least;
        most = cores[i].kind > most ? cores[i].kind : most;
    }
    bool by_kind = kinds_known && least < most;

    size_t best = count;
    uint32_t farthest = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        if (by_kind && cores[i].kind != least)
            continue;
        if (best == count || cores[i].near_gpus >= cores[best].near_gpus)
            best = i;
        farthest = cores[i].near_gpus < farthest ? cores[i].near_gpus : farthest;
    }
    bool by_gpu = cores[best].near_gpus > farthest;

    if (by_kind)
        snprintf(why, why_bytes, "an efficiency core%s", by_gpu ? " near the GPU" : "");
    else
        snprintf(why, why_bytes, "%s", by_gpu ? "the last core near the GPU" : "the last core");
    return best;
}
