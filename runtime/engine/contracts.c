/* Checks what an application declares about bindings, passes and stages. First each pass alone,
 * then all passes together. The first error goes to the log, with its pass, stage and argument.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contracts.h"
#include "base/bounds.h"
#include "binding.h"

#include <stdio.h>
#include <string.h>

enum { SIDE_MAX = 65536 }; /* of a work-group, and of a work-item's area */

#define REFUSE(log, ...) (cox__log(log, COX_LOG_ERROR, __VA_ARGS__), COX_E_INVALID)

static const char *const row_access_names[] = {"ROWS", "HALO", "WHOLE", "REDUCE"};

/* One pass while it is checked. */
struct check {
    const struct cox__session_spec *params;
    const struct cox__pass_spec *pass;
    uint32_t rows;
    struct cox__binding bindings[COX_BUFFERS_MAX]; /* as the pass touches them */
    const struct cox__log *log;
    char where[80]; /* "pass 1 (blur), "; empty if there is only one pass */
};

/* Refuse a pitch of 0, and one with which `rows` rows exceed the size of a buffer. */
static cox_status check_pitch(const struct cox__binding *binding, uint32_t index, uint32_t rows,
                              const struct cox__log *log)
{
    const uint32_t divisor = cox__row_divisor(binding->row_divisor);
    const uint64_t all = (uint64_t)cox__buffer_rows(rows, divisor) + binding->border_above +
                         binding->border_below;
    const size_t most = SIZE_MAX / 2 / all;
    if (all > INT32_MAX || binding->offset_bytes > SIZE_MAX / 4)
        return REFUSE(log,
                      "buffer %u (%s): %llu rows with its border, and %zu bytes before them; "
                      "allowed: up to %d and %zu",
                      index, cox__binding_name(binding), (unsigned long long)all,
                      binding->offset_bytes, INT32_MAX, SIZE_MAX / 4);
    if (!binding->pitch_bytes || binding->pitch_bytes > most)
        return REFUSE(log, "buffer %u (%s): a pitch of %zu bytes; allowed: 1 to %zu", index,
                      cox__binding_name(binding), binding->pitch_bytes, most);
    if (binding->row_bytes > binding->pitch_bytes)
        return REFUSE(log, "buffer %u (%s): rows of %zu bytes; allowed: 0 to the pitch, %zu", index,
                      cox__binding_name(binding), binding->row_bytes, binding->pitch_bytes);

    return COX_OK;
}

/* Refuse an unknown coverage, and COVERS_SOME of what is not written by rows. */
static cox_status check_coverage(const struct cox__binding *binding, uint32_t index,
                                 const struct cox__log *log)
{
    if ((unsigned)binding->coverage > COX__COVERS_SOME)
        return REFUSE(log, "buffer %u (%s): unknown coverage %d; allowed: 0 to %d", index,
                      cox__binding_name(binding), (int)binding->coverage, COX__COVERS_SOME);
    if (binding->coverage == COX__COVERS_SOME && !cox__written_by_rows(binding))
        return REFUSE(
            log,
            "buffer %u (%s) is partial, which needs row access ROWS, not %s, and a kernel "
            "that writes it",
            index, cox__binding_name(binding), row_access_names[binding->row_access]);

    return COX_OK;
}

/* Refuse a border, or bytes before the rows, where there is no use for them. */
static cox_status check_border(const struct cox__binding *binding, uint32_t index,
                               const struct cox__log *log)
{
    if (cox__is_own(binding) &&
        (binding->offset_bytes || binding->border_above || binding->border_below))
        return REFUSE(log,
                      "buffer %u (%s) is handed on to a fused pass, so it has neither border nor "
                      "offset_bytes",
                      index, cox__binding_name(binding));
    if (cox__has_gaps(binding) && binding->offset_bytes % binding->pitch_bytes)
        return REFUSE(log,
                      "buffer %u (%s): offset_bytes is %zu; with row_bytes it must be a multiple "
                      "of the pitch, %zu",
                      index, cox__binding_name(binding), binding->offset_bytes,
                      binding->pitch_bytes);

    return COX_OK;
}

