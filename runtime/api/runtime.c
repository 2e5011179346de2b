/* The runtime object, and what it tells of the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "opencl/backend.h"
#include "params.h"
#include "engine/buffer_use.h"
#include "engine/engine.h"
#include "host/leak.h"

#include <stdlib.h>
#include <string.h>

/* How long the runtime's destruction waits for background tasks. */
#define WORKER_TIMEOUT_NS 1000000000ull

static void on_start(void *ctx)
{
    cox_runtime *runtime = ctx;
    if (runtime->topology)
        cox__topology_bind_scheduler(runtime->topology);
}

static cox_runtime *new_runtime(const struct cox_runtime_params *params)
{
    cox_runtime *runtime = calloc(1, sizeof *runtime);
    const struct cox__watchdog_handler handler = {
        .revoked = cox__engine_revoked, .after = cox__engine_after_revoked, .ctx = runtime};
    if (runtime) {
        sem_init(&runtime->inline_poller_wake, 0, 0);
        atomic_init(&runtime->next_step_ns, UINT64_MAX);
        atomic_init(&runtime->inline_due_ns, UINT64_MAX);
    }
    if (runtime && cox__watchdog_create(&runtime->watchdog, &handler))
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
    return (struct cox__post){.post = cox__engine_post, .ctx = runtime, .watchdog = runtime->watchdog};
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
    cox_status status = cox__watchdog_start(runtime->watchdog);
    if (status == COX_OK)
        status = start_loop(runtime);
    if (status == COX_OK)
        status = make(user, post_to(runtime), &runtime->log, &runtime->backend);
    if (status == COX_OK)
        status = cox__worker_create(&runtime->worker, NULL, runtime->backend->ops->advance != NULL);
    if (status == COX_OK) /* only the scheduler thread moves a virtual clock */
        runtime->polls_inline = runtime->backend->ops->advance == NULL;
    if (status)
        cox_runtime_destroy(&runtime);
    *out = runtime;
    return status;
}

/* Hardware threads from which on two may poll beside an application. */
enum { CORES_FREE = 3 };

/* Without a processor among the devices the cores are free: a thread that waits may as well poll. With one, its workers
 * need them all but the reserved one. */
static void choose_polling(cox_runtime *runtime)
{
    bool processor = false;
    for (uint32_t d = 0; d < cox_runtime_device_count(runtime); d++) {
        struct cox_device_info info;
        runtime->backend->ops->device_info(runtime->backend, d, &info);
        processor |= info.type == COX_DEVICE_CPU;
    }
    const bool cores_are_free = !processor && cox__topology_worker_cpus(runtime->topology) >= CORES_FREE;
    runtime->polls_closely = cox__topology_scheduler_alone(runtime->topology) || cores_are_free;
    runtime->polls_inline = !runtime->polls_closely || !processor;
}

cox_status cox_runtime_create(cox_runtime **out, const struct cox_runtime_params *params)
{
    struct cox_runtime_params copy = COX_SIZED(struct cox_runtime_params);
    if (!out)
        return COX_E_INVALID;
    *out = NULL;
    cox_status status = params ? COX__SIZED_READ(&copy, params) : COX_OK;
    params = &copy;
    cox_runtime *runtime = new_runtime(params);
    if (!runtime)
        return COX_E_NOMEM;
    status = cox__params_told(status, "cox_runtime_params", &runtime->log);
    if (status)
        goto fail;
    status = cox__topology_create(&runtime->topology, params->reserve, params->reserve_cpu, &runtime->log);
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
    status = cox__worker_create(&runtime->worker, runtime->topology, false);
    if (status)
        goto fail;
    cox__topology_enter(runtime->topology);
    status = cox__watchdog_start(runtime->watchdog);
    cox__topology_leave(runtime->topology);
    if (status)
        goto fail;
    choose_polling(runtime);
    /* Last: the scheduler thread binds itself to the reserved core, which depends on the devices. */
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
    /* Both before the loop: tasks and the watchdog's thread wake it. */
    const bool none_stuck = cox__watchdog_stop(runtime->watchdog);
    if (!cox__worker_destroy(&runtime->worker, WORKER_TIMEOUT_NS) || !none_stuck) {
        cox__log(&runtime->log, COX_LOG_ERROR, "the runtime's memory is leaked: a driver does not return from a call");
        cox__leak(runtime);
        return;
    }
    cox__loop_destroy(&runtime->loop);
    cox__watchdog_destroy(&runtime->watchdog);
    if (runtime->backend)
        runtime->backend->ops->destroy(runtime->backend);
    cox__buffer_forget_taints(runtime);
    cox__topology_destroy(&runtime->topology);
    sem_destroy(&runtime->inline_poller_wake);
    free(runtime->cache_dir);
    free(runtime);
}

uint32_t cox_runtime_device_count(const cox_runtime *runtime)
{
    return runtime->backend->ops->device_count(runtime->backend);
}

cox_status cox_runtime_device_info(const cox_runtime *runtime, uint32_t index, struct cox_device_info *info,
                                   size_t info_bytes)
{
    struct cox_device_info found;
    if (index >= cox_runtime_device_count(runtime))
        return COX_E_NOT_FOUND;
    runtime->backend->ops->device_info(runtime->backend, index, &found);
    cox__sized_write(info, info_bytes, &found, sizeof found);
    return COX_OK;
}

void cox_runtime_host_info(const cox_runtime *runtime, struct cox_host_info *info, size_t info_bytes)
{
    struct cox_host_info found = {0};
    if (runtime->topology)
        cox__topology_host_info(runtime->topology, &found);
    cox__sized_write(info, info_bytes, &found, sizeof found);
}

uint32_t cox_runtime_platform_count(const cox_runtime *runtime)
{
    return runtime->topology ? cox__cl_platform_count(runtime->backend) : 0;
}

cox_status cox_runtime_platform_info(const cox_runtime *runtime, uint32_t index, struct cox_platform_info *info,
                                     size_t info_bytes)
{
    struct cox_platform_info found;
    if (index >= cox_runtime_platform_count(runtime))
        return COX_E_NOT_FOUND;
    cox__cl_platform_info(runtime->backend, index, &found);
    cox__sized_write(info, info_bytes, &found, sizeof found);
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
