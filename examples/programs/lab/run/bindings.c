/* SPDX-License-Identifier: Apache-2.0 */
#include "bindings.h"
#include "lab/refuse.h"
#include "lab/strict_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The index of `text` among the words; -1 if it is not found. */
static int word_of(const char *text, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    return -1;
}

/* Read one of the words, which end with NULL; `all` lists them for people. Without the key
 * `*out` is unchanged, unless `must` is set. */
static bool word(const struct strict_place *at, const char *key, bool must,
                 const char *const *words, const char *all, int *out)
{
    char text[32] = "";

    if (!strict_string(at, key, must, sizeof text, text))
        return false;
    if (!text[0])
        return true;

    *out = word_of(text, words);
    return *out >= 0 || strict_refuse(at, key, "must be %s, not \"%s\"", all, text);
}

/* As strict_integer, for 32 bits. */
static bool small(const struct strict_place *at, const char *key, bool must, uint64_t low,
                  uint64_t high, uint32_t *out)
{
    uint64_t value = *out;
    bool good = strict_integer(at, key, must, low, high, &value);

    *out = (uint32_t)value;
    return good;
}

/* --- Buffers ---------------------------------------------------------------------------------- */

/* Refuse a key that has no meaning because of another key. */
static bool absent(const struct strict_place *at, const char *key, const char *why)
{
    return !json_object_get(at->object, key) || strict_refuse(at, key, "%s", why);
}

static bool read_fill(const struct strict_place *at, struct lab_buffer *buffer)
{
    static const char *const words[] = {"zero", "noise", "noise-float", "file", NULL};
    int fill = LAB_FILL_ZERO;

    if (!word(at, "fill", false, words, "zero, noise, noise-float or file", &fill))
        return false;
    buffer->fill = (enum lab_fill)fill;

    const bool noise = fill == LAB_FILL_NOISE || fill == LAB_FILL_FLOATS;
    const bool file = fill == LAB_FILL_FILE;
    if (!(noise || absent(at, "seed",
                          "is only allowed with \"fill\": \"noise\" or "
                          "\"noise-float\"")) ||
        !small(at, "seed", false, 0, UINT32_MAX, &buffer->seed) ||
        !(file || absent(at, "file", "is only allowed with \"fill\": \"file\"")) ||
        !strict_string(at, "file", file, sizeof buffer->file, buffer->file))
        return false;

    if (fill != LAB_FILL_ZERO && buffer->access == LAB_WRITE)
        return strict_refuse(at, "fill", "not allowed for a buffer with \"access\": \"write\"");

    uint64_t bytes = buffer->element_bytes;
    if (!bytes)
        bytes = buffer->bytes;
    return fill != LAB_FILL_FLOATS || bytes % sizeof(float) == 0 ||
           strict_refuse(at, "fill", "%" PRIu64 " bytes are not a multiple of the size of a float",
                         bytes);
}

static bool read_access(const struct strict_place *at, struct lab_buffer *buffer)
{
    static const char *const words[] = {"read", "write", "read-write", NULL}; /* as the enum */
    int access = LAB_READ;

    if (!strict_boolean(at, "scratch", &buffer->scratch))
        return false;
    if (buffer->scratch)
        return absent(at, "access", "not allowed for scratch");

    bool good = word(at, "access", true, words, "read, write or read-write", &access);
    buffer->access = (enum lab_access)access;
    return good;
}

/* Read the size: a buffer has rows of elements, or a number of bytes. */
static bool read_memory(const struct strict_place *at, struct lab_buffer *buffer)
{
    if (!json_object_get(at->object, "bytes"))
        return small(at, "element_bytes", true, 1, LAB_ELEMENT_BYTES_MAX, &buffer->element_bytes) &&
               small(at, "row_divisor", false, 1, 16, &buffer->row_divisor) &&
               strict_boolean(at, "transposed", &buffer->transposed);

    if (buffer->scratch || buffer->access != LAB_READ)
        return strict_refuse(at, "bytes", "needs \"access\": \"read\"");
    return strict_integer(at, "bytes", true, 1, LAB_WHOLE_BYTES_MAX, &buffer->bytes) &&
           absent(at, "element_bytes", "not allowed with \"bytes\"") &&
           absent(at, "row_divisor", "not allowed with \"bytes\"") &&
           absent(at, "transposed", "not allowed with \"bytes\"");
}

static bool read_buffer(struct strict_reader *reader, json_t *value, uint32_t index,
                        struct lab_bindings *out)
{
    static const char *const keys[] = {
        "name", "access", "element_bytes", "row_divisor", "bytes", "fill",
        "seed", "file",   "scratch",       "transposed",  NULL};
    struct lab_buffer *buffer = &out->buffers[out->buffer_count];
    struct strict_place at;

