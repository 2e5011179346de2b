/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"
#include "user_pipeline.h"
#include "common/work.h"
#include "lab/refuse.h"

#include <coxswain/filter.h>
#include <coxswain/video.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFERS_MAX = COX_BUFFERS_MAX };
_Static_assert((int)BUFFERS_MAX >= 2 * (int)COX_VIDEO_PLANES_MAX, "a video's planes have room");

static const struct {
    const char *name;
    uint32_t columns, rows;
} kinds[] = {
    {"tonemap", 1920, 1080}, {"video", 1920, 1080}, {"work", 128, 480}, {"blur", 1920, 1080}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* --- The artificial delay --------------------------------------------------------------------- */

/* A stage before the others of each pass. On the delayed device its first item does `steps`
 * dependent steps of arithmetic. The result is stored only if it is negative; it never is, but
 * no compiler can know that, so it cannot leave anything out. */
static const char delay_source[] =
    "kernel void lab_delay(global uchar *out, int first, int steps)\n"
    "{\n"
    "    if (!DELAYED || get_global_id(0) != 0 || get_global_id(1) != 0)\n"
    "        return;\n"
    "    float v = (float)first;\n"
    "    for (int i = 0; i < steps; i++)\n"
    "        v = fma(v, 0.9990234375f, 0.0009765625f);\n"
    "    if (v < 0.0f)\n"
    "        out[0] = 0;\n"
    "}\n";

/* The parameters of the kernel itself, then those of the delay. */
struct frame_params {
    union {
        unsigned char constants[LAB_USER_PARAMS_BYTES]; /* of the user's kernel */
        struct cox_tonemap_params tonemap;
        struct cox_video_params video;
        struct work_params work;
    } base;
    int32_t steps;
};

struct delay_stage {
    struct cox_variant variants[2];
    struct cox_arg args[COX_PASSES_MAX][3];
    struct cox_stage stages[COX_PASSES_MAX][1 + COX_FUSED_MAX];
    struct cox_pass passes[COX_PASSES_MAX];
};

/* --- The kernels ------------------------------------------------------------------------------ */

struct lab_kernel {
    struct lab_kernel_params params;
    cox_runtime *runtime;
    union {
        struct cox_tonemap_storage tonemap;
        struct cox_video_storage video;
        struct work_pipeline work;
        struct lab_user_pipeline user;
        struct cox_filter_storage blur;
    } storage;
    struct work_shape work;
    struct cox_session_params session;
    struct delay_stage delay;
    union {
        struct frame_params frame_params;
        struct cox_filter_params blur_params; /* the maximum size of a frame's parameters */
    };
    uint32_t in_count, buffer_count; /* read buffers come first, except in a user's kernel */
    bool in_place;
    size_t bytes[BUFFERS_MAX];           /* 0 = scratch, which is not among a frame's buffers */
    size_t row_bytes[BUFFERS_MAX];       /* without padding; not of a user's kernel */
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

static const char *name_of(const struct lab_kernel_params *params)
{
    return params->kind == LAB_KERNEL_USER ? params->user->name : kinds[params->kind].name;
}

const char *lab_kernel_name(const struct lab_kernel *kernel)
{
    return name_of(&kernel->params);
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
    kernel->row_bytes[0] = 8ul * params->columns;
    kernel->row_bytes[1] = 4ul * params->columns;

    cox_status status = cox_tonemap_mapping(&shape, &kernel->storage.tonemap, &kernel->session);
    if (status)
        return status;
    return cox_tonemap_prepare(&shape, &settings, &kernel->frame_params.base.tonemap);
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
        uint32_t count = cox_video_planes(formats[side], params->columns, params->rows,
                                          planes[side]);
        for (uint32_t p = 0; p < count; p++) {
            pitches[side][p] = cox_runtime_pitch_bytes(kernel->runtime, planes[side][p].row_bytes);
            kernel->row_bytes[kernel->buffer_count] = planes[side][p].row_bytes;
            kernel->bytes[kernel->buffer_count++] = pitches[side][p] * planes[side][p].rows;
        }
        if (side == 0)
            kernel->in_count = kernel->buffer_count;
    }

    cox_status status = cox_video_mapping(&shape, false, &kernel->storage.video, &kernel->session);
    if (status)
        return status;
    return cox_video_prepare(&shape, &settings, &kernel->frame_params.base.video);
}

static cox_status describe_work(struct lab_kernel *kernel)
{
    const struct lab_kernel_params *params = &kernel->params;

    kernel->work = (struct work_shape){
        .columns = params->columns,
        .rows = params->rows,
        .work = 64,
        .pitch_bytes = cox_runtime_pitch_bytes(kernel->runtime,
                                               (size_t)params->columns * WORK_ITEM_BYTES)};

    kernel->in_count = 1;
    kernel->buffer_count = 2;
    kernel->bytes[0] = kernel->bytes[1] = kernel->work.pitch_bytes * params->rows;
    kernel->row_bytes[0] = kernel->row_bytes[1] = (size_t)params->columns * WORK_ITEM_BYTES;

    work_pipeline_fill(&kernel->storage.work, &kernel->work, params->ratio > 1 ? 1 : -1,
                       (int)params->ratio, &kernel->session);

    kernel->frame_params.base.work = work_params_of(&kernel->work);
    return COX_OK;
}

enum { BLUR_RADIUS = 8, BLUR_CHANNELS = 4, BLUR_SHIFT = 10 };

/* A triangle of weights with the sum 1 << BLUR_SHIFT; the middle one gets the rest. */
static void blur_weights(int32_t weights[2 * BLUR_RADIUS + 1])
{
    int32_t left = 1 << BLUR_SHIFT;

    for (int i = -BLUR_RADIUS; i <= BLUR_RADIUS; i++) {
        weights[i + BLUR_RADIUS] = (BLUR_RADIUS + 1 - abs(i)) * 12;
        if (i)
            left -= weights[i + BLUR_RADIUS];
    }
    weights[BLUR_RADIUS] = left;
}

/* 8 bits, four channels: along the rows, then, in a second pass, down the columns. */
static cox_status describe_blur(struct lab_kernel *kernel)
{
    const struct lab_kernel_params *params = &kernel->params;
    const size_t row_bytes = (size_t)BLUR_CHANNELS * params->columns;
    const size_t pitch_bytes = cox_runtime_pitch_bytes(kernel->runtime, row_bytes);
    const struct cox_filter_shape shape = {.width = params->columns,
                                           .height = params->rows,
                                           .sample = COX_FILTER_8,
                                           .channels = BLUR_CHANNELS,
                                           .in_pitch_bytes = pitch_bytes,
                                           .out_pitch_bytes = pitch_bytes,
                                           .radius_x = BLUR_RADIUS,
                                           .radius_y = BLUR_RADIUS,
                                           .form = COX_FILTER_EXCHANGE};
    int32_t weights[2 * BLUR_RADIUS + 1];

    blur_weights(weights);
    cox_status status = cox_filter_separable(&shape, &kernel->storage.blur, &kernel->session);

    kernel->in_count = 1;
    kernel->buffer_count = kernel->session.binding_count;
    for (int b = 0; b < 2; b++) {
        kernel->bytes[b] = pitch_bytes * params->rows;
        kernel->row_bytes[b] = row_bytes;
    }

    if (status)
        return status;
    return cox_filter_separable_prepare(&shape,
                                        &(struct cox_filter_weights){.across_int = weights,
                                                                     .down_int = weights,
                                                                     .shift = BLUR_SHIFT},
                                        &kernel->blur_params);
}

static cox_status describe_user(struct lab_kernel *kernel)
{
    struct lab_user_pipeline *user = &kernel->storage.user;

    lab_user_pipeline_fill(user, kernel->params.user, kernel->runtime, kernel->params.columns,
                           kernel->params.rows, &kernel->session,
                           kernel->frame_params.base.constants);

    kernel->buffer_count = kernel->session.binding_count;
    memcpy(kernel->bytes, user->bytes, sizeof user->bytes);
    kernel->in_place = lab_user_in_place(user);
    return COX_OK;
}

static cox_status describe(struct lab_kernel *kernel)
{
    switch (kernel->params.kind) {
    case LAB_KERNEL_TONEMAP:
        return describe_tonemap(kernel);
    case LAB_KERNEL_VIDEO:
        return describe_video(kernel);
    case LAB_KERNEL_WORK:
        return describe_work(kernel);
    case LAB_KERNEL_BLUR:
        return describe_blur(kernel);
    default:
        return describe_user(kernel);
    }
}

static bool writes_rows(enum cox_contract contract, enum cox_access access)
{
    return contract == COX_ROWS && access != COX_READ;
}

/* A binding whose rows the pass writes. */
static uint32_t output_of(const struct cox_session_params *session, const struct cox_pass *pass)
{
    for (uint32_t u = 0; u < pass->use_count; u++)
        if (writes_rows(pass->uses[u].contract, pass->uses[u].access))
            return pass->uses[u].binding;

    uint32_t b = 0;
    while (b + 1 < session->binding_count &&
           !writes_rows(session->bindings[b].contract, session->bindings[b].access))
        b++;
    return b;
}

static void delay_pass(struct lab_kernel *kernel, uint32_t p, struct cox_pass *pass)
{
    struct delay_stage *delay = &kernel->delay;
    struct cox_arg *args = delay->args[p];

    args[0] = (struct cox_arg)COX_ARG_BUFFER(output_of(&kernel->session, pass));
    args[1] = (struct cox_arg)COX_ARG_FIRST_ROW;
    args[2] = (struct cox_arg)COX_ARG_FIELD(struct frame_params, steps);
    delay->stages[p][0] = (struct cox_stage){.kernel = "lab_delay",
                                             .variant_count = 2,
                                             .variants = delay->variants,
                                             .arg_count = 3,
                                             .args = args};

    for (uint32_t s = 0; s < pass->stage_count; s++)
        delay->stages[p][1 + s] = pass->stages[s];

    pass->stages = delay->stages[p];
    pass->stage_count++;
}

/* Add the delay stage to each pass. False if there is no room for it. */
static bool add_delay(struct lab_kernel *kernel)
{
    struct delay_stage *delay = &kernel->delay;
    struct cox_session_params *session = &kernel->session;
    struct cox_pass only = {.stage_count = session->stage_count, .stages = session->stages};

    delay->variants[0] = (struct cox_variant){
        .source = delay_source, .options = "-D DELAYED=0", .local_rows = 64};
    delay->variants[1] = (struct cox_variant){.device_plus_1 = kernel->params.delay_device + 1,
                                              .source = delay_source,
                                              .options = "-D DELAYED=1",
                                              .local_rows = 64};

    for (uint32_t p = 0; p < session->pass_count; p++)
        if (session->passes[p].stage_count == COX_FUSED_MAX)
            return false;

    if (session->params_bytes > offsetof(struct frame_params, steps))
        return false;

    for (uint32_t p = 0; p < session->pass_count; p++) {
        delay->passes[p] = session->passes[p];
        delay_pass(kernel, p, &delay->passes[p]);
    }

    if (session->pass_count) {
        session->passes = delay->passes;
    } else {
        delay_pass(kernel, 0, &only);
        session->stages = only.stages;
        session->stage_count = only.stage_count;
    }

    session->params_bytes = sizeof(struct frame_params);
    return true;
}

static bool is_user(const struct lab_kernel *kernel)
{
    return kernel->params.kind == LAB_KERNEL_USER;
}

/* --- Buffers ---------------------------------------------------------------------------------- */

/* Random numbers that look like light, the same on every machine. */
static void fill(const struct lab_kernel *kernel, void *data, size_t bytes, uint32_t seed)
{
    if (kernel->params.kind == LAB_KERNEL_WORK) {
        work_input_fill(data, &kernel->work);
        return;
    }

    uint16_t *words = data;
    for (size_t i = 0; i < bytes / 2; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (kernel->params.kind == LAB_KERNEL_BLUR)
            words[i] = (uint16_t)(seed >> 16);
        else if (kernel->params.kind == LAB_KERNEL_VIDEO)
            words[i] = (uint16_t)(64 + (seed >> 16) % 877); /* limited range */
        else if (i % 4 == 3)
            words[i] = 0x3c00; /* 1 */
        else
            words[i] = (uint16_t)(0x1000 + (seed >> 18)); /* 2^-11 .. 2^5 */
    }
}

double lab_kernel_gigabytes(const struct lab_kernel *kernel)
{
    double bytes = 0;

    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        bytes += (double)kernel->bytes[b] * kernel->params.lanes * kernel->params.slots;
    return bytes / 1e9;
}

/* Whether the buffers take less than three quarters of this machine's memory. */
static bool fits(const struct lab_kernel *kernel)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages <= 0 || page_bytes <= 0 ||
           1e9 * lab_kernel_gigabytes(kernel) < 0.75 * (double)pages * (double)page_bytes;
}

