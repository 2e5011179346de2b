/* SPDX-License-Identifier: Apache-2.0 */
#include "plot.h"
#include "common/svg.h"

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
    MARKED_MOST = 30 /* points of a line */
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
    if (series->count == series->room) {
        size_t room = series->room ? 2 * series->room : 32;
        struct plot_point *points = realloc(series->points, room * sizeof *points);
        if (!points) {
            plot->failed = true;
            return;
        }
        series->points = points;
        series->room = room;
    }
    series->points[series->count++] = point;
}

uint32_t plot_row(struct plot *plot, const char *name)
{
    uint32_t row = 0;
    while (row < plot->row_count && strcmp(plot->rows[row], name) != 0)
        row++;
    if (row == plot->row_count && row < PLOT_ROWS_MAX)
        snprintf(plot->rows[plot->row_count++], sizeof plot->rows[row], "%s", name);
    return row < PLOT_ROWS_MAX ? row : PLOT_ROWS_MAX - 1;
}

bool plot_has_points(const struct plot *plot)
{
    for (uint32_t i = 0; i < plot->count; i++)
        if (plot->series[i].count)
            return true;
    return false;
}

/* --- Scales ----------------------------------------------------------------------------------- */

/* Values from least to most, with their intervals; `x` or y. */
struct span {
    double low, high;
};

static struct span span_of(const struct plot *plot, bool x)
{
    struct span span = {INFINITY, -INFINITY};
    for (uint32_t i = 0; i < plot->count; i++)
        for (size_t k = 0; k < plot->series[i].count; k++) {
            const struct plot_point *point = &plot->series[i].points[k];
            bool interval = !x && isfinite(point->low) && isfinite(point->high);
            span.low = fmin(span.low, x          ? point->x
                                      : interval ? fmin(point->low, point->y)
                                                 : point->y);
            span.high = fmax(span.high, x          ? point->x
                                        : interval ? fmax(point->high, point->y)
                                                   : point->y);
        }
    if (!x && isfinite(plot->line)) {
        span.low = fmin(span.low, plot->line);
        span.high = fmax(span.high, plot->line);
    }
    if (!x && plot->from_zero)
        span.low = fmin(span.low, 0);
    return span;
}

/* To whole steps, or on logarithms a little beyond. */
static struct scale scale_of(const struct plot *plot, struct span span, double start, double end,
                             bool whole)
{
    if (plot->logarithmic)
        return (struct scale){log10(span.low) - 0.05, log10(span.high) + 0.05, start, end};
    if (!(span.high > span.low)) {
        double wide = fabs(span.high) > 0 ? 0.1 * fabs(span.high) : 1;
        span.low -= span.low > 0 && !plot->from_zero ? wide : 0;
        span.high += wide;
    }
    double step = ticks_step(span.high - span.low, 5);
    if (!whole)
        return (struct scale){span.low, span.high, start, end};
    return (struct scale){floor(span.low / step + 1e-9) * step,
                          ceil(span.high / step - 1e-9) * step, start, end};
}

static double place(const struct plot *plot, const struct scale *scale, double value)
{
    return scale_place(scale, plot->logarithmic ? log10(value) : value);
}

/* The ticks of a logarithmic axis: 1, 2, 5 of each decade. */
static unsigned log_ticks(const struct scale *scale, double *ticks, unsigned most)
{
    static const double steps[] = {1, 2, 5};
    unsigned count = 0;
    for (int decade = (int)floor(scale->low) - 1; decade <= (int)ceil(scale->high); decade++)
        for (int i = 0; i < 3 && count < most; i++) {
            double tick = steps[i] * pow(10, decade);
            if (log10(tick) >= scale->low && log10(tick) <= scale->high)
                ticks[count++] = tick;
        }
    return count;
}

enum { TICKS_MAX = 24 };

/* Ticks with their texts: across the plot (`below` false: at the left, with lines), or below it. */
static void axis(const struct svg *svg, const struct plot *plot, const struct scale *scale,
                 bool below, double top, double bottom)
{
    double values[TICKS_MAX], step = 0;
    unsigned count;
    if (plot->logarithmic) {
        count = log_ticks(scale, values, TICKS_MAX);
    } else {
        struct ticks ticks = ticks_of(scale->low, scale->high, below ? (svg->narrow ? 4 : 8) : 5);
        count = ticks.count < TICKS_MAX ? ticks.count : TICKS_MAX;
        step = ticks.step;
        for (unsigned i = 0; i < count; i++)
            values[i] = tick_at(&ticks, i);
    }
    for (unsigned i = 0; i < count; i++) {
        double at = place(plot, scale, values[i]);
        if (below) {
            svg_line(svg->out, plot->has_rows ? "grid" : "axis", at, plot->has_rows ? top : bottom,
                     at, bottom + 4);
            svg_label(svg->out, "tick mid", at, bottom + 17);
        } else {
            svg_line(svg->out, values[i] == 0 ? "axis" : "grid", svg->left, at, svg->right, at);
            svg_label(svg->out, "tick end", svg->left - 6, at + 4);
        }
        if (plot->logarithmic)
            html_format(svg->out, "%.4g", values[i]);
        else
            tick_text(svg->out, values[i], step);
        svg_label_end(svg->out);
    }
}

/* --- Marks ------------------------------------------------------------------------------------ */

