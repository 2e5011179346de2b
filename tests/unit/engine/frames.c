/* A frame from submission to callback: order, completeness and contents, on scripted devices with a virtual clock.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "engine/engine.h"
#include "support/rig_play.h"
#include <stdlib.h>
#include <string.h>

TestSuite(engine, .timeout = 300);

/* A fast device with a high fixed cost, and a slow device with a low one. */
static const struct fake_params pair = {
    .device_count = 2,
    .devices = {{.name = "slow", .fixed_ns = 60e3, .ns_per_row = 18e3},
                {.name = "fast", .type = COX_DEVICE_GPU, .fixed_ns = 250e3, .ns_per_row = 9e3}},
};

Test(engine, delivers_every_frame_once_in_order_with_every_row_written)
{
    struct play play = play_begin(&pair, 270, 33, 64, 4, &(const struct cox__session_spec){.in_flight = 3});
    play_frames(&play, 0, 200, 4);
    play_end(&play);
}

Test(engine, delivers_in_submission_order_when_frames_finish_out_of_order)
{
    const struct fake_params devices = {
        .device_count = 2, .devices = {{.ns_per_row = 1e6}, {.ns_per_row = 1e3}}, .held = true};
    rig_split_count = 0;
    for (uint32_t i = 0; i < 4; i++)
        rig_add_split(1, (const uint32_t[][2]){{i % 2, 16}});
    struct play play =
        play_begin(&devices, 16, 8, 16, 5,
                   &(const struct cox__session_spec){.custom_policy = &rig_policy, .in_flight = 4, .no_warmup = true});
    play_submit(&play, 0, 4);
    cr_assert(fake_await_running(play.fake, 4));
    cr_assert_eq(rig_done_count(play.rig), 0);
    fake_release(play.fake);
    cox_session_wait(play.session);
    play_was_told(&play, 4, COX_OK);
    play_check(&play, 0, 4);

    /* The frames of device 1 did end before those of device 0. */
    size_t count;
    struct fake_record *record = fake_take_record(play.fake, &count);
    uint32_t ends = 0, order[4] = {0};
    for (size_t i = 0; i < count; i++)
        if (record[i].step == FAKE_STEP_END && ends < 4)
            order[ends++] = record[i].device;
    cr_assert_eq(ends, 4);
    cr_assert_arr_eq(order, ((const uint32_t[]){1, 1, 0, 0}), sizeof order);
    free(record);
    play_end(&play);
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
        const uint32_t row_alignment = d == 2 ? 2 : 1; /* 128 / 64 */
        rig_split_count = 0;
        for (uint32_t i = 0; i < 100; i++)
            rig_add_random_split(&seed, 241, row_alignment, devices[d].device_count);
        struct play play = play_begin(&devices[d], 241, 50, 64, 8,
                                      &(const struct cox__session_spec){.custom_policy = &rig_policy,
                                                                        .in_flight = 1 + (uint32_t)d * 3});
        cr_assert_eq(rig_info(play.session).row_alignment, row_alignment);
        play_frames(&play, 0, 100, 4);
        cr_assert_not(rig_logged(play.rig, "refused"), "%s", rig_log(play.rig));
        play_end(&play);
    }
}

static const struct rig_report *last_report(const struct play *play)
{
    return rig_report_at(play->rig, rig_report_count(play->rig) - 1);
}

Test(engine, uses_every_device_that_helps)
{
    struct play play = play_begin(&play_trio, 1080, 16, 64, 4, &(const struct cox__session_spec){.report = rig_report});
    play_submit(&play, 0, 60);
    cox_session_wait(play.session);
    const struct rig_report *last = last_report(&play);
    uint32_t seen = 0;
    for (uint32_t b = 0; b < last->frame.band_count; b++)
        seen |= 1u << last->bands[b].device;
    cr_assert_eq(seen, 7);
    play_end(&play);
}

Test(engine, converges_to_the_waterfilling_optimum_of_the_cost_model)
{
    static const struct cox_cost costs[2] = {{true, 60e3, 18e3}, {true, 250e3, 9e3}};
    struct play play = play_begin(&pair, 1080, 16, 64, 4,
                                  &(const struct cox__session_spec){.in_flight = 1, .report = rig_report});
    play_submit(&play, 0, 40);
    cox_session_wait(play.session);
    uint32_t rows[2];
    const double best = cox_waterfill(1080, 1, 0, costs, 2, rows), took = play_frame_ns(last_report(&play));
    cr_assert_leq(took, best * 1.02, "%.0f ns, best %.0f ns", took, best);
    play_end(&play);
}

