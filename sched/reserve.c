/* Each share has two costs: what bands overshoot the frame's balanced end by, and the launches that it takes to hand
 * the rest out in shrinking chunks. Both are known of every frame for every share, so the best one is the one with
 * the least mean, whatever the noise looks like: a narrow jitter, one band in a hundred that takes five times as
 * long, a new picture every second.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reserve.h"
#include "clip.h"
#include "strict_fp.h"

#include <math.h>

static const double SHARE[COX__RESERVES] = {0.05, 0.10, 0.18, 0.30, 0.45, 0.62};
static const double LAUNCHES[COX__RESERVES] = {1.3, 1.7, 2.3, 3.2, 4.9, 8.0}; /* log 0.02 / log share */
/* Of a band's time with a jitter of 5 %: what is assumed before anything was measured. */
static const double LOSS_FIRST[COX__RESERVES] = {0.020, 0.014, 0.014, 0.018, 0.024, 0.035};
static const double GAIN = 1.0 / 80;
static const double WEIGHT_FIRST = 30; /* frames that the assumption counts for */
static const double RISK = 2;          /* a frame that is late by much is worse than several that are late by little */
static const double LOSS_MAX = 6;
static const double BETTER = 0.001;

void cox__reserve_init(struct cox__reserve *reserve)
{
    for (int i = 0; i < COX__RESERVES; i++)
        reserve->loss[i] = LOSS_FIRST[i];
    reserve->frames = WEIGHT_FIRST;
    reserve->in_use = 1;
}

double cox__reserve_share(const struct cox__reserve *reserve)
{
    return SHARE[reserve->in_use];
}

void cox__reserve_learn(struct cox__reserve *reserve, double share, double level_ns, double latest_ns, double launch_ns)
{
    if (!(level_ns > 0 && latest_ns > 0 && launch_ns >= 0 && share < 0.99))
        return;
    double gain = cox__most(GAIN, 1 / (reserve->frames + 1));
    reserve->frames += 1;
    double whole = latest_ns / (1 - share) / level_ns; /* of a band with nothing kept back */
    uint32_t best = 0;
    for (uint32_t i = 0; i < COX__RESERVES; i++) {
        double over = cox__most(0, whole * (1 - SHARE[i]) - 1);
        double loss = over + RISK * over * over + LAUNCHES[i] * launch_ns / level_ns;
        reserve->loss[i] += gain * (cox__least(loss, LOSS_MAX) - reserve->loss[i]);
        if (reserve->loss[i] < reserve->loss[best])
            best = i;
    }
    if (reserve->loss[best] < reserve->loss[reserve->in_use] - BETTER)
        reserve->in_use = best;
}
