/* Tracks where rows are during a frame: in which devices' memory, in the host's memory, or on their
 * way to the host. It tracks resident bindings, and buffers that lie on a device. Plans the copies
 * that follow from it. The engine's steps and queues call it.
 *
 * Owns struct cox__held of each frame, and struct cox__residency.
 * SPDX-License-Identifier: Apache-2.0 */
#include "residency.h"
#include "directory.h"
#include "base/bounds.h"
#include "engine/binding.h"
#include "engine/device.h"
#include "engine/frame.h"
#include "engine/order.h"
#include "engine/row_set.h"

#include <stdlib.h>
#include <string.h>

/* ---- where rows are ---- */

enum { HOST = COX__PLACE_HOST, COMING = COX__PLACE_COMING, NOWHERE = COX__PLACE_NONE };

static uint32_t place_count(const struct cox__held *held)
{
    return held->device_count + 2;
}

static struct cox__row_set *rows_at(const struct cox__frame *frame, uint32_t binding,
                                    uint32_t place)
{
    const struct cox__held *held = &frame->held;
    const uint32_t index = cox__place_index(place, held->device_count);
    if (held->kept[binding])
        return &held->kept[binding]->rows[index];

    return &held->rows[binding * place_count(held) + index];
}

static bool is_resident(const struct cox__pipeline *pipeline, uint32_t binding)
{
    return pipeline->resident >> binding & 1;
}

/* Whether the frame's buffer lies on a device. */
static bool is_homed(const struct cox__frame *frame, uint32_t binding)
{
    return frame->held.homed >> binding & 1;
}

static bool is_tracked(const struct cox__frame *frame, uint32_t binding)
{
    return is_resident(frame->pipeline, binding) || is_homed(frame, binding);
}

static bool stays(const struct cox__pipeline *pipeline, uint32_t binding)
{
    return pipeline->stays >> binding & 1;
}

/* The buffer rows of a resident binding that a band over these rows of the pass reads. */
static struct cox__row_range read_rows_of(const struct cox__pipeline *pipeline, uint32_t pass,
                                          uint32_t binding, uint32_t first_row, uint32_t rows)
{
    const struct cox__pass *of = &pipeline->passes[pass];
    uint32_t first = 0, count = cox__kept_rows(pipeline, binding);

    if (cox__by_rows(&of->bindings[binding]))
        cox__pipeline_read_rows(of, binding, first_row, rows, &first, &count);

    return (struct cox__row_range){first, first + count};
}

/* The buffer rows of a resident binding that a band writes, if it writes any. */
static struct cox__row_range rows_of(const struct cox__pipeline *pipeline, uint32_t pass,
                                     uint32_t binding, uint32_t first_row, uint32_t rows)
{
    const struct cox__pass *of = &pipeline->passes[pass];
    uint32_t first = 0, count = cox__kept_rows(pipeline, binding);

    if (cox__by_rows(&of->bindings[binding]))
        cox__pipeline_binding_rows(of, binding, first_row, rows, &first, &count);

    return (struct cox__row_range){first, first + count};
}

/* If the set cannot grow, it lists too few rows, never too many. The frame then ends with
 * COX_E_NOMEM. */
static void add(struct cox__frame *frame, uint32_t binding, uint32_t place,
                struct cox__row_range range)
{
    if (!cox__row_set_add(rows_at(frame, binding, place), range.first, range.end) &&
        frame->status == COX_OK)
        frame->status = COX_E_NOMEM;
}

static void take_away(struct cox__frame *frame, uint32_t binding, uint32_t place,
                      struct cox__row_range range)
{
    if (!cox__row_set_remove(rows_at(frame, binding, place), range.first, range.end) &&
        frame->status == COX_OK)
        frame->status = COX_E_NOMEM;
}

static void clear(struct cox__frame *frame)
{
    for (uint32_t i = 0; i < frame->held.count; i++)
        cox__row_set_clear(&frame->held.rows[i]);
}

bool cox__residency_allocate(struct cox__frame *frame, uint32_t device_count)
{
    struct cox__held *held = &frame->held;

    held->device_count = device_count;
    held->count = frame->pipeline->binding_count * place_count(held);
    held->rows = calloc(held->count, sizeof *held->rows);
    return held->rows != NULL;
}

void cox__residency_free(struct cox__frame *frame)
{
    struct cox__held *held = &frame->held;
    for (uint32_t i = 0; held->rows && i < held->count; i++)
        cox__row_set_free(&held->rows[i]);
    free(held->rows);
    held->rows = NULL;
}

