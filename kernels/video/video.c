/* The video tone mapper's host side: planes, pipelines, constants.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#include "codes.h"
#include "sources.h"
#include "reshape.h"
#include "sample_format.h"
#include "scale.h"
#include "scene.h"
#include "tonemap/local.h"
#include <coxswain/video.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The kernel's parameter block; struct video_params of frame.cl. */
struct video_params {
    int32_t width, height;
    int32_t picture_top, picture_bottom;
    int32_t chroma_width, chroma_height;
    int32_t in_pitch[3], out_pitch[3];
    float luma_scale;
    float red_v, green_u, green_v, blue_u;
    float red_0, green_0, blue_0;
    float matrix[9];
    float hlg_y[3], hlg_exponent;
    float a0, a1, a2, b0, b1, b2, knee;
    float fade, fade_speed;
    float gamut_knee, gamut_square, gamut_rest;
    float hue_reach, hue_rest, hue_inside;
    struct cox__bt2390 bt2390;
    struct cox__joined joined;
    float out_luma_scale, out_luma_0;
    float out_cb_scale, out_cr_scale, out_chroma_0;
    float out_max, out_light;
    union {
        struct cox__local surround; /* of COX_OPERATOR_LOCAL alone */
        struct cox__scale scale;    /* of COX_SCALE_FILTER alone, for the stages before */
        struct cox__codes codes;    /* of frames that keep their codes */
    };
};

enum { PARAMS_BYTES = 512 }; /* of a frame's constants, copied for each frame */

_Static_assert(sizeof(struct video_params) <= PARAMS_BYTES, "fits in the constants");
_Static_assert(PARAMS_BYTES <= sizeof(struct cox_constants), "fits in the constants");

/* Contents of `struct cox__pipeline_storage`. */
_Static_assert(sizeof(struct cox__plan) <= sizeof(struct cox__pipeline_storage), "fits");

enum {
    SIZE_MAX_PIXELS = 65536,
    CPU_WIDTH = 16,
    GPU_COLUMNS = 8, /* of a work-item */
    GPU_LOCAL = 32,
    COLUMN_LOG2 = 1,   /* pixels in pairs share a column of the base of the operator local */
    ANALYSE_ROWS = 16, /* of a work-item that counts, so that it sets up each table only once */
};

/* --- Shapes --- */

static bool format_ok(const struct cox_video_format *f)
{
    if (!f || (unsigned)f->range > COX_RANGE_FULL ||
        (unsigned)f->chroma_location > COX_CHROMA_TOP_LEFT || f->depth < 8 || f->depth > 16 ||
        (f->msb_aligned && (f->depth == 8 || f->depth == 16)))
        return false;

    const bool subsampled_x = f->chroma_x_log2 == 1, subsampled_y = f->chroma_y_log2 == 1;
    if (f->chroma_x_log2 > 1 || f->chroma_y_log2 > 1 || (subsampled_y && !subsampled_x))
        return false;

    switch (f->layout) {
    case COX_VIDEO_PLANAR:
        return true;
    case COX_VIDEO_SEMI_PLANAR:
        return subsampled_x;
    case COX_VIDEO_RGBA:
    case COX_VIDEO_BGRA:
        return !subsampled_x && (f->depth == 8 || f->depth == 16);
    case COX_VIDEO_GBR:
        return !subsampled_x;
    case COX_VIDEO_V210:
        return subsampled_x && !subsampled_y && f->depth == 10 && !f->msb_aligned;
    }
    return false;
}

uint32_t cox_video_planes(const struct cox_video_format *format, uint32_t width, uint32_t height,
                          struct cox_video_plane planes[COX_VIDEO_PLANES_MAX])
{
    if (!format_ok(format) || width == 0 || height == 0 || width > SIZE_MAX_PIXELS ||
        height > SIZE_MAX_PIXELS)
        return 0;

    const uint32_t sample = cox__video_sample_bytes(format);
    memset(planes, 0, COX_VIDEO_PLANES_MAX * sizeof(*planes));
    if (cox__video_is_packed_rgb(format)) {
        planes[0] = (struct cox_video_plane){(size_t)width * 4 * sample, height, 1, sample};
        return 1;
    }

    if (format->layout == COX_VIDEO_V210) {
        planes[0] = (struct cox_video_plane){((size_t)width + 5) / 6 * 16, height, 1, 4};
        return 1;
    }

    const uint32_t columns = (width + format->chroma_x_log2) >> format->chroma_x_log2;
    const uint32_t rows = (height + format->chroma_y_log2) >> format->chroma_y_log2;
    size_t chroma_bytes = (size_t)columns * sample;
    uint32_t count = 3;
    if (format->layout == COX_VIDEO_SEMI_PLANAR) {
        chroma_bytes *= 2;
        count = 2;
    }

    planes[0] = (struct cox_video_plane){(size_t)width * sample, height, 1, sample};
    for (uint32_t i = 1; i < count; i++)
        planes[i] = (struct cox_video_plane){chroma_bytes, rows, 1u << format->chroma_y_log2,
                                             sample};

    return count;
}

static bool pitches_ok(const struct cox_video_format *format, uint32_t width, uint32_t height,
                       const size_t *pitches)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    const uint32_t count = cox_video_planes(format, width, height, planes);
    const size_t unit = format->layout == COX_VIDEO_V210 ? 16 : 4;

    for (uint32_t i = 0; i < count; i++)
        if (pitches[i] < planes[i].row_bytes || pitches[i] % unit != 0 || pitches[i] > INT32_MAX)
            return false;

    return count != 0;
}

static uint32_t out_width(const struct cox_video_shape *s)
{
    if (s->scale == COX_SCALE_FILTER)
        return s->out_width;
    return s->width >> (s->scale == COX_SCALE_HALF);
}

static uint32_t out_height(const struct cox_video_shape *s)
{
    if (s->scale == COX_SCALE_FILTER)
        return s->out_height;
    return s->height >> (s->scale == COX_SCALE_HALF);
}

