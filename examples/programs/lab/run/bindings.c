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

/* --- Bindings --------------------------------------------------------------------------------- */

/* Refuse a key that has no meaning because of another key. */
static bool absent(const struct strict_place *at, const char *key, const char *why)
{
    return !json_object_get(at->object, key) || strict_refuse(at, key, "%s", why);
}

static bool read_fill(const struct strict_place *at, struct lab_binding *binding)
{
    static const char *const words[] = {"zero", "noise", "noise-float", "file", NULL};
    int fill = LAB_FILL_ZERO;

    if (!word(at, "fill", false, words, "zero, noise, noise-float or file", &fill))
        return false;
    binding->fill = (enum lab_fill)fill;

    const bool noise = fill == LAB_FILL_NOISE || fill == LAB_FILL_FLOATS;
    const bool file = fill == LAB_FILL_FILE;
    if (!(noise || absent(at, "seed", "goes with \"fill\": \"noise\" and \"noise-float\"")) ||
        !small(at, "seed", false, 0, UINT32_MAX, &binding->seed) ||
        !(file || absent(at, "file", "goes with \"fill\": \"file\"")) ||
        !strict_string(at, "file", file, sizeof binding->file, binding->file))
        return false;

    if (fill != LAB_FILL_ZERO && binding->touch.access == COX_WRITE)
        return strict_refuse(at, "fill", "what is written only is not filled");

    uint64_t bytes = binding->element_bytes;
    if (binding->touch.contract == COX_WHOLE)
        bytes = binding->bytes;
    return fill != LAB_FILL_FLOATS || bytes % sizeof(float) == 0 ||
           strict_refuse(at, "fill", "floats do not fill %" PRIu64 " bytes", bytes);
}

/* Read the keys that a binding and a pass's use of it share. `scratch`: the library owns the
 * memory. */
static bool read_touch(const struct strict_place *at, bool scratch, struct cox_use *touch)
{
    /* As enum cox_access and enum cox_contract. */
    static const char *const accesses[] = {"read", "write", "read-write", NULL};
    static const char *const words[] = {"rows", "halo", "whole", NULL};
    int access = 0, contract = 0;

    touch->row_divisor = 1;
    if (!word(at, "access", true, accesses, "read, write or read-write", &access) ||
        !word(at, "contract", true, words, "rows, halo or whole", &contract))
        return false;

    touch->access = (enum cox_access)access;
    touch->contract = (enum cox_contract)contract;
    const bool halo = contract == COX_HALO, whole = contract == COX_WHOLE;
    const bool own = scratch && halo && access == COX_READ_WRITE;
    if (contract != COX_ROWS && access != COX_READ && !own)
        return strict_refuse(at, "access", "must be read with the contract %s", words[contract]);

    return (!whole || absent(at, "row_divisor", "a whole buffer has no rows")) &&
           small(at, "row_divisor", false, 1, 16, &touch->row_divisor) &&
           (halo || absent(at, "halo_rows", "goes with the contract halo")) &&
           small(at, "halo_rows", halo, 0, 1024, &touch->halo_rows);
}

static bool read_memory(const struct strict_place *at, struct lab_binding *binding)
{
    if (binding->touch.contract == COX_WHOLE)
        return strict_integer(at, "bytes", true, 1, LAB_WHOLE_BYTES_MAX, &binding->bytes) &&
               absent(at, "element_bytes", "a whole buffer has \"bytes\"") &&
               absent(at, "transposed", "a whole buffer has no rows") &&
               (!binding->scratch ||
                strict_refuse(at, "scratch", "goes with the contracts rows and halo"));

    return small(at, "element_bytes", true, 1, LAB_ELEMENT_BYTES_MAX, &binding->element_bytes) &&
           strict_boolean(at, "transposed", &binding->transposed) &&
           absent(at, "bytes", "goes with the contract whole");
}

static bool read_binding(struct strict_reader *reader, json_t *value, uint32_t index,
                         struct lab_bindings *out)
{
    static const char *const keys[] = {
        "name", "access", "contract", "element_bytes", "row_divisor", "halo_rows", "bytes",
        "fill", "seed",   "file",     "scratch",       "transposed",  NULL};
    struct lab_binding *binding = &out->bindings[out->binding_count];
    struct strict_place at;

    *binding = (struct lab_binding){.seed = 1};
    if (!strict_enter(&at, reader, value, keys, "bindings[#]", index) ||
        !strict_string(&at, "name", true, sizeof binding->name, binding->name) ||
        !strict_boolean(&at, "scratch", &binding->scratch))
        return false;

