/* The application's GL context: created, checked on each call, destroyed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gl.h"

#include <stdlib.h>

/* ---- calls ---- */

enum { ERRORS_MAX = 16 }; /* pending at once. A lost context may never stop to report them */

/* Whether the context is current here. A log line otherwise. */
static bool is_current(const cox_gl *gl, const char *function)
{
    const bool current = gl->gl.current ? gl->gl.current() == gl->context
                                        : gl->gl.GetString(GL_VERSION) != NULL;
    if (!current)
        cox__log(&gl->runtime->log, COX_LOG_ERROR,
                 "%s: the GL context of cox_gl_create is not current in this thread", function);

    return current;
}

bool cox__gl_enter(const cox_gl *gl, const char *function)
{
    if (cox__misuse_forked(gl->runtime, function) || !is_current(gl, function))
        return false;

    for (int i = 0; i < ERRORS_MAX; i++) {
        const uint32_t error = gl->gl.GetError();
        if (error == GL_NO_ERROR)
            break;
        cox__log(&gl->runtime->log, COX_LOG_WARN, "%s: drops the pending GL error 0x%04x", function,
                 error);
    }
    return true;
}

/* The name of an error, and its status. */
static cox_status status_of(uint32_t error, const char **name)
{
    static const struct {
        const char *name;
        cox_status status;
    } errors[] = {
        {"GL_INVALID_ENUM", COX_E_UNSUPPORTED},
        {"GL_INVALID_VALUE", COX_E_INVALID},
        {"GL_INVALID_OPERATION", COX_E_UNSUPPORTED},
        {"GL_STACK_OVERFLOW", COX_E_UNSUPPORTED},
        {"GL_STACK_UNDERFLOW", COX_E_UNSUPPORTED},
        {"GL_OUT_OF_MEMORY", COX_E_DEVICE_MEMORY},
        {"GL_INVALID_FRAMEBUFFER_OPERATION", COX_E_UNSUPPORTED},
        {"GL_CONTEXT_LOST", COX_E_DEVICE_LOST},
    };
    enum { FIRST = 0x0500 };

    *name = "unknown GL error";
    if (error < FIRST || error >= FIRST + sizeof errors / sizeof *errors)
        return COX_E_UNSUPPORTED;

    *name = errors[error - FIRST].name;
    return errors[error - FIRST].status;
}

cox_status cox__gl_status(const cox_gl *gl, const char *function, const char *what)
{
    const uint32_t error = gl->gl.GetError();
    if (error == GL_NO_ERROR)
        return COX_OK;

    const char *name;
    const cox_status status = status_of(error, &name);
    cox__log(&gl->runtime->log, COX_LOG_ERROR, "%s: %s: %s (0x%04x)", function, what, name, error);
    return status;
}

/* ---- the context ---- */

static void log_way(const cox_gl *gl)
{
    const char *way = "buffer objects are mapped while the host has them";
    if (gl->sharing)
        way = "OpenCL copies by cl_khr_gl_sharing";
    else if (gl->gl.BufferStorage)
        way = "buffer objects stay mapped";

    cox__log(&gl->runtime->log, COX_LOG_INFO, "OpenGL %s%d.%d on %s: %s", gl->gl.is_es ? "ES " : "",
             gl->gl.version / 10, gl->gl.version % 10, (const char *)gl->gl.GetString(GL_RENDERER),
             way);
}

cox_status cox_gl_create(cox_runtime *runtime, const struct cox_gl_params *params, cox_gl **out)
{
    static const char function[] = "cox_gl_create";

    if (out)
        *out = NULL;
    if (!runtime || cox__misuse_null(runtime, out, function, "out") ||
        cox__misuse_forked(runtime, function) ||
        cox__misuse_null(runtime, params, function, "params") ||
        cox__misuse_null(runtime, (const void *)params->get_function, function, "get_function"))
        return COX_E_INVALID;

    cox_gl *gl = calloc(1, sizeof *gl);
    if (!gl)
        return COX_E_NOMEM;

    gl->runtime = runtime;
    cox_status status = cox__gl_functions_load(&runtime->log, params, &gl->gl);
    if (status)
        goto fail;

    if (gl->gl.current) {
        gl->context = gl->gl.current();
        gl->sharing = cox__cl_gl_sharing_open(runtime, gl->context);
    }

    cox__gl_enter(gl, function);
    gl->gl.GenFramebuffers(1, &gl->framebuffer);
    status = cox__gl_status(gl, function, "glGenFramebuffers");
    if (status)
        goto fail;

    log_way(gl);
    *out = gl;
    return COX_OK;

fail:
    cox__cl_gl_sharing_close(&gl->sharing);
    free(gl);
    return status;
}

void cox_gl_destroy(cox_gl **out)
{
    static const char function[] = "cox_gl_destroy";

    if (!out || !*out)
        return;

    cox_gl *gl = *out;
    if (cox__misuse_forked(gl->runtime, function))
        return;
    if (gl->buffer_count) {
        cox__log(&gl->runtime->log, COX_LOG_ERROR, "%s: destroy its buffers (%u) first", function,
                 gl->buffer_count);
        return;
    }

    *out = NULL;
    if (is_current(gl, function))
        gl->gl.DeleteFramebuffers(1, &gl->framebuffer);

    cox__cl_gl_sharing_close(&gl->sharing);
    free(gl);
}
