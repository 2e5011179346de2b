/* The recursive Gaussian on the host's side: passes, coefficients.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"
#include "sources.h"
#include <math.h>
#include <stdio.h>

static const double SIGMA_LEAST = 0.5, SIGMA_MOST = 128;

/* The recursion: struct gauss_recursion of gauss.clh. */
struct step {
    float b, c1, c2;
};

/* One direction's parameters: struct gauss_params of gauss.cl. */
struct direction {
    int32_t length, columns, in_pitch, out_pitch;
    struct step step;
    float back[9];
};

struct params {
    struct direction first, second;
};
_Static_assert(sizeof(struct params) <= sizeof(struct cox_constants), "fits in the public block");

/* COX_BLOCK, and the quantities of a record of sums and of states. */
enum { BLOCK = 32, SUMS = 8, STATES = 6 };

/* One direction's parameters in blocks: struct gauss_blocks_params of gauss_blocks.cl. */
struct blocks_direction {
    int32_t length, blocks, columns, in_pitch, out_pitch, sums_pitch, states_pitch, stride;
    struct step step;
    float back[9], over[9], through[9];
};

/* What a sample adds to the sums of its block: struct gauss_sums_params. */
struct sums_direction {
    struct blocks_direction blocks;
    float forward[3][BLOCK], backward[3][BLOCK];
};

struct blocks_params {
    struct sums_direction along, down;
};
_Static_assert(sizeof(struct blocks_params) <= sizeof(struct cox_constants),
               "fits in the public block");

static cox_status read_shape(struct cox_filter_shape *to, const struct cox_filter_shape *from)
{
    const cox_status status = cox__plan_shape(to, from);
    if (status)
        return status;

    const bool good = to->sample == COX_FILTER_FLOAT && !to->guide_pitch_bytes && !to->radius_x &&
                      !to->radius_y &&
                      cox__plan_pitch_ok(to->out_pitch_bytes, 4 * (size_t)cox__plan_columns(to));
    if (!good)
        return COX_E_INVALID;
    return COX_OK;
}

static bool in_blocks(const struct cox_filter_shape *shape)
{
    return shape->form == COX_FILTER_OVERLAP;
}

/* --- Passes of lines --- */

/* Vectors of lines that a work-item on a CPU filters together. */
enum { GROUPS = 2 };

/* A pass that filters into rows of `lines` interleaved lines. */
static void add_stage(struct cox__plan *plan, uint32_t lines, uint32_t from, uint32_t to,
                      size_t params)
{
    char cpu_options[64], gpu_options[64];

    snprintf(cpu_options, sizeof cpu_options, "-DCOX_LINES=%u -DCOX_GROUPS=%d", lines, GROUPS);
    snprintf(gpu_options, sizeof gpu_options, "-DCOX_LINES=%u -DCOX_GROUPS=1", lines);

    const struct cox__form cpu = {
        .vector = COX__PLAN_VECTOR, .item_rows = GROUPS * COX__PLAN_VECTOR, .options = cpu_options};
    const struct cox__form gpu = {.vector = 1, .local_rows = 32, .options = gpu_options};

    cox__plan_stage(plan, "gauss_lines", cox__source_filter_gauss, lines,
                    (const uint32_t[]){from, to}, 2, params, sizeof(struct direction), &cpu, &gpu);
}

static void add_pass(struct cox__plan *plan, const char *name, uint32_t rows, uint32_t lines,
                     uint32_t from, uint32_t to, size_t params)
{
    cox__plan_pass(plan, name, rows);
    cox__plan_use(plan, from, COX__WHOLE, COX__READ, 0);
    cox__plan_use(plan, to, COX__ROWS, COX__WRITE, 0);
    add_stage(plan, lines, from, to, params);
}

/* Bytes of a row of scratch: `straight` has the plane's shape, `turned` a row for each element. */
static size_t straight_pitch(const struct cox_filter_shape *shape)
{
    return cox__plan_scratch_pitch(4 * (size_t)cox__plan_columns(shape));
}

