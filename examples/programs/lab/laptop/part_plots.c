/* SPDX-License-Identifier: Apache-2.0 */
#include "part_plots.h"
#include "corun.h"
#include "source.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum {
    POLICIES_MAX = 16,
    LEARNING = 4, /* a policy's first frames, a quarter, are left to learning */
    DEVICES_SHOWN = 8,
    SWEEP_MAX = 200
};

static const char *device_colour(uint32_t device, char colour[4])
{
    snprintf(colour, 4, "d%u", device % 8);
    return colour;
}

/* p0 and p1 look like the devices' colours; p1 is the oracle's. */
static const char *policy_colour(uint32_t policy, char colour[4])
{
    snprintf(colour, 4, "p%u", (policy + 2) % 10);
    return colour;
}

/* The policies of a run in the order of their sessions. */
struct policies {
    uint32_t count;
    char names[POLICIES_MAX][40];
};

static bool read_policies(struct source *source, const struct source_run *run,
                          struct policies *policies)
{
    sqlite3_stmt *statement =
        source_ask(source, run,
                   "SELECT policy FROM session WHERE run = ?1 AND kind = 'policy' "
                   "GROUP BY policy ORDER BY min(session)");

    policies->count = 0;
    while (statement && policies->count < POLICIES_MAX &&
           reader_next(&source->reader, statement) == 1) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);

        snprintf(policies->names[policies->count++], sizeof policies->names[0], "%s",
                 name ? name : "");
    }
    sqlite3_finalize(statement);
    return statement != NULL;
}

static struct plot_point solo_point(struct source *source, const struct source_run *run,
                                    uint32_t device, double x)
{
    const struct source_wish wish = {.run = run, .kind = "solo", .device = (int)device};

    return source_point(source, &wish, x);
}

/* The time that the sweep took for the oracle's split, and the interval of all frames with that
 * split. */
static struct plot_point oracle_point(struct source *source, const struct source_run *run, double x)
{
    const struct source_wish wish = {
        .run = run, .kind = "sweep", .ratios = run->oracle_text, .device = -1};
    struct plot_point point = source_point(source, &wish, x);

    point.y = run->oracle_ns / 1e6;
    if (!(point.low <= point.y && point.y <= point.high))
        point.low = point.high = NAN;
    return point;
}

static struct plot_point policy_point(struct source *source, const struct source_run *run,
                                      const char *policy, int phase, double x)
{
    const struct source_wish wish = {
        .run = run, .kind = "policy", .policy = policy, .device = -1, .phase = phase};

    return source_point(source, &wish, x);
}

static struct plot_series *policy_series(struct plot *plot, enum plot_style style,
                                         const struct policies *policies, uint32_t policy)
{
    char colour[4];

    return plot_series_add(plot, style, policy_colour(policy, colour), "%s",
                           policies->names[policy]);
}

/* --- Sizes ------------------------------------------------------------------------------------ */

static bool make_sizes(struct source *source, struct findings *findings)
{
    struct plot *plot = findings_plot(findings, "sizes", "Frame time by frame size",
                                      "million pixels per frame", "frame time, ms");
    const struct source_run *first = source->runs;
    struct plot_series *devices[DEVICES_SHOWN] = {NULL};
    uint32_t count = first->device_count;
    char colour[4];

    if (!plot || !source->run_count)
        return plot != NULL;

    plot->logarithmic = true;
    if (count > DEVICES_SHOWN)
        count = DEVICES_SHOWN;
    for (uint32_t d = 0; d < count; d++)
        devices[d] = plot_series_add(plot, PLOT_LINE, device_colour(d, colour), "%s alone",
                                     first->devices[d]);
    struct plot_series *oracle = plot_series_add(plot, PLOT_DASHED, "",
                                                 "oracle: best static split");
    struct plot_series *adaptive = plot_series_add(plot, PLOT_LINE, "p2", "adaptive");

    for (uint32_t r = 0; r < source->run_count; r++) {
        const struct source_run *run = &source->runs[r];
        const double x = run->columns * (double)run->rows / 1e6;

        for (uint32_t d = 0; d < count && d < run->device_count; d++)
            plot_add(plot, devices[d], solo_point(source, run, d, x));
        plot_add(plot, oracle, oracle_point(source, run, x));
        plot_add(plot, adaptive, policy_point(source, run, "adaptive", 0, x));
    }

    html_raw(&findings->words,
             "<p>Medians with 95&#160;% intervals. Where a device's line flattens to the "
             "left, the fixed cost of a launch dominates. Sharing pays where the oracle is "
             "below the best device's line.</p>");
    return true;
}

/* --- The curve -------------------------------------------------------------------------------- */

struct sweep_point {
    double share;
    char ratios[1024];
};

