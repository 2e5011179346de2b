/* A session's pipeline: checked, copied, its geometry.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_PIPELINE_H
#define COX_RUNTIME_PIPELINE_H

#include "backend.h"
#include "api/log.h"

/* Check the contracts of a session's parameters, as cox__session_params_read gives them, and copy them, defaults filled
 * in. On failure *out holds nothing.
 * Errors: COX_E_INVALID (the log says which binding, stage or argument), COX_E_NOMEM. */
cox_status cox__pipeline_init(struct cox__pipeline *out, const struct cox_session_params *params,
                              const struct cox__log *log);
void cox__pipeline_clear(struct cox__pipeline *pipeline);

/* Whether a band has its own rows of the binding, as opposed to the whole buffer. */
static inline bool cox__by_rows(const struct cox_binding *binding)
{
    return binding->contract == COX_ROWS || binding->contract == COX_HALO;
}

/* Bytes that a buffer must have for a binding; SIZE_MAX never occurs (checked at init). */
size_t cox__binding_bytes(const struct cox__pipeline *pipeline, uint32_t binding);

/* Least common multiple of two granules >= 1, or `bound` if it is larger: a granule beyond the frame means "cannot be
 * split". */
uint64_t cox__lcm_bounded(uint64_t a, uint64_t b, uint64_t bound);

#endif
