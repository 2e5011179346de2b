/* The telemetry of a run: the readings during each of its frames.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"
#include "lab/array.h"
#include "series.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The time of a frame, since the run began. */
struct window {
    double start_ns, end_ns;
    double share;  /* of the rows, on the first device */
    float *values; /* of the gauges, in a policy's session; NULL = of a reference */
};

struct windows {
    struct window *all;
    size_t count;
};

struct reading {
    double at_ns, value;
};

/* The readings of one gauge, in the order of time. */
struct readings {
    struct reading *all;
    size_t count;
};

/* Databases of earlier versions have no telemetry. */
static bool has_tables(struct reader *reader, bool *there)
{
    double tables;
    bool good = reader_count(reader,
                             "SELECT count(*) FROM sqlite_schema WHERE ?1 AND type = 'table'"
                             " AND sql LIKE 'CREATE TABLE%' AND name IN"
                             " ('telemetry_source', 'telemetry', 'telemetry_session')",
                             1, &tables);

    *there = tables == 3;
    return good;
}

static bool add_source(struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct report_run *run = into;

    (void)reader;
    run->gauges[run->gauge_count++] = (struct report_gauge){
        .number = reader_number(row, 0),
        .name = reader_text(reader, row, 1),
        .kind = reader_text(reader, row, 2),
        .part = reader_text(reader, row, 3),
        .unit = reader_text(reader, row, 4),
        .origin = reader_text(reader, row, 5),
    };
    return true;
}

static bool read_sources(struct reader *reader, struct report_run *run)
{
    run->gauges = calloc(REPORT_GAUGES_MAX, sizeof *run->gauges);
    if (!run->gauges)
        return reader_no_memory(reader);

    return reader_each(reader,
                       "SELECT source, name, kind, part, unit, origin FROM telemetry_source"
                       " WHERE run = ?1 ORDER BY source LIMIT 64",
                       run->number, add_source, run);
}

/* --- Frames in time --------------------------------------------------------------------------- */

static struct report_session *find_session(const struct report_run *run, double number)
{
    for (size_t i = 0; i < run->session_count; i++)
        if ((double)run->sessions[i].number == number)
            return &run->sessions[i];
    return NULL;
}

static bool add_window(struct reader *reader, struct windows *windows, const struct window *window)
{
    struct window *all = array_room(windows->all, windows->count, sizeof *all);
    if (!all)
        return reader_no_memory(reader);

    windows->all = all;
    all[windows->count++] = *window;
    return true;
}

static bool make_room(struct reader *reader, struct report_run *run)
{
    for (size_t i = 0; i < run->session_count; i++) {
        struct report_session *session = &run->sessions[i];
        size_t count = session->frame_count * run->gauge_count;

        session->gauges = malloc((count + 1) * sizeof *session->gauges);
        if (!session->gauges)
            return reader_no_memory(reader);
        for (size_t k = 0; k < count; k++)
            session->gauges[k] = NAN;
    }
    return true;
}

/* The frames of all sessions count, the references' too. */
static bool has_too_many_frames(struct reader *reader, const struct report_run *run, bool *too_many)
{
    double frames;
    bool good =
        reader_count(reader,
                     "SELECT count(*) FROM session JOIN frame USING (session) WHERE run = ?1",
                     run->number, &frames);

    *too_many = frames > REPORT_FRAMES_MAX || frames * run->gauge_count > REPORT_CELLS_MAX;
    return good;
}

/* The good frames of the policies' sessions and the references'. */
static bool read_windows(struct reader *reader, struct report_run *run, struct windows *windows)
{
    sqlite3_stmt *statement;
    struct report_session *session = NULL;
    double last_session = NAN;
    size_t at = 0;
    int more;

    if (!reader_ask(
            reader, &statement,
            "SELECT f.session, f.frame, t.start_ns + f.start_ns, f.wall_ns,"
            " (SELECT sum(b.rows * (b.device = ?2)) * 1.0 / sum(b.rows) FROM band b"
            "  WHERE b.session = f.session AND b.frame = f.frame AND b.status = 0)"
            " FROM session s JOIN telemetry_session t USING (session) JOIN frame f USING (session)"
            " WHERE s.run = ?1 AND f.status = 0 ORDER BY f.session, f.frame",
            run->number))
        return false;
    sqlite3_bind_int64(statement, 2, run->device_count ? run->devices[0].number : 0);

    while ((more = reader_next(reader, statement)) > 0) {
        double number = reader_number(statement, 0), frame = reader_number(statement, 1);
        struct window window = {.start_ns = reader_number(statement, 2),
                                .share = reader_number(statement, 4)};

        window.end_ns = window.start_ns + reader_number(statement, 3);
        if (number != last_session) {
            session = find_session(run, number);
            last_session = number;
            at = 0;
        }
        while (session && at < session->frame_count && session->frames[at].frame < frame)
            at++;
        if (session && at < session->frame_count && session->frames[at].frame == frame)
            window.values = session->gauges + at * run->gauge_count;

        if (window.end_ns >= window.start_ns && !add_window(reader, windows, &window)) {
            more = -1;
            break;
        }
    }
    return reader_end(statement, more);
}

/* --- Readings --------------------------------------------------------------------------------- */

