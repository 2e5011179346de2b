/* One policy: its session over time, the reasons of its splits, the shares of the devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "chapter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void reason_table(const struct chapter *chapter, uint32_t policy)
{
    static const char *const first[] = {"Reason", "Frames", NULL};
    static const char *const times[] = {"Predicted<i>ms</i>", "Measured<i>ms</i>",
                                        "Error<i>mean</i>", NULL};
    static const char *const last[] = {"Alternative<i>predicted ms</i>", NULL};
    struct html *out = chapter->out;
    struct report_reason_figures reasons[REPORT_REASONS];
    bool predicted = false, alternative = false;
    const char *caption = "Reasons of the splits";

    report_reasons(chapter->run, policy, reasons);
    for (uint32_t reason = 0; reason < REPORT_REASONS; reason++) {
        predicted |= !isnan(reasons[reason].predicted_ns);
        alternative |= !isnan(reasons[reason].rejected_ns);
    }

    if (predicted)
        caption = "Reasons of the splits, predicted and measured";
    table_begin(out, "reasons", caption);
    html_raw(out, "<thead><tr>");
    table_head(out, first);
    if (predicted)
        table_head(out, times);
    if (alternative)
        table_head(out, last);
    html_raw(out, "</tr></thead><tbody>\n");

    for (uint32_t reason = 0; reason < REPORT_REASONS; reason++) {
        const struct report_reason_figures *figures = &reasons[reason];
        if (!figures->frames)
            continue;

        table_row_begin(out, report_reason(chapter->source, reason));
        table_cell(out, CELL_COUNT, (double)figures->frames, false);
        if (predicted) {
            table_cell_ms(out, figures->predicted_ns, false);
            table_cell_ms(out, figures->measured_ns, false);
            table_cell(out, CELL_PERCENT, figures->error, false);
        }
        if (alternative)
            table_cell_ms(out, figures->rejected_ns, false);
        html_raw(out, "</tr>\n");
    }
    table_end(out);
}

static void share_table(const struct chapter *chapter, uint32_t policy)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    const bool many = run->group_count < run->device_count;
    uint32_t phases = 0;

    if (run->phase_count > 1)
        phases = run->phase_count;
    if (many)
        html_format(out, "<details><summary>Share of the rows of each of the %u devices</summary>",
                    run->device_count);
    table_begin(out, "shares", "Share of the rows of each device");
    html_raw(out, "<thead><tr><th scope=\"col\">Device</th>");
    for (uint32_t phase = 0; phase < phases; phase++) {
        html_raw(out, "<th scope=\"col\">");
        words_or(out, run->phases[phase].text, "(unnamed)");
        html_raw(out, "</th>");
    }
    html_raw(out, "<th scope=\"col\">All frames</th></tr></thead><tbody>\n");

    for (uint32_t device = 0; device < run->device_count; device++) {
        chapter_device_row(chapter, device);
        for (uint32_t phase = 0; phase < phases; phase++)
            table_cell(out, CELL_PERCENT, chapter->phases[policy][phase].share[device], false);
        table_cell(out, CELL_PERCENT, chapter->all[policy].share[device], false);
        html_raw(out, "</tr>\n");
    }

    table_end(out);
    if (many)
        html_raw(out, "</details>");
}

/* The colours of the devices in the charts below. */
static void colour_key(struct html *out, const struct report_run *run)
{
    html_raw(out, "<ul class=\"key\">");
    for (uint32_t group = 0; group < run->group_count; group++) {
        html_raw(out, "<li>");
        words_swatch(out, "d", chart_group_colour(group));
        chart_group_name(out, run, group, 80);
        html_raw(out, "</li>");
    }
    html_raw(out, "</ul>");
}

bool chapter_policy_part(const struct chapter *chapter, uint32_t policy)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    const struct report_session *shown = NULL; /* the first one */
    size_t sessions = 0;

    for (size_t i = run->session_count; i-- > 0;)
        if (run->sessions[i].policy == policy && run->sessions[i].frame_count) {
            shown = &run->sessions[i];
            sessions++;
        }
    if (!shown)
        return true;

    html_raw(out, "<section class=\"policy\"><h3>");
    words_swatch(out, "p", chart_policy_colour(run, policy));
    chapter_policy_name(chapter, policy);
    html_raw(out, "</h3>");
    if (sessions > 1)
        html_format(out,
                    "<p class=\"note\">The charts show the first of %zu repeats, the tables all of"
                    " them.</p>",
                    sessions);

    colour_key(out, run);
    html_raw(out, "<div class=\"figure\">");
    bool good = chart_session(out, &chapter->charts, shown, false) &&
                chart_session(out, &chapter->charts, shown, true) &&
                chapter_session_gauges(chapter, shown);
    html_format(out, "</div><div class=\"pair%s\">", run->phase_count > 4 ? " stacked" : "");
    reason_table(chapter, policy);
    share_table(chapter, policy);
    html_raw(out, "</div></section>\n");
    return good;
}
