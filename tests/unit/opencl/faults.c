/* What the OpenCL backend does if a driver call fails in the middle of a band. This program replaces the calls that
 * fail, in front of the loader.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "specs.h"
#include "unit/opencl/driver.h"

#include <coxswain/coxswain.h>

enum { ROWS = 64, COLUMNS = 64 };

static atomic_bool is_old;       /* the driver does not know -cl-kernel-arg-info, as before OpenCL 1.2 */
static atomic_uint refused_info; /* builds with that option since then */

CL_API_ENTRY cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                                               const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                                               void *user)
{
    NEXT(clBuildProgram);
    if (is_old && strstr(options, "-cl-kernel-arg-info")) {
        refused_info++;
        return CL_INVALID_BUILD_OPTIONS;
    }
    return next(program, count, devices, options, notify, user);
}

/* ---- two devices, the first one slow; two stages compute `out` ---- */

static const char source[] =
    "#define ARGS (global uint *buffer, int columns, int first, int rows)\n"
    "#define GUARD int x = get_global_id(0), y = get_global_id(1); if (x >= columns || y >= rows) return;\n"
    "kernel void nothing ARGS {}\n"
    "kernel void triple ARGS { GUARD buffer[y * columns + x] = buffer[y * columns + x] * 3 + 1; }\n"
    "kernel void put ARGS {\n"
    "    GUARD\n"
    "    volatile int spin = 0;\n"
    "    while (x == 0 && spin < SPIN) spin++;\n"
    "    buffer[y * columns + x] = first + y;\n"
    "}\n";

static cox_runtime *runtime;
static cox_session *session;
static cox_buffer *buffer;
static uint32_t *data;

static void session_new(cox_session **out, enum cox__access access, const char *first, const char *second, double share)
{
    const double ratios[] = {share, 1 - share};
    const struct cox__binding binding = {
        .name = "buffer", .row_access = COX__ROWS, .access = access, .pitch_bytes = COLUMNS * sizeof(uint32_t)};
    const struct cox__variant variants[] = {{.device_plus_1 = 1, .source = source, .options = "-DSPIN=4000000"},
                                            {.source = source, .options = "-DSPIN=0"}};
    static const struct cox__arg args[] = {COX__ARG_BUFFER(0), COX__ARG_COLUMNS, COX__ARG_FIRST_ROW, COX__ARG_ROWS};
    struct cox__stage stages[2];
    for (int s = 0; s < 2; s++)
        stages[s] = (struct cox__stage){.kernel = s ? second : first,
                                        .columns = COLUMNS,
                                        .variant_count = 2,
                                        .variants = variants,
                                        .arg_count = 4,
                                        .args = args};
    const struct cox_policy_options options = {.ratios = ratios, .ratio_count = 2};
    cr_assert_eq(cox__session_create(runtime,
                                     &(const struct cox__session_spec){.rows = ROWS,
                                                                       .binding_count = 1,
                                                                       .bindings = &binding,
                                                                       .stage_count = 2,
                                                                       .stages = stages,
                                                                       .policy = "static",
                                                                       .policy_options = &options,
                                                                       .allow_in_place = true,
                                                                       .in_flight = 1,
                                                                       .no_warmup = true},
                                     out),
                 COX_OK);
}

static void begin(enum cox__access access, const char *first, const char *second)
{
    const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = "cpu:2x1"}, &runtime);
    if (status)
        cr_skip_test("skipped, because there is no CPU device that can be divided: %s", cox_status_text(status));
    session_new(&session, access, first, second, 0.5);
    cr_assert_eq(cox_buffer_create(runtime, ROWS * COLUMNS * sizeof(uint32_t), &buffer), COX_OK);
    data = cox_buffer_data(buffer);
    launch_code = CL_OUT_OF_RESOURCES;
    keep_launches = true;
}

static void end(void)
{
    cox_session_destroy(&session);
    cox_buffer_destroy(&buffer);
    cox_runtime_destroy(&runtime);
}

TestSuite(cl_faults, .fini = end, .timeout = 600);

static cox_status run(cox_session *of)
{
    return cox__session_run(of, &(const struct cox__frame_spec){.buffers = &buffer, .buffer_count = 1});
}

/* The frame is done, with the rows of `put`. Then wait for all kernels that were started for it, and check that
 * nothing wrote to the application's memory. */
static void check_done(void)
{
    const time_t wait_ends = time(NULL) + WAIT_SECONDS;
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        cr_assert_eq(data[i], i / COLUMNS, "element %u", i);
    memset(data, 0xee, ROWS * COLUMNS * sizeof(uint32_t));
    cr_assert_gt(launch_count, 0);
    while (launch_count) {
        cl_event event = launches[--launch_count];
        cl_int state = CL_QUEUED;
        while (!clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL) &&
               state > CL_COMPLETE)
            pause_until(wait_ends, "a kernel's end");
        clReleaseEvent(event);
    }
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        cr_assert_eq(data[i], 0xeeeeeeeeu, "element %u was written after its frame", i);
}

