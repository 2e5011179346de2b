/* A kernel to measure with: out = f(in) per float4, with `work` rounds of arithmetic. -D FACTOR=n
 * does the work n times, with the same bits as the result.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WORK_H
#define WORK_H

#include <coxswain/coxswain.h>

extern const char work_source[];
#define WORK_KERNEL "mill"
#define WORK_BASE_OPTIONS "-D FACTOR=1"
enum { WORK_LOCAL_COLUMNS = 64, WORK_ITEM_BYTES = 16 };

struct work_shape {
    uint32_t columns; /* float4 */
    uint32_t rows;
    size_t pitch_bytes;
    int32_t work;
};

struct work_params {
    int32_t pitch; /* float4 from row to row */
    int32_t work;
    float zero;
};

/* A session's pipeline; valid while it lives. `factor_device` < 0: the same work everywhere. */
struct work_pipeline {
    struct cox_binding bindings[2];
    struct cox_arg args[7];
    struct cox_variant variants[2];
    struct cox_stage stage;
    char factor_options[32];
};
void work_pipeline_fill(struct work_pipeline *pipeline, const struct work_shape *shape,
                        int factor_device, int factor, struct cox_session_params *session);
struct work_params work_params_of(const struct work_shape *shape);
void work_input_fill(float *data, const struct work_shape *shape);

/* The library's build options of a variant, for programs that build it by hand and need the
 * runtime's bits. The caller frees them; NULL = out of memory. */
char *work_build_options(const struct cox_variant *variant, enum cox_arithmetic arithmetic);

#endif
