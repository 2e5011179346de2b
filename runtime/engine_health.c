/* Devices that fail, and how they come back.
 *
 * A lost unit leaves a wreck: its struct cox__unit and its lanes, some of which may still be at work. The wreck is destroyed on the
 * warden's thread, since a driver may not return from that, once its lanes have ended or have been given up. The device is
 * tried again there as well: a new unit on a context of its own. That must do some rows of a frame on the spare buffers before
 * it gets rows that count, where such can be had.
 * SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"
#include "engine_parts.h"

#include <stdlib.h>
#include <string.h>

/* A lost device is tried again after this, then after ever longer. */
#define PAUSE_FIRST_NS 50000000ull
#define PAUSE_MAX_NS 30000000000ull
/* For so long it is not tried beside its wreck. */
#define ROOM_NS 500000000ull
/* One that has done well for so many times its pause is as good as new. */
#define FORGET_TIMES 20

static uint64_t later(uint64_t now, uint64_t ns)
{
    return now > UINT64_MAX - ns ? UINT64_MAX : now + ns;
}

bool cox__engine_any_usable(const struct cox_session *session)
{
    for (uint32_t u = 0; u < session->unit_count; u++)
        if (session->units[u].usable)
            return true;
    return false;
}

/* With the bookkeeping that goes with it; the frames' bands are the caller's business. */
static void set_health(struct cox_session *session, uint32_t unit, enum cox_health health)
{
    struct cox__session_unit *of = &session->units[unit];
    pthread_mutex_lock(&session->lock);
    of->lost += health == COX_HEALTH_QUARANTINED;
    of->returned += health == COX_HEALTH_GOOD && of->health == COX_HEALTH_QUARANTINED;
    of->health = health;
    of->usable = health == COX_HEALTH_GOOD;
    if (of->usable)
        session->dead = false;
    pthread_mutex_unlock(&session->lock);
    if (!session->deserted_ns && !cox__engine_any_usable(session))
        session->deserted_ns = cox__engine_now(session);
    session->trouble = true;
}

void cox__unit_stall(struct cox_session *session, uint32_t unit)
{
    struct cox__session_unit *of = &session->units[unit];
    if (!of->usable)
        return;
    set_health(session, unit, COX_HEALTH_STALLED);
    cox__log(&session->runtime->log, COX_LOG_WARN, "%s gets no rows until it is through with those it has",
             of->info.name);
    for (uint32_t l = 0; l < session->lane_count; l++) {
        of->lanes[l].late = of->lanes[l].urgent = true;
        of->lanes[l].due_ns = UINT64_MAX;
    }
    cox__bands_leave(session);
}

/* Leave the unit and its lanes behind. */
static void leave_wreck(struct cox_session *session, uint32_t unit, cox_status status)
{
    struct cox__session_unit *of = &session->units[unit];
    struct cox__wreck *wreck = of->remains;
    const uint64_t give_up_ns = later(cox__engine_now(session), session->give_up_ns);
    for (uint32_t l = 0; l < session->lane_count; l++) {
        of->lanes[l].wreck = wreck;
        of->lanes[l].distrusted = status == COX_E_MISMATCH;
        of->lanes[l].urgent = true; /* once it is late: what is under way may well be done in time */
        if (give_up_ns < of->lanes[l].give_up_ns)
            of->lanes[l].give_up_ns = give_up_ns;
    }
    wreck->session = session;
    wreck->unit = of->unit;
    wreck->lanes = of->lanes;
    wreck->room_ns = later(cox__engine_now(session), ROOM_NS);
    wreck->unflushed = true; /* also if it has been: that may have been refused */
    wreck->next = session->wrecks;
    session->wrecks = wreck;
    of->remains = NULL;
    of->unit = NULL;
    of->lanes = NULL;
    of->unflushed = false;
    of->proving = false;
    of->asked = (struct cox__ask){0};
    of->ended = 0;
    of->leeway = 1;
}

