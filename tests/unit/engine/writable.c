/* A session warns once about each binding that is only read but that a kernel could write, on any number of
 * devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "support/fake_rig.h"
#include <criterion/criterion.h>

TestSuite(engine_writable, .timeout = 300);

enum { ARG_IN = 1, ARG_ORIGIN = 2, ARG_OUT = 4, ARG_TABLE = 8, ARG_SUMS = 16 };

static void create_and_destroy(struct rig *rig, uint32_t stage_count)
{
    const struct cox__binding bindings[] = {
        {.name = "in", .row_access = COX__HALO, .access = COX__READ, .pitch_bytes = 16, .halo_rows = 2},
        {.name = "out", .row_access = COX__ROWS, .access = COX__WRITE, .pitch_bytes = 16},
        {.row_access = COX__WHOLE, .access = COX__READ, .bytes = 256},
        {.name = "sums", .row_access = COX__REDUCE, .access = COX__WRITE, .bytes = 1024, .merge = rig_merge_sum},
    };
    const struct cox__arg args[] = {COX__ARG_BUFFER(0), COX__ARG_ORIGIN(0), COX__ARG_BUFFER(1), COX__ARG_BUFFER(2),
                                    COX__ARG_BUFFER(3)};
    struct cox__stage stages[] = {RIG_STAGE_OF("rig_map", 0, &rig_any_device, args),
                                  RIG_STAGE_OF("rig_halo", 0, &rig_any_device, args)};
    cox_session *session;
    cr_assert_eq(cox__session_create(rig_runtime(rig),
                                     &(const struct cox__session_spec){.rows = 60,
                                                                       .binding_count = 4,
                                                                       .bindings = bindings,
                                                                       .stage_count = stage_count,
                                                                       .stages = stages,
                                                                       .params_bytes = sizeof(struct rig_params),
                                                                       .verify = 1},
                                     &session),
                 COX_OK, "%s", rig_log(rig));
    cox_session_destroy(&session);
}

static void logs(const struct fake_params *devices, uint32_t stage_count, const char *lines)
{
    struct rig *rig = rig_new(devices);
    create_and_destroy(rig, stage_count);
    cr_assert_str_eq(rig_log(rig), lines);
    cr_assert_str_empty(rig_end(&rig));
}

#define IN_LINE                                                                                                \
    "kernel rig_map, argument 0 (unnamed): buffer 0 (in) is only read, so declare the pointer const; a write " \
    "would change what other devices read\n"
#define TABLE_LINE                                                                                                  \
    "kernel rig_map, argument 3 (unnamed): buffer 2 (unnamed) is only read, so declare the pointer const; a write " \
    "would change what other devices read\n"

Test(engine_writable, a_line_for_each_binding_that_is_only_read_however_many_kernels_and_devices)
{
    const uint32_t all = ARG_IN | ARG_ORIGIN | ARG_OUT | ARG_TABLE | ARG_SUMS;
    logs(&(struct fake_params){.device_count = 3,
                               .devices = {{.writable_args = all}, {.writable_args = all}, {.writable_args = all}}},
         2, IN_LINE TABLE_LINE);
}

Test(engine_writable, a_kernel_that_only_one_device_has)
{
    logs(&(struct fake_params){.device_count = 3, .devices = {{0}, {.writable_args = ARG_TABLE}, {0}}}, 1, TABLE_LINE);
}

Test(engine_writable, nothing_is_said_of_pointers_to_const)
{
    logs(&(struct fake_params){.device_count = 2,
                               .devices = {{.writable_args = ARG_OUT | ARG_SUMS}, {.writable_args = ARG_OUT}}},
         2, "");
}

Test(engine_writable, each_session_says_it)
{
    struct rig *rig = rig_new(&(struct fake_params){.device_count = 1, .devices = {{.writable_args = ARG_IN}}});
    create_and_destroy(rig, 1);
    create_and_destroy(rig, 1);
    cr_assert_str_eq(rig_log(rig), IN_LINE IN_LINE);
    cr_assert_str_empty(rig_end(&rig));
}
