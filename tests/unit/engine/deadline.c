/* Deadlines of frames: which one counts, from when, what is late, and what a policy and the application are told.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/rig_play.h"

TestSuite(engine_deadline, .timeout = 300);

enum { FRAME_NS = 1000000 }; /* 100 rows */

/* One device, whose clock stands still until fake_release. */
static const struct fake_params one = {.device_count = 1, .devices = {{.ns_per_row = 10e3}}, .held = true};

struct scene {
    struct rig *rig;
    struct rig_frames *frames;
    cox_session *session;
};

static struct scene begin(const struct cox_session_params *given)
{
    struct scene scene = {.rig = rig_new(&one)};
    struct cox_session_params params = *given;
    scene.frames = rig_frames_new(scene.rig, 100, 16, 16, 9);
    params.report = rig_report;
    params.report_user = scene.rig;
    params.no_warmup = true;
    cr_assert_eq(rig_map_session(scene.frames, &params, &scene.session), COX_OK, "%s", rig_log(scene.rig));
    return scene;
}

/* Submit a frame with this deadline of its own. */
static void submit(const struct scene *scene, uint32_t index, uint64_t deadline_ns)
{
    cox_buffer *const buffers[] = {scene->frames->in[index], scene->frames->out[index]};
    cr_assert_eq(cox_session_submit(scene->session,
                                    COX_FRAME(.buffers = buffers, .buffer_count = 2,
                                              .params = &scene->frames->params[index], .deadline_ns = deadline_ns),
                                    rig_done, scene->rig),
                 COX_OK);
}

static struct cox_session_info end(struct scene *scene)
{
    struct cox_session_info info;
    fake_release(rig_fake(scene->rig));
    cox_session_wait(scene->session);
    cox_session_info(scene->session, &info, sizeof info);
    return info;
}

static void clear(struct scene *scene)
{
    cox_session_destroy(&scene->session);
    rig_frames_free(&scene->frames);
    END(scene->rig);
}

static const struct cox_frame_report *reported(const struct scene *scene, uint32_t frame)
{
    return &rig_report_at(scene->rig, frame)->frame;
}

Test(engine_deadline, is_counted_from_submission_to_delivery)
{
    const uint64_t deadline_ns = 5 * FRAME_NS / 2;
    struct scene scene = begin(COX_SESSION_PARAMS(.in_flight = 8,
                                                  .policy_options = COX_POLICY_OPTIONS(.deadline_ns = deadline_ns)));
    for (uint32_t i = 0; i < 8; i++)
        submit(&scene, i, 0);
    const struct cox_session_info info = end(&scene);
    uint64_t late = 0, worst_ns = 0;
    for (uint32_t i = 0; i < 8; i++) {
        const struct cox_frame_report *frame = reported(&scene, i);
        const uint64_t latency_ns = frame->delivered_ns - frame->submit_ns;
        cr_assert_eq(frame->deadline_ns, deadline_ns);
        cr_assert_geq(frame->delivered_ns, frame->end_ns);
        cr_assert_geq(latency_ns, (i + 1u) * FRAME_NS, "it waited behind %u frames", i);
        late += latency_ns > deadline_ns;
        worst_ns = latency_ns > deadline_ns && latency_ns - deadline_ns > worst_ns ? latency_ns - deadline_ns
                                                                                   : worst_ns;
    }
    cr_assert_geq(late, 6);
    cr_assert_eq(info.frames_late, late);
    cr_assert_eq(info.worst_late_ns, worst_ns);
    cr_assert_eq(info.frames_done, 8, "late frames are delivered too");
    clear(&scene);
}

