/* An OpenCL layer that audits how a program uses OpenCL: the rules stand in control.h, how to use it in
 * docs/reference/audit.md.
 *
 * Every call goes through this file's table and on to the drivers. What the layer knows is what the application
 * could know: a command is in flight from its enqueue until the application has seen its end (or that of a later one
 * of the same in-order queue, or of one that waited for it), by a status query, a wait, a blocking call or a
 * callback. So what the layer finds does not depend on how fast the devices are.
 *
 * Threads: `lock` guards all objects, queues, commands and mappings, and is never held across a call into a driver
 * (some run the kernel and the callbacks inside the enqueue). `log_lock` guards the texts; it is the inner one.
 * Before a driver sees a release, the object is forgotten; after it has made one, it is entered: so an address that
 * a driver uses again is never taken for the old object.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#undef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <CL/cl_layer.h>

#include "control.h"
#include "support/layer_info.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* --- Counts and texts ------------------------------------------------------------------------------------ */

enum { TEXTS_MAX = 100, TEXT_BYTES = 320 };

static _Atomic int current_phase = AUDIT_PHASE_SETUP;
static _Atomic uint64_t violation_count[AUDIT_RULES];
static _Atomic uint64_t created_count[AUDIT_TYPES][AUDIT_PHASES];
static _Atomic uint64_t live_count[AUDIT_TYPES];
static _Atomic uint64_t failed_calls;

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char texts[TEXTS_MAX][TEXT_BYTES]; /* the first one of each kind */
static uint64_t text_times[TEXTS_MAX];
static int text_count;

static bool frames_run(void)
{
    int phase = atomic_load(&current_phase);
    return phase == AUDIT_PHASE_ADAPTING || phase == AUDIT_PHASE_STEADY;
}

/* Alike but for their numbers. */
static bool same_kind(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a >= '0' && *a <= '9')
            a++;
        while (*b >= '0' && *b <= '9')
            b++;
        if (*a != *b)
            return false;
        if (!*a)
            return true;
    }
}

__attribute__((format(printf, 2, 3))) static void violate(enum audit_rule rule, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    int at = snprintf(text, TEXT_BYTES, "%s %s: ", audit_phase_word(current_phase), audit_rule_word(rule));
    va_start(args, format);
    vsnprintf(text + at, TEXT_BYTES - (size_t)at, format, args);
    va_end(args);
    atomic_fetch_add(&violation_count[rule], 1);
    pthread_mutex_lock(&log_lock);
    int i = 0;
    while (i < text_count && !same_kind(texts[i], text))
        i++;
    if (i == text_count && i < TEXTS_MAX)
        memcpy(texts[text_count++], text, sizeof text);
    if (i < TEXTS_MAX)
        text_times[i]++;
    pthread_mutex_unlock(&log_lock);
}

static void *must_alloc(size_t count, size_t bytes)
{
    void *memory = calloc(count > 0 ? count : 1, bytes);
    if (!memory) {
        fputs("layer_audit: out of memory\n", stderr);
        abort();
    }
    return memory;
}

/* --- The calls ------------------------------------------------------------------------------------------- */

/* Every function that the layer stands in front of. */
/* clang-format off */
#define CALLS(X) \
    X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateContext) \
    X(clCreateContextFromType) X(clRetainContext) X(clReleaseContext) X(clGetContextInfo) \
    X(clCreateCommandQueue) X(clRetainCommandQueue) X(clReleaseCommandQueue) X(clGetCommandQueueInfo) \
    X(clSetCommandQueueProperty) X(clCreateBuffer) X(clCreateImage2D) X(clCreateImage3D) \
    X(clRetainMemObject) X(clReleaseMemObject) X(clGetSupportedImageFormats) X(clGetMemObjectInfo) \
    X(clGetImageInfo) X(clCreateSampler) X(clRetainSampler) X(clReleaseSampler) X(clGetSamplerInfo) \
    X(clCreateProgramWithSource) X(clCreateProgramWithBinary) X(clRetainProgram) X(clReleaseProgram) \
    X(clBuildProgram) X(clUnloadCompiler) X(clGetProgramInfo) X(clGetProgramBuildInfo) X(clCreateKernel) \
    X(clCreateKernelsInProgram) X(clRetainKernel) X(clReleaseKernel) X(clSetKernelArg) \
    X(clGetKernelInfo) X(clGetKernelWorkGroupInfo) X(clWaitForEvents) X(clGetEventInfo) X(clRetainEvent) \
    X(clReleaseEvent) X(clGetEventProfilingInfo) X(clFlush) X(clFinish) X(clEnqueueReadBuffer) \
    X(clEnqueueWriteBuffer) X(clEnqueueCopyBuffer) X(clEnqueueReadImage) X(clEnqueueWriteImage) \
    X(clEnqueueCopyImage) X(clEnqueueCopyImageToBuffer) X(clEnqueueCopyBufferToImage) \
    X(clEnqueueMapBuffer) X(clEnqueueMapImage) X(clEnqueueUnmapMemObject) X(clEnqueueNDRangeKernel) \
    X(clEnqueueTask) X(clEnqueueNativeKernel) X(clEnqueueMarker) X(clEnqueueWaitForEvents) \
    X(clEnqueueBarrier) X(clGetExtensionFunctionAddress) X(clSetEventCallback) X(clCreateSubBuffer) \
    X(clSetMemObjectDestructorCallback) X(clCreateUserEvent) X(clSetUserEventStatus) \
    X(clEnqueueReadBufferRect) X(clEnqueueWriteBufferRect) X(clEnqueueCopyBufferRect) \
    X(clCreateSubDevicesEXT) X(clRetainDeviceEXT) X(clReleaseDeviceEXT) X(clCreateSubDevices) \
    X(clRetainDevice) X(clReleaseDevice) X(clCreateImage) X(clCreateProgramWithBuiltInKernels) \
    X(clCompileProgram) X(clLinkProgram) X(clUnloadPlatformCompiler) X(clGetKernelArgInfo) \
    X(clEnqueueFillBuffer) X(clEnqueueFillImage) X(clEnqueueMigrateMemObjects) \
    X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList) \
    X(clGetExtensionFunctionAddressForPlatform) X(clCreateCommandQueueWithProperties) X(clCreatePipe) \
    X(clGetPipeInfo) X(clSVMAlloc) X(clSVMFree) X(clEnqueueSVMFree) X(clEnqueueSVMMemcpy) \
    X(clEnqueueSVMMemFill) X(clEnqueueSVMMap) X(clEnqueueSVMUnmap) X(clCreateSamplerWithProperties) \
    X(clSetKernelArgSVMPointer) X(clSetKernelExecInfo) X(clGetKernelSubGroupInfoKHR) X(clCloneKernel) \
    X(clCreateProgramWithIL) X(clEnqueueSVMMigrateMem) X(clGetDeviceAndHostTimer) X(clGetHostTimer) \
    X(clGetKernelSubGroupInfo) X(clSetDefaultDeviceCommandQueue) X(clSetProgramReleaseCallback) \
    X(clSetProgramSpecializationConstant) X(clCreateBufferWithProperties) X(clCreateImageWithProperties) \
    X(clSetContextDestructorCallback)
/* clang-format on */

enum call {
#define X(name) CALL_##name,
    CALLS(X)
#undef X
        CALL_COUNT
};

static const char *const call_name[] = {
#define X(name) #name,
    CALLS(X)
#undef X
};

/* --- What the application has made ----------------------------------------------------------------------- */

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
    int phase;     /* of creation */
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

/* Host memory that a kernel wrote through a buffer. Until that is mapped, only the buffer has what it wrote. */
struct written {
    struct written *next;
    uintptr_t from, to;
    unsigned root;
};

