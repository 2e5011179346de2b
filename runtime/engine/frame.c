/* A frame's table of bands: which device does which rows, their states, the partial results, and
 * the report to the application.
 *
 * Owns the counts `at_work` and `unfinished`: `unfinished` is the number of bands that are
 * PLANNED, QUEUED or RUNNING.
 * SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"
#include "base/bounds.h"
#include "invariant.h"
#include "transitions.h"

#include <stdlib.h>
#include <string.h>

static bool is_at_work(const struct cox__band *band)
{
    return band->state == COX__BAND_PLANNED || band->state == COX__BAND_QUEUED ||
           band->state == COX__BAND_RUNNING;
}

static bool counts_agree(const struct cox__frame *frame)
{
    uint32_t at_work[COX_DEVICES_MAX] = {0}, sum = 0;
    bool agree = true;

    for (uint32_t b = 0; b < frame->band_count; b++)
        if (is_at_work(&frame->bands[b])) {
            at_work[frame->reports[b].device] += !cox__band_is_transfer(&frame->bands[b]);
            sum++;
        }

    for (uint32_t d = 0; d < COX_DEVICES_MAX; d++)
        agree = agree && at_work[d] == frame->at_work[d];

    return agree && sum == frame->unfinished;
}

/* ---- the table ---- */

bool cox__frame_allocate(const struct cox__pipeline *pipeline, struct cox__frame *frame)
{
    frame->pipeline = pipeline;
    frame->band_max = COX__PASS_BANDS_MAX * pipeline->pass_count;
    frame->bands = calloc(frame->band_max, sizeof *frame->bands);
    frame->reports = calloc(frame->band_max, sizeof *frame->reports);
    return frame->bands && frame->reports;
}

void cox__frame_free(struct cox__frame *frame)
{
    for (uint32_t b = 0; frame->bands && b < frame->band_max; b++)
        free(frame->bands[b].partials);
    free(frame->vote.runs);
    free(frame->bands);
    free(frame->reports);
}

/* ---- bands ---- */

void cox__frame_begin_pass(const struct cox_runtime *runtime, struct cox__frame *frame,
                           uint32_t pass)
{
    COX_INVARIANT(pass < frame->pipeline->pass_count && !frame->unfinished);

    frame->pass = pass;
    frame->first_band = frame->band_count;
    frame->again = false;
    frame->passes[pass] = (struct cox_pass_report){.start_ns = cox__engine_now(runtime),
                                                   .reason = COX_REASON_NONE};

    frame->pool.left = frame->pool.first_row = 0;
    frame->pool.declined = frame->pool.served = 0;
    frame->shadow.rows = 0;
    frame->sampled = false;
    free(frame->vote.runs);
    frame->vote = (struct cox__vote){.state = COX__VOTE_NONE};
}

void cox__frame_begin_anew(const struct cox_runtime *runtime, struct cox__frame *frame,
                           cox_status why)
{
    for (uint32_t b = 0; b < frame->band_count; b++) {
        const uint32_t attempt = frame->reports[b].attempt;
        if (!cox__band_is_of_split(&frame->bands[b]))
            continue;

        if (frame->bands[b].state == COX__BAND_DONE)
            cox__frame_revoke_band(frame, b, why);
        if (attempt >= frame->attempt)
            frame->attempt = attempt + 1;
    }

    cox__frame_begin_pass(runtime, frame, 0);
}

void cox__frame_start(const struct cox_runtime *runtime, struct cox__frame *frame,
                      enum cox__frame_kind kind)
{
    frame->started = true;
    frame->kind = kind;
    frame->status = COX_OK;
    frame->held.keeps = frame->held.write_through = false;
    frame->held.homed = frame->held.to_acquire = frame->held.to_release = 0;
    frame->held.read_through = false;
    memset(frame->held.kept, 0, sizeof frame->held.kept);
    frame->start_ns = frame->end_ns = cox__engine_now(runtime);
    frame->joules = -1;

    memset(frame->at_work, 0, sizeof frame->at_work);
    frame->unfinished = 0;
    frame->band_count = 0;
    frame->attempt = 0;

    cox__frame_begin_pass(runtime, frame, 0);
}

bool cox__frame_pass_is_done(const struct cox__frame *frame)
{
    return frame->started && !frame->unfinished && !frame->pool.left;
}

bool cox__frame_is_complete(const struct cox__frame *frame)
{
    return cox__frame_pass_is_done(frame) &&
           (frame->status || (cox__frame_is_in_last_pass(frame) && !frame->again));
}

