/* The best fixed split in hindsight: what the policies of a stream of frames are measured by.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_BEST_STATIC_H
#define COX_EXAMPLES_LAB_BEST_STATIC_H

#include "simulate.h"

/* Find the ratios which, kept for a whole run of this seed, take the least time in the very simulation that policies
 * go through: frames in flight, engine, chance and all.
 *
 * The search begins with `ratios` (device_count, the sum 1) and moves shares from device to device, in smaller and
 * smaller steps from `step` on, while that helps; a device may get nothing. From a step of 0.1 on it also tries each
 * device alone, where there are at most four. At most 120 simulations, 40 with a smaller step, a third of that with
 * more than eight devices: with many devices, or a start that is far off, the result may not be the best.
 *
 * `scratch` has world->frames entries. Fills `ratios` and the sum of the frames' periods. Errors: those of
 * lab_simulate. */
cox_status lab_best_static(const struct lab_world *world, const struct lab_sim_options *options,
                           uint64_t seed, double step, struct lab_sim_frame *scratch,
                           double *ratios, double *total_ns);

#endif
