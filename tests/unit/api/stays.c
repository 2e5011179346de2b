/* Buffers that stay on devices from frame to frame, on real devices. In iterations each frame reads what the frame
 * before has written. Tables seldom change. The host and other sessions use the buffers too.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/captured_log.h"
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdlib.h>
#include <string.h>

enum { W = 48, H = 256, STEPS = 23 };

static cox_runtime *runtime;
static cox_session *session, *other;
static cox_buffer *buffers[4];
static uint64_t copied_in_frames;

/* One step: the sum of three rows, stirred, so that every element depends on all rows near it. */
static const char step_source[] =
    "kernel void stir(global const uint *from, int from_first_row, global uint *to, int to_first_row, int columns,\n"
    "                 int rows, int first_row, int frame_rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1), r = first_row + y;\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    int up = max(r - 1, 0) - from_first_row, down = min(r + 1, frame_rows - 1) - from_first_row;\n"
    "    to[(r - to_first_row) * columns + x] =\n"
    "        (from[up * columns + x] + 3 * from[(r - from_first_row) * columns + x] + from[down * columns + x]) * 2654435761u\n"
    "        + x;\n"
    "}\n";

static void model(uint32_t *from, uint32_t *to)
{
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) {
            const uint32_t up = y ? y - 1 : 0, down = y < H - 1 ? y + 1 : y;
            to[y * W + x] = (from[up * W + x] + 3 * from[y * W + x] + from[down * W + x]) * 2654435761u + x;
        }
}

static void open_runtime(const char *devices)
{
    const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = devices, .log = on_log},
                                                 &runtime);
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE || status == COX_E_NOT_FOUND ||
        status == COX_E_INVALID)
        cr_skip_test("skipped, because there is no OpenCL device %s: %s", devices, cox_status_text(status));
    cr_assert_eq(status, COX_OK, "%s", logged);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(cox_buffer_create(runtime, W * H * sizeof(uint32_t), &buffers[i]), COX_OK);
}

static void fill(cox_buffer *buffer, uint32_t seed)
{
    uint32_t *data = cox_buffer_data(buffer);
    for (uint32_t i = 0; i < W * H; i++)
        data[i] = (i + seed) * 2654435761u;
}

static void teardown(void)
{
    cox_session_destroy(&session);
    cox_session_destroy(&other);
    for (int i = 0; i < 4; i++)
        cox_buffer_destroy(&buffers[i]);
    cox_runtime_destroy(&runtime);
    cr_assert(!runtime, "something was not released");
}

TestSuite(stays, .fini = teardown, .timeout = 300);

static void note(void *user, const struct cox_frame_report *report)
{
    (void)user;
    for (uint32_t b = 0; b < report->band_count && !report->warmup; b++)
        copied_in_frames += report->bands[b].copy_in_ns > 0;
}

static cox_status open_steps(const char *policy, cox_session **out)
{
    const struct cox_session_params params = {
        .columns = W,
        .rows = H,
        .passes = COX_LIST(struct cox_pass,
                           {.source = step_source,
                            .arguments = COX_LIST(struct cox_argument, {.name = "from", .halo_rows = 1})}),
        .buffers = COX_LIST(struct cox_buffer_layout, {.name = "from", .stays = true}, {.name = "to", .stays = true}),
        .policy = policy,
        .profile = true,
        .report = note};
    return cox_session_create(runtime, &params, out);
}

static void run_step(int from, int to)
{
    cr_assert_eq(cox_session_run(session, &(struct cox_frame){.buffers = COX_BUFFERS(buffers[from], buffers[to])}),
                 COX_OK, "%s", logged);
}

static void check(cox_buffer *buffer, const uint32_t *expected)
{
    const uint32_t *data = cox_buffer_data(buffer);
    for (uint32_t i = 0; i < W * H; i++)
        cr_assert_eq(data[i], expected[i], "row %u, column %u", i / W, i % W);
}

/* ---- iterations ---- */

struct set_up {
    char devices[24];
    char policy[24];
};

