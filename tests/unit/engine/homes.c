/* Buffers that lie on a device (engine/home.h), on fake devices: random splits, several passes, frames in flight,
 * acquiring, and devices that are lost. Memory of devices and host copies hold garbage until right rows are copied to
 * them, so a row that is missing shows in the result.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "passes_test.h"

TestSuite(homes, .timeout = 600);

#define STAGED(the_name)                                                                                            \
    {                                                                                                               \
        .name = (the_name), .type = COX_DEVICE_GPU, .mode = COX_MODE_STAGED, .align_bytes = 128, .ns_per_row = 500, \
        .fixed_ns = 20000, .copy_in_ns_per_row = 100, .copy_out_ns_per_row = 100                                    \
    }
#define MAPPED(the_name)                                                                                            \
    {                                                                                                               \
        .name = (the_name), .type = COX_DEVICE_CPU, .mode = COX_MODE_MAPPED, .align_bytes = 128, .ns_per_row = 700, \
        .fixed_ns = 5000                                                                                            \
    }
static const struct fake_params worlds[] = {
    {.device_count = 2, .devices = {STAGED("one"), STAGED("other")}},
    {.device_count = 3, .devices = {STAGED("one"), MAPPED("mapped"), STAGED("other")}},
    {.device_count = 2, .devices = {STAGED("staged"), MAPPED("mapped")}},
    {.device_count = 1, .devices = {STAGED("staged")}},
};

/* near: from -> between; turn: between -> to */
enum { FROM, BETWEEN, TO, BINDINGS };
static const struct cox__binding three[] = {BY_ROWS(.name = "from"), BY_ROWS(.name = "between", .access = COX__WRITE),
                                            BY_ROWS(.name = "to", .access = COX__WRITE)};
static const struct cox__stage near_stage[] = {RIG_STAGE("rig_near", FROM, BETWEEN)};
static const struct cox__stage turn_stage[] = {RIG_STAGE("rig_turn", BETWEEN, TO)};
static const struct cox__pass_binding near_uses[] = {{.binding = FROM, .row_access = COX__HALO, .halo_rows = 1},
                                                     {.binding = BETWEEN, .access = COX__WRITE}};
static const struct cox__pass_binding turn_uses[] = {{.binding = BETWEEN, .row_access = COX__WHOLE},
                                                     {.binding = TO, .access = COX__WRITE}};
static const struct cox__pass_spec passes[] = {RIG_PASS(near_uses, near_stage), RIG_PASS(turn_uses, turn_stage)};

#define SESSION(...)                                                                                               \
    &(const struct cox__session_spec)                                                                              \
    {                                                                                                              \
        .rows = ROWS, .binding_count = BINDINGS, .bindings = three, .pass_count = 2, .passes = passes, __VA_ARGS__ \
    }

static cox_status shadowed_split(void *seed, const struct cox_sched_view *view, struct cox_split *out)
{
    random_split(seed, view, out);
    if (rig_random(seed) % 4 == 0)
        out->shadow = (struct cox_band){random_usable(seed, view), view->rows / 3, 5};
    return COX_OK;
}

static const struct cox_policy random_policy = {.name = "random",
                                                .state_bytes = rig_policy_bytes,
                                                .init = rig_policy_init,
                                                .split = shadowed_split,
                                                .assign = random_next};

/* ---- frames ---- */

/* Buffers of each frame, and what they should hold at the end. A buffer lies on a device or on the host. */
static cox_buffer *buffers[FRAMES][BINDINGS];
static bool homed[FRAMES][BINDINGS];
static unsigned char right[FRAMES][BINDINGS][BYTES];

static unsigned char *data_of(uint32_t frame, uint32_t binding)
{
    cox_buffer *buffer = buffers[frame][binding];
    return homed[frame][binding] ? fake_home_data(buffer) : cox_buffer_data(buffer);
}

static void make_buffer(uint32_t frame, uint32_t binding, int home, bool acquired)
{
    homed[frame][binding] = home >= 0;
    buffers[frame][binding] = home >= 0 ? fake_home_buffer(rig_runtime(rig), (uint32_t)home, BYTES, acquired)
                                        : new_buffer(BYTES);
}

static void fill(uint32_t frame, uint64_t seed)
{
    rig_fill(data_of(frame, FROM), BYTES, &seed);
    memcpy(right[frame][FROM], data_of(frame, FROM), BYTES);
    near_rows(right[frame][FROM], right[frame][BETWEEN]);
    turn_rows(right[frame][BETWEEN], right[frame][TO]);
}

