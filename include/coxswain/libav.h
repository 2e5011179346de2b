/* FFmpeg's frames in a stream: AVFrame in, AVFrame out. A decoder can write to memory that every
 * device reads in place.
 *
 * The functions are compiled with the application, against its FFmpeg (5.1 or later). The library
 * does not depend on FFmpeg, and coxswain.h does not include this header.
 *
 * A complete program calls these functions around a loop of avcodec_receive_frame (see
 * examples/video.c):
 *   once        Call cox_av_map_open(&map, runtime, NULL, NULL). Then call cox_av_map_attach(&map,
 *               decoder), before avcodec_open2.
 *   each frame  Call cox_av_send_frame(&map, decoded). Then call cox_av_receive_frame(&map, mapped)
 *               until it returns AVERROR(EAGAIN).
 *   at the end  Call cox_av_send_frame(&map, NULL), then cox_av_receive_frame until it returns
 *               AVERROR_EOF. Free the decoder, then the frames, then call cox_av_map_close(&map).
 *
 * Functions that return an int return 0 or an AVERROR. The library writes its messages to the
 * runtime's log.
 *
 * Read `data` from a frame each time: its memory can change before it is received. This happens if
 * a lost device may still write to the old memory.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_LIBAV_H
#define COXSWAIN_LIBAV_H

#include <coxswain/dolby.h>
#include <coxswain/stream.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
#include <libavcodec/avcodec.h>
#include <libavutil/frame.h>
#include <libavutil/hdr_dynamic_metadata.h>
#include <libavutil/hwcontext.h>
#include <libavutil/mastering_display_metadata.h>
#include <libavutil/pixdesc.h>
#include <libavutil/pixfmt.h>

/* ---- Formats and colours ---- */

/* Describe the samples of a pixel format of FFmpeg (AVPixelFormat). The chroma location is left.
 * The range is limited, except for RGB and the old full-range formats (yuvj).
 *
 * Errors:
 *   AVERROR(ENOSYS)  the library has no such format */
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

/* Return true if the frame is marked as HDR that a stream can map: PQ or HLG. */
static inline bool cox_av_is_hdr(const AVFrame *frame)
{
    return frame->color_trc == AVCOL_TRC_SMPTE2084 || frame->color_trc == AVCOL_TRC_ARIB_STD_B67;
}

/* Return true if a curve is one of SDR. All of them are taken for BT.1886, which displays use. */
static inline bool cox_av_curve_is_sdr(enum AVColorTransferCharacteristic curve)
{
    switch (curve) {
    case AVCOL_TRC_BT709:
    case AVCOL_TRC_GAMMA22:
    case AVCOL_TRC_GAMMA28:
    case AVCOL_TRC_SMPTE170M:
    case AVCOL_TRC_SMPTE240M:
    case AVCOL_TRC_IEC61966_2_4:
    case AVCOL_TRC_IEC61966_2_1:
    case AVCOL_TRC_BT2020_10:
    case AVCOL_TRC_BT2020_12:
        return true;
    default:
        return false;
    }
}

/* Convert FFmpeg's primaries and Y'CbCr matrix. Unspecified primaries are those that go with the
 * matrix, else BT.2020. The matrix of RGB is COX_MATRIX_AUTO.
 *
 * Returns false if the library does not have the primaries or the matrix. */
static inline bool cox_av_colours(enum AVColorPrimaries from, enum AVColorSpace matrix,
                                  enum cox_primaries *to, enum cox_matrix *to_matrix)
{
    enum cox_primaries usual = COX_PRIMARIES_BT2020;

    *to_matrix = COX_MATRIX_AUTO;
    switch (matrix) {
    case AVCOL_SPC_UNSPECIFIED:
    case AVCOL_SPC_RGB:
        break;
    case AVCOL_SPC_BT2020_NCL:
        *to_matrix = COX_MATRIX_BT2020;
        break;
    case AVCOL_SPC_BT709:
        *to_matrix = COX_MATRIX_BT709;
        usual = COX_PRIMARIES_BT709;
        break;
    case AVCOL_SPC_BT470BG:
        *to_matrix = COX_MATRIX_BT601;
        usual = COX_PRIMARIES_BT601_625;
        break;
    case AVCOL_SPC_SMPTE170M:
        *to_matrix = COX_MATRIX_BT601;
        usual = COX_PRIMARIES_BT601_525;
        break;
    default:
        return false;
    }

