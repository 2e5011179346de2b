/* Sessions whose kernels take other arguments than the session gives. The driver knows, and macros hide it from the
 * library's reader of signatures.
 * SPDX-License-Identifier: Apache-2.0 */
#include "setups.h"
#include "base/spec.h"
#include "support/folder.h"

enum { W = 64, H = 16 };

static void init(void)
{
    make_folder();
    with_llvmpipe();
}

static void fini(void)
{
    close_setup();
    remove_folder();
}

TestSuite(kernel_arguments, .init = init, .fini = fini, .timeout = 600);

/* A kernel of the given parameters. */
#define KERNEL(parameters) "kernel void f(" parameters ") {}\n"

/* What a macro makes of a signature that reads well. */
#define HIDDEN(define, parameters) "#define " define "\n" KERNEL(parameters)

static const struct cox_session_params *with_field(const char *source, size_t bytes)
{
    static struct cox_session_params params;
    static struct cox_pass passes[2];
    static struct cox_field fields[2];
    passes[0] = (struct cox_pass){.source = source};
    fields[0] = (struct cox_field){"s", 0, bytes};
    params = (struct cox_session_params){
        .columns = W, .rows = H, .passes = passes, .fields = fields, .constants_bytes = bytes};
    return &params;
}

/* A kernel that is refused, with a field `s` of these bytes. */
struct wrong {
    const char *source;
    size_t bytes;
    const char *line;
};

static const struct wrong mistakes[] = {
    {HIDDEN("float int", "global uint *out, float s"), 4,
     "kernel f, argument 1: the source says 'float s', but it compiles to 'int s'"},
    {HIDDEN("s gain", "global uint *out, float s"), 4,
     "kernel f, argument 1: the source says 'float s', but it compiles to 'float gain'"},
    {"#ifdef NEVER\n" KERNEL("global uint *out, float s") "#else\n" KERNEL("global uint *out, int s") "#endif\n", 4,
     "kernel f, argument 1: the source says 'float s', but it compiles to 'int s'"},
    {"#ifdef NEVER\n" KERNEL("global uint *out, float s") "#else\n" KERNEL("float s, global uint *out") "#endif\n", 4,
     "kernel f, argument 0 (out): the session gives a buffer, but the kernel takes 'float'"},
    {HIDDEN("uint uchar", "global uint *out, float s"), 4,
     "kernel f, argument 0: the source says 'uint out', but it compiles to 'uchar out'"},
    {HIDDEN("real float16", "global uint *out, real s"), 8,
     "kernel f, argument 1 (s): the session gives a value of 8 bytes, but the kernel takes 'float16'"},
    {HIDDEN("rows_type float", "global uint *out, int rows, float s"), 8,
     "kernel f: 'float s' has 4 bytes, but the field of that name has 8"},
    {HIDDEN("global local", "global uint *out, float s"), 4,
     "kernel f, argument 0 (out): the session gives a buffer, but the kernel takes 'local uint*'"},
    {HIDDEN("const", "global const uint *in, global uint *out, float s"), 4,
     "kernel f, argument 0 (in): the source says that it is read, but it compiles to a pointer to non-const"},
    {"struct s { int a, b, c; };\n" KERNEL("global uint *out, struct s s"), 16,
     "kernel f, argument 1 (s): the session gives a value of 16 bytes, but 'struct s' has 12"},
    {"typedef float real;\n" KERNEL("global uint *out, real s"), 8,
     "kernel f, argument 1 (s): the session gives a value of 8 bytes, but 'real' has 4"},
    {HIDDEN("hidden local", "global uint *out, float s, hidden int rows"), 4, "kernel f: cannot read parameter 3"},
};

Test(kernel_arguments, one_line_says_what_does_not_fit)
{
    for (enum setup setup = SETUP_CPU; setup <= SETUP_LLVMPIPE; setup += SETUP_LLVMPIPE) {
        if (!open_setup(setup))
            continue;
        for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
            refuse(COX_E_INVALID, mistakes[i].line, with_field(mistakes[i].source, mistakes[i].bytes));
    }
}

