/* What a muxed file copies from its source. The decoder reads ahead of the encoder, so the source
 * is opened a second time. A packet is read here when it is due before the encoder's next one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "muxed.h"

#if COX_HAVE_LIBAV

#include "mp4_title.h"
#include "muxed_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The largest distance in a file between packets of the same time: libavformat's default. */
enum { APART_US = 10000000 };

/* A display matrix is nine numbers of 32 bits. */
enum { MATRIX_BYTES = 9 * sizeof(int32_t) };

/* The longest sound that an encoder puts before the first: 2112 samples. */
enum { PRIMING_US = 50000 };

struct copied_stream {
    int out;              /* its number in the output; -1 = not copied */
    int64_t last_dts;     /* in the output's ticks */
    bool trimmed;         /* an edit list cuts its beginning off */
    bool is_picture;      /* a cover, which has no time */
    bool is_attached_now; /* a cover that becomes an attachment, which has no packets */
};

struct muxed_copies {
    AVFormatContext *source;
    AVPacket *packet;
    bool waiting; /* `packet` has been read and not been written */
    bool ended;
    bool hides;       /* the output can hide packets before its beginning */
    bool strict;      /* of muxed_params */
    uint64_t damaged; /* packets */
    uint32_t unread;  /* those that could not be read */
    int video;
    uint32_t count;
    uint32_t expected;     /* streams that go on, and covers that have not come yet */
    uint32_t stream_count; /* when the source was opened; streams that appear later are left out */
    int64_t begin_us, end_us, origin_us;
    struct copied_stream *streams;
};

/* --- Streams ---------------------------------------------------------------------------------- */

static bool is_cover(const AVStream *stream)
{
    return stream->disposition & AV_DISPOSITION_ATTACHED_PIC;
}

static bool is_matroska(const AVOutputFormat *format)
{
    return !strcmp(format->name, "matroska");
}

static bool set_missing(AVDictionary **tags, const char *key, const char *value)
{
    return lib.av_dict_get(*tags, key, NULL, 0) || lib.av_dict_set(tags, key, value, 0) >= 0;
}

/* Whether a handler's name is one that muxers write for every track, and not a title. */
static bool is_usual_handler(const char *name)
{
    static const char *const usual[] = {"handle", "core media", "iso media", "l-smash",
                                        "mainconcept"};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (lib.av_stristr(name, usual[i]))
            return true;
    return !*name;
}

/* libavformat does not read the titles of MP4. False: out of memory. */
static bool read_titles(AVFormatContext *source, const char *path)
{
    char title[256];
    if (strncmp(source->iformat->name, "mov,", 4) != 0)
        return true;

    for (unsigned i = 0; i < source->nb_streams; i++) {
        AVStream *stream = source->streams[i];
        if (mp4_title(path, (uint32_t)stream->id, title, sizeof title) &&
            !set_missing(&stream->metadata, "title", title))
            return false;
    }
    return true;
}

/* MP4 keeps the title of a track as the name of its handler, Matroska as a title. */
static bool keep_title(const AVFormatContext *out, AVStream *stream)
{
    const AVDictionaryEntry *title = lib.av_dict_get(stream->metadata, "title", NULL, 0);
    const AVDictionaryEntry *handler = lib.av_dict_get(stream->metadata, "handler_name", NULL, 0);
    const bool usual = !handler || is_usual_handler(handler->value);

    if (is_matroska(out->oformat))
        return usual || set_missing(&stream->metadata, "title", handler->value);
    return !usual || !title ||
           lib.av_dict_set(&stream->metadata, "handler_name", title->value, 0) >= 0;
}

/* In Matroska, covers are attachments. */
static bool attach_cover(AVStream *out, const AVStream *in)
{
    const bool png = in->codecpar->codec_id == AV_CODEC_ID_PNG;
    const AVPacket *picture = &in->attached_pic;
    AVCodecParameters *parameters = out->codecpar;

    parameters->codec_type = AVMEDIA_TYPE_ATTACHMENT;
    lib.av_freep(&parameters->extradata);
    parameters->extradata_size = 0;
    parameters->extradata = lib.av_mallocz((size_t)picture->size + AV_INPUT_BUFFER_PADDING_SIZE);
    if (!parameters->extradata)
        return false;

    memcpy(parameters->extradata, picture->data, (size_t)picture->size);
    parameters->extradata_size = picture->size;
    out->disposition = 0;
    return set_missing(&out->metadata, "filename", png ? "cover.png" : "cover.jpg") &&
           set_missing(&out->metadata, "mimetype", png ? "image/png" : "image/jpeg");
}

