/* Expected times, polls and deadlines of bands.
 *
 * Every band has a deadline. A device that misses one is lost to the session, and another device
 * does the rows again. Until then the frame waits, because the device may still write to it.
 *
 * The time limit follows the device's own history. A device that hangs then delays a frame as
 * little as possible, and a device that is only slow, for example on a busy machine, is kept.
 *
 * Owns each device's `timing`, `longest_ns`, `ended` and `last_end_ns`, and the times of the
 * queue slots.
 * SPDX-License-Identifier: Apache-2.0 */
#include "timing.h"
#include "base/bounds.h"
#include "invariant.h"
#include "transitions.h"

/* The first poll of a device that posts nothing: this share of the band's shortest known time. */
#define POLL_AT 0.5
/* Pause between its later polls, as a fraction of the time since submission. It bounds how late an
 * end is noticed, whatever the engine has learned. */
#define POLL_SHARE 64
#define POLL_LEAST_NS 20000ull
/* With a reserved core, polls follow without a pause for COX__POLL_FIRST_NS, then at this
 * fraction. */
#define POLL_SHARE_CLOSE 1024
/* Growth of the shortest time per band, so that it adapts to a device that has become slower. */
#define LEAST_GROWTH 1.01
/* Weight of the newest band in the exponential means. */
#define GAIN 0.3
/* The time limit of a band is this many times its expected time or the longest band of its device,
 * whichever is more. */
#define TIMEOUT_TIMES 10.0
/* Bounds of the limit that follows from the longest band, if the application set none. */
#define TIMEOUT_MIN_NS 1e9
#define TIMEOUT_MAX_NS 10e9
/* Added to the time limit of a device's first launch in a pass: some drivers compile there. */
#define COMPILE_NS 20e9
/* If the application set a limit, the compiler is excused for this many times COMPILE_NS if the
 * process cannot run. */
#define COMPILE_EXCUSE_TIMES 1
/* The first bands of an instance may still be slow, and with other rows a driver may compile again.
 * So they get this in addition, and COMPILE_NS too if the application set no limit. */
#define FRESH_BANDS 16
#define FRESH_NS 250e6
/* After this fraction of a band's limit the watchdog counts how long the process cannot run, until
 * COUNT_NS after the band's next poll. */
#define LATE_SHARE 8
#define COUNT_NS 1000000000ull
/* How long a session waits for devices if no band's deadline applies. */
#define DEFAULT_TIMEOUT_NS 2000000000ull

/* ---- expected times ---- */

/* Expected time of a band of `rows` rows, rather too short than too long; 0 = unknown. */
static double predict(const struct cox__timing *timing, double rows)
{
    /* No fixed cost is negative, so the slope is at most the mean time per row. */
    const double most = timing->rows > 0 ? timing->ns / timing->rows : 0;
    double slope = 0;

    if (timing->rows_rows > 1)
        slope = timing->rows_ns / timing->rows_rows;
    else if (rows < timing->rows)
        slope = most;
    if (slope < 0)
        slope = 0;
    else if (slope > most)
        slope = most;

    return timing->ns + slope * (rows - timing->rows);
}

/* Expected time of a band of `rows` rows of a pass on a device; 0 = unknown. */
static double expected_ns(const struct cox__pipeline *pipeline, const struct cox__device *device,
                          uint32_t pass, uint32_t rows)
{
    const struct cox__device_pass *of = &device->passes[pass];
    const double expected = predict(&of->timing, rows);
    if (expected > 0)
        return expected;

    return (double)of->single_device_ns * rows / pipeline->passes[pass].rows;
}

/* More pieces overlap more of the copies and kernels. But a device must not wait for its pieces, so
 * enqueueing the pieces of all devices may take this part of the band's time. */
static const double ENQUEUE_SHARE = 0.5;
static const double PIECES_MOST = 64;

uint32_t cox__timing_pieces(const struct cox_session *session, uint32_t device,
                            const struct cox__job *job, uint32_t sharing)
{
    const struct cox__device *of = &session->devices.list[device];
    const double band_ns = expected_ns(&session->pipeline, of, job->pass, job->rows);
    const double enqueue_ns = (double)of->enqueue_ns * sharing;

    if (band_ns <= 0 || ENQUEUE_SHARE * band_ns >= PIECES_MOST * enqueue_ns)
        return (uint32_t)PIECES_MOST;
    return cox__max_u32(1, (uint32_t)(ENQUEUE_SHARE * band_ns / enqueue_ns));
}

