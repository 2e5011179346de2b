/* Tests of cox_opencl_buffer on every staged device, or on those of --devices:
 *   Kernels of every form give the same bits as on host memory, whatever device does which rows.
 *   What the application enqueues before and after a frame sees the right content.
 *   A frame of the device alone needs no host memory, and reference counts are unchanged at the end.
 *
 *   interop_device [--devices SEL] [--expect N] [--verbose]
 *
 * The exit status is 77 without OpenCL devices, or if none is staged.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "specs.h"
#include "interop.h"

#include <stdatomic.h>

enum { ROWS = 96, COLUMNS = 256, PITCH = 4 * COLUMNS, BYTES = ROWS * PITCH, OFFSET = 3 * PITCH, BORDER = 2 };
enum { MOST_BYTES = BYTES + OFFSET + 2 * BORDER * PITCH, FRAMES = 5 };

/* ---- sessions of one or two buffers in, one out ---- */

static const char plain[] =
    "kernel void plain(global const uint *in, global uint *out, int columns, int rows, int first_row)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows) out[y * columns + x] = in[y * columns + x] * 3u + (uint)(first_row + y);\n"
    "}\n";
static const char near[] =
    "kernel void near(global const uint *in, int in_first_row, global uint *out, int out_first_row, int columns,\n"
    "                 int rows, int first_row, int frame_rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1), row = first_row + y;\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    int up = max(row - 1, 0), down = min(row + 1, frame_rows - 1);\n"
    "    out[(row - out_first_row) * columns + x] = in[(up - in_first_row) * columns + x] +\n"
    "        5u * in[(down - in_first_row) * columns + x];\n"
    "}\n";
static const char absolute[] =
    "kernel void absolute(global const uint *in, global uint *out, int columns, int rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows) out[y * columns + x] = in[y * columns + x] ^ (uint)y;\n"
    "}\n";
/* Leaves each third element alone. */
static const char some[] =
    "kernel void some(global const uint *in, global uint *out, int columns, int rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows && x % 3) out[y * columns + x] = in[y * columns + x] + 1u;\n"
    "}\n";
static const char whole[] =
    "kernel void whole(global const uint *in, global uint *out, int columns, int rows, int first_row, int frame_rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows)\n"
    "        out[y * columns + x] = in[(frame_rows - 1 - first_row - y) * columns + x] + (uint)x;\n"
    "}\n";

