/* Invert a picture once, in plain memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/coxswain.h>
#include <stdio.h>

static const char invert[] =
    "kernel void invert(global const uint *in, global uint *out, int columns, int rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows)\n"
    "        out[y * columns + x] = ~in[y * columns + x];\n"
    "}\n";
static uint32_t in[1080][2048], out[1080][2048];

int main(void)
{
    cox_runtime *runtime = NULL;
    cox_status status = cox_runtime_create(NULL, &runtime);
    if (!status)
        status = cox_run(runtime, invert, &(struct cox_range){2048, 1080}, COX_ARGS(in, out));
    printf("%s; out[0][0] = 0x%x\n", cox_status_text(status), out[0][0]);
    cox_runtime_destroy(&runtime);
    return status != COX_OK;
}