static void learn(struct cox__timing *timing, double rows, double ns)
{
    if (predict(timing, rows) <= 0) {
        *timing = (struct cox__timing){.rows = rows, .ns = ns, .least_rows = rows, .least_ns = ns};
        return;
    }

    double off_rows = rows - timing->rows, off_ns = ns - timing->ns;
    timing->rows += GAIN * off_rows;
    timing->ns += GAIN * off_ns;
    timing->rows_rows = (1 - GAIN) * (timing->rows_rows + GAIN * off_rows * off_rows);
    timing->rows_ns = (1 - GAIN) * (timing->rows_ns + GAIN * off_rows * off_ns);
    timing->least_ns *= LEAST_GROWTH;
    if (ns * timing->least_rows < timing->least_ns * rows) {
        timing->least_rows = rows;
        timing->least_ns = ns;
    }
}

/* Shortest time for `rows` rows, from the band with the least time per row. It ignores fixed costs,
 * so it is rather too short. */
static double least_ns(const struct cox__timing *timing, double rows)
{
    if (rows < timing->least_rows)
        return timing->least_ns / timing->least_rows * rows;

    return timing->least_ns;
}

void cox__timing_expect(struct cox__device *device, uint32_t pass, uint32_t rows, double ns)
{
    device->passes[pass].timing = (struct cox__timing){
        .rows = rows, .ns = ns, .least_rows = rows, .least_ns = ns};
}

void cox__timing_note_launch(struct cox__device *device, uint32_t pass)
{
    device->passes[pass].ended++;
}

void cox__timing_learn(struct cox__device *device, uint32_t pass,
                       const struct cox_band_report *report)
{
    struct cox__device_pass *of = &device->passes[pass];

    learn(&of->timing, report->rows, (double)report->wall_ns);
    if (of->ended >= FRESH_BANDS && report->wall_ns > device->longest_ns)
        device->longest_ns = report->wall_ns;
    of->ended++;
}

/* A band begins when it is enqueued or when the band before it in its queue ends, whichever is
 * later. Fetches and bands overlap. */
void cox__timing_note_end(struct cox__device *device, const struct cox__queue_slot *slot,
                          struct cox_band_report *report, uint64_t end_ns)
{
    uint64_t start = slot->submit_ns;
    if (slot->job.kind == COX__JOB_BAND)
        start = cox__max_u64(start, device->last_end_ns);
    if (end_ns <= start)
        end_ns = start + 1;

    if (slot->job.kind == COX__JOB_BAND)
        device->last_end_ns = end_ns;
    report->end_ns = end_ns;
    report->wall_ns = end_ns - start;
    report->queue_ns = start - slot->submit_ns;
}

/* ---- polls ---- */

/* Whether an earlier band of the same queue is still under way. */
static bool is_behind(const struct cox__queue_slot *slot)
{
    bool behind = false;
    for (uint32_t i = 0; i < slot->queue->slot_count; i++) {
        const struct cox__queue_slot *other = &slot->queue->slots[i];
        behind = behind || (other->state != COX__SLOT_FREE && other->submit_ns < slot->submit_ns);
    }

    return behind;
}

/* When to poll first for a band that the device begins at `begin_ns`. */
static uint64_t first_poll_ns(const struct cox__device *device, const struct cox__queue_slot *slot,
                              uint64_t begin_ns)
{
    const double wait_ns = POLL_AT *
                           least_ns(&device->passes[slot->job.pass].timing, slot->job.rows);
    if (wait_ns < COX__POLL_FIRST_NS)
        return begin_ns + (uint64_t)wait_ns;

    return begin_ns + COX__POLL_FIRST_NS;
}

void cox__timing_plan_poll(const struct cox__device *device, struct cox__queue_slot *slot)
{
    if (device->polled && !is_behind(slot))
        slot->poll_ns = first_poll_ns(device, slot, slot->submit_ns);
    else
        slot->poll_ns = cox__engine_now(slot->queue->runtime) + COX__POLL_FIRST_NS;
}

void cox__timing_plan_polls(const struct cox__device *device, struct cox__queue *queue,
                            uint64_t end_ns)
{
    for (uint32_t i = 0; i < queue->slot_count && device->polled; i++) {
        struct cox__queue_slot *slot = &queue->slots[i];
        if (slot->state != COX__SLOT_FREE && !is_behind(slot))
            slot->poll_ns = first_poll_ns(device, slot, cox__max_u64(end_ns, slot->submit_ns));
    }
}

