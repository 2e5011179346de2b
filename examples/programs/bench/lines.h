/* Lines that the text outputs of several commands have in common.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_LINES_H
#define BENCH_LINES_H

#include "common/host_machine.h"
#include "common/quiet.h"

void bench_print_machine(const struct machine *machine);

/* What other programs did during the measurement. `unit`: what was repeated, "rounds". */
void bench_print_quiet(const struct quiet *quiet, const char *unit);

/* "met" or "MISSED". */
const char *bench_verdict(bool met);

#endif
