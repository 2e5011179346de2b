/* Expected times, polls and deadlines of bands.
 *
 * Every band has a deadline. A device that misses one is given up: it is lost to the session, and another device does
 * the rows again. Until then the frame waits: what a device may still write is not final. The time limit follows what
 * the device has needed so far, so that a device that hangs holds a frame up no longer than it must, and one that is
 * merely slow, on a busy machine say, is not given up.
 *
 * Owns each device's `timing`, `longest_ns`, `ended` and `last_end_ns`, and the times of the queue slots.
 * SPDX-License-Identifier: Apache-2.0 */
#include "timing.h"
#include "invariant.h"
#include "transitions.h"

/* A device whose posts come late is polled at this share of the expected time. */
#define POLL_AT 0.93
/* A band that is over at its first poll had ended before it: the next band is polled earlier, by this factor. */
#define POLL_EARLIER 0.8
/* While a band may end at any moment, the pause between two polls is at least this share of the time since
 * submission. */
#define POLL_SOON_SHARE 64
/* Weight of the newest band among those that tell how long one takes. */
#define GAIN 0.3
/* The time limit of a band is so many times its expected time, or so many times the longest band of its device if that
 * is more. */
#define TIMEOUT_TIMES 10.0
/* By default what follows from the longest band lies between these. */
#define TIMEOUT_MIN_NS 1e9
#define TIMEOUT_MAX_NS 10e9
/* So many first bands of an instance may meet a compiler that works at the first launch of a shape. */
#define FRESH_BANDS 16
/* What is added to their time limit by default. */
#define COMPILE_NS 20e9
/* What is added instead where the application set a limit, or the device was lost before. */
#define FRESH_NS 250e6
/* How long a session waits for devices where no band's deadline says it. */
#define DEFAULT_TIMEOUT_NS 2000000000ull

/* ---- expected times ---- */

/* Time that so many rows should take, rather too little; 0 = unknown. */
static double predict(const struct cox__timing *timing, double rows)
{
    double most = timing->rows > 0 ? timing->ns / timing->rows : 0; /* no fixed cost is less than nothing */
    double slope = rows < timing->rows ? most : 0;
    if (timing->rows_rows > 1)
        slope = timing->rows_ns / timing->rows_rows;
    slope = slope < 0 ? 0 : slope > most ? most : slope;
    return timing->ns + slope * (rows - timing->rows);
}

/* Time that a band of so many rows should take on a device; 0 = nothing is known. */
static double expected_ns(const struct cox_session *session, uint32_t device, uint32_t rows)
{
    const struct cox__device *of = &session->devices[device];
    double expected = predict(&of->timing, rows);
    return expected > 0 ? expected : (double)of->solo_ns * rows / session->pipeline.rows;
}

/* `late`: the band was over at the first poll, so it took less than `ns`. */
static void learn(struct cox__timing *timing, double rows, double ns, bool late)
{
    double expected = predict(timing, rows);
    if (expected <= 0) {
        *timing = (struct cox__timing){.rows = rows, .ns = late ? ns * POLL_EARLIER : ns};
        return;
    }
    if (late) {
        timing->rows_ns *= ns * POLL_EARLIER / expected;
        timing->ns *= ns * POLL_EARLIER / expected;
        return;
    }
    double off_rows = rows - timing->rows, off_ns = ns - timing->ns;
    timing->rows += GAIN * off_rows;
    timing->ns += GAIN * off_ns;
    timing->rows_rows = (1 - GAIN) * (timing->rows_rows + GAIN * off_rows * off_rows);
    timing->rows_ns = (1 - GAIN) * (timing->rows_ns + GAIN * off_rows * off_ns);
}

void cox__device_learn(struct cox__device *device, const struct cox__queue_slot *slot,
                       const struct cox_band_report *report, bool posted)
{
    learn(&device->timing, report->rows, (double)report->wall_ns, !posted && slot->polls == 1);
    if (device->ended >= FRESH_BANDS && report->wall_ns > device->longest_ns)
        device->longest_ns = report->wall_ns;
    device->ended++;
}

/* A band begins when it was enqueued and the one before it in its queue had ended. */
void cox__slot_note_end(struct cox_session *session, const struct cox__queue_slot *slot, struct cox_band_report *report,
                        uint64_t end_ns)
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

void cox__slot_plan_poll(struct cox_session *session, struct cox__queue_slot *slot)
{
    const struct cox__device *device = &session->devices[slot->queue->device];
    slot->poll_ns = cox__engine_now(session) + COX__POLL_FIRST_NS;
    slot->poll_soon = false;
    slot->polls = 0;
    if (!device->polled)
        return;
    uint64_t begin = slot->submit_ns;                  /* enqueueing is part of what a band has taken */
    for (uint32_t i = 0; i < session->slot_count; i++) /* behind the bands that are under way */
        if (slot->queue->slots[i].state != COX__SLOT_FREE && &slot->queue->slots[i] != slot &&
            slot->queue->slots[i].poll_ns > begin)
            begin = slot->queue->slots[i].poll_ns;
    slot->poll_soon = true;
    uint64_t at = begin + (uint64_t)(predict(&device->timing, slot->job.rows) * POLL_AT);
    if (at < slot->poll_ns)
        slot->poll_ns = at;
}

