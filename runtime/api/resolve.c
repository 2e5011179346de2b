/* For the groups that groups.c has read: choose for each kernel what its parameters get,
 * and for each group how it accesses each buffer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "resolve.h"
#include "base/bounds.h"
#include "compile.h"
#include "device_list.h"
#include "engine/binding.h"
#include "groups.h"

#include <stdlib.h>
#include <string.h>

/* ---- parameters ---- */

static const struct cox_field *find_field(const struct cox_session_params *params, const char *name)
{
    for (const struct cox_field *f = params->fields; f && f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;

    return NULL;
}

/* Whether `name` is a buffer's name with `ending` behind it, such as in_pitch. */
static bool ends_as(const struct cox__resolved *r, const struct cox__group_member *member,
                    const char *name, const char *ending, uint32_t *buffer)
{
    char start[COX__NAME_BYTES];
    const size_t length = strlen(name), tail = strlen(ending);
    if (length <= tail || strcmp(name + length - tail, ending) != 0)
        return false;

    memcpy(start, name, length - tail);
    start[length - tail] = '\0';
    *buffer = cox__group_buffer_of(r, member->pass, start);
    return *buffer != UINT32_MAX;
}

/* The pitch in elements of the type that the kernel has for the buffer. Returns 0 if the pitch is
 * not a whole number of elements, or too large for an int. */
static size_t pitch_of(const struct cox__resolved *r, const struct cox__group_member *member,
                       const char *name, uint32_t b)
{
    size_t bytes = r->buffers[b].element_bytes;
    const struct cox__signature *signature = &member->signature;
    for (uint32_t p = 0; p < signature->count; p++) {
        const struct cox__parameter *parameter = &signature->parameters[p];
        const size_t length = strlen(parameter->name);
        const bool is_its = strncmp(name, parameter->name, length) == 0 &&
                            strcmp(name + length, "_pitch") == 0;
        if (is_its && parameter->bytes)
            bytes = parameter->bytes;
    }

    if (!bytes)
        bytes = 1;
    const size_t pitch_bytes = r->bindings[b].pitch_bytes;
    if (pitch_bytes % bytes || pitch_bytes / bytes > INT32_MAX)
        return 0;

    return pitch_bytes / bytes;
}

bool cox__resolve_number(const char *name, enum cox__arg_kind *kind)
{
    static const struct {
        const char *name;
        enum cox__arg_kind kind;
    } numbers[] = {{"columns", COX__ARG_KIND_COLUMNS},
                   {"rows", COX__ARG_KIND_ROWS},
                   {"first_row", COX__ARG_KIND_FIRST},
                   {"frame_rows", COX__ARG_KIND_FRAME}};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(name, numbers[i].name) == 0) {
            *kind = numbers[i].kind;
            return true;
        }

    return false;
}

bool cox__resolve_fills_in(const struct cox__signature *signature,
                           const struct cox__parameter *parameter)
{
    enum cox__arg_kind kind;
    if (cox__resolve_number(parameter->name, &kind))
        return true;

    for (uint32_t p = 0; p < signature->count; p++) {
        const char *name = signature->parameters[p].name;
        const size_t length = strlen(name);
        if (signature->parameters[p].kind != COX__PARAMETER_BUFFER ||
            strncmp(parameter->name, name, length) != 0)
            continue;

        if (strcmp(parameter->name + length, "_first_row") == 0 ||
            strcmp(parameter->name + length, "_pitch") == 0)
            return true;
    }
    return false;
}

/* Resolve a number that the library gives. False: the name is not one of these. */
static bool is_number(const struct cox__resolved *r, const struct cox__group_member *member,
                      const char *name, struct cox__arg *arg)
{
    if (cox__resolve_number(name, &arg->kind))
        return true;

    uint32_t b;
    if (ends_as(r, member, name, "_first_row", &b)) {
        *arg = (struct cox__arg){.kind = COX__ARG_KIND_ORIGIN, .index = b};
        return true;
    }
    if (ends_as(r, member, name, "_pitch", &b)) {
        *arg = (struct cox__arg){.kind = COX__ARG_KIND_VALUE,
                                 .offset = pitch_of(r, member, name, b)};
        return true;
    }
    return false;
}

