/* Kernels of the user's own in cox-lab: what their JSON may say, what their buffers hold, and how what they wrote is
 * compared.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
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
    "'item_columns': 2, 'item_rows': 3, 'bindings': [{'name': 'in', 'access': 'read', 'contract': 'halo', "
    "'halo_rows': 2, 'element_bytes': 4, 'fill': 'noise', 'seed': 9},{'name': 'table', 'access': 'read', "
    "'contract': 'whole', 'bytes': 32, 'fill': 'file', 'file': 't.raw'},{'name': 'light', 'access': 'read', "
    "'contract': 'rows', 'element_bytes': 12, 'row_divisor': 2, 'fill': 'noise-float'},{'name': 'sum', "
    "'access': 'read-write', 'contract': 'rows', 'element_bytes': 2},{'name': 'out', 'access': 'write', "
    "'contract': 'rows', 'element_bytes': 1, 'fill': 'zero'}],'arguments': [{'buffer': 'out'}, {'origin': 'in'}, "
    "'columns', 'rows', 'first-row', 'frame-rows',{'pitch': 'in'}, {'pitch_bytes': 'light'}, {'int': -5}, "
    "{'uint': 4294967295}, {'float': 0.5},{'local_bytes': 256}]}";

/* ' stands for " in the text. */
static bool parse(const char *text, struct lab_bindings *out)
{
    char *json = lab_replace(strdup(text), '\'', '"');
    why[0] = '\0';
    const bool parsed = lab_bindings_parse(json, strlen(json), "f.json", out, why, sizeof why);
    free(json);
    return parsed;
}

/* ' stands for " in both. */
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
    const struct lab_stage *stage = &b.stages[0];
    cr_assert_str_eq(stage->kernel, "k");
    cr_assert_str_eq(b.options, "-D N=3");
    cr_assert(b.columns == 640 && b.rows == 480 && stage->local_columns == 16 && stage->local_rows == 4);
    cr_assert(stage->item_columns == 2 && stage->item_rows == 3 && b.binding_count == 5 && b.argument_count == 12);
    cr_assert(b.pass_count == 0 && b.stage_count == 1 && stage->argument_count == 12);
    const struct lab_binding *in = &b.bindings[0], *table = &b.bindings[1], *light = &b.bindings[2];
    cr_assert(in->touch.row_access == COX__HALO && in->touch.halo_rows == 2 && in->touch.access == COX__READ);
    cr_assert(in->element_bytes == 4 && in->fill == LAB_FILL_NOISE && in->seed == 9 && in->touch.row_divisor == 1);
    cr_assert(table->touch.row_access == COX__WHOLE && table->bytes == 32 && table->fill == LAB_FILL_FILE);
    cr_assert_str_eq(table->file, "t.raw");
    cr_assert(light->touch.row_divisor == 2 && light->fill == LAB_FILL_FLOATS && light->seed == 1);
    cr_assert(b.bindings[3].touch.access == COX__READ_WRITE && b.bindings[4].touch.access == COX__WRITE);
    static const enum lab_argument_kind kinds[] = {
        LAB_ARGUMENT_BUFFER,    LAB_ARGUMENT_ORIGIN,     LAB_ARGUMENT_COLUMNS, LAB_ARGUMENT_ROWS,
        LAB_ARGUMENT_FIRST_ROW, LAB_ARGUMENT_FRAME_ROWS, LAB_ARGUMENT_PITCH,   LAB_ARGUMENT_PITCH_BYTES,
        LAB_ARGUMENT_INT,       LAB_ARGUMENT_UINT,       LAB_ARGUMENT_FLOAT,   LAB_ARGUMENT_LOCAL};
    for (uint32_t a = 0; a < 12; a++)
        cr_assert_eq(b.arguments[a].kind, kinds[a], "%u", a);
    cr_assert(b.arguments[0].binding == 4 && b.arguments[7].binding == 2 && b.arguments[8].value.i == -5);
    cr_assert(b.arguments[9].value.u == UINT32_MAX && b.arguments[10].value.f == 0.5f &&
              b.arguments[11].value.u == 256);
}

