/* Bands and lanes: how a band gets to its device and back, and when the device is asked about it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_parts.h"

#include <stdlib.h>
#include <string.h>

/* How long a band may go without a post before its device is asked: drivers exist that call nothing back when a
 * command fails. */
#define POLL_FIRST_NS 50000000ull
/* A device whose posts come late is asked at this share of the expected time. */
#define ASK_AT 0.93
/* A band that is over at the first asking was over before: the next is asked that much earlier. */
#define ASK_EARLIER 0.8
/* Weight of the newest band among those that tell how long one takes. */
#define ASK_GAIN 0.3
/* By how much of itself a unit's leeway shrinks with every band that is in time. */
#define LEEWAY_DECAY 0.02

uint64_t cox__engine_now(const struct cox_session *session)
{
    return session->runtime->backend->ops->now_ns(session->runtime->backend);
}

/* ---- bands ---- */

static bool add_band(struct cox__slot *slot, uint32_t unit, uint32_t first_row, uint32_t rows, uint32_t attempt)
{
    if (slot->band_count == COX__SLOT_BANDS_MAX)
        return false;
    uint32_t index = slot->band_count++;
    struct cox__band_run *band = &slot->bands[index];
    slot->reports[index] = (struct cox_band_report){
        .device = unit, .first_row = first_row, .rows = rows, .attempt = attempt, .status = COX_OK};
    *band = (struct cox__band_run){.state = COX__BAND_PENDING, .partials = band->partials};
    slot->at_work[unit]++;
    slot->served |= UINT32_C(1) << unit;
    slot->unfinished++;
    return true;
}

bool cox__slot_add(const struct cox_session *session, struct cox__slot *slot, uint32_t unit, uint32_t first_row,
                   uint32_t rows, uint32_t attempt)
{
    uint32_t most = session->units[unit].max_rows;
    for (uint32_t done = 0; done < rows;) {
        uint32_t part = rows - done < most ? rows - done : most;
        if (!add_band(slot, unit, first_row + done, part, attempt))
            return false;
        done += part;
    }
    return true;
}

uint32_t cox__engine_best_unit(const struct cox_session *session, uint32_t except)
{
    uint32_t best = session->unit_count;
    uint64_t best_ns = 0;
    for (uint32_t u = 0; u < session->unit_count; u++) {
        uint64_t ns = session->units[u].solo_ns ? session->units[u].solo_ns : UINT64_MAX;
        if (session->units[u].usable && !(except >> u & 1) && (best == session->unit_count || ns < best_ns)) {
            best = u;
            best_ns = ns;
        }
    }
    return best;
}

uint32_t cox__engine_heir(const struct cox_session *session, uint32_t unit)
{
    const uint32_t best = cox__engine_best_unit(session, 0);
    return best == session->unit_count && !session->dead ? unit : best;
}

void cox__band_drop(struct cox__slot *slot, uint32_t band, cox_status status)
{
    slot->bands[band].state = COX__BAND_FAILED;
    slot->at_work[slot->reports[band].device]--;
    slot->unfinished--;
    slot->reports[band].status = status;
}

/* A band that ran may have written anywhere in its rows, which is harmless unless it reads them too. */
void cox__band_fail(struct cox_session *session, struct cox__slot *slot, uint32_t band, cox_status status)
{
    const struct cox_band_report report = slot->reports[band];
    bool ran = slot->bands[band].state == COX__BAND_RUNNING;
    cox__band_drop(slot, band, status);
    if (slot->kind != COX__SLOT_FRAME) {
        slot->status = status;
        return;
    }
    if (slot->bands[band].spare) {
        cox__spare_band_failed(session, slot, band);
        return;
    }
    if (slot->bands[band].stand_ins) /* its rows are on their way */
        return;
    const uint32_t unit = cox__engine_heir(session, report.device);
    if (unit == session->unit_count || (ran && session->pipeline.in_place) ||
        !cox__slot_add(session, slot, unit, report.first_row, report.rows, report.attempt + 1)) {
        slot->status = COX_E_DEVICE_LOST;
        return;
    }
    slot->reason = COX_REASON_RERUN;
    if (session->units[unit].usable) /* else it waits for the first device that comes back */
        cox__log(&session->runtime->log, COX_LOG_WARN, "frame %llu: rows %u..%u go from %s to %s",
                 (unsigned long long)slot->index, report.first_row, report.first_row + report.rows - 1,
                 session->units[report.device].info.name, session->units[unit].info.name);
}

