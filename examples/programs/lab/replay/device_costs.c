/* Estimates the costs of devices: pairs of bands, the shape, the scale, and what comes on top.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device_costs.h"
#include "common/quantiles.h"

#include <math.h>
#include <stdlib.h>

/* The greatest fixed cost, in rows of whole frames. */
static const double SHAPE_FRAMES_MAX = 4;
/* Limits for the part of a band's time in which other devices worked: it counts as together, or as
 * alone. */
static const double TOGETHER = 0.5, ALONE = 0.1;
static const double LIKE = 0.25; /* the bands of a pair differ by less in that part */
static const double SLOWDOWN_MAX = 20;
static const double UNCERTAIN_MAX = 0.15; /* above this the fixed cost is set to 0 */
enum {
    PAIRS_MAX = 8192,
    NEAR_FRAMES = 8,
    GROUP_WEIGHT = 16,
    GROUPS_MAX = 256,
    SHAPES = 160,
    SCALE_LEAST = 3
};

struct point {
    size_t session;
    uint64_t frame;
    uint32_t phase;
    double rows, ns, together;
};

struct pair {
    double rows[2];
    double log_ratio; /* of the times */
    double weight;
};

struct points {
    struct point *at;
    size_t count;
    struct pair *pairs;
    size_t pair_count;
    double *scratch;
};

double lab_replay_median(double *values, size_t count)
{
    if (count == 0)
        return NAN;

    return quantile_of(values, count, 0.5);
}

double lab_replay_alone(const struct lab_replay_fit *fit, const struct lab_replay_band *band)
{
    return band->wall_ns * (1 - band->together + band->together / fit->slowdown);
}

double lab_replay_cost(const struct lab_replay_fit *fit, uint32_t rows, uint32_t launch)
{
    double base_ns = fit->fixed_ns;

    if (launch > 0)
        base_ns = fit->launch_ns;

    return base_ns + fit->ns_per_row * rows;
}

uint32_t lab_replay_main_phase(const struct lab_replay_session *session)
{
    uint32_t best = 0;
    size_t most = 0;

    /* Phases follow each other: the longest run of frames wins. */
    for (size_t f = 0; f < session->frame_count;) {
        size_t from = f;
        while (f < session->frame_count && session->frames[f].phase == session->frames[from].phase)
            f++;
        if (f - from > most) {
            most = f - from;
            best = session->frames[from].phase;
        }
    }

    return best;
}

/* The device's first bands of all frames of all sessions. */
static void collect(const struct lab_replay_data *data, uint32_t device, struct points *points)
{
    points->count = 0;
    for (size_t s = 0; s < data->session_count; s++) {
        const struct lab_replay_session *session = &data->sessions[s];
        for (size_t f = 0; f < session->frame_count; f++) {
            const struct lab_replay_frame *frame = &session->frames[f];
            for (size_t b = 0; b < frame->band_count; b++) {
                const struct lab_replay_band *band = &session->bands[frame->first_band + b];
                if (band->device == device && band->launch == 0 && band->good)
                    points->at[points->count++] = (struct point){.session = s,
                                                                 .frame = frame->frame,
                                                                 .phase = frame->phase,
                                                                 .rows = band->rows,
                                                                 .ns = band->wall_ns,
                                                                 .together = band->together};
            }
        }
    }
}

static void add_pair(struct points *points, const struct point *a, const struct point *b,
                     double weight)
{
    if (a->rows != b->rows)
        points->pairs[points->pair_count++] = (struct pair){
            {a->rows, b->rows}, log(a->ns / b->ns), weight};
}

static void pair_neighbours(struct points *points, uint64_t lag)
{
    size_t stride = points->count / PAIRS_MAX + 1;

    for (size_t i = 0; i < points->count; i += stride) {
        const struct point *a = &points->at[i];
        for (size_t j = i + 1; j < points->count && j <= i + NEAR_FRAMES; j++) {
            const struct point *b = &points->at[j];
            if (b->session != a->session || b->phase != a->phase ||
                b->frame > a->frame + NEAR_FRAMES)
                break;
            if (b->frame < a->frame + lag)
                continue;
            if (fabs(a->together - b->together) < LIKE)
                add_pair(points, a, b, 1);
            break;
        }
    }
}

/* A point with the medians of `count` points from `at` on. */
static struct point median_point(const struct point *at, size_t count, double *scratch)
{
    struct point median = *at;

    for (size_t k = 0; k < count; k++)
        scratch[k] = at[k].rows;
    median.rows = lab_replay_median(scratch, count);
    for (size_t k = 0; k < count; k++)
        scratch[k] = at[k].ns;
    median.ns = lab_replay_median(scratch, count);
    for (size_t k = 0; k < count; k++)
        scratch[k] = at[k].together;
    median.together = lab_replay_median(scratch, count);

    return median;
}

/* Pairs of sessions of one phase, by their medians: each session of a sweep has bands of one
 * length. */
