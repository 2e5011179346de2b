/* Counts the calls of the OpenCL driver in the whole process.
 * Thread-safety: calls are counted in every thread; start and stop from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_CALLS_H
#define BENCH_CALLS_H

#include <stdbool.h>
#include <stdint.h>

enum bench_call_kind {
    BENCH_CALL_COMMAND, /* enqueues a command for the device */
    BENCH_CALL_OTHER,
    BENCH_CALL_POLL, /* asks whether a command has ended */
};

/* The functions whose calls are counted. `poll` is clGetEventInfo of the execution status. */
#define BENCH_CALLS(X)                      \
    X(clEnqueueNDRangeKernel, COMMAND)      \
    X(clEnqueueWriteBuffer, COMMAND)        \
    X(clEnqueueReadBuffer, COMMAND)         \
    X(clEnqueueMapBuffer, COMMAND)          \
    X(clEnqueueUnmapMemObject, COMMAND)     \
    X(clEnqueueFillBuffer, COMMAND)         \
    X(clEnqueueCopyBuffer, COMMAND)         \
    X(clEnqueueMarkerWithWaitList, COMMAND) \
    X(clSetKernelArg, OTHER)                \
    X(clFlush, OTHER)                       \
    X(clFinish, OTHER)                      \
    X(clWaitForEvents, OTHER)               \
    X(clGetEventInfo, OTHER)                \
    X(clGetEventProfilingInfo, OTHER)       \
    X(clReleaseEvent, OTHER)                \
    X(clRetainEvent, OTHER)                 \
    X(clSetEventCallback, OTHER)            \
    X(clCreateBuffer, OTHER)                \
    X(clCreateSubBuffer, OTHER)             \
    X(clReleaseMemObject, OTHER)            \
    X(poll, POLL)

enum bench_call {
#define BENCH_CALL_ENUM(name, kind) BENCH_CALL_##name,
    BENCH_CALLS(BENCH_CALL_ENUM)
#undef BENCH_CALL_ENUM
        BENCH_CALL_COUNT
};

struct bench_calls {
    uint64_t of[BENCH_CALL_COUNT];
    uint64_t ns[BENCH_CALL_COUNT]; /* time in them, all threads together; 0 if not timed */
};

/* Count all calls from zero, those of the library and of this program. Only one count runs at a
 * time. */
void bench_calls_start(bool timed);
struct bench_calls bench_calls_stop(void);

void bench_calls_add(struct bench_calls *sum, const struct bench_calls *calls);
uint64_t bench_calls_sum(const struct bench_calls *calls, enum bench_call_kind kind);
const char *bench_call_name(enum bench_call call);

/* Print one line: calls per frame of each function, and the time of a call. */
void bench_calls_print(const struct bench_calls *calls, const char *name, double frames);

#endif
