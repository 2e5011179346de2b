/* Frames in: where their planes are, and sending them to the devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tonemap.h"

/* The library's buffer that holds `bytes` of a mapped frame's plane, from its first sample on; NULL
 * if it is in other memory. */
static cox_buffer *memory_of(const GstCoxTonemap *self, const GstVideoFrame *frame, guint plane,
                             gsize bytes)
{
    const guint8 *data = frame->data[plane];
    const GstMapInfo *map = &frame->map[plane];
    if (!map->memory)
        map = &frame->map[0];
    if (!map->memory)
        return NULL;
    cox_buffer *buffer = gst_cox_memory_buffer(map->memory, self->allocator);
    if (!buffer)
        return NULL;

    const guint8 *first = cox_buffer_data(buffer);
    if (data < first || data + bytes > first + cox_buffer_bytes(buffer))
        return NULL;
    return buffer;
}

/* Set the planes of a mapped frame, or of its visible part. */
static void set_planes(const GstCoxTonemap *self, const GstVideoFrame *frame,
                       const GstVideoCropMeta *crop, struct cox_video_image *image)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    guint x = 0, y = 0;
    const guint width = (guint)GST_VIDEO_FRAME_WIDTH(frame),
                height = (guint)GST_VIDEO_FRAME_HEIGHT(frame);

    if (crop && crop->x < width && crop->y < height && crop->width && crop->height) {
        x = crop->x >> image->format.chroma_x_log2 << image->format.chroma_x_log2;
        y = crop->y >> image->format.chroma_y_log2 << image->format.chroma_y_log2;
        if (image->format.layout == COX_VIDEO_V210)
            x -= x % 6; /* pixels in 16 bytes */
        image->width = MIN(crop->width, width - x);
        image->height = MIN(crop->height, height - y);
    }
    const uint32_t count = cox_video_planes(&image->format, image->width, image->height, planes);
    for (uint32_t p = 0; p < count; p++) {
        const gssize pitch = GST_VIDEO_FRAME_PLANE_STRIDE(frame, p);
        const guint sub_x = p ? image->format.chroma_x_log2 : 0;
        const guint sub_y = p ? image->format.chroma_y_log2 : 0;
        gsize column = (gsize)GST_VIDEO_FRAME_COMP_PSTRIDE(frame, p) * (x >> sub_x);
        if (image->format.layout == COX_VIDEO_V210)
            column = x / 6 * 16;

        image->data[p] = (guint8 *)frame->data[p] + pitch * (gssize)(y >> sub_y) + column;
        image->pitch_bytes[p] = pitch;
        image->memory[p] = memory_of(self, frame, p,
                                     (gsize)pitch * ((y >> sub_y) + planes[p].rows) + column);
    }
}

/* Wait until there is room for a frame. Not GST_FLOW_OK: frames cannot go out any more. */
static GstFlowReturn await_room(GstCoxTonemap *self)
{
    tonemap_resume_after(self, GST_FLOW_NOT_LINKED);
    tonemap_run_task(self);
    g_mutex_lock(&self->lock);
    while (self->frames > self->in_flight && self->flow == GST_FLOW_OK && !self->flushing)
        g_cond_wait(&self->changed, &self->lock);
    const GstFlowReturn flow = self->flushing ? GST_FLOW_FLUSHING : self->flow;

    g_mutex_unlock(&self->lock);
    return flow;
}

static GstFlowReturn send_frame(GstCoxTonemap *self, struct item *item)
{
    struct cox_video_image in = self->in_image, out = self->out_image;

    set_planes(self, &item->in, gst_buffer_get_video_crop_meta(item->in.buffer), &in);
    set_planes(self, &item->out, NULL, &out);
    GST_LOG_OBJECT(self, "frame of %ux%u in %s memory, to %s", in.width, in.height,
                   in.memory[0] ? "the library's" : "other",
                   out.memory[0] ? "the library's" : "other");
    if (self->restart)
        cox_video_stream_restart(self->stream);
    const cox_status status = cox_video_stream_send(self->stream, &in, &out, NULL);
    if (status == COX_OK) {
        self->restart = false;
        tonemap_append(self, item);
        return GST_BASE_TRANSFORM_FLOW_DROPPED; /* for GstBaseTransform: the task pushes it */
    }

    tonemap_free_item(item);
    if (tonemap_is_flushing(self))
        return GST_FLOW_FLUSHING;
    tonemap_post_error(self, "Cannot map a frame", status);
    return GST_FLOW_ERROR;
}

/* GstBaseTransform drops late frames here. */
GstFlowReturn tonemap_submit(GstBaseTransform *base, gboolean is_discont, GstBuffer *input)
{
    GstCoxTonemap *self = SELF(base);
    const GstFlowReturn flow = base_class()->submit_input_buffer(base, is_discont, input);

    if (flow == GST_BASE_TRANSFORM_FLOW_DROPPED) {
        self->discont = true;
        g_mutex_lock(&self->lock);
        self->frames_dropped++;
        g_mutex_unlock(&self->lock);
    }
    if (flow != GST_FLOW_OK || gst_base_transform_is_passthrough(base))
        return flow;
    return await_room(self);
}

/* Sends a frame; the task pushes it when it is done. */
GstFlowReturn tonemap_transform(GstBaseTransform *base, GstBuffer *in, GstBuffer *out)
{
    GstCoxTonemap *self = SELF(base);
    if (self->discont)
        GST_BUFFER_FLAG_SET(out, GST_BUFFER_FLAG_DISCONT);
    self->discont = false;
    struct item *item = g_new0(struct item, 1);
    if (tonemap_map(&item->out, &self->out_info, out, GST_MAP_WRITE) &&
        tonemap_map(&item->in, &self->in_info, in, GST_MAP_READ))
        return send_frame(self, item);

    tonemap_free_item(item);
    GST_ELEMENT_ERROR(self, STREAM, FORMAT, ("Cannot access the memory of a frame"), (NULL));
    return GST_FLOW_ERROR;
}
