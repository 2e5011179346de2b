/* A session's public parameters made into a spec: arguments by kernels' signatures, buffers by name.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_RESOLVE_H
#define COX_API_RESOLVE_H

#include "base/spec.h"
#include "engine/engine.h"

/* What cox_pipeline_destroy destroys: a pipeline of the library. */
struct cox_pipeline {
    struct cox__session_spec spec; /* points into `storage` */
    struct cox__pipeline_storage storage;
};

/* The parameters that do not describe passes. `devices` is what the spec's list of devices points to.
 * Errors: COX_E_INVALID, COX_E_NOT_FOUND (the log says which field). */
cox_status cox__resolve_common(const cox_runtime *runtime, const struct cox_session_params *params,
                               struct cox__session_spec *spec, uint32_t devices[COX_DEVICES_MAX]);

struct cox__resolved;

/* All parameters. The spec points into `*resolved` and into `params`. Free it with cox__resolve_free, on an error too.
 * Errors: COX_E_INVALID, COX_E_NOT_FOUND (the log says which field), COX_E_NOMEM. */
cox_status cox__resolve_params(const cox_runtime *runtime, const struct cox_session_params *params,
                               struct cox__resolved **resolved);
const struct cox__session_spec *cox__resolve_spec(const struct cox__resolved *resolved);
void cox__resolve_free(struct cox__resolved *resolved);

#endif
