/* What the engine reports about its frames: frame reports, warm-up runs, and the policy's observations.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "slow_device.h"

TestSuite(engine_report, .timeout = 300);

static const struct fake_params trio = {
    .device_count = 3,
    .devices = {{.name = "a", .fixed_ns = 10e3, .ns_per_row = 2e3},
                {.name = "b", .type = COX_DEVICE_GPU, .fixed_ns = 30e3, .ns_per_row = 1e3, .no_profile = true},
                {.name = "c",
                 .type = COX_DEVICE_GPU,
                 .mode = COX_MODE_STAGED,
                 .fixed_ns = 5e3,
                 .ns_per_row = 4e3,
                 .copy_in_ns_per_row = 500,
                 .copy_out_ns_per_row = 250}},
};

enum { ROWS = 90 };
static const uint32_t thirds[][2] = {{2, 30}, {0, 20}, {1, 40}};

static void begin(const struct cox__session_spec *given)
{
    struct cox__session_spec params = *given;
    rig_split_count = 0;
    rig_add_split(3, thirds);
    params.custom_policy = params.custom_policy ? params.custom_policy : &rig_policy;
    open_rig(&trio, ROWS, 16, 8);
    open_session(&params);
}

Test(engine_report, every_frame_is_reported_with_consistent_times)
{
    for (uint32_t in_flight = 1; in_flight <= 4; in_flight++) {
        begin(&(const struct cox__session_spec){.in_flight = in_flight, .no_warmup = true});
        run_frames(0, 30);
        cr_assert_eq(rig_report_count(rig), 30);
        uint64_t previous_end = 0;
        for (uint32_t i = 0; i < 30; i++) {
            const struct cox_frame_report *frame = reported(i);
            cr_assert_eq(frame->index, i);
            cr_assert_not(frame->warmup);
            cr_assert_eq(frame->status, COX_OK);
            cr_assert_eq(frame->total.reason, COX_REASON_GIVEN);
            cr_assert_gt(frame->submit_ns, 0);
            cr_assert_leq(frame->submit_ns, frame->total.start_ns);
            cr_assert_lt(frame->total.start_ns, frame->total.end_ns);
            cr_assert_gt(frame->total.end_ns, previous_end);
            previous_end = frame->total.end_ns;
            cr_assert_eq(frame->band_count, 3);
            uint32_t row = 0;
            uint64_t last_end = 0;
            for (uint32_t b = 0; b < 3; b++) {
                const struct cox_band_report *band = &frame->bands[b];
                cr_assert_eq(band->device, thirds[b][0]);
                cr_assert_eq(band->first_row, row);
                cr_assert_eq(band->rows, thirds[b][1]);
                row += band->rows;
                cr_assert_eq(band->attempt, 0);
                cr_assert_eq(band->status, COX_OK);
                cr_assert_geq(band->submit_ns, frame->total.start_ns);
                cr_assert_leq(band->end_ns, frame->total.end_ns);
                cr_assert_eq(band->submit_ns + band->queue_ns + band->wall_ns, band->end_ns);
                last_end = band->end_ns > last_end ? band->end_ns : last_end;
            }
            cr_assert_eq(last_end, frame->total.end_ns);
            /* A band's wall time does not include waiting for the previous band. */
            cr_assert_eq(frame->bands[1].wall_ns, 10000u + 20 * 2000);
            cr_assert_eq(frame->bands[1].kernel_ns, 10000u + 20 * 2000);
            cr_assert_eq(frame->bands[1].copy_in_ns, 0);
            cr_assert_eq(frame->bands[2].wall_ns, 30000u + 40 * 1000);
            cr_assert_eq(frame->bands[2].kernel_ns, 0, "it has no profile");
            cr_assert_eq(frame->bands[0].kernel_ns, 5000u + 30 * 4000);
            cr_assert_eq(frame->bands[0].copy_in_ns, 30u * 500);
            cr_assert_eq(frame->bands[0].copy_out_ns, 30u * 250);
            if (in_flight == 1)
                cr_assert_eq(frame->bands[0].wall_ns, 5000u + 30 * 4750);
            else if (i > 0)
                cr_assert_leq(frame->bands[0].wall_ns, 5000u + 30 * 4750);
        }
        close_rig();
    }
}

