/* Frames of a decoder in buffers of the runtime: it decodes into them, and devices work on them where they lie. As many
 * are made as the decoder and the devices hold at once.
 *
 * Thread-safety: create and destroy from one thread; the rest from any, the decoder's included.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBAV_POOL_H
#define LIBAV_POOL_H

#include "libav_calls.h"
#include "video_kinds.h"

#include <coxswain/runtime.h>

struct libav_pool;

/* For frames of the pixel format, as the decoder has them now, with rows as far apart as those of its first one:
 * H.264's decoder wants that of all that refer to each other. The runtime stays until the pool is destroyed. NULL: no
 * memory, or the frame is none that can be lent. */
struct libav_pool *libav_pool_create(cox_runtime *runtime, AVCodecContext *decoder, const AVFrame *first,
                                     const struct cox_video_format *pixel);

/* No frame may be in it any more. NULL is accepted. */
void libav_pool_destroy(struct libav_pool **pool);

/* An AVCodecContext.get_buffer2's work: memory for a frame of the size and format that stand in it. False: it does not
 * fit, or there is no memory. */
bool libav_pool_give(struct libav_pool *pool, AVCodecContext *decoder, AVFrame *frame);

/* The buffers in which a frame lies. False: it is not the pool's, or does not begin where they do. */
bool libav_pool_find(struct libav_pool *pool, const AVFrame *frame, cox_buffer *planes[COX_VIDEO_PLANES_MAX]);

#endif
