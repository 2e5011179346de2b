/* Devices that fail are quarantined, retried in the background, put on probation, and then used again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "scene_test.h"
#include <string.h>

TestSuite(engine_device_state, .timeout = 600);

/* ---- devices that come back ---- */

/* Check that the device was created again once, no earlier than its pause after `failed_ns` allows, and that its
 * first rows afterwards were copies. */
static void check_probation(uint32_t device)
{
    uint64_t failed_ns = 0, created_ns = 0;
    uint32_t copies = 0, own = 0;
    struct walk walk = {0};
    for (const struct fake_record *step; (step = next_step(&walk));) {
        if (step->device != device)
            continue;
        if (failed_ns == 0 && step->failed)
            failed_ns = step->time_ns;
        if (step->step == FAKE_STEP_CREATE) {
            cr_assert(step->fresh);
            cr_assert_eq(created_ns, 0);
            created_ns = step->time_ns;
        }
        if (step->step != FAKE_STEP_SUBMIT || !created_ns)
            continue;
        cr_assert(own > 0 || copies > 0 || !scene_own(&scene, step), "the device had no probation");
        copies += !scene_own(&scene, step);
        own += scene_own(&scene, step);
    }
    cr_assert_geq(created_ns, failed_ns + 40 * ms);
    cr_assert_gt(copies, 0);
    cr_assert_gt(own, 10);
}

Test(engine_device_state, a_device_that_fails_is_tried_again_does_rows_on_probation_and_returns)
{
    static const enum fake_fault_kind kinds[] = {FAKE_EVENT_FAILS, FAKE_SUBMIT_FAILS, FAKE_DEVICE_DIES};
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t device = 0; device < 3; device++)
            for (uint32_t in_flight = 2; in_flight <= 3; in_flight++) {
                begin(SHAPE_MAP, &(const struct cox__session_spec){.in_flight = in_flight});
                fault(kinds[k], device, 20 * ms);
                play_good(100);
                cr_assert_eq(device_now(device).state, COX_DEVICE_ACTIVE, "%s", rig_log(scene.rig));
                cr_assert_eq(device_now(device).returned, 1);
                check_lost(device, 1, "a device that failed");
                check_probation(device);
                const char *lost = strstr(rig_log(scene.rig), trio.devices[device].name);
                cr_assert(lost && strstr(lost + 1, trio.devices[device].name), "the log says both lost and back");
                end();
            }
}

Test(engine_device_state, a_device_is_not_rebuilt_beside_its_lost_instance_unless_that_takes_long)
{
    for (uint32_t device = 0; device < 3; device++)
        for (uint64_t late_ns = 200 * ms; late_ns <= 5000 * ms; late_ns *= 25) {
            begin(SHAPE_MAP, &(const struct cox__session_spec){.in_flight = 2, .device_timeout_ns = 20000 * ms});
            const uint64_t began_ns = fake_now(scene.fake);
            fault(FAKE_FAILS_LATE, device, late_ns);
            play_good(2000);
            uint64_t created_ns = 0, destroyed_ns = 0;
            cr_assert_eq(steps(&scene, FAKE_STEP_CREATE, device, &created_ns), 1, "%s", rig_log(scene.rig));
            cr_assert_eq(steps(&scene, FAKE_STEP_DESTROY, device, &destroyed_ns), 1);
            cr_assert_geq(destroyed_ns, began_ns + late_ns);
            cr_assert_eq(created_ns >= destroyed_ns, late_ns == 200 * ms);
            cr_assert_lt(created_ns, began_ns + 700 * ms);
            cr_assert_eq(device_now(device).returned, 1);
            end();
        }
}

