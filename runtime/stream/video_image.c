/* SPDX-License-Identifier: Apache-2.0 */
#include "video_image.h"
#include "engine/engine.h"

#include <string.h>

/* Bands must be able to begin at this many rows at least. Otherwise rows are copied to a buffer of
 * a better pitch. */
enum { PLACES_LEAST = 64 };

void cox__video_image_devices_read(const cox_runtime *runtime, struct cox__image_devices *devices)
{
    devices->count = cox_runtime_device_count(runtime);
    devices->in_place = true;
    for (uint32_t d = 0; d < devices->count; d++) {
        struct cox_device_info info;
        const bool known = cox_runtime_device_info(runtime, d, &info) == COX_OK;
        devices->align_bytes[d] = 1;
        if (known && info.base_align_bytes)
            devices->align_bytes[d] = info.base_align_bytes;

        devices->in_place &= known && info.type == COX_DEVICE_CPU &&
                             info.host_memory == COX_HOST_MEMORY_WRAPPED;
    }
}

/* Bytes between rows; a negative pitch means that rows go upwards. */
static size_t pitch_of(const struct cox_video_image *image, uint32_t p)
{
    const size_t pitch = (size_t)image->pitch_bytes[p];
    if (image->pitch_bytes[p] < 0)
        return (size_t)0 - pitch;

    return pitch;
}

/* The plane's offset in its buffer. */
static size_t offset_of(const struct cox_video_image *image, uint32_t p)
{
    return (size_t)((const char *)image->data[p] - (const char *)cox_buffer_data(image->memory[p]));
}

/* Whether all rows of a plane are in its buffer. */
static bool buffer_holds(const struct cox__image *image, uint32_t p, const cox_runtime *runtime)
{
    const struct cox_video_image *about = &image->image;
    const cox_buffer *memory = about->memory[p];
    const size_t offset = offset_of(about, p), row_bytes = image->planes[p].row_bytes;
    if (memory->runtime != runtime || offset > memory->bytes || memory->bytes - offset < row_bytes)
        return false;

    /* The bytes on the side to which the other rows lie. */
    size_t room = memory->bytes - offset - row_bytes;
    if (about->pitch_bytes[p] < 0)
        room = offset;
    return room / pitch_of(about, p) >= image->planes[p].rows - 1;
}

/* Whether sessions can take the plane's own buffer: the plane begins at the first byte, and its
 * last row is as long as the others. */
static bool is_whole_buffer(const struct cox__image *image, uint32_t p)
{
    const struct cox_video_image *about = &image->image;
    return about->memory[p] && !offset_of(about, p) &&
           about->memory[p]->bytes / pitch_of(about, p) >= image->planes[p].rows;
}

static cox_status refuse(const struct cox__image *image, uint32_t p, const char *name,
                         const char *wrong, const cox_runtime *runtime)
{
    cox__log(&runtime->log, COX_LOG_ERROR,
             "%s, plane %u: %s (%u rows of %zu bytes, with a pitch of %td)", name, p, wrong,
             image->planes[p].rows, image->planes[p].row_bytes, image->image.pitch_bytes[p]);
    return COX_E_INVALID;
}

cox_status cox__video_image_describe(struct cox__image *to, const struct cox_video_image *from,
                                     const char *name, const cox_runtime *runtime)
{
    const struct cox__log *log = &runtime->log;
    memset(to, 0, sizeof *to);
    if (!from) {
        cox__log(log, COX_LOG_ERROR, "a stream's frame: %s is NULL", name);
        return COX_E_INVALID;
    }

    to->image = *from;
    const struct cox_video_image *image = &to->image;
    to->plane_count = cox_video_planes(&image->format, image->width, image->height, to->planes);
    if (!to->plane_count) {
        cox__log(log, COX_LOG_ERROR, "%s, %u x %u: unsupported format or size", name, image->width,
                 image->height);
        return COX_E_INVALID;
    }

    for (uint32_t p = 0; p < to->plane_count; p++)
        if (pitch_of(image, p) < to->planes[p].row_bytes)
            return refuse(to, p, name, "its rows overlap", runtime);

    return COX_OK;
}

cox_status cox__video_image_read(struct cox__image *to, const struct cox_video_image *from,
                                 const char *name, const cox_runtime *runtime)
{
    const cox_status status = cox__video_image_describe(to, from, name, runtime);
    for (uint32_t p = 0; p < to->plane_count && status == COX_OK; p++) {
        if (!to->image.data[p])
            return refuse(to, p, name, "its pointer is NULL", runtime);

        if (to->image.memory[p] && !buffer_holds(to, p, runtime))
            return refuse(to, p, name,
                          "it exceeds its buffer, or the buffer belongs to another runtime",
                          runtime);
    }
    return status;
}

