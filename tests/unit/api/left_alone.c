/* What becomes of the elements that a kernel leaves alone, and of the bytes between rows, in all memory modes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/captured_log.h"
#include <coxswain/coxswain.h>
#include <coxswain/tonemap.h>
#include <coxswain/video.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { OLD = 0x11111111, SECRET = 0x5EC20000, GAP = 0xC5, POOL = 3, FRAMES = 7 };

static const char *const device_lists[] = {"cpu", "cpu:2x1", "cpu=staged", "cpu:2x1=staged", "cpu:2x1,gpu=staged"};
enum { LISTS = sizeof device_lists / sizeof *device_lists };

static cox_runtime *runtime;
static cox_session *session;
static cox_buffer *pool[2 * POOL];

static void close_all(void)
{
    cox_session_destroy(&session);
    for (int i = 0; i < 2 * POOL; i++)
        cox_buffer_destroy(&pool[i]);
    cox_runtime_destroy(&runtime);
    cr_assert(!runtime, "something was not released");
}

TestSuite(left_alone, .fini = close_all, .timeout = 600);

/* Open a runtime instead of the previous one. False: this machine has no such devices. */
static bool opens(const char *devices)
{
    close_all();
    logged[0] = '\0';
    const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = devices, .log = on_log},
                                                 &runtime);
    cr_assert(status == COX_OK || !runtime);
    return status == COX_OK;
}

static void open_or_skip(const char *devices)
{
    if (!opens(devices))
        cr_skip_test("skipped, because there is no OpenCL device %s", devices);
}

static void make_pool(size_t bytes)
{
    for (int i = 0; i < 2 * POOL; i++)
        cr_assert_eq(cox_buffer_create(runtime, bytes, &pool[i]), COX_OK);
}

/* ---- elements ---- */

/* Each frame leaves other elements alone: one of four. */
#define LEAVES "((x + first_row + y + shift) & 3) == 0"

static const char some_source[] =
    "kernel void some(global const uint *in, global uint *out, int columns, int rows, int first_row, int shift)\n"
    "{ int x = get_global_id(0), y = get_global_id(1); if (x >= columns || y >= rows || " LEAVES ") return;\n"
    "  out[y * columns + x] = in[y * columns + x]; }\n";

/* The first pass leaves elements of `out` alone; the second one needs `out` on all devices. */
static const char passes_source[] =
    "kernel void some(global const uint *in, global uint *out, int out_first_row, int columns, int rows,\n"
    "                 int first_row, int shift)\n"
    "{ int x = get_global_id(0), y = get_global_id(1); if (x >= columns || y >= rows || " LEAVES ") return;\n"
    "  out[(first_row + y - out_first_row) * columns + x] = in[y * columns + x]; }\n"
    "kernel void near(global const uint *out, int out_first_row, global uint *mid, int mid_first_row, int columns,\n"
    "                 int rows, int first_row, int frame_rows)\n"
    "{ int x = get_global_id(0), y = get_global_id(1); if (x >= columns || y >= rows) return;\n"
    "  int row = first_row + y, below = min(row + 1, frame_rows - 1);\n"
    "  mid[(row - mid_first_row) * columns + x] = out[(below - out_first_row) * columns + x]; }\n";

struct shape {
    uint32_t columns, rows;
};
static const struct shape small = {200, 96}, in_pieces = {2048, 1024};

static uint32_t secret_of(uint32_t frame, uint32_t at)
{
    return SECRET + frame * 1000 + at % 1000;
}

static bool is_left(const struct shape *shape, uint32_t at, uint32_t frame)
{
    return ((at % shape->columns + at / shape->columns + frame) & 3) == 0;
}

/* The frame's input is like no other frame's. The output holds values that a kernel may leave alone. */
static void fill_frame(const struct shape *shape, uint32_t frame)
{
    uint32_t *in = cox_buffer_data(pool[frame % POOL]), *out = cox_buffer_data(pool[POOL + frame % POOL]);
    for (uint32_t i = 0; i < shape->columns * shape->rows; i++) {
        in[i] = secret_of(frame, i);
        out[i] = OLD;
    }
}