/* ---- kinds that only a spec can give ---- */

enum given { A_BUFFER, AN_IMAGE, LOCAL, AN_INT, A_VALUE, GIVEN };

static const struct cox__arg given[GIVEN] = {COX__ARG_BUFFER(0),
                                             COX__ARG_IMAGE(0, 0x10B0, 0x10DC, W),
                                             COX__ARG_LOCAL(64),
                                             COX__ARG_ROWS,
                                             {COX__ARG_KIND_PARAMS, 0, 0, 8}};

static cox_status create_spec(const char *source, enum given what)
{
    const struct cox__binding bindings[] = {{.name = "in", .pitch_bytes = 4 * W},
                                            {.name = "out", .access = COX__WRITE, .pitch_bytes = 4 * W}};
    const struct cox__variant variant = {.source = source, .local_columns = 16};
    const struct cox__arg args[] = {given[what], COX__ARG_BUFFER(1)};
    const struct cox__stage stage = {
        .kernel = "f", .columns = W, .variant_count = 1, .variants = &variant, .arg_count = 2, .args = args};
    logged[0] = '\0';
    return cox__session_create(runtime,
                               &(const struct cox__session_spec){.rows = H,
                                                                 .binding_count = 2,
                                                                 .bindings = bindings,
                                                                 .stage_count = 1,
                                                                 .stages = &stage,
                                                                 .params_bytes = 8},
                               &session);
}

static void refuse_spec(const char *parameter, enum given what, const char *gives, const char *takes)
{
    char source[256], line[256];
    snprintf(source, sizeof source, KERNEL("%s a, global uint *out"), parameter);
    snprintf(line, sizeof line, "kernel f, argument 0 (a): the session gives %s, but the kernel takes '%s'", gives,
             takes);
    cr_expect_eq(create_spec(source, what), COX_E_INVALID, "%s: %s", line, logged);
    cr_expect_eq(count_logged(line), 1, "expected once '%s', got: %s", line, logged);
    cox_session_destroy(&session);
}

Test(kernel_arguments, the_drivers_kinds_count)
{
    static const char *const gives[GIVEN] = {"a buffer", "a read_only image2d_t", "local memory", "an int",
                                             "a value of 8 bytes"};
    static const struct {
        const char *parameter, *takes;
        enum given right;
    } kinds[] = {{"global const uint *", "global uint*", A_BUFFER},
                 {"constant uint *", "constant uint*", A_BUFFER},
                 {"local uint *", "local uint*", LOCAL},
                 {"read_only image2d_t", "read_only image2d_t", AN_IMAGE},
                 {"write_only image2d_t", "write_only image2d_t", GIVEN},
                 {"read_only image1d_t", "read_only image1d_t", GIVEN},
                 {"read_only image3d_t", "read_only image3d_t", GIVEN},
                 {"sampler_t", "sampler_t", GIVEN},
                 {"int", "int", AN_INT},
                 {"uint", "uint", AN_INT},
                 {"float", "float", GIVEN},
                 {"long", "long", A_VALUE},
                 {"char", "char", GIVEN},
                 {"float2", "float2", A_VALUE}};
    if (!open_setup(SETUP_CPU))
        cr_skip_test("skipped, because there is no OpenCL device for the processor");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (enum given what = 0; what < GIVEN; what++)
            if (what != kinds[k].right)
                refuse_spec(kinds[k].parameter, what, gives[what], kinds[k].takes);
            else if (what != AN_IMAGE) {
                char source[256];
                snprintf(source, sizeof source, KERNEL("%s a, global uint *out"), kinds[k].parameter);
                cr_expect_eq(create_spec(source, what), COX_OK, "%s: %s", kinds[k].parameter, logged);
                cox_session_destroy(&session);
            }
}

