/* The OpenCL C sources as strings, with includes resolved; made at build time by
 * cmake/EmbedKernels.cmake.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_SOURCES_H
#define COX_KERNELS_SOURCES_H

extern const char cox__source_tonemap_picture[];
extern const char cox__source_tonemap_histogram[];
extern const char cox__source_tonemap_blocks[];
extern const char cox__source_tonemap_base[];
extern const char cox__source_video_frame[];
extern const char cox__source_video_blocks[];
extern const char cox__source_video_scale[];
extern const char cox__source_video_codes[];
extern const char cox__source_filter_separable[];
extern const char cox__source_filter_convolve[];
extern const char cox__source_filter_gauss[];
extern const char cox__source_filter_gauss_blocks[];
extern const char cox__source_filter_box[];
extern const char cox__source_filter_guided[];
extern const char cox__source_filter_transpose[];
extern const char cox__source_filter_scan[];

#endif