static cox_status resolve_value(const struct cox__resolved *r,
                                const struct cox__group_member *member,
                                const struct cox__parameter *parameter, struct cox__arg *arg)
{
    const char *kernel = member->signature.kernel;
    if (is_number(r, member, parameter->name, arg)) {
        if (strcmp(parameter->type, "int") != 0 && strcmp(parameter->type, "uint") != 0)
            return COX__REFUSE(r->log, "kernel %s: '%s' must be an int, not %s", kernel,
                               parameter->name, parameter->type);
        if (arg->kind == COX__ARG_KIND_VALUE && !arg->offset)
            return COX__REFUSE(
                r->log,
                "kernel %s: '%s' has no value, because the buffer's pitch is not a whole number of "
                "elements that fits in an int",
                kernel, parameter->name);
        return COX_OK;
    }
    if (strcmp(parameter->name, "constants") == 0) {
        if (!r->params->constants_bytes)
            return COX__REFUSE(r->log, "kernel %s takes constants, but constants_bytes is 0",
                               kernel);
        if (parameter->bytes && parameter->bytes != r->params->constants_bytes)
            return COX__REFUSE(r->log,
                               "kernel %s: '%s constants' has %u bytes, but constants_bytes is %zu",
                               kernel, parameter->type, parameter->bytes,
                               r->params->constants_bytes);
        *arg = (struct cox__arg){.kind = COX__ARG_KIND_PARAMS, .bytes = r->params->constants_bytes};
        return COX_OK;
    }

    /* Anything else is a field of the constants. */
    const struct cox_field *field = find_field(r->params, parameter->name);
    if (!field)
        return COX__REFUSE(
            r->log,
            "kernel %s: unknown parameter '%s'; allowed: buffers, `fields` and the names in "
            "coxswain/session.h",
            kernel, parameter->name);
    if (parameter->bytes && parameter->bytes != field->bytes)
        return COX__REFUSE(r->log,
                           "kernel %s: '%s %s' has %u bytes, but the field of that name has %zu",
                           kernel, parameter->type, parameter->name, parameter->bytes,
                           field->bytes);

    if (field->offset > r->params->constants_bytes ||
        field->bytes > r->params->constants_bytes - field->offset)
        return COX__REFUSE(
            r->log,
            "kernel %s: field %s has %zu bytes at offset %zu, but constants_bytes is only %zu",
            kernel, parameter->name, field->bytes, field->offset, r->params->constants_bytes);
    *arg = (struct cox__arg){
        .kind = COX__ARG_KIND_PARAMS, .offset = field->offset, .bytes = field->bytes};
    return COX_OK;
}

static cox_status resolve_image(const struct cox__resolved *r,
                                const struct cox__group_member *member,
                                const struct cox__parameter *parameter, struct cox__arg *arg)
{
    const char *kernel = member->signature.kernel;
    const uint32_t b = cox__group_buffer_of(r, member->pass, parameter->name);
    const struct cox_buffer_layout *layout = r->buffers[b].layout;
    if (!layout || !layout->image_columns)
        return COX__REFUSE(
            r->log,
            "kernel %s: '%s' is an image; set image_columns, image_order and image_type in "
            "`buffers`",
            kernel, parameter->name);

    *arg = (struct cox__arg)COX__ARG_IMAGE(b, layout->image_order, layout->image_type,
                                           layout->image_columns);
    return COX_OK;
}

static cox_status resolve_parameter(const struct cox__resolved *r,
                                    const struct cox__group_member *member,
                                    const struct cox__parameter *parameter, struct cox__arg *arg)
{
    const char *kernel = member->signature.kernel;
    const struct cox_argument *given = cox__group_argument(member->pass, parameter->name);
    switch (parameter->kind) {
    case COX__PARAMETER_BUFFER:
        arg->kind = COX__ARG_KIND_BUFFER;
        arg->index = cox__group_buffer_of(r, member->pass, parameter->name);
        return COX_OK;
    case COX__PARAMETER_IMAGE:
        return resolve_image(r, member, parameter, arg);
    case COX__PARAMETER_LOCAL:
        if (!given || !given->local_bytes)
            return COX__REFUSE(
                r->log, "kernel %s: '%s' is local memory; set its local_bytes in `arguments`",
                kernel, parameter->name);
        *arg = (struct cox__arg)COX__ARG_LOCAL(given->local_bytes);
        return COX_OK;
    case COX__PARAMETER_VALUE:
        break;
    }
    return resolve_value(r, member, parameter, arg);
}

