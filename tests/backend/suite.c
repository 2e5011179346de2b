/* One suite for every set-up of OpenCL devices: each access contract at odd sizes, with random splits, rows handed out
 * on demand, shadows, one to four frames in flight, in memory of the runtime and of the application, compared with a
 * plain loop on the host. Public headers only.
 *
 *   backend_suite [--devices SEL] [--cache DIR] [--expect N] [--mode shared|mapped|staged] [--small] [--only CONTRACT]
 *                 [--verbose]
 *
 * --expect and --mode fail the run if other devices than meant take part. Prints one hash over all outputs, which is
 * the same on every set-up, and "N passed, N failed"; the exit status is 0 if nothing failed, 77 without OpenCL
 * devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/coxswain.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLANES_MAX = 4, POOL_MAX = 5, CANARY = 64, HALO_ROWS = 3, BINS = 64, TABLE = 256 };

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

/* Local memory, barriers and atomics: all items of a group reach the barriers. */
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

/* An item does two luma rows and the chroma row that goes with them. */
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

/* As halo_kernel, of which bands may have rows beyond their own: so it knows where each begins. */
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

#define PITCH(index) COX_ARG_FIELD(struct params, pitch[index])
#define ADD COX_ARG_FIELD(struct params, add)
#define BASICS COX_ARG_COLUMNS, COX_ARG_FIRST_ROW, COX_ARG_ROWS

static const struct cox_arg rows_args[] = {COX_ARG_BUFFER(0), COX_ARG_BUFFER(1), BASICS, PITCH(0), PITCH(1), ADD};
static const struct cox_arg halo_args[] = {COX_ARG_BUFFER(0),  COX_ARG_BUFFER(1), BASICS, PITCH(0), PITCH(1), ADD,
                                           COX_ARG_FRAME_ROWS, COX_ARG_ORIGIN(0)};
static const struct cox_arg whole_args[] = {
    COX_ARG_BUFFER(0), COX_ARG_BUFFER(1), COX_ARG_BUFFER(2), BASICS, PITCH(0), PITCH(1), ADD};
static const struct cox_arg reduce_args[] = {
    COX_ARG_BUFFER(0), COX_ARG_BUFFER(1), COX_ARG_LOCAL(4 * (BINS + 1)), BASICS, PITCH(0), ADD};
static const struct cox_arg chroma_args[] = {
    COX_ARG_BUFFER(0), COX_ARG_BUFFER(1), COX_ARG_BUFFER(2), COX_ARG_BUFFER(3), BASICS,
    PITCH(0),          PITCH(1),          PITCH(2),          PITCH(3),          ADD};
static const struct cox_arg first_args[] = {
    COX_ARG_BUFFER(0), COX_ARG_BUFFER(1), COX_ARG_COLUMNS, COX_ARG_ROWS, PITCH(0), PITCH(1), ADD};
static const struct cox_arg second_args[] = {COX_ARG_BUFFER(1), COX_ARG_BUFFER(2), BASICS, PITCH(1), PITCH(2)};
#define NEAR(in, out)                                                                                \
    COX_ARG_BUFFER(in), COX_ARG_BUFFER(out), BASICS, PITCH(in), PITCH(out), ADD, COX_ARG_FRAME_ROWS, \
        COX_ARG_ORIGIN(in), COX_ARG_ORIGIN(out)
static const struct cox_arg near_args[] = {NEAR(0, 1)}, nearer_args[] = {NEAR(1, 2)};
#define TURN(in, out) COX_ARG_BUFFER(in), COX_ARG_BUFFER(out), BASICS, PITCH(in), PITCH(out), ADD
static const struct cox_arg turn_args[] = {TURN(0, 1)}, return_args[] = {TURN(1, 2)};
static const struct cox_arg count_args[] = {
    COX_ARG_BUFFER(0), COX_ARG_BUFFER(1), COX_ARG_LOCAL(4 * (BINS + 1)), BASICS, PITCH(0), ADD};
