/* A device that is lost in a context of the application's, while it samples an image: its session goes on in another
 * context, the runtime gives the application's back, and what the application has in it is as before. Under the fault
 * layer (tests/faults/).
 *
 * The exit status is 77 without OpenCL devices.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <coxswain/coxswain.h>
#include <coxswain/opencl.h>
#include "faults/control.h"
#include "support/check.h"

#include <string.h>
#include <time.h>

enum { ROWS = 64, COLUMNS = 256, WORDS = ROWS * COLUMNS, BYTES = 4 * WORDS, DEVICES_MAX = 64, FRAMES_MAX = 60000 };

static const char source[] =
    "constant sampler_t at = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;\n"
    "kernel void add(read_only image2d_t from, global uint *to, int columns, int rows) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows) to[y * columns + x] = read_imageui(from, at, (int2)(x, y)).x + 7u;\n"
    "}\n";

static cox_session *new_session(cox_runtime *runtime)
{
    const struct cox_binding bindings[] = {{.name = "from", .pitch_bytes = 4 * COLUMNS},
                                           {.name = "to", .access = COX_WRITE, .pitch_bytes = 4 * COLUMNS}};
    const struct cox_variant variant = {.source = source, .local_columns = 16};
    const struct cox_arg args[] = {COX_ARG_IMAGE(0, CL_R, CL_UNSIGNED_INT32, COLUMNS), COX_ARG_BUFFER(1),
                                   COX_ARG_COLUMNS, COX_ARG_ROWS};
    const struct cox_stage stage = {
        .kernel = "add", .columns = COLUMNS, .variant_count = 1, .variants = &variant, .arg_count = 4, .args = args};
    cox_session *session;
    CHECK(!cox_session_create(runtime,
                              COX_SESSION_PARAMS(.rows = ROWS, .binding_count = 2, .bindings = bindings,
                                                 .stage_count = 1, .stages = &stage, .no_warmup = true,
                                                 .device_timeout_ns = 200000000),
                              &session));
    return session;
}

static cl_uint references(cl_context context)
{
    cl_uint count;
    CHECK(!clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL));
    return count;
}

/* Frames until the device is back: those that are delivered are right, and one of those after that is. */
static void run_until_back(cox_session *session, cox_buffer *const *buffers)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};
    struct cox_session_info info = {0};
    bool good = false;
    for (uint32_t frame = 0; frame < FRAMES_MAX && !(good && info.devices[0].returned); frame++) {
        uint32_t *from = cox_buffer_data(buffers[0]);
        for (uint32_t i = 0; i < WORDS; i++)
            from[i] = i * 2654435761u + frame;
        const cox_status status = cox_session_run(session, COX_FRAME(.buffers = buffers, .buffer_count = 2));
        good = status == COX_OK;
        const uint32_t *to = cox_buffer_data(buffers[1]);
        for (uint32_t i = 0; i < WORDS && good; i++)
            CHECK(to[i] == i * 2654435761u + frame + 7);
        cox_session_info(session, &info, sizeof info);
        nanosleep(&millisecond, NULL);
    }
    CHECK(good && info.devices[0].lost && info.devices[0].returned);
}

/* A frame of what the application puts into the context, and gets out of it, by its own queue. */
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

/* `hangs_s`: for how long the device hangs, after which what it kept of the context is given back. */
static void device_is_lost(const struct fault *fault, cl_platform_id platform, const char *selection, const char *plan,
                           unsigned hangs_s)
{
    char why[256];
    cl_device_id devices[DEVICES_MAX];
    cl_uint device_count, pattern = 0xabcdef01u;
    cl_int code;
    cox_runtime *runtime;
    cox_buffer *buffers[2];
    CHECK(!fault->load("", why, sizeof why));
    CHECK(!clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, devices, &device_count));
    cl_context context = clCreateContext(NULL, 1, devices, NULL, NULL, &code), other;
    CHECK(!code);
    cl_command_queue queue = clCreateCommandQueue(context, devices[0], 0, &code);
    CHECK(!code);
    cl_mem mem = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &code);
    CHECK(!code && !clEnqueueFillBuffer(queue, mem, &pattern, sizeof pattern, 0, BYTES, 0, NULL, NULL));
    CHECK(!clFinish(queue) && !clReleaseCommandQueue(queue));
    const cl_uint before = references(context);

    CHECK(!cox_runtime_create(&runtime, COX_RUNTIME_PARAMS(.devices = selection, .reserve = COX_RESERVE_OFF,
                                                           .opencl = COX_OPENCL_GIVEN(.contexts = &context,
                                                                                      .context_count = 1))));
    CHECK(!cox_opencl_device(runtime, 0, &other, &devices[0]) && other == context);
    cox_session *session = new_session(runtime);
    for (int i = 0; i < 2; i++)
        CHECK(!cox_buffer_create(runtime, BYTES, &buffers[i]));
    CHECK(!fault->load(plan, why, sizeof why));
    run_until_back(session, buffers);
    nanosleep(&(struct timespec){.tv_sec = hangs_s}, NULL);
    CHECK(fault->count(0, 2) > 0); /* the fault has struck */
    CHECK(cox_opencl_device(runtime, 0, &other, &devices[0]) == COX_E_DEVICE_LOST);
    CHECK(!clReleaseContext(context) && references(context) >= 1); /* the runtime and `mem` have it still */
    context_works(context, devices[0], mem);
    cox_session_destroy(&session);
    for (int i = 0; i < 2; i++)
        cox_buffer_destroy(&buffers[i]);
    CHECK(!clRetainContext(context));
    cox_runtime_destroy(&runtime);
    CHECK(!runtime && references(context) == before);
    context_works(context, devices[0], mem);
    clReleaseMemObject(mem);
    clReleaseContext(context);
    printf("%s, %s: passed\n", selection, plan);
}

int main(void)
{
    struct fault fault;
    cl_platform_id platform;
    cl_device_id processor;
    cl_uint count = 0;
    CHECK(fault_open(&fault, NULL));
    if (clGetPlatformIDs(1, &platform, &count) || !count) {
        fprintf(stderr, "skipped, because there is no OpenCL platform\n");
        return 77;
    }
    static const char *const selections[] = {"0.0=mapped", "0.0=staged"};
    /* GPUs: in the mode that they have by default. In mapped mode NVIDIA's driver fills no images. */
    const bool maps = !clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &processor, NULL);
    for (int s = maps ? 0 : 1; s < 2; s++) {
        device_is_lost(&fault, platform, selections[s], "kernel at=5 error=CL_OUT_OF_RESOURCES", 0);
        device_is_lost(&fault, platform, selections[s], "kernel at=5 status=CL_OUT_OF_RESOURCES", 0);
        device_is_lost(&fault, platform, selections[s], "kernel at=5 late=3s", 4);
    }
    if (maps) /* others keep their images */
        device_is_lost(&fault, platform, "0.0=mapped", "clCreateImage at=5 error=CL_MEM_OBJECT_ALLOCATION_FAILURE", 0);
    device_is_lost(&fault, platform, "0.0=staged", "clEnqueueWriteImage at=5 error=CL_OUT_OF_RESOURCES", 0);
    device_is_lost(&fault, platform, "0.0=staged", "clEnqueueWriteImage at=5 status=CL_OUT_OF_RESOURCES", 0);
    device_is_lost(&fault, platform, "0.0=staged", "clEnqueueWriteImage at=5 late=3s", 4);
    return 0;
}
