/* Devices that hang, and what is released only when they have ended.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_HANG_H
#define COX_OPENCL_HANG_H

#include "shared_pages.h"
#include "command_queue.h"

/* An instance of the device was abandoned: its queue is, and its device hangs. */
void cox__cl_hang_begins(struct cox__cl_backend *backend, uint32_t device,
                         struct cox__cl_queue *queue);

/* All that was under way on the abandoned queue has ended: what waited for that is released. May
 * block in the driver. */
void cox__cl_hang_ends(struct cox__cl_backend *backend, uint32_t device,
                       struct cox__cl_queue *queue);

/* Whether a device of the group hangs. */
bool cox__cl_hang_in_group(const struct cox__cl_backend *backend, uint32_t group);

/* Release `mem`, but not while `queue` is abandoned. If `queue` is NULL, do so only when no device
 * of `group` hangs. Keep `pages` (may be NULL), on which `mem` lies, until then. Unmap `mapped`
 * (may be NULL) first. Takes over the references to `mem` and `queue`. */
void cox__cl_hang_release_after(struct cox__cl_backend *backend, cl_mem mem, void *mapped,
                                struct cox__cl_queue *queue, uint32_t group,
                                struct cox__cl_pages *pages);

/* At the backend's end: leak what still waits. */
void cox__cl_hang_leak_deferred(struct cox__cl_backend *backend);

#endif
