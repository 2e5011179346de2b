/* Objects that the application creates, retains and releases. An object is removed before the driver sees its
 * release, and added after the driver has created it. So a new object at the same address is not taken for the old
 * one.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "audit/layer.h"

enum { BUCKETS = 4096 };

static struct object *bucket[BUCKETS];
static unsigned queue_numbers, root_numbers;

static struct object **bucket_of(const void *handle)
{
    return &bucket[(size_t)(((uint64_t)(uintptr_t)handle >> 3) * 0x9e3779b97f4a7c15u >> 52) % BUCKETS];
}

/* The pointer to the object in its bucket, or to the NULL at the end. */
static struct object **find_place(const void *handle, enum audit_type type)
{
    struct object **place = bucket_of(handle);
    while (*place && ((*place)->handle != handle || (*place)->type != type))
        place = &(*place)->next;
    return place;
}

struct object *find(const void *handle, enum audit_type type)
{
    return handle ? *find_place(handle, type) : NULL;
}

struct object *find_mem(const void *handle)
{
    struct object *object = find(handle, AUDIT_TYPE_BUFFER);
    if (!object)
        object = find(handle, AUDIT_TYPE_SUB_BUFFER);
    return object ? object : find(handle, AUDIT_TYPE_IMAGE);
}

static void forget(struct object *object)
{
    *find_place(object->handle, object->type) = object->next;
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
        forget_written(0, UINTPTR_MAX, object->root); /* it can no longer be mapped */
    command_put(object->command);
    free(object);
}

struct object *remember(const void *handle, enum audit_type type)
{
    struct object *old = find(handle, type);
    if (old)
        forget(old); /* the layer did not see its release */
    struct object *object = must_alloc(1, sizeof *object);
    *object = (struct object){.handle = handle, .type = type, .refs = 1, .next = *bucket_of(handle)};
    *bucket_of(handle) = object;
    atomic_fetch_add(&live_count[type], 1);
    return object;
}

/* --- Retaining and releasing ----------------------------------------------------------------------------- */

/* The application retains (`by` = 1) or releases (-1) an object. Returns false if no live object has this handle.
 * The caller then does not call the driver, which might crash. */
static bool counted(const void *handle, enum audit_type type, int by, const char *call)
{
    pthread_mutex_lock(&lock);
    struct object *object = type == AUDIT_TYPE_BUFFER ? find_mem(handle) : find(handle, type);
    bool known = object;
    if (object) {
        object->refs += (unsigned)by;
        if (object->refs == 0)
            forget(object);
    }
    pthread_mutex_unlock(&lock);
    if (!known)
        violate(AUDIT_RULE_BAD_RELEASE, "%s of %p, which is not alive", call, handle);
    return known;
}

/* Only sub-devices are counted. Retaining and releasing other devices has no effect. */
static bool counted_device(cl_device_id device, enum audit_type type, int by, const char *call)
{
    cl_device_id parent = NULL;
    pthread_mutex_lock(&lock);
    bool known = find(device, type);
    pthread_mutex_unlock(&lock);
    if (!known && by < 0)
        next.clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL);
    return (!known && !parent) || counted(device, type, by, call);
}

