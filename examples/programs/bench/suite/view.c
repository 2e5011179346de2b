/* SPDX-License-Identifier: Apache-2.0 */
#include "view.h"

uint32_t suite_view_store(const struct suite_view *view, uint32_t frame, uint32_t buffer)
{
    const struct suite_buffer *of = &view->buffers[buffer];

    if (of->place == SUITE_FRAME)
        return view->problem->use[frame % 2][of->ordinal];

    return view->problem->memory_count + of->ordinal;
}

struct suite_range suite_view_rows(const struct suite_view *view, const struct suite_access *access,
                                   struct suite_range band)
{
    const uint32_t rows = view->buffers[access->buffer].rows;
    const uint32_t border = view->buffers[access->buffer].border_above;

    if (access->whole)
        return (struct suite_range){0, rows};

    uint32_t first = band.first / access->divisor + border;
    uint64_t end = ((uint64_t)band.end + access->divisor - 1) / access->divisor + border +
                   access->below;

    first -= first < access->above ? first : access->above;
    if (end > rows)
        end = rows;

    return (struct suite_range){first, (uint32_t)end};
}

struct suite_range suite_view_written(const struct suite_view *view,
                                      const struct suite_access *access, struct suite_range band)
{
    struct suite_access own = *access;

    own.whole = false;
    own.above = own.below = 0;

    return suite_view_rows(view, &own, band);
}

/* Rows that hold both ranges. */
static struct suite_range around(struct suite_range a, struct suite_range b)
{
    if (suite_range_empty(a))
        return b;
    if (b.first < a.first)
        a.first = b.first;
    if (b.end > a.end)
        a.end = b.end;

    return a;
}

/* The launches of an absolute step must begin where work-groups begin. */
static struct suite_range to_launches(const struct suite_step *step, struct suite_range rows)
{
    uint32_t unit = step->pass->local_rows;

    if (!step->absolute || !unit)
        return rows;
    if (step->pass->item_rows)
        unit *= step->pass->item_rows;

    rows.first -= rows.first % unit;
    rows.end = (rows.end + unit - 1) / unit * unit;
    if (rows.end > step->rows)
        rows.end = step->rows;

    return rows;
}

void suite_view_group(const struct suite_view *view, uint32_t group, struct suite_range band,
                      struct suite_range *rows)
{
    struct suite_range needed[COX_BUFFERS_MAX] = {{0, 0}};

    for (uint32_t s = view->steps[group].group_end; s-- > group;) {
        const struct suite_step *step = &view->steps[s];
        struct suite_range *own = &rows[s - group];

        *own = (struct suite_range){0, 0};
        for (uint32_t a = 0; a < step->access_count; a++) {
            const struct suite_access *access = &step->accesses[a];
            if (!access->writes)
                continue;
            if (view->buffers[access->buffer].place == SUITE_PRIVATE)
                *own = around(*own, needed[access->buffer]);
            else
                *own = around(*own, band);
        }
        *own = to_launches(step, *own);

        for (uint32_t a = 0; a < step->access_count; a++) {
            const struct suite_access *access = &step->accesses[a];
            if (!access->writes && view->buffers[access->buffer].place == SUITE_PRIVATE)
                needed[access->buffer] = around(needed[access->buffer],
                                                suite_view_rows(view, access, *own));
        }
    }
}
