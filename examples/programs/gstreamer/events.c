/* coxtonemap's events and queries.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tonemap.h"

/* A serialized event waits for the items before it. */
static gboolean queue_event(GstCoxTonemap *self, GstEvent *event)
{
    GstBaseTransform *base = GST_BASE_TRANSFORM(self);
    const GstEventType type = GST_EVENT_TYPE(event);

    if (type == GST_EVENT_STREAM_START || type == GST_EVENT_SEGMENT)
        tonemap_resume_after(self, GST_FLOW_EOS); /* an end that downstream asked for is over */
    tonemap_resume_after(self, GST_FLOW_NOT_LINKED);
    g_mutex_lock(&self->lock);
    const bool first = g_queue_is_empty(&self->items);
    const GstFlowReturn flow = self->flow;
    const bool waits = !first && (flow == GST_FLOW_OK ||
                                  (GST_EVENT_IS_STICKY(event) && type != GST_EVENT_EOS));

    if (waits) { /* under the same lock: a task that fails now finds it among the items */
        struct item *item = g_new0(struct item, 1);
        item->event = event;
        if (type == GST_EVENT_SEGMENT) {
            gst_event_copy_segment(event, &base->segment);
            base->have_segment = TRUE;
        }
        g_queue_push_tail(&self->items, item);
        g_cond_broadcast(&self->changed);
    }

    g_mutex_unlock(&self->lock);
    if (waits) {
        tonemap_run_task(self);
        return TRUE;
    }
    if (type == GST_EVENT_EOS && tonemap_is_fatal(flow))
        GST_ELEMENT_FLOW_ERROR(self, flow);
    if (first)
        return base_class()->sink_event(base, event);
    if (type == GST_EVENT_EOS && (flow == GST_FLOW_EOS || tonemap_is_fatal(flow))) {
        tonemap_discard_items(self); /* they cannot be pushed any more */
        return base_class()->sink_event(base, event);
    }
    gst_event_unref(event);
    return FALSE;
}

gboolean tonemap_sink_event(GstBaseTransform *base, GstEvent *event)
{
    GstCoxTonemap *self = SELF(base);
    gboolean good;

    switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_FLUSH_START:
        tonemap_begin_flush(self);
        good = base_class()->sink_event(base, event);
        gst_pad_pause_task(GST_BASE_TRANSFORM_SRC_PAD(base));
        return good;
    case GST_EVENT_FLUSH_STOP:
        tonemap_begin_flush(self); /* there may have been no FLUSH_START */
        gst_pad_pause_task(GST_BASE_TRANSFORM_SRC_PAD(base));
        self->task_runs = false;
        tonemap_end_flush(self);
        return base_class()->sink_event(base, event);
    case GST_EVENT_CAPS: /* tonemap_set_caps drains if needed */
        return base_class()->sink_event(base, event);
    case GST_EVENT_STREAM_START:
        self->restart = true;
        return queue_event(self, event);
    default:
        if (GST_EVENT_IS_SERIALIZED(event))
            return queue_event(self, event);
        return base_class()->sink_event(base, event);
    }
}

/* Downstream is linked, perhaps again: the next frame or event resumes pushing. */
gboolean tonemap_src_event(GstBaseTransform *base, GstEvent *event)
{
    GstCoxTonemap *self = SELF(base);
    if (GST_EVENT_TYPE(event) == GST_EVENT_RECONFIGURE) {
        g_mutex_lock(&self->lock);
        self->relinked = true;
        g_mutex_unlock(&self->lock);
    }
    return base_class()->src_event(base, event);
}

/* Frames bypass GstBaseTransform, which therefore does not know the position. */
static bool set_position(GstCoxTonemap *self, GstQuery *query)
{
    GstFormat format;
    gst_query_parse_position(query, &format, NULL);
    g_mutex_lock(&self->lock);
    const gint64 position = self->position;

    g_mutex_unlock(&self->lock);
    if (format != GST_FORMAT_TIME || position < 0)
        return false;
    gst_query_set_position(query, format, position);
    return true;
}

/* The frames in flight are the element's own latency. */
static void add_latency(GstCoxTonemap *self, GstQuery *query)
{
    GstClockTime least, most;
    gboolean live;
    gst_query_parse_latency(query, &live, &least, &most);
    int num = GST_VIDEO_INFO_FPS_N(&self->in_info), den = GST_VIDEO_INFO_FPS_D(&self->in_info);
    if (num <= 0) {
        num = 25;
        den = 1;
    }

    const GstClockTime frames_ns = self->in_flight * GST_SECOND;
    const GstClockTime own = gst_util_uint64_scale_int(frames_ns, den, num);
    if (GST_CLOCK_TIME_IS_VALID(most))
        most += own;
    gst_query_set_latency(query, live, least + own, most);
}

gboolean tonemap_query(GstBaseTransform *base, GstPadDirection direction, GstQuery *query)
{
    GstCoxTonemap *self = SELF(base);
    if (direction == GST_PAD_SINK && GST_QUERY_TYPE(query) == GST_QUERY_DRAIN)
        tonemap_drain(self);
    if (direction == GST_PAD_SRC && GST_QUERY_TYPE(query) == GST_QUERY_POSITION &&
        set_position(self, query))
        return TRUE;
    const gboolean good = base_class()->query(base, direction, query);

    if (good && direction == GST_PAD_SRC && GST_QUERY_TYPE(query) == GST_QUERY_LATENCY &&
        self->stream && !gst_base_transform_is_passthrough(base))
        add_latency(self, query);
    return good;
}