static const struct cox_arg count_last_args[] = {COX_ARG_BUFFER(0), COX_ARG_BUFFER(2), BASICS, PITCH(0), PITCH(2), ADD};
static const struct cox_arg inplace_args[] = {COX_ARG_BUFFER(0), BASICS, PITCH(0), ADD};

/* ---- what they should give ---- */

struct shape {
    uint32_t columns;
    uint32_t rows;
    size_t pitch[PLANES_MAX]; /* elements */
    uint32_t add;
};

typedef void expect_fn(const struct shape *shape, uint32_t *const *planes);

static void expect_rows(const struct shape *shape, uint32_t *const *planes)
{
    for (uint32_t r = 0; r < shape->rows; r++)
        for (uint32_t c = 0; c < shape->columns; c++) {
            /* Two statements: no compiler may contract across them. */
            float v = (float)(planes[0][r * shape->pitch[0] + c] & 0xffffu);
            const float scaled = fmaf(v, 1.37f, 0.25f) * 0.71f;
            uint32_t bits;
            v = scaled - (float)r;
            memcpy(&bits, &v, sizeof bits);
            planes[1][r * shape->pitch[1] + c] = bits + shape->add;
        }
}

static void expect_halo(const struct shape *shape, uint32_t *const *planes)
{
    for (uint32_t r = 0; r < shape->rows; r++)
        for (uint32_t c = 0; c < shape->columns; c++) {
            uint32_t sum = shape->add;
            for (uint32_t s = r > HALO_ROWS ? r - HALO_ROWS : 0; s <= r + HALO_ROWS && s < shape->rows; s++)
                sum = sum * 31u + planes[0][s * shape->pitch[0] + c];
            planes[1][r * shape->pitch[1] + c] = sum;
        }
}

static void expect_whole(const struct shape *shape, uint32_t *const *planes)
{
    for (uint32_t r = 0; r < shape->rows; r++)
        for (uint32_t c = 0; c < shape->columns; c++)
            planes[1][r * shape->pitch[1] + c] = planes[2][planes[0][r * shape->pitch[0] + c] & 255u] + shape->add + r;
}

static void expect_reduce(const struct shape *shape, uint32_t *const *planes)
{
    memset(planes[1], 0, 4 * (BINS + 1));
    for (uint32_t r = 0; r < shape->rows; r++)
        for (uint32_t c = 0; c < shape->columns; c++) {
            const uint32_t v = planes[0][r * shape->pitch[0] + c] + shape->add + r;
            planes[1][v % BINS]++;
            if (v > planes[1][BINS])
                planes[1][BINS] = v;
        }
}

static void expect_chroma(const struct shape *shape, uint32_t *const *planes)
{
    for (uint32_t r = 0; r < shape->rows; r++)
        for (uint32_t c = 0; c < shape->columns; c++) {
            const uint32_t uv = planes[1][r / 2 * shape->pitch[1] + c / 2];
            planes[2][r * shape->pitch[2] + c] = planes[0][r * shape->pitch[0] + c] * 3u + uv + r;
            planes[3][r / 2 * shape->pitch[3] + c / 2] = uv * 5u + shape->add + r / 2;
        }
}

static void expect_stages(const struct shape *shape, uint32_t *const *planes)
{
    for (uint32_t r = 0; r < shape->rows; r++)
        for (uint32_t c = 0; c < shape->columns; c++) {
            const uint32_t middle = planes[0][r * shape->pitch[0] + c] * 3u + shape->add;
            planes[1][r * shape->pitch[1] + c] = middle;
            planes[2][r * shape->pitch[2] + c] = middle ^ (r * 2654435761u);
        }
}

static void near_plane(const struct shape *shape, const uint32_t *in, size_t in_pitch, uint32_t *out, size_t out_pitch)
{
    const struct shape of = {shape->columns, shape->rows, {in_pitch, out_pitch}, shape->add};
    uint32_t *const planes[] = {(uint32_t *)in, out};
    expect_halo(&of, planes);
}

static void expect_near(const struct shape *shape, uint32_t *const *planes)
{
    near_plane(shape, planes[0], shape->pitch[0], planes[1], shape->pitch[1]);
    near_plane(shape, planes[1], shape->pitch[1], planes[2], shape->pitch[2]);
}