static int by_share(const void *left, const void *right)
{
    double a = ((const struct sweep_point *)left)->share;
    double b = ((const struct sweep_point *)right)->share;

    return (a > b) - (a < b);
}

/* The splits of the curve, by share. */
static size_t read_splits(struct source *source, const struct source_run *run,
                          struct sweep_point *splits)
{
    sqlite3_stmt *statement =
        source_ask(source, run,
                   "SELECT DISTINCT ratios FROM session WHERE run = ?1 AND kind = 'sweep' "
                   "AND policy IS 'curve'");
    size_t count = 0;

    while (statement && count < SWEEP_MAX && reader_next(&source->reader, statement) == 1) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        if (!text || *text != '[')
            continue;

        splits[count].share = strtod(text + 1, NULL);
        snprintf(splits[count++].ratios, sizeof splits[0].ratios, "%s", text);
    }
    sqlite3_finalize(statement);
    qsort(splits, count, sizeof *splits, by_share);
    return count;
}

/* The finding, if the oracle is known. */
static void say_oracle(const struct source_run *run, const struct plot_series *curve,
                       double adaptive_ms, struct html *finding)
{
    double best = INFINITY, oracle_ms = run->oracle_ns / 1e6;

    if (!run->oracle_text[0] || !isfinite(oracle_ms))
        return;

    /* The ends of the curve are the devices alone. */
    for (size_t i = 0; i < curve->count; i++)
        if (curve->points[i].x <= 0 || curve->points[i].x >= 100)
            best = fmin(best, curve->points[i].y);

    html_format(finding, "The best static split gives %.0f&#160;%% of the rows to ",
                100 * strtod(run->oracle_text + 1, NULL));
    html_text(finding, run->devices[0]);
    html_format(finding, " and takes %.3g&#160;ms", oracle_ms);
    if (run->device_count == 2 && isfinite(best))
        html_format(finding, "; the faster device alone takes %.3g&#160;ms, %.2f times as long",
                    best, best / oracle_ms);
    if (isfinite(adaptive_ms))
        html_format(finding,
                    ". The policy <em>adaptive</em> takes %.3g&#160;ms, %.2f times as long",
                    adaptive_ms, adaptive_ms / oracle_ms);
    html_raw(finding, ".");
}

static void add_splits(struct source *source, const struct sweep_point *splits, size_t count,
                       struct plot *plot, struct plot_series *curve)
{
    const struct source_run *run = source->runs;
    struct source_wish wish = {.run = run, .kind = "sweep", .policy = "curve", .device = -1};

    if (run->device_count == 2)
        plot_add(plot, curve, solo_point(source, run, 1, 0));
    for (size_t i = 0; i < count; i++) {
        wish.ratios = splits[i].ratios;
        plot_add(plot, curve, source_point(source, &wish, 100 * splits[i].share));
    }
    plot_add(plot, curve, solo_point(source, run, 0, 100));
}

/* The time of a policy at its mean share, after learning. */
static struct plot_point learned_point(struct source *source, const char *policy)
{
    struct source_wish wish = {
        .run = source->runs, .kind = "policy", .policy = policy, .device = -1};
    struct lab_blocks all = {0};

    if (source_values(source, &wish, &all))
        wish.first_frame = all.count / LEARNING;
    lab_blocks_free(&all);
    return source_point(source, &wish, 100 * source_share(source, &wish));
}

static bool make_curve(struct source *source, struct findings *findings)
{
    struct plot *plot = findings_plot(findings, "curve", "Frame time by split",
                                      "rows on the first device, per cent", "frame time, ms");
    const struct source_run *run = source->runs;
    struct sweep_point *splits = calloc(SWEEP_MAX, sizeof *splits);
    struct policies policies;
    double adaptive_ms = NAN;
    bool good = plot && splits && source->run_count && read_policies(source, run, &policies);

    if (!good)
        goto end;

    plot->from_zero = true;
    struct plot_series *curve = plot_series_add(plot, PLOT_LINE, "", "static splits");
    add_splits(source, splits, read_splits(source, run, splits), plot, curve);
    if (run->oracle_text[0])
        plot_add(plot, plot_series_add(plot, PLOT_MARKS, "p1", "oracle: best static split"),
                 oracle_point(source, run, 100 * strtod(run->oracle_text + 1, NULL)));

    for (uint32_t p = 0; p < policies.count; p++) {
        struct plot_point point = learned_point(source, policies.names[p]);

        plot_add(plot, policy_series(plot, PLOT_MARKS, &policies, p), point);
        if (strcmp(policies.names[p], "adaptive") == 0)
            adaptive_ms = point.y;
    }

    say_oracle(run, curve, adaptive_ms, &findings->finding);
    html_raw(&findings->words,
             "<p>Every round measures each split once, between the policies' frames, so that "
             "other activity on the machine affects all of them equally. Medians with "
             "95&#160;% intervals. A policy is drawn at its mean share after the first "
             "quarter of its frames.</p>");
end:
    free(splits);
    return good;
}

