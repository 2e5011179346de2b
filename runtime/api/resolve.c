/* Passes come in groups: a pass and those that are fused with it. A group is one pass of the engine, and its members are
 * that pass's stages.
 *
 * The steps: read all signatures, find the buffers that they name, then say for each kernel what its parameters get,
 * and for each group how it touches each buffer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "resolve.h"
#include "device_list.h"
#include "signature.h"

#include <stdlib.h>
#include <string.h>

#define REFUSE(log, ...) (cox__log(log, COX_LOG_ERROR, __VA_ARGS__), COX_E_INVALID)

/* A pass of the application's, and what it becomes. */
struct member {
    const struct cox_pass *pass;
    const char *source;
    struct cox__signature signature;
    struct cox__variant variants[COX_DEVICES_MAX];
    struct cox__arg args[COX_ARGUMENTS_MAX];
};

struct group {
    struct member members[COX_FUSED_MAX];
    struct cox__stage stages[COX_FUSED_MAX];
    struct cox__pass_binding bindings[COX_BUFFERS_MAX];
    uint32_t devices[COX_DEVICES_MAX];
};

struct buffer {
    char name[COX__NAME_BYTES];
    const struct cox_buffer_layout *layout; /* NULL = found in a signature */
    uint32_t element_bytes;                 /* 0 = unknown */
    uint32_t columns;                       /* of the first kernel that names it */
};

struct cox__resolved {
    struct cox__session_spec spec;
    uint32_t devices[COX_DEVICES_MAX];
    struct cox__binding bindings[COX_BUFFERS_MAX];
    struct cox__pass_spec passes[COX_PASSES_MAX];
    struct group groups[COX_PASSES_MAX];
    struct buffer buffers[COX_BUFFERS_MAX];
    const struct cox_session_params *params;
    const cox_runtime *runtime;
    const struct cox__log *log;
};

/* ---- lists ---- */

static bool is_last_pass(const struct cox_pass *pass)
{
    return !pass->source && !pass->kernel;
}

static const struct cox_argument *find_argument(const struct cox_pass *pass, const char *name)
{
    for (const struct cox_argument *a = pass->arguments; a && a->name; a++)
        if (strcmp(a->name, name) == 0)
            return a;

    return NULL;
}

