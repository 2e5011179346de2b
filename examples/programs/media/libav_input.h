/* What the files that read containers share: one struct, and the steps from a packet to a frame.
 *
 * libav_input.c opens and closes; libav_read.c gives out frames, libav_lend.c lends them; both get
 * them in order from libav_seek.c, which has them from libav_decode.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBAV_INPUT_H
#define LIBAV_INPUT_H

#include "frame_damage.h"
#include "frame_gaps.h"
#include "libav_frames.h"
#include "libav_hardware.h"
#include "libav_index.h"
#include "libav_messages.h"
#include "matroska_crop.h"
#include "video_kinds.h"

#include <coxswain/dolby.h>

/* Some damage before the first frame is usual: a recording may begin anywhere in a stream. */
enum { LIBAV_DAMAGED_MAX = 1000 };

/* About what decoding needs: bytes for each pixel, and frames besides those of the threads. An H.264
 * or HEVC decoder holds up to 7 frames of 8K, and a few are lent. */
enum { LIBAV_PIXEL_BYTES = 4, LIBAV_HELD_FRAMES = 10 };

/* Frames that are lent at once. */
enum { LIBAV_LENT_MAX = 32 };

struct libav {
    AVFormatContext *container;
    AVCodecContext *decoder;
    const AVCodec *codec;            /* the decoder in software */
    struct libav_hardware *hardware; /* what decodes instead; NULL = nothing */
    uint32_t hardware_bits;          /* of a sample, of what hardware decodes; 0 = software does */
    AVPacket *packet;
    AVFrame *frame;
    int stream;
    struct libav_colours named; /* by the container itself, for that stream */
    struct matroska_crop crop;  /* of that stream; the container's, on top of the codec's */
    enum AVPixelFormat samples; /* of the first frame */
    int64_t position;           /* in the file, of the last packet; -1 = unknown */

    /* Time of the frame before, in ticks of the stream's time base; AV_NOPTS_VALUE = unknown. */
    int64_t time;
    int64_t shortest_ticks, longest_ticks; /* from one frame to the next; 0 = not known yet */

    struct cox_dolby_frame dolby;  /* of the last frame; profile 0 = it has none */
    struct libav_dolby_kept *kept; /* of packets whose frames have not come; NULL = none yet */

    struct libav_index index; /* empty until it is needed */
    bool sought;
    uint64_t access; /* the access that decoding started from last */
    char *path;
    char cut[64]; /* the message if the file is shorter than its header says; "" = it is whole */

    struct libav_complaints complaints;
    struct frame_gaps gaps;
    struct frame_damage damage;     /* that reading went on after */
    uint64_t harms;                 /* of `complaints`, up to the last frame */
    char harm[LIBAV_MESSAGE_BYTES]; /* at the first place of the damage; "" = undamaged */
    int64_t harm_position;          /* of that place, in the file */
    bool harmed;                    /* some of it is behind the film's beginning */
    uint32_t unread;                /* packets that could not be read */
    uint64_t memory_max;            /* bytes, for decoding */
    uint64_t pixels_max;            /* of a frame that may be decoded */
    uint64_t packets;               /* of the video that were read */
    int64_t last_dts;        /* when the last one was to be decoded; AV_NOPTS_VALUE = unknown */
    uint64_t errors_before;  /* libav's, before the film's first frame */
    uint64_t missing_before; /* packets that gave no frame before the film's first one */
    uint64_t missing_at_end; /* frames that the header promises after the last one */
    uint32_t skipped;        /* damaged packets before the film's first frame */

    uint32_t damaged; /* decoding errors before the first frame, or without a frame since */
    bool begun;       /* a frame has been decoded */
    bool waiting;     /* `frame` has been decoded and not been read */

    /* What ended the stream too early. Reported after the decoder's last frame. */
    const char *fault; /* NULL = nothing */
    int fault_code;

    struct video_threads threads; /* the decoder's own */
    uint64_t threads_first_ns;    /* their processor time at the first query, if `asked` */
    bool asked;

    struct cox_av_pool *_Atomic pool; /* what the decoder decodes into; NULL = libav's memory */
    AVFrame *lent[LIBAV_LENT_MAX];
};

/* libav's name for something, or "unknown". */
static inline const char *libav_name(const char *name)
{
    return name ? name : "unknown";
}

/* Side data of a frame, at least `bytes` long. NULL if the frame has no such data. */
static inline const void *libav_frame_data(const AVFrame *frame, enum AVFrameSideDataType type,
                                           size_t bytes)
{
    const AVFrameSideData *found = lib.av_frame_get_side_data(frame, type);
    return found && found->size >= bytes ? found->data : NULL;
}

