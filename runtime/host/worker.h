/* Background tasks of the engine that may block for as long as a driver takes: destroy a device
 * instance, create one again, allocate and destroy memory. They are rare, so each task gets its own
 * thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_WORKER_H
#define COX_HOST_WORKER_H

#include "topology.h"

#include <coxswain/status.h>
#include <stdbool.h>
#include <stdint.h>

struct cox__worker;

/* `topology` (may be NULL): tasks run off the reserved core, like every thread that may make a
 * driver start threads. With `inline_tasks` there is no thread: a task runs inside cox__worker_run,
 * as a virtual clock needs it.
 * Errors: COX_E_NOMEM. */
cox_status cox__worker_create(struct cox__worker **out, struct cox__topology *topology,
                              bool inline_tasks);

/* Run a task once on its own thread, after the tasks given before it. A task that has run for
 * a second does not delay others any more. Does not wait for tasks. Returns false if there is no
 * memory or no thread; the task then does not run.
 * Thread-safety: safe from any thread. */
bool cox__worker_run(struct cox__worker *worker, void (*run)(void *ctx), void *ctx);

/* The same without waiting for other tasks. */
bool cox__worker_run_now(struct cox__worker *worker, void (*run)(void *ctx), void *ctx);

/* Wait for all tasks, for at most `timeout_ns`, then destroy and set to NULL; NULL is accepted.
 * Returns false if a task is stuck. Then the worker's memory is leaked, and tasks that have not
 * begun never run. What the task works on must stay, and the topology too. */
bool cox__worker_destroy(struct cox__worker **worker, uint64_t timeout_ns);

#endif
