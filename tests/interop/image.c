/* Kernels that sample images (COX__ARG_IMAGE of coxswain/opencl.h) run on every device of the machine, or on those of
 * --devices. Each pixel must be what the host computes, whatever the split.
 *
 *   interop_image [--devices SEL] [--expect N] [--verbose]
 *
 * For each device, the program prints the time of a frame copied from an image, and of one copied from a buffer.
 * The exit status is 77 without OpenCL devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "interop.h"

enum { COLUMNS = 500, PITCH = 512, ROWS = 300, FRAMES = 12, TABLE_PITCH = 16, TABLE_ROWS = 64, TABLE_COLUMNS = 4 };
enum { IN, HALF, TABLE, BETWEEN, OUT, BINDINGS };

/* The first pass adds three values to the pixel: one of an image with half the rows, the same by pointer, and one
 * of a table. The second pass sums a cross of five of these results. The sampler repeats the frame's edge. */
static const char source[] =
    "constant sampler_t at = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;\n"
    "kernel void add(read_only image2d_t in, read_only image2d_t half_rows, global const uchar *half_bytes,\n"
    "                read_only image2d_t table, global uchar *to, int columns, int first, int rows, int pitch) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    int half_y = (first + y) / 2 - first / 2;\n"
    "    uint value = read_imageui(in, at, (int2)(x, y)).x + read_imageui(half_rows, at, (int2)(x, half_y)).x;\n"
    "    value += half_bytes[half_y * pitch + x] + read_imageui(table, at, (int2)(x & 3, (first + y) & 63)).z;\n"
    "    to[y * pitch + x] = (uchar)value;\n"
    "}\n"
    "kernel void cross5(read_only image2d_t from, int origin, global uchar *to, int columns, int first, int rows,\n"
    "                   int pitch) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    int line = first + y - origin;\n"
    "    uint value = read_imageui(from, at, (int2)(x, line)).x + read_imageui(from, at, (int2)(x - 1, line)).x;\n"
    "    value += read_imageui(from, at, (int2)(x + 1, line)).x + read_imageui(from, at, (int2)(x, line - 1)).x;\n"
    "    value += read_imageui(from, at, (int2)(x, line + 1)).x;\n"
    "    to[y * pitch + x] = (uchar)value;\n"
    "}\n";

struct changed {
    size_t columns; /* of the image given as IN; 0 = COLUMNS */
    cl_uint order;  /* its channel order; 0 = CL_R */
    bool written;   /* BETWEEN is given as an image to the pass that writes it */
    bool other;     /* HALF is given as an image with two different formats */
    bool no_pitch;  /* TABLE has no pitch */
    const char *policy;
};

static cox_status create(cox_runtime *runtime, const struct changed *changed, cox_session **out)
{
    const struct cox__binding bindings[] = {
        [IN] = {.name = "in", .pitch_bytes = PITCH},
        [HALF] = {.name = "half", .pitch_bytes = PITCH, .row_divisor = 2},
        [TABLE] = {.name = "table",
                   .row_access = COX__WHOLE,
                   .bytes = TABLE_PITCH * TABLE_ROWS,
                   .pitch_bytes = changed->no_pitch ? 0 : TABLE_PITCH},
        [BETWEEN] = {.name = "between", .access = COX__WRITE, .pitch_bytes = PITCH, .scratch = true},
        [OUT] = {.name = "out", .access = COX__WRITE, .pitch_bytes = PITCH},
    };
    const struct cox__variant variant = {.source = source, .local_columns = 16};
    const cl_uint order = changed->order ? changed->order : CL_R;
    const struct cox__arg add[] = {
        COX__ARG_IMAGE(IN, order, CL_UNSIGNED_INT8, changed->columns ? changed->columns : COLUMNS),
        COX__ARG_IMAGE(HALF, CL_R, CL_UNSIGNED_INT8, COLUMNS),
        COX__ARG_BUFFER(HALF),
        changed->other ? (struct cox__arg)COX__ARG_IMAGE(HALF, CL_RGBA, CL_UNSIGNED_INT8, 4)
                       : (struct cox__arg)COX__ARG_IMAGE(TABLE, CL_RGBA, CL_UNSIGNED_INT8, TABLE_COLUMNS),
        changed->written ? (struct cox__arg)COX__ARG_IMAGE(BETWEEN, CL_R, CL_UNSIGNED_INT8, 4)
                         : (struct cox__arg)COX__ARG_BUFFER(BETWEEN),
        COX__ARG_COLUMNS,
        COX__ARG_FIRST_ROW,
        COX__ARG_ROWS,
        COX__ARG_PARAMS(cl_int)};
    const struct cox__arg cross5[] = {COX__ARG_IMAGE(BETWEEN, CL_R, CL_UNSIGNED_INT8, COLUMNS),
                                      COX__ARG_ORIGIN(BETWEEN),
                                      COX__ARG_BUFFER(OUT),
                                      COX__ARG_COLUMNS,
                                      COX__ARG_FIRST_ROW,
                                      COX__ARG_ROWS,
                                      COX__ARG_PARAMS(cl_int)};
    const struct cox__stage stages[] = {
        {.kernel = "add", .columns = COLUMNS, .variant_count = 1, .variants = &variant, .arg_count = 9, .args = add},
        {.kernel = "cross5",
         .columns = COLUMNS,
         .variant_count = 1,
         .variants = &variant,
         .arg_count = 7,
         .args = cross5},
    };
    const struct cox__pass_binding first[] = {{.binding = IN},
                                              {.binding = HALF, .row_divisor = 2},
                                              {.binding = TABLE, .row_access = COX__WHOLE},
                                              {.binding = BETWEEN, .access = COX__WRITE}};
    const struct cox__pass_binding second[] = {{.binding = BETWEEN, .row_access = COX__HALO, .halo_rows = 1},
                                               {.binding = OUT, .access = COX__WRITE}};
    const struct cox__pass_spec passes[] = {
        {.name = "add", .use_count = 4, .uses = first, .stage_count = 1, .stages = &stages[0]},
        {.name = "cross", .use_count = 2, .uses = second, .stage_count = 1, .stages = &stages[1]},
    };
    last_lines[0] = 0;
    return cox__session_create(runtime,
                               &(const struct cox__session_spec){.rows = ROWS,
                                                                 .binding_count = BINDINGS,
                                                                 .bindings = bindings,
                                                                 .params_bytes = sizeof(cl_int),
                                                                 .policy = changed->policy,
                                                                 .pass_count = 2,
                                                                 .passes = passes},
                               out);
}

