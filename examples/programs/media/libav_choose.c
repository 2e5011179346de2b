/* Which stream of a container is the film.
 * SPDX-License-Identifier: Apache-2.0 */
#if COX_HAVE_LIBAV

#include "libav_calls.h"

#include <stdio.h>

/* The stream, if it is video that can be decoded; else libav's error. */
static int find_video(AVFormatContext *container, int wanted, const AVCodec **codec)
{
    return lib.av_find_best_stream(container, AVMEDIA_TYPE_VIDEO, wanted, -1, codec, 0);
}

/* Whether it is a cover, thumbnails or a part of another stream. Cameras do not always say so. */
static bool is_extra(const AVStream *stream)
{
    const enum AVCodecID codec = stream->codecpar->codec_id;
    const int extra = AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS |
                      AV_DISPOSITION_STILL_IMAGE | AV_DISPOSITION_DEPENDENT;
    return stream->disposition & extra || codec == AV_CODEC_ID_MJPEG || codec == AV_CODEC_ID_PNG;
}

/* "0 (hevc, 1920 x 1080, bt2020, smpte2084)" */
static int describe(char *text, size_t bytes, const AVStream *stream)
{
    const AVCodecParameters *about = stream->codecpar;
    const char *primaries = lib.av_color_primaries_name(about->color_primaries);
    const char *transfer = lib.av_color_transfer_name(about->color_trc);
    if (about->color_primaries == AVCOL_PRI_UNSPECIFIED || !primaries)
        primaries = "no primaries";
    if (about->color_trc == AVCOL_TRC_UNSPECIFIED || !transfer)
        transfer = "no transfer";

    return snprintf(text, bytes, "%d (%.16s, %d x %d, %s, %s%s)", stream->index,
                    lib.avcodec_get_name(about->codec_id), about->width, about->height, primaries,
                    transfer, is_extra(stream) ? ", a picture" : "");
}

/* An error that lists the video streams. Returns -1. */
static int refuse(const AVFormatContext *container, uint32_t wanted, struct error *error)
{
    char list[sizeof error->text] = "";
    size_t used = 0;
    for (unsigned i = 0; i < container->nb_streams && used < sizeof list; i++)
        if (container->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_VIDEO) {
            used += (size_t)snprintf(list + used, sizeof list - used, "%s", used ? "; " : "");
            if (used < sizeof list)
                used += (size_t)describe(list + used, sizeof list - used, container->streams[i]);
        }

    error_set(error, "stream %u is not video that can be decoded; the video streams are %s", wanted,
              used ? list : "not there");
    return -1;
}

int libav_choose_video(AVFormatContext *container, const uint32_t *wanted, const AVCodec **codec,
                       struct error *error)
{
    if (wanted) {
        const int chosen = *wanted < container->nb_streams
                               ? find_video(container, (int)*wanted, codec)
                               : AVERROR_STREAM_NOT_FOUND;
        return chosen >= 0 && *codec ? chosen : refuse(container, *wanted, error);
    }

    const int best = find_video(container, -1, codec);
    if (best >= 0 && !is_extra(container->streams[best]))
        return best;
    for (unsigned i = 0; i < container->nb_streams; i++)
        if (!is_extra(container->streams[i]) && find_video(container, (int)i, codec) >= 0)
            return (int)i;

    if (best >= 0)
        return find_video(container, best, codec);
    if (best == AVERROR_DECODER_NOT_FOUND)
        error_set(error, "libavcodec has no decoder for its video");
    else
        error_set(error, "it has no video stream");
    return -1;
}

#endif
