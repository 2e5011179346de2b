/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline.h"

#include <stdlib.h>
#include <string.h>

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint64_t cox__lcm_bounded(uint64_t a, uint64_t b, uint64_t bound)
{
    uint64_t step = b / gcd(a, b);
    return a > bound / step ? bound : a * step;
}

static uint32_t buffer_rows(uint32_t frame_rows, uint32_t divisor)
{
    return frame_rows / divisor + (frame_rows % divisor != 0);
}

size_t cox__binding_bytes(const struct cox__pipeline *pipeline, uint32_t index)
{
    const struct cox_binding *binding = &pipeline->bindings[index];
    return cox__by_rows(binding) ? binding->pitch_bytes * buffer_rows(pipeline->rows, binding->row_divisor)
                                 : binding->bytes;
}

const struct cox_variant *cox__stage_variant(const struct cox_stage *stage, uint32_t device, enum cox_device_type type)
{
    const struct cox_variant *found = NULL;
    int rank = 0;
    for (uint32_t i = 0; i < stage->variant_count; i++) {
        const struct cox_variant *variant = &stage->variants[i];
        int fits = variant->device_plus_1 ? (variant->device_plus_1 == device + 1) * 3
                   : variant->type        ? (variant->type == type) * 2
                                          : 1;
        if (fits > rank) {
            rank = fits;
            found = variant;
        }
    }
    return found;
}

uint32_t cox__pipeline_granule(const struct cox__pipeline *pipeline, uint32_t device,
                               const struct cox_device_info *info)
{
    uint64_t granule = 1, bound = pipeline->rows;
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        if (!cox__by_rows(binding))
            continue;
        uint64_t align = info->base_align_bytes ? info->base_align_bytes : 1;
        uint64_t aligned_rows = align / gcd(binding->pitch_bytes, align);
        granule = cox__lcm_bounded(granule, aligned_rows * binding->row_divisor, bound);
    }
    for (uint32_t i = 0; i < pipeline->stage_count; i++) {
        const struct cox_variant *variant = cox__stage_variant(&pipeline->stages[i], device, info->type);
        if (variant)
            granule = cox__lcm_bounded(granule, (uint64_t)variant->local_rows * variant->item_rows, bound);
    }
    return (uint32_t)granule;
}

void cox__binding_rows(const struct cox__pipeline *pipeline, uint32_t index, uint32_t first_row, uint32_t rows,
                       uint32_t *first, uint32_t *count)
{
    const struct cox_binding *binding = &pipeline->bindings[index];
    uint32_t divisor = binding->row_divisor;
    uint32_t all = buffer_rows(pipeline->rows, divisor);
    uint32_t begin = first_row / divisor;
    uint64_t end = buffer_rows(first_row + rows, divisor);
    if (binding->contract == COX_HALO) {
        uint32_t step = pipeline->granule / divisor ? pipeline->granule / divisor : 1;
        begin = begin > binding->halo_rows ? begin - binding->halo_rows : 0;
        begin -= begin % step;
        end += binding->halo_rows;
    }
    *first = begin;
    *count = (uint32_t)((end < all ? end : all) - begin);
}

/* ---- checking ---- */

static const char *name_of(const struct cox_binding *binding)
{
    return binding->name ? binding->name : "unnamed";
}

#define REFUSE(log, ...) (cox__log(log, COX_LOG_ERROR, __VA_ARGS__), COX_E_INVALID)

