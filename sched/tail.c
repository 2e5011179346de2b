/* A band's time is known to within its noise only. Two devices with a relative noise s that both get all they can do
 * in time T end, on average, 0.564 s T after T: whoever fixes the split before the frame pays that. Rows that are
 * kept back and given to whoever turns out to be early cost one further launch. So a device whose further launch
 * costs less than what its noise does gets a band that ends early, and the rest waits in the pool.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tail.h"
#include "clip.h"
#include "strict_fp.h"

#include <coxswain/sched.h>
#include <math.h>

static const double JOIN = 0.33;       /* of what is kept back: the most that one further launch may cost */
static const double SPLIT = 0.33;      /* the same for the rest of a share */
static const double PART_LEAST = 0.58; /* of a share */

double cox__tail_level(const struct cox__runner *runners, uint32_t count, double work)
{
    double level = HUGE_VAL;
    for (uint32_t pass = 0; pass <= count; pass++) {
        double weight = work, speed = 0;
        double latest = -1;
        for (uint32_t i = 0; i < count; i++) {
            if (!runners[i].in || !(runners[i].start_ns < level))
                continue;
            weight += runners[i].start_ns * runners[i].speed;
            speed += runners[i].speed;
            latest = cox__most(latest, runners[i].start_ns);
        }
        if (!(speed > 0))
            return pass == 0 ? -1 : level;
        level = weight / speed;
        if (latest < level)
            break;
    }
    return level;
}

static double share_of(const struct cox__runner *runner, double level)
{
    return runner->in && runner->start_ns < level ? (level - runner->start_ns) * runner->speed : 0;
}

double cox__tail_part(double share_ns, double launch_ns, double early, double speed)
{
    if (launch_ns * speed >= SPLIT * early * share_ns)
        return 1;
    return cox__most(PART_LEAST, 1 - early);
}

double cox__tail_plan(struct cox__tail_device *devices, uint32_t count, double work, double least, bool pool,
                      double *pool_work)
{
    struct cox__runner runners[COX_DEVICES_MAX];
    double speed = 0;
    for (uint32_t d = 0; d < count; d++) {
        devices[d].work = devices[d].end_ns = 0;
        runners[d] = (struct cox__runner){devices[d].in, devices[d].first_ns,
                                          devices[d].in ? 1 / devices[d].ns_per_row : 0};
    }
    *pool_work = 0;

    /* Who takes part: leave out one after the other what would get less than the least band. */
    double level;
    uint32_t sharing;
    for (;;) {
        level = cox__tail_level(runners, count, work);
        if (level < 0)
            return level;
        uint32_t smallest = count;
        double smallest_work = least;
        sharing = 0;
        speed = 0;
        for (uint32_t d = 0; d < count; d++) {
            if (!runners[d].in)
                continue;
            double share = share_of(&runners[d], level);
            if (share < smallest_work) {
                smallest = d;
                smallest_work = share;
            }
            sharing++;
            speed += runners[d].speed;
        }
        if (smallest == count || sharing == 1)
            break;
        runners[smallest].in = false;
    }

    bool joins[COX_DEVICES_MAX];
    bool any = false;
    for (uint32_t d = 0; d < count; d++) {
        joins[d] = false;
        if (!runners[d].in || !pool || sharing < 2)
            continue;
        double cost = devices[d].launch_ns * runners[d].speed / speed;
        joins[d] = cost < JOIN * devices[d].early * level;
        any |= joins[d];
        if (joins[d])
            runners[d].start_ns += devices[d].launch_ns;
    }
    if (any)
        level = cox__tail_level(runners, count, work);

    double given = 0;
    for (uint32_t d = 0; d < count; d++) {
        struct cox__tail_device *device = &devices[d];
        if (!runners[d].in)
            continue;
        double share = share_of(&runners[d], level);
        if (joins[d]) {
            share = ((1 - device->early) * level - device->first_ns) / device->ns_per_row;
        }
        if (any && device->suspect > 1)
            share /= device->suspect;
        device->work = cox__most(share, least);
        device->end_ns = device->first_ns + device->ns_per_row * device->work;
        given += device->work;
    }
    *pool_work = any ? cox__most(0, work - given) : 0;
    return level;
}
