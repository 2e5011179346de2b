/* Water-filling in the fluid model, and the plan of bands and pool that follows from it.
 *
 * A band's time is known only to within its noise. Two devices with relative noise s that both get the rows they can do
 * in time T finish, on average, 0.564 s T after T. Every policy that fixes the split before the frame pays that. Rows
 * that wait in a pool for the device that is free first cost one further launch instead. So a device whose further
 * launch costs less than its noise does gets a band that ends before the frame, and the rest waits in the pool.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fluid.h"
#include "split/clip.h"
#include "split/strict_fp.h"

#include <coxswain/sched.h>
#include <math.h>

static const double JOIN = 0.33;       /* most that a further launch may cost of the tail reserve */
static const double SPLIT = 0.33;      /* most that it may cost of the reserve of a share */
static const double PART_LEAST = 0.58; /* least part of its share that a device gets */

double cox__fluid_level(const struct cox__fluid_device *fluid, uint32_t count, double work)
{
    double level = HUGE_VAL;
    for (uint32_t pass = 0; pass <= count; pass++) {
        double weight = work, speed = 0;
        double latest = -1;
        for (uint32_t i = 0; i < count; i++) {
            if (!fluid[i].in || !(fluid[i].start_ns < level))
                continue;
            weight += fluid[i].start_ns * fluid[i].speed;
            speed += fluid[i].speed;
            latest = cox__max(latest, fluid[i].start_ns);
        }
        if (!(speed > 0))
            return pass == 0 ? -1 : level;
        level = weight / speed;
        if (latest < level)
            break;
    }
    return level;
}

static double share_of(const struct cox__fluid_device *device, double level)
{
    return device->in && device->start_ns < level ? (level - device->start_ns) * device->speed : 0;
}

double cox__fluid_part(double share_ns, double launch_ns, double tail_reserve, double speed)
{
    if (launch_ns * speed >= SPLIT * tail_reserve * share_ns)
        return 1;
    return cox__max(PART_LEAST, 1 - tail_reserve);
}

/* Leave out, one after the other, the device with the smallest share below `least`. Returns the level of the others,
 * whose number and speed go to `sharing` and `speed`; negative if no device is in. */
static double leave_out_small(struct cox__fluid_device *fluid, uint32_t count, double work, double least,
                              uint32_t *sharing, double *speed)
{
    for (;;) {
        double level = cox__fluid_level(fluid, count, work);
        if (level < 0)
            return level;
        uint32_t smallest = count;
        double smallest_work = least;
        *sharing = 0;
        *speed = 0;
        for (uint32_t d = 0; d < count; d++) {
            if (!fluid[d].in)
                continue;
            double share = share_of(&fluid[d], level);
            if (share < smallest_work) {
                smallest = d;
                smallest_work = share;
            }
            (*sharing)++;
            *speed += fluid[d].speed;
        }
        if (smallest == count || *sharing == 1)
            return level;
        fluid[smallest].in = false;
    }
}

/* Decide which devices take rows of the pool: those whose further launch costs the frame less than JOIN of what their
 * tail reserve saves. That launch moves their start. Returns whether any does. */
static bool join_pool(const struct cox__planned_device *devices, struct cox__fluid_device *fluid, uint32_t count,
                      double level, double speed, bool *joins)
{
    bool any = false;
    for (uint32_t d = 0; d < count; d++) {
        joins[d] = false;
        if (!fluid[d].in)
            continue;
        double cost = devices[d].launch_ns * fluid[d].speed / speed;
        joins[d] = cost < JOIN * devices[d].tail_reserve * level;
        any |= joins[d];
        if (joins[d])
            fluid[d].start_ns += devices[d].launch_ns;
    }
    return any;
}

double cox__fluid_plan(struct cox__planned_device *devices, uint32_t count, double work, double least, bool pool,
                       double *pool_work)
{
    struct cox__fluid_device fluid[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < count; d++) {
        devices[d].work = devices[d].end_ns = 0;
        fluid[d] = (struct cox__fluid_device){devices[d].in, devices[d].first_ns,
                                              devices[d].in ? 1 / devices[d].ns_per_row : 0};
    }
    *pool_work = 0;
    uint32_t sharing = 0;
    double speed = 0;
    double level = leave_out_small(fluid, count, work, least, &sharing, &speed);
    if (level < 0)
        return level;
    bool joins[COX_DEVICES_MAX] = {false};
    bool any = pool && sharing > 1 && join_pool(devices, fluid, count, level, speed, joins);
    if (any)
        level = cox__fluid_level(fluid, count, work);

    double given = 0;
    for (uint32_t d = 0; d < count; d++) {
        struct cox__planned_device *device = &devices[d];
        if (!fluid[d].in)
            continue;
        double share = share_of(&fluid[d], level);
        if (joins[d])
            share = ((1 - device->tail_reserve) * level - device->first_ns) / device->ns_per_row;
        if (any && device->suspected_change > 1)
            share /= device->suspected_change;
        device->work = cox__max(share, least);
        device->end_ns = device->first_ns + device->ns_per_row * device->work;
        given += device->work;
    }
    *pool_work = any ? cox__max(0, work - given) : 0;
    return level;
}
