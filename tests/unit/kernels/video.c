/* The video kernels through the public interface, on every OpenCL device there is, against the double-precision
 * reference.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/ref_tonemap.h"
#include "support/random_splits.h"
#include "support/ref_video.h"
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(video, .timeout = 1200);

enum { GUARD_BYTES = 4096, GUARD = 0xa5 };

/* --- Devices ------------------------------------------------------------------------------------------------------ */

static char last_log[4096];

static void keep_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    (void)level;
    snprintf(last_log, sizeof(last_log), "%s", line);
}

/* Mesa's software device plays the GPU where it is installed. Kernels are kept, since there are as many as there are
 * formats. */
static cox_runtime *open_devices(void)
{
    setenv("RUSTICL_ENABLE", "llvmpipe", 0);
    setenv("RUSTICL_DEVICE_TYPE", "gpu", 0);
    const struct cox_runtime_params params = {
        .devices = getenv("TEST_VIDEO_DEVICES"), .cache_dir = getenv("COX_TEST_KERNELS"), .log = keep_log};
    cox_runtime *runtime = NULL;
    const cox_status status = cox_runtime_create(&runtime, &params);
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE)
        cr_skip_test("skipped, because there is no OpenCL device");
    cr_assert_eq(status, COX_OK, "%s: %s", cox_status_name(status), last_log);
    return runtime;
}

static const char *device_name(cox_runtime *runtime, uint32_t device)
{
    static struct cox_device_info info;
    cr_assert_eq(cox_runtime_device_info(runtime, device, &info, sizeof info), COX_OK);
    return info.name;
}

/* Kernels take long to compile, and that devices agree to the bit is a test of its own: elsewhere they take turns. */
static uint32_t next_device(cox_runtime *runtime)
{
    static uint32_t turn;
    return turn++ % cox_runtime_device_count(runtime);
}

static uint32_t next_number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static uint32_t below(uint32_t *state, uint32_t bound)
{
    return next_number(state) % bound;
}

/* --- Formats ------------------------------------------------------------------------------------------------------ */

enum { SUB_420 = 0, SUB_422 = 1, SUB_444 = 2 };

static bool is_packed_rgb(enum cox_video_layout layout)
{
    return layout == COX_VIDEO_RGBA || layout == COX_VIDEO_BGRA;
}

static bool is_rgb(enum cox_video_layout layout)
{
    return is_packed_rgb(layout) || layout == COX_VIDEO_GBR;
}

static struct cox_video_format format_of(enum cox_video_layout layout, uint32_t depth, int sub,
                                         enum cox_chroma_site site, enum cox_range range)
{
    return (struct cox_video_format){.layout = layout,
                                     .depth = depth,
                                     .high_bits = layout == COX_VIDEO_SEMI_PLANAR && depth > 8 && depth < 16,
                                     .chroma_x_log2 = sub != SUB_444,
                                     .chroma_y_log2 = sub == SUB_420,
                                     .site = site,
                                     .range = is_packed_rgb(layout) ? COX_RANGE_FULL : range};
}

static const char *shape_text(const struct cox_video_shape *s)
{
    static char text[256];
    static const char *const layouts[] = {"planar", "semi", "rgba", "bgra", "gbr", "v210"},
                             *const transfers[] = {"PQ", "HLG", "linear"}, *const subs[] = {"420", "422", "444"},
                             *const sites[] = {"left", "centre", "top-left"};
    const struct cox_video_format *f[2] = {&s->in, &s->out};
    int at = snprintf(text, sizeof(text), "%s %s %s %ux%u%s%s", cox_operator_name(s->op), transfers[s->transfer],
                      s->primaries == COX_PRIMARIES_BT709 ? "709" : "2020", s->width, s->height,
                      s->fade     ? s->dither ? " fade dither" : " fade"
                      : s->dither ? " dither"
                                  : "",
                      s->scale == COX_SCALE_FILTER ? " filtered"
                      : s->scale                   ? " halved"
                      : s->gamut                   ? " compress"
                                                   : "");
    for (int i = 0; i < 2; i++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s %s %s%s %s %u", i ? " to" : ":", layouts[f[i]->layout],
                       subs[f[i]->chroma_x_log2 + f[i]->chroma_y_log2 == 2 ? 0 : 2 - f[i]->chroma_x_log2],
                       sites[f[i]->site], f[i]->range ? " full" : "", f[i]->depth);
    return text;
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

struct frame {
    struct cox_video_shape shape;
    uint32_t in_count, out_count;
    struct cox_video_plane in_planes[COX_VIDEO_PLANES_MAX], out_planes[COX_VIDEO_PLANES_MAX];
    cox_buffer *in[COX_VIDEO_PLANES_MAX];
    cox_buffer *out[COX_VIDEO_PLANES_MAX]; /* the end of each is followed by GUARD_BYTES */
    cox_buffer *histogram;
};

enum { ALIGNED = 1000 };

/* Each row padded to whole words, and so many words more; or as the runtime likes it best, so that cuts are free. */
static size_t pitch_of(const cox_runtime *runtime, size_t row_bytes, size_t words)
{
    return words == ALIGNED ? cox_runtime_pitch_bytes(runtime, row_bytes) : ((row_bytes + 3) / 4 + words) * 4;
}

/* Of a plane in. */
static size_t in_pitch_of(const cox_runtime *runtime, const struct cox_video_format *format, size_t row_bytes,
                          size_t words)
{
    const size_t pitch = pitch_of(runtime, row_bytes, words);
    return format->layout == COX_VIDEO_V210 ? (pitch + 15) / 16 * 16 : pitch;
}

static struct frame frame_new(cox_runtime *runtime, const struct cox_video_shape *shape, size_t words)
{
    struct frame frame = {.shape = *shape};
    frame.in_count = cox_video_planes(&shape->in, shape->width, shape->height, frame.in_planes);
    uint32_t width, height;
    ref_video_size(shape, &width, &height);
    frame.out_count = cox_video_planes(&shape->out, width, height, frame.out_planes);
    cr_assert_gt(frame.in_count, 0, "%s", shape_text(shape));
    cr_assert_gt(frame.out_count, 0, "%s", shape_text(shape));
    for (uint32_t p = 0; p < frame.in_count; p++) {
        const size_t pitch = in_pitch_of(runtime, &shape->in, frame.in_planes[p].row_bytes, words);
        frame.shape.in_pitch_bytes[p] = pitch;
        cr_assert_eq(cox_buffer_create(runtime, pitch * frame.in_planes[p].rows, &frame.in[p]), COX_OK);
        memset(cox_buffer_data(frame.in[p]), 0xff, pitch * frame.in_planes[p].rows);
    }
    for (uint32_t p = 0; p < frame.out_count; p++) {
        const size_t pitch = pitch_of(runtime, frame.out_planes[p].row_bytes, words);
        const size_t bytes = pitch * frame.out_planes[p].rows + GUARD_BYTES;
        frame.shape.out_pitch_bytes[p] = pitch;
        cr_assert_eq(cox_buffer_create(runtime, bytes, &frame.out[p]), COX_OK);
        memset(cox_buffer_data(frame.out[p]), GUARD, bytes);
    }
    cr_assert_eq(cox_buffer_create(runtime, COX_VIDEO_HISTOGRAM_BYTES, &frame.histogram), COX_OK);
    return frame;
}

static void frame_free(struct frame *frame)
{
    for (int p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        cox_buffer_destroy(&frame->in[p]);
        cox_buffer_destroy(&frame->out[p]);
    }
    cox_buffer_destroy(&frame->histogram);
}

static void put_sample(const struct frame *frame, uint32_t plane, uint32_t row, size_t index, uint32_t code)
{
    const struct cox_video_format *format = &frame->shape.in;
    uint8_t *at = (uint8_t *)cox_buffer_data(frame->in[plane]) + row * frame->shape.in_pitch_bytes[plane];
    if (format->depth == 8) {
        at[index] = (uint8_t)code;
        return;
    }
    if (format->layout == COX_VIDEO_V210) { /* the code, another one, and what no code has */
        const uint32_t three = code | ((code * 5 + row) & 1023) << 10 | (code ^ 1023) << 20 | (uint32_t)index << 30;
        memcpy(at + 4 * index, &three, 4);
        return;
    }
    const uint16_t word = (uint16_t)(format->high_bits ? code << (16 - format->depth) : code);
    memcpy(at + 2 * index, &word, 2);
}

static void in_planes_of(const struct frame *frame, void *planes[COX_VIDEO_PLANES_MAX])
{
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++)
        planes[p] = p < frame->in_count ? cox_buffer_data(frame->in[p]) : NULL;
}

/* Codes of a colour. Linear: halves of the light itself. */
static void encode(const struct cox_video_shape *shape, const double rgb[3], uint32_t codes[3])
{
    const struct cox_video_format *f = &shape->in;
    const double kr = shape->primaries == COX_PRIMARIES_BT709 ? .2126 : .2627;
    const double kb = shape->primaries == COX_PRIMARIES_BT709 ? .0722 : .0593;
    const double luma = kr * rgb[0] + (1 - kr - kb) * rgb[1] + kb * rgb[2];
    const double cb = (rgb[2] - luma) / (2 - 2 * kb), cr = (rgb[0] - luma) / (2 - 2 * kr);
    const double step = 1u << (f->depth - 8), largest = (1u << f->depth) - 1;
    const bool full = f->range == COX_RANGE_FULL;
    for (int i = 0; i < 3 && is_rgb(f->layout); i++)
        codes[i] = shape->transfer == COX_TRANSFER_LINEAR
                       ? ref_to_half(rgb[i])
                       : (uint32_t)lrint(full ? rgb[i] * largest : step * (16 + 219 * rgb[i]));
    if (is_rgb(f->layout))
        return;
    codes[0] = (uint32_t)lrint(full ? luma * largest : step * (16 + 219 * luma));
    codes[1] = (uint32_t)lrint(fmin(step * 128 + cb * (full ? largest : 224 * step), largest));
    codes[2] = (uint32_t)lrint(fmin(step * 128 + cr * (full ? largest : 224 * step), largest));
}

static void put_colour(const struct frame *frame, uint32_t x, uint32_t y, const double rgb[3])
{
    const struct cox_video_format *format = &frame->shape.in;
    uint32_t codes[3];
    void *planes[COX_VIDEO_PLANES_MAX];
    encode(&frame->shape, rgb, codes);
    in_planes_of(frame, planes);
    ref_video_put_part(&frame->shape, planes, 0, x, y, codes[0]);
    const uint32_t i = x >> format->chroma_x_log2, j = y >> format->chroma_y_log2;
    if (i << format->chroma_x_log2 != x || j << format->chroma_y_log2 != y)
        return;
    ref_video_put_part(&frame->shape, planes, 1, i, j, codes[1]);
    ref_video_put_part(&frame->shape, planes, 2, i, j, codes[2]);
}

static void fill_colour(const struct frame *frame, const double rgb[3])
{
    for (uint32_t y = 0; y < frame->shape.height; y++)
        for (uint32_t x = 0; x < frame->shape.width; x++)
            put_colour(frame, x, y, rgb);
}

enum stripe { STRIPE_NOISE = 0, STRIPE_RAMP = 1, STRIPE_BLOCKS = 2, STRIPE_EXTREMES = 3, STRIPES = 4 };

static enum stripe stripe_of(uint32_t y, uint32_t seed)
{
    return (enum stripe)((y / 8 + seed) % STRIPES);
}

/* Any code, within the depth; now and then none that the range has; in halves any bits. */
static uint32_t noise_code(const struct cox_video_shape *shape, enum stripe stripe, uint32_t *seed)
{
    const struct cox_video_format *format = &shape->in;
    static const uint16_t halves[] = {0,      0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0xfe01,
                                      0x0001, 0x03ff, 0x7bff, 0xfbff, 0x3bff, 0x3c01, 0x0400, 0x8400};
    const uint32_t largest = (1u << format->depth) - 1, step = 1u << (format->depth - 8);
    if (stripe == STRIPE_NOISE)
        return below(seed, 1u << format->depth);
    if (shape->transfer == COX_TRANSFER_LINEAR)
        return halves[below(seed, 16)];
    const uint32_t codes[] = {0, 1, largest, largest - 1, 16 * step, 235 * step, 240 * step, 128 * step};
    return codes[below(seed, 8)];
}

