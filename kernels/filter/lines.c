/* Transposition and prefix sums on the host's side.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"
#include "sources.h"
#include <stdio.h>

enum { TILE = 32 };

/* struct transpose_params of transpose.cl and struct scan_params of scan.cl. */
struct params {
    int32_t width, height; /* of the input */
    int32_t in_pitch, out_pitch;
};

/* --- Transposition --- */

/* Pixels of 4 or 16 bytes, with pitches that allow whole reads of those of 16. */
static bool transpose_fits(const struct cox_filter_shape *shape)
{
    return shape->sample == COX_FILTER_FLOAT &&
           (shape->channels == 1 || (shape->channels == 4 && shape->in_pitch_bytes % 16 == 0 &&
                                     shape->out_pitch_bytes % 16 == 0));
}

static cox_status read_transposition(struct cox_filter_shape *to,
                                     const struct cox_filter_shape *from)
{
    const cox_status status = cox__plan_shape(to, from);
    if (status)
        return status;

    const bool good = transpose_fits(to) && !to->guide_pitch_bytes && !to->radius_x &&
                      !to->radius_y &&
                      cox__plan_pitch_ok(to->out_pitch_bytes,
                                         (size_t)4 * to->height * to->channels);
    if (!good)
        return COX_E_INVALID;
    return COX_OK;
}

cox_status cox__lines_transposition(const struct cox_filter_shape *given,
                                    struct cox__pipeline_storage *storage,
                                    struct cox__session_spec *session)
{
    struct cox_filter_shape shape;
    const cox_status status = read_transposition(&shape, given);
    if (status)
        return status;

    struct cox__plan *plan = cox__plan_begin(storage, session, shape.width);
    if (!plan)
        return COX_E_INVALID;

    const uint32_t group_rows = shape.group / TILE;
    char options[96];
    snprintf(options, sizeof options, "-DCOX_PIXEL_BYTES=%u -DCOX_TILE=%d -DCOX_GROUP_ROWS=%u",
             4 * shape.channels, (int)TILE, group_rows);
    const struct cox__form form = {.vector = 1,
                                   .local_columns = TILE,
                                   .local_rows = group_rows,
                                   .item_rows = TILE / group_rows,
                                   .options = options};

    const uint32_t in = cox__plan_binding(plan, "input", COX__READ, shape.in_pitch_bytes,
                                          shape.height, false);
    const uint32_t out = cox__plan_binding(plan, "output", COX__WRITE, shape.out_pitch_bytes,
                                           shape.width, false);
    cox__plan_row_bytes(plan, in, cox__plan_input_bytes(&shape));
    cox__plan_row_bytes(plan, out, (size_t)4 * shape.height * shape.channels);

    cox__plan_pass(plan, "transpose", shape.width);
    cox__plan_use(plan, in, COX__WHOLE, COX__READ, 0);
    cox__plan_use(plan, out, COX__ROWS, COX__WRITE, 0);
    cox__plan_stage(plan, "transpose", cox__source_filter_transpose, shape.height,
                    (uint32_t[]){in, out}, 2, 0, sizeof(struct params), &form, &form);

    cox__plan_end(plan, sizeof(struct cox_constants), session);
    return COX_OK;
}

static cox_status put_params(const struct cox_filter_shape *shape, struct cox_constants *params)
{
    const struct params p = {(int32_t)shape->width, (int32_t)shape->height,
                             (int32_t)shape->in_pitch_bytes, (int32_t)shape->out_pitch_bytes};

    if (!params)
        return COX_E_INVALID;
    cox__plan_params(params, &p, sizeof p);
    return COX_OK;
}

cox_status cox__lines_transposition_prepare(const struct cox_filter_shape *given,
                                            struct cox_constants *params)
{
    struct cox_filter_shape shape;
    const cox_status status = read_transposition(&shape, given);
    if (status)
        return status;
    return put_params(&shape, params);
}

/* --- Prefix sums --- */

static cox_status read_prefix_sums(struct cox_filter_shape *to, const struct cox_filter_shape *from)
{
    const cox_status status = cox__plan_shape(to, from);
    if (status)
        return status;

    const bool good = to->sample != COX_FILTER_FLOAT && to->channels == 1 &&
                      !to->guide_pitch_bytes && !to->radius_x && !to->radius_y &&
                      cox__plan_pitch_ok(to->out_pitch_bytes, (size_t)4 * to->width);
    if (!good)
        return COX_E_INVALID;
    return COX_OK;
}

cox_status cox__lines_prefix_sums(const struct cox_filter_shape *given,
                                  struct cox__pipeline_storage *storage,
                                  struct cox__session_spec *session)
{
    struct cox_filter_shape shape;
    const cox_status status = read_prefix_sums(&shape, given);
    if (status)
        return status;

    struct cox__plan *plan = cox__plan_begin(storage, session, shape.height);
    if (!plan)
        return COX_E_INVALID;

    char options[96];
    snprintf(options, sizeof options, "-DCOX_SAMPLE_BYTES=%u -DCOX_GROUP=%u",
             (unsigned)cox__plan_sample_bytes(&shape), shape.group);
    const struct cox__form form = {.vector = 1, .local_columns = shape.group, .options = options};

    const uint32_t in = cox__plan_binding(plan, "input", COX__READ, shape.in_pitch_bytes,
                                          shape.height, false);
    const uint32_t out = cox__plan_binding(plan, "output", COX__WRITE, shape.out_pitch_bytes,
                                           shape.height, false);
    cox__plan_row_bytes(plan, in, cox__plan_input_bytes(&shape));
    cox__plan_row_bytes(plan, out, (size_t)4 * shape.width);

    cox__plan_pass(plan, "prefix sums", shape.height);
    cox__plan_use(plan, in, COX__ROWS, COX__READ, 0);
    cox__plan_use(plan, out, COX__ROWS, COX__WRITE, 0);
    cox__plan_stage(plan, "prefix_sums", cox__source_filter_scan, shape.group,
                    (uint32_t[]){in, out}, 2, 0, sizeof(struct params), &form, &form);

    cox__plan_end(plan, sizeof(struct cox_constants), session);
    return COX_OK;
}

cox_status cox__lines_prefix_sums_prepare(const struct cox_filter_shape *given,
                                          struct cox_constants *params)
{
    struct cox_filter_shape shape;
    const cox_status status = read_prefix_sums(&shape, given);
    if (status)
        return status;
    return put_params(&shape, params);
}