    for (uint32_t b = 0; b < out->binding_count; b++)
        if (strcmp(out->bindings[b].name, binding->name) == 0)
            return strict_refuse(&at, "name", "there is a binding of that name already");

    out->binding_count++;
    return read_touch(&at, binding->scratch, &binding->touch) && read_memory(&at, binding) &&
           (!binding->scratch || absent(&at, "fill", "scratch is not filled")) &&
           read_fill(&at, binding);
}

/* Find the binding that a key names. */
static bool find_binding(const struct strict_place *at, const char *key,
                         const struct lab_bindings *all, uint32_t *out)
{
    char name[LAB_KERNEL_NAME_MAX];

    if (!strict_string(at, key, true, sizeof name, name))
        return false;

    for (*out = 0; *out < all->binding_count; ++*out)
        if (strcmp(all->bindings[*out].name, name) == 0)
            return true;
    return strict_refuse(at, key, "there is no binding \"%s\"", name);
}

/* --- Arguments -------------------------------------------------------------------------------- */

static bool read_plain(struct strict_place *at, const char *text, struct lab_argument *argument)
{
    static const char *const words[] = {"columns", "rows", "first-row", "frame-rows", NULL};
    int which = word_of(text, words);

    argument->kind = (enum lab_argument_kind)(LAB_ARGUMENT_COLUMNS + which);
    return which >= 0 ||
           strict_refuse(at, NULL, "must be columns, rows, first-row or frame-rows, or an object");
}

/* Whether the pass that is being read uses the binding. A pass without uses has all bindings. */
static bool is_used(const struct lab_bindings *all, uint32_t binding)
{
    if (!all->pass_count || !all->passes[all->pass_count - 1].use_count)
        return true;

    const struct lab_pass *pass = &all->passes[all->pass_count - 1];
    for (uint32_t u = 0; u < pass->use_count; u++)
        if (pass->uses[u].binding == binding)
            return true;
    return false;
}

static bool read_of_binding(const struct strict_place *at, const char *key,
                            const struct lab_bindings *all, struct lab_argument *argument)
{
    if (!find_binding(at, key, all, &argument->binding))
        return false;

    const struct lab_binding *binding = &all->bindings[argument->binding];
    const bool buffer = argument->kind == LAB_ARGUMENT_BUFFER;

    if ((buffer || argument->kind == LAB_ARGUMENT_ORIGIN) && !is_used(all, argument->binding))
        return strict_refuse(at, key, "\"%s\" is not among the pass's uses", binding->name);
    if (!buffer && binding->touch.contract == COX_WHOLE)
        return strict_refuse(at, key, "\"%s\" is whole: it has no rows", binding->name);

    uint32_t bytes = binding->element_bytes;
    return argument->kind != LAB_ARGUMENT_PITCH || !(bytes & (bytes - 1)) ||
           strict_refuse(
               at, key,
               "a row may not be whole elements of %u bytes; \"pitch_bytes\" is what there is",
               bytes);
}

static bool read_constant(const struct strict_place *at, const char *key,
                          struct lab_argument *argument)
{
    json_t *value = json_object_get(at->object, key);
    double number = 0;

    if (argument->kind == LAB_ARGUMENT_FLOAT) {
        bool good = strict_number(at, key, true, -3e38, 3e38, &number);
        argument->value.f = (float)number;
        return good;
    }

    if (argument->kind == LAB_ARGUMENT_UINT)
        return small(at, key, true, 0, UINT32_MAX, &argument->value.u);
    if (argument->kind == LAB_ARGUMENT_LOCAL)
        return small(at, key, true, 1, 1 << 20, &argument->value.u);

    if (!json_is_integer(value) || json_integer_value(value) < INT32_MIN ||
        json_integer_value(value) > INT32_MAX)
        return strict_refuse(at, key, "must be a whole number from %d to %d", INT32_MIN, INT32_MAX);

    argument->value.i = (int32_t)json_integer_value(value);
    return true;
}

