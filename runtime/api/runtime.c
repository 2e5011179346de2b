/* The runtime object: create, destroy, and what it says about the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "host/leak.h"
#include "import.h"
#include "misuse.h"
#include "opencl/cl.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* CMakeLists.txt checks this too, and gives the reasons; this is for other ways of building. */
#if defined __BYTE_ORDER__ && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Coxswain runs on little-endian processors only"
#endif
_Static_assert(sizeof(void *) >= 8, "Coxswain runs on 64-bit systems only");

/* How long the runtime's destruction waits for background tasks: HANGING_NS if a driver is known to
 * hang. Otherwise late tasks have only lacked a processor, and it waits for BUSY_NS. */
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

/* A runtime without devices and threads. NULL: no memory. */
static cox_runtime *new_runtime(const struct cox_runtime_params *params)
{
    cox_runtime *runtime = calloc(1, sizeof *runtime);
    if (!runtime)
        return NULL;

    runtime->pid = getpid();
    sem_init(&runtime->inline_poller.wake, 0, 0);
    pthread_mutex_init(&runtime->release.lock, NULL);
    pthread_cond_init(&runtime->release.given_back, NULL);
    cox__imports_init(&runtime->imports);
    atomic_init(&runtime->next_step_ns, UINT64_MAX);
    atomic_init(&runtime->inline_poller.due_ns, UINT64_MAX);

    const struct cox__watchdog_handler handler = {
        .revoked = cox__engine_revoked, .after = cox__engine_after_revoked, .ctx = runtime};
    if (cox__watchdog_create(&runtime->watchdog, &handler)) {
        cox_runtime_destroy(&runtime);
        return NULL;
    }
    if (!params)
        return runtime;

    runtime->log = log_of(params);
    if (params->cache_dir) {
        runtime->cache_dir = strdup(params->cache_dir);
        if (!runtime->cache_dir)
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
    if (status)
        cox_runtime_destroy(&runtime);
    else /* only the scheduler thread moves a virtual clock */
        runtime->polls_inline = runtime->backend->ops->advance == NULL;

    *out = runtime;
    return status;
}

/* With as many hardware threads, two may poll while the application runs. */
enum { CORES_FREE = 3 };

/* If no device is a CPU, the cores are free, and a thread that waits may as well poll. Otherwise
 * the CPU device's workers need all of them but the reserved one. */
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

static cox_status check_params(const struct cox_runtime_params *params, const struct cox__log *log)
{
    if ((unsigned)params->arithmetic <= COX_ARITHMETIC_FMA)
        return COX_OK;

    cox__log(log, COX_LOG_ERROR, "arithmetic: %d is not a value of enum cox_arithmetic",
             (int)params->arithmetic);
    return COX_E_INVALID;
}

static cox_status create_backend(cox_runtime *runtime, const struct cox_runtime_params *params)
{
    const struct cox__cl_options options = {.devices = params->devices,
                                            .cache_dir = params->cache_dir,
                                            .arithmetic = params->arithmetic,
                                            .given = params->contexts,
                                            .topology = runtime->topology,
                                            .post = post_to(runtime),
                                            .log = &runtime->log};
    const cox_status status = cox__cl_create(&runtime->backend, &options);
    if (status == COX_OK)
        runtime->arithmetic = cox__cl_chosen_arithmetic(runtime->backend);

    return status;
}

static cox_status start_watchdog(cox_runtime *runtime)
{
    cox__topology_enter(runtime->topology);
    const cox_status status = cox__watchdog_start(runtime->watchdog);
    cox__topology_leave(runtime->topology);
    return status;
}

/* Find the devices, and start the threads. */
static cox_status start(cox_runtime *runtime, const struct cox_runtime_params *params)
{
    cox_status status = cox__topology_create(&runtime->topology, params->reserve,
                                             params->reserve_cpu, &runtime->log);
    if (status == COX_OK)
        status = create_backend(runtime, params);
    if (status == COX_OK)
        status = cox__worker_create(&runtime->worker, runtime->topology, false);
    if (status == COX_OK)
        status = start_watchdog(runtime);
    if (status)
        return status;

    /* Last: the scheduler thread binds itself to the reserved core, which the devices decide. */
    choose_polling(runtime);
    return start_loop(runtime);
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
    cox_status status = check_params(params, &log);
    if (status)
        return status;
    if (cox__misuse_inherited_opencl(&log))
        return COX_E_INVALID;

    cox_runtime *runtime = new_runtime(params);
    status = COX_E_NOMEM;
    if (runtime)
        status = start(runtime, params);
    if (status == COX_OK) {
        *out = runtime;
        return COX_OK;
    }

    if (status == COX_E_NOMEM || status == COX_E_SYSTEM)
        cox__log(&log, COX_LOG_ERROR, "cox_runtime_create: %s", cox_status_text(status));
    cox_runtime_destroy(&runtime);
    return status;
}

/* Whether the runtime cannot be destroyed now, or not from here. */
static bool is_in_use(cox_runtime *runtime)
{
    const uint32_t sessions = atomic_load(&runtime->alive.sessions);
    const uint32_t buffers = atomic_load(&runtime->alive.buffers);
    if (cox__misuse_forked(runtime, "cox_runtime_destroy") ||
        (runtime->watchdog && cox__misuse_in_callback(runtime, "cox_runtime_destroy")))
        return true;

    if (cox__memory_is_in_released(runtime)) {
        cox__log(&runtime->log, COX_LOG_ERROR,
                 "cox_runtime_destroy: must not be called from a buffer's `released` function");
        return true;
    }

    if (sessions || buffers)
        cox__log(&runtime->log, COX_LOG_ERROR,
                 "cox_runtime_destroy: destroy its sessions (%u) and buffers (%u) first", sessions,
                 buffers);

    return sessions || buffers;
}

/* Wait for threads that are stuck in a driver: if one comes back in time, no memory is leaked. */
static void wait_for_stuck(cox_runtime *runtime)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    const uint64_t until_ns = cox__clock_ns() + HANGING_NS;

    while (runtime->loop && cox__reaper_any_stuck(runtime) && cox__clock_ns() < until_ns)
        nanosleep(&pause, NULL);
}

