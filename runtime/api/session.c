/* The application's calls on a session: create, warm up, submit, wait, destroy.
 * The devices and the split of a new session are in session_devices.c and sharing.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"
#include "checking.h"
#include "engine/admission.h"
#include "engine/device.h"
#include "engine/engine.h"
#include "engine/failure/directory.h"
#include "engine/failure/residency.h"
#include "engine/frame.h"
#include "engine/home.h"
#include "engine/sync.h"
#include "engine/transitions.h"
#include "host/leak.h"
#include "misuse.h"
#include "params.h"
#include "session_devices.h"
#include "sharing.h"
#include "store/device_profile.h"

#include <stdlib.h>
#include <string.h>

/* ---- frame slots ---- */

/* Bindings of which each frame slot has its own memory, a bit for each. */
static uint32_t scratch_bindings(const cox_session *session)
{
    uint32_t bindings = 0;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        bindings |= (uint32_t)session->pipeline.bindings[i].scratch << i;

    return bindings;
}

static cox_status make_scratch(cox_session *session, struct cox__frame *frame)
{
    const uint32_t bindings = scratch_bindings(session);
    if (!bindings)
        return COX_OK;

    uint32_t failed;
    const cox_status status = cox__spare_make_mems(session->runtime->backend, &session->pipeline,
                                                   bindings, frame->scratch, &failed);
    if (status)
        cox__log(&session->runtime->log, COX_LOG_ERROR, "scratch buffer %u (%s), %zu bytes: %s",
                 failed, session->pipeline.bindings[failed].name, session->pipeline.bytes[failed],
                 cox_status_text(status));
    return status;
}

static bool allocate_frame(const cox_session *session, struct cox__frame *frame)
{
    return cox__frame_allocate(&session->pipeline, frame) &&
           cox__residency_allocate(frame, session->devices.count);
}

static void free_frame(struct cox__frame *frame)
{
    cox__frame_free(frame);
    cox__residency_free(frame);
}

/* Allocate the frames' slots: the application's, one for a callback, the warm-up's. */
static bool allocate_frames(cox_session *session)
{
    session->slots.all = calloc(session->settings.in_flight + 1, sizeof *session->slots.all);
    session->warmup.frame = calloc(1, sizeof *session->warmup.frame);
    bool made = session->slots.all && session->warmup.frame &&
                allocate_frame(session, session->warmup.frame);

    for (uint32_t i = 0; made && i <= session->settings.in_flight; i++) {
        session->slots.all[i].set = i;
        made = allocate_frame(session, &session->slots.all[i]);
    }
    if (!made)
        return false;

    session->reporting.sorted = calloc(session->slots.all[0].band_max,
                                       sizeof *session->reporting.sorted);
    return session->reporting.sorted != NULL;
}

static cox_status create_frames(cox_session *session)
{
    if (!allocate_frames(session) || !cox__directory_allocate(session)) {
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "no memory for %u frames in flight of %zu bytes each", session->settings.in_flight,
                 sizeof *session->slots.all);
        return COX_E_NOMEM;
    }

    for (uint32_t i = 0; i <= session->settings.in_flight; i++) {
        const cox_status status = make_scratch(session, &session->slots.all[i]);
        if (status)
            return status;
    }

    for (uint32_t i = 0; i <= session->settings.in_flight; i++) {
        session->slots.all[i].request.session = session;
        session->slots.all[i].request.frame = &session->slots.all[i];
    }
    for (uint32_t i = 0; i < session->settings.in_flight; i++) {
        session->slots.all[i].next_free = session->slots.free;
        session->slots.free = &session->slots.all[i];
    }
    session->slots.reserved = &session->slots.all[session->settings.in_flight];
    return COX_OK;
}

/* ---- destruction of the parts ---- */

/* Free a session that the scheduler thread does not know (any more). It may be half built. */
static void free_session(cox_session *session)
{
    for (uint32_t d = 0; d < session->devices.count; d++)
        cox__device_queue_free(session->devices.list[d].queue);

    for (uint32_t i = 0; session->slots.all && i <= session->settings.in_flight; i++)
        free_frame(&session->slots.all[i]);
    free(session->slots.all);
    if (session->warmup.frame)
        free_frame(session->warmup.frame);
    free(session->warmup.frame);
    if (session->shadow.frame)
        cox__frame_free(session->shadow.frame);
    free(session->shadow.frame);

    for (uint32_t p = 0; p < COX_PASSES_MAX; p++) {
        free(session->sharing[p].state);
        free(session->sharing[p].together);
    }
    free(session->reporting.sorted);
    cox__residency_free_history(&session->residency.handed_over);
    cox__directory_free(session);
    cox__pipeline_clear(&session->pipeline);

    pthread_cond_destroy(&session->delivered);
    pthread_mutex_destroy(&session->lock);
    free(session);
}