static bool scale_ok(const struct cox_video_shape *s)
{
    if ((unsigned)s->scale > COX_SCALE_FILTER || (s->scale && s->op == COX_OPERATOR_LOCAL))
        return false;

    if (s->scale == COX_SCALE_FILTER)
        return s->transfer != COX_TRANSFER_LINEAR && cox__scale_ok(s->width, s->out_width) &&
               cox__scale_ok(s->height, s->out_height);
    if (s->out_width || s->out_height)
        return false;

    /* When the size is halved, two rows of a plane are one row of its binding. */
    for (int i = 0; i < COX_VIDEO_PLANES_MAX && s->scale; i++)
        if (s->in_pitch_bytes[i] > INT32_MAX / 2)
            return false;

    return !s->scale || (s->width % 2 == 0 && s->height % 2 == 0);
}

static bool shape_ok(const struct cox_video_shape *s)
{
    if (!scale_ok(s))
        return false;

    const uint32_t width = out_width(s), height = out_height(s);

    /* The counts have 32 bits. */
    if ((uint64_t)s->width * s->height > UINT32_MAX || (uint64_t)width * height > UINT32_MAX ||
        !pitches_ok(&s->in, s->width, s->height, s->in_pitch_bytes) ||
        !pitches_ok(&s->out, width, height, s->out_pitch_bytes))
        return false;

    if ((unsigned)s->transfer > COX_TRANSFER_SDR ||
        (unsigned)s->primaries > COX_PRIMARIES_BT601_625 ||
        (unsigned)s->matrix > COX_MATRIX_BT601 || (unsigned)s->dither > COX_DITHER_ORDERED ||
        (unsigned)s->gamut > COX_GAMUT_HUE || (unsigned)s->encoding > COX_ENCODING_PQ ||
        (unsigned)s->out_primaries > COX_OUT_BT2020 || !cox_operator_name(s->op) ||
        s->op == COX_OPERATOR_EXPOSURE)
        return false;

    if (s->out.layout == COX_VIDEO_V210)
        return false;
    if (s->reshape && (cox__video_is_rgb(&s->in) || s->transfer != COX_TRANSFER_PQ ||
                       s->primaries != COX_PRIMARIES_BT2020))
        return false;

    if (s->lut_points && (!cox_video_lut_bytes(s->lut_points) || s->reshape ||
                          s->transfer == COX_TRANSFER_LINEAR || s->op == COX_OPERATOR_LOCAL))
        return false;

    if (s->transfer == COX_TRANSFER_LINEAR)
        return cox__video_is_packed_rgb(&s->in) && s->in.depth == 16;

    return cox__video_is_rgb(&s->in) || cox__video_is_rgb(&s->out) ||
           (s->out.chroma_x_log2 >= s->in.chroma_x_log2 &&
            s->out.chroma_y_log2 >= s->in.chroma_y_log2);
}

static cox_status read_shape(struct cox_video_shape *to, const struct cox_video_shape *from)
{
    if (!from)
        return COX_E_INVALID;

    *to = *from;
    if (!shape_ok(to))
        return COX_E_INVALID;

    if (to->lut_points) { /* one kernel, whatever the table replaces */
        to->op = COX_OPERATOR_LINEAR;
        to->desaturate_highlights = false;
        to->gamut = COX_GAMUT_CLIP;
        to->encoding = COX_ENCODING_BT1886;
    } else if (to->transfer == COX_TRANSFER_SDR) {
        /* SDR has no light above the output's range, so there is nothing to compress. */
        to->op = COX_OPERATOR_CLIP;
        to->desaturate_highlights = false;
    }
    return COX_OK;
}

/* --- Pipelines --- */

/* The kind of curve for which the kernel is built. */
static int curve_code(enum cox_operator op)
{
    switch (op) {
    case COX_OPERATOR_LINEAR:
    case COX_OPERATOR_CLIP:
        return 0;
    case COX_OPERATOR_MOBIUS:
        return 2;
    case COX_OPERATOR_BT2390:
        return 3;
    case COX_OPERATOR_LOCAL:
        return 4;
    case COX_OPERATOR_BT2446A:
    case COX_OPERATOR_BT2446C:
    case COX_OPERATOR_SPLINE:
        return 5;
    case COX_OPERATOR_HDR10PLUS:
        return 6;
    default:
        return 1;
    }
}

/* The number of samples whose codes the kernel adds up for one chroma value. */
static double chroma_scale(const struct cox_video_format *f)
{
    double across = 2, down = 4;

    if (f->chroma_x_log2 == 0)
        across = 1;
    else if (f->chroma_location == COX_CHROMA_CENTER)
        across = 4;

    if (f->chroma_y_log2 == 0)
        down = 1;
    else if (f->chroma_location == COX_CHROMA_TOP_LEFT)
        down = 2;

    return across * down;
}

/* What a stage does, and the shape of its work-items. */
struct work {
    bool map, analyse;
    int width, item_columns, item_rows, group;
};

/* Without warnings (-w): for each of them PoCL's compiler writes to standard error, which no log
 * can catch. */
