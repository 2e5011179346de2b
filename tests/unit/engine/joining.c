/* Sessions with `ready`: their devices join while frames are submitted already, and some never do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_rig.h"
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

TestSuite(engine_joining, .timeout = 300);

enum { ROWS = 60, COLUMNS = 16, FRAMES = 8, TRIES = 2000 };

static const uint64_t ms = 1000000;

static const struct fake_params duo = {
    .device_count = 2, .devices = {{.name = "alpha", .ns_per_row = 1e4}, {.name = "beta", .ns_per_row = 1e4}}};
static const struct fake_params real_duo = {
    .device_count = 2,
    .real_time = true,
    .devices = {{.name = "alpha", .ns_per_row = 1e4}, {.name = "beta", .ns_per_row = 1e4}}};

/* A rig, a session with `ready`, and what `ready` was told. */
struct party {
    struct rig *rig;
    struct fake *fake;
    struct rig_frames *frames;
    cox_session *session;
    uint32_t next;
    atomic_uint calls;
    _Atomic cox_status status;
    atomic_uint done_before; /* frames whose callback came before */
    uint32_t chain;          /* frames that `ready` submits */
    cox_status chained;
    uint64_t unblock_ns; /* after which unblock_soon does it; 0 = soon */
};

static void on_ready(void *user, cox_status status)
{
    struct party *party = user;
    atomic_store(&party->status, status);
    atomic_store(&party->done_before, rig_done_count(party->rig));
    atomic_fetch_add(&party->calls, 1);
    for (uint32_t i = 0; i < party->chain; i++)
        party->chained = rig_submit(party->frames, party->session, party->next++, true);
}

static void open_rig(struct party *party, const struct fake_params *devices)
{
    *party = (struct party){.rig = rig_new(devices)};
    party->fake = rig_fake(party->rig);
    party->frames = rig_frames_new(party->rig, ROWS, COLUMNS, 64, FRAMES);
}

static void join_with(struct party *party, struct cox_session_params extra)
{
    extra.ready = on_ready;
    extra.ready_user = party;
    extra.in_flight = 2;
    cr_assert_eq(rig_map_session(party->frames, &extra, &party->session), COX_OK, "%s", rig_log(party->rig));
}

static void join(struct party *party)
{
    join_with(party, *COX_SESSION_PARAMS(.in_flight = 2));
}

static void block(struct party *party, uint32_t device, cox_status status)
{
    fake_script(party->fake,
                &(struct fake_fault){
                    .kind = FAKE_INSTANCE_BLOCKS, .device = device, .delay_ns = UINT64_MAX, .status = status});
}

static void rest(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    nanosleep(&time, NULL);
}

static struct cox_session_device device_of(const struct party *party, uint32_t device)
{
    struct cox_session_info info;
    cox_session_info(party->session, &info, sizeof info);
    cr_assert_eq(info.device_count, 2);
    return info.devices[device];
}

static void submit(struct party *party)
{
    cr_assert_eq(rig_submit(party->frames, party->session, party->next++, false), COX_OK);
}

/* Submit a frame, wait for it, and look at its bits. */
static void play_one(struct party *party)
{
    const uint32_t frame = party->next % FRAMES;
    submit(party);
    cr_assert_eq(cox_session_wait(party->session), COX_OK);
    cr_assert_eq(rig_done_status(party->rig, rig_done_count(party->rig) - 1), COX_OK, "%s", rig_log(party->rig));
    const char *wrong = rig_check(party->frames, frame);
    cr_assert_str_empty(wrong, "%s", wrong);
}

static void play_until(struct party *party, uint32_t device, enum cox_device_state state)
{
    for (uint32_t tries = 0; device_of(party, device).state != state; tries++) {
        cr_assert_lt(tries, TRIES, "%s", rig_log(party->rig));
        play_one(party);
        rest(1 * ms);
    }
}

