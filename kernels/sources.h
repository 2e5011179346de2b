/* The OpenCL C sources as strings, includes resolved; made at build time by cmake/EmbedKernels.cmake.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_KERNELS_SOURCES_H
#define COX_KERNELS_SOURCES_H

extern const char cox__source_tonemap_picture[];
extern const char cox__source_tonemap_histogram[];
extern const char cox__source_video_frame[];

#endif
