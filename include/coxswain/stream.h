/* A stream of video frames as an application has them: tone-mapped, in order, and given back on the thread that asks.
 *
 * Planes lie anywhere in memory, rows as far apart as the application has them, top down or bottom up, a window of a
 * larger frame or not; size, format, light and look change from one frame to the next. Behind it are sessions
 * (session.h) of video.h's pipelines: one for each shape, of which the last few stay, so that a stream which goes back
 * finds it ready. What cannot be used where it lies is copied by rows, on the thread that sends or receives, and
 * counted.
 *
 * A plane is used in place, and not copied:
 *   a buffer of the runtime's, from its first byte  on every device, if the last row is as long as the others there
 *   other memory, a window of a buffer              where all devices work in the host's memory, as processors do
 *   negative pitches, no multiples of 4 bytes       nowhere
 *
 * In place also wants the pitches that the pipeline has: those of the stream's first frame, and others when two frames
 * in a row have them; and, with several devices, a pitch at which rows can be shared out (cox_runtime_pitch_bytes).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_STREAM_H
#define COXSWAIN_STREAM_H

#include <coxswain/video.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A picture in the application's memory. What a field's type cannot say: */
struct cox_video_image {
    struct cox_video_format format;
    uint32_t width; /* of what is to be seen, in pixels */
    uint32_t height;
    enum cox_transfer transfer; /* of input */
    enum cox_primaries primaries;

    /* The first sample of each plane's top row, and the bytes from a row to the one below it: negative where the top
     * row comes last in memory. As many planes as cox_video_planes says, of its row_bytes and rows. */
    void *data[COX_VIDEO_PLANES_MAX];
    ptrdiff_t pitch_bytes[COX_VIDEO_PLANES_MAX];

    /* The buffer of the stream's runtime that all rows of the plane are in. Where it begins with the plane and is of
     * pitch x rows bytes at least, what lies between the rows may be overwritten; else, and in other memory (NULL),
     * nothing but the samples is touched. A pool's memory is made (cox_buffer_create) or wrapped (cox_buffer_wrap)
     * once, and costs nothing from then on; it is given up with cox_buffer_destroy. */
    cox_buffer *memory[COX_VIDEO_PLANES_MAX];

    /* The brightest light that the stream says its frames have: MaxCLL, or the mastering display's peak. 0 = it says
     * nothing, or nonsense. */
    float peak_nits;
};

/* Fill `image` with a format and size and with memory of the runtime's for them, one buffer a plane: its data,
 * pitch_bytes and memory. The other fields are left alone.
 * Errors: COX_E_INVALID (NULL; no such format or size), COX_E_NOMEM; nothing is kept then.
 * Thread-safety: as cox_buffer_create. */
COX_API COX_MUST_CHECK cox_status cox_video_image_create(cox_runtime *runtime,
                                                         const struct cox_video_format *format,
                                                         uint32_t width, uint32_t height,
                                                         struct cox_video_image *image);

/* Give up the buffers of an image, as cox_buffer_destroy does. NULL is accepted, and an image without any. */
COX_API void cox_video_image_destroy(struct cox_video_image *image);

/* Where the light that keeps its gradation comes from. */
enum cox_peak_source {
    /* the frames before it: a frame is sent when the one before has been mapped */
    COX_PEAK_PREVIOUS = 0,
    /* the frame itself too, which is looked at first: a second pass over the input */
    COX_PEAK_CURRENT = 1,
    COX_PEAK_FIXED = 2, /* cox_video_settings.peak_nits */
};

/* For what the stream decides unless it is told. */
enum cox_tristate { COX_AUTO = 0, COX_NO = 1, COX_YES = 2 };

/* How frames are to look. All zeros is how cox-tonemap maps a film. */
struct cox_tonemap_options {
    enum cox_operator op; /* any but COX_OPERATOR_EXPOSURE */
    enum cox_peak_source peak;
    enum cox_tristate dither; /* AUTO: where the output has fewer bits than the input */
    /* light outside BT.709 keeps its hue (COX_GAMUT_COMPRESS). AUTO: of BT.2020 */
    enum cox_tristate compress;

    /* Of these peak_nits counts with COX_PEAK_FIXED alone, else the gain comes on top of what the frames ask for,
     * as far as cox_video_prepare takes gain and peak.
     * desaturate negative = colours do not fade to white. NULL = all defaults. */
    const struct cox_video_settings *settings;

    /* How the curve follows the film; prior_nits 0 = what the image says. NULL = all defaults. */
    const struct cox_adaptation_options *steering;

    bool trust_peak; /* no light is brighter than the image says */
    /* Where the output is exactly half the size: each pixel the mean of 2 x 2 (COX_SCALE_HALF), which is quicker than
     * the filter; it does not make the output half. */
    bool box_downscale;
};

/* Thread-safety: frames are sent from one thread at a time and received from one, which may be another, both at once.
 * cox_video_stream_set, _cancel, _descriptor, _info and _session_info are safe from any thread. Nothing here may be
 * called from a callback of the library's. */
typedef struct cox_video_stream cox_video_stream;

/* Make a stream. Nothing is compiled before the first frame. `*out` is NULL unless COX_OK.
 *
 * `session` sets policy, devices, frames in flight, report and so on for the stream's sessions.
 * NULL = all defaults. Its fields that describe a pipeline, `warm_start` and `ready` are ignored.
 * What it points to must stay until the stream is destroyed. Reports have the numbers that
 * cox_video_result has. `look` NULL = all defaults.
 *
 * Errors:
 *   COX_E_INVALID  an argument is NULL, or `look` is invalid (see cox_video_stream_set)
 *   COX_E_SYSTEM   no descriptor could be created
 *   COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_video_stream_create(cox_runtime *runtime,
                                                          const struct cox_session_params *session,
                                                          const struct cox_tonemap_options *look,
                                                          cox_video_stream **out);

/* Destroy and set to NULL; NULL is accepted. Frames under way are cancelled; those that were not received are not
 * reported any more, and their memory is the application's again. Blocks until then. */
