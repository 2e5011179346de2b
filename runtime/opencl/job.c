/* Jobs: a band on its device submitted, polled and measured.
 *
 * All functions run with the engine lock held.
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"
#include "queue.h"

cox_status cox__cl_job_submit(struct cox__backend *base, struct cox__job *job)
{
    struct cox__instance *instance = job->instance;
    struct cox__cl_slot *slot = &instance->slots[job->slot];
    job->failing = false;
    slot->submit_ns = cox__clock_ns();
    cox_status status = cox__cl_band_enqueue(instance, job, slot);
    if (status == COX_OK) {
        slot->callback = cox__cl_callback_arm(instance->backend, cox__cl_slot_newest(slot), job,
                                              instance->device->info.name);
        return COX_OK;
    }
    cox__cl_queue_failed(instance->shared);
    cox__cl_instance_flush(base, instance);
    if (slot->event_count) { /* commands were enqueued and run: a band that fails, once they have ended */
        slot->failed = job->failing = true;
        return COX_OK;
    }
    cox__cl_slot_end(instance, slot);
    return status;
}

/* Time from start to end of a command. False if the profile says that the command ended before it started, started
 * before it was enqueued, or took longer than the band did by the host's clock. */
static bool profile_one(const struct cox__instance *instance, cl_event event, uint64_t most_ns, uint64_t *ns)
{
    cl_ulong queued = 0, start = 0, end = 0;
    const struct cox__driver_call call = cox__cl_call(instance);
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

/* Sum over the commands of a kind, which one queue runs one after the other. 0 if there are none, or one has no valid
 * profile. */
static uint64_t profile(const struct cox__instance *instance, const struct cox__cl_slot *slot,
                        enum cox__cl_command kind, uint64_t most_ns)
{
    uint64_t sum = 0;
    for (uint32_t e = 0; e < slot->event_count; e++) {
        uint64_t ns;
        if (slot->kinds[e] != kind)
            continue;
        if (!profile_one(instance, slot->events[e], most_ns - sum, &ns))
            return 0;
        sum += ns;
    }
    return sum;
}

/* Whether all commands of the slot's band have ended; `*newest_ended`: whether the last one has. Notes in the slot if
 * one of them failed. A command about which the driver answers with an error may still be running. */
static bool ended(struct cox__instance *instance, struct cox__cl_slot *slot, bool *newest_ended)
{
    bool all = true;
    *newest_ended = false;
    for (uint32_t e = slot->event_count; e-- > 0;) {
        cl_int state = CL_QUEUED;
        const struct cox__driver_call call = cox__cl_call(instance);
        cl_int code = clGetEventInfo(slot->events[e], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        cox__cl_returned(&call);
        if ((code || state < 0) && !slot->failed) {
            cox__cl_check(instance->backend->log, code ? code : state, code ? "clGetEventInfo" : "a command of a band",
                          instance->device->info.name);
            cox__cl_queue_failed(instance->shared);
            slot->failed = true;
        }
        const bool this_ended = !code && state <= CL_COMPLETE;
        *newest_ended |= this_ended && e + 1 == slot->event_count;
        all &= this_ended;
    }
    return all;
}

enum cox__job_state cox__cl_job_poll(struct cox__backend *base, struct cox__job *job)
{
    (void)base;
    struct cox__instance *instance = job->instance;
    struct cox__cl_slot *slot = &instance->slots[job->slot];
    const uint64_t told_ns = cox__cl_callback_end_ns(slot->callback); /* read before the device is polled */
    bool newest_ended;
    if (!ended(instance, slot, &newest_ended)) {
        if (told_ns)
            cox__cl_callback_was_early(slot->callback, told_ns, !newest_ended);
        job->failing = slot->failed;
        return COX__JOB_RUNNING;
    }
    if (slot->failed) {
        job->failing = true;
        cox__cl_slot_end(instance, slot);
        return COX__JOB_FAILED;
    }
    const uint64_t now = cox__clock_ns(), most_ns = now - slot->submit_ns;
    job->end_ns = told_ns ? told_ns : now;
    job->kernel_ns = profile(instance, slot, COX__CL_KERNEL, most_ns);
    job->copy_in_ns = instance->staged ? profile(instance, slot, COX__CL_COPY_IN, most_ns) : 0;
    job->copy_out_ns = instance->staged ? profile(instance, slot, COX__CL_COPY_OUT, most_ns) : 0;
    cox__cl_slot_end(instance, slot);
    return COX__JOB_DONE;
}

const void *cox__cl_job_partial(struct cox__backend *base, struct cox__job *job, uint32_t binding)
{
    (void)base;
    return job->instance->slots[job->slot].partials[binding];
}
