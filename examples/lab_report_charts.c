/* SPDX-License-Identifier: Apache-2.0 */
#include "lab_report_charts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICE_COLOURS = 8, POLICY_COLOURS = 10 };

/* The built-in policies keep their colour in every report; others get the next that is free. */
static const char *const known_policies[POLICY_COLOURS] = {"adaptive", "hguided", "last-frame", "ewma",   "mean10",
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

void chart_device_name(struct html *out, const struct report_run *run, uint32_t device, unsigned characters)
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

void chart_group_name(struct html *out, const struct report_run *run, uint32_t group, unsigned characters)
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

/* --- Paper and pen --------------------------------------------------------------------------------------------------- */

/* Everything is in units of the drawing, which is so wide that letters of 11.5 units can be read. */
struct paper {
    struct html *out;
    const struct report_run *run;
    bool narrow;
    double width, left, right; /* `right`: of the plot; beyond it stand labels */
    size_t bins;
};

static const double letter = 6.1; /* mean width of one */

static struct paper paper_of(struct html *out, const struct report_run *run, bool narrow, double label_width)
{
    return (struct paper){.out = out,
                          .run = run,
                          .narrow = narrow,
                          .width = narrow ? 360 : 880,
                          .left = narrow ? 34 : 44,
                          .right = narrow ? 354 : 880 - label_width,
                          .bins = narrow ? CHART_BINS_NARROW : CHART_BINS_WIDE};
}

static void draw(struct html *out, const char *before, double value)
{
    html_raw(out, before);
    html_coordinate(out, value);
}

static void rectangle(struct html *out, const char *class, double x, double y, double width, double height)
{
    html_format(out, "<rect class=\"%s\"", class);
    draw(out, " x=\"", x);
    draw(out, "\" y=\"", y);
    draw(out, "\" width=\"", fmax(width, 0));
    draw(out, "\" height=\"", fmax(height, 0));
    html_raw(out, "\"");
}

static void line(struct html *out, const char *class, double x0, double y0, double x1, double y1)
{
    html_format(out, "<path class=\"%s\" d=\"", class);
    draw(out, "M", x0);
    draw(out, " ", y0);
    if (y0 == y1)
        draw(out, "H", x1);
    else if (x0 == x1)
        draw(out, "V", y1);
    else {
        draw(out, "L", x1);
        draw(out, " ", y1);
    }
    html_raw(out, "\"/>");
}

/* The caller writes the words and label_end. */
static void label(struct html *out, const char *class, double x, double y)
{
    html_format(out, "<text class=\"%s\"", class);
    draw(out, " x=\"", x);
    draw(out, "\" y=\"", y);
    html_raw(out, "\">");
}

static void label_end(struct html *out)
{
    html_raw(out, "</text>");
}

/* The caller writes the title, then the description, then calls svg_open. `id` makes the names unique in the page. */
static void svg_begin(const struct paper *paper, double height)
{
    html_format(paper->out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"%s\" role=\"img\" viewBox=\"0 0 %.0f %.0f\">",
                paper->narrow ? "narrow" : "wide", paper->width, height);
}

static void panel_title(const struct paper *paper, const char *text, double y)
{
    label(paper->out, "panel", paper->left, y);
    html_raw(paper->out, text);
    label_end(paper->out);
}

/* --- Axes ------------------------------------------------------------------------------------------------------------ */

struct scale {
    double low, high;  /* values */
    double start, end; /* where they lie */
};

static double place(const struct scale *scale, double value)
{
    double clipped = fmin(fmax(value, scale->low), scale->high);
    return scale->start + (clipped - scale->low) / (scale->high - scale->low) * (scale->end - scale->start);
}

/* 1, 2 or 5 times a power of ten, so that at most `count` of them lie in `span`. */
static double tick_step(double span, unsigned count)
{
    static const double steps[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(span / count)));
    for (int i = 0; i < 4; i++)
        if (span / (power * steps[i]) <= count)
            return power * steps[i];
    return power * 10;
}

/* Multiples of a step from low to high. */
struct ticks {
    double first, step;
    unsigned count;
};

static struct ticks ticks_of(double low, double high, unsigned most)
{
    struct ticks ticks = {.step = tick_step(high - low, most)};
    ticks.first = ceil(low / ticks.step - 1e-9);
    double count = floor(high / ticks.step + 1e-9) - ticks.first + 1;
    ticks.count = count > 0 ? (unsigned)fmin(count, 2.0 * most) : 0;
    return ticks;
}

