/* The machine, and how it was measured.
 * SPDX-License-Identifier: Apache-2.0 */
#include "chapter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    fact(out, run_is_simulated(run) ? "Scenario" : "Kernel", run->kernel);
    fact(out, "Ratio", run->ratio);
    fact(out, "Reserved core", run->reserved_core);
    html_raw(out, "<div><dt>Frame</dt><dd>");
    words_whole(out, run->columns);
    html_raw(out, " × ");
    words_whole(out, run->rows);
    html_raw(out, ", granule ");
    words_whole(out, run->granule);
    html_raw(out, " rows");
    for (uint32_t p = 0; p < run->pass_count && run->pass_count > 1; p++) {
        html_raw(out, p ? ", " : "; its passes: ");
        chart_pass_name(out, run, p, 40);
    }
    html_raw(out, "</dd></div><div><dt>Frames</dt><dd>");
    words_whole(out, run->frames);
    html_raw(out, " of each policy, ");
    words_whole(out, run->in_flight);
    html_raw(out, " under way at once</dd></div><div><dt>Objective</dt><dd>");
    words_or(out, run->objective, "–");
    if (run->deadline_ns > 0) {
        html_raw(out, ", deadline ");
        chart_ms(out, run->deadline_ns);
        html_raw(out, " ms");
    }
    html_raw(out, "</dd></div><div><dt>Energy meter</dt><dd>");
    words_or(out, run->meter, "none");
    if (isfinite(run->foreign_load))
        html_format(out,
                    "</dd></div><div><dt>Other programs</dt><dd>used %.2f processors in the mean%s",
                    run->foreign_load, run->busy ? ": the machine was busy" : "");
    html_raw(out, "</dd></div></dl>\n");
}

static void device_table(const struct chapter *chapter)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    table_begin(out, "words", "Devices");
    html_raw(
        out,
        "<thead><tr><th scope=\"col\">Device</th><th scope=\"col\">Type</th><th scope=\"col\">Platform</th>"
        "<th scope=\"col\">Driver</th><th scope=\"col\">Memory</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < run->device_count; i++) {
        const struct report_device *device = &run->devices[i];
        html_raw(out, "<tr><th scope=\"row\">");
        words_swatch(out, "d", chart_group_colour(run->devices[i].group));
        chart_device_name(out, run, i, 80);
        const char *const texts[] = {device->type, device->platform, device->driver, device->mode};
        html_raw(out, "</th>");
        for (int k = 0; k < 4; k++) {
            html_raw(out, "<td>");
            words_or(out, texts[k], "–");
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
    table_begin(out, "references",
                "Phases and what the policies are held to: median frame times, ms");
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
        words_or(out, phase->text, "(unnamed)");
        html_raw(out, "</th><td>");
        words_whole(out, phase->first_frame);
        html_raw(out, "–");
        words_whole(out, phase->end_frame - 1);
        html_raw(out, "</td>");
        for (uint32_t device = 0; device < columns; device++)
            table_cell_ms(out, phase->solo_ns[device], false);
        table_cell_ms(out, phase->best_ns, false);
        table_cell_ms(out, phase->oracle_ns, false);
        html_raw(out, "<td>");
        words_or(out, phase->oracle_ratios, "–");
        html_raw(out, "</td>");
        table_cell_ms(out, phase->ideal_ns, false);
        html_raw(out, "</tr>\n");
    }
    table_end(out);
}

static void disturbance_table(const struct chapter *chapter)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    if (!run->disturbance_count) {
        html_raw(out, run_is_simulated(run)
                          ? ""
                          : "<p class=\"note\">Nothing was disturbed on purpose.</p>\n");
        return;
    }
    table_begin(out, "words", "Disturbances");
    html_raw(
        out,
        "<thead><tr><th scope=\"col\">Disturbance</th><th scope=\"col\">Kind</th><th scope=\"col\">Frames</th>"
        "<th scope=\"col\">Real</th><th scope=\"col\">Note</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < run->disturbance_count; i++) {
        const struct report_disturbance *disturbance = &run->disturbances[i];
        html_raw(out, "<tr><th scope=\"row\">");
        words_or(out, disturbance->text, "–");
        html_raw(out, "</th><td>");
        words_or(out, disturbance->kind, "–");
        html_raw(out, "</td><td>");
        words_whole(out, disturbance->first_frame);
        html_raw(out, "–");
        words_whole(out, disturbance->end_frame - 1);
        html_raw(out, disturbance->real ? "</td><td>real</td><td>"
                                        : "</td><td>artificial delay</td><td>");
        words_or(out, disturbance->note, "–");
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
    definition(
        out, "T<sub>oracle</sub>",
        run->oracle_by_frame
            ? "The best fixed split of the best set of devices, of the same frame and under the same chance."
            : "The best static split that a sweep found, in the same phase of the same run.");
    definition(out, "T<sub>best single</sub>",
               "The fastest device alone, in the same phase of the same run.");
    definition(
        out, "Mean and p50",
        "Means are held against means and medians against medians, since a few frames that take many times as long"
        " move every mean. Over all frames, the medians of the phases are summed, each as often as it has frames.");
    definition(
        out, "Efficiency",
        "(1 ÷ T) ÷ Σ (1 ÷ T<sub>d</sub>), of the medians T with the policy and T<sub>d</sub> of device d alone.");
    definition(
        out, "Finish spread",
        "Mean of (last − first) ÷ last over the devices that had rows: zero where they finish together.");
    definition(
        out, "Settled",
        "Frames of the phase until one was near the oracle, and with it three quarters of the eight that begin with it."
        " Near is within 5 % of it, or what nine of ten of its own frames kept to.");
    definition(out, "Split change",
               "A frame whose planned bands are not those of the frame before.");
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

void chapter_machine(const struct chapter *chapter)
{
    facts(chapter);
    device_table(chapter);
    reference_table(chapter);
    disturbance_table(chapter);
    definitions(chapter);
}
