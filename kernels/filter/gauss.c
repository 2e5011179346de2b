/* The recursive Gaussian on the host's side: passes, coefficients.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"
#include "sources.h"
#include <math.h>
#include <stdio.h>

static const double SIGMA_LEAST = 0.5, SIGMA_MOST = 128;

/* One direction's parameters: struct gauss_params of gauss.cl. */
struct direction {
    int32_t length, columns, in_pitch, out_pitch;
    float b, c1, c2, back[9];
};

/* The two directions, and for COX_FILTER_ROWS the transpositions after them. */
struct params {
    struct direction first, second;
    struct cox__transpose_params transpose_first, transpose_second;
};
_Static_assert(sizeof(struct params) <= sizeof(struct cox_filter_params), "fits in the public block");

static cox_status read_shape(struct cox_filter_shape *to, const struct cox_filter_shape *from)
{
    const cox_status status = cox__plan_shape(to, from);
    if (status)
        return status;
    const bool good = to->sample == COX_FILTER_FLOAT && !to->guide_pitch_bytes && !to->radius_x && !to->radius_y &&
                      cox__plan_pitch_ok(to->out_pitch_bytes, 4 * (size_t)cox__plan_columns(to)) &&
                      (to->form != COX_FILTER_ROWS || cox__transpose_fits(to));
    return good ? COX_OK : COX_E_INVALID;
}

/* --- Passes ------------------------------------------------------------------------------------------------------- */

/* Vectors of lines that a processor's work-item filters side by side. */
enum { GROUPS = 2 };

/* A pass that filters into rows of `lines` interleaved lines. */
static void add_stage(struct cox__plan *plan, bool down, uint32_t lines, uint32_t from, uint32_t to, size_t params)
{
    char cpu_options[64], gpu_options[64];
    snprintf(cpu_options, sizeof cpu_options, "-DCOX_LINES=%u -DCOX_GROUPS=%d", lines, GROUPS);
    snprintf(gpu_options, sizeof gpu_options, "-DCOX_LINES=%u -DCOX_GROUPS=1", lines);
    const struct cox__form cpu = {
        .vector = COX__PLAN_VECTOR, .item_rows = GROUPS * COX__PLAN_VECTOR, .options = cpu_options};
    const struct cox__form gpu = {.vector = 1, .local_rows = 32, .options = gpu_options};
    cox__plan_stage(plan, down ? "gauss_lines" : "gauss_rows", cox__source_filter_gauss, lines,
                    (const uint32_t[]){from, to}, 2, params, sizeof(struct direction), &cpu, &gpu);
}

static void add_pass(struct cox__plan *plan, const char *name, uint32_t rows, bool down, uint32_t lines, uint32_t from,
                     uint32_t to, size_t params)
{
    cox__plan_pass(plan, name, rows);
    cox__plan_use(plan, from, down ? COX_WHOLE : COX_ROWS, COX_READ, 0);
    cox__plan_use(plan, to, COX_ROWS, COX_WRITE, 0);
    add_stage(plan, down, lines, from, to, params);
}

/* Bytes of a row of scratch: of the plane's shape; turned, a row for each element; turned, a row for each column. */
static size_t straight_pitch(const struct cox_filter_shape *shape)
{
    return cox__plan_scratch_pitch(4 * (size_t)cox__plan_columns(shape));
}

static size_t turned_pitch(const struct cox_filter_shape *shape)
{
    const uint32_t channels = shape->form == COX_FILTER_ROWS ? shape->channels : 1;
    return cox__plan_scratch_pitch(4 * (size_t)shape->height * channels);
}

cox_status cox_filter_gaussian(const struct cox_filter_shape *given, struct cox_filter_storage *storage,
                               struct cox_session_params *session)
{
    struct cox_filter_shape shape;
    const cox_status status = read_shape(&shape, given);
    struct cox__plan *plan = status ? NULL : cox__plan_begin(storage, session, shape.height);
    if (!plan)
        return status ? status : COX_E_INVALID;
    const uint32_t columns = cox__plan_columns(&shape), width = shape.width, height = shape.height;
    const uint32_t in = cox__plan_binding(plan, "input", COX_READ, shape.in_pitch_bytes, height, false);
    const uint32_t out = cox__plan_binding(plan, "output", COX_WRITE, shape.out_pitch_bytes, height, false);
    const size_t first = offsetof(struct params, first), second = offsetof(struct params, second);
    if (shape.form != COX_FILTER_ROWS) {
        const uint32_t turned = cox__plan_binding(plan, "turned", COX_WRITE, turned_pitch(&shape), columns, true);
        add_pass(plan, "columns", columns, true, 1, in, turned, first);
        add_pass(plan, "rows", height, true, shape.channels, turned, out, second);
    } else {
        const uint32_t across = cox__plan_binding(plan, "rows", COX_WRITE, straight_pitch(&shape), height, true);
        const uint32_t turned = cox__plan_binding(plan, "turned", COX_WRITE, turned_pitch(&shape), width, true);
        const uint32_t down = cox__plan_binding(plan, "columns", COX_WRITE, turned_pitch(&shape), width, true);
        add_pass(plan, "rows", height, false, shape.channels, in, across, first);
        cox__transpose_pass(plan, "transpose", &shape, width, height, across, turned,
                            offsetof(struct params, transpose_first));
        add_pass(plan, "columns", width, false, shape.channels, turned, down, second);
        cox__transpose_pass(plan, "transpose back", &shape, height, width, down, out,
                            offsetof(struct params, transpose_second));
    }
    cox__plan_end(plan, sizeof(struct cox_filter_params), session);
    return COX_OK;
}

/* --- Coefficients ------------------------------------------------------------------------------------------------- */

