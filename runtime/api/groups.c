/* SPDX-License-Identifier: Apache-2.0 */
#include "groups.h"
#include "base/sources.h"
#include "device_list.h"
#include "engine/binding.h"
#include "store/code.h"

#include <string.h>

/* ---- lists ---- */

static bool is_last_pass(const struct cox_pass *pass)
{
    return !pass->source && !pass->kernel && !pass->code;
}

const struct cox_argument *cox__group_argument(const struct cox_pass *pass, const char *name)
{
    for (const struct cox_argument *a = pass->arguments; a && a->name; a++)
        if (strcmp(a->name, name) == 0)
            return a;

    return NULL;
}

/* UINT32_MAX if there is no buffer of that name. */
static uint32_t find_buffer(const struct cox__resolved *r, const char *name)
{
    for (uint32_t b = 0; b < r->spec.binding_count; b++)
        if (strcmp(r->buffers[b].name, name) == 0)
            return b;

    return UINT32_MAX;
}

/* The session's name of the buffer that a kernel calls `name`. */
static const char *buffer_name(const struct cox_pass *pass, const char *name)
{
    const struct cox_argument *argument = cox__group_argument(pass, name);
    if (argument && argument->buffer)
        return argument->buffer;

    return name;
}

uint32_t cox__group_buffer_of(const struct cox__resolved *r, const struct cox_pass *pass,
                              const char *name)
{
    return find_buffer(r, buffer_name(pass, name));
}

/* ---- signatures and variants ---- */

/* The form of the member's kernel that `from` describes: the pass or one of its variants. */
static struct cox__variant variant_of(const struct cox__resolved *r,
                                      const struct cox__group_member *member,
                                      const struct cox_pass *from)
{
    return (struct cox__variant){.source = from->source ? from->source : member->source,
                                 .options = from->options,
                                 .headers = r->params->headers,
                                 .libraries = r->params->libraries,
                                 .local_columns = from->local_columns,
                                 .local_rows = from->local_rows,
                                 .item_columns = from->item_columns,
                                 .item_rows = from->item_rows};
}

/* Whether `from` has a source, and this or a library defines the kernel. */
static bool has_source(const struct cox__resolved *r, const struct cox__group_member *member,
                       const struct cox_pass *from, const struct cox__variant *variant)
{
    if (!from->source && from != member->pass)
        return false;

    return cox__sources_count(r->params->libraries) > 0 ||
           cox__signature_is_defined(variant->source, member->signature.kernel);
}

/* Use the code that was compiled ahead of time if the device takes it, or else the source. False:
 * there is neither; the log says why. */
static bool choose_code(const struct cox__resolved *r, const struct cox__group_member *member,
                        const struct cox_pass *from, uint32_t device, struct cox__variant *variant)
{
    if (!from->code)
        return true;

    struct cox__backend *backend = r->runtime->backend;
    const char *refusal = "it takes no compiled code";
    if (backend->ops->code_refusal)
        refusal = backend->ops->code_refusal(backend, device, from->code, from->code_bytes);

    variant->declared = !has_source(r, member, from, variant);
    if (!refusal) {
        variant->code = from->code;
        variant->code_bytes = from->code_bytes;
        return true;
    }

    struct cox_device_info info;
    backend->ops->device_info(backend, device, &info);
    cox__log(r->log, variant->declared ? COX_LOG_WARN : COX_LOG_INFO, "%s: kernel %s: %s; %s",
             info.name, member->signature.kernel, refusal,
             variant->declared ? "this variant is left out" : "its source is compiled");
    return !variant->declared;
}

/* Add a variant for each device that its list names and that has none yet. */
static void add_variant(const struct cox__resolved *r, const struct cox_pass *from,
                        const char *names, bool has_own[COX_DEVICES_MAX],
                        struct cox__group_member *member, struct cox__stage *stage)
{
    uint32_t devices[COX_DEVICES_MAX], listed;
    if (!cox__device_list_find(r->runtime, names, devices, &listed))
        return; /* for devices that this machine lacks */

    uint32_t count = listed;
    if (!listed)
        count = r->runtime->backend->ops->device_count(r->runtime->backend);

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t device = listed ? devices[i] : i;
        struct cox__variant variant = variant_of(r, member, from);
        if (has_own[device] || !choose_code(r, member, from, device, &variant))
            continue;