Test(engine_device_state, a_device_of_a_shared_context_comes_back_with_its_own)
{
    static const struct fake_params shared = {.device_count = 3,
                                              .devices = {{.mode = COX_MODE_SHARED, .ns_per_row = 1e5},
                                                          {.mode = COX_MODE_SHARED, .ns_per_row = 1e5},
                                                          {.mode = COX_MODE_SHARED, .ns_per_row = 1e5}}};
    begin_on(&shared, SHAPE_MAP, 0, &(const struct cox__session_spec){.in_flight = 2});
    cr_assert_eq(device_now(1).mode, COX_MODE_SHARED);
    fault(FAKE_EVENT_FAILS, 1, 0);
    scene_play(&scene, 80);
    cr_assert_eq(device_now(1).returned, 1);
    cr_assert_eq(device_now(1).mode, COX_MODE_MAPPED);
    cr_assert_eq(device_now(0).mode, COX_MODE_SHARED);
    end();
}

Test(engine_device_state, the_pause_between_two_tries_grows_to_half_a_minute)
{
    static const struct fake_params slow = {.device_count = 3,
                                            .devices = {{.ns_per_row = 5e6}, {.ns_per_row = 5e6}, {.ns_per_row = 5e6}}};
    begin_on(&slow, SHAPE_MAP, 0, &(const struct cox__session_spec){.in_flight = 2});
    fault(FAKE_DEVICE_DIES, 1, 0);
    play_good(700); /* 225 ms per frame: two and a half minutes */
    uint64_t last_ns = 0, gap_ns = 0;
    uint32_t tries = 0;
    struct walk walk = {0};
    for (const struct fake_record *step; (step = next_step(&walk));) {
        if (step->device == 1 && step->failed && last_ns == 0)
            last_ns = step->time_ns;
        if (step->step != FAKE_STEP_CREATE)
            continue;
        cr_assert_eq(step->device, 1);
        const uint64_t next_ns = step->time_ns - last_ns;
        cr_assert_geq(next_ns, 40 * ms);
        cr_assert_leq(next_ns, 31000 * ms);
        if (next_ns < 29000 * ms) /* a retry may have to wait for the frame */
            cr_assert_geq(next_ns + 300 * ms, 2 * gap_ns, "pause %u: %u ms after %u ms", tries,
                          (unsigned)(next_ns / ms), (unsigned)(gap_ns / ms));
        gap_ns = next_ns;
        last_ns = step->time_ns;
        tries++;
    }
    cr_assert_geq(gap_ns, 29000 * ms);
    cr_assert_geq(tries, 11); /* 0.05 s doubled nine times is 25.6 s */
    cr_assert_neq(device_now(1).state, COX_DEVICE_ACTIVE);
    end();
}

Test(engine_device_state, whatever_a_try_says_the_next_one_comes)
{
    static const cox_status statuses[] = {COX_E_BUILD, COX_E_DEVICE_MEMORY, COX_E_NOMEM, COX_E_DEVICE_LOST};
    for (uint32_t s = 0; s < 4; s++) {
        begin(SHAPE_MAP, &(const struct cox__session_spec){.in_flight = 2});
        fault(FAKE_EVENT_FAILS, 1, 0);
        FAULT(.kind = FAKE_INSTANCE_FAILS, .device = 1, .count = 2, .status = statuses[s]);
        play_good(200);
        cr_assert_eq(steps_of(FAKE_STEP_CREATE, 1), 3);
        cr_assert_eq(device_now(1).returned, 1);
        end();
    }
}

/* ---- probation ---- */

/* Whether the device got a band after it was created again for the second time. */
static bool has_band_after_second_try(uint32_t device)
{
    uint32_t created = 0, bands = 0;
    struct walk walk = {0};
    for (const struct fake_record *step; (step = next_step(&walk));) {
        created += step->step == FAKE_STEP_CREATE && step->device == device && !step->failed;
        bands += created >= 2 && step->step == FAKE_STEP_SUBMIT && step->device == device;
    }
    return bands > 0;
}

