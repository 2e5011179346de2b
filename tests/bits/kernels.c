/* Runs every kernel of the library in every variant on small frames. It is made for a simulator that checks each
 * access (kernels.sh). The filters also run on PoCL (filter_kernels.sh).
 *
 *   bits_kernels [--vectors | --scalars] [NAME]...
 *
 * --vectors and --scalars select one form. NAMEs select kernels: picture, histogram, video, filter.
 *   Picture and histogram: each input, output and form.
 *   Video: each value of each build option, and each pair of values that can be combined, in at least one
 *     kernel. The program computes these combinations.
 *   Filters: the cases of support/ref_filter_case.c on planes of at most 40 x 40, against the reference.
 *
 * The vector and the scalar form of a variant must give the same bits, for the whole frame and for bands.
 *
 * The program calls OpenCL itself, for two reasons. Oclgrind tracks initialised memory per thread, so all calls
 * come from one thread. And each band has buffers that hold exactly its rows, whereas the runtime's buffers hold
 * the whole frame.
 *
 * It prints a line "bits KERNEL NUMBER SIZE HASH RUNS equal" (or DIFFERENT) for each variant, and "N passed, N
 * failed".
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "engine/pipeline.h"
#include "support/bits_device.h"
#include "support/random_splits.h"
#include "support/ref_filter_case.h"
#include "support/ref_tonemap_case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BANDS_MAX = 3, FORMS = 2, FILTER_SIDE = 40 };

static struct {
    struct bits_device device;
    uint32_t passed, failed;
    int first_form, last_form; /* 0 = vectors, 1 = scalars */
} here = {.last_form = FORMS - 1};

/* --- A band ------------------------------------------------------------------------------------------------------- */

/* A session's frame in host memory. */
struct run {
    struct cox__pipeline pipeline;
    const void *params;
    struct bits_frame *frame;
    uint8_t *data[COX_BUFFERS_MAX]; /* of each binding, also scratch */
};

/* A part of a binding, in a buffer of exactly that size. */
struct part {
    cl_mem mem;
    uint32_t origin; /* first row */
    size_t at, bytes;
};

static void copy_in(const struct part *part, const uint8_t *from)
{
    bits_need(clEnqueueWriteBuffer(here.device.queue, part->mem, CL_TRUE, 0, part->bytes, from, 0, NULL, NULL),
              "clEnqueueWriteBuffer");
}

static void copy_out(const struct part *part, uint8_t *to)
{
    bits_need(clEnqueueReadBuffer(here.device.queue, part->mem, CL_TRUE, 0, part->bytes, to, 0, NULL, NULL),
              "clEnqueueReadBuffer");
}

/* A buffer that the pass writes by rows is not initialised, so that the simulator reports reads before writes. */
static struct part part_open(const struct run *run, const struct cox__pass *pass, uint32_t index, uint32_t first_row,
                             uint32_t rows)
{
    const struct cox__binding *binding = &pass->bindings[index];
    struct part part = {.bytes = binding->bytes};
    if (cox__by_rows(binding)) {
        uint32_t count;
        cox__pipeline_binding_rows(pass, index, first_row, rows, &part.origin, &count);
        part.at = part.origin * binding->pitch_bytes;
        part.bytes = count * binding->pitch_bytes;
    }
    cl_int code;
    part.mem = clCreateBuffer(here.device.context, binding->access == COX__READ ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE,
                              part.bytes, NULL, &code);
    bits_need(code, "clCreateBuffer");
    if (binding->access == COX__READ || binding->row_access == COX__REDUCE)
        copy_in(&part, run->data[index] + part.at);
    return part;
}

static void set_args(const struct run *run, const struct cox__stage *stage, cl_kernel kernel, uint32_t first_row,
                     uint32_t rows, const struct part *parts)
{
    for (uint32_t a = 0; a < stage->arg_count; a++) {
        const struct cox__arg *arg = &stage->args[a];
        cl_int number = 0;
        const void *value = &number;
        size_t bytes = sizeof number;
        switch (arg->kind) {
        case COX__ARG_KIND_BUFFER:
            value = &parts[arg->index].mem;
            bytes = sizeof(cl_mem);
            break;
        case COX__ARG_KIND_PARAMS:
            value = (const char *)run->params + arg->offset;
            bytes = arg->bytes;
            break;
        case COX__ARG_KIND_FIRST:
            number = (cl_int)first_row;
            break;
        case COX__ARG_KIND_ROWS:
            number = (cl_int)rows;
            break;
        case COX__ARG_KIND_ORIGIN:
            number = (cl_int)parts[arg->index].origin;
            break;
        default:
            fprintf(stderr, "argument %u is of a kind that no kernel had\n", a);
            exit(1);
        }
        bits_need(clSetKernelArg(kernel, a, bytes, value), "clSetKernelArg");
    }
}

