/* FFmpeg's frames in a stream: AVFrame in, AVFrame out. A decoder can write to memory that every
 * device reads in place.
 *
 * The functions are compiled with the application, against its FFmpeg (5.1 or later). The library
 * itself knows nothing of FFmpeg, and coxswain.h does not include this header.
 *
 * All of the calls, around a loop of avcodec_receive_frame (examples/video.c):
 *   once        cox_av_map_open(&map, runtime, NULL, NULL), cox_av_map_attach(&map, decoder) before
 *               avcodec_open2
 *   each frame  cox_av_send_frame(&map, decoded), then cox_av_receive_frame(&map, mapped) until
 *               AVERROR(EAGAIN)
 *   at the end  cox_av_send_frame(&map, NULL), cox_av_receive_frame until AVERROR_EOF; free the
 *               decoder, then the frames, then call cox_av_map_close(&map)
 *
 * Functions return 0 or an AVERROR. The library's own messages are in the runtime's log. If a lost
 * device may still write to a frame's memory, the frame gets other memory before it is received. So
 * read `data` from the frame each time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_LIBAV_H
#define COXSWAIN_LIBAV_H

#include <coxswain/stream.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
#include <libavcodec/avcodec.h>
#include <libavutil/frame.h>
#include <libavutil/mastering_display_metadata.h>
#include <libavutil/pixfmt.h>

/* --- Formats and colours ------------------------------------------------------------------------------------------ */

/* The samples of one of FFmpeg's formats, left-sited and, but for RGB and the old full-range ones, of limited range.
 * Errors: AVERROR(ENOSYS) (the library has none like it). */
static inline int cox_av_format(int from, struct cox_video_format *to)
{
    enum {
        PLANAR = COX_VIDEO_PLANAR,
        SEMI = COX_VIDEO_SEMI_PLANAR,
        RGBA = COX_VIDEO_RGBA,
        BGRA = COX_VIDEO_BGRA,
        GBR = COX_VIDEO_GBR
    };
    static const struct {
        enum AVPixelFormat av;
        int layout, depth, msb_aligned, chroma_x_log2, chroma_y_log2, full;
    } known[] = {
        {AV_PIX_FMT_YUV420P, PLANAR, 8, 0, 1, 1, 0},
        {AV_PIX_FMT_YUV422P, PLANAR, 8, 0, 1, 0, 0},
        {AV_PIX_FMT_YUV444P, PLANAR, 8, 0, 0, 0, 0},
        {AV_PIX_FMT_YUVJ420P, PLANAR, 8, 0, 1, 1, 1},
        {AV_PIX_FMT_YUVJ422P, PLANAR, 8, 0, 1, 0, 1},
        {AV_PIX_FMT_YUVJ444P, PLANAR, 8, 0, 0, 0, 1},
        {AV_PIX_FMT_YUV420P10LE, PLANAR, 10, 0, 1, 1, 0},
        {AV_PIX_FMT_YUV422P10LE, PLANAR, 10, 0, 1, 0, 0},
        {AV_PIX_FMT_YUV444P10LE, PLANAR, 10, 0, 0, 0, 0},
        {AV_PIX_FMT_YUV420P12LE, PLANAR, 12, 0, 1, 1, 0},
        {AV_PIX_FMT_YUV422P12LE, PLANAR, 12, 0, 1, 0, 0},
        {AV_PIX_FMT_YUV444P12LE, PLANAR, 12, 0, 0, 0, 0},
        {AV_PIX_FMT_YUV420P16LE, PLANAR, 16, 0, 1, 1, 0},
        {AV_PIX_FMT_YUV422P16LE, PLANAR, 16, 0, 1, 0, 0},
        {AV_PIX_FMT_YUV444P16LE, PLANAR, 16, 0, 0, 0, 0},
        {AV_PIX_FMT_NV12, SEMI, 8, 0, 1, 1, 0},
        {AV_PIX_FMT_NV16, SEMI, 8, 0, 1, 0, 0},
        {AV_PIX_FMT_P010LE, SEMI, 10, 1, 1, 1, 0},
        {AV_PIX_FMT_P016LE, SEMI, 16, 0, 1, 1, 0},
        {AV_PIX_FMT_P210LE, SEMI, 10, 1, 1, 0, 0},
        {AV_PIX_FMT_P216LE, SEMI, 16, 0, 1, 0, 0},
        {AV_PIX_FMT_GBRP, GBR, 8, 0, 0, 0, 1},
        {AV_PIX_FMT_GBRP10LE, GBR, 10, 0, 0, 0, 1},
        {AV_PIX_FMT_GBRP12LE, GBR, 12, 0, 0, 0, 1},
        {AV_PIX_FMT_GBRP14LE, GBR, 14, 0, 0, 0, 1},
        {AV_PIX_FMT_GBRP16LE, GBR, 16, 0, 0, 0, 1},
        {AV_PIX_FMT_RGBA, RGBA, 8, 0, 0, 0, 1},
        {AV_PIX_FMT_RGBA64LE, RGBA, 16, 0, 0, 0, 1},
        {AV_PIX_FMT_BGRA, BGRA, 8, 0, 0, 0, 1},
        {AV_PIX_FMT_BGRA64LE, BGRA, 16, 0, 0, 0, 1},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].av != from)
            continue;
        memset(to, 0, sizeof *to);
        to->layout = (enum cox_video_layout)known[i].layout;
        to->depth = (uint32_t)known[i].depth;
        to->msb_aligned = known[i].msb_aligned != 0;
        to->chroma_x_log2 = (uint32_t)known[i].chroma_x_log2;
        to->chroma_y_log2 = (uint32_t)known[i].chroma_y_log2;
        to->range = known[i].full ? COX_RANGE_FULL : COX_RANGE_LIMITED;
        return 0;
    }
    return AVERROR(ENOSYS);
}

