/* Kernels written for the whole frame (cox_pass.absolute), frames of one dimension, and one-sided halos. Buffers that
 * are read whole and written in place. Each runs on each kind of device memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/captured_log.h"
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdlib.h>
#include <string.h>

enum { W = 48, H = 250, N = 10007, BUFFERS = 4, MEMORY = 1 << 16 };

static cox_runtime *runtime;
static cox_session *session;
static cox_buffer *buffers[BUFFERS];

/* What the report of the last frames says. */
static uint32_t bands, misaligned, alignment;

/* ---- devices ---- */

struct set_up {
    char devices[24];
    char policy[16];
};

static struct set_up set_ups[] = {
    {"cpu:2x1", "chunks"},        {"cpu:2x1=mapped", "chunks"}, {"cpu:2x1=staged", "chunks"},
    {"cpu:2x1=staged", "static"}, {"cpu=staged", "single"},     {"gpu", "single"},
    {"gpu=staged", "single"},     {"cpu:2x1,gpu", "chunks"},    {"cpu:2x1,gpu=staged", "chunks"}};

/* One set-up of each kind of memory. */
static struct set_up few_set_ups[] = {{"cpu:2x1", "chunks"}, {"cpu:2x1=staged", "chunks"}, {"cpu:2x1,gpu", "chunks"}};

#define WITH(name, list)                                                             \
    ParameterizedTestParameters(rows, name)                                          \
    {                                                                                \
        return cr_make_param_array(struct set_up, list, sizeof list / sizeof *list); \
    }                                                                                \
    ParameterizedTest(struct set_up *set_up, rows, name)
#define EACH_SET_UP(name) WITH(name, set_ups)
#define FEW_SET_UPS(name) WITH(name, few_set_ups)

static void with_llvmpipe(void)
{
    setenv("RUSTICL_ENABLE", "llvmpipe", 1);
    setenv("RUSTICL_DEVICE_TYPE", "gpu", 1);
}

static void open_runtime(const char *devices)
{
    const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = devices, .log = on_log},
                                                 &runtime);
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE || status == COX_E_NOT_FOUND ||
        status == COX_E_INVALID)
        cr_skip_test("skipped, because there is no OpenCL device %s: %s", devices, cox_status_text(status));
    cr_assert_eq(status, COX_OK, "%s", logged);
    for (int i = 0; i < BUFFERS; i++) {
        cr_assert_eq(cox_buffer_create(runtime, MEMORY, &buffers[i]), COX_OK);
        uint32_t *data = cox_buffer_data(buffers[i]);
        for (uint32_t e = 0; e < MEMORY / 4; e++)
            data[e] = (e + 1000 * (uint32_t)i) * 2654435761u;
    }
}

static void teardown(void)
{
    cox_session_destroy(&session);
    for (int i = 0; i < BUFFERS; i++)
        cox_buffer_destroy(&buffers[i]);
    cox_runtime_destroy(&runtime);
    cr_assert(!runtime, "something was not released");
}

TestSuite(rows, .init = with_llvmpipe, .fini = teardown, .timeout = 300);

static void note(void *user, const struct cox_frame_report *report)
{
    (void)user;
    for (uint32_t b = 0; b < report->band_count && !report->warmup && !report->shadow; b++) {
        bands++;
        misaligned += report->bands[b].pass == 0 && report->bands[b].first_row % alignment != 0;
    }
}

static uint32_t *data_of(int buffer)
{
    return cox_buffer_data(buffers[buffer]);
}

static uint32_t *copy_of(int buffer)
{
    uint32_t *copy = malloc(MEMORY);
    memcpy(copy, data_of(buffer), MEMORY);
    return copy;
}

/* Create a session of these passes. `buffers` may be NULL. */
static cox_status create(const struct cox_session_params *given, const char *policy)
{
    struct cox_session_params params = *given;
    params.policy = policy;
    params.report = note;
    params.no_profile = true;
    const cox_status status = cox_session_create(runtime, &params, &session);
    if (status)
        return status;

    struct cox_session_info info;
    cox_session_info(session, &info);
    alignment = info.row_alignment;
    bands = misaligned = 0;
    return COX_OK;
}

static void run(cox_buffer *const *of)
{
    cr_assert_eq(cox_session_run(session, &(struct cox_frame){.buffers = of}), COX_OK, "%s", logged);
    cr_expect_eq(misaligned, 0);
    cr_expect(!strstr(logged, "leaves the session"), "%s", logged);
}

#define PARAMS(...) (&(const struct cox_session_params){__VA_ARGS__})
#define PASSES(...) .passes = COX_LIST(struct cox_pass, __VA_ARGS__)
#define LAYOUTS(...) .buffers = COX_LIST(struct cox_buffer_layout, __VA_ARGS__)
#define ARGUMENTS(...) .arguments = COX_LIST(struct cox_argument, __VA_ARGS__)

/* ---- kernels for the whole frame ---- */

/* Tells all that it sees. It compares no ids with `columns`, and each work-item takes two rows. */
static const char whole_source[] =
    "kernel void whole(global const uint *in, int in_first_row, global uint *out, int out_first_row, int columns,\n"
    "                  int rows, int first_row, int frame_rows)\n"
    "{\n"
    "    int x = get_global_id(0);\n"
    "    uint seen = get_group_id(1) + 7 * get_num_groups(1) + 11 * get_global_size(1) + 13 * get_global_offset(1) +\n"
    "                17 * get_local_id(1) + 19 * get_group_id(0) + 23 * get_num_groups(0) + 29 * get_global_size(0) +\n"
    "                1000 * (in_first_row + out_first_row + first_row) + 31 * rows + 37 * frame_rows +\n"
    "                41 * get_global_linear_id() + 43 * get_group_linear_id();\n"
    "    for (int r = 2 * get_global_id(1); r < 2 * (int)get_global_id(1) + 2 && r < rows; r++)\n"
    "        out[r * columns + x] = in[max(r - 1, 0) * columns + x] + 3 * in[min(r + 1, rows - 1) * columns + x] + seen;\n"
    "}\n";

static uint32_t whole_at(const uint32_t *in, uint32_t r, uint32_t x)
{
    enum { LOCAL_X = 8, LOCAL_Y = 4 };
    const uint32_t item = r / 2, groups = (H / 2 + LOCAL_Y - 1) / LOCAL_Y;
    const uint32_t seen = item / LOCAL_Y + 7 * groups + 11 * groups * LOCAL_Y + 17 * (item % LOCAL_Y) +
                          19 * (x / LOCAL_X) + 23 * (W / LOCAL_X) + 29 * W + 31 * H + 37 * H + 41 * (item * W + x) +
                          43 * (item / LOCAL_Y * (W / LOCAL_X) + x / LOCAL_X);
    const uint32_t up = r ? r - 1 : 0, down = r < H - 1 ? r + 1 : r;
    return in[up * W + x] + 3 * in[down * W + x] + seen;
}