    switch (from) {
    case AVCOL_PRI_UNSPECIFIED:
        *to = usual;
        return true;
    case AVCOL_PRI_BT2020:
        *to = COX_PRIMARIES_BT2020;
        return true;
    case AVCOL_PRI_BT709:
        *to = COX_PRIMARIES_BT709;
        return true;
    case AVCOL_PRI_SMPTE432:
        *to = COX_PRIMARIES_P3_D65;
        return true;
    case AVCOL_PRI_SMPTE431:
        *to = COX_PRIMARIES_P3_DCI;
        return true;
    case AVCOL_PRI_SMPTE170M:
    case AVCOL_PRI_SMPTE240M:
        *to = COX_PRIMARIES_BT601_525;
        return true;
    case AVCOL_PRI_BT470BG:
        *to = COX_PRIMARIES_BT601_625;
        return true;
    default:
        return false;
    }
}

/* Return true if a stream maps the frame as its colour properties state: PQ, HLG or SDR, and the
 * primaries and the matrix of cox_av_colours. Unspecified properties are accepted. SDR passes, see
 * COX_TRANSFER_SDR. To map a frame with other properties, first set its color_trc, color_primaries
 * and colorspace. */
static inline bool cox_av_colours_are_known(const AVFrame *frame)
{
    enum cox_primaries primaries;
    enum cox_matrix matrix;

    return (cox_av_is_hdr(frame) || cox_av_curve_is_sdr(frame->color_trc) ||
            frame->color_trc == AVCOL_TRC_UNSPECIFIED) &&
           cox_av_colours(frame->color_primaries, frame->colorspace, &primaries, &matrix);
}

/* Convert FFmpeg's chroma location. Top and bottom become COX_CHROMA_CENTER. Bottom left and
 * unknown locations become COX_CHROMA_LEFT. */
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

/* The brightest light that a frame's metadata states: the peak of the mastering display, else
 * MaxCLL of the film. 0 = neither. */
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

/* Read the Dolby Vision metadata of a decoded HEVC frame. `dolby` is that of the frame before, or
 * all zeros, and becomes the frame's own.
 *
 * Returns 1 if the frame has to be mapped with `dolby->reshape` (cox_video_image.reshape). Returns
 * 0 if it has no metadata, or an enhancement layer: its own colours are to be mapped.
 *
 * Errors:
 *   AVERROR_INVALIDDATA  the metadata are damaged, or a frame of profile 5 has no matrices */
static inline int cox_av_dolby(const AVFrame *frame, struct cox_dolby_frame *dolby)
{
    const AVFrameSideData *data = av_frame_get_side_data(frame, AV_FRAME_DATA_DOVI_RPU_BUFFER);
    const struct cox_dolby_frame *before = dolby->profile ? dolby : NULL;

    if (!data)
        return 0;
    if (cox_dolby_read_hevc(data->data, data->size, before, dolby) != COX_OK ||
        (dolby->profile == 5 && !dolby->has_colours))
        return AVERROR_INVALIDDATA;
    return !dolby->has_residual;
}

static inline double cox_av_fraction_(AVRational value)
{
    return value.den ? av_q2d(value) : 0;
}

/* The brightest light of the scene by HDR10+: the largest of R, G and B, in cd/m2. Only the first
 * window, the whole picture, is used. 0 = unknown. */
static inline double cox_av_hdr10plus_peak_nits(const AVDynamicHDRPlus *from)
{
    double peak = 0;

    for (int i = 0; i < 3 && from->num_windows >= 1; i++)
        if (cox_av_fraction_(from->params[0].maxscl[i]) > peak)
            peak = cox_av_fraction_(from->params[0].maxscl[i]);
    return 10000 * peak;
}

/* Convert the metadata of HDR10+. Returns true if they have a curve for the whole picture. */
static inline bool cox_av_hdr10plus_curve(const AVDynamicHDRPlus *from,
                                          struct cox_hdr10plus_curve *curve)
{
    const AVHDRPlusColorTransformParams *window = &from->params[0];

    if (from->num_windows < 1 || !window->tone_mapping_flag ||
        window->num_bezier_curve_anchors > COX_HDR10PLUS_ANCHORS_MAX)
        return false;

    memset(curve, 0, sizeof *curve);
    curve->scene_peak_nits = (float)cox_av_hdr10plus_peak_nits(from);
    curve->target_nits = (float)cox_av_fraction_(from->targeted_system_display_maximum_luminance);
    curve->knee_x = (float)cox_av_fraction_(window->knee_point_x);
    curve->knee_y = (float)cox_av_fraction_(window->knee_point_y);
    curve->anchor_count = window->num_bezier_curve_anchors;
    for (uint32_t i = 0; i < curve->anchor_count; i++)
        curve->anchors[i] = (float)cox_av_fraction_(window->bezier_curve_anchors[i]);