/* Copy the stage's output to the host and back: Oclgrind does not see that one kernel initialised memory for
 * threads of the next. The last buffer among a stage's arguments is its output. */
static void take_round(const struct cox__stage *stage, const struct part *parts)
{
    const struct part *written = NULL;
    for (uint32_t a = 0; a < stage->arg_count; a++)
        if (stage->args[a].kind == COX__ARG_KIND_BUFFER)
            written = &parts[stage->args[a].index];
    uint8_t *memory = bits_memory(written->bytes);
    copy_out(written, memory);
    copy_in(written, memory);
    free(memory);
}

static void run_band(const struct run *run, const struct cox__pass *pass, int form, cl_kernel *kernels,
                     uint32_t first_row, uint32_t rows)
{
    struct part parts[COX_BUFFERS_MAX] = {{0}};
    for (uint32_t i = 0; i < pass->binding_count; i++)
        if (pass->bindings[i].row_access != COX__UNUSED)
            parts[i] = part_open(run, pass, i, first_row, rows);

    for (uint32_t s = 0; s < pass->stage_count; s++) {
        const struct cox__stage *stage = &pass->stages[s];
        const struct cox__variant *variant = &stage->variants[form];
        const uint32_t extent = pass->extents[s], first = first_row > extent ? first_row - extent : 0;
        const uint32_t end = first_row + rows + extent < pass->rows ? first_row + rows + extent : pass->rows;
        const size_t local[2] = {variant->local_columns, variant->local_rows};
        const size_t global[2] = {
            bits_global_size(stage->columns, variant->item_columns, variant->local_columns),
            bits_global_size(end - first, variant->item_rows, variant->local_rows),
        };
        set_args(run, stage, kernels[s], first, end - first, parts);
        bits_need(clEnqueueNDRangeKernel(here.device.queue, kernels[s], 2, NULL, global, local, 0, NULL, NULL),
                  "clEnqueueNDRangeKernel");
        if (s + 1 < pass->stage_count)
            take_round(stage, parts);
    }

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        if (pass->bindings[i].access == COX__WRITE && parts[i].mem)
            copy_out(&parts[i], run->data[i] + parts[i].at);
        if (parts[i].mem)
            clReleaseMemObject(parts[i].mem);
    }
}

/* --- A frame ------------------------------------------------------------------------------------------------------ */

/* Overwrite the outputs and clear the sums. */
static void forget(const struct run *run)
{
    bits_frame_spoil(run->frame, NULL);
    for (uint32_t i = 0; i < run->pipeline.binding_count; i++)
        for (uint32_t p = 0; p < run->pipeline.pass_count; p++)
            if (run->pipeline.passes[p].bindings[i].row_access == COX__REDUCE)
                memset(run->data[i], 0, run->pipeline.bytes[i]);
}

static void run_pass(const struct run *run, const struct cox__pass *pass, int form, cl_kernel *kernels, uint32_t bands)
{
    const struct cox_device_info info = {.type = form == 0 ? COX_DEVICE_CPU : COX_DEVICE_GPU, .base_align_bytes = 1};
    const uint32_t row_alignment = cox__pipeline_pass_row_alignment(pass, 0, &info);
    const uint32_t step = (pass->rows / bands + row_alignment - 1) / row_alignment * row_alignment;
    for (uint32_t first = 0, count; first < pass->rows; first += count) {
        const uint32_t left = pass->rows - first;
        count = step && bands > 1 && left > step ? step : left;
        run_band(run, pass, form, kernels, first, count);
    }
}

/* Run the whole frame, then three bands or so. Returns false if a result differs from the first one. */
static bool run_form(const struct run *run, int form, cl_kernel *kernels, uint64_t *hash, uint32_t *runs)
{
    bool equal = true;
    for (uint32_t bands = 1; bands <= BANDS_MAX; bands += 2) {
        forget(run);
        for (uint32_t p = 0; p < run->pipeline.pass_count; p++)
            run_pass(run, &run->pipeline.passes[p], form, &kernels[p * COX_FUSED_MAX], bands);
        uint8_t *result = bits_frame_result(run->frame);
        const uint64_t found = bits_hash(result, bits_frame_bytes(run->frame));
        free(result);
        *hash = (*runs)++ ? *hash : found;
        equal &= found == *hash;
    }
    return equal;
}