void cox__timing_plan_next_poll(const struct cox_session *session, struct cox__queue_slot *slot,
                                uint64_t now_ns)
{
    const uint64_t elapsed_ns = now_ns - slot->submit_ns;
    const bool may_end = session->devices.list[slot->queue->device].polled || slot->posted_early;
    uint64_t pause_ns;

    if (!may_end)
        pause_ns = cox__max_u64(elapsed_ns / 2, COX__POLL_FIRST_NS);
    else if (session->settings.polls_closely)
        pause_ns = elapsed_ns > COX__POLL_FIRST_NS ? elapsed_ns / POLL_SHARE_CLOSE : 0;
    else
        pause_ns = cox__max_u64(elapsed_ns / POLL_SHARE, POLL_LEAST_NS);

    slot->poll_ns = now_ns + pause_ns;

    /* The count is needed if the band misses its deadline. */
    if (elapsed_ns > slot->limit_ns / LATE_SHARE)
        cox__watchdog_count_starvation(session->runtime->watchdog, slot->poll_ns + COUNT_NS);
}

uint64_t cox__timing_due_ns(const struct cox__queue_slot *slot)
{
    return cox__min_u64(slot->poll_ns, slot->deadline_ns);
}

/* ---- deadlines ---- */

uint64_t cox__timing_session_timeout_ns(const struct cox__settings *settings)
{
    return settings->device_timeout_ns ? settings->device_timeout_ns : DEFAULT_TIMEOUT_NS;
}

/* Whether a device that has done `ended` bands of a pass may have to compile it. */
static bool may_compile(const struct cox__settings *settings, const struct cox__device *device,
                        uint32_t ended, double expected)
{
    if (!settings->device_timeout_ns)
        return expected <= 0 || (ended < FRESH_BANDS && !device->lost);

    /* Even if a device profile was loaded. A rebuilt device that is known has compiled before. */
    return !ended && !device->overran && (!device->lost || expected <= 0);
}

/* Time limit for a band that should take `expected` ns, after which the device is lost. `ended`:
 * how many bands of that pass the device has done. */
static uint64_t time_limit_ns(const struct cox__settings *settings,
                              const struct cox__device *device, uint32_t ended, double expected)
{
    double limit = TIMEOUT_TIMES * (double)device->longest_ns;

    if (limit < TIMEOUT_MIN_NS)
        limit = TIMEOUT_MIN_NS;
    else if (limit > TIMEOUT_MAX_NS)
        limit = TIMEOUT_MAX_NS;

    if (settings->device_timeout_ns)
        limit = (double)settings->device_timeout_ns;
    if (limit < TIMEOUT_TIMES * expected)
        limit = TIMEOUT_TIMES * expected;
    limit += expected;

    if (ended < FRESH_BANDS)
        limit += FRESH_NS;
    if (may_compile(settings, device, ended, expected))
        limit += COMPILE_NS;

    if (limit < (double)(UINT64_MAX / 64))
        return (uint64_t)limit;

    return UINT64_MAX / 64;
}

uint64_t cox__timing_call_limit_ns(const struct cox_session *session, uint32_t device)
{
    /* A device that computes inside the enqueue call may do all bands of its queue in one call. */
    const struct cox__device *of = &session->devices.list[device];
    double longest = 0;
    bool unknown = false;
    uint32_t ended = UINT32_MAX;

    for (uint32_t p = 0; p < session->pipeline.pass_count; p++) {
        const double expected = expected_ns(&session->pipeline, of, p,
                                            session->pipeline.passes[p].rows);
        if (expected > longest)
            longest = expected;
        unknown |= expected <= 0;
        ended = cox__min_u32(of->passes[p].ended, ended);
    }

    if (unknown)
        return time_limit_ns(&session->settings, of, ended, 0);

    return time_limit_ns(&session->settings, of, ended, longest * of->slot_count);
}

/* How long the process could not run so far; 0 on a virtual clock, which stands still then. */
static uint64_t run_queue_delay_ns(const struct cox_runtime *runtime)
{
    if (runtime->backend->ops->advance)
        return 0;

    return cox__watchdog_starved_ns(runtime->watchdog);
}

static void set_deadline(struct cox__queue_slot *slot, uint64_t begin_ns, uint64_t expected_ns)
{
    slot->end_ns = begin_ns + expected_ns;
    slot->deadline_ns = begin_ns + slot->limit_ns;
    slot->run_queue_delay_ns = run_queue_delay_ns(slot->queue->runtime);
    slot->grace_ns = 0;
    slot->spared = false;
}

