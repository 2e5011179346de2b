/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_parts.h"

#include <stdlib.h>
#include <string.h>

/* How long a band may go without a post before its device is asked: drivers exist that call nothing back when a
 * command fails. */
#define POLL_FIRST_NS 50000000ull
/* A device whose posts come late is asked at this share of the expected time. */
#define ASK_AT 0.93
/* After asking a device whose answer cannot be far, the least pause, and its least share of the time since submission. An
 * answer costs a few microseconds. */
#define ASK_STEP_NS 20000ull
#define ASK_STEP_SHARE 64
/* A band that is over at the first asking was over before: the next is asked that much earlier. */
#define ASK_EARLIER 0.8
/* Weight of the newest band among those that tell how long one takes. */
#define ASK_GAIN 0.3
/* Warm-up times a device until so many runs or so much time are spent, and the shortest run counts: it takes a processor's
 * workers some ten milliseconds to be spread over the cores. */
#define SOLO_RUNS 12
#define SOLO_NS 40000000ull
/* A device that takes this long to submit to, and most of the band's time, computes inside the enqueue call. */
#define BLOCKING_NS 100000ull

#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

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
    slot->bands[index].state = COX__BAND_PENDING;
    slot->reports[index] = (struct cox_band_report){
        .device = unit, .first_row = first_row, .rows = rows, .attempt = attempt, .status = COX_OK};
    slot->bands[index].chunk = false;
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

uint32_t cox__engine_best_unit(const struct cox_session *session)
{
    uint32_t best = session->unit_count;
    uint64_t best_ns = 0;
    for (uint32_t u = 0; u < session->unit_count; u++) {
        uint64_t ns = session->units[u].solo_ns ? session->units[u].solo_ns : UINT64_MAX;
        if (session->units[u].usable && (best == session->unit_count || ns < best_ns)) {
            best = u;
            best_ns = ns;
        }
    }
    return best;
}

static void fail_band(struct cox_session *session, struct cox__slot *slot, uint32_t band, cox_status status);

static void lose_unit(struct cox_session *session, uint32_t unit, cox_status status)
{
    struct cox__session_unit *lost = &session->units[unit];
    if (!lost->usable)
        return;
    pthread_mutex_lock(&session->lock);
    lost->usable = false;
    session->dead = true;
    for (uint32_t u = 0; u < session->unit_count; u++)
        session->dead &= !session->units[u].usable;
    if (session->dead)
        pthread_cond_broadcast(&session->slot_free); /* nobody shall wait for a slot in vain */
    pthread_mutex_unlock(&session->lock);
    cox__log(&session->runtime->log, COX_LOG_WARN, "%s leaves the session: %s", lost->info.name,
             cox_status_text(status));
    for (uint32_t i = 0; i < session->order_count; i++) {
        struct cox__slot *slot = session->order[(session->order_first + i) % COX_IN_FLIGHT_MAX];
        for (uint32_t b = 0; b < slot->band_count; b++)
            if (slot->bands[b].state == COX__BAND_PENDING && slot->reports[b].device == unit)
                fail_band(session, slot, b, status);
    }
}

/* A PENDING or RUNNING band will not give its rows: have another device do them, or give the frame up. A band that ran
 * may have written anywhere in its rows, which is harmless unless it reads them too. */
static void fail_band(struct cox_session *session, struct cox__slot *slot, uint32_t band, cox_status status)
{
    struct cox_band_report *report = &slot->reports[band];
    bool ran = slot->bands[band].state == COX__BAND_RUNNING;
    slot->bands[band].state = COX__BAND_FAILED;
    slot->at_work[report->device]--;
    slot->unfinished--;
    report->status = status;
    if (slot->kind != COX__SLOT_FRAME) {
        slot->status = status;
        return;
    }
    uint32_t unit = cox__engine_best_unit(session);
    if (unit == session->unit_count || (ran && session->pipeline.in_place) ||
        !cox__slot_add(session, slot, unit, report->first_row, report->rows, report->attempt + 1)) {
        slot->status = COX_E_DEVICE_LOST;
        return;
    }
    slot->reason = COX_REASON_RERUN;
    cox__log(&session->runtime->log, COX_LOG_WARN, "frame %llu: rows %u..%u go from %s to %s",
             (unsigned long long)slot->index, report->first_row, report->first_row + report->rows - 1,
             session->units[report->device].info.name, session->units[unit].info.name);
}

