/* The operator local on the host's side: geometry, bindings and passes of its base.
 * SPDX-License-Identifier: Apache-2.0 */
#include "local.h"
#include "sources.h"
#include <stdio.h>

enum {
    BLOCKS_MOST = 480, /* along the longer side */
    BLOCK_LOG2_MOST = 5,
    LANES = 16,    /* rows of floats are padded to a multiple of this */
    FIT_HALO = 15, /* rows that the first tent of base.cl reaches over */
    MEAN_HALO = 7, /* rows that the second one reaches over */
    /* quantities in a row of each scratch buffer */
    MOMENTS = 3,
    AB = 4,
    BASE = 2,
    WIDE = 2,
};

/* In stops^2: at this variance, half counts as detail and half as base. */
static const double epsilon = 1.0 / 32;

static uint32_t filled(uint32_t columns)
{
    return (columns + LANES - 1) / LANES * LANES;
}

struct cox__local cox__local_of(uint32_t width, uint32_t height, uint32_t column_log2)
{
    const uint32_t longer = width > height ? width : height;
    uint32_t log2 = column_log2;

    /* The smallest blocks of which not too many are needed. */
    while (log2 < BLOCK_LOG2_MOST && (longer - 1) >> log2 >= BLOCKS_MOST)
        log2++;

    const uint32_t columns = ((width - 1) >> log2) + 1, rows = ((height - 1) >> log2) + 1;
    const uint32_t stride = filled(columns), wide = filled(((width - 1) >> column_log2) + 1);

    return (struct cox__local){
        .width = (int32_t)columns,
        .height = (int32_t)rows,
        .block_log2 = (int32_t)log2,
        .column_log2 = (int32_t)column_log2,
        .stride = (int32_t)stride,
        .wide_stride = (int32_t)wide,
        .moments_pitch = (int32_t)cox__plan_scratch_pitch(MOMENTS * (size_t)stride * sizeof(float)),
        .ab_pitch = (int32_t)cox__plan_scratch_pitch(AB * (size_t)stride * sizeof(float)),
        .base_pitch = (int32_t)
            cox__plan_scratch_pitch((BASE * (size_t)stride + WIDE * (size_t)wide) * sizeof(float))};
}

bool cox__local_detail_ok(float detail)
{
    return detail == 0.0f || (detail >= 0.25f && detail <= 4.0f); /* a NaN fails */
}

void cox__local_settings(struct cox__local *local, const struct cox__curve *curve, float detail)
{
    local->epsilon2 = (float)(epsilon * epsilon);
    local->detail = 0.0f;
    if (detail != 0.0f)
        local->detail = detail - 1.0f;
    cox__curve_local(curve, &local->curve);
}

struct cox__local_scratch cox__local_bindings(struct cox__plan *plan,
                                              const struct cox__local *local)
{
    const uint32_t rows = (uint32_t)local->height;
    struct cox__local_scratch scratch;

    scratch.moments = cox__plan_binding(plan, "moments", COX__WRITE, (size_t)local->moments_pitch,
                                        rows, true);
    scratch.ab = cox__plan_binding(plan, "a and b", COX__WRITE, (size_t)local->ab_pitch, rows,
                                   true);
    scratch.base = cox__plan_binding(plan, "base", COX__WRITE, (size_t)local->base_pitch, rows,
                                     true);

    return scratch;
}

/* On a CPU a work-item takes a whole row. */
static void add_stage(struct cox__plan *plan, const char *kernel, const struct cox__local *local,
                      uint32_t columns, uint32_t item_rows, const uint32_t *bindings,
                      uint32_t count, size_t params_offset)
{
    static const char common[] = "-DCOX_SAMPLE=0 -DCOX_CHANNELS=1 -DCOX_EDGE=0";
    char options[2][80];

    snprintf(options[0], sizeof options[0], "%s -DCOX_ITEM=0", common);
    snprintf(options[1], sizeof options[1], "%s -DCOX_ITEM=1", common);

    const struct cox__form cpu = {.vector = COX__PLAN_VECTOR,
                                  .item_columns = columns,
                                  .item_rows = item_rows,
                                  .options = options[0]};
    const struct cox__form gpu = {.vector = 1,
                                  .local_columns = COX__PLAN_GROUP,
                                  .item_rows = item_rows,
                                  .options = options[1]};

    cox__plan_stage(plan, kernel, cox__source_tonemap_base, columns, bindings, count, params_offset,
                    sizeof *local, &cpu, &gpu);
}

void cox__local_passes(struct cox__plan *plan, const struct cox__local *local,
                       struct cox__local_scratch scratch, size_t params_offset)
{
    const uint32_t columns = (uint32_t)local->width, rows = (uint32_t)local->height;

    add_stage(plan, "base_rows", local, columns, 1u << local->block_log2, &scratch.moments, 1,
              params_offset);

    cox__plan_pass(plan, "fit", rows);
    cox__plan_use(plan, scratch.moments, COX__HALO, COX__READ, FIT_HALO);
    cox__plan_use(plan, scratch.ab, COX__ROWS, COX__WRITE, 0);
    add_stage(plan, "base_fit", local, columns, 1, (const uint32_t[]){scratch.moments, scratch.ab},
              2, params_offset);
    add_stage(plan, "base_rows_ab", local, columns, 1, &scratch.ab, 1, params_offset);

    cox__plan_pass(plan, "base", rows);
    cox__plan_use(plan, scratch.ab, COX__HALO, COX__READ, MEAN_HALO);
    cox__plan_use(plan, scratch.base, COX__ROWS, COX__WRITE, 0);
    add_stage(plan, "base_columns", local, columns, 1, (const uint32_t[]){scratch.ab, scratch.base},
              2, params_offset);
    add_stage(plan, "base_widen", local, columns + 1, 1, &scratch.base, 1, params_offset);
}
