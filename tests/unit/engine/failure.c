/* What the engine does when devices fail, lie or stay silent, and when a policy talks nonsense.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/rig_play.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

TestSuite(engine_failure, .timeout = 300);

static const struct fake_params trio = {
    .device_count = 3,
    .devices = {{.name = "alpha", .ns_per_row = 2e3},
                {.name = "beta", .type = COX_DEVICE_GPU, .ns_per_row = 1e3},
                {.name = "gamma", .type = COX_DEVICE_GPU, .mode = COX_MODE_STAGED, .ns_per_row = 1e3}},
};

static const uint32_t thirds[][2] = {{0, 30}, {1, 30}, {2, 30}};

/* Of each device, when they are as short as here: one that is not timed, and twelve. */
enum { WARMUP_RUNS = 13 };

/* Three devices, 30 rows each, eight frames' buffers. */
struct scene {
    struct rig *rig;
    struct rig_frames *frames;
    cox_session *session;
};

static struct scene scene_new(uint32_t in_flight, bool warmup)
{
    struct scene scene = {.rig = rig_new(&trio)};
    scene.frames = rig_frames_new(scene.rig, 90, 16, 16, 8);
    rig_split_count = 0;
    rig_add_split(3, thirds);
    cr_assert_eq(rig_map_session(scene.frames,
                                 COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = in_flight,
                                                    .no_warmup = !warmup, .report = rig_report,
                                                    .report_user = scene.rig),
                                 &scene.session),
                 COX_OK);
    return scene;
}

static void scene_end(struct scene *scene)
{
    cox_session_destroy(&scene->session);
    rig_frames_free(&scene->frames);
    cr_assert_str_empty(rig_end(&scene->rig));
}

/* Submit `count` frames from `first` on, wait, and check that each came once, in order, right. */
static void play(struct scene *scene, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        cr_assert_eq(rig_submit(scene->frames, scene->session, i, false), COX_OK);
        if (i % 4 == 3 || i == first + count - 1) {
            cox_session_wait(scene->session);
            for (uint32_t k = i - i % 4 < first ? first : i - i % 4; k <= i; k++)
                cr_assert_str_empty(rig_check(scene->frames, k));
        }
    }
    cr_assert_eq(rig_done_count(scene->rig), first + count);
    for (uint32_t i = first; i < first + count; i++) {
        cr_assert_eq(rig_done_frame(scene->rig, i), i);
        cr_assert_eq(rig_done_status(scene->rig, i), COX_OK, "frame %u", i);
    }
}

static bool usable(struct scene *scene, uint32_t device)
{
    struct cox_session_info info;
    cox_session_info(scene->session, &info, sizeof info);
    return info.devices[device].state == COX_DEVICE_ACTIVE;
}

Test(engine_failure, a_refused_submit_moves_the_rows_to_another_device)
{
    static const cox_status statuses[] = {COX_E_DEVICE_LOST, COX_E_DEVICE_MEMORY, COX_E_NOMEM};
    for (uint32_t device = 0; device < 3; device++)
        for (uint32_t skip = 0; skip < 4; skip++) {
            struct scene scene = scene_new(2, skip % 2);
            fake_script(rig_fake(scene.rig), &(struct fake_fault){.kind = FAKE_SUBMIT_FAILS,
                                                                  .device = device,
                                                                  .skip = (skip % 2 ? WARMUP_RUNS : 0) + 3 + skip,
                                                                  .status = statuses[skip % 3]});
            play(&scene, 0, 20);
            for (uint32_t d = 0; d < 3; d++)
                cr_assert_eq(usable(&scene, d), d != device);
            cr_assert(rig_logged(scene.rig, trio.devices[device].name), "%s", rig_log(scene.rig));
            scene_end(&scene);
        }
}

