/* The parameters of a kernel, read from its source: a session needs them before a device compiles
 * it. Drivers could say the same later (clGetKernelArgInfo), but not all do, and a session's split
 * depends on the buffers.
 *
 * The reader skips comments and preprocessor lines, and it knows OpenCL C's types. It cannot read a
 * signature that macros make. It reads all branches of an #if.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_SIGNATURE_H
#define COX_API_SIGNATURE_H

#include "base/log.h"
#include "base/spec.h"

#include <coxswain/session.h>

enum { COX__NAME_BYTES = COX__ARG_TEXT_BYTES };

enum cox__parameter_kind {
    COX__PARAMETER_BUFFER, /* global or constant pointer */
    COX__PARAMETER_IMAGE,  /* image2d_t */
    COX__PARAMETER_LOCAL,  /* local pointer */
    COX__PARAMETER_VALUE,
};

struct cox__parameter {
    enum cox__parameter_kind kind;
    bool reads_only; /* a pointer to const, or to constant memory */
    char name[COX__NAME_BYTES];
    char type[COX__NAME_BYTES]; /* of a pointer: what it points to */
    uint32_t bytes;             /* of that type; 0 = not a type of OpenCL C */
};

/* Whether the parameter is a buffer, or an image of one. */
static inline bool cox__signature_takes_buffer(const struct cox__parameter *parameter)
{
    return parameter->kind == COX__PARAMETER_BUFFER || parameter->kind == COX__PARAMETER_IMAGE;
}

struct cox__signature {
    char kernel[COX__NAME_BYTES];
    bool defined;      /* false: only declared */
    bool local_arrays; /* its body declares local memory */
    uint32_t count;
    struct cox__parameter parameters[COX_ARGUMENTS_MAX];
};

/* Read the signature of a kernel. If `kernel` is NULL, the source must have only one.
 * Errors: COX_E_INVALID (no such kernel, several, or one that cannot be read; the log says
 * which). */
cox_status cox__signature_read(const char *source, const char *kernel,
                               struct cox__signature *signature, const struct cox__log *log);

/* Whether the source has the kernel's body. True if that cannot be read. `kernel` as above. */
bool cox__signature_is_defined(const char *source, const char *kernel);

/* The parameter of this name, or NULL. */
const struct cox__parameter *cox__signature_find(const struct cox__signature *signature,
                                                 const char *name);

#endif