/* Eight rows each of noise, a ramp of grey, blocks of saturated colours, and the ends of the scale. */
static void fill_frame(const struct frame *frame, uint32_t seed)
{
    uint32_t state = seed * 7919 + 1;
    for (uint32_t p = 0; p < frame->in_count; p++) {
        const struct cox_video_plane *plane = &frame->in_planes[p];
        for (uint32_t row = 0; row < plane->rows; row++) {
            const enum stripe stripe = stripe_of(row * plane->row_divisor, seed);
            for (size_t i = 0; i < plane->row_bytes / plane->sample_bytes; i++)
                put_sample(frame, p, row, i, noise_code(&frame->shape, stripe, &state));
        }
    }
    for (uint32_t y = 0; y < frame->shape.height; y++) {
        for (uint32_t x = 0; x < frame->shape.width; x++) {
            const enum stripe stripe = stripe_of(y, seed);
            uint32_t block = (y / 4 * 977 + x / 4) * 31 + seed;
            double rgb[3];
            for (int i = 0; i < 3; i++)
                rgb[i] = stripe == STRIPE_RAMP ? (x + 0.5) / frame->shape.width : below(&block, 5) / 4.0;
            if (frame->shape.transfer == COX_TRANSFER_LINEAR)
                for (int i = 0; i < 3; i++)
                    rgb[i] = rgb[i] > 0 ? exp2(rgb[i] * 28 - 16) : 0;
            if (stripe == STRIPE_RAMP || stripe == STRIPE_BLOCKS)
                put_colour(frame, x, y, rgb);
        }
    }
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

enum variant { VARIANT_OWN = -1, VARIANT_VECTOR = 0, VARIANT_SCALAR = 1 };
enum pipeline { MAPPING, MAPPING_AND_ANALYSIS, ANALYSIS };
enum { ALL_DEVICES = UINT32_MAX };

/* The bands that sessions on all devices were cut into so far. */
static uint32_t bands_made;

static void count_bands(void *user, const struct cox_frame_report *report)
{
    (void)user;
    bands_made += report->band_count;
}

static cox_session *session_new(cox_runtime *runtime, const struct frame *frame, enum pipeline pipeline,
                                enum variant variant, uint32_t device)
{
    struct cox_video_storage storage;
    struct cox_session_params params = {.no_warmup = true, .device_timeout_ns = 60000000000 /* a busy machine */};
    const cox_status made = pipeline == ANALYSIS
                                ? cox_video_analysis(&frame->shape, &storage, &params)
                                : cox_video_mapping(&frame->shape, pipeline == MAPPING_AND_ANALYSIS, &storage, &params);
    cr_assert_eq(made, COX_OK, "%s", shape_text(&frame->shape));
    struct cox_stage stage;
    struct cox_variant only;
    if (variant != VARIANT_OWN) {
        stage = params.stages[0];
        only = stage.variants[variant == VARIANT_SCALAR];
        only.type = 0;
        stage.variants = &only;
        stage.variant_count = 1;
        params.stages = &stage;
    }
    if (device == ALL_DEVICES) {
        random_splits_begin(0, 0);
        params.custom_policy = &random_splits_policy;
        params.report = count_bands;
    } else {
        params.policy = "single";
        params.devices = &device;
        params.device_count = 1;
    }
    cox_session *session = NULL;
    last_log[0] = '\0';
    const cox_status status = cox_session_create(runtime, &params, &session);
    cr_assert_eq(status, COX_OK, "%s: %s: %s", shape_text(&frame->shape), cox_status_name(status), last_log);
    return session;
}

static void run_in(cox_session *session, const struct frame *frame, enum pipeline pipeline,
                   const struct cox_video_settings *settings)
{
    cox_buffer *buffers[COX_BINDINGS_MAX] = {NULL};
    uint32_t count = 0;
    struct cox_video_params params;
    cr_assert_eq(cox_video_prepare(&frame->shape, settings, &params), COX_OK, "%s", shape_text(&frame->shape));
    for (uint32_t p = 0; p < frame->in_count; p++)
        buffers[count++] = frame->in[p];
    for (uint32_t p = 0; p < frame->out_count && pipeline != ANALYSIS; p++) {
        memset(cox_buffer_data(frame->out[p]), GUARD,
               frame->shape.out_pitch_bytes[p] * frame->out_planes[p].rows + GUARD_BYTES);
        buffers[count++] = frame->out[p];
    }
    if (pipeline != MAPPING) {
        memset(cox_buffer_data(frame->histogram), GUARD, COX_VIDEO_HISTOGRAM_BYTES);
        buffers[count++] = frame->histogram;
    }
    count += ref_video_scratch(&frame->shape) + (frame->shape.op == COX_OPERATOR_LOCAL ? 3 : 0);
    const cox_status status =
        cox_session_run(session, &(struct cox_frame){.buffers = buffers, .buffer_count = count, .params = &params});
    cr_assert_eq(status, COX_OK, "%s: %s: %s", shape_text(&frame->shape), cox_status_name(status), last_log);
}

static void run(cox_runtime *runtime, const struct frame *frame, enum pipeline pipeline,
                const struct cox_video_settings *settings, enum variant variant, uint32_t device)
{
    cox_session *session = session_new(runtime, frame, pipeline, variant, device);
    run_in(session, frame, pipeline, settings);
    cox_session_destroy(&session);
}

/* --- Judging ------------------------------------------------------------------------------------------------------ */

struct error {
    double codes;   /* largest distance from the reference's real number, beyond what rounding or dither moves it */
    uint32_t steps; /* largest distance from the reference's code */
    uint32_t plane, x, y, got;
    double wanted;
    uint32_t off, samples; /* with another code than the reference's, of so many */
};

static void add_error(struct error *to, const struct error *from)
{
    const double codes = fmax(to->codes, from->codes);
    const uint32_t off = to->off + from->off, samples = to->samples + from->samples;
    if (from->steps >= to->steps)
        *to = *from;
    to->codes = codes;
    to->off = off;
    to->samples = samples;
}

static void input_of(const struct frame *frame, const void *in[COX_VIDEO_PLANES_MAX])
{
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++)
        in[p] = p < frame->in_count ? cox_buffer_data(frame->in[p]) : NULL;
}

static uint32_t output_at(const struct frame *frame, uint32_t plane, size_t index, uint32_t y)
{
    return ref_video_sample(&frame->shape.out, cox_buffer_data(frame->out[plane]), frame->shape.out_pitch_bytes[plane],
                            index, y);
}

static struct error judge_plane(const struct frame *frame, const struct ref_video *ref, const double *real, uint32_t p)
{
    const struct cox_video_format *format = &frame->shape.out;
    const struct ref_plane plane = ref_video_plane(format, ref->width, ref->height, p);
    struct error worst = {0};
    for (uint32_t y = 0; y < plane.height; y++) {
        for (size_t i = 0; i < (size_t)plane.width * plane.channels; i++) {
            const uint32_t x = (uint32_t)(i / plane.channels), got = output_at(frame, p, i, y);
            const double wanted = real[y * (size_t)plane.width * plane.channels + i];
            const uint32_t code = ref_video_code(ref, wanted, x, y);
            /* The numbers that become this code lie in an interval of one. */
            const double up = format->depth && ref->shape.dither ? (ref_bayer(x & 7, y & 7) + 0.5) / 64 : 0.5;
            const double lowest = got - up, highest = lowest + 1;
            const struct error error = {.codes = fmax(fmax(lowest - wanted, wanted - highest), 0),
                                        .steps = got > code ? got - code : code - got,
                                        .plane = p,
                                        .x = x,
                                        .y = y,
                                        .got = got,
                                        .wanted = wanted,
                                        .off = got != code,
                                        .samples = 1};
            add_error(&worst, &error);
        }
    }
    return worst;
}

static struct error judge(const struct frame *frame, const struct cox_video_settings *settings)
{
    struct ref_video ref;
    const void *in[COX_VIDEO_PLANES_MAX];
    double *real[COX_VIDEO_PLANES_MAX];
    struct error worst = {0};
    ref_video_init(&ref, &frame->shape, settings);
    input_of(frame, in);
    cr_assert(ref_video_map(&ref, in, real), "no memory");
    for (uint32_t p = 0; p < frame->out_count; p++) {
        const struct error error = judge_plane(frame, &ref, real[p], p);
        add_error(&worst, &error);
        free(real[p]);
    }
    return worst;
}

/* What the project promises: one code of 8 bits, two of 10. Beyond that nothing but a bound: two and a half of 10. */
static uint32_t promise(uint32_t depth)
{
    return depth < 10 ? 1 : depth == 10 ? 2 : 5u << (depth - 11);
}

static const char *error_text(const struct error *error)
{
    static char text[128];
    snprintf(text, sizeof(text), "%u codes, plane %u (%u, %u) is %u, should be %.3f", error->steps, error->plane,
             error->x, error->y, error->got, error->wanted);
    return text;
}

static bool guards_intact(const struct frame *frame)
{
    for (uint32_t p = 0; p < frame->out_count; p++) {
        const uint8_t *out = cox_buffer_data(frame->out[p]);
        const size_t pitch = frame->shape.out_pitch_bytes[p];
        for (uint32_t y = 0; y < frame->out_planes[p].rows; y++)
            for (size_t i = frame->out_planes[p].row_bytes; i < pitch; i++)
                if (out[y * pitch + i] != GUARD)
                    return false;
        for (size_t i = 0; i < GUARD_BYTES; i++)
            if (out[pitch * frame->out_planes[p].rows + i] != GUARD)
                return false;
    }
    return true;
}

/* Bits of a sample that belong to no code are 0. */
static bool low_bits_clear(const struct frame *frame)
{
    const uint32_t depth = frame->shape.out.depth;
    for (uint32_t p = 0; p < frame->out_count && frame->shape.out.high_bits; p++)
        for (uint32_t y = 0; y < frame->out_planes[p].rows; y++)
            for (size_t i = 0; i < frame->out_planes[p].row_bytes; i += 2) {
                uint16_t word;
                memcpy(&word, (const char *)cox_buffer_data(frame->out[p]) + y * frame->shape.out_pitch_bytes[p] + i,
                       2);
                if (word & ((1u << (16 - depth)) - 1))
                    return false;
            }
    return true;
}

static void expect_right(const struct frame *frame, const struct cox_video_settings *settings, const char *device,
                         struct error *worst)
{
    const struct error error = judge(frame, settings);
    cr_expect_leq(error.steps, promise(frame->shape.out.depth), "%s, %s: %s", device, shape_text(&frame->shape),
                  error_text(&error));
    if (frame->shape.out.depth <= 10 && error.samples >= 1000) /* else a wrong rounding would pass */
        cr_expect_lt(error.off, 0.06 * error.samples, "%s, %s: %u of %u codes are not the reference's", device,
                     shape_text(&frame->shape), error.off, error.samples);
    cr_expect(guards_intact(frame), "%s, %s: bytes outside the rows were written", device, shape_text(&frame->shape));
    cr_expect(low_bits_clear(frame), "%s, %s: bits below the sample are set", device, shape_text(&frame->shape));
    add_error(worst, &error);
}

/* --- Against the reference ---------------------------------------------------------------------------------------- */

static const struct {
    uint32_t width, height;
    size_t words;
} sizes[] = {{1, 1, 0}, {2, 2, 1}, {3, 5, 0}, {33, 2, 0}, {67, 35, 3}, {64, 32, 0}, {131, 33, 0}, {200, 40, 5}};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static const enum cox_operator operators[] = {COX_OPERATOR_HABLE, COX_OPERATOR_REINHARD, COX_OPERATOR_MOBIUS,
                                              COX_OPERATOR_ACES,  COX_OPERATOR_LINEAR,   COX_OPERATOR_CLIP,
                                              COX_OPERATOR_BT2390};
enum { OPERATORS = sizeof(operators) / sizeof(operators[0]) };

static const uint32_t depths[] = {8, 10, 12, 16, 9, 14};

