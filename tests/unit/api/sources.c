/* Kernels made of several texts, and kernels compiled ahead of time, on real devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/captured_log.h"
#include "support/folder.h"
#include "support/twice_spirv.h"
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { W = 40, H = 96 };

static cox_runtime *runtime;
static cox_session *session;
static uint32_t in[H][W], out[H][W];

/* A runtime whose cache is in the test's folder. */
static void open_runtime(void)
{
    static const char *const devices[] = {"cpu:2x1", NULL};
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    cox_status status = COX_E_NO_DEVICE;
    for (int i = 0; i < 2 && status; i++)
        status = cox_runtime_create(&(const struct cox_runtime_params){.devices = devices[i],
                                                                       .cache_dir = folder,
                                                                       .log_level = COX_LOG_INFO,
                                                                       .log = on_log},
                                    &runtime);
    skip_unless(status != COX_E_NO_PLATFORM && status != COX_E_NO_DEVICE, "there is no OpenCL device");
    cr_assert_eq(status, COX_OK, "%s", logged);
}

static void setup(void)
{
    make_folder();
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
            in[y][x] = (y * W + x) * 2654435761u;
    open_runtime();
}

static void teardown(void)
{
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    cr_assert(!runtime, "something was not released");
    remove_folder();
}

TestSuite(sources, .init = setup, .fini = teardown, .timeout = 600);

#define PARAMETERS "(global const uint *in, global uint *out, int columns, int rows)"
#define BODY(value)                                         \
    "{\n"                                                   \
    "    int x = get_global_id(0), y = get_global_id(1);\n" \
    "    if (x >= columns || y >= rows) return;\n"          \
    "    uint v = in[y * columns + x];\n"                   \
    "    out[y * columns + x] = " value ";\n"               \
    "}\n"

static cox_status create(const struct cox_pass *pass, const struct cox_source *headers,
                         const struct cox_source *libraries)
{
    logged[0] = '\0';
    cox_session_destroy(&session);
    const struct cox_pass passes[] = {*pass, {0}};
    return cox_session_create(runtime,
                              &(const struct cox_session_params){.columns = W,
                                                                 .rows = H,
                                                                 .passes = passes,
                                                                 .headers = headers,
                                                                 .libraries = libraries,
                                                                 .policy = "static",
                                                                 .no_profile = true},
                              &session);
}

/* Run a frame and check that it computed in * factor + add. */
static void check_frame(uint32_t factor, uint32_t add)
{
    memset(out, 0, sizeof out);
    cr_assert_eq(cox_session_run(session, &(const struct cox_frame){.data = COX_ARGS(in, out)}), COX_OK, "%s", logged);
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
            cr_assert_eq(out[y][x], in[y][x] * factor + add, "row %u, column %u: %u", y, x, out[y][x]);
}

static void expect_line(const char *line)
{
    cr_expect(strstr(logged, line), "'%s' is not in the log:\n%s", line, logged);
}

/* The files in the cache. */
static uint32_t kept(void)
{
    uint32_t count = 0;
    cox_session_destroy(&session); /* binaries are stored when a session ends */
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += strlen(entry->d_name) > 4 && strcmp(entry->d_name + strlen(entry->d_name) - 4, ".bin") == 0;
    if (dir)
        closedir(dir);
    return count;
}

/* ---- headers ---- */

static const char with_header[] = "#include \"scale.h\"\n#include \"sub/add.h\"\n"
                                  "kernel void scale" PARAMETERS BODY("v * SCALE + add()");

#define HEADERS(scale)                                                                                      \
    COX_LIST(struct cox_source, {"unused.h", "#error unused"}, {"scale.h", "#define SCALE " scale "\n"},    \
             {"sub/add.h", "#include \"scale.h\"\n#include \"deep.h\"\nuint add(void) { return DEEP; }\n"}, \
             {"deep.h", "#define DEEP 7u\n"})

Test(sources, a_source_finds_its_headers)
{
    const struct cox_pass pass = {.source = with_header};
    cr_assert_eq(create(&pass, HEADERS("3u"), NULL), COX_OK, "%s", logged);
    check_frame(3, 7);
}

/* In one runtime, whose sessions share programs, and in the next one, which finds the cache. */
Test(sources, another_header_makes_another_program)
{
    const struct cox_pass pass = {.source = with_header};
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(create(&pass, HEADERS("3u"), NULL), COX_OK, "%s", logged);
        check_frame(3, 7);
        cr_assert_eq(create(&pass, HEADERS("5u"), NULL), COX_OK, "%s", logged);
        check_frame(5, 7);
        open_runtime();
    }
}