static void expect_turned(const struct shape *shape, uint32_t *const *planes)
{
    for (uint32_t r = 0; r < shape->rows; r++)
        for (uint32_t c = 0; c < shape->columns; c++)
            planes[2][r * shape->pitch[2] + c] = planes[0][r * shape->pitch[0] + c] + 2 * shape->add;
}

static void expect_counted(const struct shape *shape, uint32_t *const *planes)
{
    uint32_t bins[BINS + 1];
    uint32_t *const counted[] = {planes[0], bins}, *const mapped[] = {planes[0], planes[2]};
    expect_reduce(shape, counted);
    struct shape second = *shape;
    second.pitch[1] = shape->pitch[2];
    second.add = bins[3] + bins[BINS];
    expect_rows(&second, mapped);
}

static void take_bins(void *user, const struct cox_pass_end *end)
{
    const uint32_t *bins = end->buffers[1];
    (void)user;
    ((struct params *)end->params)->add = bins[3] + bins[BINS];
}

static void expect_inplace(const struct shape *shape, uint32_t *const *planes)
{
    for (uint32_t r = 0; r < shape->rows; r++)
        for (uint32_t c = 0; c < shape->columns; c++) {
            uint32_t *v = &planes[0][r * shape->pitch[0] + c];
            *v = *v * 1664525u + shape->add + r;
        }
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

/* ---- the contracts ---- */

struct plane {
    enum cox_contract contract;
    enum cox_access access;
    bool half; /* half as wide and half as high */
    bool scratch;
    bool turned; /* rows and columns changed for each other */
};

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof((array)[0]))

