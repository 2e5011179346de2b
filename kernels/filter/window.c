/* Box and guided filter on the host's side.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"
#include "sources.h"
#include <math.h>
#include <stdio.h>

enum {
    BOX_RADIUS = 127,
    GUIDED_RADIUS = 63,
    COLUMN_ROWS = 32,
    RUN = 32, /* pixels of a work-item along a row */
};

struct box_params {
    int32_t width, height, in_pitch, mid_pitch, out_pitch, radius_x, radius_y;
};

struct guided_params {
    int32_t width, height, guide_pitch, in_pitch, out_pitch, sums_pitch, ab_pitch, sums_ab_pitch,
        radius_x, radius_y;
    int32_t stride, unused;
    uint64_t epsilon;
};

static cox_status read_shape(struct cox_filter_shape *to, const struct cox_filter_shape *from,
                             uint32_t most)
{
    const cox_status status = cox__plan_shape(to, from);
    if (status)
        return status;

    const size_t row_bytes = cox__plan_input_bytes(to);
    const bool good = to->radius_x <= most && to->radius_y <= most &&
                      to->form <= COX_FILTER_EXCHANGE && to->sample != COX_FILTER_FLOAT &&
                      cox__plan_pitch_ok(to->out_pitch_bytes, row_bytes) &&
                      (most == GUIDED_RADIUS || !to->guide_pitch_bytes);
    if (!good)
        return COX_E_INVALID;
    return COX_OK;
}

static void describe(char options[192], const struct cox_filter_shape *shape, int item, int run)
{
    snprintf(options, 192,
             "-DCOX_SAMPLE=%d -DCOX_CHANNELS=%u -DCOX_ITEM=%d -DCOX_RUN=%d -DCOX_ITEM_ROWS=%d "
             "-DCOX_SELF=%d",
             (int)shape->sample, shape->channels, item, run, (int)COLUMN_ROWS,
             !shape->guide_pitch_bytes);
}

/* A stage of running sums, along the rows or down the columns. */
static void add_stage(struct cox__plan *plan, const char *kernel, const char *source,
                      const struct cox_filter_shape *shape, const uint32_t *bindings,
                      uint32_t count, size_t params_bytes, bool down)
{
    char cpu_options[192], gpu_options[192];
    uint32_t columns = (shape->width + RUN - 1) / RUN * shape->channels, item_rows = 1;
    if (down) {
        columns = cox__plan_columns(shape);
        item_rows = COLUMN_ROWS;
    }

    describe(cpu_options, shape, 0, 0);
    describe(gpu_options, shape, 1, RUN);
    const struct cox__form cpu = {.vector = COX__PLAN_VECTOR,
                                  .item_columns = columns,
                                  .item_rows = item_rows,
                                  .options = cpu_options};
    const struct cox__form gpu = {.vector = 1,
                                  .local_columns = COX__PLAN_GROUP,
                                  .item_rows = item_rows,
                                  .options = gpu_options};
    cox__plan_stage(plan, kernel, source, columns, bindings, count, 0, params_bytes, &cpu, &gpu);
}

/* --- Box --- */

static size_t box_sums_pitch(const struct cox_filter_shape *shape)
{
    return cox__plan_scratch_pitch(4 * (size_t)cox__plan_columns(shape));
}

cox_status cox__window_box(const struct cox_filter_shape *given,
                           struct cox__pipeline_storage *storage, struct cox__session_spec *session)
{
    struct cox_filter_shape shape;
    const cox_status status = read_shape(&shape, given, BOX_RADIUS);
    if (status)
        return status;

    struct cox__plan *plan = cox__plan_begin(storage, session, shape.height);
    if (!plan)
        return COX_E_INVALID;

    const size_t params = sizeof(struct box_params);
    const uint32_t in = cox__plan_binding(plan, "input", COX__READ, shape.in_pitch_bytes,
                                          shape.height, false);
    const uint32_t out = cox__plan_binding(plan, "output", COX__WRITE, shape.out_pitch_bytes,
                                           shape.height, false);
    cox__plan_row_bytes(plan, in, cox__plan_input_bytes(&shape));
    cox__plan_row_bytes(plan, out, cox__plan_input_bytes(&shape));
    const uint32_t sums = cox__plan_sums(plan, &shape, "sums of rows", box_sums_pitch(&shape));

    cox__plan_first_step(plan, &shape, "box", "rows");
    cox__plan_first_reads(plan, &shape, in);
    cox__plan_first_writes(plan, &shape, sums);
    add_stage(plan, "box_rows", cox__source_filter_box, &shape, (const uint32_t[]){in, sums}, 2,
              params, false);

    cox__plan_second_step(plan, &shape, "columns", sums);
    cox__plan_use(plan, out, COX__ROWS, COX__WRITE, 0);
    add_stage(plan, "box_columns", cox__source_filter_box, &shape, (const uint32_t[]){sums, out}, 2,
              params, true);

    cox__plan_end(plan, sizeof(struct cox_constants), session);
    return COX_OK;
}

cox_status cox__window_box_prepare(const struct cox_filter_shape *given,
                                   struct cox_constants *params)
{
    struct cox_filter_shape shape;
    const cox_status status = read_shape(&shape, given, BOX_RADIUS);
    if (status)
        return status;
    if (!params)
        return COX_E_INVALID;

    const struct box_params p = {.width = (int32_t)shape.width,
                                 .height = (int32_t)shape.height,
                                 .in_pitch = (int32_t)shape.in_pitch_bytes,
                                 .mid_pitch = (int32_t)box_sums_pitch(&shape),
                                 .out_pitch = (int32_t)shape.out_pitch_bytes,
                                 .radius_x = (int32_t)shape.radius_x,
                                 .radius_y = (int32_t)shape.radius_y};

