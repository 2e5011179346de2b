/* A session's pipeline: a checked copy of the passes that the application describes, with
 * defaults filled in, and the rows and alignments that follow from it. Sessions make it once and
 * never change it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contracts.h"
#include "pipeline.h"
#include "base/bounds.h"
#include "base/sources.h"

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

uint64_t cox__pipeline_lcm_bounded(uint64_t a, uint64_t b, uint64_t bound)
{
    const uint64_t step = b / gcd(a, b);

    if (a > bound / step)
        return bound;

    return a * step;
}

/* How closely a variant fits: made for this device, for its type, or for any device; 0 = not. */
static int variant_rank(const struct cox__variant *variant, uint32_t device,
                        enum cox_device_type type)
{
    if (variant->device_plus_1)
        return (variant->device_plus_1 == device + 1) * 3;
    if (variant->type)
        return (variant->type == type) * 2;

    return 1;
}

const struct cox__variant *cox__pipeline_stage_variant(const struct cox__stage *stage,
                                                       uint32_t device, enum cox_device_type type)
{
    const struct cox__variant *found = NULL;
    int rank = 0;

    for (uint32_t i = 0; i < stage->variant_count; i++) {
        const struct cox__variant *variant = &stage->variants[i];
        const int fits = variant_rank(variant, device, type);

        if (fits > rank) {
            rank = fits;
            found = variant;
        }
    }

    return found;
}

/* Alignment in bytes at which a band's memory of a binding begins. A band's own rows, and memory
 * from row 0 on, begin where the allocation does. Staged devices copy rows to the beginning of
 * their memory: short rows need no alignment there. */
static uint64_t memory_alignment(const struct cox__pass *pass, uint32_t index,
                                 const struct cox_device_info *info)
{
    const struct cox__binding *binding = &pass->bindings[index];
    const bool copied = info->mode == COX_MODE_STAGED &&
                        binding->pitch_bytes < info->base_align_bytes;

    /* If the frame's first row is not aligned, there is nothing to keep. */
    if (!info->base_align_bytes || cox__is_own(binding) || cox__from_start(pass, index) || copied ||
        !cox__begins_aligned(binding, info->base_align_bytes))
        return 1;
    return info->base_align_bytes;
}

/* Rows of a work-group in an absolute pass whose local size the library chooses, in one and in two
 * dimensions. They are fewer if the frame would have less than GROUPS_MIN groups. */
enum { FLAT_ROWS = 256, ROWS = 4, GROUPS_MIN = 16 };

/* Rows of the pass at whose multiples bands should begin, so that they are of whole groups. */
static uint64_t group_rows(const struct cox__pass *pass, const struct cox__stage *stage,
                           const struct cox__variant *variant)
{
    const uint64_t items = pass->rows / variant->item_rows;
    uint64_t local = cox__max_u32(variant->local_rows, 1);

    if (pass->absolute && !variant->local_rows) {
        local = stage->one_dimension ? FLAT_ROWS : ROWS;
        while (local > 1 && items / local < GROUPS_MIN)
            local /= 2;
    }

    return local * variant->item_rows;
}

uint32_t cox__pipeline_pass_row_alignment(const struct cox__pass *pass, uint32_t device,
                                          const struct cox_device_info *info)
{
    uint64_t row_alignment = 1, bound = pass->rows;

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        if (!cox__by_rows(binding))
            continue;

        const uint64_t align = memory_alignment(pass, i, info);
        const uint64_t aligned_rows = align / gcd(binding->pitch_bytes, align);
        row_alignment = cox__pipeline_lcm_bounded(row_alignment,
                                                  aligned_rows * binding->row_divisor, bound);
    }

    for (uint32_t i = 0; i < pass->stage_count; i++) {
        const struct cox__variant *variant = cox__pipeline_stage_variant(&pass->stages[i], device,
                                                                         info->type);

        if (variant)
            row_alignment = cox__pipeline_lcm_bounded(row_alignment,
                                                      group_rows(pass, &pass->stages[i], variant),
                                                      bound);
    }

    return (uint32_t)row_alignment;
}

