/* Checks of the arrays in a session's parameters.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_PARAMS_H
#define COX_API_PARAMS_H

#include "base/log.h"
#include "base/spec.h"

/* Errors: COX_E_INVALID (an array is missing, empty or too long). The log says which. */
cox_status cox__params_check(const struct cox__session_spec *params, const struct cox__log *log);

#endif
