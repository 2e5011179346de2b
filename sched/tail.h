/* What to give out at once and what to keep for later: fluid water-filling over devices that are free at different
 * times.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SCHED_TAIL_H
#define COX_SCHED_TAIL_H

#include <stdbool.h>
#include <stdint.h>

/* A device that could take rows. */
struct cox__runner {
    bool in;
    double start_ns; /* when the first row could begin: it is free, and the launch is paid */
    double speed;    /* rows per nanosecond, > 0 */
};

/* When all are done at the same time if `work` is poured over the runners, each from its start on: the least L with
 * sum max(0, L - start) / ns_per_row = work. Negative if there is no runner. Source: water-filling; runners that
 * start after the level are left out one after the other, which only lowers it. / */
double cox__tail_level(const struct cox__runner *runners, uint32_t count, double work);

/* A device in the plan of a frame. */
struct cox__tail_device {
    bool in; /* may get rows */
    double first_ns, launch_ns, ns_per_row;
    double early;   /* share of the frame's time that its band should end early, if it takes part in the pool */
    double suspect; /* it may take this many times as long; 1 = it is not suspected */
    /* The plan: */
    double work;   /* of its band; 0 = none */
    double end_ns; /* when it should be done with it */
};

/* Share out `work`: a band for each device that helps, of at least `least` work or none, and what is left for the
 * pool, 0 unless `pool`. Returns when the frame should be done; negative if no device is in. */
double cox__tail_plan(struct cox__tail_device *devices, uint32_t count, double work, double least, bool pool,
                      double *pool_work);

/* How much of its share a device gets now: all of it, or as much as leaves the rest to be balanced when it is back.
 * `speed` is its part of the speed of all. / */
double cox__tail_part(double share_ns, double launch_ns, double early, double speed);

#endif