static cox_status check_binding(const struct cox_binding *binding, uint32_t index, uint32_t rows, bool allow_in_place,
                                const struct cox__log *log)
{
    const char *name = name_of(binding);
    if ((unsigned)binding->contract > COX_REDUCE || (unsigned)binding->access > COX_READ_WRITE)
        return REFUSE(log, "binding %u (%s): unknown contract or access", index, name);
    if (cox__by_rows(binding)) {
        uint32_t divisor = binding->row_divisor ? binding->row_divisor : 1;
        if (!binding->pitch_bytes || binding->pitch_bytes > SIZE_MAX / 2 / buffer_rows(rows, divisor))
            return REFUSE(log, "binding %u (%s): a pitch of %zu bytes does not work", index, name,
                          binding->pitch_bytes);
        if (binding->contract == COX_HALO && binding->access != COX_READ)
            return REFUSE(log, "binding %u (%s): a HALO binding is never written", index, name);
        if (binding->contract == COX_HALO && binding->halo_rows > INT32_MAX)
            return REFUSE(log, "binding %u (%s): a halo of %u rows does not work", index, name, binding->halo_rows);
        if (binding->access == COX_READ_WRITE && !allow_in_place)
            return REFUSE(log, "binding %u (%s): read and written, but allow_in_place is unset", index, name);
        return COX_OK;
    }
    if (!binding->bytes || binding->bytes > SIZE_MAX / 2)
        return REFUSE(log, "binding %u (%s): a size of %zu bytes does not work", index, name, binding->bytes);
    if (binding->contract == COX_WHOLE && binding->access != COX_READ)
        return REFUSE(log, "binding %u (%s): a WHOLE binding is never written", index, name);
    if (binding->contract == COX_REDUCE && (binding->access != COX_WRITE || !binding->merge))
        return REFUSE(log, "binding %u (%s): a REDUCE binding is written and needs a merge function", index, name);
    return COX_OK;
}

/* Sums over bindings are made in several places; one that wraps would be a buffer too short. */
static cox_status check_sum(const struct cox_session_params *params, const struct cox__log *log)
{
    size_t left = SIZE_MAX / 2;
    for (uint32_t i = 0; i < params->binding_count; i++) {
        const struct cox_binding *binding = &params->bindings[i];
        uint32_t divisor = binding->row_divisor ? binding->row_divisor : 1;
        size_t bytes = cox__by_rows(binding) ? binding->pitch_bytes * buffer_rows(params->rows, divisor)
                                             : binding->bytes;
        if (bytes > left)
            return REFUSE(log, "the bindings together are larger than any memory");
        left -= bytes;
    }
    return COX_OK;
}

static cox_status check_arg(const struct cox_arg *arg, uint32_t stage, uint32_t index,
                            const struct cox_session_params *params, const struct cox__log *log)
{
    switch (arg->kind) {
    case COX_ARG_KIND_BUFFER:
    case COX_ARG_KIND_ORIGIN:
        if (arg->index >= params->binding_count)
            return REFUSE(log, "stage %u, argument %u: there is no binding %u", stage, index, arg->index);
        return COX_OK;
    case COX_ARG_KIND_PARAMS:
        if (!arg->bytes || arg->offset > params->params_bytes || arg->bytes > params->params_bytes - arg->offset)
            return REFUSE(log, "stage %u, argument %u: outside the %zu bytes of parameters", stage, index,
                          params->params_bytes);
        return COX_OK;
    case COX_ARG_KIND_LOCAL:
        if (!arg->bytes)
            return REFUSE(log, "stage %u, argument %u: local memory of 0 bytes", stage, index);
        return COX_OK;
    case COX_ARG_KIND_FIRST:
    case COX_ARG_KIND_ROWS:
    case COX_ARG_KIND_FRAME:
    case COX_ARG_KIND_COLUMNS:
        return COX_OK;
    }
    return REFUSE(log, "stage %u, argument %u: unknown kind %d", stage, index, (int)arg->kind);
}

static cox_status check_stage(const struct cox_stage *stage, uint32_t index, const struct cox_session_params *params,
                              const struct cox__log *log)
{
    if (!stage->kernel || !*stage->kernel)
        return REFUSE(log, "stage %u has no kernel name", index);
    if (stage->columns > INT32_MAX)
        return REFUSE(log, "stage %u (%s) has %u columns", index, stage->kernel, stage->columns);
    for (uint32_t v = 0; v < stage->variant_count; v++) {
        const struct cox_variant *variant = &stage->variants[v];
        if (!variant->source || variant->local_columns > 65536 || variant->local_rows > 65536 ||
            variant->item_columns > 65536 || variant->item_rows > 65536)
            return REFUSE(log, "stage %u (%s), variant %u: no source, or an absurd local or item size", index,
                          stage->kernel, v);
    }
    for (uint32_t a = 0; a < stage->arg_count; a++) {
        cox_status status = check_arg(&stage->args[a], index, a, params, log);
        if (status)
            return status;
    }
    return COX_OK;
}

