/* Filters of planes: convolution, recursive Gaussian, guided filter. Each is a pipeline for a session.
 *
 * A plane is one buffer of `height` rows of `width` pixels with 1 to 4 interleaved channels, each filtered for itself.
 * Every device gives the same bits, wherever the frame was cut. docs/guide/filters.md shows the use,
 * docs/internals/kernels.md has formulas, numerics and sources.
 *
 * A function makes the passes for planes of a shape (cox_session_params.pipeline). Frames give buffers in the order that
 * the function's text says, and constants from the function's `prepare` for the same shape: the kernels trust the sizes
 * in it.
 *
 * There is no log here. Errors of every function:
 *   COX_E_NOMEM
 *   COX_E_INVALID      an argument is NULL; a field of `shape` is not what cox_filter_shape and the function's text say
 * No pointer is NULL unless a function says so.
 * Thread-safety: every function here is pure: safe from any thread, on arguments no other thread changes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_FILTER_H
#define COXSWAIN_FILTER_H

#include <coxswain/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A float below 2^-40 in magnitude and a NaN count as 0, and no magnitude as more than 2^60. */
enum cox_filter_sample {
    COX_FILTER_FLOAT = 0,
    COX_FILTER_8 = 1,  /* uint8_t */
    COX_FILTER_16 = 2, /* uint16_t, all bits */
};

/* What lies beyond the edges of a convolution. */
enum cox_filter_edge {
    COX_FILTER_CLAMP = 0,  /* aaa|abcd|ddd */
    COX_FILTER_MIRROR = 1, /* dcb|abcd|cba */
    COX_FILTER_ZERO = 2,
};

/* How a filter of several steps becomes passes. The results are the same, except for the Gaussian:
 * its two forms are different filters, whose results differ by rounding. */
enum cox_filter_form {
    /* Fewer passes: a band computes the rows around it that the next step needs. Gaussian: all blocks
     * of 32 samples at once, for GPUs and many cores. */
    COX_FILTER_OVERLAP = 0,

    /* One pass for each step: devices exchange rows between two passes. Gaussian: down the columns
     * into a transposed plane, twice, with less arithmetic, for few cores. */
    COX_FILTER_EXCHANGE = 1,
};

/* What a session filters. Pitches are multiples of 4 bytes (of 16 with channels = 4 and floats), at least a row's
 * bytes, at most 2^31 - 1. What a filter does not use is 0. */
struct cox_filter_shape {
    uint32_t width; /* 1 .. 65536 */
    uint32_t height;
    enum cox_filter_sample sample;
    uint32_t channels; /* 1 .. 4; 0 = 1 */
    size_t in_pitch_bytes;
    size_t guide_pitch_bytes; /* cox_filter_guided; 0 = the input is its own guide */
    size_t out_pitch_bytes;
    uint32_t radius_x; /* of the window, without its centre */
    uint32_t radius_y;
    enum cox_filter_edge edge; /* convolutions */
    enum cox_filter_form form; /* separable, box, guided, Gaussian */
    /* work-items that transpose or add up together: a power of two, 32 .. 1024; 0 = 256 */
    uint32_t group;
};

/* Parameters of one frame, opaque; `cox_frame.constants` points to one. */
struct cox_filter_params {
    uint64_t word[256];
};

/* Weights of a convolution: weight i meets the sample i - radius beside the pixel (correlation: nothing is flipped).
 * Floats: magnitudes up to 2^20; below 2^-40 they count as 0. Integers: the result is (sum + 2^(shift-1)) >> shift,
 * limited to what a sample holds; the magnitudes add up to at most (8 bits / 16 bits)
 *   separable    2^11 / 2^14 along each axis; shift up to 28
 *   convolution  2^22 / 2^14;                 shift up to 28 */
struct cox_filter_weights {
    const float *across;       /* separable: 2 radius_x + 1; convolution: all, row by row */
    const float *down;         /* separable: 2 radius_y + 1 */
    const int32_t *across_int; /* the same for integer samples */
    const int32_t *down_int;
    uint32_t shift;
};

/* Separable convolution, radii up to 31: along the rows, then down the columns. Buffers: input, output.
 * Errors of prepare: COX_E_INVALID too for weights that are missing for the samples, NaN or too large. */
COX_API COX_MUST_CHECK cox_status cox_filter_separable(const struct cox_filter_shape *shape,
                                                       cox_pipeline **out);
COX_API COX_MUST_CHECK cox_status
cox_filter_separable_prepare(const struct cox_filter_shape *shape,
                             const struct cox_filter_weights *weights,
                             struct cox_filter_params *params);

/* Convolution in two dimensions, radii up to 7, in one pass. Buffers: input, output. Errors as above. */
COX_API COX_MUST_CHECK cox_status cox_filter_convolution(const struct cox_filter_shape *shape,
                                                         cox_pipeline **out);
COX_API COX_MUST_CHECK cox_status
cox_filter_convolution_prepare(const struct cox_filter_shape *shape,
                               const struct cox_filter_weights *weights,
                               struct cox_filter_params *params);

/* Gaussian of float samples by a recursive filter, whose time does not depend on sigma; lines go on beyond the edges as
 * they end. Buffers: input, output.
 * Errors of prepare: COX_E_INVALID too for a sigma that is not 0.5 .. 128 pixels. */
COX_API COX_MUST_CHECK cox_status cox_filter_gaussian(const struct cox_filter_shape *shape,
                                                      cox_pipeline **out);
COX_API COX_MUST_CHECK cox_status cox_filter_gaussian_prepare(const struct cox_filter_shape *shape,
                                                              float sigma_x, float sigma_y,
                                                              struct cox_filter_params *params);

/* Guided filter (He, Sun, Tang 2010), radii up to 63, of integer samples; guide and input are of the same samples and
 * channels. `epsilon` is in squares of the full range, as in the paper (0.1^2): up to 1, at least a code's square.
 * Buffers: input, output, and the guide unless the input is its own (guide_pitch_bytes 0).
 * Errors of prepare: COX_E_INVALID too for an epsilon that is not 0 .. 1. */
COX_API COX_MUST_CHECK cox_status cox_filter_guided(const struct cox_filter_shape *shape,
                                                    cox_pipeline **out);
COX_API COX_MUST_CHECK cox_status cox_filter_guided_prepare(const struct cox_filter_shape *shape,
                                                            float epsilon,
                                                            struct cox_filter_params *params);

#ifdef __cplusplus
}
#endif
#endif
