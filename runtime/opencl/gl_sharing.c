/* Objects of OpenGL that a device of the runtime shares. Like interop.c, this is above the
 * library's public interface.
 *
 * Runs on the application's GL thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gl_sharing.h"
#include "internal.h"
#include <coxswain/opencl.h>

#include <CL/cl_gl.h>
#include <stdlib.h>
#include <string.h>

struct cox__cl_gl_sharing {
    const struct cox__log *log;
    cl_context context;
    cl_command_queue queue; /* in order */
};

struct cox__cl_gl_object {
    cl_mem mem;
};

static const char way[] = "cl_khr_gl_sharing"; /* in log lines */

/* ---- the device ---- */

static bool has_extension(cl_device_id device)
{
    char extensions[8192] = "", *rest = NULL;
    if (clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof extensions, extensions, NULL))
        return false;

    for (char *name = strtok_r(extensions, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
        if (strcmp(name, way) == 0)
            return true;
    return false;
}

static bool is_made_with(cl_context context, const void *gl_context)
{
    enum { PROPERTIES_MAX = 64 };
    cl_context_properties properties[PROPERTIES_MAX];
    size_t bytes = 0;
    if (clGetContextInfo(context, CL_CONTEXT_PROPERTIES, sizeof properties, properties, &bytes))
        return false;

    for (size_t i = 0; i + 1 < bytes / sizeof *properties && properties[i]; i += 2)
        if (properties[i] == CL_GL_CONTEXT_KHR &&
            properties[i + 1] == (cl_context_properties)gl_context)
            return true;
    return false;
}

struct cox__cl_gl_sharing *cox__cl_gl_sharing_open(cox_runtime *runtime, const void *gl_context)
{
    for (uint32_t d = 0; d < cox_runtime_device_count(runtime); d++) {
        cl_context context;
        cl_device_id device;
        if (cox_opencl_device(runtime, d, &context, &device) ||
            !is_made_with(context, gl_context) || !has_extension(device))
            continue;

        struct cox__cl_gl_sharing *sharing = calloc(1, sizeof *sharing);
        if (!sharing)
            return NULL;

        cl_int code;
        sharing->log = &runtime->log;
        sharing->context = context;
        sharing->queue = clCreateCommandQueue(context, device, 0, &code);
        if (sharing->queue)
            return sharing;

        cox__cl_error_check(&runtime->log, code, "clCreateCommandQueue", way);
        free(sharing);
    }
    return NULL;
}

void cox__cl_gl_sharing_close(struct cox__cl_gl_sharing **sharing)
{
    if (!*sharing)
        return;

    clReleaseCommandQueue((*sharing)->queue);
    free(*sharing);
    *sharing = NULL;
}

/* ---- copies ---- */

static cox_status check(const struct cox__cl_gl_sharing *sharing, cl_int code, const char *call)
{
    return cox__cl_error_check(sharing->log, code, call, way);
}

static cl_mem_flags flags_of(enum cox_gl_access access)
{
    switch (access) {
    case COX_GL_READ:
        return CL_MEM_READ_ONLY;
    case COX_GL_WRITE:
        return CL_MEM_WRITE_ONLY;
    default:
        return CL_MEM_READ_WRITE;
    }
}

static cox_status acquire(struct cox__cl_gl_sharing *sharing, cl_mem mem)
{
    return check(sharing, clEnqueueAcquireGLObjects(sharing->queue, 1, &mem, 0, NULL, NULL),
                 "clEnqueueAcquireGLObjects");
}

/* Release an acquired object, also after a copy that failed with `status`, and wait. */
static cox_status release(struct cox__cl_gl_sharing *sharing, cl_mem mem, cox_status status)
{
    const cl_int released = clEnqueueReleaseGLObjects(sharing->queue, 1, &mem, 0, NULL, NULL);
    const cl_int finished = clFinish(sharing->queue);

    if (!status)
        status = check(sharing, released, "clEnqueueReleaseGLObjects");
    if (!status)
        status = check(sharing, finished, "clFinish");
    return status;
}

cox_status cox__cl_gl_sharing_buffer(struct cox__cl_gl_sharing *sharing, uint32_t object,
                                     enum cox_gl_access access, struct cox__cl_gl_object **out)
{
    struct cox__cl_gl_object *made = calloc(1, sizeof *made);
    if (!made)
        return COX_E_NOMEM;

    cl_int code;
    made->mem = clCreateFromGLBuffer(sharing->context, flags_of(access), object, &code);
    const cox_status status = check(sharing, code, "clCreateFromGLBuffer");
    if (status) {
        free(made);
        return status;
    }

    *out = made;
    return COX_OK;
}

void cox__cl_gl_sharing_forget(struct cox__cl_gl_object **object)
{
    if (!*object)
        return;

    clReleaseMemObject((*object)->mem);
    free(*object);
    *object = NULL;
}

cox_status cox__cl_gl_sharing_read(struct cox__cl_gl_sharing *sharing,
                                   struct cox__cl_gl_object *from, size_t offset, cox_buffer *to)
{
    cox_status status = acquire(sharing, from->mem);
    if (status)
        return status;

    status = cox_opencl_read(to, 0, sharing->queue, from->mem, offset, cox_buffer_bytes(to), 0,
                             NULL, NULL);
    return release(sharing, from->mem, status);
}

cox_status cox__cl_gl_sharing_write(struct cox__cl_gl_sharing *sharing,
                                    struct cox__cl_gl_object *to, size_t offset, cox_buffer *from)
{
    cox_status status = acquire(sharing, to->mem);
    if (status)
        return status;

    status = cox_opencl_write(from, 0, sharing->queue, to->mem, offset, cox_buffer_bytes(from), 0,
                              NULL, NULL);
    return release(sharing, to->mem, status);
}

/* Copy between an acquired image and the buffer's memory. */
static cox_status copy_image(struct cox__cl_gl_sharing *sharing, cl_mem image,
                             const struct cox__cl_gl_region *region, bool write, char *memory)
{
    static const size_t origin[3] = {0};
    const size_t size[3] = {region->columns, region->rows, 1};
    char *rows = memory + region->offset;

    if (write)
        return check(sharing,
                     clEnqueueWriteImage(sharing->queue, image, CL_FALSE, origin, size,
                                         region->pitch_bytes, 0, rows, 0, NULL, NULL),
                     "clEnqueueWriteImage");
    return check(sharing,
                 clEnqueueReadImage(sharing->queue, image, CL_FALSE, origin, size,
                                    region->pitch_bytes, 0, rows, 0, NULL, NULL),
                 "clEnqueueReadImage");
}

cox_status cox__cl_gl_sharing_texture(struct cox__cl_gl_sharing *sharing,
                                      const struct cox__cl_gl_region *region, bool write,
                                      cox_buffer *buffer)
{
    const cl_mem_flags flags = write ? CL_MEM_WRITE_ONLY : CL_MEM_READ_ONLY;
    const cl_GLenum texture_2d = 0x0DE1;
    cl_int code;
    cl_mem image = clCreateFromGLTexture(sharing->context, flags, texture_2d,
                                         (cl_GLint)region->level, region->texture, &code);
    cox_status status = check(sharing, code, "clCreateFromGLTexture");
    if (status)
        return status;

    /* OpenCL does not convert. */
    size_t pixel_bytes = 0;
    status = check(sharing,
                   clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof pixel_bytes, &pixel_bytes,
                                  NULL),
                   "clGetImageInfo");
    if (!status && pixel_bytes != region->pixel_bytes) {
        cox__log(sharing->log, COX_LOG_ERROR, "%s: a pixel of texture %u has %zu bytes, not %u",
                 way, region->texture, pixel_bytes, region->pixel_bytes);
        status = COX_E_UNSUPPORTED;
    }

    if (!status)
        status = acquire(sharing, image);
    if (!status) {
        status = copy_image(sharing, image, region, write, cox_buffer_data(buffer));
        status = release(sharing, image, status);
    }
    clReleaseMemObject(image);
    return status;
}
