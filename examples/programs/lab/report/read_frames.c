/* The sessions of a run: their frames and bands.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"
#include "lab/array.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* The index of a policy's name; REPORT_POLICIES_MAX if there are too many, or if out of memory. */
static uint32_t policy_index(struct report_run *run, const char *name)
{
    for (uint32_t i = 0; i < run->policy_count; i++)
        if (!strcmp(run->policies[i], name))
            return i;
    if (run->policy_count == REPORT_POLICIES_MAX)
        return REPORT_POLICIES_MAX;

    char *copy = strndup(name, TEXT_BYTES_MAX);
    if (!copy)
        return REPORT_POLICIES_MAX;

    run->policies[run->policy_count] = copy;
    return run->policy_count++;
}

static bool add_session(struct reader *reader, struct report_run *run, int64_t number,
                        const char *policy, int64_t repeat)
{
    uint32_t index = policy_index(run, policy);

    if (index == REPORT_POLICIES_MAX || run->session_count == REPORT_SESSIONS_MAX)
        return reader_refuse(reader, "run %lld has more than %d policies or %d sessions",
                             (long long)run->number, REPORT_POLICIES_MAX, REPORT_SESSIONS_MAX);

    struct report_session *all = array_room(run->sessions, run->session_count, sizeof *all);
    if (!all)
        return reader_no_memory(reader);

    run->sessions = all;
    all[run->session_count++] = (struct report_session){
        .number = number, .policy = index, .repeat = repeat};
    return true;
}

static bool read_session(struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct report_run *run = into;
    const char *kind = (const char *)sqlite3_column_text(row, 1);
    const char *policy = (const char *)sqlite3_column_text(row, 2);

    if (kind && !strcmp(kind, "policy"))
        return add_session(reader, run, sqlite3_column_int64(row, 0), policy ? policy : "(unnamed)",
                           sqlite3_column_int64(row, 3));
    if (kind && !strcmp(kind, "solo"))
        run->solo_sessions++;
    else
        run->sweep_sessions++;
    return true;
}

bool reader_sessions(struct reader *reader, struct report_run *run)
{
    return reader_each(
        reader, "SELECT session, kind, policy, repeat FROM session WHERE run = ?1 ORDER BY session",
        run->number, read_session, run);
}

/* A quantity that cannot be negative; NaN if it is. */
static double not_negative(double value)
{
    if (!(value >= 0))
        return NAN;
    return value;
}

/* The row of a frame query. */
static struct report_frame frame_of(const struct report_run *run, sqlite3_stmt *statement)
{
    struct report_frame frame = {
        .frame = reader_number(statement, 0),
        .phase = reader_phase(run, sqlite3_column_int64(statement, 1)),
        .reason = REPORT_REASONS - 1,
        .failed = reader_number(statement, 6) != 0,
        .late = NAN,
        .time_ns = NAN,
        .predicted_ns = reader_time(statement, 3),
        .rejected_ns = reader_time(statement, 4),
        .joules = not_negative(reader_number(statement, 7)),
        .oracle_ns = NAN,
    };
    int64_t reason = sqlite3_column_int64(statement, 5);
    double latency_ns = reader_number(statement, 8), deadline_ns = reader_number(statement, 9);

    if (reason >= 0 && reason < REPORT_REASONS)
        frame.reason = (uint32_t)reason;
    if (!frame.failed)
        frame.time_ns = floor(not_negative(reader_number(statement, 2)));
    if (latency_ns >= 0 && deadline_ns > 0)
        frame.late = latency_ns > deadline_ns;

    if (frame.phase < run->phase_count) {
        const struct report_phase *phase = &run->phases[frame.phase];
        frame.oracle_ns = phase->oracle_mean_ns;
        if (isnan(frame.oracle_ns))
            frame.oracle_ns = phase->oracle_ns;
    }
    return frame;
}

struct frames {
    const struct report_run *run;
    struct report_session *session;
};

static bool add_frame(struct reader *reader, sqlite3_stmt *row, void *into)
{
    const struct frames *frames = into;
    struct report_session *session = frames->session;
    const struct report_frame frame = frame_of(frames->run, row);

    if (!(frame.frame >= 0))
        return true;
    if (session->frame_count == REPORT_FRAMES_MAX)
        return reader_refuse(reader, "session %lld has more than %d frames",
                             (long long)session->number, REPORT_FRAMES_MAX);

    struct report_frame *all = array_room(session->frames, session->frame_count, sizeof *all);
    if (!all)
        return reader_no_memory(reader);

    session->frames = all;
    all[session->frame_count++] = frame;
    return true;
}

bool reader_frames(struct reader *reader, const struct report_run *run,
                   struct report_session *session)
{
    return reader_each(reader,
                       "SELECT frame, phase, period_ns, predicted_ns, alternative_ns, reason,"
                       " status, joules, latency_ns, deadline_ns FROM frame"
                       " WHERE session = ?1 AND frame >= 0 ORDER BY frame",
                       session->number, add_frame, &(struct frames){run, session});
}

