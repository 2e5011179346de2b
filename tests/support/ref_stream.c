/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "specs.h"
#include "ref_stream.h"
#include "fake_rig.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROWS = REF_STREAM_ROWS,
    COLUMNS = REF_STREAM_COLUMNS,
    REACH = 2,
    TABLE = 256,
    BINS = 16,
    SETS_MAX = COX_IN_FLIGHT_MAX + 2,
};
enum { IN = 0, NEAR, TABLE_AT, OUT, COUNTED, BINDINGS, MIDDLE = BINDINGS, BINDINGS_MAX };

struct params {
    uint32_t pitch; /* in elements */
    uint32_t add;
};

static const char source[] =
    "kernel void stream(global const uint *in, global const uint *near, global const uint *table, global uint *out,\n"
    "                   volatile global uint *bins, int columns, int first, int rows, int frame, int origin,\n"
    "                   uint pitch, uint add) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    int r = first + y;\n"
    "    uint sum = add + (uint)r * 2654435761u;\n"
    "    for (int s = max(r - 2, 0); s <= min(r + 2, frame - 1); s++)\n"
    "        sum = sum * 31u + near[(uint)(s - origin) * pitch + x];\n"
    "    sum += table[in[(uint)y * pitch + x] & 255u];\n"
    "    out[(uint)y * pitch + x] = sum;\n"
    "    atomic_inc(&bins[sum >> 28]);\n"
    "}\n"
    "kernel void stream_copy(global const uint *near, global uint *middle, int columns, int rows, uint pitch) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows) middle[(uint)y * pitch + x] = near[(uint)y * pitch + x];\n"
    "}\n";

struct set {
    struct ref_stream *stream;
    cox_buffer *buffers[BINDINGS_MAX]; /* NULL for the scratch between two passes */
    uint32_t *expected;                /* the rows of the output, then the bins */
    uint32_t add;
    uint64_t lost;   /* number of device losses when its buffers were created */
    bool used, good; /* `used`: a frame has used it; `good`: that frame ended with COX_OK and the right result */
    bool under_way;
};

struct ref_stream {
    cox_session *session;
    uint32_t pitch;
    uint32_t set_count;
    uint64_t attempts; /* frames prepared so far */
    bool keep_inputs, renew_buffers, passes;
    cox_runtime *runtime;
    size_t pitch_bytes;

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t free;
    uint64_t next; /* the frame whose callback is next */
    struct ref_stream_counts counts;
    struct set sets[SETS_MAX];
};

/* ---- the kernel as a C function ---- */

static uint32_t value_at(const uint32_t *in, const uint32_t *near, const uint32_t *table, uint32_t add, uint32_t row,
                         uint32_t pitch, uint32_t x, uint32_t in_origin, uint32_t near_origin)
{
    const uint32_t from = row > REACH ? row - REACH : 0, to = row + REACH < ROWS ? row + REACH : ROWS - 1;
    uint32_t sum = add + row * 2654435761u;
    for (uint32_t s = from; s <= to; s++)
        sum = sum * 31u + near[(size_t)(s - near_origin) * pitch + x];
    return sum + table[in[(size_t)(row - in_origin) * pitch + x] & 255u];
}

static void stream_kernel(const struct fake_args *args)
{
    const struct params *params = args->params;
    uint32_t *bins = (uint32_t *)(void *)args->data[COUNTED];
    const uint32_t near = args->stage->args[1].index;
    for (uint32_t row = args->first_row; row < args->first_row + args->rows; row++) {
        uint32_t *out = (uint32_t *)(void *)args->data[OUT] + (size_t)(row - args->origin[OUT]) * params->pitch;
        for (uint32_t x = 0; x < COLUMNS; x++) {
            out[x] = value_at((uint32_t *)(void *)args->data[IN], (uint32_t *)(void *)args->data[near],
                              (uint32_t *)(void *)args->data[TABLE_AT], params->add, row, params->pitch, x,
                              args->origin[IN], args->origin[near]);
            bins[out[x] >> 28]++;
        }
    }
}

static void copy_kernel(const struct fake_args *args)
{
    const size_t bytes = (size_t)args->rows * ((const struct params *)args->params)->pitch * sizeof(uint32_t);
    memcpy(args->data[MIDDLE], args->data[NEAR], bytes);
}