static size_t turned_pitch(const struct cox_filter_shape *shape)
{
    return cox__plan_scratch_pitch(4 * (size_t)shape->height);
}

static void add_lines_passes(struct cox__plan *plan, const struct cox_filter_shape *shape,
                             uint32_t in, uint32_t out)
{
    const uint32_t columns = cox__plan_columns(shape);
    const uint32_t turned = cox__plan_binding(plan, "turned", COX__WRITE, turned_pitch(shape),
                                              columns, true);

    add_pass(plan, "columns", columns, 1, in, turned, offsetof(struct params, first));
    add_pass(plan, "rows", shape->height, shape->channels, turned, out,
             offsetof(struct params, second));
}

/* --- Passes of blocks --- */

static uint32_t blocks_of(uint32_t samples)
{
    return (samples + BLOCK - 1) / BLOCK;
}

/* Floats between the quantities of a record down the columns; a multiple of a work-item. */
static size_t column_stride(const struct cox_filter_shape *shape)
{
    return (size_t)blocks_of(cox__plan_columns(shape)) * BLOCK;
}

static size_t row_sums_pitch(const struct cox_filter_shape *shape)
{
    return cox__plan_scratch_pitch(sizeof(float) * SUMS * BLOCK * blocks_of(shape->width) *
                                   shape->channels);
}

static size_t column_pitch(const struct cox_filter_shape *shape, size_t quantities)
{
    return cox__plan_scratch_pitch(sizeof(float) * quantities * column_stride(shape));
}

/* Which of a work-item's two dimensions has lanes: the rows if it filters along them, the elements
 * if it filters down the columns. */
static void add_blocks_stage(struct cox__plan *plan, const struct cox_filter_shape *shape,
                             const char *kernel, bool along, bool sums, uint32_t columns,
                             const uint32_t *bindings, uint32_t binding_count)
{
    enum { LANES = GROUPS * COX__PLAN_VECTOR };
    char cpu_options[64], gpu_options[64];
    snprintf(cpu_options, sizeof cpu_options, "-DCOX_LINES=%u -DCOX_GROUPS=%d", shape->channels,
             GROUPS);
    snprintf(gpu_options, sizeof gpu_options, "-DCOX_LINES=%u -DCOX_GROUPS=1", shape->channels);

    struct cox__form cpu = {.vector = COX__PLAN_VECTOR,
                            .item_columns = LANES,
                            .item_rows = BLOCK,
                            .options = cpu_options};
    struct cox__form gpu = {.vector = 1,
                            .local_columns = 64,
                            .local_rows = 1,
                            .item_rows = BLOCK,
                            .options = gpu_options};
    size_t offset = offsetof(struct blocks_params, down);
    if (along) {
        cpu.item_columns = 1;
        cpu.item_rows = LANES;
        gpu.local_columns = 4;
        gpu.local_rows = BLOCK;
        gpu.item_rows = 1;
        offset = offsetof(struct blocks_params, along);
    }

    const size_t bytes = sums ? sizeof(struct sums_direction) : sizeof(struct blocks_direction);
    cox__plan_stage(plan, kernel, cox__source_filter_gauss_blocks, columns, bindings, binding_count,
                    offset, bytes, &cpu, &gpu);
}