void cox__pipeline_binding_rows(const struct cox__pass *pass, uint32_t index, uint32_t first_row,
                                uint32_t rows, uint32_t *first, uint32_t *count)
{
    const struct cox__binding *binding = &pass->bindings[index];
    uint32_t divisor = binding->row_divisor;
    const uint32_t above = binding->border_above;
    uint32_t all = cox__buffer_rows(pass->rows, divisor) + above + binding->border_below;
    uint32_t begin = first_row / divisor + above;
    uint64_t end = (uint64_t)cox__buffer_rows(first_row + rows, divisor) + above;

    if (binding->row_access == COX__HALO) {
        const uint32_t step = cox__max_u32(pass->row_alignment / divisor, 1);

        begin -= cox__min_u32(begin, binding->halo_above);
        if (begin > above)
            begin -= (begin - above) % step;
        end += binding->halo_below;
    }

    *first = begin;
    *count = (uint32_t)(cox__min_u64(end, all) - begin);
}

void cox__pipeline_read_rows(const struct cox__pass *pass, uint32_t index, uint32_t first_row,
                             uint32_t rows, uint32_t *first, uint32_t *count)
{
    const struct cox__binding *binding = &pass->bindings[index];

    cox__pipeline_binding_rows(pass, index, first_row, rows, first, count);
    if (binding->reads_all) {
        *first = 0;
        *count = cox__buffer_rows(pass->rows, binding->row_divisor) + binding->border_above +
                 binding->border_below;
    }
}

/* ---- warnings about writable arguments ---- */

static void warn_stage(const struct cox__pass *pass, uint32_t number, uint32_t s,
                       struct cox__backend *backend, const struct cox__instance *instance,
                       uint32_t *told, const struct cox__log *log)
{
    const struct cox__stage *stage = &pass->stages[s];

    for (uint32_t a = 0; a < stage->arg_count; a++) {
        const uint32_t index = stage->args[a].index;
        if (stage->args[a].kind != COX__ARG_KIND_BUFFER ||
            pass->bindings[index].access != COX__READ || *told & UINT32_C(1) << index ||
            (stage->texts && stage->texts[a].read_only))
            continue;

        const char *name = backend->ops->instance_may_write(backend, instance, number, s, a);
        if (!name)
            continue;

        *told |= UINT32_C(1) << index;
        cox__log(log, COX_LOG_WARN,
                 "kernel %s, argument %u (%s): buffer %u (%s) is only read, so declare the pointer "
                 "const; a write would change what other devices read",
                 stage->kernel, a, *name ? name : "unnamed", index, pass->bindings[index].name);
    }
}

void cox__pipeline_tell_writable(const struct cox__pipeline *pipeline, struct cox__backend *backend,
                                 const struct cox__instance *instance, uint32_t *told,
                                 const struct cox__log *log)
{
    for (uint32_t p = 0; p < pipeline->pass_count; p++)
        for (uint32_t s = 0; s < pipeline->passes[p].stage_count; s++)
            warn_stage(&pipeline->passes[p], p, s, backend, instance, told, log);
}

/* ---- copying ---- */

/* Copy what the variant's source is compiled with, and the code compiled ahead of time. */
static bool copy_code(struct cox__variant *to, const struct cox__variant *from)
{
    struct cox_source *headers = NULL, *libraries = NULL;
    void *code = NULL;
    bool copied = cox__sources_copy_used(from->headers, from->libraries, from->source,
                                         from->options, &headers) &&
                  cox__sources_copy(from->libraries, &libraries);

    if (from->code) {
        code = malloc(from->code_bytes);
        if (code)
            memcpy(code, from->code, from->code_bytes);
        copied &= code != NULL;
    }

    to->headers = headers;
    to->libraries = libraries;
    to->code = code;
    return copied;
}

