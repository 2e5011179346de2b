/* SPDX-License-Identifier: Apache-2.0 */
#include "plot.h"
#include "common/svg.h"
#include "lab/array.h"
#include "lab/report/axes.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEIGHT = 280,
    ROW = 15,
    ROW_GAP = 14,
    KEY_ROW = 17,
    TOP = 26,
    MARK = 7,
    MARKED_MOST = 30, /* a line of more points shows no marks */
    TICKS_MAX = 24
};

/* --- Points ----------------------------------------------------------------------------------- */

void plot_free(struct plot *plot)
{
    for (uint32_t i = 0; i < plot->count; i++)
        free(plot->series[i].points);
    plot->count = 0;
}

struct plot_series *plot_series_add(struct plot *plot, enum plot_style style, const char *colour,
                                    const char *name, ...)
{
    if (plot->count == PLOT_SERIES_MAX)
        return NULL;

    struct plot_series *series = &plot->series[plot->count++];
    *series = (struct plot_series){.style = style};
    snprintf(series->colour, sizeof series->colour, "%s", colour);

    va_list args;
    va_start(args, name);
    vsnprintf(series->name, sizeof series->name, name, args);
    va_end(args);
    return series;
}

void plot_add(struct plot *plot, struct plot_series *series, struct plot_point point)
{
    if (!series || !isfinite(point.x) || !isfinite(point.y) ||
        (plot->logarithmic && !(point.x > 0 && point.y > 0)))
        return;

    struct plot_point *points = array_room(series->points, series->count, sizeof *points);
    if (!points) {
        plot->failed = true;
        return;
    }
    series->points = points;
    points[series->count++] = point;
}

uint32_t plot_row(struct plot *plot, const char *name)
{
    uint32_t row = 0;

    while (row < plot->row_count && strcmp(plot->rows[row], name) != 0)
        row++;
    if (row == plot->row_count && row < PLOT_ROWS_MAX)
        snprintf(plot->rows[plot->row_count++], sizeof plot->rows[row], "%s", name);

    if (row == PLOT_ROWS_MAX)
        return PLOT_ROWS_MAX - 1;
    return row;
}

bool plot_has_points(const struct plot *plot)
{
    for (uint32_t i = 0; i < plot->count; i++)
        if (plot->series[i].count)
            return true;
    return false;
}

/* --- Scales ----------------------------------------------------------------------------------- */

static bool has_interval(const struct plot_point *point)
{
    return isfinite(point->low) && isfinite(point->high);
}

/* Values from least to most. */
struct span {
    double low, high;
};

static void widen(struct span *span, double value)
{
    span->low = fmin(span->low, value);
    span->high = fmax(span->high, value);
}

static struct span span_of_x(const struct plot *plot)
{
    struct span span = {INFINITY, -INFINITY};

    for (uint32_t i = 0; i < plot->count; i++)
        for (size_t k = 0; k < plot->series[i].count; k++)
            widen(&span, plot->series[i].points[k].x);
    return span;
}

/* With the intervals, the marked value and, if the axis begins there, zero. */
static struct span span_of_y(const struct plot *plot)
{
    struct span span = {INFINITY, -INFINITY};

    for (uint32_t i = 0; i < plot->count; i++)
        for (size_t k = 0; k < plot->series[i].count; k++) {
            const struct plot_point *point = &plot->series[i].points[k];

            widen(&span, point->y);
            if (has_interval(point)) {
                span.low = fmin(span.low, point->low);
                span.high = fmax(span.high, point->high);
            }
        }

    if (isfinite(plot->line))
        widen(&span, plot->line);
    if (plot->from_zero)
        span.low = fmin(span.low, 0);
    return span;
}

/* A linear axis may end at whole steps; a logarithmic one ends slightly beyond the values. */
static struct scale scale_of(const struct plot *plot, struct span span, double start, double end,
                             bool whole)
{
    if (plot->logarithmic)
        return (struct scale){log10(span.low) - 0.05, log10(span.high) + 0.05, start, end};

    if (!(span.high > span.low)) {
        double wide = 1;

        if (fabs(span.high) > 0)
            wide = 0.1 * fabs(span.high);
        if (span.low > 0 && !plot->from_zero)
            span.low -= wide;
        span.high += wide;
    }
    if (!whole)
        return (struct scale){span.low, span.high, start, end};

    double step = ticks_step(span.high - span.low, 5);
    return (struct scale){floor(span.low / step + 1e-9) * step,
                          ceil(span.high / step - 1e-9) * step, start, end};
}

