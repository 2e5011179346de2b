/* The application's side of a session: create, submit, wait, destroy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"
#include "give_up.h"
#include "recall.h"

#include <stdlib.h>
#include <string.h>

/* Drivers reset a GPU that hangs after 2 to 10 seconds. */
#define GIVE_UP_NS 2000000000ull

/* Which of the runtime's devices take part; checks the list. */
static cox_status choose_devices(cox_runtime *runtime, const struct cox_session_params *params, uint32_t *devices,
                                 uint32_t *count)
{
    uint32_t all = runtime->backend->ops->device_count(runtime->backend);
    *count = params->device_count ? params->device_count : all;
    if (*count > COX_DEVICES_MAX || (params->device_count && !params->devices)) {
        cox__log(&runtime->log, COX_LOG_ERROR, "a session of %u devices does not work", *count);
        return COX_E_INVALID;
    }
    for (uint32_t i = 0; i < *count; i++) {
        devices[i] = params->device_count ? params->devices[i] : i;
        for (uint32_t j = 0; j < i; j++)
            if (devices[i] == devices[j]) {
                cox__log(&runtime->log, COX_LOG_ERROR, "device %u is listed twice", devices[i]);
                return COX_E_INVALID;
            }
        if (devices[i] >= all) {
            cox__log(&runtime->log, COX_LOG_ERROR, "there is no device %u", devices[i]);
            return COX_E_INVALID;
        }
    }
    return COX_OK;
}

static void set_granule(cox_runtime *runtime, struct cox__pipeline *pipeline, const uint32_t *devices, uint32_t count)
{
    uint64_t granule = 1;
    for (uint32_t i = 0; i < count; i++) {
        struct cox_device_info info;
        runtime->backend->ops->device_info(runtime->backend, devices[i], &info);
        granule = cox__lcm_bounded(granule, cox__pipeline_granule(pipeline, devices[i], &info), pipeline->rows);
    }
    pipeline->granule = (uint32_t)granule;
    if (granule == pipeline->rows && granule > 1 && count > 1)
        cox__log(&runtime->log, COX_LOG_WARN,
                 "rows cannot be split: with these pitches every band boundary is misaligned "
                 "(see cox_runtime_pitch_bytes)");
}

/* Outputs go to the devices as well, so that the bytes that no kernel writes are everywhere what they were and rows can be
 * compared as a whole. Nothing is in place for that: a band can be done again. */
static void keep_outputs(struct cox__pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->binding_count; i++)
        if (pipeline->bindings[i].contract == COX_ROWS && pipeline->bindings[i].access == COX_WRITE)
            pipeline->bindings[i].access = COX_READ_WRITE;
}

static cox_status create_units(cox_session *session, const uint32_t *devices, uint32_t count)
{
    struct cox__backend *backend = session->runtime->backend;
    cox_status first_error = COX_OK;
    for (uint32_t i = 0; i < count; i++) {
        struct cox__session_unit *unit = &session->units[session->unit_count];
        struct cox__unit *made;
        uint32_t max_rows;
        backend->ops->device_info(backend, devices[i], &unit->info);
        cox_status status = backend->ops->unit_create(backend, devices[i], &session->pipeline, session->lane_count,
                                                      false, &made, &max_rows);
        if (status == COX_OK && (status = cox__unit_install(session, session->unit_count, made, max_rows)))
            backend->ops->unit_destroy(backend, made);
        if (status) {
            cox__log(&session->runtime->log, COX_LOG_WARN, "%s does not take part: %s", unit->info.name,
                     cox_status_text(status));
            first_error = first_error ? first_error : status;
            continue;
        }
        session->unit_count++;
        unit->device = devices[i];
        unit->usable = true;
        unit->ask = unit->info.type != COX_DEVICE_CPU;
    }
    return session->unit_count ? COX_OK : first_error;
}