/* A stream of `out` that is as `in`; NULL = out of memory. */
static AVStream *add_stream(AVFormatContext *out, const AVStream *in)
{
    AVStream *stream = lib.avformat_new_stream(out, NULL);
    if (!stream || lib.avcodec_parameters_copy(stream->codecpar, in->codecpar) < 0 ||
        lib.av_dict_copy(&stream->metadata, in->metadata, 0) < 0)
        return NULL;

    if (!keep_title(out, stream))
        return NULL;

    stream->codecpar->codec_tag = 0; /* each container has its own */
    stream->time_base = in->time_base;
    stream->disposition = in->disposition;
    stream->sample_aspect_ratio = in->sample_aspect_ratio;
    stream->avg_frame_rate = in->avg_frame_rate;
    if (is_cover(in) && is_matroska(out->oformat) && !attach_cover(stream, in))
        return NULL;
    return stream;
}

/* Try a file of this stream alone: muxers refuse some streams that their tables allow. Returns
 * libav's status, AVERROR(ENOMEM) if memory is short. */
static int try_alone(const AVOutputFormat *format, const AVStream *stream)
{
    AVFormatContext *trial = NULL;
    uint8_t *bytes = NULL;
    int code = AVERROR(ENOMEM);
    if (lib.avformat_alloc_output_context2(&trial, format, NULL, NULL) < 0)
        return code;
    if (add_stream(trial, stream) && lib.avio_open_dyn_buf(&trial->pb) >= 0)
        code = lib.avformat_write_header(trial, NULL);

    if (trial->pb)
        lib.avio_close_dyn_buf(trial->pb, &bytes);
    trial->pb = NULL;
    lib.av_free(bytes);
    lib.avformat_free_context(trial);
    return code;
}

static const char cannot_be_held[] = "is not supported", no_memory[] = "out of memory";

/* NULL = it can be held. `no_memory` is no reason to leave it out. */
static const char *why_not(const AVOutputFormat *format, const AVStream *stream)
{
    const AVCodecParameters *parameters = stream->codecpar;
    const bool attachment = parameters->codec_type == AVMEDIA_TYPE_ATTACHMENT;
    if (parameters->codec_type == AVMEDIA_TYPE_VIDEO && !is_cover(stream))
        return "is another video stream";
    if (is_cover(stream) && !stream->attached_pic.size)
        return "has no picture";
    if (!attachment &&
        (parameters->codec_id == AV_CODEC_ID_NONE ||
         !lib.avformat_query_codec(format, parameters->codec_id, FF_COMPLIANCE_NORMAL)))
        return cannot_be_held;

    const int code = try_alone(format, stream);
    if (code == AVERROR(ENOMEM))
        return no_memory;
    return code < 0 ? cannot_be_held : NULL;
}

static void report_left_out(const struct muxed_params *params, const AVStream *stream,
                            const char *why)
{
    const AVCodecParameters *parameters = stream->codecpar;
    const char *type = lib.av_get_media_type_string(parameters->codec_type);
    const char *codec = lib.avcodec_get_name(parameters->codec_id);
    const AVDictionaryEntry *detail = lib.av_dict_get(stream->metadata, "language", NULL, 0);
    char what[256];

    if (!params->left_out)
        return;
    if (!detail)
        detail = lib.av_dict_get(stream->metadata, "filename", NULL, 0);

    if (why == cannot_be_held)
        snprintf(what, sizeof what,
                 "stream %d of the source (%s, %s%s%.80s) %s by %s and is left out", stream->index,
                 type ? type : "data", codec, detail ? ", " : "", detail ? detail->value : "", why,
                 params->container);
    else
        snprintf(what, sizeof what, "stream %d of the source %s and is left out", stream->index,
                 why);
    params->left_out(params->user, what);
}

/* The display matrix; NULL = the picture is not rotated. */
static const void *rotation_of(const AVStream *stream)
{
    static const int32_t upright[9] = {1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30};
    const void *matrix = libav_stream_data(stream, AV_PKT_DATA_DISPLAYMATRIX, MATRIX_BYTES);
    if (matrix && !memcmp(matrix, upright, sizeof upright))
        return NULL;
    return matrix;
}

/* libavformat writes it to Matroska since FFmpeg 7. */
static void report_rotation(const struct muxed_copies *copies, const AVFormatContext *out,
                            const struct muxed_params *params)
{
    if (LIBAVFORMAT_VERSION_MAJOR < 61 && is_matroska(out->oformat) && params->left_out &&
        rotation_of(copies->source->streams[copies->video]))
        params->left_out(
            params->user,
            "the source's rotation is not supported by this version of libavformat in matroska and is "
            "left out");
}

