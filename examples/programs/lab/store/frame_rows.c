/* Writes the queue: rows of frames, passes, bands and telemetry here, calls in tape_rows.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/now.h"
#include "recording.h"

#include <stdio.h>
#include <math.h>

enum { COMMIT_FRAMES = 64, COMMIT_NS = 500000000 };

static uint32_t phase_of(const struct lab_session *session, uint64_t frame)
{
    uint32_t phase = 0;

    if (session->phase_plus_1)
        return session->phase_plus_1 - 1;

    for (uint32_t p = 0; p < session->phase_count; p++)
        if (frame >= session->phases[p].first_frame && frame < session->phases[p].end_frame)
            phase = session->phases[p].phase;

    return phase;
}

static void write_pass(struct lab_store *store, const struct lab_session *session,
                       const struct cox_frame_report *frame, uint32_t number,
                       const struct cox_pass_report *pass)
{
    lab__store_put(store, LAB_SQL_FRAME_PASS, "iiiiiiiii", session->number, (int64_t)frame->index,
                   (int64_t)number, (int64_t)(pass->start_ns - frame->total.start_ns),
                   (int64_t)(pass->end_ns - frame->total.start_ns), (int64_t)pass->reason,
                   (int64_t)pass->predicted_ns, (int64_t)pass->rejected_ns,
                   (int64_t)pass->pool_rows);
}

/* A frame without reports of passes is one pass. A simulated one may have several without reports:
 * no row then. */
static void write_passes(struct lab_store *store, const struct lab_session *session,
                         const struct cox_frame_report *frame)
{
    const struct cox_pass_report whole = {.start_ns = frame->total.start_ns,
                                          .end_ns = frame->total.end_ns,
                                          .reason = frame->total.reason,
                                          .predicted_ns = frame->total.predicted_ns,
                                          .rejected_ns = frame->total.rejected_ns,
                                          .pool_rows = frame->total.pool_rows};

    if (!frame->passes && frame->pass_count <= 1)
        write_pass(store, session, frame, 0, &whole);
    for (uint32_t p = 0; frame->passes && p < frame->pass_count; p++)
        write_pass(store, session, frame, p, &frame->passes[p]);
}

static void write_band(struct lab_store *store, const struct lab_session *session,
                       const struct cox_frame_report *frame, uint32_t number)
{
    const struct cox_band_report *band = &frame->bands[number];

    lab__store_put(store, LAB_SQL_BAND, "iiiiiiiiiiiiiiii", session->number, (int64_t)frame->index,
                   (int64_t)number, (int64_t)band->pass, (int64_t)band->device,
                   (int64_t)band->first_row, (int64_t)band->rows,
                   (int64_t)(band->submit_ns - frame->total.start_ns),
                   (int64_t)(band->end_ns - frame->total.start_ns), (int64_t)band->wall_ns,
                   (int64_t)band->queue_ns, (int64_t)band->kernel_ns, (int64_t)band->predicted_ns,
                   (int64_t)band->on_demand, (int64_t)band->attempt, (int64_t)band->status);
    if (!band->noticed_ns) /* of a simulated frame */
        return;

    /* An unknown error of the clock is UINT64_MAX: negative, NULL. */
    lab__store_put(store, LAB_SQL_NOTICE, "iiiik", session->number, (int64_t)frame->index,
                   (int64_t)number, (int64_t)(band->noticed_ns - frame->total.start_ns),
                   (int64_t)band->clock_error_ns);
}

static void write_shadow(struct lab_store *store, const struct lab_session *session,
                         const struct cox_frame_report *frame)
{
    if (frame->status != COX_OK)
        return;

    for (uint32_t b = 0; b < frame->band_count; b++) {
        const struct cox_band_report *band = &frame->bands[b];

        lab__store_put(store, LAB_SQL_SHADOW, "iiiiiii", session->number, (int64_t)frame->index,
                       (int64_t)band->pass, (int64_t)band->device, (int64_t)band->first_row,
                       (int64_t)band->rows, (int64_t)band->wall_ns);
    }
}

/* The session's times count from its first frame. */
static void start_session(struct lab_store *store, struct lab_session *session, uint64_t start_ns)
{
    session->started = true;
    session->origin_ns = start_ns;
    session->before_ns = start_ns;
    if (store->has_telemetry)
        lab__store_put(store, LAB_SQL_SESSION_START, "ii", session->number,
                       (int64_t)(start_ns - store->run_ns));
}

