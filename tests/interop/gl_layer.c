/* An OpenCL layer that gives every device cl_khr_gl_sharing, which no driver of the test machines has. A shared object
 * is an ordinary one: to acquire it copies OpenGL's contents to it, and to release it copies them back.
 *
 * It ends the process with a message if the application breaks a rule:
 *   A command uses a shared object that its queue has not acquired.
 *   An object is acquired twice, or released without being acquired, or still acquired when its memory object goes.
 *   The GL context of the OpenCL context is not current when an object is made, acquired or released.
 *   A shared object exists when the process ends.
 *
 * Only for OpenGL, not OpenGL ES: contents of textures come from glGetTexImage.
 * SPDX-License-Identifier: Apache-2.0 */
#undef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_gl.h>
#include <CL/cl_layer.h>
#include <EGL/egl.h>
#include <GL/glcorearb.h>
#include <pthread.h>
#include <unistd.h>

#include "support/layer_info.h"

#define EXPORT __attribute__((visibility("default")))

static cl_icd_dispatch next;

__attribute__((noreturn)) static void violate(const char *call, const char *rule)
{
    fprintf(stderr, "layer_gl: %s: %s\n", call, rule);
    _exit(1);
}

/* ---- contexts ---- */

enum { CONTEXTS_MAX = 16, PROPERTIES_MAX = 32 };

/* Contexts that were made with a GL context, and all their properties. */
static struct {
    cl_context context;
    cl_context_properties properties[PROPERTIES_MAX];
    size_t bytes;
    void *gl_context;
} contexts[CONTEXTS_MAX];

static bool is_of_gl(cl_context_properties name)
{
    return name == CL_GL_CONTEXT_KHR || name == CL_EGL_DISPLAY_KHR || name == CL_GLX_DISPLAY_KHR;
}

/* The number of a context; CONTEXTS_MAX = it has no GL context. */
static int find_context(cl_context context)
{
    int c = 0;
    while (c < CONTEXTS_MAX && (!context || contexts[c].context != context))
        c++;
    return c;
}

static CL_API_ENTRY cl_context CL_API_CALL
create_context(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
               void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *code)
{
    cl_context_properties rest[PROPERTIES_MAX] = {0};
    void *gl_context = NULL;
    size_t all = 0, kept = 0;
    for (; properties && properties[all] && all + 2 < PROPERTIES_MAX; all += 2) {
        if (properties[all] == CL_GL_CONTEXT_KHR)
            memcpy(&gl_context, &properties[all + 1], sizeof gl_context);
        if (is_of_gl(properties[all]))
            continue;
        rest[kept++] = properties[all];
        rest[kept++] = properties[all + 1];
    }

    cl_context made = next.clCreateContext(properties ? rest : NULL, count, devices, notify, user, code);
    const int old = find_context(made); /* a handle of a context that is gone */
    if (old < CONTEXTS_MAX)
        contexts[old].context = NULL;
    for (int c = 0; made && gl_context && c < CONTEXTS_MAX; c++) {
        if (contexts[c].context)
            continue;
        contexts[c].context = made;
        contexts[c].gl_context = gl_context;
        contexts[c].bytes = (all + 1) * sizeof *properties;
        memcpy(contexts[c].properties, properties, contexts[c].bytes);
        break;
    }
    return made;
}

static CL_API_ENTRY cl_int CL_API_CALL get_context_info(cl_context context, cl_context_info info, size_t bytes,
                                                        void *value, size_t *got)
{
    const int c = find_context(context);
    if (info == CL_CONTEXT_PROPERTIES && c < CONTEXTS_MAX)
        return layer_answer(contexts[c].properties, contexts[c].bytes, bytes, value, got);
    return next.clGetContextInfo(context, info, bytes, value, got);
}

static CL_API_ENTRY cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info info, size_t bytes,
                                                       void *value, size_t *got)
{
    char extensions[8192] = "";
    if (info != CL_DEVICE_EXTENSIONS)
        return next.clGetDeviceInfo(device, info, bytes, value, got);

    const cl_int code = next.clGetDeviceInfo(device, info, sizeof extensions / 2, extensions, NULL);
    if (code)
        return code;
    strcat(extensions, " cl_khr_gl_sharing");
    return layer_answer(extensions, strlen(extensions) + 1, bytes, value, got);
}

/* ---- OpenGL ---- */

