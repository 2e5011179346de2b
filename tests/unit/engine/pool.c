/* Rows that the policy hands out while the frame runs, on scripted devices with a virtual clock.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "engine/engine.h"
#include "support/rig_play.h"
#include <stdlib.h>

TestSuite(engine_pool, .timeout = 600);

/* ---- the policy "cue", which a test scripts ---- */

enum { OFFERS_MAX = 8192, MEASURED_MAX = 8192 };

typedef uint32_t answer_fn(const struct cox_sched_view *view, const struct cox_chunk_request *offer);
typedef void split_fn(const struct cox_sched_view *view, struct cox_split *out);

struct asked {
    uint64_t frame;
    struct cox_chunk_request offer;
    struct cox_progress progress[COX_DEVICES_MAX];
    uint32_t answer;
};

/* Policies have no user pointer. A test process runs one session of this policy at a time. */
static struct {
    uint64_t seed;
    split_fn *split;
    answer_fn *answer;
    uint32_t asked_count;
    struct asked asked[OFFERS_MAX];
    uint32_t measured_count;
    struct cox_measurement measured[MEASURED_MAX];
    uint32_t frame_count;
    struct cox_frame_measurement frames[1024];
    struct cox_device_profile loaded[COX_DEVICES_MAX];
} cue;

static cox_status cue_init(void *state, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    (void)state, (void)options;
    cr_assert(view->pool && view->in_flight >= 1);
    return COX_OK;
}

static cox_status cue_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)state;
    cue.split(view, out);
    return COX_OK;
}

static void cue_next(void *state, const struct cox_sched_view *view, const struct cox_chunk_request *offer,
                     struct cox_chunk *out)
{
    (void)state;
    cr_assert_lt(cue.asked_count, OFFERS_MAX);
    struct asked *asked = &cue.asked[cue.asked_count++];
    *asked = (struct asked){.frame = view->frame, .offer = *offer, .answer = cue.answer(view, offer)};
    memcpy(asked->progress, offer->progress, view->device_count * sizeof *offer->progress);
    cr_assert(view->devices[offer->device].usable, "rows offered to a device that has left");
    *out = (struct cox_chunk){.rows = asked->answer, .predicted_ns = 1000 + asked->answer};
}

static void cue_observe(void *state, const struct cox_measurement *measurement)
{
    (void)state;
    cr_assert_lt(cue.measured_count, MEASURED_MAX);
    cue.measured[cue.measured_count++] = *measurement;
}

static void cue_observe_frame(void *state, const struct cox_frame_measurement *measurement)
{
    (void)state;
    cr_assert_eq(measurement->frame, cue.frame_count, "measurements of frames come in order");
    cue.frames[cue.frame_count++] = *measurement;
}

static void cue_load_profile(void *state, const struct cox_sched_view *view, const struct cox_device_profile *profiles)
{
    (void)state;
    memcpy(cue.loaded, profiles, view->device_count * sizeof *profiles);
}

static void cue_save_profile(const void *state, const struct cox_sched_view *view, struct cox_device_profile *profiles)
{
    (void)state;
    for (uint32_t d = 0; d < view->device_count; d++)
        profiles[d].ns_per_row = d + 1;
}

static const struct cox_policy cue_policy = {.name = "cue",
                                             .state_bytes = rig_policy_bytes,
                                             .init = cue_init,
                                             .split = cue_split,
                                             .observe = cue_observe,
                                             .assign = cue_next,
                                             .observe_frame = cue_observe_frame,
                                             .load_profile = cue_load_profile,
                                             .save_profile = cue_save_profile};

static void cue_reset(split_fn *split, answer_fn *answer)
{
    memset(&cue, 0, sizeof cue);
    cue.seed = 11;
    cue.split = split;
    cue.answer = answer;
}

/* Open a play with the policy "cue". */
static struct play cue_open(split_fn *split, answer_fn *answer, const struct fake_params *devices, uint32_t rows,
                            const struct cox__session_spec *extra)
{
    struct cox__session_spec params = *extra;
    cue_reset(split, answer);
    if (!params.custom_policy)
        params.custom_policy = &cue_policy;
    params.report = rig_report;
    return play_begin(devices, rows, 13, 16, 6, &params);
}

/* The same without a warm-up, followed by `frames` frames. */
static struct play cue_play(split_fn *split, answer_fn *answer, const struct fake_params *devices, uint32_t rows,
                            uint32_t in_flight, uint32_t frames)
{
    struct play play = cue_open(split, answer, devices, rows,
                                &(const struct cox__session_spec){.in_flight = in_flight, .no_warmup = true});
    if (frames)
        play_frames(&play, 0, frames, 3);
    return play;
}

