/* Deadlines of frames:
 *   Which deadline applies, when it starts, what counts as late, and what the policy and the application learn.
 *   Frames with COX_LATE_DROP: which are dropped, when, in which order, and what happens to frames that read
 *     their output.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "map_test.h"
#include "support/fake_shapes.h"

TestSuite(engine_late, .timeout = 300);

enum { ROWS = 100, FRAME_NS = 1000000, FRAMES = 12, NONE = 0 };
static const uint64_t ms = 1000000;

/* The clock stands still until fake_release, so all frames are submitted at the same time. A device holds two bands
 * at a time, so the first two frames have begun. */
static const struct fake_params one = {.device_count = 1, .devices = {{.ns_per_row = 10e3}}, .held = true};
static const struct fake_params pair = {
    .device_count = 2, .devices = {{.ns_per_row = 10e3}, {.ns_per_row = 10e3}}, .held = true};

static uint64_t begin_ns;
static uint32_t submitted;

static void begin(const struct fake_params *devices, const struct cox__session_spec *given)
{
    struct cox__session_spec params = *given;
    open_rig(devices, ROWS, 16, FRAMES);
    params.in_flight = params.in_flight ? params.in_flight : FRAMES;
    open_session(&params);
    begin_ns = fake_now(fake);
    submitted = 0;
}

static const struct cox__session_spec plain = {.no_warmup = true};

static void begin_one(void)
{
    begin(&one, &plain);
}

static void submit_of(cox_buffer *in, cox_buffer *out, uint64_t deadline_ns, enum cox_late late)
{
    cox_buffer *const buffers[] = {in, out};
    cr_assert_eq(cox__session_submit(session,
                                     &(const struct cox__frame_spec){.buffers = buffers,
                                                                     .buffer_count = 2,
                                                                     .params = &frames->params[submitted],
                                                                     .deadline_ns = deadline_ns,
                                                                     .late = late},
                                     rig_done, rig),
                 COX_OK);
    submitted++;
}

static void submit(uint64_t deadline_ns, enum cox_late late)
{
    submit_of(frames->in[submitted], frames->out[submitted], deadline_ns, late);
}

static void submit_many(uint32_t count, uint64_t deadline_ns, enum cox_late late)
{
    for (uint32_t i = 0; i < count; i++)
        submit(deadline_ns, late);
}

static void finish(void)
{
    fake_release(fake);
    cox_session_wait(session);
    cr_assert_eq(rig_done_count(rig), submitted);
    for (uint32_t i = 0; i < submitted; i++)
        cr_assert_eq(rig_done_frame(rig, i), i, "callbacks come in order");
}

/* The frame's callback and its report agree. */
static void check(uint32_t frame, cox_status status)
{
    cr_assert_eq(rig_done_status(rig, frame), status, "frame %u: %s", frame,
                 cox_status_text(rig_done_status(rig, frame)));
    for (uint32_t r = 0; r < rig_report_count(rig); r++)
        if (!reported(r)->warmup && !reported(r)->shadow && reported(r)->index == frame)
            cr_assert_eq(reported(r)->status, status);
    if (status == COX_OK)
        cr_assert_str_empty(rig_check(frames, frame));
}

/* Frames that were delivered after their deadlines, by their reports. */
static uint32_t late_frames(void)
{
    uint32_t late = 0;
    for (uint32_t r = 0; r < rig_report_count(rig); r++) {
        const struct cox_frame_report *frame = reported(r);
        late += !frame->warmup && !frame->shadow && frame->status == COX_OK && frame->deadline_ns &&
                frame->delivered_ns - frame->submit_ns > frame->deadline_ns;
    }
    return late;
}

static void check_counts(uint32_t late, uint32_t dropped)
{
    uint32_t ended_late = 0;
    for (uint32_t i = 0; i < submitted; i++)
        ended_late += rig_done_status(rig, i) == COX_E_LATE;
    cr_assert_eq(rig_info(session).frames_done, submitted);
    cr_assert_eq(late_frames(), late, "%u", late_frames());
    cr_assert_eq(ended_late, dropped, "%u", ended_late);
}

static uint32_t bands_begun(void)
{
    size_t count;
    uint32_t begun = 0;
    struct fake_record *record = fake_take_record(fake, &count);
    for (size_t i = 0; i < count; i++)
        begun += record[i].step == FAKE_STEP_SUBMIT;
    free(record);
    return begun;
}