/* Run both forms of the pipeline's kernels, for the whole frame and in bands. The last result stays in the frame. */
static bool run_frame(const char *name, uint32_t number, uint32_t width, uint32_t height, struct bits_frame *frame,
                      const struct cox__session_spec *session, const void *params)
{
    static const struct cox__log silent = {.level = COX_LOG_ERROR};
    struct run run = {.params = params, .frame = frame};
    uint64_t hash = 0;
    uint32_t runs = 0;
    bool equal = true;
    bits_need(cox__pipeline_init(&run.pipeline, session, &silent), "cox__pipeline_init");
    for (uint32_t i = 0; i < run.pipeline.binding_count; i++)
        run.data[i] = frame->planes[i].data ? frame->planes[i].data : bits_memory(run.pipeline.bytes[i] + 1);

    for (int form = here.first_form; form <= here.last_form; form++) {
        cl_kernel kernels[COX_PASSES_MAX * COX_FUSED_MAX] = {0};
        for (uint32_t p = 0; p < run.pipeline.pass_count; p++)
            for (uint32_t k = 0; k < run.pipeline.passes[p].stage_count; k++) {
                const struct cox__stage *stage = &run.pipeline.passes[p].stages[k];
                kernels[p * COX_FUSED_MAX + k] = bits_device_build(&here.device, stage, &stage->variants[form]);
            }
        equal &= run_form(&run, form, kernels, &hash, &runs);
        for (uint32_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++)
            if (kernels[k])
                clReleaseKernel(kernels[k]);
    }

    for (uint32_t i = 0; i < run.pipeline.binding_count; i++)
        if (!frame->planes[i].data)
            free(run.data[i]);
    cox__pipeline_clear(&run.pipeline);
    printf("bits %s %u %ux%u %016" PRIx64 " %u %s\n", name, number, width, height, hash, runs,
           equal ? "equal" : "DIFFERENT");
    equal ? here.passed++ : here.failed++;
    return equal;
}

static const uint32_t sizes[][2] = {{1, 1}, {3, 5}, {37, 21}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Fills an input with random data. */
typedef void fill_fn(void *plane, size_t bytes, uint64_t *seed);

static void fill_inputs(struct bits_frame *frame, fill_fn *fill, uint64_t seed)
{
    for (uint32_t p = 0; p < frame->count && frame->planes[p].data; p++)
        if (!frame->planes[p].written)
            fill(frame->planes[p].data, frame->planes[p].pitch_bytes * frame->planes[p].rows, &seed);
}

/* --- Pictures ----------------------------------------------------------------------------------------------------- */

/* Light from 2^-12 up, some of it negative, infinite or NaN. */
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

static void run_pictures(bool histogram)
{
    uint32_t number = 0;
    for (int in = 0; in < 2; in++)
        for (int out = 0; out < (histogram ? 1 : 2); out++)
            for (size_t s = 0; s < SIZES; s++)
                for (int op = 0; op < (histogram || s + 1 < SIZES ? 1 : COX_OPERATOR_LOCAL); op++, number++) {
                    const struct cox_tonemap_shape shape = {.width = sizes[s][0],
                                                            .height = sizes[s][1],
                                                            .in = (enum cox_pixel_in)in,
                                                            .out = (enum cox_pixel_out)out};
                    const struct cox_tonemap_settings settings = {.op = (enum cox_operator)op};
                    struct cox_constants params;
                    struct ref_picture picture;
                    ref_picture_open(&picture, NULL, &shape, histogram, 0, NULL);
                    fill_inputs(&picture.frame, in ? fill_floats : fill_halves, 1 + number);
                    bits_need(cox_tonemap_prepare(&picture.shape, &settings, &params), "cox_tonemap_prepare");
                    run_frame(picture.session.stages[0].kernel, number, shape.width, shape.height, &picture.frame,
                              &picture.session, &params);
                    ref_picture_close(&picture);
                }
}

/* --- Films -------------------------------------------------------------------------------------------------------- */

/* The build options of a video kernel, as one number each. */
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
    ENCODING,
    SCALE,
    WORK, /* map, map and count, count */
    CHOICES
};
_Static_assert((int)CHOICES == (int)RANDOM_PAIRS_CHOICES, "pairs of all choices");
static const uint32_t choices[CHOICES] = {
    [IN_KIND] = 13, [IN_SUB] = 3,    [IN_SITE] = 3,  [IN_RANGE] = 2,  [OUT_KIND] = 9, [OUT_SUB] = 3,
    [OUT_SITE] = 3, [OUT_RANGE] = 2, [TRANSFER] = 4, [PRIMARIES] = 2, [CURVE] = 5,    [FADE] = 2,
    [DITHER] = 2,   [GAMUT] = 3,     [ENCODING] = 3, [SCALE] = 2,     [WORK] = 3,
};
enum { V210_IN = 12, VARIANTS_MAX = 400 };

