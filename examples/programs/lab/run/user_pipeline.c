/* SPDX-License-Identifier: Apache-2.0 */
#include "user_pipeline.h"
#include "lab/refuse.h"
#include "lab/strict_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cox_arg library_arg(const struct lab_argument *argument)
{
    switch (argument->kind) {
    case LAB_ARGUMENT_BUFFER:
        return (struct cox_arg)COX_ARG_BUFFER(argument->binding);
    case LAB_ARGUMENT_ORIGIN:
        return (struct cox_arg)COX_ARG_ORIGIN(argument->binding);
    case LAB_ARGUMENT_COLUMNS:
        return (struct cox_arg)COX_ARG_COLUMNS;
    case LAB_ARGUMENT_ROWS:
        return (struct cox_arg)COX_ARG_ROWS;
    case LAB_ARGUMENT_FIRST_ROW:
        return (struct cox_arg)COX_ARG_FIRST_ROW;
    case LAB_ARGUMENT_FRAME_ROWS:
        return (struct cox_arg)COX_ARG_FRAME_ROWS;
    case LAB_ARGUMENT_LOCAL:
        return (struct cox_arg)COX_ARG_LOCAL(argument->value.u);
    default:
        return (struct cox_arg){.kind = COX_ARG_KIND_PARAMS, .bytes = 4};
    }
}

static uint32_t constant_of(const struct lab_user_pipeline *pipeline,
                            const struct lab_argument *argument)
{
    const struct lab_binding *binding = &pipeline->kernel->bindings.bindings[argument->binding];
    size_t pitch = pipeline->bindings[argument->binding].pitch_bytes;

    if (argument->kind == LAB_ARGUMENT_PITCH_BYTES)
        return (uint32_t)pitch;
    if (argument->kind == LAB_ARGUMENT_PITCH)
        return (uint32_t)(pitch / binding->element_bytes);
    return argument->value.u;
}

/* The frame's columns; its rows if the pass or the buffer is transposed. */
static uint32_t columns_of(const struct lab_user_pipeline *pipeline, bool transposed)
{
    return transposed ? pipeline->rows : pipeline->columns;
}

static uint32_t rows_of(const struct lab_user_pipeline *pipeline, uint32_t b)
{
    const struct lab_binding *binding = &pipeline->kernel->bindings.bindings[b];
    const uint32_t divisor = binding->touch.row_divisor;

    return (columns_of(pipeline, !binding->transposed) + divisor - 1) / divisor;
}

static void fill_bindings(struct lab_user_pipeline *pipeline, const cox_runtime *runtime)
{
    const struct lab_bindings *from = &pipeline->kernel->bindings;

    for (uint32_t b = 0; b < from->binding_count; b++) {
        const struct lab_binding *binding = &from->bindings[b];
        const bool whole = binding->touch.contract == COX_WHOLE;
        const size_t row_bytes = (size_t)binding->element_bytes *
                                 columns_of(pipeline, binding->transposed);
        const size_t pitch = cox_runtime_pitch_bytes(runtime, row_bytes);

        pipeline->bindings[b] = (struct cox_binding){.name = binding->name,
                                                     .contract = binding->touch.contract,
                                                     .access = binding->touch.access,
                                                     .halo_rows = binding->touch.halo_rows,
                                                     .bytes = binding->bytes,
                                                     .scratch = binding->scratch};
        if (!whole) {
            pipeline->bindings[b].pitch_bytes = pitch;
            pipeline->bindings[b].row_divisor = binding->touch.row_divisor;
        }

        pipeline->bytes[b] = 0;
        if (!binding->scratch)
            pipeline->bytes[b] = whole ? binding->bytes : pitch * rows_of(pipeline, b);
    }
}

/* `transposed` is the pass's. */
static void fill_stage(struct lab_user_pipeline *pipeline, uint32_t index, bool transposed,
                       unsigned char *constants)
{
    const struct lab_bindings *from = &pipeline->kernel->bindings;
    const struct lab_stage *stage = &from->stages[index];

    for (uint32_t i = 0; i < stage->argument_count; i++) {
        const uint32_t a = stage->first_argument + i,
                       value = constant_of(pipeline, &from->arguments[a]);

        pipeline->args[a] = library_arg(&from->arguments[a]);
        if (pipeline->args[a].kind == COX_ARG_KIND_PARAMS)
            pipeline->args[a].offset = 4 * (size_t)a;
        memcpy(constants + 4 * (size_t)a, &value, sizeof value);
    }

    pipeline->variants[index] = (struct cox_variant){.source = pipeline->kernel->source,
                                                     .options = from->options[0] ? from->options
                                                                                 : NULL,
                                                     .local_columns = stage->local_columns,
                                                     .local_rows = stage->local_rows,
                                                     .item_columns = stage->item_columns,
                                                     .item_rows = stage->item_rows};

    pipeline->stages[index] = (struct cox_stage){.kernel = stage->kernel,
                                                 .columns = columns_of(pipeline, transposed),
                                                 .variant_count = 1,
                                                 .variants = &pipeline->variants[index],
                                                 .arg_count = stage->argument_count,
                                                 .args = &pipeline->args[stage->first_argument]};
}

