/* Jacobi iteration: each frame reads the grid before and writes the next.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/coxswain.h>
#include <stdio.h>
enum { N = 1024, STEPS = 1000 };
static const char source[] =
    "kernel void step(global const float *now, int now_first_row, global float *next, int columns, int rows, int first_row, int frame_rows)\n"
    "{ int x = get_global_id(0), y = get_global_id(1), r = first_row + y, i = (r - now_first_row) * columns + x;\n"
    "  if (x >= columns || y >= rows) return;\n"
    "  bool edge = x == 0 || x == columns - 1 || r == 0 || r == frame_rows - 1;\n"
    "  next[y * columns + x] = edge ? now[i] : (now[i - 1] + now[i + 1] + now[i - columns] + now[i + columns]) / 4; }\n";
int main(void)
{
    cox_runtime *runtime = NULL;
    cox_session *session = NULL;
    cox_buffer *grid[2] = {NULL, NULL};
    cox_status status = cox_runtime_create(NULL, &runtime);
    if (!status)
        status =
            cox_session_create(runtime,
                               &(struct cox_session_params){
                                   .columns = N,
                                   .rows = N,
                                   .passes = COX_LIST(struct cox_pass,
                                                      {.source = source,
                                                       .arguments = COX_LIST(struct cox_argument,
                                                                             {.name = "now",
                                                                              .halo_rows = 1})})},
                               &session);
    for (int i = 0; !status && i < 2; i++)
        status = cox_buffer_create(runtime, N * N * sizeof(float), &grid[i]);
    for (int step = 0; !status && step < STEPS; step++)
        status =
            cox_session_submit(session,
                               &(struct cox_frame){
                                   .buffers = COX_BUFFERS(grid[step % 2], grid[(step + 1) % 2])},
                               NULL, NULL);
    if (!status)
        status = cox_session_wait(session);
    printf("%s\n", cox_status_text(status));
    for (int i = 0; i < 2; i++)
        cox_buffer_destroy(&grid[i]);
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    return status != COX_OK;
}
