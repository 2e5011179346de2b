/* SPDX-License-Identifier: Apache-2.0 */
#include "sides.h"

#include <stdlib.h>

/* ---- Buffers for copies ------------------------------------------------------------------------------------------ */

/* As many as stay when no frame has them: of another size they are of no use. */
enum { IDLE_MAX = 3 * COX_IN_FLIGHT_MAX };

struct cox__idle {
    struct cox__idle *next;
    cox_buffer *buffer;
    size_t bytes;
};

void cox__pool_init(struct cox__pool *pool, cox_runtime *runtime)
{
    pool->runtime = runtime;
    pool->idle = NULL;
    pthread_mutex_init(&pool->lock, NULL);
}

static void drop(struct cox__idle *idle)
{
    while (idle) {
        struct cox__idle *next = idle->next;
        cox_buffer_destroy(&idle->buffer);
        free(idle);
        idle = next;
    }
}

void cox__pool_clear(struct cox__pool *pool)
{
    drop(pool->idle);
    pool->idle = NULL;
    pthread_mutex_destroy(&pool->lock);
}

static size_t bytes_of(const cox_buffer *buffer)
{
    struct cox_buffer_info info;
    cox_buffer_info(buffer, &info, sizeof info);
    return info.bytes;
}

static cox_status take(struct cox__pool *pool, size_t bytes, cox_buffer **out)
{
    struct cox__idle **link = &pool->idle;
    pthread_mutex_lock(&pool->lock);
    while (*link && (*link)->bytes != bytes)
        link = &(*link)->next;
    struct cox__idle *idle = *link;
    if (idle)
        *link = idle->next;
    pthread_mutex_unlock(&pool->lock);
    if (!idle)
        return cox_buffer_create(pool->runtime, bytes, out);
    *out = idle->buffer;
    free(idle);
    return COX_OK;
}

static void give_back(struct cox__pool *pool, cox_buffer **buffer)
{
    struct cox__idle *idle = calloc(1, sizeof *idle), *too_many = NULL;
    if (!idle) {
        cox_buffer_destroy(buffer);
        return;
    }
    idle->buffer = *buffer;
    idle->bytes = bytes_of(*buffer);
    *buffer = NULL;
    pthread_mutex_lock(&pool->lock);
    idle->next = pool->idle;
    pool->idle = idle;
    for (int count = 1; count < IDLE_MAX && idle; count++)
        idle = idle->next;
    if (idle) {
        too_many = idle->next;
        idle->next = NULL;
    }
    pthread_mutex_unlock(&pool->lock);
    drop(too_many);
}

/* ---- Planes ------------------------------------------------------------------------------------------------------ */

static cox_status bind_plane(struct cox__side *side, uint32_t p, struct cox__pool *pool)
{
    const struct cox__image *image = &side->image;
    const size_t bytes = side->pitch_bytes[p] * image->planes[p].rows;
    switch (side->place[p]) {
    case COX__PLACE_BUFFER:
        side->buffers[p] = image->image.memory[p];
        return COX_OK;
    case COX__PLACE_WRAP:
        return cox_buffer_wrap(pool->runtime, image->image.data[p], bytes, NULL, NULL, &side->buffers[p]);
    case COX__PLACE_COPY:
        return take(pool, bytes, &side->buffers[p]);
    }
    return COX_E_INVALID;
}

cox_status cox__side_bind(struct cox__side *side, const struct cox__image_devices *devices, const size_t *pitch_bytes,
                          struct cox__pool *pool)
{
    const struct cox__image *image = &side->image;
    cox_status status = COX_OK;
    for (uint32_t p = 0; p < image->plane_count && status == COX_OK; p++) {
        const bool same = image->image.pitch_bytes[p] > 0 && (size_t)image->image.pitch_bytes[p] == pitch_bytes[p];
        side->place[p] = same ? cox__image_place(image, p, devices) : COX__PLACE_COPY;
        side->pitch_bytes[p] = pitch_bytes[p];
        status = bind_plane(side, p, pool);
    }
    if (status != COX_OK)
        cox__side_release(side, pool);
    return status;
}

void cox__side_copy_in(struct cox__side *side)
{
    for (uint32_t p = 0; p < side->image.plane_count; p++)
        if (side->place[p] == COX__PLACE_COPY)
            side->copied_bytes += cox__image_copy_in(&side->image, p, cox_buffer_data(side->buffers[p]),
                                                     side->pitch_bytes[p]);
}

void cox__side_copy_out(struct cox__side *side)
{
    for (uint32_t p = 0; p < side->image.plane_count; p++)
        if (side->place[p] == COX__PLACE_COPY)
            side->copied_bytes += cox__image_copy_out(&side->image, p, cox_buffer_data(side->buffers[p]),
                                                      side->pitch_bytes[p]);
}

void cox__side_release(struct cox__side *side, struct cox__pool *pool)
{
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        if (side->buffers[p] && side->place[p] == COX__PLACE_WRAP)
            cox_buffer_destroy(&side->buffers[p]);
        else if (side->buffers[p] && side->place[p] == COX__PLACE_COPY)
            give_back(pool, &side->buffers[p]);
        side->buffers[p] = NULL;
    }
}
