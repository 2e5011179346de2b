/* The devices' states, and the choice of a device for rows.
 *
 * Owns each device's `state`, `queue` and back-off, and `no_device_since_ns`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device.h"
#include "base/bounds.h"
#include "event.h"
#include "transitions.h"

#include <stdlib.h>

/* A lost device is retried after the first pause, then after pauses that double. */
#define PAUSE_FIRST_NS 50000000ull
#define PAUSE_MAX_NS 30000000000ull
/* After working well for this many times its pause, a device starts again with the first pause. */
#define FORGET_TIMES 20

bool cox__device_any_active(const struct cox__devices *devices)
{
    for (uint32_t d = 0; d < devices->count; d++)
        if (cox__device_is_active(&devices->list[d]))
            return true;
    return false;
}

bool cox__device_any_joining(const struct cox__devices *devices)
{
    for (uint32_t d = 0; d < devices->count; d++)
        if (devices->list[d].state == COX_DEVICE_JOINING)
            return true;
    return false;
}

bool cox__device_any_joined(const struct cox__devices *devices)
{
    for (uint32_t d = 0; d < devices->count; d++)
        if (devices->list[d].state != COX_DEVICE_JOINING &&
            devices->list[d].state != COX_DEVICE_ABSENT)
            return true;

    return false;
}

uint32_t cox__device_doing(const struct cox_session *session, uint32_t pass)
{
    uint32_t active = 0;
    for (uint32_t d = 0; d < session->devices.count; d++)
        active |= (uint32_t)cox__device_is_active(&session->devices.list[d]) << d;

    const uint32_t listed = active & session->sharing[pass].devices;
    return listed ? listed : active;
}

uint32_t cox__device_best(const struct cox_session *session, uint32_t pass, uint32_t except)
{
    const uint32_t doing = cox__device_doing(session, pass);
    uint32_t best = session->devices.count;
    uint64_t best_ns = 0;

    for (uint32_t d = 0; d < session->devices.count; d++) {
        uint64_t ns = session->devices.list[d].passes[pass].single_device_ns;
        if (!ns) /* not measured: the last choice */
            ns = UINT64_MAX;

        if (doing >> d & 1 && !(except >> d & 1) &&
            (best == session->devices.count || ns < best_ns)) {
            best = d;
            best_ns = ns;
        }
    }

    return best;
}

uint32_t cox__device_fallback(const struct cox_session *session, uint32_t pass, uint32_t device)
{
    const uint32_t best = cox__device_best(session, pass, 0);
    if (best == session->devices.count && !session->no_device)
        return device;

    return best;
}

bool cox__device_has_free_slot(const struct cox__device *device)
{
    const struct cox__queue *queue = device->queue;
    for (uint32_t i = 0; queue && i < queue->slot_count; i++)
        if (queue->slots[i].state == COX__SLOT_FREE)
            return true;

    return false;
}

/* ---- out and back ---- */

void cox__device_fail(struct cox_session *session, uint32_t device, cox_status status)
{
    const enum cox_device_state state = session->devices.list[device].state;
    const bool takes_part = state == COX_DEVICE_ACTIVE || state == COX_DEVICE_PROBATION;

    if (takes_part)
        cox__transition_device(session, device, COX_DEVICE_DRAINING);
    if (!session->recovery.no_device_since_ns && !cox__device_any_active(&session->devices))
        session->recovery.no_device_since_ns = cox__engine_now(session->runtime);
    session->recovery.attention = true;
    if (takes_part || status == COX_E_MISMATCH)
        cox__event_emit(&session->events, (struct cox__event){.kind = COX__EVENT_DEVICE_FAILED,
                                                              .device = device,
                                                              .status = status});
}

void cox__device_plan_retry(struct cox__device *device, uint64_t now_ns, bool forget)
{
    if (forget &&
        device->last_done_ns > cox__later(device->return_ns, FORGET_TIMES * device->pause_ns))
        device->pause_ns = 0;
    device->pause_ns = device->pause_ns ? 2 * device->pause_ns : PAUSE_FIRST_NS;
    device->pause_ns = cox__min_u64(device->pause_ns, PAUSE_MAX_NS);
    device->retry_ns = cox__later(now_ns, device->pause_ns);
}

void cox__device_worked(struct cox__recovery *recovery)
{
    recovery->no_device_since_ns = 0;
}

void cox__device_return(struct cox_session *session, uint32_t device)
{
    struct cox__device *of = &session->devices.list[device];

    of->return_ns = cox__engine_now(session->runtime);
    cox__transition_device(session, device, COX_DEVICE_ACTIVE);
    if (of->lost)
        cox__log(&session->runtime->log, COX_LOG_WARN, "%s is back", of->info.name);
    else
        cox__log(&session->runtime->log, COX_LOG_INFO, "%s joins the session", of->info.name);
}

/* ---- queues ---- */

static struct cox__queue *new_queue(struct cox_session *session, uint32_t device,
                                    struct cox__instance *instance)
{
    struct cox__queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;

    queue->slot_count = session->devices.list[device].slot_count;
    queue->slots = calloc(queue->slot_count, sizeof *queue->slots);
    if (!queue->slots) {
        free(queue);
        return NULL;
    }

    atomic_init(&queue->state, COX__QUEUE_LIVE);
    queue->runtime = session->runtime;
    queue->session = session;
    queue->device = device;
    queue->instance = instance;

    for (uint32_t i = 0; i < queue->slot_count; i++) {
        struct cox__queue_slot *slot = &queue->slots[i];

        slot->queue = queue;
        slot->job.session = session;
        slot->job.instance = instance;
        slot->job.slot = i;
        slot->job.mems = slot->mems;
        slot->job.params = slot->params;
    }

    return queue;
}

cox_status cox__device_attach(struct cox_session *session, uint32_t device,
                              struct cox__instance *instance, const uint32_t *max_rows)
{
    struct cox__device *of = &session->devices.list[device];
    uint32_t most[COX_PASSES_MAX] = {0};

    for (uint32_t p = 0; p < session->pipeline.pass_count; p++) {
        const struct cox__pass *pass = &session->pipeline.passes[p];

        most[p] = max_rows[p];
        if (most[p] < pass->rows) /* longer bands are cut at multiples of it */
            most[p] -= most[p] % pass->row_alignment;
        if ((uint64_t)most[p] * (COX_BANDS_MAX / 2) < pass->rows)
            return COX_E_DEVICE_MEMORY;
    }

    of->queue = new_queue(session, device, instance);
    if (!of->queue)
        return COX_E_NOMEM;

    of->resident = session->runtime->backend->ops->instance_resident(session->runtime->backend,
                                                                     instance);
    pthread_mutex_lock(&session->lock);
    for (uint32_t p = 0; p < session->pipeline.pass_count; p++)
        of->passes[p].max_rows = most[p];

    pthread_mutex_unlock(&session->lock);

    return COX_OK;
}

void cox__device_queue_free(struct cox__queue *queue)
{
    if (!queue)
        return;
    free(queue->slots);
    free(queue);
}
