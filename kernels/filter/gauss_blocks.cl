/* Recursive Gaussian in blocks: lines are cut into blocks of COX_BLOCK samples, which are filtered
 * in parallel.
 *
 * The filter is that of gauss.cl. Because it is linear, its blocks can run at once (Nehab, Maximo,
 * Lima, Hoppe, GPU-efficient recursive filtering and summed-area tables, SIGGRAPH Asia 2011). There
 * are three steps along the rows and three down the columns:
 *   sums   The step computes the states in which the two filters leave each block. The backward
 *          filter runs over the results of the forward filter. Each filter is taken to be at rest
 *          when it enters the block. The states are sums of the samples. The host prepares their
 *          weights.
 *   carry  The step goes from block to block along a line. It computes the true states in which
 *          the filters enter each block. A state is the sum of the block's sums and what is left
 *          of the state before the block (the matrix `over`). Backwards, the effect of the
 *          forward filter's state in the block is added (`through`).
 *   apply  The step filters each block forwards and backwards from these states.
 * If a line ends within a block, its last sample fills the block, just as the filter continues a
 * line beyond its end.
 *
 * Kernels: `gauss_row_sums`, `gauss_row_carry`, `gauss_row_apply` along the rows,
 * `gauss_column_sums`, `gauss_column_carry`, `gauss_column_apply` down the columns.
 *
 * Geometry:
 *   dimension 0, row sums and row apply    blocks of the row's COX_LINES channels
 *   dimension 0, row carry                 channels
 *   dimension 0, down the columns          groups of COX_WIDTH * COX_GROUPS elements
 *   dimension 1, along the rows            groups of COX_WIDTH * COX_GROUPS rows
 *   dimension 1, down the columns          groups of COX_BLOCK rows
 * Any local size. Work-items and lanes past the end store nothing that is read.
 *
 * Build defines: COX_WIDTH (detmath.clh), COX_GROUPS, COX_LINES (channels). Sizes, pitches and
 * coefficients are parameters. Access: `in` and `out` by rows; `row_sums` and `states` are each
 * band's own; `column_sums` ROWS, and WHOLE for gauss_column_carry, which does all rows. Row r of
 * these three belongs to the COX_BLOCK rows of the frame from r * COX_BLOCK on. A record holds its
 * quantities `stride` floats apart. Every buffer begins at the row its `origin` says. Numerics: see
 * detmath.clh and gauss.cl. Blocks are aligned to the frame, not to the band, and each is filtered
 * by one work-item in one order, so the cut does not matter.
 * SPDX-License-Identifier: Apache-2.0 */
#include "filter/gauss.clh"

#define COX_BLOCK 32

struct gauss_blocks_params {
    int length; /* of a line, in samples */
    int blocks; /* in a line */
    int columns; /* down the columns: elements in a row */
    int in_pitch, out_pitch, sums_pitch, states_pitch;
    int stride; /* of the quantities of a record */
    struct gauss_recursion step;
    /* the backward filter's state beyond the last sample from the forward one's there */
    float back[9];
    float over[9], through[9];
};

/* What a sample adds to the sums of its block, for w, d1 and d2; to the backward sums in units of
 * b. */
struct gauss_sums_params {
    struct gauss_blocks_params blocks;
    /* rusticl 22.3 misjudges the size of arrays of arrays */
    float forward[3 * COX_BLOCK], backward[3 * COX_BLOCK];
};

/* Contents of a record of sums; a record of `states` has FORWARD and BACKWARD from its
 * beginning. */
enum { LEVEL, LAST, FORWARD, BACKWARD = FORWARD + 3 };

#define BLOCK_SAMPLES real x[COX_GROUPS][COX_BLOCK]
#define EACH_SAMPLE(i) _Pragma("unroll") for (int i = 0; i < COX_BLOCK; i++)
#define EACH_PART(p) _Pragma("unroll") for (int p = 0; p < 3; p++)
#define EACH_SAMPLE_BACK(i) _Pragma("unroll") for (int i = COX_BLOCK - 1; i >= 0; i--)

