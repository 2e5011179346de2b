/* What the engine asks the session's policy and tells it. Nothing that a policy answers is believed before it was
 * checked.
 *
 * Owns the policy's state, `last_split` and the meter's readings.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ask_policy.h"
#include "device_state.h"
#include "engine.h"
#include "frame.h"
#include "split/layout.h"

#include <stdio.h>
#include <string.h>

void cox__engine_view(const struct cox_session *session, uint64_t frame, struct cox_sched_device *devices,
                      struct cox_sched_view *view)
{
    for (uint32_t d = 0; d < session->device_count; d++) {
        const struct cox__device *device = &session->devices[d];
        devices[d].usable = cox__device_is_active(device);
        devices[d].hint = (double)device->info.compute_units * (device->info.type == COX_DEVICE_CPU ? 1 : 4);
        devices[d].solo_ns = device->solo_ns;
    }
    *view = (struct cox_sched_view){.struct_size = sizeof *view,
                                    .frame = frame,
                                    .rows = session->pipeline.rows,
                                    .granule = session->pipeline.granule,
                                    .min_band_rows = session->min_band_rows,
                                    .device_count = session->device_count,
                                    .devices = devices,
                                    .in_flight = session->in_flight,
                                    .pool = session->policy.next != NULL,
                                    .shadow = !session->pipeline.in_place &&
                                              atomic_load(&session->scratch.state) != COX__SCRATCH_UNAVAILABLE};
}

/* The first time, then every 2^n-th: what goes wrong in each frame must not fill a disk. */
static bool worth_a_line(uint64_t *count)
{
    uint64_t n = ++*count;
    return (n & (n - 1)) == 0;
}

/* ---- splits ---- */

/* When nothing better is known: equal costs. */
static void split_evenly(const struct cox_sched_view *view, struct cox_split *split)
{
    double equal[COX_DEVICES_MAX];
    uint32_t rows[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < view->device_count; d++)
        equal[d] = 1;
    memset(split, 0, sizeof *split);
    cox__layout_balance(view, equal, rows);
    cox__layout_bands(view, rows, split);
}

/* The bands as far as there is room, each "first row+rows on device"; they may be anything. */
static void print_bands(const struct cox_split *split, char *text, size_t bytes)
{
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t b = 0; b < split->band_count && b < COX_BANDS_MAX && length < bytes; b++)
        length += (size_t)snprintf(text + length, bytes - length, "%s%u+%u on %u", b ? ", " : "",
                                   split->bands[b].first_row, split->bands[b].rows, split->bands[b].device);
    if (split->pool_rows && length < bytes)
        length += (size_t)snprintf(text + length, bytes - length, "%spool %u+%u", length ? ", " : "",
                                   split->pool_first_row, split->pool_rows);
    if (split->shadow.rows && length < bytes)
        length += (size_t)snprintf(text + length, bytes - length, ", shadow %u+%u on %u", split->shadow.first_row,
                                   split->shadow.rows, split->shadow.device);
    if (length >= bytes)
        memcpy(text + bytes - 4, "...", 4);
}

static void log_refusal(struct cox_session *session, uint64_t frame, const struct cox_split *split, const char *why)
{
    char bands[640];
    if (!worth_a_line(&session->refused_splits))
        return;
    print_bands(split, bands, sizeof bands);
    cox__log(&session->runtime->log, COX_LOG_WARN, "policy %s, frame %llu: split refused (%llu so far): %s; it is: %s",
             session->policy.name, (unsigned long long)frame, (unsigned long long)session->refused_splits, why, bands);
}

/* What the policy says of a device whose share is one band is said of that band. */
static void note_predictions(struct cox__frame *frame, const struct cox_split *split)
{
    for (uint32_t b = 0; b < frame->band_count; b++) {
        uint32_t device = frame->reports[b].device;
        if (frame->at_work[device] == 1)
            frame->reports[b].predicted_ns = split->device_ns[device];
    }
}

void cox__policy_split(struct cox_session *session, struct cox__frame *frame)
{
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view view;
    struct cox_split split;
    char why[160] = "the policy returned an error";
    cox__engine_view(session, frame->index, devices, &view);
    memset(&split, 0, sizeof split);
    split.struct_size = sizeof split;
    if (session->policy.split(session->policy_state, &view, &split) == COX_OK &&
        cox_split_check(&split, &view, why, sizeof why) == COX_OK) {
        session->last_split = split;
        session->has_last_split = true;
    } else {
        log_refusal(session, frame->index, &split, why);
        if (session->has_last_split && cox_split_check(&session->last_split, &view, NULL, 0) == COX_OK)
            split = session->last_split;
        else
            split_evenly(&view, &split);
        split.shadow.rows = 0;
    }
    frame->reason = split.reason;
    frame->predicted_ns = split.predicted_ns;
    frame->alternative_ns = split.alternative_ns;
    for (uint32_t b = 0; b < split.band_count; b++)
        if (!cox__frame_add(session, frame, split.bands[b].device, split.bands[b].first_row, split.bands[b].rows, 0))
            frame->status = COX_E_DEVICE_MEMORY;
    note_predictions(frame, &split);
    frame->pool_first_row = split.pool_first_row;
    frame->pool_rows = frame->pool_left = split.pool_rows;
    frame->shadow = split.shadow;
}

