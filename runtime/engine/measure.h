/* How the warm-up times one device in one pass. Level 0 of the engine: it knows only rows and
 * times.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_MEASURE_H
#define COX_ENGINE_MEASURE_H

#include "session_parts.h"

/* Begin the runs of a device in a pass of `rows` rows, where bands begin at multiples of `unit`.
 * A slice has at most `most` rows. `known_ns` is the device's time for the whole pass by a device
 * profile, or 0. `only`: the session has no other device to compare with. */
void cox__measure_begin(struct cox__measure *measure, uint32_t rows, uint32_t unit, uint32_t most,
                        uint64_t known_ns, bool only);

/* The run that `measure` asks for took `ns` for `rows` rows. `blocks`: the device seems to compute
 * inside the enqueue call. Returns the device's time for the whole pass, or 0 if the run shows
 * nothing new. */
uint64_t cox__measure_learn(struct cox__measure *measure, uint32_t rows, uint64_t ns, bool blocks);

#endif