static void build_options(char options[COX__PLAN_OPTIONS], const struct cox_video_shape *s,
                          const struct work *work)
{
    const struct cox_video_format *in = &s->in, *out = &s->out;

    snprintf(options, COX__PLAN_OPTIONS,
             "-w -DCOX_WIDTH=%d -DCOX_ITEM=%d -DCOX_ITEM_ROWS=%d -DCOX_GROUP=%d -DCOX_MAP=%d "
             "-DCOX_ANALYSE=%d "
             "-DCOX_IN_LAYOUT=%d -DCOX_IN_BYTES=%u -DCOX_IN_SHIFT=%u -DCOX_IN_DEPTH=%u "
             "-DCOX_IN_SUB_X=%u -DCOX_IN_SUB_Y=%u -DCOX_IN_SITE=%d "
             "-DCOX_OUT_LAYOUT=%d -DCOX_OUT_BYTES=%u -DCOX_OUT_SHIFT=%u "
             "-DCOX_OUT_SUB_X=%u -DCOX_OUT_SUB_Y=%u -DCOX_OUT_SITE=%d "
             "-DCOX_TRANSFER=%d -DCOX_CURVE=%d -DCOX_FADE=%d -DCOX_DITHER=%d -DCOX_GAMUT=%d "
             "-DCOX_ENCODE=%d -DCOX_WIDE=%d -DCOX_HALVE=%d -DCOX_RESHAPE=%d "
             "-DCOX_LUT=%u",
             work->width, work->item_columns, work->item_rows, work->group, work->map,
             work->analyse, (int)in->layout, cox__video_sample_bytes(in),
             cox__video_sample_shift(in), in->depth, in->chroma_x_log2, in->chroma_y_log2,
             (int)in->chroma_location, (int)out->layout, cox__video_sample_bytes(out),
             cox__video_sample_shift(out), out->chroma_x_log2, out->chroma_y_log2,
             (int)out->chroma_location, (int)s->transfer, curve_code(s->op),
             s->desaturate_highlights, (int)s->dither, (int)s->gamut, (int)s->encoding,
             (int)s->out_primaries, s->scale == COX_SCALE_HALF, s->reshape, s->lut_points);
}

/* Counts add up, so the result is exact in any order. */
static void merge_histogram(void *into, const void *partial, size_t bytes, void *user)
{
    (void)user;
    (void)bytes;
    uint32_t *total = into;
    const uint32_t *part = partial;

    for (int i = 0; i < COX_VIDEO_BINS; i++)
        total[i] += part[i];
}

/* Fill in the variants of stage `s`, which maps or analyses. */
static void fill_variants(const struct cox_video_shape *shape, bool map, bool analyse,
                          struct cox__plan *plan, uint32_t s)
{
    const int rows = analyse ? ANALYSE_ROWS : 2;
    const struct work cpu = {map, analyse, CPU_WIDTH, 0, rows, 1};
    const struct work gpu = {map, analyse, 1, GPU_COLUMNS, rows, GPU_LOCAL};

    build_options(plan->options[s][0], shape, &cpu);
    build_options(plan->options[s][1], shape, &gpu);
    plan->variants[s][0] = (struct cox__variant){.type = COX_DEVICE_CPU,
                                                 .source = cox__source_video_frame,
                                                 .options = plan->options[s][0],
                                                 .local_columns = 1,
                                                 .local_rows = 1,
                                                 .item_columns = out_width(shape),
                                                 .item_rows = (uint32_t)rows};

    plan->variants[s][1] = (struct cox__variant){.source = cox__source_video_frame,
                                                 .options = plan->options[s][1],
                                                 .local_columns = GPU_LOCAL,
                                                 .local_rows = 1,
                                                 .item_columns = GPU_COLUMNS,
                                                 .item_rows = (uint32_t)rows,
                                                 .any_local = true};
}

/* Add a frame's planes. When the input is halved, two rows of a plane are one row of the session,
 * except for chroma with half as many rows. */
static uint32_t add_planes(struct cox__binding *bindings, const struct cox_video_format *format,
                           uint32_t width, uint32_t height, const size_t *pitches,
                           enum cox__access access, bool box_downscale)
{
    static const char *const names[2][2] = {{"input", "input chroma"}, {"output", "output chroma"}};
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    const uint32_t count = cox_video_planes(format, width, height, planes);

    for (uint32_t i = 0; i < count; i++) {
        const bool paired = box_downscale && planes[i].row_divisor == 1;
        const bool chroma = i > 0 && !cox__video_is_rgb(format);
        struct cox__binding *b = &bindings[i];

        *b = (struct cox__binding){.name = names[access != COX__READ][chroma],
                                   .row_access = COX__ROWS,
                                   .access = access,
                                   .pitch_bytes = pitches[i],
                                   .row_bytes = planes[i].row_bytes,
                                   .row_divisor = planes[i].row_divisor};
        if (access == COX__WRITE)
            b->coverage = COX__COVERS_ALL;
        if (paired) {
            b->pitch_bytes = 2 * pitches[i];
            b->row_bytes = pitches[i] + planes[i].row_bytes;
        }
        if (box_downscale)
            b->row_divisor = 1;

        /* Chroma between two rows of samples is interpolated. */
        if (access == COX__READ && planes[i].row_divisor > 1) {
            b->row_access = COX__HALO;
            b->halo_rows = 1;
        }
    }

    return count;
}

/* The parameters that a kernel takes: those of the operator local only if it is in use. */
static struct cox__arg params_arg(const struct cox_video_shape *shape)
{
    const size_t own = shape->op == COX_OPERATOR_LOCAL ? sizeof(struct cox__local) : 0;

    return (struct cox__arg){COX__ARG_KIND_PARAMS, 0, 0,
                             offsetof(struct video_params, surround) + own};
}

/* The stage that maps or analyses. It reads the frame's planes, which are the first bindings, or
 * the three of `scaled` if that is given. The tables of a frame follow the planes. The stage
 * writes to all later bindings of the application, or to the histogram alone unless it maps. It
 * also takes `base` if that is given. */