/* The input's format from the arguments, everything else at random. */
static void draw_shape(uint32_t *seed, enum cox_operator op, enum cox_transfer transfer, enum cox_range range, int sub,
                       struct cox_video_shape *shape)
{
    static const uint32_t likely[] = {8, 8, 10, 10, 10, 12, 16, 9, 14};
    const uint32_t in_depth = likely[below(seed, 9)], out_depth = likely[below(seed, 9)];
    const bool in_semi = sub == SUB_420 && below(seed, 3) == 0;
    /* Chroma is subsampled further or as much; 4:2:0 most of the time, since it is what there is. */
    const int out_sub = sub == SUB_420 || below(seed, 2) == 0 ? SUB_420 : (int)below(seed, (uint32_t)sub + 1);
    enum cox_video_layout out_layout = below(seed, 4) == 0 ? COX_VIDEO_RGBA : COX_VIDEO_PLANAR;
    if (out_layout == COX_VIDEO_PLANAR && out_sub == SUB_420 && below(seed, 3) == 0)
        out_layout = COX_VIDEO_SEMI_PLANAR;
    const uint32_t size = below(seed, 3) == 0 ? below(seed, 4) : 4 + below(seed, SIZES - 4);
    shape->width = sizes[size].width;
    shape->height = sizes[size].height;
    shape->transfer = transfer;
    shape->op = op;
    shape->primaries = below(seed, 3) == 0 ? COX_PRIMARIES_BT709 : COX_PRIMARIES_BT2020;
    shape->fade = below(seed, 2) == 0;
    shape->dither = below(seed, 3) == 0 ? COX_DITHER_ORDERED : COX_DITHER_NONE;
    shape->gamut = *seed >> 9 & 1 ? COX_GAMUT_COMPRESS : COX_GAMUT_CLIP;
    shape->in = format_of(in_semi ? COX_VIDEO_SEMI_PLANAR : COX_VIDEO_PLANAR, in_depth, sub,
                          (enum cox_chroma_site)below(seed, 3), range);
    shape->out = format_of(out_layout, out_layout == COX_VIDEO_RGBA ? 8u << below(seed, 2) : out_depth,
                           out_layout == COX_VIDEO_RGBA ? SUB_444 : out_sub, (enum cox_chroma_site)below(seed, 3),
                           (enum cox_range)below(seed, 2));
}

static void draw_settings(uint32_t *seed, struct cox_video_settings *settings)
{
    static const float whites[] = {0, 100, 203, 80}, peaks[] = {0, 1000, 4000, 300, 10000},
                       gains[] = {0, 0, 0.5f, 1.7f}, desaturations[] = {0, -1, 1, 0.2f},
                       displays[] = {0, 1000, 400, 2000, 100}, knees[] = {0, 0.5f, 0.95f, 0.25f};
    settings->sdr_white_nits = whites[below(seed, 4)];
    settings->peak_nits = peaks[below(seed, 5)];
    settings->hlg_peak_nits = displays[below(seed, 5)];
    settings->gain = gains[below(seed, 4)];
    settings->desaturate = desaturations[below(seed, 4)];
    settings->gamut_knee = knees[*seed >> 11 & 3];
}

/* Every operator, range and subsampling with this transfer. */
static void compare_all(enum cox_transfer transfer)
{
    cox_runtime *runtime = open_devices();
    struct error worst[OPERATORS][17];
    memset(worst, 0, sizeof(worst));
    uint32_t seed = 17 + transfer;
    for (int op = 0; op < OPERATORS; op++) {
        for (int format = 0; format < 6; format++) {
            struct cox_video_shape shape = {0};
            struct cox_video_settings settings = {0};
            draw_shape(&seed, operators[op], transfer, (enum cox_range)(format / 3), format % 3, &shape);
            struct frame frame = frame_new(runtime, &shape, below(&seed, 3));
            const uint32_t device = next_device(runtime);
            cox_session *session = session_new(runtime, &frame, MAPPING, VARIANT_OWN, device);
            for (uint32_t picture = 0; picture < 8; picture++) {
                fill_frame(&frame, picture);
                draw_settings(&seed, &settings);
                run_in(session, &frame, MAPPING, &settings);
                expect_right(&frame, &settings, device_name(runtime, device), &worst[op][shape.out.depth]);
            }
            cox_session_destroy(&session);
            frame_free(&frame);
        }
    }
    for (int op = 0; op < OPERATORS; op++)
        for (int depth = 8; depth <= 16; depth++)
            if (worst[op][depth].codes > 0)
                fprintf(stderr, "%-8s to %2d bits: %g codes before rounding, %u after\n",
                        cox_operator_name(operators[op]), depth, worst[op][depth].codes, worst[op][depth].steps);
    cox_runtime_destroy(&runtime);
}

Test(video, stays_within_the_promised_codes_of_the_reference_for_pq)
{
    compare_all(COX_TRANSFER_PQ);
}

Test(video, stays_within_the_promised_codes_of_the_reference_for_hlg)
{
    compare_all(COX_TRANSFER_HLG);
}

static struct cox_video_shape plain_shape(uint32_t width, uint32_t height, uint32_t in_depth, uint32_t out_depth,
                                          enum cox_operator op)
{
    return (struct cox_video_shape){
        .width = width,
        .height = height,
        .op = op,
        .in = format_of(COX_VIDEO_PLANAR, in_depth, SUB_420, COX_SITE_LEFT, COX_RANGE_LIMITED),
        .out = format_of(COX_VIDEO_PLANAR, out_depth, SUB_420, COX_SITE_LEFT, COX_RANGE_LIMITED)};
}

/* Colours on the edge of BT.709 in a BT.2020 container, as every saturated colour of an SDR film within an HDR one: a
 * channel of theirs is the difference of equal numbers, and the power of 1/2.4 is steepest at 0. */
static void fill_edge(const struct frame *frame, uint32_t *seed)
{
    double to_2020[3][3];
    ref_primaries(COX_PRIMARIES_BT709, COX_PRIMARIES_BT2020, to_2020);
    for (uint32_t y = 0; y < frame->shape.height; y++) {
        for (uint32_t x = 0; x < frame->shape.width; x++) {
            double wanted[3], rgb[3];
            for (int i = 0; i < 3; i++)
                wanted[i] = pow(10, below(seed, 3000) / 1000.0 - 2.4);
            wanted[below(seed, 3)] = 0;
            wanted[below(seed, 3)] = 0;
            for (int i = 0; i < 3; i++) {
                const double light = 203 * (to_2020[i][0] * wanted[0] + to_2020[i][1] * wanted[1] +
                                            to_2020[i][2] * wanted[2]);
                rgb[i] = frame->shape.transfer == COX_TRANSFER_PQ ? ref_pq_signal(light)
                                                                  : ref_hlg_signal(fmin(light / 1000, 1));
            }
            put_colour(frame, x, y, rgb);
        }
    }
}

Test(video, keeps_its_promise_on_the_edge_of_the_gamut)
{
    cox_runtime *runtime = open_devices();
    uint32_t seed = 9;
    for (int i = 0; i < 12; i++) {
        static const enum cox_operator ops[] = {COX_OPERATOR_HABLE, COX_OPERATOR_BT2390, COX_OPERATOR_MOBIUS};
        struct cox_video_shape shape = plain_shape(320, 200, 10, i % 2 ? 10 : 8, ops[i % 3]);
        struct error worst = {0};
        shape.transfer = i / 6 ? COX_TRANSFER_HLG : COX_TRANSFER_PQ;
        if (i % 6 == 4)
            shape.out = format_of(COX_VIDEO_RGBA, 8, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL);
        struct frame frame = frame_new(runtime, &shape, 0);
        const uint32_t device = next_device(runtime);
        cox_session *session = session_new(runtime, &frame, MAPPING, VARIANT_OWN, device);
        for (int picture = 0; picture < 3; picture++) {
            const struct cox_video_settings settings = {.sdr_white_nits = picture == 1 ? 100 : 0};
            fill_edge(&frame, &seed);
            run_in(session, &frame, MAPPING, &settings);
            expect_right(&frame, &settings, device_name(runtime, device), &worst);
        }
        fprintf(stderr, "edge of the gamut, %s: %g codes before rounding, %u after\n", shape_text(&shape), worst.codes,
                worst.steps);
        cox_session_destroy(&session);
        frame_free(&frame);
    }
    cox_runtime_destroy(&runtime);
}

/* --- Another size ------------------------------------------------------------------------------------------------- */

/* A film drawn from every layout, depth, subsampling, site and range in; every tenth one RGBA if `rgba`. Of `shape` the
 * sizes are given. */
static void draw_scaled(struct cox_video_shape *shape, uint32_t i, bool rgba, uint32_t *seed)
{
    static const uint32_t depths[] = {8, 10, 12, 16};
    const enum cox_video_layout layout = below(seed, 2) ? COX_VIDEO_SEMI_PLANAR : COX_VIDEO_PLANAR;
    const int sub = layout == COX_VIDEO_PLANAR ? (int)below(seed, 3) : SUB_420;
    const enum cox_chroma_site site = (enum cox_chroma_site)below(seed, 3);
    shape->op = below(seed, 2) ? COX_OPERATOR_HABLE : COX_OPERATOR_BT2390;
    shape->gamut = (enum cox_gamut)below(seed, 2);
    shape->transfer = (enum cox_transfer)below(seed, 2);
    const uint32_t depth = depths[below(seed, 4)];
    shape->in = format_of(layout, depth, sub, site, (enum cox_range)below(seed, 2));
    if (rgba && i % 10 == 9) {
        shape->in = format_of(COX_VIDEO_RGBA, 16, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL);
        shape->transfer = (enum cox_transfer)below(seed, 3);
    }
    shape->out = i % 8 == 7 ? format_of(COX_VIDEO_RGBA, 8, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL)
                            : format_of(COX_VIDEO_PLANAR, below(seed, 2) ? 8 : 10, SUB_420, site, COX_RANGE_LIMITED);
}

/* `count` films of these sizes, by turns on every device. */
static void expect_scaled(const struct cox_video_shape *sizes, uint32_t size_count, uint32_t count, bool rgba,
                          uint32_t seed)
{
    cox_runtime *runtime = open_devices();
    struct error worst = {0};
    for (uint32_t i = 0; i < count; i++) {
        struct cox_video_shape shape = sizes[below(&seed, size_count)];
        draw_scaled(&shape, i, rgba, &seed);
        struct frame frame = frame_new(runtime, &shape, below(&seed, 3));
        fill_frame(&frame, i);
        const uint32_t device = next_device(runtime);
        const struct cox_video_settings settings = {.sdr_white_nits = 100};
        run(runtime, &frame, MAPPING, &settings, VARIANT_OWN, device);
        expect_right(&frame, &settings, device_name(runtime, device), &worst);
        frame_free(&frame);
    }
    fprintf(stderr, "scaled: %g codes before rounding, %u after\n", worst.codes, worst.steps);
    cox_runtime_destroy(&runtime);
}

/* Sizes that vectors fit and do not. */
Test(video, halves_as_the_reference_does)
{
#define HALVED(w, h)                                         \
    {                                                        \
        .width = (w), .height = (h), .scale = COX_SCALE_HALF \
    }
    static const struct cox_video_shape sizes[] = {HALVED(2, 2),    HALVED(4, 2),    HALVED(66, 34),
                                                   HALVED(128, 64), HALVED(130, 66), HALVED(262, 38)};
    expect_scaled(sizes, sizeof sizes / sizeof *sizes, 80, true, 21);
}

Test(video, takes_the_size_that_the_reference_does)
{
#define RESIZED(w, h, to_w, to_h)                                                                         \
    {                                                                                                     \
        .width = (w), .height = (h), .out_width = (to_w), .out_height = (to_h), .scale = COX_SCALE_FILTER \
    }
    static const struct cox_video_shape sizes[] = {RESIZED(64, 48, 32, 24), RESIZED(66, 34, 44, 22),
                                                   RESIZED(33, 21, 50, 62), RESIZED(130, 66, 17, 9),
                                                   RESIZED(48, 32, 48, 32), RESIZED(5, 3, 40, 24)};
    expect_scaled(sizes, sizeof sizes / sizeof *sizes, 60, false, 22);
}

/* --- Gamut -------------------------------------------------------------------------------------------------------- */

/* Hue in degrees by Oklab (B. Ottosson, 2020) and by IC_TC_P (Recommendation ITU-R BT.2100), of light with
 * BT.709's primaries, 1 = 203 cd/m2. */
static double hue_of(const double rgb[3], bool oklab)
{
    static const double cones[2][3][3] = {{{1688 / 4096.0, 2146 / 4096.0, 262 / 4096.0},
                                           {683 / 4096.0, 2951 / 4096.0, 462 / 4096.0},
                                           {99 / 4096.0, 309 / 4096.0, 3688 / 4096.0}},
                                          {{0.4122214708, 0.5363325363, 0.0514459929},
                                           {0.2119034982, 0.6806995451, 0.1073969566},
                                           {0.0883024619, 0.2817188376, 0.6299787005}}};
    static const double axes[2][2][3] = {
        {{6610 / 4096.0, -13613 / 4096.0, 7003 / 4096.0}, {17933 / 4096.0, -17390 / 4096.0, -543 / 4096.0}},
        {{1.9779984951, -2.4285922050, 0.4505937099}, {0.0259040371, 0.7827717662, -0.8086757660}}};
    double to_2020[3][3], light[3], lms[3], at[2] = {0, 0};
    ref_primaries(COX_PRIMARIES_BT709, COX_PRIMARIES_BT2020, to_2020);
    for (int i = 0; i < 3; i++)
        light[i] = oklab ? rgb[i] : to_2020[i][0] * rgb[0] + to_2020[i][1] * rgb[1] + to_2020[i][2] * rgb[2];
    for (int i = 0; i < 3; i++) {
        lms[i] = cones[oklab][i][0] * light[0] + cones[oklab][i][1] * light[1] + cones[oklab][i][2] * light[2];
        lms[i] = oklab ? cbrt(lms[i]) : ref_pq_signal(203 * fmax(lms[i], 0));
    }
    for (int axis = 0; axis < 2; axis++)
        for (int i = 0; i < 3; i++)
            at[axis] += axes[oklab][axis][i] * lms[i];
    return atan2(at[1], at[0]) * 180 / M_PI;
}

