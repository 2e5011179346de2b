/* Raw P010 PQ frames on stdin, 8-bit 4:2:0 on stdout.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/stream.h>
#include <stdio.h>
enum { W = 3840, H = 2160, FRAMES = 4 };
static bool transfer(struct cox_video_image *image, bool read)
{
    bool ok = true;
    for (int p = 0; p < 3 && image->data[p]; p++) {
        int rows = p ? H / 2 : H;
        size_t bytes = read ? W * 2u : p ? W / 2 : W;
        for (int r = 0; ok && r < rows; r++) {
            char *row = (char *)image->data[p] + r * image->pitch_bytes[p];
            ok = (read ? fread(row, 1, bytes, stdin) : fwrite(row, 1, bytes, stdout)) == bytes;
        }
    }
    return ok;
}
int main(void)
{
    static struct cox_video_image in[FRAMES], out[FRAMES];
    const struct cox_video_format p010 = {.layout = COX_SEMI_PLANAR,
                                          .depth = 10,
                                          .msb_aligned = true,
                                          .chroma_x_log2 = 1,
                                          .chroma_y_log2 = 1};
    const struct cox_video_format yuv420p = {
        .layout = COX_PLANAR, .depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1};
    cox_runtime *runtime = NULL;
    cox_video_stream *stream = NULL;
    cox_status status = cox_runtime_create(NULL, &runtime);
    if (!status)
        status = cox_video_stream_create(runtime, NULL, NULL, &stream);
    for (int i = 0; !status && i < FRAMES; i++) {
        in[i] = (struct cox_video_image){.format = p010, .width = W, .height = H};
        out[i] = (struct cox_video_image){.format = yuv420p, .width = W, .height = H};
        status = cox_video_image_alloc(runtime, &in[i]);
        if (!status)
            status = cox_video_image_alloc(runtime, &out[i]);
    }
    bool more = true;
    for (int sent = 0, received = 0; !status && (more || received < sent);) {
        if (more && sent - received < FRAMES && (more = transfer(&in[sent % FRAMES], true))) {
            status = cox_video_stream_send(stream,
                                           &(struct cox_video_frame){.in = &in[sent % FRAMES],
                                                                     .out = &out[sent % FRAMES]});
            sent++;
            continue;
        }
        struct cox_video_result result;
        if (received == sent)
            break;
        status = cox_video_stream_receive(stream, true, &result);
        if (!status)
            status = result.status;
        for (int p = 0; p < 3; p++)
            out[received % FRAMES].data[p] = result.out_data[p];
        if (!status && !transfer(&out[received % FRAMES], false))
            break;
        received++;
    }
    cox_video_stream_destroy(&stream);
    for (int i = 0; i < FRAMES; i++) {
        cox_video_image_free(&in[i]);
        cox_video_image_free(&out[i]);
    }
    cox_runtime_destroy(&runtime);
    return status != COX_OK;
}
