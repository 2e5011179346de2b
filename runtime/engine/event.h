/* Events: how a lower level of the engine reports to a higher one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_EVENT_H
#define COX_ENGINE_EVENT_H

#include "invariant.h"
#include "state.h"

/* Store an event for the step, which handles all before it reuses a queue slot or delivers a
 * frame. */
static inline void cox__event_emit(struct cox__events *events, struct cox__event event)
{
    COX_INVARIANT(events->count < COX__EVENTS_MAX);
    events->list[events->count++] = event;
}

/* Take the event that must be handled first: by kind, then by age. False: no event. */
static inline bool cox__event_take(struct cox__events *events, struct cox__event *out)
{
    uint32_t first = 0;
    if (!events->count)
        return false;

    for (uint32_t i = 1; i < events->count; i++)
        if (events->list[i].kind < events->list[first].kind)
            first = i;
    *out = events->list[first];

    events->count--;
    for (uint32_t i = first; i < events->count; i++)
        events->list[i] = events->list[i + 1];

    return true;
}

#endif
