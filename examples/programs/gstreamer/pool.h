/* The library's memory for GStreamer: an allocator whose GstMemory is a cox_buffer each, and a pool
 * of video buffers with one such memory per plane.
 *
 * Decoders write to it, encoders read from it, and devices work in it: nothing is copied. Each map
 * asks where the memory is, since a buffer moves if a device is lost (cox_buffer_data).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GST_COX_POOL_H
#define GST_COX_POOL_H

#include "shared_runtime.h"

#include <gst/video/video.h>

/* An allocator of this runtime's memory. It keeps a reference to the runtime. */
GstAllocator *gst_cox_allocator_new(struct shared_runtime *shared);

/* Free the buffers that are kept for reuse: the next ones will have another size. */
void gst_cox_allocator_trim(GstAllocator *allocator);

/* The buffer of a memory, or of the memory that it is a part of. The memory owns it. NULL if it is
 * another allocator's. */
cox_buffer *gst_cox_memory_buffer(const GstMemory *memory, const GstAllocator *allocator);

/* A pool of this memory. Options: GST_BUFFER_POOL_OPTION_VIDEO_META (without it, rows are where
 * GstVideoInfo has them by default) and GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT. Every buffer has a
 * GstVideoMeta. */
GstBufferPool *gst_cox_pool_new(GstAllocator *allocator);

#endif
