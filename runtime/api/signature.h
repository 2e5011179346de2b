/* The parameters of a kernel, read from its source: what a session needs to know before a device compiles it. A driver
 * could say the same later (clGetKernelArgInfo), but not all do, and a session's split depends on the buffers.
 *
 * The reader skips comments and preprocessor lines and knows OpenCL C's types. A signature that is made by macros
 * cannot be read.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_SIGNATURE_H
#define COX_API_SIGNATURE_H

#include "base/log.h"

#include <coxswain/session.h>

enum { COX__NAME_BYTES = 64 };

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

struct cox__signature {
    char kernel[COX__NAME_BYTES];
    uint32_t count;
    struct cox__parameter parameters[COX_ARGUMENTS_MAX];
};

/* Read the signature of a kernel. `kernel` NULL: of the only one in the source.
 * Errors: COX_E_INVALID (no such kernel, several, or one that cannot be read; the log says which). */
cox_status cox__signature_read(const char *source, const char *kernel,
                               struct cox__signature *signature, const struct cox__log *log);

#endif
