/* The container of a finished file. Its bytes go to an outfile through libavformat's own buffer.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "finished.h"
#include "outfile.h"
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "finished_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Packets come in the order in which they are due, so that the muxer need not wait for streams with little in them. */
enum { BUFFER_BYTES = 1 << 18, APART_US = 1000000 };

struct finished_file {
    struct finished_params params;
    struct outfile *place;
    int fd; /* the outfile's */
    AVFormatContext *container;
    AVCodecContext *encoder; /* NULL = its packets are there already */
    AVRational tick;         /* of the video's times */
    AVStream *video;
    AVFrame *frame;
    AVPacket *packet;
    struct finished_copies *copies; /* NULL = there is no source */
    struct video_planes planes;
    int64_t last; /* the last frame's time, in the encoder's ticks; AV_NOPTS_VALUE = there was none */
    int64_t step; /* ticks from one frame to the next, where the stream does not say */
    uint64_t frames;
    bool begun; /* the header has been written */
    _Atomic uint64_t bytes;
};

/* --- Bytes -------------------------------------------------------------------------------------------------------- */

#if LIBAVFORMAT_VERSION_MAJOR >= 61
static int write_bytes(void *user, const uint8_t *bytes, int count)
#else
static int write_bytes(void *user, uint8_t *bytes, int count)
#endif
{
    struct finished_file *file = user;
    for (int done = 0; done < count;) {
        const ssize_t wrote = write(file->fd, bytes + done, (size_t)(count - done));
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return wrote ? AVERROR(errno) : AVERROR(EIO);
        done += (int)wrote;
    }
    atomic_fetch_add(&file->bytes, (uint64_t)count);
    return count;
}

static int64_t seek_bytes(void *user, int64_t offset, int whence)
{
    const struct finished_file *file = user;
    struct stat about;
    if (whence == AVSEEK_SIZE)
        return fstat(file->fd, &about) ? AVERROR(errno) : about.st_size;
    const off_t at = lseek(file->fd, (off_t)offset, whence & ~AVSEEK_FORCE);
    return at < 0 ? AVERROR(errno) : at;
}

