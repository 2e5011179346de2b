/* Two outputs of different size: the picture brightened, and a picture of half the size.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/coxswain.h>
#include <stdio.h>
enum { W = 1920, H = 1080 };
static const char source[] =
    "kernel void both(global const uchar *in, global uchar *bright, global uchar *small, int columns, int rows)\n"
    "{ int x = 2 * get_global_id(0), y = 2 * get_global_id(1), sum = 0;\n"
    "  if (x >= columns || y >= rows) return;\n"
    "  for (int i = 0; i < 4; i++) { int at = (y + i / 2) * columns + x + i % 2; sum += in[at]; bright[at] = add_sat(in[at], (uchar)40); }\n"
    "  small[y / 2 * (columns / 2) + x / 2] = sum / 4; }\n";
static uint8_t in[H][W], bright[H][W], small[H / 2][W / 2];
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
                                        .passes = COX_LIST(struct cox_pass, {.source = source,
                                                                             .item_columns = 2,
                                                                             .item_rows = 2}),
                                        .buffers = COX_LIST(struct cox_buffer_layout,
                                                            {.name = "in"}, {.name = "bright"},
                                                            {.name = "small",
                                                             .pitch_bytes = W / 2,
                                                             .row_divisor = 2})},
                                    &session);
    if (!status)
        status = cox_session_run(session, &(struct cox_frame){.data = COX_ARGS(in, bright, small)});
    printf("%s\n", cox_status_text(status));
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    return status != COX_OK;
}