#define WHOLE_PASS                                                                                     \
    {                                                                                                  \
        .source = whole_source, .absolute = true, .local_columns = 8, .local_rows = 4, .item_rows = 2, \
        ARGUMENTS({.name = "in", .halo_rows = 1})                                                      \
    }

EACH_SET_UP(a_kernel_for_the_whole_frame_runs_unchanged)
{
    open_runtime(set_up->devices);
    cr_assert_eq(create(PARAMS(.columns = W, .rows = H, PASSES(WHOLE_PASS)), set_up->policy), COX_OK, "%s", logged);
    cr_expect_eq(alignment, 8); /* local_rows x item_rows, and nothing for the memory */

    uint32_t *before = copy_of(1);
    for (int frame = 0; frame < 3; frame++) {
        memcpy(data_of(1), before, MEMORY);
        run(COX_BUFFERS(buffers[0], buffers[1]));
        for (uint32_t r = 0; r < H; r++)
            for (uint32_t x = 0; x < W; x++)
                cr_assert_eq(data_of(1)[r * W + x], whole_at(data_of(0), r, x), "row %u, column %u", r, x);
        for (uint32_t e = H * W; e < MEMORY / 4; e++)
            cr_assert_eq(data_of(1)[e], before[e]);
    }
    if (strcmp(set_up->policy, "single") != 0)
        cr_expect_gt(bands, 3);
    free(before);
}

/* Without a local size nothing is padded, so a kernel need not compare its ids. */
EACH_SET_UP(nothing_is_padded_without_a_local_size)
{
    static const char source[] =
        "kernel void f(global const uint *in, global uint *out, int columns)\n"
        "{\n"
        "    size_t at = get_global_id(1) * columns + get_global_id(0);\n"
        "    out[at] = in[at] * 3 + get_global_size(1) + get_num_groups(1) * get_local_size(1);\n"
        "}\n";
    enum { COLUMNS = 45, ROWS = 231 };
    open_runtime(set_up->devices);
    cr_assert_eq(create(PARAMS(.columns = COLUMNS, .rows = ROWS, PASSES({.source = source, .absolute = true})),
                        set_up->policy),
                 COX_OK, "%s", logged);
    uint32_t *before = copy_of(1);
    run(COX_BUFFERS(buffers[0], buffers[1]));
    for (uint32_t e = 0; e < MEMORY / 4; e++)
        cr_assert_eq(data_of(1)[e], e < COLUMNS * ROWS ? data_of(0)[e] * 3 + 2 * ROWS : before[e], "element %u", e);
    free(before);
}

/* A required size, a merged buffer, one that is read whole, one in place, a partial one, scratch and several passes. */
static const char forms_source[] =
    "kernel __attribute__((reqd_work_group_size(8, 2, 1)))\n"
    "void first(global const uint *table, global uint *grid, global uint *some, global uint *between, global uint *sums,\n"
    "           int columns, int rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (y >= rows) return;\n"
    "    int at = y * columns + x;\n"
    "    grid[at] = grid[at] * 5 + table[(7 * y + x) % 1000];\n"
    "    if (x % 2) some[at] = y;\n"
    "    between[at] = x + 100 * y;\n"
    "    atomic_add(&sums[y % 4], (uint)y);\n"
    "}\n"
    "kernel void second(global const uint *between, global const uint *sums, global uint *some, int columns, int rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x % 4 == 0) some[y * columns + x] = between[max(y - 3, 0) * columns + x] + sums[y % 4];\n"
    "}\n";

static void add(void *into, const void *partial, size_t bytes, void *user)
{
    (void)user;
    for (size_t i = 0; i < bytes / 4; i++)
        ((uint32_t *)into)[i] += ((const uint32_t *)partial)[i];
}

static cox_status create_forms(const char *policy, double verify, bool check)
{
    return create(PARAMS(.columns = W, .rows = H,
                         PASSES({.source = forms_source,
                                 .kernel = "first",
                                 .absolute = true,
                                 .local_columns = 8,
                                 .local_rows = 2,
                                 ARGUMENTS({.name = "table", .whole = true}, {.name = "grid", .in_place = true},
                                           {.name = "some", .partial = true})},
                                {.kernel = "second",
                                 .absolute = true,
                                 .item_rows = 1,
                                 ARGUMENTS({.name = "between", .halo_above = 3}, {.name = "some", .partial = true})}),
                         LAYOUTS({.name = "table", .bytes = 4000}, {.name = "grid"}, {.name = "some"},
                                 {.name = "between", .scratch = true}, {.name = "sums", .bytes = 16, .merge = add}),
                         .verify = verify, .check = check),
                  policy);
}

static void run_forms(void)
{
    uint32_t *grid = copy_of(1), *some = copy_of(2), sums[4] = {0};
    run(COX_BUFFERS(buffers[0], buffers[1], buffers[2], buffers[3]));
    for (uint32_t y = 0; y < H; y++)
        sums[y % 4] += y * W;
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) {
            const uint32_t at = y * W + x, above = y > 3 ? y - 3 : 0;
            cr_assert_eq(data_of(1)[at], grid[at] * 5 + data_of(0)[(7 * y + x) % 1000], "row %u, column %u", y, x);
            const uint32_t expected = x % 2 ? y : x % 4 ? some[at] : x + 100 * above + sums[y % 4];
            cr_assert_eq(data_of(2)[at], expected, "row %u, column %u", y, x);
        }
    cr_expect_arr_eq(data_of(3), sums, sizeof sums);
    for (uint32_t e = W * H; e < MEMORY / 4; e++)
        cr_assert(data_of(1)[e] == grid[e] && data_of(2)[e] == some[e]);
    free(grid);
    free(some);
}

EACH_SET_UP(each_form_of_access_works_in_absolute_passes)
{
    open_runtime(set_up->devices);
    cr_assert_eq(create_forms(set_up->policy, 0, false), COX_OK, "%s", logged);
    for (int frame = 0; frame < 3; frame++)
        run_forms();
}

EACH_SET_UP(check_mode_has_nothing_to_say_about_correct_kernels)
{
    open_runtime(set_up->devices);
    cr_assert_eq(create_forms(set_up->policy, 0, true), COX_OK, "%s", logged);
    run_forms();
}

EACH_SET_UP(bands_of_absolute_passes_can_be_verified)
{
    open_runtime(set_up->devices);
    cr_assert_eq(create(PARAMS(.columns = W, .rows = H, PASSES(WHOLE_PASS), .verify = 1), set_up->policy), COX_OK, "%s",
                 logged);
    for (int frame = 0; frame < 4; frame++)
        run(COX_BUFFERS(buffers[0], buffers[1]));
    for (uint32_t r = 0; r < H; r++)
        for (uint32_t x = 0; x < W; x++)
            cr_assert_eq(data_of(1)[r * W + x], whole_at(data_of(0), r, x), "row %u, column %u", r, x);
}

