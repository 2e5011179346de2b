/* The Kalman filter of one device's costs.
 *
 * Residuals are relative, because a launch's noise is proportional to its time. Process noise moves the common scale: a
 * device that slows down slows down in everything. The size of that drift is learned: residuals of consecutive frames
 * with the same sign mean that the filter lags, residuals of alternating sign mean that it follows noise.
 *
 * The caller (learn.c) decides what a launch far outside of the expected variance means; where it means a change, the
 * scale jumps. Smaller changes add up in a two-sided CUSUM, whose alarm makes the scale uncertain again.
 *
 * Sources: G. J. Bierman, Factorization Methods for Discrete Sequential Estimation, 1977 (update, and the rank-one
 * update of Agee and Turner); E. S. Page, Continuous inspection schemes, 1954 (CUSUM).
 * SPDX-License-Identifier: Apache-2.0 */
#include "estimator.h"
#include "split/clip.h"
#include "split/strict_fp.h"

#include <math.h>
#include <string.h>

static const double NS_MAX = 1e19;
static const double PER_ROW_MIN = 1e-6;
static const double PER_ROW_MAX = 1e19;
static const double FIRST_PART = 0.01; /* fixed costs assumed at the beginning, over a shared frame's time */
static const double LAUNCH_PART = 0.005;
static const double FIRST_SPREAD = 0.5; /* standard deviations of these assumptions, over the same time */
static const double LAUNCH_SPREAD = 0.05;
static const double VARIANCE_FIRST = 0.05 * 0.05;
static const double VARIANCE_MIN = 0.003 * 0.003;
static const double VARIANCE_MAX = 0.5 * 0.5;
static const double VARIANCE_GAIN = 0.03; /* of one launch, once there were many */
static const double FIRST_GAIN = 0.05;
static const double NORMALISED_GAIN = 0.1;
static const double DRIFT_FIRST = 1e-4;
static const double DRIFT_MIN = 1e-6;
static const double DRIFT_MAX = 0.01;
static const double DRIFT_RATE = 0.25;
static const double DRIFT_BIAS = 0.15;
static const double CLIP = 3.0; /* deviations */
static const double CUSUM_SLACK = 0.75;
static const double CUSUM_ALARM = 6.0;
static const double REOPEN = 0.08;       /* relative deviation of the scale after a change */
static const double SHAPE_SPREAD = 1e-4; /* relative deviation by which first and launch may move in a frame */

/* --- the covariance --- */

static double *upper(struct cox__estimate *e, int row, int column)
{
    return &e->u[row + column - 1]; /* (0,1), (0,2), (1,2) */
}

/* P += c v v' (Agee and Turner); `v` is used up. */
static void widen(struct cox__estimate *e, double *v, double c)
{
    for (int j = COX__UNKNOWNS - 1; j >= 0; j--) {
        double s = v[j];
        double before = e->d[j];
        double d = before + c * s * s;
        if (!(d > 0))
            continue;
        double beta = c * s / d;
        c *= before / d;
        e->d[j] = d;
        for (int i = 0; i < j; i++) {
            double *u = upper(e, i, j);
            v[i] -= s * *u;
            *u += beta * v[i];
        }
    }
}

/* h P h' */
static double spread(const struct cox__estimate *e, const double *h)
{
    double f1 = h[1] + e->u[0] * h[0];
    double f2 = h[2] + e->u[1] * h[0] + e->u[2] * h[1];
    return e->d[0] * h[0] * h[0] + e->d[1] * f1 * f1 + e->d[2] * f2 * f2;
}

/* A measurement of h x that is off by `innovation`, with noise `r` > 0 (Bierman). */
static void update(struct cox__estimate *e, const double *h, double innovation, double r)
{
    double f[COX__UNKNOWNS] = {h[0], h[1] + e->u[0] * h[0], h[2] + e->u[1] * h[0] + e->u[2] * h[1]};
    double g[COX__UNKNOWNS] = {e->d[0] * f[0], e->d[1] * f[1], e->d[2] * f[2]};
    double alpha = r;
    for (int j = 0; j < COX__UNKNOWNS; j++) {
        double beta = alpha;
        alpha += f[j] * g[j];
        double lambda = -f[j] / beta;
        e->d[j] *= beta / alpha;
        for (int i = 0; i < j; i++) {
            double *u = upper(e, i, j);
            double old = *u;
            *u = old + g[i] * lambda;
            g[i] += g[j] * old;
        }
    }
    for (int j = 0; j < COX__UNKNOWNS; j++)
        e->x[j] += g[j] / alpha * innovation;
}

