/* A command queue that several objects share, and waiting for a queue without blocking in the
 * driver.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_QUEUE_H
#define COX_OPENCL_QUEUE_H

#include "internal.h"

enum cox__cl_command_queue_state {
    COX__CL_SOUND = 0,
    /* a command or call on it has failed, or its instance was abandoned and has ended: waits are
     * short */
    COX__CL_FAILED = 1,
    /* its device hangs: no thread enqueues on it, flushes it, waits for it or releases it */
    COX__CL_ABANDONED = 2,
};

/* The compute queue of a device instance, shared with the band objects that the instance has worked
 * on. Outlives the instance for as long as a band object needs it. */
struct cox__cl_queue {
    _Atomic uint32_t refs;
    atomic_int state; /* enum cox__cl_command_queue_state */
    cl_command_queue id;
    cl_context context;
    bool subbuffers; /* bands on it may be sub-buffers of their group's parent */
};

/* Owns the command queue `id` if it succeeds. NULL: there is no memory. */
struct cox__cl_queue *cox__cl_command_queue_new(cl_command_queue id, cl_context context,
                                                bool subbuffers);
struct cox__cl_queue *cox__cl_command_queue_ref(struct cox__cl_queue *queue);
void cox__cl_command_queue_unref(
    struct cox__cl_queue *queue); /* releases the command queue with the last reference */
enum cox__cl_command_queue_state cox__cl_command_queue_state(const struct cox__cl_queue *queue);
void cox__cl_command_queue_failed(struct cox__cl_queue *queue);

/* What cox__cl_command_queue_drain returns besides an error's code. */
enum { COX__CL_NOT_IN_TIME = 1 };

/* Wait until all that was enqueued on `queue` has ended, without blocking in the driver: not for
 * longer than `timeout_ns`, nor once `shared` (may be NULL) is abandoned. Application threads and
 * worker threads. */
cl_int cox__cl_command_queue_drain(cl_command_queue queue, const struct cox__cl_queue *shared,
                                   uint64_t timeout_ns);

#endif
