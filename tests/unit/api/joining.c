/* cox__session_spec.ready with drivers that compile kernels. Each test starts with an empty cache of the driver.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "real.h"
#include "support/folder.h"
#include <stdatomic.h>
#include <stdlib.h>

/* Runs before the first OpenCL call, because each test is its own process. */
static void setup(void)
{
    make_folder();
    setenv("POCL_CACHE_DIR", folder, 1);
}

static void teardown(void)
{
    close_all();
    remove_folder();
}

TestSuite(joining, .init = setup, .fini = teardown, .timeout = 600);

enum { HEIGHT = 240, WIDTH = 1024, TURNS = 5 };

static const char good[] =
    "kernel void blend(global const uchar *in, global uchar *out, int columns, int rows) {\n"
    "    const int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows) out[y * COLUMNS + x] = in[y * COLUMNS + x] * 5 + in[y * COLUMNS + x / 2] + TURN;\n"
    "}\n";

/* The arguments that callbacks got. */
struct told {
    atomic_uint calls;
    _Atomic cox_status status;
};

static void on_ready(void *user, cox_status status)
{
    struct told *told = user;
    atomic_store(&told->status, status);
    atomic_fetch_add(&told->calls, 1);
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    (void)frame;
    on_ready(user, status);
}

static void check_told(struct told *told, cox_status status)
{
    cr_assert_eq(atomic_load(&told->calls), 1);
    cr_assert_eq(atomic_load(&told->status), status, "%s", logged);
}

/* With `told` NULL the session's creation blocks until devices are ready. */
static cox_status create(const char *source, unsigned turn, struct told *told, cox_session **session)
{
    char options[64];
    const struct cox__binding bindings[] = {{.name = "in", .access = COX__READ, .pitch_bytes = WIDTH},
                                            {.name = "out", .access = COX__WRITE, .pitch_bytes = WIDTH}};
    const struct cox__variant variant = {.source = source, .options = options};
    const struct cox__arg args[] = {COX__ARG_BUFFER(0), COX__ARG_BUFFER(1), COX__ARG_COLUMNS, COX__ARG_ROWS};
    const struct cox__stage stage = {
        .kernel = "blend", .columns = WIDTH, .variant_count = 1, .variants = &variant, .arg_count = 4, .args = args};
    snprintf(options, sizeof options, "-DCOLUMNS=%d -DTURN=%u", WIDTH, turn);
    return cox__session_create(runtime,
                               &(const struct cox__session_spec){.rows = HEIGHT,
                                                                 .binding_count = 2,
                                                                 .bindings = bindings,
                                                                 .stage_count = 1,
                                                                 .stages = &stage,
                                                                 .ready = told ? on_ready : NULL,
                                                                 .ready_user = told},
                               session);
}

static bool all_are(cox_session *session, enum cox_device_state state)
{
    struct cox_session_info info;
    bool all = true;
    cox_session_info(session, &info);
    for (uint32_t d = 0; d < info.device_count; d++)
        all &= info.devices[d].state == state;
    return all && info.device_count > 0;
}

/* Returns whether creation returned while every device was still joining. */
static bool play(unsigned turn, cox_buffer *const buffers[3])
{
    struct told told = {0};
    struct told result = {0};
    cox_session *session, *blocking;
    cr_assert_eq(create(good, turn, &told, &session), COX_OK, "%s", logged);
    const bool early = all_are(session, COX_DEVICE_JOINING);
    cr_assert_eq(cox__session_submit(session, &(const struct cox__frame_spec){.buffers = buffers, .buffer_count = 2},
                                     on_done, &result),
                 COX_OK);
    cr_assert_eq(cox_session_wait(session), COX_OK);
    check_told(&result, COX_OK);
    check_told(&told, COX_OK);
    cr_assert_eq(cox_session_warm(session, NULL), COX_OK);
    cr_assert_eq(create(good, turn, NULL, &blocking), COX_OK, "%s", logged);
    cox_buffer *const others[] = {buffers[0], buffers[2]};
    cr_assert_eq(cox__session_run(blocking, &(const struct cox__frame_spec){.buffers = others, .buffer_count = 2}),
                 COX_OK);
    cr_assert_arr_eq(cox_buffer_data(buffers[1]), cox_buffer_data(buffers[2]), HEIGHT * WIDTH);
    for (uint32_t i = 0; i < 6000 && !all_are(session, COX_DEVICE_ACTIVE); i++) {
        cr_assert_eq(cox__session_run(session, &(const struct cox__frame_spec){.buffers = buffers, .buffer_count = 2}),
                     COX_OK);
        cr_assert_arr_eq(cox_buffer_data(buffers[1]), cox_buffer_data(buffers[2]), HEIGHT * WIDTH);
        usleep(10000);
    }
    cr_assert(all_are(session, COX_DEVICE_ACTIVE), "%s", logged);
    cox_session_destroy(&blocking);
    cox_session_destroy(&session);
    cr_assert_eq(atomic_load(&told.calls), 1);
    return early;
}

static void create_returns_before_kernels_are_there(const char *devices)
{
    open_runtime(devices);
    cox_buffer *buffers[3];
    bool early = false;
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_eq(cox_buffer_create(runtime, HEIGHT * WIDTH, &buffers[i]), COX_OK);
    unsigned char *in = cox_buffer_data(buffers[0]);
    for (uint32_t i = 0; i < HEIGHT * WIDTH; i++)
        in[i] = (unsigned char)(i * 2654435761u >> 13);
    /* On a busy machine this thread may not be scheduled while kernels are compiled. */
    for (unsigned turn = 0; turn < TURNS && !early; turn++)
        early = play(turn, buffers);
    cr_assert(early, "every time a device had its kernels when cox_session_create returned");
    for (uint32_t i = 0; i < 3; i++)
        cox_buffer_destroy(&buffers[i]);
}

Test(joining, create_returns_before_kernels_are_there_and_frames_are_the_same)
{
    create_returns_before_kernels_are_there("cpu");
}

Test(joining, create_returns_before_the_kernels_of_several_devices_are_there)
{
    create_returns_before_kernels_are_there("cpu:2x1");
}

Test(joining, ready_is_told_of_kernels_that_do_not_build)
{
    open_runtime("cpu");
    struct told told = {0};
    cox_session *session, *blocking;
    cr_assert_eq(create("kernel void blend(nonsense);", 0, NULL, &blocking), COX_E_BUILD);
    logged[0] = '\0';
    cr_assert_eq(create("kernel void blend(nonsense);", 1, &told, &session), COX_OK);
    cr_assert_eq(cox_session_wait(session), COX_OK);
    check_told(&told, COX_E_BUILD);
    cr_assert(all_are(session, COX_DEVICE_ABSENT));
    cr_assert_not_null(strstr(logged, "compiler: "), "the compiler's output is logged: %s", logged);
    cr_assert_not_null(strstr(logged, "does not take part"), "%s", logged);
    cox_session_destroy(&session);
}

Test(joining, what_is_wrong_with_the_parameters_is_said_at_once)
{
    open_runtime("cpu");
    struct told told = {0};
    cox_session *session;
    cr_assert_eq(cox__session_create(runtime,
                                     &(const struct cox__session_spec){
                                         .rows = 4, .ready = on_ready, .ready_user = &told},
                                     &session),
                 COX_E_INVALID);
    cr_assert_null(session);
    cox_runtime_destroy(&runtime);
    cr_assert_eq(atomic_load(&told.calls), 0);
}
