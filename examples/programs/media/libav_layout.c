/* The samples of frames that a device decoded, and of those that software decodes after it.
 *
 * Devices give semi-planar frames (NV12, P010 and others), and samples of 12 bits in the upper bits
 * of 16. A film's frames all have the layout of the first one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_input.h"

#include <string.h>

int libav_samples_of(const struct libav *libav, const AVFrame *frame,
                     struct cox_video_format *pixel)
{
    const int code = cox_av_format(frame->format, pixel);
    if (code >= 0 && libav->hardware_bits > 8 && libav->hardware_bits < 16 && pixel->depth == 16) {
        pixel->depth = libav->hardware_bits;
        pixel->msb_aligned = true;
    }
    return code;
}

static void shift_row(uint16_t *to, const uint16_t *from, int count, int step, int shift)
{
    for (int i = 0; i < count; i++)
        to[i * step] = (uint16_t)(from[i] << shift);
}

static void spread_row(uint8_t *to, const uint8_t *from, int count, int step)
{
    for (int i = 0; i < count; i++)
        to[i * step] = from[i];
}

/* Copy planes of Y', Cb and Cr to the planes of another layout with as many samples. */
static void copy_samples(AVFrame *to, const AVFrame *from, const AVPixFmtDescriptor *layout,
                         const AVPixFmtDescriptor *samples)
{
    for (int c = 0; c < 3; c++) {
        const AVComponentDescriptor *place = &layout->comp[c];
        const int bytes = samples->comp[c].depth > 8 ? 2 : 1;
        const int x = c ? layout->log2_chroma_w : 0, y = c ? layout->log2_chroma_h : 0;
        const int width = -(-from->width >> x), height = -(-from->height >> y);

        /* Whatever the bits of a sample, wide samples begin at the uppermost one. */
        const int shift = place->depth > 8 ? 16 - samples->comp[c].depth : 0;

        for (int row = 0; row < height; row++) {
            uint8_t *line = to->data[place->plane] + (ptrdiff_t)row * to->linesize[place->plane] +
                            place->offset;
            const uint8_t *source = from->data[c] + (ptrdiff_t)row * from->linesize[c];

            if (bytes == 2)
                shift_row((void *)line, (const void *)source, width, place->step / 2, shift);
            else
                spread_row(line, source, width, place->step);
        }
    }
}

/* Memory for a frame in the layout of the film's first one. */
static int make_like_first(struct libav *libav, AVFrame *to, const AVFrame *from)
{
    struct cox_av_pool *pool = atomic_load(&libav->pool);
    to->format = libav->samples;
    to->width = from->width;
    to->height = from->height;
    if (pool)
        return cox_av_pool_get(pool, to, to->width, to->height);
    return lib.av_frame_get_buffer(to, 0);
}

int libav_lay_out(struct libav *libav, AVFrame *frame)
{
    if (!libav->hardware_bits || libav->hardware || frame->format == (int)libav->samples)
        return 0;

    /* Frames of other subsamplings or depths are refused later, as any change is. */
    const AVPixFmtDescriptor *layout = lib.av_pix_fmt_desc_get(libav->samples);
    const AVPixFmtDescriptor *samples = lib.av_pix_fmt_desc_get(frame->format);
    if (samples->log2_chroma_w != layout->log2_chroma_w ||
        samples->log2_chroma_h != layout->log2_chroma_h || samples->nb_components != 3 ||
        samples->comp[0].depth != (int)libav->hardware_bits || samples->comp[1].step > 2 ||
        samples->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_BE | AV_PIX_FMT_FLAG_HWACCEL))
        return 0;

    AVFrame *to = lib.av_frame_alloc();
    if (!to)
        return AVERROR(ENOMEM);
    int code = make_like_first(libav, to, frame);
    if (code >= 0)
        code = lib.av_frame_copy_props(to, frame);
    if (code < 0) {
        lib.av_frame_free(&to);
        return code;
    }

    copy_samples(to, frame, layout, samples);
    lib.av_frame_unref(frame);
    lib.av_frame_move_ref(frame, to);
    lib.av_frame_free(&to);
    return 0;
}

#endif
