/* The application's side of a session: create, submit, wait, destroy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/device.h"
#include "engine/engine.h"
#include "engine/frame.h"
#include "engine/failure/residency.h"
#include "engine/transitions.h"
#include "host/leak.h"
#include "host/pages.h"
#include "host/thread.h"
#include "misuse.h"
#include "params.h"
#include "split/together.h"
#include "store/device_profile.h"

#include <stdlib.h>
#include <string.h>

/* Which of the runtime's devices take part; checks the list. */
static cox_status choose_devices(cox_runtime *runtime, const struct cox__session_spec *params,
                                 uint32_t *devices, uint32_t *count)
{
    uint32_t all = runtime->backend->ops->device_count(runtime->backend);
    *count = params->device_count ? params->device_count : all;
    if (*count > COX_DEVICES_MAX || (params->device_count && !params->devices)) {
        cox__log(&runtime->log, COX_LOG_ERROR,
                 "devices: %u are given%s; a list of 1 to %d is possible", *count,
                 params->devices ? "" : ", as NULL", COX_DEVICES_MAX);
        return COX_E_INVALID;
    }
    for (uint32_t i = 0; i < *count; i++) {
        devices[i] = params->device_count ? params->devices[i] : i;
        for (uint32_t j = 0; j < i; j++)
            if (devices[i] == devices[j]) {
                cox__log(&runtime->log, COX_LOG_ERROR, "devices: device %u is listed twice",
                         devices[i]);
                return COX_E_INVALID;
            }
        if (devices[i] >= all) {
            cox__log(&runtime->log, COX_LOG_ERROR,
                     "devices: there is no device %u; the runtime has %u", devices[i], all);
            return COX_E_INVALID;
        }
    }
    return COX_OK;
}

/* Drivers of integrated GPUs copy what does not begin on a page, whatever alignment they ask for. */
static bool copies_less_on_pages(const struct cox_device_info *info)
{
    return info->mode == COX_MODE_MAPPED && info->type != COX_DEVICE_CPU &&
           info->host_memory == COX_HOST_MEMORY_WRAPPED && info->base_align_bytes < COX__PAGE_BYTES;
}

/* Every band boundary but the frame's end is a multiple of it on each of the devices. With `on_pages` the bands of
 * devices that copy less then begin on pages. */
static uint32_t row_alignment_of(const cox_runtime *runtime, const struct cox__pass *pass,
                                 const uint32_t *devices, uint32_t count, bool on_pages)
{
    uint64_t row_alignment = 1;
    for (uint32_t i = 0; i < count; i++) {
        struct cox_device_info info;
        runtime->backend->ops->device_info(runtime->backend, devices[i], &info);
        if (on_pages && copies_less_on_pages(&info))
            info.base_align_bytes = COX__PAGE_BYTES;
        row_alignment = cox__pipeline_lcm_bounded(row_alignment,
                                                  cox__pipeline_pass_row_alignment(pass, devices[i],
                                                                                   &info),
                                                  pass->rows);
    }
    return (uint32_t)row_alignment;
}

/* A frame of fewer multiples of the row alignment than ROW_UNITS_MIN cannot be shared out as the devices' speeds ask for. Pages make multiples of the row alignment
 * larger only where ROW_UNITS_OF_PAGES are left. */
enum { ROW_UNITS_MIN = 8, ROW_UNITS_OF_PAGES = 64 };

/* Say that few splits are possible, and which pitches would mend that where the pitches are why. */
static void tell_row_alignment(const cox_runtime *runtime, const struct cox__pass *pass,
                               const uint32_t *devices, uint32_t count)
{
    struct cox__pass other = *pass;
    for (uint32_t i = 0; i < other.binding_count; i++)
        if (cox__by_rows(&other.bindings[i]))
            other.bindings[i].pitch_bytes = cox_runtime_pitch_bytes(runtime,
                                                                    other.bindings[i].pitch_bytes);
    const uint32_t row_alignment = row_alignment_of(runtime, &other, devices, count, false);
    cox__log(&runtime->log, COX_LOG_WARN, "%s: the row alignment is %u of %u rows%s",
             pass->row_alignment == pass->rows ? "rows cannot be split" : "few splits are possible",
             pass->row_alignment, pass->rows,
             row_alignment < pass->row_alignment
                 ? ""
                 : ", by row divisors or the rows of work-groups, and no pitch mends that");
    for (uint32_t i = 0; i < other.binding_count && row_alignment < pass->row_alignment; i++) {
        const size_t pitch_bytes = other.bindings[i].pitch_bytes;
        other.bindings[i].pitch_bytes = pass->bindings[i].pitch_bytes;
        if (row_alignment_of(runtime, &other, devices, count, false) > row_alignment)
            cox__log(
                &runtime->log, COX_LOG_WARN,
                "binding %u (%s): a pitch of %zu bytes in place of %zu lets the row alignment be %u "
                "(cox_runtime_pitch_bytes)",
                i, other.bindings[i].name, pitch_bytes, pass->bindings[i].pitch_bytes,
                row_alignment);
        other.bindings[i].pitch_bytes = pitch_bytes;
    }
}

