/* Filters of planes: convolution, recursive Gaussian, guided filter.
 *
 * A plane is one buffer of `height` rows with `width` pixels of 1 to 4 interleaved channels. Each
 * channel is filtered separately. Every device computes the same bits, wherever the frame is cut
 * into bands. docs/guide/filters.md shows how to use the filters. docs/internals/kernels.md has
 * formulas, numerics and sources.
 *
 * Each filter has two functions. The first creates the pipeline for a shape of planes, for
 * cox_session_params.pipeline. The caller owns it and releases it with cox_pipeline_destroy. *out
 * is NULL on an error. The second, with `prepare` in its name, computes the constants of a frame
 * for the same shape. The kernels trust the sizes in them. A frame gives these constants, and its
 * buffers in the order that the filter states.
 *
 * No function here logs. No pointer may be NULL unless a function says so.
 *
 * Errors of every function:
 *   COX_E_NOMEM
 *   COX_E_INVALID  An argument is NULL, or a field of `shape` is not what cox_filter_shape and the
 *                  filter require.
 *
 * Thread-safety: every function here is pure. Call it from any thread, if no other thread changes
 * its arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_FILTER_H
#define COXSWAIN_FILTER_H

#include <coxswain/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The type of a sample. A NaN, and a float below 2^-40 in magnitude, count as 0. A magnitude above
 * 2^60 counts as 2^60. */
enum cox_filter_sample {
    COX_FILTER_FLOAT = 0,
    COX_FILTER_8 = 1,  /* uint8_t */
    COX_FILTER_16 = 2, /* uint16_t, all bits */
};

/* Which samples a convolution reads beyond the edges. */
enum cox_filter_edge {
    COX_FILTER_CLAMP = 0,  /* aaa|abcd|ddd */
    COX_FILTER_MIRROR = 1, /* dcb|abcd|cba */
    COX_FILTER_ZERO = 2,   /* 000|abcd|000 */
};

/* How a filter of several steps becomes passes. Both forms give the same results, except for the
 * Gaussian: its two forms are different filters, and their results differ by rounding. */
enum cox_filter_form {
    /* Fewer passes: a band also computes the rows around it that the next step needs. Gaussian:
     * computes all blocks of 32 samples at once. It suits GPUs and many cores. */
    COX_FILTER_OVERLAP = 0,

    /* One pass for each step: devices exchange rows between two passes. The Gaussian filters the
     * columns and transposes the plane, then does the same again for the rows. This form needs
     * less arithmetic than the other. It suits CPUs with few cores. */
    COX_FILTER_EXCHANGE = 1,
};

/* What a session filters.
 *
 * A pitch is a multiple of 4 bytes, or of 16 for floats with 4 channels. It is at least the bytes
 * of a row and at most 2^31 - 1. A field that a filter does not use must be 0. */
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
    enum cox_filter_form form; /* separable, guided, Gaussian */
    /* Work-items that transpose or sum together: a power of two, 32 .. 1024. 0 = 256. */
    uint32_t group;
};

/* The weights of a convolution. Weight i is for the sample at distance i - radius from the pixel.
 * The operation is a correlation: nothing is flipped.
 *
 * Float weights have magnitudes up to 2^20. Below 2^-40 they count as 0.
 *
 * Integer weights give (sum + 2^(shift-1)) >> shift, limited to the range of a sample. `shift` is
 * at most 28. The sum of their magnitudes is limited:
 *   separable    Along each axis 2^11 for 8 bits, 2^14 for 16 bits.
 *   convolution  In all 2^22 for 8 bits, 2^14 for 16 bits. */
struct cox_filter_weights {
    const float *across;       /* separable: 2 radius_x + 1; convolution: all, row by row */
    const float *down;         /* separable: 2 radius_y + 1 */
    const int32_t *across_int; /* the same for integer samples */
    const int32_t *down_int;
    uint32_t shift;
};

/* Separable convolution: along the rows, then down the columns. Radii are up to 31.
 *
 * Buffers: input, output.
 *
 * Errors of cox_filter_separable_prepare, also:
 *   COX_E_INVALID  Weights for the type of the samples are missing, NaN or too large. `shift` is
 *                  over 28. */
COX_API COX_MUST_CHECK cox_status cox_filter_separable(const struct cox_filter_shape *shape,
                                                       cox_pipeline **out);
COX_API COX_MUST_CHECK cox_status
cox_filter_separable_prepare(const struct cox_filter_shape *shape,
                             const struct cox_filter_weights *weights,
                             struct cox_constants *params);

/* Convolution in two dimensions, in one pass. Radii are up to 7.
 *
 * Buffers: input, output.
 *
 * Errors of cox_filter_convolution_prepare: those of cox_filter_separable_prepare. */
COX_API COX_MUST_CHECK cox_status cox_filter_convolution(const struct cox_filter_shape *shape,
                                                         cox_pipeline **out);
COX_API COX_MUST_CHECK cox_status
cox_filter_convolution_prepare(const struct cox_filter_shape *shape,
                               const struct cox_filter_weights *weights,
                               struct cox_constants *params);

/* Gaussian of float samples by a recursive filter. Its time does not depend on sigma. Beyond the
 * edges a line continues with its last value.
 *
 * Buffers: input, output.
 *
 * Errors of cox_filter_gaussian_prepare, also:
 *   COX_E_INVALID  A sigma is not 0.5 .. 128 pixels. */
COX_API COX_MUST_CHECK cox_status cox_filter_gaussian(const struct cox_filter_shape *shape,
                                                      cox_pipeline **out);
COX_API COX_MUST_CHECK cox_status cox_filter_gaussian_prepare(const struct cox_filter_shape *shape,
                                                              float sigma_x, float sigma_y,
                                                              struct cox_constants *params);

/* Guided filter (He, Sun, Tang 2010) of integer samples. Radii are up to 63. The guide has the
 * sample type and channels of the input.
 *
 * `epsilon` is in squares of the full range, as in the paper (0.1^2). It is at most 1. A value
 * below the square of one code counts as that.
 *
 * Buffers: input, output, guide. There is no guide buffer if the input is its own guide
 * (`guide_pitch_bytes` 0).
 *
 * Errors of cox_filter_guided_prepare, also:
 *   COX_E_INVALID  `epsilon` is not 0 .. 1. */
COX_API COX_MUST_CHECK cox_status cox_filter_guided(const struct cox_filter_shape *shape,
                                                    cox_pipeline **out);
COX_API COX_MUST_CHECK cox_status cox_filter_guided_prepare(const struct cox_filter_shape *shape,
                                                            float epsilon,
                                                            struct cox_constants *params);

#ifdef __cplusplus
}
#endif
#endif