static cox_status start_policy(cox_session *session, const struct cox_session_params *params)
{
    const struct cox_policy *policy = params->custom_policy ? params->custom_policy : cox_policy_find(params->policy);
    if (!policy) {
        cox__log(&session->runtime->log, COX_LOG_ERROR, "there is no policy '%s'", params->policy);
        return COX_E_NOT_FOUND;
    }
    if (!policy->name || !policy->state_bytes || !policy->init || !policy->split) {
        cox__log(&session->runtime->log, COX_LOG_ERROR, "the custom policy lacks a name or a function");
        return COX_E_INVALID;
    }
    session->policy = *policy;
    size_t bytes = policy->state_bytes(session->unit_count);
    session->policy_state = calloc(1, bytes ? bytes : 1);
    if (!session->policy_state)
        return COX_E_NOMEM;
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view view;
    cox__engine_view(session, 0, devices, &view);
    cox_status status = policy->init(session->policy_state, &view, &params->policy_options);
    if (status)
        cox__log(&session->runtime->log, COX_LOG_ERROR, "policy %s refuses its options for %u devices: %s",
                 policy->name, session->unit_count, cox_status_text(status));
    return status;
}

static cox_status create_slots(cox_session *session)
{
    session->slots = calloc(session->in_flight, sizeof *session->slots);
    session->warmup.slot = calloc(1, sizeof *session->warmup.slot);
    if (!session->slots || !session->warmup.slot)
        return COX_E_NOMEM;
    for (uint32_t i = 0; i < session->in_flight; i++) {
        session->slots[i].request.session = session;
        session->slots[i].request.slot = &session->slots[i];
        session->slots[i].next_free = session->free_slots;
        session->free_slots = &session->slots[i];
    }
    return COX_OK;
}

/* Free a session that the scheduler thread does not know (any more). Half-built ones too. */
static void free_session(cox_session *session)
{
    for (uint32_t u = 0; u < session->unit_count; u++) {
        free(session->units[u].lanes);
        free(session->units[u].remains);
    }
    for (uint32_t i = 0; session->slots && i < session->in_flight; i++)
        for (uint32_t b = 0; b < COX__SLOT_BANDS_MAX; b++)
            free(session->slots[i].bands[b].partials);
    free(session->slots);
    free(session->warmup.slot);
    free(session->shadow.slot);
    free(session->policy_state);
    cox__pipeline_clear(&session->pipeline);
    pthread_cond_destroy(&session->slot_free);
    pthread_cond_destroy(&session->delivered);
    pthread_mutex_destroy(&session->lock);
    free(session);
}

static void destroy_units(cox_session *session)
{
    struct cox__backend *backend = session->runtime->backend;
    for (uint32_t u = 0; u < session->unit_count; u++)
        if (session->units[u].unit)
            backend->ops->unit_destroy(backend, session->units[u].unit);
}

cox_status cox_session_create(cox_runtime *runtime, const struct cox_session_params *params, cox_session **out)
{
    if (!out)
        return COX_E_INVALID;
    *out = NULL;
    if (!runtime || !params)
        return COX_E_INVALID;
    if (params->in_flight > COX_IN_FLIGHT_MAX) {
        cox__log(&runtime->log, COX_LOG_ERROR, "%u frames in flight are more than %d", params->in_flight,
                 COX_IN_FLIGHT_MAX);
        return COX_E_INVALID;
    }
    if (!(params->verify >= 0 && params->verify <= 1)) {
        cox__log(&runtime->log, COX_LOG_ERROR, "the share of bands to verify is not in 0 .. 1");
        return COX_E_INVALID;
    }
    uint32_t devices[COX_DEVICES_MAX], count;
    cox_status status = choose_devices(runtime, params, devices, &count);
    if (status)
        return status;
    cox_session *session = calloc(1, sizeof *session);
    if (!session)
        return COX_E_NOMEM;
    session->runtime = runtime;
    session->in_flight = params->in_flight ? params->in_flight : 2;
    session->lane_count = session->in_flight > 2 ? session->in_flight : 2;
    session->min_band_rows = params->min_band_rows;
    session->report = params->report;
    session->report_user = params->report_user;
    session->meter = params->meter;
    session->meter_user = params->meter_user;
    session->warmup.finished = params->no_warmup;
    session->verify = params->verify;
    session->give_up_ns = params->give_up_ns ? params->give_up_ns : GIVE_UP_NS;
    session->settle = params->settle;
    session->no_backup = params->no_backup;
    pthread_mutex_init(&session->lock, NULL);
    pthread_cond_init(&session->slot_free, NULL);
    pthread_cond_init(&session->delivered, NULL);

    status = cox__pipeline_init(&session->pipeline, params, &runtime->log);
    if (status)
        goto fail;
    if (params->verify > 0)
        keep_outputs(&session->pipeline);
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (session->pipeline.bindings[i].contract == COX_REDUCE)
            session->partial_bytes += session->pipeline.bindings[i].bytes;
    set_granule(runtime, &session->pipeline, devices, count);
    if (runtime->topology)
        cox__topology_enter(runtime->topology);
    status = create_units(session, devices, count);
    if (runtime->topology)
        cox__topology_leave(runtime->topology);
    if (status)
        goto fail;
    status = start_policy(session, params);
    if (status)
        goto fail;
    cox__recall_begin(session, params);
    status = create_slots(session);
    if (status)
        goto fail;
    *out = session;
    return COX_OK;

fail:
    destroy_units(session);
    free_session(session);
    return status;
}

