/* SPDX-License-Identifier: Apache-2.0 */
#include "charts.h"
#include "axes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICE_COLOURS = 8, POLICY_COLOURS = 10 };

/* The built-in policies keep their colour in every report; others get the next that is free. */
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
    for (uint32_t i = 0; i < run->device_count; i++)
        namesakes += name && run->devices[i].name && !strcmp(name, run->devices[i].name);
    if (!name || !*name) {
        html_format(out, "device %lld", (long long)run->devices[device].number);
        return;
    }
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

void chart_ms(struct html *out, double ns)
{
    double ms = ns / 1e6;
    if (isnan(ms))
        html_raw(out, "–");
    else
        html_format(out, "%.*f", fabs(ms) < 1 ? 4 : fabs(ms) < 10 ? 3 : fabs(ms) < 100 ? 2 : 1, ms);
}

/* One decimal, for the descriptions. */
static void say(struct html *out, double value)
{
    if (isnan(value))
        html_raw(out, " not known");
    else
        html_format(out, " %.1f", value);
}

/* --- Efficiency --------------------------------------------------------------------------------------------------- */

/* One block of bars: a phase, or all frames. */
static void efficiency_block(const struct paper *paper, const struct chart_policies *about,
                             uint32_t phase, double left, double right, double top, bool names)
{
    struct html *out = paper->svg.out;
    struct scale scale = {0, 1, left, right - 40};
    double bottom = top + 18 * about->count;
    for (int i = 0; i <= 2; i++) {
        double x = scale_place(&scale, i / 2.0);
        svg_line(out, i ? "grid" : "axis", x, top, x, bottom + 2);
        svg_label(out, "tick mid", x, bottom + 15);
        html_format(out, "%d", i * 50);
        svg_label_end(out);
    }
    for (uint32_t i = 0; i < about->count; i++) {
        uint32_t policy = about->policies[i];
        const struct report_figures *figures = phase == REPORT_ALL_PHASES
                                                   ? &about->all[policy]
                                                   : &about->phases[policy][phase];
        double y = top + 18 * i;
        if (names) {
            svg_label(out, "name end", left - 8, y + 13);
            html_text_middle(out, about->run->policies[policy], 16);
            svg_label_end(out);
        }
        char class[24];
        snprintf(class, sizeof class, "fill p%u", chart_policy_colour(about->run, policy));
        if (isnan(figures->efficiency))
            continue;
        svg_rectangle(out, class, left, y + 4, scale_place(&scale, figures->efficiency) - left, 11);
        html_raw(out, "/>");
        svg_label(out, "value", scale_place(&scale, figures->efficiency) + 5, y + 13);
        html_format(out, "%.1f", 100 * figures->efficiency);
        svg_label_end(out);
    }
}