/* Tell the engine that it has no worker thread from here on. */
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
    uint64_t timeout_ns = BUSY_NS;
    if (runtime->lost.stray || atomic_load(&runtime->left_session))
        timeout_ns = HANGING_NS;
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

    pthread_mutex_destroy(&runtime->release.lock);
    pthread_cond_destroy(&runtime->release.given_back);
    cox__imports_destroy(&runtime->imports);
    cox__topology_destroy(&runtime->topology);
    sem_destroy(&runtime->inline_poller.wake);
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
    if (!runtime || !runtime->topology)
        return 0;

    return cox__cl_platform_count(runtime->backend);
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

cox_status cox_runtime_left_out(const cox_runtime *runtime, uint32_t index,
                                struct cox_left_out *out)
{
    if (!runtime || !out)
        return COX_E_INVALID;

    const struct cox_left_out *found = NULL;
    if (runtime->topology)
        found = cox__cl_left_out(runtime->backend, index);
    if (!found)
        return COX_E_NOT_FOUND;

    *out = *found;
    return COX_OK;
}

size_t cox_runtime_pitch_bytes(const cox_runtime *runtime, size_t row_bytes)
{
    if (!runtime)
        return 0;

    size_t align = 64;
    for (uint32_t i = 0; i < cox_runtime_device_count(runtime); i++) {
        struct cox_device_info info;
        runtime->backend->ops->device_info(runtime->backend, i, &info);
        if (info.base_align_bytes > align)
            align = info.base_align_bytes; /* all are powers of two */
    }

    if (row_bytes > SIZE_MAX - align)
        return 0;
    return (row_bytes + align - 1) / align * align;
}