/* Nor does the order of the headers. */
Test(sources, a_header_that_a_source_does_not_name_changes_nothing)
{
    const struct cox_pass pass = {.source = with_header};
    cr_assert_eq(create(&pass, HEADERS("3u"), NULL), COX_OK, "%s", logged);
    const uint32_t before = kept();
    cr_assert_gt(before, 0);
    struct cox_source other[6] = {{"other.h", "#define OTHER\n"}};
    for (int i = 0; i < 4; i++)
        other[4 - i] = HEADERS("3u")[i];
    cr_assert_eq(create(&pass, other, NULL), COX_OK, "%s", logged);
    cr_assert_eq(kept(), before);
}

Test(sources, errors_name_the_header_and_its_line)
{
    const struct cox_pass pass = {.source = with_header};
    cr_expect_eq(create(&pass, COX_LIST(struct cox_source, {"scale.h", "\n\n#error no scale\n"}, {"sub/add.h", "\n"}),
                        NULL),
                 COX_E_BUILD);
    expect_line("scale.h:3");
    cr_expect_eq(create(&pass, COX_LIST(struct cox_source, {"scale.h", "#define SCALE 1\n"}), NULL), COX_E_BUILD);
    expect_line("sub/add.h");
}

/* ---- libraries ---- */

static const char with_library[] = "uint change(uint v);\nkernel void scale" PARAMETERS BODY("change(v)");

Test(sources, a_library_is_linked)
{
    const struct cox_pass pass = {.source = with_library, .options = "-DSCALE=9u"};
    const struct cox_source *libraries = COX_LIST(struct cox_source,
                                                  {"change",
                                                   "#include \"two.h\"\nuint two(void);\n"
                                                   "uint change(uint v) { return v * SCALE + two() + TWO; }\n"},
                                                  {"two", "uint two(void) { return 2; }\n"});
    const struct cox_source *headers = COX_LIST(struct cox_source, {"two.h", "#define TWO 2\n"});
    const cox_status status = create(&pass, headers, libraries);
    if (status && strstr(logged, "Conflicting SPIR-V versions"))
        cr_skip_test("skipped, because the driver cannot link two programs: %s", logged);
    cr_assert_eq(status, COX_OK, "%s", logged);
    check_frame(9, 4);
}

Test(sources, a_library_may_define_the_kernel)
{
    const struct cox_pass pass = {.source = "kernel void scale" PARAMETERS ";"};
    cr_assert_eq(create(&pass, NULL,
                        COX_LIST(struct cox_source, {"scale.cl", "kernel void scale" PARAMETERS BODY("v * 6")})),
                 COX_OK, "%s", logged);
    check_frame(6, 0);
}

Test(sources, a_library_that_does_not_compile_is_named)
{
    const struct cox_pass pass = {.source = with_library};
    cr_expect_eq(create(&pass, NULL, COX_LIST(struct cox_source, {"change.cl", "uint change(uint v)\n{ return w; }"})),
                 COX_E_BUILD);
    expect_line("library change.cl does not compile");
    expect_line(":2:");
}

Test(sources, what_does_not_link_is_an_error)
{
    static const char twice[] = "uint change(uint v) { return v; }\nkernel void scale" PARAMETERS BODY("change(v)");
    static const char line[] = "the sources do not link: a function is missing, or defined twice";
    const struct cox_source *libraries = COX_LIST(struct cox_source, {"change", "uint change(uint v) { return 1; }"});
    const struct cox_pass missing = {.source = with_library}, clash = {.source = twice};
    cr_expect_eq(create(&missing, NULL, COX_LIST(struct cox_source, {"empty", "constant int nothing = 0;"})),
                 COX_E_BUILD);
    expect_line(line);
    cr_expect_eq(create(&clash, NULL, libraries), COX_E_BUILD);
    expect_line(line);
}

