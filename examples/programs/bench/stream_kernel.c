/* SPDX-License-Identifier: Apache-2.0 */
#include "stream_kernel.h"

/* A round is a multiply-add, as in the project's kernels: every device gives the same bits. Its
 * results come near 1. */
#define COMMON                                                      \
    "#pragma OPENCL FP_CONTRACT OFF\n"                              \
    "#define LOW 0.0009765625f\n"                                   \
    "#define HIGH 0.9990234375f\n"                                  \
    "#ifdef COX_FMA\n"                                              \
    "#define MULTIPLY_ADD(a, b, c) fma(a, b, c)\n"                  \
    "#else\n"                                                       \
    "#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))\n"             \
    "#endif\n"                                                      \
    "float4 map(float4 v)\n"                                        \
    "{\n"                                                           \
    "    for (int i = 0; i < 24; i++)\n"                            \
    "        v = MULTIPLY_ADD(v, (float4)(HIGH), (float4)(LOW));\n" \
    "    return v;\n"                                               \
    "}\n"

static const char picture_source[] = COMMON
    "kernel void picture(global const half *in, global uchar4 *out, int in_pitch, int out_pitch,\n"
    "                    int columns, int rows, int first_row, int frame_rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x >= columns || y >= rows)\n"
    "        return;\n"
    "    float4 v = map(vload_half4(x, in + (size_t)y * in_pitch));\n"
    "    out[(size_t)y * out_pitch + x] = convert_uchar4_sat(v * 8.0f);\n"
    "}\n";

/* A work-item maps four pixels of four luma samples and a chroma sample. Chroma lies half-way
 * between two rows. */
static const char video_source[] = COMMON
    "kernel void video(global const ushort *luma, global const ushort *cb,\n"
    "                  global const ushort *cr, global uchar *out_luma, global uchar *out_cb,\n"
    "                  global uchar *out_cr, int luma_pitch, int cb_pitch, int cr_pitch,\n"
    "                  int out_luma_pitch, int out_cb_pitch, int out_cr_pitch, int columns,\n"
    "                  int rows, int first_row, int frame_rows, int cb_first_row,\n"
    "                  int cr_first_row)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (2 * x >= columns || 2 * y >= rows)\n"
    "        return;\n"
    "    int near = first_row / 2 + y, last = (frame_rows + 1) / 2 - 1;\n"
    "    float4 mean = (float4)(0.0f);\n"
    "    for (int down = 0; down < 2; down++) {\n"
    "        int far = clamp(near + 2 * down - 1, 0, last), row = min(2 * y + down, rows - 1);\n"
    "        float u = 3 * cb[(near - cb_first_row) * cb_pitch + x] +\n"
    "                  cb[(far - cb_first_row) * cb_pitch + x] - 2048;\n"
    "        float v = 3 * cr[(near - cr_first_row) * cr_pitch + x] +\n"
    "                  cr[(far - cr_first_row) * cr_pitch + x] - 2048;\n"
    "        float4 colour = (float4)(v * 0.375f, u * -0.0625f - v * 0.125f, u * 0.5f, 0.0f);\n"
    "        for (int across = 0; across < 2; across++) {\n"
    "            int column = min(2 * x + across, columns - 1);\n"
    "            float light = luma[row * luma_pitch + column];\n"
    "            float4 rgb = map((colour + light) * LOW);\n"
    "            float grey = rgb.x * 0.25f + rgb.y * 0.625f + rgb.z * 0.125f;\n"
    "            uchar code = convert_uchar_sat(grey * 219.0f + 16.0f);\n"
    "            out_luma[row * out_luma_pitch + column] = code;\n"
    "            mean += rgb - grey;\n"
    "        }\n"
    "    }\n"
    "    out_cb[y * out_cb_pitch + x] = convert_uchar_sat(mean.z * 28.0f + 128.0f);\n"
    "    out_cr[y * out_cr_pitch + x] = convert_uchar_sat(mean.x * 28.0f + 128.0f);\n"
    "}\n";

static const struct cox_argument picture_arguments[] = {{.name = "out", .writes_all = true}, {0}};

static const struct cox_argument video_arguments[] = {
    {.name = "cb", .halo_rows = 1},           {.name = "cr", .halo_rows = 1},
    {.name = "out_luma", .writes_all = true}, {.name = "out_cb", .writes_all = true},
    {.name = "out_cr", .writes_all = true},   {0}};

void stream_kernel_make(struct stream_kernel *kernel, const struct stream_frames *frames)
{
    static const char *const names[2][STREAM_BUFFERS_MAX] = {
        {"luma", "cb", "cr", "out_luma", "out_cb", "out_cr"}, {"in", "out"}};
    static const uint32_t element_bytes[2][STREAM_BUFFERS_MAX] = {{2, 2, 2, 1, 1, 1}, {2, 4}};

    *kernel = (struct stream_kernel){
        .passes = {{.source = picture_source, .arguments = picture_arguments}}};
    if (!frames->pictures)
        kernel->passes[0] = (struct cox_pass){.source = video_source,
                                              .item_columns = 2,
                                              .item_rows = 2,
                                              .arguments = video_arguments};

    for (uint32_t b = 0; b < frames->plane_count; b++) {
        const struct stream_plane *plane = &frames->planes[b];
        kernel->buffers[b] = (struct cox_buffer_layout){.name = names[frames->pictures][b],
                                                        .pitch_bytes = plane->pitch_bytes,
                                                        .row_divisor = plane->row_divisor};
        kernel->element_bytes[b] = element_bytes[frames->pictures][b];
    }

    kernel->session = (struct cox_session_params){.columns = frames->width,
                                                  .rows = frames->height,
                                                  .passes = kernel->passes,
                                                  .buffers = kernel->buffers};
}