/* Add stream `i` of the source to `out`. False: out of memory. */
static bool copy_stream(struct muxed_copies *copies, unsigned i, AVFormatContext *out)
{
    AVStream *in = copies->source->streams[i];
    struct copied_stream *copied = &copies->streams[i];
    const AVStream *stream = add_stream(out, in);
    if (!stream)
        return false;

    copied->out = stream->index;
    copied->is_attached_now = stream->codecpar->codec_type == AVMEDIA_TYPE_ATTACHMENT;
    if (!copied->is_attached_now) {
        in->discard = AVDISCARD_DEFAULT;
        copies->expected++;
    }
    copies->count++;
    return true;
}

bool muxed_copies_add(struct muxed_copies *copies, AVFormatContext *out,
                      const struct muxed_params *params, struct error *error)
{
    copies->strict = params->strict;
    copies->hides = !is_matroska(out->oformat);
    for (unsigned i = 0; i < copies->stream_count; i++) {
        AVStream *in = copies->source->streams[i];
        copies->streams[i] = (struct copied_stream){
            .out = -1, .last_dts = AV_NOPTS_VALUE, .is_picture = is_cover(in)};
        in->discard = AVDISCARD_ALL;
        if ((int)i == copies->video)
            continue;

        const char *why = why_not(out->oformat, in);
        if (why == no_memory || (!why && !copy_stream(copies, i, out)))
            return error_set(error, "%s", no_memory);
        if (why)
            report_left_out(params, in, why);
    }

    report_rotation(copies, out, params);
    return true;
}

/* --- Metadata and chapters -------------------------------------------------------------------- */

/* All except those that describe the source as an MP4 file. False: out of memory. */
static bool copy_tags(AVDictionary **to, const AVDictionary *from)
{
    static const char *const own[] = {"major_brand", "minor_version", "compatible_brands",
                                      "encoder"};
    if (lib.av_dict_copy(to, from, 0) < 0)
        return false;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (lib.av_dict_set(to, own[i], NULL, 0) < 0)
            return false;
    return true;
}

static bool copy_rotation(AVStream *to, const AVStream *from)
{
    const void *matrix = rotation_of(from);
    if (!matrix)
        return true;
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 102)
    AVPacketSideData *made = lib.av_packet_side_data_new(&to->codecpar->coded_side_data,
                                                         &to->codecpar->nb_coded_side_data,
                                                         AV_PKT_DATA_DISPLAYMATRIX, MATRIX_BYTES,
                                                         0);
    void *data = NULL;
    if (made)
        data = made->data;
#else
    void *data = lib.av_stream_new_side_data(to, AV_PKT_DATA_DISPLAYMATRIX, MATRIX_BYTES);
#endif
    if (data)
        memcpy(data, matrix, MATRIX_BYTES);
    return data;
}

bool muxed_copies_describe(const struct muxed_copies *copies, AVFormatContext *out, AVStream *video)
{
    /* Other tags describe the old stream: its encoder, its size. */
    static const char *const kept[] = {"language", "title", "handler_name"};
    const AVStream *in = copies->source->streams[copies->video];

    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        const AVDictionaryEntry *tag = lib.av_dict_get(in->metadata, kept[i], NULL, 0);
        if (tag && lib.av_dict_set(&video->metadata, kept[i], tag->value, 0) < 0)
            return false;
    }
    video->disposition = in->disposition;
    return keep_title(out, video) && copy_rotation(video, in) &&
           copy_tags(&out->metadata, copies->source->metadata);
}

static int64_t microseconds(int64_t ticks, AVRational tick)
{
    return lib.av_rescale_q(ticks, tick, AV_TIME_BASE_Q);
}

static AVChapter *copy_chapter(const AVChapter *in, int64_t begin_us, int64_t end_us,
                               int64_t origin_us)
{
    AVChapter *out = lib.av_mallocz(sizeof *out);
    if (!out)
        return NULL;

    *out = (AVChapter){.id = in->id, .time_base = AV_TIME_BASE_Q};
    out->start = microseconds(in->start, in->time_base) - origin_us;
    out->end = microseconds(in->end, in->time_base) - origin_us;
    if (begin_us != AV_NOPTS_VALUE && out->start < begin_us)
        out->start = begin_us;
    if (end_us != AV_NOPTS_VALUE && out->end > end_us)
        out->end = end_us;
    if (lib.av_dict_copy(&out->metadata, in->metadata, 0) >= 0)
        return out;

    lib.av_dict_free(&out->metadata);
    lib.av_free(out);
    return NULL;
}

