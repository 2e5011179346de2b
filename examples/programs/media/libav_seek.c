/* Going to a frame by its number. An index of all packets says where decoding can start; indexes of
 * large files are kept in the cache folder.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "common/cache_folder.h"
#include "libav_input.h"

#include <inttypes.h>

/* Reading a smaller file takes no time. */
enum { KEPT_LEAST_BYTES = 1 << 26 };

/* The folder for the input's index; NULL: it is not kept. Sets `key`. */
static const char *index_folder(const struct video_input *input, struct libav_index_key *key,
                                char *folder, size_t bytes)
{
    const struct libav *libav = input->state;
    struct file_identity samples;
    struct error error;
    *key = (struct libav_index_key){.stream = libav->stream};
    if (input->no_cache || !file_state_of(input->watch_fd, &key->file) ||
        key->file.bytes < KEPT_LEAST_BYTES || !file_identify(libav->path, &samples, &error))
        return NULL;

    key->samples = samples.hash;
    return cache_folder(folder, bytes);
}

/* Make sure that the index is there: keep what there is, load what was kept, or read the file. */
static enum libav_indexed need_index(struct video_input *input, struct error *error)
{
    struct libav *libav = input->state;
    struct libav_index *index = &libav->index;
    struct libav_index_key key;
    char place[4096];

    if (index->frame_count)
        return LIBAV_INDEXED;
    const char *folder = index_folder(input, &key, place, sizeof place);
    if (folder && libav_index_load(index, folder, &key))
        return LIBAV_INDEXED;

    AVFormatContext *container = libav_open_container(libav->path, libav->pixels_max,
                                                      (AVIOInterruptCB){libav_is_cancelled, input},
                                                      NULL, error);
    if (!container)
        return LIBAV_INDEX_FAILED;
    enum libav_indexed result = LIBAV_NO_INDEX;
    if ((unsigned)libav->stream < container->nb_streams) { /* as when it was opened first */
        libav_discard_others(container, libav->stream);
        result = libav_index_read(index, container, libav->stream, error);
    }
    lib.avformat_close_input(&container);

    if (folder && result == LIBAV_INDEXED)
        libav_index_keep(index, folder, &key);
    return result;
}

/* Restart the decoder at the packet of an access. False: the container cannot seek there. */
static bool begin_at(struct libav *libav, const struct libav_access *access)
{
    libav_flush(libav);
    lib.av_frame_unref(libav->frame);
    libav->waiting = libav->begun = false;
    libav->damaged = 0;
    libav->fault = NULL;
    libav->harms = 0;
    libav_complaints_clear(&libav->complaints);
    libav_dolby_restart(libav);
    frame_damage_restart(&libav->damage);
    if (lib.av_seek_frame(libav->container, libav->stream, access->seek, AVSEEK_FLAG_BACKWARD) < 0)
        return false;

    while (lib.av_read_frame(libav->container, libav->packet) >= 0) {
        const bool there = libav->packet->stream_index == libav->stream &&
                           libav->packet->pts == access->time &&
                           libav->packet->flags & AV_PKT_FLAG_KEY;
        int code = 0;
        if (there) {
            libav_dolby_packet(libav, libav->packet);
            code = libav_send(libav, libav->packet);
        }
        lib.av_packet_unref(libav->packet);
        if (there)
            return code >= 0;
    }

    return false;
}

static bool is_whole(const AVFrame *frame)
{
    return !frame->decode_error_flags && !(frame->flags & AV_FRAME_FLAG_CORRUPT);
}

/* Decode until frame number `frame` waits. VIDEO_READ_END: from here it does not come whole. `any`: take
 * the first frame from its time on, whole or not. */
static enum video_read decode_to(struct video_input *input, uint64_t frame, bool any,
                                 struct error *error)
{
    struct libav *libav = input->state;
    const int64_t time = libav->index.times[frame];

