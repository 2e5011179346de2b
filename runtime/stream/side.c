/* SPDX-License-Identifier: Apache-2.0 */
#include "side.h"
#include "api/import.h"

#include <stdlib.h>

/* ---- the pool ---- */

/* IDLE_MAX buffers stay: the input and output planes of all frames that can be in flight. The
 * stream's own buffers also go after IDLE_TAKES takes of others, so that a stream with a new frame
 * size keeps no buffers of the old size. */
enum { IDLE_MAX = 2 * COX_VIDEO_PLANES_MAX * COX_IN_FLIGHT_MAX, IDLE_TAKES = 64 };

struct cox__idle {
    struct cox__idle *next;
    uint64_t since; /* the pool's `takes` when it was given back */
    cox_buffer *buffer;
    const void *data; /* the application's memory around which it is; NULL = the stream's memory */
    size_t bytes;
};

void cox__side_pool_init(struct cox__pool *pool, cox_runtime *runtime)
{
    pool->runtime = runtime;
    pool->idle = NULL;
    pool->takes = 0;
    pthread_mutex_init(&pool->lock, NULL);
}

/* Destroy a list of buffers. */
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

/* Take a buffer from the pool, or make one. `data` as in struct cox__idle. */
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

/* Take the buffers that are too many or too old off the list. Called with the lock held. */
static struct cox__idle *take_unwanted(struct cox__pool *pool)
{
    struct cox__idle **link = &pool->idle, *unwanted = NULL;
    int count = 0;

    while (*link) {
        struct cox__idle *idle = *link;
        const bool is_recent = idle->data || pool->takes - idle->since <= IDLE_TAKES;
        if (count < IDLE_MAX && is_recent) {
            count++;
            link = &idle->next;
            continue;
        }

        *link = idle->next;
        idle->next = unwanted;
        unwanted = idle;
    }
    return unwanted;
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
    struct cox__idle *unwanted = take_unwanted(pool);
    pthread_mutex_unlock(&pool->lock);

    drop(unwanted);
}

cox_status cox__side_pool_take(struct cox__pool *pool, size_t bytes, cox_buffer **out)
{
    return take(pool, NULL, bytes, out);
}

void cox__side_pool_give(struct cox__pool *pool, cox_buffer **buffer, size_t bytes, bool reuse)
{
    if (*buffer && reuse)
        give_back(pool, buffer, NULL, bytes);
    cox_buffer_destroy(buffer);
}

/* ---- planes ---- */

/* The application's memory around which the plane's buffer is; NULL: it is the stream's memory. */
static void *wrapped_data(const struct cox__side *side, uint32_t p)
{
    if (side->place[p] == COX__PLACE_WRAP)
        return side->image.image.data[p];

    return NULL;
}

static size_t bytes_of(const struct cox__side *side, uint32_t p)
{
    return side->pitch_bytes[p] * side->image.planes[p].rows;
}

static cox_status bind_table(struct cox__side *side, struct cox__pool *pool)
{
    const struct cox_video_reshape *reshape = side->image.image.reshape;
    if (!reshape)
        return COX_OK;

    const cox_status status = take(pool, NULL, COX_VIDEO_RESHAPE_BYTES, &side->table);
    if (status != COX_OK)
        return status;
    return cox_video_reshape_table(reshape, cox_buffer_data(side->table));
}

cox_status cox__side_begin(struct cox__side *side, bool writes)
{
    for (uint32_t p = 0; p < side->image.plane_count; p++) {
        const cox_buffer *memory = side->image.image.memory[p];
        if (!memory)
            continue;

        const cox_status status = cox__import_begin(memory, writes);
        if (status != COX_OK) {
            cox__side_end(side);
            return status;
        }
        side->begun |= UINT32_C(1) << p;
    }

    return COX_OK;
}

cox_status cox__side_end(struct cox__side *side)
{
    cox_status status = COX_OK;

    for (uint32_t p = 0; p < side->image.plane_count; p++) {
        cox_status of_plane = COX_OK;
        if (side->begun >> p & 1)
            of_plane = cox__import_end(side->image.image.memory[p]);
        if (status == COX_OK)
            status = of_plane;
    }

    side->begun = 0;
    return status;
}

cox_status cox__side_bind(struct cox__side *side, const struct cox__image_devices *devices,
                          const size_t *pitch_bytes, struct cox__pool *pool)
{
    const struct cox__image *image = &side->image;
    cox_status status = COX_OK;

    for (uint32_t p = 0; p < image->plane_count && status == COX_OK; p++) {
        const bool same = image->image.pitch_bytes[p] > 0 &&
                          (size_t)image->image.pitch_bytes[p] == pitch_bytes[p];
        side->place[p] = COX__PLACE_COPY;
        if (same)
            side->place[p] = cox__video_image_place(image, p, devices);

        side->pitch_bytes[p] = pitch_bytes[p];
        if (side->place[p] == COX__PLACE_BUFFER)
            side->buffers[p] = image->image.memory[p];
        else
            status = take(pool, wrapped_data(side, p), bytes_of(side, p), &side->buffers[p]);
    }

    if (status == COX_OK)
        status = bind_table(side, pool);
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

    cox__side_pool_give(pool, &side->table, COX_VIDEO_RESHAPE_BYTES, reuse);
}
