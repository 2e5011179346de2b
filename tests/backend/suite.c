/* The backend's tests on real OpenCL devices. For each access contract it runs frames with:
 *   Odd sizes, and random splits, with pools and shadow runs.
 *   One to four frames in flight.
 *   Memory of the runtime and of the application.
 *
 * Results are compared with a plain loop on the host.
 *
 *   backend_suite [OPTION of bits_suite.h]... [--mode shared|mapped|staged] [--only CONTRACT]
 *
 * With --expect or --mode, the run fails if other devices take part. It prints one hash over all outputs, which is
 * the same for all devices, and "N passed, N failed". The exit status is 0 if nothing failed, and 77 without OpenCL
 * devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "support/bits_suite.h"
#include "support/crash.h"
#include "support/fake_rig.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLANES_MAX = 4, POOL_MAX = 5, CANARY = 64, CANARY_BYTE = 0x5c, HALO_ROWS = 3, BINS = 64, TABLE = 256 };

/* ---- the kernels ---- */

#define GUARD                                               \
    "    int x = get_global_id(0), y = get_global_id(1);\n" \
    "    if (x >= columns || y >= rows) return;\n"

#define ROWS_KERNEL                                                                                        \
    "#pragma OPENCL FP_CONTRACT OFF\n"                                                                     \
    "kernel void rows_kernel(global const uint *in, global uint *out, int columns, int first, int rows,\n" \
    "                        int pitch0, int pitch1, uint add) {\n" GUARD                                  \
    "    float v = (float)(in[y * pitch0 + x] & 0xffffu);\n"                                               \
    "    v = fma(v, 1.37f, 0.25f) * 0.71f - (float)(first + y);\n"                                         \
    "    out[y * pitch1 + x] = as_uint(v) + add;\n"                                                        \
    "}\n"
static const char rows_source[] = ROWS_KERNEL;

static const char halo_source[] =
    "kernel void halo_kernel(global const uint *in, global uint *out, int columns, int first, int rows,\n"
    "                        int pitch0, int pitch1, uint add, int frame, int origin) {\n" GUARD
    "    int r = first + y;\n"
    "    uint sum = add;\n"
    "    for (int s = max(r - 3, 0); s <= min(r + 3, frame - 1); s++)\n"
    "        sum = sum * 31u + in[(s - origin) * pitch0 + x];\n"
    "    out[y * pitch1 + x] = sum;\n"
    "}\n";

static const char whole_source[] =
    "kernel void whole_kernel(global const uint *in, global uint *out, global const uint *table, int columns,\n"
    "                         int first, int rows, int pitch0, int pitch1, uint add) {\n" GUARD
    "    out[y * pitch1 + x] = table[in[y * pitch0 + x] & 255u] + add + (uint)(first + y);\n"
    "}\n";

/* Local memory, barriers and atomics. All work-items of a group reach the barriers. */
static const char reduce_source[] = ROWS_KERNEL
    "kernel void reduce_kernel(global const uint *in, global uint *bins, local uint *part, int columns, int first,\n"
    "                          int rows, int pitch0, uint add) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    int lane = get_local_id(1) * get_local_size(0) + get_local_id(0);\n"
    "    int lanes = get_local_size(0) * get_local_size(1);\n"
    "    for (int b = lane; b < 65; b += lanes) part[b] = 0u;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (x < columns && y < rows) {\n"
    "        uint v = in[y * pitch0 + x] + add + (uint)(first + y);\n"
    "        atomic_inc(&part[v & 63u]);\n"
    "        atomic_max(&part[64], v);\n"
    "    }\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    for (int b = lane; b < 64; b += lanes) atomic_add(&bins[b], part[b]);\n"
    "    if (lane == 0) atomic_max(&bins[64], part[64]);\n"
    "}\n";

/* A work-item computes two luma rows and their chroma row. */
static const char chroma_source[] =
    "kernel void chroma_kernel(global const uint *luma, global const uint *chroma, global uint *out,\n"
    "                          global uint *chroma_out, int columns, int first, int rows, int pitch0, int pitch1,\n"
    "                          int pitch2, int pitch3, uint add) {\n"
    "    int x = get_global_id(0), y = 2 * (int)get_global_id(1);\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    uint c = chroma[y / 2 * pitch1 + x / 2];\n"
    "    for (int k = y; k < min(y + 2, rows); k++)\n"
    "        out[k * pitch2 + x] = luma[k * pitch0 + x] * 3u + c + (uint)(first + k);\n"
    "    if (x % 2 == 0) chroma_out[y / 2 * pitch3 + x / 2] = c * 5u + add + (uint)((first + y) / 2);\n"
    "}\n";

