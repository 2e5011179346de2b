/* SPDX-License-Identifier: Apache-2.0 */
#include "cl_internal.h"
#include "give_up.h"

#include <stdlib.h>
#include <string.h>

/* ---- host memory ---- */

static uint32_t first_staged(const struct cox__cl_backend *backend)
{
    for (uint32_t d = 0; d < backend->device_count; d++)
        if (backend->devices[d].info.mode == COX_MODE_STAGED && !atomic_load(&backend->devices[d].lost) &&
            !cox__cl_group_hangs(backend, backend->devices[d].group))
            return d;
    return backend->device_count;
}

/* Page-locked memory comes from the driver of the first staged device that works: a buffer that stays mapped all its life, one
 * page longer than asked for, since not every driver begins it on a page. */
static void pin(struct cox__cl_backend *backend, struct cox__mem *mem)
{
    uint32_t d = first_staged(backend);
    if (d == backend->device_count)
        return;
    struct cox__cl_device *device = &backend->devices[d];
    cl_int code;
    if (mem->padded_bytes > SIZE_MAX - COX__PAGE_BYTES)
        return;
    size_t bytes = mem->padded_bytes + COX__PAGE_BYTES;
    cl_mem pinned = clCreateBuffer(backend->groups[device->group].context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                   bytes, NULL, &code);
    if (code == CL_SUCCESS) {
        char *mapped = clEnqueueMapBuffer(device->service, pinned, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0,
                                          NULL, NULL, &code);
        if (code == CL_SUCCESS)
            code = cox__cl_drain(device->service, NULL, COX__CL_PATIENCE_NS);
        if (code == CL_SUCCESS && mapped) {
            mem->data = mapped + (COX__PAGE_BYTES - (uintptr_t)mapped % COX__PAGE_BYTES) % COX__PAGE_BYTES;
            mem->pinned = pinned;
            mem->pinned_map = mapped;
            mem->pinned_device = d;
            return;
        }
        if (code == COX__CL_NOT_IN_TIME)
            atomic_store(&device->lost, true);
        else
            clReleaseMemObject(pinned);
    }
    cox__log(backend->log, COX_LOG_WARN, "%s gives no pinned memory of %zu bytes; copies will be slower",
             device->info.name, mem->padded_bytes);
}

cox_status cox__cl_mem_create(struct cox__backend *base, void *host, size_t bytes, struct cox__mem **out)
{
    struct cox__cl_backend *backend = (struct cox__cl_backend *)base;
    struct cox__mem *mem = calloc(1, sizeof *mem);
    if (!mem)
        return COX_E_NOMEM;
    mem->bytes = bytes;
    mem->data = host;
    mem->wrapped = host != NULL;
    mem->padded_bytes = host ? bytes : (bytes + COX__PAGE_BYTES - 1) / COX__PAGE_BYTES * COX__PAGE_BYTES;
    if (mem->padded_bytes < bytes)
        goto no_memory;
    if (!host)
        pin(backend, mem);
    if (mem->pinned) {
        memset(mem->data, 0, mem->padded_bytes);
    } else if (!host) {
        mem->pages = cox__cl_pages_new(mem->padded_bytes);
        if (!mem->pages)
            goto no_memory;
        mem->data = mem->pages->data;
    }
    *out = mem;
    return COX_OK;

no_memory:
    free(mem);
    return COX_E_NOMEM;
}

void *cox__cl_mem_data(struct cox__mem *mem)
{
    return mem->data;
}

void cox__cl_mem_info(struct cox__mem *mem, struct cox_buffer_info *info)
{
    *info = (struct cox_buffer_info){.bytes = mem->bytes,
                                     .pinned = mem->pinned != NULL,
                                     .wrapped = mem->wrapped,
                                     .zero_copy = (uintptr_t)mem->data % COX__PAGE_BYTES == 0};
}

/* ---- band objects ---- */

static bool usable(const struct cox__cl_object *object)
{
    return cox__cl_queue_state(object->queue) != COX__CL_ABANDONED;
}