/* Hold the costs to what is possible. A fixed cost below zero is corrected by a made-up measurement of zero, so that
 * the other unknowns make up for it. Afterwards every number lies in a range that later computations survive. */
static void tidy(struct cox__estimate *e)
{
    for (int j = COX__FIRST; j <= COX__LAUNCH; j++) {
        if (!(e->x[j] < 0))
            continue;
        double h[COX__UNKNOWNS] = {0};
        h[j] = 1;
        update(e, h, -e->x[j], 0.01 * spread(e, h) + 1.0);
    }
    if (e->x[COX__LAUNCH] > e->x[COX__FIRST]) { /* rarely true: corrected, but weakly */
        double h[COX__UNKNOWNS] = {-1, 1, 0};
        update(e, h, e->x[COX__FIRST] - e->x[COX__LAUNCH], 8 * spread(e, h) + 1.0);
    }
    e->x[COX__FIRST] = cox__clip(e->x[COX__FIRST], 0, NS_MAX);
    e->x[COX__LAUNCH] = cox__clip(e->x[COX__LAUNCH], 0, NS_MAX);
    e->x[COX__PER_ROW] = cox__clip(e->x[COX__PER_ROW], PER_ROW_MIN, PER_ROW_MAX);
    for (int j = 0; j < COX__UNKNOWNS; j++) {
        double unit = 1.0 + e->x[COX__FIRST] + e->x[COX__LAUNCH] + e->x[COX__PER_ROW] * (j == COX__PER_ROW ? 1 : 1e6);
        e->d[j] = cox__clip(e->d[j], 1e-24, unit * unit);
        e->u[j] = cox__clip(e->u[j], -1e30, 1e30);
    }
}

/* --- the estimate --- */

void cox__estimate_init(struct cox__estimate *e)
{
    memset(e, 0, sizeof *e);
    e->variance = VARIANCE_FIRST;
    e->drift = DRIFT_FIRST;
    e->normalised_mean_square = 1;
}

/* The first band of a session measures the fixed cost, so the fixed cost assumed here has a large variance. */
void cox__estimate_begin(struct cox__estimate *e, double ns, double work, double sd, double frame_ns)
{
    ns = cox__clip(ns, 1, NS_MAX / 4);
    work = cox__clip(work, 1, 1e10);
    frame_ns = cox__clip(frame_ns, 0.001 * ns, ns);
    e->x[COX__FIRST] = FIRST_PART * frame_ns;
    e->x[COX__LAUNCH] = LAUNCH_PART * frame_ns;
    e->x[COX__PER_ROW] = (ns - e->x[COX__FIRST]) / work;
    memset(e->u, 0, sizeof e->u);
    double spreads[COX__UNKNOWNS] = {FIRST_SPREAD * frame_ns, LAUNCH_SPREAD * frame_ns, 0.3 * ns / work};
    for (int j = 0; j < COX__UNKNOWNS; j++)
        e->d[j] = spreads[j] * spreads[j];
    double h[COX__UNKNOWNS] = {1, 0, work};
    update(e, h, 0, 0.03 * ns * 0.03 * ns); /* the whole frame took `ns` */
    tidy(e);
    cox__estimate_scale(e, 1.0, sd);
}

void cox__estimate_load(struct cox__estimate *e, double first, double launch, double ns_per_row, double sd)
{
    e->x[COX__FIRST] = first;
    e->x[COX__LAUNCH] = launch;
    e->x[COX__PER_ROW] = ns_per_row;
    memset(e->u, 0, sizeof e->u);
    for (int j = 0; j < COX__UNKNOWNS; j++)
        e->d[j] = 0.05 * e->x[j] * 0.05 * e->x[j];
    tidy(e);
    cox__estimate_scale(e, 1.0, sd);
}

void cox__estimate_age(struct cox__estimate *e)
{
    double v[COX__UNKNOWNS] = {e->x[COX__FIRST], e->x[COX__LAUNCH], e->x[COX__PER_ROW]};
    widen(e, v, e->drift);
    for (int j = COX__FIRST; j <= COX__LAUNCH; j++)
        e->d[j] += SHAPE_SPREAD * e->x[j] * (SHAPE_SPREAD * e->x[j]);
}

void cox__estimate_scale(struct cox__estimate *e, double factor, double sd)
{
    for (int j = 0; j < COX__UNKNOWNS; j++) {
        e->x[j] *= factor;
        e->d[j] *= factor * factor;
    }
    double v[COX__UNKNOWNS] = {e->x[COX__FIRST], e->x[COX__LAUNCH], e->x[COX__PER_ROW]};
    widen(e, v, sd * sd);
    tidy(e);
}

