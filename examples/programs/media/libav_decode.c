/* From packets to frames. Damage before the first frame is skipped, up to a limit. Later damage ends
 * the stream after the frames that the decoder still holds, or it is noted and reading goes on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum video_read libav_fail_frame(const struct video_input *input, const char *what, int code,
                                 struct error *error)
{
    const struct libav *libav = input->state;
    const int64_t position = libav->position < 0 ? 0 : libav->position;
    char why[98] = "";

    if (code) {
        memcpy(why, ": ", 3);
        lib.av_strerror(code, why + 2, sizeof why - 2);
    }
    error_set(error, "frame %" PRIu64 " (the first is 0), at or after byte %" PRId64 ": %s%s",
              input->next_frame, position, what, why);
    return VIDEO_READ_ERROR;
}

void libav_tell(const struct video_input *input, const char *format, ...)
{
    char text[VIDEO_NOTICE_BYTES];
    va_list arguments;
    if (!input->tell)
        return;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    input->tell(input->tell_user, text);
}

int libav_is_cancelled(void *user)
{
    struct video_input *input = user;
    return atomic_load(&input->source.cancelled);
}

static void note_fault(struct libav *libav, const char *fault, int code)
{
    if (libav->fault)
        return;
    libav->fault = fault;
    libav->fault_code = code;
}

/* Whether reading may go on after this error of libav: not if memory is short or the disk fails. */
static bool is_damage(int code)
{
    return code != AVERROR(ENOMEM) && code != AVERROR(EIO) && code != AVERROR_EXIT;
}

void libav_note_harm(struct video_input *input, const char *what, int code)
{
    struct libav *libav = input->state;
    char why[64] = "";
    if (libav->begun)
        libav->harmed = input->damaged = true;
    if (*libav->harm)
        return;

    if (code)
        lib.av_strerror(code, why, sizeof why);
    snprintf(libav->harm, sizeof libav->harm, "%.90s%s%s", what, code ? ": " : "", why);
    libav->harm_position = libav->position < 0 ? 0 : libav->position;
}

/* Send the end of the stream: from here on the decoder gives what it has. `fault` is why the stream
 * ends; NULL = it is complete. */
static enum video_read drain(struct video_input *input, const char *fault, int code,
                             struct error *error)
{
    struct libav *libav = input->state;
    if (fault)
        note_fault(libav, fault, code);

    /* The decoder may report an earlier packet's error here. */
    code = libav_send(libav, NULL);
    if (code == AVERROR_EOF || !code)
        return VIDEO_READ_FRAME;

    if (input->goes_on && is_damage(code)) {
        libav_note_harm(input, "cannot be decoded", code);
        frame_damage_refused(&libav->damage);
    } else {
        note_fault(libav, "cannot be decoded", code);
    }
    if (++libav->damaged > LIBAV_DAMAGED_MAX)
        return libav_fail_frame(input, "cannot be decoded", code, error);
    return VIDEO_READ_FRAME;
}

/* Whether damage at this place ends the stream. If not, it is noted. */
static bool ends_stream(struct video_input *input, const char *what, int code)
{
    struct libav *libav = input->state;
    libav_note_harm(input, what, code);
    if (!libav->begun)
        return ++libav->damaged > LIBAV_DAMAGED_MAX;
    return !input->goes_on || !is_damage(code);
}

/* The file has no more packets, or `code` says why they cannot be read. */
static enum video_read end_file(struct video_input *input, int code, struct error *error)
{
    struct libav *libav = input->state;
    const AVIOContext *bytes = libav->container->pb;
    const char *fault = NULL;
    if (code == AVERROR_EOF && bytes && bytes->error < 0)
        code = bytes->error;

    if (code != AVERROR_EOF)
        fault = "cannot be read";
    else if (*libav->cut)
        fault = libav->cut;
    if (code == AVERROR_EOF)
        code = 0;
    if (!fault || !input->goes_on || !is_damage(code))
        return drain(input, fault, code, error);

    libav_note_harm(input, fault, code);
    libav->damage.places++;
    return drain(input, NULL, 0, error);
}

/* A packet is damaged, so that it cannot be read. Whether there may be more. */
static bool leave_out(struct video_input *input, int code)
{
    struct libav *libav = input->state;
    if (code != AVERROR_INVALIDDATA || !input->goes_on || ++libav->unread > LIBAV_DAMAGED_MAX)
        return false;

    libav_note_harm(input, "cannot be read", code);
    libav->damage.places++;
    return true;
}

/* Send the video's packet that was read to the decoder. */
static enum video_read send(struct video_input *input, struct error *error)
{
    struct libav *libav = input->state;
    const AVPacket *packet = libav->packet;
    const bool key = packet->flags & AV_PKT_FLAG_KEY, damaged = packet->flags & AV_PKT_FLAG_CORRUPT;
    int64_t time = packet->pts;
    if (packet->flags & AV_PKT_FLAG_DISCARD) /* its frame is not shown */
        time = AV_NOPTS_VALUE;

    libav->packets++;
    libav->last_dts = packet->dts;
    if (packet->pos >= 0)
        libav->position = packet->pos;
    frame_damage_packet(&libav->damage, time, key, damaged);

