/* What a kernel takes and which buffers a session has, for callers that learn it at run time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "misuse.h"
#include "resolve.h"
#include "signature.h"

#include <coxswain/inspect.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)COX_NAME_BYTES == (int)COX__NAME_BYTES, "a name fits");

/* ---- kernels ---- */

static enum cox_parameter_kind kind_of(const struct cox__signature *signature,
                                       const struct cox__parameter *parameter)
{
    switch (parameter->kind) {
    case COX__PARAMETER_BUFFER:
        return COX_PARAMETER_BUFFER;
    case COX__PARAMETER_IMAGE:
        return COX_PARAMETER_IMAGE;
    case COX__PARAMETER_LOCAL:
        return COX_PARAMETER_LOCAL;
    case COX__PARAMETER_VALUE:
        break;
    }
    if (cox__resolve_fills_in(signature, parameter))
        return COX_PARAMETER_FILLED_IN;

    return COX_PARAMETER_VALUE;
}

static void describe(const struct cox__signature *signature, const struct cox__parameter *parameter,
                     struct cox_parameter *out)
{
    const bool points = cox__signature_takes_buffer(parameter);
    *out = (struct cox_parameter){.kind = kind_of(signature, parameter),
                                  .type_bytes = parameter->bytes,
                                  .writes = points && !parameter->reads_only};

    memcpy(out->name, parameter->name, sizeof out->name);
    memcpy(out->type, parameter->type, sizeof out->type);
}

cox_status cox_kernel_parameters(const cox_runtime *runtime, const char *source, const char *kernel,
                                 struct cox_parameter parameters[COX_ARGUMENTS_MAX],
                                 uint32_t *count)
{
    static const char name[] = "cox_kernel_parameters";
    if (count)
        *count = 0;
    if (!runtime || cox__misuse_null(runtime, source, name, "source") ||
        cox__misuse_null(runtime, parameters, name, "parameters") ||
        cox__misuse_null(runtime, count, name, "count"))
        return COX_E_INVALID;

    struct cox__signature *signature = calloc(1, sizeof *signature);
    if (!signature) {
        cox__log(&runtime->log, COX_LOG_ERROR, "%s: no memory for %zu bytes", name,
                 sizeof *signature);
        return COX_E_NOMEM;
    }

    const cox_status status = cox__signature_read(source, kernel, signature, &runtime->log);
    for (uint32_t p = 0; !status && p < signature->count; p++)
        describe(signature, &signature->parameters[p], &parameters[p]);
    if (!status)
        *count = signature->count;

    free(signature);
    return status;
}

/* ---- sessions ---- */

uint32_t cox_session_buffer_count(const cox_session *session)
{
    if (!session)
        return 0;

    return session->pipeline.binding_count;
}

cox_status cox_session_buffer_info(const cox_session *session, uint32_t index,
                                   struct cox_session_buffer *buffer)
{
    if (!session || !buffer)
        return COX_E_INVALID;
    if (index >= session->pipeline.binding_count)
        return COX_E_NOT_FOUND;

    const struct cox__binding *binding = &session->pipeline.bindings[index];
    *buffer = (struct cox_session_buffer){.bytes = session->pipeline.bytes[index],
                                          .reads = binding->access != COX__WRITE,
                                          .writes = binding->access != COX__READ,
                                          .scratch = binding->scratch};
    if (binding->row_access == COX__ROWS || binding->row_access == COX__HALO)
        buffer->pitch_bytes = binding->pitch_bytes;
    if (binding->name)
        strncpy(buffer->name, binding->name, sizeof buffer->name - 1);

    return COX_OK;
}
