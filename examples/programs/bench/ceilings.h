/* Pipelines that show what a device can do at most.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_CEILINGS_H
#define BENCH_CEILINGS_H

#include <coxswain/coxswain.h>
#include <stdint.h>

struct bench_ceiling_params {
    int32_t in_pitch, out_pitch; /* words */
};

/* A session's pipeline that moves the bytes of a video frame, with or without arithmetic. It must
 * outlive cox_session_create. */
struct bench_ceiling {
    uint64_t bytes; /* read and written for a frame */
    struct cox_binding bindings[2];
    struct cox_arg args[6];
    struct cox_variant variants[2];
    struct cox_stage stage;
    struct bench_ceiling_params params; /* of its frames */
    char options[2][64];
};

/* `multiply_adds` per pixel, a multiple of 3. */
void bench_ceiling_fill(struct bench_ceiling *ceiling, uint32_t width, uint32_t height,
                        uint32_t multiply_adds, const cox_runtime *runtime,
                        struct cox_session_params *session);
void bench_ceiling_input(const struct bench_ceiling *ceiling, uint32_t height, float *data);

#endif
