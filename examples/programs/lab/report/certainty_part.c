/* How certain the results are: the table of 95 % intervals and of each policy against the first,
 * and a note if the frames are too few for them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "certainty.h"
#include "chapter.h"
#include "lab/statistics/tail.h"

#include <math.h>
#include <stdio.h>

/* "8.2–8.3", or a dash. */
static void interval_ms(struct html *out, const struct lab_interval *interval)
{
    html_raw(out, "<td>");
    chart_ms(out, interval->low);
    if (!isnan(interval->low)) {
        html_raw(out, "–");
        chart_ms(out, interval->high);
    }
    html_raw(out, "</td>");
}

static void ratio_cells(struct html *out, double ratio, const struct lab_interval *interval)
{
    char text[400] = "";

    if (isfinite(interval->low) && isfinite(interval->high))
        snprintf(text, sizeof text, "%.3f–%.3f", interval->low, interval->high);

    table_cell(out, CELL_RATIO, ratio, false);
    table_cell_text(out, text);
}

/* A row without its heads. False if out of memory. */
static bool row(const struct chapter *chapter, uint32_t policy, uint32_t phase, bool pairs,
                uint64_t *blocks)
{
    struct html *out = chapter->out;
    struct report_certainty sure;

    if (!report_certainty(chapter->run, policy, phase, &sure))
        return false;
    if (sure.blocks > 1 && sure.blocks < *blocks)
        *blocks = sure.blocks;

    interval_ms(out, &sure.of.mean);
    interval_ms(out, &sure.of.p50);
    interval_ms(out, &sure.of.p99);
    interval_ms(out, &sure.of.p999);
    if (pairs) {
        ratio_cells(out, sure.over_first.mean, &sure.over_first.mean_interval);
        ratio_cells(out, sure.over_first.p99, &sure.over_first.p99_interval);
    }
    html_raw(out, "</tr>\n");
    return true;
}

static void head(const struct chapter *chapter, bool phases, bool pairs)
{
    static const char one[] = "<th scope=\"col\" rowspan=\"2\">";
    static const char two[] = "<th scope=\"colgroup\" colspan=\"2\">";
    static const char ratio[] = "<th scope=\"col\">ratio</th><th scope=\"col\">95 %</th>";
    struct html *out = chapter->out;

    html_format(out, "<thead><tr>%sPolicy</th>", one);
    if (phases)
        html_format(out, "%sPhase</th>", one);
    html_raw(out, "<th scope=\"colgroup\" colspan=\"4\">95 % interval of T, ms</th>");
    if (pairs)
        html_format(out, "%sMean ÷ first’s</th>%sp99 ÷ first’s</th>", two, two);

    html_raw(out, "</tr><tr><th scope=\"col\">mean</th><th scope=\"col\">p50</th>"
                  "<th scope=\"col\">p99</th><th scope=\"col\">p99.9</th>");
    if (pairs)
        html_format(out, "%s%s", ratio, ratio);
    html_raw(out, "</tr></thead>\n");
}

/* The rows of one policy. */
static bool policy_rows(const struct chapter *chapter, uint32_t policy, bool pairs,
                        uint64_t *blocks)
{
    struct html *out = chapter->out;
    const struct report_run *run = chapter->run;
    const bool phases = run->phase_count > 1;

    chapter_policy_rows(chapter, policy, phases);
    if (!row(chapter, policy, REPORT_ALL_PHASES, pairs, blocks))
        return false;

    for (uint32_t phase = 0; phases && phase < run->phase_count; phase++) {
        table_row_begin(out, run->phases[phase].text);
        if (!row(chapter, policy, phase, pairs, blocks))
            return false;
    }
    return true;
}

/* The least number of frames in a row of the table; UINT64_MAX if there are none. */
static uint64_t least_frames(const struct chapter *chapter)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < chapter->count; i++) {
        const uint32_t policy = chapter->order[i];
        const uint32_t phases = chapter->run->phase_count;

        if (chapter->all[policy].frames && chapter->all[policy].frames < least)
            least = chapter->all[policy].frames;
        for (uint32_t phase = 0; phase < phases; phase++) {
            const size_t frames = chapter->phases[policy][phase].frames;

            if (frames && frames < least)
                least = frames;
        }
    }
    return least;
}

static void notes(const struct chapter *chapter, uint32_t first, bool pairs, uint64_t blocks)
{
    static const unsigned shown[] = {500, 990, 999, 0};
    struct html *out = chapter->out;
    char text[LAB_TAIL_TEXT_BYTES];

    if (pairs) {
        html_raw(out, "<p class=\"note\">First: ");
        chapter_policy_name(chapter, first);
        html_raw(out, ". Below 1, a policy is faster. Each draw of the bootstrap has the same "
                      "blocks of both policies.</p>\n");
    }
    if (lab_tail_warning(least_frames(chapter), shown, text, sizeof text))
        html_format(out, "<p class=\"note few\">%s</p>\n", text);
    if (lab_blocks_warning(blocks, "blocks of frames", text, sizeof text))
        html_format(out, "<p class=\"note few\">%s</p>\n", text);
}

bool chapter_certainty(const struct chapter *chapter)
{
    struct html *out = chapter->out;
    const uint32_t first = report_first_policy(chapter->run);
    const bool phases = chapter->run->phase_count > 1;
    uint64_t blocks = UINT64_MAX;
    uint32_t policies = 0;

    for (uint32_t i = 0; i < chapter->count; i++)
        policies += !chapter_is_oracle(chapter, chapter->order[i]);

    table_begin(out, phases ? "certainty headline phased dense" : "certainty headline dense",
                "Certainty of the frame times, and each policy against the first one");
    head(chapter, phases, policies > 1);

    for (uint32_t i = 0; i < chapter->count; i++) {
        if (i)
            html_raw(out, "</tbody>\n");
        if (!policy_rows(chapter, chapter->order[i], policies > 1, &blocks))
            return false;
    }

    table_end(out);
    notes(chapter, first, policies > 1, blocks);
    return true;
}
