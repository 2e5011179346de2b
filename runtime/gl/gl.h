/* What the files of this folder share: a GL context of the application, and its errors.
 *
 * Runs on the application's GL thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_GL_GL_H
#define COX_GL_GL_H

#include "functions.h"
#include "api/misuse.h"
#include "opencl/gl_sharing.h"

struct cox_gl {
    cox_runtime *runtime;
    struct cox__gl_functions gl;
    void *context;                      /* of `gl.current` */
    uint32_t framebuffer;               /* a texture that is read is attached to it */
    uint32_t buffer_count;              /* that exist */
    struct cox__cl_gl_sharing *sharing; /* NULL = buffer objects are mapped */
};

/* Whether `function` can call OpenGL here; if not, a log line says why. Drops pending errors. */
bool cox__gl_enter(const cox_gl *gl, const char *function);

/* The status of the GL calls since cox__gl_enter. A log line names `function` and `what` failed. */
cox_status cox__gl_status(const cox_gl *gl, const char *function, const char *what);

#endif