    return curve->scene_peak_nits >= 1 && curve->scene_peak_nits <= 10000 &&
           curve->target_nits >= 1 && curve->target_nits <= 10000 && curve->knee_x < 1;
}

/* The frame's curve of HDR10+. False if it has none. */
static inline bool cox_av_hdr10plus(const AVFrame *frame, struct cox_hdr10plus_curve *curve)
{
    const AVFrameSideData *data = av_frame_get_side_data(frame, AV_FRAME_DATA_DYNAMIC_HDR_PLUS);

    return data && data->size >= sizeof(AVDynamicHDRPlus) &&
           cox_av_hdr10plus_curve((const AVDynamicHDRPlus *)(const void *)data->data, curve);
}

/* cox_av_image, also of a frame that is reshaped. */
static inline int cox_av_describe_(const AVFrame *frame, const struct cox_video_reshape *reshape,
                                   struct cox_video_image *image)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];

    memset(image, 0, sizeof *image);
    const int code = cox_av_format(frame->format, &image->format);
    if (code < 0)
        return code;

    /* Refuse colours that the kernels do not have, and an empty picture. */
    const bool packed = image->format.layout == COX_VIDEO_RGBA ||
                        image->format.layout == COX_VIDEO_BGRA;
    const bool rgb = packed || image->format.layout == COX_VIDEO_GBR;
    image->reshape = reshape;
    if (!reshape && (!cox_av_colours(frame->color_primaries, frame->colorspace, &image->primaries,
                                     &image->matrix) ||
                     (frame->colorspace == AVCOL_SPC_RGB && !rgb)))
        return AVERROR(ENOSYS);

    if (frame->width <= 0 || frame->height <= 0 || frame->crop_left >= (size_t)frame->width ||
        frame->crop_right >= (size_t)frame->width - frame->crop_left ||
        frame->crop_top >= (size_t)frame->height ||
        frame->crop_bottom >= (size_t)frame->height - frame->crop_top)
        return AVERROR(ERANGE);

    const uint32_t left = (uint32_t)frame->crop_left, top = (uint32_t)frame->crop_top;
    image->width = (uint32_t)frame->width - left - (uint32_t)frame->crop_right;
    image->height = (uint32_t)frame->height - top - (uint32_t)frame->crop_bottom;

    /* Colours. The range that the format implies stays if the frame does not specify one. */
    image->format.chroma_location = cox_av_site(frame->chroma_location);
    if (!packed && frame->color_range == AVCOL_RANGE_JPEG)
        image->format.range = COX_RANGE_FULL;
    else if (!packed && frame->color_range != AVCOL_RANGE_UNSPECIFIED)
        image->format.range = COX_RANGE_LIMITED;

    image->transfer = COX_TRANSFER_PQ;
    if (frame->color_trc == AVCOL_TRC_ARIB_STD_B67)
        image->transfer = COX_TRANSFER_HLG;
    else if (cox_av_curve_is_sdr(frame->color_trc))
        image->transfer = COX_TRANSFER_SDR;
    if (image->transfer == COX_TRANSFER_SDR && frame->color_primaries == AVCOL_PRI_UNSPECIFIED &&
        image->matrix == COX_MATRIX_AUTO)
        image->primaries = COX_PRIMARIES_BT709;

    image->peak_nits = cox_av_peak_nits(frame);

    /* The first visible sample of each plane. */
    const uint32_t count = cox_video_planes(&image->format, image->width, image->height, planes);
    for (uint32_t p = 0; p < count; p++) {
        uint32_t samples = 1, across = left, down = top;

        if (packed)
            samples = 4;
        else if (p == 1 && count == 2)
            samples = 2;

        if (p) {
            across >>= image->format.chroma_x_log2;
            down >>= image->format.chroma_y_log2;
        }

        image->pitch_bytes[p] = frame->linesize[p];
        image->data[p] = frame->data[p] + (ptrdiff_t)down * frame->linesize[p] +
                         (ptrdiff_t)across * (ptrdiff_t)(samples * planes[p].sample_bytes);
    }

    return 0;
}

/* Describe a frame that is to be mapped or written to: its planes, cropped as the frame states, and
 * its colours.
 *
 * A transfer other than HLG and SDR is taken for PQ, see cox_av_colours_are_known. Unspecified
 * primaries and matrix are those of cox_av_colours, but BT.709 for SDR.
 *
 * `memory` is set to NULL, see cox_av_pool_find.
 *
 * Errors:
 *   AVERROR(ENOSYS)  The library does not support the format, the primaries or the matrix, or the
 *                    frame is in a device's own memory.
 *   AVERROR(ERANGE)  The frame has no size, or is cropped to nothing. */