static bool read_argument(const struct strict_place *stage, json_t *value, uint32_t index,
                          struct lab_bindings *out)
{
    static const char *const keys[] = {"buffer", "origin", "pitch",       "pitch_bytes", "int",
                                       "uint",   "float",  "local_bytes", NULL};
    static const enum lab_argument_kind kinds[] = {
        LAB_ARGUMENT_BUFFER, LAB_ARGUMENT_ORIGIN, LAB_ARGUMENT_PITCH, LAB_ARGUMENT_PITCH_BYTES,
        LAB_ARGUMENT_INT,    LAB_ARGUMENT_UINT,   LAB_ARGUMENT_FLOAT, LAB_ARGUMENT_LOCAL};
    struct lab_argument *argument = &out->arguments[out->argument_count++];
    struct strict_place at = {.reader = stage->reader};
    char path[STRICT_PATH_BYTES];

    snprintf(path, sizeof path, "%.64s%sarguments[#]", stage->path, stage->path[0] ? "." : "");
    if (json_is_string(value)) {
        snprintf(at.path, sizeof at.path, "%.*s[%" PRIu32 "]", (int)strlen(path) - 3, path, index);
        return read_plain(&at, json_string_value(value), argument);
    }

    if (!strict_enter(&at, stage->reader, value, keys, path, index))
        return false;
    if (json_object_size(value) != 1)
        return strict_refuse(&at, NULL, "must have one key");

    int which = word_of(json_object_iter_key(json_object_iter(value)), keys);
    argument->kind = kinds[which];

    if (argument->kind <= LAB_ARGUMENT_PITCH_BYTES)
        return read_of_binding(&at, keys[which], out, argument);
    return read_constant(&at, keys[which], argument);
}

/* --- Passes ----------------------------------------------------------------------------------- */

/* Without "passes" the file itself is the only stage. */
static bool read_stage(const struct strict_place *at, struct lab_bindings *out)
{
    if (out->stage_count == LAB_STAGES_MAX)
        return strict_refuse(at, NULL, "there are more than %d stages", LAB_STAGES_MAX);

    struct lab_stage *stage = &out->stages[out->stage_count++];
    *stage = (struct lab_stage){.local_columns = 1,
                                .local_rows = 1,
                                .item_columns = 1,
                                .item_rows = 1,
                                .first_argument = out->argument_count};

    if (!strict_string(at, "kernel", true, sizeof stage->kernel, stage->kernel) ||
        !small(at, "local_columns", false, 1, 1024, &stage->local_columns) ||
        !small(at, "local_rows", false, 1, 1024, &stage->local_rows) ||
        !small(at, "item_columns", false, 1, 1024, &stage->item_columns) ||
        !small(at, "item_rows", false, 1, 1024, &stage->item_rows))
        return false;

    json_t *arguments = strict_array(at, "arguments", true, COX_ARGUMENTS_MAX);
    if (out->argument_count + json_array_size(arguments) > LAB_ARGUMENTS_MAX)
        return strict_refuse(at, "arguments", "there are more than %d of all stages",
                             LAB_ARGUMENTS_MAX);

    for (size_t a = 0; a < json_array_size(arguments); a++)
        if (!read_argument(at, json_array_get(arguments, a), (uint32_t)a, out))
            return false;

    stage->argument_count = out->argument_count - stage->first_argument;
    return !at->reader->failed;
}

/* Enter an entry of an array of a pass. */
static bool enter_of_pass(struct strict_place *at, const struct strict_place *pass,
                          const char *array, size_t index, const char *const *keys)
{
    char path[STRICT_PATH_BYTES];

    snprintf(path, sizeof path, "%.32s.%s[#]", pass->path, array);
    json_t *value = json_array_get(json_object_get(pass->object, array), index);
    return strict_enter(at, pass->reader, value, keys, path, (uint32_t)index);
}

static bool read_use(const struct strict_place *at, const struct lab_bindings *all,
                     struct lab_pass *pass)
{
    struct cox_use *use = &pass->uses[pass->use_count];

    if (!find_binding(at, "binding", all, &use->binding))
        return false;
    const struct lab_binding *binding = &all->bindings[use->binding];

    for (uint32_t u = 0; u < pass->use_count; u++)
        if (pass->uses[u].binding == use->binding)
            return strict_refuse(at, "binding", "\"%s\" is used twice", binding->name);

    if (!read_touch(at, binding->scratch, use))
        return false;
    pass->use_count++;

    if (binding->touch.access == COX_READ && use->access != COX_READ)
        return strict_refuse(at, "access", "\"%s\" is only read", binding->name);
    if (use->contract == COX_WHOLE)
        return true;
    if (binding->touch.contract == COX_WHOLE)
        return strict_refuse(at, "contract", "\"%s\" is whole: it has no rows", binding->name);