static void unmap_object(struct cox__cl_object *object)
{
    void *mapped = object->mapped;
    object->mapped = NULL; /* once, even if the call does not return */
    object->stale = true;
    clEnqueueUnmapMemObject(object->queue->id, object->mem, mapped, 0, NULL, NULL);
}

static void release_object(struct cox__cl_backend *backend, struct cox__mem *mem, struct cox__cl_object *object)
{
    if (!usable(object)) {
        cox__cl_leave(backend, object->mem, object->mapped, object->queue, 0, mem->pages);
        return;
    }
    if (object->mapped) {
        unmap_object(object);
        clFlush(object->queue->id);
    }
    clReleaseMemObject(object->mem);
    cox__cl_queue_unref(object->queue);
}

void *cox__cl_object_map(const struct cox__cl_object *object, cl_event *event, cl_int *code)
{
    static const cl_map_flags flags[] = {
        [COX_READ] = CL_MAP_WRITE, [COX_WRITE] = CL_MAP_READ, [COX_READ_WRITE] = CL_MAP_READ | CL_MAP_WRITE};
    return clEnqueueMapBuffer(object->queue->id, object->mem, CL_FALSE, flags[object->access], 0, object->bytes, 0,
                              NULL, event, code);
}

void cox__cl_object_put(struct cox__cl_object *object)
{
    object->busy = false;
    object->stale |= !object->mapped; /* its band failed on the way */
}

/* The memory must not go before the unmappings are done, those too that made place for an overlapping object. False: a queue
 * hangs. */
static bool unmap_all(struct cox__mem *mem)
{
    bool over = true;
    for (uint32_t i = 0; i < mem->object_count; i++)
        if (mem->objects[i].mapped && usable(&mem->objects[i])) {
            unmap_object(&mem->objects[i]);
            clFlush(mem->objects[i].queue->id); /* all before the first wait */
        }
    for (uint32_t i = 0; i < mem->object_count; i++) {
        struct cox__cl_queue *queue = mem->objects[i].queue;
        uint32_t before = 0;
        while (before < i && mem->objects[before].queue != queue)
            before++;
        const enum cox__cl_queue_state state = cox__cl_queue_state(queue);
        if (before < i || state == COX__CL_ABANDONED)
            continue;
        const uint64_t patience_ns = state == COX__CL_SOUND ? COX__CL_PATIENCE_NS : COX__CL_LITTLE_PATIENCE_NS;
        if (cox__cl_drain(queue->id, queue, patience_ns) == COX__CL_NOT_IN_TIME &&
            cox__cl_queue_state(queue) != COX__CL_ABANDONED) {
            cox__cl_queue_failed(queue);
            over = false;
        }
    }
    return over;
}

/* The pinned buffer, and what bands were cut from: those wait for all devices of their group. */
static void release_common(struct cox__cl_backend *backend, struct cox__mem *mem)
{
    for (uint32_t g = 0; g < COX_DEVICES_MAX; g++)
        if (mem->parents[g])
            cox__cl_leave(backend, mem->parents[g], NULL, NULL, g, mem->pages);
    if (mem->pinned)
        cox__cl_leave(backend, mem->pinned, mem->pinned_map, NULL, backend->devices[mem->pinned_device].group, NULL);
}

static void give_up(struct cox__cl_backend *backend, struct cox__mem *mem)
{
    cox__log(backend->log, COX_LOG_WARN, "%zu bytes are given up: a device that hangs may still write to them",
             mem->padded_bytes);
    cox__give_up(mem->pages);
    cox__give_up(mem->pinned);
    mem->pages = NULL;
}

