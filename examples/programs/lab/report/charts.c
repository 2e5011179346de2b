/* SPDX-License-Identifier: Apache-2.0 */
#include "charts.h"
#include "axes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICE_COLOURS = 8, POLICY_COLOURS = 10 };

/* These policies have the same colour in every report; others get the next one that is
 * free. */
static const char *const known_policies[POLICY_COLOURS] = {
    "adaptive", "hguided", "last-frame", "ewma",   "mean10",
    "chunks",   "static",  "single",     "oracle", NULL};

static uint32_t known_colour(const char *policy)
{
    for (uint32_t i = 0; i < POLICY_COLOURS; i++)
        if (known_policies[i] && !strcmp(known_policies[i], policy))
            return i;
    return POLICY_COLOURS;
}

uint32_t chart_policy_colour(const struct report_run *run, uint32_t policy)
{
    bool taken[POLICY_COLOURS] = {false};
    uint32_t others = 0;

    for (uint32_t i = 0; i < run->policy_count; i++) {
        uint32_t colour = known_colour(run->policies[i]);

        if (i == policy && colour < POLICY_COLOURS)
            return colour;
        if (colour < POLICY_COLOURS)
            taken[colour] = true;
        else if (i < policy)
            others++;
    }

    for (uint32_t colour = POLICY_COLOURS; colour-- > 0;)
        if (!taken[colour] && !others--)
            return colour;

    return policy % POLICY_COLOURS;
}

uint32_t chart_group_colour(uint32_t group)
{
    return group % DEVICE_COLOURS;
}

void chart_device_name(struct html *out, const struct report_run *run, uint32_t device,
                       unsigned characters)
{
    const char *name = run->devices[device].name;
    uint32_t namesakes = 0;

    if (!name || !*name) {
        html_format(out, "device %lld", (long long)run->devices[device].number);
        return;
    }

    for (uint32_t i = 0; i < run->device_count; i++)
        namesakes += run->devices[i].name && !strcmp(name, run->devices[i].name);
    html_text_middle(out, name, characters);
    if (namesakes > 1)
        html_format(out, " #%lld", (long long)run->devices[device].number);
}

void chart_group_name(struct html *out, const struct report_run *run, uint32_t group,
                      unsigned characters)
{
    uint32_t first = 0, members = 0;

    for (uint32_t i = run->device_count; i-- > 0;)
        if (run->devices[i].group == group) {
            first = i;
            members++;
        }
    if (members < 2) {
        chart_device_name(out, run, first, characters);
        return;
    }

    char *name = strndup(run->devices[first].name, report_group_letters(run, first));
    out->failed |= !name;
    html_text_middle(out, name, characters);
    free(name);
    html_format(out, " × %u", members);
}

void chart_pass_name(struct html *out, const struct report_run *run, uint32_t pass,
                     unsigned characters)
{
    if (run->passes[pass])
        html_text_cut(out, run->passes[pass], characters);
    else
        html_format(out, "pass %u", pass);
}

const struct report_figures *chart_figures(const struct chart_policies *about, uint32_t policy,
                                           uint32_t phase)
{
    if (phase == REPORT_ALL_PHASES)
        return &about->all[policy];
    return &about->phases[policy][phase];
}

/* For the descriptions: the name of the policy of that row, after a separator. */
static void say_policy(struct html *out, const struct chart_policies *about, uint32_t row)
{
    html_raw(out, row ? ", " : " ");
    html_text_cut(out, about->run->policies[about->policies[row]], 40);
}

/* One decimal. */
static void say(struct html *out, double value)
{
    if (isnan(value))
        html_raw(out, " unknown");
    else
        html_format(out, " %.1f", value);
}

/* --- Efficiency ------------------------------------------------------------------------------- */

