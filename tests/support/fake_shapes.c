/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_shapes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 256, REACH = 3, UNWRITTEN = 0xee };

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

const char *shape_name(enum shape shape)
{
    static const char *const names[SHAPES] = {"map", "halo", "table", "count", "chroma", "two", "inplace"};
    return names[shape];
}

/* ---- bindings ---- */

static struct cox_binding by_rows(const struct shape_frames *frames, enum cox_access access, uint32_t divisor)
{
    return (struct cox_binding){
        .contract = COX_ROWS, .access = access, .pitch_bytes = frames->pitch, .row_divisor = divisor};
}

static void describe(struct shape_frames *frames)
{
    struct cox_binding *bindings = frames->bindings;
    bindings[0] = by_rows(frames, COX_READ, 1);
    bindings[1] = by_rows(frames, COX_WRITE, 1);
    frames->binding_count = 2;
    switch (frames->shape) {
    case SHAPE_HALO:
        bindings[0].contract = COX_HALO;
        bindings[0].halo_rows = REACH;
        break;
    case SHAPE_TABLE:
        bindings[2] = (struct cox_binding){.contract = COX_WHOLE, .access = COX_READ, .bytes = BINS};
        frames->binding_count = 3;
        break;
    case SHAPE_COUNT:
        bindings[1] = (struct cox_binding){
            .contract = COX_REDUCE, .access = COX_WRITE, .bytes = BINS * sizeof(uint32_t), .merge = rig_merge_sum};
        break;
    case SHAPE_CHROMA:
        bindings[1] = by_rows(frames, COX_READ, 2);
        bindings[2] = by_rows(frames, COX_WRITE, 1);
        bindings[3] = by_rows(frames, COX_WRITE, 2);
        frames->binding_count = 4;
        break;
    case SHAPE_TWO:
        bindings[2] = by_rows(frames, COX_WRITE, 1);
        frames->binding_count = 3;
        break;
    case SHAPE_INPLACE:
        bindings[0].access = COX_READ_WRITE;
        frames->binding_count = 1;
        break;
    case SHAPE_MAP:
    case SHAPES:
        break;
    }
}

static size_t bytes_of(const struct shape_frames *frames, uint32_t binding)
{
    const struct cox_binding *shape = &frames->bindings[binding];
    if (shape->contract == COX_WHOLE || shape->contract == COX_REDUCE)
        return shape->bytes;
    return (size_t)((frames->rows + shape->row_divisor - 1) / shape->row_divisor) * shape->pitch_bytes;
}

static unsigned char *data_of(const struct shape_frames *frames, uint32_t index, uint32_t binding)
{
    return cox_buffer_data(frames->buffers[index % frames->count][binding]);
}

