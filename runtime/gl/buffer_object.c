/* Buffer objects: mapped for the host, or copied by OpenCL, and given back to OpenGL.
 * SPDX-License-Identifier: Apache-2.0 */
#include "buffer_object.h"
#include "api/buffer.h"

#include <stdlib.h>

/* The target that buffer objects are bound to here. Applications rarely use it. */
enum { TARGET = GL_COPY_WRITE_BUFFER };

static int32_t bind(const cox_gl *gl, uint32_t object)
{
    int32_t bound = 0;
    gl->gl.GetIntegerv(TARGET, &bound);
    gl->gl.BindBuffer(TARGET, object);
    return bound;
}

bool cox__gl_buffer_object_enter(const cox_gl_buffer *buffer, enum cox__gl_owner owner,
                                 const char *function)
{
    static const char *const who[] = {[COX__GL_OF_GL] = "OpenGL has",
                                      [COX__GL_OF_HOST] = "the host has",
                                      [COX__GL_UNSAFE] = "a hung device may still use"};
    const cox_gl *gl = buffer->gl;
    if (!cox__gl_enter(gl, function))
        return false;

    if (buffer->owner != owner) {
        cox__log(&gl->runtime->log, COX_LOG_ERROR, "%s: %s the buffer", function,
                 who[buffer->owner]);
        return false;
    }
    if (buffer->given && !gl->gl.IsBuffer(buffer->object)) {
        cox__log(&gl->runtime->log, COX_LOG_ERROR, "%s: the buffer object %u was deleted", function,
                 buffer->object);
        return false;
    }
    return true;
}

static void drop_fence(cox_gl_buffer *buffer)
{
    if (buffer->fence)
        buffer->gl->gl.DeleteSync(buffer->fence);
    buffer->fence = NULL;
}

void cox__gl_buffer_object_fence(cox_gl_buffer *buffer)
{
    const struct cox__gl_functions *gl = &buffer->gl->gl;

    drop_fence(buffer);
    buffer->fence = gl->FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl->Flush();
}

/* ---- mapping ---- */

static uint32_t map_bits(enum cox_gl_access access)
{
    switch (access) {
    case COX_GL_READ:
        return GL_MAP_READ_BIT;
    case COX_GL_WRITE:
        return GL_MAP_WRITE_BIT;
    default:
        return GL_MAP_READ_BIT | GL_MAP_WRITE_BIT;
    }
}

/* Map the buffer object, and wrap the mapping in a buffer. */
static cox_status map(cox_gl_buffer *buffer, const char *function)
{
    const cox_gl *gl = buffer->gl;
    uint32_t bits = map_bits(buffer->access);
    if (buffer->persistent)
        bits |= GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT;
    else if (bits == GL_MAP_WRITE_BIT)
        bits |= GL_MAP_INVALIDATE_RANGE_BIT;

    const int32_t bound = bind(gl, buffer->object);
    buffer->mapped = gl->gl.MapBufferRange(TARGET, (ptrdiff_t)buffer->offset,
                                           (ptrdiff_t)buffer->bytes, bits);
    cox_status status = cox__gl_status(gl, function, "glMapBufferRange");
    if (!status && !buffer->mapped) {
        cox__log(&gl->runtime->log, COX_LOG_ERROR, "%s: glMapBufferRange returned NULL", function);
        status = COX_E_DEVICE_MEMORY;
    }
    if (!status)
        status = cox_buffer_wrap(gl->runtime, buffer->mapped, buffer->bytes, NULL, NULL,
                                 &buffer->memory);

    if (status && buffer->mapped) {
        gl->gl.UnmapBuffer(TARGET);
        buffer->mapped = NULL;
    }
    gl->gl.BindBuffer(TARGET, (uint32_t)bound);
    return status;
}

static cox_status unmap(cox_gl_buffer *buffer, const char *function)
{
    const cox_gl *gl = buffer->gl;
    const int32_t bound = bind(gl, buffer->object);
    const bool kept = gl->gl.UnmapBuffer(TARGET);
    cox_status status = cox__gl_status(gl, function, "glUnmapBuffer");
    gl->gl.BindBuffer(TARGET, (uint32_t)bound);
    buffer->mapped = NULL;

    if (!status && !kept) {
        cox__log(&gl->runtime->log, COX_LOG_ERROR,
                 "%s: the GL driver lost the buffer object's contents", function);
        status = COX_E_DEVICE_LOST;
    }
    return status;
}

/* ---- create and destroy ---- */

static int64_t parameter(const cox_gl *gl, uint32_t name)
{
    int64_t value = 0;
    gl->gl.GetBufferParameteri64v(TARGET, name, &value);
    return value;
}

