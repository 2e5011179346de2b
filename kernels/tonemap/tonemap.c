/* The picture tone mapper's host side: pipelines, curve constants, reading the histogram.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#include "local.h"
#include "sources.h"
#include <coxswain/tonemap.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* The kernel's parameter block; struct picture_params of picture.cl. */
struct picture_params {
    int32_t kind; /* enum cox__curve_kind */
    float gain;
    float a0, a1, a2;
    float b0, b1, b2;
    float knee;
    float fade, fade_speed;
    float slope, start, start_out, inner, outer;
    struct cox__bt2390 eetf;
    struct cox__joined joined;
    struct cox__local surround; /* of COX_OPERATOR_LOCAL alone */
};

/* Work-item shapes. Those for CPUs were measured on PoCL (docs/internals/kernels.md); a GPU takes
 * one pixel per work-item. */
enum {
    SIZE_MAX_PIXELS = 65536,
    CPU_WIDTH = 16,
    CPU_ITEM = 64,
    CPU_LOCAL = 16,
    GPU_LOCAL = 128,
    HISTOGRAM_LANES = 256, /* work-items on a row of a GPU, in groups that fit every device */
    HISTOGRAM_GROUP = 32,
    HISTOGRAM_ROWS = 8,

    PARAMS_BYTES = 320, /* of a frame's constants, copied for each frame */
};

_Static_assert(sizeof(struct picture_params) == 288, "72 words, no padding");
_Static_assert(sizeof(struct picture_params) <= PARAMS_BYTES, "fits in the constants");
_Static_assert(PARAMS_BYTES <= sizeof(struct cox_constants), "fits in the constants");

const char *cox_operator_name(enum cox_operator op)
{
    switch (op) {
#define OPERATOR_NAME(name, value, text) \
    case name:                           \
        return text;
        COX_OPERATOR_MAP(OPERATOR_NAME)
#undef OPERATOR_NAME
    case COX_OPERATOR_COUNT:
        break;
    }
    return NULL;
}

cox_status cox_operator_find(const char *name, enum cox_operator *op)
{
    if (!name)
        return COX_E_NOT_FOUND;
    for (int i = 0; i < COX_OPERATOR_COUNT; i++) {
        if (strcmp(name, cox_operator_name((enum cox_operator)i)) == 0) {
            *op = (enum cox_operator)i;
            return COX_OK;
        }
    }
    return COX_E_NOT_FOUND;
}

/* --- Pipelines --- */

/* Contents of `struct cox__pipeline_storage`. */
struct storage {
    struct cox__binding bindings[2];
    struct cox__stage stage;
    struct cox__variant variants[2];
    struct cox__arg args[4];
    char options[2][160];
};
_Static_assert(sizeof(struct storage) <= sizeof(struct cox__pipeline_storage), "fits");
_Static_assert(sizeof(struct cox__plan) <= sizeof(struct cox__pipeline_storage), "fits");

static size_t in_row_bytes(const struct cox_tonemap_shape *shape)
{
    return shape->width * (size_t)(shape->in == COX_PIXEL_RGBA_FLOAT ? 16 : 8);
}

static size_t out_row_bytes(const struct cox_tonemap_shape *shape)
{
    return shape->width * (size_t)(shape->out == COX_PIXEL_RGBA16 ? 8 : 4);
}

static bool shape_ok(const struct cox_tonemap_shape *s)
{
    if (s->width == 0 || s->height == 0 || s->width > SIZE_MAX_PIXELS ||
        s->height > SIZE_MAX_PIXELS)
        return false;

    if ((s->in != COX_PIXEL_RGBA_HALF && s->in != COX_PIXEL_RGBA_FLOAT) ||
        (s->out != COX_PIXEL_RGBA8 && s->out != COX_PIXEL_RGBA16) || s->local > 1)
        return false;

    const size_t in_pixel = s->in == COX_PIXEL_RGBA_FLOAT ? 16 : 8;
    const size_t out_pixel = s->out == COX_PIXEL_RGBA16 ? 8 : 4;

    return s->in_pitch_bytes >= s->width * in_pixel && s->in_pitch_bytes % in_pixel == 0 &&
           s->in_pitch_bytes <= INT32_MAX && s->out_pitch_bytes >= s->width * out_pixel &&
           s->out_pitch_bytes % out_pixel == 0 && s->out_pitch_bytes <= INT32_MAX;
}