static bool has_unit(const struct cox_session *session, const struct cox__slot *slot, uint32_t band)
{
    const struct cox__session_unit *unit = &session->units[slot->reports[band].device];
    return unit->usable || (unit->proving && slot->kind == COX__SLOT_SHADOW);
}

static void leave_slot(struct cox_session *session, struct cox__slot *slot)
{
    const uint32_t count = slot->band_count; /* those added on the way have a unit, or none is there */
    for (uint32_t b = 0; b < count; b++)
        if (slot->bands[b].state == COX__BAND_PENDING && !has_unit(session, slot, b))
            cox__band_fail(session, slot, b, COX_E_DEVICE_LOST);
}

void cox__bands_leave(struct cox_session *session)
{
    for (uint32_t i = 0; i < session->order_count; i++)
        if (cox__engine_frame(session, i)->started)
            leave_slot(session, cox__engine_frame(session, i));
    if (!session->warmup.finished && session->warmup.slot->started)
        leave_slot(session, session->warmup.slot);
    if (session->shadow.busy)
        leave_slot(session, session->shadow.slot);
}

/* ---- lanes ---- */

static struct cox__lane *free_lane(const struct cox_session *session, const struct cox__session_unit *unit)
{
    for (uint32_t l = 0; unit->lanes && l < session->lane_count; l++)
        if (!unit->lanes[l].busy)
            return &unit->lanes[l];
    return NULL;
}

bool cox__engine_has_lane(const struct cox_session *session, uint32_t unit)
{
    return free_lane(session, &session->units[unit]) != NULL;
}

void cox__lanes_each(struct cox_session *session,
                     void (*look)(struct cox_session *session, struct cox__lane *lane, void *ctx), void *ctx)
{
    for (uint32_t u = 0; u < session->unit_count; u++) {
        struct cox__lane *lanes = session->units[u].lanes; /* may become a wreck's on the way */
        for (uint32_t l = 0; lanes && l < session->lane_count; l++)
            if (lanes[l].busy)
                look(session, &lanes[l], ctx);
    }
    for (struct cox__wreck *wreck = session->wrecks; wreck; wreck = wreck->next)
        for (uint32_t l = 0; l < session->lane_count; l++)
            if (wreck->lanes[l].busy)
                look(session, &wreck->lanes[l], ctx);
}

/* How long a band of so many rows should take, rather too little; 0 = unknown. */
static double asked_ns(const struct cox__ask *ask, double rows)
{
    double most = ask->rows > 0 ? ask->ns / ask->rows : 0; /* no fixed cost is less than nothing */
    double slope = rows < ask->rows ? most : 0;
    if (ask->rows_rows > 1)
        slope = ask->rows_ns / ask->rows_rows;
    slope = slope < 0 ? 0 : slope > most ? most : slope;
    return ask->ns + slope * (rows - ask->rows);
}

double cox__unit_expected_ns(const struct cox_session *session, uint32_t unit, uint32_t rows)
{
    const struct cox__session_unit *of = &session->units[unit];
    double expected = asked_ns(&of->asked, rows);
    return expected > 0 ? expected : (double)of->solo_ns * rows / session->pipeline.rows;
}

/* A band has taken so long. `late`: it was over at the first asking, so it took less. */
static void asked_learn(struct cox__ask *ask, double rows, double ns, bool late)
{
    double expected = asked_ns(ask, rows);
    if (expected <= 0) {
        *ask = (struct cox__ask){.rows = rows, .ns = late ? ns * ASK_EARLIER : ns};
        return;
    }
    if (late) {
        ask->rows_ns *= ns * ASK_EARLIER / expected;
        ask->ns *= ns * ASK_EARLIER / expected;
        return;
    }
    double off_rows = rows - ask->rows, off_ns = ns - ask->ns;
    ask->rows += ASK_GAIN * off_rows;
    ask->ns += ASK_GAIN * off_ns;
    ask->rows_rows = (1 - ASK_GAIN) * (ask->rows_rows + ASK_GAIN * off_rows * off_rows);
    ask->rows_ns = (1 - ASK_GAIN) * (ask->rows_ns + ASK_GAIN * off_rows * off_ns);
}