    *buffer = (struct lab_buffer){.row_divisor = 1, .seed = 1};
    if (!strict_enter(&at, reader, value, keys, "buffers[#]", index) ||
        !strict_string(&at, "name", true, sizeof buffer->name, buffer->name))
        return false;

    for (uint32_t b = 0; b < out->buffer_count; b++)
        if (strcmp(out->buffers[b].name, buffer->name) == 0)
            return strict_refuse(&at, "name", "a buffer of this name already exists");

    out->buffer_count++;
    return read_access(&at, buffer) && read_memory(&at, buffer) &&
           (!buffer->scratch || absent(&at, "fill", "not allowed for scratch")) &&
           read_fill(&at, buffer);
}

static const struct lab_buffer *find_buffer(const struct lab_bindings *all, const char *name)
{
    for (uint32_t b = 0; b < all->buffer_count; b++)
        if (strcmp(all->buffers[b].name, name) == 0)
            return &all->buffers[b];
    return NULL;
}

/* --- Constants -------------------------------------------------------------------------------- */

static bool read_int(const struct strict_place *at, int32_t *out)
{
    json_t *value = json_object_get(at->object, "int");

    if (!json_is_integer(value) || json_integer_value(value) < INT32_MIN ||
        json_integer_value(value) > INT32_MAX)
        return strict_refuse(at, "int", "must be a whole number from %d to %d", INT32_MIN,
                             INT32_MAX);

    *out = (int32_t)json_integer_value(value);
    return true;
}

static bool read_constant(struct strict_reader *reader, json_t *value, uint32_t index,
                          struct lab_bindings *out)
{
    static const char *const keys[] = {"name", "int", "uint", "float", NULL};
    struct lab_constant *constant = &out->constants[out->constant_count];
    struct strict_place at;
    double number = 0;

    *constant = (struct lab_constant){0};
    if (!strict_enter(&at, reader, value, keys, "constants[#]", index) ||
        !strict_string(&at, "name", true, sizeof constant->name, constant->name))
        return false;

    for (uint32_t c = 0; c < out->constant_count; c++)
        if (strcmp(out->constants[c].name, constant->name) == 0)
            return strict_refuse(&at, "name", "a constant of this name already exists");
    if (find_buffer(out, constant->name))
        return strict_refuse(&at, "name", "a buffer of this name already exists");
    if (json_object_size(value) != 2)
        return strict_refuse(&at, NULL,
                             "must have \"name\" and one of \"int\", \"uint\" "
                             "and \"float\"");

    out->constant_count++;
    if (json_object_get(value, "int"))
        return read_int(&at, &constant->value.i);
    if (json_object_get(value, "uint"))
        return small(&at, "uint", true, 0, UINT32_MAX, &constant->value.u);

    bool good = strict_number(&at, "float", true, -3e38, 3e38, &number);
    constant->value.f = (float)number;
    return good;
}

/* --- Passes ----------------------------------------------------------------------------------- */

/* Read the facts about a buffer. */
static bool read_touch(const struct strict_place *at, const struct lab_bindings *all,
                       struct lab_argument *argument)
{
    const struct lab_buffer *buffer = find_buffer(all, argument->name);

    if (!buffer)
        return strict_refuse(at, "name", "unknown buffer \"%s\"", argument->name);

    if (!small(at, "halo_rows", false, 1, 1024, &argument->halo_rows) ||
        !strict_boolean(at, "whole", &argument->whole) ||
        !strict_boolean(at, "in_place", &argument->in_place) ||
        !small(at, "row_divisor", false, 1, 16, &argument->row_divisor))
        return false;

    const bool by_rows = argument->halo_rows || argument->row_divisor || argument->in_place;
    if (argument->whole && by_rows)
        return strict_refuse(at, "whole",
                             "not allowed with \"halo_rows\", \"row_divisor\" or \"in_place\"");
    if (!buffer->element_bytes && by_rows)
        return strict_refuse(at, "name", "buffer \"%s\" has no rows", argument->name);
    return !argument->in_place || buffer->scratch || buffer->access == LAB_READ_WRITE ||
           strict_refuse(at, "in_place", "buffer \"%s\" must be read-write or scratch",
                         argument->name);
}

static bool read_argument(const struct strict_place *pass, json_t *value, uint32_t index,
                          struct lab_bindings *out)
{
    static const char *const keys[] = {"name",        "halo_rows",   "whole", "in_place",
                                       "row_divisor", "local_bytes", NULL};
    static const char *const of_buffers[] = {"halo_rows", "whole", "in_place", "row_divisor"};
    struct lab_argument *argument = &out->arguments[out->argument_count++];
    struct strict_place at;
    char path[STRICT_PATH_BYTES];