static const struct contract {
    const char *name;
    expect_fn *expect;
    uint32_t plane_count;
    struct plane planes[PLANES_MAX];
    const char *source;
    uint32_t local_columns, local_rows, item_rows;
    uint32_t stage_count;
    struct {
        const char *kernel;
        const struct cox_arg *args;
        uint32_t arg_count;
    } stages[2];
    uint32_t pass_count; /* 0 = one, of all stages */
    struct cox_pass passes[2];
} contracts[] = {
    {"rows",
     expect_rows,
     2,
     {{COX_ROWS, COX_READ, 0, 0, 0}, {COX_ROWS, COX_WRITE, 0, 0, 0}},
     rows_source,
     16,
     1,
     1,
     1,
     {{"rows_kernel", rows_args, COUNT(rows_args)}},
     0,
     {{0}}},
    {"halo",
     expect_halo,
     2,
     {{COX_HALO, COX_READ, 0, 0, 0}, {COX_ROWS, COX_WRITE, 0, 0, 0}},
     halo_source,
     8,
     2,
     1,
     1,
     {{"halo_kernel", halo_args, COUNT(halo_args)}},
     0,
     {{0}}},
    {"whole",
     expect_whole,
     3,
     {{COX_ROWS, COX_READ, 0, 0, 0}, {COX_ROWS, COX_WRITE, 0, 0, 0}, {COX_WHOLE, COX_READ, 0, 0, 0}},
     whole_source,
     32,
     1,
     1,
     1,
     {{"whole_kernel", whole_args, COUNT(whole_args)}},
     0,
     {{0}}},
    {"reduce",
     expect_reduce,
     2,
     {{COX_ROWS, COX_READ, 0, 0, 0}, {COX_REDUCE, COX_WRITE, 0, 0, 0}},
     reduce_source,
     16,
     2,
     1,
     1,
     {{"reduce_kernel", reduce_args, COUNT(reduce_args)}},
     0,
     {{0}}},
    {"chroma",
     expect_chroma,
     4,
     {{COX_ROWS, COX_READ, 0, 0, 0},
      {COX_ROWS, COX_READ, 1, 0, 0},
      {COX_ROWS, COX_WRITE, 0, 0, 0},
      {COX_ROWS, COX_WRITE, 1, 0, 0}},
     chroma_source,
     16,
     1,
     2,
     1,
     {{"chroma_kernel", chroma_args, COUNT(chroma_args)}},
     0,
     {{0}}},
    {"stages",
     expect_stages,
     3,
     {{COX_ROWS, COX_READ, 0, 0, 0}, {COX_ROWS, COX_WRITE, 0, 0, 0}, {COX_ROWS, COX_WRITE, 0, 0, 0}},
     stages_source,
     16,
     1,
     1,
     2,
     {{"first_kernel", first_args, COUNT(first_args)}, {"second_kernel", second_args, COUNT(second_args)}},
     0,
     {{0}}},
    {"in place",
     expect_inplace,
     1,
     {{COX_ROWS, COX_READ_WRITE, 0, 0, 0}},
     inplace_source,
     64,
     1,
     1,
     1,
     {{"inplace_kernel", inplace_args, COUNT(inplace_args)}},
     0,
     {{0}}},
    {"exchange",
     expect_near,
     3,
     {{COX_ROWS, COX_READ, 0, 0, 0}, {COX_ROWS, COX_READ, 0, 1, 0}, {COX_ROWS, COX_WRITE, 0, 0, 0}},
     near_source,
     16,
     2,
     1,
     2,
     {{"near_kernel", near_args, COUNT(near_args)}, {"near_kernel", nearer_args, COUNT(nearer_args)}},
     2,
     {{.use_count = 2,
       .uses = (const struct cox_use[]){{.binding = 0, .contract = COX_HALO, .halo_rows = HALO_ROWS},
                                        {.binding = 1, .access = COX_WRITE}}},
      {.use_count = 2,
       .uses = (const struct cox_use[]){{.binding = 1, .contract = COX_HALO, .halo_rows = HALO_ROWS},
                                        {.binding = 2, .access = COX_WRITE}}}}},
    {"overlap",
     expect_near,
     3,
     {{COX_ROWS, COX_READ, 0, 0, 0}, {COX_ROWS, COX_READ, 0, 1, 0}, {COX_ROWS, COX_WRITE, 0, 0, 0}},
     near_source,
     8,
     2,
     1,
     2,
     {{"near_kernel", near_args, COUNT(near_args)}, {"near_kernel", nearer_args, COUNT(nearer_args)}},
     1,
     {{.use_count = 3,
       .uses =
           (const struct cox_use[]){
               {.binding = 0, .contract = COX_HALO, .halo_rows = HALO_ROWS},
               {.binding = 1, .contract = COX_HALO, .access = COX_READ_WRITE, .halo_rows = HALO_ROWS},
               {.binding = 2, .access = COX_WRITE}}}}},
    {"turned",
     expect_turned,
     3,
     {{COX_ROWS, COX_READ, 0, 0, 0}, {COX_ROWS, COX_READ, 0, 1, 1}, {COX_ROWS, COX_WRITE, 0, 0, 0}},
     turn_source,
     16,
     1,
     1,
     2,
     {{"turn_kernel", turn_args, COUNT(turn_args)}, {"turn_kernel", return_args, COUNT(return_args)}},
     2,
     {{.use_count = 2,
       .uses = (const struct cox_use[]){{.binding = 0, .contract = COX_WHOLE}, {.binding = 1, .access = COX_WRITE}}},
      {.use_count = 2,
       .uses = (const struct cox_use[]){{.binding = 1, .contract = COX_WHOLE}, {.binding = 2, .access = COX_WRITE}}}}},
    {"counted",
     expect_counted,
     3,
     {{COX_ROWS, COX_READ, 0, 0, 0}, {COX_REDUCE, COX_WRITE, 0, 1, 0}, {COX_ROWS, COX_WRITE, 0, 0, 0}},
     reduce_source,
     16,
     2,
     1,
     2,
     {{"reduce_kernel", count_args, COUNT(count_args)}, {"rows_kernel", count_last_args, COUNT(count_last_args)}},
     2,
     {{.use_count = 2,
       .uses = (const struct cox_use[]){{.binding = 0}, {.binding = 1, .contract = COX_REDUCE, .access = COX_WRITE}},
       .done = take_bins},
      {.use_count = 2, .uses = (const struct cox_use[]){{.binding = 0}, {.binding = 2, .access = COX_WRITE}}}}},
};

