/* Cancelling, and frames that callbacks submit.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scene_test.h"
#include <pthread.h>

TestSuite(engine_cancel, .timeout = 300);

/* What the callbacks say of the frames of a session, in order. */
struct list {
    cox_session *session;
    struct shape_frames *frames;
    uint32_t count;
    uint32_t chain; /* frames that callbacks are to submit */
    uint32_t submitted;
    uint32_t refused;
    bool cancels; /* the first callback does */
    cox_status status[200];
};

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct list *list = user;
    cr_assert_eq(frame, list->count);
    list->status[list->count++] = status;
    if (list->cancels && list->count == 1)
        cr_assert_eq(cox_session_cancel(list->session), COX_OK);
    if (!list->chain)
        return;
    list->chain--;
    const struct cox_frame next = shape_frame(list->frames, list->submitted);
    shape_prepare(list->frames, list->submitted++);
    list->refused += cox_session_submit(list->session, &next, on_done, list) != COX_OK;
}

static void submit(struct list *list, uint32_t frames)
{
    for (uint32_t i = 0; i < frames; i++) {
        const struct cox_frame frame = shape_frame(list->frames, list->submitted);
        shape_prepare(list->frames, list->submitted++);
        cr_assert_eq(cox_session_submit(list->session, &frame, on_done, list), COX_OK);
    }
}

static struct list begin_list(struct scene *scene, const struct fake_params *devices, const struct cox_session_params *extra)
{
    in_thirds();
    scene_begin(scene, devices, SHAPE_MAP, 40, extra);
    return (struct list){.session = scene->session, .frames = scene->frames};
}

static uint32_t count_of(const struct list *list, uint32_t first, cox_status status)
{
    uint32_t count = 0;
    for (uint32_t i = first; i < list->count; i++)
        count += list->status[i] == status;
    return count;
}

static uint64_t frame_ns(struct scene *scene, struct list *list)
{
    const uint64_t began = fake_now(scene->fake);
    submit(list, 1);
    cox_session_wait(scene->session);
    return fake_now(scene->fake) - began;
}

/* Cancels 16 frames and destroys the session: how many frames that takes. */
static double frames_after_cancel(const struct fake_params *devices)
{
    struct list list = begin_list(&scene, devices,
                             COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 16, .no_warmup = true));
    submit(&list, 3);
    cox_session_wait(scene.session);
    const uint64_t one = frame_ns(&scene, &list);
    fake_hold(scene.fake);
    submit(&list, 16);
    fake_await_running(scene.fake, 2 * devices->device_count); /* as far as it goes before anything ends */
    cr_assert_eq(cox_session_cancel(scene.session), COX_OK);
    const uint64_t began = fake_now(scene.fake);
    fake_release(scene.fake);
    cox_session_destroy(&scene.session);
    const double frames = (double)(fake_now(scene.fake) - began) / (double)one;
    cr_assert_eq(list.count, 20);
    cr_assert_eq(count_of(&list, 4, COX_E_CANCELLED), 16);
    cr_assert_eq(shape_session(scene.frames, COX_SESSION_PARAMS(.policy = "static"), &scene.session), COX_OK);
    end();
    return frames;
}

/* A device holds two bands at a time, a staged one three: its copies in and out run beside the kernel. */
Test(engine_cancel, what_has_not_begun_is_not_done_any_more)
{
    struct fake_params in_place = trio;
    in_place.devices[2].mode = in_place.devices[0].mode;
    cr_assert_leq(frames_after_cancel(&in_place), 2.0);
    cr_assert_leq(frames_after_cancel(&trio), 3.0);
}

Test(engine_cancel, the_session_goes_on)
{
    struct list list = begin_list(&scene, &trio, COX_SESSION_PARAMS(.policy = "adaptive", .in_flight = 4));
    for (uint32_t round = 0; round < 10; round++) {
        const uint32_t before = list.count;
        submit(&list, 1 + round % 4);
        cr_assert_eq(cox_session_cancel(scene.session), COX_OK);
        cox_session_wait(scene.session);
        cr_assert_eq(count_of(&list, before, COX_OK) + count_of(&list, before, COX_E_CANCELLED), 1 + round % 4);
        submit(&list, 2);
        cox_session_wait(scene.session);
        cr_assert_eq(list.status[list.count - 2], COX_OK);
        cr_assert_eq(list.status[list.count - 1], COX_OK);
        cr_assert_str_empty(shape_check(scene.frames, list.submitted - 1));
    }
    for (uint32_t d = 0; d < 3; d++)
        cr_assert_gt(device_now(d).solo_ns, 0, "a warm-up that was broken off goes on");
    end();
}

