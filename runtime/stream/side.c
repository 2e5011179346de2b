/* SPDX-License-Identifier: Apache-2.0 */
#include "side.h"

#include <stdlib.h>

/* ---- Buffers that go round --------------------------------------------------------------------------------------- */

/* As many stay: three planes of input and output of all frames that can be in flight. Of the stream's own memory what
 * was not wanted while so many others were goes too: one that has changed its size keeps none of the size before. */
enum { IDLE_MAX = 2 * COX_VIDEO_PLANES_MAX * COX_IN_FLIGHT_MAX, IDLE_TAKES = 64 };

struct cox__idle {
    struct cox__idle *next;
    uint64_t since; /* the pool's `takes` then */
    cox_buffer *buffer;
    const void *data; /* the application's memory that it lies around; NULL = it is the stream's */
    size_t bytes;
};

void cox__side_pool_init(struct cox__pool *pool, cox_runtime *runtime)
{
    pool->runtime = runtime;
    pool->idle = NULL;
    pool->takes = 0;
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

void cox__side_pool_clear(struct cox__pool *pool)
{
    drop(pool->idle);
    pool->idle = NULL;
    pthread_mutex_destroy(&pool->lock);
}

/* `data` as in struct cox__idle. */
static cox_status take(struct cox__pool *pool, void *data, size_t bytes, cox_buffer **out)
{
    struct cox__idle **link = &pool->idle;
    pthread_mutex_lock(&pool->lock);
    pool->takes++;
    while (*link && ((*link)->data != data || (*link)->bytes != bytes))
        link = &(*link)->next;
    struct cox__idle *idle = *link;
    if (idle)
        *link = idle->next;
    pthread_mutex_unlock(&pool->lock);
    if (!idle && data)
        return cox_buffer_wrap(pool->runtime, data, bytes, NULL, NULL, out);
    if (!idle)
        return cox_buffer_create(pool->runtime, bytes, out);
    *out = idle->buffer;
    free(idle);
    return COX_OK;
}

static void give_back(struct cox__pool *pool, cox_buffer **buffer, const void *data, size_t bytes)
{
    struct cox__idle *idle = calloc(1, sizeof *idle);
    if (!idle) {
        cox_buffer_destroy(buffer);
        return;
    }
    *idle = (struct cox__idle){.buffer = *buffer, .data = data, .bytes = bytes};
    *buffer = NULL;
    pthread_mutex_lock(&pool->lock);
    idle->since = pool->takes;
    idle->next = pool->idle;
    pool->idle = idle;
    struct cox__idle **link = &pool->idle, *unwanted = NULL;
    for (int count = 0; *link;) {
        idle = *link;
        const bool stays = count < IDLE_MAX &&
                           (idle->data || pool->takes - idle->since <= IDLE_TAKES);
        if (stays) {
            count++;
            link = &idle->next;
            continue;
        }
        *link = idle->next;
        idle->next = unwanted;
        unwanted = idle;
    }
    pthread_mutex_unlock(&pool->lock);
    drop(unwanted);
}

/* ---- Planes ------------------------------------------------------------------------------------------------------ */

/* What the plane's buffer lies around; NULL: memory of the stream's. */
static void *wrapped_data(const struct cox__side *side, uint32_t p)
{
    return side->place[p] == COX__PLACE_WRAP ? side->image.image.data[p] : NULL;
}

static size_t bytes_of(const struct cox__side *side, uint32_t p)
{
    return side->pitch_bytes[p] * side->image.planes[p].rows;
}

cox_status cox__side_bind(struct cox__side *side, const struct cox__image_devices *devices,
                          const size_t *pitch_bytes, struct cox__pool *pool)
{
    const struct cox__image *image = &side->image;
    cox_status status = COX_OK;
    for (uint32_t p = 0; p < image->plane_count && status == COX_OK; p++) {
        const bool same = image->image.pitch_bytes[p] > 0 &&
                          (size_t)image->image.pitch_bytes[p] == pitch_bytes[p];
        side->place[p] = same ? cox__video_image_place(image, p, devices) : COX__PLACE_COPY;
        side->pitch_bytes[p] = pitch_bytes[p];
        if (side->place[p] == COX__PLACE_BUFFER)
            side->buffers[p] = image->image.memory[p];
        else
            status = take(pool, wrapped_data(side, p), bytes_of(side, p), &side->buffers[p]);
    }
    if (status != COX_OK)
        cox__side_release(side, pool, true);
    return status;
}

void cox__side_copy_in(struct cox__side *side)
{
    for (uint32_t p = 0; p < side->image.plane_count; p++)
        if (side->place[p] == COX__PLACE_COPY)
            side->copied_bytes += cox__video_image_copy_in(&side->image, p,
                                                           cox_buffer_data(side->buffers[p]),
                                                           side->pitch_bytes[p]);
}

void cox__side_copy_out(struct cox__side *side)
{
    for (uint32_t p = 0; p < side->image.plane_count; p++)
        if (side->place[p] == COX__PLACE_COPY)
            side->copied_bytes += cox__video_image_copy_out(&side->image, p,
                                                            cox_buffer_data(side->buffers[p]),
                                                            side->pitch_bytes[p]);
}

void cox__side_release(struct cox__side *side, struct cox__pool *pool, bool reuse)
{
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        if (side->buffers[p] && side->place[p] != COX__PLACE_BUFFER) {
            if (reuse)
                give_back(pool, &side->buffers[p], wrapped_data(side, p), bytes_of(side, p));
            else
                cox_buffer_destroy(&side->buffers[p]);
        }
        side->buffers[p] = NULL;
    }
}