/* ---- rows that were handed over in earlier frames ---- */

/* A row range is remembered for at least this many frames, and for less than twice as many. */
enum { GENERATION_FRAMES = 16 };

/* If passes have different splits, rows of scratch are remembered with a margin of 1/64 of the
 * binding on both sides, since splits move. Buffers that stay have no margin: an iteration's frames
 * are short, and its split is steady. */
enum { MARGIN_SHARE = 64 };

void cox__residency_free_history(struct cox__handed_over *history)
{
    for (uint32_t i = 0; i < 2 * COX_BUFFERS_MAX; i++)
        cox__row_set_free(&history->rows[i % 2][i / 2]);
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

/* The binding under which rows are remembered. Buffers that stay change places from frame to frame:
 * what one frame reads as one binding, the frame before has written as another. */
static uint32_t history_of(const struct cox__pipeline *pipeline, uint32_t binding)
{
    uint32_t of = 0;
    if (!stays(pipeline, binding))
        return binding;

    while (!stays(pipeline, of) || pipeline->bytes[of] != pipeline->bytes[binding] ||
           pipeline->bindings[of].pitch_bytes != pipeline->bindings[binding].pitch_bytes)
        of++;
    return of;
}

/* A device reads these rows, and either did not write them itself or does not keep them. */
static void note_handed_over(struct cox__residency *residency, const struct cox__pipeline *pipeline,
                             uint32_t binding, struct cox__row_range rows)
{
    struct cox__handed_over *history = &residency->handed_over;
    const uint32_t all = cox__kept_rows(pipeline, binding);
    uint32_t margin = 0, first = 0, end = all;

    if (!residency->one_split && !stays(pipeline, binding))
        margin = all / MARGIN_SHARE;
    if (rows.first > margin)
        first = rows.first - margin;
    if (all - rows.end > margin)
        end = rows.end + margin;
    cox__row_set_add(&history->rows[history->newest][history_of(pipeline, binding)], first, end);
}

/* The first of the rows that another device has: [result, *until). `end` if no row is. */
static uint32_t next_of_others(const struct cox__frame *frame, uint32_t binding, uint32_t device,
                               uint32_t row, uint32_t end, uint32_t *until)
{
    while (row < end) {
        uint32_t next = end;
        for (uint32_t d = 0; d < frame->held.device_count; d++) {
            uint32_t change;
            if (d == device)
                continue;
            if (cox__row_set_has(rows_at(frame, binding, d), row, end, &change)) {
                *until = change;
                return row;
            }
            next = cox__min_u32(next, change);
        }
        row = next;
    }
    return end;
}

/* Note those of the rows that another device may have handed over: all rows of scratch, and of a
 * buffer that stays those that another device has. */
static void note_some(struct cox__residency *residency, const struct cox__frame *frame,
                      uint32_t binding, uint32_t device, struct cox__row_range rows)
{
    const struct cox__pipeline *pipeline = frame->pipeline;
    if (pipeline->bindings[binding].scratch && rows.first < rows.end)
        note_handed_over(residency, pipeline, binding, rows);
    if (!frame->held.kept[binding])
        return;

    for (uint32_t row = rows.first, until = 0; row < rows.end; row = until) {
        row = next_of_others(frame, binding, device, row, rows.end, &until);
        if (row >= rows.end)
            break;
        note_handed_over(residency, pipeline, binding, (struct cox__row_range){row, until});
    }
}

/* The band's rows of a binding without a halo. None if each band reads all rows. */
static struct cox__row_range own_rows_of(const struct cox__pass *pass, uint32_t binding,
                                         const struct cox__job *job)
{
    const struct cox__binding *of = &pass->bindings[binding];
    const uint32_t above = of->border_above;
    if (!cox__by_rows(of) || of->reads_all)
        return (struct cox__row_range){0, 0};

    return (struct cox__row_range){job->first_row / of->row_divisor + above,
                                   cox__buffer_rows(job->first_row + job->rows, of->row_divisor) +
                                       above};
}

/* The job's device reads these rows from the host's memory. Note those that devices will hand over
 * in later frames, too. If all passes use one split, a band's own rows are read only once, after
 * the split has moved. Runs of the warm-up do not show how frames are split. */
static void note_read(struct cox__residency *residency, const struct cox__frame *frame,
                      const struct cox__job *job, uint32_t binding, struct cox__row_range rows)
{
    const uint32_t device = frame->reports[job->band].device;
    struct cox__row_range own = {0, 0};
    if (frame->kind == COX__FRAME_WARMUP)
        return;

    if (residency->one_split)
        own = own_rows_of(&frame->pipeline->passes[job->pass], binding, job);
    if (own.first == own.end)
        own.first = own.end = rows.end;

    const struct cox__row_range before = {rows.first, cox__min_u32(rows.end, own.first)};
    const struct cox__row_range behind = {cox__max_u32(rows.first, own.end), rows.end};
    note_some(residency, frame, binding, device, before);
    note_some(residency, frame, binding, device, behind);
}

/* Whether a pass reads the binding's memory. */
static bool reads(const struct cox__pipeline *pipeline, uint32_t pass, uint32_t binding)
{
    const struct cox__binding *of = &pipeline->passes[pass].bindings[binding];
    return cox__is_shared(of) && (of->access == COX__READ || cox__keeps_values(of));
}

/* Whether a pass of the frame reads rows that are tracked. */
static bool reads_tracked(const struct cox__frame *frame, uint32_t pass, uint32_t binding)
{
    return is_tracked(frame, binding) && reads(frame->pipeline, pass, binding);
}

/* If all passes use one split, the bands above and below read the job's outermost rows as halo. */
static void note_borders(struct cox__residency *residency, const struct cox__pipeline *pipeline,
                         const struct cox__job *job, uint32_t binding)
{
    const uint32_t of = history_of(pipeline, binding);
    const struct cox__row_range written = rows_of(pipeline, job->pass, binding, job->first_row,
                                                  job->rows);
    const bool is_last = job->first_row + job->rows == pipeline->passes[job->pass].rows;
    uint32_t above = 0, below = 0;

    for (uint32_t p = 0; p < pipeline->pass_count; p++)
        for (uint32_t i = 0; i < pipeline->binding_count; i++) {
            const struct cox__binding *reader = &pipeline->passes[p].bindings[i];
            if (!is_resident(pipeline, i) || !reads(pipeline, p, i) ||
                reader->row_access != COX__HALO || history_of(pipeline, i) != of)
                continue;
            above = cox__max_u32(above, reader->halo_above);
            below = cox__max_u32(below, reader->halo_below);
        }

    const uint32_t count = written.end - written.first;
    above = cox__min_u32(above, count);
    below = cox__min_u32(below, count);
    if (job->first_row && below)
        note_handed_over(residency, pipeline, binding,
                         (struct cox__row_range){written.first, written.first + below});
    if (!is_last && above)
        note_handed_over(residency, pipeline, binding,
                         (struct cox__row_range){written.end - above, written.end});
}

/* Copy back those rows written by the job that other devices are likely to read. If they are in too
 * many pieces, copy back the rows between the last ones as well. */
static void add_back(const struct cox__handed_over *history, const struct cox__pipeline *pipeline,
                     struct cox__job *job, uint32_t binding)
{
    const struct cox__row_range written = rows_of(pipeline, job->pass, binding, job->first_row,
                                                  job->rows);
    const uint32_t before = job->back_count, of = history_of(pipeline, binding);

    for (uint32_t row = written.first, until = written.end; row < written.end;
         row = until, until = written.end) {
        const bool lately = cox__row_set_has(&history->rows[history->newest][of], row, until,
                                             &until);
        const bool before_that = cox__row_set_has(&history->rows[history->newest ^ 1][of], row,
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

        if (job->back_count == COX__JOB_BACK_MAX && last) {
            last->count = until - last->first;
            continue;
        }
        if (job->back_count == COX__JOB_BACK_MAX) {
            job->out |= UINT32_C(1) << binding;
            return;
        }

        job->back[job->back_count++] = (struct cox__job_range){binding, row, until - row};
    }
}

/* ---- starting a frame ---- */

/* A device on probation repeats rows of a finished frame, so all rows of that frame must be in the
 * host's memory. */
static bool any_on_probation(const struct cox__devices *devices)
{
    bool any = false;
    for (uint32_t d = 0; d < devices->count; d++)
        any |= devices->list[d].state == COX_DEVICE_PROBATION;
    return any;
}

static bool any_keeps(const struct cox__devices *devices)
{
    bool any = false;
    for (uint32_t d = 0; d < devices->count; d++)
        any |= devices->list[d].resident != 0;
    return any;
}

/* The application's inputs are in the host's memory, or on the device on which their buffer lies.
 * Other devices have nothing yet. */
static void begin(struct cox__frame *frame)
{
    clear(frame);
    for (uint32_t i = 0; i < frame->pipeline->binding_count; i++) {
        const struct cox__row_range all = {0, cox__kept_rows(frame->pipeline, i)};
        const enum cox__access access = frame->pipeline->bindings[i].access;

        if (is_homed(frame, i))
            add(frame, i, frame->held.home[i], all);
        else if (is_resident(frame->pipeline, i) && !is_homed(frame, i) &&
                 !stays(frame->pipeline, i) && access == COX__READ)
            add(frame, i, HOST, all);
    }
}

void cox__residency_start(struct cox_session *session, struct cox__frame *frame)
{
    const bool on_probation = any_on_probation(&session->devices);
    const bool through = on_probation || session->residency.keeps_nothing;
    const bool keeps = any_keeps(&session->devices) && !through;

    /* Rows of earlier frames may be on devices, whatever becomes of this one's. */
    frame->held.write_through = through || session->settings.verify > 0;
    frame->held.read_through = on_probation || session->settings.verify > 0;
    frame->held.keeps = frame->held.rows && (keeps || frame->pipeline->stays || frame->held.homed);
    if (!frame->held.keeps)
        return;

    begin(frame);
    grow_old(&session->residency.handed_over);
}

bool cox__residency_start_warmup(const struct cox__devices *devices, struct cox__frame *frame,
                                 uint32_t holders)
{
    frame->held.keeps = frame->held.rows && any_keeps(devices);
    if (!frame->held.keeps)
        return true;

    clear(frame);

    for (uint32_t i = 0; i < frame->pipeline->binding_count; i++) {
        bool touched = false;
        for (uint32_t p = 0; p < frame->pass; p++)
            touched |= cox__is_shared(&frame->pipeline->passes[p].bindings[i]);

        if (!is_resident(frame->pipeline, i))
            continue;

        const struct cox__row_range all = {0, cox__kept_rows(frame->pipeline, i)};
        add(frame, i, HOST, all);
        for (uint32_t d = 0; touched && d < devices->count; d++)
            if (holders >> d & devices->list[d].resident >> i & 1)
                add(frame, i, d, all);
    }
    if (frame->status == COX_OK)
        return true;

    /* No set lists rows that the bands would wait for. */
    frame->held.keeps = false;
    frame->status = COX_OK;
    return false;
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
static struct stretch stretch_at(const struct cox__frame *frame, uint32_t binding, uint32_t device,
                                 uint32_t row, uint32_t end)
{
    struct stretch at = {.rows = {row, end}};
    if (device != NOWHERE)
        at.on_device = cox__row_set_has(rows_at(frame, binding, device), row, at.rows.end,
                                        &at.rows.end);

    at.on_host = cox__row_set_has(rows_at(frame, binding, HOST), row, at.rows.end, &at.rows.end);
    at.coming = cox__row_set_has(rows_at(frame, binding, COMING), row, at.rows.end, &at.rows.end);

    return at;
}

/* The place besides the host's memory in which a band on the device finds rows of a tracked
 * binding. NOWHERE: only in the host's memory. */
static uint32_t reading_place(const struct cox__frame *frame, uint32_t binding, uint32_t device)
{
    if (is_homed(frame, binding) && frame->held.read_through)
        return NOWHERE;

    return device;
}

/* Whether each row that a band reads is on the device or in the host's memory. */
static bool is_there(const struct cox__frame *frame, uint32_t device, uint32_t first_row,
                     uint32_t rows)
{
    for (uint32_t i = 0; i < frame->pipeline->binding_count; i++) {
        if (!reads_tracked(frame, frame->pass, i))
            continue;

        const uint32_t place = reading_place(frame, i, device);
        const struct cox__row_range needed = read_rows_of(frame->pipeline, frame->pass, i,
                                                          first_row, rows);

        for (uint32_t row = needed.first; row < needed.end;) {
            const struct stretch at = stretch_at(frame, i, place, row, needed.end);
            if (!at.on_device && !at.on_host)
                return false;

            row = at.rows.end;
        }
    }
    return true;
}

bool cox__residency_is_ready(const struct cox__frame *frame, uint32_t band)
{
    const struct cox_band_report *report = &frame->reports[band];
    const enum cox__band_kind kind = frame->bands[band].kind;
    if (frame->held.to_acquire && kind != COX__BAND_RELEASE) /* a failed frame may release some */
        return kind == COX__BAND_ACQUIRE;

    return !frame->held.keeps || cox__band_is_transfer(&frame->bands[band]) ||
           is_there(frame, report->device, report->first_row, report->rows);
}

bool cox__residency_is_on_host(const struct cox__frame *frame, uint32_t first_row, uint32_t rows)
{
    return !frame->held.keeps || is_there(frame, NOWHERE, first_row, rows);
}

/* ---- fetching ---- */

/* Find a device that has the row. Sets `*until` to where its rows end, `end` at most. Returns
 * NOWHERE if no device has the row. */
static uint32_t find_holder(const struct cox__devices *devices, const struct cox__frame *frame,
                            uint32_t binding, uint32_t row, uint32_t end, uint32_t *until)
{
    for (uint32_t d = 0; d < devices->count; d++)
        if (cox__device_is_active(&devices->list[d]) &&
            cox__row_set_has(rows_at(frame, binding, d), row, end, until))
            return d;
    return NOWHERE;
}

/* Rows are in too many pieces: from now on no frame keeps rows on devices. The caller restarts this
 * frame, unless it has failed. Without a restart, rows of earlier frames stay where they are. */
static void stop_keeping(struct cox_session *session, struct cox__frame *frame)
{
    if (!session->residency.keeps_nothing)
        cox__log(
            &session->runtime->log, COX_LOG_WARN,
            "rows are in too many pieces to stay on their devices between passes: all rows are "
            "copied from now on");

    session->residency.keeps_nothing = true;
    if (frame->pipeline->stays || frame->held.homed)
        frame->status = COX_E_NOMEM;
    else
        frame->held.keeps = false;
}

/* Add FETCH bands for rows that only devices have. Returns false in two cases: no device has some
 * of the rows any more, or the rows are in too many pieces. FETCH bands may fill the frame's band
 * table to one half; the other half is for a restart that keeps nothing. */
static bool plan_fetches(struct cox_session *session, struct cox__frame *frame, uint32_t binding,
                         struct cox__row_range rows)
{
    while (rows.first < rows.end) {
        struct cox__row_range part = rows;
        const uint32_t holder = find_holder(&session->devices, frame, binding, rows.first, rows.end,
                                            &part.end);
        if (holder == NOWHERE && (frame->held.kept[binding] || is_homed(frame, binding))) {
            cox__log(&session->runtime->log, COX_LOG_ERROR,
                     "frame %llu: a lost device had the only copy of rows of buffer %u (%s)",
                     (unsigned long long)frame->index, binding,
                     frame->pipeline->bindings[binding].name);
            frame->status = COX_E_DEVICE_LOST;
        }
        if (holder == NOWHERE)
            return false;

        if (frame->band_count >= frame->band_max / 2 ||
            !cox__frame_add_transfer(frame, COX__BAND_FETCH, holder, binding, part)) {
            stop_keeping(session, frame);
            return false;
        }

        add(frame, binding, COMING, part);
        rows.first = part.end;
    }
    return true;
}

/* Add FETCH bands for those of the rows that neither the device nor the host has, and that are not
 * on their way. False: as plan_fetches. */
static bool plan_missing(struct cox_session *session, struct cox__frame *frame, uint32_t binding,
                         uint32_t device, struct cox__row_range rows)
{
    for (uint32_t row = rows.first; row < rows.end;) {
        const struct stretch at = stretch_at(frame, binding, device, row, rows.end);
        if (!at.on_device && !at.on_host && !at.coming &&
            !plan_fetches(session, frame, binding, at.rows))
            return false;

        row = at.rows.end;
    }
    return true;
}

/* Add FETCH bands for rows that a band on the device reads, unless the device or the host has
 * them or a fetch is under way. False: no device has the rows any more, or they are in too many
 * pieces. */
static bool plan_fetches_for(struct cox_session *session, struct cox__frame *frame, uint32_t device,
                             uint32_t first_row, uint32_t rows)
{
    for (uint32_t i = 0; i < frame->pipeline->binding_count; i++) {
        if (!reads_tracked(frame, frame->pass, i))
            continue;

        if (!plan_missing(session, frame, i, reading_place(frame, i, device),
                          read_rows_of(frame->pipeline, frame->pass, i, first_row, rows)))
            return false;
    }
    return true;
}

/* Start nothing more of this pass. The frame restarts from its inputs when its running bands have
 * ended. Its fetches are among them, so by then none of their rows is COMING. */
static void request_restart(struct cox__frame *frame)
{
    frame->again = true;
    frame->pool.left = 0;

    for (uint32_t b = 0; b < frame->band_count; b++)
        if (frame->bands[b].state == COX__BAND_PLANNED) {
            cox__residency_note_failed(frame, b);
            cox__frame_end_band(frame, b, COX_E_DEVICE_LOST);
        }
}

/* Bring all rows of the buffers of a frame that only fetches to the host's memory. */
static bool plan_fetch_frame(struct cox_session *session, struct cox__frame *frame)
{
    const uint32_t before = frame->band_count;
    bool planned = true;

    for (uint32_t i = 0; i < frame->pipeline->binding_count && planned; i++) {
        const struct cox__kept *kept = frame->held.kept[i];
        if (kept)
            planned = plan_missing(session, frame, i, NOWHERE,
                                   (struct cox__row_range){0, kept->all_rows});
    }

    return frame->band_count > before || !planned;
}

bool cox__residency_plan(struct cox_session *session, struct cox__frame *frame)
{
    const uint32_t before = frame->band_count;
    if (!frame->held.keeps || frame->status || frame->again ||
        frame->kind != COX__FRAME_OF_APPLICATION)
        return false;
    if (frame->fetch)
        return plan_fetch_frame(session, frame);

    for (uint32_t b = frame->first_band; b < before; b++) {
        const struct cox_band_report *report = &frame->reports[b];
        if (frame->bands[b].state != COX__BAND_PLANNED || cox__band_is_transfer(&frame->bands[b]) ||
            plan_fetches_for(session, frame, report->device, report->first_row, report->rows))
            continue;

        if (frame->status)
            return true;
        if (frame->pipeline->overwrites) {
            cox__log(&session->runtime->log, COX_LOG_ERROR,
                     "frame %llu: a lost device had the only copy of some of its rows",
                     (unsigned long long)frame->index);
            frame->status = COX_E_DEVICE_LOST;
            return true;
        }
        if (frame->held.keeps)
            cox__log(&session->runtime->log, COX_LOG_WARN,
                     "frame %llu restarts: a lost device held some of its rows",
                     (unsigned long long)frame->index);
        request_restart(frame);
        return true;
    }

    if (frame->shadow.rows &&
        !plan_fetches_for(session, frame, NOWHERE, frame->shadow.first_row, frame->shadow.rows)) {
        frame->shadow.rows = 0;
        if (!frame->held.keeps && !frame->status)
            request_restart(frame);
        return true;
    }

    return frame->band_count > before;
}

/* ---- jobs ---- */

/* Add the ranges of the binding that the job must copy to the device. False: they are in too many
 * pieces. */
static bool add_ranges(struct cox__residency *residency, struct cox__frame *frame, uint32_t binding,
                       uint32_t device, struct cox__job *job)
{
    const struct cox__row_range needed = read_rows_of(frame->pipeline, job->pass, binding,
                                                      job->first_row, job->rows);

    for (uint32_t row = needed.first, until; row < needed.end; row = until) {
        if (cox__row_set_has(rows_at(frame, binding, device), row, needed.end, &until))
            continue;

        if (job->range_count == COX__JOB_RANGES_MAX)
            return false;
        job->ranges[job->range_count++] = (struct cox__job_range){binding, row, until - row};
        note_read(residency, frame, job, binding, (struct cox__row_range){row, until});
    }

    /* Work enqueued on the device later runs after the copy, so the rows count as present. */
    add(frame, binding, device, needed);
    return true;
}

/* Fill in what the job does with a resident binding. Returns false as add_ranges does. */
static bool fill_binding(struct cox__residency *residency, struct cox__frame *frame,
                         struct cox__job *job, uint32_t binding, uint32_t device)
{
    const bool keeps = job->resident >> binding & 1;
    const bool stays_there = frame->held.kept[binding] ||
                             (frame->kind == COX__FRAME_WARMUP && stays(frame->pipeline, binding));
    const bool homed = job->homed >> binding & 1;
    const bool leaves = frame->held.write_through ||
                        !(frame->pipeline->bindings[binding].scratch || stays_there || homed);

    if (reads_tracked(frame, job->pass, binding)) {
        if (!keeps)
            note_read(residency, frame, job, binding,
                      read_rows_of(frame->pipeline, job->pass, binding, job->first_row, job->rows));
        else if (!add_ranges(residency, frame, binding, device, job))
            return false;
    }

    if (!keeps || !(frame->pipeline->passes[job->pass].written >> binding & 1))
        return true;

    const struct cox__row_range written = rows_of(frame->pipeline, job->pass, binding,
                                                  job->first_row, job->rows);
    uint32_t until;
    const bool has_all = frame->held.kept[binding] &&
                         cox__row_set_has(rows_at(frame, binding, device), written.first,
                                          written.end, &until) &&
                         until == written.end;
    if (has_all || homed) /* a home holds nothing but what the application's buffer held */
        job->own_rows |= UINT32_C(1) << binding;

    if (residency->one_split && frame->kind != COX__FRAME_WARMUP && !homed)
        note_borders(residency, frame->pipeline, job, binding);
    if (leaves)
        job->out |= UINT32_C(1) << binding;
    else if (!homed)
        add_back(&residency->handed_over, frame->pipeline, job, binding);

    return true;
}

/* Which memory of the devices holds the buffers that stay. A run of the warm-up, which has no
 * entries, takes one after the other. */
static void number_kept(const struct cox_session *session, const struct cox__frame *frame,
                        struct cox__job *job)
{
    unsigned char next = 0;
    for (uint32_t i = 0; i < frame->pipeline->binding_count; i++) {
        if (!stays(frame->pipeline, i))
            continue;

        job->kept[i] = next++;
        if (frame->held.kept[i])
            job->kept[i] = cox__directory_number(session, frame->held.kept[i]);
    }
}

static enum cox__job_kind kind_of(const struct cox__band *band)
{
    switch (band->kind) {
    case COX__BAND_FETCH:
        return COX__JOB_FETCH;
    case COX__BAND_PUSH:
        return COX__JOB_PUSH;
    case COX__BAND_ACQUIRE:
        return COX__JOB_ACQUIRE;
    case COX__BAND_RELEASE:
        return COX__JOB_RELEASE;
    default:
        return COX__JOB_BAND;
    }
}

/* The bindings of which the job uses device memory of a whole frame. A check works on the spare
 * buffers, which lie on no device. */
static void fill_places(const struct cox_session *session, const struct cox__frame *frame,
                        const struct cox__band *band, uint32_t device, struct cox__job *job)
{
    job->resident = job->homed = 0;
    if (frame->held.keeps)
        job->resident = session->devices.list[device].resident & ~frame->held.homed;
    if (session->residency.keeps_nothing)
        job->resident &= frame->pipeline->stays;

    for (uint32_t i = 0; i < frame->pipeline->binding_count; i++)
        if (is_homed(frame, i) && frame->held.home[i] == device && band->kind != COX__BAND_CHECK)
            job->homed |= UINT32_C(1) << i;
    job->resident |= job->homed;
}

bool cox__residency_fill(struct cox_session *session, struct cox__frame *frame,
                         struct cox__job *job)
{
    const struct cox__band *band = &frame->bands[job->band];
    const uint32_t device = frame->reports[job->band].device;
    const bool transfer = cox__band_is_transfer(band);

    job->set = frame->set;
    job->kind = kind_of(band);
    fill_places(session, frame, band, device, job);
    job->out = job->own_rows = 0;
    job->range_count = job->back_count = 0;
    if (frame->pipeline->stays)
        number_kept(session, frame, job);

    if (transfer)
        job->ranges[job->range_count++] = (struct cox__job_range){band->origin, band->moved_first,
                                                                  band->moved_count};

    for (uint32_t i = 0; frame->held.keeps && !transfer && i < frame->pipeline->binding_count;
         i++) {
        if (!is_tracked(frame, i) || fill_binding(&session->residency, frame, job, i, device))
            continue;

        stop_keeping(session, frame);
        if (!frame->status)
            request_restart(frame);
        return false;
    }

    return true;
}

/* A copy from a device to the host through PCIe 4, in ns per byte; the copy to the other device
 * takes as long. */
static const double BYTE_NS = 0.05;

enum {
    FETCH_BYTES_MIN = 1 << 18, /* a smaller fetch says nothing about the rate */
    FETCHES = 4,               /* the rate is a mean over about this many */
};

double cox__residency_byte_ns(const struct cox__residency *residency)
{
    if (residency->byte_ns > 0)
        return 2 * residency->byte_ns;
    return 2 * BYTE_NS;
}

void cox__residency_learn_fetch(struct cox__residency *residency,
                                const struct cox__pipeline *pipeline, const struct cox__job *job,
                                uint64_t ns)
{
    const struct cox__job_range *range = &job->ranges[0];
    const double bytes = (double)range->count * pipeline->bindings[range->binding].pitch_bytes;
    if (bytes < FETCH_BYTES_MIN)
        return;

    const double byte_ns = (double)ns / bytes;
    if (residency->byte_ns > 0)
        residency->byte_ns += (byte_ns - residency->byte_ns) / FETCHES;
    else
        residency->byte_ns = byte_ns;
}

/* Rows have arrived in the host's memory. Those that a band has written since the fetch began are
 * not COMING any more, and count as missing. */
static void note_fetched(struct cox__frame *frame, const struct cox__job_range *range)
{
    const uint32_t end = range->first + range->count;

    for (uint32_t row = range->first, until; row < end; row = until)
        if (cox__row_set_has(rows_at(frame, range->binding, COMING), row, end, &until)) {
            const struct cox__row_range rows = {row, until};
            take_away(frame, range->binding, COMING, rows);
            add(frame, range->binding, HOST, rows);
        }
}

static void note_transferred(struct cox__frame *frame, const struct cox__job *job, uint32_t device)
{
    const struct cox__job_range *range = &job->ranges[0];
    const uint32_t bit = UINT32_C(1) << range->binding;

    switch (job->kind) {
    case COX__JOB_FETCH:
        note_fetched(frame, range);
        break;
    case COX__JOB_PUSH:
        add(frame, range->binding, device,
            (struct cox__row_range){range->first, range->first + range->count});
        break;
    case COX__JOB_ACQUIRE:
        frame->held.to_acquire &= ~bit;
        frame->held.to_release |= bit;
        break;
    default:
        frame->held.to_release &= ~bit;
        break;
    }
}

void cox__residency_note_done(struct cox__frame *frame, const struct cox__job *job, uint32_t device)
{
    const uint32_t written = frame->pipeline->passes[job->pass].written;
    if (!frame->held.keeps)
        return;

    if (job->kind != COX__JOB_BAND) {
        note_transferred(frame, job, device);
        return;
    }
    if (frame->bands[job->band].kind == COX__BAND_CHECK) /* on the spare buffers */
        return;

    for (uint32_t i = 0; i < frame->pipeline->binding_count; i++) {
        if (!is_tracked(frame, i) || !(written >> i & 1))
            continue;

        const struct cox__row_range rows = rows_of(frame->pipeline, job->pass, i, job->first_row,
                                                   job->rows);

        for (uint32_t d = 0; d < frame->held.device_count; d++)
            take_away(frame, i, d, rows);
        take_away(frame, i, HOST, rows);
        take_away(frame, i, COMING, rows);

        if (job->resident >> i & 1)
            add(frame, i, device, rows);
        if (!(job->resident & ~job->out & UINT32_C(1) << i))
            add(frame, i, HOST, rows);
    }

    for (uint32_t b = 0; b < job->back_count; b++)
        add(frame, job->back[b].binding, HOST,
            (struct cox__row_range){job->back[b].first, job->back[b].first + job->back[b].count});
}

void cox__residency_note_failed(struct cox__frame *frame, uint32_t band)
{
    const struct cox__band *of = &frame->bands[band];

    if (of->kind == COX__BAND_FETCH && (frame->held.keeps || frame->held.kept[of->origin]))
        take_away(frame, of->origin, COMING,
                  (struct cox__row_range){of->moved_first, of->moved_first + of->moved_count});
}

bool cox__residency_next_away(const struct cox__frame *frame, uint32_t binding,
                              struct cox__row_range *rows)
{
    const uint32_t home = frame->held.home[binding];
    const uint32_t end = cox__kept_rows(frame->pipeline, binding);

    for (uint32_t row = rows->end; row < end;) {
        const struct stretch at = stretch_at(frame, binding, home, row, end);
        if (at.on_host && !at.on_device) {
            *rows = at.rows;
            return true;
        }

        row = at.rows.end;
    }

    return false;
}

static void forget(const struct cox__frame *frame, uint32_t device)
{
    for (uint32_t i = 0; frame->started && frame->held.keeps && i < frame->pipeline->binding_count;
         i++)
        cox__row_set_clear(rows_at(frame, i, device));
}

void cox__residency_forget(const struct cox__order *order, uint32_t device)
{
    for (uint32_t i = 0; i < order->count; i++)
        forget(cox__order_at(order, i), device);
}
