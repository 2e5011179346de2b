/* The best that a fixed split can do if the devices' costs are known, apart from chance.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_ORACLE_H
#define COX_EXAMPLES_LAB_ORACLE_H

#include "simulate.h"

/* The time of a frame in which each device has `work_ns` of work, alone (0 = none). All begin at
 * once and slow each other down as the world says. */
double lab_makespan(const struct lab_world *world, uint64_t frame, const double *work_ns);

/* Find the oracle's split and fill all of `out` but its condition. A device must be alive.
 *
 * The split has one band for each device of a set, in the order of the devices. Without contention
 * one search over all devices is exact for that order. For a given time each device takes as many
 * rows as it can finish. Bisection finds the least time that covers the frame.
 *
 * With contention and up to six devices, every set is searched. With more devices, one device after
 * the other is left out, and only the sets that remain are searched. Granules are then moved
 * between bands while that helps, since a device that ends early stops slowing down the others. */
void lab_oracle_find(const struct lab_world *world, uint64_t frame, uint32_t rows,
                     uint32_t row_alignment, const bool *alive, struct lab_oracle *out);

/* The cost of a split in something else than time, such as joules, from the busy nanoseconds of
 * each device and the frame's time. */
typedef double lab_price_fn(const void *ctx, const double *busy_ns, double wall_ns);

enum { LAB_ORACLE_PRICED_MAX = 3 };

/* The least price of one band for each device, in the order of the devices, within `limit_ns` if
 * possible, apart from chance. Tries all splits. Negative for more than LAB_ORACLE_PRICED_MAX
 * devices. */
double lab_oracle_price(const struct lab_world *world, uint64_t frame, uint32_t rows,
                        uint32_t row_alignment, const bool *alive, double limit_ns,
                        lab_price_fn *price, const void *ctx);

#endif