        has_own[device] = true;
        variant.device_plus_1 = device + 1;
        member->variants[stage->variant_count++] = variant;
    }
}

/* SPIR-V or a file of cox_compile. */
static cox_status check_code(const struct cox__resolved *r, const struct cox__group_member *member,
                             const struct cox_pass *from)
{
    if (!from->code && !from->code_bytes)
        return COX_OK;
    if (from->code && cox__code_kind_of(from->code, from->code_bytes) != COX__CODE_UNKNOWN)
        return COX_OK;

    return COX__REFUSE(
        r->log,
        "kernel %s: `code` of %zu bytes%s is neither SPIR-V nor the content of a file "
        "that cox_compile wrote",
        member->signature.kernel, from->code_bytes, from->code ? "" : ", NULL,");
}

static cox_status read_variants(const struct cox__resolved *r, struct cox__group_member *member,
                                struct cox__stage *stage)
{
    const uint32_t all = r->runtime->backend->ops->device_count(r->runtime->backend);
    const struct cox_pass *pass = member->pass;
    bool has_own[COX_DEVICES_MAX] = {false};
    for (const struct cox_pass *v = pass->variants; v && (v->source || v->code); v++) {
        if (check_code(r, member, v))
            return COX_E_INVALID;
        add_variant(r, v, v->devices, has_own, member, stage);
    }

    /* The pass itself, for devices that no variant names. */
    if (check_code(r, member, pass))
        return COX_E_INVALID;
    if (pass->code)
        add_variant(r, pass, NULL, has_own, member, stage);
    else if (stage->variant_count < all || !all)
        member->variants[stage->variant_count++] = variant_of(r, member, pass);

    if (!stage->variant_count) {
        cox__log(r->log, COX_LOG_ERROR,
                 "kernel %s: no device takes its code, and `source` only declares it",
                 member->signature.kernel);
        return COX_E_UNSUPPORTED;
    }

    return COX_OK;
}

/* Whether the argument says something that its parameter cannot have; returns what. */
static const char *find_misfit(const struct cox_argument *argument,
                               const struct cox__parameter *parameter)
{
    const bool is_buffer = parameter->kind == COX__PARAMETER_BUFFER ||
                           parameter->kind == COX__PARAMETER_IMAGE;
    if (argument->local_bytes && parameter->kind != COX__PARAMETER_LOCAL)
        return "local_bytes is set, but it is not local memory";
    const bool has_halo = argument->halo_rows || argument->halo_above || argument->halo_below;
    const bool reads_only = parameter->reads_only || argument->read_only;
    if (!is_buffer &&
        (argument->buffer || has_halo || argument->whole || argument->read_only ||
         argument->in_place || argument->partial || argument->writes_all || argument->row_divisor))
        return "a field for buffers is set, but it is not a buffer";
    if (argument->in_place && reads_only)
        return "in_place is set, but the kernel only reads it";
    if (argument->partial && reads_only)
        return "partial is set, but the kernel only reads it";
    if (argument->writes_all && reads_only)
        return "writes_all is set, but the kernel only reads it";
    if (argument->writes_all && argument->partial)
        return "partial and writes_all are both set";
    if (argument->partial && argument->in_place)
        return "in_place and partial are both set; in_place alone keeps values too";
    if (argument->whole && has_halo)
        return "halo_rows and whole are both set";

    return NULL;
}

static cox_status check_arguments(const struct cox__resolved *r,
                                  const struct cox__group_member *member)
{
    const char *kernel = member->signature.kernel;
    for (const struct cox_argument *a = member->pass->arguments; a && a->name; a++) {
        const struct cox__parameter *parameter = cox__signature_find(&member->signature, a->name);
        if (!parameter)
            return COX__REFUSE(r->log,
                               "kernel %s has no parameter '%s'; its pass lists it in `arguments`",
                               kernel, a->name);

        const char *misfit = find_misfit(a, parameter);
        if (misfit)
            return COX__REFUSE(r->log, "kernel %s, argument '%s': %s", kernel, a->name, misfit);
    }
    return COX_OK;
}