static void set_row_alignment(cox_runtime *runtime, struct cox__pass *pass, const uint32_t *devices,
                              uint32_t count)
{
    pass->row_alignment = row_alignment_of(runtime, pass, devices, count, true);
    if (pass->row_alignment > pass->rows / ROW_UNITS_OF_PAGES)
        pass->row_alignment = row_alignment_of(runtime, pass, devices, count, false);
    if (count > 1 && pass->row_alignment > 1 && pass->row_alignment > pass->rows / ROW_UNITS_MIN)
        tell_row_alignment(runtime, pass, devices, count);
}

/* Outputs go to the devices as well, so that the bytes that no kernel writes are everywhere what they were and rows can
 * be compared as a whole. Nothing is in place for that: a band can be done again. */
static void keep_outputs(struct cox__pass *pass)
{
    for (uint32_t i = 0; i < pass->binding_count; i++)
        if (pass->bindings[i].row_access == COX__ROWS && pass->bindings[i].access == COX__WRITE)
            pass->bindings[i].access = COX__READ_WRITE;
}

/* Bands that a device has at once: as many as keep it busy, one for each of a staged device's copies in, kernels and
 * copies out. What waits behind them can still be cancelled, or given to another device. */
static uint32_t slots_of(const cox_session *session, const struct cox_device_info *info)
{
    return info->mode == COX_MODE_STAGED && session->in_flight > 2 ? 3 : 2;
}

/* One device's kernels and memory, on their way. */
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

/* All at once, since each driver compiles for itself: the last device's on this thread, the others' on threads of their
 * own. One after the other where the driver wants that, and without a machine, as the tests' scripted devices are. */
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

/* What is known of a device without its instance. */
static void describe_device(cox_session *session, uint32_t number, uint32_t of_runtime)
{
    struct cox__backend *backend = session->runtime->backend;
    struct cox__device *device = &session->devices[number];
    device->device = of_runtime;
    backend->ops->device_info(backend, of_runtime, &device->info);
    device->slot_count = slots_of(session, &device->info);
    device->polled = device->info.type != COX_DEVICE_CPU;
}

/* They join in the background. */
static void announce_devices(cox_session *session, const uint32_t *devices, uint32_t count)
{
    for (uint32_t d = 0; d < count; d++) {
        describe_device(session, d, devices[d]);
        session->devices[d].state = COX_DEVICE_JOINING;
    }
    session->device_count = count;
}

static cox_status create_devices(cox_session *session, const uint32_t *devices, uint32_t count)
{
    struct cox__backend *backend = session->runtime->backend;
    struct making makings[COX_DEVICES_MAX] = {{0}};
    cox_status first_error = COX_OK;
    for (uint32_t i = 0; i < count; i++) {
        struct cox_device_info info;
        backend->ops->device_info(backend, devices[i], &info);
        makings[i] = (struct making){
            .session = session, .device = devices[i], .slot_count = slots_of(session, &info)};
    }
    make_instances(session, makings, count);
    for (uint32_t i = 0; i < count; i++) {
        struct cox__device *device = &session->devices[session->device_count];
        struct cox__instance *instance = makings[i].instance;
        cox_status status = makings[i].status;
        describe_device(session, session->device_count, devices[i]);
        if (status == COX_OK && (status = cox__device_attach(session, session->device_count,
                                                             instance, makings[i].max_rows)))
            backend->ops->instance_destroy(backend, instance, NULL, NULL);
        if (status) {
            cox__log(&session->runtime->log, COX_LOG_WARN, "%s does not take part: %s",
                     device->info.name, cox_status_text(status));
            first_error = first_error ? first_error : status;
            continue;
        }
        cox__pipeline_tell_writable(&session->pipeline, backend, instance, &session->told_writable,
                                    &session->runtime->log);
        session->device_count++;
        device->state = COX_DEVICE_ACTIVE;
    }
    return session->device_count ? COX_OK : first_error;
}

