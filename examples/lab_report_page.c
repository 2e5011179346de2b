/* SPDX-License-Identifier: Apache-2.0 */
#include "lab_report_page.h"
#include "lab_report_charts.h"
#include "lab_texts.h"

#include <coxswain/version.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the page of one run is made from. */
struct chapter {
    struct html *out;
    const struct report_source *source;
    const struct report_run *run;
    uint32_t order[REPORT_POLICIES_MAX]; /* fastest first */
    uint32_t count;
    struct report_figures *all;
    struct report_figures (*phases)[REPORT_PHASES_MAX];
    struct chart_policies charts;
};

/* --- Words and numbers ----------------------------------------------------------------------------------------------- */

/* The text, or what stands for its absence. */
static void text_or(struct html *out, const char *text, const char *instead)
{
    if (text && *text)
        html_text(out, text);
    else
        html_raw(out, instead);
}

static void whole_number(struct html *out, double value)
{
    if (isnan(value))
        html_raw(out, "–");
    else
        html_format(out, "%.0f", value);
}

static void policy_name(const struct chapter *chapter, uint32_t policy)
{
    text_or(chapter->out, chapter->run->policies[policy], "(unnamed)");
}

/* A cell with a number; `best` makes it bold. */
static void cell_begin(struct html *out, bool best)
{
    html_raw(out, best ? "<td class=\"best\">" : "<td>");
}

static void cell_ms(struct html *out, double ns, bool best)
{
    cell_begin(out, best);
    chart_ms(out, ns);
    html_raw(out, "</td>");
}

static void cell(struct html *out, const char *format_of_one, double value, bool best)
{
    char text[40] = "–";
    if (isfinite(value) && !strcmp(format_of_one, "ratio"))
        snprintf(text, sizeof text, "%.3f", value);
    else if (isfinite(value) && !strcmp(format_of_one, "percent"))
        snprintf(text, sizeof text, "%.1f %%", 100 * value);
    else if (isfinite(value) && !strcmp(format_of_one, "one"))
        snprintf(text, sizeof text, "%.1f", value);
    else if (isfinite(value) && !strcmp(format_of_one, "joules"))
        snprintf(text, sizeof text, "%.4g", value);
    else if (isfinite(value))
        snprintf(text, sizeof text, "%.0f", value);
    cell_begin(out, best);
    html_raw(out, text);
    html_raw(out, "</td>");
}

static void swatch(struct html *out, const char *kind, uint32_t colour)
{
    html_format(
        out,
        "<svg class=\"swatch\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"fill %s%u\" width=\"10\""
        " height=\"10\" rx=\"2\"/></svg>",
        kind, colour);
}

static void table_begin(struct html *out, const char *class, const char *caption)
{
    html_format(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"%s\"><table class=\"%s\"><caption><span>%s</span></caption>",
        caption, class, caption);
}

static void table_end(struct html *out)
{
    html_raw(out, "</tbody></table></div>\n");
}

/* --- What came out --------------------------------------------------------------------------------------------------- */

static bool is_simulated(const struct report_run *run)
{
    return run->source && !strcmp(run->source, "simulation");
}

static bool is_oracle(const struct chapter *chapter, uint32_t policy)
{
    return !strcmp(chapter->run->policies[policy], "oracle");
}

static void more_or_less(struct html *out, double ratio, const char *than)
{
    double percent = 100 * (ratio - 1);
    if (fabs(percent) < 0.05)
        html_format(out, "as fast as %s", than);
    else if (percent >= 100)
        html_format(out, "%.2f times the time of %s", ratio, than);
    else
        html_format(out, "%.1f %% %s than %s", fabs(percent), percent > 0 ? "longer" : "shorter", than);
}

/* The finding where energy was to be saved: who used least of those who kept the deadline. */
static bool lede_energy(const struct chapter *chapter)
{
    static const double late_most = 0.05;
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    uint32_t least = chapter->count;
    for (uint32_t i = 0; i < chapter->count; i++) {
        const struct report_figures *figures = &chapter->all[chapter->order[i]];
        if (is_oracle(chapter, chapter->order[i]) || isnan(figures->joules) || figures->late > late_most)
            continue;
        if (least == chapter->count || figures->joules < chapter->all[chapter->order[least]].joules)
            least = i;
    }
    if (!run->objective || strcmp(run->objective, "energy") != 0 || least == chapter->count)
        return false;
    const struct report_figures *best = &chapter->all[chapter->order[least]];
    html_raw(out, "<p class=\"lede\">Energy was to be saved. <strong>");
    policy_name(chapter, chapter->order[least]);
    html_format(out, "</strong> used the least: %.4g J a frame in the mean", best->joules);
    if (run->deadline_ns > 0) {
        html_format(out, ", with %.1f %% of its frames later than the deadline of ", 100 * best->late);
        chart_ms(out, run->deadline_ns);
        html_format(out, " ms. Policies with more than %.0f %% of late frames do not count", 100 * late_most);
    }
    html_raw(out, ".</p>\n");
    return true;
}

