/* Driver calls that keep the thread that made them: the engine goes on without it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/scene_trio.h"
#include <pthread.h>

TestSuite(engine_watchdog, .timeout = 600);

static const enum fake_fault_kind kinds[] = {FAKE_SUBMIT_STUCK, FAKE_FLUSH_STUCK, FAKE_POLL_STUCK};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void begin(struct scene *scene, const struct fake_params *devices, enum shape shape,
                  const struct cox_session_params *extra)
{
    struct cox_session_params params = *extra;
    in_thirds();
    params.custom_policy = &rig_policy;
    params.no_warmup = true;
    params.device_timeout_ns = params.device_timeout_ns ? params.device_timeout_ns : 100 * ms;
    scene_begin(scene, devices, shape, 0, &params);
    scene_play(scene, LEARN);
    fake_clear_record(scene->fake);
}

static void script(struct scene *scene, enum fake_fault_kind kind, uint32_t device, uint32_t skip, uint64_t delay_ns)
{
    fake_script(scene->fake, &(struct fake_fault){.kind = kind, .device = device, .skip = skip, .delay_ns = delay_ns});
}

Test(engine_watchdog, a_call_that_never_returns_costs_a_device_and_no_frame)
{
    for (uint32_t k = 0; k < KINDS; k++)
        for (uint32_t device = 0; device < 3; device++) {
            struct scene scene;
            begin(&scene, &trio, device ? SHAPE_MAP : SHAPE_CHROMA, COX_SESSION_PARAMS(.in_flight = 1 + device));
            script(&scene, kinds[k], device, k, UINT64_MAX);
            scene_play(&scene, 40);
            cr_assert_eq(scene_failed(&scene, 0, scene.done), 0, "%s", rig_log(scene.rig));
            cr_assert_eq(scene.done, LEARN + 40);
            cr_assert_eq(fake_blocked(scene.fake), 1, "nothing was stuck");
            cr_assert_eq(steps(&scene, FAKE_STEP_ISOLATE, device, NULL), 1);
            cr_assert_eq(scene_device(&scene, device).lost, 1);
            cr_assert(rig_logged(scene.rig, "does not return"));
            END(&scene);
        }
}

/* What it was at is over then, and it comes back like any lost device. */
Test(engine_watchdog, one_that_returns_late_leaves_nothing_behind)
{
    for (uint32_t k = 0; k < KINDS; k++)
        for (uint32_t device = 0; device < 3; device++) {
            struct scene scene;
            begin(&scene, &trio, SHAPE_HALO, COX_SESSION_PARAMS(.in_flight = 2));
            script(&scene, kinds[k], device, k, 1500 * ms);
            scene_play(&scene, 20);
            cr_assert_eq(steps(&scene, FAKE_STEP_ISOLATE, device, NULL), 1, "%s", rig_log(scene.rig));
            while (fake_blocked(scene.fake))
                rest(10 * ms);
            rest(10 * ms);
            for (uint32_t tries = 0; scene_device(&scene, device).state != COX_DEVICE_ACTIVE; tries++) {
                cr_assert_lt(tries, 500, "%s", rig_log(scene.rig));
                scene_play(&scene, 2);
            }
            cr_assert_eq(scene_failed(&scene, 0, scene.done), 0);
            cr_assert_eq(scene_device(&scene, device).returned, 1);
            END(&scene);
        }
}

Test(engine_watchdog, one_that_is_merely_slow_is_waited_for)
{
    for (uint32_t k = 0; k < KINDS; k++) {
        struct scene scene;
        begin(&scene, &trio, SHAPE_MAP, COX_SESSION_PARAMS(.in_flight = 2, .device_timeout_ns = 2000 * ms));
        script(&scene, kinds[k], 1, 0, 500 * ms);
        scene_play(&scene, 20);
        cr_assert_eq(steps(&scene, FAKE_STEP_ISOLATE, 1, NULL), 0);
        cr_assert_eq(scene_device(&scene, 1).lost, 0, "%s", rig_log(scene.rig));
        END(&scene);
    }
}

/* Each of them takes a scheduler thread with it. */
Test(engine_watchdog, all_but_one_device_may_do_so)
{
    for (uint32_t k = 0; k < KINDS; k++) {
        struct scene scene;
        begin(&scene, &trio, SHAPE_MAP, COX_SESSION_PARAMS(.in_flight = 3));
        script(&scene, kinds[k], 0, 2, UINT64_MAX);
        script(&scene, kinds[(k + 1) % KINDS], 2, 4, UINT64_MAX);
        scene_play(&scene, 40);
        cr_assert_eq(scene_failed(&scene, 0, scene.done), 0, "%s", rig_log(scene.rig));
        cr_assert_eq(fake_blocked(scene.fake), 2);
        END(&scene);
    }
}

