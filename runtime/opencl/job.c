/* Jobs: a band on its device submitted, polled and measured.
 *
 * All functions run with the engine lock held.
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"
#include "command_queue.h"

/* A part of a band was enqueued, or could not be. */
static void note_enqueued(struct cox__instance *instance, struct cox__job *job,
                          struct cox__cl_slot *slot, cox_status status)
{
    if (status) {
        job->unfinished = false;
        job->failing = true;
        cox__cl_command_queue_failed(instance->shared);
        cox__cl_instance_flush(&instance->backend->base, instance);
        return;
    }

    slot->failed = false;
    if (!job->unfinished && !job->polled)
        slot->callback = cox__cl_callback_arm(instance->backend, cox__cl_slot_newest(slot), job,
                                              instance->device->info.name);
}

cox_status cox__cl_job_submit(struct cox__backend *base, struct cox__job *job)
{
    (void)base;
    struct cox__instance *instance = job->instance;
    struct cox__cl_slot *slot = &instance->slots[job->slot];

    job->failing = false;
    slot->submit_ns = slot->enqueued_ns[1] = slot->looked_ns = cox__clock_ns();
    slot->running_ns = 0;

    /* Failed until the enqueueing ends: a thread may not return from it, and then the slot holds
     * only a part of the band. */
    slot->failed = true;

    const cox_status status = cox__cl_band_enqueue(instance, job, slot);
    note_enqueued(instance, job, slot, status);

    /* Commands that were enqueued run: the band fails once they have ended. */
    if (status == COX_OK || slot->event_count)
        return COX_OK;

    cox__cl_slot_end(instance, slot);
    return status;
}

void cox__cl_job_continue(struct cox__backend *base, struct cox__job *job)
{
    (void)base;
    struct cox__instance *instance = job->instance;
    struct cox__cl_slot *slot = &instance->slots[job->slot];

    if (slot->failed) {
        job->unfinished = false;
        return;
    }

    slot->failed = true;
    note_enqueued(instance, job, slot, cox__cl_band_continue(instance, job, slot));
}

/* ---- the profile ---- */

static bool event_time(const struct cox__instance *instance, cl_event event,
                       cl_profiling_info which, uint64_t *ns)
{
    cl_ulong stamp = 0;
    const struct cox__driver_call call = cox__cl_call(instance);
    const cl_int code = clGetEventProfilingInfo(event, which, sizeof stamp, &stamp, NULL);

    cox__cl_returned(&call);
    *ns = stamp;
    return !code && stamp;
}

/* Time that the band's commands of one kind took. Commands of a kind that follow each other are one
 * run on one queue. A run lasts from the start of its first to the end of its last.
 *
 * 0 if there are none, or if the device's times are impossible. Impossible are an end before a
 * start, more time than the band took by the host's clock, or a start before the enqueueing. */
static uint64_t profile(const struct cox__instance *instance, const struct cox__cl_slot *slot,
                        enum cox__cl_command kind, uint64_t most_ns)
{
    const struct cox__device_clock *clock = &instance->device->clock;
    const uint64_t error_ns = cox__cl_device_clock_error_ns(clock);
    uint64_t sum = 0;

    for (uint32_t first = 0, last; first < slot->event_count; first = last + 1) {
        uint64_t start, end;
        last = first;
        while (last + 1 < slot->event_count && slot->kinds[last + 1] == slot->kinds[first])
            last++;
        if (slot->kinds[first] != kind)
            continue;

        if (!event_time(instance, slot->events[first], CL_PROFILING_COMMAND_START, &start) ||
            !event_time(instance, slot->events[last], CL_PROFILING_COMMAND_END, &end) ||
            end < start || end - start > most_ns - sum ||
            (clock->known &&
             cox__cl_device_clock_host_ns(clock, start) + error_ns < slot->submit_ns))
            return 0;

        sum += end - start;
    }

    return sum;
}

/* How far a band's end by the clock may lie outside of what the host saw, in addition to the
 * clock's error. */
#define CLOCK_SLACK_NS 50000ull
/* A device's clock is trusted once an end by it lies this close to the end that the host saw. */
#define CLOCK_NEAR_NS 1000000ull
/* A clock that is wrong this many times in a row is not asked any more. */
#define CLOCK_LIES_MAX 4

/* When the band's last command ended: by the device's clock, converted to the host's time.
 * `callback_ns`: when the callback came, 0 if it has not. Returns 0 if the end is unknown.
 *
 * Some drivers give impossible times (rusticl 22.3 says 1 ns for every kernel). So a clock is
 * trusted only after it has given an end shortly after a poll found the band running, or shortly
 * before its callback. */
static uint64_t device_end_ns(const struct cox__instance *instance, const struct cox__cl_slot *slot,
                              uint64_t callback_ns, uint64_t now_ns)
{
    struct cox__cl_device *device = instance->device;
    cl_event newest = cox__cl_slot_newest(slot);
    uint64_t queued, end;

    if ((instance->staged && instance->pipeline->watched && !instance->pipeline->profile) ||
        device->clock_lies >= CLOCK_LIES_MAX ||
        !event_time(instance, newest, CL_PROFILING_COMMAND_QUEUED, &queued) ||
        !event_time(instance, newest, CL_PROFILING_COMMAND_END, &end))
        return 0;

    cox__cl_device_clock_enclose(&device->clock, queued, slot->enqueued_ns[0],
                                 slot->enqueued_ns[1]);

    const uint64_t at = cox__cl_device_clock_host_ns(&device->clock, end);
    const uint64_t slack_ns = CLOCK_SLACK_NS + cox__cl_device_clock_error_ns(&device->clock);

    uint64_t latest_ns = now_ns;
    if (callback_ns)
        latest_ns = callback_ns;

    if (at < slot->submit_ns || at + slack_ns < slot->running_ns || at > latest_ns + slack_ns) {
        device->clock_lies++;
        return 0;
    }

    device->clock_lies = 0;
    device->clock_checked |= (slot->running_ns && now_ns - slot->running_ns < CLOCK_NEAR_NS) ||
                             (callback_ns && callback_ns < at + CLOCK_NEAR_NS);
    if (!device->clock_checked)
        return 0;
    return cox__min_u64(at, now_ns);
}