static const char passes_text[] =
    "{'columns': 64, 'rows': 48, 'bindings': [{'name': 'in', 'access': 'read', 'contract': 'rows', "
    "'element_bytes': 4},{'name': 'middle', 'access': 'read-write', 'contract': 'halo', 'halo_rows': 1, "
    "'element_bytes': 2, 'scratch': true},{'name': 'turned', 'access': 'write', 'contract': 'rows', "
    "'element_bytes': 2, 'scratch': true, 'transposed': true},{'name': 'table', 'access': 'read', "
    "'contract': 'whole', 'bytes': 8},{'name': 'out', 'access': 'write', 'contract': 'rows', "
    "'element_bytes': 1}],'passes': [{'name': 'turn', 'transposed': true, 'uses': [{'binding': 'in', "
    "'access': 'read', 'contract': 'whole'},{'binding': 'turned', 'access': 'write', "
    "'contract': 'rows'}],'stages': [{'kernel': 'a', 'arguments': [{'buffer': 'turned'}, {'pitch': 'in'}]}]},"
    "{'uses': [{'binding': 'turned', 'access': 'read', 'contract': 'whole'},{'binding': 'middle', "
    "'access': 'read-write', 'contract': 'halo', 'halo_rows': 2},{'binding': 'out', 'access': 'write', "
    "'contract': 'rows', 'row_divisor': 2}],'stages': [{'kernel': 'b', 'local_columns': 32, "
    "'arguments': ['rows']},{'kernel': 'c', 'item_rows': 2, 'arguments': [{'origin': 'middle'}, {'int': 7}, "
    "'columns']}]}]}";

/* A text with its first `from` made `to`. */
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
    cr_assert(b.pass_count == 2 && b.stage_count == 3 && b.argument_count == 6 && b.binding_count == 5);
    cr_assert(b.bindings[1].scratch && b.bindings[2].transposed && !b.bindings[4].scratch && !b.bindings[4].transposed);
    const struct lab_pass *turn = &b.passes[0], *last = &b.passes[1];
    cr_assert_str_eq(turn->name, "turn");
    cr_assert(turn->transposed && turn->use_count == 2 && turn->first_stage == 0 && turn->stage_count == 1);
    cr_assert(turn->uses[0].binding == 0 && turn->uses[0].row_access == COX__WHOLE);
    cr_assert(last->name[0] == '\0' && !last->transposed && last->use_count == 3 && last->stage_count == 2);
    cr_assert(last->uses[1].halo_rows == 2 && last->uses[1].access == COX__READ_WRITE);
    cr_assert(last->uses[2].row_divisor == 2);
    const struct lab_stage *c = &b.stages[2];
    cr_assert_str_eq(c->kernel, "c");
    cr_assert(c->first_argument == 3 && c->argument_count == 3 && c->item_rows == 2 && c->local_columns == 1);
    cr_assert(b.arguments[3].binding == 1 && b.arguments[4].value.i == 7);
}