struct variant {
    uint8_t value[CHOICES];
};

static void make_format(struct cox_video_format *format, const struct cox_video_format *kind, uint32_t sub,
                        uint32_t site, uint32_t range)
{
    *format = *kind;
    format->chroma_x_log2 = sub > 0;
    format->chroma_y_log2 = sub > 1;
    format->chroma_location = (enum cox_chroma_location)site;
    format->range = (enum cox_color_range)range;
}

/* The shape of a variant with an output of this size. Returns false if the combination is impossible. An option
 * without effect in this combination must have its first value. */
static bool make_shape(const struct variant *variant, uint32_t width, uint32_t height, struct cox_video_shape *shape)
{
    static const struct cox_video_format in_kinds[] = {
        {.depth = 8},
        {.depth = 10},
        {.depth = 12, .msb_aligned = true},
        {.depth = 16},
        {.layout = COX_VIDEO_SEMI_PLANAR, .depth = 8},
        {.layout = COX_VIDEO_SEMI_PLANAR, .depth = 10},
        {.layout = COX_VIDEO_SEMI_PLANAR, .depth = 10, .msb_aligned = true},
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
        {.layout = COX_VIDEO_SEMI_PLANAR, .depth = 10, .msb_aligned = true},
        {.layout = COX_VIDEO_RGBA, .depth = 8},
        {.layout = COX_VIDEO_RGBA, .depth = 16},
        {.layout = COX_VIDEO_BGRA, .depth = 8},
        {.layout = COX_VIDEO_GBR, .depth = 10},
    };
    static const enum cox_operator curves[] = {COX_OPERATOR_CLIP, COX_OPERATOR_HABLE, COX_OPERATOR_MOBIUS,
                                               COX_OPERATOR_BT2390, COX_OPERATOR_SPLINE};
    const uint8_t *v = variant->value;
    *shape = (struct cox_video_shape){.width = width << v[SCALE],
                                      .height = height << v[SCALE],
                                      .transfer = (enum cox_transfer)v[TRANSFER],
                                      .primaries = (enum cox_primaries)v[PRIMARIES],
                                      .op = curves[v[CURVE]],
                                      .desaturate_highlights = v[FADE],
                                      .dither = (enum cox_dither)v[DITHER],
                                      .gamut = (enum cox_gamut)v[GAMUT],
                                      .encoding = (enum cox_encoding)v[ENCODING],
                                      .scale = (enum cox_video_scale)v[SCALE]};
    make_format(&shape->in, &in_kinds[v[IN_KIND]], v[IN_SUB], v[IN_SITE], v[IN_RANGE]);
    make_format(&shape->out, &out_kinds[v[OUT_KIND]], v[OUT_SUB], v[OUT_SITE], v[OUT_RANGE]);
    if ((!v[IN_SUB] && v[IN_SITE]) || (!v[OUT_SUB] && v[OUT_SITE]))
        return false;
    if (shape->transfer == COX_TRANSFER_SDR && (v[CURVE] || v[FADE]))
        return false;
    for (int output = 0; output < 2; output++) {
        struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
        uint32_t count = output ? cox_video_planes(&shape->out, width, height, planes)
                                : cox_video_planes(&shape->in, shape->width, shape->height, planes);
        for (uint32_t p = 0; p < count; p++)
            (output ? shape->out_pitch_bytes : shape->in_pitch_bytes)[p] = (planes[p].row_bytes + 3) / 4 * 4;
    }
    struct cox_constants params;
    return cox_video_prepare(shape, &(const struct cox_video_settings){0}, &params) == COX_OK;
}

static bool draw_variant(uint64_t *seed, struct variant *variant)
{
    struct cox_video_shape shape;
    for (uint32_t c = 0; c < CHOICES; c++)
        variant->value[c] = (uint8_t)random_below(seed, choices[c]);
    return make_shape(variant, 8, 8, &shape);
}

