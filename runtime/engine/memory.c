/* Destroys unused memory. The worker thread does it, because the call may wait for other frames'
 * commands on the devices.
 *
 * A lost device may wake up and then still read and write its bands' memory. The ABANDONED slots
 * of the lost queue list this memory, and it is kept until the queue is gone.
 *
 * Owns struct cox__release, and `kept` in struct cox__lost.
 * SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"
#include "engine.h"
#include "host/leak.h"

static struct cox__mem_link *link_of(const struct cox_runtime *runtime, struct cox__mem *mem)
{
    return runtime->backend->ops->mem_link(mem);
}

/* ---- tainted ---- */

static bool holds(const struct cox__queue *queue, const struct cox__mem *mem, bool written)
{
    for (uint32_t i = 0; i < queue->slot_count; i++)
        for (uint32_t b = 0; queue->slots[i].state == COX__SLOT_ABANDONED && b < COX_BUFFERS_MAX;
             b++)
            if (queue->slots[i].mems[b] == mem && (!written || queue->slots[i].written >> b & 1))
                return true;

    return false;
}

static bool any_holds(const struct cox__queue *queue, const struct cox__mem *mem, bool written)
{
    while (queue && !holds(queue, mem, written))
        queue = queue->next;
    return queue != NULL;
}

bool cox__memory_is_tainted(const struct cox_runtime *runtime, const struct cox__mem *mem,
                            bool written)
{
    if (!mem || !atomic_load(&runtime->lost.abandoned))
        return false;

    bool tainted = any_holds(runtime->lost.stray, mem, written);
    for (const struct cox_session *session = runtime->active; session && !tainted;
         session = session->next_active)
        tainted = any_holds(session->recovery.lost_queues, mem, written);

    return tainted;
}

/* ---- the worker thread ---- */

static struct cox__mem *take_next(struct cox_runtime *runtime)
{
    pthread_mutex_lock(&runtime->release.lock);

    struct cox__mem *mem = runtime->release.list;
    if (mem)
        runtime->release.list = link_of(runtime, mem)->next;
    else
        runtime->release.has_task = false;

    pthread_mutex_unlock(&runtime->release.lock);

    return mem;
}

static void note_released(struct cox__release *release, bool inside)
{
    pthread_mutex_lock(&release->lock);
    release->in_released = inside;
    release->thread = pthread_self();
    pthread_mutex_unlock(&release->lock);
}

bool cox__memory_is_in_released(struct cox_runtime *runtime)
{
    pthread_mutex_lock(&runtime->release.lock);

    const bool inside = runtime->release.in_released &&
                        pthread_equal(runtime->release.thread, pthread_self());
    pthread_mutex_unlock(&runtime->release.lock);

    return inside;
}

/* Destroy all memory in the list. With `alone` the engine lock is held, so that no other thread
 * calls the driver. */
static void release_all(struct cox_runtime *runtime, bool alone)
{
    for (struct cox__mem *mem; (mem = take_next(runtime));) {
        const struct cox__mem_link link = *link_of(runtime, mem);

        if (alone)
            cox__watchdog_lock(runtime->watchdog);
        const bool destroyed = runtime->backend->ops->mem_destroy(runtime->backend, mem);
        if (alone)
            cox__watchdog_unlock(runtime->watchdog);
        if (!destroyed)
            cox__leak(link.user);
        if (!destroyed || !link.released)
            continue;

        note_released(&runtime->release, true);
        link.released(link.user);
        note_released(&runtime->release, false);
    }
}

static void release_task(void *ctx)
{
    struct cox_runtime *runtime = ctx;
    release_all(runtime, runtime->backend->ops->one_thread &&
                             runtime->backend->ops->one_thread(runtime->backend));
}

static void release(struct cox_runtime *runtime, struct cox__mem *mem)
{
    pthread_mutex_lock(&runtime->release.lock);
    link_of(runtime, mem)->next = runtime->release.list;
    runtime->release.list = mem;
    const bool begins = !runtime->release.has_task;
    runtime->release.has_task = true;
    pthread_mutex_unlock(&runtime->release.lock);

    if (!begins || !runtime->worker || cox__worker_run_now(runtime->worker, release_task, runtime))
        return;

    /* No thread: the memory waits for the next release, or for the end of the runtime. */
    pthread_mutex_lock(&runtime->release.lock);
    runtime->release.has_task = false;
    pthread_mutex_unlock(&runtime->release.lock);
}

/* ---- letting go ---- */

static void keep(struct cox_runtime *runtime, struct cox__mem *mem)
{
    link_of(runtime, mem)->next = runtime->lost.kept;
    runtime->lost.kept = mem;
}

void cox__memory_let_go(struct cox_runtime *runtime, struct cox__mem *mem)
{
    if (cox__memory_is_tainted(runtime, mem, false))
        keep(runtime, mem);
    else
        release(runtime, mem);
}

void cox__memory_release_kept(struct cox_runtime *runtime)
{
    struct cox__mem *next, *kept = runtime->lost.kept;

    runtime->lost.kept = NULL;

    for (; kept; kept = next) {
        next = link_of(runtime, kept)->next;
        cox__memory_let_go(runtime, kept);
    }
}

/* ---- for threads that hold no lock ---- */

/* Whether to check if memory is tainted. The check needs the engine lock; *locked: it was taken for
 * the check. Usually no queue is abandoned, and the lock, whose holder may be inside a driver call,
 * is not needed. Unused memory cannot become tainted later. */
static bool must_ask(struct cox_runtime *runtime, bool *locked)
{
    *locked = false;
    if (!atomic_load(&runtime->lost.abandoned))
        return false;
    if (cox__watchdog_is_held_here(runtime->watchdog))
        return true;

    cox__watchdog_lock(runtime->watchdog);

    return *locked = true;
}

void cox__memory_let_go_locking(struct cox_runtime *runtime, struct cox__mem *mem)
{
    bool locked;

    if (must_ask(runtime, &locked))
        cox__memory_let_go(runtime, mem);
    else
        release(runtime, mem);

    if (locked)
        cox__watchdog_unlock(runtime->watchdog);
}

bool cox__memory_drop(struct cox_runtime *runtime, struct cox__mem *mem)
{
    bool locked;
    const bool tainted = must_ask(runtime, &locked) && cox__memory_is_tainted(runtime, mem, false);

    if (tainted)
        keep(runtime, mem);
    if (locked)
        cox__watchdog_unlock(runtime->watchdog);

    return !tainted && runtime->backend->ops->mem_destroy(runtime->backend, mem);
}

void cox__memory_forget(struct cox_runtime *runtime)
{
    release_all(runtime, false);

    for (struct cox__mem *next; runtime->lost.kept; runtime->lost.kept = next) {
        const struct cox__mem_link *link = link_of(runtime, runtime->lost.kept);
        next = link->next;
        cox__leak(link->user);
        runtime->backend->ops->mem_abandon(runtime->backend, runtime->lost.kept);
    }
}
