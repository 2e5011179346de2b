/* Creates instances for devices that join a session or come back to it.
 *
 * If a session was created with `ready`, worker threads create the instances of all its devices at
 * the same time, because each driver compiles separately. The first device with an instance takes
 * part at once. The later ones are on probation first (probation.c), so that their first launch
 * delays no frame. A device without an instance stays out of the session.
 *
 * A lost device is retried after a pause, with a new instance on a new context. It is on probation
 * until it has done some rows.
 *
 * Owns the devices' `making` and `join_status`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "making.h"
#include "device.h"
#include "transitions.h"

#include <stdlib.h>

static void make_task(void *ctx)
{
    struct cox__device_init *making = ctx;
    struct cox_session *session = making->session;
    struct cox__backend *backend = session->runtime->backend;
    struct cox__loop *loop = session->runtime->loop;

    making->status = backend->ops->instance_create(backend, making->device, &session->pipeline,
                                                   making->slot_count, making->fresh,
                                                   &making->instance, making->max_rows);
    atomic_store(&making->done, true); /* the engine may free it from here on */
    cox__loop_wake(loop);
}

/* Start to create an instance on a worker thread. `run` is cox__worker_run (after its earlier
 * tasks) or cox__worker_run_now (at once, on another thread). False: no memory or no thread. */
static bool begin_making(struct cox_session *session, uint32_t device, bool fresh,
                         bool (*run)(struct cox__worker *worker, void (*task)(void *ctx),
                                     void *ctx))
{
    struct cox__device *of = &session->devices.list[device];
    struct cox__device_init *making = calloc(1, sizeof *making);
    if (!making)
        return false;

    making->session = session;
    making->device = of->device;
    making->slot_count = of->slot_count;
    making->fresh = fresh;
    of->making = making;

    if (run(session->runtime->worker, make_task, making))
        return true;

    free(making);
    of->making = NULL;

    return false;
}

/* Attach the finished instance to its device, or return the error. */
static cox_status end_making(struct cox_session *session, uint32_t device)
{
    struct cox__device_init *making = session->devices.list[device].making;
    struct cox__backend *backend = session->runtime->backend;
    cox_status status = making->status;

    session->devices.list[device].making = NULL;
    if (status == COX_OK) {
        status = cox__device_attach(session, device, making->instance, making->max_rows);
        if (status)
            backend->ops->instance_destroy(backend, making->instance, NULL, NULL);
    }
    free(making);

    return status;
}

/* ---- joining ---- */

/* Whether another instance must be finished first: some drivers allow only one thread. */
static bool must_wait(const struct cox_session *session)
{
    struct cox__backend *backend = session->runtime->backend;
    bool any = false;

    for (uint32_t d = 0; d < session->devices.count; d++)
        any = any || session->devices.list[d].making;

    return any && backend->ops->one_thread && backend->ops->one_thread(backend);
}

static void has_joined(struct cox_session *session, uint32_t device)
{
    const struct cox__device *of = &session->devices.list[device];
    const bool first = !cox__device_any_joined(&session->devices);

    cox__pipeline_tell_writable(&session->pipeline, session->runtime->backend, of->queue->instance,
                                &session->warned.writable, &session->runtime->log);
    if (first)
        cox__device_return(session, device);
    else
        cox__transition_device(session, device, COX_DEVICE_PROBATION);
}

static void cannot_join(struct cox_session *session, uint32_t device, cox_status status)
{
    struct cox__device *of = &session->devices.list[device];

    of->join_status = status;
    cox__transition_device(session, device, COX_DEVICE_ABSENT);
    cox__log(&session->runtime->log, COX_LOG_WARN, "%s does not take part: %s", of->info.name,
             cox_status_text(status));
}

static bool join(struct cox_session *session, uint32_t device)
{
    const struct cox__device_init *making = session->devices.list[device].making;
    if (making && !atomic_load(&making->done))
        return false;
    if (making) {
        const cox_status status = end_making(session, device);
        if (status)
            cannot_join(session, device, status);
        else
            has_joined(session, device);
        return true;
    }

    if (session->closing) { /* another device has joined, or destroy would still wait */
        cox__transition_device(session, device, COX_DEVICE_ABSENT);
        return true;
    }
    if (must_wait(session))
        return false;

    if (!begin_making(session, device, false, cox__worker_run_now))
        cannot_join(session, device, COX_E_NOMEM);

    return true;
}

