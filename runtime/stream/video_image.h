/* An application's picture: checks it, says which planes devices can use in place, copies rows.
 * Thread-safety: any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_STREAM_VIDEO_IMAGE_H
#define COX_STREAM_VIDEO_IMAGE_H

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
    COX__PLACE_WRAP,       /* the frame gets a buffer around it */
    COX__PLACE_COPY,       /* its rows are copied to or from a buffer of the stream */
};

/* How the devices of a runtime can use an application's memory. */
struct cox__image_devices {
    uint32_t count;
    size_t align_bytes[COX_DEVICES_MAX]; /* of a sub-buffer */
    bool in_place;                       /* all of them work in any host memory */
};

void cox__video_image_devices_read(const cox_runtime *runtime, struct cox__image_devices *devices);

/* Read format, size and pitches only. `name` is for the log.
 * Errors: COX_E_INVALID (no format or size, rows that overlap; the log says which),
 * COX_E_UNSUPPORTED (a field that is not known). */
cox_status cox__video_image_describe(struct cox__image *to, const struct cox_video_image *from,
                                     const char *name, const cox_runtime *runtime);

/* Read all of it. Errors: as above, and COX_E_INVALID for a plane at NULL or a buffer that does not
 * hold its plane. */
cox_status cox__video_image_read(struct cox__image *to, const struct cox_video_image *from,
                                 const char *name, const cox_runtime *runtime);

/* Whether the pitch of plane `p` lets devices use it in place. */
bool cox__video_image_pitch_suits(const struct cox__image *image, uint32_t p,
                                  const struct cox__image_devices *devices);

/* The best place for plane `p`, if the pipeline has its pitch. */
enum cox__place cox__video_image_place(const struct cox__image *image, uint32_t p,
                                       const struct cox__image_devices *devices);

/* Copy the rows of plane `p` to a buffer of this pitch, or from it. Returns the number of bytes. */
uint64_t cox__video_image_copy_in(const struct cox__image *image, uint32_t p, void *buffer,
                                  size_t pitch_bytes);
uint64_t cox__video_image_copy_out(const struct cox__image *image, uint32_t p, const void *buffer,
                                   size_t pitch_bytes);

#endif