static void close_rig(struct party *party)
{
    cox_session_destroy(&party->session);
    cr_assert_eq(atomic_load(&party->calls), 1, "`ready` ran %u times", atomic_load(&party->calls));
    cr_assert_not(rig_logged(party->rig, "is leaked"), "%s", rig_log(party->rig));
    rig_frames_free(&party->frames);
    const char *verdict = rig_end(&party->rig);
    cr_assert_str_empty(verdict, "%s", verdict);
}

static void nothing_was_lost(const struct party *party)
{
    for (uint32_t d = 0; d < 2; d++) {
        cr_assert_eq(device_of(party, d).lost, 0);
        cr_assert_eq(device_of(party, d).returned, 0);
    }
    cr_assert_not(rig_logged(party->rig, "is back"));
}

static void *unblock_soon(void *user)
{
    struct party *party = user;
    rest(party->unblock_ns ? party->unblock_ns : 100 * ms);
    fake_unblock(party->fake);
    return NULL;
}

/* ---- devices that come ---- */

Test(engine_joining, frames_wait_for_the_first_device)
{
    struct party party;
    open_rig(&party, &real_duo);
    block(&party, 0, COX_OK);
    block(&party, 1, COX_OK);
    join(&party);
    submit(&party);
    submit(&party);
    cr_assert(fake_await_blocked(party.fake, 2), "both are made at once");
    for (uint32_t d = 0; d < 2; d++) {
        cr_assert_eq(device_of(&party, d).state, COX_DEVICE_JOINING);
        cr_assert_eq(device_of(&party, d).max_rows, 0);
    }
    cr_assert_eq(atomic_load(&party.calls), 0);
    cr_assert_eq(rig_done_count(party.rig), 0);
    fake_unblock(party.fake);
    cr_assert_eq(cox_session_wait(party.session), COX_OK);
    cr_assert_eq(rig_done_count(party.rig), 2);
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(rig_done_status(party.rig, i), COX_OK);
        cr_assert_str_empty(rig_check(party.frames, i));
    }
    cr_assert_eq(atomic_load(&party.calls), 1);
    cr_assert_eq(atomic_load(&party.status), COX_OK);
    cr_assert_eq(atomic_load(&party.done_before), 0, "`ready` comes before the frames");
    play_until(&party, 0, COX_DEVICE_ACTIVE);
    play_until(&party, 1, COX_DEVICE_ACTIVE);
    nothing_was_lost(&party);
    close_rig(&party);
}

Test(engine_joining, devices_join_in_either_order)
{
    for (uint32_t late = 0; late < 2; late++) {
        struct party party;
        open_rig(&party, &real_duo);
        block(&party, late, COX_OK);
        join_with(&party, *COX_SESSION_PARAMS(.report = rig_report, .report_user = party.rig));
        play_one(&party);
        cr_assert_eq(atomic_load(&party.calls), 1);
        cr_assert_eq(device_of(&party, !late).state, COX_DEVICE_ACTIVE);
        for (uint32_t i = 0; i < 4; i++)
            play_one(&party);
        cr_assert_eq(device_of(&party, late).state, COX_DEVICE_JOINING);
        for (uint32_t r = 0; r < rig_report_count(party.rig); r++)
            for (uint32_t b = 0; b < rig_report_at(party.rig, r)->frame.band_count; b++)
                cr_assert_eq(rig_report_at(party.rig, r)->bands[b].device, !late);
        fake_unblock(party.fake);
        play_until(&party, late, COX_DEVICE_ACTIVE);
        cr_assert_gt(device_of(&party, late).max_rows, 0);
        play_one(&party);
        nothing_was_lost(&party);
        close_rig(&party);
    }
}