/* Halo rows on the side that has more. */
static uint32_t most_halo(const struct cox__binding *binding)
{
    return cox__max_u32(binding->halo_rows, cox__max_u32(binding->halo_above, binding->halo_below));
}

static cox_status check_binding(const struct cox__binding *binding, uint32_t index, uint32_t rows,
                                bool allow_in_place, const struct cox__log *log)
{
    const char *name = cox__binding_name(binding);

    if ((unsigned)binding->row_access > COX__REDUCE || (unsigned)binding->access > COX__READ_WRITE)
        return REFUSE(
            log, "buffer %u (%s): unknown row access %d or access %d; allowed: 0 to %d and 0 to %d",
            index, name, (int)binding->row_access, (int)binding->access, COX__REDUCE,
            COX__READ_WRITE);

    const cox_status covered = check_coverage(binding, index, log);
    if (covered)
        return covered;
    const uint32_t halo = most_halo(binding);
    if (halo && binding->row_access != COX__HALO)
        return REFUSE(log, "buffer %u (%s): halo_rows is %u, which needs row access HALO, not %s",
                      index, name, halo, row_access_names[binding->row_access]);
    if (binding->reads_all &&
        (binding->row_access != COX__ROWS || binding->access != COX__READ_WRITE))
        return REFUSE(log, "buffer %u (%s): reads_all needs row access ROWS and access READ_WRITE",
                      index, name);
    if (cox__by_rows(binding)) {
        cox_status status = check_pitch(binding, index, rows, log);
        if (status == COX_OK)
            status = check_border(binding, index, log);
        if (status)
            return status;
        if (binding->row_access == COX__HALO && binding->access != COX__READ &&
            !(binding->scratch && binding->access == COX__READ_WRITE))
            return REFUSE(
                log,
                "buffer %u (%s): row access HALO, but it is written; only scratch with READ_WRITE "
                "may be",
                index, name);
        if (binding->row_access == COX__HALO && halo > INT32_MAX)
            return REFUSE(log, "buffer %u (%s): halo_rows is %u; allowed: 0 to %d", index, name,
                          halo, INT32_MAX);
        if (binding->row_access == COX__ROWS && binding->access == COX__READ_WRITE &&
            !allow_in_place)
            return REFUSE(log, "buffer %u (%s): access READ_WRITE needs allow_in_place", index,
                          name);

        return COX_OK;
    }

    if (!binding->bytes || binding->bytes > SIZE_MAX / 2)
        return REFUSE(log, "buffer %u (%s): a size of %zu bytes; allowed: 1 to %zu", index, name,
                      binding->bytes, SIZE_MAX / 2);
    if (binding->row_access == COX__WHOLE && binding->access != COX__READ)
        return REFUSE(log, "buffer %u (%s): row access WHOLE, but it is written", index, name);
    if (binding->row_access == COX__REDUCE && (binding->access != COX__WRITE || !binding->merge))
        return REFUSE(log,
                      "buffer %u (%s): row access REDUCE needs access WRITE and a merge function",
                      index, name);

    return COX_OK;
}

/* ---- a pass's stages ---- */

static bool is_used(const struct check *check, uint32_t binding)
{
    return binding < check->params->binding_count &&
           check->bindings[binding].row_access != COX__UNUSED;
}

static cox_status check_index(const struct check *check, const struct cox__arg *arg, uint32_t stage,
                              uint32_t index)
{
    const struct cox__session_spec *params = check->params;
    if (arg->index >= params->binding_count)
        return REFUSE(check->log, "%sstage %u, argument %u: unknown buffer %u; the session has %u",
                      check->where, stage, index, arg->index, params->binding_count);
    if (!is_used(check, arg->index))
        return REFUSE(check->log,
                      "%sstage %u, argument %u: buffer %u (%s) is not in the pass's list of uses",
                      check->where, stage, index, arg->index,
                      cox__binding_name(&params->bindings[arg->index]));

    return COX_OK;
}

