/* Counts calls of the OpenCL driver.
 *
 * This program's functions of these names replace the OpenCL loader's for the whole process: for
 * the library, shared or static, and for the hand-written OpenCL. Each one adds to its count and
 * calls the loader's function. Calls inside a driver are not counted.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "calls.h"
#include "common/now.h"
#include "message.h"

#include <CL/cl.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_bool counting, timing;
static _Atomic uint64_t counts[BENCH_CALL_COUNT], times_ns[BENCH_CALL_COUNT];

static const struct {
    const char *name;
    enum bench_call_kind kind;
} known[BENCH_CALL_COUNT] = {
#define KNOWN(name, kind) {#name, BENCH_CALL_##kind},
    BENCH_CALLS(KNOWN)
#undef KNOWN
};

/* The start time of a call; 0 = not timed. */
static inline uint64_t begin(enum bench_call call)
{
    if (__builtin_expect(!atomic_load_explicit(&counting, memory_order_relaxed), 1))
        return 0;
    atomic_fetch_add_explicit(&counts[call], 1, memory_order_relaxed);
    if (!atomic_load_explicit(&timing, memory_order_relaxed))
        return 0;

    return now_ns();
}

static inline void end(enum bench_call call, uint64_t begin_ns)
{
    if (__builtin_expect(begin_ns != 0, 0))
        atomic_fetch_add_explicit(&times_ns[call], now_ns() - begin_ns, memory_order_relaxed);
}

/* The loader's function, looked up once. All threads find the same function. */
static inline void *find_next(void *_Atomic *next, const char *name)
{
    void *found = atomic_load_explicit(next, memory_order_relaxed);

    if (__builtin_expect(found != NULL, 1))
        return found;
    found = dlsym(RTLD_NEXT, name);
    if (!found) {
        bench_fail("the OpenCL loader does not provide %s", name);
        abort();
    }

    atomic_store_explicit(next, found, memory_order_relaxed);

    return found;
}

/* An OpenCL function: type, name, which counter, parameters, arguments. */
#define FORWARD_AS(type, name, call, parameters, arguments)                              \
    __attribute__((visibility("default"))) CL_API_ENTRY type CL_API_CALL name parameters \
    {                                                                                    \
        static void *_Atomic next;                                                       \
        type(CL_API_CALL *function)                                                      \
            parameters = (type(CL_API_CALL *) parameters)find_next(&next, #name);        \
        const uint64_t begin_ns = begin(call);                                           \
        type result = function arguments;                                                \
        end(call, begin_ns);                                                             \
        return result;                                                                   \
    }

#define FORWARD(type, name, parameters, arguments) \
    FORWARD_AS(type, name, BENCH_CALL_##name, parameters, arguments)

FORWARD(cl_int, clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
         const size_t *global, const size_t *local, cl_uint waits, const cl_event *wait_list,
         cl_event *event),
        (queue, kernel, dimensions, offset, global, local, waits, wait_list, event))
FORWARD(cl_int, clEnqueueWriteBuffer,
        (cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t offset, size_t bytes,
         const void *from, cl_uint waits, const cl_event *wait_list, cl_event *event),
        (queue, mem, blocking, offset, bytes, from, waits, wait_list, event))
FORWARD(cl_int, clEnqueueReadBuffer,
        (cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t offset, size_t bytes,
         void *to, cl_uint waits, const cl_event *wait_list, cl_event *event),
        (queue, mem, blocking, offset, bytes, to, waits, wait_list, event))
FORWARD(void *, clEnqueueMapBuffer,
        (cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags flags, size_t offset,
         size_t bytes, cl_uint waits, const cl_event *wait_list, cl_event *event, cl_int *code),
        (queue, mem, blocking, flags, offset, bytes, waits, wait_list, event, code))
FORWARD(cl_int, clEnqueueUnmapMemObject,
        (cl_command_queue queue, cl_mem mem, void *mapped, cl_uint waits, const cl_event *wait_list,
         cl_event *event),
        (queue, mem, mapped, waits, wait_list, event))
FORWARD(cl_int, clEnqueueFillBuffer,
        (cl_command_queue queue, cl_mem mem, const void *pattern, size_t pattern_bytes,
         size_t offset, size_t bytes, cl_uint waits, const cl_event *wait_list, cl_event *event),
        (queue, mem, pattern, pattern_bytes, offset, bytes, waits, wait_list, event))
FORWARD(cl_int, clEnqueueCopyBuffer,
        (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
         size_t bytes, cl_uint waits, const cl_event *wait_list, cl_event *event),
        (queue, from, to, from_offset, to_offset, bytes, waits, wait_list, event))
FORWARD(cl_int, clEnqueueMarkerWithWaitList,
        (cl_command_queue queue, cl_uint waits, const cl_event *wait_list, cl_event *event),
        (queue, waits, wait_list, event))
FORWARD(cl_int, clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t bytes, const void *value),
        (kernel, index, bytes, value))
