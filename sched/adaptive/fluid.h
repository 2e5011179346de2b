/* The fluid model of a frame: work is divisible, each device begins at a time of its own and then does work at a
 * constant speed. From it come the bands that end before the frame does, the pool, and how much a device that asks for
 * rows gets.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ADAPTIVE_FLUID_H
#define COX_ADAPTIVE_FLUID_H

#include <stdbool.h>
#include <stdint.h>

/* A device in the fluid model. */
struct cox__fluid_device {
    bool in;         /* the device may take work; the other fields count only then */
    double start_ns; /* when its first row can begin: the device is free, and the launch is paid */
    double speed;    /* rows per nanosecond, > 0 */
};

/* The time at which all devices finish together if they share `work`: the least L with
 *
 *     sum over the devices of max(0, L - start) * speed = work.
 *
 * Negative if no device is in. Source: water-filling; devices that start after L are left out one after the other,
 * which only lowers L. */
double cox__fluid_level(const struct cox__fluid_device *devices, uint32_t count, double work);

/* A device in the plan of a frame. */
struct cox__planned_device {
    bool in; /* may get rows */
    double first_ns, launch_ns, ns_per_row;
    double tail_reserve;     /* share of the frame's time by which its band ends before the frame */
    double suspected_change; /* the device may take this many times as long as its estimate says; 1 = no suspicion */
    double work;             /* planned: the work of its band; 0 = none */
    double end_ns;           /* planned: when it finishes its band */
};

/* Share out `work`: a band of at least `least` work for each device that helps, and the rest for the pool (0 unless
 * `pool`). Fills each device's `work` and `end_ns`. Returns when the frame should be done; negative if no device is
 * in. */
double cox__fluid_plan(struct cox__planned_device *devices, uint32_t count, double work, double least, bool pool,
                       double *pool_work);

/* The part of its share that a device gets now: 1, or as much as leaves a rest that can still be balanced when the
 * device is back. `speed` is the device's part of the speed of all devices. */
double cox__fluid_part(double share_ns, double launch_ns, double tail_reserve, double speed);

#endif
