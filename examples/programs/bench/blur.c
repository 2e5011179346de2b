/* SPDX-License-Identifier: Apache-2.0 */
#include "blur.h"

/* A work-item computes four pixels. Beyond the edges the outermost pixels repeat. */
static const char source[] =
    "kernel void across(global const float *in, global float *between, int in_pitch,\n"
    "                   int between_pitch, int in_first_row, int between_first_row, int columns,\n"
    "                   int rows, int first_row, int radius, float weight)\n"
    "{\n"
    "    int x = 4 * get_global_id(0), y = get_global_id(1), last = columns - 1;\n"
    "    if (x >= columns || y >= rows)\n"
    "        return;\n"
    "    global const float *from = in + (size_t)(first_row + y - in_first_row) * in_pitch;\n"
    "    global float *to = between +\n"
    "                       (size_t)(first_row + y - between_first_row) * between_pitch;\n"
    "    float4 sum = (float4)(0.0f);\n"
    "    if (x >= radius && x + 3 + radius <= last)\n"
    "        for (int i = x - radius; i <= x + radius; i++)\n"
    "            sum += vload4(0, from + i);\n"
    "    else\n"
    "        for (int i = x - radius; i <= x + radius; i++)\n"
    "            sum += (float4)(from[clamp(i, 0, last)], from[clamp(i + 1, 0, last)],\n"
    "                            from[clamp(i + 2, 0, last)], from[clamp(i + 3, 0, last)]);\n"
    "    vstore4(sum * weight, 0, to + x);\n"
    "}\n"
    "\n"
    "kernel void down(global const float *between, global float *out, int between_pitch,\n"
    "                 int out_pitch, int between_first_row, int columns, int rows, int first_row,\n"
    "                 int frame_rows, int radius, float weight)\n"
    "{\n"
    "    int x = 4 * get_global_id(0), y = get_global_id(1), row = first_row + y;\n"
    "    if (x >= columns || y >= rows)\n"
    "        return;\n"
    "    float4 sum = (float4)(0.0f);\n"
    "    for (int i = row - radius; i <= row + radius; i++) {\n"
    "        int near = clamp(i, 0, frame_rows - 1) - between_first_row;\n"
    "        sum += vload4(0, between + (size_t)near * between_pitch + x);\n"
    "    }\n"
    "    vstore4(sum * weight, 0, out + (size_t)y * out_pitch + x);\n"
    "}\n";

enum { ITEM_COLUMNS = 4 };

static const struct cox_field fields[] = {COX_FIELD(struct bench_blur_constants, radius),
                                          COX_FIELD(struct bench_blur_constants, weight),
                                          {0}};

void bench_blur_make(struct bench_blur *blur, uint32_t width, uint32_t height, size_t pitch_bytes,
                     uint32_t radius, bool fused)
{
    *blur = (struct bench_blur){
        .buffers = {{.name = "in", .pitch_bytes = pitch_bytes},
                    {.name = "out", .pitch_bytes = pitch_bytes},
                    {.name = "between", .pitch_bytes = pitch_bytes, .scratch = true}},
        .arguments = {{.name = "between", .halo_rows = radius}},
        .passes = {{.source = source, .kernel = "across", .item_columns = ITEM_COLUMNS},
                   {.source = source,
                    .kernel = "down",
                    .item_columns = ITEM_COLUMNS,
                    .arguments = blur->arguments,
                    .fused = fused}},
        .session = {.columns = width,
                    .rows = height,
                    .passes = blur->passes,
                    .buffers = blur->buffers,
                    .fields = fields,
                    .constants_bytes = sizeof blur->constants},
        .constants = {(int32_t)radius, 1.0f / (float)(2 * radius + 1)}};
}

void bench_blur_make_half(struct bench_blur *half, const struct bench_blur *both, uint32_t pass)
{
    struct cox_buffer_layout between = both->buffers[2];

    between.scratch = false;
    *half = (struct bench_blur){.buffers = {both->buffers[0], between},
                                .passes = {both->passes[pass]},
                                .session = both->session,
                                .constants = both->constants};
    if (pass == 1) {
        half->buffers[0] = between;
        half->buffers[1] = both->buffers[1];
    }

    half->passes[0].fused = false;
    half->session.passes = half->passes;
    half->session.buffers = half->buffers;
}
