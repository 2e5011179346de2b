/* The muxed file's container. Its bytes go to an outfile through libavformat's own buffer.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "muxed.h"

#if COX_HAVE_LIBAV

#include "libav_encoding.h"
#include "muxed_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Packets are written in the order in which they are due: the muxer need not wait for streams with
 * few packets. */
enum { BUFFER_BYTES = 1 << 18, APART_US = 1000000 };

/* --- Bytes ------------------------------------------------------------------------------------ */

/* Muxers ignore some errors, such as those of a seek back to the header. muxed_finish does not. */
static int fail_bytes(struct muxed_file *file, int failure)
{
    if (!file->failure)
        file->failure = failure;
    return AVERROR(failure);
}

#if LIBAVFORMAT_VERSION_MAJOR >= 61
static int write_bytes(void *user, const uint8_t *bytes, int count)
#else
static int write_bytes(void *user, uint8_t *bytes, int count)
#endif
{
    struct muxed_file *file = user;

    for (int done = 0; done < count;) {
        const ssize_t wrote = write(file->fd, bytes + done, (size_t)(count - done));
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return fail_bytes(file, wrote < 0 ? errno : EIO);
        done += (int)wrote;
    }
    atomic_fetch_add(&file->bytes, (uint64_t)count);
    return count;
}

static int64_t seek_bytes(void *user, int64_t offset, int whence)
{
    struct muxed_file *file = user;
    struct stat about;
    off_t at = -1;

    if (whence != AVSEEK_SIZE)
        at = lseek(file->fd, (off_t)offset, whence & ~AVSEEK_FORCE);
    else if (!fstat(file->fd, &about))
        at = about.st_size;
    return at < 0 ? fail_bytes(file, errno) : at;
}

static bool open_bytes(struct muxed_file *file, const char *path, struct error *error)
{
    if (!outfile_open(&file->place, path, error))
        return false;
    if (file->params.keep_existing)
        outfile_keep_existing(file->place);
    const bool special = outfile_is_special(file->place);
    if (special && strcmp(file->params.container, "matroska"))
        return error_set(error,
                         "%s must be written to a regular file, because its index is written last",
                         file->params.container);
    file->fd = fileno(outfile_stream(file->place));

    uint8_t *buffer = lib.av_malloc(BUFFER_BYTES);
    if (buffer)
        file->container->pb = lib.avio_alloc_context(buffer, BUFFER_BYTES, 1, file, NULL,
                                                     write_bytes, special ? NULL : seek_bytes);

    if (file->container->pb)
        return true;
    lib.av_free(buffer);
    return error_set(error, "out of memory");
}

/* --- Opening ---------------------------------------------------------------------------------- */

static bool add_video(struct muxed_file *file, struct error *error)
{
    file->video = lib.avformat_new_stream(file->container, NULL);
    if (!file->video ||
        lib.avcodec_parameters_from_context(file->video->codecpar, file->encoder) < 0)
        return error_set(error, "out of memory");

    file->video->time_base = file->encoder->time_base;
    file->video->avg_frame_rate = file->encoder->framerate;
    file->video->sample_aspect_ratio = file->encoder->sample_aspect_ratio;
    return true;
}

bool muxed_open_place(struct muxed_file *file, const char *path, struct error *error)
{
    AVCodecParameters *parameters = file->video->codecpar;
    file->video->disposition = AV_DISPOSITION_DEFAULT;
    /* Some players do not know the other name, hev1. */
    if (parameters->codec_id == AV_CODEC_ID_HEVC && !strcmp(file->params.container, "mp4"))
        parameters->codec_tag = MKTAG('h', 'v', 'c', '1');
    if (!open_bytes(file, path, error))
        return false;
    if (!file->params.source)
        return true;

    file->copies = muxed_copies_open(&file->params, error);
    if (!file->copies || !muxed_copies_add(file->copies, file->container, &file->params, error))
        return false;
    return muxed_copies_describe(file->copies, file->container, file->video) ||
           error_set(error, "out of memory");
}