#define COUNT(name, handle_type, by, count, type, error)                                             \
    cl_int CL_API_CALL audit_##name(handle_type handle)                                              \
    {                                                                                                \
        enter(CALL_##name);                                                                          \
        return count(handle, AUDIT_TYPE_##type, by, #name) ? next.name(handle) : CL_INVALID_##error; \
    }
#define COUNTED(name, handle_type, count, type, error)        \
    COUNT(clRetain##name, handle_type, 1, count, type, error) \
    COUNT(clRelease##name, handle_type, -1, count, type, error)

COUNTED(Context, cl_context, counted, CONTEXT, CONTEXT)
COUNTED(CommandQueue, cl_command_queue, counted, QUEUE, COMMAND_QUEUE)
COUNTED(MemObject, cl_mem, counted, BUFFER, MEM_OBJECT)
COUNTED(Sampler, cl_sampler, counted, SAMPLER, SAMPLER)
COUNTED(Program, cl_program, counted, PROGRAM, PROGRAM)
COUNTED(Kernel, cl_kernel, counted, KERNEL, KERNEL)
COUNTED(Event, cl_event, counted, EVENT, EVENT)
COUNTED(Device, cl_device_id, counted_device, SUB_DEVICE, DEVICE)

/* --- Creating -------------------------------------------------------------------------------------------- */

/* The driver has created an object. Returns it with the lock held. If `handle` is NULL, returns NULL without the
 * lock. */
static struct object *begin_object(const void *handle, enum audit_type type, const char *call)
{
    answered(handle ? CL_SUCCESS : CL_INVALID_VALUE);
    if (!handle)
        return NULL;
    note_created(type, call);
    pthread_mutex_lock(&lock);
    return remember(handle, type);
}

static void made(const void *handle, enum audit_type type, const char *call)
{
    if (begin_object(handle, type, call))
        pthread_mutex_unlock(&lock);
}

/* The largest alignment of sub-buffers that one of the context's devices needs. */
static size_t alignment_of(cl_context context)
{
    size_t align = 1, bytes = 0;
    if (next.clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &bytes) != CL_SUCCESS)
        return align;
    size_t count = bytes / sizeof(cl_device_id);
    cl_device_id *devices = must_alloc(count, sizeof *devices);
    next.clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices, NULL);
    for (size_t i = 0; i < count; i++) {
        cl_uint bits = 0;
        next.clGetDeviceInfo(devices[i], CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
        align = bits / 8 > align ? bits / 8 : align;
    }
    free(devices);
    return align;
}

static void made_context(cl_context context, const char *call)
{
    size_t align = context ? alignment_of(context) : 0;
    struct object *object = begin_object(context, AUDIT_TYPE_CONTEXT, call);
    if (!object)
        return;
    object->align_bytes = align;
    pthread_mutex_unlock(&lock);
}

static void made_queue(cl_command_queue handle, cl_device_id device, bool in_order, const char *call)
{
    struct object *object = begin_object(handle, AUDIT_TYPE_QUEUE, call);
    if (!object)
        return;
    struct queue *queue = object->queue = must_alloc(1, sizeof *queue);
    *queue = (struct queue){
        .next = live_queues, .refs = 1, .number = ++queue_numbers, .device = device, .in_order = in_order};
    live_queues = queue;
    pthread_mutex_unlock(&lock);
}

static bool asks_for_order(const cl_queue_properties *properties)
{
    for (const cl_queue_properties *p = properties; p && *p; p += 2)
        if (p[0] == CL_QUEUE_PROPERTIES && p[1] & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
            return false;
    return true;
}

static void made_buffer(cl_mem handle, cl_context context, cl_mem_flags flags, size_t bytes, void *host,
                        const char *call)
{
    struct object *object = begin_object(handle, AUDIT_TYPE_BUFFER, call);
    if (!object)
        return;
    object->context = context;
    object->flags = flags;
    object->bytes = bytes;
    object->root = ++root_numbers;
    object->host = flags & CL_MEM_USE_HOST_PTR ? (uintptr_t)host : 0;
    pthread_mutex_unlock(&lock);
}

static void check_alignment(cl_mem parent, const cl_buffer_region *region)
{
    pthread_mutex_lock(&lock);
    const struct object *of = find(parent, AUDIT_TYPE_BUFFER);
    const struct object *context = of ? find(of->context, AUDIT_TYPE_CONTEXT) : NULL;
    size_t align = context ? context->align_bytes : 1;
    pthread_mutex_unlock(&lock);
    if (region->origin % align != 0)
        violate(AUDIT_RULE_SUB_BUFFER_ALIGNMENT, "clCreateSubBuffer at byte %zu, where %zu bytes are asked for",
                region->origin, align);
}

static void made_part(cl_mem handle, cl_mem parent, cl_mem_flags flags, cl_buffer_create_type type, const void *info,
                      const char *call)
{
    const cl_buffer_region *region = type == CL_BUFFER_CREATE_TYPE_REGION ? info : NULL;
    if (region)
        check_alignment(parent, region);
    struct object *object = begin_object(handle, AUDIT_TYPE_SUB_BUFFER, call);
    if (!object)
        return;
    const struct object *of = find(parent, AUDIT_TYPE_BUFFER);
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
}

/* Defines a creating function. `note` adds the new `handle`. */
#define MAKER(type, name, note, decl, args)    \
    type CL_API_CALL audit_##name decl         \
    {                                          \
        static const char *const call = #name; \
        enter(CALL_##name);                    \
        type handle = next.name args;          \
        note;                                  \
        return handle;                         \
    }

/* One whose object needs no other fields. */
#define PLAIN_MAKER(type, kind, name, decl, args) MAKER(type, name, made(handle, AUDIT_TYPE_##kind, call), decl, args)

MAKER(cl_context, clCreateContext, made_context(handle, call),
      (const cl_context_properties *p, cl_uint n, const cl_device_id *d,
       void(CL_CALLBACK *fn)(const char *, const void *, size_t, void *), void *user, cl_int *e),
      (p, n, d, fn, user, e))
MAKER(cl_command_queue, clCreateCommandQueue,
      made_queue(handle, d, !(p & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE), call),
      (cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int *e), (c, d, p, e))
MAKER(cl_command_queue, clCreateCommandQueueWithProperties, made_queue(handle, d, asks_for_order(p), call),
      (cl_context c, cl_device_id d, const cl_queue_properties *p, cl_int *e), (c, d, p, e))
MAKER(cl_mem, clCreateBuffer, made_buffer(handle, c, f, n, v, call),
      (cl_context c, cl_mem_flags f, size_t n, void *v, cl_int *e), (c, f, n, v, e))
MAKER(cl_mem, clCreateBufferWithProperties, made_buffer(handle, c, f, n, v, call),
      (cl_context c, const cl_mem_properties *p, cl_mem_flags f, size_t n, void *v, cl_int *e), (c, p, f, n, v, e))
MAKER(cl_mem, clCreateSubBuffer, made_part(handle, m, f, t, r, call),
      (cl_mem m, cl_mem_flags f, cl_buffer_create_type t, const void *r, cl_int *e), (m, f, t, r, e))
PLAIN_MAKER(cl_mem, IMAGE, clCreateImage,
            (cl_context c, cl_mem_flags f, const cl_image_format *m, const cl_image_desc *d, void *v, cl_int *e),
            (c, f, m, d, v, e))
PLAIN_MAKER(cl_sampler, SAMPLER, clCreateSampler,
            (cl_context c, cl_bool n, cl_addressing_mode a, cl_filter_mode f, cl_int *e), (c, n, a, f, e))
PLAIN_MAKER(cl_program, PROGRAM, clCreateProgramWithSource,
            (cl_context c, cl_uint n, const char **s, const size_t *l, cl_int *e), (c, n, s, l, e))
PLAIN_MAKER(cl_program, PROGRAM, clCreateProgramWithBinary,
            (cl_context c, cl_uint n, const cl_device_id *d, const size_t *l, const unsigned char **b, cl_int *s,
             cl_int *e),
            (c, n, d, l, b, s, e))
PLAIN_MAKER(cl_program, PROGRAM, clLinkProgram,
            (cl_context c, cl_uint n, const cl_device_id *d, const char *o, cl_uint m, const cl_program *p,
             void(CL_CALLBACK *fn)(cl_program, void *), void *user, cl_int *e),
            (c, n, d, o, m, p, fn, user, e))
PLAIN_MAKER(cl_kernel, KERNEL, clCreateKernel, (cl_program p, const char *n, cl_int *e), (p, n, e))

cl_event CL_API_CALL audit_clCreateUserEvent(cl_context context, cl_int *error)
{
    enter(CALL_clCreateUserEvent);
    if (frames_run())
        violate(AUDIT_RULE_USER_EVENT, "clCreateUserEvent");
    cl_event event = next.clCreateUserEvent(context, error);
    made(event, AUDIT_TYPE_EVENT, "clCreateUserEvent");
    return event;
}

/* Functions that create several objects and store their number in `got`. */
#define SEVERAL(name, kind, decl, args)                                \
    cl_int CL_API_CALL audit_##name decl                               \
    {                                                                  \
        cl_uint got = 0;                                               \
        enter(CALL_##name);                                            \
        cl_int error = next.name args;                                 \
        for (cl_uint i = 0; !error && out && i < got && i < room; i++) \
            made(out[i], AUDIT_TYPE_##kind, #name);                    \
        if (count && !error)                                           \
            *count = got;                                              \
        return error;                                                  \
    }

SEVERAL(clCreateKernelsInProgram, KERNEL, (cl_program p, cl_uint room, cl_kernel *out, cl_uint *count),
        (p, room, out, &got))
SEVERAL(clCreateSubDevices, SUB_DEVICE,
        (cl_device_id d, const cl_device_partition_property *how, cl_uint room, cl_device_id *out, cl_uint *count),
        (d, how, room, out, &got))

static void note_build(const char *call)
{
    if (current_phase == AUDIT_PHASE_STEADY)
        violate(AUDIT_RULE_CREATED_IN_STEADY, "%s", call);
}

cl_int CL_API_CALL audit_clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                                        const char *options, void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    enter(CALL_clBuildProgram);
    note_build("clBuildProgram");
    return next.clBuildProgram(program, count, devices, options, notify, user);
}

cl_int CL_API_CALL audit_clCompileProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                                          const char *options, cl_uint header_count, const cl_program *headers,
                                          const char **names, void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    enter(CALL_clCompileProgram);
    note_build("clCompileProgram");
    return next.clCompileProgram(program, count, devices, options, header_count, headers, names, notify, user);
}

/* Whether the argument is a pointer to const, so that the kernel only reads the buffer. False if the driver does
 * not know. */
static bool is_to_const(cl_kernel kernel, cl_uint index)
{
    cl_kernel_arg_type_qualifier qualifier = 0;
    cl_kernel_arg_address_qualifier space = 0;
    if (next.clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof qualifier, &qualifier, NULL) ||
        next.clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space, NULL))
        return false;
    return space == CL_KERNEL_ARG_ADDRESS_CONSTANT || (qualifier & CL_KERNEL_ARG_TYPE_CONST) != 0;
}

/* An argument with the size of a pointer whose value is a live memory object's handle counts as that object. */
cl_int CL_API_CALL audit_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
    enter(CALL_clSetKernelArg);
    cl_int error = answered(next.clSetKernelArg(kernel, index, bytes, value));
    if (error != CL_SUCCESS)
        return error;
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
