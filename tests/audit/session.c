/* Runs a session under the auditing layer and checks that it breaks no rule over many frames.
 *
 *   audit_session DEVICES POLICY PIPELINE FRAMES [LAYER]
 *
 * DEVICES is as for cox_runtime_create; "-" = all. PIPELINE is one of
 *   rows       one kernel on rows
 *   contracts  two kernels, with a halo, a table and a reduction
 *   passes     three passes: by exchange, fused, and one that reads the whole picture and turns it
 *   tonemap    the library's own
 *
 * Every frame's result is checked too.
 *
 * With the policy `static`, and with `chunks` on a single device, bands are the same in all frames: from frame
 * ADAPTING on, nothing may be created. With other policies bands move, and the program prints how many objects are
 * created after frame MARK.
 *
 * Exit status: 0 clean, 1 a violation or a wrong result, 77 no such device.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "specs.h"
#include "control.h"

#include <coxswain/coxswain.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { IN_FLIGHT = 3, SETS = IN_FLIGHT + 1, ADAPTING = 40, MARK = 100, BINDINGS_MAX = 6 };
enum { COLUMNS = 300, ROWS = 601, TABLE = 256, BINS = 16, WIDTH = 640, HEIGHT = 401 };

static const char rows_source[] =
    "kernel void scramble(global const uint *in, global uint *out, int columns, int rows, int pitch) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows) out[y * pitch + x] = in[y * pitch + x] * 2654435761u + 1u;\n"
    "}\n";

static const char contracts_source[] =
    "kernel void smooth(global const uint *in, constant uint *table, global uint *out, int columns, int rows,\n"
    "                   int first, int frame, int origin, int pitch) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    int r = first + y, above = max(r - 1, 0) - origin, below = min(r + 1, frame - 1) - origin;\n"
    "    uint sum = in[above * pitch + x] + 3u * in[(r - origin) * pitch + x] + in[below * pitch + x];\n"
    "    out[y * pitch + x] = sum * table[x & 255];\n"
    "}\n"
    "kernel void count(global const uint *out, global uint *bins, int columns, int rows, int pitch) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows) atomic_inc(&bins[out[y * pitch + x] >> 28]);\n"
    "}\n";

static const char passes_source[] =
    "kernel void blur(global const uint *in, global uint *out, int columns, int rows, int first, int frame,\n"
    "                 int origin, int out_origin, int pitch) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    int r = first + y, above = max(r - 1, 0) - origin, below = min(r + 1, frame - 1) - origin;\n"
    "    out[(r - out_origin) * pitch + x] =\n"
    "        in[above * pitch + x] + 3u * in[(r - origin) * pitch + x] + 5u * in[below * pitch + x];\n"
    "}\n"
    "kernel void turn(global const uint *in, global uint *out, global uint *bins, int columns, int rows, int first,\n"
    "                 int frame, int pitch) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    uint value = in[(frame - 1 - first - y) * pitch + columns - 1 - x];\n"
    "    out[y * pitch + x] = value;\n"
    "    atomic_inc(&bins[value >> 28]);\n"
    "}\n";

static struct audit audit;
static cox_runtime *runtime;
static cox_session *session;
static size_t pitch_bytes, pitch; /* of the first binding; `pitch` in uints */
static cox_buffer *buffers[SETS][BINDINGS_MAX];
static _Atomic uint64_t frames_done, frames_wrong, frames_failed;
static unsigned char *first_picture; /* tonemap: the result of the first frame */
static size_t picture_bytes;

static void log_line(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    fprintf(stderr, "%s: %s\n", level == COX_LOG_ERROR ? "error" : level == COX_LOG_WARN ? "warning" : "note", line);
}

static void add_bins(void *into, const void *partial, size_t bytes, void *user)
{
    (void)user;
    for (size_t i = 0; i < bytes / sizeof(uint32_t); i++)
        ((uint32_t *)into)[i] += ((const uint32_t *)partial)[i];
}

/* --- Contents of frames ---------------------------------------------------------------------------------- */

static uint32_t input_at(uint64_t frame, uint32_t row, uint32_t column)
{
    return (uint32_t)frame * 747796405u + row * 2891336453u + column * 277803737u;
}

static uint32_t table_at(uint32_t i)
{
    return 2 * i + 1;
}

static uint32_t smooth_at(uint64_t frame, uint32_t row, uint32_t column)
{
    uint32_t above = row > 0 ? row - 1 : 0, below = row + 1 < ROWS ? row + 1 : row;
    uint32_t sum = input_at(frame, above, column) + 3 * input_at(frame, row, column) + input_at(frame, below, column);
    return sum * table_at(column & 255);
}