/* The part of the frame's time after the end of all earlier frames. */
static uint64_t take_period(struct lab_session *session, const struct cox_frame_report *frame)
{
    uint64_t from_ns = frame->total.start_ns;

    if (from_ns < session->before_ns)
        from_ns = session->before_ns;
    if (frame->total.end_ns > session->before_ns)
        session->before_ns = frame->total.end_ns;
    if (frame->total.end_ns <= from_ns)
        return 0;

    return frame->total.end_ns - from_ns;
}

static uint32_t rows_of_first_pass(const struct cox_frame_report *frame)
{
    uint32_t rows = 0;

    for (uint32_t b = 0; b < frame->band_count; b++) {
        const struct cox_band_report *band = &frame->bands[b];

        if (band->pass == 0 && band->first_row + band->rows > rows)
            rows = band->first_row + band->rows;
    }

    return rows;
}

static void write_frame(struct lab_store *store, struct lab_session *session,
                        const struct cox_frame_report *frame)
{
    double joules = frame->joules;

    if (frame->shadow) {
        write_shadow(store, session, frame);
        return;
    }

    if (!session->started)
        start_session(store, session, frame->total.start_ns);
    if (joules < 0) /* there is no meter */
        joules = NAN;

    lab__store_put(store, LAB_SQL_FRAME, "iiiiiiiiiiiiiir", session->number, (int64_t)frame->index,
                   (int64_t)phase_of(session, frame->index), (int64_t)rows_of_first_pass(frame),
                   (int64_t)(frame->total.start_ns - session->origin_ns),
                   (int64_t)(frame->total.end_ns - frame->total.start_ns),
                   (int64_t)take_period(session, frame), (int64_t)frame->total.predicted_ns,
                   (int64_t)frame->total.rejected_ns, (int64_t)frame->total.reason,
                   (int64_t)frame->total.pool_rows, (int64_t)frame->status,
                   (int64_t)(frame->delivered_ns - frame->submit_ns), (int64_t)frame->deadline_ns,
                   joules);
    write_passes(store, session, frame);
    for (uint32_t b = 0; b < frame->band_count; b++)
        write_band(store, session, frame, b);

    store->frames++;
}

static void write_telemetry(struct lab_store *store, const struct lab_queued_telemetry *queued)
{
    if (queued->setting[0])
        lab__store_put(store, LAB_SQL_VALUE, "iiit", store->run_number, (int64_t)queued->source,
                       queued->at_ns, queued->setting);
    for (uint32_t i = 0; i < queued->count; i++)
        if (!isnan(queued->values[i]))
            lab__store_put(store, LAB_SQL_VALUE, "iiir", store->run_number, (int64_t)i,
                           queued->at_ns, queued->values[i]);
}

static void write_item(struct lab_store *store, const struct lab_item *item)
{
    const void *content = item + 1;

    switch (item->kind) {
    case LAB_ITEM_FRAME:
        write_frame(store, item->session, content);
        break;
    case LAB_ITEM_TELEMETRY:
        write_telemetry(store, content);
        break;
    case LAB_ITEM_CALL:
        lab__tape_write(store, item->session, content);
        break;
    }
}

void lab_store_write(struct lab_store *store)
{
    /* Take the block that was filled and give the other one to the reporting threads. */
    pthread_mutex_lock(&store->mutex);
    unsigned char *block = store->fills;
    size_t filled = store->filled;
    if (filled) {
        store->fills = store->writes;
        store->filled = 0;
        store->writes = block;
    }

    pthread_mutex_unlock(&store->mutex);

    for (size_t at = 0; at < filled && lab__store_writing(store);) {
        const struct lab_item *item = (const struct lab_item *)(block + at);

        at += item->bytes;
        write_item(store, item);
    }

    if (store->writing &&
        (store->frames >= COMMIT_FRAMES || now_ns() - store->since_ns >= COMMIT_NS))
        lab__store_end(store);
}

void lab_store_commit(struct lab_store *store)
{
    lab_store_write(store);
    lab__store_end(store);
}

bool lab_store_close(struct lab_store **closed, char *why, size_t why_bytes)
{
    struct lab_store *store = *closed;

    *closed = NULL;
    if (!store)
        return true;

    lab_store_write(store);
    lab__store_end(store);
    if (!store->error[0] && store->lost) {
        char what[128];
        snprintf(what, sizeof what,
                 "%llu frames or policy calls were not recorded, because writing was too slow",
                 (unsigned long long)store->lost);
        lab__store_fail(store, what);
    }

    lab__store_settle(store);
    bool good = !store->error[0];
    if (!good)
        snprintf(why, why_bytes, "%s", store->error);

    lab__store_free(store);

    return good;
}