/* A field that the variant sets and the library does not read. NULL = all set fields are read. */
static const char *find_ignored(const struct cox_pass *variant, const char *kernel)
{
    if (variant->kernel && strcmp(variant->kernel, kernel) != 0)
        return "kernel";
    if (variant->columns || variant->rows)
        return "columns or rows";
    if (variant->arguments)
        return "arguments";
    if (variant->variants)
        return "variants";
    if (variant->fused || variant->absolute)
        return "fused or absolute";
    if (variant->name || variant->policy)
        return "name or policy";
    if (variant->done || variant->done_user)
        return "done";

    return NULL;
}

static cox_status check_variants(const struct cox__resolved *r,
                                 const struct cox__group_member *member)
{
    const char *kernel = member->signature.kernel;
    const struct cox_pass *v = member->pass->variants;

    for (; v && (v->source || v->code); v++) {
        const char *ignored = find_ignored(v, kernel);
        if (ignored)
            return COX__REFUSE(r->log,
                               "a variant of kernel %s sets %s; allowed: source, code, options, "
                               "devices, and local and item sizes",
                               kernel, ignored);
    }

    if (v && (v->devices || v->options || v->kernel))
        return COX__REFUSE(r->log, "a variant of kernel %s has neither source nor code", kernel);
    return COX_OK;
}

/* Check what depends on the kind of pass, in one of the forms of its kernel. */
static cox_status check_form(const struct cox__resolved *r, const struct cox__group_member *member,
                             const struct cox__stage *stage, const struct cox_pass *form)
{
    const char *kernel = member->signature.kernel;
    if (stage->one_dimension && (form->local_columns || form->item_columns))
        return COX__REFUSE(
            r->log,
            "kernel %s runs in one dimension, over the rows, but local_columns is %u "
            "and item_columns is %u; set local_rows and item_rows",
            kernel, form->local_columns, form->item_columns);
    if (member->pass->absolute && form->code)
        return COX__REFUSE(r->log, "kernel %s: an absolute pass takes no `code`; set `source`",
                           kernel);

    return COX_OK;
}

static cox_status check_forms(const struct cox__resolved *r, const struct cox__group_member *member,
                              const struct cox__stage *stage)
{
    cox_status status = check_form(r, member, stage, member->pass);
    const struct cox_pass *v = member->pass->variants;

    for (; v && (v->source || v->code) && !status; v++)
        status = check_form(r, member, stage, v);
    return status;
}

static cox_status read_member(struct cox__resolved *r, struct cox__group *group, uint32_t index)
{
    struct cox__group_member *member = &group->members[index];
    struct cox__stage *stage = &group->stages[index];
    cox_status status = cox__signature_read(member->source, member->pass->kernel,
                                            &member->signature, r->log);
    if (!status)
        status = check_arguments(r, member);
    if (!status)
        status = check_variants(r, member);

    stage->kernel = member->signature.kernel;
    stage->columns = member->pass->columns;
    if (!stage->columns)
        stage->columns = r->params->columns;
    if (!stage->columns) {
        stage->columns = 1;
        stage->one_dimension = true;
    }

    if (!status)
        status = check_forms(r, member, stage);
    if (!status)
        status = read_variants(r, member, stage);
    stage->variants = member->variants;
    stage->args = member->args;
    stage->texts = member->texts;
    stage->local_arrays = member->signature.local_arrays;
    for (uint32_t p = 0; p < member->signature.count; p++) {
        const struct cox__parameter *parameter = &member->signature.parameters[p];
        memcpy(member->texts[p].name, parameter->name, COX__ARG_TEXT_BYTES);
        memcpy(member->texts[p].type, parameter->type, COX__ARG_TEXT_BYTES);

        const struct cox_argument *given = cox__group_argument(member->pass, parameter->name);
        member->texts[p].read_only = given && given->read_only;
    }
    return status;
}

/* Refuse what only the first pass of a group may have. */
static cox_status check_fused(const struct cox__resolved *r, const struct cox_pass *pass)
{
    if (!pass->rows && !pass->devices && !pass->policy && !pass->done)
        return COX_OK;

    return COX__REFUSE(
        r->log,
        "a fused pass cannot set rows, devices, policy or `done`; set them in the pass it is fused "
        "to");
}