/* The finding in two sentences. */
static void lede(const struct chapter *chapter)
{
    if (lede_energy(chapter))
        return;
    struct html *out = chapter->out;
    uint32_t first = 0;
    while (first < chapter->count && is_oracle(chapter, chapter->order[first]))
        first++;
    if (first == chapter->count || !chapter->all[chapter->order[first]].frames)
        return;
    const struct report_figures *best = &chapter->all[chapter->order[first]];
    html_raw(out, "<p class=\"lede\"><strong>");
    policy_name(chapter, chapter->order[first]);
    html_raw(out, chapter->count - first > 1 ? "</strong> was the fastest: " : "</strong> took ");
    chart_ms(out, best->mean_ns);
    html_raw(out, " ms a frame in the mean");
    if (!isnan(best->over_oracle)) {
        html_raw(out, ", ");
        more_or_less(out, best->over_oracle, "the oracle");
    }
    if (!isnan(best->over_best)) {
        html_raw(out, isnan(best->over_oracle) ? ", " : " and ");
        more_or_less(out, best->over_best, "the best single device");
    }
    html_raw(out, ". ");
    uint32_t next = first + 1;
    while (next < chapter->count && is_oracle(chapter, chapter->order[next]))
        next++;
    if (next < chapter->count && chapter->all[chapter->order[next]].frames) {
        html_raw(out, "Next came <strong>");
        policy_name(chapter, chapter->order[next]);
        html_format(out, "</strong>, whose frames took %.1f %% longer.",
                    100 * (chapter->all[chapter->order[next]].mean_ns / best->mean_ns - 1));
    }
    html_raw(out, "</p>\n");
}

/* What a reader must know before believing the rest. */
static void warnings(const struct chapter *chapter)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    html_raw(out, "<ul class=\"warnings\">");
    size_t begun = out->length;
    if (!run->finished)
        html_raw(
            out,
            "<li>The run had not come to its end when this page was made: it was interrupted, or is still going on."
            "</li>");
    for (uint32_t i = 0; i < chapter->count; i++) {
        const struct report_figures *figures = &chapter->all[chapter->order[i]];
        if (!figures->failed && figures->frames)
            continue;
        html_raw(out, "<li>");
        policy_name(chapter, chapter->order[i]);
        if (!figures->frames)
            html_raw(out, ": no frame that counts.</li>");
        else
            html_format(out, ": %zu frame%s failed and %s not in the figures.</li>", figures->failed,
                        figures->failed == 1 ? "" : "s", figures->failed == 1 ? "is" : "are");
    }
    for (size_t i = 0; i < run->disturbance_count; i++)
        if (!run->disturbances[i].real && !is_simulated(run)) {
            html_raw(out, "<li>Artificial disturbance: ");
            text_or(out, run->disturbances[i].text, "(no text)");
            html_raw(out, ". The delay is added by the lab, no other program ran.</li>");
        }
    if (run->foreign_bands)
        html_format(out, "<li>%zu bands name a device that the run does not have; they are left out.</li>",
                    run->foreign_bands);
    if (out->length == begun)
        html_raw(out, "<li class=\"none\">The run came to its end and no frame failed.</li>");
    html_raw(out, "</ul>\n");
}

/* Which columns have anything in them. */
struct columns {
    bool oracle, best, efficiency, settle, joules, stream, late;
};

static struct columns columns_of(const struct chapter *chapter)
{
    struct columns columns = {.stream = chapter->run->in_flight > 1, .late = chapter->run->deadline_ns > 0};
    for (uint32_t i = 0; i < chapter->count; i++) {
        const struct report_figures *all = &chapter->all[chapter->order[i]];
        columns.oracle |= !isnan(all->over_oracle) || !isnan(all->p50_over_oracle);
        columns.best |= !isnan(all->over_best) || !isnan(all->p50_over_best);
        columns.efficiency |= !isnan(all->efficiency);
        columns.joules |= !isnan(all->joules);
        for (uint32_t phase = 0; phase < chapter->run->phase_count; phase++)
            columns.settle |= !isnan(chapter->phases[chapter->order[i]][phase].settle);
    }
    return columns;
}

