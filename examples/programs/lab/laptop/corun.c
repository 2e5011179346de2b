/* Devices at work at once: how much each slows down beside the others, and how the first seconds differ from those that
 * come then.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/quantiles.h"
#include "figures.h"
#include "lab/run/measure.h"
#include "source.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 40, FIRST_PART = 10, LAST_PART = 3 };

static const double overlap_least =
    0.5; /* of a band's time beside others, to say something of these */

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

/* --- Beside the others -------------------------------------------------------------------------------------------- */

static bool read_bands(struct source *source, const struct source_run *run, struct bands *bands)
{
    size_t room = 0;
    bool good = true;
    *bands = (struct bands){.count = 0};
    sqlite3_stmt *statement = source_ask(
        source, run,
        "SELECT b.device, f.frame, f.start_ns + b.end_ns, b.wall_ns FROM band b JOIN frame f USING (session, frame) "
        "JOIN session s USING (session) WHERE s.run = ?1 AND s.kind = 'policy' AND b.status = 0 AND b.wall_ns > 0 "
        "ORDER BY f.frame");
    while (good && statement && reader_next(&source->reader, statement) == 1) {
        if (bands->count == room) {
            room = room ? 2 * room : 256;
            struct band *more = realloc(bands->all, room * sizeof *more);
            good = more != NULL;
            bands->all = more ? more : bands->all;
        }
        double end = reader_number(statement, 2), wall = reader_number(statement, 3);
        if (good && isfinite(end) && isfinite(wall))
            bands->all[bands->count++] = (struct band){
                .device = (uint32_t)sqlite3_column_int(statement, 0),
                .frame = (uint64_t)sqlite3_column_int64(statement, 1),
                .start_ns = end - wall,
                .end_ns = end,
                .wall_ns = wall};
    }
    sqlite3_finalize(statement);
    return good && statement;
}

/* How long of the band any other device was at work. Bands of frames far from it are over or have not begun. */
static double beside_ns(const struct bands *bands, size_t index)
{
    const struct band *band = &bands->all[index];
    double until = band->start_ns, sum = 0;
    size_t from = index > 2 * COX_IN_FLIGHT_MAX ? index - 2 * COX_IN_FLIGHT_MAX : 0;
    size_t to = index + 2 * COX_IN_FLIGHT_MAX < bands->count ? index + 2 * COX_IN_FLIGHT_MAX
                                                             : bands->count;
    /* The others' time, each moment once: with two devices, bands of the other one never overlap. */
    for (uint32_t pass = 0; pass < to - from; pass++) {
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
        end = fmin(end, band->end_ns);
        sum += end - start;
        until = end;
    }
    return sum;
}

static bool alone_bands(struct source *source, const struct source_run *run, uint32_t device,
                        struct lab_blocks *out)
{
    sqlite3_stmt *statement = source_ask(
        source, run,
        "SELECT b.wall_ns FROM band b JOIN session s USING (session) WHERE s.run = ?1 AND s.kind = 'solo' AND "
        "s.policy IS NULL AND s.device = ?2 AND b.status = 0 AND b.wall_ns > 0 ORDER BY b.session, b.frame");
    if (!statement)
        return false;
    sqlite3_bind_int(statement, 2, (int)device);
    for (uint64_t i = 0; reader_next(&source->reader, statement) == 1; i++)
        lab_blocks_add(out, reader_number(statement, 0), i / (LAB_RUN_BLOCK * run->in_flight));
    sqlite3_finalize(statement);
    return true;
}

static double median_of(const struct lab_blocks *blocks)
{
    double *values = malloc((blocks->count + 1) * sizeof *values);
    for (size_t i = 0; values && i < blocks->count; i++)
        values[i] = blocks->values[i].value;
    double median = values && blocks->count ? figures_quantile(values, blocks->count, 0.5) : NAN;
    free(values);
    return median;
}

