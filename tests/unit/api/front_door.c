/* Sessions as applications describe them, on real devices: how kernels' signatures, buffers and fields become a
 * session.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/captured_log.h"
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { W = 40, H = 96 };

/* OpenCL's constants for one channel of 32-bit unsigned integers. */
enum { CHANNEL_R = 0x10B0, CHANNEL_UINT32 = 0x10DC };

static cox_runtime *runtime;
static cox_session *session;
static uint32_t in[H][W], out[H][W], expected[H][W];

static void setup(void)
{
    static const char *const devices[] = {"cpu:2x1", NULL};
    cox_status status = COX_E_NO_DEVICE;
    for (int i = 0; i < 2 && status; i++)
        status = cox_runtime_create(&(const struct cox_runtime_params){.devices = devices[i], .log = on_log}, &runtime);
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE)
        cr_skip_test("skipped, because there is no OpenCL device: %s", cox_status_text(status));
    cr_assert_eq(status, COX_OK, "%s", logged);
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
            in[y][x] = (y * W + x) * 2654435761u;
}

static void teardown(void)
{
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    cr_assert(!runtime, "something was not released");
}

TestSuite(front_door, .init = setup, .fini = teardown, .timeout = 300);

#define KERNEL(name, parameters, body)                              \
    "kernel void " name "(" parameters ", int columns, int rows)\n" \
    "{ int x = get_global_id(0), y = get_global_id(1); if (x >= columns || y >= rows) return;\n" body "}\n"

static void open_session(const struct cox_session_params *params)
{
    struct cox_session_params sized = *params;
    sized.columns = sized.columns ? sized.columns : W;
    sized.rows = sized.rows ? sized.rows : H;
    cr_assert_eq(cox_session_create(runtime, &sized, &session), COX_OK, "%s", logged);
}

/* Several frames, so that devices also get rows by measurements. */
static void run_frames(const struct cox_frame *frame)
{
    for (int i = 0; i < 4; i++)
        cr_assert_eq(cox_session_run(session, frame), COX_OK, "%s", logged);
}

static void check_out(void)
{
    cr_expect(memcmp(out, expected, sizeof out) == 0, "%s", logged);
}

static uint32_t at(int y, int x)
{
    return in[y < 0 ? 0 : y >= H ? H - 1 : y][x];
}

/* ---- cox_run ---- */

Test(front_door, one_kernel_runs_over_plain_arrays)
{
    static const char source[] = KERNEL("f", "global const uint *in, global uint *out",
                                        "out[y * W + x] = ~in[y * W + x];");
    static const char invert[] = KERNEL("f", "global const uint *in, global uint *out",
                                        "out[y * columns + x] = ~in[y * columns + x];");
    cr_expect_eq(cox_run(runtime, source, W, H, COX_ARGS(in, out)), COX_E_BUILD);
    cr_assert_eq(cox_run(runtime, invert, W, H, COX_ARGS(in, out)), COX_OK, "%s", logged);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            expected[y][x] = ~in[y][x];
    check_out();
}

Test(front_door, values_are_passed_once)
{
    static const char source[] = KERNEL(
        "f",
        "short add, global const uint *in, int in_first_row, int in_pitch, global uint *out, ulong big, int first_row, "
        "int frame_rows",
        "int r = first_row + y - in_first_row;"
        "out[y * columns + x] = in[r * in_pitch + x] + add + (uint)(big >> 32) + (first_row + y == frame_rows - 1);");
    const int16_t add = -7;
    const uint64_t big = UINT64_C(5) << 32;
    cr_assert_eq(cox_run(runtime, source, W, H, COX_ARGS(&add, in, out, &big)), COX_OK, "%s", logged);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            expected[y][x] = in[y][x] - 7 + 5 + (y == H - 1);
    check_out();
}

Test(front_door, a_run_says_which_argument_is_wrong)
{
    static const char source[] = KERNEL("f", "global const uint *in, global uint *out, uint add", "");
    const struct {
        const char *source;
        const void *const *args;
        const char *line;
    } cases[] = {
        {source, COX_ARGS(in, out), "kernel f: argument 'add' is missing"},
        {source, NULL, "kernel f: argument 'in' is missing"},
        {source, COX_ARGS(in, out, in, in), "kernel f takes 3 arguments, but more are given"},
        {source, COX_ARGS(in, in, in), "data 1 (out) is given twice, but a kernel writes it"},
        {KERNEL("f", "struct s a", ""), COX_ARGS(in), "s a' cannot be passed by value"},
        {KERNEL("f", "local int *a", ""), COX_ARGS(in), "'a' is an image or local memory; use a session"},
        {"", COX_ARGS(in), "the source has no kernel"},
        {KERNEL("f", "global const struct s *a", ""), COX_ARGS(in), "buffer a: unknown element size"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        logged[0] = '\0';
        cr_expect_eq(cox_run(runtime, cases[i].source, W, H, cases[i].args), COX_E_INVALID);
        cr_expect(strstr(logged, cases[i].line), "expected '%s', got: %s", cases[i].line, logged);
    }
    cr_expect_eq(cox_run(NULL, source, W, H, COX_ARGS(in)), COX_E_INVALID);
    cr_expect_eq(cox_run(runtime, NULL, W, H, COX_ARGS(in)), COX_E_INVALID);
    cr_expect_eq(cox_run(runtime, source, 0, H, COX_ARGS(in)), COX_E_INVALID);
}

/* ---- sessions ---- */

/* Sum of the rows y - 1, y and y + 1. */
#define SUM3                                                                                                          \
    "int r = first_row + y, up = max(r - 1, 0) - from_first_row, down = min(r + 1, frame_rows - 1) - from_first_row;" \
    "to[(r - to_first_row) * columns + x] = from[up * columns + x] + from[(r - from_first_row) * columns + x]"        \
    " + from[down * columns + x];"
#define SUM3_PARAMETERS(from, to)                                                       \
    "global const uint *" from ", int " from "_first_row, global uint *" to ", int " to \
    "_first_row, int first_row, int frame_rows"

static const char sums[] =
    "#define from a\n#define from_first_row a_first_row\n#define to b\n#define to_first_row b_first_row\n" KERNEL(
        "down", SUM3_PARAMETERS("a", "b"),
        SUM3) "#undef from\n#undef from_first_row\n#undef to\n#undef to_first_row\n"
              "#define from b\n#define from_first_row b_first_row\n#define to c\n#define to_first_row "
              "c_first_row\n" KERNEL("again", SUM3_PARAMETERS("b", "c"), SUM3);

static void expect_two_sums(void)
{
    static uint32_t once[H][W];
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            once[y][x] = at(y - 1, x) + at(y, x) + at(y + 1, x);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            expected[y][x] = once[y ? y - 1 : 0][x] + once[y][x] + once[y < H - 1 ? y + 1 : y][x];
}

Test(front_door, passes_give_the_same_fused_and_apart)
{
    expect_two_sums();
    for (int fused = 0; fused < 2; fused++) {
        memset(out, 0, sizeof out);
        open_session(&(const struct cox_session_params){
            .passes = COX_LIST(struct cox_pass,
                               {.source = sums,
                                .kernel = "down",
                                .arguments = COX_LIST(struct cox_argument, {.name = "a", .halo_rows = 1})},
                               {.kernel = "again",
                                .fused = fused,
                                .arguments = COX_LIST(struct cox_argument, {.name = "b", .halo_rows = 1})}),
            .buffers = COX_LIST(struct cox_buffer_layout, {.name = "a"}, {.name = "b", .scratch = true},
                                {.name = "c"})});
        run_frames(&(const struct cox_frame){.data = COX_ARGS(in, out)});
        check_out();
        cox_session_destroy(&session);
    }
}

Test(front_door, a_kernel_may_call_a_buffer_by_another_name)
{
    static const char source[] = KERNEL(
        "copy", "global const uchar *from, int from_first_row, int from_pitch, global uint *to, int first_row",
        "to[y * columns + x] = *(global const uint *)(from + (first_row + y - from_first_row) * from_pitch + 4 * x);");
    static uint32_t wide[H][W + 8];
    for (int y = 0; y < H; y++)
        memcpy(wide[y], in[y], sizeof in[y]);
    open_session(&(const struct cox_session_params){
        .passes = COX_LIST(struct cox_pass,
                           {.source = source,
                            .arguments = COX_LIST(struct cox_argument, {.name = "from", .buffer = "in", .halo_rows = 3},
                                                  {.name = "to", .buffer = "between"})},
                           {.kernel = "copy",
                            .arguments = COX_LIST(struct cox_argument, {.name = "from", .buffer = "between"},
                                                  {.name = "to", .buffer = "out"})}),
        .buffers = COX_LIST(struct cox_buffer_layout, {.name = "in", .pitch_bytes = sizeof wide[0]},
                            {.name = "between", .scratch = true}, {.name = "out"})});
    run_frames(&(const struct cox_frame){.data = COX_ARGS(wide, out)});
    memcpy(expected, in, sizeof expected);
    check_out();
}

/* A kernel that hands nothing to the kernels fused after it computes no rows around the band. */
Test(front_door, kernels_that_share_nothing_may_be_fused)
{
    static const char source[] = KERNEL("f", "global const uint *in, global uint *out",
                                        "out[y * columns + x] = in[y * columns + x] + 1;")
        KERNEL("g", "global const uint *in, global uint *other", "other[y * columns + x] = in[y * columns + x] + 2;");
    static uint32_t other[H][W];
    open_session(&(const struct cox_session_params){
        .passes = COX_LIST(struct cox_pass, {.source = source, .kernel = "f"}, {.kernel = "g", .fused = true})});
    run_frames(&(const struct cox_frame){.data = COX_ARGS(in, out, other)});
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            expected[y][x] = in[y][x] + 1;
            cr_assert_eq(other[y][x], in[y][x] + 2);
        }
    check_out();
}

/* A histogram of the low bits becomes a table in the constants. */
struct constants {
    uint32_t unused;
    uint32_t table[4];
};

static void add_counts(void *into, const void *partial, size_t bytes, void *user)
{
    cr_assert(user == &runtime && bytes == 4 * sizeof(uint32_t));
    for (int i = 0; i < 4; i++)
        ((uint32_t *)into)[i] += ((const uint32_t *)partial)[i];
}

static void make_table(void *user, void *const *buffers, void *constants)
{
    cr_assert_eq(user, &session);
    memcpy(((struct constants *)constants)->table, buffers[2], 4 * sizeof(uint32_t));
}

static const char counting[] = KERNEL(
    "count", "global const uint *in, global uint *counts",
    "atomic_inc(&counts[in[y * columns + x] >> 30]);") "typedef struct { uint value[4]; } table_t;\n"
                                                       "typedef struct { uint unused; table_t table; } all_t;\n" KERNEL(
                                                           "by_field",
                                                           "global const uint *in, global uint *out, table_t table",
                                                           "out[y * columns + x] = table.value[in[y * columns + x] >> "
                                                           "30];")
                                                           KERNEL("by_struct",
                                                                  "global const uint *in, global uint *out, all_t "
                                                                  "constants",
                                                                  "out[y * columns + x] = constants.table.value[in[y * "
                                                                  "columns + x] >> 30];")
                                                               KERNEL(
                                                                   "by_buffer",
                                                                   "global const uint *in, global uint *out, constant "
                                                                   "uint *counts",
                                                                   "out[y * columns + x] = counts[in[y * columns + x] "
                                                                   ">> 30];");

Test(front_door, what_is_merged_steers_the_next_pass)
{
    static const char *const kernels[] = {"by_field", "by_struct", "by_buffer"};
    static uint32_t counts[4], told[4];
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            counts[in[y][x] >> 30]++;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            expected[y][x] = counts[in[y][x] >> 30];
    for (size_t k = 0; k < 3; k++) {
        memset(out, 0, sizeof out);
        open_session(&(const struct cox_session_params){
            .passes = COX_LIST(struct cox_pass,
                               {.source = counting, .kernel = "count", .done = make_table, .done_user = &session},
                               {.source = counting, .kernel = kernels[k]}),
            .buffers =
                COX_LIST(struct cox_buffer_layout, {.name = "in"}, {.name = "out"},
                         {.name = "counts", .bytes = sizeof counts, .merge = add_counts, .merge_user = &runtime}),
            .fields = k == 0 ? COX_LIST(struct cox_field, COX_FIELD(struct constants, table)) : NULL,
            .constants_bytes = sizeof(struct constants)});
        run_frames(&(const struct cox_frame){.data = COX_ARGS(in, out, told)});
        check_out();
        cr_expect_arr_eq(told, counts, sizeof counts);
        cox_session_destroy(&session);
    }
}

Test(front_door, buffers_have_pitches_and_sizes_of_their_own)
{
    static const char source[] =
        KERNEL("f",
               "global const uint *in, int in_pitch, global uint *half_rows, global uint *out, constant uint *table",
               "uint v = in[y * in_pitch + x] + table[x & 3]; out[y * columns + x] = v;"
               "if (y % 2 == 0) half_rows[y / 2 * columns + x] = v;");
    enum { PITCH = W + 24 };
    static uint32_t wide[H][PITCH], half_rows[H / 2][W], table[4] = {1, 20, 300, 4000};
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            wide[y][x] = in[y][x];
            expected[y][x] = in[y][x] + table[x & 3];
        }
    open_session(&(const struct cox_session_params){
        .passes = COX_LIST(struct cox_pass,
                           {.source = source,
                            .arguments = COX_LIST(struct cox_argument, {.name = "table", .whole = true})}),
        .buffers = COX_LIST(struct cox_buffer_layout, {.name = "table", .bytes = sizeof table}, {.name = "out"},
                            {.name = "half_rows", .row_divisor = 2}, {.name = "in", .pitch_bytes = sizeof wide[0]})});
    run_frames(&(const struct cox_frame){.data = COX_ARGS(table, out, half_rows, wide)});
    check_out();
    for (int y = 0; y < H; y += 2)
        cr_expect_arr_eq(half_rows[y / 2], expected[y], sizeof expected[0]);
}

Test(front_door, a_buffer_may_be_changed_in_place)
{
    static const char source[] = KERNEL("f", "global uint *data", "data[y * columns + x] += 3;");
    open_session(&(const struct cox_session_params){
        .passes = COX_LIST(struct cox_pass,
                           {.source = source,
                            .arguments = COX_LIST(struct cox_argument, {.name = "data", .in_place = true})}),
        .warmup = COX_WARMUP_NONE});
    memcpy(out, in, sizeof out);
    cr_assert_eq(cox_session_run(session, &(const struct cox_frame){.data = COX_ARGS(out)}), COX_OK, "%s", logged);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            expected[y][x] = in[y][x] + 3;
    check_out();
}

Test(front_door, local_memory_and_work_groups_are_as_asked)
{
    static const char source[] =
        "kernel void f(global const uint *in, global uint *out, local uint *room, int columns, int rows)\n"
        "{ int x = get_global_id(0), y = get_global_id(1), i = get_local_id(1) * get_local_size(0) + get_local_id(0);\n"
        "  room[i] = x < columns && y < rows ? in[y * columns + x] : 0;\n"
        "  barrier(CLK_LOCAL_MEM_FENCE);\n"
        "  if (x < columns && y < rows) out[y * columns + x] = room[i] + get_local_size(0) * 100 + get_local_size(1); "
        "}\n";
    open_session(&(const struct cox_session_params){
        .passes = COX_LIST(struct cox_pass,
                           {.source = source,
                            .local_columns = 8,
                            .local_rows = 4,
                            .arguments = COX_LIST(struct cox_argument, {.name = "room", .local_bytes = 4 * 32})})});
    run_frames(&(const struct cox_frame){.data = COX_ARGS(in, out)});
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            expected[y][x] = in[y][x] + 804;
    check_out();
}

Test(front_door, an_image_is_a_buffer_with_a_format)
{
    static const char source[] =
        "constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;\n" KERNEL(
            "f", "read_only image2d_t in, global uint *out",
            "out[y * columns + x] = read_imageui(in, nearest, (int2)(x, y)).x + 1;");
    cox_status status =
        cox_session_create(runtime,
                           &(const struct cox_session_params){.columns = W,
                                                              .rows = H,
                                                              .passes = COX_LIST(struct cox_pass, {.source = source}),
                                                              .buffers = COX_LIST(struct cox_buffer_layout,
                                                                                  {.name = "in",
                                                                                   .pitch_bytes = sizeof in[0],
                                                                                   .image_order = CHANNEL_R,
                                                                                   .image_type = CHANNEL_UINT32,
                                                                                   .image_columns = W},
                                                                                  {.name = "out"})},
                           &session);
    if (status == COX_E_UNSUPPORTED)
        cr_skip_test("skipped, because no device here has images: %s", logged);
    cr_assert_eq(status, COX_OK, "%s", logged);
    run_frames(&(const struct cox_frame){.data = COX_ARGS(in, out)});
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            expected[y][x] = in[y][x] + 1;
    check_out();
}

/* The kernel of one device writes 1, the other kernel writes 2. */
Test(front_door, variants_and_devices_are_chosen_by_a_text)
{
    static const char two[] = KERNEL("f", "global uint *out", "out[y * columns + x] = 2;");
    static const char one[] = KERNEL("f", "global uint *out", "out[y * columns + x] = 1;");
    const uint32_t last = cox_runtime_device_count(runtime) - 1;
    char text[16];
    snprintf(text, sizeof text, "#%u", last);
    const struct cox_pass variants[] = {
        {.devices = "nowhere", .source = "no kernel"}, {.devices = text, .source = one}, {.devices = NULL}};
    const char *const devices[] = {NULL, text, " cpu , #0 ", "all"};
    for (size_t d = 0; d < 4; d++) {
        memset(out, 0, sizeof out);
        open_session(&(const struct cox_session_params){
            .passes = COX_LIST(struct cox_pass, {.source = two, .variants = variants}),
            .devices = devices[d],
            .policy = "static"});
        run_frames(&(const struct cox_frame){.data = COX_ARGS(out)});
        struct cox_session_info info;
        cox_session_info(session, &info);
        cr_expect_eq(info.device_count, d == 1 ? 1 : last + 1);
        uint32_t seen = 0;
        for (int y = 0; y < H; y++)
            seen |= out[y][0];
        cr_expect_eq(seen, d == 1 || last == 0 ? 1 : 3);
        cox_session_destroy(&session);
    }
    open_session(&(const struct cox_session_params){
        .passes = COX_LIST(struct cox_pass, {.source = two, .variants = variants, .devices = text})});
    run_frames(&(const struct cox_frame){.data = COX_ARGS(out)});
    for (int y = 0; y < H; y++)
        cr_expect_eq(out[y][0], 1);
}

static const char copying[] = KERNEL("f", "global const uint *in, global uint *out",
                                     "out[y * columns + x] = in[y * columns + x];");

Test(front_door, devices_may_join_in_the_background)
{
    open_session(&(const struct cox_session_params){.passes = COX_LIST(struct cox_pass, {.source = copying}),
                                                    .warmup = COX_WARMUP_BACKGROUND});
    run_frames(&(const struct cox_frame){.data = COX_ARGS(in, out)});
    memcpy(expected, in, sizeof expected);
    check_out();
}

static cox_status submit(const struct cox_frame *frame)
{
    return cox_session_submit(session, frame, NULL, NULL);
}

Test(front_door, a_frame_gives_every_buffer_once)
{
    static const char scratch[] = KERNEL("f", "global const uint *in, global uint *between",
                                         "between[y * columns + x] = in[y * columns + x] + 1;")
        KERNEL("g", "global const uint *between, global uint *out", "out[y * columns + x] = between[y * columns + x];");
    cox_buffer *buffers[3] = {NULL};
    for (int i = 0; i < 3; i++)
        cr_assert_eq(cox_buffer_create(runtime, sizeof in, &buffers[i]), COX_OK);
    memcpy(cox_buffer_data(buffers[0]), in, sizeof in);
    open_session(&(const struct cox_session_params){
        .passes = COX_LIST(struct cox_pass, {.source = scratch, .kernel = "f"}, {.kernel = "g"}),
        .buffers = COX_LIST(struct cox_buffer_layout, {.name = "in"}, {.name = "between", .scratch = true},
                            {.name = "out"})});
    cr_assert_eq(submit(&(const struct cox_frame){.buffers = COX_BUFFERS(buffers[0], buffers[1])}), COX_OK, "%s",
                 logged);
    cr_assert_eq(cox_session_wait(session), COX_OK);
    memcpy(out, cox_buffer_data(buffers[1]), sizeof out);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            expected[y][x] = in[y][x] + 1;
    check_out();

    const struct {
        struct cox_frame frame;
        const char *line;
    } cases[] = {
        {{.buffers = COX_BUFFERS(buffers[0])}, "needs 2 buffers; `buffers` lists 1"},
        {{.buffers = NULL}, "needs 2 buffers; `buffers` lists 0"},
        {{.buffers = COX_BUFFERS(buffers[0], buffers[1], buffers[2])}, "`buffers` lists 3 or more"},
        {{.data = COX_ARGS(in, out)}, "`data` is for cox_session_run only"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        logged[0] = '\0';
        cr_expect_eq(submit(&cases[i].frame), COX_E_INVALID);
        cr_expect(strstr(logged, cases[i].line), "expected '%s', got: %s", cases[i].line, logged);
    }
    cr_expect_eq(submit(NULL), COX_E_INVALID);
    cr_expect_eq(cox_session_run(session, NULL), COX_E_INVALID);
    cr_expect_eq(cox_session_run(session, &(const struct cox_frame){.data = COX_ARGS(in)}), COX_E_INVALID);
    cr_expect_eq(cox_session_run(NULL, &(const struct cox_frame){.data = COX_ARGS(in)}), COX_E_INVALID);
    for (int i = 0; i < 3; i++)
        cox_buffer_destroy(&buffers[i]);
}

/* ---- what is refused ---- */

static void refuse(const char *line, const struct cox_session_params *params)
{
    logged[0] = '\0';
    cr_expect_neq(cox_session_create(runtime, params, &session), COX_OK, "%s", line);
    cr_expect_null(session);
    cr_expect(strstr(logged, line), "expected '%s', got: %s", line, logged);
}

#define PASSES(...) .columns = W, .rows = H, .passes = COX_LIST(struct cox_pass, __VA_ARGS__)
#define PARAMS(...) (&(const struct cox_session_params){__VA_ARGS__})
#define BUFFERS_OF(...) .buffers = COX_LIST(struct cox_buffer_layout, __VA_ARGS__)
#define ARGUMENTS(...) .arguments = COX_LIST(struct cox_argument, __VA_ARGS__)

Test(front_door, says_what_does_not_hold_together)
{
    static const char between[] = KERNEL("f",
                                         "global const uint *in, int in_first_row, global uint *b, int b_first_row", "")
        KERNEL("g", "global const uint *b, int b_first_row, global uint *out", "");
    refuse("a frame of 2147483648 columns",
           PARAMS(.columns = 1u << 31, .rows = H, .passes = COX_LIST(struct cox_pass, {.source = copying})));
    refuse("and 0 rows", PARAMS(.columns = W, .passes = COX_LIST(struct cox_pass, {.source = copying})));
    refuse("the session has no passes", PARAMS(.columns = W, .rows = H));
    refuse("the session has no passes", PARAMS(PASSES({.options = "-DX"})));
    refuse("pass f has no source", PARAMS(PASSES({.kernel = "f"})));
    refuse("the first pass cannot be fused", PARAMS(PASSES({.source = copying, .fused = true})));
    refuse("a fused pass cannot set rows, devices, policy or `done`",
           PARAMS(PASSES({.source = copying}, {.kernel = "f", .fused = true, .done = make_table})));
    refuse("kernel f has no parameter 'inn'", PARAMS(PASSES({.source = copying, ARGUMENTS({.name = "inn"})})));
    refuse("kernel f takes 'out', which is not in `buffers`",
           PARAMS(PASSES({.source = copying}), BUFFERS_OF({.name = "in"})));
    refuse("buffer spare is in `buffers`, but no pass uses it",
           PARAMS(PASSES({.source = copying}),
                  BUFFERS_OF({.name = "in"}, {.name = "out"}, {.name = "spare", .pitch_bytes = 4 * W})));
    refuse("buffer in is listed twice",
           PARAMS(PASSES({.source = copying}), BUFFERS_OF({.name = "in"}, {.name = "in"})));
    refuse("'in': local_bytes is set, but it is not local",
           PARAMS(PASSES({.source = copying, ARGUMENTS({.name = "in", .local_bytes = 4})})));
    refuse("'rows': a field for buffers is set, but it is not a buffer",
           PARAMS(PASSES({.source = copying, ARGUMENTS({.name = "rows", .halo_rows = 1})})));
    refuse("'in': in_place is set, but the kernel only reads it",
           PARAMS(PASSES({.source = copying, ARGUMENTS({.name = "in", .in_place = true})})));
    refuse("'in': halo_rows and whole are both set",
           PARAMS(PASSES({.source = copying, ARGUMENTS({.name = "in", .whole = true, .halo_rows = 1})})));
    refuse("buffer in: fused kernels set different row_divisor",
           PARAMS(PASSES({.source = copying}, {.source = KERNEL("g", "global const uint *in, global uint *other", ""),
                                               .fused = true,
                                               ARGUMENTS({.name = "in", .row_divisor = 2})})));
    refuse("'in_pitch' has no value",
           PARAMS(PASSES({.source = KERNEL("f", "global const uint *in, int in_pitch, global uint *out", "")}),
                  BUFFERS_OF({.name = "in", .pitch_bytes = 4 * W + 2}, {.name = "out"})));
    refuse("'int constants' has 4 bytes, but constants_bytes is 8",
           PARAMS(PASSES({.source = KERNEL("f", "global uint *out, int constants", "")}), .constants_bytes = 8));
    refuse("unknown parameter 'gain'", PARAMS(PASSES({.source = KERNEL("f", "global uint *out, float gain", "")})));
    refuse("'first_row' must be an int, not float",
           PARAMS(PASSES({.source = KERNEL("f", "global uint *out, float first_row", "")})));
    refuse("'float gain' has 4 bytes, but the field of that name has 16",
           PARAMS(PASSES({.source = KERNEL("f", "global uint *out, float gain", "")}), .constants_bytes = 64,
                  .fields = COX_LIST(struct cox_field, {"gain", 0, 16})));
    refuse("field gain has 16 bytes at offset 56, but constants_bytes is only 64",
           PARAMS(PASSES({.source = KERNEL("f", "global uint *out, float4 gain", "")}), .constants_bytes = 64,
                  .fields = COX_LIST(struct cox_field, {"gain", 56, 16})));
    refuse("field gain is in `fields`, but no kernel takes it",
           PARAMS(PASSES({.source = copying}), .constants_bytes = 64,
                  .fields = COX_LIST(struct cox_field, {"gain", 0, 4})));
    refuse("field gain is listed twice",
           PARAMS(PASSES({.source = KERNEL("f", "global uint *out, float gain", "")}), .constants_bytes = 64,
                  .fields = COX_LIST(struct cox_field, {"gain", 0, 4}, {"gain", 4, 4})));
    refuse("constants_bytes is 64, but no kernel takes `constants` or a field, and no pass has `done`",
           PARAMS(PASSES({.source = copying}), .constants_bytes = 64));
    refuse("'rows': a field for buffers is set, but it is not a buffer",
           PARAMS(PASSES({.source = copying, ARGUMENTS({.name = "rows", .row_divisor = 2})})));
    refuse("a variant of kernel f sets columns or rows; allowed: source, code,",
           PARAMS(PASSES({.source = copying,
                          .variants = COX_LIST(struct cox_pass, {.source = copying, .columns = W})})));
    refuse("a variant of kernel f sets arguments",
           PARAMS(PASSES({.source = copying,
                          .variants = COX_LIST(struct cox_pass,
                                               {.source = copying, ARGUMENTS({.name = "in", .whole = true})})})));
    refuse("a variant of kernel f sets kernel",
           PARAMS(PASSES({.source = copying,
                          .variants = COX_LIST(struct cox_pass, {.source = copying, .kernel = "g"})})));
    refuse("a variant of kernel f sets done",
           PARAMS(PASSES({.source = copying,
                          .variants = COX_LIST(struct cox_pass, {.source = copying, .done = make_table})})));
    refuse("a variant of kernel f has neither source nor code",
           PARAMS(PASSES({.source = copying, .variants = COX_LIST(struct cox_pass, {.options = "-DX"})})));
    refuse("kernel f takes constants, but constants_bytes is 0",
           PARAMS(PASSES({.source = KERNEL("f", "global uint *out, struct s constants", "")})));
    refuse(
        "buffer out has 64 bytes, but a kernel uses it by rows: 96 rows of 160 bytes; set a larger `bytes`, or `merge`",
        PARAMS(PASSES({.source = copying}), BUFFERS_OF({.name = "in"}, {.name = "out", .bytes = 64})));
    refuse("constants of 4096 bytes", PARAMS(PASSES({.source = copying}), .constants_bytes = 4096));
    refuse("'room' is local memory", PARAMS(PASSES({.source = KERNEL("f", "global uint *out, local int *room", "")})));
    refuse("'in' is an image", PARAMS(PASSES({.source = KERNEL("f", "read_only image2d_t in, global uint *out", "")}),
                                      BUFFERS_OF({.name = "in", .pitch_bytes = 4 * W}, {.name = "out"})));
    refuse("buffer out has `merge`; set its `bytes`",
           PARAMS(PASSES({.source = copying}), BUFFERS_OF({.name = "in"}, {.name = "out", .merge = add_counts})));
    refuse("buffer in: unknown element size",
           PARAMS(PASSES({.source = KERNEL("f", "global const t *in, global uint *out", "")})));
    refuse("buffer in has halo rows, so its pointer begins before the band",
           PARAMS(PASSES({.source = copying, ARGUMENTS({.name = "in", .halo_rows = 1})})));
    refuse("buffer out has halo_rows set, but a kernel writes it",
           PARAMS(PASSES({.source = copying, ARGUMENTS({.name = "out", .halo_rows = 1})})));
    refuse("buffer out has `merge`, but `halo_rows` is 1",
           PARAMS(PASSES({.source = copying, ARGUMENTS({.name = "out", .halo_rows = 1})}),
                  BUFFERS_OF({.name = "in"}, {.name = "out", .bytes = 64, .merge = add_counts})));
    refuse("buffer out is read whole and written",
           PARAMS(PASSES({.source = copying, ARGUMENTS({.name = "out", .whole = true})})));
    refuse("buffer b is written by a pass and read by one fused to it",
           PARAMS(PASSES({.source = between, .kernel = "f"}, {.kernel = "g", .fused = true})));
    refuse("'#99' matches none", PARAMS(PASSES({.source = copying}), .devices = "#99"));
    refuse("'' matches none", PARAMS(PASSES({.source = copying}), .devices = ""));
    refuse("'gpu:' matches none", PARAMS(PASSES({.source = copying, .devices = "gpu:"})));
    refuse("warmup: 9", PARAMS(PASSES({.source = copying}), .warmup = (enum cox_warmup)9));
    refuse("too many passes; at most 8",
           PARAMS(PASSES({.source = copying}, {.kernel = "f"}, {.kernel = "f"}, {.kernel = "f"}, {.kernel = "f"},
                         {.kernel = "f"}, {.kernel = "f"}, {.kernel = "f"}, {.kernel = "f"})));
    cr_expect_eq(cox_session_create(runtime, NULL, &session), COX_E_INVALID);
    cr_expect_eq(cox_session_create(NULL, PARAMS(PASSES({.source = copying})), &session), COX_E_INVALID);
    cr_expect_eq(cox_session_create(runtime, PARAMS(PASSES({.source = copying})), NULL), COX_E_INVALID);
}

/* ---- pipelines of the library ---- */

Test(front_door, a_pipeline_of_the_library_stands_for_passes)
{
    const struct cox_filter_shape shape = {.width = W,
                                           .height = H,
                                           .in_pitch_bytes = sizeof in[0],
                                           .out_pitch_bytes = sizeof out[0],
                                           .radius_x = 1,
                                           .radius_y = 1};
    const float weights[9] = {0, 0, 0, 0, 2, 0, 0, 0, 0};
    static float from[H][W], to[H][W];
    struct cox_constants params;
    cox_pipeline *pipeline = NULL;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            from[y][x] = (float)(y * W + x);
    cr_assert_eq(cox_filter_convolution(&shape, &pipeline), COX_OK);
    cr_assert_eq(cox_filter_convolution_prepare(&shape, &(const struct cox_filter_weights){.across = weights}, &params),
                 COX_OK);
    refuse("a session has either `pipeline`, or `passes`",
           PARAMS(.pipeline = pipeline, .passes = COX_LIST(struct cox_pass, {.source = copying})));
    open_session(&(const struct cox_session_params){.pipeline = pipeline});
    cox_pipeline_destroy(&pipeline);
    cr_assert_null(pipeline);
    cox_pipeline_destroy(&pipeline);
    cox_pipeline_destroy(NULL);
    run_frames(&(const struct cox_frame){.data = COX_ARGS(from, to), .constants = &params});
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            cr_assert_eq(to[y][x], 2 * from[y][x]);

    const struct cox_filter_shape wrong = {.width = 0};
    cr_expect_eq(cox_filter_convolution(&wrong, &pipeline), COX_E_INVALID);
    cr_expect_null(pipeline);
    cr_expect_eq(cox_filter_convolution(&shape, NULL), COX_E_INVALID);
}

/* All variants of a pipeline's kernels give the same bits. */
Test(front_door, a_pipeline_runs_in_the_form_of_any_type)
{
    const struct cox_tonemap_shape shape = {
        .width = W, .height = H, .in = COX_PIXEL_RGBA_FLOAT, .in_pitch_bytes = W * 16, .out_pitch_bytes = W * 4};
    static float light[H][W][4];
    static uint32_t mapped[3][H][W];
    struct cox_constants params;
    cr_assert_eq(cox_tonemap_prepare(&shape, &(const struct cox_tonemap_settings){.exposure_stops = 1}, &params),
                 COX_OK);
    for (int i = 0; i < H * W * 4; i++)
        (&light[0][0][0])[i] = (float)(i % 97) / 10;
    for (int form = 0; form < 3; form++) {
        static const enum cox_device_type types[] = {COX_DEVICE_CPU, COX_DEVICE_GPU};
        cox_pipeline *pipeline = NULL;
        cr_assert_eq(cox_tonemap_mapping(&shape, &pipeline), COX_OK);
        if (form < 2)
            cr_assert_eq(cox_pipeline_use_variant(pipeline, types[form]), COX_OK);
        open_session(&(const struct cox_session_params){.pipeline = pipeline});
        cox_pipeline_destroy(&pipeline);
        run_frames(&(const struct cox_frame){.data = COX_ARGS(light, mapped[form]), .constants = &params});
        cr_expect(memcmp(mapped[form], mapped[0], sizeof mapped[0]) == 0, "form %d", form);
        cox_session_destroy(&session);
    }
    cr_expect_eq(cox_pipeline_use_variant(NULL, COX_DEVICE_CPU), COX_E_INVALID);
}
