/* SPDX-License-Identifier: Apache-2.0 */
#include "paper.h"
#include "charts.h"

#include <math.h>
#include <stdlib.h>

/* --- Paper and pen ------------------------------------------------------------------------------------------------ */

struct paper paper_of(struct html *out, const struct report_run *run, bool narrow, double label_width)
{
    return (struct paper){.out = out,
                          .run = run,
                          .narrow = narrow,
                          .width = narrow ? 360 : 880,
                          .left = narrow ? 34 : 44,
                          .right = narrow ? 354 : 880 - label_width,
                          .bins = narrow ? CHART_BINS_NARROW : CHART_BINS_WIDE};
}

void pen_number(struct html *out, const char *before, double value)
{
    html_raw(out, before);
    html_coordinate(out, value);
}

void pen_rectangle(struct html *out, const char *class, double x, double y, double width, double height)
{
    html_format(out, "<rect class=\"%s\"", class);
    pen_number(out, " x=\"", x);
    pen_number(out, "\" y=\"", y);
    pen_number(out, "\" width=\"", fmax(width, 0));
    pen_number(out, "\" height=\"", fmax(height, 0));
    html_raw(out, "\"");
}

void pen_line(struct html *out, const char *class, double x0, double y0, double x1, double y1)
{
    html_format(out, "<path class=\"%s\" d=\"", class);
    pen_number(out, "M", x0);
    pen_number(out, " ", y0);
    if (y0 == y1)
        pen_number(out, "H", x1);
    else if (x0 == x1)
        pen_number(out, "V", y1);
    else {
        pen_number(out, "L", x1);
        pen_number(out, " ", y1);
    }
    html_raw(out, "\"/>");
}

void pen_label(struct html *out, const char *class, double x, double y)
{
    html_format(out, "<text class=\"%s\"", class);
    pen_number(out, " x=\"", x);
    pen_number(out, "\" y=\"", y);
    html_raw(out, "\">");
}

void pen_label_end(struct html *out)
{
    html_raw(out, "</text>");
}

void paper_begin(const struct paper *paper, double height)
{
    html_format(paper->out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"%s\" role=\"img\" viewBox=\"0 0 %.0f %.0f\">",
                paper->narrow ? "narrow" : "wide", paper->width, height);
}

void paper_title(const struct paper *paper, const char *text, double y)
{
    pen_label(paper->out, "panel", paper->left, y);
    html_raw(paper->out, text);
    pen_label_end(paper->out);
}

/* --- Axes --------------------------------------------------------------------------------------------------------- */

double scale_place(const struct scale *scale, double value)
{
    double clipped = fmin(fmax(value, scale->low), scale->high);
    return scale->start + (clipped - scale->low) / (scale->high - scale->low) * (scale->end - scale->start);
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
    ticks.count = count > 0 ? (unsigned)fmin(count, 2.0 * most) : 0;
    return ticks;
}

double tick_at(const struct ticks *ticks, unsigned index)
{
    return (ticks->first + index) * ticks->step;
}

void tick_text(struct html *out, double value, double step)
{
    int decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    html_format(out, "%.*f", decimals, value);
}

void paper_value_axis(const struct paper *paper, const struct scale *scale, unsigned ticks, double factor)
{
    struct ticks all = ticks_of(scale->low / factor, scale->high / factor, ticks);
    for (unsigned i = 0; i < all.count; i++) {
        double tick = tick_at(&all, i), y = scale_place(scale, tick * factor);
        pen_line(paper->out, tick == 0 ? "axis" : "grid", paper->left, y, paper->right, y);
        pen_label(paper->out, "tick end", paper->left - 6, y + 4);
        tick_text(paper->out, tick, all.step);
        pen_label_end(paper->out);
    }
}

static struct scale paper_frame_scale(const struct paper *paper)
{
    return (struct scale){0, paper->run->frame_end, paper->left, paper->right};
}