static const char stages_source[] =
    "kernel void first_kernel(global const uint *in, global uint *middle, int columns, int rows, int pitch0,\n"
    "                         int pitch1, uint add) {\n" GUARD
    "    middle[y * pitch1 + x] = in[y * pitch0 + x] * 3u + add;\n"
    "}\n"
    "kernel void second_kernel(global const uint *middle, global uint *out, int columns, int first, int rows,\n"
    "                          int pitch1, int pitch2) {\n" GUARD
    "    out[y * pitch2 + x] = middle[y * pitch1 + x] ^ ((uint)(first + y) * 2654435761u);\n"
    "}\n";

/* Like halo_kernel. A fused band computes rows beyond its own, so the kernel gets the first row of each buffer. */
static const char near_source[] =
    "kernel void near_kernel(global const uint *in, global uint *out, int columns, int first, int rows, int pitch0,\n"
    "                        int pitch1, uint add, int frame, int origin, int origin1) {\n" GUARD
    "    int r = first + y;\n"
    "    uint sum = add;\n"
    "    for (int s = max(r - 3, 0); s <= min(r + 3, frame - 1); s++)\n"
    "        sum = sum * 31u + in[(s - origin) * pitch0 + x];\n"
    "    out[(r - origin1) * pitch1 + x] = sum;\n"
    "}\n";

static const char turn_source[] =
    "kernel void turn_kernel(global const uint *in, global uint *out, int columns, int first, int rows, int pitch0,\n"
    "                        int pitch1, uint add) {\n" GUARD
    "    out[y * pitch1 + x] = in[x * pitch0 + first + y] + add;\n"
    "}\n";

static const char inplace_source[] =
    "kernel void inplace_kernel(global uint *buffer, int columns, int first, int rows, int pitch0, uint add) {\n" GUARD
    "    buffer[y * pitch0 + x] = buffer[y * pitch0 + x] * 1664525u + add + (uint)(first + y);\n"
    "}\n";

struct params {
    int32_t pitch[PLANES_MAX]; /* in elements */
    uint32_t add;
};

/* ---- expected results ---- */

struct shape {
    uint32_t columns;
    uint32_t rows;
    size_t pitch[PLANES_MAX]; /* elements */
    uint32_t add;
};

/* The result of one pass for one pixel of a frame. */
typedef void pixel_fn(const struct shape *shape, uint32_t *const *planes, uint32_t r, uint32_t c);

static uint32_t *at(const struct shape *shape, uint32_t *const *planes, uint32_t plane, uint32_t r, uint32_t c)
{
    return &planes[plane][r * shape->pitch[plane] + c];
}

