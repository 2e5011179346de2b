/* Shared by the files of the auditing OpenCL layer: layer.c and the folder layer/.
 *
 * Threads: `lock` guards all objects, queues, commands and mappings. "Under the lock" means that the caller holds
 * it. It is never held across a call into a driver, since some drivers run kernels and callbacks inside an enqueue.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_LAYER_AUDIT_H
#define COX_TESTS_LAYER_AUDIT_H

#undef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_layer.h>

#include "control.h"
#include "support/layer_info.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* All functions that the layer replaces: those of OpenCL 1.2, and later ones that a driver for 1.2 may have.
 * Functions deprecated by 1.2 and native kernels go directly to the driver. */
/* clang-format off */
#define CALLS(X) \
    X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateContext) \
    X(clRetainContext) X(clReleaseContext) X(clGetContextInfo) X(clCreateCommandQueue) X(clRetainCommandQueue) \
    X(clReleaseCommandQueue) X(clGetCommandQueueInfo) X(clCreateBuffer) X(clRetainMemObject) X(clReleaseMemObject) \
    X(clGetSupportedImageFormats) X(clGetMemObjectInfo) X(clGetImageInfo) X(clCreateSampler) X(clRetainSampler) \
    X(clReleaseSampler) X(clGetSamplerInfo) X(clCreateProgramWithSource) X(clCreateProgramWithBinary) \
    X(clRetainProgram) X(clReleaseProgram) X(clBuildProgram) X(clGetProgramInfo) X(clGetProgramBuildInfo) \
    X(clCreateKernel) X(clCreateKernelsInProgram) X(clRetainKernel) X(clReleaseKernel) X(clSetKernelArg) \
    X(clGetKernelInfo) X(clGetKernelWorkGroupInfo) X(clWaitForEvents) X(clGetEventInfo) X(clRetainEvent) \
    X(clReleaseEvent) X(clGetEventProfilingInfo) X(clFlush) X(clFinish) X(clEnqueueReadBuffer) \
    X(clEnqueueWriteBuffer) X(clEnqueueCopyBuffer) X(clEnqueueReadImage) X(clEnqueueWriteImage) \
    X(clEnqueueCopyImage) X(clEnqueueCopyImageToBuffer) X(clEnqueueCopyBufferToImage) X(clEnqueueMapBuffer) \
    X(clEnqueueMapImage) X(clEnqueueUnmapMemObject) X(clEnqueueNDRangeKernel) X(clSetEventCallback) \
    X(clCreateSubBuffer) X(clSetMemObjectDestructorCallback) X(clCreateUserEvent) X(clSetUserEventStatus) \
    X(clEnqueueReadBufferRect) X(clEnqueueWriteBufferRect) X(clEnqueueCopyBufferRect) X(clCreateSubDevices) \
    X(clRetainDevice) X(clReleaseDevice) X(clCreateImage) X(clCompileProgram) X(clLinkProgram) X(clGetKernelArgInfo) \
    X(clEnqueueFillBuffer) X(clEnqueueFillImage) X(clEnqueueMigrateMemObjects) X(clEnqueueMarkerWithWaitList) \
    X(clEnqueueBarrierWithWaitList) X(clGetExtensionFunctionAddressForPlatform) \
    X(clCreateCommandQueueWithProperties) X(clGetDeviceAndHostTimer) X(clCreateBufferWithProperties)
/* clang-format on */

enum call {
#define X(name) CALL_##name,
    CALLS(X)
#undef X
        CALL_COUNT
};

/* The functions that replace those of the driver. */
#define X(name) __typeof__(name) audit_##name;
CALLS(X)
#undef X

/* ---- layer.c: counts and texts ---- */

extern cl_icd_dispatch next; /* the table to which calls are passed on */
extern pthread_mutex_t lock;
extern const char *const call_name[];
extern _Atomic int current_phase;
extern _Atomic uint64_t live_count[AUDIT_TYPES];

/* The number of the application's callbacks that run in this thread. initial-exec: LeakSanitizer does not find
 * thread-local memory that the loader allocates late. */
extern _Thread_local int callback_depth __attribute__((tls_model("initial-exec")));

bool frames_run(void);
__attribute__((format(printf, 2, 3))) void violate(enum audit_rule rule, const char *format, ...);

/* Count a call of the application. */
void enter(enum call call);

