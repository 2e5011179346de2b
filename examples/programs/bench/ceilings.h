/* Sessions that show what a device can do at most.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_CEILINGS_H
#define BENCH_CEILINGS_H

#include <coxswain/coxswain.h>
#include <stdint.h>

/* A session's passes and buffers that move the bytes of a video frame, with or without arithmetic.
 * They must outlive cox_session_create. Frames need no constants. */
struct bench_ceiling {
    uint64_t bytes; /* read and written for a frame */
    struct cox_buffer_layout buffers[3];
    struct cox_pass variants[2];
    struct cox_pass passes[2];
    char options[2][64];
};

/* `multiply_adds` per pixel, a multiple of 3. */
void bench_ceiling_fill(struct bench_ceiling *ceiling, uint32_t width, uint32_t height,
                        uint32_t multiply_adds, const cox_runtime *runtime,
                        struct cox_session_params *session);
void bench_ceiling_input(const struct bench_ceiling *ceiling, uint32_t height, float *data);

#endif