/* Called when the instances are gone and the engine does not know the session (any more). */
static void drop_frame_scratch(cox_session *session)
{
    for (uint32_t i = 0; session->slots.all && i <= session->settings.in_flight; i++)
        for (uint32_t b = 0; b < session->pipeline.binding_count; b++)
            if (session->slots.all[i].scratch[b])
                cox__memory_drop(session->runtime, session->slots.all[i].scratch[b]);
}

static void destroy_instances(cox_session *session)
{
    struct cox__backend *backend = session->runtime->backend;
    for (uint32_t d = 0; d < session->devices.count; d++)
        if (session->devices.list[d].queue)
            backend->ops->instance_destroy(backend, session->devices.list[d].queue->instance, NULL,
                                           NULL);
}

/* ---- creation ---- */

static cox_status check_params(const cox_runtime *runtime, const struct cox__session_spec *params)
{
    const struct cox__log *log = &runtime->log;
    if (params->in_flight > COX_IN_FLIGHT_MAX) {
        cox__log(log, COX_LOG_ERROR, "in_flight is %u; allowed: 0 to %d", params->in_flight,
                 COX_IN_FLIGHT_MAX);
        return COX_E_INVALID;
    }
    if (!(params->verify >= 0 && params->verify <= 1)) {
        cox__log(log, COX_LOG_ERROR, "verify is %g; allowed: 0 to 1", params->verify);
        return COX_E_INVALID;
    }
    if (params->warm_start && params->warm_start->runtime != runtime) {
        cox__log(log, COX_LOG_ERROR, "warm_start: the session belongs to another runtime");
        return COX_E_INVALID;
    }
    return COX_OK;
}

/* Allocate a session, and fill in what needs no device. NULL: no memory. */
static cox_session *new_session(cox_runtime *runtime, const struct cox__session_spec *params)
{
    cox_session *session = calloc(1, sizeof *session);
    if (!session) {
        cox__log(&runtime->log, COX_LOG_ERROR, "no memory for a session of %zu bytes",
                 sizeof *session);
        return NULL;
    }

    session->runtime = runtime;
    session->settings.in_flight = params->in_flight ? params->in_flight : 2;
    session->settings.min_band_rows = params->min_band_rows;
    session->reporting.report = params->report;
    session->reporting.user = params->report_user;
    session->energy.meter = params->meter;
    session->energy.user = params->meter_user;
    session->settings.verify = params->verify;
    session->settings.deadline_ns = params->policy_options->deadline_ns;
    session->settings.device_timeout_ns = params->device_timeout_ns;
    session->settings.polls_closely = runtime->polls_closely &&
                                      params->policy_options->objective != COX_OBJECTIVE_ENERGY;

    pthread_mutex_init(&session->lock, NULL);
    pthread_cond_init(&session->delivered, NULL);
    return session;
}

/* To verify, send outputs to the devices too, unless the kernels write all elements. Those that no
 * kernel writes are then the same everywhere, and whole rows can be compared. No binding is in
 * place for that, so bands can be repeated. */
static void keep_outputs(struct cox__pass *pass)
{
    for (uint32_t i = 0; i < pass->binding_count; i++)
        if (pass->bindings[i].row_access == COX__ROWS && pass->bindings[i].access == COX__WRITE &&
            pass->bindings[i].coverage == COX__COVERS_UNKNOWN)
            pass->bindings[i].access = COX__READ_WRITE;
}

/* Make the pipeline, and the decisions that come before any device compiles it. */
static cox_status prepare_pipeline(cox_session *session, const struct cox__session_spec *params,
                                   const uint32_t *devices, uint32_t count)
{
    struct cox__pipeline *pipeline = &session->pipeline;
    cox_status status = cox__pipeline_init(pipeline, params, &session->runtime->log);
    if (status == COX_OK)
        status = cox__session_devices_check(session, devices, count);
    if (status)
        return status;

    for (uint32_t p = 0; params->verify > 0 && p < pipeline->pass_count; p++)
        keep_outputs(&pipeline->passes[p]);
    cox__sharing_choose(session, params, devices, count);

    /* To verify, another device repeats rows of a finished pass from the host's memory. */
    if (params->verify > 0 || params->check) /* the check reads inputs there too */
        pipeline->resident = pipeline->stays = 0;
    pipeline->sets = session->settings.in_flight + 1;
    return COX_OK;
}

