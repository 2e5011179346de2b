/* Host allocations: made, pinned if a staged device can use that, and given back.
 *
 * Runs on application threads and worker threads, one at a time per allocation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "object.h"
#include "hang.h"
#include "host/leak.h"
#include "host/pages.h"

#include <stdlib.h>
#include <string.h>

static uint32_t first_staged(const struct cox__cl_backend *backend)
{
    for (uint32_t d = 0; d < backend->device_count; d++)
        if (backend->devices[d].info.mode == COX_MODE_STAGED &&
            !atomic_load(&backend->devices[d].lost) &&
            !cox__cl_hang_in_group(backend, backend->devices[d].group))
            return d;
    return backend->device_count;
}

/* Make a buffer that the driver pins. NVIDIA's pins huge pages of ours in a third of the time that
 * it needs to allocate pinned memory (580, H200: 25 MB in 3.5 and 11 ms). Other drivers may keep a
 * copy of such pages on the device. */
static cl_mem create_pinned(const struct cox__cl_backend *backend, struct cox__mem *mem,
                            const struct cox__cl_device *device, size_t bytes, cl_int *code)
{
    cl_context context = backend->groups[device->group].context;
    if (bytes >= COX__HUGE_BYTES && strstr(device->info.platform, "NVIDIA"))
        mem->pages = cox__cl_shared_pages_new(bytes);

    if (mem->pages) {
        cl_mem pinned = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes,
                                       mem->pages->data, code);
        if (*code == CL_SUCCESS)
            return pinned;
        cox__cl_shared_pages_unref(mem->pages);
        mem->pages = NULL;
    }

    return clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, code);
}

/* Make page-locked memory: a buffer of the first staged device that works. It stays mapped all its
 * life, and is one page longer, since not every driver makes it begin on a page. Without it the
 * allocation uses ordinary memory. */
static void pin(struct cox__cl_backend *backend, struct cox__mem *mem)
{
    const uint32_t d = first_staged(backend);
    if (d == backend->device_count)
        return;

    struct cox__cl_device *device = &backend->devices[d];
    cl_int code;
    if (mem->padded_bytes > SIZE_MAX - COX__PAGE_BYTES)
        return;

    const size_t bytes = mem->padded_bytes + COX__PAGE_BYTES;
    cl_mem pinned = create_pinned(backend, mem, device, bytes, &code);
    if (code == CL_SUCCESS) {
        char *mapped = clEnqueueMapBuffer(device->service, pinned, CL_FALSE,
                                          CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL, NULL,
                                          &code);
        if (code == CL_SUCCESS)
            code = cox__cl_command_queue_drain(device->service, NULL, COX__CL_TIMEOUT_NS);

        if (code == CL_SUCCESS && mapped) {
            mem->data = mapped +
                        (COX__PAGE_BYTES - (uintptr_t)mapped % COX__PAGE_BYTES) % COX__PAGE_BYTES;
            mem->pinned = pinned;
            mem->pinned_map = mapped;
            mem->pinned_device = d;
            return;
        }

        if (code == COX__CL_NOT_IN_TIME) {
            atomic_store(&device->lost, true);
            cox__leak(mem->pages);
        } else {
            clReleaseMemObject(pinned);
            cox__cl_shared_pages_unref(mem->pages);
        }
        mem->pages = NULL;
    }

    cox__log(backend->log, COX_LOG_WARN,
             "%s: cannot pin %zu bytes of memory; copies will be slower", device->info.name,
             mem->padded_bytes);
}

/* Allocate `data`: pinned, or ordinary pages. */
static cox_status allocate(struct cox__cl_backend *backend, struct cox__mem *mem)
{
    mem->padded_bytes = (mem->bytes + COX__PAGE_BYTES - 1) / COX__PAGE_BYTES * COX__PAGE_BYTES;
    if (mem->padded_bytes < mem->bytes)
        return COX_E_NOMEM;

    pin(backend, mem);
    if (mem->data && !mem->pages)
        memset(mem->data, 0, mem->padded_bytes); /* the driver's memory */
    if (mem->data)
        return COX_OK;

    mem->pages = cox__cl_shared_pages_new(mem->padded_bytes);
    if (!mem->pages)
        return COX_E_NOMEM;

    mem->data = mem->pages->data;
    return COX_OK;
}

cox_status cox__cl_mem_create(struct cox__backend *base, void *host, size_t bytes,
                              struct cox__mem **out)
{
    struct cox__mem *mem = calloc(1, sizeof *mem);
    cox_status status = COX_OK;
    if (!mem)
        return COX_E_NOMEM;

    mem->bytes = mem->padded_bytes = bytes;
    mem->data = host;
    mem->wrapped = host != NULL;
    if (!host)
        status = allocate((struct cox__cl_backend *)base, mem);

    if (status)
        free(mem);
    else
        *out = mem;
    return status;
}

/* ---- memory on a device ---- */

cox_status cox__cl_mem_create_home(struct cox__cl_backend *backend, uint32_t device, cl_mem object,
                                   const struct cox_opencl_sync *sync, struct cox__mem **out)
{
    size_t bytes;
    if (clGetMemObjectInfo(object, CL_MEM_SIZE, sizeof bytes, &bytes, NULL))
        return COX_E_INVALID;

    struct cox__mem *mem = calloc(1, sizeof *mem);
    if (!mem)
        return COX_E_NOMEM;

    clRetainMemObject(object);
    mem->bytes = bytes;
    mem->home = object;
    mem->home_device = device;
    mem->home_context = backend->groups[backend->devices[device].group].context;
    if (sync)
        mem->sync = *sync;

    *out = mem;
    return COX_OK;
}