/* BT.2020's hues across, saturation and value of the signal downwards. */
static void sweep_colour(uint32_t x, uint32_t y, double rgb[3])
{
    static const double saturations[] = {0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1};
    const uint32_t values = y / 8;
    const double value = 0.2 * (1 + values);
    for (int i = 0; i < 3; i++) {
        const double k = fmod(5 - 2 * i + x / 60.0, 6);
        const double level = value * (1 - saturations[y % 8] * fmax(0, fmin(fmin(k, 4 - k), 1)));
        rgb[i] = ref_pq_signal(203 * pow(level, 2.4));
    }
}

/* Mean distance of the hue that comes out from that which goes in, of what is outside BT.709 and not black. */
static void hue_error(const struct frame *frame, double degrees[2])
{
    struct ref_video ref;
    double sum[2] = {0, 0};
    uint32_t count = 0;
    ref_video_init(&ref, &frame->shape, &(struct cox_video_settings){0});
    for (uint32_t y = 0; y < frame->shape.height; y++) {
        for (uint32_t x = 0; x < frame->shape.width; x++) {
            double signal[3], light[3], in[3], out[3], largest = 1;
            sweep_colour(x, y, signal);
            ref_video_light(&ref, signal, light);
            for (int i = 0; i < 3; i++) {
                in[i] = ref.primaries[i][0] * light[0] + ref.primaries[i][1] * light[1] +
                        ref.primaries[i][2] * light[2];
                out[i] = pow(output_at(frame, 0, 4 * (size_t)x + (size_t)i, y) / 65535.0, 2.4);
                largest = fmax(largest, in[i]);
            }
            if (fmin(in[0], fmin(in[1], in[2])) > -1e-6)
                continue;
            for (int i = 0; i < 3; i++)
                in[i] /= largest; /* as the operator does it */
            count++;
            for (int oklab = 0; oklab < 2; oklab++) {
                const double off = fabs(hue_of(in, oklab) - hue_of(out, oklab));
                sum[oklab] += fmin(off, 360 - off);
            }
        }
    }
    cr_assert_gt(count, 10000);
    degrees[0] = sum[0] / count;
    degrees[1] = sum[1] / count;
}

Test(video, compresses_the_gamut_with_half_the_hue_error_of_clipping)
{
    cox_runtime *runtime = open_devices();
    double degrees[2][2];
    for (int gamut = 0; gamut < 2; gamut++) {
        struct cox_video_shape shape = plain_shape(360, 40, 16, 16, COX_OPERATOR_CLIP);
        shape.in = format_of(COX_VIDEO_PLANAR, 16, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL);
        shape.out = format_of(COX_VIDEO_RGBA, 16, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL);
        shape.gamut = (enum cox_gamut)gamut;
        struct frame frame = frame_new(runtime, &shape, 0);
        for (uint32_t y = 0; y < shape.height; y++)
            for (uint32_t x = 0; x < shape.width; x++) {
                double rgb[3];
                sweep_colour(x, y, rgb);
                put_colour(&frame, x, y, rgb);
            }
        run(runtime, &frame, MAPPING, &(struct cox_video_settings){0}, VARIANT_OWN, next_device(runtime));
        hue_error(&frame, degrees[gamut]);
        frame_free(&frame);
    }
    fprintf(stderr, "hue error of BT.2020 clipped and compressed, degrees: %.2f %.2f (Oklab), %.2f %.2f (ICtCp)\n",
            degrees[0][1], degrees[1][1], degrees[0][0], degrees[1][0]);
    cr_expect_leq(degrees[1][1], 0.5 * degrees[0][1]);
    cr_expect_leq(degrees[1][0], 0.65 * degrees[0][0]);
    cox_runtime_destroy(&runtime);
}

/* --- Dither ------------------------------------------------------------------------------------------------------- */

/* A slow ramp: the pattern must be the one that docs/internals/kernels.md says, in every plane's own coordinates, and
 * must not change the mean. A code that is off by one would pass for rounding elsewhere. */
Test(video, dithers_with_the_ordered_pattern_of_each_plane)
{
    cox_runtime *runtime = open_devices();
    const struct cox_video_settings settings = {0};
    for (int i = 0; i < 4; i++) {
        struct cox_video_shape shape = plain_shape(203, 77, 16, i == 1 ? 10 : 8, COX_OPERATOR_CLIP);
        shape.dither = i == 3 ? COX_DITHER_NONE : COX_DITHER_ORDERED;
        if (i == 2)
            shape.out = format_of(COX_VIDEO_RGBA, 8, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL);
        struct frame frame = frame_new(runtime, &shape, 0);
        for (uint32_t y = 0; y < shape.height; y++)
            for (uint32_t x = 0; x < shape.width; x++)
                put_colour(&frame, x, y, (double[]){0.4 + x * 3e-4, 0.42 + y * 3e-4, 0.47 - x * 2e-4});
        run(runtime, &frame, MAPPING, &settings, VARIANT_OWN, next_device(runtime));
        struct ref_video ref;
        const void *in[COX_VIDEO_PLANES_MAX];
        double *real[COX_VIDEO_PLANES_MAX];
        ref_video_init(&ref, &frame.shape, &settings);
        input_of(&frame, in);
        cr_assert(ref_video_map(&ref, in, real), "no memory");
        for (uint32_t p = 0; p < frame.out_count; p++) {
            const struct ref_plane plane = ref_video_plane(&shape.out, shape.width, shape.height, p);
            const size_t row = (size_t)plane.width * plane.channels;
            double sum = 0;
            uint32_t same = 0, up = 0;
            for (size_t at = 0; at < row * plane.height; at++) {
                const uint32_t x = (uint32_t)(at % row / plane.channels), y = (uint32_t)(at / row);
                const uint32_t got = output_at(&frame, p, at % row, y);
                same += got == ref_video_code(&ref, real[p][at], x, y);
                up += got != (uint32_t)floor(real[p][at] + 0.5);
                sum += got - real[p][at];
            }
            const double samples = (double)row * plane.height;
            cr_expect_gt(same, 0.97 * samples, "%s, plane %u: %u of %g codes", shape_text(&shape), p, same, samples);
            cr_expect_lt(fabs(sum / samples), 0.02, "%s, plane %u: %g codes of bias", shape_text(&shape), p,
                         sum / samples);
            if (shape.dither)
                cr_expect_gt(up, 0.1 * samples, "%s, plane %u: %u of %g codes are dithered", shape_text(&shape), p, up,
                             samples);
            free(real[p]);
        }
        frame_free(&frame);
    }
    cox_runtime_destroy(&runtime);
}

/* Every layout and depth in, every one out, and all sites; RGBA codes and halves. */
Test(video, maps_every_format_to_every_format)
{
    cox_runtime *runtime = open_devices();
    const struct cox_video_settings settings = {.sdr_white_nits = 100};
    struct error worst = {0};
    uint32_t seed = 5;
    for (int i = 0; i < 45; i++) {
        const int in = i / 5, out = i % 5, sub = (int)below(&seed, 3);
        struct cox_video_shape shape = {.width = 67, .height = 34 + below(&seed, 2), .op = COX_OPERATOR_HABLE};
        const enum cox_chroma_site site = (enum cox_chroma_site)below(&seed, 3);
        const enum cox_range range = (enum cox_range)below(&seed, 2);
        shape.transfer = (enum cox_transfer)below(&seed, 2);
        if (in < 6)
            shape.in = format_of(COX_VIDEO_PLANAR, depths[in], sub, site, range);
        else if (in < 8)
            shape.in = format_of(COX_VIDEO_SEMI_PLANAR, depths[in - 6], SUB_420, site, range);
        else
            shape.in = format_of(COX_VIDEO_RGBA, 16, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL);
        if (in == 8)
            shape.transfer = (enum cox_transfer)(out % 3);
        if (out < 3)
            shape.out = format_of(COX_VIDEO_PLANAR, depths[(in + out) % 6], in < 6 ? sub : SUB_420, site,
                                  (enum cox_range)below(&seed, 2));
        else if (out == 3)
            shape.out = format_of(COX_VIDEO_SEMI_PLANAR, depths[in % 3], SUB_420, (enum cox_chroma_site)below(&seed, 3),
                                  COX_RANGE_LIMITED);
        else
            shape.out = format_of(COX_VIDEO_RGBA, in % 2 ? 8 : 16, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL);
        struct frame frame = frame_new(runtime, &shape, 0);
        fill_frame(&frame, (uint32_t)i);
        const uint32_t device = next_device(runtime);
        run(runtime, &frame, MAPPING, &settings, VARIANT_OWN, device);
        expect_right(&frame, &settings, device_name(runtime, device), &worst);
        frame_free(&frame);
    }
    cox_runtime_destroy(&runtime);
}

/* Where `i` is 0, 1, 2: as many pixels, half the sides, any size. */
static void set_scale(struct cox_video_shape *shape, int i)
{
    shape->scale = (enum cox_video_scale)i;
    if (shape->scale == COX_SCALE_FILTER) {
        shape->out_width = 93;
        shape->out_height = 47;
    }
}

