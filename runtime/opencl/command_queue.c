/* Queues that several objects share, and waiting for a queue.
 *
 * No function here waits in the driver: each asks for the state of the commands, so that a thread
 * can stop waiting.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command_queue.h"
#include "host/leak.h"

#include <stdlib.h>
#include <time.h>

struct cox__cl_queue *cox__cl_command_queue_new(cl_command_queue id, cl_context context,
                                                bool subbuffers)
{
    struct cox__cl_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;

    atomic_init(&queue->refs, 1);
    atomic_init(&queue->state, COX__CL_SOUND);

    queue->id = id;
    queue->context = context;
    queue->subbuffers = subbuffers;
    return queue;
}

struct cox__cl_queue *cox__cl_command_queue_ref(struct cox__cl_queue *queue)
{
    atomic_fetch_add(&queue->refs, 1);
    return queue;
}

void cox__cl_command_queue_unref(struct cox__cl_queue *queue)
{
    if (atomic_fetch_sub(&queue->refs, 1) > 1)
        return;
    /* Never an abandoned queue: its instance keeps a reference until it has ended. */
    clReleaseCommandQueue(queue->id);
    free(queue);
}

enum cox__cl_command_queue_state cox__cl_command_queue_state(const struct cox__cl_queue *queue)
{
    return (enum cox__cl_command_queue_state)atomic_load(&queue->state);
}

void cox__cl_command_queue_failed(struct cox__cl_queue *queue)
{
    int sound = COX__CL_SOUND;
    atomic_compare_exchange_strong(&queue->state, &sound, COX__CL_FAILED);
}

static bool must_stop(const struct cox__cl_queue *shared, uint64_t until_ns)
{
    return (shared && cox__cl_command_queue_state(shared) == COX__CL_ABANDONED) ||
           cox__clock_ns() >= until_ns;
}

cl_int cox__cl_command_queue_drain(cl_command_queue queue, const struct cox__cl_queue *shared,
                                   uint64_t timeout_ns)
{
    const uint64_t until_ns = cox__clock_ns() + timeout_ns;
    const long longest_pause_ns = 1000000;
    long pause_ns = 20000;
    cl_event event;

    cl_int code = clEnqueueMarkerWithWaitList(queue, 0, NULL, &event);
    if (code)
        return code;

    code = clFlush(queue);
    while (code == CL_SUCCESS) {
        cl_int state = CL_QUEUED;
        code = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        if (code == CL_SUCCESS && state <= CL_COMPLETE) {
            code = state;
            break;
        }

        if (code == CL_SUCCESS && must_stop(shared, until_ns)) {
            cox__leak(event); /* releasing it may block */
            return COX__CL_NOT_IN_TIME;
        }

        const struct timespec pause = {.tv_sec = 0, .tv_nsec = pause_ns};
        nanosleep(&pause, NULL);
        if (pause_ns < longest_pause_ns)
            pause_ns *= 2;
    }

    clReleaseEvent(event);
    return code;
}
