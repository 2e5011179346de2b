/* An application that uses OpenCL. It computes a picture in device memory. Coxswain inverts the
 * picture on all devices, and the result returns to device memory. To build and run it:
 *   cc opencl.c $(pkg-config --cflags --libs coxswain OpenCL) && ./a.out
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/coxswain.h>
#include <coxswain/opencl.h>
#include <stdio.h>

enum { COLUMNS = 1024, ROWS = 512, BYTES = 4 * COLUMNS * ROWS };

/* The application's kernel. */
static const char *ramp = "kernel void ramp(global uint *to)\n"
                          "{\n"
                          "    to[get_global_id(0)] = get_global_id(0);\n"
                          "}\n";

/* Coxswain's kernel. */
static const char invert[] =
    "kernel void invert(global const uint *in, global uint *out, int columns, int rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows)\n"
    "        out[y * columns + x] = ~in[y * columns + x];\n"
    "}\n";

/* The application's objects, in the context of the runtime's device 0. */
struct application {
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem source, result;
};

static bool open_application(const cox_runtime *runtime, struct application *app)
{
    cl_context context;
    cl_device_id device;
    if (cox_opencl_device(runtime, 0, &context, &device) != COX_OK)
        return false;

    app->queue = clCreateCommandQueue(context, device, 0, NULL);
    app->program = clCreateProgramWithSource(context, 1, &ramp, NULL, NULL);
    if (!app->program || clBuildProgram(app->program, 1, &device, NULL, NULL, NULL) != CL_SUCCESS)
        return false;

    app->kernel = clCreateKernel(app->program, "ramp", NULL);
    app->source = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, NULL);
    app->result = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, NULL);
    return app->queue && app->kernel && app->source && app->result;
}

static void close_application(struct application *app)
{
    if (app->result)
        clReleaseMemObject(app->result);
    if (app->source)
        clReleaseMemObject(app->source);
    if (app->kernel)
        clReleaseKernel(app->kernel);
    if (app->program)
        clReleaseProgram(app->program);
    if (app->queue)
        clReleaseCommandQueue(app->queue);
}

/* Compute the picture in `source`, copy it to `in`, and wait for the copy. */
static cox_status produce(struct application *app, cox_buffer *in)
{
    const size_t pixels = (size_t)COLUMNS * ROWS;
    cl_event computed, copied;
    clSetKernelArg(app->kernel, 0, sizeof app->source, &app->source);
    if (clEnqueueNDRangeKernel(app->queue, app->kernel, 1, NULL, &pixels, NULL, 0, NULL,
                               &computed) != CL_SUCCESS)
        return COX_E_SYSTEM;

    const cox_status status = cox_opencl_read(in, 0, app->queue, app->source, 0, BYTES, 1,
                                              &computed, &copied);
    if (status == COX_OK) {
        clWaitForEvents(1, &copied);
        clReleaseEvent(copied);
    }
    clReleaseEvent(computed);
    return status;
}

/* Copy `out` to `result`, and count the pixels in it that are wrong. */
static cox_status consume(struct application *app, const cox_buffer *out, unsigned *wrong)
{
    static uint32_t pixels[COLUMNS * ROWS];
    const cox_status status = cox_opencl_write(out, 0, app->queue, app->result, 0, BYTES, 0, NULL,
                                               NULL);
    if (status != COX_OK)
        return status;

    if (clEnqueueReadBuffer(app->queue, app->result, CL_TRUE, 0, BYTES, pixels, 0, NULL, NULL) !=
        CL_SUCCESS)
        return COX_E_SYSTEM;

    for (uint32_t i = 0; i < COLUMNS * ROWS; i++)
        *wrong += pixels[i] != ~i;
    return COX_OK;
}

int main(void)
{
    cox_runtime *runtime = NULL;
    cox_session *session = NULL;
    cox_buffer *in = NULL, *out = NULL;
    struct application app = {0};
    unsigned wrong = 0;

    cox_status status = cox_runtime_create(NULL, &runtime);
    if (status == COX_OK)
        status = cox_session_create(runtime,
                                    &(const struct cox_session_params){
                                        .columns = COLUMNS,
                                        .rows = ROWS,
                                        .passes = COX_LIST(struct cox_pass, {.source = invert})},
                                    &session);
    if (status == COX_OK)
        status = cox_buffer_create(runtime, BYTES, &in);
    if (status == COX_OK)
        status = cox_buffer_create(runtime, BYTES, &out);
    if (status == COX_OK && !open_application(runtime, &app))
        status = COX_E_SYSTEM;

    for (int n = 0; n < 10 && status == COX_OK; n++) {
        status = produce(&app, in);
        if (status == COX_OK)
            status = cox_session_run(session,
                                     &(const struct cox_frame){.buffers = COX_BUFFERS(in, out)});
        if (status == COX_OK)
            status = consume(&app, out, &wrong);
    }

    printf("%s; %u values are wrong\n", cox_status_text(status), wrong);
    close_application(&app);
    cox_session_destroy(&session);
    cox_buffer_destroy(&in);
    cox_buffer_destroy(&out);
    cox_runtime_destroy(&runtime);
    return status != COX_OK || wrong > 0;
}