Test(engine_cancel, from_a_callback)
{
    struct list list = begin_list(&scene, &trio,
                             COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 8, .no_warmup = true));
    list.cancels = true;
    fake_hold(scene.fake);
    submit(&list, 8);
    fake_release(scene.fake);
    cox_session_wait(scene.session);
    cr_assert_eq(list.count, 8);
    cr_assert_eq(list.status[0], COX_OK);
    cr_assert_eq(count_of(&list, 1, COX_E_CANCELLED), 7);
    end();
}

Test(engine_cancel, a_device_that_hangs_is_waited_for_no_longer_than_its_timeout)
{
    struct list list = begin_list(&scene, &trio,
                             COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 2, .no_warmup = true,
                                                .device_timeout_ns = 200 * ms));
    submit(&list, 2);
    cox_session_wait(scene.session);
    FAULT(.kind = FAKE_HANGS, .device = 1, .delay_ns = UINT64_MAX);
    fake_hold(scene.fake);
    submit(&list, 2);
    cr_assert_eq(cox_session_cancel(scene.session), COX_OK);
    const uint64_t began = fake_now(scene.fake);
    fake_release(scene.fake);
    cox_session_wait(scene.session);
    cr_assert_lt(fake_now(scene.fake) - began, 1000 * ms);
    cr_assert_eq(count_of(&list, 2, COX_E_CANCELLED), 2);
    end();
}

/* ---- chains ---- */

/* Another thread takes every slot that it can get. */
struct competitor {
    cox_session *session;
    struct shape_frames *frames;
    uint32_t count;
    atomic_uint over;
};

static void on_competitor(void *user, uint64_t frame, cox_status status)
{
    (void)frame, (void)status;
    atomic_fetch_add((atomic_uint *)user, 1);
}

static void on_link(void *user, uint64_t frame, cox_status status)
{
    struct list *list = user;
    (void)frame;
    list->status[list->count++] = status;
    if (list->count == 100)
        return;
    const struct cox_frame next = shape_frame(list->frames, list->count % 2);
    shape_prepare(list->frames, list->count % 2);
    list->refused += cox_session_submit(list->session, &next, on_link, list) != COX_OK;
}

static void *compete(void *user)
{
    struct competitor *competitor = user;
    for (uint32_t i = 0; i < competitor->count; i++) {
        const struct cox_frame frame = shape_frame(competitor->frames, 2 + i % 30);
        while (cox_session_submit(competitor->session, &frame, on_competitor, &competitor->over) != COX_OK)
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
        in_thirds();
        scene_begin(&scene, &real, SHAPE_MAP, 40, COX_SESSION_PARAMS(.policy = "static", .no_warmup = true));
        cox_session_destroy(&scene.session); /* that has two in flight at least */
        cr_assert_eq(shape_session(scene.frames,
                                   COX_SESSION_PARAMS(.policy = "static", .in_flight = in_flight, .no_warmup = true),
                                   &scene.session),
                     COX_OK);
        struct list list = {.session = scene.session, .frames = scene.frames};
        struct competitor competitor = {.session = scene.session, .frames = scene.frames, .count = 100};
        for (uint32_t t = 0; t < 3; t++)
            cr_assert_eq(pthread_create(&threads[t], NULL, compete, &competitor), 0);
        const struct cox_frame first = shape_frame(scene.frames, 0);
        shape_prepare(scene.frames, 0);
        cr_assert_eq(cox_session_submit(scene.session, &first, on_link, &list), COX_OK);
        for (uint32_t t = 0; t < 3; t++)
            pthread_join(threads[t], NULL);
        cox_session_wait(scene.session);
        cr_assert_eq(list.refused, 0);
        cr_assert_eq(list.count, 100);
        cr_assert_eq(count_of(&list, 0, COX_OK), 100);
        cr_assert_eq(atomic_load(&competitor.over), 300);
        end();
    }
}