static void clear_variant(const struct cox__variant *variant)
{
    free((char *)variant->source);
    free((char *)variant->options);
    free((struct cox_source *)variant->headers);
    free((struct cox_source *)variant->libraries);
    free((void *)variant->code);
}

/* Copy the source. The launches of an absolute pass are parts of one launch of the frame. */
static char *copy_source(const struct cox__stage *stage, const struct cox__variant *variant,
                         const struct cox__pass *pass)
{
    const uint32_t items = cox__buffer_rows(pass->rows, cox__max_u32(variant->item_rows, 1));

    if (!pass->absolute)
        return strdup(variant->source);
    return cox__sources_for_parts(variant->source, variant->headers, stage->one_dimension ? 0 : 1,
                                  items);
}

static bool copy_variants(struct cox__stage *to, const struct cox__stage *from,
                          const struct cox__pass *pass)
{
    struct cox__variant *variants = calloc(from->variant_count, sizeof *variants);

    to->variants = variants;
    if (!variants)
        return false;

    to->variant_count = from->variant_count;

    for (uint32_t v = 0; v < from->variant_count; v++) {
        const struct cox__variant *source = &from->variants[v];

        variants[v] = *source;
        variants[v].headers = variants[v].libraries = NULL; /* if the copy fails */
        variants[v].code = NULL;
        variants[v].source = copy_source(from, source, pass);
        variants[v].options = strdup(source->options ? source->options : "");

        uint32_t *sizes[] = {&variants[v].item_columns, &variants[v].item_rows,
                             &variants[v].local_columns, &variants[v].local_rows};
        const bool says_local = source->local_columns || source->local_rows;
        for (size_t s = 0; s < (says_local ? 4 : 2); s++)
            if (!*sizes[s])
                *sizes[s] = 1;
        if (!variants[v].source || !variants[v].options || !copy_code(&variants[v], source))
            return false;
    }

    return true;
}

static bool copy_stage(struct cox__stage *to, const struct cox__stage *from,
                       const struct cox__pass *pass)
{
    to->columns = from->columns ? from->columns : 1;
    to->one_dimension = from->one_dimension;
    to->local_arrays = from->local_arrays;
    to->arg_count = from->arg_count;
    to->kernel = strdup(from->kernel);

    struct cox__arg *args = calloc((size_t)from->arg_count + 1, sizeof *args);
    to->args = args;
    if (args && from->arg_count)
        memcpy(args, from->args, from->arg_count * sizeof *args);

    struct cox__arg_text *texts = NULL;
    if (from->texts) {
        texts = calloc((size_t)from->arg_count + 1, sizeof *texts);
        if (!texts)
            return false;
        memcpy(texts, from->texts, from->arg_count * sizeof *texts);
    }
    to->texts = texts;

    return to->kernel && args && copy_variants(to, from, pass);
}

/* Copy a pass's bindings. A pass that lists its uses has only those; the others are UNUSED. A pass
 * without a list uses all of them as the session declares them. */