ParameterizedTestParameters(stays, iterations_give_what_one_device_gives)
{
    static struct set_up set_ups[] = {{"cpu=staged", "single"},       {"cpu=staged", "adaptive"},
                                      {"cpu:2x1=staged", "adaptive"}, {"cpu:2x1=staged", "chunks"},
                                      {"cpu:2x1", "adaptive"},        {"cpu:2x1=staged", "static"}};
    return cr_make_param_array(struct set_up, set_ups, sizeof set_ups / sizeof *set_ups);
}

ParameterizedTest(struct set_up *set_up, stays, iterations_give_what_one_device_gives)
{
    open_runtime(set_up->devices);
    cr_assert_eq(open_steps(set_up->policy, &session), COX_OK, "%s", logged);

    uint32_t *model_of[2] = {malloc(W * H * 4), malloc(W * H * 4)};
    fill(buffers[0], 1);
    memcpy(model_of[0], cox_buffer_data(buffers[0]), W * H * 4);
    for (int step = 0; step < STEPS; step++) {
        run_step(step % 2, !(step % 2));
        model(model_of[step % 2], model_of[!(step % 2)]);

        /* Looking at a buffer does not end the iterations. */
        if (step == 10) {
            cr_assert_eq(cox_session_fetch(session, buffers[1]), COX_OK, "%s", logged);
            check(buffers[1], model_of[1]);
        }
    }

    cr_assert_eq(cox_session_fetch(session, buffers[STEPS % 2]), COX_OK, "%s", logged);
    check(buffers[STEPS % 2], model_of[STEPS % 2]);

    /* A new start: the application writes the buffer. */
    fill(buffers[0], 77);
    cox_buffer_changed(buffers[0]);
    memcpy(model_of[0], cox_buffer_data(buffers[0]), W * H * 4);
    run_step(0, 1);
    model(model_of[0], model_of[1]);
    cr_assert_eq(cox_session_fetch(session, buffers[1]), COX_OK, "%s", logged);
    check(buffers[1], model_of[1]);

    free(model_of[0]);
    free(model_of[1]);
}

/* The devices' rows are in the host's memory only after a fetch. */
Test(stays, rows_stay_on_the_device_until_they_are_fetched)
{
    open_runtime("cpu=staged");
    cr_assert_eq(open_steps("single", &session), COX_OK, "%s", logged);
    fill(buffers[0], 1);
    memset(cox_buffer_data(buffers[1]), 0x5a, W * H * 4);
    uint32_t *expected = malloc(W * H * 4);
    model(cox_buffer_data(buffers[0]), expected);

    run_step(0, 1);
    const uint32_t *data = cox_buffer_data(buffers[1]);
    for (uint32_t i = 0; i < W * H; i++)
        cr_assert_eq(data[i], 0x5a5a5a5a);
    cr_assert_eq(cox_session_fetch(session, buffers[1]), COX_OK, "%s", logged);
    check(buffers[1], expected);

    /* Without a change the device reads its own rows. */
    fill(buffers[0], 9);
    run_step(0, 1);
    cr_assert_eq(cox_session_fetch(session, buffers[1]), COX_OK, "%s", logged);
    check(buffers[1], expected);
    free(expected);
}

Test(stays, a_table_is_copied_when_it_has_changed)
{
    static const char source[] =
        "kernel void look_up(global const uint *table, global uint *out, int columns, int rows, int first_row)\n"
        "{\n"
        "    int x = get_global_id(0), y = get_global_id(1);\n"
        "    if (x < columns && y < rows) out[y * columns + x] = table[(first_row + y) * 7 % 1000 + x];\n"
        "}\n";
    open_runtime("cpu=staged");
    const struct cox_session_params params = {
        .columns = W,
        .rows = H,
        .passes = COX_LIST(struct cox_pass,
                           {.source = source,
                            .arguments = COX_LIST(struct cox_argument, {.name = "table", .whole = true})}),
        .buffers = COX_LIST(struct cox_buffer_layout, {.name = "table", .stays = true, .bytes = 4800}, {.name = "out"}),
        .profile = true,
        .report = note};
    cr_assert_eq(cox_session_create(runtime, &params, &session), COX_OK, "%s", logged);

    fill(buffers[0], 5);
    for (int frame = 0; frame < 6; frame++) {
        if (frame == 3) {
            fill(buffers[0], 6);
            cox_buffer_changed(buffers[0]);
        }
        copied_in_frames = 0;
        run_step(0, 1);
        cr_expect_eq(copied_in_frames, frame % 3 == 0, "frame %d copied in %d bands", frame, (int)copied_in_frames);

        const uint32_t *table = cox_buffer_data(buffers[0]), *out = cox_buffer_data(buffers[1]);
        for (uint32_t y = 0; y < H; y++)
            for (uint32_t x = 0; x < W; x++)
                cr_assert_eq(out[y * W + x], table[y * 7 % 1000 + x]);
    }
}