static uint8_t noise(uint32_t index)
{
    return (uint8_t)((index * 2654435761u) >> 24);
}

/* ---- on the host ---- */

static uint8_t frame_bytes[BINDINGS][PITCH * ROWS];

static uint8_t between_at(int x, int y)
{
    x = x < 0 ? 0 : x >= COLUMNS ? COLUMNS - 1 : x;
    y = y < 0 ? 0 : y >= ROWS ? ROWS - 1 : y;
    const int half = frame_bytes[HALF][y / 2 * PITCH + x];
    return (uint8_t)(frame_bytes[IN][y * PITCH + x] + 2 * half +
                     frame_bytes[TABLE][y % TABLE_ROWS * TABLE_PITCH + x % TABLE_COLUMNS * 4 + 2]);
}

static void check_frame(const uint8_t *out)
{
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLUMNS; x++) {
            const int sum = between_at(x, y) + between_at(x - 1, y) + between_at(x + 1, y) + between_at(x, y - 1) +
                            between_at(x, y + 1);
            CHECK(out[y * PITCH + x] == (uint8_t)sum);
        }
}

/* ---- on the devices ---- */

/* Also with a policy that hands out rows on demand: bands then have many heights, in any queue slot. */
static void frames_are_right(cox_runtime *runtime, const char *policy)
{
    static const size_t bytes[] = {PITCH * ROWS, PITCH * ROWS / 2, TABLE_PITCH * TABLE_ROWS, 0, PITCH * ROWS};
    cox_buffer *buffers[BINDINGS] = {0};
    cox_session *session;
    const cl_int pitch = PITCH;
    CHECK(!create(runtime, &(struct changed){.policy = policy}, &session));
    for (int i = 0; i < BINDINGS; i++)
        CHECK(!bytes[i] || !cox_buffer_create(runtime, bytes[i], &buffers[i]));
    for (uint32_t frame = 0; frame < FRAMES; frame++) {
        for (int i = 0; i <= TABLE; i++) {
            for (size_t b = 0; b < bytes[i]; b++)
                frame_bytes[i][b] = noise((uint32_t)b + frame * 7919 + (uint32_t)i * 104729);
            memcpy(cox_buffer_data(buffers[i]), frame_bytes[i], bytes[i]);
        }
        memset(cox_buffer_data(buffers[OUT]), 0, bytes[OUT]);
        CHECK(!cox__session_run(session, &(const struct cox__frame_spec){
                                             .buffers = buffers, .buffer_count = BINDINGS, .params = &pitch}));
        check_frame(cox_buffer_data(buffers[OUT]));
    }
    struct cox_session_info info;
    cox_session_info(session, &info);
    CHECK(info.device_count == cox_runtime_device_count(runtime));
    cox_session_destroy(&session);
    for (int i = 0; i < BINDINGS; i++)
        cox_buffer_destroy(&buffers[i]);
}

