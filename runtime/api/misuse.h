/* Calls from a wrong place: they only write a line to the log. All public functions use this.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_MISUSE_H
#define COX_API_MISUSE_H

#include "engine/engine.h"

/* Whether this is a child process after fork: it has none of the runtime's threads. Takes no lock,
 * since a thread that exists only in the parent may hold it. */
bool cox__misuse_forked(const cox_runtime *runtime, const char *function);

/* Whether a parent of this process created a runtime before it forked. OpenCL's drivers have
 * threads that fork does not copy, so the first call into them here would never return. Logs
 * why. */
bool cox__misuse_inherited_opencl(const struct cox__log *log);

/* Whether the caller is inside a callback of the runtime: `function` would wait for itself. */
bool cox__misuse_in_callback(const cox_runtime *runtime, const char *function);

/* Either of the two. */
bool cox__misuse(const cox_runtime *runtime, const char *function);

/* Whether the argument of this name, which `function` needs, is NULL. */
static inline bool cox__misuse_null(const cox_runtime *runtime, const void *argument,
                                    const char *function, const char *name)
{
    if (!argument)
        cox__log(&runtime->log, COX_LOG_ERROR, "%s: %s is NULL", function, name);

    return !argument;
}

#endif