static void check_frame(const struct shape *shape, uint32_t frame, bool partial, const char *devices)
{
    const uint32_t *out = cox_buffer_data(pool[POOL + frame % POOL]);
    for (uint32_t i = 0; i < shape->columns * shape->rows; i++) {
        const bool good = !is_left(shape, i, frame) ? out[i] == secret_of(frame, i)
                                                    : out[i] == OLD || (!partial && out[i] == 0);
        cr_assert(good, "%s, frame %u, element %u: %#x\n%s", devices, frame, i, out[i], logged);
    }
}

/* Run frames, POOL - 1 of them at once, and check each. */
static void run_frames(const struct shape *shape, bool partial, const char *devices)
{
    make_pool(4 * (size_t)shape->columns * shape->rows);
    for (uint32_t n = 0; n < FRAMES + POOL - 1; n += POOL - 1) {
        for (uint32_t f = n; f < n + POOL - 1; f++) {
            const int32_t shift = (int32_t)f;
            fill_frame(shape, f);
            const struct cox_frame frame = {.buffers = COX_BUFFERS(pool[f % POOL], pool[POOL + f % POOL]),
                                            .constants = &shift};
            cr_assert_eq(cox_session_submit(session, &frame, NULL, NULL), COX_OK, "%s", logged);
        }
        cr_assert_eq(cox_session_wait(session), COX_OK, "%s: %s", devices, logged);
        for (uint32_t f = n; f < n + POOL - 1; f++)
            check_frame(shape, f, partial, devices);
    }
}

static const struct cox_field shift_field[] = {{"shift", 0, sizeof(int32_t)}, {NULL, 0, 0}};

static void open_some(const struct shape *shape, const struct cox_argument *arguments, double verify)
{
    const struct cox_session_params params = {
        .columns = shape->columns,
        .rows = shape->rows,
        .passes = COX_LIST(struct cox_pass, {.source = some_source, .arguments = arguments}),
        .fields = shift_field,
        .constants_bytes = sizeof(int32_t),
        .verify = verify,
    };
    cr_assert_eq(cox_session_create(runtime, &params, &session), COX_OK, "%s", logged);
}

static void run_everywhere(const struct shape *shape, const struct cox_argument *arguments, double verify)
{
    int tried = 0;
    for (int l = 0; l < LISTS; l++) {
        if (!opens(device_lists[l]))
            continue;
        open_some(shape, arguments, verify);
        run_frames(shape, arguments != NULL, device_lists[l]);
        cr_assert(!strstr(logged, "disagree"), "%s: %s", device_lists[l], logged);
        tried++;
    }
    if (!tried)
        cr_skip_test("skipped, because there is no OpenCL device");
}

static const struct cox_argument partial_out[] = {{.name = "out", .partial = true}, {.name = NULL}};

Test(left_alone, elements_keep_their_value_or_become_zero)
{
    run_everywhere(&small, NULL, 0);
}

Test(left_alone, elements_of_a_partial_argument_keep_their_values)
{
    run_everywhere(&small, partial_out, 0);
}

Test(left_alone, a_second_device_agrees)
{
    run_everywhere(&small, NULL, 1);
    run_everywhere(&small, partial_out, 1);
}

Test(left_alone, bands_in_pieces_are_no_exception)
{
    for (int partial = 0; partial < 2; partial++) {
        open_or_skip("cpu=staged");
        open_some(&in_pieces, partial ? partial_out : NULL, 0);
        run_frames(&in_pieces, partial, "cpu=staged");
    }
}

/* A kernel that breaks the promise shows rows of earlier frames: nothing clears them. */
Test(left_alone, nothing_is_cleared_for_a_kernel_that_writes_all)
{
    uint32_t old = 0;
    open_or_skip("cpu=staged");
    open_some(&small, COX_LIST(struct cox_argument, {.name = "out", .writes_all = true}), 0);
    make_pool(4 * (size_t)small.columns * small.rows);

    for (uint32_t f = 0; f < 3 * FRAMES; f++) {
        const int32_t shift = (int32_t)f;
        fill_frame(&small, f);
        const struct cox_frame frame = {.buffers = COX_BUFFERS(pool[f % POOL], pool[POOL + f % POOL]),
                                        .constants = &shift};
        cr_assert_eq(cox_session_run(session, &frame), COX_OK, "%s", logged);

        const uint32_t *out = cox_buffer_data(pool[POOL + f % POOL]);
        for (uint32_t i = 0; i < small.columns * small.rows; i++)
            old += is_left(&small, i, f) && out[i] != 0 && out[i] != OLD;
    }
    cr_assert_gt(old, 0);
}

