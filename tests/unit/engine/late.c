/* Frames that are to be dropped where they would be late (COX_LATE_DROP): which, when, in which order, and what becomes
 * of those that read what they were to write.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_shapes.h"
#include "support/rig_play.h"
#include <stdlib.h>

TestSuite(engine_late, .timeout = 300);

enum { ROWS = 100, FRAME_NS = 1000000, FRAMES = 12, NONE = 0 };
static const uint64_t ms = 1000000;

/* The clock stands still until fake_release: all frames are submitted at one moment. A device holds two bands at a
 * time, and with them the first two frames have begun. */
static const struct fake_params one = {.device_count = 1, .devices = {{.ns_per_row = 10e3}}, .held = true};
static const struct fake_params pair = {
    .device_count = 2, .devices = {{.ns_per_row = 10e3}, {.ns_per_row = 10e3}}, .held = true};

struct scene {
    struct rig *rig;
    struct rig_frames *frames;
    cox_session *session;
    uint64_t begin_ns;
    uint32_t count; /* submitted */
};

static struct scene begin(const struct fake_params *devices, const struct cox_session_params *given)
{
    struct scene scene = {.rig = rig_new(devices)};
    struct cox_session_params params = *given;
    scene.frames = rig_frames_new(scene.rig, ROWS, 16, 16, FRAMES);
    params.report = rig_report;
    params.report_user = scene.rig;
    params.in_flight = FRAMES;
    cr_assert_eq(rig_map_session(scene.frames, &params, &scene.session), COX_OK, "%s", rig_log(scene.rig));
    scene.begin_ns = fake_now(rig_fake(scene.rig));
    return scene;
}

static void submit_of(struct scene *scene, cox_buffer *in, cox_buffer *out, uint64_t deadline_ns, enum cox_late late)
{
    cox_buffer *const buffers[] = {in, out};
    cr_assert_eq(cox_session_submit(scene->session,
                                    COX_FRAME(.buffers = buffers, .buffer_count = 2,
                                              .params = &scene->frames->params[scene->count],
                                              .deadline_ns = deadline_ns, .late = late),
                                    rig_done, scene->rig),
                 COX_OK);
    scene->count++;
}

static void submit(struct scene *scene, uint64_t deadline_ns, enum cox_late late)
{
    submit_of(scene, scene->frames->in[scene->count], scene->frames->out[scene->count], deadline_ns, late);
}

static void finish(struct scene *scene)
{
    fake_release(rig_fake(scene->rig));
    cox_session_wait(scene->session);
    cr_assert_eq(rig_done_count(scene->rig), scene->count);
    for (uint32_t i = 0; i < scene->count; i++)
        cr_assert_eq(rig_done_frame(scene->rig, i), i, "callbacks come in order");
}

/* The frame's callback and its report say the same. */
static void check(const struct scene *scene, uint32_t frame, cox_status status)
{
    cr_assert_eq(rig_done_status(scene->rig, frame), status, "frame %u: %s", frame,
                 cox_status_text(rig_done_status(scene->rig, frame)));
    for (uint32_t r = 0; r < rig_report_count(scene->rig); r++) {
        const struct cox_frame_report *report = &rig_report_at(scene->rig, r)->frame;
        if (!report->warmup && !report->shadow && report->index == frame)
            cr_assert_eq(report->status, status);
    }
    if (status == COX_OK)
        cr_assert_str_empty(rig_check(scene->frames, frame));
}

static void check_counts(const struct scene *scene, uint64_t late, uint64_t dropped)
{
    struct cox_session_info info;
    cox_session_info(scene->session, &info, sizeof info);
    cr_assert_eq(info.frames_done, scene->count);
    cr_assert_eq(info.frames_late, late, "%llu", (unsigned long long)info.frames_late);
    cr_assert_eq(info.frames_dropped, dropped, "%llu", (unsigned long long)info.frames_dropped);
}

