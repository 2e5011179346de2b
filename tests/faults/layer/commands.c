/* Commands on their way to the driver, and their faults.
 * SPDX-License-Identifier: Apache-2.0 */
#include "faults/layer.h"

#include <stdlib.h>
#include <string.h>

cl_int issue_begin(struct issue *issue, int call, cl_command_queue handle, cl_bool blocking, WAIT)
{
    *issue = (struct issue){.call = call,
                            .queue = queue_of(handle),
                            .blocking = blocking,
                            .wait_count = wait_count,
                            .wait = wait,
                            .wanted = event,
                            .event_place = event};
    struct queue *queue = issue->queue;
    if (!queue)
        return CL_SUCCESS;
    cl_int code = arrive(call, bit(queue->device), queue->context, event != NULL, &issue->faults);
    if (code) {
        put_queue(queue);
        issue->queue = NULL;
        return code;
    }
    return CL_SUCCESS;
}

void issue_prepare(struct issue *issue)
{
    struct queue *queue = issue->queue;
    struct line **by = issue->faults.by;
    const uint32_t classes = fault_call_classes(issue->call);
    const cl_uint wait_count = issue->wait_count;
    const cl_event *wait = issue->wait;
    bool any = issue->flips.line != NULL;
    if (!queue)
        return;
    if (issue->blocking)
        open_flush_gates(queue);
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        any |= by[kind] && kind != FAULT_KIND_HANG && kind != FAULT_KIND_CORRUPT;
    if (!any && !issue->wanted)
        return;
    issue->event_place = &issue->event;
    if (any && issue->blocking) {
        issue->blocking = CL_FALSE;
        issue->wait_here = CL_TRUE;
    }
    if (by[FAULT_KIND_LATE] || by[FAULT_KIND_NEVER])
        issue->gate = new_gate(queue);
    if (by[FAULT_KIND_NEEDS_FLUSH])
        issue->flush_gate = new_gate(queue);
    if (issue->gate || issue->flush_gate) {
        issue->own_wait = must_alloc(wait_count + 2u, sizeof *issue->own_wait);
        if (wait_count && wait)
            memcpy(issue->own_wait, wait, wait_count * sizeof *wait);
        if (issue->gate)
            issue->own_wait[issue->wait_count++] = issue->gate;
        if (issue->flush_gate)
            issue->own_wait[issue->wait_count++] = issue->flush_gate;
        issue->wait = issue->own_wait;
    }
    /* Maps and unmaps always run, since they return a pointer or take one back. */
    issue->skip = by[FAULT_KIND_STATUS] && !(classes & (FAULT_MAP | FAULT_UNMAP));
}

/* Enqueue a marker behind the command. It waits for a gate that the ticker opens. On return, `issue->event` is the
 * marker's. If the device cannot wait for gates, wait here instead. */
static void add_tail(struct issue *issue, struct command *command)
{
    struct job job = {.kind = JOB_TAIL, .head = issue->event, .flips = issue->flips, .command = command};
    cl_event marker;
    if (devices[issue->queue->device].gateless) {
        next.clWaitForEvents(1, &job.head);
        begin_tail(&job);
        uint64_t now = now_ns();
        command->stretch_ns = job.due_ns > now ? job.due_ns - now : 0;
        sleep_ns(command->stretch_ns);
        return;
    }
    job.gate = new_gate(issue->queue);
    const cl_event wait[] = {job.head, job.gate};
    if (!job.gate)
        return;
    if (next.clEnqueueMarkerWithWaitList(issue->queue->handle, 2, wait, &marker) != CL_SUCCESS) {
        open_gate(job.gate);
        return;
    }
    issue->event = marker;
    pthread_mutex_lock(&lock);
    command->head = job.head; /* released with the command, since the application may query its times */
    command->hold = TAILED;
    add_job(&job);
    pthread_mutex_unlock(&lock);
}

static void issue_failed(struct issue *issue)
{
    if (issue->gate)
        open_gate(issue->gate);
    if (issue->flush_gate)
        open_gate(issue->flush_gate);
}

/* The command is in the driver's queue and has an event. */
static cl_int issue_made(struct issue *issue)
{
    struct queue *queue = issue->queue;
    struct line **by = issue->faults.by;
    struct command *command = must_alloc(1, sizeof *command);
    *command = (struct command){
        .refs = 1, .call = issue->call, .queue = queue, .faults = issue->faults, .enqueued_ns = real_ns()};
    pthread_mutex_lock(&lock);
    queue->refs++;
    pthread_mutex_unlock(&lock);
    if (issue->gate) {
        /* Keep the queue until it is empty: in some drivers the last release waits for that. */
        next.clRetainCommandQueue(queue->handle);
        next.clRetainEvent(issue->event);
        command->hold = HELD;
        pthread_mutex_lock(&lock);
        if (by[FAULT_KIND_NEVER])
            struck(by[FAULT_KIND_NEVER]);
        else {
            struck(by[FAULT_KIND_LATE]);
            add_job(&(struct job){.kind = JOB_OPEN,
                                  .due_ns = now_ns() + by[FAULT_KIND_LATE]->plan.time_ns,
                                  .gate = issue->gate,
                                  .head = issue->event,
                                  .queue = queue->handle,
                                  .command = command});
        }
        pthread_mutex_unlock(&lock);
    }
    if (issue->flush_gate) {
        struct flush_gate *gate = must_alloc(1, sizeof *gate);
        gate->gate = issue->flush_gate;
        struck(by[FAULT_KIND_NEEDS_FLUSH]);
        pthread_mutex_lock(&lock);
        gate->next = queue->flush_gates;
        queue->flush_gates = gate;
        pthread_mutex_unlock(&lock);
    }
    if (issue->flips.line || by[FAULT_KIND_SLOW] || by[FAULT_KIND_LATE_SEEN])
        add_tail(issue, command);
    pthread_mutex_lock(&lock);
    if (by[FAULT_KIND_NEVER_SEEN]) {
        queue->unseen++;
        struck(by[FAULT_KIND_NEVER_SEEN]);
    }
    enter_object(issue->event, TYPE_EVENT, bit(queue->device), queue->context)->command = command;
    if (queue->context->dead & bit(queue->device)) /* it vanished while the driver accepted the command */
        doom(command, bit(queue->device), devices[queue->device].code);
    pthread_mutex_unlock(&lock);
    cl_int code = CL_SUCCESS;
    if (issue->wait_here) {
        wait_by_asking(1, &issue->event);
        cl_int status = visible_status(issue->event);
        code = status < 0 ? status : CL_SUCCESS;
    }
    if (issue->wanted)
        *issue->wanted = issue->event;
    else {
        released(issue->event);
        next.clReleaseEvent(issue->event);
    }
    return code;
}

