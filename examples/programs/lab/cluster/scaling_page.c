/* SPDX-License-Identifier: Apache-2.0 */
#include "scaling_page.h"
#include "lab/plot/plot.h"
#include "lab/report/chapter.h"
#include "lab/texts.h"

#include <coxswain/version.h>
#include <inttypes.h>
#include <math.h>

static const char *const colours[CLUSTER_ENGINES] = {[CLUSTER_MPI] = "d0", [CLUSTER_QUEUE] = "d1"};

static bool has_engine(const struct cluster_page *page, enum cluster_engine engine)
{
    for (uint32_t i = 0; i < page->count; i++)
        if (page->all[i].way.engine == engine)
            return true;
    return false;
}

enum kind { SIMULATED, MODEL };

/* Add the line of an engine, in seconds, or as efficiency: the ideal time over the time. */
static void add_line(const struct cluster_page *page, struct plot *plot, enum cluster_engine engine,
                     enum kind kind, bool efficiency)
{
    if (!has_engine(page, engine))
        return;

    const bool model = kind == MODEL;
    struct plot_series *series = plot_series_add(plot, model ? PLOT_DASHED : PLOT_LINE,
                                                 colours[engine], "%s, %s",
                                                 cluster_engine_name(engine),
                                                 model ? "formula" : "simulated");

    for (uint32_t i = 0; i < page->count; i++) {
        const struct cluster_figures *figures = &page->all[i];
        if (figures->way.engine != engine)
            continue;

        struct plot_point point = {(double)figures->way.machines, figures->median_s, figures->low_s,
                                   figures->high_s};
        if (model)
            point = (struct plot_point){point.x, figures->model.total, NAN, NAN};
        if (efficiency)
            point = (struct plot_point){point.x, figures->ideal_s / point.y,
                                        figures->ideal_s / point.high,
                                        figures->ideal_s / point.low};
        plot_add(plot, series, point);
    }
}

static bool plot_all(const struct cluster_page *page, bool efficiency, struct html *out)
{
    struct plot plot = {.logarithmic = true, .line = NAN, .x = "machines"};
    static const char *const texts[2][3] = {{"time", "Time of the film", "seconds"},
                                            {"efficiency", "Efficiency", "ideal time / time"}};

    snprintf(plot.name, sizeof plot.name, "%s", texts[efficiency][0]);
    snprintf(plot.title, sizeof plot.title, "%s", texts[efficiency][1]);
    snprintf(plot.y, sizeof plot.y, "%s", texts[efficiency][2]);

    for (int engine = 0; engine < CLUSTER_ENGINES; engine++) {
        add_line(page, &plot, (enum cluster_engine)engine, SIMULATED, efficiency);
        add_line(page, &plot, (enum cluster_engine)engine, MODEL, efficiency);
    }

    struct plot_series *ideal = plot_series_add(&plot, PLOT_DASHED, "", "ideal");
    for (uint32_t i = 0; i < page->count; i++)
        if (!i || page->all[i].way.machines != page->all[i - 1].way.machines)
            plot_add(&plot, ideal,
                     (struct plot_point){(double)page->all[i].way.machines,
                                         efficiency ? 1 : page->all[i].ideal_s, NAN, NAN});

    plot_figure(&plot, NULL, out);
    const bool good = !plot.failed;
    plot_free(&plot);
    return good;
}

static void number_cell(struct html *out, double value)
{
    if (isfinite(value))
        html_format(out, "<td>%.1f</td>", value);
    else
        html_raw(out, "<td>–</td>");
}

/* A table of where the time goes. */
static void losses_table(const struct cluster_page *page, struct html *out)
{
    static const char *const heads[] = {"Machines", "Engine",          "Ideal",       "Serial",
                                        "Storage",  "Starting ranges", "Last ranges", "Faults"};

    table_begin(out, "dense", "Where the time goes, by the formula, in seconds");
    html_raw(out, "<thead><tr>");
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        html_format(out, "<th scope=\"col\">%s</th>", heads[i]);
    html_raw(out, "</tr></thead><tbody>\n");

    for (uint32_t i = 0; i < page->count; i++) {
        const struct cluster_figures *figures = &page->all[i];

        html_format(out, "<tr><th scope=\"row\">%" PRIu64 "</th><td>%s</td>", figures->way.machines,
                    cluster_engine_name(figures->way.engine));
        number_cell(out, figures->ideal_s);
        number_cell(out, figures->losses.serial);
        number_cell(out, figures->losses.storage);
        number_cell(out, figures->losses.ranges);
        number_cell(out, figures->losses.end);
        number_cell(out, figures->losses.faults);
        html_raw(out, "</tr>\n");
    }
    table_end(out);
}

bool cluster_page(const struct cluster_page *page, struct html *out)
{
    html_begin(out, "A film over many machines", "cox-lab cluster",
               (const char *const[]){lab_text("style.css"), NULL});
    html_raw(out, "<header class=\"masthead\"><p class=\"kicker\">Coxswain lab</p>"
                  "<h1>A film over many machines</h1></header>\n<article><header><h2>");
    html_text(out, page->cluster->name);
    html_format(out,
                "</h2>\n<p class=\"sub\"><span class=\"badge\">simulated</span> %" PRIu64 " frames",
                page->cluster->frames);
    if (*page->cluster->text) {
        html_raw(out, "; ");
        html_text(out, page->cluster->text);
    }
    html_raw(out, "</p></header>\n"
                  "<p>Ideal: all machines always work, without any overhead. Intervals: "
                  "80&#160;% of the simulated runs; one tenth is below, one tenth above.</p>\n");

    bool good = plot_all(page, false, out);
    good = plot_all(page, true, out) && good;
    losses_table(page, out);

    html_format(out,
                "</article>\n<footer><p>Made by cox-lab %s. The page loads nothing and runs "
                "nothing.</p></footer>\n</main></body></html>\n",
                cox_version());
    return good && !out->failed;
}
