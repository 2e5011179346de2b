/* The part corun: how much each device slows down while the others work, and how the first seconds
 * differ from the later ones.
 * SPDX-License-Identifier: Apache-2.0 */
#include "corun.h"
#include "common/quantiles.h"
#include "lab/array.h"
#include "lab/run/measure.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 40, FIRST_PART = 10, LAST_PART = 3 };

/* A band counts only if other devices work during at least this share of its time. */
static const double overlap_least = 0.5;

/* A band of a whole frame. */
struct band {
    uint32_t device;
    uint64_t frame;
    double start_ns, end_ns, wall_ns;
};

struct bands {
    size_t count;
    struct band *all;
};

/* --- While the others work -------------------------------------------------------------------- */

static bool read_bands(struct source *source, const struct source_run *run, struct bands *bands)
{
    sqlite3_stmt *statement =
        source_ask(source, run,
                   "SELECT b.device, f.frame, f.start_ns + b.end_ns, b.wall_ns FROM band b"
                   " JOIN frame f USING (session, frame) JOIN session s USING (session)"
                   " WHERE s.run = ?1 AND s.kind = 'policy' AND b.status = 0 AND b.wall_ns > 0"
                   " ORDER BY f.frame");
    bool good = statement != NULL;

    while (good && reader_next(&source->reader, statement) == 1) {
        double end = reader_number(statement, 2), wall = reader_number(statement, 3);
        struct band *all = array_room(bands->all, bands->count, sizeof *all);

        good = all != NULL;
        if (good)
            bands->all = all;
        if (good && isfinite(end) && isfinite(wall))
            all[bands->count++] = (struct band){
                .device = (uint32_t)sqlite3_column_int(statement, 0),
                .frame = (uint64_t)sqlite3_column_int64(statement, 1),
                .start_ns = end - wall,
                .end_ns = end,
                .wall_ns = wall};
    }
    sqlite3_finalize(statement);
    return good;
}

/* How long any other device was at work during the band. Only bands of near frames can overlap. */
static double beside_ns(const struct bands *bands, size_t index)
{
    enum { NEAR = 2 * COX_IN_FLIGHT_MAX };
    const struct band *band = &bands->all[index];
    double until = band->start_ns, sum = 0;
    size_t from = 0, to = bands->count;

    if (index > NEAR)
        from = index - NEAR;
    if (index + NEAR < to)
        to = index + NEAR;

    /* Each moment counts once, even if several other devices work: take the earliest remaining
     * band, add it and go on behind it. */
    for (size_t pass = 0; pass < to - from; pass++) {
        double start = INFINITY, end = 0;

        for (size_t i = from; i < to; i++) {
            const struct band *other = &bands->all[i];

            if (other->device != band->device && other->end_ns > until && other->start_ns < start) {
                start = other->start_ns;
                end = other->end_ns;
            }
        }

        start = fmax(start, until);
        if (!(start < band->end_ns))
            break;
        until = fmin(end, band->end_ns);
        sum += until - start;
    }
    return sum;
}

static bool alone_bands(struct source *source, const struct source_run *run, uint32_t device,
                        struct lab_blocks *out)
{
    sqlite3_stmt *statement =
        source_ask(source, run,
                   "SELECT b.wall_ns FROM band b JOIN session s USING (session) WHERE s.run = ?1"
                   " AND s.kind = 'solo' AND s.policy IS NULL AND s.device = ?2 AND b.status = 0"
                   " AND b.wall_ns > 0 ORDER BY b.session, b.frame");

    if (!statement)
        return false;

    sqlite3_bind_int(statement, 2, (int)device);
    for (uint64_t i = 0; reader_next(&source->reader, statement) == 1; i++)
        lab_blocks_add(out, reader_number(statement, 0), i / (LAB_RUN_BLOCK * run->in_flight));
    sqlite3_finalize(statement);
    return true;
}

static double block_median(const struct lab_blocks *blocks)
{
    double *values = malloc((blocks->count + 1) * sizeof *values), median = NAN;

    for (size_t i = 0; values && i < blocks->count; i++)
        values[i] = blocks->values[i].value;
    if (values && blocks->count)
        median = quantile_of(values, blocks->count, 0.5);
    free(values);
    return median;
}

/* How long each band of the device would have taken, had another device worked all the time. The
 * band takes w, and another device works during o of it. Alone the band would take a. The slowdown
 * is s: a = w - o + o / s, so s = o / (a - w + o). */
static void add_beside(const struct bands *bands, const struct source_run *run, uint32_t device,
                       double alone_ns, struct lab_blocks *out)
{
    for (size_t i = 0; i < bands->count; i++) {
        const struct band *band = &bands->all[i];
        if (band->device != device)
            continue;

        double overlap = beside_ns(bands, i), rest = alone_ns - band->wall_ns + overlap;
        if (overlap >= overlap_least * band->wall_ns && overlap > 0 && rest > 0)
            lab_blocks_add(out, overlap / rest * alone_ns,
                           band->frame / (LAB_RUN_BLOCK * run->in_flight));
    }
}

