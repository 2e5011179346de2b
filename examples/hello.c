/* Your own kernel on all OpenCL devices of the machine at once: out = sqrt(in), row by row.
 * cc hello.c $(pkg-config --cflags --libs coxswain) -lm && ./a.out
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/coxswain.h>
#include <math.h>
#include <stdio.h>

enum { ROWS = 2000, COLUMNS = 1000, FRAMES = 20 };

static const char source[] =
    "kernel void root(global const float *in, global float *out,\n"
    "                 int columns, int rows, int pitch) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n" /* the band's own first row is 0 */
    "    if (x < columns && y < rows) out[y * pitch + x] = sqrt(in[y * pitch + x]);\n"
    "}\n";

int main(void)
{
    cox_runtime *runtime = NULL;
    cox_session *session = NULL;
    cox_buffer *buffers[2] = {NULL, NULL}; /* in, out */
    int wrong = 0;                         /* values */

    cox_status status = cox_runtime_create(NULL, &runtime);
    if (status)
        goto done;

    size_t pitch_bytes = cox_runtime_pitch_bytes(runtime, COLUMNS * sizeof(float));
    int pitch = (int)(pitch_bytes / sizeof(float));
    struct cox_binding bindings[] = {
        {.name = "in", .access = COX_READ, .pitch_bytes = pitch_bytes},
        {.name = "out", .access = COX_WRITE, .pitch_bytes = pitch_bytes}};
    struct cox_variant variant = {.source = source, .local_columns = 64};
    struct cox_arg args[] = {COX_ARG_BUFFER(0), COX_ARG_BUFFER(1), COX_ARG_COLUMNS, COX_ARG_ROWS,
                             COX_ARG_PARAMS(int)};
    struct cox_stage stage = {.kernel = "root",
                              .columns = COLUMNS,
                              .variant_count = 1,
                              .variants = &variant,
                              .arg_count = 5,
                              .args = args};

    status = cox_session_create(runtime,
                                &(const struct cox_session_params){.rows = ROWS,
                                                                   .binding_count = 2,
                                                                   .bindings = bindings,
                                                                   .stage_count = 1,
                                                                   .stages = &stage,
                                                                   .params_bytes = sizeof pitch},
                                &session);
    for (int i = 0; i < 2 && !status; i++)
        status = cox_buffer_create(runtime, ROWS * pitch_bytes, &buffers[i]);
    if (status)
        goto done;

    float *in = cox_buffer_data(buffers[0]), *out = cox_buffer_data(buffers[1]);
    for (int i = 0; i < ROWS * pitch; i++)
        in[i] = (float)i;

    /* Each frame is split better than the one before. */
    for (int frame = 0; frame < FRAMES && !status; frame++)
        status = cox_session_run(session, &(const struct cox_frame){.buffers = buffers,
                                                                    .buffer_count = 2,
                                                                    .params = &pitch});

    for (int i = 0; i < ROWS * pitch && !status; i++)
        wrong += i % pitch < COLUMNS && fabsf(out[i] - sqrtf(in[i])) > 1e-6f * sqrtf(in[i]);
    if (!status)
        printf("%d rows on %u devices, %d wrong\n", ROWS, cox_runtime_device_count(runtime), wrong);

done:
    if (status)
        fprintf(stderr, "hello: %s\n", cox_status_text(status));
    cox_session_destroy(&session);
    cox_buffer_destroy(&buffers[0]);
    cox_buffer_destroy(&buffers[1]);
    cox_runtime_destroy(&runtime);
    return status || wrong;
}
