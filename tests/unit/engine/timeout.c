/* Bands that take longer than expected. Their frame waits for them until the device's timeout. Then another device
 * does the rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "engine/engine.h"
#include "scene_test.h"

TestSuite(engine_timeout, .timeout = 300);

static void hang(uint32_t device, uint64_t delay_ns)
{
    fault(FAKE_HANGS, device, delay_ns);
}

/* Bands of a frame that ended with this status on a device. */
static uint32_t bands(uint32_t frame, uint32_t device, cox_status status)
{
    const struct rig_report *report = scene_report(&scene, frame);
    uint32_t count = 0;
    for (uint32_t b = 0; report && b < report->frame.band_count; b++)
        count += report->bands[b].device == device && report->bands[b].status == status;
    return count;
}

/* Every row of a frame counts exactly once in each pass. */
static void check_rows(uint32_t frame)
{
    const struct rig_report *report = scene_report(&scene, frame);
    uint32_t counted[SCENE_ROWS] = {0};
    cr_assert_not_null(report);
    for (uint32_t b = 0; b < report->frame.band_count; b++)
        for (uint32_t r = 0; report->bands[b].status == COX_OK && r < report->bands[b].rows; r++)
            counted[report->bands[b].first_row + r]++;
    for (uint32_t r = 0; r < SCENE_ROWS; r++)
        cr_assert_eq(counted[r], report->frame.pass_count, "frame %u, row %u counts %u times", frame, r, counted[r]);
}

/* Times from an earlier session do not include a first launch, which may have to compile. */
Test(engine_timeout, the_first_band_of_a_device_that_is_known_from_before_may_meet_a_compiler)
{
    for (uint32_t device = 0; device < 3; device++) {
        in_thirds();
        scene_begin(&scene, &trio, SHAPE_MAP, 0,
                    &(const struct cox__session_spec){.custom_policy = &rig_policy,
                                                      .in_flight = 2,
                                                      .no_warmup = true,
                                                      .device_timeout_ns = 1000 * ms});
        for (uint32_t d = 0; d < 3; d++)
            scene.session->devices.list[d].passes[0].single_device_ns = 9 * ms;
        hang(device, 5000 * ms);
        play_good(LEARN);
        cr_assert_geq(scene_took(&scene, 0), 5000 * ms);
        cr_assert_eq(device_now(device).lost, 0);
        hang(device, 5000 * ms);
        scene_play(&scene, LEARN);
        cr_assert_eq(device_now(device).lost, 1, "the device's time is known now");
        end();
    }
}

/* ---- waiting ---- */

Test(engine_timeout, a_frame_is_over_when_no_device_is_at_its_buffers)
{
    for (enum shape shape = SHAPE_MAP; shape < SHAPES; shape++)
        for (uint32_t device = 0; device < 3; device++) {
            begin(shape, &(const struct cox__session_spec){.in_flight = 3});
            hang(device, 200 * ms);
            play_good(12);
            uint64_t end_ns = 0;
            cr_assert_gt(steps(&scene, FAKE_STEP_END, device, &end_ns), 0);
            cr_assert_gt(end_ns, 200 * ms);
            cr_assert_geq(scene.done_ns[LEARN], end_ns);
            cr_assert_geq(bands(LEARN, device, COX_OK), 1);
            cr_assert_eq(device_now(device).lost, 0);
            end();
        }
}

Test(engine_timeout, every_device_late_at_once_is_waited_for)
{
    for (uint32_t in_flight = 2; in_flight <= 4; in_flight++) {
        begin(SHAPE_MAP, &(const struct cox__session_spec){.in_flight = in_flight});
        for (uint32_t d = 0; d < 3; d++)
            hang(d, (100 + 50 * d) * ms);
        play_good(30);
        check_lost(UINT32_MAX, 0, "all were late");
        end();
    }
}

Test(engine_timeout, one_device_alone_is_waited_for)
{
    static const struct fake_params one = {.device_count = 1, .devices = {{.ns_per_row = 1e5}}};
    begin_on(&one, SHAPE_MAP, 0, &(const struct cox__session_spec){.in_flight = 2});
    hang(0, 500 * ms);
    play_good(8);
    cr_assert_gt(scene_took(&scene, LEARN), 500 * ms);
    cr_assert_eq(device_now(0).state, COX_DEVICE_ACTIVE);
    cr_assert_eq(fake_alive(scene.fake), 1 + 2 * scene.frames->count, "copies were made without need");
    end();
}

Test(engine_timeout, rows_in_place_are_waited_for_and_never_done_twice)
{
    for (uint32_t device = 0; device < 3; device++) {
        begin(SHAPE_INPLACE, &(const struct cox__session_spec){.in_flight = 3});
        hang(device, 300 * ms);
        play_good(8);
        cr_assert_gt(scene_took(&scene, LEARN), 300 * ms);
        for (uint32_t d = 0; d < 3; d++)
            cr_assert_eq(steps_of(FAKE_STEP_SUBMIT, d), 8);
        end();
    }
}

Test(engine_timeout, rows_in_place_that_never_come_are_an_error_of_their_frame_alone)
{
    for (uint32_t device = 0; device < 3; device++) {
        begin(SHAPE_INPLACE, &(const struct cox__session_spec){.in_flight = 2, .device_timeout_ns = 400 * ms});
        hang(device, UINT64_MAX);
        scene_play(&scene, 20);
        cr_assert_eq(scene.status[LEARN], COX_E_DEVICE_LOST);
        cr_assert_geq(scene.done_ns[LEARN], scene.done_ns[LEARN - 1] + 400 * ms);
        cr_assert_eq(scene_failed(&scene, 0, LEARN + 20), 1);
        cr_assert_eq(device_now(device).lost, 1);
        end();
    }
}

