/* SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "fake_shapes.h"
#include "engine/binding.h"
#include "host/leak.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 256, REACH = 3, UNWRITTEN = 0xee, TRIES_MAX = 2000 };

const char *shape_name(enum shape shape)
{
    static const char *const names[SHAPES] = {"map",   "halo",    "table",       "count",   "chroma",
                                              "two",   "inplace", "exchange",    "overlap", "flip",
                                              "curve", "all",     "then-inplace"};
    return names[shape];
}

/* ---- bindings ---- */

/* INTO: read and written. HALF: one row for two rows of the frame. */
enum part { NONE, IN, AROUND, INTO, OUT, HALF_IN, HALF_OUT, SCRATCH, TABLE, SUMS, SCRATCH_SUMS };

static const enum part parts_of[SHAPES][SHAPE_BINDINGS_MAX] = {
    [SHAPE_MAP] = {IN, OUT},
    [SHAPE_HALO] = {AROUND, OUT},
    [SHAPE_TABLE] = {IN, OUT, TABLE},
    [SHAPE_COUNT] = {IN, SUMS},
    [SHAPE_CHROMA] = {IN, HALF_IN, OUT, HALF_OUT},
    [SHAPE_TWO] = {IN, OUT, OUT},
    [SHAPE_INPLACE] = {INTO},
    [SHAPE_EXCHANGE] = {IN, SCRATCH, OUT},
    [SHAPE_OVERLAP] = {IN, SCRATCH, OUT},
    [SHAPE_FLIP] = {IN, SCRATCH, OUT},
    [SHAPE_CURVE] = {IN, SCRATCH_SUMS, OUT},
    [SHAPE_ALL] = {IN, SCRATCH_SUMS, SCRATCH, SCRATCH, OUT},
    [SHAPE_THEN_INPLACE] = {IN, OUT},
};

static struct cox__binding binding_of(enum part part, uint32_t pitch)
{
    struct cox__binding binding = {
        .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = pitch, .row_divisor = 1};
    if (part == TABLE)
        return (struct cox__binding){.row_access = COX__WHOLE, .access = COX__READ, .bytes = BINS};
    if (part == SUMS || part == SCRATCH_SUMS)
        return (struct cox__binding){.row_access = COX__REDUCE,
                                     .access = COX__WRITE,
                                     .bytes = BINS * sizeof(uint32_t),
                                     .merge = rig_merge_sum,
                                     .scratch = part == SCRATCH_SUMS};
    if (part == AROUND) {
        binding.row_access = COX__HALO;
        binding.halo_rows = REACH;
    }
    if (part == INTO)
        binding.access = COX__READ_WRITE;
    if (part == OUT || part == HALF_OUT)
        binding.access = COX__WRITE;
    if (part == HALF_IN || part == HALF_OUT)
        binding.row_divisor = 2;
    binding.scratch = part == SCRATCH;
    return binding;
}

static void describe(struct shape_frames *frames)
{
    const enum part *parts = parts_of[frames->shape];
    uint32_t i = 0;
    for (; i < SHAPE_BINDINGS_MAX && parts[i]; i++)
        frames->bindings[i] = binding_of(parts[i], frames->pitch);
    frames->binding_count = i;
}

static uint32_t columns_of(const struct shape_frames *frames, uint32_t binding)
{
    const bool half = frames->bindings[binding].row_divisor == 2;
    return half ? (frames->columns + 1) / 2 : frames->columns;
}

static void cover(enum shape_rest rest, bool scratch, enum cox__access access, enum cox__coverage *coverage)
{
    if (rest == REST_PARTIAL && access == COX__WRITE && !scratch)
        *coverage = COX__COVERS_SOME;
}

void shape_set_rest(struct shape_frames *frames, enum shape_rest rest)
{
    frames->rest = rest;
    for (uint32_t i = 0; i < frames->binding_count; i++) {
        struct cox__binding *binding = &frames->bindings[i];
        if (!cox__by_rows(binding))
            continue;
        if (rest == REST_GAPS && !binding->scratch)
            binding->row_bytes = columns_of(frames, i);
        cover(rest, binding->scratch, binding->access, &binding->coverage);
    }
}