static struct cox__lane *free_lane(const struct cox_session *session, const struct cox__session_unit *unit)
{
    for (uint32_t l = 0; l < session->lane_count; l++)
        if (!unit->lanes[l].busy)
            return &unit->lanes[l];
    return NULL;
}

bool cox__engine_has_lane(const struct cox_session *session, uint32_t unit)
{
    return free_lane(session, &session->units[unit]) != NULL;
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
    job->slot = slot;
    job->band = band;
    job->first_row = report->first_row;
    job->rows = report->rows;
    job->mems = slot->mems;
    job->params = slot->params;
    job->kernel_ns = job->copy_in_ns = job->copy_out_ns = 0;
    atomic_store(&job->end_ns, 0);
    lane->busy = true;
    lane->submit_ns = report->submit_ns = cox__engine_now(session);
    slot->bands[band].state = COX__BAND_RUNNING;
    cox_status status = backend->ops->job_submit(backend, job);
    if (status) {
        lane->busy = false;
        slot->bands[band].state = COX__BAND_PENDING; /* nothing of it ran */
        lose_unit(session, report->device, status);
        if (slot->bands[band].state == COX__BAND_PENDING) /* the slot is not in `order`: no frame's */
            fail_band(session, slot, band, status);
        return true;
    }
    plan_poll(session, unit, lane, report->rows);
    unit->unflushed = true;
    return true;
}

static bool may_submit(const struct cox_session *session, const struct cox__slot *slot, uint32_t band, uint32_t held,
                       bool blocking)
{
    uint32_t unit = slot->reports[band].device;
    return slot->bands[band].state == COX__BAND_PENDING && session->units[unit].blocks_in_submit == blocking &&
           !(held >> unit & 1);
}

static void flush(struct cox_session *session)
{
    struct cox__backend *backend = session->runtime->backend;
    for (uint32_t u = 0; u < session->unit_count; u++)
        if (session->units[u].unflushed) {
            session->units[u].unflushed = false;
            backend->ops->unit_flush(backend, session->units[u].unit);
        }
}

bool cox__slot_submit(struct cox_session *session, struct cox__slot *slot, uint32_t held)
{
    bool progress = false;
    for (uint32_t b = 0; b < slot->band_count; b++) /* band_count may grow on the way */
        if (may_submit(session, slot, b, held, false))
            progress |= submit_band(session, slot, b);
    flush(session);
    return progress;
}