static bool names_device(const struct cox__pass *pass, uint32_t device)
{
    bool names = !pass->device_count;
    for (uint32_t i = 0; i < pass->device_count; i++)
        names |= pass->devices[i] == device;
    return names;
}

static cox_status check_pass_devices(const cox_session *session, const uint32_t *devices,
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

/* The devices of a pass, a bit for each of the session's. All, where none of its own could be had. */
static uint32_t list_devices(const cox_session *session, uint32_t number)
{
    uint32_t list = 0;
    for (uint32_t d = 0; d < session->device_count; d++)
        if (names_device(&session->pipeline.passes[number], session->devices[d].device))
            list |= UINT32_C(1) << d;
    return list ? list : UINT32_MAX;
}

/* The policy that a pass names as `own`, or the policy of all passes that name none. NULL: no
 * policy has the name. */
static const struct cox_policy *find_policy(const struct cox__session_spec *params, const char *own)
{
    return params->custom_policy && !own ? params->custom_policy
                                         : cox_policy_find(own ? own : params->policy);
}

/* Whether the pass can have the split of the one before it: the same rows, on the same devices, for the same policy,
 * and a row alignment in common that leaves enough splits. */
static bool can_share(const cox_session *session, uint32_t number, uint32_t devices)
{
    const struct cox__pass *pass = &session->pipeline.passes[number], *before = pass - 1;
    const uint64_t least = cox__pipeline_lcm_bounded(pass->row_alignment, before->row_alignment,
                                                     pass->rows);
    return devices > 1 && pass->rows == before->rows && !pass->policy && !before->policy &&
           !pass->device_count && !before->device_count &&
           (pass->row_alignment == before->row_alignment || least <= pass->rows / ROW_UNITS_MIN);
}

/* Which passes share a split, and the row alignment that suits all that do. */
static void share_splits(cox_session *session, const struct cox__session_spec *params,
                         uint32_t devices)
{
    const struct cox_policy *policy = find_policy(params, NULL);
    const bool never = params->split_each_pass || !policy || policy->assign;
    for (uint32_t p = 0, lead = 0; p < session->pipeline.pass_count; p++) {
        if (p == 0 || never || !can_share(session, p, devices))
            lead = p;
        session->sharing[p].lead = lead;
        session->sharing[lead].count = p - lead + 1;
        const uint32_t row_alignment =
            (uint32_t)cox__pipeline_lcm_bounded(session->pipeline.passes[lead].row_alignment,
                                                session->pipeline.passes[p].row_alignment,
                                                session->pipeline.passes[p].rows);
        for (uint32_t q = lead; q <= p; q++)
            session->pipeline.passes[q].row_alignment = row_alignment;
    }
}

static cox_status start_policy(cox_session *session, uint32_t number,
                               const struct cox__session_spec *params)
{
    struct cox__sharing *sharing = &session->sharing[number];
    const char *own = session->pipeline.passes[number].policy;
    const struct cox_policy *policy = find_policy(params, own);
    if (!policy) {
        cox__log(&session->runtime->log, COX_LOG_ERROR, "there is no policy '%s'",
                 own ? own : params->policy);
        return COX_E_NOT_FOUND;
    }
    if (!policy->name || !policy->state_bytes || !policy->init || !policy->split) {
        cox__log(&session->runtime->log, COX_LOG_ERROR, "custom policy %s lacks %s",
                 policy->name ? policy->name : "",
                 !policy->name          ? "a name"
                 : !policy->state_bytes ? "its function state_bytes"
                 : !policy->init        ? "its function init"
                                        : "its function split");
        return COX_E_INVALID;
    }
    sharing->devices = list_devices(session, number);
    sharing->policy = *policy;
    if (sharing->lead != number)
        return COX_OK;
    if (sharing->count > 1 && !(sharing->together = calloc(1, sizeof *sharing->together))) {
        cox__log(&session->runtime->log, COX_LOG_ERROR, "no memory to share a split");
        return COX_E_NOMEM;
    }
    size_t bytes = policy->state_bytes(session->device_count);
    sharing->state = calloc(1, bytes ? bytes : 1);
    if (!sharing->state) {
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "policy %s: no memory for %zu bytes of state", policy->name, bytes);
        return COX_E_NOMEM;
    }
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view view;
    cox__policy_view(session, number, 0, devices, &view);
    const cox_status status = policy->init(sharing->state, &view, params->policy_options);
    if (status)
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "policy %s refuses its options for %u devices: %s", policy->name,
                 session->device_count, cox_status_text(status));
    return status;
}