Test(engine_failure, run_goes_on_when_the_device_that_computes_in_the_enqueue_call_refuses)
{
    static const struct fake_params params = {.device_count = 2,
                                              .devices = {{.name = "inside", .ns_per_row = 1e5, .inside_submit = true},
                                                          {.name = "other", .ns_per_row = 2e5}}};
    struct rig *rig = rig_new(&params);
    struct rig_frames *frames = rig_frames_new(rig, 90, 16, 16, 1);
    cox_session *session;
    rig_split_count = 0;
    rig_add_split(1, (const uint32_t[][2]){{0, 90}});
    cr_assert_eq(rig_map_session(frames, COX_SESSION_PARAMS(.custom_policy = &rig_policy), &session), COX_OK);
    cox_buffer *const buffers[] = {frames->in[0], frames->out[0]};
    const struct cox_frame frame = {.buffers = buffers, .buffer_count = 2, .params = &frames->params[0]};
    cr_assert_eq(cox_session_run(session, &frame), COX_OK); /* its warm-up tells the engine how it works */
    const struct timespec rest = {.tv_nsec = 50000000};
    nanosleep(&rest, NULL); /* so that nothing but the run itself sees to its frame */
    fake_script(rig_fake(rig),
                &(struct fake_fault){.kind = FAKE_SUBMIT_FAILS, .device = 0, .status = COX_E_DEVICE_LOST});
    cr_assert_eq(cox_session_run(session, &frame), COX_OK);
    cr_assert_str_empty(rig_check(frames, 0));
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}

Test(engine_failure, a_failed_band_is_run_again_elsewhere)
{
    for (uint32_t device = 0; device < 3; device++)
        for (uint32_t in_flight = 1; in_flight <= 4; in_flight++) {
            struct scene scene = scene_new(in_flight, false);
            fake_script(rig_fake(scene.rig),
                        &(struct fake_fault){.kind = FAKE_EVENT_FAILS, .device = device, .skip = 5});
            play(&scene, 0, 20);
            cr_assert_not(usable(&scene, device));
            /* The frame's report shows the failed attempt and, after it, the one that counted. */
            bool found = false;
            for (uint32_t i = 0; i < rig_report_count(scene.rig); i++) {
                const struct rig_report *report = rig_report_at(scene.rig, i);
                if (report->frame.index != 5)
                    continue;
                cr_assert_eq(report->frame.status, COX_OK);
                cr_assert_eq(report->frame.reason, COX_REASON_RERUN);
                for (uint32_t b = 0; b < report->frame.band_count; b++)
                    if (report->bands[b].attempt == 1) {
                        const struct cox_band_report *failed = &report->bands[b - 1], *again = &report->bands[b];
                        found = true;
                        cr_assert_eq(failed->device, device);
                        cr_assert_eq(failed->attempt, 0);
                        cr_assert_neq(failed->status, COX_OK);
                        cr_assert_eq(failed->first_row, again->first_row);
                        cr_assert_neq(again->device, device);
                        cr_assert_eq(again->status, COX_OK);
                        cr_assert_geq(again->submit_ns, failed->submit_ns);
                    }
            }
            cr_assert(found);
            scene_end(&scene);
        }
}

Test(engine_failure, a_device_that_dies_with_bands_queued_loses_no_frame)
{
    for (uint32_t device = 0; device < 3; device++)
        for (uint32_t in_flight = 1; in_flight <= 4; in_flight++) {
            struct scene scene = scene_new(in_flight, in_flight % 2);
            fake_script(rig_fake(scene.rig), &(struct fake_fault){.kind = FAKE_DEVICE_DIES,
                                                                  .device = device,
                                                                  .skip = (in_flight % 2 ? WARMUP_RUNS : 0) + 6});
            play(&scene, 0, 24);
            cr_assert_not(usable(&scene, device));
            scene_end(&scene);
        }
}

Test(engine_failure, the_last_device_carries_on_alone)
{
    struct scene scene = scene_new(3, false);
    fake_script(rig_fake(scene.rig), &(struct fake_fault){.kind = FAKE_DEVICE_DIES, .device = 2, .skip = 3});
    fake_script(rig_fake(scene.rig),
                &(struct fake_fault){.kind = FAKE_SUBMIT_FAILS, .device = 0, .skip = 9, .status = COX_E_DEVICE_LOST});
    play(&scene, 0, 40);
    cr_assert(usable(&scene, 1));
    cr_assert_not(usable(&scene, 0));
    cr_assert_not(usable(&scene, 2));
    scene_end(&scene);
}