static double place(const struct plot *plot, const struct scale *scale, double value)
{
    if (plot->logarithmic)
        value = log10(value);
    return scale_place(scale, value);
}

/* The ticks of a logarithmic axis: 1, 2, 5 of each decade. */
static unsigned log_ticks(const struct scale *scale, double *ticks)
{
    static const double steps[] = {1, 2, 5};
    unsigned count = 0;

    for (int decade = (int)floor(scale->low) - 1; decade <= (int)ceil(scale->high); decade++)
        for (int i = 0; i < 3 && count < TICKS_MAX; i++) {
            double tick = steps[i] * pow(10, decade);

            if (log10(tick) >= scale->low && log10(tick) <= scale->high)
                ticks[count++] = tick;
        }
    return count;
}

/* The texts of the ticks, at the left with lines across the plot, or `below` it. */
static void axis(const struct svg *svg, const struct plot *plot, const struct scale *scale,
                 bool below, double top, double bottom)
{
    double values[TICKS_MAX], step = 0;
    unsigned count, most = 5;

    if (below)
        most = (unsigned)axes_pick(svg, 4, 8);
    if (plot->logarithmic) {
        count = log_ticks(scale, values);
    } else {
        struct ticks ticks = ticks_of(scale->low, scale->high, most);

        step = ticks.step;
        for (count = 0; count < ticks.count && count < TICKS_MAX; count++)
            values[count] = tick_at(&ticks, count);
    }

    for (unsigned i = 0; i < count; i++) {
        double at = place(plot, scale, values[i]);

        if (!below) {
            svg_line(svg->out, values[i] == 0 ? "axis" : "grid", svg->left, at, svg->right, at);
            svg_label(svg->out, "tick end", svg->left - 6, at + 4);
        } else {
            if (plot->has_rows)
                svg_line(svg->out, "grid", at, top, at, bottom + 4);
            else
                svg_line(svg->out, "axis", at, bottom, at, bottom + 4);
            svg_label(svg->out, "tick mid", at, bottom + 17);
        }

        if (plot->logarithmic)
            html_format(svg->out, "%.4g", values[i]);
        else
            tick_text(svg->out, values[i], step);
        svg_label_end(svg->out);
    }
}

/* --- Marks ------------------------------------------------------------------------------------ */

/* "line d0"; ink has its own classes. */
static const char *class_of(char *class, size_t bytes, const char *kind,
                            const struct plot_series *series)
{
    const bool dashed = series->style == PLOT_DASHED;
    const char *ink = "leader ink";

    if (strcmp(kind, "fill") == 0)
        ink = "fill p8";
    else if (strcmp(kind, "line") == 0 && dashed)
        ink = "oracle";
    else if (strcmp(kind, "line") == 0)
        ink = "mark";

    if (series->colour[0])
        snprintf(class, bytes, "%s %s%s", kind, series->colour, dashed ? " dashed" : "");
    else
        snprintf(class, bytes, "%s", ink);
    return class;
}

static void mark(struct html *out, const struct plot_series *series, double x, double y)
{
    char class[40];

    svg_rectangle(out, class_of(class, sizeof class, "fill", series), x - MARK / 2.0,
                  y - MARK / 2.0, MARK, MARK);
    html_raw(out, " rx=\"1.5\"/>");
}

static void draw_series(const struct svg *svg, const struct plot *plot,
                        const struct plot_series *series, const struct scale *x,
                        const struct scale *y)
{
    char class[40];
    struct html *out = svg->out;

    class_of(class, sizeof class, "line", series);
    for (size_t i = 0; i < series->count; i++) {
        const struct plot_point *point = &series->points[i];
        double at = place(plot, x, point->x), low = point->low;

        if (plot->logarithmic)
            low = fmax(low, 1e-9);
        if (has_interval(point) && point->high > point->low)
            svg_line(out, class, at, place(plot, y, low), at, place(plot, y, point->high));
    }

    if (series->style != PLOT_MARKS && series->count > 1) {
        html_format(out, "<path class=\"%s\" d=\"", class);
        for (size_t i = 0; i < series->count; i++) {
            svg_number(out, i ? "L" : "M", place(plot, x, series->points[i].x));
            svg_number(out, " ", place(plot, y, series->points[i].y));
        }
        html_raw(out, "\"/>");
    }

    if (series->style == PLOT_MARKS || series->count <= MARKED_MOST)
        for (size_t i = 0; i < series->count; i++)
            mark(out, series, place(plot, x, series->points[i].x),
                 place(plot, y, series->points[i].y));
}