/* Whether the frame says that it is HDR of a kind that a stream maps: PQ or HLG. */
static inline bool cox_av_is_hdr(const AVFrame *frame)
{
    return frame->color_trc == AVCOL_TRC_SMPTE2084 || frame->color_trc == AVCOL_TRC_ARIB_STD_B67;
}

/* Whether the frame says nothing of its colours that a stream would map otherwise than said: transfer PQ or HLG;
 * primaries of BT.2020 or BT.709, and the matrix that goes with them. What it leaves out is no obstacle. To map one
 * that says otherwise, set its color_trc, color_primaries and colorspace first. */
static inline bool cox_av_colours_are_known(const AVFrame *frame)
{
    const bool rgb = frame->colorspace == AVCOL_SPC_RGB ||
                     frame->colorspace == AVCOL_SPC_UNSPECIFIED;
    const bool wide = rgb || frame->colorspace == AVCOL_SPC_BT2020_NCL;
    const bool narrow = rgb || frame->colorspace == AVCOL_SPC_BT709;
    return (cox_av_is_hdr(frame) || frame->color_trc == AVCOL_TRC_UNSPECIFIED) &&
           ((frame->color_primaries == AVCOL_PRI_UNSPECIFIED && (wide || narrow)) ||
            (frame->color_primaries == AVCOL_PRI_BT2020 && wide) ||
            (frame->color_primaries == AVCOL_PRI_BT709 && narrow));
}

/* Where chroma lies across the luma, as a cox_chroma_location: top and bottom are taken for the centre, bottom left and
 * what is not known for left. */
static inline enum cox_chroma_location cox_av_site(enum AVChromaLocation location)
{
    switch (location) {
    case AVCHROMA_LOC_CENTER:
    case AVCHROMA_LOC_TOP:
    case AVCHROMA_LOC_BOTTOM:
        return COX_CHROMA_CENTER;
    case AVCHROMA_LOC_TOPLEFT:
        return COX_CHROMA_TOP_LEFT;
    default:
        return COX_CHROMA_LEFT;
    }
}

/* The light that a frame's metadata says is its brightest: that of the mastering display, else the film's brightest
 * pixel; 0 = neither. */