static double tick_at(const struct ticks *ticks, unsigned index)
{
    return (ticks->first + index) * ticks->step;
}

/* A tick's number, with the decimals that its step needs. */
static void tick_text(struct html *out, double value, double step)
{
    int decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    html_format(out, "%.*f", decimals, value);
}

/* Lines across the plot with their values at the left. */
static void value_axis(const struct paper *paper, const struct scale *scale, unsigned ticks, double factor)
{
    struct ticks all = ticks_of(scale->low / factor, scale->high / factor, ticks);
    for (unsigned i = 0; i < all.count; i++) {
        double tick = tick_at(&all, i), y = place(scale, tick * factor);
        line(paper->out, tick == 0 ? "axis" : "grid", paper->left, y, paper->right, y);
        label(paper->out, "tick end", paper->left - 6, y + 4);
        tick_text(paper->out, tick, all.step);
        label_end(paper->out);
    }
}

static struct scale frame_scale(const struct paper *paper)
{
    return (struct scale){0, paper->run->frame_end, paper->left, paper->right};
}

static void frame_axis(const struct paper *paper, double y)
{
    struct scale frames = frame_scale(paper);
    double step = fmax(tick_step(frames.high, paper->narrow ? 4 : 8), 1);
    line(paper->out, "axis", paper->left, y, paper->right, y);
    for (unsigned i = 0; i * step < frames.high; i++) {
        double tick = i * step, x = place(&frames, tick);
        line(paper->out, "axis", x, y, x, y + 4);
        label(paper->out, "tick mid", x, y + 17);
        tick_text(paper->out, tick, step);
        label_end(paper->out);
    }
    label(paper->out, "tick end", paper->right, y + 31);
    html_raw(paper->out, "frame →");
    label_end(paper->out);
}

/* The phases: shaded where something disturbs, named above. */
static void phase_shades(const struct paper *paper, double name_y, double top, double bottom)
{
    struct scale frames = frame_scale(paper);
    const struct report_run *run = paper->run;
    for (uint32_t i = 0; run->phase_count > 1 && i < run->phase_count; i++) {
        const struct report_phase *phase = &run->phases[i];
        double x0 = place(&frames, phase->first_frame), x1 = place(&frames, phase->end_frame);
        if (!(x1 > x0))
            continue;
        if (phase->disturbed) {
            rectangle(paper->out, "phase", x0, top, x1 - x0, bottom - top);
            html_raw(paper->out, "/>");
        }
        if (i)
            line(paper->out, "edge", x0, name_y - 9, x0, bottom);
        double letters = floor((x1 - x0 - 8) / letter);
        if (letters < 3)
            continue;
        label(paper->out, "phase-name", x0 + (i ? 5 : 0), name_y);
        html_text_cut(paper->out, phase->text, (unsigned)letters);
        label_end(paper->out);
    }
}

/* --- Lines and areas ------------------------------------------------------------------------------------------------- */

/* The line over the means of the bins; it breaks where a bin is empty. */
static void mean_line(const struct paper *paper, const char *class, const struct report_bin *bins, size_t count,
                      size_t stride, const struct scale *scale)
{
    bool drawing = false;
    double width = (paper->right - paper->left) / (double)count;
    html_format(paper->out, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0; i < count; i++) {
        const struct report_bin *bin = &bins[i * stride];
        bool next = i + 1 < count && bins[(i + 1) * stride].count;
        if (bin->count) {
            draw(paper->out, drawing ? "L" : "M", paper->left + ((double)i + 0.5) * width);
            draw(paper->out, " ", place(scale, bin->mean));
            if (!drawing && !next) /* one alone is a dot, which takes a line of no length */
                html_raw(paper->out, "h0");
        }
        drawing = bin->count;
    }
    html_raw(paper->out, "\"/>");
}

/* From the least to the most of each bin. */
static void range_band(const struct paper *paper, const char *class, const struct report_bin *bins, size_t count,
                       const struct scale *scale)
{
    double width = (paper->right - paper->left) / (double)count;
    html_format(paper->out, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0, end; i < count; i = end + 1) {
        for (end = i; end < count && bins[end].count; end++) {
            draw(paper->out, end == i ? "M" : "L", paper->left + ((double)end + 0.5) * width);
            draw(paper->out, " ", place(scale, bins[end].most));
        }
        for (size_t k = end; k > i; k--) {
            draw(paper->out, "L", paper->left + ((double)k - 0.5) * width);
            draw(paper->out, " ", place(scale, bins[k - 1].least));
        }
        if (end > i)
            html_raw(paper->out, "Z");
    }
    html_raw(paper->out, "\"/>");
}