static void add_blocks_passes(struct cox__plan *plan, const struct cox_filter_shape *shape,
                              uint32_t in, uint32_t out)
{
    const uint32_t height = shape->height, blocks = blocks_of(height);
    const uint32_t columns = cox__plan_columns(shape);
    const uint32_t records = blocks_of(shape->width) * shape->channels;

    const uint32_t row_sums = cox__plan_binding(plan, "row sums", COX__READ_WRITE,
                                                row_sums_pitch(shape), blocks, true);
    const uint32_t across = cox__plan_binding(plan, "rows", COX__WRITE, straight_pitch(shape),
                                              height, true);
    const uint32_t column_sums = cox__plan_binding(plan, "column sums", COX__WRITE,
                                                   column_pitch(shape, SUMS), blocks, true);
    const uint32_t states = cox__plan_binding(plan, "states", COX__READ_WRITE,
                                              column_pitch(shape, STATES), blocks, true);

    cox__plan_pass(plan, "rows", height);
    cox__plan_use(plan, in, COX__HALO, COX__READ, 0);
    /* Each band has its own, with lanes past the last row. */
    cox__plan_use(plan, row_sums, COX__HALO, COX__READ_WRITE, 0);
    cox__plan_divide(plan, BLOCK);
    cox__plan_use(plan, across, COX__ROWS, COX__WRITE, 0);
    cox__plan_use(plan, column_sums, COX__ROWS, COX__WRITE, 0);
    cox__plan_divide(plan, BLOCK);

    add_blocks_stage(plan, shape, "gauss_row_sums", true, true, records, (uint32_t[]){in, row_sums},
                     2);
    add_blocks_stage(plan, shape, "gauss_row_carry", true, false, shape->channels,
                     (uint32_t[]){row_sums}, 1);
    add_blocks_stage(plan, shape, "gauss_row_apply", true, false, records,
                     (uint32_t[]){in, row_sums, across}, 3);
    add_blocks_stage(plan, shape, "gauss_column_sums", false, true, columns,
                     (uint32_t[]){across, column_sums}, 2);

    cox__plan_pass(plan, "columns", height);
    cox__plan_use(plan, across, COX__ROWS, COX__READ, 0);
    cox__plan_use(plan, column_sums, COX__WHOLE, COX__READ, 0);
    cox__plan_use(plan, states, COX__HALO, COX__READ_WRITE, blocks);
    cox__plan_divide(plan, BLOCK);
    cox__plan_use(plan, out, COX__ROWS, COX__WRITE, 0);

    add_blocks_stage(plan, shape, "gauss_column_carry", false, false, columns,
                     (uint32_t[]){column_sums, states}, 2);
    add_blocks_stage(plan, shape, "gauss_column_apply", false, false, columns,
                     (uint32_t[]){across, states, out}, 3);
}

cox_status cox__gauss_filter(const struct cox_filter_shape *given,
                             struct cox__pipeline_storage *storage,
                             struct cox__session_spec *session)
{
    struct cox_filter_shape shape;
    const cox_status status = read_shape(&shape, given);
    if (status)
        return status;

    struct cox__plan *plan = cox__plan_begin(storage, session, shape.height);
    if (!plan)
        return COX_E_INVALID;

    const uint32_t in = cox__plan_binding(plan, "input", COX__READ, shape.in_pitch_bytes,
                                          shape.height, false);
    const uint32_t out = cox__plan_binding(plan, "output", COX__WRITE, shape.out_pitch_bytes,
                                           shape.height, false);
    cox__plan_row_bytes(plan, in, cox__plan_input_bytes(&shape));
    cox__plan_row_bytes(plan, out, cox__plan_input_bytes(&shape));

    if (in_blocks(&shape))
        add_blocks_passes(plan, &shape, in, out);
    else
        add_lines_passes(plan, &shape, in, out);

    cox__plan_end(plan, sizeof(struct cox_constants), session);
    return COX_OK;
}

/* --- Coefficients --- */

/* Poles for sigma = 2: a pair modulus * e^(+- i angle) of 1.41650 +- 1.00829 i, and a real one. */
static const double POLE_RE = 1.41650, POLE_IM = 1.00829, POLE_REAL = 1.86543;

struct poles {
    double re, im, real; /* inverses of the scaled poles: where the filter's denominator is zero */
};

static struct poles scale_poles(double q)
{
    const double modulus = pow(hypot(POLE_RE, POLE_IM), -1 / q);
    const double angle = -atan2(POLE_IM, POLE_RE) / q;

    return (struct poles){modulus * cos(angle), modulus * sin(angle), pow(POLE_REAL, -1 / q)};
}

/* Variance of the filter, both directions: the sum of 2 p / (1 - p)^2. */
static double variance(double q)
{
    const struct poles p = scale_poles(q);
    const double re = (1 - p.re) * (1 - p.re) - p.im * p.im, im = -2 * (1 - p.re) * p.im;

    return 4 * (p.re * re + p.im * im) / (re * re + im * im) +
           2 * p.real / ((1 - p.real) * (1 - p.real));
}

