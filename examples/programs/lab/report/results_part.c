/* The results of a run: the finding, the table, the warnings, the charts that compare policies.
 * SPDX-License-Identifier: Apache-2.0 */
#include "chapter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void more_or_less(struct html *out, double ratio, const char *than)
{
    double percent = 100 * (ratio - 1);

    if (fabs(percent) < 0.05)
        html_format(out, "as fast as %s", than);
    else if (percent >= 100)
        html_format(out, "%.2f times the time of %s", ratio, than);
    else if (percent > 0)
        html_format(out, "%.1f %% longer than %s", percent, than);
    else
        html_format(out, "%.1f %% shorter than %s", -percent, than);
}

static void strong_name(const struct chapter *chapter, uint32_t policy)
{
    html_raw(chapter->out, "<strong>");
    chapter_policy_name(chapter, policy);
    html_raw(chapter->out, "</strong>");
}

/* The finding if energy was the objective: the policy that used the least of those that kept the
 * deadline. */
static bool lede_energy(const struct chapter *chapter)
{
    static const double late_most = 0.05;
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    const struct report_figures *best = NULL;
    uint32_t winner = 0;

    if (!run->objective || strcmp(run->objective, "energy") != 0)
        return false;

    for (uint32_t i = 0; i < chapter->count; i++) {
        uint32_t policy = chapter->order[i];
        const struct report_figures *figures = &chapter->all[policy];

        if (chapter_is_oracle(chapter, policy) || isnan(figures->joules) ||
            figures->late > late_most)
            continue;
        if (!best || figures->joules < best->joules) {
            best = figures;
            winner = policy;
        }
    }
    if (!best)
        return false;

    html_raw(out, "<p class=\"lede\">Objective: energy. ");
    strong_name(chapter, winner);
    html_format(out, " used the least: %.4g J per frame, mean", best->joules);
    if (run->deadline_ns > 0) {
        html_format(out, ", with %.1f %% of its frames later than the deadline of ",
                    100 * best->late);
        chart_ms(out, run->deadline_ns);
        html_format(out, " ms. Policies with more than %.0f %% of late frames are excluded",
                    100 * late_most);
    }
    html_raw(out, ".</p>\n");
    return true;
}

/* The next place in the order, from `at` on, that is not the oracle's; the count if no such place
 * follows. */
static uint32_t next_policy(const struct chapter *chapter, uint32_t at)
{
    while (at < chapter->count && chapter_is_oracle(chapter, chapter->order[at]))
        at++;
    return at;
}

/* The finding in two sentences. */
static void lede(const struct chapter *chapter)
{
    struct html *out = chapter->out;
    uint32_t first = next_policy(chapter, 0), next = next_policy(chapter, first + 1);

    if (lede_energy(chapter) || first == chapter->count)
        return;
    const struct report_figures *best = &chapter->all[chapter->order[first]];
    if (!best->frames)
        return;

    html_raw(out, "<p class=\"lede\">");
    strong_name(chapter, chapter->order[first]);
    html_raw(out, chapter->count - first > 1 ? " was the fastest: " : " took ");
    chart_ms(out, best->mean_ns);
    html_raw(out, " ms per frame, mean");

    const char *before = ", ";
    if (!isnan(best->over_oracle)) {
        html_raw(out, before);
        more_or_less(out, best->over_oracle, "the oracle");
        before = " and ";
    }
    if (!isnan(best->over_best)) {
        html_raw(out, before);
        more_or_less(out, best->over_best, "the best single device");
    }
    html_raw(out, ". ");

    if (next < chapter->count && chapter->all[chapter->order[next]].frames && best->mean_ns > 0) {
        html_raw(out, "Second: ");
        strong_name(chapter, chapter->order[next]);
        html_format(out, ", %.1f %% slower.",
                    100 * (chapter->all[chapter->order[next]].mean_ns / best->mean_ns - 1));
    }
    html_raw(out, "</p>\n");
}

static void frame_warning(const struct chapter *chapter, uint32_t policy)
{
    struct html *out = chapter->out;
    const struct report_figures *figures = &chapter->all[policy];

    if (!figures->failed && figures->frames)
        return;

    html_raw(out, "<li>");
    chapter_policy_name(chapter, policy);
    if (!figures->frames)
        html_raw(out, ": no valid frames.</li>");
    else if (figures->failed == 1)
        html_raw(out, ": 1 frame failed and is excluded.</li>");
    else
        html_format(out, ": %zu frames failed and are excluded.</li>", figures->failed);
}

