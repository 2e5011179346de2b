/* cox_session_warm, and what the first frame of a session costs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "engine/state.h"
#include "scene_test.h"
#include <pthread.h>

TestSuite(engine_warm, .timeout = 300);

static uint32_t runs_of(uint32_t device)
{
    return steps_of(FAKE_STEP_SUBMIT, device);
}

static void begin_new(const struct fake_params *devices, bool no_warmup, uint64_t timeout_ns)
{
    scene_begin(&scene, devices, SHAPE_CHROMA, 8,
                &(const struct cox__session_spec){
                    .in_flight = 2, .no_warmup = no_warmup, .device_timeout_ns = timeout_ns});
}

static cox_status warm_up(void)
{
    return cox_session_warm(scene.session, NULL);
}

Test(engine_warm, the_devices_are_known_before_the_first_frame)
{
    begin_new(&trio, false, 0);
    cr_assert_eq(cox_session_warm(scene.session, NULL), COX_OK);
    for (uint32_t d = 0; d < 3; d++)
        cr_assert_gt(device_now(d).single_device_ns, 0);
    const uint32_t runs = runs_of(0);
    cr_assert_eq(cox_session_warm(scene.session, NULL), COX_OK, "the session is warm");
    cr_assert_eq(runs_of(0), runs);
    const uint32_t before = rig_report_count(scene.rig);
    scene_play(&scene, 30);
    for (uint32_t i = before; i < rig_report_count(scene.rig); i++)
        cr_assert(!rig_report_at(scene.rig, i)->frame.warmup);
    cr_assert_eq(scene_failed(&scene, 0, 30), 0);
    cr_assert_leq(scene_took(&scene, 0), 2 * scene_took(&scene, 20));
    end();
}

Test(engine_warm, one_device_alone_is_not_timed)
{
    static const struct fake_params one = {.device_count = 1, .devices = {{.ns_per_row = 1e5}}};
    for (uint32_t asked = 0; asked < 2; asked++) {
        begin_new(&one, false, 0);
        if (asked)
            cr_assert_eq(warm_up(), COX_OK);
        scene_play(&scene, 4);
        cr_assert_eq(runs_of(0), 4 + asked, "one more run, which compiles");
        cr_assert_eq(device_now(0).single_device_ns, 0);
        end();
    }
}

Test(engine_warm, a_session_without_warm_up_can_be_warmed)
{
    begin_new(&trio, true, 0);
    cr_assert_eq(warm_up(), COX_OK);
    cr_assert_gt(device_now(1).single_device_ns, 0);
    scene_play(&scene, 4);
    end();
    begin_new(&trio, true, 0);
    scene_play(&scene, 4);
    cr_assert_eq(warm_up(), COX_OK, "the session has had frames");
    cr_assert_eq(device_now(1).single_device_ns, 0);
    end();
}

Test(engine_warm, without_memory_it_says_so_and_the_session_works)
{
    for (uint32_t skip = 0; skip < 4; skip++) {
        begin_new(&trio, false, 0);
        FAULT(.kind = FAKE_MEM_FAILS, .skip = skip, .status = COX_E_NOMEM);
        cr_assert_eq(warm_up(), COX_E_NOMEM);
        play_good(4);
        cr_assert_gt(device_now(1).single_device_ns, 0, "measured by the first frame's warm-up");
        end();
    }
}

Test(engine_warm, a_device_that_fails_or_hangs_stays_out)
{
    static const enum fake_fault_kind kinds[] = {FAKE_EVENT_FAILS, FAKE_SUBMIT_FAILS, FAKE_HANGS};
    for (uint32_t k = 0; k < 3; k++) {
        begin_new(&trio, false, 200 * ms);
        FAULT(.kind = kinds[k], .device = 1, .status = COX_E_DEVICE_LOST, .delay_ns = UINT64_MAX);
        cr_assert_eq(warm_up(), COX_OK);
        cr_assert_eq(device_now(1).lost, 1);
        play_good(10);
        end();
    }
}

static void *destroy(void *ctx)
{
    (void)ctx;
    cox_session *session = scene.session;
    cox_session_destroy(&session);
    cr_assert_not_null(session);
    return NULL;
}

/* Runs on the scheduler thread while another thread waits in cox_session_warm. */
static void destroy_elsewhere(void *user, const struct cox_frame_report *report)
{
    pthread_t thread;
    (void)user, (void)report;
    cr_assert_eq(pthread_create(&thread, NULL, destroy, NULL), 0);
    pthread_join(thread, NULL);
}