static struct {
    PFNGLGETINTEGERVPROC GetIntegerv;
    PFNGLBINDBUFFERPROC BindBuffer;
    PFNGLGETBUFFERPARAMETERI64VPROC GetBufferParameteri64v;
    PFNGLGETBUFFERSUBDATAPROC GetBufferSubData;
    PFNGLBUFFERSUBDATAPROC BufferSubData;
    PFNGLBINDTEXTUREPROC BindTexture;
    PFNGLGETTEXLEVELPARAMETERIVPROC GetTexLevelParameteriv;
    PFNGLGETTEXIMAGEPROC GetTexImage;
    PFNGLTEXSUBIMAGE2DPROC TexSubImage2D;
    PFNGLPIXELSTOREIPROC PixelStorei;
} gl;

static void load(void)
{
    gl.GetIntegerv = (PFNGLGETINTEGERVPROC)eglGetProcAddress("glGetIntegerv");
    gl.BindBuffer = (PFNGLBINDBUFFERPROC)eglGetProcAddress("glBindBuffer");
    gl.GetBufferParameteri64v = (PFNGLGETBUFFERPARAMETERI64VPROC)eglGetProcAddress("glGetBufferParameteri64v");
    gl.GetBufferSubData = (PFNGLGETBUFFERSUBDATAPROC)eglGetProcAddress("glGetBufferSubData");
    gl.BufferSubData = (PFNGLBUFFERSUBDATAPROC)eglGetProcAddress("glBufferSubData");
    gl.BindTexture = (PFNGLBINDTEXTUREPROC)eglGetProcAddress("glBindTexture");
    gl.GetTexLevelParameteriv = (PFNGLGETTEXLEVELPARAMETERIVPROC)eglGetProcAddress("glGetTexLevelParameteriv");
    gl.GetTexImage = (PFNGLGETTEXIMAGEPROC)eglGetProcAddress("glGetTexImage");
    gl.TexSubImage2D = (PFNGLTEXSUBIMAGE2DPROC)eglGetProcAddress("glTexSubImage2D");
    gl.PixelStorei = (PFNGLPIXELSTOREIPROC)eglGetProcAddress("glPixelStorei");
}

static void check_current(cl_context context, const char *call)
{
    const int c = find_context(context);
    if (c == CONTEXTS_MAX)
        violate(call, "the context was not made with a GL context");
    if (eglGetCurrentContext() != contexts[c].gl_context)
        violate(call, "the GL context is not current");
}

/* ---- shared objects ---- */

/* A format of textures, and an image format of the same size. */
struct format {
    GLenum internal, format, type;
    cl_channel_order order;
    cl_channel_type channel;
    size_t pixel_bytes;
};

static const struct format formats[] = {
    {GL_R8, GL_RED, GL_UNSIGNED_BYTE, CL_R, CL_UNSIGNED_INT8, 1},
    {GL_R16, GL_RED, GL_UNSIGNED_SHORT, CL_R, CL_UNSIGNED_INT16, 2},
    {GL_RG8, GL_RG, GL_UNSIGNED_BYTE, CL_R, CL_UNSIGNED_INT16, 2},
    {GL_RG16, GL_RG, GL_UNSIGNED_SHORT, CL_RGBA, CL_UNSIGNED_INT8, 4},
    {GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, CL_RGBA, CL_UNSIGNED_INT8, 4},
    {GL_RGBA16, GL_RGBA, GL_UNSIGNED_SHORT, CL_RGBA, CL_UNSIGNED_INT16, 8},
    {GL_RGBA16F, GL_RGBA, GL_HALF_FLOAT, CL_RGBA, CL_UNSIGNED_INT16, 8},
    {GL_R32F, GL_RED, GL_FLOAT, CL_RGBA, CL_UNSIGNED_INT8, 4},
    {GL_RGBA32F, GL_RGBA, GL_FLOAT, CL_RGBA, CL_UNSIGNED_INT32, 16},
};

