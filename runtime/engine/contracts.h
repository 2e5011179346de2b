/* Checks that a session's bindings, passes and stages are consistent.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_CONTRACTS_H
#define COX_ENGINE_CONTRACTS_H

#include "base/log.h"
#include "base/spec.h"

/* `passes`: the session's passes, or one pass made of the session's stages.
 * Errors: COX_E_INVALID; the log says which pass, stage, binding or argument. */
cox_status cox__contracts_check(const struct cox__session_spec *params,
                                const struct cox__pass_spec *passes, uint32_t count,
                                const struct cox__log *log);

#endif