static inline float cox_av_peak_nits(const AVFrame *frame)
{
    const AVFrameSideData *display =
        av_frame_get_side_data(frame, AV_FRAME_DATA_MASTERING_DISPLAY_METADATA);
    const AVFrameSideData *content = av_frame_get_side_data(frame,
                                                            AV_FRAME_DATA_CONTENT_LIGHT_LEVEL);
    if (display && display->size >= sizeof(AVMasteringDisplayMetadata)) {
        const AVMasteringDisplayMetadata *about =
            (const AVMasteringDisplayMetadata *)(const void *)display->data;
        if (about->has_luminance && about->max_luminance.den && av_q2d(about->max_luminance) > 0)
            return (float)av_q2d(about->max_luminance);
    }
    if (content && content->size >= sizeof(AVContentLightMetadata))
        return (float)((const AVContentLightMetadata *)(const void *)content->data)->MaxCLL;
    return 0;
}

/* Describe a frame, to be mapped or to be written to: its planes, cropped as it says, and its colours. What it does not
 * say is taken for what most HDR video is, PQ with BT.2020's primaries, and so is a transfer that is not HLG's, and
 * primaries that are not BT.709's (see cox_av_colours_are_known). `memory` is left NULL (see cox_av_pool_find).
 * Errors: AVERROR(ENOSYS) (a format, or a matrix, that the library has not; a frame in a device's own memory),
 * AVERROR(ERANGE) (it has no size, or is cropped to nothing). */
static inline int cox_av_image(const AVFrame *frame, struct cox_video_image *image)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    memset(image, 0, sizeof *image);
    const int code = cox_av_format(frame->format, &image->format);
    if (code < 0)
        return code;
    const bool packed = image->format.layout == COX_VIDEO_RGBA ||
                        image->format.layout == COX_VIDEO_BGRA;
    const bool rgb = packed || image->format.layout == COX_VIDEO_GBR;
    if (frame->colorspace != AVCOL_SPC_UNSPECIFIED && frame->colorspace != AVCOL_SPC_BT2020_NCL &&
        frame->colorspace != AVCOL_SPC_BT709 && !(rgb && frame->colorspace == AVCOL_SPC_RGB))
        return AVERROR(ENOSYS);
    if (frame->width <= 0 || frame->height <= 0 || frame->crop_left >= (size_t)frame->width ||
        frame->crop_right >= (size_t)frame->width - frame->crop_left ||
        frame->crop_top >= (size_t)frame->height ||
        frame->crop_bottom >= (size_t)frame->height - frame->crop_top)
        return AVERROR(ERANGE);
    const uint32_t left = (uint32_t)frame->crop_left, top = (uint32_t)frame->crop_top;
    image->width = (uint32_t)frame->width - left - (uint32_t)frame->crop_right;
    image->height = (uint32_t)frame->height - top - (uint32_t)frame->crop_bottom;
    image->format.chroma_location = cox_av_site(frame->chroma_location);
    if (!packed && frame->color_range != AVCOL_RANGE_UNSPECIFIED)
        image->format.range = frame->color_range == AVCOL_RANGE_JPEG ? COX_RANGE_FULL
                                                                     : COX_RANGE_LIMITED;
    image->transfer = frame->color_trc == AVCOL_TRC_ARIB_STD_B67 ? COX_TRANSFER_HLG
                                                                 : COX_TRANSFER_PQ;
    const bool narrow = frame->color_primaries == AVCOL_PRI_BT709 ||
                        (frame->color_primaries == AVCOL_PRI_UNSPECIFIED &&
                         frame->colorspace == AVCOL_SPC_BT709);
    image->primaries = narrow ? COX_PRIMARIES_BT709 : COX_PRIMARIES_BT2020;
    image->peak_nits = cox_av_peak_nits(frame);
    const uint32_t count = cox_video_planes(&image->format, image->width, image->height, planes);
    for (uint32_t p = 0; p < count; p++) {
        const uint32_t samples = packed ? 4 : p == 1 && count == 2 ? 2 : 1;
        const uint32_t across = p ? left >> image->format.chroma_x_log2 : left;
        const uint32_t down = p ? top >> image->format.chroma_y_log2 : top;
        image->pitch_bytes[p] = frame->linesize[p];
        image->data[p] = frame->data[p] + (ptrdiff_t)down * frame->linesize[p] +
                         (ptrdiff_t)across * (ptrdiff_t)(samples * planes[p].sample_bytes);
    }
    return 0;
}

