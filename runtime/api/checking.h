/* Check mode of a session: its kernels are checked before each frame (check/check.h).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_CHECKING_H
#define COX_API_CHECKING_H

#include "engine/engine.h"

/* Begin check mode if the spec asks for it. `devices`: of the session, by the runtime's index.
 * Errors (logged): those of cox__check_create. */
cox_status cox__checking_begin(cox_session *session, const struct cox__session_spec *params,
                               const uint32_t *devices, uint32_t count);

/* Check the kernels with a frame that is about to be submitted. COX_OK without check mode.
 *
 * Outside of callbacks it first waits for the session's earlier frames, which may write the frame's
 * input. Errors: those of cox__check_frame. */
cox_status cox__checking_frame(cox_session *session, const struct cox__frame_spec *frame);

#endif
