/* Sessions with `ready`: devices join while frames are already running, and some devices never join.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "support/rig_play.h"
#include "engine/state.h"

TestSuite(engine_joining, .timeout = 600);

enum { ROWS = 60, COLUMNS = 16, FRAMES = 8, TRIES = 120000 /* at least one millisecond each */ };

static const uint64_t ms = 1000000;

#define DUO .device_count = 2, .devices = {{.name = "alpha", .ns_per_row = 1e4}, {.name = "beta", .ns_per_row = 1e4}}
static const struct fake_params duo = {DUO};
static const struct fake_params real_duo = {DUO, .real_time = true};

/* A session with `ready`, and the arguments that `ready` got. */
static struct party {
    struct play play;
    uint32_t next; /* frame number */
    atomic_uint calls;
    _Atomic cox_status status;
    atomic_uint done_before; /* frames whose callback ran before `ready` */
    uint32_t chain;          /* number of frames that `ready` submits */
    cox_status chained;
    pid_t waits;         /* the thread that unblock_soon waits for */
    uint64_t unblock_ns; /* how long after this thread begins to wait */
} party;

static void on_ready(void *user, cox_status status)
{
    (void)user;
    atomic_store(&party.status, status);
    atomic_store(&party.done_before, rig_done_count(party.play.rig));
    atomic_fetch_add(&party.calls, 1);
    for (uint32_t i = 0; i < party.chain; i++)
        party.chained = rig_submit(party.play.frames, party.play.session, party.next++, true);
}

/* Open a rig on which creating the devices in `blocks` (one bit each) takes until fake_unblock. */
static void open_rig(const struct fake_params *devices, uint32_t blocks)
{
    party = (struct party){.play = play_open(devices, ROWS, COLUMNS, 64, FRAMES), .waits = gettid()};
    for (uint32_t d = 0; d < 2; d++)
        if (blocks >> d & 1)
            FAKE_FAULT(party.play.fake, .kind = FAKE_INSTANCE_BLOCKS, .device = d, .delay_ns = UINT64_MAX);
}

/* The same, for a device whose creation fails in the end. */
static void block_in_vain(uint32_t device, cox_status status)
{
    FAKE_FAULT(party.play.fake, .kind = FAKE_INSTANCE_BLOCKS, .device = device, .delay_ns = UINT64_MAX,
               .status = status);
}

static void join_with(struct cox__session_spec extra)
{
    extra.ready = on_ready;
    extra.in_flight = 2;
    party.play.session = play_session(&party.play, &extra);
}

static void join(void)
{
    join_with((const struct cox__session_spec){.in_flight = 2});
}

static void rest(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    nanosleep(&time, NULL);
}

static struct cox_session_device device_of(uint32_t device)
{
    const struct cox_session_info info = rig_info(party.play.session);
    cr_assert_eq(info.device_count, 2);
    return info.devices[device];
}

static void submit(uint32_t frames)
{
    play_submit(&party.play, party.next, party.next + frames);
    party.next += frames;
}

/* Submit frames one at a time, wait for each, and check its bits. */
static void play_some(uint32_t frames)
{
    for (uint32_t i = 0; i < frames; i++) {
        submit(1);
        cr_assert_eq(cox_session_wait(party.play.session), COX_OK);
        cr_assert_eq(rig_done_status(party.play.rig, rig_done_count(party.play.rig) - 1), COX_OK, "%s",
                     rig_log(party.play.rig));
        play_check(&party.play, party.next - 1, party.next);
    }
}

static void play_until(uint32_t device, enum cox_device_state state)
{
    for (uint32_t tries = 0; device_of(device).state != state; tries++) {
        cr_assert_lt(tries, TRIES, "device %u is not in state %d\n%s", device, (int)state, rig_log(party.play.rig));
        play_some(1);
        rest(1 * ms);
    }
}

static void close_rig(void)
{
    cox_session_destroy(&party.play.session);
    cr_assert_eq(atomic_load(&party.calls), 1, "`ready` ran %u times", atomic_load(&party.calls));
    cr_assert_not(rig_logged(party.play.rig, "is leaked"), "%s", rig_log(party.play.rig));
    play_end(&party.play);
}

static void nothing_was_lost(void)
{
    for (uint32_t d = 0; d < 2; d++) {
        cr_assert_eq(device_of(d).lost, 0);
        cr_assert_eq(device_of(d).returned, 0);
    }
    cr_assert_not(rig_logged(party.play.rig, "is back"));
}