/* Frames of other sessions may have left rows in the same device memory. */
static void open_passes(const struct cox_argument *arguments)
{
    const struct cox_session_params params = {
        .columns = small.columns,
        .rows = small.rows,
        .passes = COX_LIST(struct cox_pass, {.source = passes_source, .kernel = "some", .arguments = arguments},
                           {.kernel = "near",
                            .arguments = COX_LIST(struct cox_argument, {.name = "out", .halo_rows = 1})}),
        .buffers = COX_LIST(struct cox_buffer_layout, {.name = "in"}, {.name = "out"},
                            {.name = "mid", .scratch = true}),
        .fields = shift_field,
        .constants_bytes = sizeof(int32_t),
    };
    cr_assert_eq(cox_session_create(runtime, &params, &session), COX_OK, "%s", logged);
}

Test(left_alone, rows_that_stay_on_a_device_are_no_exception)
{
    static const char *const lists[] = {"cpu:2x1", "cpu=staged", "cpu:2x1=staged"};
    for (int l = 0; l < 6; l++) {
        open_or_skip(lists[l / 2]);
        open_passes(l % 2 ? partial_out : NULL);
        run_frames(&small, l % 2, lists[l / 2]);
    }
}

Test(left_alone, elements_in_place_are_brought_in_first)
{
    static const char source[] =
        "kernel void grow(global uint *out, int columns, int rows, int first_row, int shift)\n"
        "{ int x = get_global_id(0), y = get_global_id(1); if (x >= columns || y >= rows || " LEAVES ") return;\n"
        "  out[y * columns + x] += 3; }\n";
    const struct cox_session_params params = {
        .columns = small.columns,
        .rows = small.rows,
        .passes = COX_LIST(struct cox_pass,
                           {.source = source,
                            .arguments = COX_LIST(struct cox_argument, {.name = "out", .in_place = true})}),
        .fields = shift_field,
        .constants_bytes = sizeof(int32_t),
    };
    for (int l = 0; l < LISTS; l++) {
        if (!opens(device_lists[l]))
            continue;
        cr_assert_eq(cox_session_create(runtime, &params, &session), COX_OK, "%s", logged);
        make_pool(4 * (size_t)small.columns * small.rows);
        uint32_t *out = cox_buffer_data(pool[0]);
        for (uint32_t i = 0; i < small.columns * small.rows; i++)
            out[i] = i;
        for (int32_t f = 0; f < 4; f++) {
            const struct cox_frame frame = {.buffers = COX_BUFFERS(pool[0]), .constants = &f};
            cr_assert_eq(cox_session_run(session, &frame), COX_OK, "%s", logged);
        }
        for (uint32_t i = 0; i < small.columns * small.rows; i++)
            cr_assert_eq(out[i], i + 9, "%s, element %u: %u", device_lists[l], i, out[i]);
    }
}