/* An image is a copy of rows, made before the pass's first stage. The backend checks its format. */
static cox_status check_image(const struct check *check, const struct cox__arg *arg, uint32_t stage,
                              uint32_t index)
{
    const struct cox__session_spec *params = check->params;
    const cox_status status = check_index(check, arg, stage, index);
    if (status)
        return status;

    const struct cox__binding *binding = &check->bindings[arg->index];
    if (binding->access != COX__READ)
        return REFUSE(
            check->log,
            "%sstage %u, argument %u: buffer %u (%s) is written by the pass, so it cannot be an "
            "image",
            check->where, stage, index, arg->index, cox__binding_name(binding));

    if (binding->offset_bytes)
        return REFUSE(
            check->log,
            "%sstage %u, argument %u: buffer %u (%s) has offset_bytes, so it cannot be an "
            "image",
            check->where, stage, index, arg->index, cox__binding_name(binding));

    const bool short_table = !cox__by_rows(&params->bindings[arg->index]) &&
                             binding->bytes < binding->pitch_bytes;
    if (!arg->bytes || arg->bytes > INT32_MAX || !binding->pitch_bytes || short_table)
        return REFUSE(
            check->log,
            "%sstage %u, argument %u: an image of %zu columns, of buffer %u (%s) with a pitch of "
            "%zu bytes; allowed: 1 to %d columns, a pitch above 0 and at least one row",
            check->where, stage, index, arg->bytes, arg->index, cox__binding_name(binding),
            binding->pitch_bytes, INT32_MAX);

    return COX_OK;
}

static cox_status check_arg(const struct check *check, const struct cox__arg *arg, uint32_t stage,
                            uint32_t index)
{
    const struct cox__session_spec *params = check->params;

    switch (arg->kind) {
    case COX__ARG_KIND_BUFFER:
    case COX__ARG_KIND_ORIGIN:
        return check_index(check, arg, stage, index);
    case COX__ARG_KIND_IMAGE:
        return check_image(check, arg, stage, index);
    case COX__ARG_KIND_PARAMS:
        if (!arg->bytes || arg->offset > params->params_bytes ||
            arg->bytes > params->params_bytes - arg->offset)
            return REFUSE(
                check->log,
                "%sstage %u, argument %u: %zu bytes at offset %zu, but there are only %zu bytes of "
                "parameters",
                check->where, stage, index, arg->bytes, arg->offset, params->params_bytes);
        return COX_OK;
    case COX__ARG_KIND_LOCAL:
        if (!arg->bytes)
            return REFUSE(check->log,
                          "%sstage %u, argument %u: local memory of 0 bytes; allowed: 1 or more",
                          check->where, stage, index);
        return COX_OK;
    case COX__ARG_KIND_FIRST:
    case COX__ARG_KIND_ROWS:
    case COX__ARG_KIND_FRAME:
    case COX__ARG_KIND_COLUMNS:
    case COX__ARG_KIND_VALUE:
        return COX_OK;
    }
    return REFUSE(check->log, "%sstage %u, argument %u: unknown kind %d; allowed: 0 to %d",
                  check->where, stage, index, (int)arg->kind, COX__ARG_KIND_VALUE);
}

static cox_status check_stage(const struct check *check, const struct cox__stage *stage,
                              uint32_t index)
{
    const struct cox__log *log = check->log;
    if (!stage->kernel || !*stage->kernel)
        return REFUSE(log, "%sstage %u has no kernel name", check->where, index);
    if (stage->columns > INT32_MAX)
        return REFUSE(log, "%sstage %u (%s) has %u columns; allowed: 0 to %d", check->where, index,
                      stage->kernel, stage->columns, INT32_MAX);

    for (uint32_t v = 0; v < stage->variant_count; v++) {
        const struct cox__variant *variant = &stage->variants[v];
        if (!variant->source)
            return REFUSE(log, "%sstage %u (%s), variant %u has no source", check->where, index,
                          stage->kernel, v);
        if (variant->local_columns > SIDE_MAX || variant->local_rows > SIDE_MAX ||
            variant->item_columns > SIDE_MAX || variant->item_rows > SIDE_MAX)
            return REFUSE(
                log,
                "%sstage %u (%s), variant %u: local size %u x %u, item size %u x %u; allowed: 0 to "
                "%d each",
                check->where, index, stage->kernel, v, variant->local_columns, variant->local_rows,
                variant->item_columns, variant->item_rows, SIDE_MAX);
    }

    for (uint32_t a = 0; a < stage->arg_count; a++) {
        cox_status status = check_arg(check, &stage->args[a], index, a);
        if (status)
            return status;
    }

    return COX_OK;
}