/* Checks and runs on probation go through the same driver calls as every band. */
Test(engine_watchdog, a_call_about_a_check_may_do_so_too)
{
    for (uint32_t k = 0; k < KINDS; k++)
        for (uint32_t skip = 0; skip < 4; skip++) {
            struct scene scene;
            begin(&scene, &trio, SHAPE_COUNT, COX_SESSION_PARAMS(.in_flight = 2, .verify = 1));
            script(&scene, FAKE_HANGS, 0, 0, 400 * ms);
            script(&scene, kinds[k], 1, skip, 900 * ms);
            scene_play(&scene, 20);
            cr_assert_eq(scene_failed(&scene, 0, scene.done), 0, "%s", rig_log(scene.rig));
            END(&scene);
        }
}

Test(engine_watchdog, the_warm_up_goes_on_with_the_next_device)
{
    struct scene scene;
    in_thirds();
    scene_begin(&scene, &trio, SHAPE_MAP, 0,
                COX_SESSION_PARAMS(.in_flight = 2, .custom_policy = &rig_policy, .device_timeout_ns = 100 * ms));
    script(&scene, FAKE_SUBMIT_STUCK, 1, 3, UINT64_MAX); /* the first run has told how long it takes */
    scene_play(&scene, 20);
    cr_assert_eq(scene_failed(&scene, 0, scene.done), 0, "%s", rig_log(scene.rig));
    cr_assert_eq(scene_device(&scene, 1).lost, 1);
    END(&scene);
}

/* With the last device gone frames wait, then fail; submit says so; and there is an end. */
Test(engine_watchdog, the_only_device_may_do_so)
{
    static const struct fake_params one = {.device_count = 1, .devices = {{.ns_per_row = 1e5}}};
    for (uint32_t k = 0; k < KINDS; k++) {
        struct scene scene;
        rig_split_count = 0;
        rig_add_split(1, (const uint32_t[][2]){{0, SCENE_ROWS}});
        scene_begin(&scene, &one, SHAPE_MAP, 0,
                    COX_SESSION_PARAMS(.in_flight = 2, .custom_policy = &rig_policy, .device_timeout_ns = 100 * ms));
        scene_play(&scene, LEARN);
        fake_script(scene.fake, &(struct fake_fault){.kind = FAKE_INSTANCE_FAILS,
                                                     .status = COX_E_DEVICE_LOST,
                                                     .count = UINT32_MAX}); /* nor can it be made anew */
        script(&scene, kinds[k], 0, 0, UINT64_MAX);
        scene_play(&scene, 5);
        cr_assert_eq(scene_failed(&scene, 0, LEARN), 0);
        cr_assert_gt(scene_failed(&scene, LEARN, scene.done), 0);
        cr_assert_eq(scene.refused, COX_E_NO_DEVICE);
        END(&scene);
    }
}

/* ---- threads that wait in cox_session_run, on a real clock ---- */

static const struct fake_params real_trio = {
    .device_count = 3, .real_time = true, .devices = {{.ns_per_row = 1e4}, {.ns_per_row = 1e4}, {.ns_per_row = 1e4}}};

struct runner {
    struct scene *scene;
    const struct cox_frame *frame;
    uint32_t count;
    cox_status status;
};

static void *run(void *arg)
{
    struct runner *runner = arg;
    for (uint32_t i = 0; i < runner->count && !runner->status; i++)
        runner->status = cox_session_run(runner->scene->session, runner->frame);
    return NULL;
}

/* The thread that is kept is the application's: its call returns when the driver's does, and with what became of its
 * frame. Everybody else goes on meanwhile. */
Test(engine_watchdog, a_thread_in_run_is_kept_alone)
{
    for (uint32_t k = 0; k < KINDS; k++) {
        struct scene scene;
        begin(&scene, &real_trio, SHAPE_MAP, COX_SESSION_PARAMS(.in_flight = 3));
        shape_prepare(scene.frames, 60);
        shape_prepare(scene.frames, 61);
        const struct cox_frame frames[2] = {shape_frame(scene.frames, 60), shape_frame(scene.frames, 61)};
        struct runner kept = {.scene = &scene, .frame = &frames[0], .count = 1};
        struct runner free_one = {.scene = &scene, .frame = &frames[1], .count = 30};
        pthread_t threads[2];
        script(&scene, kinds[k], 1, 0, 3000 * ms);
        cr_assert_eq(pthread_create(&threads[0], NULL, run, &kept), 0);
        cr_assert(fake_await_blocked(scene.fake, 1));
        cr_assert_eq(pthread_create(&threads[1], NULL, run, &free_one), 0);
        pthread_join(threads[1], NULL);
        cr_assert_eq(free_one.status, COX_OK);
        cr_assert_eq(fake_blocked(scene.fake), 1, "the others waited for it");
        pthread_join(threads[0], NULL);
        cr_assert_eq(kept.status, COX_OK, "%s", rig_log(scene.rig));
        cr_assert_str_empty(shape_check(scene.frames, 60));
        cr_assert_str_empty(shape_check(scene.frames, 61));
        END(&scene);
    }
}
