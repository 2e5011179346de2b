/* Host allocations and what devices have on them. Only mem.c and object.c look inside.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_MEMORY_H
#define COX_OPENCL_MEMORY_H

#include "internal.h"
#include "shared_pages.h"
#include "command_queue.h"

/* One band of a host allocation as one device sees it: a sub-buffer or a wrapper. Between frames it
 * is mapped, so that the application may touch the memory, unless a sub-buffer that overlaps it has
 * taken its place. */
struct cox__cl_object {
    cl_mem mem;
    void *mapped;
    /* does not know what the application wrote since its last use, or since its parent was made */
    bool stale;
    /* counted; in order. What overlaps may have the object unmapped in its own */
    struct cox__cl_queue *queue;
    enum cox__access access;
    bool busy; /* a band under way uses it: a driver may refuse to unmap what is not mapped yet */
    bool sub;  /* a sub-buffer of its group's parent, not a wrapper of its own */
    size_t offset;
    size_t bytes;
    /* when, on the memory's own count; the least recently used object is released first */
    uint64_t used;
};

enum {
    COX__CL_OBJECTS_MAX = 256, /* more than the bands of a steady split need on every device */
    /* An object that had none of so many uses of its memory may give its place to a new one: its
     * split has moved on, or its device was made anew, and it keeps the old context. One that is
     * not mapped goes before it. */
    COX__CL_OBJECT_USES = 4 * COX__CL_OBJECTS_MAX,
};

struct cox__mem {
    struct cox__mem_link link;
    void *data;
    size_t bytes;
    size_t padded_bytes;
    bool wrapped;
    struct cox__cl_pages *pages; /* `data`, if neither wrapped nor pinned */
    cl_mem pinned;               /* not NULL: `data` lies in this buffer, mapped at `pinned_map` */
    void *pinned_map;
    uint32_t pinned_device;
    /* not NULL: `data` is this memory object of the application's, mapped on the queue; both
     * retained */
    cl_mem mapped;
    cl_command_queue mapped_queue;
    cl_mem parents[COX_DEVICES_MAX]; /* per group, made at first use */
    uint64_t uses;
    uint32_t object_count;
    struct cox__cl_object objects[COX__CL_OBJECTS_MAX];
};

/* `mem` wraps what mapping the application's memory object gave: retains both, and unmaps it when
 * it is destroyed. */
void cox__cl_mem_set_mapped(struct cox__mem *mem, cl_mem mapped, cl_command_queue queue);

/* The backend's operations of these names. */
cox_status cox__cl_mem_create(struct cox__backend *base, void *host, size_t bytes,
                              struct cox__mem **out);
void cox__cl_mem_destroy(struct cox__backend *base, struct cox__mem *mem);
void cox__cl_mem_abandon(struct cox__backend *base, struct cox__mem *mem);
struct cox__mem_link *cox__cl_mem_link(struct cox__mem *mem);
void *cox__cl_mem_data(struct cox__mem *mem);
void cox__cl_mem_info(struct cox__mem *mem, struct cox_buffer_info *info);

#endif