static cox_status join_devices(cox_session *session, const struct cox__session_spec *params,
                               const uint32_t *devices, uint32_t count)
{
    struct cox__topology *topology = session->runtime->topology;
    cox_status status = COX_OK;
    if (topology)
        cox__topology_enter(topology);

    if (params->ready)
        cox__session_devices_announce(session, devices, count);
    else
        status = cox__session_devices_create(session, devices, count);

    if (topology)
        cox__topology_leave(topology);
    return status;
}

/* Skip the warm-up if it is not wanted, or if nothing can be learnt from it. */
static void decide_warmup(cox_session *session, const struct cox__session_spec *params)
{
    if (params->ready || params->no_warmup || session->devices.count == 1 ||
        (params->warm_start && cox__device_profile_skip_warmup(session, params->warm_start))) {
        session->warmth.state = COX__SESSION_NOTHING_TO_WARM;
        session->warmup.state = COX__WARMUP_FINISHED;
    }
}

/* Other threads know the session from here on. */
static void begin_joining(cox_session *session, const struct cox__session_spec *params)
{
    session->joining.ready = params->ready;
    session->joining.user = params->ready_user;
    session->counts.under_way = 1;
    session->joining.request = (struct cox__request){.kind = COX__REQUEST_JOIN, .session = session};
    if (cox__engine_request(session->runtime, &session->joining.request))
        cox__loop_wake(session->runtime->loop);
}

/* Whether a device of the session is a CPU. Enqueueing may keep the scheduler thread for so long
 * that it sees the ends of other devices' bands late. */
static bool has_processor(const cox_runtime *runtime, const uint32_t *devices, uint32_t count)
{
    bool found = false;
    for (uint32_t d = 0; d < count; d++) {
        struct cox_device_info info;
        runtime->backend->ops->device_info(runtime->backend, devices[d], &info);
        found = found || info.type == COX_DEVICE_CPU;
    }
    return found;
}

static cox_status create(cox_runtime *runtime, const struct cox__session_spec *params,
                         cox_session **out)
{
    uint32_t devices[COX_DEVICES_MAX], count;
    cox_status status = check_params(runtime, params);
    if (status == COX_OK)
        status = cox__session_devices_choose(runtime, params, devices, &count);
    if (status)
        return status;

    cox_session *session = new_session(runtime, params);
    if (!session)
        return COX_E_NOMEM;

    status = prepare_pipeline(session, params, devices, count);
    session->pipeline.watched = session->settings.polls_closely &&
                                !has_processor(runtime, devices, count);
    if (status == COX_OK)
        status = cox__checking_begin(session, params, devices, count);
    if (status == COX_OK)
        status = join_devices(session, params, devices, count);
    if (status == COX_OK)
        status = cox__sharing_start_policies(session, params);
    if (status)
        goto fail;

    cox__device_profile_load(session, params);
    decide_warmup(session, params);
    status = create_frames(session);
    if (status)
        goto fail;

    atomic_fetch_add(&runtime->alive.sessions, 1);
    *out = session;
    if (params->ready)
        begin_joining(session, params);
    return COX_OK;

fail:
    cox__check_destroy(session->check);
    destroy_instances(session);
    drop_frame_scratch(session);
    free_session(session);
    return status;
}

cox_status cox__session_create(cox_runtime *runtime, const struct cox__session_spec *params,
                               cox_session **out)
{
    if (out)
        *out = NULL;
    if (!runtime || cox__misuse_null(runtime, out, "cox_session_create", "out") ||
        cox__misuse_null(runtime, params, "cox_session_create", "params") ||
        cox__misuse(runtime, "cox_session_create"))
        return COX_E_INVALID;

    static const struct cox_policy_options default_options = {0};
    struct cox__session_spec with_options = *params;
    if (!with_options.policy_options)
        with_options.policy_options = &default_options;

    const cox_status status = cox__params_check(params, &runtime->log);
    if (status)
        return status;

    return create(runtime, &with_options, out);
}

/* ---- warming up ---- */