Test(cl_faults, without_a_fault_both_devices_work)
{
    begin(COX__READ_WRITE, "triple", "put");
    cr_assert_eq(run(session), COX_OK);
    check_done();
}

Test(cl_faults, a_driver_that_tells_nothing_of_arguments_is_built_for_without_that)
{
    is_old = true;
    begin(COX__READ_WRITE, "triple", "put");
    cr_assert_geq(refused_info, 1);
    cr_assert_eq(run(session), COX_OK);
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        cr_assert_eq(data[i], i / COLUMNS, "element %u", i);
}

Test(cl_faults, a_band_in_place_that_began_is_not_run_again)
{
    begin(COX__READ_WRITE, "triple", "triple");
    refuse_launch = 2;
    cr_assert_eq(run(session), COX_E_DEVICE_LOST);
    cr_assert_eq(refuse_launch, 0);
    cr_assert_eq(run(session), COX_OK); /* the other device continues alone */
}

Test(cl_faults, a_band_in_place_that_never_began_goes_elsewhere)
{
    begin(COX__READ_WRITE, "triple", "put");
    refuse_launch = 1;
    cr_assert_eq(run(session), COX_OK);
    check_done();
}

Test(cl_faults, what_was_enqueued_before_a_refusal_ends_before_its_frame)
{
    begin(COX__WRITE, "put", "nothing");
    refuse_launch = 2;
    cr_assert_eq(run(session), COX_OK);
    check_done();
}

Test(cl_faults, what_runs_on_after_a_failed_command_ends_before_its_frame)
{
    begin(COX__WRITE, "nothing", "put");
    next_launch_is_false = true;
    cr_assert_eq(run(session), COX_OK);
    cr_assert(was_false);
    check_done();
}

Test(cl_faults, memory_goes_after_what_was_enqueued_for_it)
{
    begin(COX__WRITE, "nothing", "put");
    cox_session *other;
    session_new(&other, COX__WRITE, "nothing", "put", 0.25);
    cr_assert_eq(run(session), COX_OK);
    cr_assert_eq(run(other), COX_OK); /* its bands replace those of the first session */
    cox_buffer_destroy(&buffer);
    const time_t wait_ends = time(NULL) + WAIT_SECONDS;
    for (int q = 0; q < QUEUES_MAX; q++)
        while (unfinished[q])
            pause_until(wait_ends, "the end of an unmapping"); /* it is released in the background */
    cox_session_destroy(&other);
}

/* ---- absolute passes ---- */

static uint32_t repeated;

static void note_repeated(void *user, const struct cox_frame_report *report)
{
    (void)user;
    for (uint32_t b = 0; b < report->band_count; b++)
        repeated += report->bands[b].attempt > 0;
}

/* Half of the frame is repeated, by the kernel that knows nothing of bands. */
static void repeat_absolute(const char *devices)
{
    static const char absolute[] =
        "kernel void f(global const uint *in, global uint *out, int columns, int rows)\n"
        "{\n"
        "    int x = get_global_id(0), y = get_global_id(1);\n"
        "    out[y * columns + x] = in[min(y + 1, rows - 1) * columns + x] + get_group_id(1);\n"
        "}\n";
    const double ratios[] = {0.5, 0.5};
    const struct cox_policy_options options = {.ratios = ratios, .ratio_count = 2};
    static uint32_t in[ROWS * COLUMNS], out[ROWS * COLUMNS];
    const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = devices}, &runtime);
    if (status)
        cr_skip_test("skipped, because there is no CPU device that can be divided: %s", cox_status_text(status));
    const struct cox_session_params params = {
        .columns = COLUMNS,
        .rows = ROWS,
        .passes = COX_LIST(struct cox_pass,
                           {.source = absolute,
                            .absolute = true,
                            .local_columns = 8,
                            .local_rows = 8,
                            .arguments = COX_LIST(struct cox_argument, {.name = "in", .halo_below = 1})}),
        .policy = "static",
        .policy_options = &options,
        .warmup = COX_WARMUP_NONE,
        .report = note_repeated};
    cr_assert_eq(cox_session_create(runtime, &params, &session), COX_OK);

    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        in[i] = i * 2654435761u;
    launch_code = CL_OUT_OF_RESOURCES;
    refuse_launch = 2;
    cr_assert_eq(cox_session_run(session, &(const struct cox_frame){.data = COX_ARGS(in, out)}), COX_OK);
    cr_expect_eq(repeated, 1);
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++) {
        const uint32_t row = i / COLUMNS, below = row < ROWS - 1 ? i + COLUMNS : i;
        cr_assert_eq(out[i], in[below] + row / 8, "row %u", row);
    }
}

Test(cl_faults, a_band_of_an_absolute_pass_is_repeated_elsewhere)
{
    repeat_absolute("cpu:2x1");
}

Test(cl_faults, a_staged_band_of_an_absolute_pass_is_repeated_elsewhere)
{
    repeat_absolute("cpu:2x1=staged");
}