/* What a mapped frame says of itself: all that the other one does, but for its light and colours; that nothing of it is
 * cropped, as what was of the other is not in it; and pixels of another shape where it was scaled unevenly. */
static inline int cox_av_copy_props(AVFrame *mapped, const AVFrame *from)
{
    static const enum AVFrameSideDataType hdr[] = {AV_FRAME_DATA_MASTERING_DISPLAY_METADATA,
                                                   AV_FRAME_DATA_CONTENT_LIGHT_LEVEL,
                                                   AV_FRAME_DATA_DYNAMIC_HDR_PLUS,
                                                   AV_FRAME_DATA_DOVI_RPU_BUFFER,
                                                   AV_FRAME_DATA_DOVI_METADATA,
                                                   AV_FRAME_DATA_DYNAMIC_HDR_VIVID,
                                                   AV_FRAME_DATA_ICC_PROFILE};
    struct cox_video_format format;
    const int known = cox_av_format(mapped->format, &format);
    const int code = known < 0 ? known : av_frame_copy_props(mapped, from);
    if (code < 0)
        return code;
    for (size_t i = 0; i < sizeof hdr / sizeof hdr[0]; i++)
        av_frame_remove_side_data(mapped, hdr[i]);
    const bool rgb = format.layout == COX_VIDEO_RGBA || format.layout == COX_VIDEO_BGRA ||
                     format.layout == COX_VIDEO_GBR;
    mapped->color_primaries = AVCOL_PRI_BT709;
    mapped->color_trc = AVCOL_TRC_BT709;
    mapped->colorspace = rgb ? AVCOL_SPC_RGB : AVCOL_SPC_BT709;
    mapped->color_range = format.range == COX_RANGE_FULL ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
    switch (cox_av_site(from->chroma_location)) {
    case COX_CHROMA_CENTER:
        mapped->chroma_location = AVCHROMA_LOC_CENTER;
        break;
    case COX_CHROMA_TOP_LEFT:
        mapped->chroma_location = AVCHROMA_LOC_TOPLEFT;
        break;
    default:
        mapped->chroma_location = AVCHROMA_LOC_LEFT;
    }
    const int width = from->width - (int)(from->crop_left + from->crop_right);
    const int height = from->height - (int)(from->crop_top + from->crop_bottom);
    const AVRational stretch = av_mul_q(av_make_q(width, mapped->width),
                                        av_make_q(mapped->height, height));
    const AVRational one = {1, 1};
    if (stretch.num != stretch.den)
        mapped->sample_aspect_ratio =
            av_mul_q(stretch, from->sample_aspect_ratio.num > 0 ? from->sample_aspect_ratio : one);
    mapped->crop_left = mapped->crop_right = mapped->crop_top = mapped->crop_bottom = 0;
    return 0;
}

/* --- Memory for frames -------------------------------------------------------------------------------------------- */

/* Decoders write whole vectors, and read some bytes past the last row. */
enum { COX_AV_ALIGN_BYTES = 64, COX_AV_BEHIND_BYTES = 128 };

/* One frame's, in use or idle; for the pool alone. */
struct cox_av_memory {
    struct cox_av_memory *next;
    struct cox_av_pool *pool;
    unsigned used; /* planes that AVFrames have */
    unsigned count;
    size_t bytes[COX_VIDEO_PLANES_MAX];
    cox_buffer *planes[COX_VIDEO_PLANES_MAX];
};

/* Memory of a runtime's for frames, which goes round as they are given up. As many are made as decoder, devices and
 * application hold at once. It lives until its owner and all frames in it have given it up, which is to be before
 * cox_runtime_destroy.
 * Thread-safety: all functions from any thread. */
struct cox_av_pool {
    cox_runtime *runtime;
    pthread_mutex_t lock;
    unsigned references;       /* of its owner, and one for each memory in use */
    struct cox_av_memory *all; /* in use or not */

    /* Bytes from row to row of each plane, where that is given: a decoder that already has frames wants the next ones
     * like them. 0 = as suits the devices. Set before the first frame. */
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX];
};

