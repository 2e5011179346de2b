/* Histogram, then a curve of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/coxswain.h>
#include <stdio.h>
#include <string.h>
enum { W = 1920, H = 1080 };
static const char source[] =
    "kernel void count(global const uchar *in, global uint *histogram, int columns, int rows)\n"
    "{ int x = get_global_id(0), y = get_global_id(1);\n"
    "  if (x < columns && y < rows) atomic_inc(&histogram[in[y * columns + x]]); }\n"
    "typedef struct { uchar value[256]; } curve_t;\n"
    "kernel void map(global const uchar *in, global uchar *out, int columns, int rows, curve_t curve)\n"
    "{ int x = get_global_id(0), y = get_global_id(1);\n"
    "  if (x < columns && y < rows) out[y * columns + x] = curve.value[in[y * columns + x]]; }\n";
struct params {
    uint8_t curve[256];
};
static void add(void *into, const void *partial, size_t bytes, void *user)
{
    (void)user;
    for (size_t i = 0; i < bytes / sizeof(uint32_t); i++)
        ((uint32_t *)into)[i] += ((const uint32_t *)partial)[i];
}
static void equalise(void *user, const struct cox_pass_result *result)
{
    (void)user;
    const uint32_t *histogram = result->buffers[1];
    struct params *params = result->constants;
    uint64_t sum = 0;
    for (int i = 0; i < 256; i++) {
        sum += histogram[i];
        params->curve[i] = (uint8_t)(sum * 255 / (W * H));
    }
}
static uint8_t in[H][W], out[H][W];
static uint32_t histogram[256];
int main(void)
{
    cox_runtime *runtime = NULL;
    cox_session *session = NULL;
    cox_status status = cox_runtime_create(NULL, &runtime);
    if (!status)
        status = cox_session_create(runtime,
                                    &(struct cox_session_params){
                                        .columns = W,
                                        .rows = H,
                                        .passes = COX_LIST(struct cox_pass,
                                                           {.source = source,
                                                            .kernel = "count",
                                                            .done = equalise},
                                                           {.source = source, .kernel = "map"}),
                                        .buffers = COX_LIST(struct cox_buffer_layout,
                                                            {.name = "in"},
                                                            {.name = "histogram",
                                                             .bytes = sizeof histogram,
                                                             .merge = add},
                                                            {.name = "out"}),
                                        .fields = COX_LIST(struct cox_field,
                                                           COX_FIELD(struct params, curve)),
                                        .constants_bytes = sizeof(struct params)},
                                    &session);
    if (!status)
        status = cox_session_run(session,
                                 &(struct cox_frame){.data = COX_ARGS(in, histogram, out)});
    printf("%s\n", cox_status_text(status));
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    return status != COX_OK;
}