    return binding->transposed == pass->transposed ||
           strict_refuse(at, "contract", "must be whole: \"%s\" %s transposed, and the pass %s",
                         binding->name, binding->transposed ? "is" : "is not",
                         pass->transposed ? "is" : "is not");
}

static bool has_transposed(const struct lab_bindings *bindings)
{
    for (uint32_t b = 0; b < bindings->binding_count; b++)
        if (bindings->bindings[b].transposed)
            return true;
    return false;
}

static bool read_pass(struct strict_reader *reader, json_t *value, uint32_t index,
                      struct lab_bindings *out)
{
    static const char *const keys[] = {"name", "transposed", "uses", "stages", NULL};
    static const char *const use_keys[] = {"binding",     "access",    "contract",
                                           "row_divisor", "halo_rows", NULL};
    static const char *const stage_keys[] = {
        "kernel", "local_columns", "local_rows", "item_columns", "item_rows", "arguments", NULL};
    struct lab_pass *pass = &out->passes[out->pass_count++];
    struct strict_place at, in;

    *pass = (struct lab_pass){.first_stage = out->stage_count};
    if (!strict_enter(&at, reader, value, keys, "passes[#]", index) ||
        !strict_string(&at, "name", false, sizeof pass->name, pass->name) ||
        !strict_boolean(&at, "transposed", &pass->transposed))
        return false;

    json_t *uses = strict_array(&at, "uses", pass->transposed || has_transposed(out),
                                COX_BUFFERS_MAX);
    for (size_t u = 0; u < json_array_size(uses); u++)
        if (!enter_of_pass(&in, &at, "uses", u, use_keys) || !read_use(&in, out, pass))
            return false;

    json_t *stages = strict_array(&at, "stages", true, COX_FUSED_MAX);
    for (size_t s = 0; s < json_array_size(stages); s++)
        if (!enter_of_pass(&in, &at, "stages", s, stage_keys) || !read_stage(&in, out))
            return false;

    pass->stage_count = out->stage_count - pass->first_stage;
    return !reader->failed;
}

/* --- The whole -------------------------------------------------------------------------------- */

typedef bool read_fn(struct strict_reader *reader, json_t *value, uint32_t index,
                     struct lab_bindings *out);

static bool read_each(const struct strict_place *at, const char *key, size_t most, read_fn *read,
                      struct lab_bindings *out)
{
    json_t *values = strict_array(at, key, true, most);

    for (size_t i = 0; values && i < json_array_size(values); i++)
        if (!read(at->reader, json_array_get(values, i), (uint32_t)i, out))
            return false;
    return !at->reader->failed;
}

static bool has_output(const struct strict_place *at, const struct lab_bindings *bindings)
{
    for (uint32_t b = 0; b < bindings->binding_count; b++)
        if (!bindings->bindings[b].scratch && bindings->bindings[b].touch.access != COX_READ)
            return true;
    return strict_refuse(at, "bindings", "nothing is written");
}

static bool read_passes(const struct strict_place *at, struct lab_bindings *out)
{
    static const char *const of_a_stage[] = {"kernel",       "local_columns", "local_rows",
                                             "item_columns", "item_rows",     "arguments"};

    if (!json_object_get(at->object, "passes")) {
        if (has_transposed(out))
            return strict_refuse(at, "passes", "is missing: a binding is transposed");
        return read_stage(at, out);
    }

    for (size_t k = 0; k < sizeof of_a_stage / sizeof *of_a_stage; k++)
        if (!absent(at, of_a_stage[k], "stands in a stage of \"passes\""))
            return false;
    return read_each(at, "passes", COX_PASSES_MAX, read_pass, out);
}

static bool read_all(struct strict_reader *reader, json_t *root, struct lab_bindings *out)
{
    static const char *const keys[] = {"kernel",        "columns",    "rows",         "options",
                                       "local_columns", "local_rows", "item_columns", "item_rows",
                                       "bindings",      "arguments",  "passes",       NULL};
    struct strict_place at;

    return strict_enter(&at, reader, root, keys, NULL, 0) &&
           small(&at, "columns", true, LAB_SIZE_MIN, LAB_SIZE_MAX, &out->columns) &&
           small(&at, "rows", true, LAB_SIZE_MIN, LAB_SIZE_MAX, &out->rows) &&
           strict_string(&at, "options", false, sizeof out->options, out->options) &&
           read_each(&at, "bindings", COX_BUFFERS_MAX, read_binding, out) &&
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
        return lab_refuse(why, why_bytes, "%s: is no OpenCL C of 1 to %d bytes", source_path,
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