static cox_status make_buffers(struct lab_kernel *kernel, char *why, size_t why_bytes)
{
    uint32_t sets = kernel->params.lanes * kernel->params.slots;

    kernel->buffers = calloc(sets, sizeof *kernel->buffers);
    if (!kernel->buffers)
        return COX_E_NOMEM;

    for (uint32_t set = 0; set < sets; set++)
        for (uint32_t b = 0; b < kernel->buffer_count; b++) {
            if (!kernel->bytes[b])
                continue;

            cox_status status = cox_buffer_create(kernel->runtime, kernel->bytes[b],
                                                  &kernel->buffers[set][b]);
            if (status != COX_OK)
                return status;

            /* The same content for every session. */
            void *data = cox_buffer_data(kernel->buffers[set][b]);

            if (b < kernel->in_count)
                fill(kernel, data, kernel->bytes[b], set % kernel->params.slots * 16 + b);
            if (is_user(kernel) && !lab_user_fill(&kernel->storage.user, b, data, why, why_bytes))
                return COX_E_INVALID;
        }
    return COX_OK;
}

bool lab_kernel_open(cox_runtime *runtime, const struct lab_kernel_params *params,
                     struct lab_kernel **out, char *why, size_t why_bytes)
{
    struct lab_kernel *kernel = calloc(1, sizeof *kernel);
    *out = NULL;
    if (!kernel)
        return lab_refuse(why, why_bytes, "out of memory");

