/* The plan of a filter or an operator: its bindings, passes and stages in a session's storage.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct cox__plan) <= sizeof(struct cox__pipeline_storage), "fits");

enum { SIDE_MAX = 65536, SCRATCH_ALIGN = 512, GROUP = 256, GROUP_LEAST = 32, GROUP_MOST = 1024 };

size_t cox__plan_sample_bytes(const struct cox_filter_shape *shape)
{
    static const size_t bytes[] = {[COX_FILTER_FLOAT] = 4, [COX_FILTER_8] = 1, [COX_FILTER_16] = 2};
    return bytes[shape->sample];
}

size_t cox__plan_input_bytes(const struct cox_filter_shape *shape)
{
    return cox__plan_columns(shape) * cox__plan_sample_bytes(shape);
}

bool cox__plan_pitch_ok(size_t pitch_bytes, size_t row_bytes)
{
    return pitch_bytes >= row_bytes && pitch_bytes % 4 == 0 && pitch_bytes <= INT32_MAX;
}

cox_status cox__plan_shape(struct cox_filter_shape *to, const struct cox_filter_shape *from)
{
    if (!from)
        return COX_E_INVALID;

    *to = *from;
    if (!to->channels)
        to->channels = 1;
    if (!to->group)
        to->group = GROUP;

    if (!to->width || !to->height || to->width > SIDE_MAX || to->height > SIDE_MAX ||
        to->channels > 4 || (unsigned)to->sample > COX_FILTER_16 ||
        (unsigned)to->edge > COX_FILTER_ZERO || (unsigned)to->form > COX_FILTER_EXCHANGE ||
        to->group < GROUP_LEAST || to->group > GROUP_MOST || (to->group & (to->group - 1)))
        return COX_E_INVALID;

    const size_t row_bytes = cox__plan_input_bytes(to);
    if (!cox__plan_pitch_ok(to->in_pitch_bytes, row_bytes) ||
        (to->guide_pitch_bytes && !cox__plan_pitch_ok(to->guide_pitch_bytes, row_bytes)))
        return COX_E_INVALID;
    return COX_OK;
}

size_t cox__plan_scratch_pitch(size_t row_bytes)
{
    return (row_bytes + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
}

struct cox__plan *cox__plan_begin(void *storage, const struct cox__session_spec *session,
                                  uint32_t rows)
{
    struct cox__plan *plan = storage;
    if (!storage || !session)
        return NULL;

    memset(plan, 0, sizeof *plan);
    plan->rows = rows;
    return plan;
}

uint32_t cox__plan_binding(struct cox__plan *plan, const char *name, enum cox__access access,
                           size_t pitch_bytes, uint32_t rows, bool scratch)
{
    plan->bindings[plan->binding_count] = (struct cox__binding){.name = name,
                                                                .row_access = COX__ROWS,
                                                                .access = access,
                                                                .pitch_bytes = pitch_bytes,
                                                                .bytes = pitch_bytes * rows,
                                                                .scratch = scratch};
    return plan->binding_count++;
}

void cox__plan_row_bytes(struct cox__plan *plan, uint32_t binding, size_t row_bytes)
{
    plan->bindings[binding].row_bytes = row_bytes;
}

void cox__plan_pass(struct cox__plan *plan, const char *name, uint32_t rows)
{
    plan->passes[plan->pass_count] = (struct cox__pass_spec){
        .name = name,
        .rows = rows,
        .uses = plan->uses[plan->pass_count],
        .stages = &plan->stages[plan->stage_count]};
    plan->pass_count++;
}

void cox__plan_use(struct cox__plan *plan, uint32_t binding, enum cox__row_access contract,
                   enum cox__access access, uint32_t halo_rows)
{
    struct cox__pass_spec *pass = &plan->passes[plan->pass_count - 1];

    if (contract == COX__WHOLE && !plan->bindings[binding].scratch)
        plan->bindings[binding].row_access = COX__WHOLE; /* with its own number of rows */

    if (halo_rows > pass->rows)
        halo_rows = pass->rows;

    /* Scratch has bytes behind its rows that no kernel writes. */
    enum cox__coverage coverage = COX__COVERS_UNKNOWN;
    if (access == COX__WRITE && !plan->bindings[binding].scratch)
        coverage = COX__COVERS_ALL;

    plan->uses[plan->pass_count - 1][pass->use_count++] = (struct cox__pass_binding){
        .binding = binding,
        .row_access = contract,
        .access = access,
        .coverage = coverage,
        .halo_rows = halo_rows};
}

void cox__plan_divide(struct cox__plan *plan, uint32_t row_divisor)
{
    const struct cox__pass_spec *pass = &plan->passes[plan->pass_count - 1];
    plan->uses[plan->pass_count - 1][pass->use_count - 1].row_divisor = row_divisor;
}

