/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"
#include "user_pipeline.h"
#include "common/work.h"
#include "lab/build.h"
#include "lab/refuse.h"

#include <coxswain/filter.h>
#include <coxswain/video.h>
#include <inttypes.h>
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

/* A kernel before the others of each pass. On the delayed device its first item does `steps`
 * dependent steps of arithmetic. No compiler may leave out what is stored in volatile memory. */
static const char delay_source[] =
    "kernel void lab_delay(int first_row, int lab_delay_steps)\n"
    "{\n"
    "    if (!DELAYED || get_global_id(0) != 0 || get_global_id(1) != 0)\n"
    "        return;\n"
    "    float v = (float)first_row;\n"
    "    for (int i = 0; i < lab_delay_steps; i++)\n"
    "        v = fma(v, 0.9990234375f, 0.0009765625f);\n"
    "    volatile float result = v;\n"
    "    (void)result;\n"
    "}\n";

/* The constants of the kernel itself, then those of the delay. */
struct frame_constants {
    union {
        unsigned char user[LAB_USER_CONSTANTS_BYTES];
        struct work_constants work;
    } base;
    int32_t steps;
};

struct delay {
    char devices[16];
    struct cox_pass variants[2];
    struct cox_pass passes[LAB_PASSES_MAX + COX_PASSES_MAX + 1];
    struct cox_field fields[LAB_CONSTANTS_MAX + 2];
};

/* --- The kernels ------------------------------------------------------------------------------ */

struct lab_kernel {
    struct lab_kernel_params params;
    cox_runtime *runtime;
    union {
        struct work_pipeline work;
        struct lab_user_pipeline user;
    } own;
    cox_pipeline *pipeline; /* of the library; NULL = passes of this program or of the user */
    uint32_t pipeline_passes;
    struct work_shape work;
    struct cox_session_params session;
    struct delay delay;
    union {
        struct frame_constants constants;
        struct cox_constants of_library;
    };
    uint32_t in_count, buffer_count; /* read buffers come first, except in a user's kernel */
    bool in_place;
    size_t bytes[BUFFERS_MAX];
    size_t pitch_bytes[BUFFERS_MAX], row_bytes[BUFFERS_MAX]; /* not of a user's kernel */

    /* [lane * slots + slot]: a list that ends with NULL. */
    cox_buffer *(*buffers)[BUFFERS_MAX + 1];
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

void lab_kernel_sha256(const struct lab_kernel *kernel, char text[SHA256_TEXT_BYTES])
{
    const struct lab_kernel_params *params = &kernel->params;

    if (params->kind == LAB_KERNEL_USER)
        sha256_of(params->user->source, strlen(params->user->source), text);
    else if (params->kind == LAB_KERNEL_WORK)
        sha256_of(work_source, strlen(work_source), text);
    else
        snprintf(text, SHA256_TEXT_BYTES, "%s", lab_build.kernels_sha256);
}

/* Add a buffer of `rows` rows to the frame. Returns its pitch. */
static size_t add_rows(struct lab_kernel *kernel, size_t row_bytes, uint32_t rows)
{
    const size_t pitch_bytes = cox_runtime_pitch_bytes(kernel->runtime, row_bytes);
    const uint32_t b = kernel->buffer_count++;

    kernel->row_bytes[b] = row_bytes;
    kernel->pitch_bytes[b] = pitch_bytes;
    kernel->bytes[b] = pitch_bytes * rows;
    return pitch_bytes;
}

static cox_status describe_tonemap(struct lab_kernel *kernel)
{
    const struct lab_kernel_params *params = &kernel->params;
    const struct cox_tonemap_settings settings = {.op = COX_OPERATOR_HABLE};
    struct cox_tonemap_shape shape = {.width = params->columns, .height = params->rows};

    shape.in_pitch_bytes = add_rows(kernel, 8ul * params->columns, params->rows);
    shape.out_pitch_bytes = add_rows(kernel, 4ul * params->columns, params->rows);
    kernel->in_count = 1;
    kernel->pipeline_passes = 1;

    cox_status status = cox_tonemap_mapping(&shape, &kernel->pipeline);
    if (status)
        return status;
    return cox_tonemap_prepare(&shape, &settings, &kernel->of_library);
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
        for (uint32_t p = 0; p < count; p++)
            pitches[side][p] = add_rows(kernel, planes[side][p].row_bytes, planes[side][p].rows);
        if (side == 0)
            kernel->in_count = kernel->buffer_count;
    }
    kernel->pipeline_passes = 1;