    libav_dolby_packet(libav, packet);
    const int code = libav_send(libav, packet);
    if (!damaged && code >= 0)
        return VIDEO_READ_FRAME;
    if (!damaged && libav->begun)
        frame_damage_refused(&libav->damage);

    const char *what = damaged ? "damaged or incomplete" : "cannot be decoded";
    const int why = damaged ? 0 : code;
    return ends_stream(input, what, why) ? drain(input, what, why, error) : VIDEO_READ_FRAME;
}

enum video_read libav_feed(struct video_input *input, struct error *error)
{
    struct libav *libav = input->state;
    enum video_read result = VIDEO_READ_FRAME;
    libav_messages_about(&libav->complaints);
    const int code = lib.av_read_frame(libav->container, libav->packet);
    libav_messages_about(NULL);

    if (libav_is_cancelled(input))
        result = VIDEO_READ_CANCELLED;
    else if (code < 0 && leave_out(input, code))
        result = VIDEO_READ_FRAME;
    else if (code < 0)
        result = end_file(input, code, error);
    else if (libav->packet->stream_index == libav->stream)
        result = send(input, error);

    lib.av_packet_unref(libav->packet);
    return result;
}

/* The decoder has no frame now, because of `code`. VIDEO_READ_FRAME: ask it again. */
static enum video_read handle_no_frame(struct video_input *input, int code, struct error *error)
{
    struct libav *libav = input->state;
    if (code == AVERROR(EAGAIN))
        return libav_feed(input, error);
    if (code == AVERROR_EOF && libav->fault)
        return libav_fail_frame(input, libav->fault, libav->fault_code, error);
    if (code == AVERROR_EOF) {
        libav_notice_end(input);
        return VIDEO_READ_END;
    }

    if (libav->fault && ++libav->damaged > LIBAV_DAMAGED_MAX)
        return libav_fail_frame(input, "cannot be decoded", code, error);
    if (libav->fault)
        return VIDEO_READ_FRAME;

    if (libav->begun)
        frame_damage_refused(&libav->damage);
    if (ends_stream(input, "cannot be decoded", code))
        return drain(input, "cannot be decoded", code, error);
    return VIDEO_READ_FRAME;
}

/* Whether the decoded frame is damaged; then `text` says how. Decoders work ahead: if data differ from
 * their checksum, it may be a later frame. */
static bool is_damaged(struct libav *libav, char *text, size_t bytes)
{
    const uint64_t before = libav->harms;
    libav->harms = libav_complaints_harms(&libav->complaints, text, bytes);
    if (!libav->frame->decode_error_flags && !(libav->frame->flags & AV_FRAME_FLAG_CORRUPT))
        return libav->harms > before;

    snprintf(text, bytes, "damaged");
    return true;
}

/* Whether the container crops the frame, and leaves something of it. */
static bool is_cropped(const struct matroska_crop *crop, const AVFrame *frame)
{
    return (crop->left || crop->right || crop->top || crop->bottom) &&
           crop->left + crop->right < (uint64_t)frame->width &&
           crop->top + crop->bottom < (uint64_t)frame->height;
}

int libav_receive(struct libav *libav)
{
    const struct matroska_crop *crop = &libav->crop;
    AVFrame *frame = libav->frame;
    int code = libav_receive_frame(libav, frame);
    if (!code)
        code = libav_lay_out(libav, frame);
    if (code || !is_cropped(crop, frame))
        return code;

    /* Whole samples of chroma. */
    const AVPixFmtDescriptor *samples = lib.av_pix_fmt_desc_get(frame->format);
    const uint64_t x = UINT64_C(1) << (samples ? samples->log2_chroma_w : 0),
                   y = UINT64_C(1) << (samples ? samples->log2_chroma_h : 0);
    frame->crop_left = crop->left / x * x;
    frame->crop_right = crop->right / x * x;
    frame->crop_top = crop->top / y * y;
    frame->crop_bottom = crop->bottom / y * y;
    return lib.av_frame_apply_cropping(frame, AV_FRAME_CROP_UNALIGNED);
}

void libav_note_frame(struct video_input *input, uint64_t frame, const char *how)
{
    struct libav *libav = input->state;
    if (how)
        libav_note_harm(input, how, 0);
    frame_damage_frame(&libav->damage, frame, libav->frame->best_effort_timestamp, how != NULL);
    if (libav->damage.frames)
        libav->harmed = input->damaged = true;
}

enum video_read libav_decode(struct video_input *input, struct error *error)
{
    struct libav *libav = input->state;
    char how[LIBAV_MESSAGE_BYTES];
    int code;
    while ((code = libav_receive(libav))) {
        if (code == LIBAV_HARDWARE_FAILED)
            return libav_fail_frame(input, libav->hardware->why, 0, error);
        const enum video_read result = handle_no_frame(input, code, error);
        if (result != VIDEO_READ_FRAME)
            return result;
    }

    const bool damaged = is_damaged(libav, how, sizeof how);
    if (damaged && !input->goes_on)
        return libav_fail_frame(input, how, 0, error);

    libav_note_frame(input, input->next_frame, damaged ? how : NULL);
    libav->begun = true;
    return VIDEO_READ_FRAME;
}

#endif