Test(engine_device_state, a_device_that_gives_wrong_bits_or_fails_or_hangs_on_probation_is_not_back_yet)
{
    /* Bits can be compared only if the session requires the same bits from all devices. */
    static const enum fake_fault_kind kinds[] = {FAKE_CORRUPTS, FAKE_EVENT_FAILS, FAKE_SUBMIT_FAILS, FAKE_HANGS,
                                                 FAKE_DEVICE_DIES};
    for (uint32_t k = 0; k < 5; k++)
        for (uint32_t device = 0; device < 3; device++) {
            begin(SHAPE_MAP,
                  &(const struct cox__session_spec){.in_flight = 2, .device_timeout_ns = 200 * ms, .verify = 1e-9});
            fault(FAKE_EVENT_FAILS, device, 0);
            scene_play(&scene, 1);
            /* The device gets nothing before its probation, so its next band is the probation run. */
            fault(kinds[k], device, kinds[k] == FAKE_HANGS ? UINT64_MAX : 20 * ms);
            play_good(100); /* By the end of this, a probation run that hangs has timed out. */
            play_good(500); /* Time for a second probation, which must not overlap with the one that hangs. */
            cr_assert_geq(steps_of(FAKE_STEP_CREATE, device), 2, "%u %u: %s", k, device, rig_log(scene.rig));
            cr_assert_eq(device_now(device).returned, 1, "%u", k);
            cr_assert_eq(device_now(device).state, COX_DEVICE_ACTIVE);
            cr_assert(has_band_after_second_try(device));
            for (uint32_t d = 0; d < 3; d++)
                cr_assert_eq(device_now(d).lost > 0, d == device, "another device was lost");
            end();
        }
}

/* Rows in place and merged results leave no copy to compare with. */
Test(engine_device_state, without_a_copy_to_compare_frames_go_on_and_devices_come_back)
{
    static const struct {
        enum shape shape;
        enum fake_fault_kind kind;
        bool has_memory;
    } cases[] = {{SHAPE_MAP, FAKE_EVENT_FAILS, false},
                 {SHAPE_INPLACE, FAKE_SUBMIT_FAILS, true},
                 {SHAPE_COUNT, FAKE_SUBMIT_FAILS, true}};
    for (uint32_t c = 0; c < 3; c++) {
        begin(cases[c].shape, &(const struct cox__session_spec){.in_flight = 2});
        if (!cases[c].has_memory)
            FAULT(.kind = FAKE_MEM_FAILS, .count = UINT32_MAX, .status = COX_E_NOMEM);
        fault(cases[c].kind, 1, 0);
        play_good(100);
        if (cases[c].has_memory)
            cr_assert_eq(device_now(1).returned, 1, "%s", shape_name(cases[c].shape));
        end();
    }
}

/* ---- no probation during a frame ---- */

/* The largest number of times that rows of the frame were handed out again. */
static uint32_t attempts(uint32_t frame)
{
    const struct rig_report *report = scene_report(&scene, frame);
    uint32_t most = 0;
    for (uint32_t b = 0; b < report->frame.band_count; b++)
        most = report->bands[b].attempt > most ? report->bands[b].attempt : most;
    return most;
}

/* Devices below `hanging` hang at every band that they get from now on. Device 0 gets whole frames. No device can
 * be on probation while a frame runs: the session has found no memory for the copies. */
static void play_hanging(uint32_t hanging, cox_status status, uint32_t most_attempts)
{
    for (uint64_t timeout_ns = 0; timeout_ns <= 300 * ms; timeout_ns += 300 * ms) {
        begin(SHAPE_MAP, &(const struct cox__session_spec){.in_flight = 2, .device_timeout_ns = timeout_ns});
        FAULT(.kind = FAKE_MEM_FAILS, .status = COX_E_NOMEM);
        fault(FAKE_EVENT_FAILS, 2, 0);
        scene_play(&scene, 100);
        cr_assert(rig_logged(scene.rig, "shadow runs and checks are"));
        cr_assert_eq(device_now(2).returned, 1);
        rig_split_count = 0;
        rig_add_split(1, (const uint32_t[][2]){{0, SCENE_ROWS}});
        for (uint32_t d = 0; d < hanging; d++)
            FAULT(.kind = FAKE_HANGS, .device = d, .count = UINT32_MAX, .delay_ns = UINT64_MAX);
        const uint32_t at = scene.done;
        scene_play(&scene, 1);
        cr_assert_eq(scene.status[at], status);
        cr_assert_leq(attempts(at), most_attempts, "%s", rig_log(scene.rig));
        end();
    }
}

