/* SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "fake_backend.h"
#include "fake_handover.h"
#include <stdlib.h>
#include <string.h>

struct fake_handover {
    struct fake_handover *next;
    const void *frame, *session;
    uint64_t index;
    uint32_t pass;
    size_t rows[COX_BUFFERS_MAX];
    bool *there[COX_BUFFERS_MAX]; /* one for each row */
};

static bool is_written(const struct cox__binding *binding)
{
    return binding->row_access == COX__ROWS && binding->access != COX__READ;
}

static void clear(struct fake_handover *of)
{
    for (uint32_t i = 0; i < COX_BUFFERS_MAX; i++) {
        free(of->there[i]);
        of->there[i] = NULL;
        of->rows[i] = 0;
    }
    of->pass = 0;
}

static struct fake_handover *find(struct fake_handover *all, const void *frame)
{
    while (all && all->frame != frame)
        all = all->next;
    return all;
}

/* Buffer rows that the band uses. */
static void rows_of(const struct cox__pipeline *pipeline, const struct fake_handover_band *band, uint32_t binding,
                    size_t all, size_t *first, size_t *count)
{
    const struct cox__pass *pass = &pipeline->passes[band->pass];
    uint32_t begin = 0, rows = (uint32_t)all;
    if (cox__by_rows(&pass->bindings[binding]))
        cox__pipeline_binding_rows(pass, binding, band->first_row, band->rows, &begin, &rows);
    *first = begin;
    *count = rows;
}

static bool is_written_before(const struct cox__pipeline *pipeline, uint32_t pass, uint32_t binding)
{
    bool any = false;
    for (uint32_t p = 0; p < pass; p++)
        any |= is_written(&pipeline->passes[p].bindings[binding]);
    return any;
}

/* Record whether the rows that the band writes are there. Rows changed in place always are. */
static void mark(struct fake_handover *of, const struct cox__pipeline *pipeline, const struct fake_handover_band *band,
                 bool there)
{
    const struct cox__pass *pass = &pipeline->passes[band->pass];
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        if (!is_written(&pass->bindings[i]) || is_written_before(pipeline, band->pass, i))
            continue;
        const size_t rows = cox__buffer_rows(pass->rows, pass->bindings[i].row_divisor);
        if (of->rows[i] != rows) { /* not seen yet, or left by another session at this address */
            free(of->there[i]);
            of->rows[i] = rows;
            of->there[i] = must(calloc(of->rows[i], sizeof *of->there[i]));
        }
        size_t first, count;
        rows_of(pipeline, band, i, of->rows[i], &first, &count);
        for (size_t r = first; r < first + count; r++)
            of->there[i][r] = there;
    }
}

/* Whether all rows are there that the band reads of a binding that an earlier pass writes. */
static bool finds(const struct fake_handover *of, const struct cox__pipeline *pipeline,
                  const struct fake_handover_band *band, uint32_t binding)
{
    const struct cox__binding *its = &pipeline->passes[band->pass].bindings[binding];
    bool all = true;
    if (!is_written_before(pipeline, band->pass, binding) || !cox__is_shared(its) || its->access == COX__WRITE)
        return true;
    size_t first, count;
    rows_of(pipeline, band, binding, of->rows[binding], &first, &count);
    if (first + count > of->rows[binding])
        return false;
    for (size_t r = first; r < first + count; r++)
        all = all && of->there[binding][r];
    return all;
}

uint32_t fake_handover_begin(struct fake_handover **all, const struct cox__pipeline *pipeline,
                             const struct fake_handover_band *band)
{
    struct fake_handover *of = find(*all, band->frame);
    if (!of) {
        of = must(calloc(1, sizeof *of));
        of->next = *all;
        of->frame = band->frame;
        *all = of;
    }
    if (of->session != band->session || of->index != band->index ||
        band->pass < of->pass) /* another frame, or the same one again */
        clear(of);
    of->session = band->session;
    of->index = band->index;
    of->pass = band->pass;
    uint32_t missing = 0;
    while (missing < pipeline->binding_count && finds(of, pipeline, band, missing))
        missing++;
    mark(of, pipeline, band, false);
    return missing < pipeline->binding_count ? missing : COX_BUFFERS_MAX;
}

void fake_handover_end(struct fake_handover *all, const struct cox__pipeline *pipeline,
                       const struct fake_handover_band *band)
{
    struct fake_handover *of = find(all, band->frame);
    if (of && of->session == band->session && of->index == band->index && of->pass == band->pass)
        mark(of, pipeline, band, true);
}

void fake_handover_free(struct fake_handover **all)
{
    for (struct fake_handover *of; (of = *all);) {
        *all = of->next;
        clear(of);
        free(of);
    }
}