/* ---- the timeout ---- */

static void play_for_ever(enum shape shape, uint32_t device, uint32_t in_flight, uint32_t frames)
{
    uint64_t abandoned_ns = 0;
    begin(shape, &(const struct cox__session_spec){.in_flight = in_flight, .device_timeout_ns = 300 * ms});
    const uint64_t began = fake_now(scene.fake);
    hang(device, UINT64_MAX);
    play_good(frames);
    cr_assert_gt(scene_took(&scene, LEARN), 300 * ms);
    cr_assert_geq(scene.done_ns[LEARN], began + 300 * ms);
    cr_assert_lt(scene.done_ns[LEARN], began + 700 * ms);
    cr_assert_eq(bands(LEARN, device, COX_E_TIMEOUT), 1);
    cr_assert_eq(device_now(device).lost, 1);
    for (uint32_t i = LEARN; i < LEARN + 40; i++)
        check_rows(i);
    if (frames > 100) {
        cr_assert_eq(steps(&scene, FAKE_STEP_ABANDON, device, &abandoned_ns), 1, "%s", rig_log(scene.rig));
        cr_assert_geq(abandoned_ns, began + 300 * ms);
        cr_assert_lt(abandoned_ns, began + 1500 * ms);
        cr_assert_eq(steps_of(FAKE_STEP_DESTROY, device), 1);
        cr_assert_eq(device_now(device).returned, 1, "a new context works");
    }
    end();
}

Test(engine_timeout, a_device_that_never_ends_a_band_is_given_up_and_its_rows_are_done_again)
{
    for (uint32_t device = 0; device < 3; device++) {
        for (enum shape shape = SHAPE_MAP; shape < SHAPE_INPLACE; shape++)
            play_for_ever(shape, device, 2, 40);
        for (uint32_t in_flight = 2; in_flight <= 4; in_flight++)
            play_for_ever(SHAPE_MAP, device, in_flight, 400); /* given up, not polled, and back later */
    }
}

/* How long a frame takes if a device hangs in it. `row_ns` sets the length of the earlier frames. */
static uint64_t stall_ns(double row_ns)
{
    struct fake_params devices = trio;
    for (uint32_t d = 0; d < 3; d++)
        devices.devices[d].ns_per_row = row_ns;
    begin_on(&devices, SHAPE_MAP, 0, &(const struct cox__session_spec){.in_flight = 2});
    play_good(LEARN);
    const uint64_t began = fake_now(scene.fake);
    hang(1, UINT64_MAX);
    play_good(2);
    const uint64_t took = scene.done_ns[2 * LEARN] - began;
    end();
    return took;
}

Test(engine_timeout, by_default_follows_what_the_device_needs)
{
    const uint64_t brief = stall_ns(1e5), slow = stall_ns(1e7), slowest = stall_ns(1e8);
    cr_assert(brief > 1000 * ms && brief < 1500 * ms, "bands of 3 ms: %.3f s", (double)brief * 1e-9);
    cr_assert(slow > 3000 * ms && slow < 5000 * ms, "bands of 0.3 s: %.3f s", (double)slow * 1e-9);
    cr_assert(slowest > 30000 * ms && slowest < 50000 * ms, "bands of 3 s: %.3f s", (double)slowest * 1e-9);
}

Test(engine_timeout, a_session_and_its_buffers_may_go_while_a_device_hangs)
{
    for (uint32_t device = 0; device < 3; device++) {
        begin(SHAPE_TABLE, &(const struct cox__session_spec){.in_flight = 2, .device_timeout_ns = 300 * ms});
        hang(device, UINT64_MAX);
        scene_play(&scene, 1);
        cr_assert_eq(scene.status[LEARN], COX_OK);
        const uint32_t before = fake_alive(scene.fake);
        cox_buffer_destroy(&scene.frames->buffers[LEARN % scene.frames->count][0]);
        cr_assert_eq(fake_alive(scene.fake), before, "the device may still read it");
        end();
    }
}

/* ---- with policies that move rows ---- */

Test(engine_timeout, whatever_the_policy_a_hang_costs_no_frame_and_no_bit, .timeout = 600)
{
    static const char *const policies[] = {"adaptive", "chunks", "static", "single"};
    for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++)
        for (enum shape shape = SHAPE_MAP; shape < SHAPES; shape++)
            for (uint32_t in_flight = 2; in_flight <= 4; in_flight += 2) {
                uint64_t seed = p * 100 + (uint32_t)shape * 10 + in_flight;
                scene_begin(&scene, &trio, shape, 0,
                            &(const struct cox__session_spec){
                                .policy = policies[p], .in_flight = in_flight, .no_warmup = p % 2});
                scene_play(&scene, LEARN);
                for (uint32_t i = 0; i < 6; i++)
                    FAULT(.kind = FAKE_HANGS, .device = (uint32_t)(rig_random(&seed) % 3),
                          .skip = (uint32_t)(rig_random(&seed) % 40), .delay_ns = rig_random(&seed) % (300 * ms));
                scene_play(&scene, 60);
                cr_assert_eq(scene_failed(&scene, 0, LEARN + 60), 0, "%s, %s", policies[p], shape_name(shape));
                for (uint32_t i = 0; i < LEARN + 60; i++)
                    check_rows(i);
                end();
            }
}
