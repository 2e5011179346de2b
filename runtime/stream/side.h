/* A frame's planes as the session gets them: the application's own buffers, buffers around its
 * memory, or buffers of the stream to which rows are copied.
 * Thread-safety: one thread at a time for a frame; any thread for a stream's pool.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_STREAM_SIDE_H
#define COX_STREAM_SIDE_H

#include "video_image.h"

#include <pthread.h>

/* A buffer that no frame uses. */
struct cox__idle;

/* Buffers that frames have used and that later frames can use again. Some are of the stream's
 * memory, for copies. Others are around the application's memory (COX__PLACE_WRAP); only CPU
 * devices that work in host memory have these. They are used again only for a frame with the same
 * memory. Nothing touches them before, since the application may have freed that memory. */
struct cox__pool {
    cox_runtime *runtime;
    pthread_mutex_t lock;
    struct cox__idle *idle; /* last used first */
    uint64_t takes;
};

void cox__side_pool_init(struct cox__pool *pool, cox_runtime *runtime);
void cox__side_pool_clear(struct cox__pool *pool);

/* Take a buffer of the stream's memory from the pool, or make one. Give it back when no frame uses
 * it; with `reuse` other frames may get it.
 * Errors: COX_E_NOMEM. */
cox_status cox__side_pool_take(struct cox__pool *pool, size_t bytes, cox_buffer **out);
void cox__side_pool_give(struct cox__pool *pool, cox_buffer **buffer, size_t bytes, bool reuse);

/* The input or the output of a frame. */
struct cox__side {
    struct cox__image image;
    enum cox__place place[COX_VIDEO_PLANES_MAX];
    cox_buffer *buffers[COX_VIDEO_PLANES_MAX];
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX]; /* of the buffers */
    uint32_t begun;    /* planes whose own buffer is in use (cox__side_begin), a bit for each */
    cox_buffer *table; /* of the image's reshaping; NULL if it has none */
    uint64_t copied_bytes;
};

/* Begin to use the planes' own buffers, or end it. In between the host may touch their memory, and
 * so may devices, through whatever buffers are around it. To begin may wait for other hardware.
 * Errors: those of cox__import_begin. On an error of begin nothing has begun. End may be called at
 * any time. */
cox_status cox__side_begin(struct cox__side *side, bool writes);
cox_status cox__side_end(struct cox__side *side);

/* Get a buffer of the given pitch for each plane, in the place that is best for it, and the table
 * of a reshaping.
 * Errors: COX_E_NOMEM and those of cox_buffer_wrap and cox_video_reshape_table; then nothing is
 * held. */
cox_status cox__side_bind(struct cox__side *side, const struct cox__image_devices *devices,
                          const size_t *pitch_bytes, struct cox__pool *pool);

/* Copy the rows of planes with COX__PLACE_COPY: in before the frame is mapped, out afterwards. */
void cox__side_copy_in(struct cox__side *side);
void cox__side_copy_out(struct cox__side *side);

/* Give back what cox__side_bind took, when the frame is over. `reuse`: no device uses its planes,
 * so other frames may get them. */
void cox__side_release(struct cox__side *side, struct cox__pool *pool, bool reuse);

#endif