static void copy_bindings(struct cox__pass *to, const struct cox__pipeline *pipeline,
                          const struct cox__pass_spec *from)
{
    to->binding_count = pipeline->binding_count;

    for (uint32_t i = 0; i < to->binding_count; i++) {
        to->bindings[i] = pipeline->bindings[i];
        if (from->use_count)
            to->bindings[i].row_access = COX__UNUSED;
    }

    for (uint32_t u = 0; u < from->use_count; u++) {
        const struct cox__pass_binding *use = &from->uses[u];
        struct cox__binding *binding = &to->bindings[use->binding];
        binding->row_access = use->row_access;
        binding->access = use->access;
        binding->coverage = use->coverage;
        binding->row_divisor = cox__row_divisor(use->row_divisor);
        binding->halo_rows = use->halo_rows;
        binding->halo_above = use->halo_above;
        binding->halo_below = use->halo_below;
        binding->reads_all = use->reads_all;
    }

    for (uint32_t i = 0; i < to->binding_count; i++) {
        struct cox__binding *binding = &to->bindings[i];
        binding->halo_above = cox__max_u32(binding->halo_above, binding->halo_rows);
        binding->halo_below = cox__max_u32(binding->halo_below, binding->halo_rows);
        binding->halo_rows = cox__max_u32(binding->halo_above, binding->halo_below);

        to->written |= (uint32_t)cox__written_by_rows(&to->bindings[i]) << i;
        to->in_place |= to->bindings[i].row_access == COX__ROWS &&
                        to->bindings[i].access == COX__READ_WRITE;
        if (to->bindings[i].row_access == COX__REDUCE)
            to->partial_bytes += to->bindings[i].bytes;
    }
}

/* Whether this stage writes a band's own binding: the first stage that takes it writes it, the
 * later ones read it. */
static bool writes_own(const struct cox__pass *pass, uint32_t stage, uint32_t binding)
{
    for (uint32_t s = 0; s < stage; s++)
        if (cox__stage_takes(&pass->stages[s], binding))
            return false;

    return cox__stage_takes(&pass->stages[stage], binding);
}

/* Rows at whose multiples the launches of a stage must begin. Other passes than absolute ones tell
 * their kernels where a launch begins, and groups count from there. Then work_group.c looks for a
 * size of groups that fits, or refuses the kernel. */
static uint32_t launch_unit(const struct cox__pass *pass, const struct cox__stage *stage)
{
    uint64_t unit = 1;

    for (uint32_t v = 0; v < stage->variant_count && pass->absolute; v++) {
        const struct cox__variant *variant = &stage->variants[v];
        uint64_t rows = variant->item_rows;

        /* Otherwise the groups at the edge are smaller. */
        if (variant->local_rows || cox__sources_ask_group(variant->source))
            rows = group_rows(pass, stage, variant);
        unit = cox__pipeline_lcm_bounded(unit, rows, pass->rows);
    }

    return (uint32_t)unit;
}

/* A stage that reads neighbouring rows of a band's own binding needs the writing stage to compute
 * more rows than the band has. Find each stage's extra rows, from the last stage to the first, and
 * add them to the halos of the bindings that the stage reads. */
static void extend(struct cox__pass *pass)
{
    for (uint32_t s = pass->stage_count; s-- > 0;) {
        const uint64_t unit = launch_unit(pass, &pass->stages[s]);

        for (uint32_t i = 0; i < pass->binding_count; i++) {
            if (!cox__is_own(&pass->bindings[i]) || !writes_own(pass, s, i))
                continue;

            const uint32_t divisor = pass->bindings[i].row_divisor;

            for (uint32_t reader = s + 1; reader < pass->stage_count; reader++) {
                const uint64_t own = (uint64_t)cox__buffer_rows(pass->extents[reader], divisor) +
                                     pass->bindings[i].halo_rows;
                const uint64_t rows = (own * divisor + unit - 1) / unit * unit;

                if (cox__stage_takes(&pass->stages[reader], i) && rows > pass->extents[s])
                    pass->extents[s] = (uint32_t)cox__min_u64(rows, pass->rows);
            }
        }
    }

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        struct cox__binding *binding = &pass->bindings[i];
        uint32_t most = 0;

        for (uint32_t s = 0; s < pass->stage_count; s++)
            if (cox__stage_takes(&pass->stages[s], i) && pass->extents[s] > most)
                most = pass->extents[s];

        if (cox__is_own(binding))
            binding->halo_rows = binding->halo_above = binding->halo_below = 0;
        if (binding->row_access != COX__HALO)
            continue;

        const uint32_t more = cox__buffer_rows(most, binding->row_divisor);
        binding->halo_rows += more;
        binding->halo_above += more;
        binding->halo_below += more;
    }
}