/* NULL: out of memory. */
static inline struct cox_av_pool *cox_av_pool_create(cox_runtime *runtime)
{
    struct cox_av_pool *pool = (struct cox_av_pool *)calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->runtime = runtime;
    pool->references = 1;
    pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

static inline void cox_av_memory_free_(struct cox_av_memory *memory)
{
    for (unsigned p = 0; p < memory->count; p++)
        cox_buffer_destroy(&memory->planes[p]);
    free(memory);
}

/* One reference less. The lock is held, and given up. */
static inline void cox_av_pool_unlock_unref_(struct cox_av_pool *pool)
{
    const bool over = --pool->references == 0;
    pthread_mutex_unlock(&pool->lock);
    if (!over)
        return;
    while (pool->all) {
        struct cox_av_memory *memory = pool->all;
        pool->all = memory->next;
        cox_av_memory_free_(memory);
    }
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* The owner gives it up; sets it to NULL. NULL is accepted. */
static inline void cox_av_pool_unref(struct cox_av_pool **pool)
{
    struct cox_av_pool *own = *pool;
    *pool = NULL;
    if (!own)
        return;
    pthread_mutex_lock(&own->lock);
    cox_av_pool_unlock_unref_(own);
}

/* The free function of a plane's AVBufferRef. */
static inline void cox_av_plane_free_(void *opaque, uint8_t *data)
{
    struct cox_av_memory *memory = (struct cox_av_memory *)opaque;
    struct cox_av_pool *pool = memory->pool;
    (void)data;
    pthread_mutex_lock(&pool->lock);
    if (--memory->used)
        pthread_mutex_unlock(&pool->lock);
    else
        cox_av_pool_unlock_unref_(pool);
}

/* Memory of those planes, all of it in use; what is idle and of other sizes goes. NULL: out of memory. */
static inline struct cox_av_memory *cox_av_pool_take_(struct cox_av_pool *pool, unsigned count,
                                                      const size_t *bytes)
{
    struct cox_av_memory *found = NULL, *old = NULL;
    pthread_mutex_lock(&pool->lock);
    for (struct cox_av_memory **link = &pool->all; *link && !found;) {
        struct cox_av_memory *memory = *link;
        if (memory->used)
            link = &memory->next;
        else if (memory->count == count && !memcmp(memory->bytes, bytes, count * sizeof *bytes))
            found = memory;
        else {
            *link = memory->next;
            memory->next = old;
            old = memory;
        }
    }
    if (found) {
        found->used = count;
        pool->references++;
    }
    pthread_mutex_unlock(&pool->lock);
    while (old) {
        struct cox_av_memory *next = old->next;
        cox_av_memory_free_(old);
        old = next;
    }
    if (found)
        return found;
    found = (struct cox_av_memory *)calloc(1, sizeof *found);
    if (!found)
        return NULL;
    found->pool = pool;
    for (; found->count < count; found->count++) {
        found->bytes[found->count] = bytes[found->count];
        if (cox_buffer_create(pool->runtime, bytes[found->count], &found->planes[found->count]) !=
            COX_OK) {
            cox_av_memory_free_(found);
            return NULL;
        }
    }
    found->used = count;
    pthread_mutex_lock(&pool->lock);
    found->next = pool->all;
    pool->all = found;
    pool->references++;
    pthread_mutex_unlock(&pool->lock);
    return found;
}

/* Put planes of the memory into `frame`, which has none. */
static inline int cox_av_fill_(struct cox_av_memory *memory, const size_t *pitch_bytes,
                               AVFrame *frame)
{
    unsigned made = 0;
    for (; made < memory->count; made++) {
        uint8_t *data = (uint8_t *)cox_buffer_data(memory->planes[made]);
        frame->buf[made] = av_buffer_create(data, memory->bytes[made], cox_av_plane_free_, memory,
                                            0);
        if (!frame->buf[made])
            break;
        frame->data[made] = data;
        frame->linesize[made] = (int)pitch_bytes[made];
    }
    frame->extended_data = frame->data;
    if (made == memory->count)
        return 0;
    const unsigned missing = memory->count - made;
    for (unsigned p = 0; p < missing; p++) /* those that no AVBufferRef gives back */
        cox_av_plane_free_(memory, NULL);
    for (unsigned p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        av_buffer_unref(&frame->buf[p]);
        frame->data[p] = NULL;
        frame->linesize[p] = 0;
    }
    return AVERROR(ENOMEM);
}

/* Memory for a frame whose format, width and height are set, of at least `width` x `height` pixels.
 * Errors: AVERROR(ENOSYS) (a format that the library has not; rows wider than the pool's pitches), AVERROR(ENOMEM). */
static inline int cox_av_pool_get(struct cox_av_pool *pool, AVFrame *frame, int width, int height)
{
    struct cox_video_format format;
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX] = {0}, bytes[COX_VIDEO_PLANES_MAX] = {0};
    const int code = cox_av_format(frame->format, &format);
    const uint32_t count = code < 0 || width <= 0 || height <= 0
                               ? 0
                               : cox_video_planes(&format, (uint32_t)width, (uint32_t)height,
                                                  planes);
    for (uint32_t p = 0; p < count; p++) {
        const size_t row_bytes = (planes[p].row_bytes + COX_AV_ALIGN_BYTES - 1) /
                                 COX_AV_ALIGN_BYTES * COX_AV_ALIGN_BYTES;
        size_t pitch = pool->pitch_bytes[p];
        if (!pitch)
            pitch = cox_runtime_pitch_bytes(pool->runtime, row_bytes);
        if (pitch < planes[p].row_bytes || pitch % COX_AV_ALIGN_BYTES)
            return AVERROR(ENOSYS);
        pitch_bytes[p] = pitch;
        bytes[p] = pitch * planes[p].rows + COX_AV_BEHIND_BYTES;
    }
    if (!count)
        return AVERROR(ENOSYS);
    struct cox_av_memory *memory = cox_av_pool_take_(pool, count, bytes);
    return memory ? cox_av_fill_(memory, pitch_bytes, frame) : AVERROR(ENOMEM);
}

/* The work of an AVCodecContext.get_buffer2: memory of the pool where the decoder and the format allow it, else of
 * FFmpeg's own. */
static inline int cox_av_pool_get_buffer2(struct cox_av_pool *pool, AVCodecContext *decoder,
                                          AVFrame *frame, int flags)
{
    int width = frame->width, height = frame->height, align[AV_NUM_DATA_POINTERS];
    avcodec_align_dimensions2(decoder, &width, &height, align);
    if (decoder->codec->capabilities & AV_CODEC_CAP_DR1 &&
        cox_av_pool_get(pool, frame, width, height) >= 0)
        return 0;
    return avcodec_default_get_buffer2(decoder, frame, flags);
}

/* The one of a memory's buffers that `data` is in; NULL: none. */
static inline cox_buffer *cox_av_plane_of_(const struct cox_av_memory *memory, const uint8_t *data)
{
    for (unsigned p = 0; p < memory->count; p++) {
        const uint8_t *first = (const uint8_t *)cox_buffer_data(memory->planes[p]);
        if (data >= first && data < first + memory->bytes[p])
            return memory->planes[p];
    }
    return NULL;
}

/* Find the buffers that a frame's planes are in, for cox_video_image.memory. A window of a pool's
 * frame, a field, and planes in another order are found too. Returns false and sets nothing if the
 * frame is not of the pool. */
static inline bool cox_av_pool_find(struct cox_av_pool *pool, const AVFrame *frame,
                                    cox_buffer **planes)
{
    cox_buffer *in[COX_VIDEO_PLANES_MAX] = {NULL};
    bool found = false;
    pthread_mutex_lock(&pool->lock);
    for (struct cox_av_memory *memory = pool->all; memory && !found; memory = memory->next) {
        found = memory->used != 0;
        for (unsigned p = 0; p < memory->count && found; p++) {
            in[p] = frame->buf[p] &&
                            frame->buf[p]->data == (uint8_t *)cox_buffer_data(memory->planes[p])
                        ? cox_av_plane_of_(memory, frame->data[p])
                        : NULL;
            found = in[p] != NULL;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    for (unsigned p = 0; p < COX_VIDEO_PLANES_MAX && found && in[p]; p++)
        planes[p] = in[p];
    return found;
}

/* --- Mapping ------------------------------------------------------------------------------------------------------ */

/* A stream of AVFrames. What the application may set stands first.
 * Thread-safety: one thread at a time; cox_video_stream_set and _info on `stream` from any. */
struct cox_av_map {
    enum AVPixelFormat format; /* of mapped frames; AV_PIX_FMT_NONE = yuv420p */
    int width, height;         /* of mapped frames; 0 = as they come */
    /* the next frame does not follow the one before, after a seek; becomes false again */
    bool restart;

    cox_video_stream *stream;
    struct cox_av_pool *pool;
    unsigned pending; /* sent and not received */
    bool ended;
};

/* What a frame has on its way. */
struct cox_av_sent_ {
    AVFrame *in;
    AVFrame *out;
};

/* The AVERROR that stands for a status; 0 for COX_OK. */
static inline int cox_av_error(cox_status status)
{
    return status == COX_OK              ? 0
           : status == COX_E_NOMEM       ? AVERROR(ENOMEM)
           : status == COX_E_INVALID     ? AVERROR(EINVAL)
           : status == COX_E_UNSUPPORTED ? AVERROR(ENOSYS)
           : status == COX_E_CANCELLED   ? AVERROR_EXIT
                                         : AVERROR_EXTERNAL;
}

/* `session` and `look` are cox_video_stream_create's; NULL = all defaults. */
static inline int cox_av_map_open(struct cox_av_map *map, cox_runtime *runtime,
                                  const struct cox_session_params *session,
                                  const struct cox_tonemap_options *look)
{
    memset(map, 0, sizeof *map);
    map->format = AV_PIX_FMT_NONE;
    map->pool = cox_av_pool_create(runtime);
    if (!map->pool)
        return AVERROR(ENOMEM);
    const cox_status status = cox_video_stream_create(runtime, session, look, &map->stream);
    if (status != COX_OK)
        cox_av_pool_unref(&map->pool);
    return cox_av_error(status);
}

static inline int cox_av_map_get_buffer2_(AVCodecContext *decoder, AVFrame *frame, int flags)
{
    return cox_av_pool_get_buffer2(((struct cox_av_map *)decoder->opaque)->pool, decoder, frame,
                                   flags);
}

/* Have a decoder write to memory of the pool: takes its `opaque` and `get_buffer2`. Before avcodec_open2. */
static inline void cox_av_map_attach(struct cox_av_map *map, AVCodecContext *decoder)
{
    decoder->opaque = map;
    decoder->get_buffer2 = cox_av_map_get_buffer2_;
#if LIBAVCODEC_VERSION_MAJOR < 60 /* later versions take it for granted */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    decoder->thread_safe_callbacks = 1;
#pragma GCC diagnostic pop
#endif
}

static inline void cox_av_sent_free_(struct cox_av_sent_ *sent)
{
    if (!sent)
        return;
    av_frame_free(&sent->in);
    av_frame_free(&sent->out);
    free(sent);
}

/* A reference to the frame, of which so much is to be seen, and one to be mapped to. */
static inline int cox_av_sent_make_(struct cox_av_map *map, const AVFrame *frame, uint32_t width,
                                    uint32_t height, struct cox_av_sent_ **out)
{
    struct cox_av_sent_ *sent = (struct cox_av_sent_ *)calloc(1, sizeof *sent);
    *out = sent;
    if (!sent)
        return AVERROR(ENOMEM);
    sent->in = av_frame_clone(frame);
    sent->out = av_frame_alloc();
    if (!sent->in || !sent->out)
        return AVERROR(ENOMEM);
    sent->out->format = map->format == AV_PIX_FMT_NONE ? AV_PIX_FMT_YUV420P : map->format;
    sent->out->width = map->width ? map->width : (int)width;
    sent->out->height = map->height ? map->height : (int)height;
    const int code = cox_av_pool_get(map->pool, sent->out, sent->out->width, sent->out->height);
    return code < 0 ? code : cox_av_copy_props(sent->out, frame);
}

/* Send a frame, of which a reference is kept until it has been mapped; NULL = there are no more. Blocks as
 * cox_video_stream_send does.
 * Errors: AVERROR(EAGAIN) (receive first: many were sent and not received), AVERROR_EOF (NULL was sent, and no
 * cox_av_map_flush came after it), AVERROR(ENOSYS) and AVERROR(ERANGE) (cox_av_image, cox_av_colours_are_known),
 * AVERROR(EINVAL) (a frame that cannot be mapped to what is wanted), AVERROR(ENOMEM), AVERROR_EXIT (cancelled),
 * AVERROR_EXTERNAL. */
static inline int cox_av_send_frame(struct cox_av_map *map, const AVFrame *frame)
{
    struct cox_video_image in, out;
    struct cox_video_frame sending;
    struct cox_av_sent_ *sent = NULL;
    if (!frame) {
        map->ended = true;
        return 0;
    }
    if (map->ended)
        return AVERROR_EOF;
    if (map->pending > COX_IN_FLIGHT_MAX)
        return AVERROR(EAGAIN);
    int code = cox_av_colours_are_known(frame) ? cox_av_image(frame, &in) : AVERROR(ENOSYS);
    if (code >= 0)
        code = cox_av_sent_make_(map, frame, in.width, in.height, &sent);
    if (code >= 0)
        code = cox_av_image(sent->in, &in); /* of a frame without buffers a copy was made */
    if (code >= 0)
        code = cox_av_image(sent->out, &out);
    if (code >= 0) {
        cox_av_pool_find(map->pool, sent->in, in.memory);
        cox_av_pool_find(map->pool, sent->out, out.memory);
        memset(&sending, 0, sizeof sending);
        sending.in = &in;
        sending.out = &out;
        sending.user = sent;
        sending.restart = map->restart;
        code = cox_av_error(cox_video_stream_send(map->stream, &sending));
    }
    if (code < 0) {
        cox_av_sent_free_(sent);
        return code;
    }
    map->restart = false;
    map->pending++;
    return 0;
}

/* Receive a mapped frame, which the caller gives back with av_frame_unref: with the properties that cox_av_copy_props
 * says. What was in `frame` before is given back first. Blocks after cox_av_send_frame(map, NULL) only;
 * cox_video_stream_descriptor tells when a frame is ready.
 * Errors: AVERROR(EAGAIN) (none is ready), AVERROR_EOF (all are out), and what a frame ended with. */
static inline int cox_av_receive_frame(struct cox_av_map *map, AVFrame *frame)
{
    struct cox_video_result result;
    av_frame_unref(frame);
    const cox_status status = cox_video_stream_receive(map->stream, map->ended, &result);
    if (status == COX_E_NOT_FOUND)
        return map->ended ? AVERROR_EOF : AVERROR(EAGAIN);
    if (status != COX_OK)
        return status == COX_E_BUSY ? AVERROR(EAGAIN) : cox_av_error(status);
    struct cox_av_sent_ *sent = (struct cox_av_sent_ *)result.user;
    map->pending--;
    for (int p = 0; p < COX_VIDEO_PLANES_MAX && result.out_data[p]; p++) /* it may have moved */
        sent->out->data[p] = sent->out->buf[p]->data = (uint8_t *)result.out_data[p];
    if (result.status == COX_OK)
        av_frame_move_ref(frame, sent->out);
    cox_av_sent_free_(sent);
    return cox_av_error(result.status);
}

/* Frames that are under way are cancelled, as before a seek; those that were sent are received no more. */
static inline void cox_av_map_flush(struct cox_av_map *map)
{
    struct cox_video_result result;
    cox_video_stream_cancel(map->stream);
    while (cox_video_stream_receive(map->stream, true, &result) == COX_OK)
        cox_av_sent_free_((struct cox_av_sent_ *)result.user);
    map->pending = 0;
    map->ended = false;
    map->restart = true;
}

/* Frames of the decoder's and mapped ones may live on; all have to be gone before cox_runtime_destroy. A map that was
 * not opened, all zeros, is accepted. */
static inline void cox_av_map_close(struct cox_av_map *map)
{
    if (map->stream)
        cox_av_map_flush(map);
    cox_video_stream_destroy(&map->stream);
    cox_av_pool_unref(&map->pool);
}

#ifdef __cplusplus
}
#endif
#endif
