/* What the engine does when devices fail, return wrong results or stay silent, and when a policy gives invalid
 * splits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "support/rig_play.h"
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

/* Runs of each device for frames as short as these: one that is not timed, and twelve that are. */
enum { WARMUP_RUNS = 13 };

/* Three devices, 30 rows each, buffers for eight frames. */
static struct play begin(uint32_t in_flight, bool warmup)
{
    rig_set_split(3, thirds);
    return play_begin(&trio, 90, 16, 16, 8,
                      &(const struct cox__session_spec){.custom_policy = &rig_policy,
                                                        .in_flight = in_flight,
                                                        .no_warmup = !warmup,
                                                        .report = rig_report});
}

/* The usable devices, one bit for each. */
static uint32_t usable(const struct play *play)
{
    const struct cox_session_info info = rig_info(play->session);
    uint32_t devices = 0;
    for (uint32_t d = 0; d < info.device_count; d++)
        devices |= (uint32_t)(info.devices[d].state == COX_DEVICE_ACTIVE) << d;
    return devices;
}

/* Play `frames` frames. Afterwards all devices are usable except those in `lost`. */
static void finish(struct play *play, uint32_t frames, uint32_t lost)
{
    play_frames(play, 0, frames, 4);
    cr_assert_eq(usable(play), 7 & ~lost, "%s", rig_log(play->rig));
    play_end(play);
}

Test(engine_failure, a_refused_submit_moves_the_rows_to_another_device)
{
    static const cox_status statuses[] = {COX_E_DEVICE_LOST, COX_E_DEVICE_MEMORY, COX_E_NOMEM};
    for (uint32_t device = 0; device < 3; device++)
        for (uint32_t skip = 0; skip < 4; skip++) {
            struct play play = begin(2, skip % 2);
            FAKE_FAULT(play.fake, .kind = FAKE_SUBMIT_FAILS, .device = device,
                       .skip = (skip % 2 ? WARMUP_RUNS : 0) + 3 + skip, .status = statuses[skip % 3]);
            play_frames(&play, 0, 20, 4);
            cr_assert(rig_logged(play.rig, trio.devices[device].name), "%s", rig_log(play.rig));
            cr_assert_eq(usable(&play), 7u & ~(1u << device));
            play_end(&play);
        }
}

Test(engine_failure, run_goes_on_when_the_device_that_computes_in_the_enqueue_call_refuses)
{
    static const struct fake_params params = {.device_count = 2,
                                              .devices = {{.name = "inside", .ns_per_row = 1e5, .inside_submit = true},
                                                          {.name = "other", .ns_per_row = 2e5}}};
    rig_set_split(1, (const uint32_t[][2]){{0, 90}});
    struct play play = play_begin(&params, 90, 16, 16, 1,
                                  &(const struct cox__session_spec){.custom_policy = &rig_policy});
    /* The device's warm-up tells the engine how the device works. */
    cr_assert_eq(cox__session_run(play.session, RIG_FRAME(play.frames, 0)), COX_OK);
    const struct timespec rest = {.tv_nsec = 50000000};
    nanosleep(&rest, NULL); /* so that only the run itself moves its frame */
    FAKE_FAULT(play.fake, .kind = FAKE_SUBMIT_FAILS, .device = 0, .status = COX_E_DEVICE_LOST);
    cr_assert_eq(cox__session_run(play.session, RIG_FRAME(play.frames, 0)), COX_OK);
    play_check(&play, 0, 1);
    play_end(&play);
}

/* The frame's report shows the failed attempt, followed by the one that counted. */
static void shows_both_attempts(const struct rig_report *report, uint32_t device)
{
    bool found = false;
    cr_assert_eq(report->frame.status, COX_OK);
    cr_assert_eq(report->frame.total.reason, COX_REASON_RERUN);
    for (uint32_t b = 0; b < report->frame.band_count; b++) {
        const struct cox_band_report *failed = &report->bands[b - 1], *again = &report->bands[b];
        if (again->attempt != 1)
            continue;
        found = true;
        cr_assert_eq(failed->device, device);
        cr_assert_eq(failed->attempt, 0);
        cr_assert_neq(failed->status, COX_OK);
        cr_assert_eq(failed->first_row, again->first_row);
        cr_assert_neq(again->device, device);
        cr_assert_eq(again->status, COX_OK);
        cr_assert_geq(again->submit_ns, failed->submit_ns);
    }
    cr_assert(found);
}

