/* A plot as CSV and for gnuplot.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plot.h"
#include "common/text.h"

#include <math.h>
#include <string.h>

/* Leave out characters that are special between double quotes of gnuplot, and those in `more`. */
static void put_without(const char *text, const char *more, FILE *to)
{
    char plain[1024];

    for (text_plain(text, plain, sizeof plain), text = plain; *text; text++)
        if (!strchr("\"\\`$\n\r%", *text) && !strchr(more, *text))
            fputc(*text, to);
}

/* A field of CSV. The gnuplot script compares it with the same text. */
static void put_plain(const char *text, FILE *to)
{
    put_without(text, ",", to);
}

static void put_number(double value, FILE *to)
{
    if (isfinite(value))
        fprintf(to, ",%.6g", value);
    else
        fputc(',', to);
}

void plot_csv(const struct plot *plot, FILE *to)
{
    fputs("series,x,y,low,high", to);
    if (plot->has_rows)
        fputs(",label", to);
    fputc('\n', to);

    for (uint32_t i = 0; i < plot->count; i++)
        for (size_t k = 0; k < plot->series[i].count; k++) {
            const struct plot_point *point = &plot->series[i].points[k];

            put_plain(plot->series[i].name, to);
            put_number(point->x, to);
            put_number(point->y, to);
            put_number(point->low, to);
            put_number(point->high, to);

            if (plot->has_rows) {
                fputc(',', to);
                put_plain(plot->rows[(uint32_t)point->x], to);
            }
            fputc('\n', to);
        }
}

static void put_text(const char *what, const char *text, FILE *to)
{
    fprintf(to, "set %s \"", what);
    put_without(text, "", to);
    fputs("\"\n", to);
}

/* The names of the rows as ticks. */
static void put_rows(const struct plot *plot, FILE *to)
{
    fprintf(to, "set lmargin 26\nset xrange [-0.5:%u.5]\nset xtics rotate by 30 right (",
            plot->row_count - 1);
    for (uint32_t r = 0; r < plot->row_count; r++) {
        fputs(r ? ", \"" : "\"", to);
        put_plain(plot->rows[r], to);
        fprintf(to, "\" %u", r);
    }
    fputs(")\n", to);
}

/* Draw one series of the CSV file; `index` counts the series that have points. */
static void put_series(const struct plot *plot, const struct plot_series *series, uint32_t index,
                       FILE *to)
{
    const char *style = "yerrorlines";
    double shift = 0;

    if (plot->has_rows || series->style == PLOT_MARKS)
        style = "yerrorbars";
    if (plot->has_rows)
        shift = 0.12 * index;

    fprintf(to, "%s'%s.csv' skip 1 using (strcol(1) eq \"", index ? ", \\\n     " : "plot ",
            plot->name);
    put_plain(series->name, to);
    fprintf(to,
            "\" ? $2 + %.2f : NaN):3:(valid(4) ? $4 : $3):(valid(5) ? $5 : $3) with %s title \"",
            shift, style);
    put_plain(series->name, to);
    fputs("\"", to);
}

void plot_gnuplot(const struct plot *plot, FILE *to)
{
    uint32_t shown = 0;

    fprintf(to,
            "\nreset\nset datafile separator comma\nset key outside right\nset output '%s.svg'\n",
            plot->name);
    put_text("title", plot->title, to);
    put_text("ylabel", plot->y, to);
    if (!plot->has_rows)
        put_text("xlabel", plot->x, to);
    if (plot->logarithmic)
        fputs("set logscale xy\n", to);
    if (plot->from_zero)
        fputs("set yrange [0:*]\n", to);
    if (isfinite(plot->line))
        fprintf(to, "set arrow from graph 0, first %.6g to graph 1, first %.6g nohead dashtype 2\n",
                plot->line, plot->line);
    if (plot->has_rows)
        put_rows(plot, to);

    for (uint32_t i = 0; i < plot->count; i++)
        if (plot->series[i].count)
            put_series(plot, &plot->series[i], shown++, to);
    fputc('\n', to);
}