static size_t greatest_divisor(size_t a, size_t b)
{
    while (b) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Whether devices can share the rows at this pitch: bands begin where sub-buffers of all devices
 * may. */
static bool can_be_split(const struct cox__image *image, uint32_t p,
                         const struct cox__image_devices *devices)
{
    if (devices->count < 2)
        return true;

    const size_t pitch = pitch_of(&image->image, p);
    for (uint32_t d = 0; d < devices->count; d++) {
        const size_t align = devices->align_bytes[d];
        const size_t step_rows = align / greatest_divisor(pitch, align);
        if (step_rows > 1 && image->planes[p].rows / step_rows < PLACES_LEAST)
            return false;
    }
    return true;
}

bool cox__video_image_pitch_suits(const struct cox__image *image, uint32_t p,
                                  const struct cox__image_devices *devices)
{
    const ptrdiff_t pitch = image->image.pitch_bytes[p];
    ptrdiff_t step_bytes = 4;
    if (image->image.format.layout == COX_VIDEO_V210)
        step_bytes = 16;

    return pitch > 0 && pitch % step_bytes == 0 && pitch <= INT32_MAX &&
           can_be_split(image, p, devices);
}

enum cox__place cox__video_image_place(const struct cox__image *image, uint32_t p,
                                       const struct cox__image_devices *devices)
{
    const struct cox_video_image *about = &image->image;
    if (!cox__video_image_pitch_suits(image, p, devices) ||
        (!devices->in_place && (uintptr_t)about->data[p] % 4))
        return COX__PLACE_COPY;

    if (is_whole_buffer(image, p))
        return COX__PLACE_BUFFER;
    if (devices->in_place)
        return COX__PLACE_WRAP;

    return COX__PLACE_COPY;
}

uint64_t cox__video_image_copy_in(const struct cox__image *image, uint32_t p, void *buffer,
                                  size_t pitch_bytes)
{
    const struct cox_video_plane *plane = &image->planes[p];
    const char *from = image->image.data[p];
    for (uint32_t row = 0; row < plane->rows; row++)
        memcpy((char *)buffer + row * pitch_bytes,
               from + (ptrdiff_t)row * image->image.pitch_bytes[p], plane->row_bytes);

    return (uint64_t)plane->rows * plane->row_bytes;
}

uint64_t cox__video_image_copy_out(const struct cox__image *image, uint32_t p, const void *buffer,
                                   size_t pitch_bytes)
{
    const struct cox_video_plane *plane = &image->planes[p];
    char *to = image->image.data[p];
    for (uint32_t row = 0; row < plane->rows; row++)
        memcpy(to + (ptrdiff_t)row * image->image.pitch_bytes[p],
               (const char *)buffer + row * pitch_bytes, plane->row_bytes);

    return (uint64_t)plane->rows * plane->row_bytes;
}

/* ---- images in the library's memory ---- */

cox_status cox_video_image_create(cox_runtime *runtime, const struct cox_video_format *format,
                                  uint32_t width, uint32_t height, struct cox_video_image *image)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    cox_buffer *memory[COX_VIDEO_PLANES_MAX] = {NULL};
    if (!runtime || !format || !image)
        return COX_E_INVALID;

    const uint32_t count = cox_video_planes(format, width, height, planes);
    if (!count)
        return COX_E_INVALID;

    cox_status status = COX_OK;
    for (uint32_t p = 0; p < count && status == COX_OK; p++) {
        const size_t pitch_bytes = cox_runtime_pitch_bytes(runtime, planes[p].row_bytes);
        status = cox_buffer_create(runtime, pitch_bytes * planes[p].rows, &memory[p]);
    }
    if (status != COX_OK) {
        for (uint32_t p = 0; p < count; p++)
            cox_buffer_destroy(&memory[p]);
        return status;
    }

    image->format = *format;
    image->width = width;
    image->height = height;
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        image->memory[p] = memory[p];
        image->data[p] = cox_buffer_data(memory[p]);
        image->pitch_bytes[p] = 0;
        if (p < count)
            image->pitch_bytes[p] = (ptrdiff_t)cox_runtime_pitch_bytes(runtime,
                                                                       planes[p].row_bytes);
    }
    return COX_OK;
}

void cox_video_image_destroy(struct cox_video_image *image)
{
    for (uint32_t p = 0; image && p < COX_VIDEO_PLANES_MAX; p++) {
        cox_buffer_destroy(&image->memory[p]);
        image->data[p] = NULL;
    }
}