Test(engine_joining, later_devices_are_tried_beside_a_frame_first)
{
    struct party party;
    open_rig(&party, &duo);
    join_with(&party, *COX_SESSION_PARAMS(.report = rig_report, .report_user = party.rig));
    cr_assert_eq(cox_session_wait(party.session), COX_OK);
    cr_assert_eq(atomic_load(&party.calls), 1, "cox_session_wait waits for `ready`");
    cr_assert_eq(device_of(&party, 0).state, COX_DEVICE_ACTIVE);
    cr_assert_eq(device_of(&party, 1).state, COX_DEVICE_PROBATION);
    play_one(&party);
    uint32_t beside = 0;
    for (uint32_t r = 0; r < rig_report_count(party.rig); r++) {
        const struct rig_report *report = rig_report_at(party.rig, r);
        cr_assert_not(report->frame.warmup);
        beside += report->frame.shadow && report->bands[0].device == 1;
    }
    cr_assert_eq(beside, 1);
    play_until(&party, 1, COX_DEVICE_ACTIVE);
    nothing_was_lost(&party);
    close_rig(&party);
}

Test(engine_joining, ready_may_submit_a_frame)
{
    struct party party;
    open_rig(&party, &real_duo);
    block(&party, 0, COX_OK);
    block(&party, 1, COX_OK);
    party.chain = 1;
    join(&party);
    fake_unblock(party.fake);
    cr_assert_eq(cox_session_wait(party.session), COX_OK);
    cr_assert_eq(party.chained, COX_OK);
    cr_assert_eq(rig_done_count(party.rig), 1);
    cr_assert_eq(rig_done_status(party.rig, 0), COX_OK);
    close_rig(&party);
}

Test(engine_joining, the_log_names_a_writable_argument_once)
{
    static const struct cox_variant variant = {.source = "fake"};
    static const struct cox_arg args[] = {COX_ARG_BUFFER(0), COX_ARG_BUFFER(1)};
    const struct cox_stage stage = {.kernel = "rig_map",
                                    .columns = COLUMNS,
                                    .variant_count = 1,
                                    .variants = &variant,
                                    .arg_count = 2,
                                    .args = args};
    const struct cox_binding bindings[] = {
        {.name = "in", .contract = COX_ROWS, .access = COX_READ, .pitch_bytes = 64},
        {.name = "out", .contract = COX_ROWS, .access = COX_WRITE, .pitch_bytes = 64}};
    struct fake_params devices = duo;
    struct party party;
    devices.devices[0].writable_args = devices.devices[1].writable_args = 1;
    open_rig(&party, &devices);
    cr_assert_eq(cox_session_create(rig_runtime(party.rig),
                                    COX_SESSION_PARAMS(.rows = ROWS, .binding_count = 2, .bindings = bindings,
                                                       .stage_count = 1, .stages = &stage,
                                                       .params_bytes = sizeof(struct rig_params), .ready = on_ready,
                                                       .ready_user = &party),
                                    &party.session),
                 COX_OK);
    play_until(&party, 1, COX_DEVICE_ACTIVE);
    const char *line = strstr(rig_log(party.rig), "declare the pointer const");
    cr_assert_not_null(line);
    cr_assert_null(strstr(line + 1, "declare the pointer const"));
    close_rig(&party);
}

Test(engine_joining, a_warm_up_waits_for_every_device)
{
    for (uint32_t real = 0; real < 2; real++) {
        struct party party;
        pthread_t thread;
        open_rig(&party, real ? &real_duo : &duo);
        if (real)
            block(&party, 1, COX_OK);
        join(&party);
        if (real)
            cr_assert_eq(pthread_create(&thread, NULL, unblock_soon, &party), 0);
        cr_assert_eq(cox_session_warm(party.session, NULL, NULL, NULL), COX_OK);
        for (uint32_t d = 0; d < 2; d++) {
            cr_assert_eq(device_of(&party, d).state, COX_DEVICE_ACTIVE);
            cr_assert_gt(device_of(&party, d).solo_ns, 0);
        }
        if (real)
            pthread_join(thread, NULL);
        play_one(&party);
        nothing_was_lost(&party);
        close_rig(&party);
    }
}

