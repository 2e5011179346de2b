/* SPDX-License-Identifier: Apache-2.0 */
#include "user_pipeline.h"
#include "lab/refuse.h"
#include "lab/strict_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The frame's columns; its rows if the pass or the buffer is transposed. */
static uint32_t columns_of(const struct lab_user_pipeline *pipeline, bool transposed)
{
    return transposed ? pipeline->rows : pipeline->columns;
}

static uint32_t rows_of(const struct lab_user_pipeline *pipeline, const struct lab_buffer *buffer)
{
    const uint32_t divisor = buffer->row_divisor;
    return (columns_of(pipeline, !buffer->transposed) + divisor - 1) / divisor;
}

/* Without padding. */
static size_t row_bytes_of(const struct lab_user_pipeline *pipeline,
                           const struct lab_buffer *buffer)
{
    return (size_t)buffer->element_bytes * columns_of(pipeline, buffer->transposed);
}

static void fill_buffer(struct lab_user_pipeline *pipeline, uint32_t b, const cox_runtime *runtime)
{
    const struct lab_buffer *buffer = &pipeline->kernel->bindings.buffers[b];
    struct cox_buffer_layout *layout = &pipeline->buffers[b];

    *layout = (struct cox_buffer_layout){
        .name = buffer->name, .bytes = buffer->bytes, .scratch = buffer->scratch};
    if (buffer->element_bytes) {
        layout->pitch_bytes = cox_runtime_pitch_bytes(runtime, row_bytes_of(pipeline, buffer));
        layout->row_divisor = buffer->row_divisor;
        layout->bytes = layout->pitch_bytes * rows_of(pipeline, buffer);
    }

    if (buffer->scratch)
        return;

    const uint32_t f = pipeline->count++;
    pipeline->of[f] = buffer;
    pipeline->pitch_bytes[f] = layout->pitch_bytes;
    pipeline->bytes[f] = layout->bytes;
}

/* `arguments` has room for the pass's list and its end. */
static void fill_pass(struct lab_user_pipeline *pipeline, uint32_t p, bool transposed,
                      struct cox_argument *arguments)
{
    const struct lab_bindings *from = &pipeline->kernel->bindings;
    const struct lab_pass *pass = &from->passes[p];

    for (uint32_t a = 0; a < pass->argument_count; a++) {
        const struct lab_argument *argument = &from->arguments[pass->first_argument + a];
        arguments[a] = (struct cox_argument){.name = argument->name,
                                             .halo_rows = argument->halo_rows,
                                             .whole = argument->whole,
                                             .in_place = argument->in_place,
                                             .row_divisor = argument->row_divisor,
                                             .local_bytes = argument->local_bytes};
    }

    pipeline->passes[p] = (struct cox_pass){.source = pipeline->kernel->source,
                                            .kernel = pass->kernel,
                                            .options = from->options[0] ? from->options : NULL,
                                            .columns = columns_of(pipeline, transposed),
                                            .rows = pass->fused ? 0
                                                                : columns_of(pipeline, !transposed),
                                            .local_columns = pass->local_columns,
                                            .local_rows = pass->local_rows,
                                            .item_columns = pass->item_columns,
                                            .item_rows = pass->item_rows,
                                            .arguments = arguments,
                                            .fused = pass->fused,
                                            .name = pass->name[0] ? pass->name : NULL};
}

void lab_user_pipeline_fill(struct lab_user_pipeline *pipeline,
                            const struct lab_user_kernel *kernel, const cox_runtime *runtime,
                            uint32_t columns, uint32_t rows, struct cox_session_params *session,
                            unsigned char constants[LAB_USER_CONSTANTS_BYTES])
{
    const struct lab_bindings *from = &kernel->bindings;
    bool transposed = false;

    *pipeline = (struct lab_user_pipeline){.kernel = kernel, .columns = columns, .rows = rows};

    for (uint32_t b = 0; b < from->buffer_count; b++)
        fill_buffer(pipeline, b, runtime);

    for (uint32_t c = 0; c < from->constant_count; c++) {
        const struct lab_constant *constant = &from->constants[c];
        pipeline->fields[c] = (struct cox_field){constant->name, 4 * (size_t)c, 4};
        memcpy(constants + 4 * (size_t)c, &constant->value, 4);
    }

    for (uint32_t p = 0; p < from->pass_count; p++) {
        if (!from->passes[p].fused)
            transposed = from->passes[p].transposed;
        fill_pass(pipeline, p, transposed,
                  &pipeline->arguments[from->passes[p].first_argument + p]);
    }

    session->columns = columns;
    session->rows = rows;
    session->passes = pipeline->passes;
    session->buffers = pipeline->buffers;
    session->fields = pipeline->fields;
    session->constants_bytes = 4 * (size_t)from->constant_count;
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
    for (uint32_t b = 0; b < pipeline->count; b++)
        if (pipeline->of[b]->access == LAB_READ_WRITE)
            return true;
    return false;
}