/* ---- deadlines ---- */

Test(engine_late, a_deadline_is_counted_from_submission_to_delivery)
{
    const uint64_t deadline_ns = 5 * FRAME_NS / 2;
    begin(&one, &(const struct cox__session_spec){
                    .no_warmup = true,
                    .in_flight = 8,
                    .policy_options = &(const struct cox_policy_options){.deadline_ns = deadline_ns}});
    submit_many(8, 0, COX_LATE_DELIVER);
    finish();
    uint32_t late = 0;
    for (uint32_t i = 0; i < 8; i++) {
        const struct cox_frame_report *frame = reported(i);
        const uint64_t latency_ns = frame->delivered_ns - frame->submit_ns;
        cr_assert_eq(frame->deadline_ns, deadline_ns);
        cr_assert_geq(frame->delivered_ns, frame->total.end_ns);
        cr_assert_geq(latency_ns, (i + 1u) * FRAME_NS, "it waited behind %u frames", i);
        late += latency_ns > deadline_ns;
    }
    cr_assert_geq(late, 6);
    cr_assert_eq(rig_info(session).frames_done, 8, "late frames are delivered too");
    close_rig();
}

Test(engine_late, a_deadline_of_a_frame_comes_before_the_session_s)
{
    begin(&one,
          &(const struct cox__session_spec){.no_warmup = true,
                                            .in_flight = 4,
                                            .policy_options = &(const struct cox_policy_options){.deadline_ns = 1}});
    submit(0, COX_LATE_DELIVER);                /* the session's deadline */
    submit(UINT64_MAX, COX_LATE_DELIVER);       /* no deadline */
    submit(1000 * FRAME_NS, COX_LATE_DELIVER);  /* a longer deadline */
    submit(2 * FRAME_NS + 1, COX_LATE_DELIVER); /* as long as the session's, but three frames run before this one */
    finish();
    cr_assert_eq(reported(0)->deadline_ns, 1);
    cr_assert_eq(reported(1)->deadline_ns, 0);
    cr_assert_eq(reported(2)->deadline_ns, 1000 * FRAME_NS);
    cr_assert_eq(reported(3)->deadline_ns, 2 * FRAME_NS + 1);
    cr_assert_eq(late_frames(), 2);
    close_rig();
}

Test(engine_late, a_deadline_is_none_unless_one_is_given)
{
    begin(&one, &(const struct cox__session_spec){.no_warmup = true, .in_flight = 3});
    for (uint32_t i = 0; i < 3; i++)
        submit(i == 1 ? 1 : 0, COX_LATE_DELIVER);
    finish();
    cr_assert_eq(reported(0)->deadline_ns, 0);
    cr_assert_eq(late_frames(), 1);
    close_rig();
}

Test(engine_late, a_deadline_is_not_missed_by_frames_that_have_failed)
{
    begin(&one,
          &(const struct cox__session_spec){.no_warmup = true,
                                            .in_flight = 4,
                                            .policy_options = &(const struct cox_policy_options){.deadline_ns = 1}});
    submit_many(4, 0, COX_LATE_DELIVER);
    cr_assert(fake_await_running(fake, 2));
    cox_session_cancel(session);
    finish();
    check_counts(0, 0);
    close_rig();
}

/* ---- frames that are dropped ---- */

/* At the deadline of 2.5 frame times the device runs frame 2 and holds frame 3. */
Test(engine_late, a_frame_that_has_not_begun_at_its_deadline_is_not_begun)
{
    begin_one();
    submit_many(8, 5 * FRAME_NS / 2, COX_LATE_DROP);
    finish();
    for (uint32_t i = 0; i < 8; i++)
        check(i, i < 4 ? COX_OK : COX_E_LATE);
    check_counts(2, 4);
    cr_assert_eq(bands_begun(), 4);
    cr_assert_eq(fake_now(fake) - begin_ns, 4 * FRAME_NS);
    close_rig();
}

Test(engine_late, a_frame_is_delivered_late_unless_it_is_to_be_dropped)
{
    begin_one();
    for (uint32_t i = 0; i < 8; i++)
        submit(5 * FRAME_NS / 2, i % 2 ? COX_LATE_DROP : COX_LATE_DELIVER);
    finish();
    for (uint32_t i = 0; i < 8; i++)
        check(i, i > 3 && i % 2 ? COX_E_LATE : COX_OK);
    check_counts(4, 2);
    close_rig();
}