/* Call fake_unblock after the test's thread has begun to wait. */
static void *unblock_soon(void *user)
{
    (void)user;
    for (uint32_t tries = 0; !play_sleeps(party.waits) && tries < TRIES; tries++)
        rest(1 * ms);
    rest(party.unblock_ns ? party.unblock_ns : 20 * ms);
    fake_unblock(party.play.fake);
    return NULL;
}

static pthread_t unblock_later(void)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, unblock_soon, NULL), 0);
    return thread;
}

/* ---- devices that join ---- */

Test(engine_joining, frames_wait_for_the_first_device)
{
    open_rig(&real_duo, 3);
    join();
    submit(2);
    cr_assert(fake_await_blocked(party.play.fake, 2), "both devices are created in parallel");
    for (uint32_t d = 0; d < 2; d++) {
        cr_assert_eq(device_of(d).state, COX_DEVICE_JOINING);
        cr_assert_eq(device_of(d).max_rows, 0);
    }
    cr_assert_eq(atomic_load(&party.calls), 0);
    cr_assert_eq(rig_done_count(party.play.rig), 0);
    fake_unblock(party.play.fake);
    cr_assert_eq(cox_session_wait(party.play.session), COX_OK);
    play_was_told(&party.play, 2, COX_OK);
    play_check(&party.play, 0, 2);
    cr_assert_eq(atomic_load(&party.calls), 1);
    cr_assert_eq(atomic_load(&party.status), COX_OK);
    cr_assert_eq(atomic_load(&party.done_before), 0, "`ready` comes before the frames");
    play_until(0, COX_DEVICE_ACTIVE);
    play_until(1, COX_DEVICE_ACTIVE);
    nothing_was_lost();
    close_rig();
}

Test(engine_joining, devices_join_in_either_order)
{
    for (uint32_t late = 0; late < 2; late++) {
        open_rig(&real_duo, 1u << late);
        join_with((const struct cox__session_spec){.report = rig_report});
        play_some(1);
        cr_assert_eq(atomic_load(&party.calls), 1);
        cr_assert_eq(device_of(!late).state, COX_DEVICE_ACTIVE);
        play_some(4);
        cr_assert_eq(device_of(late).state, COX_DEVICE_JOINING);
        for (uint32_t r = 0; r < rig_report_count(party.play.rig); r++) {
            const struct rig_report *report = rig_report_at(party.play.rig, r);
            for (uint32_t b = 0; b < report->frame.band_count; b++)
                cr_assert_eq(report->bands[b].device, !late);
        }
        fake_unblock(party.play.fake);
        play_until(late, COX_DEVICE_ACTIVE);
        cr_assert_gt(device_of(late).max_rows, 0);
        play_some(1);
        nothing_was_lost();
        close_rig();
    }
}

Test(engine_joining, later_devices_are_tried_beside_a_frame_first)
{
    open_rig(&duo, 0);
    join_with((const struct cox__session_spec){.report = rig_report});
    cr_assert_eq(cox_session_wait(party.play.session), COX_OK);
    cr_assert_eq(atomic_load(&party.calls), 1, "cox_session_wait waits for `ready`");
    cr_assert_eq(device_of(0).state, COX_DEVICE_ACTIVE);
    cr_assert_eq(device_of(1).state, COX_DEVICE_PROBATION);
    play_some(1);
    uint32_t beside = 0;
    for (uint32_t r = 0; r < rig_report_count(party.play.rig); r++) {
        const struct rig_report *report = rig_report_at(party.play.rig, r);
        cr_assert_not(report->frame.warmup);
        beside += report->frame.shadow && report->bands[0].device == 1;
    }
    cr_assert_eq(beside, 1);
    play_until(1, COX_DEVICE_ACTIVE);
    nothing_was_lost();
    close_rig();
}

Test(engine_joining, ready_may_submit_a_frame)
{
    open_rig(&real_duo, 3);
    party.chain = 1;
    join();
    fake_unblock(party.play.fake);
    cr_assert_eq(cox_session_wait(party.play.session), COX_OK);
    cr_assert_eq(party.chained, COX_OK);
    cr_assert_eq(rig_done_count(party.play.rig), 1);
    cr_assert_eq(rig_done_status(party.play.rig, 0), COX_OK);
    close_rig();
}