static cox_status submit(uint32_t frame)
{
    return cox__session_submit(session,
                               &(const struct cox__frame_spec){
                                   .buffers = buffers[frame], .buffer_count = BINDINGS, .params = &kernel_params},
                               rig_done, rig);
}

static void check(uint32_t frame)
{
    for (uint32_t b = 0; b < BINDINGS; b++)
        for (uint32_t y = 0; y < ROWS; y++)
            cr_assert_arr_eq(data_of(frame, b) + y * PITCH, right[frame][b] + y * PITCH, COLUMNS,
                             "frame %u, binding %u, row %u\n%s", frame, b, y, rig_log(rig));
}

static void drop_buffers(void)
{
    for (uint32_t f = 0; f < FRAMES; f++)
        for (uint32_t b = 0; b < BINDINGS; b++)
            cox_buffer_destroy(&buffers[f][b]);
}

static void open_world(const struct fake_params *world)
{
    rig = rig_new(world);
    fake = rig_fake(rig);
}

static void close_world(void)
{
    cox_session_destroy(&session);
    drop_buffers();
    close_rig();
}

/* A device of the world that is staged, or -1 for the host. */
static int random_home(const struct fake_params *world, uint64_t *random)
{
    const int d = (int)(rig_random(random) % (world->device_count + 1)) - 1;
    return d >= 0 && world->devices[d].mode == COX_MODE_STAGED ? d : -1;
}

static void make_random_buffers(const struct fake_params *world, uint64_t *random)
{
    for (uint32_t f = 0; f < FRAMES; f++)
        for (uint32_t b = 0; b < BINDINGS; b++)
            make_buffer(f, b, random_home(world, random), rig_random(random) % 3 == 0);
}

/* ---- tests ---- */

Test(homes, random_splits_give_what_one_device_gives)
{
    for (rig_policy_seed = 0; rig_policy_seed < 48; rig_policy_seed++) {
        uint64_t random = rig_policy_seed;
        const struct fake_params *world = &worlds[rig_policy_seed % 4];
        open_world(world);
        make_random_buffers(world, &random);
        cr_assert_eq(try_session(SESSION(.custom_policy = &random_policy, .in_flight = 1 + rig_policy_seed % 3)),
                     COX_OK, "%s", rig_log(rig));
        for (uint32_t round = 0; round < 4; round++) {
            for (uint32_t f = 0; f < FRAMES; f++)
                fill(f, rig_policy_seed * 100 + round * 10 + f);
            for (uint32_t f = 0; f < FRAMES; f++)
                cr_assert_eq(submit(f), COX_OK, "%s", rig_log(rig));
            cr_assert_eq(cox_session_wait(session), COX_OK);
            for (uint32_t f = 0; f < FRAMES; f++) {
                cr_assert_eq(rig_done_status(rig, round * FRAMES + f), COX_OK, "%s", rig_log(rig));
                check(f);
            }
        }
        close_world();
    }
}

/* Every band may be repeated on another device, from rows that were fetched. */
Test(homes, verified_frames_give_the_same)
{
    for (rig_policy_seed = 0; rig_policy_seed < 12; rig_policy_seed++) {
        uint64_t random = rig_policy_seed;
        const struct fake_params *world = &worlds[rig_policy_seed % 3];
        open_world(world);
        make_random_buffers(world, &random);
        cr_assert_eq(try_session(SESSION(.custom_policy = &random_policy, .in_flight = 2, .verify = 0.5)), COX_OK, "%s",
                     rig_log(rig));
        for (uint32_t f = 0; f < FRAMES; f++) {
            fill(f, rig_policy_seed * 100 + f);
            cr_assert_eq(submit(f), COX_OK, "%s", rig_log(rig));
        }
        cr_assert_eq(cox_session_wait(session), COX_OK);
        for (uint32_t f = 0; f < FRAMES; f++) {
            cr_assert_eq(rig_done_status(rig, f), COX_OK, "%s", rig_log(rig));
            check(f);
        }
        close_world();
    }
}

struct moved {
    uint32_t fetched, pushed, acquired, released, in, back;
};