static bool add_reading(struct readings *readings, double at_ns, double value)
{
    struct reading *all = array_room(readings->all, readings->count, sizeof *all);
    if (!all)
        return false;

    readings->all = all;
    all[readings->count++] = (struct reading){at_ns, value};
    return true;
}

/* Append a value of a setting, as in "powersave, performance", if there is room. */
static bool add_setting(struct report_gauge *gauge, const char *text)
{
    enum { SETTINGS_BYTES = 256 };
    if (!gauge->settings)
        gauge->settings = calloc(SETTINGS_BYTES, 1);
    if (!gauge->settings)
        return false;

    size_t length = strlen(gauge->settings);
    if (length + strlen(text) + 3 < SETTINGS_BYTES)
        snprintf(gauge->settings + length, SETTINGS_BYTES - length, "%s%s", length ? ", " : "",
                 text);
    return true;
}

static bool read_values(struct reader *reader, const struct report_run *run,
                        struct report_gauge *gauge, struct readings *readings)
{
    bool setting = gauge->kind && !strcmp(gauge->kind, "setting");
    sqlite3_stmt *statement;
    int more;

    if (!reader_ask(reader, &statement,
                    "SELECT at_ns, value FROM telemetry WHERE run = ?1 AND source = ?2"
                    " ORDER BY at_ns LIMIT ?3",
                    run->number))
        return false;
    sqlite3_bind_double(statement, 2, gauge->number);
    sqlite3_bind_int(statement, 3, REPORT_READINGS_MAX);

    while ((more = reader_next(reader, statement)) > 0) {
        double at_ns = reader_number(statement, 0), value = reader_number(statement, 1);
        bool good = true;

        if (setting) {
            char *text = reader_text(reader, statement, 1);
            good = !text || add_setting(gauge, text);
            free(text);
        } else if (!isnan(at_ns) && !isnan(value)) {
            good = add_reading(readings, at_ns, value);
            report_bin_put(&gauge->all, value);
        }
        if (!good) {
            reader_no_memory(reader);
            more = -1;
            break;
        }
    }
    report_bins_finish(&gauge->all, 1);
    return reader_end(statement, more);
}

/* The first reading at that time or later. */
static size_t first_from(const struct readings *readings, double at_ns)
{
    size_t low = 0, high = readings->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (readings->all[middle].at_ns < at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The mean of the readings while the frame ran. A frame between two readings gets the nearer one,
 * unless that is farther away than 1.5 times the usual interval. */
static double value_in(const struct readings *readings, const struct window *window)
{
    const struct reading *all = readings->all;
    size_t count = readings->count;
    size_t first = first_from(readings, window->start_ns), end = first;
    double sum = 0, before = INFINITY, after = INFINITY;

    for (; end < count && all[end].at_ns <= window->end_ns; end++)
        sum += all[end].value;
    if (end > first)
        return sum / (double)(end - first);
    if (count < 2)
        return NAN;

    double usual = (all[count - 1].at_ns - all[0].at_ns) / (double)(count - 1);
    if (first < count)
        after = all[first].at_ns - window->end_ns;
    if (first > 0)
        before = window->start_ns - all[first - 1].at_ns;
    if (fmin(before, after) > 1.5 * usual)
        return NAN;

    if (before < after)
        first--;
    return all[first].value;
}

static void join_frames(const struct report_run *run, uint32_t index,
                        const struct readings *readings, const struct windows *windows)
{
    struct report_gauge *gauge = &run->gauges[index];

    for (size_t i = 0; readings->count && i < windows->count; i++) {
        const struct window *window = &windows->all[i];
        double value = value_in(readings, window);

        if (window->values)
            window->values[index] = (float)value;
        if (window->share >= 0 && window->share <= 1)
            report_bin_put(&gauge->by_share[(size_t)lround(window->share * (REPORT_SHARES - 1))],
                           value);
    }
    report_bins_finish(gauge->by_share, REPORT_SHARES);
}

bool reader_gauges(struct reader *reader, struct report_run *run)
{
    struct windows windows = {0};
    bool there, good = has_tables(reader, &there);

    if (!good || !there)
        return good;
    good = read_sources(reader, run) && has_too_many_frames(reader, run, &run->gauges_left_out);
    if (!good || !run->gauge_count || run->gauges_left_out)
        return good;

    good = make_room(reader, run) && read_windows(reader, run, &windows);
    for (uint32_t i = 0; good && i < run->gauge_count; i++) {
        struct readings readings = {0};

        good = read_values(reader, run, &run->gauges[i], &readings);
        if (good)
            join_frames(run, i, &readings, &windows);
        free(readings.all);
    }

    free(windows.all);
    return good;
}

void report_gauges_free(struct report_run *run)
{
    for (uint32_t i = 0; i < run->gauge_count; i++) {
        struct report_gauge *gauge = &run->gauges[i];
        char *const texts[] = {gauge->name, gauge->kind,   gauge->part,
                               gauge->unit, gauge->origin, gauge->settings};

        for (int k = 0; k < 6; k++)
            free(texts[k]);
    }
    free(run->gauges);

    for (size_t i = 0; i < run->session_count; i++)
        free(run->sessions[i].gauges);
}
