/* OpenCL functions of the test program, which are called before those of the loader. They lie, fail and hang as a
 * test asks, and record their calls. By default they only pass calls on to the driver.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_DRIVER_H
#define COX_TESTS_DRIVER_H

#include <CL/cl.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { QUEUES_MAX = 256, KEPT_MAX = 256, WAIT_SECONDS = 120 };

#define NEXT(name)                 \
    static __typeof__(&name) next; \
    if (!next)                     \
    *(void **)&next = dlsym(RTLD_NEXT, #name)

/* One step of a wait that must end at `wait_ends`. */
static inline void pause_until(time_t wait_ends, const char *what)
{
    cr_assert_lt(time(NULL), wait_ends, "%s did not happen within %d s", what, WAIT_SECONDS);
    nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Each query of the event `endless` moves the clock ahead by a second, so that waits for it pass at once. */
static _Atomic time_t seconds_ahead;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const long code = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_MONOTONIC)
        now->tv_sec += seconds_ahead;
    return (int)code;
}

/* Queues in the order of their creation. Those of one instance are consecutive. */
static cl_command_queue queues[QUEUES_MAX];
static uint32_t queue_count;
static _Atomic uint32_t hung_first, hung_end; /* events of the queues in this range never end */
static _Atomic uint32_t asked_of_hung;        /* a call that may block was made for one of them */

static bool hangs(cl_command_queue queue)
{
    bool found = false;
    for (uint32_t q = hung_first; q < hung_end; q++)
        found |= queues[q] == queue;
    return found;
}

static void note_asked(cl_command_queue queue)
{
    if (hangs(queue))
        asked_of_hung++;
}

/* Queues with an unmapping that is not known to have ended. Each has a marker behind the unmapping. For one thread
 * at a time. */
static cl_command_queue unfinished[QUEUES_MAX];
static cl_event unfinished_markers[QUEUES_MAX];

static void note_unmapping(cl_command_queue from, cl_command_queue to)
{
    for (int q = 0; q < QUEUES_MAX; q++)
        if (unfinished[q] == from) {
            unfinished[q] = to;
            unfinished_markers[q] = NULL;
            return;
        }
}

static void note_end(cl_event event)
{
    for (int q = 0; q < QUEUES_MAX; q++)
        if (unfinished_markers[q] == event)
            note_unmapping(unfinished[q], NULL);
}

CL_API_ENTRY cl_command_queue CL_API_CALL clCreateCommandQueue(cl_context context, cl_device_id device,
                                                               cl_command_queue_properties properties, cl_int *code)
{
    NEXT(clCreateCommandQueue);
    cl_command_queue queue = next(context, device, properties, code);
    if (queue && queue_count < QUEUES_MAX)
        queues[queue_count++] = queue;
    return queue;
}

CL_API_ENTRY cl_int CL_API_CALL clFinish(cl_command_queue queue)
{
    NEXT(clFinish);
    note_asked(queue);
    const cl_int code = next(queue);
    note_unmapping(queue, NULL);
    return code;
}

static _Atomic cl_int flush_code;

CL_API_ENTRY cl_int CL_API_CALL clFlush(cl_command_queue queue)
{
    NEXT(clFlush);
    note_asked(queue);
    const cl_int code = next(queue);
    return flush_code ? flush_code : code;
}

static _Atomic uint32_t queues_released;

CL_API_ENTRY cl_int CL_API_CALL clReleaseCommandQueue(cl_command_queue queue)
{
    NEXT(clReleaseCommandQueue);
    note_asked(queue);
    queues_released++;
    return next(queue);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem mem, void *mapped,
                                                        cl_uint wait_count, const cl_event *wait, cl_event *event)
{
    NEXT(clEnqueueUnmapMemObject);
    note_asked(queue);
    note_unmapping(queue, NULL);
    note_unmapping(NULL, queue);
    return next(queue, mem, mapped, wait_count, wait, event);
}

static atomic_bool markers_never_end;
static _Atomic(cl_event) endless;

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint wait_count,
                                                            const cl_event *wait, cl_event *event)
{
    NEXT(clEnqueueMarkerWithWaitList);
    note_asked(queue);
    const cl_int code = next(queue, wait_count, wait, event);
    if (markers_never_end)
        endless = *event;
    for (int q = 0; q < QUEUES_MAX && code == CL_SUCCESS; q++)
        if (unfinished[q] == queue)
            unfinished_markers[q] = *event;
    return code;
}

static _Atomic uint32_t contexts_released;

CL_API_ENTRY cl_int CL_API_CALL clReleaseContext(cl_context context)
{
    NEXT(clReleaseContext);
    contexts_released++;
    return next(context);
}

static _Atomic cl_int query_code;     /* the error that a status query returns */
static _Atomic cl_int query_status;   /* the status that it reports instead of the true one; 0: the true one */
static _Atomic(cl_event) false_event; /* the event that is reported as failed */
static atomic_bool was_false;