/* Memory for the warm-up alone, in place of a first frame's buffers. */
static cox_status make_warmup_mems(cox_session *session)
{
    uint32_t i = 0;
    const cox_status status = cox__spare_make_mems(session->runtime->backend, &session->pipeline,
                                                   UINT32_MAX, session->warmup.given, &i);
    if (status)
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "cox_session_warm: buffer %u (%s), %zu bytes: %s", i,
                 session->pipeline.bindings[i].name, session->pipeline.bytes[i],
                 cox_status_text(status));
    return status;
}

/* Wait until the warm-up is over. Called with the lock held. */
static cox_status await_warm(cox_session *session)
{
    while (session->warmth.state == COX__SESSION_WARMING && !session->no_device)
        pthread_cond_wait(&session->delivered, &session->lock);

    if (session->warmth.state == COX__SESSION_WARM ||
        session->warmth.state == COX__SESSION_NOTHING_TO_WARM)
        return COX_OK;
    if (session->warmth.state == COX__SESSION_WARM_IN_VAIN || session->no_device)
        return COX_E_NO_DEVICE;

    cox__log(&session->runtime->log, COX_LOG_ERROR,
             "cox_session_warm: the thread that began the warm-up ran out of memory");
    return COX_E_NOMEM;
}

/* Ask the scheduler thread for the warm-up. */
static void request_warm(cox_session *session, const void *constants)
{
    if (constants)
        memcpy(session->warmup.params, constants, session->pipeline.params_bytes);

    session->warmup.request = (struct cox__request){.kind = COX__REQUEST_WARM, .session = session};
    if (cox__engine_request(session->runtime, &session->warmup.request))
        cox__loop_wake(session->runtime->loop);
}

cox_status cox_session_warm(cox_session *session, const void *constants)
{
    if (!session || cox__misuse(session->runtime, "cox_session_warm"))
        return COX_E_INVALID;

    pthread_mutex_lock(&session->lock);
    const enum cox__session_warmth before = session->warmth.state;
    const bool begins = before == COX__SESSION_COLD ||
                        (before == COX__SESSION_NOTHING_TO_WARM && !session->counts.next_index);
    session->warmth.waiting++;
    if (begins)
        cox__transition_warmth(&session->warmth, COX__SESSION_WARMING);
    pthread_mutex_unlock(&session->lock);

    cox_status status = COX_OK;
    if (begins)
        status = make_warmup_mems(session);
    if (begins && status == COX_OK)
        request_warm(session, constants);

    pthread_mutex_lock(&session->lock);
    if (status == COX_OK) {
        status = await_warm(session);
    } else {
        /* The first frame may have warmed the session meanwhile. */
        if (session->warmth.state == COX__SESSION_WARMING)
            cox__transition_warmth(&session->warmth, before);
        pthread_cond_broadcast(&session->delivered);
    }
    session->warmth.waiting--;
    pthread_mutex_unlock(&session->lock);
    return status;
}

/* ---- the end ---- */

/* Returns and forgets the failure that no callback has seen. */
static cox_status wait_for_frames(cox_session *session)
{
    pthread_mutex_lock(&session->lock);
    while (session->counts.under_way)
        pthread_cond_wait(&session->delivered, &session->lock);

    const cox_status failure = session->counts.unseen_failure;
    session->counts.unseen_failure = COX_OK;
    pthread_mutex_unlock(&session->lock);

    return failure;
}

/* Whether a thread is inside cox_session_warm. */
static bool is_entered(cox_session *session)
{
    pthread_mutex_lock(&session->lock);
    const bool entered = session->warmth.waiting > 0;
    pthread_mutex_unlock(&session->lock);

    if (entered)
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "cox_session_destroy: a thread is inside cox_session_warm");
    return entered;
}

/* Wait until the scheduler thread has forgotten the session. */
static void detach(cox_session *session)
{
    struct cox__request request = {.kind = COX__REQUEST_DETACH, .session = session};
    if (cox__engine_request(session->runtime, &request))
        cox__loop_wake(session->runtime->loop);

    pthread_mutex_lock(&session->lock);
    while (!session->detached)
        pthread_cond_wait(&session->delivered, &session->lock);
    pthread_mutex_unlock(&session->lock);
}