Test(kernel_arguments, halves_of_a_processor_say_it_once)
{
    if (!open_setup(SETUP_HALVES))
        cr_skip_test("skipped, because the processor cannot be halved");
    refuse_spec("write_only image2d_t", A_BUFFER, "a buffer", "write_only image2d_t");
    cr_expect_eq(count_logged("\n"), 1, "%s", logged);
    refuse_spec("float", AN_INT, "an int", "float");
    cr_expect_eq(count_logged("\n"), 1, "%s", logged);
}

/* Drivers need not report arguments of a binary, so the cache keeps what they reported of the source. */
Test(kernel_arguments, kernels_from_the_cache_are_checked_too)
{
    static const char source[] = "kernel void f(float a, global uint *out) { out[get_global_id(0)] = a; }\n";
    static const char *const devices[] = {"cpu", "gpu"};
    for (int d = 0; d < 2; d++)
        for (int turn = 0; turn < 2; turn++) {
            const struct cox_runtime_params params = {
                .devices = devices[d], .cache_dir = folder, .log = on_log, .log_level = COX_LOG_WARN};
            if (cox_runtime_create(&params, &runtime) != COX_OK)
                break;
            cr_expect_eq(create_spec(source, AN_INT), COX_E_INVALID);
            cr_expect_eq(count_logged("gives an int, but the kernel takes 'float'"), 1, "%s", logged);
            cox_runtime_destroy(&runtime);
        }
}

/* ---- structs ---- */

#define STRUCT "struct settings { float gain; char low; double3 wide; };\n"
#define TELLS(type, text)                                                                                         \
    "kernel void f(global uint *out, " type " s, int columns, int rows)\n"                                        \
    "{ int x = get_global_id(0), y = get_global_id(1); if (x < columns && y < rows) out[y * columns + x] = " text \
    "; }\n"

Test(kernel_arguments, values_of_the_right_size_arrive)
{
    static const struct {
        const char *source;
        size_t bytes;
    } right[] = {{STRUCT TELLS("struct settings", "s.low"), 64},
                 {"typedef struct { uint a, b; } pair;\n" TELLS("pair", "s.b"), 8},
                 {"typedef uint4 four;\n" TELLS("four", "s.y"), 16},
                 {"#define T uint\n" TELLS("T", "s"), 4},
                 {TELLS("uint3", "s.y"), 16},
                 {"enum which { A, B };\n" TELLS("enum which", "s"), 4}};
    static unsigned char constants[64];
    static uint32_t out[H][W];
    uint32_t *words = (uint32_t *)constants;
    words[0] = words[1] = 7;
    for (enum setup setup = SETUP_CPU; setup <= SETUP_LLVMPIPE; setup += SETUP_LLVMPIPE) {
        if (!open_setup(setup))
            continue;
        for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
            if (strstr(right[i].source, "double") && setup == SETUP_LLVMPIPE)
                continue; /* it has no double */
            cr_assert_eq(cox_session_create(runtime, with_field(right[i].source, right[i].bytes), &session), COX_OK,
                         "%s: %s", right[i].source, logged);
            memset(out, 0, sizeof out);
            cr_assert_eq(cox_session_run(session,
                                         &(const struct cox_frame){.data = COX_ARGS(out), .constants = constants}),
                         COX_OK, "%s", logged);
            cr_expect_eq(out[H - 1][W - 1], 7, "%s: %u", right[i].source, out[H - 1][W - 1]);
            cox_session_destroy(&session);
        }
    }
}

/* The compiler says the size if the driver takes any. */
Test(kernel_arguments, structs_of_another_size_are_refused)
{
    if (!open_setup(SETUP_CPU))
        cr_skip_test("skipped, because there is no OpenCL device for the processor");
    for (size_t bytes = 16; bytes <= 128; bytes *= 2)
        if (bytes != 64)
            refuse(COX_E_INVALID,
                   "kernel f, argument 1 (s): ", with_field(STRUCT TELLS("struct settings", "s.low"), bytes));
}