/* When to try a device again that has just been lost, or could not be had. */
static void plan_probe(struct cox_session *session, struct cox__session_unit *of)
{
    of->pause_ns = of->pause_ns ? 2 * of->pause_ns : PAUSE_FIRST_NS;
    if (of->pause_ns > PAUSE_MAX_NS)
        of->pause_ns = PAUSE_MAX_NS;
    of->probe_ns = later(cox__engine_now(session), of->pause_ns);
}

void cox__unit_lose(struct cox_session *session, uint32_t unit, cox_status status)
{
    struct cox__session_unit *of = &session->units[unit];
    if (!of->lanes)
        return;
    set_health(session, unit, COX_HEALTH_QUARANTINED);
    leave_wreck(session, unit, status);
    if (of->done_ns > later(of->back_ns, FORGET_TIMES * of->pause_ns))
        of->pause_ns = 0;
    plan_probe(session, of);
    cox__log(&session->runtime->log, COX_LOG_WARN, "%s leaves the session: %s; it is tried again in %llu ms",
             of->info.name, cox_status_text(status), (unsigned long long)(of->pause_ns / 1000000));
    cox__bands_leave(session);
}

/* All that the unit was at is late: others stand in for it. */
static void seize_wreck(struct cox_session *session, struct cox__wreck *wreck, struct cox__captive *captive)
{
    wreck->captive = captive;
    wreck->unflushed = false;
    for (uint32_t l = 0; l < session->lane_count; l++) {
        struct cox__lane *lane = &wreck->lanes[l];
        if (!lane->busy || lane->straggler)
            continue;
        lane->late = true;
        if (lane->on_spare || ((const struct cox__slot *)lane->job.slot)->kind != COX__SLOT_FRAME)
            cox__lane_leave(session, lane);
    }
}

static void seize_unit(struct cox_session *session, void *unit, struct cox__captive *captive)
{
    uint32_t u = 0;
    session->runtime->backend->ops->unit_seize(session->runtime->backend, unit);
    while (u < session->unit_count && session->units[u].unit != unit)
        u++;
    if (u < session->unit_count) {
        cox__log(&session->runtime->log, COX_LOG_WARN, "%s: a call of its driver does not return",
                 session->units[u].info.name);
        cox__unit_lose(session, u, COX_E_LATE);
    }
    struct cox__wreck *wreck = session->wrecks;
    while (wreck->unit != unit)
        wreck = wreck->next;
    seize_wreck(session, wreck, captive);
    session->trouble = true;
}

void cox__engine_seized(void *ctx, void *session, void *unit, int role, struct cox__captive *captive)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    struct cox_runtime *runtime = ctx;
    seize_unit(session, unit, captive);
    runtime->interrupted = true;
    if (role == COX__ROLE_RUNNER)
        atomic_store(&runtime->runner, false);
    while (role == COX__ROLE_LOOP && cox__loop_replace(runtime->loop))
        nanosleep(&pause, NULL);
    cox__loop_wake(runtime->loop);
}

void cox__engine_seized_since(void *ctx)
{
    struct cox_runtime *runtime = ctx;
    cox__loop_wake(runtime->loop);
}

cox_status cox__unit_install(struct cox_session *session, uint32_t unit, struct cox__unit *made, uint32_t max_rows)
{
    struct cox__session_unit *of = &session->units[unit];
    if (max_rows < session->pipeline.rows) /* longer bands are cut at multiples of it, which must be band boundaries */
        max_rows -= max_rows % session->pipeline.granule;
    if ((uint64_t)max_rows * (COX_BANDS_MAX / 2) < session->pipeline.rows)
        return COX_E_DEVICE_MEMORY;
    of->lanes = calloc(session->lane_count, sizeof *of->lanes);
    of->remains = calloc(1, sizeof *of->remains);
    if (!of->lanes || !of->remains) {
        free(of->lanes);
        free(of->remains);
        of->lanes = NULL;
        of->remains = NULL;
        return COX_E_NOMEM;
    }
    of->unit = made;
    pthread_mutex_lock(&session->lock);
    of->max_rows = max_rows;
    pthread_mutex_unlock(&session->lock);
    of->leeway = 1;
    for (uint32_t l = 0; l < session->lane_count; l++) {
        struct cox__lane *lane = &of->lanes[l];
        lane->unit = unit;
        lane->job.session = session;
        lane->job.unit = made;
        lane->job.lane = l;
        lane->job.mems = lane->mems;
        lane->job.params = lane->params;
    }
    return COX_OK;
}

