/* SPDX-License-Identifier: Apache-2.0 */
#include "ref_filter_case.h"
#include "random_splits.h"
#include "ref_filter.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Groups of 32 work-items: llvmpipe has no larger ones with local memory. */
#define SHAPE(w, h, what, count, ...)                                                                \
    {                                                                                                \
        .width = (w), .height = (h), .sample = (what), .channels = (count), .group = 32, __VA_ARGS__ \
    }
#define F COX_FILTER_FLOAT
#define U8 COX_FILTER_8
#define U16 COX_FILTER_16
#define RADII(x, y) .radius_x = (x), .radius_y = (y)
#define EXCHANGE .form = COX_FILTER_EXCHANGE
#define MIRROR .edge = COX_FILTER_MIRROR
#define ZERO .edge = COX_FILTER_ZERO

const struct filter_case filter_cases[] = {
    {"point", FILTER_SEPARABLE, SHAPE(1, 1, F, 1, RADII(2, 1), MIRROR), 0, 0},
    {"point", FILTER_SEPARABLE, SHAPE(1, 1, F, 1, RADII(2, 1), MIRROR, EXCHANGE), 0, 0},
    {"floats", FILTER_SEPARABLE, SHAPE(337, 121, F, 1, RADII(2, 3)), 0, 0},
    {"floats", FILTER_SEPARABLE, SHAPE(337, 121, F, 1, RADII(2, 3), EXCHANGE), 0, 0},
    {"floats-4", FILTER_SEPARABLE, SHAPE(83, 97, F, 4, RADII(31, 31), MIRROR), 0, 0},
    {"floats-4", FILTER_SEPARABLE, SHAPE(83, 97, F, 4, RADII(31, 31), MIRROR, EXCHANGE), 0, 0},
    {"floats-0", FILTER_SEPARABLE, SHAPE(43, 61, F, 3, RADII(4, 0), ZERO), 0, 0},
    {"bytes", FILTER_SEPARABLE, SHAPE(331, 127, U8, 1, RADII(3, 2), MIRROR), 0, 0},
    {"bytes", FILTER_SEPARABLE, SHAPE(331, 127, U8, 1, RADII(3, 2), MIRROR, EXCHANGE), 0, 0},
    {"bytes-4", FILTER_SEPARABLE, SHAPE(57, 39, U8, 4, RADII(0, 7), ZERO), 0, 0},
    {"words", FILTER_SEPARABLE, SHAPE(201, 99, U16, 1, RADII(5, 5)), 0, 0},
    {"words", FILTER_SEPARABLE, SHAPE(201, 99, U16, 1, RADII(5, 5), EXCHANGE), 0, 0},
    {"words-2", FILTER_SEPARABLE, SHAPE(19, 23, U16, 2, RADII(31, 30), MIRROR), 0, 0},
    {"square", FILTER_CONVOLUTION, SHAPE(211, 83, F, 1, RADII(1, 1)), 0, 0},
    {"square-4", FILTER_CONVOLUTION, SHAPE(31, 29, F, 4, RADII(7, 7), MIRROR), 0, 0},
    {"square-8", FILTER_CONVOLUTION, SHAPE(123, 77, U8, 1, RADII(2, 4), ZERO), 0, 0},
    {"square-16", FILTER_CONVOLUTION, SHAPE(47, 55, U16, 3, RADII(3, 1), MIRROR), 0, 0},
    {"gauss", FILTER_GAUSSIAN, SHAPE(1, 1, F, 1), 2, 3},
    {"gauss", FILTER_GAUSSIAN, SHAPE(149, 211, F, 1), 0.5f, 1.7f},
    {"gauss", FILTER_GAUSSIAN, SHAPE(149, 211, F, 1, EXCHANGE), 0.5f, 1.7f},
    {"gauss-12", FILTER_GAUSSIAN, SHAPE(173, 98, F, 1), 12, 5},
    {"gauss-12", FILTER_GAUSSIAN, SHAPE(173, 98, F, 1, EXCHANGE), 12, 5},
    {"gauss-128", FILTER_GAUSSIAN, SHAPE(300, 250, F, 1), 128, 40},
    {"gauss-128", FILTER_GAUSSIAN, SHAPE(300, 250, F, 1, EXCHANGE), 128, 40},
    {"gauss-4", FILTER_GAUSSIAN, SHAPE(51, 67, F, 4), 3, 9},
    {"gauss-4", FILTER_GAUSSIAN, SHAPE(51, 67, F, 4, EXCHANGE), 3, 9},
    {"gauss-3", FILTER_GAUSSIAN, SHAPE(70, 33, F, 3), 7, 2},
    {"box", FILTER_BOX, SHAPE(1, 1, U8, 1, RADII(3, 3)), 0, 0},
    {"box-8", FILTER_BOX, SHAPE(307, 211, U8, 1, RADII(7, 4)), 0, 0},
    {"box-8", FILTER_BOX, SHAPE(307, 211, U8, 1, RADII(7, 4), EXCHANGE), 0, 0},
    {"box-16", FILTER_BOX, SHAPE(261, 270, U16, 1, RADII(127, 127), EXCHANGE), 0, 0},
    {"box-16", FILTER_BOX, SHAPE(261, 270, U16, 1, RADII(127, 127)), 0, 0},
    {"box-4", FILTER_BOX, SHAPE(45, 71, U8, 4, RADII(0, 9)), 0, 0},
    {"guided", FILTER_GUIDED, SHAPE(1, 1, U8, 1, RADII(2, 2)), 0.01f, 0},
    {"guided-8", FILTER_GUIDED, SHAPE(117, 131, U8, 1, RADII(4, 8)), 0.01f, 0},
    {"guided-8", FILTER_GUIDED, SHAPE(117, 131, U8, 1, RADII(4, 8), EXCHANGE), 0.01f, 0},
    {"guided-by", FILTER_GUIDED, SHAPE(117, 131, U8, 1, RADII(3, 3)), 0.0f, 1},
    {"guided-16", FILTER_GUIDED, SHAPE(133, 140, U16, 1, RADII(63, 63), EXCHANGE), 0.04f, 1},
    {"guided-16", FILTER_GUIDED, SHAPE(133, 140, U16, 1, RADII(63, 63)), 0.04f, 1},
    {"guided-4", FILTER_GUIDED, SHAPE(37, 41, U16, 4, RADII(2, 2)), 0.0f, 1},
    {"turn", FILTER_TRANSPOSITION, SHAPE(1, 1, F, 1), 0, 0},
    {"turn-4", FILTER_TRANSPOSITION, SHAPE(213, 130, F, 1), 0, 0},
    {"turn-16", FILTER_TRANSPOSITION, SHAPE(65, 187, F, 4), 0, 0},
    {"sums-8", FILTER_PREFIX_SUMS, SHAPE(601, 40, U8, 1), 0, 0},
    {"sums-16", FILTER_PREFIX_SUMS, SHAPE(65536, 5, U16, 1), 0, 0},
};
const uint32_t filter_case_count = sizeof filter_cases / sizeof filter_cases[0];