    kernel->params = *params;
    kernel->runtime = runtime;
    why[0] = '\0';

    if (!params->columns && is_user(kernel)) {
        kernel->params.columns = params->user->bindings.columns;
        kernel->params.rows = params->user->bindings.rows;
    } else if (!params->columns) {
        kernel->params.columns = kinds[params->kind].columns;
        kernel->params.rows = kinds[params->kind].rows;
    }

    cox_status status = describe(kernel);

    if (status == COX_OK && kernel->in_place && params->slots > 1) {
        snprintf(why, why_bytes, "%s reads what it writes: only one frame may be in flight",
                 name_of(params));
        status = COX_E_INVALID;
    }

    if (status == COX_OK && params->delayed && !add_delay(kernel)) {
        snprintf(why, why_bytes,
                 "%s: there is no room for an artificial delay beside its parameters and stages",
                 name_of(params));
        status = COX_E_INVALID;
    }

    if (status == COX_OK && !fits(kernel)) {
        snprintf(why, why_bytes,
                 "%s, %u x %u: %.1f GB of frames do not fit into this machine's memory",
                 name_of(params), kernel->params.columns, kernel->params.rows,
                 lab_kernel_gigabytes(kernel));
        status = COX_E_NOMEM;
    }

    if (status == COX_OK)
        status = make_buffers(kernel, why, why_bytes);

