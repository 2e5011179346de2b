/* SPDX-License-Identifier: Apache-2.0 */
#include "session_devices.h"
#include "engine/device.h"
#include "host/thread.h"

#include <pthread.h>

cox_status cox__session_devices_choose(cox_runtime *runtime, const struct cox__session_spec *params,
                                       uint32_t devices[COX_DEVICES_MAX], uint32_t *count)
{
    const struct cox__log *log = &runtime->log;
    const uint32_t all = runtime->backend->ops->device_count(runtime->backend);
    const bool is_listed = params->device_count > 0;
    *count = is_listed ? params->device_count : all;
    if (*count > COX_DEVICES_MAX || (is_listed && !params->devices)) {
        cox__log(log, COX_LOG_ERROR, "devices: %u given%s; allowed: 1 to %d", *count,
                 params->devices ? "" : ", as NULL", COX_DEVICES_MAX);
        return COX_E_INVALID;
    }

    for (uint32_t i = 0; i < *count; i++) {
        devices[i] = is_listed ? params->devices[i] : i;
        for (uint32_t j = 0; j < i; j++)
            if (devices[i] == devices[j]) {
                cox__log(log, COX_LOG_ERROR, "devices: device %u is listed twice", devices[i]);
                return COX_E_INVALID;
            }

        if (devices[i] >= all) {
            cox__log(log, COX_LOG_ERROR,
                     "devices: unknown device %u; the runtime has %u devices, counted from 0",
                     devices[i], all);
            return COX_E_INVALID;
        }
    }
    return COX_OK;
}

/* ---- the devices of a pass ---- */

/* Whether the pass may use the runtime's device. A pass without a list may use all. */
static bool names_device(const struct cox__pass *pass, uint32_t device)
{
    bool names = !pass->device_count;
    for (uint32_t i = 0; i < pass->device_count; i++)
        names |= pass->devices[i] == device;

    return names;
}

cox_status cox__session_devices_check(const cox_session *session, const uint32_t *devices,
                                      uint32_t count)
{
    for (uint32_t p = 0; p < session->pipeline.pass_count; p++) {
        const struct cox__pass *pass = &session->pipeline.passes[p];
        bool any = false;
        for (uint32_t i = 0; i < count; i++)
            any |= names_device(pass, devices[i]);
        if (any)
            continue;

        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "pass %u (%s): none of its %u devices takes part in the session", p, pass->name,
                 pass->device_count);
        return COX_E_INVALID;
    }
    return COX_OK;
}

uint32_t cox__session_devices_of_pass(const cox_session *session, uint32_t number)
{
    uint32_t list = 0;
    for (uint32_t d = 0; d < session->devices.count; d++)
        if (names_device(&session->pipeline.passes[number], session->devices.list[d].device))
            list |= UINT32_C(1) << d;

    return list ? list : UINT32_MAX;
}

/* ---- creation ---- */

/* How many bands a device holds at once: enough to keep it busy. A staged device has one band in
 * each of its three steps: copy in, kernels, copy out. Bands that wait behind these can still be
 * cancelled or go to another device. */
static uint32_t slots_of(const cox_session *session, const struct cox_device_info *info)
{
    if (info->mode == COX_MODE_STAGED && session->settings.in_flight > 2)
        return 3;

    return 2;
}

/* Fill in what is known about a device without its instance. */
static void describe_device(cox_session *session, uint32_t number, uint32_t of_runtime)
{
    struct cox__backend *backend = session->runtime->backend;
    struct cox__device *device = &session->devices.list[number];

    device->device = of_runtime;
    backend->ops->device_info(backend, of_runtime, &device->info);
    device->slot_count = slots_of(session, &device->info);
    device->polled = device->info.type != COX_DEVICE_CPU;
}

/* One device whose kernels and memory are being made. */
struct making {
    cox_session *session;
    uint32_t device, slot_count;
    struct cox__instance *instance;
    uint32_t max_rows[COX_PASSES_MAX];
    cox_status status;
    bool on_thread;
    pthread_t thread;
};