/* Of a band of wall time w, o of it beside others, that takes a alone: a = w - o + o / s, so s = o / (a - w + o). */
static bool make_slowdown(struct source *source, const struct source_run *run,
                          struct figures *figures)
{
    struct plot *plot = figures_plot(figures, "corun", "Each device beside the others", "device",
                                     "time beside the others over time alone");
    struct bands bands;
    bool good = plot && read_bands(source, run, &bands);
    if (!good)
        return false;
    plot->has_rows = true;
    plot->line = 1;
    struct plot_series *series = plot_series_add(plot, PLOT_MARKS, "d0", "beside the others");
    for (uint32_t d = 0; d < run->device_count; d++) {
        struct lab_blocks alone = {0}, beside = {0};
        good = alone_bands(source, run, d, &alone) && good;
        const double ns = median_of(&alone);
        for (size_t i = 0; i < bands.count; i++) {
            const struct band *band = &bands.all[i];
            double overlap = band->device == d ? beside_ns(&bands, i) : 0,
                   rest = ns - band->wall_ns + overlap;
            if (overlap >= overlap_least * band->wall_ns && overlap > 0 && rest > 0)
                lab_blocks_add(&beside, overlap / rest * ns,
                               band->frame / (LAB_RUN_BLOCK * run->in_flight));
        }
        plot_add(plot, series, source_ratio(&beside, &alone, plot_row(plot, run->devices[d])));
        lab_blocks_free(&alone);
        lab_blocks_free(&beside);
    }
    free(bands.all);
    html_raw(
        &figures->words,
        "<p>Each device does whole frames of its own, alone and while the others do theirs. The "
        "quotient is that of a band that another device works beside from its beginning to its "
        "end; 1 is no loss. Medians, and 95&#160;% intervals of their quotients.</p>");
    if (!plot_has_points(plot))
        html_raw(
            &figures->words,
            "<p class=\"note\">Each device beside the others: no band had another device's beside "
            "it for half of its time. More or larger frames have such bands.</p>");
    return good;
}

/* --- In the course of time ---------------------------------------------------------------------------------------- */

/* A stage of the soak. */
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
        bool alone = kind && strcmp(kind, "solo") == 0 && device < run->device_count;
        *stage = (struct stage){.session = sqlite3_column_int64(statement, 0)};
        snprintf(stage->name, sizeof stage->name, "%s%s",
                 alone ? run->devices[device] : "all together", alone ? " alone" : "");
        snprintf(stage->colour, sizeof stage->colour, alone ? "d%u" : "p%u",
                 alone ? device % 8 : 1);
    }
    sqlite3_finalize(statement);
    return count;
}

/* What was read in the course of a stage: pairs of time and value. */
struct track {
    size_t count, room;
    double *seconds, *values;
};

static void track_free(struct track *track)
{
    free(track->seconds);
    free(track->values);
    *track = (struct track){.count = 0};
}

static bool track_add(struct track *track, double seconds, double value)
{
    if (!isfinite(seconds) || !isfinite(value))
        return true;
    if (track->count == track->room) {
        size_t room = track->room ? 2 * track->room : 512;
        double *more = realloc(track->seconds, room * sizeof *more);
        track->seconds = more ? more : track->seconds;
        double *values = more ? realloc(track->values, room * sizeof *values) : NULL;
        track->values = values ? values : track->values;
        if (!values)
            return false;
        track->room = room;
    }
    track->seconds[track->count] = seconds;
    track->values[track->count++] = value;
    return true;
}

/* The median of each of the bins in which the time is cut. */
static void add_track(struct plot *plot, struct plot_series *series, const struct track *track,
                      double scale)
{
    const double end = track->count ? track->seconds[track->count - 1] : 0;
    double *values = malloc((track->count + 1) * sizeof *values);
    for (size_t from = 0, to; values && from < track->count; from = to) {
        double bin = floor(track->seconds[from] / end * BINS);
        for (to = from; to < track->count && floor(track->seconds[to] / end * BINS) <= bin; to++)
            values[to - from] = track->values[to];
        plot_add(plot, series,
                 (struct plot_point){(track->seconds[from] + track->seconds[to - 1]) / 2,
                                     scale * figures_quantile(values, to - from, 0.5), NAN, NAN});
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
        first = isnan(first) ? start : first;
        good = track_add(track, (start - first) / 1e9, reader_number(statement, 1));
    }
    sqlite3_finalize(statement);
    return good;
}

/* The last third of the stage over its first tenth. */
static struct plot_point steady_over_first(const struct track *track, double x)
{
    struct lab_blocks first = {0}, last = {0};
    const double end = track->count ? track->seconds[track->count - 1] : 0;
    for (size_t i = 0; i < track->count; i++) {
        if (track->seconds[i] <= end / FIRST_PART)
            lab_blocks_add(&first, track->values[i], i / LAB_RUN_BLOCK);
        if (track->seconds[i] >= end - end / LAST_PART)
            lab_blocks_add(&last, track->values[i], i / LAB_RUN_BLOCK);
    }
    struct plot_point point = source_ratio(&last, &first, x);
    lab_blocks_free(&first);
    lab_blocks_free(&last);
    return point;
}