/* Bindings of which each frame slot has memory of its own, a bit for each. */
static uint32_t scratch_bindings(const cox_session *session)
{
    uint32_t bindings = 0;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        bindings |= (uint32_t)session->pipeline.bindings[i].scratch << i;
    return bindings;
}

static cox_status make_scratch(cox_session *session, struct cox__frame *frame)
{
    uint32_t failed;
    const uint32_t bindings = scratch_bindings(session);
    const cox_status status = bindings
                                  ? cox__spare_make_mems(session, bindings, frame->scratch, &failed)
                                  : COX_OK;
    if (status)
        cox__log(&session->runtime->log, COX_LOG_ERROR, "%zu bytes for scratch binding %u (%s): %s",
                 session->pipeline.bytes[failed], failed, session->pipeline.bindings[failed].name,
                 cox_status_text(status));
    return status;
}

static bool allocate_frame(const cox_session *session, struct cox__frame *frame)
{
    return cox__frame_allocate(session, frame) && cox__residency_allocate(session, frame);
}

static void free_frame(struct cox__frame *frame)
{
    cox__frame_free(frame);
    cox__residency_free(frame);
}

static cox_status create_frames(cox_session *session)
{
    session->frames = calloc(session->in_flight + 1, sizeof *session->frames);
    session->warmup.frame = calloc(1, sizeof *session->warmup.frame);
    bool made = session->frames && session->warmup.frame &&
                allocate_frame(session, session->warmup.frame);
    for (uint32_t i = 0; made && i <= session->in_flight; i++) {
        session->frames[i].set = i;
        made = allocate_frame(session, &session->frames[i]);
    }
    if (made) {
        const uint32_t bands = session->frames[0].band_max;
        session->sorted = calloc(bands, sizeof *session->sorted);
        made = session->sorted != NULL;
    }
    if (!made) {
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "no memory for %u frames in flight of %zu bytes each", session->in_flight,
                 sizeof *session->frames);
        return COX_E_NOMEM;
    }
    for (uint32_t i = 0; i <= session->in_flight; i++) {
        const cox_status status = make_scratch(session, &session->frames[i]);
        if (status)
            return status;
    }
    for (uint32_t i = 0; i <= session->in_flight; i++) {
        session->frames[i].request.session = session;
        session->frames[i].request.frame = &session->frames[i];
    }
    for (uint32_t i = 0; i < session->in_flight; i++) {
        session->frames[i].next_free = session->free_frames;
        session->free_frames = &session->frames[i];
    }
    session->chain_frame = &session->frames[session->in_flight];
    return COX_OK;
}

/* Free a session that the scheduler thread does not know (any more). Half-built ones too. */
static void free_session(cox_session *session)
{
    for (uint32_t d = 0; d < session->device_count; d++)
        cox__device_queue_free(session->devices[d].queue);
    for (uint32_t i = 0; session->frames && i <= session->in_flight; i++)
        free_frame(&session->frames[i]);
    free(session->frames);
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
    free(session->sorted);
    cox__residency_free_history(session);
    cox__pipeline_clear(&session->pipeline);
    pthread_cond_destroy(&session->slot_free);
    pthread_cond_destroy(&session->delivered);
    pthread_mutex_destroy(&session->lock);
    free(session);
}

/* The instances are gone, and the engine does not know the session (any more). */
static void drop_frame_scratch(cox_session *session)
{
    for (uint32_t i = 0; session->frames && i <= session->in_flight; i++)
        for (uint32_t b = 0; b < session->pipeline.binding_count; b++)
            if (session->frames[i].scratch[b])
                cox__memory_drop(session->runtime, session->frames[i].scratch[b]);
}

