/* Creation of contexts, queues, memory, programs and kernels.
 * SPDX-License-Identifier: Apache-2.0 */
#include "faults/layer.h"

#include <string.h>

static void made_context(cl_context handle, uint64_t set)
{
    if (!handle)
        return;
    struct context *context = must_alloc(1, sizeof *context);
    context->devices = set;
    pthread_mutex_lock(&lock);
    enter_object(handle, TYPE_CONTEXT, set, context);
    pthread_mutex_unlock(&lock);
}

static void made_queue(cl_command_queue handle, cl_context context, uint64_t set)
{
    if (!handle)
        return;
    pthread_mutex_lock(&lock);
    const struct object *of = find_object(context, TYPE_CONTEXT);
    if (of && set) {
        struct queue *queue = must_alloc(1, sizeof *queue);
        *queue = (struct queue){
            .refs = 1, .handle = handle, .alive = true, .context_handle = context, .context = of->context};
        queue->context->refs++;
        while (!(set & bit(queue->device)))
            queue->device++;
        enter_object(handle, TYPE_QUEUE, set, queue->context)->queue = queue;
    }
    pthread_mutex_unlock(&lock);
}

static void made_buffer(cl_mem handle, cl_context context, cl_mem_flags flags, size_t bytes)
{
    if (!handle)
        return;
    struct mem *mem = must_alloc(1, sizeof *mem);
    *mem = (struct mem){.refs = 1, .root = mem, .bytes = bytes, .flags = flags};
    pthread_mutex_lock(&lock);
    enter_from(handle, TYPE_MEM, context)->mem = mem;
    pthread_mutex_unlock(&lock);
}

static void made_sub_buffer(cl_mem handle, cl_mem parent, cl_mem_flags flags, cl_buffer_create_type type,
                            const cl_buffer_region *region)
{
    if (!handle)
        return;
    pthread_mutex_lock(&lock);
    const struct object *of = find_object(parent, TYPE_MEM);
    struct mem *mem = NULL;
    if (of && type == CL_BUFFER_CREATE_TYPE_REGION && region) {
        const cl_mem_flags access = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
        mem = must_alloc(1, sizeof *mem);
        *mem = (struct mem){.refs = 1,
                            .root = of->mem->root,
                            .from = of->mem->from + region->origin,
                            .bytes = region->size,
                            .flags = flags & access ? flags : of->mem->flags};
        mem->root->refs++;
    }
    enter_from(handle, mem ? TYPE_MEM : TYPE_OTHER, parent)->mem = mem;
    pthread_mutex_unlock(&lock);
}

/* A call with a context and one of its devices. */
static cl_int arrive_in(int call, cl_context context, cl_device_id id)
{
    pthread_mutex_lock(&lock);
    const struct object *object = find_object(context, TYPE_CONTEXT);
    struct context *of = object ? object->context : NULL;
    pthread_mutex_unlock(&lock);
    return arrive_on(call, set_of(&id, 1), of);
}

/* A build names its devices, or uses all of the program's. */
static cl_int arrive_build(int call, const void *handle, cl_uint count, const cl_device_id *ids)
{
    return count == 0 || !ids ? arrive_at(call, handle) : arrive_on(call, set_of(ids, count), NULL);
}

/* Defines a creating function, whose last parameter is `error`. `arrive` chooses the faults of `call`; `enter` adds
 * the new `handle`. */
#define MAKER(result, name, arrive, enter, decl, args) \
    result CL_API_CALL fault_##name decl               \
    {                                                  \
        const int call = FAULT_CALL_##name;            \
        cl_int code = arrive;                          \
        if (code) {                                    \
            if (error)                                 \
                *error = code;                         \
            return NULL;                               \
        }                                              \
        result handle = next.name args;                \
        enter;                                         \
        return handle;                                 \
    }

MAKER(cl_context, clCreateContext, arrive_on(call, set_of(d, n), NULL), made_context(handle, set_of(d, n)),
      (const cl_context_properties *p, cl_uint n, const cl_device_id *d,
       void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *error),
      (p, n, d, notify, user, error))
MAKER(cl_command_queue, clCreateCommandQueue, arrive_in(call, c, d), made_queue(handle, c, set_of(&d, 1)),
      (cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int *error), (c, d, p, error))
MAKER(cl_command_queue, clCreateCommandQueueWithProperties, arrive_in(call, c, d), made_queue(handle, c, set_of(&d, 1)),
      (cl_context c, cl_device_id d, const cl_queue_properties *p, cl_int *error), (c, d, p, error))