/* A second pass adds to what the first one has written. */
Test(left_alone, a_later_pass_may_write_scratch_in_part)
{
    static const char source[] =
        "kernel void base(global const uint *in, global uint *mid, int columns, int rows)\n"
        "{ int x = get_global_id(0), y = get_global_id(1); if (x < columns && y < rows)\n"
        "  mid[y * columns + x] = in[y * columns + x]; }\n"
        "kernel void odd(global const uint *in, global uint *mid, int columns, int rows)\n"
        "{ int x = get_global_id(0), y = get_global_id(1); if (x < columns && y < rows && x % 2)\n"
        "  mid[y * columns + x] = ~in[y * columns + x]; }\n"
        "kernel void give(global const uint *mid, global uint *out, int columns, int rows)\n"
        "{ int x = get_global_id(0), y = get_global_id(1); if (x < columns && y < rows)\n"
        "  out[y * columns + x] = mid[y * columns + x]; }\n";
    const struct cox_session_params params = {
        .columns = small.columns,
        .rows = small.rows,
        .passes = COX_LIST(struct cox_pass, {.source = source, .kernel = "base"},
                           {.kernel = "odd",
                            .arguments = COX_LIST(struct cox_argument, {.name = "mid", .partial = true})},
                           {.kernel = "give"}),
        .buffers = COX_LIST(struct cox_buffer_layout, {.name = "in"}, {.name = "out"},
                            {.name = "mid", .scratch = true}),
    };
    for (int l = 0; l < LISTS; l++) {
        if (!opens(device_lists[l]))
            continue;
        cr_assert_eq(cox_session_create(runtime, &params, &session), COX_OK, "%s", logged);
        make_pool(4 * (size_t)small.columns * small.rows);
        fill_frame(&small, 0);
        const uint32_t *in = cox_buffer_data(pool[0]), *out = cox_buffer_data(pool[POOL]);
        cr_assert_eq(cox_session_run(session, &(struct cox_frame){.buffers = COX_BUFFERS(pool[0], pool[POOL])}),
                     COX_OK);
        for (uint32_t i = 0; i < small.columns * small.rows; i++)
            cr_assert_eq(out[i], i % small.columns % 2 ? ~in[i] : in[i], "%s, element %u", device_lists[l], i);
    }
}

/* ---- bytes between rows ---- */

/* An image with gaps between its rows. */
struct image {
    cox_buffer *buffer;
    size_t row_bytes, pitch_bytes;
    uint32_t rows;
};

static struct image images[6];
static uint32_t image_count;

static cox_buffer *add_image(size_t row_bytes, size_t pitch_bytes, uint32_t rows)
{
    struct image *image = &images[image_count++];
    *image = (struct image){NULL, row_bytes, pitch_bytes, rows};
    cr_assert_eq(cox_buffer_create(runtime, pitch_bytes * rows, &image->buffer), COX_OK, "%s", logged);
    memset(cox_buffer_data(image->buffer), GAP, pitch_bytes * rows);
    return image->buffer;
}

static void check_gaps(const char *what)
{
    for (uint32_t i = 0; i < image_count; i++)
        for (size_t at = 0; at < images[i].pitch_bytes * images[i].rows; at++) {
            const unsigned char *data = cox_buffer_data(images[i].buffer);
            cr_assert(at % images[i].pitch_bytes < images[i].row_bytes || data[at] == GAP,
                      "%s: byte %zu of image %u was written", what, at, i);
        }
    for (uint32_t i = 0; i < image_count; i++)
        cox_buffer_destroy(&images[i].buffer);
    image_count = 0;
}

static const char pitched_source[] =
    "kernel void copy(global const uint *in, int in_pitch, global uint *out, int out_pitch, int columns, int rows)\n"
    "{ int x = get_global_id(0), y = get_global_id(1); if (x >= columns || y >= rows) return;\n"
    "  out[y * out_pitch + x] = in[y * in_pitch + x] + 1; }\n";

static void run_with_gaps(const char *devices, double verify, const struct cox_argument *arguments)
{
    enum { W = 100, H = 64, PITCH = 4 * W + 112 };
    const struct cox_session_params params = {
        .columns = W,
        .rows = H,
        .passes = COX_LIST(struct cox_pass, {.source = pitched_source, .arguments = arguments}),
        .buffers = COX_LIST(struct cox_buffer_layout, {.name = "in", .pitch_bytes = PITCH, .row_bytes = 4 * W},
                            {.name = "out", .pitch_bytes = PITCH, .row_bytes = 4 * W}),
        .verify = verify,
    };
    cr_assert_eq(cox_session_create(runtime, &params, &session), COX_OK, "%s", logged);
    cox_buffer *in = add_image(4 * W, PITCH, H), *out = add_image(4 * W, PITCH, H);
    const uint32_t *got = cox_buffer_data(out);

    for (int f = 0; f < 4; f++)
        cr_assert_eq(cox_session_run(session, &(struct cox_frame){.buffers = COX_BUFFERS(in, out)}), COX_OK, "%s",
                     logged);
    for (uint32_t i = 0; i < W * H; i++)
        cr_assert_eq(got[i / W * PITCH / 4 + i % W], 0xC5C5C5C5u + 1, "%s, element %u", devices, i);
    cox_session_destroy(&session);
    check_gaps(devices);
}

