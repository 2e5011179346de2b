/* Buffers that stay on devices from frame to frame, on fake devices: random splits, frames in flight, fetches, and
 * devices that are lost. Memory of a fake device holds garbage until right rows are copied to it, so a row that is
 * missing shows in the result.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "passes_test.h"
#include "engine/timing.h"

TestSuite(stays, .timeout = 600);

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
    {.device_count = 1, .devices = {STAGED("staged")}},
    {.device_count = 2, .devices = {STAGED("one"), STAGED("other")}},
    {.device_count = 3, .devices = {STAGED("one"), STAGED("other"), MAPPED("mapped")}},
    {.device_count = 2, .devices = {STAGED("staged"), MAPPED("mapped")}},
};

enum { FROM, TO, BINDINGS };
static const struct cox__binding bindings[] = {BY_ROWS(.name = "from", .stays = true),
                                               BY_ROWS(.name = "to", .access = COX__WRITE, .stays = true)};
static const struct cox__stage near_stage[] = {RIG_STAGE("rig_near", FROM, TO)};
static const struct cox__stage turn_stage[] = {RIG_STAGE("rig_turn", FROM, TO)};
static const struct cox__pass_binding near_uses[] = {{.binding = FROM, .row_access = COX__HALO, .halo_rows = 1},
                                                     {.binding = TO, .access = COX__WRITE}};
static const struct cox__pass_binding turn_uses[] = {{.binding = FROM, .row_access = COX__WHOLE},
                                                     {.binding = TO, .access = COX__WRITE}};
static const struct cox__pass_spec near_pass[] = {RIG_PASS(near_uses, near_stage)};
static const struct cox__pass_spec turn_pass[] = {RIG_PASS(turn_uses, turn_stage)};

#define SESSION(its_passes, ...)                                                                              \
    &(const struct cox__session_spec)                                                                         \
    {                                                                                                         \
        .rows = ROWS, .binding_count = BINDINGS, .bindings = bindings, .pass_count = 1, .passes = its_passes, \
        .in_flight = 2, __VA_ARGS__                                                                           \
    }

/* ---- a buffer of bytes that iterates ---- */

static unsigned char now[BYTES], then[BYTES];

static void start_over(uint64_t seed)
{
    rig_fill(cox_buffer_data(in[0]), BYTES, &seed);
    cox_buffer_changed(in[0]);
    memcpy(now, cox_buffer_data(in[0]), BYTES);
}