static void fill_input(uint64_t frame)
{
    uint32_t *in = cox_buffer_data(buffers[frame % SETS][0]);
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t column = 0; column < COLUMNS; column++)
            in[row * pitch + column] = input_at(frame, row, column);
}

/* Checks each row at a few columns, which differ from frame to frame. */
static bool right_uints(uint64_t frame, int out_binding, uint32_t (*expected)(uint64_t, uint32_t, uint32_t))
{
    const uint32_t *out = cox_buffer_data(buffers[frame % SETS][out_binding]);
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t column = ((uint32_t)frame * 7 + row * 13 + i * 101) % COLUMNS;
            if (out[row * pitch + column] != expected(frame, row, column))
                return false;
        }
    return true;
}

/* The input after `times` blurs. */
static uint32_t blurred_at(uint64_t frame, uint32_t row, uint32_t column, uint32_t times)
{
    const uint32_t above = row > 0 ? row - 1 : 0, below = row + 1 < ROWS ? row + 1 : row;
    if (times == 0)
        return input_at(frame, row, column);
    return blurred_at(frame, above, column, times - 1) + 3 * blurred_at(frame, row, column, times - 1) +
           5 * blurred_at(frame, below, column, times - 1);
}

static uint32_t turned_at(uint64_t frame, uint32_t row, uint32_t column)
{
    return blurred_at(frame, ROWS - 1 - row, COLUMNS - 1 - column, 3);
}

static uint32_t scrambled_at(uint64_t frame, uint32_t row, uint32_t column)
{
    return input_at(frame, row, column) * 2654435761u + 1;
}

static bool right_bins(uint64_t frame, int binding)
{
    const uint32_t *bins = cox_buffer_data(buffers[frame % SETS][binding]);
    uint64_t sum = 0;
    for (int i = 0; i < BINS; i++)
        sum += bins[i];
    return sum == (uint64_t)ROWS * COLUMNS;
}

static bool right_picture(uint64_t frame)
{
    const void *out = cox_buffer_data(buffers[frame % SETS][1]);
    if (frame == 0)
        memcpy(first_picture, out, picture_bytes);
    return memcmp(first_picture, out, picture_bytes) == 0;
}

/* --- The pipelines --------------------------------------------------------------------------------------- */

struct pipeline {
    const char *name;
    cox_status (*create)(struct cox__session_spec *params);
    const void *frame_params;
    uint32_t (*expected)(uint64_t frame, uint32_t row, uint32_t column); /* NULL: the same as the first frame */
    int out, bins;                                                       /* bindings; bins = 0: none */
    size_t bytes[BINDINGS_MAX]; /* of each binding's buffer, 0 for scratch; set by create */
    uint32_t bindings;
};

static int pitch_param;
static struct cox_constants tonemap_params;
static struct pipeline *pipeline;

#define STAGE(name, arguments)                                                          \
    {                                                                                   \
        .kernel = (name), .columns = COLUMNS, .variant_count = 1, .variants = &variant, \
        .arg_count = sizeof(arguments) / sizeof *(arguments), .args = (arguments)       \
    }

static cox_status create_rows(struct cox__session_spec *params)
{
    const struct cox__binding bindings[] = {{.name = "in", .access = COX__READ, .pitch_bytes = pitch_bytes},
                                            {.name = "out", .access = COX__WRITE, .pitch_bytes = pitch_bytes}};
    const struct cox__variant variant = {
        .source = rows_source, .local_columns = 32, .local_rows = 2, .any_local = true};
    const struct cox__arg args[] = {COX__ARG_BUFFER(0), COX__ARG_BUFFER(1), COX__ARG_COLUMNS, COX__ARG_ROWS,
                                    COX__ARG_PARAMS(int)};
    const struct cox__stage stage = STAGE("scramble", args);
    params->binding_count = pipeline->bindings = 2;
    params->bindings = bindings;
    params->stage_count = 1;
    params->stages = &stage;
    pipeline->bytes[0] = pipeline->bytes[1] = ROWS * pitch_bytes;
    return cox__session_create(runtime, params, &session);
}

