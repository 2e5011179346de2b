/* The machine: devices, references, disturbances, and how it was measured.
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

/* What the run was measured with. */
static void provenance(const struct chapter *chapter)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;

    fact(out, "Recorded by", run->version);
    fact(out, "Commit", run->commit);
    if (run->build_type && run->compiler) {
        html_raw(out, "<div><dt>Build</dt><dd>");
        html_text(out, run->build_type);
        html_raw(out, ", ");
        html_text(out, run->compiler);
        html_raw(out, "</dd></div>");
    }
    fact(out, "Build flags", run->build_flags);
    fact(out, "Program, SHA-256", run->program_sha256);
    fact(out, "Library, SHA-256", run->library_sha256);
    fact(out, "Kernel, SHA-256", run->kernel_sha256);
    fact(out, "Scenario, SHA-256", run->scenario_sha256);
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
    provenance(chapter);
    fact(out, run_is_simulated(run) ? "Scenario" : "Kernel", run->kernel);
    fact(out, "Ratio", run->ratio);
    fact(out, "Reserved core", run->reserved_core);

    html_raw(out, "<div><dt>Frame</dt><dd>");
    words_whole(out, run->columns);
    html_raw(out, " × ");
    words_whole(out, run->rows);
    html_raw(out, ", granule ");
    words_whole(out, run->row_alignment);
    html_raw(out, " rows");
    for (uint32_t p = 0; p < run->pass_count && run->pass_count > 1; p++) {
        if (p)
            html_raw(out, ", ");
        else
            html_raw(out, "; its passes: ");
        chart_pass_name(out, run, p, 40);
    }

    html_raw(out, "</dd></div><div><dt>Frames</dt><dd>");
    words_whole(out, run->frames);
    html_raw(out, " of each policy, ");
    words_whole(out, run->in_flight);
    html_raw(out, " in flight</dd></div><div><dt>Objective</dt><dd>");
    words_or(out, run->objective, "–");
    if (run->deadline_ns > 0) {
        html_raw(out, ", deadline ");
        chart_ms(out, run->deadline_ns);
        html_raw(out, " ms");
    }

    html_raw(out, "</dd></div><div><dt>Energy meter</dt><dd>");
    words_or(out, run->meter, "none");
    if (isfinite(run->foreign_load))
        html_format(out, "</dd></div><div><dt>Other programs</dt><dd>used %.2f processors, mean%s",
                    run->foreign_load, run->busy ? ": the machine was busy" : "");
    html_raw(out, "</dd></div></dl>\n");
}

static void device_table(const struct chapter *chapter)
{
    static const char *const columns[] = {"Device", "Type", "Platform", "Driver", "Memory", NULL};
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;

    table_open(out, "words", "Devices", columns);
    for (uint32_t i = 0; i < run->device_count; i++) {
        const struct report_device *device = &run->devices[i];

        chapter_device_row(chapter, i);
        table_cell_text(out, device->type);
        table_cell_text(out, device->platform);
        table_cell_text(out, device->driver);
        table_cell_text(out, device->mode);
        html_raw(out, "</tr>\n");
    }
    table_end(out);
}

/* "0–99" in a cell. */
static void frames_cell(struct html *out, double first, double end)
{
    html_raw(out, "<td>");
    words_whole(out, first);
    html_raw(out, "–");
    words_whole(out, end - 1);
    html_raw(out, "</td>");
}

