/* The size of work-groups: stated by the application, required by the kernel, or chosen by the library.
 * SPDX-License-Identifier: Apache-2.0 */
#include "setups.h"

enum { W = 2048, H = 64 };

static uint32_t out[H][W];

TestSuite(work_groups, .init = with_llvmpipe, .fini = close_setup, .timeout = 600);

#define KERNEL(before, parameters, body)                                \
    "kernel " before " void f(" parameters ", int columns, int rows)\n" \
    "{ int x = get_global_id(0), y = get_global_id(1);\n" body "}\n"

/* Each element says the size of its group, also that of the padding. */
static const char tells[] = KERNEL("", "global uint *out",
                                   "if (x < columns && y < rows)\n"
                                   "    out[y * columns + x] = get_local_size(0) << 16 | get_local_size(1);\n");

static const char requires[] = KERNEL("__attribute__((reqd_work_group_size(8, 2, 1)))", "global uint *out",
                                      "if (x < columns && y < rows)\n"
                                      "    out[y * columns + x] = get_local_size(0) << 16 | get_local_size(1);\n");

/* A group writes a whole row, so the result is wrong if the group is smaller than BLOCK. */
static const char counts[] = "#define BLOCK 8192\n"
                             "kernel void f(global uint *out, int columns, int rows)\n"
                             "{\n"
                             "    int t = get_local_id(0), y = get_global_id(1);\n"
                             "    for (int x = t; x < columns && y < rows; x += BLOCK)\n"
                             "        out[y * columns + x] = x + 1;\n"
                             "}\n";

static void create(const struct cox_session_params *params)
{
    cr_assert_eq(cox_session_create(runtime, params, &session), COX_OK, "%s", logged);
}

/* Run a frame. The size of all groups, as columns << 16 | rows; 0 = they differ. */
static uint32_t group_of_frame(uint32_t columns, uint32_t rows)
{
    memset(out, 0, sizeof out);
    cr_assert_eq(cox_session_run(session, &(const struct cox_frame){.data = COX_ARGS(out)}), COX_OK, "%s", logged);
    const uint32_t *all = &out[0][0];
    for (uint32_t i = 1; i < columns * rows; i++)
        if (all[i] != all[0])
            return 0;

    return all[0];
}

Test(work_groups, the_librarys_choice_is_more_than_one_work_item_and_the_same_for_all_frames)
{
    static const struct {
        uint32_t columns, rows, item_columns;
    } shapes[] = {{W, H, 0}, {W, H, 4}, {5, 512, 0}, {1, 4096, 0}, {4096, 1, 0}};
    for (enum setup setup = 0; setup < SETUPS; setup++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            if (setup == SETUP_HALVES || !open_setup(setup)) /* halves need not choose alike */
                continue;
            static const char items[] = KERNEL("", "global uint *out",
                                               "for (int i = 4 * x; i < 4 * x + 4 && i < columns && y < rows; i++)\n"
                                               "    out[y * columns + i] = get_local_size(0) << 16 | "
                                               "get_local_size(1);\n");
            create(PARAMS(.columns = shapes[i].columns, .rows = shapes[i].rows,
                          .passes = COX_LIST(struct cox_pass, {.source = shapes[i].item_columns ? items : tells,
                                                               .item_columns = shapes[i].item_columns})));
            const uint32_t first = group_of_frame(shapes[i].columns, shapes[i].rows);
            cr_expect((first >> 16) * (first & 0xffff) >= 16, "set-up %d, case %zu: %u x %u", setup, i, first >> 16,
                      first & 0xffff);
            for (int frame = 0; frame < 4; frame++)
                cr_expect_eq(group_of_frame(shapes[i].columns, shapes[i].rows), first);
        }
}