static bool make_slowdown(struct source *source, const struct source_run *run,
                          struct findings *findings)
{
    struct plot *plot = findings_plot(findings, "corun", "Each device while the others work",
                                      "device", "time while the others work / time alone");
    struct bands bands = {.count = 0};
    bool good = plot && read_bands(source, run, &bands);

    if (!good)
        goto end;

    plot->has_rows = true;
    plot->line = 1;
    struct plot_series *series = plot_series_add(plot, PLOT_MARKS, "d0", "with the others");
    for (uint32_t d = 0; d < run->device_count; d++) {
        struct lab_blocks alone = {0}, beside = {0};

        good = alone_bands(source, run, d, &alone) && good;
        add_beside(&bands, run, d, block_median(&alone), &beside);
        plot_add(plot, series, source_ratio(&beside, &alone, plot_row(plot, run->devices[d])));
        lab_blocks_free(&alone);
        lab_blocks_free(&beside);
    }

    html_raw(&findings->words,
             "<p>Each device computes whole frames, first alone, then while the others do the "
             "same. The figure is the time of a band during which another device works all "
             "the time, over the time alone; 1 is no loss. Medians, with 95&#160;% intervals.</p>");
    if (!plot_has_points(plot))
        html_raw(&findings->words,
                 "<p class=\"note\">Each device while the others work: no band overlapped "
                 "with another device's for half of its time. Use more or larger frames.</p>");
end:
    free(bands.all);
    return good;
}

/* --- In the course of time -------------------------------------------------------------------- */

/* A stage of the soak: a device alone, or all together. */
struct stage {
    int64_t session;
    char name[100], colour[4];
};

static uint32_t read_stages(struct source *source, const struct source_run *run,
                            struct stage *stages, uint32_t most)
{
    sqlite3_stmt *statement =
        source_ask(source, run,
                   "SELECT session, kind, device FROM session WHERE run = ?1 AND policy = 'soak' "
                   "ORDER BY session");
    uint32_t count = 0;

    while (statement && count < most && reader_next(&source->reader, statement) == 1) {
        struct stage *stage = &stages[count++];
        const char *kind = (const char *)sqlite3_column_text(statement, 1);
        uint32_t device = (uint32_t)sqlite3_column_int(statement, 2);

        *stage = (struct stage){
            .session = sqlite3_column_int64(statement, 0), .name = "all together", .colour = "p1"};
        if (kind && strcmp(kind, "solo") == 0 && device < run->device_count) {
            snprintf(stage->name, sizeof stage->name, "%s alone", run->devices[device]);
            snprintf(stage->colour, sizeof stage->colour, "d%u", device % 8);
        }
    }
    sqlite3_finalize(statement);
    return count;
}

struct moment {
    double seconds, value;
};

/* Values in the course of a stage. */
struct track {
    size_t count;
    struct moment *all;
};

static double track_end(const struct track *track)
{
    if (!track->count)
        return 0;
    return track->all[track->count - 1].seconds;
}

static bool track_add(struct track *track, double seconds, double value)
{
    if (!isfinite(seconds) || !isfinite(value))
        return true;

    struct moment *all = array_room(track->all, track->count, sizeof *all);
    if (!all)
        return false;

    track->all = all;
    all[track->count++] = (struct moment){seconds, value};
    return true;
}

/* Divide the time into bins and add the median of each. */
static void add_track(struct plot *plot, struct plot_series *series, const struct track *track,
                      double scale)
{
    const struct moment *all = track->all;
    const double end = track_end(track);
    double *values = malloc((track->count + 1) * sizeof *values);

    for (size_t from = 0, to; values && from < track->count; from = to) {
        double bin = floor(all[from].seconds / end * BINS);

        for (to = from; to < track->count && floor(all[to].seconds / end * BINS) <= bin; to++)
            values[to - from] = all[to].value;
        plot_add(plot, series,
                 (struct plot_point){(all[from].seconds + all[to - 1].seconds) / 2,
                                     scale * quantile_of(values, to - from, 0.5), NAN, NAN});
    }
    free(values);
}

static bool read_frames(struct source *source, const struct source_run *run,
                        const struct stage *stage, struct track *track)
{
    bool good = true;
    double first = NAN;
    sqlite3_stmt *statement =
        source_ask(source, run,
                   "SELECT f.start_ns, f.period_ns FROM frame f JOIN session s USING (session) "
                   "WHERE s.run = ?1 AND f.session = ?2 AND f.status = 0 ORDER BY f.frame");

    if (!statement)
        return false;

    sqlite3_bind_int64(statement, 2, stage->session);
    while (good && reader_next(&source->reader, statement) == 1) {
        double start = reader_number(statement, 0);

        if (isnan(first))
            first = start;
        good = track_add(track, (start - first) / 1e9, reader_number(statement, 1));
    }
    sqlite3_finalize(statement);
    return good;
}

