/* How much longer a frame takes in which a device dies. With one frame in flight, on two to four scripted devices of
 * different strength and a virtual clock: by an error or by a hang, the strongest or the weakest of them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAULT_DEATH_H
#define COX_TESTS_FAULT_DEATH_H

#include <stdbool.h>
#include <stdio.h>

enum { FAULT_DEATH_DEVICES_MAX = 4 };

/* Print a table. True if every frame was right, the fatal one took at most twice the survivors' optimum beyond the
 * deadline, and the next one at most 1.05 times that optimum. */
bool fault_death_print(FILE *stream);

#endif
