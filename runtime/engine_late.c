/* Bands that are late. Every band has a time by which it should be over; past it, devices with nothing to do do its rows once
 * more, on the spare buffers, and whoever is done first counts.
 *
 * A band that has lost that race goes on: nothing can stop a command. Its lane is a straggler then, which reads what it was
 * given and writes what it was told to until it ends, or until nothing is expected of it any more.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_parts.h"
#include "layout.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Late is what takes longer than expected by so many times that, and by so much at least. */
#define LATE_TIMES 2.0
#define LATE_NS 20e6
/* The first bands of a unit may meet a compiler that works at the first launch of a shape. */
#define FRESH_BANDS 16
#define FRESH_NS 250e6
/* Where nothing is known at all, not even whether the compiler is at work; and with the first band of a session's unit, whatever an
 * earlier session has told of it. */
#define UNKNOWN_NS 20e9
/* By how much a band that was late and yet first stretches its unit's limit, at most in all. */
#define LEEWAY_STEP 2.0
#define LEEWAY_MAX 8.0
/* A device is given up no sooner than so many times later than expected. */
#define GIVE_UP_TIMES 10.0
/* Stand-ins are worth it while they take no more than so many times what the band has taken by then. */
#define WORTH_TIMES 3.0

/* ---- deadlines ---- */

/* How long the unit may take for what should take so long until it is late. */
static uint64_t limit_of(const struct cox__session_unit *unit, double expected)
{
    const double least = unit->ended < FRESH_BANDS ? FRESH_NS : LATE_NS;
    const bool first = !unit->ended && !unit->lost;
    double limit = LATE_TIMES * expected;
    limit = (limit > least ? limit : least) * unit->leeway;
    return expected > 0 && !first ? (uint64_t)(expected + limit) : (uint64_t)UNKNOWN_NS;
}

/* And how much longer until it is given up. */
static uint64_t patience_with(const struct cox_session *session, double expected)
{
    const double patience = GIVE_UP_TIMES * expected;
    return patience > (double)session->give_up_ns ? (uint64_t)patience : session->give_up_ns;
}

void cox__calls_of(struct cox_session *session, uint32_t unit, struct cox__unit *made)
{
    /* A device that computes inside the enqueue call may do all that it has been given inside of one. */
    const double expected = cox__unit_expected_ns(session, unit, session->pipeline.rows) * session->lane_count;
    const uint64_t limit = limit_of(&session->units[unit], expected), patience = patience_with(session, expected);
    cox__guard_about(session->runtime->guard, session, made,
                     limit < UINT64_MAX - patience ? limit + patience : UINT64_MAX);
}

static void set_deadlines(const struct cox_session *session, struct cox__lane *lane, uint64_t begin_ns, double expected)
{
    lane->end_ns = begin_ns + (uint64_t)expected;
    lane->due_ns = begin_ns + lane->limit_ns;
    lane->give_up_ns = lane->due_ns + patience_with(session, expected);
}

static void plan_lane(struct cox_session *session, struct cox__lane *lane, uint64_t begin_ns)
{
    const double expected = cox__unit_expected_ns(session, lane->unit, lane->job.rows);
    lane->limit_ns = limit_of(&session->units[lane->unit], expected);
    set_deadlines(session, lane, begin_ns, expected);
    lane->planned = true;
}

/* The oldest lane without deadlines. */
static struct cox__lane *unplanned(const struct cox_session *session, const struct cox__session_unit *unit)
{
    struct cox__lane *oldest = NULL;
    for (uint32_t l = 0; l < session->lane_count; l++)
        if (unit->lanes[l].busy && !unit->lanes[l].planned && (!oldest || unit->lanes[l].submit_ns < oldest->submit_ns))
            oldest = &unit->lanes[l];
    return oldest;
}

void cox__lanes_plan(struct cox_session *session, uint32_t unit)
{
    const struct cox__session_unit *of = &session->units[unit];
    uint64_t begin = cox__engine_now(session);
    for (uint32_t l = 0; l < session->lane_count; l++) /* behind the bands that are under way */
        if (of->lanes[l].busy && of->lanes[l].planned && of->lanes[l].end_ns > begin)
            begin = of->lanes[l].end_ns;
    for (struct cox__lane *lane; (lane = unplanned(session, of)); begin = lane->end_ns)
        plan_lane(session, lane, begin);
}