/* Steps of so many heights above `base`: columns without gaps between them. */
struct steps {
    double left, width, base;
    double last;
    bool open;
};

static void step_to(struct html *out, struct steps *steps, size_t index, double height)
{
    if (steps->open && fabs(height - steps->last) < 0.05)
        return;
    double x = steps->left + (double)index * steps->width;
    draw(out, steps->open ? "H" : "M", x);
    if (!steps->open)
        draw(out, " ", steps->base);
    draw(out, "V", steps->base - height);
    steps->last = height;
    steps->open = true;
}

static void step_end(struct html *out, struct steps *steps, size_t index)
{
    if (!steps->open)
        return;
    draw(out, "H", steps->left + (double)index * steps->width);
    draw(out, "V", steps->base);
    html_raw(out, "Z");
    steps->open = false;
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* --- Labels that make room for each other ---------------------------------------------------------------------------- */

struct tag {
    double y;
    uint32_t what;
};

static int compare_tags(const void *a, const void *b)
{
    double left = ((const struct tag *)a)->y, right = ((const struct tag *)b)->y;
    return (left > right) - (left < right);
}

/* Sorts, and moves what is closer than `gap` apart, staying within top .. bottom as far as there is room. */
static void spread(struct tag *tags, size_t count, double gap, double top, double bottom)
{
    qsort(tags, count, sizeof *tags, compare_tags);
    for (size_t i = 0; i < count; i++)
        tags[i].y = fmax(tags[i].y, i ? tags[i - 1].y + gap : top);
    double limit = bottom;
    for (size_t i = count; i-- > 0;) {
        tags[i].y = fmin(tags[i].y, limit);
        limit = tags[i].y - gap;
    }
}

/* One decimal, for the descriptions. */
static void say(struct html *out, double value)
{
    if (isnan(value))
        html_raw(out, " not known");
    else
        html_format(out, " %.1f", value);
}

void chart_ms(struct html *out, double ns)
{
    double ms = ns / 1e6;
    if (isnan(ms))
        html_raw(out, "–");
    else
        html_format(out, "%.*f", fabs(ms) < 1 ? 4 : fabs(ms) < 10 ? 3 : fabs(ms) < 100 ? 2 : 1, ms);
}

/* --- Efficiency ------------------------------------------------------------------------------------------------------ */

/* One block of bars: a phase, or all frames. */
static void efficiency_block(const struct paper *paper, const struct chart_policies *about, uint32_t phase, double left,
                             double right, double top, bool names)
{
    struct html *out = paper->out;
    struct scale scale = {0, 1, left, right - 40};
    double bottom = top + 18 * about->count;
    for (int i = 0; i <= 2; i++) {
        double x = place(&scale, i / 2.0);
        line(out, i ? "grid" : "axis", x, top, x, bottom + 2);
        label(out, "tick mid", x, bottom + 15);
        html_format(out, "%d", i * 50);
        label_end(out);
    }
    for (uint32_t i = 0; i < about->count; i++) {
        uint32_t policy = about->policies[i];
        const struct report_figures *figures = phase == REPORT_ALL_PHASES ? &about->all[policy]
                                                                          : &about->phases[policy][phase];
        double y = top + 18 * i;
        if (names) {
            label(out, "name end", left - 8, y + 13);
            html_text_middle(out, about->run->policies[policy], 16);
            label_end(out);
        }
        char class[24];
        snprintf(class, sizeof class, "fill p%u", chart_policy_colour(about->run, policy));
        if (isnan(figures->efficiency))
            continue;
        rectangle(out, class, left, y + 4, place(&scale, figures->efficiency) - left, 11);
        html_raw(out, "/>");
        label(out, "value", place(&scale, figures->efficiency) + 5, y + 13);
        html_format(out, "%.1f", 100 * figures->efficiency);
        label_end(out);
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
    double names = 118, block = (paper.width - names) / blocks, top = 24, height = top + 18 * about->count + 22;
    svg_begin(&paper, height);
    html_raw(out,
             "<title>Efficiency of each policy</title><desc>Per cent of the devices' joint speed. Over all frames:");
    for (uint32_t i = 0; i < about->count; i++) {
        html_raw(out, i ? ", " : " ");
        html_text_cut(out, about->run->policies[about->policies[i]], 40);
        say(out, 100 * about->all[about->policies[i]].efficiency);
    }
    html_raw(out, ".</desc>");
    for (uint32_t i = 0; i < blocks; i++) {
        double left = names + block * i;
        label(out, "panel", left, 13);
        if (i)
            html_text_cut(out, about->run->phases[i - 1].text, (unsigned)((block - 20) / (1.15 * letter)));
        else
            html_raw(out, "all frames");
        label_end(out);
        efficiency_block(&paper, about, i ? i - 1 : REPORT_ALL_PHASES, left, left + block, top, i == 0);
    }
    html_raw(out, "</svg>");
    return true;
}

/* --- Distribution ---------------------------------------------------------------------------------------------------- */

/* From the least time of all to where 99 % of each policy's frames end, but no farther than what keeps the bulk of them apart:
 * who has outliers of many times the median does not squeeze the others. */
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
            middle = fmax(middle, about->phases[about->policies[i]][phase].p50_ns); /* NaN is passed over */
    }
    most = fmin(most, 1.6 * fmin(middle, 5 * best));
    most = fmax(most, least * 1.01);
    double step = tick_step(most - least, 12);
    return (struct scale){floor(least / step) * step, ceil(most / step) * step, paper->left, paper->right};
}

