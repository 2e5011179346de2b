/* A kernel on all OpenCL devices of the machine at once: it inverts a picture.
 *   cc hello.c $(pkg-config --cflags --libs coxswain) && ./a.out
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/coxswain.h>
#include <stdio.h>

enum { ROWS = 1080, COLUMNS = 2048 };

static const char invert[] =
    "kernel void invert(global const uint *in, global uint *out, int columns, int rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows)\n"
    "        out[y * columns + x] = ~in[y * columns + x];\n"
    "}\n";

static uint32_t in[ROWS * COLUMNS], out[ROWS * COLUMNS];

static int count_wrong(void)
{
    int wrong = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        wrong += out[i] != ~in[i];

    return wrong;
}

int main(void)
{
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        in[i] = i;

    cox_runtime *runtime = NULL;
    cox_status status = cox_runtime_create(NULL, &runtime);
    if (!status)
        status = cox_run(runtime, invert, COLUMNS, ROWS, COX_ARGS(in, out));

    if (status)
        fprintf(stderr, "hello: %s\n", cox_status_text(status));
    else
        printf("%d rows on %u devices, %d values are wrong\n", ROWS,
               cox_runtime_device_count(runtime), count_wrong());

    cox_runtime_destroy(&runtime);
    return status || count_wrong();
}