enum { BUCKETS = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *bucket[BUCKETS];
static struct queue *live_queues;
static unsigned queue_numbers, root_numbers;
static struct command *oldest, *newest;
static struct mapping *mappings;
static struct written *written;
static uint64_t marks;

static size_t hash(const void *handle)
{
    return (size_t)(((uint64_t)(uintptr_t)handle >> 3) * 0x9e3779b97f4a7c15u >> 52) % BUCKETS;
}

static struct object **find_place(const void *handle, enum audit_type type)
{
    struct object **place = &bucket[hash(handle)];
    while (*place && ((*place)->handle != handle || (*place)->type != type))
        place = &(*place)->next;
    return place;
}

static struct object *find(const void *handle, enum audit_type type)
{
    return handle ? *find_place(handle, type) : NULL;
}

static const enum audit_type mem_types[] = {AUDIT_TYPE_BUFFER, AUDIT_TYPE_SUB_BUFFER, AUDIT_TYPE_IMAGE};

static struct object *find_mem(const void *handle)
{
    for (size_t i = 0; i < sizeof mem_types / sizeof *mem_types; i++) {
        struct object *object = find(handle, mem_types[i]);
        if (object)
            return object;
    }
    return NULL;
}

/* --- Commands in flight ---------------------------------------------------------------------------------- */

static void queue_put(struct queue *queue)
{
    if (--queue->refs == 0)
        free(queue);
}

static void command_put(struct command *command)
{
    if (!command || --command->refs > 0)
        return;
    queue_put(command->queue);
    free(command->deps);
    free(command);
}

static void leave_flight(struct command *command)
{
    *(command->prev ? &command->prev->next : &oldest) = command->next;
    *(command->next ? &command->next->prev : &newest) = command->prev;
    command->prev = command->next = NULL;
    unsigned count = command->dep_count;
    command->dep_count = 0;
    for (unsigned i = 0; i < count; i++)
        command_put(command->deps[i]);
    if (command->queue->gate == command)
        command->queue->gate = NULL;
    command->done = true;
    command_put(command);
}

/* The application knows that this one is over, and so all that must have ended before it. */
static void complete(struct command *command)
{
    if (command->done)
        return;
    command->refs++;
    command->done = true; /* stops the recursion; leave_flight needs nothing of it */
    for (unsigned i = 0; i < command->dep_count; i++)
        complete(command->deps[i]);
    if (command->queue->in_order) {
        /* Start over after each one: completing it may have changed the list behind us. */
        for (struct command *c = oldest; c;) {
            if (c->queue == command->queue && c->number < command->number && !c->done) {
                complete(c);
                c = oldest;
            } else
                c = c->next;
        }
    }
    leave_flight(command);
    command_put(command);
}

static void complete_queue(struct queue *queue, uint64_t up_to)
{
    for (struct command *c = oldest; c;) {
        if (c->queue == queue && c->number <= up_to && !c->done) {
            complete(c);
            c = oldest;
        } else
            c = c->next;
    }
}

/* Mark everything that must have ended before the command begins. */
static void mark_before(struct command *command)
{
    for (unsigned i = 0; i < command->dep_count; i++)
        if (!command->deps[i]->done && command->deps[i]->mark != marks) {
            command->deps[i]->mark = marks;
            mark_before(command->deps[i]);
        }
    if (!command->queue->in_order)
        return;
    for (struct command *c = oldest; c; c = c->next)
        if (c->queue == command->queue && c->number < command->number && c->mark != marks) {
            c->mark = marks;
            mark_before(c);
        }
}

/* The range of `a` that meets one of `b`, which goes into *other; NULL if none does. */
static const struct access *conflict(const struct command *a, const struct command *b, const struct access **other)
{
    for (unsigned i = 0; i < a->access_count; i++)
        for (unsigned j = 0; j < b->access_count; j++) {
            const struct access *x = &a->access[i], *y = &b->access[j];
            if (x->space == y->space && x->from < y->to && y->from < x->to && (x->write || y->write)) {
                *other = y;
                return x;
            }
        }
    return NULL;
}

static bool is_kernel(const struct command *command)
{
    return command->call == call_name[CALL_clEnqueueNDRangeKernel] || command->call == call_name[CALL_clEnqueueTask];
}

/* What a kernel touches of an argument is not known, so it counts as all of it. Between devices that is as it should
 * be: each has buffers or sub-buffers of its own bands. But a copy on another queue of the kernel's own device, to a
 * part of its argument, may well go to rows that the kernel leaves alone: that is a rule of its own, for those who want
 * to be that strict. */
static bool maybe_apart(const struct command *a, const struct access *x, const struct command *b,
                        const struct access *y)
{
    if (!x->space || a->queue->device != b->queue->device || is_kernel(a) == is_kernel(b))
        return false;
    const struct access *kernel = is_kernel(a) ? x : y, *copy = is_kernel(a) ? y : x;
    return kernel->from < copy->from || kernel->to > copy->to;
}

/* Whether there is nothing to say. */
static bool check_overlap(struct command *command)
{
    marks++;
    command->mark = marks;
    mark_before(command);
    for (struct command *c = oldest; c; c = c->next) {
        const struct access *other = NULL, *range = c->mark != marks ? conflict(command, c, &other) : NULL;
        if (!range)
            continue;
        violate(maybe_apart(command, range, c, other) ? AUDIT_RULE_COPY_BESIDE_KERNEL : AUDIT_RULE_OVERLAP,
                "%s on queue %u %s bytes %zu to %zu of %s, where %s on queue %u is in flight", command->call,
                command->queue->number, range->write ? "writes" : "reads", (size_t)range->from, (size_t)range->to,
                range->space ? "a buffer" : "host memory", c->call, c->queue->number);
        return false;
    }
    return true;
}

static void check_mapped(const struct command *command)
{
    for (const struct mapping *map = mappings; map; map = map->next)
        for (unsigned i = 0; i < command->access_count; i++) {
            const struct access *x = &command->access[i];
            if (x->root && x->root == map->access.root && x->root_from < map->access.root_to &&
                map->access.root_from < x->root_to && (x->write || map->flags & ~(cl_map_flags)CL_MAP_READ)) {
                violate(AUDIT_RULE_MAPPED_IN_USE, "%s on queue %u %s a region that is mapped for %s", command->call,
                        command->queue->number, x->write ? "writes" : "reads",
                        map->flags & ~(cl_map_flags)CL_MAP_READ ? "writing" : "reading");
                return;
            }
        }
}

/* ---- what kernels have written in host memory ---- */

static void add_written(uintptr_t from, uintptr_t to, unsigned root)
{
    struct written *range = must_alloc(1, sizeof *range);
    *range = (struct written){.next = written, .from = from, .to = to, .root = root};
    written = range;
}

/* These bytes are in host memory, or others have been written there: of a root, 0 = of all. */
static void forget_written(uintptr_t from, uintptr_t to, unsigned root)
{
    struct written *rest = written;
    written = NULL;
    while (rest) {
        struct written *range = rest;
        rest = range->next;
        if (range->to <= from || to <= range->from || (root && range->root != root)) {
            range->next = written;
            written = range;
            continue;
        }
        if (range->from < from)
            add_written(range->from, from, range->root);
        if (range->to > to)
            add_written(to, range->to, range->root);
        free(range);
    }
}

static bool reads_host_memory(const struct access *access)
{
    return !access->space && !access->write;
}

/* A mapping is what makes it good; what an unmapping takes to the buffer is seen with the kernel that reads it. */
static void check_hand_over(const struct command *command)
{
    if (command->call == call_name[CALL_clEnqueueMapBuffer] || command->call == call_name[CALL_clEnqueueUnmapMemObject])
        return;
    for (unsigned i = 0; i < command->access_count; i++)
        for (const struct written *range = written; range && reads_host_memory(&command->access[i]);
             range = range->next) {
            const struct access *x = &command->access[i];
            if (range->root != x->root && range->from < x->to && x->from < range->to) {
                violate(AUDIT_RULE_MISSING_HAND_OVER,
                        "%s on queue %u reads bytes %zu to %zu of host memory, of which "
                        "a kernel wrote some through a buffer that is not mapped since",
                        command->call, command->queue->number, (size_t)x->from, (size_t)x->to);
                return;
            }
        }
}

static void note_written(const struct command *command)
{
    for (unsigned i = 0; i < command->access_count; i++) {
        const struct access *x = &command->access[i];
        if (x->space || !x->write)
            continue;
        forget_written(x->from, x->to, 0);
        if (is_kernel(command))
            add_written(x->from, x->to, x->root);
    }
}

/* Before this thread waits or polls: it must have flushed what it enqueued. `except` is flushed by the call
 * itself. */
static void check_flushed(const char *call, const struct queue *except)
{
    for (struct queue *queue = live_queues; queue; queue = queue->next)
        if (queue != except && queue->last > queue->flushed && pthread_equal(queue->thread, pthread_self())) {
            violate(AUDIT_RULE_UNFLUSHED_WAIT, "%s while %llu commands of queue %u are not flushed", call,
                    (unsigned long long)(queue->last - queue->flushed), queue->number);
            return;
        }
}

static void check_event_flushed(const char *call, const struct object *event)
{
    const struct command *command = event ? event->command : NULL;
    if (command && !command->done && command->number > command->queue->flushed)
        violate(AUDIT_RULE_UNFLUSHED_POLL, "%s of a %s that queue %u has not flushed", call, command->call,
                command->queue->number);
}

/* --- Making, retaining, releasing ------------------------------------------------------------------------ */

static void note_created(enum audit_type type, const char *call)
{
    int phase = atomic_load(&current_phase);
    atomic_fetch_add(&created_count[type][phase], 1);
    if (phase == AUDIT_PHASE_STEADY && type != AUDIT_TYPE_EVENT && type != AUDIT_TYPE_MAPPING)
        violate(AUDIT_RULE_CREATED_IN_STEADY, "%s", call);
}

static void forget(struct object **place)
{
    struct object *object = *place;
    *place = object->next;
    atomic_fetch_sub(&live_count[object->type], 1);
    if (object->queue) {
        struct queue **q = &live_queues;
        while (*q != object->queue)
            q = &(*q)->next;
        *q = object->queue->next;
        object->queue->flushed = object->queue->last; /* a release flushes */
        queue_put(object->queue);
    }
    if (object->type == AUDIT_TYPE_BUFFER && object->host)
        forget_written(0, UINTPTR_MAX, object->root); /* nobody can map it any more */
    command_put(object->command);
    free(object);
}

/* Enter a new object; the caller holds the lock and fills in the rest. */
static struct object *remember(const void *handle, enum audit_type type)
{
    struct object **place = find_place(handle, type);
    if (*place)
        forget(place); /* its release went past us */
    struct object *object = must_alloc(1, sizeof *object);
    object->handle = handle;
    object->type = type;
    object->refs = 1;
    object->phase = current_phase;
    object->next = bucket[hash(handle)];
    bucket[hash(handle)] = object;
    atomic_fetch_add(&live_count[type], 1);
    return object;
}

static void made(const void *handle, enum audit_type type, const char *call)
{
    if (!handle) {
        atomic_fetch_add(&failed_calls, 1);
        return;
    }
    note_created(type, call);
    pthread_mutex_lock(&lock);
    remember(handle, type);
    pthread_mutex_unlock(&lock);
}

/* Returns false if nothing of that handle is alive; the driver is then not asked, it might crash. */
static bool retained(const void *handle, const enum audit_type *types, size_t type_count, const char *call)
{
    struct object *object = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < type_count && !object; i++)
        object = find(handle, types[i]);
    if (object)
        object->refs++;
    pthread_mutex_unlock(&lock);
    if (!object)
        violate(AUDIT_RULE_BAD_RELEASE, "%s of %p, which is not alive", call, handle);
    return object;
}

static bool released(const void *handle, const enum audit_type *types, size_t type_count, const char *call)
{
    bool known = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < type_count && handle && !known; i++) {
        struct object **place = find_place(handle, types[i]);
        if (*place) {
            known = true;
            if (--(*place)->refs == 0)
                forget(place);
        }
    }
    pthread_mutex_unlock(&lock);
    if (!known)
        violate(AUDIT_RULE_BAD_RELEASE, "%s of %p, which is not alive", call, handle);
    return known;
}

