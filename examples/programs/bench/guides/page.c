/* The page of cox-bench guides: for each experiment a finding, a chart and a table per device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "chart.h"
#include "common/html.h"
#include "program.h"
#include "report.h"
#include "words.h"

#include <math.h>
#include <stdio.h>

static void number(struct html *out, double value)
{
    char text[32];

    if (isfinite(value))
        html_raw(out, guides_number(value, text, sizeof text));
    else
        html_raw(out, "–");
}

static void number_cell(struct html *out, double value)
{
    html_raw(out, "<td>");
    number(out, value);
    html_raw(out, "</td>");
}

/* Cells for the median and the quartiles. */
static void quartile_cells(struct html *out, const struct guides_quartiles *value)
{
    number_cell(out, value->median);
    html_raw(out, "<td>");
    number(out, value->low);
    html_raw(out, " to ");
    number(out, value->high);
    html_raw(out, "</td>");
}

static void error_cell(struct html *out, double error)
{
    html_raw(out, "<td>");
    if (error > 0)
        html_format(out, "%.1e", error);
    else if (error == 0)
        html_raw(out, "none");
    else
        html_raw(out, "–");

    html_raw(out, "</td>");
}

static void cell_row(struct html *out, const struct guides_cell *cell)
{
    static const char *const states[] = {[GUIDES_WRONG] = "<b>WRONG</b>",
                                         [GUIDES_NOT_OFFERED] = "not offered by this device",
                                         [GUIDES_FAILED] = "<b>failed</b>"};

    html_raw(out, "<tr><th scope=\"row\">");
    html_text(out, cell->name);
    html_raw(out, "</th>");
    if (cell->status == GUIDES_MEASURED) {
        quartile_cells(out, &cell->value);
        quartile_cells(out, &cell->ratio);
        number_cell(out, cell->predicted);
        number_cell(out, cell->value.median / cell->predicted);
        error_cell(out, cell->error);
    } else {
        html_format(out, "<td class=\"why\" colspan=\"7\">%s: ", states[cell->status]);
        html_text(out, cell->why);
        html_raw(out, "</td>");
    }

    html_raw(out, "</tr>\n");
}

static void table(struct html *out, const struct guides_result *result)
{
    const struct guides_experiment *experiment = result->experiment;

    html_raw(out, "<details><summary>The values</summary><div class=\"scroll\"><table "
                  "class=\"dense\"><thead><tr>"
                  "<th scope=\"col\">Way</th><th scope=\"col\">");
    html_raw(out, guides_unit_name(experiment->unit));
    html_raw(out, "</th><th scope=\"col\">quartiles</th><th scope=\"col\">speed over the first</th>"
                  "<th scope=\"col\">quartiles</th><th scope=\"col\">predicted</th>"
                  "<th scope=\"col\">of predicted</th><th scope=\"col\">largest "
                  "error</th></tr></thead><tbody>\n");

    for (uint32_t v = 0; v < experiment->count; v++) {
        const struct guides_cell *cell = &result->cells[v];
        if (guides_begins_group(result, v)) {
            html_raw(out, "<tr class=\"whole\"><th scope=\"rowgroup\" colspan=\"8\"><b>");
            html_text(out, cell->group);
            html_raw(out, "</b></th></tr>\n");
        }
        cell_row(out, cell);
    }

    html_raw(out, "</tbody></table></div></details>\n");
}

static void one_result(struct html *out, const struct guides_report *report,
                       const struct guides_sheet *sheet, const struct guides_result *result)
{
    if (report->count > 1) {
        html_raw(out, "<h3>");
        html_text(out, sheet->device.info.name);
        html_raw(out, "</h3>\n");
    }

    html_raw(out, "<p class=\"finding\">");
    html_text(out, result->finding);
    html_raw(out, "</p>\n<div class=\"figure\">");
    guides_chart(result, out);
    html_raw(out, "</div>\n");
    table(out, result);
}

