/* Sessions, and the queue that carries reports of frames, policies and telemetry to the recording
 * thread.
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
    char ratios[LAB_RATIOS_BYTES];
    const char *shares = NULL;
    int64_t device = -1; /* none */
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

    if (about->ratios && about->ratio_count > 0) {
        lab__store_ratios_text(about->ratios, about->ratio_count, ratios, sizeof ratios);
        shares = ratios;
    }
    if (about->kind == LAB_SESSION_SOLO)
        device = about->device;

    lab__store_put(store, LAB_SQL_SESSION, "ittkti", store->run_number, kinds[about->kind],
                   about->policy, device, shares, (int64_t)about->repeat);
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

/* The bytes of an array; 0 for none. */
static size_t bytes_of(const void *array, size_t count, size_t bytes)
{
    if (!array)
        return 0;

    return count * bytes;
}

/* Copy an array to `*at`, which moves behind it; NULL for none. */
static void *append(unsigned char **at, const void *array, size_t bytes)
{
    void *copy = *at;

    if (!array)
        return NULL;

    memcpy(copy, array, bytes);
    *at += bytes;

    return copy;
}

void lab_session_frame(void *user, const struct cox_frame_report *report)
{
    struct lab_session *session = user;

    if (!session || report->warmup)
        return;

    struct lab_store *store = session->store;

    /* A frame of one pass may come without passes. */
    const size_t band_bytes = bytes_of(report->bands, report->band_count, sizeof *report->bands);
    const size_t pass_bytes = bytes_of(report->passes, report->pass_count, sizeof *report->passes);

    pthread_mutex_lock(&store->mutex);
    struct cox_frame_report *copy = take(store, session, LAB_ITEM_FRAME,
                                         sizeof *copy + band_bytes + pass_bytes);
    if (copy) {
        unsigned char *at = (unsigned char *)(copy + 1);
        *copy = *report;
        copy->bands = append(&at, report->bands, band_bytes);
        copy->passes = append(&at, report->passes, pass_bytes);
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
        queued->pass = call->pass;
        if (queued->pass >= COX_PASSES_MAX)
            queued->pass = COX_PASSES_MAX - 1;
    }

    session->calls++; /* a lost call leaves a hole, which replay sees */
    pthread_mutex_unlock(&store->mutex);
}

/* Half of the queue belongs to frames alone. NULL if there is no room. */
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
