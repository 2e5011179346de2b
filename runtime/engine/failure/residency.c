/* Tracks where the rows of resident bindings are during a frame: in which devices' memory, in the
 * host's memory, or on their way to the host. Plans the copies that follow from it. The engine's
 * steps and queues call it.
 *
 * Owns each frame's `held` and `keeps`, and struct cox__handed_over.
 * SPDX-License-Identifier: Apache-2.0 */
#include "residency.h"
#include "engine/binding.h"
#include "engine/device.h"
#include "engine/frame.h"
#include "engine/order.h"
#include "engine/row_set.h"

#include <stdlib.h>
#include <string.h>

/* ---- where rows are ---- */

/* Places in addition to the devices: the host's memory, and rows that FETCH bands are bringing
 * there. */
enum { HOST = COX_DEVICES_MAX, COMING, NOWHERE };

static uint32_t place_count(const struct cox_session *session)
{
    return session->devices.count + 2;
}

static struct cox__row_set *rows_at(const struct cox_session *session,
                                    const struct cox__frame *frame, uint32_t binding,
                                    uint32_t place)
{
    uint32_t index = place;
    if (place >= HOST)
        index = session->devices.count + (place - HOST);

    return &frame->held[binding * place_count(session) + index];
}

static bool is_resident(const struct cox_session *session, uint32_t binding)
{
    return session->pipeline.resident >> binding & 1;
}

static uint32_t all_rows(const struct cox_session *session, uint32_t binding)
{
    return (uint32_t)(session->pipeline.bytes[binding] /
                      session->pipeline.bindings[binding].pitch_bytes);
}

/* The buffer rows of a resident binding that a band over these rows of the pass touches. */
static struct cox__row_range rows_of(const struct cox_session *session, uint32_t pass,
                                     uint32_t binding, uint32_t first_row, uint32_t rows)
{
    const struct cox__pass *of = &session->pipeline.passes[pass];
    uint32_t first = 0, count = all_rows(session, binding);

    if (cox__by_rows(&of->bindings[binding]))
        cox__pipeline_binding_rows(of, binding, first_row, rows, &first, &count);

    return (struct cox__row_range){first, first + count};
}

/* If the set cannot grow, it lists too few rows, never too many. The frame then ends with
 * COX_E_NOMEM. */
static void add(const struct cox_session *session, struct cox__frame *frame, uint32_t binding,
                uint32_t place, struct cox__row_range range)
{
    if (!cox__row_set_add(rows_at(session, frame, binding, place), range.first, range.end) &&
        frame->status == COX_OK)
        frame->status = COX_E_NOMEM;
}

static void take_away(const struct cox_session *session, struct cox__frame *frame, uint32_t binding,
                      uint32_t place, struct cox__row_range range)
{
    if (!cox__row_set_remove(rows_at(session, frame, binding, place), range.first, range.end) &&
        frame->status == COX_OK)
        frame->status = COX_E_NOMEM;
}

static void clear(const struct cox_session *session, struct cox__frame *frame)
{
    for (uint32_t i = 0; i < session->pipeline.binding_count * place_count(session); i++)
        cox__row_set_clear(&frame->held[i]);
}

bool cox__residency_allocate(const struct cox_session *session, struct cox__frame *frame)
{
    if (!session->pipeline.resident)
        return true;

    frame->held_count = session->pipeline.binding_count * place_count(session);
    frame->held = calloc(frame->held_count, sizeof *frame->held);
    return frame->held != NULL;
}

void cox__residency_free(struct cox__frame *frame)
{
    for (uint32_t i = 0; frame->held && i < frame->held_count; i++)
        cox__row_set_free(&frame->held[i]);
    free(frame->held);
    frame->held = NULL;
}

/* ---- rows that were handed over in earlier frames ---- */

/* A row range is remembered for at least this many frames, and for less than twice as many. */
enum { GENERATION_FRAMES = 16 };

/* Rows are remembered with a margin of 1/64 of the binding on both sides, since splits move. */
enum { MARGIN_SHARE = 64 };