static uint64_t passed_ns(const struct scene *scene)
{
    return fake_now(rig_fake(scene->rig)) - scene->begin_ns;
}

static void clear(struct scene *scene)
{
    cox_session_destroy(&scene->session);
    rig_frames_free(&scene->frames);
    END(scene->rig);
}

static uint32_t bands_begun(const struct scene *scene)
{
    size_t count;
    uint32_t begun = 0;
    struct fake_record *record = fake_take_record(rig_fake(scene->rig), &count);
    for (size_t i = 0; i < count; i++)
        begun += record[i].step == FAKE_STEP_SUBMIT;
    free(record);
    return begun;
}

/* At the deadline of 2.5 frames the device is at frame 2 and holds frame 3. */
Test(engine_late, a_frame_that_has_not_begun_at_its_deadline_is_not_begun)
{
    struct scene scene = begin(&one, COX_SESSION_PARAMS(.no_warmup = true));
    for (uint32_t i = 0; i < 8; i++)
        submit(&scene, 5 * FRAME_NS / 2, COX_LATE_DROP);
    finish(&scene);
    for (uint32_t i = 0; i < 8; i++)
        check(&scene, i, i < 4 ? COX_OK : COX_E_LATE);
    check_counts(&scene, 2, 4);
    cr_assert_eq(bands_begun(&scene), 4);
    cr_assert_eq(passed_ns(&scene), 4 * FRAME_NS);
    clear(&scene);
}

Test(engine_late, a_frame_is_delivered_late_unless_it_is_to_be_dropped)
{
    struct scene scene = begin(&one, COX_SESSION_PARAMS(.no_warmup = true));
    for (uint32_t i = 0; i < 8; i++)
        submit(&scene, 5 * FRAME_NS / 2, i % 2 ? COX_LATE_DROP : COX_LATE_DELIVER);
    finish(&scene);
    for (uint32_t i = 0; i < 8; i++)
        check(&scene, i, i > 3 && i % 2 ? COX_E_LATE : COX_OK);
    check_counts(&scene, 4, 2);
    clear(&scene);
}

/* Two have begun before the clock ticks. */
Test(engine_late, all_may_be_dropped_but_those_that_have_begun)
{
    struct scene scene = begin(&one, COX_SESSION_PARAMS(.no_warmup = true));
    for (uint32_t round = 0; round < 3; round++) {
        fake_hold(rig_fake(scene.rig));
        for (uint32_t i = 0; i < 4; i++)
            submit(&scene, 1, COX_LATE_DROP);
        cr_assert(fake_await_running(rig_fake(scene.rig), 2));
        finish(&scene);
        for (uint32_t i = 0; i < 4; i++)
            check(&scene, 4 * round + i, i < 2 ? COX_OK : COX_E_LATE);
        check_counts(&scene, 2 * (round + 1), 2 * (round + 1));
    }
    clear(&scene);
}

Test(engine_late, the_deadline_is_the_frame_s_or_the_session_s_or_none)
{
    struct scene scene = begin(&one, COX_SESSION_PARAMS(.no_warmup = true,
                                                        .policy_options = COX_POLICY_OPTIONS(.deadline_ns = FRAME_NS)));
    submit(&scene, 0, COX_LATE_DROP);
    submit(&scene, 0, COX_LATE_DROP);
    submit(&scene, UINT64_MAX, COX_LATE_DROP);     /* none */
    submit(&scene, 0, COX_LATE_DROP);              /* the session's */
    submit(&scene, UINT64_MAX - 1, COX_LATE_DROP); /* longer than there is time */
    finish(&scene);
    for (uint32_t i = 0; i < 5; i++)
        check(&scene, i, i == 3 ? COX_E_LATE : COX_OK);
    check_counts(&scene, 1, 1);
    clear(&scene);

    scene = begin(&one, COX_SESSION_PARAMS(.no_warmup = true)); /* a session without one */
    for (uint32_t i = 0; i < 5; i++)
        submit(&scene, 0, COX_LATE_DROP);
    finish(&scene);
    for (uint32_t i = 0; i < 5; i++)
        check(&scene, i, COX_OK);
    check_counts(&scene, 0, 0);
    clear(&scene);
}

