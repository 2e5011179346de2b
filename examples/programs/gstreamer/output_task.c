/* What is under way: frames and events wait in order; the source pad's task pushes them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tonemap.h"

/* --- Devices ---------------------------------------------------------------------------------- */

/* Post a warning for each device that failed since the last call. */
static void note_devices(GstCoxTonemap *self)
{
    struct cox_video_stream_info info;
    struct cox_session_info session;
    struct cox_device_info device;

    cox_video_stream_info(self->stream, &info);
    cox_video_stream_session_info(self->stream, &session);
    if (info.sessions_made != self->sessions_seen)
        memset(self->lost_seen, 0, sizeof self->lost_seen);
    self->sessions_seen = info.sessions_made;

    for (uint32_t i = 0; i < session.device_count; i++) {
        const struct cox_session_device *now = &session.devices[i];
        if (now->lost > self->lost_seen[i] &&
            cox_runtime_device_info(shared_runtime_of(self->shared), now->device, &device) ==
                COX_OK)
            GST_ELEMENT_WARNING_WITH_DETAILS(self, RESOURCE, FAILED,
                                             ("%s failed; other devices take over its rows",
                                              device.name),
                                             ("lost %u times, returned %u times", now->lost,
                                              now->returned),
                                             ("device", G_TYPE_STRING, device.name, "device-index",
                                              G_TYPE_UINT, now->device, "lost", G_TYPE_UINT,
                                              now->lost, "returned", G_TYPE_UINT, now->returned,
                                              NULL));
        self->lost_seen[i] = now->lost;
    }
}

/* --- Items ------------------------------------------------------------------------------------ */

static void unmap(GstVideoFrame *frame)
{
    gst_video_frame_unmap(frame);
    frame->buffer = NULL;
}

/* Whether a GstVideoMeta leaves the format to the caps. Frames in DMA-BUFs may do so from GStreamer
 * 1.24 on. */
static bool names_no_format(const GstVideoMeta *meta)
{
    return meta->format == GST_VIDEO_FORMAT_UNKNOWN ||
           !strcmp(gst_video_format_to_string(meta->format), "DMA_DRM");
}

/* Map a frame whose format is that of `info`, and whose rows are where the GstVideoMeta says. */
static bool map_by_meta(GstVideoFrame *frame, const GstVideoInfo *info, GstVideoMeta *meta,
                        GstMapFlags flags)
{
    *frame = (GstVideoFrame){.info = *info, .buffer = meta->buffer, .meta = meta, .id = meta->id};
    frame->info.width = (gint)meta->width;
    frame->info.height = (gint)meta->height;

    for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(info); p++) {
        frame->info.offset[p] = meta->offset[p];
        if (p < meta->n_planes && gst_video_meta_map(meta, p, &frame->map[p], &frame->data[p],
                                                     &frame->info.stride[p], flags))
            continue;

        while (p-- > 0)
            gst_video_meta_unmap(meta, p, &frame->map[p]);
        return false;
    }
    return true;
}

bool tonemap_map(GstVideoFrame *frame, const GstVideoInfo *info, GstBuffer *buffer,
                 GstMapFlags flags)
{
    GstVideoMeta *meta = gst_buffer_get_video_meta(buffer);
    bool good;

    flags |= (GstMapFlags)GST_VIDEO_FRAME_MAP_FLAG_NO_REF;
    if (meta && names_no_format(meta))
        good = map_by_meta(frame, info, meta, flags);
    else
        good = gst_video_frame_map(frame, info, buffer, flags);

    if (good)
        gst_buffer_ref(buffer);
    else
        frame->buffer = NULL;
    return good;
}

void tonemap_free_item(struct item *item)
{
    GstBuffer *buffers[] = {item->in.buffer, item->out.buffer};
    if (item->event)
        gst_event_unref(item->event);
    if (buffers[0])
        unmap(&item->in);
    if (buffers[1])
        unmap(&item->out);
    gst_clear_buffer(&buffers[0]);
    gst_clear_buffer(&buffers[1]);
    g_free(item);
}

void tonemap_append(GstCoxTonemap *self, struct item *item)
{
    g_mutex_lock(&self->lock);
    g_queue_push_tail(&self->items, item);
    self->frames += !item->event;
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->lock);
    tonemap_run_task(self);
}