    for (;;) {
        libav->begun = false; /* frames before it may lack their references */
        const int code = libav_receive(libav);

        if (code == AVERROR(EAGAIN)) {
            const enum video_read result = libav_feed(input, error);
            if (result != VIDEO_READ_FRAME)
                return result;
        } else if (code == AVERROR_EOF || code == LIBAV_HARDWARE_FAILED ||
                   (code < 0 && ++libav->damaged > LIBAV_DAMAGED_MAX)) {
            return VIDEO_READ_END;
        } else if (code >= 0 && libav->frame->best_effort_timestamp >= time) {
            const bool same = libav->frame->best_effort_timestamp == time,
                       whole = is_whole(libav->frame);
            if (!any && !(same && whole))
                return VIDEO_READ_END;

            libav->begun = libav->waiting = true;
            libav->errors_before = libav_complaints_begun(&libav->complaints);
            libav_note_frame(input, frame, whole ? NULL : "damaged");
            return VIDEO_READ_FRAME;
        }
        lib.av_frame_unref(libav->frame);
    }
}

/* Replace the hardware's decoder by that of software, and say so. `next` is the next frame. */
static bool use_software(struct video_input *input, struct error *error)
{
    struct libav *libav = input->state;
    libav_tell(input, "%s: %s; decoded in software from frame %" PRIu64 " (the first is 0) on",
               libav->hardware->name, libav->hardware->why, input->next_frame);

    libav_hardware_close(&libav->hardware);
    lib.avcodec_free_context(&libav->decoder);
    libav_complaints_clear(&libav->complaints); /* they are about the device */
    return libav_open_decoder(libav, error);
}

/* As decode_to, from the packet of an access. If the hardware fails meanwhile, do it in software. */
static enum video_read decode_between(struct video_input *input, const struct libav_access *access,
                                      uint64_t frame, bool any, struct error *error)
{
    struct libav *libav = input->state;
    for (;;) {
        enum video_read result = VIDEO_READ_END;
        if (begin_at(libav, access))
            result = decode_to(input, frame, any, error);
        if (result != VIDEO_READ_END || !libav->hardware || !libav->hardware->stopped)
            return result;
        if (!use_software(input, error))
            return VIDEO_READ_ERROR;
    }
}

/* Frame number `frame` is damaged or missing: go on with what comes instead of it. The frames after it
 * need not be those of the index any more. */
static enum video_read decode_instead(struct video_input *input, uint64_t frame,
                                      struct error *error)
{
    struct libav *libav = input->state;
    const uint64_t access = libav_index_find(&libav->index, frame);

    libav->sought = false;
    libav_note_harm(input, "a frame cannot be decoded", 0);
    libav->damage.places++;
    libav->harmed = input->damaged = true;
    return decode_between(input, &libav->index.access[access], frame, true, error);
}

/* Decode frame number `frame`, from the last access before `libav->access`. If it does not come
 * whole from there, try earlier ones: encoders mark frames as key frames that are none, and
 * decoders lose frames behind one. If reading goes on after damage, a few are enough. */
static enum video_read decode_from(struct video_input *input, uint64_t frame, struct error *error)
{
    enum { TRIES = 3 };
    struct libav *libav = input->state;
    enum video_read result = VIDEO_READ_END;

    for (int t = 0; result == VIDEO_READ_END && libav->access > 0 && (t < TRIES || !input->goes_on);
         t++)
        result = decode_between(input, &libav->index.access[--libav->access], frame, false, error);
    if (result != VIDEO_READ_END)
        return result;
    if (input->goes_on)
        return decode_instead(input, frame, error);

    error_set(error, "frame %" PRIu64 " (the first is 0) cannot be decoded", frame);
    return VIDEO_READ_ERROR;
}

/* Make the index, as need_index does. False: the stream has no index, or `*result` says why it
 * cannot be made. */
static bool has_index(struct video_input *input, enum video_read *result, struct error *error)
{
    const enum libav_indexed indexed = need_index(input, error);
    if (indexed == LIBAV_INDEX_FAILED)
        *result = libav_is_cancelled(input) ? VIDEO_READ_CANCELLED : VIDEO_READ_ERROR;
    return indexed == LIBAV_INDEXED;
}

/* The hardware has failed behind the frame that was given out last. Go on in software: decode the
 * next frame into `frame`. Frames after damage have other numbers than in the index, but the same
 * times. */