/* One block of bars: a phase, or all frames. */
static void efficiency_block(const struct paper *paper, const struct chart_policies *about,
                             uint32_t phase, double left, double right, double top, bool names)
{
    struct html *out = paper->svg.out;
    struct scale scale = {0, 1, left, right - 40};
    double bottom = top + 18 * about->count;
    char class[24];

    for (int i = 0; i <= 2; i++) {
        double x = scale_place(&scale, i / 2.0);

        svg_line(out, i ? "grid" : "axis", x, top, x, bottom + 2);
        axes_label(out, "tick mid", x, bottom + 15, "%d", i * 50);
    }

    for (uint32_t i = 0; i < about->count; i++) {
        uint32_t policy = about->policies[i];
        double efficiency = chart_figures(about, policy, phase)->efficiency;
        double y = top + 18 * i, end = scale_place(&scale, efficiency);

        if (names)
            axes_name(out, "name end", left - 8, y + 13, about->run->policies[policy], 16);
        if (isnan(efficiency))
            continue;

        snprintf(class, sizeof class, "fill p%u", chart_policy_colour(about->run, policy));
        svg_rectangle(out, class, left, y + 4, end - left, 11);
        html_raw(out, "/>");
        axes_label(out, "value", end + 5, y + 13, "%.1f", 100 * efficiency);
    }
}

bool chart_efficiency(struct html *out, const struct chart_policies *about, bool narrow)
{
    enum { BLOCKS_MAX = 4 };
    const double names = 118, top = 24;
    struct paper paper = paper_of(out, about->run, narrow, 0);
    uint32_t phases = about->run->phase_count, blocks = 1;
    bool known = false;

    for (uint32_t i = 0; i < about->count; i++)
        known |= !isnan(about->all[about->policies[i]].efficiency);
    if (!known)
        return false;

    if (phases > 1 && phases < BLOCKS_MAX && !narrow)
        blocks += phases;
    svg_begin(&paper.svg, top + 18 * about->count + 22);
    html_raw(out, "<title>Efficiency of each policy</title><desc>Per cent of the "
                  "devices' summed speeds. Over all frames:");
    for (uint32_t i = 0; i < about->count; i++) {
        say_policy(out, about, i);
        say(out, 100 * about->all[about->policies[i]].efficiency);
    }
    html_raw(out, ".</desc>");

    double block = (paper.svg.width - names) / blocks;
    for (uint32_t i = 0; i < blocks; i++) {
        double left = names + block * i;

        svg_label(out, "panel", left, 13);
        if (i)
            html_text_cut(out, about->run->phases[i - 1].text,
                          (unsigned)((block - 20) / (1.15 * svg_letter)));
        else
            html_raw(out, "all frames");
        svg_label_end(out);
        efficiency_block(&paper, about, i ? i - 1 : REPORT_ALL_PHASES, left, left + block, top,
                         i == 0);
    }
    html_raw(out, "</svg>");
    return true;
}

/* --- Distribution ----------------------------------------------------------------------------- */

/* From the least time of all to the 99th percentile of the slowest policy. The medians limit the
 * upper end: a policy with outliers of many times the median must not squeeze the others. */
static struct scale times_scale(const struct paper *paper, const struct chart_policies *about)
{
    double least = INFINITY, most = 0, middle = 0, best = INFINITY;

    for (uint32_t i = 0; i < about->count; i++) {
        uint32_t policy = about->policies[i];
        const struct report_figures *figures = &about->all[policy];
        if (!figures->frames)
            continue;

        least = fmin(least, figures->least_ns);
        most = fmax(most, figures->p99_ns * 1.04);
        middle = fmax(middle, figures->p50_ns);
        best = fmin(best, figures->p50_ns);
        /* fmax ignores NaN. */
        for (uint32_t phase = 0; phase < about->run->phase_count; phase++)
            middle = fmax(middle, about->phases[policy][phase].p50_ns);
    }

    most = fmin(most, 1.6 * fmin(middle, 5 * best));
    most = fmax(most, least * 1.01);

    double step = ticks_step(most - least, 12);
    return (struct scale){floor(least / step) * step, ceil(most / step) * step, paper->svg.left,
                          paper->svg.right};
}

/* The columns of a row: how many frames took each time. Returns the number of frames beyond the
 * scale. */