/* --- Passing on ------------------------------------------------------------------------------------------- */

static _Atomic uint64_t call_count[CALL_COUNT];
static cl_icd_dispatch next; /* where the calls go on to */
/* initial-exec: LeakSanitizer loses its way in thread-local memory that the loader allocates late. */
static _Thread_local int callback_depth __attribute__((tls_model("initial-exec")));

static void enter(enum call call)
{
    atomic_fetch_add_explicit(&call_count[call], 1, memory_order_relaxed);
    if (callback_depth > 0)
        violate(AUDIT_RULE_CALL_IN_CALLBACK, "%s", call_name[call]);
}

/* A function that is only counted. */
#define PASS(type, name, decl, args)          \
    static type CL_API_CALL audit_##name decl \
    {                                         \
        enter(CALL_##name);                   \
        return next.name args;                \
    }

PASS(cl_int, clGetPlatformIDs, (cl_uint n, cl_platform_id *p, cl_uint *r), (n, p, r))
PASS(cl_int, clGetPlatformInfo, (cl_platform_id o, cl_platform_info i, size_t n, void *v, size_t *r), (o, i, n, v, r))
PASS(cl_int, clGetDeviceIDs, (cl_platform_id p, cl_device_type t, cl_uint n, cl_device_id *d, cl_uint *r),
     (p, t, n, d, r))
PASS(cl_int, clGetDeviceInfo, (cl_device_id o, cl_device_info i, size_t n, void *v, size_t *r), (o, i, n, v, r))
PASS(cl_int, clGetContextInfo, (cl_context o, cl_context_info i, size_t n, void *v, size_t *r), (o, i, n, v, r))
PASS(cl_int, clGetCommandQueueInfo, (cl_command_queue o, cl_command_queue_info i, size_t n, void *v, size_t *r),
     (o, i, n, v, r))
PASS(cl_int, clSetCommandQueueProperty,
     (cl_command_queue q, cl_command_queue_properties p, cl_bool e, cl_command_queue_properties *old), (q, p, e, old))
PASS(cl_int, clGetSupportedImageFormats,
     (cl_context c, cl_mem_flags f, cl_mem_object_type t, cl_uint n, cl_image_format *v, cl_uint *r),
     (c, f, t, n, v, r))
PASS(cl_int, clGetMemObjectInfo, (cl_mem o, cl_mem_info i, size_t n, void *v, size_t *r), (o, i, n, v, r))
PASS(cl_int, clGetImageInfo, (cl_mem o, cl_image_info i, size_t n, void *v, size_t *r), (o, i, n, v, r))
PASS(cl_int, clGetSamplerInfo, (cl_sampler o, cl_sampler_info i, size_t n, void *v, size_t *r), (o, i, n, v, r))
PASS(cl_int, clUnloadCompiler, (void), ())
PASS(cl_int, clUnloadPlatformCompiler, (cl_platform_id p), (p))
PASS(cl_int, clGetProgramInfo, (cl_program o, cl_program_info i, size_t n, void *v, size_t *r), (o, i, n, v, r))
PASS(cl_int, clGetProgramBuildInfo,
     (cl_program o, cl_device_id d, cl_program_build_info i, size_t n, void *v, size_t *r), (o, d, i, n, v, r))
PASS(cl_int, clGetKernelInfo, (cl_kernel o, cl_kernel_info i, size_t n, void *v, size_t *r), (o, i, n, v, r))
PASS(cl_int, clGetKernelArgInfo, (cl_kernel o, cl_uint a, cl_kernel_arg_info i, size_t n, void *v, size_t *r),
     (o, a, i, n, v, r))
PASS(cl_int, clGetKernelWorkGroupInfo,
     (cl_kernel o, cl_device_id d, cl_kernel_work_group_info i, size_t n, void *v, size_t *r), (o, d, i, n, v, r))
PASS(cl_int, clGetEventProfilingInfo, (cl_event o, cl_profiling_info i, size_t n, void *v, size_t *r), (o, i, n, v, r))
PASS(void *, clGetExtensionFunctionAddress, (const char *name), (name))
PASS(void *, clGetExtensionFunctionAddressForPlatform, (cl_platform_id p, const char *name), (p, name))
PASS(cl_int, clSetMemObjectDestructorCallback, (cl_mem m, void(CL_CALLBACK *fn)(cl_mem, void *), void *user),
     (m, fn, user))
PASS(cl_int, clSetUserEventStatus, (cl_event e, cl_int s), (e, s))
PASS(cl_int, clGetPipeInfo, (cl_mem o, cl_pipe_info i, size_t n, void *v, size_t *r), (o, i, n, v, r))
PASS(void *, clSVMAlloc, (cl_context c, cl_svm_mem_flags f, size_t n, cl_uint a), (c, f, n, a))
PASS(void, clSVMFree, (cl_context c, void *p), (c, p))
PASS(cl_int, clSetKernelArgSVMPointer, (cl_kernel k, cl_uint i, const void *v), (k, i, v))
PASS(cl_int, clSetKernelExecInfo, (cl_kernel k, cl_kernel_exec_info i, size_t n, const void *v), (k, i, n, v))
PASS(cl_int, clGetKernelSubGroupInfoKHR,
     (cl_kernel k, cl_device_id d, cl_kernel_sub_group_info i, size_t n, const void *v, size_t m, void *w, size_t *r),
     (k, d, i, n, v, m, w, r))
PASS(cl_int, clGetKernelSubGroupInfo,
     (cl_kernel k, cl_device_id d, cl_kernel_sub_group_info i, size_t n, const void *v, size_t m, void *w, size_t *r),
     (k, d, i, n, v, m, w, r))
PASS(cl_int, clGetDeviceAndHostTimer, (cl_device_id d, cl_ulong *a, cl_ulong *b), (d, a, b))
PASS(cl_int, clGetHostTimer, (cl_device_id d, cl_ulong *a), (d, a))
PASS(cl_int, clSetDefaultDeviceCommandQueue, (cl_context c, cl_device_id d, cl_command_queue q), (c, d, q))
PASS(cl_int, clSetProgramReleaseCallback, (cl_program p, void(CL_CALLBACK *fn)(cl_program, void *), void *user),
     (p, fn, user))
PASS(cl_int, clSetProgramSpecializationConstant, (cl_program p, cl_uint i, size_t n, const void *v), (p, i, n, v))
PASS(cl_int, clSetContextDestructorCallback, (cl_context c, void(CL_CALLBACK *fn)(cl_context, void *), void *user),
     (c, fn, user))

/* Retaining and releasing. */
#define COUNTED(handle_type, retain, release, error, ...)                                                      \
    static cl_int CL_API_CALL audit_##retain(handle_type handle)                                               \
    {                                                                                                          \
        static const enum audit_type types[] = {__VA_ARGS__};                                                  \
        enter(CALL_##retain);                                                                                  \
        return retained(handle, types, sizeof types / sizeof *types, #retain) ? next.retain(handle) : error;   \
    }                                                                                                          \
    static cl_int CL_API_CALL audit_##release(handle_type handle)                                              \
    {                                                                                                          \
        static const enum audit_type types[] = {__VA_ARGS__};                                                  \
        enter(CALL_##release);                                                                                 \
        return released(handle, types, sizeof types / sizeof *types, #release) ? next.release(handle) : error; \
    }

COUNTED(cl_context, clRetainContext, clReleaseContext, CL_INVALID_CONTEXT, AUDIT_TYPE_CONTEXT)
COUNTED(cl_command_queue, clRetainCommandQueue, clReleaseCommandQueue, CL_INVALID_COMMAND_QUEUE, AUDIT_TYPE_QUEUE)
COUNTED(cl_mem, clRetainMemObject, clReleaseMemObject, CL_INVALID_MEM_OBJECT, AUDIT_TYPE_BUFFER, AUDIT_TYPE_SUB_BUFFER,
        AUDIT_TYPE_IMAGE)
COUNTED(cl_sampler, clRetainSampler, clReleaseSampler, CL_INVALID_SAMPLER, AUDIT_TYPE_SAMPLER)
COUNTED(cl_program, clRetainProgram, clReleaseProgram, CL_INVALID_PROGRAM, AUDIT_TYPE_PROGRAM)
COUNTED(cl_kernel, clRetainKernel, clReleaseKernel, CL_INVALID_KERNEL, AUDIT_TYPE_KERNEL)
COUNTED(cl_event, clRetainEvent, clReleaseEvent, CL_INVALID_EVENT, AUDIT_TYPE_EVENT)

/* A device that is no sub-device is not counted: retaining and releasing it does nothing. */
static bool is_sub_device(cl_device_id device)
{
    cl_device_id parent = NULL;
    return next.clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL) == CL_SUCCESS && parent;
}

#define COUNTED_DEVICE(retain, release)                                                \
    static cl_int CL_API_CALL audit_##retain(cl_device_id device)                      \
    {                                                                                  \
        static const enum audit_type type = AUDIT_TYPE_SUB_DEVICE;                     \
        enter(CALL_##retain);                                                          \
        pthread_mutex_lock(&lock);                                                     \
        bool known = find(device, type);                                               \
        pthread_mutex_unlock(&lock);                                                   \
        if (known && !retained(device, &type, 1, #retain))                             \
            return CL_INVALID_DEVICE;                                                  \
        return next.retain(device);                                                    \
    }                                                                                  \
    static cl_int CL_API_CALL audit_##release(cl_device_id device)                     \
    {                                                                                  \
        static const enum audit_type type = AUDIT_TYPE_SUB_DEVICE;                     \
        enter(CALL_##release);                                                         \
        pthread_mutex_lock(&lock);                                                     \
        bool known = find(device, type);                                               \
        pthread_mutex_unlock(&lock);                                                   \
        if ((known || is_sub_device(device)) && !released(device, &type, 1, #release)) \
            return CL_INVALID_DEVICE;                                                  \
        return next.release(device);                                                   \
    }

COUNTED_DEVICE(clRetainDevice, clReleaseDevice)
COUNTED_DEVICE(clRetainDeviceEXT, clReleaseDeviceEXT)

static void note_sub_devices(cl_int error, const cl_device_id *out, cl_uint room, const cl_uint *count,
                             const char *call)
{
    if (error != CL_SUCCESS || !out)
        return;
    cl_uint made_count = count && *count < room ? *count : room;
    for (cl_uint i = 0; i < made_count; i++)
        made(out[i], AUDIT_TYPE_SUB_DEVICE, call);
}

static cl_int CL_API_CALL audit_clCreateSubDevices(cl_device_id device, const cl_device_partition_property *how,
                                                   cl_uint room, cl_device_id *out, cl_uint *count)
{
    cl_uint got = 0;
    enter(CALL_clCreateSubDevices);
    cl_int error = next.clCreateSubDevices(device, how, room, out, &got);
    note_sub_devices(error, out, room, &got, "clCreateSubDevices");
    if (count && error == CL_SUCCESS)
        *count = got;
    return error;
}

static cl_int CL_API_CALL audit_clCreateSubDevicesEXT(cl_device_id device, const cl_device_partition_property_ext *how,
                                                      cl_uint room, cl_device_id *out, cl_uint *count)
{
    cl_uint got = 0;
    enter(CALL_clCreateSubDevicesEXT);
    cl_int error = next.clCreateSubDevicesEXT(device, how, room, out, &got);
    note_sub_devices(error, out, room, &got, "clCreateSubDevicesEXT");
    if (count && error == CL_SUCCESS)
        *count = got;
    return error;
}

/* Contexts: what alignment do their devices ask for? */
static void made_context(cl_context context, const char *call)
{
    size_t align = 1, bytes = 0;
    made(context, AUDIT_TYPE_CONTEXT, call);
    if (!context || next.clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &bytes) != CL_SUCCESS)
        return;
    size_t count = bytes / sizeof(cl_device_id);
    cl_device_id *devices = must_alloc(count, sizeof *devices);
    if (next.clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices, NULL) == CL_SUCCESS)
        for (size_t i = 0; i < count; i++) {
            cl_uint bits = 0;
            if (next.clGetDeviceInfo(devices[i], CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL) ==
                    CL_SUCCESS &&
                bits / 8 > align)
                align = bits / 8;
        }
    free(devices);
    pthread_mutex_lock(&lock);
    struct object *object = find(context, AUDIT_TYPE_CONTEXT);
    if (object)
        object->align_bytes = align;
    pthread_mutex_unlock(&lock);
}

static cl_context CL_API_CALL
audit_clCreateContext(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
                      void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *error)
{
    enter(CALL_clCreateContext);
    cl_context context = next.clCreateContext(properties, count, devices, notify, user, error);
    made_context(context, "clCreateContext");
    return context;
}

static cl_context CL_API_CALL audit_clCreateContextFromType(const cl_context_properties *properties,
                                                            cl_device_type type,
                                                            void(CL_CALLBACK *notify)(const char *, const void *,
                                                                                      size_t, void *),
                                                            void *user, cl_int *error)
{
    enter(CALL_clCreateContextFromType);
    cl_context context = next.clCreateContextFromType(properties, type, notify, user, error);
    made_context(context, "clCreateContextFromType");
    return context;
}

static void made_queue(cl_command_queue handle, cl_device_id device, bool in_order, const char *call)
{
    if (!handle) {
        atomic_fetch_add(&failed_calls, 1);
        return;
    }
    note_created(AUDIT_TYPE_QUEUE, call);
    pthread_mutex_lock(&lock);
    struct queue *queue = must_alloc(1, sizeof *queue);
    queue->refs = 1;
    queue->number = ++queue_numbers;
    queue->device = device;
    queue->in_order = in_order;
    queue->next = live_queues;
    live_queues = queue;
    remember(handle, AUDIT_TYPE_QUEUE)->queue = queue;
    pthread_mutex_unlock(&lock);
}

static cl_command_queue CL_API_CALL audit_clCreateCommandQueue(cl_context context, cl_device_id device,
                                                               cl_command_queue_properties properties, cl_int *error)
{
    enter(CALL_clCreateCommandQueue);
    cl_command_queue queue = next.clCreateCommandQueue(context, device, properties, error);
    made_queue(queue, device, !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE), "clCreateCommandQueue");
    return queue;
}

static cl_command_queue CL_API_CALL audit_clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                                             const cl_queue_properties *properties,
                                                                             cl_int *error)
{
    enter(CALL_clCreateCommandQueueWithProperties);
    cl_command_queue queue = next.clCreateCommandQueueWithProperties(context, device, properties, error);
    bool in_order = true;
    for (const cl_queue_properties *p = properties; p && *p; p += 2)
        if (p[0] == CL_QUEUE_PROPERTIES && p[1] & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
            in_order = false;
    made_queue(queue, device, in_order, "clCreateCommandQueueWithProperties");
    return queue;
}

static void made_buffer(cl_mem handle, cl_context context, cl_mem_flags flags, size_t bytes, void *host,
                        const char *call)
{
    if (!handle) {
        atomic_fetch_add(&failed_calls, 1);
        return;
    }
    note_created(AUDIT_TYPE_BUFFER, call);
    pthread_mutex_lock(&lock);
    struct object *object = remember(handle, AUDIT_TYPE_BUFFER);
    object->context = context;
    object->flags = flags;
    object->bytes = bytes;
    object->root = ++root_numbers;
    object->host = flags & CL_MEM_USE_HOST_PTR ? (uintptr_t)host : 0;
    pthread_mutex_unlock(&lock);
}

static cl_mem CL_API_CALL audit_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host,
                                               cl_int *error)
{
    enter(CALL_clCreateBuffer);
    cl_mem mem = next.clCreateBuffer(context, flags, bytes, host, error);
    made_buffer(mem, context, flags, bytes, host, "clCreateBuffer");
    return mem;
}

static cl_mem CL_API_CALL audit_clCreateBufferWithProperties(cl_context context, const cl_mem_properties *properties,
                                                             cl_mem_flags flags, size_t bytes, void *host,
                                                             cl_int *error)
{
    enter(CALL_clCreateBufferWithProperties);
    cl_mem mem = next.clCreateBufferWithProperties(context, properties, flags, bytes, host, error);
    made_buffer(mem, context, flags, bytes, host, "clCreateBufferWithProperties");
    return mem;
}

static cl_mem CL_API_CALL audit_clCreateSubBuffer(cl_mem parent, cl_mem_flags flags, cl_buffer_create_type type,
                                                  const void *info, cl_int *error)
{
    enter(CALL_clCreateSubBuffer);
    cl_mem mem = next.clCreateSubBuffer(parent, flags, type, info, error);
    const cl_buffer_region *region = info;
    if (region && type == CL_BUFFER_CREATE_TYPE_REGION) {
        pthread_mutex_lock(&lock);
        const struct object *of = find(parent, AUDIT_TYPE_BUFFER);
        const struct object *context = of ? find(of->context, AUDIT_TYPE_CONTEXT) : NULL;
        size_t align = context ? context->align_bytes : 1;
        pthread_mutex_unlock(&lock);
        if (align > 0 && region->origin % align != 0)
            violate(AUDIT_RULE_SUB_BUFFER_ALIGNMENT, "clCreateSubBuffer at byte %zu, where %zu bytes are asked for",
                    region->origin, align);
    }
    if (!mem) {
        atomic_fetch_add(&failed_calls, 1);
        return mem;
    }
    note_created(AUDIT_TYPE_SUB_BUFFER, "clCreateSubBuffer");
    pthread_mutex_lock(&lock);
    const struct object *of = find(parent, AUDIT_TYPE_BUFFER);
    struct object *object = remember(mem, AUDIT_TYPE_SUB_BUFFER);
    if (of && region) {
        const cl_mem_flags device_access = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
        object->context = of->context;
        object->flags = flags & device_access ? flags : (flags | (of->flags & device_access));
        object->root = of->root;
        object->root_from = of->root_from + region->origin;
        object->bytes = region->size;
        object->host = of->host ? of->host + region->origin : 0;
    }
    pthread_mutex_unlock(&lock);
    return mem;
}

/* The other makers: made, entered, nothing more. */
#define MAKER(type, kind, name, decl, args)   \
    static type CL_API_CALL audit_##name decl \
    {                                         \
        enter(CALL_##name);                   \
        type made_handle = next.name args;    \
        made(made_handle, kind, #name);       \
        return made_handle;                   \
    }

MAKER(cl_mem, AUDIT_TYPE_IMAGE, clCreateImage2D,
      (cl_context c, cl_mem_flags f, const cl_image_format *m, size_t w, size_t h, size_t p, void *v, cl_int *e),
      (c, f, m, w, h, p, v, e))
MAKER(cl_mem, AUDIT_TYPE_IMAGE, clCreateImage3D,
      (cl_context c, cl_mem_flags f, const cl_image_format *m, size_t w, size_t h, size_t d, size_t p, size_t s,
       void *v, cl_int *e),
      (c, f, m, w, h, d, p, s, v, e))
MAKER(cl_mem, AUDIT_TYPE_IMAGE, clCreateImage,
      (cl_context c, cl_mem_flags f, const cl_image_format *m, const cl_image_desc *d, void *v, cl_int *e),
      (c, f, m, d, v, e))
MAKER(cl_mem, AUDIT_TYPE_IMAGE, clCreateImageWithProperties,
      (cl_context c, const cl_mem_properties *p, cl_mem_flags f, const cl_image_format *m, const cl_image_desc *d,
       void *v, cl_int *e),
      (c, p, f, m, d, v, e))
MAKER(cl_mem, AUDIT_TYPE_IMAGE, clCreatePipe,
      (cl_context c, cl_mem_flags f, cl_uint s, cl_uint n, const cl_pipe_properties *p, cl_int *e), (c, f, s, n, p, e))
MAKER(cl_sampler, AUDIT_TYPE_SAMPLER, clCreateSampler,
      (cl_context c, cl_bool n, cl_addressing_mode a, cl_filter_mode f, cl_int *e), (c, n, a, f, e))
MAKER(cl_sampler, AUDIT_TYPE_SAMPLER, clCreateSamplerWithProperties,
      (cl_context c, const cl_sampler_properties *p, cl_int *e), (c, p, e))
MAKER(cl_program, AUDIT_TYPE_PROGRAM, clCreateProgramWithSource,
      (cl_context c, cl_uint n, const char **s, const size_t *l, cl_int *e), (c, n, s, l, e))
MAKER(cl_program, AUDIT_TYPE_PROGRAM, clCreateProgramWithBinary,
      (cl_context c, cl_uint n, const cl_device_id *d, const size_t *l, const unsigned char **b, cl_int *s, cl_int *e),
      (c, n, d, l, b, s, e))
MAKER(cl_program, AUDIT_TYPE_PROGRAM, clCreateProgramWithBuiltInKernels,
      (cl_context c, cl_uint n, const cl_device_id *d, const char *k, cl_int *e), (c, n, d, k, e))
MAKER(cl_program, AUDIT_TYPE_PROGRAM, clCreateProgramWithIL, (cl_context c, const void *i, size_t n, cl_int *e),
      (c, i, n, e))
MAKER(cl_program, AUDIT_TYPE_PROGRAM, clLinkProgram,
      (cl_context c, cl_uint n, const cl_device_id *d, const char *o, cl_uint m, const cl_program *p,
       void(CL_CALLBACK *fn)(cl_program, void *), void *user, cl_int *e),
      (c, n, d, o, m, p, fn, user, e))
MAKER(cl_kernel, AUDIT_TYPE_KERNEL, clCreateKernel, (cl_program p, const char *n, cl_int *e), (p, n, e))

static void note_build(const char *call)
{
    if (current_phase == AUDIT_PHASE_STEADY)
        violate(AUDIT_RULE_CREATED_IN_STEADY, "%s", call);
}

static cl_int CL_API_CALL audit_clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                                               const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                                               void *user)
{
    enter(CALL_clBuildProgram);
    note_build("clBuildProgram");
    return next.clBuildProgram(program, count, devices, options, notify, user);
}

static cl_int CL_API_CALL audit_clCompileProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                                                 const char *options, cl_uint header_count, const cl_program *headers,
                                                 const char **names, void(CL_CALLBACK *notify)(cl_program, void *),
                                                 void *user)
{
    enter(CALL_clCompileProgram);
    note_build("clCompileProgram");
    return next.clCompileProgram(program, count, devices, options, header_count, headers, names, notify, user);
}

static cl_int CL_API_CALL audit_clCreateKernelsInProgram(cl_program program, cl_uint room, cl_kernel *kernels,
                                                         cl_uint *count)
{
    cl_uint got = 0;
    enter(CALL_clCreateKernelsInProgram);
    cl_int error = next.clCreateKernelsInProgram(program, room, kernels, &got);
    if (error == CL_SUCCESS) {
        for (cl_uint i = 0; kernels && i < got && i < room; i++)
            made(kernels[i], AUDIT_TYPE_KERNEL, "clCreateKernelsInProgram");
        if (count)
            *count = got;
    }
    return error;
}

static cl_kernel CL_API_CALL audit_clCloneKernel(cl_kernel source, cl_int *error)
{
    enter(CALL_clCloneKernel);
    cl_kernel kernel = next.clCloneKernel(source, error);
    made(kernel, AUDIT_TYPE_KERNEL, "clCloneKernel");
    pthread_mutex_lock(&lock);
    const struct object *from = find(source, AUDIT_TYPE_KERNEL);
    struct object *to = find(kernel, AUDIT_TYPE_KERNEL);
    if (from && to)
        memcpy(to->args, from->args, sizeof to->args);
    pthread_mutex_unlock(&lock);
    return kernel;
}

static cl_event CL_API_CALL audit_clCreateUserEvent(cl_context context, cl_int *error)
{
    enter(CALL_clCreateUserEvent);
    if (frames_run())
        violate(AUDIT_RULE_USER_EVENT, "clCreateUserEvent");
    cl_event event = next.clCreateUserEvent(context, error);
    made(event, AUDIT_TYPE_EVENT, "clCreateUserEvent");
    return event;
}

/* Whether the argument is a pointer to const: then the kernel only reads what it is given. False too where the driver
 * does not know. */
static bool is_to_const(cl_kernel kernel, cl_uint index)
{
    cl_kernel_arg_type_qualifier qualifier = 0;
    cl_kernel_arg_address_qualifier space = 0;
    if (next.clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof qualifier, &qualifier, NULL) ||
        next.clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space, NULL))
        return false;
    return space == CL_KERNEL_ARG_ADDRESS_CONSTANT || (qualifier & CL_KERNEL_ARG_TYPE_CONST) != 0;
}

/* An argument of a pointer's size that is a living memory object's handle is taken for one. */
static cl_int CL_API_CALL audit_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
    enter(CALL_clSetKernelArg);
    cl_int error = next.clSetKernelArg(kernel, index, bytes, value);
    if (error != CL_SUCCESS) {
        atomic_fetch_add(&failed_calls, 1);
        return error;
    }
    cl_mem mem = NULL;
    if (value && bytes == sizeof mem)
        memcpy(&mem, value, sizeof mem);
    const bool to_const = mem && index < ARGS_MAX && is_to_const(kernel, index);
    pthread_mutex_lock(&lock);
    struct object *object = find(kernel, AUDIT_TYPE_KERNEL);
    if (object && index < ARGS_MAX) {
        object->args[index] = find_mem(mem) ? mem : NULL;
        object->to_const[index] = to_const;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* --- Commands -------------------------------------------------------------------------------------------- */

/* Begin a command. Returns with the lock held; command_submit gives it back. NULL for a queue that is not
 * known. */
static struct command *command_begin(enum call call, cl_command_queue handle, cl_uint wait_count, const cl_event *wait,
                                     cl_bool blocking)
{
    enter(call);
    pthread_mutex_lock(&lock);
    const struct object *object = find(handle, AUDIT_TYPE_QUEUE);
    if (!object)
        return NULL;
    struct queue *queue = object->queue;
    struct command *command = must_alloc(1, sizeof *command);
    command->refs = 2; /* being in flight, and the call until command_end: another thread may be faster */
    command->call = call_name[call];
    command->queue = queue;
    queue->refs++;
    command->blocking = blocking;
    command->deps = must_alloc(wait_count + 1, sizeof *command->deps); /* and the gate */
    for (cl_uint i = 0; wait && i < wait_count; i++) {
        const struct object *event = find(wait[i], AUDIT_TYPE_EVENT);
        struct command *before = event ? event->command : NULL;
        if (!before)
            continue;
        if (before->queue->device != queue->device)
            violate(AUDIT_RULE_CROSS_DEVICE_WAIT, "%s on queue %u waits for %s on queue %u of another device",
                    command->call, queue->number, before->call, before->queue->number);
        if (!before->done) {
            before->refs++;
            command->deps[command->dep_count++] = before;
        }
    }
    if (queue->gate) {
        queue->gate->refs++;
        command->deps[command->dep_count++] = queue->gate;
    }
    if (blocking) {
        if (frames_run())
            violate(AUDIT_RULE_BLOCKING_TRANSFER, "%s on queue %u", command->call, queue->number);
        check_flushed(command->call, queue);
    }
    return command;
}

static void add_access(struct command *command, struct access access)
{
    if (command && command->access_count < ACCESSES_MAX && access.from < access.to)
        command->access[command->access_count++] = access;
}

/* Bytes [offset, offset + bytes) of a buffer; bytes = SIZE_MAX: to its end. */
static struct access mem_access(const struct object *mem, size_t offset, size_t bytes, bool write)
{
    if (!mem || mem->bytes == 0 || offset >= mem->bytes)
        return (struct access){0};
    if (bytes > mem->bytes - offset)
        bytes = mem->bytes - offset;
    uintptr_t from = (mem->host ? mem->host : mem->root_from) + offset;
    return (struct access){
        .space = mem->host ? 0 : mem->root,
        .from = from,
        .to = from + bytes,
        .write = write,
        .root = mem->root,
        .root_from = mem->root_from + offset,
        .root_to = mem->root_from + offset + bytes,
    };
}

static void touch(struct command *command, cl_mem mem, size_t offset, size_t bytes, bool write)
{
    add_access(command, mem_access(find_mem(mem), offset, bytes, write));
}

static void touch_host(struct command *command, const void *pointer, size_t bytes, bool write)
{
    uintptr_t from = (uintptr_t)pointer;
    add_access(command, (struct access){.from = from, .to = from + bytes, .write = write});
}

/* All is known: check it against what is in flight, and be in flight. Gives the lock back. */
static void command_submit(struct command *command)
{
    if (command) {
        struct queue *queue = command->queue;
        command->number = ++queue->last;
        queue->thread = pthread_self();
        if (command->access_count > 0) {
            if (check_overlap(command))
                check_hand_over(command);
            check_mapped(command);
            note_written(command);
        }
        command->prev = newest;
        *(newest ? &newest->next : &oldest) = command;
        newest = command;
    }
    pthread_mutex_unlock(&lock);
}

/* The driver has answered. */
static cl_int command_end(struct command *command, cl_int error, cl_event *event)
{
    if (error != CL_SUCCESS)
        atomic_fetch_add(&failed_calls, 1);
    if (!command)
        return error;
    if (error == CL_SUCCESS && event)
        note_created(AUDIT_TYPE_EVENT, command->call);
    pthread_mutex_lock(&lock);
    if (error != CL_SUCCESS) {
        struct queue *queue = command->queue;
        if (queue->last == command->number)
            queue->last--;
        if (queue->flushed > queue->last)
            queue->flushed = queue->last;
        if (!command->done)
            leave_flight(command);
    } else {
        if (event) {
            struct object *object = remember(*event, AUDIT_TYPE_EVENT);
            object->command = command;
            command->refs++;
        }
        if (command->blocking) {
            struct queue *queue = command->queue;
            if (queue->flushed < command->number)
                queue->flushed = command->number;
            if (!command->done)
                complete(command);
        }
    }
    command_put(command);
    pthread_mutex_unlock(&lock);
    return error;
}

/* A command without known ranges. */
#define COMMAND(name, blocking, decl, args)                                                      \
    static cl_int CL_API_CALL audit_##name decl                                                  \
    {                                                                                            \
        struct command *command = command_begin(CALL_##name, queue, wait_count, wait, blocking); \
        command_submit(command);                                                                 \
        return command_end(command, next.name args, event);                                      \
    }
#define WAIT cl_uint wait_count, const cl_event *wait, cl_event *event

static cl_int CL_API_CALL audit_clEnqueueReadBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t offset,
                                                    size_t bytes, void *host, WAIT)
{
    struct command *command = command_begin(CALL_clEnqueueReadBuffer, queue, wait_count, wait, blocking);
    touch(command, mem, offset, bytes, false);
    touch_host(command, host, bytes, true);
    command_submit(command);
    return command_end(command,
                       next.clEnqueueReadBuffer(queue, mem, blocking, offset, bytes, host, wait_count, wait, event),
                       event);
}

static cl_int CL_API_CALL audit_clEnqueueWriteBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                                     size_t offset, size_t bytes, const void *host, WAIT)
{
    struct command *command = command_begin(CALL_clEnqueueWriteBuffer, queue, wait_count, wait, blocking);
    touch(command, mem, offset, bytes, true);
    touch_host(command, host, bytes, false);
    command_submit(command);
    return command_end(command,
                       next.clEnqueueWriteBuffer(queue, mem, blocking, offset, bytes, host, wait_count, wait, event),
                       event);
}

static cl_int CL_API_CALL audit_clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                                                    size_t to_offset, size_t bytes, WAIT)
{
    struct command *command = command_begin(CALL_clEnqueueCopyBuffer, queue, wait_count, wait, CL_FALSE);
    touch(command, from, from_offset, bytes, false);
    touch(command, to, to_offset, bytes, true);
    command_submit(command);
    return command_end(command,
                       next.clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes, wait_count, wait,
                                                event),
                       event);
}

static cl_int CL_API_CALL audit_clEnqueueFillBuffer(cl_command_queue queue, cl_mem mem, const void *pattern,
                                                    size_t pattern_bytes, size_t offset, size_t bytes, WAIT)
{
    struct command *command = command_begin(CALL_clEnqueueFillBuffer, queue, wait_count, wait, CL_FALSE);
    touch(command, mem, offset, bytes, true);
    command_submit(command);
    return command_end(command,
                       next.clEnqueueFillBuffer(queue, mem, pattern, pattern_bytes, offset, bytes, wait_count, wait,
                                                event),
                       event);
}

/* A box in a buffer, as the range from its first to its last byte. */
struct box {
    size_t offset, bytes;
};

static struct box box_range(const size_t *origin, const size_t *region, size_t row_pitch, size_t slice_pitch)
{
    size_t row = row_pitch ? row_pitch : region[0];
    size_t slice = slice_pitch ? slice_pitch : row * region[1];
    size_t offset = origin[2] * slice + origin[1] * row + origin[0];
    if (region[0] == 0 || region[1] == 0 || region[2] == 0)
        return (struct box){offset, 0};
    return (struct box){offset, (region[2] - 1) * slice + (region[1] - 1) * row + region[0]};
}

static cl_int CL_API_CALL audit_clEnqueueReadBufferRect(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                                        const size_t *mem_origin, const size_t *host_origin,
                                                        const size_t *region, size_t mem_row, size_t mem_slice,
                                                        size_t host_row, size_t host_slice, void *host, WAIT)
{
    struct command *command = command_begin(CALL_clEnqueueReadBufferRect, queue, wait_count, wait, blocking);
    struct box in_mem = box_range(mem_origin, region, mem_row, mem_slice);
    struct box in_host = box_range(host_origin, region, host_row, host_slice);
    touch(command, mem, in_mem.offset, in_mem.bytes, false);
    touch_host(command, (char *)host + in_host.offset, in_host.bytes, true);
    command_submit(command);
    return command_end(command,
                       next.clEnqueueReadBufferRect(queue, mem, blocking, mem_origin, host_origin, region, mem_row,
                                                    mem_slice, host_row, host_slice, host, wait_count, wait, event),
                       event);
}

static cl_int CL_API_CALL audit_clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                                         const size_t *mem_origin, const size_t *host_origin,
                                                         const size_t *region, size_t mem_row, size_t mem_slice,
                                                         size_t host_row, size_t host_slice, const void *host, WAIT)
{
    struct command *command = command_begin(CALL_clEnqueueWriteBufferRect, queue, wait_count, wait, blocking);
    struct box in_mem = box_range(mem_origin, region, mem_row, mem_slice);
    struct box in_host = box_range(host_origin, region, host_row, host_slice);
    touch(command, mem, in_mem.offset, in_mem.bytes, true);
    touch_host(command, (const char *)host + in_host.offset, in_host.bytes, false);
    command_submit(command);
    return command_end(command,
                       next.clEnqueueWriteBufferRect(queue, mem, blocking, mem_origin, host_origin, region, mem_row,
                                                     mem_slice, host_row, host_slice, host, wait_count, wait, event),
                       event);
}

static cl_int CL_API_CALL audit_clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem from, cl_mem to,
                                                        const size_t *from_origin, const size_t *to_origin,
                                                        const size_t *region, size_t from_row, size_t from_slice,
                                                        size_t to_row, size_t to_slice, WAIT)
{
    struct command *command = command_begin(CALL_clEnqueueCopyBufferRect, queue, wait_count, wait, CL_FALSE);
    struct box source = box_range(from_origin, region, from_row, from_slice);
    struct box target = box_range(to_origin, region, to_row, to_slice);
    touch(command, from, source.offset, source.bytes, false);
    touch(command, to, target.offset, target.bytes, true);
    command_submit(command);
    return command_end(command,
                       next.clEnqueueCopyBufferRect(queue, from, to, from_origin, to_origin, region, from_row,
                                                    from_slice, to_row, to_slice, wait_count, wait, event),
                       event);
}

