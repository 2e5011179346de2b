/* Makes a spec of a session's public parameters: kernels' signatures give the arguments, and
 * buffers are found by name. Called by cox_session_create (frames.c) and by streams.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_RESOLVE_H
#define COX_API_RESOLVE_H

#include "base/spec.h"
#include "engine/engine.h"
#include "signature.h"

/* A pipeline of the library's kernels (library_pipeline.c). */
struct cox_pipeline {
    struct cox__session_spec spec; /* points into `storage` */
    struct cox__pipeline_storage storage;
};

/* The parameters that do not describe passes. The spec's list of devices points to `devices`.
 * Errors: COX_E_INVALID, COX_E_NOT_FOUND (the log says which field). */
cox_status cox__resolve_common(const cox_runtime *runtime, const struct cox_session_params *params,
                               struct cox__session_spec *spec, uint32_t devices[COX_DEVICES_MAX]);

/* Whether `name` is a number that every kernel can take, such as "columns", and which one. */
bool cox__resolve_number(const char *name, enum cox__arg_kind *kind);

/* Whether the library gives the parameter's value: such a number, NAME_first_row or NAME_pitch. */
bool cox__resolve_fills_in(const struct cox__signature *signature,
                           const struct cox__parameter *parameter);

struct cox__resolved;

/* All parameters. The spec points into `*resolved` and into `params`. Free it with
 * cox__resolve_free, on an error too.
 * Errors: COX_E_INVALID, COX_E_NOT_FOUND (the log says which field), COX_E_NOMEM. */
cox_status cox__resolve_params(const cox_runtime *runtime, const struct cox_session_params *params,
                               struct cox__resolved **resolved);
const struct cox__session_spec *cox__resolve_spec(const struct cox__resolved *resolved);
void cox__resolve_free(struct cox__resolved *resolved);

#endif
