/* SPDX-License-Identifier: Apache-2.0 */
#include "cl_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- host memory ---- */

static uint32_t first_staged(const struct cox__cl_backend *backend)
{
    for (uint32_t d = 0; d < backend->device_count; d++)
        if (backend->devices[d].info.mode == COX_MODE_STAGED)
            return d;
    return backend->device_count;
}

/* Page-locked memory comes from the driver of the first staged device: a buffer that stays mapped all its life, one page
 * longer than asked for, since not every driver begins it on a page. */
static void pin(struct cox__cl_backend *backend, struct cox__mem *mem)
{
    uint32_t d = first_staged(backend);
    if (d == backend->device_count)
        return;
    const struct cox__cl_device *device = &backend->devices[d];
    cl_int code;
    size_t bytes = mem->padded_bytes + COX__PAGE_BYTES;
    cl_mem pinned = clCreateBuffer(backend->groups[device->group].context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                   bytes, NULL, &code);
    if (code == CL_SUCCESS) {
        char *mapped = clEnqueueMapBuffer(device->service, pinned, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0,
                                          NULL, NULL, &code);
        if (code == CL_SUCCESS) {
            mem->data = mapped + (COX__PAGE_BYTES - (uintptr_t)mapped % COX__PAGE_BYTES) % COX__PAGE_BYTES;
            mem->pinned = pinned;
            mem->pinned_map = mapped;
            mem->pinned_device = d;
            return;
        }
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
    if (!host)
        pin(backend, mem);
    if (!mem->data && posix_memalign(&mem->data, COX__PAGE_BYTES, mem->padded_bytes)) {
        free(mem);
        return COX_E_NOMEM;
    }
    if (!host)
        memset(mem->data, 0, mem->padded_bytes);
    *out = mem;
    return COX_OK;
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

static void release_object(struct cox__cl_object *object, cl_command_queue queue)
{
    if (object->mapped)
        clEnqueueUnmapMemObject(queue, object->mem, object->mapped, 0, NULL, NULL);
    clReleaseMemObject(object->mem);
}

void cox__cl_mem_destroy(struct cox__backend *base, struct cox__mem *mem)
{
    struct cox__cl_backend *backend = (struct cox__cl_backend *)base;
    bool touched[COX_DEVICES_MAX] = {false};
    for (uint32_t i = 0; i < mem->object_count; i++) {
        release_object(&mem->objects[i], backend->devices[mem->objects[i].device].service);
        touched[mem->objects[i].device] = true;
    }
    if (mem->pinned) {
        clEnqueueUnmapMemObject(backend->devices[mem->pinned_device].service, mem->pinned, mem->pinned_map, 0, NULL,
                                NULL);
        touched[mem->pinned_device] = true;
    }
    for (uint32_t d = 0; d < backend->device_count; d++)
        if (touched[d])
            clFlush(backend->devices[d].service); /* all before the first wait */
    for (uint32_t d = 0; d < backend->device_count; d++)
        if (touched[d])
            clFinish(backend->devices[d].service); /* the memory must not go before the unmappings are done */
    for (uint32_t g = 0; g < backend->group_count; g++)
        if (mem->parents[g])
            clReleaseMemObject(mem->parents[g]);
    if (mem->pinned)
        clReleaseMemObject(mem->pinned);
    else if (!mem->wrapped)
        free(mem->data);
    free(mem);
}

static cl_mem_flags flags_of(enum cox_access access)
{
    return access == COX_READ ? CL_MEM_READ_ONLY : access == COX_WRITE ? CL_MEM_WRITE_ONLY : CL_MEM_READ_WRITE;
}

static cl_mem make_wrapper(struct cox__cl_backend *backend, struct cox__mem *mem, const struct cox__cl_device *device,
                           const struct cox__cl_object *object, cl_int *code)
{
    return clCreateBuffer(backend->groups[device->group].context, flags_of(object->access) | CL_MEM_USE_HOST_PTR,
                          object->bytes, (char *)mem->data + object->offset, code);
}

static cl_mem make_subbuffer(struct cox__cl_backend *backend, struct cox__mem *mem,
                             const struct cox__cl_device *device, const struct cox__cl_object *object, cl_int *code)
{
    cl_mem *parent = &mem->parents[device->group];
    if (!*parent) {
        *parent = clCreateBuffer(backend->groups[device->group].context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                 mem->padded_bytes, mem->data, code);
        if (*code) {
            *parent = NULL; /* larger than one of the devices allows: each band on its own then */
            return make_wrapper(backend, mem, device, object, code);
        }
    }
    const cl_buffer_region region = {.origin = object->offset, .size = object->bytes};
    return clCreateSubBuffer(*parent, flags_of(object->access), CL_BUFFER_CREATE_TYPE_REGION, &region, code);
}

/* A place for a new object: at the end, or the least recently used one's. */
static struct cox__cl_object *object_place(struct cox__cl_backend *backend, struct cox__mem *mem,
                                           cl_command_queue queue, uint32_t device)
{
    if (mem->object_count < COX__CL_OBJECTS_MAX)
        return &mem->objects[mem->object_count++];
    struct cox__cl_object *oldest = &mem->objects[0];
    for (uint32_t i = 1; i < COX__CL_OBJECTS_MAX; i++)
        if (mem->objects[i].used < oldest->used)
            oldest = &mem->objects[i];
    bool own = oldest->device == device;
    release_object(oldest, own ? queue : backend->devices[oldest->device].service);
    if (!own)
        clFlush(backend->devices[oldest->device].service);
    return oldest;
}

struct cox__cl_object *cox__cl_object_get(struct cox__cl_backend *backend, struct cox__mem *mem, uint32_t device,
                                          enum cox_access access, bool disjoint, size_t offset,
                                          size_t bytes, cl_command_queue queue)
{
    const struct cox__cl_device *owner = &backend->devices[device];
    const bool sub = disjoint && owner->info.mode == COX_MODE_SHARED && backend->groups[owner->group].subbuffers;
    mem->uses++;
    for (uint32_t i = 0; i < mem->object_count; i++) {
        struct cox__cl_object *object = &mem->objects[i];
        if (object->offset == offset && object->bytes == bytes && object->device == device &&
            object->access == access && object->sub == sub) {
            object->used = mem->uses;
            return object;
        }
    }
    struct cox__cl_object fresh = {
        .device = device, .access = access, .sub = sub, .offset = offset, .bytes = bytes, .used = mem->uses};
    cl_int code;
    fresh.mem = sub ? make_subbuffer(backend, mem, owner, &fresh, &code) : make_wrapper(backend, mem, owner, &fresh, &code);
    if (cox__cl_check(backend->log, code, sub ? "clCreateSubBuffer" : "clCreateBuffer", owner->info.name))
        return NULL;
    struct cox__cl_object *place = object_place(backend, mem, queue, device);
    *place = fresh;
    return place;
}