static void add_frame_stage(struct cox__plan *plan, const struct cox_video_shape *shape, bool map,
                            bool analyse, uint32_t planes, uint32_t bindings,
                            const uint32_t *scaled, const uint32_t *base)
{
    const uint32_t s = cox__plan_add_stage(plan, "video", out_width(shape), 0);
    struct cox__arg *args = plan->args[s];
    static const uint32_t own[COX_VIDEO_PLANES_MAX] = {0, 1, 2};
    const uint32_t *sources = scaled ? scaled : own;
    const uint32_t source_count = scaled ? COX_VIDEO_PLANES_MAX : planes;
    uint32_t count = 0;

    for (uint32_t i = 0; i < source_count; i++)
        args[count++] = (struct cox__arg)COX__ARG_BUFFER(sources[i]);
    for (uint32_t i = planes; i < bindings; i++) {
        const struct cox__binding *b = &plan->bindings[i];
        if (map || b->access != COX__WRITE || b->row_access == COX__REDUCE)
            args[count++] = (struct cox__arg)COX__ARG_BUFFER(i);
    }

    if (base) {
        args[count++] = (struct cox__arg)COX__ARG_BUFFER(*base);
        args[count++] = (struct cox__arg)COX__ARG_ORIGIN(*base);
    }

    args[count++] = params_arg(shape);
    args[count++] = (struct cox__arg)COX__ARG_FIRST_ROW;
    args[count++] = (struct cox__arg)COX__ARG_ROWS;
    for (uint32_t i = 0; i < source_count; i++)
        args[count++] = (struct cox__arg)COX__ARG_ORIGIN(sources[i]);

    plan->stages[s].arg_count = count;
    fill_variants(shape, map, analyse, plan, s);
}

/* The stage that reduces the frame to blocks. */
static void add_blocks(struct cox__plan *plan, const struct cox_video_shape *shape,
                       const struct cox__local *local, uint32_t planes, uint32_t moments)
{
    const struct cox_video_format *in = &shape->in;
    const uint32_t side = 1u << local->block_log2, pairs = ((uint32_t)local->width + 1) / 2;
    const uint32_t s = cox__plan_add_stage(plan, "blocks", pairs, 0);
    struct cox__arg *args = plan->args[s];
    uint32_t count = 0;

    for (uint32_t i = 0; i < planes + shape->reshape; i++)
        args[count++] = (struct cox__arg)COX__ARG_BUFFER(i);

    args[count++] = (struct cox__arg)COX__ARG_BUFFER(moments);
    args[count++] = (struct cox__arg)COX__ARG_ORIGIN(moments);
    args[count++] = params_arg(shape);
    args[count++] = (struct cox__arg)COX__ARG_FIRST_ROW;
    args[count++] = (struct cox__arg)COX__ARG_ROWS;

    plan->stages[s].arg_count = count;
    for (int item = 0; item < 2; item++) {
        const struct cox__variant cpu = {
            .type = COX_DEVICE_CPU, .local_columns = 1, .item_columns = pairs};
        const struct cox__variant gpu = {.local_columns = GPU_LOCAL, .item_columns = 1};
        struct cox__variant *variant = &plan->variants[s][item];

        *variant = item ? gpu : cpu;
        variant->source = cox__source_video_blocks;
        variant->options = plan->options[s][item];
        variant->item_rows = side;
        variant->any_local = true;
        snprintf(plan->options[s][item], COX__PLAN_OPTIONS,
                 "-w -DCOX_WIDTH=%d -DCOX_ITEM=%d -DCOX_BLOCK_LOG2=%d -DCOX_CHROMA_UNIT=%d "
                 "-DCOX_IN_LAYOUT=%d -DCOX_IN_BYTES=%u "
                 "-DCOX_IN_SHIFT=%u -DCOX_IN_SUB_X=%u -DCOX_IN_SUB_Y=%u -DCOX_TRANSFER=%d "
                 "-DCOX_CURVE=%d -DCOX_RESHAPE=%d",
                 item ? 1 : CPU_WIDTH, item, local->block_log2, (int)chroma_scale(in),
                 (int)in->layout, cox__video_sample_bytes(in), cox__video_sample_shift(in),
                 in->chroma_x_log2, in->chroma_y_log2, (int)shape->transfer, curve_code(shape->op),
                 shape->reshape);
    }
}

/* Let the pass use a range of the application's bindings as the session has them. */
static void use_bindings(struct cox__plan *plan, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++) {
        const struct cox__binding *b = &plan->bindings[i];
        cox__plan_use(plan, i, b->row_access, b->access, b->halo_rows);
        cox__plan_divide(plan, b->row_divisor);
    }
}

/* The passes of the operator local: blocks, their base, and the mapping itself, which takes the
 * first `bindings`. */
static void map_in_passes(struct cox__plan *plan, const struct cox_video_shape *shape, bool analyse,
                          uint32_t planes, uint32_t bindings)
{
    const struct cox__local local = cox__local_of(shape->width, shape->height, COLUMN_LOG2);
    const uint32_t side = 1u << local.block_log2;
    const struct cox__local_scratch scratch = cox__local_bindings(plan, &local);

    cox__plan_pass(plan, "blocks", shape->height);
    for (uint32_t i = 0; i < planes; i++) {
        cox__plan_use(plan, i, COX__ROWS, COX__READ, 0);
        cox__plan_divide(plan, plan->bindings[i].row_divisor);
    }
    if (shape->reshape)
        cox__plan_use(plan, planes, COX__WHOLE, COX__READ, 0);

    cox__plan_use(plan, scratch.moments, COX__ROWS, COX__WRITE, 0);
    cox__plan_divide(plan, side);
    add_blocks(plan, shape, &local, planes, scratch.moments);

    cox__local_passes(plan, &local, scratch, offsetof(struct video_params, surround));

    cox__plan_pass(plan, "map", shape->height);
    use_bindings(plan, 0, bindings);
    cox__plan_use(plan, scratch.base, COX__HALO, COX__READ, 1);
    cox__plan_divide(plan, side);
    add_frame_stage(plan, shape, true, analyse, planes, bindings, NULL, &scratch.base);
}

/* Scaling on the band's own rows. Every device reads the whole frame. Returns in `scaled` the
 * bindings of the result. */