static inline real quantity(__global const float *record, int index, int stride)
{
    return LOAD_VECTOR(record + (size_t)index * stride);
}

static inline void put_quantity(real x, __global float *record, int index, int stride)
{
    STORE_VECTOR(x, record + (size_t)index * stride);
}

static inline void put_state(struct state s, __global float *record, int index, int stride)
{
    put_quantity(s.w, record, index, stride);
    put_quantity(s.d1, record, index + 1, stride);
    put_quantity(s.d2, record, index + 2, stride);
}

static inline struct state get_state(__global const float *record, int index, int stride)
{
    return (struct state){quantity(record, index, stride), REAL(0.0f),
                          quantity(record, index + 1, stride), quantity(record, index + 2, stride)};
}

/* --- The three steps --- */

/* The record of group g is `record` + g * COX_WIDTH. */
static inline void sum_up(BLOCK_SAMPLES, __global float *record, int stride,
                          const struct gauss_sums_params *t)
{
    real level[COX_GROUPS], forward[COX_GROUPS][3], backward[COX_GROUPS][3];
    EACH_GROUP {
        level[g] = x[g][0];
        EACH_PART(p) forward[g][p] = backward[g][p] = REAL(0.0f);
    }
    EACH_SAMPLE (i)
        EACH_GROUP {
            const real u = x[g][i] - level[g];
            EACH_PART (p) {
                forward[g][p] = MULADD(REAL(t->forward[p * COX_BLOCK + i]), u, forward[g][p]);
                backward[g][p] = MULADD(REAL(t->backward[p * COX_BLOCK + i]), u, backward[g][p]);
            }
        }
    EACH_GROUP {
        __global float *to = record + g * COX_WIDTH;
        put_quantity(level[g], to, LEVEL, stride);
        put_quantity(x[g][COX_BLOCK - 1], to, LAST, stride);
        EACH_PART (p) {
            put_quantity(settle(forward[g][p]), to, FORWARD + p, stride);
            put_quantity(settle(REAL(t->blocks.step.b) * backward[g][p]), to, BACKWARD + p, stride);
        }
    }
}

/* Carry the states over the blocks of a vector of lines. Record b of the sums is `sums` + b *
 * sums_step. The states of block b go to `states` + b * states_step. The two may be the
 * same records. A few blocks are loaded at once to hide the latency of memory. */
static inline void carry(__global const float *sums, size_t sums_step, __global float *states,
                         size_t states_step, const struct gauss_blocks_params *k)
{
    enum { BATCH = COX_WIDTH == 1 ? 16 : 8 };
    struct state s = {settle(quantity(sums, LEVEL, k->stride)), REAL(0.0f), REAL(0.0f), REAL(0.0f)};
    for (int first = 0; first < k->blocks; first += BATCH) {
        real level[BATCH];
        struct state sum[BATCH];
        _Pragma("unroll") for (int i = 0; i < BATCH; i++) {
            __global const float *from = sums + (size_t)min(first + i, k->blocks - 1) * sums_step;
            level[i] = quantity(from, LEVEL, k->stride);
            sum[i] = get_state(from, FORWARD, k->stride);
        }
        _Pragma("unroll") for (int i = 0; i < BATCH; i++) {
            if (first + i >= k->blocks)
                break;
            put_state(s, states + (size_t)(first + i) * states_step, 0, k->stride);
            s = carry_over(k->over, s, level[i], sum[i].w, sum[i].d1, sum[i].d2);
        }
    }
    const real last = quantity(sums + (size_t)(k->blocks - 1) * sums_step, LAST, k->stride);
    s = carry_over(k->back, s, last, REAL(0.0f), REAL(0.0f), REAL(0.0f));
    for (int end = k->blocks; end > 0; end -= BATCH) {
        real level[BATCH];
        struct state sum[BATCH], forward[BATCH];
        _Pragma("unroll") for (int i = 0; i < BATCH; i++) {
            const size_t b = (size_t)max(end - 1 - i, 0);
            level[i] = quantity(sums + b * sums_step, LEVEL, k->stride);
            sum[i] = get_state(sums + b * sums_step, BACKWARD, k->stride);
            forward[i] = get_state(states + b * states_step, 0, k->stride);
        }
        _Pragma("unroll") for (int i = 0; i < BATCH; i++) {
            if (end - 1 - i < 0)
                break;
            put_state(s, states + (size_t)(end - 1 - i) * states_step, 3, k->stride);
            const real away = forward[i].w - level[i];
            s = carry_over(k->over, s, level[i],
                           sum[i].w + product(k->through, away, forward[i].d1, forward[i].d2),
                           sum[i].d1 + product(k->through + 3, away, forward[i].d1, forward[i].d2),
                           sum[i].d2 + product(k->through + 6, away, forward[i].d1, forward[i].d2));
        }
    }
}