void cox__residency_free_history(struct cox_session *session)
{
    for (uint32_t i = 0; i < 2 * COX_BUFFERS_MAX; i++)
        cox__row_set_free(&session->residency.handed_over.rows[i % 2][i / 2]);
}

/* Count a frame; every GENERATION_FRAMES frames the older generation of rows is forgotten. */
static void grow_old(struct cox__handed_over *history)
{
    if (++history->frames < GENERATION_FRAMES)
        return;

    history->frames = 0;
    history->newest ^= 1;
    for (uint32_t i = 0; i < COX_BUFFERS_MAX; i++)
        cox__row_set_clear(&history->rows[history->newest][i]);
}

/* A device reads these rows, and either did not write them itself or does not keep them. */
static void note_handed_over(struct cox_session *session, uint32_t binding,
                             struct cox__row_range rows)
{
    struct cox__handed_over *history = &session->residency.handed_over;
    const uint32_t all = all_rows(session, binding), margin = all / MARGIN_SHARE;
    if (!session->pipeline.bindings[binding].scratch)
        return;

    uint32_t first = 0, end = all;
    if (rows.first > margin)
        first = rows.first - margin;
    if (all - rows.end > margin)
        end = rows.end + margin;
    cox__row_set_add(&history->rows[history->newest][binding], first, end);
}

/* Copy back those rows written by the job that other devices are likely to read. If they are in too
 * many pieces, copy back the whole band. */
static void add_back(const struct cox_session *session, struct cox__job *job, uint32_t binding)
{
    const struct cox__handed_over *history = &session->residency.handed_over;
    const struct cox__row_range written = rows_of(session, job->pass, binding, job->first_row,
                                                  job->rows);
    const uint32_t before = job->back_count;

    for (uint32_t row = written.first, until = written.end; row < written.end;
         row = until, until = written.end) {
        const bool lately = cox__row_set_has(&history->rows[history->newest][binding], row, until,
                                             &until);
        const bool before_that = cox__row_set_has(&history->rows[history->newest ^ 1][binding], row,
                                                  until, &until);
        if (!lately && !before_that)
            continue;

        /* Extend the last range if this one follows it. */
        struct cox__job_range *last = NULL;
        if (job->back_count > before)
            last = &job->back[job->back_count - 1];
        if (last && last->first + last->count == row) {
            last->count += until - row;
            continue;
        }

        if (job->back_count == COX__JOB_BACK_MAX) {
            job->back_count = before;
            job->out |= UINT32_C(1) << binding;
            return;
        }

        job->back[job->back_count++] = (struct cox__job_range){binding, row, until - row};
    }
}

/* ---- starting a frame ---- */

/* A device on probation repeats rows of a finished frame, so all rows of that frame must be in the
 * host's memory. */
static bool any_on_probation(const struct cox_session *session)
{
    bool any = false;
    for (uint32_t d = 0; d < session->devices.count; d++)
        any |= session->devices.list[d].state == COX_DEVICE_PROBATION;
    return any;
}

static bool any_keeps(const struct cox_session *session)
{
    bool any = false;
    for (uint32_t d = 0; d < session->devices.count; d++)
        any |= session->devices.list[d].resident != 0;
    return any;
}

/* The application's inputs are in the host's memory; the devices have nothing yet. */
static void begin(const struct cox_session *session, struct cox__frame *frame)
{
    clear(session, frame);
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (is_resident(session, i) && session->pipeline.bindings[i].access == COX__READ)
            add(session, frame, i, HOST, (struct cox__row_range){0, all_rows(session, i)});
}

void cox__residency_start(struct cox_session *session, struct cox__frame *frame)
{
    frame->keeps = frame->held && any_keeps(session) && !any_on_probation(session) &&
                   !session->residency.keeps_nothing;
    if (!frame->keeps)
        return;

    begin(session, frame);
    grow_old(&session->residency.handed_over);
}