/* A session that gives each device a third of 90 rows and flushes correctly. */
static struct play begin_thirds(const struct fake_params *devices, uint32_t in_flight)
{
    rig_set_split(3, (const uint32_t[][2]){{0, 30}, {1, 30}, {2, 30}});
    return play_begin(devices, 90, 16, 64, 4,
                      &(const struct cox__session_spec){
                          .custom_policy = &rig_policy, .in_flight = in_flight, .report = rig_report});
}

Test(engine, flushes_every_queue_before_it_waits_or_asks)
{
    struct play play = begin_thirds(&play_trio, 3);
    play_submit(&play, 0, 50);
    cox_session_wait(play.session);
    size_t count;
    struct fake_record *record = fake_take_record(play.fake, &count);
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
    play_end(&play);
}

/* The second device must not wait until all of the first one's commands are enqueued. */
Test(engine, every_device_begins_before_any_gets_the_second_part_of_its_band)
{
    struct fake_params devices = play_trio;
    for (uint32_t d = 0; d < 3; d++)
        devices.devices[d].parts = 2 + d;
    struct play play = begin_thirds(&devices, 1);
    play_frames(&play, 0, 1, 1); /* the warm-up */

    fake_clear_record(play.fake);
    play_frames(&play, 1, 2, 1);

    size_t count;
    struct fake_record *record = fake_take_record(play.fake, &count);
    uint32_t begun = 0, parts[3] = {0};
    for (size_t i = 0; i < count; i++) {
        if (record[i].step == FAKE_STEP_SUBMIT || record[i].step == FAKE_STEP_CONTINUE)
            parts[record[i].device]++;
        if (record[i].step == FAKE_STEP_FLUSH)
            begun |= 1u << record[i].device;
        if (record[i].step == FAKE_STEP_CONTINUE)
            cr_assert_eq(begun, 7, "step %zu", i);
    }
    for (uint32_t d = 0; d < 3; d++)
        cr_assert_eq(parts[d], 2 + d);

    free(record);
    play_end(&play);
}

struct seen {
    struct cox_session *session;
    uint64_t next_index;
};

/* A frame's callback: note the index that the next submitted frame would get. */
static void see_next_index(void *user, uint64_t frame, cox_status status)
{
    struct seen *seen = user;
    (void)frame;
    (void)status;

    pthread_mutex_lock(&seen->session->lock);
    seen->next_index = seen->session->counts.next_index;
    pthread_mutex_unlock(&seen->session->lock);
}

/* The index of a step in the record: the first of its kind, or the last. */
static size_t place_of(const struct fake_record *record, size_t count, enum fake_step step, uint32_t device, bool last)
{
    size_t place = SIZE_MAX;
    for (size_t i = 0; i < count && (last || place == SIZE_MAX); i++)
        if (record[i].step == step && record[i].device == device)
            place = i;
    return place;
}

Test(engine, submits_and_flushes_first_where_the_enqueue_returns_at_once)
{
    const struct fake_params devices = {
        .device_count = 3,
        .devices = {{.name = "inside", .fixed_ns = 50e3, .ns_per_row = 5e3, .inside_submit = true},
                    {.name = "a", .type = COX_DEVICE_GPU, .fixed_ns = 50e3, .ns_per_row = 5e3},
                    {.name = "b", .type = COX_DEVICE_GPU, .fixed_ns = 50e3, .ns_per_row = 5e3}}};
    struct play play = begin_thirds(&devices, 1);
    for (uint32_t i = 0; i < 10; i++) {
        fake_clear_record(play.fake);
        play_frames(&play, i, i + 1, 1);
        if (i == 0)
            continue; /* part of the warm-up */
        size_t count;
        struct fake_record *record = fake_take_record(play.fake, &count);
        const size_t inside = place_of(record, count, FAKE_STEP_SUBMIT, 0, true);
        for (uint32_t d = 1; d < 3; d++) {
            cr_assert_lt(place_of(record, count, FAKE_STEP_SUBMIT, d, true), inside);
            cr_assert_lt(place_of(record, count, FAKE_STEP_FLUSH, d, false), inside,
                         "device %u was not flushed before the blocking submit", d);
        }
        free(record);
        /* All three devices work in parallel: 200 us each, not one after the other. */
        cr_assert_lt(play_frame_ns(last_report(&play)), 210e3);
    }
    play_end(&play);
}

