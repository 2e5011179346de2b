/* Scaling on the host's side: the axes' constants, the stages and their scratch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scale.h"
#include "sample_format.h"
#include "sources.h"
#include <math.h>
#include <stdio.h>

enum { MOST = 8, CPU_WIDTH = COX__PLAN_VECTOR, GPU_COLUMNS = 4, GPU_LOCAL = 64, BLOCK = CPU_WIDTH };

bool cox__scale_ok(uint32_t from, uint32_t to)
{
    return to > 0 && to <= 65536 && (uint64_t)to * MOST >= from && (uint64_t)from * MOST >= to;
}

/* One axis of a plane that is subsampled by 2^log2. `half_way`: its samples lie midway between two
 * samples of the frame. */
static struct cox__scale_axis axis_of(uint32_t from, uint32_t to, uint32_t log2, bool half_way)
{
    const double stretch = fmax(1, (double)from / ((double)to * (1 << log2)));
    const uint32_t den = 2 * to << log2;

    return (struct cox__scale_axis){.num = (int32_t)(2 * from),
                                    .offset = (int32_t)from - (int32_t)(to << (log2 && half_way)),
                                    .den = (int32_t)den,
                                    .samples = (int32_t)((from + log2) >> log2),
                                    .reach = (int32_t)ceil(2 * stretch),
                                    .inv_den = (float)(1.0 / den),
                                    .inv_stretch = (float)(1 / stretch)};
}

struct cox__scale cox__scale_of(const struct cox_video_shape *shape,
                                const struct cox_video_plane *planes, uint32_t count)
{
    const struct cox_video_format *in = &shape->in;
    struct cox__scale s = {.width = (int32_t)shape->out_width,
                           .unit = (float)exp2(16 - (double)in->depth)};

    for (uint32_t i = 0; i < count; i++) {
        s.in_pitch[i] = (int32_t)shape->in_pitch_bytes[i];
        if (in->layout == COX_VIDEO_V210)
            s.columns[i] = (int32_t)((shape->width + 1) / 2 * 4);
        else
            s.columns[i] = (int32_t)(planes[i].row_bytes / planes[i].sample_bytes);
        s.begin[i] = s.samples;
        s.samples += s.columns[i];
    }

    s.samples = (s.samples + CPU_WIDTH - 1) / CPU_WIDTH * CPU_WIDTH;
    s.result_pitch = (int32_t)cox__plan_scratch_pitch((size_t)shape->out_width * 2);

    s.down[0] = axis_of(shape->height, shape->out_height, 0, false);
    s.down[1] = axis_of(shape->height, shape->out_height, in->chroma_y_log2,
                        in->chroma_location != COX_CHROMA_TOP_LEFT);
    s.along[0] = axis_of(shape->width, shape->out_width, 0, false);
    s.along[1] = axis_of(shape->width, shape->out_width, in->chroma_x_log2,
                         in->chroma_location == COX_CHROMA_CENTER);

    return s;
}

struct cox_video_shape cox__scale_result(const struct cox_video_shape *shape)
{
    struct cox_video_shape result = *shape;

    result.scale = COX_SCALE_NONE;
    result.width = shape->out_width;
    result.height = shape->out_height;
    result.out_width = result.out_height = 0;

    result.in = (struct cox_video_format){
        .layout = COX_VIDEO_PLANAR, .depth = 16, .range = shape->in.range};
    if (cox__video_is_rgb(&shape->in))
        result.in.layout = COX_VIDEO_GBR;
    for (int i = 0; i < COX_VIDEO_PLANES_MAX; i++)
        result.in_pitch_bytes[i] = cox__plan_scratch_pitch((size_t)shape->out_width * 2);

    return result;
}

/* Scratch of which each band has its own, and no rows beyond it. */
static uint32_t add_scratch(struct cox__plan *plan, const char *name, size_t pitch_bytes,
                            uint32_t rows)
{
    const uint32_t b = cox__plan_binding(plan, name, COX__READ_WRITE, pitch_bytes, rows, true);
    plan->bindings[b].row_access = COX__HALO;
    return b;
}

static void add_stage(struct cox__plan *plan, const char *kernel, const struct cox_video_format *in,
                      uint32_t columns, const uint32_t *bindings, uint32_t count,
                      size_t params_offset)
{
    char options[2][80];
    const int bytes = in->depth > 8 ? 2 : 1;
    const unsigned shift = in->msb_aligned ? 16 - in->depth : 0;

    for (int gpu = 0; gpu < 2; gpu++)
        snprintf(options[gpu], sizeof options[gpu],
                 "-DCOX_COLUMNS=%d -DCOX_IN_LAYOUT=%d -DCOX_IN_BYTES=%d -DCOX_IN_SHIFT=%u",
                 gpu ? GPU_COLUMNS : 0, (int)in->layout, bytes, shift);

    const struct cox__form cpu = {.vector = CPU_WIDTH,
                                  .item_columns = columns,
                                  .item_rows = CPU_WIDTH,
                                  .options = options[0]};
    const struct cox__form gpu = {.vector = 1,
                                  .local_columns = GPU_LOCAL,
                                  .item_columns = GPU_COLUMNS,
                                  .options = options[1]};

    cox__plan_stage(plan, kernel, cox__source_video_scale, columns, bindings, count, params_offset,
                    sizeof(struct cox__scale), &cpu, &gpu);
}

void cox__scale_stages(struct cox__plan *plan, const struct cox_video_shape *shape,
                       const struct cox_video_plane *planes, uint32_t count, size_t params_offset,
                       uint32_t result[3])
{
    static const char *const names[] = {"scaled", "scaled Cb", "scaled Cr"};
    const struct cox__scale scale = cox__scale_of(shape, planes, count);

    const uint32_t intermediate = add_scratch(plan, "intermediate",
                                              (size_t)scale.samples * BLOCK * sizeof(float),
                                              (shape->out_height + BLOCK - 1) / BLOCK);
    plan->bindings[intermediate].row_divisor = BLOCK;

    for (int i = 0; i < 3; i++)
        result[i] = add_scratch(plan, names[i], (size_t)scale.result_pitch, shape->out_height);

    uint32_t down[COX_VIDEO_PLANES_MAX + 1];
    for (uint32_t i = 0; i < count; i++)
        down[i] = i;
    down[count] = intermediate;
    add_stage(plan, "scale_down", &shape->in, (uint32_t)scale.samples, down, count + 1,
              params_offset);

    const uint32_t along[] = {intermediate, result[0], result[1], result[2]};
    add_stage(plan, "scale_along", &shape->in, shape->out_width, along, 4, params_offset);
}
