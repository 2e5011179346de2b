/* For applications that use OpenGL: frames in buffer objects and textures of their context.
 *
 * A cox_gl_buffer belongs to OpenGL and to the host in turn. While the host has it, it is a
 * cox_buffer for sessions and streams. A texture is copied to or from one by OpenGL:
 *
 *     cox_gl_buffer_read(in, &source);                 (texture to buffer; does not wait)
 *     cox_gl_buffer_acquire(in, UINT64_MAX, &from);    (waits for OpenGL)
 *     cox_gl_buffer_acquire(out, UINT64_MAX, &to);
 *     cox_session_run(session, &(struct cox_frame){.buffers = COX_BUFFERS(from, to)});
 *     cox_gl_buffer_release(in);                       (waits for frames)
 *     cox_gl_buffer_release(out);
 *     cox_gl_buffer_write(out, &result);               (buffer to texture; does not wait)
 *
 * For several frames under way, create such a pair of buffers for each and use cox_session_submit.
 *
 * The library is not linked with OpenGL. It needs OpenGL 3.2 or OpenGL ES 3.0 and no header of
 * them. cox_gl_create logs in which of two ways it works:
 *
 *   Mapped buffer objects  Kernels work on the mapping, and the host copies nothing. With
 *                          GL_ARB_buffer_storage or GL_EXT_buffer_storage the mapping is kept.
 *                          Without, it lasts from acquire to release.
 *   cl_khr_gl_sharing      OpenCL copies between OpenGL's memory and memory of the library. This
 *                          needs a device with this extension, in a context that the application
 *                          made with its GL context as CL_GL_CONTEXT_KHR, and gave the runtime
 *                          (COX_CONTEXTS).
 *
 * Thread-safety: all functions need the GL context that was current in cox_gl_create. Call them
 * where it is current, and not from callbacks. The library's threads never use it. Elsewhere the
 * functions return COX_E_INVALID. They restore the GL state that they change. They drop pending GL
 * errors, with a log line.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_GL_H
#define COXSWAIN_GL_H

#include <coxswain/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any function of OpenGL. */
typedef void cox_gl_function(void);

/* Returns the GL function `name`, or NULL, as eglGetProcAddress does. Called inside cox_gl_create
 * only. It is also asked for eglGetCurrentContext and glXGetCurrentContext. */
typedef cox_gl_function *cox_gl_get_function(void *user, const char *name);

/* How the library reaches OpenGL. */
struct cox_gl_params {
    cox_gl_get_function *get_function;
    void *user;
};

/* A GL context, and a runtime whose sessions work on its memory. */
typedef struct cox_gl cox_gl;

/* Use the GL context that is current. Destroy the result before the context and the runtime.
 *
 * On an error *out is NULL.
 *
 * Errors, each with a log line unless `runtime` is NULL:
 *   COX_E_INVALID        An argument or `get_function` is NULL. No context is current. The call is
 *                        made in a child process after fork.
 *   COX_E_UNSUPPORTED    The context is older than OpenGL 3.2 and OpenGL ES 3.0, or a function is
 *                        missing.
 *   COX_E_DEVICE_MEMORY, COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_gl_create(cox_runtime *runtime,
                                                const struct cox_gl_params *params, cox_gl **out);

/* Set *gl to NULL. Accepts NULL. Only writes a log line, and leaves *gl as it was, if one of its
 * buffers still exists.
 *
 * If the context is not current, the GL objects of the library remain until the context ends. A log
 * line says so. */
COX_API void cox_gl_destroy(cox_gl **gl);

/* What frames and the application do with the memory. */
enum cox_gl_access {
    COX_GL_READ_WRITE = 0,
    COX_GL_READ = 1,
    COX_GL_WRITE = 2, /* every byte: what OpenGL had written may be lost */
};

struct cox_gl_buffer_params {
    /* The application's buffer object, of any usage. The application deletes it after the
     * cox_gl_buffer. 0 = memory of the library, for textures. */
    uint32_t object;

    size_t offset;             /* bytes of `object` before those that are used */
    size_t bytes;              /* 0 = to the end of `object` */
    enum cox_gl_access access; /* to `object`; memory of the library is for both */
};

/* Memory that OpenGL and the host have in turn. First OpenGL has it. */
typedef struct cox_gl_buffer cox_gl_buffer;

/* On an error *out is NULL and `object` is unchanged.
 *
 * Errors, each with a log line unless `gl` is NULL:
 *   COX_E_INVALID        An argument is NULL, or the context is not current. There is no `object`,
 *                        it is mapped, or it is shorter. `bytes` is 0 without `object`.
 *   COX_E_UNSUPPORTED    `object` has immutable storage that cannot be mapped for `access`
 *                        (GL_MAP_READ_BIT, GL_MAP_WRITE_BIT).
 *   COX_E_DEVICE_LOST    The GL context is lost.
 *   COX_E_DEVICE_MEMORY, COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_gl_buffer_create(cox_gl *gl,
                                                       const struct cox_gl_buffer_params *params,
                                                       cox_gl_buffer **out);

/* Set *buffer to NULL. Accepts NULL. Blocks until no frame uses the buffer. The host may have it.
 *
 * Without the context, the same as for cox_gl_destroy. If a device hangs that may still touch the
 * memory, the buffer object stays mapped and is not deleted. */
