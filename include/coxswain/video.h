/* Tone mapping of video: HDR frames (PQ or HLG, any usual primaries) become SDR frames (BT.709 or
 * BT.2020 with BT.1886 or sRGB), or PQ for a darker display. A frame takes one pass, or four with
 * COX_OPERATOR_LOCAL. Scene analysis adapts the curve from frame to frame.
 *
 * A frame has one to three planes, see cox_video_planes. Each plane is one buffer of the session.
 * Samples of more than 8 bits are little-endian 16-bit words. They are right-aligned unless
 * `msb_aligned` is set.
 *
 * Every device computes the same bits, wherever the frame is cut into bands.
 * docs/internals/kernels.md has the formulas and their sources.
 *
 * No pointer may be NULL unless a function says so.
 *
 * Thread-safety: every function here is pure. Call it from any thread, if no other thread changes
 * its arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_VIDEO_H
#define COXSWAIN_VIDEO_H

#include <coxswain/tonemap.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How light is encoded. */
enum cox_transfer {
    COX_TRANSFER_PQ = 0, /* SMPTE ST 2084: absolute, up to 10 000 cd/m2 */
    /* ITU-R BT.2100 hybrid log-gamma, with the OOTF of a display of `hlg_peak_nits` */
    COX_TRANSFER_HLG = 1,
    /* 1.0 = SDR white; only for half floats in COX_VIDEO_RGBA and COX_VIDEO_BGRA */
    COX_TRANSFER_LINEAR = 2,
    /* ITU-R BT.1886: light = signal^2.4, 1.0 = SDR white. Such frames pass: `op` and desaturation,
     * the peak and `gain` have no effect. Only the primaries are converted. In PQ output SDR white
     * is 203 cd/m2 (ITU-R BT.2408), or the display's peak if that is lower.
     *
     * If size, subsampling, chroma location, primaries and matrix are those of the output, and its
     * curve is BT.1886, the codes are kept, outside the nominal range too. Then only depth, range
     * and layout change. */
    COX_TRANSFER_SDR = 3,
};

/* Primaries of the input. White is D65, except for DCI-P3, whose white becomes D65. */
enum cox_primaries {
    COX_PRIMARIES_BT2020 = 0,
    COX_PRIMARIES_BT709 = 1,
    COX_PRIMARIES_P3_D65 = 2,    /* Display P3 (SMPTE EG 432-1) */
    COX_PRIMARIES_P3_DCI = 3,    /* cinema (SMPTE RP 431-2) */
    COX_PRIMARIES_BT601_525 = 4, /* SMPTE 170M */
    COX_PRIMARIES_BT601_625 = 5, /* EBU Tech. 3213 */
};

/* The Y'CbCr matrix of the input. Auto follows the primaries; P3 then has the matrix of BT.2020. */
enum cox_matrix {
    COX_MATRIX_AUTO = 0,
    COX_MATRIX_BT2020 = 1, /* non-constant luminance */
    COX_MATRIX_BT709 = 2,
    COX_MATRIX_BT601 = 3,
};

/* The range of codes (ITU-R BT.2100). Full: all codes. Limited, at 8 bits: 16 .. 235 for Y' and for
 * COX_VIDEO_GBR, 16 .. 240 for chroma. With more bits these are multiplied by 2^(bits - 8). */
enum cox_color_range { COX_RANGE_LIMITED = 0, COX_RANGE_FULL = 1 };

/* How the samples of a frame are arranged in planes. */
enum cox_video_layout {
    COX_VIDEO_PLANAR = 0,      /* Y', Cb, Cr */
    COX_VIDEO_SEMI_PLANAR = 1, /* Y', then Cb and Cr interleaved: NV12, P010, NV16, P210 */
    /* One plane of R, G, B, A, full range: half floats as input with COX_TRANSFER_LINEAR, else
     * codes. */
    COX_VIDEO_RGBA = 2,
    COX_VIDEO_BGRA = 3, /* the same as B, G, R, A */
    COX_VIDEO_GBR = 4,  /* planes of G, B, R: GBRP10 and similar */

    /* Input only: one plane, 10 bits, 4:2:2. Six pixels take four little-endian words of three
     * codes each, low bits first: Cb Y' Cr, Y' Cb Y', Cr Y' Cb, Y' Cr Y'. By convention the pitch
     * is a multiple of 128 bytes. */
    COX_VIDEO_V210 = 5,
};

/* Where a chroma sample lies among its luma samples.
 *   COX_CHROMA_LEFT      On the left of two columns, half-way between two rows (MPEG-2, H.264,
 *                        H.265).
 *   COX_CHROMA_CENTER    Half-way between two columns and two rows (JPEG).
 *   COX_CHROMA_TOP_LEFT  On the left of two columns, on the upper of two rows (UHD discs). */