/* A stage that writes a band's own binding also computes rows outside the band. So it must write
 * nothing else, and its inputs must include those rows. */
static cox_status check_overlap(const struct check *check, uint32_t own)
{
    const struct cox__pass_spec *pass = check->pass;
    const char *name = cox__binding_name(&check->bindings[own]);
    uint32_t writer = 0, takers = 0;

    for (uint32_t s = pass->stage_count; s-- > 0;)
        if (cox__stage_takes(&pass->stages[s], own)) {
            writer = s;
            takers++;
        }
    if (takers < 2)
        return REFUSE(
            check->log,
            "%sbuffer %u (%s): HALO scratch with READ_WRITE needs a stage that writes it and a "
            "later one that reads it; stages that take it: %u",
            check->where, own, name, takers);

    for (uint32_t i = 0; i < check->params->binding_count; i++) {
        const struct cox__binding *binding = &check->bindings[i];
        const bool fits = binding->row_access == COX__HALO || binding->row_access == COX__WHOLE;

        if (cox__stage_takes(&pass->stages[writer], i) && !fits)
            return REFUSE(
                check->log,
                "%sstage %u (%s) writes buffer %u (%s) for more rows than the band's, so buffer %u "
                "(%s) needs row access HALO; its halo_rows may be 0",
                check->where, writer, pass->stages[writer].kernel, own, name, i,
                cox__binding_name(binding));
    }

    return COX_OK;
}

/* ---- a pass's uses ---- */

static cox_status check_use(struct check *check, const struct cox__pass_binding *use)
{
    const struct cox__session_spec *params = check->params;
    if (use->binding >= params->binding_count)
        return REFUSE(check->log, "%sunknown buffer %u; the session has %u", check->where,
                      use->binding, params->binding_count);

    struct cox__binding *binding = &check->bindings[use->binding];
    const struct cox__binding *of = &params->bindings[use->binding];
    if (binding->row_access != COX__UNUSED)
        return REFUSE(check->log, "%sbuffer %u (%s) is used twice", check->where, use->binding,
                      cox__binding_name(of));
    if ((use->row_access == COX__REDUCE) != (of->row_access == COX__REDUCE) &&
        use->row_access != COX__WHOLE)
        return REFUSE(
            check->log,
            "%sbuffer %u (%s): a pass must use a REDUCE buffer as REDUCE or WHOLE, and no other "
            "buffer as REDUCE",
            check->where, use->binding, cox__binding_name(of));

    binding->row_access = use->row_access;
    binding->access = use->access;
    binding->coverage = use->coverage;
    binding->row_divisor = use->row_divisor;
    binding->halo_rows = use->halo_rows;
    binding->halo_above = use->halo_above;
    binding->halo_below = use->halo_below;
    binding->reads_all = use->reads_all;

    if (use->row_access == COX__HALO && most_halo(binding) > check->rows)
        return REFUSE(check->log,
                      "%sbuffer %u (%s): halo_rows is %u, but the pass has only %u rows",
                      check->where, use->binding, cox__binding_name(of), most_halo(binding),
                      check->rows);

    return COX_OK;
}

/* Whether the pass uses the whole of a binding that the session declares by rows. The binding then
 * has a pitch and no `bytes`. */
static bool is_whole_of_rows(const struct check *check, uint32_t binding)
{
    return check->pass->use_count && check->bindings[binding].row_access == COX__WHOLE &&
           cox__by_rows(&check->params->bindings[binding]);
}