    *argument = (struct lab_argument){0};
    snprintf(path, sizeof path, "%.64s%sarguments[#]", pass->path, pass->path[0] ? "." : "");
    if (!strict_enter(&at, pass->reader, value, keys, path, index) ||
        !strict_string(&at, "name", true, sizeof argument->name, argument->name))
        return false;

    if (!json_object_get(value, "local_bytes"))
        return read_touch(&at, out, argument);

    for (size_t k = 0; k < sizeof of_buffers / sizeof *of_buffers; k++)
        if (!absent(&at, of_buffers[k], "not allowed with \"local_bytes\""))
            return false;
    if (find_buffer(out, argument->name))
        return strict_refuse(&at, "local_bytes", "not allowed for the buffer \"%s\"",
                             argument->name);
    return small(&at, "local_bytes", true, 1, 1 << 20, &argument->local_bytes);
}

/* Without "passes" the file itself is the only pass. */
static bool read_kernel(const struct strict_place *at, struct lab_bindings *out)
{
    struct lab_pass *pass = &out->passes[out->pass_count++];

    *pass = (struct lab_pass){
        .item_columns = 1, .item_rows = 1, .first_argument = out->argument_count};

    if (!strict_string(at, "kernel", true, sizeof pass->kernel, pass->kernel) ||
        !small(at, "local_columns", false, 1, 1024, &pass->local_columns) ||
        !small(at, "local_rows", false, 1, 1024, &pass->local_rows) ||
        !small(at, "item_columns", false, 1, 1024, &pass->item_columns) ||
        !small(at, "item_rows", false, 1, 1024, &pass->item_rows))
        return false;

    json_t *arguments = strict_array(at, "arguments", false, COX_ARGUMENTS_MAX);
    if (out->argument_count + json_array_size(arguments) > LAB_ARGUMENTS_MAX)
        return strict_refuse(at, "arguments", "more than %d in all passes", LAB_ARGUMENTS_MAX);

    for (size_t a = 0; a < json_array_size(arguments); a++)
        if (!read_argument(at, json_array_get(arguments, a), (uint32_t)a, out))
            return false;

    pass->argument_count = out->argument_count - pass->first_argument;
    return !at->reader->failed;
}

static bool read_pass(struct strict_reader *reader, json_t *value, uint32_t index,
                      struct lab_bindings *out)
{
    static const char *const keys[] = {
        "name",          "transposed", "fused",        "kernel",    "arguments",
        "local_columns", "local_rows", "item_columns", "item_rows", NULL};
    struct lab_pass *pass = &out->passes[out->pass_count];
    struct strict_place at;

    if (!strict_enter(&at, reader, value, keys, "passes[#]", index) || !read_kernel(&at, out) ||
        !strict_string(&at, "name", false, sizeof pass->name, pass->name) ||
        !strict_boolean(&at, "transposed", &pass->transposed) ||
        !strict_boolean(&at, "fused", &pass->fused))
        return false;

    if (pass->fused && index == 0)
        return strict_refuse(&at, "fused", "not allowed in the first pass");
    return !pass->fused || absent(&at, "transposed", "not allowed in a fused pass");
}

/* --- The whole -------------------------------------------------------------------------------- */

typedef bool read_fn(struct strict_reader *reader, json_t *value, uint32_t index,
                     struct lab_bindings *out);

static bool read_each(const struct strict_place *at, const char *key, bool must, size_t most,
                      read_fn *read, struct lab_bindings *out)
{
    json_t *values = strict_array(at, key, must, most);

    for (size_t i = 0; values && i < json_array_size(values); i++)
        if (!read(at->reader, json_array_get(values, i), (uint32_t)i, out))
            return false;
    return !at->reader->failed;
}

static bool has_output(const struct strict_place *at, const struct lab_bindings *bindings)
{
    for (uint32_t b = 0; b < bindings->buffer_count; b++)
        if (bindings->buffers[b].access != LAB_READ)
            return true;
    return strict_refuse(at, "buffers", "at least one must be written");
}

/* A group is a pass and those that are fused with it. */
static bool has_room(const struct strict_place *at, const struct lab_bindings *bindings)
{
    uint32_t groups = 0, fused = 0;

    for (uint32_t p = 0; p < bindings->pass_count; p++) {
        groups += !bindings->passes[p].fused;
        fused = bindings->passes[p].fused ? fused + 1 : 1;
        if (fused > COX_FUSED_MAX)
            return strict_refuse(at, "passes", "more than %d consecutive passes are fused",
                                 COX_FUSED_MAX);
    }

    return groups <= COX_PASSES_MAX ||
           strict_refuse(at, "passes", "more than %d are not fused", COX_PASSES_MAX);
}

