/* One session over time: rows of each device, when each is done, prediction, reasons.
 * SPDX-License-Identifier: Apache-2.0 */
#include "charts.h"
#include "axes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPLIT_HEIGHT = 96 };

/* Of a pass's rows in a bin, by group. */
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
    return bins > 0 ? sum / bins : 0;
}

/* What the colours mean, beside where their areas end. */
static void split_tags(const struct paper *paper, const struct report_series *series, uint32_t pass,
                       double top, double bottom)
{
    struct tag tags[COX_DEVICES_MAX];
    size_t tagged = 0, last = series->bins;
    while (last && !series->time_ns[last - 1].count)
        last--;
    double below = 0, least = 0;
    size_t room = (size_t)((bottom - top) / 14) + 1;
    const double *shares = shares_of(series, pass, last ? last - 1 : 0);
    /* Where not all have room, those with the most rows. */
    for (size_t more = series->group_count; last && more > room; least += 0.002) {
        more = 0;
        for (uint32_t group = 0; group < series->group_count; group++)
            more += shares[group] >= least;
    }
    for (uint32_t group = 0; last && group < series->group_count; group++) {
        if (shares[group] >= least)
            tags[tagged++] = (struct tag){bottom - (below + shares[group] / 2) * (bottom - top) + 4,
                                          group};
        below += shares[group];
    }
    tagged = tagged > room ? room : tagged;
    tags_spread(tags, tagged, 14, top + 8, bottom + 2);
    for (size_t i = 0; i < tagged; i++) {
        char class[24];
        snprintf(class, sizeof class, "fill d%u", chart_group_colour(tags[i].what));
        svg_rectangle(paper->svg.out, class, paper->svg.right + 9, tags[i].y - 8, 9, 9);
        html_raw(paper->svg.out, "/>");
        svg_label(paper->svg.out, "name", paper->svg.right + 23, tags[i].y);
        html_format(paper->svg.out, "%.0f %%<tspan class=\"value\" dx=\"5\">",
                    100 * whole_share(series, pass, tags[i].what));
        chart_group_name(paper->svg.out, paper->run, tags[i].what, 21);
        html_raw(paper->svg.out, "</tspan>");
        svg_label_end(paper->svg.out);
    }
}

static void split_panel(const struct paper *paper, const struct report_series *series,
                        uint32_t pass, double top, double bottom)
{
    struct scale scale = {0, 1, bottom, top};
    double width = (paper->svg.right - paper->svg.left) / (double)series->bins;
    /* Each area goes down to the axis, and the next group's is painted under it. */
    for (uint32_t group = series->group_count; group-- > 0;) {
        struct steps steps = {.left = paper->svg.left, .width = width, .base = bottom};
        html_format(paper->svg.out, "<path class=\"area d%u\" d=\"", chart_group_colour(group));
        for (size_t i = 0; i < series->bins; i++) {
            double upto = 0;
            for (uint32_t k = 0; k <= group; k++)
                upto += shares_of(series, pass, i)[k];
            if (upto > 0)
                step_to(paper->svg.out, &steps, i, upto * (bottom - top));
            else
                step_end(paper->svg.out, &steps, i);
        }
        step_end(paper->svg.out, &steps, series->bins);
        html_raw(paper->svg.out, "\"><title>");
        chart_group_name(paper->svg.out, paper->run, group, 80);
        html_format(paper->svg.out, ": %.1f %% of the rows</title></path>",
                    100 * whole_share(series, pass, group));
    }
    for (int i = 0; i <= 2; i++) {
        svg_label(paper->svg.out, "tick end", paper->svg.left - 6,
                  scale_place(&scale, i / 2.0) + 4);
        html_format(paper->svg.out, "%d", i * 50);
        svg_label_end(paper->svg.out);
    }
    svg_line(paper->svg.out, "axis", paper->svg.left, bottom, paper->svg.right, bottom);
    if (!paper->svg.narrow)
        split_tags(paper, series, pass, top, bottom);
}

/* From zero to well above what is usual in each phase; rare frames that took many times as long are cut off, and
 * `*peak` tells the longest of them. */
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
    *peak = most > scale.high ? most : NAN;
    return scale;
}

