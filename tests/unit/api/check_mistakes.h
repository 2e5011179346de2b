/* Kernels with one mistake each, their twins without it, and what check mode must say.
 *
 * A row's passes take `wrong` or `right` as the source of the first pass.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_CHECK_MISTAKES_H
#define COX_TESTS_CHECK_MISTAKES_H

#include <coxswain/coxswain.h>
#include <string.h>
#include <time.h>

enum { COLUMNS = 40, ROWS = 64, BINS = 16 };

/* OpenCL's CL_R and CL_UNSIGNED_INT32. */
enum { ORDER_R = 0x10b0, TYPE_UINT32 = 0x10dc };

/* What the input buffers hold. */
enum content {
    CONTENT_WORDS,  /* any bits */
    CONTENT_FLOATS, /* 0 to 1 */
};

struct mistake {
    const char *name, *wrong, *right;
    const char *finding; /* in the log of the wrong kernel */
    const char *buffer;  /* named by the same line; NULL = none */
    int beyond;          /* distance in rows from those that the line allows; 0 = any */
    uint32_t rows;       /* 0 = ROWS */
    enum content content;
    const struct cox_pass *passes;           /* NULL = one pass without arguments */
    const struct cox_buffer_layout *buffers; /* NULL = as the kernel says */
    bool scratch;                            /* one of the buffers is */
};

/* ---- sources ---- */

#define HEAD(parameters) "kernel void k(" parameters ", int columns, int rows, int first_row, int frame_rows) {\n"
#define IDS "    int x = get_global_id(0), y = get_global_id(1), row = first_row + y;\n"
#define GUARD "    if (x >= columns || y >= rows) return;\n"
#define IN_OUT "global const uint *in, global uint *out"
#define HALO "global const uint *in, int in_first_row, global uint *out"
#define POINT(body) HEAD(IN_OUT) IDS GUARD body "}\n"
#define STENCIL(body) HEAD(HALO) IDS GUARD body "}\n"
#define COPY "    out[y * columns + x] = in[y * columns + x] ^ 7;\n"
#define COUNT(body) HEAD("global const uint *in, global uint *bins") IDS GUARD body "}\n"
#define SUM(body) HEAD("global const float *in, global float *sums") IDS GUARD body "}\n"
#define CHROMA(body) HEAD("global const uint *in, global const uint *chroma, global uint *out") IDS GUARD body "}\n"
#define TABLE(body) HEAD(IN_OUT ", global const uint *table") IDS GUARD body "}\n"
#define BLUR_AT(up, down)                                                            \
    "    out[y * columns + x] = in[((" up ") - in_first_row) * columns + x] * 3 +\n" \
    "                           in[((" down ") - in_first_row) * columns + x];\n"
#define BLUR BLUR_AT("max(row - 1, 0)", "min(row + 1, frame_rows - 1)")

/* Adds floats in whatever order work-items run. */
#define ATOMIC_SUM                                                                                \
    "void add(volatile global float *to, float value) {\n"                                        \
    "    union { uint bits; float value; } was, now;\n"                                           \
    "    do { was.value = *to; now.value = was.value + value;\n"                                  \
    "    } while (atomic_cmpxchg((volatile global uint *)to, was.bits, now.bits) != was.bits);\n" \
    "}\n"

/* ---- merges and `done` functions ---- */

static void add_words(void *into, const void *partial, size_t bytes, void *user)
{
    uint32_t *sum = into;
    const uint32_t *more = partial;
    (void)user;
    for (size_t i = 0; i < bytes / 4; i++)
        sum[i] += more[i];
}

static void add_words_and_one(void *into, const void *partial, size_t bytes, void *user)
{
    add_words(into, partial, bytes, user);
    ++*(uint32_t *)into;
}

static void add_floats(void *into, const void *partial, size_t bytes, void *user)
{
    float *sum = into;
    const float *more = partial;
    (void)user;
    for (size_t i = 0; i < bytes / 4; i++)
        sum[i] += more[i];
}