Test(engine_failure, when_every_device_is_gone_frames_end_with_an_error_and_submit_says_so)
{
    for (uint32_t in_flight = 1; in_flight <= 4; in_flight++) {
        struct scene scene = scene_new(in_flight, false);
        for (uint32_t d = 0; d < 3; d++)
            fake_script(rig_fake(scene.rig),
                        &(struct fake_fault){.kind = FAKE_DEVICE_DIES, .device = d, .skip = 5 - d});
        uint32_t accepted = 0;
        cox_status status = COX_OK;
        while (accepted < 30 && (status = rig_submit(scene.frames, scene.session, accepted, false)) == COX_OK)
            accepted++;
        cr_assert_eq(status, COX_E_NO_DEVICE);
        cox_session_wait(scene.session);
        cr_assert_eq(rig_submit(scene.frames, scene.session, 0, false), COX_E_NO_DEVICE);
        cr_assert_eq(rig_submit(scene.frames, scene.session, 0, true), COX_E_NO_DEVICE);
        cr_assert_eq(rig_done_count(scene.rig), accepted);
        uint32_t good = 0;
        for (uint32_t i = 0; i < accepted; i++) {
            cr_assert_eq(rig_done_frame(scene.rig, i), i);
            cr_assert(rig_done_status(scene.rig, i) == COX_OK || rig_done_status(scene.rig, i) == COX_E_DEVICE_LOST);
            good += rig_done_status(scene.rig, i) == COX_OK;
        }
        cr_assert_geq(good, 3);
        cr_assert_lt(good, accepted);
        scene_end(&scene);
    }
}

struct blocked {
    struct scene *scene;
    cox_status status;
};

static void *submit_blocked(void *data)
{
    struct blocked *blocked = data;
    blocked->status = rig_submit(blocked->scene->frames, blocked->scene->session, 2, false);
    return NULL;
}

Test(engine_failure, a_blocked_submit_returns_when_every_device_is_gone)
{
    struct scene scene = scene_new(2, false);
    fake_hold(rig_fake(scene.rig));
    for (uint32_t d = 0; d < 3; d++)
        fake_script(rig_fake(scene.rig), &(struct fake_fault){.kind = FAKE_DEVICE_DIES, .device = d});
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_eq(rig_submit(scene.frames, scene.session, i, false), COX_OK);
    cr_assert(fake_await_running(rig_fake(scene.rig), 6));
    struct blocked blocked = {.scene = &scene, .status = COX_OK};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, submit_blocked, &blocked), 0);
    fake_release(rig_fake(scene.rig));
    pthread_join(thread, NULL);
    cr_assert_eq(blocked.status, COX_E_NO_DEVICE);
    cox_session_wait(scene.session);
    cr_assert_eq(rig_done_count(scene.rig), 2);
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_eq(rig_done_status(scene.rig, i), COX_E_DEVICE_LOST);
    scene_end(&scene);
}

/* ---- building ---- */

Test(engine_failure, a_device_that_cannot_build_does_not_take_part)
{
    for (uint32_t device = 0; device < 3; device++) {
        struct rig *rig = rig_new(&trio);
        struct rig_frames *frames = rig_frames_new(rig, 90, 16, 16, 8);
        fake_script(rig_fake(rig), &(struct fake_fault){.kind = FAKE_INSTANCE_FAILS,
                                                        .device = device,
                                                        .status = device ? COX_E_BUILD : COX_E_DEVICE_MEMORY});
        cox_session *session;
        cr_assert_eq(rig_map_session(frames, COX_SESSION_PARAMS(.in_flight = 2), &session), COX_OK);
        cr_assert(rig_logged(rig, trio.devices[device].name));
        struct cox_session_info info;
        cox_session_info(session, &info, sizeof info);
        cr_assert_eq(info.device_count, 2);
        for (uint32_t d = 0; d < 2; d++)
            cr_assert_neq(info.devices[d].device, device);
        for (uint32_t i = 0; i < 8; i++)
            cr_assert_eq(rig_submit(frames, session, i, false), COX_OK);
        cox_session_wait(session);
        for (uint32_t i = 0; i < 8; i++)
            cr_assert_str_empty(rig_check(frames, i));
        cox_session_destroy(&session);
        rig_frames_free(&frames);
        END(rig);
    }
}

Test(engine_failure, create_says_why_no_device_takes_part)
{
    static const cox_status statuses[] = {COX_E_BUILD, COX_E_DEVICE_MEMORY};
    for (int i = 0; i < 2; i++) {
        struct rig *rig = rig_new(&trio);
        struct rig_frames *frames = rig_frames_new(rig, 90, 16, 16, 1);
        for (uint32_t d = 0; d < 3; d++)
            fake_script(rig_fake(rig),
                        &(struct fake_fault){.kind = FAKE_INSTANCE_FAILS, .device = d, .status = statuses[i]});
        cox_session *session = (cox_session *)&session;
        cr_assert_eq(rig_map_session(frames, COX_SESSION_PARAMS(.in_flight = 2), &session), statuses[i]);
        cr_assert_null(session);
        rig_frames_free(&frames);
        cr_assert(fake_await_gone(rig_fake(rig)));
        END(rig);
    }
}

