/* Which state may follow which. A change that is not listed is a defect of the engine: a debug
 * build aborts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "transitions.h"
#include "invariant.h"

static bool band_may_become(enum cox__band_state from, enum cox__band_state to)
{
    switch (from) {
    case COX__BAND_PLANNED:
        return to == COX__BAND_QUEUED || to == COX__BAND_FAILED;
    case COX__BAND_QUEUED: /* PLANNED: the device refused it */
        return to == COX__BAND_PLANNED || to == COX__BAND_RUNNING || to == COX__BAND_DONE ||
               to == COX__BAND_FAILED;
    case COX__BAND_RUNNING:
        return to == COX__BAND_DONE || to == COX__BAND_FAILED;
    case COX__BAND_DONE: /* the device computes wrongly */
        return to == COX__BAND_FAILED;
    case COX__BAND_FAILED:
        return false;
    }

    return false;
}

void cox__transition_band(struct cox__band *band, enum cox__band_state to)
{
    COX_INVARIANT(band_may_become(band->state, to));
    band->state = to;
}

static bool slot_may_become(enum cox__slot_state from, enum cox__slot_state to)
{
    switch (from) {
    case COX__SLOT_FREE:
        return to == COX__SLOT_BUSY;
    case COX__SLOT_BUSY:
        return to == COX__SLOT_FREE || to == COX__SLOT_ORPHANED;
    case COX__SLOT_ORPHANED:
        return to == COX__SLOT_FREE || to == COX__SLOT_ABANDONED;
    case COX__SLOT_ABANDONED:
        return false;
    }

    return false;
}

void cox__transition_slot(struct cox__queue_slot *slot, enum cox__slot_state to)
{
    COX_INVARIANT(slot_may_become(slot->state, to));
    slot->state = to;
}

static bool queue_may_become(enum cox__queue_state from, enum cox__queue_state to)
{
    switch (from) {
    case COX__QUEUE_LIVE:
        return to == COX__QUEUE_DRAINING;
    case COX__QUEUE_DRAINING:
        return to == COX__QUEUE_ABANDONED || to == COX__QUEUE_DESTROYING;
    case COX__QUEUE_ABANDONED:
        return to == COX__QUEUE_DESTROYING;
    case COX__QUEUE_DESTROYING: /* ABANDONED: no thread was available */
        return to == COX__QUEUE_GONE || to == COX__QUEUE_ABANDONED;
    case COX__QUEUE_GONE:
        return false;
    }

    return false;
}

void cox__transition_queue(struct cox__queue *queue, enum cox__queue_state to)
{
    COX_INVARIANT(queue_may_become(atomic_load(&queue->state), to));
    atomic_store(&queue->state, to);
}

static bool spare_may_become(enum cox__spare_state from, enum cox__spare_state to)
{
    switch (from) {
    case COX__SPARE_NONE:
        return to == COX__SPARE_ALLOCATING;
    case COX__SPARE_ALLOCATING:
        return to == COX__SPARE_READY || to == COX__SPARE_UNAVAILABLE;
    case COX__SPARE_READY:
        return to == COX__SPARE_TAINTED;
    case COX__SPARE_TAINTED:
        return to == COX__SPARE_ALLOCATING || to == COX__SPARE_TAINTED ||
               to == COX__SPARE_UNAVAILABLE;
    case COX__SPARE_UNAVAILABLE:
        return false;
    }

    return false;
}

void cox__transition_spare(struct cox__spare *spare, enum cox__spare_state to)
{
    COX_INVARIANT(spare_may_become(atomic_load(&spare->state), to));
    atomic_store(&spare->state, to);
}

static bool warmup_may_become(enum cox__warmup_state from, enum cox__warmup_state to)
{
    switch (from) {
    case COX__WARMUP_WAITING:
        return to == COX__WARMUP_BORROWED || to == COX__WARMUP_ASKED;
    case COX__WARMUP_BORROWED:
        return to == COX__WARMUP_WAITING || to == COX__WARMUP_BORROWED_ASKED ||
               to == COX__WARMUP_FINISHED;
    case COX__WARMUP_BORROWED_ASKED:
        return to == COX__WARMUP_ASKED || to == COX__WARMUP_FINISHED;
    case COX__WARMUP_ASKED:
        return to == COX__WARMUP_OWN;
    case COX__WARMUP_OWN:
        return to == COX__WARMUP_FINISHED;
    case COX__WARMUP_FINISHED:
        return to == COX__WARMUP_ASKED;
    }

    return false;
}

void cox__transition_warmup(struct cox__warmup *warmup, enum cox__warmup_state to)
{
    COX_INVARIANT(warmup_may_become(warmup->state, to));
    warmup->state = to;
}

static bool session_may_become(enum cox__session_warmth from, enum cox__session_warmth to)
{
    const bool over = to == COX__SESSION_WARM || to == COX__SESSION_WARM_IN_VAIN;

    switch (from) {
    case COX__SESSION_COLD:
        return over || to == COX__SESSION_WARMING;
    case COX__SESSION_NOTHING_TO_WARM:
        return to == COX__SESSION_WARMING;
    case COX__SESSION_WARMING:
        return over || to == COX__SESSION_COLD || to == COX__SESSION_NOTHING_TO_WARM;
    case COX__SESSION_WARM:
    case COX__SESSION_WARM_IN_VAIN:
        return over;
    }

    return false;
}

void cox__transition_warmth(struct cox__warmth *warmth, enum cox__session_warmth to)
{
    COX_INVARIANT(session_may_become(warmth->state, to));
    warmth->state = to;
}

static bool device_may_become(enum cox_device_state from, enum cox_device_state to)
{
    switch (from) {
    case COX_DEVICE_JOINING:
        return to == COX_DEVICE_ACTIVE || to == COX_DEVICE_PROBATION || to == COX_DEVICE_ABSENT;
    case COX_DEVICE_ABSENT:
        return false;
    case COX_DEVICE_ACTIVE:
        return to == COX_DEVICE_DRAINING;
    case COX_DEVICE_DRAINING:
        return to == COX_DEVICE_QUARANTINED;
    case COX_DEVICE_QUARANTINED:
        return to == COX_DEVICE_REBUILDING;
    case COX_DEVICE_REBUILDING:
        return to == COX_DEVICE_QUARANTINED || to == COX_DEVICE_PROBATION;
    case COX_DEVICE_PROBATION:
        return to == COX_DEVICE_ACTIVE || to == COX_DEVICE_DRAINING;
    }

    return false;
}

void cox__transition_device(struct cox_session *session, uint32_t device, enum cox_device_state to)
{
    struct cox__device *of = &session->devices.list[device];

    COX_INVARIANT(device_may_become(of->state, to));
    pthread_mutex_lock(&session->lock);
    of->lost += to == COX_DEVICE_DRAINING;
    of->returned += to == COX_DEVICE_ACTIVE && of->lost > 0; /* otherwise it joins */
    of->state = to;
    if (to == COX_DEVICE_ACTIVE)
        session->no_device = false;
    pthread_mutex_unlock(&session->lock);
}
