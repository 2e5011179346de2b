/* Images: the rows of a binding that a kernel samples, as an image of the queue slot.
 *
 * Processors that are not staged: the image wraps the band's rows in the host's memory, for one
 * band. It is made when the rows are there, so that the driver needs no mapping to know of them.
 * PoCL makes one in 8 us, without a copy.
 *
 * Other devices have their own order of pixels, so the rows are copied in any case. The slot keeps
 * an image, and the band's rows are written to it. A band with another number of rows gets a new
 * image.
 *
 * In both cases the image is as high as the band's rows, so that a sampler clamps at the edge of
 * the frame if the band ends there.
 *
 * Images are reserved with their instance. The other functions run with the engine lock held.
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"

#include <string.h>

/* The format in cox__arg.offset of an image (COX__ARG_IMAGE). */
static cl_image_format format_of(const struct cox__arg *arg)
{
    return (cl_image_format){.image_channel_order = (cl_channel_order)(arg->offset >> 16),
                             .image_channel_data_type = (cl_channel_type)(arg->offset & 0xffff)};
}

/* `data`: the rows that the image wraps or copies, by the flag `use`, with the binding's pitch;
 * NULL = the driver allocates. */
static cl_mem make_of(const struct cox__instance *instance, uint32_t index, uint32_t rows,
                      cl_mem_flags use, void *data, cl_int *code)
{
    const struct cox__arg *arg = instance->pipeline->images[index];
    const cl_image_format format = format_of(arg);
    cl_image_desc description = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = arg->bytes, .image_height = rows};
    cl_mem_flags flags = CL_MEM_READ_ONLY;

    if (data) {
        description.image_row_pitch = instance->pipeline->bindings[index].pitch_bytes;
        flags |= use;
    }

    cl_mem made = clCreateImage(instance->context, flags, &format, &description, data, code);
    if (*code)
        return NULL;
    return made;
}

static cl_mem make(const struct cox__instance *instance, uint32_t index, uint32_t rows, void *data,
                   cl_int *code)
{
    return make_of(instance, index, rows, CL_MEM_USE_HOST_PTR, data, code);
}

cl_mem cox__cl_image_copy(const struct cox__instance *instance, uint32_t binding, uint32_t rows,
                          void *data, cl_int *code)
{
    return make_of(instance, binding, rows, CL_MEM_COPY_HOST_PTR, data, code);
}

/* With PoCL 3.1 the process ends when the queue of a sub-device writes an image. */
static bool can_write(const struct cox__cl_device *device)
{
    return !device->is_subdevice ||
           strcmp(device->info.platform, "Portable Computing Language") != 0;
}

/* Check that the device has images of the binding's format and columns: make one with one row. */
static cox_status check(const struct cox__instance *instance, uint32_t index)
{
    const struct cox__pipeline *pipeline = instance->pipeline;
    const struct cox__arg *arg = pipeline->images[index];
    const struct cox__binding *binding = &pipeline->bindings[index];
    const struct cox__log *log = instance->backend->log;
    const char *device = instance->device->info.name;
    cl_bool has_images = CL_FALSE;
    size_t pixel_bytes = 0;
    cl_int code;

    clGetDeviceInfo(instance->device->id, CL_DEVICE_IMAGE_SUPPORT, sizeof has_images, &has_images,
                    NULL);

    const bool writes = cox__cl_wraps_images(instance) || can_write(instance->device);
    if (!has_images || !writes) {
        cox__log(log, COX_LOG_WARN, "%s has no images%s, but buffer %u (%s) is used as one", device,
                 writes ? "" : " that a sub-device can write", index, binding->name);
        return COX_E_UNSUPPORTED;
    }

    cl_mem row = make(instance, index, 1, NULL, &code);
    if (row) {
        code = clGetImageInfo(row, CL_IMAGE_ELEMENT_SIZE, sizeof pixel_bytes, &pixel_bytes, NULL);
        clReleaseMemObject(row);
    }

    if (code) {
        cox__log(
            log, COX_LOG_WARN,
            "%s has no image of %zu columns, channel order %#zx and type %#zx (%s), as buffer %u "
            "(%s) is used",
            device, arg->bytes, arg->offset >> 16, arg->offset & 0xffff, cox__cl_error_name(code),
            index, binding->name);
        return COX_E_UNSUPPORTED;
    }

    if (!pixel_bytes || arg->bytes > binding->pitch_bytes / pixel_bytes ||
        binding->pitch_bytes % pixel_bytes) {
        cox__log(
            log, COX_LOG_ERROR,
            "buffer %u (%s): a pitch of %zu bytes does not hold %zu columns of %zu bytes, or is "
            "not a multiple of one column",
            index, binding->name, binding->pitch_bytes, arg->bytes, pixel_bytes);
        return COX_E_INVALID;
    }

    return COX_OK;
}

cox_status cox__cl_images_check(const struct cox__instance *instance)
{
    cox_status status = COX_OK;
    for (uint32_t i = 0; i < instance->pipeline->binding_count && status == COX_OK; i++)
        if (instance->pipeline->images[i])
            status = check(instance, i);
    return status;
}

void cox__cl_image_clear(struct cox__cl_image *image)
{
    if (image->mem)
        clReleaseMemObject(image->mem);
    *image = (struct cox__cl_image){0};
}

/* Write one pixel: some drivers allocate at first use, and a frame under way is the wrong time to
 * run out of memory. */
cl_int cox__cl_image_reserve(struct cox__instance *instance, struct cox__cl_slot *slot,
                             uint32_t binding, uint32_t rows)
{
    static const cl_uint zeros[4]; /* no format has larger pixels */
    const size_t origin[3] = {0}, pixel[3] = {1, 1, 1};
    cl_int code;
    cl_mem made = make(instance, binding, rows, NULL, &code);
    if (!made)
        return code;

    slot->images[binding] = (struct cox__cl_image){.mem = made, .rows = rows};
    return clEnqueueWriteImage(instance->queues[COX__CL_QUEUE_COMPUTE], made, CL_FALSE, origin,
                               pixel, 0, 0, zeros, 0, NULL, NULL);
}

/* Replace the slot's image. The band that used the old one has ended. */
static cox_status replace(struct cox__instance *instance, struct cox__cl_slot *slot,
                          uint32_t binding, uint32_t rows, void *data)
{
    struct cox__cl_image *image = &slot->images[binding], old = *image;
    *image = (struct cox__cl_image){0}; /* the slot has no image if a call does not return */

    cl_int code;
    const struct cox__driver_call call = cox__cl_call(instance);
    cox__cl_image_clear(&old);
    cl_mem made = make(instance, binding, rows, data, &code);
    cox__cl_returned(&call);

    *image = (struct cox__cl_image){.mem = made, .rows = rows};
    return cox__cl_instance_check(instance, code, "clCreateImage");
}

cox_status cox__cl_image_fit(struct cox__instance *instance, struct cox__cl_slot *slot,
                             uint32_t binding, uint32_t rows)
{
    const struct cox__cl_image *image = &slot->images[binding];
    if (image->mem && image->rows == rows)
        return COX_OK;
    return replace(instance, slot, binding, rows, NULL);
}

cox_status cox__cl_image_wrap(struct cox__instance *instance, struct cox__cl_slot *slot,
                              uint32_t binding, uint32_t rows, void *data)
{
    return replace(instance, slot, binding, rows, data);
}
