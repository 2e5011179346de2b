/* The encoder of a muxed file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "muxed.h"

#if COX_HAVE_LIBAV

#include "libav_encoding.h"
#include "libav_messages.h"
#include "muxed_parts.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 64, VALUE_BYTES = 256, DEFAULT_RATE = 25 };

/* Whether the frames have half a sample of chroma at an edge, which many encoders refuse. */
static bool is_odd(const AVCodecContext *encoder)
{
    const AVPixFmtDescriptor *samples = lib.av_pix_fmt_desc_get(encoder->pix_fmt);
    return samples && ((samples->log2_chroma_w && encoder->width % 2) ||
                       (samples->log2_chroma_h && encoder->height % 2));
}

static bool open_codec(AVCodecContext *encoder, struct error *error)
{
    char reason[LIBAV_MESSAGE_BYTES];
    const AVCodec *codec = encoder->codec; /* a failed opening forgets it */
    const char *name = codec->name;

    /* libavcodec's error codes say little, but its messages say which option is wrong. */
    libav_messages_keep(reason, sizeof reason);
    const int code = lib.avcodec_open2(encoder, NULL, NULL);
    libav_messages_keep(NULL, 0);
    if (code >= 0)
        return true;

    if (is_odd(encoder))
        return error_set(
            error,
            "encoder %.64s does not accept frames of %d x %d pixels%s%.80s; use --scale "
            "%dx%d, or an encoder of odd sizes (--encoder ffv1)",
            name, encoder->width, encoder->height, *reason ? ": " : "", reason,
            (encoder->width + 1) / 2 * 2, (encoder->height + 1) / 2 * 2);

    char what[NAME_BYTES + sizeof reason + 80];
    const bool hardware = libav_encoder_is_hardware(codec);
    snprintf(what, sizeof what, "encoder %.64s %s%s%s", name,
             hardware ? "cannot be opened on this machine"
                      : "does not accept these frames or options",
             *reason ? ": " : "", reason);
    return libav_fail(what, code, error);
}

/* --- Options ---------------------------------------------------------------------------------- */

static bool set_option(AVCodecContext *encoder, const char *key, const char *value,
                       struct error *error)
{
    const int flags = AV_OPT_FLAG_ENCODING_PARAM | AV_OPT_FLAG_VIDEO_PARAM;
    if (!lib.av_opt_find(encoder, key, NULL, flags, AV_OPT_SEARCH_CHILDREN))
        return error_set(error, "encoder %s has no option '%s'", encoder->codec->name, key);
    if (lib.av_opt_set(encoder, key, value, AV_OPT_SEARCH_CHILDREN) < 0)
        return error_set(error, "encoder %s does not accept the value '%s' for option '%s'",
                         encoder->codec->name, value, key);
    return true;
}

/* key=value,... */
static bool set_list(AVCodecContext *encoder, const char *list, struct error *error)
{
    for (const char *at = list; *at;) {
        char key[NAME_BYTES], value[VALUE_BYTES];
        size_t length = strcspn(at, ","), name = strcspn(at, "=,");
        if (!name || name >= length || name >= sizeof key || length - name > sizeof value)
            return error_set(error,
                             "invalid encoder option '%.*s'; expected key=value, separated by "
                             "commas",
                             (int)length, at);
        snprintf(key, sizeof key, "%.*s", (int)name, at);
        snprintf(value, sizeof value, "%.*s", (int)(length - name - 1), at + name + 1);
        if (!set_option(encoder, key, value, error))
            return false;
        at += length + (at[length] == ',');
    }

    return true;
}

static bool set_options(AVCodecContext *encoder, const struct muxed_params *params,
                        struct error *error)
{
    const char *list = NULL;
    if (params->encoder)
        list = strchr(params->encoder, ':');
    if (list && !set_list(encoder, list + 1, error))
        return false;

    if (params->crf && !set_option(encoder, "crf", params->crf, error))
        return false;
    return !params->preset || set_option(encoder, "preset", params->preset, error);
}

/* --- The encoder ------------------------------------------------------------------------------ */

/* The encoder of this name, with or without options behind it. NULL = not found. */
static const AVCodec *find_named(const char *encoder)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(encoder, ":"), encoder);
    return lib.avcodec_find_encoder_by_name(name);
}

bool muxed_interleaves(const char *encoder, uint32_t depth)
{
    if (!encoder || !libav_load())
        return false;
    const AVCodec *codec = find_named(encoder);
    return codec && libav_encoder_interleaves(codec, depth);
}

