/* A plot in a page, with a table of its values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plot.h"
#include "lab/report/chapter.h"

#include <math.h>

static void number_cell(struct html *out, double value)
{
    html_raw(out, "<td>");
    if (isfinite(value))
        html_format(out, "%.4g", value);
    else
        html_raw(out, "–");
    html_raw(out, "</td>");
}

/* The values of a plot, for readers who want numbers or cannot see the drawing. */
static void values(const struct plot *plot, const char *folder, struct html *out)
{
    html_raw(out, "<details><summary>The values");
    if (folder) {
        html_raw(out, ", and ");
        html_text(out, folder);
        html_text(out, plot->name);
        html_raw(out, ".csv");
    }

    html_raw(out, "</summary>");
    table_begin(out, "dense", "Values of the plot");
    html_raw(out, "<thead><tr><th scope=\"col\">Series</th><th scope=\"col\">");
    html_text(out, plot->x);
    html_raw(out, "</th><th scope=\"col\">");
    html_text(out, plot->y);
    html_raw(out,
             "</th><th scope=\"col\" colspan=\"2\">95&#160;% interval</th></tr></thead><tbody>\n");

    for (uint32_t i = 0; i < plot->count; i++)
        for (size_t k = 0; k < plot->series[i].count; k++) {
            const struct plot_point *point = &plot->series[i].points[k];

            table_row_begin(out, plot->series[i].name);
            if (plot->has_rows)
                table_cell_text(out, plot->rows[(uint32_t)point->x]);
            else
                number_cell(out, point->x);
            number_cell(out, point->y);
            number_cell(out, point->low);
            number_cell(out, point->high);
            html_raw(out, "</tr>\n");
        }

    table_end(out);
    html_raw(out, "</details>\n");
}

void plot_figure(const struct plot *plot, const char *folder, struct html *out)
{
    if (!plot_has_points(plot))
        return;

    html_raw(out, "<div class=\"figure\"><h3>");
    html_text(out, plot->title);
    html_raw(out, "</h3>");
    plot_draw(plot, out);
    html_raw(out, "</div>\n");
    values(plot, folder, out);
}