Test(engine_device_state, rows_at_which_devices_hang_get_to_the_one_that_works_before_those_are_back)
{
    play_hanging(2, COX_OK, 2);
}

Test(engine_device_state, a_frame_at_which_every_device_hangs_ends_after_few_attempts)
{
    play_hanging(3, COX_E_DEVICE_LOST, 5); /* two attempts per device */
}

/* ---- bands that fail while their other commands run ---- */

/* A band that failed may still write until its callback. None of that may show in a delivered frame. */
static void check_frames_after(uint32_t device)
{
    play_good(60);
    cr_assert_eq(device_now(device).lost, 1);
    for (uint32_t i = LEARN; i < LEARN + 60; i++)
        cr_assert_str_empty(shape_check(scene.frames, i));
    end();
}

Test(engine_device_state, a_band_that_fails_bit_by_bit_or_late_costs_its_device_and_spoils_no_frame)
{
    for (uint32_t device = 0; device < 3; device++) {
        for (enum shape shape = SHAPE_MAP; shape < SHAPE_INPLACE; shape++) {
            begin(shape, &(const struct cox__session_spec){.in_flight = 3});
            fault(FAKE_FAILS_LATE, device, 100 * ms);
            check_frames_after(device);
        }
        begin(SHAPE_MAP, &(const struct cox__session_spec){.in_flight = 3});
        fault(FAKE_HANGS, device, 100 * ms);
        fault(FAKE_EVENT_FAILS, device, 0);
        check_frames_after(device);
    }
}

/* ---- no device left ---- */

Test(engine_device_state, while_every_device_is_gone_frames_wait_and_go_on_when_one_is_back)
{
    for (uint32_t in_flight = 2; in_flight <= 4; in_flight++)
        for (uint32_t first = 0; first < 3; first++) {
            begin(SHAPE_MAP, &(const struct cox__session_spec){.in_flight = in_flight});
            for (uint32_t d = 0; d < 3; d++)
                fault(FAKE_DEVICE_DIES, d, d == first ? 600 * ms : UINT64_MAX);
            play_good(1);
            cr_assert_gt(scene_took(&scene, LEARN), 500 * ms);
            cr_assert_eq(device_now(first).returned, 1);
            play_good(20);
            end();
        }
}

Test(engine_device_state, frames_that_no_device_comes_back_for_end_with_an_error_after_a_while)
{
    for (uint32_t in_flight = 2; in_flight <= 4; in_flight++) {
        begin(SHAPE_MAP, &(const struct cox__session_spec){.in_flight = in_flight, .device_timeout_ns = 700 * ms});
        for (uint32_t d = 0; d < 3; d++)
            fault(FAKE_DEVICE_DIES, d, 0);
        scene_play(&scene, 8);
        cr_assert_eq(scene.status[LEARN], COX_E_DEVICE_LOST);
        cr_assert_geq(scene.done_ns[LEARN], scene.done_ns[LEARN - 1] + 700 * ms);
        cr_assert_lt(scene.done_ns[LEARN], scene.done_ns[LEARN - 1] + 1500 * ms);
        cr_assert_eq(scene_failed(&scene, LEARN, scene.done), scene.done - LEARN);
        cr_assert_eq(scene.refused, COX_E_NO_DEVICE);
        scene_play(&scene, 1);
        cr_assert_eq(scene.refused, COX_E_NO_DEVICE);
        end();
    }
}

