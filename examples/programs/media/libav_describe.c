/* The format of a video, from its container and its first frame. The frame takes precedence.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_input.h"
#include "video_format.h"

#include <libavutil/pixdesc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_interlaced(const AVFrame *frame)
{
#ifdef AV_FRAME_FLAG_INTERLACED
    return frame->flags & AV_FRAME_FLAG_INTERLACED;
#else
    return frame->interlaced_frame;
#endif
}

/* A display matrix maps x, y of the frame to m[0] x + m[3] y and m[1] x + m[4] y. */
static void take_turn(struct video_turn *turn, const AVStream *stream, const AVFrame *frame)
{
    enum { MATRIX_BYTES = 9 * sizeof(int32_t) };
    int32_t m[9];
    const void *matrix = libav_stream_data(stream, AV_PKT_DATA_DISPLAYMATRIX, MATRIX_BYTES);
    if (!matrix)
        matrix = libav_frame_data(frame, AV_FRAME_DATA_DISPLAYMATRIX, MATRIX_BYTES);
    if (!matrix)
        return;

    memcpy(m, matrix, sizeof m);
    const double along = fmin(fabs((double)m[0]), fabs((double)m[4]));
    const double across = fmin(fabs((double)m[1]), fabs((double)m[3]));
    const double most_along = fmax(fabs((double)m[0]), fabs((double)m[4]));
    const double most_across = fmax(fabs((double)m[1]), fabs((double)m[3]));

    /* Within half a degree of a quarter turn. */
    if (most_along <= 0 && most_across <= 0)
        return;
    if (most_across < along / 100)
        *turn = (struct video_turn){.flip_x = m[0] < 0, .flip_y = m[4] < 0};
    else if (most_along < across / 100)
        *turn = (struct video_turn){.transposed = true, .flip_x = m[3] < 0, .flip_y = m[1] < 0};
    else
        *turn = (struct video_turn){.odd = true};
}

/* The shape of a sample. Matroska names the shape of the cropped picture, which libavformat takes for
 * that of the whole one. */
static AVRational aspect_of(const struct libav *libav, AVStream *stream)
{
    const struct matroska_crop *crop = &libav->crop;
    AVFrame *frame = libav->frame;
    if (!crop->display_width || crop->display_width > INT32_MAX || !crop->display_height ||
        crop->display_height > INT32_MAX)
        return lib.av_guess_sample_aspect_ratio(libav->container, stream, frame);

    AVRational aspect;
    lib.av_reduce(&aspect.num, &aspect.den, (int64_t)crop->display_width * frame->height,
                  (int64_t)crop->display_height * frame->width, INT32_MAX);
    return aspect;
}

static uint64_t count_frames(const AVFormatContext *container, const AVStream *stream,
                             AVRational rate)
{
    int64_t frames = 0;
    if (stream->nb_frames > 0)
        return (uint64_t)stream->nb_frames;
    if (rate.num <= 0 || rate.den <= 0)
        return 0;

    if (stream->duration > 0)
        frames = lib.av_rescale_q(stream->duration, stream->time_base, av_inv_q(rate));
    else if (container->duration > 0)
        frames = lib.av_rescale_q(container->duration, AV_TIME_BASE_Q, av_inv_q(rate));
    return frames > 0 ? (uint64_t)frames : 0;
}

static struct video_rational rational(AVRational r)
{
    if (r.num <= 0 || r.den <= 0)
        return (struct video_rational){0, 0};
    return (struct video_rational){(uint32_t)r.num, (uint32_t)r.den};
}

/* Video of standard definition in a codec from before HDR. */
static bool is_usually_sdr(const struct libav *libav)
{
    static const enum AVCodecID codecs[] = {AV_CODEC_ID_H264,       AV_CODEC_ID_MPEG1VIDEO,
                                            AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG4,
                                            AV_CODEC_ID_VC1,        AV_CODEC_ID_WMV3};
    enum { MOST_WIDTH = 1024, MOST_HEIGHT = 576 };

    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
        if (codecs[i] == libav->decoder->codec_id)
            return libav->frame->width <= MOST_WIDTH && libav->frame->height <= MOST_HEIGHT;
    return false;
}

/* A command that converts samples which are not supported, and keeps their colours. */
static const char *conversion_of(const AVFrame *frame)
{
    const AVPixFmtDescriptor *samples = lib.av_pix_fmt_desc_get(frame->format);
    if (samples && samples->flags & AV_PIX_FMT_FLAG_RGB)
        return "ffmpeg -i IN -c:v ffv1 -pix_fmt gbrp12le OUT";
    return "ffmpeg -i IN -pix_fmt yuv420p10le OUT";
}

/* False if the program cannot show frames like this one. */
static bool check_picture(const struct libav *libav, struct cox_video_format *pixel,
                          struct error *error)
{
    const AVFrame *frame = libav->frame;
    if (libav_samples_of(libav, frame, pixel) < 0)
        return error_set(error, "unsupported sample format %s; convert it first (%s)",
                         libav_name(lib.av_get_pix_fmt_name(frame->format)), conversion_of(frame));
    if (is_interlaced(frame))
        return error_set(
            error,
            "interlaced video is not supported; deinterlace it first (ffmpeg -i IN -vf bwdif "
            "OUT)");
    if (frame->width <= 0 || frame->height <= 0)
        return error_set(error, "the frames have no pixels");

    return true;
}

/* "hevc in matroska". */
static void describe_for_people(struct video_input *input)
{
    const struct libav *libav = input->state;
    const char *container = libav->container->iformat->name;
    const char *codec = lib.avcodec_get_name(libav->decoder->codec_id);
    const int letters = (int)strcspn(container, ","), most = letters < 16 ? letters : 16;
    char prefix[64], by[32] = "";

    if (libav->hardware)
        snprintf(by, sizeof by, " (%.16s)", libav->hardware->name);
    snprintf(prefix, sizeof prefix, "%.16s%s in %.*s", codec, by, most, container);
    video_describe(&input->format, prefix);
}

bool libav_describe(struct video_input *input, struct error *error)
{
    struct libav *libav = input->state;
    AVFrame *frame = libav->frame;
    AVStream *stream = libav->container->streams[libav->stream];
    struct video_format *format = &input->format;
    if (!check_picture(libav, &format->pixel, error) ||
        !video_planes_of(&input->planes, &format->pixel, (uint64_t)frame->width,
                         (uint64_t)frame->height, error) ||
        !libav_take_dolby(libav, error) || !libav_take_colours(&format->colours, libav, error))
        return false;

    format->pixel.range = format->colours.range;
    format->pixel.chroma_location = format->colours.chroma_location;
    libav_compare_colours(format, libav);
    libav->samples = frame->format;
    format->can_name_colours = true;
    format->usually_sdr = is_usually_sdr(libav);
    format->width = (uint32_t)frame->width;
    format->height = (uint32_t)frame->height;
    format->interlacing = 'p';

    const AVRational rate = lib.av_guess_frame_rate(libav->container, stream, NULL);
    format->rate = rational(rate);
    format->tick = rational(stream->time_base);
    format->aspect = rational(aspect_of(libav, stream));
    format->frames = count_frames(libav->container, stream, rate);
    take_turn(&format->turn, stream, frame);
    format->dolby_profile = libav->dolby.profile;
    format->has_full_enhancement = libav->dolby.is_full_enhancement;

    const AVDictionaryEntry *piece = lib.av_dict_get(libav->container->metadata, "COXSWAIN_PIECE",
                                                     NULL, 0);
    if (piece)
        snprintf(format->piece, sizeof format->piece, "%s", piece->value);
    describe_for_people(input);
    return true;
}

#endif