struct shared {
    struct shared *next;
    cl_mem mem;
    cl_context context;
    cl_mem_flags flags;
    GLuint name;
    const struct format *format; /* NULL = a buffer object */
    GLint level;
    size_t columns, rows;   /* of a buffer object: its bytes, 1 */
    cl_command_queue queue; /* that has acquired it; NULL = none */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and `queue` */
static struct shared *objects;

static struct shared *find(cl_mem mem)
{
    pthread_mutex_lock(&lock);
    struct shared *object = objects;
    while (object && object->mem != mem)
        object = object->next;
    pthread_mutex_unlock(&lock);
    return object;
}

__attribute__((destructor)) static void on_exit_check(void)
{
    if (objects)
        violate("exit", "a shared object was not released");
}

static cl_mem remember(struct shared object, cl_mem mem)
{
    if (!mem)
        return NULL;

    struct shared *kept = must_alloc(1, sizeof *kept);
    *kept = object;
    kept->mem = mem;
    pthread_mutex_lock(&lock);
    kept->next = objects;
    objects = kept;
    pthread_mutex_unlock(&lock);
    return mem;
}

static CL_API_ENTRY cl_mem CL_API_CALL create_from_buffer(cl_context context, cl_mem_flags flags, cl_GLuint name,
                                                          int *code)
{
    GLint bound;
    GLint64 bytes = 0;
    load();
    check_current(context, "clCreateFromGLBuffer");
    gl.GetIntegerv(GL_COPY_READ_BUFFER, &bound);
    gl.BindBuffer(GL_COPY_READ_BUFFER, name);
    gl.GetBufferParameteri64v(GL_COPY_READ_BUFFER, GL_BUFFER_SIZE, &bytes);
    gl.BindBuffer(GL_COPY_READ_BUFFER, (GLuint)bound);
    cl_mem mem = next.clCreateBuffer(context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, code);
    return remember((struct shared){.context = context,
                                    .flags = flags,
                                    .name = name,
                                    .columns = (size_t)bytes,
                                    .rows = 1},
                    mem);
}

static CL_API_ENTRY cl_mem CL_API_CALL create_from_texture(cl_context context, cl_mem_flags flags, cl_GLenum target,
                                                           cl_GLint level, cl_GLuint name, cl_int *code)
{
    GLint bound, internal = 0, columns = 0, rows = 0;
    load();
    check_current(context, "clCreateFromGLTexture");
    gl.GetIntegerv(GL_TEXTURE_BINDING_2D, &bound);
    gl.BindTexture(target, name);
    gl.GetTexLevelParameteriv(target, level, GL_TEXTURE_INTERNAL_FORMAT, &internal);
    gl.GetTexLevelParameteriv(target, level, GL_TEXTURE_WIDTH, &columns);
    gl.GetTexLevelParameteriv(target, level, GL_TEXTURE_HEIGHT, &rows);
    gl.BindTexture(target, (GLuint)bound);

    size_t f = 0;
    while (f < sizeof formats / sizeof *formats && formats[f].internal != (GLenum)internal)
        f++;
    if (f == sizeof formats / sizeof *formats) {
        *code = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
        return NULL;
    }

    const cl_image_format format = {formats[f].order, formats[f].channel};
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = (size_t)columns, .image_height = (size_t)rows};
    cl_mem mem = next.clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, code);
    return remember((struct shared){.context = context,
                                    .flags = flags,
                                    .name = name,
                                    .format = &formats[f],
                                    .level = level,
                                    .columns = (size_t)columns,
                                    .rows = (size_t)rows},
                    mem);
}

static CL_API_ENTRY cl_int CL_API_CALL release_mem(cl_mem mem)
{
    struct shared *object = find(mem);
    if (object) {
        if (object->queue)
            violate("clReleaseMemObject", "the object is acquired");
        pthread_mutex_lock(&lock);
        struct shared **place = &objects;
        while (*place != object)
            place = &(*place)->next;
        *place = object->next;
        pthread_mutex_unlock(&lock);
        free(object);
    }
    return next.clReleaseMemObject(mem);
}

/* ---- contents ---- */