Test(sources, names_are_checked)
{
    static const struct {
        struct cox_source list[3];
        const char *line;
    } cases[] = {
        {{{"", ""}}, "header '': the name is not allowed; allowed: a relative path without '..'"},
        {{{"/a.h", ""}}, "header '/a.h': the name is not allowed"},
        {{{"../a.h", ""}}, "header '../a.h': the name is not allowed"},
        {{{"a/../../b.h", ""}}, "header 'a/../../b.h': the name is not allowed"},
        {{{"a/..", ""}}, "header 'a/..': the name is not allowed"},
        {{{"a.h", NULL}}, "header a.h has no text"},
        {{{"a.h", ""}, {"a.h", ""}}, "header a.h is listed twice"},
    };
    const struct cox_pass pass = {.source = with_library};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_expect_eq(create(&pass, cases[i].list, NULL), COX_E_INVALID);
        expect_line(cases[i].line);
        logged[0] = '\0';
        cr_expect_eq(cox_compile(runtime,
                                 &(const struct cox_compile_params){.source = with_library, .headers = cases[i].list}),
                     COX_E_INVALID);
        expect_line(cases[i].line);
    }
    cr_expect_eq(create(&pass, NULL, COX_LIST(struct cox_source, {"l", "int a;"}, {"l", "int b;"})), COX_E_INVALID);
    expect_line("library l is listed twice");
}

/* ---- ahead of time ---- */

static const char plain[] = "kernel void scale" PARAMETERS BODY("v * SCALE");

