/* What the numbers of an experiment say, in sentences.
 * SPDX-License-Identifier: Apache-2.0 */
#include "guides.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAMED_MOST = 3 };

const char *guides_unit_name(enum guides_unit unit)
{
    static const char *const names[] = {"Mpixel/s", "Mvalue/s", "Mread/s", "GB/s", "µs", "ms"};
    return names[unit];
}

bool guides_unit_rate(enum guides_unit unit)
{
    return unit != GUIDES_US && unit != GUIDES_MS;
}

const char *guides_status_name(enum guides_status status)
{
    static const char *const names[] = {"measured", "wrong", "not offered", "failed"};
    return names[status];
}

const char *guides_number(double value, char *text, size_t bytes)
{
    int decimals = fabs(value) >= 100 ? 0 : fabs(value) >= 10 ? 1 : fabs(value) >= 1 ? 2 : 3;
    snprintf(text, bytes, "%.*f", decimals, value);
    return text;
}

void guides_say(char *text, size_t bytes, const char *format, ...)
{
    size_t length = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, bytes - length, format, args);
    va_end(args);
}

static bool counts(const struct guides_cell *cell, const char *group)
{
    return cell->status == GUIDES_MEASURED && (!group || strcmp(cell->group, group) == 0);
}

int guides_best(const struct guides_result *result, const char *group)
{
    int best = -1;
    const bool rate = guides_unit_rate(result->experiment->unit);
    for (uint32_t v = 0; v < result->experiment->count; v++) {
        const struct guides_cell *cell = &result->cells[v];
        if (counts(cell, group) &&
            (best < 0 || (cell->value.median > result->cells[best].value.median) == rate))
            best = (int)v;
    }
    return best;
}

/* How many times as long `cell` takes as the best one, from round to round. */
static struct guides_quartiles against(const struct guides_cell *cell,
                                       const struct guides_cell *best)
{
    double ratios[GUIDES_ROUNDS_MAX];
    for (uint32_t r = 0; r < cell->rounds; r++)
        ratios[r] = cell->ns[r] / best->ns[r];
    return (struct guides_quartiles){.low = figures_quantile(ratios, cell->rounds, 0.25),
                                     .median = figures_quantile(ratios, cell->rounds, 0.5),
                                     .high = figures_quantile(ratios, cell->rounds, 0.75)};
}

/* One group: the fastest, what it gains over the slowest, and what it does not differ from. */
static void say_group(struct guides_result *result, const char *group)
{
    char *text = result->finding;
    const size_t bytes = sizeof result->finding;
    const int at = guides_best(result, group);
    uint32_t count = 0, same = 0;
    double most = 1;
    const struct guides_cell *slowest = NULL;
    if (at < 0)
        return;
    const struct guides_cell *best = &result->cells[at];
    for (uint32_t v = 0; v < result->experiment->count; v++) {
        const struct guides_cell *cell = &result->cells[v];
        if (cell == best || !counts(cell, group))
            continue;
        struct guides_quartiles ratio = against(cell, best);
        count++;
        same += ratio.low <= 1;
        if (ratio.low > 1 && ratio.median > most) {
            most = ratio.median;
            slowest = cell;
        }
    }
    if (*group)
        guides_say(text, bytes, "%c%s: ", toupper((unsigned char)*group), group + 1);
    if (count == 0) {
        guides_say(text, bytes, "%s “%s” was measured. ", *group ? "only" : "Only", best->name);
        return;
    }
    if (!slowest) {
        guides_say(text, bytes, "%s difference beyond the noise between the %u ways. ",
                   *group ? "no" : "No", count + 1);
        return;
    }
    guides_say(text, bytes, "“%s” is fastest, %.*f times as fast as “%s”", best->name,
               most < 10 ? 2 : 0, most, slowest->name);
    if (same > NAMED_MOST)
        guides_say(text, bytes, "; beyond the noise it does not differ from %u others", same);
    for (uint32_t v = 0, named = 0; same && same <= NAMED_MOST && v < result->experiment->count;
         v++) {
        const struct guides_cell *cell = &result->cells[v];
        if (cell == best || !counts(cell, group) || against(cell, best).low > 1)
            continue;
        guides_say(text, bytes, "%s“%s”",
                   named++ ? ", " : "; beyond the noise it does not differ from ", cell->name);
    }
    guides_say(text, bytes, ". ");
}

void guides_find(const struct guides_device *device, struct guides_result *result)
{
    const struct guides_experiment *experiment = result->experiment;
    uint32_t of[4] = {0};
    result->finding[0] = '\0';
    if (experiment->finding)
        experiment->finding(device, experiment, result->cells, result->finding,
                            sizeof result->finding);
    for (uint32_t v = 0; v < experiment->count; v++) {
        const struct guides_cell *cell = &result->cells[v];
        bool first = true;
        of[cell->status]++;
        for (uint32_t before = 0; before < v; before++)
            first &= strcmp(result->cells[before].group, cell->group) != 0;
        if (first && !experiment->no_contest)
            say_group(result, cell->group);
    }
    if (of[GUIDES_NOT_OFFERED])
        guides_say(result->finding, sizeof result->finding,
                   "Not offered by this device: %u of %u. ", of[GUIDES_NOT_OFFERED],
                   experiment->count);
    if (of[GUIDES_WRONG] + of[GUIDES_FAILED])
        guides_say(result->finding, sizeof result->finding, "WRONG or failed: %u of %u. ",
                   of[GUIDES_WRONG] + of[GUIDES_FAILED], experiment->count);
}
