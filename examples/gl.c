/* An application that uses OpenGL, here OpenGL ES without a window. It draws into a texture,
 * Coxswain blurs the texture on all devices, and the result is a texture again. To build and run it:
 *   cc gl.c $(pkg-config --cflags --libs coxswain egl glesv2) && ./a.out
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/coxswain.h>
#include <coxswain/gl.h>
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES3/gl3.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 640, ROWS = 480, BYTES = 4 * COLUMNS * ROWS };

static const char blur[] =
    "kernel void blur(global const uchar4 *in, int in_first_row, global uchar4 *out,\n"
    "                 int columns, int rows, int first_row, int frame_rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1), row = first_row + y;\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    int low = max(row - 1, 0) - in_first_row;\n"
    "    int high = min(row + 1, frame_rows - 1) - in_first_row;\n"
    "    out[y * columns + x] = hadd(in[low * columns + x], in[high * columns + x]);\n"
    "}\n";

static const struct cox_argument arguments[] = {{.name = "in", .halo_rows = 1}, {0}};
static const struct cox_pass passes[] = {{.source = blur, .arguments = arguments}, {0}};

/* Finds GL functions. Libraries for windows have such functions too. */
static cox_gl_function *find(void *user, const char *name)
{
    (void)user;
    return eglGetProcAddress(name);
}

static void must(cox_status status)
{
    if (status != COX_OK) {
        puts(cox_status_text(status));
        exit(1);
    }
}

static bool open_context(void)
{
    const EGLint version[] = {EGL_CONTEXT_CLIENT_VERSION, 3, EGL_NONE};
    EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, NULL, NULL);

    return eglInitialize(display, NULL, NULL) && eglBindAPI(EGL_OPENGL_ES_API) &&
           eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE,
                          eglCreateContext(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, version));
}

/* A texture, attached to the framebuffer. */
static struct cox_gl_texture new_texture(void)
{
    struct cox_gl_texture made = {.format = GL_RGBA8, .columns = COLUMNS, .rows = ROWS};
    GLuint framebuffer;

    glGenTextures(1, &made.texture);
    glBindTexture(GL_TEXTURE_2D, made.texture);
    glTexStorage2D(GL_TEXTURE_2D, 1, made.format, COLUMNS, ROWS);

    glGenFramebuffers(1, &framebuffer);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, made.texture, 0);
    return made;
}

int main(void)
{
    const struct cox_session_params params = {.columns = COLUMNS, .rows = ROWS, .passes = passes};
    static unsigned char pixels[BYTES];
    cox_runtime *runtime;
    cox_session *session;
    cox_gl *gl;
    cox_gl_buffer *in, *out;
    cox_buffer *from, *to;

    if (!open_context()) {
        puts("skipped, because EGL needs a window system here");
        return 77;
    }
    must(cox_runtime_create(NULL, &runtime));
    must(cox_session_create(runtime, &params, &session));
    must(cox_gl_create(runtime, &(const struct cox_gl_params){.get_function = find}, &gl));
    must(cox_gl_buffer_create(gl, &(const struct cox_gl_buffer_params){.bytes = BYTES}, &in));
    must(cox_gl_buffer_create(gl, &(const struct cox_gl_buffer_params){.bytes = BYTES}, &out));

    /* Draw white above black. */
    const struct cox_gl_texture source = new_texture();
    glClear(GL_COLOR_BUFFER_BIT);
    glEnable(GL_SCISSOR_TEST);
    glScissor(0, ROWS / 2, COLUMNS, ROWS / 2);
    glClearColor(1, 1, 1, 1);
    glClear(GL_COLOR_BUFFER_BIT);

    must(cox_gl_buffer_read(in, &source));
    must(cox_gl_buffer_acquire(in, UINT64_MAX, &from)); /* waits for OpenGL */
    must(cox_gl_buffer_acquire(out, UINT64_MAX, &to));
    must(cox_session_run(session, &(const struct cox_frame){.buffers = COX_BUFFERS(from, to)}));
    must(cox_gl_buffer_release(in));
    must(cox_gl_buffer_release(out));
    const struct cox_gl_texture result = new_texture();
    must(cox_gl_buffer_write(out, &result));

    /* Two rows at the edge are grey. */
    unsigned sum = 0, expected = COLUMNS * (2 * 127 + (ROWS / 2 - 1) * 255);
    glReadPixels(0, 0, COLUMNS, ROWS, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    for (int i = 0; i < BYTES; i += 4)
        sum += pixels[i];
    printf("sum of the red values: %u, expected: %u\n", sum, expected);

    cox_gl_buffer_destroy(&in);
    cox_gl_buffer_destroy(&out);
    cox_gl_destroy(&gl);
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    return sum != expected;
}