/* What the application's buffer object, which is bound, allows. */
static cox_status inspect(cox_gl_buffer *buffer, const char *function)
{
    const cox_gl *gl = buffer->gl;
    const struct cox__log *log = &gl->runtime->log;
    const uint32_t needed = map_bits(buffer->access);

    const size_t bytes = (size_t)parameter(gl, GL_BUFFER_SIZE);
    if (buffer->offset >= bytes || buffer->bytes > bytes - buffer->offset) {
        cox__log(log, COX_LOG_ERROR,
                 "%s: %zu bytes at offset %zu, but the buffer object %u has %zu", function,
                 buffer->bytes, buffer->offset, buffer->object, bytes);
        return COX_E_INVALID;
    }
    if (!buffer->bytes)
        buffer->bytes = bytes - buffer->offset;

    if (gl->sharing)
        return COX_OK;
    if (parameter(gl, GL_BUFFER_MAPPED)) {
        cox__log(log, COX_LOG_ERROR, "%s: the buffer object %u is mapped", function,
                 buffer->object);
        return COX_E_INVALID;
    }
    if (!gl->gl.BufferStorage || !parameter(gl, GL_BUFFER_IMMUTABLE_STORAGE))
        return COX_OK;

    const uint32_t flags = (uint32_t)parameter(gl, GL_BUFFER_STORAGE_FLAGS);
    const uint32_t lasting = GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT;
    if ((flags & needed) != needed) {
        cox__log(log, COX_LOG_ERROR,
                 "%s: the storage of buffer object %u has the flags 0x%x; needed: 0x%x", function,
                 buffer->object, flags, needed);
        return COX_E_UNSUPPORTED;
    }
    buffer->persistent = (flags & lasting) == lasting;
    return COX_OK;
}

static cox_status use_object(cox_gl_buffer *buffer, const char *function)
{
    const cox_gl *gl = buffer->gl;
    if (!gl->gl.IsBuffer(buffer->object)) {
        cox__log(&gl->runtime->log, COX_LOG_ERROR, "%s: there is no buffer object %u", function,
                 buffer->object);
        return COX_E_INVALID;
    }

    const int32_t bound = bind(gl, buffer->object);
    cox_status status = inspect(buffer, function);
    gl->gl.BindBuffer(TARGET, (uint32_t)bound);

    if (!status && gl->sharing)
        status = cox__cl_gl_sharing_buffer(gl->sharing, buffer->object, buffer->access,
                                           &buffer->shared);
    return status;
}

/* A buffer object for textures, in memory that the host reaches quickly. */
static cox_status make_object(cox_gl_buffer *buffer, const char *function)
{
    const cox_gl *gl = buffer->gl;
    const uint32_t bits = map_bits(buffer->access) | GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT;

    gl->gl.GenBuffers(1, &buffer->object);
    const int32_t bound = bind(gl, buffer->object);
    buffer->persistent = gl->gl.BufferStorage != NULL;
    if (buffer->persistent)
        gl->gl.BufferStorage(TARGET, (ptrdiff_t)buffer->bytes, NULL, bits | GL_CLIENT_STORAGE_BIT);
    else
        gl->gl.BufferData(TARGET, (ptrdiff_t)buffer->bytes, NULL, GL_DYNAMIC_READ);

    const cox_status status = cox__gl_status(gl, function, "the buffer object's memory");
    gl->gl.BindBuffer(TARGET, (uint32_t)bound);
    return status;
}

/* Release what OpenGL has of a buffer without `memory`. */
static void release_object(cox_gl_buffer *buffer, const char *function)
{
    const cox_gl *gl = buffer->gl;

    cox__cl_gl_sharing_forget(&buffer->shared);
    if (!cox__gl_enter(gl, function))
        return;

    drop_fence(buffer);
    if (buffer->owner == COX__GL_UNSAFE)
        return;
    if (buffer->mapped && gl->gl.IsBuffer(buffer->object))
        unmap(buffer, function);
    if (!buffer->given && buffer->object)
        gl->gl.DeleteBuffers(1, &buffer->object);
}

cox_status cox_gl_buffer_create(cox_gl *gl, const struct cox_gl_buffer_params *params,
                                cox_gl_buffer **out)
{
    static const char function[] = "cox_gl_buffer_create";

    if (out)
        *out = NULL;
    if (!gl || cox__misuse_null(gl->runtime, out, function, "out") ||
        cox__misuse_null(gl->runtime, params, function, "params") || !cox__gl_enter(gl, function))
        return COX_E_INVALID;

    if (params->bytes > PTRDIFF_MAX || params->access > COX_GL_WRITE ||
        (!params->object && (!params->bytes || params->offset))) {
        cox__log(&gl->runtime->log, COX_LOG_ERROR,
                 "%s: %zu bytes at offset %zu of object %u, access %d", function, params->bytes,
                 params->offset, params->object, (int)params->access);
        return COX_E_INVALID;
    }

    cox_gl_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return COX_E_NOMEM;

    *buffer = (struct cox_gl_buffer){.gl = gl,
                                     .object = params->object,
                                     .offset = params->offset,
                                     .bytes = params->bytes,
                                     .given = params->object != 0};
    if (buffer->given)
        buffer->access = params->access;

    cox_status status = COX_OK;
    if (buffer->given)
        status = use_object(buffer, function);
    else if (!gl->sharing)
        status = make_object(buffer, function);

    if (!status && gl->sharing)
        status = cox_buffer_create(gl->runtime, buffer->bytes, &buffer->memory);
    else if (!status && buffer->persistent)
        status = map(buffer, function);
    if (status)
        goto fail;

    gl->buffer_count++;
    *out = buffer;
    return COX_OK;

fail:
    release_object(buffer, function);
    free(buffer);
    return status;
}

