/* One session over time: rows of each device, when each is done, prediction, reasons.
 * SPDX-License-Identifier: Apache-2.0 */
#include "charts.h"
#include "axes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPLIT_HEIGHT = 96 };

/* The share of each group in a pass's rows in a bin. */
static const double *shares_of(const struct report_series *series, uint32_t pass, size_t bin)
{
    return series->share + (pass * series->bins + bin) * series->group_count;
}

static double whole_share(const struct report_series *series, uint32_t pass, uint32_t group)
{
    double sum = 0, bins = 0;

    for (size_t i = 0; i < series->bins; i++) {
        sum += shares_of(series, pass, i)[group];
        bins += series->time_ns[i].count > 0;
    }
    if (!(bins > 0))
        return 0;
    return sum / bins;
}

/* The number of bins up to the last one that has a frame. */
static size_t used_bins(const struct report_series *series)
{
    size_t used = series->bins;

    while (used && !series->time_ns[used - 1].count)
        used--;
    return used;
}

/* A label for each group with a share of `least` or more, in the middle of its area. */
static size_t split_tags_of(const struct report_series *series, const double *shares, double least,
                            double top, double bottom, struct tag *tags)
{
    size_t count = 0;
    double below = 0;

    for (uint32_t group = 0; group < series->group_count; group++) {
        double middle = below + shares[group] / 2;

        if (shares[group] >= least)
            tags[count++] = (struct tag){bottom - middle * (bottom - top) + 4, group};
        below += shares[group];
    }
    return count;
}

/* The meaning of the colours, next to the ends of their areas. */
static void split_tags(const struct paper *paper, const struct report_series *series, uint32_t pass,
                       double top, double bottom)
{
    struct tag tags[COX_DEVICES_MAX];
    struct html *out = paper->svg.out;
    const double x = paper->svg.right + 9;
    const size_t room = (size_t)((bottom - top) / 14) + 1, bins = used_bins(series);
    size_t count;
    char class[24];

    if (!bins)
        return;

    /* If there is not enough room for all, show those with the most rows. */
    const double *shares = shares_of(series, pass, bins - 1);
    double least = 0;
    do {
        count = split_tags_of(series, shares, least, top, bottom, tags);
        least += 0.002;
    } while (count > room);

    tags_spread(tags, count, 14, top + 8, bottom + 2);
    for (size_t i = 0; i < count; i++) {
        snprintf(class, sizeof class, "fill d%u", chart_group_colour(tags[i].what));
        svg_rectangle(out, class, x, tags[i].y - 8, 9, 9);
        html_raw(out, "/>");
        svg_label(out, "name", x + 14, tags[i].y);
        html_format(out, "%.0f %%<tspan class=\"value\" dx=\"5\">",
                    100 * whole_share(series, pass, tags[i].what));
        chart_group_name(out, paper->run, tags[i].what, 21);
        html_raw(out, "</tspan>");
        svg_label_end(out);
    }
}

static void split_panel(const struct paper *paper, const struct report_series *series,
                        uint32_t pass, double top, double bottom)
{
    struct html *out = paper->svg.out;
    struct scale scale = {0, 1, bottom, top};
    double width = (paper->svg.right - paper->svg.left) / (double)series->bins;

    /* Each area reaches down to the axis; the area of the next group is painted over it. */
    for (uint32_t group = series->group_count; group-- > 0;) {
        struct steps steps = {.left = paper->svg.left, .width = width, .base = bottom};

        html_format(out, "<path class=\"area d%u\" d=\"", chart_group_colour(group));
        for (size_t i = 0; i < series->bins; i++) {
            double upto = 0;

            for (uint32_t k = 0; k <= group; k++)
                upto += shares_of(series, pass, i)[k];
            if (upto > 0)
                step_to(out, &steps, i, upto * (bottom - top));
            else
                step_end(out, &steps, i);
        }
        step_end(out, &steps, series->bins);
        html_raw(out, "\"><title>");
        chart_group_name(out, paper->run, group, 80);
        html_format(out, ": %.1f %% of the rows</title></path>",
                    100 * whole_share(series, pass, group));
    }

    for (int i = 0; i <= 2; i++)
        axes_label(out, "tick end", paper->svg.left - 6, scale_place(&scale, i / 2.0) + 4, "%d",
                   i * 50);
    svg_line(out, "axis", paper->svg.left, bottom, paper->svg.right, bottom);
    if (!paper->svg.narrow)
        split_tags(paper, series, pass, top, bottom);
}

/* From zero to well above the usual times of each phase. The scale cuts off rare frames that took
 * many times as long; then `*peak` is the longest of them, else NaN. */