static inline int cox_av_image(const AVFrame *frame, struct cox_video_image *image)
{
    return cox_av_describe_(frame, NULL, image);
}

/* Copy the properties of `from` to the mapped frame, with these exceptions.
 *   - HDR side data and the ICC profile are removed.
 *   - The colours are those of SDR (BT.709), with the range of the mapped frame's format.
 *   - The chroma location is converted as cox_av_site does.
 *   - Cropping is 0, because the mapped frame contains only the visible pixels.
 *   - The sample aspect ratio changes if the picture was scaled unevenly.
 *
 * Errors:
 *   AVERROR(ENOSYS)  The library does not support the format of `mapped`.
 * Also those of av_frame_copy_props. */
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

    int code = cox_av_format(mapped->format, &format);
    if (code >= 0)
        code = av_frame_copy_props(mapped, from);
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

    /* Pixels get another shape if width and height are scaled by different factors. */
    const int width = from->width - (int)(from->crop_left + from->crop_right);
    const int height = from->height - (int)(from->crop_top + from->crop_bottom);
    const AVRational stretch = av_mul_q(av_make_q(width, mapped->width),
                                        av_make_q(mapped->height, height));
    if (stretch.num != stretch.den) {
        AVRational aspect = {1, 1};

        if (from->sample_aspect_ratio.num > 0)
            aspect = from->sample_aspect_ratio;
        mapped->sample_aspect_ratio = av_mul_q(stretch, aspect);
    }

    mapped->crop_left = mapped->crop_right = mapped->crop_top = mapped->crop_bottom = 0;
    return 0;
}

/* ---- Memory for frames ---- */

/* Alignment of rows, and extra bytes after each plane. Decoders write whole vectors, and read some
 * bytes past the last row. */
enum { COX_AV_ALIGN_BYTES = 64, COX_AV_BEHIND_BYTES = 128 };

/* The memory of one plane. Only for the pool. */
struct cox_av_memory {
    struct cox_av_memory *next;
    struct cox_av_pool *pool;
    cox_buffer *buffer;
    bool used; /* an AVBufferRef holds it */
};

/* A pool of a runtime's memory for frames. The memory of a plane is used again when its frame is
 * released. The pool grows to the number of frames that decoder, devices and application hold at
 * once.
 *
 * The pool lives until its owner and all frames in it have released it. This must happen before
 * cox_runtime_destroy.
 *
 * Thread-safety: any thread, all functions. */
struct cox_av_pool {
    cox_runtime *runtime;
    pthread_mutex_t lock;
    unsigned references;       /* one of the owner, and one of each plane in use */
    struct cox_av_memory *all; /* in use or not */

    /* The pitch of each plane. 0 = one that suits the devices. Set it before the first frame, if a
     * decoder already has frames and needs the next ones with the same pitches. */
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX];
};

/* Create a pool. The caller owns it and releases it with cox_av_pool_unref. Returns NULL if out of
 * memory. */
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
    cox_buffer_destroy(&memory->buffer);
    free(memory);
}

/* Drop one reference and unlock. The caller holds the lock. The last reference frees the pool. */
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

/* Release the owner's reference and set *pool to NULL. Accepts a pointer to NULL. */
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
    memory->used = false;
    cox_av_pool_unlock_unref_(pool);
}

/* Take memory of that size, and mark it as used. If no memory of that size is idle, idle memory
 * of other sizes is freed, and new memory is created. Returns NULL if out of memory. */