static void pair_sessions(struct points *points)
{
    struct point groups[GROUPS_MAX];
    double weights[GROUPS_MAX];
    size_t count = 0;

    for (size_t from = 0, end = 0; from < points->count && count < GROUPS_MAX; from = end) {
        const struct point *first = &points->at[from];

        while (end < points->count && points->at[end].session == first->session &&
               points->at[end].phase == first->phase)
            end++;
        weights[count] = fmin((double)(end - from), GROUP_WEIGHT);
        groups[count++] = median_point(first, end - from, points->scratch);
    }

    for (size_t a = 0; a < count; a++)
        for (size_t b = a + 1; b < count; b++)
            if (groups[a].phase == groups[b].phase &&
                fabs(groups[a].together - groups[b].together) < LIKE)
                add_pair(points, &groups[a], &groups[b], fmin(weights[a], weights[b]));
}

static double misfit(const struct points *points, double shape)
{
    double sum = 0;

    for (size_t p = 0; p < points->pair_count; p++) {
        const struct pair *pair = &points->pairs[p];
        sum += pair->weight *
               fabs(pair->log_ratio - log((shape + pair->rows[0]) / (shape + pair->rows[1])));
    }

    return sum;
}

/* Fixed cost in rows: 0, or the best on a geometric scale that is refined around it. */
static double find_shape(const struct points *points, double rows)
{
    double most = SHAPE_FRAMES_MAX * rows, least = rows / 10000;
    double best = 0, best_misfit = misfit(points, 0);
    double low = least, high = most;

    for (int round = 0; round < 3; round++) {
        double step = pow(high / low, 1.0 / SHAPES), shape = low;
        for (int i = 0; i <= SHAPES; i++, shape *= step) {
            double now = misfit(points, shape);
            if (now < best_misfit) {
                best_misfit = now;
                best = shape;
            }
        }

        if (best == 0)
            break;
        low = best / step;
        high = best * step;
    }

    return best;
}

/* Standard error of d ln t / d ln n: the spread of the pairs over the information in their
 * lengths. */
static double find_uncertainty(const struct points *points, double shape)
{
    double information = 0;

    for (size_t p = 0; p < points->pair_count; p++) {
        const struct pair *pair = &points->pairs[p];
        double length = log(pair->rows[0] / pair->rows[1]);
        information += pair->weight * length * length;
        points->scratch[p] = fabs(pair->log_ratio -
                                  log((shape + pair->rows[0]) / (shape + pair->rows[1])));
    }

    if (!(information > 0))
        return 1;

    double spread = 1.4826 * lab_replay_median(points->scratch, points->pair_count);

    return fmin(1, fmax(spread, 0.001) / sqrt(information));
}

/* Median of t / (shape + n) over the bands with `together` in low .. high; NaN if there are too
 * few. */
static double find_scale(const struct points *points, double shape, const uint32_t *phase,
                         double low, double high)
{
    size_t count = 0;

    for (size_t i = 0; i < points->count; i++) {
        const struct point *point = &points->at[i];
        if ((!phase || point->phase == *phase) && point->together >= low && point->together <= high)
            points->scratch[count++] = point->ns / (shape + point->rows);
    }

    if (count < SCALE_LEAST)
        return NAN;

    return lab_replay_median(points->scratch, count);
}

static void fit_scale(const struct points *points, double shape, uint32_t phase,
                      struct lab_replay_fit *fit)
{
    double together = find_scale(points, shape, &phase, TOGETHER, 1);
    double alone = find_scale(points, shape, &phase, 0, ALONE);

    if (isnan(together) && isnan(alone)) {
        together = find_scale(points, shape, NULL, TOGETHER, 1);
        alone = find_scale(points, shape, NULL, 0, ALONE);
    }
    fit->slowdown_known = !isnan(together) && !isnan(alone);
    fit->slowdown = 1;
    if (fit->slowdown_known)
        fit->slowdown = fmin(fmax(together / alone, 1), SLOWDOWN_MAX);

    double scale = alone;
    if (!isnan(together))
        scale = together / fit->slowdown;
    if (isnan(scale)) {
        for (size_t i = 0; i < points->count; i++)
            points->scratch[i] = points->at[i].ns / (shape + points->at[i].rows);
        scale = lab_replay_median(points->scratch, points->count);
    }

    fit->ns_per_row = scale;
    fit->fixed_ns = scale * shape;
}

/* The cost of a further launch, with the speed that the device had in the first launch of the same
 * frame. */
static void fit_launch(const struct lab_replay_data *data, uint32_t device,
                       struct lab_replay_fit *fit, double *scratch)
{
    size_t count = 0;

    for (size_t s = 0; s < data->session_count; s++) {
        const struct lab_replay_session *session = &data->sessions[s];
        const struct lab_replay_band *first = NULL;
        for (size_t b = 0; b < session->band_count; b++) {
            const struct lab_replay_band *band = &session->bands[b];
            if (band->device != device || !band->good)
                continue;
            if (band->launch == 0) {
                first = band;
            } else if (first && first->frame == band->frame) {
                double factor = lab_replay_alone(fit, first) / lab_replay_cost(fit, first->rows, 0);
                scratch[count++] = lab_replay_alone(fit, band) / factor -
                                   fit->ns_per_row * band->rows;
            }
        }
    }

