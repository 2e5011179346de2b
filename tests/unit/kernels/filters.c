/* The filters through the public interface:
 *   What they refuse.
 *   What they leave unchanged.
 *   Work-group sizes that other tests do not use.
 *
 * tests/bits/filter.c checks that results are right and the same on all devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "devices.h"
#include <math.h>

TestSuite(filters, .timeout = 1200);

static void open_cpu(void)
{
    open_runtime("cpu");
}

#define CPU_TEST(name) Test(filters, name, .init = open_cpu, .fini = close_devices)

/* Run one frame. The caller frees the returned output. NULL: the device does not support it. */
static void *filter(struct cox__session_spec *pipeline, const struct cox_constants *params, const void *in,
                    size_t in_bytes, size_t out_bytes)
{
    cox_session *session = NULL;
    struct bits_frame frame = {0};
    pipeline->no_warmup = true;
    pipeline->device_timeout_ns = 60000000000; /* for a busy machine */
    const cox_status status = cox__session_create(runtime, pipeline, &session);
    if (status == COX_E_UNSUPPORTED || status == COX_E_BUILD)
        return NULL;
    cr_assert_eq(status, COX_OK, "%s: %s", cox_status_name(status), last_log);

    bits_frame_add(&frame, runtime, (struct bits_plane){.row_bytes = in_bytes, .pitch_bytes = in_bytes, .rows = 1});
    bits_frame_add(&frame, runtime,
                   (struct bits_plane){.row_bytes = out_bytes, .pitch_bytes = out_bytes, .rows = 1, .written = true});
    memcpy(frame.planes[0].data, in, in_bytes);
    session_run(session, frame.buffers, pipeline->binding_count, params, "a filter");
    void *out = bits_frame_result(&frame);
    cox_session_destroy(&session);
    bits_frame_close(&frame);
    return out;
}

/* A frame that must come out as it went in. */
static void expect_kept(struct cox__session_spec *pipeline, const struct cox_constants *params, const void *in,
                        size_t bytes, const char *what)
{
    void *out = filter(pipeline, params, in, bytes, bytes);
    cr_assert_not_null(out);
    cr_expect_arr_eq(out, in, bytes, "%s", what);
    free(out);
}

/* --- What is refused ---------------------------------------------------------------------------------------------- */

typedef cox_status fill_fn(const struct cox_filter_shape *shape, struct cox__pipeline_storage *storage,
                           struct cox__session_spec *session);
static fill_fn *const fills[] = {
    cox__convolution_separable, cox__convolution_full,    cox__gauss_filter,     cox__window_box,
    cox__window_guided,         cox__lines_transposition, cox__lines_prefix_sums};
enum { FILLS = sizeof fills / sizeof fills[0], INTEGERS_FIRST = 3, RADII_COUNT = 5 };

static struct cox_filter_shape good_shape(int f)
{
    const bool floats = f == 2 || f == 5;
    return (struct cox_filter_shape){.width = 20,
                                     .height = 10,
                                     .sample = floats ? COX_FILTER_FLOAT : COX_FILTER_8,
                                     .in_pitch_bytes = 80,
                                     .out_pitch_bytes = 80};
}

static cox_status try_shape(int f, const struct cox_filter_shape *shape)
{
    static struct cox__pipeline_storage storage;
    struct cox__session_spec session = {0};
    return fills[f](shape, &storage, &session);
}