    cox__plan_params(params, &p, sizeof p);
    return COX_OK;
}

/* --- Guided filter --- */

/* Elements between the quantities of a row of scratch. */
static uint32_t stride_of(const struct cox_filter_shape *shape)
{
    return (cox__plan_columns(shape) + COX__PLAN_VECTOR - 1) / COX__PLAN_VECTOR * COX__PLAN_VECTOR;
}

/* Pitches: sums of I, p (int), I I, I p (long); a (int), b (long); sums of a, b (long). */
static size_t scratch_pitch(const struct cox_filter_shape *shape, size_t words)
{
    return cox__plan_scratch_pitch(4 * words * stride_of(shape));
}
enum { SUMS_WORDS = 6, AB_WORDS = 3, SUMS_AB_WORDS = 4 };

cox_status cox__window_guided(const struct cox_filter_shape *given,
                              struct cox__pipeline_storage *storage,
                              struct cox__session_spec *session)
{
    struct cox_filter_shape shape;
    const cox_status status = read_shape(&shape, given, GUIDED_RADIUS);
    if (status)
        return status;

    struct cox__plan *plan = cox__plan_begin(storage, session, shape.height);
    if (!plan)
        return COX_E_INVALID;

    const bool self = !shape.guide_pitch_bytes;
    const uint32_t rows = shape.height;
    const size_t bytes = sizeof(struct guided_params);
    const char *source = cox__source_filter_guided;

    const uint32_t in = cox__plan_binding(plan, "input", COX__READ, shape.in_pitch_bytes, rows,
                                          false);
    const uint32_t out = cox__plan_binding(plan, "output", COX__WRITE, shape.out_pitch_bytes, rows,
                                           false);
    cox__plan_row_bytes(plan, in, cox__plan_input_bytes(&shape));
    cox__plan_row_bytes(plan, out, cox__plan_input_bytes(&shape));
    const uint32_t guide = self ? in
                                : cox__plan_binding(plan, "guide", COX__READ,
                                                    shape.guide_pitch_bytes, rows, false);
    cox__plan_row_bytes(plan, guide, cox__plan_input_bytes(&shape));

    const uint32_t sums = cox__plan_sums(plan, &shape, "sums of rows",
                                         scratch_pitch(&shape, SUMS_WORDS));
    const uint32_t ab = cox__plan_binding(plan, "a and b", COX__WRITE,
                                          scratch_pitch(&shape, AB_WORDS), rows, true);
    const uint32_t sums_ab = cox__plan_binding(plan, "sums of a and b", COX__WRITE,
                                               scratch_pitch(&shape, SUMS_AB_WORDS), rows, true);

    cox__plan_first_step(plan, &shape, "fit", "rows");
    cox__plan_first_reads(plan, &shape, in);
    if (!self)
        cox__plan_first_reads(plan, &shape, guide);
    cox__plan_first_writes(plan, &shape, sums);
    add_stage(plan, "guided_rows", source, &shape, (const uint32_t[]){guide, in, sums}, 3, bytes,
              false);

    cox__plan_second_step(plan, &shape, "fit", sums);
    cox__plan_use(plan, ab, COX__ROWS, COX__WRITE, 0);
    cox__plan_use(plan, sums_ab, COX__ROWS, COX__WRITE, 0);
    add_stage(plan, "guided_fit", source, &shape, (const uint32_t[]){sums, ab}, 2, bytes, true);
    add_stage(plan, "guided_rows_ab", source, &shape, (const uint32_t[]){ab, sums_ab}, 2, bytes,
              false);

    cox__plan_pass(plan, "apply", rows);
    cox__plan_use(plan, guide, COX__ROWS, COX__READ, 0);
    cox__plan_use(plan, sums_ab, COX__HALO, COX__READ, shape.radius_y);
    cox__plan_use(plan, out, COX__ROWS, COX__WRITE, 0);
    add_stage(plan, "guided_apply", source, &shape, (const uint32_t[]){guide, sums_ab, out}, 3,
              bytes, true);

    cox__plan_end(plan, sizeof(struct cox_constants), session);
    return COX_OK;
}

cox_status cox_filter_guided_prepare(const struct cox_filter_shape *given, float epsilon,
                                     struct cox_constants *params)
{
    struct cox_filter_shape shape;
    const cox_status status = read_shape(&shape, given, GUIDED_RADIUS);
    if (status)
        return status;
    if (!params || !(epsilon >= 0.0f && epsilon <= 1.0f))
        return COX_E_INVALID;

    const double range = shape.sample == COX_FILTER_8 ? 255 : 65535;
    size_t guide_pitch = shape.guide_pitch_bytes;
    if (!guide_pitch) /* the input is its own guide */
        guide_pitch = shape.in_pitch_bytes;

    const struct guided_params p = {
        .width = (int32_t)shape.width,
        .height = (int32_t)shape.height,
        .guide_pitch = (int32_t)guide_pitch,
        .in_pitch = (int32_t)shape.in_pitch_bytes,
        .out_pitch = (int32_t)shape.out_pitch_bytes,
        .sums_pitch = (int32_t)scratch_pitch(&shape, SUMS_WORDS),
        .ab_pitch = (int32_t)scratch_pitch(&shape, AB_WORDS),
        .sums_ab_pitch = (int32_t)scratch_pitch(&shape, SUMS_AB_WORDS),
        .radius_x = (int32_t)shape.radius_x,
        .radius_y = (int32_t)shape.radius_y,
        .stride = (int32_t)stride_of(&shape),
        .epsilon = (uint64_t)fmax(floor((double)epsilon * range * range + 0.5), 1)};
    cox__plan_params(params, &p, sizeof p);
    return COX_OK;
}
