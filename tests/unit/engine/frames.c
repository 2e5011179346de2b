/* The way of a frame through the engine: order, completeness, contents, on scripted devices with a virtual clock.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"
#include "support/rig_play.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

TestSuite(engine, .timeout = 300);

/* A fast device with a high fixed cost, a slow one with a low one. */
static const struct fake_params pair = {
    .device_count = 2,
    .devices = {{.name = "slow", .fixed_ns = 60e3, .ns_per_row = 18e3},
                {.name = "fast", .type = COX_DEVICE_GPU, .fixed_ns = 250e3, .ns_per_row = 9e3}},
};

static const struct fake_params trio = {
    .device_count = 3,
    .devices = {{.name = "a", .fixed_ns = 10e3, .ns_per_row = 5e3},
                {.name = "b", .type = COX_DEVICE_GPU, .fixed_ns = 100e3, .ns_per_row = 2e3},
                {.name = "c",
                 .type = COX_DEVICE_GPU,
                 .mode = COX_MODE_STAGED,
                 .fixed_ns = 50e3,
                 .ns_per_row = 1e3,
                 .copy_in_ns_per_row = 1e3,
                 .copy_out_ns_per_row = 1e3}},
};

static void check_callbacks(struct rig *rig, uint32_t frames, cox_status status)
{
    cr_assert_eq(rig_done_count(rig), frames);
    for (uint32_t i = 0; i < frames; i++) {
        cr_assert_eq(rig_done_frame(rig, i), i, "callback %u is for frame %u", i, (unsigned)rig_done_frame(rig, i));
        cr_assert_eq(rig_done_status(rig, i), status, "frame %u: %s", i, cox_status_name(rig_done_status(rig, i)));
    }
}

static cox_session *map_session(struct rig_frames *frames, const struct cox_session_params *extra)
{
    cox_session *session = NULL;
    cr_assert_eq(rig_map_session(frames, extra, &session), COX_OK, "%s", rig_log(frames->rig));
    return session;
}

static void submit(struct rig_frames *frames, cox_session *session, uint32_t index)
{
    cr_assert_eq(rig_submit(frames, session, index, false), COX_OK, "%s", rig_log(frames->rig));
}

Test(engine, delivers_every_frame_once_in_order_with_every_row_written)
{
    struct rig *rig = rig_new(&pair);
    struct rig_frames *frames = rig_frames_new(rig, 270, 33, 64, 4);
    cox_session *session = map_session(frames, COX_SESSION_PARAMS(.in_flight = 3));
    for (uint32_t i = 0; i < 200; i++) {
        submit(frames, session, i);
        if (i % 4 == 3) {
            cox_session_wait(session);
            for (uint32_t k = 0; k < 4; k++)
                cr_assert_str_empty(rig_check(frames, i - k));
        }
    }
    cox_session_destroy(&session);
    cr_assert_null(session);
    check_callbacks(rig, 200, COX_OK);
    rig_frames_free(&frames);
    END(rig);
}

Test(engine, delivers_in_submission_order_when_frames_finish_out_of_order)
{
    struct rig *rig = rig_new(&(struct fake_params){
        .device_count = 2, .devices = {{.ns_per_row = 1e6}, {.ns_per_row = 1e3}}, .held = true});
    struct rig_frames *frames = rig_frames_new(rig, 16, 8, 16, 5);
    for (uint32_t i = 0; i < 4; i++)
        rig_add_split(1, (const uint32_t[][2]){{i % 2, 16}});
    cox_session *session = map_session(frames, COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 4,
                                                                  .no_warmup = true));
    for (uint32_t i = 0; i < 4; i++)
        submit(frames, session, i);
    cr_assert(fake_await_running(rig_fake(rig), 4));
    cr_assert_eq(rig_done_count(rig), 0);
    fake_release(rig_fake(rig));
    cox_session_wait(session);
    check_callbacks(rig, 4, COX_OK);

    /* The frames of device 1 really did end before those of device 0. */
    size_t count;
    struct fake_record *record = fake_take_record(rig_fake(rig), &count);
    uint32_t ends = 0, order[4] = {0};
    for (size_t i = 0; i < count; i++)
        if (record[i].step == FAKE_STEP_END && ends < 4)
            order[ends++] = record[i].device;
    cr_assert_eq(ends, 4);
    cr_assert_eq(order[0] * 8 + order[1] * 4 + order[2] * 2 + order[3], 12);
    free(record);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_str_empty(rig_check(frames, i));
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}