const struct fake_kernel ref_stream_copy_kernel = {"stream_copy", copy_kernel};
const struct fake_kernel ref_stream_kernel = {"stream", stream_kernel};

static void add_bins(void *into, const void *partial, size_t bytes, void *user)
{
    (void)user;
    for (size_t i = 0; i < bytes / sizeof(uint32_t); i++)
        ((uint32_t *)into)[i] += ((const uint32_t *)partial)[i];
}

/* ---- frames ---- */

/* Generates the frame's inputs and the expected outputs. */
static void make_up(struct ref_stream *stream, struct set *set, uint64_t number)
{
    set->add = (uint32_t)number;
    uint32_t *in = cox_buffer_data(set->buffers[IN]), *near = cox_buffer_data(set->buffers[NEAR]);
    uint32_t *table = cox_buffer_data(set->buffers[TABLE_AT]), *bins = set->expected + (size_t)ROWS * COLUMNS;
    uint32_t mix = (uint32_t)number * 747796405u + 1;
    for (uint32_t i = 0; i < TABLE; i++)
        table[i] = (mix = mix * 1664525u + 1013904223u);
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t x = 0; x < COLUMNS; x++) {
            mix = mix * 1664525u + 1013904223u;
            in[row * stream->pitch + x] = mix >> 7;
            near[row * stream->pitch + x] = mix ^ row;
        }
    memset(bins, 0, BINS * sizeof *bins);
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t x = 0; x < COLUMNS; x++) {
            const uint32_t value = value_at(in, near, table, set->add, row, stream->pitch, x, 0, 0);
            set->expected[row * COLUMNS + x] = value;
            bins[value >> 28]++;
        }
}

/* Overwrites the outputs, so that an earlier frame's result is not taken for this one's. */
static void spoil_outputs(const struct ref_stream *stream, struct set *set)
{
    memset(cox_buffer_data(set->buffers[OUT]), 0xee, (size_t)ROWS * stream->pitch * sizeof(uint32_t));
    memset(cox_buffer_data(set->buffers[COUNTED]), 0xee, BINS * sizeof(uint32_t));
}

static bool right(const struct ref_stream *stream, const struct set *set)
{
    const uint32_t *out = cox_buffer_data(set->buffers[OUT]);
    for (uint32_t row = 0; row < ROWS; row++)
        if (memcmp(out + (size_t)row * stream->pitch, set->expected + (size_t)row * COLUMNS, COLUMNS * sizeof *out) !=
            0)
            return false;
    return memcmp(cox_buffer_data(set->buffers[COUNTED]), set->expected + (size_t)ROWS * COLUMNS, BINS * sizeof *out) ==
           0;
}

/* A cox_done_fn. */
static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct set *set = user;
    struct ref_stream *stream = set->stream;
    const bool wrong = status == COX_OK && !right(stream, set);
    pthread_mutex_lock(&stream->lock);
    struct ref_stream_counts *counts = &stream->counts;
    counts->callbacks++;
    if (!set->under_way || frame < stream->next)
        counts->duplicated++;
    else if (frame > stream->next)
        counts->unordered++;
    if (frame >= stream->next)
        stream->next = frame + 1;
    counts->wrong += wrong;
    if (status != COX_OK) {
        counts->errors++;
        counts->errors_by[-status < REF_STREAM_STATUSES ? -status : 0]++;
    }
    set->good = status == COX_OK && !wrong;
    set->under_way = false;
    pthread_cond_signal(&stream->free);
    pthread_mutex_unlock(&stream->lock);
}

/* Checks again a result that was right in the callback. */
static void look_again(struct ref_stream *stream, struct set *set)
{
    if (!set->used || !set->good || right(stream, set))
        return;
    pthread_mutex_lock(&stream->lock);
    stream->counts.wrong++;
    pthread_mutex_unlock(&stream->lock);
}

static cox_status create_buffers(struct ref_stream *stream, struct set *set)
{
    const size_t plane_bytes = ROWS * stream->pitch_bytes;
    const size_t bytes[BINDINGS] = {plane_bytes, plane_bytes, TABLE * sizeof(uint32_t), plane_bytes,
                                    BINS * sizeof(uint32_t)};
    cox_status status = COX_OK;
    for (uint32_t b = 0; b < BINDINGS && status == COX_OK; b++)
        status = cox_buffer_create(stream->runtime, bytes[b], &set->buffers[b]);
    return status;
}

