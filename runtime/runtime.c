/* The runtime object, its buffers and what it tells of the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cl_backend.h"
#include "engine.h"
#include "give_up.h"

#include <stdlib.h>
#include <string.h>

/* For drivers that do not return, when the runtime is destroyed. */
#define WARDEN_PATIENCE_NS 1000000000ull

static void on_start(void *ctx)
{
    cox_runtime *runtime = ctx;
    if (runtime->topology)
        cox__topology_bind_scheduler(runtime->topology);
}

static cox_runtime *new_runtime(const struct cox_runtime_params *params)
{
    cox_runtime *runtime = calloc(1, sizeof *runtime);
    const struct cox__guard_handler handler = {
        .seized = cox__engine_seized, .after = cox__engine_seized_since, .ctx = runtime};
    if (runtime) {
        sem_init(&runtime->runner_wake, 0, 0);
        atomic_init(&runtime->next_step_ns, UINT64_MAX);
    }
    if (runtime && cox__guard_create(&runtime->guard, &handler))
        cox_runtime_destroy(&runtime);
    if (runtime && params) {
        runtime->log.fn = params->log;
        runtime->log.user = params->log_user;
        runtime->log.level = params->log_level ? params->log_level : COX_LOG_WARN;
        runtime->cache_dir = params->cache_dir ? strdup(params->cache_dir) : NULL;
        if (params->cache_dir && !runtime->cache_dir)
            cox_runtime_destroy(&runtime);
    }
    return runtime;
}

static struct cox__post post_to(cox_runtime *runtime)
{
    return (struct cox__post){.post = cox__engine_post, .ctx = runtime, .guard = runtime->guard};
}

static cox_status start_loop(cox_runtime *runtime)
{
    const struct cox__loop_handler handler = {.start = on_start, .step = cox__engine_step, .ctx = runtime};
    return cox__loop_create(&runtime->loop, &handler);
}

cox_status cox__runtime_create_with(cox_runtime **out, const struct cox_runtime_params *params,
                                    cox__backend_make_fn *make, void *user)
{
    *out = NULL;
    cox_runtime *runtime = new_runtime(params);
    if (!runtime)
        return COX_E_NOMEM;
    cox_status status = cox__guard_start(runtime->guard);
    if (status == COX_OK)
        status = start_loop(runtime);
    if (status == COX_OK)
        status = make(user, post_to(runtime), &runtime->log, &runtime->backend);
    if (status == COX_OK)
        status = cox__warden_create(&runtime->warden, NULL, runtime->backend->ops->advance != NULL);
    if (status)
        cox_runtime_destroy(&runtime);
    *out = runtime;
    return status;
}

cox_status cox_runtime_create(cox_runtime **out, const struct cox_runtime_params *params)
{
    static const struct cox_runtime_params defaults = {0};
    if (!out)
        return COX_E_INVALID;
    *out = NULL;
    if (!params)
        params = &defaults;
    cox_runtime *runtime = new_runtime(params);
    if (!runtime)
        return COX_E_NOMEM;
    cox_status status = cox__topology_create(&runtime->topology, params->reserve, params->reserve_cpu, &runtime->log);
    if (status)
        goto fail;
    const struct cox__cl_options options = {.devices = params->devices,
                                            .cache_dir = params->cache_dir,
                                            .topology = runtime->topology,
                                            .post = post_to(runtime),
                                            .log = &runtime->log};
    status = cox__cl_create(&runtime->backend, &options);
    if (status)
        goto fail;
    status = cox__warden_create(&runtime->warden, runtime->topology, false);
    if (status)
        goto fail;
    cox__topology_enter(runtime->topology);
    status = cox__guard_start(runtime->guard);
    cox__topology_leave(runtime->topology);
    if (status)
        goto fail;
    /* Last: the thread binds itself to the core that the devices made us keep. */
    status = start_loop(runtime);
    if (status)
        goto fail;
    *out = runtime;
    return COX_OK;

fail:
    cox_runtime_destroy(&runtime);
    return status;
}

void cox_runtime_destroy(cox_runtime **out)
{
    if (!out || !*out)
        return;
    cox_runtime *runtime = *out;
    *out = NULL;
    /* Tasks and the guard's thread wake the loop. A session that is gone has left nothing, unless it had to give up. */
    const bool alone = cox__guard_stop(runtime->guard);
    if (!cox__warden_destroy(&runtime->warden, WARDEN_PATIENCE_NS) || !alone) {
        cox__log(&runtime->log, COX_LOG_ERROR, "the runtime is given up: a driver does not return from a call");
        cox__give_up(runtime);
        return;
    }
    cox__loop_destroy(&runtime->loop);
    cox__guard_destroy(&runtime->guard);
    if (runtime->backend)
        runtime->backend->ops->destroy(runtime->backend);
    for (struct cox__haunt *next; runtime->haunts; runtime->haunts = next) {
        next = runtime->haunts->next;
        free(runtime->haunts);
    }
    cox__topology_destroy(&runtime->topology);
    sem_destroy(&runtime->runner_wake);
    free(runtime->cache_dir);
    free(runtime);
}

uint32_t cox_runtime_device_count(const cox_runtime *runtime)
{
    return runtime->backend->ops->device_count(runtime->backend);
}

cox_status cox_runtime_device_info(const cox_runtime *runtime, uint32_t index, struct cox_device_info *info)
{
    if (index >= cox_runtime_device_count(runtime))
        return COX_E_NOT_FOUND;
    runtime->backend->ops->device_info(runtime->backend, index, info);
    return COX_OK;
}

void cox_runtime_host_info(const cox_runtime *runtime, struct cox_host_info *info)
{
    memset(info, 0, sizeof *info);
    if (runtime->topology)
        cox__topology_host_info(runtime->topology, info);
}

uint32_t cox_runtime_platform_count(const cox_runtime *runtime)
{
    return runtime->topology ? cox__cl_platform_count(runtime->backend) : 0;
}

cox_status cox_runtime_platform_info(const cox_runtime *runtime, uint32_t index, struct cox_platform_info *info)
{
    if (index >= cox_runtime_platform_count(runtime))
        return COX_E_NOT_FOUND;
    cox__cl_platform_info(runtime->backend, index, info);
    return COX_OK;
}

size_t cox_runtime_pitch_bytes(const cox_runtime *runtime, size_t row_bytes)
{
    size_t align = 64;
    for (uint32_t i = 0; i < cox_runtime_device_count(runtime); i++) {
        struct cox_device_info info;
        runtime->backend->ops->device_info(runtime->backend, i, &info);
        if (info.base_align_bytes > align)
            align = info.base_align_bytes; /* powers of two, all of them */
    }
    return row_bytes > SIZE_MAX - align ? 0 : (row_bytes + align - 1) / align * align;
}

/* ---- buffers ---- */

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

void cox_buffer_info(const cox_buffer *buffer, struct cox_buffer_info *info)
{
    buffer->runtime->backend->ops->mem_info(buffer->mem, info);
}

void *cox_buffer_data(const cox_buffer *buffer)
{
    return buffer->runtime->backend->ops->mem_data(buffer->mem);
}