static bool open_bytes(struct finished_file *file, const char *path, struct picture_error *error)
{
    if (!outfile_open(&file->place, path, error))
        return false;
    const bool special = outfile_is_special(file->place);
    if (special && strcmp(file->params.container, "matroska"))
        return picture_fail(error, "%s must be a file: its index is written last, and to the beginning",
                            file->params.container);
    file->fd = fileno(outfile_stream(file->place));
    uint8_t *buffer = lib.av_malloc(BUFFER_BYTES);
    file->container->pb = buffer ? lib.avio_alloc_context(buffer, BUFFER_BYTES, 1, file, NULL, write_bytes,
                                                          special ? NULL : seek_bytes)
                                 : NULL;
    if (file->container->pb)
        return true;
    lib.av_free(buffer);
    return picture_fail(error, "out of memory");
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

/* HEVC in MP4 goes by two names, of which some players know this one only. */
static void name_codec(struct finished_file *file)
{
    if (file->video->codecpar->codec_id == AV_CODEC_ID_HEVC && !strcmp(file->params.container, "mp4"))
        file->video->codecpar->codec_tag = MKTAG('h', 'v', 'c', '1');
}

static bool add_video(struct finished_file *file, struct picture_error *error)
{
    file->video = lib.avformat_new_stream(file->container, NULL);
    if (!file->video || lib.avcodec_parameters_from_context(file->video->codecpar, file->encoder) < 0)
        return picture_fail(error, "out of memory");
    file->video->time_base = file->encoder->time_base;
    file->video->avg_frame_rate = file->encoder->framerate;
    file->video->sample_aspect_ratio = file->encoder->sample_aspect_ratio;
    file->video->disposition = AV_DISPOSITION_DEFAULT;
    name_codec(file);
    return true;
}

static bool add_copies(struct finished_file *file, struct picture_error *error)
{
    if (!file->params.source)
        return true;
    file->copies = finished_copies_open(file->params.source, error);
    if (!file->copies || !finished_copies_add(file->copies, file->container, &file->params, error))
        return false;
    finished_copies_describe(file->copies, file->container, file->video);
    return true;
}

static bool open_all(struct finished_file *file, const char *path, const struct video_format *format,
                     struct picture_error *error)
{
    if (!video_planes_of(&file->planes, &format->pixel, format->width, format->height, error))
        return false;
    if (lib.avformat_alloc_output_context2(&file->container, NULL, file->params.container, NULL) < 0)
        return picture_fail(error, "this libavformat cannot write %s", file->params.container);
    file->container->max_interleave_delta = APART_US;
    file->encoder = finished_open_encoder(file->container->oformat, &file->params, format, error);
    if (!file->encoder)
        return false;
    file->tick = file->encoder->time_base;
    file->step = lib.av_rescale_q(1, av_inv_q(file->encoder->framerate), file->tick);
    if (file->step < 1)
        file->step = 1;
    file->frame = lib.av_frame_alloc();
    file->packet = lib.av_packet_alloc();
    if (!file->frame || !file->packet)
        return picture_fail(error, "out of memory");
    return add_video(file, error) && open_bytes(file, path, error) && add_copies(file, error);
}

static void free_all(struct finished_file *file)
{
    AVIOContext *bytes = file->container ? file->container->pb : NULL;
    finished_copies_close(&file->copies);
    lib.av_packet_free(&file->packet);
    lib.av_frame_free(&file->frame);
    lib.avcodec_free_context(&file->encoder);
    lib.avformat_free_context(file->container);
    if (bytes)
        lib.av_freep(&bytes->buffer);
    lib.avio_context_free(&bytes);
    free(file);
}

bool finished_open(struct finished_file **out, const char *path, const struct finished_params *params,
                   const struct video_format *format, struct picture_error *error)
{
    *out = NULL;
    if (!libav_load())
        return picture_fail(error, "containers cannot be written: %s", libav_loading_error);
    struct finished_file *file = calloc(1, sizeof *file);
    if (!file)
        return picture_fail(error, "out of memory");
    file->params = *params;
    file->last = AV_NOPTS_VALUE;
    if (!open_all(file, path, format, error)) {
        finished_abandon(&file);
        return false;
    }
    *out = file;
    return true;
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static int64_t microseconds(const struct finished_file *file, int64_t ticks)
{
    return lib.av_rescale_q(ticks, file->tick, AV_TIME_BASE_Q);
}

/* With the first frame's time it is known what lies before the part that is written. */
static bool begin(struct finished_file *file, int64_t first, struct picture_error *error)
{
    const struct finished_params *params = &file->params;
    const int64_t begin_us = params->start ? microseconds(file, first) : AV_NOPTS_VALUE;
    const int64_t end_us = params->frames ? microseconds(file, first + file->step * (int64_t)params->frames)
                                          : AV_NOPTS_VALUE;
    if (file->copies) {
        finished_copies_begin(file->copies, begin_us);
        if (!finished_copies_chapters(file->copies, file->container, begin_us, end_us))
            return picture_fail(error, "out of memory");
    }
    if (params->piece)
        lib.av_dict_set(&file->container->metadata, "COXSWAIN_PIECE", params->piece, 0);
    const int code = lib.avformat_write_header(file->container, NULL);
    file->begun = code >= 0;
    return file->begun || libav_fail("cannot be begun", code, error);
}

/* A packet, in the video's ticks, behind those that are due before it. */
static bool write_packet(struct finished_file *file, AVPacket *packet, struct picture_error *error)
{
    if (file->copies && !finished_copies_write(file->copies, file->container, microseconds(file, packet->dts), error))
        return false;
    lib.av_packet_rescale_ts(packet, file->tick, file->video->time_base);
    packet->stream_index = file->video->index;
    const int code = lib.av_interleaved_write_frame(file->container, packet);
    return code >= 0 || libav_fail("cannot be written", code, error);
}

/* What the encoder has ready. */
static bool take_packets(struct finished_file *file, struct picture_error *error)
{
    int code;
    while (!(code = lib.avcodec_receive_packet(file->encoder, file->packet)))
        if (!write_packet(file, file->packet, error))
            return false;
    return code == AVERROR(EAGAIN) || code == AVERROR_EOF || libav_fail("cannot be encoded", code, error);
}

/* The encoder may still have the last frame's memory. */
static bool ready_frame(struct finished_file *file)
{
    AVFrame *frame = file->frame;
    const AVCodecContext *encoder = file->encoder;
    if (frame->data[0] && lib.av_frame_is_writable(frame))
        return true;
    lib.av_frame_unref(frame);
    frame->width = encoder->width;
    frame->height = encoder->height;
    frame->format = encoder->pix_fmt;
    frame->color_primaries = encoder->color_primaries;
    frame->color_trc = encoder->color_trc;
    frame->colorspace = encoder->colorspace;
    frame->color_range = encoder->color_range;
    frame->chroma_location = encoder->chroma_sample_location;
    frame->sample_aspect_ratio = encoder->sample_aspect_ratio;
    return lib.av_frame_get_buffer(frame, 0) >= 0;
}

/* Its time in the file; a frame without one follows the last one, and none comes before it. */
static int64_t time_of(const struct finished_file *file, int64_t time)
{
    const int64_t last = file->last;
    if (time == VIDEO_NO_TIME)
        return last == AV_NOPTS_VALUE ? 0 : last + file->step;
    if (file->copies)
        time -= lib.av_rescale_q(finished_copies_origin_us(file->copies), AV_TIME_BASE_Q, file->tick);
    return last != AV_NOPTS_VALUE && time <= last ? last + 1 : time;
}

bool finished_write(struct finished_file *file, const void *const planes[COX_VIDEO_PLANES_MAX],
                    const size_t pitch_bytes[COX_VIDEO_PLANES_MAX], int64_t time, struct picture_error *error)
{
    if (!ready_frame(file))
        return picture_fail(error, "out of memory");
    AVFrame *frame = file->frame;
    for (uint32_t p = 0; p < file->planes.count; p++)
        for (uint32_t row = 0; row < file->planes.plane[p].rows; row++)
            memcpy(frame->data[p] + (ptrdiff_t)row * frame->linesize[p],
                   (const uint8_t *)planes[p] + row * pitch_bytes[p], file->planes.plane[p].row_bytes);
    frame->pts = time_of(file, time);
    if (!file->begun && !begin(file, frame->pts, error))
        return false;
    file->last = frame->pts;
    file->frames++;
    const int code = lib.avcodec_send_frame(file->encoder, frame);
    return code < 0 ? libav_fail("cannot be encoded", code, error) : take_packets(file, error);
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

static bool end_all(struct finished_file *file, struct picture_error *error)
{
    if (!file->begun)
        return picture_fail(error, "there are no frames");
    if (file->copies && file->params.frames && file->frames == file->params.frames)
        finished_copies_end(file->copies, microseconds(file, file->last + file->step));
    int code = file->encoder ? lib.avcodec_send_frame(file->encoder, NULL) : 0;
    if (code < 0)
        return libav_fail("cannot be encoded", code, error);
    if ((file->encoder && !take_packets(file, error)) ||
        (file->copies && !finished_copies_write(file->copies, file->container, INT64_MAX, error)))
        return false;
    code = lib.av_write_trailer(file->container);
    lib.avio_flush(file->container->pb);
    if (code >= 0)
        code = file->container->pb->error;
    return code >= 0 || libav_fail("cannot be written", code, error);
}

bool finished_finish(struct finished_file **out, uint64_t *bytes, struct picture_error *error)
{
    struct finished_file *file = *out;
    const bool ended = end_all(file, error);
    *bytes = finished_bytes(file);
    if (!ended) {
        finished_abandon(out);
        return false;
    }
    *out = NULL;
    struct outfile *place = file->place;
    free_all(file);
    return outfile_finish(&place, error);
}

void finished_abandon(struct finished_file **out)
{
    struct finished_file *file = *out;
    if (!file)
        return;
    *out = NULL;
    outfile_abandon(&file->place);
    file->fd = -1; /* what libavformat may still want to write goes nowhere */
    free_all(file);
}

uint64_t finished_bytes(const struct finished_file *file)
{
    return atomic_load(&file->bytes);
}

uint32_t finished_copied(const struct finished_file *file)
{
    return file->copies ? finished_copies_count(file->copies) : 0;
}

const char *finished_encoder(const struct finished_file *file)
{
    return file->encoder->codec->name;
}

/* --- Pieces ------------------------------------------------------------------------------------------------------- */

/* The times of all packets, in the order of the file and in that of showing. Packets are written with decoding times
 * made of these: pieces begin theirs anew, and some containers keep none. */
struct join_times {
    int64_t *coded, *shown;
    uint64_t count, capacity;
    uint64_t late; /* so many frames may a packet come before its frame's turn */
};

static bool note_time(struct join_times *times, int64_t time)
{
    if (times->count == times->capacity) {
        const uint64_t capacity = times->capacity ? times->capacity * 2 : 4096;
        int64_t *coded = realloc(times->coded, capacity * sizeof *coded);
        if (coded)
            times->coded = coded;
        if (!coded)
            return false;
        times->capacity = capacity;
    }
    times->coded[times->count++] = time;
    return true;
}

static int by_time(const void *a, const void *b)
{
    const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

/* By how many frames the order of coding runs ahead of that of showing. False: two frames have the same time. */
static bool order_times(struct join_times *times)
{
    times->shown = times->count ? malloc(times->count * sizeof *times->shown) : NULL;
    if (!times->shown)
        return !times->count;
    memcpy(times->shown, times->coded, times->count * sizeof *times->shown);
    qsort(times->shown, times->count, sizeof *times->shown, by_time);
    for (uint64_t i = 0; i < times->count; i++) {
        const int64_t *place = bsearch(&times->coded[i], times->shown, times->count, sizeof *times->shown, by_time);
        const uint64_t rank = (uint64_t)(place - times->shown);
        if (i > rank && i - rank > times->late)
            times->late = i - rank;
        if (i && times->shown[i] == times->shown[i - 1])
            return false;
    }
    return true;
}

static int64_t decoding_time(const struct join_times *times, uint64_t i)
{
    const int64_t step = times->count > 1 ? times->shown[1] - times->shown[0] : 1;
    return i >= times->late ? times->shown[i - times->late] : times->shown[0] - step * (int64_t)(times->late - i);
}

/* The next NAL unit of an hvcC (ISO/IEC 14496-15) that is no SEI; false: there is none. In those x265 says what it ran
 * on. `*left` counts the units of the array at hand. */
static bool next_unit(const uint8_t *bytes, size_t count, size_t *at, unsigned *left, unsigned *type,
                      const uint8_t **unit, size_t *length)
{
    for (;;) {
        for (; !*left; *at += 3) {
            if (*at + 3 > count)
                return false;
            *type = bytes[*at] & 0x3f;
            *left = (unsigned)bytes[*at + 1] << 8 | bytes[*at + 2];
        }
        if (*at + 2 > count)
            return false;
        *length = (size_t)bytes[*at] << 8 | bytes[*at + 1];
        *unit = bytes + *at + 2;
        if (*at + 2 + *length > count)
            return false;
        *at += 2 + *length;
        --*left;
        if (*type != 39 && *type != 40)
            return true;
    }
}

static bool same_hvcc(const AVCodecParameters *a, const AVCodecParameters *b)
{
    enum { HEAD_BYTES = 23 };
    const size_t counts[] = {(size_t)a->extradata_size, (size_t)b->extradata_size};
    size_t at[] = {HEAD_BYTES, HEAD_BYTES}, length[2] = {0};
    unsigned left[2] = {0}, type[2] = {0};
    const uint8_t *unit[2] = {NULL};
    if (counts[0] < HEAD_BYTES || counts[1] < HEAD_BYTES || a->extradata[0] != 1 || b->extradata[0] != 1 ||
        memcmp(a->extradata, b->extradata, HEAD_BYTES - 1) != 0)
        return false;
    for (;;) {
        const bool one = next_unit(a->extradata, counts[0], &at[0], &left[0], &type[0], &unit[0], &length[0]);
        const bool other = next_unit(b->extradata, counts[1], &at[1], &left[1], &type[1], &unit[1], &length[1]);
        if (!one || !other)
            return one == other;
        if (type[0] != type[1] || length[0] != length[1] || memcmp(unit[0], unit[1], length[0]) != 0)
            return false;
    }
}

static bool same_coding(const AVCodecParameters *a, const AVCodecParameters *b)
{
    const bool same = a->extradata_size == b->extradata_size &&
                      (!a->extradata_size || !memcmp(a->extradata, b->extradata, (size_t)a->extradata_size));
    return a->codec_id == b->codec_id && a->width == b->width && a->height == b->height && a->format == b->format &&
           (same || (a->codec_id == AV_CODEC_ID_HEVC && same_hvcc(a, b)));
}

/* Open a piece; its only stream is the video. NULL: `error` says why. */
static AVFormatContext *open_piece(const struct finished_file *file, const char *path, struct picture_error *error)
{
    AVFormatContext *piece = libav_open_container(path, (AVIOInterruptCB){NULL, NULL}, error);
    if (!piece)
        return NULL;
    const bool video = piece->nb_streams == 1 && piece->streams[0]->codecpar->codec_type == AVMEDIA_TYPE_VIDEO;
    if (video && (!file->video || same_coding(file->video->codecpar, piece->streams[0]->codecpar)))
        return piece;
    picture_fail(error, video ? "it is encoded otherwise than the pieces before it: by another encoder or with other "
                                "settings"
                              : "it is no piece: a piece is one stream of video");
    lib.avformat_close_input(&piece);
    return NULL;
}

/* What the file's video is, as the first piece says. */
static bool add_joined(struct finished_file *file, const char *path, struct picture_error *error)
{
    AVFormatContext *piece = open_piece(file, path, error);
    if (!piece)
        return false;
    const AVStream *from = piece->streams[0];
    AVStream *video = lib.avformat_new_stream(file->container, NULL);
    const bool good = video && lib.avcodec_parameters_copy(video->codecpar, from->codecpar) >= 0;
    if (good) {
        video->codecpar->codec_tag = 0;
        video->time_base = file->tick = from->time_base;
        video->avg_frame_rate = from->avg_frame_rate;
        video->sample_aspect_ratio = from->sample_aspect_ratio;
        video->disposition = AV_DISPOSITION_DEFAULT;
        file->video = video;
        name_codec(file);
    }
    lib.avformat_close_input(&piece);
    return good || picture_fail(error, "out of memory");
}

/* Read a piece: note its packets' times, or, where all are known, write them. */
static bool read_piece(struct finished_file *file, const char *path, struct join_times *times, uint64_t *written,
                       struct picture_error *error)
{
    AVFormatContext *piece = open_piece(file, path, error);
    bool good = piece != NULL;
    int code = 0;
    while (good && (code = lib.av_read_frame(piece, file->packet)) >= 0) {
        AVPacket *packet = file->packet;
        lib.av_packet_rescale_ts(packet, piece->streams[0]->time_base, file->tick);
        if (packet->pts == AV_NOPTS_VALUE)
            good = picture_fail(error, "a frame has no time");
        else if (!written)
            good = note_time(times, packet->pts) || picture_fail(error, "out of memory");
        else if (*written >= times->count || packet->pts != times->coded[*written])
            good = picture_fail(error, "it has changed meanwhile");
        else {
            const int64_t origin = file->copies ? lib.av_rescale_q(finished_copies_origin_us(file->copies),
                                                                   AV_TIME_BASE_Q, file->tick)
                                                : 0;
            packet->dts = decoding_time(times, (*written)++) - origin;
            packet->pts -= origin;
            packet->pos = -1;
            good = write_packet(file, packet, error);
        }
        lib.av_packet_unref(packet);
    }
    if (good && code != AVERROR_EOF)
        good = libav_fail("cannot be read", code, error);
    if (piece)
        lib.avformat_close_input(&piece);
    return good;
}

static bool join_all(struct finished_file *file, const char *path, const char *const pieces[], uint32_t count,
                     struct join_times *times, struct picture_error *error)
{
    uint64_t written = 0;
    struct picture_error why = {""};
    if (lib.avformat_alloc_output_context2(&file->container, NULL, file->params.container, NULL) < 0)
        return picture_fail(error, "this libavformat cannot write %s", file->params.container);
    file->container->max_interleave_delta = APART_US;
    file->packet = lib.av_packet_alloc();
    if (!file->packet)
        return picture_fail(error, "out of memory");
    bool good = add_joined(file, pieces[0], &why);
    if (!good)
        return picture_fail(error, "%s: %s", pieces[0], why.text);
    if (!open_bytes(file, path, error) || !add_copies(file, error))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!read_piece(file, pieces[i], times, NULL, &why))
            return picture_fail(error, "%s: %s", pieces[i], why.text);
    if (!order_times(times))
        return picture_fail(error, "two frames of the pieces have the same time");
    file->step = times->count > 1 ? times->shown[1] - times->shown[0] : 1;
    if (times->count != file->params.frames)
        return picture_fail(error, "the pieces have %" PRIu64 " frames, and not %" PRIu64 " as they say", times->count,
                            file->params.frames);
    file->params.start = file->params.frames = 0; /* it is the whole */
    if (!times->count)
        return picture_fail(error, "there are no frames");
    if (!begin(file, times->shown[0], error))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!read_piece(file, pieces[i], times, &written, &why))
            return picture_fail(error, "%s: %s", pieces[i], why.text);
    return true;
}

bool finished_join(const char *path, const struct finished_params *params, const char *const pieces[], uint32_t count,
                   uint64_t *bytes, struct picture_error *error)
{
    struct join_times times = {0};
    if (!libav_load())
        return picture_fail(error, "containers cannot be written: %s", libav_loading_error);
    struct finished_file *file = calloc(1, sizeof *file);
    if (!file)
        return picture_fail(error, "out of memory");
    file->params = *params;
    const bool good = join_all(file, path, pieces, count, &times, error) && finished_finish(&file, bytes, error);
    finished_abandon(&file);
    free(times.coded);
    free(times.shown);
    return good;
}

#else

bool finished_open(struct finished_file **out, const char *path, const struct finished_params *params,
                   const struct video_format *format, struct picture_error *error)
{
    (void)path, (void)params, (void)format;
    *out = NULL;
    return picture_fail(error, "this program was built without libavformat, which writes such files: y4m can be given "
                               "to an encoder");
}

bool finished_write(struct finished_file *file, const void *const planes[COX_VIDEO_PLANES_MAX],
                    const size_t pitch_bytes[COX_VIDEO_PLANES_MAX], int64_t time, struct picture_error *error)
{
    (void)file, (void)planes, (void)pitch_bytes, (void)time;
    return picture_fail(error, "this program was built without libavformat");
}

bool finished_join(const char *path, const struct finished_params *params, const char *const pieces[], uint32_t count,
                   uint64_t *bytes, struct picture_error *error)
{
    (void)path, (void)params, (void)pieces, (void)count, (void)bytes;
    return picture_fail(error, "this program was built without libavformat, which joins such files");
}

bool finished_finish(struct finished_file **file, uint64_t *bytes, struct picture_error *error)
{
    *file = NULL;
    *bytes = 0;
    return picture_fail(error, "this program was built without libavformat");
}

void finished_abandon(struct finished_file **file)
{
    *file = NULL;
}

uint64_t finished_bytes(const struct finished_file *file)
{
    (void)file;
    return 0;
}

uint32_t finished_copied(const struct finished_file *file)
{
    (void)file;
    return 0;
}

const char *finished_encoder(const struct finished_file *file)
{
    (void)file;
    return "";
}

#endif