void cox__lanes_advance(struct cox_session *session, uint32_t unit, uint64_t end_ns)
{
    struct cox__lane *lanes = session->units[unit].lanes;
    for (uint32_t l = 0; lanes && l < session->lane_count; l++)
        if (lanes[l].busy && lanes[l].planned && !lanes[l].late && lanes[l].due_ns < end_ns + lanes[l].limit_ns)
            set_deadlines(session, &lanes[l], end_ns,
                          (double)(lanes[l].end_ns > end_ns ? lanes[l].end_ns - end_ns : 0));
}

/* ---- stragglers ---- */

void cox__lane_detach(struct cox_session *session, struct cox__lane *lane)
{
    lane->straggler = true;
    session->stragglers++;
    session->trouble = true;
    atomic_fetch_add(&session->runtime->wild, 1);
    if (lane->on_spare)
        session->spare.users++;
}

void cox__straggler_end(struct cox_session *session, struct cox__lane *lane)
{
    lane->straggler = false;
    session->stragglers--;
    atomic_fetch_sub(&session->runtime->wild, 1);
    if (lane->on_spare)
        session->spare.users--;
}

struct search {
    const struct cox__slot *slot;
    bool on_spare;
    uint32_t first_row;
    uint32_t rows;
    bool found;
};

static bool is_at(const struct cox__lane *lane, const struct search *search)
{
    return lane->straggler && lane->on_spare == search->on_spare && lane->job.slot == search->slot &&
           lane->frame == search->slot->index;
}

/* What a device that fails, or lies, writes in the end is not what is there already. */
static void spoils(struct cox_session *session, struct cox__lane *lane, void *ctx)
{
    struct search *search = ctx;
    (void)session;
    search->found |= is_at(lane, search) && (lane->job.failing || lane->distrusted);
}

static void overlaps(struct cox_session *session, struct cox__lane *lane, void *ctx)
{
    struct search *search = ctx;
    (void)session;
    search->found |= is_at(lane, search) && lane->job.first_row < search->first_row + search->rows &&
                     search->first_row < lane->job.first_row + lane->job.rows;
}

bool cox__rows_unsettled(struct cox_session *session, const struct cox__slot *slot, bool on_spare, uint32_t first_row,
                         uint32_t rows)
{
    struct search search = {.slot = slot, .on_spare = on_spare, .first_row = first_row, .rows = rows};
    if (session->stragglers)
        cox__lanes_each(session, overlaps, &search);
    return search.found;
}

/* Memory that stragglers are looked for at. */
struct mem_search {
    struct cox__mem *const *mems;
    const struct cox_binding *bindings; /* how it is to be used, or NULL: it is to be freed */
    uint32_t count;
    bool found;
};

static void is_in_the_way(struct cox_session *session, struct cox__lane *lane, void *ctx)
{
    struct mem_search *search = ctx;
    if (!lane->straggler)
        return;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        for (uint32_t m = 0; m < search->count; m++)
            search->found |= lane->mems[i] == search->mems[m] &&
                             (!search->bindings || search->bindings[m].access != COX_READ ||
                              session->pipeline.bindings[i].access != COX_READ);
}

/* Whether a straggler of any session still uses memory in a way that does not go with this. */
static bool unsettled(const struct cox_runtime *runtime, struct mem_search search)
{
    for (struct cox_session *session = runtime->active; session && !search.found; session = session->next_active)
        if (session->stragglers)
            cox__lanes_each(session, is_in_the_way, &search);
    return search.found;
}

bool cox__frame_unsettled(const struct cox_session *session, const struct cox__slot *slot)
{
    return unsettled(session->runtime, (struct mem_search){.mems = slot->mems,
                                                           .bindings = session->pipeline.bindings,
                                                           .count = session->pipeline.binding_count});
}

struct asking {
    struct search search;
    bool progress;
};

static void ask(struct cox_session *session, struct cox__lane *lane, void *ctx)
{
    struct asking *asking = ctx;
    if (is_at(lane, &asking->search) && cox__lane_asked(lane))
        asking->progress |= cox__lane_poll(session, lane, true);
}

bool cox__frame_ask(struct cox_session *session, const struct cox__slot *slot)
{
    struct asking asking = {.search = {.slot = slot}};
    if (session->stragglers)
        cox__lanes_each(session, ask, &asking);
    return asking.progress;
}