void tonemap_drain(GstCoxTonemap *self)
{
    tonemap_run_task(self);
    g_mutex_lock(&self->lock);
    while (!g_queue_is_empty(&self->items) && self->flow == GST_FLOW_OK && !self->flushing)
        g_cond_wait(&self->changed, &self->lock);
    g_mutex_unlock(&self->lock);
}

void tonemap_discard_items(GstCoxTonemap *self)
{
    struct cox_video_result result;
    struct item *item;

    if (self->stream)
        cox_video_stream_cancel(self->stream);
    while (self->stream && cox_video_stream_receive(self->stream, true, &result) == COX_OK)
        continue;
    while ((item = g_queue_pop_head(&self->items))) {
        if (item->event && GST_EVENT_IS_STICKY(item->event) &&
            GST_EVENT_TYPE(item->event) != GST_EVENT_EOS &&
            GST_EVENT_TYPE(item->event) != GST_EVENT_SEGMENT)
            gst_pad_store_sticky_event(GST_BASE_TRANSFORM_SRC_PAD(self), item->event);
        tonemap_free_item(item);
    }
    self->frames = 0;
}

void tonemap_begin_flush(GstCoxTonemap *self)
{
    g_mutex_lock(&self->lock);
    self->flushing = true;
    if (self->stream)
        cox_video_stream_cancel(self->stream);
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->lock);
}

void tonemap_end_flush(GstCoxTonemap *self)
{
    tonemap_discard_items(self);
    g_mutex_lock(&self->lock);
    self->flushing = false;
    self->flow = GST_FLOW_OK;
    self->position = -1;
    g_mutex_unlock(&self->lock);
    self->restart = true;
}

/* --- The source pad's task -------------------------------------------------------------------- */

bool tonemap_is_fatal(GstFlowReturn flow)
{
    return flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS;
}

bool tonemap_is_flushing(GstCoxTonemap *self)
{
    g_mutex_lock(&self->lock);
    const bool flushing = self->flushing;
    g_mutex_unlock(&self->lock);
    return flushing;
}

/* The end of a frame in stream time; -1 = not known. The segment is the one that was pushed before
 * it. */
static gint64 end_of(GstCoxTonemap *self, const GstBuffer *frame)
{
    const GstSegment *segment;
    gint64 end = -1;
    GstEvent *event = gst_pad_get_sticky_event(GST_BASE_TRANSFORM_SRC_PAD(self), GST_EVENT_SEGMENT,
                                               0);
    if (!event)
        return -1;
    gst_event_parse_segment(event, &segment);
    if (segment->format == GST_FORMAT_TIME && GST_BUFFER_PTS_IS_VALID(frame)) {
        GstClockTime length = 0;
        if (GST_BUFFER_DURATION_IS_VALID(frame))
            length = GST_BUFFER_DURATION(frame);
        end = (gint64)gst_segment_to_stream_time(segment, GST_FORMAT_TIME,
                                                 GST_BUFFER_PTS(frame) + length);
    }

    gst_event_unref(event);
    return end;
}

static GstFlowReturn push_frame(GstCoxTonemap *self, struct item *item)
{
    struct cox_video_result result;
    GstBuffer *out = item->out.buffer;
    cox_status status = cox_video_stream_receive(self->stream, true, &result);

    if (status == COX_OK)
        status = result.status;
    if (tonemap_is_flushing(self))
        return GST_FLOW_FLUSHING;
    note_devices(self);
    if (status == COX_E_MEMORY_UNSAFE) /* a CPU device that hangs may write to it: never reuse it */
        item->out.buffer = NULL;
    if (status != COX_OK) {
        tonemap_post_error(self, "A frame failed", status);
        return GST_FLOW_ERROR;
    }
    GstBuffer *in = item->in.buffer;

    unmap(&item->out);
    unmap(&item->in);
    gst_buffer_unref(in); /* a decoder may wait for it */
    const gint64 end = end_of(self, out);
    g_mutex_lock(&self->lock);
    self->frames_done++; /* before the frame arrives, so that the count is never short */
    self->position = end;
    g_mutex_unlock(&self->lock);
    return gst_pad_push(GST_BASE_TRANSFORM_SRC_PAD(self), out);
}