static inline struct cox_av_memory *cox_av_pool_take_(struct cox_av_pool *pool, size_t bytes)
{
    struct cox_av_memory *found = NULL, *old = NULL;

    pthread_mutex_lock(&pool->lock);
    for (struct cox_av_memory *memory = pool->all; memory && !found; memory = memory->next)
        if (!memory->used && cox_buffer_bytes(memory->buffer) == bytes)
            found = memory;

    if (found) {
        found->used = true;
        pool->references++;
    }

    for (struct cox_av_memory **link = &pool->all; *link && !found;) {
        struct cox_av_memory *memory = *link;

        if (memory->used) {
            link = &memory->next;
        } else {
            *link = memory->next;
            memory->next = old;
            old = memory;
        }
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
    if (!found || cox_buffer_create(pool->runtime, bytes, &found->buffer) != COX_OK) {
        free(found);
        return NULL;
    }
    found->pool = pool;
    found->used = true;

    pthread_mutex_lock(&pool->lock);
    found->next = pool->all;
    pool->all = found;
    pool->references++;
    pthread_mutex_unlock(&pool->lock);

    return found;
}

/* Put a plane of the pool's memory into `frame`. Returns false if out of memory. */
static inline bool cox_av_fill_(struct cox_av_pool *pool, size_t bytes, size_t pitch_bytes,
                                AVFrame *frame, unsigned plane)
{
    struct cox_av_memory *memory = cox_av_pool_take_(pool, bytes);
    if (!memory)
        return false;

    uint8_t *data = (uint8_t *)cox_buffer_data(memory->buffer);
    frame->buf[plane] = av_buffer_create(data, bytes, cox_av_plane_free_, memory, 0);
    if (!frame->buf[plane]) {
        cox_av_plane_free_(memory, NULL);
        return false;
    }

    frame->data[plane] = data;
    frame->linesize[plane] = (int)pitch_bytes;
    return true;
}

/* The pitch that the pool gives a plane whose rows have `row_bytes` bytes, unless one was set. */
static inline size_t cox_av_pool_pitch(const cox_runtime *runtime, size_t row_bytes)
{
    return cox_runtime_pitch_bytes(runtime, (row_bytes + COX_AV_ALIGN_BYTES - 1) /
                                                COX_AV_ALIGN_BYTES * COX_AV_ALIGN_BYTES);
}

/* Give a frame memory of the pool, for at least `width` x `height` pixels. The format, width and
 * height of the frame must be set. The frame holds the memory until it is unreferenced.
 *
 * Errors:
 *   AVERROR(ENOSYS)  The library does not support the format or size, or a pitch set for the pool
 *                    is too small or not aligned to COX_AV_ALIGN_BYTES.
 *   AVERROR(ENOMEM) */
static inline int cox_av_pool_get(struct cox_av_pool *pool, AVFrame *frame, int width, int height)
{
    struct cox_video_format format;
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX] = {0}, bytes[COX_VIDEO_PLANES_MAX] = {0};

    const int code = cox_av_format(frame->format, &format);
    if (code < 0 || width <= 0 || height <= 0)
        return AVERROR(ENOSYS);

    const uint32_t count = cox_video_planes(&format, (uint32_t)width, (uint32_t)height, planes);
    if (!count)
        return AVERROR(ENOSYS);

    for (uint32_t p = 0; p < count; p++) {
        size_t pitch = pool->pitch_bytes[p];
        if (!pitch)
            pitch = cox_av_pool_pitch(pool->runtime, planes[p].row_bytes);
        if (pitch < planes[p].row_bytes || pitch % COX_AV_ALIGN_BYTES)
            return AVERROR(ENOSYS);

        pitch_bytes[p] = pitch;
        bytes[p] = pitch * planes[p].rows + COX_AV_BEHIND_BYTES;
    }

    frame->extended_data = frame->data;

    unsigned made = 0;
    while (made < count && cox_av_fill_(pool, bytes[made], pitch_bytes[made], frame, made))
        made++;
    if (made == count)
        return 0;

    for (unsigned p = 0; p < made; p++) {
        av_buffer_unref(&frame->buf[p]);
        frame->data[p] = NULL;
        frame->linesize[p] = 0;
    }

    return AVERROR(ENOMEM);
}

/* Do what AVCodecContext.get_buffer2 does. The frame gets memory of the pool if the decoder and the
 * format allow it, else memory of FFmpeg. */
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

/* The buffer of memory in use that contains `data`. NULL = none. Called with the pool's lock. */
static inline cox_buffer *cox_av_plane_of_(const struct cox_av_pool *pool, const uint8_t *data)
{
    for (const struct cox_av_memory *memory = pool->all; memory; memory = memory->next) {
        const uint8_t *first = (const uint8_t *)cox_buffer_data(memory->buffer);

        if (memory->used && data >= first && data < first + cox_buffer_bytes(memory->buffer))
            return memory->buffer;
    }

    return NULL;
}

/* Find the buffers that hold a frame's planes, for cox_video_image.memory. This also works for a
 * window of a pool's frame, for a field, and for planes in another order.
 *
 * Returns false and sets nothing if the frame is not of the pool. */
