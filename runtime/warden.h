/* A background thread for what may block for as long as a driver pleases: trying a lost device again, letting go of one that
 * hangs. Made with the first task and kept; where a task is stuck, the next one gets a thread of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_WARDEN_H
#define COX_RUNTIME_WARDEN_H

#include "topology.h"

#include <coxswain/status.h>
#include <stdbool.h>
#include <stdint.h>

struct cox__warden;

/* `topology` (may be NULL): tasks run off the reserved core, like every thread that may make a driver start threads. With
 * `inline_tasks` there is no thread: a task runs inside cox__warden_run. Errors: COX_E_NOMEM. */
cox_status cox__warden_create(struct cox__warden **out, struct cox__topology *topology, bool inline_tasks);

/* Have `task` run once, after those given before it, but not behind one that has run for longer than a second. False: there
 * is no memory or thread for it, and it does not run. Any thread; does not block on tasks. */
bool cox__warden_run(struct cox__warden *warden, void (*task)(void *ctx), void *ctx);

/* Wait for all tasks, for at most `patience_ns`, then destroy and set to NULL; NULL is accepted. False: a task is stuck; what
 * it works on must stay, the topology too, and tasks that have not begun never do. */
bool cox__warden_destroy(struct cox__warden **warden, uint64_t patience_ns);

#endif