static const struct cox_field *find_field(const struct cox_session_params *params, const char *name)
{
    for (const struct cox_field *f = params->fields; f && f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;

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
    const struct cox_argument *argument = find_argument(pass, name);
    return argument && argument->buffer ? argument->buffer : name;
}

static bool takes_buffer(const struct cox__parameter *parameter)
{
    return parameter->kind == COX__PARAMETER_BUFFER || parameter->kind == COX__PARAMETER_IMAGE;
}

static const struct cox__parameter *find_parameter(const struct cox__signature *signature,
                                                   const char *name)
{
    for (uint32_t p = 0; p < signature->count; p++)
        if (strcmp(signature->parameters[p].name, name) == 0)
            return &signature->parameters[p];

    return NULL;
}

/* ---- signatures and variants ---- */

enum { GROUP = 64 };

/* The group of a kernel whose pass says none: work-items side by side in a row, as GPUs and the vectors of CPUs want
 * them. With local memory the kernel's author must say it. */
static uint32_t default_columns(const struct member *member, uint32_t columns,
                                uint32_t item_columns)
{
    for (uint32_t p = 0; p < member->signature.count; p++)
        if (member->signature.parameters[p].kind == COX__PARAMETER_LOCAL)
            return 1;

    const uint32_t items = item_columns ? columns / item_columns : columns;
    uint32_t group = 1;
    while (group < GROUP && group < items)
        group *= 2;
    return group;
}

static void read_variants(struct cox__resolved *r, struct member *member, struct cox__stage *stage)
{
    const struct cox_pass *pass = member->pass;
    const uint32_t all = r->runtime->backend->ops->device_count(r->runtime->backend);
    bool has_own[COX_DEVICES_MAX] = {false};
    for (const struct cox_variant *v = pass->variants; v && v->source; v++) {
        uint32_t devices[COX_DEVICES_MAX], count;
        if (!cox__device_list_find(r->runtime, v->devices, devices, &count))
            continue; /* for devices that this machine lacks */

        for (uint32_t i = 0; i < (count ? count : all); i++) {
            const uint32_t device = count ? devices[i] : i;
            if (has_own[device])
                continue;
            has_own[device] = true;
            member->variants[stage->variant_count++] = (struct cox__variant){
                .device_plus_1 = device + 1,
                .source = v->source,
                .options = v->options,
                .local_columns = v->local_columns,
                .local_rows = v->local_rows,
                .item_columns = v->item_columns,
                .item_rows = v->item_rows};
        }
    }

    if (stage->variant_count < all || !all)
        member->variants[stage->variant_count++] = (struct cox__variant){
            .source = member->source,
            .options = pass->options,
            .local_columns = pass->local_columns,
            .local_rows = pass->local_rows,
            .item_columns = pass->item_columns,
            .item_rows = pass->item_rows};

    for (uint32_t v = 0; v < stage->variant_count; v++) {
        struct cox__variant *variant = &member->variants[v];
        if (!variant->local_columns && !variant->local_rows)
            variant->local_columns = default_columns(member, stage->columns, variant->item_columns);
    }
}

static cox_status check_arguments(const struct cox__resolved *r, const struct member *member)
{
    for (const struct cox_argument *a = member->pass->arguments; a && a->name; a++)
        if (!find_parameter(&member->signature, a->name))
            return REFUSE(r->log, "kernel %s has no parameter '%s', which its pass lists",
                          member->signature.kernel, a->name);

    return COX_OK;
}

static cox_status read_member(struct cox__resolved *r, struct group *group, uint32_t index)
{
    struct member *member = &group->members[index];
    struct cox__stage *stage = &group->stages[index];
    cox_status status = cox__signature_read(member->source, member->pass->kernel,
                                            &member->signature, r->log);
    if (!status)
        status = check_arguments(r, member);
    stage->kernel = member->signature.kernel;
    stage->columns = member->pass->columns ? member->pass->columns : r->params->columns;
    read_variants(r, member, stage);
    stage->variants = member->variants;
    stage->args = member->args;
    return status;
}

/* What the first pass of a group says for all. */
static cox_status check_fused(const struct cox__resolved *r, const struct cox_pass *pass)
{
    if (!pass->rows && !pass->devices && !pass->policy && !pass->done)
        return COX_OK;

    return REFUSE(r->log,
                  "a fused pass has no rows, devices, policy or `done` of its own; the pass that "
                  "it is fused with has them");
}

/* The group that a pass is in, with a new one where it is not fused. */
static cox_status enter_group(struct cox__resolved *r, const struct cox_pass *pass,
                              struct group **group, uint32_t *index)
{
    const uint32_t count = r->spec.pass_count;
    if (!pass->fused) {
        if (count == COX_PASSES_MAX)
            return REFUSE(r->log, "passes: at most %d are possible, those that are fused aside",
                          COX_PASSES_MAX);
        r->passes[count].stages = r->groups[count].stages;
        r->spec.pass_count++;
    } else if (!count) {
        return REFUSE(r->log, "the first pass is fused, but no pass is before it");
    }

    if (pass->fused && check_fused(r, pass))
        return COX_E_INVALID;

    struct cox__pass_spec *entered = &r->passes[r->spec.pass_count - 1];
    if (entered->stage_count == COX_FUSED_MAX)
        return REFUSE(r->log, "at most %d passes can be fused", COX_FUSED_MAX);
    *group = &r->groups[r->spec.pass_count - 1];
    *index = entered->stage_count++;
    return COX_OK;
}

static cox_status read_passes(struct cox__resolved *r)
{
    const struct cox_pass *passes = r->params->passes;
    if (!passes || is_last_pass(passes))
        return REFUSE(r->log, "the session has no passes");

    const char *source = NULL;
    for (const struct cox_pass *pass = passes; !is_last_pass(pass); pass++) {
        source = pass->source ? pass->source : source;
        if (!source)
            return REFUSE(r->log, "pass %s has no source", pass->kernel);

        struct group *group;
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
        return REFUSE(r->log, "buffer %s: a session has at most %d buffers", name, COX_BUFFERS_MAX);
    if (strlen(name) >= COX__NAME_BYTES)
        return REFUSE(r->log, "buffer %s: a name has at most %d characters", name,
                      COX__NAME_BYTES - 1);
    if (find_buffer(r, name) != UINT32_MAX)
        return REFUSE(r->log, "buffer %s is listed twice", name);

    struct buffer *buffer = &r->buffers[r->spec.binding_count++];
    strcpy(buffer->name, name);
    buffer->layout = layout;
    return COX_OK;
}

/* Note what the signature says of the buffer, or add one that no list names. */
static cox_status meet_buffer(struct cox__resolved *r, const struct cox_pass *pass,
                              const struct cox__parameter *parameter,
                              const struct cox__stage *stage)
{
    const char *name = buffer_name(pass, parameter->name);
    uint32_t b = find_buffer(r, name);
    if (b == UINT32_MAX && r->params->buffers)
        return REFUSE(r->log, "kernel %s takes '%s', which is no buffer of the session",
                      stage->kernel, name);
    if (b == UINT32_MAX) {
        b = r->spec.binding_count;
        const cox_status status = add_buffer(r, name, NULL);
        if (status)
            return status;
    }

    struct buffer *buffer = &r->buffers[b];
    if (!buffer->element_bytes)
        buffer->element_bytes = parameter->bytes;
    if (!buffer->columns)
        buffer->columns = stage->columns;
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
            const struct member *member = &r->groups[g].members[s];
            const struct cox__signature *signature = &member->signature;
            for (uint32_t p = 0; p < signature->count; p++) {
                if (!takes_buffer(&signature->parameters[p]))
                    continue;
                const cox_status status = meet_buffer(r, member->pass, &signature->parameters[p],
                                                      &r->groups[g].stages[s]);
                if (status)
                    return status;
            }
        }
    return COX_OK;
}

/* Frame rows per row of the buffer, as all passes see it that do not say otherwise. */
static uint32_t divisor_of(const struct buffer *buffer)
{
    return buffer->layout && buffer->layout->row_divisor ? buffer->layout->row_divisor : 1;
}

/* What each buffer has in memory. How passes touch it is said later. */
static cox_status lay_out_buffers(struct cox__resolved *r)
{
    for (uint32_t b = 0; b < r->spec.binding_count; b++) {
        const struct buffer *buffer = &r->buffers[b];
        const struct cox_buffer_layout given = buffer->layout ? *buffer->layout
                                                              : (struct cox_buffer_layout){0};
        struct cox__binding *binding = &r->bindings[b];
        binding->name = buffer->name;
        binding->row_divisor = divisor_of(buffer);
        binding->scratch = given.scratch;
        binding->merge = given.merge;
        binding->merge_user = given.merge_user;
        binding->pitch_bytes = given.pitch_bytes;
        binding->bytes = given.bytes;
        if (!binding->pitch_bytes)
            binding->pitch_bytes = (size_t)buffer->columns * buffer->element_bytes;

        if (given.merge && !given.bytes)
            return REFUSE(r->log, "buffer %s is merged: `bytes` must say its size", buffer->name);
        if (!binding->pitch_bytes && !binding->bytes)
            return REFUSE(r->log,
                          "buffer %s: the size of its elements is not known; give `pitch_bytes`, "
                          "or `bytes` if it is read whole",
                          buffer->name);

        const uint32_t rows = r->params->rows / binding->row_divisor +
                              (r->params->rows % binding->row_divisor != 0);
        if (!binding->bytes && binding->pitch_bytes <= SIZE_MAX / 2 / (rows ? rows : 1))
            binding->bytes = binding->pitch_bytes * rows;
    }
    return COX_OK;
}

/* ---- parameters ---- */

/* Whether `name` is a buffer parameter's name and `ending`, such as in_pitch. */
static bool ends_as(const struct cox__resolved *r, const struct member *member, const char *name,
                    const char *ending, uint32_t *buffer)
{
    char start[COX__NAME_BYTES];
    const size_t length = strlen(name), tail = strlen(ending);
    if (length <= tail || strcmp(name + length - tail, ending) != 0)
        return false;

    memcpy(start, name, length - tail);
    start[length - tail] = '\0';
    *buffer = find_buffer(r, buffer_name(member->pass, start));
    return *buffer != UINT32_MAX;
}

/* Elements from one row to the next, of the type that the kernel takes the buffer as. */
static size_t pitch_of(const struct cox__resolved *r, const struct member *member, const char *name,
                       uint32_t b)
{
    uint32_t bytes = r->buffers[b].element_bytes;
    const struct cox__signature *signature = &member->signature;
    for (uint32_t p = 0; p < signature->count; p++) {
        const struct cox__parameter *parameter = &signature->parameters[p];
        const size_t length = strlen(parameter->name);
        const bool is_its = strncmp(name, parameter->name, length) == 0 &&
                            strcmp(name + length, "_pitch") == 0;
        if (is_its && parameter->bytes)
            bytes = parameter->bytes;
    }
    return r->bindings[b].pitch_bytes / (bytes ? bytes : 1);
}

/* What a number of the library's is called; false: the name is none of these. */
static bool is_number(const struct cox__resolved *r, const struct member *member, const char *name,
                      struct cox__arg *arg)
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
            arg->kind = numbers[i].kind;
            return true;
        }

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