static cox_status resolve_member(const struct cox__resolved *r, struct cox__group_member *member)
{
    const struct cox__signature *signature = &member->signature;
    for (uint32_t p = 0; p < signature->count; p++) {
        const cox_status status = resolve_parameter(r, member, &signature->parameters[p],
                                                    &member->args[p]);
        if (status)
            return status;
    }
    return COX_OK;
}

static cox_status resolve_arguments(struct cox__resolved *r)
{
    for (uint32_t g = 0; g < r->spec.pass_count; g++)
        for (uint32_t s = 0; s < r->passes[g].stage_count; s++) {
            struct cox__group_member *member = &r->groups[g].members[s];
            r->groups[g].stages[s].arg_count = member->signature.count;
            const cox_status status = resolve_member(r, member);
            if (status)
                return status;
        }
    return COX_OK;
}

/* ---- how a group accesses a buffer ---- */

struct touch {
    bool used, reads, writes;
    bool writes_before_reading; /* a later parameter of the group reads it */
    bool whole, in_place, partial, writes_all, has_two_divisors, absolute;
    uint32_t halo_above, halo_below, row_divisor;

    const struct cox__group_member *writer;       /* the first that writes it */
    const struct cox__group_member *other_writer; /* another one */
    const struct cox__group_member *early_reader; /* reads it before another has written it */

    /* A kernel that takes a pointer to the buffer, but not the row at which this begins. */
    const char *without_first_row;
};

/* Note which members write the buffer, and which one reads what no other has written. The order of
 * one kernel's parameters does not matter: a kernel that writes the buffer reads older values. */
static void touch_order(struct touch *touch, const struct cox__group_member *member, bool reads,
                        bool writes)
{
    if (reads && !touch->early_reader && (!touch->writer || touch->writer == member))
        touch->early_reader = member;
    if (writes && touch->writer && touch->writer != member)
        touch->other_writer = member;
    if (writes && !touch->writer)
        touch->writer = member;
}

static void touch_parameter(struct touch *touch, const struct cox__group_member *member,
                            const struct cox__parameter *parameter)
{
    static const struct cox_argument nothing = {0};
    const struct cox_argument *given = cox__group_argument(member->pass, parameter->name);
    if (!given)
        given = &nothing;

    touch->has_two_divisors |= touch->used && touch->row_divisor != given->row_divisor;
    touch->row_divisor = given->row_divisor;
    touch->used = true;
    touch->absolute = member->pass->absolute;
    const bool reads_only = parameter->reads_only || given->read_only;
    if (reads_only) {
        touch->reads = true;
        touch->writes_before_reading |= touch->writes;
    }
    touch->writes |= !reads_only;
    touch_order(touch, member, reads_only || given->in_place, !reads_only);

    touch->whole |= given->whole;
    touch->in_place |= given->in_place;
    touch->partial |= given->partial;
    touch->writes_all |= given->writes_all;
    touch->halo_above = cox__max_u32(touch->halo_above,
                                     cox__max_u32(given->halo_rows, given->halo_above));
    touch->halo_below = cox__max_u32(touch->halo_below,
                                     cox__max_u32(given->halo_rows, given->halo_below));

    char first_row[COX__NAME_BYTES + 16];
    strcpy(stpcpy(first_row, parameter->name), "_first_row");
    if (parameter->kind == COX__PARAMETER_BUFFER &&
        !cox__signature_find(&member->signature, first_row))
        touch->without_first_row = member->signature.kernel;
}

/* How the members of a group access each buffer, in their order. */
static void touch_buffers(const struct cox__resolved *r, uint32_t g,
                          struct touch touches[COX_BUFFERS_MAX])
{
    for (uint32_t s = 0; s < r->passes[g].stage_count; s++) {
        const struct cox__group_member *member = &r->groups[g].members[s];
        for (uint32_t p = 0; p < member->signature.count; p++) {
            const struct cox__parameter *parameter = &member->signature.parameters[p];
            if (!cox__signature_takes_buffer(parameter))
                continue;
            const uint32_t b = cox__group_buffer_of(r, member->pass, parameter->name);
            touch_parameter(&touches[b], member, parameter);
        }
    }
}

