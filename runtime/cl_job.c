/* A band on its device: submitted, asked for, measured.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cl_unit.h"

cox_status cox__cl_job_submit(struct cox__backend *base, struct cox__job *job)
{
    struct cox__unit *unit = job->unit;
    struct cox__cl_lane *lane = &unit->lanes[job->lane];
    job->failing = false;
    lane->submit_ns = cox__clock_ns();
    cox_status status = cox__cl_band_enqueue(unit, job, lane);
    if (status == COX_OK) {
        lane->callback = cox__cl_callback_arm(unit->backend, cox__cl_lane_newest(lane), job, unit->device->info.name);
        return COX_OK;
    }
    cox__cl_queue_failed(unit->shared);
    cox__cl_unit_flush(base, unit);
    if (lane->event_count) { /* what was enqueued runs: a band that fails, and not before that has ended */
        lane->failed = job->failing = true;
        return COX_OK;
    }
    cox__cl_lane_end(unit, lane);
    return status;
}

/* Time from start to end of a command. False for one that ends before it starts, starts before it was enqueued, or took longer
 * than the band did by the host's clock. */
static bool profile_one(const struct cox__unit *unit, cl_event event, uint64_t most_ns, uint64_t *ns)
{
    cl_ulong queued = 0, start = 0, end = 0;
    const struct cox__guard_call call = cox__cl_call(unit);
    const bool unknown = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, sizeof queued, &queued, NULL) ||
                         clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL) ||
                         clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    cox__cl_returned(&call);
    if (unknown)
        return false;
    if (!start || start < queued || end < start || end - start > most_ns)
        return false;
    *ns = end - start;
    return true;
}

/* Sum over the events of a kind, which one queue runs one after the other. 0 if there are none, or it makes no sense. */
static uint64_t profile(const struct cox__unit *unit, const struct cox__cl_lane *lane, enum cox__cl_command kind,
                        uint64_t most_ns)
{
    uint64_t sum = 0;
    for (uint32_t e = 0; e < lane->event_count; e++) {
        uint64_t ns;
        if (lane->kinds[e] != kind)
            continue;
        if (!profile_one(unit, lane->events[e], most_ns - sum, &ns))
            return 0;
        sum += ns;
    }
    return sum;
}

/* Whether all commands of the lane's band have ended, and `*newest_ended` the last of them; notes if one of them failed. One that the
 * driver says nothing about may still be running. */
static bool ended(struct cox__unit *unit, struct cox__cl_lane *lane, bool *newest_ended)
{
    bool all = true;
    *newest_ended = false;
    for (uint32_t e = lane->event_count; e-- > 0;) {
        cl_int state = CL_QUEUED;
        const struct cox__guard_call call = cox__cl_call(unit);
        cl_int code = clGetEventInfo(lane->events[e], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        cox__cl_returned(&call);
        if ((code || state < 0) && !lane->failed) {
            cox__cl_check(unit->backend->log, code ? code : state, code ? "clGetEventInfo" : "a command of a band",
                          unit->device->info.name);
            cox__cl_queue_failed(unit->shared);
            lane->failed = true;
        }
        const bool over = !code && state <= CL_COMPLETE;
        *newest_ended |= over && e + 1 == lane->event_count;
        all &= over;
    }
    return all;
}

enum cox__job_state cox__cl_job_poll(struct cox__backend *base, struct cox__job *job)
{
    (void)base;
    struct cox__unit *unit = job->unit;
    struct cox__cl_lane *lane = &unit->lanes[job->lane];
    const uint64_t told_ns = cox__cl_callback_end_ns(lane->callback); /* before the device is asked */
    bool newest_ended;
    if (!ended(unit, lane, &newest_ended)) {
        if (told_ns)
            cox__cl_callback_was_early(lane->callback, told_ns, !newest_ended);
        job->failing = lane->failed;
        return COX__JOB_RUNNING;
    }
    if (lane->failed) {
        job->failing = true;
        cox__cl_lane_end(unit, lane);
        return COX__JOB_FAILED;
    }
    const uint64_t now = cox__clock_ns(), most_ns = now - lane->submit_ns;
    job->end_ns = told_ns ? told_ns : now;
    job->kernel_ns = profile(unit, lane, COX__CL_KERNEL, most_ns);
    job->copy_in_ns = unit->staged ? profile(unit, lane, COX__CL_COPY_IN, most_ns) : 0;
    job->copy_out_ns = unit->staged ? profile(unit, lane, COX__CL_COPY_OUT, most_ns) : 0;
    cox__cl_lane_end(unit, lane);
    return COX__JOB_DONE;
}

const void *cox__cl_job_partial(struct cox__backend *base, struct cox__job *job, uint32_t binding)
{
    (void)base;
    return job->unit->lanes[job->lane].partials[binding];
}
