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
