/* Fuzz target: the JSON file of a user's own kernel. Parsing must not crash. A file is refused with one line, or it
 * is within the library's limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "lab/run/bindings.h"

static void check_buffer(const struct lab_buffer *buffer)
{
    CHECK(buffer->name[0] && memchr(buffer->name, 0, sizeof buffer->name) && buffer->fill <= LAB_FILL_FILE);
    CHECK((buffer->fill == LAB_FILL_FILE) == (buffer->file[0] != '\0'));
    CHECK(buffer->access <= LAB_READ_WRITE && buffer->row_divisor >= 1);
    CHECK(!buffer->scratch || (buffer->element_bytes && buffer->fill == LAB_FILL_ZERO && buffer->access == LAB_READ));
    if (buffer->element_bytes)
        CHECK(buffer->element_bytes <= LAB_ELEMENT_BYTES_MAX && !buffer->bytes);
    else
        CHECK(buffer->bytes >= 1 && buffer->bytes <= LAB_WHOLE_BYTES_MAX && !buffer->transposed &&
              buffer->access == LAB_READ);
}

static void check_pass(const struct lab_bindings *bindings, uint32_t p)
{
    const struct lab_pass *pass = &bindings->passes[p];
    CHECK(pass->kernel[0] && pass->item_columns && pass->item_rows);
    CHECK(!pass->fused || (p > 0 && !pass->transposed));
    CHECK(pass->argument_count <= COX_ARGUMENTS_MAX);
    CHECK(pass->first_argument + pass->argument_count <= bindings->argument_count);
}

static void check_argument(const struct lab_bindings *bindings, const struct lab_argument *argument)
{
    uint32_t b = 0;
    while (b < bindings->buffer_count && strcmp(bindings->buffers[b].name, argument->name) != 0)
        b++;
    CHECK((b == bindings->buffer_count) == (argument->local_bytes > 0));
    const bool by_rows = argument->halo_rows || argument->in_place || argument->row_divisor;
    CHECK(!by_rows || (!argument->whole && !argument->local_bytes && bindings->buffers[b].element_bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[400] = "";
    struct lab_bindings bindings;
    if (!lab_bindings_parse((const char *)data, size, "input", &bindings, why, sizeof why)) {
        fuzz_complaint(why, sizeof why);
        return 0;
    }
    CHECK(bindings.columns >= LAB_SIZE_MIN && bindings.columns <= LAB_SIZE_MAX);
    CHECK(bindings.rows >= LAB_SIZE_MIN && bindings.rows <= LAB_SIZE_MAX);
    CHECK(bindings.pass_count >= 1 && bindings.pass_count <= LAB_PASSES_MAX);
    for (uint32_t p = 0; p < bindings.pass_count; p++)
        check_pass(&bindings, p);
    CHECK(bindings.buffer_count >= 1 && bindings.buffer_count <= COX_BUFFERS_MAX);
    bool written = false;
    for (uint32_t b = 0; b < bindings.buffer_count; b++) {
        check_buffer(&bindings.buffers[b]);
        written = written || bindings.buffers[b].access != LAB_READ;
    }
    CHECK(written);
    CHECK(bindings.constant_count <= LAB_CONSTANTS_MAX);
    for (uint32_t c = 0; c < bindings.constant_count; c++)
        CHECK(bindings.constants[c].name[0] && memchr(bindings.constants[c].name, 0, LAB_KERNEL_NAME_MAX));
    CHECK(bindings.argument_count <= LAB_ARGUMENTS_MAX);
    for (uint32_t a = 0; a < bindings.argument_count; a++)
        check_argument(&bindings, &bindings.arguments[a]);
    return 0;
}
