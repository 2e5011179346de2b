/* Copies between textures and buffers, by OpenGL or by OpenCL.
 * SPDX-License-Identifier: Apache-2.0 */
#include "buffer_object.h"

#include <stdlib.h>

/* ---- formats ---- */

struct format {
    uint32_t internal;
    uint32_t format;
    uint32_t type;
    uint32_t pixel_bytes;
};

static const struct format formats[] = {
    {GL_R8, GL_RED, GL_UNSIGNED_BYTE, 1},     {GL_R16, GL_RED, GL_UNSIGNED_SHORT, 2},
    {GL_RG8, GL_RG, GL_UNSIGNED_BYTE, 2},     {GL_RG16, GL_RG, GL_UNSIGNED_SHORT, 4},
    {GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, 4}, {GL_RGBA16, GL_RGBA, GL_UNSIGNED_SHORT, 8},
    {GL_RGBA16F, GL_RGBA, GL_HALF_FLOAT, 8},  {GL_R32F, GL_RED, GL_FLOAT, 4},
    {GL_RGBA32F, GL_RGBA, GL_FLOAT, 16},
};

static const struct format *find_format(uint32_t internal)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].internal == internal)
            return &formats[i];
    return NULL;
}

/* ---- arguments ---- */

/* A texture and its place in a buffer, checked. */
struct copy {
    const struct cox_gl_texture *texture;
    const struct format *format;
    size_t pitch_bytes;
};

/* Whether the rows lie in the buffer. */
static bool fits(const cox_gl_buffer *buffer, const struct copy *copy)
{
    const size_t pixel = copy->format->pixel_bytes, columns = copy->texture->columns;
    const size_t pitch = copy->pitch_bytes, offset = copy->texture->offset;
    const size_t row_bytes = pixel * columns;
    if (pitch < row_bytes || pitch % pixel || offset % pixel || pitch / pixel > INT32_MAX ||
        offset > buffer->bytes || row_bytes > buffer->bytes - offset)
        return false;

    return (buffer->bytes - offset - row_bytes) / pitch >= copy->texture->rows - 1;
}

static bool check(const cox_gl_buffer *buffer, const struct cox_gl_texture *texture,
                  const char *function, struct copy *copy)
{
    const struct cox__log *log = &buffer->gl->runtime->log;
    *copy = (struct copy){.texture = texture, .format = find_format(texture->format)};
    if (!copy->format) {
        cox__log(log, COX_LOG_ERROR, "%s: the format 0x%04x is not supported", function,
                 texture->format);
        return false;
    }

    copy->pitch_bytes = texture->pitch_bytes;
    if (!copy->pitch_bytes)
        copy->pitch_bytes = (size_t)texture->columns * copy->format->pixel_bytes;
    if (!texture->columns || !texture->rows || texture->columns > INT32_MAX ||
        texture->rows > INT32_MAX || texture->level > INT32_MAX || !fits(buffer, copy)) {
        cox__log(log, COX_LOG_ERROR,
                 "%s: %u x %u pixels of %u bytes, pitch %zu, at offset %zu do not fit a buffer of "
                 "%zu bytes",
                 function, texture->columns, texture->rows, copy->format->pixel_bytes,
                 copy->pitch_bytes, texture->offset, buffer->bytes);
        return false;
    }
    return true;
}

/* Whether the texture, which is bound, is large enough. OpenGL ES 3.0 cannot tell. */
static bool is_large_enough(const cox_gl *gl, const struct cox_gl_texture *texture,
                            const char *function)
{
    int32_t columns = 0, rows = 0;
    if (!gl->gl.GetTexLevelParameteriv)
        return true;

    gl->gl.GetTexLevelParameteriv(GL_TEXTURE_2D, (int32_t)texture->level, GL_TEXTURE_WIDTH,
                                  &columns);
    gl->gl.GetTexLevelParameteriv(GL_TEXTURE_2D, (int32_t)texture->level, GL_TEXTURE_HEIGHT, &rows);
    if ((uint32_t)columns >= texture->columns && (uint32_t)rows >= texture->rows)
        return true;

    cox__log(&gl->runtime->log, COX_LOG_ERROR,
             "%s: level %u of texture %u has %d x %d pixels; needed: %u x %u", function,
             texture->level, texture->texture, columns, rows, texture->columns, texture->rows);
    return false;
}