static bool open_all(struct muxed_file *file, const char *path, const struct video_format *format,
                     struct error *error)
{
    if (!video_planes_of(&file->planes, &format->pixel, format->width, format->height, error))
        return false;
    file->encoder = muxed_open_encoder(file->container->oformat, &file->params, format, error);
    if (!file->encoder)
        return false;

    file->tick = file->encoder->time_base;
    file->step = lib.av_rescale_q(1, av_inv_q(file->encoder->framerate), file->tick);
    if (file->step < 1)
        file->step = 1;
    file->frame = lib.av_frame_alloc();
    if (!file->frame)
        return error_set(error, "out of memory");
    return add_video(file, error) && muxed_open_place(file, path, error);
}

static void free_all(struct muxed_file *file)
{
    AVIOContext *bytes = NULL;
    if (file->container)
        bytes = file->container->pb;

    muxed_copies_close(&file->copies);
    lib.av_packet_free(&file->packet);
    lib.av_frame_free(&file->frame);
    lib.avcodec_free_context(&file->encoder);
    lib.avformat_free_context(file->container);
    if (bytes)
        lib.av_freep(&bytes->buffer);
    lib.avio_context_free(&bytes);
    free(file);
}

struct muxed_file *muxed_new(const struct muxed_params *params, struct error *error)
{
    if (!libav_load()) {
        error_set(error, "containers cannot be written: %s", libav_loading_error);
        return NULL;
    }

    struct muxed_file *file = calloc(1, sizeof *file);
    if (!file) {
        error_set(error, "out of memory");
        return NULL;
    }
    file->params = *params;
    file->last = AV_NOPTS_VALUE;
    file->packet = lib.av_packet_alloc();
    if (lib.avformat_alloc_output_context2(&file->container, NULL, params->container, NULL) < 0)
        error_set(error, "this version of libavformat cannot write %s", params->container);
    else if (!file->packet)
        error_set(error, "out of memory");
    else {
        file->container->max_interleave_delta = APART_US;
        return file;
    }

    muxed_abandon(&file);
    return NULL;
}

bool muxed_open(struct muxed_file **out, const char *path, const struct muxed_params *params,
                const struct video_format *format, struct error *error)
{
    *out = muxed_new(params, error);
    if (*out && !open_all(*out, path, format, error))
        muxed_abandon(out);
    return *out;
}

/* --- Writing ---------------------------------------------------------------------------------- */

static int64_t microseconds(const struct muxed_file *file, int64_t ticks)
{
    return lib.av_rescale_q(ticks, file->tick, AV_TIME_BASE_Q);
}

bool muxed_begin(struct muxed_file *file, int64_t first, struct error *error)
{
    const struct muxed_params *params = &file->params;
    int64_t begin_us = AV_NOPTS_VALUE, end_us = AV_NOPTS_VALUE;

    if (params->start)
        begin_us = microseconds(file, first);
    if (params->frames)
        end_us = microseconds(file, first + file->step * (int64_t)params->frames);

    if (file->copies) {
        muxed_copies_begin(file->copies, begin_us);
        if (!muxed_copies_chapters(file->copies, file->container, begin_us, end_us))
            return error_set(error, "out of memory");
    }
    if (params->piece &&
        lib.av_dict_set(&file->container->metadata, "COXSWAIN_PIECE", params->piece, 0) < 0)
        return error_set(error, "out of memory");
    const int code = lib.avformat_write_header(file->container, NULL);
    file->begun = code >= 0;
    return file->begun || libav_fail("cannot be started", code, error);
}

bool muxed_write_packet(struct muxed_file *file, AVPacket *packet, struct error *error)
{
    if (file->copies &&
        !muxed_copies_write(file->copies, file->container, microseconds(file, packet->dts), error))
        return false;
    lib.av_packet_rescale_ts(packet, file->tick, file->video->time_base);
    packet->stream_index = file->video->index;
    const int code = lib.av_interleaved_write_frame(file->container, packet);
    return code >= 0 || libav_fail("cannot be written", code, error);
}

