/* Frames whose memory a device that was given up may still write to. Level 2 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_RELOCATE_H
#define COX_ENGINE_RELOCATE_H

#include "engine/state.h"

/* Whether a frame that has been started has to wait, since its memory is being changed. Sees to that it is, or gives
 * the frame an error where that cannot be. */
bool cox__relocate_holds(struct cox_session *session, struct cox__frame *frame);

/* Sets *next_ns to when a relocation under way is given up, if that is sooner. */
void cox__relocate_due(const struct cox_session *session, uint64_t *next_ns);

#endif
