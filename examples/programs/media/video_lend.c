/* Frames of y4m and raw files, lent in the mapping of the file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"
#include "video_team.h"

#include <inttypes.h>

/* A frame needs at least this many places at which a band may begin. */
enum { PLACES_LEAST = 64 };

static size_t gcd(size_t a, size_t b)
{
    while (b) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static bool are_words(uint32_t count, const size_t pitch_bytes[])
{
    for (uint32_t p = 0; p < count; p++)
        if (pitch_bytes[p] % 4)
            return false;
    return true;
}

/* Whether bands can begin at enough rows of each plane, on all devices. */
static bool begins_often(const cox_runtime *runtime, const struct cox_video_plane planes[],
                         uint32_t count, const size_t pitch_bytes[])
{
    struct cox_device_info info;

    for (uint32_t d = 0; d < cox_runtime_device_count(runtime); d++) {
        if (cox_runtime_device_info(runtime, d, &info) != COX_OK)
            return false;
        const size_t align = info.base_align_bytes ? info.base_align_bytes : 1;
        for (uint32_t p = 0; p < count; p++) {
            const size_t rows_apart = align / gcd(pitch_bytes[p], align);
            if (planes[p].rows / rows_apart < PLACES_LEAST)
                return false;
        }
    }
    return true;
}

bool video_pitch_suits(const cox_runtime *runtime, const struct video_planes *planes,
                       const size_t pitch_bytes[])
{
    const bool whole_frames = cox_runtime_device_count(runtime) < 2;

    return are_words(planes->count, pitch_bytes) &&
           (whole_frames || begins_often(runtime, planes->plane, planes->count, pitch_bytes));
}

void video_pitch_choose(const cox_runtime *runtime, const struct cox_video_plane planes[],
                        uint32_t count, size_t pitch_bytes[])
{
    for (uint32_t p = 0; p < count; p++)
        pitch_bytes[p] = planes[p].row_bytes;
    if (are_words(count, pitch_bytes) && begins_often(runtime, planes, count, pitch_bytes))
        return;

    for (uint32_t p = 0; p < count; p++)
        pitch_bytes[p] = cox_runtime_pitch_bytes(runtime, planes[p].row_bytes);
}

/* CPU devices that work in host memory read a frame where it is. A GPU is faster with memory that
 * its driver has placed. */
static bool are_processors(const cox_runtime *runtime)
{
    struct cox_device_info info;
    for (uint32_t d = 0; d < cox_runtime_device_count(runtime); d++)
        if (cox_runtime_device_info(runtime, d, &info) != COX_OK || info.type != COX_DEVICE_CPU ||
            info.host_memory != COX_HOST_MEMORY_WRAPPED)
            return false;
    return true;
}

static bool lend(struct video_input *input, cox_runtime *runtime, size_t pitch_bytes[])
{
    for (uint32_t p = 0; p < input->planes.count; p++)
        pitch_bytes[p] = input->planes.plane[p].row_bytes;
    return are_processors(runtime) && video_pitch_suits(runtime, &input->planes, pitch_bytes) &&
           video_source_map(&input->source);
}

static void drop_planes(cox_buffer *planes[])
{
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++)
        cox_buffer_destroy(&planes[p]);
}

static enum video_read borrow(struct video_input *input, cox_buffer *planes[], struct error *error)
{
    const struct video_planes *about = &input->planes;
    const enum video_read result = input->reader->read(input, NULL, NULL, error);
    if (result != VIDEO_READ_FRAME)
        return result;

    uint8_t *at = mapped_file_at(input->source.map, input->samples, about->frame_bytes);
    if (!at) {
        error_set(error, "frame %" PRIu64 " (the first is 0) was appended while the file was read",
                  input->next_frame);
        return VIDEO_READ_ERROR;
    }

    video_team_touch(input->source.team, at, about->frame_bytes);
    for (uint32_t p = 0; p < about->count; p++) {
        const size_t bytes = about->plane[p].row_bytes * about->plane[p].rows;
        mapped_file_hold(input->source.map);
        const cox_status status = cox_buffer_wrap(input->lends_to, at, bytes, mapped_file_let_go,
                                                  input->source.map, &planes[p]);
        if (status != COX_OK) {
            mapped_file_let_go(input->source.map);
            drop_planes(planes);
            error_set(error, "cannot allocate memory for a frame: %s", cox_status_text(status));
            return VIDEO_READ_ERROR;
        }
        at += bytes;
    }

    video_source_ahead(&input->source, about->frame_bytes);
    return VIDEO_READ_FRAME;
}

/* The offset in the stream at which the frame ends. */
static uint64_t end_of(const struct video_input *input, cox_buffer *const planes[])
{
    return mapped_file_offset(input->source.map, cox_buffer_data(planes[0])) +
           input->planes.frame_bytes;
}

static bool kept(const struct video_input *input, cox_buffer *const planes[], struct error *error)
{
    const uint64_t end = end_of(input, planes);
    uint64_t there, torn;

    if (!video_source_bytes(&input->source, &there, error))
        return false;
    if (there < end)
        return error_set(error, "the file was truncated to %" PRIu64 " bytes while it was read",
                         there);
    if (mapped_file_torn(input->source.map, &torn) && torn < end)
        return error_set(error,
                         "cannot be read, at byte %" PRIu64
                         ": the disk failed, or the file was truncated",
                         torn);
    return true;
}

static void give_back(struct video_input *input, cox_buffer *planes[])
{
    mapped_file_release(input->source.map, end_of(input, planes));
    drop_planes(planes);
}

/* Buffers may be freed later, on a thread of the library: the file stays mapped until the input is
 * closed. */
static void reclaim(struct video_input *input)
{
    (void)input;
}

const struct video_lender video_lender_file = {
    .lend = lend, .borrow = borrow, .kept = kept, .give_back = give_back, .reclaim = reclaim};
