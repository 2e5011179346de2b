/* A stream of HDR video frames: tone-mapped to SDR on all devices, and returned in order.
 *
 * Planes may lie anywhere in memory, with any pitch. Size, format and options may change from frame to
 * frame. The stream compiles kernels for each shape and keeps the last few.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_STREAM_H
#define COXSWAIN_STREAM_H

#include <coxswain/session.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cox_transfer {
    COX_TRANSFER_PQ = 0,     /* SMPTE ST 2084 */
    COX_TRANSFER_HLG = 1,    /* ITU-R BT.2100 hybrid log-gamma */
    COX_TRANSFER_LINEAR = 2, /* 1.0 = SDR white; half-float RGBA and BGRA only */
};

enum cox_primaries { COX_PRIMARIES_BT2020 = 0, COX_PRIMARIES_BT709 = 1 };

enum cox_color_range { COX_RANGE_LIMITED = 0, COX_RANGE_FULL = 1 };

enum cox_chroma_location { COX_CHROMA_LEFT = 0, COX_CHROMA_CENTER = 1, COX_CHROMA_TOP_LEFT = 2 };

enum cox_plane_layout {
    COX_PLANAR = 0,      /* Y', Cb, Cr */
    COX_SEMI_PLANAR = 1, /* Y', then Cb and Cr interleaved: NV12, P010, NV16, P210 */
    COX_RGBA = 2,
    COX_BGRA = 3,
    COX_GBR = 4,  /* planes of G, B, R */
    COX_V210 = 5, /* input only: packed 10-bit 4:2:2 */
};

struct cox_video_format {
    enum cox_plane_layout layout;
    uint32_t depth;         /* bits per sample, 8 to 16 */
    bool msb_aligned;       /* samples use the upper bits of 16, as in P010 */
    uint32_t chroma_x_log2; /* 4:2:0 = 1, 1; 4:2:2 = 1, 0; 4:4:4 = 0, 0 */
    uint32_t chroma_y_log2;
    enum cox_chroma_location chroma_location;
    enum cox_color_range range; /* RGBA and BGRA are always full range */
};

enum { COX_VIDEO_PLANES_MAX = 3 };

/* A picture in the application's memory. */
struct cox_video_image {
    struct cox_video_format format;
    uint32_t width; /* visible pixels */
    uint32_t height;
    enum cox_transfer transfer; /* of input */
    enum cox_primaries primaries;

    /* The first sample of each plane, and bytes from a row to the row below. Pitches may be negative. */
    void *data[COX_VIDEO_PLANES_MAX];
    ptrdiff_t pitch_bytes[COX_VIDEO_PLANES_MAX];

    /* The buffer that holds each plane, for zero copy. NULL = other memory. */
    cox_buffer *buffers[COX_VIDEO_PLANES_MAX];

    float peak_nits; /* MaxCLL, or the peak of the mastering display; 0 = unknown */
};

/* Allocate buffers for an image of that format and size: sets data, pitch_bytes and buffers.
 * Errors: COX_E_INVALID, COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_video_image_alloc(cox_runtime *runtime,
                                                        struct cox_video_image *image);

/* Free what cox_video_image_alloc allocated. Accepts NULL. */
COX_API void cox_video_image_free(struct cox_video_image *image);

enum cox_tonemap_curve {
    COX_CURVE_HABLE = 0,
    COX_CURVE_REINHARD,
    COX_CURVE_MOBIUS,
    COX_CURVE_ACES,
    COX_CURVE_LINEAR,
    COX_CURVE_BT2390,
    COX_CURVE_CLIP,
    COX_CURVE_LOCAL, /* keeps local contrast: compresses a base layer, keeps detail */
};

/* Which frames set the peak of the curve. */
enum cox_peak_source {
    COX_PEAK_PREVIOUS = 0, /* the frames before; one frame is under way at a time */
    COX_PEAK_CURRENT = 1,  /* this frame too, measured in an extra pass */
    COX_PEAK_FIXED = 2,    /* cox_tonemap_options.peak_nits */
};

enum cox_tristate { COX_AUTO = 0, COX_NO = 1, COX_YES = 2 };

