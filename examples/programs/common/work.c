/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/work.h"

#include <stdio.h>

/* Each repetition starts from the result of the one before, times `zero`. That changes nothing, but
 * no compiler can know it: FACTOR repetitions are FACTOR times the work, for the same bits. */
const char work_source[] =
    "kernel void " WORK_KERNEL
    "(global const float4 *in, global float4 *out, int columns, int rows, int in_pitch,\n"
    "                 int out_pitch, int work, float zero)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x >= columns || y >= rows)\n"
    "        return;\n"
    "    float4 first = in[y * in_pitch + x], v = (float4)(0.0f);\n"
    "    for (int repeat = 0; repeat < FACTOR; repeat++) {\n"
    "        v = first + v * zero;\n"
    "        for (int i = 0; i < work; i++)\n"
    "            v = fma(v, (float4)(0.9990234375f), (float4)(0.0009765625f));\n"
    "    }\n"
    "    out[y * out_pitch + x] = v;\n"
    "}\n";

static const struct cox_field fields[] = {
    COX_FIELD(struct work_constants, work), COX_FIELD(struct work_constants, zero), {0}};

void work_pipeline_fill(struct work_pipeline *pipeline, const struct work_shape *shape,
                        int factor_device, int factor, struct cox_session_params *session)
{
    *pipeline = (struct work_pipeline){
        .buffers = {{.name = "in", .pitch_bytes = shape->pitch_bytes},
                    {.name = "out", .pitch_bytes = shape->pitch_bytes}},
        .passes = {{.source = work_source, .options = WORK_BASE_OPTIONS}}};

    if (factor_device >= 0) {
        snprintf(pipeline->factor_devices, sizeof pipeline->factor_devices, "#%d", factor_device);
        snprintf(pipeline->factor_options, sizeof pipeline->factor_options, "-D FACTOR=%d", factor);
        pipeline->variants[0] = (struct cox_pass){.devices = pipeline->factor_devices,
                                                  .source = work_source,
                                                  .options = pipeline->factor_options};
        pipeline->passes[0].variants = pipeline->variants;
    }

    session->columns = shape->columns;
    session->rows = shape->rows;
    session->passes = pipeline->passes;
    session->buffers = pipeline->buffers;
    session->fields = fields;
    session->constants_bytes = sizeof(struct work_constants);
}

struct work_constants work_constants_of(const struct work_shape *shape)
{
    return (struct work_constants){.work = shape->work};
}

void work_input_fill(float *data, const struct work_shape *shape)
{
    size_t count = shape->rows * shape->pitch_bytes / sizeof *data;
    for (size_t i = 0; i < count; i++)
        data[i] = (float)(i % 977) / 977.0f;
}

char *work_build_options(const char *own, enum cox_arithmetic arithmetic)
{
    const char *fma = arithmetic == COX_ARITHMETIC_FMA ? " -DCOX_FMA" : "";
    char *options;
    if (asprintf(&options, "%s%s", own ? own : "", fma) < 0)
        return NULL;
    return options;
}
