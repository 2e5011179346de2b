/* Every kernel of the library in every variant, on small frames: for a simulator that looks at each access
 * (kernels.sh).
 *
 *   bits_kernels [--vectors | --scalars] [NAME]...    only this form; only kernels of these names: picture, histogram,
 *                                                     video
 *
 * Picture and histogram: each input, output and form. Video: each value of each build option, and each two values that
 * go together, together in one kernel at least; which those are is computed. The vector and the scalar form of a
 * variant must give the same bits, whole and cut into bands.
 *
 * The kernels are run by hand: all OpenCL calls come from one thread, since Oclgrind keeps what it knows of memory's
 * being initialised by thread; and each band has buffers of its own that end where its last row does, whereas the
 * runtime's go on to the end of the frame.
 *
 * Prints a line "bits KERNEL NUMBER SIZE HASH RUNS equal" (or DIFFERENT) for each variant, and "N passed, N failed".
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/pipeline.h"
#include "support/bits_device.h"
#include "support/random_splits.h"

#include <coxswain/tonemap.h>
#include <coxswain/video.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BANDS_MAX = 3, FORMS = 2 };

static struct {
    struct bits_device device;
    uint32_t passed, failed;
    int first_form, last_form; /* 0 = vectors, 1 = scalars */
} here = {.last_form = FORMS - 1};

static void *memory(size_t bytes)
{
    void *block = calloc(1, bytes);
    if (!block) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return block;
}

/* --- One kernel --------------------------------------------------------------------------------------------------- */

/* A session's frame in host memory. */
struct frame {
    struct cox__pipeline pipeline;
    const void *params;
    unsigned char *planes[COX_BINDINGS_MAX];
    size_t row_bytes[COX_BINDINGS_MAX]; /* of a written binding: what of a row counts */
};

static bool is_input(const struct cox_binding *binding)
{
    return binding->access == COX_READ;
}

/* Make room for the frame; what is read is drawn by `fill`. */
static void frame_open(struct frame *frame, const struct cox_session_params *session, const void *params,
                       void (*fill)(void *plane, size_t bytes, uint64_t *seed), uint64_t seed)
{
    static const struct cox__log silent = {.level = COX_LOG_ERROR};
    *frame = (struct frame){.params = params};
    bits_need(cox__pipeline_init(&frame->pipeline, session, &silent), "cox__pipeline_init");
    for (uint32_t i = 0; i < frame->pipeline.binding_count; i++) {
        size_t bytes = frame->pipeline.bytes[i];
        frame->planes[i] = memory(bytes);
        if (is_input(&frame->pipeline.passes[0].bindings[i]))
            fill(frame->planes[i], bytes, &seed);
    }
}

static void frame_close(struct frame *frame)
{
    for (uint32_t i = 0; i < frame->pipeline.binding_count; i++)
        free(frame->planes[i]);
    cox__pipeline_clear(&frame->pipeline);
}

static void set_args(const struct frame *frame, cl_kernel kernel, uint32_t first_row, uint32_t rows, const cl_mem *mems,
                     const uint32_t *origins)
{
    const struct cox_stage *stage = &frame->pipeline.passes[0].stages[0];
    for (uint32_t a = 0; a < stage->arg_count; a++) {
        const struct cox_arg *arg = &stage->args[a];
        cl_int number = 0;
        const void *value = &number;
        size_t bytes = sizeof number;
        switch (arg->kind) {
        case COX_ARG_KIND_BUFFER:
            value = &mems[arg->index];
            bytes = sizeof *mems;
            break;
        case COX_ARG_KIND_PARAMS:
            value = (const char *)frame->params + arg->offset;
            bytes = arg->bytes;
            break;
        case COX_ARG_KIND_FIRST:
            number = (cl_int)first_row;
            break;
        case COX_ARG_KIND_ROWS:
            number = (cl_int)rows;
            break;
        case COX_ARG_KIND_ORIGIN:
            number = (cl_int)origins[arg->index];
            break;
        default:
            fprintf(stderr, "argument %u is of a kind that no kernel had\n", a);
            exit(1);
        }
        bits_need(clSetKernelArg(kernel, a, bytes, value), "clSetKernelArg");
    }
}