/* When to ask about a band just submitted. */
static void plan_poll(struct cox_session *session, const struct cox__session_unit *unit, struct cox__lane *lane,
                      uint32_t rows)
{
    lane->poll_ns = cox__engine_now(session) + POLL_FIRST_NS;
    lane->near = false;
    lane->polls = 0;
    if (!unit->ask)
        return;
    double expected = asked_ns(&unit->asked, rows);
    uint64_t begin = lane->submit_ns;                  /* enqueueing is part of what a band has taken */
    for (uint32_t l = 0; l < session->lane_count; l++) /* behind the bands that are under way */
        if (unit->lanes[l].busy && &unit->lanes[l] != lane && unit->lanes[l].poll_ns > begin)
            begin = unit->lanes[l].poll_ns;
    lane->near = true;
    uint64_t at = begin + (uint64_t)(expected * ASK_AT);
    if (at < lane->poll_ns)
        lane->poll_ns = at;
}

/* ---- submission ---- */

/* Returns false if the unit has no lane free. */
static bool submit_band(struct cox_session *session, struct cox__slot *slot, uint32_t band)
{
    struct cox_band_report *report = &slot->reports[band];
    struct cox__session_unit *unit = &session->units[report->device];
    struct cox__backend *backend = session->runtime->backend;
    struct cox__lane *lane = free_lane(session, unit);
    if (!lane)
        return false;
    struct cox__job *job = &lane->job;
    const bool spare = slot->bands[band].spare || slot->kind == COX__SLOT_SHADOW;
    job->slot = slot;
    job->band = band;
    job->first_row = report->first_row;
    job->rows = report->rows;
    memcpy(lane->mems, spare ? session->spare.mems : slot->mems, session->pipeline.binding_count * sizeof *lane->mems);
    memcpy(lane->params, slot->params, session->pipeline.params_bytes);
    job->preserve = slot->bands[band].spare;
    job->failing = false;
    job->kernel_ns = job->copy_in_ns = job->copy_out_ns = 0;
    atomic_store(&job->end_ns, 0);
    lane->busy = true;
    lane->late = lane->urgent = lane->distrusted = lane->straggler = lane->planned = false;
    lane->due_ns = lane->give_up_ns = UINT64_MAX;
    lane->on_spare = spare;
    lane->frame = slot->index;
    lane->submit_ns = report->submit_ns = cox__engine_now(session);
    slot->bands[band].state = COX__BAND_RUNNING;
    cox__calls_of(session, report->device, unit->unit);
    cox_status status = backend->ops->job_submit(backend, job);
    if (status) {
        lane->busy = false;
        slot->bands[band].state = COX__BAND_PENDING; /* nothing of it ran */
        cox__unit_lose(session, report->device, status);
        if (slot->bands[band].state == COX__BAND_PENDING) /* the slot is not in `order`: no frame's */
            cox__band_fail(session, slot, band, status);
        return true;
    }
    plan_poll(session, unit, lane, report->rows);
    unit->unflushed = true;
    return true;
}

/* A unit that is still to prove itself gets the band of its proof and no other. No two devices write the same rows. */
static bool may_submit(struct cox_session *session, const struct cox__slot *slot, uint32_t band, uint32_t held,
                       bool blocking)
{
    const struct cox_band_report *report = &slot->reports[band];
    return slot->bands[band].state == COX__BAND_PENDING &&
           session->units[report->device].blocks_in_submit == blocking && !(held >> report->device & 1) &&
           has_unit(session, slot, band) &&
           !cox__rows_unsettled(session, slot, slot->bands[band].spare, report->first_row, report->rows);
}

void cox__units_flush(struct cox_session *session)
{
    struct cox__backend *backend = session->runtime->backend;
    for (uint32_t u = 0; u < session->unit_count; u++)
        if (session->units[u].unflushed) {
            session->units[u].unflushed = false;
            cox__calls_of(session, u, session->units[u].unit);
            backend->ops->unit_flush(backend, session->units[u].unit);
            cox__lanes_plan(session, u);
        }
    for (struct cox__wreck *wreck = session->wrecks; wreck;
         wreck = wreck->next) /* that shall end too, one way or the other */
        if (wreck->unflushed && !wreck->captive && !wreck->given_up && !wreck->sent) {
            wreck->unflushed = false;
            cox__calls_of(session, wreck->lanes[0].unit, wreck->unit);
            backend->ops->unit_flush(backend, wreck->unit);
        }
}