/* Without warnings (-w): for each of them PoCL's compiler writes to standard error, which no log
 * can catch. */
static struct cox__variant make_variant(char options[COX__PLAN_OPTIONS], enum cox_device_type type,
                                        const char *source, const struct cox__form *form)
{
    snprintf(options, COX__PLAN_OPTIONS, "-w -DCOX_WIDTH=%d %s", form->vector, form->options);

    struct cox__variant variant = {.type = type,
                                   .source = source,
                                   .options = options,
                                   .local_columns = form->local_columns,
                                   .local_rows = form->local_rows,
                                   .item_columns = form->item_columns,
                                   .item_rows = form->item_rows,
                                   .any_local = true};
    if (!variant.local_columns && !variant.local_rows)
        variant.local_columns = 1;
    return variant;
}

uint32_t cox__plan_add_stage(struct cox__plan *plan, const char *kernel, uint32_t columns,
                             uint32_t arg_count)
{
    const uint32_t s = plan->stage_count++;
    plan->stages[s] = (struct cox__stage){.kernel = kernel,
                                          .columns = columns,
                                          .variants = plan->variants[s],
                                          .variant_count = 2,
                                          .args = plan->args[s],
                                          .arg_count = arg_count};

    if (plan->pass_count)
        plan->passes[plan->pass_count - 1].stage_count++;
    return s;
}

void cox__plan_stage(struct cox__plan *plan, const char *kernel, const char *source,
                     uint32_t columns, const uint32_t *bindings, uint32_t binding_count,
                     size_t params_offset, size_t params_bytes, const struct cox__form *cpu,
                     const struct cox__form *gpu)
{
    const uint32_t s = cox__plan_add_stage(plan, kernel, columns, 2 * binding_count + 3);
    uint32_t args = 0;

    for (uint32_t b = 0; b < binding_count; b++)
        plan->args[s][args++] = (struct cox__arg)COX__ARG_BUFFER(bindings[b]);
    for (uint32_t b = 0; b < binding_count; b++)
        plan->args[s][args++] = (struct cox__arg)COX__ARG_ORIGIN(bindings[b]);

    plan->args[s][args++] = (struct cox__arg){COX__ARG_KIND_PARAMS, 0, params_offset, params_bytes};
    plan->args[s][args++] = (struct cox__arg)COX__ARG_FIRST_ROW;
    plan->args[s][args++] = (struct cox__arg)COX__ARG_ROWS;

    plan->variants[s][0] = make_variant(plan->options[s][0], COX_DEVICE_CPU, source, cpu);
    plan->variants[s][1] = make_variant(plan->options[s][1], 0, source, gpu);
}

/* --- Two steps --- */

static bool overlaps(const struct cox_filter_shape *shape)
{
    return shape->form == COX_FILTER_OVERLAP;
}

uint32_t cox__plan_sums(struct cox__plan *plan, const struct cox_filter_shape *shape,
                        const char *name, size_t pitch_bytes)
{
    const enum cox__access access = overlaps(shape) ? COX__READ_WRITE : COX__WRITE;
    return cox__plan_binding(plan, name, access, pitch_bytes, shape->height, true);
}

void cox__plan_first_step(struct cox__plan *plan, const struct cox_filter_shape *shape,
                          const char *both, const char *first)
{
    cox__plan_pass(plan, overlaps(shape) ? both : first, shape->height);
}

void cox__plan_first_reads(struct cox__plan *plan, const struct cox_filter_shape *shape,
                           uint32_t binding)
{
    cox__plan_use(plan, binding, overlaps(shape) ? COX__HALO : COX__ROWS, COX__READ, 0);
}

void cox__plan_first_writes(struct cox__plan *plan, const struct cox_filter_shape *shape,
                            uint32_t sums)
{
    if (overlaps(shape))
        cox__plan_use(plan, sums, COX__HALO, COX__READ_WRITE, shape->radius_y);
    else
        cox__plan_use(plan, sums, COX__ROWS, COX__WRITE, 0);
}

void cox__plan_second_step(struct cox__plan *plan, const struct cox_filter_shape *shape,
                           const char *second, uint32_t sums)
{
    if (overlaps(shape))
        return;

    cox__plan_pass(plan, second, shape->height);
    cox__plan_use(plan, sums, COX__HALO, COX__READ, shape->radius_y);
}

/* --- The end --- */

void cox__plan_params(struct cox_constants *to, const void *from, size_t bytes)
{
    memset(to, 0, sizeof *to);
    memcpy(to, from, bytes);
}

void cox__plan_end(const struct cox__plan *plan, size_t params_bytes,
                   struct cox__session_spec *session)
{
    session->rows = plan->rows;
    session->bindings = plan->bindings;
    session->binding_count = plan->binding_count;
    session->passes = plan->passes;
    session->pass_count = plan->pass_count;
    session->params_bytes = params_bytes;
}