static uint32_t units_end(const struct cox_sched_view *view, uint32_t row_units)
{
    const uint64_t end = (uint64_t)row_units * view->row_alignment;
    return end < view->rows ? (uint32_t)end : view->rows;
}

static uint32_t any_usable(const struct cox_sched_view *view)
{
    uint32_t device = (uint32_t)(rig_random(&cue.seed) % view->device_count);
    while (!view->devices[device].usable)
        device = (device + 1) % view->device_count;
    return device;
}

static void add_random_bands(const struct cox_sched_view *view, uint32_t from, uint32_t to, struct cox_split *out)
{
    while (from < to) {
        uint32_t end = from + 1 + (uint32_t)(rig_random(&cue.seed) % (to - from));
        if (out->band_count + 4 > COX_BANDS_MAX)
            end = to;
        const uint32_t first = units_end(view, from);
        out->bands[out->band_count++] = (struct cox_band){any_usable(view), first, units_end(view, end) - first};
        from = end;
    }
}

/* The pool is anywhere in the frame; sometimes it is all of it, sometimes it is empty. Random bands surround it. */
static void split_at_random(const struct cox_sched_view *view, struct cox_split *out)
{
    const uint32_t row_units = (view->rows - 1) / view->row_alignment + 1;
    const uint32_t one = (uint32_t)(rig_random(&cue.seed) % (row_units + 1));
    const uint32_t other = (uint32_t)(rig_random(&cue.seed) % (row_units + 1));
    const bool all = rig_random(&cue.seed) % 3 == 0;
    const uint32_t from = all ? 0 : one < other ? one : other;
    const uint32_t to = all ? row_units : one < other ? other : one;
    add_random_bands(view, 0, from, out);
    out->pool_first_row = units_end(view, from);
    out->pool_rows = units_end(view, to) - out->pool_first_row;
    add_random_bands(view, to, row_units, out);
    out->reason = COX_REASON_ON_DEMAND;
}

static void split_all_pool(const struct cox_sched_view *view, struct cox_split *out)
{
    out->pool_rows = view->rows;
    out->reason = COX_REASON_ON_DEMAND;
}

/* A third each for two devices, the rest in the pool. */
static void split_with_tail(const struct cox_sched_view *view, struct cox_split *out)
{
    const uint32_t third = view->rows / 3 / view->row_alignment * view->row_alignment;
    out->band_count = 2;
    out->bands[0] = (struct cox_band){0, 0, third};
    out->bands[1] = (struct cox_band){1, third, third};
    out->pool_first_row = 2 * third;
    out->pool_rows = view->rows - 2 * third;
}

static uint32_t answer_at_random(const struct cox_sched_view *view, const struct cox_chunk_request *offer)
{
    const uint32_t row_units = (offer->rows - 1) / view->row_alignment + 1;
    const uint32_t take = (uint32_t)(rig_random(&cue.seed) % (row_units + 1));
    if (take == 0)
        return offer->last ? offer->rows : 0;
    return take == row_units ? offer->rows : take * view->row_alignment;
}

static uint32_t answer_anything(const struct cox_sched_view *view, const struct cox_chunk_request *offer)
{
    const uint32_t answers[] = {0, offer->rows + 1, UINT32_MAX, 1, (uint32_t)rig_random(&cue.seed)};
    const uint64_t which = rig_random(&cue.seed) % 7;
    return which < 5 ? answers[which] : answer_at_random(view, offer);
}

static uint32_t rows_of_answer;

static uint32_t answer_rows(const struct cox_sched_view *view, const struct cox_chunk_request *offer)
{
    (void)view;
    return offer->rows < rows_of_answer ? offer->rows : rows_of_answer;
}

/* Answer with this number of rows each time. */
static answer_fn *rows_each(uint32_t rows)
{
    rows_of_answer = rows;
    return answer_rows;
}

/* Every row of each delivered frame is in exactly one band that was done. */
static void cue_end(struct play *play)
{
    for (const struct rig_report *report = NULL; (report = rig_next_report(play->rig, report));) {
        const uint32_t frame = (uint32_t)report->frame.index;
        uint32_t next = 0, on_demand = 0;
        if (report->frame.status != COX_OK)
            continue;
        for (uint32_t b = 0; b < report->frame.band_count; b++) {
            if (report->bands[b].status != COX_OK)
                continue;
            cr_assert_eq(report->bands[b].first_row, next, "frame %u, band %u", frame, b);
            next += report->bands[b].rows;
            on_demand += report->bands[b].on_demand ? report->bands[b].rows : 0;
        }
        cr_assert_eq(next, play->frames->rows, "frame %u", frame);
        cr_assert_leq(on_demand, report->frame.total.pool_rows);
    }
    play_end(play);
}

/* ---- each row exactly once ---- */