Test(work_groups, a_stated_size_is_the_size)
{
    for (enum setup setup = 0; setup < SETUPS; setup++) {
        if (!open_setup(setup))
            continue;
        create(PARAMS(PASSES({.source = tells, .local_columns = 8, .local_rows = 4})));
        cr_expect_eq(group_of_frame(W, H), 8 << 16 | 4);
        cox_session_destroy(&session);
        create(PARAMS(PASSES({.source = tells, .local_rows = 4})));
        cr_expect_eq(group_of_frame(W, H), 1 << 16 | 4);
        cox_session_destroy(&session);
        create(PARAMS(PASSES({.source = tells, .local_columns = 16})));
        cr_expect_eq(group_of_frame(W, H), 16 << 16 | 1);
        cox_session_destroy(&session);

        /* Larger than the frame, which is padded. */
        create(PARAMS(.columns = 3, .rows = 2,
                      .passes = COX_LIST(struct cox_pass, {.source = tells, .local_columns = 4, .local_rows = 8})));
        cr_expect_eq(group_of_frame(3, 2), 4 << 16 | 8);
    }
}

Test(work_groups, a_required_size_need_not_be_stated)
{
    for (enum setup setup = 0; setup < SETUPS; setup++) {
        if (!open_setup(setup))
            continue;
        create(PARAMS(PASSES({.source = requires})));
        cr_expect_eq(group_of_frame(W, H), 8 << 16 | 2);
        cox_session_destroy(&session);
        refuse(COX_E_INVALID, "kernel f requires groups of 8 x 2, but the session states 8 x 1",
               PARAMS(PASSES({.source = requires, .local_columns = 8})));
        refuse(COX_E_INVALID, "kernel f requires groups of 2 x 2 x 2; allowed: columns and rows only",
               PARAMS(PASSES({.source = KERNEL("__attribute__((reqd_work_group_size(2, 2, 2)))", "global uint *out",
                                               "")})));
    }
}

Test(work_groups, a_device_that_does_not_allow_the_size_leaves_the_session)
{
    for (enum setup setup = 0; setup < SETUPS; setup++) {
        if (!open_setup(setup))
            continue;
        logged[0] = '\0';
        cr_expect_eq(cox_session_create(runtime, PARAMS(PASSES({.source = counts, .local_columns = 8192})), &session),
                     COX_E_UNSUPPORTED, "%s", logged);
        cr_expect_eq(count_logged("kernel f has groups of 8192 x 1 work-items; the device allows "),
                     setup == SETUP_HALVES ? 2 : 1, "%s", logged);
    }
}

/* The product is allowed, but not one dimension; PoCL and llvmpipe allow at most 4096 and 1024. */
Test(work_groups, a_required_size_that_no_device_allows_is_refused)
{
    for (enum setup setup = 0; setup < SETUPS; setup++) {
        if (!open_setup(setup))
            continue;
        cox_status status =
            cox_session_create(runtime,
                               PARAMS(PASSES({.source = KERNEL("__attribute__((reqd_work_group_size(8192, 1, 1)))",
                                                               "global uint *out", "out[0] = 1;")})),
                               &session);
        cr_expect(status == COX_E_UNSUPPORTED || status == COX_E_BUILD, "%s: %s", cox_status_name(status), logged);
        cr_expect_null(session);
    }
}

/* llvmpipe allows 32 work-items, PoCL 4096. */
Test(work_groups, the_other_devices_stay)
{
    cox_runtime_destroy(&runtime);
    struct cox_session_info info;
    const struct cox_runtime_params params = {.devices = "cpu,gpu", .log = on_log, .log_level = COX_LOG_WARN};
    if (cox_runtime_create(&params, &runtime) != COX_OK || cox_runtime_device_count(runtime) < 2)
        cr_skip_test("skipped, because there are no two OpenCL devices");
    create(PARAMS(PASSES({.source = tells, .local_columns = 256})));
    cox_session_info(session, &info);
    if (info.device_count == cox_runtime_device_count(runtime))
        cr_skip_test("skipped, because every OpenCL device allows groups of 256");
    cr_expect_eq(count_logged("kernel f has groups of 256 x 1 work-items; the device allows 32, and"), 1, "%s", logged);
    cr_expect_eq(group_of_frame(W, H), 256 << 16 | 1);
}