void cox_session_destroy(cox_session **out)
{
    if (!out || !*out)
        return;

    cox_session *session = *out;
    cox_runtime *runtime = session->runtime;
    if (cox__misuse(runtime, "cox_session_destroy") || is_entered(session))
        return;

    *out = NULL;
    wait_for_frames(session);
    cox__check_destroy(session->check);
    cox__device_profile_save(session);
    const bool quiet = cox__engine_close(session);

    /* No job is under way. A late callback may still post one; instance_destroy waits for it, and
     * the engine takes all posts before it detaches the session. */
    destroy_instances(session);
    detach(session);
    if (!quiet) {
        cox__log(
            &session->runtime->log, COX_LOG_ERROR,
            "a session's memory is leaked: a driver call that releases its device does not return");
        cox__leak(session);
        atomic_store(&runtime->left_session, true);
        atomic_fetch_sub(&runtime->alive.sessions, 1);
        return;
    }

    cox__warmup_drop(session->runtime, &session->warmup);
    cox__spare_drop(session->runtime, &session->spare);
    drop_frame_scratch(session);
    free_session(session);
    atomic_fetch_sub(&runtime->alive.sessions, 1);
}

/* ---- frames ---- */

/* Why the session cannot use the buffer. */
static const char *wrong_buffer(const cox_session *session, const cox_buffer *buffer)
{
    if (!buffer)
        return "NULL";

    return buffer->runtime != session->runtime ? "belongs to another runtime" : "too short";
}

/* Check the buffer of binding `i`, with those before it. */
static cox_status check_buffer(const cox_session *session, const struct cox__frame_spec *frame,
                               uint32_t i)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    const struct cox__log *log = &session->runtime->log;
    const struct cox__binding *binding = &pipeline->bindings[i];
    const cox_buffer *buffer = frame->buffers[i];
    if (binding->scratch) {
        if (!buffer)
            return COX_OK;
        cox__log(log, COX_LOG_ERROR, "buffer %u (%s): scratch must be NULL", i, binding->name);
        return COX_E_INVALID;
    }

    const size_t need = pipeline->bytes[i];
    size_t bytes = 0;
    if (buffer && buffer->runtime == session->runtime)
        bytes = buffer->bytes;
    if (bytes < need) {
        cox__log(log, COX_LOG_ERROR, "buffer %u (%s): %s; needs %zu bytes, has %zu", i,
                 binding->name, wrong_buffer(session, buffer), need, bytes);
        return COX_E_INVALID;
    }

    cox_status status = cox__directory_check(session, i, buffer);
    if (status == COX_OK)
        status = cox__home_check(session, i, buffer);
    if (status)
        return status;

    for (uint32_t j = 0; j < i; j++)
        if (frame->buffers[j] == buffer &&
            (binding->access != COX__READ || pipeline->bindings[j].access != COX__READ)) {
            cox__log(log, COX_LOG_ERROR,
                     "buffers %u and %u are the same, but one is written; use two buffers", j, i);
            return COX_E_INVALID;
        }
    return COX_OK;
}

static cox_status check_frame(const cox_session *session, const struct cox__frame_spec *frame)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    const struct cox__log *log = &session->runtime->log;
    if (!frame->buffers || frame->buffer_count != pipeline->binding_count) {
        cox__log(log, COX_LOG_ERROR, "a frame needs %u buffers; %u given%s",
                 pipeline->binding_count, frame->buffer_count, frame->buffers ? "" : ", as NULL");
        return COX_E_INVALID;
    }
    if ((unsigned)frame->late > COX_LATE_DROP) {
        cox__log(log, COX_LOG_ERROR, "late: %u is not a value of enum cox_late",
                 (unsigned)frame->late);
        return COX_E_INVALID;
    }

    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const cox_status status = check_buffer(session, frame, i);
        if (status)
            return status;
    }
    return COX_OK;
}

static cox_status submit(cox_session *session, struct cox__submission *submission)
{
    static const struct cox__frame_spec empty = {0};
    if (!submission->frame)
        submission->frame = &empty;
    submission->wake = false;
    if (!session || cox__misuse_forked(session->runtime, "cox_session_submit"))
        return COX_E_INVALID;

    const struct cox__frame_spec *frame = submission->frame;
    cox_status status = COX_OK;
    if (!frame->fetch)
        status = check_frame(session, frame);
    if (status == COX_OK)
        status = cox__sync_begin_frame(session, frame->buffers, frame->fetch);
    if (status)
        return status;

    if (!frame->fetch)
        status = cox__checking_frame(session, frame);
    submission->in_callback = cox__watchdog_is_held_here(session->runtime->watchdog);
    if (status == COX_OK)
        status = cox__admission_submit(session, submission);
    if (status)
        cox__sync_end_frame(session, frame->buffers);
    if (status == COX_E_NO_DEVICE)
        cox__loop_wake(session->runtime->loop); /* the devices are tried again */
    return status;
}