/* Whether no policy but the oracle has less. */
static bool is_least(const struct chapter *chapter, uint32_t policy, uint32_t phase, size_t field, double sign)
{
    double own = 0;
    bool least = chapter->count > 1 && !is_oracle(chapter, policy);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < chapter->count; i++) {
            uint32_t other = chapter->order[i];
            const struct report_figures *figures = phase == REPORT_ALL_PHASES ? &chapter->all[other]
                                                                              : &chapter->phases[other][phase];
            double value;
            memcpy(&value, (const char *)figures + field, sizeof value);
            if (!pass && other == policy)
                own = sign * value;
            else if (pass && !is_oracle(chapter, other) && !(own <= sign * value) && !isnan(value))
                least = false;
        }
    return least && !isnan(own);
}

static void headline_row(const struct chapter *chapter, const struct columns *columns, uint32_t policy, uint32_t phase)
{
    struct html *out = chapter->out;
    const struct report_figures *figures = phase == REPORT_ALL_PHASES ? &chapter->all[policy]
                                                                      : &chapter->phases[policy][phase];
#define LEAST(field) is_least(chapter, policy, phase, offsetof(struct report_figures, field), 1)
    cell(out, "count", (double)figures->frames, false);
    cell_ms(out, figures->mean_ns, LEAST(mean_ns));
    cell_ms(out, figures->p50_ns, LEAST(p50_ns));
    cell_ms(out, figures->p99_ns, LEAST(p99_ns));
    if (columns->oracle) {
        cell(out, "ratio", figures->over_oracle, LEAST(over_oracle));
        cell(out, "ratio", figures->p50_over_oracle, LEAST(p50_over_oracle));
    }
    if (columns->best) {
        cell(out, "ratio", figures->over_best, LEAST(over_best));
        cell(out, "ratio", figures->p50_over_best, LEAST(p50_over_best));
    }
    if (columns->efficiency)
        cell(out, "percent", figures->efficiency,
             is_least(chapter, policy, phase, offsetof(struct report_figures, efficiency), -1));
    cell(out, "one", figures->moves, false);
    cell(out, "percent", figures->last_to_first, LEAST(last_to_first));
    double settle = chapter->run->phase_count == 1 ? chapter->phases[policy][0].settle : figures->settle;
    if (columns->settle && isinf(settle))
        html_raw(out, "<td>never</td>");
    else if (columns->settle)
        cell(out, "count", settle, false);
    if (columns->stream)
        cell(out, "one", figures->per_second, false);
    if (columns->late)
        cell(out, "percent", figures->late, LEAST(late));
    if (columns->joules)
        cell(out, "joules", figures->joules, LEAST(joules));
#undef LEAST
    html_raw(out, "</tr>\n");
}

static void headline_table(const struct chapter *chapter)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    struct columns columns = columns_of(chapter);
    bool phases = run->phase_count > 1;
    const char *one = "<th scope=\"col\" rowspan=\"2\">", *three = "<th scope=\"colgroup\" colspan=\"3\">",
               *two = "<th scope=\"colgroup\" colspan=\"2\">",
               *pair = "<th scope=\"col\">mean</th><th scope=\"col\">p50</th>";
    bool dense = columns.stream || columns.late || columns.joules;
    table_begin(out,
                dense    ? (phases ? "headline phased dense" : "headline dense")
                : phases ? "headline phased"
                         : "headline",
                "Frame times by policy and phase, fastest policy first; the best of each column is bold");
    html_format(out, "<thead><tr>%sPolicy</th>", one);
    if (phases)
        html_format(out, "%sPhase</th>", one);
    html_format(out, "%sFrames</th>%sFrame time T, ms</th>", one, three);
    if (columns.oracle)
        html_format(out, "%sT ÷ T<sub>oracle</sub></th>", two);
    if (columns.best)
        html_format(out, "%sT ÷ T<sub>best single</sub></th>", two);
    if (columns.efficiency)
        html_format(out, "%sEfficiency</th>", one);
    html_format(out, "%sSplit<i>changes</i><i>per 100</i></th>%sFinish<i>spread</i></th>", one, one);
    if (columns.settle)
        html_format(out, "%sSettled<i>after</i><i>frames</i></th>", one);
    if (columns.stream)
        html_format(out, "%sFrames<i>per second</i></th>", one);
    if (columns.late)
        html_format(out, "%sLate</th>", one);
    if (columns.joules)
        html_format(out, "%sEnergy<i>J a frame</i></th>", one);
    html_format(out, "</tr><tr>%s<th scope=\"col\">p99</th>%s%s</tr></thead>\n", pair, columns.oracle ? pair : "",
                columns.best ? pair : "");
    for (uint32_t i = 0; i < chapter->count; i++) {
        uint32_t policy = chapter->order[i];
        html_format(out, "<tbody><tr class=\"whole\"><th scope=\"row\"%s", "");
        if (phases)
            html_format(out, " rowspan=\"%u\"", run->phase_count + 1);
        html_raw(out, ">");
        swatch(out, "p", chart_policy_colour(run, policy));
        policy_name(chapter, policy);
        html_raw(out, phases ? "</th><th scope=\"row\">all frames</th>" : "</th>");
        headline_row(chapter, &columns, policy, REPORT_ALL_PHASES);
        for (uint32_t phase = 0; phases && phase < run->phase_count; phase++) {
            html_raw(out, "<tr><th scope=\"row\">");
            text_or(out, run->phases[phase].text, "(unnamed)");
            html_raw(out, "</th>");
            headline_row(chapter, &columns, policy, phase);
        }
        html_raw(out, i + 1 < chapter->count ? "</tbody>\n" : "");
    }
    table_end(out);
    if (!columns.oracle)
        html_raw(out, "<p class=\"note\">No oracle was measured in this run: excess and regret are not known.</p>\n");
    if (!columns.efficiency)
        html_raw(out, "<p class=\"note\">No device was measured alone in this run: efficiency is not known.</p>\n");
    if (!columns.joules)
        html_format(out, "<p class=\"note\">%s: energy is not known.</p>\n",
                    run->meter          ? "The meter gave no reading"
                    : is_simulated(run) ? "The scenario models no energy"
                                        : "There was no energy meter");
}

