/* Bands that nobody waits for any more and that may still write: who has to wait for them, and for how long.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scene_trio.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

TestSuite(engine_settle, .timeout = 60);

static void begin(struct scene *scene, enum shape shape, uint32_t buffers, const struct cox_session_params *extra)
{
    struct cox_session_params params = *extra;
    in_thirds();
    params.custom_policy = &rig_policy;
    params.no_warmup = true;
    scene_begin(scene, &trio, shape, buffers, &params);
    scene_play(scene, LEARN);
    fake_clear_record(scene->fake);
}

static void hang(struct scene *scene, uint32_t device, uint64_t delay_ns)
{
    fake_script(scene->fake, &(struct fake_fault){.kind = FAKE_HANGS, .device = device, .delay_ns = delay_ns});
}

/* When the first band that was submitted to the device since the record was cleared ended; 0 = it has not. */
static uint64_t first_end(struct scene *scene, uint32_t device)
{
    size_t count;
    struct fake_record *record = fake_take_record(scene->fake, &count);
    uint64_t end_ns = 0;
    for (size_t i = 0; i < count && !end_ns; i++)
        if (record[i].step == FAKE_STEP_END && record[i].device == device)
            end_ns = record[i].time_ns;
    free(record);
    return end_ns;
}

/* When a job first worked on the output of frame `index % count` after that time; 0 = never. */
static uint64_t first_use(struct scene *scene, uint32_t index, uint32_t binding, uint64_t after_ns)
{
    const void *out = cox_buffer_data(scene->frames->buffers[index % scene->frames->count][binding]);
    size_t count;
    struct fake_record *record = fake_take_record(scene->fake, &count);
    uint64_t at_ns = 0;
    for (size_t i = 0; i < count && !at_ns; i++)
        if (record[i].step == FAKE_STEP_SUBMIT && record[i].out == out && record[i].time_ns > after_ns)
            at_ns = record[i].time_ns;
    free(record);
    return at_ns;
}

/* ---- the same buffers again ---- */

/* Other parameters for the next frame on the same buffers, so that what the band that hangs writes is wrong for it. */
static void change_params(struct scene *scene, uint32_t frame, cox_status status)
{
    (void)status;
    scene->frames->params[frame % scene->frames->count].add += 101;
}

Test(engine_settle, a_frame_on_buffers_that_a_device_may_still_write_waits_until_it_has_ended)
{
    for (uint32_t device = 0; device < 3; device++)
        for (uint32_t buffers = 3; buffers <= 6; buffers++) {
            struct scene scene;
            begin(&scene, SHAPE_MAP, buffers, COX_SESSION_PARAMS(.in_flight = 3));
            scene.watch = change_params;
            hang(&scene, device, 200 * ms);
            scene_play(&scene, 30);
            cr_assert_eq(scene_failed(&scene, 0, LEARN + 30), 0);
            cr_assert_lt(scene_took(&scene, LEARN), 150 * ms);
            const uint64_t end_ns = first_end(&scene, device);
            cr_assert_gt(end_ns, scene.done_ns[LEARN]);
            cr_assert_gt(first_use(&scene, LEARN + buffers, 1, scene.done_ns[LEARN]), end_ns - 1);
            END(&scene); /* it also looked at every frame's bits, late ones' too */
        }
}

Test(engine_settle, frames_on_other_buffers_go_on_meanwhile)
{
    struct scene scene;
    begin(&scene, SHAPE_MAP, 0, COX_SESSION_PARAMS(.in_flight = 3));
    hang(&scene, 1, 200 * ms);
    scene_play(&scene, 60);
    const uint64_t end_ns = first_end(&scene, 1);
    uint32_t meanwhile = 0;
    for (uint32_t i = LEARN; i < LEARN + 60; i++)
        meanwhile += scene.done_ns[i] < end_ns;
    cr_assert_gt(meanwhile, 10);
    END(&scene);
}