/* Rows [first_row, first_row + rows) in buffers of just that size. */
static void run_band(struct frame *frame, const struct cox_variant *variant, cl_kernel kernel, uint32_t first_row,
                     uint32_t rows)
{
    const struct cox__pass *pipeline = &frame->pipeline.passes[0];
    cl_mem mems[COX_BINDINGS_MAX];
    uint32_t origins[COX_BINDINGS_MAX] = {0};
    size_t at[COX_BINDINGS_MAX] = {0}, bytes[COX_BINDINGS_MAX];
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        bytes[i] = binding->bytes;
        if (cox__by_rows(binding)) {
            uint32_t count;
            cox__binding_rows(pipeline, i, first_row, rows, &origins[i], &count);
            at[i] = origins[i] * binding->pitch_bytes;
            bytes[i] = count * binding->pitch_bytes;
        }
        cl_int code;
        mems[i] = clCreateBuffer(here.device.context, is_input(binding) ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE,
                                 bytes[i], NULL, &code);
        bits_need(code, "clCreateBuffer");
        /* What is written by rows stays uninitialised: reading it would be told. */
        if (is_input(binding) || binding->contract == COX_REDUCE)
            bits_need(clEnqueueWriteBuffer(here.device.queue, mems[i], CL_TRUE, 0, bytes[i], frame->planes[i] + at[i],
                                           0, NULL, NULL),
                      "clEnqueueWriteBuffer");
    }
    set_args(frame, kernel, first_row, rows, mems, origins);
    const size_t local[2] = {variant->local_columns, variant->local_rows};
    const size_t global[2] = {
        bits_global_size(pipeline->stages[0].columns, variant->item_columns, variant->local_columns),
        bits_global_size(rows, variant->item_rows, variant->local_rows),
    };
    bits_need(clEnqueueNDRangeKernel(here.device.queue, kernel, 2, NULL, global, local, 0, NULL, NULL),
              "clEnqueueNDRangeKernel");
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        if (!is_input(&pipeline->bindings[i]))
            bits_need(clEnqueueReadBuffer(here.device.queue, mems[i], CL_TRUE, 0, bytes[i], frame->planes[i] + at[i], 0,
                                          NULL, NULL),
                      "clEnqueueReadBuffer");
        clReleaseMemObject(mems[i]);
    }
}

/* FNV-1a of what was written, without padding; then it is forgotten. */
static uint64_t take_hash(struct frame *frame)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (uint32_t i = 0; i < frame->pipeline.binding_count; i++) {
        const struct cox_binding *binding = &frame->pipeline.passes[0].bindings[i];
        size_t bytes = frame->pipeline.bytes[i];
        size_t pitch = cox__by_rows(binding) ? binding->pitch_bytes : bytes;
        size_t used = cox__by_rows(binding) ? frame->row_bytes[i] : bytes;
        if (is_input(binding))
            continue;
        for (size_t at = 0; at < bytes; at++)
            if (at % pitch < used)
                hash = (hash ^ frame->planes[i][at]) * UINT64_C(0x100000001B3);
        memset(frame->planes[i], 0, bytes);
    }
    return hash;
}

/* Both forms of the pipeline's kernel, whole and in bands; `*hash` is the first one's. */
static bool run_forms(struct frame *frame, uint64_t *hash, uint32_t *runs)
{
    const struct cox_stage *stage = &frame->pipeline.passes[0].stages[0];
    bool equal = true;
    *runs = 0;
    for (int form = here.first_form; form <= here.last_form; form++) {
        const struct cox_variant *variant = &stage->variants[form];
        const struct cox_device_info info = {.type = form == 0 ? COX_DEVICE_CPU : COX_DEVICE_GPU,
                                             .base_align_bytes = 1};
        uint32_t rows = frame->pipeline.passes[0].rows;
        frame->pipeline.passes[0].granule = cox__pass_granule(&frame->pipeline.passes[0], 0, &info);
        cl_kernel kernel = bits_device_build(&here.device, stage, variant);
        for (uint32_t bands = 1; bands <= BANDS_MAX; bands += 2) {
            uint32_t step = rows / bands / frame->pipeline.passes[0].granule * frame->pipeline.passes[0].granule;
            for (uint32_t first = 0; first < rows;) {
                uint32_t left = rows - first;
                uint32_t count = step && left >= 2 * step ? step : left;
                run_band(frame, variant, kernel, first, count);
                first += count;
            }
            uint64_t found = take_hash(frame);
            if ((*runs)++ == 0)
                *hash = found;
            equal &= found == *hash;
        }
        clReleaseKernel(kernel);
    }
    return equal;
}