static struct scale finish_scale(const struct chart_policies *about, uint32_t policy,
                                 const struct report_series *series, double top, double bottom,
                                 double *peak)
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

    double high = fmin(most, fmax(1.6 * usual, 1)), step = ticks_step(high, 4);
    struct scale scale = {0, ceil(high / step) * step, bottom, top};
    *peak = NAN;
    if (most > scale.high)
        *peak = most;
    return scale;
}

static void finish_tags(const struct paper *paper, const struct report_series *series,
                        const struct scale *scale, double peak, double top, double bottom)
{
    struct html *out = paper->svg.out;
    const double x = paper->svg.right + 9;
    const size_t bins = used_bins(series);
    double y = top, range_y = top + 17, peak_y = bottom;

    if (!bins)
        return;

    const struct report_bin *oracle = &series->oracle_ns[bins - 1];
    if (oracle->count) {
        y = fmin(fmax(scale_place(scale, oracle->mean) + 4, top + 8), bottom);
        range_y = y + 17;
        svg_line(out, "oracle", x, y - 4, x + 16, y - 4);
        axes_ms(out, "value", x + 21, y, "oracle ", oracle->mean);
    }
    if (y > (top + bottom) / 2) {
        range_y = y - 17;
        peak_y = top + 8;
    }

    if (series->frames_a_bin > 1) {
        svg_rectangle(out, "range", x, range_y - 9, 16, 10);
        html_raw(out, "/>");
        axes_label(out, "value", x + 21, range_y, "frame, least to most");
    }
    if (!isnan(peak))
        axes_ms(out, "value", x, peak_y, "↑ at most ", peak);
}

static void finish_panel(const struct paper *paper, const struct chart_policies *about,
                         uint32_t policy, const struct report_series *series, double top,
                         double bottom)
{
    enum { LINES_MAX = 8 };
    double peak;
    struct scale scale = finish_scale(about, policy, series, top, bottom, &peak);
    char class[24];

    svg_value_axis(&paper->svg, &scale, 4, 1e6);
    if (series->frames_a_bin > 1)
        axes_range(paper, "range", series->time_ns, series->bins, &scale);

    /* Too many lines would hide each other: then only the last device of each frame is shown. */
    if (series->group_count > LINES_MAX)
        axes_mean_line(paper, "line ink", series->time_ns, series->bins, 1, &scale);
    else
        for (uint32_t group = 0; group < series->group_count; group++) {
            snprintf(class, sizeof class, "line d%u", chart_group_colour(group));
            axes_mean_line(paper, class, series->finish_ns + group, series->bins,
                           series->group_count, &scale);
        }

    axes_mean_line(paper, "oracle", series->oracle_ns, series->bins, 1, &scale);
    if (!paper->svg.narrow)
        finish_tags(paper, series, &scale, peak, top, bottom);
}

static void error_panel(const struct paper *paper, const struct report_series *series, double top,
                        double bottom)
{
    struct scale scale = {0.5, 1.5, bottom, top};
    struct html *out = paper->svg.out;
    const double x = paper->svg.right + 9, middle = scale_place(&scale, 1);

    for (int i = 0; i <= 2; i++) {
        double y = scale_place(&scale, 0.5 + i / 2.0);

        svg_line(out, i == 1 ? "axis" : "grid", paper->svg.left, y, paper->svg.right, y);
        axes_label(out, "tick end", paper->svg.left - 6, y + 4, "%.1f", 0.5 + i / 2.0);
    }
    if (series->frames_a_bin > 1)
        axes_range(paper, "range", series->error, series->bins, &scale);
    axes_mean_line(paper, "line ink", series->error, series->bins, 1, &scale);
    if (paper->svg.narrow)
        return;

    axes_label(out, "value", x, middle - 6, "↑ slower than predicted");
    axes_label(out, "value", x, middle + 14, "↓ faster");
}

/* The number of frames and the first words of the reason. */
static void reason_label(const struct paper *paper, const char *text, size_t frames, double x,
                         double y)
{
    struct html *out = paper->svg.out;
    char *head = strndup(text, strcspn(text, ":,"));
    out->failed |= !head;

    svg_label(out, "name", x, y);
    html_format(out, "%zu<tspan class=\"value\" dx=\"6\">", frames);
    html_text_cut(out, head, (unsigned)axes_pick(&paper->svg, 40, 26));
    html_raw(out, "</tspan>");
    svg_label_end(out);
    free(head);
}

/* A lane for each reason. Its height at a bin shows the share of the bin's frames with that
 * reason. */