/* ---- wrecks ---- */

static void add_haunt(struct cox_runtime *runtime, struct cox__mem *mem)
{
    struct cox__haunt *haunt = malloc(sizeof *haunt);
    if (!haunt) /* that much memory is left to a device that hangs */
        return;
    haunt->mem = mem;
    haunt->next = runtime->haunts;
    runtime->haunts = haunt;
    atomic_fetch_add(&runtime->wild, 1);
}

/* Nothing is expected of the wreck's lanes any more. */
static void abandon(struct cox_session *session, struct cox__wreck *wreck)
{
    struct cox__backend *backend = session->runtime->backend;
    wreck->given_up = true;
    backend->ops->unit_abandon(backend, wreck->unit);
    for (uint32_t l = 0; l < session->lane_count; l++) {
        struct cox__lane *lane = &wreck->lanes[l];
        if (!lane->busy)
            continue;
        lane->busy = false;
        if (lane->on_spare) /* nobody makes it anew meanwhile: then it is the warden's */
            session->spare.haunted = true;
        for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
            add_haunt(session->runtime, lane->mems[i]);
        cox__log(&session->runtime->log, COX_LOG_WARN, "%s: rows %u..%u of frame %llu are given up",
                 session->units[lane->unit].info.name, lane->job.first_row, lane->job.first_row + lane->job.rows - 1,
                 (unsigned long long)lane->frame);
        if (lane->straggler)
            cox__straggler_end(session, lane);
        else
            cox__band_fail(session, lane->job.slot, lane->job.band, COX_E_LATE);
    }
}

static void bury(void *ctx)
{
    struct cox__wreck *wreck = ctx;
    struct cox_runtime *runtime = wreck->session->runtime;
    runtime->backend->ops->unit_destroy(runtime->backend, wreck->unit);
    atomic_store(&wreck->buried, true); /* the engine may free it from here on */
    cox__loop_wake(runtime->loop);
}

/* The thread is back: the unit may be asked again, and let go of. */
static void release_captive(struct cox_session *session, struct cox__wreck *wreck, uint64_t now)
{
    cox__guard_release(session->runtime->guard, wreck->captive);
    wreck->captive = NULL;
    wreck->unflushed = true;
    for (uint32_t l = 0; l < session->lane_count; l++)
        wreck->lanes[l].poll_ns = now;
}

/* True: something has changed. */
static bool see_to_wreck(struct cox_session *session, struct cox__wreck *wreck, uint64_t now, uint64_t *next)
{
    bool busy = false, over = false, progress = false;
    if (wreck->captive && atomic_load(&wreck->captive->returned)) {
        release_captive(session, wreck, now);
        progress = true;
    }
    for (uint32_t l = 0; l < session->lane_count; l++) {
        struct cox__lane *lane = &wreck->lanes[l];
        if (!lane->busy)
            continue;
        if (now >= lane->give_up_ns && cox__lane_asked(lane) && cox__lane_poll(session, lane, false)) {
            progress = true; /* it was over, and did not say so */
            continue;
        }
        busy = true;
        over |= now >= lane->give_up_ns;
        *next = lane->give_up_ns < *next ? lane->give_up_ns : *next;
    }
    if (over)
        abandon(session, wreck);
    if ((over || !busy) && !wreck->captive)
        wreck->sent = cox__warden_run(session->runtime->warden, bury, wreck);
    return over || progress;
}

static bool see_to_wrecks(struct cox_session *session, uint64_t now, uint64_t *next)
{
    bool progress = false;
    for (struct cox__wreck **link = &session->wrecks; *link;) {
        struct cox__wreck *wreck = *link;
        if (!wreck->sent)
            progress |= see_to_wreck(session, wreck, now, next);
        if (!atomic_load(&wreck->buried)) {
            link = &wreck->next;
            continue;
        }
        *link = wreck->next;
        cox__engine_take_jobs(session->runtime); /* posts of its lanes may be queued */
        free(wreck->lanes);
        free(wreck);
        progress = true;
    }
    return progress;
}

