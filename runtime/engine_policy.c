/* What the session engine asks its policy and tells it. Nothing that a policy answers is believed before it was checked.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_parts.h"
#include "layout.h"

#include <stdio.h>
#include <string.h>

void cox__engine_view(const struct cox_session *session, uint64_t frame, struct cox_sched_device *devices,
                      struct cox_sched_view *view)
{
    for (uint32_t u = 0; u < session->unit_count; u++) {
        const struct cox__session_unit *unit = &session->units[u];
        devices[u].usable = unit->usable;
        devices[u].hint = (double)unit->info.compute_units * (unit->info.type == COX_DEVICE_CPU ? 1 : 4);
        devices[u].solo_ns = unit->solo_ns;
    }
    *view = (struct cox_sched_view){.frame = frame,
                                    .rows = session->pipeline.rows,
                                    .granule = session->pipeline.granule,
                                    .min_band_rows = session->min_band_rows,
                                    .device_count = session->unit_count,
                                    .devices = devices,
                                    .in_flight = session->in_flight,
                                    .pool = session->policy.next != NULL,
                                    .shadow = !session->pipeline.in_place &&
                                              atomic_load(&session->spare.stage) != COX__SPARE_UNAVAILABLE};
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
static void note_predictions(struct cox__slot *slot, const struct cox_split *split)
{
    for (uint32_t b = 0; b < slot->band_count; b++) {
        uint32_t unit = slot->reports[b].device;
        if (slot->at_work[unit] == 1)
            slot->reports[b].predicted_ns = split->device_ns[unit];
    }
}

void cox__policy_split(struct cox_session *session, struct cox__slot *slot)
{
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view view;
    struct cox_split split;
    char why[160] = "the policy returned an error";
    cox__engine_view(session, slot->index, devices, &view);
    memset(&split, 0, sizeof split);
    if (session->policy.split(session->policy_state, &view, &split) == COX_OK &&
        cox_split_check(&split, &view, why, sizeof why) == COX_OK) {
        session->last_split = split;
        session->has_last_split = true;
    } else {
        log_refusal(session, slot->index, &split, why);
        if (session->has_last_split && cox_split_check(&session->last_split, &view, NULL, 0) == COX_OK)
            split = session->last_split;
        else
            split_evenly(&view, &split);
        split.shadow.rows = 0;
    }
    slot->reason = split.reason;
    slot->predicted_ns = split.predicted_ns;
    slot->rival_ns = split.rival_ns;
    for (uint32_t b = 0; b < split.band_count; b++)
        if (!cox__slot_add(session, slot, split.bands[b].device, split.bands[b].first_row, split.bands[b].rows, 0))
            slot->status = COX_E_DEVICE_MEMORY;
    note_predictions(slot, &split);
    slot->pool_first_row = split.pool_first_row;
    slot->pool_rows = slot->pool_left = split.pool_rows;
    slot->shadow = split.shadow;
}

/* ---- the pool ---- */

static bool shadows(const struct cox_session *session, uint32_t unit)
{
    return session->shadow.busy && session->shadow.unit == unit;
}

/* A unit at a shadow would take the frame's rows only after it. */
uint32_t cox__policy_waits_for(const struct cox_session *session, const struct cox__slot *slot)
{
    uint32_t units = 0;
    for (uint32_t u = 0; u < session->unit_count; u++)
        if (session->units[u].usable && !(slot->declined >> u & 1) && !shadows(session, u))
            units |= UINT32_C(1) << u;
    return units;
}

/* For how long a unit has been at the frame's bands, of which the oldest was submitted at `submit_ns`: not while it was
 * still at those of other frames. */
static uint64_t since(const struct cox_session *session, const struct cox__slot *slot,
                      const struct cox__session_unit *unit, uint64_t submit_ns, uint64_t now)
{
    for (uint32_t l = 0; unit->lanes && l < session->lane_count; l++)
        if (unit->lanes[l].busy && unit->lanes[l].job.slot != slot && unit->lanes[l].submit_ns <= submit_ns)
            return 0;
    uint64_t start = submit_ns > unit->last_end_ns ? submit_ns : unit->last_end_ns;
    return now > start ? now - start : 0;
}