CL_API_ENTRY cl_int CL_API_CALL clGetEventInfo(cl_event event, cl_event_info what, size_t bytes, void *value,
                                               size_t *got)
{
    NEXT(clGetEventInfo);
    if (what == CL_EVENT_COMMAND_EXECUTION_STATUS && query_code)
        return query_code;
    const cl_int code = next(event, what, bytes, value, got);
    if (code || what != CL_EVENT_COMMAND_EXECUTION_STATUS)
        return code;
    cl_command_queue queue;
    if (*(cl_int *)value == CL_COMPLETE)
        note_end(event);
    if (query_status)
        *(cl_int *)value = query_status;
    else if (event == false_event)
        *(cl_int *)value = CL_OUT_OF_RESOURCES;
    else if (event == endless || (!next(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL) && hangs(queue)))
        *(cl_int *)value = CL_RUNNING;
    seconds_ahead += event == endless;
    was_false = was_false || event == false_event;
    return code;
}

/* Another event may get its handle afterwards. */
CL_API_ENTRY cl_int CL_API_CALL clReleaseEvent(cl_event event)
{
    NEXT(clReleaseEvent);
    if (event == false_event)
        false_event = NULL;
    return next(event);
}

static atomic_uint profile_calls;
static atomic_bool profile_lies;
static cl_ulong profile_queued, profile_start, profile_end;

CL_API_ENTRY cl_int CL_API_CALL clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t bytes,
                                                        void *value, size_t *got)
{
    NEXT(clGetEventProfilingInfo);
    profile_calls++;
    const cl_int code = next(event, what, bytes, value, got);
    if (profile_lies)
        *(cl_ulong *)value = what == CL_PROFILING_COMMAND_QUEUED  ? profile_queued
                             : what == CL_PROFILING_COMMAND_START ? profile_start
                                                                  : profile_end;
    return code;
}

/* Counters; the call that counts down to zero is refused. 0: none. */
static _Atomic uint32_t refuse_arg, refuse_launch, refuse_write, refuse_buffer;
static cl_int launch_code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
static atomic_bool next_launch_is_false; /* its event will report that it failed */

/* Events of launches, which are kept while `keep_launches` is set. */
static bool keep_launches;
static cl_event launches[KEPT_MAX];
static uint32_t launch_count;

static bool refused(_Atomic uint32_t *countdown)
{
    return atomic_load(countdown) && atomic_fetch_sub(countdown, 1) == 1;
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
    NEXT(clSetKernelArg);
    return refused(&refuse_arg) ? CL_OUT_OF_HOST_MEMORY : next(kernel, index, bytes, value);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                                                       const size_t *offset, const size_t *global, const size_t *local,
                                                       cl_uint wait_count, const cl_event *wait, cl_event *event)
{
    NEXT(clEnqueueNDRangeKernel);
    if (refused(&refuse_launch))
        return launch_code;
    cl_event own = NULL;
    const bool keep = keep_launches && launch_count < KEPT_MAX;
    if (keep && !event)
        event = &own;
    const cl_int code = next(queue, kernel, dims, offset, global, local, wait_count, wait, event);
    if (code == CL_SUCCESS && keep) {
        launches[launch_count++] = *event;
        if (!own)
            clRetainEvent(*event);
    }
    if (code == CL_SUCCESS && event && atomic_exchange(&next_launch_is_false, false))
        false_event = *event;
    return code;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                                     size_t offset, size_t bytes, const void *data, cl_uint wait_count,
                                                     const cl_event *wait, cl_event *event)
{
    NEXT(clEnqueueWriteBuffer);
    if (refused(&refuse_write))
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return next(queue, mem, blocking, offset, bytes, data, wait_count, wait, event);
}

static atomic_int buffers; /* created and not released */
static atomic_int buffers_created;

CL_API_ENTRY cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host,
                                               cl_int *code)
{
    NEXT(clCreateBuffer);
    if (refused(&refuse_buffer)) {
        *code = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    buffers++;
    buffers_created++;
    return next(context, flags, bytes, host, code);
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseMemObject(cl_mem mem)
{
    NEXT(clReleaseMemObject);
    buffers--;
    return next(mem);
}

/* Callbacks are passed on, refused, or kept until the test calls them. */
enum { CALLBACKS_WORK, CALLBACKS_ARE_REFUSED, CALLBACKS_ARE_KEPT };

struct kept {
    void(CL_CALLBACK *fn)(cl_event, cl_int, void *);
    cl_event event;
    void *user;
};

static atomic_int callbacks;
static struct kept kept[KEPT_MAX];
static uint32_t kept_count;

CL_API_ENTRY cl_int CL_API_CALL clSetEventCallback(cl_event event, cl_int type,
                                                   void(CL_CALLBACK *fn)(cl_event, cl_int, void *), void *user)
{
    NEXT(clSetEventCallback);
    if (callbacks == CALLBACKS_WORK)
        return next(event, type, fn, user);
    if (callbacks == CALLBACKS_ARE_REFUSED)
        return CL_OUT_OF_HOST_MEMORY;
    cr_assert_lt(kept_count, KEPT_MAX);
    clRetainEvent(event); /* so that no other event gets its handle */
    kept[kept_count++] = (struct kept){fn, event, user};
    return CL_SUCCESS;
}

static inline void call_kept(uint32_t index, cl_int status)
{
    kept[index].fn(kept[index].event, status, kept[index].user);
}

#endif