static cox_status read_shape(struct cox_tonemap_shape *to, const struct cox_tonemap_shape *from)
{
    if (!from)
        return COX_E_INVALID;

    *to = *from;
    if (!shape_ok(to))
        return COX_E_INVALID;
    return COX_OK;
}

/* Append " -Dname=value". */
static char *add_define(char *at, const char *name, size_t value)
{
    memcpy(at, " -D", 3);
    at += 3;

    const size_t length = strlen(name);
    memcpy(at, name, length);
    at += length;
    *at++ = '=';

    char digits[24];
    int n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);

    while (n > 0)
        *at++ = digits[--n];

    *at = '\0';
    return at;
}

/* The longest line: every value at its largest. */
#define LONGEST_OPTIONS                                                                \
    "-w -DCOX_WIDTH=16 -DCOX_COLUMNS=65536 -DCOX_IN_FLOAT=1 -DCOX_IN_PITCH=2147483647" \
    " -DCOX_OUT_16=1 -DCOX_OUT_PITCH=2147483647 -DCOX_ITEM=65536 -DCOX_LOCAL=1"
_Static_assert(sizeof(LONGEST_OPTIONS) <= sizeof(((struct storage *)0)->options[0]), "options fit");

static char *shape_options(char *at, const struct cox_tonemap_shape *shape)
{
    at = add_define(at, "COX_COLUMNS", shape->width);
    at = add_define(at, "COX_IN_FLOAT", shape->in == COX_PIXEL_RGBA_FLOAT);
    return add_define(at, "COX_IN_PITCH", shape->in_pitch_bytes);
}

/* Without warnings (-w): for each of them PoCL's compiler writes to standard error, which no log
 * can catch. */
static char *input_options(char *at, const struct cox_tonemap_shape *shape, size_t width)
{
    *at++ = '-';
    *at++ = 'w';
    at = add_define(at, "COX_WIDTH", width);
    return shape_options(at, shape);
}

static void mapping_options(char *at, const struct cox_tonemap_shape *shape, size_t width,
                            size_t item)
{
    at = input_options(at, shape, width);
    at = add_define(at, "COX_OUT_16", shape->out == COX_PIXEL_RGBA16);
    at = add_define(at, "COX_OUT_PITCH", shape->out_pitch_bytes);
    at = add_define(at, "COX_LOCAL", shape->local);
    add_define(at, "COX_ITEM", item);
}

static void histogram_options(char *at, const struct cox_tonemap_shape *shape, size_t width,
                              size_t lanes, size_t group)
{
    at = input_options(at, shape, width);
    at = add_define(at, "COX_LANES", lanes);
    at = add_define(at, "COX_GROUP", group);
    add_define(at, "COX_ITEM_ROWS", HISTOGRAM_ROWS);
}

/* One stage with two variants: [0] for CPUs and [1] for everything else. */
static void fill_session(struct storage *storage, uint32_t height, uint32_t arg_count,
                         size_t params_bytes, struct cox__session_spec *session)
{
    storage->stage.variants = storage->variants;
    storage->stage.variant_count = 2;
    storage->stage.args = storage->args;
    storage->stage.arg_count = arg_count;

    session->rows = height;
    session->bindings = storage->bindings;
    session->binding_count = 2;
    session->stages = &storage->stage;
    session->stage_count = 1;
    session->params_bytes = params_bytes;
}