/* The buffer with the newest rows is in[step % 2]. */
static cox_status run_step(uint32_t step, bool turns)
{
    cox_buffer *buffers[] = {in[step % 2], in[!(step % 2)]};
    const cox_status status = cox__session_run(session, &(const struct cox__frame_spec){.buffers = buffers,
                                                                                        .buffer_count = BINDINGS,
                                                                                        .params = &kernel_params});
    (turns ? turn_rows : near_rows)(now, then);
    memcpy(now, then, BYTES);
    return status;
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

static void fetch_and_check(uint32_t step)
{
    cr_assert_eq(cox_session_fetch(session, in[step % 2]), COX_OK, "%s", rig_log(rig));
    check_rows(in[step % 2], now, step);
}

/* ---- tests ---- */

Test(stays, random_splits_give_what_one_device_gives)
{
    for (rig_policy_seed = 0; rig_policy_seed < 48; rig_policy_seed++) {
        uint64_t random = rig_policy_seed;
        const bool turns = rig_policy_seed % 3 == 0;
        open_buffers(&worlds[rig_policy_seed % 4]);
        cr_assert_eq(try_session(SESSION(turns ? turn_pass : near_pass, .custom_policy = &random_policy)), COX_OK, "%s",
                     rig_log(rig));

        start_over(rig_policy_seed);
        for (uint32_t step = 0; step < 30; step++) {
            cr_assert_eq(run_step(step, turns), COX_OK, "%s", rig_log(rig));
            if (rig_random(&random) % 8 == 0 || step == 29)
                fetch_and_check(step + 1);
        }
        close_bench();
    }
}

/* Rows copied to devices and back by the bands that were submitted since the record was cleared. */
struct copied {
    uint32_t in, back, fetches, fetched;
};

static struct copied count_copied(void)
{
    struct copied sum = {0};
    size_t count;
    struct fake_record *record = fake_take_record(fake, &count);
    for (size_t i = 0; i < count; i++)
        if (record[i].step == FAKE_STEP_SUBMIT && record[i].kind == COX__JOB_FETCH) {
            sum.fetches++;
            sum.fetched += record[i].copied_rows;
        } else if (record[i].step == FAKE_STEP_SUBMIT) {
            sum.in += record[i].copied_rows;
            sum.back += record[i].back_rows;
        }
    free(record);
    return sum;
}

/* A session with the splits of the rig, at its first step. */
static void open_near(void)
{
    cr_assert_eq(try_session(SESSION(near_pass, .custom_policy = &rig_policy, .no_warmup = true)), COX_OK, "%s",
                 rig_log(rig));
    start_over(1);
}

/* Run steps 0 to end - 1, and count what steps 4 and later copy. */
static struct copied copied_from_step_4(uint32_t end)
{
    for (uint32_t step = 0; step < end; step++) {
        if (step == 4)
            fake_clear_record(fake);
        cr_assert_eq(run_step(step, false), COX_OK);
    }

    return count_copied();
}

/* With a steady split a frame copies only the rows around the border of the two bands. */
Test(stays, a_steady_split_exchanges_border_rows_only)
{
    const uint32_t half[][2] = {{0, ROWS / 2}, {1, ROWS / 2}};
    open_buffers(&worlds[1]);
    rig_add_split(2, half);
    open_near();
    const struct copied copied = copied_from_step_4(14);
    cr_expect_eq(copied.in, 20);
    cr_expect_eq(copied.back, 20);
    cr_expect_eq(copied.fetches, 0);
    fetch_and_check(14);
    close_bench();
}

/* Rows that change their device are copied once. Later frames copy border rows, of the old border as well. */
Test(stays, a_moved_split_moves_rows_once)
{
    const uint32_t half[][2] = {{0, ROWS / 2}, {1, ROWS / 2}}, moved[][2] = {{0, ROWS / 2 + 12}, {1, ROWS / 2 - 12}};
    open_buffers(&worlds[1]);
    for (int step = 0; step < 4; step++)
        rig_add_split(2, half);
    rig_add_split(2, moved);
    open_near();
    const struct copied copied = copied_from_step_4(10);
    cr_expect_eq(copied.fetched, 12); /* the first of the 13 was a border row */
    cr_expect_eq(copied.in, 13 + 5 * 2);
    cr_expect_eq(copied.back, 6 * (2 + 2));
    fetch_and_check(10);
    close_bench();
}

/* A split that drifts leaves old borders behind, which neighbours may need. They never make a device copy its whole
 * band. */
Test(stays, a_drifting_split_copies_no_whole_bands)
{
    open_buffers(&worlds[1]);
    for (uint32_t step = 0; step < 20; step++) {
        const uint32_t first = ROWS / 2 - 40 + 4 * step;
        rig_add_split(2, (const uint32_t[][2]){{0, first}, {1, ROWS - first}});
    }
    open_near();
    uint32_t whole = 0;
    for (uint32_t step = 0; step < 44; step++) {
        size_t count;
        fake_clear_record(fake);
        cr_assert_eq(run_step(step, false), COX_OK);
        struct fake_record *record = fake_take_record(fake, &count);
        for (size_t i = 0; i < count; i++)
            whole += record[i].step == FAKE_STEP_SUBMIT && record[i].kind != COX__JOB_FETCH &&
                     !(record[i].kept >> TO & 1);
        free(record);
    }
    cr_expect_eq(whole, 0);
    fetch_and_check(44);
    close_bench();
}

/* A device copies fetched rows while it computes, so a band begins when the band before it has ended. */
Test(stays, a_fetch_takes_no_time_from_a_band)
{
    struct cox__device device = {.last_end_ns = 1000};
    struct cox__queue_slot band = {.submit_ns = 1100}, fetch = {.submit_ns = 1050, .job.kind = COX__JOB_FETCH};
    struct cox_band_report of_band = {0}, of_fetch = {0};

    cox__timing_note_end(&device, &fetch, &of_fetch, 1900);
    cox__timing_note_end(&device, &band, &of_band, 2000);
    cr_expect_eq(of_fetch.wall_ns, 850);
    cr_expect_eq(of_band.wall_ns, 900);
    cr_expect_eq(of_band.queue_ns, 0);

    band.submit_ns = fetch.submit_ns = 1500;
    cox__timing_note_end(&device, &fetch, &of_fetch, 1900);
    cox__timing_note_end(&device, &band, &of_band, 2300);
    cr_expect_eq(of_fetch.wall_ns, 400);
    cr_expect_eq(of_band.wall_ns, 300);
    cr_expect_eq(of_band.queue_ns, 500);
}

/* ---- a buffer that a frame changes by way of scratch ---- */

static const struct cox__binding grid_bindings[] = {BY_ROWS(.name = "grid", .access = COX__READ_WRITE, .stays = true),
                                                    BY_ROWS(.name = "between", .scratch = true)};
static const struct cox__stage there_stage[] = {RIG_STAGE("rig_near", 0, 1)};
static const struct cox__stage back_stage[] = {RIG_STAGE("rig_near", 1, 0)};
static const struct cox__pass_binding there_uses[] = {{.binding = 0, .row_access = COX__HALO, .halo_rows = 1},
                                                      {.binding = 1, .access = COX__WRITE}};
static const struct cox__pass_binding back_uses[] = {{.binding = 1, .row_access = COX__HALO, .halo_rows = 1},
                                                     {.binding = 0, .access = COX__WRITE}};
static const struct cox__pass_spec grid_passes[] = {RIG_PASS(there_uses, there_stage), RIG_PASS(back_uses, back_stage)};

static void open_grid(const struct fake_params *world, const struct cox_policy *policy, bool no_warmup)
{
    open_buffers(world);
    cr_assert_eq(try_session(&(const struct cox__session_spec){.rows = ROWS,
                                                               .binding_count = BINDINGS,
                                                               .bindings = grid_bindings,
                                                               .pass_count = 2,
                                                               .passes = grid_passes,
                                                               .in_flight = 2,
                                                               .allow_in_place = true,
                                                               .no_warmup = no_warmup,
                                                               .custom_policy = policy}),
                 COX_OK, "%s", rig_log(rig));
}

static cox_status run_grid(void)
{
    cox_buffer *buffers[] = {in[0], NULL};
    const cox_status status = cox__session_run(session, &(const struct cox__frame_spec){.buffers = buffers,
                                                                                        .buffer_count = BINDINGS,
                                                                                        .params = &kernel_params});
    near_rows(now, then);
    near_rows(then, now);
    return status;
}

/* Without the grid the scratch is lost anyway, so it need not be on the host. */
Test(stays, scratch_of_iterations_stays_too)
{
    const uint32_t half[][2] = {{0, ROWS / 2}, {1, ROWS / 2}};
    rig_add_split(2, half);
    open_grid(&worlds[1], &rig_policy, true);
    start_over(1);
    for (uint32_t step = 0; step < 4; step++)
        cr_assert_eq(run_grid(), COX_OK, "%s", rig_log(rig));

    fake_clear_record(fake);
    for (uint32_t step = 0; step < 10; step++)
        cr_assert_eq(run_grid(), COX_OK);
    const struct copied copied = count_copied();
    cr_expect_eq(copied.in, 10 * (2 + 2));
    cr_expect_eq(copied.back, 10 * (2 + 2));
    cr_expect_eq(copied.fetches, 0);
    fetch_and_check(0);
    close_bench();
}

/* Scratch that is lost between two passes ends the frame: its input is overwritten. */
Test(stays, an_iteration_that_loses_scratch_says_so)
{
    static const enum fake_fault_kind kinds[] = {FAKE_EVENT_FAILS, FAKE_DEVICE_DIES, FAKE_HANGS, FAKE_SUBMIT_FAILS};
    uint32_t lost = 0, right = 0;
    for (rig_policy_seed = 0; rig_policy_seed < 48; rig_policy_seed++) {
        uint64_t random = rig_policy_seed + 1000;
        const struct fake_params *world = &worlds[rig_policy_seed % 4];
        open_grid(world, &random_policy, false);
        FAKE_FAULT(fake, .kind = kinds[rig_policy_seed / 4 % 4], .device = rig_random(&random) % world->device_count,
                   .skip = 6 + rig_random(&random) % 60, .status = COX_E_DEVICE_LOST, .delay_ns = 3000000);

        start_over(rig_policy_seed);
        for (uint32_t i = 0; i < 80; i++) {
            cox_status status = run_grid();
            if (status == COX_OK && rig_random(&random) % 4 == 0) {
                status = cox_session_fetch(session, in[0]);
                if (status == COX_OK)
                    check_rows(in[0], now, i);
                right += status == COX_OK;
            }
            if (status == COX_OK)
                continue;

            cr_assert(status == COX_E_DEVICE_LOST || status == COX_E_NO_DEVICE, "%s\n%s", cox_status_name(status),
                      rig_log(rig));
            lost++;
            start_over(rig_policy_seed + i);
        }
        close_bench();
    }
    cr_expect_gt(lost, 10);
    cr_expect_gt(right, 300);
}

/* A frame ends well with the right rows, or says that rows are lost. After that the application starts over. */
Test(stays, a_lost_device_never_gives_wrong_rows)
{
    static const enum fake_fault_kind kinds[] = {FAKE_EVENT_FAILS, FAKE_DEVICE_DIES, FAKE_HANGS, FAKE_SUBMIT_FAILS};
    uint32_t lost = 0, right = 0, back = 0;
    for (rig_policy_seed = 0; rig_policy_seed < 64; rig_policy_seed++) {
        uint64_t random = rig_policy_seed + 1000;
        const bool turns = rig_policy_seed % 3 == 0;
        const struct fake_params *world = &worlds[rig_policy_seed % 4];
        open_buffers(world);
        cr_assert_eq(try_session(SESSION(turns ? turn_pass : near_pass, .custom_policy = &random_policy)), COX_OK, "%s",
                     rig_log(rig));
        FAKE_FAULT(fake, .kind = kinds[rig_random(&random) % 4], .device = rig_random(&random) % world->device_count,
                   .skip = 6 + rig_random(&random) % 60, .status = COX_E_DEVICE_LOST, .delay_ns = 3000000);

        start_over(rig_policy_seed);
        uint32_t since = 0; /* steps since the last start */
        for (uint32_t i = 0; i < 150; i++) {
            cox_status status = run_step(since++, turns);
            if (status == COX_OK && rig_random(&random) % 4 == 0) {
                status = cox_session_fetch(session, in[since % 2]);
                if (status == COX_OK)
                    check_rows(in[since % 2], now, i);
                right += status == COX_OK;
            }
            if (status == COX_OK)
                continue;

            cr_assert(status == COX_E_DEVICE_LOST || status == COX_E_NO_DEVICE, "%s\n%s", cox_status_name(status),
                      rig_log(rig));
            lost++;
            since = 0;
            start_over(rig_policy_seed + i);
        }
        for (uint32_t d = 0; d < world->device_count; d++)
            back += rig_info(session).devices[d].returned;
        close_bench();
    }
    cr_expect_gt(lost, 10);
    cr_expect_gt(right, 500);
    cr_expect_gt(back, 10);
}

/* A buffer that no frame has used has no rows on devices, whatever the entries are. */
Test(stays, a_fetch_of_an_unused_buffer_does_nothing)
{
    open_buffers(&worlds[0]);
    cr_assert_eq(try_session(SESSION(near_pass)), COX_OK, "%s", rig_log(rig));
    fake_clear_record(fake);
    cr_expect_eq(cox_session_fetch(session, in[0]), COX_OK);
    start_over(1);
    cr_assert_eq(run_step(0, false), COX_OK);
    cr_expect_eq(cox_session_fetch(session, in[2]), COX_OK);
    fetch_and_check(1);
    close_bench();
}

/* The device fails while it copies the rows of one buffer to the host. It had those of the other one too. */
Test(stays, a_lost_device_loses_the_rows_of_all_buffers)
{
    open_buffers(&worlds[0]);
    cr_assert_eq(try_session(SESSION(near_pass)), COX_OK, "%s", rig_log(rig));
    start_over(1);
    for (uint32_t step = 0; step < 4; step++)
        cr_assert_eq(run_step(step, false), COX_OK);

    FAKE_FAULT(fake, .kind = FAKE_DEVICE_DIES, .device = 0, .delay_ns = 1000);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(cox_session_fetch(session, in[i]), COX_E_DEVICE_LOST);
        cr_expect(rig_logged(rig, "a lost device had the only copy of rows of buffer"));
    }

    start_over(2);
    for (uint32_t step = 0; step < 4; step++)
        cr_assert_eq(run_step(step, false), COX_OK, "%s", rig_log(rig));
    fetch_and_check(4);
    close_bench();
}

/* The device has memory for one input. The next frame waits until the frame before it does not need that any more. */
Test(stays, frames_under_way_take_turns_at_the_memory_of_the_devices)
{
    static const struct cox__binding table_stays[] = {BY_ROWS(.name = "from", .stays = true),
                                                      BY_ROWS(.name = "to", .access = COX__WRITE)};
    open_buffers(&worlds[1]);
    struct cox__session_spec params = *SESSION(near_pass);
    params.bindings = table_stays;
    cr_assert_eq(try_session(&params), COX_OK, "%s", rig_log(rig));
    for (uint32_t f = 0; f < FRAMES; f++)
        near_rows(cox_buffer_data(in[f]), expected[f]);
    submit_some(FRAMES);
    expect_right(0, FRAMES);
    close_bench();
}