static cox_status check_bindings(const struct check *check)
{
    for (uint32_t i = 0; i < check->params->binding_count; i++) {
        struct cox__binding binding = check->bindings[i];
        if (binding.row_access == COX__UNUSED && check->pass->use_count)
            continue;

        cox_status status = COX_OK;
        if (is_whole_of_rows(check, i)) {
            status = check_pitch(&check->params->bindings[i], i, check->params->rows, check->log);
            binding.bytes = 1; /* not its size, which the passes together decide */
        }

        if (status == COX_OK)
            status = check_binding(&binding, i, check->rows, check->params->allow_in_place,
                                   check->log);
        if (status)
            return status;
    }

    return COX_OK;
}

/* An absolute pass: kernels find row r of each buffer at row r of its memory. */
static cox_status check_absolute(const struct check *check)
{
    const struct cox__pass_spec *pass = check->pass;

    for (uint32_t s = 0; s < pass->stage_count; s++)
        for (uint32_t a = 0; a < pass->stages[s].arg_count; a++) {
            const struct cox__arg *arg = &pass->stages[s].args[a];
            if (arg->kind != COX__ARG_KIND_IMAGE || !cox__by_rows(&check->bindings[arg->index]))
                continue;

            return REFUSE(check->log,
                          "%sstage %u, argument %u: buffer %u (%s) is an image of the band's rows; "
                          "in an absolute pass, set `whole`",
                          check->where, s, a, arg->index,
                          cox__binding_name(&check->bindings[arg->index]));
        }

    return COX_OK;
}

static cox_status check_pass(struct check *check, const struct cox__pass_spec *pass, uint32_t index)
{
    const struct cox__session_spec *params = check->params;

    check->pass = pass;
    check->rows = pass->rows ? pass->rows : params->rows;
    check->where[0] = '\0';
    if (params->pass_count)
        snprintf(check->where, sizeof check->where, "pass %u (%.40s), ", index,
                 pass->name ? pass->name : "unnamed");

    if (check->rows > INT32_MAX)
        return REFUSE(check->log, "%s%u rows; allowed: 0 to %d", check->where, check->rows,
                      INT32_MAX);

    memcpy(check->bindings, params->bindings, params->binding_count * sizeof *check->bindings);
    for (uint32_t i = 0; i < params->binding_count && pass->use_count; i++)
        check->bindings[i].row_access = COX__UNUSED;

    for (uint32_t u = 0; u < pass->use_count; u++) {
        cox_status status = check_use(check, &pass->uses[u]);
        if (status)
            return status;
    }

    cox_status status = check_bindings(check);
    for (uint32_t i = 0; i < pass->stage_count && status == COX_OK; i++)
        status = check_stage(check, &pass->stages[i], i);

    for (uint32_t i = 0; i < params->binding_count && status == COX_OK; i++)
        if (cox__is_own(&check->bindings[i]))
            status = check_overlap(check, i);

    if (status == COX_OK && pass->absolute)
        status = check_absolute(check);
    for (uint32_t i = 0; i < params->binding_count && status == COX_OK; i++)
        if (check->bindings[i].reads_all && check->bindings[i].offset_bytes && !pass->absolute)
            status = REFUSE(check->log,
                            "%sbuffer %u (%s) is read whole and written, so offset_bytes needs an "
                            "absolute pass",
                            check->where, i, cox__binding_name(&check->bindings[i]));
    return status;
}

/* ---- the passes together ---- */

/* A binding's memory, as the passes checked so far use it. */
struct memory {
    size_t bytes;                 /* by the passes' rows; 0 = unknown */
    const struct cox__arg *image; /* the image made from it; NULL = none */
    bool written, own, reduced;
    uint32_t user; /* the last pass that uses it */
};

/* All images of a binding must have the same format, because the backend makes one image of it. */
static cox_status check_images(const struct check *check, uint32_t index, struct memory *memory)
{
    for (uint32_t s = 0; s < check->pass->stage_count; s++)
        for (uint32_t a = 0; a < check->pass->stages[s].arg_count; a++) {
            const struct cox__arg *arg = &check->pass->stages[s].args[a];
            if (arg->kind != COX__ARG_KIND_IMAGE || arg->index != index)
                continue;
            if (memory->image &&
                (memory->image->offset != arg->offset || memory->image->bytes != arg->bytes))
                return REFUSE(
                    check->log,
                    "%sstage %u, argument %u: buffer %u (%s) is already an image of another format",
                    check->where, s, a, index, cox__binding_name(&check->bindings[index]));

            memory->image = arg;
        }

    return COX_OK;
}