Test(lab_bindings, refuses_passes_with_the_place)
{
    static const struct change bad[] = {
        {"'columns': 64", "'kernel': 'k', 'columns': 64", "kernel: stands in a stage of 'passes'"},
        {"'passes': [", "'passes': [{}, ", "passes[0].uses: is missing"},
        {"'name': 'turn'", "'title': 'turn'", "passes[0]: the key 'title' is not known here"},
        {"'transposed': true, 'uses'", "'transposed': 1, 'uses'", "passes[0].transposed: must be true or"},
        {"{'binding': 'in'", "{'binding': 'inn'", "passes[0].uses[0].binding: there is no binding 'inn'"},
        {"{'binding': 'in', 'access': 'read'", "{'binding': 'in'", "passes[0].uses[0].access: is missing"},
        {"{'binding': 'in', 'access': 'read', 'contract': 'whole'",
         "{'binding': 'in', 'access': 'read', 'contract': 'rows'",
         "passes[0].uses[0].contract: must be whole: 'in' is not transposed, and the pass is"},
        {"{'binding': 'in', 'access': 'read', 'contract': 'whole'",
         "{'binding': 'table', 'access': 'read', 'contract': 'rows'",
         "passes[0].uses[0].contract: 'table' is whole: it has no rows"},
        {"{'binding': 'turned', 'access': 'read'", "{'binding': 'in', 'access': 'write'",
         "passes[1].uses[0].access: must be read with the contract whole"},
        {"{'binding': 'out'", "{'binding': 'in'", "passes[1].uses[2].access: 'in' is only read"},
        {"{'binding': 'out'", "{'binding': 'middle'", "passes[1].uses[2].binding: 'middle' is used twice"},
        {"'contract': 'halo', 'halo_rows': 2}", "'contract': 'halo'}", "passes[1].uses[1].halo_rows: is missing"},
        {"'row_divisor': 2", "'row_divisor': 17", "passes[1].uses[2].row_divisor: must be from 1 to 16"},
        {"{'buffer': 'turned'}", "{'buffer': 'out'}",
         "passes[0].stages[0].arguments[0].buffer: 'out' is not among the pass's uses"},
        {"'arguments': ['rows']", "'arguments': ['lines']", "passes[1].stages[0].arguments[0]: must be columns"},
        {"'kernel': 'c', ", "", "passes[1].stages[1].kernel: is missing"},
        {"'local_columns': 32", "'local_columns': 0", "passes[1].stages[0].local_columns: must be from 1 to"},
        {"'scratch': true}", "'scratch': true, 'fill': 'zero'}", "bindings[1].fill: scratch is not filled"},
        {" 'scratch': true}", "'scratch': false}", "bindings[1].access: must be read with the contract halo"},
        {"'uses': [{'binding': 'turned', 'access': 'read'", "'use': [{'binding': 'turned', 'access': 'read'",
         "passes[1]: the key 'use' is not known here"},
        {"'bytes': 8", "'bytes': 8, 'scratch': true", "bindings[3].scratch: goes with the contracts rows and halo"},
        {"'bytes': 8", "'bytes': 8, 'transposed': true", "bindings[3].transposed: a whole buffer has no rows"},
        {"'element_bytes': 1}", "'element_bytes': 1, 'scratch': true}", "bindings: nothing is written"},
    };
    refuse_changes(passes_text, bad, sizeof bad / sizeof *bad);
}