static size_t times_columns(const struct paper *paper, uint32_t policy, const struct scale *scale,
                            double height, double y)
{
    enum { COLUMNS_NARROW = 60, COLUMNS = 120 };
    struct html *out = paper->svg.out;
    size_t columns[COLUMNS], most = 1;
    size_t count = (size_t)axes_pick(&paper->svg, COLUMNS_NARROW, COLUMNS);
    double step = (scale->high - scale->low) / (double)count;
    size_t beyond = report_histogram(paper->run, policy, scale->low, step, count, columns);
    struct steps steps = {.left = paper->svg.left,
                          .width = (paper->svg.right - paper->svg.left) / (double)count,
                          .base = y};

    for (size_t i = 0; i < count; i++)
        if (columns[i] > most)
            most = columns[i];

    html_format(out, "<path class=\"fill p%u\" d=\"", chart_policy_colour(paper->run, policy));
    for (size_t i = 0; i < count; i++) {
        if (columns[i])
            step_to(out, &steps, i, fmax(height * (double)columns[i] / (double)most, 0.8));
        else
            step_end(out, &steps, i);
    }
    step_end(out, &steps, count);
    html_raw(out, "\"/>");
    return beyond;
}

/* Where the medians end, from the right edge of the drawing. */
static double p50_offset(const struct paper *paper)
{
    return axes_pick(&paper->svg, 74, 66);
}

static void times_row(const struct paper *paper, const struct chart_policies *about,
                      uint32_t policy, const struct scale *scale, double y)
{
    const double height = 28;
    struct html *out = paper->svg.out;
    const struct report_figures *figures = &about->all[policy];
    size_t beyond = times_columns(paper, policy, scale, height, y);
    const char *name_class = "name end";
    double name_x = paper->svg.left - 10, name_y = y - 4;

    svg_line(out, "axis", paper->svg.left, y, paper->svg.right, y);
    if (figures->frames) {
        double p50 = scale_place(scale, figures->p50_ns), p99 = scale_place(scale, figures->p99_ns);

        svg_line(out, "mark", p50, y - height - 3, p50, y + 4);
        if (figures->p99_ns <= scale->high)
            svg_line(out, "mark dashed", p99, y - height - 3, p99, y + 4);
    }

    if (paper->svg.narrow) {
        name_class = "name";
        name_x = paper->svg.left;
        name_y = y - 36;
    }
    axes_name(out, name_class, name_x, name_y, paper->run->policies[policy], 16);
    axes_ms(out, "value end", paper->svg.width - p50_offset(paper), name_y, "", figures->p50_ns);
    axes_ms(out, "value end", paper->svg.width - 4, name_y, "", figures->p99_ns);
    if (beyond)
        axes_label(out, "tick end", paper->svg.right, y + 12, "%zu beyond →", beyond);
}

/* The names of the two marks of each row, above the columns of their numbers. */
static void times_head(const struct paper *paper, const char *name, const char *class,
                       double offset)
{
    double x = paper->svg.width - offset;

    svg_line(paper->svg.out, class, x - 31, 3, x - 31, 15);
    axes_label(paper->svg.out, "panel end", x, 13, "%s", name);
}

bool chart_times(struct html *out, const struct chart_policies *about, bool narrow)
{
    struct paper paper = paper_of(out, about->run, narrow, 138);
    double row = axes_pick(&paper.svg, 68, 46), top = axes_pick(&paper.svg, 68, 54);
    double bottom = top + row * (about->count - 1) + 16;
    size_t frames = 0;

    paper.svg.left = axes_pick(&paper.svg, 6, 118);
    for (uint32_t i = 0; i < about->count; i++)
        frames += about->all[about->policies[i]].frames;
    if (!frames)
        return false;

    struct scale scale = times_scale(&paper, about);
    svg_begin(&paper.svg, bottom + 34);
    html_raw(out, "<title>Frame times of each policy</title><desc>Distribution of frame "
                  "times in milliseconds, with the median and the 99th percentile:");
    for (uint32_t i = 0; i < about->count; i++) {
        say_policy(out, about, i);
        html_raw(out, " ");
        chart_ms(out, about->all[about->policies[i]].p50_ns);
        html_raw(out, " and ");
        chart_ms(out, about->all[about->policies[i]].p99_ns);
    }
    html_raw(out, ".</desc>");
    times_head(&paper, "p50", "mark", p50_offset(&paper));
    times_head(&paper, "p99", "mark dashed", 4);

    struct ticks ticks = ticks_of(scale.low / 1e6, scale.high / 1e6,
                                  (unsigned)axes_pick(&paper.svg, 5, 9));
    for (unsigned i = 0; i < ticks.count; i++) {
        double x = scale_place(&scale, tick_at(&ticks, i) * 1e6);

        svg_line(out, "grid", x, 20, x, bottom);
        svg_label(out, "tick mid", x, bottom + 14);
        tick_text(out, tick_at(&ticks, i), ticks.step);
        svg_label_end(out);
    }

    for (uint32_t i = 0; i < about->count; i++)
        times_row(&paper, about, about->policies[i], &scale, top + row * i);
    axes_label(out, "tick end", paper.svg.right, bottom + 30, "frame time, ms →");
    html_raw(out, "</svg>");
    return true;
}

