/* Clocks, temperatures and power: over the frames of a session, and by the split.
 * SPDX-License-Identifier: Apache-2.0 */
#include "chapter.h"
#include "axes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PANELS = 3, LINES_MAX = 8, PANEL_HEIGHT = 96, TITLE = 20, GAP = 16, KEY_ROW = 15 };

enum { TEMPERATURE = 1 };

static const struct {
    const char *kind, *title, *unit;
} panels[PANELS] = {
    {"clock", "Clock, MHz", " MHz"},
    {"temperature", "Temperature, °C", " °C"},
    {"power", "Power, W", " W"},
};

/* The gauges of a panel, and the bins of each. */
struct panel {
    uint32_t count;
    const struct report_gauge *gauges[LINES_MAX];
    struct report_bin *bins[LINES_MAX];
};

/* What both charts are drawn from. */
struct gauge_chart {
    struct panel panels[PANELS];
    size_t bins;
    struct report_bin *memory;
};

static bool has_values(const struct report_bin *bins, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bins[i].count)
            return true;
    return false;
}

static uint32_t panel_of(const struct report_gauge *gauge)
{
    uint32_t panel = 0;

    while (panel < PANELS && !(gauge->kind && !strcmp(gauge->kind, panels[panel].kind)))
        panel++;
    return panel;
}

/* Collect the gauges that have values: of the session's frames, or by the split where `session` is
 * NULL. */
static bool chart_fill(const struct report_run *run, const struct report_session *session,
                       size_t bins, struct gauge_chart *out)
{
    if (!session)
        bins = REPORT_SHARES;
    *out = (struct gauge_chart){.bins = bins};
    out->memory = malloc((run->gauge_count + 1) * bins * sizeof *out->memory);
    if (!out->memory)
        return false;

    for (uint32_t i = 0; i < run->gauge_count; i++) {
        const struct report_gauge *gauge = &run->gauges[i];
        struct report_bin *at = out->memory + i * bins;
        uint32_t kind = panel_of(gauge);
        struct panel *panel = &out->panels[kind];

        if (kind == PANELS || panel->count == LINES_MAX)
            continue;
        if (session)
            out->bins = report_bin_values(run, session, session->gauges + i, run->gauge_count, bins,
                                          at);
        else
            memcpy(at, gauge->by_share, sizeof gauge->by_share);
        if (!has_values(at, out->bins))
            continue;

        panel->gauges[panel->count] = gauge;
        panel->bins[panel->count++] = at;
    }
    return true;
}

/* Panels begin at zero, except for temperatures, whose zero means nothing. */
static struct scale panel_scale(const struct panel *panel, uint32_t kind, size_t bins, double top,
                                double bottom)
{
    double low = INFINITY, high = -INFINITY, least = 1;

    for (uint32_t i = 0; i < panel->count; i++)
        for (size_t k = 0; k < bins; k++)
            if (panel->bins[i][k].count) {
                low = fmin(low, panel->bins[i][k].mean);
                high = fmax(high, panel->bins[i][k].mean);
            }
    if (kind == TEMPERATURE)
        least = 4;
    else
        low = fmin(low, 0);
    high = fmax(high, low + least);

    double step = ticks_step(high - low, 4);
    return (struct scale){floor(low / step) * step, ceil(high / step) * step, bottom, top};
}

static void class_of(char *class, size_t bytes, const char *kind, uint32_t line)
{
    snprintf(class, bytes, "%s d%u", kind, line % LINES_MAX);
}

static void gauge_name(struct html *out, const struct report_gauge *gauge, unsigned characters)
{
    const char *name = "(unnamed)";

    if (gauge->part && *gauge->part)
        name = gauge->part;
    html_text_middle(out, name, characters);
}

/* One decimal for values below a thousand. */
static void value_text(struct html *out, double value)
{
    html_format(out, "%.*f", fabs(value) < 1000, value);
}

static void mean_text(struct html *out, const struct report_bin *bins, size_t count)
{
    double sum = 0, known = 0;

    for (size_t i = 0; i < count; i++)
        if (bins[i].count) {
            sum += bins[i].mean * (double)bins[i].count;
            known += (double)bins[i].count;
        }
    value_text(out, sum / known);
}

/* The names of the lines and their means: where the lines end, or on a narrow page below the
 * panel. */