void shape_refill(struct shape_frames *frames, uint32_t index, uint64_t seed)
{
    const uint32_t f = index % frames->count;
    for (uint32_t i = 0; i < frames->binding_count; i++) {
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

void shape_drop(struct shape_frames *frames, uint32_t index)
{
    for (uint32_t i = 0; i < frames->binding_count; i++)
        cox_buffer_destroy(&frames->buffers[index % frames->count][i]);
}

bool shape_make(struct shape_frames *frames, uint32_t index, uint64_t seed)
{
    bool made = true;
    for (uint32_t i = 0; made && i < frames->binding_count; i++)
        made = cox_buffer_create(rig_runtime(frames->rig), bytes_of(frames, i),
                                 &frames->buffers[index % frames->count][i]) == COX_OK;
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
    *frames = (struct shape_frames){
        .rig = rig, .shape = shape, .rows = rows, .columns = columns, .pitch = pitch, .count = count};
    describe(frames);
    frames->buffers = must(calloc(count, sizeof *frames->buffers));
    frames->params = must(calloc(count, sizeof *frames->params));
    frames->before = must(calloc(count, sizeof *frames->before));
    for (uint32_t f = 0; f < count; f++) {
        frames->params[f] = (struct rig_params){.add = 11 * f, .columns = columns};
        frames->before[f] = must(malloc(bytes_of(frames, 0)));
        if (!shape_make(frames, f, rig_random(&seed)))
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

cox_status shape_session(struct shape_frames *frames, const struct cox_session_params *extra, cox_session **out)
{
    static const struct cox_stage *const single[SHAPES] = {
        [SHAPE_MAP] = &rig_stage_map,     [SHAPE_HALO] = &rig_stage_halo,     [SHAPE_TABLE] = &rig_stage_table,
        [SHAPE_COUNT] = &rig_stage_count, [SHAPE_CHROMA] = &rig_stage_chroma, [SHAPE_INPLACE] = &rig_stage_inplace,
    };
    struct cox_session_params params = *extra;
    params.rows = frames->rows;
    params.binding_count = frames->binding_count;
    params.bindings = frames->bindings;
    params.stage_count = frames->shape == SHAPE_TWO ? 2 : 1;
    params.stages = frames->shape == SHAPE_TWO ? rig_stages_two : single[frames->shape];
    params.params_bytes = sizeof(struct rig_params);
    params.allow_in_place = frames->shape == SHAPE_INPLACE;
    return cox_session_create(rig_runtime(frames->rig), &params, out);
}

void shape_prepare(struct shape_frames *frames, uint32_t index)
{
    const uint32_t f = index % frames->count;
    for (uint32_t i = 0; i < frames->binding_count; i++)
        if (frames->bindings[i].access == COX_WRITE)
            memset(data_of(frames, f, i), UNWRITTEN, bytes_of(frames, i));
    memcpy(data_of(frames, f, 0), frames->before[f], bytes_of(frames, 0));
}

struct cox_frame shape_frame(const struct shape_frames *frames, uint32_t index)
{
    return (struct cox_frame){.buffers = frames->buffers[index % frames->count],
                              .buffer_count = frames->binding_count,
                              .params = &frames->params[index % frames->count]};
}

cox_status shape_submit(struct shape_frames *frames, cox_session *session, uint32_t index)
{
    const struct cox_frame frame = shape_frame(frames, index);
    shape_prepare(frames, index);
    return cox_session_submit(session, &frame, rig_done, frames->rig);
}

/* ---- what must come out ---- */

static unsigned char sum_around(const struct shape_frames *frames, const unsigned char *in, uint32_t row,
                                uint32_t column)
{
    uint32_t sum = row;
    for (uint32_t r = row > REACH ? row - REACH : 0; r <= row + REACH && r < frames->rows; r++)
        sum += in[(size_t)r * frames->pitch + column];
    return (unsigned char)sum;
}

/* Whether a kernel writes the byte `at` of a binding that is written. */
static bool is_written(const struct shape_frames *frames, uint32_t binding, size_t at)
{
    const bool half = frames->shape == SHAPE_CHROMA && binding == 3;
    return at % frames->pitch < (half ? (frames->columns + 1) / 2 : frames->columns);
}

/* What it writes there. */
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
    case SHAPES:
        break;
    }
    return 0;
}

static const char *check_count(const struct shape_frames *frames, uint32_t index)
{
    static _Thread_local char wrong[160];
    uint32_t want[BINS] = {0};
    const unsigned char *in = frames->before[index % frames->count];
    const uint32_t *bins = (const uint32_t *)(const void *)data_of(frames, index, 1);
    for (uint32_t r = 0; r < frames->rows; r++)
        for (uint32_t c = 0; c < frames->columns; c++)
            want[in[(size_t)r * frames->pitch + c]]++;
    for (uint32_t b = 0; b < BINS; b++)
        if (bins[b] != want[b]) {
            snprintf(wrong, sizeof wrong, "frame %u: %u instead of %u in bin %u", index, bins[b], want[b], b);
            return wrong;
        }
    return "";
}

static const char *check(const struct shape_frames *frames, uint32_t index, bool padding)
{
    static _Thread_local char wrong[160];
    for (uint32_t i = 0; i < frames->binding_count; i++) {
        if (frames->bindings[i].access == COX_READ || frames->bindings[i].contract != COX_ROWS)
            continue;
        const unsigned char *data = data_of(frames, index, i);
        const size_t bytes = bytes_of(frames, i);
        for (size_t b = 0; b < bytes; b++) {
            if (is_written(frames, i, b) == padding)
                continue;
            const unsigned char want = !padding                         ? wanted(frames, index, i, b)
                                       : frames->shape == SHAPE_INPLACE ? frames->before[index % frames->count][b]
                                                                        : UNWRITTEN;
            if (data[b] != want) {
                snprintf(wrong, sizeof wrong, "%s, frame %u, binding %u, byte %zu%s: %u instead of %u",
                         shape_name(frames->shape), index, i, b, padding ? ", which no kernel writes" : "", data[b],
                         want);
                return wrong;
            }
        }
    }
    return "";
}

const char *shape_check(const struct shape_frames *frames, uint32_t index)
{
    return frames->shape == SHAPE_COUNT ? check_count(frames, index) : check(frames, index, false);
}

const char *shape_check_padding(const struct shape_frames *frames, uint32_t index)
{
    return check(frames, index, true);
}