static inline void apply(BLOCK_SAMPLES, __global const float *states, int stride,
                         struct gauss_recursion step)
{
    struct state s[COX_GROUPS];
    EACH_GROUP s[g] = get_state(states + g * COX_WIDTH, 0, stride);
    EACH_SAMPLE (i)
        EACH_GROUP x[g][i] = advance(&s[g], x[g][i], step);
    EACH_GROUP s[g] = get_state(states + g * COX_WIDTH, 3, stride);
    EACH_SAMPLE_BACK (i)
        EACH_GROUP x[g][i] = advance(&s[g], x[g][i], step);
}

/* --- Along the rows --- */

/* A block of COX_LANES rows: `row` is the first one's, of `count`; its samples begin at `at`, of
 * `length`. */
struct row_block {
    int count, pitch, at, length, line;
};

#if COX_WIDTH > 1
/* COX_WIDTH vectors as the rows of a matrix, transposed: each round moves one bit of the lane's
 * number to the vector's number. */
static inline void transpose(real *x)
{
    for (int round = 1; round < COX_WIDTH; round *= 2) {
        real y[COX_WIDTH];
        _Pragma("unroll") for (int i = 0; i < COX_WIDTH / 2; i++) {
            y[2 * i].even = x[i].lo;
            y[2 * i].odd = x[i + COX_WIDTH / 2].lo;
            y[2 * i + 1].even = x[i].hi;
            y[2 * i + 1].odd = x[i + COX_WIDTH / 2].hi;
        }
        _Pragma("unroll") for (int i = 0; i < COX_WIDTH; i++) x[i] = y[i];
    }
}
#endif

static inline bool is_full(const struct row_block *b)
{
    return COX_LINES == 1 && b->count >= COX_LANES && b->at + COX_BLOCK <= b->length;
}

static inline bool on_16_bytes(__global const void *p, int pitch)
{
    return (((size_t)p | (size_t)pitch) & 15) == 0;
}

static inline void load_rows(BLOCK_SAMPLES, __global const uchar *row, const struct row_block *b)
{
#if COX_WIDTH > 1
    if (is_full(b)) {
        EACH_GROUP
            for (int i = 0; i < COX_BLOCK; i += COX_WIDTH) {
                for (int lane = 0; lane < COX_WIDTH; lane++)
                    x[g][i + lane] =
                        clean_real(LOAD_VECTOR((__global const float *)(row +
                                                                        (size_t)(g * COX_WIDTH +
                                                                                 lane) *
                                                                            b->pitch) +
                                               b->at + i));
                transpose(x[g] + i);
            }
        return;
    }
#else
    if (is_full(b) && on_16_bytes(row, b->pitch)) {
        __global const float4 *from = (__global const float4 *)((__global const float *)row +
                                                                b->at);
        _Pragma("unroll") for (int i = 0; i < COX_BLOCK / 4; i++) {
            const float4 four = from[i];
            x[0][4 * i] = clean_real(four.x);
            x[0][4 * i + 1] = clean_real(four.y);
            x[0][4 * i + 2] = clean_real(four.z);
            x[0][4 * i + 3] = clean_real(four.w);
        }
        return;
    }
#endif
    EACH_SAMPLE (i)
        EACH_GROUP {
            float lanes[COX_WIDTH];
            const int at = min(b->at + i, b->length - 1) * COX_LINES + b->line;
            for (int lane = 0; lane < COX_WIDTH; lane++)
                lanes[lane] = ((__global const float *)(row + (size_t)min(g * COX_WIDTH + lane,
                                                                          b->count - 1) *
                                                                  b->pitch))[at];
            x[g][i] = clean_real(FROM_ARRAY(real, lanes));
        }
}

