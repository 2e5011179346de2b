/* Measures how much longer a frame takes if a device dies in it. One frame is in flight, on two to four scripted
 * devices of different speed and on a virtual clock. The fastest or the slowest device dies, by an error or by a
 * hang.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAULT_DEATH_H
#define COX_TESTS_FAULT_DEATH_H

#include <stdbool.h>
#include <stdio.h>

enum { FAULT_DEATH_DEVICES_MAX = 4 };

/* Prints a table. Returns true if all of this holds:
 *   Every frame was right.
 *   The frame with the death took at most the deadline and twice the optimum of the other devices.
 *   The next frame took at most 1.05 times that optimum. */
bool fault_death_print(FILE *stream);

#endif
