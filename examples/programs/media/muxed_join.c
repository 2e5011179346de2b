/* Joins pieces of a film that were encoded separately: their packets get new decoding times.
 * SPDX-License-Identifier: Apache-2.0 */
#include "muxed.h"

#if COX_HAVE_LIBAV

#include "muxed_parts.h"
#include "libav_index.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The error_set of pieces that cannot be joined. */
__attribute__((format(printf, 3, 4))) static bool fail_misfit(struct muxed_file *file,
                                                              struct error *error,
                                                              const char *format, ...)
{
    char text[sizeof error->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    file->misfit = true;
    return error_set(error, "%s", text);
}

/* --- Times ------------------------------------------------------------------------------------ */

/* The times of all packets, in the order of the file and in that of presentation. New decoding
 * times are made from these: those of a piece start at its own beginning, and some containers keep
 * none. */
struct join_times {
    int64_t *coded, *shown;
    uint64_t count, capacity;
    uint64_t late; /* the most frames by which a packet comes after its frame's presentation */
    int64_t step;  /* from the first frame to the second */
};

static bool note_time(struct join_times *times, int64_t time)
{
    if (times->count == times->capacity) {
        const uint64_t capacity = times->capacity ? times->capacity * 2 : 4096;
        int64_t *coded = realloc(times->coded, capacity * sizeof *coded);
        if (!coded)
            return false;
        times->coded = coded;
        times->capacity = capacity;
    }

    times->coded[times->count++] = time;
    return true;
}

static bool order_times(struct muxed_file *file, struct join_times *times, struct error *error)
{
    times->shown = calloc(times->count + 1, sizeof *times->shown);
    if (!times->shown)
        return error_set(error, "out of memory");
    if (times->count)
        memcpy(times->shown, times->coded, times->count * sizeof *times->shown);
    if (!libav_times_sort(times->shown, times->count))
        return fail_misfit(file, error, "two frames of the pieces have the same time stamp");

    times->step = 1;
    if (times->count > 1)
        times->step = times->shown[1] - times->shown[0];
    for (uint64_t i = 0; i < times->count; i++) {
        const uint64_t turn = libav_times_find(times->shown, times->count, times->coded[i]);
        if (i > turn && i - turn > times->late)
            times->late = i - turn;
    }

    return true;
}

static int64_t decoding_time(const struct join_times *times, uint64_t i)
{
    if (i >= times->late)
        return times->shown[i - times->late];
    return times->shown[0] - times->step * (int64_t)(times->late - i);
}

/* --- Pieces ----------------------------------------------------------------------------------- */

/* The next NAL unit of an hvcC (ISO/IEC 14496-15). SEI units are skipped: x265 writes the machine
 * that it ran on into them. `*left` counts the NAL units left in the current array. False: there
 * are no more. */
static bool next_unit(const uint8_t *bytes, size_t count, size_t *at, unsigned *left,
                      unsigned *type, const uint8_t **unit, size_t *length)
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

    if (counts[0] < HEAD_BYTES || counts[1] < HEAD_BYTES || a->extradata[0] != 1 ||
        b->extradata[0] != 1 || memcmp(a->extradata, b->extradata, HEAD_BYTES - 1) != 0)
        return false;

    for (;;) {
        const bool one = next_unit(a->extradata, counts[0], &at[0], &left[0], &type[0], &unit[0],
                                   &length[0]);
        const bool other = next_unit(b->extradata, counts[1], &at[1], &left[1], &type[1], &unit[1],
                                     &length[1]);
        if (!one || !other)
            return one == other;
        if (type[0] != type[1] || length[0] != length[1] ||
            memcmp(unit[0], unit[1], length[0]) != 0)
            return false;
    }
}

static bool same_coding(const AVCodecParameters *a, const AVCodecParameters *b)
{
    const bool same = a->extradata_size == b->extradata_size &&
                      (!a->extradata_size ||
                       !memcmp(a->extradata, b->extradata, (size_t)a->extradata_size));
    return a->codec_id == b->codec_id && a->width == b->width && a->height == b->height &&
           a->format == b->format && (same || (a->codec_id == AV_CODEC_ID_HEVC && same_hvcc(a, b)));
}