static void destroy_instances(cox_session *session)
{
    struct cox__backend *backend = session->runtime->backend;
    for (uint32_t d = 0; d < session->device_count; d++)
        if (session->devices[d].queue)
            backend->ops->instance_destroy(backend, session->devices[d].queue->instance, NULL,
                                           NULL);
}

/* Other threads know the session from here on. */
static void begin_joining(cox_session *session, const struct cox__session_spec *params)
{
    session->ready = params->ready;
    session->ready_user = params->ready_user;
    session->under_way = 1;
    session->join = (struct cox__request){.kind = COX__REQUEST_JOIN, .session = session};
    if (cox__engine_request(session->runtime, &session->join))
        cox__loop_wake(session->runtime->loop);
}

static cox_status create(cox_runtime *runtime, const struct cox__session_spec *params,
                         cox_session **out)
{
    if (params->in_flight > COX_IN_FLIGHT_MAX) {
        cox__log(&runtime->log, COX_LOG_ERROR, "%u frames in flight; 0 to %d are possible",
                 params->in_flight, COX_IN_FLIGHT_MAX);
        return COX_E_INVALID;
    }
    if (!(params->verify >= 0 && params->verify <= 1)) {
        cox__log(&runtime->log, COX_LOG_ERROR,
                 "verify: a share of %g of the bands; 0 to 1 is possible", params->verify);
        return COX_E_INVALID;
    }
    if (params->warm_start && params->warm_start->runtime != runtime) {
        cox__log(&runtime->log, COX_LOG_ERROR, "warm_start: is of another runtime");
        return COX_E_INVALID;
    }
    uint32_t devices[COX_DEVICES_MAX], count;
    cox_status status = choose_devices(runtime, params, devices, &count);
    if (status)
        return status;
    cox_session *session = calloc(1, sizeof *session);
    if (!session) {
        cox__log(&runtime->log, COX_LOG_ERROR, "no memory for a session of %zu bytes",
                 sizeof *session);
        return COX_E_NOMEM;
    }
    session->runtime = runtime;
    session->in_flight = params->in_flight ? params->in_flight : 2;
    session->min_band_rows = params->min_band_rows;
    session->report = params->report;
    session->report_user = params->report_user;
    session->meter = params->meter;
    session->meter_user = params->meter_user;
    session->verify = params->verify;
    session->deadline_ns = params->policy_options->deadline_ns;
    session->device_timeout_ns = params->device_timeout_ns;
    session->polls_closely = runtime->polls_closely &&
                             params->policy_options->objective != COX_OBJECTIVE_ENERGY;
    pthread_mutex_init(&session->lock, NULL);
    pthread_cond_init(&session->slot_free, NULL);
    pthread_cond_init(&session->delivered, NULL);

    status = cox__pipeline_init(&session->pipeline, params, &runtime->log);
    if (status == COX_OK)
        status = check_pass_devices(session, devices, count);
    if (status)
        goto fail;
    for (uint32_t p = 0; p < session->pipeline.pass_count; p++) {
        struct cox__pass *pass = &session->pipeline.passes[p];
        if (params->verify > 0)
            keep_outputs(pass);
        if (pass->partial_bytes > session->partial_bytes)
            session->partial_bytes = pass->partial_bytes;
        set_row_alignment(runtime, pass, devices, count);
    }
    share_splits(session, params, count);
    /* To verify, another device does the rows of a pass that is over, from the host's memory. */
    if (params->verify > 0)
        session->pipeline.resident = 0;
    session->pipeline.sets = session->in_flight + 1;
    if (runtime->topology)
        cox__topology_enter(runtime->topology);
    if (params->ready)
        announce_devices(session, devices, count);
    else
        status = create_devices(session, devices, count);
    if (runtime->topology)
        cox__topology_leave(runtime->topology);
    if (status)
        goto fail;
    for (uint32_t p = 0; p < session->pipeline.pass_count; p++) {
        status = start_policy(session, p, params);
        if (status)
            goto fail;
    }
    cox__device_profile_load(session, params);
    if (params->ready || params->no_warmup || session->device_count == 1 ||
        (params->warm_start && cox__device_profile_skip_warmup(session, params->warm_start))) {
        session->warmth = COX__SESSION_NOTHING_TO_WARM;
        session->warmup.state = COX__WARMUP_FINISHED;
    }
    status = create_frames(session);
    if (status)
        goto fail;
    atomic_fetch_add(&runtime->session_count, 1);
    *out = session;
    if (params->ready)
        begin_joining(session, params);
    return COX_OK;

fail:
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
    return status ? status : create(runtime, &with_options, out);
}

