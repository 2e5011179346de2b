/* What each policy did, and why.
 * SPDX-License-Identifier: Apache-2.0 */
#include "chapter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void reason_table(const struct chapter *chapter, uint32_t policy)
{
    struct html *out = chapter->out;
    struct report_reason_figures reasons[REPORT_REASONS];
    report_reasons(chapter->run, policy, reasons);
    bool predicted = false, alternative = false;
    for (uint32_t reason = 0; reason < REPORT_REASONS; reason++) {
        predicted |= !isnan(reasons[reason].predicted_ns);
        alternative |= !isnan(reasons[reason].alternative_ns);
    }
    table_begin(out, "reasons",
                predicted ? "Reasons of the splits, predicted and measured"
                          : "Reasons of the splits");
    html_raw(out, "<thead><tr><th scope=\"col\">Reason</th><th scope=\"col\">Frames</th>");
    if (predicted)
        html_raw(out,
                 "<th scope=\"col\">Predicted<i>ms</i></th><th scope=\"col\">Measured<i>ms</i></th>"
                 "<th scope=\"col\">Off by<i>mean</i></th>");
    if (alternative)
        html_raw(out, "<th scope=\"col\">Not taken<i>predicted ms</i></th>");
    html_raw(out, "</tr></thead><tbody>\n");
    for (uint32_t reason = 0; reason < REPORT_REASONS; reason++) {
        if (!reasons[reason].frames)
            continue;
        html_raw(out, "<tr><th scope=\"row\">");
        html_text(out, report_reason(chapter->source, reason));
        html_raw(out, "</th>");
        table_cell(out, CELL_COUNT, (double)reasons[reason].frames, false);
        if (predicted) {
            table_cell_ms(out, reasons[reason].predicted_ns, false);
            table_cell_ms(out, reasons[reason].measured_ns, false);
            table_cell(out, CELL_PERCENT, reasons[reason].error, false);
        }
        if (alternative)
            table_cell_ms(out, reasons[reason].alternative_ns, false);
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
        html_format(out, "<details><summary>Share of the rows of each of the %u devices</summary>",
                    run->device_count);
    table_begin(out, "shares", "Share of the rows of each device");
    html_raw(out, "<thead><tr><th scope=\"col\">Device</th>");
    for (uint32_t phase = 0; phases && phase < run->phase_count; phase++) {
        html_raw(out, "<th scope=\"col\">");
        words_or(out, run->phases[phase].text, "(unnamed)");
        html_raw(out, "</th>");
    }
    html_raw(out, "<th scope=\"col\">All frames</th></tr></thead><tbody>\n");
    for (uint32_t device = 0; device < run->device_count; device++) {
        html_raw(out, "<tr><th scope=\"row\">");
        words_swatch(out, "d", chart_group_colour(run->devices[device].group));
        chart_device_name(out, run, device, 80);
        html_raw(out, "</th>");
        for (uint32_t phase = 0; phases && phase < run->phase_count; phase++)
            table_cell(out, CELL_PERCENT, chapter->phases[policy][phase].share[device], false);
        table_cell(out, CELL_PERCENT, chapter->all[policy].share[device], false);
        html_raw(out, "</tr>\n");
    }
    table_end(out);
    if (many)
        html_raw(out, "</details>");
}

bool chapter_policy_part(const struct chapter *chapter, uint32_t policy)
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
    words_swatch(out, "p", chart_policy_colour(run, policy));
    chapter_policy_name(chapter, policy);
    html_raw(out, "</h3>");
    if (sessions > 1)
        html_format(
            out,
            "<p class=\"note\">The charts show the first of %zu repeats, the tables all of them.</p>",
            sessions);
    html_raw(out, "<ul class=\"key\">");
    for (uint32_t group = 0; group < run->group_count; group++) {
        html_raw(out, "<li>");
        words_swatch(out, "d", chart_group_colour(group));
        chart_group_name(out, run, group, 80);
        html_raw(out, "</li>");
    }
    html_raw(out, "</ul><div class=\"figure\">");
    bool good = chart_session(out, &chapter->charts, shown, false) &&
                chart_session(out, &chapter->charts, shown, true) &&
                chapter_session_gauges(chapter, shown);
    html_raw(out, run->phase_count > 4 ? "</div><div class=\"pair stacked\">"
                                       : "</div><div class=\"pair\">");
    reason_table(chapter, policy);
    share_table(chapter, policy);
    html_raw(out, "</div></section>\n");
    return good;
}