/* The variants of the kernel that maps. */
static void mapping_variants(const struct cox_tonemap_shape *shape, struct cox__variant variants[2],
                             char *cpu_options, char *gpu_options)
{
    mapping_options(cpu_options, shape, CPU_WIDTH, CPU_ITEM);
    mapping_options(gpu_options, shape, 1, 1);

    variants[0] = (struct cox__variant){.type = COX_DEVICE_CPU,
                                        .source = cox__source_tonemap_picture,
                                        .options = cpu_options,
                                        .local_columns = CPU_LOCAL,
                                        .local_rows = 1,
                                        .item_columns = CPU_ITEM,
                                        .item_rows = 1,
                                        .any_local = true};

    variants[1] = (struct cox__variant){.source = cox__source_tonemap_picture,
                                        .options = gpu_options,
                                        .local_columns = GPU_LOCAL,
                                        .local_rows = 1,
                                        .item_columns = 1,
                                        .item_rows = 1,
                                        .any_local = true};
}

static void map_in_one_pass(const struct cox_tonemap_shape *shape, struct storage *storage,
                            struct cox__session_spec *session)
{
    memset(storage, 0, sizeof(*storage));

    storage->bindings[0] = (struct cox__binding){.name = "input",
                                                 .row_access = COX__ROWS,
                                                 .access = COX__READ,
                                                 .pitch_bytes = shape->in_pitch_bytes,
                                                 .row_bytes = in_row_bytes(shape)};

    storage->bindings[1] = (struct cox__binding){.name = "output",
                                                 .row_access = COX__ROWS,
                                                 .access = COX__WRITE,
                                                 .coverage = COX__COVERS_ALL,
                                                 .pitch_bytes = shape->out_pitch_bytes,
                                                 .row_bytes = out_row_bytes(shape)};

    mapping_variants(shape, storage->variants, storage->options[0], storage->options[1]);
    storage->args[0] = (struct cox__arg)COX__ARG_BUFFER(0);
    storage->args[1] = (struct cox__arg)COX__ARG_BUFFER(1);
    storage->args[2] = (struct cox__arg){COX__ARG_KIND_PARAMS, 0, 0,
                                         offsetof(struct picture_params, surround)};
    storage->args[3] = (struct cox__arg)COX__ARG_ROWS;

    storage->stage = (struct cox__stage){.kernel = "picture", .columns = shape->width};
    fill_session(storage, shape->height, 4, PARAMS_BYTES, session);
}

/* The stage that reduces the picture to blocks. */
static void add_blocks(struct cox__plan *plan, const struct cox_tonemap_shape *shape,
                       const struct cox__local *local, uint32_t in, uint32_t moments)
{
    char options[2][160];
    const uint32_t side = 1u << local->block_log2;

    for (size_t i = 0; i < 2; i++)
        add_define(add_define(shape_options(options[i], shape), "COX_LOCAL", 1), "COX_ITEM", i);

    const struct cox__form cpu = {.vector = CPU_WIDTH,
                                  .item_columns = (uint32_t)local->width,
                                  .item_rows = side,
                                  .options = options[0]};
    const struct cox__form gpu = {
        .vector = 1, .local_columns = HISTOGRAM_GROUP, .item_rows = side, .options = options[1]};

    cox__plan_stage(plan, "blocks", cox__source_tonemap_blocks, (uint32_t)local->width,
                    (const uint32_t[]){in, moments}, 2, 0, sizeof(struct picture_params), &cpu,
                    &gpu);
}