/* ---- warming up ---- */

/* Memory of the warm-up's own, in the place of a first frame's buffers. */
static cox_status make_warmup_mems(cox_session *session)
{
    uint32_t i = 0;
    const cox_status status = cox__spare_make_mems(session, UINT32_MAX, session->warmup.given, &i);
    if (status)
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "cox_session_warm: %zu bytes for binding %u (%s): %s", session->pipeline.bytes[i],
                 i, session->pipeline.bindings[i].name, cox_status_text(status));
    return status;
}

/* Wait until the warm-up is over. Called with the lock held. */
static cox_status await_warm(cox_session *session)
{
    while (session->warmth == COX__SESSION_WARMING && !session->no_device)
        pthread_cond_wait(&session->delivered, &session->lock);
    if (session->warmth == COX__SESSION_WARM || session->warmth == COX__SESSION_NOTHING_TO_WARM)
        return COX_OK;
    if (session->warmth == COX__SESSION_WARM_IN_VAIN || session->no_device)
        return COX_E_NO_DEVICE;
    cox__log(&session->runtime->log, COX_LOG_ERROR,
             "cox_session_warm: another thread that began it has no memory");
    return COX_E_NOMEM;
}

cox_status cox_session_warm(cox_session *session, const void *constants)
{
    if (!session || cox__misuse(session->runtime, "cox_session_warm"))
        return COX_E_INVALID;
    pthread_mutex_lock(&session->lock);
    const enum cox__session_warmth before = session->warmth;
    const bool begins = before == COX__SESSION_COLD ||
                        (before == COX__SESSION_NOTHING_TO_WARM && !session->next_index);
    session->warmers++;
    if (begins)
        cox__transition_warmth(session, COX__SESSION_WARMING);
    pthread_mutex_unlock(&session->lock);
    cox_status status = begins ? make_warmup_mems(session) : COX_OK;
    if (begins && status == COX_OK) {
        if (constants)
            memcpy(session->warmup.params, constants, session->pipeline.params_bytes);
        session->warmup.request = (struct cox__request){.kind = COX__REQUEST_WARM,
                                                        .session = session};
        if (cox__engine_request(session->runtime, &session->warmup.request))
            cox__loop_wake(session->runtime->loop);
    }
    pthread_mutex_lock(&session->lock);
    if (status == COX_OK) {
        status = await_warm(session);
    } else {
        if (session->warmth == COX__SESSION_WARMING) /* the first frame has not done it meanwhile */
            cox__transition_warmth(session, before);
        pthread_cond_broadcast(&session->delivered);
    }
    pthread_mutex_unlock(&session->lock);
    pthread_mutex_lock(&session->lock);
    session->warmers--;
    pthread_mutex_unlock(&session->lock);
    return status;
}

/* ---- the end ---- */

static void wait_for_frames(cox_session *session)
{
    pthread_mutex_lock(&session->lock);
    while (session->under_way)
        pthread_cond_wait(&session->delivered, &session->lock);
    pthread_mutex_unlock(&session->lock);
}

/* Whether a thread is inside cox_session_warm. */
static bool is_entered(cox_session *session)
{
    pthread_mutex_lock(&session->lock);
    const bool entered = session->warmers > 0;
    pthread_mutex_unlock(&session->lock);

    if (entered)
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "cox_session_destroy: a thread is inside cox_session_warm");
    return entered;
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
    cox__device_profile_save(session);
    const bool quiet = cox__engine_close(session);
    /* No job is under way; a late callback of one may still post it, which instance_destroy waits for. The engine takes
     * all such posts before it lets go of the session. */
    destroy_instances(session);
    struct cox__request request = {.kind = COX__REQUEST_DETACH, .session = session};
    if (cox__engine_request(session->runtime, &request))
        cox__loop_wake(session->runtime->loop);
    pthread_mutex_lock(&session->lock);
    while (!session->detached)
        pthread_cond_wait(&session->delivered, &session->lock);
    pthread_mutex_unlock(&session->lock);
    if (!quiet) {
        cox__log(
            &session->runtime->log, COX_LOG_ERROR,
            "a session's memory is leaked: a driver does not return from letting go of its device");
        cox__leak(session);
        runtime->left_session = true;
        atomic_fetch_sub(&runtime->session_count, 1);
        return;
    }
    cox__warmup_drop(session);
    cox__spare_drop(session);
    drop_frame_scratch(session);
    free_session(session);
    atomic_fetch_sub(&runtime->session_count, 1);
}