/* The recursion in differences: B, c1, c2. */
struct recursion {
    double b, c1, c2;
};

/* Bisect for the q that gives the filter this sigma, and expand the recursion. */
static struct recursion recursion_of(double sigma)
{
    double low = 0.05, high = 2 * SIGMA_MOST; /* q is about sigma / 2 */

    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        if (variance(middle) < sigma * sigma)
            low = middle;
        else
            high = middle;
    }

    /* 1 - p z^-1 is u + p D with u = 1 - p and D = 1 - z^-1. The recursion is the product of the
     * three in powers of D. */
    const struct poles p = scale_poles((low + high) / 2);
    const double u_re = 1 - p.re, u_im = -p.im, u_real = 1 - p.real;
    const double uu = u_re * u_re + u_im * u_im, up = 2 * (u_re * p.re + u_im * p.im);
    const double pp = p.re * p.re + p.im * p.im;

    return (struct recursion){uu * u_real, uu * p.real + up * u_real, up * p.real + pp * u_real};
}

struct state {
    double w, d1, d2;
};

/* One step of the forward filter, with the input x. */
static void advance(struct state *s, const struct recursion *r, double x)
{
    const double both = s->d1 + s->d2;

    s->d2 += r->b * (x - (s->w + both)) - (r->c1 * both + r->c2 * s->d2);
    s->d1 += s->d2;
    s->w += s->d1;
}

/* Round to float; small coefficients become 0. States are 0 or multiples of 2^-73, so that neither
 * the products nor their sums are denormal numbers. */
static float cut(double x)
{
    if (fabs(x) < 0x1p-30)
        return 0.0f;
    return (float)x;
}

static struct step step_of(const struct recursion *r)
{
    return (struct step){(float)r->b, cut(r->c1), cut(r->c2)};
}

static double *part(struct state *s, int index)
{
    return (double *[]){&s->w, &s->d1, &s->d2}[index];
}

/* Set a matrix's column: the result of a unit in one component of the state. */
static void set_column(float matrix[9], int column, struct state s)
{
    for (int row = 0; row < 3; row++)
        matrix[3 * row + column] = cut(*part(&s, row));
}

/* The state of the backward filter at a line's last sample (if `beyond`, just before it), for each
 * component of the forward filter's state there. The forward filter runs on over zeros until it has
 * decayed, then the backward one comes back from there. */
static void set_back(float back[9], const struct recursion *r, double sigma, bool beyond)
{
    enum { TAIL = 32 * 128 + 64 };
    const int steps = (int)(32 * sigma) + 64, last = beyond ? 1 : 0;

    for (int column = 0; column < 3; column++) {
        double tail[TAIL] = {0};
        struct state s = {0}, v = {0};

        *part(&s, column) = 1;
        tail[0] = s.w;

        for (int i = 1; i < steps; i++) {
            advance(&s, r, 0);
            tail[i] = s.w;
        }

        for (int i = steps - 1; i >= last; i--)
            advance(&v, r, tail[i]);

        set_column(back, column, v);
    }
}

/* Run both filters over a block of zeros, with a 1 at sample `one` (BLOCK = none). The forward
 * filter begins with *s, which becomes the state behind the block; the backward filter begins at
 * rest. Returns the backward filter's state before the block. */
static struct state filter_block(struct state *s, const struct recursion *r, int one)
{
    double block[BLOCK];
    struct state v = {0};

    for (int i = 0; i < BLOCK; i++) {
        advance(s, r, i == one);
        block[i] = s->w;
    }

    for (int i = BLOCK - 1; i >= 0; i--)
        advance(&v, r, block[i]);

    return v;
}

/* What is left of a state behind a block, and what the backward filter makes of the forward
 * filter's response in the block. */