static inline void store_rows(BLOCK_SAMPLES, __global uchar *row, const struct row_block *b)
{
#if COX_WIDTH > 1
    if (is_full(b)) {
        EACH_GROUP
            for (int i = 0; i < COX_BLOCK; i += COX_WIDTH) {
                transpose(x[g] + i);
                for (int lane = 0; lane < COX_WIDTH; lane++)
                    STORE_VECTOR(x[g][i + lane],
                                 (__global float *)(row +
                                                    (size_t)(g * COX_WIDTH + lane) * b->pitch) +
                                     b->at + i);
            }
        return;
    }
#else
    if (is_full(b) && on_16_bytes(row, b->pitch)) {
        __global float4 *to = (__global float4 *)((__global float *)row + b->at);
        _Pragma("unroll") for (int i = 0; i < COX_BLOCK / 4; i++)
            to[i] = (float4)(x[0][4 * i], x[0][4 * i + 1], x[0][4 * i + 2], x[0][4 * i + 3]);
        return;
    }
#endif
    EACH_SAMPLE (i)
        EACH_GROUP {
            float lanes[COX_WIDTH];
            TO_ARRAY(x[g][i], lanes);
            for (int lane = 0;
                 lane < COX_WIDTH && g * COX_WIDTH + lane < b->count && b->at + i < b->length;
                 lane++)
                ((__global float *)(row + (size_t)(g * COX_WIDTH + lane) *
                                              b->pitch))[(b->at + i) * COX_LINES + b->line] =
                    lanes[lane];
        }
}

#define RECORD_FLOATS ((BACKWARD + 3) * COX_BLOCK)
#define ROW_RECORD(y, index)                                                            \
    (ROW_OF(__global float, row_sums, (y) / COX_BLOCK, row_sums_origin, k.sums_pitch) + \
     (size_t)(index) * RECORD_FLOATS + (y) % COX_BLOCK)

__kernel void gauss_row_sums(__global const uchar *in, __global uchar *row_sums, int in_origin,
                             int row_sums_origin, struct gauss_sums_params params, int first,
                             int rows)
{
    const struct gauss_sums_params t = params; /* before any branch, as in gauss.cl */
    const struct gauss_blocks_params k = t.blocks;
    const int index = (int)get_global_id(0), y = first + (int)get_global_id(1) * COX_LANES;
    if (y >= first + rows || index >= k.blocks * COX_LINES) /* parameters that are all zeros */
        return;
    const struct row_block b = {first + rows - y, k.in_pitch, index / COX_LINES * COX_BLOCK,
                                k.length, index % COX_LINES};
    BLOCK_SAMPLES;
    load_rows(x, ROW_OF(__global const uchar, in, y, in_origin, k.in_pitch), &b);
    sum_up(x, ROW_RECORD(y, index), k.stride, &t);
}

__kernel void gauss_row_carry(__global uchar *row_sums, int row_sums_origin,
                              struct gauss_blocks_params params, int first, int rows)
{
    const struct gauss_blocks_params k = params; /* before any branch, as in gauss.cl */
    const int c = (int)get_global_id(0), y = first + (int)get_global_id(1) * COX_LANES;
    if (y >= first + rows || c >= COX_LINES || k.blocks <= 0)
        return;
    __global float *record = ROW_RECORD(y, c);
    EACH_GROUP carry(record + g * COX_WIDTH, COX_LINES * RECORD_FLOATS,
                     record + g * COX_WIDTH + FORWARD * k.stride, COX_LINES * RECORD_FLOATS, &k);
}