Test(engine_failure, a_failed_band_is_run_again_elsewhere)
{
    for (uint32_t device = 0; device < 3; device++)
        for (uint32_t in_flight = 1; in_flight <= 4; in_flight++) {
            struct play play = begin(in_flight, false);
            const struct rig_report *report = NULL;
            FAKE_FAULT(play.fake, .kind = FAKE_EVENT_FAILS, .device = device, .skip = 5);
            play_frames(&play, 0, 20, 4);
            cr_assert_eq(usable(&play) >> device & 1, 0);
            for (uint32_t i = 0; i <= 5; i++)
                cr_assert_not_null(report = rig_next_report(play.rig, report));
            cr_assert_eq(report->frame.index, 5);
            shows_both_attempts(report, device);
            play_end(&play);
        }
}

Test(engine_failure, a_device_that_dies_with_bands_queued_loses_no_frame)
{
    for (uint32_t device = 0; device < 3; device++)
        for (uint32_t in_flight = 1; in_flight <= 4; in_flight++) {
            struct play play = begin(in_flight, in_flight % 2);
            FAKE_FAULT(play.fake, .kind = FAKE_DEVICE_DIES, .device = device,
                       .skip = (in_flight % 2 ? WARMUP_RUNS : 0) + 6);
            finish(&play, 24, 1u << device);
        }
}

Test(engine_failure, the_last_device_carries_on_alone)
{
    struct play play = begin(3, false);
    FAKE_FAULT(play.fake, .kind = FAKE_DEVICE_DIES, .device = 2, .skip = 3);
    FAKE_FAULT(play.fake, .kind = FAKE_SUBMIT_FAILS, .device = 0, .skip = 9, .status = COX_E_DEVICE_LOST);
    finish(&play, 40, 5);
}

Test(engine_failure, when_every_device_is_gone_frames_end_with_an_error_and_submit_says_so)
{
    for (uint32_t in_flight = 1; in_flight <= 4; in_flight++) {
        struct play play = begin(in_flight, false);
        for (uint32_t d = 0; d < 3; d++)
            FAKE_FAULT(play.fake, .kind = FAKE_DEVICE_DIES, .device = d, .skip = 5 - d);
        uint32_t accepted = 0, good = 0;
        cox_status status = COX_OK;
        while (accepted < 30 && (status = rig_submit(play.frames, play.session, accepted, false)) == COX_OK)
            accepted++;
        cr_assert_eq(status, COX_E_NO_DEVICE);
        cox_session_wait(play.session);
        cr_assert_eq(rig_submit(play.frames, play.session, 0, false), COX_E_NO_DEVICE);
        cr_assert_eq(rig_submit(play.frames, play.session, 0, true), COX_E_NO_DEVICE);
        cr_assert_eq(rig_done_count(play.rig), accepted);
        for (uint32_t i = 0; i < accepted; i++) {
            status = rig_done_status(play.rig, i);
            cr_assert_eq(rig_done_frame(play.rig, i), i);
            cr_assert(status == COX_OK || status == COX_E_DEVICE_LOST);
            good += status == COX_OK;
        }
        cr_assert(good >= 3 && good < accepted, "%u of %u", good, accepted);
        play_end(&play);
    }
}