static void largest_word(void *into, const void *partial, size_t bytes, void *user)
{
    uint32_t *most = into;
    const uint32_t *more = partial;
    (void)user;
    for (size_t i = 0; i < bytes / 4; i++)
        if (more[i] > most[i])
            most[i] = more[i];
}

struct gain {
    uint32_t factor;
};

/* The right one. */
static void make_factor(void *user, void *const *buffers, void *constants)
{
    const uint32_t *bins = buffers[1];
    (void)user;
    ((struct gain *)constants)->factor = bins[3];
}

static void read_clock(void *user, void *const *buffers, void *constants)
{
    struct timespec now;
    (void)user, (void)buffers;
    clock_gettime(CLOCK_MONOTONIC, &now);
    ((struct gain *)constants)->factor = (uint32_t)now.tv_nsec;
}

static void count_calls(void *user, void *const *buffers, void *constants)
{
    static uint32_t calls;
    (void)user, (void)buffers;
    ((struct gain *)constants)->factor = calls++;
}

static void clear_bins(void *user, void *const *buffers, void *constants)
{
    (void)user, (void)constants;
    memset(buffers[1], 0, 4 * BINS);
}

/* ---- passes and buffers ---- */

#define PASS(...) COX_LIST(struct cox_pass, {__VA_ARGS__})
#define ARGUMENTS(...) .arguments = COX_LIST(struct cox_argument, __VA_ARGS__)
#define HALO_ROWS(n) PASS(ARGUMENTS({.name = "in", .halo_rows = n}))
#define BUFFERS(...) COX_LIST(struct cox_buffer_layout, __VA_ARGS__)
#define BINS_BY(function) BUFFERS({.name = "in"}, {.name = "bins", .bytes = 4 * BINS, .merge = function})
#define SUMS_BY(function) BUFFERS({.name = "in"}, {.name = "sums", .bytes = 4 * BINS, .merge = function})
#define PADDED BUFFERS({.name = "in", .pitch_bytes = 256}, {.name = "out", .pitch_bytes = 256})
#define HALF_CHROMA BUFFERS({.name = "in"}, {.name = "chroma", .row_divisor = 2}, {.name = "out"})
#define COUNT_BINS COUNT("    atomic_inc(&bins[in[y * columns + x] % 16]);\n")