/* Two frames begin before the clock moves. */
Test(engine_late, all_may_be_dropped_but_those_that_have_begun)
{
    begin_one();
    for (uint32_t round = 0; round < 3; round++) {
        fake_hold(fake);
        submit_many(4, 1, COX_LATE_DROP);
        cr_assert(fake_await_running(fake, 2));
        finish();
        for (uint32_t i = 0; i < 4; i++)
            check(4 * round + i, i < 2 ? COX_OK : COX_E_LATE);
        check_counts(2 * (round + 1), 2 * (round + 1));
    }
    close_rig();
}

Test(engine_late, the_deadline_is_the_frame_s_or_the_session_s_or_none)
{
    begin(&one, &(const struct cox__session_spec){
                    .no_warmup = true, .policy_options = &(const struct cox_policy_options){.deadline_ns = FRAME_NS}});
    submit(0, COX_LATE_DROP);
    submit(0, COX_LATE_DROP);
    submit(UINT64_MAX, COX_LATE_DROP);     /* no deadline */
    submit(0, COX_LATE_DROP);              /* the session's deadline */
    submit(UINT64_MAX - 1, COX_LATE_DROP); /* longer than the range of the clock */
    finish();
    for (uint32_t i = 0; i < 5; i++)
        check(i, i == 3 ? COX_E_LATE : COX_OK);
    check_counts(1, 1);
    close_rig();

    begin_one(); /* a session without a deadline */
    submit_many(5, 0, COX_LATE_DROP);
    finish();
    for (uint32_t i = 0; i < 5; i++)
        check(i, COX_OK);
    check_counts(0, 0);
    close_rig();
}

Test(engine_late, other_values_are_refused)
{
    begin_one();
    cox_buffer *const buffers[] = {frames->in[0], frames->out[0]};
    cr_assert_eq(cox__session_submit(session,
                                     &(const struct cox__frame_spec){
                                         .buffers = buffers, .buffer_count = 2, .late = (enum cox_late)2},
                                     rig_done, rig),
                 COX_E_INVALID);
    cr_assert(rig_logged(rig, "late: 2"));
    finish();
    close_rig();
}

/* ---- frames under way ---- */

static struct cox_sched_view views[8], offers[8];
static struct cox_frame_measurement told[8];
static uint32_t offer_count;

/* One half of each frame is handed out when the other half is done. */
static cox_status split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)state;
    views[view->frame] = *view;
    out->band_count = 1;
    out->bands[0].rows = ROWS / 2;
    out->pool_first_row = out->pool_rows = ROWS / 2;
    return COX_OK;
}

static void next(void *state, const struct cox_sched_view *view, const struct cox_chunk_request *offer,
                 struct cox_chunk *out)
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

Test(engine_late, a_deadline_and_what_is_left_of_it_are_told_to_the_policy)
{
    struct cox_policy policy = rig_policy;
    policy.split = split;
    policy.assign = next;
    policy.observe_frame = observe_frame;
    begin(&one, &(const struct cox__session_spec){.no_warmup = true, .in_flight = 3, .custom_policy = &policy});
    for (uint32_t i = 0; i < 3; i++)
        submit(i * FRAME_NS, COX_LATE_DELIVER);
    finish();
    cr_assert_eq(offer_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct cox_frame_report *frame = reported(i);
        cr_assert_eq(views[i].deadline_ns, i * FRAME_NS);
        cr_assert_eq(views[i].waited_ns, frame->total.start_ns - frame->submit_ns);
        cr_assert_eq(offers[i].deadline_ns, i * FRAME_NS);
        cr_assert_geq(offers[i].waited_ns, views[i].waited_ns + FRAME_NS / 2, "half of it is done");
        cr_assert_eq(told[i].deadline_ns, i * FRAME_NS);
        cr_assert_eq(told[i].latency_ns, frame->delivered_ns - frame->submit_ns);
        cr_assert_geq(told[i].latency_ns, told[i].wall_ns);
    }
    close_rig();
}

Test(engine_late, what_has_not_begun_of_a_frame_under_way_is_not_done_and_the_devices_end_first)
{
    struct cox_policy policy = rig_policy;
    policy.split = split;
    policy.assign = next;
    begin(&one, &(const struct cox__session_spec){.no_warmup = true, .custom_policy = &policy});
    submit(FRAME_NS / 4, COX_LATE_DROP);
    finish();
    check(0, COX_E_LATE);
    check_counts(0, 1);
    cr_assert_eq(bands_begun(), 1);
    cr_assert_eq(reported(0)->delivered_ns - begin_ns, FRAME_NS / 2);

    fake_hold(fake);
    submit(3 * FRAME_NS / 4, COX_LATE_DROP); /* it has begun, so it is delivered late */
    finish();
    check(1, COX_OK);
    check_counts(1, 1);
    close_rig();
}

