/* The application's side of a session: create, submit, wait, destroy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/device_state.h"
#include "engine/engine.h"
#include "host/leak.h"
#include "params.h"
#include "store/device_profile.h"

#include <stdlib.h>
#include <string.h>

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

/* Outputs go to the devices as well, so that the bytes that no kernel writes are everywhere what they were and rows can
 * be compared as a whole. Nothing is in place for that: a band can be done again. */
static void keep_outputs(struct cox__pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->binding_count; i++)
        if (pipeline->bindings[i].contract == COX_ROWS && pipeline->bindings[i].access == COX_WRITE)
            pipeline->bindings[i].access = COX_READ_WRITE;
}

static cox_status create_devices(cox_session *session, const uint32_t *devices, uint32_t count)
{
    struct cox__backend *backend = session->runtime->backend;
    cox_status first_error = COX_OK;
    for (uint32_t i = 0; i < count; i++) {
        struct cox__device *device = &session->devices[session->device_count];
        struct cox__instance *instance;
        uint32_t max_rows;
        backend->ops->device_info(backend, devices[i], &device->info);
        cox_status status = backend->ops->instance_create(backend, devices[i], &session->pipeline, session->slot_count,
                                                          false, &instance, &max_rows);
        if (status == COX_OK && (status = cox__device_attach(session, session->device_count, instance, max_rows)))
            backend->ops->instance_destroy(backend, instance);
        if (status) {
            cox__log(&session->runtime->log, COX_LOG_WARN, "%s does not take part: %s", device->info.name,
                     cox_status_text(status));
            first_error = first_error ? first_error : status;
            continue;
        }
        session->device_count++;
        device->device = devices[i];
        device->state = COX_DEVICE_ACTIVE;
        device->polled = device->info.type != COX_DEVICE_CPU;
    }
    return session->device_count ? COX_OK : first_error;
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
    size_t bytes = policy->state_bytes(session->device_count);
    session->policy_state = calloc(1, bytes ? bytes : 1);
    if (!session->policy_state)
        return COX_E_NOMEM;
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view view;
    cox__engine_view(session, 0, devices, &view);
    cox_status status = policy->init(session->policy_state, &view, params->policy_options);
    if (status)
        cox__log(&session->runtime->log, COX_LOG_ERROR, "policy %s refuses its options for %u devices: %s",
                 policy->name, session->device_count, cox_status_text(status));
    return status;
}

static cox_status create_frames(cox_session *session)
{
    session->frames = calloc(session->in_flight, sizeof *session->frames);
    session->warmup.frame = calloc(1, sizeof *session->warmup.frame);
    if (!session->frames || !session->warmup.frame)
        return COX_E_NOMEM;
    for (uint32_t i = 0; i < session->in_flight; i++) {
        session->frames[i].request.session = session;
        session->frames[i].request.frame = &session->frames[i];
        session->frames[i].next_free = session->free_frames;
        session->free_frames = &session->frames[i];
    }
    return COX_OK;
}

/* Free a session that the scheduler thread does not know (any more). Half-built ones too. */
static void free_session(cox_session *session)
{
    for (uint32_t d = 0; d < session->device_count; d++)
        cox__queue_free(session->devices[d].queue);
    for (uint32_t i = 0; session->frames && i < session->in_flight; i++)
        for (uint32_t b = 0; b < COX__FRAME_BANDS_MAX; b++)
            free(session->frames[i].bands[b].partials);
    free(session->frames);
    free(session->warmup.frame);
    free(session->shadow.frame);
    free(session->policy_state);
    cox__pipeline_clear(&session->pipeline);
    pthread_cond_destroy(&session->slot_free);
    pthread_cond_destroy(&session->delivered);
    pthread_mutex_destroy(&session->lock);
    free(session);
}

static void destroy_instances(cox_session *session)
{
    struct cox__backend *backend = session->runtime->backend;
    for (uint32_t d = 0; d < session->device_count; d++)
        if (session->devices[d].queue)
            backend->ops->instance_destroy(backend, session->devices[d].queue->instance);
}

static cox_status create(cox_runtime *runtime, const struct cox_session_params *params, cox_session **out)
{
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
    session->slot_count = session->in_flight > 2 ? session->in_flight : 2;
    session->min_band_rows = params->min_band_rows;
    session->report = params->report;
    session->report_user = params->report_user;
    session->meter = params->meter;
    session->meter_user = params->meter_user;
    session->warmup.finished = params->no_warmup;
    session->verify = params->verify;
    session->device_timeout_ns = params->device_timeout_ns;
    session->polls_closely = runtime->polls_closely &&
                             (!params->policy_options || params->policy_options->objective != COX_OBJECTIVE_ENERGY);
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
    status = create_devices(session, devices, count);
    if (runtime->topology)
        cox__topology_leave(runtime->topology);
    if (status)
        goto fail;
    status = start_policy(session, params);
    if (status)
        goto fail;
    cox__device_profile_load(session, params);
    status = create_frames(session);
    if (status)
        goto fail;
    *out = session;
    return COX_OK;

fail:
    destroy_instances(session);
    free_session(session);
    return status;
}

