/* Devices that hang, and memory objects that are released only when these devices have ended.
 *
 * The release of a memory object that a hung device may still use is deferred. A note names the
 * queue or the group of devices that the release waits for. When all commands of the abandoned
 * instance have ended, the destruction of the instance releases the object.
 *
 * One lock covers two pairs of steps: to read the queue's state and add a note, and to change the
 * state and take the notes. So no note is missed.
 *
 * Lock order: `hang_lock` is taken last, and no driver is called with it held.
 * SPDX-License-Identifier: Apache-2.0 */
#include "hang.h"
#include "host/leak.h"

#include <stdlib.h>

/* A note: release `mem`. */
struct cox__cl_deferred {
    struct cox__cl_deferred *next;
    struct cox__cl_queue *queue; /* wait until this queue is not abandoned; NULL = for `group` */
    uint32_t group;              /* wait until no device of this group hangs */
    cl_mem mem;
    void *mapped; /* unmapped before, since a mapping keeps the memory object; may be NULL */
    struct cox__cl_pages *pages; /* on which `mem` lies; may be NULL */
};

bool cox__cl_hang_in_group(const struct cox__cl_backend *backend, uint32_t group)
{
    bool hangs = false;
    for (uint32_t d = 0; d < backend->device_count; d++)
        hangs |= backend->devices[d].group == group && atomic_load(&backend->devices[d].hung);
    return hangs;
}

static bool must_wait(const struct cox__cl_backend *backend, const struct cox__cl_deferred *note)
{
    if (note->queue)
        return cox__cl_command_queue_state(note->queue) == COX__CL_ABANDONED;
    return cox__cl_hang_in_group(backend, note->group);
}

/* The queue on which the note's memory was mapped. For a band object, this is the object's queue.
 * For pinned memory, it is the service queue of a device of the group; any can unmap it. */
static cl_command_queue mapped_on(const struct cox__cl_backend *backend,
                                  const struct cox__cl_deferred *note)
{
    if (note->queue)
        return note->queue->id;

    for (uint32_t d = 0; d < backend->device_count; d++)
        if (backend->devices[d].group == note->group && backend->devices[d].service)
            return backend->devices[d].service;
    return NULL;
}

static void release(const struct cox__cl_backend *backend, struct cox__cl_deferred *note)
{
    cl_command_queue queue = NULL;
    if (note->mapped)
        queue = mapped_on(backend, note);

    /* The unmapping must end before the pages go. */
    if (queue) {
        clEnqueueUnmapMemObject(queue, note->mem, note->mapped, 0, NULL, NULL);
        cox__cl_command_queue_drain(queue, note->queue, COX__CL_SHORT_TIMEOUT_NS);
    }

    clReleaseMemObject(note->mem);
    if (note->queue)
        cox__cl_command_queue_unref(note->queue);

    cox__cl_shared_pages_unref(note->pages);
    free(note);
}

void cox__cl_hang_release_after(struct cox__cl_backend *backend, cl_mem mem, void *mapped,
                                struct cox__cl_queue *queue, uint32_t group,
                                struct cox__cl_pages *pages)
{
    struct cox__cl_deferred *note = malloc(sizeof *note);
    if (!note) {
        cox__log(backend->log, COX_LOG_WARN,
                 "no memory to track an object of a hung device; it is leaked");
        return;
    }

    *note = (struct cox__cl_deferred){.queue = queue,
                                      .group = group,
                                      .mem = mem,
                                      .mapped = mapped,
                                      .pages = cox__cl_shared_pages_ref(pages)};

    pthread_mutex_lock(&backend->hang_lock);
    const bool waits = must_wait(backend, note);
    if (waits) {
        note->next = backend->deferred;
        backend->deferred = note;
    }
    pthread_mutex_unlock(&backend->hang_lock);

    if (!waits)
        release(backend, note);
}

void cox__cl_hang_begins(struct cox__cl_backend *backend, uint32_t device,
                         struct cox__cl_queue *queue)
{
    pthread_mutex_lock(&backend->hang_lock);
    atomic_store(&queue->state, COX__CL_ABANDONED);
    atomic_fetch_add(&backend->devices[device].hung, 1);
    pthread_mutex_unlock(&backend->hang_lock);
}

void cox__cl_hang_ends(struct cox__cl_backend *backend, uint32_t device,
                       struct cox__cl_queue *queue)
{
    struct cox__cl_deferred *due = NULL; /* the notes whose wait is over */

    pthread_mutex_lock(&backend->hang_lock);
    atomic_store(&queue->state, COX__CL_FAILED);
    atomic_fetch_sub(&backend->devices[device].hung, 1);

    for (struct cox__cl_deferred **link = &backend->deferred; *link;) {
        struct cox__cl_deferred *note = *link;
        if (must_wait(backend, note)) {
            link = &note->next;
            continue;
        }

        *link = note->next;
        note->next = due;
        due = note;
    }
    pthread_mutex_unlock(&backend->hang_lock);

    while (due) {
        struct cox__cl_deferred *note = due;
        due = note->next;
        release(backend, note);
    }
}

void cox__cl_hang_leak_deferred(struct cox__cl_backend *backend)
{
    uint32_t count = 0;

    while (backend->deferred) {
        struct cox__cl_deferred *note = backend->deferred;
        backend->deferred = note->next;

        cox__leak(note->mem);
        if (note->queue)
            cox__cl_command_queue_unref(note->queue); /* not the last: its instance has another */

        free(note);
        count++;
    }

    if (count)
        cox__log(backend->log, COX_LOG_WARN, "%u memory objects of hung devices are leaked", count);
}