bool cox__slot_submit(struct cox_session *session, struct cox__slot *slot, uint32_t held)
{
    bool progress = false;
    for (uint32_t b = 0; b < slot->band_count; b++) /* band_count may grow on the way */
        if (may_submit(session, slot, b, held, false))
            progress |= submit_band(session, slot, b);
    cox__units_flush(session);
    return progress;
}

bool cox__slot_submit_blocking(struct cox_session *session, struct cox__slot *slot, uint32_t held)
{
    for (uint32_t b = 0; b < slot->band_count; b++)
        if (may_submit(session, slot, b, held, true) && submit_band(session, slot, b)) {
            cox__units_flush(session);
            return true;
        }
    return false;
}

/* ---- completion ---- */

/* Keep a band's partial results until all bands are in: its lane is wanted for other bands before that. */
static bool save_partials(struct cox_session *session, struct cox__slot *slot, uint32_t band, struct cox__job *job)
{
    struct cox__backend *backend = session->runtime->backend;
    if (!session->partial_bytes || slot->kind != COX__SLOT_FRAME)
        return true;
    if (!slot->bands[band].partials && !(slot->bands[band].partials = malloc(session->partial_bytes)))
        return false;
    char *to = slot->bands[band].partials;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (session->pipeline.bindings[i].contract == COX_REDUCE) {
            memcpy(to, backend->ops->job_partial(backend, job, i), session->pipeline.bindings[i].bytes);
            to += session->pipeline.bindings[i].bytes;
        }
    return true;
}

/* Note when a band has ended that could begin when it was enqueued and the one before it in its queue had ended. */
static void note_times(struct cox__session_unit *unit, const struct cox__lane *lane, struct cox_band_report *report,
                       uint64_t end)
{
    uint64_t start = lane->submit_ns > unit->last_end_ns ? lane->submit_ns : unit->last_end_ns;
    if (end <= start)
        end = start + 1;
    unit->last_end_ns = end;
    report->end_ns = end;
    report->wall_ns = end - start;
    report->queue_ns = start - lane->submit_ns;
}

static void band_done(struct cox_session *session, struct cox__lane *lane, bool posted)
{
    struct cox__job *job = &lane->job;
    struct cox__slot *slot = job->slot;
    const uint32_t index = job->band;
    struct cox__band_run *band = &slot->bands[index];
    struct cox_band_report *report = &slot->reports[index];
    struct cox__session_unit *unit = &session->units[lane->unit];
    const uint64_t now = cox__engine_now(session);
    uint64_t end = atomic_load(&job->end_ns);
    note_times(unit, lane, report, end >= lane->submit_ns && end <= now ? end : now); /* else it is nonsense */
    asked_learn(&unit->asked, report->rows, (double)report->wall_ns, !posted && lane->polls == 1);
    unit->ended++;
    unit->done_ns = now;
    unit->overtaken = 0;
    if (!lane->wreck)
        session->deserted_ns = 0;
    if (!lane->late && unit->leeway > 1)
        unit->leeway -= LEEWAY_DECAY * (unit->leeway - 1);
    report->kernel_ns = job->kernel_ns <= report->end_ns - lane->submit_ns ? job->kernel_ns : 0;
    report->copy_in_ns = job->copy_in_ns;
    report->copy_out_ns = job->copy_out_ns;
    band->state = COX__BAND_DONE;
    slot->at_work[report->device]--;
    slot->unfinished--;
    cox__lanes_advance(session, lane->unit, report->end_ns);
    if (!save_partials(session, slot, index, job))
        slot->status = COX_E_NOMEM;
    if (band->check) {
        cox__verify_done(session, slot, index);
        return;
    }
    if (report->end_ns > slot->end_ns)
        slot->end_ns = report->end_ns;
    cox__policy_observe(session, slot, index);
    if (band->spare)
        cox__stand_in_done(session, slot, index);
    else if (band->stand_ins)
        cox__late_beaten(session, slot, index);
}