static bool has_halo(const struct touch *touch)
{
    return touch->halo_above || touch->halo_below;
}

/* A pass in messages: its number in `passes`, and its name. */
static uint32_t pass_number(const struct cox__resolved *r, const struct cox__group_member *member)
{
    return (uint32_t)(member->pass - r->params->passes);
}

static const char *pass_name(const struct cox__group_member *member)
{
    if (member->pass->name)
        return member->pass->name;
    return member->signature.kernel;
}

/* Check a buffer that a pass of the group reads after one has written it, or that is merged and
 * both read and written in the group.
 *
 * Each band has its own memory for it, without old values. The writing pass alone computes the halo
 * rows that the readers need (pipeline.c). So there is one such pass, and it runs before all
 * readers. */
static cox_status check_handed_on(const struct cox__resolved *r, const struct touch *touch,
                                  uint32_t b)
{
    const struct cox__binding *buffer = &r->bindings[b];
    if (buffer->merge)
        return COX__REFUSE(
            r->log,
            "buffer %s has `merge`, but a pass of the group that writes it reads it, "
            "before the bands' results are merged; do not fuse that pass",
            buffer->name);
    if (touch->partial)
        return COX__REFUSE(
            r->log,
            "buffer %s is handed on to a fused pass, but `partial` is set; each band has its own "
            "memory for it, without old values",
            buffer->name);
    if (touch->other_writer)
        return COX__REFUSE(
            r->log,
            "buffer %s is written by passes[%u] (%s) and by passes[%u] (%s), which are fused; use "
            "a scratch buffer for each, or declare the pointer const in a pass that only reads it",
            buffer->name, pass_number(r, touch->writer), pass_name(touch->writer),
            pass_number(r, touch->other_writer), pass_name(touch->other_writer));
    if (touch->early_reader == touch->writer)
        return COX__REFUSE(r->log,
                           "buffer %s is both read and written by passes[%u] (%s); use two buffers",
                           buffer->name, pass_number(r, touch->writer), pass_name(touch->writer));
    if (touch->early_reader)
        return COX__REFUSE(
            r->log,
            "buffer %s is read by passes[%u] (%s) before passes[%u] (%s), which is fused to it, "
            "writes it; use two buffers",
            buffer->name, pass_number(r, touch->early_reader), pass_name(touch->early_reader),
            pass_number(r, touch->writer), pass_name(touch->writer));
    if (!buffer->scratch)
        return COX__REFUSE(
            r->log,
            "buffer %s is written by a pass and read by one fused to it, so it must be scratch",
            buffer->name);

    return COX_OK;
}

/* The access of a buffer that the group writes by rows, and reads in no later member. */
static cox_status set_written(const struct cox__resolved *r, const struct touch *touch, uint32_t b,
                              struct cox__pass_binding *out)
{
    if (has_halo(touch))
        return COX__REFUSE(
            r->log,
            "buffer %s has halo_rows set, but a kernel writes it; only buffers that are read have "
            "halo rows",
            r->bindings[b].name);

    out->access = touch->in_place ? COX__READ_WRITE : COX__WRITE;
    out->reads_all = touch->whole;
    if (touch->partial && !touch->in_place)
        out->coverage = COX__COVERS_SOME;
    else if (touch->writes_all)
        out->coverage = COX__COVERS_ALL;
    return COX_OK;
}

/* Rows that `bytes` adds below the frame's are a border, so halos reach them. A list of row starts
 * has one such row. */
static void take_rows_below(struct cox__resolved *r, uint32_t b)
{
    const struct cox_buffer_layout *layout = r->buffers[b].layout;
    struct cox__binding *binding = &r->bindings[b];
    if (!layout || layout->border_below || !binding->pitch_bytes)
        return;

    const uint32_t rows = cox__buffer_rows(r->params->rows, cox__row_divisor(binding->row_divisor));
    binding->border_below = 0;
    const size_t needed = cox__rows_bytes(binding, rows);
    if (layout->bytes > needed)
        binding->border_below = cox__min_u64((layout->bytes - needed) / binding->pitch_bytes,
                                             INT32_MAX);
}