/* In real time, because no band is under way meanwhile. No device can be created again before fake_unblock. */
Test(engine_device_state, submit_is_refused_while_nobody_is_there_and_accepted_again_afterwards)
{
    static const struct fake_params real = {
        .device_count = 2, .real_time = true, .devices = {{.ns_per_row = 1e4}, {.ns_per_row = 1e4}}};
    scene_begin(&scene, &real, SHAPE_HALO, 0,
                &(const struct cox__session_spec){.policy = "static", .in_flight = 2, .device_timeout_ns = 500 * ms});
    scene_play(&scene, 4);
    for (uint32_t d = 0; d < 2; d++) {
        fault(FAKE_DEVICE_DIES, d, 1);
        FAULT(.kind = FAKE_INSTANCE_BLOCKS, .device = d, .delay_ns = UINT64_MAX);
    }
    scene_play(&scene, 20);
    cr_assert_eq(scene.refused, COX_E_NO_DEVICE);
    cr_assert_gt(scene_failed(&scene, 0, scene.done), 0);
    const uint32_t before = scene.done;
    fake_unblock(scene.fake);
    for (uint32_t tries = 0; scene.done == before; tries++) {
        cr_assert_lt(tries, 3000, "no device came back: %s", rig_log(scene.rig));
        rest(20000000);
        scene_play(&scene, 1);
    }
    cr_assert_eq(scene.refused, COX_OK);
    scene_play(&scene, 10);
    cr_assert_eq(scene_failed(&scene, before, before + 11), 0);
    end();
}

/* ---- lost instances ---- */

Test(engine_device_state, memory_that_an_abandoned_device_may_touch_is_not_freed)
{
    begin(SHAPE_MAP, &(const struct cox__session_spec){.in_flight = 2, .device_timeout_ns = 100 * ms});
    fault(FAKE_HANGS, 1, UINT64_MAX);
    scene_play(&scene, 200);
    cr_assert_eq(steps_of(FAKE_STEP_ABANDON, 1), 1);
    cox_session_destroy(&scene.session);
    for (uint32_t f = 0; f < scene.frames->count; f++)
        for (uint32_t i = 0; i < 2; i++)
            cox_buffer_destroy(&scene.frames->buffers[f][i]);
    cr_assert_eq(fake_alive(scene.fake), 2, "the input of one frame, and the first memory of its output");
    end();
}

Test(engine_device_state, a_session_is_destroyed_while_a_device_hangs)
{
    for (uint32_t forever = 0; forever < 2; forever++)
        for (uint32_t device = 0; device < 3; device++) {
            begin(SHAPE_CHROMA, &(const struct cox__session_spec){.in_flight = 3});
            fault(FAKE_HANGS, device, forever ? UINT64_MAX : 1000 * ms);
            play_good(3);
            end();
        }
}

/* ---- calls that block, in real time ---- */

static void play_blocked(enum fake_fault_kind blocks, enum fake_fault_kind kind)
{
    static const struct fake_params real_trio = {
        .device_count = 3,
        .real_time = true,
        .devices = {{.ns_per_row = 1e4}, {.ns_per_row = 1e4}, {.ns_per_row = 1e4}}};
    begin_on(&real_trio, SHAPE_MAP, 0,
             &(const struct cox__session_spec){.in_flight = 2, .device_timeout_ns = 500 * ms});
    FAULT(.kind = blocks, .device = 1, .delay_ns = UINT64_MAX);
    fault(kind, 1, UINT64_MAX);
    play_good(10);
    cr_assert(fake_await_blocked(scene.fake, 1), "%s", rig_log(scene.rig));
    play_good(30);
    cr_assert_eq(fake_blocked(scene.fake), 1);
}

Test(engine_device_state, making_a_device_anew_may_take_for_ever_and_holds_up_no_other_one_s_return)
{
    play_blocked(FAKE_INSTANCE_BLOCKS, FAKE_EVENT_FAILS);
    cr_assert_neq(device_now(1).state, COX_DEVICE_ACTIVE);
    fault(FAKE_EVENT_FAILS, 2, 0);
    for (uint32_t tries = 0; device_now(2).returned == 0; tries++) {
        cr_assert_lt(tries, 3000, "device 2 did not come back: %s", rig_log(scene.rig));
        scene_play(&scene, 1);
        rest(20000000);
    }
    cr_assert_eq(scene_failed(&scene, 0, scene.done), 0);
    end();
}

Test(engine_device_state, letting_go_of_a_device_that_hangs_may_take_for_ever)
{
    play_blocked(FAKE_DESTROY_BLOCKS, FAKE_HANGS);
    end();
}

/* ---- all of these together ---- */