bool muxed_copies_chapters(const struct muxed_copies *copies, AVFormatContext *out,
                           int64_t begin_us, int64_t end_us)
{
    const AVFormatContext *source = copies->source;
    if (!source->nb_chapters)
        return true;

    out->chapters = lib.av_mallocz(source->nb_chapters * sizeof(AVChapter *));
    for (unsigned i = 0; out->chapters && i < source->nb_chapters; i++) {
        AVChapter *chapter = copy_chapter(source->chapters[i], begin_us, end_us, copies->origin_us);
        if (!chapter)
            return false;
        if (chapter->start >= chapter->end) {
            lib.av_dict_free(&chapter->metadata);
            lib.av_free(chapter);
            continue;
        }
        out->chapters[out->nb_chapters++] = chapter;
    }

    return out->chapters;
}

/* --- Packets ---------------------------------------------------------------------------------- */

void muxed_copies_begin(struct muxed_copies *copies, int64_t begin_us)
{
    copies->begin_us = begin_us;
}

void muxed_copies_end(struct muxed_copies *copies, int64_t end_us)
{
    copies->end_us = end_us;
}

/* When the packet that was read is due, and when it is presented. */
static void packet_times(const struct muxed_copies *copies, int64_t *due_us, int64_t *shown_us)
{
    const AVPacket *packet = copies->packet;
    const AVRational tick = copies->source->streams[packet->stream_index]->time_base;
    int64_t dts = packet->dts, pts = packet->pts;
    if (dts == AV_NOPTS_VALUE)
        dts = pts;
    if (pts == AV_NOPTS_VALUE)
        pts = dts;

    *due_us = *shown_us = INT64_MIN;
    if (dts == AV_NOPTS_VALUE)
        return;
    *due_us = microseconds(dts, tick) - copies->origin_us;
    *shown_us = microseconds(pts, tick) - copies->origin_us;
}

/* Whether an edit list cuts the packet off. Its time is then before the film's beginning, where MP4 can
 * hide it but Matroska cannot, or behind an end. What an encoder puts before the beginning is kept. */
static bool is_cut_off(struct muxed_copies *copies, int64_t shown_us)
{
    struct copied_stream *copied = &copies->streams[copies->packet->stream_index];
    if (!(copies->packet->flags & AV_PKT_FLAG_DISCARD))
        return false;

    copied->trimmed |= shown_us < -PRIMING_US;
    return shown_us >= 0 || shown_us < -PRIMING_US || (copied->trimmed && !copies->hides);
}

/* Whether the packet is between begin and end. Far behind the end there are no more. */
static bool is_wanted(struct muxed_copies *copies)
{
    int64_t due_us, shown_us;
    const struct copied_stream *copied = &copies->streams[copies->packet->stream_index];

    packet_times(copies, &due_us, &shown_us);
    if (is_cut_off(copies, shown_us))
        return false;
    if (copied->out < 0 || copied->is_attached_now)
        return false;
    if (copied->is_picture)
        return true;
    if (copies->end_us != AV_NOPTS_VALUE && due_us > copies->end_us + APART_US)
        copies->ended = true;
    return (copies->begin_us == AV_NOPTS_VALUE || shown_us >= copies->begin_us) &&
           (copies->end_us == AV_NOPTS_VALUE || shown_us < copies->end_us);
}

/* The next packet cannot be read, because of `code`. Whether there may be more. */
static bool leave_out(struct muxed_copies *copies, int code)
{
    enum { UNREAD_MAX = 1000 };
    if (copies->strict || code != AVERROR_INVALIDDATA)
        return false;

    copies->damaged++;
    copies->ended = ++copies->unread == UNREAD_MAX;
    return true;
}

/* Read the next packet that is to be copied into `packet`, unless there are no more. */
static bool fetch(struct muxed_copies *copies, struct error *error)
{
    AVPacket *packet = copies->packet;
    copies->ended |= !copies->expected; /* the rest of the source is video */
    while (!copies->waiting && !copies->ended) {
        const int code = lib.av_read_frame(copies->source, packet);
        if (code == AVERROR_EOF)
            copies->ended = true;
        else if (code < 0 && !leave_out(copies, code))
            return libav_fail("the source's sound or subtitles cannot be read", code, error);

        if (code >= 0 && packet->stream_index < (int)copies->stream_count && is_wanted(copies))
            copies->waiting = true;
        else
            lib.av_packet_unref(packet);
    }

    const bool damaged = copies->waiting && packet->flags & AV_PKT_FLAG_CORRUPT;
    if (damaged && copies->strict)
        return error_set(error, "the source's sound or subtitles are damaged");
    copies->damaged += damaged;
    packet->flags &= ~AV_PKT_FLAG_CORRUPT; /* counted once */
    return true;
}

