/* SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Decoders write whole vectors, and read some bytes past the last row. */
enum { STRIDE_ALIGN = 64, BEHIND_BYTES = 128 };

/* The memory of one frame. Each of its planes is a buffer of libav's; it is free when all of them are. */
struct memory {
    struct memory *next; /* of all */
    struct libav_pool *pool;
    cox_buffer *planes[COX_VIDEO_PLANES_MAX];
    uint32_t used; /* planes that libav has */
};

struct libav_pool {
    cox_runtime *runtime;
    struct cox_video_format pixel;
    uint32_t plane_count;
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX];
    size_t plane_bytes[COX_VIDEO_PLANES_MAX];
    uint32_t rows[COX_VIDEO_PLANES_MAX];
    pthread_mutex_t lock; /* around the list and each memory's `used` */
    struct memory *all;
};

/* What a decoder wants of a frame: more columns and rows than it shows. */
static uint32_t wanted_planes(const struct libav_pool *pool, AVCodecContext *decoder, int width, int height,
                              struct cox_video_plane planes[COX_VIDEO_PLANES_MAX])
{
    int align[AV_NUM_DATA_POINTERS];
    lib.avcodec_align_dimensions2(decoder, &width, &height, align);
    return width > 0 && height > 0 ? cox_video_planes(&pool->pixel, (uint32_t)width, (uint32_t)height, planes) : 0;
}

struct libav_pool *libav_pool_create(cox_runtime *runtime, AVCodecContext *decoder, const AVFrame *first,
                                     const struct cox_video_format *pixel)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    struct libav_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->runtime = runtime;
    pool->pixel = *pixel;
    const int width = decoder->coded_width > decoder->width ? decoder->coded_width : decoder->width;
    const int height = decoder->coded_height > decoder->height ? decoder->coded_height : decoder->height;
    pool->plane_count = wanted_planes(pool, decoder, width, height, planes);
    bool good = pool->plane_count != 0;
    for (uint32_t p = 0; good && p < pool->plane_count; p++) {
        good = first->linesize[p] > 0 && first->linesize[p] % STRIDE_ALIGN == 0 &&
               (size_t)first->linesize[p] >= planes[p].row_bytes;
        pool->pitch_bytes[p] = good ? (size_t)first->linesize[p] : 0;
        pool->rows[p] = planes[p].rows;
        pool->plane_bytes[p] = pool->pitch_bytes[p] * planes[p].rows + BEHIND_BYTES;
    }
    if (!good) {
        free(pool);
        return NULL;
    }
    pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

static void free_memory(struct memory *memory)
{
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++)
        cox_buffer_destroy(&memory->planes[p]);
    free(memory);
}

void libav_pool_destroy(struct libav_pool **out)
{
    struct libav_pool *pool = *out;
    *out = NULL;
    if (!pool)
        return;
    for (struct memory *next; pool->all; pool->all = next) {
        next = pool->all->next;
        free_memory(pool->all);
    }
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

static struct memory *make_memory(struct libav_pool *pool)
{
    struct memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    memory->pool = pool;
    for (uint32_t p = 0; p < pool->plane_count; p++)
        if (cox_buffer_create(pool->runtime, pool->plane_bytes[p], &memory->planes[p]) != COX_OK) {
            free_memory(memory);
            return NULL;
        }
    return memory;
}

/* Memory that nothing uses, all of its planes in use from here on; NULL: there is none. */
static struct memory *take_memory(struct libav_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct memory *memory = pool->all;
    while (memory && memory->used)
        memory = memory->next;
    if (memory)
        memory->used = pool->plane_count;
    pthread_mutex_unlock(&pool->lock);
    if (memory)
        return memory;
    memory = make_memory(pool);
    if (!memory)
        return NULL;
    memory->used = pool->plane_count;
    pthread_mutex_lock(&pool->lock);
    memory->next = pool->all;
    pool->all = memory;
    pthread_mutex_unlock(&pool->lock);
    return memory;
}

/* The free function of libav's buffers. */
static void plane_ended(void *opaque, uint8_t *data)
{
    struct memory *memory = opaque;
    (void)data;
    pthread_mutex_lock(&memory->pool->lock);
    memory->used--;
    pthread_mutex_unlock(&memory->pool->lock);
}

static bool fits(const struct libav_pool *pool, AVCodecContext *decoder, const AVFrame *frame)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    if (wanted_planes(pool, decoder, frame->width, frame->height, planes) != pool->plane_count)
        return false;
    for (uint32_t p = 0; p < pool->plane_count; p++)
        if (planes[p].row_bytes > pool->pitch_bytes[p] || planes[p].rows > pool->rows[p])
            return false;
    return true;
}

bool libav_pool_give(struct libav_pool *pool, AVCodecContext *decoder, AVFrame *frame)
{
    struct memory *memory = fits(pool, decoder, frame) ? take_memory(pool) : NULL;
    uint32_t made = 0;
    if (!memory)
        return false;
    for (; made < pool->plane_count; made++) {
        uint8_t *data = cox_buffer_data(memory->planes[made]);
        frame->buf[made] = lib.av_buffer_create(data, pool->plane_bytes[made], plane_ended, memory, 0);
        if (!frame->buf[made])
            break; /* no memory */
        frame->data[made] = data;
        frame->linesize[made] = (int)pool->pitch_bytes[made];
    }
    frame->extended_data = frame->data;
    if (made == pool->plane_count)
        return true;
    pthread_mutex_lock(&pool->lock);
    memory->used -= pool->plane_count - made;
    pthread_mutex_unlock(&pool->lock);
    while (made--) {
        lib.av_buffer_unref(&frame->buf[made]);
        frame->data[made] = NULL;
        frame->linesize[made] = 0;
    }
    return false;
}

bool libav_pool_find(struct libav_pool *pool, const AVFrame *frame, cox_buffer *planes[COX_VIDEO_PLANES_MAX])
{
    bool found = false;
    pthread_mutex_lock(&pool->lock);
    for (const struct memory *memory = pool->all; memory && !found; memory = memory->next) {
        found = true;
        for (uint32_t p = 0; p < pool->plane_count; p++)
            found &= frame->data[p] == cox_buffer_data(memory->planes[p]) &&
                     frame->linesize[p] == (int)pool->pitch_bytes[p];
        if (found)
            memcpy(planes, memory->planes, pool->plane_count * sizeof *planes);
    }
    pthread_mutex_unlock(&pool->lock);
    return found;
}

#endif