Test(engine_failure, memory_that_cannot_be_had_is_an_error_of_the_buffer)
{
    struct rig *rig = rig_new(&trio);
    fake_script(rig_fake(rig), &(struct fake_fault){.kind = FAKE_MEM_FAILS, .status = COX_E_NOMEM});
    cox_buffer *buffer = (cox_buffer *)&buffer;
    cr_assert_eq(cox_buffer_create(rig_runtime(rig), 64, &buffer), COX_E_NOMEM);
    cr_assert_null(buffer);
    END(rig);
}

/* ---- warm-up ---- */

Test(engine_failure, a_device_that_fails_in_the_warm_up_leaves_and_the_first_frame_is_right)
{
    static const enum fake_fault_kind kinds[] = {FAKE_SUBMIT_FAILS, FAKE_EVENT_FAILS, FAKE_DEVICE_DIES};
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t device = 0; device < 3; device++)
            for (uint32_t skip = 0; skip < 2; skip++) {
                struct scene scene = scene_new(2, true);
                fake_script(rig_fake(scene.rig),
                            &(struct fake_fault){
                                .kind = kinds[k], .device = device, .skip = skip, .status = COX_E_DEVICE_MEMORY});
                play(&scene, 0, 8);
                cr_assert_not(usable(&scene, device));
                scene_end(&scene);
            }
}

Test(engine_failure, when_every_device_fails_in_the_warm_up_the_frames_end_with_an_error)
{
    struct scene scene = scene_new(2, true);
    for (uint32_t d = 0; d < 3; d++)
        fake_script(rig_fake(scene.rig), &(struct fake_fault){.kind = FAKE_DEVICE_DIES, .device = d});
    cr_assert_eq(rig_submit(scene.frames, scene.session, 0, false), COX_OK);
    cox_session_wait(scene.session);
    cr_assert_eq(rig_done_count(scene.rig), 1);
    cr_assert_eq(rig_done_status(scene.rig, 0), COX_E_DEVICE_LOST);
    cr_assert_eq(rig_submit(scene.frames, scene.session, 1, false), COX_E_NO_DEVICE);
    scene_end(&scene);
}

/* ---- drivers that call back strangely ---- */

Test(engine_failure, finds_out_by_asking_when_nothing_is_posted)
{
    for (uint32_t device = 0; device < 3; device++) {
        struct scene scene = scene_new(2, device == 1);
        fake_script(rig_fake(scene.rig),
                    &(struct fake_fault){.kind = FAKE_NO_POST, .device = device, .skip = 2, .count = UINT32_MAX});
        play(&scene, 0, 12);
        for (uint32_t d = 0; d < 3; d++)
            cr_assert(usable(&scene, d));
        for (uint32_t i = 0; i < rig_report_count(scene.rig); i++) {
            const struct cox_frame_report *frame = &rig_report_at(scene.rig, i)->frame;
            cr_assert_leq(frame->end_ns - frame->start_ns, 1000000000u, "more than a second");
        }
        scene_end(&scene);
    }
}

Test(engine_failure, finds_out_by_asking_that_a_band_failed)
{
    struct scene scene = scene_new(2, false);
    fake_script(rig_fake(scene.rig), &(struct fake_fault){.kind = FAKE_NO_POST, .device = 1, .count = UINT32_MAX});
    fake_script(rig_fake(scene.rig), &(struct fake_fault){.kind = FAKE_EVENT_FAILS, .device = 1, .skip = 2});
    play(&scene, 0, 12);
    cr_assert_not(usable(&scene, 1));
    scene_end(&scene);
}

Test(engine_failure, posts_that_come_twice_early_or_late_change_nothing)
{
    static const enum fake_fault_kind kinds[] = {FAKE_POST_TWICE, FAKE_POST_EARLY, FAKE_POST_LATE};
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t in_flight = 1; in_flight <= 4; in_flight++) {
            struct scene scene = scene_new(in_flight, in_flight % 2);
            for (uint32_t d = 0; d < 3; d++)
                fake_script(rig_fake(scene.rig),
                            &(struct fake_fault){
                                .kind = kinds[k], .device = d, .skip = d, .count = UINT32_MAX, .delay_ns = 70000000});
            play(&scene, 0, 16);
            for (uint32_t d = 0; d < 3; d++)
                cr_assert(usable(&scene, d));
            scene_end(&scene);
        }
}

