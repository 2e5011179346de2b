/* How a device gets its instance in the background, when it joins a session or after it was lost.
 * Level 2 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_MAKING_H
#define COX_ENGINE_MAKING_H

#include "state.h"

/* Create instances for devices that join or come back, and let devices with a finished instance
 * take part. True: something has changed. Lowers *next_ns to the time when something is due. */
bool cox__making_step(struct cox_session *session, uint64_t now_ns, uint64_t *next_ns);

#endif