static struct moved count_moved(void)
{
    struct moved sum = {0};
    size_t count;
    struct fake_record *record = fake_take_record(fake, &count);
    for (size_t i = 0; i < count; i++) {
        if (record[i].step != FAKE_STEP_SUBMIT)
            continue;
        sum.fetched += record[i].kind == COX__JOB_FETCH ? record[i].copied_rows : 0;
        sum.pushed += record[i].kind == COX__JOB_PUSH ? record[i].copied_rows : 0;
        sum.acquired += record[i].kind == COX__JOB_ACQUIRE;
        sum.released += record[i].kind == COX__JOB_RELEASE;
        sum.in += record[i].kind == COX__JOB_BAND ? record[i].copied_rows : 0;
        sum.back += record[i].kind == COX__JOB_BAND ? record[i].back_rows : 0;
    }
    free(record);
    return sum;
}

static struct moved run_one(const struct fake_params *world, uint32_t bands, const uint32_t (*split)[2], bool acquired)
{
    open_world(world);
    for (uint32_t b = 0; b < BINDINGS; b++)
        make_buffer(0, b, 0, acquired);
    rig_set_split(bands, split);
    cr_assert_eq(try_session(SESSION(.custom_policy = &rig_policy, .no_warmup = true)), COX_OK, "%s", rig_log(rig));
    fill(0, 7);
    fake_clear_record(fake);
    cr_assert_eq(submit(0), COX_OK, "%s", rig_log(rig));
    cr_assert_eq(cox_session_wait(session), COX_OK);
    cr_assert_eq(rig_done_status(rig, 0), COX_OK, "%s", rig_log(rig));
    check(0);
    return count_moved();
}

Test(homes, a_frame_of_the_home_device_alone_copies_nothing)
{
    const struct moved moved = run_one(&worlds[3], 1, (const uint32_t[][2]){{0, ROWS}}, false);
    cr_expect_eq(moved.fetched + moved.pushed + moved.in + moved.back, 0);
    cr_expect_eq(moved.acquired + moved.released, 0);
    for (uint32_t b = 0; b < BINDINGS; b++)
        cr_expect(!fake_home_has_host(buffers[0][b]));
    cr_expect_null(cox_buffer_data(buffers[0][FROM]));
    close_world();
}

Test(homes, other_devices_get_and_give_their_rows_alone)
{
    /* The second device does the lower half. In the first pass it reads its rows and one above. In the second it reads
     * all rows of `between`, of which the first device has the upper half. */
    const struct moved moved = run_one(&worlds[0], 2, (const uint32_t[][2]){{0, ROWS / 2}, {1, ROWS / 2}}, false);
    cr_expect_eq(moved.fetched, ROWS / 2 + 1 + ROWS / 2);
    cr_expect_eq(moved.in, ROWS / 2); /* the first device reads the other half of `between` */
    cr_expect_eq(moved.pushed, ROWS / 2);
    close_world();
}

Test(homes, a_buffer_is_acquired_first_and_released_last)
{
    const struct moved moved = run_one(&worlds[0], 2, (const uint32_t[][2]){{0, ROWS / 2}, {1, ROWS / 2}}, true);
    cr_expect_eq(moved.acquired, BINDINGS);
    cr_expect_eq(moved.released, BINDINGS);
    close_world();
}

