/* SPDX-License-Identifier: Apache-2.0 */
#include "lab_report_data.h"
#include "lab_store.h"

#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 4000 };

/* Beyond it a double no longer holds every integer; as nanoseconds, a hundred days. */
static const double number_max = 9007199254740992.0;

struct reader {
    sqlite3 *db;
    const char *path;
    char *why;
    size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct reader *reader, const char *format, ...)
{
    int used = snprintf(reader->why, reader->why_bytes, "%s: ", reader->path);
    if (used < 0 || (size_t)used >= reader->why_bytes)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(reader->why + used, reader->why_bytes - (size_t)used, format, args);
    va_end(args);
    return false;
}

static bool no_memory(struct reader *reader)
{
    return refuse(reader, "out of memory");
}

static bool refuse_sql(struct reader *reader)
{
    int code = sqlite3_errcode(reader->db) & 0xFF;
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        return refuse(reader, "is damaged: %s", sqlite3_errmsg(reader->db));
    return refuse(reader, "cannot be read: %s", sqlite3_errmsg(reader->db));
}

static bool prepare(struct reader *reader, sqlite3_stmt **out, const char *sql)
{
    return sqlite3_prepare_v2(reader->db, sql, -1, out, NULL) == SQLITE_OK || refuse_sql(reader);
}

/* The next row: 1; the end: 0; an error, which is then told: -1. */
static int next_row(struct reader *reader, sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        return 1;
    return code == SQLITE_DONE ? 0 : (refuse_sql(reader), -1);
}

/* NaN where there is no number, or none that can be meant. */
static double number_at(sqlite3_stmt *statement, int column)
{
    int type = sqlite3_column_type(statement, column);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
        return NAN;
    double value = sqlite3_column_double(statement, column);
    return isfinite(value) && fabs(value) <= number_max ? value : NAN;
}

/* NaN where the number is less than a nanosecond: zero stands for "not known". */
static double time_at(sqlite3_stmt *statement, int column)
{
    double value = number_at(statement, column);
    return value >= 1 ? value : NAN;
}

/* Owned by the caller; NULL for NULL, a blob, and when there is no memory. */
static char *text_at(sqlite3_stmt *statement, int column)
{
    int type = sqlite3_column_type(statement, column);
    if (type == SQLITE_NULL || type == SQLITE_BLOB)
        return NULL;
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text ? strndup(text, TEXT_BYTES_MAX) : NULL;
}

/* --- Runs ------------------------------------------------------------------------------------------------------------ */

static bool read_runs(struct reader *reader, int64_t only, struct report_source *out)
{
    sqlite3_stmt *statement;
    if (!prepare(
            reader, &statement,
            "SELECT run, source, started_at, version, host, system, command, kernel, objective, meter, columns, rows, granule,"
            " in_flight, frames, deadline_ns, finished FROM run WHERE ?1 = 0 OR run = ?1 ORDER BY run"))
        return false;
    sqlite3_bind_int64(statement, 1, only);
    int more;
    while ((more = next_row(reader, statement)) > 0) {
        struct report_run *runs = realloc(out->runs, (out->run_count + 1) * sizeof *runs);
        if (!runs) {
            no_memory(reader);
            more = -1;
            break;
        }
        out->runs = runs;
        struct report_run *run = &runs[out->run_count++];
        *run = (struct report_run){.number = sqlite3_column_int64(statement, 0)};
        char **const texts[] = {&run->source,  &run->started_at, &run->version,   &run->host, &run->system,
                                &run->command, &run->kernel,     &run->objective, &run->meter};
        double *const numbers[] = {&run->columns,   &run->rows,   &run->granule,
                                   &run->in_flight, &run->frames, &run->deadline_ns};
        for (int i = 0; i < 9; i++)
            *texts[i] = text_at(statement, 1 + i);
        for (int i = 0; i < 6; i++)
            *numbers[i] = number_at(statement, 10 + i);
        run->finished = number_at(statement, 16) == 1;
    }
    sqlite3_finalize(statement);
    return more == 0;
}