bool cox__lane_poll(struct cox_session *session, struct cox__lane *lane, bool posted)
{
    struct cox__backend *backend = session->runtime->backend;
    cox__calls_of(session, lane->unit, lane->job.unit);
    enum cox__job_state state = backend->ops->job_poll(backend, &lane->job);
    lane->polls += !posted;
    if (state == COX__JOB_RUNNING) {
        if (!lane->job.failing || lane->wreck)
            return false;
        cox__unit_lose(session, lane->unit, COX_E_DEVICE_LOST);
        lane->due_ns = 0; /* late by now */
        return true;
    }
    struct cox__session_unit *unit = &session->units[lane->unit];
    lane->busy = false;
    if (!lane->wreck)
        unit->ask |= !posted; /* the driver lets one wait */
    if (lane->straggler) {
        const uint64_t begin_ns = lane->submit_ns > unit->last_end_ns ? lane->submit_ns : unit->last_end_ns;
        unit->last_end_ns = cox__engine_now(session);
        if (state == COX__JOB_DONE && !lane->wreck && unit->overtaken++) /* once is an accident */
            asked_learn(&unit->asked, lane->job.rows, (double)(unit->last_end_ns - begin_ns), false);
        cox__lanes_advance(session, lane->unit, unit->last_end_ns);
        if (state == COX__JOB_FAILED || lane->distrusted || session->verify > 0)
            cox__straggler_spoils(session, lane);
        cox__straggler_end(session, lane);
        if (state == COX__JOB_FAILED && !lane->wreck)
            cox__unit_lose(session, lane->unit, COX_E_DEVICE_LOST);
    } else if (state == COX__JOB_DONE && !lane->distrusted) {
        band_done(session, lane, posted);
    } else {
        struct cox__slot *slot = lane->job.slot;
        const cox_status status = lane->distrusted ? COX_E_MISMATCH : COX_E_DEVICE_LOST;
        note_times(unit, lane, &slot->reports[lane->job.band], cox__engine_now(session));
        cox__policy_observe(session, slot, lane->job.band);
        if (!lane->wreck)
            cox__unit_lose(session, lane->unit, status); /* first, so that the rows do not go back to it */
        cox__band_fail(session, slot, lane->job.band, status);
    }
    return true;
}

/* ---- slots ---- */

void cox__slot_start(const struct cox_session *session, struct cox__slot *slot, enum cox__slot_kind kind)
{
    slot->started = true;
    slot->kind = kind;
    slot->status = COX_OK;
    slot->start_ns = slot->end_ns = cox__engine_now(session);
    slot->reason = COX_REASON_NONE;
    slot->predicted_ns = slot->rival_ns = 0;
    slot->joules = -1;
    slot->pool_rows = slot->pool_left = slot->pool_first_row = 0;
    slot->declined = slot->served = 0;
    slot->shadow.rows = 0;
    memset(slot->at_work, 0, session->unit_count * sizeof slot->at_work[0]);
    slot->unfinished = 0;
    slot->band_count = 0;
    slot->verified = false;
    slot->dispute.stage = COX__DISPUTE_NONE;
    slot->dispute.open = false;
}

/* Sort by first row, then attempt; few bands, nearly sorted. Checks are left out. Returns how many there are. */
static uint32_t sort_reports(struct cox_session *session, const struct cox__slot *slot)
{
    struct cox_band_report *sorted = session->sorted;
    uint32_t count = 0;
    for (uint32_t i = 0; i < slot->band_count; i++) {
        const struct cox_band_report *report = &slot->reports[i];
        if (slot->bands[i].check)
            continue;
        uint32_t at = count++;
        while (at && (sorted[at - 1].first_row > report->first_row ||
                      (sorted[at - 1].first_row == report->first_row && sorted[at - 1].attempt > report->attempt))) {
            sorted[at] = sorted[at - 1];
            at--;
        }
        sorted[at] = *report;
    }
    return count;
}

void cox__slot_report(struct cox_session *session, const struct cox__slot *slot)
{
    if (!session->report)
        return;
    const struct cox_frame_report report = {.index = slot->index,
                                            .warmup = slot->kind == COX__SLOT_WARMUP,
                                            .shadow = slot->kind == COX__SLOT_SHADOW,
                                            .status = slot->status,
                                            .submit_ns = slot->submit_ns,
                                            .start_ns = slot->start_ns,
                                            .end_ns = slot->end_ns,
                                            .reason = slot->reason,
                                            .predicted_ns = slot->predicted_ns,
                                            .rival_ns = slot->rival_ns,
                                            .pool_rows = slot->pool_rows,
                                            .joules = slot->joules,
                                            .band_count = sort_reports(session, slot),
                                            .bands = session->sorted};
    session->report(session->report_user, &report);
}