/* ---- passes ---- */

static const struct cox__stage near_there[] = {RIG_STAGE("rig_near", 0, 1)}, near_on[] = {RIG_STAGE("rig_near", 1, 2)},
                               near_both[] = {RIG_STAGE("rig_near", 0, 1), RIG_STAGE("rig_near", 1, 2)},
                               near_later[] = {RIG_STAGE("rig_near", 0, 2), RIG_STAGE("rig_near", 2, 3)},
                               map_there[] = {RIG_STAGE("rig_map", 0, 1)}, map_last[] = {RIG_STAGE("rig_map", 0, 2)},
                               flip_on[] = {RIG_STAGE("rig_flip", 1, 2)}, flip_last[] = {RIG_STAGE("rig_flip", 3, 4)},
                               count_there[] = {RIG_STAGE("rig_count", 0, 1)},
                               inplace[] = {RIG_STAGE("rig_inplace", 1, 1)};

#define NEAR(its_binding) .binding = (its_binding), .row_access = COX__HALO, .halo_rows = 1
static const struct cox__pass_binding
    uses_near_there[] = {{NEAR(0)}, {.binding = 1, .access = COX__WRITE}},
    uses_near_on[] = {{NEAR(1)}, {.binding = 2, .access = COX__WRITE}},
    uses_near_both[] = {{NEAR(0)}, {NEAR(1), .access = COX__READ_WRITE}, {.binding = 2, .access = COX__WRITE}},
    uses_near_later[] = {{NEAR(0)}, {NEAR(2), .access = COX__READ_WRITE}, {.binding = 3, .access = COX__WRITE}},
    uses_map_there[] = {{.binding = 0}, {.binding = 1, .access = COX__WRITE}},
    uses_map_last[] = {{.binding = 0}, {.binding = 2, .access = COX__WRITE}},
    uses_flip_on[] = {{.binding = 1, .row_access = COX__WHOLE}, {.binding = 2, .access = COX__WRITE}},
    uses_flip_last[] = {{.binding = 3, .row_access = COX__WHOLE}, {.binding = 4, .access = COX__WRITE}},
    uses_count[] = {{.binding = 0}, {.binding = 1, .row_access = COX__REDUCE, .access = COX__WRITE}},
    uses_inplace[] = {{.binding = 1, .access = COX__READ_WRITE}};

/* The new value depends on the old one, so that a parameter computed twice is detected. */
static uint32_t curve_add(uint32_t add, const uint32_t *bins)
{
    return 3 * add + bins[17] + 2 * bins[200] + 1;
}

static void make_curve(void *user, void *const *buffers, void *constants)
{
    struct rig_params *params = constants;
    (void)user;
    params->add = curve_add(params->add, buffers[1]);
}

static const struct cox__pass_spec count_pass = RIG_PASS(uses_count, count_there, .done = make_curve);
static const struct cox__pass_spec near_there_pass = RIG_PASS(uses_near_there, near_there);
static const struct cox__pass_spec near_on_pass = RIG_PASS(uses_near_on, near_on);
static const struct cox__pass_spec near_both_pass = RIG_PASS(uses_near_both, near_both);
static const struct cox__pass_spec near_later_pass = RIG_PASS(uses_near_later, near_later);
static const struct cox__pass_spec map_there_pass = RIG_PASS(uses_map_there, map_there);
static const struct cox__pass_spec map_last_pass = RIG_PASS(uses_map_last, map_last);
static const struct cox__pass_spec flip_on_pass = RIG_PASS(uses_flip_on, flip_on);
static const struct cox__pass_spec flip_last_pass = RIG_PASS(uses_flip_last, flip_last);
static const struct cox__pass_spec inplace_pass = RIG_PASS(uses_inplace, inplace);

static const struct cox__pass_spec *const passes_of[SHAPES][SHAPE_PASSES_MAX] = {
    [SHAPE_EXCHANGE] = {&near_there_pass, &near_on_pass},
    [SHAPE_OVERLAP] = {&near_both_pass},
    [SHAPE_FLIP] = {&map_there_pass, &flip_on_pass},
    [SHAPE_CURVE] = {&count_pass, &map_last_pass},
    [SHAPE_ALL] = {&count_pass, &near_later_pass, &flip_last_pass},
    [SHAPE_THEN_INPLACE] = {&near_there_pass, &inplace_pass},
};

