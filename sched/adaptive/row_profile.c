/* The row profile as a Kalman filter with a diagonal covariance.
 *
 * Each segment has a cost and a variance. A launch measures the sum over its rows; its residual is shared out over the
 * segments in proportion to their variances. The size of the drift is learned as in the estimator, from residuals at
 * the same place in consecutive frames. Where rows cost alike, residuals are noise, the variance stays near zero, and
 * the profile stays flat.
 * SPDX-License-Identifier: Apache-2.0 */
#include "row_profile.h"
#include "split/clip.h"
#include "split/strict_fp.h"

#include <math.h>

static const double COST_MIN = 0.02;
static const double COST_MAX = 100;
static const double SPREAD_FIRST = 0.02;
static const double SPREAD_MAX = 2;
static const double DRIFT_FIRST = 1e-5;
static const double DRIFT_MIN = 1e-7;
static const double DRIFT_MAX = 0.03;
static const double DRIFT_RATE = 0.15;
static const double DRIFT_BIAS = 0.15;
static const double DRIFT_OPEN = 1e-3;
static const double SPREAD_OPEN = 0.5; /* after a change of content, relative */
static const double LAST_MAX = 8;
static const double AGAIN = 3;
static const double FORGET = 0.002; /* of the deviation from the mean, each frame */

void cox__row_profile_init(struct cox__row_profile *p)
{
    for (int i = 0; i < COX__SEGMENTS; i++) {
        p->cost[i] = 1;
        p->spread[i] = SPREAD_FIRST;
        p->last[i] = 0;
        p->before[i] = i;
    }
    p->before[COX__SEGMENTS] = COX__SEGMENTS;
    p->rows = 0;
    p->drift = DRIFT_FIRST;
}

double cox__row_profile_age(struct cox__row_profile *p, uint32_t rows)
{
    p->rows = rows;
    p->segments = (double)COX__SEGMENTS / rows;
    double mean = 0;
    for (int i = 0; i < COX__SEGMENTS; i++)
        mean += p->cost[i];
    mean /= COX__SEGMENTS;
    double scale = 1 / mean, drift = p->drift;
    for (int i = 0; i < COX__SEGMENTS; i++) {
        double cost = p->cost[i] * scale;
        p->cost[i] = cox__clip(cost + FORGET * (1 - cost), COST_MIN, COST_MAX);
        p->spread[i] = cox__min(SPREAD_MAX, p->spread[i] * (1 - 2 * FORGET) + drift * cox__max(1, cost * cost));
        p->before[i + 1] = p->before[i] + p->cost[i];
    }
    return mean;
}

/* How many segments a row covers: less than 1 in frames of more rows than segments. */
static double segments_of(const struct cox__row_profile *p, uint32_t rows)
{
    return rows == p->rows ? p->segments : (double)COX__SEGMENTS / rows;
}

/* Sum of the costs up to a position of 0 .. COX__SEGMENTS. */
static double up_to(const struct cox__row_profile *p, double at)
{
    int i = at >= COX__SEGMENTS ? COX__SEGMENTS - 1 : (int)at;
    return p->before[i] + (at - i) * p->cost[i];
}

double cox__row_profile_work(const struct cox__row_profile *p, uint32_t rows, uint32_t first_row, uint32_t count)
{
    double segments = segments_of(p, rows);
    double sum = up_to(p, ((double)first_row + count) * segments) - up_to(p, first_row * segments);
    return cox__max(sum / segments, 1e-3 * count);
}

uint32_t cox__row_profile_row(const struct cox__row_profile *p, uint32_t rows, double work)
{
    double wanted = work * COX__SEGMENTS / rows;
    int i = (int)cox__clip(wanted, 0, COX__SEGMENTS - 1); /* the mean cost is 1, so the row is near there */
    while (i > 0 && p->before[i] > wanted)
        i--;
    while (i + 1 < COX__SEGMENTS && p->before[i + 1] <= wanted)
        i++;
    double at = cox__clip(i + (wanted - p->before[i]) / p->cost[i], 0, COX__SEGMENTS);
    return (uint32_t)(at * rows / COX__SEGMENTS + 0.5);
}

void cox__row_profile_span(const struct cox__row_profile *p, uint32_t rows, uint32_t first_row, uint32_t count,
                           struct cox__span *span)
{
    double segments = segments_of(p, rows);
    double from = first_row * segments, to = cox__min(((double)first_row + count) * segments, COX__SEGMENTS);
    int first = (int)from, last = (int)to;
    if (last == to)
        last--;
    *span = (struct cox__span){from, to, first, last, cox__min(to, first + 1) - from, to - last};
}

/* The share of segment i that lies in the span. */
static double part(const struct cox__span *span, int i)
{
    return i == span->first ? span->first_part : i == span->last ? span->last_part : 1;
}

double cox__row_profile_variance(const struct cox__row_profile *p, const struct cox__span *span)
{
    double sum = 0, variance = 0;
    for (int i = span->first; i <= span->last; i++) {
        double h = part(span, i);
        sum += h * p->cost[i];
        variance += h * h * p->spread[i];
    }
    return sum > 0 ? variance / (sum * sum) : 0;
}

void cox__row_profile_learn(struct cox__row_profile *p, const struct cox__span *span, double residual, double variance,
                            double deviations)
{
    double sum = 0, agreement = 0, weight = 0;
    for (int i = span->first; i <= span->last; i++) {
        double h = part(span, i);
        sum += h * p->cost[i];
        agreement += h * p->last[i];
        weight += h;
    }
    if (!(sum > 0 && weight > 0 && variance > 0))
        return;
    double z = cox__clip(deviations, -LAST_MAX, LAST_MAX);
    double scale = 1 / (variance * sum); /* of the gain: p h / (variance sum^2) times residual times sum */
    for (int i = span->first; i <= span->last; i++) {
        double h = part(span, i);
        double gain = p->spread[i] * h * scale;
        p->cost[i] = cox__clip(p->cost[i] + gain * residual, COST_MIN, COST_MAX);
        p->spread[i] *= cox__max(0.02, 1 - gain * h / sum);
        p->last[i] += h * (z - p->last[i]);
    }
    p->drift *= 1 + DRIFT_RATE * weight / COX__SEGMENTS * (cox__clip(z * agreement / weight, -2, 4) - DRIFT_BIAS);
    p->drift = cox__clip(p->drift, DRIFT_MIN, DRIFT_MAX);
}

void cox__row_profile_reopen(struct cox__row_profile *p, const struct cox__span *span)
{
    for (int i = span->first; i <= span->last; i++)
        p->spread[i] = cox__max(p->spread[i], SPREAD_OPEN * cox__max(1, p->cost[i] * p->cost[i]) * part(span, i));
    p->drift = cox__max(p->drift, DRIFT_OPEN);
}

bool cox__row_profile_again(const struct cox__row_profile *p, const struct cox__span *span, double deviations)
{
    double sum = 0;
    for (int i = span->first; i <= span->last; i++)
        sum += part(span, i) * p->last[i];
    return sum * deviations > 0 && fabs(sum) > AGAIN * (span->to - span->from);
}
