/* The user's own kernels in cox-lab: what their JSON may contain, what their buffers contain, and how their results
 * are compared.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/user_pipeline.h"
#include "unit/programs/lab_support.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char why[400];

static const char whole_text[] =
    "{'kernel': 'k', 'columns': 640, 'rows': 480, 'options': '-D N=3', 'local_columns': 16, 'local_rows': 4, "
    "'item_columns': 2, 'item_rows': 3, 'buffers': [{'name': 'in', 'access': 'read', 'element_bytes': 4, "
    "'fill': 'noise', 'seed': 9},{'name': 'table', 'access': 'read', 'bytes': 32, 'fill': 'file', "
    "'file': 't.raw'},{'name': 'light', 'access': 'read', 'element_bytes': 12, 'row_divisor': 2, "
    "'fill': 'noise-float'},{'name': 'sum', 'access': 'read-write', 'element_bytes': 2},{'name': 'out', "
    "'access': 'write', 'element_bytes': 1, 'fill': 'zero'}],'constants': [{'name': 'a', 'int': -5}, "
    "{'name': 'b', 'uint': 4294967295}, {'name': 'c', 'float': 0.5}],'arguments': [{'name': 'in', "
    "'halo_rows': 2}, {'name': 'table', 'whole': true}, {'name': 'light', 'row_divisor': 4}, {'name': 'sum', "
    "'in_place': true}, {'name': 'tile', 'local_bytes': 256}]}";

/* Each ' in the text becomes ". */
static bool parse(const char *text, struct lab_bindings *out)
{
    char *json = lab_replace(strdup(text), '\'', '"');
    why[0] = '\0';
    const bool parsed = lab_bindings_parse(json, strlen(json), "f.json", out, why, sizeof why);
    free(json);
    return parsed;
}

/* Each ' in both texts becomes ". */
static void refuse(const char *text, const char *about)
{
    struct lab_bindings b;
    cr_assert_not(parse(text, &b), "%s", text);
    cr_assert_not_null(strstr(lab_replace(why, '"', '\''), about), "'%s' instead of '%s'", why, about);
}

Test(lab_bindings, reads_every_key)
{
    struct lab_bindings b;
    cr_assert(parse(whole_text, &b), "%s", why);
    const struct lab_pass *pass = &b.passes[0];
    cr_assert_str_eq(pass->kernel, "k");
    cr_assert_str_eq(b.options, "-D N=3");
    cr_assert(b.columns == 640 && b.rows == 480 && pass->local_columns == 16 && pass->local_rows == 4);
    cr_assert(pass->item_columns == 2 && pass->item_rows == 3 && b.buffer_count == 5 && b.argument_count == 5);
    cr_assert(b.pass_count == 1 && pass->argument_count == 5 && !pass->fused && !pass->transposed);
    const struct lab_buffer *in = &b.buffers[0], *table = &b.buffers[1], *light = &b.buffers[2];
    cr_assert(in->access == LAB_READ && in->element_bytes == 4 && in->fill == LAB_FILL_NOISE && in->seed == 9);
    cr_assert(in->row_divisor == 1 && !in->bytes);
    cr_assert(table->element_bytes == 0 && table->bytes == 32 && table->fill == LAB_FILL_FILE);
    cr_assert_str_eq(table->file, "t.raw");
    cr_assert(light->row_divisor == 2 && light->fill == LAB_FILL_FLOATS && light->seed == 1);
    cr_assert(b.buffers[3].access == LAB_READ_WRITE && b.buffers[4].access == LAB_WRITE);
    cr_assert(b.constant_count == 3 && b.constants[0].value.i == -5 && b.constants[1].value.u == UINT32_MAX);
    cr_assert_float_eq(b.constants[2].value.f, 0.5f, 0);
    cr_assert_str_eq(b.constants[2].name, "c");
    const struct lab_argument *a = b.arguments;
    cr_assert_str_eq(a[0].name, "in");
    cr_assert(a[0].halo_rows == 2 && !a[0].whole && a[1].whole && a[2].row_divisor == 4 && a[3].in_place);
    cr_assert(a[4].local_bytes == 256);
}

