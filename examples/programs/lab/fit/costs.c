/* Lines through the times of bands, by least absolute relative errors: a tenth of the bands may be
 * late without moving the line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "costs.h"
#include "common/quantiles.h"

#include <math.h>
#include <string.h>

/* A band that waited less than IDLE of its time found an idle device. One that waited as long as
 * WAITED of the time on an idle device was copied in meanwhile. One between LITTLE and MUCH that took
 * PARTLY times as long as those was copied in partly. */
static const double IDLE = 0.05, LITTLE = 0.1, MUCH = 0.45, WAITED = 0.6, PARTLY = 1.1;
/* Limits for the part of a band's time in which other devices worked: it counts as together, or as
 * alone. */
static const double TOGETHER = 0.5, ALONE = 0.1;
/* More than this is an accident of one band. */
static const double RATIO_MAX = 2;
/* A slowdown below this is noise. */
static const double SLOWER_LEAST = 1.03, SLOWER_MAX = 20;
enum { BANDS_LEAST = 20, ROUNDS = 8, STEPS = 40 };

/* The first bands of a device. */
struct bands {
    double *rows, *ns, *queue_ns, *together;
    double *scratch;
    size_t count;
};

struct line {
    double fixed_ns, row_ns;
    double slower;
};

bool lab_fit_is_policy(const struct lab_replay_session *session)
{
    for (size_t b = 0; b < session->band_count && session->kind == LAB_REPLAY_POLICY; b++)
        if (lab_fit_says_cost(&session->bands[b]))
            return true;
    return false;
}

static double alone_ns(const struct line *line, double rows)
{
    return line->fixed_ns + line->row_ns * rows;
}

static double at(const struct line *line, const struct bands *bands, size_t i)
{
    return alone_ns(line, bands->rows[i]) * (1 + (line->slower - 1) * bands->together[i]);
}

/* One step of iterated weighted least squares. Both costs are at least 0. */
static void refine(struct line *line, const struct bands *bands)
{
    double weights = 0, rows = 0, squares = 0, times = 0, products = 0;

    for (size_t i = 0; i < bands->count; i++) {
        double n = bands->rows[i];
        double ns = bands->ns[i] / (1 + (line->slower - 1) * bands->together[i]);
        double model_ns = alone_ns(line, n);
        double error = fabs(ns / model_ns - 1);
        double weight = 1 / (fmax(error, 1e-4) * model_ns * model_ns);

        weights += weight;
        rows += weight * n;
        squares += weight * n * n;
        times += weight * ns;
        products += weight * n * ns;
    }

    double spread = weights * squares - rows * rows;
    line->row_ns = products / squares;
    line->fixed_ns = 0;
    if (spread < 1e-6 * weights * squares)
        return;

    double slope = (weights * products - rows * times) / spread;
    double fixed = (times - slope * rows) / weights;
    if (fixed > 0)
        *line = (struct line){fixed, fmax(slope, 0), line->slower};
    if (slope < 0)
        line->fixed_ns = times / weights;
}

/* The mean of time over the line for bands with `together` in low .. high; NaN if they are few. */
static double mean_ratio(const struct line *line, const struct bands *bands, double low,
                         double high)
{
    double sum = 0, count = 0;

    for (size_t i = 0; i < bands->count; i++)
        if (bands->together[i] >= low && bands->together[i] <= high) {
            sum += fmin(bands->ns[i] / at(line, bands, i), RATIO_MAX);
            count++;
        }
    if (count < BANDS_LEAST)
        return NAN;

    return sum / count;
}

static void refine_all(struct line *line, const struct bands *bands)
{
    double rows = 0, ns = 0;

    for (size_t i = 0; i < bands->count; i++) {
        rows += bands->rows[i];
        ns += bands->ns[i];
    }
    line->fixed_ns = 0;
    line->row_ns = ns / rows;
    for (int step = 0; step < STEPS; step++)
        refine(line, bands);
}

/* The line, and how much slower the device is together with others. */
static void find_line(struct line *line, const struct bands *bands)
{
    line->slower = 1;
    for (int round = 0; round < ROUNDS; round++) {
        refine_all(line, bands);

        double ratio = mean_ratio(line, bands, TOGETHER, 1) / mean_ratio(line, bands, 0, ALONE);
        if (isnan(ratio))
            return;
        line->slower = fmin(fmax(line->slower * ratio, 1), SLOWER_MAX);
    }

    if (line->slower >= SLOWER_LEAST)
        return;
    line->slower = 1;
    refine_all(line, bands);
}