Test(work_groups, each_variant_has_its_own_size)
{
    open_any();
    create(PARAMS(PASSES({.source = tells,
                          .local_columns = 8192,
                          .variants = COX_LIST(struct cox_pass, {.devices = "cpu", .source = tells})})));
    cr_expect_gt(group_of_frame(W, H), 1 << 16 | 1);
}

/* ---- local memory ---- */

static const char room[] = KERNEL("", "global uint *out, local uint *room",
                                  "room[get_local_id(0)] = x + 1;\n"
                                  "barrier(CLK_LOCAL_MEM_FENCE);\n"
                                  "if (x < columns && y < rows) out[y * columns + x] = room[get_local_id(0)];\n");

#define FIXED_ROOM(words, before)                                                                    \
    KERNEL(before, "global uint *out",                                                               \
           "local uint room[" words "];\n"                                                           \
           "for (int i = get_local_id(0); i < " words "; i += get_local_size(0)) room[i] = x + 1;\n" \
           "barrier(CLK_LOCAL_MEM_FENCE);\n"                                                         \
           "if (x < columns && y < rows) out[y * columns + x] = room[get_local_id(0)];\n")

static void expect_columns(void)
{
    for (int frame = 0; frame < 3; frame++) {
        memset(out, 0, sizeof out);
        cr_assert_eq(cox_session_run(session, &(const struct cox_frame){.data = COX_ARGS(out)}), COX_OK, "%s", logged);
        for (uint32_t y = 0; y < H; y++)
            for (uint32_t x = 0; x < W; x++)
                cr_assert_eq(out[y][x], x + 1);
    }
}

/* Its author counts on a size. A size of the library's choice would be right on one device and wrong on another. */
Test(work_groups, a_kernel_with_local_memory_needs_a_stated_size)
{
    static const char line[] = "kernel f uses local memory, so it depends on the size of its groups; set local_columns";
    for (enum setup setup = 0; setup < SETUPS; setup++) {
        if (!open_setup(setup))
            continue;
        refuse(COX_E_INVALID, line, PARAMS(PASSES({.source = room, ARGUMENTS({.name = "room", .local_bytes = 128})})));
        refuse(COX_E_INVALID, line, PARAMS(PASSES({.source = FIXED_ROOM("64", "")})));

        create(PARAMS(PASSES({.source = room, .local_columns = 32, ARGUMENTS({.name = "room", .local_bytes = 128})})));
        expect_columns();
        cox_session_destroy(&session);
        create(PARAMS(PASSES({.source = FIXED_ROOM("32", "__attribute__((reqd_work_group_size(32, 1, 1)))")})));
        expect_columns();
    }
}

Test(work_groups, more_local_memory_than_a_device_has_is_refused)
{
    for (enum setup setup = 0; setup < SETUPS; setup++) {
        if (!open_setup(setup))
            continue;
        const unsigned devices = setup == SETUP_HALVES ? 2 : 1;

        logged[0] = '\0';
        cr_expect_eq(cox_session_create(runtime,
                                        PARAMS(PASSES({.source = room,
                                                       .local_columns = 32,
                                                       ARGUMENTS({.name = "room", .local_bytes = 10 << 20})})),
                                        &session),
                     COX_E_UNSUPPORTED, "%s", logged);
        cr_expect_eq(count_logged("kernel f uses 10485760 bytes of local memory, but the device has "), devices, "%s",
                     logged);

        logged[0] = '\0';
        cr_expect_eq(cox_session_create(runtime,
                                        PARAMS(PASSES({.source = FIXED_ROOM("1000000", ""), .local_columns = 32})),
                                        &session),
                     COX_E_UNSUPPORTED, "%s", logged);
        cr_expect_eq(count_logged("000000 bytes of local memory, but the device has "), devices, "%s", logged);
    }
}
