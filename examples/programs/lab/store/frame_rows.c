/* What the queue holds becomes rows: frames and bands here, the rest where its statements are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/now.h"
#include "recording.h"

enum { COMMIT_FRAMES = 64, COMMIT_NS = 500000000 };

static uint32_t phase_of(const struct lab_session *session, uint64_t frame)
{
    if (session->phase_plus_1)
        return session->phase_plus_1 - 1;
    uint32_t phase = 0;
    for (uint32_t p = 0; p < session->phase_count; p++)
        if (frame >= session->phases[p].first_frame && frame < session->phases[p].end_frame)
            phase = session->phases[p].phase;
    return phase;
}

static void write_notice(struct lab_store *store, const struct lab_session *session,
                         const struct cox_frame_report *frame, uint32_t band)
{
    const struct cox_band_notice *notice = &frame->notices[band];
    const bool known = notice->clock_error_ns != UINT64_MAX;
    lab__store_check(store, lab__store_step(store->sql[LAB_SQL_NOTICE], known ? "iiiii" : "iiiin",
                                            session->number, (int64_t)frame->index, (int64_t)band,
                                            (int64_t)(notice->noticed_ns - frame->start_ns),
                                            (int64_t)notice->clock_error_ns));
}

static uint32_t pass_of(const struct cox_frame_report *frame, uint32_t band)
{
    return frame->band_passes ? frame->band_passes[band] : 0;
}

/* Of a frame without any: the one that it is. A simulated one may be of several of which nothing is known. */
static void write_passes(struct lab_store *store, const struct lab_session *session,
                         const struct cox_frame_report *frame)
{
    const struct cox_pass_report whole = {.start_ns = frame->start_ns,
                                          .end_ns = frame->end_ns,
                                          .reason = frame->reason,
                                          .predicted_ns = frame->predicted_ns,
                                          .alternative_ns = frame->alternative_ns,
                                          .pool_rows = frame->pool_rows};
    const uint32_t count = frame->passes ? frame->pass_count : frame->pass_count > 1 ? 0 : 1;
    for (uint32_t p = 0; p < count && !store->error[0]; p++) {
        const struct cox_pass_report *pass = frame->passes ? &frame->passes[p] : &whole;
        lab__store_check(store,
                         lab__store_step(store->sql[LAB_SQL_FRAME_PASS], "iiiiiiiii",
                                         session->number, (int64_t)frame->index, (int64_t)p,
                                         (int64_t)(pass->start_ns - frame->start_ns),
                                         (int64_t)(pass->end_ns - frame->start_ns),
                                         (int64_t)pass->reason, (int64_t)pass->predicted_ns,
                                         (int64_t)pass->alternative_ns, (int64_t)pass->pool_rows));
    }
}

static void write_bands(struct lab_store *store, const struct lab_session *session,
                        const struct cox_frame_report *frame)
{
    for (uint32_t b = 0; b < frame->band_count && !store->error[0]; b++) {
        const struct cox_band_report *band = &frame->bands[b];
        int result = lab__store_step(store->sql[LAB_SQL_BAND], "iiiiiiiiiiiiiiii", session->number,
                                     (int64_t)frame->index, (int64_t)b, (int64_t)pass_of(frame, b),
                                     (int64_t)band->device, (int64_t)band->first_row,
                                     (int64_t)band->rows,
                                     (int64_t)(band->submit_ns - frame->start_ns),
                                     (int64_t)(band->end_ns - frame->start_ns),
                                     (int64_t)band->wall_ns, (int64_t)band->queue_ns,
                                     (int64_t)band->kernel_ns, (int64_t)band->predicted_ns,
                                     (int64_t)band->on_demand, (int64_t)band->attempt,
                                     (int64_t)band->status);
        lab__store_check(store, result);
        if (frame->notices)
            write_notice(store, session, frame, b);
    }
}

static void write_shadow(struct lab_store *store, const struct lab_session *session,
                         const struct cox_frame_report *frame)
{
    const struct cox_band_report *bands = frame->bands;
    for (uint32_t b = 0; b < frame->band_count && frame->status == COX_OK && !store->error[0]; b++)
        lab__store_check(store,
                         lab__store_step(store->sql[LAB_SQL_SHADOW], "iiiiiii", session->number,
                                         (int64_t)frame->index, (int64_t)pass_of(frame, b),
                                         (int64_t)bands[b].device, (int64_t)bands[b].first_row,
                                         (int64_t)bands[b].rows, (int64_t)bands[b].wall_ns));
}

static void write_frame(struct lab_store *store, struct lab_session *session,
                        const struct cox_frame_report *frame)
{
    const struct cox_band_report *bands = frame->bands;
    if (frame->shadow) {
        write_shadow(store, session, frame);
        return;
    }
    if (!session->started) {
        session->started = true;
        session->origin_ns = frame->start_ns;
        session->before_ns = frame->start_ns;
        if (store->has_telemetry)
            lab__store_check(store, lab__store_step(store->telemetry.session, "ii", session->number,
                                                    (int64_t)(frame->start_ns - store->run_ns)));
    }
    uint64_t from_ns = frame->start_ns > session->before_ns ? frame->start_ns : session->before_ns;
    uint64_t period_ns = frame->end_ns > from_ns ? frame->end_ns - from_ns : 0;
    if (frame->end_ns > session->before_ns)
        session->before_ns = frame->end_ns;
    uint32_t rows = 0;
    for (uint32_t b = 0; b < frame->band_count; b++)
        if (pass_of(frame, b) == 0 && bands[b].first_row + bands[b].rows > rows)
            rows = bands[b].first_row + bands[b].rows;
    bool metered = frame->joules >= 0;
    int result = lab__store_step(store->sql[LAB_SQL_FRAME],
                                 metered ? "iiiiiiiiiiiiiir" : "iiiiiiiiiiiiiin", session->number,
                                 (int64_t)frame->index, (int64_t)phase_of(session, frame->index),
                                 (int64_t)rows, (int64_t)(frame->start_ns - session->origin_ns),
                                 (int64_t)(frame->end_ns - frame->start_ns), (int64_t)period_ns,
                                 (int64_t)frame->predicted_ns, (int64_t)frame->alternative_ns,
                                 (int64_t)frame->reason, (int64_t)frame->pool_rows,
                                 (int64_t)frame->status,
                                 (int64_t)(frame->delivered_ns - frame->submit_ns),
                                 (int64_t)frame->deadline_ns, frame->joules);
    lab__store_check(store, result);
    write_passes(store, session, frame);
    write_bands(store, session, frame);
    store->frames++;
}

static int write_call(struct lab_store *store, struct lab_session *session,
                      const struct lab_queued_call *call)
{
    return lab__tape_write(&store->tape, session->number, &session->last[call->pass], call);
}

void lab_store_write(struct lab_store *store)
{
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
        struct lab_item *item = (struct lab_item *)(block + at);
        at += item->bytes;
        if (item->kind == LAB_ITEM_FRAME) {
            write_frame(store, item->session, (const struct cox_frame_report *)(item + 1));
        } else if (item->kind == LAB_ITEM_TELEMETRY) {
            lab__store_check(store,
                             lab__telemetry_write(&store->telemetry, store->run_number,
                                                  (const struct lab_queued_telemetry *)(item + 1)));
        } else {
            lab__store_check(store, write_call(store, item->session,
                                               (const struct lab_queued_call *)(item + 1)));
        }
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
