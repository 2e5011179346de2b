/* Reference for the video kernels: the whole computation in scalar double precision with the C library's functions,
 * written from the formulas and not from the kernels. It handles one frame at a time. Planes are as
 * cox_video_planes describes them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_VIDEO_H
#define COX_TESTS_REF_VIDEO_H

#include "ref_local.h"
#include "ref_lut.h"
#include "ref_tonemap.h"
#include <coxswain/video.h>

/* A shape with its settings, the defaults filled in. Fill it with ref_video_init. */
struct ref_video {
    struct cox_video_shape shape;
    uint32_t width, height; /* of the output */
    double white_nits, peak_nits, hlg_peak_nits, gain, strength;
    double peak;                             /* in multiples of SDR white */
    double fade;                             /* luminance from which colours fade */
    double primaries[3][3];                  /* to BT.709 */
    double sdr_nits;                         /* the white of COX_TRANSFER_SDR */
    double detail;                           /* COX_OPERATOR_LOCAL */
    double knee;                             /* COX_GAMUT_COMPRESS */
    const double *out_luma;                  /* Kr, Kg, Kb of the output */
    const struct cox_video_reshape *reshape; /* NULL = none */
    const struct cox_hdr10plus_curve *hdr10plus;
    const struct cox_video_lut *lut; /* NULL = none; see ref_lut_of */
};

/* The size of the output's frames. */
void ref_video_size(const struct cox_video_shape *shape, uint32_t *width, uint32_t *height);

void ref_video_init(struct ref_video *ref, const struct cox_video_shape *shape,
                    const struct cox_video_settings *settings);

/* --- The steps ---------------------------------------------------------------------------------------------------- */

/* The inverse OETF of HLG, and the OETF: signal 0 .. 1 to and from scene light 0 .. 1. */
double ref_hlg_light(double signal);
double ref_hlg_signal(double light);

/* The matrix from the light of some primaries to that of others. White becomes white (Bradford). */
void ref_primaries(enum cox_primaries from, enum cox_primaries to, double m[3][3]);

/* Kr, Kg, Kb. */
const double *ref_video_luma(const struct cox_video_shape *shape);

/* The code of sample (i, j) of one part of a frame. Parts 0, 1, 2 are Y', Cb, Cr, or R, G, B. */
uint32_t ref_video_part(const struct cox_video_shape *shape, const void *const in[COX_VIDEO_PLANES_MAX], int part,
                        size_t i, size_t j);
void ref_video_put_part(const struct cox_video_shape *shape, void *const in[COX_VIDEO_PLANES_MAX], int part, size_t i,
                        size_t j, uint32_t code);

/* R', G', B' of a pixel of the output, within 0 .. 1. For linear input it is the light itself, not negative. */
void ref_video_signal(const struct ref_video *ref, const void *const in[COX_VIDEO_PLANES_MAX], uint32_t x, uint32_t y,
                      double signal[3]);

/* The light of a signal, with the input's primaries: 1.0 = SDR white, after the gain. */
void ref_video_light(const struct ref_video *ref, const double signal[3], double light[3]);

/* The operator for one number, without limits. */
double ref_video_operator(const struct ref_video *ref, double x);

/* Light to the display's R', G', B' (BT.709, BT.1886 or sRGB), -1 .. 1, for all operators except COX_OPERATOR_LOCAL. */
void ref_video_display(const struct ref_video *ref, const double light[3], double display[3]);

/* --- Frames ------------------------------------------------------------------------------------------------------- */

/* Samples of plane `plane` of an output frame. Width and height are in samples; channels (1, 2 or 4) are
 * interleaved. */
struct ref_plane {
    uint32_t width, height, channels;
};

struct ref_plane ref_video_plane(const struct cox_video_format *format, uint32_t width, uint32_t height,
                                 uint32_t plane);

/* Map a frame. out[p][(y * width + x) * channels + c] is the sample as a real number of codes, limited to the range
 * of codes, before dither and rounding. The caller frees each out[p]. Returns false if memory runs out. */
bool ref_video_map(const struct ref_video *ref, const void *const in[COX_VIDEO_PLANES_MAX],
                   double *out[COX_VIDEO_PLANES_MAX]);

/* The code of a real number at (x, y) of its plane. */
uint32_t ref_video_code(const struct ref_video *ref, double value, uint32_t x, uint32_t y);

/* The Bayer matrix of 8 x 8. */
uint32_t ref_bayer(uint32_t x, uint32_t y);

/* A sample of a frame that a device wrote, with `msb_aligned` undone. */
uint32_t ref_video_sample(const struct cox_video_format *format, const void *plane, size_t pitch_bytes, size_t index,
                          uint32_t y);

/* The histogram. `near[b]` counts the blocks within `tolerance` bins of the lower edge of bin b, on either side. A
 * device may count these in the neighbouring bin. */
void ref_video_histogram(const struct ref_video *ref, const void *const in[COX_VIDEO_PLANES_MAX], double tolerance,
                         uint32_t counts[COX_VIDEO_BINS], uint32_t near[COX_VIDEO_BINS]);

/* Whether `got` is the reference's histogram, apart from blocks near an edge. If not, `*bin` is the first wrong
 * one. */
bool ref_video_same_histogram(const uint32_t *got, const uint32_t counts[COX_VIDEO_BINS],
                              const uint32_t near[COX_VIDEO_BINS], uint32_t *bin);

#endif