static cl_int CL_API_CALL audit_clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count, const cl_mem *mems,
                                                           cl_mem_migration_flags flags, WAIT)
{
    struct command *command = command_begin(CALL_clEnqueueMigrateMemObjects, queue, wait_count, wait, CL_FALSE);
    for (cl_uint i = 0; mems && i < count; i++)
        touch(command, mems[i], 0, SIZE_MAX, flags & CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED);
    command_submit(command);
    return command_end(command, next.clEnqueueMigrateMemObjects(queue, count, mems, flags, wait_count, wait, event),
                       event);
}

/* A map brings the contents to the host: where they live in the application's memory, the driver may write there, but
 * for an object that no kernel can have changed. An unmap, if the mapping was for writing, brings them back: it writes
 * the buffer, but only reads the application's memory. */
static void *CL_API_CALL audit_clEnqueueMapBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                                  cl_map_flags flags, size_t offset, size_t bytes, WAIT, cl_int *error)
{
    cl_int answer = CL_SUCCESS;
    struct command *command = command_begin(CALL_clEnqueueMapBuffer, queue, wait_count, wait, blocking);
    const struct object *object = find_mem(mem);
    struct access access = mem_access(object, offset, bytes, false);
    struct access checked = access;
    bool in_host = object && object->host;
    checked.write = in_host && !(flags & CL_MAP_WRITE_INVALIDATE_REGION) && !(object->flags & CL_MEM_READ_ONLY);
    checked.root = 0; /* mapping what is mapped is allowed */
    add_access(command, checked);
    if (command && in_host && !(flags & CL_MAP_WRITE_INVALIDATE_REGION))
        forget_written(access.from, access.to, access.root);
    command_submit(command);
    void *pointer = next.clEnqueueMapBuffer(queue, mem, blocking, flags, offset, bytes, wait_count, wait, event,
                                            &answer);
    command_end(command, answer, event);
    if (answer == CL_SUCCESS) {
        note_created(AUDIT_TYPE_MAPPING, "clEnqueueMapBuffer");
        atomic_fetch_add(&live_count[AUDIT_TYPE_MAPPING], 1);
        struct mapping *map = must_alloc(1, sizeof *map);
        *map = (struct mapping){.mem = mem, .pointer = pointer, .flags = flags, .in_host = in_host, .access = access};
        pthread_mutex_lock(&lock);
        map->next = mappings;
        mappings = map;
        pthread_mutex_unlock(&lock);
    }
    if (error)
        *error = answer;
    return pointer;
}