static const uint32_t pass_counts[SHAPES] = {[SHAPE_EXCHANGE] = 2, [SHAPE_OVERLAP] = 1, [SHAPE_FLIP] = 2,
                                             [SHAPE_CURVE] = 2,    [SHAPE_ALL] = 3,     [SHAPE_THEN_INPLACE] = 2};

/* ---- buffers ---- */

static size_t bytes_of(const struct shape_frames *frames, uint32_t binding)
{
    const struct cox__binding *shape = &frames->bindings[binding];
    if (shape->row_access == COX__WHOLE || shape->row_access == COX__REDUCE)
        return shape->bytes;
    return (size_t)((frames->rows + shape->row_divisor - 1) / shape->row_divisor) * shape->pitch_bytes;
}

static unsigned char *data_of(const struct shape_frames *frames, uint32_t index, uint32_t binding)
{
    return cox_buffer_data(frames->buffers[index % frames->count][binding]);
}

static void refill(struct shape_frames *frames, uint32_t f, uint64_t seed, bool outputs)
{
    for (uint32_t i = 0; i < frames->binding_count; i++) {
        if (frames->bindings[i].scratch || (!outputs && frames->bindings[i].access != COX__READ))
            continue;
        unsigned char *data = data_of(frames, f, i);
        const size_t bytes = bytes_of(frames, i);
        uint64_t random = 0;
        for (size_t b = 0; b < bytes; b++, random >>= 8) {
            random = b % 8 ? random : rig_random(&seed);
            data[b] = (unsigned char)random;
        }
    }
    memcpy(frames->before[f], data_of(frames, f, 0), bytes_of(frames, 0));
}

void shape_refill(struct shape_frames *frames, uint32_t index, uint64_t seed)
{
    refill(frames, index % frames->count, seed, true);
}

void shape_refill_inputs(struct shape_frames *frames, uint32_t index, uint64_t seed)
{
    refill(frames, index % frames->count, seed, false);
}

void shape_drop(struct shape_frames *frames, uint32_t index)
{
    for (uint32_t i = 0; i < frames->binding_count; i++)
        cox_buffer_destroy(&frames->buffers[index % frames->count][i]);
}

static uint32_t lent;

uint32_t shape_lent(void)
{
    return lent;
}

static void give_back(void *data)
{
    lent--;
    free(data);
}

static bool make_buffer(const struct shape_frames *frames, size_t bytes, cox_buffer **out)
{
    if (!frames->wrapped)
        return cox_buffer_create(rig_runtime(frames->rig), bytes, out) == COX_OK;
    void *data = must(aligned_alloc(64, (bytes + 63) / 64 * 64));
    cox__leak(data); /* never released if a device hangs for good */
    lent++;
    if (cox_buffer_wrap(rig_runtime(frames->rig), data, bytes, give_back, data, out) == COX_OK)
        return true;
    give_back(data);
    return false;
}

bool shape_make(struct shape_frames *frames, uint32_t index, uint64_t seed)
{
    bool made = true;
    for (uint32_t i = 0; made && i < frames->binding_count; i++)
        made = frames->bindings[i].scratch ||
               make_buffer(frames, bytes_of(frames, i), &frames->buffers[index % frames->count][i]);
    if (made)
        shape_refill(frames, index, seed);
    else
        shape_drop(frames, index);
    return made;
}