enum cox_chroma_location { COX_CHROMA_LEFT = 0, COX_CHROMA_CENTER = 1, COX_CHROMA_TOP_LEFT = 2 };

/* The format of a frame's samples. */
struct cox_video_format {
    enum cox_video_layout layout;
    uint32_t depth; /* bits per sample, 8 .. 16; RGBA, BGRA: 8 or 16; V210: 10 */
    /* Samples of 9 .. 15 bits use the upper bits of 16, as in P010. Not with V210. */
    bool msb_aligned;
    /* 4:2:0 = 1, 1; 4:2:2 = 1, 0 (also V210); 4:4:4 = 0, 0 (also RGBA, BGRA, GBR). Semi-planar
     * formats are 4:2:0 or 4:2:2. */
    uint32_t chroma_x_log2;
    uint32_t chroma_y_log2;
    enum cox_chroma_location chroma_location; /* 4:2:0 and 4:2:2 */
    enum cox_color_range range;               /* RGBA and BGRA are always full range */
};

/* One plane: `rows` rows of `row_bytes` bytes. The frame's row r is in plane row r / row_divisor. A
 * sample of V210 is a word of 4 bytes. The size of this struct will not change. */
struct cox_video_plane {
    size_t row_bytes;
    uint32_t rows;
    uint32_t row_divisor;
    uint32_t sample_bytes;
};

/* The largest number of planes in a frame. */
enum { COX_VIDEO_PLANES_MAX = 3 };

/* Describe the planes of a frame, and return their number.
 *
 * Returns 0 if the size or the format is not supported. Width and height are 1 .. 65536. There is
 * no 4:4:0 and no 4:1:1. Semi-planar formats are 4:2:0 or 4:2:2. */
COX_API uint32_t cox_video_planes(const struct cox_video_format *format, uint32_t width,
                                  uint32_t height,
                                  struct cox_video_plane planes[COX_VIDEO_PLANES_MAX]);

/* Dither against banding: none, or an ordered 8 x 8 pattern with an amplitude of one output code.
 * The pattern is fixed to the frame. */
enum cox_dither { COX_DITHER_NONE = 0, COX_DITHER_ORDERED = 1 };

/* What happens to light outside the output's primaries.
 *   COX_GAMUT_CLIP      Each channel is clipped, usually by the display.
 *   COX_GAMUT_COMPRESS  The light moves towards grey of about the same luminance until it is
 *                       inside. The hue changes by up to 6 degrees of Oklab. Light up to the knee
 *                       (`gamut_knee`) is unchanged.
 *   COX_GAMUT_HUE       The same, along a line of one hue in Oklab. On a CPU it takes up to five
 *                       times the time of the other two. */
enum cox_gamut { COX_GAMUT_CLIP = 0, COX_GAMUT_COMPRESS = 1, COX_GAMUT_HUE = 2 };

/* How light is encoded in the output.
 *   COX_ENCODING_BT1886  For a display with the curve of BT.1886: light^(1/2.4), as video is.
 *   COX_ENCODING_SRGB    IEC 61966-2-1, as pictures are.
 *   COX_ENCODING_PQ      SMPTE ST 2084, for an HDR display whose peak is `sdr_white_nits`. */
enum cox_encoding { COX_ENCODING_BT1886 = 0, COX_ENCODING_SRGB = 1, COX_ENCODING_PQ = 2 };

/* The primaries and the matrix of the output. */
enum cox_out_primaries { COX_OUT_BT709 = 0, COX_OUT_BT2020 = 1 };

/* The size of the output.
 *   COX_SCALE_NONE    The size of the input.
 *   COX_SCALE_HALF    Half the width and height. Each pixel is the mean of 2 x 2. Input sides must
 *                     be even.
 *   COX_SCALE_FILTER  `out_width` x `out_height`, by the Catmull-Rom cubic (R. Keys 1981). The
 *                     filter is widened along a side that becomes smaller.
 *
 * Scaling works on the codes, not on linear light, so highlights finer than a pixel do
 * not grow. All operators but COX_OPERATOR_LOCAL support it. Histograms are of the scaled frame. */
enum cox_video_scale { COX_SCALE_NONE = 0, COX_SCALE_HALF = 1, COX_SCALE_FILTER = 2 };

