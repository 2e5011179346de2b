/* Expected times, polls and deadlines of bands.
 *
 * Every band has a deadline. A device that misses one is given up: it is lost to the session,
 * and another device does the rows again. Until then the frame waits: what a device may still
 * write is not final. The time limit follows what the device has needed so far, so that a device
 * that hangs holds a frame up no longer than it must, and one that is merely slow, on a busy
 * machine say, is not given up.
 *
 * Owns each device's `timing`, `longest_ns`, `ended` and `last_end_ns`, and the times of the
 * queue slots.
 * SPDX-License-Identifier: Apache-2.0 */
#include "timing.h"
#include "invariant.h"
#include "transitions.h"

/* A device that posts nothing is polled from this share of the least time that such a band has
 * ever taken. */
#define POLL_AT 0.5
/* From then on it is polled after this share of the time since submission, whatever was learned:
 * an end is noticed that much late at most. */
#define POLL_SHARE 64
#define POLL_LEAST_NS 20000ull
/* Where there is a core for it: without a pause for COX__POLL_FIRST_NS, after that at this
 * share. */
#define POLL_SHARE_CLOSE 1024
/* By so much what a device has needed at least grows with each band: it may have become slower. */
#define LEAST_GROWTH 1.01
/* Weight of the newest band among those that tell how long one takes. */
#define GAIN 0.3
/* The time limit of a band is so many times its expected time, or so many times the longest band
 * of its device if that is more. */
#define TIMEOUT_TIMES 10.0
/* By default what follows from the longest band lies between these. */
#define TIMEOUT_MIN_NS 1e9
#define TIMEOUT_MAX_NS 10e9
/* So many first bands of an instance may meet a compiler that works at the first launch of a
 * shape. */
#define FRESH_BANDS 16
/* What is added to their time limit by default. */
#define COMPILE_NS 20e9
/* What is added instead where the application set a limit, or the device was lost before. */
#define FRESH_NS 250e6
/* From this share of a band's limit on, and for so long after its next poll, it is counted how
 * long the process cannot run. */
#define LATE_SHARE 8
#define COUNT_NS 1000000000ull
/* How long a session waits for devices where no band's deadline says it. */
#define DEFAULT_TIMEOUT_NS 2000000000ull

/* ---- expected times ---- */

/* Time that so many rows should take, rather too little; 0 = unknown. */
static double predict(const struct cox__timing *timing, double rows)
{
    double most = timing->rows > 0 ? timing->ns / timing->rows
                                   : 0; /* no fixed cost is less than nothing */
    double slope = rows < timing->rows ? most : 0;

    if (timing->rows_rows > 1)
        slope = timing->rows_ns / timing->rows_rows;
    slope = slope < 0 ? 0 : slope > most ? most : slope;

    return timing->ns + slope * (rows - timing->rows);
}