static GstFlowReturn push_item(GstCoxTonemap *self, struct item *item)
{
    if (!item->event)
        return push_frame(self, item);
    gst_pad_push_event(GST_BASE_TRANSFORM_SRC_PAD(self), g_steal_pointer(&item->event));
    return GST_FLOW_OK;
}

static int is_end(gconstpointer item, gconstpointer unused)
{
    (void)unused;
    const GstEvent *event = ((const struct item *)item)->event;
    return !event || GST_EVENT_TYPE(event) != GST_EVENT_EOS;
}

/* Push one item. */
static void turn(gpointer user)
{
    GstCoxTonemap *self = user;
    GstPad *pad = GST_BASE_TRANSFORM_SRC_PAD(self);

    g_mutex_lock(&self->lock);
    while (g_queue_is_empty(&self->items) && !self->flushing)
        g_cond_wait(&self->changed, &self->lock);
    struct item *item = NULL;
    if (!self->flushing)
        item = g_queue_peek_head(&self->items);
    g_mutex_unlock(&self->lock);

    const bool is_frame = item && !item->event;
    GstFlowReturn flow = GST_FLOW_FLUSHING;
    if (item)
        flow = push_item(self, item);

    g_mutex_lock(&self->lock);
    if (item) {
        g_queue_pop_head(&self->items);
        self->frames -= is_frame;
        tonemap_free_item(item);
    }
    const bool untold = tonemap_is_fatal(flow) && g_queue_find_custom(&self->items, NULL, is_end);
    if (flow == GST_FLOW_OK && is_frame)
        self->relinked = false;
    if (flow != GST_FLOW_OK) {
        self->flow = flow;
        self->task_runs = false;
        gst_pad_pause_task(pad);
    }
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->lock);
    if (untold) {
        GST_ELEMENT_FLOW_ERROR(self, flow);
        gst_pad_push_event(pad, gst_event_new_eos());
    }
}

void tonemap_run_task(GstCoxTonemap *self)
{
    g_mutex_lock(&self->task_lock);
    g_mutex_lock(&self->lock);
    const bool starts = self->active && !self->task_runs && !self->flushing &&
                        self->flow == GST_FLOW_OK;

    self->task_runs |= starts;
    g_mutex_unlock(&self->lock);
    if (starts && !gst_pad_start_task(GST_BASE_TRANSFORM_SRC_PAD(self), turn, self, NULL)) {
        g_mutex_lock(&self->lock);
        self->task_runs = false;
        self->flow = GST_FLOW_ERROR; /* no thread could be started */
        g_mutex_unlock(&self->lock);
    }
    g_mutex_unlock(&self->task_lock);
}

static void set_active(GstCoxTonemap *self, bool active)
{
    g_mutex_lock(&self->task_lock);
    self->active = active;
    g_mutex_unlock(&self->task_lock);
}

gboolean tonemap_activate_source(GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active)
{
    GstCoxTonemap *self = SELF(parent);

    if (mode == GST_PAD_MODE_PUSH && !active) {
        tonemap_begin_flush(self);
        set_active(self, false);
        gst_pad_stop_task(pad);
        self->task_runs = false;
    } else if (mode == GST_PAD_MODE_PUSH) {
        self->flushing = false;
        self->flow = GST_FLOW_OK;
        self->position = -1;
        set_active(self, true);
    }
    return self->activate_source(pad, parent, mode, active);
}

void tonemap_resume_after(GstCoxTonemap *self, GstFlowReturn flow)
{
    g_mutex_lock(&self->lock);
    const bool over = self->flow == flow && (flow != GST_FLOW_NOT_LINKED || self->relinked);

    g_mutex_unlock(&self->lock);
    if (!over)
        return;
    gst_pad_pause_task(GST_BASE_TRANSFORM_SRC_PAD(self)); /* waits for the turn that failed */
    tonemap_discard_items(self);
    g_mutex_lock(&self->lock);
    if (self->flow == flow)
        self->flow = GST_FLOW_OK;
    self->relinked = false;
    g_mutex_unlock(&self->lock);
}
