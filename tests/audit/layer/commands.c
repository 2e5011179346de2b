/* Commands from their enqueue on, and how the application learns of their end.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "audit/layer.h"

/* Begin a command. Takes the lock, which command_submit releases. Returns NULL if the queue is unknown. */
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
    command->refs = 2; /* in flight, and this call until command_end: another thread may complete the command first */
    command->call = call_name[call];
    command->queue = queue;
    queue->refs++;
    command->blocking = blocking;
    command->deps = must_alloc(wait_count + 1, sizeof *command->deps); /* plus the gate */
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

/* Bytes [offset, offset + bytes) of a buffer. If `bytes` is SIZE_MAX, to its end. */
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
    const struct object *object = find_mem(mem);
    const bool all = bytes == SIZE_MAX;
    if (object && object->bytes && !all && (offset > object->bytes || bytes > object->bytes - offset))
        violate(AUDIT_RULE_OUT_OF_BOUNDS, "a copy");
    add_access(command, mem_access(object, offset, bytes, write));
}

static void touch_host(struct command *command, const void *pointer, size_t bytes, bool write)
{
    uintptr_t from = (uintptr_t)pointer;
    add_access(command, (struct access){.from = from, .to = from + bytes, .write = write});
}

static void touch_all(struct command *command, cl_uint count, const cl_mem *mems, bool write)
{
    for (cl_uint i = 0; mems && i < count; i++)
        touch(command, mems[i], 0, SIZE_MAX, write);
}

/* All accesses are known: check the command, and add it to those in flight. Releases the lock. */
static void command_submit(struct command *command)
{
    if (command) {
        command->number = ++command->queue->last;
        command->queue->thread = pthread_self();
        check_accesses(command);
        enter_flight(command);
    }
    pthread_mutex_unlock(&lock);
}

/* The driver has returned `error`. */
static cl_int command_end(struct command *command, cl_int error, cl_event *event)
{
    answered(error);
    if (!command)
        return error;
    if (error == CL_SUCCESS && event)
        note_created(AUDIT_TYPE_EVENT, command->call);
    pthread_mutex_lock(&lock);
    struct queue *queue = command->queue;
    if (error != CL_SUCCESS) {
        if (queue->last == command->number)
            queue->last--;
        if (queue->flushed > queue->last)
            queue->flushed = queue->last;
        if (!command->done)
            leave_flight(command);
    } else if (event) {
        remember(*event, AUDIT_TYPE_EVENT)->command = command;
        command->refs++;
    }
    if (error == CL_SUCCESS && command->blocking) {
        if (queue->flushed < command->number)
            queue->flushed = command->number;
        complete(command);
    }
    command_put(command);
    pthread_mutex_unlock(&lock);
    return error;
}

/* ---- accesses of a command ---- */

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

static void touch_box(struct command *command, cl_mem mem, struct box box, bool write)
{
    touch(command, mem, box.offset, box.bytes, write);
}

static void touch_host_box(struct command *command, const void *host, struct box box, bool write)
{
    touch_host(command, (const char *)host + box.offset, box.bytes, write);
}

/* A kernel is assumed to write all its buffers, except through pointers to const and if they are CL_MEM_READ_ONLY. */
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

static void touch_launch(struct command *command, cl_kernel kernel, cl_uint dims, const size_t *offset,
                         const size_t *local)
{
    struct object *object = find(kernel, AUDIT_TYPE_KERNEL);
    if (offset)
        violate(AUDIT_RULE_GLOBAL_OFFSET, "clEnqueueNDRangeKernel");
    check_local_size(object, dims, local);
    touch_args(command, object);
}

/* In an out-of-order queue, markers and barriers without a wait list wait for all commands in flight. Later
 * commands wait for a barrier. */
static void place_in_queue(struct command *command, bool behind_all, bool gate)
{
    if (!command || command->queue->in_order)
        return;
    if (behind_all) {
        struct command **deps = must_alloc(command->dep_count + in_flight(command->queue, NULL), sizeof *deps);
        memcpy(deps, command->deps, command->dep_count * sizeof *deps);
        free(command->deps);
        command->deps = deps;
        command->dep_count += in_flight(command->queue, deps + command->dep_count);
    }
    if (gate)
        command->queue->gate = command;
}