static bool read_passes(const struct strict_place *at, struct lab_bindings *out)
{
    static const char *const of_a_pass[] = {"kernel",       "local_columns", "local_rows",
                                            "item_columns", "item_rows",     "arguments"};

    if (!json_object_get(at->object, "passes"))
        return read_kernel(at, out);

    for (size_t k = 0; k < sizeof of_a_pass / sizeof *of_a_pass; k++)
        if (!absent(at, of_a_pass[k], "not allowed with \"passes\"; move it into a pass"))
            return false;
    return read_each(at, "passes", true, LAB_PASSES_MAX, read_pass, out) && has_room(at, out);
}

static bool read_all(struct strict_reader *reader, json_t *root, struct lab_bindings *out)
{
    static const char *const keys[] = {
        "kernel",     "columns",      "rows",      "options", "local_columns",
        "local_rows", "item_columns", "item_rows", "buffers", "constants",
        "arguments",  "passes",       NULL};
    struct strict_place at;

    return strict_enter(&at, reader, root, keys, NULL, 0) &&
           small(&at, "columns", true, LAB_SIZE_MIN, LAB_SIZE_MAX, &out->columns) &&
           small(&at, "rows", true, LAB_SIZE_MIN, LAB_SIZE_MAX, &out->rows) &&
           strict_string(&at, "options", false, sizeof out->options, out->options) &&
           read_each(&at, "buffers", true, COX_BUFFERS_MAX, read_buffer, out) &&
           read_each(&at, "constants", false, LAB_CONSTANTS_MAX, read_constant, out) &&
           has_output(&at, out) && read_passes(&at, out);
}

bool lab_bindings_parse(const char *text, size_t bytes, const char *file, struct lab_bindings *out,
                        char *why, size_t why_bytes)
{
    struct strict_reader reader = {.file = file, .why = why, .why_bytes = why_bytes};

    *out = (struct lab_bindings){0};
    json_t *root = strict_parse(&reader, text, bytes, LAB_BINDINGS_BYTES_MAX);
    bool good = root && read_all(&reader, root, out);
    json_decref(root);
    return good;
}

/* The path with .json for .cl, or appended; the caller frees it. NULL if out of memory. */
static char *beside(const char *source_path)
{
    const size_t whole = strlen(source_path);
    const bool has_ending = whole > 3 && strcmp(source_path + whole - 3, ".cl") == 0;
    const size_t length = has_ending ? whole - 3 : whole;
    char *path = malloc(length + sizeof ".json");

    if (!path)
        return NULL;

    snprintf(path, length + sizeof ".json", "%.*s.json", (int)length, source_path);
    return path;
}

static bool load(struct lab_user_kernel *kernel, const char *source_path, const char *json_path,
                 char *why, size_t why_bytes)
{
    size_t bytes = 0;
    const char *slash = strrchr(json_path, '/'), *name = strrchr(source_path, '/');

    snprintf(kernel->name, sizeof kernel->name, "%s", name ? name + 1 : source_path);
    kernel->folder = strndup(json_path, slash ? (size_t)(slash - json_path) + 1 : 0);
    if (!kernel->folder)
        return false;

    kernel->source = strict_read_file(source_path, LAB_SOURCE_BYTES_MAX, &bytes, why, why_bytes);
    if (!kernel->source)
        return false;
    if (bytes > LAB_SOURCE_BYTES_MAX || strlen(kernel->source) != bytes || bytes == 0)
        return lab_refuse(why, why_bytes, "%s: must be OpenCL C of 1 to %d bytes", source_path,
                          LAB_SOURCE_BYTES_MAX);

    kernel->json = strict_read_file(json_path, LAB_BINDINGS_BYTES_MAX, &bytes, why, why_bytes);
    return kernel->json &&
           lab_bindings_parse(kernel->json, bytes, json_path, &kernel->bindings, why, why_bytes);
}

bool lab_user_kernel_load(const char *source_path, const char *json_path,
                          struct lab_user_kernel **out, char *why, size_t why_bytes)
{
    char *path = json_path ? strdup(json_path) : beside(source_path);

    *out = calloc(1, sizeof **out);
    snprintf(why, why_bytes, "%s: out of memory", source_path);
    bool good = path && *out && load(*out, source_path, path, why, why_bytes);

    free(path);
    if (!good)
        lab_user_kernel_free(out);
    return good;
}

void lab_user_kernel_free(struct lab_user_kernel **kernel)
{
    struct lab_user_kernel *k = *kernel;
    *kernel = NULL;
    if (!k)
        return;

    free(k->source);
    free(k->json);
    free(k->folder);
    free(k);
}
