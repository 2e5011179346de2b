/* The frames of cox-bench stream: 4K video or pictures.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_STREAM_FRAMES_H
#define BENCH_STREAM_FRAMES_H

#include "options.h"

#include <stddef.h>

enum { STREAM_IN_FLIGHT_MAX = 8, STREAM_BUFFERS_MAX = 2 * COX_VIDEO_PLANES_MAX };

/* A pipeline, and one set of buffers for each frame in flight. `pipeline` points into the
 * struct. */
struct stream_frames {
    uint32_t width, height, sets;
    enum cox_arithmetic arithmetic; /* of the runtime */
    union {
        struct cox_tonemap_storage picture;
        struct cox_video_storage video;
    } storage;
    union {
        struct cox_tonemap_params picture;
        struct cox_video_params video;
    } params;
    struct cox_session_params pipeline;
    size_t row_bytes[STREAM_BUFFERS_MAX]; /* of a buffer row, without its padding */
    cox_buffer *buffers[STREAM_IN_FLIGHT_MAX][STREAM_BUFFERS_MAX];
};

bool stream_frames_make(struct stream_frames *frames, cox_runtime *runtime,
                        const struct bench_options *options, uint32_t sets);
void stream_frames_free(struct stream_frames *frames);

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