/* Reshaping: how the codes of a frame's Y', Cb and Cr become the signal of PQ. Dolby Vision
 * describes it for each frame (dolby.h).
 *
 * A code of n bits counts as code / 2^n. Chroma is interpolated to the pixels first. A component is
 * limited to `least` .. `most`. The last piece whose `from` it reaches gives its new value.
 *
 *   COX_RESHAPE_POLYNOMIAL
 *       c[0] + c[1] x + c[2] x^2 of the component x
 *   COX_RESHAPE_MMR
 *       c[0] + sum over i = 0 .. 6 and j = 0 .. 2 of c[1 + 3 i + j] t[i]^(j + 1)
 *       t = Y', Cb, Cr, Y' Cb, Y' Cr, Cb Cr, Y' Cb Cr
 *
 * The new values are limited to 0 .. 1.
 *
 * `signal_matrix`, in rows, and `signal_offset` give the signal of PQ: M (value - offset).
 * `light_matrix` turns its light to R, G, B of BT.2020. */
enum cox_reshape_kind { COX_RESHAPE_POLYNOMIAL = 0, COX_RESHAPE_MMR = 1 };
enum { COX_RESHAPE_PIECES_MAX = 8, COX_RESHAPE_FACTORS = 22 };
struct cox_reshape_piece {
    double from; /* 0 for the first piece, ascending */
    enum cox_reshape_kind kind;
    double c[COX_RESHAPE_FACTORS]; /* less than 2^16 */
};
struct cox_reshape_curve {
    uint32_t piece_count; /* 1 .. COX_RESHAPE_PIECES_MAX */
    double least;         /* 0 <= least < most <= 1 */
    double most;
    struct cox_reshape_piece piece[COX_RESHAPE_PIECES_MAX];
};
struct cox_video_reshape {
    struct cox_reshape_curve curve[3]; /* Y', Cb, Cr */
    double signal_matrix[9];
    double signal_offset[3];
    double light_matrix[9];
};

/* Write the table of a reshaping, which is a buffer of the frame (cox_video_mapping).
 *
 * Errors:
 *   COX_E_INVALID  An argument is NULL, or a field is out of its range. */
enum { COX_VIDEO_RESHAPE_BYTES = 2400 };
COX_API COX_MUST_CHECK cox_status cox_video_reshape_table(const struct cox_video_reshape *reshape,
                                                          void *table);

/* The curve of HDR10+ (SMPTE ST 2094-40) for one frame: from x, light over `scene_peak_nits`, to
 * y, light over `target_nits`. Both are the largest of R, G and B.
 *
 *   up to the knee     y = x knee_y / knee_x
 *   from the knee on   y = knee_y + (1 - knee_y) B((x - knee_x) / (1 - knee_x))
 *
 * B is the Bezier curve with the ordinates 0, `anchors`, 1 at equal distances. */
enum { COX_HDR10PLUS_ANCHORS_MAX = 15 };
struct cox_hdr10plus_curve {
    float scene_peak_nits; /* 1 .. 10 000 */
    float target_nits;     /* peak of the display that the curve is for; 1 .. 10 000 */
    float knee_x;          /* 0 <= knee_x < 1 */
    float knee_y;          /* 0 .. 1 */
    uint32_t anchor_count; /* up to COX_HDR10PLUS_ANCHORS_MAX */
    float anchors[COX_HDR10PLUS_ANCHORS_MAX]; /* 0 .. 1 */
};

/* A look-up table that takes the place of the tone mapping: a lattice of colours, as .cube files
 * have it. The signal of the input's R', G' and B', 0 .. 1, with the input's primaries, becomes
 * that of the output. Between the lattice points interpolation is tetrahedral. */
struct cox_video_lut {
    uint32_t points; /* along each side, 2 .. COX_LUT_POINTS_MAX */

    /* The signals at the first and the last point of each side; signals outside are limited to
     * them. All zeros = 0 and 1. Each is within -2^16 .. 2^16, and most - least at least 2^-10. */
    float domain_least[3];
    float domain_most[3];

    /* R', G' and B' of each point, of which red changes fastest and blue slowest. Less than 2^16.
     * Interpolated colours are limited to 0 .. 1. */
    const float *colors;
};
enum { COX_LUT_POINTS_MAX = 129 };

/* The bytes of the table that cox_video_lut_table writes: 32 + 16 points^3. 0 if `points` is not in
 * its range. */
COX_API size_t cox_video_lut_bytes(uint32_t points);

/* Write the table of a look-up table, which is a buffer of the frame (cox_video_mapping).
 *
 * Errors:
 *   COX_E_INVALID  An argument is NULL, or a field is out of its range, or NaN. */
COX_API COX_MUST_CHECK cox_status cox_video_lut_table(const struct cox_video_lut *lut, void *table);