Test(engine_warm, a_session_is_not_destroyed_while_it_warms_up)
{
    begin_new(&trio, false, 0);
    scene.session->reporting.report = destroy_elsewhere;
    cr_assert_eq(warm_up(), COX_OK);
    cr_assert(rig_logged(scene.rig, "cox_session_destroy: a thread is inside cox_session_warm"));
    end();
}

static void ignore(void *user, uint64_t frame, cox_status status)
{
    (void)user, (void)frame, (void)status;
}

Test(engine_warm, what_a_cancelled_first_frame_began_goes_on)
{
    for (uint32_t no_warmup = 0; no_warmup < 2; no_warmup++) {
        begin_new(&trio, no_warmup, 0);
        const struct cox__frame_spec frame = shape_frame(scene.frames, 0);
        fake_hold(scene.fake);
        cr_assert_eq(cox__session_submit(scene.session, &frame, ignore, NULL), COX_OK);
        cr_assert_eq(cox_session_cancel(scene.session), COX_OK);
        fake_release(scene.fake);
        cr_assert_eq(cox_session_wait(scene.session), COX_OK);
        cr_assert_eq(warm_up(), COX_OK);
        cr_assert_eq(device_now(2).single_device_ns > 0, !no_warmup);
        end();
    }
}

Test(engine_warm, without_a_device_it_says_so)
{
    begin_new(&trio, false, 200 * ms);
    for (uint32_t d = 0; d < 3; d++)
        FAULT(.kind = FAKE_DEVICE_DIES, .device = d);
    cr_assert_eq(warm_up(), COX_E_NO_DEVICE);
    end();
}

/* ---- slow kernels ---- */

static uint64_t began_ns; /* when the session was ready for its first frame */

/* Three devices that take some seconds for a frame, one of them half as long as the others. */
static void begin_slow(enum shape shape, uint64_t frame_ms, uint64_t timeout_ns)
{
    struct fake_params devices = trio;
    for (uint32_t d = 0; d < 3; d++) {
        devices.devices[d].fixed_ns = 1e5;
        devices.devices[d].ns_per_row = (double)(frame_ms * ms) * (d ? 4 : 2) / SCENE_ROWS;
    }
    scene_begin(&scene, &devices, shape, 8,
                &(const struct cox__session_spec){.in_flight = 1, .device_timeout_ns = timeout_ns});
    began_ns = fake_now(scene.fake);
}

/* The bands of the warm-up that had all rows of a pass. */
static uint32_t whole_runs(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rig_report_count(scene.rig); i++) {
        const struct rig_report *report = rig_report_at(scene.rig, i);
        count += report->frame.warmup && report->bands[0].rows == SCENE_ROWS;
    }
    return count;
}

Test(engine_warm, the_first_frame_of_a_slow_kernel_takes_little_longer_than_others)
{
    static const uint64_t frames_ms[] = {700, 2400, 20000};
    for (size_t i = 0; i < 3; i++)
        for (uint32_t asked = 0; asked < 2; asked++) {
            begin_slow(SHAPE_MAP, frames_ms[i], 1000 * ms);
            if (asked)
                cr_assert_eq(warm_up(), COX_OK);
            cr_assert_leq(fake_now(scene.fake) - began_ns, frames_ms[i] * ms * 3 / 10);
            play_good(6);
            cr_assert_leq(scene.done_ns[0] - began_ns, scene_took(&scene, 5) * 13 / 10, "%.3f s, then %.3f s",
                          (double)(scene.done_ns[0] - began_ns) * 1e-9, (double)scene_took(&scene, 5) * 1e-9);
            cr_assert_leq(scene_took(&scene, 0), scene_took(&scene, 5) * 105 / 100, "the first split is good");
            cr_assert_eq(whole_runs(), 0);
            check_lost(UINT32_MAX, 0, "within its timeout");
            end();
        }
}