static void play_random(uint32_t devices, uint32_t in_flight, answer_fn *answer, uint32_t max_rows, bool inside)
{
    struct fake_params params = {.device_count = devices};
    const uint32_t rows = 241;
    for (uint32_t d = 0; d < devices; d++)
        params.devices[d] = (struct fake_device){.fixed_ns = 5e3 * (d + 1),
                                                 .ns_per_row = 1e3 * (1 + d % 3),
                                                 .jitter = 0.4,
                                                 .align_bytes = 64,
                                                 .mode = d % 3 == 1 ? COX_MODE_STAGED : COX_MODE_MAPPED,
                                                 .max_rows = d % 2 ? 0 : max_rows,
                                                 .inside_submit = inside && d % 4 == 2};
    struct play play = cue_open(split_at_random, answer, &params, rows,
                                &(const struct cox__session_spec){.in_flight = in_flight,
                                                                  .no_warmup = !inside && in_flight % 2});
    cue.seed = devices * 100 + in_flight;
    play_frames(&play, 0, 30, 3);
    cr_assert_not(rig_logged(play.rig, "split refused"), "%s", rig_log(play.rig));
    cue_end(&play);
}

Test(engine_pool, hands_every_row_out_once_whatever_the_devices_the_frames_in_flight_and_the_answers)
{
    for (uint32_t devices = 1; devices <= 8; devices++)
        for (uint32_t in_flight = 1; in_flight <= 4; in_flight++) {
            play_random(devices, in_flight, answer_at_random, 0, false);
            play_random(devices, in_flight, answer_at_random, 12, true);
            play_random(devices, in_flight, answer_anything, 0, in_flight == 2);
            play_random(devices, in_flight, answer_anything, 16, false);
        }
}

Test(engine_pool, a_frame_may_be_all_pool)
{
    struct play play = cue_play(split_all_pool, rows_each(10), &play_trio, 100, 1, 6);
    for (const struct rig_report *report = NULL; (report = rig_next_report(play.rig, report));) {
        uint32_t devices = 0;
        cr_assert_eq(report->frame.total.pool_rows, 100);
        cr_assert_eq(report->frame.band_count, 10);
        for (uint32_t b = 0; b < 10; b++) {
            cr_assert(report->bands[b].on_demand);
            cr_assert_eq(report->bands[b].predicted_ns, 1010);
            devices |= 1u << report->bands[b].device;
        }
        cr_assert_eq(devices, 7, "every device helps");
    }
    cue_end(&play);
}

Test(engine_pool, only_a_device_with_nothing_of_the_frame_to_do_is_asked_and_it_hears_how_the_others_do)
{
    struct play play = cue_play(split_with_tail, rows_each(10), &play_trio, 90, 1, 6);
    for (uint32_t i = 0; i < cue.asked_count; i++) {
        const struct asked *asked = &cue.asked[i];
        uint32_t at_work = 0;
        cr_assert_eq(asked->progress[asked->offer.device].rows, 0);
        for (uint32_t d = 0; d < 3; d++)
            at_work += asked->progress[d].rows > 0;
        cr_assert(at_work > 0 || asked->offer.elapsed_ns > 0);
    }
    /* The first offer goes to the third device, which has no band. No time has passed, and the other two devices
     * have their bands. */
    const struct asked *first = &cue.asked[0];
    cr_assert_eq(first->offer.device, 2);
    cr_assert_eq(first->offer.first_row, 60);
    cr_assert_eq(first->offer.rows, 30);
    cr_assert_eq(first->offer.elapsed_ns, 0);
    cr_assert_eq(first->progress[0].rows, 30);
    cr_assert_eq(first->progress[1].first_row, 30);
    cr_assert_eq(first->progress[0].since_ns, 0);
    /* Ten rows take this device 50 + 10 + 10 + 10 us. */
    const struct asked *second = &cue.asked[1];
    cr_assert_eq(second->offer.device, 2);
    cr_assert_eq(second->offer.elapsed_ns, 80000);
    cr_assert_eq(second->offer.rows, 20);
    cr_assert_eq(second->progress[0].since_ns, 80000);
    cr_assert_eq(second->progress[1].rows, 30);
    cue_end(&play);
}

Test(engine_pool, a_small_answer_is_raised_where_bands_would_become_too_many)
{
    struct play play = cue_play(split_all_pool, rows_each(1), &play_trio, 1009, 2, 6);
    for (const struct rig_report *report = NULL; (report = rig_next_report(play.rig, report));) {
        cr_assert_leq(report->frame.band_count, COX_BANDS_MAX);
        for (uint32_t b = 0; b < report->frame.band_count; b++)
            cr_assert_leq(report->bands[b].rows, 1009 / COX_BANDS_MAX + 1, "no device gets a large rest");
    }
    cue_end(&play);
}