enum { WEIGHTS_MAX = 225 };

/* --- Planes ------------------------------------------------------------------------------------------------------- */

static size_t sample_bytes(enum cox_filter_sample sample)
{
    return sample == COX_FILTER_FLOAT ? 4 : sample == COX_FILTER_8 ? 1 : 2;
}

/* Light over a few stops. One sample in sixteen has any size and sign. Some are infinite, tiny or NaN, but not in
 * the Gaussian's input, where a huge value would spread over everything. */
static float draw_float(uint64_t *seed, bool tame)
{
    const float x = (float)random_below(seed, 1 << 20) * 0x1p-18f;
    const uint32_t kind = tame ? 1 : random_below(seed, 64);
    static const float odd[] = {INFINITY, -INFINITY, NAN, 1e-44f, -1e-39f, 3e38f, -0.0f, 0x1p-40f, -0x1p-41f};
    if (kind == 0)
        return odd[random_below(seed, sizeof odd / sizeof *odd)];
    return kind < 4 ? ldexpf(x, (int)random_below(seed, 40) - 20) * (kind == 2 ? -1.0f : 1.0f) : x;
}

static void fill_plane(void *plane, const struct cox_filter_shape *s, size_t pitch, uint64_t seed, bool tame, bool bits)
{
    for (uint32_t y = 0; y < s->height; y++) {
        char *row = (char *)plane + y * pitch;
        for (uint32_t e = 0; e < s->width * s->channels; e++) {
            const uint32_t level = (e / 24 + y / 16) * 2654435761u >> 24; /* blocks with edges, for the guide */
            const uint32_t most = s->sample == COX_FILTER_8 ? 255 : 65535;
            const uint32_t code = random_below(&seed, 8)
                                      ? (level * (most / 255) + random_below(&seed, most / 16)) % (most + 1)
                                      : random_below(&seed, most + 1);
            if (bits)
                ((uint32_t *)(void *)row)[e] = (uint32_t)random_next(&seed);
            else if (s->sample == COX_FILTER_FLOAT)
                ((float *)(void *)row)[e] = draw_float(&seed, tame);
            else if (s->sample == COX_FILTER_8)
                ((uint8_t *)row)[e] = (uint8_t)code;
            else
                ((uint16_t *)(void *)row)[e] = (uint16_t)code;
        }
    }
}