/* Write the packets that the encoder has ready. */
static bool take_packets(struct muxed_file *file, struct error *error)
{
    int code;
    while (!(code = lib.avcodec_receive_packet(file->encoder, file->packet)))
        if (!muxed_write_packet(file, file->packet, error))
            return false;
    return code == AVERROR(EAGAIN) || code == AVERROR_EOF ||
           libav_fail("cannot be encoded", code, error);
}

static void describe_frame(AVFrame *frame, const AVCodecContext *encoder, int format)
{
    frame->width = encoder->width;
    frame->height = encoder->height;
    frame->format = format;
    frame->color_primaries = encoder->color_primaries;
    frame->color_trc = encoder->color_trc;
    frame->colorspace = encoder->colorspace;
    frame->color_range = encoder->color_range;
    frame->chroma_location = encoder->chroma_sample_location;
    frame->sample_aspect_ratio = encoder->sample_aspect_ratio;
}

/* Get memory for a frame, unless the encoder has given back the last one's. */
static bool ready_frame(struct muxed_file *file)
{
    AVFrame *frame = file->frame;
    if (frame->data[0] && lib.av_frame_is_writable(frame))
        return true;

    lib.av_frame_unref(frame);
    describe_frame(frame, file->encoder, file->encoder->pix_fmt);
    return lib.av_frame_get_buffer(frame, 0) >= 0;
}

/* Copy the planes to the frame that the encoder gets. */
static bool fill_frame(struct muxed_file *file, const void *const planes[],
                       const size_t pitch_bytes[], struct error *error)
{
    AVFrame *frame = file->frame;
    if (!ready_frame(file))
        return error_set(error, "out of memory");

    for (uint32_t p = 0; p < file->planes.count; p++)
        for (uint32_t row = 0; row < file->planes.plane[p].rows; row++)
            memcpy(frame->data[p] + (ptrdiff_t)row * frame->linesize[p],
                   (const uint8_t *)planes[p] + row * pitch_bytes[p],
                   file->planes.plane[p].row_bytes);
    return true;
}

/* Upload the planes, from where they are, to a frame of the encoder's device. */
static bool upload_frame(struct muxed_file *file, const void *const planes[],
                         const size_t pitch_bytes[], struct error *error)
{
    AVFrame *here = lib.av_frame_alloc();
    if (!here)
        return error_set(error, "out of memory");

    describe_frame(here, file->encoder, file->encoder->sw_pix_fmt);
    for (uint32_t p = 0; p < file->planes.count; p++) {
        here->data[p] = (uint8_t *)(uintptr_t)planes[p]; /* only read */
        here->linesize[p] = (int)pitch_bytes[p];
    }

    lib.av_frame_unref(file->frame);
    const int code = libav_encoder_upload(file->encoder, file->frame, here);
    lib.av_frame_free(&here);
    return code >= 0 || libav_fail("cannot be uploaded to the encoder's device", code, error);
}

int64_t muxed_origin(const struct muxed_file *file)
{
    if (!file->copies)
        return 0;
    return lib.av_rescale_q(muxed_copies_origin_us(file->copies), AV_TIME_BASE_Q, file->tick);
}

/* A frame's time in the file: later than the last frame's, whatever `time` says. Without a time,
 * the first frame of a piece is at its place in the film. */
static int64_t time_of(const struct muxed_file *file, int64_t time)
{
    const int64_t last = file->last;
    if (time == VIDEO_NO_TIME) {
        if (last != AV_NOPTS_VALUE)
            return last + file->step;
        if (file->params.piece)
            return file->step * (int64_t)file->params.start;
        return 0;
    }

    time -= muxed_origin(file);
    if (last != AV_NOPTS_VALUE && time <= last)
        time = last + 1;
    return time;
}

