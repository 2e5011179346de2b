/* The profile is a Kalman filter with a diagonal covariance: each segment has a cost and a variance, a launch
 * measures the sum over its rows, and the residual is shared out in proportion to the variances. As in the estimator,
 * how fast costs move is learned from whether residuals at the same place point the same way in consecutive frames:
 * where rows cost alike and only noise is seen, the variance stays near nothing and so does the profile.
 * SPDX-License-Identifier: Apache-2.0 */
#include "profile.h"
#include "clip.h"
#include "strict_fp.h"

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
static const double SPREAD_OPEN = 0.5; /* after another picture, relative */
static const double LAST_MAX = 8;
static const double AGAIN = 3;
static const double FORGET = 0.002; /* of the deviation from the mean, each frame */

static void sum_up(struct cox__profile *p)
{
    p->before[0] = 0;
    for (int i = 0; i < COX__SEGMENTS; i++)
        p->before[i + 1] = p->before[i] + p->cost[i];
}

void cox__profile_init(struct cox__profile *p)
{
    for (int i = 0; i < COX__SEGMENTS; i++) {
        p->cost[i] = 1;
        p->spread[i] = SPREAD_FIRST;
        p->last[i] = 0;
    }
    p->drift = DRIFT_FIRST;
    sum_up(p);
}

double cox__profile_age(struct cox__profile *p)
{
    double mean = 0;
    for (int i = 0; i < COX__SEGMENTS; i++)
        mean += p->cost[i];
    mean /= COX__SEGMENTS;
    double scale = 1 / mean;
    for (int i = 0; i < COX__SEGMENTS; i++) {
        double cost = p->cost[i] * scale;
        p->cost[i] = cox__clip(cost + FORGET * (1 - cost), COST_MIN, COST_MAX);
        p->spread[i] = cox__least(SPREAD_MAX, p->spread[i] * (1 - 2 * FORGET) + p->drift * cox__most(1, cost * cost));
    }
    sum_up(p);
    return mean;
}

/* Sum of the costs up to a position of 0 .. COX__SEGMENTS. */
static double up_to(const struct cox__profile *p, double at)
{
    int i = at >= COX__SEGMENTS ? COX__SEGMENTS - 1 : (int)at;
    return p->before[i] + (at - i) * p->cost[i];
}

double cox__profile_work(const struct cox__profile *p, uint32_t rows, uint32_t first_row, uint32_t count)
{
    double segments = (double)COX__SEGMENTS / rows;
    double sum = up_to(p, ((double)first_row + count) * segments) - up_to(p, first_row * segments);
    return cox__most(sum / segments, 1e-3 * count);
}

uint32_t cox__profile_row(const struct cox__profile *p, uint32_t rows, double work)
{
    double wanted = work * COX__SEGMENTS / rows;
    int low = 0, high = COX__SEGMENTS; /* before[low] <= wanted */
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (p->before[middle] <= wanted)
            low = middle;
        else
            high = middle;
    }
    double at = cox__clip(low + (wanted - p->before[low]) / p->cost[low], 0, COX__SEGMENTS);
    return (uint32_t)(at * rows / COX__SEGMENTS + 0.5);
}

/* The share of segment `i` that lies in from .. to, positions. */
static double part(int i, double from, double to)
{
    double low = from > i ? from : i;
    double high = to < i + 1 ? to : i + 1;
    return high > low ? high - low : 0;
}

static int last_of(double to)
{
    int last = (int)ceil(to) - 1;
    return last >= COX__SEGMENTS ? COX__SEGMENTS - 1 : last;
}

double cox__profile_variance(const struct cox__profile *p, uint32_t rows, uint32_t first_row, uint32_t count)
{
    double segments = (double)COX__SEGMENTS / rows;
    double from = first_row * segments, to = ((double)first_row + count) * segments;
    double sum = 0, variance = 0;
    int last = last_of(to);
    for (int i = (int)from; i <= last; i++) {
        double h = part(i, from, to);
        sum += h * p->cost[i];
        variance += h * h * p->spread[i];
    }
    return sum > 0 ? variance / (sum * sum) : 0;
}

void cox__profile_learn(struct cox__profile *p, uint32_t rows, uint32_t first_row, uint32_t count, double residual,
                        double variance, double deviations)
{
    double segments = (double)COX__SEGMENTS / rows;
    double from = first_row * segments, to = ((double)first_row + count) * segments;
    int last = last_of(to);
    double sum = 0, agreement = 0, weight = 0;
    for (int i = (int)from; i <= last; i++) {
        double h = part(i, from, to);
        sum += h * p->cost[i];
        agreement += h * p->last[i];
        weight += h;
    }
    if (!(sum > 0 && weight > 0 && variance > 0))
        return;
    double z = cox__clip(deviations, -LAST_MAX, LAST_MAX);
    double scale = 1 / (variance * sum); /* of the gain: p h / (variance sum^2) times residual times sum */
    for (int i = (int)from; i <= last; i++) {
        double h = part(i, from, to);
        double gain = p->spread[i] * h * scale;
        p->cost[i] = cox__clip(p->cost[i] + gain * residual, COST_MIN, COST_MAX);
        p->spread[i] *= cox__most(0.02, 1 - gain * h / sum);
        p->last[i] += h * (z - p->last[i]);
    }
    p->drift *= 1 + DRIFT_RATE * weight / COX__SEGMENTS * (cox__clip(z * agreement / weight, -2, 4) - DRIFT_BIAS);
    p->drift = cox__clip(p->drift, DRIFT_MIN, DRIFT_MAX);
}

void cox__profile_reopen(struct cox__profile *p, uint32_t rows, uint32_t first_row, uint32_t count)
{
    double segments = (double)COX__SEGMENTS / rows;
    double from = first_row * segments, to = ((double)first_row + count) * segments;
    int last = last_of(to);
    for (int i = (int)from; i <= last; i++)
        p->spread[i] = cox__most(p->spread[i], SPREAD_OPEN * cox__most(1, p->cost[i] * p->cost[i]) * part(i, from, to));
    p->drift = cox__most(p->drift, DRIFT_OPEN);
}

bool cox__profile_again(const struct cox__profile *p, uint32_t rows, uint32_t first_row, uint32_t count,
                        double deviations)
{
    double segments = (double)COX__SEGMENTS / rows;
    double from = first_row * segments, to = ((double)first_row + count) * segments;
    int last = last_of(to);
    double sum = 0;
    for (int i = (int)from; i <= last; i++)
        sum += part(i, from, to) * p->last[i];
    return sum * deviations > 0 && fabs(sum) > AGAIN * (to - from);
}