Test(stays, a_kernel_may_change_its_rows_in_place)
{
    static const char source[] =
        "kernel void grow(global uint *grid, int grid_first_row, int columns, int rows, int first_row)\n"
        "{\n"
        "    int x = get_global_id(0), y = get_global_id(1);\n"
        "    if (x < columns && y < rows) grid[(first_row + y - grid_first_row) * columns + x] += first_row + y + 1;\n"
        "}\n";
    open_runtime("cpu:2x1=staged");
    const struct cox_session_params params = {
        .columns = W,
        .rows = H,
        .passes = COX_LIST(struct cox_pass,
                           {.source = source,
                            .arguments = COX_LIST(struct cox_argument, {.name = "grid", .in_place = true})}),
        .buffers = COX_LIST(struct cox_buffer_layout, {.name = "grid", .stays = true})};
    cr_assert_eq(cox_session_create(runtime, &params, &session), COX_OK, "%s", logged);
    memset(cox_buffer_data(buffers[0]), 0, W * H * 4);

    for (int frame = 0; frame < 12; frame++)
        cr_assert_eq(cox_session_run(session, &(struct cox_frame){.buffers = COX_BUFFERS(buffers[0])}), COX_OK, "%s",
                     logged);
    cr_assert_eq(cox_session_fetch(session, buffers[0]), COX_OK, "%s", logged);
    const uint32_t *data = cox_buffer_data(buffers[0]);
    for (uint32_t i = 0; i < W * H; i++)
        cr_assert_eq(data[i], 12 * (i / W + 1), "row %u", i / W);
}

Test(stays, frames_in_flight_follow_each_other)
{
    open_runtime("cpu:2x1=staged");
    cr_assert_eq(open_steps(NULL, &session), COX_OK, "%s", logged);
    uint32_t *model_of[2] = {malloc(W * H * 4), malloc(W * H * 4)};
    fill(buffers[0], 1);
    memcpy(model_of[0], cox_buffer_data(buffers[0]), W * H * 4);
    for (int step = 0; step < 40; step++) {
        const struct cox_frame frame = {.buffers = COX_BUFFERS(buffers[step % 2], buffers[!(step % 2)])};
        cr_assert_eq(cox_session_submit(session, &frame, NULL, NULL), COX_OK, "%s", logged);
        model(model_of[step % 2], model_of[!(step % 2)]);
    }
    cr_assert_eq(cox_session_fetch(session, buffers[0]), COX_OK, "%s", logged);
    check(buffers[0], model_of[0]);
    cr_assert_eq(cox_session_wait(session), COX_OK);
    struct cox_session_info info;
    cox_session_info(session, &info);
    cr_expect_eq(info.frames_done, 40); /* the fetch is no frame */
    free(model_of[0]);
    free(model_of[1]);
}

/* ---- who may use a buffer ---- */

