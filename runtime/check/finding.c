/* The log lines of check mode.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

int64_t cox__finding_row(const struct cox__scene *scene, uint32_t index, size_t offset)
{
    const struct cox__binding *binding = &scene->pass->bindings[index];
    const int64_t pitch = (int64_t)binding->pitch_bytes;
    if (!cox__by_rows(binding))
        return 0;

    const int64_t begin = (int64_t)(scene->places[index].margin + binding->offset_bytes);
    const int64_t distance = (int64_t)offset - begin;
    int64_t row = distance / pitch - binding->border_above;
    if (distance % pitch < 0)
        row--;

    if (cox__is_own(binding) && !cox__from_start(scene->pass, index)) {
        uint32_t first, count;
        cox__pipeline_binding_rows(scene->pass, index, scene->first_row, scene->rows, &first,
                                   &count);
        row += first;
    }
    return row;
}

struct cox__where cox__finding_where(const struct cox__scene *scene, uint32_t index, size_t offset)
{
    const struct cox__binding *binding = &scene->pass->bindings[index];
    const char *name = cox__binding_name(&scene->check->pipeline.bindings[index]);
    const int64_t distance = (int64_t)offset - (int64_t)scene->places[index].margin;
    struct cox__where where;

    if (!cox__by_rows(binding)) {
        snprintf(where.text, sizeof where.text, "byte %" PRId64 " of buffer %s", distance, name);
        return where;
    }

    const int64_t pitch = (int64_t)binding->pitch_bytes;
    int64_t column = (distance - (int64_t)binding->offset_bytes) % pitch;
    if (column < 0)
        column += pitch;
    snprintf(where.text, sizeof where.text, "row %" PRId64 ", byte %" PRId64 " of buffer %s",
             cox__finding_row(scene, index, offset), column, name);
    return where;
}

/* The bands of the split under way: "bands at rows 0 16 48". */
static void write_bands(const struct cox__scene *scene, char *text, size_t bytes)
{
    if (scene->cut_count < 2) {
        snprintf(text, bytes, "one band");
        return;
    }

    size_t used = (size_t)snprintf(text, bytes, "bands at rows");
    for (uint32_t c = 0; c < scene->cut_count && used < bytes; c++)
        used += (size_t)snprintf(text + used, bytes - used, " %u", scene->cuts[c]);
}

void cox__finding_add(struct cox__scene *scene, enum cox__finding_kind kind, uint32_t binding,
                      const char *format, ...)
{
    struct cox__findings *findings = scene->findings;
    uint32_t *reported = &findings->reported[scene->number][kind];
    const bool is_new = !(*reported >> binding & 1);
    *reported |= UINT32_C(1) << binding;
    if (!is_new || findings->count++ >= COX__FINDINGS_MAX)
        return;

    char text[600], bands[160];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);

    write_bands(scene, bands, sizeof bands);
    cox__log(scene->check->log, COX_LOG_ERROR,
             "check: pass %u (%s) %s [frame %" PRIu64 ", %s, rows %u to %u of %u, %s]",
             scene->number, scene->pass->name, text, scene->check->frame, scene->device->name,
             scene->first_row, scene->first_row + scene->rows - 1, scene->pass->rows, bands);
}