void cox__residency_start_warmup(const struct cox_session *session, struct cox__frame *frame,
                                 uint32_t device)
{
    frame->keeps = frame->held && session->devices.list[device].resident;
    if (!frame->keeps)
        return;

    clear(session, frame);

    for (uint32_t i = 0; i < session->pipeline.binding_count; i++) {
        bool touched = false;
        for (uint32_t p = 0; p < frame->pass; p++)
            touched |= cox__is_shared(&session->pipeline.passes[p].bindings[i]);

        if (!is_resident(session, i))
            continue;

        const struct cox__row_range all = {0, all_rows(session, i)};
        add(session, frame, i, HOST, all);
        if (touched && session->devices.list[device].resident >> i & 1)
            add(session, frame, i, device, all);
    }
}

/* ---- what a band reads ---- */

/* Rows of a binding that are all in the same places. `on_device` is about the device that the
 * caller asks for. */
struct stretch {
    struct cox__row_range rows;
    bool on_device, on_host, coming;
};

/* The stretch that begins at `row` and ends at `end` at most. With device NOWHERE, only the host's
 * memory counts. */
static struct stretch stretch_at(const struct cox_session *session, const struct cox__frame *frame,
                                 uint32_t binding, uint32_t device, uint32_t row, uint32_t end)
{
    struct stretch at = {.rows = {row, end}};
    if (device != NOWHERE)
        at.on_device = cox__row_set_has(rows_at(session, frame, binding, device), row, at.rows.end,
                                        &at.rows.end);

    at.on_host = cox__row_set_has(rows_at(session, frame, binding, HOST), row, at.rows.end,
                                  &at.rows.end);
    at.coming = cox__row_set_has(rows_at(session, frame, binding, COMING), row, at.rows.end,
                                 &at.rows.end);

    return at;
}

static bool reads(const struct cox_session *session, uint32_t pass, uint32_t binding)
{
    const struct cox__binding *of = &session->pipeline.passes[pass].bindings[binding];
    return is_resident(session, binding) && cox__is_shared(of) && of->access == COX__READ;
}

/* Whether each row that a band reads is on the device or in the host's memory. */
static bool is_there(const struct cox_session *session, const struct cox__frame *frame,
                     uint32_t device, uint32_t first_row, uint32_t rows)
{
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++) {
        if (!reads(session, frame->pass, i))
            continue;

        const struct cox__row_range needed = rows_of(session, frame->pass, i, first_row, rows);

        for (uint32_t row = needed.first; row < needed.end;) {
            const struct stretch at = stretch_at(session, frame, i, device, row, needed.end);
            if (!at.on_device && !at.on_host)
                return false;

            row = at.rows.end;
        }
    }
    return true;
}

bool cox__residency_is_ready(const struct cox_session *session, const struct cox__frame *frame,
                             uint32_t band)
{
    const struct cox_band_report *report = &frame->reports[band];
    return !frame->keeps || frame->bands[band].kind == COX__BAND_FETCH ||
           is_there(session, frame, report->device, report->first_row, report->rows);
}

bool cox__residency_is_on_host(const struct cox_session *session, const struct cox__frame *frame,
                               uint32_t first_row, uint32_t rows)
{
    return !frame->keeps || is_there(session, frame, NOWHERE, first_row, rows);
}

/* ---- fetching ---- */

/* Find a device that has the row. Sets `*until` to where its rows end, `end` at most. Returns
 * NOWHERE if no device has the row. */
static uint32_t find_holder(const struct cox_session *session, const struct cox__frame *frame,
                            uint32_t binding, uint32_t row, uint32_t end, uint32_t *until)
{
    for (uint32_t d = 0; d < session->devices.count; d++)
        if (cox__device_is_active(&session->devices.list[d]) &&
            cox__row_set_has(rows_at(session, frame, binding, d), row, end, until))
            return d;
    return NOWHERE;
}

/* Rows are in too many pieces: from now on no frame keeps rows on devices. The caller restarts this
 * frame. */
static void stop_keeping(struct cox_session *session, struct cox__frame *frame)
{
    if (!session->residency.keeps_nothing)
        cox__log(&session->runtime->log, COX_LOG_WARN,
                 "rows are in too many pieces to stay on their devices from pass to pass: "
                 "all are copied from now on");

    session->residency.keeps_nothing = true;
    frame->keeps = false;
}

