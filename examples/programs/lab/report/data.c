/* SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"
#include "lab/store/database.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

static bool read_runs(struct reader *reader, int64_t only, struct report_source *out)
{
    sqlite3_stmt *statement;
    if (!reader_prepare(
            reader, &statement,
            "SELECT run, source, started_at, version, host, system, command, kernel, objective, meter, columns, rows, granule,"
            " in_flight, frames, deadline_ns, foreign_load, busy, finished FROM run WHERE ?1 = 0 OR run = ?1 ORDER BY run"))
        return false;
    sqlite3_bind_int64(statement, 1, only);
    int more;
    while ((more = reader_next(reader, statement)) > 0) {
        struct report_run *runs = realloc(out->runs, (out->run_count + 1) * sizeof *runs);
        if (!runs) {
            reader_no_memory(reader);
            more = -1;
            break;
        }
        out->runs = runs;
        struct report_run *run = &runs[out->run_count++];
        *run = (struct report_run){.number = sqlite3_column_int64(statement, 0)};
        char **const texts[] = {&run->source, &run->started_at, &run->version,
                                &run->host,   &run->system,     &run->command,
                                &run->kernel, &run->objective,  &run->meter};
        double *const numbers[] = {&run->columns,     &run->rows,   &run->granule,
                                   &run->in_flight,   &run->frames, &run->deadline_ns,
                                   &run->foreign_load};
        for (int i = 0; i < 9; i++)
            *texts[i] = reader_text(statement, 1 + i);
        for (int i = 0; i < 7; i++)
            *numbers[i] = reader_number(statement, 10 + i);
        run->busy = reader_number(statement, 17) == 1;
        run->finished = reader_number(statement, 18) == 1;
    }
    sqlite3_finalize(statement);
    return more == 0;
}

/* Earlier versions have no such table. */
static bool read_settings(struct reader *reader, struct report_run *run)
{
    static const char *const names[] = {"reserve", "reserved_core", "ratio"};
    char **const texts[] = {&run->reserve, &run->reserved_core, &run->ratio};
    sqlite3_stmt *statement;
    if (!reader_prepare(
            reader, &statement,
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
            " AND name = 'setting'"))
        return false;
    int more = reader_next(reader, statement);
    bool there = more > 0 && sqlite3_column_int(statement, 0) == 1;
    sqlite3_finalize(statement);
    if (!there)
        return more >= 0;
    if (!reader_prepare(reader, &statement,
                        "SELECT value FROM setting WHERE run = ?1 AND name = ?2"))
        return false;
    for (int i = 0; i < 3 && more >= 0; i++) {
        sqlite3_bind_int64(statement, 1, run->number);
        sqlite3_bind_text(statement, 2, names[i], -1, SQLITE_STATIC);
        more = reader_next(reader, statement);
        if (more > 0)
            *texts[i] = reader_text(statement, 0);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return more >= 0;
}

static bool read_devices(struct reader *reader, struct report_run *run)
{
    sqlite3_stmt *statement;
    if (!reader_prepare(
            reader, &statement,
            "SELECT device, name, platform, driver, type, mode FROM device WHERE run = ?1 ORDER BY device"))
        return false;
    sqlite3_bind_int64(statement, 1, run->number);
    int more;
    while ((more = reader_next(reader, statement)) > 0) {
        if (run->device_count == COX_DEVICES_MAX) {
            reader_refuse(reader, "run %lld has more than %d devices", (long long)run->number,
                          COX_DEVICES_MAX);
            more = -1;
            break;
        }
        struct report_device *device = &run->devices[run->device_count++];
        device->number = sqlite3_column_int64(statement, 0);
        device->name = reader_text(statement, 1);
        device->platform = reader_text(statement, 2);
        device->driver = reader_text(statement, 3);
        device->type = reader_text(statement, 4);
        device->mode = reader_text(statement, 5);
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

/* Their numbers are their places. */
static bool read_passes(struct reader *reader, struct report_run *run)
{
    sqlite3_stmt *statement;
    run->pass_count = 1;
    if (!reader_prepare(
            reader, &statement,
            "SELECT pass, name FROM pass WHERE run = ?1 AND pass BETWEEN 0 AND ?2 ORDER BY pass"))
        return false;
    sqlite3_bind_int64(statement, 1, run->number);
    sqlite3_bind_int(statement, 2, COX_PASSES_MAX - 1);
    int more;
    while ((more = reader_next(reader, statement)) > 0) {
        const uint32_t pass = (uint32_t)sqlite3_column_int(statement, 0);
        run->passes[pass] = reader_text(statement, 1);
        run->pass_count = pass + 1;
    }
    sqlite3_finalize(statement);
    return more == 0;
}

static struct report_phase *add_phase(struct report_run *run)
{
    struct report_phase *phase = &run->phases[run->phase_count++];
    *phase = (struct report_phase){.oracle_ns = NAN,
                                   .oracle_mean_ns = NAN,
                                   .oracle_p90_ns = NAN,
                                   .best_ns = NAN,
                                   .best_mean_ns = NAN,
                                   .ideal_ns = NAN};
    for (int i = 0; i < COX_DEVICES_MAX; i++)
        phase->solo_ns[i] = phase->solo_mean_ns[i] = NAN;
    return phase;
}

static bool read_phases(struct reader *reader, struct report_run *run)
{
    sqlite3_stmt *statement;
    if (!reader_prepare(
            reader, &statement,
            "SELECT phase, first_frame, end_frame, text FROM phase WHERE run = ?1 ORDER BY phase"))
        return false;
    sqlite3_bind_int64(statement, 1, run->number);
    int more;
    while ((more = reader_next(reader, statement)) > 0) {
        if (run->phase_count == REPORT_PHASES_MAX) {
            reader_refuse(reader, "run %lld has more than %d phases", (long long)run->number,
                          REPORT_PHASES_MAX);
            more = -1;
            break;
        }
        struct report_phase *phase = add_phase(run);
        phase->number = sqlite3_column_int64(statement, 0);
        phase->first_frame = reader_number(statement, 1);
        phase->end_frame = reader_number(statement, 2);
        phase->text = reader_text(statement, 3);
    }
    sqlite3_finalize(statement);
    return more == 0;
}

static bool read_disturbances(struct reader *reader, struct report_run *run)
{
    sqlite3_stmt *statement;
    if (!reader_prepare(
            reader, &statement,
            "SELECT kind, text, note, first_frame, end_frame, real FROM disturbance WHERE run = ?1"
            " ORDER BY disturbance LIMIT 256"))
        return false;
    sqlite3_bind_int64(statement, 1, run->number);
    int more;
    while ((more = reader_next(reader, statement)) > 0) {
        struct report_disturbance *all = realloc(run->disturbances, (run->disturbance_count + 1) *
                                                                        sizeof *run->disturbances);
        if (!all) {
            reader_no_memory(reader);
            more = -1;
            break;
        }
        run->disturbances = all;
        struct report_disturbance *disturbance = &all[run->disturbance_count++];
        disturbance->kind = reader_text(statement, 0);
        disturbance->text = reader_text(statement, 1);
        disturbance->note = reader_text(statement, 2);
        disturbance->first_frame = reader_number(statement, 3);
        disturbance->end_frame = reader_number(statement, 4);
        disturbance->real = reader_number(statement, 5) == 1;
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
    if (!reader_prepare(
            reader, &statement,
            "SELECT phase, device, ns, mean_ns, ratios, kind = 'oracle', p90_ns FROM reference WHERE run = ?1 AND frames > 0"))
        return false;
    sqlite3_bind_int64(statement, 1, run->number);
    int more;
    while ((more = reader_next(reader, statement)) > 0) {
        uint32_t index = reader_phase(run, sqlite3_column_int64(statement, 0));
        if (index == run->phase_count)
            continue;
        struct report_phase *phase = &run->phases[index];
        uint32_t device = reader_device(run, sqlite3_column_int64(statement, 1));
        if (sqlite3_column_int(statement, 5)) {
            phase->oracle_ns = reader_time(statement, 2);
            phase->oracle_mean_ns = reader_time(statement, 3);
            phase->oracle_p90_ns = reader_time(statement, 6);
            free(phase->oracle_ratios);
            phase->oracle_ratios = reader_text(statement, 4);
        } else if (device < run->device_count &&
                   sqlite3_column_type(statement, 1) == SQLITE_INTEGER) {
            phase->solo_ns[device] = reader_time(statement, 2);
            phase->solo_mean_ns[device] = reader_time(statement, 3);
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

static bool read_run(struct reader *reader, struct report_run *run)
{
    if (!read_settings(reader, run) || !read_devices(reader, run) || !read_passes(reader, run) ||
        !read_phases(reader, run) || !read_disturbances(reader, run) ||
        !read_references(reader, run) || !reader_sessions(reader, run))
        return false;
    combine_references(run);
    group_devices(run);
    double cells = 0;
    for (size_t i = 0; i < run->session_count; i++) {
        struct report_session *session = &run->sessions[i];
        if (!reader_frames(reader, run, session))
            return false;
        cells += (double)session->frame_count * (run->pass_count * run->device_count + 4);
        if (cells > REPORT_CELLS_MAX)
            return reader_refuse(reader, "run %lld has too many frames for one page",
                                 (long long)run->number);
        if (!reader_bands(reader, run, session))
            return false;
        if (session->frame_count)
            run->frame_end = fmax(run->frame_end,
                                  session->frames[session->frame_count - 1].frame + 1);
    }
    reader_oracle(run);
    return reader_gauges(reader, run);
}

static bool read_reasons(struct reader *reader, struct report_source *out)
{
    sqlite3_stmt *statement;
    if (!reader_prepare(reader, &statement,
                        "SELECT reason, text FROM reason WHERE reason BETWEEN 0 AND ?1"))
        return false;
    sqlite3_bind_int(statement, 1, REPORT_REASONS - 2);
    int more;
    while ((more = reader_next(reader, statement)) > 0) {
        char **text = &out->reasons[sqlite3_column_int(statement, 0)];
        free(*text);
        *text = reader_text(statement, 1);
    }
    sqlite3_finalize(statement);
    return more == 0;
}

/* A view in the place of a table could compute for ever. */
static bool check_tables(struct reader *reader)
{
    sqlite3_stmt *statement;
    if (!reader_prepare(
            reader, &statement,
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE TABLE%' AND name IN"
            " ('run', 'device', 'phase', 'disturbance', 'session', 'frame', 'band', 'reference', 'reason')"))
        return false;
    int more = reader_next(reader, statement);
    int tables = more > 0 ? sqlite3_column_int(statement, 0) : 0;
    sqlite3_finalize(statement);
    return more >= 0 && (tables == 9 ||
                         reader_refuse(reader, "is damaged: %d of the 9 tables are there", tables));
}

bool report_read(const char *path, int64_t run, struct report_source *out, char *why,
                 size_t why_bytes)
{
    struct reader reader = {.path = path, .why = why, .why_bytes = why_bytes};
    *out = (struct report_source){0};
    if (!lab_store_open_to_read(path, &reader.db, why, why_bytes))
        return false;
    sqlite3_limit(reader.db, SQLITE_LIMIT_LENGTH, 1 << 20);
    bool good = (sqlite3_exec(reader.db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK ||
                 reader_refuse_sql(&reader)) &&
                check_tables(&reader) && read_runs(&reader, run, out) && read_reasons(&reader, out);
    if (good && !out->run_count)
        good = run ? reader_refuse(&reader, "has no run %lld", (long long)run)
                   : reader_refuse(&reader, "holds no run yet");
    size_t frames = 0;
    for (size_t i = 0; good && i < out->run_count; i++) {
        good = read_run(&reader, &out->runs[i]);
        for (size_t s = 0; s < out->runs[i].session_count; s++)
            frames += out->runs[i].sessions[s].frame_count;
    }
    if (good && !frames)
        good = reader_refuse(&reader, "holds no frame of a policy yet");
    sqlite3_close(reader.db);
    if (!good)
        report_free(out);
    return good;
}

static void free_run(struct report_run *run)
{
    char *const texts[] = {run->source, run->started_at, run->version,       run->host,
                           run->system, run->command,    run->kernel,        run->objective,
                           run->meter,  run->reserve,    run->reserved_core, run->ratio};
    for (int i = 0; i < 12; i++)
        free(texts[i]);
    for (uint32_t i = 0; i < COX_PASSES_MAX; i++)
        free(run->passes[i]);
    for (uint32_t i = 0; i < run->device_count; i++) {
        const struct report_device *device = &run->devices[i];
        char *const names[] = {device->name, device->platform, device->driver, device->type,
                               device->mode};
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
    report_gauges_free(run);
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