EACH_SET_UP(absolute_passes_that_hand_on_no_rows_can_be_fused)
{
    static const char source[] = "kernel void one(global const uint *in, global uint *a, int columns)\n"
                                 "{ size_t at = get_global_id(1) * columns + get_global_id(0); a[at] = in[at] + 1; }\n"
                                 "kernel void two(global const uint *in, global uint *b, int columns)\n"
                                 "{ size_t at = get_global_id(1) * columns + get_global_id(0); b[at] = in[at] + 2; }\n";
    open_runtime(set_up->devices);
    cr_assert_eq(create(PARAMS(.columns = W, .rows = H,
                               PASSES({.source = source, .kernel = "one", .absolute = true},
                                      {.kernel = "two", .absolute = true, .fused = true})),
                        set_up->policy),
                 COX_OK, "%s", logged);
    run(COX_BUFFERS(buffers[0], buffers[1], buffers[2]));
    for (uint32_t e = 0; e < W * H; e++)
        cr_assert(data_of(1)[e] == data_of(0)[e] + 1 && data_of(2)[e] == data_of(0)[e] + 2, "element %u", e);
}

/* Three fused passes hand rows on to each other. The kernels tell where their groups are, in groups of stated sizes
 * (tile, pairs) and of the library's choice (plain). pairs takes two rows per work-item. */
static const char chain_source[] =
    "uint near(global const uint *from, int x, int y, int columns, int rows)\n"
    "{ return from[max(y - 2, 0) * columns + x] * 3 + from[min(y + 2, rows - 1) * columns + x] * 5; }\n"
    "kernel void tile(global const uint *from, global uint *to, int columns, int rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_group_id(1) * 4 + get_local_id(1);\n"
    "    if (y < rows) to[y * columns + x] = near(from, x, y, columns, rows) + 7 * get_num_groups(1);\n"
    "}\n"
    "kernel void pairs(global const uint *from, global uint *to, int columns, int rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = 2 * get_global_id(1);\n"
    "    for (int r = y; r < min(y + 2, rows); r++) to[r * columns + x] = near(from, x, r, columns, rows) + r;\n"
    "}\n"
    "kernel void plain(global const uint *from, global uint *to, int columns, int rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    to[y * columns + x] = near(from, x, y, columns, rows);\n"
    "}\n";

#define CHAIN_LINK(from_name, to_name, ...)                                                                  \
    {                                                                                                        \
        .source = chain_source, .absolute = true,                                                            \
        ARGUMENTS({.name = "from", .buffer = from_name, .halo_rows = 2}, {.name = "to", .buffer = to_name}), \
        __VA_ARGS__                                                                                          \
    }
#define CHAIN_PASSES                                                                                   \
    PASSES(CHAIN_LINK("in", "a", .kernel = "plain"),                                                   \
           CHAIN_LINK("a", "b", .kernel = "tile", .local_columns = 8, .local_rows = 4, .fused = true), \
           CHAIN_LINK("b", "c", .kernel = "pairs", .item_rows = 2, .fused = true),                     \
           CHAIN_LINK("c", "out", .kernel = "plain", .fused = true))
#define CHAIN_LAYOUTS                                                                                        \
    LAYOUTS({.name = "in"}, {.name = "out"}, {.name = "a", .scratch = true}, {.name = "b", .scratch = true}, \
            {.name = "c", .scratch = true})

static uint32_t chain_near(const uint32_t *from, uint32_t x, uint32_t y, uint32_t columns, uint32_t rows)
{
    const uint32_t up = y > 2 ? y - 2 : 0, down = y + 2 < rows ? y + 2 : rows - 1;
    return from[up * columns + x] * 3 + from[down * columns + x] * 5;
}

/* Other content for each frame, so that rows of an earlier frame are wrong. */
static void change_input(void)
{
    static uint32_t seed = 1;
    for (uint32_t e = 0; e < MEMORY / 4; e++)
        data_of(0)[e] = (e + 77 * seed) * 2246822519u;
    seed++;
}

static void run_chain(void)
{
    static uint32_t stage[3][W * H];
    change_input();
    for (uint32_t at = 0; at < W * H; at++)
        stage[0][at] = chain_near(data_of(0), at % W, at / W, W, H);
    for (uint32_t at = 0; at < W * H; at++)
        stage[1][at] = chain_near(stage[0], at % W, at / W, W, H) + 7 * ((H + 3) / 4);
    for (uint32_t at = 0; at < W * H; at++)
        stage[2][at] = chain_near(stage[1], at % W, at / W, W, H) + at / W;

    memset(data_of(1), 0xee, MEMORY);
    run(COX_BUFFERS(buffers[0], buffers[1]));
    for (uint32_t at = 0; at < W * H; at++)
        cr_assert_eq(data_of(1)[at], chain_near(stage[2], at % W, at / W, W, H), "row %u, column %u", at / W, at % W);
    for (uint32_t e = W * H; e < MEMORY / 4; e++)
        cr_assert_eq(data_of(1)[e], 0xeeeeeeee);
}

EACH_SET_UP(fused_absolute_passes_hand_rows_on)
{
    open_runtime(set_up->devices);
    cr_assert_eq(create(PARAMS(.columns = W, .rows = H, CHAIN_PASSES, CHAIN_LAYOUTS), set_up->policy), COX_OK, "%s",
                 logged);
    cr_expect_eq(alignment, 8);
    for (int frame = 0; frame < 3; frame++)
        run_chain();
}

FEW_SET_UPS(check_mode_and_verification_know_fused_absolute_passes)
{
    open_runtime(set_up->devices);
    cr_assert_eq(create(PARAMS(.columns = W, .rows = H, CHAIN_PASSES, CHAIN_LAYOUTS, .check = true), set_up->policy),
                 COX_OK, "%s", logged);
    run_chain();
    cox_session_destroy(&session);

    cr_assert_eq(create(PARAMS(.columns = W, .rows = H, CHAIN_PASSES, CHAIN_LAYOUTS, .verify = 1), set_up->policy),
                 COX_OK, "%s", logged);
    for (int frame = 0; frame < 3; frame++)
        run_chain();
}

/* A halo that is one row too small. */
static const char narrow_source[] =
    "kernel void narrow(global const uint *from, global uint *to, int columns, int rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    to[y * columns + x] = from[max(y - 2, 0) * columns + x] * 3 + from[min(y + 2, rows - 1) * columns + x];\n"
    "}\n";