/* Play frames while device 0 takes long to enqueue. The record has the last one. */
static struct play play_slow_enqueue(const struct fake_params *devices)
{
    struct play play = begin_thirds(devices, 1);
    play_frames(&play, 0, 1, 1); /* the warm-up */
    FAKE_FAULT(play.fake, .kind = FAKE_SUBMIT_BLOCKS, .device = 0, .delay_ns = 200000, .count = UINT32_MAX);
    play_frames(&play, 1, 3, 1);

    fake_clear_record(play.fake);
    play_frames(&play, 3, 4, 1);
    return play;
}

Test(engine, a_device_that_enqueues_slowly_is_submitted_to_last)
{
    struct play play = play_slow_enqueue(&play_trio);

    size_t count;
    struct fake_record *record = fake_take_record(play.fake, &count);
    const size_t slow = place_of(record, count, FAKE_STEP_SUBMIT, 0, false);
    for (uint32_t d = 1; d < 3; d++)
        cr_assert_lt(place_of(record, count, FAKE_STEP_SUBMIT, d, true), slow);

    free(record);
    play_end(&play);
}

/* A processor may take longer to enqueue its band than a GPU takes for all of its pieces. */
Test(engine, a_device_that_enqueues_slowly_does_not_keep_others_from_their_parts)
{
    struct fake_params devices = play_trio;
    devices.devices[1].parts = devices.devices[2].parts = 3;
    struct play play = play_slow_enqueue(&devices);

    size_t count;
    struct fake_record *record = fake_take_record(play.fake, &count);
    const size_t slow = place_of(record, count, FAKE_STEP_SUBMIT, 0, false);
    for (uint32_t d = 1; d < 3; d++)
        cr_assert_lt(place_of(record, count, FAKE_STEP_CONTINUE, d, true), slow);

    free(record);
    play_end(&play);
}

/* Each device can begin while the next one is submitted to. */
Test(engine, flushes_a_device_before_the_next_gets_its_band)
{
    struct play play = begin_thirds(&play_trio, 1);
    play_frames(&play, 0, 1, 1); /* the warm-up */

    fake_clear_record(play.fake);
    play_frames(&play, 1, 2, 1);

    size_t count;
    struct fake_record *record = fake_take_record(play.fake, &count);
    uint32_t unflushed = 0;
    for (size_t i = 0; i < count; i++) {
        if (record[i].step == FAKE_STEP_SUBMIT)
            cr_assert_eq(unflushed++, 0, "step %zu", i);
        if (record[i].step == FAKE_STEP_FLUSH)
            unflushed = 0;
    }

    free(record);
    play_end(&play);
}

/* The next frame does not have to wait until the thread that submits it wakes up. */
Test(engine, a_frame_that_waits_for_a_slot_is_under_way_before_the_callback)
{
    const struct fake_params device = {.device_count = 1, .devices = {{.ns_per_row = 10e3}}, .held = true};
    struct play play = play_begin(&device, 100, 16, 64, 2,
                                  &(const struct cox__session_spec){.in_flight = 1, .no_warmup = true});
    struct seen seen = {.session = play.session};
    struct play_blocked blocked;

    cr_assert_eq(cox__session_submit(play.session, RIG_FRAME(play.frames, 0), see_next_index, &seen), COX_OK);
    play_block(&blocked, &play, 1);
    fake_release(play.fake);

    cr_assert_eq(play_unblocked(&blocked), COX_OK);
    cox_session_wait(play.session);
    cr_assert_eq(seen.next_index, 2);
    play_check(&play, 0, 2);
    play_end(&play);
}

/* Then staged devices need no profile. Enqueueing for a CPU may keep the polling thread. */
Test(engine, ends_are_seen_without_delay_if_a_core_polls_and_no_device_is_a_cpu)
{
    for (uint32_t i = 0; i < 4; i++) {
        const bool polls = i & 1, processor = i & 2;
        const struct fake_params devices = {
            .device_count = 2,
            .devices = {{.type = processor ? COX_DEVICE_CPU : COX_DEVICE_GPU, .ns_per_row = 10e3},
                        {.type = COX_DEVICE_GPU, .ns_per_row = 10e3}}};
        struct play play = play_open(&devices, 100, 16, 64, 2);
        rig_runtime(play.rig)->polls_closely = polls;
        play.session = play_session(&play, &(const struct cox__session_spec){0});
        cr_expect_eq(play.session->pipeline.watched, polls && !processor, "case %u", i);
        rig_runtime(play.rig)->polls_closely = false;
        play_end(&play);
    }
}

