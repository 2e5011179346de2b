/* SPDX-License-Identifier: Apache-2.0 */
#include "codes.h"
#include "sample_format.h"
#include "sources.h"
#include <math.h>
#include <stdio.h>

enum { CPU_WIDTH = COX__PLAN_VECTOR, GPU_COLUMNS = 8, GPU_LOCAL = 32 };

struct cox__levels cox__codes_levels(const struct cox_video_format *f)
{
    const double unit = exp2((double)f->depth - 8), most = exp2((double)f->depth) - 1;

    if (cox__video_is_packed_rgb(f) || f->range == COX_RANGE_FULL)
        return (struct cox__levels){0, most, 128 * unit, most, most};
    return (struct cox__levels){16 * unit, 219 * unit, 128 * unit, 224 * unit, most};
}

/* Whether the input has the primaries of the output, and its matrix if there is one. */
static bool same_colours(const struct cox_video_shape *s)
{
    const bool wide = s->out_primaries == COX_OUT_BT2020;
    const enum cox_primaries primaries = wide ? COX_PRIMARIES_BT2020 : COX_PRIMARIES_BT709;
    const enum cox_matrix matrix = wide ? COX_MATRIX_BT2020 : COX_MATRIX_BT709;

    return s->primaries == primaries &&
           (s->matrix == COX_MATRIX_AUTO || s->matrix == matrix || cox__video_is_rgb(&s->in));
}

bool cox__codes_kept(const struct cox_video_shape *s)
{
    const struct cox_video_format *in = &s->in, *out = &s->out;
    const bool same_places = in->chroma_x_log2 == out->chroma_x_log2 &&
                             in->chroma_y_log2 == out->chroma_y_log2 &&
                             (!in->chroma_x_log2 || in->chroma_location == out->chroma_location);

    return s->transfer == COX_TRANSFER_SDR && !s->lut_points &&
           s->encoding == COX_ENCODING_BT1886 && s->scale == COX_SCALE_NONE && same_colours(s) &&
           same_places && cox__video_is_rgb(in) == cox__video_is_rgb(out);
}

struct cox__codes cox__codes_of(const struct cox_video_shape *s)
{
    const struct cox__levels in = cox__codes_levels(&s->in), out = cox__codes_levels(&s->out);
    const double luma = out.luma / in.luma, chroma = out.chroma / in.chroma;
    struct cox__codes codes = {.width = (int32_t)s->width,
                               .height = (int32_t)s->height,
                               .luma_scale = (float)luma,
                               .luma_offset = (float)(out.black - in.black * luma),
                               .chroma_scale = (float)chroma,
                               .chroma_offset = (float)(out.grey - in.grey * chroma),
                               .most = (float)out.most};

    for (int i = 0; i < COX_VIDEO_PLANES_MAX; i++) {
        codes.in_pitch[i] = (int32_t)s->in_pitch_bytes[i];
        codes.out_pitch[i] = (int32_t)s->out_pitch_bytes[i];
    }
    return codes;
}

void cox__codes_stage(struct cox__plan *plan, const struct cox_video_shape *shape,
                      uint32_t in_planes, uint32_t planes, size_t params_offset)
{
    const struct cox_video_format *in = &shape->in, *out = &shape->out;
    const uint32_t s = cox__plan_add_stage(plan, "codes", shape->width, 0);
    struct cox__arg *args = plan->args[s];
    uint32_t count = 0;

    for (uint32_t i = 0; i < planes; i++)
        args[count++] = (struct cox__arg)COX__ARG_BUFFER(i);

    args[count++] = (struct cox__arg){COX__ARG_KIND_PARAMS, 0, params_offset,
                                      sizeof(struct cox__codes)};
    args[count++] = (struct cox__arg)COX__ARG_FIRST_ROW;
    args[count++] = (struct cox__arg)COX__ARG_ROWS;
    for (uint32_t i = 0; i < in_planes; i++)
        args[count++] = (struct cox__arg)COX__ARG_ORIGIN(i);
    plan->stages[s].arg_count = count;

    for (int gpu = 0; gpu < 2; gpu++) {
        const struct cox__variant on_cpu = {
            .type = COX_DEVICE_CPU, .local_columns = 1, .item_columns = shape->width};
        const struct cox__variant on_gpu = {.local_columns = GPU_LOCAL,
                                            .item_columns = GPU_COLUMNS};
        struct cox__variant *variant = &plan->variants[s][gpu];

        *variant = gpu ? on_gpu : on_cpu;
        variant->source = cox__source_video_codes;
        variant->options = plan->options[s][gpu];
        variant->local_rows = 1;
        variant->item_rows = 2;
        variant->any_local = true;
        snprintf(plan->options[s][gpu], COX__PLAN_OPTIONS,
                 "-w -DCOX_WIDTH=%d -DCOX_ITEM=%d -DCOX_DITHER=%d -DCOX_SUB_X=%u -DCOX_SUB_Y=%u "
                 "-DCOX_IN_LAYOUT=%d -DCOX_IN_BYTES=%u -DCOX_IN_SHIFT=%u "
                 "-DCOX_OUT_LAYOUT=%d -DCOX_OUT_BYTES=%u -DCOX_OUT_SHIFT=%u",
                 gpu ? 1 : CPU_WIDTH, gpu ? GPU_COLUMNS : 0, (int)shape->dither, in->chroma_x_log2,
                 in->chroma_y_log2, (int)in->layout, cox__video_sample_bytes(in),
                 cox__video_sample_shift(in), (int)out->layout, cox__video_sample_bytes(out),
                 cox__video_sample_shift(out));
    }
}
