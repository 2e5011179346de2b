/* A frame's table of bands: what was given to which device, what became of it, the partial results and the report.
 *
 * Owns the counts `at_work` and `unfinished`: `unfinished` is the number of bands that are PLANNED, QUEUED or RUNNING.
 * SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"
#include "invariant.h"
#include "transitions.h"

#include <stdlib.h>
#include <string.h>

static bool is_at_work(const struct cox__band *band)
{
    return band->state == COX__BAND_PLANNED || band->state == COX__BAND_QUEUED || band->state == COX__BAND_RUNNING;
}

static bool counts_agree(const struct cox__frame *frame)
{
    uint32_t at_work[COX_DEVICES_MAX] = {0}, sum = 0;
    bool agree = true;
    for (uint32_t b = 0; b < frame->band_count; b++)
        if (is_at_work(&frame->bands[b])) {
            at_work[frame->reports[b].device]++;
            sum++;
        }
    for (uint32_t d = 0; d < COX_DEVICES_MAX; d++)
        agree = agree && at_work[d] == frame->at_work[d];
    return agree && sum == frame->unfinished;
}

void cox__frame_start(const struct cox_session *session, struct cox__frame *frame, enum cox__frame_kind kind)
{
    frame->started = true;
    frame->kind = kind;
    frame->status = COX_OK;
    frame->start_ns = frame->end_ns = cox__engine_now(session);
    frame->reason = COX_REASON_NONE;
    frame->predicted_ns = frame->alternative_ns = 0;
    frame->joules = -1;
    frame->pool_rows = frame->pool_left = frame->pool_first_row = 0;
    frame->declined = frame->served = 0;
    frame->shadow.rows = 0;
    memset(frame->at_work, 0, sizeof frame->at_work);
    frame->unfinished = 0;
    frame->band_count = 0;
    frame->sampled = false;
    frame->vote.state = COX__VOTE_NONE;
}

bool cox__frame_is_complete(const struct cox__frame *frame)
{
    return frame->started && !frame->unfinished && !frame->pool_left;
}

static bool add_band(struct cox__frame *frame, uint32_t device, uint32_t first_row, uint32_t rows, uint32_t attempt)
{
    if (frame->band_count == COX__FRAME_BANDS_MAX)
        return false;
    uint32_t index = frame->band_count++;
    struct cox__band *band = &frame->bands[index];
    frame->reports[index] = (struct cox_band_report){
        .device = device, .first_row = first_row, .rows = rows, .attempt = attempt, .status = COX_OK};
    *band = (struct cox__band){.state = COX__BAND_PLANNED, .partials = band->partials};
    frame->at_work[device]++;
    frame->served |= UINT32_C(1) << device;
    frame->unfinished++;
    return true;
}

bool cox__frame_add(const struct cox_session *session, struct cox__frame *frame, uint32_t device, uint32_t first_row,
                    uint32_t rows, uint32_t attempt)
{
    uint32_t most = session->devices[device].max_rows;
    COX_INVARIANT(frame->started && rows && first_row + rows <= session->pipeline.rows);
    for (uint32_t done = 0; done < rows;) {
        uint32_t part = rows - done < most ? rows - done : most;
        if (!add_band(frame, device, first_row + done, part, attempt))
            return false;
        done += part;
    }
    COX_INVARIANT(counts_agree(frame));
    return true;
}

void cox__frame_end_band(struct cox__frame *frame, uint32_t band, cox_status status)
{
    cox__band_set_state(&frame->bands[band], status == COX_OK ? COX__BAND_DONE : COX__BAND_FAILED);
    frame->reports[band].status = status;
    frame->at_work[frame->reports[band].device]--;
    frame->unfinished--;
    COX_INVARIANT(counts_agree(frame));
}

void cox__frame_revoke_band(struct cox__frame *frame, uint32_t band, cox_status status)
{
    COX_INVARIANT(status != COX_OK);
    cox__band_set_state(&frame->bands[band], COX__BAND_FAILED);
    frame->reports[band].status = status;
}

/* ---- partial results ---- */

bool cox__frame_save_partials(struct cox_session *session, struct cox__frame *frame, uint32_t band,
                              struct cox__job *job)
{
    struct cox__backend *backend = session->runtime->backend;
    if (!session->partial_bytes || frame->kind != COX__FRAME_OF_APPLICATION)
        return true;
    if (!frame->bands[band].partials && !(frame->bands[band].partials = malloc(session->partial_bytes)))
        return false;
    char *to = frame->bands[band].partials;
    for (uint32_t i = 0; i < session->pipeline.binding_count; i++)
        if (session->pipeline.bindings[i].contract == COX_REDUCE) {
            memcpy(to, backend->ops->job_partial(backend, job, i), session->pipeline.bindings[i].bytes);
            to += session->pipeline.bindings[i].bytes;
        }
    return true;
}

/* The band that did the rows from `first_row`. */
static uint32_t band_from(const struct cox__frame *frame, uint32_t first_row)
{
    uint32_t band = 0;
    while (frame->bands[band].state != COX__BAND_DONE || frame->bands[band].kind == COX__BAND_CHECK ||
           frame->reports[band].first_row != first_row)
        band++;
    COX_INVARIANT(band < frame->band_count);
    return band;
}

void cox__frame_merge_partials(struct cox_session *session, struct cox__frame *frame)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    struct cox__backend *backend = session->runtime->backend;
    size_t offset = 0;
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        if (binding->contract != COX_REDUCE)
            continue;
        void *into = backend->ops->mem_data(frame->mems[i]);
        memset(into, 0, binding->bytes);
        for (uint32_t next = 0; next < pipeline->rows;) {
            const uint32_t band = band_from(frame, next);
            binding->merge(into, (char *)frame->bands[band].partials + offset, binding->bytes, binding->merge_user);
            next += frame->reports[band].rows;
        }
        offset += binding->bytes;
    }
}

/* ---- the report ---- */

/* Sort by first row, then attempt; few bands, nearly sorted. Checks are left out. Returns how many bands there are. */
static uint32_t sort_reports(struct cox_session *session, const struct cox__frame *frame)
{
    struct cox_band_report *sorted = session->sorted;
    uint32_t count = 0;
    for (uint32_t i = 0; i < frame->band_count; i++) {
        const struct cox_band_report *report = &frame->reports[i];
        if (frame->bands[i].kind == COX__BAND_CHECK)
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

void cox__frame_report(struct cox_session *session, const struct cox__frame *frame)
{
    if (!session->report)
        return;
    const struct cox_frame_report report = {.struct_size = sizeof report,
                                            .index = frame->index,
                                            .warmup = frame->kind == COX__FRAME_WARMUP,
                                            .shadow = frame->kind == COX__FRAME_SHADOW,
                                            .status = frame->status,
                                            .submit_ns = frame->submit_ns,
                                            .start_ns = frame->start_ns,
                                            .end_ns = frame->end_ns,
                                            .reason = frame->reason,
                                            .predicted_ns = frame->predicted_ns,
                                            .alternative_ns = frame->alternative_ns,
                                            .pool_rows = frame->pool_rows,
                                            .joules = frame->joules,
                                            .band_count = sort_reports(session, frame),
                                            .bands = session->sorted};
    session->report(session->report_user, &report);
}