static bool read_devices(struct reader *reader, struct report_run *run)
{
    sqlite3_stmt *statement;
    if (!prepare(reader, &statement,
                 "SELECT device, name, platform, driver, type, mode FROM device WHERE run = ?1 ORDER BY device"))
        return false;
    sqlite3_bind_int64(statement, 1, run->number);
    int more;
    while ((more = next_row(reader, statement)) > 0) {
        if (run->device_count == COX_DEVICES_MAX) {
            refuse(reader, "run %lld has more than %d devices", (long long)run->number, COX_DEVICES_MAX);
            more = -1;
            break;
        }
        struct report_device *device = &run->devices[run->device_count++];
        device->number = sqlite3_column_int64(statement, 0);
        device->name = text_at(statement, 1);
        device->platform = text_at(statement, 2);
        device->driver = text_at(statement, 3);
        device->type = text_at(statement, 4);
        device->mode = text_at(statement, 5);
    }
    sqlite3_finalize(statement);
    return more == 0;
}

/* Of a name without the number at its end. */
static size_t stem_letters(const char *name)
{
    size_t letters = name ? strlen(name) : 0;
    while (letters && strchr("0123456789 -_#.:", name[letters - 1]))
        letters--;
    return letters;
}

size_t report_group_letters(const struct report_run *run, uint32_t device)
{
    const char *name = run->devices[device].name;
    uint32_t members = 0;
    for (uint32_t i = 0; i < run->device_count; i++)
        members += run->devices[i].group == run->devices[device].group;
    return members > 1 ? stem_letters(name) : name ? strlen(name) : 0;
}

static void group_devices(struct report_run *run)
{
    for (uint32_t i = 0; i < run->device_count; i++) {
        size_t letters = stem_letters(run->devices[i].name);
        uint32_t like = run->device_count > REPORT_FEW_DEVICES && letters ? 0 : i;
        while (like < i && (stem_letters(run->devices[like].name) != letters ||
                            memcmp(run->devices[like].name, run->devices[i].name, letters) != 0))
            like++;
        run->devices[i].group = like < i ? run->devices[like].group : run->group_count++;
    }
}

/* device_count where there is none. */
static uint32_t find_device(const struct report_run *run, int64_t number)
{
    uint32_t device = 0;
    while (device < run->device_count && run->devices[device].number != number)
        device++;
    return device;
}

static uint32_t find_phase(const struct report_run *run, int64_t number)
{
    uint32_t phase = 0;
    while (phase < run->phase_count && run->phases[phase].number != number)
        phase++;
    return phase;
}

static struct report_phase *add_phase(struct report_run *run)
{
    struct report_phase *phase = &run->phases[run->phase_count++];
    *phase = (struct report_phase){
        .oracle_ns = NAN, .oracle_mean_ns = NAN, .best_ns = NAN, .best_mean_ns = NAN, .ideal_ns = NAN};
    for (int i = 0; i < COX_DEVICES_MAX; i++)
        phase->solo_ns[i] = phase->solo_mean_ns[i] = NAN;
    return phase;
}

static bool read_phases(struct reader *reader, struct report_run *run)
{
    sqlite3_stmt *statement;
    if (!prepare(reader, &statement,
                 "SELECT phase, first_frame, end_frame, text FROM phase WHERE run = ?1 ORDER BY phase"))
        return false;
    sqlite3_bind_int64(statement, 1, run->number);
    int more;
    while ((more = next_row(reader, statement)) > 0) {
        if (run->phase_count == REPORT_PHASES_MAX) {
            refuse(reader, "run %lld has more than %d phases", (long long)run->number, REPORT_PHASES_MAX);
            more = -1;
            break;
        }
        struct report_phase *phase = add_phase(run);
        phase->number = sqlite3_column_int64(statement, 0);
        phase->first_frame = number_at(statement, 1);
        phase->end_frame = number_at(statement, 2);
        phase->text = text_at(statement, 3);
    }
    sqlite3_finalize(statement);
    return more == 0;
}

