/* An application's picture: whether it is one, what of it devices can use where it lies, its rows to and fro.
 * Thread-safety: pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_STREAM_IMAGE_H
#define COX_STREAM_IMAGE_H

#include <coxswain/stream.h>

/* A picture with its planes' shapes. */
struct cox__image {
    struct cox_video_image image;
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    uint32_t plane_count;
};

/* How a plane gets to the devices. */
enum cox__place {
    COX__PLACE_BUFFER = 0, /* its own buffer is used */
    COX__PLACE_WRAP,       /* a buffer is put around it for the frame */
    COX__PLACE_COPY,       /* its rows are copied to or from a buffer of the stream's */
};

/* What the devices of a runtime make of an application's memory. */
struct cox__image_devices {
    uint32_t count;
    size_t align_bytes[COX_DEVICES_MAX]; /* of a sub-buffer */
    bool in_place;                       /* each of them works in any memory of the host's */
};

void cox__video_image_devices_read(const cox_runtime *runtime, struct cox__image_devices *devices);

/* Format, size and pitches alone. Errors: COX_E_INVALID (no format or size, rows that overlap; the log says which),
 * COX_E_UNSUPPORTED (a field that is not known). `name` is for the log. */
cox_status cox__video_image_describe(struct cox__image *to, const struct cox_video_image *from,
                                     const char *name, const cox_runtime *runtime);

/* All of it. Errors: as above, and COX_E_INVALID for a plane at NULL, or a buffer that does not hold its plane. */
cox_status cox__video_image_read(struct cox__image *to, const struct cox_video_image *from,
                                 const char *name, const cox_runtime *runtime);

/* Whether devices can use plane `p` in place, as far as its pitch goes. */
bool cox__video_image_pitch_suits(const struct cox__image *image, uint32_t p,
                                  const struct cox__image_devices *devices);

/* What is best for plane `p`, if the pipeline had its pitch. */
enum cox__place cox__video_image_place(const struct cox__image *image, uint32_t p,
                                       const struct cox__image_devices *devices);

/* Copy the rows of plane `p` to a buffer of that pitch, or from it. Returns how many bytes. */
uint64_t cox__video_image_copy_in(const struct cox__image *image, uint32_t p, void *buffer,
                                  size_t pitch_bytes);
uint64_t cox__video_image_copy_out(const struct cox__image *image, uint32_t p, const void *buffer,
                                   size_t pitch_bytes);

#endif