bool chart_efficiency(struct html *out, const struct chart_policies *about, bool narrow)
{
    enum { BLOCKS_MAX = 4 };
    struct paper paper = paper_of(out, about->run, narrow, 0);
    bool known = false;
    for (uint32_t i = 0; i < about->count; i++)
        known |= !isnan(about->all[about->policies[i]].efficiency);
    if (!known)
        return false;
    uint32_t phases = about->run->phase_count;
    uint32_t blocks = phases > 1 && phases < BLOCKS_MAX && !narrow ? 1 + phases : 1;
    double names = 118, block = (paper.svg.width - names) / blocks, top = 24,
           height = top + 18 * about->count + 22;
    svg_begin(&paper.svg, height);
    html_raw(
        out,
        "<title>Efficiency of each policy</title><desc>Per cent of the devices' joint speed. Over all frames:");
    for (uint32_t i = 0; i < about->count; i++) {
        html_raw(out, i ? ", " : " ");
        html_text_cut(out, about->run->policies[about->policies[i]], 40);
        say(out, 100 * about->all[about->policies[i]].efficiency);
    }
    html_raw(out, ".</desc>");
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

/* --- Distribution ------------------------------------------------------------------------------------------------- */

/* From the least time of all to where 99 % of each policy's frames end, but no farther than what keeps the bulk of them
 * apart: a policy with outliers of many times the median does not squeeze the others. */
static struct scale times_scale(const struct paper *paper, const struct chart_policies *about)
{
    double least = INFINITY, most = 0, middle = 0, best = INFINITY;
    for (uint32_t i = 0; i < about->count; i++) {
        const struct report_figures *figures = &about->all[about->policies[i]];
        if (!figures->frames)
            continue;
        least = fmin(least, figures->least_ns);
        most = fmax(most, figures->p99_ns * 1.04);
        middle = fmax(middle, figures->p50_ns);
        best = fmin(best, figures->p50_ns);
        for (uint32_t phase = 0; phase < about->run->phase_count; phase++)
            middle = fmax(middle,
                          about->phases[about->policies[i]][phase].p50_ns); /* NaN is passed over */
    }
    most = fmin(most, 1.6 * fmin(middle, 5 * best));
    most = fmax(most, least * 1.01);
    double step = ticks_step(most - least, 12);
    return (struct scale){floor(least / step) * step, ceil(most / step) * step, paper->svg.left,
                          paper->svg.right};
}

static void times_row(const struct paper *paper, const struct chart_policies *about,
                      uint32_t policy, const struct scale *scale, double y)
{
    enum { COLUMNS = 120 };
    struct html *out = paper->svg.out;
    const struct report_figures *figures = &about->all[policy];
    size_t columns[COLUMNS], most = 1, count = paper->svg.narrow ? COLUMNS / 2 : COLUMNS;
    double step = (scale->high - scale->low) / (double)count, height = 28;
    size_t beyond = report_histogram(paper->run, policy, scale->low, step, count, columns);
    for (size_t i = 0; i < count; i++)
        most = columns[i] > most ? columns[i] : most;
    struct steps steps = {.left = paper->svg.left,
                          .width = (paper->svg.right - paper->svg.left) / (double)count,
                          .base = y};
    html_format(out, "<path class=\"fill p%u\" d=\"", chart_policy_colour(paper->run, policy));
    for (size_t i = 0; i < count; i++) {
        if (columns[i])
            step_to(out, &steps, i, fmax(height * (double)columns[i] / (double)most, 0.8));
        else
            step_end(out, &steps, i);
    }
    step_end(out, &steps, count);
    html_raw(out, "\"/>");
    svg_line(out, "axis", paper->svg.left, y, paper->svg.right, y);
    if (figures->frames) {
        double p50 = scale_place(scale, figures->p50_ns), p99 = scale_place(scale, figures->p99_ns);
        svg_line(out, "mark", p50, y - height - 3, p50, y + 4);
        if (figures->p99_ns <= scale->high)
            svg_line(out, "mark dashed", p99, y - height - 3, p99, y + 4);
    }
    svg_label(out, paper->svg.narrow ? "name" : "name end",
              paper->svg.narrow ? paper->svg.left : paper->svg.left - 10,
              paper->svg.narrow ? y - 36 : y - 4);
    html_text_middle(out, paper->run->policies[policy], 16);
    svg_label_end(out);
    double figure_y = paper->svg.narrow ? y - 36 : y - 4;
    svg_label(out, "value end", paper->svg.width - (paper->svg.narrow ? 74 : 66), figure_y);
    chart_ms(out, figures->p50_ns);
    svg_label_end(out);
    svg_label(out, "value end", paper->svg.width - 4, figure_y);
    chart_ms(out, figures->p99_ns);
    svg_label_end(out);
    if (beyond) {
        svg_label(out, "tick end", paper->svg.right, y + 12);
        html_format(out, "%zu beyond →", beyond);
        svg_label_end(out);
    }
}

/* What the two marks of each row are, over the columns of their numbers. */
static void times_heads(const struct paper *paper)
{
    static const char *const names[] = {"p50", "p99"}, *const classes[] = {"mark", "mark dashed"};
    for (int i = 0; i < 2; i++) {
        double x = paper->svg.width - (i ? 4 : paper->svg.narrow ? 74 : 66);
        svg_line(paper->svg.out, classes[i], x - 31, 3, x - 31, 15);
        svg_label(paper->svg.out, "panel end", x, 13);
        html_raw(paper->svg.out, names[i]);
        svg_label_end(paper->svg.out);
    }
}

bool chart_times(struct html *out, const struct chart_policies *about, bool narrow)
{
    struct paper paper = paper_of(out, about->run, narrow, 138);
    paper.svg.left = narrow ? 6 : 118;
    size_t frames = 0;
    for (uint32_t i = 0; i < about->count; i++)
        frames += about->all[about->policies[i]].frames;
    if (!frames)
        return false;
    struct scale scale = times_scale(&paper, about);
    double row = narrow ? 68 : 46, top = narrow ? 68 : 54,
           bottom = top + row * (about->count - 1) + 16;
    svg_begin(&paper.svg, bottom + 34);
    html_raw(
        out,
        "<title>Frame times of each policy</title><desc>How many frames took how long, in milliseconds, with the "
        "median and the 99th percentile:");
    for (uint32_t i = 0; i < about->count; i++) {
        html_raw(out, i ? ", " : " ");
        html_text_cut(out, about->run->policies[about->policies[i]], 40);
        html_raw(out, " ");
        chart_ms(out, about->all[about->policies[i]].p50_ns);
        html_raw(out, " and ");
        chart_ms(out, about->all[about->policies[i]].p99_ns);
    }
    html_raw(out, ".</desc>");
    times_heads(&paper);
    struct ticks ticks = ticks_of(scale.low / 1e6, scale.high / 1e6, narrow ? 5 : 9);
    for (unsigned i = 0; i < ticks.count; i++) {
        double x = scale_place(&scale, tick_at(&ticks, i) * 1e6);
        svg_line(out, "grid", x, 20, x, bottom);
        svg_label(out, "tick mid", x, bottom + 14);
        tick_text(out, tick_at(&ticks, i), ticks.step);
        svg_label_end(out);
    }
    for (uint32_t i = 0; i < about->count; i++)
        times_row(&paper, about, about->policies[i], &scale, top + row * i);
    svg_label(out, "tick end", paper.svg.right, bottom + 30);
    html_raw(out, "frame time, ms →");
    svg_label_end(out);
    html_raw(out, "</svg>");
    return true;
}

/* --- Regret ------------------------------------------------------------------------------------------------------- */

/* A line that leaves the chart ends where it does. */
static void regret_line(const struct paper *paper, uint32_t policy, const double *values,
                        size_t count, const struct scale *scale)
{
    struct html *out = paper->svg.out;
    double width = (paper->svg.right - paper->svg.left) / (double)count;
    bool drawing = false;
    html_format(out, "<path class=\"line p%u\" d=\"", chart_policy_colour(paper->run, policy));
    for (size_t i = 0; i < count; i++) {
        double before = i ? values[i - 1] : 0;
        if (!isnan(values[i]) &&
            (isnan(before) || before <= scale->high || values[i] <= scale->high)) {
            if (!drawing) {
                svg_number(out, "M", paper->svg.left + (double)i * width);
                svg_number(out, " ", scale_place(scale, isnan(before) ? values[i] : before));
            }
            svg_number(out, "L", paper->svg.left + (double)(i + 1) * width);
            svg_number(out, " ", scale_place(scale, values[i]));
            drawing = true;
        } else
            drawing = false;
    }
    html_raw(out, "\"/>");
}

static double last_known(const double *values, size_t count)
{
    while (count && isnan(values[count - 1]))
        count--;
    return count ? values[count - 1] : NAN;
}

static void regret_tags(const struct paper *paper, const double *values, size_t count,
                        size_t stride, const struct chart_policies *about,
                        const struct scale *scale, double top, double bottom)
{
    struct tag tags[REPORT_POLICIES_MAX];
    size_t tagged = 0;
    for (uint32_t i = 0; i < about->count; i++) {
        double value = last_known(values + i * stride, count);
        if (!isnan(value))
            tags[tagged++] = (struct tag){scale_place(scale, value) + 4 - value / 1e15,
                                          i}; /* the larger above */
    }
    tags_spread(tags, tagged, 14.5, top + 4, bottom + 4);
    for (size_t i = 0; i < tagged; i++) {
        uint32_t policy = about->policies[tags[i].what];
        double value = last_known(values + tags[i].what * stride, count),
               y = scale_place(scale, value);
        char class[24];
        snprintf(class, sizeof class, "leader p%u", chart_policy_colour(paper->run, policy));
        if (value <= scale->high)
            svg_line(paper->svg.out, class, paper->svg.right + 2, y, paper->svg.right + 14,
                     tags[i].y - 4);
        svg_label(paper->svg.out, "name", paper->svg.right + 18, tags[i].y);
        html_text_middle(paper->svg.out, paper->run->policies[policy], 16);
        html_format(paper->svg.out, "<tspan class=\"value\" dx=\"6\">%+.*f%s</tspan>",
                    fabs(value) < 1e8 ? 1 : 0, value / 1e6, value > scale->high ? " ↑" : "");
        svg_label_end(paper->svg.out);
    }
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* As high as the policies need, unless one needs so much more than most that the others could not be told apart. */
static double regret_high(const double *values, size_t policies, size_t count, size_t stride)
{
    double highest[REPORT_POLICIES_MAX];
    size_t known = 0;
    for (size_t i = 0; i < policies; i++) {
        double high = -INFINITY;
        for (size_t k = 0; k < count; k++)
            high = fmax(high, values[i * stride + k]);
        if (isfinite(high))
            highest[known++] = fmax(high, 0);
    }
    qsort(highest, known, sizeof *highest, compare_doubles);
    double middle = known ? highest[(known - 1) * 2 / 3] : 0;
    while (known > 2 && middle > 0 && highest[known - 1] > 5 * middle)
        known--;
    return known ? highest[known - 1] : 0;
}

/* On a telephone there is no room at the right: the names stand below, with a piece of their line. */
static double regret_key(const struct paper *paper, const struct chart_policies *about,
                         const double *values, size_t count, size_t stride, double y)
{
    for (uint32_t i = 0; i < about->count; i++) {
        uint32_t policy = about->policies[i];
        double value = last_known(values + i * stride, count);
        double x = i % 2 ? 186 : 6, row = y + 16 * floor(i / 2.0);
        char class[24];
        snprintf(class, sizeof class, "line p%u", chart_policy_colour(paper->run, policy));
        svg_line(paper->svg.out, class, x, row - 4, x + 18, row - 4);
        svg_label(paper->svg.out, "name", x + 24, row);
        html_text_middle(paper->svg.out, paper->run->policies[policy], 13);
        if (!isnan(value))
            html_format(paper->svg.out, "<tspan class=\"value\" dx=\"6\">%+.1f</tspan>",
                        value / 1e6);
        svg_label_end(paper->svg.out);
    }
    return y;
}

bool chart_regret(struct html *out, const struct chart_policies *about, bool narrow)
{
    struct paper paper = paper_of(out, about->run, narrow, 184);
    double *values = malloc(about->count * paper.bins * sizeof *values);
    size_t count = 0;
    double least = 0;
    for (uint32_t i = 0; values && i < about->count; i++) {
        size_t bins = report_regret(about->run, about->policies[i], paper.bins,
                                    values + i * paper.bins);
        count = bins ? bins : count;
        for (size_t k = 0; k < paper.bins; k++) {
            double *value = &values[i * paper.bins + k];
            *value = k < bins ? *value : NAN;
            least = fmin(least, *value);
        }
    }
    if (!count) {
        out->failed |= !values;
        free(values);
        return false;
    }
    double top = 46, bottom = 262, key = narrow ? 16 * ceil(about->count / 2.0) + 8 : 0;
    double most = fmax(regret_high(values, about->count, count, paper.bins), least + 1e3);
    least = fmax(least, -4 * most);
    double room = 0.03 * (most - least);
    struct scale scale = {least < 0 ? least - room : 0, most + room, bottom, top};
    svg_begin(&paper.svg, bottom + 38 + key);
    html_raw(
        out,
        "<title>Regret over time</title><desc>Milliseconds lost against the oracle up to each frame; at the end:");
    for (uint32_t i = 0; i < about->count; i++) {
        html_raw(out, i ? ", " : " ");
        html_text_cut(out, about->run->policies[about->policies[i]], 40);
        say(out, last_known(values + i * paper.bins, count) / 1e6);
    }
    html_raw(out, ".</desc>");
    axes_phases(&paper, 12, 22, bottom);
    svg_value_axis(&paper.svg, &scale, 5, 1e6);
    svg_title(&paper.svg, "Lost against the oracle, ms", top - 6);
    for (uint32_t i = about->count; i-- > 0;)
        regret_line(&paper, about->policies[i], values + i * paper.bins, count, &scale);
    axes_frame_axis(&paper, bottom);
    if (narrow)
        regret_key(&paper, about, values, count, paper.bins, bottom + 50);
    else
        regret_tags(&paper, values, count, paper.bins, about, &scale, top, bottom);
    html_raw(out, "</svg>");
    free(values);
    return true;
}