struct shape_frames *shape_frames_padded(struct rig *rig, enum shape shape, uint32_t rows, uint32_t columns,
                                         uint32_t pitch, uint32_t count)
{
    struct shape_frames *frames = must(calloc(1, sizeof *frames));
    uint64_t seed = rows * 131u + columns * 7u + (uint32_t)shape;
    if (shape >= SHAPES)
        abort();
    *frames = (struct shape_frames){
        .rig = rig, .shape = shape, .rows = rows, .columns = columns, .pitch = pitch, .count = count};
    describe(frames);
    frames->pass_count = pass_counts[shape];
    frames->buffers = must(calloc(count, sizeof *frames->buffers));
    frames->params = must(calloc(count, sizeof *frames->params));
    frames->before = must(calloc(count, sizeof *frames->before));
    for (uint32_t f = 0; f < count; f++) {
        frames->params[f] = (struct rig_params){.add = 11 * f, .columns = columns};
        frames->before[f] = must(malloc(bytes_of(frames, 0)));
        const uint64_t contents = rig_random(&seed);
        for (uint32_t tries = 0; !shape_make(frames, f, contents); tries++)
            if (tries == TRIES_MAX)
                abort();
    }
    return frames;
}

struct shape_frames *shape_frames_new(struct rig *rig, enum shape shape, uint32_t rows, uint32_t columns,
                                      uint32_t count)
{
    return shape_frames_padded(rig, shape, rows, columns, columns, count);
}

void shape_frames_free(struct shape_frames **frames)
{
    for (uint32_t f = 0; f < (*frames)->count; f++) {
        shape_drop(*frames, f);
        free((*frames)->before[f]);
    }
    free((*frames)->before);
    free((*frames)->buffers);
    free((*frames)->params);
    free(*frames);
    *frames = NULL;
}

cox_status shape_session(struct shape_frames *frames, const struct cox__session_spec *extra, cox_session **out)
{
    static const struct cox__stage *const single[SHAPES] = {
        [SHAPE_MAP] = &rig_stage_map,     [SHAPE_HALO] = &rig_stage_halo,     [SHAPE_TABLE] = &rig_stage_table,
        [SHAPE_COUNT] = &rig_stage_count, [SHAPE_CHROMA] = &rig_stage_chroma, [SHAPE_INPLACE] = &rig_stage_inplace,
    };
    struct cox__session_spec params = *extra;
    struct cox__pass_spec passes[SHAPE_PASSES_MAX];
    struct cox__pass_binding uses[SHAPE_PASSES_MAX][SHAPE_BINDINGS_MAX];
    uint32_t devices[SHAPE_PASSES_MAX];
    for (uint32_t p = 0; p < frames->pass_count; p++) {
        passes[p] = *passes_of[frames->shape][p];
        memcpy(uses[p], passes[p].uses, passes[p].use_count * sizeof *passes[p].uses);
        for (uint32_t u = 0; u < passes[p].use_count; u++)
            if (uses[p][u].row_access == COX__ROWS)
                cover(frames->rest, frames->bindings[uses[p][u].binding].scratch, uses[p][u].access,
                      &uses[p][u].coverage);
        passes[p].uses = uses[p];
        devices[p] = frames->pass_device_plus_1[p] - 1;
        passes[p].device_count = frames->pass_device_plus_1[p] > 0;
        passes[p].devices = &devices[p];
        if (p + 1 == frames->pass_count)
            passes[p].policy = frames->pass_policy;
    }
    params.pass_count = frames->pass_count;
    params.passes = passes;
    params.rows = frames->rows;
    params.binding_count = frames->binding_count;
    params.bindings = frames->bindings;
    params.stage_count = frames->pass_count ? 0 : frames->shape == SHAPE_TWO ? 2 : 1;
    params.stages = frames->shape == SHAPE_TWO ? rig_stages_two : single[frames->shape];
    params.params_bytes = sizeof(struct rig_params);
    params.allow_in_place = frames->shape == SHAPE_INPLACE || frames->shape == SHAPE_THEN_INPLACE;
    return cox__session_create(rig_runtime(frames->rig), &params, out);
}

void shape_prepare(struct shape_frames *frames, uint32_t index)
{
    const uint32_t f = index % frames->count;
    for (uint32_t i = 0; i < frames->binding_count; i++)
        if (frames->bindings[i].access == COX__WRITE && !frames->bindings[i].scratch)
            memset(data_of(frames, f, i), UNWRITTEN, bytes_of(frames, i));
    memcpy(data_of(frames, f, 0), frames->before[f], bytes_of(frames, 0));
}

