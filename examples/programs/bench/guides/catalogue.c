/* SPDX-License-Identifier: Apache-2.0 */
#include "catalogue.h"

const struct guides_experiment *guides_experiment_at(uint32_t index)
{
    static const struct guides_experiment *const tables[] = {guides_arithmetic, guides_neighbours,
                                                             guides_memory, guides_host};

    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct guides_experiment *experiment = tables[t]; experiment->key; experiment++)
            if (index-- == 0)
                return experiment;

    return NULL;
}
