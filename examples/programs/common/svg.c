/* SPDX-License-Identifier: Apache-2.0 */
#include "svg.h"

#include <math.h>
#include <stdlib.h>

/* --- Shapes ----------------------------------------------------------------------------------- */

struct svg svg_of(struct html *out, bool narrow, double label_width)
{
    if (narrow)
        return (struct svg){.out = out, .narrow = true, .width = 360, .left = 34, .right = 354};
    return (struct svg){.out = out, .width = 880, .left = 44, .right = 880 - label_width};
}

void svg_number(struct html *out, const char *before, double value)
{
    html_raw(out, before);
    html_coordinate(out, value);
}

void svg_rectangle(struct html *out, const char *class, double x, double y, double width,
                   double height)
{
    html_format(out, "<rect class=\"%s\"", class);
    svg_number(out, " x=\"", x);
    svg_number(out, "\" y=\"", y);
    svg_number(out, "\" width=\"", fmax(width, 0));
    svg_number(out, "\" height=\"", fmax(height, 0));
    html_raw(out, "\"");
}

void svg_line(struct html *out, const char *class, double x0, double y0, double x1, double y1)
{
    html_format(out, "<path class=\"%s\" d=\"", class);
    svg_number(out, "M", x0);
    svg_number(out, " ", y0);

    if (y0 == y1)
        svg_number(out, "H", x1);
    else if (x0 == x1)
        svg_number(out, "V", y1);
    else {
        svg_number(out, "L", x1);
        svg_number(out, " ", y1);
    }

    html_raw(out, "\"/>");
}

void svg_label(struct html *out, const char *class, double x, double y)
{
    html_format(out, "<text class=\"%s\"", class);
    svg_number(out, " x=\"", x);
    svg_number(out, "\" y=\"", y);
    html_raw(out, "\">");
}

void svg_label_end(struct html *out)
{
    html_raw(out, "</text>");
}

void svg_begin(const struct svg *svg, double height)
{
    html_format(svg->out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"%s\" role=\"img\" "
                "viewBox=\"0 0 %.0f %.0f\">",
                svg->narrow ? "narrow" : "wide", svg->width, height);
}

void svg_title(const struct svg *svg, const char *text, double y)
{
    svg_label(svg->out, "panel", svg->left, y);
    html_raw(svg->out, text);
    svg_label_end(svg->out);
}

/* --- Axes ------------------------------------------------------------------------------------- */

double scale_place(const struct scale *scale, double value)
{
    double clipped = fmin(fmax(value, scale->low), scale->high);
    return scale->start +
           (clipped - scale->low) / (scale->high - scale->low) * (scale->end - scale->start);
}

double ticks_step(double span, unsigned count)
{
    static const double steps[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(span / count)));
    for (int i = 0; i < 4; i++)
        if (span / (power * steps[i]) <= count)
            return power * steps[i];
    return power * 10;
}

struct ticks ticks_of(double low, double high, unsigned most)
{
    struct ticks ticks = {.step = ticks_step(high - low, most)};
    ticks.first = ceil(low / ticks.step - 1e-9);
    double count = floor(high / ticks.step + 1e-9) - ticks.first + 1;
    ticks.count = (unsigned)fmin(fmax(count, 0), 2.0 * most);
    return ticks;
}

double tick_at(const struct ticks *ticks, unsigned index)
{
    return (ticks->first + index) * ticks->step;
}

void tick_text(struct html *out, double value, double step)
{
    int decimals = 0;
    if (step < 1)
        decimals = (int)ceil(-log10(step) - 1e-9);
    html_format(out, "%.*f", decimals, value);
}

void svg_value_axis(const struct svg *svg, const struct scale *scale, unsigned ticks, double factor)
{
    struct ticks all = ticks_of(scale->low / factor, scale->high / factor, ticks);
    for (unsigned i = 0; i < all.count; i++) {
        double tick = tick_at(&all, i), y = scale_place(scale, tick * factor);
        svg_line(svg->out, tick == 0 ? "axis" : "grid", svg->left, y, svg->right, y);
        svg_label(svg->out, "tick end", svg->left - 6, y + 4);
        tick_text(svg->out, tick, all.step);
        svg_label_end(svg->out);
    }
}

/* --- Lines and areas -------------------------------------------------------------------------- */

void step_to(struct html *out, struct steps *steps, size_t index, double height)
{
    if (steps->open && fabs(height - steps->last) < 0.05)
        return;
    double x = steps->left + (double)index * steps->width;

    svg_number(out, steps->open ? "H" : "M", x);
    if (!steps->open)
        svg_number(out, " ", steps->base);
    svg_number(out, "V", steps->base - height);
    steps->last = height;
    steps->open = true;
}

void step_end(struct html *out, struct steps *steps, size_t index)
{
    if (!steps->open)
        return;
    svg_number(out, "H", steps->left + (double)index * steps->width);
    svg_number(out, "V", steps->base);
    html_raw(out, "Z");
    steps->open = false;
}

/* --- Labels that make room for each other ----------------------------------------------------- */

static int compare_tags(const void *a, const void *b)
{
    double left = ((const struct tag *)a)->y, right = ((const struct tag *)b)->y;
    return (left > right) - (left < right);
}

void tags_spread(struct tag *tags, size_t count, double gap, double top, double bottom)
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