/* A frame gives right rows, or says that a device was lost. Frames with all buffers on the host survive. */
Test(homes, a_lost_device_never_gives_wrong_rows)
{
    static const enum fake_fault_kind kinds[] = {FAKE_EVENT_FAILS, FAKE_DEVICE_DIES, FAKE_HANGS, FAKE_SUBMIT_FAILS};
    uint32_t lost = 0, well = 0;
    for (rig_policy_seed = 0; rig_policy_seed < 96; rig_policy_seed++) {
        uint64_t random = rig_policy_seed + 1000;
        const struct fake_params *world = &worlds[rig_policy_seed % 4];
        open_world(world);
        make_random_buffers(world, &random);
        for (uint32_t b = 0; b < BINDINGS; b++) { /* one frame on the host */
            cox_buffer_destroy(&buffers[0][b]);
            make_buffer(0, b, -1, false);
        }
        cr_assert_eq(try_session(SESSION(.custom_policy = &random_policy, .in_flight = 1 + rig_policy_seed % 2)),
                     COX_OK, "%s", rig_log(rig));
        FAKE_FAULT(fake, .kind = kinds[rig_random(&random) % 4], .device = rig_random(&random) % world->device_count,
                   .skip = 4 + rig_random(&random) % 60, .status = COX_E_DEVICE_LOST, .delay_ns = 3000000);
        for (uint32_t round = 0; round < 6; round++) {
            const uint32_t before = rig_done_count(rig);
            for (uint32_t f = 0; f < FRAMES; f++)
                fill(f, rig_policy_seed * 100 + round * 10 + f);
            uint32_t submitted = 0;
            bool in[FRAMES] = {false};
            for (uint32_t f = 0; f < FRAMES; f++) {
                const cox_status status = submit(f);
                in[f] = status == COX_OK;
                submitted += in[f];
                cr_assert(in[f] || status == COX_E_NO_DEVICE, "%s\n%s", cox_status_name(status), rig_log(rig));
            }
            cox_session_wait(session);
            cr_assert_eq(rig_done_count(rig), before + submitted);
            for (uint32_t f = 0, at = before; f < FRAMES; f++) {
                if (!in[f])
                    continue;
                const cox_status status = rig_done_status(rig, at++);
                cr_assert(status == COX_OK || status == COX_E_DEVICE_LOST || status == COX_E_NO_DEVICE ||
                              status == COX_E_MEMORY_UNSAFE,
                          "%s\n%s", cox_status_name(status), rig_log(rig));
                cr_assert(f != 0 || status == COX_OK || world->device_count == 1, "%s\n%s", cox_status_name(status),
                          rig_log(rig));
                lost += status != COX_OK;
                well += status == COX_OK;
                if (status == COX_OK)
                    check(f);
            }
        }
        close_world();
    }
    cr_expect_gt(lost, 100);
    cr_expect_gt(well, 1000);
}

/* A cancelled frame gives back what it acquired. */
Test(homes, a_cancelled_frame_releases_its_buffers)
{
    for (uint32_t wait = 0; wait < 24; wait++) {
        open_world(&worlds[0]);
        for (uint32_t f = 0; f < FRAMES; f++)
            for (uint32_t b = 0; b < BINDINGS; b++)
                make_buffer(f, b, (int)(b % 2), true);
        cr_assert_eq(try_session(SESSION(.in_flight = 3)), COX_OK, "%s", rig_log(rig));
        fake_clear_record(fake);
        for (uint32_t f = 0; f < FRAMES; f++) {
            fill(f, f);
            cr_assert_eq(submit(f), COX_OK, "%s", rig_log(rig));
            if (f == wait % FRAMES)
                cox_session_cancel(session);
        }
        cox_session_wait(session);
        const struct moved moved = count_moved();
        cr_expect_eq(moved.acquired, moved.released);
        close_world();
    }
}

Test(homes, unsuitable_bindings_are_refused)
{
    static const struct cox__binding staying[] = {BY_ROWS(.name = "from", .stays = true),
                                                  BY_ROWS(.name = "between", .access = COX__WRITE),
                                                  BY_ROWS(.name = "to", .access = COX__WRITE)};
    open_world(&worlds[0]);
    for (uint32_t b = 0; b < BINDINGS; b++)
        make_buffer(0, b, b == FROM ? 0 : -1, false);
    struct cox__session_spec params = *SESSION(.in_flight = 1);
    params.bindings = staying;
    cr_assert_eq(try_session(&params), COX_OK, "%s", rig_log(rig));
    cr_expect_eq(submit(0), COX_E_UNSUPPORTED);
    cr_expect(rig_logged(rig, "buffer 0 (from) cannot lie on a device: it stays on devices"));
    cr_expect_eq(cox_session_fetch(session, buffers[0][FROM]), COX_E_INVALID);
    cr_expect(rig_logged(rig, "cox_session_fetch: the buffer lies on a device"));
    close_world();
}

Test(homes, a_session_without_the_home_device_refuses_the_buffer)
{
    open_world(&worlds[0]);
    for (uint32_t b = 0; b < BINDINGS; b++)
        make_buffer(0, b, b == FROM ? 1 : -1, false);
    struct cox__session_spec params = *SESSION(.in_flight = 1);
    params.device_count = 1;
    params.devices = (const uint32_t[]){0};
    cr_assert_eq(try_session(&params), COX_OK, "%s", rig_log(rig));
    cr_expect_eq(submit(0), COX_E_INVALID);
    cr_expect(rig_logged(rig, "buffer 0 (from) lies on device 1, which takes no part in the session"));
    close_world();
}
