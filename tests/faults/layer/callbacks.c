/* The application's callbacks, which pass through the layer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "faults/layer.h"

#include <stdlib.h>

static struct callback *callbacks;

static void unlink_callback(struct callback *callback)
{
    *(callback->prev ? &callback->prev->next : &callbacks) = callback->next;
    if (callback->next)
        callback->next->prev = callback->prev;
}

static void free_callback(struct callback *callback)
{
    pthread_mutex_lock(&lock);
    unlink_callback(callback);
    command_put(callback->command);
    pthread_mutex_unlock(&lock);
    next.clReleaseEvent(callback->event);
    free(callback);
}

void deliver(struct callback *callback, cl_int status)
{
    struct line *line = callback->command->faults.by[FAULT_KIND_CALLBACK];
    if (line && line->plan.callback == FAULT_CALLBACK_WRONG_STATUS)
        status = status < 0 ? CL_COMPLETE : CL_OUT_OF_RESOURCES;
    if (line)
        struck(line);
    callback->fn(callback->event, status, callback->user);
    if (line && line->plan.callback == FAULT_CALLBACK_TWICE)
        callback->fn(callback->event, status, callback->user);
    free_callback(callback);
}

/* Called by the driver. */
static void CL_CALLBACK on_callback(cl_event event, cl_int real, void *user)
{
    struct callback *callback = user;
    (void)event;
    pthread_mutex_lock(&lock);
    struct line *line = callback->command->faults.by[FAULT_KIND_CALLBACK];
    cl_int status = visible(callback->command, real);
    const bool over = callback->made, wait = status > CL_COMPLETE;
    const bool late = line && line->plan.callback == FAULT_CALLBACK_LATE;
    callback->made |= !wait;
    callback->status = status;
    if (!over && !wait && late)
        add_job(&(struct job){.kind = JOB_CALL, .due_ns = now_ns() + line->plan.time_ns, .callback = callback});
    pthread_mutex_unlock(&lock);
    if (over)
        free_callback(callback);
    else if (!wait && !late)
        deliver(callback, status);
}

void doom_callbacks(uint64_t set, cl_int code)
{
    for (struct callback *callback = callbacks; callback; callback = callback->next)
        doom(callback->command, set, code);
    if (callbacks)
        look_for_doomed();
}

bool deliver_doomed(void)
{
    bool left = false;
    for (;;) {
        struct callback *due = NULL, call = {0};
        left = false;
        pthread_mutex_lock(&lock);
        for (struct callback *callback = callbacks; callback && !due; callback = callback->next) {
            if (callback->made || !callback->command->doomed)
                continue;
            /* While its command still runs, the driver will call it. */
            left = true;
            if (visible(callback->command, CL_RUNNING) < 0 || callback->command->faults.by[FAULT_KIND_NEVER_SEEN]) {
                due = callback;
                call = *callback;
                call.status = callback->command->doom_code;
                callback->made = true; /* it stays in the list, since the driver has its address */
            }
        }
        pthread_mutex_unlock(&lock);
        if (!due)
            return left;
        call.fn(call.event, call.status, call.user);
    }
}

cl_int CL_API_CALL fault_clSetEventCallback(cl_event event, cl_int type,
                                            void(CL_CALLBACK *fn)(cl_event, cl_int, void *), void *user)
{
    cl_int code = arrive_at(FAULT_CALL_clSetEventCallback, event);
    if (code)
        return code;
    struct command *command = fn && type == CL_COMPLETE ? command_of(event) : NULL;
    if (!command)
        return next.clSetEventCallback(event, type, fn, user);
    struct line *line = command->faults.by[FAULT_KIND_CALLBACK];
    if (line && (line->plan.callback == FAULT_CALLBACK_DROP || line->plan.callback == FAULT_CALLBACK_EARLY)) {
        struck(line);
        if (line->plan.callback == FAULT_CALLBACK_EARLY)
            fn(event, CL_COMPLETE, user);
        put_command(command);
        return CL_SUCCESS;
    }
    struct callback *callback = must_alloc(1, sizeof *callback);
    *callback = (struct callback){.fn = fn, .user = user, .event = event, .command = command};
    next.clRetainEvent(event);
    pthread_mutex_lock(&lock);
    callback->next = callbacks;
    if (callbacks)
        callbacks->prev = callback;
    callbacks = callback;
    if (command->doomed)
        look_for_doomed();
    pthread_mutex_unlock(&lock);
    code = next.clSetEventCallback(event, type, on_callback, callback);
    if (code)
        free_callback(callback);
    return code;
}
