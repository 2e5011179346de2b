/* The element coxtonemap: its class, properties, start and stop. See tonemap.h for how it works.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tonemap.h"

typedef GstBaseTransformClass GstCoxTonemapClass;

G_DEFINE_TYPE(GstCoxTonemap, gst_cox_tonemap, GST_TYPE_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE(coxtonemap, "coxtonemap", GST_RANK_NONE, gst_cox_tonemap_get_type())

static gboolean stop(GstBaseTransform *base)
{
    GstCoxTonemap *self = SELF(base);
    tonemap_discard_items(self);
    tonemap_close_stream(self);
    self->restart = self->discont = false;
    return TRUE;
}

static GstStructure *make_stats(GstCoxTonemap *self)
{
    struct cox_video_stream_info info;
    struct cox_session_info session;

    g_mutex_lock(&self->lock);
    cox_video_stream_info(self->stream, &info);
    cox_video_stream_session_info(self->stream, &session);
    GstStructure *stats =
        gst_structure_new("coxtonemap-stats", "frames", G_TYPE_UINT64, self->frames_done,
                          "frames-dropped", G_TYPE_UINT64, self->frames_dropped, "bytes-copied-in",
                          G_TYPE_UINT64, info.bytes_copied_in, "bytes-copied-out", G_TYPE_UINT64,
                          info.bytes_copied_out, "frames-copied-in", G_TYPE_UINT64,
                          info.frames_copied_in, "frames-copied-out", G_TYPE_UINT64,
                          info.frames_copied_out, "sessions-made", G_TYPE_UINT64,
                          info.sessions_made, "devices", G_TYPE_UINT, session.device_count, NULL);
    g_mutex_unlock(&self->lock);
    return stats;
}

static void get_property(GObject *object, guint number, GValue *value, GParamSpec *spec)
{
    GstCoxTonemap *self = SELF(object);
    if (number == PROPERTY_STATS) {
        g_value_take_boxed(value, make_stats(self));
        return;
    }
    GST_OBJECT_LOCK(self);
    const bool known = properties_get(&self->properties, number, value);

    GST_OBJECT_UNLOCK(self);
    if (!known)
        G_OBJECT_WARN_INVALID_PROPERTY_ID(object, number, spec);
}

static void set_property(GObject *object, guint number, const GValue *value, GParamSpec *spec)
{
    GstCoxTonemap *self = SELF(object);
    GST_OBJECT_LOCK(self);
    const bool known = properties_set(&self->properties, number, value);

    GST_OBJECT_UNLOCK(self);
    if (!known)
        G_OBJECT_WARN_INVALID_PROPERTY_ID(object, number, spec);
    if (number < PROPERTIES_OF_LOOK)
        tonemap_apply_look(self);
}

static void finalize(GObject *object)
{
    GstCoxTonemap *self = SELF(object);
    properties_clear(&self->properties);
    g_mutex_clear(&self->task_lock);
    g_mutex_clear(&self->lock);
    g_cond_clear(&self->changed);
    G_OBJECT_CLASS(gst_cox_tonemap_parent_class)->finalize(object);
}

static void add_template(GstElementClass *class, const char *name, GstPadDirection direction)
{
    GstCaps *caps = caps_template(direction);
    gst_element_class_add_pad_template(class,
                                       gst_pad_template_new(name, direction, GST_PAD_ALWAYS, caps));
    gst_caps_unref(caps);
}

static void gst_cox_tonemap_class_init(GstCoxTonemapClass *class)
{
    GObjectClass *object = G_OBJECT_CLASS(class);
    GstElementClass *element = GST_ELEMENT_CLASS(class);

    object->get_property = get_property;
    object->set_property = set_property;
    object->finalize = finalize;
    properties_install(object);
    add_template(element, "sink", GST_PAD_SINK);
    add_template(element, "src", GST_PAD_SRC);
    gst_element_class_set_static_metadata(
        element, "HDR to SDR", "Filter/Effect/Converter/Video",
        "Tone-maps HDR video to SDR on all OpenCL devices together", "Coxswain");
    class->passthrough_on_same_caps = FALSE;
    class->transform_caps = tonemap_transform_caps;
    class->fixate_caps = tonemap_fixate_caps;
    class->set_caps = tonemap_set_caps;
    class->query = tonemap_query;
    class->sink_event = tonemap_sink_event;
    class->src_event = tonemap_src_event;
    class->propose_allocation = tonemap_propose_allocation;
    class->decide_allocation = tonemap_decide_allocation;
    class->transform_meta = tonemap_transform_meta;
    class->submit_input_buffer = tonemap_submit;
    class->transform = tonemap_transform;
    class->stop = stop;
}

static void gst_cox_tonemap_init(GstCoxTonemap *self)
{
    GstPad *source = GST_BASE_TRANSFORM_SRC_PAD(self);
    properties_init(&self->properties);
    g_mutex_init(&self->task_lock);
    g_mutex_init(&self->lock);
    g_cond_init(&self->changed);
    g_queue_init(&self->items);
    gst_video_info_init(&self->in_info);
    gst_video_info_init(&self->out_info);
    self->activate_source = GST_PAD_ACTIVATEMODEFUNC(source);
    gst_pad_set_activatemode_function(source, tonemap_activate_source);
    gst_base_transform_set_qos_enabled(GST_BASE_TRANSFORM(self), TRUE);
}