/* What video cards, decoders, capture cards and encoders have: samples of two planes, of packed pixels, of colours. */
Test(video, maps_the_layouts_of_devices_and_programs_as_the_reference_does)
{
#define FORMAT(layout, depth, sub, site, range) \
    format_of(COX_VIDEO_##layout, depth, SUB_##sub, COX_SITE_##site, COX_RANGE_##range)
    const struct {
        struct cox_video_format in, out;
        enum cox_transfer transfer;
    } pairs[] = {
        {FORMAT(SEMI_PLANAR, 8, 422, LEFT, LIMITED), FORMAT(SEMI_PLANAR, 8, 422, LEFT, LIMITED), COX_TRANSFER_PQ},
        {FORMAT(SEMI_PLANAR, 10, 422, CENTRE, LIMITED), FORMAT(PLANAR, 10, 420, LEFT, FULL), COX_TRANSFER_HLG},
        {FORMAT(SEMI_PLANAR, 16, 422, TOP_LEFT, FULL), FORMAT(SEMI_PLANAR, 10, 422, CENTRE, LIMITED), COX_TRANSFER_PQ},
        {FORMAT(PLANAR, 12, 444, LEFT, LIMITED), FORMAT(SEMI_PLANAR, 16, 422, LEFT, FULL), COX_TRANSFER_PQ},
        {FORMAT(V210, 10, 422, LEFT, LIMITED), FORMAT(PLANAR, 8, 420, LEFT, LIMITED), COX_TRANSFER_PQ},
        {FORMAT(V210, 10, 422, CENTRE, LIMITED), FORMAT(SEMI_PLANAR, 10, 422, LEFT, LIMITED), COX_TRANSFER_HLG},
        {FORMAT(V210, 10, 422, TOP_LEFT, FULL), FORMAT(BGRA, 8, 444, LEFT, FULL), COX_TRANSFER_PQ},
        {FORMAT(GBR, 8, 444, LEFT, FULL), FORMAT(BGRA, 16, 444, LEFT, FULL), COX_TRANSFER_HLG},
        {FORMAT(GBR, 10, 444, LEFT, LIMITED), FORMAT(GBR, 10, 444, LEFT, LIMITED), COX_TRANSFER_PQ},
        {FORMAT(GBR, 12, 444, CENTRE, FULL), FORMAT(PLANAR, 10, 444, LEFT, LIMITED), COX_TRANSFER_PQ},
        {FORMAT(GBR, 16, 444, LEFT, LIMITED), FORMAT(SEMI_PLANAR, 8, 420, LEFT, LIMITED), COX_TRANSFER_HLG},
        {FORMAT(PLANAR, 10, 420, LEFT, LIMITED), FORMAT(GBR, 8, 444, LEFT, FULL), COX_TRANSFER_PQ},
        {FORMAT(SEMI_PLANAR, 10, 420, LEFT, LIMITED), FORMAT(BGRA, 8, 444, LEFT, FULL), COX_TRANSFER_HLG},
        {FORMAT(RGBA, 8, 444, LEFT, FULL), FORMAT(RGBA, 8, 444, LEFT, FULL), COX_TRANSFER_HLG},
        {FORMAT(RGBA, 16, 444, CENTRE, FULL), FORMAT(PLANAR, 10, 422, LEFT, LIMITED), COX_TRANSFER_PQ},
        {FORMAT(BGRA, 8, 444, LEFT, FULL), FORMAT(SEMI_PLANAR, 8, 422, CENTRE, LIMITED), COX_TRANSFER_PQ},
        {FORMAT(BGRA, 16, 444, LEFT, FULL), FORMAT(GBR, 12, 444, LEFT, FULL), COX_TRANSFER_HLG},
        {FORMAT(BGRA, 16, 444, LEFT, FULL), FORMAT(BGRA, 8, 444, LEFT, FULL), COX_TRANSFER_LINEAR},
    };
#undef FORMAT
    cox_runtime *runtime = open_devices();
    const struct cox_video_settings settings = {.sdr_white_nits = 100};
    struct error worst = {0};
    for (int i = 0; i < (int)(sizeof pairs / sizeof *pairs) * 3; i++) {
        struct cox_video_shape shape = {.width = 194 + (uint32_t)i % 7 * 2,
                                        .height = 66,
                                        .in = pairs[i / 3].in,
                                        .out = pairs[i / 3].out,
                                        .transfer = pairs[i / 3].transfer,
                                        .dither = (enum cox_dither)(i / 3 % 2),
                                        .op = i % 2 ? COX_OPERATOR_HABLE : COX_OPERATOR_BT2390};
        set_scale(&shape, i % 3);
        if (shape.transfer == COX_TRANSFER_LINEAR && shape.scale == COX_SCALE_FILTER)
            continue;
        shape.width -= !shape.scale;
        struct frame frame = frame_new(runtime, &shape, (size_t)i % 4);
        fill_frame(&frame, (uint32_t)i);
        const uint32_t device = next_device(runtime);
        run(runtime, &frame, MAPPING, &settings, VARIANT_OWN, device);
        expect_right(&frame, &settings, device_name(runtime, device), &worst);
        frame_free(&frame);
    }
    cox_runtime_destroy(&runtime);
}

/* The reference itself, against figures that are not of its making. */
Test(video, reference_agrees_with_published_values)
{
    cr_expect_float_eq(ref_pq_signal(100), 0.5081, 1e-4, "BT.2408, table 1");
    cr_expect_float_eq(ref_pq_signal(203), 0.5807, 1e-4, "BT.2408: 203 cd/m2 are 58 %% PQ");
    cr_expect_float_eq(ref_pq_signal(1000), 0.7518, 1e-4, "BT.2408: 75 %%");
    cr_expect_float_eq(ref_pq_light(1), 10000, 1e-6);
    cr_expect_float_eq(ref_hlg_light(0.5), 1.0 / 12, 1e-12);
    cr_expect_float_eq(ref_hlg_light(1), 1, 1e-6);
    for (double s = 0; s <= 1; s += 1.0 / 64) {
        cr_expect_float_eq(ref_pq_signal(ref_pq_light(s)), s, 1e-6);
        cr_expect_float_eq(ref_hlg_signal(ref_hlg_light(s)), s, 1e-9);
    }

    const struct cox_video_shape shape = {.transfer = COX_TRANSFER_HLG};
    struct ref_video ref;
    ref_video_init(&ref, &shape, &(struct cox_video_settings){.sdr_white_nits = 1});
    double light[3];
    ref_video_light(&ref, (double[]){0.75, 0.75, 0.75}, light);
    cr_expect_float_eq(light[1], 203, 0.5, "BT.2408: 75 %% HLG are 203 cd/m2 on a display of 1000");
    ref_video_light(&ref, (double[]){1, 1, 1}, light);
    cr_expect_float_eq(light[1], 1000, 0.01);

    /* Report BT.2087. */
    const double to_709[3][3] = {{1.66049100, -0.58764114, -0.07284986},
                                 {-0.12455047, 1.13289990, -0.00834942},
                                 {-0.01815076, -0.10057890, 1.11872966}};
    for (int i = 0; i < 9; i++)
        cr_expect_float_eq(ref.primaries[i / 3][i % 3], to_709[i / 3][i % 3], 1e-7);

    /* The first rows of the usual matrix. */
    const uint32_t bayer[2][8] = {{0, 32, 8, 40, 2, 34, 10, 42}, {48, 16, 56, 24, 50, 18, 58, 26}};
    for (uint32_t i = 0; i < 16; i++)
        cr_expect_eq(ref_bayer(i % 8, i / 8), bayer[i / 8][i % 8]);
    bool seen[64] = {false};
    for (uint32_t i = 0; i < 64; i++)
        seen[ref_bayer(i % 8, i / 8)] = true;
    for (int i = 0; i < 64; i++)
        cr_expect(seen[i], "%d is missing", i);
}

Test(video, reference_operators_take_the_peak_to_white_and_rise)
{
    for (int op = 0; op < OPERATORS; op++) {
        const struct cox_video_shape shape = {.op = operators[op]};
        struct ref_video ref;
        ref_video_init(&ref, &shape, &(struct cox_video_settings){.sdr_white_nits = 100, .peak_nits = 1000});
        double last = 0;
        for (double x = 1.0 / 64; x <= 10; x += 1.0 / 64) {
            const double now = ref_video_operator(&ref, x);
            cr_expect_geq(now, last, "%s at %g", cox_operator_name(operators[op]), x);
            last = now;
        }
        if (operators[op] != COX_OPERATOR_ACES && operators[op] != COX_OPERATOR_CLIP)
            cr_expect_float_eq(last, 1, 1e-6, "%s: %g", cox_operator_name(operators[op]), last);
    }
}

/* --- Same bits ---------------------------------------------------------------------------------------------------- */

static uint8_t *copy_output(const struct frame *frame)
{
    size_t bytes = 0;
    for (uint32_t p = 0; p < frame->out_count; p++)
        bytes += frame->shape.out_pitch_bytes[p] * frame->out_planes[p].rows;
    uint8_t *copy = malloc(bytes), *at = copy;
    cr_assert_not_null(copy);
    for (uint32_t p = 0; p < frame->out_count; p++) {
        memcpy(at, cox_buffer_data(frame->out[p]), frame->shape.out_pitch_bytes[p] * frame->out_planes[p].rows);
        at += frame->shape.out_pitch_bytes[p] * frame->out_planes[p].rows;
    }
    return copy;
}

static bool same_output(const struct frame *frame, const uint8_t *expected)
{
    for (uint32_t p = 0; p < frame->out_count; p++) {
        const size_t bytes = frame->shape.out_pitch_bytes[p] * frame->out_planes[p].rows;
        if (memcmp(cox_buffer_data(frame->out[p]), expected, bytes) != 0)
            return false;
        expected += bytes;
    }
    return true;
}

/* What comes out of a frame, as if it went in. */
static void out_as_in(const struct frame *frame, struct cox_video_shape *shape,
                      const void *planes[COX_VIDEO_PLANES_MAX])
{
    *shape = frame->shape;
    ref_video_size(&frame->shape, &shape->width, &shape->height);
    shape->in = frame->shape.out;
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        shape->in_pitch_bytes[p] = frame->shape.out_pitch_bytes[p];
        planes[p] = p < frame->out_count ? cox_buffer_data(frame->out[p]) : NULL;
    }
}

static void expect_same_codes(const struct frame *a, const struct frame *b, const char *device)
{
    struct cox_video_shape a_shape, b_shape;
    const void *a_planes[COX_VIDEO_PLANES_MAX], *b_planes[COX_VIDEO_PLANES_MAX];
    char text[256];
    out_as_in(a, &a_shape, a_planes);
    out_as_in(b, &b_shape, b_planes);
    snprintf(text, sizeof text, "%s", shape_text(&a->shape));
    for (int part = 0; part < 3; part++) {
        const uint32_t columns = (a_shape.width - 1) >> (part ? a_shape.in.chroma_x_log2 : 0);
        const uint32_t rows = (a_shape.height - 1) >> (part ? a_shape.in.chroma_y_log2 : 0);
        for (uint32_t j = 0; j <= rows; j++)
            for (uint32_t i = 0; i <= columns; i++)
                cr_assert_eq(ref_video_part(&a_shape, a_planes, part, i, j),
                             ref_video_part(&b_shape, b_planes, part, i, j), "%s: %s and %s: part %d (%u, %u)", device,
                             text, shape_text(&b->shape), part, i, j);
    }
    cr_expect_arr_eq(cox_buffer_data(a->histogram), cox_buffer_data(b->histogram), COX_VIDEO_HISTOGRAM_BYTES,
                     "%s: histograms of %s and %s", device, text, shape_text(&b->shape));
}

/* The same codes in another order. */
static void fill_like(const struct frame *to, const struct frame *from)
{
    void *to_planes[COX_VIDEO_PLANES_MAX];
    const void *from_planes[COX_VIDEO_PLANES_MAX];
    const struct cox_video_shape *shape = &from->shape;
    in_planes_of(to, to_planes);
    input_of(from, from_planes);
    for (int part = 0; part < 3; part++)
        for (uint32_t j = 0; j <= (shape->height - 1) >> (part ? shape->in.chroma_y_log2 : 0); j++)
            for (uint32_t i = 0; i <= (shape->width - 1) >> (part ? shape->in.chroma_x_log2 : 0); i++)
                ref_video_put_part(&to->shape, to_planes, part, i, j, ref_video_part(shape, from_planes, part, i, j));
}