/* --- Regret ----------------------------------------------------------------------------------- */

/* The policies' regret, a row of bins for each in the order of the page. */
struct regret {
    const struct chart_policies *about;
    size_t count, stride; /* bins of a row; from row to row */
    double *values;
};

static const double *regret_row(const struct regret *regret, uint32_t row)
{
    return regret->values + row * regret->stride;
}

/* At the end of the policy's last frame; NaN = not known. */
static double last_known(const struct regret *regret, uint32_t row)
{
    const double *values = regret_row(regret, row);

    for (size_t i = regret->count; i-- > 0;)
        if (!isnan(values[i]))
            return values[i];
    return NAN;
}

/* The line ends where it leaves the chart. */
static void regret_line(const struct paper *paper, const struct regret *regret, uint32_t row,
                        const struct scale *scale)
{
    struct html *out = paper->svg.out;
    const double *values = regret_row(regret, row);
    double width = (paper->svg.right - paper->svg.left) / (double)regret->count, before = 0;
    bool drawing = false;

    html_format(out, "<path class=\"line p%u\" d=\"",
                chart_policy_colour(paper->run, regret->about->policies[row]));
    for (size_t i = 0; i < regret->count; before = values[i++]) {
        bool inside = before <= scale->high || values[i] <= scale->high;

        if (isnan(values[i]) || !(isnan(before) || inside)) {
            drawing = false;
            continue;
        }
        if (!drawing) {
            double first = isnan(before) ? values[i] : before;

            svg_number(out, "M", paper->svg.left + (double)i * width);
            svg_number(out, " ", scale_place(scale, first));
        }
        svg_number(out, "L", paper->svg.left + (double)(i + 1) * width);
        svg_number(out, " ", scale_place(scale, values[i]));
        drawing = true;
    }
    html_raw(out, "\"/>");
}