static void finish_tags(const struct paper *paper, const struct report_series *series,
                        const struct scale *scale, double peak, double top, double bottom)
{
    size_t last = series->bins;
    while (last && !series->time_ns[last - 1].count)
        last--;
    if (!last)
        return;
    const struct report_bin *oracle = &series->oracle_ns[last - 1];
    double oracle_y = oracle->count
                          ? fmin(fmax(scale_place(scale, oracle->mean) + 4, top + 8), bottom)
                          : top;
    if (oracle->count) {
        svg_line(paper->svg.out, "oracle", paper->svg.right + 9, oracle_y - 4,
                 paper->svg.right + 25, oracle_y - 4);
        svg_label(paper->svg.out, "value", paper->svg.right + 30, oracle_y);
        html_raw(paper->svg.out, "oracle ");
        chart_ms(paper->svg.out, oracle->mean);
        svg_label_end(paper->svg.out);
    }
    if (series->frames_a_bin > 1) {
        double y = oracle_y + (oracle_y > (top + bottom) / 2 ? -17 : 17);
        svg_rectangle(paper->svg.out, "range", paper->svg.right + 9, y - 9, 16, 10);
        html_raw(paper->svg.out, "/>");
        svg_label(paper->svg.out, "value", paper->svg.right + 30, y);
        html_raw(paper->svg.out, "frame, least to most");
        svg_label_end(paper->svg.out);
    }
    if (!isnan(peak)) {
        double y = oracle_y > (top + bottom) / 2 ? top + 8 : bottom;
        svg_label(paper->svg.out, "value", paper->svg.right + 9, y);
        html_raw(paper->svg.out, "↑ at most ");
        chart_ms(paper->svg.out, peak);
        svg_label_end(paper->svg.out);
    }
}

static void finish_panel(const struct paper *paper, const struct chart_policies *about,
                         uint32_t policy, const struct report_series *series, double top,
                         double bottom)
{
    enum { LINES_MAX = 8 };
    double peak;
    struct scale scale = finish_scale(about, policy, series, top, bottom, &peak);
    svg_value_axis(&paper->svg, &scale, 4, 1e6);
    if (series->frames_a_bin > 1)
        axes_range(paper, "range", series->time_ns, series->bins, &scale);
    for (uint32_t group = 0; group < series->group_count && series->group_count <= LINES_MAX;
         group++) {
        char class[24];
        snprintf(class, sizeof class, "line d%u", chart_group_colour(group));
        axes_mean_line(paper, class, series->finish_ns + group, series->bins, series->group_count,
                       &scale);
    }
    if (series->group_count > LINES_MAX) {
        /* So many lines would hide each other: the mean frame is when the last one is done. */
        axes_mean_line(paper, "line ink", series->time_ns, series->bins, 1, &scale);
    }
    axes_mean_line(paper, "oracle", series->oracle_ns, series->bins, 1, &scale);
    if (!paper->svg.narrow)
        finish_tags(paper, series, &scale, peak, top, bottom);
}

static void error_panel(const struct paper *paper, const struct report_series *series, double top,
                        double bottom)
{
    struct scale scale = {0.5, 1.5, bottom, top};
    for (int i = 0; i <= 2; i++) {
        double y = scale_place(&scale, 0.5 + i / 2.0);
        svg_line(paper->svg.out, i == 1 ? "axis" : "grid", paper->svg.left, y, paper->svg.right, y);
        svg_label(paper->svg.out, "tick end", paper->svg.left - 6, y + 4);
        html_format(paper->svg.out, "%.1f", 0.5 + i / 2.0);
        svg_label_end(paper->svg.out);
    }
    if (series->frames_a_bin > 1)
        axes_range(paper, "range", series->error, series->bins, &scale);
    axes_mean_line(paper, "line ink", series->error, series->bins, 1, &scale);
    if (!paper->svg.narrow) {
        svg_label(paper->svg.out, "value", paper->svg.right + 9, scale_place(&scale, 1) - 6);
        html_raw(paper->svg.out, "↑ slower than predicted");
        svg_label_end(paper->svg.out);
        svg_label(paper->svg.out, "value", paper->svg.right + 9, scale_place(&scale, 1) + 14);
        html_raw(paper->svg.out, "↓ faster");
        svg_label_end(paper->svg.out);
    }
}