/* Add FETCH bands for rows that only devices have. Returns false in two cases: no device has some
 * of the rows any more, or the rows are in too many pieces. FETCH bands may fill the frame's band
 * table to one half; the other half is for a restart that keeps nothing. */
static bool plan_fetches(struct cox_session *session, struct cox__frame *frame, uint32_t binding,
                         struct cox__row_range rows)
{
    while (rows.first < rows.end) {
        struct cox__row_range part = rows;
        const uint32_t holder = find_holder(session, frame, binding, rows.first, rows.end,
                                            &part.end);
        if (holder == NOWHERE)
            return false;

        if (frame->band_count >= frame->band_max / 2 ||
            !cox__frame_add_fetch(session, frame, holder, binding, part.first, part.end)) {
            stop_keeping(session, frame);
            return false;
        }

        add(session, frame, binding, COMING, part);
        rows.first = part.end;
    }
    return true;
}

/* Add FETCH bands for rows that a band on the device reads, if neither the device nor the host has
 * them. Returns false as plan_fetches does. */
static bool plan_fetches_for(struct cox_session *session, struct cox__frame *frame, uint32_t device,
                             uint32_t first_row, uint32_t rows)
{
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++) {
        if (!reads(session, frame->pass, i))
            continue;

        const struct cox__row_range needed = rows_of(session, frame->pass, i, first_row, rows);

        for (uint32_t row = needed.first; row < needed.end;) {
            const struct stretch at = stretch_at(session, frame, i, device, row, needed.end);
            if (!at.on_device && !at.on_host && !at.coming &&
                !plan_fetches(session, frame, i, at.rows))
                return false;

            row = at.rows.end;
        }
    }
    return true;
}

/* Start nothing more of this pass. The frame restarts from its inputs when its running bands have
 * ended. */
static void request_restart(const struct cox_session *session, struct cox__frame *frame)
{
    frame->again = true;
    frame->pool_left = 0;

    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        cox__row_set_clear(rows_at(session, frame, i, COMING));

    for (uint32_t b = 0; b < frame->band_count; b++)
        if (frame->bands[b].state == COX__BAND_PLANNED)
            cox__frame_end_band(frame, b, COX_E_DEVICE_LOST);
}

bool cox__residency_plan(struct cox_session *session, struct cox__frame *frame)
{
    const uint32_t before = frame->band_count;
    if (!frame->keeps || frame->status || frame->again || frame->kind != COX__FRAME_OF_APPLICATION)
        return false;

    for (uint32_t b = frame->first_band; b < before; b++) {
        const struct cox_band_report *report = &frame->reports[b];
        if (frame->bands[b].state != COX__BAND_PLANNED || frame->bands[b].kind == COX__BAND_FETCH ||
            plan_fetches_for(session, frame, report->device, report->first_row, report->rows))
            continue;

        if (frame->keeps)
            cox__log(&session->runtime->log, COX_LOG_WARN,
                     "frame %llu begins anew: rows that a lost device had are gone",
                     (unsigned long long)frame->index);
        request_restart(session, frame);
        return true;
    }

    if (frame->shadow.rows &&
        !plan_fetches_for(session, frame, NOWHERE, frame->shadow.first_row, frame->shadow.rows)) {
        frame->shadow.rows = 0;
        if (!frame->keeps)
            request_restart(session, frame);
        return true;
    }

    return frame->band_count > before;
}

/* ---- jobs ---- */

/* Add the ranges of the binding that the job must copy to the device. False: they are in too many
 * pieces. */
static bool add_ranges(struct cox_session *session, struct cox__frame *frame, uint32_t binding,
                       uint32_t device, struct cox__job *job)
{
    const struct cox__row_range needed = rows_of(session, job->pass, binding, job->first_row,
                                                 job->rows);

    for (uint32_t row = needed.first, until; row < needed.end; row = until) {
        if (cox__row_set_has(rows_at(session, frame, binding, device), row, needed.end, &until))
            continue;

        if (job->range_count == COX__JOB_RANGES_MAX)
            return false;
        job->ranges[job->range_count++] = (struct cox__job_range){binding, row, until - row};
        note_handed_over(session, binding, (struct cox__row_range){row, until});
    }

    /* Work enqueued on the device later runs after the copy, so the rows count as present. */
    add(session, frame, binding, device, needed);
    return true;
}

