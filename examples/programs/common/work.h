/* A kernel to measure with: out = f(in) per float4, with `work` rounds of arithmetic. -D FACTOR=n
 * does the work n times, with the same bits as the result.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WORK_H
#define WORK_H

#include <coxswain/coxswain.h>

extern const char work_source[];
#define WORK_KERNEL "mill"
#define WORK_BASE_OPTIONS "-D FACTOR=1"
enum { WORK_ITEM_BYTES = 16 };

struct work_shape {
    uint32_t columns; /* float4 */
    uint32_t rows;
    size_t pitch_bytes;
    int32_t work;
};

/* What the kernel takes by value besides columns, rows and pitches. */
struct work_constants {
    int32_t work;
    float zero;
};

/* The kernel and buffers of a session; valid while it lives. The frame's buffers are in, out.
 * `factor_device`: the runtime's device that does the work `factor` times; < 0 = none. */
struct work_pipeline {
    struct cox_buffer_layout buffers[3];
    struct cox_pass variants[2];
    struct cox_pass passes[2];
    char factor_devices[16];
    char factor_options[32];
};
void work_pipeline_fill(struct work_pipeline *pipeline, const struct work_shape *shape,
                        int factor_device, int factor, struct cox_session_params *session);
struct work_constants work_constants_of(const struct work_shape *shape);
void work_input_fill(float *data, const struct work_shape *shape);

/* The library's build options of a pass or variant with options of its `own` (NULL = none), for
 * programs that build it by hand and need the runtime's bits. The caller frees them; NULL = out of
 * memory. */
char *work_build_options(const char *own, enum cox_arithmetic arithmetic);

#endif