static void scale(struct cox__plan *plan, const struct cox_video_shape *shape, uint32_t planes,
                  uint32_t scaled[COX_VIDEO_PLANES_MAX])
{
    struct cox_video_plane in[COX_VIDEO_PLANES_MAX];

    cox_video_planes(&shape->in, shape->width, shape->height, in);
    for (uint32_t i = 0; i < planes; i++)
        plan->bindings[i] = (struct cox__binding){.name = plan->bindings[i].name,
                                                  .row_access = COX__WHOLE,
                                                  .access = COX__READ,
                                                  .bytes = shape->in_pitch_bytes[i] * in[i].rows};

    cox__scale_stages(plan, shape, in, planes, offsetof(struct video_params, scale), scaled);
}

/* The stages that scale, and the one that maps or analyses, in one pass. */
static void map_scaled(struct cox__plan *plan, const struct cox_video_shape *shape, bool map,
                       bool analyse, uint32_t planes)
{
    const struct cox_video_shape result = cox__scale_result(shape);
    const uint32_t bindings = plan->binding_count;
    uint32_t scaled[COX_VIDEO_PLANES_MAX] = {0};

    scale(plan, shape, planes, scaled);
    add_frame_stage(plan, &result, map, analyse, planes, bindings, scaled, NULL);
}

/* A pass that only counts. The histogram is the last of the application's bindings. */
static void count_first(struct cox__plan *plan, const struct cox_video_shape *shape,
                        uint32_t planes, cox_pass_done_fn *counted, void *user)
{
    const uint32_t bindings = plan->binding_count;

    cox__plan_pass(plan, "analyse", out_height(shape));
    plan->passes[0].done = counted;
    plan->passes[0].done_user = user;
    use_bindings(plan, 0, planes + shape->reshape);
    use_bindings(plan, bindings - 1, bindings);
    add_frame_stage(plan, shape, false, true, planes, bindings, NULL, NULL);
}

/* The same for a frame that is scaled, and the pass that maps its result. */
static void count_scaled_first(struct cox__plan *plan, const struct cox_video_shape *shape,
                               uint32_t planes, cox_pass_done_fn *counted, void *user)
{
    const struct cox_video_shape result = cox__scale_result(shape);
    const uint32_t bindings = plan->binding_count;
    uint32_t scaled[COX_VIDEO_PLANES_MAX] = {0};

    cox__plan_pass(plan, "scale and analyse", out_height(shape));
    plan->passes[0].done = counted;
    plan->passes[0].done_user = user;
    scale(plan, shape, planes, scaled);
    use_bindings(plan, 0, planes + shape->reshape);
    use_bindings(plan, bindings - 1, plan->binding_count);
    for (uint32_t i = 0; i < plan->passes[0].use_count; i++)
        for (int c = 0; c < COX_VIDEO_PLANES_MAX; c++)
            if (plan->uses[0][i].binding == scaled[c]) {
                plan->uses[0][i].row_access = COX__ROWS;
                plan->uses[0][i].access = COX__WRITE;
            }
    add_frame_stage(plan, &result, false, true, planes, bindings, scaled, NULL);

    cox__plan_pass(plan, "map", out_height(shape));
    use_bindings(plan, planes, bindings - 1);
    for (int c = 0; c < COX_VIDEO_PLANES_MAX; c++)
        cox__plan_use(plan, scaled[c], COX__HALO, COX__READ, 0);
    add_frame_stage(plan, &result, true, false, planes, bindings - 1, scaled, NULL);
}

/* What a session does. */
struct job {
    bool map, analyse;
    /* analyse in a pass of its own, then call this; NULL = do both in one pass */
    cox_pass_done_fn *counted;
    void *user;
};

/* The bindings of the application: planes in, tables, planes out, histogram. Returns the number of
 * planes in. */
static uint32_t add_bindings(struct cox__plan *plan, const struct cox_video_shape *shape,
                             const struct job *job)
{
    uint32_t bindings = add_planes(plan->bindings, &shape->in, shape->width, shape->height,
                                   shape->in_pitch_bytes, COX__READ,
                                   shape->scale == COX_SCALE_HALF);
    const uint32_t planes = bindings;

    if (shape->reshape)
        plan->bindings[bindings++] = (struct cox__binding){.name = "reshaping",
                                                           .row_access = COX__WHOLE,
                                                           .access = COX__READ,
                                                           .bytes = COX_VIDEO_RESHAPE_BYTES};
    if (job->map && shape->lut_points)
        plan->bindings[bindings++] = (struct cox__binding){
            .name = "look-up table",
            .row_access = COX__WHOLE,
            .access = COX__READ,
            .bytes = cox_video_lut_bytes(shape->lut_points)};
    if (job->map)
        bindings += add_planes(plan->bindings + bindings, &shape->out, out_width(shape),
                               out_height(shape), shape->out_pitch_bytes, COX__WRITE, false);
    if (job->analyse)
        plan->bindings[bindings++] = (struct cox__binding){.name = "histogram",
                                                           .row_access = COX__REDUCE,
                                                           .access = COX__WRITE,
                                                           .bytes = COX_VIDEO_HISTOGRAM_BYTES,
                                                           .merge = merge_histogram};
    plan->binding_count = bindings;
    return planes;
}

/* The stages that map, and passes for them if there are several. They take the first `bindings`. */
static void add_mapping(struct cox__plan *plan, const struct cox_video_shape *shape, bool analyse,
                        uint32_t planes, uint32_t bindings)
{
    if (shape->op == COX_OPERATOR_LOCAL) {
        map_in_passes(plan, shape, analyse, planes, bindings);
        return;
    }
    if (plan->pass_count) {
        cox__plan_pass(plan, "map", out_height(shape));
        use_bindings(plan, 0, bindings);
    }

    const bool codes_kept = cox__codes_kept(shape);
    if (codes_kept)
        cox__codes_stage(plan, shape, planes, bindings - analyse,
                         offsetof(struct video_params, codes));
    if (!codes_kept || analyse)
        add_frame_stage(plan, shape, !codes_kept, analyse, planes, bindings, NULL, NULL);
}