Test(engine_joining, frames_that_wait_can_be_cancelled)
{
    struct party party;
    open_rig(&party, &real_duo);
    block(&party, 0, COX_OK);
    block(&party, 1, COX_OK);
    join(&party);
    submit(&party);
    cr_assert_eq(cox_session_cancel(party.session), COX_OK);
    for (uint32_t tries = 0; rig_done_count(party.rig) == 0; tries++) {
        cr_assert_lt(tries, TRIES);
        rest(5 * ms);
    }
    cr_assert_eq(rig_done_status(party.rig, 0), COX_E_CANCELLED);
    cr_assert_eq(atomic_load(&party.calls), 0, "no device was needed for that");
    fake_unblock(party.fake);
    play_one(&party);
    close_rig(&party);
}

Test(engine_joining, what_a_predecessor_has_measured_is_taken_over)
{
    struct cox_session_info info;
    struct party party;
    cox_session *before;
    open_rig(&party, &duo);
    cr_assert_eq(rig_map_session(party.frames, COX_SESSION_PARAMS(.in_flight = 2), &before), COX_OK);
    for (uint32_t i = 0; i < 30; i++)
        cr_assert_eq(rig_submit(party.frames, before, i, false), COX_OK);
    cr_assert_eq(cox_session_wait(before), COX_OK);
    join_with(&party, *COX_SESSION_PARAMS(.predecessor = before));
    cox_session_destroy(&before);
    cox_session_info(party.session, &info, sizeof info);
    cr_assert(info.profile_loaded);
    cr_assert_gt(info.devices[1].solo_ns, 0);
    play_until(&party, 1, COX_DEVICE_ACTIVE);
    nothing_was_lost(&party);
    close_rig(&party);
}

/* ---- devices that do not ---- */

Test(engine_joining, a_device_that_cannot_join_stays_out_for_good)
{
    for (uint32_t device = 0; device < 2; device++) {
        struct party party;
        open_rig(&party, &duo);
        fake_script(party.fake,
                    &(struct fake_fault){.kind = FAKE_INSTANCE_FAILS, .device = device, .status = COX_E_BUILD});
        join(&party);
        for (uint32_t i = 0; i < 20; i++)
            play_one(&party);
        cr_assert_eq(atomic_load(&party.status), COX_OK);
        cr_assert_eq(device_of(&party, !device).state, COX_DEVICE_ACTIVE);
        cr_assert_eq(device_of(&party, device).state, COX_DEVICE_ABSENT);
        cr_assert(rig_logged(party.rig, "does not take part: "));
        size_t count;
        uint32_t created = 0;
        struct fake_record *record = fake_take_record(party.fake, &count);
        for (size_t i = 0; i < count; i++)
            created += record[i].step == FAKE_STEP_CREATE && record[i].device == device;
        free(record);
        cr_assert_eq(created, 1, "it is not tried again");
        nothing_was_lost(&party);
        close_rig(&party);
    }
}

Test(engine_joining, without_any_device_frames_end_and_ready_has_the_status_of_creation)
{
    static const cox_status statuses[][2] = {{COX_E_BUILD, COX_E_DEVICE_MEMORY}, {COX_E_NOMEM, COX_E_BUILD}};
    for (uint32_t s = 0; s < 2; s++) {
        struct party party;
        cox_session *blocking;
        open_rig(&party, &real_duo);
        for (uint32_t d = 0; d < 2; d++)
            fake_script(party.fake,
                        &(struct fake_fault){.kind = FAKE_INSTANCE_FAILS, .device = d, .status = statuses[s][d]});
        const cox_status expected = rig_map_session(party.frames, COX_SESSION_PARAMS(.in_flight = 2), &blocking);
        cr_assert_eq(expected, statuses[s][0]);
        for (uint32_t d = 0; d < 2; d++)
            block(&party, d, statuses[s][d]);
        join(&party);
        submit(&party);
        submit(&party);
        fake_unblock(party.fake);
        cr_assert_eq(cox_session_wait(party.session), COX_OK);
        cr_assert_eq(rig_done_count(party.rig), 2);
        for (uint32_t i = 0; i < 2; i++)
            cr_assert_eq(rig_done_status(party.rig, i), COX_E_NO_DEVICE);
        cr_assert_eq(atomic_load(&party.calls), 1);
        cr_assert_eq(atomic_load(&party.status), expected);
        cr_assert_eq(atomic_load(&party.done_before), 0);
        cr_assert_eq(rig_submit(party.frames, party.session, party.next, false), COX_E_NO_DEVICE);
        for (uint32_t d = 0; d < 2; d++)
            cr_assert_eq(device_of(&party, d).state, COX_DEVICE_ABSENT);
        nothing_was_lost(&party);
        close_rig(&party);
    }
}

