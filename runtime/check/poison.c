/* The memory of runs: how it is laid out, and what it holds before a run.
 *
 * A margin is as large as the buffer with one row for each row of the pass. A kernel that takes
 * frame rows for rows of its band then stays in the margin.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"
#include "base/bounds.h"

#include <stdlib.h>
#include <string.h>

/* Alignment of what kernels are given, at least; and the bounds of a margin. */
enum { ALIGN = 4096, MARGIN_MIN = 64 << 10, MARGIN_MAX = 64 << 20 };

/* Splitmix64 (Steele, Lea and Flood, 2014). */
uint64_t cox__poison_random(uint64_t salt)
{
    uint64_t z = salt + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- layout ---- */

static size_t margin_of(const struct cox__pass *pass, const struct cox__binding *binding,
                        size_t middle, size_t align)
{
    uint64_t margin = middle;
    if (cox__by_rows(binding))
        margin = (uint64_t)binding->pitch_bytes * pass->rows;

    margin = cox__min_u64(margin, MARGIN_MAX) + MARGIN_MIN;
    return (margin + align - 1) / align * align;
}

void cox__poison_places(struct cox__scene *scene)
{
    const struct cox__pass *pass = scene->pass;
    const struct cox__check *check = scene->check;
    size_t align = ALIGN;

    /* All devices get the same layout, so that their results can be compared. */
    for (uint32_t d = 0; d < check->device_count; d++) {
        struct cox_device_info info;
        check->backend->ops->device_info(check->backend, check->devices[d].device, &info);
        align = cox__max_u64(align, info.base_align_bytes);
    }

    scene->positions = 0;
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        struct cox__place *place = &scene->places[i];
        *place = (struct cox__place){0};
        if (binding->row_access == COX__UNUSED)
            continue;

        place->middle = cox__pass_bytes(pass, i);
        place->margin = margin_of(pass, binding, place->middle, align);
        place->bytes = (place->middle + 2 * place->margin + 7) / 8 * 8;
        place->position = scene->positions;
        scene->positions += place->bytes;
    }
}

/* ---- attempts ---- */

cox_status cox__poison_attempt_make(const struct cox__scene *scene, struct cox__attempt *attempt)
{
    *attempt = (struct cox__attempt){.lost = false};
    for (uint32_t i = 0; i < scene->pass->binding_count; i++) {
        const size_t bytes = scene->places[i].bytes;
        if (!bytes)
            continue;

        attempt->before[i] = malloc(bytes);
        attempt->trial.memories[i].data = malloc(bytes);
        attempt->trial.memories[i].bytes = bytes;
        if (attempt->before[i] && attempt->trial.memories[i].data)
            continue;

        cox__log(scene->check->log, COX_LOG_ERROR, "check: no memory for runs of %zu bytes", bytes);
        cox__poison_attempt_free(attempt);
        return COX_E_NOMEM;
    }
    return COX_OK;
}

void cox__poison_attempt_free(struct cox__attempt *attempt)
{
    for (uint32_t i = 0; i < COX_BUFFERS_MAX; i++) {
        free(attempt->before[i]);
        if (!attempt->lost)
            free(attempt->trial.memories[i].data);
    }
    *attempt = (struct cox__attempt){.lost = false};
}

/* ---- content ---- */

/* Fill a place with poison. */
static void fill_poison(unsigned char *data, const struct cox__place *place,
                        const struct cox__poison *poison)
{
    uint64_t inverted = 0; /* the first bytes of the place */
    if (poison->inverted > place->position)
        inverted = cox__min_u64(poison->inverted - place->position, place->bytes);

    const uint64_t from = poison->seed + place->position / 8;
    for (size_t at = 0; at < place->bytes; at += 8) {
        uint64_t word = (from + at / 8) * 0x9e3779b97f4a7c15u;
        word ^= word >> 29;
        memcpy(data + at, &word, 8);
    }

    for (size_t at = 0; at < inverted; at++)
        data[at] = (unsigned char)~data[at];
}

void cox__poison_rows(const struct cox__scene *scene, uint32_t index, uint32_t *first,
                      uint32_t *end)
{
    const struct cox__binding *binding = &scene->pass->bindings[index];
    const uint32_t divisor = binding->row_divisor;
    const uint32_t above = binding->border_above;
    const uint64_t all = (uint64_t)cox__buffer_rows(scene->pass->rows, divisor) + above +
                         binding->border_below;

    *first = scene->first_row / divisor + above;
    *end = cox__buffer_rows(scene->first_row + scene->rows, divisor) + above;
    if (binding->row_access != COX__HALO)
        return;

    *first -= cox__min_u32(*first, binding->halo_above);
    *end = (uint32_t)cox__min_u64((uint64_t)*end + binding->halo_below, all);
}

