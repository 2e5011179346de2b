/* Convolutions on the host's side: passes, weights.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"
#include "sources.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    SEPARABLE_RADIUS = 31,
    CONVOLVE_RADIUS = 7,
    COLUMN_ROWS = 4, /* of a work-item */
    SHIFT_MAX = 28,
};

/* A weight as the kernels have it: the bits of a float, or an integer. */
struct separable_params {
    int32_t width, height, in_pitch, mid_pitch, out_pitch, shift;
    int32_t across[2 * SEPARABLE_RADIUS + 1], down[2 * SEPARABLE_RADIUS + 1];
};

struct convolve_params {
    int32_t width, height, in_pitch, out_pitch, shift;
    int32_t weights[(2 * CONVOLVE_RADIUS + 1) * (2 * CONVOLVE_RADIUS + 1)];
};
_Static_assert(sizeof(struct separable_params) <= sizeof(struct cox_constants),
               "fits in the public block");
_Static_assert(sizeof(struct convolve_params) <= sizeof(struct cox_constants),
               "fits in the public block");

static cox_status read_shape(struct cox_filter_shape *to, const struct cox_filter_shape *from,
                             uint32_t most)
{
    const cox_status status = cox__plan_shape(to, from);
    if (status)
        return status;

    const size_t row_bytes = cox__plan_input_bytes(to);
    const bool good = to->radius_x <= most && to->radius_y <= most &&
                      to->form <= COX_FILTER_EXCHANGE && !to->guide_pitch_bytes &&
                      cox__plan_pitch_ok(to->out_pitch_bytes, row_bytes);
    if (!good)
        return COX_E_INVALID;
    return COX_OK;
}

static void describe(char options[192], const struct cox_filter_shape *shape, int item,
                     int item_rows)
{
    snprintf(options, 192,
             "-DCOX_SAMPLE=%d -DCOX_CHANNELS=%u -DCOX_EDGE=%d -DCOX_ACROSS=%u -DCOX_DOWN=%u "
             "-DCOX_ITEM=%d -DCOX_ITEM_ROWS=%d",
             (int)shape->sample, shape->channels, (int)shape->edge, 2 * shape->radius_x + 1,
             2 * shape->radius_y + 1, item, item_rows);
}

static void add_stage(struct cox__plan *plan, const char *kernel, const char *source,
                      const struct cox_filter_shape *shape, uint32_t from, uint32_t to,
                      size_t params_bytes, uint32_t item_rows)
{
    char cpu_options[192], gpu_options[192];
    const uint32_t columns = cox__plan_columns(shape);

    describe(cpu_options, shape, 0, (int)item_rows);
    describe(gpu_options, shape, 1, (int)item_rows);
    const struct cox__form cpu = {.vector = COX__PLAN_VECTOR,
                                  .item_columns = columns,
                                  .item_rows = item_rows,
                                  .options = cpu_options};
    const struct cox__form gpu = {.vector = 1,
                                  .local_columns = COX__PLAN_GROUP,
                                  .item_rows = item_rows,
                                  .options = gpu_options};

    cox__plan_stage(plan, kernel, source, columns, (const uint32_t[]){from, to}, 2, 0, params_bytes,
                    &cpu, &gpu);
}

/* A sum is a float or a 32-bit integer. */
static size_t sums_pitch(const struct cox_filter_shape *shape)
{
    return cox__plan_scratch_pitch(4 * (size_t)cox__plan_columns(shape));
}

cox_status cox__convolution_separable(const struct cox_filter_shape *given,
                                      struct cox__pipeline_storage *storage,
                                      struct cox__session_spec *session)
{
    struct cox_filter_shape shape;
    const cox_status status = read_shape(&shape, given, SEPARABLE_RADIUS);
    if (status)
        return status;

    struct cox__plan *plan = cox__plan_begin(storage, session, shape.height);
    if (!plan)
        return COX_E_INVALID;

    const size_t params = sizeof(struct separable_params);
    const uint32_t in = cox__plan_binding(plan, "input", COX__READ, shape.in_pitch_bytes,
                                          shape.height, false);
    const uint32_t out = cox__plan_binding(plan, "output", COX__WRITE, shape.out_pitch_bytes,
                                           shape.height, false);
    cox__plan_row_bytes(plan, in, cox__plan_input_bytes(&shape));
    cox__plan_row_bytes(plan, out, cox__plan_input_bytes(&shape));
    const uint32_t sums = cox__plan_sums(plan, &shape, "sums of rows", sums_pitch(&shape));

    cox__plan_first_step(plan, &shape, "separable", "rows");
    cox__plan_first_reads(plan, &shape, in);
    cox__plan_first_writes(plan, &shape, sums);
    add_stage(plan, "separable_rows", cox__source_filter_separable, &shape, in, sums, params, 1);

    cox__plan_second_step(plan, &shape, "columns", sums);
    cox__plan_use(plan, out, COX__ROWS, COX__WRITE, 0);
    add_stage(plan, "separable_columns", cox__source_filter_separable, &shape, sums, out, params,
              COLUMN_ROWS);

    cox__plan_end(plan, sizeof(struct cox_constants), session);
    return COX_OK;
}