/* ---- cost ---- */

static const char copy_source[] =
    "constant sampler_t at = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;\n"
    "kernel void of_image(read_only image2d_t from, global uint *to, int columns, int rows) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows) to[y * columns + x] = read_imageui(from, at, (int2)(x, y)).x;\n"
    "}\n"
    "kernel void of_buffer(global const uint *from, global uint *to, int columns, int rows) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows) to[y * columns + x] = from[y * columns + x];\n"
    "}\n";

/* The shortest time of a frame of 1024 x 4096 words on the device, in microseconds. */
static double frame_us(cox_runtime *runtime, uint32_t device, const char *kernel, struct cox__arg from)
{
    enum { LARGE_COLUMNS = 1024, LARGE_ROWS = 4096, TIMES = 12 };
    const struct cox__arg args[] = {from, COX__ARG_BUFFER(1), COX__ARG_COLUMNS, COX__ARG_ROWS};
    cox_buffer *buffers[2];
    double least_us = 1e12;
    cox_session *session =
        words_session(runtime, copy_source, kernel, LARGE_COLUMNS, args, 2,
                      (const struct cox__session_spec){.rows = LARGE_ROWS, .device_count = 1, .devices = &device});
    for (int i = 0; i < 2; i++)
        CHECK(!cox_buffer_create(runtime, sizeof(uint32_t) * LARGE_COLUMNS * LARGE_ROWS, &buffers[i]));
    uint32_t *in = cox_buffer_data(buffers[0]);
    for (uint32_t i = 0; i < LARGE_COLUMNS * LARGE_ROWS; i++)
        in[i] = i * 2654435761u;
    for (int frame = 0; frame < TIMES; frame++) {
        const double begin_us = now_us();
        CHECK(!cox__session_run(session, &(const struct cox__frame_spec){.buffers = buffers, .buffer_count = 2}));
        const double us = now_us() - begin_us;
        least_us = us < least_us ? us : least_us;
    }
    CHECK(!memcmp(in, cox_buffer_data(buffers[1]), sizeof(uint32_t) * LARGE_COLUMNS * LARGE_ROWS));
    cox_session_destroy(&session);
    for (int i = 0; i < 2; i++)
        cox_buffer_destroy(&buffers[i]);
    return least_us;
}

static void tell_cost(cox_runtime *runtime)
{
    for (uint32_t d = 0; d < cox_runtime_device_count(runtime); d++) {
        struct cox_device_info info;
        CHECK(!cox_runtime_device_info(runtime, d, &info));
        const double image_us = frame_us(runtime, d, "of_image",
                                         (struct cox__arg)COX__ARG_IMAGE(0, CL_R, CL_UNSIGNED_INT32, 1024));
        const double buffer_us = frame_us(runtime, d, "of_buffer", (struct cox__arg)COX__ARG_BUFFER(0));
        printf("%s: 16 MiB from an image in %.0f us, from a buffer in %.0f us\n", info.name, image_us, buffer_us);
    }
}

static void wrong_images_are_refused(cox_runtime *runtime)
{
    static const struct {
        struct changed changed;
        cox_status status;
        const char *why;
    } table[] = {
        {{.columns = PITCH + 1}, COX_E_INVALID, "a pitch of 512 bytes does not hold 513 columns"},
        {{.columns = SIZE_MAX}, COX_E_INVALID, "columns, of buffer 0 (in)"},
        {{.order = 0xffff}, COX_E_UNSUPPORTED, "channel order 0xffff"},
        {{.written = true}, COX_E_INVALID, "is written by the pass, so it cannot be an image"},
        {{.other = true}, COX_E_INVALID, "is already an image of another format"},
        {{.no_pitch = true}, COX_E_INVALID, "a pitch of 0 bytes"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        cox_session *session;
        CHECK(create(runtime, &table[i].changed, &session) == table[i].status && !session);
        CHECK(strstr(last_lines, table[i].why));
    }
}

int main(int argc, char **argv)
{
    check_limit("kernels that sample images");
    cox_runtime *runtime = first_runtime(argc, argv);
    const uint32_t count = cox_runtime_device_count(runtime);
    frames_are_right(runtime, NULL);
    frames_are_right(runtime, "chunks");
    wrong_images_are_refused(runtime);
    tell_cost(runtime);
    cox_runtime_destroy(&runtime);
    CHECK(!runtime);
    printf("images on %u devices passed\n", count);
    return 0;
}