Test(left_alone, bytes_between_rows_never_change)
{
    static const struct cox_argument in_place[] = {{.name = "out", .in_place = true}, {.name = NULL}};
    for (int l = 0; l < LISTS; l++) {
        if (!opens(device_lists[l]))
            continue;
        run_with_gaps(device_lists[l], 0, NULL);
        run_with_gaps(device_lists[l], 0, partial_out);
        run_with_gaps(device_lists[l], 0, in_place);
        run_with_gaps(device_lists[l], 1, NULL);
    }
}

/* Run a pipeline of the library on the images so far. */
static void run_pipeline(cox_pipeline *pipeline, const struct cox_constants *constants, const char *what)
{
    cox_buffer *buffers[sizeof images / sizeof *images + 1] = {NULL};
    for (uint32_t i = 0; i < image_count; i++)
        buffers[i] = images[i].buffer;
    cr_assert_eq(cox_session_create(runtime, &(struct cox_session_params){.pipeline = pipeline}, &session), COX_OK,
                 "%s", logged);
    cox_pipeline_destroy(&pipeline);
    for (int f = 0; f < 2; f++)
        cr_assert_eq(cox_session_run(session, &(struct cox_frame){.buffers = buffers, .constants = constants}), COX_OK,
                     "%s", logged);
    cox_session_destroy(&session);
    check_gaps(what);
}

Test(left_alone, pictures_keep_the_bytes_between_their_rows)
{
    struct cox_constants constants;
    open_or_skip("cpu=staged");
    for (uint32_t local = 0; local < 2; local++) {
        const struct cox_tonemap_shape shape = {.width = 37,
                                                .height = 48,
                                                .in = COX_PIXEL_RGBA_HALF,
                                                .out = COX_PIXEL_RGBA8,
                                                .in_pitch_bytes = 8 * 40,
                                                .out_pitch_bytes = 4 * 44,
                                                .local = local};
        const struct cox_tonemap_settings settings = {.op = local ? COX_OPERATOR_LOCAL : COX_OPERATOR_REINHARD};
        cox_pipeline *pipeline;
        cr_assert_eq(cox_tonemap_mapping(&shape, &pipeline), COX_OK);
        cr_assert_eq(cox_tonemap_prepare(&shape, &settings, &constants), COX_OK);
        add_image(8 * 37, shape.in_pitch_bytes, 48);
        add_image(4 * 37, shape.out_pitch_bytes, 48);
        run_pipeline(pipeline, &constants, local ? "picture, local" : "picture");
    }
}