/* The last third of the stage over its first tenth. */
static struct plot_point steady_over_first(const struct track *track, double x)
{
    struct lab_blocks first = {0}, last = {0};
    const double end = track_end(track);

    for (size_t i = 0; i < track->count; i++) {
        if (track->all[i].seconds <= end / FIRST_PART)
            lab_blocks_add(&first, track->all[i].value, i / LAB_RUN_BLOCK);
        if (track->all[i].seconds >= end - end / LAST_PART)
            lab_blocks_add(&last, track->all[i].value, i / LAB_RUN_BLOCK);
    }

    struct plot_point point = source_ratio(&last, &first, x);
    lab_blocks_free(&first);
    lab_blocks_free(&last);
    return point;
}

static bool make_course(struct source *source, const struct source_run *run,
                        const struct stage *stages, uint32_t count, struct findings *findings)
{
    struct plot *course = findings_plot(findings, "course", "Time of a frame without a pause",
                                        "seconds since the stage began", "time of a frame, ms");
    struct plot *turbo = findings_plot(findings, "turbo", "After the first seconds", "stage",
                                       "time in the last third / first tenth");
    bool good = course && turbo;

    if (!good)
        return false;

    course->from_zero = turbo->has_rows = true;
    turbo->line = 1;
    struct plot_series *quotients = plot_series_add(turbo, PLOT_MARKS, "d0",
                                                    "last third / first tenth");
    for (uint32_t i = 0; good && i < count; i++) {
        struct track track = {.count = 0};

        good = read_frames(source, run, &stages[i], &track);
        add_track(course,
                  plot_series_add(course, PLOT_LINE, stages[i].colour, "%s", stages[i].name),
                  &track, 1e-6);
        plot_add(turbo, quotients, steady_over_first(&track, plot_row(turbo, stages[i].name)));
        free(track.all);
    }

    html_raw(
        &findings->words,
        "<p>Each device works alone without a pause, then all work together, with rows "
        "shared by their speeds alone. The machine rests before each stage. Above 1, it "
        "slows down: from heat, or because the higher power limit of the first seconds ends.</p>");
    return good;
}

/* The clocks during one stage, a series for each part of the machine. False if out of memory, or
 * after a message. */
static bool add_clocks(struct source *source, const struct source_run *run,
                       const struct stage *stage, enum plot_style style, struct plot *plot)
{
    sqlite3_stmt *statement = source_ask(
        source, run,
        "SELECT t.part, (v.at_ns - o.start_ns) / 1e9, v.value FROM telemetry_source t"
        " JOIN telemetry v USING (run, source) JOIN telemetry_session o ON o.session = ?2"
        " WHERE t.run = ?1 AND t.kind = 'clock' AND v.at_ns BETWEEN o.start_ns AND o.start_ns +"
        " (SELECT max(start_ns + wall_ns) FROM frame WHERE session = ?2)"
        " ORDER BY t.source, v.at_ns");
    struct track track = {.count = 0};
    char part[60] = "";
    bool good = true;

    if (!statement)
        return false;

    sqlite3_bind_int64(statement, 2, stage->session);
    for (bool more = true; good && more;) {
        const char *next = NULL;

        more = reader_next(&source->reader, statement) == 1;
        if (more)
            next = (const char *)sqlite3_column_text(statement, 0);
        if (!next)
            next = "";

        /* A series ends where another part begins, and with the last row. */
        if (track.count && strcmp(next, part) != 0) {
            add_track(plot,
                      plot_series_add(plot, style, stage->colour, "%s, %s", part, stage->name),
                      &track, 1);
            track.count = 0;
        }
        snprintf(part, sizeof part, "%s", next);
        if (more)
            good = track_add(&track, reader_number(statement, 1), reader_number(statement, 2));
    }

    sqlite3_finalize(statement);
    free(track.all);
    return good;
}

static bool make_clocks(struct source *source, const struct source_run *run,
                        const struct stage *stages, uint32_t count, struct findings *findings)
{
    struct plot *plot = findings_plot(findings, "clocks", "Clocks", "seconds since the stage began",
                                      "clock, MHz");

    if (!plot)
        return false;

    plot->from_zero = true;
    for (uint32_t i = 0; i < count; i++)
        if (!add_clocks(source, run, &stages[i], i + 1 == count ? PLOT_LINE : PLOT_DASHED, plot))
            return false;

    if (!plot_has_points(plot))
        html_raw(&findings->words,
                 "<p class=\"note\">No clock can be read on this machine. <code>cox-lab "
                 "telemetry</code> explains how to permit it.</p>");
    return true;
}

bool findings_corun(struct source *source, struct findings *findings)
{
    const struct source_run *run = source->runs;
    struct stage stages[COX_DEVICES_MAX + 1];

    if (!source->run_count)
        return false;

    uint32_t count = read_stages(source, run, stages, COX_DEVICES_MAX + 1);
    return make_slowdown(source, run, findings) &&
           make_course(source, run, stages, count, findings) &&
           make_clocks(source, run, stages, count, findings);
}