static uint32_t reports_at_done[64], done_count;

static void count_reports(void *user, uint64_t frame, cox_status status)
{
    (void)user, (void)status;
    reports_at_done[frame] = rig_report_count(rig);
    done_count++;
}

Test(engine_report, a_frame_is_reported_before_its_callback_runs)
{
    begin(&(const struct cox__session_spec){.in_flight = 3, .no_warmup = true});
    for (uint32_t i = 0; i < 20; i++) {
        cox_buffer *const buffers[] = {frames->in[i % 8], frames->out[i % 8]};
        cr_assert_eq(cox__session_submit(session,
                                         &(const struct cox__frame_spec){
                                             .buffers = buffers, .buffer_count = 2, .params = &frames->params[i % 8]},
                                         count_reports, NULL),
                     COX_OK);
    }
    cox_session_wait(session);
    cr_assert_eq(done_count, 20);
    for (uint32_t i = 0; i < 20; i++)
        cr_assert_eq(reports_at_done[i], i + 1);
    close_rig();
}

Test(engine_report, warm_up_runs_a_slice_on_every_device_then_the_whole_frame_on_each_and_tells_its_time)
{
    begin(&(const struct cox__session_spec){.in_flight = 2});
    run_frames(0, 2);
    uint32_t runs[3] = {0}, delivered = 0;
    for (uint32_t i = 0; i < rig_report_count(rig); i++) {
        const struct cox_frame_report *frame = reported(i);
        if (!frame->warmup) {
            cr_assert_eq(frame->index, delivered++);
            continue;
        }
        cr_assert_eq(delivered, 0, "a warm-up run after a frame");
        cr_assert_eq(frame->index, 0);
        cr_assert_eq(frame->total.reason, COX_REASON_WARMUP);
        if (i == 0) {
            cr_assert_eq(frame->band_count, 3, "all devices compile at once");
            continue;
        }
        cr_assert_eq(frame->band_count, 1);
        cr_assert_eq(frame->bands[0].rows, 90);
        runs[frame->bands[0].device]++;
    }
    cr_assert_eq(delivered, 2);
    for (uint32_t d = 0; d < 3; d++)
        cr_assert_geq(runs[d], 2, "the shortest of several runs counts");
    const struct cox_session_info info = rig_info(session);
    cr_assert_eq(info.frames_done, 2, "warm-up runs are not frames");
    cr_assert_eq(info.devices[0].single_device_ns, 10000u + 90 * 2000);
    cr_assert_eq(info.devices[1].single_device_ns, 30000u + 90 * 1000);
    cr_assert_eq(info.devices[2].single_device_ns, 5000u + 90 * 4750);
    cr_assert_eq(rig_done_count(rig), 2);
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_str_empty(rig_check(frames, i));
    close_rig();
}

/* ---- what a policy observes ---- */

static struct cox_measurement observed[512];
static uint32_t observed_count;
static struct cox_sched_view views[64];
static struct cox_sched_device view_devices[64][3];
static uint32_t view_count;

static cox_status look(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    views[view_count] = *view;
    memcpy(view_devices[view_count++], view->devices, sizeof view_devices[0]);
    return rig_policy.split(state, view, out);
}

static void listen(void *state, const struct cox_measurement *measurement)
{
    (void)state;
    observed[observed_count++] = *measurement;
}

static cox_status init_with(void *state, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    ++*(uint32_t *)options->user;
    return rig_policy_init(state, view, options);
}

Test(engine_report, a_policy_gets_the_pointer_of_the_application)
{
    struct cox_policy policy = rig_policy;
    policy.init = init_with;
    uint32_t inits = 0;
    begin(&(const struct cox__session_spec){.custom_policy = &policy,
                                            .policy_options = &(const struct cox_policy_options){.user = &inits}});
    run_frames(0, 2);
    cr_assert_eq(inits, 1);
    close_rig();
}