static inline bool cox_av_pool_find(struct cox_av_pool *pool, const AVFrame *frame,
                                    cox_buffer **planes)
{
    cox_buffer *in[COX_VIDEO_PLANES_MAX] = {NULL};
    unsigned count = 0;
    bool found = true;

    pthread_mutex_lock(&pool->lock);
    for (; count < COX_VIDEO_PLANES_MAX && frame->data[count] && found; count++) {
        in[count] = cox_av_plane_of_(pool, frame->data[count]);
        found = in[count] != NULL;
    }
    pthread_mutex_unlock(&pool->lock);

    for (unsigned p = 0; p < count && found; p++)
        planes[p] = in[p];

    return found && count > 0;
}

/* ---- Mapping ---- */

/* A stream of AVFrames. The application may set the first three fields after cox_av_map_open. After
 * a seek it calls cox_av_map_flush, or cox_video_stream_restart on `stream`.
 *
 * Thread-safety: one thread at a time. cox_video_stream_set and cox_video_stream_info on `stream`
 * may be called from any thread. */
struct cox_av_map {
    enum AVPixelFormat format; /* of mapped frames; AV_PIX_FMT_NONE = yuv420p */
    int width, height;         /* of mapped frames; 0 = that of the input */
    cox_video_stream *stream;
    struct cox_av_pool *pool;
    unsigned pending; /* frames that were sent and not received */
    bool ended;
    enum AVPixelFormat device_format; /* of a decoder's device; AV_PIX_FMT_NONE = none is used */
    struct cox_dolby_frame dolby;     /* metadata of the last frame */
    struct cox_hdr10plus_curve hdr10plus;
};

/* The AVFrames of a frame that was sent and not received. */
struct cox_av_sent_ {
    AVFrame *in;
    AVFrame *out;
};

/* The AVERROR for a status. 0 for COX_OK. */
static inline int cox_av_error(cox_status status)
{
    switch (status) {
    case COX_OK:
        return 0;
    case COX_E_NOMEM:
        return AVERROR(ENOMEM);
    case COX_E_INVALID:
        return AVERROR(EINVAL);
    case COX_E_UNSUPPORTED:
        return AVERROR(ENOSYS);
    case COX_E_CANCELLED:
        return AVERROR_EXIT;
    default:
        return AVERROR_EXTERNAL;
    }
}

/* Open a map. The caller closes it with cox_av_map_close. `session` and `options` are those of
 * cox_video_stream_create. NULL = all defaults.
 *
 * Errors: AVERROR(ENOMEM), and those of cox_video_stream_create as cox_av_error converts them.
 * Nothing is kept then. */
static inline int cox_av_map_open(struct cox_av_map *map, cox_runtime *runtime,
                                  const struct cox_session_params *session,
                                  const struct cox_tonemap_options *options)
{
    memset(map, 0, sizeof *map);
    map->format = AV_PIX_FMT_NONE;
    map->device_format = AV_PIX_FMT_NONE;
    map->pool = cox_av_pool_create(runtime);
    if (!map->pool)
        return AVERROR(ENOMEM);

    const cox_status status = cox_video_stream_create(runtime, session, options, &map->stream);
    if (status != COX_OK)
        cox_av_pool_unref(&map->pool);

    return cox_av_error(status);
}

static inline int cox_av_map_get_buffer2_(AVCodecContext *decoder, AVFrame *frame, int flags)
{
    return cox_av_pool_get_buffer2(((struct cox_av_map *)decoder->opaque)->pool, decoder, frame,
                                   flags);
}

/* Make a decoder write to memory of the pool. Sets its `opaque` and `get_buffer2`. Call this before
 * avcodec_open2. */
static inline void cox_av_map_attach(struct cox_av_map *map, AVCodecContext *decoder)
{
    decoder->opaque = map;
    decoder->get_buffer2 = cox_av_map_get_buffer2_;
#if LIBAVCODEC_VERSION_MAJOR < 60 /* later versions assume it */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    decoder->thread_safe_callbacks = 1;
#pragma GCC diagnostic pop
#endif
}

/* Choose the device's format. FFmpeg asks again without it if the device refuses the stream. */
static inline enum AVPixelFormat cox_av_map_get_format_(AVCodecContext *decoder,
                                                        const enum AVPixelFormat *formats)
{
    const struct cox_av_map *map = (const struct cox_av_map *)decoder->opaque;
    const enum AVPixelFormat *software = formats;

    for (const enum AVPixelFormat *f = formats; *f != AV_PIX_FMT_NONE; f++)
        if (*f == map->device_format)
            return *f;

    while (*software != AV_PIX_FMT_NONE &&
           av_pix_fmt_desc_get(*software)->flags & AV_PIX_FMT_FLAG_HWACCEL)
        software++;
    return *software;
}