cox_status cox__session_submit(cox_session *session, const struct cox__frame_spec *frame,
                               cox_done_fn *done, void *user)
{
    struct cox__submission submission = {.frame = frame, .done = done, .user = user};
    const cox_status status = submit(session, &submission);
    if (submission.wake)
        cox__engine_wake(session->runtime);

    return status;
}

cox_status cox_session_wait(cox_session *session)
{
    if (!session || cox__misuse(session->runtime, "cox_session_wait"))
        return COX_E_INVALID;

    return wait_for_frames(session);
}

cox_status cox_session_cancel(cox_session *session)
{
    if (!session || cox__misuse_forked(session->runtime, "cox_session_cancel"))
        return COX_E_INVALID;

    pthread_mutex_lock(&session->lock);
    atomic_store(&session->counts.cancel_before, session->counts.next_index);
    pthread_mutex_unlock(&session->lock);

    cox__loop_wake(session->runtime->loop);
    return COX_OK;
}

/* ---- one frame, synchronously ---- */

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

    /* `wait` may be gone from here on. The runtime remains: the frame is under way. */
    atomic_store(&wait->done, true);
    cox__engine_awaited(runtime);
}

cox_status cox__session_run(cox_session *session, const struct cox__frame_spec *frame)
{
    struct run_wait wait = {.session = session};
    struct cox__submission submission = {
        .frame = frame, .done = run_done, .user = &wait, .awaited = true};
    if (!session || cox__misuse(session->runtime, "cox_session_run"))
        return COX_E_INVALID;

    const cox_status status = submit(session, &submission);
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

/* ---- rows that stay on devices ---- */

cox_status cox_session_fetch(cox_session *session, cox_buffer *buffer)
{
    if (!session || cox__misuse_null(session->runtime, buffer, "cox_session_fetch", "buffer"))
        return COX_E_INVALID;

    if (buffer->runtime != session->runtime) {
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "cox_session_fetch: the buffer belongs to another runtime");
        return COX_E_INVALID;
    }
    if (!cox_buffer_data(buffer)) {
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "cox_session_fetch: the buffer lies on a device: read its memory object");
        return COX_E_INVALID;
    }

    const struct cox__pipeline *pipeline = &session->pipeline;
    cox_buffer *buffers[COX_BUFFERS_MAX] = {NULL};
    uint32_t i = 0;
    while (i < pipeline->binding_count && !(pipeline->stays >> i & 1))
        i++;

    /* Through any binding that stays: the scheduler thread finds the right one. */
    if (i < pipeline->binding_count)
        buffers[i] = buffer;
    const struct cox__frame_spec frame = {
        .buffers = buffers, .buffer_count = pipeline->binding_count, .fetch = true};
    return cox__session_run(session, &frame);
}

/* ---- info ---- */

/* Called with the lock held. */
static struct cox_session_device device_info(const cox_session *session, uint32_t d)
{
    const struct cox__device *device = &session->devices.list[d];
    const uint64_t alone_ns = cox__device_alone_ns(device, session->pipeline.pass_count);
    return (struct cox_session_device){.device = device->device,
                                       .mode = device->info.mode,
                                       .state = device->state,
                                       .lost = device->lost,
                                       .returned = device->returned,
                                       .single_device_ns = alone_ns,
                                       .max_rows = device->passes[0].max_rows};
}

void cox_session_info(cox_session *session, struct cox_session_info *info)
{
    if (!info)
        return;
    if (!session || cox__misuse_forked(session->runtime, "cox_session_info")) {
        *info = (struct cox_session_info){0};
        return;
    }

    struct cox_session_info found = {.row_alignment = session->pipeline.passes[0].row_alignment,
                                     .device_count = session->devices.count};
    strncpy(found.policy, session->sharing[0].policy.name, sizeof found.policy - 1);

    pthread_mutex_lock(&session->lock);
    found.frames_done = session->counts.done;
    found.frames_failed = session->counts.failed;
    for (uint32_t d = 0; d < session->devices.count; d++)
        found.devices[d] = device_info(session, d);
    pthread_mutex_unlock(&session->lock);

    *info = found;
}