/* Bind the texture, and check it. `*bound` is what was bound before. */
static bool bind_texture(const cox_gl *gl, const struct cox_gl_texture *texture,
                         const char *function, int32_t *bound)
{
    gl->gl.GetIntegerv(GL_TEXTURE_BINDING_2D, bound);
    if (!gl->gl.IsTexture(texture->texture)) {
        cox__log(&gl->runtime->log, COX_LOG_ERROR, "%s: there is no texture %u", function,
                 texture->texture);
        return false;
    }

    gl->gl.BindTexture(GL_TEXTURE_2D, texture->texture);
    if (cox__gl_status(gl, function, "this is no two-dimensional texture"))
        return false;

    return is_large_enough(gl, texture, function);
}

/* ---- pixel transfer state ---- */

enum { PARAMETERS = 5 };

/* The parameters of one direction: of packing, or of unpacking. OpenGL ES has no first one. */
struct store {
    uint32_t names[PARAMETERS]; /* swap bytes, row length, skip rows, skip pixels, alignment */
    uint32_t binding;
    uint32_t target;
};

static const struct store packing = {{GL_PACK_SWAP_BYTES, GL_PACK_ROW_LENGTH, GL_PACK_SKIP_ROWS,
                                      GL_PACK_SKIP_PIXELS, GL_PACK_ALIGNMENT},
                                     GL_PIXEL_PACK_BUFFER_BINDING,
                                     GL_PIXEL_PACK_BUFFER};
static const struct store unpacking = {{GL_UNPACK_SWAP_BYTES, GL_UNPACK_ROW_LENGTH,
                                        GL_UNPACK_SKIP_ROWS, GL_UNPACK_SKIP_PIXELS,
                                        GL_UNPACK_ALIGNMENT},
                                       GL_PIXEL_UNPACK_BUFFER_BINDING,
                                       GL_PIXEL_UNPACK_BUFFER};

struct saved {
    int32_t values[PARAMETERS];
    int32_t buffer;
};

/* Set the layout of the rows in the buffer object, and bind it. Returns what was there before. */
static struct saved set_store(const cox_gl *gl, const struct store *store, uint32_t object,
                              const struct copy *copy)
{
    const int32_t row_length = (int32_t)(copy->pitch_bytes / copy->format->pixel_bytes);
    const int32_t values[PARAMETERS] = {0, row_length, 0, 0, 1};
    struct saved saved;

    for (int i = gl->gl.is_es; i < PARAMETERS; i++) {
        gl->gl.GetIntegerv(store->names[i], &saved.values[i]);
        gl->gl.PixelStorei(store->names[i], values[i]);
    }
    gl->gl.GetIntegerv(store->binding, &saved.buffer);
    gl->gl.BindBuffer(store->target, object);
    return saved;
}

static void restore_store(const cox_gl *gl, const struct store *store, const struct saved *saved)
{
    for (int i = gl->gl.is_es; i < PARAMETERS; i++)
        gl->gl.PixelStorei(store->names[i], saved->values[i]);
    gl->gl.BindBuffer(store->target, (uint32_t)saved->buffer);
}

/* ---- copies by OpenGL ---- */

/* With a buffer object bound, OpenGL takes a pointer as the offset in it. */
static void *place(const cox_gl_buffer *buffer, const struct copy *copy)
{
    return (void *)(uintptr_t)(buffer->offset + copy->texture->offset);
}