/* Let a device decode, for example "cuda" (NVDEC) or "vaapi": a name that FFmpeg's
 * av_hwdevice_find_type_by_name knows. "auto" takes the first one that opens. Call this after
 * cox_av_map_attach and before avcodec_open2. `codec` is the decoder's. It must be one of FFmpeg's
 * own decoders ("av1", not "libdav1d").
 *
 * cox_av_send_frame transfers the decoded frames to memory of the pool. If the device refuses the
 * stream, FFmpeg decodes in software without an error. If it fails later, avcodec_receive_frame or
 * cox_av_send_frame returns an error other than AVERROR_INVALIDDATA. Then open another decoder
 * without a device, and seek (see examples/video.c).
 *
 * Errors, after which the decoder works in software:
 *   AVERROR(EINVAL)  FFmpeg knows no such device
 *   AVERROR(ENOSYS)  the decoder cannot use such a device
 * Also those of av_hwdevice_ctx_create. */
static inline int cox_av_map_attach_device(struct cox_av_map *map, AVCodecContext *decoder,
                                           const AVCodec *codec, const char *name)
{
    const enum AVHWDeviceType wanted = av_hwdevice_find_type_by_name(name);
    const bool any = !strcmp(name, "auto");
    int code = AVERROR(ENOSYS);

    if (wanted == AV_HWDEVICE_TYPE_NONE && !any)
        return AVERROR(EINVAL);

    for (int i = 0; code < 0; i++) {
        const AVCodecHWConfig *config = avcodec_get_hw_config(codec, i);
        if (!config)
            return code;
        if (!(config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX) ||
            (!any && config->device_type != wanted))
            continue;

        code = av_hwdevice_ctx_create(&decoder->hw_device_ctx, config->device_type, NULL, NULL, 0);
        if (code >= 0)
            map->device_format = config->pix_fmt;
    }

    decoder->get_format = cox_av_map_get_format_;
    decoder->extra_hw_frames = 2; /* the application's, and one that is transferred */
    decoder->thread_count = 4;    /* with one, the device waits for the next frame */
    return 0;
}

/* Transfer a frame of a device to memory of the pool. The caller frees *out, also after an
 * error. */
static inline int cox_av_download_(struct cox_av_map *map, const AVFrame *frame, AVFrame **out)
{
    AVFrame *to = av_frame_alloc();

    *out = to;
    if (!to)
        return AVERROR(ENOMEM);

    to->format = ((const AVHWFramesContext *)(const void *)frame->hw_frames_ctx->data)->sw_format;
    to->width = frame->width;
    to->height = frame->height;

    int code = cox_av_pool_get(map->pool, to, to->width, to->height);
    if (code >= 0)
        code = av_hwframe_transfer_data(to, frame, 0);
    if (code >= 0)
        code = av_frame_copy_props(to, frame);
    return code;
}

static inline void cox_av_sent_free_(struct cox_av_sent_ *sent)
{
    if (!sent)
        return;

    av_frame_free(&sent->in);
    av_frame_free(&sent->out);
    free(sent);
}

/* Make a reference to the frame, and a frame for the mapped picture. `width` and `height` are the
 * visible size of `frame`. On an error the caller frees *out, which may be NULL. */
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

    /* Defaults of what the application did not set. */
    sent->out->format = map->format;
    sent->out->width = map->width;
    sent->out->height = map->height;
    if (map->format == AV_PIX_FMT_NONE)
        sent->out->format = AV_PIX_FMT_YUV420P;
    if (!map->width)
        sent->out->width = (int)width;
    if (!map->height)
        sent->out->height = (int)height;

    const int code = cox_av_pool_get(map->pool, sent->out, sent->out->width, sent->out->height);
    if (code < 0)
        return code;

    return cox_av_copy_props(sent->out, frame);
}

/* Send a frame. The map keeps a reference to it until it has been mapped. NULL = no more frames
 * follow. Blocks as cox_video_stream_send does. A frame with Dolby Vision's metadata is mapped as
 * cox_av_dolby says. COX_OPERATOR_HDR10PLUS uses the curve of cox_av_hdr10plus. A frame in a
 * device's memory is transferred first, which blocks.
 *
 * Errors:
 *   AVERROR(EAGAIN)  Too many frames were sent and not received. Receive one first.
 *   AVERROR_EOF      NULL was sent before, with no cox_av_map_flush since.
 *   AVERROR(ENOSYS)  See cox_av_image and cox_av_colours_are_known.
 *   AVERROR(ERANGE)  See cox_av_image.
 *   AVERROR_INVALIDDATA  See cox_av_dolby.
 *   AVERROR(EINVAL)  The frame cannot be mapped to the format and size of the map.
 *   AVERROR_EXIT     The stream was cancelled.
 *   AVERROR(ENOMEM), AVERROR_EXTERNAL
 * Also those of av_hwframe_transfer_data. */