struct cox__frame_spec shape_frame(const struct shape_frames *frames, uint32_t index)
{
    return (struct cox__frame_spec){.buffers = frames->buffers[index % frames->count],
                                    .buffer_count = frames->binding_count,
                                    .params = &frames->params[index % frames->count]};
}

/* ---- expected results ---- */

static unsigned char sum_around(const struct shape_frames *frames, const unsigned char *in, uint32_t row,
                                uint32_t column)
{
    uint32_t sum = row;
    for (uint32_t r = row > REACH ? row - REACH : 0; r <= row + REACH && r < frames->rows; r++)
        sum += in[(size_t)r * frames->pitch + column];
    return (unsigned char)sum;
}

/* Whether a kernel writes the byte `at` of a written binding. */
static bool is_written(const struct shape_frames *frames, uint32_t binding, size_t at)
{
    return at % frames->pitch < columns_of(frames, binding);
}

/* The expected value of that byte. */
static unsigned char wanted(const struct shape_frames *frames, uint32_t index, uint32_t binding, size_t at)
{
    const uint32_t row = (uint32_t)(at / frames->pitch), column = (uint32_t)(at % frames->pitch);
    const unsigned char *in = frames->before[index % frames->count];
    switch (frames->shape) {
    case SHAPE_MAP:
        return (unsigned char)(in[at] * 3u + row * 7u + frames->params[index % frames->count].add);
    case SHAPE_HALO:
        return sum_around(frames, in, row, column);
    case SHAPE_TABLE:
        return data_of(frames, index, 2)[in[at]];
    case SHAPE_CHROMA: {
        const unsigned char *chroma = data_of(frames, index, 1);
        if (binding == 2)
            return (unsigned char)(in[at] + chroma[(size_t)(row / 2) * frames->pitch + column / 2]);
        return (unsigned char)(chroma[at] * 5u + row);
    }
    case SHAPE_TWO:
        return binding == 1 ? (unsigned char)(in[at] + 5u) : (unsigned char)((in[at] + 5u) ^ row);
    case SHAPE_INPLACE:
        return (unsigned char)(in[at] * 3u + 1);
    case SHAPE_COUNT:
    default:
        break;
    }
    return 0;
}

/* ---- expected results of several passes ---- */

static void near_rows(const struct shape_frames *frames, const unsigned char *in, unsigned char *out)
{
    rig_near_rows(in, out, frames->rows, frames->columns, frames->pitch);
}

static void map_rows(const struct shape_frames *frames, const unsigned char *in, uint32_t add, unsigned char *out)
{
    for (uint32_t r = 0; r < frames->rows; r++)
        for (size_t c = (size_t)r * frames->pitch; c < (size_t)r * frames->pitch + frames->columns; c++)
            out[c] = (unsigned char)(in[c] * 3u + r * 7u + add);
}

static void flip_rows(const struct shape_frames *frames, const unsigned char *in, uint32_t add, unsigned char *out)
{
    for (uint32_t r = 0; r < frames->rows; r++)
        for (uint32_t c = 0; c < frames->columns; c++)
            out[(size_t)r * frames->pitch + c] =
                (unsigned char)(in[(size_t)(frames->rows - 1 - r) * frames->pitch + c] + add);
}

static void count_rows(const struct shape_frames *frames, const unsigned char *in, uint32_t *bins)
{
    for (uint32_t r = 0; r < frames->rows; r++)
        for (uint32_t c = 0; c < frames->columns; c++)
            bins[in[(size_t)r * frames->pitch + c]]++;
}

