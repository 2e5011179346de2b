/* SPDX-License-Identifier: Apache-2.0 */
#include "misuse.h"

#include <stdatomic.h>
#include <sys/types.h>
#include <unistd.h>

bool cox__misuse_forked(const cox_runtime *runtime, const char *function)
{
    const bool forked = getpid() != runtime->pid;
    if (forked)
        cox__log(&runtime->log, COX_LOG_ERROR,
                 "%s: called in a child process; the runtime belongs to the parent", function);

    return forked;
}

bool cox__misuse_inherited_opencl(const struct cox__log *log)
{
    /* The process that created the first runtime. This is the library's only global state: a child
     * process has no runtime that could hold it. */
    static _Atomic pid_t first;
    pid_t expected = 0;
    const pid_t self = getpid();

    if (atomic_compare_exchange_strong(&first, &expected, self) || expected == self)
        return false;

    cox__log(log, COX_LOG_ERROR,
             "cox_runtime_create: process %d created a runtime and then forked this process. "
             "OpenCL drivers do not work after fork: start this process with exec or posix_spawn "
             "(Python: multiprocessing.set_start_method(\"spawn\"))",
             (int)expected);
    return true;
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
