/* The application's calls with public parameters: create a session, submit or run a frame, run one
 * kernel once. They fill in specs (base/spec.h) for session.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "misuse.h"
#include "resolve.h"
#include "signature.h"

#include <stdlib.h>
#include <string.h>

cox_status cox_session_create(cox_runtime *runtime, const struct cox_session_params *params,
                              cox_session **out)
{
    if (!runtime || !params || !out)
        return cox__session_create(runtime, NULL, out);

    *out = NULL;
    struct cox__resolved *resolved;
    cox_status status = cox__resolve_params(runtime, params, &resolved);
    if (status == COX_OK)
        status = cox__session_create(runtime, cox__resolve_spec(resolved), out);

    cox__resolve_free(resolved);
    return status;
}

/* ---- frames ---- */

/* A frame with a buffer for each binding. */
struct full {
    struct cox__frame_spec spec;
    cox_buffer *buffers[COX_BUFFERS_MAX];
    uint32_t wrapped; /* a bit for each buffer around plain memory, which must be destroyed */
};

static uint32_t buffers_needed(const cox_session *session)
{
    uint32_t needed = 0;
    for (uint32_t b = 0; b < session->pipeline.binding_count; b++)
        needed += !session->pipeline.bindings[b].scratch;

    return needed;
}

/* Elements of a list that ends with NULL. Does not count further than `most` + 1. */
static uint32_t length_of(const void *const *list, uint32_t most)
{
    uint32_t length = 0;
    while (list && length <= most && list[length])
        length++;

    return length;
}

static cox_status check_length(const cox_session *session, const void *const *list,
                               const char *name)
{
    const uint32_t needed = buffers_needed(session);
    const uint32_t given = length_of(list, needed);
    if (given == needed)
        return COX_OK;

    cox__log(&session->runtime->log, COX_LOG_ERROR, "a frame needs %u buffers; `%s` lists %u%s",
             needed, name, given, given > needed ? " or more" : "");
    return COX_E_INVALID;
}

/* Whether the memory at index `given` is also given for a binding before it, and one of the two is
 * written. */
static bool is_given_twice(const cox_session *session, const void *const *data, uint32_t given,
                           uint32_t binding)
{
    const struct cox__pipeline *pipeline = &session->pipeline;
    for (uint32_t i = 0, b = 0; i < given; i++, b++) {
        while (pipeline->bindings[b].scratch)
            b++;
        const bool writes = pipeline->bindings[b].access != COX__READ ||
                            pipeline->bindings[binding].access != COX__READ;
        if (data[i] == data[given] && writes)
            return true;
    }
    return false;
}

static void drop_wrapped(struct full *full)
{
    for (uint32_t b = 0; b < COX_BUFFERS_MAX; b++)
        if (full->wrapped >> b & 1)
            cox_buffer_destroy(&full->buffers[b]);
}

/* Buffers for plain memory, which live as long as the call. */
static cox_status wrap_data(cox_session *session, const struct cox_frame *frame, struct full *full)
{
    cox_status status = check_length(session, frame->data, "data");
    if (!status && session->pipeline.stays) {
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "the session has buffers that stay on devices; use `buffers`, not `data`");
        status = COX_E_INVALID;
    }

    for (uint32_t b = 0, i = 0; !status && b < session->pipeline.binding_count; b++) {
        if (session->pipeline.bindings[b].scratch)
            continue;
        if (is_given_twice(session, frame->data, i, b)) {
            cox__log(&session->runtime->log, COX_LOG_ERROR,
                     "data %u (%s) is given twice, but a kernel writes it; use separate memory", i,
                     session->pipeline.bindings[b].name);
            status = COX_E_INVALID;
            break;
        }

        status = cox_buffer_wrap(session->runtime, (void *)frame->data[i++],
                                 session->pipeline.bytes[b], NULL, NULL, &full->buffers[b]);
        if (!status)
            full->wrapped |= UINT32_C(1) << b;
    }

    if (status)
        drop_wrapped(full);

    return status;
}

static cox_status place_buffers(const cox_session *session, const struct cox_frame *frame,
                                struct full *full)
{
    const cox_status status = check_length(session, (const void *const *)frame->buffers, "buffers");
    for (uint32_t b = 0, i = 0; !status && b < session->pipeline.binding_count; b++)
        if (!session->pipeline.bindings[b].scratch)
            full->buffers[b] = frame->buffers[i++];

    return status;
}

static void fill_spec(const cox_session *session, const struct cox_frame *frame, struct full *full)
{
    full->spec = (struct cox__frame_spec){.buffers = full->buffers,
                                          .buffer_count = session->pipeline.binding_count,
                                          .params = frame->constants,
                                          .nowait = frame->nowait,
                                          .deadline_ns = frame->deadline_ns,
                                          .late = frame->late};
}