static uint32_t mapped(uint32_t in, uint32_t r)
{
    /* In two statements, so that no compiler contracts them into an fma. */
    float v = (float)(in & 0xffffu);
    const float scaled = fmaf(v, 1.37f, 0.25f) * 0.71f;
    uint32_t bits;
    v = scaled - (float)r;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static void pixel_rows(const struct shape *shape, uint32_t *const *planes, uint32_t r, uint32_t c)
{
    *at(shape, planes, 1, r, c) = mapped(*at(shape, planes, 0, r, c), r) + shape->add;
}

static uint32_t sum_near(const struct shape *shape, uint32_t *const *planes, uint32_t plane, uint32_t r, uint32_t c)
{
    uint32_t sum = shape->add;
    for (uint32_t s = r > HALO_ROWS ? r - HALO_ROWS : 0; s <= r + HALO_ROWS && s < shape->rows; s++)
        sum = sum * 31u + *at(shape, planes, plane, s, c);
    return sum;
}

static void pixel_halo(const struct shape *shape, uint32_t *const *planes, uint32_t r, uint32_t c)
{
    *at(shape, planes, 1, r, c) = sum_near(shape, planes, 0, r, c);
}

static void pixel_halo_again(const struct shape *shape, uint32_t *const *planes, uint32_t r, uint32_t c)
{
    *at(shape, planes, 2, r, c) = sum_near(shape, planes, 1, r, c);
}

static void pixel_whole(const struct shape *shape, uint32_t *const *planes, uint32_t r, uint32_t c)
{
    *at(shape, planes, 1, r, c) = planes[2][*at(shape, planes, 0, r, c) & 255u] + shape->add + r;
}

static void pixel_reduce(const struct shape *shape, uint32_t *const *planes, uint32_t r, uint32_t c)
{
    const uint32_t v = *at(shape, planes, 0, r, c) + shape->add + r;
    planes[1][v % BINS]++;
    if (v > planes[1][BINS])
        planes[1][BINS] = v;
}

static uint32_t add_of_bins(const uint32_t *bins)
{
    return bins[3] + bins[BINS];
}

static void pixel_counted(const struct shape *shape, uint32_t *const *planes, uint32_t r, uint32_t c)
{
    *at(shape, planes, 2, r, c) = mapped(*at(shape, planes, 0, r, c), r) + add_of_bins(planes[1]);
}

static void pixel_chroma(const struct shape *shape, uint32_t *const *planes, uint32_t r, uint32_t c)
{
    const uint32_t uv = *at(shape, planes, 1, r / 2, c / 2);
    *at(shape, planes, 2, r, c) = *at(shape, planes, 0, r, c) * 3u + uv + r;
    *at(shape, planes, 3, r / 2, c / 2) = uv * 5u + shape->add + r / 2;
}

static void pixel_stages(const struct shape *shape, uint32_t *const *planes, uint32_t r, uint32_t c)
{
    const uint32_t middle = *at(shape, planes, 0, r, c) * 3u + shape->add;
    *at(shape, planes, 1, r, c) = middle;
    *at(shape, planes, 2, r, c) = middle ^ (r * 2654435761u);
}

static void pixel_turned(const struct shape *shape, uint32_t *const *planes, uint32_t r, uint32_t c)
{
    *at(shape, planes, 2, r, c) = *at(shape, planes, 0, r, c) + 2 * shape->add;
}

static void pixel_inplace(const struct shape *shape, uint32_t *const *planes, uint32_t r, uint32_t c)
{
    uint32_t *v = at(shape, planes, 0, r, c);
    *v = *v * 1664525u + shape->add + r;
}

static void merge_bins(void *into, const void *partial, size_t bytes, void *user)
{
    uint32_t *to = into;
    const uint32_t *from = partial;
    (void)bytes, (void)user;
    for (int b = 0; b < BINS; b++)
        to[b] += from[b];
    if (from[BINS] > to[BINS])
        to[BINS] = from[BINS];
}

static void take_bins(void *user, void *const *buffers, void *constants)
{
    (void)user;
    ((struct params *)constants)->add = add_of_bins(buffers[1]);
}

/* ---- the contracts ---- */

struct plane {
    enum cox__row_access row_access;
    enum cox__access access;
    bool half; /* half the width and half the height */
    bool scratch;
    bool turned; /* rows and columns exchanged */
};

#define IN .access = COX__READ
#define OUT .access = COX__WRITE
#define HALF .half = true
#define SCRATCH .scratch = true

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof((array)[0]))
#define STAGE(name, ...) name, (const struct cox__arg[]){__VA_ARGS__}, COUNT(((const struct cox__arg[]){__VA_ARGS__}))
#define USES(...)                                            \
    .uses = (const struct cox__pass_binding[]){__VA_ARGS__}, \
    .use_count = COUNT(((const struct cox__pass_binding[]){__VA_ARGS__}))

#define PITCH(index) COX__ARG_FIELD(struct params, pitch[index])
#define ADD COX__ARG_FIELD(struct params, add)
#define BASICS COX__ARG_COLUMNS, COX__ARG_FIRST_ROW, COX__ARG_ROWS
#define MAP(in, out) COX__ARG_BUFFER(in), COX__ARG_BUFFER(out), BASICS, PITCH(in), PITCH(out), ADD
#define REDUCE(in, bins) \
    COX__ARG_BUFFER(in), COX__ARG_BUFFER(bins), COX__ARG_LOCAL(4 * (BINS + 1)), BASICS, PITCH(in), ADD
#define NEAR(in, out) MAP(in, out), COX__ARG_FRAME_ROWS, COX__ARG_ORIGIN(in), COX__ARG_ORIGIN(out)