Test(engine_failure, a_blocked_submit_returns_when_every_device_is_gone)
{
    struct play play = begin(2, false);
    fake_hold(play.fake);
    for (uint32_t d = 0; d < 3; d++)
        FAKE_FAULT(play.fake, .kind = FAKE_DEVICE_DIES, .device = d);
    play_submit(&play, 0, 2);
    cr_assert(fake_await_running(play.fake, 6));
    struct play_blocked blocked;
    play_block(&blocked, &play, 2);
    fake_release(play.fake);
    cr_assert_eq(play_unblocked(&blocked), COX_E_NO_DEVICE);
    cox_session_wait(play.session);
    play_was_told(&play, 2, COX_E_DEVICE_LOST);
    play_end(&play);
}

/* ---- building ---- */

Test(engine_failure, a_device_that_cannot_build_does_not_take_part)
{
    for (uint32_t device = 0; device < 3; device++) {
        struct play play = play_open(&trio, 90, 16, 16, 8);
        FAKE_FAULT(play.fake, .kind = FAKE_INSTANCE_FAILS, .device = device,
                   .status = device ? COX_E_BUILD : COX_E_DEVICE_MEMORY);
        play.session = play_session(&play, &(const struct cox__session_spec){.in_flight = 2});
        cr_assert(rig_logged(play.rig, trio.devices[device].name));
        const struct cox_session_info info = rig_info(play.session);
        cr_assert_eq(info.device_count, 2);
        for (uint32_t d = 0; d < 2; d++)
            cr_assert_neq(info.devices[d].device, device);
        play_frames(&play, 0, 8, 8);
        play_end(&play);
    }
}

Test(engine_failure, create_says_why_no_device_takes_part)
{
    static const cox_status statuses[] = {COX_E_BUILD, COX_E_DEVICE_MEMORY};
    for (int i = 0; i < 2; i++) {
        struct play play = play_open(&trio, 90, 16, 16, 1);
        for (uint32_t d = 0; d < 3; d++)
            FAKE_FAULT(play.fake, .kind = FAKE_INSTANCE_FAILS, .device = d, .status = statuses[i]);
        play.session = (cox_session *)&play;
        cr_assert_eq(rig_map_session(play.frames, &(const struct cox__session_spec){.in_flight = 2}, &play.session),
                     statuses[i]);
        cr_assert_null(play.session);
        play_end(&play);
    }
}

Test(engine_failure, memory_that_cannot_be_had_is_an_error_of_the_buffer)
{
    struct rig *rig = rig_new(&trio);
    cox_buffer *buffer = (cox_buffer *)&buffer;
    FAKE_FAULT(rig_fake(rig), .kind = FAKE_MEM_FAILS, .status = COX_E_NOMEM);
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
                struct play play = begin(2, true);
                FAKE_FAULT(play.fake, .kind = kinds[k], .device = device, .skip = skip, .status = COX_E_DEVICE_MEMORY);
                play_frames(&play, 0, 8, 4);
                cr_assert_eq(usable(&play) >> device & 1, 0);
                play_end(&play);
            }
}

Test(engine_failure, when_every_device_fails_in_the_warm_up_the_frames_end_with_an_error)
{
    struct play play = begin(2, true);
    for (uint32_t d = 0; d < 3; d++)
        FAKE_FAULT(play.fake, .kind = FAKE_DEVICE_DIES, .device = d);
    play_submit(&play, 0, 1);
    cox_session_wait(play.session);
    play_was_told(&play, 1, COX_E_DEVICE_LOST);
    cr_assert_eq(rig_submit(play.frames, play.session, 1, false), COX_E_NO_DEVICE);
    play_end(&play);
}

/* ---- unusual callbacks from drivers ---- */

Test(engine_failure, finds_out_by_asking_when_nothing_is_posted)
{
    for (uint32_t device = 0; device < 3; device++) {
        struct play play = begin(2, device == 1);
        FAKE_FAULT(play.fake, .kind = FAKE_NO_POST, .device = device, .skip = 2, .count = UINT32_MAX);
        play_frames(&play, 0, 12, 4);
        for (uint32_t i = 0; i < rig_report_count(play.rig); i++) {
            const struct cox_frame_report *frame = &rig_report_at(play.rig, i)->frame;
            cr_assert_leq(frame->total.end_ns - frame->total.start_ns, 1000000000u, "more than a second");
        }
        cr_assert_eq(usable(&play), 7);
        play_end(&play);
    }
}