Test(engine_joining, a_warm_up_ends_when_no_device_can_join)
{
    struct party party;
    pthread_t thread;
    open_rig(&party, &real_duo);
    block(&party, 0, COX_E_BUILD);
    block(&party, 1, COX_E_BUILD);
    join(&party);
    cr_assert_eq(pthread_create(&thread, NULL, unblock_soon, &party), 0);
    cr_assert_eq(cox_session_warm(party.session, NULL, NULL, NULL), COX_E_NO_DEVICE);
    pthread_join(thread, NULL);
    close_rig(&party);
}

Test(engine_joining, while_a_device_joins_frames_wait_though_all_others_are_lost)
{
    struct party party;
    open_rig(&party, &real_duo);
    block(&party, 1, COX_OK);
    join_with(&party, *COX_SESSION_PARAMS(.device_timeout_ns = 300 * ms));
    play_one(&party);
    fake_script(party.fake, &(struct fake_fault){.kind = FAKE_DEVICE_DIES, .device = 0});
    fake_script(party.fake,
                &(struct fake_fault){
                    .kind = FAKE_INSTANCE_FAILS, .device = 0, .count = UINT32_MAX, .status = COX_E_DEVICE_LOST});
    submit(&party);
    rest(900 * ms);
    cr_assert_geq(device_of(&party, 0).lost, 1);
    cr_assert_eq(rig_done_count(party.rig), 1);
    fake_unblock(party.fake);
    cr_assert_eq(cox_session_wait(party.session), COX_OK);
    cr_assert_eq(rig_done_status(party.rig, 1), COX_OK, "%s", rig_log(party.rig));
    cr_assert_str_empty(rig_check(party.frames, 1));
    cr_assert_eq(device_of(&party, 1).state, COX_DEVICE_ACTIVE);
    close_rig(&party);
}

/* ---- the end ---- */

Test(engine_joining, destroy_waits_for_what_is_being_made)
{
    for (uint32_t first = 0; first < 3; first++) { /* the first device that blocks: all, one, none */
        struct party party;
        pthread_t thread;
        open_rig(&party, &real_duo);
        for (uint32_t d = first; d < 2; d++)
            block(&party, d, first ? COX_E_BUILD : COX_OK);
        join_with(&party, *COX_SESSION_PARAMS(.device_timeout_ns = 200 * ms));
        party.unblock_ns = 2000 * ms; /* longer than for a device that hangs */
        if (first == 1)
            play_one(&party);
        cr_assert_eq(pthread_create(&thread, NULL, unblock_soon, &party), 0);
        cox_session_destroy(&party.session);
        cr_assert_eq(atomic_load(&party.calls), 1);
        cr_assert_eq(atomic_load(&party.status), COX_OK);
        pthread_join(thread, NULL);
        close_rig(&party);
    }
}

Test(engine_joining, frames_that_wait_are_done_before_the_session_goes)
{
    struct party party;
    pthread_t thread;
    open_rig(&party, &real_duo);
    block(&party, 0, COX_OK);
    block(&party, 1, COX_OK);
    join(&party);
    submit(&party);
    cr_assert_eq(pthread_create(&thread, NULL, unblock_soon, &party), 0);
    cox_session_destroy(&party.session);
    cr_assert_eq(rig_done_count(party.rig), 1);
    cr_assert_eq(rig_done_status(party.rig, 0), COX_OK);
    cr_assert_str_empty(rig_check(party.frames, 0));
    pthread_join(thread, NULL);
    close_rig(&party);
}
