/* The runtime object, and what it tells of the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "opencl/cl.h"
#include "misuse.h"
#include "params.h"
#include "base/clock.h"
#include "host/leak.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* CMakeLists.txt says it with the reasons; this is for other ways of building. */
#if defined __BYTE_ORDER__ && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Coxswain runs on little-endian processors only"
#endif
_Static_assert(sizeof(void *) >= 8, "Coxswain runs on 64-bit systems only");

/* How long the runtime's destruction waits for background tasks: where a driver is known to hang; and where none is,
 * so that tasks that are late have not had a processor. */
#define HANGING_NS 1000000000ull
#define BUSY_NS 20000000000ull

static void on_start(void *ctx)
{
    cox_runtime *runtime = ctx;
    if (runtime->topology)
        cox__topology_bind_scheduler(runtime->topology);
}

static struct cox__log log_of(const struct cox_runtime_params *params)
{
    return (struct cox__log){.fn = params->log,
                             .user = params->log_user,
                             .level = params->log_level ? params->log_level : COX_LOG_WARN};
}

static cox_runtime *new_runtime(const struct cox_runtime_params *params)
{
    cox_runtime *runtime = calloc(1, sizeof *runtime);
    const struct cox__watchdog_handler handler = {
        .revoked = cox__engine_revoked, .after = cox__engine_after_revoked, .ctx = runtime};
    if (runtime) {
        runtime->pid = getpid();
        sem_init(&runtime->inline_poller_wake, 0, 0);
        pthread_mutex_init(&runtime->release_lock, NULL);
        pthread_cond_init(&runtime->released, NULL);
        atomic_init(&runtime->next_step_ns, UINT64_MAX);
        atomic_init(&runtime->inline_due_ns, UINT64_MAX);
    }
    if (runtime && cox__watchdog_create(&runtime->watchdog, &handler))
        cox_runtime_destroy(&runtime);
    if (runtime && params) {
        runtime->log = log_of(params);
        runtime->cache_dir = params->cache_dir ? strdup(params->cache_dir) : NULL;
        if (params->cache_dir && !runtime->cache_dir)
            cox_runtime_destroy(&runtime);
    }
    return runtime;
}

static struct cox__post post_to(cox_runtime *runtime)
{
    return (struct cox__post){
        .post = cox__engine_post, .ctx = runtime, .watchdog = runtime->watchdog};
}

static cox_status start_loop(cox_runtime *runtime)
{
    const struct cox__loop_handler handler = {
        .start = on_start, .step = cox__engine_step, .ctx = runtime};
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
    runtime->arithmetic = COX_ARITHMETIC_MULADD;
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
    const bool cores_are_free = !processor &&
                                cox__topology_worker_cpus(runtime->topology) >= CORES_FREE;
    runtime->polls_closely = cox__topology_scheduler_alone(runtime->topology) || cores_are_free;
    runtime->polls_inline = !runtime->polls_closely || !processor;
}

cox_status cox_runtime_create(const struct cox_runtime_params *params, cox_runtime **out)
{
    static const struct cox_runtime_params defaults = {0};
    if (!params)
        params = &defaults;
    const struct cox__log log = log_of(params);
    if (!out) {
        cox__log(&log, COX_LOG_ERROR, "cox_runtime_create: out is NULL");
        return COX_E_INVALID;
    }
    *out = NULL;
    cox_status status = COX_OK;
    if ((unsigned)params->arithmetic > COX_ARITHMETIC_FMA) {
        cox__log(&log, COX_LOG_ERROR, "arithmetic: %d is no cox_arithmetic",
                 (int)params->arithmetic);
        status = COX_E_INVALID;
    }
    cox_runtime *runtime = status ? NULL : new_runtime(params);
    if (!runtime) {
        status = status ? status : COX_E_NOMEM;
        goto fail;
    }
    status = cox__topology_create(&runtime->topology, params->reserve, params->reserve_cpu,
                                  &runtime->log);
    if (status)
        goto fail;
    const struct cox__cl_options options = {.devices = params->devices,
                                            .cache_dir = params->cache_dir,
                                            .arithmetic = params->arithmetic,
                                            .given = params->contexts,
                                            .topology = runtime->topology,
                                            .post = post_to(runtime),
                                            .log = &runtime->log};
    status = cox__cl_create(&runtime->backend, &options);
    if (status)
        goto fail;
    runtime->arithmetic = cox__cl_chosen_arithmetic(runtime->backend);
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
    if (status == COX_E_NOMEM || status == COX_E_SYSTEM)
        cox__log(&log, COX_LOG_ERROR, "cox_runtime_create: %s", cox_status_text(status));
    cox_runtime_destroy(&runtime);
    return status;
}