static cl_int CL_API_CALL audit_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem mem, void *pointer, WAIT)
{
    struct command *command = command_begin(CALL_clEnqueueUnmapMemObject, queue, wait_count, wait, CL_FALSE);
    struct mapping **place = &mappings;
    while (*place && ((*place)->mem != mem || (*place)->pointer != pointer))
        place = &(*place)->next;
    struct mapping *map = *place;
    if (map) {
        struct access access = map->access;
        access.root = 0;
        access.write = !map->in_host;
        if (map->flags & ~(cl_map_flags)CL_MAP_READ)
            add_access(command, access);
        *place = map->next;
        free(map);
        atomic_fetch_sub(&live_count[AUDIT_TYPE_MAPPING], 1);
    }
    command_submit(command);
    if (!map && command)
        violate(AUDIT_RULE_BAD_RELEASE, "clEnqueueUnmapMemObject of what is not mapped");
    return command_end(command, next.clEnqueueUnmapMemObject(queue, mem, pointer, wait_count, wait, event), event);
}

/* A kernel writes what it has by a pointer that is not to const, unless the object is CL_MEM_READ_ONLY. */
static void touch_args(struct command *command, const struct object *kernel)
{
    for (unsigned i = 0; kernel && i < ARGS_MAX; i++) {
        const struct object *mem = kernel->args[i] ? find_mem(kernel->args[i]) : NULL;
        if (mem)
            add_access(command, mem_access(mem, 0, SIZE_MAX, !kernel->to_const[i] && !(mem->flags & CL_MEM_READ_ONLY)));
    }
}

