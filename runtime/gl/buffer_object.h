/* Memory that OpenGL and the host have in turn.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_GL_BUFFER_OBJECT_H
#define COX_GL_BUFFER_OBJECT_H

#include "gl.h"

/* Who may use the buffer.
 *
 *                    acquire
 *     OF_GL  ----------------------->  OF_HOST  ---->  UNSAFE
 *            <-----------------------            release, destroy: a hung device may still
 *                    release                     touch the memory
 */
enum cox__gl_owner { COX__GL_OF_GL, COX__GL_OF_HOST, COX__GL_UNSAFE };

struct cox_gl_buffer {
    cox_gl *gl;
    uint32_t object; /* 0 = with `sharing`, memory of the library */
    size_t offset;
    size_t bytes;
    enum cox_gl_access access;
    bool given;      /* `object` is the application's */
    bool persistent; /* `mapped` and `memory` are kept while OpenGL has the buffer */
    enum cox__gl_owner owner;
    void *fence;  /* the commands before it must be complete for the host; NULL = none */
    void *mapped; /* NULL = not now, or with `sharing` */
    cox_buffer *memory;
    struct cox__cl_gl_object *shared; /* with `sharing`: the application's `object` */
};

/* Whether OpenGL has the buffer and `function` can call OpenGL; if not, a log line says why. */
bool cox__gl_buffer_object_enter(const cox_gl_buffer *buffer, enum cox__gl_owner owner,
                                 const char *function);

/* The host must wait for the commands until now. */
void cox__gl_buffer_object_fence(cox_gl_buffer *buffer);

#endif
