/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"
#include "common/quantiles.h"
#include "lab/fail.h"
#include "lab/run/measure.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

struct sqlite3_stmt *source_ask(struct source *source, const struct source_run *run,
                                const char *sql)
{
    sqlite3_stmt *statement = NULL;

    if (!reader_prepare(&source->reader, &statement, sql))
        return NULL;

    if (run)
        sqlite3_bind_int64(statement, 1, run->number);
    return statement;
}

static void copy_text(struct source *source, sqlite3_stmt *statement, int column, char *out,
                      size_t bytes)
{
    char *text = reader_text(&source->reader, statement, column);

    snprintf(out, bytes, "%s", text ? text : "");
    free(text);
}

static uint32_t whole(sqlite3_stmt *statement, int column)
{
    double value = reader_number(statement, column);

    if (!(value >= 0 && value <= UINT32_MAX))
        return 0;
    return (uint32_t)value;
}

static bool read_devices(struct source *source, struct source_run *run)
{
    sqlite3_stmt *statement = source_ask(source, run,
                                         "SELECT name FROM device WHERE run = ?1 ORDER BY device");

    while (statement && run->device_count < COX_DEVICES_MAX &&
           reader_next(&source->reader, statement) == 1)
        copy_text(source, statement, 0, run->devices[run->device_count++], sizeof run->devices[0]);
    sqlite3_finalize(statement);
    return statement != NULL;
}

static bool read_oracle(struct source *source, struct source_run *run)
{
    sqlite3_stmt *statement =
        source_ask(source, run,
                   "SELECT ns, ratios FROM reference WHERE run = ?1 AND phase = 0 AND "
                   "kind = 'oracle' AND frames > 0");

    run->oracle_ns = NAN;
    if (statement && reader_next(&source->reader, statement) == 1) {
        run->oracle_ns = reader_time(statement, 0);
        copy_text(source, statement, 1, run->oracle_text, sizeof run->oracle_text);
    }
    sqlite3_finalize(statement);
    return statement != NULL;
}

static bool read_runs(struct source *source)
{
    sqlite3_stmt *statement =
        source_ask(source, NULL,
                   "SELECT run, columns, rows, in_flight, deadline_ns, busy FROM run "
                   "WHERE finished = 1 ORDER BY run");

    while (statement && source->run_count < SOURCE_RUNS_MAX &&
           reader_next(&source->reader, statement) == 1) {
        struct source_run *run = &source->runs[source->run_count++];

        *run = (struct source_run){.number = sqlite3_column_int64(statement, 0),
                                   .columns = whole(statement, 1),
                                   .rows = whole(statement, 2),
                                   .in_flight = whole(statement, 3),
                                   .deadline_ms = reader_number(statement, 4) / 1e6,
                                   .busy = whole(statement, 5) == 1};
        if (!run->in_flight)
            run->in_flight = 1;
    }
    sqlite3_finalize(statement);

    bool good = statement != NULL;
    for (uint32_t r = 0; good && r < source->run_count; r++)
        good = read_devices(source, &source->runs[r]) && read_oracle(source, &source->runs[r]);
    return good;
}

struct source *source_open(const struct laptop_record *record)
{
    struct source *source = calloc(1, sizeof *source);
    char name[64];

    if (!source) {
        lab_fail("out of memory");
        return NULL;
    }

    laptop_file_name(record, ".db", name, sizeof name);
    source->reader = (struct reader){
        .path = "the part's database", .why = source->why, .why_bytes = sizeof source->why};

