/* A frame's planes as the session gets them: the application's own buffers, buffers put around its memory, or buffers
 * of the stream's to which rows are copied.
 * Thread-safety: one thread at a time for a frame; the pool of a stream is safe from any.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_STREAM_SIDES_H
#define COX_STREAM_SIDES_H

#include "video_image.h"

#include <pthread.h>

/* A buffer that no frame has. */
struct cox__idle;

/* Buffers that frames have had and others may have again: of the stream's memory, for copies, and around memory of the
 * application's. What lies around memory that the application has given up meanwhile is not touched: it is used again
 * only where a frame has the same memory, which then is the application's. Only processors that work in the host's
 * memory have such buffers (COX__PLACE_WRAP). */
struct cox__pool {
    cox_runtime *runtime;
    pthread_mutex_t lock;
    struct cox__idle *idle; /* last used first */
    uint64_t takes;
};

void cox__side_pool_init(struct cox__pool *pool, cox_runtime *runtime);
void cox__side_pool_clear(struct cox__pool *pool);

/* The input or the output of a frame. */
struct cox__side {
    struct cox__image image;
    enum cox__place place[COX_VIDEO_PLANES_MAX];
    cox_buffer *buffers[COX_VIDEO_PLANES_MAX];
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX]; /* of the buffers */
    uint64_t copied_bytes;
};

/* Buffers for planes of those pitches, each in the place that is best for it.
 * Errors: COX_E_NOMEM and what cox_buffer_wrap gives; nothing is held then. */
cox_status cox__side_bind(struct cox__side *side, const struct cox__image_devices *devices,
                          const size_t *pitch_bytes, struct cox__pool *pool);

/* Copy what has to be copied, before the frame is mapped or when it has been. */
void cox__side_copy_in(struct cox__side *side);
void cox__side_copy_out(struct cox__side *side);

/* Give back what binding took. The frame is over. `reuse`: no device has its planes; else one may, and no frame gets
 * them again. */
void cox__side_release(struct cox__side *side, struct cox__pool *pool, bool reuse);

#endif