Test(engine_late, a_pass_that_has_not_begun_is_not_begun)
{
    open_rig(&pair, ROWS, 16, 1);
    struct shape_frames *shapes = shape_frames_new(rig, SHAPE_EXCHANGE, 60, 16, 3);
    cr_assert_eq(shape_session(shapes,
                               &(const struct cox__session_spec){
                                   .no_warmup = true, .in_flight = 3, .report = rig_report, .report_user = rig},
                               &session),
                 COX_OK, "%s", rig_log(rig));
    for (uint32_t i = 0; i < 3; i++) {
        struct cox__frame_spec frame = shape_frame(shapes, i);
        shape_prepare(shapes, i);
        frame.deadline_ns = i == 1 ? 1 : 0;
        frame.late = COX_LATE_DROP;
        cr_assert_eq(cox__session_submit(session, &frame, rig_done, rig), COX_OK);
    }
    fake_release(fake);
    cox_session_wait(session);
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(rig_done_frame(rig, i), i);
        cr_assert_eq(rig_done_status(rig, i), i == 1 ? COX_E_LATE : COX_OK);
        cr_assert_eq(rig_report_at(rig, i)->frame.pass_count, i == 1 ? 1 : 2);
        if (i != 1)
            cr_assert_str_empty(shape_check(shapes, i));
    }
    cox_session_destroy(&session);
    shape_frames_free(&shapes);
    close_rig();
}

/* ---- devices that fail ---- */

static const uint32_t halves[][2] = {{0, ROWS / 2}, {1, ROWS / 2}};

Test(engine_late, rows_are_not_done_again_after_the_deadline)
{
    for (uint32_t late = 0; late < 2; late++) {
        rig_split_count = 0;
        rig_add_split(2, halves);
        begin(&pair, &(const struct cox__session_spec){.no_warmup = true, .custom_policy = &rig_policy});
        FAULT(.kind = FAKE_EVENT_FAILS, .device = 1);
        submit(late ? FRAME_NS / 4 : 10 * FRAME_NS, COX_LATE_DROP);
        finish();
        check(0, late ? COX_E_LATE : COX_OK);
        close_rig();
    }
}

/* The only device dies and does not come back. Without deadlines the frames would end a second later. */
Test(engine_late, frames_that_wait_for_a_device_end_at_their_deadlines)
{
    begin(&one, &(const struct cox__session_spec){.no_warmup = true, .device_timeout_ns = 1000 * ms});
    FAULT(.kind = FAKE_DEVICE_DIES);
    submit(50 * ms, COX_LATE_DROP);
    cr_assert(fake_await_running(fake, 1));
    finish();
    fake_hold(fake);
    const uint64_t again_ns = fake_now(fake);
    submit(80 * ms, COX_LATE_DROP); /* is not even split */
    submit(60 * ms, COX_LATE_DROP); /* is dropped after the previous frame */
    finish();
    for (uint32_t i = 0; i < 3; i++)
        check(i, COX_E_LATE);
    cr_assert_eq(reported(0)->delivered_ns - begin_ns, 50 * ms);
    cr_assert_eq(reported(1)->delivered_ns - again_ns, 80 * ms);
    cr_assert_eq(reported(2)->delivered_ns - again_ns, 80 * ms);
    close_rig();
}

/* ---- frames that wait for something else ---- */

Test(engine_late, what_reads_the_rows_of_a_dropped_frame_ends_likewise)
{
    begin_one();
    cox_buffer **in = frames->in, **out = frames->out;
    submit(NONE, COX_LATE_DELIVER);
    submit(NONE, COX_LATE_DELIVER);
    submit_of(in[2], out[2], FRAME_NS / 2, COX_LATE_DROP);
    submit_of(out[2], out[3], NONE, COX_LATE_DELIVER); /* reads the previous frame's output */
    submit_of(out[3], out[4], NONE, COX_LATE_DELIVER); /* reads the output of the frame before */
    submit(NONE, COX_LATE_DELIVER);
    submit_of(in[6], out[2], NONE, COX_LATE_DELIVER);
    submit_of(out[2], out[7], NONE, COX_LATE_DELIVER); /* reads what a later frame has written */
    finish();
    for (uint32_t i = 0; i < 8; i++)
        cr_assert_eq(rig_done_status(rig, i), i > 1 && i < 5 ? COX_E_LATE : COX_OK, "frame %u", i);
    check_counts(0, 3);
    close_rig();
}