/* Only one band is queued ahead, so the others can still be cancelled. */
Test(engine, keeps_the_next_band_queued_on_a_busy_device)
{
    const struct fake_params device = {.device_count = 1, .devices = {{.ns_per_row = 10e3}}, .held = true};
    struct play play =
        play_begin(&device, 100, 16, 64, 9,
                   &(const struct cox__session_spec){.in_flight = 8, .no_warmup = true, .report = rig_report});
    play_submit(&play, 0, 8);
    cr_assert(fake_await_running(play.fake, 2));
    fake_release(play.fake);
    cox_session_wait(play.session);
    for (uint32_t i = 0; i < 8; i++) {
        const struct cox_band_report *band = &rig_report_at(play.rig, i)->bands[0];
        cr_assert_eq(band->wall_ns, 1000000u, "frame %u: %llu ns", i, (unsigned long long)band->wall_ns);
        cr_assert_eq(band->queue_ns, i ? 1000000u : 0);
    }
    play_end(&play);
}

/* ---- submission ---- */

Test(engine, nowait_gives_busy_while_all_slots_are_taken)
{
    struct play play = play_begin(&pair, 32, 8, 16, 4,
                                  &(const struct cox__session_spec){.in_flight = 2, .no_warmup = true});
    fake_hold(play.fake);
    cr_assert_eq(rig_submit(play.frames, play.session, 0, true), COX_OK);
    cr_assert_eq(rig_submit(play.frames, play.session, 1, true), COX_OK);
    cr_assert_eq(rig_submit(play.frames, play.session, 2, true), COX_E_BUSY);
    cr_assert(fake_await_running(play.fake, 2));
    cr_assert_eq(rig_submit(play.frames, play.session, 2, true), COX_E_BUSY);
    fake_release(play.fake);
    cox_session_wait(play.session);
    cr_assert_eq(rig_submit(play.frames, play.session, 2, true), COX_OK);
    cox_session_wait(play.session);
    play_was_told(&play, 3, COX_OK); /* a refused frame has no callback and no index */
    play_check(&play, 0, 3);
    play_end(&play);
}

Test(engine, a_blocked_submit_goes_on_when_a_frame_is_done)
{
    struct play play = play_begin(&pair, 32, 8, 16, 4,
                                  &(const struct cox__session_spec){.in_flight = 2, .no_warmup = true});
    struct play_blocked blocked;
    fake_hold(play.fake);
    play_submit(&play, 0, 2);
    cr_assert(fake_await_running(play.fake, 2));
    play_block(&blocked, &play, 2);
    fake_release(play.fake);
    cr_assert_eq(play_unblocked(&blocked), COX_OK);
    cox_session_wait(play.session);
    play_was_told(&play, 3, COX_OK);
    play_end(&play);
}

struct resubmit {
    struct play play;
    uint32_t submitted, done, busy;
    uint32_t wrong; /* Criterion's assertions work only in the test's own thread */
    bool greedy;
};

static void submit_again(void *user, uint64_t frame, cox_status status)
{
    struct resubmit *again = user;
    again->wrong += frame != again->done || status != COX_OK;
    again->done++;
    while (again->submitted < 100) {
        const struct cox__frame_spec *next = RIG_FRAME(again->play.frames,
                                                       again->submitted % again->play.frames->count);
        const cox_status result = cox__session_submit(again->play.session, next, submit_again, again);
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
        struct resubmit again = {.submitted = 1, .greedy = greedy};
        again.play = play_begin(&pair, 32, 8, 16, 4, &(const struct cox__session_spec){.in_flight = 2});
        cr_assert_eq(cox__session_submit(again.play.session, RIG_FRAME(again.play.frames, 0), submit_again, &again),
                     COX_OK);
        cox_session_wait(again.play.session); /* also waits for frames that the callback submitted */
        cr_assert_eq(again.done, 100);
        cr_assert_eq(again.wrong, 0);
        cr_assert_eq(again.submitted, 100);
        cr_assert(greedy ? again.busy > 0 : again.busy == 0);
        play_end(&again.play);
    }
}