/* ---- the pool ---- */

static bool runs_shadow(const struct cox_session *session, uint32_t device)
{
    return session->shadow.busy && session->shadow.device == device;
}

/* A device at a shadow run would take the frame's rows only after it. */
uint32_t cox__policy_reserves(const struct cox_session *session, const struct cox__frame *frame)
{
    uint32_t devices = 0;
    for (uint32_t d = 0; d < session->device_count; d++)
        if (cox__device_is_active(&session->devices[d]) && !(frame->declined >> d & 1) && !runs_shadow(session, d))
            devices |= UINT32_C(1) << d;
    return devices;
}

/* For how long a device has been at the frame's bands, of which the oldest was submitted at `submit_ns`: not while it
 * was still at those of other frames. */
static uint64_t at_work_ns(const struct cox_session *session, const struct cox__frame *frame,
                           const struct cox__device *device, uint64_t submit_ns, uint64_t now)
{
    for (uint32_t i = 0; device->queue && i < session->slot_count; i++) {
        const struct cox__queue_slot *slot = &device->queue->slots[i];
        if (slot->state != COX__SLOT_FREE && slot->job.frame != frame && slot->submit_ns <= submit_ns)
            return 0;
    }
    uint64_t start = submit_ns > device->last_end_ns ? submit_ns : device->last_end_ns;
    return now > start ? now - start : 0;
}

static void fill_progress(const struct cox_session *session, const struct cox__frame *frame, uint64_t now,
                          struct cox_progress *progress)
{
    uint64_t submit_ns[COX_DEVICES_MAX];
    memset(progress, 0, session->device_count * sizeof *progress);
    memset(submit_ns, 0xff, sizeof submit_ns);
    for (uint32_t b = 0; b < frame->band_count; b++) {
        const struct cox_band_report *report = &frame->reports[b];
        struct cox_progress *of = &progress[report->device];
        const enum cox__band_state state = frame->bands[b].state;
        bool running = state == COX__BAND_QUEUED || state == COX__BAND_RUNNING;
        if (!running && state != COX__BAND_PLANNED)
            continue;
        if (of->rows == 0 || (running && report->submit_ns < submit_ns[report->device]))
            of->first_row = report->first_row;
        if (running && report->submit_ns < submit_ns[report->device])
            submit_ns[report->device] = report->submit_ns;
        of->rows += report->rows;
    }
    for (uint32_t d = 0; d < session->device_count; d++)
        if (submit_ns[d] != UINT64_MAX)
            progress[d].since_ns = at_work_ns(session, frame, &session->devices[d], submit_ns[d], now);
}

/* Least rows of a grant, so that the frame's bands do not become too many. */
static uint32_t least_grant(const struct cox_session *session, const struct cox__frame *frame)
{
    uint32_t room = frame->band_count < COX_BANDS_MAX ? COX_BANDS_MAX - frame->band_count : 1;
    uint32_t granule = session->pipeline.granule;
    uint64_t least = ((uint64_t)frame->pool_left + room - 1) / room;
    least = (least + granule - 1) / granule * granule;
    return least < frame->pool_left ? (uint32_t)least : frame->pool_left;
}

/* The answer to an offer, made good where it is none. */
static struct cox_grant ask_for_grant(struct cox_session *session, const struct cox__frame *frame, uint32_t device,
                                      bool last)
{
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_progress progress[COX_DEVICES_MAX];
    struct cox_sched_view view;
    struct cox_grant grant = COX_SIZED(struct cox_grant);
    uint64_t now = cox__engine_now(session);
    fill_progress(session, frame, now, progress);
    const struct cox_offer offer = {.struct_size = sizeof offer,
                                    .device = device,
                                    .first_row = frame->pool_first_row,
                                    .rows = frame->pool_left,
                                    .elapsed_ns = now > frame->start_ns ? now - frame->start_ns : 0,
                                    .last = last,
                                    .progress = progress};
    cox__engine_view(session, frame->index, devices, &view);
    session->policy.next(session->policy_state, &view, &offer, &grant);
    bool whole = grant.rows == frame->pool_left || grant.rows % view.granule == 0;
    if (grant.rows > frame->pool_left || !whole || (grant.rows == 0 && last)) {
        if (worth_a_line(&session->refused_grants))
            cox__log(
                &session->runtime->log, COX_LOG_WARN,
                "policy %s, frame %llu: of the rows %u+%u offered to device %u it gives %u, which is no answer (%llu "
                "so far): all of them are given",
                session->policy.name, (unsigned long long)frame->index, frame->pool_first_row, frame->pool_left, device,
                grant.rows, (unsigned long long)session->refused_grants);
        return (struct cox_grant){.rows = frame->pool_left};
    }
    if (grant.rows && grant.rows < least_grant(session, frame))
        return (struct cox_grant){.rows = least_grant(session, frame)};
    return grant;
}