static void fill_pass(struct lab_user_pipeline *pipeline, uint32_t index, unsigned char *constants)
{
    const struct lab_pass *pass = &pipeline->kernel->bindings.passes[index];

    for (uint32_t s = 0; s < pass->stage_count; s++)
        fill_stage(pipeline, pass->first_stage + s, pass->transposed, constants);

    pipeline->passes[index] = (struct cox_pass){.name = pass->name[0] ? pass->name : NULL,
                                                .rows = columns_of(pipeline, !pass->transposed),
                                                .use_count = pass->use_count,
                                                .uses = pass->uses,
                                                .stage_count = pass->stage_count,
                                                .stages = &pipeline->stages[pass->first_stage]};
}

/* Whether a pass reads rows that it writes itself. */
static bool has_pass_in_place(const struct lab_bindings *bindings)
{
    for (uint32_t p = 0; p < bindings->pass_count; p++)
        for (uint32_t u = 0; u < bindings->passes[p].use_count; u++)
            if (bindings->passes[p].uses[u].access == COX_READ_WRITE)
                return true;
    return false;
}

void lab_user_pipeline_fill(struct lab_user_pipeline *pipeline,
                            const struct lab_user_kernel *kernel, const cox_runtime *runtime,
                            uint32_t columns, uint32_t rows, struct cox_session_params *session,
                            unsigned char constants[LAB_USER_PARAMS_BYTES])
{
    const struct lab_bindings *from = &kernel->bindings;
    *pipeline = (struct lab_user_pipeline){.kernel = kernel, .columns = columns, .rows = rows};

    fill_bindings(pipeline, runtime);

    session->rows = rows;
    session->binding_count = from->binding_count;
    session->bindings = pipeline->bindings;
    session->pass_count = from->pass_count;
    session->passes = from->pass_count ? pipeline->passes : NULL;

    for (uint32_t p = 0; p < from->pass_count; p++)
        fill_pass(pipeline, p, constants);

    if (!from->pass_count) {
        fill_stage(pipeline, 0, false, constants);
        session->stage_count = 1;
        session->stages = pipeline->stages;
    }

    session->params_bytes = LAB_USER_PARAMS_BYTES;
    session->allow_in_place = lab_user_in_place(pipeline) || has_pass_in_place(from);
}

void lab_user_pipeline_free(struct lab_user_pipeline *pipeline)
{
    for (uint32_t b = 0; b < COX_BUFFERS_MAX; b++) {
        free(pipeline->initial[b]);
        free(pipeline->reference[b]);
        pipeline->initial[b] = NULL;
        pipeline->reference[b] = NULL;
    }
}

bool lab_user_in_place(const struct lab_user_pipeline *pipeline)
{
    for (uint32_t b = 0; b < pipeline->kernel->bindings.binding_count; b++)
        if (pipeline->bindings[b].access == COX_READ_WRITE && !pipeline->bindings[b].scratch)
            return true;
    return false;
}

/* --- The first content of buffers ------------------------------------------------------------- */

/* The shape of a buffer without its padding. A whole buffer is one row. */
struct extent {
    uint32_t rows;
    size_t row_bytes, pitch_bytes;
};

static struct extent extent_of(const struct lab_user_pipeline *pipeline, uint32_t b)
{
    const struct lab_binding *binding = &pipeline->kernel->bindings.bindings[b];

    if (binding->touch.contract == COX_WHOLE)
        return (struct extent){1, binding->bytes, binding->bytes};
    return (struct extent){rows_of(pipeline, b),
                           (size_t)binding->element_bytes *
                               columns_of(pipeline, binding->transposed),
                           pipeline->bindings[b].pitch_bytes};
}

static void make_noise(const struct lab_binding *binding, unsigned char *row, size_t bytes,
                       uint32_t *seed)
{
    const size_t step = binding->fill == LAB_FILL_FLOATS ? sizeof(float) : 1;

    for (size_t at = 0; at < bytes; at += step) {
        *seed = *seed * 1664525u + 1013904223u;
        float value = (float)(*seed >> 8) / 16777216.0f;

        if (binding->fill == LAB_FILL_FLOATS)
            memcpy(row + at, &value, sizeof value);
        else
            row[at] = (unsigned char)(*seed >> 24);
    }
}

