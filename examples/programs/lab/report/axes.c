/* SPDX-License-Identifier: Apache-2.0 */
#include "axes.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

struct paper paper_of(struct html *out, const struct report_run *run, bool narrow,
                      double label_width)
{
    struct paper paper = {
        .svg = svg_of(out, narrow, label_width), .run = run, .bins = CHART_BINS_WIDE};

    if (narrow)
        paper.bins = CHART_BINS_NARROW;
    return paper;
}

void axes_label(struct html *out, const char *class, double x, double y, const char *format, ...)
{
    char text[160];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);

    svg_label(out, class, x, y);
    html_raw(out, text);
    svg_label_end(out);
}

void axes_name(struct html *out, const char *class, double x, double y, const char *name,
               unsigned characters)
{
    svg_label(out, class, x, y);
    html_text_middle(out, name, characters);
    svg_label_end(out);
}

void chart_ms(struct html *out, double ns)
{
    double ms = ns / 1e6;
    int decimals = 4;

    if (isnan(ms)) {
        html_raw(out, "–");
        return;
    }

    for (double limit = 1; limit <= 100 && fabs(ms) >= limit; limit *= 10)
        decimals--;
    html_format(out, "%.*f", decimals, ms);
}

void axes_ms(struct html *out, const char *class, double x, double y, const char *before, double ns)
{
    svg_label(out, class, x, y);
    html_raw(out, before);
    chart_ms(out, ns);
    svg_label_end(out);
}

static struct scale frame_scale(const struct paper *paper)
{
    return (struct scale){0, paper->run->frame_end, paper->svg.left, paper->svg.right};
}

void axes_frame_axis(const struct paper *paper, double y)
{
    struct scale frames = frame_scale(paper);
    double step = fmax(ticks_step(frames.high, (unsigned)axes_pick(&paper->svg, 4, 8)), 1);

    svg_line(paper->svg.out, "axis", paper->svg.left, y, paper->svg.right, y);
    for (unsigned i = 0; i * step < frames.high; i++) {
        double tick = i * step, x = scale_place(&frames, tick);

        svg_line(paper->svg.out, "axis", x, y, x, y + 4);
        svg_label(paper->svg.out, "tick mid", x, y + 17);
        tick_text(paper->svg.out, tick, step);
        svg_label_end(paper->svg.out);
    }
    axes_label(paper->svg.out, "tick end", paper->svg.right, y + 31, "frame →");
}

static void draw_phase(const struct paper *paper, uint32_t index, double name_y, double top,
                       double bottom)
{
    const struct scale frames = frame_scale(paper);
    const struct report_phase *phase = &paper->run->phases[index];
    double x0 = scale_place(&frames, phase->first_frame);
    double x1 = scale_place(&frames, phase->end_frame);
    double letters = floor((x1 - x0 - 8) / svg_letter), name_x = x0;

    if (!(x1 > x0))
        return;
    if (phase->disturbed) {
        svg_rectangle(paper->svg.out, "phase", x0, top, x1 - x0, bottom - top);
        html_raw(paper->svg.out, "/>");
    }
    if (index) {
        svg_line(paper->svg.out, "edge", x0, name_y - 9, x0, bottom);
        name_x += 5;
    }
    if (letters < 3)
        return;

    svg_label(paper->svg.out, "phase-name", name_x, name_y);
    html_text_cut(paper->svg.out, phase->text, (unsigned)letters);
    svg_label_end(paper->svg.out);
}

void axes_phases(const struct paper *paper, double name_y, double top, double bottom)
{
    for (uint32_t i = 0; paper->run->phase_count > 1 && i < paper->run->phase_count; i++)
        draw_phase(paper, i, name_y, top, bottom);
}

void axes_mean_line(const struct paper *paper, const char *class, const struct report_bin *bins,
                    size_t count, size_t stride, const struct scale *scale)
{
    bool drawing = false;
    double width = (paper->svg.right - paper->svg.left) / (double)count;

    html_format(paper->svg.out, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0; i < count; i++) {
        const struct report_bin *bin = &bins[i * stride];
        bool next = i + 1 < count && bins[(i + 1) * stride].count;

        if (bin->count) {
            svg_number(paper->svg.out, drawing ? "L" : "M",
                       paper->svg.left + ((double)i + 0.5) * width);
            svg_number(paper->svg.out, " ", scale_place(scale, bin->mean));
            if (!drawing && !next) /* a single bin is a dot: a line without length */
                html_raw(paper->svg.out, "h0");
        }
        drawing = bin->count;
    }
    html_raw(paper->svg.out, "\"/>");
}

void axes_range(const struct paper *paper, const char *class, const struct report_bin *bins,
                size_t count, const struct scale *scale)
{
    double width = (paper->svg.right - paper->svg.left) / (double)count;

    html_format(paper->svg.out, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0, end; i < count; i = end + 1) {
        for (end = i; end < count && bins[end].count; end++) {
            svg_number(paper->svg.out, end == i ? "M" : "L",
                       paper->svg.left + ((double)end + 0.5) * width);
            svg_number(paper->svg.out, " ", scale_place(scale, bins[end].most));
        }

        for (size_t k = end; k > i; k--) {
            svg_number(paper->svg.out, "L", paper->svg.left + ((double)k - 0.5) * width);
            svg_number(paper->svg.out, " ", scale_place(scale, bins[k - 1].least));
        }
        if (end > i)
            html_raw(paper->svg.out, "Z");
    }
    html_raw(paper->svg.out, "\"/>");
}