static cox_status check_memory(const struct check *check, uint32_t index, uint32_t number,
                               struct memory *memory)
{
    const struct cox__binding *binding = &check->bindings[index];
    const char *name = cox__binding_name(binding);
    const bool scratch = check->params->bindings[index].scratch;

    if (binding->row_access == COX__UNUSED)
        return COX_OK;
    if (memory->own || (cox__is_own(binding) && (memory->bytes || memory->written)))
        return REFUSE(check->log,
                      "%sbuffer %u (%s): pass %u uses it too, and one of them hands it on between "
                      "fused kernels, so each band has its own memory for it; use a scratch buffer "
                      "for each",
                      check->where, index, name, memory->user);

    memory->user = number;
    memory->own = cox__is_own(binding);
    if (memory->own)
        return COX_OK;

    const cox_status status = check_images(check, index, memory);
    if (status)
        return status;
    if (scratch && !memory->written && binding->access != COX__WRITE)
        return REFUSE(check->log,
                      "%sbuffer %u (%s): scratch is read before any pass has written it",
                      check->where, index, name);
    if (scratch && !memory->written && cox__keeps_values(binding))
        return REFUSE(check->log,
                      "%sbuffer %u (%s): scratch is partial, but no earlier pass has written it",
                      check->where, index, name);
    if (binding->row_access == COX__REDUCE && memory->reduced)
        return REFUSE(check->log, "%sbuffer %u (%s): two passes use it as REDUCE; only one may",
                      check->where, index, name);

    memory->reduced |= binding->row_access == COX__REDUCE;
    memory->written |= binding->access != COX__READ;
    if (!cox__by_rows(binding))
        return COX_OK;

    const uint32_t divisor = cox__row_divisor(binding->row_divisor);
    const size_t bytes = cox__rows_bytes(binding, cox__buffer_rows(check->rows, divisor));
    if (memory->bytes && memory->bytes != bytes)
        return REFUSE(check->log,
                      "%sbuffer %u (%s): this pass's rows need %zu bytes, another pass's rows %zu",
                      check->where, index, name, bytes, memory->bytes);

    memory->bytes = bytes;

    return COX_OK;
}

/* Later code sums the sizes of bindings. A sum that wraps around would give a buffer that is too
 * short. */
static cox_status check_sum(const struct check *check, const struct memory *memories)
{
    const struct cox__session_spec *params = check->params;
    size_t left = SIZE_MAX / 2;

    for (uint32_t i = 0; i < params->binding_count; i++) {
        const size_t bytes = memories[i].bytes ? memories[i].bytes : cox__session_bytes(params, i);
        if (bytes > left)
            return REFUSE(check->log, "the buffers together exceed %zu bytes", SIZE_MAX / 2);
        left -= bytes;
    }

    return COX_OK;
}

cox_status cox__contracts_check(const struct cox__session_spec *params,
                                const struct cox__pass_spec *passes, uint32_t count,
                                const struct cox__log *log)
{
    struct check check = {.params = params, .log = log};
    struct memory memories[COX_BUFFERS_MAX] = {{0}};
    if (!params->rows || params->rows > INT32_MAX)
        return REFUSE(log, "a frame of %u rows; allowed: 1 to %d", params->rows, INT32_MAX);
    if (params->params_bytes > COX_CONSTANTS_BYTES_MAX)
        return REFUSE(log, "%zu bytes of parameters; allowed: 0 to %d", params->params_bytes,
                      COX_CONSTANTS_BYTES_MAX);

    for (uint32_t p = 0; p < count; p++) {
        cox_status status = check_pass(&check, &passes[p], p);
        for (uint32_t i = 0; i < params->binding_count && status == COX_OK; i++)
            status = check_memory(&check, i, p, &memories[i]);
        if (status)
            return status;
    }

    return check_sum(&check, memories);
}
