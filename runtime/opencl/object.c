/* Band objects: made, kept for the next frame, mapped and unmapped.
 *
 * The objects belong to their struct cox__mem. cox__cl_object_get and _put run with the engine lock
 * held. The other functions run when no band is under way on the memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "object.h"
#include "hang.h"

static bool usable(const struct cox__cl_object *object)
{
    return cox__cl_command_queue_state(object->queue) != COX__CL_ABANDONED;
}

static void unmap_object(struct cox__cl_object *object, cl_command_queue queue)
{
    void *mapped = object->mapped;
    object->mapped = NULL; /* before the call, which may not return */
    object->stale = true;
    /* Its status does not matter: a stale object is brought up to date before it is used. */
    clEnqueueUnmapMemObject(queue, object->mem, mapped, 0, NULL, NULL);
}

/* `next`: the queue that will work on the memory next; the unmapping must come before that work.
 * NULL = none. */
static void release_object(struct cox__cl_backend *backend, struct cox__mem *mem,
                           struct cox__cl_object *object, const struct cox__cl_queue *next)
{
    if (!usable(object)) {
        cox__cl_hang_release_after(backend, object->mem, object->mapped, object->queue, 0,
                                   mem->pages);
        return;
    }

    if (object->mapped) {
        const struct cox__cl_queue *queue = object->queue;
        if (next && next->context == queue->context)
            queue = next;

        unmap_object(object, queue->id);
        clFlush(queue->id);
    }

    clReleaseMemObject(object->mem);
    cox__cl_command_queue_unref(object->queue);
}

/* ---- making ---- */

/* A later stage may read what an earlier one writes, so no buffer is write-only for the device. */
static cl_mem_flags flags_of(enum cox__access access)
{
    return access == COX__READ ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE;
}

static cl_mem wrap(const struct cox__cl_backend *backend, const struct cox__cl_queue *queue,
                   enum cox__access access, void *data, size_t bytes, cl_int *code)
{
    const struct cox__driver_call call = cox__watchdog_call_begin(backend->post.watchdog);
    cl_mem made = clCreateBuffer(queue->context, flags_of(access) | CL_MEM_USE_HOST_PTR, bytes,
                                 data, code);

    cox__cl_returned(&call);
    if (*code)
        return NULL;
    return made;
}

enum { LINE_BYTES = 64 };