Test(engine_failure, a_session_can_be_destroyed_while_a_post_is_still_to_come)
{
    for (uint32_t i = 0; i < 10; i++) {
        struct scene scene = scene_new(1, false);
        for (uint32_t d = 0; d < 3; d++)
            fake_script(rig_fake(scene.rig),
                        &(struct fake_fault){
                            .kind = FAKE_POST_LATE, .device = d, .count = UINT32_MAX, .delay_ns = 49999000 + 1000 * i});
        play(&scene, 0, 2);
        scene_end(&scene);
    }
}

Test(engine_failure, a_band_that_takes_long_delays_its_frame_and_nothing_else)
{
    struct scene scene = scene_new(3, false);
    fake_script(rig_fake(scene.rig),
                &(struct fake_fault){.kind = FAKE_HANGS, .device = 1, .skip = 2, .delay_ns = 1000000000u});
    play(&scene, 0, 12);
    for (uint32_t d = 0; d < 3; d++)
        cr_assert(usable(&scene, d));
    scene_end(&scene);
}

/* ---- in place and REDUCE ---- */

struct inplace_scene {
    struct rig *rig;
    cox_buffer *buffer;
    cox_session *session;
    unsigned char before[90 * 16];
};

static struct inplace_scene inplace_new(void)
{
    static const struct cox_binding binding = {
        .name = "buffer", .contract = COX_ROWS, .access = COX_READ_WRITE, .pitch_bytes = 16};
    struct inplace_scene scene = {.rig = rig_new(&trio)};
    uint64_t seed = 3;
    rig_split_count = 0;
    rig_add_split(3, thirds);
    cr_assert_eq(cox_session_create(rig_runtime(scene.rig),
                                    COX_SESSION_PARAMS(.rows = 90, .binding_count = 1, .bindings = &binding,
                                                       .stage_count = 1, .stages = &rig_stage_inplace,
                                                       .params_bytes = sizeof(struct rig_params),
                                                       .custom_policy = &rig_policy, .allow_in_place = true,
                                                       .in_flight = 1, .no_warmup = true),
                                    &scene.session),
                 COX_OK);
    cr_assert_eq(cox_buffer_create(rig_runtime(scene.rig), 90 * 16, &scene.buffer), COX_OK);
    for (size_t i = 0; i < sizeof scene.before; i++)
        scene.before[i] = (unsigned char)rig_random(&seed);
    memcpy(cox_buffer_data(scene.buffer), scene.before, sizeof scene.before);
    return scene;
}

static cox_status inplace_run(struct inplace_scene *scene)
{
    const struct rig_params params = {.columns = 16};
    return cox_session_run(scene->session,
                           &(const struct cox_frame){.buffers = &scene->buffer, .buffer_count = 1, .params = &params});
}

static void inplace_check(struct inplace_scene *scene)
{
    const unsigned char *data = cox_buffer_data(scene->buffer);
    for (size_t i = 0; i < sizeof scene->before; i++)
        cr_assert_eq(data[i], (unsigned char)(scene->before[i] * 3u + 1), "byte %zu", i);
}

static void inplace_end(struct inplace_scene *scene)
{
    cox_session_destroy(&scene->session);
    cox_buffer_destroy(&scene->buffer);
    cr_assert_str_empty(rig_end(&scene->rig));
}

Test(engine_failure, a_failed_band_in_place_is_an_error_and_not_run_again)
{
    struct inplace_scene scene = inplace_new();
    fake_script(rig_fake(scene.rig), &(struct fake_fault){.kind = FAKE_EVENT_FAILS, .device = 1});
    cr_assert_eq(inplace_run(&scene), COX_E_DEVICE_LOST);
    size_t count;
    struct fake_record *record = fake_take_record(rig_fake(scene.rig), &count);
    uint32_t submits = 0;
    for (size_t i = 0; i < count; i++)
        submits += record[i].step == FAKE_STEP_SUBMIT;
    cr_assert_eq(submits, 3);
    free(record);
    /* The session goes on with the others. */
    memcpy(cox_buffer_data(scene.buffer), scene.before, sizeof scene.before);
    cr_assert_eq(inplace_run(&scene), COX_OK);
    inplace_check(&scene);
    inplace_end(&scene);
}

