/* A session's pipeline: checked, copied, its geometry.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_PIPELINE_H
#define COX_RUNTIME_PIPELINE_H

#include "base/log.h"
#include "binding.h"

/* Check the contracts of a session's parameters, as cox__params_read_session gives them, and
 * copy them, defaults filled in. On failure *out holds nothing. Errors: COX_E_INVALID (the log
 * says which binding, stage or argument), COX_E_NOMEM. */
cox_status cox__pipeline_init(struct cox__pipeline *out, const struct cox__session_spec *params,
                              const struct cox__log *log);
void cox__pipeline_clear(struct cox__pipeline *pipeline);

/* Warn of each binding that is only read, but which a kernel of the instance takes as a pointer
 * to what is not const. `*told` has a bit for each binding that was warned of already: 0 before
 * the session's first instance. */
void cox__pipeline_tell_writable(const struct cox__pipeline *pipeline, struct cox__backend *backend,
                                 const struct cox__instance *instance, uint32_t *told,
                                 const struct cox__log *log);

/* Least common multiple of two multiples of the row alignment >= 1, or `bound` if it is larger:
 * a row alignment beyond the frame means "cannot be split". */
uint64_t cox__pipeline_lcm_bounded(uint64_t a, uint64_t b, uint64_t bound);

#endif