Test(engine, gives_the_same_rows_for_a_hundred_random_splits)
{
    static const struct fake_params devices[] = {
        {.device_count = 1, .devices = {{.ns_per_row = 1e3}}},
        {.device_count = 2, .devices = {{.ns_per_row = 1e3}, {.mode = COX_MODE_STAGED, .ns_per_row = 3e3}}},
        {.device_count = 4,
         .devices = {{.ns_per_row = 1e3, .mode = COX_MODE_SHARED, .align_bytes = 128},
                     {.ns_per_row = 2e3, .mode = COX_MODE_SHARED, .align_bytes = 128},
                     {.ns_per_row = 3e3, .mode = COX_MODE_STAGED},
                     {.ns_per_row = 1e3, .inside_submit = true}}},
    };
    uint64_t seed = 7;
    for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++) {
        struct rig *rig = rig_new(&devices[d]);
        struct rig_frames *frames = rig_frames_new(rig, 241, 50, 64, 8);
        const uint32_t granule = d == 2 ? 2 : 1; /* 128 / 64 */
        rig_split_count = 0;
        for (uint32_t i = 0; i < 100; i++)
            rig_add_random_split(&seed, 241, granule, devices[d].device_count);
        cox_session *session = map_session(frames, COX_SESSION_PARAMS(.custom_policy = &rig_policy,
                                                                      .in_flight = 1 + (uint32_t)d * 3));
        struct cox_session_info info;
        cox_session_info(session, &info, sizeof info);
        cr_assert_eq(info.granule, granule);
        for (uint32_t i = 0; i < 100; i++) {
            submit(frames, session, i);
            if (i % 4 == 3) {
                cox_session_wait(session);
                for (uint32_t k = 0; k < 4; k++)
                    cr_assert_str_empty(rig_check(frames, i - k));
            }
        }
        cr_assert_not(rig_logged(rig, "refused"), "%s", rig_log(rig));
        cox_session_destroy(&session);
        check_callbacks(rig, 100, COX_OK);
        rig_frames_free(&frames);
        END(rig);
    }
}

Test(engine, uses_every_device_that_helps)
{
    struct rig *rig = rig_new(&trio);
    struct rig_frames *frames = rig_frames_new(rig, 1080, 16, 64, 4);
    cox_session *session = map_session(frames,
                                       COX_SESSION_PARAMS(.policy = "ewma", .report = rig_report, .report_user = rig));
    for (uint32_t i = 0; i < 60; i++)
        submit(frames, session, i);
    cox_session_wait(session);
    const struct rig_report *last = rig_report_at(rig, rig_report_count(rig) - 1);
    uint32_t seen = 0;
    for (uint32_t b = 0; b < last->frame.band_count; b++)
        seen |= 1u << last->bands[b].device;
    cr_assert_eq(seen, 7);
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}

Test(engine, converges_to_the_waterfilling_optimum_of_the_cost_model)
{
    struct rig *rig = rig_new(&pair);
    struct rig_frames *frames = rig_frames_new(rig, 1080, 16, 64, 4);
    cox_session *session = map_session(frames,
                                       COX_SESSION_PARAMS(.in_flight = 1, .report = rig_report, .report_user = rig));
    for (uint32_t i = 0; i < 40; i++)
        submit(frames, session, i);
    cox_session_wait(session);
    uint32_t rows[2];
    const struct cox_cost costs[2] = {{true, 60e3, 18e3}, {true, 250e3, 9e3}};
    const double best = cox_waterfill(1080, 1, 0, costs, 2, rows);
    const struct rig_report *last = rig_report_at(rig, rig_report_count(rig) - 1);
    const double took = (double)(last->frame.end_ns - last->frame.start_ns);
    cr_assert_leq(took, best * 1.02, "%.0f ns, best %.0f ns", took, best);
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}