/* Fill the rows from a file that has no padding. */
static bool read_rows(const struct lab_user_pipeline *pipeline, const struct lab_binding *binding,
                      const struct extent *extent, unsigned char *data, char *why, size_t why_bytes)
{
    char path[4096];
    const char *folder = "";
    size_t wanted = extent->rows * extent->row_bytes, found = 0;

    if (binding->file[0] != '/')
        folder = pipeline->kernel->folder;
    snprintf(path, sizeof path, "%s%s", folder, binding->file);
    char *bytes = strict_read_file(path, wanted, &found, why, why_bytes);
    if (!bytes)
        return false;

    const bool good = found == wanted;
    for (uint32_t row = 0; good && row < extent->rows; row++)
        memcpy(data + row * extent->pitch_bytes, bytes + row * extent->row_bytes,
               extent->row_bytes);
    free(bytes);

    if (found > wanted)
        snprintf(why, why_bytes, "%s: must have the %zu bytes of \"%s\", not more than %zu", path,
                 wanted, binding->name, wanted);
    else if (!good)
        snprintf(why, why_bytes, "%s: must have the %zu bytes of \"%s\", not %zu", path, wanted,
                 binding->name, found);
    return good;
}

bool lab_user_fill(struct lab_user_pipeline *pipeline, uint32_t b, void *data, char *why,
                   size_t why_bytes)
{
    const struct lab_binding *binding = &pipeline->kernel->bindings.bindings[b];
    const struct extent extent = extent_of(pipeline, b);
    uint32_t seed = binding->seed;

    memset(data, 0, pipeline->bytes[b]);
    if (binding->fill == LAB_FILL_FILE &&
        !read_rows(pipeline, binding, &extent, data, why, why_bytes))
        return false;

    bool noise = binding->fill == LAB_FILL_NOISE || binding->fill == LAB_FILL_FLOATS;
    for (uint32_t row = 0; noise && row < extent.rows; row++)
        make_noise(binding, (unsigned char *)data + row * extent.pitch_bytes, extent.row_bytes,
                   &seed);

    if (binding->touch.access != COX_READ_WRITE || pipeline->initial[b])
        return true;

    pipeline->initial[b] = malloc(pipeline->bytes[b]);
    if (!pipeline->initial[b])
        return lab_refuse(why, why_bytes, "out of memory");

    memcpy(pipeline->initial[b], data, pipeline->bytes[b]);
    return true;
}

void lab_user_restore(const struct lab_user_pipeline *pipeline, uint32_t b, void *data)
{
    if (pipeline->initial[b])
        memcpy(data, pipeline->initial[b], pipeline->bytes[b]);
}

/* --- The output of one device alone ----------------------------------------------------------- */

bool lab_user_keep(struct lab_user_pipeline *pipeline, uint32_t b, const void *data)
{
    if (pipeline->bindings[b].access == COX_READ || pipeline->bindings[b].scratch)
        return true;

    if (!pipeline->reference[b])
        pipeline->reference[b] = malloc(pipeline->bytes[b]);

    if (pipeline->reference[b])
        memcpy(pipeline->reference[b], data, pipeline->bytes[b]);
    return pipeline->reference[b] != NULL;
}

void lab_user_spoil(const struct lab_user_pipeline *pipeline, uint32_t b, void *data)
{
    const struct extent extent = extent_of(pipeline, b);
    if (pipeline->bindings[b].access != COX_WRITE || !pipeline->reference[b])
        return;

    for (uint32_t row = 0; row < extent.rows; row++) {
        unsigned char *to = (unsigned char *)data + row * extent.pitch_bytes;
        const unsigned char *right = pipeline->reference[b] + row * extent.pitch_bytes;

        for (size_t i = 0; i < extent.row_bytes; i++)
            to[i] = (unsigned char)~right[i];
    }
}

bool lab_user_compare(const struct lab_user_pipeline *pipeline, uint32_t b, const void *data,
                      char *why, size_t why_bytes)
{
    const struct extent extent = extent_of(pipeline, b);
    uint32_t first_row = 0, wrong = 0;
    size_t first_byte = 0;
    for (uint32_t row = 0; pipeline->reference[b] && row < extent.rows; row++) {
        const unsigned char *found = (const unsigned char *)data + row * extent.pitch_bytes;
        const unsigned char *right = pipeline->reference[b] + row * extent.pitch_bytes;

        if (memcmp(found, right, extent.row_bytes) == 0 || wrong++ > 0)
            continue;
        for (first_row = row; found[first_byte] == right[first_byte];)
            first_byte++;
    }

    if (wrong)
        snprintf(why, why_bytes,
                 "\"%s\" differs in %" PRIu32 " of %" PRIu32 " rows, first in row %" PRIu32
                 ", byte %zu",
                 pipeline->bindings[b].name, wrong, extent.rows, first_row, first_byte);
    return wrong == 0;
}