COX_API void cox_gl_buffer_destroy(cox_gl_buffer **buffer);

/* Give the buffer to the host when OpenGL's commands on it are complete.
 *
 * For an `object` these are all commands before the first of these calls after a release, also
 * writes of shaders. For memory of the library they are cox_gl_buffer_read and cox_gl_buffer_write.
 *
 * Blocks up to `timeout_ns`; 0 = not at all, UINT64_MAX = without a limit. With cl_khr_gl_sharing
 * it blocks until the copy of an `object` is complete.
 *
 * *memory has the buffer's bytes, for frames and for the application, until cox_gl_buffer_release.
 * It belongs to the cox_gl_buffer: do not destroy it. Without persistent mappings it is another one
 * each time. On an error it is NULL.
 *
 * Errors, each with a log line except COX_E_BUSY:
 *   COX_E_INVALID        An argument is NULL, or the context is not current. The host has the
 *                        buffer. `object` was deleted.
 *   COX_E_BUSY           OpenGL has not finished. Call again.
 *   COX_E_DEVICE_LOST    The GL context is lost.
 *   COX_E_DEVICE_MEMORY, COX_E_NOMEM  The memory cannot be mapped or copied. */
COX_API COX_MUST_CHECK cox_status cox_gl_buffer_acquire(cox_gl_buffer *buffer, uint64_t timeout_ns,
                                                        cox_buffer **memory);

/* Give the buffer back to OpenGL. GL commands from now on see what frames wrote.
 *
 * Blocks until no frame uses the buffer, that is, until their callbacks have returned. With
 * cl_khr_gl_sharing it also blocks until the copy to an `object` is complete.
 *
 * Errors, each with a log line:
 *   COX_E_INVALID        `buffer` is NULL, or the context is not current. OpenGL has the buffer.
 *                        The call comes from a callback. `object` was deleted.
 *   COX_E_MEMORY_UNSAFE  A hung device may still use the memory, so it cannot be unmapped. The
 *                        host keeps it: destroy the buffer.
 *   COX_E_DEVICE_LOST    The contents are lost.
 *   COX_E_DEVICE_MEMORY */
COX_API COX_MUST_CHECK cox_status cox_gl_buffer_release(cox_gl_buffer *buffer);

/* A level of a 2D texture, and where its rows lie in a buffer. Row 0 of the texture, which is its
 * lower edge if OpenGL drew it, is the first in the buffer. */
struct cox_gl_texture {
    uint32_t texture; /* target GL_TEXTURE_2D */
    uint32_t level;

    /* GL_R8, GL_R16, GL_RG8, GL_RG16, GL_RGBA8, GL_RGBA16, GL_RGBA16F, GL_R32F or GL_RGBA32F: what
     * the buffer holds. It should be the texture's internal format; otherwise OpenGL converts. */
    uint32_t format;

    uint32_t columns; /* the rectangle that begins at column 0 and row 0 */
    uint32_t rows;

    size_t offset; /* of the buffer; a multiple of a pixel's bytes */

    /* Bytes from row to row; 0 = no gap. A multiple of a pixel's bytes, as all pitches of
     * cox_runtime_pitch_bytes are. The bytes between the rows are not touched. */
    size_t pitch_bytes;
};

/* Copy a texture to the buffer, or the buffer to a texture. OpenGL has the buffer.
 *
 * The call issues commands and does not wait for them. With cl_khr_gl_sharing it blocks until the
 * copy is complete.
 *
 * Errors, each with a log line:
 *   COX_E_INVALID        An argument is NULL, or the context is not current. The host has the
 *                        buffer. `texture` was deleted, or is not two-dimensional, or is smaller.
 *                        The format is unknown. The pitch or offset is not a multiple of a pixel's
 *                        bytes. The rows do not fit into the buffer.
 *   COX_E_UNSUPPORTED    The context cannot read or write textures of this format. OpenGL ES needs
 *                        GL_EXT_color_buffer_float and GL_EXT_texture_norm16 for some.
 *   COX_E_DEVICE_LOST    The GL context is lost.
 *   COX_E_DEVICE_MEMORY */
COX_API COX_MUST_CHECK cox_status cox_gl_buffer_read(cox_gl_buffer *to,
                                                     const struct cox_gl_texture *from);
COX_API COX_MUST_CHECK cox_status cox_gl_buffer_write(cox_gl_buffer *from,
                                                      const struct cox_gl_texture *to);

#ifdef __cplusplus
}
#endif
#endif
