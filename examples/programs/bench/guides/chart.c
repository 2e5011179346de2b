/* The chart of an experiment: for each variant a bar with its quartiles, its value and the
 * prediction. Each group has its own scale, because groups may differ by orders of magnitude.
 * SPDX-License-Identifier: Apache-2.0 */
#include "chart.h"
#include "common/svg.h"
#include "words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A prediction that is longer than the longest bar by more than this factor becomes an arrow. */
static const double beyond = 1.5;

enum { ROW = 22, BAR = 12, HEAD = 26, FOOT = 6, NAMES = 270, VALUES = 250 };

/* The two layouts: names before the bars, or above them on narrow screens. */
static const struct layout {
    unsigned name_length;
    double row, bar_offset, left, values, names;
    const char *panel_class, *name_class;
} layouts[2] = {
    {42, ROW, 0, NAMES, VALUES, NAMES - 12, "panel end", "name end"},
    {54, 2 * ROW - 2, ROW - 4, 4, 130, 4, "panel", "name"},
};

struct bars {
    const struct guides_result *result;
    struct svg svg;
    bool ratio;
};

static const struct guides_quartiles *figure(const struct bars *bars,
                                             const struct guides_cell *cell)
{
    if (bars->ratio)
        return &cell->ratio;

    return &cell->value;
}

static bool has_prediction(const struct bars *bars, const struct guides_cell *cell)
{
    return !bars->ratio && isfinite(cell->predicted);
}

bool guides_begins_group(const struct guides_result *result, uint32_t v)
{
    return *result->cells[v].group &&
           (v == 0 || strcmp(result->cells[v].group, result->cells[v - 1].group) != 0);
}

/* The end of a group's scale. Predictions far above everything measured do not count. */
static double end_of(const struct bars *bars, const char *group)
{
    double most = 0, predicted = 0;

    for (uint32_t v = 0; v < bars->result->experiment->count; v++) {
        const struct guides_cell *cell = &bars->result->cells[v];
        if (strcmp(cell->group, group) != 0 || cell->status != GUIDES_MEASURED)
            continue;
        most = fmax(most, figure(bars, cell)->high);
        if (has_prediction(bars, cell))
            predicted = fmax(predicted, cell->predicted);
    }

    if (predicted > most && predicted <= beyond * most)
        return predicted;
    if (most <= 0)
        return 1;

    return most;
}

static void label(const struct bars *bars, const struct guides_cell *cell, double y)
{
    const struct guides_quartiles *value = figure(bars, cell);
    struct html *out = bars->svg.out;
    char text[32];

    svg_label(out, "name", bars->svg.right + 10, y);
    html_raw(out, guides_number(value->median, text, sizeof text));
    html_raw(out, "<tspan class=\"value\" dx=\"6\">");
    html_raw(out, guides_number(value->low, text, sizeof text));
    html_raw(out, " to ");
    html_raw(out, guides_number(value->high, text, sizeof text));
    html_raw(out, "</tspan>");
    svg_label_end(out);
    if (bars->svg.narrow || !has_prediction(bars, cell))
        return;
    svg_label(out, "value end", bars->svg.width, y);
    html_raw(out, guides_number(cell->predicted, text, sizeof text));
    svg_label_end(out);
}

static void bar(const struct bars *bars, const struct guides_cell *cell, double top)
{
    const struct svg *svg = &bars->svg;
    struct html *out = svg->out;
    const struct scale scale = {0, end_of(bars, cell->group), svg->left, svg->right};
    const double from = top + (ROW - BAR) / 2.0, y = from + BAR / 2.0;

    if (cell->status != GUIDES_MEASURED) {
        svg_label(out, "value", svg->left, y + 4);
        html_raw(out, guides_status_name(cell->status));
        svg_label_end(out);
        return;
    }

    const struct guides_quartiles *value = figure(bars, cell);
    svg_rectangle(out, "fill d6", svg->left, from, scale_place(&scale, value->median) - svg->left,
                  BAR);
    html_raw(out, "/>");
    svg_line(out, "ink", scale_place(&scale, value->low), y, scale_place(&scale, value->high) + 0.1,
             y);
    if (has_prediction(bars, cell) && cell->predicted <= scale.high)
        svg_line(out, "oracle", scale_place(&scale, cell->predicted), from - 4,
                 scale_place(&scale, cell->predicted), from + BAR + 4);
    else if (has_prediction(bars, cell) && value->high < 0.9 * scale.high) {
        svg_label(out, "value end", svg->right, y + 4);
        html_raw(out, "→");
        svg_label_end(out);
    }

    label(bars, cell, y + 4);
}

static void name(const struct bars *bars, const char *text, const char *class, double x, double y)
{
    svg_label(bars->svg.out, class, x, y);
    html_text_middle(bars->svg.out, text, layouts[bars->svg.narrow].name_length);
    svg_label_end(bars->svg.out);
}

/* The chart's title and the headings of its columns. */
static void heading(const struct bars *bars)
{
    const struct guides_experiment *experiment = bars->result->experiment;
    const char *unit = guides_unit_name(experiment->unit);
    const char *title = unit, *panel = unit, *before = "";
    struct html *out = bars->svg.out;

    if (bars->ratio) {
        title = "speed over the first way";
        panel = "Speed-up over the first way of each group";
    } else if (!guides_unit_rate(experiment->unit)) {
        before = "Time, ";
    }

    html_format(
        out,
        "<title>%s: %s</title><desc>A bar for each way; its values are in the table below.</desc>",
        experiment->title, title);
    svg_label(out, "panel", bars->svg.left, 14);
    html_raw(out, before);
    html_raw(out, panel);
    svg_label_end(out);

    for (uint32_t v = 0; !bars->svg.narrow && v < experiment->count; v++)
        if (has_prediction(bars, &bars->result->cells[v])) {
            svg_label(out, "value end", bars->svg.width, 14);
            html_raw(out, "predicted");
            svg_label_end(out);
            break;
        }
}

static void draw(const struct guides_result *result, struct html *out, bool narrow)
{
    const struct guides_experiment *experiment = result->experiment;
    struct bars bars = {
        .result = result, .svg = svg_of(out, narrow, 0), .ratio = experiment->chart_ratio};
    const struct layout *layout = &layouts[narrow];
    double height = HEAD + FOOT + layout->row * experiment->count;

    bars.svg.left = layout->left;
    bars.svg.right = bars.svg.width - layout->values;
    for (uint32_t v = 0; v < experiment->count; v++)
        height += HEAD * guides_begins_group(result, v);

    svg_begin(&bars.svg, height);
    heading(&bars);

    double y = HEAD;
    for (uint32_t v = 0; v < experiment->count; v++) {
        const struct guides_cell *cell = &result->cells[v];

        if (guides_begins_group(result, v)) {
            name(&bars, cell->group, layout->panel_class, layout->names, y + HEAD - 10);
            y += HEAD;
        }
        name(&bars, cell->name, layout->name_class, layout->names, y + ROW / 2.0 + 4);
        bar(&bars, cell, y + layout->bar_offset);
        y += layout->row;
    }

    svg_line(out, "axis", bars.svg.left, HEAD, bars.svg.left, height - FOOT);
    html_raw(out, "</svg>");
}

void guides_chart(const struct guides_result *result, struct html *out)
{
    draw(result, out, false);
    draw(result, out, true);
}