static const struct shape {
    const char *name, *source;
    struct cox_argument arguments[3];
    struct cox_buffer_layout layouts[3];
    bool absolute;
    bool keeps; /* elements that the kernel leaves alone keep their values */
} shapes[] = {
    {.name = "plain", .source = plain, .layouts = {{.name = "in"}, {.name = "out"}}},
    {.name = "halo",
     .source = near,
     .arguments = {{.name = "in", .halo_rows = 1}},
     .layouts = {{.name = "in"}, {.name = "out"}}},
    {.name = "absolute", .source = absolute, .layouts = {{.name = "in"}, {.name = "out"}}, .absolute = true},
    {.name = "partial",
     .source = some,
     .arguments = {{.name = "out", .partial = true}},
     .layouts = {{.name = "in"}, {.name = "out"}},
     .keeps = true},
    {.name = "left alone", .source = some, .layouts = {{.name = "in"}, {.name = "out"}}, .keeps = true},
    {.name = "whole",
     .source = whole,
     .arguments = {{.name = "in", .whole = true}},
     .layouts = {{.name = "in", .bytes = BYTES}, {.name = "out"}}},
    {.name = "offset",
     .source = plain,
     .layouts = {{.name = "in", .offset_bytes = OFFSET}, {.name = "out", .offset_bytes = PITCH}}},
    {.name = "gaps",
     .source = plain,
     .layouts = {{.name = "in", .pitch_bytes = PITCH, .row_bytes = PITCH - 64},
                 {.name = "out", .pitch_bytes = PITCH, .row_bytes = PITCH - 64}}},
    {.name = "border",
     .source = near,
     .arguments = {{.name = "in", .halo_rows = 1}},
     .layouts = {{.name = "in", .border_above = BORDER, .border_below = BORDER}, {.name = "out"}}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Gaps hold what is not the frame's: those kernels work on fewer columns. */
static uint32_t columns_of(const struct shape *shape)
{
    return shape->layouts[0].row_bytes ? COLUMNS - 16 : COLUMNS;
}

static const char *source_of(const struct shape *shape)
{
    static const char gaps[] =
        "kernel void plain(global const uint *in, int in_pitch, global uint *out, int out_pitch, int columns, int rows,\n"
        "                  int first_row)\n"
        "{\n"
        "    int x = get_global_id(0), y = get_global_id(1);\n"
        "    if (x < columns && y < rows) out[y * out_pitch + x] = in[y * in_pitch + x] * 3u + (uint)(first_row + y);\n"
        "}\n";
    return shape->layouts[0].row_bytes ? gaps : shape->source;
}

static cox_session *new_session(cox_runtime *runtime, const struct shape *shape, const char *devices,
                                const char *policy, double verify)
{
    cox_session *session;
    const struct cox_pass passes[] = {
        {.source = source_of(shape), .arguments = shape->arguments, .absolute = shape->absolute}, {0}};
    const cox_status status = cox_session_create(runtime,
                                                 &(const struct cox_session_params){.columns = columns_of(shape),
                                                                                    .rows = ROWS,
                                                                                    .passes = passes,
                                                                                    .buffers = shape->layouts,
                                                                                    .devices = devices,
                                                                                    .policy = policy,
                                                                                    .verify = verify,
                                                                                    .in_flight = 3,
                                                                                    .no_profile = true},
                                                 &session);
    if (status)
        fprintf(stderr, "%s: %s\n", shape->name, last_lines);
    CHECK(!status);
    return session;
}

/* ---- objects of the application ---- */

struct own {
    cl_context context;
    cl_device_id device;
    cl_command_queue queue;
    uint32_t index;
};

static struct own own_of(const cox_runtime *runtime, uint32_t index)
{
    struct own own = {.index = index};
    cl_int code;
    CHECK(!cox_opencl_device(runtime, index, &own.context, &own.device));
    own.queue = clCreateCommandQueue(own.context, own.device, 0, &code);
    CHECK(!code);
    return own;
}

static void put(const struct own *own, cl_mem mem, const void *data)
{
    CHECK(!clEnqueueWriteBuffer(own->queue, mem, CL_TRUE, 0, MOST_BYTES, data, 0, NULL, NULL));
}

static void get(const struct own *own, cl_mem mem, void *data)
{
    CHECK(!clEnqueueReadBuffer(own->queue, mem, CL_TRUE, 0, MOST_BYTES, data, 0, NULL, NULL));
}

static cl_mem new_object(const struct own *own)
{
    cl_int code;
    cl_mem mem = clCreateBuffer(own->context, CL_MEM_READ_WRITE, MOST_BYTES, NULL, &code);
    CHECK(!code);
    return mem;
}

static cl_uint references(cl_mem mem)
{
    cl_uint count;
    CHECK(!clGetMemObjectInfo(mem, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL));
    return count;
}

static void fill(void *memory, uint32_t seed)
{
    uint32_t *words = memory;
    for (uint32_t i = 0; i < MOST_BYTES / 4; i++)
        words[i] = (seed * 131u + i) * 2654435761u;
}

static void on_released(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

/* ---- the same bits as on host memory ---- */

static unsigned char before[2][MOST_BYTES], expected[MOST_BYTES], found[MOST_BYTES];

/* What the frame gives on host memory. */
static void compute_expected(cox_runtime *runtime, cox_session *session)
{
    cox_buffer *buffers[2];
    for (int b = 0; b < 2; b++) {
        CHECK(!cox_buffer_create(runtime, MOST_BYTES, &buffers[b]));
        memcpy(cox_buffer_data(buffers[b]), before[b], MOST_BYTES);
    }
    CHECK(!cox_session_run(session, &(const struct cox_frame){.buffers = COX_BUFFERS(buffers[0], buffers[1])}));
    memcpy(expected, cox_buffer_data(buffers[1]), MOST_BYTES);
    for (int b = 0; b < 2; b++)
        cox_buffer_destroy(&buffers[b]);
}

/* Elements that a kernel leaves alone may become zeros, unless it says that it writes a part. */
static void compare(const struct shape *shape, const char *how)
{
    const size_t from = shape->layouts[1].offset_bytes;
    for (uint32_t y = 0; y < ROWS; y++)
        for (uint32_t x = 0; x < COLUMNS; x++) {
            const size_t at = from + y * PITCH + 4 * x;
            const bool left_alone = shape->keeps && x % 3 == 0;
            const bool gap = x >= columns_of(shape);
            const void *right = left_alone || gap ? before[1] + at : expected + at;
            if (left_alone && !shape->arguments[0].partial && memcmp(found + at, "\0\0\0", 4) == 0)
                continue;
            if (memcmp(found + at, right, 4) != 0)
                fprintf(stderr, "%s, %s: row %u, column %u\n%s", shape->name, how, y, x, last_lines);
            CHECK(memcmp(found + at, right, 4) == 0);
        }
    CHECK(memcmp(found, before[1], from) == 0);
}

/* Frames with `homes` buffers on the device: 1 = the input, 2 = the output, 3 = both. */
static void run_shape(cox_runtime *runtime, const struct own *own, const struct shape *shape, cox_session **session,
                      unsigned homes, const char *how)
{
    cl_mem objects[2];
    cox_buffer *buffers[2];
    atomic_int released = 0;
    for (int b = 0; b < 2; b++) {
        fill(before[b], homes * 7 + (uint32_t)b);
        objects[b] = new_object(own);
    }
    compute_expected(runtime, *session);
    for (int b = 0; b < 2; b++) {
        put(own, objects[b], before[b]);
        if (homes >> b & 1) {
            CHECK(!cox_opencl_buffer(runtime, own->index, objects[b], NULL, on_released, &released, &buffers[b]));
            CHECK(!cox_buffer_data(buffers[b]) && cox_buffer_bytes(buffers[b]) == MOST_BYTES);
            continue;
        }
        CHECK(!cox_buffer_create(runtime, MOST_BYTES, &buffers[b]));
        memcpy(cox_buffer_data(buffers[b]), before[b], MOST_BYTES);
    }
    for (int frame = 0; frame < FRAMES; frame++) {
        const cox_status status =
            cox_session_run(*session, &(const struct cox_frame){.buffers = COX_BUFFERS(buffers[0], buffers[1])});
        if (status)
            fprintf(stderr, "%s, %s: %s\n%s", shape->name, how, cox_status_text(status), last_lines);
        CHECK(!status);
        if (homes & 2)
            get(own, objects[1], found);
        else
            memcpy(found, cox_buffer_data(buffers[1]), MOST_BYTES);
        compare(shape, how);
    }
    for (int b = 0; b < 2; b++)
        cox_buffer_destroy(&buffers[b]);
    CHECK_SOON(atomic_load(&released) == (int)(homes & 1) + (int)(homes >> 1));
    cox_session_destroy(session); /* some drivers count a kernel's arguments */
    for (int b = 0; b < 2; b++) {
        CHECK_SOON(references(objects[b]) == 1);
        clReleaseMemObject(objects[b]);
    }
}

static void all_shapes(cox_runtime *runtime, const struct own *own, const char *devices, const char *policy,
                       double verify, const char *how)
{
    for (int s = 0; s < SHAPES; s++)
        for (unsigned homes = 1; homes <= 3; homes++) {
            cox_session *session = new_session(runtime, &shapes[s], devices, policy, verify);
            run_shape(runtime, own, &shapes[s], &session, homes, how);
        }
}

/* ---- frames under way ---- */

/* The application's kernels make each frame's input, and use its output, on the same device. */
static void a_stream_stays_on_the_device(cox_runtime *runtime, const struct own *own, const char *devices)
{
    cl_mem objects[FRAMES][2];
    cox_buffer *buffers[FRAMES][2];
    cox_session *session = new_session(runtime, &shapes[1], devices, NULL, 0);
    for (int f = 0; f < FRAMES; f++)
        for (int b = 0; b < 2; b++) {
            objects[f][b] = new_object(own);
            CHECK(!cox_opencl_buffer(runtime, own->index, objects[f][b], NULL, NULL, NULL, &buffers[f][b]));
        }
    for (int round = 0; round < 3; round++) {
        for (int f = 0; f < FRAMES; f++) {
            fill(before[0], (uint32_t)(round * FRAMES + f));
            put(own, objects[f][0], before[0]);
            CHECK(!cox_session_submit(session,
                                      &(const struct cox_frame){.buffers = COX_BUFFERS(buffers[f][0], buffers[f][1])},
                                      NULL, NULL));
        }
        CHECK(!cox_session_wait(session));
        for (int f = 0; f < FRAMES; f++) {
            fill(before[0], (uint32_t)(round * FRAMES + f));
            compute_expected(runtime, session);
            get(own, objects[f][1], found);
            compare(&shapes[1], "stream");
        }
    }
    cox_session_destroy(&session);
    for (int f = 0; f < FRAMES; f++)
        for (int b = 0; b < 2; b++) {
            cox_buffer_destroy(&buffers[f][b]);
            CHECK(references(objects[f][b]) == 1);
            clReleaseMemObject(objects[f][b]);
        }
}

/* ---- refusals ---- */

static void wrong_objects_are_refused(cox_runtime *runtime, const struct own *own)
{
    cl_int code;
    cl_mem mem = new_object(own), constant = clCreateBuffer(own->context, CL_MEM_READ_ONLY, 64, NULL, &code);
    cl_context context = clCreateContext(NULL, 1, &own->device, NULL, NULL, &code);
    cl_mem foreign = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &code);
    cox_buffer *buffer = (cox_buffer *)&code;
    const struct cox_opencl_sync sync = {.wait = &code};
#define REFUSED(expect, call)      \
    do {                           \
        last_lines[0] = 0;         \
        CHECK((call) == (expect)); \
        CHECK(last_lines[0]);      \
        CHECK(!buffer);            \
    } while (0)
    REFUSED(COX_E_INVALID, cox_opencl_buffer(runtime, own->index, NULL, NULL, NULL, NULL, &buffer));
    REFUSED(COX_E_INVALID, cox_opencl_buffer(runtime, own->index, constant, NULL, NULL, NULL, &buffer));
    REFUSED(COX_E_INVALID, cox_opencl_buffer(runtime, own->index, foreign, NULL, NULL, NULL, &buffer));
    REFUSED(COX_E_NOT_FOUND, cox_opencl_buffer(runtime, 99, mem, NULL, NULL, NULL, &buffer));
    CHECK(cox_opencl_buffer(NULL, 0, mem, NULL, NULL, NULL, &buffer) == COX_E_INVALID);
    CHECK(cox_opencl_buffer(runtime, own->index, mem, NULL, NULL, NULL, NULL) == COX_E_INVALID);
    const cox_status status = cox_opencl_buffer(runtime, own->index, mem, &sync, NULL, NULL, &buffer);
    CHECK(status == COX_OK || status == COX_E_UNSUPPORTED);
    cox_buffer_destroy(&buffer);

    /* Copies go to the memory object, not to the buffer. */
    CHECK(!cox_opencl_buffer(runtime, own->index, mem, NULL, NULL, NULL, &buffer));
    last_lines[0] = 0;
    CHECK(cox_opencl_read(buffer, 0, own->queue, mem, 0, 4, 0, NULL, NULL) == COX_E_INVALID);
    CHECK(strstr(last_lines, "the buffer lies on a device"));
    cox_buffer_destroy(&buffer);
    CHECK(references(mem) == 1);
    clReleaseMemObject(mem);
    clReleaseMemObject(constant);
    clReleaseMemObject(foreign);
    clReleaseContext(context);
}

static void test_device(cox_runtime *runtime, uint32_t index)
{
    const struct own own = own_of(runtime, index);
    char alone[16];
    snprintf(alone, sizeof alone, "#%u", index);
    wrong_objects_are_refused(runtime, &own);
    all_shapes(runtime, &own, alone, NULL, 0, "alone");
    a_stream_stays_on_the_device(runtime, &own, alone);
    if (cox_runtime_device_count(runtime) > 1) {
        all_shapes(runtime, &own, NULL, "static", 0, "static");
        all_shapes(runtime, &own, NULL, "chunks", 0, "chunks");
        all_shapes(runtime, &own, NULL, "static", 1, "verified");
        a_stream_stays_on_the_device(runtime, &own, NULL);
    }
    clReleaseCommandQueue(own.queue);
    printf("device %u: passed\n", index);
}

static void another_mode_is_refused(cox_runtime *runtime, uint32_t index)
{
    const struct own own = own_of(runtime, index);
    cl_mem mem = new_object(&own);
    cox_buffer *buffer;
    last_lines[0] = 0;
    CHECK(cox_opencl_buffer(runtime, index, mem, NULL, NULL, NULL, &buffer) == COX_E_UNSUPPORTED);
    CHECK(strstr(last_lines, "use cox_opencl_map") && !buffer);
    clReleaseMemObject(mem);
    clReleaseCommandQueue(own.queue);
}

int main(int argc, char **argv)
{
    cox_runtime *runtime = first_runtime(argc, argv);
    uint32_t staged = 0;
    for (uint32_t d = 0; d < cox_runtime_device_count(runtime); d++) {
        struct cox_device_info info;
        CHECK(!cox_runtime_device_info(runtime, d, &info));
        if (info.mode != COX_MODE_STAGED) {
            another_mode_is_refused(runtime, d);
            continue;
        }
        test_device(runtime, d);
        staged++;
    }
    cox_runtime_destroy(&runtime);
    if (staged)
        return 0;
    fprintf(stderr, "skipped, because no device is staged\n");
    return 77;
}
