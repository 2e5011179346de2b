/* Comparison of runs, byte by byte.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"
#include "base/bounds.h"

#include <string.h>

static const unsigned char *after(const struct cox__attempt *attempt, uint32_t binding)
{
    return attempt->trial.memories[binding].data;
}

/* Count from the first byte of an extent that differs; `unwritten` bytes do not count. */
static bool compare_extent(const struct cox__attempt *one, const struct cox__attempt *other,
                           uint32_t binding, struct cox__extent extent, bool unwritten,
                           struct cox__spot *spot)
{
    const unsigned char *a = after(one, binding), *b = after(other, binding);
    const unsigned char *was_a = one->before[binding], *was_b = other->before[binding];
    if (memcmp(a + extent.first, b + extent.first, extent.end - extent.first) == 0)
        return false;

    *spot = (struct cox__spot){.binding = binding};
    for (size_t at = extent.first; at < extent.end; at++) {
        const bool differs = a[at] != b[at];
        if (!differs || (unwritten && a[at] == was_a[at] && b[at] == was_b[at]))
            continue;
        if (!spot->count++)
            spot->offset = at;
    }
    return spot->count > 0;
}

bool cox__compare_outputs(const struct cox__scene *scene, const struct cox__attempt *one,
                          const struct cox__attempt *other, struct cox__spot *spot)
{
    for (uint32_t i = 0; i < scene->pass->binding_count; i++) {
        const struct cox__extent extent = cox__poison_written(scene, i);
        if (!cox__is_own(&scene->pass->bindings[i]) && extent.end > extent.first &&
            compare_extent(one, other, i, extent, true, spot))
            return true;
    }
    return false;
}

bool cox__compare_all(const struct cox__scene *scene, const struct cox__attempt *one,
                      const struct cox__attempt *other, struct cox__spot *spot)
{
    for (uint32_t i = 0; i < scene->pass->binding_count; i++)
        if (scene->places[i].bytes && !cox__is_own(&scene->pass->bindings[i]) &&
            compare_extent(one, other, i, (struct cox__extent){0, scene->places[i].bytes}, false,
                           spot))
            return true;
    return false;
}

/* ---- bytes that must not change ---- */

/* Add the bytes of an extent that the run changed. */
static void count_changed(const struct cox__attempt *attempt, uint32_t binding, size_t first,
                          size_t end, struct cox__spot *spot)
{
    const unsigned char *now = after(attempt, binding), *was = attempt->before[binding];
    if (memcmp(now + first, was + first, end - first) == 0)
        return;

    for (size_t at = first; at < end; at++)
        if (now[at] != was[at] && !spot->count++)
            spot->offset = at;
}

static void report_write(struct cox__scene *scene, const struct cox__spot *spot)
{
    const struct cox__binding *binding = &scene->pass->bindings[spot->binding];
    const struct cox__place *place = &scene->places[spot->binding];
    const struct cox__where where = cox__finding_where(scene, spot->binding, spot->offset);
    const bool inside = spot->offset >= place->margin &&
                        spot->offset < place->margin + place->middle;
    uint32_t first, end;

    if (binding->access == COX__READ && inside) {
        cox__finding_add(scene, COX__FINDING_WRITES, spot->binding,
                         "writes %s (%zu bytes), which it only reads", where.text, spot->count);
        return;
    }
    if (!cox__by_rows(binding) || cox__is_own(binding)) {
        cox__finding_add(scene, COX__FINDING_WRITES, spot->binding,
                         "writes %s (%zu bytes), outside of its memory of %zu bytes", where.text,
                         spot->count, place->middle);
        return;
    }

    cox__poison_rows(scene, spot->binding, &first, &end);
    cox__finding_add(
        scene, COX__FINDING_WRITES, spot->binding,
        "writes %s (%zu bytes), but the band may only write rows %u to %u; compare the "
        "row with `rows`, and begin at row 0 of the band",
        where.text, spot->count, first - binding->border_above, end - binding->border_above - 1);
}

bool cox__compare_canaries(struct cox__scene *scene, const struct cox__attempt *attempt)
{
    bool any = false;
    for (uint32_t i = 0; i < scene->pass->binding_count; i++) {
        const struct cox__extent allowed = cox__poison_written(scene, i);
        struct cox__spot spot = {.binding = i};
        if (!scene->places[i].bytes)
            continue;

        count_changed(attempt, i, 0, allowed.first, &spot);
        count_changed(attempt, i, allowed.end, scene->places[i].bytes, &spot);
        if (!spot.count)
            continue;

        report_write(scene, &spot);
        any = true;
    }
    return any;
}