/* What a reader must know before believing the rest. */
static void warnings(const struct chapter *chapter)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;

    html_raw(out, "<ul class=\"warnings\">");
    size_t begun = out->length;
    if (!run->finished)
        html_raw(out, "<li>The run was not finished when this page was made: it was "
                      "interrupted, a device failed, or it is still running.</li>");
    for (uint32_t i = 0; i < chapter->count; i++)
        frame_warning(chapter, chapter->order[i]);

    for (size_t i = 0; i < run->disturbance_count; i++)
        if (!run->disturbances[i].real && !run_is_simulated(run)) {
            html_raw(out, "<li>Artificial disturbance: ");
            words_or(out, run->disturbances[i].text, "(no text)");
            html_raw(out, ". The lab added the delay; no other program ran.</li>");
        }
    if (run->foreign_bands)
        html_format(out, "<li>%zu bands of unknown devices are excluded.</li>", run->foreign_bands);

    if (out->length == begun)
        html_raw(out, "<li class=\"none\">The run finished, and no frame failed.</li>");
    html_raw(out, "</ul>\n");
}

/* Which columns have a value. */
struct columns {
    bool oracle, best, efficiency, settle, joules, stream, late;
};

static struct columns columns_of(const struct chapter *chapter)
{
    struct columns columns = {.stream = chapter->run->in_flight > 1,
                              .late = chapter->run->deadline_ns > 0};

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

static double field_of(const struct report_figures *figures, size_t offset, double sign)
{
    double value;

    memcpy(&value, (const char *)figures + offset, sizeof value);
    return sign * value;
}

/* Whether no policy has less. The oracle does not count. */
static bool is_least(const struct chapter *chapter, uint32_t policy, uint32_t phase, size_t offset,
                     double sign)
{
    double own = field_of(chart_figures(&chapter->charts, policy, phase), offset, sign);

    if (chapter->count < 2 || chapter_is_oracle(chapter, policy) || isnan(own))
        return false;

    for (uint32_t i = 0; i < chapter->count; i++) {
        uint32_t other = chapter->order[i];
        double value = field_of(chart_figures(&chapter->charts, other, phase), offset, sign);

        if (!chapter_is_oracle(chapter, other) && value < own)
            return false;
    }
    return true;
}

static void headline_row(const struct chapter *chapter, const struct columns *columns,
                         uint32_t policy, uint32_t phase)
{
    struct html *out = chapter->out;
    const struct report_figures *figures = chart_figures(&chapter->charts, policy, phase);
    double settle = figures->settle;

    if (chapter->run->phase_count == 1)
        settle = chapter->phases[policy][0].settle;

#define LEAST(field) is_least(chapter, policy, phase, offsetof(struct report_figures, field), 1)

    table_cell(out, CELL_COUNT, (double)figures->frames, false);
    table_cell_ms(out, figures->mean_ns, LEAST(mean_ns));
    table_cell_ms(out, figures->p50_ns, LEAST(p50_ns));
    table_cell_ms(out, figures->p99_ns, LEAST(p99_ns));
    table_cell_ms(out, figures->p999_ns, LEAST(p999_ns));
    if (columns->oracle) {
        table_cell(out, CELL_RATIO, figures->over_oracle, LEAST(over_oracle));
        table_cell(out, CELL_RATIO, figures->p50_over_oracle, LEAST(p50_over_oracle));
    }
    if (columns->best) {
        table_cell(out, CELL_RATIO, figures->over_best, LEAST(over_best));
        table_cell(out, CELL_RATIO, figures->p50_over_best, LEAST(p50_over_best));
    }
    if (columns->efficiency)
        table_cell(out, CELL_PERCENT, figures->efficiency,
                   is_least(chapter, policy, phase, offsetof(struct report_figures, efficiency),
                            -1));

    table_cell(out, CELL_TENTHS, figures->moves, false);
    table_cell(out, CELL_PERCENT, figures->last_to_first, LEAST(last_to_first));
    if (columns->settle && isinf(settle))
        html_raw(out, "<td>never</td>");
    else if (columns->settle)
        table_cell(out, CELL_COUNT, settle, false);
    if (columns->stream)
        table_cell(out, CELL_TENTHS, figures->per_second, false);
    if (columns->late)
        table_cell(out, CELL_PERCENT, figures->late, LEAST(late));
    if (columns->joules)
        table_cell(out, CELL_JOULES, figures->joules, LEAST(joules));
#undef LEAST
    html_raw(out, "</tr>\n");
}

static void headline_head(const struct chapter *chapter, const struct columns *columns, bool phases)
{
    static const char one[] = "<th scope=\"col\" rowspan=\"2\">";
    static const char two[] = "<th scope=\"colgroup\" colspan=\"2\">";
    static const char four[] = "<th scope=\"colgroup\" colspan=\"4\">";
    static const char pair[] = "<th scope=\"col\">mean</th><th scope=\"col\">p50</th>";
    struct html *out = chapter->out;

    html_format(out, "<thead><tr>%sPolicy</th>", one);
    if (phases)
        html_format(out, "%sPhase</th>", one);
    html_format(out, "%sFrames</th>%sFrame time T, ms</th>", one, four);
    if (columns->oracle)
        html_format(out, "%sT ÷ T<sub>oracle</sub></th>", two);
    if (columns->best)
        html_format(out, "%sT ÷ T<sub>best single</sub></th>", two);
    if (columns->efficiency)
        html_format(out, "%sEfficiency</th>", one);
    html_format(out, "%sSplit<i>changes</i><i>per 100</i></th>%sFinish<i>spread</i></th>", one,
                one);

    if (columns->settle)
        html_format(out, "%sSettled<i>after</i><i>frames</i></th>", one);
    if (columns->stream)
        html_format(out, "%sFrames<i>per second</i></th>", one);
    if (columns->late)
        html_format(out, "%sLate</th>", one);
    if (columns->joules)
        html_format(out, "%sEnergy<i>J per frame</i></th>", one);

    /* The second row: under T, and under the two quotients. */
    html_format(out, "</tr><tr>%s<th scope=\"col\">p99</th><th scope=\"col\">p99.9</th>", pair);
    if (columns->oracle)
        html_raw(out, pair);
    if (columns->best)
        html_raw(out, pair);
    html_raw(out, "</tr></thead>\n");
}

static void headline_notes(const struct chapter *chapter, const struct columns *columns)
{
    struct html *out = chapter->out;
    const char *why = "No energy meter was available";

    if (!columns->oracle)
        html_raw(out, "<p class=\"note\">No oracle was measured in this run, so excess "
                      "and regret are unknown.</p>\n");
    if (!columns->efficiency)
        html_raw(out, "<p class=\"note\">No device was measured alone in this run, so "
                      "efficiency is unknown.</p>\n");

    if (chapter->run->meter)
        why = "The energy meter gave no readings";
    else if (run_is_simulated(chapter->run))
        why = "The scenario models no energy";
    if (!columns->joules)
        html_format(out, "<p class=\"note\">%s, so energy is unknown.</p>\n", why);
}

static void headline_table(const struct chapter *chapter)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    const struct columns columns = columns_of(chapter);
    const bool phases = run->phase_count > 1;
    char class[40];