/* To settle is to wait for whoever is at the memory: the warm-up's bands are not the frame's. */
bool cox__frame_must_settle(struct cox_session *session, const struct cox__slot *slot)
{
    struct search search = {.slot = slot};
    if (session->stragglers)
        cox__lanes_each(session, spoils, &search);
    return search.found || (session->settle && atomic_load(&session->runtime->wild) &&
                            unsettled(session->runtime, (struct mem_search){.mems = slot->mems,
                                                                            .count = session->pipeline.binding_count}));
}

void cox__straggler_spoils(struct cox_session *session, const struct cox__lane *lane)
{
    for (uint32_t i = 0; i < session->order_count; i++) {
        struct cox__slot *slot = cox__engine_frame(session, i);
        const uint32_t unit = cox__engine_heir(session, lane->unit);
        if (lane->on_spare || lane->job.slot != slot || lane->frame != slot->index || slot->status)
            continue;
        const uint32_t count = slot->band_count; /* those of another's rows may be on their way already */
        for (uint32_t b = 0; b < count; b++) {
            const struct cox_band_report report = slot->reports[b];
            if (!cox__is_stand_in(&slot->bands[b], lane->job.band) || slot->bands[b].state != COX__BAND_DONE)
                continue;
            slot->bands[b].state = COX__BAND_FAILED;
            slot->reports[b].status = COX_E_DEVICE_LOST;
            slot->verified = false;
            if (unit == session->unit_count ||
                !cox__slot_add(session, slot, unit, report.first_row, report.rows, report.attempt + 1))
                slot->status = COX_E_DEVICE_LOST;
        }
    }
}

bool cox__haunt_take(struct cox_runtime *runtime, const struct cox__mem *mem)
{
    bool found = false;
    for (struct cox__haunt **link = &runtime->haunts; *link;) {
        struct cox__haunt *haunt = *link;
        if (haunt->mem != mem) {
            link = &haunt->next;
            continue;
        }
        found = true;
        *link = haunt->next;
        free(haunt);
        atomic_fetch_sub(&runtime->wild, 1);
    }
    return found;
}

void cox__engine_drop_mem(struct cox_runtime *runtime, struct cox__mem *mem)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    bool haunted = false;
    /* Mostly nothing is wrong, and the engine, which may be inside a callback of the application's, need not be asked. */
    for (bool wait = atomic_load(&runtime->wild) > 0; wait;) {
        cox__guard_lock(runtime->guard);
        wait = unsettled(runtime, (struct mem_search){.mems = &mem, .count = 1});
        runtime->draining = wait;
        if (!wait)
            haunted = cox__haunt_take(runtime, mem);
        cox__guard_unlock(runtime->guard);
        if (wait) {
            cox__loop_wake(runtime->loop);
            nanosleep(&pause, NULL);
        }
    }
    if (haunted)
        runtime->backend->ops->mem_abandon(runtime->backend, mem);
    else
        runtime->backend->ops->mem_destroy(runtime->backend, mem);
}

/* ---- becoming late ---- */

void cox__lane_leave(struct cox_session *session, struct cox__lane *lane)
{
    struct cox__slot *slot = lane->job.slot;
    const uint32_t band = lane->job.band;
    cox__lane_detach(session, lane);
    if (!lane->wreck)
        cox__unit_stall(session, lane->unit);
    cox__band_fail(session, slot, band, COX_E_LATE);
}

bool cox__lane_check(struct cox_session *session, struct cox__lane *lane, uint64_t now)
{
    if (now >= lane->give_up_ns) {
        session->trouble = true;
        if (!lane->wreck)
            cox__unit_lose(session, lane->unit, COX_E_LATE); /* the wreck's lanes are seen to in time */
        lane->due_ns = UINT64_MAX;
        return true;
    }
    if (now < lane->due_ns)
        return false;
    if (lane->late) { /* look for stand-ins again */
        lane->due_ns = UINT64_MAX;
        return true;
    }
    lane->late = true;
    lane->due_ns = UINT64_MAX;
    session->trouble = true;
    if (lane->straggler)
        return true;
    const struct cox__slot *slot = lane->job.slot;
    cox__log(&session->runtime->log, COX_LOG_INFO, "%s is late with rows %u..%u of frame %llu",
             session->units[lane->unit].info.name, lane->job.first_row, lane->job.first_row + lane->job.rows - 1,
             (unsigned long long)lane->frame);
    if (lane->on_spare || slot->kind != COX__SLOT_FRAME)
        cox__lane_leave(session, lane);
    return true;
}