/* FNV-1a over the bands that the policy asked for: two splits differ if their hashes do. */
static uint64_t hash_band(uint64_t hash, sqlite3_stmt *statement)
{
    for (int column = 1; column <= 3; column++) {
        uint64_t value = (uint64_t)sqlite3_column_int64(statement, column);
        for (int byte = 0; byte < 8; byte++)
            hash = (hash ^ (value >> 8 * byte & 0xFF)) * UINT64_C(0x100000001B3);
    }
    return hash;
}

static bool add_pass_time(struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct report_session *session = into;
    const int64_t pass = sqlite3_column_int64(row, 0);

    (void)reader;
    if (pass >= 0 && pass < COX_PASSES_MAX)
        session->pass_ns[pass] = reader_time(row, 1);
    return true;
}

static bool read_pass_times(struct reader *reader, const struct report_run *run,
                            struct report_session *session)
{
    for (uint32_t p = 0; p < COX_PASSES_MAX; p++)
        session->pass_ns[p] = NAN;
    if (run->pass_count == 1)
        return true;

    return reader_each(reader,
                       "SELECT pass, avg(end_ns - p.start_ns) FROM frame_pass p"
                       " JOIN frame USING (session, frame) WHERE session = ?1 AND status = 0"
                       " GROUP BY pass",
                       session->number, add_pass_time, session);
}

/* A band that was completed: its rows, and when its device was done. */
static void add_band(const struct report_run *run, struct report_session *session, size_t frame,
                     uint32_t device, sqlite3_stmt *statement)
{
    double rows = reader_number(statement, 3), end_ns = reader_number(statement, 4);
    double pass = reader_number(statement, 8);
    float *finish_ns = &session->finish_ns[frame * run->device_count + device];

    if (pass >= 0 && pass < run->pass_count) {
        size_t lane = frame * run->pass_count + (uint32_t)pass;
        uint32_t *sum = &session->rows[lane * run->device_count + device];

        if (rows > 0 && rows < UINT32_MAX - (double)*sum)
            *sum += (uint32_t)rows;
    }
    if (end_ns > *finish_ns)
        *finish_ns = (float)end_ns;
}

bool reader_bands(struct reader *reader, struct report_run *run, struct report_session *session)
{
    static const uint64_t hash_begin = UINT64_C(0xCBF29CE484222325);
    size_t cells = session->frame_count * run->device_count, at = 0;
    uint64_t *hashes = malloc((session->frame_count + 1) * sizeof *hashes);
    sqlite3_stmt *statement = NULL;
    int more = -1;

    session->rows = calloc(cells * run->pass_count + 1, sizeof *session->rows);
    session->finish_ns = calloc(cells + 1, sizeof *session->finish_ns);
    if (!session->rows || !session->finish_ns || !hashes) {
        reader_no_memory(reader);
        goto done;
    }
    for (size_t i = 0; i < session->frame_count; i++)
        hashes[i] = hash_begin;

    if (!read_pass_times(reader, run, session) ||
        !reader_ask(reader, &statement,
                    "SELECT frame, device, first_row, rows, end_ns, status, on_demand, attempt,"
                    " pass FROM band WHERE session = ?1 ORDER BY frame, band",
                    session->number))
        goto done;

    while ((more = reader_next(reader, statement)) > 0) {
        double frame = reader_number(statement, 0);
        uint32_t device = reader_device(run, sqlite3_column_int64(statement, 1));

        while (at < session->frame_count && session->frames[at].frame < frame)
            at++;
        if (at == session->frame_count || session->frames[at].frame != frame)
            continue;
        if (device == run->device_count) {
            run->foreign_bands++;
            continue;
        }

        if (!reader_number(statement, 6) && !reader_number(statement, 7))
            hashes[at] = hash_band(hashes[at], statement);
        if (!reader_number(statement, 5))
            add_band(run, session, at, device, statement);
    }

    for (size_t i = 1; i < session->frame_count; i++)
        session->frames[i].moved = hashes[i] != hashes[i - 1];
done:
    free(hashes);
    return reader_end(statement, more);
}

/* The frames of the oracle in the same repeat; NULL if they were not recorded. */
static const struct report_session *oracle_of(const struct report_run *run,
                                              const struct report_session *session)
{
    for (size_t i = 0; i < run->session_count; i++) {
        const struct report_session *other = &run->sessions[i];
        if (!strcmp(run->policies[other->policy], "oracle") && other->repeat == session->repeat)
            return other;
    }
    return NULL;
}

/* The oracle of a simulated run meets the same chance as the policies, so its single frames say
 * more than their median. */
void reader_oracle(struct report_run *run)
{
    for (size_t i = 0; i < run->session_count; i++) {
        struct report_session *session = &run->sessions[i];
        const struct report_session *oracle = oracle_of(run, session);
        size_t o = 0;

        if (!oracle)
            continue;
        run->oracle_by_frame = true;

        for (size_t f = 0; f < session->frame_count; f++) {
            struct report_frame *frame = &session->frames[f];

            while (o < oracle->frame_count && oracle->frames[o].frame < frame->frame)
                o++;
            frame->oracle_ns = NAN;
            if (o < oracle->frame_count && oracle->frames[o].frame == frame->frame)
                frame->oracle_ns = oracle->frames[o].time_ns;
        }
    }
}