static enum video_read go_on_in_software(struct video_input *input, struct error *error)
{
    struct libav *libav = input->state;
    const struct libav_index *index = &libav->index;
    const struct cox_dolby_frame dolby = libav->dolby; /* the next frame may repeat it */
    const int64_t before = input->frame.time;
    enum video_read result = VIDEO_READ_FRAME;

    if (!use_software(input, error))
        return VIDEO_READ_ERROR;

    if (before == AV_NOPTS_VALUE || !has_index(input, &result, error)) {
        if (result != VIDEO_READ_FRAME)
            return result;
        return libav_fail_frame(input,
                                "hardware failed, and the film has no times by which software "
                                "could go on; use --hwdec none",
                                0, error);
    }

    const uint64_t frame = libav_times_find(index->times, index->frame_count, before + 1);
    if (frame == index->frame_count) {
        libav_notice_end(input);
        return VIDEO_READ_END;
    }
    libav->access = libav_index_find(index, frame) + 1;
    libav->sought = frame == input->next_frame;
    result = decode_from(input, frame, error);
    libav->dolby = dolby;
    return result;
}

enum video_read libav_decode_next(struct video_input *input, struct error *error)
{
    const struct libav *libav = input->state;
    const uint64_t next = input->next_frame;
    enum video_read result = VIDEO_READ_FRAME;

    if (!libav->waiting)
        result = libav_decode(input, error);
    if (result == VIDEO_READ_ERROR && libav->hardware && libav->hardware->stopped)
        result = go_on_in_software(input, error);
    if (!libav->sought || next >= libav->index.frame_count || result == VIDEO_READ_CANCELLED ||
        result == VIDEO_READ_ERROR)
        return result;

    /* After seeking, the decoder may have skipped a frame, or reached the end too early. */
    if (result == VIDEO_READ_FRAME &&
        libav->frame->best_effort_timestamp == libav->index.times[next])
        return result;
    return decode_from(input, next, error);
}

bool libav_seek(struct video_input *input, uint64_t frame, enum video_read *result,
                struct error *error)
{
    struct libav *libav = input->state;
    struct libav_index *index = &libav->index;
    uint64_t access = 0;
    *result = VIDEO_READ_FRAME;
    if (!has_index(input, result, error))
        return *result != VIDEO_READ_FRAME;

    /* Reading on is as fast if no place to start lies between, and reports what is wrong at the
     * end. */
    if (frame < index->frame_count)
        access = libav_index_find(index, frame);
    if (!access || index->access[access].frame <= input->next_frame)
        return false;

    libav->sought = true;
    libav->access = access + 1;
    *result = decode_from(input, frame, error);
    libav->gaps.before = index->times[frame - 1];
    return true;
}

bool libav_after(struct video_input *input, double seconds, uint64_t *frame,
                 enum video_read *result, struct error *error)
{
    const struct libav *libav = input->state;
    const struct libav_index *index = &libav->index;
    const struct video_rational tick = input->format.tick;
    if (!tick.num || !has_index(input, result, error))
        return false;

    /* A frame lasts until the next one; the last one as long as the one before. Times with few
     * digits are rounded down. */
    const uint64_t count = index->frame_count;
    const double ticks = (seconds + 0.0005) * tick.den / tick.num;
    double end = (double)index->times[count - 1] - (double)index->times[0];
    if (count > 1)
        end += (double)index->times[count - 1] - (double)index->times[count - 2];
    *frame = count + 1;
    if (ticks < end || count == 1)
        *frame = libav_times_find(index->times, count, index->times[0] + (int64_t)ticks + 1);
    return true;
}

bool libav_count(struct video_input *input, uint64_t *frames, struct error *error)
{
    const struct libav *libav = input->state;
    const enum libav_indexed result = need_index(input, error);

    *frames = libav->index.frame_count;
    if (result == LIBAV_NO_INDEX)
        error_set(error, "unknown number of frames: they have no time stamps; put the video into a "
                         "container first (ffmpeg -i IN -c copy OUT.mkv)");
    return result == LIBAV_INDEXED;
}

#endif
