/* Driver calls that block the thread that made them. The engine goes on without this thread. A stuck call lasts
 * until fake_unblock.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "engine/failure/watchdog.h"
#include "scene_test.h"
#include <pthread.h>
#include <unistd.h>

TestSuite(engine_watchdog, .timeout = 600);

/* The last one needs a second device: a lone band is not enqueued in parts. */
static const enum fake_fault_kind kinds[] = {FAKE_SUBMIT_STUCK, FAKE_FLUSH_STUCK, FAKE_POLL_STUCK, FAKE_CONTINUE_STUCK};
enum { KINDS = sizeof kinds / sizeof kinds[0], KINDS_ALONE = KINDS - 1 };

static void stuck(enum fake_fault_kind kind, uint32_t device, uint32_t skip)
{
    FAULT(.kind = kind, .device = device, .skip = skip, .delay_ns = UINT64_MAX);
}

/* When a late call returns, its work no longer counts. The device comes back like any lost device. */
Test(engine_watchdog, a_call_that_never_returns_costs_a_device_and_no_frame_and_a_late_one_leaves_nothing_behind)
{
    static const enum shape shapes[] = {SHAPE_CHROMA, SHAPE_MAP, SHAPE_HALO};
    for (uint32_t k = 0; k < KINDS; k++)
        for (uint32_t device = 0; device < 3; device++) {
            begin(shapes[(device + k) % 3],
                  &(const struct cox__session_spec){.in_flight = 1 + device, .device_timeout_ns = 100 * ms});
            stuck(kinds[k], device, k);
            play_good(40);
            cr_assert_eq(fake_blocked(scene.fake), 1, "nothing was stuck");
            cr_assert_eq(steps_of(FAKE_STEP_ISOLATE, device), 1);
            cr_assert_eq(device_now(device).lost, 1);
            cr_assert(rig_logged(scene.rig, "does not return"));
            fake_unblock(scene.fake);
            for (uint32_t tries = 0; device_now(device).state != COX_DEVICE_ACTIVE; tries++) {
                cr_assert_lt(tries, 1500, "device %u did not come back: %s", device, rig_log(scene.rig));
                rest(40000000);
                play_good(2);
            }
            cr_assert_eq(fake_blocked(scene.fake), 0);
            cr_assert_eq(device_now(device).returned, 1);
            end();
        }
}

Test(engine_watchdog, one_that_is_merely_slow_is_waited_for)
{
    for (uint32_t k = 0; k < KINDS; k++) {
        begin(SHAPE_MAP, &(const struct cox__session_spec){.in_flight = 2, .device_timeout_ns = 5000 * ms});
        fault(kinds[k], 1, 500 * ms);
        scene_play(&scene, 20);
        cr_assert_eq(fake_struck(scene.fake), 1);
        cr_assert_eq(steps_of(FAKE_STEP_ISOLATE, 1), 0);
        cr_assert_eq(device_now(1).lost, 0, "%s", rig_log(scene.rig));
        end();
    }
}

/* Each stuck call takes a scheduler thread with it. Calls of every kind are still stuck when everything is
 * destroyed, so destroying takes a second. */
Test(engine_watchdog, all_but_one_device_may_do_so)
{
    for (uint32_t k = 0; k < KINDS; k++) {
        begin(SHAPE_MAP, &(const struct cox__session_spec){.in_flight = 3, .device_timeout_ns = 100 * ms});
        stuck(kinds[k], 0, 2);
        stuck(kinds[(k + 1) % KINDS], 2, 4);
        play_good(40);
        cr_assert_eq(fake_blocked(scene.fake), 2);
        if (k == 1)
            fake_unblock(scene.fake);
        end();
    }
}

/* Checks and probation runs use the same driver calls as every band. */
Test(engine_watchdog, a_call_about_a_check_may_do_so_too)
{
    for (uint32_t k = 0; k < KINDS; k++)
        for (uint32_t skip = 0; skip < 4; skip++) {
            begin(SHAPE_COUNT,
                  &(const struct cox__session_spec){.in_flight = 2, .verify = 1, .device_timeout_ns = 100 * ms});
            fault(FAKE_HANGS, 0, 400 * ms);
            stuck(kinds[k], 1, skip);
            play_good(20);
            fake_unblock(scene.fake);
            end();
        }
}

Test(engine_watchdog, the_warm_up_goes_on_with_the_next_device)
{
    in_thirds();
    scene_begin(&scene, &trio, SHAPE_MAP, 0,
                &(const struct cox__session_spec){
                    .in_flight = 2, .custom_policy = &rig_policy, .device_timeout_ns = 100 * ms});
    stuck(FAKE_SUBMIT_STUCK, 1, 3); /* the first run shows how long the call takes */
    play_good(20);
    cr_assert_eq(device_now(1).lost, 1);
    fake_unblock(scene.fake);
    end();
}

/* When the last device is gone, frames wait and then fail. Submission returns an error, and everything can be
 * destroyed. */