Test(engine_deadline, of_a_frame_comes_before_the_session_s)
{
    struct scene scene = begin(COX_SESSION_PARAMS(.in_flight = 4,
                                                  .policy_options = COX_POLICY_OPTIONS(.deadline_ns = 1)));
    submit(&scene, 0, 0);                /* the session's */
    submit(&scene, 1, UINT64_MAX);       /* none */
    submit(&scene, 2, 1000 * FRAME_NS);  /* longer */
    submit(&scene, 3, 2 * FRAME_NS + 1); /* as long, but there are three frames before it */
    const struct cox_session_info info = end(&scene);
    cr_assert_eq(reported(&scene, 0)->deadline_ns, 1);
    cr_assert_eq(reported(&scene, 1)->deadline_ns, 0);
    cr_assert_eq(reported(&scene, 2)->deadline_ns, 1000 * FRAME_NS);
    cr_assert_eq(reported(&scene, 3)->deadline_ns, 2 * FRAME_NS + 1);
    cr_assert_eq(info.frames_late, 2);
    clear(&scene);
}

Test(engine_deadline, is_none_unless_one_is_given)
{
    struct scene scene = begin(COX_SESSION_PARAMS(.in_flight = 3));
    for (uint32_t i = 0; i < 3; i++)
        submit(&scene, i, i == 1 ? 1 : 0);
    const struct cox_session_info info = end(&scene);
    cr_assert_eq(reported(&scene, 0)->deadline_ns, 0);
    cr_assert_eq(info.frames_late, 1);
    clear(&scene);
}

Test(engine_deadline, is_not_missed_by_frames_that_have_failed)
{
    struct scene scene = begin(COX_SESSION_PARAMS(.in_flight = 4,
                                                  .policy_options = COX_POLICY_OPTIONS(.deadline_ns = 1)));
    for (uint32_t i = 0; i < 4; i++)
        submit(&scene, i, 0);
    cr_assert(fake_await_running(rig_fake(scene.rig), 2));
    cox_session_cancel(scene.session);
    const struct cox_session_info info = end(&scene);
    cr_assert_eq(info.frames_done, 4);
    cr_assert_eq(info.frames_late, 0);
    clear(&scene);
}

/* ---- what a policy is told ---- */

static struct cox_sched_view views[8], offers[8];
static struct cox_frame_measurement told[8];
static uint32_t offer_count;

/* The second half of each frame is handed out. */
static cox_status split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)state;
    views[view->frame] = *view;
    out->band_count = 1;
    out->bands[0].rows = 50;
    out->pool_first_row = out->pool_rows = 50;
    return COX_OK;
}

static void next(void *state, const struct cox_sched_view *view, const struct cox_offer *offer, struct cox_grant *out)
{
    (void)state;
    offers[view->frame] = *view;
    offer_count++;
    out->rows = offer->rows;
}

static void observe_frame(void *state, const struct cox_frame_measurement *measurement)
{
    (void)state;
    told[measurement->frame] = *measurement;
}

Test(engine_deadline, and_what_is_left_of_it_are_told_to_the_policy)
{
    struct cox_policy policy = rig_policy;
    policy.split = split;
    policy.next = next;
    policy.observe_frame = observe_frame;
    struct scene scene = begin(COX_SESSION_PARAMS(.in_flight = 3, .custom_policy = &policy));
    for (uint32_t i = 0; i < 3; i++)
        submit(&scene, i, i * FRAME_NS);
    end(&scene);
    cr_assert_eq(offer_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct cox_frame_report *frame = reported(&scene, i);
        cr_assert_eq(views[i].deadline_ns, i * FRAME_NS);
        cr_assert_eq(views[i].waited_ns, frame->start_ns - frame->submit_ns);
        cr_assert_eq(offers[i].deadline_ns, i * FRAME_NS);
        cr_assert_geq(offers[i].waited_ns, views[i].waited_ns + FRAME_NS / 2, "half of it is done");
        cr_assert_eq(told[i].deadline_ns, i * FRAME_NS);
        cr_assert_eq(told[i].latency_ns, frame->delivered_ns - frame->submit_ns);
        cr_assert_geq(told[i].latency_ns, told[i].wall_ns);
    }
    clear(&scene);
}