static cox_status resolve_value(const struct cox__resolved *r, const struct member *member,
                                const struct cox__parameter *parameter, struct cox__arg *arg)
{
    const char *kernel = member->signature.kernel;
    if (is_number(r, member, parameter->name, arg)) {
        if (strcmp(parameter->type, "int") != 0 && strcmp(parameter->type, "uint") != 0)
            return REFUSE(r->log, "kernel %s: '%s' must be an int, not %s", kernel, parameter->name,
                          parameter->type);
        return COX_OK;
    }
    if (strcmp(parameter->name, "constants") == 0) {
        *arg = (struct cox__arg){.kind = COX__ARG_KIND_PARAMS, .bytes = r->params->constants_bytes};
        return COX_OK;
    }

    const struct cox_field *field = find_field(r->params, parameter->name);
    if (!field)
        return REFUSE(r->log,
                      "kernel %s: nothing is known of '%s'; it is no buffer, no field and none of "
                      "the names in coxswain/session.h",
                      kernel, parameter->name);
    if (parameter->bytes && parameter->bytes != field->bytes)
        return REFUSE(r->log, "kernel %s: %s %s has %u bytes, the field of that name %zu", kernel,
                      parameter->type, parameter->name, parameter->bytes, field->bytes);
    *arg = (struct cox__arg){
        .kind = COX__ARG_KIND_PARAMS, .offset = field->offset, .bytes = field->bytes};
    return COX_OK;
}