static inline int cox_av_send_frame(struct cox_av_map *map, const AVFrame *frame)
{
    struct cox_video_image in, out;
    struct cox_av_sent_ *sent = NULL;

    if (!frame) {
        map->ended = true;
        return 0;
    }
    if (map->ended)
        return AVERROR_EOF;
    if (map->pending > COX_IN_FLIGHT_MAX)
        return AVERROR(EAGAIN);

    if (frame->hw_frames_ctx) {
        AVFrame *here = NULL;
        int transferred = cox_av_download_(map, frame, &here);

        if (transferred >= 0)
            transferred = cox_av_send_frame(map, here);
        av_frame_free(&here);
        return transferred;
    }

    const int reshapes = cox_av_dolby(frame, &map->dolby);
    const struct cox_video_reshape *reshape = reshapes > 0 ? &map->dolby.reshape : NULL;
    int code = AVERROR(ENOSYS);
    if (reshapes < 0)
        return reshapes;
    if (reshape || cox_av_colours_are_known(frame))
        code = cox_av_describe_(frame, reshape, &in);
    if (code >= 0)
        code = cox_av_sent_make_(map, frame, in.width, in.height, &sent);

    /* Describe the reference: if the frame had no buffers, it is a copy elsewhere in memory. */
    if (code >= 0)
        code = cox_av_describe_(sent->in, reshape, &in);
    if (code >= 0)
        code = cox_av_image(sent->out, &out);

    if (code >= 0 && cox_av_hdr10plus(frame, &map->hdr10plus))
        in.hdr10plus = &map->hdr10plus;

    if (code >= 0) {
        cox_av_pool_find(map->pool, sent->in, in.memory);
        cox_av_pool_find(map->pool, sent->out, out.memory);
        code = cox_av_error(cox_video_stream_send(map->stream, &in, &out, sent));
    }

    if (code < 0) {
        cox_av_sent_free_(sent);
        return code;
    }

    map->pending++;
    return 0;
}

/* Receive a mapped frame, with the properties that cox_av_copy_props sets. The old content of
 * `frame` is released first. The caller releases the frame with av_frame_unref.
 *
 * Blocks only after cox_av_send_frame(map, NULL). Use cox_video_stream_descriptor to wait for a
 * frame.
 *
 * Errors:
 *   AVERROR(EAGAIN)  No frame is ready.
 *   AVERROR_EOF      NULL was sent, and all frames have been received.
 * Also the status with which a frame ended, as cox_av_error converts it. */
static inline int cox_av_receive_frame(struct cox_av_map *map, AVFrame *frame)
{
    struct cox_video_result result;

    av_frame_unref(frame);
    const cox_status status = cox_video_stream_receive(map->stream, map->ended, &result);
    if (status == COX_E_NOT_FOUND && map->ended)
        return AVERROR_EOF;
    if (status == COX_E_NOT_FOUND || status == COX_E_BUSY)
        return AVERROR(EAGAIN);
    if (status != COX_OK)
        return cox_av_error(status);

    struct cox_av_sent_ *sent = (struct cox_av_sent_ *)result.user;
    map->pending--;

    /* The buffers' memory may have moved. */
    for (int p = 0; p < COX_VIDEO_PLANES_MAX && result.out_data[p]; p++)
        sent->out->data[p] = sent->out->buf[p]->data = (uint8_t *)result.out_data[p];

    if (result.status == COX_OK)
        av_frame_move_ref(frame, sent->out);

    cox_av_sent_free_(sent);
    return cox_av_error(result.status);
}

/* Cancel all frames that were sent, for example before a seek. They are not received. The next
 * frame restarts the curve, and frames may be sent again after NULL. Blocks until the frames have
 * ended. */
static inline void cox_av_map_flush(struct cox_av_map *map)
{
    struct cox_video_result result;

    cox_video_stream_cancel(map->stream);
    while (cox_video_stream_receive(map->stream, true, &result) == COX_OK)
        cox_av_sent_free_((struct cox_av_sent_ *)result.user);

    map->pending = 0;
    map->ended = false;
    cox_video_stream_restart(map->stream);
}

/* Close a map. Accepts a map that was not opened, if it is all zeros. Frames of the decoder and
 * mapped frames stay valid. All of them must be released before cox_runtime_destroy. */
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