/* `overlaps`: kernels of the group run over more rows than the band's. */
static cox_status set_access(const struct cox__resolved *r, const struct touch *touch, uint32_t b,
                             bool overlaps, struct cox__pass_binding *out)
{
    const struct cox__binding *buffer = &r->bindings[b];
    *out = (struct cox__pass_binding){.binding = b, .row_divisor = touch->row_divisor};
    if (!out->row_divisor)
        out->row_divisor = buffer->row_divisor;
    if (touch->has_two_divisors)
        return COX__REFUSE(r->log, "buffer %s: fused kernels set different row_divisor",
                           buffer->name);

    if (buffer->merge && has_halo(touch))
        return COX__REFUSE(r->log,
                           "buffer %s has `merge`, but `halo_rows` is %u; a merged buffer is not "
                           "accessed by rows",
                           buffer->name, cox__max_u32(touch->halo_above, touch->halo_below));

    if (buffer->merge && touch->partial)
        return COX__REFUSE(r->log,
                           "buffer %s has `merge`, but `partial` is set; a merged buffer starts "
                           "with zeros",
                           buffer->name);

    /* A whole buffer, or one that each band has for itself and that is merged. */
    if (buffer->merge && touch->writes) {
        out->row_access = COX__REDUCE;
        out->access = COX__WRITE;
        return COX_OK;
    }
    if (buffer->merge || (touch->whole && !(touch->writes && touch->in_place))) {
        out->row_access = COX__WHOLE;
        out->access = COX__READ;
        if (touch->writes)
            return COX__REFUSE(r->log,
                               "buffer %s is read whole and written in one pass; use two buffers, "
                               "or set in_place too if bands read no rows that others write",
                               buffer->name);
        return COX_OK;
    }

    /* A buffer by rows. `own`: each band has its own memory for it. */
    const bool own = touch->writes_before_reading;
    if (touch->writes && touch->reads && !own)
        return COX__REFUSE(
            r->log, "buffer %s is read by a pass and written by one fused to it; use two buffers",
            buffer->name);
    if (touch->writes && !own)
        return set_written(r, touch, b, out);

    out->access = own ? COX__READ_WRITE : COX__READ;
    if (own || overlaps || has_halo(touch))
        out->row_access = COX__HALO;
    out->halo_above = touch->halo_above;
    out->halo_below = touch->halo_below;
    if (out->row_access == COX__HALO && touch->without_first_row && !touch->absolute)
        return COX__REFUSE(
            r->log,
            "kernel %s: buffer %s has halo rows, so its pointer begins before the band; add the "
            "parameter 'int NAME_first_row', where NAME is the pointer's name",
            touch->without_first_row, buffer->name);
    return COX_OK;
}

/* A size that the application gives, and that is too small for the rows which a group uses. */
static cox_status check_bytes(const struct cox__resolved *r, uint32_t g,
                              const struct cox__pass_binding *use)
{
    const struct cox_buffer_layout *layout = r->buffers[use->binding].layout;
    if (!layout || !layout->bytes || use->row_access == COX__WHOLE ||
        use->row_access == COX__REDUCE)
        return COX_OK;

    uint32_t rows = r->groups[g].members[0].pass->rows;
    if (!rows)
        rows = r->params->rows;
    rows = cox__buffer_rows(rows, use->row_divisor);

    const struct cox__binding *binding = &r->bindings[use->binding];
    const uint64_t all = (uint64_t)rows + binding->border_above + binding->border_below;
    if (layout->bytes > binding->offset_bytes &&
        (layout->bytes - binding->offset_bytes) / all >= binding->pitch_bytes)
        return COX_OK;
    return COX__REFUSE(
        r->log,
        "buffer %s has %zu bytes, but a kernel uses it by rows: %u rows of %zu bytes; set a larger "
        "`bytes`, or `merge`, or cox_argument.whole",
        binding->name, layout->bytes, rows, binding->pitch_bytes);
}