/* ---- random numbers and splits ---- */

static uint64_t next_random(uint64_t *seed)
{
    uint64_t x = (*seed += 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static size_t random_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(uint64_t);
}

static cox_status random_init(void *state, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    (void)options;
    *(uint64_t *)state = view->rows;
    return COX_OK;
}

static uint32_t random_below(uint64_t *seed, uint32_t bound)
{
    return (uint32_t)(next_random(seed) % bound);
}

/* Rows below a granule, or the frame's end. */
static uint32_t rows_before(const struct cox_sched_view *view, uint32_t granules)
{
    const uint64_t rows = (uint64_t)granules * view->granule;
    return rows < view->rows ? (uint32_t)rows : view->rows;
}

/* Some band done once more by a device without one, if there is such a device. */
static void random_shadow(uint64_t *seed, const struct cox_sched_view *view, uint32_t granules, struct cox_split *out)
{
    const uint32_t device = random_below(seed, view->device_count), from = random_below(seed, granules);
    const uint32_t to = from + 1 + random_below(seed, granules - from);
    for (uint32_t b = 0; b < out->band_count; b++)
        if (out->bands[b].device == device)
            return;
    out->shadow = (struct cox_band){device, rows_before(view, from), rows_before(view, to) - rows_before(view, from)};
}

/* Up to two bands for each device, boundaries anywhere on the granule; every second time one of the bands is left in
 * the pool; a shadow where a device is idle. */
static cox_status random_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    uint64_t *seed = state;
    const uint32_t granules = (view->rows - 1) / view->granule + 1;
    const uint32_t wanted = 1 + random_below(seed, 2 * view->device_count);
    const uint32_t pool = random_below(seed, 2 * wanted);
    for (uint32_t at = 0, drawn = 1; at < granules; drawn++) {
        const uint32_t take = drawn == wanted ? granules - at : 1 + random_below(seed, granules - at);
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
        random_shadow(seed, view, granules, out);
    out->reason = COX_REASON_GIVEN;
    return COX_OK;
}

/* Up to half of what is left, or all of it, or nothing. */
static void random_next(void *state, const struct cox_sched_view *view, const struct cox_offer *offer,
                        struct cox_grant *out)
{
    uint64_t *seed = state;
    const uint32_t granules = (offer->rows - 1) / view->granule + 1;
    const uint32_t take = random_below(seed, granules / 2 + 2);
    out->rows = take * view->granule < offer->rows ? take * view->granule : offer->rows;
    if (offer->last && take == 0)
        out->rows = offer->rows;
}

static const struct cox_policy random_policy = {
    .name = "random", .state_bytes = random_bytes, .init = random_init, .split = random_split, .next = random_next};

/* ---- a run ---- */

struct suite {
    cox_runtime *runtime;
    bool verbose;
    uint32_t rounds;
    uint32_t passed, failed;
    uint64_t hash;
    uint64_t on_demand, shadows; /* bands */
};

struct frame {
    uint32_t *base[PLANES_MAX]; /* the application's allocation, if it is one */
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
    uint32_t used[PLANES_MAX]; /* elements of a row that count */
    uint32_t height[PLANES_MAX];
    struct frame frames[POOL_MAX];
    char name[96];
};

static bool fail(struct run *run, const char *what)
{
    fprintf(stderr, "FAILED %s: %s\n", run->name, what);
    return false;
}

static void plan_planes(struct run *run, struct cox_binding *bindings)
{
    for (uint32_t i = 0; i < run->contract->plane_count; i++) {
        const struct plane *plane = &run->contract->planes[i];
        bindings[i] = (struct cox_binding){
            .contract = plane->contract, .access = plane->access, .scratch = plane->scratch};
        if (plane->contract == COX_WHOLE || plane->contract == COX_REDUCE) {
            run->used[i] = plane->contract == COX_WHOLE ? TABLE : BINS + 1;
            run->height[i] = 1;
            run->bytes[i] = bindings[i].bytes = 4 * (size_t)run->used[i];
            bindings[i].merge = plane->contract == COX_REDUCE ? merge_bins : NULL;
            continue;
        }
        const uint32_t divisor = plane->half ? 2 : 1;
        run->used[i] = ((plane->turned ? run->shape.rows : run->shape.columns) + divisor - 1) / divisor;
        run->height[i] = ((plane->turned ? run->shape.columns : run->shape.rows) + divisor - 1) / divisor;
        const size_t pitch = cox_runtime_pitch_bytes(run->suite->runtime, 4 * (size_t)run->used[i]);
        run->shape.pitch[i] = pitch / 4;
        run->bytes[i] = pitch * run->height[i];
        bindings[i].pitch_bytes = pitch;
        bindings[i].row_divisor = divisor;
        bindings[i].halo_rows = plane->contract == COX_HALO ? HALO_ROWS : 0;
    }
}

static bool make_frame(struct run *run, struct frame *frame, uint64_t *seed)
{
    for (uint32_t i = 0; i < run->contract->plane_count; i++) {
        cox_status status;
        if (run->contract->planes[i].scratch) {
            if (!(frame->want[i] = malloc(run->bytes[i])))
                return false;
            continue;
        }
        if (run->memory == MEMORY_COMMON && frame != run->frames && run->contract->planes[i].access == COX_READ) {
            frame->data[i] = run->frames[0].data[i];
            frame->want[i] = run->frames[0].want[i];
            frame->buffers[i] = run->frames[0].buffers[i];
            continue;
        }
        if (run->memory == MEMORY_APPLICATION) {
            /* Aligned as little as the kernels allow, with a canary behind. */
            char *room = malloc(run->bytes[i] + CANARY + 64);
            if (!room)
                return false;
            char *data = room + (4 - (uintptr_t)room % 64 + 64) % 64;
            memset(data + run->bytes[i], 0x5c, CANARY / 2);
            frame->base[i] = (uint32_t *)(void *)room;
            status = cox_buffer_wrap(run->suite->runtime, data, run->bytes[i], NULL, NULL, &frame->buffers[i]);
        } else {
            status = cox_buffer_create(run->suite->runtime, run->bytes[i], &frame->buffers[i]);
        }
        frame->want[i] = malloc(run->bytes[i]);
        if (status || !frame->want[i])
            return false;
        frame->data[i] = cox_buffer_data(frame->buffers[i]);
        /* The same values whatever the pitch is, which depends on the devices. */
        for (uint32_t r = 0; r < run->height[i]; r++)
            for (uint32_t c = 0; c < run->used[i]; c++)
                frame->data[i][r * run->shape.pitch[i] + c] = (uint32_t)next_random(seed);
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
    char what[160];
    for (uint32_t i = 0; i < run->contract->plane_count; i++) {
        if (run->contract->planes[i].scratch)
            continue;
        for (uint32_t r = 0; r < run->height[i]; r++)
            for (uint32_t c = 0; c < run->used[i]; c++) {
                const size_t at = r * run->shape.pitch[i] + c;
                if (frame->data[i][at] != frame->want[i][at]) {
                    snprintf(what, sizeof what, "plane %u, row %u, column %u: %08x instead of %08x", i, r, c,
                             frame->data[i][at], frame->want[i][at]);
                    return fail(run, what);
                }
                *hash = (*hash ^ frame->data[i][at]) * 0x100000001b3u;
            }
        if (run->memory == MEMORY_APPLICATION)
            for (size_t b = 0; b < CANARY / 2; b++)
                if (((const unsigned char *)frame->data[i])[run->bytes[i] + b] != 0x5c)
                    return fail(run, "bytes behind a buffer were overwritten");
    }
    return true;
}

static bool play(struct run *run, cox_session *session)
{
    const uint32_t pool = run->in_flight + 1;
    uint64_t hash = 0xcbf29ce484222325u, seed = 5;
    for (uint32_t round = 0; round < run->suite->rounds; round++) {
        for (uint32_t f = 0; f < pool; f++) {
            struct frame *frame = &run->frames[f];
            frame->params.add = (uint32_t)next_random(&seed);
            frame->done = 0;
            for (uint32_t i = 0; i < run->contract->plane_count; i++) {
                frame->params.pitch[i] = (int32_t)run->shape.pitch[i];
                if (run->contract->planes[i].access == COX_WRITE && frame->data[i])
                    memset(frame->data[i], 0xbb, run->bytes[i]);
            }
            const struct cox_frame submitted = {
                .buffers = frame->buffers, .buffer_count = run->contract->plane_count, .params = &frame->params};
            if (cox_session_submit(session, &submitted, on_done, frame) != COX_OK)
                return fail(run, "submit");
            run->shape.add = frame->params.add;
            run->contract->expect(&run->shape, frame->want); /* while the devices work */
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
    struct cox_session_info info;
    cox_session_info(session, &info, sizeof info);
    if (info.device_count != cox_runtime_device_count(run->suite->runtime))
        return fail(run, "a device did not take part");
    for (uint32_t d = 0; d < info.device_count; d++)
        if (info.devices[d].lost) /* one that is late with its last band, on a busy machine, is not */
            return fail(run, "a device left the session");
    return true;
}

static void run_one(struct suite *suite, const struct contract *contract, uint32_t columns, uint32_t rows,
                    enum memory memory, uint32_t in_flight)
{
    struct run run = {.suite = suite,
                      .contract = contract,
                      .shape = {.columns = columns, .rows = rows},
                      .memory = memory,
                      .in_flight = in_flight};
    struct cox_binding bindings[PLANES_MAX];
    const struct cox_variant variant = {.source = contract->source,
                                        .local_columns = contract->local_columns,
                                        .local_rows = contract->local_rows,
                                        .item_rows = contract->item_rows};
    struct cox_stage stages[2];
    struct cox_pass passes[2];
    cox_session *session = NULL;
    uint64_t seed = rows * 1000 + columns;
    bool good = true;
    snprintf(run.name, sizeof run.name, "%s, %u x %u, %s, %u in flight", contract->name, columns, rows,
             memory_names[memory], in_flight);
    plan_planes(&run, bindings);
    for (uint32_t s = 0; s < contract->stage_count; s++)
        stages[s] = (struct cox_stage){.kernel = contract->stages[s].kernel,
                                       .columns = columns,
                                       .variant_count = 1,
                                       .variants = &variant,
                                       .arg_count = contract->stages[s].arg_count,
                                       .args = contract->stages[s].args};
    for (uint32_t p = 0; p < contract->pass_count; p++) {
        const bool turned = contract->planes[1].turned && p == 0;
        passes[p] = contract->passes[p];
        passes[p].rows = turned ? columns : rows;
        passes[p].stages = &stages[p];
        passes[p].stage_count = contract->pass_count == 1 ? 2 : 1;
        stages[p].columns = turned ? rows : columns;
    }
    for (uint32_t f = 0; f <= in_flight && good; f++)
        good = make_frame(&run, &run.frames[f], &seed) || fail(&run, "no memory");
    if (good &&
        cox_session_create(suite->runtime,
                           COX_SESSION_PARAMS(.rows = rows, .device_timeout_ns = 60000000000 /* a busy machine */,
                                              .binding_count = contract->plane_count, .bindings = bindings,
                                              .stage_count = contract->pass_count ? 0 : contract->stage_count,
                                              .stages = stages, .pass_count = contract->pass_count, .passes = passes,
                                              .params_bytes = sizeof(struct params), .custom_policy = &random_policy,
                                              .split_each_pass = in_flight > 1, .in_flight = in_flight,
                                              .allow_in_place = true, .no_warmup = in_flight == 3, .report = on_report,
                                              .report_user = suite),
                           &session) != COX_OK)
        good = fail(&run, "session");
    good = good && play(&run, session) && all_devices_helped(&run, session);
    cox_session_destroy(&session);
    for (uint32_t f = POOL_MAX; f-- > 0;)
        drop_frame(&run, &run.frames[f]);
    suite->passed += good;
    suite->failed += !good;
    if (suite->verbose)
        printf("%s %s\n", good ? "passed" : "FAILED", run.name);
}

/* ---- main ---- */

static void on_log(void *user, enum cox_log_level level, const char *line)
{
    struct suite *suite = user;
    if (suite->verbose || level == COX_LOG_ERROR)
        fprintf(stderr, "%s\n", line);
}

static const uint32_t sizes[][2] = {{1, 1}, {7, 3}, {65, 130}, {301, 97}, {1279, 721}};
static const uint32_t small_sizes[][2] = {{1, 1}, {7, 3}, {19, 21}};

int main(int argc, char **argv)
{
    struct suite suite = {.rounds = 3, .hash = 0xcbf29ce484222325u};
    struct cox_runtime_params params = {.log = on_log, .log_user = &suite, .log_level = COX_LOG_INFO};
    uint32_t expected = 0;
    const char *mode = NULL;
    const char *only = NULL;
    bool small = false;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int a = 1; a < argc; a++) {
        const char *value = a + 1 < argc ? argv[a + 1] : NULL;
        if (!strcmp(argv[a], "--devices") && value)
            params.devices = argv[++a];
        else if (!strcmp(argv[a], "--cache") && value)
            params.cache_dir = argv[++a];
        else if (!strcmp(argv[a], "--expect") && value)
            expected = (uint32_t)atoi(argv[++a]);
        else if (!strcmp(argv[a], "--mode") && value)
            mode = argv[++a];
        else if (!strcmp(argv[a], "--only") && value)
            only = argv[++a];
        else if (!strcmp(argv[a], "--small"))
            small = true;
        else if (!strcmp(argv[a], "--verbose"))
            suite.verbose = true;
        else {
            fprintf(stderr, "backend_suite: unknown argument %s\n", argv[a]);
            return 2;
        }
    }
    const cox_status status = cox_runtime_create(&suite.runtime, &params);
    if (status) {
        fprintf(stderr, "backend_suite: %s\n", cox_status_text(status));
        return status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE ? 77 : 1;
    }
    const uint32_t count = cox_runtime_device_count(suite.runtime);
    if (expected && count != expected) {
        fprintf(stderr, "FAILED %u devices instead of %u\n", count, expected);
        suite.failed++;
    }
    for (uint32_t d = 0; d < count; d++) {
        struct cox_device_info info;
        if (cox_runtime_device_info(suite.runtime, d, &info, sizeof info) != COX_OK)
            return 1;
        printf("device %u: %s (%s), %s, %s, %u units\n", d, info.name, info.platform, cox_device_type_name(info.type),
               cox_memory_mode_name(info.mode), info.compute_units);
        if (mode && strcmp(mode, cox_memory_mode_name(info.mode)) != 0) {
            fprintf(stderr, "FAILED device %u is %s instead of %s\n", d, cox_memory_mode_name(info.mode), mode);
            suite.failed++;
        }
    }
    if (small)
        suite.rounds = 2;
    const uint32_t size_count = small ? COUNT(small_sizes) : COUNT(sizes);
    for (uint32_t s = 0; s < size_count; s++)
        for (uint32_t c = 0; c < COUNT(contracts); c++)
            for (enum memory memory = 0; memory < MEMORY_KINDS; memory++) {
                const uint32_t *size = small ? small_sizes[s] : sizes[s];
                if ((only && strcmp(only, contracts[c].name) != 0) ||
                    (contracts[c].pass_count && size[1] < HALO_ROWS)) /* which is refused */
                    continue;
                run_one(&suite, &contracts[c], size[0], size[1], memory,
                        memory == MEMORY_COMMON ? 2 + (s + c) % 3 : 1 + (s + c + 2 * memory) % 4);
            }
    cox_runtime_destroy(&suite.runtime);
    printf("%" PRIu64 " bands on demand, %" PRIu64 " shadows\n", suite.on_demand, suite.shadows);
    if (!only && (suite.on_demand == 0 || (count > 1 && suite.shadows == 0))) {
        fprintf(stderr, "FAILED nothing was handed out on demand, or no shadow done\n");
        suite.failed++;
    }
    printf("hash %016" PRIx64 "\n%u passed, %u failed\n", suite.hash, suite.passed, suite.failed);
    return suite.failed != 0;
}
