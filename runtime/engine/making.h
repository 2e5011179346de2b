/* How a device gets its instance, in the background: to join a session, or anew after it was
 * lost. Level 2 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_MAKING_H
#define COX_ENGINE_MAKING_H

#include "state.h"

/* Do what is due for devices that are out: have instances made for those that join or come back,
 * and let them take part with these. True: something has changed. Sets *next_ns to when
 * something else is due. */
bool cox__making_step(struct cox_session *session, uint64_t now_ns, uint64_t *next_ns);

#endif