/* ---- polls ---- */

/* The interval of the checks for failed commands while the newest command runs. */
#define LOOK_NS 5000000ull

/* Note in the slot that a command of its band has failed. */
static void note_failure(struct cox__instance *instance, struct cox__cl_slot *slot, cl_int code,
                         const char *what)
{
    if (slot->failed)
        return;

    cox__cl_instance_check(instance, code, what);
    cox__cl_command_queue_failed(instance->shared);
    slot->failed = true;
}

static bool command_ended(struct cox__instance *instance, struct cox__cl_slot *slot, uint32_t index)
{
    cl_int state = CL_QUEUED;
    const struct cox__driver_call call = cox__cl_call(instance);
    cl_int code = clGetEventInfo(slot->events[index], CL_EVENT_COMMAND_EXECUTION_STATUS,
                                 sizeof state, &state, NULL);
    cox__cl_returned(&call);

    if (code) {
        note_failure(instance, slot, code, "clGetEventInfo");
        return false;
    }
    if (state < 0)
        note_failure(instance, slot, state, "a command of a band");
    return state <= CL_COMPLETE;
}

/* Whether all commands of the slot's band have ended; `*newest_ended`: whether the last one has.
 * Notes a failure in the slot. If the driver answers with an error, the command may still run. */
static bool ended(struct cox__instance *instance, struct cox__cl_slot *slot, bool *newest_ended)
{
    const uint64_t now = cox__clock_ns();

    *newest_ended = command_ended(instance, slot, slot->event_count - 1);
    if (!*newest_ended)
        slot->running_ns = now;
    if (!*newest_ended && now - slot->looked_ns < LOOK_NS)
        return false;

    bool all = *newest_ended;
    slot->looked_ns = now;
    for (uint32_t e = 0; e + 1 < slot->event_count; e++)
        all &= command_ended(instance, slot, e);
    return all;
}

/* Whether a band that was enqueued earlier has failed. This band may have read rows of it that stay
 * on the device. */
static bool older_failed(struct cox__instance *instance, const struct cox__cl_slot *slot)
{
    bool failed = false;
    for (uint32_t l = 0; l < instance->slot_count; l++) {
        struct cox__cl_slot *other = &instance->slots[l];
        if (other == slot || other->submit_ns > slot->submit_ns)
            continue;

        for (uint32_t e = 0; e < other->event_count; e++)
            command_ended(instance, other, e);
        failed |= other->event_count && other->failed;
    }
    return failed;
}

/* Set what the engine learns from a band that has ended. */
static void measure(struct cox__instance *instance, const struct cox__cl_slot *slot,
                    struct cox__job *job, uint64_t callback_ns)
{
    const uint64_t now = cox__clock_ns(), most_ns = now - slot->submit_ns;

    /* This comes before the profile, since it sets the clock. */
    const uint64_t end_ns = device_end_ns(instance, slot, callback_ns, now);

    job->clock_error_ns = UINT64_MAX;
    if (end_ns) {
        job->end_ns = end_ns;
        job->clock_error_ns = cox__cl_device_clock_error_ns(&instance->device->clock);
    } else if (callback_ns) {
        job->end_ns = callback_ns;
    } else {
        job->end_ns = now;
    }

    job->kernel_ns = job->copy_in_ns = job->copy_out_ns = 0;
    if (!instance->staged || instance->pipeline->profile)
        job->kernel_ns = profile(instance, slot, COX__CL_KERNEL, most_ns);
    if (!instance->staged || !instance->pipeline->profile)
        return;

    job->copy_in_ns = profile(instance, slot, COX__CL_COPY_IN, most_ns);
    job->copy_out_ns = profile(instance, slot, COX__CL_COPY_OUT, most_ns);
}

static enum cox__job_state fail(struct cox__instance *instance, struct cox__cl_slot *slot,
                                struct cox__job *job)
{
    job->failing = true;
    cox__cl_slot_end(instance, slot);
    return COX__JOB_FAILED;
}

enum cox__job_state cox__cl_job_poll(struct cox__backend *base, struct cox__job *job)
{
    (void)base;
    struct cox__instance *instance = job->instance;
    struct cox__cl_slot *slot = &instance->slots[job->slot];
    /* Read before the device is polled. */
    const uint64_t callback_ns = cox__cl_callback_end_ns(slot->callback);
    bool newest_ended;

    if (job->unfinished && !slot->failed)
        return COX__JOB_RUNNING;
    if (!slot->event_count) /* a thread did not return from the first call */
        return fail(instance, slot, job);

    if (!ended(instance, slot, &newest_ended)) {
        if (callback_ns)
            cox__cl_callback_was_early(slot->callback, callback_ns, !newest_ended);
        job->failing = slot->failed;
        return COX__JOB_RUNNING;
    }

    slot->failed = slot->failed || (job->resident && older_failed(instance, slot));
    if (slot->failed)
        return fail(instance, slot, job);

    measure(instance, slot, job, callback_ns);
    cox__cl_slot_end(instance, slot);
    return COX__JOB_DONE;
}

const void *cox__cl_job_partial(struct cox__backend *base, struct cox__job *job, uint32_t binding)
{
    (void)base;
    return job->instance->slots[job->slot].partials[binding];
}
