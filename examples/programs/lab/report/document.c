/* SPDX-License-Identifier: Apache-2.0 */
#include "document.h"
#include "chapter.h"
#include "lab/texts.h"

#include <coxswain/version.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void run_title(struct html *out, const struct report_run *run)
{
    words_or(out, run->kernel, "Session");

    if (run->columns > 0 && run->rows > 0) {
        html_raw(out, ", ");
        if (run->columns > 1) {
            words_whole(out, run->columns);
            html_raw(out, " × ");
            words_whole(out, run->rows);
        } else {
            words_whole(out, run->rows);
            html_raw(out, " rows");
        }
    }
    html_format(out, ", %u device%s", run->device_count, run->device_count == 1 ? "" : "s");
}

static void run_subtitle(struct html *out, const struct report_run *run)
{
    uint32_t policies = 0; /* without the oracle, which nobody could use */

    for (uint32_t i = 0; i < run->policy_count; i++)
        policies += strcmp(run->policies[i], "oracle") != 0;

    html_raw(out, "<p class=\"sub\">");
    html_format(out, "<span class=\"badge\">%s</span> %u polic%s, ",
                run_is_simulated(run) ? "simulation" : "measured", policies,
                policies == 1 ? "y" : "ies");
    words_whole(out, run->frames);
    html_raw(out, " frames each");

    if (run->host && *run->host && !run_is_simulated(run)) {
        html_raw(out, ", on ");
        html_text(out, run->host);
    }
    if (run->started_at && *run->started_at) {
        html_raw(out, ", ");
        html_text(out, run->started_at);
    }
    html_raw(out, "</p>\n");
}

/* Mean time; a policy without a frame comes last. */
static double sort_key(const struct report_figures *figures)
{
    if (!figures->frames)
        return INFINITY;
    return figures->mean_ns;
}

static void sort_policies(struct chapter *chapter)
{
    for (uint32_t i = 0; i < chapter->run->policy_count; i++) {
        double mean = sort_key(&chapter->all[i]);
        uint32_t at = chapter->count++;

        for (; at > 0 && sort_key(&chapter->all[chapter->order[at - 1]]) > mean; at--)
            chapter->order[at] = chapter->order[at - 1];
        chapter->order[at] = i;
    }
}

/* Fill in the figures. False if out of memory. */
static bool chapter_figures(struct chapter *chapter)
{
    const struct report_run *run = chapter->run;

    chapter->all = calloc(run->policy_count + 1, sizeof *chapter->all);
    chapter->phases = calloc(run->policy_count + 1, sizeof *chapter->phases);
    if (!chapter->all || !chapter->phases)
        return false;

    for (uint32_t policy = 0; policy < run->policy_count; policy++) {
        if (!report_figures(run, policy, REPORT_ALL_PHASES, &chapter->all[policy]))
            return false;
        for (uint32_t phase = 0; phase < run->phase_count; phase++)
            if (!report_figures(run, policy, phase, &chapter->phases[policy][phase]))
                return false;
    }

    sort_policies(chapter);
    chapter->charts = (struct chart_policies){
        .source = chapter->source,
        .run = run,
        .count = chapter->count,
        .policies = chapter->order,
        .all = chapter->all,
        .phases = (const struct report_figures(*)[REPORT_PHASES_MAX])chapter->phases};
    return true;
}

static bool policy_parts(const struct chapter *chapter)
{
    html_raw(chapter->out, "<h2 class=\"part\">What each policy did, and why</h2>\n");

    /* The oracle, which nobody could use, comes last. */
    for (int oracle = 0; oracle < 2; oracle++)
        for (uint32_t i = 0; i < chapter->count; i++)
            if (chapter_is_oracle(chapter, chapter->order[i]) == oracle &&
                !chapter_policy_part(chapter, chapter->order[i]))
                return false;
    return chapter_gauges(chapter);
}

static bool run_chapter(struct html *out, const struct report_source *source,
                        const struct report_run *run)
{
    struct chapter chapter = {.out = out, .source = source, .run = run};
    bool good = chapter_figures(&chapter);

    if (!good)
        goto done;

    html_format(out, "<article id=\"run-%lld\"><header>", (long long)run->number);
    if (source->run_count > 1)
        html_format(out, "<p class=\"kicker\">Run %lld</p>", (long long)run->number);
    html_raw(out, "<h2>");
    run_title(out, run);
    html_raw(out, "</h2>\n");
    run_subtitle(out, run);
    html_raw(out, "</header>\n");

    if (run->frame_end < 1) {
        html_raw(out, "<p class=\"lede\">No frames of a policy were recorded in this run.</p>\n");
    } else {
        chapter_results(&chapter);
        good = chapter_certainty(&chapter);
        chapter_comparisons(&chapter);
        good = good && policy_parts(&chapter);
    }
    html_raw(out, "<h2 class=\"part\">The machine and the method</h2>\n");
    chapter_machine(&chapter);
    html_raw(out, "</article>\n");
done:
    free(chapter.all);
    free(chapter.phases);
    return good;
}

