/* The functions and constants of OpenGL that the library uses. No header of OpenGL is needed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_GL_FUNCTIONS_H
#define COX_GL_FUNCTIONS_H

#include "base/log.h"
#include <coxswain/gl.h>

enum {
    GL_NO_ERROR = 0,
    GL_TEXTURE_2D = 0x0DE1,
    GL_UNPACK_SWAP_BYTES = 0x0CF0,
    GL_UNPACK_ROW_LENGTH = 0x0CF2,
    GL_UNPACK_SKIP_ROWS = 0x0CF3,
    GL_UNPACK_SKIP_PIXELS = 0x0CF4,
    GL_UNPACK_ALIGNMENT = 0x0CF5,
    GL_PACK_SWAP_BYTES = 0x0D00,
    GL_PACK_ROW_LENGTH = 0x0D02,
    GL_PACK_SKIP_ROWS = 0x0D03,
    GL_PACK_SKIP_PIXELS = 0x0D04,
    GL_PACK_ALIGNMENT = 0x0D05,
    GL_TEXTURE_WIDTH = 0x1000,
    GL_TEXTURE_HEIGHT = 0x1001,
    GL_UNSIGNED_BYTE = 0x1401,
    GL_UNSIGNED_SHORT = 0x1403,
    GL_FLOAT = 0x1406,
    GL_HALF_FLOAT = 0x140B,
    GL_RED = 0x1903,
    GL_RGBA = 0x1908,
    GL_RENDERER = 0x1F01,
    GL_VERSION = 0x1F02,
    GL_EXTENSIONS = 0x1F03,
    GL_RGBA8 = 0x8058,
    GL_RGBA16 = 0x805B,
    GL_TEXTURE_BINDING_2D = 0x8069,
    GL_MAJOR_VERSION = 0x821B,
    GL_MINOR_VERSION = 0x821C,
    GL_NUM_EXTENSIONS = 0x821D,
    GL_BUFFER_IMMUTABLE_STORAGE = 0x821F,
    GL_BUFFER_STORAGE_FLAGS = 0x8220,
    GL_RG = 0x8227,
    GL_R8 = 0x8229,
    GL_R16 = 0x822A,
    GL_RG8 = 0x822B,
    GL_RG16 = 0x822C,
    GL_R32F = 0x822E,
    GL_BUFFER_SIZE = 0x8764,
    GL_RGBA32F = 0x8814,
    GL_RGBA16F = 0x881A,
    GL_DYNAMIC_READ = 0x88E9,
    GL_PIXEL_PACK_BUFFER = 0x88EB,
    GL_PIXEL_UNPACK_BUFFER = 0x88EC,
    GL_PIXEL_PACK_BUFFER_BINDING = 0x88ED,
    GL_PIXEL_UNPACK_BUFFER_BINDING = 0x88EF,
    GL_BUFFER_MAPPED = 0x88BC,
    GL_READ_FRAMEBUFFER = 0x8CA8,
    GL_READ_FRAMEBUFFER_BINDING = 0x8CAA,
    GL_FRAMEBUFFER_COMPLETE = 0x8CD5,
    GL_COLOR_ATTACHMENT0 = 0x8CE0,
    GL_COPY_WRITE_BUFFER = 0x8F37, /* also names its binding */
    GL_SYNC_GPU_COMMANDS_COMPLETE = 0x9117,
    GL_TIMEOUT_EXPIRED = 0x911B,
    GL_WAIT_FAILED = 0x911D,

    GL_SYNC_FLUSH_COMMANDS_BIT = 0x0001,
    GL_MAP_READ_BIT = 0x0001,
    GL_MAP_WRITE_BIT = 0x0002,
    GL_MAP_INVALIDATE_RANGE_BIT = 0x0004,
    GL_MAP_PERSISTENT_BIT = 0x0040,
    GL_MAP_COHERENT_BIT = 0x0080,
    GL_CLIENT_STORAGE_BIT = 0x0200,
    GL_BUFFER_UPDATE_BARRIER_BIT = 0x0200,
    GL_CLIENT_MAPPED_BUFFER_BARRIER_BIT = 0x4000,
};