static void reference_table(const struct chapter *chapter)
{
    static const char *const first[] = {"Phase", "Frames", NULL};
    static const char *const last[] = {"Best single", "Oracle", "Its shares", "Without loss", NULL};
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    uint32_t columns = run->device_count;

    if (!run->phase_count)
        return;
    /* A table of many columns cannot be read; the device table names the devices. */
    if (columns > REPORT_FEW_DEVICES)
        columns = 0;

    table_begin(out, "references", "Phases and reference times: median frame times, ms");
    html_raw(out, "<thead><tr>");
    table_head(out, first);
    for (uint32_t device = 0; device < columns; device++) {
        html_raw(out, "<th scope=\"col\">");
        chart_device_name(out, run, device, 80);
        html_raw(out, "<i>alone</i></th>");
    }
    table_head(out, last);
    html_raw(out, "</tr></thead><tbody>\n");

    for (uint32_t i = 0; i < run->phase_count; i++) {
        const struct report_phase *phase = &run->phases[i];

        table_row_begin(out, phase->text);
        frames_cell(out, phase->first_frame, phase->end_frame);
        for (uint32_t device = 0; device < columns; device++)
            table_cell_ms(out, phase->single_device_ns[device], false);
        table_cell_ms(out, phase->best_ns, false);
        table_cell_ms(out, phase->oracle_ns, false);
        table_cell_text(out, phase->oracle_ratios);
        table_cell_ms(out, phase->ideal_ns, false);
        html_raw(out, "</tr>\n");
    }
    table_end(out);
}

static void disturbance_table(const struct chapter *chapter)
{
    static const char *const columns[] = {"Disturbance", "Kind", "Frames", "Real", "Note", NULL};
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;

    if (!run->disturbance_count && !run_is_simulated(run))
        html_raw(out, "<p class=\"note\">No disturbances.</p>\n");
    if (!run->disturbance_count)
        return;

    table_open(out, "words", "Disturbances", columns);
    for (size_t i = 0; i < run->disturbance_count; i++) {
        const struct report_disturbance *disturbance = &run->disturbances[i];

        html_raw(out, "<tr><th scope=\"row\">");
        words_or(out, disturbance->text, "–");
        html_raw(out, "</th>");
        table_cell_text(out, disturbance->kind);
        frames_cell(out, disturbance->first_frame, disturbance->end_frame);
        table_cell_text(out, disturbance->real ? "real" : "artificial delay");
        table_cell_text(out, disturbance->note);
        html_raw(out, "</tr>\n");
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
    const char *oracle = "The best static split of a sweep, in the same phase of the same run.";

    if (run->oracle_by_frame)
        oracle = "The best fixed split of the best set of devices, for the same frame "
                 "and random numbers.";

    html_raw(out, "<dl class=\"definitions\">");
    definition(out, "T",
               "Wall time of a frame, from its start to the end of its last band. Failed frames "
               "are excluded. p50 and p99 are percentiles by nearest rank.");
    definition(out, "T<sub>oracle</sub>", oracle);
    definition(out, "T<sub>best single</sub>",
               "The fastest device alone, in the same phase of the same run.");
    definition(out, "Mean and p50",
               "Means are divided by means and medians by medians, because a few slow frames "
               "change a mean. Over all frames, the medians of the phases are summed, weighted "
               "by their frames.");
    definition(out, "Efficiency",
               "(1 ÷ T) ÷ Σ (1 ÷ T<sub>d</sub>), of the medians T with the policy and T<sub>d</sub>"
               " of device d alone.");
    definition(
        out, "Finish spread",
        "Mean of (last − first) ÷ last over the devices with rows; zero if they finish together.");
    definition(out, "Settled",
               "Frames of the phase until one is near the oracle, with three quarters of the "
               "eight frames that begin with it. Near: within 5 % of the oracle's median, or "
               "within nine of ten of the oracle's frames.");
    definition(out, "Split change",
               "A frame whose planned bands differ from those of the previous frame.");
    if (run->deadline_ns > 0)
        definition(out, "Late", "Share of the frames that took longer than the deadline.");
    html_raw(out, "</dl>\n");

    if (run->solo_sessions || run->sweep_sessions)
        html_format(out,
                    "<p class=\"note\">Also measured in this run: %zu sessions of one "
                    "device alone, %zu of the sweep.</p>\n",
                    run->solo_sessions, run->sweep_sessions);
    if (run->in_flight > 1)
        html_raw(out, "<p class=\"note\">Several frames were in flight: T is the part of "
                      "a frame's wall time in which no earlier frame was in flight, so "
                      "it is the time that a frame adds to a stream.</p>\n");
}

void chapter_machine(const struct chapter *chapter)
{
    facts(chapter);
    device_table(chapter);
    reference_table(chapter);
    disturbance_table(chapter);
    definitions(chapter);
}