typedef bool chart_fn(struct html *out, const struct chart_policies *about, bool narrow);

/* A chart with its heading, for wide pages and for narrow ones: the style shows one of them. Nothing if there is nothing to show. */
static void comparison(const struct chapter *chapter, const char *title, const char *text, chart_fn *chart)
{
    struct html drawings = {0}, *out = chapter->out;
    if (chart(&drawings, &chapter->charts, false) && chart(&drawings, &chapter->charts, true)) {
        html_format(out, "<section class=\"chart\"><h3>%s</h3><p>%s</p><div class=\"figure\">", title, text);
        html_append(out, &drawings);
        html_raw(out, "</div></section>\n");
    }
    out->failed |= drawings.failed;
    html_free(&drawings);
}

static void comparisons(const struct chapter *chapter)
{
    comparison(chapter, "How long frames took",
               "How often each frame time occurred, with the median and the time that 99 % of the frames kept to.",
               chart_times);
    comparison(
        chapter, "How much of the machine was used",
        "Efficiency, per cent: the speed of the median frame, of what all devices would reach together without loss, each"
        " as fast as it was alone in the same phase.",
        chart_efficiency);
    comparison(
        chapter, "What it cost not to know",
        "Regret: the sum of what each frame took longer than the oracle, in milliseconds. A flat line keeps up with the"
        " oracle, a falling one is ahead of it; ↑ marks one that leaves the chart.",
        chart_regret);
}

/* --- Each policy ----------------------------------------------------------------------------------------------------- */

static void reason_table(const struct chapter *chapter, uint32_t policy)
{
    struct html *out = chapter->out;
    struct report_reason_figures reasons[REPORT_REASONS];
    report_reasons(chapter->run, policy, reasons);
    bool predicted = false, rival = false;
    for (uint32_t reason = 0; reason < REPORT_REASONS; reason++) {
        predicted |= !isnan(reasons[reason].predicted_ns);
        rival |= !isnan(reasons[reason].rival_ns);
    }
    table_begin(out, "reasons", predicted ? "Reasons of the splits, predicted and measured" : "Reasons of the splits");
    html_raw(out, "<thead><tr><th scope=\"col\">Reason</th><th scope=\"col\">Frames</th>");
    if (predicted)
        html_raw(out, "<th scope=\"col\">Predicted<i>ms</i></th><th scope=\"col\">Measured<i>ms</i></th>"
                      "<th scope=\"col\">Off by<i>mean</i></th>");
    if (rival)
        html_raw(out, "<th scope=\"col\">Not taken<i>predicted ms</i></th>");
    html_raw(out, "</tr></thead><tbody>\n");
    for (uint32_t reason = 0; reason < REPORT_REASONS; reason++) {
        if (!reasons[reason].frames)
            continue;
        html_raw(out, "<tr><th scope=\"row\">");
        html_text(out, report_reason(chapter->source, reason));
        html_raw(out, "</th>");
        cell(out, "count", (double)reasons[reason].frames, false);
        if (predicted) {
            cell_ms(out, reasons[reason].predicted_ns, false);
            cell_ms(out, reasons[reason].measured_ns, false);
            cell(out, "percent", reasons[reason].error, false);
        }
        if (rival)
            cell_ms(out, reasons[reason].rival_ns, false);
        html_raw(out, "</tr>\n");
    }
    table_end(out);
}

