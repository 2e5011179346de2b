/* SPDX-License-Identifier: Apache-2.0 */
#include "chapter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void words_or(struct html *out, const char *text, const char *instead)
{
    if (text && *text)
        html_text(out, text);
    else
        html_raw(out, instead);
}

void words_whole(struct html *out, double value)
{
    if (isnan(value))
        html_raw(out, "–");
    else
        html_format(out, "%.0f", value);
}

void chapter_policy_name(const struct chapter *chapter, uint32_t policy)
{
    words_or(chapter->out, chapter->run->policies[policy], "(unnamed)");
}

void chapter_policy_rows(const struct chapter *chapter, uint32_t policy, bool phases)
{
    struct html *out = chapter->out;

    html_raw(out, "<tbody><tr class=\"whole\"><th scope=\"row\"");
    if (phases)
        html_format(out, " rowspan=\"%u\"", chapter->run->phase_count + 1);
    html_raw(out, ">");
    words_swatch(out, "p", chart_policy_colour(chapter->run, policy));
    chapter_policy_name(chapter, policy);
    html_raw(out, "</th>");
    if (phases)
        html_raw(out, "<th scope=\"row\">all frames</th>");
}

static void table_cell_begin(struct html *out, bool best)
{
    html_raw(out, "<td");
    if (best)
        html_raw(out, " class=\"best\"");
    html_raw(out, ">");
}

void table_cell_text(struct html *out, const char *text)
{
    html_raw(out, "<td>");
    words_or(out, text, "–");
    html_raw(out, "</td>");
}

void table_cell_ms(struct html *out, double ns, bool best)
{
    table_cell_begin(out, best);
    chart_ms(out, ns);
    html_raw(out, "</td>");
}

void table_cell(struct html *out, enum table_form form, double value, bool best)
{
    static const char *const forms[] = {[CELL_COUNT] = "%.0f",
                                        [CELL_RATIO] = "%.3f",
                                        [CELL_PERCENT] = "%.1f %%",
                                        [CELL_TENTHS] = "%.1f",
                                        [CELL_JOULES] = "%.4g"};
    char text[400] = "–";

    if (form == CELL_PERCENT)
        value *= 100;
    if (isfinite(value))
        snprintf(text, sizeof text, forms[form], value);

    table_cell_begin(out, best);
    html_raw(out, text);
    html_raw(out, "</td>");
}

void words_swatch(struct html *out, const char *kind, uint32_t colour)
{
    html_format(out,
                "<svg class=\"swatch\" viewBox=\"0 0 10 10\" aria-hidden=\"true\">"
                "<rect class=\"fill %s%u\" width=\"10\" height=\"10\" rx=\"2\"/></svg>",
                kind, colour);
}

void table_begin(struct html *out, const char *class, const char *caption)
{
    html_format(out,
                "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"%s\">"
                "<table class=\"%s\"><caption><span>%s</span></caption>",
                caption, class, caption);
}

void table_head(struct html *out, const char *const names[])
{
    for (; *names; names++)
        html_format(out, "<th scope=\"col\">%s</th>", *names);
}

void table_open(struct html *out, const char *class, const char *caption,
                const char *const columns[])
{
    table_begin(out, class, caption);
    html_raw(out, "<thead><tr>");
    table_head(out, columns);
    html_raw(out, "</tr></thead><tbody>\n");
}

void table_row_begin(struct html *out, const char *name)
{
    html_raw(out, "<tr><th scope=\"row\">");
    words_or(out, name, "(unnamed)");
    html_raw(out, "</th>");
}

void table_end(struct html *out)
{
    html_raw(out, "</tbody></table></div>\n");
}

void chapter_device_row(const struct chapter *chapter, uint32_t device)
{
    struct html *out = chapter->out;

    html_raw(out, "<tr><th scope=\"row\">");
    words_swatch(out, "d", chart_group_colour(chapter->run->devices[device].group));
    chart_device_name(out, chapter->run, device, 80);
    html_raw(out, "</th>");
}

bool run_is_simulated(const struct report_run *run)
{
    return run->source && !strcmp(run->source, "simulation");
}

bool chapter_is_oracle(const struct chapter *chapter, uint32_t policy)
{
    return !strcmp(chapter->run->policies[policy], "oracle");
}
