/* Loads OpenGL's functions through the application's loader, and learns what the context can do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"

#include <string.h>

enum { DESKTOP_MIN = 32, ES_MIN = 30, NO_VERSION = 1000 };

/* Which function tells the current context: that of EGL, or of GLX. EGL is asked first, because a
 * loader of GLX makes a function of any name that begins with gl. False: no context is current. */
static bool load_current(const struct cox_gl_params *params, struct cox__gl_functions *gl)
{
    static const char *const names[] = {"eglGetCurrentContext", "glXGetCurrentContext"};
    bool found = false;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        gl->current = (void *(*)(void))params->get_function(params->user, names[i]);
        if (gl->current && gl->current())
            return true;
        found = found || gl->current;
    }

    gl->current = NULL;
    return !found;
}

static bool load_required(const struct cox__log *log, const struct cox_gl_params *params,
                          struct cox__gl_functions *gl)
{
    const char *missing = NULL;

#define X(result, name, parameters)                                                  \
    gl->name = (result(*) parameters)params->get_function(params->user, "gl" #name); \
    if (!gl->name)                                                                   \
        missing = "gl" #name;
    COX__GL_FUNCTIONS(X)
#undef X

    if (missing)
        cox__log(log, COX_LOG_ERROR, "cox_gl_create: the loader finds no %s", missing);
    return !missing;
}

static bool has_extension(const struct cox__gl_functions *gl, const char *name)
{
    int32_t count = 0;
    gl->GetIntegerv(GL_NUM_EXTENSIONS, &count);

    for (int32_t i = 0; i < count; i++) {
        const char *extension = (const char *)gl->GetStringi(GL_EXTENSIONS, (uint32_t)i);
        if (extension && strcmp(extension, name) == 0)
            return true;
    }
    return false;
}

/* A function that OpenGL or OpenGL ES has from a version on, or with an extension. A loader may
 * return a function for any name, so these are asked for only then. */
struct option {
    const char *name;
    int32_t desktop; /* version; NO_VERSION = never */
    int32_t es;
    const char *extension; /* of OpenGL; NULL = none */
    const char *es_extension;
    const char *es_name; /* of es_extension's function */
};

static cox_gl_function *load_option(const struct cox_gl_params *params,
                                    const struct cox__gl_functions *gl, const struct option *option)
{
    const char *extension = gl->is_es ? option->es_extension : option->extension;
    const char *name = option->name;

    if (gl->version < (gl->is_es ? option->es : option->desktop)) {
        if (!extension || !has_extension(gl, extension))
            return NULL;
        if (gl->is_es)
            name = option->es_name;
    }
    return params->get_function(params->user, name);
}

static void load_optional(const struct cox_gl_params *params, struct cox__gl_functions *gl)
{
    static const struct option storage = {.name = "glBufferStorage",
                                          .desktop = 44,
                                          .es = NO_VERSION,
                                          .extension = "GL_ARB_buffer_storage",
                                          .es_extension = "GL_EXT_buffer_storage",
                                          .es_name = "glBufferStorageEXT"};
    static const struct option barrier = {.name = "glMemoryBarrier",
                                          .desktop = 42,
                                          .es = 31,
                                          .extension = "GL_ARB_shader_image_load_store"};
    static const struct option level = {
        .name = "glGetTexLevelParameteriv", .desktop = DESKTOP_MIN, .es = 31};

    gl->BufferStorage = (void (*)(uint32_t, ptrdiff_t, const void *,
                                  uint32_t))load_option(params, gl, &storage);
    gl->MemoryBarrier = (void (*)(uint32_t))load_option(params, gl, &barrier);
    gl->GetTexLevelParameteriv = (void (*)(uint32_t, int32_t, uint32_t,
                                           int32_t *))load_option(params, gl, &level);
}

cox_status cox__gl_functions_load(const struct cox__log *log, const struct cox_gl_params *params,
                                  struct cox__gl_functions *gl)
{
    static const char es[] = "OpenGL ES";

    const bool has_context = load_current(params, gl);
    if (!load_required(log, params, gl))
        return COX_E_UNSUPPORTED;

    const char *text = (const char *)gl->GetString(GL_VERSION);
    if (!has_context || !text) {
        cox__log(log, COX_LOG_ERROR, "cox_gl_create: no GL context is current in this thread");
        return COX_E_INVALID;
    }
    gl->is_es = strncmp(text, es, strlen(es)) == 0;

    /* Contexts before 3.0 do not know these names and leave the values alone. */
    int32_t major = 0, minor = 0;
    gl->GetIntegerv(GL_MAJOR_VERSION, &major);
    gl->GetIntegerv(GL_MINOR_VERSION, &minor);
    gl->version = 10 * major + minor;
    if (gl->version < (gl->is_es ? ES_MIN : DESKTOP_MIN)) {
        cox__log(log, COX_LOG_ERROR,
                 "cox_gl_create: the context is \"%s\"; needed: OpenGL 3.2 or OpenGL ES 3.0", text);
        return COX_E_UNSUPPORTED;
    }

    load_optional(params, gl);
    return COX_OK;
}