static const struct contract {
    const char *name;
    const char *source;
    pixel_fn *pixels[2]; /* computes the first pass for all pixels, then the second */
    struct {
        struct plane list[PLANES_MAX];
        uint32_t count;
    } planes;
    uint32_t local[2]; /* columns, rows */
    uint32_t item_rows;
    struct {
        const char *kernel;
        const struct cox__arg *args;
        uint32_t arg_count;
    } stages[2];
    uint32_t pass_count; /* 0 = one, of all stages */
    struct cox__pass_spec passes[2];
} contracts[] = {
    {.name = "rows",
     .source = rows_source,
     .pixels = {pixel_rows},
     .planes = {{{IN}, {OUT}}, 2},
     .local = {16, 1},
     .stages = {{STAGE("rows_kernel", MAP(0, 1))}}},
    {.name = "halo",
     .source = halo_source,
     .pixels = {pixel_halo},
     .planes = {{{COX__HALO, IN}, {OUT}}, 2},
     .local = {8, 2},
     .stages = {{STAGE("halo_kernel", MAP(0, 1), COX__ARG_FRAME_ROWS, COX__ARG_ORIGIN(0))}}},
    {.name = "whole",
     .source = whole_source,
     .pixels = {pixel_whole},
     .planes = {{{IN}, {OUT}, {COX__WHOLE, IN}}, 3},
     .local = {32, 1},
     .stages = {{STAGE("whole_kernel", COX__ARG_BUFFER(0), COX__ARG_BUFFER(1), COX__ARG_BUFFER(2), BASICS, PITCH(0),
                       PITCH(1), ADD)}}},
    {.name = "reduce",
     .source = reduce_source,
     .pixels = {pixel_reduce},
     .planes = {{{IN}, {COX__REDUCE, OUT}}, 2},
     .local = {16, 2},
     .stages = {{STAGE("reduce_kernel", REDUCE(0, 1))}}},
    {.name = "chroma",
     .source = chroma_source,
     .pixels = {pixel_chroma},
     .planes = {{{IN}, {IN, HALF}, {OUT}, {OUT, HALF}}, 4},
     .local = {16, 1},
     .item_rows = 2,
     .stages = {{STAGE("chroma_kernel", COX__ARG_BUFFER(0), COX__ARG_BUFFER(1), COX__ARG_BUFFER(2), COX__ARG_BUFFER(3),
                       BASICS, PITCH(0), PITCH(1), PITCH(2), PITCH(3), ADD)}}},
    {.name = "stages",
     .source = stages_source,
     .pixels = {pixel_stages},
     .planes = {{{IN}, {OUT}, {OUT}}, 3},
     .local = {16, 1},
     .stages = {{STAGE("first_kernel", COX__ARG_BUFFER(0), COX__ARG_BUFFER(1), COX__ARG_COLUMNS, COX__ARG_ROWS,
                       PITCH(0), PITCH(1), ADD)},
                {STAGE("second_kernel", COX__ARG_BUFFER(1), COX__ARG_BUFFER(2), BASICS, PITCH(1), PITCH(2))}}},
    {.name = "in place",
     .source = inplace_source,
     .pixels = {pixel_inplace},
     .planes = {{{.access = COX__READ_WRITE}}, 1},
     .local = {64, 1},
     .stages = {{STAGE("inplace_kernel", COX__ARG_BUFFER(0), BASICS, PITCH(0), ADD)}}},
    {.name = "exchange",
     .source = near_source,
     .pixels = {pixel_halo, pixel_halo_again},
     .planes = {{{IN}, {SCRATCH}, {OUT}}, 3},
     .local = {16, 2},
     .stages = {{STAGE("near_kernel", NEAR(0, 1))}, {STAGE("near_kernel", NEAR(1, 2))}},
     .pass_count = 2,
     .passes = {{USES({0, COX__HALO, .halo_rows = HALO_ROWS}, {1, OUT})},
                {USES({1, COX__HALO, .halo_rows = HALO_ROWS}, {2, OUT})}}},
    {.name = "overlap",
     .source = near_source,
     .pixels = {pixel_halo, pixel_halo_again},
     .planes = {{{IN}, {SCRATCH}, {OUT}}, 3},
     .local = {8, 2},
     .stages = {{STAGE("near_kernel", NEAR(0, 1))}, {STAGE("near_kernel", NEAR(1, 2))}},
     .pass_count = 1,
     .passes = {{USES({0, COX__HALO, .halo_rows = HALO_ROWS},
                      {1, COX__HALO, .access = COX__READ_WRITE, .halo_rows = HALO_ROWS}, {2, OUT})}}},
    {.name = "turned",
     .source = turn_source,
     .pixels = {pixel_turned},
     .planes = {{{IN}, {SCRATCH, .turned = true}, {OUT}}, 3},
     .local = {16, 1},
     .stages = {{STAGE("turn_kernel", MAP(0, 1))}, {STAGE("turn_kernel", MAP(1, 2))}},
     .pass_count = 2,
     .passes = {{USES({0, COX__WHOLE, IN}, {1, OUT})}, {USES({1, COX__WHOLE, IN}, {2, OUT})}}},
    {.name = "counted",
     .source = reduce_source,
     .pixels = {pixel_reduce, pixel_counted},
     .planes = {{{IN}, {COX__REDUCE, OUT, SCRATCH}, {OUT}}, 3},
     .local = {16, 2},
     .stages = {{STAGE("reduce_kernel", REDUCE(0, 1))}, {STAGE("rows_kernel", MAP(0, 2))}},
     .pass_count = 2,
     .passes = {{USES({0, IN}, {1, COX__REDUCE, OUT}), .done = take_bins}, {USES({0, IN}, {2, OUT})}}},
};