static cox_status resolve_group(struct cox__resolved *r, uint32_t g)
{
    struct cox__group *group = &r->groups[g];
    struct cox__pass_spec *pass = &r->passes[g];
    struct touch touches[COX_BUFFERS_MAX] = {{.used = false}};
    touch_buffers(r, g, touches);

    /* If members pass rows on, kernels run over more rows than the band's, and read more rows. */
    bool overlaps = false;
    for (uint32_t b = 0; b < r->spec.binding_count; b++) {
        const bool merged = r->bindings[b].merge && touches[b].writes && touches[b].reads;
        if (!touches[b].writes_before_reading && !merged)
            continue;
        if (check_handed_on(r, &touches[b], b))
            return COX_E_INVALID;
        overlaps = true;
    }

    pass->uses = group->bindings;
    for (uint32_t b = 0; b < r->spec.binding_count; b++) {
        if (!touches[b].used)
            continue;
        if (touches[b].halo_below)
            take_rows_below(r, b);

        struct cox__pass_binding *use = &group->bindings[pass->use_count++];
        cox_status status = set_access(r, &touches[b], b, overlaps, use);
        if (!status)
            status = check_bytes(r, g, use);
        if (status)
            return status;
        r->spec.allow_in_place |= touches[b].in_place;
    }

    const struct cox_pass *first = group->members[0].pass;
    pass->name = first->name;
    if (!pass->name)
        pass->name = group->stages[0].kernel;
    pass->rows = first->rows;
    pass->absolute = first->absolute;
    pass->policy = first->policy;
    pass->done = first->done;
    pass->done_user = first->done_user;
    pass->devices = group->devices;
    return cox__device_list_read(r->runtime, first->devices, group->devices, &pass->device_count);
}

/* The session's access of a buffer: that of the first pass that accesses it by rows. */
static void summarise_buffer(struct cox__resolved *r, uint32_t b)
{
    struct cox__binding *binding = &r->bindings[b];
    binding->row_access = COX__WHOLE;
    binding->access = COX__READ;
    if (binding->merge) {
        binding->row_access = COX__REDUCE;
        binding->access = COX__WRITE;
    }

    for (uint32_t g = r->spec.pass_count; g-- > 0;)
        for (uint32_t u = 0; u < r->passes[g].use_count; u++) {
            const struct cox__pass_binding *use = &r->groups[g].bindings[u];
            if (use->binding != b || use->row_access == COX__WHOLE ||
                use->row_access == COX__REDUCE)
                continue;

            binding->row_access = use->row_access;
            binding->access = use->access;
            binding->coverage = use->coverage;
            binding->halo_above = use->halo_above;
            binding->halo_below = use->halo_below;
            binding->reads_all = use->reads_all;
        }
}

/* ---- all of it ---- */

/* Does nothing: with a function, the session compiles in the background. */
static void is_ready(void *user, cox_status status)
{
    (void)user;
    (void)status;
}

cox_status cox__resolve_common(const cox_runtime *runtime, const struct cox_session_params *params,
                               struct cox__session_spec *spec, uint32_t devices[COX_DEVICES_MAX])
{
    if ((unsigned)params->warmup > COX_WARMUP_BACKGROUND)
        return COX__REFUSE(&runtime->log, "warmup: %d is not a value of enum cox_warmup",
                           (int)params->warmup);

    *spec = (struct cox__session_spec){.policy = params->policy,
                                       .custom_policy = params->custom_policy,
                                       .policy_options = params->policy_options,
                                       .min_band_rows = params->min_band_rows,
                                       .in_flight = params->in_flight,
                                       .devices = devices,
                                       .no_warmup = params->warmup == COX_WARMUP_NONE,
                                       .no_profile = params->no_profile,
                                       .verify = params->verify,
                                       .check = params->check,
                                       .device_timeout_ns = params->device_timeout_ns,
                                       .meter = params->meter,
                                       .meter_user = params->meter_user,
                                       .report = params->report,
                                       .report_user = params->report_user,
                                       .profile = params->profile,
                                       .split_each_pass = params->split_each_pass,
                                       .warm_start = params->warm_start};
    if (params->warmup == COX_WARMUP_BACKGROUND)
        spec->ready = is_ready;

    return cox__device_list_read(runtime, params->devices, devices, &spec->device_count);
}

static void take_pipeline(struct cox__session_spec *spec, const struct cox_pipeline *pipeline)
{
    const struct cox__session_spec *from = &pipeline->spec;
    spec->rows = from->rows;
    spec->binding_count = from->binding_count;
    spec->bindings = from->bindings;
    spec->stage_count = from->stage_count;
    spec->stages = from->stages;
    spec->params_bytes = from->params_bytes;
    spec->allow_in_place = from->allow_in_place;
    spec->pass_count = from->pass_count;
    spec->passes = from->passes;
}