FEW_SET_UPS(check_mode_finds_a_small_halo_between_fused_absolute_passes)
{
    open_runtime(set_up->devices);
    cr_assert_eq(create(PARAMS(.columns = W, .rows = H,
                               PASSES({.source = narrow_source,
                                       .absolute = true,
                                       ARGUMENTS({.name = "from", .buffer = "in", .halo_rows = 2},
                                                 {.name = "to", .buffer = "a"})},
                                      {.source = narrow_source,
                                       .absolute = true,
                                       .fused = true,
                                       ARGUMENTS({.name = "from", .buffer = "a", .halo_rows = 1},
                                                 {.name = "to", .buffer = "out"})}),
                               LAYOUTS({.name = "in"}, {.name = "out"}, {.name = "a", .scratch = true}), .check = true),
                        set_up->policy),
                 COX_OK, "%s", logged);
    cr_expect_eq(cox_session_run(session, &(struct cox_frame){.buffers = COX_BUFFERS(buffers[0], buffers[1])}),
                 COX_E_MISMATCH);
    cr_expect(strstr(logged, "set a larger halo_rows"), "%s", logged);
}

EACH_SET_UP(fused_passes_of_one_dimension_hand_elements_on)
{
    static const char source[] = "kernel void mix_near(global const uint *from, global uint *to, int rows)\n"
                                 "{\n"
                                 "    int i = get_global_id(0);\n"
                                 "    to[i] = from[max(i - 1, 0)] * 3 + from[i] + from[min(i + 1, rows - 1)] * 7;\n"
                                 "}\n";
#define STEP(from_name, to_name, ...)                                                                     \
    {.source = source,                                                                                    \
     .absolute = true,                                                                                    \
     ARGUMENTS({.name = "from", .buffer = from_name, .halo_rows = 1}, {.name = "to", .buffer = to_name}), \
     __VA_ARGS__}
    open_runtime(set_up->devices);
    cr_assert_eq(create(PARAMS(.rows = N,
                               PASSES(STEP("in", "a"), STEP("a", "b", .fused = true), STEP("b", "out", .fused = true)),
                               LAYOUTS({.name = "in", .pitch_bytes = 4}, {.name = "out", .pitch_bytes = 4},
                                       {.name = "a", .pitch_bytes = 4, .scratch = true},
                                       {.name = "b", .pitch_bytes = 4, .scratch = true})),
                        set_up->policy),
                 COX_OK, "%s", logged);

    for (int frame = 0; frame < 3; frame++) {
        static uint32_t model[4][N];
        change_input();
        memcpy(model[0], data_of(0), sizeof model[0]);
        for (int s = 0; s < 3; s++)
            for (uint32_t i = 0; i < N; i++)
                model[s + 1][i] = model[s][i ? i - 1 : 0] * 3 + model[s][i] + model[s][i < N - 1 ? i + 1 : i] * 7;
        memset(data_of(1), 0xee, MEMORY);
        run(COX_BUFFERS(buffers[0], buffers[1]));
        cr_assert_arr_eq(data_of(1), model[3], sizeof model[3]);
    }
}

/* The reader's stated groups are larger than those that the library would choose for the writer. */
EACH_SET_UP(groups_of_fused_absolute_passes_fit_each_launch)
{
    static const char source[] =
        "kernel void writer(global const uint *from, global uint *to, int columns)\n"
        "{\n"
        "    int x = get_global_id(0), y = get_group_id(1) * get_local_size(1) + get_local_id(1);\n"
        "    to[y * columns + x] = from[y * columns + x] * 3 + y;\n"
        "}\n"
        "kernel void reader(global const uint *from, global uint *to, int columns, int rows)\n"
        "{\n"
        "    int x = get_global_id(0), y = get_global_id(1);\n"
        "    to[y * columns + x] = from[max(y - 2, 0) * columns + x] + 5 * from[min(y + 2, rows - 1) * columns + x];\n"
        "}\n";
    enum { COLUMNS = 4, ROWS = 256 };
    open_runtime(set_up->devices);
    cr_assert_eq(create(PARAMS(.columns = COLUMNS, .rows = ROWS,
                               PASSES({.source = source,
                                       .kernel = "writer",
                                       .absolute = true,
                                       ARGUMENTS({.name = "from", .buffer = "in"}, {.name = "to", .buffer = "a"})},
                                      {.source = source,
                                       .kernel = "reader",
                                       .absolute = true,
                                       .fused = true,
                                       .local_columns = 2,
                                       .local_rows = 16,
                                       ARGUMENTS({.name = "from", .buffer = "a", .halo_rows = 2},
                                                 {.name = "to", .buffer = "out"})}),
                               LAYOUTS({.name = "in"}, {.name = "out"}, {.name = "a", .scratch = true})),
                        set_up->policy),
                 COX_OK, "%s", logged);
    for (int frame = 0; frame < 3; frame++) {
        change_input();
        run(COX_BUFFERS(buffers[0], buffers[1]));
        for (uint32_t at = 0; at < COLUMNS * ROWS; at++) {
            const uint32_t y = at / COLUMNS, x = at % COLUMNS, up = y > 2 ? y - 2 : 0,
                           down = y + 2 < ROWS ? y + 2 : ROWS - 1;
            const uint32_t *from = data_of(0);
            cr_assert_eq(data_of(1)[at], from[up * COLUMNS + x] * 3 + up + 5 * (from[down * COLUMNS + x] * 3 + down),
                         "row %u", y);
        }
    }
}

/* Iterations with kernels that know no first row. */
EACH_SET_UP(absolute_passes_need_no_first_row_to_stay_on_devices)
{
    static const char source[] =
        "kernel void stir(global const uint *from, global uint *to, int columns, int rows)\n"
        "{\n"
        "    int x = get_global_id(0), y = get_global_id(1);\n"
        "    to[y * columns + x] = (from[max(y - 1, 0) * columns + x] + 3 * from[y * columns + x] +\n"
        "                           from[min(y + 1, rows - 1) * columns + x]) * 2654435761u + x;\n"
        "}\n";
    open_runtime(set_up->devices);
    cr_assert_eq(create(PARAMS(.columns = W, .rows = H,
                               PASSES({.source = source,
                                       .absolute = true,
                                       ARGUMENTS({.name = "from", .halo_rows = 1})}),
                               LAYOUTS({.name = "from", .stays = true}, {.name = "to", .stays = true})),
                        set_up->policy),
                 COX_OK, "%s", logged);

    uint32_t *model[2] = {copy_of(0), copy_of(1)};
    enum { STEPS = 15 };
    for (int step = 0; step < STEPS; step++) {
        run(COX_BUFFERS(buffers[step % 2], buffers[1 - step % 2]));
        const uint32_t *from = model[step % 2];
        for (uint32_t y = 0; y < H; y++)
            for (uint32_t x = 0; x < W; x++)
                model[1 - step % 2][y * W + x] = (from[(y ? y - 1 : 0) * W + x] + 3 * from[y * W + x] +
                                                  from[(y < H - 1 ? y + 1 : y) * W + x]) *
                                                     2654435761u +
                                                 x;
    }
    cr_assert_eq(cox_session_fetch(session, buffers[STEPS % 2]), COX_OK, "%s", logged);
    cr_expect_arr_eq(data_of(STEPS % 2), model[STEPS % 2], W * H * 4);
    free(model[0]);
    free(model[1]);
}