static cox_status check(const struct cox_session_params *params, const struct cox__log *log)
{
    if (!params->rows || params->rows > INT32_MAX)
        return REFUSE(log, "a frame of %u rows does not work", params->rows);
    if (params->params_bytes > COX_PARAMS_MAX)
        return REFUSE(log, "%zu bytes of parameters are more than %d", params->params_bytes, COX_PARAMS_MAX);
    for (uint32_t i = 0; i < params->binding_count; i++) {
        cox_status status = check_binding(&params->bindings[i], i, params->rows, params->allow_in_place, log);
        if (status)
            return status;
    }
    cox_status status = check_sum(params, log);
    if (status)
        return status;
    for (uint32_t i = 0; i < params->stage_count; i++) {
        status = check_stage(&params->stages[i], i, params, log);
        if (status)
            return status;
    }
    return COX_OK;
}

/* ---- copying ---- */

static bool copy_variants(struct cox_stage *to, const struct cox_stage *from)
{
    struct cox_variant *variants = calloc(from->variant_count, sizeof *variants);
    to->variants = variants;
    if (!variants)
        return false;
    to->variant_count = from->variant_count;
    for (uint32_t v = 0; v < from->variant_count; v++) {
        const struct cox_variant *source = &from->variants[v];
        variants[v] = *source;
        variants[v].source = strdup(source->source);
        variants[v].options = strdup(source->options ? source->options : "");
        uint32_t *sizes[] = {&variants[v].local_columns, &variants[v].local_rows, &variants[v].item_columns,
                             &variants[v].item_rows};
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            if (!*sizes[s])
                *sizes[s] = 1;
        if (!variants[v].source || !variants[v].options)
            return false;
    }
    return true;
}

static bool copy_stage(struct cox_stage *to, const struct cox_stage *from)
{
    to->columns = from->columns ? from->columns : 1;
    to->arg_count = from->arg_count;
    to->kernel = strdup(from->kernel);
    struct cox_arg *args = calloc(from->arg_count ? from->arg_count : 1, sizeof *args);
    to->args = args;
    if (args && from->arg_count)
        memcpy(args, from->args, from->arg_count * sizeof *args);
    return to->kernel && args && copy_variants(to, from);
}

cox_status cox__pipeline_init(struct cox__pipeline *out, const struct cox_session_params *params,
                              const struct cox__log *log)
{
    memset(out, 0, sizeof *out);
    cox_status status = check(params, log);
    if (status)
        return status;
    out->rows = params->rows;
    out->granule = 1;
    out->params_bytes = params->params_bytes;
    for (uint32_t i = 0; i < params->binding_count; i++) {
        struct cox_binding *binding = &out->bindings[i];
        *binding = params->bindings[i];
        out->binding_count++;
        if (!binding->row_divisor)
            binding->row_divisor = 1;
        out->in_place |= binding->access == COX_READ_WRITE;
        binding->name = strdup(name_of(&params->bindings[i]));
        if (!binding->name)
            goto fail;
    }
    for (uint32_t i = 0; i < params->stage_count; i++) {
        out->stage_count++;
        if (!copy_stage(&out->stages[i], &params->stages[i]))
            goto fail;
    }
    return COX_OK;

fail:
    cox__pipeline_clear(out);
    return COX_E_NOMEM;
}

void cox__pipeline_clear(struct cox__pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->binding_count; i++)
        free((char *)pipeline->bindings[i].name);
    for (uint32_t i = 0; i < pipeline->stage_count; i++) {
        struct cox_stage *stage = &pipeline->stages[i];
        for (uint32_t v = 0; v < stage->variant_count; v++) {
            free((char *)stage->variants[v].source);
            free((char *)stage->variants[v].options);
        }
        free((struct cox_variant *)stage->variants);
        free((struct cox_arg *)stage->args);
        free((char *)stage->kernel);
    }
    memset(pipeline, 0, sizeof *pipeline);
}
