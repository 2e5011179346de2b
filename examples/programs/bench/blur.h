/* A box blur of a plane of floats in two passes: along the rows, then down the columns.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_BLUR_H
#define BENCH_BLUR_H

#include <coxswain/coxswain.h>
#include <stdbool.h>

struct bench_blur_constants {
    int32_t radius;
    float weight; /* of each sample */
};

/* `session` points into the struct. Frames give the input, the output, and `constants`. */
struct bench_blur {
    struct cox_buffer_layout buffers[4];
    struct cox_argument arguments[2];
    struct cox_pass passes[3];
    struct cox_session_params session;
    struct bench_blur_constants constants;
};

/* `fused`: a band computes the rows around it that its second pass needs. Else devices exchange
 * them. Rows are a multiple of 4 floats apart. */
void bench_blur_make(struct bench_blur *blur, uint32_t width, uint32_t height, size_t pitch_bytes,
                     uint32_t radius, bool fused);

/* Make a session of one of the passes. Its input or output is what the passes hand on. `both` must
 * outlive it. */
void bench_blur_make_half(struct bench_blur *half, const struct bench_blur *both, uint32_t pass);

#endif