Test(engine_report, a_policy_observes_every_band_once_in_completion_order)
{
    struct cox_policy policy = rig_policy;
    policy.split = look;
    policy.observe = listen;
    begin(&(const struct cox__session_spec){.custom_policy = &policy, .in_flight = 3, .min_band_rows = 5});
    FAULT(.kind = FAKE_SLOW, .device = 0, .skip = 16, .count = 2, .factor = 3);
    run_frames(0, 20);
    cr_assert_eq(view_count, 20);
    for (uint32_t i = 0; i < 20; i++) {
        cr_assert_eq(views[i].frame, i);
        cr_assert_eq(views[i].rows, 90);
        cr_assert_eq(views[i].row_alignment, 1);
        cr_assert_eq(views[i].min_band_rows, 5);
        cr_assert_eq(views[i].device_count, 3);
        cr_assert_eq(view_devices[i][0].single_device_ns, 10000u + 90 * 2000, "known before the first split");
        for (uint32_t d = 0; d < 3; d++)
            cr_assert(view_devices[i][d].usable && view_devices[i][d].hint > 0);
    }
    cr_assert_eq(observed_count, 60, "warm-up runs are not observed");
    uint32_t bands[20] = {0}, slow = 0;
    for (uint32_t i = 0; i < 60; i++) {
        const struct cox_measurement *one = &observed[i];
        cr_assert_lt(one->frame, 20);
        cr_assert_eq(bands[one->frame] & 1u << one->device, 0);
        bands[one->frame] |= 1u << one->device;
        cr_assert_gt(one->wall_ns, 0);
        if (one->device == 0) {
            cr_assert(one->wall_ns == 50000 || one->wall_ns == 150000, "%llu", (unsigned long long)one->wall_ns);
            slow += one->wall_ns == 150000;
        }
    }
    for (uint32_t i = 0; i < 20; i++)
        cr_assert_eq(bands[i], 7);
    cr_assert_eq(slow, 2);
    close_rig();
}

/* The thread is in a call for the third device while the first one ends. */
Test(engine_report, a_policy_observes_how_late_an_end_was_noticed)
{
    struct cox_policy policy = rig_policy;
    policy.observe = listen;
    begin(&(const struct cox__session_spec){.custom_policy = &policy, .in_flight = 1, .no_warmup = true});
    FAULT(.kind = FAKE_SUBMIT_BLOCKS, .device = 2, .skip = 5, .count = 1, .delay_ns = 10000000);
    run_frames(0, 20);
    cr_assert_eq(observed_count, 60);
    uint32_t late = 0;
    for (uint32_t i = 0; i < 60; i++) {
        const struct cox_measurement *one = &observed[i];
        const struct cox_frame_report *frame = reported(one->frame);
        uint32_t b = 0;
        while (frame->bands[b].device != one->device)
            b++;
        cr_assert_eq(one->late_ns, frame->bands[b].noticed_ns - frame->bands[b].end_ns);
        late += one->late_ns > 5000000;
    }
    cr_assert(late == 1 || late == 2, "%u", late);
    close_rig();
}

Test(engine_report, a_lost_device_is_shown_as_unusable_to_the_policy)
{
    struct cox_policy policy = rig_policy;
    policy.split = look;
    begin(&(const struct cox__session_spec){.custom_policy = &policy, .in_flight = 1, .no_warmup = true});
    FAULT(.kind = FAKE_DEVICE_DIES, .device = 1, .skip = 2);
    run_frames(0, 6);
    for (uint32_t i = 0; i < 6; i++)
        cr_assert_eq(view_devices[i][1].usable, i < 3);
    close_rig();
}

Test(engine_report, every_built_in_policy_runs_and_follows_a_device_that_becomes_slow)
{
    for (uint32_t p = 0; cox_policy_at(p); p++) {
        const char *name = cox_policy_at(p)->name;
        const bool fixed = !strcmp(name, "static") || !strcmp(name, "single");
        check_slow_device(&(const struct cox__session_spec){.policy = name}, name, !fixed);
    }
}
