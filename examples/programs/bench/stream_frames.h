/* The frames of cox-bench stream: 4K video or pictures.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_STREAM_FRAMES_H
#define BENCH_STREAM_FRAMES_H

#include "options.h"

#include <stddef.h>

enum { STREAM_IN_FLIGHT_MAX = 8, STREAM_BUFFERS_MAX = 2 * COX_VIDEO_PLANES_MAX };

/* A plane of the input or of the output; each is a buffer of the frame. */
struct stream_plane {
    bool in;
    size_t row_bytes; /* without padding */
    size_t pitch_bytes;
    uint32_t row_divisor; /* frame rows per row of the plane */
    uint32_t halo_rows;   /* the kernel reads this many rows above and below a band */
};

/* Planes, inputs first, and one set of buffers for each frame in flight. */
struct stream_frames {
    uint32_t width, height, sets;
    bool pictures;
    struct cox_video_shape video; /* unless they are pictures */
    uint32_t plane_count;
    struct stream_plane planes[STREAM_BUFFERS_MAX];
    cox_buffer *buffers[STREAM_IN_FLIGHT_MAX][STREAM_BUFFERS_MAX + 1]; /* each ends with NULL */
};

bool stream_frames_make(struct stream_frames *frames, cox_runtime *runtime,
                        const struct bench_options *options, uint32_t sets);
void stream_frames_free(struct stream_frames *frames);

/* Make the library's pipeline that maps this video, and its constants. */
cox_status stream_frames_mapping(const struct stream_frames *frames, cox_pipeline **pipeline,
                                 struct cox_constants *constants);

/* Clear the outputs of the first `sets` sets; hash them without their padding. */
void stream_frames_clear(struct stream_frames *frames, uint32_t sets);
uint64_t stream_frames_hash(const struct stream_frames *frames, uint32_t sets);

/* Bytes of one frame row in all input buffers, or in all output buffers. */
double stream_frames_row_bytes(const struct stream_frames *frames, bool in);

/* The part of a buffer that a band touches, with its halo: `rows` buffer rows from `first`. */
struct stream_span {
    uint32_t first, rows;
    size_t offset, bytes;
};
struct stream_span stream_frames_span(const struct stream_frames *frames, uint32_t buffer,
                                      uint32_t first_row, uint32_t rows);

#endif