__kernel void gauss_row_apply(__global const uchar *in, __global const uchar *row_sums,
                              __global uchar *out, int in_origin, int row_sums_origin,
                              int out_origin, struct gauss_blocks_params params, int first,
                              int rows)
{
    const struct gauss_blocks_params k = params; /* before any branch, as in gauss.cl */
    const int index = (int)get_global_id(0), y = first + (int)get_global_id(1) * COX_LANES;
    if (y >= first + rows || index >= k.blocks * COX_LINES)
        return;
    struct row_block b = {first + rows - y, k.in_pitch, index / COX_LINES * COX_BLOCK, k.length,
                          index % COX_LINES};
    BLOCK_SAMPLES;
    load_rows(x, ROW_OF(__global const uchar, in, y, in_origin, k.in_pitch), &b);
    apply(x, ROW_RECORD(y, index) + FORWARD * k.stride, k.stride, k.step);
    b.pitch = k.out_pitch;
    store_rows(x, ROW_OF(__global uchar, out, y, out_origin, k.out_pitch), &b);
}

/* --- Down the columns --- */

static inline void load_columns(BLOCK_SAMPLES, __global const uchar *in, int origin, int e, int y,
                                int end, const struct gauss_blocks_params *k)
{
    EACH_SAMPLE (i)
    EACH_GROUP x[g][i] = load_reals(ROW_OF(__global const float, in, min(y + i, end - 1), origin,
                                           k->in_pitch),
                                    e + g * COX_WIDTH, k->columns);
}

#define COLUMN_RECORD(type, buffer, y, e, pitch) \
    (ROW_OF(type, buffer, (y) / COX_BLOCK, buffer##_origin, pitch) + (e))

__kernel void gauss_column_sums(__global const uchar *in, __global uchar *column_sums,
                                int in_origin, int column_sums_origin,
                                struct gauss_sums_params params, int first, int rows)
{
    const struct gauss_sums_params t = params; /* before any branch, as in gauss.cl */
    const struct gauss_blocks_params k = t.blocks;
    const int e = (int)get_global_id(0) * COX_LANES, y = first + (int)get_global_id(1) * COX_BLOCK;
    if (y >= first + rows || e >= k.columns)
        return;
    BLOCK_SAMPLES;
    load_columns(x, in, in_origin, e, y, first + rows, &k);
    sum_up(x, COLUMN_RECORD(__global float, column_sums, y, e, k.sums_pitch), k.stride, &t);
}

__kernel void gauss_column_carry(__global const uchar *column_sums, __global uchar *states,
                                 int column_sums_origin, int states_origin,
                                 struct gauss_blocks_params params, int first, int rows)
{
    const struct gauss_blocks_params k = params; /* before any branch, as in gauss.cl */
    const int e = (int)get_global_id(0) * COX_LANES;
    if (get_global_id(1) > 0 || rows <= 0 || e >= k.columns)
        return;
    EACH_GROUP carry(COLUMN_RECORD(__global const float, column_sums, first, e, k.sums_pitch) +
                         g * COX_WIDTH,
                     k.sums_pitch / sizeof(float),
                     COLUMN_RECORD(__global float, states, first, e, k.states_pitch) +
                         g * COX_WIDTH,
                     k.states_pitch / sizeof(float), &k);
}

__kernel void gauss_column_apply(__global const uchar *in, __global const uchar *states,
                                 __global uchar *out, int in_origin, int states_origin,
                                 int out_origin, struct gauss_blocks_params params, int first,
                                 int rows)
{
    const struct gauss_blocks_params k = params; /* before any branch, as in gauss.cl */
    const int e = (int)get_global_id(0) * COX_LANES, y = first + (int)get_global_id(1) * COX_BLOCK;
    if (y >= first + rows || e >= k.columns)
        return;
    BLOCK_SAMPLES;
    load_columns(x, in, in_origin, e, y, first + rows, &k);
    apply(x, COLUMN_RECORD(__global const float, states, y, e, k.states_pitch), k.stride, k.step);
    EACH_SAMPLE (i)
        if (y + i < first + rows)
            EACH_GROUP STORE_ROW(float, x[g][i],
                                 ROW_OF(__global float, out, y + i, out_origin, k.out_pitch),
                                 e + g * COX_WIDTH, k.columns);
}
