/* Blur with a halo: three rows at once, frames that repeat.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/coxswain.h>
#include <stdio.h>
enum { W = 1920, H = 1080 };
static const char blur[] =
    "kernel void blur(global const float *in, int in_first_row, global float *out, int first_row,\n"
    "                 int columns, int rows, int frame_rows, float strength)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    int r = first_row + y, up = max(r - 1, 0) - in_first_row, down = min(r + 1, frame_rows - 1) - in_first_row;\n"
    "    float mean = (in[up * columns + x] + in[(r - in_first_row) * columns + x] + in[down * columns + x]) / 3;\n"
    "    out[y * columns + x] = mix(in[(r - in_first_row) * columns + x], mean, strength);\n"
    "}\n";
struct settings {
    float strength;
};
int main(void)
{
    cox_runtime *runtime = NULL;
    cox_session *session = NULL;
    cox_buffer *in = NULL, *out = NULL;
    cox_status status = cox_runtime_create(NULL, &runtime);
    if (!status)
        status =
            cox_session_create(runtime,
                               &(struct cox_session_params){
                                   .columns = W,
                                   .rows = H,
                                   .passes = COX_LIST(struct cox_pass,
                                                      {.source = blur,
                                                       .arguments = COX_LIST(struct cox_argument,
                                                                             {.name = "in",
                                                                              .halo_rows = 1})}),
                                   .fields = COX_LIST(struct cox_field,
                                                      COX_FIELD(struct settings, strength)),
                                   .constants_bytes = sizeof(struct settings)},
                               &session);
    if (!status)
        status = cox_buffer_create(runtime, W * H * sizeof(float), &in);
    if (!status)
        status = cox_buffer_create(runtime, W * H * sizeof(float), &out);
    for (int frame = 0; !status && frame < 100; frame++) {
        ((float *)cox_buffer_data(in))[frame] = 1;
        status = cox_session_run(session,
                                 &(struct cox_frame){.buffers = COX_BUFFERS(in, out),
                                                     .constants = &(struct settings){0.5f}});
    }
    printf("%s\n", cox_status_text(status));
    cox_buffer_destroy(&in);
    cox_buffer_destroy(&out);
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    return status != COX_OK;
}