static bool is_only_device(const struct cox__devices *devices, uint32_t device)
{
    bool only = cox__device_is_active(&devices->list[device]);
    for (uint32_t d = 0; d < devices->count; d++)
        only = only && (d == device || !cox__device_is_active(&devices->list[d]));
    return only;
}

/* How far a band's deadline may move in all because the process could not run. */
static uint64_t most_grace_ns(const struct cox_session *session, const struct cox__queue_slot *slot)
{
    const struct cox__device *device = &session->devices.list[slot->queue->device];
    const uint64_t compile_ns = (uint64_t)COMPILE_NS;
    const uint32_t pass = slot->job.pass, ended = device->passes[pass].ended;

    if (!session->settings.device_timeout_ns || !may_compile(&session->settings, device, ended, 0))
        return COX__EXCUSE_TIMES * slot->limit_ns;

    return COX__EXCUSE_TIMES * cox__elapsed_ns(compile_ns, slot->limit_ns) +
           COMPILE_EXCUSE_TIMES * compile_ns;
}

bool cox__timing_is_overdue(struct cox_session *session, struct cox__queue_slot *slot,
                            uint64_t now_ns)
{
    if (now_ns < slot->deadline_ns)
        return false;

    const uint64_t starved = run_queue_delay_ns(session->runtime);
    const uint64_t left_ns = cox__elapsed_ns(slot->grace_ns, most_grace_ns(session, slot));
    uint64_t excuse_ns = cox__min_u64(starved - slot->run_queue_delay_ns, left_ns);
    slot->run_queue_delay_ns = starved;
    slot->grace_ns += excuse_ns;
    if (!slot->spared && !session->settings.device_timeout_ns &&
        is_only_device(&session->devices, slot->queue->device)) {
        slot->spared = true;
        excuse_ns += COX__EXCUSE_TIMES * slot->limit_ns;
    }

    slot->deadline_ns += excuse_ns;

    return now_ns >= slot->deadline_ns;
}

static struct cox__band *band_of(const struct cox__queue_slot *slot)
{
    struct cox__frame *frame = slot->job.frame;
    return &frame->bands[slot->job.band];
}

static bool has_deadline(const struct cox__queue_slot *slot)
{
    return slot->state != COX__SLOT_FREE && band_of(slot)->state == COX__BAND_RUNNING;
}

/* The slot whose band was enqueued first among those that are not flushed. */
static struct cox__queue_slot *first_queued(const struct cox__queue *queue)
{
    struct cox__queue_slot *first = NULL;
    for (uint32_t i = 0; i < queue->slot_count; i++) {
        struct cox__queue_slot *slot = &queue->slots[i];
        if (slot->state != COX__SLOT_FREE && band_of(slot)->state == COX__BAND_QUEUED &&
            (!first || slot->submit_ns < first->submit_ns))
            first = slot;
    }

    return first;
}

void cox__timing_plan_deadlines(struct cox_session *session, struct cox__queue *queue)
{
    uint64_t begin = cox__engine_now(session->runtime);

    COX_INVARIANT(atomic_load(&queue->state) == COX__QUEUE_LIVE);

    for (uint32_t i = 0; i < queue->slot_count; i++) /* behind the bands that are under way */
        if (has_deadline(&queue->slots[i]) && queue->slots[i].end_ns > begin)
            begin = queue->slots[i].end_ns;

    for (struct cox__queue_slot *slot; (slot = first_queued(queue)); begin = slot->end_ns) {
        const struct cox__device *device = &session->devices.list[queue->device];
        const double expected = expected_ns(&session->pipeline, device, slot->job.pass,
                                            slot->job.rows);
        slot->limit_ns = time_limit_ns(&session->settings, device,
                                       device->passes[slot->job.pass].ended, expected);
        set_deadline(slot, begin, (uint64_t)expected);
        cox__transition_band(band_of(slot), COX__BAND_RUNNING);
    }
}

void cox__timing_advance_deadlines(struct cox__queue *queue, uint64_t end_ns)
{
    if (atomic_load(&queue->state) != COX__QUEUE_LIVE) /* a lost queue's deadlines are fixed */
        return;

    for (uint32_t i = 0; i < queue->slot_count; i++) {
        struct cox__queue_slot *slot = &queue->slots[i];
        if (has_deadline(slot) && slot->deadline_ns < end_ns + slot->limit_ns)
            set_deadline(slot, end_ns, cox__elapsed_ns(end_ns, slot->end_ns));
    }
}
