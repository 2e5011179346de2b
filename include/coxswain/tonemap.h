/* Tone mapping of pictures, with the pipeline that cox-tonemap uses.
 *
 * Input pixels are scene-linear RGBA with BT.709 primaries, alpha last, in rows with a pitch. 1.0
 * is diffuse white, which is SDR white. NaN and negative values count as 0. Infinity counts as the
 * largest value: 65504 for half, 2^32 for float.
 *
 * Output pixels are sRGB-encoded. Alpha is limited to 0 .. 1 and is not encoded. A NaN in alpha
 * counts as 1.
 *
 * Every device computes the same bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_TONEMAP_H
#define COXSWAIN_TONEMAP_H

#include <coxswain/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tone mapping operators. All but COX_OPERATOR_LOCAL are curves: the result depends only on the
 * pixel.
 *
 * COX_OPERATOR_LOCAL also depends on the pixel's surroundings. It separates the picture into a base
 * and detail. The base is an edge-preserving mean of log luminance. The operator compresses the
 * base, lifts its shadows, and keeps the detail or changes its contrast.
 *
 * COX_OPERATOR_HDR10PLUS is for video alone: frames bring their curve (cox_hdr10plus_curve).
 *
 * docs/internals/kernels.md has the formulas and their sources. */
#define COX_OPERATOR_MAP(X)                 \
    X(COX_OPERATOR_HABLE, 0, "hable")       \
    X(COX_OPERATOR_REINHARD, 1, "reinhard") \
    X(COX_OPERATOR_MOBIUS, 2, "mobius")     \
    X(COX_OPERATOR_ACES, 3, "aces")         \
    X(COX_OPERATOR_EXPOSURE, 4, "exposure") \
    X(COX_OPERATOR_LINEAR, 5, "linear")     \
    X(COX_OPERATOR_BT2390, 6, "bt2390")     \
    X(COX_OPERATOR_CLIP, 7, "clip")         \
    X(COX_OPERATOR_LOCAL, 8, "local")       \
    X(COX_OPERATOR_BT2446A, 9, "bt2446a")   \
    X(COX_OPERATOR_BT2446C, 10, "bt2446c")  \
    X(COX_OPERATOR_SPLINE, 11, "spline")    \
    X(COX_OPERATOR_HDR10PLUS, 12, "hdr10plus")

/* clang-format off */
enum cox_operator {
#define COX_OPERATOR_ENUM(name, value, text) name = value,
    COX_OPERATOR_MAP(COX_OPERATOR_ENUM)
#undef COX_OPERATOR_ENUM
    COX_OPERATOR_COUNT
};
/* clang-format on */

/* The name of an operator, such as "hable". NULL for any other value. */
COX_API const char *cox_operator_name(enum cox_operator op);

/* Find an operator by its name.
 *
 * Errors, upon which *op is unchanged:
 *   COX_E_NOT_FOUND  no operator has that name */
COX_API cox_status cox_operator_find(const char *name, enum cox_operator *op);

/* The type of the samples R, G, B, A in input and output pixels. */
enum cox_pixel_in { COX_PIXEL_RGBA_HALF = 0, COX_PIXEL_RGBA_FLOAT = 1 };
enum cox_pixel_out { COX_PIXEL_RGBA8 = 0, COX_PIXEL_RGBA16 = 1 };

/* The shape of the pictures. An input row has width * 8 bytes (half) or width * 16 (float), an
 * output row width * 4 or width * 8. A pitch is at least that, at most 2^31 - 1, and a multiple of
 * one pixel. The analysis takes fewer than 2^32 pixels. */
struct cox_tonemap_shape {
    uint32_t width; /* 1 .. 65536 */
    uint32_t height;
    enum cox_pixel_in in;
    enum cox_pixel_out out;
    size_t in_pitch_bytes;
    size_t out_pitch_bytes;
    /* 1 = the session is only for COX_OPERATOR_LOCAL; 0 = for all other operators */
    uint32_t local;
};