bool cox__frame_has_more(const struct cox__frame *frame)
{
    bool more = frame->pool.left || frame->again || !cox__frame_is_in_last_pass(frame);
    for (uint32_t b = frame->first_band; b < frame->band_count; b++)
        more = more || (frame->bands[b].state == COX__BAND_PLANNED &&
                        cox__band_is_of_split(&frame->bands[b]));

    return more;
}

static bool add_band(struct cox__frame *frame, uint32_t device, uint32_t first_row, uint32_t rows,
                     uint32_t attempt)
{
    if (frame->band_count == frame->band_max)
        return false;

    uint32_t index = frame->band_count++;
    struct cox__band *band = &frame->bands[index];

    frame->reports[index] = (struct cox_band_report){.device = device,
                                                     .first_row = first_row,
                                                     .rows = rows,
                                                     .attempt = attempt,
                                                     .pass = frame->pass,
                                                     .clock_error_ns = UINT64_MAX,
                                                     .status = COX_OK};
    *band = (struct cox__band){
        .state = COX__BAND_PLANNED, .pass = frame->pass, .partials = band->partials};
    frame->at_work[device]++;
    frame->pool.served |= UINT32_C(1) << device;
    frame->unfinished++;

    return true;
}

bool cox__frame_add(const struct cox__devices *devices, struct cox__frame *frame, uint32_t device,
                    uint32_t first_row, uint32_t rows, uint32_t attempt)
{
    const uint32_t most = devices->list[device].passes[frame->pass].max_rows;
    COX_INVARIANT(frame->started && rows && first_row + rows <= cox__frame_pass(frame)->rows);

    for (uint32_t done = 0; done < rows;) {
        const uint32_t part = cox__min_u32(rows - done, most);
        if (!add_band(frame, device, first_row + done, part, attempt))
            return false;
        done += part;
    }

    COX_INVARIANT(counts_agree(frame));

    return true;
}

/* A transfer computes no rows of the pass. Its report lists as many rows as it copies, from row 0,
 * so that its time limit is about right. */
bool cox__frame_add_transfer(struct cox__frame *frame, enum cox__band_kind kind, uint32_t device,
                             uint32_t binding, struct cox__row_range range)
{
    const struct cox__pass *pass = cox__frame_pass(frame);
    const uint32_t served = frame->pool.served;
    const uint32_t rows = range.end - range.first;
    if (!add_band(frame, device, 0, cox__min_u32(rows, pass->rows), 0))
        return false;

    struct cox__band *band = &frame->bands[frame->band_count - 1];
    frame->pool.served = served; /* transfers do not count for the pool */
    frame->at_work[device]--;
    band->kind = kind;
    band->origin = binding;
    band->moved_first = range.first;
    band->moved_count = rows;
    COX_INVARIANT(counts_agree(frame));

    return true;
}

void cox__frame_end_band(struct cox__frame *frame, uint32_t band, cox_status status)
{
    cox__transition_band(&frame->bands[band], status ? COX__BAND_FAILED : COX__BAND_DONE);
    frame->reports[band].status = status;
    frame->at_work[frame->reports[band].device] -= !cox__band_is_transfer(&frame->bands[band]);
    frame->unfinished--;
    COX_INVARIANT(counts_agree(frame));
}

void cox__frame_revoke_band(struct cox__frame *frame, uint32_t band, cox_status status)
{
    COX_INVARIANT(status != COX_OK);
    cox__transition_band(&frame->bands[band], COX__BAND_FAILED);
    frame->reports[band].status = status;
}

/* ---- partial results ---- */

bool cox__frame_save_partials(struct cox__backend *backend, struct cox__frame *frame, uint32_t band,
                              struct cox__job *job)
{
    const struct cox__pass *pass = cox__frame_pass(frame);
    if (!pass->partial_bytes || frame->kind != COX__FRAME_OF_APPLICATION)
        return true;
    if (!frame->bands[band].partials &&
        !(frame->bands[band].partials = malloc(frame->pipeline->partial_bytes)))
        return false;

    char *to = frame->bands[band].partials;
    for (uint32_t i = 0; i < pass->binding_count; i++)
        if (pass->bindings[i].row_access == COX__REDUCE) {
            memcpy(to, backend->ops->job_partial(backend, job, i), pass->bindings[i].bytes);
            to += pass->bindings[i].bytes;
        }