static void expect(const struct contract *contract, const struct shape *shape, uint32_t *const *planes)
{
    for (uint32_t i = 0; i < contract->planes.count; i++)
        if (contract->planes.list[i].row_access == COX__REDUCE)
            memset(planes[i], 0, 4 * (BINS + 1));

    for (uint32_t pass = 0; pass < 2 && contract->pixels[pass]; pass++)
        for (uint32_t r = 0; r < shape->rows; r++)
            for (uint32_t c = 0; c < shape->columns; c++)
                contract->pixels[pass](shape, planes, r, c);
}

/* ---- splits ---- */

/* Rows below row alignment number `row_units`, at most the frame's rows. */
static uint32_t rows_before(const struct cox_sched_view *view, uint32_t row_units)
{
    const uint64_t rows = (uint64_t)row_units * view->row_alignment;
    return rows < view->rows ? (uint32_t)rows : view->rows;
}

/* Repeat some rows on a device that has no band, if the drawn device has none. */
static void random_shadow(uint64_t *seed, const struct cox_sched_view *view, uint32_t row_units, struct cox_split *out)
{
    const uint32_t device = random_below(seed, view->device_count), from = random_below(seed, row_units);
    const uint32_t to = from + 1 + random_below(seed, row_units - from);
    for (uint32_t b = 0; b < out->band_count; b++)
        if (out->bands[b].device == device)
            return;
    out->shadow = (struct cox_band){device, rows_before(view, from), rows_before(view, to) - rows_before(view, from)};
}

/* Up to two bands for each device, cut at multiples of the row alignment. Every second split has a pool, and an
 * idle device may get a shadow run. */
static cox_status random_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    uint64_t *seed = state;
    const uint32_t row_units = (view->rows - 1) / view->row_alignment + 1;
    const uint32_t wanted = 1 + random_below(seed, 2 * view->device_count);
    const uint32_t pool = random_below(seed, 2 * wanted);
    for (uint32_t at = 0, drawn = 1; at < row_units; drawn++) {
        const uint32_t take = drawn == wanted ? row_units - at : 1 + random_below(seed, row_units - at);
        const uint32_t first = rows_before(view, at), rows = rows_before(view, at + take) - first;
        if (drawn - 1 == pool) {
            out->pool_first_row = first;
            out->pool_rows = rows;
        } else {
            out->bands[out->band_count++] = (struct cox_band){random_below(seed, view->device_count), first, rows};
        }
        at += take;
    }
    if (view->shadow)
        random_shadow(seed, view, row_units, out);
    out->reason = COX_REASON_GIVEN;
    return COX_OK;
}

/* Grants up to half of the rows left, or all, or none. */
static void random_grant(void *state, const struct cox_sched_view *view, const struct cox_chunk_request *offer,
                         struct cox_chunk *out)
{
    uint64_t *seed = state;
    const uint32_t row_units = (offer->rows - 1) / view->row_alignment + 1;
    const uint32_t take = random_below(seed, row_units / 2 + 2);
    out->rows = take * view->row_alignment < offer->rows ? take * view->row_alignment : offer->rows;
    if (offer->last && take == 0)
        out->rows = offer->rows;
}

static const struct cox_policy random_policy = {.name = "random",
                                                .state_bytes = rig_policy_bytes,
                                                .init = rig_policy_init,
                                                .split = random_split,
                                                .assign = random_grant};

/* ---- a run ---- */

struct suite {
    struct bits_suite bits;
    const char *mode, *only;
    uint64_t hash;
    uint64_t on_demand, shadows; /* bands */
};

struct frame {
    uint32_t *base[PLANES_MAX]; /* the allocation if the application owns the memory */
    uint32_t *data[PLANES_MAX];
    uint32_t *want[PLANES_MAX];
    cox_buffer *buffers[PLANES_MAX];
    struct params params;
    uint32_t done;
    cox_status status;
};

enum memory { MEMORY_RUNTIME, MEMORY_APPLICATION, MEMORY_COMMON, MEMORY_KINDS };

static const char *const memory_names[] = {"the runtime's memory", "the application's memory",
                                           "inputs common to all frames"};

struct run {
    struct suite *suite;
    const struct contract *contract;
    struct shape shape;
    enum memory memory;
    uint32_t in_flight;
    size_t bytes[PLANES_MAX];
    uint32_t used[PLANES_MAX]; /* elements of a row that are compared */
    uint32_t height[PLANES_MAX];
    struct frame frames[POOL_MAX];
    char name[96];
};