/* What the kernels are built for.
 *
 * A pitch is a multiple of 4 bytes (V210: 16), at least `row_bytes` and at most 2^31 - 1. A frame
 * has fewer than 2^32 pixels. Output chroma may be subsampled as much as the input's, or more. If
 * the input or the output is R'G'B', any subsampling is allowed. Alpha is not read. It is written
 * as 1. */
struct cox_video_shape {
    uint32_t width; /* 1 .. 65536 */
    uint32_t height;
    struct cox_video_format in;
    struct cox_video_format out; /* not V210 */
    size_t in_pitch_bytes[COX_VIDEO_PLANES_MAX];
    size_t out_pitch_bytes[COX_VIDEO_PLANES_MAX];

    /* COX_TRANSFER_LINEAR needs RGBA or BGRA of 16 bits, and excludes COX_SCALE_FILTER. */
    enum cox_transfer transfer;
    enum cox_primaries primaries;
    enum cox_matrix matrix;
    /* Frames have a reshaping. Needs Y'CbCr, PQ and BT.2020; `matrix` and the range are ignored. */
    bool reshape;
    enum cox_operator op; /* any but COX_OPERATOR_EXPOSURE */
    /* Colours brighter than SDR white fade to white, see cox_video_settings.desaturate. */
    bool desaturate_highlights;
    enum cox_dither dither;
    enum cox_gamut gamut;
    enum cox_encoding encoding;
    enum cox_out_primaries out_primaries;

    /* COX_OPERATOR_LOCAL needs COX_SCALE_NONE. COX_SCALE_HALF needs even sides, and input pitches
     * up to 2^30 - 1. */
    enum cox_video_scale scale;
    /* COX_SCALE_FILTER: 1/8 to 8 times the input's side, 1 .. 65536. Else 0. */
    uint32_t out_width;
    uint32_t out_height;

    /* Points along each side of the frames' look-up table; 0 = none. The table replaces the light
     * of `transfer`, the operator, `desaturate_highlights`, `gamut` and `encoding`. Excludes
     * COX_TRANSFER_LINEAR, COX_OPERATOR_LOCAL and `reshape`. */
    uint32_t lut_points;
};

/* How one frame is mapped. Zero means the default. */
struct cox_video_settings {
    /* The light that becomes SDR white, or the peak of PQ's display, unless the operator changes
     * it. 1 .. 10 000; 0 = 203 (ITU-R BT.2408). */
    float sdr_white_nits;

    /* The brightest light that keeps its gradation, after `gain`. 1 .. 10^6; 0 = 1000. */
    float peak_nits;

    /* HLG: nominal peak of the display that the OOTF is for. 100 .. 10 000; 0 = 1000. */
    float hlg_peak_nits;

    float gain; /* multiplies the light before everything else; 2^-32 .. 2^32; 0 = 1 */

    /* With `desaturate_highlights`, as in cox_tonemap_settings. 0 = 0.75; negative = not at all. */
    float desaturate;

    float detail; /* COX_OPERATOR_LOCAL, as in cox_tonemap_settings: 0.25 .. 4; 0 = 1 */

    /* COX_GAMUT_COMPRESS and _HUE: the distance from grey at which colours begin to move. 1 = the
     * edge of the output's gamut. 0.25 .. 0.95; 0 = 0.9. */
    float gamut_knee;

    /* Black bars, from cox_video_find_bars: rows at the top and at the bottom of the input. They
     * are not counted in the histogram, and take less time. 0 = none. */
    uint32_t top_bar_rows;
    uint32_t bottom_bar_rows;

    /* Adaptation only: the peak until a frame sets one, such as MaxCLL or the peak of the mastering
     * display. 0 = 1000. */
    float prior_nits;

    /* Adaptation only: upper limit for the peak, but never below SDR white. 0 = none. */
    float most_nits;

    /* With cox_video_shape.reshape: that of the frame. Only read during the call. */
    const struct cox_video_reshape *reshape;

    /* COX_OPERATOR_HDR10PLUS: the curve of the frame. That of bt2390 follows, from the curve's
     * target to SDR white. NULL = bt2390 alone. Only read during the call. */
    const struct cox_hdr10plus_curve *hdr10plus;
};

/* The histogram of a frame's light. It counts blocks of 2 x 2 pixels by the largest of their R', G'
 * and B'. The bins are COX_VIDEO_BINS equal steps of the signal. For linear input they
 * are steps of log2, 16 per stop, from 2^-16 times SDR white. cox_video_adapt reads it. */
enum { COX_VIDEO_BINS = 512, COX_VIDEO_HISTOGRAM_BYTES = 4 * COX_VIDEO_BINS };