/* Take the memory from the library. False: it is refused here. */
static bool take_memory(cox_gl_buffer *buffer, const char *function)
{
    if (!buffer->memory)
        return true;
    if (!cox__buffer_wait(buffer->memory, function))
        return false;

    const cox_status status = cox__buffer_take_back(&buffer->memory);
    if (status == COX_E_MEMORY_UNSAFE)
        buffer->owner = COX__GL_UNSAFE;
    return status != COX_E_INVALID;
}

void cox_gl_buffer_destroy(cox_gl_buffer **out)
{
    static const char function[] = "cox_gl_buffer_destroy";

    if (!out || !*out)
        return;

    cox_gl_buffer *buffer = *out;
    if (!take_memory(buffer, function))
        return;

    *out = NULL;
    release_object(buffer, function);
    buffer->gl->buffer_count--;
    free(buffer);
}

/* ---- in turn ---- */

/* Wait for OpenGL's commands on the buffer. */
static cox_status wait_for_gl(cox_gl_buffer *buffer, uint64_t timeout_ns, const char *function)
{
    const cox_gl *gl = buffer->gl;
    if (!buffer->fence && buffer->given) {
        if (gl->gl.MemoryBarrier)
            gl->gl.MemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT |
                                 GL_CLIENT_MAPPED_BUFFER_BARRIER_BIT);
        cox__gl_buffer_object_fence(buffer);
    }
    if (!buffer->fence)
        return cox__gl_status(gl, function, "glFenceSync");

    const uint32_t answer = gl->gl.ClientWaitSync(buffer->fence, GL_SYNC_FLUSH_COMMANDS_BIT,
                                                  timeout_ns);
    if (answer == GL_TIMEOUT_EXPIRED)
        return COX_E_BUSY;

    drop_fence(buffer);
    cox_status status = cox__gl_status(gl, function, "glClientWaitSync");
    if (!status && answer == GL_WAIT_FAILED)
        status = COX_E_DEVICE_LOST;
    return status;
}

cox_status cox_gl_buffer_acquire(cox_gl_buffer *buffer, uint64_t timeout_ns, cox_buffer **memory)
{
    static const char function[] = "cox_gl_buffer_acquire";

    if (memory)
        *memory = NULL;
    if (!buffer || cox__misuse_null(buffer->gl->runtime, memory, function, "memory") ||
        !cox__gl_buffer_object_enter(buffer, COX__GL_OF_GL, function))
        return COX_E_INVALID;

    cox_status status = wait_for_gl(buffer, timeout_ns, function);
    if (!status && buffer->shared && buffer->access != COX_GL_WRITE)
        status = cox__cl_gl_sharing_read(buffer->gl->sharing, buffer->shared, buffer->offset,
                                         buffer->memory);
    else if (!status && !buffer->memory)
        status = map(buffer, function);
    if (status)
        return status;

    buffer->owner = COX__GL_OF_HOST;
    *memory = buffer->memory;
    return COX_OK;
}

cox_status cox_gl_buffer_release(cox_gl_buffer *buffer)
{
    static const char function[] = "cox_gl_buffer_release";

    if (!buffer)
        return COX_E_INVALID;
    if (buffer->owner == COX__GL_UNSAFE)
        return COX_E_MEMORY_UNSAFE;
    if (!cox__gl_buffer_object_enter(buffer, COX__GL_OF_HOST, function) ||
        !cox__buffer_wait(buffer->memory, function))
        return COX_E_INVALID;

    cox_status status = COX_OK;
    if (buffer->shared && buffer->access != COX_GL_READ) {
        status = cox__cl_gl_sharing_write(buffer->gl->sharing, buffer->shared, buffer->offset,
                                          buffer->memory);
    } else if (buffer->mapped && !buffer->persistent) {
        if (!take_memory(buffer, function))
            return COX_E_INVALID;
        if (buffer->owner == COX__GL_UNSAFE)
            return COX_E_MEMORY_UNSAFE;
        status = unmap(buffer, function);
    }

    buffer->owner = COX__GL_OF_GL;
    return status;
}