void cox__estimate_stretch(struct cox__estimate *e, double factor)
{
    e->x[COX__PER_ROW] *= factor;
    e->d[COX__PER_ROW] *= factor * factor;
    e->u[1] /= factor;
    e->u[2] /= factor;
    tidy(e);
}

double cox__estimate_ns(const struct cox__estimate *e, bool further, double work)
{
    return e->x[further ? COX__LAUNCH : COX__FIRST] + e->x[COX__PER_ROW] * work;
}

double cox__estimate_error(const struct cox__estimate *e, bool further, double work)
{
    const double h[COX__UNKNOWNS] = {!further, further, work};
    double ns = cox__estimate_ns(e, further, work);
    return cox__clip(spread(e, h) / (ns * ns), 0, 100);
}

/* --- learning --- */

void cox__estimate_compare(const struct cox__estimate *e, const struct cox__sample *sample,
                           struct cox__residual *residual)
{
    const double h[COX__UNKNOWNS] = {!sample->further, sample->further, sample->work};
    double ns = cox__estimate_ns(e, sample->further, sample->work);
    residual->predicted_ns = ns;
    residual->ratio = cox__clip(sample->ns / ns, 1e-6, 1e6);
    residual->variance = spread(e, h) / (ns * ns) + e->variance + sample->work_variance;
}

double cox__estimate_learn(struct cox__estimate *e, const struct cox__sample *sample, double *variance)
{
    const double h[COX__UNKNOWNS] = {!sample->further, sample->further, sample->work};
    struct cox__residual found;
    cox__estimate_compare(e, sample, &found);
    *variance = found.variance;
    double deviation = sqrt(found.variance);
    double residual = cox__clip((found.ratio - 1) / deviation, -CLIP, CLIP) * deviation;
    double ns = found.predicted_ns;
    update(e, h, residual * ns, cox__clip((e->variance + sample->work_variance) * ns * ns, 1e-12, 1e60));
    tidy(e);

    e->normalised_mean_square += NORMALISED_GAIN * (residual * residual / found.variance - e->normalised_mean_square);

    /* The part of the squared residual that is jitter, by an expectation-maximisation step. */
    double share = e->variance / found.variance;
    double jitter = share * share * residual * residual + e->variance * (1 - share);
    e->launches += 1;
    e->variance += cox__max(VARIANCE_GAIN, 0.5 / (e->launches + 4)) * (jitter - e->variance);
    e->variance = cox__clip(e->variance, VARIANCE_MIN, VARIANCE_MAX);
    if (!sample->further) {
        e->frames += 1;
        e->first_mean_square += cox__max(FIRST_GAIN, 1 / e->frames) * (residual * residual - e->first_mean_square);
    }
    return residual;
}

bool cox__estimate_trend(struct cox__estimate *e, double deviations, bool rows_change)
{
    double z = cox__clip(deviations, -CLIP, CLIP);
    if (rows_change) {
        e->drift = cox__max(DRIFT_MIN, 0.8 * e->drift);
        e->up = e->down = e->last = 0;
        return false;
    }
    e->drift *= 1 + DRIFT_RATE * (cox__clip(z * e->last, -2, 4) - DRIFT_BIAS);
    e->drift = cox__clip(e->drift, DRIFT_MIN, DRIFT_MAX);
    e->last = z;
    e->up = cox__max(0, e->up + z - CUSUM_SLACK);
    e->down = cox__max(0, e->down - z - CUSUM_SLACK);
    if (e->up < CUSUM_ALARM && e->down < CUSUM_ALARM)
        return false;
    e->up = e->down = 0;
    cox__estimate_scale(e, 1.0, REOPEN);
    return true;
}

/* The scale may move as far as the launch is off; the uncertain fixed costs explain their part of it. */
void cox__estimate_jump(struct cox__estimate *e, const struct cox__sample *sample, double sd)
{
    const double h[COX__UNKNOWNS] = {!sample->further, sample->further, sample->work};
    double ns = cox__estimate_ns(e, sample->further, sample->work);
    double v[COX__UNKNOWNS] = {e->x[COX__FIRST], e->x[COX__LAUNCH], e->x[COX__PER_ROW]};
    double off = cox__clip(sample->ns / ns, 1e-6, 1e6) - 1;
    e->suspected_change = 0;
    e->up = e->down = e->last = 0;
    widen(e, v, off * off);
    update(e, h, off * ns, e->variance * sample->ns * ns + 1e-12);
    tidy(e);
    cox__estimate_scale(e, 1, sd);
}