static void split_full(const struct cox_sched_view *view, struct cox_split *out)
{
    for (uint32_t b = 0; b < COX_BANDS_MAX; b++)
        out->bands[out->band_count++] = (struct cox_band){b % view->device_count, b, 1};
    out->pool_first_row = COX_BANDS_MAX;
    out->pool_rows = view->rows - COX_BANDS_MAX;
}

Test(engine_pool, a_split_of_as_many_bands_as_there_may_be_leaves_one_chunk)
{
    struct play play = cue_play(split_full, rows_each(10), &play_trio, 200, 2, 3);
    cr_assert_eq(rig_report_at(play.rig, 0)->frame.band_count, COX_BANDS_MAX + 1);
    cue_end(&play);
}

/* ---- answers ---- */

static uint32_t answer_only_device_1(const struct cox_sched_view *view, const struct cox_chunk_request *offer)
{
    return offer->device == 1 ? rows_each(10)(view, offer) : 0;
}

Test(engine_pool, who_declines_is_not_asked_again_for_the_frame)
{
    struct play play = cue_play(split_all_pool, answer_only_device_1, &play_trio, 100, 1, 3);
    uint32_t declined[3] = {0};
    for (uint32_t i = 0; i < cue.asked_count; i++)
        if (cue.asked[i].answer == 0) {
            cr_assert_not(cue.asked[i].offer.last, "it must not have to take all rows while device 1 takes some");
            declined[cue.asked[i].frame] += 1;
        }
    for (uint32_t f = 0; f < 3; f++)
        cr_assert_eq(declined[f], 2, "frame %u: devices 0 and 2 once each", f);
    cue_end(&play);
}

Test(engine_pool, when_everybody_declines_the_last_one_gets_all_rows_and_the_log_names_policy_and_frame)
{
    struct play play = cue_play(split_all_pool, rows_each(0), &play_trio, 100, 2, 3);
    cr_assert_eq(cue.asked_count, 9);
    uint32_t last = 0;
    for (uint32_t i = 0; i < 9; i++)
        last += cue.asked[i].offer.last;
    cr_assert_eq(last, 3);
    cr_assert(rig_logged(play.rig, "policy cue, frame 0"), "%s", rig_log(play.rig));
    cr_assert(rig_logged(play.rig, "0+100 offered"), "%s", rig_log(play.rig));
    cue_end(&play);
}

Test(engine_pool, who_is_at_work_lets_the_others_decline)
{
    struct play play = cue_play(split_with_tail, rows_each(0), &play_trio, 90, 1, 3);
    /* Device 2 declines at once. Then device 0 or 1 declines, whichever finishes first. The last one must take all
     * rows. */
    cr_assert_eq(cue.asked_count, 9);
    for (uint32_t f = 0; f < 3; f++)
        for (uint32_t i = 0; i < 3; i++)
            cr_assert_eq(cue.asked[3 * f + i].offer.last, i == 2);
    cue_end(&play);
}

static uint32_t answer_too_much(const struct cox_sched_view *view, const struct cox_chunk_request *offer)
{
    (void)view;
    return offer->rows + 1;
}

static void split_overlapping(const struct cox_sched_view *view, struct cox_split *out)
{
    if (view->frame < 2) {
        split_with_tail(view, out);
        return;
    }
    out->band_count = 2;
    out->bands[0] = (struct cox_band){0, 0, 50};
    out->bands[1] = (struct cox_band){1, 40, view->rows - 40};
    out->pool_first_row = 10;
    out->pool_rows = 20;
}

Test(engine_pool, what_goes_wrong_in_every_frame_is_logged_ever_more_rarely)
{
    struct play play = cue_play(split_all_pool, answer_too_much, &play_trio, 90, 1, 99);
    cr_assert_eq(rig_logged_times(play.rig, "which is invalid"), 7, "the 1st, 2nd, 4th ... 64th");
    cue_end(&play);
}

Test(engine_pool, a_refused_split_is_replaced_by_the_last_good_one_with_its_pool)
{
    struct play play = cue_play(split_overlapping, rows_each(10), &play_trio, 90, 1, 102);
    for (const struct rig_report *report = NULL; (report = rig_next_report(play.rig, report));)
        cr_assert_eq(report->frame.total.pool_rows, 30, "frame %u", (unsigned)report->frame.index);
    cr_assert_eq(rig_logged_times(play.rig, "split refused"), 7);
    cr_assert(rig_logged(play.rig, "policy cue, frame 2: split refused"), "%s", rig_log(play.rig));
    cr_assert(rig_logged(play.rig, "the split: 0+50 on 0, 40+50 on 1, pool 10+20"), "%s", rig_log(play.rig));
    cue_end(&play);
}

/* ---- several frames in flight ---- */

