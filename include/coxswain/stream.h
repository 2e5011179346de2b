/* A stream of HDR video frames: tone-mapped to SDR on all devices, and returned in order.
 *
 * Planes may lie anywhere in memory, with any pitch, top down or bottom up. A picture may be a
 * window of a larger one. Size, format, light and options may change from frame to frame. The curve
 * starts again where the transfer changes.
 *
 * The stream creates a session (session.h) with a pipeline of video.h for each shape. It keeps the
 * sessions of the last few shapes, so a stream that returns to one of them does not compile again.
 *
 * A plane is used in place if devices can work on its memory. Otherwise its rows are copied, on the
 * thread that sends or receives, and the copied bytes are counted.
 *
 *   A whole buffer of the runtime    In place on every device. The plane begins at the first byte
 *                                    of the buffer, and the last row has a full pitch.
 *   Other memory,
 *   a window of a buffer             In place if all devices work in host memory, as CPUs do.
 *   A negative pitch,
 *   one not a multiple of 4 bytes    Always copied. The multiple is 16 for V210.
 *
 * Zero-copy also requires matching pitches. The stream uses the pitches of its first frame. It
 * changes to other pitches when two frames in a row have them. With several devices, the pitch must
 * also allow a split into bands: see cox_runtime_pitch_bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_STREAM_H
#define COXSWAIN_STREAM_H

#include <coxswain/video.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A picture in the application's memory. */
struct cox_video_image {
    struct cox_video_format format;
    uint32_t width; /* visible pixels */
    uint32_t height;
    enum cox_transfer transfer; /* of input */
    enum cox_primaries primaries;
    enum cox_matrix matrix;
    enum cox_encoding encoding; /* of output */
    enum cox_out_primaries out_primaries;

    /* The first sample of each plane's top row, and the bytes from a row to the row below. A pitch
     * is negative if the top row is last in memory. cox_video_planes gives the number of planes,
     * and row_bytes and rows of each. */
    void *data[COX_VIDEO_PLANES_MAX];
    ptrdiff_t pitch_bytes[COX_VIDEO_PLANES_MAX];

    /* The buffer that holds all rows of each plane, of the stream's runtime. NULL = other memory.
     * Several planes may be in one buffer. Name a DMA-BUF here (cox_buffer_import_dmabuf): the
     * stream then starts an access to it in cox_video_stream_send, and ends it when the frame is
     * received.
     *
     * If the buffer begins with the plane and has pitch x rows bytes or more, the bytes between the
     * rows may be overwritten. In all other memory the stream touches only the samples.
     *
     * Create or wrap the memory of a frame pool once, with cox_buffer_create or cox_buffer_wrap.
     * Its use for a frame then costs nothing. Release it with cox_buffer_destroy. */
    cox_buffer *memory[COX_VIDEO_PLANES_MAX];

    /* Input: how it is reshaped, see cox_video_reshape. NULL = not at all. Only read during the
     * call. */
    const struct cox_video_reshape *reshape;

    /* Input: the frame's curve for COX_OPERATOR_HDR10PLUS. NULL = none. Only read during the
     * call. */
    const struct cox_hdr10plus_curve *hdr10plus;

    /* The brightest light that the source states: MaxCLL, or the peak of the mastering display.
     * 0 = unknown. Values below SDR white or above 10 000 are ignored. */
    float peak_nits;
};

/* Allocate buffers for an image of that format and size, one per plane. Sets format, width, height,
 * data, pitch_bytes and memory of `image`. Other fields are left alone.
 *
 * The caller owns the buffers and releases them with cox_video_image_destroy. On an error nothing
 * is allocated and `image` is not changed.
 *
 * Errors:
 *   COX_E_INVALID  an argument is NULL, or there is no such format or size
 *   COX_E_NOMEM
 *
 * Thread-safety: as for cox_buffer_create. */
COX_API COX_MUST_CHECK cox_status cox_video_image_create(cox_runtime *runtime,
                                                         const struct cox_video_format *format,
                                                         uint32_t width, uint32_t height,
                                                         struct cox_video_image *image);

/* Release the buffers of an image, as cox_buffer_destroy does. Accepts NULL, and an image without
 * buffers. */
COX_API void cox_video_image_destroy(struct cox_video_image *image);

/* Which frames set the peak of the curve: the brightest light that keeps its gradation. */
enum cox_peak_source {
    /* The frames before. A frame starts on the devices when the frame before it is tone-mapped. */
    COX_PEAK_PREVIOUS = 0,
    /* The frame itself too. A pass before the mapping measures it. The frame is copied only once to
     * devices that have their own memory. */
    COX_PEAK_CURRENT = 1,
    COX_PEAK_FIXED = 2, /* cox_video_settings.peak_nits */
};