static void check_local_size(struct object *kernel, cl_uint dims, const size_t *local)
{
    if (!local) {
        violate(AUDIT_RULE_NULL_LOCAL_SIZE, "clEnqueueNDRangeKernel");
        return;
    }
    if (!kernel || dims < 1 || dims > 3)
        return;
    size_t size[3] = {1, 1, 1};
    memcpy(size, local, dims * sizeof *local);
    if (kernel->local_dims != 0 && (kernel->local_dims != dims || memcmp(kernel->local, size, sizeof size) != 0))
        violate(AUDIT_RULE_LOCAL_SIZE_CHANGED,
                "clEnqueueNDRangeKernel with a local size of %zu, %zu, %zu after %zu, %zu, %zu", size[0], size[1],
                size[2], kernel->local[0], kernel->local[1], kernel->local[2]);
    kernel->local_dims = dims;
    memcpy(kernel->local, size, sizeof size);
}

static cl_int CL_API_CALL audit_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                                                       const size_t *offset, const size_t *global, const size_t *local,
                                                       WAIT)
{
    struct command *command = command_begin(CALL_clEnqueueNDRangeKernel, queue, wait_count, wait, CL_FALSE);
    struct object *object = find(kernel, AUDIT_TYPE_KERNEL);
    if (offset)
        violate(AUDIT_RULE_GLOBAL_OFFSET, "clEnqueueNDRangeKernel");
    check_local_size(object, dims, local);
    touch_args(command, object);
    command_submit(command);
    return command_end(command,
                       next.clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, wait_count, wait, event),
                       event);
}