Test(engine_failure, rows_in_place_that_never_ran_may_go_elsewhere)
{
    struct inplace_scene scene = inplace_new();
    fake_script(rig_fake(scene.rig),
                &(struct fake_fault){.kind = FAKE_SUBMIT_FAILS, .device = 1, .status = COX_E_DEVICE_LOST});
    cr_assert_eq(inplace_run(&scene), COX_OK);
    inplace_check(&scene);
    inplace_end(&scene);
}

Test(engine_failure, a_run_again_is_counted_once_in_a_reduction)
{
    static const struct cox_binding bindings[] = {
        {.name = "in", .contract = COX_ROWS, .access = COX_READ, .pitch_bytes = 16},
        {.name = "histogram", .contract = COX_REDUCE, .access = COX_WRITE, .bytes = 1024, .merge = rig_merge_sum},
    };
    static const enum fake_fault_kind kinds[] = {FAKE_SUBMIT_FAILS, FAKE_EVENT_FAILS, FAKE_DEVICE_DIES};
    for (uint32_t k = 0; k < 3; k++) {
        struct rig *rig = rig_new(&trio);
        struct rig_frames *frames = rig_frames_new(rig, 90, 16, 16, 1);
        cox_buffer *histogram;
        cox_session *session;
        rig_split_count = 0;
        rig_add_split(6, (const uint32_t[][2]){{0, 20}, {1, 10}, {2, 20}, {1, 10}, {0, 10}, {1, 20}});
        cr_assert_eq(cox_buffer_create(rig_runtime(rig), 1024, &histogram), COX_OK);
        cr_assert_eq(cox_session_create(rig_runtime(rig),
                                        COX_SESSION_PARAMS(.rows = 90, .binding_count = 2, .bindings = bindings,
                                                           .stage_count = 1, .stages = &rig_stage_count,
                                                           .params_bytes = sizeof(struct rig_params),
                                                           .custom_policy = &rig_policy, .in_flight = 1,
                                                           .no_warmup = k == 1),
                                        &session),
                     COX_OK);
        fake_script(rig_fake(rig), &(struct fake_fault){.kind = kinds[k],
                                                        .device = 1,
                                                        .skip = (k == 1 ? 0 : WARMUP_RUNS) + 7,
                                                        .status = COX_E_DEVICE_LOST});
        for (int i = 0; i < 8; i++) {
            cox_buffer *const buffers[] = {frames->in[0], histogram};
            memset(cox_buffer_data(histogram), 0x77, 1024);
            cr_assert_eq(cox_session_run(session, &(const struct cox_frame){.buffers = buffers,
                                                                            .buffer_count = 2,
                                                                            .params = &frames->params[0]}),
                         COX_OK);
            uint32_t want[256] = {0};
            for (uint32_t b = 0; b < 90 * 16; b++)
                want[((unsigned char *)cox_buffer_data(frames->in[0]))[b]]++;
            cr_assert_arr_eq(cox_buffer_data(histogram), want, sizeof want, "run %d, kind %u", i, k);
        }
        struct cox_session_info info;
        cox_session_info(session, &info, sizeof info);
        cr_assert(info.devices[1].lost > 0);
        cox_session_destroy(&session);
        cox_buffer_destroy(&histogram);
        rig_frames_free(&frames);
        END(rig);
    }
}

/* ---- policies ---- */

static struct cox_split split_of(uint32_t bands, const uint32_t (*device_first_rows)[3])
{
    struct cox_split split = {.band_count = bands};
    for (uint32_t i = 0; i < bands && i < 4; i++)
        split.bands[i] = (struct cox_band){device_first_rows[i][0], device_first_rows[i][1], device_first_rows[i][2]};
    return split;
}

