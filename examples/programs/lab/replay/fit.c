/* SPDX-License-Identifier: Apache-2.0 */
#include "fit.h"

#include "common/quantiles.h"
#include <math.h>
#include <stdlib.h>

/* A fixed cost of so many frames' rows is the most that is thought of. */
static const double SHAPE_FRAMES_MAX = 4;
static const double TOGETHER = 0.5, ALONE = 0.1; /* part of a band's time beside the others */
static const double SLOWDOWN_MAX = 20;
static const double UNCERTAIN_MAX = 0.15; /* more, and the fixed cost is taken to be none */
static const double LIKE = 0.25;          /* bands of one pair differ by less in that part */
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
    return count ? figures_quantile(values, count, 0.5) : NAN;
}

double lab_replay_alone(const struct lab_replay_fit *fit, const struct lab_replay_band *band)
{
    return band->wall_ns * (1 - band->together + band->together / fit->slowdown);
}

double lab_replay_cost(const struct lab_replay_fit *fit, uint32_t rows, uint32_t launch)
{
    return (launch ? fit->launch_ns : fit->fixed_ns) + fit->ns_per_row * rows;
}

uint32_t lab_replay_main_phase(const struct lab_replay_session *session)
{
    uint32_t best = 0;
    size_t most = 0;
    /* Phases are few, and one after the other: runs of frames are counted, the longest wins. */
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

/* Sessions of one phase against each other by their medians: a sweep's sessions have bands of one length each. */
static void pair_sessions(struct points *points)
{
    struct point groups[GROUPS_MAX];
    double weights[GROUPS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < points->count && count < GROUPS_MAX;) {
        size_t n = 0, from = i;
        for (; i < points->count && points->at[i].session == points->at[from].session &&
               points->at[i].phase == points->at[from].phase;
             i++)
            n++;
        struct point group = points->at[from];
        for (int what = 0; what < 3; what++) {
            for (size_t k = 0; k < n; k++)
                points->scratch[k] = what == 0   ? points->at[from + k].rows
                                     : what == 1 ? points->at[from + k].ns
                                                 : points->at[from + k].together;
            double median = lab_replay_median(points->scratch, n);
            *(what == 0 ? &group.rows : what == 1 ? &group.ns : &group.together) = median;
        }
        weights[count] = n < GROUP_WEIGHT ? (double)n : GROUP_WEIGHT;
        groups[count++] = group;
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

/* Fixed cost in rows: 0, or the best on a geometric scale, made finer around it. */
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

/* Standard error of d ln t / d ln n: the spread of the pairs over what their lengths tell. */
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

/* Median of t / (shape + n) over the bands with `together` in low .. high; NaN if they are too few. */
static double find_scale(const struct points *points, double shape, const uint32_t *phase,
                         double low, double high)
{
    size_t count = 0;
    for (size_t i = 0; i < points->count; i++) {
        const struct point *point = &points->at[i];
        if ((!phase || point->phase == *phase) && point->together >= low && point->together <= high)
            points->scratch[count++] = point->ns / (shape + point->rows);
    }
    return count >= SCALE_LEAST ? lab_replay_median(points->scratch, count) : NAN;
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
    fit->slowdown = fit->slowdown_known ? fmin(fmax(together / alone, 1), SLOWDOWN_MAX) : 1;
    double scale = !isnan(together) ? together / fit->slowdown : alone;
    if (isnan(scale)) {
        for (size_t i = 0; i < points->count; i++)
            points->scratch[i] = points->at[i].ns / (shape + points->at[i].rows);
        scale = lab_replay_median(points->scratch, points->count);
    }
    fit->ns_per_row = scale;
    fit->fixed_ns = scale * shape;
}

/* What a further launch costs: over the first one of the same frame, which knows how fast the device was. */
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
    fit->launch_ns = count ? fmax(0, lab_replay_median(scratch, count)) : fit->fixed_ns;
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
        fit->gap_ns[further] = count ? lab_replay_median(scratch, count) : fit->gap_ns[0];
    }
}

/* Median of the kernels' part, and in `spread` how far bands are from it. */
static double kernel_part(const struct lab_replay_data *data, uint32_t device,
                          const struct lab_replay_fit *fit, bool of_rows, double *scratch,
                          double *spread)
{
    double median = 0;
    for (int round = 0; round < 2; round++) {
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
                scratch[count++] = round == 0 ? part : fabs(part / median - 1);
            }
        if (2 * count <= fit->bands)
            return 0;
        *(round == 0 ? &median : spread) = lab_replay_median(scratch, count);
    }
    return median;
}

static void fit_kernel(const struct lab_replay_data *data, uint32_t device,
                       struct lab_replay_fit *fit, double *scratch)
{
    double spread_of_all = 0, spread_of_rows = 0;
    double of_all = kernel_part(data, device, fit, false, scratch, &spread_of_all);
    double of_rows = kernel_part(data, device, fit, true, scratch, &spread_of_rows);
    fit->kernel_of_rows = of_all > 0 && spread_of_rows < spread_of_all;
    fit->kernel_part = fit->kernel_of_rows ? of_rows : of_all;
}

bool lab_replay_fit(const struct lab_replay_data *data, uint32_t phase, struct lab_replay_fit *fits)
{
    size_t bands = 1;
    for (size_t s = 0; s < data->session_count; s++)
        bands += data->sessions[s].band_count;
    size_t groups = bands < GROUPS_MAX ? bands : GROUPS_MAX;
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
        if (points.count == 0)
            continue;
        points.pair_count = 0;
        pair_neighbours(&points, (data->in_flight ? data->in_flight : 1) + 1);
        pair_sessions(&points);
        double shape = points.pair_count ? find_shape(&points, data->rows) : 0;
        fit->uncertain = points.pair_count ? find_uncertainty(&points, shape) : 1;
        fit->fixed_known = fit->uncertain <= UNCERTAIN_MAX;
        if (!fit->fixed_known)
            shape = 0;
        fit_scale(&points, shape, phase, fit);
        fit_launch(data, d, fit, points.scratch);
        fit_gaps(data, d, fit, points.scratch);
        fit_kernel(data, d, fit, points.scratch);
    }
    free(points.at);
    free(points.pairs);
    free(points.scratch);
    return good;
}