static void panel_names(const struct paper *paper, const struct panel *panel,
                        const struct scale *scale, size_t bins, double top, double bottom)
{
    struct tag tags[LINES_MAX];
    struct html *out = paper->svg.out;
    const double x = axes_pick(&paper->svg, paper->svg.left, paper->svg.right + 9);
    char class[24];

    for (uint32_t i = 0; i < panel->count; i++) {
        size_t last = bins - 1;

        while (last > 0 && !panel->bins[i][last].count)
            last--;
        tags[i] = (struct tag){scale_place(scale, panel->bins[i][last].mean) + 4, i};
        if (paper->svg.narrow)
            tags[i].y = bottom + 14 + KEY_ROW * i;
    }
    if (!paper->svg.narrow)
        tags_spread(tags, panel->count, 14, top + 4, bottom + 4);

    for (uint32_t i = 0; i < panel->count; i++) {
        uint32_t line = tags[i].what;
        double y = tags[i].y;

        class_of(class, sizeof class, "line", line);
        svg_line(out, class, x, y - 4, x + 12, y - 4);
        svg_label(out, "name", x + 18, y);
        mean_text(out, panel->bins[line], bins);
        html_raw(out, "<tspan class=\"value\" dx=\"6\">");
        gauge_name(out, panel->gauges[line], (unsigned)axes_pick(&paper->svg, 36, 22));
        html_raw(out, "</tspan>");
        svg_label_end(out);
    }
}

/* Means by share: a dot for each share that occurred, and a line over all of them. */
static void share_line(const struct paper *paper, uint32_t line, const struct report_bin *bins,
                       const struct scale *scale, const struct scale *shares)
{
    struct html *out = paper->svg.out;
    const char *step = "M";
    char class[24];

    class_of(class, sizeof class, "line", line);
    html_format(out, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0; i < REPORT_SHARES; i++)
        if (bins[i].count) {
            svg_number(out, step, scale_place(shares, (double)i));
            svg_number(out, " ", scale_place(scale, bins[i].mean));
            step = "L";
        }
    html_raw(out, "\"/>");

    class_of(class, sizeof class, "fill", line);
    for (size_t i = 0; i < REPORT_SHARES; i++)
        if (bins[i].count) {
            svg_rectangle(out, class, scale_place(shares, (double)i) - 2.5,
                          scale_place(scale, bins[i].mean) - 2.5, 5, 5);
            html_raw(out, "/>");
        }
}

static void share_axis(const struct paper *paper, const struct scale *shares, double y)
{
    svg_line(paper->svg.out, "axis", paper->svg.left, y, paper->svg.right, y);
    for (int i = 0; i <= 4; i++) {
        double x = scale_place(shares, i * (REPORT_SHARES - 1) / 4.0);
        const char *class = "tick mid";

        if (paper->svg.narrow && i == 4)
            class = "tick end";
        svg_line(paper->svg.out, "axis", x, y, x, y + 4);
        axes_label(paper->svg.out, class, x, y + 17, "%d", 25 * i);
    }

    svg_label(paper->svg.out, "tick end", paper->svg.right, y + 31);
    html_raw(paper->svg.out, "rows on ");
    chart_device_name(paper->svg.out, paper->run, 0, (unsigned)axes_pick(&paper->svg, 24, 60));
    html_raw(paper->svg.out, ", per cent →");
    svg_label_end(paper->svg.out);
}

static void chart_words(struct html *out, const struct report_run *run,
                        const struct report_session *session, const struct gauge_chart *chart)
{
    const char *before = " ";

    html_raw(out, "<title>Clock, temperature and power ");
    if (session) {
        html_raw(out, "while ");
        html_text_cut(out, run->policies[session->policy], 40);
        html_raw(out, " ran");
    } else {
        html_raw(out, "by the split");
    }

    html_raw(out, "</title><desc>Means:");
    for (uint32_t kind = 0; kind < PANELS; kind++)
        for (uint32_t i = 0; i < chart->panels[kind].count; i++) {
            html_raw(out, before);
            html_text_cut(out, chart->panels[kind].gauges[i]->name, 60);
            html_raw(out, " ");
            mean_text(out, chart->panels[kind].bins[i], chart->bins);
            html_raw(out, panels[kind].unit);
            before = ", ";
        }
    html_raw(out, ".</desc>");
}

static void draw_panel(const struct paper *paper, const struct gauge_chart *chart, uint32_t kind,
                       const struct scale *shares, double top)
{
    const struct panel *panel = &chart->panels[kind];
    const double bottom = top + PANEL_HEIGHT;
    char class[24];

    if (!panel->count)
        return;

    struct scale scale = panel_scale(panel, kind, chart->bins, top, bottom);
    svg_title(&paper->svg, panels[kind].title, top - 7);
    svg_value_axis(&paper->svg, &scale, 4, 1);
    for (uint32_t i = 0; i < panel->count; i++) {
        class_of(class, sizeof class, "line", i);
        if (shares)
            share_line(paper, i, panel->bins[i], &scale, shares);
        else
            axes_mean_line(paper, class, panel->bins[i], chart->bins, 1, &scale);
    }
    panel_names(paper, panel, &scale, chart->bins, top, bottom);
}

