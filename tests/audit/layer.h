/* What the parts of the auditing OpenCL layer share. Included by layer.c and by what is in layer/ only.
 *
 * Threads: `lock` guards all objects, queues, commands and mappings, and is never held across a call into a driver
 * (some run the kernel and the callbacks inside the enqueue). "Under the lock" says that the caller holds it.
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

/* Every function that the layer stands in front of: those of OpenCL 1.2, and of later ones what a driver of 1.2 may
 * have too. What 1.2 deprecates goes past it, as native kernels do. */
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

/* What is called in the driver's place. */
#define X(name) __typeof__(name) audit_##name;
CALLS(X)
#undef X

/* ---- layer.c: counts and texts ---- */

extern cl_icd_dispatch next; /* where the calls go on to */
extern pthread_mutex_t lock;
extern const char *const call_name[];
extern _Atomic int current_phase;
extern _Atomic uint64_t live_count[AUDIT_TYPES];

/* The application's callbacks that run in this thread. initial-exec: LeakSanitizer loses its way in thread-local memory
 * that the loader allocates late. */
extern _Thread_local int callback_depth __attribute__((tls_model("initial-exec")));

bool frames_run(void);
__attribute__((format(printf, 2, 3))) void violate(enum audit_rule rule, const char *format, ...);

/* The application has called this. */
void enter(enum call call);

/* What the driver answered, which counts if it is an error. */
cl_int answered(cl_int error);

/* The application has made one more. */
void note_created(enum audit_type type, const char *call);

/* ---- layer/objects.c: what the application has made ---- */

/* A command queue, also after its release, while a command remembers it. */
struct queue {
    struct queue *next; /* in live_queues */
    unsigned refs;      /* its object's and its commands' */
    unsigned number;    /* for texts */
    cl_device_id device;
    bool in_order;
    uint64_t last;        /* number of the last command enqueued, from 1 */
    uint64_t flushed;     /* of the last one flushed */
    pthread_t thread;     /* who enqueued the last one */
    struct command *gate; /* out-of-order: the last barrier */
};

/* Bytes that a command touches. */
struct access {
    uintptr_t space; /* 0 = host memory, else the number of the parent buffer */
    uintptr_t from, to;
    bool write;
    unsigned root; /* the parent buffer even if it lies in host memory; 0 = the host's side of a transfer */
    size_t root_from, root_to;
};

enum { ACCESSES_MAX = 64 };

struct command {
    struct command *prev, *next; /* in flight, oldest first */
    unsigned refs;               /* being in flight, the enqueuing call, its event, those who wait for it */
    const char *call;
    struct queue *queue;
    uint64_t number; /* in its queue, from 1 */
    bool blocking;
    bool done; /* the application knows */
    uint64_t mark;
    unsigned dep_count;
    struct command **deps; /* earlier commands that it waits for by event; emptied when it is done */
    unsigned access_count;
    struct access access[ACCESSES_MAX];
};

enum { ARGS_MAX = 128 };

struct object {
    struct object *next; /* in its bucket */
    const void *handle;
    enum audit_type type;
    unsigned refs; /* the application's */
    /* context */
    size_t align_bytes; /* the most that one of its devices asks of a sub-buffer */
    /* queue */
    struct queue *queue;
    /* buffer, sub-buffer, image */
    cl_context context;
    cl_mem_flags flags;
    unsigned root;    /* number of the parent buffer */
    size_t root_from; /* offset in it */
    size_t bytes;     /* 0 = an image, whose range is not known */
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

/* Under the lock: what is alive; NULL if it is NULL or unknown. A memory object may be of any of their types. */
struct object *find(const void *handle, enum audit_type type);
struct object *find_mem(const void *handle);

/* Under the lock: enter a new object. */
struct object *remember(const void *handle, enum audit_type type);

/* ---- layer/flight.c: commands in flight, and the rules about them ---- */

extern struct queue *live_queues;
extern struct mapping *mappings;

/* All of these under the lock. */
void queue_put(struct queue *queue);
void command_put(struct command *command);

/* The command is in flight from now on; it is over, for the driver refused it. */
void enter_flight(struct command *command);
void leave_flight(struct command *command);

/* The application knows that this one is over, or the commands of the queue up to this one, and so all that must have
 * ended before it. */
void complete(struct command *command);
void complete_queue(struct queue *queue, uint64_t up_to);

/* How many commands of the queue are in flight; they go to `out`, referred to once more, if it is not NULL. */
unsigned in_flight(const struct queue *queue, struct command **out);

/* Host memory that kernels have written through the buffer `root`, 0 = through any, is known to the host there. */
void forget_written(uintptr_t from, uintptr_t to, unsigned root);

/* Check the command against all that is in flight, mapped and written. */
void check_accesses(struct command *command);

/* Before this thread waits or polls: it must have flushed what it enqueued. `except` is flushed by the call itself. */
void check_flushed(const char *call, const struct queue *except);
void check_event_flushed(const char *call, const struct object *event);

#endif
