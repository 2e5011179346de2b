/* The choice of the tail reserve by replay.
 *
 * A share has two costs: the time by which bands end after the frame's balanced end, and the launches that hand out the
 * rest in shrinking chunks. Both are known for every share after every frame. The share with the least mean cost is
 * used, whatever the noise looks like: a narrow jitter, one band in a hundred that takes five times as long, content
 * that changes every second.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tail_reserve.h"
#include "split/clip.h"
#include "split/strict_fp.h"

#include <math.h>

static const double SHARE[COX__TAIL_RESERVES] = {0.05, 0.10, 0.18, 0.30, 0.45, 0.62};
static const double LAUNCHES[COX__TAIL_RESERVES] = {1.3, 1.7, 2.3, 3.2, 4.9, 8.0}; /* log 0.02 / log share */
/* Costs assumed before the first frame: those with a jitter of 5 %. */
static const double LOSS_FIRST[COX__TAIL_RESERVES] = {0.020, 0.014, 0.014, 0.018, 0.024, 0.035};
static const double GAIN = 1.0 / 80;
static const double WEIGHT_FIRST = 30; /* frames that the assumption counts for */
static const double RISK = 2; /* one frame that is late by much is worse than several that are late by little */
static const double LOSS_MAX = 6;
static const double BETTER = 0.001;

void cox__tail_reserve_init(struct cox__tail_reserve *reserve)
{
    for (int i = 0; i < COX__TAIL_RESERVES; i++)
        reserve->loss[i] = LOSS_FIRST[i];
    reserve->frames = WEIGHT_FIRST;
    reserve->in_use = 1;
}

double cox__tail_reserve_share(const struct cox__tail_reserve *reserve)
{
    return SHARE[reserve->in_use];
}

void cox__tail_reserve_learn(struct cox__tail_reserve *reserve, double share, double level_ns, double latest_ns,
                             double launch_ns)
{
    if (!(level_ns > 0 && latest_ns > 0 && launch_ns >= 0 && share < 0.99))
        return;
    double gain = cox__max(GAIN, 1 / (reserve->frames + 1));
    reserve->frames += 1;
    double whole = latest_ns / (1 - share) / level_ns; /* of a band planned without a reserve */
    uint32_t best = 0;
    for (uint32_t i = 0; i < COX__TAIL_RESERVES; i++) {
        double over = cox__max(0, whole * (1 - SHARE[i]) - 1);
        double loss = over + RISK * over * over + LAUNCHES[i] * launch_ns / level_ns;
        reserve->loss[i] += gain * (cox__min(loss, LOSS_MAX) - reserve->loss[i]);
        if (reserve->loss[i] < reserve->loss[best])
            best = i;
    }
    if (reserve->loss[best] < reserve->loss[reserve->in_use] - BETTER)
        reserve->in_use = best;
}
