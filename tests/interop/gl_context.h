/* GL contexts without a window, for the tests of coxswain/gl.h: their functions, and a loader for the library that
 * counts objects and can hide what a context has.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_GL_CONTEXT_H
#define COX_TESTS_GL_CONTEXT_H

#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/glcorearb.h>
#include <coxswain/gl.h>
#include "support/check.h"

#define GL_CALLS(X)                                        \
    X(PFNGLGETERRORPROC, GetError)                         \
    X(PFNGLGETINTEGERVPROC, GetIntegerv)                   \
    X(PFNGLFINISHPROC, Finish)                             \
    X(PFNGLENABLEPROC, Enable)                             \
    X(PFNGLGENTEXTURESPROC, GenTextures)                   \
    X(PFNGLDELETETEXTURESPROC, DeleteTextures)             \
    X(PFNGLBINDTEXTUREPROC, BindTexture)                   \
    X(PFNGLTEXSTORAGE2DPROC, TexStorage2D)                 \
    X(PFNGLTEXSUBIMAGE2DPROC, TexSubImage2D)               \
    X(PFNGLPIXELSTOREIPROC, PixelStorei)                   \
    X(PFNGLREADPIXELSPROC, ReadPixels)                     \
    X(PFNGLGENFRAMEBUFFERSPROC, GenFramebuffers)           \
    X(PFNGLDELETEFRAMEBUFFERSPROC, DeleteFramebuffers)     \
    X(PFNGLBINDFRAMEBUFFERPROC, BindFramebuffer)           \
    X(PFNGLFRAMEBUFFERTEXTURE2DPROC, FramebufferTexture2D) \
    X(PFNGLGENBUFFERSPROC, GenBuffers)                     \
    X(PFNGLDELETEBUFFERSPROC, DeleteBuffers)               \
    X(PFNGLISBUFFERPROC, IsBuffer)                         \
    X(PFNGLBINDBUFFERPROC, BindBuffer)                     \
    X(PFNGLBUFFERDATAPROC, BufferData)                     \
    X(PFNGLBUFFERSUBDATAPROC, BufferSubData)               \
    X(PFNGLMAPBUFFERRANGEPROC, MapBufferRange)             \
    X(PFNGLUNMAPBUFFERPROC, UnmapBuffer)                   \
    X(PFNGLCLIENTWAITSYNCPROC, ClientWaitSync)             \
    X(PFNGLFENCESYNCPROC, FenceSync)                       \
    X(PFNGLDELETESYNCPROC, DeleteSync)

static struct {
#define X(type, name) type name;
    GL_CALLS(X)
#undef X
    PFNGLBUFFERSTORAGEPROC BufferStorage;
} gl;

/* The kinds of contexts. An old one is a new one whose loader hides the version and the extensions. */
enum kind { DESKTOP, DESKTOP_OLD, ES, ES_OLD, KINDS };

static const char *const kind_names[] = {"OpenGL", "OpenGL 3.2", "OpenGL ES", "OpenGL ES 3.0"};

static inline bool is_es(enum kind kind)
{
    return kind == ES || kind == ES_OLD;
}

/* ---- contexts ---- */

static EGLDisplay display;

/* NVIDIA's way to work without a window system: on a device. */
static inline EGLDisplay display_of_a_device(void)
{
    PFNEGLQUERYDEVICESEXTPROC query = (PFNEGLQUERYDEVICESEXTPROC)eglGetProcAddress("eglQueryDevicesEXT");
    EGLDeviceEXT device;
    EGLint count = 0;
    if (!query || !query(1, &device, &count) || !count)
        return EGL_NO_DISPLAY;
    return eglGetPlatformDisplay(EGL_PLATFORM_DEVICE_EXT, device, NULL);
}

/* False: EGL cannot work without a window system here. */
static inline bool open_display(void)
{
    const char *extensions = eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
    if (extensions && strstr(extensions, "EGL_MESA_platform_surfaceless")) {
        display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
        if (eglInitialize(display, NULL, NULL))
            return true;
    }
    display = EGL_NO_DISPLAY;
    if (extensions && strstr(extensions, "EGL_EXT_platform_device"))
        display = display_of_a_device();
    return display != EGL_NO_DISPLAY && eglInitialize(display, NULL, NULL);
}

static inline void make_current(EGLContext context)
{
    CHECK(eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context));
}

static inline EGLContext new_context(enum kind kind)
{
    const EGLint attributes[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 2, EGL_NONE};
    CHECK(eglBindAPI(is_es(kind) ? EGL_OPENGL_ES_API : EGL_OPENGL_API));
    EGLContext context = eglCreateContext(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, attributes);
    CHECK(context);
    make_current(context);
#define X(type, name) gl.name = (type)eglGetProcAddress("gl" #name);
    GL_CALLS(X)
#undef X
    gl.BufferStorage = (PFNGLBUFFERSTORAGEPROC)eglGetProcAddress(is_es(kind) ? "glBufferStorageEXT"
                                                                             : "glBufferStorage");
    return context;
}

