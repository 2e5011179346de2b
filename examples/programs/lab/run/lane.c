/* Sessions and their frames.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interrupt.h"
#include "lab/commands.h"
#include "state.h"

#include <inttypes.h>
#include <string.h>

/* A hash of the bands at the start of the frame, without rows that were handed out later. */
static uint64_t hash_split(const struct cox_frame_report *report)
{
    uint64_t hash = 14695981039346656037u;

    for (uint32_t b = 0; b < report->band_count; b++) {
        const struct cox_band_report *band = &report->bands[b];

        if (!band->on_demand && band->attempt == 0)
            hash = (hash ^
                    ((uint64_t)band->device << 40 ^ (uint64_t)band->first_row << 8 ^ band->rows)) *
                   1099511628211u;
    }
    return hash;
}

void lab__run_report(void *user, const struct cox_frame_report *report)
{
    struct lane *lane = user;

    if (lane->recorded)
        lab_session_frame(lane->recorded, report);

    if (report->warmup || report->shadow)
        return;

    uint64_t from = lane->last_end_ns;
    double ns = 0;
    if (report->total.start_ns > from)
        from = report->total.start_ns;
    if (report->total.end_ns > from)
        ns = (double)(report->total.end_ns - from);
    const double latency_ns = (double)(report->delivered_ns - report->submit_ns);

    lane->last_end_ns = report->total.end_ns;
    memset(lane->rows, 0, sizeof lane->rows);
    memset(lane->wall_ns, 0, sizeof lane->wall_ns);

    for (uint32_t b = 0; b < report->band_count; b++) {
        const struct cox_band_report *band = &report->bands[b];

        if (band->status == COX_OK)
            lane->rows[band->device] += band->rows;
        lane->wall_ns[band->device] += band->wall_ns;
    }
    if (lane->frames) {
        lane->frames[report->index] = (struct lab_run_frame){
            .ns = ns,
            .joules = report->joules,
            .latency_ns = latency_ns,
            .split = hash_split(report),
            .failed = report->status != COX_OK,
            .late = report->deadline_ns && latency_ns > (double)report->deadline_ns};
        return;
    }

    if (report->status == COX_OK && lane->turn_count < LAB__RUN_BLOCK_MAX)
        lane->turn_ns[lane->turn_count++] = ns;
}

/* Nothing to do: the report has everything. */
static void on_done(void *user, uint64_t frame, cox_status status)
{
    (void)user, (void)frame, (void)status;
}

/* Without a device the others would do its rows. */
static bool all_joined(const struct run *run, const struct lane *lane)
{
    struct cox_session_info info;
    uint32_t joined = 0;
    cox_session_info(lane->session, &info);

    for (uint32_t d = 0; d < info.device_count; d++)
        if (info.devices[d].state != COX_DEVICE_ABSENT)
            joined |= UINT32_C(1) << info.devices[d].device;

    for (uint32_t d = 0; d < run->device_count; d++)
        if (!(joined >> d & 1))
            return lab_fail("device %u (%s) cannot take part; choose devices with --devices", d,
                            run->devices[d].name);
    return true;
}

void lab__run_note_absences(struct run *run, const struct lane *lane)
{
    struct cox_session_info info;
    cox_session_info(lane->session, &info);

    for (uint32_t d = 0; d < info.device_count; d++) {
        const uint32_t bit = UINT32_C(1) << d;
        if (!info.devices[d].lost || run->absences & bit)
            continue;

        run->absences |= bit;
        lab_fail("device %u (%s) failed during the run: other devices did some of its rows, and "
                 "its figures are wrong",
                 d, run->devices[d].name);
    }
}

bool lab__run_open_lane(struct run *run, struct lane *lane, const struct cox_policy *policy)
{
    const struct lab_run_options *options = run->options;
    struct cox_session_params params = *lab_kernel_session(run->kernel);

    params.custom_policy = policy;
    params.policy_options = &(const struct cox_policy_options){.objective = options->objective,
                                                               .deadline_ns = options->deadline_ns};
    params.in_flight = options->in_flight;
    params.no_profile = true;
    params.report = lab__run_report;
    params.report_user = lane;
    if (run->command->energy) {
        params.meter = lab_energy_joules;
        params.meter_user = run->command->energy;
    }

    cox_status status = cox_session_create(run->runtime, &params, &lane->session);
    if (status)
        return lab_fail("policy %s: %s", policy->name, cox_status_text(status));

    return all_joined(run, lane);
}

bool lab__run_is_over(const struct run *run)
{
    return run->failed || lab__run_interrupted();
}

bool lab__run_frames(struct run *run, struct lane *lane, uint64_t count)
{
    for (uint64_t i = 0; i < count && !lab__run_is_over(run); i++) {
        struct cox_frame frame = lab_kernel_frame(run->kernel, lane->number, lane->submitted++);

        cox_status status;

        if (run->options->in_flight == 1)
            status = cox_session_run(lane->session, &frame);
        else
            status = cox_session_submit(lane->session, &frame, on_done, lane);

        if (status == COX_E_NO_DEVICE || status == COX_E_INVALID || status == COX_E_NOMEM)
            run->failed = !lab_fail("a frame: %s", cox_status_text(status));
    }

    if (run->options->in_flight != 1)
        cox_session_wait(lane->session);
    lab_store_write(run->command->store);
    return !lab__run_is_over(run);
}

bool lab__run_checked(struct run *run, struct lane *lane, uint64_t count, const char *name)
{
    const uint64_t first = lane->submitted;
    char why[240];

    lane->turn_count = 0;
    lab_kernel_spoil(run->kernel, lane->number);

    if (!lab__run_frames(run, lane, count))
        return false;

    bool failed = !lane->frames && lane->turn_count == 0;
    for (uint64_t f = first; f < first + count && lane->frames; f++)
        failed = failed || lane->frames[f].failed;

    /* The output of a failed frame is undefined. */
    if (!run->command->user || failed)
        return true;

    lane->compared++;
    if (!lab_kernel_compare(run->kernel, lane->number, first, count, why, sizeof why) &&
        lane->different++ == 0)
        lab_fail("%s, frame %" PRIu64 ": %s from the output of device 0 alone", name,
                 first + count - 1, why);

    return true;
}
