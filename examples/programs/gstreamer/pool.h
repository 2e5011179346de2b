/* Memory of the library's as GStreamer's: an allocator of GstMemory, each one cox_buffer, and a pool of video buffers
 * with one such memory for each plane.
 *
 * Decoders write to it and encoders read from it, and the devices work in it: nothing is copied. Where the memory lies
 * is asked for at each map, since a device that was given up makes a buffer move (cox_buffer_data).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GST_COX_POOL_H
#define GST_COX_POOL_H

#include "shared_runtime.h"

#include <gst/video/video.h>

/* An allocator of this runtime's memory, which keeps a reference to it. */
GstAllocator *gst_cox_allocator_new(struct shared_runtime *shared);

/* Free what is kept for the next allocation, which is likely of another size. */
void gst_cox_allocator_trim(GstAllocator *allocator);

/* The buffer that a memory of this allocator's is, or is a part of; it stays the memory's. NULL: it is another's. */
cox_buffer *gst_cox_memory_buffer(const GstMemory *memory, const GstAllocator *allocator);

/* A pool of such memory. Options: GST_BUFFER_POOL_OPTION_VIDEO_META, without which rows lie as GstVideoInfo has them by
 * default; GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT. Every buffer has a GstVideoMeta. */
GstBufferPool *gst_cox_pool_new(GstAllocator *allocator);

#endif