static void set_block(struct blocks_direction *d, const struct recursion *r)
{
    for (int column = 0; column < 3; column++) {
        struct state s = {0};
        *part(&s, column) = 1;

        const struct state v = filter_block(&s, r, BLOCK);
        set_column(d->over, column, s);
        set_column(d->through, column, v);
    }
}

/* The states of both filters after a block with a 1 in one sample, if they begin at rest. */
static void set_sums(struct sums_direction *to, const struct recursion *r)
{
    for (int at = 0; at < BLOCK; at++) {
        struct state s = {0}, v = filter_block(&s, r, at);

        for (int p = 0; p < 3; p++) {
            to->forward[p][at] = cut(*part(&s, p));
            to->backward[p][at] = cut(*part(&v, p) / r->b);
        }
    }
}

static void set_direction(struct direction *d, double sigma)
{
    const struct recursion r = recursion_of(sigma);

    d->step = step_of(&r);
    set_back(d->back, &r, sigma, false);
}

static void set_blocks_direction(struct sums_direction *to, double sigma)
{
    const struct recursion r = recursion_of(sigma);
    struct blocks_direction *d = &to->blocks;

    d->step = step_of(&r);
    set_back(d->back, &r, sigma, true);
    set_block(d, &r);
    set_sums(to, &r);
}

static void prepare_lines(const struct cox_filter_shape *shape, double sigma_x, double sigma_y,
                          struct cox_constants *params)
{
    const int32_t width = (int32_t)shape->width, height = (int32_t)shape->height;
    const int32_t columns = (int32_t)cox__plan_columns(shape);
    const int32_t turned = (int32_t)turned_pitch(shape);

    struct params p = {
        .first = {.length = height,
                  .columns = columns,
                  .in_pitch = (int32_t)shape->in_pitch_bytes,
                  .out_pitch = turned},
        .second = {.length = width,
                   .columns = height,
                   .in_pitch = turned,
                   .out_pitch = (int32_t)shape->out_pitch_bytes},

    };
    set_direction(&p.first, sigma_y);
    set_direction(&p.second, sigma_x);
    cox__plan_params(params, &p, sizeof p);
}

static void prepare_blocks(const struct cox_filter_shape *shape, double sigma_x, double sigma_y,
                           struct cox_constants *params)
{
    const int32_t straight = (int32_t)straight_pitch(shape);

    struct blocks_params p = {.along.blocks = {.length = (int32_t)shape->width,
                                               .blocks = (int32_t)blocks_of(shape->width),
                                               .in_pitch = (int32_t)shape->in_pitch_bytes,
                                               .out_pitch = straight,
                                               .sums_pitch = (int32_t)row_sums_pitch(shape),
                                               .stride = BLOCK},
                              .down.blocks = {.length = (int32_t)shape->height,
                                              .blocks = (int32_t)blocks_of(shape->height),
                                              .columns = (int32_t)cox__plan_columns(shape),
                                              .in_pitch = straight,
                                              .out_pitch = (int32_t)shape->out_pitch_bytes,
                                              .sums_pitch = (int32_t)column_pitch(shape, SUMS),
                                              .states_pitch = (int32_t)column_pitch(shape, STATES),
                                              .stride = (int32_t)column_stride(shape)}};

    set_blocks_direction(&p.along, sigma_x);
    set_blocks_direction(&p.down, sigma_y);
    cox__plan_params(params, &p, sizeof p);
}

cox_status cox_filter_gaussian_prepare(const struct cox_filter_shape *given, float sigma_x,
                                       float sigma_y, struct cox_constants *params)
{
    struct cox_filter_shape shape;
    const cox_status status = read_shape(&shape, given);
    if (status)
        return status;
    if (!params || !((double)sigma_x >= SIGMA_LEAST && (double)sigma_x <= SIGMA_MOST) ||
        !((double)sigma_y >= SIGMA_LEAST && (double)sigma_y <= SIGMA_MOST))
        return COX_E_INVALID;

    if (in_blocks(&shape))
        prepare_blocks(&shape, (double)sigma_x, (double)sigma_y, params);
    else
        prepare_lines(&shape, (double)sigma_x, (double)sigma_y, params);
    return COX_OK;
}