/* ---- elements that no work-item writes ---- */

bool cox__compare_is_unwritten(const struct cox__attempt *one, const struct cox__attempt *other,
                               const struct cox__spot *spot)
{
    const uint32_t b = spot->binding;
    return after(one, b)[spot->offset] == one->before[b][spot->offset] &&
           after(other, b)[spot->offset] == other->before[b][spot->offset];
}

/* The frame's rows of a binding. */
static size_t rows_of(const struct cox__scene *scene, uint32_t binding)
{
    return cox__buffer_rows(scene->pass->rows, scene->pass->bindings[binding].row_divisor);
}

/* Byte `at` of a row of the frame. */
static struct cox__spot byte_of(const struct cox__scene *scene, uint32_t binding, size_t row,
                                size_t at)
{
    const struct cox__binding *of = &scene->pass->bindings[binding];
    const size_t begin = cox__row_offset(of, (uint32_t)row + of->border_above);
    return (struct cox__spot){.binding = binding,
                              .offset = scene->places[binding].margin + begin + at};
}

/* Whether byte `at` of some row was written. */
static bool is_used(const struct cox__scene *scene, const struct cox__attempt *one,
                    const struct cox__attempt *other, uint32_t binding, size_t at)
{
    for (size_t row = 0; row < rows_of(scene, binding); row++) {
        const struct cox__spot byte = byte_of(scene, binding, row, at);
        if (!cox__compare_is_unwritten(one, other, &byte))
            return true;
    }
    return false;
}

/* Bytes of a row that the kernels use: up to the last one that is written in some row.
 *
 * If this is a few elements less than a multiple of the pass's columns, the kernels have missed
 * these elements. */
static size_t used_bytes(const struct cox__scene *scene, size_t written, uint32_t binding)
{
    const struct cox__binding *of = &scene->pass->bindings[binding];
    const size_t unit = (size_t)of->element_bytes * scene->pass->stages[0].columns;
    if (!unit)
        return written;

    const size_t full = (written + unit - 1) / unit * unit;
    const size_t few = cox__min_u64(16 * (size_t)of->element_bytes, unit / 8);
    if (full <= of->pitch_bytes && full - written <= few)
        return full;
    return written;
}

/* Find bytes of the binding that no run wrote. Rows may have padding, at their end and inside:
 * bytes that are written in no row. A pitch that is as long as the columns has none. */
static bool find_unwritten(const struct cox__scene *scene, const struct cox__attempt *one,
                           const struct cox__attempt *other, uint32_t binding,
                           struct cox__spot *spot)
{
    const struct cox__binding *of = &scene->pass->bindings[binding];
    const size_t pitch = cox__row_bytes(of);
    size_t written = pitch;
    while (written && !is_used(scene, one, other, binding, written - 1))
        written--;

    const bool padded = written &&
                        (size_t)of->element_bytes * scene->pass->stages[0].columns != pitch;
    const size_t end = padded ? used_bytes(scene, written, binding) : pitch;

    *spot = (struct cox__spot){.binding = binding, .offset = SIZE_MAX};
    for (size_t at = 0; at < end; at++) {
        if (padded && at < written && !is_used(scene, one, other, binding, at))
            continue;

        for (size_t row = 0; row < rows_of(scene, binding); row++) {
            const struct cox__spot byte = byte_of(scene, binding, row, at);
            if (!cox__compare_is_unwritten(one, other, &byte))
                continue;
            spot->count++;
            spot->offset = cox__min_u64(spot->offset, byte.offset);
        }
    }
    return spot->count > 0;
}

bool cox__compare_unwritten(struct cox__scene *scene, const struct cox__attempt *one,
                            const struct cox__attempt *other)
{
    bool any = false;
    for (uint32_t i = 0; i < scene->pass->binding_count; i++) {
        const struct cox__binding *binding = &scene->pass->bindings[i];
        struct cox__spot spot;
        if (!cox__written_by_rows(binding) || cox__check_keeps(binding) ||
            !find_unwritten(scene, one, other, i, &spot))
            continue;

        const struct cox__where where = cox__finding_where(scene, i, spot.offset);
        cox__finding_add(scene, COX__FINDING_UNWRITTEN, i,
                         "leaves %s as it was (%zu bytes in all); write every element, or set "
                         "partial if what was there shall stay",
                         where.text, spot.count);
        any = true;
    }
    return any;
}