/* ---- enqueuing ---- */

#define WAIT cl_uint wait_count, const cl_event *wait, cl_event *event
#define REST wait_count, wait, event

/* Defines a command. The last argument adds its accesses. */
#define COMMAND(name, blocking, decl, args, ...)                                                 \
    cl_int CL_API_CALL audit_##name decl                                                         \
    {                                                                                            \
        struct command *command = command_begin(CALL_##name, queue, wait_count, wait, blocking); \
        __VA_ARGS__;                                                                             \
        command_submit(command);                                                                 \
        return command_end(command, next.name args, event);                                      \
    }

COMMAND(clEnqueueReadBuffer, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, size_t o, size_t n, void *v, WAIT),
        (queue, m, blocking, o, n, v, REST), touch(command, m, o, n, false), touch_host(command, v, n, true))
COMMAND(clEnqueueWriteBuffer, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, size_t o, size_t n, const void *v, WAIT),
        (queue, m, blocking, o, n, v, REST), touch(command, m, o, n, true), touch_host(command, v, n, false))
COMMAND(clEnqueueCopyBuffer, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, size_t from, size_t to, size_t n, WAIT),
        (queue, a, b, from, to, n, REST), touch(command, a, from, n, false), touch(command, b, to, n, true))
COMMAND(clEnqueueFillBuffer, CL_FALSE,
        (cl_command_queue queue, cl_mem m, const void *v, size_t pattern, size_t o, size_t n, WAIT),
        (queue, m, v, pattern, o, n, REST), touch(command, m, o, n, true))
COMMAND(clEnqueueReadBufferRect, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *o, const size_t *ho, const size_t *r,
         size_t row, size_t slice, size_t hrow, size_t hslice, void *v, WAIT),
        (queue, m, blocking, o, ho, r, row, slice, hrow, hslice, v, REST),
        touch_box(command, m, box_range(o, r, row, slice), false),
        touch_host_box(command, v, box_range(ho, r, hrow, hslice), true))
COMMAND(clEnqueueWriteBufferRect, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *o, const size_t *ho, const size_t *r,
         size_t row, size_t slice, size_t hrow, size_t hslice, const void *v, WAIT),
        (queue, m, blocking, o, ho, r, row, slice, hrow, hslice, v, REST),
        touch_box(command, m, box_range(o, r, row, slice), true),
        touch_host_box(command, v, box_range(ho, r, hrow, hslice), false))
COMMAND(clEnqueueCopyBufferRect, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, const size_t *o, const size_t *p, const size_t *r, size_t row,
         size_t slice, size_t brow, size_t bslice, WAIT),
        (queue, a, b, o, p, r, row, slice, brow, bslice, REST),
        touch_box(command, a, box_range(o, r, row, slice), false),
        touch_box(command, b, box_range(p, r, brow, bslice), true))
COMMAND(clEnqueueMigrateMemObjects, CL_FALSE,
        (cl_command_queue queue, cl_uint n, const cl_mem *m, cl_mem_migration_flags f, WAIT), (queue, n, m, f, REST),
        touch_all(command, n, m, (f & CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED) != 0))
COMMAND(clEnqueueNDRangeKernel, CL_FALSE,
        (cl_command_queue queue, cl_kernel k, cl_uint dims, const size_t *offset, const size_t *global,
         const size_t *local, WAIT),
        (queue, k, dims, offset, global, local, REST), touch_launch(command, k, dims, offset, local))
COMMAND(clEnqueueMarkerWithWaitList, CL_FALSE, (cl_command_queue queue, WAIT), (queue, REST),
        place_in_queue(command, wait_count == 0, false))
COMMAND(clEnqueueBarrierWithWaitList, CL_FALSE, (cl_command_queue queue, WAIT), (queue, REST),
        place_in_queue(command, wait_count == 0, true))

/* The ranges of these are not known. */
COMMAND(clEnqueueReadImage, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *o, const size_t *r, size_t p, size_t s,
         void *v, WAIT),
        (queue, m, blocking, o, r, p, s, v, REST))
