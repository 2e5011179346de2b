/* The list of tainted memory, and how memory is released with respect to it.
 *
 * Owns the runtime's `tainted` and `tainted_count`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "buffer_use.h"
#include "engine.h"

#include <stdlib.h>

void cox__buffer_taint(struct cox_runtime *runtime, struct cox__mem *mem)
{
    struct cox__tainted *tainted = malloc(sizeof *tainted);
    if (!tainted) /* the memory would be freed under the device that hangs; there is none to remember that with */
        return;
    tainted->mem = mem;
    tainted->next = runtime->tainted;
    runtime->tainted = tainted;
    atomic_fetch_add(&runtime->tainted_count, 1);
}

bool cox__buffer_take_taint(struct cox_runtime *runtime, const struct cox__mem *mem)
{
    bool found = false;
    for (struct cox__tainted **link = &runtime->tainted; *link;) {
        struct cox__tainted *tainted = *link;
        if (tainted->mem != mem) {
            link = &tainted->next;
            continue;
        }
        found = true;
        *link = tainted->next;
        free(tainted);
        atomic_fetch_sub(&runtime->tainted_count, 1);
    }
    return found;
}

void cox__buffer_forget_taints(struct cox_runtime *runtime)
{
    for (struct cox__tainted *next; runtime->tainted; runtime->tainted = next) {
        next = runtime->tainted->next;
        free(runtime->tainted);
    }
}

void cox__engine_drop_mem(struct cox_runtime *runtime, struct cox__mem *mem)
{
    bool tainted = false;
    /* Mostly there is none, and the engine, which may be inside a callback of the application's, need not be asked. */
    if (atomic_load(&runtime->tainted_count)) {
        cox__watchdog_lock(runtime->watchdog);
        tainted = cox__buffer_take_taint(runtime, mem);
        cox__watchdog_unlock(runtime->watchdog);
    }
    if (tainted)
        runtime->backend->ops->mem_abandon(runtime->backend, mem);
    else
        runtime->backend->ops->mem_destroy(runtime->backend, mem);
}
