/* A device is lost while it samples an image in a context of the application. The session must continue in another
 * context. The runtime must release the application's context, whose contents stay as they were. Needs the fault
 * layer (tests/faults/).
 *
 * The exit status is 77 without OpenCL devices.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "specs.h"
#include "interop.h"
#include "faults/control.h"

enum { ROWS = 64, COLUMNS = 256, WORDS = ROWS * COLUMNS, BYTES = 4 * WORDS };

/* Ten timeouts are less than LATE, so a late device is always given up, even if the process has to wait for a core.
 * A device that is given up too early returns and is lost once more. */
static const uint64_t timeout_ns = 200000000;
#define LATE "late=3s"

static const char source[] =
    "constant sampler_t at = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;\n"
    "kernel void add(read_only image2d_t from, global uint *to, int columns, int rows) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows) to[y * columns + x] = read_imageui(from, at, (int2)(x, y)).x + 7u;\n"
    "}\n";

static cox_session *new_session(cox_runtime *runtime)
{
    const struct cox__arg args[] = {COX__ARG_IMAGE(0, CL_R, CL_UNSIGNED_INT32, COLUMNS), COX__ARG_BUFFER(1),
                                    COX__ARG_COLUMNS, COX__ARG_ROWS};
    return words_session(runtime, source, "add", COLUMNS, args, 2,
                         (const struct cox__session_spec){
                             .rows = ROWS, .no_warmup = true, .device_timeout_ns = timeout_ns});
}

/* Run frames until the fault has struck and the device is back. Every delivered frame must be right, and at least
 * one after the fault. */
static void run_until_back(const struct fault *fault, cox_session *session, cox_buffer *const *buffers)
{
    struct cox_session_info info = {0};
    for (uint32_t frame = 0;; frame++) {
        uint32_t *from = cox_buffer_data(buffers[0]);
        for (uint32_t i = 0; i < WORDS; i++)
            from[i] = i * 2654435761u + frame;
        const bool good = cox__session_run(session, &(const struct cox__frame_spec){.buffers = buffers,
                                                                                    .buffer_count = 2}) == COX_OK;
        const uint32_t *to = cox_buffer_data(buffers[1]);
        for (uint32_t i = 0; i < WORDS && good; i++)
            CHECK(to[i] == i * 2654435761u + frame + 7);
        cox_session_info(session, &info);
        if (good && fault->count(0, FAULT_STRUCK) && info.devices[0].lost == info.devices[0].returned)
            break;
        rest_ms();
    }
    CHECK(info.devices[0].lost && info.devices[0].returned);
}

/* The application writes to the context, runs a command and reads, with its own queue. */
static void context_works(cl_context context, cl_device_id device, cl_mem mem)
{
    cl_int code;
    cl_uint *words = calloc(1, BYTES);
    CHECK(words);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    CHECK(!code && !clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, BYTES, words, 0, NULL, NULL));
    for (cl_uint i = 0; i < WORDS; i++)
        CHECK(words[i] == 0xabcdef01u);
    clReleaseCommandQueue(queue);
    free(words);
}

static void device_is_lost(const struct fault *fault, cl_platform_id platform, const char *selection, const char *plan)
{
    char why[256];
    cl_device_id device;
    cl_uint pattern = 0xabcdef01u;
    cl_int code;
    cox_runtime *runtime;
    cox_buffer *buffers[2];
    CHECK(!fault->load("", why, sizeof why));
    CHECK(!clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code), other;
    CHECK(!code);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    CHECK(!code);
    cl_mem mem = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &code);
    CHECK(!code && !clEnqueueFillBuffer(queue, mem, &pattern, sizeof pattern, 0, BYTES, 0, NULL, NULL));
    CHECK(!clFinish(queue) && !clReleaseCommandQueue(queue));
    const cl_uint before = context_references(context);

    CHECK(!cox_runtime_create(&(const struct cox_runtime_params){.devices = selection,
                                                                 .reserve = COX_RESERVE_OFF,
                                                                 .contexts =
                                                                     &(const struct cox_opencl_contexts){
                                                                         .contexts = &context, .count = 1}},
                              &runtime));
    CHECK(!cox_opencl_device(runtime, 0, &other, &device) && other == context);
    const cl_uint resting = context_references(context) + 2; /* plus the two buffers */
    cox_session *session = new_session(runtime);
    for (int i = 0; i < 2; i++)
        CHECK(!cox_buffer_create(runtime, BYTES, &buffers[i]));
    CHECK(!fault->load(plan, why, sizeof why));
    run_until_back(fault, session, buffers);
    /* A late device releases its references when it ends. Some drivers do not count them. */
    if (strstr(plan, LATE) && context_references(context) <= resting)
        nanosleep(&(struct timespec){.tv_sec = 4}, NULL);
    CHECK_SOON(context_references(context) <= resting);
    CHECK(cox_opencl_device(runtime, 0, &other, &device) == COX_E_DEVICE_LOST);
    CHECK(!clReleaseContext(context) && context_references(context) >= 1); /* the runtime and `mem` still refer to
                                                                            * it */
    context_works(context, device, mem);
    cox_session_destroy(&session);
    for (int i = 0; i < 2; i++)
        cox_buffer_destroy(&buffers[i]);
    CHECK(!clRetainContext(context));
    cox_runtime_destroy(&runtime);
    CHECK(!runtime);
    CHECK_SOON(context_references(context) == before);
    context_works(context, device, mem);
    clReleaseMemObject(mem);
    clReleaseContext(context);
    printf("%s, %s: passed\n", selection, plan);
}

int main(void)
{
    struct fault fault;
    check_limit("a device that is lost in a context of the application's");
    cl_platform_id platform;
    cl_device_id processor;
    cl_uint count = 0;
    CHECK(fault_open(&fault, NULL));
    if (clGetPlatformIDs(1, &platform, &count) || !count) {
        fprintf(stderr, "skipped, because there is no OpenCL platform\n");
        return 77;
    }
    static const char *const selections[] = {"0.0=mapped", "0.0=staged"};
    /* GPUs run in their default mode. In mapped mode NVIDIA's driver does not write images. */
    const bool maps = !clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &processor, NULL);
    for (int s = maps ? 0 : 1; s < 2; s++) {
        device_is_lost(&fault, platform, selections[s], "kernel at=5 error=CL_OUT_OF_RESOURCES");
        device_is_lost(&fault, platform, selections[s], "kernel at=5 status=CL_OUT_OF_RESOURCES");
        device_is_lost(&fault, platform, selections[s], "kernel at=5 " LATE);
    }
    if (maps) /* other devices keep their images */
        device_is_lost(&fault, platform, "0.0=mapped", "clCreateImage at=5 error=CL_MEM_OBJECT_ALLOCATION_FAILURE");
    device_is_lost(&fault, platform, "0.0=staged", "clEnqueueWriteImage at=5 error=CL_OUT_OF_RESOURCES");
    device_is_lost(&fault, platform, "0.0=staged", "clEnqueueWriteImage at=5 status=CL_OUT_OF_RESOURCES");
    device_is_lost(&fault, platform, "0.0=staged", "clEnqueueWriteImage at=5 " LATE);
    return 0;
}
