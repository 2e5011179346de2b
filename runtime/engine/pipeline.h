/* A session's pipeline: a checked copy of the application's passes, and its geometry.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_PIPELINE_H
#define COX_ENGINE_PIPELINE_H

#include "base/log.h"
#include "binding.h"

/* Check a session's parameters from cox__params_read_session, and copy them with defaults filled
 * in. On an error *out owns nothing. Errors: COX_E_INVALID (the log says which binding, stage or
 * argument), COX_E_NOMEM. */
cox_status cox__pipeline_init(struct cox__pipeline *out, const struct cox__session_spec *params,
                              const struct cox__log *log);
void cox__pipeline_clear(struct cox__pipeline *pipeline);

/* Log a warning for each read-only binding that a kernel of the instance takes without const.
 * In `told`, each binding with a warning has a bit. The value is 0 before the session's first
 * instance. */
void cox__pipeline_tell_writable(const struct cox__pipeline *pipeline, struct cox__backend *backend,
                                 const struct cox__instance *instance, uint32_t *told,
                                 const struct cox__log *log);

/* Least common multiple of two row alignments >= 1, at most `bound`. A row alignment as large as
 * the frame means that the frame cannot be split. */
uint64_t cox__pipeline_lcm_bounded(uint64_t a, uint64_t b, uint64_t bound);

#endif