static void share_table(const struct chapter *chapter, uint32_t policy)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    bool phases = run->phase_count > 1, many = run->group_count < run->device_count;
    if (many)
        html_format(out, "<details><summary>Share of the rows of each of the %u devices</summary>", run->device_count);
    table_begin(out, "shares", "Share of the rows of each device");
    html_raw(out, "<thead><tr><th scope=\"col\">Device</th>");
    for (uint32_t phase = 0; phases && phase < run->phase_count; phase++) {
        html_raw(out, "<th scope=\"col\">");
        text_or(out, run->phases[phase].text, "(unnamed)");
        html_raw(out, "</th>");
    }
    html_raw(out, "<th scope=\"col\">All frames</th></tr></thead><tbody>\n");
    for (uint32_t device = 0; device < run->device_count; device++) {
        html_raw(out, "<tr><th scope=\"row\">");
        swatch(out, "d", chart_group_colour(run->devices[device].group));
        chart_device_name(out, run, device, 80);
        html_raw(out, "</th>");
        for (uint32_t phase = 0; phases && phase < run->phase_count; phase++)
            cell(out, "percent", chapter->phases[policy][phase].share[device], false);
        cell(out, "percent", chapter->all[policy].share[device], false);
        html_raw(out, "</tr>\n");
    }
    table_end(out);
    if (many)
        html_raw(out, "</details>");
}

static bool policy_section(const struct chapter *chapter, uint32_t policy)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    const struct report_session *shown = NULL;
    size_t sessions = 0;
    for (size_t i = 0; i < run->session_count; i++)
        if (run->sessions[i].policy == policy && run->sessions[i].frame_count) {
            shown = shown ? shown : &run->sessions[i];
            sessions++;
        }
    if (!shown)
        return true;
    html_raw(out, "<section class=\"policy\"><h3>");
    swatch(out, "p", chart_policy_colour(run, policy));
    policy_name(chapter, policy);
    html_raw(out, "</h3>");
    if (sessions > 1)
        html_format(out, "<p class=\"note\">The charts show the first of %zu repeats, the tables all of them.</p>",
                    sessions);
    html_raw(out, "<ul class=\"key\">");
    for (uint32_t group = 0; group < run->group_count; group++) {
        html_raw(out, "<li>");
        swatch(out, "d", chart_group_colour(group));
        chart_group_name(out, run, group, 80);
        html_raw(out, "</li>");
    }
    html_raw(out, "</ul><div class=\"figure\">");
    bool good = chart_session(out, &chapter->charts, shown, false) && chart_session(out, &chapter->charts, shown, true);
    html_raw(out, run->phase_count > 4 ? "</div><div class=\"pair stacked\">" : "</div><div class=\"pair\">");
    reason_table(chapter, policy);
    share_table(chapter, policy);
    html_raw(out, "</div></section>\n");
    return good;
}

/* --- The machine ----------------------------------------------------------------------------------------------------- */

static void fact(struct html *out, const char *name, const char *text)
{
    if (!text || !*text)
        return;
    html_format(out, "<div><dt>%s</dt><dd>", name);
    html_text(out, text);
    html_raw(out, "</dd></div>");
}

static void facts(const struct chapter *chapter)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    html_raw(out, "<dl class=\"facts\">");
    fact(out, "Host", run->host);
    fact(out, "System", run->system);
    fact(out, "Started", run->started_at);
    fact(out, "Command", run->command);
    fact(out, "Recorded by", run->version);
    fact(out, is_simulated(run) ? "Scenario" : "Kernel", run->kernel);
    html_raw(out, "<div><dt>Frame</dt><dd>");
    whole_number(out, run->columns);
    html_raw(out, " × ");
    whole_number(out, run->rows);
    html_raw(out, ", granule ");
    whole_number(out, run->granule);
    html_raw(out, " rows</dd></div><div><dt>Frames</dt><dd>");
    whole_number(out, run->frames);
    html_raw(out, " of each policy, ");
    whole_number(out, run->in_flight);
    html_raw(out, " under way at once</dd></div><div><dt>Objective</dt><dd>");
    text_or(out, run->objective, "–");
    if (run->deadline_ns > 0) {
        html_raw(out, ", deadline ");
        chart_ms(out, run->deadline_ns);
        html_raw(out, " ms");
    }
    html_raw(out, "</dd></div><div><dt>Energy meter</dt><dd>");
    text_or(out, run->meter, "none");
    html_raw(out, "</dd></div></dl>\n");
}