COMMAND(clEnqueueWriteImage, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *o, const size_t *r, size_t p, size_t s,
         const void *v, WAIT),
        (queue, m, blocking, o, r, p, s, v, REST))
COMMAND(clEnqueueFillImage, CL_FALSE,
        (cl_command_queue queue, cl_mem m, const void *c, const size_t *o, const size_t *r, WAIT),
        (queue, m, c, o, r, REST))
COMMAND(clEnqueueCopyImage, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, const size_t *o, const size_t *p, const size_t *r, WAIT),
        (queue, a, b, o, p, r, REST))
COMMAND(clEnqueueCopyImageToBuffer, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, const size_t *o, const size_t *r, size_t n, WAIT),
        (queue, a, b, o, r, n, REST))
COMMAND(clEnqueueCopyBufferToImage, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, size_t n, const size_t *o, const size_t *r, WAIT),
        (queue, a, b, n, o, r, REST))

/* ---- mapping ---- */

static void note_mapping(struct mapping mapping, const char *call)
{
    note_created(AUDIT_TYPE_MAPPING, call);
    atomic_fetch_add(&live_count[AUDIT_TYPE_MAPPING], 1);
    struct mapping *map = must_alloc(1, sizeof *map);
    *map = mapping;
    pthread_mutex_lock(&lock);
    map->next = mappings;
    mappings = map;
    pthread_mutex_unlock(&lock);
}

/* A map brings the contents to the host. If they are in the application's memory, the driver may write there,
 * except for an object that no kernel can have changed. An unmap after writing brings them back: it writes the
 * buffer and only reads the application's memory. */
void *CL_API_CALL audit_clEnqueueMapBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags flags,
                                           size_t offset, size_t bytes, WAIT, cl_int *error)
{
    cl_int answer = CL_SUCCESS;
    struct command *command = command_begin(CALL_clEnqueueMapBuffer, queue, wait_count, wait, blocking);
    const struct object *object = find_mem(mem);
    struct access access = mem_access(object, offset, bytes, false);
    struct access checked = access;
    bool in_host = object && object->host;
    checked.write = in_host && !(flags & CL_MAP_WRITE_INVALIDATE_REGION) && !(object->flags & CL_MEM_READ_ONLY);
    checked.root = 0; /* mapping a mapped region is allowed */
    add_access(command, checked);
    if (command && in_host && !(flags & CL_MAP_WRITE_INVALIDATE_REGION))
        forget_written(access.from, access.to, access.root);
    command_submit(command);
    void *pointer = next.clEnqueueMapBuffer(queue, mem, blocking, flags, offset, bytes, wait_count, wait, event,
                                            &answer);
    command_end(command, answer, event);
    if (answer == CL_SUCCESS)
        note_mapping((struct mapping){.mem = mem,
                                      .pointer = pointer,
                                      .flags = flags,
                                      .in_host = in_host,
                                      .access = access},
                     "clEnqueueMapBuffer");
    if (error)
        *error = answer;
    return pointer;
}

cl_int CL_API_CALL audit_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem mem, void *pointer, WAIT)
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

void *CL_API_CALL audit_clEnqueueMapImage(cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags flags,
                                          const size_t *origin, const size_t *region, size_t *row_pitch,
                                          size_t *slice_pitch, WAIT, cl_int *error)
{
    cl_int answer = CL_SUCCESS;
    struct command *command = command_begin(CALL_clEnqueueMapImage, queue, wait_count, wait, blocking);
    command_submit(command);
    void *pointer = next.clEnqueueMapImage(queue, mem, blocking, flags, origin, region, row_pitch, slice_pitch,
                                           wait_count, wait, event, &answer);
    command_end(command, answer, event);
    if (error)
        *error = answer;
    if (answer == CL_SUCCESS)
        note_mapping((struct mapping){.mem = mem, .pointer = pointer, .flags = flags}, "clEnqueueMapImage");
    return pointer;
}

/* --- Flushing, waiting, polling -------------------------------------------------------------------------- */

