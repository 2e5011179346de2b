/* From packets to frames. A fault in the stream ends it after the frames that the decoder still
 * holds; damage before the first frame is skipped, up to a limit.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_input.h"

#include <inttypes.h>
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

/* Send the end of the stream: from here on the decoder gives what it has. `fault` is why the stream
 * ends; NULL = it is complete. */
static enum video_read drain(struct video_input *input, const char *fault, int code,
                             struct error *error)
{
    struct libav *libav = input->state;
    if (fault)
        note_fault(libav, fault, code);

    /* The decoder may report an earlier packet's error here. */
    code = lib.avcodec_send_packet(libav->decoder, NULL);
    if (code == AVERROR_EOF || !code)
        return VIDEO_READ_FRAME;

    note_fault(libav, "cannot be decoded", code);
    if (++libav->damaged > LIBAV_DAMAGED_MAX)
        return libav_fail_frame(input, libav->fault, code, error);
    return VIDEO_READ_FRAME;
}

/* Whether damage at this place ends the stream. */
static bool is_fatal(struct libav *libav)
{
    return libav->begun || ++libav->damaged > LIBAV_DAMAGED_MAX;
}

enum video_read libav_feed(struct video_input *input, struct error *error)
{
    struct libav *libav = input->state;
    libav_messages_about(&libav->complaints);
    int code = lib.av_read_frame(libav->container, libav->packet);
    libav_messages_about(NULL);

    if (libav_is_cancelled(input)) {
        lib.av_packet_unref(libav->packet);
        return VIDEO_READ_CANCELLED;
    }
    if (code == AVERROR_EOF)
        return drain(input, *libav->cut ? libav->cut : NULL, 0, error);
    if (code < 0)
        return drain(input, "cannot be read", code, error);

    const bool ours = libav->packet->stream_index == libav->stream;
    const bool damaged = libav->packet->flags & AV_PKT_FLAG_CORRUPT;
    if (ours) {
        libav->packets++;
        libav->last_dts = libav->packet->dts;
        if (libav->packet->pos >= 0)
            libav->position = libav->packet->pos;
        libav_dolby_packet(libav, libav->packet);
        code = lib.avcodec_send_packet(libav->decoder, libav->packet);
    }
    lib.av_packet_unref(libav->packet);

    if (ours && damaged && is_fatal(libav))
        return drain(input, "damaged or incomplete", 0, error);
    if (ours && code < 0 && is_fatal(libav))
        return drain(input, "cannot be decoded", code, error);
    return VIDEO_READ_FRAME;
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
    if (!libav->fault && is_fatal(libav))
        return drain(input, "cannot be decoded", code, error);
    return VIDEO_READ_FRAME;
}

enum video_read libav_decode(struct video_input *input, struct error *error)
{
    struct libav *libav = input->state;
    char message[LIBAV_MESSAGE_BYTES];
    int code;
    while ((code = lib.avcodec_receive_frame(libav->decoder, libav->frame))) {
        const enum video_read result = handle_no_frame(input, code, error);
        if (result != VIDEO_READ_FRAME)
            return result;
    }

    if (libav->frame->decode_error_flags || libav->frame->flags & AV_FRAME_FLAG_CORRUPT)
        return libav_fail_frame(input, "damaged", 0, error);

    /* Decoders work ahead: it may be a later frame that is damaged. */
    if (libav_complaints_mismatch(&libav->complaints, message, sizeof message))
        return libav_fail_frame(input, message, 0, error);
    libav->begun = true;
    return VIDEO_READ_FRAME;
}

#endif
