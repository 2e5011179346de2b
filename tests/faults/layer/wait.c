/* Calls that flush or wait.
 * SPDX-License-Identifier: Apache-2.0 */
#include "faults/layer.h"

#include <stdlib.h>

void open_flush_gates(struct queue *queue)
{
    pthread_mutex_lock(&lock);
    struct flush_gate *gate = queue->flush_gates;
    queue->flush_gates = NULL;
    pthread_mutex_unlock(&lock);
    while (gate) {
        struct flush_gate *rest = gate->next;
        open_gate(gate->gate);
        free(gate);
        gate = rest;
    }
}

void pass_flush(const void *handle)
{
    struct queue *queue = queue_of(handle);
    if (!queue)
        return;
    open_flush_gates(queue);
    put_queue(queue);
}

bool is_dead(struct queue *queue)
{
    pthread_mutex_lock(&lock);
    bool dead = queue->context->dead & bit(queue->device);
    pthread_mutex_unlock(&lock);
    return dead;
}

static bool has_unseen(struct queue *queue)
{
    pthread_mutex_lock(&lock);
    bool has = queue->unseen > 0;
    pthread_mutex_unlock(&lock);
    return has;
}

cl_int CL_API_CALL fault_clFlush(cl_command_queue handle)
{
    cl_int code = arrive_at(FAULT_CALL_clFlush, handle);
    if (code)
        return code;
    pass_flush(handle);
    return next.clFlush(handle);
}

static cl_int finish_by_asking(struct queue *queue)
{
    cl_event marker;
    cl_int code = next.clEnqueueMarkerWithWaitList(queue->handle, 0, NULL, &marker);
    if (code)
        return code;
    next.clFlush(queue->handle);
    while (real_status(marker) > CL_COMPLETE && !is_dead(queue))
        poll_pause();
    next.clReleaseEvent(marker);
    return is_dead(queue) ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

cl_int CL_API_CALL fault_clFinish(cl_command_queue handle)
{
    cl_int code = arrive_at(FAULT_CALL_clFinish, handle);
    if (code)
        return code;
    struct queue *queue = queue_of(handle);
    if (!queue)
        return next.clFinish(handle);
    open_flush_gates(queue);
    code = may_vanish() ? finish_by_asking(queue) : next.clFinish(handle);
    while (code == CL_SUCCESS && has_unseen(queue) && !is_dead(queue))
        poll_pause();
    put_queue(queue);
    return code;
}

static void flush_of(cl_event event)
{
    struct command *command = command_of(event);
    if (!command)
        return;
    open_flush_gates(command->queue);
    pthread_mutex_lock(&lock);
    bool alive = command->queue->alive && next.clRetainCommandQueue(command->queue->handle) == CL_SUCCESS;
    pthread_mutex_unlock(&lock);
    if (alive) {
        next.clFlush(command->queue->handle);
        next.clReleaseCommandQueue(command->queue->handle);
    }
    put_command(command);
}

cl_int wait_by_asking(cl_uint count, const cl_event *events)
{
    bool failed = false;
    for (cl_uint i = 0; i < count; i++)
        flush_of(events[i]);
    for (cl_uint i = 0; i < count; i++) {
        cl_int status;
        while ((status = visible_status(events[i])) > CL_COMPLETE)
            poll_pause();
        failed |= status < 0;
    }
    return failed ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

cl_int CL_API_CALL fault_clWaitForEvents(cl_uint count, const cl_event *events)
{
    cl_int code = arrive_at(FAULT_CALL_clWaitForEvents, count > 0 && events ? events[0] : NULL);
    if (code || count == 0 || !events)
        return code ? code : next.clWaitForEvents(count, events);
    bool ask = may_vanish();
    for (cl_uint i = 0; i < count; i++) {
        struct command *command = command_of(events[i]);
        if (!command)
            continue;
        for (int kind = 0; kind < FAULT_KINDS; kind++)
            ask |= command->faults.by[kind] != NULL;
        ask |= command->doomed;
        open_flush_gates(command->queue);
        put_command(command);
    }
    return ask ? wait_by_asking(count, events) : next.clWaitForEvents(count, events);
}