FORWARD(cl_int, clFlush, (cl_command_queue queue), (queue))
FORWARD(cl_int, clFinish, (cl_command_queue queue), (queue))
FORWARD(cl_int, clWaitForEvents, (cl_uint waits, const cl_event *wait_list), (waits, wait_list))
FORWARD_AS(cl_int, clGetEventInfo,
           what == CL_EVENT_COMMAND_EXECUTION_STATUS ? BENCH_CALL_poll : BENCH_CALL_clGetEventInfo,
           (cl_event event, cl_event_info what, size_t bytes, void *value, size_t *got),
           (event, what, bytes, value, got))
FORWARD(cl_int, clGetEventProfilingInfo,
        (cl_event event, cl_profiling_info what, size_t bytes, void *value, size_t *got),
        (event, what, bytes, value, got))
FORWARD(cl_int, clReleaseEvent, (cl_event event), (event))
FORWARD(cl_int, clRetainEvent, (cl_event event), (event))
FORWARD(cl_int, clSetEventCallback,
        (cl_event event, cl_int status, void(CL_CALLBACK *called)(cl_event, cl_int, void *),
         void *user),
        (event, status, called, user))
FORWARD(cl_mem, clCreateBuffer,
        (cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *code),
        (context, flags, bytes, host, code))
FORWARD(cl_mem, clCreateSubBuffer,
        (cl_mem mem, cl_mem_flags flags, cl_buffer_create_type type, const void *region,
         cl_int *code),
        (mem, flags, type, region, code))
FORWARD(cl_int, clReleaseMemObject, (cl_mem mem), (mem))

void bench_calls_start(bool timed)
{
    for (int call = 0; call < BENCH_CALL_COUNT; call++) {
        atomic_store_explicit(&counts[call], 0, memory_order_relaxed);
        atomic_store_explicit(&times_ns[call], 0, memory_order_relaxed);
    }

    atomic_store(&timing, timed);
    atomic_store(&counting, true);
}

struct bench_calls bench_calls_stop(void)
{
    struct bench_calls calls;

    atomic_store(&counting, false);
    for (int call = 0; call < BENCH_CALL_COUNT; call++) {
        calls.of[call] = atomic_load_explicit(&counts[call], memory_order_relaxed);
        calls.ns[call] = atomic_load_explicit(&times_ns[call], memory_order_relaxed);
    }

    return calls;
}

uint64_t bench_calls_sum(const struct bench_calls *calls, enum bench_call_kind kind)
{
    uint64_t sum = 0;
    for (int call = 0; call < BENCH_CALL_COUNT; call++)
        if (known[call].kind == kind)
            sum += calls->of[call];
    return sum;
}

void bench_calls_add(struct bench_calls *sum, const struct bench_calls *calls)
{
    for (int call = 0; call < BENCH_CALL_COUNT; call++) {
        sum->of[call] += calls->of[call];
        sum->ns[call] += calls->ns[call];
    }
}

void bench_calls_print(const struct bench_calls *calls, const char *name, double frames)
{
    const char *before = "";
    double sum_us = 0;

    printf("  %s:", name);
    for (int call = 0; call < BENCH_CALL_COUNT; call++) {
        if (!calls->of[call])
            continue;
        const double us = (double)calls->ns[call] / 1e3 / (double)calls->of[call];
        printf("%s %s %.2f x %.2f us", before, known[call].name, (double)calls->of[call] / frames,
               us);
        before = ",";
        sum_us += (double)calls->ns[call] / 1e3;
    }

    printf("; together %.1f us a frame\n", sum_us / frames);
}

const char *bench_call_name(enum bench_call call)
{
    return known[call].name;
}
