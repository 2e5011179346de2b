/* SPDX-License-Identifier: Apache-2.0 */
#include "misuse.h"

#include <unistd.h>

bool cox__misuse_forked(const cox_runtime *runtime, const char *function)
{
    const bool forked = getpid() != runtime->pid;
    if (forked)
        cox__log(&runtime->log, COX_LOG_ERROR,
                 "%s: called in a child process; the runtime belongs to the parent", function);

    return forked;
}

bool cox__misuse_in_callback(const cox_runtime *runtime, const char *function)
{
    const bool inside = cox__watchdog_is_held_here(runtime->watchdog);
    if (inside)
        cox__log(&runtime->log, COX_LOG_ERROR, "%s: must not be called from a callback", function);

    return inside;
}

bool cox__misuse(const cox_runtime *runtime, const char *function)
{
    return cox__misuse_forked(runtime, function) || cox__misuse_in_callback(runtime, function);
}
