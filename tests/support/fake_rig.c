/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "specs.h"
#include "fake_rig.h"
#include "host/leak.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rig {
    struct fake *fake;
    cox_runtime *runtime;
    pthread_mutex_t lock;
    char *log;
    size_t log_bytes, log_room;
    uint32_t done_count;
    uint64_t done_frames[RIG_DONE_MAX];
    cox_status done_status[RIG_DONE_MAX];
    uint32_t report_count;
    struct rig_report reports[RIG_REPORTS_MAX];
};

uint64_t rig_random(uint64_t *seed)
{
    uint64_t x = (*seed += 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void rig_fill(void *memory, size_t bytes, uint64_t *seed)
{
    for (size_t b = 0; b < bytes; b++)
        ((unsigned char *)memory)[b] = (unsigned char)rig_random(seed);
}

/* ---- kernels ---- */

void (*rig_spy)(const struct fake_args *args, uint32_t out);
void (*rig_spy_first)(const struct fake_args *args, uint32_t out);

static void show(const struct fake_args *args, uint32_t out)
{
    if (rig_spy)
        rig_spy(args, out);
}

static uint32_t columns_of(const struct fake_args *args)
{
    return ((const struct rig_params *)args->params)->columns;
}

/* The n-th binding of a stage: the n-th buffer argument's, or binding n if the stage has no such argument. */
static uint32_t binding_of(const struct fake_args *args, uint32_t n)
{
    uint32_t buffers = 0;
    for (uint32_t a = 0; a < args->stage->arg_count; a++)
        if (args->stage->args[a].kind == COX__ARG_KIND_BUFFER && buffers++ == n)
            return args->stage->args[a].index;
    return n;
}

static unsigned char *row_of(const struct fake_args *args, uint32_t n, uint32_t frame_row)
{
    const uint32_t binding = binding_of(args, n);
    const struct cox__binding *shape = &args->pass->bindings[binding];
    return args->data[binding] + (size_t)(frame_row / shape->row_divisor - args->origin[binding]) * shape->pitch_bytes;
}

static void map(const struct fake_args *args)
{
    const struct rig_params *params = args->params;
    if (rig_spy_first)
        rig_spy_first(args, 1);
    for (uint32_t r = args->first_row; r < args->first_row + args->rows; r++) {
        const unsigned char *in = row_of(args, 0, r);
        unsigned char *out = row_of(args, 1, r);
        for (uint32_t c = 0; c < params->columns; c++)
            out[c] = (unsigned char)(in[c] * 3u + r * 7u + params->add);
    }
    show(args, 1);
}

static void halo(const struct fake_args *args)
{
    const uint32_t reach = args->pass->bindings[0].halo_rows;
    for (uint32_t r = args->first_row; r < args->first_row + args->rows; r++) {
        unsigned char *out = row_of(args, 1, r);
        const uint32_t from = r > reach ? r - reach : 0;
        const uint32_t to = r + reach < args->frame_rows ? r + reach : args->frame_rows - 1;
        for (uint32_t c = 0; c < columns_of(args); c++) {
            uint32_t sum = r;
            for (uint32_t s = from; s <= to; s++)
                sum += row_of(args, 0, s)[c];
            out[c] = (unsigned char)sum;
        }
    }
    show(args, 1);
}

static void table(const struct fake_args *args)
{
    for (uint32_t r = args->first_row; r < args->first_row + args->rows; r++)
        for (uint32_t c = 0; c < columns_of(args); c++)
            row_of(args, 1, r)[c] = args->data[2][row_of(args, 0, r)[c]];
    show(args, 1);
}

static void count(const struct fake_args *args)
{
    uint32_t *bins = (uint32_t *)args->data[binding_of(args, 1)];
    for (uint32_t r = args->first_row; r < args->first_row + args->rows; r++)
        for (uint32_t c = 0; c < columns_of(args); c++)
            bins[row_of(args, 0, r)[c]]++;
}

static void chroma(const struct fake_args *args)
{
    for (uint32_t r = args->first_row; r < args->first_row + args->rows; r++)
        for (uint32_t c = 0; c < columns_of(args); c++) {
            row_of(args, 2, r)[c] = (unsigned char)(row_of(args, 0, r)[c] + row_of(args, 1, r)[c / 2]);
            if (r % 2 == 0 && c % 2 == 0)
                row_of(args, 3, r)[c / 2] = (unsigned char)(row_of(args, 1, r)[c / 2] * 5u + r / 2);
        }
}

static void first(const struct fake_args *args)
{
    for (uint32_t r = args->first_row; r < args->first_row + args->rows; r++)
        for (uint32_t c = 0; c < columns_of(args); c++)
            row_of(args, 1, r)[c] = (unsigned char)(row_of(args, 0, r)[c] + 5u);
}

static void second(const struct fake_args *args)
{
    for (uint32_t r = args->first_row; r < args->first_row + args->rows; r++)
        for (uint32_t c = 0; c < columns_of(args); c++)
            row_of(args, 2, r)[c] = (unsigned char)(row_of(args, 1, r)[c] ^ r);
}

static void near(const struct fake_args *args)
{
    for (uint32_t r = args->first_row; r < args->first_row + args->rows; r++)
        for (uint32_t c = 0; c < columns_of(args); c++) {
            const unsigned above = r > 0 ? row_of(args, 0, r - 1)[c] : 0;
            const unsigned below = r + 1 < args->frame_rows ? row_of(args, 0, r + 1)[c] : 0;
            row_of(args, 1, r)[c] = (unsigned char)(above * 3 + row_of(args, 0, r)[c] * 5u + below * 7 + r);
        }
    show(args, binding_of(args, 1));
}

/* What frame row r adds to row r / 2 of rig_pairs. */
static unsigned pair_of(const struct fake_args *args, uint32_t r, uint32_t c)
{
    return row_of(args, 0, r)[c] * 3u + (r + 1 < args->frame_rows ? row_of(args, 0, r + 1)[c] : 0u);
}

static void pairs(const struct fake_args *args)
{
    for (uint32_t r = args->first_row; r < args->first_row + args->rows; r += 2)
        for (uint32_t c = 0; c < columns_of(args); c++)
            row_of(args, 1, r)[c] = (unsigned char)pair_of(args, r, c);
}

static void unpair(const struct fake_args *args)
{
    for (uint32_t r = args->first_row; r < args->first_row + args->rows; r++)
        for (uint32_t c = 0; c < columns_of(args); c++) {
            const uint32_t even = r / 2 * 2;
            const unsigned above = even > 0 ? row_of(args, 0, even - 2)[c] : 0;
            const unsigned below = even + 2 < args->frame_rows ? row_of(args, 0, even + 2)[c] : 0;
            row_of(args, 1, r)[c] = (unsigned char)(above * 3 + row_of(args, 0, r)[c] * 5u + below * 7 + r);
        }
}

static void turn(const struct fake_args *args)
{
    for (uint32_t r = args->first_row; r < args->first_row + args->rows; r++)
        for (uint32_t c = 0; c < columns_of(args); c++)
            row_of(args, 1, r)[c] = (unsigned char)(row_of(args, 0, c)[r] + 1u);
}

static void flip(const struct fake_args *args)
{
    const struct rig_params *params = args->params;
    for (uint32_t r = args->first_row; r < args->first_row + args->rows; r++)
        for (uint32_t c = 0; c < params->columns; c++)
            row_of(args, 1, r)[c] = (unsigned char)(row_of(args, 0, args->frame_rows - 1 - r)[c] + params->add);
}

static void inplace(const struct fake_args *args)
{
    for (uint32_t r = args->first_row; r < args->first_row + args->rows; r++)
        for (uint32_t c = 0; c < columns_of(args); c++)
            row_of(args, 0, r)[c] = (unsigned char)(row_of(args, 0, r)[c] * 3u + 1);
}

void rig_near_rows(const unsigned char *in, unsigned char *out, uint32_t rows, uint32_t columns, size_t pitch)
{
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns; c++) {
            const unsigned above = r > 0 ? in[(r - 1) * pitch + c] : 0;
            const unsigned below = r + 1 < rows ? in[(r + 1) * pitch + c] : 0;
            out[r * pitch + c] = (unsigned char)(above * 3 + in[r * pitch + c] * 5u + below * 7 + r);
        }
}

void rig_turn_rows(const unsigned char *in, unsigned char *out, uint32_t rows, uint32_t columns, size_t pitch)
{
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns; c++)
            out[r * pitch + c] = (unsigned char)(in[c * pitch + r] + 1u);
}