void paper_frame_axis(const struct paper *paper, double y)
{
    struct scale frames = paper_frame_scale(paper);
    double step = fmax(ticks_step(frames.high, paper->narrow ? 4 : 8), 1);
    pen_line(paper->out, "axis", paper->left, y, paper->right, y);
    for (unsigned i = 0; i * step < frames.high; i++) {
        double tick = i * step, x = scale_place(&frames, tick);
        pen_line(paper->out, "axis", x, y, x, y + 4);
        pen_label(paper->out, "tick mid", x, y + 17);
        tick_text(paper->out, tick, step);
        pen_label_end(paper->out);
    }
    pen_label(paper->out, "tick end", paper->right, y + 31);
    html_raw(paper->out, "frame →");
    pen_label_end(paper->out);
}

void paper_phases(const struct paper *paper, double name_y, double top, double bottom)
{
    struct scale frames = paper_frame_scale(paper);
    const struct report_run *run = paper->run;
    for (uint32_t i = 0; run->phase_count > 1 && i < run->phase_count; i++) {
        const struct report_phase *phase = &run->phases[i];
        double x0 = scale_place(&frames, phase->first_frame), x1 = scale_place(&frames, phase->end_frame);
        if (!(x1 > x0))
            continue;
        if (phase->disturbed) {
            pen_rectangle(paper->out, "phase", x0, top, x1 - x0, bottom - top);
            html_raw(paper->out, "/>");
        }
        if (i)
            pen_line(paper->out, "edge", x0, name_y - 9, x0, bottom);
        double letters = floor((x1 - x0 - 8) / paper_letter);
        if (letters < 3)
            continue;
        pen_label(paper->out, "phase-name", x0 + (i ? 5 : 0), name_y);
        html_text_cut(paper->out, phase->text, (unsigned)letters);
        pen_label_end(paper->out);
    }
}

/* --- Lines and areas ---------------------------------------------------------------------------------------------- */

void paper_mean_line(const struct paper *paper, const char *class, const struct report_bin *bins, size_t count,
                     size_t stride, const struct scale *scale)
{
    bool drawing = false;
    double width = (paper->right - paper->left) / (double)count;
    html_format(paper->out, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0; i < count; i++) {
        const struct report_bin *bin = &bins[i * stride];
        bool next = i + 1 < count && bins[(i + 1) * stride].count;
        if (bin->count) {
            pen_number(paper->out, drawing ? "L" : "M", paper->left + ((double)i + 0.5) * width);
            pen_number(paper->out, " ", scale_place(scale, bin->mean));
            if (!drawing && !next) /* one alone is a dot, which takes a line of no length */
                html_raw(paper->out, "h0");
        }
        drawing = bin->count;
    }
    html_raw(paper->out, "\"/>");
}

void paper_range(const struct paper *paper, const char *class, const struct report_bin *bins, size_t count,
                 const struct scale *scale)
{
    double width = (paper->right - paper->left) / (double)count;
    html_format(paper->out, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0, end; i < count; i = end + 1) {
        for (end = i; end < count && bins[end].count; end++) {
            pen_number(paper->out, end == i ? "M" : "L", paper->left + ((double)end + 0.5) * width);
            pen_number(paper->out, " ", scale_place(scale, bins[end].most));
        }
        for (size_t k = end; k > i; k--) {
            pen_number(paper->out, "L", paper->left + ((double)k - 0.5) * width);
            pen_number(paper->out, " ", scale_place(scale, bins[k - 1].least));
        }
        if (end > i)
            html_raw(paper->out, "Z");
    }
    html_raw(paper->out, "\"/>");
}

void step_to(struct html *out, struct steps *steps, size_t index, double height)
{
    if (steps->open && fabs(height - steps->last) < 0.05)
        return;
    double x = steps->left + (double)index * steps->width;
    pen_number(out, steps->open ? "H" : "M", x);
    if (!steps->open)
        pen_number(out, " ", steps->base);
    pen_number(out, "V", steps->base - height);
    steps->last = height;
    steps->open = true;
}

void step_end(struct html *out, struct steps *steps, size_t index)
{
    if (!steps->open)
        return;
    pen_number(out, "H", steps->left + (double)index * steps->width);
    pen_number(out, "V", steps->base);
    html_raw(out, "Z");
    steps->open = false;
}

/* --- Labels that make room for each other ------------------------------------------------------------------------- */

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
