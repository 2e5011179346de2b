/* SPDX-License-Identifier: Apache-2.0 */
#include "finding.h"
#include "words.h"

#include <ctype.h>
#include <string.h>

enum { NAMED_MOST = 3 };

static bool counts(const struct guides_cell *cell, const char *group)
{
    return cell->status == GUIDES_MEASURED && strcmp(cell->group, group) == 0;
}

/* The fastest variant of a group, by its median; -1 = none was measured. */
static int find_best(const struct guides_result *result, const char *group)
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

/* The time of `cell` over that of the best one, by round. */
static struct guides_quartiles against(const struct guides_cell *cell,
                                       const struct guides_cell *best)
{
    double ratios[GUIDES_ROUNDS_MAX];
    for (uint32_t r = 0; r < cell->rounds; r++)
        ratios[r] = cell->ns[r] / best->ns[r];
    return guides_quartiles_of(ratios, cell->rounds);
}

static void say_same(struct guides_result *result, const char *group,
                     const struct guides_cell *best)
{
    const char *before = "; within the noise of ";

    for (uint32_t v = 0; v < result->experiment->count; v++) {
        const struct guides_cell *cell = &result->cells[v];
        if (cell == best || !counts(cell, group) || against(cell, best).low > 1)
            continue;
        guides_say(result->finding, sizeof result->finding, "%s“%s”", before, cell->name);
        before = ", ";
    }
}

/* One group: the fastest variant, its gain over the slowest, and the variants it does not differ
 * from. */
static void say_group(struct guides_result *result, const char *group)
{
    char *text = result->finding;
    const size_t bytes = sizeof result->finding;
    const int at = find_best(result, group);
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

    const char *only = "Only", *no = "No";
    if (*group) {
        guides_say(text, bytes, "%c%s: ", toupper((unsigned char)*group), group + 1);
        only = "only";
        no = "no";
    }

    if (count == 0) {
        guides_say(text, bytes, "%s “%s” was measured. ", only, best->name);
        return;
    }

    if (!slowest) {
        guides_say(text, bytes, "%s difference beyond the noise between the %u ways. ", no,
                   count + 1);
        return;
    }

    guides_say(text, bytes, "“%s” is fastest, %.*f times as fast as “%s”", best->name,
               most < 10 ? 2 : 0, most, slowest->name);
    if (same > NAMED_MOST)
        guides_say(text, bytes, "; within the noise of %u others", same);
    else if (same > 0)
        say_same(result, group, best);

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