void cox_session_destroy(cox_session **out)
{
    if (!out || !*out)
        return;
    cox_session *session = *out;
    *out = NULL;
    cox_session_wait(session);
    cox__recall_end(session);
    const bool quiet = cox__engine_close(session);
    /* No job is under way; a late callback of one may still post it, which unit_destroy waits for. The engine takes all
     * such posts before it lets go of the session. */
    destroy_units(session);
    struct cox__request request = {.session = session, .slot = NULL};
    if (cox__engine_request(session->runtime, &request))
        cox__loop_wake(session->runtime->loop);
    pthread_mutex_lock(&session->lock);
    while (!session->detached)
        pthread_cond_wait(&session->delivered, &session->lock);
    pthread_mutex_unlock(&session->lock);
    if (!quiet) {
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "a session's memory is given up: a driver does not return from "
                 "letting go of its device");
        cox__give_up(session);
        return;
    }
    cox__engine_drop_warmup(session);
    cox__engine_drop_spare(session);
    free_session(session);
}

static cox_status check_frame(const cox_session *session, const struct cox_frame *frame)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    const struct cox__log *log = &session->runtime->log;
    if (!frame || !frame->buffers || frame->buffer_count != pipeline->binding_count) {
        cox__log(log, COX_LOG_ERROR, "a frame of this session has %u buffers", pipeline->binding_count);
        return COX_E_INVALID;
    }
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const cox_buffer *buffer = frame->buffers[i];
        struct cox_buffer_info info = {0};
        if (buffer && buffer->runtime == session->runtime)
            session->runtime->backend->ops->mem_info(buffer->mem, &info);
        size_t need = cox__binding_bytes(pipeline, i);
        if (info.bytes < need) {
            cox__log(log, COX_LOG_ERROR, "buffer %u (%s): %s; %zu bytes are needed, %zu are there", i,
                     pipeline->bindings[i].name,
                     !buffer                               ? "NULL"
                     : buffer->runtime != session->runtime ? "belongs to another runtime"
                                                           : "too short",
                     need, info.bytes);
            return COX_E_INVALID;
        }
        for (uint32_t j = 0; j < i; j++)
            if (frame->buffers[j] == buffer &&
                (pipeline->bindings[i].access != COX_READ || pipeline->bindings[j].access != COX_READ)) {
                cox__log(log, COX_LOG_ERROR, "buffers %u and %u are the same, and one is written", j, i);
                return COX_E_INVALID;
            }
    }
    return COX_OK;
}

static void run_done(void *user, uint64_t frame, cox_status status);

static void fill_slot(struct cox__slot *slot, const cox_session *session, const struct cox_frame *frame,
                      cox_done_fn *done, void *user)
{
    for (uint32_t i = 0; i < frame->buffer_count; i++) {
        slot->mems[i] = frame->buffers[i]->mem;
    }
    if (frame->params)
        memcpy(slot->params, frame->params, session->pipeline.params_bytes);
    else
        memset(slot->params, 0, session->pipeline.params_bytes);
    slot->done = done;
    slot->awaited = done == run_done;
    slot->user = user;
}