cox_status cox_session_submit(cox_session *session, const struct cox_frame *frame,
                              cox_done_fn *done, void *user)
{
    if (!session || cox__misuse_null(session->runtime, frame, "cox_session_submit", "frame"))
        return COX_E_INVALID;

    if (frame->data) {
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "cox_session_submit: `data` is for cox_session_run only; use `buffers`");
        return COX_E_INVALID;
    }

    struct full full = {.wrapped = 0};
    const cox_status status = place_buffers(session, frame, &full);
    if (status)
        return status;

    fill_spec(session, frame, &full);
    return cox__session_submit(session, &full.spec, done, user);
}

cox_status cox_session_run(cox_session *session, const struct cox_frame *frame)
{
    if (!session || cox__misuse_null(session->runtime, frame, "cox_session_run", "frame") ||
        cox__misuse(session->runtime, "cox_session_run"))
        return COX_E_INVALID;

    struct full full = {.wrapped = 0};
    cox_status status;
    if (frame->data)
        status = wrap_data(session, frame, &full);
    else
        status = place_buffers(session, frame, &full);
    if (status)
        return status;

    fill_spec(session, frame, &full);
    status = cox__session_run(session, &full.spec);
    drop_wrapped(&full);
    return status;
}

/* ---- one kernel, once ---- */

/* What cox_run makes of a signature. */
struct once {
    struct cox__signature signature;
    struct cox_field fields[COX_ARGUMENTS_MAX + 1];
    const void *data[COX_ARGUMENTS_MAX + 1];
    char constants[COX_CONSTANTS_BYTES_MAX];
    size_t constants_bytes;
    uint32_t field_count, data_count;
};

/* A value becomes a field of the constants. */
static cox_status add_value(struct once *once, const struct cox__parameter *parameter,
                            const void *value, const struct cox__log *log)
{
    if (!parameter->bytes || parameter->bytes > sizeof once->constants - once->constants_bytes) {
        cox__log(log, COX_LOG_ERROR,
                 "cox_run: '%s %s' cannot be passed by value; use a session with `fields`",
                 parameter->type, parameter->name);
        return COX_E_INVALID;
    }

    once->fields[once->field_count++] = (struct cox_field){
        .name = parameter->name, .offset = once->constants_bytes, .bytes = parameter->bytes};
    memcpy(once->constants + once->constants_bytes, value, parameter->bytes);
    once->constants_bytes += parameter->bytes;
    return COX_OK;
}

static cox_status add_parameter(struct once *once, const struct cox__parameter *parameter,
                                const void *value, const struct cox__log *log)
{
    if (parameter->kind == COX__PARAMETER_VALUE)
        return add_value(once, parameter, value, log);
    if (parameter->kind != COX__PARAMETER_BUFFER) {
        cox__log(log, COX_LOG_ERROR, "cox_run: '%s' is an image or local memory; use a session",
                 parameter->name);
        return COX_E_INVALID;
    }

    once->data[once->data_count++] = value;
    return COX_OK;
}

static cox_status take_args(struct once *once, const void *const *args, const struct cox__log *log)
{
    uint32_t given = 0;
    for (uint32_t p = 0; p < once->signature.count; p++) {
        const struct cox__parameter *parameter = &once->signature.parameters[p];
        if (cox__resolve_fills_in(&once->signature, parameter))
            continue;

        if (!args || !args[given]) {
            cox__log(log, COX_LOG_ERROR, "cox_run: kernel %s: argument '%s' is missing",
                     once->signature.kernel, parameter->name);
            return COX_E_INVALID;
        }

        const cox_status status = add_parameter(once, parameter, args[given++], log);
        if (status)
            return status;
    }

    if (args && args[given]) {
        cox__log(log, COX_LOG_ERROR, "cox_run: kernel %s takes %u arguments, but more are given",
                 once->signature.kernel, given);
        return COX_E_INVALID;
    }
    return COX_OK;
}

static cox_status run_once(cox_runtime *runtime, const char *source, uint32_t columns,
                           uint32_t rows, const struct once *once)
{
    const struct cox_pass passes[] = {{.source = source}, {0}};
    const struct cox_session_params params = {.columns = columns,
                                              .rows = rows,
                                              .passes = passes,
                                              .fields = once->fields,
                                              .constants_bytes = once->constants_bytes,
                                              .warmup = COX_WARMUP_NONE,
                                              .no_profile = true};
    const struct cox_frame frame = {.data = once->data, .constants = once->constants};

    cox_session *session;
    cox_status status = cox_session_create(runtime, &params, &session);
    if (status == COX_OK)
        status = cox_session_run(session, &frame);

    cox_session_destroy(&session);
    return status;
}

cox_status cox_run(cox_runtime *runtime, const char *source, uint32_t columns, uint32_t rows,
                   const void *const *args)
{
    if (!runtime || cox__misuse_null(runtime, source, "cox_run", "source") ||
        cox__misuse(runtime, "cox_run"))
        return COX_E_INVALID;

    struct once *once = calloc(1, sizeof *once);
    if (!once)
        return COX_E_NOMEM;

    cox_status status = cox__signature_read(source, NULL, &once->signature, &runtime->log);
    if (status == COX_OK)
        status = take_args(once, args, &runtime->log);
    if (status == COX_OK)
        status = run_once(runtime, source, columns, rows, once);

    free(once);
    return status;
}