static cox_status check_frame(const cox_session *session, const struct cox__frame_spec *frame)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    const struct cox__log *log = &session->runtime->log;
    if (!frame->buffers || frame->buffer_count != pipeline->binding_count) {
        cox__log(log, COX_LOG_ERROR, "a frame of this session has %u buffers; %u are given%s",
                 pipeline->binding_count, frame->buffer_count, frame->buffers ? "" : ", as NULL");
        return COX_E_INVALID;
    }
    if ((unsigned)frame->late > COX_LATE_DROP) {
        cox__log(log, COX_LOG_ERROR, "late: %u is no value of enum cox_late",
                 (unsigned)frame->late);
        return COX_E_INVALID;
    }
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const cox_buffer *buffer = frame->buffers[i];
        const size_t bytes = buffer && buffer->runtime == session->runtime ? buffer->bytes : 0;
        const size_t need = pipeline->bytes[i];
        if (pipeline->bindings[i].scratch) {
            if (!buffer)
                continue;
            cox__log(log, COX_LOG_ERROR, "buffer %u (%s): NULL is given for scratch", i,
                     pipeline->bindings[i].name);
            return COX_E_INVALID;
        }
        if (bytes < need) {
            cox__log(log, COX_LOG_ERROR, "buffer %u (%s): %s; %zu bytes are needed, %zu are there",
                     i, pipeline->bindings[i].name,
                     !buffer                               ? "NULL"
                     : buffer->runtime != session->runtime ? "belongs to another runtime"
                                                           : "too short",
                     need, bytes);
            return COX_E_INVALID;
        }
        for (uint32_t j = 0; j < i; j++)
            if (frame->buffers[j] == buffer && (pipeline->bindings[i].access != COX__READ ||
                                                pipeline->bindings[j].access != COX__READ)) {
                cox__log(log, COX_LOG_ERROR, "buffers %u and %u are the same, and one is written",
                         j, i);
                return COX_E_INVALID;
            }
    }
    return COX_OK;
}

static void run_done(void *user, uint64_t frame, cox_status status);

static void fill_frame(struct cox__frame *slot, const cox_session *session,
                       const struct cox__frame_spec *frame, cox_done_fn *done, void *user)
{
    for (uint32_t i = 0; i < frame->buffer_count; i++) {
        slot->buffers[i] = frame->buffers[i];
        if (slot->buffers[i])
            atomic_fetch_add(&frame->buffers[i]->refs, 1);
    }
    if (frame->params)
        memcpy(slot->params, frame->params, session->pipeline.params_bytes);
    else
        memset(slot->params, 0, session->pipeline.params_bytes);
    if (session->pipeline.pass_count > 1)
        memcpy(slot->given_params, slot->params, session->pipeline.params_bytes);
    slot->done = done;
    slot->awaited = done == run_done;
    slot->user = user;
}

/* The frame's, else the session's; 0 = none. */
static uint64_t deadline_of(const struct cox_session *session, const struct cox__frame_spec *frame)
{
    const uint64_t deadline_ns = frame->deadline_ns ? frame->deadline_ns : session->deadline_ns;
    return deadline_ns == UINT64_MAX ? 0 : deadline_ns;
}