static cox_status renew(struct ref_stream *stream, struct set *set)
{
    const uint64_t lost = rig_times_lost(stream->session);
    if (lost == set->lost)
        return COX_OK;
    for (uint32_t b = 0; b < BINDINGS; b++)
        cox_buffer_destroy(&set->buffers[b]);
    set->lost = lost;
    set->used = false;
    return create_buffers(stream, set);
}

cox_status ref_stream_submit(struct ref_stream *stream, uint64_t timeout_ns)
{
    const uint64_t number = stream->attempts++;
    struct set *set = &stream->sets[number % stream->set_count];
    pthread_mutex_lock(&stream->lock);
    while (set->under_way)
        pthread_cond_wait(&stream->free, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
    look_again(stream, set);
    if (stream->renew_buffers) {
        const cox_status renewed = renew(stream, set);
        if (renewed != COX_OK)
            return renewed;
    }
    if (!stream->keep_inputs || !set->used)
        make_up(stream, set, number);
    spoil_outputs(stream, set);

    const struct params params = {stream->pitch, set->add};
    const struct cox__frame_spec frame = {
        .buffers = set->buffers, .buffer_count = BINDINGS + stream->passes, .params = &params};
    const uint64_t before_ns = cox__clock_ns();
    cox_status status;
    set->used = set->under_way = true; /* before submit, since the callback may run at once */
    set->good = false;
    while ((status = cox__session_submit(stream->session, &frame, on_done, set)) == COX_E_NO_DEVICE &&
           cox__clock_ns() - before_ns < timeout_ns)
        nanosleep(&(const struct timespec){.tv_nsec = 5000000}, NULL);
    pthread_mutex_lock(&stream->lock);
    if (status == COX_OK) {
        stream->counts.frames++;
    } else {
        set->under_way = false;
        stream->counts.refused++;
    }
    pthread_mutex_unlock(&stream->lock);
    return status;
}

/* ---- open and close ---- */

static cox_status create_session(struct ref_stream *stream, const struct cox__session_spec *extra)
{
    const size_t pitch_bytes = stream->pitch_bytes;
    const uint32_t near = stream->passes ? MIDDLE : NEAR;
    const struct cox__binding bindings[BINDINGS_MAX] = {
        [IN] = {.name = "in", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = pitch_bytes},
        [NEAR] = {.name = "near", .row_access = COX__HALO, .halo_rows = REACH, .pitch_bytes = pitch_bytes},
        [TABLE_AT] = {.name = "table", .row_access = COX__WHOLE, .bytes = TABLE * sizeof(uint32_t)},
        [OUT] = {.name = "out", .row_access = COX__ROWS, .access = COX__WRITE, .pitch_bytes = pitch_bytes},
        [COUNTED] = {.name = "bins",
                     .row_access = COX__REDUCE,
                     .access = COX__WRITE,
                     .bytes = BINS * sizeof(uint32_t),
                     .merge = add_bins},
        [MIDDLE] = {.name = "middle", .pitch_bytes = pitch_bytes, .scratch = true}};
    const struct cox__variant variant = {.source = source, .local_columns = 64, .any_local = true};
    const struct cox__arg args[] = {COX__ARG_BUFFER(IN),
                                    COX__ARG_BUFFER(near),
                                    COX__ARG_BUFFER(TABLE_AT),
                                    COX__ARG_BUFFER(OUT),
                                    COX__ARG_BUFFER(COUNTED),
                                    COX__ARG_COLUMNS,
                                    COX__ARG_FIRST_ROW,
                                    COX__ARG_ROWS,
                                    COX__ARG_FRAME_ROWS,
                                    COX__ARG_ORIGIN(near),
                                    COX__ARG_FIELD(struct params, pitch),
                                    COX__ARG_FIELD(struct params, add)};
    const struct cox__stage stage = RIG_STAGE_OF("stream", COLUMNS, &variant, args);
    const struct cox__arg copy_args[] = {COX__ARG_BUFFER(NEAR), COX__ARG_BUFFER(MIDDLE), COX__ARG_COLUMNS,
                                         COX__ARG_ROWS, COX__ARG_FIELD(struct params, pitch)};
    const struct cox__stage copy = RIG_STAGE_OF("stream_copy", COLUMNS, &variant, copy_args);
    const struct cox__pass_binding copy_uses[] = {{.binding = NEAR}, {.binding = MIDDLE, .access = COX__WRITE}};
    const struct cox__pass_binding uses[] = {{.binding = IN},
                                             {.binding = MIDDLE, .row_access = COX__HALO, .halo_rows = REACH},
                                             {.binding = TABLE_AT, .row_access = COX__WHOLE},
                                             {.binding = OUT, .access = COX__WRITE},
                                             {.binding = COUNTED, .row_access = COX__REDUCE, .access = COX__WRITE}};
    const struct cox__pass_spec passes[] = {
        {.use_count = 2, .uses = copy_uses, .stage_count = 1, .stages = &copy},
        {.use_count = sizeof uses / sizeof uses[0], .uses = uses, .stage_count = 1, .stages = &stage}};
    struct cox__session_spec params = *extra;
    params.rows = ROWS;
    params.binding_count = BINDINGS + stream->passes;
    params.bindings = bindings;
    params.stage_count = !stream->passes;
    params.stages = &stage;
    params.pass_count = stream->passes ? 2 : 0;
    params.passes = passes;
    params.params_bytes = sizeof(struct params);
    return cox__session_create(stream->runtime, &params, &stream->session);
}

static cox_status create_set(struct ref_stream *stream, struct set *set)
{
    set->stream = stream;
    set->expected = must(malloc(((size_t)ROWS * COLUMNS + BINS) * sizeof *set->expected));
    return create_buffers(stream, set);
}

static struct ref_stream *open_stream(cox_runtime *runtime, const struct cox__session_spec *extra, bool passes,
                                      cox_status *status)
{
    struct ref_stream *stream = must(calloc(1, sizeof *stream));
    const size_t pitch_bytes = cox_runtime_pitch_bytes(runtime, COLUMNS * sizeof(uint32_t));
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->free, NULL);
    stream->pitch = (uint32_t)(pitch_bytes / sizeof(uint32_t));
    stream->set_count = (extra->in_flight ? extra->in_flight : 2) + 2;
    stream->passes = passes;
    stream->runtime = runtime;
    stream->pitch_bytes = pitch_bytes;
    *status = create_session(stream, extra);
    for (uint32_t i = 0; i < stream->set_count && *status == COX_OK; i++)
        *status = create_set(stream, &stream->sets[i]);
    if (*status != COX_OK)
        ref_stream_close(&stream, NULL, NULL);
    return stream;
}