/* Submit one band to a device that computes inside the enqueue call. */
static bool submit_blocking(struct cox_session *session, struct cox__slot *slot, uint32_t held)
{
    for (uint32_t b = 0; b < slot->band_count; b++)
        if (may_submit(session, slot, b, held, true) && submit_band(session, slot, b)) {
            flush(session);
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
    struct cox_band_report *report = &slot->reports[job->band];
    struct cox__session_unit *unit = &session->units[report->device];
    uint64_t end = atomic_load(&job->end_ns);
    note_times(unit, lane, report, end ? end : cox__engine_now(session));
    asked_learn(&unit->asked, report->rows, (double)report->wall_ns, !posted && lane->polls == 1);
    report->kernel_ns = job->kernel_ns <= report->end_ns - lane->submit_ns ? job->kernel_ns : 0;
    report->copy_in_ns = job->copy_in_ns;
    report->copy_out_ns = job->copy_out_ns;
    slot->bands[job->band].state = COX__BAND_DONE;
    slot->at_work[report->device]--;
    slot->unfinished--;
    if (report->end_ns > slot->end_ns)
        slot->end_ns = report->end_ns;
    if (!save_partials(session, slot, job->band, job))
        slot->status = COX_E_NOMEM;
    cox__policy_observe(session, slot, job->band);
}

/* Ask the device about a busy lane's band, because it was posted or because it is time. Returns true if it has ended. */
static bool poll_lane(struct cox_session *session, struct cox__lane *lane, bool posted)
{
    struct cox__backend *backend = session->runtime->backend;
    enum cox__job_state state = backend->ops->job_poll(backend, &lane->job);
    lane->polls += !posted;
    if (state == COX__JOB_RUNNING)
        return false;
    struct cox__slot *slot = lane->job.slot;
    uint32_t band = lane->job.band;
    uint32_t unit = slot->reports[band].device;
    lane->busy = false;
    session->units[unit].ask |= !posted; /* the driver lets one wait */
    if (state == COX__JOB_DONE) {
        band_done(session, lane, posted);
    } else {
        note_times(&session->units[unit], lane, &slot->reports[band], cox__engine_now(session));
        cox__policy_observe(session, slot, band);
        lose_unit(session, unit, COX_E_DEVICE_LOST); /* first, so that the rows do not go back to it */
        fail_band(session, slot, band, COX_E_DEVICE_LOST);
    }
    return true;
}

/* ---- frames ---- */

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
}

/* Sort by first row, then attempt; few bands, nearly sorted. */
static void sort_reports(struct cox_session *session, const struct cox__slot *slot)
{
    struct cox_band_report *sorted = session->sorted;
    for (uint32_t i = 0; i < slot->band_count; i++) {
        const struct cox_band_report *report = &slot->reports[i];
        uint32_t at = i;
        while (at && (sorted[at - 1].first_row > report->first_row ||
                      (sorted[at - 1].first_row == report->first_row && sorted[at - 1].attempt > report->attempt))) {
            sorted[at] = sorted[at - 1];
            at--;
        }
        sorted[at] = *report;
    }
}

void cox__slot_report(struct cox_session *session, const struct cox__slot *slot)
{
    if (!session->report)
        return;
    sort_reports(session, slot);
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
                                            .band_count = slot->band_count,
                                            .bands = session->sorted};
    session->report(session->report_user, &report);
}

/* Merge the partial results in row order. */
static void merge_partials(struct cox_session *session, struct cox__slot *slot)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    struct cox__backend *backend = session->runtime->backend;
    size_t offset = 0;
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        if (binding->contract != COX_REDUCE)
            continue;
        void *into = backend->ops->mem_data(slot->mems[i]);
        memset(into, 0, binding->bytes);
        for (uint32_t next = 0; next < pipeline->rows;) {
            uint32_t band = 0;
            while (slot->bands[band].state != COX__BAND_DONE || slot->reports[band].first_row != next)
                band++;
            binding->merge(into, (char *)slot->bands[band].partials + offset, binding->bytes, binding->merge_user);
            next += slot->reports[band].rows;
        }
        offset += binding->bytes;
    }
}

/* The frame at the head of the order, if it is finished. */
static struct cox__slot *finished_frame(const struct cox_session *session)
{
    struct cox__slot *slot = session->order_count ? session->order[session->order_first] : NULL;
    return slot && slot->started && !slot->unfinished && !slot->pool_left ? slot : NULL;
}

/* Report a shadow that is over, and give the finished frames at the head of the order to the application; with
 * `awaited_only` up to the first one that has a callback of the application's. */
static bool deliver(struct cox_session *session, bool awaited_only)
{
    bool progress = cox__shadow_end(session);
    for (struct cox__slot *slot; (slot = finished_frame(session)) && (slot->awaited || !awaited_only);) {
        if (slot->status == COX_OK && session->partial_bytes)
            merge_partials(session, slot);
        cox__policy_observe_frame(session, slot);
        cox__slot_report(session, slot);
        cox_done_fn *done = slot->done;
        void *user = slot->user;
        uint64_t index = slot->index;
        cox_status status = slot->status;
        session->order_first = (session->order_first + 1) % COX_IN_FLIGHT_MAX;
        session->order_count--;
        pthread_mutex_lock(&session->lock);
        slot->started = false;
        slot->next_free = session->free_slots;
        session->free_slots = slot;
        session->frames_done++;
        pthread_cond_signal(&session->slot_free);
        pthread_mutex_unlock(&session->lock);
        if (done)
            done(user, index, status);
        pthread_mutex_lock(&session->lock);
        session->under_way--;
        pthread_cond_broadcast(&session->delivered);
        pthread_mutex_unlock(&session->lock);
        progress = true;
    }
    return progress;
}

