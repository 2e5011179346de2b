/* The application's calls on buffers: create, wrap, destroy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "buffer.h"
#include "engine/home.h"
#include "misuse.h"

#include <stdlib.h>

cox_status cox__buffer_make(cox_runtime *runtime, struct cox__mem *mem, bool wrapped,
                            cox_buffer **out)
{
    cox_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return COX_E_NOMEM;

    buffer->runtime = runtime;
    buffer->bytes = runtime->backend->ops->mem_bytes(mem);
    buffer->wrapped = wrapped;
    atomic_init(&buffer->refs, 1);
    atomic_init(&buffer->mem, mem);
    atomic_fetch_add(&runtime->alive.buffers, 1);

    *out = buffer;
    return COX_OK;
}

static cox_status make_buffer(cox_runtime *runtime, void *data, size_t bytes, cox_buffer **out)
{
    struct cox__backend *backend = runtime->backend;
    struct cox__mem *mem;
    cox_status status = backend->ops->mem_create(backend, data, bytes, &mem);
    if (status == COX_OK) {
        status = cox__buffer_make(runtime, mem, data != NULL, out);
        if (status)
            backend->ops->mem_destroy(backend, mem);
    }

    if (status)
        cox__log(&runtime->log, COX_LOG_ERROR, "%s: %zu bytes: %s",
                 data ? "cox_buffer_wrap" : "cox_buffer_create", bytes, cox_status_text(status));
    return status;
}

/* Whether `function` can make a buffer here. Sets `*out` to NULL. */
static bool can_make(const cox_runtime *runtime, cox_buffer **out, const char *function)
{
    if (out)
        *out = NULL;

    return runtime && !cox__misuse_null(runtime, out, function, "out") &&
           !cox__misuse_forked(runtime, function);
}

cox_status cox_buffer_create(cox_runtime *runtime, size_t bytes, cox_buffer **out)
{
    if (!can_make(runtime, out, "cox_buffer_create"))
        return COX_E_INVALID;

    if (!bytes || bytes > SIZE_MAX / 2) {
        cox__log(&runtime->log, COX_LOG_ERROR, "cox_buffer_create: %zu bytes; allowed: 1 to %zu",
                 bytes, SIZE_MAX / 2);
        return COX_E_INVALID;
    }

    return make_buffer(runtime, NULL, bytes, out);
}

cox_status cox_buffer_wrap(cox_runtime *runtime, void *data, size_t bytes,
                           cox_released_fn *released, void *user, cox_buffer **out)
{
    if (!can_make(runtime, out, "cox_buffer_wrap"))
        return COX_E_INVALID;

    if (!data || !bytes || bytes > SIZE_MAX / 2) {
        cox__log(&runtime->log, COX_LOG_ERROR,
                 "cox_buffer_wrap: %zu bytes at %p; allowed: 1 to %zu, not at NULL", bytes, data,
                 SIZE_MAX / 2);
        return COX_E_INVALID;
    }

    const cox_status status = make_buffer(runtime, data, bytes, out);
    if (status == COX_OK) {
        struct cox__mem_link *link = runtime->backend->ops->mem_link((*out)->mem);
        link->released = released;
        link->user = user;
    }

    return status;
}

/* Whether frames use the buffer. Inside a callback, its own frame does not count. */
static bool is_in_use(const cox_buffer *buffer, bool in_callback)
{
    const unsigned refs = atomic_load(&buffer->refs);
    unsigned own = 1;
    if (in_callback)
        own += atomic_load(&buffer->leaving);

    return refs > own;
}

bool cox__buffer_wait(cox_buffer *buffer, const char *function)
{
    cox_runtime *runtime = buffer->runtime;
    const bool in_callback = cox__watchdog_is_held_here(runtime->watchdog);
    if (is_in_use(buffer, in_callback) && cox__misuse_in_callback(runtime, function))
        return false;

    pthread_mutex_lock(&runtime->release.lock);
    while (is_in_use(buffer, in_callback))
        pthread_cond_wait(&runtime->release.given_back, &runtime->release.lock);
    pthread_mutex_unlock(&runtime->release.lock);

    return true;
}

/* Let go of the application's memory. False: a device may still touch it. */
static bool give_back(cox_buffer *buffer)
{
    if (cox__memory_drop(buffer->runtime, atomic_exchange(&buffer->mem, NULL)))
        return true;

    cox__log(&buffer->runtime->log, COX_LOG_ERROR,
             "cox_buffer_destroy: a hung device may still access %zu bytes of wrapped memory; do "
             "not reuse them",
             buffer->bytes);
    return false;
}

cox_status cox__buffer_take_back(cox_buffer **out)
{
    cox_buffer *buffer = *out;
    cox_runtime *runtime = buffer->runtime;
    if (cox__misuse_forked(runtime, "cox_buffer_destroy"))
        return COX_E_INVALID;

    /* Without a `released` function the caller must know when its memory is free. */
    cox_status status = COX_OK;
    if (buffer->wrapped && !runtime->backend->ops->mem_link(buffer->mem)->released) {
        if (!cox__buffer_wait(buffer, "cox_buffer_destroy of wrapped memory in use"))
            return COX_E_INVALID;
        if (!give_back(buffer))
            status = COX_E_MEMORY_UNSAFE;
    }

    *out = NULL;
    cox__buffers_unref(buffer);
    atomic_fetch_sub(&runtime->alive.buffers, 1); /* the runtime may go from here on */
    return status;
}

void cox_buffer_destroy(cox_buffer **out)
{
    if (out && *out)
        cox__buffer_take_back(out);
}

void cox_buffer_changed(cox_buffer *buffer)
{
    if (buffer)
        atomic_fetch_add(&buffer->changes, 1);
}

size_t cox_buffer_bytes(const cox_buffer *buffer)
{
    return buffer ? buffer->runtime->backend->ops->mem_bytes(buffer->mem) : 0;
}

void *cox_buffer_data(const cox_buffer *buffer)
{
    if (!buffer)
        return NULL;

    struct cox__mem_home home;
    if (cox__home_find(buffer->runtime, buffer->mem, &home))
        return NULL;

    return buffer->runtime->backend->ops->mem_data(buffer->mem);
}