/* Whether some kernel has a parameter of this name. */
static bool is_taken(const struct cox__resolved *r, const char *name)
{
    for (uint32_t g = 0; g < r->spec.pass_count; g++)
        for (uint32_t s = 0; s < r->passes[g].stage_count; s++)
            if (cox__signature_find(&r->groups[g].members[s].signature, name))
                return true;

    return false;
}

/* Whether a kernel or a function of a pass gets the frame's constants. */
static bool uses_constants(const struct cox__resolved *r)
{
    for (uint32_t g = 0; g < r->spec.pass_count; g++) {
        const struct cox__pass_spec *pass = &r->passes[g];
        if (pass->done)
            return true;

        for (uint32_t s = 0; s < pass->stage_count; s++)
            for (uint32_t a = 0; a < pass->stages[s].arg_count; a++)
                if (pass->stages[s].args[a].kind == COX__ARG_KIND_PARAMS)
                    return true;
    }

    return false;
}

/* Refuse constants that nothing takes: a name may be misspelt. A kernel that takes all constants as
 * one struct takes each field. */
static cox_status check_constants(const struct cox__resolved *r)
{
    const bool as_struct = is_taken(r, "constants");
    for (const struct cox_field *f = r->params->fields; f && f->name; f++) {
        if (find_field(r->params, f->name) != f)
            return COX__REFUSE(r->log, "field %s is listed twice in `fields`", f->name);
        if (!as_struct && !is_taken(r, f->name))
            return COX__REFUSE(r->log, "field %s is in `fields`, but no kernel takes it", f->name);
    }

    if (r->params->constants_bytes && !uses_constants(r))
        return COX__REFUSE(
            r->log,
            "constants_bytes is %zu, but no kernel takes `constants` or a field, and "
            "no pass has `done`",
            r->params->constants_bytes);
    return COX_OK;
}

static cox_status resolve_passes(struct cox__resolved *r)
{
    const struct cox_session_params *params = r->params;
    if (params->columns > INT32_MAX || !params->rows || params->rows > INT32_MAX)
        return COX__REFUSE(r->log,
                           "a frame of %u columns and %u rows; allowed: 0 to %d columns (0 = one "
                           "dimension) and 1 to %d rows",
                           params->columns, params->rows, INT32_MAX, INT32_MAX);
    if (params->constants_bytes > COX_CONSTANTS_BYTES_MAX)
        return COX__REFUSE(r->log, "constants of %zu bytes; allowed: at most %d",
                           params->constants_bytes, COX_CONSTANTS_BYTES_MAX);

    r->spec.rows = params->rows;
    r->spec.bindings = r->bindings;
    r->spec.passes = r->passes;
    r->spec.params_bytes = params->constants_bytes;

    cox_status status = cox__compile_check(params->headers, params->libraries, r->log);
    if (!status)
        status = cox__groups_read(r);
    if (!status)
        status = resolve_arguments(r);

    for (uint32_t g = 0; !status && g < r->spec.pass_count; g++)
        status = resolve_group(r, g);
    if (!status)
        status = check_constants(r);
    for (uint32_t b = 0; !status && b < r->spec.binding_count; b++)
        summarise_buffer(r, b);
    return status;
}

cox_status cox__resolve_params(const cox_runtime *runtime, const struct cox_session_params *params,
                               struct cox__resolved **resolved)
{
    struct cox__resolved *r = calloc(1, sizeof *r);
    *resolved = r;
    if (!r) {
        cox__log(&runtime->log, COX_LOG_ERROR, "no memory to read a session's parameters");
        return COX_E_NOMEM;
    }
    r->params = params;
    r->runtime = runtime;
    r->log = &runtime->log;

    const cox_status status = cox__resolve_common(runtime, params, &r->spec, r->devices);
    if (status)
        return status;
    if (!params->pipeline)
        return resolve_passes(r);

    if (params->passes || params->buffers || params->headers || params->libraries || params->fields)
        return COX__REFUSE(r->log,
                           "a session has either `pipeline`, or `passes`, `buffers`, `headers`, "
                           "`libraries` and `fields`, not both");

    take_pipeline(&r->spec, params->pipeline);
    return COX_OK;
}

const struct cox__session_spec *cox__resolve_spec(const struct cox__resolved *resolved)
{
    return &resolved->spec;
}

void cox__resolve_free(struct cox__resolved *resolved)
{
    free(resolved);
}