static bool is_in_use(cox_runtime *runtime)
{
    const uint32_t sessions = atomic_load(&runtime->session_count),
                   buffers = atomic_load(&runtime->buffer_count);
    if (cox__misuse_forked(runtime, "cox_runtime_destroy") ||
        (runtime->watchdog && cox__misuse_in_callback(runtime, "cox_runtime_destroy")))
        return true;
    if (cox__memory_is_in_released(runtime)) {
        cox__log(&runtime->log, COX_LOG_ERROR,
                 "cox_runtime_destroy: not from a buffer's `released` function");
        return true;
    }
    if (sessions || buffers)
        cox__log(&runtime->log, COX_LOG_ERROR,
                 "cox_runtime_destroy: %u sessions and %u buffers are to be destroyed before",
                 sessions, buffers);
    return sessions || buffers;
}

/* A thread that comes back within this time need not cost the runtime's memory. */
static void wait_for_stuck(cox_runtime *runtime)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    const uint64_t until_ns = cox__clock_ns() + HANGING_NS;
    while (runtime->loop && cox__reaper_any_stuck(runtime) && cox__clock_ns() < until_ns)
        nanosleep(&pause, NULL);
}

/* From here on there is no worker thread for it. */
static void stop_engine(cox_runtime *runtime)
{
    if (!runtime->watchdog)
        return;
    cox__watchdog_lock(runtime->watchdog);
    runtime->closing = true;
    cox__watchdog_unlock(runtime->watchdog);
}

void cox_runtime_destroy(cox_runtime **out)
{
    if (!out || !*out)
        return;
    cox_runtime *runtime = *out;
    if (is_in_use(runtime))
        return;
    *out = NULL;
    wait_for_stuck(runtime);
    stop_engine(runtime);
    /* Both before the loop: tasks and the watchdog's thread wake it. */
    const bool none_stuck = cox__watchdog_stop(runtime->watchdog);
    const uint64_t timeout_ns = runtime->stray || runtime->left_session ? HANGING_NS : BUSY_NS;
    if (!cox__worker_destroy(&runtime->worker, timeout_ns) || !none_stuck) {
        cox__log(&runtime->log, COX_LOG_ERROR,
                 "the runtime's memory is leaked: a driver does not return from a call");
        cox__leak(runtime);
        return;
    }
    cox__loop_destroy(&runtime->loop);
    cox__watchdog_destroy(&runtime->watchdog);
    if (runtime->backend) {
        cox__reaper_reap_gone(runtime);
        cox__memory_forget(runtime);
        runtime->backend->ops->destroy(runtime->backend);
        cox__reaper_forget_stray(runtime);
    }
    pthread_mutex_destroy(&runtime->release_lock);
    pthread_cond_destroy(&runtime->released);
    cox__topology_destroy(&runtime->topology);
    sem_destroy(&runtime->inline_poller_wake);
    free(runtime->cache_dir);
    free(runtime);
}

uint32_t cox_runtime_device_count(const cox_runtime *runtime)
{
    return runtime ? runtime->backend->ops->device_count(runtime->backend) : 0;
}

enum cox_arithmetic cox_runtime_arithmetic(const cox_runtime *runtime)
{
    return runtime ? runtime->arithmetic : COX_ARITHMETIC_AUTO;
}

cox_status cox_runtime_device_info(const cox_runtime *runtime, uint32_t index,
                                   struct cox_device_info *info)
{
    if (!runtime || !info)
        return COX_E_INVALID;
    if (index >= cox_runtime_device_count(runtime))
        return COX_E_NOT_FOUND;

    runtime->backend->ops->device_info(runtime->backend, index, info);
    return COX_OK;
}

void cox_runtime_host_info(const cox_runtime *runtime, struct cox_host_info *info)
{
    if (!info)
        return;

    *info = (struct cox_host_info){0};
    if (runtime && runtime->topology)
        cox__topology_host_info(runtime->topology, info);
}

uint32_t cox_runtime_platform_count(const cox_runtime *runtime)
{
    return runtime && runtime->topology ? cox__cl_platform_count(runtime->backend) : 0;
}

cox_status cox_runtime_platform_info(const cox_runtime *runtime, uint32_t index,
                                     struct cox_platform_info *info)
{
    if (!runtime || !info)
        return COX_E_INVALID;
    if (index >= cox_runtime_platform_count(runtime))
        return COX_E_NOT_FOUND;

    cox__cl_platform_info(runtime->backend, index, info);
    return COX_OK;
}

size_t cox_runtime_pitch_bytes(const cox_runtime *runtime, size_t row_bytes)
{
    size_t align = 64;
    if (!runtime)
        return 0;
    for (uint32_t i = 0; i < cox_runtime_device_count(runtime); i++) {
        struct cox_device_info info;
        runtime->backend->ops->device_info(runtime->backend, i, &info);
        if (info.base_align_bytes > align)
            align = info.base_align_bytes; /* powers of two, all of them */
    }
    return row_bytes > SIZE_MAX - align ? 0 : (row_bytes + align - 1) / align * align;
}
