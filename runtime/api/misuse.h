/* Calls at a wrong place: they do nothing but a line in the log.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_MISUSE_H
#define COX_API_MISUSE_H

#include "engine/engine.h"

/* Whether this is another process than the one that made the runtime: a child after fork, which has none of its
 * threads. Takes no lock, since a thread that is not here may hold it. */
bool cox__misuse_forked(const cox_runtime *runtime, const char *function);

/* Whether the caller is inside a callback of the runtime's, where `function` would wait for itself. */
bool cox__misuse_in_callback(const cox_runtime *runtime, const char *function);

/* Either. */
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
