/* Finds the byte of poison that a run has read.
 *
 * All bytes of a run's memory have a position. Inverted poison at positions below some bound
 * changes the results for the bound `high`, and does not for the bound `low`. Halving the distance
 * leaves one byte.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

/* The place of a position. */
static uint32_t binding_at(const struct cox__scene *scene, uint64_t position)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < scene->pass->binding_count; i++)
        if (scene->places[i].bytes && scene->places[i].position <= position)
            found = i;
    return found;
}

/* The byte is of rows that the band writes: they hold what was there before. */
static void report_output(struct cox__scene *scene, uint32_t binding, size_t offset,
                          const char *result)
{
    const struct cox__where where = cox__finding_where(scene, binding, offset);
    if (cox__is_own(&scene->pass->bindings[binding]))
        cox__finding_add(scene, COX__FINDING_READS, binding,
                         "reads %s before a fused pass has written it; %s depends on it",
                         where.text, result);
    else
        cox__finding_add(scene, COX__FINDING_READS, binding,
                         "reads %s before it has written it; %s depends on it; set in_place if the "
                         "kernel needs what was there",
                         where.text, result);
}

static void report(struct cox__scene *scene, uint32_t binding, size_t offset, const char *result)
{
    const struct cox__binding *of = &scene->pass->bindings[binding];
    const struct cox__extent written = cox__poison_written(scene, binding);
    const struct cox__where where = cox__finding_where(scene, binding, offset);

    if (offset >= written.first && offset < written.end) {
        report_output(scene, binding, offset, result);
        return;
    }
    if (!cox__by_rows(of) || (cox__is_own(of) && !scene->pass->absolute)) {
        cox__finding_add(scene, COX__FINDING_READS, binding,
                         "reads %s, outside of its memory of %zu bytes; %s depends on it",
                         where.text, scene->places[binding].middle, result);
        return;
    }

    uint32_t first, end;
    cox__poison_rows(scene, binding, &first, &end);
    if (cox__is_own(of)) {
        cox__finding_add(scene, COX__FINDING_READS, binding,
                         "reads %s, but the band's fused passes compute rows %u to %u only; %s "
                         "depends on it; set a larger halo_rows",
                         where.text, first, end - 1, result);
        return;
    }

    const int64_t row = cox__finding_row(scene, binding, offset);
    const int64_t above = of->border_above;
    const int64_t all = (int64_t)cox__buffer_rows(scene->pass->rows, of->row_divisor) +
                        of->border_below;
    const char *advice = "set a larger halo_rows, and count rows from NAME_first_row";
    if (scene->pass->absolute)
        advice = "set a larger halo_rows";
    if (row < -above || row >= all)
        advice = "the buffer has no such row, so the kernel must clamp";

    cox__finding_add(scene, COX__FINDING_READS, binding,
                     "reads %s, but the band may only read rows %d to %d (halo_rows is %u); %s "
                     "depends on it; %s",
                     where.text, (int)(first - above), (int)(end - above - 1), of->halo_rows,
                     result, advice);
}

cox_status cox__culprit_report(struct cox__scene *scene, const struct cox__attempt *attempt,
                               uint64_t seed, struct cox__attempt *scratch,
                               const struct cox__spot *spot)
{
    uint64_t low = 0, high = scene->positions;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        struct cox__spot ignored;
        const cox_status status = cox__poison_run(scene, scratch,
                                                  &(const struct cox__poison){.seed = seed,
                                                                              .inverted = middle});
        if (status)
            return status;

        if (cox__compare_outputs(scene, attempt, scratch, &ignored))
            high = middle;
        else
            low = middle;
    }

    const uint32_t binding = binding_at(scene, low);
    const struct cox__where result = cox__finding_where(scene, spot->binding, spot->offset);
    report(scene, binding, low - scene->places[binding].position, result.text);
    return COX_OK;
}