static void map_in_passes(const struct cox_tonemap_shape *shape, struct cox__plan *plan,
                          struct cox__session_spec *session)
{
    const struct cox__local local = cox__local_of(shape->width, shape->height, 0);
    const uint32_t side = 1u << local.block_log2;
    const uint32_t in = cox__plan_binding(plan, "input", COX__READ, shape->in_pitch_bytes,
                                          shape->height, false);
    const uint32_t out = cox__plan_binding(plan, "output", COX__WRITE, shape->out_pitch_bytes,
                                           shape->height, false);
    const struct cox__local_scratch scratch = cox__local_bindings(plan, &local);
    cox__plan_row_bytes(plan, in, in_row_bytes(shape));
    cox__plan_row_bytes(plan, out, out_row_bytes(shape));

    cox__plan_pass(plan, "blocks", shape->height);
    cox__plan_use(plan, in, COX__ROWS, COX__READ, 0);
    cox__plan_use(plan, scratch.moments, COX__ROWS, COX__WRITE, 0);
    cox__plan_divide(plan, side);
    add_blocks(plan, shape, &local, in, scratch.moments);
    cox__local_passes(plan, &local, scratch, offsetof(struct picture_params, surround));

    cox__plan_pass(plan, "map", shape->height);
    cox__plan_use(plan, in, COX__ROWS, COX__READ, 0);
    cox__plan_use(plan, out, COX__ROWS, COX__WRITE, 0);
    cox__plan_use(plan, scratch.base, COX__HALO, COX__READ, 1);
    cox__plan_divide(plan, side);

    const uint32_t s = cox__plan_add_stage(plan, "picture", shape->width, 7);
    const struct cox__arg args[] = {COX__ARG_BUFFER(in),
                                    COX__ARG_BUFFER(out),
                                    COX__ARG_BUFFER(scratch.base),
                                    COX__ARG_ORIGIN(scratch.base),
                                    COX__ARG_FIRST_ROW,
                                    COX__ARG_PARAMS(struct picture_params),
                                    COX__ARG_ROWS};

    memcpy(plan->args[s], args, sizeof args);
    mapping_variants(shape, plan->variants[s], plan->options[s][0], plan->options[s][1]);
    cox__plan_end(plan, PARAMS_BYTES, session);
}

cox_status cox__tonemap_mapping(const struct cox_tonemap_shape *given,
                                struct cox__pipeline_storage *room,
                                struct cox__session_spec *session)
{
    struct cox_tonemap_shape shape;
    const cox_status status = read_shape(&shape, given);
    if (status)
        return status;
    if (!room || !session)
        return COX_E_INVALID;

    if (shape.local)
        map_in_passes(&shape, cox__plan_begin(room, session, shape.height), session);
    else
        map_in_one_pass(&shape, (struct storage *)room, session);
    return COX_OK;
}

/* Counts add up and the last word is a maximum, so the result is exact in any order. */
static void merge_histogram(void *into, const void *partial, size_t bytes, void *user)
{
    (void)user;
    (void)bytes;
    uint32_t *total = into;
    const uint32_t *part = partial;

    for (int i = 0; i <= COX_TONEMAP_HISTOGRAM_BINS; i++)
        total[i] += part[i];

    if (part[COX_TONEMAP_HISTOGRAM_BINS + 1] > total[COX_TONEMAP_HISTOGRAM_BINS + 1])
        total[COX_TONEMAP_HISTOGRAM_BINS + 1] = part[COX_TONEMAP_HISTOGRAM_BINS + 1];
}

cox_status cox__tonemap_analysis_spec(const struct cox_tonemap_shape *given,
                                      struct cox__pipeline_storage *room,
                                      struct cox__session_spec *session)
{
    struct cox_tonemap_shape copy;
    const struct cox_tonemap_shape *shape = &copy;
    struct storage *storage = (struct storage *)room;
    const cox_status status = read_shape(&copy, given);
    if (status)
        return status;
    /* The counts have 32 bits. */
    if (!storage || !session || (uint64_t)shape->width * shape->height > UINT32_MAX)
        return COX_E_INVALID;