/* --- The key ---------------------------------------------------------------------------------- */

static void key_entry(const struct svg *svg, const struct plot_series *series, double x, double y)
{
    char class[40];

    if (series->style == PLOT_MARKS)
        mark(svg->out, series, x + 6, y - 4);
    else
        svg_line(svg->out, class_of(class, sizeof class, "line", series), x, y - 4, x + 12, y - 4);

    axes_name(svg->out, "name", x + 18, y, series->name, (unsigned)axes_pick(svg, 42, 28));
}

static uint32_t shown_series(const struct plot *plot)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < plot->count; i++)
        count += plot->series[i].count > 0;
    return count;
}

/* The key, at the right where each series ends; on a narrow page below. */
static void draw_key(const struct svg *svg, const struct plot *plot, const struct scale *x,
                     const struct scale *y, double bottom)
{
    struct tag tags[PLOT_SERIES_MAX];
    uint32_t count = 0;
    char class[40];

    for (uint32_t i = 0; i < plot->count; i++)
        if (plot->series[i].count) {
            const struct plot_point *last = &plot->series[i].points[plot->series[i].count - 1];
            tags[count++] = (struct tag){place(plot, y, last->y) + 4, i};
        }

    if (!svg->narrow)
        tags_spread(tags, count, 16, TOP + 4, bottom + 4);
    for (uint32_t i = 0; i < count; i++) {
        const struct plot_series *series = &plot->series[tags[i].what];
        const struct plot_point *last = &series->points[series->count - 1];

        if (svg->narrow) {
            key_entry(svg, series, svg->left, bottom + 52 + KEY_ROW * i);
            continue;
        }
        svg_line(svg->out, class_of(class, sizeof class, "leader", series),
                 place(plot, x, last->x) + MARK, place(plot, y, last->y), svg->right + 14,
                 tags[i].y - 4);
        key_entry(svg, series, svg->right + 18, tags[i].y);
    }
}

/* --- Drawings --------------------------------------------------------------------------------- */

static void words(struct html *out, const struct plot *plot)
{
    html_raw(out, "<title>");
    html_text(out, plot->title);
    html_raw(out, "</title><desc>");
    html_text(out, plot->y);
    if (!plot->has_rows) {
        html_raw(out, " against ");
        html_text(out, plot->x);
    }

    for (uint32_t i = 0; i < plot->count; i++) {
        html_raw(out, i ? ", " : ": ");
        html_text(out, plot->series[i].name);
    }
    html_raw(out, ". The values are in the table below.</desc>");
}

static void draw_curve(const struct plot *plot, struct html *out, bool narrow)
{
    struct svg svg = svg_of(out, narrow, 236);
    const double bottom = TOP + HEIGHT;
    double below = 40;

    svg.left = 52;
    if (narrow)
        below += KEY_ROW * (double)shown_series(plot) + 8;
    struct scale x = scale_of(plot, span_of_x(plot), svg.left + 8, svg.right - 8, false);
    struct scale y = scale_of(plot, span_of_y(plot), bottom, TOP, true);

    svg_begin(&svg, bottom + below);
    words(out, plot);
    svg_title(&svg, plot->y, 14);
    axis(&svg, plot, &y, false, TOP, bottom);
    svg_line(out, "axis", svg.left, bottom, svg.right, bottom);
    axis(&svg, plot, &x, true, TOP, bottom);
    svg_label(out, "tick end", svg.right, bottom + 33);
    html_text(out, plot->x);
    html_raw(out, " →");
    svg_label_end(out);

    if (isfinite(plot->line))
        svg_line(out, "edge", svg.left, place(plot, &y, plot->line), svg.right,
                 place(plot, &y, plot->line));
    for (uint32_t i = 0; i < plot->count; i++)
        draw_series(&svg, plot, &plot->series[i], &x, &y);
    draw_key(&svg, plot, &x, &y, bottom);
    html_raw(out, "</svg>");
}