static bool fail(struct run *run, const char *what)
{
    return bits_complain(&run->suite->bits, "%s: %s", run->name, what);
}

static void plan_planes(struct run *run, struct cox__binding *bindings)
{
    for (uint32_t i = 0; i < run->contract->planes.count; i++) {
        const struct plane *plane = &run->contract->planes.list[i];
        bindings[i] = (struct cox__binding){
            .row_access = plane->row_access, .access = plane->access, .scratch = plane->scratch};
        if (plane->row_access == COX__WHOLE || plane->row_access == COX__REDUCE) {
            run->used[i] = plane->row_access == COX__WHOLE ? TABLE : BINS + 1;
            run->height[i] = 1;
            run->bytes[i] = bindings[i].bytes = 4 * (size_t)run->used[i];
            bindings[i].merge = plane->row_access == COX__REDUCE ? merge_bins : NULL;
            continue;
        }
        const uint32_t divisor = plane->half ? 2 : 1;
        run->used[i] = ((plane->turned ? run->shape.rows : run->shape.columns) + divisor - 1) / divisor;
        run->height[i] = ((plane->turned ? run->shape.columns : run->shape.rows) + divisor - 1) / divisor;
        const size_t pitch = cox_runtime_pitch_bytes(run->suite->bits.runtime, 4 * (size_t)run->used[i]);
        run->shape.pitch[i] = pitch / 4;
        run->bytes[i] = pitch * run->height[i];
        bindings[i].pitch_bytes = pitch;
        bindings[i].row_divisor = divisor;
        bindings[i].halo_rows = plane->row_access == COX__HALO ? HALO_ROWS : 0;
    }
}

/* The application's memory has the smallest alignment that kernels allow, and guard bytes behind it. */
static cox_status make_buffer(const struct run *run, struct frame *frame, uint32_t i)
{
    if (run->memory != MEMORY_APPLICATION)
        return cox_buffer_create(run->suite->bits.runtime, run->bytes[i], &frame->buffers[i]);
    char *room = malloc(run->bytes[i] + CANARY + 64);
    if (!room)
        return COX_E_NOMEM;
    char *data = room + (4 - (uintptr_t)room % 64 + 64) % 64;
    memset(data + run->bytes[i], CANARY_BYTE, CANARY);
    frame->base[i] = (uint32_t *)(void *)room;
    return cox_buffer_wrap(run->suite->bits.runtime, data, run->bytes[i], NULL, NULL, &frame->buffers[i]);
}

static bool make_frame(struct run *run, struct frame *frame, uint64_t *seed)
{
    for (uint32_t i = 0; i < run->contract->planes.count; i++) {
        const struct plane *plane = &run->contract->planes.list[i];
        if (run->memory == MEMORY_COMMON && frame != run->frames && plane->access == COX__READ && !plane->scratch) {
            frame->data[i] = run->frames[0].data[i];
            frame->want[i] = run->frames[0].want[i];
            frame->buffers[i] = run->frames[0].buffers[i];
            continue;
        }
        frame->want[i] = malloc(run->bytes[i]);
        if (!frame->want[i])
            return false;
        if (plane->scratch)
            continue;
        if (make_buffer(run, frame, i))
            return false;
        frame->data[i] = cox_buffer_data(frame->buffers[i]);

        /* Values do not depend on the pitch, which depends on the devices. */
        for (uint32_t r = 0; r < run->height[i]; r++)
            for (uint32_t c = 0; c < run->used[i]; c++)
                *at(&run->shape, frame->data, i, r, c) = (uint32_t)random_next(seed);
        memcpy(frame->want[i], frame->data[i], run->bytes[i]);
    }
    return true;
}

static void drop_frame(const struct run *run, struct frame *frame)
{
    for (uint32_t i = 0; i < PLANES_MAX; i++) {
        if (frame != run->frames && frame->buffers[i] && frame->buffers[i] == run->frames[0].buffers[i])
            continue;
        cox_buffer_destroy(&frame->buffers[i]);
        free(frame->base[i]);
        free(frame->want[i]);
    }
}

static void on_done(void *user, uint64_t index, cox_status status)
{
    struct frame *frame = user;
    (void)index;
    frame->done++;
    frame->status = status;
}

static void on_report(void *user, const struct cox_frame_report *report)
{
    struct suite *suite = user;
    suite->shadows += report->shadow && report->status == COX_OK;
    for (uint32_t b = 0; b < report->band_count; b++)
        suite->on_demand += report->bands[b].on_demand;
}