static void find_images(struct cox__pipeline *pipeline, struct cox__pass *pass)
{
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        bool buffer = false;

        for (uint32_t s = 0; s < pass->stage_count; s++) {
            const struct cox__arg *image = cox__stage_arg(&pass->stages[s], COX__ARG_KIND_IMAGE, i);
            if (image) {
                pipeline->images[i] = image;
                pass->images |= UINT32_C(1) << i;
            }
            buffer |= cox__stage_arg(&pass->stages[s], COX__ARG_KIND_BUFFER, i) != NULL;
        }

        if (!buffer)
            pass->only_images |= pass->images & UINT32_C(1) << i;
    }
}

static bool copy_pass(struct cox__pass *to, struct cox__pipeline *pipeline,
                      const struct cox__pass_spec *from)
{
    to->rows = from->rows;
    to->absolute = from->absolute;
    to->row_alignment = 1;
    to->done = from->done;
    to->done_user = from->done_user;
    to->device_count = from->device_count;
    if (from->device_count)
        memcpy(to->devices, from->devices, from->device_count * sizeof *to->devices);

    copy_bindings(to, pipeline, from);
    to->name = strdup(from->name ? from->name : "unnamed");
    if (from->policy)
        to->policy = strdup(from->policy);
    if (!to->name || (from->policy && !to->policy))
        return false;

    for (uint32_t i = 0; i < from->stage_count; i++) {
        to->stage_count++;
        if (!copy_stage(&to->stages[i], &from->stages[i], to))
            return false;
    }

    extend(to);
    find_images(pipeline, to);

    return true;
}

static bool copy_session_bindings(struct cox__pipeline *out, const struct cox__session_spec *params)
{
    for (uint32_t i = 0; i < params->binding_count; i++) {
        struct cox__binding *binding = &out->bindings[i];

        *binding = params->bindings[i];
        out->binding_count++;
        binding->row_divisor = cox__row_divisor(binding->row_divisor);
        binding->name = strdup(cox__binding_name(&params->bindings[i]));
        if (!binding->name)
            return false;
    }

    return true;
}

/* How the passes together use a binding. It is an input if a pass reads it before any writes it. */
static enum cox__access combined_access(bool reads, bool writes)
{
    if (!writes)
        return COX__READ;
    if (reads)
        return COX__READ_WRITE;

    return COX__WRITE;
}

/* Combine the passes' uses of each binding: how many bytes its memory must have, and whether the
 * frame reads what the memory held before. */
static void take_together(struct cox__pipeline *pipeline, const struct cox__session_spec *params)
{
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        struct cox__binding *binding = &pipeline->bindings[i];
        bool reads = false, writes = false;

        for (uint32_t p = 0; p < pipeline->pass_count; p++) {
            const struct cox__pass *pass = &pipeline->passes[p];
            const struct cox__binding *of = &pass->bindings[i];
            if (!cox__is_shared(of))
                continue;

            if (cox__by_rows(of))
                pipeline->bytes[i] = cox__pass_bytes(pass, i);
            else if (!pipeline->bytes[i])
                pipeline->bytes[i] = cox__session_bytes(params, i);

            reads |= (of->access != COX__WRITE || cox__keeps_values(of)) && !writes;
            writes |= of->access != COX__READ;
        }

        binding->access = combined_access(reads, writes);

        for (uint32_t p = 0; p < pipeline->pass_count; p++)
            if (pipeline->passes[p].bindings[i].row_access == COX__WHOLE)
                pipeline->passes[p].bindings[i].bytes = pipeline->bytes[i];
    }
}

/* Whether every stage of the pass that is given the binding's memory also asks where it begins, or
 * counts on row 0. */