/* ---- stand-ins ---- */

/* Usable units with nothing of the frame to do, or, if it must be, all of them. A bit each. */
static uint32_t helpers(const struct cox_session *session, const struct cox__slot *slot, uint32_t unit, bool urgent)
{
    uint32_t idle = 0, all = 0;
    for (uint32_t u = 0; u < session->unit_count; u++) {
        if (u == unit || !session->units[u].usable)
            continue;
        all |= UINT32_C(1) << u;
        if (!slot->at_work[u])
            idle |= UINT32_C(1) << u;
    }
    return idle || !urgent ? idle : all;
}

/* Share the band's rows out. Returns how long they should take. */
static double share_out(const struct cox_session *session, const struct cox_band_report *report, uint32_t units,
                        uint32_t *rows)
{
    struct cox_sched_device devices[COX_DEVICES_MAX];
    double ns_per_row[COX_DEVICES_MAX] = {0};
    for (uint32_t u = 0; u < session->unit_count; u++) {
        const double ns = cox__unit_expected_ns(session, u, report->rows);
        devices[u] = (struct cox_sched_device){.usable = units >> u & 1};
        ns_per_row[u] = ns > 0 ? ns / report->rows : 1;
    }
    const struct cox_sched_view view = {.rows = report->rows,
                                        .granule = session->pipeline.granule,
                                        .device_count = session->unit_count,
                                        .devices = devices};
    return cox__layout_balance(&view, ns_per_row, rows);
}

/* Begin to do a late band's rows on the spare buffers. Where that is not worth it yet, the lane is looked at again later. */
static bool stand_in(struct cox_session *session, struct cox__slot *slot, struct cox__lane *lane, uint64_t now)
{
    const struct cox_band_report report = slot->reports[lane->job.band];
    const uint32_t units = helpers(session, slot, lane->unit, lane->urgent);
    uint32_t rows[COX_DEVICES_MAX] = {0};
    if (!units)
        return false;
    const double ns = share_out(session, &report, units, rows);
    const uint64_t worth_ns = lane->submit_ns + (uint64_t)(ns / WORTH_TIMES);
    if (!lane->urgent && now < worth_ns) {
        lane->due_ns = worth_ns;
        return false;
    }
    if (!cox__spare_take(session, slot))
        return false;
    cox__spare_fill(session, slot, report.first_row, report.rows, true);
    struct cox_split split = {0};
    const struct cox_sched_view view = {
        .rows = report.rows, .granule = session->pipeline.granule, .device_count = session->unit_count};
    cox__layout_bands(&view, rows, &split);
    for (uint32_t b = 0; b < split.band_count; b++)
        if (!cox__spare_add(session, slot, split.bands[b].device, report.first_row + split.bands[b].first_row,
                            split.bands[b].rows, lane->job.band, false))
            break;
    slot->reason = COX_REASON_RERUN;
    cox__log(&session->runtime->log, COX_LOG_INFO, "frame %llu: rows %u..%u are done once more, by %u device(s)",
             (unsigned long long)slot->index, report.first_row, report.first_row + report.rows - 1, split.band_count);
    return true;
}

struct serving {
    struct cox__slot *slot;
    uint64_t now;
    bool progress;
};

static void serve_lane(struct cox_session *session, struct cox__lane *lane, void *ctx)
{
    struct serving *serving = ctx;
    struct cox__slot *slot = serving->slot;
    if (lane->late && !lane->straggler && lane->job.slot == slot && slot->kind == COX__SLOT_FRAME && !slot->status &&
        !lane->on_spare && !slot->bands[lane->job.band].stand_ins)
        serving->progress |= stand_in(session, slot, lane, serving->now);
}

bool cox__late_serve(struct cox_session *session, struct cox__slot *slot)
{
    struct serving serving = {.slot = slot, .now = cox__engine_now(session)};
    if (!session->pipeline.in_place && !session->no_backup)
        cox__lanes_each(session, serve_lane, &serving);
    return serving.progress;
}