static void *make_instance(void *ctx)
{
    struct making *making = ctx;
    struct cox__backend *backend = making->session->runtime->backend;
    making->status = backend->ops->instance_create(backend, making->device,
                                                   &making->session->pipeline, making->slot_count,
                                                   false, &making->instance, making->max_rows);
    return NULL;
}

/* Make all instances at once, since each driver has its own compiler: the last one on this thread,
 * each other one on its own thread. They are made one after the other if the driver requires one
 * thread, or if there is no real machine (the scripted devices of tests). */
static void make_instances(cox_session *session, struct making *makings, uint32_t count)
{
    const struct cox_runtime *runtime = session->runtime;
    const struct cox__backend_ops *ops = runtime->backend->ops;
    const bool at_once = runtime->topology &&
                         !(ops->one_thread && ops->one_thread(runtime->backend));

    for (uint32_t i = 0; i < count; i++) {
        struct making *making = &makings[i];
        making->on_thread = at_once && i + 1 < count &&
                            cox__thread_start(&making->thread, "cox-making", make_instance, making);
        if (!making->on_thread)
            make_instance(making);
    }

    for (uint32_t i = 0; i < count; i++)
        if (makings[i].on_thread)
            pthread_join(makings[i].thread, NULL);
}

/* Add the made device to the session. */
static cox_status add_device(cox_session *session, const struct making *making)
{
    struct cox__backend *backend = session->runtime->backend;
    const uint32_t number = session->devices.count;
    describe_device(session, number, making->device);
    if (making->status)
        return making->status;

    const cox_status status = cox__device_attach(session, number, making->instance,
                                                 making->max_rows);
    if (status) {
        backend->ops->instance_destroy(backend, making->instance, NULL, NULL);
        return status;
    }

    cox__pipeline_tell_writable(&session->pipeline, backend, making->instance,
                                &session->warned.writable, &session->runtime->log);
    session->devices.count++;
    session->devices.list[number].state = COX_DEVICE_ACTIVE;
    return COX_OK;
}

/* Whether a device has found a mistake in the session. Another device may know less about kernels,
 * and must not run them. */
static bool any_is_invalid(const struct making *makings, uint32_t count)
{
    bool any = false;
    for (uint32_t i = 0; i < count; i++)
        any |= makings[i].status == COX_E_INVALID;

    return any;
}

cox_status cox__session_devices_create(cox_session *session, const uint32_t *devices,
                                       uint32_t count)
{
    struct cox__backend *backend = session->runtime->backend;
    struct making makings[COX_DEVICES_MAX] = {{0}};
    for (uint32_t i = 0; i < count; i++) {
        struct cox_device_info info;
        backend->ops->device_info(backend, devices[i], &info);
        makings[i] = (struct making){
            .session = session, .device = devices[i], .slot_count = slots_of(session, &info)};
    }
    make_instances(session, makings, count);
    if (any_is_invalid(makings, count)) {
        for (uint32_t i = 0; i < count; i++)
            if (!makings[i].status)
                backend->ops->instance_destroy(backend, makings[i].instance, NULL, NULL);
        return COX_E_INVALID;
    }

    cox_status first_error = COX_OK;
    for (uint32_t i = 0; i < count; i++) {
        const cox_status status = add_device(session, &makings[i]);
        if (!status)
            continue;

        cox__log(&session->runtime->log, COX_LOG_WARN, "%s does not take part: %s",
                 session->devices.list[session->devices.count].info.name, cox_status_text(status));
        if (!first_error)
            first_error = status;
    }
    if (session->devices.count)
        return COX_OK;

    return first_error;
}

void cox__session_devices_announce(cox_session *session, const uint32_t *devices, uint32_t count)
{
    for (uint32_t d = 0; d < count; d++) {
        describe_device(session, d, devices[d]);
        session->devices.list[d].state = COX_DEVICE_JOINING;
    }
    session->devices.count = count;
}