cl_int issue_end(struct issue *issue, cl_int code)
{
    if (code)
        issue_failed(issue);
    else if (issue->queue && issue->event_place == &issue->event)
        code = issue_made(issue);
    free(issue->own_wait);
    if (issue->queue)
        put_queue(issue->queue);
    return code;
}

cl_int issue_marker(struct issue *issue, cl_command_queue queue)
{
    return next.clEnqueueMarkerWithWaitList(queue, issue->wait_count, issue->wait, issue->event_place);
}

COMMAND(clEnqueueReadImage, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *o, const size_t *r, size_t rp, size_t sp,
         void *p, WAIT),
        (queue, m, issue.blocking, o, r, rp, sp, p, REST), PLAIN, PLAIN)
COMMAND(clEnqueueWriteImage, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *o, const size_t *r, size_t rp, size_t sp,
         const void *p, WAIT),
        (queue, m, issue.blocking, o, r, rp, sp, p, REST), PLAIN, PLAIN)
COMMAND(clEnqueueWriteBuffer, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, size_t o, size_t n, const void *p, WAIT),
        (queue, m, issue.blocking, o, n, p, REST), PLAIN, PLAIN)
COMMAND(clEnqueueWriteBufferRect, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *o, const size_t *ho, const size_t *r,
         size_t rp, size_t sp, size_t hrp, size_t hsp, const void *p, WAIT),
        (queue, m, issue.blocking, o, ho, r, rp, sp, hrp, hsp, p, REST), PLAIN, PLAIN)
COMMAND(clEnqueueCopyBufferRect, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, const size_t *o, const size_t *p, const size_t *r, size_t rp,
         size_t sp, size_t rq, size_t sq, WAIT),
        (queue, a, b, o, p, r, rp, sp, rq, sq, REST), PLAIN, PLAIN)
COMMAND(clEnqueueCopyImage, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, const size_t *o, const size_t *p, const size_t *r, WAIT),
        (queue, a, b, o, p, r, REST), PLAIN, PLAIN)
COMMAND(clEnqueueCopyImageToBuffer, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, const size_t *o, const size_t *r, size_t n, WAIT),
        (queue, a, b, o, r, n, REST), PLAIN, PLAIN)
COMMAND(clEnqueueCopyBufferToImage, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, size_t n, const size_t *o, const size_t *r, WAIT),
        (queue, a, b, n, o, r, REST), PLAIN, PLAIN)
COMMAND(clEnqueueFillBuffer, CL_FALSE,
        (cl_command_queue queue, cl_mem m, const void *p, size_t pn, size_t o, size_t n, WAIT),
        (queue, m, p, pn, o, n, REST), PLAIN, PLAIN)
COMMAND(clEnqueueFillImage, CL_FALSE,
        (cl_command_queue queue, cl_mem m, const void *p, const size_t *o, const size_t *r, WAIT),
        (queue, m, p, o, r, REST), PLAIN, PLAIN)

/* When a device vanishes, its mappings vanish too. The driver does not know that, so unmap here: PoCL would
 * otherwise keep the memory object and its context. */
static void forget_mapping(cl_command_queue handle, cl_mem mem, void *mapped)
{
    struct queue *queue = queue_of(handle);
    if (!queue)
        return;
    if (is_dead(queue)) {
        next.clEnqueueUnmapMemObject(handle, mem, mapped, 0, NULL, NULL);
        next.clFlush(handle);
    }
    put_queue(queue);
}

cl_int CL_API_CALL fault_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem mem, void *mapped, WAIT)
{
    struct issue issue;
    cl_int code = issue_begin(&issue, FAULT_CALL_clEnqueueUnmapMemObject, queue, CL_FALSE, wait_count, wait, event);
    if (code) {
        forget_mapping(queue, mem, mapped);
        return code;
    }
    issue_prepare(&issue);
    code = issue.skip ? issue_marker(&issue, queue) : next.clEnqueueUnmapMemObject(queue, mem, mapped, REST);
    return issue_end(&issue, code);
}

COMMAND(clEnqueueMigrateMemObjects, CL_FALSE,
        (cl_command_queue queue, cl_uint n, const cl_mem *m, cl_mem_migration_flags f, WAIT), (queue, n, m, f, REST),
        PLAIN, PLAIN)
COMMAND(clEnqueueMarkerWithWaitList, CL_FALSE, (cl_command_queue queue, WAIT), (queue, REST), PLAIN, PLAIN)
COMMAND(clEnqueueBarrierWithWaitList, CL_FALSE, (cl_command_queue queue, WAIT), (queue, REST), PLAIN, PLAIN)