static void fill_progress(const struct cox_session *session, const struct cox__slot *slot, uint64_t now,
                          struct cox_progress *progress)
{
    uint64_t submit_ns[COX_DEVICES_MAX];
    memset(progress, 0, session->unit_count * sizeof *progress);
    memset(submit_ns, 0xff, sizeof submit_ns);
    for (uint32_t b = 0; b < slot->band_count; b++) {
        const struct cox_band_report *report = &slot->reports[b];
        struct cox_progress *of = &progress[report->device];
        bool running = slot->bands[b].state == COX__BAND_RUNNING;
        if (!running && slot->bands[b].state != COX__BAND_PENDING)
            continue;
        if (of->rows == 0 || (running && report->submit_ns < submit_ns[report->device]))
            of->first_row = report->first_row;
        if (running && report->submit_ns < submit_ns[report->device])
            submit_ns[report->device] = report->submit_ns;
        of->rows += report->rows;
    }
    for (uint32_t u = 0; u < session->unit_count; u++)
        if (submit_ns[u] != UINT64_MAX)
            progress[u].since_ns = since(session, slot, &session->units[u], submit_ns[u], now);
}

/* So many rows must go at once for the frame's bands not to become too many. */
static uint32_t least_grant(const struct cox_session *session, const struct cox__slot *slot)
{
    uint32_t room = slot->band_count < COX_BANDS_MAX ? COX_BANDS_MAX - slot->band_count : 1;
    uint32_t granule = session->pipeline.granule;
    uint64_t least = ((uint64_t)slot->pool_left + room - 1) / room;
    least = (least + granule - 1) / granule * granule;
    return least < slot->pool_left ? (uint32_t)least : slot->pool_left;
}

/* The answer to an offer, made good where it is none. */
static struct cox_grant ask(struct cox_session *session, const struct cox__slot *slot, uint32_t unit, bool last)
{
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_progress progress[COX_DEVICES_MAX];
    struct cox_sched_view view;
    struct cox_grant grant = {0};
    uint64_t now = cox__engine_now(session);
    fill_progress(session, slot, now, progress);
    const struct cox_offer offer = {.device = unit,
                                    .first_row = slot->pool_first_row,
                                    .rows = slot->pool_left,
                                    .elapsed_ns = now > slot->start_ns ? now - slot->start_ns : 0,
                                    .last = last,
                                    .progress = progress};
    cox__engine_view(session, slot->index, devices, &view);
    session->policy.next(session->policy_state, &view, &offer, &grant);
    bool whole = grant.rows == slot->pool_left || grant.rows % view.granule == 0;
    if (grant.rows > slot->pool_left || !whole || (grant.rows == 0 && last)) {
        if (worth_a_line(&session->refused_grants))
            cox__log(
                &session->runtime->log, COX_LOG_WARN,
                "policy %s, frame %llu: of the rows %u+%u offered to device %u it gives %u, which is no answer (%llu "
                "so far): all of them are given",
                session->policy.name, (unsigned long long)slot->index, slot->pool_first_row, slot->pool_left, unit,
                grant.rows, (unsigned long long)session->refused_grants);
        return (struct cox_grant){.rows = slot->pool_left};
    }
    if (grant.rows && grant.rows < least_grant(session, slot))
        return (struct cox_grant){.rows = least_grant(session, slot)};
    return grant;
}

static void offer(struct cox_session *session, struct cox__slot *slot, uint32_t unit, bool last)
{
    const struct cox_grant grant = ask(session, slot, unit, last);
    if (!grant.rows) {
        slot->declined |= UINT32_C(1) << unit;
        return;
    }
    const bool first = !(slot->served >> unit & 1);
    const uint32_t before = slot->band_count;
    if (!cox__slot_add(session, slot, unit, slot->pool_first_row, grant.rows, 0))
        slot->status = COX_E_DEVICE_MEMORY;
    for (uint32_t b = before; b < slot->band_count; b++) {
        slot->bands[b].chunk = !first || b > before;
        slot->reports[b].on_demand = true;
        slot->reports[b].predicted_ns = slot->band_count - before == 1 ? grant.predicted_ns : 0;
    }
    slot->pool_first_row += grant.rows;
    slot->pool_left -= grant.rows;
}

