/* The end of a run by a signal.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_RUN_INTERRUPT_H
#define COX_EXAMPLES_LAB_RUN_INTERRUPT_H

#include <stdbool.h>

/* SIGINT and SIGTERM end the run; a second one ends the process at once. */
void lab__run_catch_signals(void);
bool lab__run_interrupted(void);

#endif