/* ---- warm-up ---- */

static void warmup_release(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__backend *backend = session->runtime->backend;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (warmup->owns_mem[i]) {
            backend->ops->mem_destroy(backend, warmup->slot->mems[i]);
            warmup->owns_mem[i] = false;
        }
    warmup->finished = true;
}

/* The first frame's own buffers serve, since its bands write the same rows again; a binding that is read and written
 * gets a copy. */
static cox_status warmup_borrow(struct cox_session *session, const struct cox__slot *frame)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__backend *backend = session->runtime->backend;
    memcpy(warmup->slot->mems, frame->mems, sizeof frame->mems);
    memcpy(warmup->slot->params, frame->params, sizeof frame->params);
    warmup->slot->index = frame->index;
    warmup->slot->submit_ns = frame->submit_ns;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++) {
        if (session->pipeline.bindings[i].access != COX_READ_WRITE)
            continue;
        size_t bytes = cox__binding_bytes(&session->pipeline, i);
        cox_status status = backend->ops->mem_create(backend, NULL, bytes, &warmup->slot->mems[i]);
        if (status)
            return status;
        warmup->owns_mem[i] = true;
        memcpy(backend->ops->mem_data(warmup->slot->mems[i]), backend->ops->mem_data(frame->mems[i]), bytes);
    }
    return COX_OK;
}

/* Note what the finished run showed and move on to the next run or unit. */
static void warmup_learn(struct cox_session *session)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__slot *slot = warmup->slot;
    struct cox__session_unit *unit = &session->units[warmup->unit];
    cox__slot_report(session, slot);
    slot->started = false;
    uint64_t wall = slot->end_ns - slot->start_ns;
    bool blocks = warmup->submit_ns > BLOCKING_NS && warmup->submit_ns > wall / 2;
    if (slot->status == COX_OK && warmup->run > 0) {
        unit->blocks_in_submit = blocks;
        session->any_blocks |= unit->blocks_in_submit;
        pthread_mutex_lock(&session->lock);
        /* What an earlier session measured may hold no longer. */
        if (!unit->solo_ns || wall < unit->solo_ns || (warmup->run == 1 && wall / 2 > unit->solo_ns))
            unit->solo_ns = wall ? wall : 1;
        pthread_mutex_unlock(&session->lock);
    }
    warmup->spent_ns = warmup->run == 0 ? 0 : warmup->spent_ns + wall;
    /* What an earlier session measured spares the timed runs; where the first one kept the thread busy, one of them tells
     * whether that was the compiler. */
    uint32_t runs = !session->recall.recalled || !unit->solo_ns ? SOLO_RUNS : blocks ? 1 : 0;
    bool again = warmup->run < runs && warmup->spent_ns < SOLO_NS;
    if (slot->status == COX_OK && again) {
        warmup->run++;
    } else {
        warmup->unit++;
        warmup->run = 0;
    }
}

static bool warmup_submit(struct cox_session *session, struct cox__slot *slot)
{
    bool progress = cox__slot_submit(session, slot, 0);
    return submit_blocking(session, slot, 0) || progress;
}