/* ---- rebuilding ---- */

/* The time until which the device's lost queues delay its rebuild; 0 = no delay. Drivers use much
 * memory per context, so the device gets no second context for a while. */
static uint64_t rebuild_held_ns(const struct cox_session *session, uint32_t device)
{
    uint64_t at_ns = 0;
    if (!cox__device_any_active(&session->devices))
        return 0;

    for (const struct cox__queue *queue = session->recovery.lost_queues; queue; queue = queue->next)
        if (queue->device == device && queue->rebuild_after_ns > at_ns)
            at_ns = queue->rebuild_after_ns;

    return at_ns;
}

static void begin_rebuild(struct cox_session *session, uint32_t device)
{
    cox__transition_device(session, device, COX_DEVICE_REBUILDING);
    if (begin_making(session, device, true, cox__worker_run))
        return;

    cox__transition_device(session, device, COX_DEVICE_QUARANTINED);
    cox__device_plan_retry(&session->devices.list[device], cox__engine_now(session->runtime),
                           false);
}

/* The new instance is finished, or has failed. */
static void end_rebuild(struct cox_session *session, uint32_t device)
{
    struct cox__device *of = &session->devices.list[device];
    const cox_status status = end_making(session, device);

    if (status) {
        cox__transition_device(session, device, COX_DEVICE_QUARANTINED);
        cox__device_plan_retry(of, cox__engine_now(session->runtime), false);
        cox__log(&session->runtime->log, COX_LOG_INFO, "%s is still lost: %s; retry in %llu ms",
                 of->info.name, cox_status_text(status),
                 (unsigned long long)(of->pause_ns / 1000000));
        return;
    }

    if (of->info.mode == COX_MODE_SHARED) { /* it no longer shares its context */
        pthread_mutex_lock(&session->lock);
        of->info.mode = COX_MODE_MAPPED;
        pthread_mutex_unlock(&session->lock);
    }

    cox__transition_device(session, device, COX_DEVICE_PROBATION);
}

/* Look at the device again at `at_ns`. Not in an idle session on a virtual clock, which would
 * run on endlessly. */
static void look_again(const struct cox_session *session, uint64_t at_ns, uint64_t *next_ns)
{
    if ((session->order.count || !session->runtime->backend->ops->advance) && at_ns < *next_ns)
        *next_ns = at_ns;
}

static bool step_device(struct cox_session *session, uint32_t device, uint64_t now_ns,
                        uint64_t *next_ns)
{
    const struct cox__device *of = &session->devices.list[device];

    switch (of->state) {
    case COX_DEVICE_JOINING:
        return join(session, device);
    case COX_DEVICE_DRAINING:
        if (now_ns < rebuild_held_ns(session, device)) {
            if (!session->closing)
                look_again(session, rebuild_held_ns(session, device), next_ns);
            return false;
        }

        cox__transition_device(session, device, COX_DEVICE_QUARANTINED);
        return true;
    case COX_DEVICE_QUARANTINED:
        if (session->closing)
            return false;
        if (now_ns < of->retry_ns) {
            look_again(session, of->retry_ns, next_ns);
            return false;
        }

        begin_rebuild(session, device);

        return of->state == COX_DEVICE_REBUILDING;
    case COX_DEVICE_REBUILDING:
        if (!atomic_load(&of->making->done))
            return false;
        end_rebuild(session, device);
        return true;
    case COX_DEVICE_ACTIVE:
    case COX_DEVICE_PROBATION:
    case COX_DEVICE_ABSENT:
        break;
    }
    return false;
}

bool cox__making_step(struct cox_session *session, uint64_t now_ns, uint64_t *next_ns)
{
    bool progress = false;
    for (uint32_t d = 0; d < session->devices.count; d++)
        progress |= step_device(session, d, now_ns, next_ns);
    return progress;
}