static cox_status read_pixels(const cox_gl_buffer *to, const struct copy *copy,
                              const char *function)
{
    const cox_gl *gl = to->gl;
    const struct cox_gl_texture *from = copy->texture;
    const struct format *format = copy->format;
    cox_status status = COX_OK;
    int32_t bound = 0;

    gl->gl.GetIntegerv(GL_READ_FRAMEBUFFER_BINDING, &bound);
    gl->gl.BindFramebuffer(GL_READ_FRAMEBUFFER, gl->framebuffer);
    gl->gl.FramebufferTexture2D(GL_READ_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D,
                                from->texture, (int32_t)from->level);

    if (gl->gl.CheckFramebufferStatus(GL_READ_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE) {
        const struct saved saved = set_store(gl, &packing, to->object, copy);
        gl->gl.ReadPixels(0, 0, (int32_t)from->columns, (int32_t)from->rows, format->format,
                          format->type, place(to, copy));
        status = cox__gl_status(gl, function, "glReadPixels");
        restore_store(gl, &packing, &saved);
    } else {
        cox__log(&gl->runtime->log, COX_LOG_ERROR,
                 "%s: the context cannot read texture %u, given as format 0x%04x", function,
                 from->texture, from->format);
        status = COX_E_UNSUPPORTED;
    }

    gl->gl.FramebufferTexture2D(GL_READ_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, 0, 0);
    gl->gl.BindFramebuffer(GL_READ_FRAMEBUFFER, (uint32_t)bound);
    return status;
}

static cox_status write_pixels(const cox_gl_buffer *from, const struct copy *copy,
                               const char *function)
{
    const cox_gl *gl = from->gl;
    const struct cox_gl_texture *to = copy->texture;

    const struct saved saved = set_store(gl, &unpacking, from->object, copy);
    gl->gl.TexSubImage2D(GL_TEXTURE_2D, (int32_t)to->level, 0, 0, (int32_t)to->columns,
                         (int32_t)to->rows, copy->format->format, copy->format->type,
                         place(from, copy));
    const cox_status status = cox__gl_status(gl, function, "glTexSubImage2D");
    restore_store(gl, &unpacking, &saved);
    return status;
}

/* ---- a copy by OpenCL ---- */

static cox_status share_pixels(const cox_gl_buffer *buffer, const struct copy *copy, bool read)
{
    const cox_gl *gl = buffer->gl;
    const struct cox__cl_gl_region region = {.texture = copy->texture->texture,
                                             .level = copy->texture->level,
                                             .pixel_bytes = copy->format->pixel_bytes,
                                             .columns = copy->texture->columns,
                                             .rows = copy->texture->rows,
                                             .offset = copy->texture->offset,
                                             .pitch_bytes = copy->pitch_bytes};

    gl->gl.Finish();
    return cox__cl_gl_sharing_texture(gl->sharing, &region, !read, buffer->memory);
}

/* ---- both directions ---- */

static cox_status copy_texture(cox_gl_buffer *buffer, const struct cox_gl_texture *texture,
                               bool read, const char *function)
{
    struct copy copy;
    int32_t bound;
    if (!buffer || cox__misuse_null(buffer->gl->runtime, texture, function, "texture") ||
        !cox__gl_buffer_object_enter(buffer, COX__GL_OF_GL, function) ||
        !check(buffer, texture, function, &copy))
        return COX_E_INVALID;

    const cox_gl *gl = buffer->gl;
    cox_status status = COX_E_INVALID;
    if (bind_texture(gl, texture, function, &bound)) {
        if (!buffer->object)
            status = share_pixels(buffer, &copy, read);
        else if (read)
            status = read_pixels(buffer, &copy, function);
        else
            status = write_pixels(buffer, &copy, function);
    }
    gl->gl.BindTexture(GL_TEXTURE_2D, (uint32_t)bound);

    if (buffer->object && !buffer->given)
        cox__gl_buffer_object_fence(buffer);
    return status;
}

cox_status cox_gl_buffer_read(cox_gl_buffer *to, const struct cox_gl_texture *from)
{
    return copy_texture(to, from, true, "cox_gl_buffer_read");
}

cox_status cox_gl_buffer_write(cox_gl_buffer *from, const struct cox_gl_texture *to)
{
    return copy_texture(from, to, false, "cox_gl_buffer_write");
}