static cl_int CL_API_CALL audit_clEnqueueTask(cl_command_queue queue, cl_kernel kernel, WAIT)
{
    struct command *command = command_begin(CALL_clEnqueueTask, queue, wait_count, wait, CL_FALSE);
    touch_args(command, find(kernel, AUDIT_TYPE_KERNEL));
    command_submit(command);
    return command_end(command, next.clEnqueueTask(queue, kernel, wait_count, wait, event), event);
}

COMMAND(clEnqueueReadImage, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *o, const size_t *r, size_t p, size_t s,
         void *v, WAIT),
        (queue, m, blocking, o, r, p, s, v, wait_count, wait, event))
COMMAND(clEnqueueWriteImage, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *o, const size_t *r, size_t p, size_t s,
         const void *v, WAIT),
        (queue, m, blocking, o, r, p, s, v, wait_count, wait, event))
COMMAND(clEnqueueFillImage, CL_FALSE,
        (cl_command_queue queue, cl_mem m, const void *c, const size_t *o, const size_t *r, WAIT),
        (queue, m, c, o, r, wait_count, wait, event))
COMMAND(clEnqueueCopyImage, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, const size_t *o, const size_t *p, const size_t *r, WAIT),
        (queue, a, b, o, p, r, wait_count, wait, event))
COMMAND(clEnqueueCopyImageToBuffer, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, const size_t *o, const size_t *r, size_t n, WAIT),
        (queue, a, b, o, r, n, wait_count, wait, event))
COMMAND(clEnqueueCopyBufferToImage, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, size_t n, const size_t *o, const size_t *r, WAIT),
        (queue, a, b, n, o, r, wait_count, wait, event))
COMMAND(clEnqueueNativeKernel, CL_FALSE,
        (cl_command_queue queue, void(CL_CALLBACK *fn)(void *), void *a, size_t n, cl_uint m, const cl_mem *l,
         const void **p, WAIT),
        (queue, fn, a, n, m, l, p, wait_count, wait, event))
COMMAND(clEnqueueSVMFree, CL_FALSE,
        (cl_command_queue queue, cl_uint n, void **p, void(CL_CALLBACK *fn)(cl_command_queue, cl_uint, void **, void *),
         void *user, WAIT),
        (queue, n, p, fn, user, wait_count, wait, event))
COMMAND(clEnqueueSVMMemcpy, blocking,
        (cl_command_queue queue, cl_bool blocking, void *a, const void *b, size_t n, WAIT),
        (queue, blocking, a, b, n, wait_count, wait, event))
COMMAND(clEnqueueSVMMemFill, CL_FALSE, (cl_command_queue queue, void *a, const void *b, size_t m, size_t n, WAIT),
        (queue, a, b, m, n, wait_count, wait, event))
COMMAND(clEnqueueSVMMap, blocking, (cl_command_queue queue, cl_bool blocking, cl_map_flags f, void *a, size_t n, WAIT),
        (queue, blocking, f, a, n, wait_count, wait, event))
COMMAND(clEnqueueSVMUnmap, CL_FALSE, (cl_command_queue queue, void *a, WAIT), (queue, a, wait_count, wait, event))
COMMAND(clEnqueueSVMMigrateMem, CL_FALSE,
        (cl_command_queue queue, cl_uint n, const void **p, const size_t *s, cl_mem_migration_flags f, WAIT),
        (queue, n, p, s, f, wait_count, wait, event))

static void *CL_API_CALL audit_clEnqueueMapImage(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                                 cl_map_flags flags, const size_t *origin, const size_t *region,
                                                 size_t *row_pitch, size_t *slice_pitch, WAIT, cl_int *error)
{
    cl_int answer = CL_SUCCESS;
    struct command *command = command_begin(CALL_clEnqueueMapImage, queue, wait_count, wait, blocking);
    command_submit(command);
    void *pointer = next.clEnqueueMapImage(queue, mem, blocking, flags, origin, region, row_pitch, slice_pitch,
                                           wait_count, wait, event, &answer);
    command_end(command, answer, event);
    if (error)
        *error = answer;
    if (answer == CL_SUCCESS) {
        note_created(AUDIT_TYPE_MAPPING, "clEnqueueMapImage");
        atomic_fetch_add(&live_count[AUDIT_TYPE_MAPPING], 1);
        struct mapping *map = must_alloc(1, sizeof *map);
        *map = (struct mapping){.mem = mem, .pointer = pointer, .flags = flags};
        pthread_mutex_lock(&lock);
        map->next = mappings;
        mappings = map;
        pthread_mutex_unlock(&lock);
    }
    return pointer;
}

/* Markers and barriers without a wait list stand behind everything that is in flight in their queue. */
static void stand_behind_queue(struct command *command, bool gate)
{
    if (!command || command->queue->in_order)
        return;
    unsigned count = 0;
    for (struct command *c = oldest; c; c = c->next)
        count += c->queue == command->queue;
    struct command **deps = must_alloc(command->dep_count + count, sizeof *deps);
    memcpy(deps, command->deps, command->dep_count * sizeof *deps);
    free(command->deps);
    command->deps = deps;
    for (struct command *c = oldest; c; c = c->next)
        if (c->queue == command->queue) {
            c->refs++;
            deps[command->dep_count++] = c;
        }
    if (gate)
        command->queue->gate = command;
}

static cl_int CL_API_CALL audit_clEnqueueMarkerWithWaitList(cl_command_queue queue, WAIT)
{
    struct command *command = command_begin(CALL_clEnqueueMarkerWithWaitList, queue, wait_count, wait, CL_FALSE);
    if (wait_count == 0)
        stand_behind_queue(command, false);
    command_submit(command);
    return command_end(command, next.clEnqueueMarkerWithWaitList(queue, wait_count, wait, event), event);
}

static cl_int CL_API_CALL audit_clEnqueueBarrierWithWaitList(cl_command_queue queue, WAIT)
{
    struct command *command = command_begin(CALL_clEnqueueBarrierWithWaitList, queue, wait_count, wait, CL_FALSE);
    if (wait_count == 0)
        stand_behind_queue(command, true);
    else if (command && !command->queue->in_order)
        command->queue->gate = command;
    command_submit(command);
    return command_end(command, next.clEnqueueBarrierWithWaitList(queue, wait_count, wait, event), event);
}

static cl_int CL_API_CALL audit_clEnqueueMarker(cl_command_queue queue, cl_event *event)
{
    struct command *command = command_begin(CALL_clEnqueueMarker, queue, 0, NULL, CL_FALSE);
    stand_behind_queue(command, false);
    command_submit(command);
    return command_end(command, next.clEnqueueMarker(queue, event), event);
}

static cl_int CL_API_CALL audit_clEnqueueBarrier(cl_command_queue queue)
{
    struct command *command = command_begin(CALL_clEnqueueBarrier, queue, 0, NULL, CL_FALSE);
    stand_behind_queue(command, true);
    command_submit(command);
    return command_end(command, next.clEnqueueBarrier(queue), NULL);
}

static cl_int CL_API_CALL audit_clEnqueueWaitForEvents(cl_command_queue queue, cl_uint count, const cl_event *events)
{
    struct command *command = command_begin(CALL_clEnqueueWaitForEvents, queue, count, events, CL_FALSE);
    if (command && !command->queue->in_order)
        command->queue->gate = command;
    command_submit(command);
    return command_end(command, next.clEnqueueWaitForEvents(queue, count, events), NULL);
}

/* --- Flushing, waiting, polling -------------------------------------------------------------------------- */