static void regret_tags(const struct paper *paper, const struct regret *regret,
                        const struct scale *scale, double top, double bottom)
{
    struct tag tags[REPORT_POLICIES_MAX];
    struct html *out = paper->svg.out;
    size_t tagged = 0;
    char class[24];

    /* Of equal places, the larger value comes above. */
    for (uint32_t i = 0; i < regret->about->count; i++) {
        double value = last_known(regret, i);
        if (!isnan(value))
            tags[tagged++] = (struct tag){scale_place(scale, value) + 4 - value / 1e15, i};
    }
    tags_spread(tags, tagged, 14.5, top + 4, bottom + 4);

    for (size_t i = 0; i < tagged; i++) {
        uint32_t policy = regret->about->policies[tags[i].what];
        double value = last_known(regret, tags[i].what), y = tags[i].y;

        snprintf(class, sizeof class, "leader p%u", chart_policy_colour(paper->run, policy));
        if (value <= scale->high)
            svg_line(out, class, paper->svg.right + 2, scale_place(scale, value),
                     paper->svg.right + 14, y - 4);
        svg_label(out, "name", paper->svg.right + 18, y);
        html_text_middle(out, paper->run->policies[policy], 16);
        html_format(out, "<tspan class=\"value\" dx=\"6\">%+.*f%s</tspan>", fabs(value) < 1e8,
                    value / 1e6, value > scale->high ? " ↑" : "");
        svg_label_end(out);
    }
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* As high as the policies need, but without those that need more than five times as much as most:
 * they would squeeze the others. */
static double regret_high(const struct regret *regret)
{
    double highest[REPORT_POLICIES_MAX];
    size_t known = 0;

    for (uint32_t i = 0; i < regret->about->count; i++) {
        double high = -INFINITY;

        for (size_t k = 0; k < regret->count; k++)
            high = fmax(high, regret_row(regret, i)[k]);
        if (isfinite(high))
            highest[known++] = fmax(high, 0);
    }
    if (!known)
        return 0;

    qsort(highest, known, sizeof *highest, compare_doubles);
    double middle = highest[(known - 1) * 2 / 3];
    while (known > 2 && middle > 0 && highest[known - 1] > 5 * middle)
        known--;
    return highest[known - 1];
}

/* A narrow page has no room at the right: the names stand below, each with a piece of its line. */
static void regret_key(const struct paper *paper, const struct regret *regret, double y)
{
    struct html *out = paper->svg.out;
    char class[24];

    for (uint32_t i = 0; i < regret->about->count; i++) {
        uint32_t policy = regret->about->policies[i];
        double value = last_known(regret, i);
        double x = 6 + 180 * (i % 2), row = y + 16 * floor(i / 2.0);

        snprintf(class, sizeof class, "line p%u", chart_policy_colour(paper->run, policy));
        svg_line(out, class, x, row - 4, x + 18, row - 4);
        svg_label(out, "name", x + 24, row);
        html_text_middle(out, paper->run->policies[policy], 13);
        if (!isnan(value))
            html_format(out, "<tspan class=\"value\" dx=\"6\">%+.1f</tspan>", value / 1e6);
        svg_label_end(out);
    }
}

/* False if no oracle is known, or if out of memory. */
static bool regret_read(struct regret *regret, double *least)
{
    const struct chart_policies *about = regret->about;

    *least = 0;
    regret->values = malloc(about->count * regret->stride * sizeof *regret->values);
    for (uint32_t i = 0; regret->values && i < about->count; i++) {
        double *values = regret->values + i * regret->stride;
        size_t bins = report_regret(about->run, about->policies[i], regret->stride, values);

        if (bins)
            regret->count = bins;
        for (size_t k = bins; k < regret->stride; k++)
            values[k] = NAN;
        for (size_t k = 0; k < bins; k++)
            *least = fmin(*least, values[k]);
    }
    return regret->count > 0;
}

bool chart_regret(struct html *out, const struct chart_policies *about, bool narrow)
{
    const double top = 46, bottom = 262;
    struct paper paper = paper_of(out, about->run, narrow, 184);
    struct regret regret = {.about = about, .stride = paper.bins};
    double key = axes_pick(&paper.svg, 16 * ceil(about->count / 2.0) + 8, 0), least;

    if (!regret_read(&regret, &least)) {
        out->failed |= !regret.values;
        free(regret.values);
        return false;
    }

    double most = fmax(regret_high(&regret), least + 1e3);
    least = fmax(least, -4 * most);
    double room = 0.03 * (most - least);
    struct scale scale = {least, most + room, bottom, top};
    if (least < 0)
        scale.low -= room;

    svg_begin(&paper.svg, bottom + 38 + key);
    html_raw(out, "<title>Regret over time</title><desc>Milliseconds lost against the oracle up to"
                  " each frame; at the end:");
    for (uint32_t i = 0; i < about->count; i++) {
        say_policy(out, about, i);
        say(out, last_known(&regret, i) / 1e6);
    }
    html_raw(out, ".</desc>");
    axes_phases(&paper, 12, 22, bottom);
    svg_value_axis(&paper.svg, &scale, 5, 1e6);
    svg_title(&paper.svg, "Lost against the oracle, ms", top - 6);

    for (uint32_t i = about->count; i-- > 0;)
        regret_line(&paper, &regret, i, &scale);
    axes_frame_axis(&paper, bottom);
    if (narrow)
        regret_key(&paper, &regret, bottom + 50);
    else
        regret_tags(&paper, &regret, &scale, top, bottom);

    html_raw(out, "</svg>");
    free(regret.values);
    return true;
}
