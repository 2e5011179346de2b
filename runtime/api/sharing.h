/* How the passes of a new session share out their rows: row alignment, shared splits, policies.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_SHARING_H
#define COX_API_SHARING_H

#include "engine/engine.h"

/* Choose the row alignment of each pass, and which passes share a split. */
void cox__sharing_choose(cox_session *session, const struct cox__session_spec *params,
                         const uint32_t *devices, uint32_t count);

/* Start the policy of each pass, for the devices that the session has.
 * Errors: COX_E_NOT_FOUND, COX_E_INVALID, COX_E_NOMEM, and what a policy returns (the log says
 * which). */
cox_status cox__sharing_start_policies(cox_session *session,
                                       const struct cox__session_spec *params);

#endif