static void offer_pool(struct cox_session *session, struct cox__frame *frame, uint32_t device, bool last)
{
    const struct cox_grant grant = ask_for_grant(session, frame, device, last);
    if (!grant.rows) {
        frame->declined |= UINT32_C(1) << device;
        return;
    }
    const bool first = !(frame->served >> device & 1);
    const uint32_t before = frame->band_count;
    if (!cox__frame_add(session, frame, device, frame->pool_first_row, grant.rows, 0))
        frame->status = COX_E_DEVICE_MEMORY;
    for (uint32_t b = before; b < frame->band_count; b++) {
        frame->bands[b].kind = !first || b > before ? COX__BAND_CHUNK : COX__BAND_ROWS;
        frame->reports[b].on_demand = true;
        frame->reports[b].predicted_ns = frame->band_count - before == 1 ? grant.predicted_ns : 0;
    }
    frame->pool_first_row += grant.rows;
    frame->pool_left -= grant.rows;
}

bool cox__policy_offer(struct cox_session *session, struct cox__frame *frame, uint32_t reserved, bool blocking)
{
    bool progress = false;
    if (frame->status) /* the frame is lost: nothing of it is begun any more */
        frame->pool_left = 0;
    for (uint32_t d = 0; d < session->device_count && frame->pool_left; d++) {
        uint32_t bit = UINT32_C(1) << d;
        uint32_t willing = cox__policy_reserves(session, frame);
        if (!(willing & bit) || frame->at_work[d] || reserved & bit ||
            session->devices[d].blocks_in_submit != blocking ||
            (frame->shadow.rows && frame->shadow.device == d)) /* the shadow run comes first */
            continue;
        offer_pool(session, frame, d, !frame->unfinished && willing == bit);
        progress = true;
    }
    if (frame->pool_left && !frame->unfinished && !cox__policy_reserves(session, frame)) {
        /* The device that was at work when the others declined is lost. */
        uint32_t best = cox__device_best(session, 0);
        if (best == session->device_count && !session->no_device)
            return progress; /* a device may come back */
        if (best == session->device_count)
            frame->status = COX_E_DEVICE_LOST;
        else
            offer_pool(session, frame, best, true);
        return true;
    }
    return progress;
}

/* ---- what it is told ---- */

void cox__policy_observe(struct cox_session *session, const struct cox__frame *frame, uint32_t band)
{
    const struct cox_band_report *report = &frame->reports[band];
    if (frame->kind == COX__FRAME_WARMUP || !session->policy.observe)
        return;
    const struct cox_measurement measurement = {
        .struct_size = sizeof measurement,
        .frame = frame->index,
        .device = report->device,
        .first_row = report->first_row,
        .rows = report->rows,
        .wall_ns = report->wall_ns,
        .queue_ns = report->queue_ns,
        .kernel_ns = report->kernel_ns,
        .flags = (frame->bands[band].kind != COX__BAND_ROWS ? COX_MEASURED_CHUNK : 0u) |
                 (frame->kind == COX__FRAME_SHADOW ? COX_MEASURED_SHADOW : 0u) |
                 (frame->bands[band].state == COX__BAND_DONE ? 0u : COX_MEASURED_UNFINISHED)};
    session->policy.observe(session->policy_state, &measurement);
}

static double read_meter(const struct cox_session *session)
{
    return session->meter ? session->meter(session->meter_user) : -1;
}

void cox__policy_begin_period(struct cox_session *session)
{
    session->meter_joules = read_meter(session);
}

void cox__policy_observe_frame(struct cox_session *session, struct cox__frame *frame)
{
    const double joules = read_meter(session);
    const bool known = session->meter_joules >= 0 && joules >= session->meter_joules;
    const uint64_t before = session->delivered_end_ns;
    const uint64_t begin = frame->start_ns > before ? frame->start_ns : before;
    frame->joules = known ? joules - session->meter_joules : -1;
    session->meter_joules = joules;
    if (frame->end_ns > before)
        session->delivered_end_ns = frame->end_ns;
    if (frame->status || !session->policy.observe_frame)
        return;
    const struct cox_frame_measurement measurement = {.struct_size = sizeof measurement,
                                                      .frame = frame->index,
                                                      .wall_ns = frame->end_ns - frame->start_ns,
                                                      .period_ns = frame->end_ns > begin ? frame->end_ns - begin : 0,
                                                      .joules = frame->joules};
    session->policy.observe_frame(session->policy_state, &measurement);
}

/* ---- device profiles ---- */

bool cox__engine_load_profile(struct cox_session *session, const struct cox_device_profile *profiles)
{
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view view;
    if (!session->policy.load_profile)
        return false;
    cox__engine_view(session, 0, devices, &view);
    session->policy.load_profile(session->policy_state, &view, profiles);
    return true;
}

bool cox__engine_save_profile(const struct cox_session *session, struct cox_device_profile *profiles)
{
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view view;
    if (!session->policy.save_profile)
        return false;
    memset(profiles, 0, session->device_count * sizeof *profiles);
    cox__engine_view(session, session->next_index, devices, &view);
    session->policy.save_profile(session->policy_state, &view, profiles);
    return true;
}