static const char passes_text[] =
    "{'columns': 64, 'rows': 48, 'buffers': [{'name': 'in', 'access': 'read', 'element_bytes': 4},"
    "{'name': 'middle', 'element_bytes': 2, 'scratch': true},{'name': 'turned', 'element_bytes': 2, "
    "'scratch': true, 'transposed': true},{'name': 'table', 'access': 'read', 'bytes': 8},{'name': 'out', "
    "'access': 'write', 'element_bytes': 1}],'passes': [{'name': 'turn', 'transposed': true, 'kernel': 'a', "
    "'arguments': [{'name': 'in', 'whole': true}]},{'kernel': 'b', 'local_columns': 32},{'kernel': 'c', "
    "'fused': true, 'item_rows': 2, 'arguments': [{'name': 'middle', 'halo_rows': 2}, {'name': 'out', "
    "'row_divisor': 2}]}]}";

/* A copy of the text with the first `from` replaced by `to`. */
static char *changed_in(const char *whole, const char *from, const char *to)
{
    const char *at = strstr(whole, from);
    cr_assert_not_null(at, "%s", from);
    size_t bytes = strlen(whole) + strlen(to) + 1;
    char *text = malloc(bytes);
    snprintf(text, bytes, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
    return text;
}

struct change {
    const char *from, *to, *why;
};

static void refuse_changes(const char *whole, const struct change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *text = changed_in(whole, changes[i].from, changes[i].to);
        refuse(text, changes[i].why);
        free(text);
    }
}

Test(lab_bindings, reads_passes)
{
    struct lab_bindings b;
    cr_assert(parse(passes_text, &b), "%s", why);
    cr_assert(b.pass_count == 3 && b.argument_count == 3 && b.buffer_count == 5 && b.constant_count == 0);
    cr_assert(b.buffers[1].scratch && b.buffers[2].transposed && !b.buffers[4].scratch && !b.buffers[4].transposed);
    const struct lab_pass *turn = &b.passes[0], *c = &b.passes[2];
    cr_assert_str_eq(turn->name, "turn");
    cr_assert(turn->transposed && !turn->fused && turn->argument_count == 1 && b.arguments[0].whole);
    cr_assert(b.passes[1].name[0] == '\0' && b.passes[1].local_columns == 32 && b.passes[1].argument_count == 0);
    cr_assert_str_eq(c->kernel, "c");
    cr_assert(c->fused && c->first_argument == 1 && c->argument_count == 2 && c->item_rows == 2);
    cr_assert(c->local_columns == 0 && b.arguments[1].halo_rows == 2 && b.arguments[2].row_divisor == 2);
}

Test(lab_bindings, refuses_passes_with_the_place)
{
    static const struct change bad[] = {
        {"'columns': 64", "'kernel': 'k', 'columns': 64", "kernel: not allowed with 'passes'"},
        {"'passes': [", "'passes': [{}, ", "passes[0].kernel: missing"},
        {"'name': 'turn', 'tran", "'title': 'turn', 'tran", "passes[0]: unknown key 'title'"},
        {"'transposed': true, 'kernel'", "'transposed': 1, 'kernel'", "passes[0].transposed: must be true or"},
        {"'transposed': true, 'kernel'", "'fused': true, 'kernel'", "passes[0].fused: not allowed in the first pass"},
        {"'fused': true", "'fused': true, 'transposed': true", "passes[2].transposed: not allowed in a fused pass"},
        {"{'name': 'in', 'whole'", "{'name': 'inn', 'whole'", "passes[0].arguments[0].name: unknown buffer 'inn'"},
        {"'whole': true", "'whole': true, 'halo_rows': 1", "passes[0].arguments[0].whole: not allowed with"},
        {"'name': 'in', 'whole': true", "'name': 'table', 'halo_rows': 1",
         "passes[0].arguments[0].name: buffer 'table' has no rows"},
        {"'whole': true", "'in_place': true",
         "passes[0].arguments[0].in_place: buffer 'in' must be read-write or scratch"},
        {"'row_divisor': 2", "'row_divisor': 17", "passes[2].arguments[1].row_divisor: must be from 1 to 16"},
        {"'whole': true", "'hole': true", "passes[0].arguments[0]: unknown key 'hole'"},
        {"'kernel': 'c', ", "", "passes[2].kernel: missing"},
        {"'local_columns': 32", "'local_columns': 0", "passes[1].local_columns: must be from 1 to"},
        {"'scratch': true}", "'scratch': true, 'fill': 'zero'}", "buffers[1].fill: not allowed for scratch"},
        {"'scratch': true}", "'scratch': true, 'access': 'write'}", "buffers[1].access: not allowed for scratch"},
        {"'scratch': true}", "'scratch': false}", "buffers[1].access: missing"},
        {"'access': 'read', 'bytes': 8", "'bytes': 8, 'scratch': true", "buffers[3].bytes: needs 'access': 'read'"},
        {"'bytes': 8", "'bytes': 8, 'transposed': true", "buffers[3].transposed: not allowed with 'bytes'"},
        {"'access': 'write', ", "'access': 'read', ", "buffers: at least one must be written"},
    };
    refuse_changes(passes_text, bad, sizeof bad / sizeof *bad);
}