/* The panels that have lines, one below the other. False if out of memory. */
static bool draw(const struct chapter *chapter, const struct report_session *session, bool narrow)
{
    const struct report_run *run = chapter->run;
    struct paper paper = paper_of(chapter->out, run, narrow, 212);
    struct gauge_chart chart;
    double names = session && run->phase_count > 1 ? 22 : 4, tops[PANELS], end = names;

    paper.svg.left = 44; /* room for four digits, on a narrow page too */
    if (!chart_fill(run, session, paper.bins, &chart))
        return false;

    for (uint32_t kind = 0; kind < PANELS; kind++) {
        uint32_t lines = chart.panels[kind].count;

        tops[kind] = end + TITLE;
        if (lines)
            end = tops[kind] + PANEL_HEIGHT + GAP;
        if (lines && narrow)
            end += KEY_ROW * (double)lines + 4;
    }

    if (end > names) {
        struct scale shares = {0, REPORT_SHARES - 1, paper.svg.left, paper.svg.right};

        end -= axes_pick(&paper.svg, 4, GAP);
        svg_begin(&paper.svg, end + 36);
        chart_words(paper.svg.out, run, session, &chart);
        if (session)
            axes_phases(&paper, 12, names, end);
        for (uint32_t kind = 0; kind < PANELS; kind++)
            draw_panel(&paper, &chart, kind, session ? NULL : &shares, tops[kind]);
        if (session)
            axes_frame_axis(&paper, end);
        else
            share_axis(&paper, &shares, end);
        html_raw(paper.svg.out, "</svg>");
    }

    free(chart.memory);
    return true;
}

bool chapter_session_gauges(const struct chapter *chapter, const struct report_session *session)
{
    if (!session->gauges)
        return true;

    html_raw(chapter->out, "</div><div class=\"figure\">");
    return draw(chapter, session, false) && draw(chapter, session, true);
}

/* --- The chapter ------------------------------------------------------------------------------ */

static void value_cell(struct html *out, double value, bool known)
{
    html_raw(out, "<td>");
    if (known)
        value_text(out, value);
    else
        html_raw(out, "–");
    html_raw(out, "</td>");
}

static void word_cell(struct html *out, const char *text)
{
    html_raw(out, "<td class=\"text\">");
    words_or(out, text, "–");
    html_raw(out, "</td>");
}

static void gauge_row(struct html *out, const struct report_gauge *gauge)
{
    bool known = gauge->all.count > 0;

    table_row_begin(out, gauge->name);
    if (gauge->settings) {
        html_raw(out, "<td colspan=\"5\" class=\"text\">");
        html_text(out, gauge->settings);
        html_raw(out, "</td>");
    } else {
        table_cell(out, CELL_COUNT, (double)gauge->all.count, false);
        value_cell(out, gauge->all.least, known);
        value_cell(out, gauge->all.mean, known);
        value_cell(out, gauge->all.most, known);
        word_cell(out, gauge->unit);
    }
    word_cell(out, gauge->origin);
    html_raw(out, "</tr>\n");
}

bool chapter_gauges(const struct chapter *chapter)
{
    static const char *const columns[] = {"Source", "Readings", "Least", "Mean", "Most", NULL};
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    bool good = true;

    if (!run->gauge_count)
        return true;
    html_raw(out, "<h2 class=\"part\">Clocks, temperatures, power</h2>\n");
    if (run->gauges_left_out) {
        html_raw(out, "<p>Telemetry was recorded for more frames than this page can show.</p>\n");
        return true;
    }

    if (run->device_count > 1) {
        html_raw(out, "<section class=\"chart\"><h3>By split</h3><p>Means over all frames of the "
                      "run, including the references, with that share of the rows on the first "
                      "device. A share of 0 or 100 per cent is one device alone. Temperatures lag "
                      "behind the load by seconds, so they depend on what ran before.</p><div "
                      "class=\"figure\">");
        good = draw(chapter, NULL, false) && draw(chapter, NULL, true);
        html_raw(out, "</div></section>\n");
    }

    table_begin(out, "gauges", "Readings of the machine over the whole run");
    html_raw(out, "<thead><tr>");
    table_head(out, columns);
    html_raw(out, "<th scope=\"col\" class=\"text\">Unit</th>"
                  "<th scope=\"col\" class=\"text\">Read from</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < run->gauge_count; i++)
        gauge_row(out, &run->gauges[i]);
    table_end(out);
    return good;
}