/* One step of the record is later than another. */
static size_t last_step(const struct fake_record *record, size_t count, enum fake_step step, uint32_t device)
{
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < count; i++)
        if (record[i].step == step && record[i].device == device)
            last = i;
    return last;
}

Test(engine, flushes_every_queue_before_it_waits_or_asks)
{
    struct rig *rig = rig_new(&trio);
    struct rig_frames *frames = rig_frames_new(rig, 90, 16, 64, 4);
    rig_add_split(3, (const uint32_t[][2]){{0, 30}, {1, 30}, {2, 30}});
    cox_session *session = map_session(frames, COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 3));
    for (uint32_t i = 0; i < 50; i++)
        submit(frames, session, i);
    cox_session_wait(session);
    size_t count;
    struct fake_record *record = fake_take_record(rig_fake(rig), &count);
    uint32_t unflushed = 0, submits = 0, waits = 0;
    for (size_t i = 0; i < count; i++)
        switch (record[i].step) {
        case FAKE_STEP_SUBMIT:
            unflushed |= 1u << record[i].device;
            submits++;
            break;
        case FAKE_STEP_FLUSH:
            unflushed &= ~(1u << record[i].device);
            break;
        case FAKE_STEP_POLL:
        case FAKE_STEP_WAIT:
            cr_assert_eq(unflushed, 0, "step %zu", i);
            waits++;
            break;
        default:
            break;
        }
    cr_assert_geq(submits, 150);
    cr_assert_geq(waits, 150);
    free(record);
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}

Test(engine, submits_and_flushes_first_where_the_enqueue_returns_at_once)
{
    struct rig *rig = rig_new(&(struct fake_params){
        .device_count = 3,
        .devices = {{.name = "inside", .fixed_ns = 50e3, .ns_per_row = 5e3, .inside_submit = true},
                    {.name = "a", .type = COX_DEVICE_GPU, .fixed_ns = 50e3, .ns_per_row = 5e3},
                    {.name = "b", .type = COX_DEVICE_GPU, .fixed_ns = 50e3, .ns_per_row = 5e3}}});
    struct rig_frames *frames = rig_frames_new(rig, 90, 16, 64, 2);
    rig_add_split(3, (const uint32_t[][2]){{0, 30}, {1, 30}, {2, 30}});
    cox_session *session = map_session(frames, COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 1,
                                                                  .report = rig_report, .report_user = rig));
    submit(frames, session, 0);
    cox_session_wait(session);
    for (uint32_t i = 1; i < 10; i++) {
        fake_clear_record(rig_fake(rig));
        submit(frames, session, i);
        cox_session_wait(session);
        size_t count;
        struct fake_record *record = fake_take_record(rig_fake(rig), &count);
        const size_t inside = last_step(record, count, FAKE_STEP_SUBMIT, 0);
        for (uint32_t d = 1; d < 3; d++) {
            cr_assert_lt(last_step(record, count, FAKE_STEP_SUBMIT, d), inside);
            size_t flush = 0;
            while (record[flush].step != FAKE_STEP_FLUSH || record[flush].device != d)
                flush++;
            cr_assert_lt(flush, inside, "device %u was not flushed before the blocking submit", d);
        }
        free(record);
        /* So all three work at once: 200 us each, and not one after the other. */
        const struct rig_report *last = rig_report_at(rig, rig_report_count(rig) - 1);
        cr_assert_lt(last->frame.end_ns - last->frame.start_ns, 210000u);
        cr_assert_str_empty(rig_check(frames, i));
    }
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}