static double *read_plane(const struct cox_filter_shape *s, const void *data, size_t pitch)
{
    const uint32_t row = s->width * s->channels;
    double *plane = calloc((size_t)row * s->height, sizeof *plane);
    if (!plane)
        abort();
    for (uint32_t y = 0; y < s->height; y++) {
        const char *from = (const char *)data + y * pitch;
        for (uint32_t e = 0; e < row; e++)
            plane[(size_t)y * row + e] = s->sample == COX_FILTER_FLOAT ? (double)((const float *)(const void *)from)[e]
                                         : s->sample == COX_FILTER_8   ? ((const uint8_t *)from)[e]
                                                                       : ((const uint16_t *)(const void *)from)[e];
    }
    return plane;
}

/* --- Parameters --------------------------------------------------------------------------------------------------- */

/* Weights of any sign, always the same for a shape. */
struct weights {
    float across[WEIGHTS_MAX], down[WEIGHTS_MAX];
    int32_t across_int[WEIGHTS_MAX], down_int[WEIGHTS_MAX];
    struct cox_filter_weights all;
};

static void draw_weights(const struct filter_test *test, struct weights *w)
{
    const struct cox_filter_shape *s = &test->shape;
    const bool square = test->about->kind == FILTER_CONVOLUTION;
    const int taps = (int)(square ? (2 * s->radius_x + 1) * (2 * s->radius_y + 1) : 63);
    const int most = s->sample == COX_FILTER_16 ? 1 << 14 : square ? 1 << 22 : 1 << 11;
    uint64_t seed = s->width * 131 + s->radius_x;
    *w = (struct weights){.all = {0}};
    for (int i = 0; i < taps; i++) {
        w->across[i] = ((float)random_below(&seed, 4096) - 500.0f) / 4096;
        w->down[i] = i == 1 ? 0x1p-41f : ((float)random_below(&seed, 4096) - 500.0f) / 4096;
        w->across_int[i] = (int32_t)random_below(&seed, (uint32_t)(most / taps)) - most / taps / 8;
        w->down_int[i] = (int32_t)random_below(&seed, (uint32_t)(most / taps)) - most / taps / 8;
    }
    /* Choose `shift` so that results are about as large as the input. Windows are larger and have no weights. */
    int64_t across = 0, down = 0;
    for (int i = 0; i < taps && (square || i < (int)(2 * s->radius_x + 1)); i++)
        across += w->across_int[i];
    for (int i = 0; i < taps && i < (int)(2 * s->radius_y + 1); i++)
        down += w->down_int[i];
    for (int64_t sum = llabs(square ? across : across * down); sum > 1 && w->all.shift < 28; sum /= 2)
        w->all.shift++;
    w->all.across = w->across;
    w->all.down = w->down;
    w->all.across_int = w->across_int;
    w->all.down_int = w->down_int;
}