/* ---- one dimension ---- */

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

EACH_SET_UP(a_frame_may_have_one_dimension)
{
    static const char source[] =
        "kernel void f(global const uint *in, int in_first_row, global uint *out, int rows, int first_row, int frame_rows,\n"
        "              int columns)\n"
        "{\n"
        "    int i = get_global_id(0), r = first_row + i;\n"
        "    if (i >= rows) return;\n"
        "    out[i] = in[max(r - 2, 0) - in_first_row] + 3 * in[min(r + 1, frame_rows - 1) - in_first_row] +\n"
        "             get_global_id(1) + 10 * get_work_dim() + columns;\n"
        "}\n";
    open_runtime(set_up->devices);
    cr_assert_eq(create(PARAMS(.rows = N,
                               PASSES({.source = source, ARGUMENTS({.name = "in", .halo_above = 2, .halo_below = 1})})),
                        set_up->policy),
                 COX_OK, "%s", logged);
    if (!ends_with(set_up->devices, "gpu")) /* in mapped mode, bands begin where the driver does not copy */
        cr_expect_leq(alignment, 64);
    uint32_t *before = copy_of(1);
    for (int frame = 0; frame < 2; frame++)
        run(COX_BUFFERS(buffers[0], buffers[1]));
    for (uint32_t i = 0; i < MEMORY / 4; i++) {
        const uint32_t expected = data_of(0)[i > 2 ? i - 2 : 0] + 3 * data_of(0)[i < N - 1 ? i + 1 : i] + 11;
        cr_assert_eq(data_of(1)[i], i < N ? expected : before[i], "element %u", i);
    }
    free(before);
}

/* The last band is padded, and a work-item takes three elements. */
EACH_SET_UP(absolute_passes_may_have_one_dimension)
{
    static const char source[] =
        "kernel void f(global const uint *in, global uint *out, int rows, local uint *shared)\n"
        "{\n"
        "    shared[get_local_id(0)] = get_group_id(0);\n"
        "    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    for (int k = 0; k < 3; k++) {\n"
        "        int i = 3 * get_global_id(0) + k;\n"
        "        if (i < rows) out[i] = in[i] + shared[7 - get_local_id(0)] + 100 * get_num_groups(0) + get_global_size(0);\n"
        "    }\n"
        "}\n";
    open_runtime(set_up->devices);
    cr_assert_eq(create(PARAMS(.rows = N, PASSES({.source = source,
                                                  .absolute = true,
                                                  .local_rows = 8,
                                                  .item_rows = 3,
                                                  ARGUMENTS({.name = "shared", .local_bytes = 32})})),
                        set_up->policy),
                 COX_OK, "%s", logged);
    cr_expect_eq(alignment, 24);
    uint32_t *before = copy_of(1);
    run(COX_BUFFERS(buffers[0], buffers[1]));
    const uint32_t groups = ((N + 2) / 3 + 7) / 8;
    for (uint32_t i = 0; i < MEMORY / 4; i++)
        cr_assert_eq(data_of(1)[i], i < N ? data_of(0)[i] + i / 24 + 108 * groups : before[i], "element %u", i);
    free(before);
}

EACH_SET_UP(lengths_of_one_dimension_are_not_padded)
{
    static const char source[] = "kernel void f(global uint *out) { out[get_global_id(0)] = get_global_id(0) * 3; }\n";
    static const uint32_t lengths[] = {1, 2, 63, 64, 1000, 4096, 6400, 10007};
    open_runtime(set_up->devices);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        cr_assert_eq(create(PARAMS(.rows = lengths[l], PASSES({.source = source, .absolute = true})), set_up->policy),
                     COX_OK, "%s", logged);
        cr_expect_leq(alignment, 256);
        uint32_t *before = copy_of(0);
        run(COX_BUFFERS(buffers[0]));
        for (uint32_t i = 0; i < MEMORY / 4; i++)
            cr_assert_eq(data_of(0)[i], i < lengths[l] ? 3 * i : before[i], "length %u, element %u", lengths[l], i);
        free(before);
        cox_session_destroy(&session);
    }
}

/* The list of row starts has one element more than there are rows. */
EACH_SET_UP(a_halo_reaches_the_rows_that_bytes_adds)
{
    static const char source[] = "kernel void f(global const uint *starts, global uint *lengths)\n"
                                 "{ int i = get_global_id(0); lengths[i] = starts[i + 1] - starts[i]; }\n";
    open_runtime(set_up->devices);
    cr_assert_eq(create(PARAMS(.rows = N,
                               LAYOUTS({.name = "starts", .bytes = (N + 1) * sizeof(uint32_t)}, {.name = "lengths"}),
                               PASSES({.source = source,
                                       .absolute = true,
                                       ARGUMENTS({.name = "starts", .halo_below = 1})})),
                        set_up->policy),
                 COX_OK, "%s", logged);
    run(COX_BUFFERS(buffers[0], buffers[1]));
    for (uint32_t i = 0; i < N; i++)
        cr_assert_eq(data_of(1)[i], data_of(0)[i + 1] - data_of(0)[i], "element %u", i);
}

/* 9973 is a prime number. Groups that divide it would have one work-item. */
EACH_SET_UP(only_groups_at_the_edge_of_an_absolute_pass_are_small)
{
    static const char flat[] = "kernel void f(global uint *out) { out[get_global_id(0)] = get_local_size(0); }\n";
    static const char plane[] = "kernel void f(global uint *out, int columns)\n"
                                "{ out[get_global_id(1) * columns + get_global_id(0)] = get_local_size(0); }\n";
    enum { COUNT = 9973, WIDE = 227 };
    open_runtime(set_up->devices);
    for (int columns = 0; columns <= WIDE; columns += WIDE) {
        const uint32_t rows = columns ? COUNT / WIDE : COUNT;
        cr_assert_eq(create(PARAMS(.rows = rows, .columns = columns,
                                   PASSES({.source = columns ? plane : flat, .absolute = true})),
                            set_up->policy),
                     COX_OK, "%s", logged);
        run(COX_BUFFERS(buffers[0]));
        const uint32_t count = rows * (columns ? columns : 1);
        uint32_t large = 0;
        for (uint32_t i = 0; i < count; i++) {
            cr_assert_geq(data_of(0)[i], 1, "element %u", i);
            large += data_of(0)[i] >= 8;
        }
        cr_assert_gt(large, count / 2);
        cox_session_destroy(&session);
    }
}