Test(lab_bindings, refuses_with_the_place)
{
    static const struct change bad[] = {
        {"'kernel': 'k', ", "", "f.json: kernel: missing"},
        {"'kernel': 'k'", "'kernel': ''", "kernel: must have from 1 to 63 bytes"},
        {"'kernel': 'k'", "'kernel': 'k', 'kernel': 'k'", "f.json:1:"},
        {"'kernel'", "'colonel': 1, 'kernel'", "unknown key 'colonel'"},
        {"640", "15", "columns: must be from 16 to 16384, not 15"},
        {"480", "480.5", "rows: must be a whole number"},
        {"'local_columns': 16", "'local_columns': 0", "local_columns: must be from 1 to 1024"},
        {"'name': 'in', 'access'", "'access'", "buffers[0].name: missing"},
        {"'name': 'table', 'access'", "'name': 'in', 'access'",
         "buffers[1].name: a buffer of this name already exists"},
        {"'read'", "'look'", "buffers[0].access: must be read, write or read-write, not 'look'"},
        {"'element_bytes': 4", "'element_bytes': 257", "buffers[0].element_bytes: must be from 1 to 256"},
        {"'element_bytes': 4, ", "", "buffers[0].element_bytes: missing"},
        {"'bytes': 32", "'bytes': 32, 'element_bytes': 4", "buffers[1].element_bytes: not allowed with 'bytes'"},
        {"'bytes': 32", "'bytes': 32, 'row_divisor': 2", "buffers[1].row_divisor: not allowed with 'bytes'"},
        {"'access': 'write', 'element_bytes': 1", "'access': 'write', 'bytes': 1",
         "buffers[4].bytes: needs 'access': 'read'"},
        {", 'file': 't.raw'", "", "buffers[1].file: missing"},
        {"'seed': 9", "'file': 'x'", "buffers[0].file: is only allowed with"},
        {"'element_bytes': 12", "'element_bytes': 6", "buffers[2].fill: 6 bytes are not a multiple"},
        {"'fill': 'zero'", "'fill': 'noise'", "buffers[4].fill: not allowed for a buffer with 'access': 'write'"},
        {"{'name': 'a', 'int': -5}", "5", "constants[0]: must be an object"},
        {"{'name': 'a', 'int': -5}", "{'int': -5}", "constants[0].name: missing"},
        {"{'name': 'a', 'int': -5}", "{'name': 'b', 'int': -5}", "constants[1].name: a constant of this name"},
        {"{'name': 'a', 'int': -5}", "{'name': 'in', 'int': -5}", "constants[0].name: a buffer of this name"},
        {"{'name': 'a', 'int': -5}", "{'name': 'a'}", "constants[0]: must have 'name' and one of"},
        {"'int': -5", "'int': 3000000000", "constants[0].int: must be a whole number from"},
        {"'int': -5", "'int': 5, 'uint': 5", "constants[0]: must have 'name' and one of"},
        {"4294967295", "-1", "constants[1].uint: must be from 0 to 4294967295"},
        {"'float': 0.5", "'float': '0.5'", "constants[2].float: must be a number"},
        {"'halo_rows': 2", "'halo_rows': 0", "arguments[0].halo_rows: must be from 1 to 1024"},
        {"'halo_rows': 2", "'halo_rows': 2, 'local_bytes': 4",
         "arguments[0].halo_rows: not allowed with 'local_bytes'"},
        {"{'name': 'in', 'halo_rows': 2}", "{'name': 'in', 'local_bytes': 2}",
         "arguments[0].local_bytes: not allowed for the buffer 'in'"},
        {"{'name': 'in', 'halo_rows': 2}", "{'name': 'exit', 'halo_rows': 2}",
         "arguments[0].name: unknown buffer 'exit'"},
        {"'local_bytes': 256", "'local_bytes': 0", "arguments[4].local_bytes: must be from 1"},
    };
    refuse_changes(whole_text, bad, sizeof bad / sizeof *bad);
    refuse("{'kernel': 'k', 'columns': 16, 'rows': 16, 'buffers': [{'name': 'in', 'access': 'read', "
           "'element_bytes': 1}]}",
           "buffers: at least one must be written");
    refuse("[]", "");
    refuse("", "");
}

