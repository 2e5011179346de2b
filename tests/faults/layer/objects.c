/* Objects of the application. An object is removed before the driver gets its last release, so that a new object at
 * the same address is not taken for the old one. Parts that other objects still need are reference-counted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "faults/layer.h"

#include <stdlib.h>

enum { BUCKETS = 4096 };

static struct object *bucket[BUCKETS];

static struct object **find_place(const void *handle)
{
    size_t hash = (size_t)(((uint64_t)(uintptr_t)handle >> 3) * 0x9e3779b97f4a7c15u >> 52) % BUCKETS;
    struct object **place = &bucket[hash];
    while (*place && (*place)->handle != handle)
        place = &(*place)->next;
    return place;
}

struct object *find_any(const void *handle)
{
    return handle ? *find_place(handle) : NULL;
}

struct object *find_object(const void *handle, enum type type)
{
    struct object *object = find_any(handle);
    return object && object->type == type ? object : NULL;
}

void context_put(struct context *context)
{
    if (context && --context->refs == 0)
        free(context);
}

static void queue_put(struct queue *queue)
{
    if (!queue || --queue->refs > 0)
        return;
    context_put(queue->context);
    free(queue);
}

/* Events of removed commands. They are released after the lock. */
static cl_event *spent_events;
static size_t spent_count, spent_room;

void command_put(struct command *command)
{
    if (!command || --command->refs > 0)
        return;
    if (command->head) {
        if (spent_count == spent_room) {
            spent_room = spent_room ? 2 * spent_room : 64;
            spent_events = realloc(spent_events, spent_room * sizeof(cl_event));
            if (!spent_events)
                abort();
        }
        spent_events[spent_count++] = command->head;
    }
    queue_put(command->queue);
    free(command);
}

void release_spent(void)
{
    for (;;) {
        cl_event event = NULL;
        pthread_mutex_lock(&lock);
        if (spent_count > 0)
            event = spent_events[--spent_count];
        pthread_mutex_unlock(&lock);
        if (!event)
            return;
        next.clReleaseEvent(event);
    }
}

void taint_free(struct taint *taint)
{
    if (--taint->lie->refs == 0)
        free(taint->lie);
    free(taint);
}

static void mem_put(struct mem *mem)
{
    if (!mem || --mem->refs > 0)
        return;
    while (mem->taints) {
        struct taint *taint = mem->taints;
        mem->taints = taint->next;
        taint_free(taint);
    }
    if (mem->root != mem)
        mem_put(mem->root);
    free(mem);
}

static void forget(struct object **place)
{
    struct object *object = *place;
    *place = object->next;
    if (object->queue)
        object->queue->alive = false;
    queue_put(object->queue);
    context_put(object->context);
    mem_put(object->mem);
    command_put(object->command);
    free(object->args);
    free(object);
}

struct object *enter_object(const void *handle, enum type type, uint64_t of_devices, struct context *context)
{
    struct object **place = find_place(handle);
    if (*place)
        forget(place); /* the layer did not see its release */
    struct object *object = must_alloc(1, sizeof *object);
    *object = (struct object){.handle = handle, .type = type, .refs = 1, .devices = of_devices, .context = context};
    if (context)
        context->refs++;
    *place = object;
    return object;
}

struct object *enter_from(const void *handle, enum type type, const void *from)
{
    const struct object *parent = find_any(from);
    return enter_object(handle, type, parent ? parent->devices : 0, parent ? parent->context : NULL);
}

void made(const void *handle, enum type type, const void *from)
{
    if (!handle)
        return;
    pthread_mutex_lock(&lock);
    enter_from(handle, type, from);
    pthread_mutex_unlock(&lock);
}

void doom(struct command *command, uint64_t set, cl_int code)
{
    if (command->doomed || !(bit(command->queue->device) & set))
        return;
    command->doomed = true;
    command->doomed_ns = real_ns();
    command->doom_code = code ? code : CL_OUT_OF_RESOURCES;
    if (command->hold == HELD || command->queue->flush_gates)
        command->queue->context->stuck = true;
}

void doom_objects(uint64_t set, cl_int code)
{
    for (int b = 0; b < BUCKETS; b++)
        for (struct object *object = bucket[b]; object; object = object->next) {
            if (object->context)
                object->context->dead |= object->context->devices & set;
            if (object->command)
                doom(object->command, set, code);
        }
}

struct queue *queue_of(const void *handle)
{
    pthread_mutex_lock(&lock);
    struct object *object = find_object(handle, TYPE_QUEUE);
    struct queue *queue = object ? object->queue : NULL;
    if (queue)
        queue->refs++;
    pthread_mutex_unlock(&lock);
    return queue;
}

void put_queue(struct queue *queue)
{
    pthread_mutex_lock(&lock);
    queue_put(queue);
    pthread_mutex_unlock(&lock);
}

struct command *command_of(cl_event event)
{
    pthread_mutex_lock(&lock);
    struct object *object = find_object(event, TYPE_EVENT);
    struct command *command = object ? object->command : NULL;
    if (command)
        command->refs++;
    pthread_mutex_unlock(&lock);
    return command;
}

void put_command(struct command *command)
{
    pthread_mutex_lock(&lock);
    command_put(command);
    pthread_mutex_unlock(&lock);
    release_spent();
}

/* --- Calls ----------------------------------------------------------------------------------------------- */

static void retained(const void *handle)
{
    pthread_mutex_lock(&lock);
    struct object *object = find_any(handle);
    if (object)
        object->refs++;
    pthread_mutex_unlock(&lock);
}

void released(const void *handle)
{
    pthread_mutex_lock(&lock);
    struct object **place = handle ? find_place(handle) : NULL;
    if (place && *place && --(*place)->refs == 0)
        forget(place);
    pthread_mutex_unlock(&lock);
    release_spent();
}

#define COUNTED(type, retain, release)                         \
    cl_int CL_API_CALL fault_##retain(type handle)             \
    {                                                          \
        cl_int code = arrive_at(FAULT_CALL_##retain, handle);  \
        if (!code && !(code = next.retain(handle)))            \
            retained(handle);                                  \
        return code;                                           \
    }                                                          \
    cl_int CL_API_CALL fault_##release(type handle)            \
    {                                                          \
        cl_int code = arrive_at(FAULT_CALL_##release, handle); \
        if (code)                                              \
            return code;                                       \
        pass_flush(handle); /* releasing a queue flushes it */ \
        released(handle);                                      \
        return next.release(handle);                           \
    }

COUNTED(cl_context, clRetainContext, clReleaseContext)
COUNTED(cl_command_queue, clRetainCommandQueue, clReleaseCommandQueue)
COUNTED(cl_mem, clRetainMemObject, clReleaseMemObject)
COUNTED(cl_program, clRetainProgram, clReleaseProgram)
COUNTED(cl_kernel, clRetainKernel, clReleaseKernel)
COUNTED(cl_event, clRetainEvent, clReleaseEvent)