/* Open a piece; its only stream is the video. NULL: `error` says why. */
static AVFormatContext *open_piece(struct muxed_file *file, const char *path, struct error *error)
{
    AVFormatContext *piece = libav_open_container(path, LIBAV_LOOK_PIXELS,
                                                  (AVIOInterruptCB){NULL, NULL}, NULL, error);
    if (!piece)
        return NULL;

    const bool video = piece->nb_streams == 1 &&
                       piece->streams[0]->codecpar->codec_type == AVMEDIA_TYPE_VIDEO;
    if (video && (!file->video || same_coding(file->video->codecpar, piece->streams[0]->codecpar)))
        return piece;
    if (video)
        fail_misfit(file, error,
                    "its encoder or encoder settings differ from the pieces before it");
    else
        fail_misfit(file, error, "not a piece: a piece has one video stream");

    lib.avformat_close_input(&piece);
    return NULL;
}

/* Describe the file's video as the first piece does. */
static bool add_joined(struct muxed_file *file, const char *path, struct error *error)
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
        file->video = video;
    }

    lib.avformat_close_input(&piece);
    return good || error_set(error, "out of memory");
}

/* Read a piece: note its packets' times if `written` is NULL, else write them. */
static bool read_piece(struct muxed_file *file, const char *path, struct join_times *times,
                       uint64_t *written, struct error *error)
{
    struct error why = {""};
    AVFormatContext *piece = open_piece(file, path, &why);
    bool good = piece != NULL;
    int code = 0;

    while (good && (code = lib.av_read_frame(piece, file->packet)) >= 0) {
        AVPacket *packet = file->packet;
        lib.av_packet_rescale_ts(packet, piece->streams[0]->time_base, file->tick);
        if (packet->pts == AV_NOPTS_VALUE)
            good = fail_misfit(file, &why, "a frame has no time stamp");
        else if (!written)
            good = note_time(times, packet->pts) || error_set(&why, "out of memory");
        else if (*written >= times->count || packet->pts != times->coded[*written])
            good = error_set(&why, "it changed while it was being joined");
        else {
            const int64_t origin = muxed_origin(file);
            packet->dts = decoding_time(times, (*written)++) - origin;
            packet->pts -= origin;
            packet->pos = -1;
            good = muxed_write_packet(file, packet, error);
        }
        lib.av_packet_unref(packet);
    }

    if (good && code != AVERROR_EOF)
        good = libav_fail("cannot be read", code, &why);
    if (piece)
        lib.avformat_close_input(&piece);
    if (*why.text)
        return error_set(error, "%s: %s", path, why.text);

    return good;
}

static bool join_all(struct muxed_file *file, const char *path, const char *const pieces[],
                     uint32_t count, struct join_times *times, struct error *error)
{
    uint64_t written = 0;
    struct error why = {""};
    if (!add_joined(file, pieces[0], &why))
        return error_set(error, "%s: %s", pieces[0], why.text);
    if (!muxed_open_place(file, path, error))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!read_piece(file, pieces[i], times, NULL, error))
            return false;

    if (!order_times(file, times, error))
        return false;
    file->step = times->step;
    if (times->count != file->params.frames)
        return fail_misfit(file, error,
                           "the pieces have %" PRIu64 " frames, but their headers say %" PRIu64,
                           times->count, file->params.frames);
    file->params.start = file->params.frames = 0; /* it is the whole film */
    if (!times->count)
        return fail_misfit(file, error, "the pieces have no frames");
    if (!muxed_begin(file, times->shown[0], error))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!read_piece(file, pieces[i], times, &written, error))
            return false;

    return true;
}

bool muxed_join(const char *path, const struct muxed_params *params, const char *const pieces[],
                uint32_t count, struct muxed_written *written, bool *misfit, struct error *error)
{
    struct join_times times = {0};
    struct muxed_file *file = muxed_new(params, error);
    const bool joined = file && join_all(file, path, pieces, count, &times, error);

    *misfit = file && file->misfit;
    const bool good = joined && muxed_finish(&file, written, error);
    muxed_abandon(&file);
    free(times.coded);
    free(times.shown);
    return good;
}

#else

bool muxed_join(const char *path, const struct muxed_params *params, const char *const pieces[],
                uint32_t count, struct muxed_written *written, bool *misfit, struct error *error)
{
    (void)path, (void)params, (void)pieces, (void)count, (void)written;
    *misfit = false;
    return error_set(error,
                     "this program was built without libavformat, which joins .mkv and .mp4");
}

#endif