/* --- A reserved core -------------------------------------------------------------------------- */

static bool make_reserve(struct source *source, struct findings *findings)
{
    struct plot *plot = findings_plot(findings, "reserve",
                                      "A core reserved for the scheduler thread", "policy",
                                      "time with a reserved core / without");
    struct policies policies;

    if (!plot || source->run_count < 2 || !read_policies(source, source->runs, &policies))
        return false;

    plot->has_rows = true;
    plot->line = 1;
    struct plot_series *series = plot_series_add(plot, PLOT_MARKS, "p2", "with / without");

    for (uint32_t p = 0; p < policies.count; p++) {
        struct source_wish wish = {
            .kind = "policy", .policy = policies.names[p], .device = -1, .phase = -1};
        struct lab_blocks on = {0}, off = {0};

        wish.run = &source->runs[0];
        bool good = source_values(source, &wish, &off);
        wish.run = &source->runs[1];
        if (good && source_values(source, &wish, &on))
            plot_add(plot, series, source_ratio(&on, &off, plot_row(plot, policies.names[p])));
        lab_blocks_free(&on);
        lab_blocks_free(&off);
    }

    html_raw(
        &findings->words,
        "<p>Below 1, the reserved core pays. Two processes take turns: one keeps a core "
        "free of kernels, the other does not. Ratios of medians, with 95&#160;% intervals.</p>");
    return true;
}

/* --- Kinds of cores --------------------------------------------------------------------------- */

static bool make_kinds(struct source *source, struct findings *findings)
{
    const struct laptop_machine *machine = findings->machine;
    struct plot *plot = findings_plot(findings, "kinds", "Each kind of cores", "kind",
                                      "frame time, ms");
    char name[64];

    if (!plot)
        return false;

    plot->has_rows = plot->from_zero = true;
    struct plot_series *series = plot_series_add(plot, PLOT_MARKS, "d0",
                                                 "the CPU device on these cores only");

    for (uint32_t r = 0; r < source->run_count && r < machine->kind_count; r++) {
        snprintf(name, sizeof name, "%u %s", machine->kinds[r].cores, machine->kinds[r].name);
        plot_add(plot, series, solo_point(source, &source->runs[r], 0, plot_row(plot, name)));
    }

    html_raw(&findings->words,
             "<p>The CPU device alone, limited to the cores of one kind, one thread per core. "
             "Medians with 95&#160;% intervals. The processes ran one after the other.</p>");
    return true;
}

/* --- Disturbed -------------------------------------------------------------------------------- */

static bool make_disturb(struct source *source, struct findings *findings)
{
    static const char *const names[] = {"before", "while others compute", "after"};
    static const char *const colours[] = {"d0", "d1", "d3"};
    struct plot *plot = findings_plot(findings, "disturb",
                                      "Policies while another process computes", "policy",
                                      "frame time, ms");
    const struct source_run *run = source->runs;
    struct policies policies;

    if (!plot || !source->run_count || !read_policies(source, run, &policies))
        return false;

    plot->has_rows = plot->from_zero = true;
    for (int phase = 0; phase < 3; phase++) {
        struct plot_series *series = plot_series_add(plot, PLOT_MARKS, colours[phase], "%s",
                                                     names[phase]);

        for (uint32_t p = 0; p < policies.count; p++)
            plot_add(plot, series,
                     policy_point(source, run, policies.names[p], phase,
                                  plot_row(plot, policies.names[p])));
    }

    html_raw(&findings->words,
             "<p>During the second third of the frames, another process computes on the cores "
             "of the CPU device. Medians with 95&#160;% intervals. The report of the database "
             "shows every frame and the oracle of each phase.</p>");
    return true;
}

/* --- Energy ----------------------------------------------------------------------------------- */

/* The share of a policy's frames after their deadline, per cent; NaN = not known. */
static double late_percent(struct source *source, const struct source_run *run, const char *policy)
{
    sqlite3_stmt *statement =
        source_ask(source, run,
                   "SELECT 100.0 * avg(f.wall_ns > r.deadline_ns) FROM frame f "
                   "JOIN session s USING (session) JOIN run r USING (run) WHERE run = ?1 "
                   "AND s.kind = 'policy' AND s.policy = ?2 AND f.status = 0");
    double percent = NAN;

    if (!statement)
        return NAN;
    sqlite3_bind_text(statement, 2, policy, -1, SQLITE_STATIC);
    if (reader_next(&source->reader, statement) == 1)
        percent = reader_number(statement, 0);
    sqlite3_finalize(statement);
    return percent;
}