bool cox__cl_mem_home(const struct cox__mem *mem, struct cox__mem_home *home)
{
    if (!mem->home)
        return false;

    *home = (struct cox__mem_home){.device = mem->home_device,
                                   .acquired = mem->sync.external || mem->sync.wait ||
                                               mem->sync.signal};
    return true;
}

/* The application's threads may call this for the same memory at once. Engine threads read `data`
 * only for frames that were submitted later. */
cox_status cox__cl_mem_add_host(struct cox__backend *base, struct cox__mem *mem)
{
    struct cox__cl_backend *backend = (struct cox__cl_backend *)base;
    cox_status status = COX_OK;

    pthread_mutex_lock(&backend->host_lock);
    if (!mem->data)
        status = allocate(backend, mem);
    pthread_mutex_unlock(&backend->host_lock);

    return status;
}

void cox__cl_mem_set_mapped(struct cox__mem *mem, cl_mem mapped, cl_command_queue queue)
{
    clRetainMemObject(mapped);
    clRetainCommandQueue(queue);
    mem->mapped = mapped;
    mem->mapped_queue = queue;
}

struct cox__mem_link *cox__cl_mem_link(struct cox__mem *mem)
{
    return &mem->link;
}

void *cox__cl_mem_data(struct cox__mem *mem)
{
    return mem->data;
}

size_t cox__cl_mem_bytes(const struct cox__mem *mem)
{
    return mem->bytes;
}

/* ---- release ---- */

/* Release the pinned buffer and the parents of the sub-buffers, when no device of their group
 * hangs. */
static void release_common(struct cox__cl_backend *backend, struct cox__mem *mem)
{
    for (uint32_t g = 0; g < COX_DEVICES_MAX; g++)
        if (mem->parents[g])
            cox__cl_hang_release_after(backend, mem->parents[g], NULL, NULL, g, mem->pages);

    if (mem->pinned)
        cox__cl_hang_release_after(backend, mem->pinned, mem->pinned_map, NULL,
                                   backend->devices[mem->pinned_device].group, mem->pages);
}

static void leak_data(struct cox__cl_backend *backend, struct cox__mem *mem)
{
    cox__log(backend->log, COX_LOG_WARN,
             "%zu bytes are leaked: a hung device may still write to them", mem->padded_bytes);

    cox__leak(mem->pages);
    cox__leak(mem->pinned);
    cox__leak(mem->mapped);
    cox__leak(mem->home);
    mem->pages = NULL;
}

/* Unmap the pinned buffer and wait for the end of that, unless a device of its group hangs. False:
 * its device hangs from now on. */
static bool unpin(struct cox__cl_backend *backend, struct cox__mem *mem)
{
    struct cox__cl_device *device = &backend->devices[mem->pinned_device];
    if (!mem->pinned || cox__cl_hang_in_group(backend, device->group))
        return true;

    clEnqueueUnmapMemObject(device->service, mem->pinned, mem->pinned_map, 0, NULL, NULL);
    mem->pinned_map = NULL;

    uint64_t timeout_ns = COX__CL_TIMEOUT_NS;
    if (atomic_load(&device->lost))
        timeout_ns = COX__CL_SHORT_TIMEOUT_NS;

    if (cox__cl_command_queue_drain(device->service, NULL, timeout_ns) != COX__CL_NOT_IN_TIME)
        return true;

    atomic_store(&device->lost, true);
    return false;
}

/* Unmap the application's memory object when no device uses it any more. The application's queue
 * reports the end of the unmapping. */
static void unmap(struct cox__cl_backend *backend, struct cox__mem *mem)
{
    if (!mem->mapped)
        return;

    cl_int code = clEnqueueUnmapMemObject(mem->mapped_queue, mem->mapped, mem->data, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clFlush(mem->mapped_queue);
    cox__cl_error_check(backend->log, code, "unmapping", "a memory object of the application's");

    clReleaseMemObject(mem->mapped);
    clReleaseCommandQueue(mem->mapped_queue);
}

bool cox__cl_mem_destroy(struct cox__backend *base, struct cox__mem *mem)
{
    struct cox__cl_backend *backend = (struct cox__cl_backend *)base;
    const bool unmapped = cox__cl_objects_unmap(mem), unpinned = unpin(backend, mem);

    /* No instance is abandoned, so no event would report the end of the device's work. */
    if (!unmapped || !unpinned) {
        leak_data(backend, mem);
        cox__leak(mem);
        return false;
    }

    cox__cl_objects_release(backend, mem);
    release_common(backend, mem);
    unmap(backend, mem);
    if (mem->home)
        clReleaseMemObject(mem->home);
    cox__cl_shared_pages_unref(mem->pages);
    free(mem);
    return true;
}

void cox__cl_mem_abandon(struct cox__backend *base, struct cox__mem *mem)
{
    struct cox__cl_backend *backend = (struct cox__cl_backend *)base;
    leak_data(backend, mem);

    cox__cl_objects_release(backend, mem);
    mem->pinned = NULL; /* the pinned buffer is the leaked memory itself */
    release_common(backend, mem);
    free(mem);
}