static void times_row(const struct paper *paper, const struct chart_policies *about, uint32_t policy,
                      const struct scale *scale, double y)
{
    enum { COLUMNS = 120 };
    struct html *out = paper->out;
    const struct report_figures *figures = &about->all[policy];
    size_t columns[COLUMNS], most = 1, count = paper->narrow ? COLUMNS / 2 : COLUMNS;
    double step = (scale->high - scale->low) / (double)count, height = 28;
    size_t beyond = report_histogram(paper->run, policy, scale->low, step, count, columns);
    for (size_t i = 0; i < count; i++)
        most = columns[i] > most ? columns[i] : most;
    struct steps steps = {.left = paper->left, .width = (paper->right - paper->left) / (double)count, .base = y};
    html_format(out, "<path class=\"fill p%u\" d=\"", chart_policy_colour(paper->run, policy));
    for (size_t i = 0; i < count; i++) {
        if (columns[i])
            step_to(out, &steps, i, fmax(height * (double)columns[i] / (double)most, 0.8));
        else
            step_end(out, &steps, i);
    }
    step_end(out, &steps, count);
    html_raw(out, "\"/>");
    line(out, "axis", paper->left, y, paper->right, y);
    if (figures->frames) {
        double p50 = place(scale, figures->p50_ns), p99 = place(scale, figures->p99_ns);
        line(out, "mark", p50, y - height - 3, p50, y + 4);
        if (figures->p99_ns <= scale->high)
            line(out, "mark dashed", p99, y - height - 3, p99, y + 4);
    }
    label(out, paper->narrow ? "name" : "name end", paper->narrow ? paper->left : paper->left - 10,
          paper->narrow ? y - 36 : y - 4);
    html_text_middle(out, paper->run->policies[policy], 16);
    label_end(out);
    double figure_y = paper->narrow ? y - 36 : y - 4;
    label(out, "value end", paper->width - (paper->narrow ? 74 : 66), figure_y);
    chart_ms(out, figures->p50_ns);
    label_end(out);
    label(out, "value end", paper->width - 4, figure_y);
    chart_ms(out, figures->p99_ns);
    label_end(out);
    if (beyond) {
        label(out, "tick end", paper->right, y + 12);
        html_format(out, "%zu beyond →", beyond);
        label_end(out);
    }
}

/* What the two marks of each row are, over the columns of their numbers. */
static void times_heads(const struct paper *paper)
{
    static const char *const names[] = {"p50", "p99"}, *const classes[] = {"mark", "mark dashed"};
    for (int i = 0; i < 2; i++) {
        double x = paper->width - (i ? 4 : paper->narrow ? 74 : 66);
        line(paper->out, classes[i], x - 31, 3, x - 31, 15);
        label(paper->out, "panel end", x, 13);
        html_raw(paper->out, names[i]);
        label_end(paper->out);
    }
}

