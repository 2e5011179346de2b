/* Fault plans: which OpenCL call fails, on which device, when, and how. This is the parser of the text described in
 * docs/reference/fault-layer.md. It uses no OpenCL, only names and numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAULT_PLAN_H
#define COX_TESTS_FAULT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Classes of calls. A command has a wait list and an event; the other bits are the class names of plans. */
#define FAULT_CLASS_MAP(X) \
    X(COMMAND, "enqueue")  \
    X(KERNEL, "kernel")    \
    X(READ, "read")        \
    X(WRITE, "write")      \
    X(COPY, "copy")        \
    X(MAP, "map")          \
    X(UNMAP, "unmap")      \
    X(CREATE, "create")    \
    X(BUILD, "build")      \
    X(WAIT, "wait")        \
    X(FLUSH, "flush")      \
    X(RELEASE, "release")  \
    X(QUERY, "query")      \
    X(OTHER, "other")

#define FAULT_ENUM(name, word) FAULT_BIT_##name,
enum fault_class_bit { FAULT_CLASS_MAP(FAULT_ENUM) FAULT_BITS };
#undef FAULT_ENUM

enum {
#define FAULT_ENUM(name, word) FAULT_##name = 1 << FAULT_BIT_##name,
    FAULT_CLASS_MAP(FAULT_ENUM)
#undef FAULT_ENUM
    /* Reads and writes are copies too. */
    FAULT_IN = FAULT_COMMAND | FAULT_COPY | FAULT_WRITE,
    FAULT_OUT = FAULT_COMMAND | FAULT_COPY | FAULT_READ,
    FAULT_WITHIN = FAULT_COMMAND | FAULT_COPY,
    FAULT_LAUNCH = FAULT_COMMAND | FAULT_KERNEL,
    FAULT_MAPS = FAULT_COMMAND | FAULT_MAP,
    FAULT_UNMAPS = FAULT_COMMAND | FAULT_UNMAP,
    FAULT_ANY = ~0,
};

/* X(call, classes): every call that a plan can name. */
/* clang-format off */
#define FAULT_CALLS(X) \
    X(clEnqueueNDRangeKernel, FAULT_LAUNCH) X(clEnqueueReadBuffer, FAULT_OUT) X(clEnqueueReadBufferRect, FAULT_OUT) \
    X(clEnqueueReadImage, FAULT_OUT) X(clEnqueueWriteBuffer, FAULT_IN) X(clEnqueueWriteBufferRect, FAULT_IN) \
    X(clEnqueueWriteImage, FAULT_IN) X(clEnqueueCopyBuffer, FAULT_WITHIN) X(clEnqueueCopyBufferRect, FAULT_WITHIN) \
    X(clEnqueueCopyImage, FAULT_WITHIN) X(clEnqueueCopyImageToBuffer, FAULT_WITHIN) \
    X(clEnqueueCopyBufferToImage, FAULT_WITHIN) X(clEnqueueFillBuffer, FAULT_WITHIN) \
    X(clEnqueueFillImage, FAULT_WITHIN) X(clEnqueueMapBuffer, FAULT_MAPS) X(clEnqueueMapImage, FAULT_MAPS) \
    X(clEnqueueUnmapMemObject, FAULT_UNMAPS) X(clEnqueueMigrateMemObjects, FAULT_COMMAND) \
    X(clEnqueueMarkerWithWaitList, FAULT_COMMAND) X(clEnqueueBarrierWithWaitList, FAULT_COMMAND) \
    X(clCreateSubDevices, FAULT_CREATE) X(clCreateContext, FAULT_CREATE) X(clCreateCommandQueue, FAULT_CREATE) \
    X(clCreateCommandQueueWithProperties, FAULT_CREATE) X(clCreateBuffer, FAULT_CREATE) \
    X(clCreateBufferWithProperties, FAULT_CREATE) X(clCreateSubBuffer, FAULT_CREATE) X(clCreateImage, FAULT_CREATE) \
    X(clCreateSampler, FAULT_CREATE) X(clCreateProgramWithSource, FAULT_CREATE) \
    X(clCreateProgramWithBinary, FAULT_CREATE) X(clCreateKernel, FAULT_CREATE) X(clCreateUserEvent, FAULT_CREATE) \
    X(clBuildProgram, FAULT_BUILD) X(clCompileProgram, FAULT_BUILD) X(clLinkProgram, FAULT_BUILD) \
    X(clFinish, FAULT_WAIT) X(clWaitForEvents, FAULT_WAIT) X(clFlush, FAULT_FLUSH) X(clRetainContext, FAULT_OTHER) \
    X(clRetainCommandQueue, FAULT_OTHER) X(clRetainMemObject, FAULT_OTHER) X(clRetainProgram, FAULT_OTHER) \
    X(clRetainKernel, FAULT_OTHER) X(clRetainEvent, FAULT_OTHER) X(clReleaseContext, FAULT_RELEASE) \
    X(clReleaseCommandQueue, FAULT_RELEASE) X(clReleaseMemObject, FAULT_RELEASE) X(clReleaseProgram, FAULT_RELEASE) \
    X(clReleaseKernel, FAULT_RELEASE) X(clReleaseEvent, FAULT_RELEASE) X(clSetKernelArg, FAULT_OTHER) \
    X(clSetEventCallback, FAULT_OTHER) X(clGetPlatformIDs, FAULT_QUERY) X(clGetDeviceIDs, FAULT_QUERY) \
    X(clGetDeviceInfo, FAULT_QUERY) X(clGetEventInfo, FAULT_QUERY) X(clGetEventProfilingInfo, FAULT_QUERY) \
    X(clGetKernelWorkGroupInfo, FAULT_QUERY)