Test(engine_joining, the_log_names_a_writable_argument_once)
{
    const struct cox__stage stage = RIG_STAGE("rig_map", 0, 1);
    const struct cox__binding bindings[] = {
        {.name = "in", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = 64},
        {.name = "out", .row_access = COX__ROWS, .access = COX__WRITE, .pitch_bytes = 64}};
    struct fake_params devices = duo;
    devices.devices[0].writable_args = devices.devices[1].writable_args = 1;
    open_rig(&devices, 0);
    cr_assert_eq(cox__session_create(rig_runtime(party.play.rig),
                                     &(const struct cox__session_spec){.rows = ROWS,
                                                                       .binding_count = 2,
                                                                       .bindings = bindings,
                                                                       .stage_count = 1,
                                                                       .stages = &stage,
                                                                       .params_bytes = sizeof(struct rig_params),
                                                                       .ready = on_ready,
                                                                       .ready_user = &party},
                                     &party.play.session),
                 COX_OK);
    play_until(1, COX_DEVICE_ACTIVE);
    cr_assert_eq(rig_logged_times(party.play.rig, "declare the pointer const"), 1);
    close_rig();
}

Test(engine_joining, a_warm_up_waits_for_every_device)
{
    for (uint32_t real = 0; real < 2; real++) {
        open_rig(real ? &real_duo : &duo, real ? 2 : 0);
        join();
        const pthread_t thread = unblock_later();
        cr_assert_eq(cox_session_warm(party.play.session, NULL), COX_OK);
        for (uint32_t d = 0; d < 2; d++) {
            cr_assert_eq(device_of(d).state, COX_DEVICE_ACTIVE);
            cr_assert_gt(device_of(d).single_device_ns, 0);
        }
        pthread_join(thread, NULL);
        play_some(1);
        nothing_was_lost();
        close_rig();
    }
}

Test(engine_joining, frames_that_wait_can_be_cancelled)
{
    open_rig(&real_duo, 3);
    join();
    submit(1);
    cr_assert_eq(cox_session_cancel(party.play.session), COX_OK);
    for (uint32_t tries = 0; rig_done_count(party.play.rig) == 0; tries++) {
        cr_assert_lt(tries, TRIES, "the frame is not cancelled");
        rest(1 * ms);
    }
    cr_assert_eq(rig_done_status(party.play.rig, 0), COX_E_CANCELLED);
    cr_assert_eq(atomic_load(&party.calls), 0, "that needs no device");
    fake_unblock(party.play.fake);
    play_some(1);
    close_rig();
}

Test(engine_joining, what_a_predecessor_has_measured_is_taken_over)
{
    cox_session *before;
    open_rig(&duo, 0);
    cr_assert_eq(rig_map_session(party.play.frames, &(const struct cox__session_spec){.in_flight = 2}, &before),
                 COX_OK);
    for (uint32_t i = 0; i < 30; i++)
        cr_assert_eq(rig_submit(party.play.frames, before, i, false), COX_OK);
    cr_assert_eq(cox_session_wait(before), COX_OK);
    join_with((const struct cox__session_spec){.warm_start = before});
    cox_session_destroy(&before);
    cr_assert(party.play.session->profile.is_loaded);
    cr_assert_gt(device_of(1).single_device_ns, 0);
    play_until(1, COX_DEVICE_ACTIVE);
    nothing_was_lost();
    close_rig();
}

/* ---- devices that do not join ---- */

Test(engine_joining, a_device_that_cannot_join_stays_out_for_good)
{
    for (uint32_t device = 0; device < 2; device++) {
        open_rig(&duo, 0);
        FAKE_FAULT(party.play.fake, .kind = FAKE_INSTANCE_FAILS, .device = device, .status = COX_E_BUILD);
        join();
        play_some(20);
        cr_assert_eq(atomic_load(&party.status), COX_OK);
        cr_assert_eq(device_of(!device).state, COX_DEVICE_ACTIVE);
        cr_assert_eq(device_of(device).state, COX_DEVICE_ABSENT);
        cr_assert(rig_logged(party.play.rig, "does not take part: "));
        cr_assert_eq(fake_steps(party.play.fake, FAKE_STEP_CREATE, device), 1, "the device is not tried again");
        nothing_was_lost();
        close_rig();
    }
}