static bool read_disturbances(struct reader *reader, struct report_run *run)
{
    sqlite3_stmt *statement;
    if (!prepare(reader, &statement,
                 "SELECT kind, text, note, first_frame, end_frame, real FROM disturbance WHERE run = ?1"
                 " ORDER BY disturbance LIMIT 256"))
        return false;
    sqlite3_bind_int64(statement, 1, run->number);
    int more;
    while ((more = next_row(reader, statement)) > 0) {
        struct report_disturbance *all = realloc(run->disturbances,
                                                 (run->disturbance_count + 1) * sizeof *run->disturbances);
        if (!all) {
            no_memory(reader);
            more = -1;
            break;
        }
        run->disturbances = all;
        struct report_disturbance *disturbance = &all[run->disturbance_count++];
        disturbance->kind = text_at(statement, 0);
        disturbance->text = text_at(statement, 1);
        disturbance->note = text_at(statement, 2);
        disturbance->first_frame = number_at(statement, 3);
        disturbance->end_frame = number_at(statement, 4);
        disturbance->real = number_at(statement, 5) == 1;
    }
    sqlite3_finalize(statement);
    /* Simulated runs have phases and no disturbances: there every second phase is another one. */
    for (uint32_t i = 0; i < run->phase_count; i++) {
        struct report_phase *phase = &run->phases[i];
        phase->disturbed = !run->disturbance_count && i % 2;
        for (size_t d = 0; d < run->disturbance_count; d++)
            phase->disturbed |= run->disturbances[d].first_frame < phase->end_frame &&
                                run->disturbances[d].end_frame > phase->first_frame;
    }
    return more == 0;
}

static bool read_references(struct reader *reader, struct report_run *run)
{
    sqlite3_stmt *statement;
    if (!prepare(
            reader, &statement,
            "SELECT phase, device, ns, mean_ns, ratios, kind = 'oracle' FROM reference WHERE run = ?1 AND frames > 0"))
        return false;
    sqlite3_bind_int64(statement, 1, run->number);
    int more;
    while ((more = next_row(reader, statement)) > 0) {
        uint32_t index = find_phase(run, sqlite3_column_int64(statement, 0));
        if (index == run->phase_count)
            continue;
        struct report_phase *phase = &run->phases[index];
        uint32_t device = find_device(run, sqlite3_column_int64(statement, 1));
        if (sqlite3_column_int(statement, 5)) {
            phase->oracle_ns = time_at(statement, 2);
            phase->oracle_mean_ns = time_at(statement, 3);
            free(phase->oracle_ratios);
            phase->oracle_ratios = text_at(statement, 4);
        } else if (device < run->device_count && sqlite3_column_type(statement, 1) == SQLITE_INTEGER) {
            phase->solo_ns[device] = time_at(statement, 2);
            phase->solo_mean_ns[device] = time_at(statement, 3);
        }
    }
    sqlite3_finalize(statement);
    return more == 0;
}

static void combine_references(struct report_run *run)
{
    for (uint32_t i = 0; i < run->phase_count; i++) {
        struct report_phase *phase = &run->phases[i];
        double rate = 0;
        for (uint32_t device = 0; device < run->device_count; device++)
            if (phase->solo_ns[device] > 0) {
                rate += 1 / phase->solo_ns[device];
                phase->best_ns = fmin(phase->best_ns, phase->solo_ns[device]);
                phase->best_mean_ns = fmin(phase->best_mean_ns, phase->solo_mean_ns[device]);
            }
        if (rate > 0)
            phase->ideal_ns = 1 / rate;
    }
}

/* --- Sessions -------------------------------------------------------------------------------------------------------- */

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