/* Find the group of a pass; begin a new one if the pass is not fused. */
static cox_status enter_group(struct cox__resolved *r, const struct cox_pass *pass,
                              struct cox__group **group, uint32_t *index)
{
    const uint32_t count = r->spec.pass_count;
    if (!pass->fused) {
        if (count == COX_PASSES_MAX)
            return COX__REFUSE(r->log, "too many passes; at most %d, not counting fused ones",
                               COX_PASSES_MAX);
        r->passes[count].stages = r->groups[count].stages;
        r->spec.pass_count++;
    } else if (!count) {
        return COX__REFUSE(r->log, "the first pass cannot be fused; there is no pass before it");
    }

    if (pass->fused && check_fused(r, pass))
        return COX_E_INVALID;

    struct cox__pass_spec *entered = &r->passes[r->spec.pass_count - 1];
    const struct cox_pass *first = r->groups[r->spec.pass_count - 1].members[0].pass;
    if (pass->fused && pass->absolute != first->absolute)
        return COX__REFUSE(r->log, "an absolute pass can only be fused with absolute passes");
    if (entered->stage_count == COX_FUSED_MAX)
        return COX__REFUSE(r->log,
                           "too many fused passes; at most %d kernels can run on the same bands",
                           COX_FUSED_MAX);

    *group = &r->groups[r->spec.pass_count - 1];
    *index = entered->stage_count++;
    return COX_OK;
}

static cox_status read_passes(struct cox__resolved *r)
{
    const struct cox_pass *passes = r->params->passes;
    if (!passes || is_last_pass(passes))
        return COX__REFUSE(r->log, "the session has no passes; set `passes` or `pipeline`");

    const char *source = NULL;
    for (const struct cox_pass *pass = passes; !is_last_pass(pass); pass++) {
        if (pass->source)
            source = pass->source;
        if (!source)
            return COX__REFUSE(r->log, "pass %s has no source; set `source`", pass->kernel);

        struct cox__group *group;
        uint32_t index;
        cox_status status = enter_group(r, pass, &group, &index);
        if (!status) {
            group->members[index].pass = pass;
            group->members[index].source = source;
            status = read_member(r, group, index);
        }
        if (status)
            return status;
    }
    return COX_OK;
}

/* ---- buffers ---- */

static cox_status add_buffer(struct cox__resolved *r, const char *name,
                             const struct cox_buffer_layout *layout)
{
    if (r->spec.binding_count == COX_BUFFERS_MAX)
        return COX__REFUSE(r->log, "buffer %s: too many buffers; at most %d", name,
                           COX_BUFFERS_MAX);
    if (strlen(name) >= COX__NAME_BYTES)
        return COX__REFUSE(r->log, "buffer %s: the name is too long; at most %d characters", name,
                           COX__NAME_BYTES - 1);
    if (find_buffer(r, name) != UINT32_MAX)
        return COX__REFUSE(r->log, "buffer %s is listed twice", name);

    struct cox__group_buffer *buffer = &r->buffers[r->spec.binding_count++];
    strcpy(buffer->name, name);
    buffer->layout = layout;
    return COX_OK;
}

/* Note what the signature says about the buffer. Add the buffer if the session lists none. */
static cox_status meet_buffer(struct cox__resolved *r, const struct cox_pass *pass,
                              const struct cox__parameter *parameter,
                              const struct cox__stage *stage)
{
    const char *name = buffer_name(pass, parameter->name);
    uint32_t b = find_buffer(r, name);
    if (b == UINT32_MAX && r->params->buffers)
        return COX__REFUSE(r->log, "kernel %s takes '%s', which is not in `buffers`", stage->kernel,
                           name);
    if (b == UINT32_MAX) {
        b = r->spec.binding_count;
        const cox_status status = add_buffer(r, name, NULL);
        if (status)
            return status;
    }

    struct cox__group_buffer *buffer = &r->buffers[b];
    buffer->used = true;
    if (!buffer->element_bytes)
        buffer->element_bytes = parameter->bytes;
    if (!buffer->columns)
        buffer->columns = stage->columns;
    return COX_OK;
}

static cox_status meet_buffers(struct cox__resolved *r, const struct cox__group_member *member,
                               const struct cox__stage *stage)
{
    const struct cox__signature *signature = &member->signature;
    for (uint32_t p = 0; p < signature->count; p++) {
        const struct cox__parameter *parameter = &signature->parameters[p];
        if (!cox__signature_takes_buffer(parameter))
            continue;

        const cox_status status = meet_buffer(r, member->pass, parameter, stage);
        if (status)
            return status;
    }
    return COX_OK;
}