static void device_table(const struct chapter *chapter)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    table_begin(out, "words", "Devices");
    html_raw(out, "<thead><tr><th scope=\"col\">Device</th><th scope=\"col\">Type</th><th scope=\"col\">Platform</th>"
                  "<th scope=\"col\">Driver</th><th scope=\"col\">Memory</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < run->device_count; i++) {
        const struct report_device *device = &run->devices[i];
        html_raw(out, "<tr><th scope=\"row\">");
        swatch(out, "d", chart_group_colour(run->devices[i].group));
        chart_device_name(out, run, i, 80);
        const char *const texts[] = {device->type, device->platform, device->driver, device->mode};
        html_raw(out, "</th>");
        for (int k = 0; k < 4; k++) {
            html_raw(out, "<td>");
            text_or(out, texts[k], "–");
            html_raw(out, "</td>");
        }
        html_raw(out, "</tr>\n");
    }
    table_end(out);
}

static void reference_table(const struct chapter *chapter)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    if (!run->phase_count)
        return;
    /* So many columns would be no table any more; the device table has what each is. */
    uint32_t columns = run->device_count > REPORT_FEW_DEVICES ? 0 : run->device_count;
    table_begin(out, "references", "Phases and what the policies are held to: median frame times, ms");
    html_raw(out, "<thead><tr><th scope=\"col\">Phase</th><th scope=\"col\">Frames</th>");
    for (uint32_t device = 0; device < columns; device++) {
        html_raw(out, "<th scope=\"col\">");
        chart_device_name(out, run, device, 80);
        html_raw(out, "<i>alone</i></th>");
    }
    html_raw(
        out,
        "<th scope=\"col\">Best single</th><th scope=\"col\">Oracle</th><th scope=\"col\">Its shares</th><th scope=\"col\">Without loss</th></tr></thead>"
        "<tbody>\n");
    for (uint32_t i = 0; i < run->phase_count; i++) {
        const struct report_phase *phase = &run->phases[i];
        html_raw(out, "<tr><th scope=\"row\">");
        text_or(out, phase->text, "(unnamed)");
        html_raw(out, "</th><td>");
        whole_number(out, phase->first_frame);
        html_raw(out, "–");
        whole_number(out, phase->end_frame - 1);
        html_raw(out, "</td>");
        for (uint32_t device = 0; device < columns; device++)
            cell_ms(out, phase->solo_ns[device], false);
        cell_ms(out, phase->best_ns, false);
        cell_ms(out, phase->oracle_ns, false);
        html_raw(out, "<td>");
        text_or(out, phase->oracle_ratios, "–");
        html_raw(out, "</td>");
        cell_ms(out, phase->ideal_ns, false);
        html_raw(out, "</tr>\n");
    }
    table_end(out);
}

static void disturbance_table(const struct chapter *chapter)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    if (!run->disturbance_count) {
        html_raw(out, is_simulated(run) ? "" : "<p class=\"note\">Nothing was disturbed on purpose.</p>\n");
        return;
    }
    table_begin(out, "words", "Disturbances");
    html_raw(out,
             "<thead><tr><th scope=\"col\">Disturbance</th><th scope=\"col\">Kind</th><th scope=\"col\">Frames</th>"
             "<th scope=\"col\">Real</th><th scope=\"col\">Note</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < run->disturbance_count; i++) {
        const struct report_disturbance *disturbance = &run->disturbances[i];
        html_raw(out, "<tr><th scope=\"row\">");
        text_or(out, disturbance->text, "–");
        html_raw(out, "</th><td>");
        text_or(out, disturbance->kind, "–");
        html_raw(out, "</td><td>");
        whole_number(out, disturbance->first_frame);
        html_raw(out, "–");
        whole_number(out, disturbance->end_frame - 1);
        html_raw(out, disturbance->real ? "</td><td>real</td><td>" : "</td><td>artificial delay</td><td>");
        text_or(out, disturbance->note, "–");
        html_raw(out, "</td></tr>\n");
    }
    table_end(out);
}

static void definition(struct html *out, const char *term, const char *text)
{
    html_format(out, "<div><dt>%s</dt><dd>%s</dd></div>", term, text);
}

static void definitions(const struct chapter *chapter)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    html_raw(out, "<dl class=\"definitions\">");
    definition(
        out, "T",
        "Wall time of a frame, from its start until its last band is done. Frames that failed are left out. p50 and p99"
        " are the least times that 50 and 99 % of the frames kept to.");
    definition(out, "T<sub>oracle</sub>",
               run->oracle_by_frame
                   ? "The best fixed split of the best set of devices, of the same frame and under the same chance."
                   : "The best static split that a sweep found, in the same phase of the same run.");
    definition(out, "T<sub>best single</sub>", "The fastest device alone, in the same phase of the same run.");
    definition(
        out, "Mean and p50",
        "Means are held against means and medians against medians, since a few frames that take many times as long"
        " move every mean. Over all frames, the medians of the phases are summed, each as often as it has frames.");
    definition(
        out, "Efficiency",
        "(1 ÷ T) ÷ Σ (1 ÷ T<sub>d</sub>), of the medians T with the policy and T<sub>d</sub> of device d alone.");
    definition(out, "Finish spread",
               "Mean of (last − first) ÷ last over the devices that had rows: zero where they finish together.");
    definition(out, "Settled",
               "Frames of the phase until one was within 5 % of the oracle, and the next four with it in the median.");
    definition(out, "Split change", "A frame whose planned bands are not those of the frame before.");
    if (run->deadline_ns > 0)
        definition(out, "Late", "Share of the frames that took longer than the deadline.");
    html_raw(out, "</dl>\n");
    if (run->solo_sessions || run->sweep_sessions)
        html_format(
            out,
            "<p class=\"note\">Measured in the same run for comparison: %zu sessions of one device alone, %zu of the"
            " sweep.</p>\n",
            run->solo_sessions, run->sweep_sessions);
    if (run->in_flight > 1)
        html_raw(
            out,
            "<p class=\"note\">Several frames were under way at once: T is the part of a frame's wall time in which no"
            " earlier frame was under way, what a stream of such frames pays.</p>\n");
}

