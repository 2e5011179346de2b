/* Queues that may hang, and what has to wait until they do not.
 *
 * Nothing here waits in the driver: an end is learnt by asking, so that whoever waits can stop.
 *
 * What a device that hangs may still touch is `left`: noted with the queue or the device it waits for, and released by the
 * destruction of the abandoned unit, once all that the unit had under way has ended. The note and the look at the queue's
 * state are made under one lock, and so are the change of the state and the taking of the notes: none is forgotten.
 *
 * Lock order: `left_lock` is taken last, and no driver is called with it held.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cl_internal.h"
#include "give_up.h"

#include <stdlib.h>
#include <time.h>

/* A note: release this. */
struct cox__cl_left {
    struct cox__cl_left *next;
    struct cox__cl_queue *queue; /* once this one is no longer abandoned; NULL: ... */
    uint32_t group;              /* ... once no device of this group hangs */
    cl_mem mem;
    void *mapped;                /* unmapped first, since a mapping keeps the memory object; may be NULL */
    struct cox__cl_pages *pages; /* what `mem` lies on; may be NULL */
};

/* ---- waiting ---- */

cl_int cox__cl_drain(cl_command_queue queue, struct cox__cl_queue *of, uint64_t patience_ns)
{
    const uint64_t until = cox__clock_ns() + patience_ns;
    long pause_ns = 20000;
    cl_event event;
    cl_int code = clEnqueueMarkerWithWaitList(queue, 0, NULL, &event);
    if (code)
        return code;
    code = clFlush(queue);
    while (code == CL_SUCCESS) {
        cl_int state = CL_QUEUED;
        code = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        if (code == CL_SUCCESS && state <= CL_COMPLETE) {
            code = state;
            break;
        }
        if (code == CL_SUCCESS && ((of && cox__cl_queue_state(of) == COX__CL_ABANDONED) || cox__clock_ns() >= until)) {
            cox__give_up(event); /* releasing it may block */
            return COX__CL_NOT_IN_TIME;
        }
        const struct timespec pause = {.tv_sec = 0, .tv_nsec = pause_ns};
        nanosleep(&pause, NULL);
        pause_ns = pause_ns < 1000000 ? pause_ns * 2 : pause_ns;
    }
    clReleaseEvent(event);
    return code;
}

/* ---- queues ---- */

struct cox__cl_queue *cox__cl_queue_new(cl_command_queue id, cl_context context, bool subbuffers)
{
    struct cox__cl_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    atomic_init(&queue->refs, 1);
    atomic_init(&queue->state, COX__CL_SOUND);
    queue->id = id;
    queue->context = context;
    queue->subbuffers = subbuffers;
    return queue;
}

enum cox__cl_queue_state cox__cl_queue_state(const struct cox__cl_queue *queue)
{
    return (enum cox__cl_queue_state)atomic_load(&queue->state);
}

void cox__cl_queue_failed(struct cox__cl_queue *queue)
{
    int sound = COX__CL_SOUND;
    atomic_compare_exchange_strong(&queue->state, &sound, COX__CL_FAILED);
}

struct cox__cl_queue *cox__cl_queue_ref(struct cox__cl_queue *queue)
{
    atomic_fetch_add(&queue->refs, 1);
    return queue;
}

void cox__cl_queue_unref(struct cox__cl_queue *queue)
{
    if (atomic_fetch_sub(&queue->refs, 1) > 1)
        return;
    clReleaseCommandQueue(queue->id); /* not an abandoned one: its unit has a reference until it is over */
    free(queue);
}

/* ---- memory ---- */

struct cox__cl_pages *cox__cl_pages_new(size_t bytes)
{
    struct cox__cl_pages *pages = calloc(1, sizeof *pages);
    if (!pages)
        return NULL;
    pages->data = cox__pages_create(bytes);
    if (!pages->data) {
        free(pages);
        return NULL;
    }
    pages->bytes = bytes;
    atomic_init(&pages->refs, 1);
    return pages;
}

void cox__cl_pages_unref(struct cox__cl_pages *pages)
{
    if (!pages || atomic_fetch_sub(&pages->refs, 1) > 1)
        return;
    cox__pages_destroy(pages->data, pages->bytes);
    free(pages);
}

/* ---- what is left ---- */