/* Frame 0 has only a pool, frame 1 has a band for each device. */
static void split_pool_then_bands(const struct cox_sched_view *view, struct cox_split *out)
{
    if (view->frame % 2 == 0) {
        split_all_pool(view, out);
        return;
    }
    const uint32_t part = view->rows / view->device_count;
    for (uint32_t d = 0; d < view->device_count; d++)
        out->bands[out->band_count++] = (struct cox_band){d, d * part,
                                                          d + 1 < view->device_count ? part : view->rows - d * part};
}

Test(engine_pool, a_later_frame_waits_for_the_pool_of_an_earlier_one_on_every_device_that_may_take_of_it)
{
    const struct fake_params params = {
        .device_count = 2,
        .devices = {{.name = "quick", .ns_per_row = 1e3}, {.name = "slow", .ns_per_row = 4e3}},
        .held = true};
    struct play play = cue_play(split_pool_then_bands, rows_each(10), &params, 100, 2, 0);
    play_submit(&play, 0, 2);
    cr_assert(fake_await_running(play.fake, 2));
    fake_release(play.fake);
    cox_session_wait(play.session);
    play_check(&play, 0, 2);
    const struct rig_report *pool = rig_report_at(play.rig, 0), *after = rig_report_at(play.rig, 1);
    cr_assert_eq(pool->frame.band_count, 10);
    uint64_t last_submit = 0, end[2] = {0};
    for (uint32_t b = 0; b < 10; b++) {
        const struct cox_band_report *band = &pool->bands[b];
        last_submit = band->submit_ns > last_submit ? band->submit_ns : last_submit;
        end[band->device] = band->end_ns > end[band->device] ? band->end_ns : end[band->device];
    }
    for (uint32_t b = 0; b < 2; b++) {
        /* The devices get the next frame's bands as soon as the pool is empty, while they still run their chunks. */
        cr_assert_eq(after->bands[b].submit_ns, last_submit, "device %u got it before or after that", b);
        cr_assert_eq(after->bands[b].end_ns - after->bands[b].wall_ns, end[b], "device %u idled", b);
    }
    cue_end(&play);
}

static uint32_t answer_not_device_1(const struct cox_sched_view *view, const struct cox_chunk_request *offer)
{
    return offer->device == 1 && !offer->last ? 0 : rows_each(10)(view, offer);
}

Test(engine_pool, who_has_declined_goes_on_with_the_next_frame)
{
    const struct fake_params params = {.device_count = 2, .devices = {{.ns_per_row = 10e3}, {.ns_per_row = 1e3}}};
    struct play play = cue_play(split_pool_then_bands, answer_not_device_1, &params, 100, 2, 0);
    fake_hold(play.fake);
    play_submit(&play, 0, 2);
    cr_assert(fake_await_running(play.fake, 2), "device 1 does not work");
    fake_release(play.fake);
    cox_session_wait(play.session);
    const struct rig_report *pool = rig_report_at(play.rig, 0), *after = rig_report_at(play.rig, 1);
    for (uint32_t b = 0; b < pool->frame.band_count; b++)
        cr_assert_eq(pool->bands[b].device, 0);
    cr_assert_lt(after->bands[1].end_ns, pool->frame.total.end_ns);
    play_check(&play, 0, 2);
    cue_end(&play);
}

Test(engine_pool, pools_of_frames_in_flight_are_handed_out_one_after_the_other)
{
    struct play play = cue_play(split_all_pool, rows_each(10), &play_trio, 100, 4, 0);
    play_submit(&play, 0, 4);
    cox_session_wait(play.session);
    for (uint32_t i = 1; i < cue.asked_count; i++)
        cr_assert_geq(cue.asked[i].frame, cue.asked[i - 1].frame, "offer %u", i);
    cue_end(&play);
}

/* ---- devices that compute inside the enqueue call ---- */

