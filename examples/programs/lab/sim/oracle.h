/* The best that a fixed split can do when the devices' costs are known, chance apart.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_ORACLE_H
#define COX_EXAMPLES_LAB_ORACLE_H

#include "simulate.h"

/* The frame's time when each device has so much work, in nanoseconds alone (0 = none), all begin at once, and they slow
 * each other down as the world says. */
double lab_makespan(const struct lab_world *world, uint64_t frame, const double *work_ns);

/* Fill all of `out` but its condition. At least one device must be alive.
 *
 * One band for each device of a set, in the order of the devices. Without contention one search over all devices is
 * exact for that order: for a given time each device takes as many rows as it can finish, and bisection finds the least
 * time that covers the frame. Where devices slow each other down, every set of up to six devices is searched (of more:
 * those that leaving out one device after the other goes through), and granules are then moved between bands while that
 * helps, since a device that is done early stops slowing down the others. */
void lab_oracle_find(const struct lab_world *world, uint64_t frame, uint32_t rows, uint32_t granule,
                     const bool *alive, struct lab_oracle *out);

/* What a split costs in something else than time, e.g. joules, from the busy nanoseconds of each device and the
 * frame's. */
typedef double lab_price_fn(const void *ctx, const double *busy_ns, double wall_ns);

enum { LAB_ORACLE_PRICED_MAX = 3 };

/* The least price of one band for each device, in the order of the devices, with the frame's time within `limit_ns`
 * where that is possible, chance apart: by trying all splits. Negative for more than LAB_ORACLE_PRICED_MAX devices. */
double lab_oracle_price(const struct lab_world *world, uint64_t frame, uint32_t rows,
                        uint32_t granule, const bool *alive, double limit_ns, lab_price_fn *price,
                        const void *ctx);

#endif