static cox_status fill_session(const struct cox_video_shape *given, const struct job *job,
                               struct cox__pipeline_storage *room,
                               struct cox__session_spec *session)
{
    struct cox_video_shape shape;
    const cox_status status = read_shape(&shape, given);
    if (status)
        return status;

    struct cox__plan *plan = cox__plan_begin(room, session, out_height(&shape));
    if (!plan)
        return COX_E_INVALID;

    const uint32_t planes = add_bindings(plan, &shape, job), bindings = plan->binding_count;
    const bool is_filtered = shape.scale == COX_SCALE_FILTER;
    if (job->counted && is_filtered) {
        count_scaled_first(plan, &shape, planes, job->counted, job->user);
    } else if (job->counted) {
        count_first(plan, &shape, planes, job->counted, job->user);
        add_mapping(plan, &shape, false, planes, bindings - 1);
    } else if (is_filtered) {
        map_scaled(plan, &shape, job->map, job->analyse, planes);
    } else if (job->map) {
        add_mapping(plan, &shape, job->analyse, planes, bindings);
    } else {
        add_frame_stage(plan, &shape, false, true, planes, bindings, NULL, NULL);
    }

    cox__plan_end(plan, PARAMS_BYTES, session);
    if (!plan->pass_count) {
        session->passes = NULL;
        session->stages = plan->stages;
        session->stage_count = plan->stage_count;
    }
    return COX_OK;
}

cox_status cox__video_mapping(const struct cox_video_shape *shape, bool analyse,
                              struct cox__pipeline_storage *storage,
                              struct cox__session_spec *session)
{
    return fill_session(shape, &(const struct job){.map = true, .analyse = analyse}, storage,
                        session);
}

cox_status cox__video_analysis(const struct cox_video_shape *shape,
                               struct cox__pipeline_storage *storage,
                               struct cox__session_spec *session)
{
    return fill_session(shape, &(const struct job){.analyse = true}, storage, session);
}

cox_status cox__video_counted_mapping(const struct cox_video_shape *shape,
                                      cox_pass_done_fn *counted, void *user,
                                      struct cox__pipeline_storage *storage,
                                      struct cox__session_spec *session)
{
    if (shape && shape->lut_points)
        return COX_E_INVALID;

    const struct job job = {.map = true, .analyse = true, .counted = counted, .user = user};
    return fill_session(shape, &job, storage, session);
}

/* --- Constants --- */

/* Primaries: their weights of luminance, and the matrix to light of BT.709. White stays white: the
 * one of DCI-P3 is adapted to D65 by Bradford's method (ICC.1:2010, annex E). */
static const struct {
    double weights[3], to_bt709[9];
} primaries_of[] = {
    [COX_PRIMARIES_BT2020] = {{0.2627, 0.6780, 0.0593},
                              {1.66049100, -0.58764114, -0.07284986, -0.12455047, 1.13289990,
                               -0.00834942, -0.01815076, -0.10057890, 1.11872966}},
    [COX_PRIMARIES_BT709] = {{0.2126, 0.7152, 0.0722}, {1, 0, 0, 0, 1, 0, 0, 0, 1}},
    [COX_PRIMARIES_P3_D65] = {{0.22897456, 0.69173852, 0.07928691},
                              {1.22494018, -0.22494018, 0, -0.04205695, 1.04205695, 0, -0.01963755,
                               -0.07863605, 1.09827360}},
    [COX_PRIMARIES_P3_DCI] = {{0.20949168, 0.72159525, 0.06891307},
                              {1.15751641, -0.15496238, -0.00255403, -0.04150007, 1.04556792,
                               -0.00406785, -0.01805004, -0.07857827, 1.09662831}},
    [COX_PRIMARIES_BT601_525] = {{0.21237636, 0.70105986, 0.08656378},
                                 {0.93954206, 0.05018136, 0.01027658, 0.01777222, 0.96579286,
                                  0.01643491, -0.00162160, -0.00436975, 1.00599135}},
    [COX_PRIMARIES_BT601_625] = {{0.22200431, 0.70665477, 0.07134092},
                                 {1.04404321, -0.04404321, 0, 0, 1, 0, 0, 0.01179338, 0.98820662}},
};

/* The weights of R', G' and B' in Y'. */
static const double matrix_weights[][3] = {[COX_MATRIX_BT2020] = {0.2627, 0.6780, 0.0593},
                                           [COX_MATRIX_BT709] = {0.2126, 0.7152, 0.0722},
                                           [COX_MATRIX_BT601] = {0.299, 0.587, 0.114}};

static enum cox_matrix matrix_of(const struct cox_video_shape *s)
{
    if (s->matrix != COX_MATRIX_AUTO)
        return s->matrix;

    switch (s->primaries) {
    case COX_PRIMARIES_BT709:
        return COX_MATRIX_BT709;
    case COX_PRIMARIES_BT601_525:
    case COX_PRIMARIES_BT601_625:
        return COX_MATRIX_BT601;
    default:
        return COX_MATRIX_BT2020;
    }
}

/* The kernel's value for each code of Y', or of a colour, is `unit`. For one value of Cb or Cr the
 * kernel adds up `chromas` samples, each `unit` times. */
static void set_input(const struct cox_video_shape *s, double unit, double chromas,
                      struct video_params *p)
{
    const struct cox__levels code = cox__codes_levels(&s->in);
    const double *w = matrix_weights[matrix_of(s)];
    const double chroma = 1 / (code.chroma * unit * chromas), centre = code.grey / code.chroma;
    const double red = 2 * (1 - w[0]), blue = 2 * (1 - w[2]);
    const double green_v = -red * w[0] / w[1], green_u = -blue * w[2] / w[1];
    const double offset = -code.black / code.luma;