static struct fake_params chance_devices(uint64_t *seed)
{
    struct fake_params params = {.device_count = 2 + (uint32_t)(rig_random(seed) % 4)};
    for (uint32_t d = 0; d < params.device_count; d++)
        params.devices[d] = (struct fake_device){
            .type = d % 2 ? COX_DEVICE_GPU : COX_DEVICE_CPU,
            .mode = 1 + (enum cox_memory_mode)(rig_random(seed) % 3),
            .align_bytes = 4u << (rig_random(seed) % 4),
            .max_rows = rig_random(seed) % 3 ? 0 : 20 + (uint32_t)(rig_random(seed) % 40),
            .fixed_ns = (double)(rig_random(seed) % 1000000),
            .ns_per_row = 100 + (double)(rig_random(seed) % 100000),
            .copy_in_ns_per_row = (double)(rig_random(seed) % 20000),
            .jitter = 0.3,
            .parts = 1 + d % 3,
            .inside_submit = rig_random(seed) % 8 == 0,
        };
    return params;
}

static void chance_faults(uint32_t device_count, uint64_t *seed)
{
    static const enum fake_fault_kind kinds[] = {
        FAKE_SUBMIT_FAILS, FAKE_HANGS,     FAKE_HANGS,         FAKE_NO_POST,        FAKE_POST_TWICE,
        FAKE_POST_EARLY,   FAKE_SLOW,      FAKE_SUBMIT_BLOCKS, FAKE_INSTANCE_FAILS, FAKE_END_EARLY,
        FAKE_LIES_PROFILE, FAKE_POST_LATE, FAKE_EVENT_FAILS,   FAKE_FAILS_LATE,     FAKE_DEVICE_DIES};
    const uint32_t count = sizeof kinds / sizeof kinds[0];
    for (uint32_t i = 0; i < 16; i++) {
        struct fake_fault fault = {.kind = kinds[rig_random(seed) % count],
                                   .device = 1 + (uint32_t)(rig_random(seed) % (device_count - 1)),
                                   .skip = (uint32_t)(rig_random(seed) % 60),
                                   .count = 1 + (uint32_t)(rig_random(seed) % 3),
                                   .status = COX_E_DEVICE_LOST,
                                   .delay_ns = rig_random(seed) % (100 * ms),
                                   .factor = 1 + (double)(rig_random(seed) % 60)};
        /* No device is polled while a call blocks. A device that ends after its timeout writes when nobody polls
         * it. */
        if (fault.kind == FAKE_SUBMIT_BLOCKS)
            fault.delay_ns /= 5;
        else if (rig_random(seed) % 10 == 0)
            fault.delay_ns = UINT64_MAX;
        fake_script(scene.fake, &fault);
    }
}

Test(engine_device_state, random_trouble_while_one_device_lives_costs_no_frame_and_no_bit, .timeout = 1200)
{
    static const char *const policies[] = {"adaptive", "chunks", "static"};
    for (uint64_t round = 1; round <= 40; round++) {
        uint64_t seed = round;
        const enum shape shape = (enum shape)(rig_random(&seed) % SHAPE_INPLACE);
        const struct fake_params params = chance_devices(&seed);
        scene_begin(&scene, &params, shape, (uint32_t)(rig_random(&seed) % 2) * 7,
                    &(const struct cox__session_spec){.policy = policies[rig_random(&seed) % 3],
                                                      .in_flight = 2 + (uint32_t)(rig_random(&seed) % 5),
                                                      .no_warmup = rig_random(&seed) % 2,
                                                      .device_timeout_ns = rig_random(&seed) % 2 ? 0 : 1000 * ms});
        for (uint32_t part = 0; part < 3; part++) {
            chance_faults(params.device_count, &seed);
            scene_play(&scene, 40);
        }
        cr_assert_eq(scene.refused, COX_OK);
        cr_assert_eq(scene.done, 120);
        cr_assert_eq(scene_failed(&scene, 0, 120), 0, "round %u", (unsigned)round);
        cr_assert_eq(device_now(0).lost, 0, "round %u: the good device was lost: %s", (unsigned)round,
                     rig_log(scene.rig));
        const char *verdict = scene_end(&scene);
        cr_assert_str_empty(verdict, "round %u: %s", (unsigned)round, verdict);
    }
}
