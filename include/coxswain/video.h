/* Tone mapping of video: HDR frames (PQ or HLG, BT.2020 or BT.709) to SDR frames (BT.709 with BT.1886), in one pass per
 * frame (four with COX_OPERATOR_LOCAL); and scene analysis, which steers the curve from frame to frame.
 *
 * A frame is one to three planes, each a buffer of the session (`cox_video_planes` says which). Samples of more than 8
 * bits are little-endian 16-bit words, right-aligned unless `msb_aligned`. Every device gives the same bits, wherever
 * the frame was cut. docs/internals/kernels.md has the formulas and where they come from.
 *
 * No pointer is NULL unless a function says so.
 * Thread-safety: every function here is pure: safe from any thread, on arguments no other thread changes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_VIDEO_H
#define COXSWAIN_VIDEO_H

#include <coxswain/tonemap.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How light is coded. */
enum cox_transfer {
    COX_TRANSFER_PQ = 0, /* SMPTE ST 2084: absolute, up to 10 000 cd/m2 */
    /* ITU-R BT.2100 hybrid log-gamma, with the OOTF of a display of `hlg_peak_nits` */
    COX_TRANSFER_HLG = 1,
    /* 1.0 = SDR white; half floats of COX_VIDEO_RGBA and COX_VIDEO_BGRA only */
    COX_TRANSFER_LINEAR = 2,
};

/* Primaries of the input, and the Y'CbCr matrix that goes with them. */
enum cox_primaries { COX_PRIMARIES_BT2020 = 0, COX_PRIMARIES_BT709 = 1 };

/* The range of codes (ITU-R BT.2100): limited, 16 .. 235 of 8 bits for Y' and for COX_VIDEO_GBR, or all of them. */
enum cox_color_range { COX_RANGE_LIMITED = 0, COX_RANGE_FULL = 1 };

enum cox_video_layout {
    COX_VIDEO_PLANAR = 0,      /* Y', Cb, Cr */
    COX_VIDEO_SEMI_PLANAR = 1, /* Y', then Cb and Cr in turn: NV12, P010, NV16, P210 */
    /* one plane of R, G, B, A, full range; COX_TRANSFER_LINEAR in: half floats, else codes */
    COX_VIDEO_RGBA = 2,
    COX_VIDEO_BGRA = 3, /* the same in the order B, G, R, A */
    COX_VIDEO_GBR = 4,  /* planes of G, B, R: GBRP10 and its kin */

    /* In only: one plane, six pixels of 4:2:2, 10 bits, in four little-endian words of three codes each, low bits
     * first: Cb Y' Cr, Y' Cb Y', Cr Y' Cb, Y' Cr Y'. By convention rows lie a multiple of 128 bytes apart. */
    COX_VIDEO_V210 = 5,
};

/* Where a chroma sample lies among the luma samples it belongs to. It lies on the left one of two columns (as in
 * MPEG-2, H.264, H.265) or half-way between them (as in JPEG); half-way between two rows, or on the upper one (as on
 * UHD discs). */
enum cox_chroma_location { COX_CHROMA_LEFT = 0, COX_CHROMA_CENTER = 1, COX_CHROMA_TOP_LEFT = 2 };

struct cox_video_format {
    enum cox_video_layout layout;
    uint32_t depth;   /* bits per sample, 8 .. 16; RGBA, BGRA: 8 or 16; V210: 10 */
    bool msb_aligned; /* samples of 9 .. 15 bits lie in the upper bits of 16: P010 */
    /* 4:2:0 = 1, 1; 4:2:2 = 1, 0 (also V210); 4:4:4 = 0, 0 (also RGBA, BGRA, GBR) */
    uint32_t chroma_x_log2;
    uint32_t chroma_y_log2;
    enum cox_chroma_location chroma_location; /* 4:2:0 and 4:2:2 */
    enum cox_color_range range;               /* of RGBA and BGRA it says nothing: theirs is full */
    uint32_t reserved[5];                     /* 0 */
};

/* One plane; keeps its size: `rows` rows of `row_bytes` bytes, the frame's row r lying in plane row r / row_divisor. A
 * sample of V210 is a word of 4 bytes. */
struct cox_video_plane {
    size_t row_bytes;
    uint32_t rows;
    uint32_t row_divisor;
    uint32_t sample_bytes;
};

/* The most planes of a frame. */
enum { COX_VIDEO_PLANES_MAX = 3 };

/* The planes of a frame; returns how many. 0 if the size or the format does not work: sides are 1 .. 65536, there is no
 * 4:4:0 or 4:1:1, semi-planar is 4:2:0 or 4:2:2. */