    if (status != COX_OK) {
        if (!why[0])
            snprintf(why, why_bytes, "%s, %u x %u: %s", name_of(params), kernel->params.columns,
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
    if (is_user(k))
        lab_user_pipeline_free(&k->storage.user);
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

const struct cox_session_params *lab_kernel_session(const struct lab_kernel *kernel)
{
    return &kernel->session;
}

static cox_buffer **buffers_of(const struct lab_kernel *kernel, uint32_t lane, uint64_t index)
{
    return kernel->buffers[lane * kernel->params.slots + index % kernel->params.slots];
}

struct cox_frame lab_kernel_frame(struct lab_kernel *kernel, uint32_t lane, uint64_t index)
{
    cox_buffer **buffers = buffers_of(kernel, lane, index);

    for (uint32_t b = 0; kernel->in_place && b < kernel->buffer_count; b++)
        lab_user_restore(&kernel->storage.user, b, cox_buffer_data(buffers[b]));

    return (struct cox_frame){
        .buffers = buffers, .buffer_count = kernel->buffer_count, .params = &kernel->frame_params};
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

uint64_t lab_kernel_hash(const struct lab_kernel *kernel, uint32_t lane, uint64_t index)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    for (uint32_t b = kernel->in_count; b < kernel->buffer_count; b++) {
        const size_t pitch = kernel->session.bindings[b].pitch_bytes;
        const unsigned char *data = cox_buffer_data(buffers_of(kernel, lane, index)[b]);
        for (size_t row = 0; row + pitch <= kernel->bytes[b]; row += pitch)
            for (size_t i = 0; i < kernel->row_bytes[b]; i++)
                hash = (hash ^ data[row + i]) * 1099511628211u;
    }
    return hash;
}

void lab_kernel_wipe(struct lab_kernel *kernel, uint32_t lane, uint64_t index)
{
    for (uint32_t b = kernel->in_count; b < kernel->buffer_count; b++)
        memset(cox_buffer_data(buffers_of(kernel, lane, index)[b]), 0xa5, kernel->bytes[b]);
}

bool lab_kernel_keep(struct lab_kernel *kernel, uint32_t lane, uint64_t index)
{
    cox_buffer **buffers = buffers_of(kernel, lane, index);
    bool good = true;

    for (uint32_t b = 0; is_user(kernel) && good && b < kernel->buffer_count; b++)
        good = lab_user_keep(&kernel->storage.user, b, cox_buffer_data(buffers[b]));
    return good;
}

void lab_kernel_spoil(struct lab_kernel *kernel, uint32_t lane)
{
    for (uint32_t slot = 0; is_user(kernel) && slot < kernel->params.slots; slot++)
        for (uint32_t b = 0; b < kernel->buffer_count; b++)
            lab_user_spoil(&kernel->storage.user, b,
                           cox_buffer_data(buffers_of(kernel, lane, slot)[b]));
}

bool lab_kernel_compare(const struct lab_kernel *kernel, uint32_t lane, uint64_t first,
                        uint64_t count, char *why, size_t why_bytes)
{
    for (uint64_t i = 0; is_user(kernel) && i < count && i < kernel->params.slots; i++)
        for (uint32_t b = 0; b < kernel->buffer_count; b++)
            if (!lab_user_compare(&kernel->storage.user, b,
                                  cox_buffer_data(buffers_of(kernel, lane,
                                                             first + count - 1 - i)[b]),
                                  why, why_bytes))
                return false;
    return true;
}