Test(engine, a_frame_without_a_callback_is_done_all_the_same)
{
    struct play play = play_begin(&pair, 32, 8, 16, 1, &(const struct cox__session_spec){.in_flight = 1});
    cr_assert_eq(cox__session_submit(play.session, RIG_FRAME(play.frames, 0), NULL, NULL), COX_OK);
    cox_session_wait(play.session);
    play_check(&play, 0, 1);
    cr_assert_eq(rig_info(play.session).frames_done, 1);
    play_end(&play);
}

static void ignore(void *user, uint64_t frame, cox_status status)
{
    (void)user, (void)frame, (void)status;
}

/* Submit four frames and cancel them before the first one starts. */
static void submit_and_cancel(struct play *play, cox_done_fn *done)
{
    fake_hold(play->fake);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(cox__session_submit(play->session, RIG_FRAME(play->frames, i), done, NULL), COX_OK);
    cox_session_cancel(play->session);
    fake_release(play->fake);
}

Test(engine, waiting_returns_the_failure_of_a_frame_without_a_callback_once)
{
    struct play play = play_begin(&pair, 32, 8, 16, 4, &(const struct cox__session_spec){.in_flight = 4});
    submit_and_cancel(&play, ignore);
    cr_assert_eq(cox_session_wait(play.session), COX_OK, "the callbacks had it");
    cr_assert_eq(rig_info(play.session).frames_failed, 4);

    submit_and_cancel(&play, NULL);
    cr_assert_eq(cox_session_wait(play.session), COX_E_CANCELLED);
    cr_assert_eq(cox_session_wait(play.session), COX_OK);
    cr_assert_eq(rig_info(play.session).frames_failed, 8);
    cr_assert_eq(rig_info(play.session).frames_done, 8);
    play_end(&play);
}

Test(engine, run_submits_waits_and_returns_the_frames_status)
{
    struct play play = play_begin(&pair, 32, 8, 16, 1, &(const struct cox__session_spec){.no_warmup = true});
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(cox__session_run(play.session, RIG_FRAME(play.frames, 0)), COX_OK);
        play_check(&play, 0, 1);
    }
    for (uint32_t d = 0; d < 2; d++)
        FAKE_FAULT(play.fake, .kind = FAKE_DEVICE_DIES, .device = d, .count = UINT32_MAX);
    cr_assert_eq(cox__session_run(play.session, RIG_FRAME(play.frames, 0)), COX_E_DEVICE_LOST);
    cr_assert_eq(cox__session_run(play.session, RIG_FRAME(play.frames, 0)), COX_E_NO_DEVICE);
    play_end(&play);
}

Test(engine, the_parameters_belong_to_their_frame)
{
    struct play play = play_begin(&pair, 64, 8, 16, 17, &(const struct cox__session_spec){.in_flight = 16});
    for (uint32_t round = 0; round < 4; round++) {
        struct rig_params own[17];
        memcpy(own, play.frames->params, sizeof own);
        for (uint32_t i = 0; i < 17; i++) {
            play_submit(&play, i, i + 1);
            play.frames->params[i] = (struct rig_params){.add = 99, .columns = 1}; /* submit has copied the constants */
        }
        cox_session_wait(play.session);
        memcpy(play.frames->params, own, sizeof own);
        play_check(&play, 0, 17);
    }
    play_end(&play);
}

/* ---- several sessions and runtimes ---- */

Test(engine, several_sessions_share_one_runtime)
{
    struct play plays[3] = {play_open(&play_trio, 100, 16, 64, 4)};
    for (uint32_t s = 0; s < 3; s++) {
        plays[s] = plays[0];
        if (s > 0)
            plays[s].frames = rig_frames_new(plays[0].rig, 100 + 31 * s, 16, 64, 4);
        plays[s].session = play_session(&plays[s], &(const struct cox__session_spec){.in_flight = 1 + s});
    }
    for (uint32_t i = 0; i < 60; i += 4) {
        for (uint32_t k = i; k < i + 4; k++)
            for (uint32_t s = 0; s < 3; s++)
                play_submit(&plays[s], k, k + 1);
        for (uint32_t s = 0; s < 3; s++) {
            cox_session_wait(plays[s].session);
            play_check(&plays[s], i, i + 4);
        }
    }
    cr_assert_eq(rig_done_count(plays[0].rig), 180);
    /* Sessions may be destroyed in any order. */
    cox_session_destroy(&plays[1].session);
    play_submit(&plays[0], 0, 1);
    play_submit(&plays[2], 0, 1);
    cox_session_destroy(&plays[0].session);
    cox_session_destroy(&plays[2].session);
    cr_assert_eq(rig_done_count(plays[0].rig), 182);
    for (uint32_t s = 1; s < 3; s++)
        rig_frames_free(&plays[s].frames);
    play_end(&plays[0]);
}