bool muxed_write(struct muxed_file *file, const void *const planes[COX_VIDEO_PLANES_MAX],
                 const size_t pitch_bytes[COX_VIDEO_PLANES_MAX], int64_t time, struct error *error)
{
    AVFrame *frame = file->frame;
    const bool filled = file->encoder->hw_frames_ctx
                            ? upload_frame(file, planes, pitch_bytes, error)
                            : fill_frame(file, planes, pitch_bytes, error);
    if (!filled)
        return false;

    frame->pts = time_of(file, time);
    if (!file->begun && !muxed_begin(file, frame->pts, error))
        return false;
    file->last = frame->pts;
    file->frames++;
    const int code = lib.avcodec_send_frame(file->encoder, frame);
    if (code < 0)
        return libav_fail("cannot be encoded", code, error);
    return take_packets(file, error);
}

/* --- The end ---------------------------------------------------------------------------------- */

static bool end_all(struct muxed_file *file, struct error *error)
{
    if (!file->begun)
        return error_set(error, "it has no frames");
    if (file->copies && file->params.frames && file->frames == file->params.frames)
        muxed_copies_end(file->copies, microseconds(file, file->last + file->step));

    if (file->encoder) {
        const int flushed = lib.avcodec_send_frame(file->encoder, NULL);
        if (flushed < 0)
            return libav_fail("cannot be encoded", flushed, error);
        if (!take_packets(file, error))
            return false;
    }
    if (file->copies && !muxed_copies_write(file->copies, file->container, INT64_MAX, error))
        return false;

    int code = lib.av_write_trailer(file->container);
    lib.avio_flush(file->container->pb);
    if (file->failure)
        code = AVERROR(file->failure);
    if (code >= 0)
        code = file->container->pb->error;
    return code >= 0 || libav_fail("cannot be written", code, error);
}

bool muxed_finish(struct muxed_file **out, struct muxed_written *written, struct error *error)
{
    struct muxed_file *file = *out;
    const bool ended = end_all(file, error);

    *written = (struct muxed_written){.bytes = muxed_bytes(file)};
    if (file->copies)
        written->damaged = muxed_copies_damaged(file->copies);
    if (!ended) {
        muxed_abandon(out);
        return false;
    }
    *out = NULL;
    struct outfile *place = file->place;
    free_all(file);
    return outfile_finish(&place, error);
}

void muxed_abandon(struct muxed_file **out)
{
    struct muxed_file *file = *out;
    if (!file)
        return;
    *out = NULL;
    outfile_abandon(&file->place);
    file->fd = -1; /* closed: what libavformat still writes now fails */
    free_all(file);
}

uint64_t muxed_bytes(const struct muxed_file *file)
{
    return atomic_load(&file->bytes);
}

uint32_t muxed_copied(const struct muxed_file *file)
{
    return file->copies ? muxed_copies_count(file->copies) : 0;
}

const char *muxed_encoder(const struct muxed_file *file)
{
    return file->encoder->codec->name;
}

#else

bool muxed_open(struct muxed_file **out, const char *path, const struct muxed_params *params,
                const struct video_format *format, struct error *error)
{
    (void)path, (void)params, (void)format;
    *out = NULL;
    return error_set(
        error,
        "this program was built without libavformat, which writes .mkv and .mp4; write y4m and "
        "encode it");
}

bool muxed_write(struct muxed_file *file, const void *const planes[COX_VIDEO_PLANES_MAX],
                 const size_t pitch_bytes[COX_VIDEO_PLANES_MAX], int64_t time, struct error *error)
{
    (void)file, (void)planes, (void)pitch_bytes, (void)time;
    return error_set(error, "this program was built without libavformat");
}

bool muxed_finish(struct muxed_file **file, struct muxed_written *written, struct error *error)
{
    *file = NULL;
    *written = (struct muxed_written){0};
    return error_set(error, "this program was built without libavformat");
}

void muxed_abandon(struct muxed_file **file)
{
    *file = NULL;
}

uint64_t muxed_bytes(const struct muxed_file *file)
{
    (void)file;
    return 0;
}

uint32_t muxed_copied(const struct muxed_file *file)
{
    (void)file;
    return 0;
}

const char *muxed_encoder(const struct muxed_file *file)
{
    (void)file;
    return "";
}

bool muxed_interleaves(const char *encoder, uint32_t depth)
{
    (void)encoder, (void)depth;
    return false;
}

#endif