/* Bands of this size are cut into pieces, whose copies and kernels overlap. */
static void run_long(bool absolute)
{
    static const char source[] =
        "kernel void whole(global const uint *in, global uint *out, int rows)\n"
        "{ int i = get_global_id(0); if (i < rows) out[i] = in[min(i + 1, rows - 1)] + get_group_id(0) % 8; }\n"
        "kernel void band(global const uint *in, global uint *out, int rows, int first_row)\n"
        "{ int i = get_global_id(0); if (i < rows) out[i] = in[i] + (first_row + i) / 64 % 8; }\n";
    enum { LONG = 6000011 };
    open_runtime("cpu=staged");
    cr_assert_eq(create(PARAMS(.rows = LONG, PASSES({.source = source,
                                                     .kernel = absolute ? "whole" : "band",
                                                     .absolute = absolute,
                                                     .local_rows = 64,
                                                     ARGUMENTS({.name = "in", .halo_below = absolute})})),
                        "single"),
                 COX_OK, "%s", logged);
    cox_buffer *of[3] = {NULL};
    for (int b = 0; b < 2; b++)
        cr_assert_eq(cox_buffer_create(runtime, LONG * 4, &of[b]), COX_OK);
    uint32_t *in = cox_buffer_data(of[0]), *out = cox_buffer_data(of[1]);
    for (uint32_t i = 0; i < LONG; i++)
        in[i] = i * 2654435761u;

    run(of);
    for (uint32_t i = 0; i < LONG; i++)
        cr_assert_eq(out[i], in[absolute && i < LONG - 1 ? i + 1 : i] + i / 64 % 8, "element %u", i);
    cox_buffer_destroy(&of[0]);
    cox_buffer_destroy(&of[1]);
}

Test(rows, long_bands_are_cut_into_pieces)
{
    run_long(false);
}

Test(rows, long_bands_of_absolute_passes_are_cut_into_pieces)
{
    run_long(true);
}

Test(rows, cox_run_takes_one_dimension)
{
    static const char source[] = "kernel void f(global const uint *in, global uint *out, int rows)\n"
                                 "{ int i = get_global_id(0); if (i < rows) out[i] = ~in[i]; }\n";
    open_runtime("cpu:2x1");
    cr_assert_eq(cox_run(runtime, source, 0, N, COX_ARGS(data_of(0), data_of(1))), COX_OK, "%s", logged);
    for (uint32_t i = 0; i < N; i++)
        cr_assert_eq(data_of(1)[i], ~data_of(0)[i], "element %u", i);
}

/* ---- buffers that are read whole and written in place ---- */

/* One step of an elimination: rows below the pivot change, and read the pivot's row and their own. */
static const char eliminate_source[] =
    "kernel void eliminate(global uint *grid, int columns, int rows, int first_row, int frame_rows, int grid_first_row,\n"
    "                      uint pivot)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1), r = first_row + y - grid_first_row;\n"
    "    if (x < columns && y < rows && r > pivot)\n"
    "        grid[r * columns + x] = grid[r * columns + x] * 3 - grid[pivot * columns + x];\n"
    "}\n";

static void eliminate(const char *devices, const char *policy, bool absolute, bool stays)
{
    open_runtime(devices);
    cr_assert_eq(create(PARAMS(.columns = W, .rows = H,
                               PASSES({.source = eliminate_source,
                                       .absolute = absolute,
                                       ARGUMENTS({.name = "grid", .in_place = true, .whole = true})}),
                               LAYOUTS({.name = "grid", .stays = stays}),
                               .fields = COX_LIST(struct cox_field, {.name = "pivot", .bytes = 4}),
                               .constants_bytes = 4),
                        policy),
                 COX_OK, "%s", logged);

    uint32_t *model = copy_of(0);
    for (uint32_t pivot = 0; pivot < H; pivot += 17) {
        const struct cox_frame frame = {.buffers = COX_BUFFERS(buffers[0]), .constants = &pivot};
        cr_assert_eq(cox_session_run(session, &frame), COX_OK, "%s", logged);
        cr_expect(!strstr(logged, "leaves the session"), "%s", logged);
        for (uint32_t r = pivot + 1; r < H; r++)
            for (uint32_t x = 0; x < W; x++)
                model[r * W + x] = model[r * W + x] * 3 - model[pivot * W + x];
    }
    cr_assert_eq(cox_session_fetch(session, buffers[0]), COX_OK, "%s", logged);
    cr_expect_arr_eq(data_of(0), model, MEMORY);
    free(model);
}

EACH_SET_UP(bands_may_read_all_rows_and_write_their_own)
{
    eliminate(set_up->devices, set_up->policy, false, false);
}

EACH_SET_UP(bands_of_absolute_passes_may_read_all_rows_too)
{
    eliminate(set_up->devices, set_up->policy, true, false);
}

EACH_SET_UP(rows_that_all_bands_read_may_stay_on_devices)
{
    eliminate(set_up->devices, set_up->policy, true, true);
}

EACH_SET_UP(kernels_with_a_first_row_read_all_rows_that_stay)
{
    eliminate(set_up->devices, set_up->policy, false, true);
}

/* ---- buffers with a border, or with bytes before their rows ---- */

/* `in` has BEFORE elements, then 2 rows above the frame's and 1 below. `out` has 1 row above. */
static const char border_source[] =
    "kernel void whole(global const uint *in, global uint *out, int columns)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    out[(y + 1) * columns + x] = in[BEFORE + y * columns + x] + 3 * in[BEFORE + (y + 3) * columns + x];\n"
    "}\n"
    "kernel void band(global const uint *in, int in_first_row, global uint *out, int out_first_row, int columns, int rows,\n"
    "                 int first_row)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1), r = first_row + y;\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    out[(r - out_first_row) * columns + x] =\n"
    "        in[(r - 2 - in_first_row) * columns + x] + 3 * in[(r + 1 - in_first_row) * columns + x];\n"
    "}\n";