static cox_status create_contracts(struct cox__session_spec *params)
{
    const struct cox__binding bindings[] = {
        {.name = "in", .row_access = COX__HALO, .pitch_bytes = pitch_bytes, .halo_rows = 1},
        {.name = "table", .row_access = COX__WHOLE, .bytes = TABLE * sizeof(uint32_t)},
        {.name = "out", .access = COX__WRITE, .pitch_bytes = pitch_bytes},
        {.name = "bins",
         .row_access = COX__REDUCE,
         .access = COX__WRITE,
         .bytes = BINS * sizeof(uint32_t),
         .merge = add_bins}};
    const struct cox__variant variant = {.source = contracts_source, .local_columns = 64, .any_local = true};
    const struct cox__arg smooth[] = {COX__ARG_BUFFER(0),  COX__ARG_BUFFER(1), COX__ARG_BUFFER(2),
                                      COX__ARG_COLUMNS,    COX__ARG_ROWS,      COX__ARG_FIRST_ROW,
                                      COX__ARG_FRAME_ROWS, COX__ARG_ORIGIN(0), COX__ARG_PARAMS(int)};
    const struct cox__arg count[] = {COX__ARG_BUFFER(2), COX__ARG_BUFFER(3), COX__ARG_COLUMNS, COX__ARG_ROWS,
                                     COX__ARG_PARAMS(int)};
    const struct cox__stage stages[] = {STAGE("smooth", smooth), STAGE("count", count)};
    params->binding_count = pipeline->bindings = 4;
    params->bindings = bindings;
    params->stage_count = 2;
    params->stages = stages;
    pipeline->bytes[0] = pipeline->bytes[2] = ROWS * pitch_bytes;
    pipeline->bytes[1] = TABLE * sizeof(uint32_t);
    pipeline->bytes[3] = BINS * sizeof(uint32_t);
    return cox__session_create(runtime, params, &session);
}

static cox_status create_passes(struct cox__session_spec *params)
{
    const struct cox__binding scratch = {.name = "between", .pitch_bytes = pitch_bytes, .scratch = true};
    const struct cox__binding bindings[] = {{.name = "in", .pitch_bytes = pitch_bytes},
                                            scratch,
                                            scratch,
                                            scratch,
                                            {.name = "out", .access = COX__WRITE, .pitch_bytes = pitch_bytes},
                                            {.name = "bins",
                                             .row_access = COX__REDUCE,
                                             .access = COX__WRITE,
                                             .bytes = BINS * sizeof(uint32_t),
                                             .merge = add_bins}};
    const struct cox__variant variant = {.source = passes_source, .local_columns = 64, .any_local = true};
#define BLUR_ARGS(from, to)                                                                              \
    {                                                                                                    \
        COX__ARG_BUFFER(from), COX__ARG_BUFFER(to), COX__ARG_COLUMNS, COX__ARG_ROWS, COX__ARG_FIRST_ROW, \
            COX__ARG_FRAME_ROWS, COX__ARG_ORIGIN(from), COX__ARG_ORIGIN(to), COX__ARG_PARAMS(int)        \
    }
    const struct cox__arg blur[][9] = {BLUR_ARGS(0, 1), BLUR_ARGS(1, 2), BLUR_ARGS(2, 3)};
    const struct cox__arg turn[] = {COX__ARG_BUFFER(3), COX__ARG_BUFFER(4), COX__ARG_BUFFER(5),  COX__ARG_COLUMNS,
                                    COX__ARG_ROWS,      COX__ARG_FIRST_ROW, COX__ARG_FRAME_ROWS, COX__ARG_PARAMS(int)};
    const struct cox__stage stages[] = {STAGE("blur", blur[0]), STAGE("blur", blur[1]), STAGE("blur", blur[2]),
                                        STAGE("turn", turn)};
    const struct cox__pass_binding first[] = {{.binding = 0, .row_access = COX__HALO, .halo_rows = 1},
                                              {.binding = 1, .access = COX__WRITE}};
    const struct cox__pass_binding second[] = {
        {.binding = 1, .row_access = COX__HALO, .halo_rows = 1},
        {.binding = 2, .row_access = COX__HALO, .access = COX__READ_WRITE, .halo_rows = 1},
        {.binding = 3, .access = COX__WRITE}};
    const struct cox__pass_binding third[] = {{.binding = 3, .row_access = COX__WHOLE},
                                              {.binding = 4, .access = COX__WRITE},
                                              {.binding = 5, .row_access = COX__REDUCE, .access = COX__WRITE}};
    const struct cox__pass_spec passes[] = {
        {.name = "exchange", .use_count = 2, .uses = first, .stage_count = 1, .stages = &stages[0]},
        {.name = "overlap", .use_count = 3, .uses = second, .stage_count = 2, .stages = &stages[1]},
        {.name = "turn", .use_count = 3, .uses = third, .stage_count = 1, .stages = &stages[3]}};
    params->binding_count = pipeline->bindings = 6;
    params->bindings = bindings;
    params->pass_count = 3;
    params->passes = passes;
    pipeline->bytes[0] = pipeline->bytes[4] = ROWS * pitch_bytes;
    pipeline->bytes[5] = BINS * sizeof(uint32_t);
    return cox__session_create(runtime, params, &session);
}