Test(engine_failure, a_split_that_is_none_is_replaced_by_the_last_good_one_and_the_log_says_why)
{
    /* 92 rows, granule 4 through an alignment of 64 at a pitch of 16. */
    static const struct {
        const char *what;
        uint32_t bands;
        uint32_t band[4][3];
        const char *logged;
    } wrong[] = {
        {"overlap", 2, {{0, 0, 48}, {1, 44, 48}}, "band 1"},
        {"hole", 2, {{0, 0, 44}, {1, 48, 44}}, "band 1"},
        {"end missing", 2, {{0, 0, 44}, {1, 44, 44}}, NULL},
        {"beyond the end", 2, {{0, 0, 44}, {1, 44, 52}}, "band 1"},
        {"misaligned", 2, {{0, 0, 45}, {1, 45, 47}}, "band 0"},
        {"empty band", 3, {{0, 0, 44}, {1, 44, 0}, {2, 44, 48}}, "band 1"},
        {"no band", 0, {{0}}, NULL},
        {"no such device", 2, {{0, 0, 44}, {7, 44, 48}}, "band 1"},
        {"descending", 2, {{0, 48, 44}, {1, 0, 48}}, "band 0"},
        {"too many bands", COX_BANDS_MAX + 70, {{0, 0, 92}}, NULL},
        {"rows that wrap", 2, {{0, 0, 44}, {1, 44, UINT32_MAX - 3}}, "band 1"},
    };
    for (size_t w = 0; w < sizeof wrong / sizeof wrong[0]; w++)
        for (int first = 0; first < 2; first++) {
            struct fake_params params = trio;
            for (uint32_t d = 0; d < 3; d++)
                params.devices[d].align_bytes = 64;
            struct rig *rig = rig_new(&params);
            struct rig_frames *frames = rig_frames_new(rig, 92, 16, 16, 8);
            cox_session *session;
            rig_split_count = 0;
            if (!first)
                rig_add_split(3, (const uint32_t[][2]){{0, 8}, {1, 60}, {2, 24}});
            rig_splits[rig_split_count++] = split_of(wrong[w].bands, wrong[w].band);
            rig_add_split(2, (const uint32_t[][2]){{0, 48}, {2, 44}});
            cr_assert_eq(rig_map_session(frames,
                                         COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 2,
                                                            .report = rig_report, .report_user = rig,
                                                            .no_warmup = true),
                                         &session),
                         COX_OK);
            for (uint32_t i = 0; i < 5; i++)
                cr_assert_eq(rig_submit(frames, session, i, false), COX_OK);
            cox_session_wait(session);
            cr_assert_eq(rig_done_count(rig), 5);
            for (uint32_t i = 0; i < 5; i++) {
                cr_assert_str_empty(rig_check(frames, i), "%s", wrong[w].what);
                cr_assert_eq(rig_done_status(rig, i), COX_OK, "%s", wrong[w].what);
            }
            cr_assert(rig_logged(rig, "playback"), "%s: %s", wrong[w].what, rig_log(rig));
            if (wrong[w].logged)
                cr_assert(rig_logged(rig, wrong[w].logged), "%s: %s", wrong[w].what, rig_log(rig));
            if (!first) { /* the last good one */
                const struct rig_report *report = rig_report_at(rig, 1);
                cr_assert_eq(report->frame.band_count, 3);
                cr_assert_eq(report->bands[1].rows, 60);
            }
            cox_session_destroy(&session);
            rig_frames_free(&frames);
            END(rig);
        }
}

static cox_status refuse_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)state;
    out->band_count = 1;
    out->bands[0] = (struct cox_band){0, 0, view->rows};
    return COX_E_POLICY;
}

Test(engine_failure, a_policy_that_returns_an_error_stops_no_frame)
{
    struct cox_policy policy = rig_policy;
    policy.split = refuse_split;
    struct rig *rig = rig_new(&trio);
    struct rig_frames *frames = rig_frames_new(rig, 90, 16, 16, 4);
    cox_session *session;
    cr_assert_eq(rig_map_session(frames, COX_SESSION_PARAMS(.custom_policy = &policy), &session), COX_OK);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(rig_submit(frames, session, i, false), COX_OK);
    cox_session_wait(session);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_str_empty(rig_check(frames, i));
    cr_assert(rig_logged(rig, "playback"));
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}

Test(engine_failure, a_policy_that_insists_on_a_lost_device_is_overruled)
{
    struct scene scene = scene_new(2, false); /* its split names device 1 for ever */
    fake_script(rig_fake(scene.rig), &(struct fake_fault){.kind = FAKE_DEVICE_DIES, .device = 1, .skip = 1});
    play(&scene, 0, 16);
    cr_assert(rig_logged(scene.rig, "playback"));
    scene_end(&scene);
}