/* Copy a texture to memory, or memory to a texture. A driver does this without the application's pixel state. */
static void move_texture(const struct shared *object, void *pixels, bool to_gl)
{
    static const GLenum names[] = {GL_PACK_ROW_LENGTH,   GL_PACK_SKIP_ROWS,   GL_PACK_SKIP_PIXELS,
                                   GL_UNPACK_ROW_LENGTH, GL_UNPACK_SKIP_ROWS, GL_UNPACK_SKIP_PIXELS,
                                   GL_PACK_ALIGNMENT,    GL_UNPACK_ALIGNMENT};
    enum { NAMES = sizeof names / sizeof *names, ALIGNMENTS = 6 };
    GLint saved[NAMES], texture, pack, unpack;
    const struct format *format = object->format;

    for (int i = 0; i < NAMES; i++) {
        gl.GetIntegerv(names[i], &saved[i]);
        gl.PixelStorei(names[i], i >= ALIGNMENTS);
    }
    gl.GetIntegerv(GL_TEXTURE_BINDING_2D, &texture);
    gl.GetIntegerv(GL_PIXEL_PACK_BUFFER_BINDING, &pack);
    gl.GetIntegerv(GL_PIXEL_UNPACK_BUFFER_BINDING, &unpack);
    gl.BindBuffer(GL_PIXEL_PACK_BUFFER, 0);
    gl.BindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
    gl.BindTexture(GL_TEXTURE_2D, object->name);

    if (to_gl)
        gl.TexSubImage2D(GL_TEXTURE_2D, object->level, 0, 0, (GLsizei)object->columns, (GLsizei)object->rows,
                         format->format, format->type, pixels);
    else
        gl.GetTexImage(GL_TEXTURE_2D, object->level, format->format, format->type, pixels);

    gl.BindTexture(GL_TEXTURE_2D, (GLuint)texture);
    gl.BindBuffer(GL_PIXEL_PACK_BUFFER, (GLuint)pack);
    gl.BindBuffer(GL_PIXEL_UNPACK_BUFFER, (GLuint)unpack);
    for (int i = 0; i < NAMES; i++)
        gl.PixelStorei(names[i], saved[i]);
}

static void move_buffer(const struct shared *object, void *bytes, bool to_gl)
{
    GLint bound;
    gl.GetIntegerv(GL_COPY_READ_BUFFER, &bound);
    gl.BindBuffer(GL_COPY_READ_BUFFER, object->name);
    if (to_gl)
        gl.BufferSubData(GL_COPY_READ_BUFFER, 0, (GLsizeiptr)object->columns, bytes);
    else
        gl.GetBufferSubData(GL_COPY_READ_BUFFER, 0, (GLsizeiptr)object->columns, bytes);
    gl.BindBuffer(GL_COPY_READ_BUFFER, (GLuint)bound);
}

/* Copy the contents from OpenGL to the memory object, or back. */
static cl_int move(const struct shared *object, cl_command_queue queue, bool to_gl)
{
    const size_t origin[3] = {0}, region[3] = {object->columns, object->rows, 1};
    const size_t bytes = object->columns * object->rows * (object->format ? object->format->pixel_bytes : 1);
    void *copy = must_alloc(1, bytes);
    cl_int code;

    if (!to_gl && object->format)
        move_texture(object, copy, false);
    else if (!to_gl)
        move_buffer(object, copy, false);

    if (!object->format && to_gl)
        code = next.clEnqueueReadBuffer(queue, object->mem, CL_TRUE, 0, bytes, copy, 0, NULL, NULL);
    else if (!object->format)
        code = next.clEnqueueWriteBuffer(queue, object->mem, CL_TRUE, 0, bytes, copy, 0, NULL, NULL);
    else if (to_gl)
        code = next.clEnqueueReadImage(queue, object->mem, CL_TRUE, origin, region, 0, 0, copy, 0, NULL, NULL);
    else
        code = next.clEnqueueWriteImage(queue, object->mem, CL_TRUE, origin, region, 0, 0, copy, 0, NULL, NULL);

    if (to_gl && object->format)
        move_texture(object, copy, true);
    else if (to_gl)
        move_buffer(object, copy, true);
    free(copy);
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL acquire(cl_command_queue queue, cl_uint count, const cl_mem *mems,
                                               cl_uint wait_count, const cl_event *wait, cl_event *event)
{
    static const char call[] = "clEnqueueAcquireGLObjects";
    if (wait_count && next.clWaitForEvents(wait_count, wait))
        return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;

    for (cl_uint m = 0; m < count; m++) {
        struct shared *object = find(mems[m]);
        if (!object)
            return CL_INVALID_MEM_OBJECT;
        check_current(object->context, call);
        if (object->queue)
            violate(call, "the object is acquired already");
        object->queue = queue;
        const cl_int code = move(object, queue, false);
        if (code)
            return code;
    }
    return event ? next.clEnqueueMarkerWithWaitList(queue, 0, NULL, event) : CL_SUCCESS;
}

static CL_API_ENTRY cl_int CL_API_CALL release(cl_command_queue queue, cl_uint count, const cl_mem *mems,
                                               cl_uint wait_count, const cl_event *wait, cl_event *event)
{
    static const char call[] = "clEnqueueReleaseGLObjects";
    if (wait_count && next.clWaitForEvents(wait_count, wait))
        return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;

    next.clFinish(queue);
    for (cl_uint m = 0; m < count; m++) {
        struct shared *object = find(mems[m]);
        if (!object)
            return CL_INVALID_MEM_OBJECT;
        check_current(object->context, call);
        if (object->queue != queue)
            violate(call, "the queue has not acquired the object");
        object->queue = NULL;
        if (object->flags & CL_MEM_READ_ONLY)
            continue;
        const cl_int code = move(object, queue, true);
        if (code)
            return code;
    }
    return event ? next.clEnqueueMarkerWithWaitList(queue, 0, NULL, event) : CL_SUCCESS;
}

/* ---- commands ---- */

static void check_acquired(cl_mem mem, cl_command_queue queue, cl_mem_flags refused, const char *call)
{
    const struct shared *object = find(mem);
    if (object && object->queue != queue)
        violate(call, "the queue has not acquired the object");
    if (object && object->flags & refused)
        violate(call, "the object was made for the other direction");
}

static CL_API_ENTRY cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t offset,
                                                   size_t bytes, void *to, cl_uint count, const cl_event *wait,
                                                   cl_event *event)
{
    check_acquired(mem, queue, CL_MEM_WRITE_ONLY, "clEnqueueReadBuffer");
    return next.clEnqueueReadBuffer(queue, mem, blocking, offset, bytes, to, count, wait, event);
}