Test(engine_pool, every_other_device_is_at_work_before_one_computes_inside_the_enqueue_call)
{
    const struct fake_params params = {
        .device_count = 3,
        .devices = {{.name = "inside", .fixed_ns = 50e3, .ns_per_row = 10e3, .inside_submit = true},
                    {.name = "a", .type = COX_DEVICE_GPU, .fixed_ns = 50e3, .ns_per_row = 5e3},
                    {.name = "b", .type = COX_DEVICE_GPU, .fixed_ns = 20e3, .ns_per_row = 5e3}}};
    struct play play = cue_open(split_all_pool, rows_each(10), &params, 200,
                                &(const struct cox__session_spec){.in_flight = 2});
    play_frames(&play, 0, 3, 3);
    fake_clear_record(play.fake);
    cue.asked_count = 0;
    play_submit(&play, 3, 6);
    for (uint32_t i = 0; i < 3; i++) { /* this thread moves the engine */
        cox_session_wait(play.session);
        cr_assert_eq(cox__session_run(play.session, RIG_FRAME(play.frames, i)), COX_OK);
    }
    cox_session_wait(play.session);
    for (uint32_t i = 0; i < cue.asked_count; i++)
        if (cue.asked[i].offer.device == 0)
            cr_assert(cue.asked[i].progress[1].rows && cue.asked[i].progress[2].rows, "offer %u", i);
    size_t count;
    struct fake_record *record = fake_take_record(play.fake, &count);
    uint32_t under_way[3] = {0}, unflushed = 0, inside = 0, fed = 0;
    for (size_t i = 0; i < count; i++) {
        const struct fake_record *step = &record[i];
        if (step->step == FAKE_STEP_SUBMIT && step->device == 0) {
            cr_assert_eq(unflushed, 0, "step %zu", i);
            fed += under_way[1] > 0 && under_way[2] > 0;
            inside++;
        } else if (step->step == FAKE_STEP_SUBMIT) {
            unflushed |= 1u << step->device;
            under_way[step->device]++;
        } else if (step->step == FAKE_STEP_FLUSH) {
            unflushed &= ~(1u << step->device);
        } else if (step->step == FAKE_STEP_END && step->device) {
            under_way[step->device]--;
        }
    }
    cr_assert_geq(inside, 12);
    /* The last chunk may leave nothing for the other devices. */
    cr_assert_geq(fed + 1, inside, "%u of %u", fed, inside);
    free(record);
    cue_end(&play);
}

/* ---- devices that fail ---- */

static void play_failing(enum fake_fault_kind kind, uint32_t device, uint32_t skip, uint32_t in_flight)
{
    struct play play = cue_play(split_at_random, answer_at_random, &play_trio, 120, in_flight, 0);
    cue.seed = skip * 7 + in_flight;
    FAKE_FAULT(play.fake, .kind = kind, .device = device, .skip = skip, .status = COX_E_DEVICE_LOST);
    play_frames(&play, 0, 12, 3);
    uint32_t unfinished = 0;
    for (uint32_t i = 0; i < cue.measured_count; i++)
        if (cue.measured[i].flags & COX_MEASURED_UNFINISHED) {
            unfinished++;
            cr_assert_eq(cue.measured[i].device, device);
            cr_assert_gt(cue.measured[i].wall_ns, 0);
        }
    cr_assert_eq(unfinished > 0, rig_info(play.session).devices[device].lost && kind != FAKE_SUBMIT_FAILS);
    cue_end(&play);
}

Test(engine_pool, a_device_lost_at_any_moment_costs_no_row)
{
    for (uint32_t device = 0; device < 3; device++)
        for (uint32_t skip = 0; skip < 24; skip++) {
            play_failing(FAKE_SUBMIT_FAILS, device, skip, 1 + skip % 4);
            play_failing(FAKE_EVENT_FAILS, device, skip, 1 + skip % 4);
            play_failing(FAKE_DEVICE_DIES, device, skip, 1 + skip % 4);
        }
}

static uint32_t answer_first_comer_only(const struct cox_sched_view *view, const struct cox_chunk_request *offer)
{
    return offer->rows == view->rows ? 10 : offer->last ? offer->rows : 0;
}

Test(engine_pool, rows_that_everybody_has_declined_are_not_stranded_by_the_loss_of_who_was_at_work)
{
    /* Device 0 takes ten rows and the others decline. Then it fails, and its rows go to another device while the
     * pool is not empty. */
    struct play play = cue_play(split_all_pool, answer_first_comer_only, &play_trio, 100, 1, 0);
    FAKE_FAULT(play.fake, .kind = FAKE_EVENT_FAILS, .device = 0);
    play_frames(&play, 0, 3, 3);
    uint32_t again = 0;
    for (uint32_t i = 0; i < cue.asked_count && cue.asked[i].frame == 0; i++)
        again += cue.asked[i].offer.last;
    cr_assert_eq(again, 1);
    cue_end(&play);
}

Test(engine_pool, when_every_device_is_lost_the_frames_end_with_an_error)
{
    for (uint32_t in_flight = 1; in_flight <= 4; in_flight++)
        for (uint32_t skip = 0; skip < 6; skip++) {
            struct play play = cue_play(split_at_random, answer_at_random, &play_trio, 120, in_flight, 0);
            cue.seed = skip;
            for (uint32_t d = 0; d < 3; d++)
                FAKE_FAULT(play.fake, .kind = FAKE_DEVICE_DIES, .device = d, .skip = d == 2 ? skip : d);
            uint32_t accepted = 0;
            while (accepted < 200 && rig_submit(play.frames, play.session, accepted, false) == COX_OK)
                accepted++;
            cox_session_wait(play.session);
            cr_assert_eq(rig_done_count(play.rig), accepted);
            cr_assert_eq(rig_submit(play.frames, play.session, 0, false), COX_E_NO_DEVICE);
            cue_end(&play);
        }
}