Test(engine_failure, finds_out_by_asking_that_a_band_failed)
{
    struct play play = begin(2, false);
    FAKE_FAULT(play.fake, .kind = FAKE_NO_POST, .device = 1, .count = UINT32_MAX);
    FAKE_FAULT(play.fake, .kind = FAKE_EVENT_FAILS, .device = 1, .skip = 2);
    finish(&play, 12, 2);
}

Test(engine_failure, posts_that_come_twice_early_or_late_change_nothing)
{
    static const enum fake_fault_kind kinds[] = {FAKE_POST_TWICE, FAKE_POST_EARLY, FAKE_POST_LATE};
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t in_flight = 1; in_flight <= 4; in_flight++) {
            struct play play = begin(in_flight, in_flight % 2);
            for (uint32_t d = 0; d < 3; d++)
                FAKE_FAULT(play.fake, .kind = kinds[k], .device = d, .skip = d, .count = UINT32_MAX,
                           .delay_ns = 70000000);
            finish(&play, 16, 0);
        }
}

Test(engine_failure, a_session_can_be_destroyed_while_a_post_is_still_to_come)
{
    for (uint32_t i = 0; i < 10; i++) {
        struct play play = begin(1, false);
        for (uint32_t d = 0; d < 3; d++)
            FAKE_FAULT(play.fake, .kind = FAKE_POST_LATE, .device = d, .count = UINT32_MAX,
                       .delay_ns = 49999000 + 1000 * i);
        play_frames(&play, 0, 2, 4);
        play_end(&play);
    }
}

Test(engine_failure, a_band_that_takes_long_delays_its_frame_and_nothing_else)
{
    struct play play = begin(3, false);
    FAKE_FAULT(play.fake, .kind = FAKE_HANGS, .device = 1, .skip = 2, .delay_ns = 1000000000u);
    finish(&play, 12, 0);
}

/* ---- in place and REDUCE ---- */

Test(engine_failure, a_failed_band_in_place_is_an_error_and_not_run_again)
{
    rig_set_split(3, thirds);
    struct play play = play_in_place(&trio, &rig_policy);
    FAKE_FAULT(play.fake, .kind = FAKE_EVENT_FAILS, .device = 1);
    play_run_in_place(&play, COX_E_DEVICE_LOST);
    cr_assert_eq(fake_steps(play.fake, FAKE_STEP_SUBMIT, UINT32_MAX), 3);
    play_run_in_place(&play, COX_OK); /* the other devices do the rows */
    play_end(&play);
}

Test(engine_failure, rows_in_place_that_never_ran_may_go_elsewhere)
{
    rig_set_split(3, thirds);
    struct play play = play_in_place(&trio, &rig_policy);
    FAKE_FAULT(play.fake, .kind = FAKE_SUBMIT_FAILS, .device = 1, .status = COX_E_DEVICE_LOST);
    play_run_in_place(&play, COX_OK);
    play_end(&play);
}