static const struct fake_kernel kernels[] = {
    {"rig_map", map},       {"rig_halo", halo},   {"rig_table", table},   {"rig_count", count},
    {"rig_chroma", chroma}, {"rig_first", first}, {"rig_second", second}, {"rig_inplace", inplace},
    {"rig_near", near},     {"rig_pairs", pairs}, {"rig_unpair", unpair}, {"rig_turn", turn},
    {"rig_flip", flip},
};

void rig_merge_sum(void *into, const void *partial, size_t bytes, void *user)
{
    uint32_t *sums = into;
    const uint32_t *terms = partial;
    (void)user;
    for (size_t i = 0; i < bytes / sizeof *sums; i++)
        sums[i] += terms[i];
}

const struct cox__variant rig_any_device = {.source = "fake"};
#define STAGE(name)                                                                      \
    {                                                                                    \
        .kernel = (name), .columns = 64, .variant_count = 1, .variants = &rig_any_device \
    }
const struct cox__stage rig_stage_map = STAGE("rig_map");
const struct cox__stage rig_stage_halo = STAGE("rig_halo");
const struct cox__stage rig_stage_table = STAGE("rig_table");
const struct cox__stage rig_stage_count = STAGE("rig_count");
const struct cox__stage rig_stage_chroma = STAGE("rig_chroma");
const struct cox__stage rig_stages_two[2] = {STAGE("rig_first"), STAGE("rig_second")};
const struct cox__stage rig_stage_inplace = STAGE("rig_inplace");