/* Zero means the default: what cox-tonemap does with a film. */
struct cox_tonemap_options {
    enum cox_tonemap_curve curve;
    enum cox_peak_source peak_source;
    float sdr_white_nits;             /* 0 = 203 (ITU-R BT.2408) */
    float peak_nits;                  /* COX_PEAK_FIXED; 0 = 1000 */
    float hlg_peak_nits;              /* nominal display peak for HLG; 0 = 1000 */
    float exposure_stops;             /* the picture is multiplied by 2^stops */
    float highlight_desaturation;     /* 0 = 0.75; negative = none */
    float local_contrast;             /* COX_CURVE_LOCAL: 0.25 to 4; 0 = 1 */
    enum cox_tristate dither;         /* auto: if the output has fewer bits than the input */
    enum cox_tristate compress_gamut; /* auto: if the input is BT.2020. No: clip */
    bool trust_peak;                  /* no light is brighter than image.peak_nits */
    bool box_downscale;               /* half size: mean of 2 x 2 pixels, faster than the filter */
    float adaptation_frames;          /* time constant of the curve's adaptation; 0 = 24 */
    float cut_threshold; /* share of blocks that differ at a cut; 0 = 0.2; over 1 = never */
};

/* Thread-safety: one thread sends and one receives, at the same time. Other functions: any thread. */
typedef struct cox_video_stream cox_video_stream;

/* `session`: policy, devices, in_flight, report and so on. Its columns, rows, passes and buffers are
 * ignored. NULL = defaults. `options` NULL = defaults. */
COX_API COX_MUST_CHECK cox_status cox_video_stream_create(cox_runtime *runtime,
                                                          const struct cox_session_params *session,
                                                          const struct cox_tonemap_options *options,
                                                          cox_video_stream **out);

/* Cancel frames under way, destroy the stream, set *stream to NULL. Accepts NULL. */
COX_API void cox_video_stream_destroy(cox_video_stream **stream);

/* Options for frames that are sent from now on. Errors: COX_E_INVALID; then nothing changes. */
COX_API COX_MUST_CHECK cox_status
cox_video_stream_configure(cox_video_stream *stream, const struct cox_tonemap_options *options);

/* Compile now for frames like these. Data pointers may be NULL. Blocks. */
COX_API COX_MUST_CHECK cox_status cox_video_stream_prepare(cox_video_stream *stream,
                                                           const struct cox_video_image *in,
                                                           const struct cox_video_image *out);

struct cox_video_frame {
    const struct cox_video_image *in;
    const struct cox_video_image *out; /* another size: the frame is scaled */
    void *user;                        /* returned in the result */
    bool nowait;                       /* return COX_E_BUSY instead of waiting for other frames */
    bool discontinuity;                /* after a seek: the curve starts again */
    uint64_t deadline_ns;              /* after sending; 0 = none */
    enum cox_late late;
};

/* Send one frame. The images are copied; their memory belongs to the stream until the frame is received.
 *
 * Blocks while all slots are taken, and to compile for a new shape.
 *
 * Errors: COX_E_INVALID, COX_E_BUSY, COX_E_CANCELLED, and those of cox_session_create and _submit */
COX_API COX_MUST_CHECK cox_status cox_video_stream_send(cox_video_stream *stream,
                                                        const struct cox_video_frame *frame);

struct cox_video_result {
    cox_status status; /* not COX_OK: the output is undefined */
    void *user;
    uint64_t frame;                      /* from 0, in the order of sending */
    void *in_data[COX_VIDEO_PLANES_MAX]; /* the planes now; a hung device may have moved a buffer */
    void *out_data[COX_VIDEO_PLANES_MAX];
    uint64_t bytes_copied_in;
    uint64_t bytes_copied_out;
    float peak_nits;
    bool cut; /* a scene begins */
};

/* Receive the next frame, in the order of sending. `wait`: block until it is done.
 *
 * Errors: COX_E_BUSY (not done yet), COX_E_NOT_FOUND (nothing was sent), COX_E_INVALID */
COX_API COX_MUST_CHECK cox_status cox_video_stream_receive(cox_video_stream *stream, bool wait,
                                                           struct cox_video_result *result);

/* A descriptor for poll and epoll: readable while a frame can be received. Do not read or close it. */
COX_API int cox_video_stream_descriptor(const cox_video_stream *stream);

/* Cancel all frames that were sent. They are still received. */
COX_API void cox_video_stream_cancel(cox_video_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
