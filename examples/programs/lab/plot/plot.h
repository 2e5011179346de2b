/* A plot: series of points with intervals. The same points make the SVG drawing of a page, a CSV
 * file and a part of the gnuplot script.
 *
 * Running out of memory sets `failed`.
 * Thread-safety: one plot from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_PLOT_PLOT_H
#define COX_EXAMPLES_LAB_PLOT_PLOT_H

#include "common/html.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { PLOT_SERIES_MAX = 24, PLOT_ROWS_MAX = 16 };

struct plot_point {
    double x, y;
    double low, high; /* a 95 % interval of y; NaN = unknown */
};

enum plot_style { PLOT_LINE, PLOT_DASHED, PLOT_MARKS };

struct plot_series {
    char name[80];
    char colour[4]; /* "d0" .. "d7", "p0" .. "p9"; "" = ink */
    enum plot_style style;
    size_t count;
    struct plot_point *points;
};

struct plot {
    char name[40]; /* of its files */
    char title[120];
    char x[80], y[80]; /* titles of the axes, with units */
    bool logarithmic;  /* both axes */
    bool has_rows;     /* x is a row number, rows have names; y lies across */
    bool from_zero;    /* the axis of y */
    double line;       /* a value of y to mark; NaN = none */
    uint32_t row_count;
    char rows[PLOT_ROWS_MAX][80];
    uint32_t count;
    struct plot_series series[PLOT_SERIES_MAX];
    bool failed;
};

void plot_free(struct plot *plot);

/* NULL if there is no room; plot_add accepts NULL. */
__attribute__((format(printf, 4, 5))) struct plot_series *plot_series_add(struct plot *plot,
                                                                          enum plot_style style,
                                                                          const char *colour,
                                                                          const char *name, ...);
void plot_add(struct plot *plot, struct plot_series *series, struct plot_point point);

/* The number of the row with this name, which is added if it is new. */
uint32_t plot_row(struct plot *plot, const char *name);

/* Whether there is anything to draw. */
bool plot_has_points(const struct plot *plot);

/* Both drawings: for a wide page and a narrow one. */
void plot_draw(const struct plot *plot, struct html *out);

/* figure.c: title, drawings and a table of the values, for a page; nothing without points.
 * `folder`: the folder of the plot's CSV file; NULL = there is no file. */
void plot_figure(const struct plot *plot, const char *folder, struct html *out);

/* files.c: CSV with the columns series,x,y,low,high and for rows label; and the commands with which
 * gnuplot draws it. */
void plot_csv(const struct plot *plot, FILE *to);
void plot_gnuplot(const struct plot *plot, FILE *to);

#endif
