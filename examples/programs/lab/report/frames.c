/* The sessions of a run: their frames and bands.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* The index of a policy's name; REPORT_POLICIES_MAX if there are too many, or no memory. */
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
    struct report_session *all = realloc(run->sessions, (run->session_count + 1) * sizeof *all);
    if (!all)
        return reader_no_memory(reader);
    run->sessions = all;
    all[run->session_count++] = (struct report_session){
        .number = number, .policy = index, .repeat = repeat};
    return true;
}

bool reader_sessions(struct reader *reader, struct report_run *run)
{
    sqlite3_stmt *statement;
    if (!reader_prepare(
            reader, &statement,
            "SELECT session, kind, policy, repeat FROM session WHERE run = ?1 ORDER BY session"))
        return false;
    sqlite3_bind_int64(statement, 1, run->number);
    int more;
    while ((more = reader_next(reader, statement)) > 0) {
        const char *kind = (const char *)sqlite3_column_text(statement, 1);
        const char *policy = (const char *)sqlite3_column_text(statement, 2);
        if (kind && !strcmp(kind, "policy")) {
            if (!add_session(reader, run, sqlite3_column_int64(statement, 0),
                             policy ? policy : "(unnamed)", sqlite3_column_int64(statement, 3))) {
                more = -1;
                break;
            }
        } else if (kind && !strcmp(kind, "solo"))
            run->solo_sessions++;
        else
            run->sweep_sessions++;
    }
    sqlite3_finalize(statement);
    return more == 0;
}

bool reader_frames(struct reader *reader, const struct report_run *run,
                   struct report_session *session)
{
    sqlite3_stmt *statement;
    if (!reader_prepare(
            reader, &statement,
            "SELECT frame, phase, period_ns, predicted_ns, alternative_ns, reason, status, joules, latency_ns,"
            " deadline_ns FROM frame WHERE session = ?1 AND frame >= 0 ORDER BY frame"))
        return false;
    sqlite3_bind_int64(statement, 1, session->number);
    size_t room = 0;
    int more;
    while ((more = reader_next(reader, statement)) > 0) {
        double frame = reader_number(statement, 0);
        if (!(frame >= 0))
            continue;
        if (session->frame_count == REPORT_FRAMES_MAX) {
            reader_refuse(reader, "session %lld has more than %d frames",
                          (long long)session->number, REPORT_FRAMES_MAX);
            more = -1;
            break;
        }
        if (session->frame_count == room) {
            room = room ? 2 * room : 1024;
            struct report_frame *frames = realloc(session->frames, room * sizeof *frames);
            if (!frames) {
                reader_no_memory(reader);
                more = -1;
                break;
            }
            session->frames = frames;
        }
        sqlite3_int64 reason = sqlite3_column_int64(statement, 5);
        double period_ns = reader_number(statement, 2), joules = reader_number(statement, 7);
        struct report_frame *out = &session->frames[session->frame_count++];
        *out = (struct report_frame){.frame = frame,
                                     .phase = reader_phase(run, sqlite3_column_int64(statement, 1)),
                                     .reason = reason >= 0 && reason < REPORT_REASONS
                                                   ? (uint32_t)reason
                                                   : REPORT_REASONS - 1,
                                     .failed = reader_number(statement, 6) != 0,
                                     .time_ns = period_ns >= 0 ? floor(period_ns) : NAN,
                                     .predicted_ns = reader_time(statement, 3),
                                     .alternative_ns = reader_time(statement, 4),
                                     .joules = joules >= 0 ? joules : NAN};
        double latency_ns = reader_number(statement, 8), deadline_ns = reader_number(statement, 9);
        out->late = latency_ns >= 0 && deadline_ns > 0 ? latency_ns > deadline_ns : NAN;
        if (out->failed)
            out->time_ns = NAN;
        const struct report_phase *phase = &run->phases[out->phase];
        out->oracle_ns = NAN;
        if (out->phase < run->phase_count)
            out->oracle_ns = isnan(phase->oracle_mean_ns) ? phase->oracle_ns
                                                          : phase->oracle_mean_ns;
    }
    sqlite3_finalize(statement);
    return more == 0;
}

/* FNV-1a over the bands that the policy asked for: what tells a split from another. */
static uint64_t hash_band(uint64_t hash, sqlite3_stmt *statement)
{
    for (int column = 1; column <= 3; column++) {
        uint64_t value = (uint64_t)sqlite3_column_int64(statement, column);
        for (int byte = 0; byte < 8; byte++)
            hash = (hash ^ (value >> 8 * byte & 0xFF)) * UINT64_C(0x100000001B3);
    }
    return hash;
}