void cox__cl_mem_destroy(struct cox__backend *base, struct cox__mem *mem)
{
    struct cox__cl_backend *backend = (struct cox__cl_backend *)base;
    bool over = unmap_all(mem);
    if (mem->pinned) {
        struct cox__cl_device *device = &backend->devices[mem->pinned_device];
        if (!cox__cl_group_hangs(backend, device->group)) {
            clEnqueueUnmapMemObject(device->service, mem->pinned, mem->pinned_map, 0, NULL, NULL);
            mem->pinned_map = NULL;
            const uint64_t patience_ns = atomic_load(&device->lost) ? COX__CL_LITTLE_PATIENCE_NS : COX__CL_PATIENCE_NS;
            if (cox__cl_drain(device->service, NULL, patience_ns) == COX__CL_NOT_IN_TIME) {
                atomic_store(&device->lost, true);
                over = false;
            }
        }
    }
    if (!over) { /* and nobody will say when it does not hang any more */
        give_up(backend, mem);
        cox__give_up(mem);
        return;
    }
    for (uint32_t i = 0; i < mem->object_count; i++)
        release_object(backend, mem, &mem->objects[i]);
    release_common(backend, mem);
    cox__cl_pages_unref(mem->pages);
    free(mem);
}

void cox__cl_mem_abandon(struct cox__backend *base, struct cox__mem *mem)
{
    struct cox__cl_backend *backend = (struct cox__cl_backend *)base;
    give_up(backend, mem);
    for (uint32_t i = 0; i < mem->object_count; i++)
        release_object(backend, mem, &mem->objects[i]);
    if (mem->pinned) /* it is the memory */
        mem->pinned = NULL;
    release_common(backend, mem);
    free(mem);
}

/* What one stage writes a later one may read: to the device that is no write-only buffer. */
static cl_mem_flags flags_of(enum cox_access access)
{
    return access == COX_READ ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE;
}

static cl_mem wrap(const struct cox__cl_backend *backend, const struct cox__cl_queue *queue, enum cox_access access,
                   void *data, size_t bytes, cl_int *code)
{
    const struct cox__guard_call call = cox__guard_enter(backend->post.guard);
    cl_mem made = clCreateBuffer(queue->context, flags_of(access) | CL_MEM_USE_HOST_PTR, bytes, data, code);
    cox__cl_returned(&call);
    return *code ? NULL : made;
}

static cl_mem make_wrapper(const struct cox__cl_backend *backend, const struct cox__mem *mem,
                           const struct cox__cl_object *object, cl_int *code)
{
    return wrap(backend, object->queue, object->access, (char *)mem->data + object->offset, object->bytes, code);
}

static cl_mem make_subbuffer(const struct cox__cl_backend *backend, struct cox__mem *mem,
                             const struct cox__cl_device *device, const struct cox__cl_object *object, cl_int *code)
{
    cl_mem *parent = &mem->parents[device->group];
    if (!*parent)
        *parent = wrap(backend, object->queue, COX_READ_WRITE, mem->data, mem->padded_bytes, code);
    if (!*parent) /* larger than one of the devices allows: each band on its own then */
        return make_wrapper(backend, mem, object, code);
    const cl_buffer_region region = {.origin = object->offset, .size = object->bytes};
    const struct cox__guard_call call = cox__guard_enter(backend->post.guard);
    cl_mem made = clCreateSubBuffer(*parent, flags_of(object->access), CL_BUFFER_CREATE_TYPE_REGION, &region, code);
    cox__cl_returned(&call);
    return made;
}

/* A place for a new object: at the end, or the least recently used one's. NULL if all are at work. */
static struct cox__cl_object *object_place(struct cox__cl_backend *backend, struct cox__mem *mem)
{
    if (mem->object_count < COX__CL_OBJECTS_MAX)
        return &mem->objects[mem->object_count++];
    struct cox__cl_object *oldest = NULL;
    for (uint32_t i = 0; i < COX__CL_OBJECTS_MAX; i++)
        if (!mem->objects[i].busy && (!oldest || mem->objects[i].used < oldest->used))
            oldest = &mem->objects[i];
    if (oldest)
        release_object(backend, mem, oldest);
    return oldest;
}

/* No two sub-buffers of one parent that overlap stay mapped. The unmapping goes to the queue that did the mapping, which
 * may be under way still if two frames in flight read the same buffer. */