/* clang-format on */

#define FAULT_ENUM(name, classes) FAULT_CALL_##name,
enum fault_call { FAULT_CALLS(FAULT_ENUM) FAULT_CALL_COUNT };
#undef FAULT_ENUM

/* X(name, word, type of the value, calls to which it applies) */
#define FAULT_KIND_MAP(X)                                                           \
    X(ERROR, "error", FAULT_VALUE_CODE, FAULT_ANY)                                  \
    X(HANG, "hang", FAULT_VALUE_TIME, FAULT_ANY)                                    \
    X(LATE, "late", FAULT_VALUE_TIME, FAULT_COMMAND)                                \
    X(LATE_SEEN, "late-seen", FAULT_VALUE_TIME, FAULT_COMMAND)                      \
    X(NEVER, "never", FAULT_VALUE_NONE, FAULT_COMMAND)                              \
    X(NEVER_SEEN, "never-seen", FAULT_VALUE_NONE, FAULT_COMMAND)                    \
    X(STATUS, "status", FAULT_VALUE_CODE, FAULT_COMMAND)                            \
    X(STATUS_AFTER, "status-after", FAULT_VALUE_CODE, FAULT_COMMAND)                \
    X(STATUS_QUERY, "status-query", FAULT_VALUE_CODE, FAULT_COMMAND)                \
    X(CALLBACK, "callback", FAULT_VALUE_CALLBACK, FAULT_COMMAND)                    \
    X(PROFILE, "profile", FAULT_VALUE_PROFILE, FAULT_COMMAND)                       \
    X(CORRUPT, "corrupt", FAULT_VALUE_COUNT, FAULT_KERNEL | FAULT_READ | FAULT_MAP) \
    X(SLOW, "slow", FAULT_VALUE_FACTOR, FAULT_COMMAND)                              \
    X(NEEDS_FLUSH, "needs-flush", FAULT_VALUE_NONE, FAULT_COMMAND)                  \
    X(VANISH, "vanish", FAULT_VALUE_NONE, FAULT_ANY)

enum fault_value {
    FAULT_VALUE_NONE,
    FAULT_VALUE_CODE,
    FAULT_VALUE_TIME,
    FAULT_VALUE_COUNT,
    FAULT_VALUE_FACTOR,
    FAULT_VALUE_CALLBACK,
    FAULT_VALUE_PROFILE,
};

#define FAULT_ENUM(name, word, value, suits) FAULT_KIND_##name,
enum fault_kind { FAULT_KIND_MAP(FAULT_ENUM) FAULT_KINDS };
#undef FAULT_ENUM

enum fault_callback {
    FAULT_CALLBACK_RIGHT,
    FAULT_CALLBACK_DROP,
    FAULT_CALLBACK_TWICE,
    FAULT_CALLBACK_EARLY,
    FAULT_CALLBACK_WRONG_STATUS,
    FAULT_CALLBACK_LATE
};
enum fault_profile {
    FAULT_PROFILE_RIGHT,
    FAULT_PROFILE_BACKWARDS,
    FAULT_PROFILE_ZERO,
    FAULT_PROFILE_HUGE,
    FAULT_PROFILE_ERROR
};

enum fault_device {
    FAULT_DEVICE_ANY,
    FAULT_DEVICE_INDEX, /* `device`, and its sub-devices */
    FAULT_DEVICE_SUB,   /* sub-device `sub` of `device` */
    FAULT_DEVICE_CPU,
    FAULT_DEVICE_GPU,
    FAULT_DEVICE_ACCELERATOR,
    FAULT_DEVICE_NAME, /* its name contains `device_name` */
};

enum { FAULT_LINES_MAX = 256, FAULT_NAME_BYTES = 64, FAULT_TEXT_BYTES = 160 };
#define FAULT_FOREVER UINT64_MAX

struct fault_line {
    uint32_t number;             /* in the text, from 1 */
    char text[FAULT_TEXT_BYTES]; /* as written, perhaps cut */
    /* which calls */
    int call;         /* enum fault_call, or -1 */
    uint32_t classes; /* if `call` is -1: calls of these classes */
    bool with_event;  /* only commands that return an event */
    enum fault_device device_kind;
    uint32_t device, sub;
    char device_name[FAULT_NAME_BYTES];
    /* which of the matching calls: from number `from` (1 is the first), every `every`th, at most `count`, with
     * probability `chance` */
    uint64_t from, every, count;
    double chance;
    uint64_t seed;
    uint64_t after_ns;
    /* which fault */
    enum fault_kind kind;
    int32_t code;     /* error, status, status-after, status-query; vanish: the answer of calls, 0 = the default */
    uint64_t time_ns; /* hang, late, late-seen, callback=late; vanish: time until it is back; FAULT_FOREVER = never */
    uint64_t bits;    /* corrupt */
    double factor;    /* slow */
    enum fault_callback callback;
    enum fault_profile profile;
};

struct fault_plan {
    uint32_t line_count;
    struct fault_line *lines;
};

/* Parse a plan. If it is faulty, returns NULL and writes one line to `why`, which begins with `name`. */
struct fault_plan *fault_plan_parse(const char *text, size_t bytes, const char *name, char *why, size_t why_bytes);
void fault_plan_free(struct fault_plan **plan);

uint32_t fault_call_classes(int call);
const char *fault_call_name(int call);

/* Whether the line matches this call. */
bool fault_line_names(const struct fault_line *line, int call, bool gives_event);

/* Whether the line's fault strikes the `matched`th matching call (from 1), when it has struck `chosen` calls
 * before. */
bool fault_line_strikes(const struct fault_line *line, uint64_t matched, uint64_t chosen);

#endif