static bool asks_origin(const struct cox__pass *pass, uint32_t binding)
{
    if (cox__from_start(pass, binding))
        return true;

    for (uint32_t s = 0; s < pass->stage_count; s++)
        if (cox__stage_arg(&pass->stages[s], COX__ARG_KIND_BUFFER, binding) &&
            !cox__stage_arg(&pass->stages[s], COX__ARG_KIND_ORIGIN, binding))
            return false;

    return true;
}

static void find_places(struct cox__pass *pass)
{
    for (uint32_t i = 0; i < pass->binding_count; i++)
        if (pass->bindings[i].row_access == COX__WHOLE || asks_origin(pass, i))
            pass->asks_origin |= UINT32_C(1) << i;
}

static uint32_t find_in_several(const struct cox__pipeline *pipeline)
{
    uint32_t once = 0, several = 0;
    for (uint32_t p = 0; p < pipeline->pass_count; p++)
        for (uint32_t i = 0; i < pipeline->binding_count; i++)
            if (pipeline->passes[p].bindings[i].row_access != COX__UNUSED) {
                several |= once & UINT32_C(1) << i;
                once |= UINT32_C(1) << i;
            }

    return several;
}

/* Whether every pass can use the binding in device memory of a whole frame. */
static bool can_keep(const struct cox__pipeline *pipeline, uint32_t binding)
{
    if (pipeline->images[binding] || pipeline->bindings[binding].offset_bytes)
        return false;

    for (uint32_t p = 0; p < pipeline->pass_count; p++) {
        const struct cox__binding *of = &pipeline->passes[p].bindings[binding];
        if (of->row_access == COX__UNUSED)
            continue;
        if (cox__is_own(of) || of->row_access == COX__REDUCE)
            return false;
        if (!(pipeline->passes[p].asks_origin >> binding & 1))
            return false;
    }

    return true;
}

/* Whether some pass needs what the binding's memory held before it. */
static bool keeps_values(const struct cox__pipeline *pipeline, uint32_t binding)
{
    for (uint32_t p = 0; p < pipeline->pass_count; p++)
        if (cox__is_shared(&pipeline->passes[p].bindings[binding]) &&
            cox__keeps_values(&pipeline->passes[p].bindings[binding]))
            return true;

    return false;
}

/* The bindings that a frame changes after it has read them, a bit for each. */
static uint32_t overwritten(const struct cox__pipeline *pipeline)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < pipeline->binding_count; i++)
        found |= (uint32_t)(pipeline->bindings[i].access == COX__READ_WRITE) << i;

    for (uint32_t p = 0; p < pipeline->pass_count; p++)
        for (uint32_t i = 0; i < pipeline->binding_count; i++) {
            const struct cox__binding *of = &pipeline->passes[p].bindings[i];
            found |= (uint32_t)(of->row_access == COX__ROWS && of->access == COX__READ_WRITE) << i;
        }

    return found;
}

/* Find the bindings of which devices may keep rows; see struct cox__pipeline.
 *
 * A binding does not qualify if a stage does not ask for its origin: the kernel then expects memory
 * of the band, not of the whole frame. Images are made from host memory, and rows that a pass
 * writes in part are copied in from there, so they do not qualify either.
 *
 * A frame that loses kept rows starts over from its inputs. If the frame overwrites an input,
 * nothing is kept. Inputs that stay on devices are, as a rule, lost with a device. */
static uint32_t find_resident(const struct cox__pipeline *pipeline)
{
    uint32_t resident = 0, changed = overwritten(pipeline);

    for (uint32_t i = 0; i < pipeline->binding_count; i++)
        if (pipeline->bindings[i].stays)
            changed &= ~(UINT32_C(1) << i);
    if (changed)
        return 0;

    for (uint32_t i = 0; i < pipeline->binding_count; i++)
        if (pipeline->bindings[i].pitch_bytes && cox__by_rows(&pipeline->bindings[i]) &&
            can_keep(pipeline, i) && !keeps_values(pipeline, i) && pipeline->in_several >> i & 1)
            resident |= UINT32_C(1) << i;

    return resident;
}