/* `count` copies of a text, separated by commas. */
static char *copies(const char *of, int count)
{
    char *text = calloc((size_t)count, strlen(of) + 2);
    for (int i = 0; i < count; i++) {
        strcat(text, i ? "," : "");
        strcat(text, of);
    }
    return text;
}

/* Refuse the passes of passes_text, preceded by `count` copies of one more pass. */
static void refuse_more_passes(const char *pass, int count, const char *about)
{
    char *all = copies(pass, count), *with = malloc(strlen(all) + 32);
    snprintf(with, strlen(all) + 32, "'passes': [%s, ", all);
    const struct change more = {"'passes': [", with, about};
    refuse_changes(passes_text, &more, 1);
    free(with);
    free(all);
}

Test(lab_bindings, more_than_there_is_room_for_is_refused)
{
    char *arguments = copies("{'name': 'in', 'halo_rows': 2}", COX_ARGUMENTS_MAX + 1);
    const struct change many = {"{'name': 'in', 'halo_rows': 2}", arguments,
                                "arguments: must have from 1 to 24 entries"};
    refuse_changes(whole_text, &many, 1);
    free(arguments);
    char *longest = malloc(LAB_BINDINGS_BYTES_MAX + 2);
    memset(longest, ' ', LAB_BINDINGS_BYTES_MAX + 1);
    longest[LAB_BINDINGS_BYTES_MAX + 1] = '\0';
    refuse(longest, "must have at most");
    free(longest);

    refuse_more_passes("{'kernel': 'k'}", LAB_PASSES_MAX, "passes: must have from 1 to 16 entries");
    refuse_more_passes("{'kernel': 'k'}", COX_PASSES_MAX, "passes: more than 8 are not fused");
    refuse_more_passes(
        "{'kernel': 'k'}, {'kernel': 'k', 'fused': true}, {'kernel': 'k', 'fused': true}, {'kernel': 'k', "
        "'fused': true}, {'kernel': 'k', 'fused': true}, {'kernel': 'k', 'fused': true}, {'kernel': 'k', "
        "'fused': true}, {'kernel': 'k', 'fused': true}, {'kernel': 'k', 'fused': true}",
        1, "passes: more than 8 consecutive passes are fused");
    char *of_one = copies("{'name': 'in', 'whole': true}", COX_ARGUMENTS_MAX), pass[2048];
    snprintf(pass, sizeof pass, "{'kernel': 'k', 'arguments': [%s]}", of_one);
    refuse_more_passes(pass, 3, "passes[2].arguments: more than 64 in all passes");
    free(of_one);
}

Test(lab_bindings, the_example_is_found_with_its_json_beside_it)
{
    struct lab_user_kernel *kernel;
    const char *source = COX_TEST_SOURCE_DIR "/examples/programs/lab/data/sharpen.cl";
    cr_assert(lab_user_kernel_load(source, NULL, &kernel, why, sizeof why), "%s", why);
    cr_assert_str_eq(kernel->name, "sharpen.cl");
    cr_assert_str_eq(kernel->folder, COX_TEST_SOURCE_DIR "/examples/programs/lab/data/");
    cr_assert_str_eq(kernel->bindings.passes[0].kernel, "sharpen");
    cr_assert_not_null(strstr(kernel->source, "kernel void sharpen"));
    lab_user_kernel_free(&kernel);
    cr_assert_null(kernel);
    cr_assert_not(lab_user_kernel_load(source, "/nowhere/b.json", &kernel, why, sizeof why));
    cr_assert_null(kernel);
    cr_assert_not_null(strstr(why, "/nowhere/b.json: No such file"), "%s", why);
    cr_assert_not(lab_user_kernel_load("/tmp", NULL, &kernel, why, sizeof why));
    cr_assert_not_null(strstr(why, "/tmp: not a regular file"), "%s", why);
}

/* --- Contents of buffers ------------------------------------------------------------------------------------------ */

enum { COLUMNS = 16, ROWS = 20, PITCH = 64 };

/* The pipeline as the library makes it, with rows of 64 bytes. */
static void pipeline_of(const struct lab_user_kernel *kernel, struct lab_user_pipeline *out)
{
    *out = (struct lab_user_pipeline){
        .kernel = kernel, .columns = COLUMNS, .rows = ROWS, .count = kernel->bindings.buffer_count};
    for (uint32_t b = 0; b < out->count; b++) {
        const struct lab_buffer *buffer = &kernel->bindings.buffers[b];
        out->of[b] = buffer;
        out->pitch_bytes[b] = PITCH;
        out->bytes[b] = buffer->element_bytes ? (size_t)PITCH * (ROWS / buffer->row_divisor) : (size_t)buffer->bytes;
    }
}