/* ---- the rig ---- */

static void capture(void *user, enum cox_log_level level, const char *line)
{
    struct rig *rig = user;
    const size_t bytes = strlen(line);
    (void)level;
    pthread_mutex_lock(&rig->lock);
    if (rig->log_bytes + bytes + 2 > rig->log_room) {
        rig->log_room = 2 * (rig->log_bytes + bytes + 2);
        rig->log = must(realloc(rig->log, rig->log_room));
    }
    memcpy(rig->log + rig->log_bytes, line, bytes);
    rig->log_bytes += bytes;
    memcpy(rig->log + rig->log_bytes, "\n", 2);
    rig->log_bytes++;
    pthread_mutex_unlock(&rig->lock);
}

struct rig *rig_new(const struct fake_params *params)
{
    return rig_new_in(params, NULL);
}

struct rig *rig_new_in(const struct fake_params *params, const char *cache_dir)
{
    struct rig *rig = must(calloc(1, sizeof *rig));
    struct fake_params complete = *params;
    pthread_mutex_init(&rig->lock, NULL);
    rig->log = must(calloc(1, 1));
    rig->log_room = 1;
    complete.kernel_count = sizeof kernels / sizeof kernels[0];
    memcpy(complete.kernels, kernels, sizeof kernels);
    rig->fake = fake_new(&complete);
    const struct cox_runtime_params runtime_params = {
        .cache_dir = cache_dir, .log = capture, .log_user = rig, .log_level = COX_LOG_DEBUG};
    if (cox__runtime_create_with(&rig->runtime, &runtime_params, fake_make, rig->fake) != COX_OK)
        abort();
    return rig;
}

const char *rig_end(struct rig **rig)
{
    static char verdict[600];
    cox_runtime_destroy(&(*rig)->runtime);
    snprintf(verdict, sizeof verdict, "%s", fake_violation((*rig)->fake));
    if (!*verdict && !fake_destroyed((*rig)->fake) && fake_blocked((*rig)->fake) == 0)
        snprintf(verdict, sizeof verdict, "the backend was not destroyed");
    if (!fake_destroyed((*rig)->fake)) { /* a call that still blocks may use it later */
        cox__leak(*rig);
        fake_free(&(*rig)->fake);
        *rig = NULL;
        return verdict;
    }
    fake_free(&(*rig)->fake);
    for (uint32_t i = 0; i < (*rig)->report_count; i++) {
        free((*rig)->reports[i].bands);
    }
    pthread_mutex_destroy(&(*rig)->lock);
    free((*rig)->log);
    free(*rig);
    *rig = NULL;
    return verdict;
}

struct fake *rig_fake(struct rig *rig)
{
    return rig->fake;
}

cox_runtime *rig_runtime(struct rig *rig)
{
    return rig->runtime;
}

uint32_t rig_logged_times(struct rig *rig, const char *text)
{
    uint32_t times = 0;
    pthread_mutex_lock(&rig->lock);
    for (const char *at = rig->log; (at = strstr(at, text)); at++)
        times++;
    pthread_mutex_unlock(&rig->lock);
    return times;
}

