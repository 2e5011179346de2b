/* The ceilings that kernels are compared with: a kernel that only moves the bytes of a video frame,
 * and the same kernel with some arithmetic.
 *
 * A 4:2:0 frame reads 3 bytes per pixel (10 bits in 16) and writes 1.5 (8 bits). This kernel does
 * the same: it writes one word for two words that it reads. `n` multiply-adds per pixel are 4/3 n
 * per word. As in the project's kernels, a multiply-add is an fma, or a multiplication and an
 * addition. The chains of different words are independent. A work-item has 8 chains on a GPU and 96
 * on a CPU.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ceilings.h"

#include <stdio.h>

/* Rows are padded to a whole number of CPU work-items. */
enum { CPU_VECTOR = 16, CPU_ITEM = 96, CPU_LOCAL = 15, GPU_VECTOR = 4 };

/* 3/8 of a word is written for each pixel. */
static uint32_t words_out(uint32_t width)
{
    return (width * 3 + 7) / 8;
}

static const char source[] =
    "#pragma OPENCL FP_CONTRACT OFF\n"
    "#if VECTOR == 16\n"
    "typedef float16 real;\n"
    "#define WORDS as_uint16\n"
    "#define LOAD(p) vload16(0, p)\n"
    "#define STORE(v, p) vstore16(v, 0, p)\n"
    "#else\n"
    "typedef float4 real;\n"
    "#define WORDS as_uint4\n"
    "#define LOAD(p) vload4(0, p)\n"
    "#define STORE(v, p) vstore4(v, 0, p)\n"
    "#endif\n"
    "#ifdef COX_FMA\n"
    "#define ROUND(v) fma(v, (real)(0.9990234375f), (real)(0.0009765625f))\n"
    "#else\n"
    "#define ROUND(v) ((v) * (real)(0.9990234375f) + (real)(0.0009765625f))\n"
    "#endif\n"
    "kernel void ceiling(global const float *in, global uint *out, int in_pitch, int out_pitch, "
    "int columns, int rows)\n"
    "{\n"
    "    int x = (int)get_global_id(0) * ITEM, y = (int)get_global_id(1);\n"
    "    if (x >= columns || y >= rows)\n"
    "        return;\n"
    "    global const float *from = in + (size_t)y * in_pitch;\n"
    "    global uint *to = out + (size_t)y * out_pitch;\n"
    "#if VECTOR == 16\n"
    "    for (int end = x + ITEM; x < end; x += 48) {\n"
    "        global const float *p = from + 2 * x;\n"
    "        real a = LOAD(p), b = LOAD(p + 16), c = LOAD(p + 32), d = LOAD(p + 48), e = LOAD(p + "
    "64),\n"
    "             f = LOAD(p + 80);\n"
    "        for (int i = 0; i < STEPS; i++) {\n"
    "            a = ROUND(a);\n"
    "            b = ROUND(b);\n"
    "            c = ROUND(c);\n"
    "            d = ROUND(d);\n"
    "            e = ROUND(e);\n"
    "            f = ROUND(f);\n"
    "        }\n"
    "        STORE(WORDS(a) ^ WORDS(b), to + x);\n"
    "        STORE(WORDS(c) ^ WORDS(d), to + x + 16);\n"
    "        STORE(WORDS(e) ^ WORDS(f), to + x + 32);\n"
    "    }\n"
    "#else\n"
    "    real a = LOAD(from + x), b = LOAD(from + columns + x);\n"
    "    for (int i = 0; i < STEPS; i++) {\n"
    "        a = ROUND(a);\n"
    "        b = ROUND(b);\n"
    "    }\n"
    "    STORE(WORDS(a) ^ WORDS(b), to + x);\n"
    "#endif\n"
    "}\n";

void bench_ceiling_fill(struct bench_ceiling *ceiling, uint32_t width, uint32_t height,
                        uint32_t multiply_adds, const cox_runtime *runtime,
                        struct cox_session_params *session)
{
    const uint32_t columns = words_out(width),
                   padded = (columns + CPU_ITEM - 1) / CPU_ITEM * CPU_ITEM;
    const size_t out_pitch = cox_runtime_pitch_bytes(runtime, padded * sizeof(uint32_t));
    const size_t in_pitch = cox_runtime_pitch_bytes(runtime, 2 * padded * sizeof(uint32_t));

    *ceiling = (struct bench_ceiling){.bytes = (uint64_t)3 * columns * sizeof(uint32_t) * height,
                                      .buffers = {{.name = "in", .pitch_bytes = in_pitch},
                                                  {.name = "out", .pitch_bytes = out_pitch}}};

    const int shapes[2][2] = {{CPU_VECTOR, CPU_ITEM}, {GPU_VECTOR, GPU_VECTOR}};
    for (int v = 0; v < 2; v++)
        snprintf(ceiling->options[v], sizeof ceiling->options[v],
                 "-D VECTOR=%d -D ITEM=%d -D STEPS=%u", shapes[v][0], shapes[v][1],
                 multiply_adds * 4 / 3);

    ceiling->variants[0] = (struct cox_pass){.devices = "cpu",
                                             .source = source,
                                             .options = ceiling->options[0],
                                             .local_columns = CPU_LOCAL,
                                             .item_columns = CPU_ITEM};
    ceiling->passes[0] = (struct cox_pass){.source = source,
                                           .options = ceiling->options[1],
                                           .item_columns = GPU_VECTOR,
                                           .variants = ceiling->variants};

    session->columns = columns;
    session->rows = height;
    session->passes = ceiling->passes;
    session->buffers = ceiling->buffers;
}

void bench_ceiling_input(const struct bench_ceiling *ceiling, uint32_t height, float *data)
{
    const size_t count = height * ceiling->buffers[0].pitch_bytes / sizeof *data;
    for (size_t i = 0; i < count; i++)
        data[i] = (float)(i % 977) / 977.0f;
}