/* Choose variants. Of many random ones it takes the one with most new pairs of values, until very many bring none. */
static uint32_t choose_variants(struct variant *chosen)
{
    static struct random_pairs pairs;
    uint64_t seed = 7;
    uint32_t count = 0;
    while (count < VARIANTS_MAX) {
        struct variant best = {{0}}, drawn;
        uint32_t most = 0;
        for (uint32_t tries = 0; tries < 3000 || (most == 0 && tries < 2000000); tries++) {
            uint32_t news = draw_variant(&seed, &drawn) ? random_pairs_new(&pairs, drawn.value, false) : 0;
            if (news > most) {
                most = news;
                best = drawn;
            }
        }
        if (most == 0)
            break;
        random_pairs_new(&pairs, best.value, true);
        chosen[count++] = best;
    }
    return count;
}

/* Random bits, so codes of every size. As half floats they are mainly light, with some NaN. */
static void fill_codes(void *plane, size_t bytes, uint64_t *seed)
{
    uint16_t *words = plane;
    for (size_t i = 0; i < bytes / 2; i++)
        words[i] = (uint16_t)random_next(seed);
}

static void run_film(const struct variant *variant, uint32_t number, uint32_t width, uint32_t height)
{
    static const enum ref_pipeline works[] = {REF_MAPPING, REF_MAPPING_AND_ANALYSIS, REF_ANALYSIS};
    const struct cox_video_settings settings = {0};
    struct cox_video_shape shape;
    struct cox_constants params;
    struct ref_film film;
    bits_need(make_shape(variant, width, height, &shape) ? COX_OK : COX_E_INVALID, "a variant");
    ref_film_open(&film, NULL, &shape, works[variant->value[WORK]], 0, NULL);
    fill_inputs(&film.frame, fill_codes, 1 + number);
    bits_need(cox_video_prepare(&film.shape, &settings, &params), "cox_video_prepare");
    if (!run_frame("video", number, width, height, &film.frame, &film.session, &params))
        printf("    %s\n", film.session.stages[0].variants[0].options);
    ref_film_close(&film);
}

static void run_films(void)
{
    static struct variant chosen[VARIANTS_MAX];
    uint32_t count = choose_variants(chosen);
    for (uint32_t i = 0; i < count; i++)
        run_film(&chosen[i], i, sizes[SIZES - 1][0], sizes[SIZES - 1][1]);
    /* v210 is read by vectors only in wider frames. */
    for (uint32_t i = 0; i < count; i++)
        if (chosen[i].value[IN_KIND] == V210_IN)
            run_film(&chosen[i], i, 145 + i % 6, 5);
    /* Sizes are not build options, so one variant in eight suffices for the small ones. */
    for (uint32_t i = 0; i < count; i += 8)
        for (size_t s = 0; s + 1 < SIZES; s++)
            run_film(&chosen[i], i, sizes[s][0], sizes[s][1]);
    printf("video: %u variants\n", count);
}

/* --- Filters ------------------------------------------------------------------------------------------------------ */

static void run_filters(void)
{
    for (uint32_t number = 0; number < filter_case_count; number++) {
        const struct filter_case *about = &filter_cases[number];
        struct filter_test test;
        char text[128];
        bits_need(filter_test_open(&test, NULL, about, 16, FILTER_SIDE), about->name);
        run_frame(about->name, number, test.shape.width, test.shape.height, &test.frame, &test.session, &test.params);
        uint8_t *result = bits_frame_result(&test.frame);
        if (!filter_test_judge(&test, result, text, sizeof text)) {
            printf("    %s is not the reference's: %s\n", about->name, text);
            here.failed++;
        }
        free(result);
        filter_test_close(&test);
    }
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"picture", "histogram", "video", "filter"};
    bool wanted[4] = {false}, some = false;
    for (int a = 1; a < argc; a++) {
        for (int n = 0; n < 4; n++)
            wanted[n] |= !strcmp(argv[a], names[n]);
        some |= argv[a][0] != '-';
        if (!strcmp(argv[a], "--vectors"))
            here.last_form = 0;
        if (!strcmp(argv[a], "--scalars"))
            here.first_form = 1;
    }
    bits_device_open(&here.device);
    if (!some || wanted[0])
        run_pictures(false);
    if (!some || wanted[1])
        run_pictures(true);
    if (!some || wanted[2])
        run_films();
    if (!some || wanted[3])
        run_filters();
    bits_device_close(&here.device);
    printf("%u passed, %u failed\n", here.passed, here.failed);
    return here.failed || !here.passed;
}
