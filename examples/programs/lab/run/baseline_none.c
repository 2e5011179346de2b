/* In the place of baseline.c where this program is built without StarPU.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

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