/* ---- return ---- */

static void probe_task(void *ctx)
{
    struct cox__probe *probe = ctx;
    struct cox_session *session = probe->session;
    struct cox__backend *backend = session->runtime->backend;
    struct cox__loop *loop = session->runtime->loop;
    probe->status = backend->ops->unit_create(backend, probe->device, &session->pipeline, session->lane_count, true,
                                              &probe->unit, &probe->max_rows);
    atomic_store(&probe->done, true); /* the engine may free it from here on */
    cox__loop_wake(loop);
}

static bool begin_probe(struct cox_session *session, struct cox__session_unit *of)
{
    of->probe = calloc(1, sizeof *of->probe);
    if (of->probe) {
        of->probe->session = session;
        of->probe->device = of->device;
        if (cox__warden_run(session->runtime->warden, probe_task, of->probe))
            return true;
        free(of->probe);
        of->probe = NULL;
    }
    plan_probe(session, of);
    return false;
}

static void go_back(struct cox_session *session, uint32_t unit)
{
    struct cox__session_unit *of = &session->units[unit];
    of->proving = false;
    of->back_ns = cox__engine_now(session);
    set_health(session, unit, COX_HEALTH_GOOD);
    cox__log(&session->runtime->log, COX_LOG_WARN, "%s is back", of->info.name);
    cox__bands_leave(session); /* those that wait go to it */
}

void cox__unit_proved(struct cox_session *session, uint32_t unit, cox_status status)
{
    if (!session->units[unit].proving)
        return; /* it was lost on the way */
    if (status)
        cox__unit_lose(session, unit, status);
    else
        go_back(session, unit);
}

/* A unit was made, or could not be. */
static void end_probe(struct cox_session *session, uint32_t unit)
{
    struct cox__session_unit *of = &session->units[unit];
    struct cox__probe *probe = of->probe;
    struct cox__backend *backend = session->runtime->backend;
    cox_status status = probe->status;
    of->probe = NULL;
    if (status == COX_OK && (status = cox__unit_install(session, unit, probe->unit, probe->max_rows)))
        backend->ops->unit_destroy(backend, probe->unit);
    if (status) {
        plan_probe(session, of);
        cox__log(&session->runtime->log, COX_LOG_INFO, "%s does not come back: %s; it is tried again in %llu ms",
                 of->info.name, cox_status_text(status), (unsigned long long)(of->pause_ns / 1000000));
    } else {
        of->proving = true;
        if (of->info.mode == COX_MODE_SHARED) { /* its context is its own now */
            pthread_mutex_lock(&session->lock);
            of->info.mode = COX_MODE_MAPPED;
            pthread_mutex_unlock(&session->lock);
        }
    }
    free(probe);
}

/* Where it cannot be tried beside a frame it is tried with one. */
static bool needs_no_proof(const struct cox_session *session, const struct cox__session_unit *of)
{
    return session->pipeline.in_place || atomic_load(&session->spare.stage) == COX__SPARE_UNAVAILABLE ||
           of->blocks_in_submit || !cox__engine_any_usable(session);
}

/* When to try a device again. Not before its wreck is gone, if that does not take too long: drivers keep much for each
 * context, and the process stays as large as it was with both. */
static uint64_t probe_due_ns(const struct cox_session *session, uint32_t unit)
{
    uint64_t due_ns = session->units[unit].probe_ns;
    if (!cox__engine_any_usable(session))
        return due_ns;
    for (const struct cox__wreck *wreck = session->wrecks; wreck; wreck = wreck->next)
        if (wreck->lanes->unit == unit && wreck->room_ns > due_ns)
            due_ns = wreck->room_ns;
    return due_ns;
}