/* `*wake`: the scheduler thread has to be woken for the frame. */
static cox_status submit(cox_session *session, const struct cox_frame *frame, cox_done_fn *done, void *user, bool *wake)
{
    *wake = false;
    if (!session)
        return COX_E_INVALID;
    cox_status status = check_frame(session, frame);
    if (status)
        return status;
    struct cox__backend *backend = session->runtime->backend;
    bool nowait = frame->nowait || cox__loop_inside(session->runtime->loop);
    pthread_mutex_lock(&session->lock);
    while (!session->free_slots && !session->dead && !nowait)
        pthread_cond_wait(&session->slot_free, &session->lock);
    struct cox__slot *slot = session->free_slots;
    if (session->dead || !slot) {
        *wake = session->dead; /* so that the devices are tried again in any case */
        status = session->dead ? COX_E_NO_DEVICE : COX_E_BUSY;
        pthread_mutex_unlock(&session->lock);
        return status;
    }
    session->free_slots = slot->next_free;
    fill_slot(slot, session, frame, done, user);
    slot->index = session->next_index++;
    slot->submit_ns = backend->ops->now_ns(backend);
    session->under_way++;
    /* Under the lock, so that requests queue up in the order of their indices. */
    *wake = cox__engine_request(session->runtime, &slot->request);
    pthread_mutex_unlock(&session->lock);
    return COX_OK;
}

cox_status cox_session_submit(cox_session *session, const struct cox_frame *frame, cox_done_fn *done, void *user)
{
    bool wake;
    cox_status status = submit(session, frame, done, user, &wake);
    if (wake)
        cox__loop_wake(session->runtime->loop);
    return status;
}

void cox_session_wait(cox_session *session)
{
    pthread_mutex_lock(&session->lock);
    while (session->under_way)
        pthread_cond_wait(&session->delivered, &session->lock);
    pthread_mutex_unlock(&session->lock);
}

struct run_wait {
    cox_session *session;
    cox_status status;
    atomic_bool done;
};

static void run_done(void *user, uint64_t frame, cox_status status)
{
    struct run_wait *wait = user;
    cox_runtime *runtime = wait->session->runtime;
    (void)frame;
    wait->status = status;
    atomic_store(&wait->done, true); /* `wait` may be gone from here on; the runtime is not, the frame is under way */
    cox__engine_awaited(runtime);
}

cox_status cox_session_run(cox_session *session, const struct cox_frame *frame)
{
    struct run_wait wait = {.session = session};
    bool wake;
    cox_status status = submit(session, frame, run_done, &wait, &wake);
    if (wake) /* else somebody else's request is queued before, and that thread sees to both */
        cox__engine_help(session->runtime);
    if (status)
        return status;
    if (!cox__engine_await(session->runtime, &wait.done)) {
        pthread_mutex_lock(&session->lock);
        while (!atomic_load(&wait.done))
            pthread_cond_wait(&session->delivered, &session->lock);
        pthread_mutex_unlock(&session->lock);
    }
    return wait.status;
}

void cox_session_info(cox_session *session, struct cox_session_info *info)
{
    memset(info, 0, sizeof *info);
    info->granule = session->pipeline.granule;
    info->in_flight = session->in_flight;
    info->recalled = session->recall.recalled;
    strncpy(info->policy, session->policy.name, sizeof info->policy - 1);
    info->device_count = session->unit_count;
    pthread_mutex_lock(&session->lock);
    info->frames_done = session->frames_done;
    for (uint32_t u = 0; u < session->unit_count; u++) {
        const struct cox__session_unit *unit = &session->units[u];
        info->devices[u] = (struct cox_session_device){.device = unit->device,
                                                       .mode = unit->info.mode,
                                                       .usable = unit->usable,
                                                       .health = unit->health,
                                                       .late = unit->late,
                                                       .lost = unit->lost,
                                                       .returned = unit->returned,
                                                       .solo_ns = unit->solo_ns,
                                                       .max_rows = unit->max_rows};
    }
    pthread_mutex_unlock(&session->lock);
}