/* Fill in what the job does with a resident binding. Returns false as add_ranges does. */
static bool fill_binding(struct cox_session *session, struct cox__frame *frame,
                         struct cox__job *job, uint32_t binding, uint32_t device)
{
    const bool keeps = job->resident >> binding & 1;
    const bool scratch = session->pipeline.bindings[binding].scratch;

    if (reads(session, job->pass, binding)) {
        if (keeps)
            return add_ranges(session, frame, binding, device, job);
        note_handed_over(session, binding,
                         rows_of(session, job->pass, binding, job->first_row, job->rows));
    } else if (keeps && !scratch) {
        job->out |= UINT32_C(1) << binding;
    } else if (keeps && session->pipeline.passes[job->pass].written >> binding & 1) {
        add_back(session, job, binding);
    }

    return true;
}

bool cox__residency_fill(struct cox_session *session, struct cox__frame *frame,
                         struct cox__job *job)
{
    const struct cox__band *band = &frame->bands[job->band];
    const uint32_t device = frame->reports[job->band].device;

    job->set = frame->set;
    job->fetch = band->kind == COX__BAND_FETCH;
    job->resident = 0;
    if (frame->keeps)
        job->resident = session->devices.list[device].resident;
    job->out = 0;
    job->range_count = job->back_count = 0;

    if (job->fetch)
        job->ranges[job->range_count++] = (struct cox__job_range){band->origin, band->fetch_first,
                                                                  band->fetch_count};

    for (uint32_t i = 0; frame->keeps && !job->fetch && i < session->pipeline.binding_count; i++) {
        if (!is_resident(session, i) || fill_binding(session, frame, job, i, device))
            continue;

        stop_keeping(session, frame);
        request_restart(session, frame);
        return false;
    }

    return true;
}

void cox__residency_note_done(struct cox_session *session, struct cox__frame *frame,
                              const struct cox__job *job, uint32_t device)
{
    const uint32_t written = session->pipeline.passes[job->pass].written;
    if (!frame->keeps)
        return;

    if (job->fetch) {
        const struct cox__job_range *range = &job->ranges[0];
        const struct cox__row_range rows = {range->first, range->first + range->count};
        take_away(session, frame, range->binding, COMING, rows);
        add(session, frame, range->binding, HOST, rows);
        return;
    }

    for (uint32_t i = 0; i < session->pipeline.binding_count; i++) {
        if (!is_resident(session, i) || !(written >> i & 1))
            continue;

        const struct cox__row_range rows = rows_of(session, job->pass, i, job->first_row,
                                                   job->rows);

        for (uint32_t d = 0; d < session->devices.count; d++)
            take_away(session, frame, i, d, rows);
        take_away(session, frame, i, HOST, rows);

        if (job->resident >> i & 1)
            add(session, frame, i, device, rows);
        if (!(job->resident & ~job->out & UINT32_C(1) << i))
            add(session, frame, i, HOST, rows);
    }

    for (uint32_t b = 0; b < job->back_count; b++)
        add(session, frame, job->back[b].binding, HOST,
            (struct cox__row_range){job->back[b].first, job->back[b].first + job->back[b].count});
}

void cox__residency_note_failed(struct cox_session *session, struct cox__frame *frame,
                                uint32_t band)
{
    const struct cox__band *of = &frame->bands[band];

    if (frame->keeps)
        take_away(session, frame, of->origin, COMING,
                  (struct cox__row_range){of->fetch_first, of->fetch_first + of->fetch_count});
}

static void forget(const struct cox_session *session, const struct cox__frame *frame,
                   uint32_t device)
{
    for (uint32_t i = 0; frame->started && frame->keeps && i < session->pipeline.binding_count; i++)
        cox__row_set_clear(rows_at(session, frame, i, device));
}

void cox__residency_forget(struct cox_session *session, uint32_t device)
{
    for (uint32_t i = 0; i < session->order.count; i++)
        forget(session, cox__order_at(&session->order, i), device);
}