    fit->launch_known = count > 0;
    fit->launch_ns = fit->fixed_ns;
    if (count > 0)
        fit->launch_ns = fmax(0, lab_replay_median(scratch, count));
}

static void fit_gaps(const struct lab_replay_data *data, uint32_t device,
                     struct lab_replay_fit *fit, double *scratch)
{
    for (int further = 0; further < 2; further++) {
        size_t count = 0;
        for (size_t s = 0; s < data->session_count; s++)
            for (size_t b = 0; b < data->sessions[s].band_count; b++) {
                const struct lab_replay_band *band = &data->sessions[s].bands[b];
                if (band->device == device && band->good && !band->again &&
                    further == (band->launch > 0))
                    scratch[count++] = band->gap_ns;
            }
        fit->gap_ns[further] = fit->gap_ns[0];
        if (count > 0)
            fit->gap_ns[further] = lab_replay_median(scratch, count);
    }
}

/* Median of the kernels' part, and in `spread` the median deviation from it. 0 if few bands have a
 * profile. */
static double kernel_part(const struct lab_replay_data *data, uint32_t device,
                          const struct lab_replay_fit *fit, bool of_rows, double *scratch,
                          double *spread)
{
    size_t count = 0;

    for (size_t s = 0; s < data->session_count; s++)
        for (size_t b = 0; b < data->sessions[s].band_count; b++) {
            const struct lab_replay_band *band = &data->sessions[s].bands[b];

            if (band->device != device || !band->good || band->kernel_ns <= 0 ||
                band->kernel_ns > band->wall_ns)
                continue;

            double rows = fit->ns_per_row * band->rows;
            double part = band->kernel_ns / band->wall_ns;
            if (of_rows)
                part *= lab_replay_cost(fit, band->rows, band->launch) / rows;
            scratch[count++] = part;
        }
    if (2 * count <= fit->bands)
        return 0;

    double median = lab_replay_median(scratch, count);
    for (size_t i = 0; i < count; i++)
        scratch[i] = fabs(scratch[i] / median - 1);
    *spread = lab_replay_median(scratch, count);

    return median;
}

static void fit_kernel(const struct lab_replay_data *data, uint32_t device,
                       struct lab_replay_fit *fit, double *scratch)
{
    double spread_of_all = 0, spread_of_rows = 0;
    double of_all = kernel_part(data, device, fit, false, scratch, &spread_of_all);
    double of_rows = kernel_part(data, device, fit, true, scratch, &spread_of_rows);

    fit->kernel_of_rows = of_all > 0 && spread_of_rows < spread_of_all;
    fit->kernel_part = of_all;
    if (fit->kernel_of_rows)
        fit->kernel_part = of_rows;
}

/* The costs of a device with at least one point. */
static void fit_device(const struct lab_replay_data *data, uint32_t device, uint32_t phase,
                       struct points *points, struct lab_replay_fit *fit)
{
    uint32_t lag = data->in_flight + 1;
    double shape = 0;

    if (data->in_flight == 0)
        lag = 2;
    points->pair_count = 0;
    pair_neighbours(points, lag);
    pair_sessions(points);
    if (points->pair_count > 0) {
        shape = find_shape(points, data->rows);
        fit->uncertain = find_uncertainty(points, shape);
    }
    fit->fixed_known = fit->uncertain <= UNCERTAIN_MAX;
    if (!fit->fixed_known)
        shape = 0;

    fit_scale(points, shape, phase, fit);
    fit_launch(data, device, fit, points->scratch);
    fit_gaps(data, device, fit, points->scratch);
    fit_kernel(data, device, fit, points->scratch);
}

bool lab_replay_fit(const struct lab_replay_data *data, uint32_t phase, struct lab_replay_fit *fits)
{
    size_t bands = 1, groups = GROUPS_MAX;

    for (size_t s = 0; s < data->session_count; s++)
        bands += data->sessions[s].band_count;
    if (groups > bands)
        groups = bands;

    size_t pairs = bands + groups * (groups - 1) / 2;
    struct points points = {.at = malloc(bands * sizeof *points.at),
                            .pairs = malloc(pairs * sizeof *points.pairs),
                            .scratch = malloc(pairs * sizeof *points.scratch)};
    bool good = points.at && points.pairs && points.scratch;
    for (uint32_t d = 0; d < data->device_count && good; d++) {
        struct lab_replay_fit *fit = &fits[d];

        *fit = (struct lab_replay_fit){.slowdown = 1, .uncertain = 1};
        collect(data, d, &points);
        fit->bands = points.count;
        if (points.count > 0)
            fit_device(data, d, phase, &points, fit);
    }

    free(points.at);
    free(points.pairs);
    free(points.scratch);

    return good;
}
