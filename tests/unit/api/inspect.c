/* What the library says about kernels and sessions to callers that learn it at run time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "real.h"

TestSuite(inspect, .fini = close_all);

static const char mixed_source[] =
    "kernel void mixed(global const float4 *in, int in_first_row, global uchar *out, int out_pitch, int columns,\n"
    "                  int rows, float strength, constant uint *table, local int *room, struct s constants) {}\n";

Test(inspect, parameters_say_what_each_gets)
{
    static const struct cox_parameter expected[] = {
        {"in", "float4", COX_PARAMETER_BUFFER, 16, false},
        {"in_first_row", "int", COX_PARAMETER_FILLED_IN, 4, false},
        {"out", "uchar", COX_PARAMETER_BUFFER, 1, true},
        {"out_pitch", "int", COX_PARAMETER_FILLED_IN, 4, false},
        {"columns", "int", COX_PARAMETER_FILLED_IN, 4, false},
        {"rows", "int", COX_PARAMETER_FILLED_IN, 4, false},
        {"strength", "float", COX_PARAMETER_VALUE, 4, false},
        {"table", "uint", COX_PARAMETER_BUFFER, 4, false},
        {"room", "int", COX_PARAMETER_LOCAL, 4, false},
        {"constants", "s", COX_PARAMETER_VALUE, 0, false},
    };
    struct cox_parameter parameters[COX_ARGUMENTS_MAX];
    uint32_t count;

    open_runtime(NULL);
    cr_assert_eq(cox_kernel_parameters(runtime, mixed_source, NULL, parameters, &count), COX_OK, "%s", logged);
    cr_assert_eq(count, sizeof expected / sizeof *expected);
    for (uint32_t p = 0; p < count; p++) {
        cr_assert_str_eq(parameters[p].name, expected[p].name);
        cr_assert_str_eq(parameters[p].type, expected[p].type);
        cr_assert_eq(parameters[p].kind, expected[p].kind, "%s", expected[p].name);
        cr_assert_eq(parameters[p].type_bytes, expected[p].type_bytes, "%s", expected[p].name);
        cr_assert_eq(parameters[p].writes, expected[p].writes, "%s", expected[p].name);
    }
}

Test(inspect, refuses_what_is_missing)
{
    struct cox_parameter parameters[COX_ARGUMENTS_MAX];
    struct cox_session_buffer buffer;
    uint32_t count = 1;

    cr_assert_eq(cox_kernel_parameters(NULL, mixed_source, NULL, parameters, &count), COX_E_INVALID);
    cr_assert_eq(count, 0);
    cr_assert_eq(cox_session_buffer_count(NULL), 0);
    cr_assert_eq(cox_session_buffer_info(NULL, 0, &buffer), COX_E_INVALID);

    open_runtime(NULL);
    cr_assert_eq(cox_kernel_parameters(runtime, NULL, NULL, parameters, &count), COX_E_INVALID);
    cr_assert_not_null(strstr(logged, "source is NULL"), "%s", logged);
    cr_assert_eq(cox_kernel_parameters(runtime, mixed_source, "other", parameters, &count), COX_E_INVALID);
    cr_assert_not_null(strstr(logged, "no kernel other"), "%s", logged);
}

static void add(void *into, const void *partial, size_t bytes, void *user)
{
    (void)user;
    for (size_t i = 0; i < bytes / sizeof(uint32_t); i++)
        ((uint32_t *)into)[i] += ((const uint32_t *)partial)[i];
}

Test(inspect, buffers_of_a_session_come_in_its_order)
{
    static const char source[] =
        "kernel void first(global const uchar *in, global ushort *between, global uint *sums, int columns, int rows) {}\n"
        "kernel void second(global const ushort *between, global float *out, int columns, int rows) {}\n";
    static const struct cox_session_buffer expected[] = {{"in", 60 * 40, 60, true, false, false},
                                                         {"between", 120 * 40, 120, false, true, true},
                                                         {"sums", 32, 0, false, true, false},
                                                         {"out", 256 * 40, 256, false, true, false}};

    open_runtime("cpu");
    const struct cox_session_params params = {
        .columns = 60,
        .rows = 40,
        .warmup = COX_WARMUP_NONE,
        .passes = COX_LIST(struct cox_pass, {.source = source, .kernel = "first"},
                           {.source = source, .kernel = "second"}),
        .buffers = COX_LIST(struct cox_buffer_layout, {.name = "in"}, {.name = "between", .scratch = true},
                            {.name = "sums", .bytes = 32, .merge = add}, {.name = "out", .pitch_bytes = 256})};
    cr_assert_eq(cox_session_create(runtime, &params, &scenes[0].session), COX_OK, "%s", logged);

    struct cox_session_buffer buffer;
    cr_assert_eq(cox_session_buffer_count(scenes[0].session), 4);
    cr_assert_eq(cox_session_buffer_info(scenes[0].session, 4, &buffer), COX_E_NOT_FOUND);
    for (uint32_t b = 0; b < 4; b++) {
        cr_assert_eq(cox_session_buffer_info(scenes[0].session, b, &buffer), COX_OK);
        cr_assert_str_eq(buffer.name, expected[b].name);
        cr_assert_eq(buffer.bytes, expected[b].bytes, "%s has %zu bytes", buffer.name, buffer.bytes);
        cr_assert_eq(buffer.pitch_bytes, expected[b].pitch_bytes, "%s", buffer.name);
        cr_assert_eq(buffer.reads, expected[b].reads, "%s", buffer.name);
        cr_assert_eq(buffer.writes, expected[b].writes, "%s", buffer.name);
        cr_assert_eq(buffer.scratch, expected[b].scratch, "%s", buffer.name);
    }
}
