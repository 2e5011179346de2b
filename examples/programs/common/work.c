/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/work.h"

#include <stdio.h>

/* Each repetition starts from the result of the one before, times `zero`. That changes nothing, but
 * no compiler can know it: FACTOR repetitions are FACTOR times the work, for the same bits. */
const char work_source[] =
    "kernel void " WORK_KERNEL
    "(global const float4 *in, global float4 *out, int columns, int rows, int pitch,\n"
    "                 int work, float zero)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x >= columns || y >= rows)\n"
    "        return;\n"
    "    float4 first = in[y * pitch + x], v = (float4)(0.0f);\n"
    "    for (int repeat = 0; repeat < FACTOR; repeat++) {\n"
    "        v = first + v * zero;\n"
    "        for (int i = 0; i < work; i++)\n"
    "            v = fma(v, (float4)(0.9990234375f), (float4)(0.0009765625f));\n"
    "    }\n"
    "    out[y * pitch + x] = v;\n"
    "}\n";

void work_pipeline_fill(struct work_pipeline *pipeline, const struct work_shape *shape,
                        int factor_device, int factor, struct cox_session_params *session)
{
    *pipeline = (struct work_pipeline){
        .bindings = {{.name = "in", .access = COX_READ, .pitch_bytes = shape->pitch_bytes},
                     {.name = "out", .access = COX_WRITE, .pitch_bytes = shape->pitch_bytes}},
        .args = {COX_ARG_BUFFER(0), COX_ARG_BUFFER(1), COX_ARG_COLUMNS, COX_ARG_ROWS,
                 COX_ARG_FIELD(struct work_params, pitch), COX_ARG_FIELD(struct work_params, work),
                 COX_ARG_FIELD(struct work_params, zero)}};
    snprintf(pipeline->factor_options, sizeof pipeline->factor_options, "-D FACTOR=%d", factor);
    pipeline->variants[0] = (struct cox_variant){
        .source = work_source, .options = WORK_BASE_OPTIONS, .local_columns = WORK_LOCAL_COLUMNS};
    pipeline->variants[1] = (struct cox_variant){.device_plus_1 = (uint32_t)(factor_device + 1),
                                                 .source = work_source,
                                                 .options = pipeline->factor_options,
                                                 .local_columns = WORK_LOCAL_COLUMNS};
    pipeline->stage = (struct cox_stage){.kernel = WORK_KERNEL,
                                         .columns = shape->columns,
                                         .variant_count = factor_device < 0 ? 1 : 2,
                                         .variants = pipeline->variants,
                                         .arg_count = 7,
                                         .args = pipeline->args};
    session->rows = shape->rows;
    session->binding_count = 2;
    session->bindings = pipeline->bindings;
    session->stage_count = 1;
    session->stages = &pipeline->stage;
    session->params_bytes = sizeof(struct work_params);
}

struct work_params work_params_of(const struct work_shape *shape)
{
    return (struct work_params){.pitch = (int32_t)(shape->pitch_bytes / WORK_ITEM_BYTES),
                                .work = shape->work};
}

void work_input_fill(float *data, const struct work_shape *shape)
{
    size_t count = shape->rows * shape->pitch_bytes / sizeof *data;
    for (size_t i = 0; i < count; i++)
        data[i] = (float)(i % 977) / 977.0f;
}

char *work_build_options(const struct cox_variant *variant, enum cox_arithmetic arithmetic)
{
    const char *own = variant->options ? variant->options : "";
    const char *fma = arithmetic == COX_ARITHMETIC_FMA ? " -DCOX_FMA" : "";
    char *options;
    if (asprintf(&options, "%s%s", own, fma) < 0)
        return NULL;
    return options;
}
