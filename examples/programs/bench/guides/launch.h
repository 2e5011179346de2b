/* Variants that are kernel launches: built, checked and timed; and errors of any variant.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GUIDES_LAUNCH_H
#define BENCH_GUIDES_LAUNCH_H

#include "experiment.h"

/* Set a cell's status and reason; returns false. */
bool guides_cell_fail(struct guides_cell *cell, enum guides_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether an OpenCL call failed; the cell then says so. */
bool guides_cell_failed(struct guides_cell *cell, cl_int code, const char *call);

/* Create program, kernels, arguments and sizes. False = failed, and the cell says why. */
bool guides_prepare(struct guides_run *run, uint32_t variant);
void guides_release(struct guides_prepared *prepared);

/* Run all launches `repeat` times, at most GUIDES_REPEAT_MAX times with a profile. Returns their
 * time in ns, by the host's clock if `wall`, else by the profile if there is one. 0 = failed, and
 * the cell says why. */
double guides_launch(struct guides_run *run, uint32_t variant, uint32_t repeat, bool wall);

/* Run a variant once and compare its output. False = wrong or failed, and the cell says why. */
bool guides_check(struct guides_run *run, uint32_t variant);

#endif