static bool see_to_unit(struct cox_session *session, uint32_t unit, uint64_t now, uint64_t *next)
{
    struct cox__session_unit *of = &session->units[unit];
    if (of->health == COX_HEALTH_STALLED) {
        for (uint32_t l = 0; l < session->lane_count; l++)
            if (of->lanes[l].busy)
                return false;
        set_health(session, unit, COX_HEALTH_GOOD);
        cox__log(&session->runtime->log, COX_LOG_INFO, "%s is through", of->info.name);
        cox__bands_leave(session);
        return true;
    }
    if (of->health == COX_HEALTH_GOOD)
        return false;
    if (of->probe) {
        if (!atomic_load(&of->probe->done))
            return false;
        end_probe(session, unit);
        return true;
    }
    if (of->proving) {
        if (session->shadow.busy || !needs_no_proof(session, of))
            return false;
        go_back(session, unit);
        return true;
    }
    if (session->closing)
        return false;
    const uint64_t due_ns = probe_due_ns(session, unit);
    if (now >= due_ns)
        return begin_probe(session, of);
    /* On a virtual clock an idle session would go on for ever. */
    if ((session->order_count || !session->runtime->backend->ops->advance) && due_ns < *next)
        *next = due_ns;
    return false;
}

/* Nobody has come back in time. */
static bool see_to_end(struct cox_session *session, uint64_t now, uint64_t *next)
{
    if (!session->deserted_ns || session->dead || cox__engine_any_usable(session))
        return false;
    for (uint32_t u = 0; u < session->unit_count; u++)
        if (session->units[u].health == COX_HEALTH_STALLED)
            return false;
    const uint64_t end_ns = later(session->deserted_ns, session->give_up_ns);
    if (now < end_ns) {
        if (session->order_count && end_ns < *next)
            *next = end_ns;
        return false;
    }
    pthread_mutex_lock(&session->lock);
    session->dead = true;
    pthread_cond_broadcast(&session->slot_free); /* nobody shall wait for a slot in vain */
    pthread_mutex_unlock(&session->lock);
    cox__log(&session->runtime->log, COX_LOG_ERROR, "no device is left");
    cox__bands_leave(session);
    return true;
}

static void is_late(struct cox_session *session, struct cox__lane *lane, void *ctx)
{
    bool *late = ctx;
    (void)session;
    *late |= lane->late;
}

bool cox__health_step(struct cox_session *session, uint64_t *next)
{
    const uint64_t now = cox__engine_now(session);
    cox__units_flush(session);
    bool progress = see_to_wrecks(session, now, next);
    bool trouble = session->wrecks || session->stragglers;
    cox__lanes_each(session, is_late, &trouble);
    for (uint32_t u = 0; u < session->unit_count; u++) {
        progress |= see_to_unit(session, u, now, next);
        trouble |= session->units[u].health != COX_HEALTH_GOOD;
    }
    progress |= see_to_end(session, now, next);
    if (atomic_load(&session->spare.stage) == COX__SPARE_BEING_MADE) {
        trouble = true;
        if (now < session->spare.wait_ns && session->spare.wait_ns < *next)
            *next = session->spare.wait_ns;
    }
    session->trouble = trouble;
    return progress;
}

/* ---- the end ---- */

static bool is_quiet(const struct cox_session *session)
{
    bool quiet = !session->stragglers && !session->wrecks &&
                 atomic_load(&session->spare.stage) != COX__SPARE_BEING_MADE;
    for (uint32_t u = 0; u < session->unit_count; u++)
        quiet = quiet && !session->units[u].probe;
    return quiet;
}

bool cox__engine_close(struct cox_session *session)
{
    struct cox_runtime *runtime = session->runtime;
    const struct timespec pause = {.tv_nsec = 1000000};
    /* Stragglers are given up in time; what is waited for beyond that is the warden. */
    for (uint64_t end_ns = 0;;) {
        cox__guard_lock(runtime->guard);
        session->closing = true;
        const bool quiet = is_quiet(session), stragglers = session->stragglers > 0;
        cox__guard_unlock(runtime->guard);
        if (quiet)
            return true;
        if (stragglers || !end_ns)
            end_ns = later(later(cox__clock_ns(), session->give_up_ns), 1000000000u);
        if (cox__clock_ns() > end_ns)
            return false;
        cox__loop_wake(runtime->loop);
        nanosleep(&pause, NULL);
    }
}
