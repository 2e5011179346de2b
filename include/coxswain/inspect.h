/* What a kernel takes and which buffers a session has, for programs that do not know this when
 * they are compiled, such as bindings for other languages.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_INSPECT_H
#define COXSWAIN_INSPECT_H

#include <coxswain/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Room for a name in a kernel's signature, with its terminating zero. */
enum { COX_NAME_BYTES = 64 };

/* What a parameter of a kernel gets. */
enum cox_parameter_kind {
    COX_PARAMETER_BUFFER = 1,    /* a global or constant pointer */
    COX_PARAMETER_IMAGE = 2,     /* an image of a buffer */
    COX_PARAMETER_LOCAL = 3,     /* a local pointer */
    COX_PARAMETER_VALUE = 4,     /* a field of the frame's constants, or all of them */
    COX_PARAMETER_FILLED_IN = 5, /* a number that the library knows, such as `columns` */
};

/* One parameter of a kernel. */
struct cox_parameter {
    char name[COX_NAME_BYTES];
    char type[COX_NAME_BYTES]; /* such as "float4"; of a pointer: what it points to */
    enum cox_parameter_kind kind;
    uint32_t type_bytes; /* 0 = not a type of OpenCL C */
    bool writes;         /* a pointer to what is not const */
};

/* Read the parameters of a kernel from its source, as cox_session_create does. `kernel` NULL = the
 * only kernel in `source`. Fills in *count elements of `parameters`, in the kernel's order. On an
 * error *count is 0.
 *
 * Errors, each with a log line unless `runtime` is NULL:
 *   COX_E_INVALID  Another argument than `kernel` is NULL. The source has no such kernel, or
 *                  several, or one that cannot be read.
 *   COX_E_NOMEM
 *
 * Thread-safety: as for cox_runtime. */
COX_API COX_MUST_CHECK cox_status
cox_kernel_parameters(const cox_runtime *runtime, const char *source, const char *kernel,
                      struct cox_parameter parameters[COX_ARGUMENTS_MAX], uint32_t *count);

/* One buffer of a session. */
struct cox_session_buffer {
    char name[COX_NAME_BYTES]; /* as in the kernels */
    size_t bytes;              /* a frame's buffer has at least this size */
    size_t pitch_bytes;        /* from one row to the next; 0 = no rows */
    bool reads;                /* frames depend on what is in it before */
    bool writes;
    bool scratch; /* frames do not give it; `bytes` is 0 if each band has its own */
};

/* The number of buffers. 0 if `session` is NULL.
 *
 * Thread-safety: any thread. */
COX_API uint32_t cox_session_buffer_count(const cox_session *session);

/* Describe buffer `index`, from 0, in the order of cox_session_params.buffers or of the pipeline.
 * On an error *buffer is unchanged.
 *
 * Errors:
 *   COX_E_INVALID    `session` or `buffer` is NULL
 *   COX_E_NOT_FOUND  there is no buffer `index`
 *
 * Thread-safety: any thread. */
COX_API cox_status cox_session_buffer_info(const cox_session *session, uint32_t index,
                                           struct cox_session_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif
