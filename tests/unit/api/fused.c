/* Passes that are fused: what one hands on to a later one, on each set-up of devices that this machine has.
 * SPDX-License-Identifier: Apache-2.0 */
#include "setups.h"

enum { W = 24, H = 96, FRAMES = 4 };

static uint32_t in[H][W], out[H][W], expected[H][W];

static void fill(void)
{
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
            in[y][x] = (y * W + x) * 2654435761u;
}

static void setup(void)
{
    with_llvmpipe();
    fill();
}

TestSuite(fused, .init = setup, .fini = close_setup, .timeout = 600);

static void open_devices(const char *devices)
{
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = devices,
                                                                                    .log = on_log,
                                                                                    .log_level = COX_LOG_WARN},
                                                 &runtime);
    if (status)
        cr_skip_test("skipped, because there is no such device as %s: %s", devices, cox_status_text(status));
    logged[0] = '\0';
}

static void run_frames(const struct cox_session_params *params, const void *const *data)
{
    cr_assert_eq(cox_session_create(runtime, params, &session), COX_OK, "%s", logged);
    for (int f = 0; f < FRAMES; f++) {
        memset(out, 0xee, sizeof out);
        cr_assert_eq(cox_session_run(session, &(const struct cox_frame){.data = data}), COX_OK, "%s", logged);
        cr_assert(memcmp(out, expected, sizeof out) == 0, "frame %d: %s", f, logged);
    }
    cox_session_destroy(&session);
}

/* ---- chains ---- */

/* Each pass combines neighbouring rows of one buffer, or of two. */
static const char near[] =
    "kernel void near(global const uint *from, int from_first_row, global uint *to, int to_first_row, int columns,\n"
    "                 int rows, int first_row, int frame_rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1), row = first_row + y;\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    int up = max(row - 1, 0), down = min(row + 1, frame_rows - 1);\n"
    "    to[(row - to_first_row) * columns + x] = from[(up - from_first_row) * columns + x] * 3 +\n"
    "        from[(row - from_first_row) * columns + x] * 5 + from[(down - from_first_row) * columns + x] * 7 + x;\n"
    "}\n"
    "kernel void both(global const uint *from, int from_first_row, global const uint *also, int also_first_row,\n"
    "                 global uint *to, int to_first_row, int columns, int rows, int first_row, int frame_rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1), row = first_row + y;\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    int up = max(row - 1, 0), down = min(row + 1, frame_rows - 1);\n"
    "    to[(row - to_first_row) * columns + x] = from[(up - from_first_row) * columns + x] +\n"
    "        also[(down - also_first_row) * columns + x] * 11;\n"
    "}\n";

static void near_rows(uint32_t from[H][W], uint32_t to[H][W])
{
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
            to[y][x] = from[y ? y - 1 : 0][x] * 3 + from[y][x] * 5 + from[y < H - 1 ? y + 1 : y][x] * 7 + x;
}

static void both_rows(uint32_t from[H][W], uint32_t also[H][W], uint32_t to[H][W])
{
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
            to[y][x] = from[y ? y - 1 : 0][x] + also[y < H - 1 ? y + 1 : y][x] * 11;
}

#define NEAR(from_name, to_name, ...)                                                                        \
    {                                                                                                        \
        .kernel = "near", .source = near,                                                                    \
        ARGUMENTS({.name = "from", .buffer = from_name, .halo_rows = 1}, {.name = "to", .buffer = to_name}), \
        __VA_ARGS__                                                                                          \
    }
#define BOTH(from_name, also_name, to_name)                                                                  \
    {                                                                                                        \
        .kernel = "both", .source = near,                                                                    \
        ARGUMENTS({.name = "from", .buffer = from_name, .halo_rows = 1},                                     \
                  {.name = "also", .buffer = also_name, .halo_rows = 1}, {.name = "to", .buffer = to_name}), \
        .fused = true                                                                                        \
    }

static const char *const chain_devices[] = {"cpu:2x1=shared", "cpu:2x1=mapped", "cpu:2x1=staged", "gpu"};

/* Scratch whose last reader has run gives its memory to later scratch (slot.c). */
Test(fused, eight_passes_give_the_same_as_eight_frames)
{
    static uint32_t rows[2][H][W];
    memcpy(rows[0], in, sizeof in);
    for (int s = 0; s < 8; s++)
        near_rows(rows[s % 2], rows[1 - s % 2]);
    memcpy(expected, rows[0], sizeof expected);

    for (size_t d = 0; d < sizeof chain_devices / sizeof *chain_devices; d++) {
        open_devices(chain_devices[d]);
        run_frames(PARAMS(PASSES(NEAR("in", "s1"), NEAR("s1", "s2", .fused = true), NEAR("s2", "s3", .fused = true),
                                 NEAR("s3", "s4", .fused = true), NEAR("s4", "s5", .fused = true),
                                 NEAR("s5", "s6", .fused = true), NEAR("s6", "s7", .fused = true),
                                 NEAR("s7", "out", .fused = true)),
                          BUFFERS_OF({.name = "in"}, {.name = "out"}, {.name = "s1", .scratch = true},
                                     {.name = "s2", .scratch = true}, {.name = "s3", .scratch = true},
                                     {.name = "s4", .scratch = true}, {.name = "s5", .scratch = true},
                                     {.name = "s6", .scratch = true}, {.name = "s7", .scratch = true})),
                   COX_ARGS(in, out));
    }
}

/* s1 is read by the second and the last pass, and the buffers are listed in another order than they are written. */
Test(fused, scratch_keeps_its_rows_until_its_last_reader_has_run)
{
    static uint32_t s1[H][W], s2[H][W], s3[H][W], s4[H][W];
    near_rows(in, s1);
    near_rows(s1, s2);
    near_rows(s2, s3);
    near_rows(s3, s4);
    both_rows(s4, s1, expected);

    for (size_t d = 0; d < sizeof chain_devices / sizeof *chain_devices; d++) {
        open_devices(chain_devices[d]);
        run_frames(PARAMS(PASSES(NEAR("in", "s1"), NEAR("s1", "s2", .fused = true), NEAR("s2", "s3", .fused = true),
                                 NEAR("s3", "s4", .fused = true), BOTH("s4", "s1", "out")),
                          BUFFERS_OF({.name = "in"}, {.name = "out"}, {.name = "s4", .scratch = true},
                                     {.name = "s3", .scratch = true}, {.name = "s1", .scratch = true},
                                     {.name = "s2", .scratch = true})),
                   COX_ARGS(in, out));
    }
}

/* ---- one buffer, several fused passes ---- */

#define AT                                                                                       \
    "{ int x = get_global_id(0), y = get_global_id(1); if (x >= columns || y >= rows) return;\n" \
    "  size_t at = (size_t)y * columns + x;\n"
#define OWN_AT                                                                                            \
    "{ int x = get_global_id(0), y = get_global_id(1); if (x >= columns || y >= rows) return;\n"          \
    "  size_t at = (size_t)y * columns + x, own = (size_t)(first_row + y - s_first_row) * columns + x,\n" \
    "         here = (size_t)(first_row + y - in_first_row) * columns + x;\n"
#define PLACES "int columns, int rows, int first_row"

static const char several[] =
    "kernel void copy(global const uint *in, global uint *out, int columns, int rows)\n" AT
    "  out[at] = in[at] * 3; }\n"
    "kernel void add(global uint *out, int columns, int rows)\n" AT "  out[at] += y % 7 + x; }\n"
    "kernel void odd(global const uint *in, global uint *out, int columns, int rows)\n" AT
    "  if (x & 1) out[at] = ~in[at]; }\n"
    "kernel void write_s(global const uint *in, int in_first_row, global uint *s, int s_first_row, " PLACES ")\n" OWN_AT
    "  s[own] = in[here]; }\n"
    "kernel void read_s(global const uint *s, int s_first_row, global const uint *in, int in_first_row,\n"
    "                   global uint *out, " PLACES ")\n" OWN_AT "  out[at] = s[own] + in[here]; }\n"
    "kernel void change_s(global const uint *in, int in_first_row, global uint *s, int s_first_row, " PLACES
    ")\n" OWN_AT "  s[own] += in[here]; }\n"
    "kernel void twice(global uint *s, int s_first_row, global const uint *old, global const uint *in,\n"
    "                  int in_first_row, " PLACES ")\n" OWN_AT "  s[own] = old[own] + in[here]; }\n"
    "kernel void count(global const uint *in, global uint *sum, int columns, int rows)\n" AT
    "  atomic_add(sum, in[at] & 7); }\n"
    "kernel void scale(global const uint *in, global const uint *sum, global uint *out, int columns, int rows)\n" AT
    "  out[at] = in[at] * sum[0]; }\n"
    "kernel void later(global const uint *s, global uint *other, int columns, int rows)\n" AT "  other[at] = s[at]; }\n"
    "kernel void early(global uint *s, int columns, int rows)\n" AT "  s[at] = y; }\n";

#define SCRATCH BUFFERS_OF({.name = "in"}, {.name = "s", .scratch = true}, {.name = "out"})

Test(fused, passes_that_write_the_same_output_write_it_in_their_order)
{
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
            expected[y][x] = x & 1 ? ~in[y][x] : in[y][x] * 3;

    for (size_t d = 0; d < sizeof chain_devices / sizeof *chain_devices; d++) {
        open_devices(chain_devices[d]);
        run_frames(PARAMS(PASSES({.source = several, .kernel = "copy"},
                                 {.kernel = "odd", .fused = true, ARGUMENTS({.name = "out", .partial = true})})),
                   COX_ARGS(in, out));
        run_frames(PARAMS(PASSES({.source = several, .kernel = "copy"},
                                 {.kernel = "odd", .fused = true, ARGUMENTS({.name = "out", .in_place = true})})),
                   COX_ARGS(in, out));
    }
}

Test(fused, scratch_that_two_passes_write_is_refused)
{
    open_any();
    refuse(COX_E_INVALID,
           "buffer s is written by passes[0] (write_s) and by passes[1] (change_s), which are fused; use a scratch "
           "buffer for each",
           PARAMS(PASSES({.source = several, .kernel = "write_s"},
                         {.kernel = "change_s", .fused = true, ARGUMENTS({.name = "s", .in_place = true})},
                         {.kernel = "read_s", .fused = true}),
                  SCRATCH));

    /* With a reader in between. A pass's own name is said, not its kernel's. */
    refuse(COX_E_INVALID, "buffer s is written by passes[0] (the first) and by passes[2] (write_s)",
           PARAMS(PASSES({.source = several, .kernel = "write_s", .name = "the first"},
                         {.kernel = "read_s", .fused = true}, {.kernel = "write_s", .fused = true},
                         {.kernel = "read_s", .fused = true}),
                  SCRATCH));

    /* The second group counts its passes as `passes` does. */
    refuse(COX_E_INVALID, "buffer s is written by passes[1] (write_s) and by passes[2] (write_s)",
           PARAMS(PASSES({.source = several, .kernel = "copy", ARGUMENTS({.name = "out", .buffer = "first"})},
                         {.kernel = "write_s"}, {.kernel = "write_s", .fused = true},
                         {.kernel = "read_s", .fused = true}),
                  BUFFERS_OF({.name = "in"}, {.name = "s", .scratch = true}, {.name = "out"}, {.name = "first"})));
}

Test(fused, scratch_that_a_pass_reads_and_writes_is_refused)
{
    open_any();
    refuse(COX_E_INVALID, "buffer s is both read and written by passes[0] (twice); use two buffers",
           PARAMS(PASSES({.source = several, .kernel = "twice", ARGUMENTS({.name = "old", .buffer = "s"})},
                         {.kernel = "read_s", .fused = true}),
                  SCRATCH));
    refuse(COX_E_INVALID, "buffer s is both read and written by passes[0] (change_s); use two buffers",
           PARAMS(PASSES({.source = several, .kernel = "change_s", ARGUMENTS({.name = "s", .in_place = true})},
                         {.kernel = "read_s", .fused = true}),
                  SCRATCH));
    refuse(COX_E_INVALID, "buffer s is written by passes[0] (write_s) and by passes[1] (twice), which are fused",
           PARAMS(PASSES({.source = several, .kernel = "write_s"},
                         {.kernel = "twice", .fused = true, ARGUMENTS({.name = "old", .buffer = "s"})},
                         {.kernel = "read_s", .fused = true}),
                  SCRATCH));

    /* Without fused passes, too. */
    refuse(COX_E_INVALID, "buffer s is both read and written by passes[0] (twice); use two buffers",
           PARAMS(PASSES({.source = several, .kernel = "twice", ARGUMENTS({.name = "old", .buffer = "s"})}),
                  BUFFERS_OF({.name = "in"}, {.name = "s"})));
}