Test(lab_bindings, refuses_with_the_place)
{
    static const struct change bad[] = {
        {"'kernel': 'k', ", "", "f.json: kernel: is missing"},
        {"'kernel': 'k'", "'kernel': ''", "kernel: must have from 1 to 63 bytes"},
        {"'kernel': 'k'", "'kernel': 'k', 'kernel': 'k'", "f.json:1:"},
        {"'kernel'", "'colonel': 1, 'kernel'", "the key 'colonel' is not known here"},
        {"640", "15", "columns: must be from 16 to 16384, not 15"},
        {"480", "480.5", "rows: must be a whole number"},
        {"'local_columns': 16", "'local_columns': 0", "local_columns: must be from 1 to 1024"},
        {"'name': 'in', ", "", "bindings[0].name: is missing"},
        {"'name': 'table'", "'name': 'in'", "bindings[1].name: there is a binding of that name already"},
        {"'read'", "'look'", "bindings[0].access: must be read, write or read-write, not 'look'"},
        {"'halo'", "'reduce'", "bindings[0].contract: must be rows, halo or whole, not 'reduce'"},
        {"'halo_rows': 2, ", "", "bindings[0].halo_rows: is missing"},
        {"'contract': 'halo'", "'contract': 'rows'", "bindings[0].halo_rows: goes with the contract halo"},
        {"'access': 'read'", "'access': 'write'", "bindings[0].access: must be read with the contract halo"},
        {"'element_bytes': 4", "'element_bytes': 257", "bindings[0].element_bytes: must be from 1 to 256"},
        {"'bytes': 32", "'element_bytes': 4", "bindings[1].bytes: is missing"},
        {"'bytes': 32", "'bytes': 32, 'element_bytes': 4", "bindings[1].element_bytes: a whole buffer has"},
        {", 'file': 't.raw'", "", "bindings[1].file: is missing"},
        {"'seed': 9", "'file': 'x'", "bindings[0].file: goes with"},
        {"'element_bytes': 12", "'element_bytes': 6", "bindings[2].fill: floats do not fill 6 bytes"},
        {"'fill': 'zero'", "'fill': 'noise'", "bindings[4].fill: what is written only is not filled"},
        {"{'buffer': 'out'}", "'size'", "arguments[0]: must be columns, rows, first-row or frame-rows"},
        {"{'buffer': 'out'}", "5", "arguments[0]: must be an object"},
        {"{'buffer': 'out'}", "{}", "arguments[0]: must have one key"},
        {"{'buffer': 'out'}", "{'buffer': 'exit'}", "arguments[0].buffer: there is no binding 'exit'"},
        {"{'origin': 'in'}", "{'origin': 'table'}", "arguments[1].origin: 'table' is whole"},
        {"{'pitch': 'in'}", "{'pitch': 'light'}", "arguments[6].pitch: a row may not be whole elements of 12"},
        {"{'int': -5}", "{'int': 3000000000}", "arguments[8].int: must be a whole number from"},
        {"{'int': -5}", "{'int': 5, 'uint': 5}", "arguments[8]: must have one key"},
        {"'element_bytes': 1,", "'element_bytes': 1, 'transposed': true,", "passes: is missing: a binding is"},
        {"4294967295", "-1", "arguments[9].uint: must be from 0 to 4294967295"},
        {"{'float': 0.5}", "{'float': '0.5'}", "arguments[10].float: must be a number"},
        {"{'local_bytes': 256}", "{'local_bytes': 0}", "arguments[11].local_bytes: must be from 1"},
    };
    refuse_changes(whole_text, bad, sizeof bad / sizeof *bad);
    refuse("{'kernel': 'k', 'columns': 16, 'rows': 16, 'bindings': [{'name': 'in', 'access': 'read', 'contract': "
           "'rows', 'element_bytes': 1}], 'arguments': ['rows']}",
           "bindings: nothing is written");
    refuse("[]", "");
    refuse("", "");
}

/* `count` copies of a text, with commas between. */
static char *copies(const char *of, int count)
{
    char *text = calloc((size_t)count, strlen(of) + 2);
    for (int i = 0; i < count; i++) {
        strcat(text, i ? "," : "");
        strcat(text, of);
    }
    return text;
}

Test(lab_bindings, more_than_there_is_room_for_is_refused)
{
    char *rows = copies("'rows'", COX_ARGUMENTS_MAX + 1);
    const struct change many = {"{'buffer': 'out'}", rows, "arguments: must have from 1 to 24 entries"};
    refuse_changes(whole_text, &many, 1);
    free(rows);
    char *longest = malloc(LAB_BINDINGS_BYTES_MAX + 2);
    memset(longest, ' ', LAB_BINDINGS_BYTES_MAX + 1);
    longest[LAB_BINDINGS_BYTES_MAX + 1] = '\0';
    refuse(longest, "is longer than");
    free(longest);

    /* Of all stages together: in the last of three passes. */
    for (int what = 0; what < 2; what++) {
        char *arguments = copies("'rows'", what ? COX_ARGUMENTS_MAX : 1), stage[1024], passes[32 << 10];
        snprintf(stage, sizeof stage, "{'kernel': 'k', 'arguments': [%s]}", arguments);
        char *stages = copies(stage, what ? 2 : COX_FUSED_MAX);
        snprintf(passes, sizeof passes,
                 "{'uses': [{'binding': 'in', 'access': 'read', 'contract': 'rows'}], 'stages': [%s]}", stages);
        char *all = copies(passes, 3), *with = malloc(strlen(all) + 32);
        snprintf(with, strlen(all) + 32, "'passes': [%s, ", all);
        const struct change more = {"'passes': [", with,
                                    what ? "passes[2].stages[1].arguments: there are more than 128 of all stages"
                                         : "passes[2].stages[0]: there are more than 16 stages"};
        refuse_changes(passes_text, &more, 1);
        char *const texts[] = {arguments, stages, all, with};
        for (int i = 0; i < 4; i++)
            free(texts[i]);
    }
}