static struct lab_user_kernel kernel_of(const char *folder)
{
    struct lab_user_kernel kernel = {.folder = (char *)folder};
    char *text = changed_in(whole_text, "'element_bytes': 12", "'element_bytes': 4");
    cr_assert(parse(text, &kernel.bindings), "%s", why);
    free(text);
    return kernel;
}

Test(lab_bindings, buffers_are_filled_as_the_json_says)
{
    char folder[40] = "/tmp/cox-bindings-XXXXXX", path[64];
    static unsigned char data[PITCH * ROWS], again[PITCH * ROWS];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/t.raw", folder);
    strcat(folder, "/");
    const struct lab_user_kernel kernel = kernel_of(folder);
    struct lab_user_pipeline pipeline;
    pipeline_of(&kernel, &pipeline);

    cr_assert(lab_user_fill(&pipeline, 0, data, why, sizeof why), "%s", why);
    cr_assert(lab_user_fill(&pipeline, 0, again, why, sizeof why));
    cr_assert_eq(memcmp(data, again, sizeof data), 0, "noise is the same each time");
    cr_assert_neq(memcmp(data, data + PITCH, 4 * COLUMNS), 0);

    cr_assert(lab_user_fill(&pipeline, 2, data, why, sizeof why));
    for (uint32_t row = 0; row < ROWS / 2; row++)
        for (uint32_t x = 0; x < COLUMNS; x++) {
            float value;
            memcpy(&value, data + (size_t)row * PITCH + 4 * (size_t)x, sizeof value);
            cr_assert(value >= 0 && value < 1, "%g", (double)value);
        }

    cr_assert_not(lab_user_fill(&pipeline, 1, data, why, sizeof why));
    cr_assert_not_null(strstr(why, "t.raw: No such file"), "%s", why);
    static const size_t sizes[] = {31, 33, 32};
    for (int i = 0; i < 3; i++) {
        FILE *file = fopen(path, "w");
        for (size_t c = 0; c < sizes[i]; c++)
            fputc((int)(65 + c), file);
        fclose(file);
        cr_assert_eq(lab_user_fill(&pipeline, 1, data, why, sizeof why), sizes[i] == 32, "%zu: %s", sizes[i], why);
    }
    cr_assert_not_null(strstr(why, "must have 32 bytes for buffer \"table\", but has more than 32"), "%s", why);
    cr_assert(data[0] == 65 && data[31] == 96);

    cr_assert(lab_user_in_place(&pipeline));
    cr_assert(lab_user_fill(&pipeline, 3, data, why, sizeof why));
    memset(data, 7, sizeof data);
    lab_user_restore(&pipeline, 3, data);
    cr_assert(data[0] == 0 && data[PITCH * ROWS - 1] == 0, "as it was at first");
    lab_user_pipeline_free(&pipeline);
    remove(path);
    folder[strlen(folder) - 1] = '\0';
    rmdir(folder);
}

Test(lab_bindings, a_wrong_byte_is_found_and_padding_is_not_compared)
{
    static unsigned char data[PITCH * ROWS];
    const struct lab_user_kernel kernel = kernel_of("");
    struct lab_user_pipeline pipeline;
    pipeline_of(&kernel, &pipeline);
    enum { OUT = 4 };
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)i;
    cr_assert(lab_user_compare(&pipeline, OUT, data, why, sizeof why), "no correct result is known yet");
    cr_assert(lab_user_keep(&pipeline, OUT, data));
    cr_assert(lab_user_compare(&pipeline, OUT, data, why, sizeof why));
    data[3 * PITCH + COLUMNS] ^= 1; /* past the row's last column */
    cr_assert(lab_user_compare(&pipeline, OUT, data, why, sizeof why));
    data[3 * PITCH + 5] ^= 1;
    data[9 * PITCH] ^= 1;
    cr_assert_not(lab_user_compare(&pipeline, OUT, data, why, sizeof why));
    cr_assert_str_eq(why, "\"out\" differs in 2 of 20 rows, first in row 3, byte 5");
    lab_user_spoil(&pipeline, OUT, data);
    cr_assert_not(lab_user_compare(&pipeline, OUT, data, why, sizeof why));
    cr_assert_not_null(strstr(why, "in 20 of 20 rows, first in row 0, byte 0"), "%s", why);
    cr_assert(lab_user_compare(&pipeline, 0, data, why, sizeof why), "bindings that are only read are not compared");
    lab_user_pipeline_free(&pipeline);
}