/* Advance the warm-up. Returns true if something happened. */
static bool warmup_step(struct cox_session *session, const struct cox__slot *frame)
{
    struct cox__warmup *warmup = &session->warmup;
    struct cox__slot *slot = warmup->slot;
    if (slot->started) {
        bool progress = warmup_submit(session, slot);
        if (slot->unfinished)
            return progress;
        warmup_learn(session);
    } else if (warmup->unit == 0 && warmup->run == 0) {
        cox_status status = warmup_borrow(session, frame);
        if (status) {
            cox__log(&session->runtime->log, COX_LOG_WARN, "no warm-up: %s", cox_status_text(status));
            warmup_release(session);
            return true;
        }
    }
    while (warmup->unit < session->unit_count && !session->units[warmup->unit].usable)
        warmup->unit++;
    if (warmup->unit == session->unit_count) {
        warmup_release(session);
        return true;
    }
    cox__slot_start(session, slot, COX__SLOT_WARMUP);
    slot->reason = COX_REASON_WARMUP;
    if (!cox__slot_add(session, slot, warmup->unit, 0, session->pipeline.rows, 0))
        slot->status = COX_E_DEVICE_MEMORY;
    warmup_submit(session, slot);
    warmup->submit_ns = cox__engine_now(session) - slot->start_ns;
    return true;
}

/* ---- the step ---- */

/* While a frame's pool is not empty, a device that may take of it gets no band of a later frame: the pool would wait behind
 * that. A bit for each such unit. */
static uint32_t holds(const struct cox_session *session, const struct cox__slot *slot)
{
    return slot->pool_left ? cox__policy_waits_for(session, slot) : 0;
}

static struct cox__slot *frame_at(const struct cox_session *session, uint32_t i)
{
    return session->order[(session->order_first + i) % COX_IN_FLIGHT_MAX];
}

static void start_frame(struct cox_session *session, struct cox__slot *slot, bool alone)
{
    cox__slot_start(session, slot, COX__SLOT_FRAME);
    if (alone)
        cox__policy_begin_period(session);
    if (session->dead)
        slot->status = COX_E_DEVICE_LOST;
    else
        cox__policy_split(session, slot);
}

/* Hand a band to one device that computes inside the enqueue call. */
static bool dispatch_blocking(struct cox_session *session)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < session->order_count; i++) {
        struct cox__slot *slot = frame_at(session, i);
        if (!slot->started)
            break;
        bool offered = slot->pool_left && cox__policy_offer(session, slot, held, true);
        if (submit_blocking(session, slot, held) || offered)
            return true;
        held |= holds(session, slot);
    }
    return false;
}

/* Settle every wish for a shadow; at most one is begun. */
static void begin_shadows(struct cox_session *session)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < session->order_count; i++) {
        struct cox__slot *slot = frame_at(session, i);
        if (!slot->started)
            break;
        if (slot->shadow.rows)
            cox__shadow_begin(session, slot, held);
        held |= holds(session, slot);
    }
}

/* Start frames and hand bands to devices. Those whose enqueue returns at once are given all that they may have, of every
 * frame, before one that computes inside the enqueue call gets a single band: until that is done nobody is served. */
static bool dispatch(struct cox_session *session)
{
    bool progress = false;
    bool wished = false;
    uint32_t held = 0;
    for (uint32_t i = 0; i < session->order_count; i++) {
        struct cox__slot *slot = frame_at(session, i);
        if (!slot->started && !session->warmup.finished) {
            progress |= warmup_step(session, slot);
            break;
        }
        if (!slot->started) {
            start_frame(session, slot, i == 0);
            progress = true;
        }
        if (slot->pool_left)
            progress |= cox__policy_offer(session, slot, held, false);
        if (slot->unfinished)
            progress |= cox__slot_submit(session, slot, held);
        wished |= slot->shadow.rows > 0;
        held |= holds(session, slot);
    }
    if (wished) /* comes last: it may take a moment, and every device has its bands by now */
        begin_shadows(session);
    return progress || (session->any_blocks && dispatch_blocking(session));
}