Test(engine_warm, slices_run_on_all_devices_at_once_in_different_rows)
{
    begin_slow(SHAPE_MAP, 2400, 0);
    cr_assert_eq(warm_up(), COX_OK);
    cr_assert_gt(rig_report_count(scene.rig), 1);
    for (uint32_t i = 0; i < rig_report_count(scene.rig); i++) {
        const struct rig_report *report = rig_report_at(scene.rig, i);
        const struct cox_band_report *band = report->bands;
        cr_assert_eq(report->frame.band_count, 3);
        for (uint32_t b = 1; b < 3; b++) {
            cr_assert_geq(band[b].first_row, band[b - 1].first_row + band[b - 1].rows);
            cr_assert_lt(band[b].submit_ns, band[b - 1].end_ns);
        }
    }
    end();
}

/* A later pass may take indices from what an earlier one wrote, so that must be complete. The scripted devices
 * report a pass that reads rows which were not written. */
Test(engine_warm, slow_passes_find_what_earlier_passes_write)
{
    static const enum shape shapes[] = {SHAPE_EXCHANGE, SHAPE_FLIP, SHAPE_ALL, SHAPE_THEN_INPLACE};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (uint32_t asked = 0; asked < 2; asked++) {
            begin_slow(shapes[s], 1000, 1000 * ms);
            if (asked)
                cr_assert_eq(warm_up(), COX_OK);
            play_good(6);
            const uint64_t warm_ns = scene.done_ns[0] - scene_took(&scene, 0) - began_ns;
            cr_assert_leq(warm_ns, scene_took(&scene, 5) * 13 / 10, "shape %d: %.3f s", (int)shapes[s],
                          (double)warm_ns * 1e-9);
            for (uint32_t d = 0; d < 3; d++)
                cr_assert_gt(device_now(d).single_device_ns, 0);
            end();
        }
}

Test(engine_warm, a_slow_kernel_on_a_device_that_fails_in_the_warm_up)
{
    for (uint32_t skip = 0; skip < 6; skip++)
        for (uint32_t shape = 0; shape < 2; shape++) {
            begin_slow(shape ? SHAPE_EXCHANGE : SHAPE_MAP, 1000, 1000 * ms);
            FAULT(.kind = FAKE_EVENT_FAILS, .device = 1, .skip = skip, .status = COX_E_DEVICE_LOST);
            cr_assert_eq(warm_up(), COX_OK);
            play_good(4);
            end();
        }
}

/* ---- kernels that never end ---- */

/* The compiler's limit, which docs of cox_session_params.device_timeout_ns state, and a margin for polls. */
static const uint64_t compiler_ns = 20000000000, margin_ns = 500000000;

Test(engine_warm, a_kernel_that_never_ends_is_reported_within_the_timeout_and_the_limit_for_compilers)
{
    for (uint32_t devices = 1; devices <= 3; devices++)
        for (uint32_t no_warmup = 0; no_warmup < 2; no_warmup++) {
            struct fake_params some = trio;
            some.device_count = devices;
            begin_new(&some, no_warmup, 1000 * ms);
            for (uint32_t d = 0; d < devices; d++)
                FAULT(.kind = FAKE_HANGS, .device = d, .count = UINT32_MAX, .delay_ns = UINT64_MAX);
            const uint64_t began = fake_now(scene.fake);
            scene_play(&scene, 1);
            cr_assert_eq(scene.status[0], COX_E_DEVICE_LOST);
            cr_assert_leq(scene.done_ns[0] - began, 1000 * ms + compiler_ns + margin_ns, "%u devices: %.3f s", devices,
                          (double)(scene.done_ns[0] - began) * 1e-9);
            end();
        }
}

Test(engine_warm, once_a_launch_has_ended_the_timeout_holds)
{
    for (uint32_t skip = 1; skip < 8; skip++) {
        begin_new(&trio, false, 1000 * ms);
        FAULT(.kind = FAKE_HANGS, .device = 1, .skip = skip, .count = UINT32_MAX, .delay_ns = UINT64_MAX);
        const uint64_t began = fake_now(scene.fake);
        play_good(4);
        cr_assert_leq(scene.done_ns[3] - began, 1000 * ms + margin_ns);
        cr_assert_geq(device_now(1).lost, 1);
        end();
    }
}