/* --- All runs --------------------------------------------------------------------------------- */

enum { OVERVIEW_POLICIES = 12 };

/* The policies of all runs but the oracle, in the order in which they first occur. Returns their
 * number. */
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

/* "" for a simulated run, or if not known. */
static const char *host_of(const struct report_run *run)
{
    if (run_is_simulated(run) || !run->host)
        return "";
    return run->host;
}

/* Whether the runs are of several machines. */
static bool hosts_differ(const struct report_source *source)
{
    for (size_t r = 1; r < source->run_count; r++)
        if (strcmp(host_of(&source->runs[0]), host_of(&source->runs[r])) != 0)
            return true;
    return false;
}

static void overview_host(struct html *out, const struct report_run *run)
{
    const char *host = host_of(run);

    if (run_is_simulated(run))
        host = "simulation";
    html_raw(out, "<td>");
    html_text_cut(out, *host ? host : "–", 40);
    html_raw(out, "</td>");
}

static bool overview_row(struct html *out, const struct report_run *run, const char *const *names,
                         size_t count, bool hosts)
{
    double ratios[OVERVIEW_POLICIES], least = INFINITY;

    for (size_t i = 0; i < count; i++) {
        struct report_figures figures = {.over_oracle = NAN};

        for (uint32_t policy = 0; policy < run->policy_count; policy++)
            if (!strcmp(run->policies[policy], names[i]) &&
                !report_figures(run, policy, REPORT_ALL_PHASES, &figures))
                return false;
        ratios[i] = figures.over_oracle;
        least = fmin(least, ratios[i]);
    }

    html_format(out, "<tr><th scope=\"row\"><a href=\"#run-%lld\">", (long long)run->number);
    run_title(out, run);
    html_format(out, "</a>%s</th>", run->busy ? " (machine busy)" : "");
    if (hosts)
        overview_host(out, run);
    for (size_t i = 0; i < count; i++)
        table_cell(out, CELL_RATIO, ratios[i], ratios[i] <= least);
    html_raw(out, "</tr>\n");
    return true;
}

static bool overview(struct html *out, const struct report_source *source)
{
    const char *names[OVERVIEW_POLICIES];
    const size_t count = all_policies(source, names);
    const bool hosts = hosts_differ(source);
    bool good = true;

    html_raw(out, "<nav aria-label=\"Runs\">");
    table_begin(out, "overview",
                "Mean frame time ÷ the oracle's, by run and policy; the best of each run is bold");
    html_raw(out, "<thead><tr><th scope=\"col\">Run</th>");
    if (hosts)
        html_raw(out, "<th scope=\"col\">Machine</th>");
    for (size_t i = 0; i < count; i++) {
        html_raw(out, "<th scope=\"col\">");
        html_text_cut(out, names[i], 20);
        html_raw(out, "</th>");
    }
    html_raw(out, "</tr></thead><tbody>\n");

    for (size_t i = 0; good && i < source->run_count; i++)
        good = overview_row(out, &source->runs[i], names, count, hosts);

    table_end(out);
    html_raw(out, "</nav>");
    return good;
}

bool report_page(const struct report_source *source, const char *name, struct html *out)
{
    html_begin(out, name, "cox-lab report", (const char *const[]){lab_text("style.css"), NULL});
    html_raw(out, "<header class=\"masthead\"><p class=\"kicker\">Coxswain lab report</p><h1>");
    html_text(out, name);
    html_raw(out, "</h1>");

    bool good = source->run_count < 2 || overview(out, source);
    html_raw(out, "</header>\n");
    for (size_t i = 0; good && i < source->run_count; i++)
        good = run_chapter(out, source, &source->runs[i]);

    html_format(out,
                "<footer><p>Made by cox-lab %s from the session database. The page loads nothing"
                " and runs nothing.</p></footer>\n</main></body></html>\n",
                cox_version());
    return good && !out->failed;
}