/* A frame that reads what an earlier one wrote; rows of it may yet be written. */
static void swap_buffers(struct scene *scene, uint32_t frame, cox_status status)
{
    struct shape_frames *frames = scene->frames;
    (void)status;
    if (frame != LEARN)
        return;
    /* The next frame's input is this frame's output. */
    const uint32_t from = frame % frames->count, to = scene->submitted % frames->count;
    memcpy(frames->before[to], cox_buffer_data(frames->buffers[from][1]), SCENE_ROWS * SCENE_COLUMNS);
    cox_buffer *const other = frames->buffers[to][0];
    frames->buffers[to][0] = frames->buffers[from][1];
    frames->buffers[from][1] = other;
}

Test(engine_settle, an_output_may_be_the_next_frame_s_input)
{
    for (uint32_t device = 0; device < 3; device++) {
        struct scene scene;
        begin(&scene, SHAPE_HALO, 40, COX_SESSION_PARAMS(.in_flight = 2));
        scene.watch = swap_buffers;
        hang(&scene, device, 200 * ms);
        scene_play(&scene, 20);
        cr_assert_eq(scene_failed(&scene, 0, LEARN + 20), 0);
        END(&scene);
    }
}

Test(engine_settle, who_never_ends_is_waited_for_until_it_is_given_up)
{
    for (uint32_t device = 0; device < 3; device++) {
        struct scene scene;
        begin(&scene, SHAPE_MAP, 4, COX_SESSION_PARAMS(.in_flight = 3, .give_up_ns = 300 * ms));
        scene.watch = change_params;
        hang(&scene, device, UINT64_MAX);
        scene_play(&scene, 60);
        cr_assert_eq(scene_failed(&scene, 0, LEARN + 60), 0);
        const uint64_t again_ns = first_use(&scene, LEARN + 4, 1, scene.done_ns[LEARN]);
        cr_assert_geq(again_ns, scene.done_ns[LEARN - 1] + 300 * ms);
        cr_assert_lt(again_ns, scene.done_ns[LEARN] + 1500 * ms);
        END(&scene);
    }
}

/* ---- the callback ---- */

Test(engine_settle, with_settle_the_callback_waits_for_late_devices_too)
{
    for (enum shape shape = SHAPE_MAP; shape < SHAPE_INPLACE; shape++)
        for (uint32_t device = 0; device < 3; device++) {
            struct scene scene;
            begin(&scene, shape, 0, COX_SESSION_PARAMS(.in_flight = 3, .settle = true));
            hang(&scene, device, 200 * ms);
            scene_play(&scene, 12);
            cr_assert_eq(scene_failed(&scene, 0, LEARN + 12), 0);
            const uint64_t end_ns = first_end(&scene, device);
            cr_assert_gt(end_ns, 0);
            cr_assert_geq(scene.done_ns[LEARN], end_ns);
            cr_assert_lt(scene_took(&scene, LEARN), 150 * ms, "its rows were there before");
            END(&scene);
        }
}

Test(engine_settle, without_it_the_callback_comes_before)
{
    struct scene scene;
    begin(&scene, SHAPE_MAP, 0, COX_SESSION_PARAMS(.in_flight = 3));
    hang(&scene, 1, 200 * ms);
    scene_play(&scene, 60);
    cr_assert_lt(scene.done_ns[LEARN], first_end(&scene, 1));
    END(&scene);
}

Test(engine_settle, settle_waits_no_longer_than_until_the_device_is_given_up)
{
    for (uint32_t device = 0; device < 3; device++) {
        struct scene scene;
        begin(&scene, SHAPE_MAP, 0, COX_SESSION_PARAMS(.in_flight = 2, .settle = true, .give_up_ns = 300 * ms));
        const uint64_t began = fake_now(scene.fake);
        hang(&scene, device, UINT64_MAX);
        scene_play(&scene, 40);
        cr_assert_eq(scene_failed(&scene, 0, LEARN + 40), 0);
        cr_assert_geq(scene.done_ns[LEARN], began + 300 * ms);
        cr_assert_lt(scene.done_ns[LEARN], began + 1500 * ms);
        END(&scene);
    }
}