/* Pairs of layouts that say the same, in and out, with everything that is made of a frame. */
Test(video, maps_the_same_codes_in_another_layout_to_the_same_bits)
{
#define FORMAT(layout, depth, sub, site, range) \
    format_of(COX_VIDEO_##layout, depth, SUB_##sub, COX_SITE_##site, COX_RANGE_##range)
    const struct cox_video_format out_8 = FORMAT(PLANAR, 8, 422, LEFT, LIMITED);
    const struct {
        struct cox_video_format in[2], out[2];
        bool summed; /* otherwise than colours of a plane are, where several pixels become one */
    } pairs[] = {
        {{FORMAT(PLANAR, 10, 422, LEFT, LIMITED), FORMAT(V210, 10, 422, LEFT, LIMITED)}, {out_8, out_8}, false},
        {{FORMAT(PLANAR, 10, 422, CENTRE, LIMITED), FORMAT(V210, 10, 422, CENTRE, LIMITED)}, {out_8, out_8}, false},
        {{FORMAT(PLANAR, 10, 422, LEFT, LIMITED), FORMAT(SEMI_PLANAR, 10, 422, LEFT, LIMITED)},
         {FORMAT(PLANAR, 10, 422, LEFT, LIMITED), FORMAT(SEMI_PLANAR, 10, 422, LEFT, LIMITED)},
         false},
        {{FORMAT(PLANAR, 8, 422, CENTRE, FULL), FORMAT(SEMI_PLANAR, 8, 422, CENTRE, FULL)},
         {FORMAT(RGBA, 16, 444, LEFT, FULL), FORMAT(BGRA, 16, 444, LEFT, FULL)},
         false},
        {{FORMAT(RGBA, 16, 444, LEFT, FULL), FORMAT(BGRA, 16, 444, LEFT, FULL)},
         {FORMAT(RGBA, 8, 444, LEFT, FULL), FORMAT(BGRA, 8, 444, LEFT, FULL)},
         false},
        {{FORMAT(RGBA, 8, 444, LEFT, FULL), FORMAT(BGRA, 8, 444, LEFT, FULL)},
         {FORMAT(RGBA, 8, 444, LEFT, FULL), FORMAT(GBR, 8, 444, LEFT, FULL)},
         false},
        {{FORMAT(GBR, 16, 444, LEFT, FULL), FORMAT(BGRA, 16, 444, LEFT, FULL)},
         {FORMAT(GBR, 16, 444, LEFT, FULL), FORMAT(RGBA, 16, 444, LEFT, FULL)},
         true},
    };
#undef FORMAT
    cox_runtime *runtime = open_devices();
    const struct cox_video_settings settings = {.peak_nits = 1500};
    for (int i = 0; i < (int)(sizeof pairs / sizeof *pairs) * 4; i++) {
        struct frame frames[2];
        const bool local = i % 4 == 3;
        if (pairs[i / 4].summed && (local || i % 4 == COX_SCALE_HALF))
            continue;
        const uint32_t devices[2] = {next_device(runtime), next_device(runtime)};
        for (int which = 0; which < 2; which++) {
            struct cox_video_shape shape = {.width = 196 + (uint32_t)i % 5 * 2,
                                            .height = 66,
                                            .in = pairs[i / 4].in[which],
                                            .out = pairs[i / 4].out[which],
                                            .transfer = (enum cox_transfer)(i / 4 % 2),
                                            .op = local ? COX_OPERATOR_LOCAL : COX_OPERATOR_HABLE};
            set_scale(&shape, local ? 0 : i % 4);
            shape.width -= !shape.scale;
            frames[which] = frame_new(runtime, &shape, (size_t)i % 3);
            if (which)
                fill_like(&frames[1], &frames[0]);
            else
                fill_frame(&frames[0], (uint32_t)i);
            run(runtime, &frames[which], MAPPING_AND_ANALYSIS, &settings, VARIANT_OWN, devices[which]);
            cr_expect(guards_intact(&frames[which]), "%s", shape_text(&shape));
        }
        expect_same_codes(&frames[0], &frames[1], device_name(runtime, devices[1]));
        frame_free(&frames[0]);
        frame_free(&frames[1]);
    }
    cox_runtime_destroy(&runtime);
}

enum { TELLING_SHAPES = 12 };

/* Shape number `i` of those that differ in everything a kernel may be built for. */
static void telling_shape(int i, struct cox_video_shape *shape)
{
    uint32_t seed = 31;
    *shape = (struct cox_video_shape){0};
    for (int k = 0; k <= i; k++)
        draw_shape(&seed, operators[k % OPERATORS], k % 2 ? COX_TRANSFER_HLG : COX_TRANSFER_PQ,
                   (enum cox_range)(k / 2 % 2), k % 3, shape);
    shape->width = i % 2 ? 259 : 128;
    shape->height = i % 3 ? 65 : 64;
    if (i % 3 == 0) /* nothing subsampled: blocks of rows that no plane ties together */
        shape->out = i == 0 ? format_of(COX_VIDEO_RGBA, 8, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL)
                            : format_of(COX_VIDEO_PLANAR, shape->in.depth, SUB_444, COX_SITE_LEFT, COX_RANGE_LIMITED);
    if (i % 3 == 0 || i == 5)
        shape->in = i == 3 ? format_of(COX_VIDEO_PLANAR, 10, SUB_444, COX_SITE_LEFT, COX_RANGE_LIMITED)
                           : format_of(COX_VIDEO_RGBA, 16, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL);
    if (i == 0 || i == 5)
        shape->transfer = COX_TRANSFER_LINEAR;
    if (i == 7)
        shape->in = format_of(COX_VIDEO_V210, 10, SUB_422, COX_SITE_CENTRE, COX_RANGE_LIMITED);
    if (i == 8)
        shape->in = format_of(COX_VIDEO_V210, 10, SUB_422, COX_SITE_LEFT, COX_RANGE_LIMITED);
    if (i == 9)
        shape->in = shape->out = format_of(COX_VIDEO_GBR, 10, SUB_444, COX_SITE_LEFT, COX_RANGE_LIMITED);
    if (i == 10)
        shape->in = shape->out = format_of(COX_VIDEO_SEMI_PLANAR, 10, SUB_422, COX_SITE_LEFT, COX_RANGE_LIMITED);
    if (i == 11) {
        shape->in = format_of(COX_VIDEO_BGRA, 8, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL);
        shape->out = format_of(COX_VIDEO_BGRA, 8, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL);
    }
}

Test(video, gives_the_same_bits_on_every_device_as_scalars_and_as_vectors)
{
    cox_runtime *runtime = open_devices();
    const struct cox_video_settings settings = {.peak_nits = 1700};
    for (int i = 0; i < TELLING_SHAPES; i++) {
        struct cox_video_shape shape;
        telling_shape(i, &shape);
        struct frame frame = frame_new(runtime, &shape, 0);
        fill_frame(&frame, (uint32_t)i);
        uint8_t *expected = NULL;
        uint32_t counts[COX_VIDEO_BINS];
        for (uint32_t device = 0; device < cox_runtime_device_count(runtime); device++) {
            for (int variant = VARIANT_VECTOR; variant <= VARIANT_SCALAR; variant++) {
                run(runtime, &frame, MAPPING_AND_ANALYSIS, &settings, variant, device);
                if (!expected) {
                    expected = copy_output(&frame);
                    memcpy(counts, cox_buffer_data(frame.histogram), sizeof(counts));
                }
                cr_expect(same_output(&frame, expected), "%s, variant %d: %s", device_name(runtime, device), variant,
                          shape_text(&shape));
                cr_expect(guards_intact(&frame), "%s, variant %d: %s", device_name(runtime, device), variant,
                          shape_text(&shape));
                cr_expect_arr_eq(cox_buffer_data(frame.histogram), counts, sizeof(counts),
                                 "histogram: %s, variant %d: %s", device_name(runtime, device), variant,
                                 shape_text(&shape));
                if (i % 3 == 1) {
                    run(runtime, &frame, MAPPING, &settings, variant, device);
                    cr_expect(same_output(&frame, expected), "without analysis: %s, variant %d: %s",
                              device_name(runtime, device), variant, shape_text(&shape));
                }
                if (i % 3 == 2 || i == 0) {
                    run(runtime, &frame, ANALYSIS, &settings, variant, device);
                    cr_expect_arr_eq(cox_buffer_data(frame.histogram), counts, sizeof(counts),
                                     "analysis alone: %s, variant %d: %s", device_name(runtime, device), variant,
                                     shape_text(&shape));
                }
            }
        }
        free(expected);
        frame_free(&frame);
    }
    cox_runtime_destroy(&runtime);
}

Test(video, gives_the_same_bits_for_every_split)
{
    cox_runtime *runtime = open_devices();
    const struct cox_video_settings settings = {0};
    for (int i = 0; i < TELLING_SHAPES; i++) {
        struct cox_video_shape shape;
        telling_shape(i, &shape);
        shape.height = 97 + (uint32_t)i % 2;
        struct frame frame = frame_new(runtime, &shape, ALIGNED);
        fill_frame(&frame, (uint32_t)i);
        run(runtime, &frame, MAPPING_AND_ANALYSIS, &settings, VARIANT_OWN, 0);
        uint8_t *expected = copy_output(&frame);
        uint32_t counts[COX_VIDEO_BINS];
        memcpy(counts, cox_buffer_data(frame.histogram), sizeof(counts));
        bands_made = 0;
        cox_session *session = session_new(runtime, &frame, MAPPING_AND_ANALYSIS, VARIANT_OWN, ALL_DEVICES);
        for (int split = 0; split < 20; split++) {
            run_in(session, &frame, MAPPING_AND_ANALYSIS, &settings);
            cr_expect(same_output(&frame, expected), "split %d: %s", split, shape_text(&shape));
            cr_expect_arr_eq(cox_buffer_data(frame.histogram), counts, sizeof(counts), "histogram of split %d: %s",
                             split, shape_text(&shape));
        }
        cr_expect_geq(bands_made, 30, "the splits are some: %u bands", bands_made);
        cox_session_destroy(&session);
        free(expected);
        frame_free(&frame);
    }
    cox_runtime_destroy(&runtime);
}

/* --- Known results ------------------------------------------------------------------------------------------------ */

static void expect_all(const struct frame *frame, uint32_t luma, uint32_t chroma, const char *what)
{
    for (uint32_t p = 0; p < 3; p++) {
        const struct ref_plane plane = ref_video_plane(&frame->shape.out, frame->shape.width, frame->shape.height, p);
        for (uint32_t y = 0; y < plane.height; y++)
            for (uint32_t x = 0; x < plane.width; x++)
                cr_assert_eq(output_at(frame, p, x, y), p == 0 ? luma : chroma, "%s: %s, plane %u (%u, %u) is %u", what,
                             shape_text(&frame->shape), p, x, y, output_at(frame, p, x, y));
    }
}

Test(video, leaves_black_black_and_grey_without_colour)
{
    cox_runtime *runtime = open_devices();
    for (int op = 0; op < OPERATORS; op++) {
        for (int transfer = COX_TRANSFER_PQ; transfer <= COX_TRANSFER_HLG; transfer++) {
            struct cox_video_shape shape = plain_shape(37, 5, 10, op % 2 ? 10 : 8, operators[op]);
            shape.transfer = (enum cox_transfer)transfer;
            const uint32_t step = op % 2 ? 4 : 1;
            struct frame frame = frame_new(runtime, &shape, 0);
            cox_session *session = session_new(runtime, &frame, MAPPING, VARIANT_OWN, next_device(runtime));
            fill_colour(&frame, (double[]){0, 0, 0});
            run_in(session, &frame, MAPPING, &(struct cox_video_settings){0});
            expect_all(&frame, 16 * step, 128 * step, "black");
            for (int grey = 1; grey < 40; grey++) {
                fill_colour(&frame, (double[]){grey / 39.0, grey / 39.0, grey / 39.0});
                run_in(session, &frame, MAPPING, &(struct cox_video_settings){0});
                expect_all(&frame, output_at(&frame, 0, 0, 0), 128 * step, "grey");
                cr_assert_gt(output_at(&frame, 0, 0, 0), 16 * step);
                cr_assert_leq(output_at(&frame, 0, 0, 0), 235 * step);
            }
            cox_session_destroy(&session);
            frame_free(&frame);
        }
    }
    cox_runtime_destroy(&runtime);
}

Test(video, takes_sdr_white_and_the_peak_to_the_codes_they_are_for)
{
    cox_runtime *runtime = open_devices();
    for (int op = 0; op < OPERATORS; op++) {
        const struct cox_video_shape shape = plain_shape(16, 2, 16, 8, operators[op]);
        struct frame frame = frame_new(runtime, &shape, 0);
        cox_session *session = session_new(runtime, &frame, MAPPING, VARIANT_OWN, next_device(runtime));
        const double white = ref_pq_signal(203), peak = ref_pq_signal(1000), half = ref_pq_signal(203 * 0.5);
        fill_colour(&frame, (double[]){white, white, white});
        run_in(session, &frame, MAPPING, &(struct cox_video_settings){0});
        if (operators[op] == COX_OPERATOR_CLIP)
            expect_all(&frame, 235, 128, "SDR white");
        if (operators[op] == COX_OPERATOR_LINEAR) /* (203/1000)^(1/2.4) */
            expect_all(&frame, 129, 128, "SDR white");
        fill_colour(&frame, (double[]){half, half, half});
        run_in(session, &frame, MAPPING, &(struct cox_video_settings){0});
        if (operators[op] == COX_OPERATOR_CLIP) /* 0.5^(1/2.4) = 0.7492 */
            expect_all(&frame, 180, 128, "half of SDR white");
        run_in(session, &frame, MAPPING, &(struct cox_video_settings){.gain = 2, .peak_nits = 2000});
        if (operators[op] == COX_OPERATOR_CLIP)
            expect_all(&frame, 235, 128, "twice half of SDR white");
        fill_colour(&frame, (double[]){peak, peak, peak});
        run_in(session, &frame, MAPPING, &(struct cox_video_settings){0});
        if (operators[op] != COX_OPERATOR_ACES)
            expect_all(&frame, 235, 128, "the peak");
        fill_colour(&frame, (double[]){1, 1, 1});
        run_in(session, &frame, MAPPING, &(struct cox_video_settings){0});
        expect_all(&frame, 235, 128, "ten times the peak");
        cox_session_destroy(&session);
        frame_free(&frame);
    }
    cox_runtime_destroy(&runtime);
}

Test(video, makes_hot_spots_white_unless_told_not_to)
{
    cox_runtime *runtime = open_devices();
    struct cox_video_shape shape = plain_shape(16, 2, 10, 8, COX_OPERATOR_HABLE);
    shape.fade = true;
    struct frame frame = frame_new(runtime, &shape, 0);
    cox_session *session = session_new(runtime, &frame, MAPPING, VARIANT_OWN, 0);
    fill_colour(&frame, (double[]){0.98, 0.85, 0.6}); /* a flame */
    run_in(session, &frame, MAPPING, &(struct cox_video_settings){.peak_nits = 10000});
    const int faded = abs((int)output_at(&frame, 1, 3, 0) - 128);
    run_in(session, &frame, MAPPING, &(struct cox_video_settings){.peak_nits = 10000, .desaturate = -1});
    const int saturated = abs((int)output_at(&frame, 1, 3, 0) - 128);
    cr_expect_gt(saturated, 2 * faded, "%d and %d from grey", faded, saturated);
    cox_session_destroy(&session);
    frame_free(&frame);
    cox_runtime_destroy(&runtime);
}

/* --- The histogram ------------------------------------------------------------------------------------------------ */

Test(video, counts_every_block_by_its_largest_signal)
{
    cox_runtime *runtime = open_devices();
    uint32_t seed = 3;
    for (int i = 0; i < 16; i++) {
        struct cox_video_shape shape = {0};
        draw_shape(&seed, COX_OPERATOR_HABLE, i % 2 ? COX_TRANSFER_HLG : COX_TRANSFER_PQ, (enum cox_range)(i / 2 % 2),
                   i % 3, &shape);
        shape.width = sizes[i % SIZES].width;
        shape.height = sizes[i % SIZES].height;
        if (i == 7 || i == 13)
            shape.in = format_of(COX_VIDEO_RGBA, 16, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL);
        if (i == 13)
            shape.transfer = COX_TRANSFER_LINEAR;
        struct frame frame = frame_new(runtime, &shape, 1);
        fill_frame(&frame, (uint32_t)i);
        struct ref_video ref;
        const void *in[COX_VIDEO_PLANES_MAX];
        uint32_t counts[COX_VIDEO_BINS], near[COX_VIDEO_BINS], bin = 0;
        ref_video_init(&ref, &shape, &(struct cox_video_settings){0});
        memcpy(ref.shape.in_pitch_bytes, frame.shape.in_pitch_bytes, sizeof(ref.shape.in_pitch_bytes));
        input_of(&frame, in);
        ref_video_histogram(&ref, in, 1e-3, counts, near);
        const uint32_t device = next_device(runtime);
        run(runtime, &frame, ANALYSIS, &(struct cox_video_settings){0}, VARIANT_OWN, device);
        cr_expect(ref_video_same_histogram(cox_buffer_data(frame.histogram), counts, near, &bin), "%s: %s: bin %u",
                  device_name(runtime, device), shape_text(&shape), bin);
        uint64_t blocks = 0;
        for (int b = 0; b < COX_VIDEO_BINS; b++)
            blocks += ((const uint32_t *)cox_buffer_data(frame.histogram))[b];
        cr_expect_eq(blocks, ((uint64_t)shape.width + 1) / 2 * ((shape.height + 1) / 2));
        frame_free(&frame);
    }
    cox_runtime_destroy(&runtime);
}

/* What a frame of one light says of itself: that light, within a step of the signal. */
Test(video, reads_the_light_of_a_grey_frame_from_its_histogram)
{
    cox_runtime *runtime = open_devices();
    const struct cox_video_settings settings = {.sdr_white_nits = 100, .hlg_peak_nits = 600};
    for (int transfer = COX_TRANSFER_PQ; transfer <= COX_TRANSFER_LINEAR; transfer++) {
        struct cox_video_shape shape = plain_shape(64, 36, 16, 8, COX_OPERATOR_HABLE);
        shape.transfer = (enum cox_transfer)transfer;
        if (transfer == COX_TRANSFER_LINEAR)
            shape.in = format_of(COX_VIDEO_RGBA, 16, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL);
        struct frame frame = frame_new(runtime, &shape, 0);
        cox_session *session = session_new(runtime, &frame, ANALYSIS, VARIANT_OWN, 0);
        struct ref_video ref;
        ref_video_init(&ref, &shape, &settings);
        for (int i = 0; i <= 20; i++) {
            const double signal = transfer == COX_TRANSFER_LINEAR ? exp2(i * 0.6 - 6) : i / 20.0;
            const double next = transfer == COX_TRANSFER_LINEAR ? signal * 1.05 : signal + 1.5 / COX_VIDEO_BINS;
            double light[3], above[3];
            fill_colour(&frame, (double[]){signal, signal, signal});
            run_in(session, &frame, ANALYSIS, &settings);
            struct cox_video_scene scene;
            cox_video_read_scene(&shape, &settings, cox_buffer_data(frame.histogram), &scene);
            ref_video_light(&ref, (double[]){signal, signal, signal}, light);
            ref_video_light(&ref, (double[]){next, next, next}, above);
            const double nits = 100 * light[0], step = 100 * (above[0] - light[0]) + 1e-3;
            cr_expect_eq(scene.blocks, 32 * 18);
            cr_expect_float_eq(scene.peak_nits, nits, step, "transfer %d: peak %g of light %g", transfer,
                               (double)scene.peak_nits, nits);
            cr_expect_float_eq(scene.average_nits, nits, step, "transfer %d: average %g of light %g", transfer,
                               (double)scene.average_nits, nits);
        }
        cox_session_destroy(&session);
        frame_free(&frame);
    }
    cox_runtime_destroy(&runtime);
}

Test(video, leaves_a_few_bright_blocks_out_of_the_peak)
{
    static uint32_t histogram[COX_VIDEO_BINS];
    const struct cox_video_shape shape = plain_shape(2000, 2000, 10, 8, COX_OPERATOR_HABLE);
    const struct cox_video_settings settings = {0};
    struct cox_video_scene scene;
    cox_video_read_scene(&shape, &settings, histogram, &scene);
    cr_expect_eq(scene.blocks, 0);
    histogram[0] = 1000000;
    cox_video_read_scene(&shape, &settings, histogram, &scene);
    cr_expect_eq(scene.blocks, 1000000);
    cr_expect_eq(scene.peak_nits, 0.0f, "black has no peak: %g", (double)scene.peak_nits);
    histogram[0] = 700000;
    histogram[256] = 299950;
    histogram[500] = 50;
    cox_video_read_scene(&shape, &settings, histogram, &scene);
    cr_expect_float_eq(scene.peak_nits, ref_pq_light(0.5), 3, "50 of a million are left out: %g",
                       (double)scene.peak_nits);
    histogram[500]++;
    cox_video_read_scene(&shape, &settings, histogram, &scene);
    cr_expect_float_eq(scene.peak_nits, ref_pq_light(500.5 / 512), 200, "51 are one too many: %g",
                       (double)scene.peak_nits);
}

/* --- Steering ----------------------------------------------------------------------------------------------------- */

/* A picture that does not change, but for noise: a sky, a ground, a lamp. */
static void fill_scene(const struct frame *frame, double level, double lamp, uint32_t *seed)
{
    const uint32_t width = frame->shape.width, height = frame->shape.height;
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            const double noise = (below(seed, 1000) + below(seed, 1000) + below(seed, 1000)) / 1500.0 -
                                 1; /* sigma 1/3 */
            double base = level * (0.6 + 0.4 * (height - y) / height) - 0.1 * (x / 16 % 2);
            if (x > width / 2 && x < width / 2 + 20 && y > height / 3 && y < height / 3 + 12)
                base = lamp;
            base = fmax(base + 0.02 * noise, 0);
            put_colour(frame, x, y, (double[]){fmin(base * 1.05, 1), fmin(base, 1), fmin(base * 0.9, 1)});
        }
    }
}