struct cox__extent cox__poison_written(const struct cox__scene *scene, uint32_t index)
{
    const struct cox__binding *binding = &scene->pass->bindings[index];
    const struct cox__place *place = &scene->places[index];
    uint32_t first, end;

    if (!place->bytes)
        return (struct cox__extent){0, 0};
    if (binding->row_access == COX__REDUCE)
        return (struct cox__extent){place->margin, place->margin + place->middle};

    if (cox__is_own(binding)) {
        uint32_t count;
        cox__pipeline_binding_rows(scene->pass, index, scene->first_row, scene->rows, &first,
                                   &count);
        if (!cox__from_start(scene->pass, index))
            first = 0;
        return (struct cox__extent){place->margin + first * binding->pitch_bytes,
                                    place->margin + (first + count) * binding->pitch_bytes};
    }

    if (!cox__written_by_rows(binding))
        return (struct cox__extent){0, 0};
    cox__poison_rows(scene, index, &first, &end);
    return (struct cox__extent){place->margin + cox__row_offset(binding, first),
                                place->margin + cox__row_offset(binding, end)};
}

/* Put what the band may read into a binding's memory. */
static void fill_content(const struct cox__scene *scene, uint32_t index, unsigned char *data)
{
    const struct cox__binding *binding = &scene->pass->bindings[index];
    const struct cox__place *place = &scene->places[index];
    const unsigned char *content = scene->buffers[index];

    if (binding->row_access == COX__REDUCE) {
        memset(data + place->margin, 0, place->middle);
        return;
    }
    if (binding->row_access == COX__WHOLE) {
        memcpy(data + place->margin, content, place->middle);
        return;
    }
    if (cox__is_own(binding) || (binding->access == COX__WRITE && !cox__check_keeps(binding)))
        return;

    uint32_t first, end;
    cox__poison_rows(scene, index, &first, &end);
    size_t from = cox__row_offset(binding, first);
    size_t to = cox__row_offset(binding, end);
    if (binding->reads_all) {
        from = 0;
        to = place->middle;
    }
    memcpy(data + place->margin + from, content + from, to - from);
}

/* Which part of its memory the kernels are given for a binding. A buffer that devices keep between
 * passes is sometimes given whole: every second split does so. */
static void give(const struct cox__scene *scene, uint32_t index, struct cox__trial_memory *memory)
{
    const struct cox__binding *binding = &scene->pass->bindings[index];
    const struct cox__place *place = &scene->places[index];

    memory->start = place->margin;
    memory->span = place->middle;
    memory->origin = 0;
    const bool kept = scene->check->pipeline.resident >> index & 1;
    if (!cox__by_rows(binding) || (kept && scene->cut_count % 2) ||
        cox__from_start(scene->pass, index))
        return;

    uint32_t count;
    cox__pipeline_binding_rows(scene->pass, index, scene->first_row, scene->rows, &memory->origin,
                               &count);
    memory->span = count * binding->pitch_bytes;
    if (!cox__is_own(binding))
        memory->start += cox__row_offset(binding, memory->origin);
}

cox_status cox__poison_run(struct cox__scene *scene, struct cox__attempt *attempt,
                           const struct cox__poison *poison)
{
    struct cox__trial *trial = &attempt->trial;
    trial->pass = scene->number;
    trial->first_row = scene->first_row;
    trial->rows = scene->rows;
    trial->params = scene->params;

    for (uint32_t i = 0; i < scene->pass->binding_count; i++) {
        if (!scene->places[i].bytes)
            continue;

        fill_poison(attempt->before[i], &scene->places[i], poison);
        fill_content(scene, i, attempt->before[i]);
        memcpy(trial->memories[i].data, attempt->before[i], scene->places[i].bytes);
        give(scene, i, &trial->memories[i]);
    }

    struct cox__backend *backend = scene->check->backend;
    const cox_status status = backend->ops->trial_run(backend, scene->device->instance, trial);
    if (status == COX_E_DEVICE_LOST) {
        attempt->lost = true;
        scene->device->instance = NULL;
    }
    return status;
}