struct lane_search {
    const struct cox__slot *slot;
    uint32_t band;
    struct cox__lane *lane;
};

static void is_lane_of(struct cox_session *session, struct cox__lane *lane, void *ctx)
{
    struct lane_search *search = ctx;
    (void)session;
    if (!lane->straggler && lane->job.slot == search->slot && lane->job.band == search->band)
        search->lane = lane;
}

static struct cox__lane *lane_of(struct cox_session *session, const struct cox__slot *slot, uint32_t band)
{
    struct lane_search search = {.slot = slot, .band = band};
    cox__lanes_each(session, is_lane_of, &search);
    return search.lane;
}

/* A spare band's result is of no use any more, or has been used. */
static void forget_stand_in(struct cox_session *session, struct cox__slot *slot, uint32_t band)
{
    if (slot->bands[band].state == COX__BAND_RUNNING)
        cox__lane_detach(session, lane_of(session, slot, band));
    if (slot->bands[band].state == COX__BAND_RUNNING || slot->bands[band].state == COX__BAND_PENDING) {
        cox__band_drop(slot, band, COX_E_LATE);
    } else if (slot->bands[band].state == COX__BAND_DONE) {
        slot->bands[band].state = COX__BAND_FAILED;
        slot->reports[band].status = COX_E_LATE;
    } else {
        return; /* it had failed, and another took its place */
    }
    session->spare.users--;
}

void cox__late_beaten(struct cox_session *session, struct cox__slot *slot, uint32_t band)
{
    struct cox__session_unit *unit = &session->units[slot->reports[band].device];
    for (uint32_t b = 0; b < slot->band_count; b++)
        if (cox__is_stand_in(&slot->bands[b], band))
            forget_stand_in(session, slot, b);
    slot->bands[band].stand_ins = 0;
    unit->leeway = unit->leeway * LEEWAY_STEP < LEEWAY_MAX ? unit->leeway * LEEWAY_STEP : LEEWAY_MAX;
}

/* The band itself is not over yet. */
static void overtake(struct cox_session *session, struct cox__slot *slot, uint32_t band)
{
    struct cox_band_report *report = &slot->reports[band];
    struct cox__lane *lane = lane_of(session, slot, band);
    const uint64_t now = cox__engine_now(session);
    report->end_ns = now;
    report->wall_ns = now - lane->submit_ns;
    cox__policy_observe(session, slot, band);
    cox__band_drop(slot, band, COX_E_LATE);
    cox__lane_detach(session, lane);
    pthread_mutex_lock(&session->lock);
    session->units[lane->unit].late++;
    pthread_mutex_unlock(&session->lock);
    if (!lane->wreck)
        cox__unit_stall(session, lane->unit);
}

void cox__stand_in_done(struct cox_session *session, struct cox__slot *slot, uint32_t band)
{
    const uint32_t origin = slot->bands[band].origin;
    if (--slot->bands[origin].stand_ins)
        return;
    for (uint32_t b = 0; b < slot->band_count; b++)
        if (cox__is_stand_in(&slot->bands[b], origin) && slot->bands[b].state == COX__BAND_DONE) {
            cox__spare_fetch(session, slot, slot->reports[b].first_row, slot->reports[b].rows);
            session->spare.users--;
        }
    if (slot->bands[origin].state == COX__BAND_RUNNING)
        overtake(session, slot, origin);
}

void cox__spare_band_failed(struct cox_session *session, struct cox__slot *slot, uint32_t band)
{
    const struct cox_band_report report = slot->reports[band];
    const uint32_t origin = slot->bands[band].origin;
    session->spare.users--;
    if (slot->bands[band].check) {
        cox__verify_failed(slot, band);
        return;
    }
    slot->bands[origin].stand_ins--;
    const uint32_t unit = cox__engine_heir(session, report.device);
    if (unit != session->unit_count &&
        cox__spare_add(session, slot, unit, report.first_row, report.rows, origin, false))
        return;
    slot->status = COX_E_DEVICE_LOST;
    for (uint32_t b = 0; b < slot->band_count && !slot->bands[origin].stand_ins; b++) /* the others were in vain */
        if (cox__is_stand_in(&slot->bands[b], origin) && slot->bands[b].state == COX__BAND_DONE)
            forget_stand_in(session, slot, b);
}