static bool take_jobs(struct cox_runtime *runtime)
{
    struct cox__mpsc_node *node = cox__mpsc_take(&runtime->jobs);
    bool any = node != NULL;
    while (node) {
        struct cox__mpsc_node *next = node->next;
        struct cox__lane *lane = CONTAINER_OF(CONTAINER_OF(node, struct cox__job, node), struct cox__lane, job);
        struct cox_session *session = lane->job.session;
        cox__mpsc_open(node);
        if (lane->busy && !poll_lane(session, lane, true)) { /* the post came before the event's status */
            lane->near = true;
            lane->poll_ns = cox__engine_now(session) + ASK_STEP_NS;
        }
        node = next;
    }
    return any;
}

static void take_request(struct cox_runtime *runtime, struct cox__request *request)
{
    struct cox_session *session = request->session;
    if (request->slot) {
        session->order[(session->order_first + session->order_count) % COX_IN_FLIGHT_MAX] = request->slot;
        session->order_count++;
        if (!session->attached) {
            session->attached = true;
            session->next_active = runtime->active;
            runtime->active = session;
        }
        return;
    }
    /* A late callback may have posted a band of the session since jobs were taken last: afterwards it is freed memory. */
    take_jobs(runtime);
    struct cox_session **link = &runtime->active;
    while (*link && *link != session)
        link = &(*link)->next_active;
    if (*link)
        *link = session->next_active;
    pthread_mutex_lock(&session->lock);
    session->detached = true;
    pthread_cond_broadcast(&session->delivered);
    pthread_mutex_unlock(&session->lock); /* the session may be gone from here on */
}

static bool take_requests(struct cox_runtime *runtime)
{
    struct cox__mpsc_node *node = cox__mpsc_take(&runtime->requests);
    bool any = node != NULL;
    while (node) {
        struct cox__mpsc_node *next = node->next;
        cox__mpsc_open(node);
        take_request(runtime, CONTAINER_OF(node, struct cox__request, node));
        node = next;
    }
    return any;
}

/* When the next of a session's bands is to be asked about. */
static uint64_t next_poll(const struct cox_session *session)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t u = 0; u < session->unit_count; u++)
        for (uint32_t l = 0; l < session->lane_count; l++) {
            const struct cox__lane *lane = &session->units[u].lanes[l];
            if (lane->busy && lane->poll_ns < next)
                next = lane->poll_ns;
        }
    return next;
}

/* How long to wait after asking in vain. */
static uint64_t poll_pause(const struct cox__lane *lane, uint64_t now)
{
    uint64_t elapsed = now - lane->submit_ns;
    uint64_t least = lane->near ? ASK_STEP_NS : POLL_FIRST_NS;
    uint64_t share = lane->near ? elapsed / ASK_STEP_SHARE : elapsed / 2;
    return share > least ? share : least;
}

/* Ask about the bands whose time has come; returns when the next one is due. */
static uint64_t poll_due(struct cox_runtime *runtime, bool *progress)
{
    uint64_t next = UINT64_MAX;
    for (struct cox_session *session = runtime->active; session; session = session->next_active)
        for (uint32_t u = 0; u < session->unit_count; u++)
            for (uint32_t l = 0; l < session->lane_count; l++) {
                struct cox__lane *lane = &session->units[u].lanes[l];
                if (!lane->busy)
                    continue;
                uint64_t now = cox__engine_now(session);
                if (lane->poll_ns <= now) {
                    if (poll_lane(session, lane, false)) {
                        *progress = true;
                        continue;
                    }
                    lane->poll_ns = now + poll_pause(lane, now);
                }
                if (lane->poll_ns < next)
                    next = lane->poll_ns;
            }
    return next;
}

/* Everything that can be done now. Returns when something else is due, UINT64_MAX if nothing is. */
static uint64_t move_on(struct cox_runtime *runtime)
{
    struct cox__backend *backend = runtime->backend;
    for (;;) {
        bool progress = take_jobs(runtime);
        progress |= take_requests(runtime);
        for (struct cox_session *session = runtime->active; session; session = session->next_active) {
            progress |= dispatch(session);
            progress |= deliver(session, false);
        }
        if (progress) {
            runtime->active_ns = backend->ops->now_ns(backend);
            continue;
        }
        uint64_t due = poll_due(runtime, &progress);
        if (progress)
            continue;
        if (!backend->ops->advance)
            return due;
        if (!backend->ops->advance(backend, due))
            return UINT64_MAX;
    }
}

