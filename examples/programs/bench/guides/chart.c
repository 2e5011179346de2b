/* The chart of an experiment: a bar for each way, its quartiles, what was predicted. Groups have scales of their own,
 * since what they measure may differ by orders of magnitude; each value stands beside its bar.
 * SPDX-License-Identifier: Apache-2.0 */
#include "guides.h"
#include "common/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A prediction so many times as long as the longest bar is an arrow. */
static const double beyond = 1.5;

enum { ROW = 22, BAR = 12, HEAD = 26, FOOT = 6, NAMES = 270, VALUES = 250 };

struct bars {
    const struct guides_result *result;
    struct svg svg;
    bool ratio;
};

static const struct guides_quartiles *figure(const struct bars *bars,
                                             const struct guides_cell *cell)
{
    return bars->ratio ? &cell->ratio : &cell->value;
}

static bool has_prediction(const struct bars *bars, const struct guides_cell *cell)
{
    return !bars->ratio && isfinite(cell->predicted);
}

static bool begins_group(const struct guides_result *result, uint32_t v)
{
    return *result->cells[v].group &&
           (v == 0 || strcmp(result->cells[v].group, result->cells[v - 1].group) != 0);
}

/* Where the scale of a group ends: what is predicted counts unless it is far beyond all that was measured. */
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
    return most > 0 ? most : 1;
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
    html_text_middle(bars->svg.out, text, bars->svg.narrow ? 54 : 42);
    svg_label_end(bars->svg.out);
}

static void draw(const struct guides_result *result, struct html *out, bool narrow)
{
    const struct guides_experiment *experiment = result->experiment;
    struct bars bars = {
        .result = result, .svg = svg_of(out, narrow, 0), .ratio = experiment->chart_ratio};
    const double row = narrow ? 2 * ROW - 2 : ROW;
    double height = HEAD + FOOT + row * experiment->count;
    bars.svg.left = narrow ? 4 : NAMES;
    bars.svg.right = bars.svg.width - (narrow ? 130 : VALUES);
    for (uint32_t v = 0; v < experiment->count; v++)
        height += begins_group(result, v) ? HEAD : 0;
    svg_begin(&bars.svg, height);
    html_format(
        out,
        "<title>%s: %s</title><desc>A bar for each way; its values are in the table below.</desc>",
        experiment->title,
        bars.ratio ? "speed over the first way" : guides_unit_name(experiment->unit));
    svg_label(out, "panel", bars.svg.left, 14);
    html_raw(out, bars.ratio                           ? "Speed-up over the first way of each group"
                  : guides_unit_rate(experiment->unit) ? guides_unit_name(experiment->unit)
                                                       : "Time, ");
    if (!bars.ratio && !guides_unit_rate(experiment->unit))
        html_raw(out, guides_unit_name(experiment->unit));
    svg_label_end(out);
    for (uint32_t v = 0; !narrow && v < experiment->count; v++)
        if (has_prediction(&bars, &result->cells[v])) {
            svg_label(out, "value end", bars.svg.width, 14);
            html_raw(out, "predicted");
            svg_label_end(out);
            break;
        }
    double y = HEAD;
    for (uint32_t v = 0; v < experiment->count; v++) {
        const struct guides_cell *cell = &result->cells[v];
        if (begins_group(result, v)) {
            name(&bars, cell->group, narrow ? "panel" : "panel end", narrow ? 4 : NAMES - 12,
                 y + HEAD - 10);
            y += HEAD;
        }
        name(&bars, cell->name, narrow ? "name" : "name end", narrow ? 4 : NAMES - 12,
             y + ROW / 2.0 + 4);
        bar(&bars, cell, y + (narrow ? ROW - 4 : 0));
        y += row;
    }
    svg_line(out, "axis", bars.svg.left, HEAD, bars.svg.left, height - FOOT);
    html_raw(out, "</svg>");
}

void guides_chart(const struct guides_result *result, struct html *out)
{
    draw(result, out, false);
    draw(result, out, true);
}