bool rig_logged(struct rig *rig, const char *text)
{
    return rig_logged_times(rig, text) > 0;
}

const char *rig_log(struct rig *rig)
{
    return rig->log;
}

void rig_done(void *user, uint64_t frame, cox_status status)
{
    struct rig *rig = user;
    pthread_mutex_lock(&rig->lock);
    if (rig->done_count == RIG_DONE_MAX)
        abort();
    rig->done_frames[rig->done_count] = frame;
    rig->done_status[rig->done_count++] = status;
    pthread_mutex_unlock(&rig->lock);
}

uint32_t rig_done_count(struct rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    const uint32_t result = rig->done_count;
    pthread_mutex_unlock(&rig->lock);
    return result;
}

uint64_t rig_done_frame(struct rig *rig, uint32_t index)
{
    pthread_mutex_lock(&rig->lock);
    const uint64_t result = rig->done_frames[index];
    pthread_mutex_unlock(&rig->lock);
    return result;
}

cox_status rig_done_status(struct rig *rig, uint32_t index)
{
    pthread_mutex_lock(&rig->lock);
    const cox_status result = rig->done_status[index];
    pthread_mutex_unlock(&rig->lock);
    return result;
}

void rig_report(void *user, const struct cox_frame_report *report)
{
    struct rig *rig = user;
    pthread_mutex_lock(&rig->lock);
    if (rig->report_count == RIG_REPORTS_MAX)
        abort();
    struct rig_report *copy = &rig->reports[rig->report_count++];
    copy->frame = *report;
    copy->bands = must(calloc(report->band_count + 1, sizeof *copy->bands));
    memcpy(copy->bands, report->bands, report->band_count * sizeof *copy->bands);
    memcpy(copy->passes, report->passes, report->pass_count * sizeof *copy->passes);
    copy->frame.bands = copy->bands;
    copy->frame.passes = copy->passes;
    for (uint32_t b = 0; b < report->band_count; b++)
        if (report->bands[b].status == COX_OK && report->bands[b].noticed_ns < report->bands[b].end_ns)
            abort();
    pthread_mutex_unlock(&rig->lock);
}

uint32_t rig_report_count(struct rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    const uint32_t result = rig->report_count;
    pthread_mutex_unlock(&rig->lock);
    return result;
}

const struct rig_report *rig_report_at(struct rig *rig, uint32_t index)
{
    return &rig->reports[index];
}

const struct rig_report *rig_next_report(struct rig *rig, const struct rig_report *after)
{
    const struct rig_report *next = after ? after + 1 : rig->reports;
    while (next < rig->reports + rig_report_count(rig) && (next->frame.warmup || next->frame.shadow))
        next++;
    return next < rig->reports + rig_report_count(rig) ? next : NULL;
}

struct cox_session_info rig_info(cox_session *session)
{
    struct cox_session_info info;
    cox_session_info(session, &info);
    return info;
}

uint32_t rig_times_lost(cox_session *session)
{
    const struct cox_session_info info = rig_info(session);
    uint32_t lost = 0;
    for (uint32_t d = 0; d < info.device_count; d++)
        lost += info.devices[d].lost;
    return lost;
}

/* ---- frames ---- */

struct rig_frames *rig_frames_new(struct rig *rig, uint32_t rows, uint32_t columns, size_t pitch, uint32_t count)
{
    struct rig_frames *frames = must(calloc(1, sizeof *frames));
    uint64_t seed = rows * 31u + columns;
    *frames = (struct rig_frames){.rig = rig, .rows = rows, .columns = columns, .pitch = pitch, .count = count};
    frames->in = must(calloc(count, sizeof *frames->in));
    frames->out = must(calloc(count, sizeof *frames->out));
    frames->params = must(calloc(count, sizeof *frames->params));
    for (uint32_t i = 0; i < count; i++) {
        frames->params[i] = (struct rig_params){.add = 11 * i, .columns = columns};
        if (cox_buffer_create(rig->runtime, rows * pitch, &frames->in[i]) != COX_OK ||
            cox_buffer_create(rig->runtime, rows * pitch, &frames->out[i]) != COX_OK)
            abort();
        rig_fill(cox_buffer_data(frames->in[i]), rows * pitch, &seed);
    }
    return frames;
}

void rig_frames_free(struct rig_frames **frames)
{
    for (uint32_t i = 0; i < (*frames)->count; i++) {
        cox_buffer_destroy(&(*frames)->in[i]);
        cox_buffer_destroy(&(*frames)->out[i]);
    }
    free((*frames)->in);
    free((*frames)->out);
    free((*frames)->params);
    free(*frames);
    *frames = NULL;
}