/* The frame waits for its turn: an earlier frame of another session has begun to write what it reads. */
Test(engine_late, a_frame_that_expires_waits_for_its_turn)
{
    begin_one();
    cox_session *other = NULL;
    cr_assert_eq(rig_map_session(frames, &(const struct cox__session_spec){.no_warmup = true}, &other), COX_OK);
    cox_buffer *const buffers[] = {frames->in[0], frames->in[1]};
    cr_assert_eq(cox__session_submit(other,
                                     &(const struct cox__frame_spec){
                                         .buffers = buffers, .buffer_count = 2, .params = &frames->params[0]},
                                     NULL, NULL),
                 COX_OK);
    cr_assert(fake_await_running(fake, 1));
    submit_of(frames->in[1], frames->out[1], 1, COX_LATE_DROP);
    finish();
    cr_assert_eq(cox_session_wait(other), COX_OK);
    check(0, COX_E_LATE);
    cr_assert_eq(reported(0)->delivered_ns - begin_ns, FRAME_NS);
    cox_session_destroy(&other);
    close_rig();
}

Test(engine_late, a_warm_up_that_outlasts_a_frame_goes_on_with_the_next_one)
{
    begin(&pair, &(const struct cox__session_spec){.no_warmup = false});
    struct cox_session_info info;
    for (uint32_t i = 0; i < 3; i++) {
        submit(1, COX_LATE_DROP);
        finish();
        check(i, COX_E_LATE);
    }
    submit(NONE, COX_LATE_DROP);
    finish();
    check(3, COX_OK);
    check_counts(0, 3);
    cox_session_info(session, &info);
    for (uint32_t d = 0; d < 2; d++)
        cr_assert_gt(info.devices[d].single_device_ns, 0);
    close_rig();
}

/* ---- with cancelling, and with cox_session_run ---- */

static cox_session *cancels; /* cancelled in the callback of frame 0 */

static void on_done(void *user, uint64_t frame, cox_status status)
{
    rig_done(user, frame, status);
    if (frame == 0)
        cr_assert_eq(cox_session_cancel(cancels), COX_OK);
}

/* Frame 0 ends after one frame time. By then frame 1 has begun, and the others wait. */
Test(engine_late, what_comes_first_counts_the_deadline_or_cox_session_cancel)
{
    for (uint32_t late = 0; late < 2; late++) {
        begin_one();
        cancels = session;
        for (; submitted < 6; submitted++) {
            cox_buffer *const buffers[] = {frames->in[submitted], frames->out[submitted]};
            cr_assert_eq(cox__session_submit(session,
                                             &(const struct cox__frame_spec){.buffers = buffers,
                                                                             .buffer_count = 2,
                                                                             .params = &frames->params[submitted],
                                                                             .deadline_ns = late ? FRAME_NS / 2
                                                                                                 : 3 * FRAME_NS / 2,
                                                                             .late = COX_LATE_DROP},
                                             on_done, rig),
                         COX_OK);
        }
        finish();
        check(0, COX_OK);
        check(1, COX_E_CANCELLED);
        for (uint32_t i = 2; i < 6; i++)
            check(i, late ? COX_E_LATE : COX_E_CANCELLED);
        check_counts(late, late ? 4 : 0);
        close_rig();
    }
}

Test(engine_late, cox_session_run_tells_it_too)
{
    static const struct fake_params runs = {.device_count = 2, .devices = {{.ns_per_row = 10e3}, {.ns_per_row = 10e3}}};
    begin(&runs, &(const struct cox__session_spec){.no_warmup = false}); /* the frame waits for the warm-up */
    cox_buffer *const buffers[] = {frames->in[0], frames->out[0]};
    cr_assert_eq(cox__session_run(session, &(const struct cox__frame_spec){.buffers = buffers,
                                                                           .buffer_count = 2,
                                                                           .params = &frames->params[0],
                                                                           .deadline_ns = 1,
                                                                           .late = COX_LATE_DROP}),
                 COX_E_LATE);
    close_rig();
}
