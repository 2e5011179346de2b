/* SVG drawings inside an HTML page: scales and axes, lines, areas, labels.
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_PROGRAMS_COMMON_SVG_H
#define COX_PROGRAMS_COMMON_SVG_H

#include "html.h"

#include <stddef.h>
#include <stdint.h>

/* Everything is in units of the drawing, which is so wide that letters of 11.5 units can be read. */
struct svg {
    struct html *out;
    bool narrow;
    double width, left, right; /* `right`: of the plot; beyond it stand labels */
};

/* The mean width of one in a label. */
static const double svg_letter = 6.1;

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

/* A drawing for a wide page, or for a narrow one. `label_width` is left free at the right of a wide one. */
struct svg svg_of(struct html *out, bool narrow, double label_width);

/* Opens the drawing. The caller writes its title and description first, and closes it in the end. */
void svg_begin(const struct svg *svg, double height);

/* A title within it, at the left of the plot. */
void svg_title(const struct svg *svg, const char *text, double y);

/* --- Pen ---------------------------------------------------------------------------------------------------------- */

/* `before`, then the coordinate. */
void svg_number(struct html *out, const char *before, double value);

/* The caller closes the element, in which a title may stand. */
void svg_rectangle(struct html *out, const char *class, double x, double y, double width,
                   double height);
void svg_line(struct html *out, const char *class, double x0, double y0, double x1, double y1);

/* The caller writes the words in between. */
void svg_label(struct html *out, const char *class, double x, double y);
void svg_label_end(struct html *out);

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
void svg_value_axis(const struct svg *svg, const struct scale *scale, unsigned ticks,
                    double factor);

/* --- Lines and areas ---------------------------------------------------------------------------------------------- */

/* From here on so high; and the end before `index`. Written into the path that the caller has begun. */
void step_to(struct html *out, struct steps *steps, size_t index, double height);
void step_end(struct html *out, struct steps *steps, size_t index);

/* --- Labels ------------------------------------------------------------------------------------------------------- */

/* Sorts, and moves what is closer than `gap` apart, staying within top .. bottom as far as there is room. */
void tags_spread(struct tag *tags, size_t count, double gap, double top, double bottom);

#endif