static cox_status fill(struct filter_test *test)
{
    const struct filter_case *about = test->about;
    struct weights weights;
    cox_status status;
    draw_weights(test, &weights);
#define FILL(fill, prepare, ...)                                 \
    status = fill(&test->shape, &test->storage, &test->session); \
    return status ? status : prepare(&test->shape, __VA_ARGS__)
    switch (about->kind) {
    case FILTER_SEPARABLE:
        FILL(cox__convolution_separable, cox_filter_separable_prepare, &weights.all, &test->params);
    case FILTER_CONVOLUTION:
        FILL(cox__convolution_full, cox_filter_convolution_prepare, &weights.all, &test->params);
    case FILTER_GAUSSIAN:
        FILL(cox__gauss_filter, cox_filter_gaussian_prepare, about->first, about->second, &test->params);
    case FILTER_BOX:
        FILL(cox__window_box, cox__window_box_prepare, &test->params);
    case FILTER_GUIDED:
        FILL(cox__window_guided, cox_filter_guided_prepare, about->first, &test->params);
    case FILTER_TRANSPOSITION:
        FILL(cox__lines_transposition, cox__lines_transposition_prepare, &test->params);
    case FILTER_PREFIX_SUMS:
        FILL(cox__lines_prefix_sums, cox__lines_prefix_sums_prepare, &test->params);
    }
    return COX_E_INVALID;
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

static size_t pitch_of(size_t row_bytes, size_t align)
{
    return (row_bytes + align - 1) / align * align;
}

/* Memory that cox_buffer_wrap accepts without a copy. */
static void *add_plane(struct filter_test *test, cox_runtime *runtime, size_t row_bytes, size_t pitch, uint32_t rows,
                       bool written)
{
    enum { PAGE = 4096 };
    const size_t bytes = pitch_of(pitch * rows, PAGE);
    uint8_t *data = aligned_alloc(PAGE, bytes);
    bits_need(data ? COX_OK : COX_E_NOMEM, "memory");
    memset(data, 0, bytes);
    bits_frame_add(&test->frame, runtime,
                   (struct bits_plane){
                       .row_bytes = row_bytes, .pitch_bytes = pitch, .rows = rows, .written = written, .data = data});
    return data;
}

cox_status filter_test_open(struct filter_test *test, cox_runtime *runtime, const struct filter_case *about,
                            size_t align, uint32_t most)
{
    memset(test, 0, sizeof *test);
    test->about = about;
    test->shape = about->shape;
    struct cox_filter_shape *s = &test->shape;
    s->width = s->width < most ? s->width : most;
    s->height = s->height < most ? s->height : most;
    const bool turned = about->kind == FILTER_TRANSPOSITION, sums = about->kind == FILTER_PREFIX_SUMS;
    const bool guide = about->kind == FILTER_GUIDED && about->second != 0.0f;
    const size_t in_row = s->width * s->channels * sample_bytes(s->sample);
    const size_t out_row = turned ? (size_t)s->height * s->channels * 4 : sums ? (size_t)s->width * 4 : in_row;
    s->in_pitch_bytes = pitch_of(in_row, align);
    s->out_pitch_bytes = pitch_of(out_row + 1, align);
    s->guide_pitch_bytes = guide ? s->in_pitch_bytes : 0;
    const cox_status status = fill(test);
    if (status)
        return status;

    void *in = add_plane(test, runtime, in_row, s->in_pitch_bytes, s->height, false);
    fill_plane(in, s, s->in_pitch_bytes, 1, about->kind == FILTER_GAUSSIAN, turned);
    add_plane(test, runtime, out_row, s->out_pitch_bytes, turned ? s->width : s->height, true);
    if (guide)
        fill_plane(add_plane(test, runtime, in_row, s->in_pitch_bytes, s->height, false), s, s->in_pitch_bytes, 2,
                   false, false);
    test->frame.count = test->session.binding_count;
    return COX_OK;
}

void filter_test_close(struct filter_test *test)
{
    struct bits_frame frame = test->frame;
    bits_frame_close(&test->frame);
    for (int p = 0; p < 3; p++)
        free(frame.planes[p].data);
}

/* --- Against the reference ---------------------------------------------------------------------------------------- */

static double largest_distance(const double *a, const double *b, size_t count)
{
    double worst = 0;
    for (size_t i = 0; i < count; i++)
        worst = fmax(worst, fabs(a[i] - b[i]));
    return worst;
}

static bool same_floats(const double *a, const double *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (a[i] != b[i] || signbit(a[i]) != signbit(b[i]))
            return false;
    }
    return true;
}