cox_status cox_session_create(cox_runtime *runtime, const struct cox_session_params *params, cox_session **out)
{
    struct cox__session_params copy;
    if (!out)
        return COX_E_INVALID;
    *out = NULL;
    if (!runtime || !params)
        return COX_E_INVALID;
    const cox_status status = cox__session_params_read(&copy, params, &runtime->log);
    return status ? status : create(runtime, &copy.params, out);
}

void cox_session_destroy(cox_session **out)
{
    if (!out || !*out)
        return;
    cox_session *session = *out;
    *out = NULL;
    cox_session_wait(session);
    cox__device_profile_save(session);
    const bool quiet = cox__engine_close(session);
    /* No job is under way; a late callback of one may still post it, which instance_destroy waits for. The engine takes
     * all such posts before it lets go of the session. */
    destroy_instances(session);
    struct cox__request request = {.session = session, .frame = NULL};
    if (cox__engine_request(session->runtime, &request))
        cox__loop_wake(session->runtime->loop);
    pthread_mutex_lock(&session->lock);
    while (!session->detached)
        pthread_cond_wait(&session->delivered, &session->lock);
    pthread_mutex_unlock(&session->lock);
    if (!quiet) {
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "a session's memory is leaked: a driver does not return from letting go of its device");
        cox__leak(session);
        return;
    }
    cox__engine_drop_warmup(session);
    cox__engine_drop_scratch(session);
    free_session(session);
}

static cox_status check_frame(const cox_session *session, const struct cox_frame *frame)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    const struct cox__log *log = &session->runtime->log;
    if (!frame->buffers || frame->buffer_count != pipeline->binding_count) {
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

static void fill_frame(struct cox__frame *slot, const cox_session *session, const struct cox_frame *frame,
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
static cox_status submit(cox_session *session, const struct cox_frame *from, cox_done_fn *done, void *user, bool *wake)
{
    struct cox_frame copy = {0};
    const struct cox_frame *frame = &copy;
    *wake = false;
    if (!session)
        return COX_E_INVALID;
    cox_status status = from ? COX__SIZED_READ(&copy, from) : COX_OK;
    status = status ? cox__params_told(status, "cox_frame", &session->runtime->log) : check_frame(session, frame);
    if (status)
        return status;
    struct cox__backend *backend = session->runtime->backend;
    bool nowait = frame->nowait || cox__loop_inside(session->runtime->loop);
    pthread_mutex_lock(&session->lock);
    while (!session->free_frames && !session->no_device && !nowait)
        pthread_cond_wait(&session->slot_free, &session->lock);
    struct cox__frame *slot = session->free_frames;
    if (session->no_device || !slot) {
        *wake = session->no_device; /* so that the devices are tried again in any case */
        status = session->no_device ? COX_E_NO_DEVICE : COX_E_BUSY;
        pthread_mutex_unlock(&session->lock);
        return status;
    }
    session->free_frames = slot->next_free;
    fill_frame(slot, session, frame, done, user);
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
    if (status) {
        if (wake)
            cox__loop_wake(session->runtime->loop);
        return status;
    }
    if (!cox__engine_await(session->runtime, &wait.done)) {
        pthread_mutex_lock(&session->lock);
        while (!atomic_load(&wait.done))
            pthread_cond_wait(&session->delivered, &session->lock);
        pthread_mutex_unlock(&session->lock);
    }
    return wait.status;
}

void cox_session_info(cox_session *session, struct cox_session_info *info, size_t info_bytes)
{
    struct cox_session_info found = {.granule = session->pipeline.granule,
                                     .in_flight = session->in_flight,
                                     .profile_loaded = session->profile.is_loaded,
                                     .device_count = session->device_count};
    strncpy(found.policy, session->policy.name, sizeof found.policy - 1);
    pthread_mutex_lock(&session->lock);
    found.frames_done = session->frames_done;
    for (uint32_t d = 0; d < session->device_count; d++) {
        const struct cox__device *device = &session->devices[d];
        found.devices[d] = (struct cox_session_device){.device = device->device,
                                                       .mode = device->info.mode,
                                                       .state = device->state,
                                                       .lost = device->lost,
                                                       .returned = device->returned,
                                                       .solo_ns = device->solo_ns,
                                                       .max_rows = device->max_rows};
    }
    pthread_mutex_unlock(&session->lock);
    cox__sized_write(info, info_bytes, &found, sizeof found);
}