/* --- libav_decoder.c -------------------------------------------------------------------------- */

/* Open a decoder: the hardware's if there is one, else the software's. */
bool libav_open_decoder(struct libav *libav, struct error *error);

/* --- libav_probe.c ---------------------------------------------------------------------------- */

/* How many bytes of a Matroska or MPEG-TS file are missing from its end. libavformat does not report
 * them. */
uint64_t libav_missing_bytes(const char *path);

/* --- libav_decode.c --------------------------------------------------------------------------- */

/* Set an error that names the frame and the place in the file. Returns VIDEO_READ_ERROR. */
enum video_read libav_fail_frame(const struct video_input *input, const char *what, int code,
                                 struct error *error);

/* An AVIOInterruptCB whose argument is the input. */
int libav_is_cancelled(void *input);

/* Tell the program in one line what changes for this input. */
void libav_tell(const struct video_input *input, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Send the next packet of the video to the decoder, or the end of the stream. */
enum video_read libav_feed(struct video_input *input, struct error *error);

/* Remember how the film is damaged and where, at the first place. */
void libav_note_harm(struct video_input *input, const char *what, int code);

/* Frame number `frame` has been decoded. `how` it is damaged; NULL = it is not. */
void libav_note_frame(struct video_input *input, uint64_t frame, const char *how);

/* The decoder's next frame, cropped as the container says. Returns libav's code, or
 * LIBAV_HARDWARE_FAILED. */
int libav_receive(struct libav *libav);

/* Decode the next frame into `frame`. If the hardware fails, this is an error, and
 * `hardware->stopped` is set. */
enum video_read libav_decode(struct video_input *input, struct error *error);

/* --- libav_seek.c ----------------------------------------------------------------------------- */

/* video_reader.seek and video_reader.count. */
bool libav_seek(struct video_input *input, uint64_t frame, enum video_read *result,
                struct error *error);
bool libav_after(struct video_input *input, double seconds, uint64_t *frame,
                 enum video_read *result, struct error *error);
bool libav_count(struct video_input *input, uint64_t *frames, struct error *error);

/* Decode the next frame of the film into `frame`, wherever decoding started. */
enum video_read libav_decode_next(struct video_input *input, struct error *error);

/* --- libav_read.c ----------------------------------------------------------------------------- */

/* Decode the next frame, check that it has the first one's size and samples, and take its time and
 * colours. Its time does not count for the frame rate if it is `skipped`. */
enum video_read libav_next_frame(struct video_input *input, bool skipped, struct error *error);

void libav_copy_rows(const struct video_planes *planes, const AVFrame *from, void *const memory[],
                     const size_t pitch_bytes[]);

/* video_reader.read */
enum video_read libav_read(struct video_input *input, void *const memory[],
                           const size_t pitch_bytes[], struct error *error);

/* --- libav_notice.c --------------------------------------------------------------------------- */

/* Begin to look for gaps, after libav_describe. */
void libav_notice_begin(struct video_input *input);

/* The film has ended: find out whether its header promises more frames, and whether it is damaged. */
void libav_notice_end(struct video_input *input);

/* video_reader.notice */
bool libav_notice(struct video_input *input, uint32_t n, char *text, size_t bytes);

/* --- libav_lend.c ----------------------------------------------------------------------------- */

extern const struct video_lender libav_lender;

/* --- libav_colours.c -------------------------------------------------------------------------- */

/* The colours of the decoded frame, which it and the container name. False if the program would
 * show the frame in wrong colours. */
bool libav_take_colours(struct video_colours *colours, const struct libav *libav,
                        struct error *error);

/* The frame's curve of HDR10+. */
void libav_take_hdr10plus(struct video_frame *about, const AVFrame *frame);

/* Fill `format->conflict`: where the decoded frame and the container name different colours. */
void libav_compare_colours(struct video_format *format, const struct libav *libav);

/* --- libav_dolby.c ---------------------------------------------------------------------------- */

/* Keep the metadata in a packet that is sent to the decoder. */
void libav_dolby_packet(struct libav *libav, const AVPacket *packet);

/* Set `libav->dolby` to the metadata of the decoded frame. False if it cannot be shown without
 * them. */
bool libav_take_dolby(struct libav *libav, struct error *error);

/* Whether the decoded frame has to be reshaped, so that its colours are those of the metadata. */
bool libav_dolby_reshapes(const struct libav *libav);

/* Forget all frames: decoding starts elsewhere. */
void libav_dolby_restart(struct libav *libav);

/* --- libav_describe.c ------------------------------------------------------------------------- */

/* Fill the input's format from the container and the first frame. False if the program cannot
 * show this video. */
bool libav_describe(struct video_input *input, struct error *error);

#endif