struct ref_stream *ref_stream_open(cox_runtime *runtime, const struct cox__session_spec *extra, cox_status *status)
{
    return open_stream(runtime, extra, false, status);
}

struct ref_stream *ref_stream_open_passes(cox_runtime *runtime, const struct cox__session_spec *extra,
                                          cox_status *status)
{
    return open_stream(runtime, extra, true, status);
}

void ref_stream_renew_buffers(struct ref_stream *stream)
{
    stream->renew_buffers = true;
}

void ref_stream_keep_inputs(struct ref_stream *stream)
{
    stream->keep_inputs = true;
}

void ref_stream_close(struct ref_stream **stream, struct ref_stream_counts *counts, struct cox_session_info *info)
{
    struct ref_stream *closing = *stream;
    if (closing->session)
        cox_session_wait(closing->session);
    if (closing->session && info)
        cox_session_info(closing->session, info);
    cox_session_destroy(&closing->session);
    for (uint32_t i = 0; i < closing->set_count; i++)
        if (!closing->sets[i].under_way)
            look_again(closing, &closing->sets[i]);
    closing->counts.lost = closing->counts.frames > closing->counts.callbacks - closing->counts.duplicated
                               ? closing->counts.frames - (closing->counts.callbacks - closing->counts.duplicated)
                               : 0;
    if (counts)
        *counts = closing->counts;
    for (uint32_t i = 0; i < SETS_MAX; i++) {
        for (uint32_t b = 0; b < BINDINGS; b++)
            cox_buffer_destroy(&closing->sets[i].buffers[b]);
        free(closing->sets[i].expected);
    }
    pthread_cond_destroy(&closing->free);
    pthread_mutex_destroy(&closing->lock);
    free(closing);
    *stream = NULL;
}
