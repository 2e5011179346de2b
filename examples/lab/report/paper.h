/* What the drawings of a report are drawn with: paper of a width, scales and axes, lines, areas, labels.
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_PAPER_H
#define COX_EXAMPLES_LAB_REPORT_PAPER_H

#include "figures.h"
#include "html.h"

/* Everything is in units of the drawing, which is so wide that letters of 11.5 units can be read. */
struct paper {
    struct html *out;
    const struct report_run *run;
    bool narrow;
    double width, left, right; /* `right`: of the plot; beyond it stand labels */
    size_t bins;
};

/* The mean width of one in a label. */
static const double paper_letter = 6.1;

struct scale {
    double low, high;  /* values */
    double start, end; /* where they lie */
};

/* Multiples of a step from low to high. */
struct ticks {
    double first, step;
    unsigned count;
};

/* Steps of so many heights above `base`: columns without gaps between them. */
struct steps {
    double left, width, base;
    double last;
    bool open;
};

/* A label at the side of a drawing, and what it is for. */
struct tag {
    double y;
    uint32_t what;
};

struct paper paper_of(struct html *out, const struct report_run *run, bool narrow, double label_width);

/* Opens the drawing. The caller writes its title and description first, and closes it in the end. */
void paper_begin(const struct paper *paper, double height);

/* A title within it, at the left of the plot. */
void paper_title(const struct paper *paper, const char *text, double y);

/* --- Pen ---------------------------------------------------------------------------------------------------------- */

/* `before`, then the coordinate. */
void pen_number(struct html *out, const char *before, double value);

/* The caller closes the element, in which a title may stand. */
void pen_rectangle(struct html *out, const char *class, double x, double y, double width, double height);
void pen_line(struct html *out, const char *class, double x0, double y0, double x1, double y1);

/* The caller writes the words in between. */
void pen_label(struct html *out, const char *class, double x, double y);
void pen_label_end(struct html *out);

/* --- Scales and axes ---------------------------------------------------------------------------------------------- */

/* Where a value lies; what is beyond the scale lies at its end. */
double scale_place(const struct scale *scale, double value);

/* 1, 2 or 5 times a power of ten, so that at most `count` of them lie in `span`. */
double ticks_step(double span, unsigned count);

struct ticks ticks_of(double low, double high, unsigned most);
double tick_at(const struct ticks *ticks, unsigned index);

/* A tick's number, with the decimals that its step needs. */
void tick_text(struct html *out, double value, double step);

/* Lines across the plot with their values, over `factor`, at the left. */
void paper_value_axis(const struct paper *paper, const struct scale *scale, unsigned ticks, double factor);

/* The numbers of the frames, below. */
void paper_frame_axis(const struct paper *paper, double y);

/* The phases: shaded where something disturbs, named above. */
void paper_phases(const struct paper *paper, double name_y, double top, double bottom);

/* --- Lines and areas ---------------------------------------------------------------------------------------------- */

/* The line over the means of the bins, `stride` apart; it breaks where a bin is empty. */
void paper_mean_line(const struct paper *paper, const char *class, const struct report_bin *bins, size_t count,
                     size_t stride, const struct scale *scale);

/* From the least to the most of each bin. */
void paper_range(const struct paper *paper, const char *class, const struct report_bin *bins, size_t count,
                 const struct scale *scale);

/* From here on so high; and the end before `index`. Written into the path that the caller has begun. */
void step_to(struct html *out, struct steps *steps, size_t index, double height);
void step_end(struct html *out, struct steps *steps, size_t index);

/* --- Labels ------------------------------------------------------------------------------------------------------- */

/* Sorts, and moves what is closer than `gap` apart, staying within top .. bottom as far as there is room. */
void tags_spread(struct tag *tags, size_t count, double gap, double top, double bottom);

#endif