    memset(storage, 0, sizeof(*storage));
    storage->bindings[0] = (struct cox__binding){.name = "input",
                                                 .row_access = COX__ROWS,
                                                 .access = COX__READ,
                                                 .pitch_bytes = shape->in_pitch_bytes,
                                                 .row_bytes = in_row_bytes(shape)};

    storage->bindings[1] = (struct cox__binding){.name = "histogram",
                                                 .row_access = COX__REDUCE,
                                                 .access = COX__WRITE,
                                                 .bytes = COX_TONEMAP_HISTOGRAM_BYTES,
                                                 .merge = merge_histogram};

    histogram_options(storage->options[0], shape, CPU_WIDTH, 1, 1);
    histogram_options(storage->options[1], shape, 1, HISTOGRAM_LANES, HISTOGRAM_GROUP);
    /* On a CPU one work-item takes whole rows. */
    storage->variants[0] = (struct cox__variant){.type = COX_DEVICE_CPU,
                                                 .source = cox__source_tonemap_histogram,
                                                 .options = storage->options[0],
                                                 .local_columns = 1,
                                                 .local_rows = 1,
                                                 .item_columns = HISTOGRAM_LANES,
                                                 .item_rows = HISTOGRAM_ROWS};

    storage->variants[1] = (struct cox__variant){.source = cox__source_tonemap_histogram,
                                                 .options = storage->options[1],
                                                 .local_columns = HISTOGRAM_GROUP,
                                                 .local_rows = 1,
                                                 .item_columns = 1,
                                                 .item_rows = HISTOGRAM_ROWS};

    storage->args[0] = (struct cox__arg)COX__ARG_BUFFER(0);
    storage->args[1] = (struct cox__arg)COX__ARG_BUFFER(1);
    storage->args[2] = (struct cox__arg)COX__ARG_ROWS;
    storage->stage = (struct cox__stage){.kernel = "histogram", .columns = HISTOGRAM_LANES};

    fill_session(storage, shape->height, 3, 0, session);
    return COX_OK;
}

/* --- Curves --- */

/* SDR white of a picture in cd/m2 (BT.2408). The curves of ITU-R reports and spline use it. */
enum { PEAK_DEFAULT = 10, WHITE_NITS = 203 };

/* Whether all settings are in range. Written so that a NaN fails. */
static bool settings_ok(const struct cox_tonemap_settings *settings)
{
    return fabsf(settings->exposure_stops) <= 64.0f && settings->peak >= 0.0f &&
           !isnan(settings->desaturate) && cox__local_detail_ok(settings->detail);
}

cox_status cox_tonemap_prepare(const struct cox_tonemap_shape *shape,
                               const struct cox_tonemap_settings *settings,
                               struct cox_constants *params)
{
    struct cox_tonemap_shape checked;
    const cox_status status = read_shape(&checked, shape);
    if (status)
        return status;

    if (!settings || !params)
        return COX_E_INVALID;
    if (!cox_operator_name(settings->op) || settings->op == COX_OPERATOR_HDR10PLUS)
        return COX_E_INVALID;
    if (checked.local != (settings->op == COX_OPERATOR_LOCAL))
        return COX_E_INVALID;
    if (!settings_ok(settings))
        return COX_E_INVALID;

    double peak = PEAK_DEFAULT, strength = 0.75;
    if (settings->peak != 0.0f)
        peak = (double)settings->peak;
    if (settings->desaturate != 0.0f)
        strength = fmin(fmax((double)settings->desaturate, 0.0), 1.0);

    /* Colours begin to fade where the curve leaves the middle of its range, but never below diffuse
     * white. */
    const struct cox__curve c = cox__curve_of(settings->op, peak, WHITE_NITS);
    const double fade = cox__curve_inverse(&c, 0.5, 1.0, 0x1p24);