bool chart_times(struct html *out, const struct chart_policies *about, bool narrow)
{
    struct paper paper = paper_of(out, about->run, narrow, 138);
    paper.left = narrow ? 6 : 118;
    size_t frames = 0;
    for (uint32_t i = 0; i < about->count; i++)
        frames += about->all[about->policies[i]].frames;
    if (!frames)
        return false;
    struct scale scale = times_scale(&paper, about);
    double row = narrow ? 68 : 46, top = narrow ? 68 : 54, bottom = top + row * (about->count - 1) + 16;
    svg_begin(&paper, bottom + 34);
    html_raw(out,
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
        double x = place(&scale, tick_at(&ticks, i) * 1e6);
        line(out, "grid", x, 20, x, bottom);
        label(out, "tick mid", x, bottom + 14);
        tick_text(out, tick_at(&ticks, i), ticks.step);
        label_end(out);
    }
    for (uint32_t i = 0; i < about->count; i++)
        times_row(&paper, about, about->policies[i], &scale, top + row * i);
    label(out, "tick end", paper.right, bottom + 30);
    html_raw(out, "frame time, ms →");
    label_end(out);
    html_raw(out, "</svg>");
    return true;
}

/* --- Regret ---------------------------------------------------------------------------------------------------------- */

/* A line that leaves the chart ends where it does. */
static void regret_line(const struct paper *paper, uint32_t policy, const double *values, size_t count,
                        const struct scale *scale)
{
    struct html *out = paper->out;
    double width = (paper->right - paper->left) / (double)count;
    bool drawing = false;
    html_format(out, "<path class=\"line p%u\" d=\"", chart_policy_colour(paper->run, policy));
    for (size_t i = 0; i < count; i++) {
        double before = i ? values[i - 1] : 0;
        if (!isnan(values[i]) && (isnan(before) || before <= scale->high || values[i] <= scale->high)) {
            if (!drawing) {
                draw(out, "M", paper->left + (double)i * width);
                draw(out, " ", place(scale, isnan(before) ? values[i] : before));
            }
            draw(out, "L", paper->left + (double)(i + 1) * width);
            draw(out, " ", place(scale, values[i]));
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

static void regret_tags(const struct paper *paper, const double *values, size_t count, size_t stride,
                        const struct chart_policies *about, const struct scale *scale, double top, double bottom)
{
    struct tag tags[REPORT_POLICIES_MAX];
    size_t tagged = 0;
    for (uint32_t i = 0; i < about->count; i++) {
        double value = last_known(values + i * stride, count);
        if (!isnan(value))
            tags[tagged++] = (struct tag){place(scale, value) + 4 - value / 1e15, i}; /* the larger above */
    }
    spread(tags, tagged, 14.5, top + 4, bottom + 4);
    for (size_t i = 0; i < tagged; i++) {
        uint32_t policy = about->policies[tags[i].what];
        double value = last_known(values + tags[i].what * stride, count), y = place(scale, value);
        char class[24];
        snprintf(class, sizeof class, "leader p%u", chart_policy_colour(paper->run, policy));
        if (value <= scale->high)
            line(paper->out, class, paper->right + 2, y, paper->right + 14, tags[i].y - 4);
        label(paper->out, "name", paper->right + 18, tags[i].y);
        html_text_middle(paper->out, paper->run->policies[policy], 16);
        html_format(paper->out, "<tspan class=\"value\" dx=\"6\">%+.*f%s</tspan>", fabs(value) < 1e8 ? 1 : 0,
                    value / 1e6, value > scale->high ? " ↑" : "");
        label_end(paper->out);
    }
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
static double regret_key(const struct paper *paper, const struct chart_policies *about, const double *values,
                         size_t count, size_t stride, double y)
{
    for (uint32_t i = 0; i < about->count; i++) {
        uint32_t policy = about->policies[i];
        double value = last_known(values + i * stride, count);
        double x = i % 2 ? 186 : 6, row = y + 16 * floor(i / 2.0);
        char class[24];
        snprintf(class, sizeof class, "line p%u", chart_policy_colour(paper->run, policy));
        line(paper->out, class, x, row - 4, x + 18, row - 4);
        label(paper->out, "name", x + 24, row);
        html_text_middle(paper->out, paper->run->policies[policy], 13);
        if (!isnan(value))
            html_format(paper->out, "<tspan class=\"value\" dx=\"6\">%+.1f</tspan>", value / 1e6);
        label_end(paper->out);
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
        size_t bins = report_regret(about->run, about->policies[i], paper.bins, values + i * paper.bins);
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
    svg_begin(&paper, bottom + 38 + key);
    html_raw(out,
             "<title>Regret over time</title><desc>Milliseconds lost against the oracle up to each frame; at the end:");
    for (uint32_t i = 0; i < about->count; i++) {
        html_raw(out, i ? ", " : " ");
        html_text_cut(out, about->run->policies[about->policies[i]], 40);
        say(out, last_known(values + i * paper.bins, count) / 1e6);
    }
    html_raw(out, ".</desc>");
    phase_shades(&paper, 12, 22, bottom);
    value_axis(&paper, &scale, 5, 1e6);
    panel_title(&paper, "Lost against the oracle, ms", top - 6);
    for (uint32_t i = about->count; i-- > 0;)
        regret_line(&paper, about->policies[i], values + i * paper.bins, count, &scale);
    frame_axis(&paper, bottom);
    if (narrow)
        regret_key(&paper, about, values, count, paper.bins, bottom + 50);
    else
        regret_tags(&paper, values, count, paper.bins, about, &scale, top, bottom);
    html_raw(out, "</svg>");
    free(values);
    return true;
}

/* --- One session over time ------------------------------------------------------------------------------------------- */

static double whole_share(const struct report_series *series, uint32_t group)
{
    double sum = 0, bins = 0;
    for (size_t i = 0; i < series->bins; i++) {
        sum += series->share[i * series->group_count + group];
        bins += series->time_ns[i].count > 0;
    }
    return bins > 0 ? sum / bins : 0;
}

/* Who the colours are, beside where their areas end. */
static void split_tags(const struct paper *paper, const struct report_series *series, double top, double bottom)
{
    struct tag tags[COX_DEVICES_MAX];
    size_t tagged = 0, last = series->bins;
    while (last && !series->time_ns[last - 1].count)
        last--;
    double below = 0, least = 0;
    size_t room = (size_t)((bottom - top) / 14) + 1;
    const double *shares = series->share + (last ? last - 1 : 0) * series->group_count;
    /* Where not all have room, those with the most rows. */
    for (size_t more = series->group_count; last && more > room; least += 0.002) {
        more = 0;
        for (uint32_t group = 0; group < series->group_count; group++)
            more += shares[group] >= least;
    }
    for (uint32_t group = 0; last && group < series->group_count; group++) {
        if (shares[group] >= least)
            tags[tagged++] = (struct tag){bottom - (below + shares[group] / 2) * (bottom - top) + 4, group};
        below += shares[group];
    }
    tagged = tagged > room ? room : tagged;
    spread(tags, tagged, 14, top + 8, bottom + 2);
    for (size_t i = 0; i < tagged; i++) {
        char class[24];
        snprintf(class, sizeof class, "fill d%u", chart_group_colour(tags[i].what));
        rectangle(paper->out, class, paper->right + 9, tags[i].y - 8, 9, 9);
        html_raw(paper->out, "/>");
        label(paper->out, "name", paper->right + 23, tags[i].y);
        html_format(paper->out, "%.0f %%<tspan class=\"value\" dx=\"5\">", 100 * whole_share(series, tags[i].what));
        chart_group_name(paper->out, paper->run, tags[i].what, 21);
        html_raw(paper->out, "</tspan>");
        label_end(paper->out);
    }
}

static void split_panel(const struct paper *paper, const struct report_series *series, double top, double bottom)
{
    struct scale scale = {0, 1, bottom, top};
    double width = (paper->right - paper->left) / (double)series->bins;
    /* Each area goes down to the axis, and the next group's is painted under it. */
    for (uint32_t group = series->group_count; group-- > 0;) {
        struct steps steps = {.left = paper->left, .width = width, .base = bottom};
        html_format(paper->out, "<path class=\"area d%u\" d=\"", chart_group_colour(group));
        for (size_t i = 0; i < series->bins; i++) {
            double upto = 0;
            for (uint32_t k = 0; k <= group; k++)
                upto += series->share[i * series->group_count + k];
            if (upto > 0)
                step_to(paper->out, &steps, i, upto * (bottom - top));
            else
                step_end(paper->out, &steps, i);
        }
        step_end(paper->out, &steps, series->bins);
        html_raw(paper->out, "\"><title>");
        chart_group_name(paper->out, paper->run, group, 80);
        html_format(paper->out, ": %.1f %% of the rows</title></path>", 100 * whole_share(series, group));
    }
    for (int i = 0; i <= 2; i++) {
        label(paper->out, "tick end", paper->left - 6, place(&scale, i / 2.0) + 4);
        html_format(paper->out, "%d", i * 50);
        label_end(paper->out);
    }
    line(paper->out, "axis", paper->left, bottom, paper->right, bottom);
    if (!paper->narrow)
        split_tags(paper, series, top, bottom);
}

/* From zero to well above what is usual in each phase; rare frames that took many times as long are cut off, and `*peak` tells
 * the longest of them. */
static struct scale finish_scale(const struct chart_policies *about, uint32_t policy,
                                 const struct report_series *series, double top, double bottom, double *peak)
{
    double usual = about->all[policy].p50_ns, most = 1;
    for (uint32_t phase = 0; phase < about->run->phase_count; phase++)
        usual = fmax(usual, about->phases[policy][phase].p50_ns);
    for (size_t i = 0; i < series->bins; i++) {
        if (series->time_ns[i].count)
            most = fmax(most, series->time_ns[i].most);
        if (series->oracle_ns[i].count)
            usual = fmax(usual, series->oracle_ns[i].mean);
    }
    double high = fmin(most, fmax(1.6 * usual, 1)), step = tick_step(high, 4);
    struct scale scale = {0, ceil(high / step) * step, bottom, top};
    *peak = most > scale.high ? most : NAN;
    return scale;
}

static void finish_tags(const struct paper *paper, const struct report_series *series, const struct scale *scale,
                        double peak, double top, double bottom)
{
    size_t last = series->bins;
    while (last && !series->time_ns[last - 1].count)
        last--;
    if (!last)
        return;
    const struct report_bin *oracle = &series->oracle_ns[last - 1];
    double oracle_y = oracle->count ? fmin(fmax(place(scale, oracle->mean) + 4, top + 8), bottom) : top;
    if (oracle->count) {
        line(paper->out, "oracle", paper->right + 9, oracle_y - 4, paper->right + 25, oracle_y - 4);
        label(paper->out, "value", paper->right + 30, oracle_y);
        html_raw(paper->out, "oracle ");
        chart_ms(paper->out, oracle->mean);
        label_end(paper->out);
    }
    if (series->frames_a_bin > 1) {
        double y = oracle_y + (oracle_y > (top + bottom) / 2 ? -17 : 17);
        rectangle(paper->out, "range", paper->right + 9, y - 9, 16, 10);
        html_raw(paper->out, "/>");
        label(paper->out, "value", paper->right + 30, y);
        html_raw(paper->out, "frame, least to most");
        label_end(paper->out);
    }
    if (!isnan(peak)) {
        double y = oracle_y > (top + bottom) / 2 ? top + 8 : bottom;
        label(paper->out, "value", paper->right + 9, y);
        html_raw(paper->out, "↑ at most ");
        chart_ms(paper->out, peak);
        label_end(paper->out);
    }
}

static void finish_panel(const struct paper *paper, const struct chart_policies *about, uint32_t policy,
                         const struct report_series *series, double top, double bottom)
{
    enum { LINES_MAX = 8 };
    double peak;
    struct scale scale = finish_scale(about, policy, series, top, bottom, &peak);
    value_axis(paper, &scale, 4, 1e6);
    if (series->frames_a_bin > 1)
        range_band(paper, "range", series->time_ns, series->bins, &scale);
    for (uint32_t group = 0; group < series->group_count && series->group_count <= LINES_MAX; group++) {
        char class[24];
        snprintf(class, sizeof class, "line d%u", chart_group_colour(group));
        mean_line(paper, class, series->finish_ns + group, series->bins, series->group_count, &scale);
    }
    if (series->group_count > LINES_MAX) {
        /* So many lines would hide each other: the mean frame is when the last one is done. */
        mean_line(paper, "line ink", series->time_ns, series->bins, 1, &scale);
    }
    mean_line(paper, "oracle", series->oracle_ns, series->bins, 1, &scale);
    if (!paper->narrow)
        finish_tags(paper, series, &scale, peak, top, bottom);
}

static void error_panel(const struct paper *paper, const struct report_series *series, double top, double bottom)
{
    struct scale scale = {0.5, 1.5, bottom, top};
    for (int i = 0; i <= 2; i++) {
        double y = place(&scale, 0.5 + i / 2.0);
        line(paper->out, i == 1 ? "axis" : "grid", paper->left, y, paper->right, y);
        label(paper->out, "tick end", paper->left - 6, y + 4);
        html_format(paper->out, "%.1f", 0.5 + i / 2.0);
        label_end(paper->out);
    }
    if (series->frames_a_bin > 1)
        range_band(paper, "range", series->error, series->bins, &scale);
    mean_line(paper, "line ink", series->error, series->bins, 1, &scale);
    if (!paper->narrow) {
        label(paper->out, "value", paper->right + 9, place(&scale, 1) - 6);
        html_raw(paper->out, "↑ slower than predicted");
        label_end(paper->out);
        label(paper->out, "value", paper->right + 9, place(&scale, 1) + 14);
        html_raw(paper->out, "↓ faster");
        label_end(paper->out);
    }
}

/* A lane for each reason; how high it is filled is how many of the bin's frames have it. */
static double reason_lanes(const struct paper *paper, const struct report_source *source,
                           const struct report_series *series, const size_t *counts, double y)
{
    struct html *out = paper->out;
    double width = (paper->right - paper->left) / (double)series->bins;
    for (uint32_t reason = 0; reason < REPORT_REASONS; reason++) {
        if (!counts[reason])
            continue;
        const char *text = report_reason(source, reason);
        size_t head = strcspn(text, ":,");
        if (paper->narrow)
            y += 15;
        label(out, "name", paper->narrow ? paper->left : paper->right + 9, paper->narrow ? y - 3 : y + 11);
        html_format(out, "%zu<tspan class=\"value\" dx=\"6\">", counts[reason]);
        char *short_text = strndup(text, head);
        html_text_cut(out, short_text, paper->narrow ? 40 : 26);
        free(short_text);
        html_raw(out, "</tspan>");
        label_end(out);
        line(out, "grid", paper->left, y + 13, paper->right, y + 13);
        struct steps steps = {.left = paper->left, .width = width, .base = y + 13};
        html_raw(out, "<path class=\"lane\" d=\"");
        for (size_t i = 0; i < series->bins; i++) {
            double share = series->reasons[i * REPORT_REASONS + reason];
            if (share > 0)
                step_to(out, &steps, i, fmax(share * 11, 1.5));
            else
                step_end(out, &steps, i);
        }
        step_end(out, &steps, series->bins);
        html_raw(out, "\"><title>");
        html_text(out, text);
        html_format(out, ": %zu frames</title></path>", counts[reason]);
        y += 17;
    }
    return y;
}

static void session_words(struct html *out, const struct report_run *run, const struct report_session *session,
                          const struct report_series *series)
{
    html_raw(out, "<title>What ");
    html_text_cut(out, run->policies[session->policy], 40);
    html_format(out, " did</title><desc>Over %zu frames: share of the rows,", session->frame_count);
    for (uint32_t group = 0; group < series->group_count; group++) {
        html_raw(out, group ? ", " : " ");
        chart_group_name(out, run, group, 40);
        html_format(out, " %.1f %%", 100 * whole_share(series, group));
    }
    html_raw(out,
             "; when each device was done with its bands; measured by predicted frame time; the reason of each split."
             " The tables below hold the figures.</desc>");
}

bool chart_session(struct html *out, const struct chart_policies *about, const struct report_session *session,
                   bool narrow)
{
    enum { TITLE = 20, GAP = 14 };
    struct paper paper = paper_of(out, about->run, narrow, 212);
    struct report_series series;
    if (!report_series(about->run, session, paper.bins, &series))
        return false;
    size_t counts[REPORT_REASONS] = {0}, lanes = 0, predicted = 0;
    for (size_t i = 0; i < session->frame_count; i++)
        lanes += !counts[session->frames[i].reason]++;
    for (size_t i = 0; i < series.bins; i++)
        predicted += series.error[i].count;
    double names = about->run->phase_count > 1 ? 22 : 4;
    double split = names + TITLE, split_end = split + 96;
    double finish = split_end + GAP + TITLE, finish_end = finish + 120;
    double error = finish_end + GAP + TITLE, error_end = predicted ? error + 50 : finish_end;
    double reasons = error_end + GAP + TITLE - 4, reasons_end = reasons + (double)lanes * (narrow ? 32 : 17) + 6;
    svg_begin(&paper, reasons_end + 36);
    session_words(out, about->run, session, &series);
    phase_shades(&paper, 12, names, reasons_end);
    panel_title(&paper,
                series.group_count < about->run->device_count ? "Rows of each kind of device, per cent"
                                                              : "Rows of each device, per cent",
                split - 7);
    split_panel(&paper, &series, split, split_end);
    panel_title(&paper,
                series.group_count < about->run->device_count ? "When the last of each kind is done, ms"
                                                              : "When each device is done, ms",
                finish - 7);
    finish_panel(&paper, about, session->policy, &series, finish, finish_end);
    if (predicted) {
        panel_title(&paper, "Frame time, measured ÷ predicted", error - 7);
        error_panel(&paper, &series, error, error_end);
    }
    panel_title(&paper, "Reason of the split", reasons - 5);
    reason_lanes(&paper, about->source, &series, counts, reasons);
    frame_axis(&paper, reasons_end);
    html_raw(out, "</svg>");
    report_series_free(&series);
    return true;
}