/* The expected output of the last pass. The caller frees it. */
static unsigned char *wanted_of_passes(const struct shape_frames *frames, uint32_t index)
{
    const unsigned char *in = frames->before[index % frames->count];
    const size_t bytes = (size_t)frames->rows * frames->pitch;
    unsigned char *one = must(calloc(1, bytes)), *two = must(calloc(1, bytes));
    uint32_t bins[BINS] = {0}, add = frames->params[index % frames->count].add;
    count_rows(frames, in, bins);
    switch (frames->shape) {
    case SHAPE_FLIP:
        map_rows(frames, in, add, one);
        flip_rows(frames, one, add, two);
        break;
    case SHAPE_CURVE:
        map_rows(frames, in, curve_add(add, bins), two);
        break;
    case SHAPE_THEN_INPLACE:
        near_rows(frames, in, two);
        for (size_t b = 0; b < bytes; b++)
            two[b] = (unsigned char)(two[b] * 3u + 1);
        break;
    case SHAPE_ALL:
        near_rows(frames, in, two);
        near_rows(frames, two, one);
        flip_rows(frames, one, curve_add(add, bins), two);
        break;
    default:
        near_rows(frames, in, one);
        near_rows(frames, one, two);
        break;
    }
    free(one);
    return two;
}

static const char *check_count(const struct shape_frames *frames, uint32_t index)
{
    static _Thread_local char wrong[160];
    uint32_t want[BINS] = {0};
    const unsigned char *in = frames->before[index % frames->count];
    const uint32_t *bins = (const uint32_t *)(const void *)data_of(frames, index, 1);
    count_rows(frames, in, want);
    for (uint32_t b = 0; b < BINS; b++)
        if (bins[b] != want[b]) {
            snprintf(wrong, sizeof wrong, "frame %u: %u instead of %u in bin %u", index, bins[b], want[b], b);
            return wrong;
        }
    return "";
}

static const char *check_binding(const struct shape_frames *frames, uint32_t index, uint32_t binding,
                                 const unsigned char *of_passes, bool padding)
{
    static _Thread_local char wrong[160];
    const unsigned char *data = data_of(frames, index, binding);
    const size_t bytes = bytes_of(frames, binding);
    for (size_t b = 0; b < bytes; b++) {
        if (is_written(frames, binding, b) == padding)
            continue;
        const unsigned char want = padding ? frames->shape == SHAPE_INPLACE ? frames->before[index % frames->count][b]
                                                                            : UNWRITTEN
                                   : of_passes ? of_passes[b]
                                               : wanted(frames, index, binding, b);
        const bool may_be_zero = padding && frames->rest == REST_UNDEFINED && frames->shape != SHAPE_INPLACE;
        if (data[b] != want && !(may_be_zero && data[b] == 0)) {
            snprintf(wrong, sizeof wrong, "%s, frame %u, binding %u, byte %zu%s: %u instead of %u",
                     shape_name(frames->shape), index, binding, b, padding ? ", which no kernel writes" : "", data[b],
                     want);
            return wrong;
        }
    }
    return "";
}

static const char *check(const struct shape_frames *frames, uint32_t index, bool padding)
{
    unsigned char *of_passes = frames->pass_count && !padding ? wanted_of_passes(frames, index) : NULL;
    const char *wrong = "";
    for (uint32_t i = 0; !*wrong && i < frames->binding_count; i++) {
        const struct cox__binding *binding = &frames->bindings[i];
        if (binding->access != COX__READ && binding->row_access == COX__ROWS && !binding->scratch)
            wrong = check_binding(frames, index, i, of_passes, padding);
    }
    free(of_passes);
    return wrong;
}

const char *shape_check(const struct shape_frames *frames, uint32_t index)
{
    return frames->shape == SHAPE_COUNT ? check_count(frames, index) : check(frames, index, false);
}

const char *shape_check_padding(const struct shape_frames *frames, uint32_t index)
{
    return check(frames, index, true);
}

const char *shape_check_map(const struct shape_frames *frames, cox_buffer *in, uint32_t index)
{
    static _Thread_local char wrong[160];
    const unsigned char *out = data_of(frames, index, 0);
    const size_t bytes = bytes_of(frames, 0);
    unsigned char *want = must(malloc(bytes));
    map_rows(frames, cox_buffer_data(in), frames->params[index % frames->count].add, want);
    *wrong = 0;
    for (size_t b = 0; b < bytes && !*wrong; b++)
        if (is_written(frames, 1, b) && out[b] != want[b])
            snprintf(wrong, sizeof wrong, "frame %u, byte %zu: %u instead of %u", index, b, out[b], want[b]);
    free(want);
    return wrong;
}
