/* What may be wrong with a container's frames although reading went on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_input.h"

#include <inttypes.h>
#include <stdio.h>

void libav_notice_begin(struct video_input *input)
{
    struct libav *libav = input->state;
    const struct video_rational rate = input->format.rate, tick = input->format.tick;
    double interval = 0;

    if (rate.num && tick.num)
        interval = (double)rate.den * tick.den / ((double)rate.num * tick.num);
    frame_gaps_begin(&libav->gaps, interval);
}

/* Sound or subtitles, which may last longer than the video. */
static bool has_sound(const AVFormatContext *container)
{
    for (unsigned i = 0; i < container->nb_streams; i++) {
        const enum AVMediaType type = container->streams[i]->codecpar->codec_type;
        if (type == AVMEDIA_TYPE_AUDIO || type == AVMEDIA_TYPE_SUBTITLE)
            return true;
    }
    return false;
}

/* When the video ends by its header, in ticks of its time base; AV_NOPTS_VALUE = unknown. */
static int64_t promised_end(const struct libav *libav)
{
    const AVFormatContext *container = libav->container;
    const AVStream *stream = container->streams[libav->stream];
    const int64_t start = stream->start_time == AV_NOPTS_VALUE ? 0 : stream->start_time;
    if (stream->duration > 0) {
        const bool overflows = start > INT64_MAX - stream->duration;
        return overflows ? AV_NOPTS_VALUE : start + stream->duration;
    }

    /* The container's duration includes sound, which may be longer. It counts from 0. */
    if (container->duration <= 0 || has_sound(container))
        return AV_NOPTS_VALUE;
    return lib.av_rescale_q(container->duration, AV_TIME_BASE_Q, stream->time_base);
}

/* Whether libav has reported errors after the film's first frame. */
static bool complains(struct libav *libav)
{
    char first[LIBAV_MESSAGE_BYTES];
    return libav_complaints_count(&libav->complaints, first, sizeof first) > libav->errors_before;
}

void libav_notice_end(struct video_input *input)
{
    struct libav *libav = input->state;
    const AVStream *stream = libav->container->streams[libav->stream];
    const uint64_t promised = stream->nb_frames > 0 ? (uint64_t)stream->nb_frames : 0;
    const int64_t end = promised_end(libav);
    struct frame_gaps gaps = libav->gaps;

    /* Without a frame's time, that of its packet is near enough. */
    if (gaps.before == FRAME_GAPS_NO_TIME)
        gaps.before = libav->last_dts;

    /* The stream's length is best: an edit list may leave packets out. The container's is worst. */
    if (stream->duration <= 0 && promised && !libav->sought)
        libav->missing_at_end = promised > libav->packets ? promised - libav->packets : 0;
    else if (gaps.interval > 0 && end != AV_NOPTS_VALUE)
        libav->missing_at_end = frame_gaps_until(&gaps, end);

    /* Frames may also be missing because the frame rate varies, but not together with errors. */
    if (frame_gaps_found(&libav->gaps) && complains(libav))
        input->damaged |= input->goes_on;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static const char *are(uint64_t count)
{
    return count == 1 ? " is" : "s are";
}

static bool tell_skipped(const struct video_input *input, char *text, size_t bytes)
{
    const struct libav *libav = input->state;
    uint64_t packets = libav->skipped;
    if (packets < libav->missing_before)
        packets = libav->missing_before;
    snprintf(text, bytes, "damage before the first frame: %" PRIu64 " packet%s left out", packets,
             are(packets));
    return packets;
}

static bool tell_damage(const struct video_input *input, char *text, size_t bytes)
{
    const struct libav *libav = input->state;
    const struct frame_damage *damage = &libav->damage;
    char frames[96] = "no frame that came out shows it";
    if (damage->frames)
        snprintf(frames, sizeof frames,
                 "up to %" PRIu64 " frame%s damaged, the first is frame %" PRIu64
                 " (the first is 0)",
                 damage->frames, are(damage->frames), damage->first);

    snprintf(text, bytes,
             "damage in %" PRIu64 " place%s, the first at or after byte %" PRId64 " (%s); %s",
             damage->places, plural(damage->places), libav->harm_position, libav->harm, frames);
    return libav->harmed;
}

static bool tell_gaps(const struct video_input *input, char *text, size_t bytes)
{
    const struct libav *libav = input->state;
    const struct frame_gaps *gaps = &libav->gaps;
    snprintf(text, bytes,
             "%" PRIu64 " frame%s missing by the frames' times, in %" PRIu64
             " gap%s; the first gap is before frame %" PRIu64 " (the first is 0)",
             gaps->missing, are(gaps->missing), gaps->gaps, plural(gaps->gaps), gaps->first);
    return frame_gaps_found(gaps);
}

static bool tell_backwards(const struct video_input *input, char *text, size_t bytes)
{
    const struct libav *libav = input->state;
    const struct frame_gaps *gaps = &libav->gaps;
    snprintf(text, bytes,
             "%" PRIu64 " frame%s not later than the one before; the first is frame %" PRIu64
             " (the first is 0)",
             gaps->backwards, are(gaps->backwards), gaps->first_backwards);
    return gaps->backwards;
}

static bool tell_end(const struct video_input *input, char *text, size_t bytes)
{
    const struct libav *libav = input->state;
    snprintf(text, bytes, "%" PRIu64 " frame%s missing at the end, by the length in the header",
             libav->missing_at_end, are(libav->missing_at_end));
    return libav->missing_at_end;
}

static bool tell_errors(const struct video_input *input, char *text, size_t bytes)
{
    struct libav *libav = input->state;
    char first[LIBAV_MESSAGE_BYTES];
    const uint64_t errors = libav_complaints_count(&libav->complaints, first, sizeof first);
    snprintf(text, bytes, "frames may be damaged: libav reports %" PRIu64 " error%s, the first: %s",
             errors, plural(errors), first);
    return errors;
}

bool libav_notice(struct video_input *input, uint32_t n, char *text, size_t bytes)
{
    static bool (*const tell[])(const struct video_input *, char *, size_t) = {
        tell_skipped, tell_damage, tell_gaps, tell_backwards, tell_end, tell_errors};

    for (size_t i = 0; i < sizeof tell / sizeof tell[0]; i++)
        if (tell[i](input, text, bytes) && !n--)
            return true;
    return false;
}

#endif