/* A choice that the stream makes unless the application does. */
enum cox_tristate { COX_AUTO = 0, COX_NO = 1, COX_YES = 2 };

/* The same for light outside the output's primaries, see enum cox_gamut. Auto: compress, but clip
 * if the input is BT.709 or SDR of BT.601, or the output is BT.2020. */
enum cox_gamut_choice {
    COX_GAMUT_AUTO = 0,
    COX_GAMUT_ALWAYS_CLIP = 1,
    COX_GAMUT_ALWAYS_COMPRESS = 2,
    COX_GAMUT_ALWAYS_HUE = 3,
};

/* How frames are mapped. Zero means the default: what cox-tonemap does with a film. */
struct cox_tonemap_options {
    enum cox_operator op; /* any but COX_OPERATOR_EXPOSURE */
    enum cox_peak_source peak;
    enum cox_tristate dither; /* auto: if the output has fewer bits than the input */
    enum cox_gamut_choice gamut;

    /* `peak_nits` applies only with COX_PEAK_FIXED. With other sources `gain` multiplies the gain
     * that the adaptation finds. The resulting gain and peak are limited to the ranges of
     * cox_video_prepare. `prior_nits` 0 = the peak that the image states. A negative `desaturate`
     * keeps the colours of bright light. */
    struct cox_video_settings settings;

    bool trust_peak; /* no light is brighter than cox_video_image.peak_nits */

    /* A look-up table instead of the operator: its points along a side, and a buffer of the
     * stream's runtime that cox_video_lut_table wrote. 0 and NULL = none. The buffer belongs to the
     * stream until the frames that are sent with it are received. Needs COX_PEAK_FIXED; the other
     * fields but `dither` and `box_downscale` do not matter. */
    uint32_t lut_points;
    cox_buffer *lut_table;

    /* If the output has exactly half the size, each pixel is the mean of 2 x 2 (COX_SCALE_HALF).
     * This is faster than the filter. The option does not change the size of the output. */
    bool box_downscale;
};

/* Thread-safety: one thread at a time sends and one receives. They may differ and run at the same
 * time. cox_video_stream_set, _cancel, _descriptor, _info and _session_info may be called from any
 * thread. No function of the stream may be called from a callback of the library. */
typedef struct cox_video_stream cox_video_stream;

/* Create a stream. Kernels are compiled when the first frame is sent. *out is NULL on an error.
 *
 * `session` gives the policy, devices, frames in flight, report and so on of the stream's sessions.
 * NULL = all defaults. What it points to must stay valid until the stream is destroyed. Reports use
 * the frame numbers of cox_video_result. The stream ignores:
 *   - the fields that describe a pipeline: `columns`, `rows`, `passes` and so on
 *   - `warm_start`
 *
 * With COX_WARMUP_BACKGROUND, calls that compile wait for the first device only. The others join
 * later.
 *
 * `options` gives the options and is copied. NULL = all defaults.
 *
 * Errors:
 *   COX_E_INVALID    An argument is NULL. `options` is invalid (see cox_video_stream_set).
 *                    `session->warmup` is invalid.
 *   COX_E_NOT_FOUND  `session` names a device that the runtime does not have.
 *   COX_E_SYSTEM     No descriptor could be created.
 *   COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_video_stream_create(cox_runtime *runtime,
                                                          const struct cox_session_params *session,
                                                          const struct cox_tonemap_options *options,
                                                          cox_video_stream **out);

/* Cancel frames under way, destroy the stream, set *stream to NULL. Accepts NULL. Frames that were
 * not received are dropped without a result. The memory of all frames belongs to the application
 * again. Blocks until the frames have ended. */
COX_API void cox_video_stream_destroy(cox_video_stream **stream);

/* Set the options for frames that are sent from now on. `options` is copied.
 *
 * cox_video_stream_send may still refuse a frame, if the operator does not support its format, or
 * its change of size.
 *
 * Errors, upon which nothing changes:
 *   COX_E_INVALID  an argument is NULL, or a field is out of its range. See cox_video_mapping and
 *                  cox_video_prepare for the ranges. */
COX_API COX_MUST_CHECK cox_status cox_video_stream_set(cox_video_stream *stream,
                                                       const struct cox_tonemap_options *options);

/* Compile now for frames like these two images, with the current options. The first such frame then
 * does not wait for compilation. Only formats, sizes, colours and pitches are read: `data` may be
 * NULL.
 *
 * Blocks for compilation, with COX_WARMUP_BACKGROUND until one device is ready. Errors: those of
 * cox_video_stream_send.
 *
 * Thread-safety: only from the thread that sends. */