MAKER(cl_mem, clCreateBuffer, arrive_at(call, c), made_buffer(handle, c, f, n),
      (cl_context c, cl_mem_flags f, size_t n, void *v, cl_int *error), (c, f, n, v, error))
MAKER(cl_mem, clCreateBufferWithProperties, arrive_at(call, c), made_buffer(handle, c, f, n),
      (cl_context c, const cl_mem_properties *p, cl_mem_flags f, size_t n, void *v, cl_int *error),
      (c, p, f, n, v, error))
MAKER(cl_mem, clCreateSubBuffer, arrive_at(call, m), made_sub_buffer(handle, m, f, t, r),
      (cl_mem m, cl_mem_flags f, cl_buffer_create_type t, const void *r, cl_int *error), (m, f, t, r, error))
MAKER(cl_mem, clCreateImage, arrive_at(call, c), made(handle, TYPE_OTHER, c),
      (cl_context c, cl_mem_flags f, const cl_image_format *m, const cl_image_desc *d, void *v, cl_int *error),
      (c, f, m, d, v, error))
MAKER(cl_sampler, clCreateSampler, arrive_at(call, c), made(handle, TYPE_OTHER, c),
      (cl_context c, cl_bool n, cl_addressing_mode a, cl_filter_mode f, cl_int *error), (c, n, a, f, error))
MAKER(cl_event, clCreateUserEvent, arrive_at(call, c), made(handle, TYPE_OTHER, c), (cl_context c, cl_int *error),
      (c, error))
MAKER(cl_program, clCreateProgramWithSource, arrive_at(call, c), made(handle, TYPE_PROGRAM, c),
      (cl_context c, cl_uint n, const char **s, const size_t *l, cl_int *error), (c, n, s, l, error))
MAKER(cl_program, clCreateProgramWithBinary, arrive_at(call, c), made(handle, TYPE_PROGRAM, c),
      (cl_context c, cl_uint n, const cl_device_id *d, const size_t *l, const unsigned char **b, cl_int *s,
       cl_int *error),
      (c, n, d, l, b, s, error))
MAKER(cl_program, clLinkProgram, arrive_build(call, c, n, d), made(handle, TYPE_PROGRAM, c),
      (cl_context c, cl_uint n, const cl_device_id *d, const char *o, cl_uint m, const cl_program *p,
       void(CL_CALLBACK *notify)(cl_program, void *), void *user, cl_int *error),
      (c, n, d, o, m, p, notify, user, error))
MAKER(cl_kernel, clCreateKernel, arrive_at(call, p), made(handle, TYPE_KERNEL, p),
      (cl_program p, const char *n, cl_int *error), (p, n, error))

cl_int CL_API_CALL fault_clBuildProgram(cl_program program, cl_uint count, const cl_device_id *ids, const char *options,
                                        void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    cl_int code = arrive_build(FAULT_CALL_clBuildProgram, program, count, ids);
    return code ? code : next.clBuildProgram(program, count, ids, options, notify, user);
}

cl_int CL_API_CALL fault_clCompileProgram(cl_program program, cl_uint count, const cl_device_id *ids,
                                          const char *options, cl_uint header_count, const cl_program *headers,
                                          const char **names, void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    cl_int code = arrive_build(FAULT_CALL_clCompileProgram, program, count, ids);
    return code ? code
                : next.clCompileProgram(program, count, ids, options, header_count, headers, names, notify, user);
}

cl_int CL_API_CALL fault_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
    cl_int code = arrive_at(FAULT_CALL_clSetKernelArg, kernel);
    if (code)
        return code;
    code = next.clSetKernelArg(kernel, index, bytes, value);
    if (code || index >= ARGS_MAX)
        return code;
    cl_mem mem = NULL;
    if (bytes == sizeof mem && value)
        memcpy(&mem, value, sizeof mem);
    pthread_mutex_lock(&lock);
    struct object *object = find_object(kernel, TYPE_KERNEL);
    if (object && !find_object(mem, TYPE_MEM))
        mem = NULL;
    if (object && (mem || object->args)) {
        if (!object->args)
            object->args = must_alloc(ARGS_MAX, sizeof(cl_mem));
        object->args[index] = mem;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

cl_int CL_API_CALL fault_clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id id, cl_kernel_work_group_info info,
                                                  size_t bytes, void *value, size_t *got)
{
    cl_int code = arrive_at(FAULT_CALL_clGetKernelWorkGroupInfo, kernel);
    return code ? code : next.clGetKernelWorkGroupInfo(kernel, id, info, bytes, value, got);
}