/* --- The page -------------------------------------------------------------------------------------------------------- */

static void run_title(struct html *out, const struct report_run *run)
{
    text_or(out, run->kernel, "Session");
    if (run->columns > 0 && run->rows > 0) {
        html_raw(out, ", ");
        if (run->columns > 1) {
            whole_number(out, run->columns);
            html_raw(out, " × ");
            whole_number(out, run->rows);
        } else {
            whole_number(out, run->rows);
            html_raw(out, " rows");
        }
    }
    html_format(out, ", %u device%s", run->device_count, run->device_count == 1 ? "" : "s");
}

static void run_subtitle(struct html *out, const struct report_run *run)
{
    uint32_t policies = 0; /* without the oracle, which is none that one could use */
    for (uint32_t i = 0; i < run->policy_count; i++)
        policies += strcmp(run->policies[i], "oracle") != 0;
    html_raw(out, "<p class=\"sub\">");
    html_format(out, "<span class=\"badge\">%s</span> %u polic%s, ", is_simulated(run) ? "simulation" : "measured",
                policies, policies == 1 ? "y" : "ies");
    whole_number(out, run->frames);
    html_raw(out, " frames each");
    if (run->host && *run->host && !is_simulated(run)) {
        html_raw(out, ", on ");
        html_text(out, run->host);
    }
    if (run->started_at && *run->started_at) {
        html_raw(out, ", ");
        html_text(out, run->started_at);
    }
    html_raw(out, "</p>\n");
}

static void sort_policies(struct chapter *chapter)
{
    for (uint32_t i = 0; i < chapter->run->policy_count; i++) {
        double mean = chapter->all[i].frames ? chapter->all[i].mean_ns : INFINITY;
        uint32_t at = chapter->count++;
        for (; at > 0; at--) {
            const struct report_figures *before = &chapter->all[chapter->order[at - 1]];
            if ((before->frames ? before->mean_ns : INFINITY) <= mean)
                break;
            chapter->order[at] = chapter->order[at - 1];
        }
        chapter->order[at] = i;
    }
}

static bool run_chapter(struct html *out, const struct report_source *source, const struct report_run *run)
{
    struct chapter chapter = {.out = out, .source = source, .run = run};
    chapter.all = calloc(run->policy_count + 1, sizeof *chapter.all);
    chapter.phases = calloc(run->policy_count + 1, sizeof *chapter.phases);
    bool good = chapter.all && chapter.phases;
    for (uint32_t policy = 0; good && policy < run->policy_count; policy++) {
        good = report_figures(run, policy, REPORT_ALL_PHASES, &chapter.all[policy]);
        for (uint32_t phase = 0; good && phase < run->phase_count; phase++)
            good = report_figures(run, policy, phase, &chapter.phases[policy][phase]);
    }
    if (!good)
        goto done;
    sort_policies(&chapter);
    chapter.charts = (struct chart_policies){
        .source = source,
        .run = run,
        .count = chapter.count,
        .policies = chapter.order,
        .all = chapter.all,
        .phases = (const struct report_figures(*)[REPORT_PHASES_MAX])chapter.phases};
    html_format(out, "<article id=\"run-%lld\"><header>", (long long)run->number);
    if (source->run_count > 1)
        html_format(out, "<p class=\"kicker\">Run %lld</p>", (long long)run->number);
    html_raw(out, "<h2>");
    run_title(out, run);
    html_raw(out, "</h2>\n");
    run_subtitle(out, run);
    html_raw(out, "</header>\n");
    if (run->frame_end < 1) {
        html_raw(out, "<p class=\"lede\">No frame of a policy was recorded in this run.</p>\n");
    } else {
        lede(&chapter);
        headline_table(&chapter);
        warnings(&chapter);
        comparisons(&chapter);
        html_raw(out, "<h2 class=\"part\">What each policy did, and why</h2>\n");
        /* The oracle is no policy that one could use: it comes last. */
        for (uint32_t i = 0; good && i < 2 * chapter.count; i++)
            if (is_oracle(&chapter, chapter.order[i % chapter.count]) == (i >= chapter.count))
                good = policy_section(&chapter, chapter.order[i % chapter.count]);
    }
    html_raw(out, "<h2 class=\"part\">The machine, and how it was measured</h2>\n");
    facts(&chapter);
    device_table(&chapter);
    reference_table(&chapter);
    disturbance_table(&chapter);
    definitions(&chapter);
    html_raw(out, "</article>\n");
done:
    free(chapter.all);
    free(chapter.phases);
    return good;
}