static cl_int CL_API_CALL audit_clFlush(cl_command_queue queue)
{
    uint64_t up_to = 0;
    enter(CALL_clFlush);
    pthread_mutex_lock(&lock);
    struct object *object = find(queue, AUDIT_TYPE_QUEUE);
    if (object)
        up_to = object->queue->last;
    pthread_mutex_unlock(&lock);
    cl_int error = next.clFlush(queue);
    if (error != CL_SUCCESS) {
        atomic_fetch_add(&failed_calls, 1);
        return error;
    }
    pthread_mutex_lock(&lock);
    object = find(queue, AUDIT_TYPE_QUEUE);
    if (object && object->queue->flushed < up_to)
        object->queue->flushed = up_to;
    pthread_mutex_unlock(&lock);
    return error;
}

static cl_int CL_API_CALL audit_clFinish(cl_command_queue queue)
{
    uint64_t up_to = 0;
    enter(CALL_clFinish);
    if (frames_run())
        violate(AUDIT_RULE_BLOCKING_WAIT, "clFinish");
    pthread_mutex_lock(&lock);
    struct object *object = find(queue, AUDIT_TYPE_QUEUE);
    check_flushed("clFinish", object ? object->queue : NULL);
    if (object)
        up_to = object->queue->last;
    pthread_mutex_unlock(&lock);
    cl_int error = next.clFinish(queue);
    if (error != CL_SUCCESS) {
        atomic_fetch_add(&failed_calls, 1);
        return error;
    }
    pthread_mutex_lock(&lock);
    object = find(queue, AUDIT_TYPE_QUEUE);
    if (object) {
        if (object->queue->flushed < up_to)
            object->queue->flushed = up_to;
        complete_queue(object->queue, up_to);
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* Under the lock: the application has seen the end of this event's command. */
static void event_over(cl_event event)
{
    struct object *object = find(event, AUDIT_TYPE_EVENT);
    if (object && object->command && !object->command->done)
        complete(object->command);
}

static cl_int CL_API_CALL audit_clWaitForEvents(cl_uint count, const cl_event *events)
{
    enter(CALL_clWaitForEvents);
    if (frames_run())
        violate(AUDIT_RULE_BLOCKING_WAIT, "clWaitForEvents");
    pthread_mutex_lock(&lock);
    check_flushed("clWaitForEvents", NULL);
    for (cl_uint i = 0; events && i < count; i++)
        check_event_flushed("clWaitForEvents", find(events[i], AUDIT_TYPE_EVENT));
    pthread_mutex_unlock(&lock);
    cl_int error = next.clWaitForEvents(count, events);
    if (error != CL_SUCCESS)
        atomic_fetch_add(&failed_calls, 1);
    if (error == CL_SUCCESS || error == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
        pthread_mutex_lock(&lock);
        for (cl_uint i = 0; events && i < count; i++)
            event_over(events[i]);
        pthread_mutex_unlock(&lock);
    }
    return error;
}

static cl_int CL_API_CALL audit_clGetEventInfo(cl_event event, cl_event_info info, size_t bytes, void *value,
                                               size_t *got)
{
    enter(CALL_clGetEventInfo);
    if (info != CL_EVENT_COMMAND_EXECUTION_STATUS)
        return next.clGetEventInfo(event, info, bytes, value, got);
    pthread_mutex_lock(&lock);
    check_flushed("clGetEventInfo", NULL);
    check_event_flushed("clGetEventInfo", find(event, AUDIT_TYPE_EVENT));
    pthread_mutex_unlock(&lock);
    cl_int error = next.clGetEventInfo(event, info, bytes, value, got);
    if (error != CL_SUCCESS)
        atomic_fetch_add(&failed_calls, 1);
    else if (value && *(cl_int *)value <= CL_COMPLETE) {
        pthread_mutex_lock(&lock);
        event_over(event);
        pthread_mutex_unlock(&lock);
    }
    return error;
}

/* --- Callbacks ------------------------------------------------------------------------------------------- */

/* Kept for ever in `callbacks`: a driver may call late or never. */
struct callback {
    struct callback *next;
    void(CL_CALLBACK *fn)(cl_event, cl_int, void *);
    void *user;
    bool free;
};
static struct callback *callbacks; /* those whose call is over are used again */

static void CL_CALLBACK run_callback(cl_event event, cl_int status, void *arg)
{
    struct callback *callback = arg;
    void(CL_CALLBACK * fn)(cl_event, cl_int, void *) = callback->fn;
    void *user = callback->user;
    pthread_mutex_lock(&lock);
    if (status <= CL_COMPLETE)
        event_over(event);
    callback->free = true;
    pthread_mutex_unlock(&lock);
    callback_depth++;
    fn(event, status, user);
    callback_depth--;
}

static cl_int CL_API_CALL audit_clSetEventCallback(cl_event event, cl_int type,
                                                   void(CL_CALLBACK *fn)(cl_event, cl_int, void *), void *user)
{
    enter(CALL_clSetEventCallback);
    if (!fn)
        return next.clSetEventCallback(event, type, fn, user);
    pthread_mutex_lock(&lock);
    struct callback *callback = callbacks;
    while (callback && !callback->free)
        callback = callback->next;
    if (!callback) {
        callback = must_alloc(1, sizeof *callback);
        callback->next = callbacks;
        callbacks = callback;
    }
    callback->fn = fn;
    callback->user = user;
    callback->free = false;
    pthread_mutex_unlock(&lock);
    cl_int error = next.clSetEventCallback(event, type, run_callback, callback);
    if (error != CL_SUCCESS) {
        atomic_fetch_add(&failed_calls, 1);
        pthread_mutex_lock(&lock);
        callback->free = true;
        pthread_mutex_unlock(&lock);
    }
    return error;
}

/* --- What the layer exports ------------------------------------------------------------------------------ */

EXPORT void cox_audit_phase(int phase)
{
    if (phase >= 0 && phase < AUDIT_PHASES)
        atomic_store(&current_phase, phase);
}

EXPORT uint64_t cox_audit_violations(int rule)
{
    return rule >= 0 && rule < AUDIT_RULES ? atomic_load(&violation_count[rule]) : 0;
}

EXPORT uint64_t cox_audit_created(int type, int phase)
{
    if (type < 0 || type >= AUDIT_TYPES || phase < 0 || phase >= AUDIT_PHASES)
        return 0;
    return atomic_load(&created_count[type][phase]);
}

EXPORT uint64_t cox_audit_live(int type)
{
    return type >= 0 && type < AUDIT_TYPES ? atomic_load(&live_count[type]) : 0;
}

EXPORT uint64_t cox_audit_calls(const char *name)
{
    uint64_t sum = 0;
    for (int i = 0; i < CALL_COUNT; i++)
        if (!name || strcmp(name, call_name[i]) == 0)
            sum += atomic_load(&call_count[i]);
    return sum;
}

EXPORT uint64_t cox_audit_finish(void)
{
    uint64_t sum = 0;
    for (int type = 0; type < AUDIT_TYPES; type++)
        sum += atomic_load(&live_count[type]);
    atomic_store(&violation_count[AUDIT_RULE_LEAK], sum);
    return sum;
}

EXPORT int cox_audit_write(const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stderr : fopen(path, "w");
    if (!file)
        return -1;
    fprintf(file, "calls %llu\nfailed_calls %llu\n", (unsigned long long)cox_audit_calls(NULL),
            (unsigned long long)atomic_load(&failed_calls));
    for (int i = 0; i < CALL_COUNT; i++)
        if (call_count[i])
            fprintf(file, "call %s %llu\n", call_name[i], (unsigned long long)call_count[i]);
    for (int type = 0; type < AUDIT_TYPES; type++)
        for (int phase = 0; phase < AUDIT_PHASES; phase++)
            if (created_count[type][phase])
                fprintf(file, "created %s %s %llu\n", audit_type_word(type), audit_phase_word(phase),
                        (unsigned long long)created_count[type][phase]);
    for (int type = 0; type < AUDIT_TYPES; type++)
        fprintf(file, "live %s %llu\n", audit_type_word(type), (unsigned long long)live_count[type]);
    uint64_t sum = 0;
    for (int rule = 0; rule < AUDIT_RULES; rule++) {
        fprintf(file, "violation %s %llu\n", audit_rule_word(rule), (unsigned long long)violation_count[rule]);
        sum += violation_count[rule];
    }
    pthread_mutex_lock(&log_lock);
    for (int i = 0; i < text_count; i++)
        fprintf(file, "text %llu times %s\n", (unsigned long long)text_times[i], texts[i]);
    pthread_mutex_unlock(&log_lock);
    fprintf(file, "violations %llu\n", (unsigned long long)sum);
    int failed = ferror(file);
    if (file != stderr)
        failed |= fclose(file);
    return failed ? -1 : 0;
}

/* After the program's own exit handlers, which may still release something. */
__attribute__((destructor)) static void report_at_exit(void)
{
    const char *path = getenv("COX_AUDIT_REPORT");
    if (!next.clGetPlatformIDs)
        return; /* loaded, but never in front of a driver */
    cox_audit_finish();
    if (path && *path && cox_audit_write(path) != 0)
        fprintf(stderr, "layer_audit: cannot write %s\n", path);
}

/* --- The loader's side ----------------------------------------------------------------------------------- */

EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info info, size_t bytes, void *value, size_t *got)
{
    return layer_info("coxswain audit", info, bytes, value, got);
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target, cl_uint *entries_ret,
                                                   const cl_icd_dispatch **table)
{
    static cl_icd_dispatch ours;
    const cl_uint known = sizeof ours / sizeof ours.clGetPlatformIDs;
    if (!target || !entries_ret || !table || entries < known)
        return CL_INVALID_VALUE;
    next = *target;
    ours = *target; /* what the layer does not stand in front of goes straight on */
#define X(name)    \
    if (next.name) \
        ours.name = audit_##name;
    CALLS(X)
#undef X
    const char *phase = getenv("COX_AUDIT_PHASE");
    for (int i = 0; phase && i < AUDIT_PHASES; i++)
        if (strcmp(phase, audit_phase_word(i)) == 0)
            current_phase = i;
    *table = &ours;
    *entries_ret = known;
    return CL_SUCCESS;
}