static void run_with_border(const struct set_up *set_up, bool absolute, bool stays, bool check, double verify)
{
    const uint32_t before = stays ? 0 : 6;
    open_runtime(set_up->devices);
    cr_assert_eq(create(PARAMS(.columns = W, .rows = H,
                               PASSES({.source = border_source,
                                       .kernel = absolute ? "whole" : "band",
                                       .options = stays ? "-DBEFORE=0" : "-DBEFORE=6",
                                       .absolute = absolute,
                                       ARGUMENTS({.name = "in", .halo_above = 2, .halo_below = 1})}),
                               LAYOUTS({.name = "in",
                                        .offset_bytes = 4 * before,
                                        .border_above = 2,
                                        .border_below = 1,
                                        .stays = stays},
                                       {.name = "out", .border_above = 1, .stays = stays}),
                               .check = check, .verify = verify),
                        set_up->policy),
                 COX_OK, "%s", logged);

    uint32_t *old = copy_of(1);
    for (int frame = 0; frame < 3; frame++) {
        run(COX_BUFFERS(buffers[0], buffers[1]));
        cr_assert_eq(cox_session_fetch(session, buffers[1]), COX_OK, "%s", logged);
        const uint32_t *in = data_of(0) + before;
        for (uint32_t e = 0; e < MEMORY / 4; e++) {
            const uint32_t r = e / W - 1, x = e % W;
            const bool inside = e >= W && r < H;
            const uint32_t expected = inside ? in[r * W + x] + 3 * in[(r + 3) * W + x] : old[e];
            cr_assert_eq(data_of(1)[e], expected, "row %d, column %u", (int)r, x);
        }
        data_of(0)[frame * 1000 + 10]++;
        cox_buffer_changed(buffers[0]);
    }
    free(old);
}

EACH_SET_UP(kernels_for_the_whole_frame_read_borders)
{
    run_with_border(set_up, true, false, false, 0);
}

EACH_SET_UP(kernels_for_bands_read_borders)
{
    run_with_border(set_up, false, false, false, 0);
}

EACH_SET_UP(borders_stay_on_devices_with_their_rows)
{
    run_with_border(set_up, false, true, false, 0);
    teardown();
    run_with_border(set_up, true, true, false, 0);
}

Test(rows, borders_are_known_to_check_mode_and_verification)
{
    run_with_border(&(struct set_up){"cpu:2x1", "chunks"}, true, false, true, 0);
    teardown();
    run_with_border(&(struct set_up){"cpu:2x1=staged", "chunks"}, false, false, true, 0);
    teardown();
    run_with_border(&(struct set_up){"cpu:2x1=staged", "chunks"}, true, false, false, 1);
}

Test(rows, rows_with_gaps_may_have_a_border)
{
    static const char source[] = "kernel void f(global const uint *in, global uint *out, int columns, int in_pitch)\n"
                                 "{\n"
                                 "    int x = get_global_id(0), y = get_global_id(1);\n"
                                 "    out[(y + 2) * in_pitch + x] = in[(y + 1) * in_pitch + x] + 5;\n"
                                 "}\n";
    enum { PITCH = W + 5 };
    open_runtime("cpu:2x1=staged");
    cr_assert_eq(create(PARAMS(.columns = W, .rows = H, PASSES({.source = source, .absolute = true}),
                               LAYOUTS({.name = "in",
                                        .pitch_bytes = 4 * PITCH,
                                        .row_bytes = 4 * W,
                                        .offset_bytes = 4 * PITCH},
                                       {.name = "out",
                                        .pitch_bytes = 4 * PITCH,
                                        .row_bytes = 4 * W,
                                        .offset_bytes = 4 * PITCH,
                                        .border_above = 1})),
                        "chunks"),
                 COX_OK, "%s", logged);
    uint32_t *old = copy_of(1);
    run(COX_BUFFERS(buffers[0], buffers[1]));
    for (uint32_t e = 0; e < MEMORY / 4; e++) {
        const bool inside = e >= 2 * PITCH && e < (H + 2) * PITCH && e % PITCH < W;
        cr_assert_eq(data_of(1)[e], inside ? data_of(0)[e - PITCH] + 5 : old[e], "element %u", e);
    }
    free(old);
}

/* ---- what check mode finds ---- */

/* Run one checked frame of a pass. Returns whether a line has the text. */
static bool finds(const char *text, const struct cox_session_params *given)
{
    struct cox_session_params params = *given;
    params.check = true;
    logged[0] = '\0';
    cr_assert_eq(create(&params, NULL), COX_OK, "%s", logged);
    const cox_status status = cox_session_run(session,
                                              &(struct cox_frame){.buffers = COX_BUFFERS(buffers[0], buffers[1])});
    cox_session_destroy(&session);
    cr_expect_eq(status, text ? COX_E_MISMATCH : COX_OK, "%s", logged);
    return !text || strstr(logged, text);
}

Test(rows, check_mode_finds_rows_beyond_the_halo_of_a_whole_buffer)
{
    static const char source[] = "kernel void f(global const uint *in, global uint *out, int columns, int rows)\n"
                                 "{\n"
                                 "    int x = get_global_id(0), y = get_global_id(1);\n"
                                 "    out[y * columns + x] = in[clamp(y + STEP, 0, rows - 1) * columns + x];\n"
                                 "}\n";
    open_runtime("cpu:2x1");
    cr_expect(finds(NULL, PARAMS(.columns = W, .rows = 64,
                                 PASSES({.source = source,
                                         .options = "-DSTEP=2",
                                         .absolute = true,
                                         ARGUMENTS({.name = "in", .halo_below = 2})}))));
    cr_expect(finds("buffer in, but the band may only read rows",
                    PARAMS(.columns = W, .rows = 64,
                           PASSES({.source = source,
                                   .options = "-DSTEP=3",
                                   .absolute = true,
                                   ARGUMENTS({.name = "in", .halo_below = 2})}))),
              "%s", logged);
    cr_expect(finds("buffer in, but the band may only read rows",
                    PARAMS(.columns = W, .rows = 64,
                           PASSES({.source = source,
                                   .options = "-DSTEP=-1",
                                   .absolute = true,
                                   ARGUMENTS({.name = "in", .halo_below = 2})}))),
              "%s", logged);
}

Test(rows, check_mode_finds_work_items_that_touch_rows_of_other_bands)
{
    static const char source[] =
        "kernel void f(global const uint *in, global uint *out, int rows)\n"
        "{ int i = get_global_id(0); out[i] = in[i]; if (i + 1 < rows) out[i + 1] = in[i] + 1; }\n";
    open_runtime("cpu:2x1");
    cr_expect(finds("", PARAMS(.rows = 256, PASSES({.source = source, .absolute = true}))), "%s", logged);
    cr_expect(strstr(logged, "writes row") || strstr(logged, "another order") || strstr(logged, "other results"), "%s",
              logged);
}

Test(rows, check_mode_finds_writes_to_what_is_only_read)
{
    static const char source[] =
        "kernel void f(global uint *in, global uint *out) { int i = get_global_id(0); out[i] = in[i]; WRITE }\n";
    open_runtime("cpu:2x1");
    cr_expect(finds(NULL, PARAMS(.rows = 256, PASSES({.source = source,
                                                      .options = "-DWRITE=",
                                                      .absolute = true,
                                                      ARGUMENTS({.name = "in", .read_only = true})}))));
    cr_expect(!strstr(logged, "const"), "%s", logged); /* no advice to declare it const */
    cr_expect(finds("which it only reads", PARAMS(.rows = 256, PASSES({.source = source,
                                                                       .options = "-DWRITE=in[i]=i;",
                                                                       .absolute = true,
                                                                       ARGUMENTS({.name = "in", .read_only = true})}))),
              "%s", logged);
}