static cox_status resolve_image(const struct cox__resolved *r, const struct member *member,
                                const struct cox__parameter *parameter, struct cox__arg *arg)
{
    const char *kernel = member->signature.kernel;
    const uint32_t b = find_buffer(r, buffer_name(member->pass, parameter->name));
    const struct cox_buffer_layout *layout = r->buffers[b].layout;
    if (!layout || !layout->image_columns)
        return REFUSE(r->log, "kernel %s: %s is an image; cox_buffer_layout must say its format",
                      kernel, parameter->name);

    *arg = (struct cox__arg)COX__ARG_IMAGE(b, layout->image_order, layout->image_type,
                                           layout->image_columns);
    return COX_OK;
}

static cox_status resolve_parameter(const struct cox__resolved *r, const struct member *member,
                                    const struct cox__parameter *parameter, struct cox__arg *arg)
{
    const char *kernel = member->signature.kernel;
    const struct cox_argument *given = find_argument(member->pass, parameter->name);
    switch (parameter->kind) {
    case COX__PARAMETER_BUFFER:
        arg->kind = COX__ARG_KIND_BUFFER;
        arg->index = find_buffer(r, buffer_name(member->pass, parameter->name));
        return COX_OK;
    case COX__PARAMETER_IMAGE:
        return resolve_image(r, member, parameter, arg);
    case COX__PARAMETER_LOCAL:
        if (!given || !given->local_bytes)
            return REFUSE(r->log, "kernel %s: %s is local memory; cox_argument must say its size",
                          kernel, parameter->name);
        *arg = (struct cox__arg)COX__ARG_LOCAL(given->local_bytes);
        return COX_OK;
    case COX__PARAMETER_VALUE:
        break;
    }
    return resolve_value(r, member, parameter, arg);
}

static cox_status resolve_arguments(struct cox__resolved *r)
{
    for (uint32_t g = 0; g < r->spec.pass_count; g++)
        for (uint32_t s = 0; s < r->passes[g].stage_count; s++) {
            struct member *member = &r->groups[g].members[s];
            struct cox__stage *stage = &r->groups[g].stages[s];
            stage->arg_count = member->signature.count;
            for (uint32_t p = 0; p < stage->arg_count; p++) {
                const cox_status status = resolve_parameter(r, member,
                                                            &member->signature.parameters[p],
                                                            &member->args[p]);
                if (status)
                    return status;
            }
        }
    return COX_OK;
}

/* ---- how a group touches a buffer ---- */

