/* Copies between OpenGL's objects and buffers, by cl_khr_gl_sharing. No header of OpenCL is needed.
 *
 * Each copy acquires the object, copies, releases it and waits. The GL context of `open` must be
 * current in the caller's thread, and GL commands on the object must be complete.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_GL_SHARING_H
#define COX_OPENCL_GL_SHARING_H

#include "engine/engine.h"
#include <coxswain/gl.h>

/* A device that shares objects with a GL context. */
struct cox__cl_gl_sharing;

/* A buffer object of OpenGL, as a memory object of OpenCL. */
struct cox__cl_gl_object;

/* Part of a level of a texture, and its rows in a buffer. */
struct cox__cl_gl_region {
    uint32_t texture;
    uint32_t level;
    uint32_t pixel_bytes; /* that the texture must have */
    uint32_t columns;
    uint32_t rows;
    size_t offset;
    size_t pitch_bytes;
};

/* The first device of the runtime that has the extension, in a context made with `gl_context`.
 * NULL = no device has it. */
struct cox__cl_gl_sharing *cox__cl_gl_sharing_open(cox_runtime *runtime, const void *gl_context);
void cox__cl_gl_sharing_close(struct cox__cl_gl_sharing **sharing);

cox_status cox__cl_gl_sharing_buffer(struct cox__cl_gl_sharing *sharing, uint32_t object,
                                     enum cox_gl_access access, struct cox__cl_gl_object **out);
void cox__cl_gl_sharing_forget(struct cox__cl_gl_object **object);

/* Copy all of the buffer `to` or `from`; `offset` is that of the GL object. */
cox_status cox__cl_gl_sharing_read(struct cox__cl_gl_sharing *sharing,
                                   struct cox__cl_gl_object *from, size_t offset, cox_buffer *to);
cox_status cox__cl_gl_sharing_write(struct cox__cl_gl_sharing *sharing,
                                    struct cox__cl_gl_object *to, size_t offset, cox_buffer *from);

/* Copy a texture to the buffer, or with `write` the buffer to a texture. */
cox_status cox__cl_gl_sharing_texture(struct cox__cl_gl_sharing *sharing,
                                      const struct cox__cl_gl_region *region, bool write,
                                      cox_buffer *buffer);

#endif