COX_API void cox_video_stream_destroy(cox_video_stream **stream);

/* How frames are to look that are sent from now on. What the sent frames ask for may still be refused there: a scale or
 * format that the operator does not do.
 * Errors: COX_E_INVALID (NULL; a field out of its range, as cox_video_mapping and cox_video_prepare say),
 * Nothing changes then. */
COX_API COX_MUST_CHECK cox_status cox_video_stream_set(cox_video_stream *stream,
                                                       const struct cox_tonemap_options *look);

/* Make ready for frames like these two images, as the look is now, so that the first one does not wait for compilation.
 * Their formats, sizes, colours and pitches are read alone: `data` may be NULL. From the thread that sends.
 * Blocks: for compilation. Errors: as cox_video_stream_send. */
COX_API COX_MUST_CHECK cox_status cox_video_stream_prepare(cox_video_stream *stream,
                                                           const struct cox_video_image *in,
                                                           const struct cox_video_image *out);

/* A frame to be sent. */
struct cox_video_frame {
    const struct cox_video_image *in; /* its planes are read only */
    const struct cox_video_image
        *out;    /* overlaps neither `in` nor another frame's planes that are not received yet; of
                                          another size: the frame is scaled (COX_SCALE_FILTER) */
    void *user;  /* comes back in the result */
    bool nowait; /* COX_E_BUSY instead of blocking for other frames; what is its own, compiling
                                          and learning its light, is done all the same */

    /* The frame does not follow what was sent before, after a seek for one: the curve begins anew, as with the stream's
     * first frame. */
    bool restart;

    uint64_t deadline_ns; /* as in cox_frame */
    /* as in cox_frame; what is done for a frame's light before it is submitted has no deadline */
    enum cox_late late;
};

/* Send one frame. The structs are copied; the planes, and the buffers of `memory`, belong to the
 * stream until the frame has been received.
 *
 * The call blocks:
 *   always           while as many frames are on the devices as are in flight
 *   new shape        for compilation
 *   COX_PEAK_PREVIOUS  while any frame is on the devices. A frame that restarts is mapped twice, the
 *                    first time to learn its light, and the call blocks for all of that.
 *   COX_PEAK_CURRENT     for the look at the frame
 *
 * Errors, upon which the frame is not taken:
 *   COX_E_INVALID    an argument is NULL, or an image is invalid. A format, size or transfer cannot
 *                    be mapped (see cox_video_mapping). A buffer is too short, or of another
 *                    runtime.
 *   COX_E_BUSY       `nowait` is set
 *   COX_E_CANCELLED  cox_video_stream_cancel was called while the frame's light was learnt
 * Also those of cox_session_create, such as errors in the stream's `session`, and of
 * cox_session_submit. The log says why. */
COX_API COX_MUST_CHECK cox_status cox_video_stream_send(cox_video_stream *stream,
                                                        const struct cox_video_frame *frame);

/* What became of a frame. */
struct cox_video_result {
    cox_status
        status; /* as a cox_done_fn gets it; not COX_OK: the output is undefined. COX_E_MEMORY_UNSAFE: a processor hangs
                          that may still write to the output's planes, which are other memory and were used in place:
                          keep it until the runtime is destroyed */
    void *user;
    uint64_t frame; /* from 0 in the order of sending */

    /* Where the planes of input and output lie now: a buffer's memory may have moved (cox_buffer_data). */
    void *in_data[COX_VIDEO_PLANES_MAX];
    void *out_data[COX_VIDEO_PLANES_MAX];

    uint64_t bytes_copied_in; /* by the host, since the planes could not be used where they lay */
    uint64_t bytes_copied_out;
    float peak_nits; /* that it was mapped with */
    float gain;

    /* COX_PEAK_PREVIOUS and COX_PEAK_CURRENT: what the frame's histogram says, and whether a scene begins with it. */
    bool cut;
    struct cox_video_scene scene;
};

/* Receive the next frame, in the order of sending. `wait`: block until it is done.
 * Errors: COX_E_BUSY (frames are under way, the next one is not done), COX_E_NOT_FOUND (none is under way),
 * COX_E_INVALID (NULL). */
COX_API COX_MUST_CHECK cox_status cox_video_stream_receive(cox_video_stream *stream, bool wait,
                                                           struct cox_video_result *result);

/* Readable while a frame can be received: for poll, select, epoll. It stays the stream's: neither read nor close it.
 * -1 if `stream` is NULL. */
COX_API int cox_video_stream_descriptor(const cox_video_stream *stream);

/* Cancel the frames that were sent until now (cox_session_cancel). They are received as ever. */
COX_API void cox_video_stream_cancel(cox_video_stream *stream);

/* Totals since the stream's beginning. */
struct cox_video_stream_info {
    uint64_t sent;
    uint64_t received;
    uint64_t bytes_copied_in;
    uint64_t bytes_copied_out;
    uint64_t frames_copied_in; /* of which something was */
    uint64_t frames_copied_out;
    uint64_t sessions_made;
};

/* Zeros if `stream` is NULL. */
COX_API void cox_video_stream_info(cox_video_stream *stream, struct cox_video_stream_info *info);

/* Of the session that mapped the newest frame, or with COX_PEAK_CURRENT of the one that looks at it first (`analysis`).
 * Zeros if `stream` is NULL, or before the first frame. */
COX_API void cox_video_stream_session_info(cox_video_stream *stream, bool analysis,
                                           struct cox_session_info *info);

#ifdef __cplusplus
}
#endif
#endif