/* Poles for sigma = 2: a pair modulus * e^(+- i angle) of 1.41650 +- 1.00829 i, and a real one. */
static const double POLE_RE = 1.41650, POLE_IM = 1.00829, POLE_REAL = 1.86543;

struct poles {
    double re, im, real; /* inverses of the scaled poles: where the filter's denominator is zero */
};

static struct poles scale_poles(double q)
{
    const double modulus = pow(hypot(POLE_RE, POLE_IM), -1 / q), angle = -atan2(POLE_IM, POLE_RE) / q;
    return (struct poles){modulus * cos(angle), modulus * sin(angle), pow(POLE_REAL, -1 / q)};
}

/* Variance of the filter, both ways: the sum of 2 p / (1 - p)^2. */
static double variance(double q)
{
    const struct poles p = scale_poles(q);
    const double re = (1 - p.re) * (1 - p.re) - p.im * p.im, im = -2 * (1 - p.re) * p.im;
    return 4 * (p.re * re + p.im * im) / (re * re + im * im) + 2 * p.real / ((1 - p.real) * (1 - p.real));
}

/* The recursion in differences: B, c1, c2. */
struct recursion {
    double b, c1, c2;
};

static struct recursion recursion_of(double sigma)
{
    double low = 0.05, high = 2 * SIGMA_MOST; /* q is about sigma / 2 */
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        *(variance(middle) < sigma * sigma ? &low : &high) = middle;
    }
    /* 1 - p z^-1 is u + p D with u = 1 - p and D = 1 - z^-1: the product of the three in powers of D. */
    const struct poles p = scale_poles((low + high) / 2);
    const double u_re = 1 - p.re, u_im = -p.im, u_real = 1 - p.real;
    const double uu = u_re * u_re + u_im * u_im, up = 2 * (u_re * p.re + u_im * p.im), pp = p.re * p.re + p.im * p.im;
    return (struct recursion){uu * u_real, uu * p.real + up * u_real, up * p.real + pp * u_real};
}

struct state {
    double w, d1, d2;
};

static void advance(struct state *s, const struct recursion *r, double x)
{
    const double both = s->d1 + s->d2;
    s->d2 += r->b * (x - (s->w + both)) - (r->c1 * both + r->c2 * s->d2);
    s->d1 += s->d2;
    s->w += s->d1;
}

/* What the backward filter is at a line's end, for each component of the forward one's state there alone: the forward
 * filter runs on over zeros until it has decayed, then the backward one from there to the line's end. */
static void set_back(float back[9], const struct recursion *r, double sigma)
{
    enum { TAIL = 32 * 128 + 64 };
    const int steps = (int)(32 * sigma) + 64;
    for (int column = 0; column < 3; column++) {
        double tail[TAIL] = {0};
        struct state s = {column == 0, column == 1, column == 2}, v = {0};
        tail[0] = s.w;
        for (int i = 1; i < steps; i++) {
            advance(&s, r, 0);
            tail[i] = s.w;
        }
        for (int i = steps - 1; i >= 0; i--)
            advance(&v, r, tail[i]);
        back[column] = (float)v.w;
        back[3 + column] = (float)v.d1;
        back[6 + column] = (float)v.d2;
    }
}

/* Small coefficients are 0, so that their products with states, which are 0 or multiples of 2^-73, and the sums of
 * these are no denormal numbers. */
static float cut(double x)
{
    return fabs(x) < 0x1p-30 ? 0.0f : (float)x;
}

static void set_direction(struct direction *d, double sigma)
{
    const struct recursion r = recursion_of(sigma);
    d->b = (float)r.b;
    d->c1 = cut(r.c1);
    d->c2 = cut(r.c2);
    set_back(d->back, &r, sigma);
    for (int i = 0; i < 9; i++)
        d->back[i] = cut((double)d->back[i]);
}

cox_status cox_filter_gaussian_prepare(const struct cox_filter_shape *given, float sigma_x, float sigma_y,
                                       struct cox_filter_params *params)
{
    struct cox_filter_shape shape;
    const cox_status status = read_shape(&shape, given);
    if (status || !params || !((double)sigma_x >= SIGMA_LEAST && (double)sigma_x <= SIGMA_MOST) ||
        !((double)sigma_y >= SIGMA_LEAST && (double)sigma_y <= SIGMA_MOST))
        return status ? status : COX_E_INVALID;
    const int32_t width = (int32_t)shape.width, height = (int32_t)shape.height;
    const int32_t columns = (int32_t)cox__plan_columns(&shape);
    const int32_t in = (int32_t)shape.in_pitch_bytes, out = (int32_t)shape.out_pitch_bytes;
    const int32_t straight = (int32_t)straight_pitch(&shape), turned = (int32_t)turned_pitch(&shape);
    struct params p = {.first = {0}};
    if (shape.form != COX_FILTER_ROWS) {
        p.first = (struct direction){.length = height, .columns = columns, .in_pitch = in, .out_pitch = turned};
        p.second = (struct direction){.length = width, .columns = height, .in_pitch = turned, .out_pitch = out};
    } else {
        p.first = (struct direction){.length = width, .columns = columns, .in_pitch = in, .out_pitch = straight};
        p.transpose_first = (struct cox__transpose_params){width, height, straight, turned};
        p.second = (struct direction){.length = height, .in_pitch = turned, .out_pitch = turned};
        p.transpose_second = (struct cox__transpose_params){height, width, turned, out};
    }
    const bool rows_first = shape.form == COX_FILTER_ROWS;
    set_direction(&p.first, (double)(rows_first ? sigma_x : sigma_y));
    set_direction(&p.second, (double)(rows_first ? sigma_y : sigma_x));
    cox__plan_params(params, &p, sizeof p);
    return COX_OK;
}