cox_status rig_map_session(struct rig_frames *frames, const struct cox__session_spec *extra, cox_session **out)
{
    const struct cox__binding bindings[] = {
        {.name = "in", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = frames->pitch},
        {.name = "out", .row_access = COX__ROWS, .access = COX__WRITE, .pitch_bytes = frames->pitch},
    };
    struct cox__session_spec params = *extra;
    params.rows = frames->rows;
    params.binding_count = 2;
    params.bindings = bindings;
    params.stage_count = 1;
    params.stages = &rig_stage_map;
    params.params_bytes = sizeof(struct rig_params);
    return cox__session_create(frames->rig->runtime, &params, out);
}

cox_status rig_submit(struct rig_frames *frames, cox_session *session, uint32_t index, bool nowait)
{
    const uint32_t i = index % frames->count;
    struct cox__frame_spec frame = *RIG_FRAME(frames, i);
    frame.nowait = nowait;
    if (!nowait)
        memset(cox_buffer_data(frames->out[i]), 0xee, frames->rows * frames->pitch);
    return cox__session_submit(session, &frame, rig_done, frames->rig);
}

const char *rig_check(const struct rig_frames *frames, uint32_t index)
{
    static _Thread_local char wrong[160];
    const uint32_t i = index % frames->count;
    const unsigned char *in = cox_buffer_data(frames->in[i]);
    const unsigned char *out = cox_buffer_data(frames->out[i]);
    for (uint32_t r = 0; r < frames->rows; r++)
        for (uint32_t c = 0; c < frames->columns; c++) {
            const unsigned char want = (unsigned char)(in[r * frames->pitch + c] * 3u + r * 7u + frames->params[i].add);
            if (out[r * frames->pitch + c] != want) {
                snprintf(wrong, sizeof wrong, "frame %u, row %u, column %u: %u instead of %u", index, r, c,
                         out[r * frames->pitch + c], want);
                return wrong;
            }
        }
    return "";
}

/* ---- scripted splits ---- */

struct cox_split rig_splits[1024];
uint32_t rig_split_count;

uint64_t rig_policy_seed;

size_t rig_policy_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(uint64_t);
}

cox_status rig_policy_init(void *state, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    (void)options;
    *(uint64_t *)state = rig_policy_seed + view->rows;
    return COX_OK;
}

static cox_status play_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)state;
    *out = rig_splits[view->frame < rig_split_count ? view->frame : rig_split_count - 1];
    return COX_OK;
}

const struct cox_policy rig_policy = {
    .name = "playback", .state_bytes = rig_policy_bytes, .init = rig_policy_init, .split = play_split};

void rig_add_split(uint32_t bands, const uint32_t (*device_rows)[2])
{
    struct cox_split *split = &rig_splits[rig_split_count++];
    uint32_t first_row = 0;
    *split = (struct cox_split){.band_count = bands, .reason = COX_REASON_GIVEN};
    for (uint32_t i = 0; i < bands; i++) {
        split->bands[i] = (struct cox_band){device_rows[i][0], first_row, device_rows[i][1]};
        first_row += device_rows[i][1];
    }
}

void rig_set_split(uint32_t bands, const uint32_t (*device_rows)[2])
{
    rig_split_count = 0;
    rig_add_split(bands, device_rows);
}

void rig_add_random_split(uint64_t *seed, uint32_t rows, uint32_t row_alignment, uint32_t devices)
{
    struct cox_split *split = &rig_splits[rig_split_count++];
    *split = (struct cox_split){.reason = COX_REASON_GIVEN};
    const uint32_t row_units = (rows + row_alignment - 1) / row_alignment;
    const uint32_t wanted = 1 + (uint32_t)(rig_random(seed) % (2 * devices));
    uint32_t at = 0;
    while (at < row_units) {
        const uint32_t left = row_units - at;
        uint32_t take = 1 + (uint32_t)(rig_random(seed) % left);
        if (split->band_count + 1 == wanted)
            take = left;
        const uint32_t end = (at + take) * row_alignment < rows ? (at + take) * row_alignment : rows;
        split->bands[split->band_count++] = (struct cox_band){(uint32_t)(rig_random(seed) % devices),
                                                              at * row_alignment, end - at * row_alignment};
        at += take;
    }
}