static double mean_luma(const struct frame *frame)
{
    double sum = 0;
    for (uint32_t y = 0; y < frame->shape.height; y++)
        for (uint32_t x = 0; x < frame->shape.width; x++)
            sum += output_at(frame, 0, x, y);
    return sum / ((double)frame->shape.width * frame->shape.height);
}

enum { FILM_FRAMES = 60, FILM_CUT = 30 };

/* A film of two scenes, each frame mapped as the ones before it say. Mean output luma of each frame; returns the
 * cuts. */
static int film(cox_runtime *runtime, enum cox_transfer transfer, const double levels[2], const double lamps[2],
                double means[FILM_FRAMES])
{
    struct cox_video_shape shape = plain_shape(320, 180, 10, 8, COX_OPERATOR_HABLE);
    shape.transfer = transfer;
    struct frame frame = frame_new(runtime, &shape, 0);
    cox_session *session = session_new(runtime, &frame, MAPPING_AND_ANALYSIS, VARIANT_OWN, 0);
    struct cox_video_settings settings = {0};
    struct cox_video_steer steer = {0};
    const struct cox_video_steer_options options = {0};
    uint32_t seed = 77;
    int cuts = 0;
    for (int i = 0; i < FILM_FRAMES; i++) {
        fill_scene(&frame, levels[i >= FILM_CUT], lamps[i >= FILM_CUT], &seed);
        run_in(session, &frame, MAPPING_AND_ANALYSIS, &settings);
        means[i] = mean_luma(&frame);
        const bool cut = cox_video_steer(&steer, &options, &shape, cox_buffer_data(frame.histogram), &settings);
        cr_expect(i == 0 || cut == (i == FILM_CUT && levels[0] != levels[1]), "frame %d: a cut: %d", i, cut);
        cuts += cut;
    }
    cr_expect_eq(steer.frames, FILM_FRAMES);
    cox_session_destroy(&session);
    frame_free(&frame);
    return cuts;
}

/* The first frame is mapped before anything is known; from the second on nothing moves. */
Test(video, does_not_flicker_on_a_constant_scene_with_noise)
{
    cox_runtime *runtime = open_devices();
    const double levels[][2] = {{0.55, 0.55}, {0.3, 0.3}, {0.75, 0.75}},
                 lamps[][2] = {{0.8, 0.8}, {0.9, 0.9}, {0.97, 0.97}};
    for (int i = 0; i < 6; i++) {
        double means[FILM_FRAMES], worst = 0;
        film(runtime, i / 3 ? COX_TRANSFER_HLG : COX_TRANSFER_PQ, levels[i % 3], lamps[i % 3], means);
        for (int f = 2; f < FILM_FRAMES; f++)
            worst = fmax(worst, fabs(means[f] - means[f - 1]));
        fprintf(stderr, "%s, level %g: mean luma %.2f, changes by up to %.3f codes from frame to frame\n",
                i / 3 ? "HLG" : "PQ", levels[i % 3][0], means[FILM_FRAMES - 1], worst);
        cr_expect_lt(worst, 0.5, "film %d: %g codes", i, worst);
        cr_expect_lt(fabs(means[FILM_FRAMES - 1] - means[2]), 1, "film %d drifts", i);
    }
    cox_runtime_destroy(&runtime);
}

Test(video, settles_within_two_frames_of_a_cut)
{
    cox_runtime *runtime = open_devices();
    const double levels[][2] = {{0.3, 0.7}, {0.75, 0.25}, {0.35, 0.6}},
                 lamps[][2] = {{0.5, 0.95}, {0.98, 0.6}, {0.6, 0.95}};
    for (int i = 0; i < 6; i++) {
        double means[FILM_FRAMES], worst = 0;
        const int cuts = film(runtime, i / 3 ? COX_TRANSFER_HLG : COX_TRANSFER_PQ, levels[i % 3], lamps[i % 3], means);
        cr_expect_geq(cuts, 1);
        for (int f = FILM_CUT + 2; f < FILM_FRAMES; f++)
            worst = fmax(worst, fabs(means[f] - means[FILM_FRAMES - 1]));
        fprintf(stderr, "%s: mean luma %.2f, at the cut %.2f, then %.2f, %.2f ... %.2f\n", i / 3 ? "HLG" : "PQ",
                means[FILM_CUT - 1], means[FILM_CUT], means[FILM_CUT + 1], means[FILM_CUT + 2], means[FILM_FRAMES - 1]);
        cr_expect_lt(worst, 0.5, "film %d is %g codes from where it ends", i, worst);
    }
    cox_runtime_destroy(&runtime);
}

/* --- What is refused ---------------------------------------------------------------------------------------------- */