/* X(result, name without gl, parameters). All contexts that are accepted have these. */
#define COX__GL_FUNCTIONS(X)                                                                  \
    X(const unsigned char *, GetString, (uint32_t name))                                      \
    X(const unsigned char *, GetStringi, (uint32_t name, uint32_t index))                     \
    X(uint32_t, GetError, (void))                                                             \
    X(void, GetIntegerv, (uint32_t name, int32_t * value))                                    \
    X(void, Flush, (void))                                                                    \
    X(void, Finish, (void))                                                                   \
    X(void, GenBuffers, (int32_t count, uint32_t * buffers))                                  \
    X(void, DeleteBuffers, (int32_t count, const uint32_t *buffers))                          \
    X(unsigned char, IsBuffer, (uint32_t buffer))                                             \
    X(void, BindBuffer, (uint32_t target, uint32_t buffer))                                   \
    X(void, BufferData, (uint32_t target, ptrdiff_t bytes, const void *data, uint32_t usage)) \
    X(void, GetBufferParameteri64v, (uint32_t target, uint32_t name, int64_t * value))        \
    X(void *, MapBufferRange,                                                                 \
      (uint32_t target, ptrdiff_t offset, ptrdiff_t bytes, uint32_t access))                  \
    X(unsigned char, UnmapBuffer, (uint32_t target))                                          \
    X(void *, FenceSync, (uint32_t condition, uint32_t flags))                                \
    X(uint32_t, ClientWaitSync, (void *sync, uint32_t flags, uint64_t timeout_ns))            \
    X(void, DeleteSync, (void *sync))                                                         \
    X(unsigned char, IsTexture, (uint32_t texture))                                           \
    X(void, BindTexture, (uint32_t target, uint32_t texture))                                 \
    X(void, TexSubImage2D,                                                                    \
      (uint32_t target, int32_t level, int32_t x, int32_t y, int32_t columns, int32_t rows,   \
       uint32_t format, uint32_t type, const void *offset))                                   \
    X(void, GenFramebuffers, (int32_t count, uint32_t * framebuffers))                        \
    X(void, DeleteFramebuffers, (int32_t count, const uint32_t *framebuffers))                \
    X(void, BindFramebuffer, (uint32_t target, uint32_t framebuffer))                         \
    X(void, FramebufferTexture2D,                                                             \
      (uint32_t target, uint32_t attachment, uint32_t of, uint32_t texture, int32_t level))   \
    X(uint32_t, CheckFramebufferStatus, (uint32_t target))                                    \
    X(void, PixelStorei, (uint32_t name, int32_t value))                                      \
    X(void, ReadPixels,                                                                       \
      (int32_t x, int32_t y, int32_t columns, int32_t rows, uint32_t format, uint32_t type,   \
       void *offset))

/* NULL if the context does not have them. */
#define COX__GL_OPTIONAL_FUNCTIONS(X)                                                            \
    X(void, BufferStorage, (uint32_t target, ptrdiff_t bytes, const void *data, uint32_t flags)) \
    X(void, MemoryBarrier, (uint32_t barriers))                                                  \
    X(void, GetTexLevelParameteriv,                                                              \
      (uint32_t target, int32_t level, uint32_t name, int32_t * value))

struct cox__gl_functions {
#define X(result, name, parameters) result(*name) parameters;
    COX__GL_FUNCTIONS(X)
    COX__GL_OPTIONAL_FUNCTIONS(X)
#undef X
    bool is_es;
    int32_t version; /* 10 x major + minor */

    /* The context of this thread. NULL if the application's loader has no such function. */
    void *(*current)(void);
};

/* Load the functions of the context that is current.
 *
 * Errors: those of cox_gl_create. */
cox_status cox__gl_functions_load(const struct cox__log *log, const struct cox_gl_params *params,
                                  struct cox__gl_functions *gl);

#endif
