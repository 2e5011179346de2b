/* SPDX-License-Identifier: Apache-2.0 */
#include "film_side.h"

void film_side_describe(struct film_side *side, cox_runtime *runtime,
                        const struct cox_video_format *format, uint32_t width, uint32_t height)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    side->plane_count = cox_video_planes(format, width, height, planes);

    for (uint32_t p = 0; p < side->plane_count; p++)
        planes[p].row_bytes = video_row_bytes(format, &planes[p]);
    if (!side->lent)
        video_pitch_choose(runtime, planes, side->plane_count, side->pitch_bytes);

    for (uint32_t p = 0; p < side->plane_count; p++)
        side->plane_bytes[p] = side->pitch_bytes[p] * planes[p].rows;
}

void film_side_describe_input(struct film_side *side, cox_runtime *runtime,
                              struct video_input *input, const struct cox_video_shape *shape)
{
    side->lent = video_input_lend(input, runtime, side->pitch_bytes);
    film_side_describe(side, runtime, &shape->in, shape->width, shape->height);
}

cox_buffer **film_side_planes(struct film_side *side, uint64_t frame)
{
    return side->slots[frame % side->slot_count];
}

cox_status film_side_make(struct film_side *side, cox_runtime *runtime, uint64_t frame)
{
    const uint32_t slot = (uint32_t)(frame % side->slot_count);
    if (slot != side->slots_made)
        return COX_OK;

    for (uint32_t p = 0; p < side->plane_count; p++) {
        const cox_status status = cox_buffer_create(runtime, side->plane_bytes[p],
                                                    &side->slots[slot][p]);
        if (status != COX_OK)
            return status;
    }

    side->slots_made++;
    return COX_OK;
}

enum video_read film_side_read(struct film_side *side, cox_runtime *runtime,
                               struct video_input *input, uint64_t frame, struct error *error)
{
    cox_buffer **planes = film_side_planes(side, frame);
    void *memory[COX_VIDEO_PLANES_MAX] = {NULL};

    if (side->lent) {
        video_input_return(input, planes);
        return video_input_borrow(input, planes, error);
    }

    const cox_status status = film_side_make(side, runtime, frame);
    if (status != COX_OK) {
        error_set(error, "cannot allocate memory for a frame: %s", cox_status_text(status));
        return VIDEO_READ_ERROR;
    }

    for (uint32_t p = 0; p < side->plane_count; p++)
        memory[p] = cox_buffer_data(planes[p]);

    return video_input_read(input, memory, side->pitch_bytes, error);
}

void film_side_free(struct film_side *side, struct video_input *input)
{
    for (uint32_t slot = 0; slot < FILM_SLOTS_MAX; slot++) {
        if (side->lent)
            video_input_return(input, side->slots[slot]);

        for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++)
            cox_buffer_destroy(&side->slots[slot][p]);
    }
}