COX_API uint32_t cox_video_planes(const struct cox_video_format *format, uint32_t width,
                                  uint32_t height,
                                  struct cox_video_plane planes[COX_VIDEO_PLANES_MAX]);

/* Dither against banding: none, or an ordered 8 x 8 pattern fixed to the frame, of one code of the output. */
enum cox_dither { COX_DITHER_NONE = 0, COX_DITHER_ORDERED = 1 };

/* Light outside BT.709: clipped channel by channel, by the display as a rule; or moved towards grey of the same
 * luminance until it is inside, which keeps its hue better. Light inside is not touched up to the knee (gamut_knee). */
enum cox_gamut { COX_GAMUT_CLIP = 0, COX_GAMUT_COMPRESS = 1 };

/* The output has as many pixels as the input; or half the width and height, of even sides, each the mean of 2 x 2 of
 * the input's; or out_width x out_height, by Catmull-Rom's cubic (R. Keys 1981), widened where a side becomes smaller.
 * All in the signal, before it becomes light: highlights finer than a pixel do not grow. Every operator but
 * COX_OPERATOR_LOCAL; histograms are of the scaled frame. */
enum cox_video_scale { COX_SCALE_NONE = 0, COX_SCALE_HALF = 1, COX_SCALE_FILTER = 2 };

/* What the kernels are built for. Pitches are multiples of 4 bytes (V210: 16), at least row_bytes, at most 2^31 - 1.
 * Output chroma may be subsampled further than the input's, not less; R'G'B' in may go to any, as may any to R'G'B'.
 * Alpha is not read, and 1 in what is written. A frame has fewer than 2^32 pixels. */
struct cox_video_shape {
    uint32_t width;
    uint32_t height;
    struct cox_video_format in;
    struct cox_video_format out;
    size_t in_pitch_bytes[COX_VIDEO_PLANES_MAX];
    size_t out_pitch_bytes[COX_VIDEO_PLANES_MAX];
    enum cox_transfer transfer;
    enum cox_primaries primaries;
    enum cox_operator op; /* any but COX_OPERATOR_EXPOSURE */
    bool
        desaturate_highlights; /* colours brighter than SDR white fade to white, by cox_video_settings.desaturate */
    enum cox_dither dither;
    enum cox_gamut gamut;
    enum cox_video_scale scale;
    /* COX_SCALE_FILTER: not of half floats, each side an eighth to eightfold; else 0 */
    uint32_t out_width;
    uint32_t out_height;
};

/* How each frame is mapped. Zero means the default. */
struct cox_video_settings {
    /* the light that becomes SDR white if the operator leaves it there; 0 = 203 (BT.2408) */
    float sdr_white_nits;
    float peak_nits;     /* the brightest light that keeps its gradation; 0 = 1000 */
    float hlg_peak_nits; /* HLG: nominal peak of the display the OOTF is for; 0 = 1000 */
    float gain;          /* light is multiplied by this first; peak_nits counts after it; 0 = 1 */
    float desaturate; /* with `fade`, as in cox_tonemap_settings: 0 = 0.75, negative = not at all */
    float detail;     /* COX_OPERATOR_LOCAL, as in cox_tonemap_settings: 0.25 .. 4; 0 = 1 */
    float
        gamut_knee; /* COX_GAMUT_COMPRESS: how far a colour is from grey, 1 = on the edge of BT.709, from where
                             it is moved: 0.25 .. 0.95; 0 = 0.9 */
};

/* Per-frame parameters of both pipelines, opaque; `cox_frame.params` points to one, made by cox_video_prepare for the
 * session's shape: the kernels trust the sizes in it. */
struct cox_video_params {
    uint32_t word[128];
};

/* The buffer written by the analysis: counts of 2 x 2 blocks by the largest of the R', G', B' of their pixels, in
 * COX_VIDEO_BINS equal steps of the signal (PQ or HLG, or for linear input log2, see cox_video_read_scene). */
enum { COX_VIDEO_BINS = 512, COX_VIDEO_HISTOGRAM_BYTES = 4 * COX_VIDEO_BINS };