static void unmap_overlaps(const struct cox__cl_backend *backend, struct cox__mem *mem,
                           const struct cox__cl_object *object)
{
    for (uint32_t i = 0; i < mem->object_count; i++) {
        struct cox__cl_object *other = &mem->objects[i];
        if (other == object || !other->mapped || !other->sub || !usable(other) ||
            other->offset >= object->offset + object->bytes || object->offset >= other->offset + other->bytes)
            continue;
        cl_command_queue queue = other->queue->id;
        const struct cox__guard_call call = cox__guard_enter(backend->post.guard);
        unmap_object(other);
        clFlush(queue);
        cox__cl_returned(&call);
    }
}

/* Unmap an object for use by a kernel on its queue. */
static cl_int open_object(const struct cox__cl_backend *backend, struct cox__mem *mem, struct cox__cl_object *object)
{
    cl_int code = CL_SUCCESS;
    if (!object->mapped && object->sub)
        unmap_overlaps(backend, mem, object);
    const struct cox__cl_object is = *object; /* should the first call take too long, the memory may be gone */
    void *mapped = is.mapped;
    const struct cox__guard_call call = cox__guard_enter(backend->post.guard);
    if (!mapped && is.stale && is.access != COX_WRITE)
        /* The way to tell a device that the memory has changed: nothing is fetched, all is given. */
        mapped = clEnqueueMapBuffer(is.queue->id, is.mem, CL_FALSE, CL_MAP_WRITE_INVALIDATE_REGION, 0, is.bytes, 0,
                                    NULL, NULL, &code);
    if (mapped && code == CL_SUCCESS)
        code = clEnqueueUnmapMemObject(is.queue->id, is.mem, mapped, 0, NULL, NULL);
    cox__cl_returned(&call);
    object->mapped = NULL;
    object->stale = code != CL_SUCCESS;
    return code;
}

static struct cox__cl_object *find_object(struct cox__mem *mem, const struct cox__cl_queue *queue,
                                          enum cox_access access, bool sub, size_t offset, size_t bytes)
{
    for (uint32_t i = 0; i < mem->object_count; i++) {
        struct cox__cl_object *object = &mem->objects[i];
        if (object->offset == offset && object->bytes == bytes && object->queue == queue && object->access == access &&
            object->sub == sub && !object->busy)
            return object;
    }
    return NULL;
}

struct cox__cl_object *cox__cl_object_get(struct cox__cl_backend *backend, struct cox__mem *mem, uint32_t device,
                                          enum cox_access access, bool disjoint, size_t offset, size_t bytes,
                                          struct cox__cl_queue *queue)
{
    const struct cox__cl_device *owner = &backend->devices[device];
    const bool sub = disjoint && queue->subbuffers;
    struct cox__cl_object *object = find_object(mem, queue, access, sub, offset, bytes);
    cl_int code;
    if (!object) {
        struct cox__cl_object fresh = {.queue = queue, .access = access, .sub = sub, .offset = offset, .bytes = bytes};
        fresh.mem = sub ? make_subbuffer(backend, mem, owner, &fresh, &code)
                        : make_wrapper(backend, mem, &fresh, &code);
        if (cox__cl_check(backend->log, code, sub ? "clCreateSubBuffer" : "clCreateBuffer", owner->info.name))
            return NULL;
        object = object_place(backend, mem);
        if (!object) {
            cox__log(backend->log, COX_LOG_WARN, "more than %d bands work on one buffer", COX__CL_OBJECTS_MAX);
            clReleaseMemObject(fresh.mem);
            return NULL;
        }
        cox__cl_queue_ref(queue);
        fresh.stale = sub; /* the parent may be older than what the application wrote */
        *object = fresh;
    }
    object->used = ++mem->uses;
    code = open_object(backend, mem, object);
    if (cox__cl_check(backend->log, code, "unmapping a band", owner->info.name))
        return NULL;
    object->busy = true;
    return object;
}