/* And no more than that one: the others can still be cancelled. */
Test(engine, keeps_the_next_band_queued_on_a_busy_device)
{
    struct rig *rig =
        rig_new(&(struct fake_params){.device_count = 1, .devices = {{.ns_per_row = 10e3}}, .held = true});
    struct rig_frames *frames = rig_frames_new(rig, 100, 16, 64, 9);
    cox_session *session = map_session(frames, COX_SESSION_PARAMS(.in_flight = 8, .no_warmup = true,
                                                                  .report = rig_report, .report_user = rig));
    for (uint32_t i = 0; i < 8; i++)
        submit(frames, session, i);
    cr_assert(fake_await_running(rig_fake(rig), 2));
    fake_release(rig_fake(rig));
    cox_session_wait(session);
    for (uint32_t i = 0; i < 8; i++) {
        const struct rig_report *report = rig_report_at(rig, i);
        cr_assert_eq(report->bands[0].wall_ns, 1000000u, "frame %u: %llu ns", i,
                     (unsigned long long)report->bands[0].wall_ns);
        cr_assert_eq(report->bands[0].queue_ns, i ? 1000000u : 0);
    }
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}

/* ---- submission ---- */

Test(engine, nowait_gives_busy_while_all_slots_are_taken)
{
    struct rig *rig = rig_new(&pair);
    struct rig_frames *frames = rig_frames_new(rig, 32, 8, 16, 4);
    cox_session *session = map_session(frames, COX_SESSION_PARAMS(.in_flight = 2, .no_warmup = true));
    fake_hold(rig_fake(rig));
    cr_assert_eq(rig_submit(frames, session, 0, true), COX_OK);
    cr_assert_eq(rig_submit(frames, session, 1, true), COX_OK);
    cr_assert_eq(rig_submit(frames, session, 2, true), COX_E_BUSY);
    cr_assert(fake_await_running(rig_fake(rig), 2));
    cr_assert_eq(rig_submit(frames, session, 2, true), COX_E_BUSY);
    fake_release(rig_fake(rig));
    cox_session_wait(session);
    cr_assert_eq(rig_submit(frames, session, 2, true), COX_OK);
    cox_session_wait(session);
    check_callbacks(rig, 3, COX_OK); /* a refused frame has no callback and no index */
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_str_empty(rig_check(frames, i));
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}

struct late_submit {
    struct rig_frames *frames;
    cox_session *session;
    cox_status status;
    _Atomic bool returned;
};

static void *submit_late(void *data)
{
    struct late_submit *late = data;
    late->status = rig_submit(late->frames, late->session, 2, false);
    atomic_store(&late->returned, true);
    return NULL;
}

Test(engine, a_blocked_submit_goes_on_when_a_frame_is_done)
{
    struct rig *rig = rig_new(&pair);
    struct rig_frames *frames = rig_frames_new(rig, 32, 8, 16, 4);
    cox_session *session = map_session(frames, COX_SESSION_PARAMS(.in_flight = 2, .no_warmup = true));
    fake_hold(rig_fake(rig));
    submit(frames, session, 0);
    submit(frames, session, 1);
    cr_assert(fake_await_running(rig_fake(rig), 2));
    struct late_submit late = {.frames = frames, .session = session};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, submit_late, &late), 0);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    cr_assert_not(atomic_load(&late.returned));
    fake_release(rig_fake(rig));
    pthread_join(thread, NULL);
    cr_assert_eq(late.status, COX_OK);
    cox_session_wait(session);
    check_callbacks(rig, 3, COX_OK);
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}

struct resubmit {
    struct rig_frames *frames;
    cox_session *session;
    uint32_t submitted;
    uint32_t done;
    uint32_t busy;
    uint32_t wrong; /* asserting is for the test's own thread */
    bool greedy;
};