cox_status cox__convolution_full(const struct cox_filter_shape *given,
                                 struct cox__pipeline_storage *storage,
                                 struct cox__session_spec *session)
{
    struct cox_filter_shape shape;
    const cox_status status = read_shape(&shape, given, CONVOLVE_RADIUS);
    if (status)
        return status;

    struct cox__plan *plan = cox__plan_begin(storage, session, shape.height);
    if (!plan)
        return COX_E_INVALID;

    const uint32_t in = cox__plan_binding(plan, "input", COX__READ, shape.in_pitch_bytes,
                                          shape.height, false);
    const uint32_t out = cox__plan_binding(plan, "output", COX__WRITE, shape.out_pitch_bytes,
                                           shape.height, false);
    cox__plan_row_bytes(plan, in, cox__plan_input_bytes(&shape));
    cox__plan_row_bytes(plan, out, cox__plan_input_bytes(&shape));

    cox__plan_pass(plan, "convolution", shape.height);
    cox__plan_use(plan, in, COX__HALO, COX__READ, shape.radius_y);
    cox__plan_use(plan, out, COX__ROWS, COX__WRITE, 0);
    add_stage(plan, "convolve", cox__source_filter_convolve, &shape, in, out,
              sizeof(struct convolve_params), 1);

    cox__plan_end(plan, sizeof(struct cox_constants), session);
    return COX_OK;
}

/* --- Weights --- */

/* The most that the weights' absolute values may add up to: `for_8_bits`, or 2^14 for others. */
static uint32_t most_sum(const struct cox_filter_shape *shape, uint32_t for_8_bits)
{
    if (shape->sample == COX_FILTER_8)
        return for_8_bits;
    return 1u << 14;
}

/* Copy the weights that fit the sample type. False: there are none, or they are too large. */
static bool copy_weights(int32_t *to, const struct cox_filter_shape *shape, const float *floats,
                         const int32_t *ints, uint32_t count, uint32_t most)
{
    const bool is_float = shape->sample == COX_FILTER_FLOAT;
    uint64_t sum = 0;

    if ((is_float && !floats) || (!is_float && !ints))
        return false;

    for (uint32_t i = 0; i < count; i++) {
        if (is_float) {
            float weight = floats[i];
            if (fabsf(weight) < 0x1p-40f)
                weight = 0.0f;
            if (!(fabsf(weight) <= 0x1p20f))
                return false;
            memcpy(&to[i], &weight, sizeof weight);
        } else {
            uint64_t size = (uint64_t)ints[i];
            if (ints[i] < 0)
                size = -size;
            sum += size;
            to[i] = ints[i];
        }
    }

    return sum <= most;
}

/* Check and copy the input from which both filters are prepared. */
static cox_status read_both(struct cox_filter_shape *shape,
                            const struct cox_filter_shape *given_shape, uint32_t most_radius,
                            struct cox_filter_weights *weights,
                            const struct cox_filter_weights *given)
{
    const cox_status status = read_shape(shape, given_shape, most_radius);
    if (status)
        return status;

    if (!given || given->shift > SHIFT_MAX)
        return COX_E_INVALID;
    *weights = *given;

    return COX_OK;
}

cox_status cox_filter_separable_prepare(const struct cox_filter_shape *given_shape,
                                        const struct cox_filter_weights *given,
                                        struct cox_constants *params)
{
    struct cox_filter_shape shape;
    struct cox_filter_weights weights;
    const cox_status status = read_both(&shape, given_shape, SEPARABLE_RADIUS, &weights, given);
    if (status)
        return status;
    if (!params)
        return COX_E_INVALID;

    struct separable_params p = {.width = (int32_t)shape.width,
                                 .height = (int32_t)shape.height,
                                 .in_pitch = (int32_t)shape.in_pitch_bytes,
                                 .mid_pitch = (int32_t)sums_pitch(&shape),
                                 .out_pitch = (int32_t)shape.out_pitch_bytes,
                                 .shift = (int32_t)weights.shift};
    const uint32_t most = most_sum(&shape, 1u << 11);

    if (!copy_weights(p.across, &shape, weights.across, weights.across_int, 2 * shape.radius_x + 1,
                      most) ||
        !copy_weights(p.down, &shape, weights.down, weights.down_int, 2 * shape.radius_y + 1, most))
        return COX_E_INVALID;

    cox__plan_params(params, &p, sizeof p);
    return COX_OK;
}

cox_status cox_filter_convolution_prepare(const struct cox_filter_shape *given_shape,
                                          const struct cox_filter_weights *given,
                                          struct cox_constants *params)
{
    struct cox_filter_shape shape;
    struct cox_filter_weights weights;
    const cox_status status = read_both(&shape, given_shape, CONVOLVE_RADIUS, &weights, given);
    if (status)
        return status;
    if (!params)
        return COX_E_INVALID;

    struct convolve_params p = {.width = (int32_t)shape.width,
                                .height = (int32_t)shape.height,
                                .in_pitch = (int32_t)shape.in_pitch_bytes,
                                .out_pitch = (int32_t)shape.out_pitch_bytes,
                                .shift = (int32_t)weights.shift};

    if (!copy_weights(p.weights, &shape, weights.across, weights.across_int,
                      (2 * shape.radius_x + 1) * (2 * shape.radius_y + 1),
                      most_sum(&shape, 1u << 22)))
        return COX_E_INVALID;

    cox__plan_params(params, &p, sizeof p);
    return COX_OK;
}