COX_API COX_MUST_CHECK cox_status cox_video_stream_prepare(cox_video_stream *stream,
                                                           const struct cox_video_image *in,
                                                           const struct cox_video_image *out);

/* Send one frame. The structs are copied. The planes, and the buffers in `memory`, belong to the
 * stream until the frame is received. The result returns `user`.
 *
 * The planes of `in` are only read. `out` must not overlap `in`, nor planes of other frames that
 * are not received yet. A frame is scaled (COX_SCALE_FILTER) if the two sizes differ.
 *
 * The call blocks:
 *   always             While all slots are taken: `in_flight` frames are on the devices.
 *   new shape          For compilation.
 *   COX_PEAK_PREVIOUS  While any frame is on the devices. The first frame, and the first after
 *                      cox_video_stream_restart, is mapped twice, first to measure its light. The
 *                      call blocks for that.
 *   COX_PEAK_CURRENT   While the light of the frame before is measured.
 *
 * Errors, upon which the frame is not taken and the curve does not change:
 *   COX_E_INVALID    an argument is NULL, or an image is invalid. A format, size or transfer cannot
 *                    be mapped (see cox_video_mapping). A buffer is too short, or of another
 *                    runtime.
 *   COX_E_CANCELLED  cox_video_stream_cancel was called while a first frame's light was measured
 *   COX_E_SYSTEM     the access to a DMA-BUF could not be started
 *   COX_E_NOMEM
 * Also those of cox_session_create, for example if the stream's `session` is invalid, and those of
 * cox_session_submit. The log says why. */
COX_API COX_MUST_CHECK cox_status cox_video_stream_send(cox_video_stream *stream,
                                                        const struct cox_video_image *in,
                                                        const struct cox_video_image *out,
                                                        void *user);

/* The next frame does not continue the frames before it, for example after a seek. The curve starts
 * again, as with the stream's first frame.
 *
 * Thread-safety: only from the thread that sends. */
COX_API void cox_video_stream_restart(cox_video_stream *stream);

/* The result of one frame. */
struct cox_video_result {
    /* As a cox_done_fn gets it. If it is not COX_OK, the output is undefined.
     *
     * COX_E_MEMORY_UNSAFE: a CPU device hangs and may still write to the output's planes, which are
     * other memory and were used in place. Keep that memory until the runtime is destroyed. */
    cox_status status;
    void *user;
    uint64_t frame; /* from 0, in the order of sending */

    /* The output's planes now: a buffer's memory may have moved (cox_buffer_data). */
    void *out_data[COX_VIDEO_PLANES_MAX];

    /* Bytes that the host copied because planes could not be used in place. */
    uint64_t bytes_copied_in;
    uint64_t bytes_copied_out;

    float peak_nits; /* that the frame was mapped with */
    float gain;

    /* COX_PEAK_PREVIOUS and COX_PEAK_CURRENT: from the frame's histogram. */
    bool cut; /* a scene begins with this frame */
    /* 99.995 % of the blocks of 2 x 2 pixels do not exceed this light, in small frames all but 16.
     * 0 for a black frame. */
    float scene_peak_nits;
    float scene_average_nits; /* the light at the mean of the signal */
};

/* Receive the next frame, in the order of sending. With `wait` the call blocks until that frame is
 * done. The planes and buffers of the frame belong to the application again.
 *
 * Errors:
 *   COX_E_INVALID    an argument is NULL
 *   COX_E_BUSY       the next frame is not done yet
 *   COX_E_NOT_FOUND  every frame that was sent has been received */
COX_API COX_MUST_CHECK cox_status cox_video_stream_receive(cox_video_stream *stream, bool wait,
                                                           struct cox_video_result *result);

/* A descriptor for poll, select and epoll: readable while a frame can be received. The stream owns
 * it. Do not read or close it. -1 if `stream` is NULL. */
COX_API int cox_video_stream_descriptor(const cox_video_stream *stream);

/* Cancel all frames that were sent (cox_session_cancel). They are still received. */
COX_API void cox_video_stream_cancel(cox_video_stream *stream);

/* Totals since the stream was created. */
struct cox_video_stream_info {
    uint64_t bytes_copied_in;
    uint64_t bytes_copied_out;
    uint64_t frames_copied_in; /* frames of which the host copied something */
    uint64_t frames_copied_out;
    uint64_t sessions_made;
};

/* Zeros if `stream` is NULL. */
COX_API void cox_video_stream_info(cox_video_stream *stream, struct cox_video_stream_info *info);

/* The session that mapped the newest frame. Zeros if `stream` is NULL, or before the first
 * frame. */
COX_API void cox_video_stream_session_info(cox_video_stream *stream, struct cox_session_info *info);

#ifdef __cplusplus
}
#endif
#endif