Test(lab_bindings, the_example_is_found_with_its_json_beside_it)
{
    struct lab_user_kernel *kernel;
    const char *source = COX_TEST_SOURCE_DIR "/examples/programs/lab/data/sharpen.cl";
    cr_assert(lab_user_kernel_load(source, NULL, &kernel, why, sizeof why), "%s", why);
    cr_assert_str_eq(kernel->name, "sharpen.cl");
    cr_assert_str_eq(kernel->folder, COX_TEST_SOURCE_DIR "/examples/programs/lab/data/");
    cr_assert_str_eq(kernel->bindings.stages[0].kernel, "sharpen");
    cr_assert_not_null(strstr(kernel->source, "kernel void sharpen"));
    lab_user_kernel_free(&kernel);
    cr_assert_null(kernel);
    cr_assert_not(lab_user_kernel_load(source, "/nowhere/b.json", &kernel, why, sizeof why));
    cr_assert_null(kernel);
    cr_assert_not_null(strstr(why, "/nowhere/b.json: No such file"), "%s", why);
    cr_assert_not(lab_user_kernel_load("/tmp", NULL, &kernel, why, sizeof why));
    cr_assert_not_null(strstr(why, "/tmp: is no regular file"), "%s", why);
}

/* --- What buffers hold -------------------------------------------------------------------------------------------- */

enum { COLUMNS = 16, ROWS = 20, PITCH = 64 };

/* As the library would have it, with rows of 64 bytes. */
static void pipeline_of(const struct lab_user_kernel *kernel, struct lab_user_pipeline *out)
{
    *out = (struct lab_user_pipeline){.kernel = kernel, .columns = COLUMNS, .rows = ROWS};
    for (uint32_t b = 0; b < kernel->bindings.binding_count; b++) {
        const struct lab_binding *binding = &kernel->bindings.bindings[b];
        bool whole = binding->touch.row_access == COX__WHOLE;
        out->bindings[b] = (struct cox__binding){
            .name = binding->name, .access = binding->touch.access, .pitch_bytes = PITCH};
        out->bytes[b] = whole ? (size_t)binding->bytes : (size_t)PITCH * (ROWS / binding->touch.row_divisor);
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
    cr_assert_not_null(strstr(why, "must have the 32 bytes of \"table\", not more than 32"), "%s", why);
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
    cr_assert(lab_user_compare(&pipeline, OUT, data, why, sizeof why), "nothing is known to be right yet");
    cr_assert(lab_user_keep(&pipeline, OUT, data));
    cr_assert(lab_user_compare(&pipeline, OUT, data, why, sizeof why));
    data[3 * PITCH + COLUMNS] ^= 1; /* beyond the row's last column */
    cr_assert(lab_user_compare(&pipeline, OUT, data, why, sizeof why));
    data[3 * PITCH + 5] ^= 1;
    data[9 * PITCH] ^= 1;
    cr_assert_not(lab_user_compare(&pipeline, OUT, data, why, sizeof why));
    cr_assert_str_eq(why, "\"out\" differs in 2 of 20 rows, first in row 3, byte 5");
    lab_user_spoil(&pipeline, OUT, data);
    cr_assert_not(lab_user_compare(&pipeline, OUT, data, why, sizeof why));
    cr_assert_not_null(strstr(why, "in 20 of 20 rows, first in row 0, byte 0"), "%s", why);
    cr_assert(lab_user_compare(&pipeline, 0, data, why, sizeof why), "what is only read is not compared");
    lab_user_pipeline_free(&pipeline);
}