Test(engine_watchdog, the_only_device_may_do_so)
{
    static const struct fake_params one = {.device_count = 1, .devices = {{.ns_per_row = 1e5}}};
    for (uint32_t k = 0; k < KINDS_ALONE; k++) {
        begin_on(&one, SHAPE_MAP, 0, &(const struct cox__session_spec){.in_flight = 2, .device_timeout_ns = 100 * ms});
        FAULT(.kind = FAKE_INSTANCE_FAILS, .status = COX_E_DEVICE_LOST, .count = UINT32_MAX); /* no retry works */
        stuck(kinds[k], 0, 0);
        scene_play(&scene, 5);
        cr_assert_eq(scene_failed(&scene, 0, LEARN), 0);
        cr_assert_gt(scene_failed(&scene, LEARN, scene.done), 0);
        cr_assert_eq(scene.refused, COX_E_NO_DEVICE);
        if (k > 0)
            fake_unblock(scene.fake);
        end();
    }
}

/* ---- threads that wait in cox_session_run, on a real clock ---- */

struct runner {
    struct cox__frame_spec frame;
    uint32_t count;
    cox_status status;
};

static void *run(void *arg)
{
    struct runner *runner = arg;
    for (uint32_t i = 0; i < runner->count && !runner->status; i++)
        runner->status = cox__session_run(scene.session, &runner->frame);
    return NULL;
}

/* The blocked thread is the application's. Its call returns when the driver call does, with the status of its
 * frame. All other threads go on meanwhile. Bands take less than a millisecond, so even a busy machine does not
 * delay them by a second of scheduled time. */
Test(engine_watchdog, a_thread_in_run_is_kept_alone)
{
    static const struct fake_params real_trio = {
        .device_count = 3,
        .real_time = true,
        .devices = {{.ns_per_row = 1e4}, {.ns_per_row = 1e4, .parts = 2}, {.ns_per_row = 1e4}}};
    for (uint32_t k = 0; k < KINDS; k++) {
        begin_on(&real_trio, SHAPE_MAP, 0,
                 &(const struct cox__session_spec){.in_flight = 3, .device_timeout_ns = 1000 * ms});
        shape_prepare(scene.frames, 60);
        shape_prepare(scene.frames, 61);
        struct runner kept = {.frame = shape_frame(scene.frames, 60), .count = 1};
        struct runner free_one = {.frame = shape_frame(scene.frames, 61), .count = 30};
        pthread_t threads[2];
        stuck(kinds[k], 1, 0);
        cr_assert_eq(pthread_create(&threads[0], NULL, run, &kept), 0);
        cr_assert(fake_await_blocked(scene.fake, 1), "no driver call was made");
        cr_assert_eq(pthread_create(&threads[1], NULL, run, &free_one), 0);
        pthread_join(threads[1], NULL);
        cr_assert_eq(free_one.status, COX_OK, "%s", rig_log(scene.rig));
        cr_assert_eq(fake_blocked(scene.fake), 1, "the other threads waited for it");
        fake_unblock(scene.fake);
        pthread_join(threads[0], NULL);
        cr_assert_eq(kept.status, COX_OK, "%s", rig_log(scene.rig));
        cr_assert_str_empty(shape_check(scene.frames, 60));
        cr_assert_str_empty(shape_check(scene.frames, 61));
        end();
    }
}

/* ---- the watchdog alone, on a real clock ---- */

enum { TRIES = 60000 /* at least one millisecond each */ };

static struct {
    struct cox__watchdog *watchdog;
    struct cox__stuck_thread *stuck;
    atomic_bool revoked;
} alone;

static void on_revoked(void *ctx, void *session, void *instance, int role, struct cox__stuck_thread *thread)
{
    (void)ctx, (void)session, (void)instance, (void)role;
    alone.stuck = thread;
    atomic_store(&alone.revoked, true);
}

static void ignore_after(void *ctx)
{
    (void)ctx;
}

/* Make a driver call that returns when the lock is revoked. */
static void call_driver(void *ctx)
{
    (void)ctx;
    cox__watchdog_expect(alone.watchdog, NULL, NULL, 0);
    const struct cox__driver_call call = cox__watchdog_call_begin(alone.watchdog);
    for (uint32_t tries = 0; !atomic_load(&alone.revoked) && tries < TRIES; tries++)
        rest(1 * ms);
    if (!cox__watchdog_call_end(&call))
        cox__watchdog_call_abandon(&call);
}

/* The watchdog's thread looks for two seconds after the last call, then it sleeps. If the machine is so busy that it
 * does not sleep yet, the test passes too. */
Test(engine_watchdog, a_call_after_a_long_pause_is_watched_too)
{
    const struct cox__watchdog_handler handler = {.revoked = on_revoked, .after = ignore_after};
    cr_assert_eq(cox__watchdog_create(&alone.watchdog, &handler), COX_OK);
    cr_assert_eq(cox__watchdog_start(alone.watchdog), COX_OK);
    sleep(3);
    cr_assert_eq(cox__watchdog_run_locked(alone.watchdog, true, 0, call_driver, NULL), COX__LOCK_REVOKED);
    cr_assert(atomic_load(&alone.stuck->returned));
    cox__watchdog_release(alone.watchdog, alone.stuck);
    cr_assert(cox__watchdog_stop(alone.watchdog));
    cox__watchdog_destroy(&alone.watchdog);
}