/* ---- buffers ---- */

static void stop_the_clock(struct scene *scene, uint32_t frame, cox_status status)
{
    (void)frame, (void)status;
    fake_hold(scene->fake);
}

static void *release_later(void *fake)
{
    const struct timespec time = {.tv_nsec = 20000000};
    nanosleep(&time, NULL);
    fake_release(fake);
    return NULL;
}

Test(engine_settle, a_buffer_is_destroyed_when_no_device_can_touch_it)
{
    for (uint32_t forever = 0; forever < 2; forever++)
        for (uint32_t device = 0; device < 3; device++)
            for (uint32_t binding = 0; binding < 2; binding++) {
                struct scene scene;
                pthread_t thread;
                begin(&scene, SHAPE_MAP, 0, COX_SESSION_PARAMS(.in_flight = 2, .give_up_ns = 300 * ms));
                scene.watch = stop_the_clock; /* nothing has ended but what the frame waited for */
                hang(&scene, device, forever ? UINT64_MAX : 200 * ms);
                scene_play(&scene, 1);
                cr_assert_eq(scene.status[LEARN], COX_OK);
                cr_assert_eq(first_end(&scene, device), 0);
                cr_assert_eq(pthread_create(&thread, NULL, release_later, scene.fake), 0);
                cox_buffer_destroy(&scene.frames->buffers[LEARN % scene.frames->count][binding]);
                pthread_join(thread, NULL);
                if (!forever)
                    cr_assert_gt(first_end(&scene, device), 0);
                cr_assert_eq(fake_given_up(scene.fake), forever);
                END(&scene);
            }
}

Test(engine_settle, a_session_and_its_buffers_may_go_right_after_the_callback)
{
    for (uint32_t device = 0; device < 3; device++)
        for (uint32_t forever = 0; forever < 2; forever++) {
            struct scene scene;
            pthread_t thread;
            begin(&scene, SHAPE_TABLE, 0, COX_SESSION_PARAMS(.in_flight = 2, .give_up_ns = 300 * ms));
            scene.watch = stop_the_clock;
            hang(&scene, device, forever ? UINT64_MAX : 200 * ms);
            scene_play(&scene, 1);
            cr_assert_eq(pthread_create(&thread, NULL, release_later, scene.fake), 0);
            cox_session_destroy(&scene.session);
            pthread_join(thread, NULL);
            END(&scene);
        }
}

Test(engine_settle, another_session_on_the_same_buffers_waits_too)
{
    for (uint32_t device = 0; device < 3; device++) {
        struct scene scene;
        pthread_t thread;
        cox_session *other = NULL;
        begin(&scene, SHAPE_MAP, 0, COX_SESSION_PARAMS(.in_flight = 2));
        /* All rows are another device's there. */
        cr_assert_eq(shape_session(scene.frames,
                                   COX_SESSION_PARAMS(.policy = "single", .in_flight = 2, .no_warmup = true,
                                                      .policy_options = {.device = 1 + (device + 1) % 3}),
                                   &other),
                     COX_OK);
        scene.watch = stop_the_clock;
        hang(&scene, device, 200 * ms);
        scene_play(&scene, 1);
        scene.frames->params[LEARN % scene.frames->count].add += 101;
        shape_prepare(scene.frames, LEARN);
        const struct cox_frame again = shape_frame(scene.frames, LEARN);
        cr_assert_eq(pthread_create(&thread, NULL, release_later, scene.fake), 0);
        cr_assert_eq(cox_session_run(other, &again), COX_OK);
        pthread_join(thread, NULL);
        cr_assert_gt(first_end(&scene, device), 0);
        cr_assert_str_empty(shape_check(scene.frames, LEARN));
        cox_session_destroy(&other);
        END(&scene);
    }
}