static cox_status create_tonemap(struct cox__session_spec *params)
{
    const struct cox_tonemap_shape shape = {.width = WIDTH,
                                            .height = HEIGHT,
                                            .in = COX_PIXEL_RGBA_FLOAT,
                                            .out = COX_PIXEL_RGBA8,
                                            .in_pitch_bytes = cox_runtime_pitch_bytes(runtime, WIDTH * 16),
                                            .out_pitch_bytes = cox_runtime_pitch_bytes(runtime, WIDTH * 4)};
    const struct cox_tonemap_settings settings = {.op = COX_OPERATOR_HABLE};
    struct cox__pipeline_storage storage;
    cox_status status = cox__tonemap_mapping(&shape, &storage, params);
    if (status == COX_OK)
        status = cox_tonemap_prepare(&shape, &settings, &tonemap_params);
    if (status)
        return status;
    pipeline->bindings = 2;
    pipeline->bytes[0] = shape.in_pitch_bytes * HEIGHT;
    pipeline->bytes[1] = picture_bytes = shape.out_pitch_bytes * HEIGHT;
    first_picture = malloc(picture_bytes);
    return first_picture ? cox__session_create(runtime, params, &session) : COX_E_NOMEM;
}

static struct pipeline pipelines[] = {
    {"rows", create_rows, &pitch_param, scrambled_at, .out = 1},
    {"contracts", create_contracts, &pitch_param, smooth_at, .out = 2, .bins = 3},
    {"passes", create_passes, &pitch_param, turned_at, .out = 4, .bins = 5},
    {"tonemap", create_tonemap, &tonemap_params, NULL, .out = 1},
};

static cox_status make_buffers(void)
{
    for (int set = 0; set < SETS; set++)
        for (uint32_t b = 0; b < pipeline->bindings; b++) {
            if (!pipeline->bytes[b])
                continue;
            cox_status status = cox_buffer_create(runtime, pipeline->bytes[b], &buffers[set][b]);
            if (status)
                return status;
            if (strcmp(pipeline->name, "contracts") == 0 && b == 1)
                for (uint32_t i = 0; i < TABLE; i++)
                    ((uint32_t *)cox_buffer_data(buffers[set][b]))[i] = table_at(i);
            if (strcmp(pipeline->name, "tonemap") == 0 && b == 0)
                for (size_t i = 0; i < pipeline->bytes[0] / sizeof(float); i++)
                    ((float *)cox_buffer_data(buffers[set][b]))[i] = (float)(i % 4001) * 0.004f;
        }
    return COX_OK;
}

/* --- The run --------------------------------------------------------------------------------------------- */

static bool is_right(uint64_t frame)
{
    if (!pipeline->expected)
        return right_picture(frame);
    return (!pipeline->bins || right_bins(frame, pipeline->bins)) &&
           right_uints(frame, pipeline->out, pipeline->expected);
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    (void)user;
    if (status != COX_OK)
        atomic_fetch_add(&frames_failed, 1);
    else if (!is_right(frame))
        atomic_fetch_add(&frames_wrong, 1);
    atomic_fetch_add(&frames_done, 1);
}

static cox_status run_frames(uint64_t from, uint64_t to)
{
    for (uint64_t frame = from; frame < to; frame++) {
        if (pipeline->expected)
            fill_input(frame); /* at most IN_FLIGHT frames are in flight, none of them with this set */
        const struct cox__frame_spec next = {
            .buffers = buffers[frame % SETS], .buffer_count = pipeline->bindings, .params = pipeline->frame_params};
        cox_status status = cox__session_submit(session, &next, on_done, NULL);
        if (status)
            return status;
    }
    cox_session_wait(session);
    return COX_OK;
}

static uint64_t objects_made(void)
{
    uint64_t sum = 0;
    for (int type = 0; type < AUDIT_TYPES; type++)
        for (int phase = AUDIT_PHASE_ADAPTING; phase <= AUDIT_PHASE_STEADY; phase++)
            if (type != AUDIT_TYPE_EVENT && type != AUDIT_TYPE_MAPPING)
                sum += audit.created(type, phase);
    return sum;
}