/* What a band that waited long saves. The other costs are known. */
static void find_ahead(const struct line *line, const struct line *queued,
                       const struct bands *waited, struct lab_fit_costs *out)
{
    double fixed_ns = line->fixed_ns - queued->fixed_ns, row_ns = line->row_ns - queued->row_ns;

    out->ahead_ns = fmax(0, fixed_ns);
    out->ahead_row_ns = fmax(0, row_ns);
    if (fixed_ns >= 0 && row_ns >= 0)
        return;

    /* Neither can be negative: the other one gets the whole gain. */
    for (size_t i = 0; i < waited->count; i++) {
        waited->scratch[i] = fmax(0, fixed_ns + row_ns * waited->rows[i]);
        if (fixed_ns < 0)
            waited->scratch[i] /= waited->rows[i];
    }

    double gain = quantile_of(waited->scratch, waited->count, 0.5);
    out->ahead_ns = fixed_ns < 0 ? 0 : gain;
    out->ahead_row_ns = fixed_ns < 0 ? gain : 0;
}

static void collect(const struct lab_replay_data *data, uint32_t device, struct bands *out)
{
    for (size_t s = 0; s < data->session_count; s++)
        for (size_t b = 0; b < data->sessions[s].band_count; b++) {
            const struct lab_replay_band *band = &data->sessions[s].bands[b];
            if (band->device != device || !lab_fit_says_cost(band) || band->launch > 0)
                continue;

            out->rows[out->count] = band->rows;
            out->ns[out->count] = band->wall_ns;
            out->queue_ns[out->count] = band->queue_ns;
            out->together[out->count++] = band->together;
        }
}

static void swap_bands(struct bands *bands, size_t a, size_t b)
{
    double *const columns[] = {bands->rows, bands->ns, bands->queue_ns, bands->together};

    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
        double value = columns[c][a];
        columns[c][a] = columns[c][b];
        columns[c][b] = value;
    }
}

/* The bands that did not take as little as those that were copied in, at the front. */
static struct bands drop_copied(struct bands *bands, const struct line *copied)
{
    struct bands some = *bands;

    some.count = 0;
    for (size_t i = 0; i < bands->count; i++)
        if (bands->ns[i] > PARTLY * at(copied, bands, i))
            swap_bands(bands, i, some.count++);

    return some;
}

/* Move the bands that waited for `least` .. `most` of a time to the front. The time is the line's,
 * or the band's if there is no line. Returns a view of them. */
static struct bands select_bands(struct bands *bands, const struct line *line, double least,
                                 double most)
{
    struct bands some = *bands;

    some.count = 0;
    for (size_t i = 0; i < bands->count; i++) {
        double ns = bands->ns[i];

        if (line)
            ns = at(line, bands, i);
        if (bands->queue_ns[i] < least * ns || bands->queue_ns[i] > most * ns)
            continue;

        swap_bands(bands, i, some.count++);
    }

    return some;
}

bool lab_fit_find_costs(const struct lab_replay_data *data, uint32_t device, double *room,
                        struct lab_fit_costs *out)
{
    size_t most = 0;
    for (size_t s = 0; s < data->session_count; s++)
        most += data->sessions[s].band_count;

    struct bands bands = {.rows = room,
                          .ns = room + most,
                          .queue_ns = room + 2 * most,
                          .together = room + 3 * most,
                          .scratch = room + 4 * most};
    collect(data, device, &bands);

    /* With one frame in flight no band waits for one before it. */
    struct bands idle = select_bands(&bands, NULL, 0, data->in_flight > 1 ? IDLE : HUGE_VAL);
    struct line line, queued;
    if (idle.count < BANDS_LEAST)
        return false;

    find_line(&line, &idle);
    *out = (struct lab_fit_costs){
        .fixed_ns = line.fixed_ns, .row_ns = line.row_ns, .slower = line.slower};

    if (data->in_flight <= 1)
        return true;

    struct bands waited = select_bands(&bands, &line, WAITED, HUGE_VAL);
    if (waited.count < BANDS_LEAST)
        return true;
    find_line(&queued, &waited);

    /* A band that waited takes longer in all than on an idle device: the copies of two bands slow
     * each other down. Most bands wait, so they count. */
    const struct line first = line;
    struct bands partly = select_bands(&bands, &first, LITTLE, MUCH);
    line.slower = queued.slower;
    partly = drop_copied(&partly, &queued);
    if (partly.count >= BANDS_LEAST) {
        for (size_t i = 0; i < partly.count; i++)
            partly.ns[i] += partly.queue_ns[i];
        refine_all(&line, &partly);
    }

    *out = (struct lab_fit_costs){
        .fixed_ns = line.fixed_ns, .row_ns = line.row_ns, .slower = line.slower};
    waited = select_bands(&bands, &first, WAITED, HUGE_VAL);
    find_ahead(&line, &queued, &waited, out);

    return true;
}

double lab_fit_cost(const struct lab_fit_costs *costs, const struct lab_replay_band *band)
{
    double ahead_ns = costs->ahead_ns + costs->ahead_row_ns * band->rows;

    return (costs->fixed_ns + costs->row_ns * band->rows - fmin(ahead_ns, band->queue_ns)) *
           (1 + (costs->slower - 1) * band->together);
}