bool cox__policy_offer(struct cox_session *session, struct cox__slot *slot, uint32_t held, bool blocking)
{
    bool progress = false;
    if (slot->status) /* the frame is lost: nothing of it is begun any more */
        slot->pool_left = 0;
    for (uint32_t u = 0; u < session->unit_count && slot->pool_left; u++) {
        uint32_t bit = UINT32_C(1) << u;
        uint32_t willing = cox__policy_waits_for(session, slot);
        if (!(willing & bit) || slot->at_work[u] || held & bit || session->units[u].blocks_in_submit != blocking ||
            (slot->shadow.rows && slot->shadow.device == u)) /* that is settled first */
            continue;
        offer(session, slot, u, !slot->unfinished && willing == bit);
        progress = true;
    }
    if (slot->pool_left && !slot->unfinished && !cox__policy_waits_for(session, slot)) {
        /* Who was at work when the others declined is lost. */
        uint32_t best = cox__engine_best_unit(session, 0);
        if (best == session->unit_count && !session->dead)
            return progress; /* somebody may come back */
        if (best == session->unit_count)
            slot->status = COX_E_DEVICE_LOST;
        else
            offer(session, slot, best, true);
        return true;
    }
    return progress;
}

/* ---- what it is told ---- */

void cox__policy_observe(struct cox_session *session, const struct cox__slot *slot, uint32_t band)
{
    const struct cox_band_report *report = &slot->reports[band];
    if (slot->kind == COX__SLOT_WARMUP || !session->policy.observe)
        return;
    const struct cox_measurement measurement = {
        .frame = slot->index,
        .device = report->device,
        .first_row = report->first_row,
        .rows = report->rows,
        .wall_ns = report->wall_ns,
        .queue_ns = report->queue_ns,
        .kernel_ns = report->kernel_ns,
        .flags = (slot->bands[band].chunk ? COX_MEASURED_CHUNK : 0u) |
                 (slot->kind == COX__SLOT_SHADOW ? COX_MEASURED_SHADOW : 0u) |
                 (slot->bands[band].state == COX__BAND_DONE ? 0u : COX_MEASURED_UNFINISHED)};
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

void cox__policy_observe_frame(struct cox_session *session, struct cox__slot *slot)
{
    const double joules = read_meter(session);
    const bool known = session->meter_joules >= 0 && joules >= session->meter_joules;
    const uint64_t before = session->delivered_end_ns;
    const uint64_t begin = slot->start_ns > before ? slot->start_ns : before;
    slot->joules = known ? joules - session->meter_joules : -1;
    session->meter_joules = joules;
    if (slot->end_ns > before)
        session->delivered_end_ns = slot->end_ns;
    if (slot->status || !session->policy.observe_frame)
        return;
    const struct cox_frame_measurement measurement = {.frame = slot->index,
                                                      .wall_ns = slot->end_ns - slot->start_ns,
                                                      .period_ns = slot->end_ns > begin ? slot->end_ns - begin : 0,
                                                      .joules = slot->joules};
    session->policy.observe_frame(session->policy_state, &measurement);
}

/* ---- memory across sessions ---- */

bool cox__engine_recall(struct cox_session *session, const struct cox_device_model *models)
{
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view view;
    if (!session->policy.recall)
        return false;
    cox__engine_view(session, 0, devices, &view);
    session->policy.recall(session->policy_state, &view, models);
    return true;
}

bool cox__engine_models(const struct cox_session *session, struct cox_device_model *models)
{
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view view;
    if (!session->policy.models)
        return false;
    memset(models, 0, session->unit_count * sizeof *models);
    cox__engine_view(session, session->next_index, devices, &view);
    session->policy.models(session->policy_state, &view, models);
    return true;
}