Test(stays, another_session_gets_a_buffer_after_a_fetch)
{
    open_runtime("cpu=staged");
    cr_assert_eq(open_steps("single", &session), COX_OK, "%s", logged);
    cr_assert_eq(open_steps("single", &other), COX_OK, "%s", logged);
    fill(buffers[0], 1);
    uint32_t *expected = malloc(W * H * 4), *next = malloc(W * H * 4);
    model(cox_buffer_data(buffers[0]), expected);
    run_step(0, 1);

    const struct cox_frame frame = {.buffers = COX_BUFFERS(buffers[1], buffers[2])};
    cr_expect_eq(cox_session_run(other, &frame), COX_E_INVALID);
    cr_expect(strstr(logged,
                     "buffer 0 (from): devices of another session have its newest rows; call cox_session_fetch"),
              "%s", logged);

    cr_assert_eq(cox_session_fetch(session, buffers[1]), COX_OK);
    cr_assert_eq(cox_session_run(other, &frame), COX_OK, "%s", logged);
    cr_assert_eq(cox_session_fetch(other, buffers[2]), COX_OK);
    model(expected, next);
    check(buffers[2], next);

    /* This session's devices read again what the other session has written. */
    cr_assert_eq(cox_session_run(other, &(struct cox_frame){.buffers = COX_BUFFERS(buffers[2], buffers[0])}), COX_OK);
    cr_assert_eq(cox_session_fetch(other, buffers[0]), COX_OK);
    model(next, expected);
    run_step(0, 1);
    cr_assert_eq(cox_session_fetch(session, buffers[1]), COX_OK);
    model(expected, next);
    check(buffers[1], next);
    free(expected);
    free(next);
}

Test(stays, devices_keep_as_many_buffers_as_there_are_bindings)
{
    open_runtime("cpu=staged");
    cr_assert_eq(open_steps("single", &session), COX_OK, "%s", logged);
    fill(buffers[0], 1);
    run_step(0, 1);
    run_step(1, 0); /* the device has the newest rows of both */
    const struct cox_frame frame = {.buffers = COX_BUFFERS(buffers[0], buffers[2])};
    cr_expect_eq(cox_session_run(session, &frame), COX_E_INVALID);
    cr_expect(strstr(logged, "buffer 1 (to): the devices have memory for 2 buffers that stay; call cox_session_fetch"),
              "%s", logged);

    /* A buffer that is destroyed makes room, like one that is fetched. */
    cox_buffer_destroy(&buffers[1]);
    cr_expect_eq(cox_session_run(session, &frame), COX_OK, "%s", logged);
    cr_expect_eq(cox_session_run(session, &(struct cox_frame){.buffers = COX_BUFFERS(buffers[2], buffers[3])}),
                 COX_E_INVALID);
    cr_assert_eq(cox_session_fetch(session, buffers[0]), COX_OK, "%s", logged);
    cr_expect_eq(cox_session_run(session, &(struct cox_frame){.buffers = COX_BUFFERS(buffers[2], buffers[3])}), COX_OK);
}

Test(stays, what_cannot_stay_is_refused)
{
    static const char by_band[] =
        "kernel void f(global const uint *from, global uint *to, int columns, int rows)\n"
        "{ int x = get_global_id(0), y = get_global_id(1); if (x < columns && y < rows) to[y * columns + x] = from[y]; }\n";
    open_runtime("cpu=staged");
    const struct cox_session_params params = {
        .columns = W,
        .rows = H,
        .passes = COX_LIST(struct cox_pass, {.source = by_band}),
        .buffers = COX_LIST(struct cox_buffer_layout, {.name = "from"}, {.name = "to", .stays = true})};
    cr_expect_eq(cox_session_create(runtime, &params, &session), COX_E_INVALID);
    cr_expect(strstr(logged, "buffer 1 (to) cannot stay on devices"), "%s", logged);

    cr_assert_eq(open_steps(NULL, &session), COX_OK);
    static uint32_t from[W * H], to[W * H];
    cr_expect_eq(cox_session_run(session, &(struct cox_frame){.data = COX_ARGS(from, to)}), COX_E_INVALID);
    cr_expect(strstr(logged, "use `buffers`, not `data`"), "%s", logged);
    cr_expect_eq(cox_session_fetch(session, NULL), COX_E_INVALID);
    cr_expect_eq(cox_session_fetch(NULL, buffers[0]), COX_E_INVALID);
    cr_expect_eq(cox_session_fetch(session, buffers[0]), COX_OK); /* nothing to do */
    cox_buffer_changed(NULL);
}
