/* SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_encoding.h"
#include "libav_hardware.h"
#include "libav_messages.h"

bool libav_encoder_is_hardware(const AVCodec *codec)
{
    return codec->capabilities & (AV_CODEC_CAP_HARDWARE | AV_CODEC_CAP_HYBRID);
}

/* The formats that the encoder takes, ended by AV_PIX_FMT_NONE; NULL = any. */
static const enum AVPixelFormat *formats_of(const AVCodec *codec)
{
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 13, 100)
    const void *formats = NULL;
    if (lib.avcodec_get_supported_config(NULL, codec, AV_CODEC_CONFIG_PIX_FORMAT, 0, &formats,
                                         NULL) < 0)
        return NULL;
    return formats;
#else
    return codec->pix_fmts;
#endif
}

static bool takes(const AVCodec *codec, enum AVPixelFormat wanted)
{
    const enum AVPixelFormat *formats = formats_of(codec);
    if (!formats)
        return true;
    for (; *formats != AV_PIX_FMT_NONE; formats++)
        if (*formats == wanted)
            return true;
    return false;
}

/* Whether the encoder takes no frames in the host's memory. */
static bool takes_device_only(const AVCodec *codec)
{
    const enum AVPixelFormat *formats = formats_of(codec);
    if (!formats || *formats == AV_PIX_FMT_NONE)
        return false;
    for (; *formats != AV_PIX_FMT_NONE; formats++)
        if (!(lib.av_pix_fmt_desc_get(*formats)->flags & AV_PIX_FMT_FLAG_HWACCEL))
            return false;
    return true;
}

bool libav_encoder_interleaves(const AVCodec *codec, uint32_t depth)
{
    if (!libav_encoder_is_hardware(codec))
        return false;
    if (takes_device_only(codec))
        return true;

    const bool wide = depth > 8;
    return !takes(codec, wide ? AV_PIX_FMT_YUV420P10LE : AV_PIX_FMT_YUV420P) &&
           takes(codec, wide ? AV_PIX_FMT_P010LE : AV_PIX_FMT_NV12);
}

/* The type of device whose frames the encoder takes. */
static const AVCodecHWConfig *config_of(const AVCodec *codec)
{
    const AVCodecHWConfig *config;
    for (int i = 0; (config = lib.avcodec_get_hw_config(codec, i)); i++)
        if (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_FRAMES_CTX)
            return config;
    return NULL;
}

bool libav_encoder_attach(AVCodecContext *encoder, struct error *error)
{
    const AVCodec *codec = encoder->codec;
    const AVCodecHWConfig *config = config_of(codec);
    char why[LIBAV_WHY_BYTES];
    if (!config || !takes_device_only(codec))
        return true;

    AVBufferRef *device = libav_device_open(config->device_type, NULL, why, sizeof why);
    if (!device)
        return error_set(error, "needs a device of the kind %s: %s",
                         lib.av_hwdevice_get_type_name(config->device_type), why);

    AVBufferRef *frames = lib.av_hwframe_ctx_alloc(device);
    lib.av_buffer_unref(&device); /* the frames hold it */
    if (!frames)
        return error_set(error, "out of memory");

    AVHWFramesContext *about = (void *)frames->data;
    about->format = config->pix_fmt;
    about->sw_format = encoder->pix_fmt;
    about->width = encoder->width;
    about->height = encoder->height;
    const int code = lib.av_hwframe_ctx_init(frames);
    if (code < 0) {
        lib.av_buffer_unref(&frames);
        return libav_fail("its device cannot hold these frames", code, error);
    }

    encoder->hw_frames_ctx = frames;
    encoder->sw_pix_fmt = encoder->pix_fmt;
    encoder->pix_fmt = config->pix_fmt;
    return true;
}

int libav_encoder_upload(AVCodecContext *encoder, AVFrame *to, const AVFrame *from)
{
    int code = lib.av_hwframe_get_buffer(encoder->hw_frames_ctx, to, 0);
    if (code >= 0)
        code = lib.av_hwframe_transfer_data(to, from, 0);
    if (code >= 0)
        code = lib.av_frame_copy_props(to, from);
    return code;
}

bool libav_encoder_try(const AVCodec *codec, struct error *error)
{
    char reason[LIBAV_MESSAGE_BYTES];
    AVCodecContext *encoder = lib.avcodec_alloc_context3(codec);
    if (!encoder)
        return error_set(error, "out of memory");

    encoder->width = 1280;
    encoder->height = 720;
    encoder->time_base = (AVRational){1, 25};
    encoder->pix_fmt = libav_encoder_interleaves(codec, 8) ? AV_PIX_FMT_NV12 : AV_PIX_FMT_YUV420P;

    bool opens = libav_encoder_attach(encoder, error);
    if (opens) {
        libav_messages_keep(reason, sizeof reason);
        const int code = lib.avcodec_open2(encoder, NULL, NULL);
        libav_messages_keep(NULL, 0);
        opens = code >= 0;
        if (!opens && *reason)
            error_set(error, "%s", reason);
        else if (!opens)
            libav_fail("cannot be opened", code, error);
    }

    lib.avcodec_free_context(&encoder);
    return opens;
}

#endif
