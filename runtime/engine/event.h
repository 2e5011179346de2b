/* Events: how a lower level of the engine reports to a higher one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_EVENT_H
#define COX_ENGINE_EVENT_H

#include "invariant.h"
#include "state.h"

/* Store an event for the step, which drains them before it does anything else. */
static inline void cox__event_emit(struct cox_session *session, struct cox__event event)
{
    COX_INVARIANT(session->event_count < COX__EVENTS_MAX);
    session->events[session->event_count++] = event;
}

/* Take the event that must be handled first: by kind, then by age. False: no event. */
static inline bool cox__event_take(struct cox_session *session, struct cox__event *out)
{
    uint32_t first = 0;
    if (!session->event_count)
        return false;

    for (uint32_t i = 1; i < session->event_count; i++)
        if (session->events[i].kind < session->events[first].kind)
            first = i;
    *out = session->events[first];

    session->event_count--;
    for (uint32_t i = first; i < session->event_count; i++)
        session->events[i] = session->events[i + 1];

    return true;
}

#endif
