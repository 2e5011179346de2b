/* Sessions, and the queue: what frames, policies and the telemetry report, on its way to the recording thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEM_ALIGN = 16 };

struct lab_session *lab_store_begin_session(struct lab_store *store,
                                            const struct lab_store_session *about)
{
    static const char *const kinds[] = {[LAB_SESSION_POLICY] = "policy",
                                        [LAB_SESSION_SOLO] = "solo",
                                        [LAB_SESSION_SWEEP] = "sweep"};
    struct lab_session *session = calloc(1, sizeof *session);
    struct lab_store_phase *phases = malloc((store->phase_count + 1) * sizeof *phases);
    if (!session || !phases) {
        free(session);
        free(phases);
        lab__store_fail(store, "out of memory");
        return NULL;
    }
    if (store->phase_count)
        memcpy(phases, store->phases, store->phase_count * sizeof *phases);
    session->phases = phases;
    session->phase_count = store->phase_count;
    session->phase_plus_1 = about->phase_plus_1;
    session->store = store;
    session->next = store->sessions;
    store->sessions = session;
    if (!lab__store_writing(store))
        return session;
    char ratios[COX_DEVICES_MAX * 26 + 3];
    uint32_t count = !about->ratios                         ? 0
                     : about->ratio_count < COX_DEVICES_MAX ? about->ratio_count
                                                            : COX_DEVICES_MAX;
    lab__store_ratios_text(about->ratios, count, ratios, sizeof ratios);
    const char *shares = count ? ratios : NULL, *kind = kinds[about->kind];
    if (about->kind == LAB_SESSION_SOLO)
        lab__store_check(store,
                         lab__store_step(store->sql[LAB_SQL_SESSION], "ittiti", store->run_number,
                                         kind, about->policy, (int64_t)about->device, shares,
                                         (int64_t)about->repeat));
    else
        lab__store_check(store,
                         lab__store_step(store->sql[LAB_SQL_SESSION], "ittnti", store->run_number,
                                         kind, about->policy, shares, (int64_t)about->repeat));
    session->number = sqlite3_last_insert_rowid(store->db);
    return session;
}

/* Room for an item with `bytes` bytes behind it, under the mutex; NULL if the queue is full. */
static void *take(struct lab_store *store, struct lab_session *session, enum lab_item_kind kind,
                  size_t bytes)
{
    size_t whole = (sizeof(struct lab_item) + bytes + ITEM_ALIGN - 1) / ITEM_ALIGN * ITEM_ALIGN;
    if (whole > LAB_QUEUE_BYTES - store->filled) {
        store->lost++;
        return NULL;
    }
    struct lab_item *item = (struct lab_item *)(store->fills + store->filled);
    *item = (struct lab_item){whole, kind, session};
    store->filled += whole;
    return item + 1;
}

/* Copy an array to `*at`, which moves behind it; NULL for none. */
static void *append(unsigned char **at, const void *array, size_t bytes)
{
    void *copy = array ? memcpy(*at, array, bytes) : NULL;
    *at += array ? bytes : 0;
    return copy;
}

void lab_session_frame(void *user, const struct cox_frame_report *report)
{
    struct lab_session *session = user;
    if (!session || report->warmup)
        return;
    struct lab_store *store = session->store;
    /* A simulated frame has no notices, one of one pass may come without the last two. */
    const size_t count = report->band_count;
    const size_t band_bytes = report->bands ? count * sizeof *report->bands : 0;
    const size_t notice_bytes = report->notices ? count * sizeof *report->notices : 0;
    const size_t pass_bytes = report->passes ? report->pass_count * sizeof *report->passes : 0;
    const size_t number_bytes = report->band_passes ? count * sizeof *report->band_passes : 0;
    pthread_mutex_lock(&store->mutex);
    struct cox_frame_report *copy = take(store, session, LAB_ITEM_FRAME,
                                         sizeof *copy + band_bytes + notice_bytes + pass_bytes +
                                             number_bytes);
    if (copy) {
        unsigned char *at = (unsigned char *)(copy + 1);
        *copy = *report;
        copy->bands = append(&at, report->bands, band_bytes);
        copy->notices = append(&at, report->notices, notice_bytes);
        copy->passes = append(&at, report->passes, pass_bytes);
        copy->band_passes = append(&at, report->band_passes, number_bytes);
    }
    pthread_mutex_unlock(&store->mutex);
}

void lab_session_call(void *user, const struct lab_call *call)
{
    struct lab_session *session = user;
    if (!session)
        return;
    struct lab_store *store = session->store;
    pthread_mutex_lock(&store->mutex);
    struct lab_queued_call *queued = take(store, session, LAB_ITEM_CALL,
                                          lab__queued_call_bytes(call));
    if (queued) {
        lab__queued_call_fill(queued, call);
        queued->number = session->calls;
        queued->pass = call->pass < COX_PASSES_MAX ? call->pass : COX_PASSES_MAX - 1;
    }
    session->calls++; /* a lost one leaves a hole, which replay sees */
    pthread_mutex_unlock(&store->mutex);
}

/* Half of the queue is the frames' alone. NULL if there is no room. */
static struct lab_queued_telemetry *take_telemetry(struct lab_store *store, uint64_t at_ns,
                                                   uint32_t count)
{
    struct lab_queued_telemetry *queued = NULL;
    if (store->filled < LAB_QUEUE_BYTES / 2)
        queued = take(store, NULL, LAB_ITEM_TELEMETRY, sizeof *queued + count * sizeof(double));
    if (queued)
        *queued = (struct lab_queued_telemetry){.at_ns = (int64_t)(at_ns - store->run_ns),
                                                .count = count};
    return queued;
}

void lab_store_values(struct lab_store *store, uint64_t at_ns, const double *values, uint32_t count)
{
    pthread_mutex_lock(&store->mutex);
    struct lab_queued_telemetry *queued = take_telemetry(store, at_ns, count);
    if (queued)
        memcpy(queued->values, values, count * sizeof *values);
    pthread_mutex_unlock(&store->mutex);
}

void lab_store_source_setting(struct lab_store *store, uint64_t at_ns, uint32_t source,
                              const char *text)
{
    pthread_mutex_lock(&store->mutex);
    struct lab_queued_telemetry *queued = take_telemetry(store, at_ns, 0);
    if (queued) {
        queued->source = source;
        snprintf(queued->setting, sizeof queued->setting, "%s", text);
    }
    pthread_mutex_unlock(&store->mutex);
}

const struct cox_policy *lab_session_tape(struct lab_session *session,
                                          const struct cox_policy *policy)
{
    if (!session || session->tape.inner)
        return policy;
    lab_tape_begin(&session->tape, policy, lab_session_call, session);
    return &session->tape.policy;
}
