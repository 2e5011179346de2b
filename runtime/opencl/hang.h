/* Devices that hang, and memory objects that are released only when these devices have ended.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_HANG_H
#define COX_OPENCL_HANG_H

#include "shared_pages.h"
#include "command_queue.h"

/* An instance of the device was abandoned: mark its queue as abandoned and the device as hung. */
void cox__cl_hang_begins(struct cox__cl_backend *backend, uint32_t device,
                         struct cox__cl_queue *queue);

/* All commands on the abandoned queue have ended: release the objects that waited for that. May
 * block in the driver. */
void cox__cl_hang_ends(struct cox__cl_backend *backend, uint32_t device,
                       struct cox__cl_queue *queue);

/* Whether a device of the group hangs. */
bool cox__cl_hang_in_group(const struct cox__cl_backend *backend, uint32_t group);

/* Release `mem` when `queue` is not abandoned, or, if `queue` is NULL, when no device of `group`
 * hangs. Until then keep `pages` (may be NULL), on which `mem` lies. Unmap `mapped` (may be NULL)
 * first. Takes over the references to `mem` and `queue`. */
void cox__cl_hang_release_after(struct cox__cl_backend *backend, cl_mem mem, void *mapped,
                                struct cox__cl_queue *queue, uint32_t group,
                                struct cox__cl_pages *pages);

/* Leak the objects that still wait. Called when the backend is destroyed. */
void cox__cl_hang_leak_deferred(struct cox__cl_backend *backend);

#endif