/* The time that a band of `rows` rows of a pass should take on a device; 0 = nothing is known. */
static double expected_ns(const struct cox_session *session, uint32_t device, uint32_t pass,
                          uint32_t rows)
{
    const struct cox__device_pass *of = &session->devices[device].passes[pass];
    double expected = predict(&of->timing, rows);
    return expected > 0 ? expected
                        : (double)of->single_device_ns * rows / session->pipeline.passes[pass].rows;
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

/* Time that so many rows have needed at least: by the band that took the least time a row, as if
 * no cost were fixed. So it is rather too little. */
static double least_ns(const struct cox__timing *timing, double rows)
{
    return rows < timing->least_rows ? timing->least_ns / timing->least_rows * rows
                                     : timing->least_ns;
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

/* A band begins when it was enqueued and the one before it in its queue had ended. */
void cox__timing_note_end(struct cox_session *session, const struct cox__queue_slot *slot,
                          struct cox_band_report *report, uint64_t end_ns)
{
    struct cox__device *device = &session->devices[slot->queue->device];
    uint64_t start = slot->submit_ns > device->last_end_ns ? slot->submit_ns : device->last_end_ns;

    if (end_ns <= start)
        end_ns = start + 1;
    device->last_end_ns = end_ns;
    report->end_ns = end_ns;
    report->wall_ns = end_ns - start;
    report->queue_ns = start - slot->submit_ns;
}

/* ---- polls ---- */

/* Whether an earlier band of the same queue is still under way: it ends first. */
static bool is_behind(const struct cox__queue_slot *slot)
{
    bool behind = false;
    for (uint32_t i = 0; i < slot->queue->slot_count; i++) {
        const struct cox__queue_slot *other = &slot->queue->slots[i];
        behind = behind || (other->state != COX__SLOT_FREE && other->submit_ns < slot->submit_ns);
    }

    return behind;
}

/* When a band that the device is at from `begin_ns` on may be over. */
static uint64_t first_poll_ns(const struct cox__device *device, const struct cox__queue_slot *slot,
                              uint64_t begin_ns)
{
    const double wait_ns = POLL_AT *
                           least_ns(&device->passes[slot->job.pass].timing, slot->job.rows);
    return begin_ns + (wait_ns < COX__POLL_FIRST_NS ? (uint64_t)wait_ns : COX__POLL_FIRST_NS);
}

void cox__timing_plan_poll(struct cox_session *session, struct cox__queue_slot *slot)
{
    const struct cox__device *device = &session->devices[slot->queue->device];
    slot->poll_ns = device->polled && !is_behind(slot)
                        ? first_poll_ns(device, slot, slot->submit_ns)
                        : cox__engine_now(session) + COX__POLL_FIRST_NS;
}

void cox__timing_plan_polls(struct cox_session *session, struct cox__queue *queue, uint64_t end_ns)
{
    const struct cox__device *device = &session->devices[queue->device];
    for (uint32_t i = 0; i < queue->slot_count && device->polled; i++) {
        struct cox__queue_slot *slot = &queue->slots[i];
        if (slot->state != COX__SLOT_FREE && !is_behind(slot))
            slot->poll_ns = first_poll_ns(device, slot,
                                          end_ns > slot->submit_ns ? end_ns : slot->submit_ns);
    }
}

void cox__timing_plan_next_poll(const struct cox_session *session, struct cox__queue_slot *slot,
                                uint64_t now_ns)
{
    const uint64_t elapsed_ns = now_ns - slot->submit_ns;
    const bool may_end = session->devices[slot->queue->device].polled ||
                         slot->posted_early; /* at any moment */
    uint64_t pause_ns;

    if (!may_end)
        pause_ns = elapsed_ns / 2 > COX__POLL_FIRST_NS ? elapsed_ns / 2 : COX__POLL_FIRST_NS;
    else if (session->polls_closely)
        pause_ns = elapsed_ns > COX__POLL_FIRST_NS ? elapsed_ns / POLL_SHARE_CLOSE : 0;
    else
        pause_ns = elapsed_ns / POLL_SHARE > POLL_LEAST_NS ? elapsed_ns / POLL_SHARE
                                                           : POLL_LEAST_NS;

    slot->poll_ns = now_ns + pause_ns;
    if (elapsed_ns > slot->limit_ns / LATE_SHARE) /* in case it misses its deadline */
        cox__watchdog_count_starvation(session->runtime->watchdog, slot->poll_ns + COUNT_NS);
}

uint64_t cox__timing_due_ns(const struct cox__queue_slot *slot)
{
    return slot->poll_ns < slot->deadline_ns ? slot->poll_ns : slot->deadline_ns;
}

/* ---- deadlines ---- */

uint64_t cox__timing_session_timeout_ns(const struct cox_session *session)
{
    return session->device_timeout_ns ? session->device_timeout_ns : DEFAULT_TIMEOUT_NS;
}

/* Time limit in ns for what should take `expected` ns on the device; the device is given up
 * after it. `ended`: so many bands of the kind it has done. */
static uint64_t time_limit_ns(const struct cox_session *session, const struct cox__device *device,
                              uint32_t ended, double expected)
{
    const bool fresh = ended < FRESH_BANDS;
    double limit = TIMEOUT_TIMES * (double)device->longest_ns;

    limit = limit < TIMEOUT_MIN_NS   ? TIMEOUT_MIN_NS
            : limit > TIMEOUT_MAX_NS ? TIMEOUT_MAX_NS
                                     : limit;
    if (session->device_timeout_ns)
        limit = (double)session->device_timeout_ns;
    if (limit < TIMEOUT_TIMES * expected)
        limit = TIMEOUT_TIMES * expected;
    limit += expected + (fresh ? FRESH_NS : 0);

    /* Of a session's first band on a device nothing is known, not even whether the compiler is
     * at work, whatever a device profile says. */
    const bool compiles = fresh && !device->lost && (!ended || !session->device_timeout_ns);
    if (compiles || expected <= 0)
        limit += COMPILE_NS;

    return limit < (double)(UINT64_MAX / 64) ? (uint64_t)limit : UINT64_MAX / 64;
}

uint64_t cox__timing_call_limit_ns(const struct cox_session *session, uint32_t device)
{
    /* A device that computes inside the enqueue call may do all that its queue holds inside of
     * one. */
    const struct cox__device *of = &session->devices[device];
    double longest = 0, unknown = 0;
    uint32_t ended = UINT32_MAX;

    for (uint32_t p = 0; p < session->pipeline.pass_count; p++) {
        const double expected = expected_ns(session, device, p, session->pipeline.passes[p].rows);
        longest = expected > longest ? expected : longest;
        unknown += expected <= 0;
        ended = of->passes[p].ended < ended ? of->passes[p].ended : ended;
    }

    return time_limit_ns(session, of, ended, unknown > 0 ? 0 : longest * of->slot_count);
}

/* A virtual clock stands still while the process cannot run. */
static uint64_t run_queue_delay_ns(const struct cox_session *session)
{
    const struct cox_runtime *runtime = session->runtime;
    return runtime->backend->ops->advance ? 0 : cox__watchdog_starved_ns(runtime->watchdog);
}

static void set_deadline(const struct cox_session *session, struct cox__queue_slot *slot,
                         uint64_t begin_ns, uint64_t expected_ns)
{
    slot->end_ns = begin_ns + expected_ns;
    slot->deadline_ns = begin_ns + slot->limit_ns;
    slot->run_queue_delay_ns = run_queue_delay_ns(session);
    slot->grace_ns = 0;
    slot->spared = false;
}

static bool is_only_device(const struct cox_session *session, uint32_t device)
{
    bool only = cox__device_is_active(&session->devices[device]);
    for (uint32_t d = 0; d < session->device_count; d++)
        only = only && (d == device || !cox__device_is_active(&session->devices[d]));
    return only;
}

bool cox__timing_is_overdue(struct cox_session *session, struct cox__queue_slot *slot,
                            uint64_t now_ns)
{
    if (now_ns < slot->deadline_ns)
        return false;

    const uint64_t starved = run_queue_delay_ns(session),
                   left_ns = COX__EXCUSE_TIMES * slot->limit_ns - slot->grace_ns;
    uint64_t excuse_ns = starved - slot->run_queue_delay_ns < left_ns
                             ? starved - slot->run_queue_delay_ns
                             : left_ns;
    slot->run_queue_delay_ns = starved;
    slot->grace_ns += excuse_ns;
    if (!slot->spared && !session->device_timeout_ns &&
        is_only_device(session, slot->queue->device)) {
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

/* The slot whose band was enqueued first of those that are not flushed. */
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
    uint64_t begin = cox__engine_now(session);

    COX_INVARIANT(atomic_load(&queue->state) == COX__QUEUE_LIVE);

    for (uint32_t i = 0; i < queue->slot_count; i++) /* behind the bands that are under way */
        if (has_deadline(&queue->slots[i]) && queue->slots[i].end_ns > begin)
            begin = queue->slots[i].end_ns;

    for (struct cox__queue_slot *slot; (slot = first_queued(queue)); begin = slot->end_ns) {
        const struct cox__device *device = &session->devices[queue->device];
        const double expected = expected_ns(session, queue->device, slot->job.pass, slot->job.rows);
        slot->limit_ns = time_limit_ns(session, device, device->passes[slot->job.pass].ended,
                                       expected);
        set_deadline(session, slot, begin, (uint64_t)expected);
        cox__transition_band(band_of(slot), COX__BAND_RUNNING);
    }
}

void cox__timing_advance_deadlines(struct cox__queue *queue, uint64_t end_ns)
{
    if (atomic_load(&queue->state) !=
        COX__QUEUE_LIVE) /* a lost queue drains until a time that stands */
        return;

    for (uint32_t i = 0; i < queue->slot_count; i++) {
        struct cox__queue_slot *slot = &queue->slots[i];
        if (has_deadline(slot) && slot->deadline_ns < end_ns + slot->limit_ns)
            set_deadline(queue->session, slot, end_ns,
                         slot->end_ns > end_ns ? slot->end_ns - end_ns : 0);
    }
}