Test(fused, scratch_that_is_read_before_it_is_written_is_refused)
{
    open_any();
    refuse(COX_E_INVALID,
           "buffer s is read by passes[0] (read_s) before passes[1] (write_s), which is fused to it, writes it; use "
           "two buffers",
           PARAMS(PASSES({.source = several, .kernel = "read_s"}, {.kernel = "write_s", .fused = true},
                         {.kernel = "read_s", .fused = true}),
                  SCRATCH));
    refuse(COX_E_INVALID, "buffer s is read by a pass and written by one fused to it; use two buffers",
           PARAMS(PASSES({.source = several, .kernel = "read_s"}, {.kernel = "write_s", .fused = true}), SCRATCH));
    refuse(COX_E_INVALID, "(s): scratch is read before any pass has written it",
           PARAMS(PASSES({.source = several, .kernel = "read_s"}, {.kernel = "copy", .fused = true}), SCRATCH));
}

Test(fused, scratch_between_fused_passes_is_refused_to_other_passes)
{
    static const struct cox_buffer_layout layouts[] = {
        {.name = "in"}, {.name = "s", .scratch = true}, {.name = "out"}, {.name = "other"}, {.name = NULL}};
    open_any();
    refuse(COX_E_INVALID, "pass 1 (later), buffer 1 (s): pass 0 uses it too",
           PARAMS(PASSES({.source = several, .kernel = "write_s"}, {.kernel = "read_s", .fused = true},
                         {.kernel = "later"}),
                  .buffers = layouts));
    refuse(COX_E_INVALID, "use a scratch buffer for each",
           PARAMS(PASSES({.source = several, .kernel = "early"}, {.kernel = "write_s"},
                         {.kernel = "read_s", .fused = true}),
                  SCRATCH));
    refuse(COX_E_INVALID, "pass 1 (early), buffer 1 (s): pass 0 uses it too",
           PARAMS(PASSES({.source = several, .kernel = "write_s"}, {.kernel = "read_s", .fused = true},
                         {.kernel = "early"}),
                  SCRATCH));
    refuse(COX_E_INVALID, "pass 1 (write_s), buffer 1 (s): pass 0 uses it too",
           PARAMS(PASSES({.source = several, .kernel = "write_s"}, {.kernel = "read_s", .fused = true},
                         {.kernel = "write_s"}, {.kernel = "read_s", .fused = true}),
                  SCRATCH));
}

static void add_sums(void *into, const void *partial, size_t bytes, void *user)
{
    (void)bytes, (void)user;
    *(uint32_t *)into += *(const uint32_t *)partial;
}

/* A fused pass would read what its band alone has counted. */
Test(fused, a_merged_buffer_that_is_read_before_it_is_merged_is_refused)
{
    open_any();
    for (int reversed = 0; reversed < 2; reversed++)
        refuse(COX_E_INVALID, "buffer sum has `merge`, but a pass of the group that writes it reads it",
               PARAMS(PASSES({.source = several, .kernel = reversed ? "scale" : "count"},
                             {.kernel = reversed ? "count" : "scale", .fused = true}),
                      BUFFERS_OF({.name = "in"}, {.name = "sum", .bytes = 4, .merge = add_sums}, {.name = "out"})));

    uint32_t sum = 0, total = 0;
    for (uint32_t i = 0; i < W * H; i++)
        sum += in[i / W][i % W] & 7;
    for (uint32_t i = 0; i < W * H; i++)
        expected[i / W][i % W] = in[i / W][i % W] * sum;
    run_frames(PARAMS(PASSES({.source = several, .kernel = "count"}, {.kernel = "scale"}),
                      BUFFERS_OF({.name = "in"}, {.name = "sum", .bytes = 4, .merge = add_sums}, {.name = "out"})),
               COX_ARGS(in, &total, out));
    cr_assert_eq(total, sum);
}