/* Quotients have a fixed number of decimals. */
static void number(const struct svg *svg, const struct plot *plot, double value)
{
    const int digits = (int)axes_pick(svg, 2, 3);

    if (isfinite(plot->line))
        html_format(svg->out, "%.*f", digits, value);
    else
        html_format(svg->out, "%.*g", digits + 1, value);
}

static void row_value(const struct svg *svg, const struct plot *plot,
                      const struct plot_point *point, double y)
{
    svg_label(svg->out, "name", svg->right + 12, y + 4);
    number(svg, plot, point->y);
    if (has_interval(point)) {
        html_raw(svg->out, "<tspan class=\"value\" dx=\"6\">");
        number(svg, plot, point->low);
        html_raw(svg->out, " to ");
        number(svg, plot, point->high);
        html_raw(svg->out, "</tspan>");
    }
    svg_label_end(svg->out);
}

/* The key of several series, above the rows: side by side, or on a narrow page one below the
 * other. */
static void rows_key(const struct svg *svg, const struct plot *plot)
{
    double x = svg->left, y = TOP + 6;

    for (uint32_t i = 0; i < plot->count; i++) {
        if (!plot->series[i].count)
            continue;

        key_entry(svg, &plot->series[i], x, y);
        if (svg->narrow)
            y += KEY_ROW;
        else
            x += 200;
    }
}

/* The values of a row, one below the other. */
static void row_values(const struct svg *svg, const struct plot *plot, const struct scale *x,
                       uint32_t row, double y)
{
    char class[40];

    for (uint32_t i = 0; i < plot->count; i++) {
        const struct plot_series *of = &plot->series[i];
        const double middle = y + ROW / 2.0;

        for (size_t k = 0; k < of->count; k++) {
            const struct plot_point *point = &of->points[k];
            if (point->x != row)
                continue;

            if (has_interval(point))
                svg_line(svg->out, class_of(class, sizeof class, "line", of),
                         scale_place(x, point->low), middle, scale_place(x, point->high), middle);
            mark(svg->out, of, scale_place(x, point->y), middle);
            row_value(svg, plot, point, middle);
        }
        if (of->count)
            y += ROW;
    }
}

/* A row for each name, with one value of each series and its interval. On a narrow page the name
 * stands above. */
static void draw_rows(const struct plot *plot, struct html *out, bool narrow)
{
    struct svg svg = svg_of(out, narrow, 170);
    const uint32_t series = shown_series(plot);
    double row = ROW * (double)series + ROW_GAP, top = TOP;

    svg.left = 224;
    if (narrow) {
        svg.left = 12;
        svg.right = 226;
        row += ROW;
    }
    if (series > 1)
        top += KEY_ROW * axes_pick(&svg, series, 1);
    const double bottom = top + row * plot->row_count;
    struct scale x = scale_of(plot, span_of_y(plot), svg.left + 6, svg.right - 6, true);

    svg_begin(&svg, bottom + 28);
    words(out, plot);
    svg_title(&svg, plot->y, 14);
    if (series > 1)
        rows_key(&svg, plot);
    axis(&svg, plot, &x, true, top, bottom);
    if (isfinite(plot->line))
        svg_line(out, "oracle", scale_place(&x, plot->line), top, scale_place(&x, plot->line),
                 bottom);

    for (uint32_t r = 0; r < plot->row_count; r++) {
        double y = top + row * r + ROW_GAP / 2.0;

        if (narrow)
            axes_name(out, "name", svg.left, y + 10, plot->rows[r], 50);
        else
            axes_name(out, "name end", svg.left - 10, y + ROW * series / 2.0 + 4, plot->rows[r],
                      34);
        row_values(&svg, plot, &x, r, y + axes_pick(&svg, ROW, 0));
    }
    html_raw(out, "</svg>");
}

void plot_draw(const struct plot *plot, struct html *out)
{
    if (!plot_has_points(plot))
        return;

    for (int narrow = 0; narrow < 2; narrow++) {
        if (plot->has_rows)
            draw_rows(plot, out, narrow);
        else
            draw_curve(plot, out, narrow);
    }
}