/* Count the driver's answer if it is an error. Returns it. */
cl_int answered(cl_int error);

/* Count a creation. */
void note_created(enum audit_type type, const char *call);

/* ---- layer/objects.c: objects of the application ---- */

/* A command queue. It is kept after its release while a command refers to it. */
struct queue {
    struct queue *next; /* in live_queues */
    unsigned refs;      /* of its object and its commands */
    unsigned number;    /* for texts */
    cl_device_id device;
    bool in_order;
    uint64_t last;        /* number of the last command enqueued, from 1 */
    uint64_t flushed;     /* number of the last command flushed */
    pthread_t thread;     /* the thread that enqueued the last one */
    struct command *gate; /* out-of-order: the last barrier */
};

/* Bytes that a command accesses. */
struct access {
    uintptr_t space; /* 0 = host memory, else the number of the parent buffer */
    uintptr_t from, to;
    bool write;
    unsigned root; /* the parent buffer, even in host memory; 0 = the host's side of a transfer */
    size_t root_from, root_to;
};

enum { ACCESSES_MAX = 64 };

struct command {
    struct command *prev, *next; /* in flight, oldest first */
    unsigned refs;               /* of the list in flight, the enqueuing call, its event, and commands that wait
                                  * for it */
    const char *call;
    struct queue *queue;
    uint64_t number; /* in its queue, from 1 */
    bool blocking;
    bool done; /* the application has seen its end */
    uint64_t mark;
    unsigned dep_count;
    struct command **deps; /* earlier commands that it waits for; emptied when it is done */
    unsigned access_count;
    struct access access[ACCESSES_MAX];
};

enum { ARGS_MAX = 128 };

struct object {
    struct object *next; /* next one in its hash bucket */
    const void *handle;
    enum audit_type type;
    unsigned refs; /* of the application */
    /* context */
    size_t align_bytes; /* the largest alignment of sub-buffers that one of its devices needs */
    /* queue */
    struct queue *queue;
    /* buffer, sub-buffer, image */
    cl_context context;
    cl_mem_flags flags;
    unsigned root;    /* number of the parent buffer */
    size_t root_from; /* offset in the parent */
    size_t bytes;     /* 0 = an image, whose range is unknown */
    uintptr_t host;   /* address of the first byte with CL_MEM_USE_HOST_PTR, else 0 */
    /* kernel */
    cl_mem args[ARGS_MAX];
    bool to_const[ARGS_MAX];
    cl_uint local_dims;
    size_t local[3];
    /* event */
    struct command *command;
};

struct mapping {
    struct mapping *next;
    cl_mem mem;
    const void *pointer;
    cl_map_flags flags;
    bool in_host;
    struct access access;
};

/* Under the lock: the live object with this handle; NULL if it is NULL or unknown. find_mem: a memory object of any
 * type. */
struct object *find(const void *handle, enum audit_type type);
struct object *find_mem(const void *handle);

/* Under the lock: add a new object. */
struct object *remember(const void *handle, enum audit_type type);

/* ---- layer/flight.c: commands in flight, and the rules about them ---- */

extern struct queue *live_queues;
extern struct mapping *mappings;

/* All functions below need the lock. */
void queue_put(struct queue *queue);
void command_put(struct command *command);

/* enter_flight: the command is now in flight. leave_flight: it has ended, or the driver refused it. */
void enter_flight(struct command *command);
void leave_flight(struct command *command);

/* The application has seen the end of this command, or of the queue's commands up to `up_to`. All commands that
 * must have ended before are complete too. */
void complete(struct command *command);
void complete_queue(struct queue *queue, uint64_t up_to);

/* The number of the queue's commands in flight. If `out` is not NULL, it gets them with a new reference each. */
unsigned in_flight(const struct queue *queue, struct command **out);

/* The host has the current contents of this memory: forget that kernels wrote it through the buffer `root`, 0 =
 * any. */
void forget_written(uintptr_t from, uintptr_t to, unsigned root);

/* Check the command against all commands in flight, mappings, and writes of kernels. */
void check_accesses(struct command *command);

/* Call this before the thread waits or polls: it must have flushed its commands. The call itself flushes `except`. */
void check_flushed(const char *call, const struct queue *except);
void check_event_flushed(const char *call, const struct object *event);

#endif