static const struct mistake mistakes[] = {
    /* ---- writes ---- */
    {.name = "the comparison lets one row too many through",
     .wrong = HEAD(IN_OUT) IDS "    if (x >= columns || y > rows) return;\n" COPY "}\n",
     .right = POINT(COPY),
     .finding = "writes row 63, byte 0 of buffer out",
     .rows = 63,
     .passes = PASS(.local_columns = 8, .local_rows = 2)},
    {.name = "no guard for rows",
     .wrong = HEAD(IN_OUT) IDS "    if (x >= columns) return;\n" COPY "}\n",
     .right = POINT(COPY),
     .finding = "work-items beyond its columns or rows",
     .buffer = "out",
     .rows = 63,
     .passes = PASS(.local_columns = 8, .local_rows = 2)},
    {.name = "no guard for columns",
     .wrong = HEAD(IN_OUT) IDS "    if (y >= rows) return;\n" COPY "}\n",
     .right = POINT(COPY),
     .finding = "work-items beyond its columns or rows",
     .buffer = "out"},
    {.name = "no guard for columns, and padding behind the columns",
     .wrong = HEAD(IN_OUT) IDS "    if (y >= rows) return;\n    out[y * 64 + x] = in[y * 64 + x] ^ 7;\n}\n",
     .right = HEAD(IN_OUT) IDS GUARD "    out[y * 64 + x] = in[y * 64 + x] ^ 7;\n}\n",
     .finding = "work-items beyond its columns or rows",
     .buffer = "out",
     .buffers = PADDED},
    {.name = "the comparison lets one column too many through",
     .wrong = HEAD(IN_OUT) IDS "    if (x > columns || y >= rows) return;\n" COPY "}\n",
     .right = POINT(COPY),
     .finding = "writes row 64, byte 0 of buffer out"},
    {.name = "no guard in a sum",
     .wrong = HEAD("global const uint *in, global uint *bins") IDS
     "    if (y >= rows) return;\n    atomic_inc(&bins[in[y * columns + x] % 16]);\n}\n",
     .right = COUNT_BINS,
     .finding = "work-items beyond its columns or rows",
     .buffer = "bins",
     .buffers = BINS_BY(add_words)},
    {.name = "the row below the band is written",
     .wrong = POINT(COPY "    if (y == rows - 1 && row + 1 < frame_rows) out[(y + 1) * columns + x] = 3;\n"),
     .right = POINT(COPY),
     .finding = "writes row ",
     .beyond = 1,
     .buffer = "out"},
    {.name = "the row above the frame is written",
     .wrong = POINT(COPY "    if (y == 0) out[x - columns] = 3;\n"),
     .right = POINT(COPY),
     .finding = "writes row -1, byte 0 of buffer out",
     .beyond = -1},
    {.name = "the frame's row is used for a pointer to the band's",
     .wrong = POINT("    out[row * columns + x] = in[y * columns + x] ^ 7;\n"),
     .right = POINT(COPY),
     .finding = "writes row ",
     .buffer = "out"},
    {.name = "an input is written through a cast",
     .wrong = POINT(COPY "    if (y == 5) ((global uint *)in)[y * columns + x] = 3;\n"),
     .right = POINT(COPY),
     .finding = "writes row 5, byte 0 of buffer in"},
    {.name = "a table is written through a cast",
     .wrong = TABLE(COPY "    ((global uint *)table)[2] = 3;\n"),
     .right = TABLE("    out[y * columns + x] = in[y * columns + x] ^ table[2];\n"),
     .finding = "writes byte 8 of buffer table",
     .passes = PASS(ARGUMENTS({.name = "table", .whole = true})),
     .buffers = BUFFERS({.name = "in"}, {.name = "out"}, {.name = "table", .bytes = 256})},
    {.name = "a bin behind the last one",
     .wrong = COUNT("    atomic_inc(&bins[in[y * columns + x] % 17]);\n"),
     .right = COUNT_BINS,
     .finding = "writes byte 64 of buffer bins",
     .buffers = BINS_BY(add_words)},
    {.name = "rows of chroma are written as rows of luma",
     .wrong = HEAD("global const uint *in, global uint *chroma") IDS GUARD
     "    chroma[y * columns + x] = in[y * columns + x];\n}\n",
     .right = HEAD("global const uint *in, global uint *chroma") IDS GUARD
     "    if (row % 2 == 0) chroma[y / 2 * columns + x] = in[y * columns + x];\n}\n",
     .finding = "writes row 32, byte 0 of buffer chroma",
     .beyond = 1,
     .buffers = BUFFERS({.name = "in"}, {.name = "chroma", .row_divisor = 2})},
    {.name = "rows of chroma are rounded up",
     .wrong = HEAD("global const uint *in, global uint *chroma") IDS GUARD
     "    chroma[(y + 1) / 2 * columns + x] = in[(y + y % 2) * columns + x * (y == 0)];\n}\n",
     .right = HEAD("global const uint *in, global uint *chroma") IDS GUARD
     "    if (row % 2 == 0) chroma[y / 2 * columns + x] = in[y * columns + x];\n}\n",
     .finding = "writes row 32, byte 0 of buffer chroma",
     .buffers = BUFFERS({.name = "in"}, {.name = "chroma", .row_divisor = 2})},

    /* ---- reads ---- */
    {.name = "halo_rows is 1, but 2 are needed",
     .wrong = STENCIL(BLUR_AT("max(row - 2, 0)", "min(row + 1, frame_rows - 1)")),
     .right = STENCIL(BLUR),
     .finding = "reads row ",
     .beyond = -1,
     .buffer = "in",
     .passes = HALO_ROWS(1)},
    {.name = "the halo below is too small",
     .wrong = STENCIL(BLUR_AT("max(row - 1, 0)", "min(row + 2, frame_rows - 1)")),
     .right = STENCIL(BLUR),
     .finding = "reads row ",
     .beyond = 1,
     .buffer = "in",
     .passes = HALO_ROWS(1)},
    {.name = "no halo_rows for the next row",
     .wrong = POINT("    out[y * columns + x] = in[(min(row + 1, frame_rows - 1) - first_row) * columns + x];\n"),
     .right = POINT(COPY),
     .finding = "(halo_rows is 0)",
     .beyond = 1,
     .buffer = "in"},
    {.name = "no clamp at the top",
     .wrong = STENCIL(BLUR_AT("row - 1", "min(row + 1, frame_rows - 1)")),
     .right = STENCIL(BLUR),
     .finding = "reads row -1, byte ",
     .buffer = "in",
     .passes = HALO_ROWS(1)},
    {.name = "a clamp to frame_rows",
     .wrong = STENCIL(BLUR_AT("max(row - 1, 0)", "min(row + 1, frame_rows)")),
     .right = STENCIL(BLUR),
     .finding = "reads row 64, byte ",
     .buffer = "in",
     .passes = HALO_ROWS(1)},
    {.name = "in_first_row is ignored",
     .wrong = STENCIL("    out[y * columns + x] = in[max(row - 1, 0) * columns + x] * 3 +\n"
                      "                           in[min(row + 1, frame_rows - 1) * columns + x];\n"),
     .right = STENCIL(BLUR),
     .finding = "reads row ",
     .buffer = "in",
     .passes = HALO_ROWS(1)},
    {.name = "first_row in place of in_first_row",
     .wrong = STENCIL("    int up = max(row - 1, 0), down = min(row + 1, frame_rows - 1);\n"
                      "    out[y * columns + x] = in[(up - first_row + (first_row > 0)) * columns + x] * 3 +\n"
                      "                           in[(down - first_row + (first_row > 0)) * columns + x];\n"),
     .right = STENCIL(BLUR),
     .finding = "reads row ",
     .buffer = "in",
     .passes = HALO_ROWS(1)},
    {.name = "the frame's row is read from a pointer to the band's",
     .wrong = POINT("    out[y * columns + x] = in[row * columns + x] ^ 7;\n"),
     .right = POINT(COPY),
     .finding = "reads row ",
     .buffer = "in"},
    {.name = "row_divisor is 2, but rows are read one by one",
     .wrong = CHROMA("    out[y * columns + x] = in[y * columns + x] + chroma[y * columns + x];\n"),
     .right = CHROMA("    out[y * columns + x] = in[y * columns + x] + chroma[y / 2 * columns + x];\n"),
     .finding = "reads row ",
     .buffer = "chroma",
     .buffers = HALF_CHROMA},
    {.name = "the row of chroma is rounded up",
     .wrong = CHROMA("    out[y * columns + x] = in[y * columns + x] + chroma[(y + 1) / 2 * columns + x];\n"),
     .right = CHROMA("    out[y * columns + x] = in[y * columns + x] + chroma[y / 2 * columns + x];\n"),
     .finding = "reads row 32, byte ",
     .buffer = "chroma",
     .buffers = HALF_CHROMA},
    {.name = "an element behind a table of an odd size",
     .wrong = TABLE("    out[y * columns + x] = in[y * columns + x] + table[x % 32];\n"),
     .right = TABLE("    out[y * columns + x] = in[y * columns + x] + table[x % 31];\n"),
     .finding = "of buffer table, outside of its memory of 124 bytes",
     .passes = PASS(ARGUMENTS({.name = "table", .whole = true})),
     .buffers = BUFFERS({.name = "in"}, {.name = "out"}, {.name = "table", .bytes = 124})},
    {.name = "the column behind the last one",
     .wrong = POINT("    out[y * columns + x] = in[y * columns + x] ^ in[y * columns + x + 1];\n"),
     .right = POINT("    out[y * columns + x] = in[y * columns + x] ^ in[y * columns + min(x + 1, columns - 1)];\n"),
     .finding = "reads row 64, byte ",
     .buffer = "in"},
    {.name = "the column before the first one",
     .wrong = POINT("    out[y * columns + x] = in[y * columns + x] ^ in[y * columns + x - 1];\n"),
     .right = POINT("    out[y * columns + x] = in[y * columns + x] ^ in[y * columns + max(x - 1, 0)];\n"),
     .finding = "reads row -1, byte ",
     .buffer = "in"},
    {.name = "the output is added to",
     .wrong = POINT("    out[y * columns + x] += in[y * columns + x];\n"),
     .right = POINT(COPY),
     .finding = "before it has written it",
     .buffer = "out"},
    {.name = "the output is read if the input is odd",
     .wrong =
         POINT("    uint v = in[y * columns + x];\n    out[y * columns + x] = v % 2 ? v : out[y * columns] ^ v;\n"),
     .right = POINT("    uint v = in[y * columns + x];\n    out[y * columns + x] = v % 2 ? v : v ^ 9;\n"),
     .finding = "before it has written it",
     .buffer = "out"},
    {.name = "a sum reads the next row",
     .wrong = COUNT("    int next = min(row + 1, frame_rows - 1) - first_row;\n"
                    "    atomic_inc(&bins[in[next * columns + x] % 16]);\n"),
     .right = COUNT_BINS,
     .finding = "reads row ",
     .beyond = 1,
     .buffer = "in",
     .buffers = BINS_BY(add_words)},
    {.name = "a later pass reads more rows than its halo",
     .wrong =
         "kernel void k(global const uint *in, global uint *between, int columns, int rows) {\n"
         "    int x = get_global_id(0), y = get_global_id(1);\n" GUARD
         "    between[y * columns + x] = in[y * columns + x] * 3;\n}\n"
         "kernel void second(global const uint *between, int between_first_row, global uint *out, int columns,\n"
         "                   int rows, int first_row, int frame_rows) {\n" IDS GUARD
         "    out[y * columns + x] = between[(min(row + 3, frame_rows - 1) - between_first_row) * columns + x];\n}\n",
     .right =
         "kernel void k(global const uint *in, global uint *between, int columns, int rows) {\n"
         "    int x = get_global_id(0), y = get_global_id(1);\n" GUARD
         "    between[y * columns + x] = in[y * columns + x] * 3;\n}\n"
         "kernel void second(global const uint *between, int between_first_row, global uint *out, int columns,\n"
         "                   int rows, int first_row, int frame_rows) {\n" IDS GUARD
         "    out[y * columns + x] = between[(min(row + 2, frame_rows - 1) - between_first_row) * columns + x];\n}\n",
     .finding = "pass 1 (second) reads row ",
     .beyond = 1,
     .buffer = "between",
     .passes = COX_LIST(struct cox_pass, {.kernel = "k"},
                        {.kernel = "second", ARGUMENTS({.name = "between", .halo_rows = 2})}),
     .buffers = BUFFERS({.name = "in"}, {.name = "between", .scratch = true}, {.name = "out"}),
     .scratch = true},
    {.name = "a fused pass reads more rows than its halo",
     .wrong =
         "kernel void k(global const uint *in, int in_first_row, global uint *between, int between_first_row,\n"
         "              int columns, int rows, int first_row) {\n" IDS GUARD
         "    between[(row - between_first_row) * columns + x] = in[(row - in_first_row) * columns + x] * 3;\n}\n"
         "kernel void second(global const uint *between, int between_first_row, global uint *out, int columns,\n"
         "                   int rows, int first_row, int frame_rows) {\n" IDS GUARD
         "    out[y * columns + x] = between[(min(row + 2, frame_rows - 1) - between_first_row) * columns + x];\n}\n",
     .right =
         "kernel void k(global const uint *in, int in_first_row, global uint *between, int between_first_row,\n"
         "              int columns, int rows, int first_row) {\n" IDS GUARD
         "    between[(row - between_first_row) * columns + x] = in[(row - in_first_row) * columns + x] * 3;\n}\n"
         "kernel void second(global const uint *between, int between_first_row, global uint *out, int columns,\n"
         "                   int rows, int first_row, int frame_rows) {\n" IDS GUARD
         "    out[y * columns + x] = between[(min(row + 1, frame_rows - 1) - between_first_row) * columns + x];\n}\n",
     .finding = "reads row ",
     .buffer = "between",
     .passes = COX_LIST(struct cox_pass, {.kernel = "k"},
                        {.kernel = "second", .fused = true, ARGUMENTS({.name = "between", .halo_rows = 1})}),
     .buffers = BUFFERS({.name = "in"}, {.name = "between", .scratch = true}, {.name = "out"}),
     .scratch = true},

    /* ---- elements that are left alone ---- */
    {.name = "the last column is left alone",
     .wrong = HEAD(IN_OUT) IDS "    if (x >= columns - 1 || y >= rows) return;\n" COPY "}\n",
     .right = POINT(COPY),
     .finding = "leaves row 0, byte 156 of buffer out"},
    {.name = "the last column is left alone, before padding",
     .wrong = HEAD(IN_OUT) IDS
     "    if (x >= columns - 1 || y >= rows) return;\n    out[y * 64 + x] = in[y * 64 + x] ^ 7;\n}\n",
     .right = HEAD(IN_OUT) IDS GUARD "    out[y * 64 + x] = in[y * 64 + x] ^ 7;\n}\n",
     .finding = "leaves row 0, byte 156 of buffer out",
     .buffers = PADDED},
    {.name = "the last row is left alone",
     .wrong = HEAD(IN_OUT) IDS "    if (x >= columns || y >= rows - 1) return;\n" COPY "}\n",
     .right = POINT(COPY),
     .finding = "leaves row 63, byte 0 of buffer out"},
    {.name = "some values are left alone",
     .wrong = POINT("    if (in[y * columns + x] % 16) out[y * columns + x] = in[y * columns + x];\n"),
     .right = POINT("    out[y * columns + x] = in[y * columns + x] % 16 ? in[y * columns + x] : 0;\n"),
     .finding = "leaves row ",
     .buffer = "out"},
    {.name = "the first row of each band but the first is left alone",
     .wrong = POINT("    if (y > 0 || first_row == 0) out[y * columns + x] = in[y * columns + x];\n"),
     .right = POINT(COPY),
     .finding = "leaves row ",
     .buffer = "out"},
    {.name = "an item has 4 columns, but computes 3",
     .wrong = HEAD(IN_OUT) "    int y = get_global_id(1);\n    if (y >= rows) return;\n"
                           "    for (int x = 4 * get_global_id(0), i = 0; i < 3 && x < columns; i++, x++)\n" COPY "}\n",
     .right = HEAD(IN_OUT) "    int y = get_global_id(1);\n    if (y >= rows) return;\n"
                           "    for (int x = 4 * get_global_id(0), i = 0; i < 4 && x < columns; i++, x++)\n" COPY "}\n",
     .finding = "leaves row 0, byte 12 of buffer out",
     .passes = PASS(.item_columns = 4)},
    {.name = "an item has 2 rows, but computes 1",
     .wrong = POINT(COPY),
     .right = HEAD(IN_OUT) "    int x = get_global_id(0);\n    if (x >= columns) return;\n"
                           "    for (int y = 2 * get_global_id(1), i = 0; i < 2 && y < rows; i++, y++)\n" COPY "}\n",
     .finding = "leaves row 32, byte 0 of buffer out",
     .passes = PASS(.item_rows = 2)},

    /* ---- where the band begins ---- */
    {.name = "get_global_id(1) is taken for the frame's row",
     .wrong = POINT("    out[y * columns + x] = in[y * columns + x] + y;\n"),
     .right = POINT("    out[y * columns + x] = in[y * columns + x] + row;\n"),
     .finding = "computes another row ",
     .buffer = "out"},
    {.name = "a clamp at the band's top",
     .wrong = STENCIL(BLUR_AT("first_row + max(y - 1, 0)", "min(row + 1, frame_rows - 1)")),
     .right = STENCIL(BLUR),
     .finding = "computes another row ",
     .buffer = "out",
     .passes = HALO_ROWS(1)},
    {.name = "a clamp at the band's bottom",
     .wrong = STENCIL(BLUR_AT("max(row - 1, 0)", "min(row + 1, first_row + rows - 1)")),
     .right = STENCIL(BLUR),
     .finding = "computes another row ",
     .buffer = "out",
     .passes = HALO_ROWS(1)},
    {.name = "a pattern that begins with the band",
     .wrong = POINT("    out[y * columns + x] = in[y * columns + x] >> y % 3;\n"),
     .right = POINT("    out[y * columns + x] = in[y * columns + x] >> row % 3;\n"),
     .finding = "computes another row ",
     .buffer = "out"},
    {.name = "noise from the number of the work-item",
     .wrong = POINT("    out[y * columns + x] = in[y * columns + x] ^ (x + y * columns) * 2654435761u;\n"),
     .right = POINT("    out[y * columns + x] = in[y * columns + x] ^ (x + row * columns) * 2654435761u;\n"),
     .finding = "computes another row ",
     .buffer = "out"},
    {.name = "the position is a share of the band",
     .wrong = POINT("    out[y * columns + x] = in[y * columns + x] ^ (uint)(y * 1000 / rows);\n"),
     .right = POINT("    out[y * columns + x] = in[y * columns + x] ^ (uint)(row * 1000 / frame_rows);\n"),
     .finding = "computes another row ",
     .buffer = "out"},
    {.name = "the number of the work-group",
     .wrong = POINT("    out[y * columns + x] = in[y * columns + x] + (uint)get_group_id(1);\n"),
     .right = POINT("    out[y * columns + x] = in[y * columns + x] + (uint)get_group_id(0);\n"),
     .finding = "computes another row ",
     .buffer = "out"},
    {.name = "the number of all work-items",
     .wrong = POINT("    out[y * columns + x] = in[y * columns + x] + (uint)get_global_size(1);\n"),
     .right = POINT("    out[y * columns + x] = in[y * columns + x] + (uint)get_local_size(1);\n"),
     .finding = "computes another row ",
     .buffer = "out"},
    {.name = "tiles of rows that begin with the band",
     .wrong = POINT("    out[y * columns + x] = in[y / 8 * 8 * columns + x];\n"),
     .right = POINT("    out[y * columns + x] = in[y / 4 * 4 * columns + x];\n"), /* the row alignment is 4 */
     .finding = "computes another row ",
     .buffer = "out"},
    {.name = "an image is sampled at the next row",
     .wrong = "constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE |\n"
              "                             CLK_FILTER_NEAREST;\n"
              "kernel void k(read_only image2d_t in, global uint *out, int columns, int rows) {\n"
              "    int x = get_global_id(0), y = get_global_id(1);\n" GUARD
              "    out[y * columns + x] = read_imageui(in, nearest, (int2)(x, y + 1)).x;\n}\n",
     .right = "constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE |\n"
              "                             CLK_FILTER_NEAREST;\n"
              "kernel void k(read_only image2d_t in, global uint *out, int columns, int rows) {\n"
              "    int x = get_global_id(0), y = get_global_id(1);\n" GUARD
              "    out[y * columns + x] = read_imageui(in, nearest, (int2)(x, y)).x;\n}\n",
     .finding = "computes another row ",
     .buffer = "out",
     .buffers = BUFFERS({.name = "in",
                         .pitch_bytes = 4 * COLUMNS,
                         .image_order = ORDER_R,
                         .image_type = TYPE_UINT32,
                         .image_columns = COLUMNS},
                        {.name = "out"})},

    /* ---- order and chance ---- */
    {.name = "a row that another work-item changes in place",
     .wrong = HEAD("global uint *out") IDS GUARD "    out[y * columns + x] += y ? out[(y - 1) * columns + x] : 0;\n}\n",
     .right = HEAD("global uint *out") IDS GUARD "    out[y * columns + x] *= 3;\n}\n",
     .finding = "in another order",
     .buffer = "out",
     .passes = PASS(ARGUMENTS({.name = "out", .in_place = true}))},
    {.name = "several work-items write one element",
     .wrong = POINT(COPY "    out[x] = in[y * columns + x];\n"),
     .right = POINT(COPY),
     .finding = "in another order",
     .buffer = "out"},
    {.name = "floats are added by atomics",
     .wrong = ATOMIC_SUM SUM("    add(&sums[x % 16], in[y * columns + x]);\n"),
     .right = HEAD("global const float *in, global uint *sums") IDS GUARD
     "    atomic_add(&sums[x % 16], (uint)(in[y * columns + x] * 256));\n}\n",
     .finding = "in another order",
     .buffer = "sums",
     .content = CONTENT_FLOATS,
     .buffers = SUMS_BY(add_words)},
    {.name = "a list in the order of arrival",
     .wrong = COUNT("    if (x == 0) bins[1 + atomic_inc(&bins[0]) % 15] = in[y * columns];\n"),
     .right = COUNT("    if (x == 0) atomic_max(&bins[0], in[y * columns]);\n"),
     .finding = "in another order",
     .buffer = "bins",
     .buffers = BINS_BY(largest_word)},
    {.name = "local memory that no work-item has set",
     .wrong = HEAD(IN_OUT) IDS "    local uint tile[9];\n    int lane = get_local_id(0);\n"
                               "    if (x < columns && y < rows) tile[lane] = in[y * columns + x];\n"
                               "    barrier(CLK_LOCAL_MEM_FENCE);\n" GUARD
                               "    out[y * columns + x] = tile[lane + 1];\n}\n",
     .right = HEAD(IN_OUT) IDS
     "    local uint tile[9];\n    int lane = get_local_id(0);\n"
     "    if (x < columns && y < rows) tile[lane] = in[y * columns + x];\n    if (lane == 0) tile[8] = 5;\n"
     "    barrier(CLK_LOCAL_MEM_FENCE);\n" GUARD "    out[y * columns + x] = tile[lane + 1];\n}\n",
     .finding = "if it runs again",
     .buffer = "out",
     .passes = PASS(.local_columns = 8, .local_rows = 1)},

    /* ---- merged buffers and `done` ---- */
    {.name = "floats are merged",
     .wrong = SUM("    if (y) return;\n    float sum = 0;\n"
                  "    for (int r = 0; r < rows; r++) sum += in[r * columns + x];\n"
                  "    if (x < 16) sums[x] = sum;\n"),
     .right = SUM("    if (y) return;\n    float sum = 0;\n"
                  "    for (int r = 0; r < rows; r++) sum += (float)(int)(in[r * columns + x] * 256);\n"
                  "    if (x < 16) sums[x] = sum;\n"),
     .finding = "merged over bands",
     .buffer = "sums",
     .content = CONTENT_FLOATS,
     .buffers = SUMS_BY(add_floats)},
    {.name = "the bands are counted",
     .wrong = COUNT("    if (x == 0 && y == 0) bins[0] = 1;\n"),
     .right = COUNT("    if (x == 0 && row == 0) bins[0] = 1;\n"),
     .finding = "merged over bands",
     .buffer = "bins",
     .buffers = BINS_BY(add_words)},
    {.name = "the band's row is in the sum",
     .wrong = COUNT("    atomic_add(&bins[x % 16], (uint)y);\n"),
     .right = COUNT("    atomic_add(&bins[x % 16], (uint)row);\n"),
     .finding = "merged over bands",
     .buffer = "bins",
     .buffers = BINS_BY(add_words)},
};

/* Mistakes of host functions; all use the same kernel. */
struct host_mistake {
    const char *name, *finding;
    cox_merge_fn *merge;
    cox_pass_done_fn *done;
};

static const struct host_mistake host_mistakes[] = {
    {"a merge counts its calls", "merged over bands", add_words_and_one, NULL},
    {"`done` reads the clock", "`done` function that gives another byte", add_words, read_clock},
    {"`done` counts its calls", "`done` function that gives another byte", add_words, count_calls},
    {"`done` changes a buffer", "`done` function that changes buffer bins", add_words, clear_bins},
};

#endif
