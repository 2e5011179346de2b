/* A session's passes in groups, with their kernels' signatures and the buffers that these name.
 * resolve.c makes a spec of them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_GROUPS_H
#define COX_API_GROUPS_H

#include "base/spec.h"
#include "engine/engine.h"
#include "signature.h"

#define COX__REFUSE(log, ...) (cox__log(log, COX_LOG_ERROR, __VA_ARGS__), COX_E_INVALID)

/* One pass of the application, and what it becomes. */
struct cox__group_member {
    const struct cox_pass *pass;
    const char *source;
    struct cox__signature signature;
    struct cox__variant variants[COX_DEVICES_MAX];
    struct cox__arg args[COX_ARGUMENTS_MAX];
    struct cox__arg_text texts[COX_ARGUMENTS_MAX];
};

/* A pass with those that are fused with it: one pass of the engine, with its stages. */
struct cox__group {
    struct cox__group_member members[COX_FUSED_MAX];
    struct cox__stage stages[COX_FUSED_MAX];
    struct cox__pass_binding bindings[COX_BUFFERS_MAX];
    uint32_t devices[COX_DEVICES_MAX];
};

/* A buffer of the session, as its list or the signatures name it. */
struct cox__group_buffer {
    char name[COX__NAME_BYTES];
    const struct cox_buffer_layout *layout; /* NULL = found in a signature */
    uint32_t element_bytes;                 /* 0 = unknown */
    uint32_t columns;                       /* of the first kernel that takes it */
    bool used;                              /* a kernel takes it */
};

/* The parameters of a session while they are resolved. */
struct cox__resolved {
    struct cox__session_spec spec;
    uint32_t devices[COX_DEVICES_MAX];
    struct cox__binding bindings[COX_BUFFERS_MAX];
    struct cox__pass_spec passes[COX_PASSES_MAX];
    struct cox__group groups[COX_PASSES_MAX];
    struct cox__group_buffer buffers[COX_BUFFERS_MAX];
    const struct cox_session_params *params;
    const cox_runtime *runtime;
    const struct cox__log *log;
};

/* Read the passes and their signatures, put them in groups, and find and lay out all buffers.
 * Errors: COX_E_INVALID (the log says why). */
cox_status cox__groups_read(struct cox__resolved *r);

/* The session's number of the buffer that a kernel of the pass calls `name`; UINT32_MAX: none. */
uint32_t cox__group_buffer_of(const struct cox__resolved *r, const struct cox_pass *pass,
                              const char *name);

/* What the pass says about the parameter of this name, or NULL. */
const struct cox_argument *cox__group_argument(const struct cox_pass *pass, const char *name);

#endif
