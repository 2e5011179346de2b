/* Command queues that several objects share, and waiting for a queue without blocking in the
 * driver.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_QUEUE_H
#define COX_OPENCL_QUEUE_H

#include "internal.h"

enum cox__cl_command_queue_state {
    COX__CL_SOUND = 0,
    /* a command or call has failed, or its abandoned instance has ended: timeouts are short */
    COX__CL_FAILED = 1,
    /* its device hangs: no thread may enqueue on it, flush it, wait for it or release it */
    COX__CL_ABANDONED = 2,
};

/* The compute queue of a device instance, shared with the band objects that the instance has used.
 * It outlives the instance while a band object needs it. */
struct cox__cl_queue {
    _Atomic uint32_t refs;
    atomic_int state; /* enum cox__cl_command_queue_state */
    cl_command_queue id;
    cl_context context;
    bool subbuffers; /* bands on it may be sub-buffers of their group's parent */
};

/* On success the new object owns the command queue `id`. NULL = out of memory. */
struct cox__cl_queue *cox__cl_command_queue_new(cl_command_queue id, cl_context context,
                                                bool subbuffers);
struct cox__cl_queue *cox__cl_command_queue_ref(struct cox__cl_queue *queue);
/* The last reference releases the command queue. */
void cox__cl_command_queue_unref(struct cox__cl_queue *queue);
enum cox__cl_command_queue_state cox__cl_command_queue_state(const struct cox__cl_queue *queue);
void cox__cl_command_queue_failed(struct cox__cl_queue *queue);

/* A result of cox__cl_command_queue_drain that is no OpenCL code. */
enum { COX__CL_NOT_IN_TIME = 1 };

/* Wait until all commands on `queue` have ended, without blocking in the driver. The wait ends
 * early after `timeout_ns`, or when `shared` (may be NULL) is abandoned. Runs on application
 * threads and worker threads. */
cl_int cox__cl_command_queue_drain(cl_command_queue queue, const struct cox__cl_queue *shared,
                                   uint64_t timeout_ns);

#endif