/* The mean energy of a policy's frames with its interval. */
static struct plot_point energy_point(struct source *source, const struct source_run *run,
                                      const char *policy)
{
    const struct source_wish wish = {
        .run = run, .kind = "policy", .policy = policy, .device = -1, .phase = -1, .joules = true};
    struct lab_blocks joules = {0};
    struct lab_intervals sure;
    struct plot_point point = {run->deadline_ms, NAN, NAN, NAN};
    double sum = 0;

    if (source_values(source, &wish, &joules) && joules.count &&
        lab_bootstrap(&joules, NULL, &sure)) {
        for (size_t i = 0; i < joules.count; i++)
            sum += joules.values[i].value;
        point = (struct plot_point){run->deadline_ms, sum / (double)joules.count, sure.mean.low,
                                    sure.mean.high};
    }

    lab_blocks_free(&joules);
    return point;
}

static bool make_energy(struct source *source, struct findings *findings)
{
    struct plot *energy = findings_plot(findings, "energy", "Energy per frame by deadline",
                                        "deadline, ms", "energy per frame, J");
    struct plot *late = findings_plot(findings, "late", "Late frames", "deadline, ms",
                                      "late frames, per cent");
    struct policies policies;

    if (!energy || !late || !source->run_count || !read_policies(source, source->runs, &policies))
        return false;

    energy->from_zero = late->from_zero = true;
    for (uint32_t p = 0; p < policies.count; p++) {
        struct plot_series *joules = policy_series(energy, PLOT_LINE, &policies, p);
        struct plot_series *share = policy_series(late, PLOT_LINE, &policies, p);

        for (uint32_t r = 0; r < source->run_count; r++) {
            const struct source_run *run = &source->runs[r];
            double percent = late_percent(source, run, policies.names[p]);

            plot_add(energy, joules, energy_point(source, run, policies.names[p]));
            plot_add(late, share, (struct plot_point){run->deadline_ms, percent, NAN, NAN});
        }
    }

    html_raw(&findings->words,
             "<p>Means with 95&#160;% intervals. <em>adaptive</em> minimises energy within "
             "the deadline; the other policies ignore energy. The processor's meter does not "
             "include a discrete graphics card.</p>");
    return true;
}

/* --- All parts -------------------------------------------------------------------------------- */

typedef bool make_fn(struct source *source, struct findings *findings);

static make_fn *const makers[LAPTOP_ALL_PARTS] = {
    [LAPTOP_SIZES] = make_sizes,     [LAPTOP_CURVE] = make_curve, [LAPTOP_RESERVE] = make_reserve,
    [LAPTOP_CORUN] = findings_corun, [LAPTOP_KINDS] = make_kinds, [LAPTOP_DISTURB] = make_disturb,
    [LAPTOP_ENERGY] = make_energy};

bool findings_make(const struct laptop_machine *machine, const struct laptop_record *record,
                   struct findings *findings)
{
    struct source *source = source_open(record);

    *findings = (struct findings){.record = record, .machine = machine};
    if (!source)
        return false;

    for (uint32_t r = 0; r < source->run_count; r++)
        findings->busy |= source->runs[r].busy;
    bool good = makers[record->part](source, findings);

    return source_close(&source) && good;
}

/* The devices alone, the oracle and the policy adaptive on one supply. */
static void add_supply(struct source *source, struct plot *plot, struct plot_series *series)
{
    const struct source_run *run = source->runs;
    char name[100];

    if (!source->run_count)
        return;

    for (uint32_t d = 0; d < run->device_count; d++) {
        snprintf(name, sizeof name, "%s alone", run->devices[d]);
        plot_add(plot, series, solo_point(source, run, d, plot_row(plot, name)));
    }
    plot_add(plot, series, oracle_point(source, run, plot_row(plot, "oracle")));
    plot_add(plot, series, policy_point(source, run, "adaptive", 0, plot_row(plot, "adaptive")));
}

bool findings_supplies(const struct laptop_record *mains, const struct laptop_record *battery,
                       struct findings *findings)
{
    *findings = (struct findings){.record = mains};
    struct plot *plot = findings_plot(findings, "supplies", "On mains and on battery", "",
                                      "frame time, ms");
    struct source *sources[2] = {source_open(mains), source_open(battery)};
    bool good = plot && sources[0] && sources[1];

    if (good) {
        plot->has_rows = plot->from_zero = true;
        add_supply(sources[0], plot,
                   plot_series_add(plot, PLOT_MARKS, "d0", "%s",
                                   laptop_supply_name(mains->supply)));
        add_supply(sources[1], plot, plot_series_add(plot, PLOT_MARKS, "d1", "battery"));
    }

    for (int s = 0; s < 2; s++)
        good = source_close(&sources[s]) && good;
    return good;
}