    return true;
}

uint32_t cox__frame_band_from(const struct cox__frame *frame, uint32_t pass, uint32_t first_row)
{
    uint32_t band = 0;
    while (frame->bands[band].pass != pass || frame->bands[band].state != COX__BAND_DONE ||
           !cox__band_is_of_split(&frame->bands[band]) ||
           frame->reports[band].first_row != first_row)
        band++;

    COX_INVARIANT(band < frame->band_count);

    return band;
}

void cox__frame_merge_partials(struct cox__backend *backend, struct cox__frame *frame)
{
    const struct cox__pass *pass = cox__frame_pass(frame);
    size_t offset = 0;

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        if (binding->row_access != COX__REDUCE)
            continue;

        void *into = backend->ops->mem_data(frame->mems[i]);
        memset(into, 0, binding->bytes);

        for (uint32_t next = 0; next < pass->rows;) {
            const uint32_t band = cox__frame_band_from(frame, frame->pass, next);
            binding->merge(into, (char *)frame->bands[band].partials + offset, binding->bytes,
                           binding->merge_user);
            next += frame->reports[band].rows;
        }

        offset += binding->bytes;
    }
}

/* ---- the report ---- */

static bool comes_before(const struct cox_band_report *one, const struct cox_band_report *other)
{
    if (one->pass != other->pass)
        return one->pass < other->pass;
    if (one->first_row != other->first_row)
        return one->first_row < other->first_row;

    return one->attempt < other->attempt;
}

/* Sort the bands by pass, then first row, then attempt, without checks and transfers. An insertion
 * sort suffices for few bands that are nearly sorted. Returns how many there are. */
static uint32_t sort_reports(struct cox_band_report *sorted, const struct cox__frame *frame)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < frame->band_count; i++) {
        const struct cox_band_report *report = &frame->reports[i];
        if (!cox__band_is_of_split(&frame->bands[i]))
            continue;

        uint32_t at = count++;
        while (at && comes_before(report, &sorted[at - 1])) {
            sorted[at] = sorted[at - 1];
            at--;
        }

        sorted[at] = *report;
    }

    return count;
}

static uint64_t sum_if_known(uint64_t a, uint64_t b)
{
    return a && b ? a + b : 0;
}

/* The report of the whole frame; a time that one pass does not know is 0. */
static struct cox_pass_report sum_passes(const struct cox__sharing *sharing,
                                         const struct cox__frame *frame)
{
    struct cox_pass_report sum = frame->passes[0];

    for (uint32_t p = 1; p <= frame->pass; p++) {
        const struct cox_pass_report *pass = &frame->passes[p];

        if (pass->reason == COX_REASON_RERUN)
            sum.reason = pass->reason;
        if (sharing[p].lead != p) /* its lead's prediction includes it */
            continue;

        sum.predicted_ns = sum_if_known(sum.predicted_ns, pass->predicted_ns);
        sum.rejected_ns = sum_if_known(sum.rejected_ns, pass->rejected_ns);
        sum.pool_rows += pass->pool_rows;
    }

    return sum;
}

void cox__frame_report(struct cox_session *session, struct cox__frame *frame)
{
    const bool internal = frame->kind != COX__FRAME_OF_APPLICATION;
    if (!session->reporting.report)
        return;

    frame->passes[frame->pass].end_ns = frame->end_ns;

    uint32_t first = 0;
    uint64_t delivered_ns = frame->delivered_ns;
    struct cox_pass_report total;

    if (internal) { /* a run of one pass, which is not delivered */
        first = frame->pass;
        delivered_ns = frame->end_ns;
        total = frame->passes[first];
    } else {
        total = sum_passes(session->sharing, frame);
    }
    total.start_ns = frame->start_ns;
    total.end_ns = frame->end_ns;

    const struct cox_frame_report report = {
        .index = frame->index,
        .warmup = frame->kind == COX__FRAME_WARMUP,
        .shadow = frame->kind == COX__FRAME_SHADOW,
        .status = frame->status,
        .submit_ns = frame->submit_ns,
        .total = total,
        .delivered_ns = delivered_ns,
        .deadline_ns = frame->deadline_ns,
        .joules = frame->joules,
        .band_count = sort_reports(session->reporting.sorted, frame),
        .bands = session->reporting.sorted,
        .pass_count = frame->pass + 1 - first,
        .passes = &frame->passes[first]};
    session->reporting.report(session->reporting.user, &report);
}