    cox_status status = cox_video_mapping(&shape, false, &kernel->pipeline);
    if (status)
        return status;
    return cox_video_prepare(&shape, &settings, &kernel->of_library);
}

static cox_status describe_work(struct lab_kernel *kernel)
{
    const struct lab_kernel_params *params = &kernel->params;
    const size_t row_bytes = (size_t)params->columns * WORK_ITEM_BYTES;

    kernel->in_count = 1;
    kernel->work = (struct work_shape){.columns = params->columns,
                                       .rows = params->rows,
                                       .work = 64,
                                       .pitch_bytes = add_rows(kernel, row_bytes, params->rows)};
    add_rows(kernel, row_bytes, params->rows);

    /* Device 1 has more work than the others, if there is one. */
    const bool unequal = params->ratio > 1 && cox_runtime_device_count(kernel->runtime) > 1;
    work_pipeline_fill(&kernel->own.work, &kernel->work, unequal ? 1 : -1, (int)params->ratio,
                       &kernel->session);

    kernel->constants.base.work = work_constants_of(&kernel->work);
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
    struct cox_filter_shape shape = {.width = params->columns,
                                     .height = params->rows,
                                     .sample = COX_FILTER_8,
                                     .channels = BLUR_CHANNELS,
                                     .radius_x = BLUR_RADIUS,
                                     .radius_y = BLUR_RADIUS,
                                     .form = COX_FILTER_EXCHANGE};
    int32_t weights[2 * BLUR_RADIUS + 1];

    blur_weights(weights);
    shape.in_pitch_bytes = add_rows(kernel, row_bytes, params->rows);
    shape.out_pitch_bytes = add_rows(kernel, row_bytes, params->rows);
    kernel->in_count = 1;
    kernel->pipeline_passes = 2;

    cox_status status = cox_filter_separable(&shape, &kernel->pipeline);
    if (status)
        return status;
    return cox_filter_separable_prepare(&shape,
                                        &(struct cox_filter_weights){.across_int = weights,
                                                                     .down_int = weights,
                                                                     .shift = BLUR_SHIFT},
                                        &kernel->of_library);
}