static void devices(struct html *out, const struct guides_report *report)
{
    html_raw(
        out,
        "<div class=\"scroll\"><table class=\"words\"><caption>Devices</caption><thead><tr>"
        "<th scope=\"col\">Device</th><th scope=\"col\">Platform</th><th scope=\"col\">Driver</th>"
        "<th scope=\"col\">Pixels</th><th scope=\"col\">Times are</th></tr></thead><tbody>\n");

    for (uint32_t d = 0; d < report->count; d++) {
        const struct guides_device *device = &report->sheets[d].device;
        html_raw(out, "<tr><th scope=\"row\">");
        html_text(out, device->info.name);
        html_raw(out, "</th><td>");
        html_text(out, device->info.platform);
        html_raw(out, "</td><td>");
        html_text(out, device->info.driver);
        html_format(out, "</td><td>%u × %u</td><td>", device->width, device->height);
        if (device->profiled)
            html_raw(out, "the device's own");
        else
            html_raw(out, "the host's, because the device reports no kernel times");
        html_raw(out, "</td></tr>\n");
    }

    html_raw(out, "</tbody></table></div>\n");
}

static void fact(struct html *out, const char *what, const char *text)
{
    html_format(out, "<div><dt>%s</dt><dd>", what);
    html_text(out, text);
    html_raw(out, "</dd></div>\n");
}

static void machine(struct html *out, const struct guides_report *report)
{
    char text[64];

    html_raw(out, "<h2 class=\"part\">The machine</h2>\n<dl class=\"facts\">");
    fact(out, "Processor", report->machine.cpu);
    fact(out, "System", report->machine.system);
    snprintf(text, sizeof text, "%u", report->machine.cpus);
    fact(out, "Threads", text);
    snprintf(text, sizeof text, "%s, %.0f seconds", report->date, report->seconds);
    fact(out, "Measured", text);
    if (quiet_others(&report->quiet) >= 0) {
        snprintf(text, sizeof text, "used %.2f processors; %u rounds repeated",
                 quiet_others(&report->quiet), report->quiet.again);
        fact(out, "Others", text);
    }

    fact(out, "Version", cox_version());
    html_raw(out, "</dl>\n");
    devices(out, report);
}

static void head(struct html *out, const struct guides_report *report)
{
    html_begin(out, "OpenCL's guides, measured", "cox-bench guides",
               (const char *const[]){bench_text("style.css"), bench_text("page.css"), NULL});
    html_raw(out, "<header class=\"masthead\"><p class=\"kicker\">cox-bench "
                  "guides</p><h1>The advice of OpenCL guides, measured on this "
                  "machine</h1></header>\n"
                  "<article><header><h2>");

    for (uint32_t d = 0; d < report->count; d++) {
        if (d)
            html_raw(out, ", ");
        html_text(out, report->sheets[d].device.info.name);
    }

    html_raw(out, "</h2>\n<p class=\"sub\"><span class=\"badge\">");
    html_raw(out, report->quick ? "quick: sizes too small for conclusions" : "measured");
    html_raw(out, "</span> ");
    html_text(out, report->date);
    html_raw(out, ". Bars: medians. Lines in the bars: quartiles. Dashed: predicted; an arrow if "
                  "it is far beyond all bars. Every output was compared with the host's. “Beyond "
                  "the noise”: three quarters of the rounds agree.</p></header>\n"
                  "<nav><ul>");
    for (uint32_t r = 0; r < report->sheets[0].count; r++) {
        const struct guides_experiment *experiment = report->sheets[0].results[r].experiment;
        html_format(out, "<li><a href=\"#%s\">%s</a></li>\n", experiment->key, experiment->title);
    }

    html_raw(out, "</ul></nav>\n");
    if (quiet_busy(&report->quiet))
        html_format(out,
                    "<p class=\"busy\">Other programs used %.1f processors during the "
                    "measurement: the figures are unreliable.</p>\n",
                    quiet_others(&report->quiet));
}

bool guides_page(const struct guides_report *report, struct html *out)
{
    head(out, report);

    for (uint32_t r = 0; r < report->sheets[0].count; r++) {
        const struct guides_experiment *experiment = report->sheets[0].results[r].experiment;
        html_format(out, "<section id=\"%s\"><h2 class=\"part\">%s</h2>\n<p class=\"sub\">",
                    experiment->key, experiment->title);
        html_text(out, experiment->guide);
        html_raw(out, "</p>\n");
        for (uint32_t d = 0; d < report->count; d++)
            one_result(out, report, &report->sheets[d], &report->sheets[d].results[r]);
        html_raw(out, "</section>\n");
    }

    machine(out, report);
    html_format(out,
                "</article>\n<footer><p>Made by cox-bench %s. The page loads nothing and runs "
                "nothing.</p></footer>\n"
                "</main></body></html>\n",
                cox_version());

    return !out->failed;
}