#define REFUSED(f, change)                                                                     \
    do {                                                                                       \
        struct cox_filter_shape changed = good_shape(f);                                       \
        changed.change;                                                                        \
        cr_expect_eq(try_shape(f, &changed), COX_E_INVALID, "filter %d takes %s", f, #change); \
    } while (0)

Test(filters, refuse_shapes_that_they_cannot_do)
{
    for (int f = 0; f < FILLS; f++) {
        struct cox_filter_shape shape = good_shape(f);
        cr_expect_eq(try_shape(f, &shape), COX_OK, "filter %d", f);
        cr_expect_eq(try_shape(f, NULL), COX_E_INVALID);
        cr_expect_eq(fills[f](&shape, NULL, &(struct cox__session_spec){0}), COX_E_INVALID);
        cr_expect_eq(fills[f](&shape, &(struct cox__pipeline_storage){{0}}, NULL), COX_E_INVALID);
        REFUSED(f, width = 0);
        REFUSED(f, height = 65537);
        REFUSED(f, sample = (enum cox_filter_sample)3);
        REFUSED(f, channels = 5);
        REFUSED(f, in_pitch_bytes = 82);
        REFUSED(f, in_pitch_bytes = 16);
        REFUSED(f, out_pitch_bytes = 16);
        REFUSED(f, edge = (enum cox_filter_edge)3);
        REFUSED(f, form = (enum cox_filter_form)3);
        REFUSED(f, group = 48);
        REFUSED(f, group = 16);
    }
    static const uint32_t radii[RADII_COUNT] = {31, 7, 0, 127, 63};
    for (int f = 0; f < RADII_COUNT; f++) {
        REFUSED(f, radius_x = radii[f] + 1);
        REFUSED(f, radius_y = radii[f] + 1);
    }
    REFUSED(2, sample = COX_FILTER_8);
    REFUSED(3, sample = COX_FILTER_FLOAT);
    REFUSED(3, guide_pitch_bytes = 80);
    REFUSED(4, guide_pitch_bytes = 16);
    REFUSED(5, channels = 2);
    REFUSED(6, channels = 2);
}

Test(filters, refuse_parameters_that_they_cannot_do)
{
    static struct cox_constants params;
    struct cox_filter_shape shape = good_shape(0);
    int32_t ints[15 * 15] = {1 << 11};
    float floats[15 * 15] = {1};
    struct cox_filter_weights weights = {.across_int = ints, .down_int = ints, .shift = 22};
    cr_expect_eq(cox_filter_separable_prepare(&shape, &weights, &params), COX_OK);
    cr_expect_eq(cox_filter_separable_prepare(&shape, NULL, &params), COX_E_INVALID);
    cr_expect_eq(cox_filter_separable_prepare(&shape, &weights, NULL), COX_E_INVALID);
    weights.shift = 29;
    cr_expect_eq(cox_filter_separable_prepare(&shape, &weights, &params), COX_E_INVALID);
    weights.shift = 22;
    ints[0] = -(1 << 11) - 1;
    cr_expect_eq(cox_filter_separable_prepare(&shape, &weights, &params), COX_E_INVALID);
    cr_expect_eq(cox_filter_convolution_prepare(&shape, &weights, &params), COX_OK);
    ints[0] = INT32_MIN;
    cr_expect_eq(cox_filter_convolution_prepare(&shape, &weights, &params), COX_E_INVALID);
    shape.sample = COX_FILTER_FLOAT;
    cr_expect_eq(cox_filter_separable_prepare(&shape, &weights, &params), COX_E_INVALID, "no weights for floats");
    weights.across = weights.down = floats;
    cr_expect_eq(cox_filter_separable_prepare(&shape, &weights, &params), COX_OK);
    floats[0] = NAN;
    cr_expect_eq(cox_filter_separable_prepare(&shape, &weights, &params), COX_E_INVALID);
    floats[0] = 0x1p21f;
    cr_expect_eq(cox_filter_convolution_prepare(&shape, &weights, &params), COX_E_INVALID);
    const float sigmas[] = {0.4f, 129, NAN, -1};
    for (int i = 0; i < 4; i++) {
        cr_expect_eq(cox_filter_gaussian_prepare(&shape, sigmas[i], 1, &params), COX_E_INVALID);
        cr_expect_eq(cox_filter_gaussian_prepare(&shape, 1, sigmas[i], &params), COX_E_INVALID);
    }
    shape = good_shape(4);
    cr_expect_eq(cox_filter_guided_prepare(&shape, 1, &params), COX_OK);
    cr_expect_eq(cox_filter_guided_prepare(&shape, 1.1f, &params), COX_E_INVALID);
    cr_expect_eq(cox_filter_guided_prepare(&shape, NAN, &params), COX_E_INVALID);
    cr_expect_eq(cox__window_box_prepare(&shape, NULL), COX_E_INVALID);
}

/* --- What is unchanged -------------------------------------------------------------------------------------------- */

CPU_TEST(keep_a_constant_plane_to_the_bit)
{
    enum { WIDTH = 70, HEIGHT = 45, PIXELS = WIDTH * HEIGHT };
    static struct cox__pipeline_storage storage;
    struct cox_constants params;
    float floats[PIXELS];
    uint16_t words[PIXELS];
    for (int i = 0; i < PIXELS; i++) {
        floats[i] = 0.3f;
        words[i] = 65535;
    }
    for (int s = 0; s < 3; s++) {
        const float sigma = (float[]){0.5f, 9, 128}[s];
        const struct cox_filter_shape shape = {
            .width = WIDTH, .height = HEIGHT, .in_pitch_bytes = WIDTH * 4, .out_pitch_bytes = WIDTH * 4};
        struct cox__session_spec session = {0};
        cr_assert_eq(cox__gauss_filter(&shape, &storage, &session), COX_OK);
        cr_assert_eq(cox_filter_gaussian_prepare(&shape, sigma, sigma, &params), COX_OK);
        expect_kept(&session, &params, floats, sizeof floats, "a Gaussian");
    }
    const struct cox_filter_shape shape = {.width = WIDTH,
                                           .height = HEIGHT,
                                           .sample = COX_FILTER_16,
                                           .in_pitch_bytes = WIDTH * 2,
                                           .out_pitch_bytes = WIDTH * 2,
                                           .radius_x = 63,
                                           .radius_y = 63};
    struct cox__session_spec box = {0}, guided = {0};
    cr_assert_eq(cox__window_box(&shape, &storage, &box), COX_OK);
    cr_assert_eq(cox__window_box_prepare(&shape, &params), COX_OK);
    expect_kept(&box, &params, words, sizeof words, "box");
    cr_assert_eq(cox__window_guided(&shape, &storage, &guided), COX_OK);
    cr_assert_eq(cox_filter_guided_prepare(&shape, 0, &params), COX_OK);
    expect_kept(&guided, &params, words, sizeof words, "guided");
}

/* --- Work-groups -------------------------------------------------------------------------------------------------- */

enum { SCAN_WIDTH = 700, SCAN_HEIGHT = 9 };

static void fill_rows(uint8_t *plane)
{
    for (int y = 0; y < SCAN_HEIGHT; y++)
        for (int x = 0; x < SCAN_WIDTH; x++)
            plane[y * SCAN_WIDTH + x] = (uint8_t)(y == 0   ? 0
                                                  : y == 1 ? 255
                                                  : y == 2 ? x == 699
                                                  : y == 3 ? x != 699
                                                           : (x * 31 + y * 7) % 251 % 5);
}

/* Run a kernel of scan.cl, with one row of output for each row of input. NULL: the device does not support it. */
static uint32_t *scan(const char *kernel, uint32_t group, const uint8_t *in)
{
    static struct cox__pipeline_storage storage;
    struct cox__session_spec session = {0};
    struct cox_constants params;
    const struct cox_filter_shape shape = {.width = SCAN_WIDTH,
                                           .height = SCAN_HEIGHT,
                                           .sample = COX_FILTER_8,
                                           .in_pitch_bytes = SCAN_WIDTH,
                                           .out_pitch_bytes = SCAN_WIDTH * 4,
                                           .group = group};
    cr_assert_eq(cox__lines_prefix_sums(&shape, &storage, &session), COX_OK);
    cr_assert_eq(cox__lines_prefix_sums_prepare(&shape, &params), COX_OK);
    struct cox__pass_spec pass = session.passes[0];
    struct cox__stage stage = pass.stages[0];
    stage.kernel = kernel;
    pass.stages = &stage;
    session.passes = &pass;
    return filter(&session, &params, in, SCAN_WIDTH * SCAN_HEIGHT, SCAN_WIDTH * SCAN_HEIGHT * 4);
}

CPU_TEST(add_up_and_answer_for_groups_of_any_size)
{
    static uint8_t in[SCAN_WIDTH * SCAN_HEIGHT];
    fill_rows(in);
    for (uint32_t group = 32; group <= 512; group *= 4) {
        uint32_t *sums = scan("prefix_sums", group, in);
        if (!sums) {
            fprintf(stderr, "groups of %u: skipped, because the device has none\n", group);
            continue;
        }
        uint32_t *facts = scan("row_facts", group, in);
        cr_assert_not_null(facts);
        for (int y = 0; y < SCAN_HEIGHT; y++) {
            const uint8_t *row = in + y * SCAN_WIDTH;
            const uint32_t *got = sums + y * SCAN_WIDTH;
            uint32_t sum = 0, any = 0, all = 1;
            for (int x = 0; x < SCAN_WIDTH; x++) {
                sum += row[x];
                any |= row[x] != 0;
                all &= row[x] != 0;
                cr_assert_eq(got[x], sum, "groups of %u: row %d, column %d", group, y, x);
            }
            const uint32_t last = row[SCAN_WIDTH - 1], want[] = {sum, any, all, last, sum - last};
            cr_expect_arr_eq(facts + y * SCAN_WIDTH, want, sizeof want, "groups of %u: row %d", group, y);
        }
        free(sums);
        free(facts);
    }
}

CPU_TEST(transpose_in_groups_of_any_size)
{
    enum { WIDTH = 77, HEIGHT = 130 };
    static struct cox__pipeline_storage storage;
    static uint32_t in[WIDTH * HEIGHT];
    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++)
        in[i] = i * 2654435761u;
    for (uint32_t group = 32; group <= 1024; group *= 2) {
        const struct cox_filter_shape shape = {.width = WIDTH,
                                               .height = HEIGHT,
                                               .in_pitch_bytes = WIDTH * 4,
                                               .out_pitch_bytes = HEIGHT * 4,
                                               .group = group};
        struct cox__session_spec session = {0};
        struct cox_constants params;
        cr_assert_eq(cox__lines_transposition(&shape, &storage, &session), COX_OK);
        cr_assert_eq(cox__lines_transposition_prepare(&shape, &params), COX_OK);
        uint32_t *out = filter(&session, &params, in, sizeof in, sizeof in);
        for (int y = 0; y < HEIGHT && out; y++)
            for (int x = 0; x < WIDTH; x++)
                cr_assert_eq(out[x * HEIGHT + y], in[y * WIDTH + x], "groups of %u", group);
        free(out);
    }
}