Test(engine_joining, without_any_device_frames_end_and_ready_has_the_status_of_creation)
{
    static const cox_status statuses[][2] = {{COX_E_BUILD, COX_E_DEVICE_MEMORY}, {COX_E_NOMEM, COX_E_BUILD}};
    for (uint32_t s = 0; s < 2; s++) {
        cox_session *blocking;
        open_rig(&real_duo, 0);
        for (uint32_t d = 0; d < 2; d++)
            FAKE_FAULT(party.play.fake, .kind = FAKE_INSTANCE_FAILS, .device = d, .status = statuses[s][d]);
        const cox_status expected = rig_map_session(party.play.frames,
                                                    &(const struct cox__session_spec){.in_flight = 2}, &blocking);
        cr_assert_eq(expected, statuses[s][0]);
        for (uint32_t d = 0; d < 2; d++)
            block_in_vain(d, statuses[s][d]);
        join();
        submit(1);
        submit(1);
        fake_unblock(party.play.fake);
        cr_assert_eq(cox_session_wait(party.play.session), COX_OK);
        play_was_told(&party.play, 2, COX_E_NO_DEVICE);
        cr_assert_eq(atomic_load(&party.calls), 1);
        cr_assert_eq(atomic_load(&party.status), expected);
        cr_assert_eq(atomic_load(&party.done_before), 0);
        cr_assert_eq(rig_submit(party.play.frames, party.play.session, party.next, false), COX_E_NO_DEVICE);
        for (uint32_t d = 0; d < 2; d++)
            cr_assert_eq(device_of(d).state, COX_DEVICE_ABSENT);
        nothing_was_lost();
        close_rig();
    }
}

Test(engine_joining, a_warm_up_ends_when_no_device_can_join)
{
    open_rig(&real_duo, 0);
    block_in_vain(0, COX_E_BUILD);
    block_in_vain(1, COX_E_BUILD);
    join();
    const pthread_t thread = unblock_later();
    cr_assert_eq(cox_session_warm(party.play.session, NULL), COX_E_NO_DEVICE);
    pthread_join(thread, NULL);
    close_rig();
}

Test(engine_joining, while_a_device_joins_frames_wait_though_all_others_are_lost)
{
    open_rig(&real_duo, 2);
    join_with((const struct cox__session_spec){.device_timeout_ns = 300 * ms});
    play_some(1);
    FAKE_FAULT(party.play.fake, .kind = FAKE_DEVICE_DIES, .device = 0);
    FAKE_FAULT(party.play.fake, .kind = FAKE_INSTANCE_FAILS, .device = 0, .count = UINT32_MAX,
               .status = COX_E_DEVICE_LOST);
    submit(1);
    for (uint32_t tries = 0; device_of(0).lost == 0; tries++) {
        cr_assert_lt(tries, TRIES, "device 0 is not lost");
        rest(1 * ms);
    }
    rest(600 * ms); /* longer than the timeout of a session without devices */
    cr_assert_eq(rig_done_count(party.play.rig), 1);
    fake_unblock(party.play.fake);
    cr_assert_eq(cox_session_wait(party.play.session), COX_OK);
    cr_assert_eq(rig_done_status(party.play.rig, 1), COX_OK, "%s", rig_log(party.play.rig));
    cr_assert_str_empty(rig_check(party.play.frames, 1));
    cr_assert_eq(device_of(1).state, COX_DEVICE_ACTIVE);
    close_rig();
}

/* ---- end of a session ---- */

static void destroy_while_devices_are_made(uint32_t first)
{
    open_rig(&real_duo, 0);
    for (uint32_t d = first; d < 2; d++)
        block_in_vain(d, first ? COX_E_BUILD : COX_OK);
    join_with((const struct cox__session_spec){.device_timeout_ns = 200 * ms});
    if (first < 2)
        party.unblock_ns = 2000 * ms; /* longer than the timeout of a device that hangs */
    if (first == 1)
        play_some(1);
    const pthread_t thread = unblock_later();
    cox_session_destroy(&party.play.session);
    cr_assert_eq(atomic_load(&party.calls), 1);
    cr_assert_eq(atomic_load(&party.status), COX_OK);
    pthread_join(thread, NULL);
    close_rig();
}

Test(engine_joining, destroy_waits_for_all_devices_that_are_being_made)
{
    destroy_while_devices_are_made(0);
}

Test(engine_joining, destroy_waits_for_one_device_that_is_being_made)
{
    destroy_while_devices_are_made(1);
}

Test(engine_joining, destroy_waits_for_no_device_that_was_made)
{
    destroy_while_devices_are_made(2);
}

Test(engine_joining, frames_that_wait_are_done_before_the_session_goes)
{
    open_rig(&real_duo, 3);
    join();
    submit(1);
    const pthread_t thread = unblock_later();
    cox_session_destroy(&party.play.session);
    cr_assert_eq(rig_done_count(party.play.rig), 1);
    cr_assert_eq(rig_done_status(party.play.rig, 0), COX_OK);
    cr_assert_str_empty(rig_check(party.play.frames, 0));
    pthread_join(thread, NULL);
    close_rig();
}
