/* Tone mapping of pictures: the pipeline behind cox-tonemap, for applications that want it inside.
 *
 * Input pixels are scene-linear RGBA with BT.709 primaries, alpha last, row by row with a pitch; 1.0 is diffuse white
 * (SDR white). NaN and negative values count as 0, infinity as the largest value (65504 for half, 2^32 for float).
 * Output pixels are sRGB-encoded; alpha is limited to 0 .. 1 and not encoded, a NaN in it counts as 1.
 * Every device gives the same bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_TONEMAP_H
#define COXSWAIN_TONEMAP_H

#include <coxswain/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All but one are curves, which map a pixel by itself. COX_OPERATOR_LOCAL looks at its surroundings: it takes the
 * picture apart into a base (an edge-preserving mean of log luminance) and the detail about it, compresses the base,
 * lifts its shadows, and leaves the detail as it is or raises it. Formulas and sources: docs/internals/kernels.md. */
#define COX_OPERATOR_MAP(X)                 \
    X(COX_OPERATOR_HABLE, 0, "hable")       \
    X(COX_OPERATOR_REINHARD, 1, "reinhard") \
    X(COX_OPERATOR_MOBIUS, 2, "mobius")     \
    X(COX_OPERATOR_ACES, 3, "aces")         \
    X(COX_OPERATOR_EXPOSURE, 4, "exposure") \
    X(COX_OPERATOR_LINEAR, 5, "linear")     \
    X(COX_OPERATOR_BT2390, 6, "bt2390")     \
    X(COX_OPERATOR_CLIP, 7, "clip")         \
    X(COX_OPERATOR_LOCAL, 8, "local")

/* clang-format off */
enum cox_operator {
#define COX_OPERATOR_ENUM(name, value, text) name = value,
    COX_OPERATOR_MAP(COX_OPERATOR_ENUM)
#undef COX_OPERATOR_ENUM
    COX_OPERATOR_COUNT
};
/* clang-format on */

/* "hable" …; NULL for any other value. */
COX_API const char *cox_operator_name(enum cox_operator op);

/* Errors: COX_E_NOT_FOUND (*op is untouched). */
COX_API cox_status cox_operator_find(const char *name, enum cox_operator *op);

/* Pixels of the input and of the output: R, G, B, A of that type. */
enum cox_pixel_in { COX_PIXEL_RGBA_HALF = 0, COX_PIXEL_RGBA_FLOAT = 1 };
enum cox_pixel_out { COX_PIXEL_RGBA8 = 0, COX_PIXEL_RGBA16 = 1 };

/* Shape of the pictures. Input rows are width * 8 (half) or 16 (float) bytes, output rows width * 4 or 8; a pitch is
 * at least that and a multiple of one pixel. */
struct cox_tonemap_shape {
    uint32_t width;
    uint32_t height;
    enum cox_pixel_in in;
    enum cox_pixel_out out;
    size_t in_pitch_bytes;
    size_t out_pitch_bytes;
    /* 1: the session is for COX_OPERATOR_LOCAL and for it alone; 0: for all other operators */
    uint32_t local;
};

/* What to do with each picture. Zero means the default. */
struct cox_tonemap_settings {
    enum cox_operator op;
    float exposure_stops; /* the picture is multiplied by 2^stops first */

    /* Brightest input after exposure, in multiples of SDR white, that keeps its gradation; 0 = 10. */
    float peak;

    /* How fast light above diffuse white loses its colour, 0 .. 1, so that hot spots end white; negative = not at all;
     * 0 = the default, 0.75. It starts at the luminance that the operator maps to 0.5, but not below 1. */
    float desaturate;

    /* COX_OPERATOR_LOCAL: factor on the contrast (the logarithm) of the detail, 0.25 .. 4; 1 = as in the light, less
     * flattens, more sharpens; 0 = 1. */
    float detail;
};

/* What the analysis found. */
struct cox_tonemap_analysis {
    float log_average; /* exp(mean ln luminance) over the non-black pixels; 0 for a black picture */
    float peak;        /* the luminance that 99.995 % of the pixels do not exceed */
    float highlight;   /* the luminance that 98 % of the pixels do not exceed */
    uint64_t pixels;
    uint32_t reserved[4]; /* 0 */
};

/* Per-frame parameters of the mapping pipeline, opaque; `cox_frame.constants` points to one. */
struct cox_tonemap_params {
    uint32_t word[64];
};

/* The histogram that the analysis writes. */
enum {
    COX_TONEMAP_HISTOGRAM_BINS = 1024,
    COX_TONEMAP_HISTOGRAM_BYTES = 4 * (COX_TONEMAP_HISTOGRAM_BINS + 2)
};

/* Make the passes for pictures of that shape (cox_session_params.pipeline). Frames give buffers in this order:
 *   mapping   input picture, output picture; constants from cox_tonemap_prepare
 *   analysis  input picture, histogram of COX_TONEMAP_HISTOGRAM_BYTES; no constants
 * A mapping with `local` is for settings with COX_OPERATOR_LOCAL.
 *
 * There is no log here. Errors:
 *   COX_E_NOMEM
 *   COX_E_INVALID      an argument is NULL, or a field of `shape` is not one of these:
 *     width, height                    1 .. 65536; for the analysis fewer than 2^32 pixels
 *     in, out                          an enumerator
 *     local                            0 or 1
 *     in_pitch_bytes, out_pitch_bytes  a multiple of one pixel, from a row's bytes to 2^31 - 1
 * Thread-safety: safe from any thread. */
COX_API COX_MUST_CHECK cox_status cox_tonemap_mapping(const struct cox_tonemap_shape *shape,
                                                      cox_pipeline **out);
COX_API COX_MUST_CHECK cox_status cox_tonemap_analysis(const struct cox_tonemap_shape *shape,
                                                       cox_pipeline **out);

/* Compute the mapping pipeline's constants for one frame (curve constants in double precision, rounded once).
 * The analysis pipeline takes none.
 * There is no log here. Errors:
 *   COX_E_INVALID      an argument is NULL, `shape` is invalid (cox_tonemap_mapping), or a field of
 *                      `settings` is not one of these:
 *     op                               an operator, one that shape->local allows
 *     exposure_stops                   -64 .. 64
 *     peak                             neither negative nor NaN
 *     desaturate                       not NaN
 *     detail                           0 or 0.25 .. 4
 * Thread-safety: safe from any thread. */
COX_API COX_MUST_CHECK cox_status cox_tonemap_prepare(const struct cox_tonemap_shape *shape,
                                                      const struct cox_tonemap_settings *settings,
                                                      struct cox_tonemap_params *params);

/* Read the histogram that the analysis pipeline left in `histogram`. Bins hold pixels by log2 of luminance, 32 per
 * stop, over 2^-16 .. 2^16 relative to SDR white; the last two words count black pixels, below 2^-16, and hold the
 * bits of the largest luminance. */
COX_API void cox_tonemap_read_analysis(const uint32_t *histogram, struct cox_tonemap_analysis *out);

/* Take a picture's exposure from its own analysis. This adds to exposure_stops so that the operator
 * maps the log-average to middle grey (0.18). A night scene is to stay one, so the picture is
 * lifted at most until its highlight would be diffuse white under a linear operator. The function
 * sets `peak` to the analysed peak at that exposure. A black picture leaves the settings alone. */
COX_API void cox_tonemap_auto_exposure(const struct cox_tonemap_analysis *analysis,
                                       struct cox_tonemap_settings *settings);

#ifdef __cplusplus
}
#endif
#endif
