/* The OpenCL backend: its creation, its destruction, its table of operations.
 *
 * Owns the list of platforms and devices, the contexts, the records of the callbacks and the
 * deferred releases. Created and destroyed on an application thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cl.h"
#include "callback.h"
#include "hang.h"
#include "instance_parts.h"
#include "mem.h"

#include <stdlib.h>
#include <string.h>

static void destroy(struct cox__backend *base)
{
    struct cox__cl_backend *backend = (struct cox__cl_backend *)base;

    cox__cl_hang_leak_deferred(backend);
    cox__cl_programs_drop(backend);
    cox__cl_contexts_drop(backend);
    cox__cl_callbacks_destroy(backend->callbacks, backend->log);

    for (uint32_t d = 0; d < backend->device_count; d++)
        if (backend->devices[d].is_subdevice)
            clReleaseDevice(backend->devices[d].id);

    pthread_mutex_destroy(&backend->hang_lock);
    pthread_mutex_destroy(&backend->programs_lock);
    pthread_mutex_destroy(&backend->host_lock);

    free(backend->cache_dir);
    free(backend);
}

static uint32_t device_count(struct cox__backend *base)
{
    return ((struct cox__cl_backend *)base)->device_count;
}

static void device_info(struct cox__backend *base, uint32_t index, struct cox_device_info *info)
{
    *info = ((struct cox__cl_backend *)base)->devices[index].info;
}

/* PoCL's device without threads executes commands inside the call that finds them ready, on the
 * calling thread. If another thread unmaps memory at that moment, PoCL 3.1 locks an event twice,
 * and the call never returns. The device's name begins with "basic" in PoCL 3.1 and with
 * "cpu-minimal" in PoCL 6. */
static bool has_no_threads(const struct cox_device_info *info)
{
    return strcmp(info->platform, "Portable Computing Language") == 0 &&
           (strncmp(info->name, "basic", strlen("basic")) == 0 ||
            strncmp(info->name, "cpu-minimal", strlen("cpu-minimal")) == 0);
}

static bool one_thread(const struct cox__backend *base)
{
    const struct cox__cl_backend *backend = (const struct cox__cl_backend *)base;
    for (uint32_t d = 0; d < backend->device_count; d++)
        if (has_no_threads(&backend->devices[d].info))
            return true;
    return false;
}

static uint64_t now_ns(struct cox__backend *base)
{
    (void)base;
    return cox__clock_ns();
}

static bool instance_reaches(struct cox__backend *base, const struct cox__instance *instance,
                             const struct cox__mem *mem)
{
    (void)base;
    return instance->staged && instance->context == mem->home_context;
}

static const struct cox__backend_ops ops = {
    .destroy = destroy,
    .device_count = device_count,
    .device_info = device_info,
    .one_thread = one_thread,
    .code_refusal = cox__cl_binary_refusal,
    .compile = cox__cl_program_compile,
    .mem_create = cox__cl_mem_create,
    .mem_destroy = cox__cl_mem_destroy,
    .mem_abandon = cox__cl_mem_abandon,
    .mem_link = cox__cl_mem_link,
    .mem_data = cox__cl_mem_data,
    .mem_bytes = cox__cl_mem_bytes,
    .mem_home = cox__cl_mem_home,
    .mem_add_host = cox__cl_mem_add_host,
    .instance_create = cox__cl_instance_create,
    .instance_destroy = cox__cl_instance_destroy,
    .instance_resident = cox__cl_frame_set_resident,
    .instance_reaches = instance_reaches,
    .instance_may_write = cox__cl_arguments_may_write,
    .instance_isolate = cox__cl_instance_isolate,
    .instance_abandon = cox__cl_instance_abandon,
    .job_submit = cox__cl_job_submit,
    .job_continue = cox__cl_job_continue,
    .instance_flush = cox__cl_instance_flush,
    .job_poll = cox__cl_job_poll,
    .job_partial = cox__cl_job_partial,
    .trial_run = cox__cl_trial_run,
    .now_ns = now_ns,
};

cox_status cox__cl_create(struct cox__backend **out, const struct cox__cl_options *options)
{
    struct cox__cl_backend *backend = calloc(1, sizeof *backend);
    cox_status status = COX_E_NOMEM;
    if (!backend)
        return status;

    pthread_mutex_init(&backend->hang_lock, NULL);
    pthread_mutex_init(&backend->programs_lock, NULL);
    pthread_mutex_init(&backend->host_lock, NULL);

    backend->base.ops = &ops;
    backend->log = options->log;
    backend->post = options->post;
    if (options->cache_dir && !(backend->cache_dir = strdup(options->cache_dir)))
        goto fail;

    backend->callbacks = cox__cl_callbacks_create(options->post);
    if (!backend->callbacks)
        goto fail;

    status = cox__cl_platforms_discover(backend, options);
    if (status)
        goto fail;

    cox__topology_enter(options->topology);
    status = cox__cl_contexts_make(backend, options->given);
    if (status == COX_OK)
        status = cox__cl_arithmetic_choose(backend, options->arithmetic);
    cox__topology_leave(options->topology);
    if (status)
        goto fail;

    *out = &backend->base;
    return COX_OK;

fail:
    destroy(&backend->base);
    return status;
}

enum cox_arithmetic cox__cl_chosen_arithmetic(const struct cox__backend *base)
{
    return ((const struct cox__cl_backend *)base)->arithmetic;
}

const struct cox_left_out *cox__cl_left_out(const struct cox__backend *base, uint32_t index)
{
    const struct cox__cl_backend *backend = (const struct cox__cl_backend *)base;
    return index < backend->left_out_count ? &backend->left_out[index] : NULL;
}

uint32_t cox__cl_platform_count(struct cox__backend *base)
{
    return ((struct cox__cl_backend *)base)->platform_count;
}

void cox__cl_platform_info(struct cox__backend *base, uint32_t index,
                           struct cox_platform_info *info)
{
    *info = ((struct cox__cl_backend *)base)->platforms[index];
}