static CL_API_ENTRY cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t offset,
                                                    size_t bytes, const void *from, cl_uint count, const cl_event *wait,
                                                    cl_event *event)
{
    check_acquired(mem, queue, CL_MEM_READ_ONLY, "clEnqueueWriteBuffer");
    return next.clEnqueueWriteBuffer(queue, mem, blocking, offset, bytes, from, count, wait, event);
}

static CL_API_ENTRY cl_int CL_API_CALL read_image(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                                  const size_t *origin, const size_t *region, size_t pitch,
                                                  size_t slice, void *to, cl_uint count, const cl_event *wait,
                                                  cl_event *event)
{
    check_acquired(mem, queue, CL_MEM_WRITE_ONLY, "clEnqueueReadImage");
    return next.clEnqueueReadImage(queue, mem, blocking, origin, region, pitch, slice, to, count, wait, event);
}

static CL_API_ENTRY cl_int CL_API_CALL write_image(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                                   const size_t *origin, const size_t *region, size_t pitch,
                                                   size_t slice, const void *from, cl_uint count, const cl_event *wait,
                                                   cl_event *event)
{
    check_acquired(mem, queue, CL_MEM_READ_ONLY, "clEnqueueWriteImage");
    return next.clEnqueueWriteImage(queue, mem, blocking, origin, region, pitch, slice, from, count, wait, event);
}

/* ---- the loader's interface ---- */

EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info info, size_t bytes, void *value, size_t *got)
{
    return layer_info("layer_gl", info, bytes, value, got);
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target, cl_uint *entries_ret,
                                                   const cl_icd_dispatch **table)
{
    static cl_icd_dispatch ours;
    const cl_uint known = sizeof ours / sizeof ours.clGetPlatformIDs;
    if (!target || !entries_ret || !table || entries < known)
        return CL_INVALID_VALUE;

    next = *target;
    ours = *target;
    ours.clCreateContext = create_context;
    ours.clGetContextInfo = get_context_info;
    ours.clGetDeviceInfo = get_device_info;
    ours.clCreateFromGLBuffer = create_from_buffer;
    ours.clCreateFromGLTexture = create_from_texture;
    ours.clReleaseMemObject = release_mem;
    ours.clEnqueueAcquireGLObjects = acquire;
    ours.clEnqueueReleaseGLObjects = release;
    ours.clEnqueueReadBuffer = read_buffer;
    ours.clEnqueueWriteBuffer = write_buffer;
    ours.clEnqueueReadImage = read_image;
    ours.clEnqueueWriteImage = write_image;
    *table = &ours;
    *entries_ret = known;
    return CL_SUCCESS;
}