/* `*wake`: the scheduler thread has to be woken for the frame. */
static cox_status submit(cox_session *session, const struct cox__frame_spec *frame,
                         cox_done_fn *done, void *user, bool *wake)
{
    static const struct cox__frame_spec empty = {0};
    if (!frame)
        frame = &empty;
    *wake = false;
    if (!session || cox__misuse_forked(session->runtime, "cox_session_submit"))
        return COX_E_INVALID;

    cox_status status = check_frame(session, frame);
    if (status)
        return status;
    struct cox__backend *backend = session->runtime->backend;
    const bool in_callback = cox__watchdog_is_held_here(session->runtime->watchdog);
    const bool nowait = frame->nowait || in_callback;
    pthread_mutex_lock(&session->lock);
    while (!session->free_frames && !session->no_device && !nowait)
        pthread_cond_wait(&session->slot_free, &session->lock);
    const bool takes_chain = in_callback && session->chain_frame;
    struct cox__frame *slot = takes_chain ? session->chain_frame : session->free_frames;
    if (session->no_device || !slot) {
        *wake = session->no_device; /* so that the devices are tried again in any case */
        status = session->no_device ? COX_E_NO_DEVICE : COX_E_BUSY;
        pthread_mutex_unlock(&session->lock);
        return status;
    }
    if (takes_chain)
        session->chain_frame = NULL;
    else
        session->free_frames = slot->next_free;
    fill_frame(slot, session, frame, done, user);
    slot->index = session->next_index++;
    slot->number = atomic_fetch_add(&session->runtime->frames_submitted, 1);
    slot->submit_ns = backend->ops->now_ns(backend);
    slot->deadline_ns = deadline_of(session, frame);
    slot->expiry_ns = frame->late == COX_LATE_DROP && slot->deadline_ns
                          ? cox__later(slot->submit_ns, slot->deadline_ns)
                          : UINT64_MAX;
    session->under_way++;
    /* Under the lock, so that requests queue up in the order of their indices. */
    *wake = cox__engine_request(session->runtime, &slot->request);
    pthread_mutex_unlock(&session->lock);
    return COX_OK;
}

cox_status cox__session_submit(cox_session *session, const struct cox__frame_spec *frame,
                               cox_done_fn *done, void *user)
{
    bool wake;
    cox_status status = submit(session, frame, done, user, &wake);
    if (wake && status == COX_OK)
        cox__engine_wake(session->runtime);
    else if (wake) /* no device is left: to try them again */
        cox__loop_wake(session->runtime->loop);
    return status;
}

cox_status cox_session_wait(cox_session *session)
{
    if (!session || cox__misuse(session->runtime, "cox_session_wait"))
        return COX_E_INVALID;
    wait_for_frames(session);
    return COX_OK;
}

cox_status cox_session_cancel(cox_session *session)
{
    if (!session || cox__misuse_forked(session->runtime, "cox_session_cancel"))
        return COX_E_INVALID;
    pthread_mutex_lock(&session->lock);
    atomic_store(&session->cancel_before, session->next_index);
    pthread_mutex_unlock(&session->lock);
    cox__loop_wake(session->runtime->loop);
    return COX_OK;
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
    atomic_store(
        &wait->done,
        true); /* `wait` may be gone from here on; the runtime is not, the frame is under way */
    cox__engine_awaited(runtime);
}

cox_status cox__session_run(cox_session *session, const struct cox__frame_spec *frame)
{
    struct run_wait wait = {.session = session};
    bool wake;
    if (!session || cox__misuse(session->runtime, "cox_session_run"))
        return COX_E_INVALID;
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

void cox_session_info(cox_session *session, struct cox_session_info *info)
{
    if (!info)
        return;
    if (!session || cox__misuse_forked(session->runtime, "cox_session_info")) {
        *info = (struct cox_session_info){0};
        return;
    }
    struct cox_session_info found = {.row_alignment = session->pipeline.passes[0].row_alignment,
                                     .in_flight = session->in_flight,
                                     .profile_loaded = session->profile.is_loaded,
                                     .device_count = session->device_count};
    strncpy(found.policy, session->sharing[0].policy.name, sizeof found.policy - 1);
    pthread_mutex_lock(&session->lock);
    found.frames_done = session->frames_done;
    found.frames_late = session->frames_late;
    found.worst_late_ns = session->worst_late_ns;
    found.frames_dropped = session->frames_dropped;
    for (uint32_t d = 0; d < session->device_count; d++) {
        const struct cox__device *device = &session->devices[d];
        found.devices[d] = (struct cox_session_device){
            .device = device->device,
            .mode = device->info.mode,
            .state = device->state,
            .lost = device->lost,
            .returned = device->returned,
            .single_device_ns = cox__device_solo_ns(session, d),
            .max_rows = device->passes[0].max_rows,
            .host_memory = device->info.host_memory};
    }
    pthread_mutex_unlock(&session->lock);
    *info = found;
}
