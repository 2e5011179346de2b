/* The kernel of cox-bench stream: it reads and writes what tone mapping does, with about as much
 * arithmetic. The library and hand-written OpenCL run the same one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_STREAM_KERNEL_H
#define BENCH_STREAM_KERNEL_H

#include "stream_frames.h"

/* The kernel has these parameters, in this order:
 *   - the planes
 *   - for each plane, the elements from one row to the next
 *   - the columns
 *   - the rows of the band
 *   - the first row of the band
 *   - the rows of the frame
 *   - for each plane with halo rows, the row at which its memory begins */
struct stream_kernel {
    struct cox_buffer_layout buffers[STREAM_BUFFERS_MAX + 1];
    struct cox_pass passes[2];
    uint32_t element_bytes[STREAM_BUFFERS_MAX];
    struct cox_session_params session; /* that runs it; points into this struct */
};

void stream_kernel_make(struct stream_kernel *kernel, const struct stream_frames *frames);

#endif