static cox_status find_buffers(struct cox__resolved *r)
{
    for (const struct cox_buffer_layout *l = r->params->buffers; l && l->name; l++) {
        const cox_status status = add_buffer(r, l->name, l);
        if (status)
            return status;
    }

    for (uint32_t g = 0; g < r->spec.pass_count; g++)
        for (uint32_t s = 0; s < r->passes[g].stage_count; s++) {
            const struct cox__group *group = &r->groups[g];
            const cox_status status = meet_buffers(r, &group->members[s], &group->stages[s]);
            if (status)
                return status;
        }

    for (uint32_t b = 0; b < r->spec.binding_count; b++)
        if (!r->buffers[b].used)
            return COX__REFUSE(r->log, "buffer %s is in `buffers`, but no pass uses it",
                               r->buffers[b].name);
    return COX_OK;
}

/* Fill in the memory of a buffer. How passes access it is resolved later. */
static cox_status lay_out_buffer(struct cox__resolved *r, uint32_t b)
{
    static const struct cox_buffer_layout no_layout = {0};
    const struct cox__group_buffer *buffer = &r->buffers[b];
    const struct cox_buffer_layout *given = buffer->layout ? buffer->layout : &no_layout;
    struct cox__binding *binding = &r->bindings[b];

    binding->name = buffer->name;
    binding->row_divisor = given->row_divisor ? given->row_divisor : 1;
    binding->scratch = given->scratch;
    binding->stays = given->stays;
    binding->merge = given->merge;
    binding->merge_user = given->merge_user;
    binding->pitch_bytes = given->pitch_bytes;
    binding->bytes = given->bytes;
    if (!binding->pitch_bytes)
        binding->pitch_bytes = (size_t)buffer->columns * buffer->element_bytes;
    binding->element_bytes = buffer->element_bytes;

    binding->row_bytes = given->row_bytes;
    if (given->row_bytes > binding->pitch_bytes)
        return COX__REFUSE(r->log, "buffer %s: row_bytes is %zu; allowed: 0 to the pitch, %zu",
                           buffer->name, given->row_bytes, binding->pitch_bytes);
    if (given->row_bytes && given->merge)
        return COX__REFUSE(r->log,
                           "buffer %s has `merge`, but `row_bytes` is %zu; a merged buffer is not "
                           "accessed by rows",
                           buffer->name, given->row_bytes);
    if (given->merge && !given->bytes)
        return COX__REFUSE(r->log, "buffer %s has `merge`; set its `bytes` too", buffer->name);
    if (!binding->pitch_bytes && !binding->bytes)
        return COX__REFUSE(
            r->log,
            "buffer %s: unknown element size; set `pitch_bytes`, or `bytes` if it is read whole",
            buffer->name);

    binding->offset_bytes = given->offset_bytes;
    binding->border_above = given->border_above;
    binding->border_below = given->border_below;
    const bool has_border = given->border_above || given->border_below;
    if (given->merge && (has_border || given->offset_bytes))
        return COX__REFUSE(r->log,
                           "buffer %s has `merge`, so it has neither border nor offset_bytes",
                           buffer->name);

    const uint32_t rows = cox__buffer_rows(r->params->rows, binding->row_divisor);
    const uint64_t all = (uint64_t)rows + given->border_above + given->border_below;
    if (!binding->bytes && given->offset_bytes <= SIZE_MAX / 4 &&
        binding->pitch_bytes <= SIZE_MAX / 4 / all)
        binding->bytes = cox__rows_bytes(binding, rows);
    return COX_OK;
}

static cox_status lay_out_buffers(struct cox__resolved *r)
{
    for (uint32_t b = 0; b < r->spec.binding_count; b++) {
        const cox_status status = lay_out_buffer(r, b);
        if (status)
            return status;
    }
    return COX_OK;
}

cox_status cox__groups_read(struct cox__resolved *r)
{
    cox_status status = read_passes(r);
    if (!status)
        status = find_buffers(r);
    if (!status)
        status = lay_out_buffers(r);
    return status;
}