static void submit_again(void *user, uint64_t frame, cox_status status)
{
    struct resubmit *again = user;
    again->wrong += frame != again->done || status != COX_OK;
    again->done++;
    while (again->submitted < 100) {
        const uint32_t i = again->submitted % again->frames->count;
        cox_buffer *const buffers[] = {again->frames->in[i], again->frames->out[i]};
        const struct cox_frame next = {.buffers = buffers, .buffer_count = 2, .params = &again->frames->params[i]};
        const cox_status result = cox_session_submit(again->session, &next, submit_again, again);
        if (result == COX_E_BUSY) {
            again->busy++;
            break;
        }
        again->wrong += result != COX_OK;
        again->submitted++;
        if (!again->greedy)
            break;
    }
}

Test(engine, the_callback_may_submit_and_never_blocks)
{
    for (int greedy = 0; greedy < 2; greedy++) {
        struct rig *rig = rig_new(&pair);
        struct rig_frames *frames = rig_frames_new(rig, 32, 8, 16, 4);
        cox_session *session = map_session(frames, COX_SESSION_PARAMS(.in_flight = 2));
        struct resubmit again = {.frames = frames, .session = session, .submitted = 1, .greedy = greedy};
        cox_buffer *const buffers[] = {frames->in[0], frames->out[0]};
        const struct cox_frame frame = {.buffers = buffers, .buffer_count = 2, .params = &frames->params[0]};
        cr_assert_eq(cox_session_submit(session, &frame, submit_again, &again), COX_OK);
        cox_session_wait(session); /* under way includes what the callback submitted */
        cr_assert_eq(again.done, 100);
        cr_assert_eq(again.wrong, 0);
        cr_assert_eq(again.submitted, 100);
        cr_assert(greedy ? again.busy > 0 : again.busy == 0);
        cox_session_destroy(&session);
        rig_frames_free(&frames);
        END(rig);
    }
}

Test(engine, a_frame_without_a_callback_is_done_all_the_same)
{
    struct rig *rig = rig_new(&pair);
    struct rig_frames *frames = rig_frames_new(rig, 32, 8, 16, 1);
    cox_session *session = map_session(frames, COX_SESSION_PARAMS(.in_flight = 1));
    cox_buffer *const buffers[] = {frames->in[0], frames->out[0]};
    const struct cox_frame frame = {.buffers = buffers, .buffer_count = 2, .params = &frames->params[0]};
    cr_assert_eq(cox_session_submit(session, &frame, NULL, NULL), COX_OK);
    cox_session_wait(session);
    cr_assert_str_empty(rig_check(frames, 0));
    struct cox_session_info info;
    cox_session_info(session, &info, sizeof info);
    cr_assert_eq(info.frames_done, 1);
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}

Test(engine, run_submits_waits_and_returns_the_frames_status)
{
    struct rig *rig = rig_new(&pair);
    struct rig_frames *frames = rig_frames_new(rig, 32, 8, 16, 1);
    cox_session *session = map_session(frames, COX_SESSION_PARAMS(.no_warmup = true));
    cox_buffer *const buffers[] = {frames->in[0], frames->out[0]};
    const struct cox_frame frame = {.buffers = buffers, .buffer_count = 2, .params = &frames->params[0]};
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(cox_session_run(session, &frame), COX_OK);
        cr_assert_str_empty(rig_check(frames, 0));
    }
    for (uint32_t d = 0; d < 2; d++)
        fake_script(rig_fake(rig), &(struct fake_fault){.kind = FAKE_DEVICE_DIES, .device = d, .count = UINT32_MAX});
    cr_assert_eq(cox_session_run(session, &frame), COX_E_DEVICE_LOST);
    cr_assert_eq(cox_session_run(session, &frame), COX_E_NO_DEVICE);
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}