Test(left_alone, video_keeps_the_bytes_between_its_rows)
{
    const struct cox_video_shape shape = {.width = 38,
                                          .height = 48,
                                          .in = {.depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
                                          .out = {.depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
                                          .in_pitch_bytes = {96, 64, 64},
                                          .out_pitch_bytes = {64, 32, 32}};
    const struct cox_video_settings settings = {0};
    struct cox_constants constants;
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    cox_pipeline *pipeline;
    open_or_skip("cpu=staged");
    cr_assert_eq(cox_video_mapping(&shape, false, &pipeline), COX_OK);
    cr_assert_eq(cox_video_prepare(&shape, &settings, &constants), COX_OK);
    cr_assert_eq(cox_video_planes(&shape.in, shape.width, shape.height, planes), 3);
    for (int p = 0; p < 3; p++)
        add_image(planes[p].row_bytes, shape.in_pitch_bytes[p], planes[p].rows);
    cr_assert_eq(cox_video_planes(&shape.out, shape.width, shape.height, planes), 3);
    for (int p = 0; p < 3; p++)
        add_image(planes[p].row_bytes, shape.out_pitch_bytes[p], planes[p].rows);
    run_pipeline(pipeline, &constants, "video");
}

/* ---- what is refused ---- */

static void refused(const struct cox_session_params *params, const char *line)
{
    struct cox_session_params sized = *params;
    sized.columns = small.columns;
    sized.rows = small.rows;
    logged[0] = '\0';
    cr_assert_eq(cox_session_create(runtime, &sized, &session), COX_E_INVALID, "%s", line);
    cr_assert(strstr(logged, line), "not in the log: %s\n%s", line, logged);
}

static void add_words(void *into, const void *partial, size_t bytes, void *user)
{
    (void)into, (void)partial, (void)bytes, (void)user;
}

Test(left_alone, refuses_partial_and_row_bytes_that_mean_nothing)
{
#define BODY "(global const uint *in, global uint *out, int columns, int rows) {}\n"
#define ARGUMENT(...) COX_LIST(struct cox_argument, {__VA_ARGS__})
#define LAYOUT(...) COX_LIST(struct cox_buffer_layout, {.name = "in"}, {.name = "out", __VA_ARGS__})
#define PASS(...) COX_LIST(struct cox_pass, {.source = "kernel void k" BODY, .arguments = __VA_ARGS__})
    open_or_skip("cpu");
    refused(&(struct cox_session_params){.passes = PASS(ARGUMENT(.name = "in", .partial = true))},
            "argument 'in': partial is set, but the kernel only reads it");
    refused(&(struct cox_session_params){.passes = PASS(ARGUMENT(.name = "rows", .partial = true))},
            "but it is not a buffer");
    refused(&(struct cox_session_params){.passes = PASS(ARGUMENT(.name = "out", .partial = true, .in_place = true))},
            "in_place and partial are both set");
    refused(&(struct cox_session_params){.passes = PASS(ARGUMENT(.name = "in", .writes_all = true))},
            "argument 'in': writes_all is set, but the kernel only reads it");
    refused(&(struct cox_session_params){.passes = PASS(ARGUMENT(.name = "rows", .writes_all = true))},
            "but it is not a buffer");
    refused(&(struct cox_session_params){.passes = PASS(ARGUMENT(.name = "out", .partial = true, .writes_all = true))},
            "partial and writes_all are both set");
    refused(&(struct cox_session_params){.passes = PASS(ARGUMENT(.name = "out", .partial = true)),
                                         .buffers = LAYOUT(.bytes = 64, .merge = add_words)},
            "buffer out has `merge`, but `partial` is set");
    refused(&(struct cox_session_params){.passes = PASS(NULL), .buffers = LAYOUT(.row_bytes = 801)},
            "buffer out: row_bytes is 801; allowed: 0 to the pitch, 800");
    refused(&(struct cox_session_params){.passes = PASS(NULL),
                                         .buffers = LAYOUT(.bytes = 64, .row_bytes = 64, .merge = add_words)},
            "buffer out has `merge`, but `row_bytes` is 64");
    refused(&(struct cox_session_params){.passes = COX_LIST(struct cox_pass,
                                                            {.source = "kernel void k" BODY,
                                                             .arguments = ARGUMENT(.name = "out", .partial = true)},
                                                            {.source = "kernel void g(global const uint *out, global "
                                                                       "uint *to, int columns, int rows) {}"}),
                                         .buffers = COX_LIST(struct cox_buffer_layout, {.name = "in"},
                                                             {.name = "out", .scratch = true}, {.name = "to"})},
            "(out): scratch is partial, but no earlier pass has written it");
    refused(
        &(struct cox_session_params){
            .passes = COX_LIST(struct cox_pass,
                               {.source = "kernel void k(global const uint *in, int in_first_row, global uint *mid, "
                                          "int mid_first_row, int columns, int rows) {}",
                                .arguments = ARGUMENT(.name = "mid", .partial = true)},
                               {.source = "kernel void g(global const uint *mid, int mid_first_row, global uint *out, "
                                          "int columns, int rows) {}",
                                .fused = true}),
            .buffers = COX_LIST(struct cox_buffer_layout, {.name = "in"}, {.name = "mid", .scratch = true},
                                {.name = "out"})},
        "buffer mid is handed on to a fused pass, but `partial` is set");
}