static bool check_frame(struct run *run, const struct frame *frame, uint64_t *hash)
{
    for (uint32_t i = 0; i < run->contract->planes.count; i++) {
        if (run->contract->planes.list[i].scratch)
            continue;
        for (uint32_t r = 0; r < run->height[i]; r++)
            for (uint32_t c = 0; c < run->used[i]; c++) {
                const uint32_t got = *at(&run->shape, frame->data, i, r, c);
                const uint32_t want = *at(&run->shape, frame->want, i, r, c);
                if (got != want)
                    return bits_complain(&run->suite->bits, "%s: plane %u, row %u, column %u: %08x instead of %08x",
                                         run->name, i, r, c, got, want);
                *hash = (*hash ^ got) * 0x100000001b3u;
            }
        const unsigned char *behind = (const unsigned char *)frame->data[i] + run->bytes[i];
        for (size_t b = 0; b < CANARY && run->memory == MEMORY_APPLICATION; b++)
            if (behind[b] != CANARY_BYTE)
                return fail(run, "bytes behind a buffer were overwritten");
    }
    return true;
}

static bool play(struct run *run, cox_session *session)
{
    const uint32_t pool = run->in_flight + 1;
    uint64_t hash = 0xcbf29ce484222325u, seed = 5;
    for (uint32_t round = 0; round < (run->suite->bits.small ? 2 : 3); round++) {
        for (uint32_t f = 0; f < pool; f++) {
            struct frame *frame = &run->frames[f];
            frame->params.add = (uint32_t)random_next(&seed);
            frame->done = 0;
            for (uint32_t i = 0; i < run->contract->planes.count; i++) {
                frame->params.pitch[i] = (int32_t)run->shape.pitch[i];
                if (run->contract->planes.list[i].access == COX__WRITE && frame->data[i])
                    memset(frame->data[i], 0xbb, run->bytes[i]);
            }
            const struct cox__frame_spec submitted = {
                .buffers = frame->buffers, .buffer_count = run->contract->planes.count, .params = &frame->params};
            if (cox__session_submit(session, &submitted, on_done, frame) != COX_OK)
                return fail(run, "submit");
            run->shape.add = frame->params.add;
            expect(run->contract, &run->shape, frame->want); /* computed while the devices work */
        }
        cox_session_wait(session);
        for (uint32_t f = 0; f < pool; f++) {
            if (run->frames[f].done != 1 || run->frames[f].status != COX_OK)
                return fail(run, cox_status_text(run->frames[f].status));
            if (!check_frame(run, &run->frames[f], &hash))
                return false;
        }
    }
    run->suite->hash = (run->suite->hash ^ hash) * 0x100000001b3u;
    return true;
}

static bool all_devices_helped(struct run *run, cox_session *session)
{
    const struct cox_session_info info = rig_info(session);
    if (info.device_count != run->suite->bits.device_count)
        return fail(run, "a device did not take part");
    for (uint32_t d = 0; d < info.device_count; d++)
        if (info.devices[d].lost) /* a device that is only late, on a busy machine, does not count */
            return fail(run, "a device left the session");
    return true;
}

static cox_status open_session(struct run *run, cox_session **session)
{
    const struct contract *contract = run->contract;
    const uint32_t columns = run->shape.columns, rows = run->shape.rows;
    const struct cox__variant variant = {.source = contract->source,
                                         .local_columns = contract->local[0],
                                         .local_rows = contract->local[1],
                                         .item_rows = contract->item_rows,
                                         .any_local = true};
    struct cox__binding bindings[PLANES_MAX];
    struct cox__stage stages[2];
    struct cox__pass_spec passes[2];
    uint32_t stage_count = 0;
    plan_planes(run, bindings);
    for (; stage_count < 2 && contract->stages[stage_count].kernel; stage_count++)
        stages[stage_count] = (struct cox__stage){.kernel = contract->stages[stage_count].kernel,
                                                  .columns = columns,
                                                  .variant_count = 1,
                                                  .variants = &variant,
                                                  .arg_count = contract->stages[stage_count].arg_count,
                                                  .args = contract->stages[stage_count].args};
    for (uint32_t p = 0; p < contract->pass_count; p++) {
        const bool turned = contract->planes.list[1].turned && p == 0;
        passes[p] = contract->passes[p];
        passes[p].rows = turned ? columns : rows;
        passes[p].stages = &stages[p];
        passes[p].stage_count = contract->pass_count == 1 ? 2 : 1;
        stages[p].columns = turned ? rows : columns;
    }
    return cox__session_create(run->suite->bits.runtime,
                               &(const struct cox__session_spec){.rows = rows,
                                                                 .device_timeout_ns = 60000000000 /* a busy machine */,
                                                                 .binding_count = contract->planes.count,
                                                                 .bindings = bindings,
                                                                 .stage_count = contract->pass_count ? 0 : stage_count,
                                                                 .stages = stages,
                                                                 .pass_count = contract->pass_count,
                                                                 .passes = passes,
                                                                 .params_bytes = sizeof(struct params),
                                                                 .custom_policy = &random_policy,
                                                                 .split_each_pass = run->in_flight > 1,
                                                                 .in_flight = run->in_flight,
                                                                 .allow_in_place = true,
                                                                 .no_warmup = run->in_flight == 3,
                                                                 .report = on_report,
                                                                 .report_user = run->suite},
                               session);
}