/* ---- contracts ---- */

Test(engine_pool, rows_in_place_are_handed_out_once_and_a_failed_chunk_is_an_error)
{
    for (uint32_t fails = 0; fails < 2; fails++) {
        cue_reset(split_all_pool, rows_each(10));
        struct play play = play_in_place(&play_trio, &cue_policy);
        if (fails)
            FAKE_FAULT(play.fake, .kind = FAKE_EVENT_FAILS, .device = 1);
        play_run_in_place(&play, fails ? COX_E_DEVICE_LOST : COX_OK);
        play_end(&play);
    }
}

Test(engine_pool, a_reduction_counts_every_chunk_once)
{
    cue_reset(split_at_random, answer_at_random);
    struct play play = play_count(&play_trio, &cue_policy, true);
    for (int i = 0; i < 30; i++) {
        snprintf(play.what, sizeof play.what, "run %d", i);
        if (i == 20)
            FAKE_FAULT(play.fake, .kind = FAKE_EVENT_FAILS, .device = 1);
        play_run_count(&play);
    }
    play_end(&play);
}

Test(engine_pool, a_chunk_is_cut_to_what_the_device_can_hold)
{
    const struct fake_params params = {.device_count = 1, .devices = {{.ns_per_row = 1e3, .max_rows = 17}}};
    struct play play = cue_play(split_all_pool, rows_each(UINT32_MAX), &params, 100, 1, 3);
    cr_assert_eq(rig_report_at(play.rig, 0)->frame.band_count, 6);
    cr_assert_eq(cue.asked_count, 3, "the policy is asked once for all pieces");
    cue_end(&play);
}

/* ---- what the policy learns ---- */

static double watts(void *user) /* the joules of a constant 10 W */
{
    const struct play *play = user;
    return (double)fake_now(play->fake) * 1e-9 * 10;
}

Test(engine_pool, a_frame_is_measured_in_order_with_the_energy_of_the_time_that_is_its_own)
{
    for (uint32_t in_flight = 1; in_flight <= 3; in_flight++) {
        struct play play;
        play = cue_open(split_with_tail, rows_each(10), &play_trio, 240,
                        &(const struct cox__session_spec){.in_flight = in_flight, .meter = watts, .meter_user = &play});
        fake_hold(play.fake); /* so that the first frames run together however busy this machine is */
        play_submit(&play, 0, in_flight);
        fake_release(play.fake);
        play_submit(&play, in_flight, 3);
        cox_session_wait(play.session);
        play_frames(&play, 3, 9, 3);
        cr_assert_eq(cue.frame_count, 9);
        uint64_t before = 0;
        for (uint32_t i = 0, f = 0; i < rig_report_count(play.rig); i++) {
            const struct cox_frame_report *report = &rig_report_at(play.rig, i)->frame;
            if (report->warmup || report->shadow) {
                cr_assert_lt(report->joules, 0);
                continue;
            }
            const struct cox_frame_measurement *measured = &cue.frames[f++];
            const uint64_t begin = report->total.start_ns > before ? report->total.start_ns : before;
            cr_assert_eq(measured->wall_ns, report->total.end_ns - report->total.start_ns);
            cr_assert_eq(measured->period_ns, report->total.end_ns - begin);
            cr_assert_float_eq(measured->joules, (double)measured->period_ns * 1e-8, 1e-9);
            cr_assert_float_eq(report->joules, measured->joules, 0);
            before = report->total.end_ns;
        }
        if (in_flight > 1)
            cr_assert_lt(cue.frames[1].period_ns, cue.frames[1].wall_ns);
        cue_end(&play);
    }
}

static double broken_meter(void *user)
{
    uint32_t *reads = user;
    return (*reads)++ % 2 ? -1 : 5;
}

Test(engine_pool, a_meter_that_cannot_be_read_is_energy_unknown)
{
    uint32_t reads = 0;
    struct play play = cue_open(split_with_tail, rows_each(10), &play_trio, 240,
                                &(const struct cox__session_spec){
                                    .in_flight = 1, .no_warmup = true, .meter = broken_meter, .meter_user = &reads});
    play_frames(&play, 0, 3, 3);
    for (uint32_t f = 0; f < 3; f++)
        cr_assert_lt(cue.frames[f].joules, 0);
    cr_assert_eq(reads, 6);
    cue_end(&play);
}

static void split_with_predictions(const struct cox_sched_view *view, struct cox_split *out)
{
    split_with_tail(view, out);
    out->predicted_ns = 700;
    out->rejected_ns = 900;
    for (uint32_t d = 0; d < view->device_count; d++)
        out->device_ns[d] = 100 + d;
    out->bands[1].rows = view->rows / 3 - 10; /* device 1 has two bands, which are measured together */
    out->bands[2] = (struct cox_band){1, 2 * (view->rows / 3) - 10, 10};
    out->band_count = 3;
}