    snprintf(class, sizeof class, "headline%s%s", phases ? " phased" : "",
             columns.stream || columns.late || columns.joules ? " dense" : "");
    table_begin(
        out, class,
        "Frame times by policy and phase, fastest policy first; the best of each column is bold");
    headline_head(chapter, &columns, phases);

    for (uint32_t i = 0; i < chapter->count; i++) {
        uint32_t policy = chapter->order[i];

        if (i)
            html_raw(out, "</tbody>\n");
        chapter_policy_rows(chapter, policy, phases);
        headline_row(chapter, &columns, policy, REPORT_ALL_PHASES);

        for (uint32_t phase = 0; phases && phase < run->phase_count; phase++) {
            table_row_begin(out, run->phases[phase].text);
            headline_row(chapter, &columns, policy, phase);
        }
    }
    table_end(out);
    headline_notes(chapter, &columns);
}

typedef bool chart_fn(struct html *out, const struct chart_policies *about, bool narrow);

/* A chart with its heading, drawn for wide pages and for narrow ones: the style shows one of them.
 * Nothing if the chart has nothing to show. */
static void comparison(const struct chapter *chapter, const char *title, const char *text,
                       chart_fn *chart)
{
    struct html drawings = {0}, *out = chapter->out;

    if (chart(&drawings, &chapter->charts, false) && chart(&drawings, &chapter->charts, true)) {
        html_format(out, "<section class=\"chart\"><h3>%s</h3><p>%s</p><div class=\"figure\">",
                    title, text);
        html_append(out, &drawings);
        html_raw(out, "</div></section>\n");
    }

    out->failed |= drawings.failed;
    html_free(&drawings);
}

void chapter_comparisons(const struct chapter *chapter)
{
    comparison(chapter, "Frame times",
               "Distribution of frame times, with the median and the 99th percentile.",
               chart_times);
    comparison(chapter, "Use of the machine",
               "Efficiency, per cent: the speed of the median frame, relative to the sum "
               "of the devices' speeds alone in the same phase.",
               chart_efficiency);
    comparison(chapter, "Regret",
               "Time lost against the oracle up to each frame, in milliseconds. A flat "
               "line is as fast as the oracle, a falling line is faster. ↑ marks a line "
               "that leaves the chart.",
               chart_regret);
}

/* Comes before the finding, because it takes back what the finding says. */
static void busy(const struct chapter *chapter)
{
    struct html *out = chapter->out;

    if (!chapter->run->busy)
        return;

    html_raw(out, "<p class=\"busy\"><strong>The machine was busy");
    if (isfinite(chapter->run->foreign_load))
        html_format(out, ": other programs used %.2f processors", chapter->run->foreign_load);
    html_raw(out, ".</strong> The figures are unreliable, and the order of the policies "
                  "may be chance. Measure again on a quiet machine.</p>\n");
}

void chapter_results(const struct chapter *chapter)
{
    busy(chapter);
    lede(chapter);
    headline_table(chapter);
    warnings(chapter);
}
