/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"
#include "common/work.h"

#include <coxswain/video.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFERS_MAX = 2 * COX_VIDEO_PLANES_MAX, BASE_PARAMS_BYTES = sizeof(struct cox_video_params) };

static const struct {
    const char *name;
    uint32_t columns, rows;
} kinds[] = {{"tonemap", 1920, 1080}, {"video", 1920, 1080}, {"work", 128, 480}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* --- The artificial delay ----------------------------------------------------------------------------------------- */

/* A stage before the others: on the delayed device its first item takes `steps` dependent steps of arithmetic. The
 * result is stored only if it is negative, which it never is and no compiler can know, so nothing of it can be left
 * out. */
static const char delay_source[] = "kernel void lab_delay(global uchar *out, int first, int steps)\n"
                                   "{\n"
                                   "    if (!DELAYED || get_global_id(0) != 0 || get_global_id(1) != 0)\n"
                                   "        return;\n"
                                   "    float v = (float)first;\n"
                                   "    for (int i = 0; i < steps; i++)\n"
                                   "        v = fma(v, 0.9990234375f, 0.0009765625f);\n"
                                   "    if (v < 0.0f)\n"
                                   "        out[0] = 0;\n"
                                   "}\n";

/* The kernel's own parameters, then the delay's. */
struct frame_params {
    union {
        unsigned char bytes[BASE_PARAMS_BYTES];
        struct cox_tonemap_params tonemap;
        struct cox_video_params video;
        struct work_params work;
    } base;
    int32_t steps;
};

struct delay_stage {
    struct cox_variant variants[2];
    struct cox_arg args[3];
};

/* --- The kernels -------------------------------------------------------------------------------------------------- */

struct lab_kernel {
    struct lab_kernel_params params;
    cox_runtime *runtime;
    union {
        struct cox_tonemap_storage tonemap;
        struct cox_video_storage video;
        struct work_pipeline work;
    } storage;
    struct work_shape work;
    struct cox_session_params session;
    struct delay_stage delay;
    struct cox_stage stages[1 + COX_STAGES_MAX];
    struct frame_params frame_params;
    uint32_t in_count, buffer_count; /* read buffers come first */
    size_t bytes[BUFFERS_MAX];
    cox_buffer *(*buffers)[BUFFERS_MAX]; /* [lane * slots + slot] */
};

bool lab_kernel_find(const char *name, enum lab_kernel_kind *kind)
{
    for (int k = 0; k < KINDS; k++)
        if (strcmp(kinds[k].name, name) == 0) {
            *kind = (enum lab_kernel_kind)k;
            return true;
        }
    return false;
}

const char *lab_kernel_name(enum lab_kernel_kind kind)
{
    return kinds[kind].name;
}

static cox_status describe_tonemap(struct lab_kernel *kernel)
{
    const struct lab_kernel_params *params = &kernel->params;
    const struct cox_tonemap_settings settings = {.op = COX_OPERATOR_HABLE};
    struct cox_tonemap_shape shape = {
        .width = params->columns,
        .height = params->rows,
        .in_pitch_bytes = cox_runtime_pitch_bytes(kernel->runtime, 8ul * params->columns),
        .out_pitch_bytes = cox_runtime_pitch_bytes(kernel->runtime, 4ul * params->columns)};
    kernel->in_count = 1;
    kernel->buffer_count = 2;
    kernel->bytes[0] = shape.in_pitch_bytes * params->rows;
    kernel->bytes[1] = shape.out_pitch_bytes * params->rows;
    cox_status status = cox_tonemap_mapping(&shape, &kernel->storage.tonemap, &kernel->session);
    return status ? status : cox_tonemap_prepare(&shape, &settings, &kernel->frame_params.base.tonemap);
}

/* HDR10 in, 8 bits out, both 4:2:0. */
static cox_status describe_video(struct lab_kernel *kernel)
{
    const struct lab_kernel_params *params = &kernel->params;
    const struct cox_video_settings settings = {.peak_nits = 1000};
    struct cox_video_plane planes[2][COX_VIDEO_PLANES_MAX];
    struct cox_video_shape shape = {
        .width = params->columns,
        .height = params->rows,
        .in = {.layout = COX_VIDEO_PLANAR, .depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
        .out = {.layout = COX_VIDEO_PLANAR, .depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
        .transfer = COX_TRANSFER_PQ,
        .op = COX_OPERATOR_BT2390,
        .dither = COX_DITHER_ORDERED};
    const struct cox_video_format *const formats[2] = {&shape.in, &shape.out};
    size_t *const pitches[2] = {shape.in_pitch_bytes, shape.out_pitch_bytes};
    for (int side = 0; side < 2; side++) {
        uint32_t count = cox_video_planes(formats[side], params->columns, params->rows, planes[side]);
        for (uint32_t p = 0; p < count; p++) {
            pitches[side][p] = cox_runtime_pitch_bytes(kernel->runtime, planes[side][p].row_bytes);
            kernel->bytes[kernel->buffer_count++] = pitches[side][p] * planes[side][p].rows;
        }
        if (side == 0)
            kernel->in_count = kernel->buffer_count;
    }
    cox_status status = cox_video_mapping(&shape, false, &kernel->storage.video, &kernel->session);
    return status ? status : cox_video_prepare(&shape, &settings, &kernel->frame_params.base.video);
}

static cox_status describe_work(struct lab_kernel *kernel)
{
    const struct lab_kernel_params *params = &kernel->params;
    kernel->work = (struct work_shape){
        .columns = params->columns,
        .rows = params->rows,
        .work = 64,
        .pitch_bytes = cox_runtime_pitch_bytes(kernel->runtime, (size_t)params->columns * WORK_ITEM_BYTES)};
    kernel->in_count = 1;
    kernel->buffer_count = 2;
    kernel->bytes[0] = kernel->bytes[1] = kernel->work.pitch_bytes * params->rows;
    work_pipeline_fill(&kernel->storage.work, &kernel->work, params->ratio > 1 ? 1 : -1, (int)params->ratio,
                       &kernel->session);
    kernel->frame_params.base.work = work_params_of(&kernel->work);
    return COX_OK;
}

static void add_delay(struct lab_kernel *kernel)
{
    struct delay_stage *delay = &kernel->delay;
    delay->variants[0] = (struct cox_variant){.source = delay_source, .options = "-D DELAYED=0", .local_rows = 64};
    delay->variants[1] = (struct cox_variant){.device_plus_1 = kernel->params.delay_device + 1,
                                              .source = delay_source,
                                              .options = "-D DELAYED=1",
                                              .local_rows = 64};
    delay->args[0] = (struct cox_arg)COX_ARG_BUFFER(kernel->in_count);
    delay->args[1] = (struct cox_arg)COX_ARG_FIRST_ROW;
    delay->args[2] = (struct cox_arg)COX_ARG_FIELD(struct frame_params, steps);
    kernel->stages[0] = (struct cox_stage){
        .kernel = "lab_delay", .variant_count = 2, .variants = delay->variants, .arg_count = 3, .args = delay->args};
    for (uint32_t s = 0; s < kernel->session.stage_count; s++)
        kernel->stages[1 + s] = kernel->session.stages[s];
    kernel->session.stages = kernel->stages;
    kernel->session.stage_count++;
    kernel->session.params_bytes = sizeof(struct frame_params);
}

/* --- Buffers ------------------------------------------------------------------------------------------------------ */

/* Numbers that look like light, the same on every machine. */
static void fill(const struct lab_kernel *kernel, void *data, size_t bytes, uint32_t seed)
{
    if (kernel->params.kind == LAB_KERNEL_WORK) {
        work_input_fill(data, &kernel->work);
        return;
    }
    uint16_t *words = data;
    for (size_t i = 0; i < bytes / 2; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (kernel->params.kind == LAB_KERNEL_VIDEO)
            words[i] = (uint16_t)(64 + (seed >> 16) % 877); /* limited range */
        else
            words[i] = i % 4 == 3 ? 0x3c00 : (uint16_t)(0x1000 + (seed >> 18)); /* 2^-11 .. 2^5 */
    }
}

double lab_kernel_gigabytes(const struct lab_kernel *kernel)
{
    double bytes = 0;
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        bytes += (double)kernel->bytes[b] * kernel->params.lanes * kernel->params.slots;
    return bytes / 1e9;
}

/* Whether this machine has so much memory at all. */
static bool fits(const struct lab_kernel *kernel)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages <= 0 || page_bytes <= 0 ||
           1e9 * lab_kernel_gigabytes(kernel) < 0.75 * (double)pages * (double)page_bytes;
}

static cox_status make_buffers(struct lab_kernel *kernel)
{
    uint32_t sets = kernel->params.lanes * kernel->params.slots;
    kernel->buffers = calloc(sets, sizeof *kernel->buffers);
    if (!kernel->buffers)
        return COX_E_NOMEM;
    for (uint32_t set = 0; set < sets; set++)
        for (uint32_t b = 0; b < kernel->buffer_count; b++) {
            cox_status status = cox_buffer_create(kernel->runtime, kernel->bytes[b], &kernel->buffers[set][b]);
            if (status != COX_OK)
                return status;
            if (b < kernel->in_count) /* the same for every session */
                fill(kernel, cox_buffer_data(kernel->buffers[set][b]), kernel->bytes[b],
                     set % kernel->params.slots * 16 + b);
        }
    return COX_OK;
}

bool lab_kernel_open(cox_runtime *runtime, const struct lab_kernel_params *params, struct lab_kernel **out, char *why,
                     size_t why_bytes)
{
    struct lab_kernel *kernel = calloc(1, sizeof *kernel);
    *out = NULL;
    if (!kernel) {
        snprintf(why, why_bytes, "out of memory");
        return false;
    }
    kernel->params = *params;
    kernel->runtime = runtime;
    if (!params->columns) {
        kernel->params.columns = kinds[params->kind].columns;
        kernel->params.rows = kinds[params->kind].rows;
    }
    cox_status status = params->kind == LAB_KERNEL_TONEMAP ? describe_tonemap(kernel)
                        : params->kind == LAB_KERNEL_VIDEO ? describe_video(kernel)
                                                           : describe_work(kernel);
    if (status == COX_OK && params->delayed)
        add_delay(kernel);
    if (status == COX_OK && !fits(kernel)) {
        snprintf(why, why_bytes, "%s, %u x %u: %.1f GB of frames do not fit into this machine's memory",
                 kinds[params->kind].name, kernel->params.columns, kernel->params.rows, lab_kernel_gigabytes(kernel));
        lab_kernel_close(&kernel);
        return false;
    }
    if (status == COX_OK)
        status = make_buffers(kernel);
    if (status != COX_OK) {
        snprintf(why, why_bytes, "%s, %u x %u: %s", kinds[params->kind].name, kernel->params.columns,
                 kernel->params.rows, cox_status_text(status));
        lab_kernel_close(&kernel);
        return false;
    }
    *out = kernel;
    return true;
}

void lab_kernel_close(struct lab_kernel **kernel)
{
    struct lab_kernel *k = *kernel;
    *kernel = NULL;
    if (!k)
        return;
    for (uint32_t set = 0; k->buffers && set < k->params.lanes * k->params.slots; set++)
        for (uint32_t b = 0; b < BUFFERS_MAX; b++)
            cox_buffer_destroy(&k->buffers[set][b]);
    free(k->buffers);
    free(k);
}

uint32_t lab_kernel_columns(const struct lab_kernel *kernel)
{
    return kernel->params.columns;
}

uint32_t lab_kernel_rows(const struct lab_kernel *kernel)
{
    return kernel->params.rows;
}

void lab_kernel_pipeline(const struct lab_kernel *kernel, struct cox_session_params *session)
{
    session->rows = kernel->session.rows;
    session->binding_count = kernel->session.binding_count;
    session->bindings = kernel->session.bindings;
    session->stage_count = kernel->session.stage_count;
    session->stages = kernel->session.stages;
    session->params_bytes = kernel->session.params_bytes;
}

struct cox_frame lab_kernel_frame(struct lab_kernel *kernel, uint32_t lane, uint64_t index)
{
    return (struct cox_frame){.buffers = kernel->buffers[lane * kernel->params.slots + index % kernel->params.slots],
                              .buffer_count = kernel->buffer_count,
                              .params = &kernel->frame_params};
}

bool lab_kernel_has_work(const struct lab_kernel *kernel)
{
    return kernel->params.kind == LAB_KERNEL_WORK;
}

int32_t lab_kernel_work(const struct lab_kernel *kernel)
{
    return kernel->work.work;
}

void lab_kernel_set_work(struct lab_kernel *kernel, int32_t work)
{
    kernel->work.work = work;
    kernel->frame_params.base.work = work_params_of(&kernel->work);
}

void lab_kernel_set_delay(struct lab_kernel *kernel, int32_t steps)
{
    kernel->frame_params.steps = steps;
}