static const AVCodec *choose_codec(const AVOutputFormat *container,
                                   const struct muxed_params *params, struct error *error)
{
    char name[NAME_BYTES];
    const AVCodec *codec;

    if (!params->encoder) {
        codec = lib.avcodec_find_encoder_by_name("libx264");
        if (!codec)
            codec = lib.avcodec_find_encoder(container->video_codec);
        if (!codec)
            error_set(error, "libavcodec has no encoder for this container");
        return codec;
    }

    snprintf(name, sizeof name, "%.*s", (int)strcspn(params->encoder, ":"), params->encoder);
    codec = find_named(name);
    if (!codec || codec->type != AVMEDIA_TYPE_VIDEO) {
        error_set(error, "unknown video encoder '%s'; see ffmpeg -encoders", name);
        return NULL;
    }
    if (lib.avformat_query_codec(container, codec->id, FF_COMPLIANCE_NORMAL))
        return codec;
    error_set(error, "%s cannot hold %s of encoder %s", container->name,
              lib.avcodec_get_name(codec->id), name);
    return NULL;
}

static enum AVPixelFormat samples_of(const struct cox_video_format *pixel)
{
    char name[24];
    int chroma = 422;

    if (pixel->layout == COX_VIDEO_SEMI_PLANAR)
        return pixel->depth == 10 ? AV_PIX_FMT_P010LE : AV_PIX_FMT_NV12;
    if (!pixel->chroma_x_log2)
        chroma = 444;
    else if (pixel->chroma_y_log2)
        chroma = 420;
    snprintf(name, sizeof name, "yuv%dp%s", chroma, pixel->depth == 10 ? "10le" : "");
    return lib.av_get_pix_fmt(name);
}

/* Frames keep their times; without times, a tick is a frame. */
static void describe_times(AVCodecContext *encoder, const struct video_format *format)
{
    encoder->framerate = (AVRational){(int)format->rate.num, (int)format->rate.den};
    if (!format->rate.num || !format->rate.den)
        encoder->framerate = (AVRational){DEFAULT_RATE, 1};
    encoder->time_base = (AVRational){(int)format->tick.num, (int)format->tick.den};
    if (!format->tick.num || !format->tick.den)
        encoder->time_base = av_inv_q(encoder->framerate);
}

/* After the options, so that none of them changes these. */
static void describe_frames(AVCodecContext *encoder, const struct video_format *format)
{
    static const enum AVChromaLocation sites[] = {[COX_CHROMA_LEFT] = AVCHROMA_LOC_LEFT,
                                                  [COX_CHROMA_CENTER] = AVCHROMA_LOC_CENTER,
                                                  [COX_CHROMA_TOP_LEFT] = AVCHROMA_LOC_TOPLEFT};

    encoder->width = (int)format->width;
    encoder->height = (int)format->height;
    encoder->pix_fmt = samples_of(&format->pixel);
    encoder->color_primaries = AVCOL_PRI_BT709;
    encoder->color_trc = AVCOL_TRC_BT709;
    encoder->colorspace = AVCOL_SPC_BT709;
    encoder->color_range = AVCOL_RANGE_MPEG;
    if (format->colours.has_primaries) {
        encoder->color_primaries = AVCOL_PRI_BT2020;
        encoder->color_trc = AVCOL_TRC_BT2020_10;
        encoder->colorspace = AVCOL_SPC_BT2020_NCL;
    }
    if (format->colours.has_transfer)
        encoder->color_trc = AVCOL_TRC_SMPTE2084;
    if (format->pixel.range == COX_RANGE_FULL)
        encoder->color_range = AVCOL_RANGE_JPEG;
    if (format->pixel.chroma_x_log2)
        encoder->chroma_sample_location = sites[format->pixel.chroma_location];

    if (format->aspect.num && format->aspect.den)
        encoder->sample_aspect_ratio = (AVRational){(int)format->aspect.num,
                                                    (int)format->aspect.den};
}

static bool attach_device(AVCodecContext *encoder, struct error *error)
{
    struct error why;
    return libav_encoder_attach(encoder, &why) ||
           error_set(error, "encoder %s %s", encoder->codec->name, why.text);
}

AVCodecContext *muxed_open_encoder(const AVOutputFormat *container,
                                   const struct muxed_params *params,
                                   const struct video_format *format, struct error *error)
{
    const AVCodec *codec = choose_codec(container, params, error);
    if (!codec)
        return NULL;
    AVCodecContext *encoder = lib.avcodec_alloc_context3(codec);
    if (!encoder) {
        error_set(error, "out of memory");
        return NULL;
    }

    encoder->thread_count = 0; /* one per core */
    if (!set_options(encoder, params, error))
        goto fail;
    describe_times(encoder, format);
    describe_frames(encoder, format);
    if (container->flags & AVFMT_GLOBALHEADER)
        encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    if (attach_device(encoder, error) && open_codec(encoder, error))
        return encoder;

fail:
    lib.avcodec_free_context(&encoder);
    return NULL;
}

#endif
