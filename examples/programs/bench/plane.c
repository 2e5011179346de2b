/* SPDX-License-Identifier: Apache-2.0 */
#include "plane.h"

void bench_plane_fill(float *samples, size_t count)
{
    for (size_t i = 0; i < count; i++)
        samples[i] = (float)((i * 2654435761u >> 16 & 1023) + 1) / 1024;
}

cox_status bench_blur_prepare(const struct cox_filter_shape *shape, struct cox_constants *params)
{
    float weights[64];

    for (uint32_t i = 0; i <= 2 * shape->radius_x; i++)
        weights[i] = 1.0f / (float)(2 * shape->radius_x + 1);
    const struct cox_filter_weights all = {.across = weights, .down = weights};

    return cox_filter_separable_prepare(shape, &all, params);
}
