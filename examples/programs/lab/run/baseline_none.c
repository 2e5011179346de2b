/* Replaces baseline.c in a program without StarPU.
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

const bool lab_run_has_starpu = false;

bool lab__run_open_baseline(struct run *run)
{
    (void)run;
    return false;
}

void lab__run_close_baseline(struct run *run)
{
    (void)run;
}

bool lab__run_baseline_frames(struct run *run, struct lane *lane, uint64_t count)
{
    (void)run, (void)lane, (void)count;
    return false;
}