/* clFlush and clFinish: flush the queue. With `finish`, all its commands are complete afterwards. */
static cl_int pass_sync(enum call call, cl_command_queue handle, __typeof__(&clFlush) function, bool finish)
{
    enter(call);
    if (finish && frames_run())
        violate(AUDIT_RULE_BLOCKING_WAIT, "%s", call_name[call]);
    pthread_mutex_lock(&lock);
    struct object *object = find(handle, AUDIT_TYPE_QUEUE);
    if (finish)
        check_flushed(call_name[call], object ? object->queue : NULL);
    uint64_t up_to = object ? object->queue->last : 0;
    pthread_mutex_unlock(&lock);

    cl_int error = answered(function(handle));
    if (error != CL_SUCCESS)
        return error;

    pthread_mutex_lock(&lock);
    object = find(handle, AUDIT_TYPE_QUEUE);
    if (object && object->queue->flushed < up_to)
        object->queue->flushed = up_to;
    if (object && finish)
        complete_queue(object->queue, up_to);
    pthread_mutex_unlock(&lock);
    return error;
}

cl_int CL_API_CALL audit_clFlush(cl_command_queue queue)
{
    return pass_sync(CALL_clFlush, queue, next.clFlush, false);
}

cl_int CL_API_CALL audit_clFinish(cl_command_queue queue)
{
    return pass_sync(CALL_clFinish, queue, next.clFinish, true);
}

/* Under the lock: the application has seen the end of this event's command. */
static void event_over(cl_event event)
{
    struct object *object = find(event, AUDIT_TYPE_EVENT);
    if (object && object->command && !object->command->done)
        complete(object->command);
}

cl_int CL_API_CALL audit_clWaitForEvents(cl_uint count, const cl_event *events)
{
    enter(CALL_clWaitForEvents);
    if (frames_run())
        violate(AUDIT_RULE_BLOCKING_WAIT, "clWaitForEvents");
    pthread_mutex_lock(&lock);
    check_flushed("clWaitForEvents", NULL);
    for (cl_uint i = 0; events && i < count; i++)
        check_event_flushed("clWaitForEvents", find(events[i], AUDIT_TYPE_EVENT));
    pthread_mutex_unlock(&lock);
    cl_int error = answered(next.clWaitForEvents(count, events));
    if (error == CL_SUCCESS || error == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
        pthread_mutex_lock(&lock);
        for (cl_uint i = 0; events && i < count; i++)
            event_over(events[i]);
        pthread_mutex_unlock(&lock);
    }
    return error;
}

cl_int CL_API_CALL audit_clGetEventInfo(cl_event event, cl_event_info info, size_t bytes, void *value, size_t *got)
{
    enter(CALL_clGetEventInfo);
    if (info != CL_EVENT_COMMAND_EXECUTION_STATUS)
        return next.clGetEventInfo(event, info, bytes, value, got);
    pthread_mutex_lock(&lock);
    check_flushed("clGetEventInfo", NULL);
    check_event_flushed("clGetEventInfo", find(event, AUDIT_TYPE_EVENT));
    pthread_mutex_unlock(&lock);
    cl_int error = answered(next.clGetEventInfo(event, info, bytes, value, got));
    if (error == CL_SUCCESS && value && *(cl_int *)value <= CL_COMPLETE) {
        pthread_mutex_lock(&lock);
        event_over(event);
        pthread_mutex_unlock(&lock);
    }
    return error;
}

/* --- Callbacks ------------------------------------------------------------------------------------------- */

/* Never freed, since a driver may call late or never. */
struct callback {
    struct callback *next;
    void(CL_CALLBACK *fn)(cl_event, cl_int, void *);
    void *user;
    bool free;
};
static struct callback *callbacks; /* finished ones are reused */

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

cl_int CL_API_CALL audit_clSetEventCallback(cl_event event, cl_int type,
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
    cl_int error = answered(next.clSetEventCallback(event, type, run_callback, callback));
    if (error != CL_SUCCESS) {
        pthread_mutex_lock(&lock);
        callback->free = true;
        pthread_mutex_unlock(&lock);
    }
    return error;
}
