/* The memory that frames are made of.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"
#include "sized.h"

#include <stdlib.h>

static cox_status make_buffer(cox_runtime *runtime, void *data, size_t bytes, cox_buffer **out)
{
    cox_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return COX_E_NOMEM;
    buffer->runtime = runtime;
    cox_status status = runtime->backend->ops->mem_create(runtime->backend, data, bytes, &buffer->mem);
    if (status) {
        free(buffer);
        return status;
    }
    *out = buffer;
    return COX_OK;
}

cox_status cox_buffer_create(cox_runtime *runtime, size_t bytes, cox_buffer **out)
{
    if (!out)
        return COX_E_INVALID;
    *out = NULL;
    return !runtime || !bytes || bytes > SIZE_MAX / 2 ? COX_E_INVALID : make_buffer(runtime, NULL, bytes, out);
}

cox_status cox_buffer_wrap(cox_runtime *runtime, void *data, size_t bytes, cox_buffer **out)
{
    if (!out)
        return COX_E_INVALID;
    *out = NULL;
    if (!runtime || !data || !bytes || bytes > SIZE_MAX / 2 || (uintptr_t)data % 16)
        return COX_E_INVALID;
    return make_buffer(runtime, data, bytes, out);
}

void cox_buffer_destroy(cox_buffer **buffer)
{
    if (!buffer || !*buffer)
        return;
    cox__engine_drop_mem((*buffer)->runtime, (*buffer)->mem);
    free(*buffer);
    *buffer = NULL;
}

void cox_buffer_info(const cox_buffer *buffer, struct cox_buffer_info *info, size_t info_bytes)
{
    struct cox_buffer_info found = {0};
    buffer->runtime->backend->ops->mem_info(buffer->mem, &found);
    cox__sized_write(info, info_bytes, &found, sizeof found);
}

void *cox_buffer_data(const cox_buffer *buffer)
{
    return buffer->runtime->backend->ops->mem_data(buffer->mem);
}