/* Find the bindings that stay on devices from frame to frame. */
static cox_status find_stays(struct cox__pipeline *pipeline, const struct cox__log *log)
{
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        struct cox__binding *binding = &pipeline->bindings[i];
        if (!binding->stays)
            continue;

        if (binding->scratch || !can_keep(pipeline, i)) {
            cox__log(
                log, COX_LOG_ERROR,
                "buffer %u (%s) cannot stay on devices: it is scratch, merged or an image, has "
                "offset_bytes, or a kernel takes it by rows without its first row "
                "(%s_first_row)",
                i, cox__binding_name(binding), cox__binding_name(binding));
            return COX_E_INVALID;
        }

        /* Without whole rows, it is one row. */
        if (!binding->pitch_bytes || pipeline->bytes[i] % binding->pitch_bytes)
            binding->pitch_bytes = pipeline->bytes[i];

        pipeline->stays |= UINT32_C(1) << i;
        pipeline->kept_bytes[pipeline->kept_count++] = pipeline->bytes[i];
    }

    pipeline->resident |= pipeline->stays;
    return COX_OK;
}

cox_status cox__pipeline_init(struct cox__pipeline *out, const struct cox__session_spec *params,
                              const struct cox__log *log)
{
    const struct cox__pass_spec only = {
        .rows = params->rows, .stage_count = params->stage_count, .stages = params->stages};
    const struct cox__pass_spec *passes = &only;
    uint32_t count = 1;

    if (params->pass_count) {
        passes = params->passes;
        count = params->pass_count;
    }
    memset(out, 0, sizeof *out);

    cox_status status = cox__contracts_check(params, passes, count, log);
    if (status)
        return status;

    out->params_bytes = params->params_bytes;
    out->profile = params->profile;

    out->mistake_told = calloc(1, sizeof *out->mistake_told);
    bool copied = copy_session_bindings(out, params) && out->mistake_told;
    for (uint32_t p = 0; copied && p < count; p++) {
        struct cox__pass_spec pass = passes[p];
        if (!pass.rows)
            pass.rows = params->rows;
        out->pass_count++;
        copied = copy_pass(&out->passes[p], out, &pass);
        if (out->passes[p].partial_bytes > out->partial_bytes)
            out->partial_bytes = out->passes[p].partial_bytes;
    }

    if (copied) {
        take_together(out, params);
        for (uint32_t p = 0; p < out->pass_count; p++)
            find_places(&out->passes[p]);
        out->in_several = find_in_several(out);
        out->overwrites = overwritten(out) != 0;
        out->resident = find_resident(out);

        status = find_stays(out, log);
        if (status)
            cox__pipeline_clear(out);
        return status;
    }

    cox__log(log, COX_LOG_ERROR, "no memory for a copy of %u bindings and %u passes",
             params->binding_count, count);
    cox__pipeline_clear(out);

    return COX_E_NOMEM;
}

static void clear_pass(struct cox__pass *pass)
{
    for (uint32_t i = 0; i < pass->stage_count; i++) {
        struct cox__stage *stage = &pass->stages[i];

        for (uint32_t v = 0; v < stage->variant_count; v++)
            clear_variant(&stage->variants[v]);

        free((struct cox__variant *)stage->variants);
        free((struct cox__arg *)stage->args);
        free((struct cox__arg_text *)stage->texts);
        free((char *)stage->kernel);
    }

    free((char *)pass->name);
    free((char *)pass->policy);
}

void cox__pipeline_clear(struct cox__pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->binding_count; i++)
        free((char *)pipeline->bindings[i].name);

    for (uint32_t p = 0; p < pipeline->pass_count; p++)
        clear_pass(&pipeline->passes[p]);

    free(pipeline->mistake_told);
    memset(pipeline, 0, sizeof *pipeline);
}