/* ---- the loader ---- */

/* What the library has created and not deleted, and how often it has called glFinish. */
static struct {
    int buffers, framebuffers, syncs, maps;
} alive;
static int finishes;

/* Calls that fail from here on. */
static struct {
    int waits; /* so many waits for a fence time out */
    bool wait, map, unmap;
} failing;

static void APIENTRY count_gen_buffers(GLsizei count, GLuint *names)
{
    alive.buffers += count;
    gl.GenBuffers(count, names);
}

static void APIENTRY count_delete_buffers(GLsizei count, const GLuint *names)
{
    alive.buffers -= count;
    gl.DeleteBuffers(count, names);
}

static void APIENTRY count_gen_framebuffers(GLsizei count, GLuint *names)
{
    alive.framebuffers += count;
    gl.GenFramebuffers(count, names);
}

static void APIENTRY count_delete_framebuffers(GLsizei count, const GLuint *names)
{
    alive.framebuffers -= count;
    gl.DeleteFramebuffers(count, names);
}

static GLsync APIENTRY count_fence(GLenum condition, GLbitfield flags)
{
    alive.syncs++;
    return gl.FenceSync(condition, flags);
}

static void APIENTRY count_delete_sync(GLsync sync)
{
    alive.syncs--;
    gl.DeleteSync(sync);
}

static GLenum APIENTRY wait_or_fail(GLsync sync, GLbitfield flags, GLuint64 timeout_ns)
{
    if (failing.waits > 0) {
        failing.waits--;
        return GL_TIMEOUT_EXPIRED;
    }
    return failing.wait ? GL_WAIT_FAILED : gl.ClientWaitSync(sync, flags, timeout_ns);
}

static void APIENTRY count_finish(void)
{
    finishes++;
    gl.Finish();
}

static void *APIENTRY count_map(GLenum target, GLintptr offset, GLsizeiptr bytes, GLbitfield access)
{
    if (failing.map)
        return NULL;
    void *mapped = gl.MapBufferRange(target, offset, bytes, access);
    alive.maps += mapped != NULL;
    return mapped;
}

static GLboolean APIENTRY count_unmap(GLenum target)
{
    alive.maps--;
    return gl.UnmapBuffer(target) && !failing.unmap;
}

/* The version that an old context reports. */
static GLint old_major, old_minor;

static void APIENTRY get_old_integer(GLenum name, GLint *value)
{
    if (name == GL_MAJOR_VERSION)
        *value = old_major;
    else if (name == GL_MINOR_VERSION)
        *value = old_minor;
    else if (name == GL_NUM_EXTENSIONS)
        *value = 0;
    else
        gl.GetIntegerv(name, value);
}

struct loader {
    enum kind kind;
    const char *missing; /* a function that it does not find */
    bool no_query;       /* it finds no function that tells the current context */
};

static inline cox_gl_function *load(void *user, const char *name)
{
    static const struct {
        const char *name;
        cox_gl_function *function;
    } counted[] = {
        {"glGenBuffers", (cox_gl_function *)count_gen_buffers},
        {"glDeleteBuffers", (cox_gl_function *)count_delete_buffers},
        {"glGenFramebuffers", (cox_gl_function *)count_gen_framebuffers},
        {"glDeleteFramebuffers", (cox_gl_function *)count_delete_framebuffers},
        {"glFenceSync", (cox_gl_function *)count_fence},
        {"glDeleteSync", (cox_gl_function *)count_delete_sync},
        {"glMapBufferRange", (cox_gl_function *)count_map},
        {"glUnmapBuffer", (cox_gl_function *)count_unmap},
        {"glFinish", (cox_gl_function *)count_finish},
        {"glClientWaitSync", (cox_gl_function *)wait_or_fail},
    };
    const struct loader *loader = user;
    if (loader->missing && strcmp(name, loader->missing) == 0)
        return NULL;
    if (loader->no_query && strstr(name, "GetCurrentContext"))
        return NULL;

    const bool old = loader->kind == DESKTOP_OLD || loader->kind == ES_OLD;
    if (old && strcmp(name, "glGetIntegerv") == 0)
        return (cox_gl_function *)get_old_integer;
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (strcmp(name, counted[i].name) == 0)
            return counted[i].function;
    return eglGetProcAddress(name);
}

static inline void set_old_version(enum kind kind)
{
    old_major = 3;
    old_minor = is_es(kind) ? 0 : 2;
}

#endif