Test(engine, the_parameters_belong_to_their_frame)
{
    struct rig *rig = rig_new(&pair);
    struct rig_frames *frames = rig_frames_new(rig, 64, 8, 16, 17);
    cox_session *session = map_session(frames, COX_SESSION_PARAMS(.in_flight = 16));
    for (uint32_t round = 0; round < 4; round++) {
        struct rig_params own[17];
        for (uint32_t i = 0; i < 17; i++) {
            own[i] = frames->params[i];
            submit(frames, session, i);
            frames->params[i] = (struct rig_params){.add = 99, .columns = 1}; /* submit has copied it */
        }
        cox_session_wait(session);
        memcpy(frames->params, own, sizeof own);
        for (uint32_t i = 0; i < 17; i++)
            cr_assert_str_empty(rig_check(frames, i));
    }
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}

/* ---- several sessions and runtimes ---- */

Test(engine, several_sessions_share_one_runtime)
{
    struct rig *rig = rig_new(&trio);
    struct rig_frames *frames[3];
    cox_session *sessions[3];
    for (uint32_t s = 0; s < 3; s++) {
        frames[s] = rig_frames_new(rig, 100 + 31 * s, 16, 64, 4);
        sessions[s] = map_session(frames[s], COX_SESSION_PARAMS(.in_flight = 1 + s));
    }
    for (uint32_t i = 0; i < 60; i++) {
        for (uint32_t s = 0; s < 3; s++)
            submit(frames[s], sessions[s], i);
        if (i % 4 == 3)
            for (uint32_t s = 0; s < 3; s++) {
                cox_session_wait(sessions[s]);
                for (uint32_t k = 0; k < 4; k++)
                    cr_assert_str_empty(rig_check(frames[s], i - k));
            }
    }
    cr_assert_eq(rig_done_count(rig), 180);
    /* In any order of destruction. */
    cox_session_destroy(&sessions[1]);
    submit(frames[0], sessions[0], 0);
    submit(frames[2], sessions[2], 0);
    cox_session_destroy(&sessions[0]);
    cox_session_destroy(&sessions[2]);
    cr_assert_eq(rig_done_count(rig), 182);
    for (uint32_t s = 0; s < 3; s++)
        rig_frames_free(&frames[s]);
    END(rig);
}

Test(engine, two_runtimes_live_side_by_side)
{
    struct rig *rigs[2] = {rig_new(&pair), rig_new(&trio)};
    struct rig_frames *frames[2];
    cox_session *sessions[2];
    for (uint32_t s = 0; s < 2; s++) {
        frames[s] = rig_frames_new(rigs[s], 100, 16, 64, 4);
        sessions[s] = map_session(frames[s], COX_SESSION_PARAMS(.in_flight = 2));
    }
    for (uint32_t i = 0; i < 40; i++)
        for (uint32_t s = 0; s < 2; s++)
            submit(frames[s], sessions[s], i);
    cox_session_destroy(&sessions[0]);
    check_callbacks(rigs[0], 40, COX_OK);
    rig_frames_free(&frames[0]);
    END(rigs[0]);
    submit(frames[1], sessions[1], 40); /* the other one goes on */
    cox_session_destroy(&sessions[1]);
    check_callbacks(rigs[1], 41, COX_OK);
    rig_frames_free(&frames[1]);
    END(rigs[1]);
}

Test(engine, refuses_a_buffer_of_another_runtime)
{
    struct rig *rigs[2] = {rig_new(&pair), rig_new(&pair)};
    struct rig_frames *frames[2] = {rig_frames_new(rigs[0], 16, 8, 16, 1), rig_frames_new(rigs[1], 16, 8, 16, 1)};
    cox_session *session = map_session(frames[0], COX_SESSION_PARAMS(.in_flight = 1));
    cox_buffer *const buffers[] = {frames[0]->in[0], frames[1]->out[0]};
    const struct cox_frame frame = {.buffers = buffers, .buffer_count = 2, .params = &frames[0]->params[0]};
    cr_assert_eq(cox_session_submit(session, &frame, rig_done, rigs[0]), COX_E_INVALID);
    cr_assert(rig_logged(rigs[0], "another runtime"));
    cox_session_destroy(&session);
    for (int i = 0; i < 2; i++) {
        rig_frames_free(&frames[i]);
        END(rigs[i]);
    }
}

