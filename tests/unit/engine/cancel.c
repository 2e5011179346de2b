/* cox_session_cancel, and frames that callbacks submit.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "scene_test.h"
#include <pthread.h>
#include <string.h>

TestSuite(engine_cancel, .timeout = 300);

/* The statuses that callbacks got for the session's frames, in order. */
static struct {
    uint32_t count;
    uint32_t submitted;
    bool cancels; /* the first callback cancels the session */
    cox_status status[200];
} list;

static void on_done(void *user, uint64_t frame, cox_status status)
{
    (void)user;
    cr_assert_eq(frame, list.count);
    list.status[list.count++] = status;
    if (list.cancels && list.count == 1)
        cr_assert_eq(cox_session_cancel(scene.session), COX_OK);
}

static void submit(uint32_t frames)
{
    for (uint32_t i = 0; i < frames; i++) {
        const struct cox__frame_spec frame = shape_frame(scene.frames, list.submitted);
        shape_prepare(scene.frames, list.submitted++);
        cr_assert_eq(cox__session_submit(scene.session, &frame, on_done, NULL), COX_OK);
    }
}

static void submit_and_wait(uint32_t frames)
{
    submit(frames);
    cox_session_wait(scene.session);
}

static void begin_listed(const struct fake_params *devices, const struct cox__session_spec *extra)
{
    in_thirds();
    scene_begin(&scene, devices, SHAPE_MAP, 40, extra);
    memset(&list, 0, sizeof list);
}

static uint32_t count_of(uint32_t first, cox_status status)
{
    uint32_t count = 0;
    for (uint32_t i = first; i < list.count; i++)
        count += list.status[i] == status;
    return count;
}

/* Submit 16 frames, cancel them, destroy the session. Returns how long this takes, in frame times. */
static double frames_after_cancel(const struct fake_params *devices)
{
    begin_listed(devices,
                 &(const struct cox__session_spec){.custom_policy = &rig_policy, .in_flight = 16, .no_warmup = true});
    submit_and_wait(3);
    const uint64_t one_began = fake_now(scene.fake);
    submit_and_wait(1);
    const uint64_t one = fake_now(scene.fake) - one_began;
    fake_hold(scene.fake);
    submit(16);
    fake_await_running(scene.fake, 2 * devices->device_count); /* run until all devices are busy */
    cr_assert_eq(cox_session_cancel(scene.session), COX_OK);
    const uint64_t began = fake_now(scene.fake);
    fake_release(scene.fake);
    cox_session_destroy(&scene.session);
    const double frames = (double)(fake_now(scene.fake) - began) / (double)one;
    cr_assert_eq(list.count, 20);
    cr_assert_eq(count_of(4, COX_E_CANCELLED), 16);
    cr_assert_eq(shape_session(scene.frames, &(const struct cox__session_spec){.policy = "static"}, &scene.session),
                 COX_OK);
    end();
    return frames;
}

/* A device holds two bands at a time. A staged device holds three, because its copies overlap with the kernel. */
Test(engine_cancel, what_has_not_begun_is_not_done_any_more)
{
    struct fake_params in_place = trio;
    in_place.devices[2].mode = in_place.devices[0].mode;
    cr_assert_leq(frames_after_cancel(&in_place), 2.0);
    cr_assert_leq(frames_after_cancel(&trio), 3.0);
}

Test(engine_cancel, the_session_goes_on)
{
    begin_listed(&trio, &(const struct cox__session_spec){.policy = "adaptive", .in_flight = 4});
    for (uint32_t round = 0; round < 10; round++) {
        const uint32_t before = list.count;
        submit(1 + round % 4);
        cr_assert_eq(cox_session_cancel(scene.session), COX_OK);
        cox_session_wait(scene.session);
        cr_assert_eq(count_of(before, COX_OK) + count_of(before, COX_E_CANCELLED), 1 + round % 4);
        submit_and_wait(2);
        cr_assert_eq(list.status[list.count - 2], COX_OK);
        cr_assert_eq(list.status[list.count - 1], COX_OK);
        cr_assert_str_empty(shape_check(scene.frames, list.submitted - 1));
    }
    for (uint32_t d = 0; d < 3; d++)
        cr_assert_gt(device_now(d).single_device_ns, 0, "a cancelled warm-up goes on");
    end();
}