Test(engine_pool, reports_hold_what_was_expected_and_what_was_handed_out)
{
    struct play play = cue_play(split_with_predictions, rows_each(10), &play_trio, 240, 1, 3);
    const struct rig_report *report = rig_report_at(play.rig, 1);
    cr_assert_eq(report->frame.total.predicted_ns, 700);
    cr_assert_eq(report->frame.total.rejected_ns, 900);
    cr_assert_eq(report->frame.total.pool_rows, 80);
    cr_assert_eq(report->bands[0].predicted_ns, 100);
    cr_assert_eq(report->bands[1].predicted_ns, 0);
    cr_assert_eq(report->bands[2].predicted_ns, 0);
    for (uint32_t b = 0; b < report->frame.band_count; b++) {
        cr_assert_eq(report->bands[b].on_demand, b >= 3);
        if (b >= 3)
            cr_assert_eq(report->bands[b].predicted_ns, 1010);
    }
    cue_end(&play);
}

Test(engine_pool, a_device_that_calls_back_late_is_asked_in_time_for_large_and_small_bands_alike)
{
    /* A row in a chunk of ten costs ten times as much as a row in the large band. A policy that used the mean for
     * both would wait for the large band long after its end. */
    const struct fake_params params = {.device_count = 1,
                                       .devices = {{.type = COX_DEVICE_GPU, .fixed_ns = 100e3, .ns_per_row = 1e3}}};
    struct cox_policy policy = cue_policy;
    rig_split_count = 1;
    rig_splits[0] = (struct cox_split){.band_count = 1, .bands = {{0, 0, 880}}, .pool_first_row = 880, .pool_rows = 20};
    policy.split = rig_policy.split;
    struct play play =
        cue_open(split_with_tail, rows_each(10), &params, 900,
                 &(const struct cox__session_spec){.custom_policy = &policy, .in_flight = 1, .no_warmup = true});
    FAKE_FAULT(play.fake, .kind = FAKE_POST_LATE, .count = UINT32_MAX, .delay_ns = 20000000);
    play_frames(&play, 0, 30, 3);
    for (uint32_t i = 10; i < rig_report_count(play.rig); i++)
        cr_assert_lt(play_frame_ns(rig_report_at(play.rig, i)), 1300e3, "frame %u: 980 + 2 * 110 us", i);
    cue_end(&play);
}

Test(engine_pool, a_device_s_first_band_is_told_apart_and_profiles_go_to_the_policy_and_come_from_it)
{
    struct cox_device_profile profiles[COX_DEVICES_MAX] = {
        {.frames = 3, .single_device_ns = 7}, {.frames = 4}, {.share = 0.5}};
    struct play play = cue_play(split_with_tail, rows_each(10), &play_trio, 240, 1, 0);
    cr_assert(cox__policy_load_profile(play.session, 0, profiles));
    cr_assert_float_eq(cue.loaded[0].single_device_ns, 7, 0);
    cr_assert_float_eq(cue.loaded[2].share, 0.5, 0);
    play_frames(&play, 0, 3, 3);
    for (uint64_t f = 0; f < 3; f++) {
        uint32_t plain[3] = {0}, chunks = 0;
        for (uint32_t i = 0; i < cue.measured_count; i++)
            if (cue.measured[i].frame == f) {
                plain[cue.measured[i].device] += cue.measured[i].flags == 0;
                chunks += cue.measured[i].flags == COX_MEASURED_CHUNK;
            }
        for (uint32_t d = 0; d < 3; d++)
            cr_assert_eq(plain[d], 1, "frame %u, device %u", (unsigned)f, d);
        cr_assert_eq(chunks, 7, "eight chunks, of which one is device 2's first band");
        cr_assert_lt(cue.frames[f].joules, 0, "without a meter");
    }
    memset(profiles, 0x55, sizeof profiles);
    cr_assert(cox__policy_save_profile(play.session, 0, profiles));
    for (uint32_t d = 0; d < 3; d++) {
        cr_assert_float_eq(profiles[d].ns_per_row, d + 1, 0);
        cr_assert_float_eq(profiles[d].frames, 0, 0, "zeroed before");
    }
    cue_end(&play);
}

Test(engine_pool, a_policy_without_profiles_has_none)
{
    struct cox_device_profile profiles[COX_DEVICES_MAX] = {0};
    struct play play = play_begin(&play_trio, 90, 16, 16, 1,
                                  &(const struct cox__session_spec){.custom_policy = &rig_policy});
    cr_assert_not(cox__policy_load_profile(play.session, 0, profiles));
    cr_assert_not(cox__policy_save_profile(play.session, 0, profiles));
    play_end(&play);
}
