/* Frames of containers, lent where the decoder has written them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_input.h"

#include <string.h>

/* The decoder has allocated frames already, and expects others with the same pitches. */
static bool lend(struct video_input *input, cox_runtime *runtime, size_t pitch_bytes[])
{
    struct libav *libav = input->state;
    const AVFrame *first = libav->frame;
    const bool hardware = libav->hardware != NULL;
    if (!libav->waiting || (!hardware && !(libav->codec->capabilities & AV_CODEC_CAP_DR1)))
        return false;

    for (uint32_t p = 0; p < input->planes.count; p++) {
        if (hardware) { /* transfers may go to rows of any pitch */
            pitch_bytes[p] = cox_av_pool_pitch(runtime, input->planes.plane[p].row_bytes);
            continue;
        }
        if (first->linesize[p] <= 0 || first->linesize[p] % COX_AV_ALIGN_BYTES != 0)
            return false;
        pitch_bytes[p] = (size_t)first->linesize[p];
    }
    if (!video_pitch_suits(runtime, &input->planes, pitch_bytes))
        return false;

    struct cox_av_pool *pool = cox_av_pool_create(runtime);
    if (pool)
        memcpy(pool->pitch_bytes, pitch_bytes, sizeof pool->pitch_bytes);
    atomic_store(&libav->pool, pool);
    return pool != NULL;
}

/* The place of the lent frame with this data, or a free place if `data` is NULL. Returns NULL if
 * there is no such place. */
static AVFrame **find_lent(struct libav *libav, const void *data)
{
    for (uint32_t i = 0; i < LIBAV_LENT_MAX; i++) {
        const AVFrame *lent = libav->lent[i];
        const void *holds = lent ? lent->data[0] : NULL;
        if (holds == data)
            return &libav->lent[i];
    }
    return NULL;
}

/* The buffers that a frame fills from their first byte. False: the frame is not of the pool, or it
 * is a window of what was decoded. */
static bool find_planes(struct cox_av_pool *pool, const AVFrame *frame, uint32_t count,
                        cox_buffer *planes[])
{
    if (!cox_av_pool_find(pool, frame, planes))
        return false;
    for (uint32_t p = 0; p < count; p++)
        if (frame->data[p] != cox_buffer_data(planes[p]))
            return false;
    return true;
}

/* A copy of the decoded frame in memory of the pool; NULL = out of memory. */
static AVFrame *copy_to_pool(struct video_input *input, cox_buffer *planes[])
{
    struct libav *libav = input->state;
    struct cox_av_pool *pool = atomic_load(&libav->pool);
    AVFrame *copy = lib.av_frame_alloc();
    if (!copy)
        return NULL;

    copy->width = libav->frame->width;
    copy->height = libav->frame->height;
    copy->format = libav->frame->format;
    if (cox_av_pool_get(pool, copy, copy->width, copy->height) < 0 ||
        !cox_av_pool_find(pool, copy, planes)) {
        lib.av_frame_free(&copy);
        return NULL;
    }

    void *memory[COX_VIDEO_PLANES_MAX];
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX];
    for (uint32_t p = 0; p < input->planes.count; p++) {
        memory[p] = copy->data[p];
        pitch_bytes[p] = (size_t)copy->linesize[p];
    }
    libav_copy_rows(&input->planes, libav->frame, memory, pitch_bytes);
    lib.av_frame_unref(libav->frame);
    return copy;
}

/* The frame where it was decoded. A few are copied: those that were begun before frames were lent,
 * or that the decoder has put elsewhere. */
static AVFrame *lend_frame(struct video_input *input, cox_buffer *planes[])
{
    struct libav *libav = input->state;
    struct cox_av_pool *pool = atomic_load(&libav->pool);
    if (!find_planes(pool, libav->frame, input->planes.count, planes))
        return copy_to_pool(input, planes);

    AVFrame *lent = lib.av_frame_alloc();
    if (lent)
        lib.av_frame_move_ref(lent, libav->frame);
    return lent;
}

static enum video_read borrow(struct video_input *input, cox_buffer *planes[], struct error *error)
{
    AVFrame **place = find_lent(input->state, NULL);
    const enum video_read result = libav_next_frame(input, false, error);
    if (result != VIDEO_READ_FRAME)
        return result;

    AVFrame *lent = NULL;
    if (place)
        lent = lend_frame(input, planes);
    if (!lent)
        return libav_fail_frame(input, "cannot allocate memory for it", 0, error);
    *place = lent;
    return VIDEO_READ_FRAME;
}

/* Decoded frames do not depend on the file any more. */
static bool kept(const struct video_input *input, cox_buffer *const planes[], struct error *error)
{
    (void)input, (void)planes, (void)error;
    return true;
}

static void give_back(struct video_input *input, cox_buffer *planes[])
{
    AVFrame **place = find_lent(input->state, cox_buffer_data(planes[0]));
    if (place)
        lib.av_frame_free(place);
}

/* The decoder holds frames until it is closed. */
static void reclaim(struct video_input *input)
{
    struct libav *libav = input->state;
    struct cox_av_pool *pool = atomic_exchange(&libav->pool, NULL);
    lib.av_frame_unref(libav->frame);
    libav_hardware_close(&libav->hardware);
    lib.avcodec_free_context(&libav->decoder);
    cox_av_pool_unref(&pool);
}

const struct video_lender libav_lender = {
    .lend = lend, .borrow = borrow, .kept = kept, .give_back = give_back, .reclaim = reclaim};

#endif
