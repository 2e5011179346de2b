/* The reserved core: chosen, kept free of drivers' worker threads, and given to the scheduler
 * thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_TOPOLOGY_H
#define COX_HOST_TOPOLOGY_H

#include "base/log.h"

/* The scheduler thread's name, by which /proc tells it from workers; at most 15 characters. */
#define COX__SCHEDULER_NAME "cox-scheduler"

struct cox__topology;

/* Load the topology (without hwloc's OpenCL plugin) and choose the core that would be reserved. The
 * choice is the first of these that exists:
 *   1. With `reserve` COX_RESERVE_CORE, the core of `reserve_cpu`.
 *   2. An efficiency core, if the kinds tell them apart.
 *   3. The core nearest to a display-class PCI device.
 *   4. The last core.
 * Must run before the process first touches OpenCL. If the machine cannot be read, the log says so
 * and no core is reserved.
 * Errors: COX_E_INVALID (no such CPU, or not in the calling thread's mask), COX_E_NOMEM,
 * COX_E_SYSTEM. */
cox_status cox__topology_create(struct cox__topology **out, enum cox_reserve reserve,
                                uint32_t reserve_cpu, const struct cox__log *log);
void cox__topology_destroy(struct cox__topology **topology);

/* Bracket the calls in which drivers may start worker threads. Between enter and leave the calling
 * thread runs on every core except the chosen one, and threads born in it inherit that. Does
 * nothing if reservation is off, or if the machine has fewer than two cores. `leave` restores the
 * caller's mask; the first leave also notes which threads appeared.
 * Thread-safety: each thread brackets for itself; the note belongs to the first bracket only. */
void cox__topology_enter(struct cox__topology *topology);
void cox__topology_leave(struct cox__topology *topology);

/* Once the devices are known, keep the reservation or drop it. AUTO drops it without an
 * asynchronous device, without a CPU device, or with fewer than three cores; threads noted by the
 * first bracket then get the core back.
 *
 * With `cpu_device`, the first bracket should have seen enough threads appear that stay off the
 * core. If not, another library started the workers: the log says so, and workers_kept_off stays
 * false. Only the first call counts. */
void cox__topology_decide(struct cox__topology *topology, bool async_device, bool cpu_device);

/* After decide: whether a core is reserved. */
bool cox__topology_reserved(const struct cox__topology *topology);

/* After decide: whether the scheduler thread is bound to the reserved core, and no worker runs
 * there. */
bool cox__topology_scheduler_alone(const struct cox__topology *topology);

/* Compute units (hardware threads) that workers may use: all of this process minus those of the
 * reserved core. */
uint32_t cox__topology_worker_cpus(const struct cox__topology *topology);

/* Name the calling thread, and bind it to the reserved core. Does not bind it without a
 * reservation, or if workers may run on the core: a thread that can move elsewhere is then better
 * off. */
void cox__topology_bind_scheduler(struct cox__topology *topology);

void cox__topology_host_info(const struct cox__topology *topology, struct cox_host_info *info);

#endif