static void tell(const char *kernel, uint32_t number, uint32_t width, uint32_t height, uint64_t hash, uint32_t runs,
                 bool equal)
{
    char size[32];
    snprintf(size, sizeof size, "%ux%u", width, height);
    printf("bits %s %u %s %016" PRIx64 " %u %s\n", kernel, number, size, hash, runs, equal ? "equal" : "DIFFERENT");
    equal ? here.passed++ : here.failed++;
}

static const uint32_t sizes[][2] = {{1, 1}, {3, 5}, {37, 21}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* --- Pictures ----------------------------------------------------------------------------------------------------- */

/* Light from 2^-12 up, some of it negative, infinite or no number. */
static void fill_halves(void *plane, size_t bytes, uint64_t *seed)
{
    uint16_t *half = plane;
    for (size_t i = 0; i < bytes / 2; i++)
        half[i] = (uint16_t)(random_below(seed, 16) ? random_below(seed, 0x5000) : random_below(seed, 0x10000));
}

static void fill_floats(void *plane, size_t bytes, uint64_t *seed)
{
    uint32_t *bits = plane;
    for (size_t i = 0; i < bytes / 4; i++)
        bits[i] = random_below(seed, 16) ? 0x3A000000 + random_below(seed, 0x0A000000) : (uint32_t)random_next(seed);
}

static void run_picture(bool histogram, uint32_t *number, const struct cox_tonemap_shape *shape, enum cox_operator op)
{
    static struct cox_tonemap_storage storage;
    struct cox_session_params session = {0};
    struct cox_tonemap_params params;
    const struct cox_tonemap_settings settings = {.op = op};
    struct frame frame;
    uint64_t hash = 0;
    uint32_t runs;
    bits_need(histogram ? cox_tonemap_analysis(shape, &storage, &session)
                        : cox_tonemap_mapping(shape, &storage, &session),
              "the pipeline");
    bits_need(cox_tonemap_prepare(shape, &settings, &params), "cox_tonemap_prepare");
    frame_open(&frame, &session, &params, shape->in == COX_PIXEL_RGBA_FLOAT ? fill_floats : fill_halves, 1 + *number);
    frame.row_bytes[1] = shape->width * (shape->out == COX_PIXEL_RGBA16 ? 8 : 4);
    bool equal = run_forms(&frame, &hash, &runs);
    tell(session.stages[0].kernel, (*number)++, shape->width, shape->height, hash, runs, equal);
    frame_close(&frame);
}

static void run_pictures(bool histogram)
{
    uint32_t number = 0;
    for (int in = 0; in < 2; in++)
        for (int out = 0; out < (histogram ? 1 : 2); out++)
            for (size_t s = 0; s < SIZES; s++)
                for (int op = 0; op < (histogram || s + 1 < SIZES ? 1 : COX_OPERATOR_LOCAL); op++) {
                    struct cox_tonemap_shape shape = {.width = sizes[s][0],
                                                      .height = sizes[s][1],
                                                      .in = (enum cox_pixel_in)in,
                                                      .out = (enum cox_pixel_out)out};
                    shape.in_pitch_bytes = shape.width * (in ? 16 : 8);
                    shape.out_pitch_bytes = shape.width * (out ? 8 : 4);
                    run_picture(histogram, &number, &shape, (enum cox_operator)op);
                }
}

/* --- Films -------------------------------------------------------------------------------------------------------- */

/* What a video kernel is built for, as one number for each choice. */
enum {
    IN_KIND,
    IN_SUB,
    IN_SITE,
    IN_RANGE,
    OUT_KIND,
    OUT_SUB,
    OUT_SITE,
    OUT_RANGE,
    TRANSFER,
    PRIMARIES,
    CURVE,
    FADE,
    DITHER,
    GAMUT,
    SCALE,
    WORK, /* map, map and count, count */
    CHOICES
};
static const uint32_t choices[CHOICES] = {
    [IN_KIND] = 13, [IN_SUB] = 3,    [IN_SITE] = 3,  [IN_RANGE] = 2,  [OUT_KIND] = 9, [OUT_SUB] = 3,
    [OUT_SITE] = 3, [OUT_RANGE] = 2, [TRANSFER] = 3, [PRIMARIES] = 2, [CURVE] = 4,    [FADE] = 2,
    [DITHER] = 2,   [GAMUT] = 2,     [SCALE] = 2,    [WORK] = 3,
};
enum { V210_IN = 12, VALUES_MAX = 13, VARIANTS_MAX = 400 };

struct variant {
    uint8_t value[CHOICES];
};

static void make_format(struct cox_video_format *format, const struct cox_video_format *kind, uint32_t sub,
                        uint32_t site, uint32_t range)
{
    *format = *kind;
    format->chroma_x_log2 = sub > 0;
    format->chroma_y_log2 = sub > 1;
    format->site = (enum cox_chroma_site)site;
    format->range = (enum cox_range)range;
}

/* Of the given size out. False: no such thing. A choice that means nothing for the others' sake has its first value
 * only. */
static bool make_shape(const struct variant *variant, uint32_t width, uint32_t height, struct cox_video_shape *shape)
{
    static const struct cox_video_format in_kinds[] = {
        {.depth = 8},
        {.depth = 10},
        {.depth = 12, .high_bits = true},
        {.depth = 16},
        {.layout = COX_VIDEO_SEMI_PLANAR, .depth = 8},
        {.layout = COX_VIDEO_SEMI_PLANAR, .depth = 10},
        {.layout = COX_VIDEO_SEMI_PLANAR, .depth = 10, .high_bits = true},
        {.layout = COX_VIDEO_SEMI_PLANAR, .depth = 16},
        {.layout = COX_VIDEO_RGBA, .depth = 16},
        {.layout = COX_VIDEO_BGRA, .depth = 8},
        {.layout = COX_VIDEO_GBR, .depth = 8},
        {.layout = COX_VIDEO_GBR, .depth = 10},
        {.layout = COX_VIDEO_V210, .depth = 10},
    };
    static const struct cox_video_format out_kinds[] = {
        {.depth = 8},
        {.depth = 10},
        {.depth = 16},
        {.layout = COX_VIDEO_SEMI_PLANAR, .depth = 8},
        {.layout = COX_VIDEO_SEMI_PLANAR, .depth = 10, .high_bits = true},
        {.layout = COX_VIDEO_RGBA, .depth = 8},
        {.layout = COX_VIDEO_RGBA, .depth = 16},
        {.layout = COX_VIDEO_BGRA, .depth = 8},
        {.layout = COX_VIDEO_GBR, .depth = 10},
    };
    static const enum cox_operator curves[] = {COX_OPERATOR_CLIP, COX_OPERATOR_HABLE, COX_OPERATOR_MOBIUS,
                                               COX_OPERATOR_BT2390};
    const uint8_t *v = variant->value;
    *shape = (struct cox_video_shape){.width = width << v[SCALE],
                                      .height = height << v[SCALE],
                                      .transfer = (enum cox_transfer)v[TRANSFER],
                                      .primaries = (enum cox_primaries)v[PRIMARIES],
                                      .op = curves[v[CURVE]],
                                      .fade = v[FADE],
                                      .dither = (enum cox_dither)v[DITHER],
                                      .gamut = (enum cox_gamut)v[GAMUT],
                                      .scale = (enum cox_video_scale)v[SCALE]};
    make_format(&shape->in, &in_kinds[v[IN_KIND]], v[IN_SUB], v[IN_SITE], v[IN_RANGE]);
    make_format(&shape->out, &out_kinds[v[OUT_KIND]], v[OUT_SUB], v[OUT_SITE], v[OUT_RANGE]);
    if ((!v[IN_SUB] && v[IN_SITE]) || (!v[OUT_SUB] && v[OUT_SITE]))
        return false;
    for (int output = 0; output < 2; output++) {
        struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
        uint32_t count = output ? cox_video_planes(&shape->out, width, height, planes)
                                : cox_video_planes(&shape->in, shape->width, shape->height, planes);
        for (uint32_t p = 0; p < count; p++)
            (output ? shape->out_pitch_bytes : shape->in_pitch_bytes)[p] = (planes[p].row_bytes + 3) / 4 * 4;
    }
    struct cox_video_params params;
    return cox_video_prepare(shape, &(const struct cox_video_settings){0}, &params) == COX_OK;
}

/* Which two values stand together in a variant that was chosen. */
static bool paired[CHOICES][VALUES_MAX][CHOICES][VALUES_MAX];

/* How many pairs of the variant are new; they count as old from then on if `keep`. */
static uint32_t new_pairs(const struct variant *variant, bool keep)
{
    uint32_t count = 0;
    for (uint32_t a = 0; a < CHOICES; a++)
        for (uint32_t b = a + 1; b < CHOICES; b++) {
            bool *pair = &paired[a][variant->value[a]][b][variant->value[b]];
            count += !*pair;
            *pair |= keep;
        }
    return count;
}

static bool draw_variant(uint64_t *seed, struct variant *variant)
{
    struct cox_video_shape shape;
    for (uint32_t c = 0; c < CHOICES; c++)
        variant->value[c] = (uint8_t)random_below(seed, choices[c]);
    return make_shape(variant, 8, 8, &shape);
}

/* Each time the variant that brings most new pairs, of many drawn; until none of very many brings one. */
static uint32_t choose_variants(struct variant *chosen)
{
    uint64_t seed = 7;
    uint32_t count = 0;
    while (count < VARIANTS_MAX) {
        struct variant best = {{0}}, drawn;
        uint32_t most = 0;
        for (uint32_t tries = 0; tries < 3000 || (most == 0 && tries < 2000000); tries++) {
            uint32_t news = draw_variant(&seed, &drawn) ? new_pairs(&drawn, false) : 0;
            if (news > most) {
                most = news;
                best = drawn;
            }
        }
        if (most == 0)
            break;
        new_pairs(&best, true);
        chosen[count++] = best;
    }
    return count;
}

/* Codes of every size: all bits are drawn. As half floats they are mostly light, with what is no number among it. */
static void fill_codes(void *plane, size_t bytes, uint64_t *seed)
{
    uint16_t *words = plane;
    for (size_t i = 0; i < bytes / 2; i++)
        words[i] = (uint16_t)random_next(seed);
}

static void run_film(const struct variant *variant, uint32_t number, uint32_t width, uint32_t height)
{
    static struct cox_video_storage storage;
    struct cox_session_params session = {0};
    struct cox_video_shape shape;
    struct cox_video_params params;
    struct frame frame;
    uint64_t hash = 0;
    uint32_t runs, work = variant->value[WORK];
    if (!make_shape(variant, width, height, &shape)) {
        fprintf(stderr, "variant %u cannot be made\n", number);
        exit(1);
    }
    bits_need(work == 2 ? cox_video_analysis(&shape, &storage, &session)
                        : cox_video_mapping(&shape, work == 1, &storage, &session),
              "the pipeline");
    bits_need(cox_video_prepare(&shape, &(const struct cox_video_settings){0}, &params), "cox_video_prepare");
    frame_open(&frame, &session, &params, fill_codes, 1 + number);
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    uint32_t ins = cox_video_planes(&shape.in, shape.width, shape.height, planes);
    uint32_t outs = work == 2 ? 0 : cox_video_planes(&shape.out, width, height, planes);
    for (uint32_t p = 0; p < outs; p++)
        frame.row_bytes[ins + p] = planes[p].row_bytes;
    bool equal = run_forms(&frame, &hash, &runs);
    tell("video", number, width, height, hash, runs, equal);
    if (!equal)
        printf("    %s\n", session.stages[0].variants[0].options);
    frame_close(&frame);
}

static void run_films(void)
{
    static struct variant chosen[VARIANTS_MAX];
    uint32_t count = choose_variants(chosen);
    for (uint32_t i = 0; i < count; i++)
        run_film(&chosen[i], i, sizes[SIZES - 1][0], sizes[SIZES - 1][1]);
    /* Vectors of v210 are read from wider frames only. */
    for (uint32_t i = 0; i < count; i++)
        if (chosen[i].value[IN_KIND] == V210_IN)
            run_film(&chosen[i], i, 145 + i % 6, 5);
    /* Sizes are no build options: one variant in eight on the small ones. */
    for (uint32_t i = 0; i < count; i += 8)
        for (size_t s = 0; s + 1 < SIZES; s++)
            run_film(&chosen[i], i, sizes[s][0], sizes[s][1]);
    printf("video: %u variants\n", count);
}

int main(int argc, char **argv)
{
    bool picture = false, histogram = false, video = false;
    for (int a = 1; a < argc; a++) {
        picture |= !strcmp(argv[a], "picture");
        histogram |= !strcmp(argv[a], "histogram");
        video |= !strcmp(argv[a], "video");
        if (!strcmp(argv[a], "--vectors"))
            here.last_form = 0;
        if (!strcmp(argv[a], "--scalars"))
            here.first_form = 1;
    }
    if (!picture && !histogram && !video)
        picture = histogram = video = true;
    bits_device_open(&here.device);
    if (picture)
        run_pictures(false);
    if (histogram)
        run_pictures(true);
    if (video)
        run_films();
    bits_device_close(&here.device);
    printf("%u passed, %u failed\n", here.passed, here.failed);
    return here.failed || !here.passed;
}
