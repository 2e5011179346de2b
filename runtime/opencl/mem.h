/* Host allocations and the devices' objects on them. Only mem.c and object.c use the fields.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_MEMORY_H
#define COX_OPENCL_MEMORY_H

#include "internal.h"
#include "shared_pages.h"
#include "command_queue.h"
#include <coxswain/opencl.h>

/* One device's buffer for one band of a host allocation: a sub-buffer or a wrapper. Between frames
 * it is mapped, so that the application may use the memory. It stays unmapped if a sub-buffer that
 * overlaps it has taken its place. */
struct cox__cl_object {
    cl_mem mem;
    void *mapped;
    /* the device has not seen what the application wrote since the last use, or since the parent
     * was made */
    bool stale;
    /* a counted reference; an in-order queue. An overlapping object may unmap this one on its own
     * queue */
    struct cox__cl_queue *queue;
    enum cox__access access;
    bool busy; /* a band under way uses it: its mapping may not have ended */
    bool sub;  /* a sub-buffer of its group's parent, not a wrapper */

    bool from_start; /* a wrapper of all of the memory, of which the part at `offset` is mapped */
    size_t offset;
    size_t bytes;
    /* the memory's count at the last use; the least recently used object is released first */
    uint64_t used;
};

enum {
    COX__CL_OBJECTS_MAX = 256, /* more than the bands of a steady split need on every device */
    /* An object that was not among this many uses of its memory may give its place to a new one.
     * Its split has moved, or its device has a new instance and the object keeps the old
     * context. */
    COX__CL_OBJECT_USES = 4 * COX__CL_OBJECTS_MAX,
};

struct cox__mem {
    struct cox__mem_link link;
    void *data;
    size_t bytes;
    size_t padded_bytes;
    bool wrapped;
    struct cox__cl_pages *pages; /* in which `data` lies; NULL = wrapped, or the driver's memory */
    cl_mem pinned;               /* not NULL: `data` lies in this buffer, mapped at `pinned_map` */
    void *pinned_map;
    uint32_t pinned_device;
    /* not NULL: `data` is this memory object of the application, mapped on the queue; both are
     * retained */
    cl_mem mapped;
    cl_command_queue mapped_queue;
    /* not NULL: the memory is this object of the application, on a device; retained. `data` is then
     * a copy on the host for rows that other devices use, or NULL. */
    cl_mem home;
    cl_context home_context;
    uint32_t home_device;
    struct cox_opencl_sync sync;
    cl_mem parents[COX_DEVICES_MAX]; /* per group, made at first use */
    uint64_t uses;
    uint32_t object_count;
    struct cox__cl_object objects[COX__CL_OBJECTS_MAX];
};

/* `mem` wraps the application's memory object, mapped on `queue`: retain both, and unmap the object
 * when `mem` is destroyed. */
void cox__cl_mem_set_mapped(struct cox__mem *mem, cl_mem mapped, cl_command_queue queue);

/* Memory that is an object of the application, in the context of a device. Retains the object. */
cox_status cox__cl_mem_create_home(struct cox__cl_backend *backend, uint32_t device, cl_mem object,
                                   const struct cox_opencl_sync *sync, struct cox__mem **out);

/* The backend's operations of these names. */
bool cox__cl_mem_home(const struct cox__mem *mem, struct cox__mem_home *home);
cox_status cox__cl_mem_add_host(struct cox__backend *base, struct cox__mem *mem);
cox_status cox__cl_mem_create(struct cox__backend *base, void *host, size_t bytes,
                              struct cox__mem **out);
bool cox__cl_mem_destroy(struct cox__backend *base, struct cox__mem *mem);
void cox__cl_mem_abandon(struct cox__backend *base, struct cox__mem *mem);
struct cox__mem_link *cox__cl_mem_link(struct cox__mem *mem);
void *cox__cl_mem_data(struct cox__mem *mem);
size_t cox__cl_mem_bytes(const struct cox__mem *mem);

#endif