/* A lane for each reason; how high it is filled is how many of the bin's frames have it. */
static double reason_lanes(const struct paper *paper, const struct report_source *source,
                           const struct report_series *series, const size_t *counts, double y)
{
    struct html *out = paper->svg.out;
    double width = (paper->svg.right - paper->svg.left) / (double)series->bins;
    for (uint32_t reason = 0; reason < REPORT_REASONS; reason++) {
        if (!counts[reason])
            continue;
        const char *text = report_reason(source, reason);
        size_t head = strcspn(text, ":,");
        if (paper->svg.narrow)
            y += 15;
        svg_label(out, "name", paper->svg.narrow ? paper->svg.left : paper->svg.right + 9,
                  paper->svg.narrow ? y - 3 : y + 11);
        html_format(out, "%zu<tspan class=\"value\" dx=\"6\">", counts[reason]);
        char *short_text = strndup(text, head);
        html_text_cut(out, short_text, paper->svg.narrow ? 40 : 26);
        free(short_text);
        html_raw(out, "</tspan>");
        svg_label_end(out);
        svg_line(out, "grid", paper->svg.left, y + 13, paper->svg.right, y + 13);
        struct steps steps = {.left = paper->svg.left, .width = width, .base = y + 13};
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

static void split_title(const struct paper *paper, const struct report_session *session,
                        const struct report_series *series, uint32_t pass, double y)
{
    const bool kinds = series->group_count < paper->run->device_count;
    svg_label(paper->svg.out, "panel", paper->svg.left, y);
    html_raw(paper->svg.out, kinds ? "Rows of each kind of device" : "Rows of each device");
    if (series->pass_count > 1) {
        html_raw(paper->svg.out, " in ");
        chart_pass_name(paper->svg.out, paper->run, pass, paper->svg.narrow ? 12 : 40);
    }
    html_raw(paper->svg.out, ", per cent");
    if (series->pass_count > 1) {
        html_raw(paper->svg.out, "; it takes ");
        chart_ms(paper->svg.out, session->pass_ns[pass]);
        html_raw(paper->svg.out, " ms");
    }
    svg_label_end(paper->svg.out);
}

/* A lane for each pass. */
static void split_lanes(const struct paper *paper, const struct report_session *session,
                        const struct report_series *series, double top, double step)
{
    for (uint32_t pass = 0; pass < series->pass_count; pass++) {
        split_title(paper, session, series, pass, top + pass * step - 7);
        split_panel(paper, series, pass, top + pass * step, top + pass * step + SPLIT_HEIGHT);
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
    html_raw(
        out,
        "; when each device was done with its bands; measured by predicted frame time; the reason of each split."
        " The tables below hold the figures.</desc>");
}

bool chart_session(struct html *out, const struct chart_policies *about,
                   const struct report_session *session, bool narrow)
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
    const double lane = SPLIT_HEIGHT + GAP + TITLE;
    double split = names + TITLE,
           split_end = split + (about->run->pass_count - 1) * lane + SPLIT_HEIGHT;
    double finish = split_end + GAP + TITLE, finish_end = finish + 120;
    double error = finish_end + GAP + TITLE, error_end = predicted ? error + 50 : finish_end;
    double reasons = error_end + GAP + TITLE - 4,
           reasons_end = reasons + (double)lanes * (narrow ? 32 : 17) + 6;
    svg_begin(&paper.svg, reasons_end + 36);
    session_words(out, about->run, session, &series);
    axes_phases(&paper, 12, names, reasons_end);
    split_lanes(&paper, session, &series, split, lane);
    svg_title(&paper.svg,
              series.group_count < about->run->device_count
                  ? "When the last of each kind is done, ms"
                  : "When each device is done, ms",
              finish - 7);
    finish_panel(&paper, about, session->policy, &series, finish, finish_end);
    if (predicted) {
        svg_title(&paper.svg, "Frame time, measured ÷ predicted", error - 7);
        error_panel(&paper, &series, error, error_end);
    }
    svg_title(&paper.svg, "Reason of the split", reasons - 5);
    reason_lanes(&paper, about->source, &series, counts, reasons);
    axes_frame_axis(&paper, reasons_end);
    html_raw(out, "</svg>");
    report_series_free(&series);
    return true;
}