struct touch {
    bool used, reads, writes,
        writes_before_reading; /* in a later member than the one that writes */
    bool whole, in_place, has_pointer;
    uint32_t halo_rows, row_divisor;
    const char
        *without_first_row; /* a kernel that takes a pointer to it, but not where that begins */
};

static void touch_parameter(struct touch *touch, const struct member *member,
                            const struct cox__parameter *parameter)
{
    static const struct cox_argument nothing = {0};
    const struct cox_argument *given = find_argument(member->pass, parameter->name);
    given = given ? given : &nothing;
    touch->used = true;
    if (parameter->reads_only) {
        touch->reads = true;
        touch->writes_before_reading |= touch->writes;
    }
    touch->writes |= !parameter->reads_only;
    touch->whole |= given->whole;
    touch->in_place |= given->in_place;
    if (given->halo_rows > touch->halo_rows)
        touch->halo_rows = given->halo_rows;
    if (given->row_divisor)
        touch->row_divisor = given->row_divisor;

    char first_row[COX__NAME_BYTES + 16];
    strcpy(stpcpy(first_row, parameter->name), "_first_row");
    if (parameter->kind == COX__PARAMETER_BUFFER && !find_parameter(&member->signature, first_row))
        touch->without_first_row = member->signature.kernel;
}

/* How the members of a group use each buffer, in their order. */
static void touch_buffers(const struct cox__resolved *r, uint32_t g,
                          struct touch touches[COX_BUFFERS_MAX])
{
    for (uint32_t s = 0; s < r->passes[g].stage_count; s++) {
        const struct member *member = &r->groups[g].members[s];
        for (uint32_t p = 0; p < member->signature.count; p++) {
            const struct cox__parameter *parameter = &member->signature.parameters[p];
            if (!takes_buffer(parameter))
                continue;
            const uint32_t b = find_buffer(r, buffer_name(member->pass, parameter->name));
            touch_parameter(&touches[b], member, parameter);
        }
    }
}

static cox_status set_access(const struct cox__resolved *r, const struct touch *touch, uint32_t b,
                             bool overlaps, struct cox__pass_binding *out)
{
    const struct cox__binding *buffer = &r->bindings[b];
    *out = (struct cox__pass_binding){
        .binding = b, .row_divisor = touch->row_divisor ? touch->row_divisor : buffer->row_divisor};
    if (buffer->merge) {
        out->row_access = touch->writes ? COX__REDUCE : COX__WHOLE;
        out->access = touch->writes ? COX__WRITE : COX__READ;
        return COX_OK;
    }
    if (touch->whole) {
        out->row_access = COX__WHOLE;
        out->access = COX__READ;
        if (touch->writes)
            return REFUSE(r->log, "buffer %s is read whole and written in one pass", buffer->name);
        return COX_OK;
    }

    const bool own = touch->writes_before_reading;
    if (own && !buffer->scratch)
        return REFUSE(r->log,
                      "buffer %s is written by a pass and read by one that is fused with it: it "
                      "must be scratch",
                      buffer->name);
    if (touch->writes && touch->reads && !own)
        return REFUSE(r->log,
                      "buffer %s is read and then written in passes that are fused; use two "
                      "buffers",
                      buffer->name);
    if (touch->writes && !own) {
        out->access = touch->in_place ? COX__READ_WRITE : COX__WRITE;
        if (touch->halo_rows)
            return REFUSE(r->log, "buffer %s is written, so it has no halo rows", buffer->name);
        return COX_OK;
    }

    out->access = own ? COX__READ_WRITE : COX__READ;
    if (own || overlaps || touch->halo_rows)
        out->row_access = COX__HALO;
    out->halo_rows = touch->halo_rows;
    if (out->row_access == COX__HALO && touch->without_first_row)
        return REFUSE(r->log,
                      "kernel %s: %s begins before the band, because rows around it are read; the "
                      "kernel must take an int named after its pointer, with _first_row behind",
                      touch->without_first_row, buffer->name);
    return COX_OK;
}