static int failed(const char *what, cox_status status)
{
    fprintf(stderr, "%s: %s\n", what, cox_status_text(status));
    return status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE || status == COX_E_NOT_FOUND ? 77 : 1;
}

static void show_modes(void)
{
    struct cox_session_info info;
    cox_session_info(session, &info);
    for (uint32_t d = 0; d < info.device_count; d++)
        printf("%s%s", d ? "+" : "",
               info.devices[d].state == COX_DEVICE_ACTIVE ? cox_memory_mode_name(info.devices[d].mode) : "lost");
}

int main(int argc, char **argv)
{
    if (argc < 5 || argc > 6) {
        fprintf(stderr, "usage: audit_session DEVICES POLICY PIPELINE FRAMES [LAYER]\n");
        return 2;
    }
    const char *devices = strcmp(argv[1], "-") == 0 ? NULL : argv[1];
    bool fixed = strcmp(argv[2], "static") == 0;
    uint64_t frames = strtoull(argv[4], NULL, 10), made_early = 0;
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++)
        if (strcmp(argv[3], pipelines[i].name) == 0)
            pipeline = &pipelines[i];
    if (!pipeline || frames <= MARK) {
        fprintf(stderr, "no such pipeline, or not more than %d frames\n", MARK);
        return 2;
    }
    if (!audit_load(&audit, argc > 5 ? argv[5] : NULL))
        return 2;

    cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = devices,
                                                                              .reserve = COX_RESERVE_OFF,
                                                                              .log = log_line},
                                           &runtime);
    if (status)
        return failed("cox_runtime_create", status);
    fixed |= strcmp(argv[2], "chunks") == 0 && cox_runtime_device_count(runtime) == 1;
    if (audit.calls(NULL) == 0) {
        fprintf(stderr, "the layer is not in front of the drivers\n");
        return 2;
    }
    pitch_bytes = cox_runtime_pitch_bytes(runtime, COLUMNS * sizeof(uint32_t));
    pitch = pitch_bytes / sizeof(uint32_t);
    pitch_param = (int)pitch;
    struct cox__session_spec params = {.rows = ROWS,
                                       .params_bytes = sizeof(int),
                                       .policy = argv[2],
                                       .in_flight = IN_FLIGHT,
                                       .device_timeout_ns = 60000000000 /* for busy machines */};
    status = pipeline->create(&params);
    if (status)
        return failed("cox_session_create", status);
    status = make_buffers();
    if (status)
        return failed("cox_buffer_create", status);

    audit.phase(AUDIT_PHASE_ADAPTING);
    status = run_frames(0, fixed ? ADAPTING : MARK);
    if (!status && fixed)
        audit.phase(AUDIT_PHASE_STEADY);
    made_early = objects_made();
    if (!status)
        status = run_frames(fixed ? ADAPTING : MARK, frames);
    audit.phase(AUDIT_PHASE_TEARDOWN);
    if (status)
        return failed("cox_session_submit", status);

    printf("%-14s %-10s %-9s ", argv[1], argv[2], pipeline->name);
    show_modes();
    cox_session_destroy(&session);
    for (int set = 0; set < SETS; set++)
        for (uint32_t b = 0; b < pipeline->bindings; b++)
            cox_buffer_destroy(&buffers[set][b]);
    cox_runtime_destroy(&runtime);
    free(first_picture);
    audit.finish();

    printf(": %llu frames, %llu launches, %llu flushes, %llu status queries, %llu objects made after "
           "frame %d\n",
           (unsigned long long)frames_done, (unsigned long long)audit.calls("clEnqueueNDRangeKernel"),
           (unsigned long long)audit.calls("clFlush"), (unsigned long long)audit.calls("clGetEventInfo"),
           (unsigned long long)(objects_made() - made_early), fixed ? ADAPTING : MARK);
    uint64_t violations = 0;
    for (int rule = 0; rule < AUDIT_RULES; rule++)
        if (audit.violations(rule)) {
            violations += audit.violations(rule);
            printf("  %s: %llu (%s)\n", audit_rule_words[rule], (unsigned long long)audit.violations(rule),
                   audit_rule_texts[rule]);
        }
    if (frames_wrong || frames_failed || frames_done != frames)
        printf("  %llu frames with a wrong result, %llu failed, %llu never done\n", (unsigned long long)frames_wrong,
               (unsigned long long)frames_failed, (unsigned long long)(frames - frames_done));
    fflush(stdout);
    if (violations)
        audit.write("-");
    return violations || frames_wrong || frames_failed || frames_done != frames ? 1 : 0;
}