void cox__slot_plan_next_poll(struct cox__queue_slot *slot, uint64_t now_ns)
{
    uint64_t elapsed = now_ns - slot->submit_ns;
    uint64_t least = slot->poll_soon ? COX__POLL_SOON_NS : COX__POLL_FIRST_NS;
    uint64_t share = slot->poll_soon ? elapsed / POLL_SOON_SHARE : elapsed / 2;
    slot->poll_ns = now_ns + (share > least ? share : least);
}

uint64_t cox__slot_due_ns(const struct cox__queue_slot *slot)
{
    return slot->poll_ns < slot->deadline_ns ? slot->poll_ns : slot->deadline_ns;
}

/* ---- deadlines ---- */

uint64_t cox__session_timeout_ns(const struct cox_session *session)
{
    return session->device_timeout_ns ? session->device_timeout_ns : DEFAULT_TIMEOUT_NS;
}

/* Time limit in ns for what should take `expected` ns on the device; the device is given up after it. */
static uint64_t time_limit_ns(const struct cox_session *session, const struct cox__device *device, double expected)
{
    const bool fresh = device->ended < FRESH_BANDS;
    double limit = TIMEOUT_TIMES * (double)device->longest_ns;
    limit = limit < TIMEOUT_MIN_NS ? TIMEOUT_MIN_NS : limit > TIMEOUT_MAX_NS ? TIMEOUT_MAX_NS : limit;
    if (session->device_timeout_ns)
        limit = (double)session->device_timeout_ns;
    if (limit < TIMEOUT_TIMES * expected)
        limit = TIMEOUT_TIMES * expected;
    limit += expected + (fresh ? FRESH_NS : 0);
    /* Of a session's first band on a device nothing is known, not even whether the compiler is at work, whatever a
     * device profile says. */
    const bool compiles = fresh && !device->lost && (!device->ended || !session->device_timeout_ns);
    if (compiles || expected <= 0)
        limit += COMPILE_NS;
    return limit < (double)(UINT64_MAX / 4) ? (uint64_t)limit : UINT64_MAX / 4;
}

uint64_t cox__device_call_limit_ns(const struct cox_session *session, uint32_t device)
{
    /* A device that computes inside the enqueue call may do all that its queue holds inside of one. */
    const double expected = expected_ns(session, device, session->pipeline.rows) * session->slot_count;
    return time_limit_ns(session, &session->devices[device], expected);
}

static void set_deadline(struct cox__queue_slot *slot, uint64_t begin_ns, uint64_t expected_ns)
{
    slot->end_ns = begin_ns + expected_ns;
    slot->deadline_ns = begin_ns + slot->limit_ns;
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
static struct cox__queue_slot *first_queued(const struct cox_session *session, const struct cox__queue *queue)
{
    struct cox__queue_slot *first = NULL;
    for (uint32_t i = 0; i < session->slot_count; i++) {
        struct cox__queue_slot *slot = &queue->slots[i];
        if (slot->state != COX__SLOT_FREE && band_of(slot)->state == COX__BAND_QUEUED &&
            (!first || slot->submit_ns < first->submit_ns))
            first = slot;
    }
    return first;
}

void cox__queue_plan_deadlines(struct cox_session *session, struct cox__queue *queue)
{
    uint64_t begin = cox__engine_now(session);
    COX_INVARIANT(atomic_load(&queue->state) == COX__QUEUE_LIVE);
    for (uint32_t i = 0; i < session->slot_count; i++) /* behind the bands that are under way */
        if (has_deadline(&queue->slots[i]) && queue->slots[i].end_ns > begin)
            begin = queue->slots[i].end_ns;
    for (struct cox__queue_slot *slot; (slot = first_queued(session, queue)); begin = slot->end_ns) {
        const double expected = expected_ns(session, queue->device, slot->job.rows);
        slot->limit_ns = time_limit_ns(session, &session->devices[queue->device], expected);
        set_deadline(slot, begin, (uint64_t)expected);
        cox__band_set_state(band_of(slot), COX__BAND_RUNNING);
    }
}

void cox__queue_advance_deadlines(struct cox__queue *queue, uint64_t end_ns)
{
    if (atomic_load(&queue->state) != COX__QUEUE_LIVE) /* a lost queue drains until a time that stands */
        return;
    for (uint32_t i = 0; i < queue->session->slot_count; i++) {
        struct cox__queue_slot *slot = &queue->slots[i];
        if (has_deadline(slot) && slot->deadline_ns < end_ns + slot->limit_ns)
            set_deadline(slot, end_ns, slot->end_ns > end_ns ? slot->end_ns - end_ns : 0);
    }
}