static cox_status resolve_group(struct cox__resolved *r, uint32_t g)
{
    struct group *group = &r->groups[g];
    struct cox__pass_spec *pass = &r->passes[g];
    struct touch touches[COX_BUFFERS_MAX] = {{.used = false}};
    touch_buffers(r, g, touches);

    /* Then kernels run over more rows than the band's, and need these rows of what they read. */
    bool overlaps = false;
    for (uint32_t b = 0; b < r->spec.binding_count; b++)
        overlaps |= touches[b].writes_before_reading;

    pass->uses = group->bindings;
    for (uint32_t b = 0; b < r->spec.binding_count; b++) {
        if (!touches[b].used)
            continue;
        struct cox__pass_binding *use = &group->bindings[pass->use_count++];
        const cox_status status = set_access(r, &touches[b], b, overlaps, use);
        if (status)
            return status;
        r->spec.allow_in_place |= touches[b].in_place;
    }

    const struct cox_pass *first = group->members[0].pass;
    pass->name = first->name ? first->name : group->stages[0].kernel;
    pass->rows = first->rows;
    pass->policy = first->policy;
    pass->done = first->done;
    pass->done_user = first->done_user;
    pass->devices = group->devices;
    return cox__device_list_read(r->runtime, first->devices, group->devices, &pass->device_count);
}

/* What the session says of a buffer before its passes say more: as the first pass that touches it by rows does. */
static void summarise_buffer(struct cox__resolved *r, uint32_t b)
{
    struct cox__binding *binding = &r->bindings[b];
    binding->row_access = binding->merge ? COX__REDUCE : COX__WHOLE;
    binding->access = binding->merge ? COX__WRITE : COX__READ;
    for (uint32_t g = r->spec.pass_count; g-- > 0;)
        for (uint32_t u = 0; u < r->passes[g].use_count; u++) {
            const struct cox__pass_binding *use = &r->groups[g].bindings[u];
            if (use->binding != b || use->row_access == COX__WHOLE ||
                use->row_access == COX__REDUCE)
                continue;
            binding->row_access = use->row_access;
            binding->access = use->access;
            binding->halo_rows = use->halo_rows;
        }
}

/* ---- all of it ---- */

static void is_ready(void *user, cox_status status)
{
    (void)user;
    (void)status;
}

cox_status cox__resolve_common(const cox_runtime *runtime, const struct cox_session_params *params,
                               struct cox__session_spec *spec, uint32_t devices[COX_DEVICES_MAX])
{
    if ((unsigned)params->warmup > COX_WARMUP_BACKGROUND)
        return REFUSE(&runtime->log, "warmup: %d is no value of enum cox_warmup",
                      (int)params->warmup);

    *spec = (struct cox__session_spec){.policy = params->policy,
                                       .custom_policy = params->custom_policy,
                                       .policy_options = params->policy_options,
                                       .min_band_rows = params->min_band_rows,
                                       .in_flight = params->in_flight,
                                       .devices = devices,
                                       .no_warmup = params->warmup == COX_WARMUP_NONE,
                                       .ready = params->warmup == COX_WARMUP_BACKGROUND ? is_ready
                                                                                        : NULL,
                                       .no_profile = params->no_profile,
                                       .verify = params->verify,
                                       .device_timeout_ns = params->device_timeout_ns,
                                       .meter = params->meter,
                                       .meter_user = params->meter_user,
                                       .report = params->report,
                                       .report_user = params->report_user,
                                       .profile = params->profile,
                                       .split_each_pass = params->split_each_pass,
                                       .warm_start = params->warm_start};
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

static cox_status resolve_passes(struct cox__resolved *r)
{
    const struct cox_session_params *params = r->params;
    if (!params->columns || params->columns > INT32_MAX || !params->rows ||
        params->rows > INT32_MAX)
        return REFUSE(r->log, "a frame of %u columns and %u rows; 1 to %d of each are possible",
                      params->columns, params->rows, INT32_MAX);
    if (params->constants_bytes > COX_CONSTANTS_BYTES_MAX)
        return REFUSE(r->log, "constants of %zu bytes; at most %d are possible",
                      params->constants_bytes, COX_CONSTANTS_BYTES_MAX);

    r->spec.rows = params->rows;
    r->spec.bindings = r->bindings;
    r->spec.passes = r->passes;
    r->spec.params_bytes = params->constants_bytes;
    cox_status status = read_passes(r);
    if (!status)
        status = find_buffers(r);
    if (!status)
        status = lay_out_buffers(r);
    if (!status)
        status = resolve_arguments(r);
    for (uint32_t g = 0; !status && g < r->spec.pass_count; g++)
        status = resolve_group(r, g);
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

    if (params->passes || params->buffers || params->fields)
        return REFUSE(r->log, "a session has a pipeline, or passes, buffers and fields: not both");
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