/* ---- constant memory ---- */

static const char table_source[] =
    "kernel void f(constant uint *table, global uint *out, int columns, int rows)\n"
    "{ int x = get_global_id(0), y = get_global_id(1); if (x < columns && y < rows) out[y * columns + x] = table[x]; }\n";

/* PoCL allows half a megabyte and 8 pointers, llvmpipe more. */
Test(kernel_arguments, a_table_beyond_a_devices_constant_memory_is_refused)
{
    if (!open_setup(SETUP_CPU))
        cr_skip_test("skipped, because there is no OpenCL device for the processor");
    logged[0] = '\0';
    cr_expect_eq(cox_session_create(runtime,
                                    PARAMS(PASSES({.source = table_source,
                                                   ARGUMENTS({.name = "table", .whole = true})}),
                                           BUFFERS_OF({.name = "table", .bytes = (size_t)1 << 40}, {.name = "out"})),
                                    &session),
                 COX_E_UNSUPPORTED, "%s", logged);
    cr_expect_eq(count_logged("kernel f takes the 1099511627776 bytes of 'table' in constant memory, but the device "
                              "allows "),
                 1, "%s", logged);
}

Test(kernel_arguments, more_constant_pointers_than_a_device_allows_are_refused)
{
    static const char source[] = KERNEL("constant uint *a, constant uint *b, constant uint *c, constant uint *d, "
                                        "constant uint *e, constant uint *f, constant uint *g, constant uint *h, "
                                        "constant uint *i, global uint *out");
    if (!open_setup(SETUP_CPU))
        cr_skip_test("skipped, because there is no OpenCL device for the processor");
    logged[0] = '\0';
    const cox_status status = cox_session_create(runtime, PARAMS(PASSES({.source = source})), &session);
    if (status == COX_OK)
        cr_skip_test("skipped, because the device allows nine constant pointers");
    cr_expect_eq(status, COX_E_UNSUPPORTED);
    cr_expect_eq(count_logged("kernel f takes more than 8 constant pointers"), 1, "%s", logged);
}

/* By rows, a band has no more of them than the device allows. */
Test(kernel_arguments, rows_in_constant_memory_limit_the_bands)
{
    enum { COLUMNS = 4096, ROWS = 1024 };
    static uint32_t in[ROWS][COLUMNS], result[ROWS][COLUMNS];
    static const char source[] = "kernel void f(constant uint *in, global uint *out, int columns, int rows)\n"
                                 "{ int x = get_global_id(0), y = get_global_id(1);\n"
                                 "  if (x < columns && y < rows) out[y * columns + x] = in[y * columns + x] + 1; }\n";
    for (enum setup setup = 0; setup < SETUPS; setup++) {
        if (!open_setup(setup))
            continue;
        for (uint32_t y = 0; y < ROWS; y++)
            for (uint32_t x = 0; x < COLUMNS; x++)
                in[y][x] = y * COLUMNS + x;
        struct cox_session_info info;
        cr_assert_eq(cox_session_create(runtime,
                                        PARAMS(.columns = COLUMNS, .rows = ROWS,
                                               .passes = COX_LIST(struct cox_pass, {.source = source})),
                                        &session),
                     COX_OK, "%s", logged);
        cox_session_info(session, &info);
        for (uint32_t d = 0; d < info.device_count && setup != SETUP_LLVMPIPE; d++)
            cr_expect_lt(info.devices[d].max_rows, ROWS);
        for (int frame = 0; frame < 3; frame++)
            cr_assert_eq(cox_session_run(session, &(const struct cox_frame){.data = COX_ARGS(in, result)}), COX_OK,
                         "%s", logged);
        for (uint32_t y = 0; y < ROWS; y++)
            for (uint32_t x = 0; x < COLUMNS; x++)
                cr_assert_eq(result[y][x], in[y][x] + 1);
    }
}
