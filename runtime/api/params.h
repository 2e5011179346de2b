/* What an application passes in, copied into this library's structs: the one place that knows that they may differ.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_PARAMS_H
#define COX_RUNTIME_PARAMS_H

#include "base/log.h"
#include "sized.h"
#include <coxswain/session.h>

/* A session's parameters with all that they point to but strings and sources. Refers to itself: not to be copied. */
struct cox__session_params {
    struct cox_session_params
        params; /* strides 0; custom_policy NULL or below, policy_options below */
    struct cox_policy policy;
    struct cox_policy_options policy_options;
    struct cox_binding bindings[COX_BINDINGS_MAX];
    struct cox_pass passes[COX_PASSES_MAX];
    struct cox__stages_read {
        struct cox_use uses[COX_BINDINGS_MAX];
        struct cox_stage stages[COX_STAGES_MAX];
        struct cox_variant variants[COX_STAGES_MAX][COX_DEVICES_MAX];
        struct cox_arg args[COX_STAGES_MAX][COX_ARGS_MAX];
    } of_pass[COX_PASSES_MAX]; /* the first one: the session's own, if it has no passes */
};

/* Errors: COX_E_INVALID (an array is missing or too long), COX_E_UNSUPPORTED (a field that is not known here is not
 * zero). The log says which. */
cox_status cox__params_read_session(struct cox__session_params *to,
                                    const struct cox_session_params *from,
                                    const struct cox__log *log);

/* The status, after a line in the log if it is COX_E_UNSUPPORTED. */
cox_status cox__params_told(cox_status status, const char *type, const struct cox__log *log);

#endif
