/* SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"
#include "lab/array.h"
#include "lab/store/database.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* Texts of a row into fields, from a column on. */
static void take_texts(struct reader *reader, sqlite3_stmt *statement, int column,
                       char **const *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *fields[i] = reader_text(reader, statement, column + (int)i);
}

static void free_texts(char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool add_run(struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct report_source *out = into;
    struct report_run *runs = array_room(out->runs, out->run_count, sizeof *runs);
    if (!runs)
        return reader_no_memory(reader);

    struct report_run *run = &runs[out->run_count++];
    char **const texts[] = {&run->source, &run->started_at, &run->version,
                            &run->host,   &run->system,     &run->command,
                            &run->kernel, &run->objective,  &run->meter};
    double *const numbers[] = {&run->columns,     &run->rows,   &run->row_alignment,
                               &run->in_flight,   &run->frames, &run->deadline_ns,
                               &run->foreign_load};

    out->runs = runs;
    *run = (struct report_run){.number = sqlite3_column_int64(row, 0)};
    take_texts(reader, row, 1, texts, COUNT(texts));
    for (size_t i = 0; i < COUNT(numbers); i++)
        *numbers[i] = reader_number(row, 10 + (int)i);
    run->busy = reader_number(row, 17) == 1;
    run->finished = reader_number(row, 18) == 1;
    return true;
}

/* Databases of earlier versions have no such table. */
static bool read_settings(struct reader *reader, struct report_run *run)
{
    static const char *const names[] = {"reserve",       "reserved_core",  "ratio",
                                        "commit",        "build_type",     "compiler",
                                        "build_flags",   "program_sha256", "library_sha256",
                                        "kernel_sha256", "scenario_sha256"};
    char **const texts[] = {&run->reserve,       &run->reserved_core,  &run->ratio,
                            &run->commit,        &run->build_type,     &run->compiler,
                            &run->build_flags,   &run->program_sha256, &run->library_sha256,
                            &run->kernel_sha256, &run->scenario_sha256};
    sqlite3_stmt *statement;
    double tables;

    if (!reader_count(reader,
                      "SELECT count(*) FROM sqlite_schema WHERE ?1 AND type = 'table'"
                      " AND sql LIKE 'CREATE TABLE%' AND name = 'setting'",
                      1, &tables))
        return false;
    if (tables != 1)
        return true;

    if (!reader_ask(reader, &statement, "SELECT value FROM setting WHERE run = ?1 AND name = ?2",
                    run->number))
        return false;

    int more = 0;
    for (size_t i = 0; i < COUNT(names) && more >= 0; i++) {
        sqlite3_bind_text(statement, 2, names[i], -1, SQLITE_STATIC);
        more = reader_next(reader, statement);
        if (more > 0)
            *texts[i] = reader_text(reader, statement, 0);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return more >= 0;
}

static bool add_device(struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct report_run *run = into;

    if (run->device_count == COX_DEVICES_MAX)
        return reader_refuse(reader, "run %lld has more than %d devices", (long long)run->number,
                             COX_DEVICES_MAX);

    struct report_device *device = &run->devices[run->device_count++];
    char **const texts[] = {&device->name, &device->platform, &device->driver, &device->type,
                            &device->mode};
    device->number = sqlite3_column_int64(row, 0);
    take_texts(reader, row, 1, texts, COUNT(texts));
    return true;
}

/* The length of a name without the number at its end. */
static size_t stem_letters(const char *name)
{
    size_t letters = 0;

    if (name)
        letters = strlen(name);
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

    if (!name)
        return 0;
    if (members > 1)
        return stem_letters(name);
    return strlen(name);
}

static void group_devices(struct report_run *run)
{
    for (uint32_t i = 0; i < run->device_count; i++) {
        struct report_device *device = &run->devices[i];
        size_t letters = stem_letters(device->name);
        uint32_t like = i; /* the first device of the same group */

        if (run->device_count > REPORT_FEW_DEVICES && letters)
            like = 0;
        while (like < i && (stem_letters(run->devices[like].name) != letters ||
                            memcmp(run->devices[like].name, device->name, letters) != 0))
            like++;

        if (like < i)
            device->group = run->devices[like].group;
        else
            device->group = run->group_count++;
    }
}

/* The number of a pass is its index. */
static bool add_pass(struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct report_run *run = into;
    const int64_t pass = sqlite3_column_int64(row, 0);

    if (sqlite3_column_type(row, 0) != SQLITE_INTEGER || pass < 0 || pass >= COX_PASSES_MAX)
        return true;

    free(run->passes[pass]);
    run->passes[pass] = reader_text(reader, row, 1);
    run->pass_count = (uint32_t)pass + 1;
    return true;
}

static struct report_phase *new_phase(struct report_run *run)
{
    struct report_phase *phase = &run->phases[run->phase_count++];
    *phase = (struct report_phase){.oracle_ns = NAN,
                                   .oracle_mean_ns = NAN,
                                   .oracle_p90_ns = NAN,
                                   .best_ns = NAN,
                                   .best_mean_ns = NAN,
                                   .ideal_ns = NAN};

    for (int i = 0; i < COX_DEVICES_MAX; i++)
        phase->single_device_ns[i] = phase->solo_mean_ns[i] = NAN;
    return phase;
}

static bool add_phase(struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct report_run *run = into;

    if (run->phase_count == REPORT_PHASES_MAX)
        return reader_refuse(reader, "run %lld has more than %d phases", (long long)run->number,
                             REPORT_PHASES_MAX);

    struct report_phase *phase = new_phase(run);
    phase->number = sqlite3_column_int64(row, 0);
    phase->first_frame = reader_number(row, 1);
    phase->end_frame = reader_number(row, 2);
    phase->text = reader_text(reader, row, 3);
    return true;
}

/* Simulated runs have phases but no disturbances: in these every second phase is a disturbed
 * one. */
static void mark_disturbed(struct report_run *run)
{
    for (uint32_t i = 0; i < run->phase_count; i++) {
        struct report_phase *phase = &run->phases[i];

        phase->disturbed = !run->disturbance_count && i % 2;
        for (size_t d = 0; d < run->disturbance_count; d++)
            phase->disturbed |= run->disturbances[d].first_frame < phase->end_frame &&
                                run->disturbances[d].end_frame > phase->first_frame;
    }
}

static bool add_disturbance(struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct report_run *run = into;
    struct report_disturbance *all = array_room(run->disturbances, run->disturbance_count,
                                                sizeof *all);
    if (!all)
        return reader_no_memory(reader);

    run->disturbances = all;
    all[run->disturbance_count++] = (struct report_disturbance){
        .kind = reader_text(reader, row, 0),
        .text = reader_text(reader, row, 1),
        .note = reader_text(reader, row, 2),
        .first_frame = reader_number(row, 3),
        .end_frame = reader_number(row, 4),
        .real = reader_number(row, 5) == 1,
    };
    return true;
}

static bool add_reference(struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct report_run *run = into;
    uint32_t index = reader_phase(run, sqlite3_column_int64(row, 0));
    uint32_t device = reader_device(run, sqlite3_column_int64(row, 1));

    (void)reader;
    if (index == run->phase_count)
        return true;

    struct report_phase *phase = &run->phases[index];
    if (sqlite3_column_int(row, 5)) {
        phase->oracle_ns = reader_time(row, 2);
        phase->oracle_mean_ns = reader_time(row, 3);
        phase->oracle_p90_ns = reader_time(row, 6);
        free(phase->oracle_ratios);
        phase->oracle_ratios = reader_text(reader, row, 4);
    } else if (device < run->device_count && sqlite3_column_type(row, 1) == SQLITE_INTEGER) {
        phase->single_device_ns[device] = reader_time(row, 2);
        phase->solo_mean_ns[device] = reader_time(row, 3);
    }
    return true;
}

/* The rows of a run, in an order in which each finds what it refers to. */
static const struct {
    const char *sql;
    reader_row_fn *add;
} queries[] = {
    {"SELECT device, name, platform, driver, type, mode FROM device WHERE run = ?1 ORDER BY device",
     add_device},
    {"SELECT pass, name FROM pass WHERE run = ?1 ORDER BY pass", add_pass},
    {"SELECT phase, first_frame, end_frame, text FROM phase WHERE run = ?1 ORDER BY phase",
     add_phase},
    {"SELECT kind, text, note, first_frame, end_frame, real FROM disturbance WHERE run = ?1"
     " ORDER BY disturbance LIMIT 256",
     add_disturbance},
    {"SELECT phase, device, ns, mean_ns, ratios, kind = 'oracle', p90_ns FROM reference"
     " WHERE run = ?1 AND frames > 0",
     add_reference},
};

static void combine_references(struct report_run *run)
{
    for (uint32_t i = 0; i < run->phase_count; i++) {
        struct report_phase *phase = &run->phases[i];
        double rate = 0;

        for (uint32_t device = 0; device < run->device_count; device++)
            if (phase->single_device_ns[device] > 0) {
                rate += 1 / phase->single_device_ns[device];
                phase->best_ns = fmin(phase->best_ns, phase->single_device_ns[device]);
                phase->best_mean_ns = fmin(phase->best_mean_ns, phase->solo_mean_ns[device]);
            }

        if (rate > 0)
            phase->ideal_ns = 1 / rate;
    }
}

static bool read_run(struct reader *reader, struct report_run *run)
{
    double cells = 0;

    run->pass_count = 1;
    if (!read_settings(reader, run))
        return false;
    for (size_t i = 0; i < COUNT(queries); i++)
        if (!reader_each(reader, queries[i].sql, run->number, queries[i].add, run))
            return false;
    if (!reader_sessions(reader, run))
        return false;
    mark_disturbed(run);
    combine_references(run);
    group_devices(run);

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

static bool add_reason(struct reader *reader, sqlite3_stmt *row, void *into)
{
    char **text = &((struct report_source *)into)->reasons[sqlite3_column_int(row, 0)];

    free(*text);
    *text = reader_text(reader, row, 1);
    return true;
}

/* A view with the name of a table could compute endlessly. */
static bool check_tables(struct reader *reader)
{
    double tables;

    if (!reader_count(reader,
                      "SELECT count(*) FROM sqlite_schema WHERE ?1 AND type = 'table'"
                      " AND sql LIKE 'CREATE TABLE%' AND name IN ('run', 'device', 'phase',"
                      " 'disturbance', 'session', 'frame', 'band', 'reference', 'reason')",
                      1, &tables))
        return false;

    return tables == 9 || reader_refuse(reader, "is damaged: it has %.0f of the 9 tables", tables);
}

/* All of it, in the transaction that is open. */
static bool read_source(struct reader *reader, int64_t only, struct report_source *out)
{
    size_t frames = 0;

    if (!check_tables(reader) ||
        !reader_each(reader,
                     "SELECT run, source, started_at, version, host, system, command, kernel,"
                     " objective, meter, columns, rows, granule, in_flight, frames, deadline_ns,"
                     " foreign_load, busy, finished FROM run WHERE ?1 = 0 OR run = ?1 ORDER BY run",
                     only, add_run, out) ||
        !reader_each(reader, "SELECT reason, text FROM reason WHERE reason BETWEEN 0 AND ?1",
                     REPORT_REASONS - 2, add_reason, out))
        return false;
    if (!out->run_count && only)
        return reader_refuse(reader, "has no run %lld", (long long)only);
    if (!out->run_count)
        return reader_refuse(reader, "has no runs yet");

    for (size_t i = 0; i < out->run_count; i++) {
        struct report_run *run = &out->runs[i];

        if (!read_run(reader, run))
            return false;
        for (size_t s = 0; s < run->session_count; s++)
            frames += run->sessions[s].frame_count;
    }
    return frames || reader_refuse(reader, "has no frames of a policy yet");
}

bool report_read(const char *path, int64_t run, struct report_source *out, char *why,
                 size_t why_bytes)
{
    struct reader reader = {.path = path, .why = why, .why_bytes = why_bytes};
    bool good;

    *out = (struct report_source){0};
    if (!lab_store_open_to_read(path, &reader.db, why, why_bytes))
        return false;

    sqlite3_limit(reader.db, SQLITE_LIMIT_LENGTH, 1 << 20);
    if (sqlite3_exec(reader.db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK)
        good = read_source(&reader, run, out);
    else
        good = reader_refuse_sql(&reader);

    sqlite3_close(reader.db);
    if (good && reader.lost_text)
        good = reader_no_memory(&reader);
    if (!good)
        report_free(out);
    return good;
}

static void free_run(struct report_run *run)
{
    char *const texts[] = {
        run->source,         run->started_at,     run->version,       run->host,
        run->system,         run->command,        run->kernel,        run->objective,
        run->meter,          run->reserve,        run->reserved_core, run->ratio,
        run->commit,         run->build_type,     run->compiler,      run->build_flags,
        run->program_sha256, run->library_sha256, run->kernel_sha256, run->scenario_sha256};

    free_texts(texts, COUNT(texts));
    free_texts(run->passes, COX_PASSES_MAX);
    free_texts(run->policies, run->policy_count);

    for (uint32_t i = 0; i < run->device_count; i++) {
        const struct report_device *device = &run->devices[i];
        char *const names[] = {device->name, device->platform, device->driver, device->type,
                               device->mode};
        free_texts(names, COUNT(names));
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
    free_texts(source->reasons, REPORT_REASONS);
    *source = (struct report_source){0};
}

const char *report_reason(const struct report_source *source, uint32_t reason)
{
    if (reason < REPORT_REASONS && source->reasons[reason] && *source->reasons[reason])
        return source->reasons[reason];

    return cox_reason_text((enum cox_reason)reason);
}
