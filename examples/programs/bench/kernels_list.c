/* The ceilings and kernels of cox-bench kernels.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels_state.h"

/* The last ceiling has enough arithmetic that memory does not matter, so it gives the arithmetic
 * rate. */
const uint32_t kernels_multiply_adds[KERNELS_CEILINGS] = {0, 3, 6, 12, 24, 192};

/* Operations of a pixel, as docs/results/kernel-operations.sh counts them: additions,
 * multiplications, fma, selections, shifts, bitwise operations and conversions. Loads, stores,
 * shuffles and address sums do not count. Filters are not counted: only their memory accesses
 * matter. */
const struct kernels_entry kernels_list[KERNELS_COUNT] = {
    {"picture, half to 8 bits", "picture_half_8", KERNELS_PICTURE, COX_PIXEL_RGBA_HALF,
     COX_PIXEL_RGBA8, .operations = {182, 142}},
    {"picture, float to 8 bits", "picture_float_8", KERNELS_PICTURE, COX_PIXEL_RGBA_FLOAT,
     COX_PIXEL_RGBA8, .operations = {173, 133}},
    {"picture, half to 16 bits", "picture_half_16", KERNELS_PICTURE, COX_PIXEL_RGBA_HALF,
     COX_PIXEL_RGBA16, .operations = {192, 146}},
    {"picture histogram, half", "picture_histogram", KERNELS_HISTOGRAM, COX_PIXEL_RGBA_HALF,
     .operations = {49, 39}},
    {"video, PQ", "video_pq", KERNELS_VIDEO, .transfer = COX_TRANSFER_PQ, .operations = {247, 166}},
    {"video, PQ, with analysis", "video_pq_analyse", KERNELS_VIDEO, .analyse = true,
     .operations = {260, 179}},
    {"video, PQ, analysis alone", "video_analysis", KERNELS_ANALYSIS, .operations = {39, 35}},
    {"video, HLG", "video_hlg", KERNELS_VIDEO, .transfer = COX_TRANSFER_HLG,
     .operations = {280, 200}},
    {"blur of radius 15, separable", "blur", KERNELS_BLUR, .form = COX_FILTER_EXCHANGE},
    {"Gaussian, recursive, in blocks", "gaussian", KERNELS_GAUSSIAN, .form = COX_FILTER_OVERLAP},
    {"Gaussian, recursive, by lines", "gaussian_lines", KERNELS_GAUSSIAN,
     .form = COX_FILTER_EXCHANGE},
};