Test(video, describes_the_planes_of_a_frame)
{
    static const struct {
        struct cox_video_format format;
        uint32_t width, height, count;
        struct cox_video_plane planes[3];
    } good[] = {
        {{.depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1}, 4, 2, 3, {{4, 2, 1, 1}, {2, 1, 2, 1}, {2, 1, 2, 1}}},
        {{.depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
         1917,
         1081,
         3,
         {{3834, 1081, 1, 2}, {1918, 541, 2, 2}, {1918, 541, 2, 2}}},
        {{.depth = 12, .chroma_x_log2 = 1}, 5, 3, 3, {{10, 3, 1, 2}, {6, 3, 1, 2}, {6, 3, 1, 2}}},
        {{.depth = 16}, 65536, 65536, 3, {{131072, 65536, 1, 2}, {131072, 65536, 1, 2}, {131072, 65536, 1, 2}}},
        {{.layout = COX_VIDEO_SEMI_PLANAR, .depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
         5,
         3,
         2,
         {{5, 3, 1, 1}, {6, 2, 2, 1}}},
        {{.layout = COX_VIDEO_SEMI_PLANAR, .depth = 10, .high_bits = true, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
         1,
         1,
         2,
         {{2, 1, 1, 2}, {4, 1, 2, 2}}},
        {{.layout = COX_VIDEO_RGBA, .depth = 16, .range = COX_RANGE_FULL}, 3, 2, 1, {{24, 2, 1, 2}}},
        {{.layout = COX_VIDEO_RGBA, .depth = 8, .range = COX_RANGE_FULL}, 3, 2, 1, {{12, 2, 1, 1}}},
        {{.layout = COX_VIDEO_SEMI_PLANAR, .depth = 8, .chroma_x_log2 = 1}, 5, 3, 2, {{5, 3, 1, 1}, {6, 3, 1, 1}}},
        {{.layout = COX_VIDEO_SEMI_PLANAR, .depth = 10, .high_bits = true, .chroma_x_log2 = 1},
         5,
         3,
         2,
         {{10, 3, 1, 2}, {12, 3, 1, 2}}},
        {{.layout = COX_VIDEO_BGRA, .depth = 16}, 3, 2, 1, {{24, 2, 1, 2}}},
        {{.layout = COX_VIDEO_BGRA, .depth = 8}, 3, 2, 1, {{12, 2, 1, 1}}},
        {{.layout = COX_VIDEO_GBR, .depth = 8}, 3, 2, 3, {{3, 2, 1, 1}, {3, 2, 1, 1}, {3, 2, 1, 1}}},
        {{.layout = COX_VIDEO_GBR, .depth = 10, .range = COX_RANGE_FULL},
         3,
         2,
         3,
         {{6, 2, 1, 2}, {6, 2, 1, 2}, {6, 2, 1, 2}}},
        {{.layout = COX_VIDEO_V210, .depth = 10, .chroma_x_log2 = 1}, 1, 3, 1, {{16, 3, 1, 4}}},
        {{.layout = COX_VIDEO_V210, .depth = 10, .chroma_x_log2 = 1}, 1920, 1080, 1, {{5120, 1080, 1, 4}}},
        {{.layout = COX_VIDEO_V210, .depth = 10, .chroma_x_log2 = 1}, 1921, 1, 1, {{5136, 1, 1, 4}}},
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
        cr_expect_eq(cox_video_planes(&good[i].format, good[i].width, good[i].height, planes), good[i].count,
                     "format %zu", i);
        for (uint32_t p = 0; p < good[i].count; p++) {
            cr_expect_eq(planes[p].row_bytes, good[i].planes[p].row_bytes, "format %zu, plane %u", i, p);
            cr_expect_eq(planes[p].rows, good[i].planes[p].rows, "format %zu, plane %u", i, p);
            cr_expect_eq(planes[p].row_divisor, good[i].planes[p].row_divisor, "format %zu, plane %u", i, p);
            cr_expect_eq(planes[p].sample_bytes, good[i].planes[p].sample_bytes, "format %zu, plane %u", i, p);
        }
    }
    static const struct {
        struct cox_video_format format;
        uint32_t width, height;
    } bad[] = {
        {{.depth = 8}, 0, 4},
        {{.depth = 8}, 4, 0},
        {{.depth = 8}, 65537, 4},
        {{.depth = 8}, 4, 65537},
        {{.depth = 7}, 4, 4},
        {{.depth = 17}, 4, 4},
        {{.depth = 0}, 4, 4},
        {{.depth = 8, .chroma_y_log2 = 1}, 4, 4},
        {{.depth = 8, .chroma_x_log2 = 2}, 4, 4},
        {{.depth = 8, .chroma_x_log2 = 2, .chroma_y_log2 = 2}, 4, 4},
        {{.layout = (enum cox_video_layout)6, .depth = 8}, 4, 4},
        {{.layout = (enum cox_video_layout) - 1, .depth = 8}, 4, 4},
        {{.layout = COX_VIDEO_SEMI_PLANAR, .depth = 8}, 4, 4},
        {{.layout = COX_VIDEO_BGRA, .depth = 10}, 4, 4},
        {{.layout = COX_VIDEO_BGRA, .depth = 8, .chroma_x_log2 = 1}, 4, 4},
        {{.layout = COX_VIDEO_GBR, .depth = 8, .chroma_x_log2 = 1}, 4, 4},
        {{.layout = COX_VIDEO_GBR, .depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1}, 4, 4},
        {{.layout = COX_VIDEO_GBR, .depth = 17}, 4, 4},
        {{.layout = COX_VIDEO_V210, .depth = 10}, 4, 4},
        {{.layout = COX_VIDEO_V210, .depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1}, 4, 4},
        {{.layout = COX_VIDEO_V210, .depth = 10, .high_bits = true, .chroma_x_log2 = 1}, 4, 4},
        {{.layout = COX_VIDEO_V210, .depth = 8, .chroma_x_log2 = 1}, 4, 4},
        {{.layout = COX_VIDEO_RGBA, .depth = 10, .range = COX_RANGE_FULL}, 4, 4},
        {{.layout = COX_VIDEO_RGBA, .depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1}, 4, 4},
        {{.depth = 8, .site = (enum cox_chroma_site)3}, 4, 4},
        {{.depth = 8, .range = (enum cox_range)2}, 4, 4},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
        cr_expect_eq(cox_video_planes(&bad[i].format, bad[i].width, bad[i].height, planes), 0, "format %zu", i);
    }
}

static void spoil_shape(int how, struct cox_video_shape *s)
{
    switch (how) {
    case 0:
        s->width = 0;
        break;
    case 1:
        s->height = 65537;
        break;
    case 2:
        s->in.depth = 7;
        break;
    case 3:
        s->out.depth = 17;
        break;
    case 4: /* chroma in less detail than it is to have */
        s->out.chroma_x_log2 = s->out.chroma_y_log2 = 0;
        s->out_pitch_bytes[1] = s->out_pitch_bytes[2] = 64;
        break;
    case 5:
        s->out.chroma_y_log2 = 0;
        break;
    case 6:
        s->transfer = COX_TRANSFER_LINEAR; /* RGBA only */
        break;
    case 7:
        s->transfer = (enum cox_transfer)3;
        break;
    case 8:
        s->primaries = (enum cox_primaries)2;
        break;
    case 9:
        s->op = COX_OPERATOR_EXPOSURE;
        break;
    case 10:
        s->op = COX_OPERATOR_COUNT;
        break;
    case 11:
        s->dither = (enum cox_dither)2;
        break;
    case 12:
        s->in_pitch_bytes[0] = 62; /* a row is 64 bytes */
        break;
    case 13:
        s->in_pitch_bytes[1] = 30;
        break;
    case 14:
        s->out_pitch_bytes[2] = 14;
        break;
    case 15:
        s->in_pitch_bytes[2] = 34; /* no multiple of 4 */
        break;
    case 16:
        s->out_pitch_bytes[0] = (size_t)1 << 31;
        break;
    case 17:
        s->in_pitch_bytes[0] = SIZE_MAX - 3;
        break;
    case 18:
        s->in = format_of(COX_VIDEO_RGBA, 8, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL);
        s->in_pitch_bytes[0] = 256;
        s->transfer = COX_TRANSFER_LINEAR; /* half floats only */
        break;
    case 19:
        s->in.site = (enum cox_chroma_site)3;
        break;
    case 20:
        s->out.range = (enum cox_range) - 1;
        break;
    case 21:
        s->gamut = (enum cox_gamut)2;
        break;
    case 22: /* a pitch that is no multiple of 16 */
        s->in = format_of(COX_VIDEO_V210, 10, SUB_422, COX_SITE_LEFT, COX_RANGE_LIMITED);
        s->in_pitch_bytes[0] = 100;
        break;
    case 23: /* in only */
        s->out = format_of(COX_VIDEO_V210, 10, SUB_422, COX_SITE_LEFT, COX_RANGE_LIMITED);
        s->out_pitch_bytes[0] = 96;
        break;
    case 24:
        s->in = format_of(COX_VIDEO_GBR, 10, SUB_444, COX_SITE_LEFT, COX_RANGE_LIMITED);
        s->in_pitch_bytes[1] = s->in_pitch_bytes[2] = 64;
        s->transfer = COX_TRANSFER_LINEAR;
        break;
    case 25: /* half floats are not scaled to any size */
        s->in = format_of(COX_VIDEO_BGRA, 16, SUB_444, COX_SITE_LEFT, COX_RANGE_FULL);
        s->in_pitch_bytes[0] = 256;
        s->transfer = COX_TRANSFER_LINEAR;
        s->scale = COX_SCALE_FILTER;
        s->out_width = 32;
        s->out_height = 18;
        break;
    default:
        break;
    }
}

Test(video, refuses_shapes_that_are_none)
{
    struct cox_video_shape good = plain_shape(32, 18, 10, 8, COX_OPERATOR_HABLE);
    good.in_pitch_bytes[0] = 64;
    good.in_pitch_bytes[1] = good.in_pitch_bytes[2] = good.out_pitch_bytes[0] = 32;
    good.out_pitch_bytes[1] = good.out_pitch_bytes[2] = 16;
    struct cox_video_storage storage;
    struct cox_video_params params;
    const struct cox_video_settings settings = {0};
    for (int analyse = 0; analyse < 2; analyse++) {
        struct cox_session_params session = {.in_flight = 7};
        cr_expect_eq(cox_video_mapping(&good, analyse, &storage, &session), COX_OK);
        cr_expect_eq(session.rows, 18);
        cr_expect_eq(session.binding_count, 6u + (analyse ? 1u : 0u));
        cr_expect_eq(session.params_bytes, sizeof(params));
        cr_expect_eq(session.in_flight, 7, "the other fields are left alone");
    }
    struct cox_session_params session = {0};
    cr_expect_eq(cox_video_analysis(&good, &storage, &session), COX_OK);
    cr_expect_eq(session.binding_count, 4);
    cr_expect_eq(cox_video_prepare(&good, &settings, &params), COX_OK);
    for (int how = 0; how <= 25; how++) {
        struct cox_video_shape bad = good;
        spoil_shape(how, &bad);
        cr_expect_eq(cox_video_mapping(&bad, false, &storage, &session), COX_E_INVALID, "shape %d", how);
        cr_expect_eq(cox_video_mapping(&bad, true, &storage, &session), COX_E_INVALID, "shape %d", how);
        cr_expect_eq(cox_video_prepare(&bad, &settings, &params), COX_E_INVALID, "shape %d", how);
    }
    cr_expect_eq(cox_video_mapping(NULL, false, &storage, &session), COX_E_INVALID);
    cr_expect_eq(cox_video_mapping(&good, false, NULL, &session), COX_E_INVALID);
    cr_expect_eq(cox_video_mapping(&good, false, &storage, NULL), COX_E_INVALID);
    cr_expect_eq(cox_video_prepare(&good, NULL, &params), COX_E_INVALID);
    cr_expect_eq(cox_video_prepare(&good, &settings, NULL), COX_E_INVALID);
}

Test(video, refuses_settings_that_are_none)
{
    struct cox_video_shape shape = plain_shape(32, 18, 10, 8, COX_OPERATOR_HABLE);
    shape.in_pitch_bytes[0] = 64;
    shape.in_pitch_bytes[1] = shape.in_pitch_bytes[2] = shape.out_pitch_bytes[0] = 32;
    shape.out_pitch_bytes[1] = shape.out_pitch_bytes[2] = 16;
    const struct cox_video_settings bad[] = {
        {.sdr_white_nits = -1}, {.sdr_white_nits = NAN}, {.sdr_white_nits = INFINITY},
        {.peak_nits = -1},      {.peak_nits = NAN},      {.peak_nits = INFINITY},
        {.hlg_peak_nits = -1},  {.hlg_peak_nits = NAN},  {.hlg_peak_nits = INFINITY},
        {.gain = -1},           {.gain = NAN},           {.gain = INFINITY},
        {.desaturate = NAN},    {.gamut_knee = 0.24f},   {.gamut_knee = 1},
        {.gamut_knee = NAN},
    };
    struct cox_video_params params;
    for (int op = 0; op < OPERATORS; op++) {
        shape.op = operators[op];
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
            cr_expect_eq(cox_video_prepare(&shape, &bad[i], &params), COX_E_INVALID, "settings %zu, %s", i,
                         cox_operator_name(operators[op]));
        const struct cox_video_settings odd[] = {
            {.sdr_white_nits = 80, .peak_nits = 80},
            {.peak_nits = 10000},
            {.peak_nits = 100},
            {.hlg_peak_nits = 4000},
            {.gain = 0x1p-6f},
            {.desaturate = 9},
            {.gamut_knee = 0.25f},
            {.desaturate = -INFINITY},
            {.sdr_white_nits = 1000},
        };
        for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
            cr_expect_eq(cox_video_prepare(&shape, &odd[i], &params), COX_OK, "settings %zu, %s", i,
                         cox_operator_name(operators[op]));
    }
}