/* How one picture is mapped. Zero means the default. */
struct cox_tonemap_settings {
    enum cox_operator op;
    float exposure_stops; /* the picture is multiplied by 2^stops first; -64 .. 64 */

    /* The brightest input that keeps its gradation: after exposure, in multiples of SDR white.
     * 0 = 10. */
    float peak;

    /* How fast light above diffuse white loses its colour, so that the brightest parts end white.
     * 0 .. 1; 0 = 0.75; negative = not at all. It starts at the luminance that the operator maps to
     * 0.5, but not below 1. */
    float desaturate;

    /* COX_OPERATOR_LOCAL: multiplies the contrast (the logarithm) of the detail. 0.25 .. 4; 0 = 1,
     * as in the light. Less flattens, more sharpens. */
    float detail;
};

/* The result of the analysis. */
struct cox_tonemap_analysis {
    float log_average; /* exp(mean ln luminance) of the non-black pixels; 0 for a black picture */
    float peak;        /* the luminance that 99.995 % of the pixels do not exceed */
    float highlight;   /* the luminance that 98 % of the pixels do not exceed */
};

/* The histogram that the analysis writes, see cox_tonemap_read_analysis. */
enum {
    COX_TONEMAP_HISTOGRAM_BINS = 1024,
    COX_TONEMAP_HISTOGRAM_BYTES = 4 * (COX_TONEMAP_HISTOGRAM_BINS + 2)
};

/* Create the pipeline for pictures of that shape, for cox_session_params.pipeline. The caller owns
 * it and releases it with cox_pipeline_destroy. *out is NULL on an error.
 *
 * Frames give buffers in this order:
 *   mapping   Input picture, output picture. Constants come from cox_tonemap_prepare.
 *   analysis  Input picture, histogram of COX_TONEMAP_HISTOGRAM_BYTES. There are no constants.
 * A mapping with `local` is for settings with COX_OPERATOR_LOCAL.
 *
 * These functions do not log.
 *
 * Errors:
 *   COX_E_NOMEM
 *   COX_E_INVALID  An argument is NULL, or a field of `shape` is out of its range.
 *
 * Thread-safety: any thread. */
COX_API COX_MUST_CHECK cox_status cox_tonemap_mapping(const struct cox_tonemap_shape *shape,
                                                      cox_pipeline **out);
COX_API COX_MUST_CHECK cox_status cox_tonemap_analysis(const struct cox_tonemap_shape *shape,
                                                       cox_pipeline **out);

/* Compute the constants of one frame for the mapping pipeline. The constants of the curve are
 * computed in double precision and rounded once. The analysis pipeline takes no constants.
 *
 * This function does not log.
 *
 * Errors:
 *   COX_E_INVALID  An argument is NULL. A field of `shape` or `settings` is out of its range, or
 *                  NaN. `op` is an operator that shape->local does not allow.
 *
 * Thread-safety: any thread. */
COX_API COX_MUST_CHECK cox_status cox_tonemap_prepare(const struct cox_tonemap_shape *shape,
                                                      const struct cox_tonemap_settings *settings,
                                                      struct cox_constants *params);

/* Fill *out from a histogram of the analysis pipeline.
 *
 * Bins count pixels by log2 of luminance, 32 per stop, over 2^-16 .. 2^16 relative to SDR white.
 * Two words follow. The first counts the black pixels, those below 2^-16. The second holds the bits
 * of the largest luminance. */
COX_API void cox_tonemap_read_analysis(const uint32_t *histogram, struct cox_tonemap_analysis *out);

/* Set a picture's exposure from its own analysis.
 *
 * The function adds to `exposure_stops` so that the operator maps the log-average to middle grey
 * (0.18). A night scene stays dark. The picture is lifted at most until its highlight would be
 * diffuse white under a linear operator. `peak` becomes the analysed peak at that exposure. A black
 * picture leaves the settings unchanged. */
COX_API void cox_tonemap_auto_exposure(const struct cox_tonemap_analysis *analysis,
                                       struct cox_tonemap_settings *settings);

#ifdef __cplusplus
}
#endif
#endif
