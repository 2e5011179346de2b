/* Buffers of memory that other hardware shares: cox_buffer_import_dmabuf.
 *
 * A buffer is a part of a DMA-BUF. All parts of one DMA-BUF share its synchronisation, because that
 * is for all of its memory: a frame's planes often lie in one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "import.h"
#include "engine/sync.h"
#include "host/dmabuf.h"
#include "misuse.h"

#include <stdlib.h>

/* A DMA-BUF of which the runtime has parts. */
struct cox__import {
    struct cox__sync sync; /* first */
    struct cox__import *next;
    cox_runtime *runtime;
    uint32_t parts; /* guarded by the list's lock */
    struct cox__dmabuf dmabuf;
};

struct part {
    struct cox__import *import;
    struct cox__dmabuf_part mapping;
    cox_released_fn *released;
    void *user;
};

static const struct cox__import *import_of(const struct cox__sync *sync)
{
    return (const struct cox__import *)sync;
}

static cox_status begin(const struct cox__sync *sync, bool reads, bool writes)
{
    const struct cox__import *import = import_of(sync);
    return cox__dmabuf_begin(&import->dmabuf, reads, writes, &import->runtime->log);
}

static cox_status end(const struct cox__sync *sync, bool reads, bool writes)
{
    const struct cox__import *import = import_of(sync);
    return cox__dmabuf_end(&import->dmabuf, reads, writes, &import->runtime->log);
}

/* ---- uses outside of frames ---- */

cox_status cox__import_begin(const cox_buffer *buffer, bool writes)
{
    if (writes && buffer->read_only) {
        cox__log(&buffer->runtime->log, COX_LOG_ERROR,
                 "a DMA-BUF is written, but its descriptor is only for reading");
        return COX_E_INVALID;
    }

    return buffer->sync ? cox__sync_begin(buffer->sync, writes) : COX_OK;
}

cox_status cox__import_end(const cox_buffer *buffer)
{
    return buffer->sync ? cox__sync_end(buffer->sync) : COX_OK;
}

/* ---- the runtime's list ---- */

void cox__imports_init(struct cox__imports *imports)
{
    pthread_mutex_init(&imports->lock, NULL);
}

void cox__imports_destroy(struct cox__imports *imports)
{
    pthread_mutex_destroy(&imports->lock);
}

static void free_import(struct cox__import *import)
{
    cox__dmabuf_close(&import->dmabuf);
    cox__sync_destroy(&import->sync);
    free(import);
}

/* Add a DMA-BUF to the list. If it is there already, use that one. */
static struct cox__import *add(struct cox__imports *imports, struct cox__import *fresh)
{
    pthread_mutex_lock(&imports->lock);

    struct cox__import *import = imports->list;
    while (import && (import->dmabuf.device != fresh->dmabuf.device ||
                      import->dmabuf.inode != fresh->dmabuf.inode))
        import = import->next;

    if (!import) {
        import = fresh;
        import->next = imports->list;
        imports->list = import;
    }
    import->parts++;
    pthread_mutex_unlock(&imports->lock);

    return import;
}

/* Give up a part. The last one takes the DMA-BUF off the list. */
static void remove_part(struct cox__import *import)
{
    struct cox__imports *imports = &import->runtime->imports;

    pthread_mutex_lock(&imports->lock);
    const bool last = --import->parts == 0;
    struct cox__import **link = &imports->list;
    while (*link != import)
        link = &(*link)->next;
    if (last)
        *link = import->next;
    pthread_mutex_unlock(&imports->lock);

    if (last)
        free_import(import);
}

/* ---- parts ---- */

/* A cox_released_fn: no frame and no device uses the part any more. */
static void release(void *user)
{
    struct part *part = user;
    cox__dmabuf_unmap(&part->mapping);
    remove_part(part->import);

    if (part->released)
        part->released(part->user);
    free(part);
}

/* Whether no driver writes to memory that kernels only read. One that works on a copy may write the
 * copy back. */
static bool can_be_read_only(const cox_runtime *runtime)
{
    struct cox__backend *backend = runtime->backend;
    bool can = true;
    for (uint32_t d = 0; d < backend->ops->device_count(backend); d++) {
        struct cox_device_info info;
        backend->ops->device_info(backend, d, &info);
        can &= info.mode == COX_MODE_STAGED || info.host_memory == COX_HOST_MEMORY_WRAPPED;
    }

    return can;
}

static cox_status map(struct part *part, const struct cox__dmabuf *dmabuf, size_t offset,
                      size_t bytes)
{
    const cox_runtime *runtime = part->import->runtime;
    if (!cox__dmabuf_is_writable(dmabuf) && !can_be_read_only(runtime)) {
        cox__log(&runtime->log, COX_LOG_ERROR,
                 "the DMA-BUF's descriptor is only for reading, but a driver may write to inputs");
        return COX_E_UNSUPPORTED;
    }

    return cox__dmabuf_map(dmabuf, offset, bytes, &part->mapping, &runtime->log);
}

static cox_status make_buffer(struct part *part, bool read_only, size_t bytes, cox_buffer **out)
{
    struct cox__import *import = part->import;
    const cox_status status = cox_buffer_wrap(import->runtime, part->mapping.data, bytes, release,
                                              part, out);
    if (status != COX_OK) {
        cox__dmabuf_unmap(&part->mapping);
        return status;
    }

    (*out)->sync = &import->sync;
    (*out)->read_only = read_only;
    return COX_OK;
}

static struct cox__import *new_import(cox_runtime *runtime, const struct cox__dmabuf *dmabuf)
{
    struct cox__import *import = calloc(1, sizeof *import);
    if (!import)
        return NULL;

    cox__sync_init(&import->sync);
    import->sync.begin = begin;
    import->sync.end = end;
    import->runtime = runtime;
    import->dmabuf = *dmabuf;
    return import;
}

cox_status cox_buffer_import_dmabuf(cox_runtime *runtime, int fd, size_t offset, size_t bytes,
                                    cox_released_fn *released, void *user, cox_buffer **out)
{
    static const char function[] = "cox_buffer_import_dmabuf";

    if (out)
        *out = NULL;
    if (!runtime || cox__misuse_null(runtime, out, function, "out") ||
        cox__misuse_forked(runtime, function))
        return COX_E_INVALID;

    if (!bytes || bytes > SIZE_MAX / 2 || offset > SIZE_MAX / 2) {
        cox__log(&runtime->log, COX_LOG_ERROR, "%s: %zu bytes at offset %zu; allowed: 1 to %zu",
                 function, bytes, offset, SIZE_MAX / 2);
        return COX_E_INVALID;
    }

    struct cox__dmabuf dmabuf;
    cox_status status = cox__dmabuf_open(&dmabuf, fd, &runtime->log);
    if (status)
        return status;

    const bool read_only = !cox__dmabuf_is_writable(&dmabuf);
    struct part *part = calloc(1, sizeof *part);
    struct cox__import *fresh = new_import(runtime, &dmabuf);
    if (!part || !fresh) {
        free(part);
        if (fresh)
            free_import(fresh);
        else
            cox__dmabuf_close(&dmabuf);
        return COX_E_NOMEM;
    }

    *part = (struct part){
        .import = add(&runtime->imports, fresh), .released = released, .user = user};
    status = map(part, &fresh->dmabuf, offset, bytes); /* as this descriptor allows */
    if (status == COX_OK)
        status = make_buffer(part, read_only, bytes, out);
    if (part->import != fresh)
        free_import(fresh);
    if (status == COX_OK)
        return COX_OK;

    remove_part(part->import);
    free(part);
    return status;
}