Test(sources, a_session_finds_what_was_compiled_ahead)
{
    static const struct {
        const char *source, *options;
        struct cox_source headers[4], libraries[2];
    } cases[] = {
        {plain, "-DSCALE=4", {{0}}, {{0}}},
        {with_header, NULL, {{"scale.h", "#define SCALE 4"}, {"sub/add.h", "uint add(void) { return 0; }"}}, {{0}}},
        {with_library, NULL, {{"other.h", "#error"}}, {{"change", "uint change(uint v) { return v * 4; }"}}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_runtime();
        const uint32_t before = kept();
        cr_assert_eq(cox_compile(runtime, &(const struct cox_compile_params){.source = cases[i].source,
                                                                             .options = cases[i].options,
                                                                             .headers = cases[i].headers,
                                                                             .libraries = cases[i].libraries}),
                     COX_OK, "%s", logged);
        const uint32_t after = kept();
        cr_assert_gt(after, before, "nothing was kept");
        open_runtime();
        const struct cox_pass pass = {.source = cases[i].source, .options = cases[i].options};
        cr_assert_eq(create(&pass, cases[i].headers, cases[i].libraries), COX_OK, "%s", logged);
        check_frame(4, 0);
        cr_expect_eq(kept(), after, "the session compiled something else");
    }
}

Test(sources, what_compiles_on_no_device_is_an_error)
{
    logged[0] = '\0';
    const char *output = in_folder("code");
    cr_expect_eq(cox_compile(runtime, &(const struct cox_compile_params){.source = "kernel void f(", .output = output}),
                 COX_E_BUILD);
    expect_line("is left out: a kernel does not compile");
    cr_expect(access(output, F_OK) != 0, "a file was left");
    cr_expect_eq(cox_compile(runtime, &(const struct cox_compile_params){.source = plain,
                                                                         .options = "-DSCALE=1",
                                                                         .output = in_folder("no/such")}),
                 COX_E_SYSTEM);
    expect_line("no/such: No such file or directory");
    cr_expect_eq(cox_compile(runtime, &(const struct cox_compile_params){.options = "-DSCALE=1"}), COX_E_INVALID);
    expect_line("cox_compile: source is NULL");
}

/* ---- code ---- */

static char *code;
static size_t code_bytes;

/* Compile `plain` for SCALE 4, and read the file. */
static void compile_code(void)
{
    const char *path = in_folder("code");
    cr_assert_eq(cox_compile(runtime, &(const struct cox_compile_params){.source = plain,
                                                                         .options = "-DSCALE=4",
                                                                         .output = path}),
                 COX_OK, "%s", logged);
    FILE *file = fopen(path, "rb");
    cr_assert(file);
    fseek(file, 0, SEEK_END);
    code_bytes = (size_t)ftell(file);
    rewind(file);
    code = malloc(code_bytes);
    cr_assert(code);
    cr_assert_eq(fread(code, 1, code_bytes, file), code_bytes);
    fclose(file);
    shell("rm -f *.bin");
    open_runtime();
}

static const char declaration[] = "kernel void scale" PARAMETERS ";";

Test(sources, a_kernel_may_come_as_code)
{
    compile_code();
    const uint32_t before = kept();
    const struct cox_pass declared = {.source = declaration, .code = code, .code_bytes = code_bytes};
    cr_assert_eq(create(&declared, NULL, NULL), COX_OK, "%s", logged);
    check_frame(4, 0);
    const struct cox_pass full = {.source = plain, .options = "-DSCALE=4", .code = code, .code_bytes = code_bytes};
    cr_assert_eq(create(&full, NULL, NULL), COX_OK, "%s", logged);
    check_frame(4, 0);
    cr_expect_eq(kept(), before, "a source was compiled");
    free(code);
}

Test(sources, code_of_another_source_is_not_used)
{
    compile_code();
    const struct cox_pass pass = {.source = plain, .options = "-DSCALE=5", .code = code, .code_bytes = code_bytes};
    cr_assert_eq(create(&pass, NULL, NULL), COX_OK, "%s", logged);
    expect_line("the code was compiled from another source, or with other options, headers or libraries");
    check_frame(5, 0);
    free(code);
}

/* Nothing of what is damaged reaches the driver: PoCL does not survive some binaries. */
Test(sources, damaged_code_is_not_used)
{
    compile_code();
    const struct cox_pass full = {.source = plain, .options = "-DSCALE=4", .code = code, .code_bytes = code_bytes};
    for (size_t at = 8; at < code_bytes / 2; at = at * 3 / 2) { /* behind the first magic number */
        code[at] ^= 1;
        cr_assert_eq(create(&full, NULL, NULL), COX_OK, "byte %zu: %s", at, logged);
        cr_expect(strstr(logged, "the compiled code is damaged") || strstr(logged, "for other devices, drivers"),
                  "byte %zu: %s", at, logged);
        expect_line("its source is compiled");
        code[at] ^= 1;
    }
    check_frame(4, 0);
    struct cox_pass cut = full;
    for (cut.code_bytes = code_bytes - 1; cut.code_bytes > 100; cut.code_bytes /= 2)
        cr_assert_eq(create(&cut, NULL, NULL), COX_OK, "%zu bytes: %s", cut.code_bytes, logged);
    check_frame(4, 0);
    const struct cox_pass declared = {.source = declaration, .code = code, .code_bytes = 100};
    cr_expect_eq(create(&declared, NULL, NULL), COX_E_UNSUPPORTED);
    expect_line("the compiled code is damaged; this variant is left out");
    expect_line("kernel scale: no device takes its code, and `source` only declares it");
    free(code);
}

Test(sources, code_of_another_kind_is_refused)
{
    static const char bad[64] = "\177ELF";
    const struct cox_pass cases[] = {
        {.source = declaration, .code = bad, .code_bytes = sizeof bad},
        {.source = declaration, .code_bytes = 8},
        {.source = declaration, .code = twice_spirv, .code_bytes = sizeof twice_spirv - 1},
        {.source = plain, .variants = COX_LIST(struct cox_pass, {.code = bad, .code_bytes = sizeof bad})},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_expect_eq(create(&cases[i], NULL, NULL), COX_E_INVALID);
        expect_line("is neither SPIR-V nor the content of a file that cox_compile wrote");
    }
}

/* ---- SPIR-V ---- */

Test(sources, spirv_runs_on_devices_that_take_it)
{
    const struct cox_pass pass = {
        .source = "kernel void twice" PARAMETERS ";", .code = twice_spirv, .code_bytes = sizeof twice_spirv};
    const cox_status status = create(&pass, NULL, NULL);
    if (status == COX_E_UNSUPPORTED && strstr(logged, "it takes no SPIR-V"))
        skip_unless(false, "no device here takes SPIR-V");
    cr_assert_eq(status, COX_OK, "%s", logged);
    check_frame(2, 1);
}

/* Devices that take no SPIR-V use the next variant, then the pass. */
Test(sources, a_variant_of_spirv_may_have_others_behind_it)
{
    static const char source[] = "kernel void twice" PARAMETERS BODY("2 * v + 1");
    const struct cox_pass spirv = {.code = twice_spirv, .code_bytes = sizeof twice_spirv};
    const struct cox_pass one = {.source = source, .variants = COX_LIST(struct cox_pass, spirv)};
    cr_assert_eq(create(&one, NULL, NULL), COX_OK, "%s", logged);
    check_frame(2, 1);
    const struct cox_pass two = {.source = "kernel void twice" PARAMETERS ";",
                                 .variants = COX_LIST(struct cox_pass, spirv, {.source = source})};
    cr_assert_eq(create(&two, NULL, NULL), COX_OK, "%s", logged);
    check_frame(2, 1);
}