static cox_status describe_user(struct lab_kernel *kernel)
{
    struct lab_user_pipeline *user = &kernel->own.user;

    lab_user_pipeline_fill(user, kernel->params.user, kernel->runtime, kernel->params.columns,
                           kernel->params.rows, &kernel->session, kernel->constants.base.user);

    kernel->buffer_count = user->count;
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

/* A pass without a kernel ends the list. */
static bool is_pass(const struct cox_pass *pass)
{
    return pass->source != NULL;
}

/* Passes that are fused with the one that `pass` points to, and itself. */
static uint32_t group_of(const struct cox_pass *pass)
{
    uint32_t count = 1;

    while (is_pass(&pass[count]) && pass[count].fused)
        count++;
    return count;
}

uint32_t lab_kernel_passes(const struct lab_kernel *kernel,
                           struct lab_kernel_pass passes[COX_PASSES_MAX])
{
    static const char *const blur_names[] = {"rows", "columns"};
    const struct cox_session_params *session = &kernel->session;
    uint32_t count = 0;

    for (; kernel->pipeline && count < kernel->pipeline_passes; count++)
        passes[count] = (struct lab_kernel_pass){
            .name = kernel->params.kind == LAB_KERNEL_BLUR ? blur_names[count] : NULL,
            .rows = kernel->params.rows,
            .stages = 1};

    if (kernel->pipeline)
        return count;

    for (const struct cox_pass *pass = session->passes; is_pass(pass); pass += group_of(pass))
        passes[count++] = (struct lab_kernel_pass){.name = pass->name,
                                                   .rows = pass->rows ? pass->rows : session->rows,
                                                   .stages = group_of(pass)};
    return count;
}

static void delay_fields(struct delay *delay, struct cox_session_params *session)
{
    uint32_t count = 0;

    for (const struct cox_field *field = session->fields; field->name; field++)
        delay->fields[count++] = *field;

    delay->fields[count] = (struct cox_field){
        "lab_delay_steps", offsetof(struct frame_constants, steps), sizeof(int32_t)};
    session->fields = delay->fields;
    session->constants_bytes = sizeof(struct frame_constants);
}

/* Put the delay before each pass, which is then fused with it. */
static void delay_passes(struct delay *delay, struct cox_session_params *session)
{
    struct cox_pass *to = delay->passes;

    for (const struct cox_pass *pass = session->passes; is_pass(pass); pass++) {
        if (!pass->fused)
            *to++ = (struct cox_pass){.source = delay_source,
                                      .options = "-D DELAYED=0",
                                      .columns = 1,
                                      .rows = pass->rows,
                                      .variants = delay->variants,
                                      .name = pass->name};
        *to = *pass;
        to->fused = true;
        to->rows = 0; /* the delay's pass, the first of the group, says it */
        to++;
    }

    session->passes = delay->passes;
}

/* False with a sentence in `why` if the kernel cannot be delayed. */
static bool add_delay(struct lab_kernel *kernel, char *why, size_t why_bytes)
{
    struct delay *delay = &kernel->delay;
    const char *name = lab_kernel_name(kernel);

    if (kernel->pipeline)
        return lab_refuse(why, why_bytes,
                          "%s: an artificial delay is only possible with the kernel work "
                          "or a kernel of your own",
                          name);

    for (const struct cox_pass *pass = kernel->session.passes; is_pass(pass);
         pass += group_of(pass))
        if (group_of(pass) == COX_FUSED_MAX)
            return lab_refuse(why, why_bytes,
                              "%s: too many fused passes to add an artificial delay", name);

    snprintf(delay->devices, sizeof delay->devices, "#%" PRIu32, kernel->params.delay_device);
    delay->variants[0] = (struct cox_pass){
        .devices = delay->devices, .source = delay_source, .options = "-D DELAYED=1"};

    delay_passes(delay, &kernel->session);
    delay_fields(delay, &kernel->session);
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
            cox_status status = cox_buffer_create(kernel->runtime, kernel->bytes[b],
                                                  &kernel->buffers[set][b]);
            if (status != COX_OK)
                return status;

            /* The same content for every session. */
            void *data = cox_buffer_data(kernel->buffers[set][b]);

            if (b < kernel->in_count)
                fill(kernel, data, kernel->bytes[b], set % kernel->params.slots * 16 + b);
            if (is_user(kernel) && !lab_user_fill(&kernel->own.user, b, data, why, why_bytes))
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
    kernel->session.pipeline = kernel->pipeline;

    if (status == COX_OK && kernel->in_place && params->slots > 1) {
        snprintf(why, why_bytes, "%s: has read-write buffers, so --in-flight must be 1",
                 name_of(params));
        status = COX_E_INVALID;
    }

    if (status == COX_OK && params->delayed && !add_delay(kernel, why, why_bytes))
        status = COX_E_INVALID;

    if (status == COX_OK && !fits(kernel)) {
        snprintf(why, why_bytes,
                 "%s, %u x %u: %.1f GB of frames exceed the memory of this machine; use "
                 "a smaller --size",
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
    cox_pipeline_destroy(&k->pipeline);
    if (is_user(k))
        lab_user_pipeline_free(&k->own.user);
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
        lab_user_restore(&kernel->own.user, b, cox_buffer_data(buffers[b]));

    return (struct cox_frame){.buffers = buffers, .constants = &kernel->constants};
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
    kernel->constants.base.work = work_constants_of(&kernel->work);
}

void lab_kernel_set_delay(struct lab_kernel *kernel, int32_t steps)
{
    kernel->constants.steps = steps;
}

uint64_t lab_kernel_hash(const struct lab_kernel *kernel, uint32_t lane, uint64_t index)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    for (uint32_t b = kernel->in_count; b < kernel->buffer_count; b++) {
        const size_t pitch = kernel->pitch_bytes[b];
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
        good = lab_user_keep(&kernel->own.user, b, cox_buffer_data(buffers[b]));
    return good;
}

void lab_kernel_spoil(struct lab_kernel *kernel, uint32_t lane)
{
    for (uint32_t slot = 0; is_user(kernel) && slot < kernel->params.slots; slot++)
        for (uint32_t b = 0; b < kernel->buffer_count; b++)
            lab_user_spoil(&kernel->own.user, b,
                           cox_buffer_data(buffers_of(kernel, lane, slot)[b]));
}

bool lab_kernel_compare(const struct lab_kernel *kernel, uint32_t lane, uint64_t first,
                        uint64_t count, char *why, size_t why_bytes)
{
    for (uint64_t i = 0; is_user(kernel) && i < count && i < kernel->params.slots; i++)
        for (uint32_t b = 0; b < kernel->buffer_count; b++)
            if (!lab_user_compare(&kernel->own.user, b,
                                  cox_buffer_data(buffers_of(kernel, lane,
                                                             first + count - 1 - i)[b]),
                                  why, why_bytes))
                return false;
    return true;
}