/* Create the pipeline for frames of that shape, for cox_session_params.pipeline. The caller owns it
 * and releases it with cox_pipeline_destroy. *out is NULL on an error.
 *
 * Frames give constants from cox_video_prepare, and buffers in this order:
 *   mapping   Input planes, output planes, and the histogram if `analyse` is set.
 *   analysis  Input planes, histogram. It measures a frame before it is mapped.
 * With `reshape` the table of cox_video_reshape_table follows the input planes. With `lut_points`
 * that of cox_video_lut_table does, in a mapping only.
 * A histogram has COX_VIDEO_HISTOGRAM_BYTES. It is of the input, or of the scaled frame if the
 * frame is scaled.
 *
 * These functions do not log.
 *
 * Errors:
 *   COX_E_NOMEM
 *   COX_E_INVALID  An argument is NULL, or a field of `shape` is out of its range. */
COX_API COX_MUST_CHECK cox_status cox_video_mapping(const struct cox_video_shape *shape,
                                                    bool analyse, cox_pipeline **out);
COX_API COX_MUST_CHECK cox_status cox_video_analysis(const struct cox_video_shape *shape,
                                                     cox_pipeline **out);

/* Compute the constants of one frame, for either pipeline. They are computed in double precision
 * and rounded once.
 *
 * This function does not log.
 *
 * Errors:
 *   COX_E_INVALID  An argument is NULL. A field of `shape` or `settings` is out of its range, or
 *                  NaN. */
COX_API COX_MUST_CHECK cox_status cox_video_prepare(const struct cox_video_shape *shape,
                                                    const struct cox_video_settings *settings,
                                                    struct cox_constants *params);

/* Find the black bars of a frame: set `top_bar_rows` and `bottom_bar_rows` of `settings`, for
 * cox_video_prepare. A row belongs to a bar if it has one colour, and that is black within a code
 * of 8 bits. The bars do not change the mapped frame by a bit. Both become 0 where bars
 * do not help: with COX_OPERATOR_LOCAL or COX_SCALE_FILTER, or if all samples of a pixel are in one
 * plane.
 *
 * `data` and `pitch_bytes` are those of the input's planes. A pitch may be negative. Only the rows
 * up to the first and the last one of the picture are read. */
COX_API void cox_video_find_bars(const struct cox_video_shape *shape,
                                 const void *const data[COX_VIDEO_PLANES_MAX],
                                 const ptrdiff_t pitch_bytes[COX_VIDEO_PLANES_MAX],
                                 struct cox_video_settings *settings);

/* The state of the curve's adaptation to a film. All zeros is the state before the first frame.
 *
 * Peak and average follow those of each frame through a one-pole filter. At a cut they take the new
 * frame's values at once. A black frame (nothing over 1 cd/m2) changes nothing. Equal histograms in
 * equal order give equal settings. */
struct cox_adaptation_state {
    uint64_t frames;
    uint64_t cuts;      /* the first scene is not counted */
    double peak_signal; /* filtered, in the signal domain of PQ */
    double average_signal;
    uint32_t coarse[64]; /* the last frame's histogram in steps of 1/64, to detect a cut */

    /* To tell flashes from changes that last. */
    double recent_peaks[3]; /* of the last frames, in any order */
    double recent_averages[3];
    uint64_t past_end; /* `frames` when the scene before ended; 0 = forgotten */
    double past_peak_signal;
    double past_average_signal;
    uint32_t past_coarse[64];
};

/* Adapt the curve to one frame's histogram. Sets `peak_nits` and `gain` of `settings` for the next
 * frame, and reads its other fields.
 *
 * All but one block in 20 000 stay below the peak; in small frames all but 16 blocks, or one in
 * 512. The peak is at least SDR white and at most 10 000 cd/m2. The time constant is 24 frames, a
 * quarter of that for a peak that rises far. At a cut, more than a fifth of the blocks differ. A
 * scene whose average exceeds SDR white is darkened to it: the gain is 0.25 .. 1, or 1 with
 * COX_OPERATOR_HDR10PLUS.
 *
 * A flash lasts up to three frames. A peak that rises by more than 1/32 of the signal is followed
 * only when it has lasted longer. If a scene comes back within that time after a cut, its old peak
 * and average continue.
 *
 * Bars that were not counted are black for the detection of cuts: the number of blocks follows from
 * the size in `shape`.
 *
 * Returns true if the frame begins a new scene. */
COX_API bool cox_video_adapt(struct cox_adaptation_state *state,
                             const struct cox_video_shape *shape, const uint32_t *histogram,
                             struct cox_video_settings *settings);

#ifdef __cplusplus
}
#endif
#endif