uint64_t cox__engine_step(void *ctx)
{
    struct cox_runtime *runtime = ctx;
    struct cox__backend *backend = runtime->backend;
    pthread_mutex_lock(&runtime->engine_lock);
    uint64_t due = move_on(runtime);
    uint64_t now = backend->ops->now_ns(backend);
    /* While frames come one after the other, a timer is always set: cox__engine_help need not wake anybody to set one. */
    if (due == UINT64_MAX && !backend->ops->advance && runtime->active && now - runtime->active_ns < POLL_FIRST_NS)
        due = now + POLL_FIRST_NS;
    atomic_store(&runtime->next_step_ns, due);
    pthread_mutex_unlock(&runtime->engine_lock);
    return due == UINT64_MAX ? UINT64_MAX : due > now ? due - now : 0;
}

/* What a thread inside cox_session_run does for the scheduler thread, under `engine_lock`: all but the warm-up and the
 * application's callbacks. Returns whether the scheduler thread has to be woken for the rest, or for its timer. */
static bool move_for(struct cox_runtime *runtime)
{
    uint64_t due = UINT64_MAX;
    bool wake = false;
    take_jobs(runtime);
    take_requests(runtime);
    for (struct cox_session *session = runtime->active; session; session = session->next_active) {
        if (!session->warmup.finished) {
            wake = true;
            continue;
        }
        bool again; /* a device that refuses leaves its rows to another */
        do {
            again = dispatch(session);
            again |= deliver(session, true);
            if (session->any_blocks) /* others were done while one computed inside the enqueue call */
                again |= take_jobs(runtime);
        } while (again);
        wake |= finished_frame(session) != NULL;
        uint64_t next = next_poll(session);
        due = next < due ? next : due;
    }
    runtime->active_ns = runtime->backend->ops->now_ns(runtime->backend);
    return wake || due < atomic_load(&runtime->next_step_ns);
}

void cox__engine_help(struct cox_runtime *runtime)
{
    bool wake = true;
    if (pthread_mutex_trylock(&runtime->engine_lock) == 0) {
        wake = move_for(runtime);
        pthread_mutex_unlock(&runtime->engine_lock);
    }
    if (wake)
        cox__loop_wake(runtime->loop);
}

/* Posting is: push, then read `runner`. Leaving is: clear `runner`, then look at the queue. Whichever comes second in the one
 * order of these four sees what the other did, so no post is left without somebody to take it. */
bool cox__engine_await(struct cox_runtime *runtime, atomic_bool *done)
{
    if (atomic_exchange(&runtime->runner, true))
        return false;
    while (!atomic_load(done)) {
        if (sem_wait(&runtime->runner_wake)) /* a signal */
            continue;
        if (atomic_load(done))
            break;
        pthread_mutex_lock(&runtime->engine_lock);
        bool wake = move_for(runtime);
        pthread_mutex_unlock(&runtime->engine_lock);
        if (wake)
            cox__loop_wake(runtime->loop);
    }
    atomic_store(&runtime->runner, false);
    if (atomic_load(&runtime->jobs.head))
        cox__loop_wake(runtime->loop);
    return true;
}

void cox__engine_awaited(struct cox_runtime *runtime)
{
    if (atomic_load(&runtime->runner))
        sem_post(&runtime->runner_wake);
}

void cox__engine_post(void *ctx, struct cox__job *job)
{
    struct cox_runtime *runtime = ctx;
    if (!cox__mpsc_push(&runtime->jobs, &job->node))
        return;
    if (atomic_load(&runtime->runner))
        sem_post(&runtime->runner_wake);
    else
        cox__loop_wake(runtime->loop);
}

bool cox__engine_request(struct cox_runtime *runtime, struct cox__request *request)
{
    return cox__mpsc_push(&runtime->requests, &request->node);
}