Test(engine, destroy_waits_for_the_frames_under_way)
{
    struct rig *rig = rig_new(&pair);
    struct rig_frames *frames = rig_frames_new(rig, 64, 8, 16, 17);
    for (uint32_t in_flight = 1; in_flight <= 16; in_flight++) {
        const uint32_t before = rig_done_count(rig);
        cox_session *session = map_session(frames, COX_SESSION_PARAMS(.in_flight = in_flight));
        for (uint32_t i = 0; i < in_flight; i++)
            submit(frames, session, i);
        cox_session_destroy(&session);
        cr_assert_eq(rig_done_count(rig), before + in_flight);
        for (uint32_t i = 0; i < in_flight; i++)
            cr_assert_str_empty(rig_check(frames, i));
    }
    rig_frames_free(&frames);
    cr_assert(fake_await_gone(rig_fake(rig)));
    END(rig);
}

Test(engine, a_session_without_frames_comes_and_goes)
{
    struct rig *rig = rig_new(&pair);
    struct rig_frames *frames = rig_frames_new(rig, 64, 8, 16, 1);
    for (int i = 0; i < 20; i++) {
        cox_session *session = map_session(frames, COX_SESSION_PARAMS(.in_flight = 2));
        cox_session_wait(session);
        cox_session_destroy(&session);
    }
    cox_session *none = NULL;
    cox_session_destroy(&none);
    cox_session_destroy(NULL);
    rig_frames_free(&frames);
    END(rig);
}

Test(engine, a_late_post_is_taken_before_its_session_goes)
{
    struct rig *rig = rig_new(&pair);
    struct rig_frames *frames = rig_frames_new(rig, 64, 8, 16, 1);
    cox_session *session = map_session(frames, COX_SESSION_PARAMS(.in_flight = 2));
    cox_runtime *runtime = rig_runtime(rig);
    /* A driver posts a band once more, the session is destroyed, and before the scheduler thread gets to run another
     * thread sees to the requests. */
    struct cox__request detach = {.kind = COX__REQUEST_DETACH, .session = session};
    cox__mpsc_push(&runtime->jobs, &session->devices[0].queue->slots[0].job.node);
    cox__mpsc_push(&runtime->requests, &detach.node);
    cox__engine_help(runtime);
    cr_assert(session->detached);
    cr_assert_null(atomic_load(&runtime->jobs.head)); /* its owner may free the session now */
    session->detached = false;
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}

Test(engine, a_session_may_use_some_of_the_devices_in_any_order)
{
    struct rig *rig = rig_new(&trio);
    struct rig_frames *frames = rig_frames_new(rig, 90, 16, 64, 2);
    const uint32_t devices[] = {2, 0};
    rig_add_split(2, (const uint32_t[][2]){{0, 60}, {1, 30}});
    cox_session *session = map_session(frames, COX_SESSION_PARAMS(.custom_policy = &rig_policy, .device_count = 2,
                                                                  .devices = devices, .no_warmup = true));
    struct cox_session_info info;
    cox_session_info(session, &info, sizeof info);
    cr_assert_eq(info.device_count, 2);
    cr_assert_eq(info.devices[0].device, 2);
    cr_assert_eq(info.devices[0].mode, COX_MODE_STAGED);
    cr_assert_eq(info.devices[1].device, 0);
    cr_assert_str_eq(info.policy, "playback");
    submit(frames, session, 0);
    cox_session_wait(session);
    size_t count;
    struct fake_record *record = fake_take_record(rig_fake(rig), &count);
    uint32_t bands = 0;
    for (size_t i = 0; i < count; i++)
        if (record[i].step == FAKE_STEP_SUBMIT) {
            cr_assert_eq(record[i].device, record[i].first_row == 0 ? 2 : 0);
            bands++;
        }
    cr_assert_eq(bands, 2);
    free(record);
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}