static void run_one(struct suite *suite, const struct contract *contract, const uint32_t size[2], enum memory memory,
                    uint32_t in_flight)
{
    struct run run = {.suite = suite,
                      .contract = contract,
                      .shape = {.columns = size[0], .rows = size[1]},
                      .memory = memory,
                      .in_flight = in_flight};
    cox_session *session = NULL;
    uint64_t seed = size[1] * 1000 + size[0];
    snprintf(run.name, sizeof run.name, "%s, %u x %u, %s, %u in flight", contract->name, size[0], size[1],
             memory_names[memory], in_flight);
    bool good = open_session(&run, &session) == COX_OK || fail(&run, "session");
    for (uint32_t f = 0; f <= in_flight && good; f++)
        good = make_frame(&run, &run.frames[f], &seed) || fail(&run, "no memory");
    good = good && play(&run, session) && all_devices_helped(&run, session);

    cox_session_destroy(&session);
    for (uint32_t f = POOL_MAX; f-- > 0;)
        drop_frame(&run, &run.frames[f]);
    suite->bits.passed += good;
    suite->bits.failed += !good;
    if (suite->bits.verbose)
        printf("%s %s\n", good ? "passed" : "FAILED", run.name);
}

/* ---- main ---- */

/* --mode and --only */
static int read_option(void *user, const char *option, const char *value)
{
    struct suite *suite = user;
    if (!strcmp(option, "--mode") && value)
        suite->mode = value;
    else if (!strcmp(option, "--only") && value)
        suite->only = value;
    else
        return 0;
    return 2;
}

static void check_modes(struct suite *suite)
{
    for (uint32_t d = 0; d < suite->bits.device_count && suite->mode; d++) {
        struct cox_device_info info;
        if (cox_runtime_device_info(suite->bits.runtime, d, &info) == COX_OK &&
            !strcmp(suite->mode, cox_memory_mode_name(info.mode)))
            continue;
        bits_complain(&suite->bits, "device %u is not %s", d, suite->mode);
        suite->bits.failed++;
    }
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[][2] = {{1, 1}, {7, 3}, {65, 130}, {301, 97}, {1279, 721}};
    static const uint32_t small_sizes[][2] = {{1, 1}, {7, 3}, {19, 21}};
    struct suite suite = {.hash = 0xcbf29ce484222325u};
    crash_tell();
    const int status = bits_suite_begin(&suite.bits, argc, argv, read_option, &suite);
    if (status >= 0)
        return status;
    check_modes(&suite);

    const bool small = suite.bits.small;
    for (uint32_t s = 0; s < (small ? COUNT(small_sizes) : COUNT(sizes)); s++)
        for (uint32_t c = 0; c < COUNT(contracts); c++)
            for (enum memory memory = 0; memory < MEMORY_KINDS; memory++) {
                const uint32_t *size = small ? small_sizes[s] : sizes[s];
                if ((suite.only && strcmp(suite.only, contracts[c].name) != 0) ||
                    (contracts[c].pass_count && size[1] < HALO_ROWS)) /* such frames are refused */
                    continue;
                run_one(&suite, &contracts[c], size, memory,
                        memory == MEMORY_COMMON ? 2 + (s + c) % 3 : 1 + (s + c + 2 * memory) % 4);
            }

    printf("%" PRIu64 " bands on demand, %" PRIu64 " shadows\n", suite.on_demand, suite.shadows);
    if (!suite.only && (suite.on_demand == 0 || (suite.bits.device_count > 1 && suite.shadows == 0))) {
        bits_complain(&suite.bits, "nothing was handed out on demand, or no shadow done");
        suite.bits.failed++;
    }
    printf("hash %016" PRIx64 "\n", suite.hash);
    return bits_suite_end(&suite.bits);
}