static bool make_course(struct source *source, const struct source_run *run,
                        const struct stage *stages, uint32_t count, struct figures *figures)
{
    struct plot *course = figures_plot(figures, "course", "Time of a frame without a pause",
                                       "seconds since the stage began", "time of a frame, ms");
    struct plot *turbo = figures_plot(figures, "turbo", "What comes after the first seconds",
                                      "stage", "time in the last third over the first tenth");
    bool good = course && turbo;
    if (!good)
        return false;
    course->from_zero = turbo->has_rows = true;
    turbo->line = 1;
    struct plot_series *quotients = plot_series_add(turbo, PLOT_MARKS, "d0",
                                                    "last third over first tenth");
    for (uint32_t i = 0; good && i < count; i++) {
        struct track track = {.count = 0};
        good = read_frames(source, run, &stages[i], &track);
        add_track(course,
                  plot_series_add(course, PLOT_LINE, stages[i].colour, "%s", stages[i].name),
                  &track, 1e-6);
        plot_add(turbo, quotients, steady_over_first(&track, plot_row(turbo, stages[i].name)));
        track_free(&track);
    }
    html_raw(
        &figures->words,
        "<p>At first each device works alone without a pause, then all together, with the rows shared "
        "by their speeds alone; before each stage the machine rests. More than 1: it slows "
        "down, from heat or because the power that is allowed for the first seconds ends.</p>");
    return good;
}

/* The clocks in the course of the stages: what telemetry read then. */
static bool make_clocks(struct source *source, const struct source_run *run,
                        const struct stage *stages, uint32_t count, struct figures *figures)
{
    struct plot *plot = figures_plot(figures, "clocks", "Clocks meanwhile",
                                     "seconds since the stage began", "clock, MHz");
    sqlite3_stmt *statement = NULL;
    bool good = plot != NULL;
    if (plot)
        plot->from_zero = true;
    for (uint32_t i = 0; good && i < count; i++) {
        struct track track = {.count = 0};
        char part[60] = "";
        statement = source_ask(
            source, run,
            "SELECT t.part, (v.at_ns - o.start_ns) / 1e9, v.value FROM telemetry_source t JOIN telemetry v USING (run, "
            "source) JOIN telemetry_session o ON o.session = ?2 WHERE t.run = ?1 AND t.kind = 'clock' AND v.at_ns "
            "BETWEEN o.start_ns AND o.start_ns + (SELECT max(start_ns + wall_ns) FROM frame WHERE session = ?2) "
            "ORDER BY t.source, v.at_ns");
        if (!statement)
            return false;
        sqlite3_bind_int64(statement, 2, stages[i].session);
        for (bool more = true; good && more;) {
            more = reader_next(&source->reader, statement) == 1;
            const char *of = more ? (const char *)sqlite3_column_text(statement, 0) : "";
            if (track.count && strcmp(of ? of : "", part) != 0) {
                add_track(plot,
                          plot_series_add(plot, i + 1 == count ? PLOT_LINE : PLOT_DASHED,
                                          stages[i].colour, "%s, %s", part, stages[i].name),
                          &track, 1);
                track.count = 0;
            }
            snprintf(part, sizeof part, "%s", of ? of : "");
            good = !more ||
                   track_add(&track, reader_number(statement, 1), reader_number(statement, 2));
        }
        sqlite3_finalize(statement);
        track_free(&track);
    }
    if (plot && !plot_has_points(plot))
        html_raw(
            &figures->words,
            "<p class=\"note\">No clock can be read here: <code>cox-lab telemetry</code> says what "
            "would permit it.</p>");
    return good;
}

bool figures_corun(struct source *source, struct figures *figures)
{
    const struct source_run *run = source->runs;
    struct stage stages[COX_DEVICES_MAX + 1];
    if (!source->run_count)
        return false;
    uint32_t count = read_stages(source, run, stages, COX_DEVICES_MAX + 1);
    return make_slowdown(source, run, figures) &&
           make_course(source, run, stages, count, figures) &&
           make_clocks(source, run, stages, count, figures);
}