Test(engine_late, other_values_are_refused)
{
    struct scene scene = begin(&one, COX_SESSION_PARAMS(.no_warmup = true));
    cox_buffer *const buffers[] = {scene.frames->in[0], scene.frames->out[0]};
    cr_assert_eq(cox_session_submit(scene.session,
                                    COX_FRAME(.buffers = buffers, .buffer_count = 2, .late = (enum cox_late)2),
                                    rig_done, scene.rig),
                 COX_E_INVALID);
    cr_assert(rig_logged(scene.rig, "late: 2"));
    finish(&scene);
    clear(&scene);
}

/* ---- frames under way ---- */

static cox_status split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)state, (void)view;
    out->band_count = 1;
    out->bands[0].rows = ROWS / 2;
    out->pool_first_row = out->pool_rows = ROWS / 2;
    return COX_OK;
}

static void next(void *state, const struct cox_sched_view *view, const struct cox_offer *offer, struct cox_grant *out)
{
    (void)state, (void)view;
    out->rows = offer->rows;
}

/* The second half of each frame is handed out when the first one is done. */
Test(engine_late, what_has_not_begun_of_a_frame_under_way_is_not_done_and_the_devices_end_first)
{
    struct cox_policy policy = rig_policy;
    policy.split = split;
    policy.next = next;
    struct scene scene = begin(&one, COX_SESSION_PARAMS(.no_warmup = true, .custom_policy = &policy));
    submit(&scene, FRAME_NS / 4, COX_LATE_DROP);
    finish(&scene);
    check(&scene, 0, COX_E_LATE);
    check_counts(&scene, 0, 1);
    cr_assert_eq(bands_begun(&scene), 1);
    cr_assert_eq(rig_report_at(scene.rig, 0)->frame.delivered_ns - scene.begin_ns, FRAME_NS / 2);

    fake_hold(rig_fake(scene.rig));
    submit(&scene, 3 * FRAME_NS / 4, COX_LATE_DROP); /* now it has begun, and is delivered late */
    finish(&scene);
    check(&scene, 1, COX_OK);
    check_counts(&scene, 1, 1);
    clear(&scene);
}

Test(engine_late, a_pass_that_has_not_begun_is_not_begun)
{
    struct rig *rig = rig_new(&pair);
    struct shape_frames *frames = shape_frames_new(rig, SHAPE_EXCHANGE, 60, 16, 3);
    cox_session *session = NULL;
    cr_assert_eq(shape_session(frames,
                               COX_SESSION_PARAMS(.no_warmup = true, .in_flight = 3, .report = rig_report,
                                                  .report_user = rig),
                               &session),
                 COX_OK, "%s", rig_log(rig));
    for (uint32_t i = 0; i < 3; i++) {
        struct cox_frame frame = shape_frame(frames, i);
        shape_prepare(frames, i);
        frame.deadline_ns = i == 1 ? 1 : 0;
        frame.late = COX_LATE_DROP;
        cr_assert_eq(cox_session_submit(session, &frame, rig_done, rig), COX_OK);
    }
    fake_release(rig_fake(rig));
    cox_session_wait(session);
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(rig_done_frame(rig, i), i);
        cr_assert_eq(rig_done_status(rig, i), i == 1 ? COX_E_LATE : COX_OK);
        cr_assert_eq(rig_report_at(rig, i)->frame.pass_count, i == 1 ? 1 : 2);
        if (i != 1)
            cr_assert_str_empty(shape_check(frames, i));
    }
    cox_session_destroy(&session);
    shape_frames_free(&frames);
    END(rig);
}

/* ---- devices that fail ---- */

static const uint32_t halves[][2] = {{0, ROWS / 2}, {1, ROWS / 2}};