Test(engine, two_runtimes_live_side_by_side)
{
    struct play plays[2];
    for (uint32_t s = 0; s < 2; s++)
        plays[s] = play_begin(s ? &play_trio : &pair, 100, 16, 64, 4,
                              &(const struct cox__session_spec){.in_flight = 2});
    for (uint32_t i = 0; i < 40; i++)
        for (uint32_t s = 0; s < 2; s++)
            play_submit(&plays[s], i, i + 1);
    cox_session_destroy(&plays[0].session);
    play_was_told(&plays[0], 40, COX_OK);
    play_end(&plays[0]);
    play_submit(&plays[1], 40, 41); /* the other session still works */
    cox_session_destroy(&plays[1].session);
    play_was_told(&plays[1], 41, COX_OK);
    play_end(&plays[1]);
}

Test(engine, destroy_waits_for_the_frames_under_way)
{
    struct play play = play_open(&pair, 64, 8, 16, 17);
    for (uint32_t in_flight = 1; in_flight <= 16; in_flight++) {
        const uint32_t before = rig_done_count(play.rig);
        play.session = play_session(&play, &(const struct cox__session_spec){.in_flight = in_flight});
        play_submit(&play, 0, in_flight);
        cox_session_destroy(&play.session);
        cr_assert_eq(rig_done_count(play.rig), before + in_flight);
        play_check(&play, 0, in_flight);
    }
    rig_frames_free(&play.frames);
    cr_assert(fake_await_gone(play.fake));
    END(play.rig);
}

Test(engine, a_session_without_frames_comes_and_goes)
{
    struct play play = play_open(&pair, 64, 8, 16, 1);
    for (int i = 0; i < 20; i++) {
        play.session = play_session(&play, &(const struct cox__session_spec){.in_flight = 2});
        cox_session_wait(play.session);
        cox_session_destroy(&play.session);
    }
    cox_session_destroy(&play.session);
    cox_session_destroy(NULL);
    play_end(&play);
}

Test(engine, a_late_post_is_taken_before_its_session_goes)
{
    struct play play = play_begin(&pair, 64, 8, 16, 1, &(const struct cox__session_spec){.in_flight = 2});
    cox_runtime *runtime = rig_runtime(play.rig);
    /* A driver posts a band a second time, and the session is destroyed. Another thread handles the requests before
     * the scheduler thread runs. */
    struct cox__request detach = {.kind = COX__REQUEST_DETACH, .session = play.session};
    cox__mpsc_push(&runtime->jobs, &play.session->devices.list[0].queue->slots[0].job.node);
    cox__mpsc_push(&runtime->requests, &detach.node);
    cox__engine_help(runtime);
    cr_assert(play.session->detached);
    cr_assert_null(atomic_load(&runtime->jobs.head)); /* from now on its owner may free the session */
    play.session->detached = false;
    play_end(&play);
}

Test(engine, a_session_may_use_some_of_the_devices_in_any_order)
{
    rig_set_split(2, (const uint32_t[][2]){{0, 60}, {1, 30}});
    struct play play = play_begin(&play_trio, 90, 16, 64, 2,
                                  &(const struct cox__session_spec){.custom_policy = &rig_policy,
                                                                    .device_count = 2,
                                                                    .devices = (const uint32_t[]){2, 0},
                                                                    .no_warmup = true});
    const struct cox_session_info info = rig_info(play.session);
    cr_assert_eq(info.device_count, 2);
    cr_assert_eq(info.devices[0].device, 2);
    cr_assert_eq(info.devices[0].mode, COX_MODE_STAGED);
    cr_assert_eq(info.devices[1].device, 0);
    cr_assert_str_eq(info.policy, "playback");
    play_frames(&play, 0, 1, 1);
    size_t count;
    struct fake_record *record = fake_take_record(play.fake, &count);
    uint32_t bands = 0;
    for (size_t i = 0; i < count; i++)
        if (record[i].step == FAKE_STEP_SUBMIT) {
            cr_assert_eq(record[i].device, record[i].first_row == 0 ? 2 : 0);
            bands++;
        }
    cr_assert_eq(bands, 2);
    free(record);
    play_end(&play);
}