static bool judge_copies(const struct filter_test *test, const uint8_t *result)
{
    const struct cox_filter_shape *s = &test->shape;
    const size_t pixel = 4 * (size_t)s->channels;
    const uint8_t *in = test->frame.planes[0].data;
    bool good = true;
    for (uint32_t y = 0; y < s->height; y++) {
        const uint8_t *row = in + y * s->in_pitch_bytes;
        uint32_t sum = 0;
        for (uint32_t x = 0; x < s->width; x++) {
            if (test->about->kind == FILTER_TRANSPOSITION) {
                good &= !memcmp(result + x * test->frame.planes[1].row_bytes + y * pixel, row + x * pixel, pixel);
            } else {
                sum += s->sample == COX_FILTER_8 ? row[x] : ((const uint16_t *)(const void *)row)[x];
                good &= !memcmp(result + y * test->frame.planes[1].row_bytes + 4 * (size_t)x, &sum, 4);
            }
        }
    }
    return good;
}

bool filter_test_judge(const struct filter_test *test, const uint8_t *result, char *text, size_t text_bytes)
{
    const struct filter_case *about = test->about;
    const struct cox_filter_shape *s = &test->shape;
    const size_t count = (size_t)s->width * s->channels * s->height;
    bool good = false;
    if (about->kind == FILTER_TRANSPOSITION || about->kind == FILTER_PREFIX_SUMS) {
        good = judge_copies(test, result);
        snprintf(text, text_bytes, "%s", good ? "exact" : "WRONG");
        return good;
    }
    double *in = read_plane(s, test->frame.planes[0].data, s->in_pitch_bytes);
    double *guide = test->frame.planes[2].data ? read_plane(s, test->frame.planes[2].data, s->in_pitch_bytes) : in;
    double *got = read_plane(s, result, test->frame.planes[1].row_bytes);
    double *want = calloc(count, sizeof *want), *other = calloc(count, sizeof *other), ulps = 0;
    if (!want || !other)
        abort();
    struct weights weights;
    draw_weights(test, &weights);
    switch (about->kind) {
    case FILTER_SEPARABLE:
        ref_filter_separable(s, in, &weights.all, want, &ulps);
        good = same_floats(got, want, count) && ulps <= 2 * (s->radius_x + s->radius_y) + 3;
        snprintf(text, text_bytes, "%s %.2f", same_floats(got, want, count) ? "exact" : "WRONG", ulps);
        break;
    case FILTER_CONVOLUTION:
        ref_filter_convolution(s, in, &weights.all, want, &ulps);
        good = same_floats(got, want, count) && ulps <= (2 * s->radius_x + 1) * (2 * s->radius_y + 1) + 1;
        snprintf(text, text_bytes, "%s %.2f", same_floats(got, want, count) ? "exact" : "WRONG", ulps);
        break;
    case FILTER_GAUSSIAN: {
        ref_filter_recursive(s, in, (double)about->first, (double)about->second, want);
        ref_filter_gaussian(s, in, (double)about->first, (double)about->second, other);
        double most = 0;
        for (size_t i = 0; i < count; i++)
            most = fmax(most, fabs(in[i]));
        const double sigma = fmax((double)about->first, (double)about->second);
        const double far = largest_distance(got, want, count) / most,
                     shape = largest_distance(want, other, count) / most;
        good = far <= (sigma + 4) * 0x1p-24 && shape <= 0.05;
        snprintf(text, text_bytes, "%.1f %.4f", far * 0x1p24, shape);
        break;
    }
    case FILTER_BOX:
        ref_filter_box(s, in, want);
        good = same_floats(got, want, count);
        snprintf(text, text_bytes, "%s", good ? "exact" : "WRONG");
        break;
    default: {
        ref_filter_guided(s, in, guide, (double)about->first, want);
        ref_filter_guided_exact(s, in, guide, (double)about->first, other);
        double most = s->sample == COX_FILTER_8 ? 255 : 65535, far = 0;
        for (size_t i = 0; i < count; i++)
            far = fmax(far, fabs(got[i] - fmin(fmax(other[i], 0), most)));
        good = same_floats(got, want, count) && far <= 0.55;
        snprintf(text, text_bytes, "%s %.3f", same_floats(got, want, count) ? "exact" : "WRONG", far);
    }
    }
    free(in);
    if (guide != in)
        free(guide);
    free(got);
    free(want);
    free(other);
    return good;
}