Test(engine_failure, a_run_again_is_counted_once_in_a_reduction)
{
    static const enum fake_fault_kind kinds[] = {FAKE_SUBMIT_FAILS, FAKE_EVENT_FAILS, FAKE_DEVICE_DIES};
    for (uint32_t k = 0; k < 3; k++) {
        rig_set_split(6, (const uint32_t[][2]){{0, 20}, {1, 10}, {2, 20}, {1, 10}, {0, 10}, {1, 20}});
        struct play play = play_count(&trio, &rig_policy, k != 1);
        FAKE_FAULT(play.fake, .kind = kinds[k], .device = 1, .skip = (k == 1 ? 0 : WARMUP_RUNS) + 7,
                   .status = COX_E_DEVICE_LOST);
        for (int i = 0; i < 8; i++) {
            snprintf(play.what, sizeof play.what, "run %d, kind %u", i, k);
            play_run_count(&play);
        }
        cr_assert_gt(rig_info(play.session).devices[1].lost, 0);
        play_end(&play);
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
    /* 92 rows. The row alignment is 4, because of an alignment of 64 bytes and a pitch of 16 bytes. */
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
            rig_split_count = 0;
            if (!first)
                rig_add_split(3, (const uint32_t[][2]){{0, 8}, {1, 60}, {2, 24}});
            rig_splits[rig_split_count++] = split_of(wrong[w].bands, wrong[w].band);
            rig_add_split(2, (const uint32_t[][2]){{0, 48}, {2, 44}});
            struct play play =
                play_begin(&params, 92, 16, 16, 8,
                           &(const struct cox__session_spec){
                               .custom_policy = &rig_policy, .in_flight = 2, .report = rig_report, .no_warmup = true});
            snprintf(play.what, sizeof play.what, "%s", wrong[w].what);
            play_frames(&play, 0, 5, 5);
            cr_assert(rig_logged(play.rig, "playback"), "%s: %s", wrong[w].what, rig_log(play.rig));
            if (wrong[w].logged)
                cr_assert(rig_logged(play.rig, wrong[w].logged), "%s: %s", wrong[w].what, rig_log(play.rig));
            if (!first) { /* the last valid split */
                const struct rig_report *report = rig_report_at(play.rig, 1);
                cr_assert_eq(report->frame.band_count, 3, "%s", wrong[w].what);
                cr_assert_eq(report->bands[1].rows, 60, "%s", wrong[w].what);
            }
            play_end(&play);
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
    struct play play = play_begin(&trio, 90, 16, 16, 4, &(const struct cox__session_spec){.custom_policy = &policy});
    play_frames(&play, 0, 4, 4);
    cr_assert(rig_logged(play.rig, "playback"));
    play_end(&play);
}

Test(engine_failure, a_policy_that_insists_on_a_lost_device_is_overruled)
{
    struct play play = begin(2, false); /* its split always names device 1 */
    FAKE_FAULT(play.fake, .kind = FAKE_DEVICE_DIES, .device = 1, .skip = 1);
    play_frames(&play, 0, 16, 4);
    cr_assert(rig_logged(play.rig, "playback"));
    play_end(&play);
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
    struct play play = play_open(&trio, 90, 16, 16, 1);
    cr_assert_eq(rig_map_session(play.frames, &(const struct cox__session_spec){.custom_policy = &policy},
                                 &play.session),
                 COX_E_INVALID);
    cr_assert_null(play.session);
    cr_assert(rig_logged(play.rig, "playback"));
    play_end(&play);
}

/* ---- all of these together ---- */

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
                .parts = 1 + d % 3,
                .inside_submit = rig_random(&seed) % 4 == 0,
            };
        const char *const policies[] = {"adaptive", "chunks", "static", "single"};
        struct play play = play_open(&params, 150 + (uint32_t)(rig_random(&seed) % 90), 16, 16, 9);
        const uint32_t in_flight = 1 + (uint32_t)(rig_random(&seed) % 8);
        const char *policy = policies[rig_random(&seed) % 4];
        play.session = play_session(&play, &(const struct cox__session_spec){.policy = policy,
                                                                             .in_flight = in_flight,
                                                                             .no_warmup = rig_random(&seed) % 2});
        for (uint32_t d = 1; d < params.device_count; d++) /* device 0 never fails */
            for (int i = 0; i < 3; i++) {
                struct fake_fault fault = {.device = d, .status = COX_E_DEVICE_LOST, .factor = 7};
                fault.kind = kinds[rig_random(&seed) % 8];
                fault.skip = (uint32_t)(rig_random(&seed) % 60);
                fault.count = 1 + (uint32_t)(rig_random(&seed) % 3);
                fault.delay_ns = rig_random(&seed) % 200000000;
                fake_script(play.fake, &fault);
            }
        snprintf(play.what, sizeof play.what, "round %u", (unsigned)round);
        play_frames(&play, 0, 60, 6);
        play_end(&play);
    }
}