    /* The kernel needs the signal of PQ from -1 to 1. */
    const bool pq = s->transfer == COX_TRANSFER_PQ;
    const double scale = pq ? 2 : 1, low = pq ? -1 : 0;

    if (s->reshape) { /* codes from 0 to 1 */
        const double codes = code.most + 1;
        p->luma_scale = (float)(1 / (codes * unit));
        p->blue_u = p->red_v = (float)(1 / (codes * unit * chromas));
        return;
    }

    p->luma_scale = (float)(scale / (code.luma * unit));
    for (int i = 0; i < 3; i++)
        p->hlg_y[i] = (float)primaries_of[s->primaries].weights[i];

    if (cox__video_is_rgb(&s->in)) {
        p->red_0 = (float)(scale * offset + low); /* of each colour */
        return;
    }

    p->red_v = (float)(scale * red * chroma);
    p->green_v = (float)(scale * green_v * chroma);
    p->green_u = (float)(scale * green_u * chroma);
    p->blue_u = (float)(scale * blue * chroma);

    p->red_0 = (float)(scale * (offset - red * centre) + low);
    p->green_0 = (float)(scale * (offset - (green_v + green_u) * centre) + low);
    p->blue_0 = (float)(scale * (offset - blue * centre) + low);
}

static void set_output(const struct cox_video_shape *s, struct video_params *p)
{
    const struct cox__levels code = cox__codes_levels(&s->out);
    const bool wide = s->out_primaries == COX_OUT_BT2020;
    const double *w = matrix_weights[wide ? COX_MATRIX_BT2020 : COX_MATRIX_BT709];

    p->out_luma_scale = (float)code.luma;
    p->out_luma_0 = (float)code.black;
    p->out_cb_scale = (float)(code.chroma / (2 * (1 - w[2])));
    p->out_cr_scale = (float)(code.chroma / (2 * (1 - w[0])));
    p->out_chroma_0 = (float)code.grey;
    p->out_max = (float)code.most;
}

/* The part of the highlights' colour that goes. */
static double desaturation(const struct cox_video_settings *settings)
{
    if (settings->desaturate == 0.0f)
        return 0.75;
    return fmin(fmax((double)settings->desaturate, 0.0), 1.0);
}