static cl_mem make_wrapper(const struct cox__cl_backend *backend, const struct cox__mem *mem,
                           const struct cox__cl_object *object, cl_int *code)
{
    size_t offset = object->offset, part = object->bytes;
    if (object->from_start) {
        offset = 0;
        part = mem->bytes;
    }

    /* Drivers of integrated GPUs copy if the size is no multiple of a cache line. Behind a frame's
     * last rows the library's own memory has the rest of a page. */
    size_t bytes = (part + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    if (offset + part < mem->bytes || offset + bytes > mem->padded_bytes)
        bytes = part;

    return wrap(backend, object->queue, object->access, (char *)mem->data + offset, bytes, code);
}

static cl_mem make_subbuffer(const struct cox__cl_backend *backend, struct cox__mem *mem,
                             const struct cox__cl_device *device,
                             const struct cox__cl_object *object, cl_int *code)
{
    cl_mem *parent = &mem->parents[device->group];
    if (!*parent)
        *parent = wrap(backend, object->queue, COX__READ_WRITE, mem->data, mem->padded_bytes, code);

    /* The parent exceeds a limit of one of the devices: each band gets its own wrapper. */
    if (!*parent)
        return make_wrapper(backend, mem, object, code);

    const cl_buffer_region region = {.origin = object->offset, .size = object->bytes};
    const struct cox__driver_call call = cox__watchdog_call_begin(backend->post.watchdog);
    cl_mem made = clCreateSubBuffer(*parent, flags_of(object->access), CL_BUFFER_CREATE_TYPE_REGION,
                                    &region, code);
    cox__cl_returned(&call);
    return made;
}

/* Unused for so long that a new object may take its place. An abandoned queue may still work on its
 * objects, so these keep their place (overlaps_abandoned). */
static bool out_of_use(const struct cox__mem *mem, const struct cox__cl_object *object)
{
    return mem->uses - object->used > COX__CL_OBJECT_USES && usable(object);
}

/* Which of two objects is replaced first. The criteria, in order:
 *   1. An object that is not mapped. Another device may be about to write where an unmapping is
 *      under way.
 *   2. An object that is out of use.
 *   3. If both are, the object of a device that has failed. It keeps an old context.
 *   4. The less recently used object. */
static bool goes_before(const struct cox__mem *mem, const struct cox__cl_object *one,
                        const struct cox__cl_object *other)
{
    const bool old_one = out_of_use(mem, one), old_other = out_of_use(mem, other);
    const bool sound_one = cox__cl_command_queue_state(one->queue) == COX__CL_SOUND;
    const bool sound_other = cox__cl_command_queue_state(other->queue) == COX__CL_SOUND;

    if (!one->mapped != !other->mapped)
        return !one->mapped;
    if (old_one != old_other)
        return old_one;
    if (old_one && sound_one != sound_other)
        return sound_other;
    return one->used < other->used;
}

/* The place of a new object: that of an object out of use; else a free one at the end; else that of
 * the least recently used object. NULL if all are busy. */
static struct cox__cl_object *object_place(struct cox__mem *mem)
{
    struct cox__cl_object *first = NULL;
    for (uint32_t i = 0; i < mem->object_count; i++)
        if (!mem->objects[i].busy && (!first || goes_before(mem, &mem->objects[i], first)))
            first = &mem->objects[i];

    const bool full = mem->object_count == COX__CL_OBJECTS_MAX;
    if (full || (first && out_of_use(mem, first)))
        return first;
    return &mem->objects[mem->object_count];
}

/* Put a new object in its place, then release the old one. In this order the memory's objects are
 * valid even if a call on the old one does not return. */
static void place_object(struct cox__cl_backend *backend, struct cox__mem *mem,
                         struct cox__cl_object *place, const struct cox__cl_object *fresh)
{
    const bool taken = place < mem->objects + mem->object_count;
    struct cox__cl_object old = *place;
    *place = *fresh;

    if (!taken) {
        mem->object_count++;
        return;
    }

    const struct cox__driver_call call = cox__watchdog_call_begin(backend->post.watchdog);
    release_object(backend, mem, &old, fresh->queue);
    cox__cl_returned(&call);
}

/* Keep two overlapping sub-buffers of one parent from being mapped at once. The unmapping comes
 * before the kernel in the kernel's queue, so that it has ended when the band has: a band waits for
 * no other queue. But if the mapping may not have ended yet, since two frames in flight read the
 * same buffer, it is undone in its own queue. */
static void unmap_overlaps(const struct cox__cl_backend *backend, struct cox__mem *mem,
                           const struct cox__cl_object *object)
{
    for (uint32_t i = 0; i < mem->object_count; i++) {
        struct cox__cl_object *other = &mem->objects[i];

        if (other == object || !other->mapped || !other->sub || !usable(other) ||
            other->offset >= object->offset + object->bytes ||
            object->offset >= other->offset + other->bytes)
            continue;

        const bool own = other->busy || other->queue->context != object->queue->context;
        cl_command_queue queue = object->queue->id;
        if (own)
            queue = other->queue->id;

        const struct cox__driver_call call = cox__watchdog_call_begin(backend->post.watchdog);
        unmap_object(other, queue);
        clFlush(queue);
        cox__cl_returned(&call);
    }
}

/* Where a mapping of the object's part begins in its buffer. */
static size_t part_offset(const struct cox__cl_object *object)
{
    return object->from_start ? object->offset : 0;
}

/* Unmap an object for use by a kernel on its queue. */
static cl_int open_object(const struct cox__cl_backend *backend, struct cox__mem *mem,
                          struct cox__cl_object *object)
{
    cl_int code = CL_SUCCESS;

    if (!object->mapped && object->sub)
        unmap_overlaps(backend, mem, object);

    /* A copy: if the lock is revoked inside the first call, the memory may be freed. */
    const struct cox__cl_object is = *object;
    void *mapped = is.mapped;

    const struct cox__driver_call call = cox__watchdog_call_begin(backend->post.watchdog);
    /* This mapping fetches nothing. Its unmapping gives the device the memory as the application
     * left it. */
    if (!mapped && is.stale && is.access != COX__WRITE)
        mapped = clEnqueueMapBuffer(is.queue->id, is.mem, CL_FALSE, CL_MAP_WRITE_INVALIDATE_REGION,
                                    part_offset(&is), is.bytes, 0, NULL, NULL, &code);

    if (mapped && code == CL_SUCCESS)
        code = clEnqueueUnmapMemObject(is.queue->id, is.mem, mapped, 0, NULL, NULL);

    cox__cl_returned(&call);
    object->mapped = NULL;
    object->stale = code != CL_SUCCESS;
    return code;
}

static struct cox__cl_object *find_object(struct cox__mem *mem, const struct cox__cl_object *like)
{
    for (uint32_t i = 0; i < mem->object_count; i++) {
        struct cox__cl_object *object = &mem->objects[i];
        if (object->offset == like->offset && object->bytes == like->bytes &&
            object->queue == like->queue && object->access == like->access &&
            object->sub == like->sub && object->from_start == like->from_start && !object->busy)
            return object;
    }
    return NULL;
}

/* PoCL 3.1 finds the mapping of a sub-buffer by its address in the parent. An abandoned queue may
 * still hold a map command for these bytes. To unmap another sub-buffer there would free what that
 * command works on. */
static bool overlaps_abandoned(const struct cox__mem *mem, size_t offset, size_t bytes)
{
    for (uint32_t i = 0; i < mem->object_count; i++) {
        const struct cox__cl_object *other = &mem->objects[i];
        if (other->sub && !usable(other) && other->offset < offset + bytes &&
            offset < other->offset + other->bytes)
            return true;
    }
    return false;
}

/* A new object in the memory's list; NULL on failure (logged). */
static struct cox__cl_object *make_object(struct cox__cl_backend *backend, struct cox__mem *mem,
                                          const struct cox__cl_device *owner,
                                          struct cox__cl_object *fresh)
{
    const char *call = "clCreateBuffer";
    cl_int code;

    if (fresh->sub) {
        call = "clCreateSubBuffer";
        fresh->mem = make_subbuffer(backend, mem, owner, fresh, &code);
    } else {
        fresh->mem = make_wrapper(backend, mem, fresh, &code);
    }
    if (cox__cl_error_check(backend->log, code, call, owner->info.name))
        return NULL;

    struct cox__cl_object *place = object_place(mem);
    if (!place) {
        cox__log(backend->log, COX_LOG_WARN, "more than %d bands use one buffer at the same time",
                 COX__CL_OBJECTS_MAX);
        clReleaseMemObject(fresh->mem);
        return NULL;
    }

    cox__cl_command_queue_ref(fresh->queue);
    fresh->stale = fresh->sub; /* the parent may be older than what the application wrote */
    place_object(backend, mem, place, fresh);
    return place;
}

struct cox__cl_object *cox__cl_object_get(struct cox__cl_backend *backend, struct cox__mem *mem,
                                          uint32_t device, const struct cox__cl_part *part,
                                          struct cox__cl_queue *queue)
{
    const struct cox__cl_device *owner = &backend->devices[device];
    struct cox__cl_object fresh = {.queue = queue,
                                   .access = part->access,
                                   .sub = part->disjoint && !part->from_start &&
                                          queue->subbuffers &&
                                          !overlaps_abandoned(mem, part->offset, part->bytes),
                                   .from_start = part->from_start,
                                   .offset = part->offset,
                                   .bytes = part->bytes};
    struct cox__cl_object *object = find_object(mem, &fresh);

    if (!object) {
        object = make_object(backend, mem, owner, &fresh);
        if (!object)
            return NULL;
    }

    object->used = ++mem->uses;
    const cl_int code = open_object(backend, mem, object);
    if (cox__cl_error_check(backend->log, code, "unmapping a band", owner->info.name))
        return NULL;

    object->busy = true;
    return object;
}

/* ---- after a band ---- */

void *cox__cl_object_map(const struct cox__cl_object *object, cl_event *event, cl_int *code)
{
    static const cl_map_flags flags[] = {[COX__READ] = CL_MAP_WRITE,
                                         [COX__WRITE] = CL_MAP_READ,
                                         [COX__READ_WRITE] = CL_MAP_READ | CL_MAP_WRITE};
    return clEnqueueMapBuffer(object->queue->id, object->mem, CL_FALSE, flags[object->access],
                              part_offset(object), object->bytes, 0, NULL, event, code);
}

void cox__cl_object_put(struct cox__cl_object *object)
{
    object->busy = false;
    object->stale |= !object->mapped; /* the band failed before it was mapped again */
}

/* ---- with their memory ---- */

/* Objects that were unmapped to make room for an overlapping one are waited for too. */
bool cox__cl_objects_unmap(struct cox__mem *mem)
{
    bool all = true;

    for (uint32_t i = 0; i < mem->object_count; i++)
        if (mem->objects[i].mapped && usable(&mem->objects[i])) {
            unmap_object(&mem->objects[i], mem->objects[i].queue->id);
            clFlush(mem->objects[i].queue->id); /* all before the first wait */
        }

    for (uint32_t i = 0; i < mem->object_count; i++) {
        struct cox__cl_queue *queue = mem->objects[i].queue;
        uint32_t before = 0;
        while (before < i && mem->objects[before].queue != queue)
            before++;

        const enum cox__cl_command_queue_state state = cox__cl_command_queue_state(queue);
        if (before < i || state == COX__CL_ABANDONED)
            continue;

        uint64_t timeout_ns = COX__CL_SHORT_TIMEOUT_NS;
        if (state == COX__CL_SOUND)
            timeout_ns = COX__CL_TIMEOUT_NS;

        if (cox__cl_command_queue_drain(queue->id, queue, timeout_ns) == COX__CL_NOT_IN_TIME &&
            cox__cl_command_queue_state(queue) != COX__CL_ABANDONED) {
            cox__cl_command_queue_failed(queue);
            all = false;
        }
    }

    return all;
}

void cox__cl_objects_release(struct cox__cl_backend *backend, struct cox__mem *mem)
{
    for (uint32_t i = 0; i < mem->object_count; i++)
        release_object(backend, mem, &mem->objects[i], NULL);
}