/* --- All runs --------------------------------------------------------------------------------------------------------- */

enum { OVERVIEW_POLICIES = 12 };

/* The policies of all runs but the oracle, in the order in which they first occur. Returns their number. */
static size_t all_policies(const struct report_source *source, const char *names[OVERVIEW_POLICIES])
{
    size_t count = 0;
    for (size_t r = 0; r < source->run_count; r++)
        for (uint32_t p = 0; p < source->runs[r].policy_count; p++) {
            const char *name = source->runs[r].policies[p];
            size_t i = 0;
            while (i < count && strcmp(names[i], name) != 0)
                i++;
            if (i == count && count < OVERVIEW_POLICIES && strcmp(name, "oracle") != 0)
                names[count++] = name;
        }
    return count;
}

static bool overview_row(struct html *out, const struct report_run *run, const char *const *names, size_t count)
{
    double ratios[OVERVIEW_POLICIES], least = INFINITY;
    for (size_t i = 0; i < count; i++) {
        struct report_figures figures = {.over_oracle = NAN};
        for (uint32_t policy = 0; policy < run->policy_count; policy++)
            if (!strcmp(run->policies[policy], names[i]) && !report_figures(run, policy, REPORT_ALL_PHASES, &figures))
                return false;
        ratios[i] = figures.over_oracle;
        least = fmin(least, ratios[i]);
    }
    html_format(out, "<tr><th scope=\"row\"><a href=\"#run-%lld\">", (long long)run->number);
    run_title(out, run);
    html_raw(out, "</a></th>");
    for (size_t i = 0; i < count; i++)
        cell(out, "ratio", ratios[i], ratios[i] <= least);
    html_raw(out, "</tr>\n");
    return true;
}

static bool overview(struct html *out, const struct report_source *source)
{
    const char *names[OVERVIEW_POLICIES];
    size_t count = all_policies(source, names);
    html_raw(out, "<nav aria-label=\"Runs\">");
    table_begin(out, "overview", "Mean frame time over the oracle's, by run and policy; the best of each run is bold");
    html_raw(out, "<thead><tr><th scope=\"col\">Run</th>");
    for (size_t i = 0; i < count; i++) {
        html_raw(out, "<th scope=\"col\">");
        html_text_cut(out, names[i], 20);
        html_raw(out, "</th>");
    }
    html_raw(out, "</tr></thead><tbody>\n");
    bool good = true;
    for (size_t i = 0; good && i < source->run_count; i++)
        good = overview_row(out, &source->runs[i], names, count);
    table_end(out);
    html_raw(out, "</nav>");
    return good;
}

static const char *style_sheet(void)
{
    for (const struct lab_text *text = lab_texts; text->name; text++)
        if (!strcmp(text->name, "lab_report.css"))
            return text->text;
    return "";
}

bool report_page(const struct report_source *source, const char *name, struct html *out)
{
    html_raw(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head><meta charset=\"utf-8\"/>"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
        "<meta name=\"color-scheme\" content=\"light dark\"/>"
        "<meta name=\"generator\" content=\"cox-lab ");
    html_text(out, cox_version());
    html_raw(out, "\"/><title>");
    html_text(out, name);
    html_raw(out, " · cox-lab report</title>\n<style>\n");
    html_raw(out, style_sheet());
    html_raw(
        out,
        "</style></head>\n<body><main>\n<header class=\"masthead\"><p class=\"kicker\">Coxswain lab report</p><h1>");
    html_text(out, name);
    html_raw(out, "</h1>");
    bool good = source->run_count < 2 || overview(out, source);
    html_raw(out, "</header>\n");
    for (size_t i = 0; good && i < source->run_count; i++)
        good = run_chapter(out, source, &source->runs[i]);
    html_format(out,
                "<footer><p>Made by cox-lab %s from the session database. The page loads nothing and runs nothing.</p>"
                "</footer>\n</main></body></html>\n",
                cox_version());
    return good && !out->failed;
}