Test(engine_warm, a_first_launch_may_compile)
{
    for (uint32_t no_warmup = 0; no_warmup < 2; no_warmup++) {
        begin_new(&trio, no_warmup, 1000 * ms);
        for (uint32_t d = 0; d < 3; d++)
            FAULT(.kind = FAKE_HANGS, .device = d, .delay_ns = compiler_ns);
        play_good(4);
        check_lost(UINT32_MAX, 0, "it was the compiler");
        end();
    }
}

/* ---- with other threads ---- */

static void *warm(void *user)
{
    (void)user;
    return (void *)(intptr_t)warm_up();
}

static void *play(void *user)
{
    (void)user;
    scene_play(&scene, 20);
    return NULL;
}

Test(engine_warm, while_other_threads_warm_and_submit)
{
    static const struct fake_params real = {
        .device_count = 2, .real_time = true, .devices = {{.ns_per_row = 1e4}, {.ns_per_row = 2e4}}};
    for (uint32_t round = 0; round < 10; round++) {
        pthread_t threads[4];
        begin_new(&real, round % 2, 0);
        for (uint32_t t = 0; t < 4; t++)
            cr_assert_eq(pthread_create(&threads[t], NULL, t == 2 ? play : warm, NULL), 0);
        for (uint32_t t = 0; t < 4; t++) {
            void *status;
            pthread_join(threads[t], &status);
            cr_assert_null(status);
        }
        cr_assert_eq(scene_failed(&scene, 0, 20), 0);
        end();
    }
}

static void hold_after_first(void *user, uint64_t frame, cox_status status)
{
    atomic_bool *held = user;
    cr_assert_eq(status, COX_OK);
    if (frame > 0)
        return;
    fake_hold(scene.fake);
    atomic_store(held, true);
}

static void await(const atomic_bool *flag)
{
    for (uint32_t tries = 0; !atomic_load(flag); tries++) {
        cr_assert_lt(tries, 60000, "%s", rig_log(scene.rig));
        rest(1 * ms);
    }
}

struct warmer {
    cox_session *session;
    cox_status status;
    atomic_bool returned;
};

static void *warm_other(void *user)
{
    struct warmer *warmer = user;
    warmer->status = cox_session_warm(warmer->session, NULL);
    atomic_store(&warmer->returned, true);
    return NULL;
}

/* The device hangs in the other session's warm-up. A frame of that session waits for the buffers of frame 1, and the
 * clock stops when frame 0 is done. */
Test(engine_warm, it_ends_without_a_device_while_a_frame_waits_for_buffers)
{
    static const struct fake_params one = {.device_count = 1, .devices = {{.ns_per_row = 1e9}}};
    struct warmer warmer = {0};
    atomic_bool held = false;
    pthread_t thread;
    begin_new(&one, true, 3600000 * ms);
    cr_assert_eq(shape_session(scene.frames, &(const struct cox__session_spec){.device_timeout_ns = 100 * ms},
                               &warmer.session),
                 COX_OK);
    fake_hold(scene.fake);
    for (uint32_t i = 0; i < 2; i++) {
        const struct cox__frame_spec frame = shape_frame(scene.frames, i);
        cr_assert_eq(cox__session_submit(scene.session, &frame, hold_after_first, &held), COX_OK);
    }
    cr_assert(fake_await_running(scene.fake, 2));
    FAULT(.kind = FAKE_HANGS, .delay_ns = UINT64_MAX);
    FAULT(.kind = FAKE_INSTANCE_FAILS, .count = UINT32_MAX, .status = COX_E_DEVICE_LOST); /* no retry works */
    cr_assert_eq(pthread_create(&thread, NULL, warm_other, &warmer), 0);
    cr_assert(fake_await_running(scene.fake, 3));
    const struct cox__frame_spec waiting = shape_frame(scene.frames, 1);
    cr_assert_eq(cox__session_submit(warmer.session, &waiting, ignore, NULL), COX_OK);
    fake_release(scene.fake);
    await(&held);
    await(&warmer.returned);
    pthread_join(thread, NULL);
    cr_assert_eq(warmer.status, COX_E_NO_DEVICE);
    fake_release(scene.fake);
    cr_assert_eq(cox_session_wait(scene.session), COX_OK);
    cox_session_destroy(&warmer.session);
    end();
}