static cox_status refuse_options(void *state, const struct cox_sched_view *view,
                                 const struct cox_policy_options *options)
{
    (void)state, (void)view, (void)options;
    return COX_E_INVALID;
}

Test(engine_failure, a_policy_that_refuses_its_options_refuses_the_session)
{
    struct cox_policy policy = rig_policy;
    policy.init = refuse_options;
    struct rig *rig = rig_new(&trio);
    struct rig_frames *frames = rig_frames_new(rig, 90, 16, 16, 1);
    cox_session *session = NULL;
    cr_assert_eq(rig_map_session(frames, COX_SESSION_PARAMS(.custom_policy = &policy), &session), COX_E_INVALID);
    cr_assert_null(session);
    cr_assert(rig_logged(rig, "playback"));
    rig_frames_free(&frames);
    cr_assert(fake_await_gone(rig_fake(rig)));
    END(rig);
}

/* ---- all at once ---- */

Test(engine_failure, survives_random_faults_while_one_device_lives, .timeout = 600)
{
    static const enum fake_fault_kind kinds[] = {FAKE_SUBMIT_FAILS, FAKE_EVENT_FAILS, FAKE_DEVICE_DIES, FAKE_HANGS,
                                                 FAKE_NO_POST,      FAKE_POST_TWICE,  FAKE_POST_EARLY,  FAKE_SLOW};
    for (uint64_t round = 1; round <= 60; round++) {
        uint64_t seed = round;
        struct fake_params params = {.device_count = 1 + (uint32_t)(rig_random(&seed) % 5)};
        for (uint32_t d = 0; d < params.device_count; d++)
            params.devices[d] = (struct fake_device){
                .type = d % 2 ? COX_DEVICE_GPU : COX_DEVICE_CPU,
                .mode = 1 + (enum cox_memory_mode)(rig_random(&seed) % 3),
                .align_bytes = 4u << (rig_random(&seed) % 6),
                .max_rows = rig_random(&seed) % 2 ? 0 : 32 + (uint32_t)(rig_random(&seed) % 40),
                .fixed_ns = (double)(rig_random(&seed) % 100000),
                .ns_per_row = 100 + (double)(rig_random(&seed) % 10000),
                .jitter = 0.3,
                .inside_submit = rig_random(&seed) % 4 == 0,
            };
        struct rig *rig = rig_new(&params);
        struct rig_frames *frames = rig_frames_new(rig, 150 + (uint32_t)(rig_random(&seed) % 90), 16, 16, 9);
        cox_session *session;
        const uint32_t in_flight = 1 + (uint32_t)(rig_random(&seed) % 8);
        const char *const policies[] = {"ewma", "static", "single", "last-frame", "mean10"};
        cr_assert_eq(rig_map_session(frames,
                                     COX_SESSION_PARAMS(.policy = policies[rig_random(&seed) % 5],
                                                        .in_flight = in_flight, .no_warmup = rig_random(&seed) % 2),
                                     &session),
                     COX_OK, "round %u: %s", (unsigned)round, rig_log(rig));
        for (uint32_t d = 1; d < params.device_count; d++) /* device 0 lives */
            for (int i = 0; i < 3; i++)
                fake_script(rig_fake(rig), &(struct fake_fault){.kind = kinds[rig_random(&seed) % 8],
                                                                .device = d,
                                                                .skip = (uint32_t)(rig_random(&seed) % 60),
                                                                .count = 1 + (uint32_t)(rig_random(&seed) % 3),
                                                                .status = COX_E_DEVICE_LOST,
                                                                .delay_ns = rig_random(&seed) % 200000000,
                                                                .factor = 7});
        for (uint32_t i = 0; i < 60; i++) {
            cr_assert_eq(rig_submit(frames, session, i, false), COX_OK);
            if (i % 6 == 5) {
                cox_session_wait(session);
                for (uint32_t k = i - 5; k <= i; k++)
                    cr_assert_str_empty(rig_check(frames, k), "round %u", (unsigned)round);
            }
        }
        cox_session_destroy(&session);
        cr_assert_eq(rig_done_count(rig), 60);
        for (uint32_t i = 0; i < 60; i++) {
            cr_assert_eq(rig_done_frame(rig, i), i);
            cr_assert_eq(rig_done_status(rig, i), COX_OK);
        }
        rig_frames_free(&frames);
        const char *wrong = rig_end(&rig);
        cr_assert_str_empty(wrong, "round %u: %s", (unsigned)round, wrong);
    }
}