static bool read_pass_times(struct reader *reader, const struct report_run *run,
                            struct report_session *session)
{
    sqlite3_stmt *statement;
    for (uint32_t p = 0; p < COX_PASSES_MAX; p++)
        session->pass_ns[p] = NAN;
    if (run->pass_count == 1)
        return true;
    if (!reader_prepare(
            reader, &statement,
            "SELECT pass, avg(end_ns - p.start_ns) FROM frame_pass p JOIN frame USING (session, frame)"
            " WHERE session = ?1 AND status = 0 AND pass BETWEEN 0 AND ?2 GROUP BY pass"))
        return false;
    sqlite3_bind_int64(statement, 1, session->number);
    sqlite3_bind_int(statement, 2, COX_PASSES_MAX - 1);
    int more;
    while ((more = reader_next(reader, statement)) > 0)
        session->pass_ns[sqlite3_column_int(statement, 0)] = reader_time(statement, 1);
    sqlite3_finalize(statement);
    return more == 0;
}

bool reader_bands(struct reader *reader, struct report_run *run, struct report_session *session)
{
    static const uint64_t hash_begin = UINT64_C(0xCBF29CE484222325);
    size_t cells = session->frame_count * run->device_count;
    session->rows = calloc(cells * run->pass_count + 1, sizeof *session->rows);
    session->finish_ns = calloc(cells + 1, sizeof *session->finish_ns);
    uint64_t *hashes = malloc((session->frame_count + 1) * sizeof *hashes);
    sqlite3_stmt *statement = NULL;
    int more = -1;
    if (!session->rows || !session->finish_ns || !hashes) {
        reader_no_memory(reader);
        goto done;
    }
    for (size_t i = 0; i < session->frame_count; i++)
        hashes[i] = hash_begin;
    if (!read_pass_times(reader, run, session))
        goto done;
    if (!reader_prepare(
            reader, &statement,
            "SELECT frame, device, first_row, rows, end_ns, status, on_demand, attempt, pass FROM band WHERE session = ?1"
            " ORDER BY frame, band"))
        goto done;
    sqlite3_bind_int64(statement, 1, session->number);
    size_t at = 0;
    while ((more = reader_next(reader, statement)) > 0) {
        double frame = reader_number(statement, 0), rows = reader_number(statement, 3),
               end_ns = reader_number(statement, 4);
        while (at < session->frame_count && session->frames[at].frame < frame)
            at++;
        if (at == session->frame_count || session->frames[at].frame != frame)
            continue;
        uint32_t device = reader_device(run, sqlite3_column_int64(statement, 1));
        if (device == run->device_count) {
            run->foreign_bands++;
            continue;
        }
        if (!reader_number(statement, 6) && !reader_number(statement, 7))
            hashes[at] = hash_band(hashes[at], statement);
        if (reader_number(statement, 5) != 0)
            continue;
        const size_t cell = at * run->device_count + device;
        const double pass = reader_number(statement, 8);
        if (pass >= 0 && pass < run->pass_count) {
            uint32_t *sum =
                &session
                     ->rows[(at * run->pass_count + (uint32_t)pass) * run->device_count + device];
            *sum += rows > 0 && rows < UINT32_MAX - (double)*sum ? (uint32_t)rows : 0;
        }
        if (end_ns > session->finish_ns[cell])
            session->finish_ns[cell] = (float)end_ns;
    }
    for (size_t i = 1; i < session->frame_count; i++)
        session->frames[i].moved = hashes[i] != hashes[i - 1];
done:
    sqlite3_finalize(statement);
    free(hashes);
    return more == 0;
}

/* The oracle of a simulated run meets the same chance as the policies: its frames say more than their median. */
void reader_oracle(struct report_run *run)
{
    for (size_t i = 0; i < run->session_count; i++) {
        struct report_session *session = &run->sessions[i];
        const struct report_session *oracle = NULL;
        for (size_t k = 0; k < run->session_count && !oracle; k++)
            if (!strcmp(run->policies[run->sessions[k].policy], "oracle") &&
                run->sessions[k].repeat == session->repeat)
                oracle = &run->sessions[k];
        if (!oracle)
            continue;
        run->oracle_by_frame = true;
        for (size_t f = 0, o = 0; f < session->frame_count; f++) {
            while (o < oracle->frame_count && oracle->frames[o].frame < session->frames[f].frame)
                o++;
            bool there = o < oracle->frame_count &&
                         oracle->frames[o].frame == session->frames[f].frame;
            session->frames[f].oracle_ns = there ? oracle->frames[o].time_ns : NAN;
        }
    }
}
