/* Reference results that several experiments compare with.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GUIDES_REFERENCE_H
#define BENCH_GUIDES_REFERENCE_H

#include "experiment.h"

/* `adds` multiply-adds on each input pixel, as ceilings.cl does them. Returns the pixel count. */
static inline size_t guides_expect_adds(const struct guides_device *device, float *expected,
                                        uint32_t adds)
{
    for (size_t i = 0; i < device->pixels; i++) {
        float v = device->input[i];
        for (uint32_t n = 0; n < adds; n++)
            v = v * 0.999f + 0.001f;
        expected[i] = v;
    }

    return device->pixels;
}

#endif