Test(engine_late, rows_are_not_done_again_after_the_deadline)
{
    for (uint32_t late = 0; late < 2; late++) {
        rig_split_count = 0;
        rig_add_split(2, halves);
        struct scene scene = begin(&pair, COX_SESSION_PARAMS(.no_warmup = true, .custom_policy = &rig_policy));
        fake_script(rig_fake(scene.rig), &(struct fake_fault){.kind = FAKE_EVENT_FAILS, .device = 1});
        submit(&scene, late ? FRAME_NS / 4 : 10 * FRAME_NS, COX_LATE_DROP);
        finish(&scene);
        check(&scene, 0, late ? COX_E_LATE : COX_OK);
        clear(&scene);
    }
}

/* The only device dies and does not come back; without deadlines the frames would end a second later. */
Test(engine_late, frames_that_wait_for_a_device_end_at_their_deadlines)
{
    struct scene scene = begin(&one, COX_SESSION_PARAMS(.no_warmup = true, .device_timeout_ns = 1000 * ms));
    fake_script(rig_fake(scene.rig), &(struct fake_fault){.kind = FAKE_DEVICE_DIES});
    submit(&scene, 50 * ms, COX_LATE_DROP);
    cr_assert(fake_await_running(rig_fake(scene.rig), 1));
    finish(&scene);
    fake_hold(rig_fake(scene.rig));
    const uint64_t again_ns = fake_now(rig_fake(scene.rig));
    submit(&scene, 80 * ms, COX_LATE_DROP); /* is not even split */
    submit(&scene, 60 * ms, COX_LATE_DROP); /* goes after it */
    finish(&scene);
    for (uint32_t i = 0; i < 3; i++)
        check(&scene, i, COX_E_LATE);
    cr_assert_eq(rig_report_at(scene.rig, 0)->frame.delivered_ns - scene.begin_ns, 50 * ms);
    cr_assert_eq(rig_report_at(scene.rig, 1)->frame.delivered_ns - again_ns, 80 * ms);
    cr_assert_eq(rig_report_at(scene.rig, 2)->frame.delivered_ns - again_ns, 80 * ms);
    clear(&scene);
}

/* ---- what else frames wait for ---- */

Test(engine_late, what_reads_the_rows_of_a_dropped_frame_ends_likewise)
{
    struct scene scene = begin(&one, COX_SESSION_PARAMS(.no_warmup = true));
    cox_buffer **in = scene.frames->in, **out = scene.frames->out;
    submit(&scene, NONE, COX_LATE_DELIVER);
    submit(&scene, NONE, COX_LATE_DELIVER);
    submit_of(&scene, in[2], out[2], FRAME_NS / 2, COX_LATE_DROP);
    submit_of(&scene, out[2], out[3], NONE, COX_LATE_DELIVER); /* reads what that was to write */
    submit_of(&scene, out[3], out[4], NONE, COX_LATE_DELIVER); /* and this what that was */
    submit(&scene, NONE, COX_LATE_DELIVER);
    submit_of(&scene, in[6], out[2], NONE, COX_LATE_DELIVER);
    submit_of(&scene, out[2], out[7], NONE, COX_LATE_DELIVER); /* what a later frame has written */
    finish(&scene);
    for (uint32_t i = 0; i < 8; i++)
        cr_assert_eq(rig_done_status(scene.rig, i), i > 1 && i < 5 ? COX_E_LATE : COX_OK, "frame %u", i);
    check_counts(&scene, 0, 3);
    clear(&scene);
}