/* The light of the EOTF to the primaries of the output. */
static void light_matrix(const struct cox_video_shape *s, const struct cox_video_settings *settings,
                         double matrix[9])
{
    static const double one[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    static const double bt709_to_bt2020[9] = {0.62740390, 0.32928304, 0.04331307,
                                              0.06909729, 0.91954040, 0.01136232,
                                              0.01639144, 0.08801331, 0.89559525};
    const double *to_bt709 = primaries_of[s->primaries].to_bt709;

    if (s->out_primaries == COX_OUT_BT709)
        memcpy(matrix, to_bt709, 9 * sizeof *matrix);
    else if (s->primaries == COX_PRIMARIES_BT2020)
        memcpy(matrix, one, sizeof one);
    else
        cox__reshape_product(bt709_to_bt2020, to_bt709, matrix);

    if (s->reshape) {
        double before[9];
        memcpy(before, matrix, sizeof before);
        cox__reshape_product(before, settings->reshape->light_matrix, matrix);
    }
}

/* `light` is the light of SDR white in the unit of the inverted EOTF. */
static void set_curve(const struct cox_video_shape *s, const struct cox_video_settings *settings,
                      double light, double white, struct video_params *p)
{
    double peak = cox__given(settings->peak_nits, COX__PEAK_NITS);
    const struct cox_hdr10plus_curve *hdr10plus = NULL;
    if (s->op == COX_OPERATOR_HDR10PLUS)
        hdr10plus = settings->hdr10plus;
    if (hdr10plus)
        peak = (double)hdr10plus->target_nits;

    const struct cox__curve c = cox__curve_of(s->op, peak / white, white);
    const double strength = desaturation(settings);

    /* Without a curve the scale belongs to the matrix. */
    const double scale = curve_code(s->op) == 0 ? c.a1 / c.b0 : 1;

    double matrix[9];
    light_matrix(s, settings, matrix);
    for (int i = 0; i < 9; i++)
        p->matrix[i] = (float)(matrix[i] * light * scale);

    p->a0 = (float)c.a0;
    p->a1 = (float)c.a1;
    p->a2 = (float)c.a2;
    p->b0 = (float)c.b0;
    p->b1 = (float)c.b1;
    p->b2 = (float)c.b2;
    p->knee = (float)c.knee;
    cox__curve_bt2390(&c, &p->bt2390);
    cox__curve_joined(&c, &p->joined);

    /* As for pictures: colours fade from where the curve leaves the middle of its range, but never
     * below SDR white. */
    double fade = cox__curve_inverse(&c, 0.5, 1.0, 0x1p24);
    if (hdr10plus) {
        const struct cox__curve own = cox__curve_hdr10plus(hdr10plus, white);
        cox__curve_joined(&own, &p->joined);
        fade = cox__curve_inverse(&own, cox__curve_inverse(&c, 0.5, 0x1p-10, 0x1p24), 1.0, 0x1p24);
    } else if (s->op == COX_OPERATOR_HDR10PLUS) {
        p->joined.peak = 0x1p24f; /* light stays */
    }

    if (s->op == COX_OPERATOR_LOCAL) {
        p->surround = cox__local_of(s->width, s->height, COLUMN_LOG2);
        cox__local_settings(&p->surround, &c, settings->detail);
    }

    p->fade = (float)(fade * scale);
    p->fade_speed = (float)(strength / (fade * scale));

    const double knee = cox__given(settings->gamut_knee, 0.9);
    p->gamut_knee = (float)knee;
    p->gamut_square = (float)-(knee * knee);
    p->gamut_rest = (float)(1 - 2 * knee);
    p->hue_reach = (float)(1 / knee);
    p->hue_rest = (float)(1 - knee);
    p->hue_inside = (float)(0.95 * (1 - knee));
}

/* Whether the value is zero, or from least to most. A NaN fails. */
static bool in_bounds(float value, float least, float most)
{
    return value == 0.0f || (value >= least && value <= most);
}

/* Check the curve of HDR10+. A NaN fails. */
static bool hdr10plus_ok(const struct cox_hdr10plus_curve *curve)
{
    if (!curve)
        return true;

    bool good = curve->scene_peak_nits >= 1 && curve->scene_peak_nits <= 10000 &&
                curve->target_nits >= 1 && curve->target_nits <= 10000 && curve->knee_x >= 0 &&
                curve->knee_x < 1 && curve->knee_y >= 0 && curve->knee_y <= 1 &&
                curve->anchor_count <= COX_HDR10PLUS_ANCHORS_MAX;

    for (uint32_t i = 0; good && i < curve->anchor_count; i++)
        good = curve->anchors[i] >= 0 && curve->anchors[i] <= 1;
    return good;
}

/* Check the settings. Written so that a NaN fails. */
static bool settings_ok(const struct cox_video_settings *settings)
{
    return in_bounds(settings->sdr_white_nits, 1, 10000) &&
           in_bounds(settings->peak_nits, 1, 1e6f) &&
           in_bounds(settings->hlg_peak_nits, 100, 10000) &&
           in_bounds(settings->gain, 0x1p-32f, 0x1p32f) && !isnan(settings->desaturate) &&
           cox__local_detail_ok(settings->detail) &&
           in_bounds(settings->gamut_knee, 0.25f, 0.95f) && hdr10plus_ok(settings->hdr10plus);
}

/* Fill in which rows of the output are not black bars. */
static void set_bars(const struct cox_video_shape *s, const struct cox_video_settings *settings,
                     struct video_params *p)
{
    const unsigned halved = s->scale == COX_SCALE_HALF;
    const uint32_t height = out_height(s), top = settings->top_bar_rows >> halved;
    const uint32_t bottom = settings->bottom_bar_rows >> halved;

    p->picture_bottom = (int32_t)height;
    if (cox__bars_matter(s) && top <= height && bottom <= height) {
        p->picture_top = (int32_t)(top & ~1u);
        p->picture_bottom = (int32_t)((height - bottom + 1) & ~1u);
    }
}

/* Fill in the sizes and pitches of the frame that is mapped. */
static void set_geometry(const struct cox_video_shape *mapped, struct video_params *p)
{
    const uint32_t x_log2 = mapped->in.chroma_x_log2, y_log2 = mapped->in.chroma_y_log2;

    p->chroma_width = (int32_t)((mapped->width + x_log2) >> x_log2);
    p->chroma_height = (int32_t)((mapped->height + y_log2) >> y_log2);
    for (int i = 0; i < COX_VIDEO_PLANES_MAX; i++) {
        p->in_pitch[i] = (int32_t)mapped->in_pitch_bytes[i];
        p->out_pitch[i] = (int32_t)mapped->out_pitch_bytes[i];
    }

    /* The kernel reads the chroma of v210 from the only plane. */
    if (mapped->in.layout == COX_VIDEO_V210)
        p->in_pitch[1] = p->in_pitch[2] = p->in_pitch[0];
}

cox_status cox_video_prepare(const struct cox_video_shape *given_shape,
                             const struct cox_video_settings *settings,
                             struct cox_constants *params)
{
    struct cox_video_shape shape_copy;
    const struct cox_video_shape *shape = &shape_copy;
    const cox_status status = read_shape(&shape_copy, given_shape);
    if (status)
        return status;
    if (!settings || !params)
        return COX_E_INVALID;
    if (!settings_ok(settings))
        return COX_E_INVALID;
    if (shape->reshape && !cox__reshape_ok(settings->reshape))
        return COX_E_INVALID;

    const double white = cox__given(settings->sdr_white_nits, COX__SDR_WHITE_NITS);
    double gain = cox__given(settings->gain, 1);
    const double hlg_peak = cox__given(settings->hlg_peak_nits, COX__HLG_PEAK_NITS);
    double light = 1;
    if (shape->transfer == COX_TRANSFER_PQ)
        light = COX__PQ_NITS / white;
    else if (shape->transfer == COX_TRANSFER_HLG)
        light = hlg_peak / white;
    if (shape->transfer == COX_TRANSFER_SDR) {
        light = cox__scene_sdr_nits(shape, settings) / white;
        gain = 1;
    }

    const bool filtered = shape->scale == COX_SCALE_FILTER, halved = shape->scale == COX_SCALE_HALF;
    const struct cox_video_shape mapped = filtered ? cox__scale_result(shape) : *shape;
    struct video_params p = {.width = (int32_t)out_width(shape),
                             .height = (int32_t)out_height(shape)};
    set_geometry(&mapped, &p);
    set_bars(shape, settings, &p);
    if (filtered) {
        struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
        const uint32_t count = cox_video_planes(&shape->in, shape->width, shape->height, planes);
        p.scale = cox__scale_of(shape, planes, count);
    }
    if (cox__codes_kept(shape))
        p.codes = cox__codes_of(shape);

    /* When the size is halved, the kernel adds up four codes of Y', and four times as many of Cb
     * and Cr; for RGBA it adds up signals. */
    double unit = 1;
    if (filtered)
        unit = (double)p.scale.unit;
    else if (halved && !cox__video_is_packed_rgb(&shape->in))
        unit = 4;

    set_input(shape, unit, chroma_scale(&mapped.in), &p);
    set_output(shape, &p);
    set_curve(shape, settings, light * gain, white, &p);
    p.out_light = (float)(white / COX__PQ_NITS);
    p.hlg_exponent = (float)(0.2 + 0.42 * log10(hlg_peak / 1000));

    memset(params, 0, PARAMS_BYTES);
    memcpy(params, &p, sizeof(p));
    return COX_OK;
}