/* Decoding times must not fall, and must rise if the container requires that. In broadcasts they
 * may fall. */
static void keep_order(AVPacket *packet, const AVFormatContext *out, int64_t *last_dts)
{
    const enum AVMediaType type = out->streams[packet->stream_index]->codecpar->codec_type;
    const bool strict = type == AVMEDIA_TYPE_AUDIO && !(out->oformat->flags & AVFMT_TS_NONSTRICT);

    if (packet->dts == AV_NOPTS_VALUE)
        return;
    if (*last_dts != AV_NOPTS_VALUE && packet->dts < *last_dts + strict)
        packet->dts = *last_dts + strict;
    *last_dts = packet->dts;
    if (packet->pts != AV_NOPTS_VALUE && packet->pts < packet->dts)
        packet->pts = packet->dts;
}

static bool write_one(struct muxed_copies *copies, AVFormatContext *out, struct error *error)
{
    AVPacket *packet = copies->packet;
    const AVStream *in = copies->source->streams[packet->stream_index];
    struct copied_stream *copied = &copies->streams[packet->stream_index];
    const AVRational tick = out->streams[copied->out]->time_base;
    const int64_t origin = lib.av_rescale_q(copies->origin_us, AV_TIME_BASE_Q, in->time_base);

    copies->waiting = false;
    copies->expected -= copied->is_picture;
    if (packet->pts != AV_NOPTS_VALUE)
        packet->pts -= origin;
    if (packet->dts != AV_NOPTS_VALUE)
        packet->dts -= origin;
    lib.av_packet_rescale_ts(packet, in->time_base, tick);
    packet->stream_index = copied->out;
    packet->pos = -1;
    keep_order(packet, out, &copied->last_dts);
    int code = lib.av_interleaved_write_frame(out, packet);

    return code >= 0 || libav_fail("cannot be written", code, error);
}

bool muxed_copies_write(struct muxed_copies *copies, AVFormatContext *out, int64_t until_us,
                        struct error *error)
{
    while (copies->count && fetch(copies, error)) {
        if (!copies->waiting)
            return true;
        int64_t due_us, shown_us;
        packet_times(copies, &due_us, &shown_us);
        if (due_us >= until_us && until_us != INT64_MAX)
            return true;
        if (!is_wanted(copies)) { /* the end has become known after it was read */
            copies->waiting = false;
            lib.av_packet_unref(copies->packet);
        } else if (!write_one(copies, out, error)) {
            return false;
        }
    }

    return !copies->count;
}

/* --- Beginning and end ------------------------------------------------------------------------ */

struct muxed_copies *muxed_copies_open(const struct muxed_params *params, struct error *error)
{
    struct muxed_copies *copies = calloc(1, sizeof *copies);
    const AVCodec *decoder; /* so that the same video is found as for decoding */

    if (!copies) {
        error_set(error, "out of memory");
        return NULL;
    }
    copies->begin_us = copies->end_us = AV_NOPTS_VALUE;
    copies->source = libav_open_container(params->source, LIBAV_LOOK_PIXELS,
                                          (AVIOInterruptCB){NULL, NULL}, NULL, error);
    if (!copies->source)
        goto fail;
    copies->packet = lib.av_packet_alloc();
    copies->stream_count = copies->source->nb_streams;
    copies->streams = calloc(copies->stream_count + 1, sizeof *copies->streams);
    if (!copies->packet || !copies->streams || !read_titles(copies->source, params->source)) {
        error_set(error, "out of memory");
        goto fail;
    }
    copies->video = libav_choose_video(copies->source, params->stream, &decoder, error);
    if (copies->video < 0)
        goto fail;

    if (copies->source->iformat->flags & AVFMT_TS_DISCONT &&
        copies->source->start_time != AV_NOPTS_VALUE)
        copies->origin_us = copies->source->start_time;
    return copies;

fail:
    muxed_copies_close(&copies);
    return NULL;
}

void muxed_copies_close(struct muxed_copies **copies)
{
    if (!*copies)
        return;
    lib.av_packet_free(&(*copies)->packet);
    lib.avformat_close_input(&(*copies)->source);
    free((*copies)->streams);
    free(*copies);
    *copies = NULL;
}

int64_t muxed_copies_origin_us(const struct muxed_copies *copies)
{
    return copies->origin_us;
}

uint64_t muxed_copies_damaged(const struct muxed_copies *copies)
{
    return copies->damaged;
}

uint32_t muxed_copies_count(const struct muxed_copies *copies)
{
    return copies->count;
}

#endif