    if (sqlite3_open_v2(name, &source->reader.db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        lab_fail("%s: %s", name, sqlite3_errmsg(source->reader.db));
    else if (read_runs(source))
        return source;

    source_close(&source);
    return NULL;
}

bool source_close(struct source **source)
{
    bool good = true;
    if (*source) {
        if ((*source)->why[0])
            good = lab_fail("%s", (*source)->why);
        sqlite3_close((*source)->reader.db);
    }

    free(*source);
    *source = NULL;
    return good;
}

/* --- Frames ----------------------------------------------------------------------------------- */

bool source_values(struct source *source, const struct source_wish *wish, struct lab_blocks *out)
{
    const bool reference = !wish->policy || strcmp(wish->policy, "curve") == 0;
    const bool turns = reference && wish->run->in_flight <= 1;
    size_t block = LAB_RUN_BLOCK * wish->run->in_flight, index = 0;
    sqlite3_stmt *statement =
        source_ask(source, wish->run,
                   "SELECT iif(?8, f.joules, f.period_ns), f.status FROM frame f"
                   " JOIN session s USING (session) WHERE s.run = ?1 AND s.kind = ?2"
                   " AND s.policy IS ?3 AND (?4 < 0 OR s.device = ?4)"
                   " AND (?5 < 0 OR f.phase = ?5) AND (?6 IS NULL OR s.ratios = ?6)"
                   " AND f.frame >= ?7 ORDER BY s.session, f.frame");

    if (!statement)
        return false;
    if (turns)
        block = LAB_RUN_TURN;

    sqlite3_bind_text(statement, 2, wish->kind, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 3, wish->policy, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 4, wish->device);
    sqlite3_bind_int(statement, 5, wish->phase);
    sqlite3_bind_text(statement, 6, wish->ratios, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 7, (int64_t)wish->first_frame);
    sqlite3_bind_int(statement, 8, wish->joules);

    for (; reader_next(&source->reader, statement) == 1; index++) {
        double value = reader_number(statement, 0);

        if (isfinite(value) && sqlite3_column_int(statement, 1) == 0 &&
            !(turns && index % block == 0))
            lab_blocks_add(out, value, index / block);
    }
    sqlite3_finalize(statement);
    return true;
}

/* Does not depend on the order of the values. */
static double block_median(struct lab_blocks *blocks)
{
    double *values = malloc((blocks->count + 1) * sizeof *values), median = NAN;

    for (size_t i = 0; values && i < blocks->count; i++)
        values[i] = blocks->values[i].value;
    if (values && blocks->count)
        median = percentile_of(values, blocks->count, 50);
    free(values);
    return median;
}

/* The median and its interval, in milliseconds; NaN without a frame. Sorts. */
static struct plot_point median_ms(struct lab_blocks *blocks, double x)
{
    struct lab_intervals intervals;
    struct plot_point point = {x, block_median(blocks) / 1e6, NAN, NAN};

    if (lab_bootstrap(blocks, NULL, &intervals)) {
        point.low = intervals.p50.low / 1e6;
        point.high = intervals.p50.high / 1e6;
    }
    return point;
}

struct plot_point source_ratio(struct lab_blocks *of, struct lab_blocks *over, double x)
{
    struct lab_intervals intervals;
    struct plot_point point = {x, block_median(of) / block_median(over), NAN, NAN};

    if (lab_bootstrap(of, over, &intervals)) {
        point.low = intervals.ratio.low;
        point.high = intervals.ratio.high;
    }
    return point;
}

struct plot_point source_point(struct source *source, const struct source_wish *wish, double x)
{
    struct lab_blocks blocks = {0};
    struct plot_point point = {x, NAN, NAN, NAN};

    if (source_values(source, wish, &blocks))
        point = median_ms(&blocks, x);
    lab_blocks_free(&blocks);
    return point;
}

double source_share(struct source *source, const struct source_wish *wish)
{
    double share = NAN;
    sqlite3_stmt *statement =
        source_ask(source, wish->run,
                   "SELECT sum(iif(b.device = 0, b.rows, 0)) * 1.0 / sum(b.rows) FROM band b"
                   " JOIN session s USING (session) WHERE s.run = ?1 AND s.kind = 'policy'"
                   " AND s.policy = ?2 AND b.status = 0 AND b.frame >= ?3");

    if (!statement)
        return NAN;

    sqlite3_bind_text(statement, 2, wish->policy, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, (int64_t)wish->first_frame);
    if (reader_next(&source->reader, statement) == 1)
        share = reader_number(statement, 0);
    sqlite3_finalize(statement);
    return share;
}