/* --- The first content of buffers ------------------------------------------------------------- */

/* The shape of a buffer without its padding. A buffer without rows is one row. */
struct extent {
    uint32_t rows;
    size_t row_bytes, pitch_bytes;
};

static struct extent extent_of(const struct lab_user_pipeline *pipeline, uint32_t b)
{
    const struct lab_buffer *buffer = pipeline->of[b];

    if (!buffer->element_bytes)
        return (struct extent){1, buffer->bytes, buffer->bytes};
    return (struct extent){rows_of(pipeline, buffer), row_bytes_of(pipeline, buffer),
                           pipeline->pitch_bytes[b]};
}

static void make_noise(const struct lab_buffer *buffer, unsigned char *row, size_t bytes,
                       uint32_t *seed)
{
    const size_t step = buffer->fill == LAB_FILL_FLOATS ? sizeof(float) : 1;

    for (size_t at = 0; at < bytes; at += step) {
        *seed = *seed * 1664525u + 1013904223u;
        float value = (float)(*seed >> 8) / 16777216.0f;

        if (buffer->fill == LAB_FILL_FLOATS)
            memcpy(row + at, &value, sizeof value);
        else
            row[at] = (unsigned char)(*seed >> 24);
    }
}

/* Fill the rows from a file that has no padding. */
static bool read_rows(const struct lab_user_pipeline *pipeline, const struct lab_buffer *buffer,
                      const struct extent *extent, unsigned char *data, char *why, size_t why_bytes)
{
    char path[4096];
    const char *folder = "";
    size_t wanted = extent->rows * extent->row_bytes, found = 0;

    if (buffer->file[0] != '/')
        folder = pipeline->kernel->folder;
    snprintf(path, sizeof path, "%s%s", folder, buffer->file);
    char *bytes = strict_read_file(path, wanted, &found, why, why_bytes);
    if (!bytes)
        return false;

    const bool good = found == wanted;
    for (uint32_t row = 0; good && row < extent->rows; row++)
        memcpy(data + row * extent->pitch_bytes, bytes + row * extent->row_bytes,
               extent->row_bytes);
    free(bytes);

    if (found > wanted)
        snprintf(why, why_bytes,
                 "%s: must have %zu bytes for buffer \"%s\", but has "
                 "more than %zu",
                 path, wanted, buffer->name, wanted);
    else if (!good)
        snprintf(why, why_bytes, "%s: must have %zu bytes for buffer \"%s\", but has %zu", path,
                 wanted, buffer->name, found);
    return good;
}

bool lab_user_fill(struct lab_user_pipeline *pipeline, uint32_t b, void *data, char *why,
                   size_t why_bytes)
{
    const struct lab_buffer *buffer = pipeline->of[b];
    const struct extent extent = extent_of(pipeline, b);
    uint32_t seed = buffer->seed;

    memset(data, 0, pipeline->bytes[b]);
    if (buffer->fill == LAB_FILL_FILE &&
        !read_rows(pipeline, buffer, &extent, data, why, why_bytes))
        return false;

    bool noise = buffer->fill == LAB_FILL_NOISE || buffer->fill == LAB_FILL_FLOATS;
    for (uint32_t row = 0; noise && row < extent.rows; row++)
        make_noise(buffer, (unsigned char *)data + row * extent.pitch_bytes, extent.row_bytes,
                   &seed);

    if (buffer->access != LAB_READ_WRITE || pipeline->initial[b])
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
    if (pipeline->of[b]->access == LAB_READ)
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
    if (pipeline->of[b]->access != LAB_WRITE || !pipeline->reference[b])
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
                 pipeline->of[b]->name, wrong, extent.rows, first_row, first_byte);
    return wrong == 0;
}