/* The frame waits for its turn: the one before it, of another session, has begun to write what it reads. */
Test(engine_late, a_frame_that_expires_waits_for_its_turn)
{
    struct scene scene = begin(&one, COX_SESSION_PARAMS(.no_warmup = true));
    cox_session *other = NULL;
    cr_assert_eq(rig_map_session(scene.frames, COX_SESSION_PARAMS(.no_warmup = true), &other), COX_OK);
    cox_buffer *const buffers[] = {scene.frames->in[0], scene.frames->in[1]};
    cr_assert_eq(cox_session_submit(other,
                                    COX_FRAME(.buffers = buffers, .buffer_count = 2,
                                              .params = &scene.frames->params[0]),
                                    NULL, NULL),
                 COX_OK);
    cr_assert(fake_await_running(rig_fake(scene.rig), 1));
    submit_of(&scene, scene.frames->in[1], scene.frames->out[1], 1, COX_LATE_DROP);
    finish(&scene);
    cr_assert_eq(cox_session_wait(other), COX_OK);
    check(&scene, 0, COX_E_LATE);
    cr_assert_eq(rig_report_at(scene.rig, 0)->frame.delivered_ns - scene.begin_ns, FRAME_NS);
    cox_session_destroy(&other);
    clear(&scene);
}

Test(engine_late, a_warm_up_that_outlasts_a_frame_goes_on_with_the_next_one)
{
    struct scene scene = begin(&pair, COX_SESSION_PARAMS(.no_warmup = false));
    struct cox_session_info info;
    for (uint32_t i = 0; i < 3; i++) {
        submit(&scene, 1, COX_LATE_DROP);
        finish(&scene);
        check(&scene, i, COX_E_LATE);
    }
    submit(&scene, NONE, COX_LATE_DROP);
    finish(&scene);
    check(&scene, 3, COX_OK);
    check_counts(&scene, 0, 3);
    cox_session_info(scene.session, &info, sizeof info);
    for (uint32_t d = 0; d < 2; d++)
        cr_assert_gt(info.devices[d].solo_ns, 0);
    clear(&scene);
}

/* ---- with cancelling, and with cox_session_run ---- */

static cox_session *cancels; /* in the callback of frame 0 */

static void on_done(void *user, uint64_t frame, cox_status status)
{
    rig_done(user, frame, status);
    if (frame == 0)
        cr_assert_eq(cox_session_cancel(cancels), COX_OK);
}

/* Frame 0 ends after one frame's time, frame 1 has begun, and the others wait. */
Test(engine_late, what_comes_first_counts_the_deadline_or_cox_session_cancel)
{
    for (uint32_t late = 0; late < 2; late++) {
        struct scene scene = begin(&one, COX_SESSION_PARAMS(.no_warmup = true));
        cancels = scene.session;
        for (; scene.count < 6; scene.count++) {
            cox_buffer *const buffers[] = {scene.frames->in[scene.count], scene.frames->out[scene.count]};
            cr_assert_eq(cox_session_submit(scene.session,
                                            COX_FRAME(.buffers = buffers, .buffer_count = 2,
                                                      .params = &scene.frames->params[scene.count],
                                                      .deadline_ns = late ? FRAME_NS / 2 : 3 * FRAME_NS / 2,
                                                      .late = COX_LATE_DROP),
                                            on_done, scene.rig),
                         COX_OK);
        }
        finish(&scene);
        check(&scene, 0, COX_OK);
        check(&scene, 1, COX_E_CANCELLED);
        for (uint32_t i = 2; i < 6; i++)
            check(&scene, i, late ? COX_E_LATE : COX_E_CANCELLED);
        check_counts(&scene, late, late ? 4 : 0);
        clear(&scene);
    }
}

Test(engine_late, cox_session_run_tells_it_too)
{
    static const struct fake_params runs = {.device_count = 2, .devices = {{.ns_per_row = 10e3}, {.ns_per_row = 10e3}}};
    struct scene scene = begin(&runs, COX_SESSION_PARAMS(.no_warmup = false)); /* the frame waits for the warm-up */
    cox_buffer *const buffers[] = {scene.frames->in[0], scene.frames->out[0]};
    cr_assert_eq(cox_session_run(scene.session,
                                 COX_FRAME(.buffers = buffers, .buffer_count = 2, .params = &scene.frames->params[0],
                                           .deadline_ns = 1, .late = COX_LATE_DROP)),
                 COX_E_LATE);
    clear(&scene);
}