    struct picture_params p = {.kind = (int32_t)c.kind,
                               .gain = (float)exp2((double)settings->exposure_stops),
                               .a0 = (float)c.a0,
                               .a1 = (float)c.a1,
                               .a2 = (float)c.a2,
                               .b0 = (float)c.b0,
                               .b1 = (float)c.b1,
                               .b2 = (float)c.b2,
                               .knee = (float)c.knee,
                               .fade = (float)fade,
                               .fade_speed = (float)(strength / fade),
                               .slope = (float)c.slope,
                               .start = (float)c.start,
                               .start_out = (float)c.start_out,
                               .inner = (float)c.inner,
                               .outer = (float)c.outer};

    cox__curve_bt2390(&c, &p.eetf);
    cox__curve_joined(&c, &p.joined);

    if (checked.local) {
        p.surround = cox__local_of(checked.width, checked.height, 0);
        cox__local_settings(&p.surround, &c, settings->detail);
    }

    memset(params, 0, PARAMS_BYTES);
    memcpy(params, &p, sizeof(p));
    return COX_OK;
}

/* --- Analysis --- */

enum { BINS_PER_STOP = 32, LOWEST_STOP = -16 };

/* The upper edge of the bin below which all but `above` pixels lie, or the largest luminance if
 * that is less. */
static float luminance_below(const uint32_t *histogram, uint64_t above)
{
    float largest;
    memcpy(&largest, &histogram[COX_TONEMAP_HISTOGRAM_BINS + 1], sizeof(largest));

    int bin = COX_TONEMAP_HISTOGRAM_BINS - 1;
    while (bin > 0 && histogram[bin] <= above)
        above -= histogram[bin--];

    /* The last bin has no upper edge. */
    const float edge = (float)exp2((bin + 1.0) / BINS_PER_STOP + LOWEST_STOP);
    if (bin == COX_TONEMAP_HISTOGRAM_BINS - 1 || edge > largest)
        return largest;
    return edge;
}

void cox_tonemap_read_analysis(const uint32_t *histogram, struct cox_tonemap_analysis *out)
{
    memset(out, 0, sizeof(*out));

    uint64_t lit = 0;
    double sum = 0; /* of log2, at the bins' centres */

    for (int i = 0; i < COX_TONEMAP_HISTOGRAM_BINS; i++) {
        lit += histogram[i];
        sum += histogram[i] * ((i + 0.5) / BINS_PER_STOP + LOWEST_STOP);
    }

    const uint64_t pixels = lit + histogram[COX_TONEMAP_HISTOGRAM_BINS];
    if (lit == 0)
        return;

    out->log_average = (float)exp2(sum / (double)lit);

    out->peak = luminance_below(histogram, pixels / 20000);
    out->highlight = luminance_below(histogram, pixels / 50);
}

void cox_tonemap_auto_exposure(const struct cox_tonemap_analysis *analysis,
                               struct cox_tonemap_settings *settings)
{
    if (!(analysis->log_average > 0.0f))
        return;

    const double grey = 0.18;
    double stops = log2(grey / (double)analysis->log_average);

    /* A night scene stays dark: lift no further than the highlights allow. */
    if (analysis->highlight > 0.0f)
        stops = fmin(stops, fmax(-log2((double)analysis->highlight), 0.0));

    /* Then add what the operator takes from middle grey. Its curve depends on the peak, which moves
     * with the exposure. The linear operator needs no lift: its result is the same at any
     * exposure. */
    double lift = 0;
    for (int i = 0; i < 8 && settings->op != COX_OPERATOR_LINEAR; i++) {
        const struct cox__curve c =
            cox__curve_of(settings->op, fmax((double)analysis->peak * exp2(stops + lift), 1.0),
                          WHITE_NITS);
        lift = log2(cox__curve_inverse(&c, grey, grey / 8, grey * 8) / grey);
    }

    stops = fmin(fmax(stops + lift + (double)settings->exposure_stops, -64.0), 64.0);
    settings->exposure_stops = (float)stops;
    settings->peak = (float)fmax((double)analysis->peak * exp2(stops), 1.0);
}
