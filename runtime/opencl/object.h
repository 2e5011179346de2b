/* Band objects: the buffers of kernels in shared and mapped mode, kept from frame to frame. Used by
 * bands, queue slots and host allocations.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_BAND_OBJECT_H
#define COX_OPENCL_BAND_OBJECT_H

#include "mem.h"

/* The part of a host allocation that a band uses. */
struct cox__cl_part {
    enum cox__access access;

    /* No other device's band in flight overlaps the part (ROWS). Other parts (HALO, WHOLE) never
     * become sub-buffers. PoCL 3.1 keeps the mappings of all sub-buffers with their parent and
     * finds them by address. Two devices that map the same address therefore unmap each other's. */
    bool disjoint;

    /* The kernel's memory begins where the allocation does. The part is what is mapped and
     * unmapped. Only for CPUs: they work in the host's memory, so mapping changes nothing. Mesa
     * 22.3 cannot unmap a part of a buffer. */
    bool from_start;
    size_t offset;
    size_t bytes;
};

/* The band object for a part: an existing one or a new one. A command on `queue`, the instance's
 * queue, unmaps it. NULL on failure (logged). With the engine lock held. */
struct cox__cl_object *cox__cl_object_get(struct cox__cl_backend *backend, struct cox__mem *mem,
                                          uint32_t device, const struct cox__cl_part *part,
                                          struct cox__cl_queue *queue);

/* The band has ended, or was abandoned. With the engine lock held. */
void cox__cl_object_put(struct cox__cl_object *object);

/* Enqueue the mapping that gives the object's memory back to the application. */
void *cox__cl_object_map(const struct cox__cl_object *object, cl_event *event, cl_int *code);

/* Unmap all objects of the memory and wait for the end of that, so that the memory may be freed.
 * False: a queue hangs. */
bool cox__cl_objects_unmap(struct cox__mem *mem);

/* Release all objects of the memory. Those of an abandoned queue are released later (hang.h). */
void cox__cl_objects_release(struct cox__cl_backend *backend, struct cox__mem *mem);

#endif
