/* The best fixed split in hindsight: the yardstick of policies in a stream of frames.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_BEST_STATIC_H
#define COX_EXAMPLES_LAB_BEST_STATIC_H

#include "simulate.h"

/* Find the ratios that take the least time if they are kept for a whole run of this seed. The
 * simulation is that of the policies, with frames in flight, engine and chance.
 *
 * The search begins with `ratios` (device_count, the sum 1) and moves shares from device to device
 * while that helps, in steps from `step` on that get smaller. A device may get nothing. With a step
 * of 0.1 or more and at most four devices it also tries each device alone.
 *
 * It takes at most 120 simulations, 40 with a smaller step, a third of that with more than eight
 * devices. With many devices, or a bad start, the result may not be the best.
 *
 * `scratch` has world->frames entries. Fills `ratios` and the sum of the frames' periods.
 * Errors: those of lab_simulate. */
cox_status lab_best_static(const struct lab_world *world, const struct lab_sim_options *options,
                           uint64_t seed, double step, struct lab_sim_frame *scratch,
                           double *ratios, double *total_ns);

#endif