/* "line d0"; ink has classes of its own. */
static const char *class_of(char *class, size_t bytes, const char *kind,
                            const struct plot_series *series)
{
    const bool dashed = series->style == PLOT_DASHED;
    if (series->colour[0])
        snprintf(class, bytes, "%s %s%s", kind, series->colour, dashed ? " dashed" : "");
    else if (strcmp(kind, "line") == 0)
        snprintf(class, bytes, "%s", dashed ? "oracle" : "mark");
    else
        snprintf(class, bytes, "%s", strcmp(kind, "fill") == 0 ? "fill p8" : "leader ink");
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
        double at = place(plot, x, point->x);
        if (isfinite(point->low) && isfinite(point->high) && point->high > point->low)
            svg_line(out, class, at,
                     place(plot, y, fmax(point->low, plot->logarithmic ? 1e-9 : point->low)), at,
                     place(plot, y, point->high));
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
    svg_label(svg->out, "name", x + 18, y);
    html_text_middle(svg->out, series->name, svg->narrow ? 42 : 28);
    svg_label_end(svg->out);
}

static uint32_t shown_series(const struct plot *plot)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plot->count; i++)
        count += plot->series[i].count > 0;
    return count;
}

/* Where each series ends, at the right; on a narrow page below. */
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
    html_raw(out, plot->has_rows ? "" : " against ");
    html_text(out, plot->has_rows ? "" : plot->x);
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
    svg.left = 52;
    struct scale x = scale_of(plot, span_of(plot, true), svg.left + 8, svg.right - 8, false);
    struct scale y = scale_of(plot, span_of(plot, false), bottom, TOP, true);
    svg_begin(&svg, bottom + 40 + (narrow ? KEY_ROW * (double)shown_series(plot) + 8 : 0));
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

static void row_value(const struct svg *svg, const struct plot *plot,
                      const struct plot_point *point, double y)
{
    const bool quotient = isfinite(plot->line);
    const char *form = svg->narrow ? (quotient ? "%.2f" : "%.3g") : (quotient ? "%.3f" : "%.4g");
    char text[64];
    svg_label(svg->out, "name", svg->right + 12, y + 4);
    snprintf(text, sizeof text, form, point->y);
    html_raw(svg->out, text);
    if (isfinite(point->low) && isfinite(point->high)) {
        snprintf(text, sizeof text, form, point->low);
        html_format(svg->out, "<tspan class=\"value\" dx=\"6\">%s to ", text);
        snprintf(text, sizeof text, form, point->high);
        html_format(svg->out, "%s</tspan>", text);
    }
    svg_label_end(svg->out);
}

/* A row for each name, in it one value of each series with its interval. On a narrow page the name
 * stands above. */
static void draw_rows(const struct plot *plot, struct html *out, bool narrow)
{
    struct svg svg = svg_of(out, narrow, 170);
    const uint32_t series = shown_series(plot);
    const double row = ROW * (double)series + ROW_GAP + (narrow ? ROW : 0);
    const double top = TOP + (series > 1 ? KEY_ROW * (narrow ? (double)series : 1) : 0);
    const double bottom = top + row * plot->row_count;
    char class[40];
    svg.left = narrow ? 12 : 224;
    svg.right = narrow ? 226 : svg.right;
    struct scale x = scale_of(plot, span_of(plot, false), svg.left + 6, svg.right - 6, true);
    svg_begin(&svg, bottom + 28);
    words(out, plot);
    svg_title(&svg, plot->y, 14);
    for (uint32_t i = 0, shown = 0; i < plot->count && series > 1; i++)
        if (plot->series[i].count) {
            key_entry(&svg, &plot->series[i], narrow ? svg.left : svg.left + shown * 200.0,
                      narrow ? TOP + 6 + KEY_ROW * (double)shown : TOP + 6);
            shown++;
        }
    axis(&svg, plot, &x, true, top, bottom);
    if (isfinite(plot->line))
        svg_line(out, "oracle", scale_place(&x, plot->line), top, scale_place(&x, plot->line),
                 bottom);
    for (uint32_t r = 0; r < plot->row_count; r++) {
        double from = top + row * r + ROW_GAP / 2.0, y = from + (narrow ? ROW : 0);
        svg_label(out, narrow ? "name" : "name end", narrow ? svg.left : svg.left - 10,
                  narrow ? from + 10 : from + ROW * series / 2.0 + 4);
        html_text_middle(out, plot->rows[r], narrow ? 50 : 34);
        svg_label_end(out);
        for (uint32_t i = 0; i < plot->count; i++) {
            const struct plot_series *of = &plot->series[i];
            for (size_t k = 0; k < of->count; k++) {
                const struct plot_point *point = &of->points[k];
                if (point->x != r)
                    continue;
                if (isfinite(point->low) && isfinite(point->high))
                    svg_line(out, class_of(class, sizeof class, "line", of),
                             scale_place(&x, point->low), y + ROW / 2.0,
                             scale_place(&x, point->high), y + ROW / 2.0);
                mark(out, of, scale_place(&x, point->y), y + ROW / 2.0);
                row_value(&svg, plot, point, y + ROW / 2.0);
            }
            y += of->count ? ROW : 0;
        }
    }
    html_raw(out, "</svg>");
}

void plot_draw(const struct plot *plot, struct html *out)
{
    void (*draw)(const struct plot *, struct html *, bool) = plot->has_rows ? draw_rows
                                                                            : draw_curve;
    if (!plot_has_points(plot))
        return;
    draw(plot, out, false);
    draw(plot, out, true);
}
