/* SVG drawings inside an HTML page: scales and axes, lines, areas, labels.
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SVG_H
#define SVG_H

#include "html.h"

#include <stddef.h>
#include <stdint.h>

/* All sizes are in units of the drawing, whose letters are 11.5 units high. */
struct svg {
    struct html *out;
    bool narrow;
    double width, left, right; /* `right` of the plot; labels are beyond it */
};

/* The mean width of a letter in a label. */
static const double svg_letter = 6.1;

struct scale {
    double low, high;  /* values */
    double start, end; /* their coordinates */
};

/* Multiples of a step from low to high. */
struct ticks {
    double first, step;
    unsigned count;
};

/* Steps above `base`: columns without gaps between them. */
struct steps {
    double left, width, base;
    double last;
    bool open;
};

/* A label at the side of a drawing, and what it names. */
struct tag {
    double y;
    uint32_t what;
};

/* A drawing for a wide page or a narrow one. On a wide one, `label_width` stays free at the
 * right. */
struct svg svg_of(struct html *out, bool narrow, double label_width);

/* Opens the element. The caller writes its title and description first, and closes it at the
 * end. */
void svg_begin(const struct svg *svg, double height);

/* A title inside, at the left of the plot. */
void svg_title(const struct svg *svg, const char *text, double y);

/* --- Shapes ----------------------------------------------------------------------------------- */

/* `before`, then the coordinate. */
void svg_number(struct html *out, const char *before, double value);

/* The caller closes the element, which may contain a title. */
void svg_rectangle(struct html *out, const char *class, double x, double y, double width,
                   double height);
void svg_line(struct html *out, const char *class, double x0, double y0, double x1, double y1);

/* The caller writes the words in between. */
void svg_label(struct html *out, const char *class, double x, double y);
void svg_label_end(struct html *out);

/* --- Scales and axes -------------------------------------------------------------------------- */

/* The coordinate of a value; values beyond the scale are at its end. */
double scale_place(const struct scale *scale, double value);

/* 1, 2 or 5 times a power of ten, so that `span` has at most `count` of them. */
double ticks_step(double span, unsigned count);

struct ticks ticks_of(double low, double high, unsigned most);
double tick_at(const struct ticks *ticks, unsigned index);

/* A tick's number, with the decimals that its step needs. */
void tick_text(struct html *out, double value, double step);

/* Lines across the plot with their values, over `factor`, at the left. */
void svg_value_axis(const struct svg *svg, const struct scale *scale, unsigned ticks,
                    double factor);

/* --- Lines and areas -------------------------------------------------------------------------- */

/* From `index` on, the step has this height; step_end ends it before `index`. Written into the path
 * that the caller has started. */
void step_to(struct html *out, struct steps *steps, size_t index, double height);
void step_end(struct html *out, struct steps *steps, size_t index);

/* --- Labels ----------------------------------------------------------------------------------- */

/* Sort labels, and move those that are closer than `gap`, within top .. bottom if there is room. */
void tags_spread(struct tag *tags, size_t count, double gap, double top, double bottom);

#endif