static bool add_session(struct reader *reader, struct report_run *run, int64_t number, const char *policy,
                        int64_t repeat)
{
    uint32_t index = policy_index(run, policy);
    if (index == REPORT_POLICIES_MAX || run->session_count == REPORT_SESSIONS_MAX)
        return refuse(reader, "run %lld has more than %d policies or %d sessions", (long long)run->number,
                      REPORT_POLICIES_MAX, REPORT_SESSIONS_MAX);
    struct report_session *all = realloc(run->sessions, (run->session_count + 1) * sizeof *all);
    if (!all)
        return no_memory(reader);
    run->sessions = all;
    all[run->session_count++] = (struct report_session){.number = number, .policy = index, .repeat = repeat};
    return true;
}

static bool read_sessions(struct reader *reader, struct report_run *run)
{
    sqlite3_stmt *statement;
    if (!prepare(reader, &statement,
                 "SELECT session, kind, policy, repeat FROM session WHERE run = ?1 ORDER BY session"))
        return false;
    sqlite3_bind_int64(statement, 1, run->number);
    int more;
    while ((more = next_row(reader, statement)) > 0) {
        const char *kind = (const char *)sqlite3_column_text(statement, 1);
        const char *policy = (const char *)sqlite3_column_text(statement, 2);
        if (kind && !strcmp(kind, "policy")) {
            if (!add_session(reader, run, sqlite3_column_int64(statement, 0), policy ? policy : "(unnamed)",
                             sqlite3_column_int64(statement, 3))) {
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

static bool read_frames(struct reader *reader, const struct report_run *run, struct report_session *session)
{
    sqlite3_stmt *statement;
    if (!prepare(reader, &statement,
                 "SELECT frame, phase, period_ns, predicted_ns, rival_ns, reason, status, joules FROM frame"
                 " WHERE session = ?1 AND frame >= 0 ORDER BY frame"))
        return false;
    sqlite3_bind_int64(statement, 1, session->number);
    size_t room = 0;
    int more;
    while ((more = next_row(reader, statement)) > 0) {
        double frame = number_at(statement, 0);
        if (!(frame >= 0))
            continue;
        if (session->frame_count == REPORT_FRAMES_MAX) {
            refuse(reader, "session %lld has more than %d frames", (long long)session->number, REPORT_FRAMES_MAX);
            more = -1;
            break;
        }
        if (session->frame_count == room) {
            room = room ? 2 * room : 1024;
            struct report_frame *frames = realloc(session->frames, room * sizeof *frames);
            if (!frames) {
                no_memory(reader);
                more = -1;
                break;
            }
            session->frames = frames;
        }
        sqlite3_int64 reason = sqlite3_column_int64(statement, 5);
        double period_ns = number_at(statement, 2), joules = number_at(statement, 7);
        struct report_frame *out = &session->frames[session->frame_count++];
        *out = (struct report_frame){.frame = frame,
                                     .phase = find_phase(run, sqlite3_column_int64(statement, 1)),
                                     .reason = reason >= 0 && reason < REPORT_REASONS ? (uint32_t)reason
                                                                                      : REPORT_REASONS - 1,
                                     .failed = number_at(statement, 6) != 0,
                                     .time_ns = period_ns >= 0 ? floor(period_ns) : NAN,
                                     .predicted_ns = time_at(statement, 3),
                                     .rival_ns = time_at(statement, 4),
                                     .joules = joules >= 0 ? joules : NAN};
        if (out->failed)
            out->time_ns = NAN;
        const struct report_phase *phase = &run->phases[out->phase];
        out->oracle_ns = NAN;
        if (out->phase < run->phase_count)
            out->oracle_ns = isnan(phase->oracle_mean_ns) ? phase->oracle_ns : phase->oracle_mean_ns;
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

static bool read_bands(struct reader *reader, struct report_run *run, struct report_session *session)
{
    static const uint64_t hash_begin = UINT64_C(0xCBF29CE484222325);
    size_t cells = session->frame_count * run->device_count;
    session->rows = calloc(cells + 1, sizeof *session->rows);
    session->finish_ns = calloc(cells + 1, sizeof *session->finish_ns);
    uint64_t *hashes = malloc((session->frame_count + 1) * sizeof *hashes);
    sqlite3_stmt *statement = NULL;
    int more = -1;
    if (!session->rows || !session->finish_ns || !hashes) {
        no_memory(reader);
        goto done;
    }
    for (size_t i = 0; i < session->frame_count; i++)
        hashes[i] = hash_begin;
    if (!prepare(
            reader, &statement,
            "SELECT frame, device, first_row, rows, end_ns, status, on_demand, attempt FROM band WHERE session = ?1"
            " ORDER BY frame, band"))
        goto done;
    sqlite3_bind_int64(statement, 1, session->number);
    size_t at = 0;
    while ((more = next_row(reader, statement)) > 0) {
        double frame = number_at(statement, 0), rows = number_at(statement, 3), end_ns = number_at(statement, 4);
        while (at < session->frame_count && session->frames[at].frame < frame)
            at++;
        if (at == session->frame_count || session->frames[at].frame != frame)
            continue;
        uint32_t device = find_device(run, sqlite3_column_int64(statement, 1));
        if (device == run->device_count) {
            run->foreign_bands++;
            continue;
        }
        if (!number_at(statement, 6) && !number_at(statement, 7))
            hashes[at] = hash_band(hashes[at], statement);
        if (number_at(statement, 5) != 0)
            continue;
        size_t cell = at * run->device_count + device;
        if (rows > 0 && rows < UINT32_MAX - (double)session->rows[cell])
            session->rows[cell] += (uint32_t)rows;
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
static void take_oracle_frames(struct report_run *run)
{
    for (size_t i = 0; i < run->session_count; i++) {
        struct report_session *session = &run->sessions[i];
        const struct report_session *oracle = NULL;
        for (size_t k = 0; k < run->session_count && !oracle; k++)
            if (!strcmp(run->policies[run->sessions[k].policy], "oracle") && run->sessions[k].repeat == session->repeat)
                oracle = &run->sessions[k];
        if (!oracle)
            continue;
        run->oracle_by_frame = true;
        for (size_t f = 0, o = 0; f < session->frame_count; f++) {
            while (o < oracle->frame_count && oracle->frames[o].frame < session->frames[f].frame)
                o++;
            bool there = o < oracle->frame_count && oracle->frames[o].frame == session->frames[f].frame;
            session->frames[f].oracle_ns = there ? oracle->frames[o].time_ns : NAN;
        }
    }
}

static bool read_run(struct reader *reader, struct report_run *run)
{
    if (!read_devices(reader, run) || !read_phases(reader, run) || !read_disturbances(reader, run) ||
        !read_references(reader, run) || !read_sessions(reader, run))
        return false;
    combine_references(run);
    group_devices(run);
    double cells = 0;
    for (size_t i = 0; i < run->session_count; i++) {
        struct report_session *session = &run->sessions[i];
        if (!read_frames(reader, run, session))
            return false;
        cells += (double)session->frame_count * (run->device_count + 4);
        if (cells > REPORT_CELLS_MAX)
            return refuse(reader, "run %lld has too many frames for one page", (long long)run->number);
        if (!read_bands(reader, run, session))
            return false;
        if (session->frame_count)
            run->frame_end = fmax(run->frame_end, session->frames[session->frame_count - 1].frame + 1);
    }
    take_oracle_frames(run);
    return true;
}

static bool read_reasons(struct reader *reader, struct report_source *out)
{
    sqlite3_stmt *statement;
    if (!prepare(reader, &statement, "SELECT reason, text FROM reason WHERE reason BETWEEN 0 AND ?1"))
        return false;
    sqlite3_bind_int(statement, 1, REPORT_REASONS - 2);
    int more;
    while ((more = next_row(reader, statement)) > 0) {
        char **text = &out->reasons[sqlite3_column_int(statement, 0)];
        free(*text);
        *text = text_at(statement, 1);
    }
    sqlite3_finalize(statement);
    return more == 0;
}

/* A view in the place of a table could compute for ever. */
static bool check_tables(struct reader *reader)
{
    sqlite3_stmt *statement;
    if (!prepare(reader, &statement,
                 "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE TABLE%' AND name IN"
                 " ('run', 'device', 'phase', 'disturbance', 'session', 'frame', 'band', 'reference', 'reason')"))
        return false;
    int more = next_row(reader, statement);
    int tables = more > 0 ? sqlite3_column_int(statement, 0) : 0;
    sqlite3_finalize(statement);
    return more >= 0 && (tables == 9 || refuse(reader, "is damaged: %d of the 9 tables are there", tables));
}

bool report_read(const char *path, int64_t run, struct report_source *out, char *why, size_t why_bytes)
{
    struct reader reader = {.path = path, .why = why, .why_bytes = why_bytes};
    *out = (struct report_source){0};
    if (!lab_store_open_to_read(path, &reader.db, why, why_bytes))
        return false;
    sqlite3_limit(reader.db, SQLITE_LIMIT_LENGTH, 1 << 20);
    bool good = (sqlite3_exec(reader.db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK || refuse_sql(&reader)) &&
                check_tables(&reader) && read_runs(&reader, run, out) && read_reasons(&reader, out);
    if (good && !out->run_count)
        good = run ? refuse(&reader, "has no run %lld", (long long)run) : refuse(&reader, "holds no run yet");
    size_t frames = 0;
    for (size_t i = 0; good && i < out->run_count; i++) {
        good = read_run(&reader, &out->runs[i]);
        for (size_t s = 0; s < out->runs[i].session_count; s++)
            frames += out->runs[i].sessions[s].frame_count;
    }
    if (good && !frames)
        good = refuse(&reader, "holds no frame of a policy yet");
    sqlite3_close(reader.db);
    if (!good)
        report_free(out);
    return good;
}

static void free_run(struct report_run *run)
{
    char *const texts[] = {run->source,  run->started_at, run->version,   run->host, run->system,
                           run->command, run->kernel,     run->objective, run->meter};
    for (int i = 0; i < 9; i++)
        free(texts[i]);
    for (uint32_t i = 0; i < run->device_count; i++) {
        const struct report_device *device = &run->devices[i];
        char *const names[] = {device->name, device->platform, device->driver, device->type, device->mode};
        for (int k = 0; k < 5; k++)
            free(names[k]);
    }
    for (uint32_t i = 0; i < run->phase_count; i++) {
        free(run->phases[i].text);
        free(run->phases[i].oracle_ratios);
    }
    for (size_t i = 0; i < run->disturbance_count; i++) {
        free(run->disturbances[i].kind);
        free(run->disturbances[i].text);
        free(run->disturbances[i].note);
    }
    free(run->disturbances);
    for (uint32_t i = 0; i < run->policy_count; i++)
        free(run->policies[i]);
    for (size_t i = 0; i < run->session_count; i++) {
        free(run->sessions[i].frames);
        free(run->sessions[i].rows);
        free(run->sessions[i].finish_ns);
    }
    free(run->sessions);
}

void report_free(struct report_source *source)
{
    for (size_t i = 0; i < source->run_count; i++)
        free_run(&source->runs[i]);
    free(source->runs);
    for (int i = 0; i < REPORT_REASONS; i++)
        free(source->reasons[i]);
    *source = (struct report_source){0};
}

const char *report_reason(const struct report_source *source, uint32_t reason)
{
    if (reason < REPORT_REASONS && source->reasons[reason] && *source->reasons[reason])
        return source->reasons[reason];
    return cox_reason_text((enum cox_reason)reason);
}