bool cox__cl_group_hangs(const struct cox__cl_backend *backend, uint32_t group)
{
    bool hangs = false;
    for (uint32_t d = 0; d < backend->device_count; d++)
        hangs |= backend->devices[d].group == group && atomic_load(&backend->devices[d].hung);
    return hangs;
}

static bool must_wait(const struct cox__cl_backend *backend, const struct cox__cl_left *left)
{
    return left->queue ? cox__cl_queue_state(left->queue) == COX__CL_ABANDONED
                       : cox__cl_group_hangs(backend, left->group);
}

/* The queue that a note's mapping was made on: the band's own, or for pinned memory its device's, of which any of the group does. */
static cl_command_queue mapped_on(const struct cox__cl_backend *backend, const struct cox__cl_left *left)
{
    if (left->queue)
        return left->queue->id;
    for (uint32_t d = 0; d < backend->device_count; d++)
        if (backend->devices[d].group == left->group && backend->devices[d].service)
            return backend->devices[d].service;
    return NULL;
}

static void release_left(const struct cox__cl_backend *backend, struct cox__cl_left *left)
{
    cl_command_queue queue = left->mapped ? mapped_on(backend, left) : NULL;
    if (queue) {
        clEnqueueUnmapMemObject(queue, left->mem, left->mapped, 0, NULL, NULL);
        cox__cl_drain(queue, left->queue, COX__CL_LITTLE_PATIENCE_NS); /* before its pages go */
    }
    clReleaseMemObject(left->mem);
    if (left->queue)
        cox__cl_queue_unref(left->queue);
    cox__cl_pages_unref(left->pages);
    free(left);
}

void cox__cl_leave(struct cox__cl_backend *backend, cl_mem mem, void *mapped, struct cox__cl_queue *queue,
                   uint32_t group, struct cox__cl_pages *pages)
{
    struct cox__cl_left *left = malloc(sizeof *left);
    if (!left) {
        cox__log(backend->log, COX_LOG_WARN, "no memory to note what a device that hangs keeps; it is given up");
        return;
    }
    *left = (struct cox__cl_left){.queue = queue, .group = group, .mem = mem, .mapped = mapped, .pages = pages};
    if (pages)
        atomic_fetch_add(&pages->refs, 1);
    pthread_mutex_lock(&backend->left_lock);
    const bool waits = must_wait(backend, left);
    if (waits) {
        left->next = backend->left;
        backend->left = left;
    }
    pthread_mutex_unlock(&backend->left_lock);
    if (!waits)
        release_left(backend, left);
}

void cox__cl_hangs(struct cox__cl_backend *backend, uint32_t device, struct cox__cl_queue *queue)
{
    pthread_mutex_lock(&backend->left_lock);
    atomic_store(&queue->state, COX__CL_ABANDONED);
    atomic_fetch_add(&backend->devices[device].hung, 1);
    pthread_mutex_unlock(&backend->left_lock);
}

void cox__cl_hangs_no_more(struct cox__cl_backend *backend, uint32_t device, struct cox__cl_queue *queue)
{
    struct cox__cl_left *freed = NULL;
    pthread_mutex_lock(&backend->left_lock);
    atomic_store(&queue->state, COX__CL_FAILED);
    atomic_fetch_sub(&backend->devices[device].hung, 1);
    for (struct cox__cl_left **link = &backend->left; *link;) {
        struct cox__cl_left *left = *link;
        if (must_wait(backend, left)) {
            link = &left->next;
            continue;
        }
        *link = left->next;
        left->next = freed;
        freed = left;
    }
    pthread_mutex_unlock(&backend->left_lock);
    while (freed) {
        struct cox__cl_left *left = freed;
        freed = left->next;
        release_left(backend, left);
    }
}

void cox__cl_forget_left(struct cox__cl_backend *backend)
{
    uint32_t count = 0;
    while (backend->left) {
        struct cox__cl_left *left = backend->left;
        backend->left = left->next;
        cox__give_up(left->mem);
        if (left->queue)
            cox__cl_queue_unref(left->queue); /* its unit has another one */
        free(left);
        count++;
    }
    if (count)
        cox__log(backend->log, COX_LOG_WARN, "%u memory objects are given up with devices that hang", count);
}