Test(rows, check_mode_knows_buffers_that_are_read_whole_and_written)
{
    static const char source[] =
        "kernel void f(global uint *grid, global uint *out, int rows, int first_row)\n"
        "{ int i = get_global_id(0), r = first_row + i; if (i < rows) { if (r) grid[r] += grid[READ]; out[i] = r; } }\n";
    open_runtime("cpu:2x1");
    cr_expect(finds(NULL, PARAMS(.rows = 4096, PASSES({.source = source,
                                                       .options = "-DREAD=0",
                                                       ARGUMENTS({.name = "grid", .in_place = true, .whole = true})}))),
              "%s", logged);
    cr_expect(finds("", PARAMS(.rows = 4096, PASSES({.source = source,
                                                     .options = "-DREAD=(r-1)",
                                                     ARGUMENTS({.name = "grid", .in_place = true, .whole = true})}))),
              "%s", logged);
}

/* ---- what is refused ---- */

static void refuse(const char *line, const struct cox_session_params *params)
{
    logged[0] = '\0';
    cr_expect_eq(cox_session_create(runtime, params, &session), COX_E_INVALID, "%s", line);
    cr_expect_null(session);
    cr_expect(strstr(logged, line), "expected '%s', got: %s", line, logged);
}

Test(rows, what_does_not_fit_is_refused)
{
    static const char copies[] = "kernel void f(global const uint *in, global uint *out, int columns)\n"
                                 "{ size_t at = get_global_id(1) * columns + get_global_id(0); out[at] = in[at]; }\n";
    static const char hands_on[] =
        "kernel void f(global const uint *in, global uint *b) { b[get_global_id(0)] = in[get_global_id(0)]; }\n"
        "kernel void g(global const uint *b, global uint *out) { out[get_global_id(0)] = b[get_global_id(0)]; }\n";
    static const char pixels[] = "kernel void f(read_only image2d_t in, global uint *out)\n"
                                 "{ out[get_global_id(0)] = read_imageui(in, (int2)(0, 0)).x; }\n";
    static const char required[] =
        "kernel __attribute__((reqd_work_group_size(8, 8, 1))) void f(global uint *out, int columns)\n"
        "{ out[get_global_id(1) * columns + get_global_id(0)] = 1; }\n";
    static const char required_writer[] =
        "kernel __attribute__((reqd_work_group_size(8, 8, 1))) void f(global uint *out, int columns)\n"
        "{ out[get_global_id(1) * columns + get_global_id(0)] = 1; }\n"
        "kernel void g(global const uint *out, global uint *last, int columns)\n"
        "{ last[get_global_id(1) * columns + get_global_id(0)] = out[get_global_id(0)]; }\n";
    open_runtime("cpu:2x1");

    refuse("local_columns is 8 and item_columns is 0",
           PARAMS(.rows = H, PASSES({.source = copies, .local_columns = 8, .local_rows = 8})));
    refuse("local_columns is 0 and item_columns is 2",
           PARAMS(.rows = H, PASSES({.source = copies, .item_columns = 2})));
    refuse("an absolute pass takes no `code`",
           PARAMS(.columns = W, .rows = H,
                  PASSES({.source = copies, .absolute = true, .code = "\x03\x02\x23\x07", .code_bytes = 4})));
    refuse("can only be fused with absolute passes",
           PARAMS(.rows = H,
                  PASSES({.source = hands_on, .kernel = "f", .absolute = true}, {.kernel = "g", .fused = true})));
    refuse("in an absolute pass, set `whole`",
           PARAMS(.columns = W, .rows = H, PASSES({.source = pixels, .absolute = true}),
                  LAYOUTS({.name = "in",
                           .pitch_bytes = W,
                           .image_order = 0x10b0,
                           .image_type = 0x10da,
                           .image_columns = W},
                          {.name = "out"})));
    refuse("requires groups of 8 x 8; set local_columns and local_rows",
           PARAMS(.columns = W, .rows = H, PASSES({.source = required, .absolute = true})));
    refuse("requires groups of 8 x 8; set local_columns and local_rows",
           PARAMS(.columns = W, .rows = 256,
                  PASSES({.source = required_writer, .kernel = "f", .absolute = true},
                         {.source = required_writer,
                          .kernel = "g",
                          .absolute = true,
                          .fused = true,
                          ARGUMENTS({.name = "out", .halo_rows = 2}, {.name = "last"})}),
                  LAYOUTS({.name = "out", .scratch = true}, {.name = "last"})));
    refuse("a variant of kernel f sets fused or absolute",
           PARAMS(.columns = W, .rows = H,
                  PASSES({.source = copies,
                          .variants = COX_LIST(struct cox_pass, {.source = copies, .absolute = true})})));
    refuse("is read whole and written in one pass",
           PARAMS(.columns = W, .rows = H, PASSES({.source = copies, ARGUMENTS({.name = "out", .whole = true})})));
    refuse("in_place is set, but the kernel only reads it",
           PARAMS(.columns = W, .rows = H,
                  PASSES({.source = copies, ARGUMENTS({.name = "out", .in_place = true, .read_only = true})})));
    refuse("has `merge`, so it has neither border nor offset_bytes",
           PARAMS(.columns = W, .rows = H, PASSES({.source = copies}),
                  LAYOUTS({.name = "in"}, {.name = "out", .bytes = 64, .merge = add, .border_below = 1})));
    refuse("has offset_bytes, or a kernel takes it",
           PARAMS(.columns = W, .rows = H, PASSES({.source = copies, .absolute = true}),
                  LAYOUTS({.name = "in", .stays = true, .offset_bytes = 4}, {.name = "out"})));
    refuse("with row_bytes it must be a multiple of the pitch",
           PARAMS(.columns = W, .rows = H, PASSES({.source = copies}),
                  LAYOUTS({.name = "in", .row_bytes = W, .offset_bytes = 4}, {.name = "out"})));
    refuse("but a kernel uses it by rows",
           PARAMS(.columns = W, .rows = H, PASSES({.source = copies}),
                  LAYOUTS({.name = "in", .bytes = W * H * 4, .border_above = 1}, {.name = "out"})));
    refuse("halo_rows and whole are both set",
           PARAMS(.columns = W, .rows = H,
                  PASSES({.source = copies, ARGUMENTS({.name = "in", .whole = true, .halo_below = 1})})));
}