static void reason_lanes(const struct paper *paper, const struct report_source *source,
                         const struct report_series *series, const size_t *counts, double y)
{
    struct html *out = paper->svg.out;
    double width = (paper->svg.right - paper->svg.left) / (double)series->bins;

    for (uint32_t reason = 0; reason < REPORT_REASONS; reason++) {
        const char *text = report_reason(source, reason);
        if (!counts[reason])
            continue;

        if (paper->svg.narrow) {
            y += 15;
            reason_label(paper, text, counts[reason], paper->svg.left, y - 3);
        } else {
            reason_label(paper, text, counts[reason], paper->svg.right + 9, y + 11);
        }

        struct steps steps = {.left = paper->svg.left, .width = width, .base = y + 13};
        svg_line(out, "grid", paper->svg.left, y + 13, paper->svg.right, y + 13);
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
}

static void split_title(const struct paper *paper, const struct report_session *session,
                        const struct report_series *series, uint32_t pass, double y)
{
    struct html *out = paper->svg.out;

    svg_label(out, "panel", paper->svg.left, y);
    if (series->group_count < paper->run->device_count)
        html_raw(out, "Rows of each kind of device");
    else
        html_raw(out, "Rows of each device");

    if (series->pass_count > 1) {
        html_raw(out, " in ");
        chart_pass_name(out, paper->run, pass, (unsigned)axes_pick(&paper->svg, 12, 40));
        html_raw(out, ", per cent; it takes ");
        chart_ms(out, session->pass_ns[pass]);
        html_raw(out, " ms");
    } else {
        html_raw(out, ", per cent");
    }
    svg_label_end(out);
}

/* A lane for each pass. */
static void split_lanes(const struct paper *paper, const struct report_session *session,
                        const struct report_series *series, double top, double step)
{
    for (uint32_t pass = 0; pass < series->pass_count; pass++, top += step) {
        split_title(paper, session, series, pass, top - 7);
        split_panel(paper, series, pass, top, top + SPLIT_HEIGHT);
    }
}

static void session_words(struct html *out, const struct report_run *run,
                          const struct report_session *session, const struct report_series *series)
{
    html_raw(out, "<title>What ");
    html_text_cut(out, run->policies[session->policy], 40);
    html_format(out, " did</title><desc>Over %zu frames: share of the rows,", session->frame_count);

    for (uint32_t i = 0; i < series->pass_count * series->group_count; i++) {
        const uint32_t pass = i / series->group_count, group = i % series->group_count;

        html_raw(out, i ? ", " : " ");
        if (series->pass_count > 1 && group == 0) {
            html_raw(out, "in ");
            chart_pass_name(out, run, pass, 40);
            html_raw(out, " ");
        }
        chart_group_name(out, run, group, 40);
        html_format(out, " %.1f %%", 100 * whole_share(series, pass, group));
    }
    html_raw(out, "; when each device ended its bands; measured by predicted frame time; "
                  "the reason of each split. The tables below hold the figures.</desc>");
}

bool chart_session(struct html *out, const struct chart_policies *about,
                   const struct report_session *session, bool narrow)
{
    enum { TITLE = 20, GAP = 14, FINISH_HEIGHT = 120, ERROR_HEIGHT = 50 };
    const struct report_run *run = about->run;
    const double lane = SPLIT_HEIGHT + GAP + TITLE, names = run->phase_count > 1 ? 22 : 4;
    struct paper paper = paper_of(out, run, narrow, 212);
    struct report_series series;
    size_t counts[REPORT_REASONS] = {0}, lanes = 0, predicted = 0;

    if (!report_series(run, session, paper.bins, &series))
        return false;
    for (size_t i = 0; i < session->frame_count; i++)
        lanes += !counts[session->frames[i].reason]++;
    for (size_t i = 0; i < series.bins; i++)
        predicted += series.error[i].count;

    /* Where each panel begins and ends. */
    double split = names + TITLE, finish = split + run->pass_count * lane;
    double finish_end = finish + FINISH_HEIGHT, error = finish_end + GAP + TITLE;
    double error_end = finish_end;
    if (predicted)
        error_end = error + ERROR_HEIGHT;
    double reasons = error_end + GAP + TITLE - 4;
    double end = reasons + (double)lanes * axes_pick(&paper.svg, 32, 17) + 6;

    svg_begin(&paper.svg, end + 36);
    session_words(out, run, session, &series);
    axes_phases(&paper, 12, names, end);
    split_lanes(&paper, session, &series, split, lane);
    if (series.group_count < run->device_count)
        svg_title(&paper.svg, "End of the last device of each kind, ms", finish - 7);
    else
        svg_title(&paper.svg, "End of each device, ms", finish - 7);
    finish_panel(&paper, about, session->policy, &series, finish, finish_end);
    if (predicted) {
        svg_title(&paper.svg, "Frame time, measured ÷ predicted", error - 7);
        error_panel(&paper, &series, error, error_end);
    }
    svg_title(&paper.svg, "Reason of the split", reasons - 5);
    reason_lanes(&paper, about->source, &series, counts, reasons);
    axes_frame_axis(&paper, end);

    html_raw(out, "</svg>");
    report_series_free(&series);
    return true;
}
