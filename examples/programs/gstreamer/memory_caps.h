/* The memory that caps name, for frames that come in: the system's, DMA-BUFs with linear rows, and VA's. All of it can
 * be mapped, so the element treats such caps as those of system memory.
 *
 * Until GStreamer 1.22 caps of DMA-BUFs have a `format` as others do. From 1.24 on, `format` is DMA_DRM, and
 * `drm-format` has the format's name in Linux, with a modifier unless rows are linear.
 * Thread-safety: pure; safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GST_COX_MEMORY_CAPS_H
#define GST_COX_MEMORY_CAPS_H

#include <gst/video/video.h>
#include <stdbool.h>

/* Structure `i` of caps as that of frames in system memory. NULL: such frames cannot be mapped. The caller owns it. */
GstStructure *memory_caps_plain(const GstCaps *caps, guint i);

/* The same for fixed caps; NULL as there. */
GstCaps *memory_caps_all_plain(const GstCaps *caps);

bool memory_caps_is_system(const GstCaps *caps, guint i);

/* Append caps of the same frames in each other kind of memory. `structure` is of system memory, and has a list of
 * formats. */
void memory_caps_append_others(GstCaps *caps, const GstStructure *structure);

#endif