/* Make the passes for frames of that shape (cox_session_params.pipeline). Frames give buffers in this order:
 *   mapping   input planes, output planes, and with `analyse` the histogram
 *   analysis  input planes, histogram: for a look ahead
 * and constants from cox_video_prepare. Histograms have COX_VIDEO_HISTOGRAM_BYTES. They are of the input, or of the
 * scaled frame if it is scaled.
 *
 * There is no log here. Errors:
 *   COX_E_NOMEM
 *   COX_E_INVALID      an argument is NULL, or a field of `shape` is not one of these:
 *     width, height                    1 .. 65536, and fewer than 2^32 pixels
 *     in, out                          in both formats:
 *       layout, site, range            an enumerator; out is no V210
 *       depth                          8 .. 16; RGBA and BGRA 8 or 16; V210 10
 *       msb_aligned                      with a depth of 9 .. 15 only, not with V210
 *       chroma                         4:2:0, 4:2:2 or 4:4:4; semi-planar no 4:4:4; RGBA, BGRA and
 *                                      GBR 4:4:4; V210 4:2:2. Unless in or out is RGBA, BGRA or
 *                                      GBR, out's is subsampled no less than in's.
 *       reserved                       0
 *     in_pitch_bytes, out_pitch_bytes  of each plane: a multiple of 4 (V210: 16), from row_bytes to 2^31 - 1
 *     transfer, primaries, dither,
 *     gamut, scale                     an enumerator; COX_TRANSFER_LINEAR only if `in` is RGBA or
 *                                      BGRA of 16 bits, and not with COX_SCALE_FILTER
 *     out_width, out_height            0, or with COX_SCALE_FILTER an eighth to eightfold of the input's, 1 .. 65536
 *     op                               any operator but COX_OPERATOR_EXPOSURE */
COX_API COX_MUST_CHECK cox_status cox_video_mapping(const struct cox_video_shape *shape,
                                                    bool analyse, cox_pipeline **out);
COX_API COX_MUST_CHECK cox_status cox_video_analysis(const struct cox_video_shape *shape,
                                                     cox_pipeline **out);

/* The parameter block of one frame, for either pipeline (constants in double precision, rounded once).
 * There is no log here. Errors:
 *   COX_E_INVALID      an argument is NULL, `shape` is invalid (cox_video_mapping), or a field of
 *                      `settings` is not one of these:
 *     sdr_white_nits                   0 or 1 .. 10 000
 *     peak_nits                        0 or 1 .. 10^6
 *     hlg_peak_nits                    0 or 100 .. 10 000
 *     gain                             0 or 2^-32 .. 2^32
 *     desaturate                       not NaN
 *     detail                           0 or 0.25 .. 4
 *     gamut_knee                       0 or 0.25 .. 0.95 */
COX_API COX_MUST_CHECK cox_status cox_video_prepare(const struct cox_video_shape *shape,
                                                    const struct cox_video_settings *settings,
                                                    struct cox_video_params *params);

/* What a histogram says of its frame. */
struct cox_video_scene {
    float peak_nits; /* the light that 99.995 % of the blocks do not exceed; 0 for a black frame */
    float average_nits; /* the light at the mean of the signal */
    uint64_t blocks;
    uint32_t reserved[4]; /* 0 */
};

/* Fill *out from a frame's histogram. `shape` and `settings` are the frame's. They give the
 * transfer of the histogram's steps, and the light that the signal represents (sdr_white_nits,
 * hlg_peak_nits). */
COX_API void cox_video_read_scene(const struct cox_video_shape *shape,
                                  const struct cox_video_settings *settings,
                                  const uint32_t *histogram, struct cox_video_scene *out);

/* The curve's way through a film: peak and average follow each frame's through a one-pole filter, and jump at a cut. A
 * black frame (nothing over 1 cd/m2) changes nothing. All zeros is the state before the first frame. Equal histograms
 * in equal order give equal settings. */
struct cox_adaptation_state {
    uint64_t frames;
    uint64_t cuts;      /* the first scene is not counted */
    double peak_signal; /* filtered, in the signal domain of PQ */
    double average_signal;
    uint32_t coarse[64];   /* the last frame's histogram in steps of 1/64, for telling a cut */
    uint32_t reserved[16]; /* 0 */
};

/* How steering behaves. Zero means the default. */
struct cox_adaptation_options {
    /* time constant of the filter in frames, a quarter of it for a peak that rises far; 0 = 24 */
    float frames;
    float cut; /* share of the blocks that must differ for a cut, 0 .. 1; 0 = 0.2; over 1 = never */
    float most_nits; /* upper limit for the peak, but never below SDR white; 0 = none */

    /* A scene whose average is over this multiple of SDR white is darkened to it; 0 = 1; negative = never. */
    float bright_average;

    /* The peak until a frame sets one, such as the mastering display's or MaxCLL; 0 = 1000. */
    float prior_nits;
};

/* Take one frame's histogram; set peak_nits and gain of `settings` (the other fields are read) for the frame to come.
 * NULL options are the defaults. The peak is at least SDR white and at most 10 000 cd/m2. The gain is 0.25 .. 1.
 * Returns whether the frame began a new scene. */
COX_API bool cox_video_adapt(struct cox_adaptation_state *steer,
                             const struct cox_adaptation_options *options,
                             const struct cox_video_shape *shape, const uint32_t *histogram,
                             struct cox_video_settings *settings);

#ifdef __cplusplus
}
#endif
#endif