Test(engine_cancel, from_a_callback)
{
    begin_listed(&trio,
                 &(const struct cox__session_spec){.custom_policy = &rig_policy, .in_flight = 8, .no_warmup = true});
    list.cancels = true;
    fake_hold(scene.fake);
    submit(8);
    fake_release(scene.fake);
    cox_session_wait(scene.session);
    cr_assert_eq(list.count, 8);
    cr_assert_eq(list.status[0], COX_OK);
    cr_assert_eq(count_of(1, COX_E_CANCELLED), 7);
    end();
}

Test(engine_cancel, a_device_that_hangs_is_waited_for_no_longer_than_its_timeout)
{
    begin_listed(&trio,
                 &(const struct cox__session_spec){
                     .custom_policy = &rig_policy, .in_flight = 2, .no_warmup = true, .device_timeout_ns = 200 * ms});
    submit_and_wait(2);
    FAULT(.kind = FAKE_HANGS, .device = 1, .delay_ns = UINT64_MAX);
    fake_hold(scene.fake);
    submit(2);
    cr_assert_eq(cox_session_cancel(scene.session), COX_OK);
    const uint64_t began = fake_now(scene.fake);
    fake_release(scene.fake);
    cox_session_wait(scene.session);
    cr_assert_lt(fake_now(scene.fake) - began, 1000 * ms);
    cr_assert_eq(count_of(2, COX_E_CANCELLED), 2);
    end();
}

/* ---- chains of frames ---- */

/* Other threads compete for the frame slots. */
enum { COMPETING_FRAMES = 100 };

static void on_competitor(void *user, uint64_t frame, cox_status status)
{
    (void)frame, (void)status;
    atomic_fetch_add((atomic_uint *)user, 1);
}

static void on_link(void *user, uint64_t frame, cox_status status)
{
    uint32_t *refused = user;
    (void)frame;
    list.status[list.count++] = status;
    if (list.count == 100)
        return;
    const struct cox__frame_spec next = shape_frame(scene.frames, list.count % 2);
    shape_prepare(scene.frames, list.count % 2);
    *refused += cox__session_submit(scene.session, &next, on_link, refused) != COX_OK;
}

static void *compete(void *over)
{
    for (uint32_t i = 0; i < COMPETING_FRAMES; i++) {
        const struct cox__frame_spec frame = shape_frame(scene.frames, 2 + i % 30);
        while (cox__session_submit(scene.session, &frame, on_competitor, over) != COX_OK)
            rest(10000);
    }
    return NULL;
}

Test(engine_cancel, a_callback_always_finds_a_place_for_the_next_frame)
{
    static const struct fake_params real = {.device_count = 3,
                                            .real_time = true,
                                            .devices = {{.ns_per_row = 1e3}, {.ns_per_row = 1e3}, {.ns_per_row = 1e3}}};
    for (uint32_t in_flight = 1; in_flight <= 3; in_flight++) {
        pthread_t threads[3];
        begin_listed(&real, &(const struct cox__session_spec){.policy = "static", .no_warmup = true});
        cox_session_destroy(&scene.session); /* at least two frames are in flight */
        cr_assert_eq(shape_session(scene.frames,
                                   &(const struct cox__session_spec){
                                       .policy = "static", .in_flight = in_flight, .no_warmup = true},
                                   &scene.session),
                     COX_OK);
        atomic_uint over = 0;
        uint32_t refused = 0;
        for (uint32_t t = 0; t < 3; t++)
            cr_assert_eq(pthread_create(&threads[t], NULL, compete, &over), 0);
        const struct cox__frame_spec first = shape_frame(scene.frames, 0);
        shape_prepare(scene.frames, 0);
        cr_assert_eq(cox__session_submit(scene.session, &first, on_link, &refused), COX_OK);
        for (uint32_t t = 0; t < 3; t++)
            pthread_join(threads[t], NULL);
        cox_session_wait(scene.session);
        cr_assert_eq(refused, 0);
        cr_assert_eq(list.count, 100);
        cr_assert_eq(count_of(0, COX_OK), 100);
        cr_assert_eq(atomic_load(&over), 3 * COMPETING_FRAMES);
        end();
    }
}
