/* coxconvolve: a pipeline of the library in an element, as short as possible. Each plane has a
 * session that convolves it on all OpenCL devices; the frames' memory is wrapped in place.
 *
 *     gst-launch-1.0 videotestsrc ! coxconvolve weights="0 -1 0 -1 5 -1 0 -1 0" shift=0 !
 *         videoconvert ! autovideosink
 *
 * For your own kernel, replace the pipeline by what blur.c shows: columns, rows and passes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "elements.h"
#include "shared_runtime.h"

#include <gst/video/gstvideofilter.h>

#include <stdlib.h>

enum { WEIGHTS_MAX = 15 * 15, PROPERTY_WEIGHTS = 1, PROPERTY_SHIFT };

static const char formats[] = GST_VIDEO_CAPS_MAKE("{ GRAY8, I420, YV12, Y42B, Y444, GBR }");

typedef struct {
    GstVideoFilter parent;
    struct shared_runtime *shared;
    char *text; /* of the weights, under the object's lock, as the shift */
    guint shift;
    struct plane {
        struct cox_filter_shape shape;
        cox_session *session;
    } planes[GST_VIDEO_MAX_PLANES];
} GstCoxConvolve;
typedef GstVideoFilterClass GstCoxConvolveClass;

G_DEFINE_TYPE(GstCoxConvolve, gst_cox_convolve, GST_TYPE_VIDEO_FILTER)
GST_ELEMENT_REGISTER_DEFINE(coxconvolve, "coxconvolve", GST_RANK_NONE, gst_cox_convolve_get_type())

/* Read a square with an odd side from the text. Returns its radius, or -1. */
static int read_weights(const char *text, int32_t *weights)
{
    int count = 0, radius = 0;

    for (char *end; count < WEIGHTS_MAX; text = end) {
        const long weight = strtol(text, &end, 10);
        if (end == text)
            break;
        weights[count++] = (int32_t)CLAMP(weight, -(1L << 24), 1L << 24);
    }
    while ((2 * radius + 1) * (2 * radius + 1) < count)
        radius++;
    if ((2 * radius + 1) * (2 * radius + 1) != count)
        return -1;
    return radius;
}

static gboolean same_shape(const struct cox_filter_shape *a, const struct cox_filter_shape *b)
{
    return a->width == b->width && a->height == b->height && a->sample == b->sample &&
           a->channels == b->channels && a->in_pitch_bytes == b->in_pitch_bytes &&
           a->out_pitch_bytes == b->out_pitch_bytes && a->radius_x == b->radius_x &&
           a->radius_y == b->radius_y && a->edge == b->edge && a->form == b->form &&
           a->group == b->group;
}

/* Make sure that the plane has a session for the shape. */
static cox_status use_shape(GstCoxConvolve *self, struct plane *plane,
                            const struct cox_filter_shape *shape)
{
    cox_pipeline *pipeline = NULL;

    if (plane->session && same_shape(shape, &plane->shape))
        return COX_OK;
    cox_session_destroy(&plane->session);
    plane->shape = *shape;

    cox_status status = cox_filter_convolution(shape, &pipeline);
    if (status == COX_OK)
        status = cox_session_create(shared_runtime_of(self->shared),
                                    &(const struct cox_session_params){.pipeline = pipeline},
                                    &plane->session);
    cox_pipeline_destroy(&pipeline);
    return status;
}

static cox_status convolve(GstCoxConvolve *self, struct plane *plane,
                           const struct cox_constants *constants, void *in, void *out)
{
    const struct cox_filter_shape *shape = &plane->shape;
    cox_runtime *runtime = shared_runtime_of(self->shared);
    cox_buffer *buffers[3] = {NULL}; /* in, out, end */
    cox_status status = cox_buffer_wrap(runtime, in, shape->in_pitch_bytes * shape->height, NULL,
                                        NULL, &buffers[0]);

    if (status == COX_OK)
        status = cox_buffer_wrap(runtime, out, shape->out_pitch_bytes * shape->height, NULL, NULL,
                                 &buffers[1]);
    if (status == COX_OK)
        status = cox_session_run(plane->session, &(const struct cox_frame){.buffers = buffers,
                                                                           .constants = constants});
    cox_buffer_destroy(&buffers[0]);
    cox_buffer_destroy(&buffers[1]);
    return status;
}

/* Whether cox_filter_shape allows the pitches. */
static bool strides_suit(const GstVideoFrame *frame)
{
    for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES(frame); p++)
        if (GST_VIDEO_FRAME_PLANE_STRIDE(frame, p) <= 0 ||
            GST_VIDEO_FRAME_PLANE_STRIDE(frame, p) % 4)
            return false;
    return true;
}

static GstFlowReturn transform_frame(GstVideoFilter *filter, GstVideoFrame *in, GstVideoFrame *out)
{
    GstCoxConvolve *self = (GstCoxConvolve *)filter;
    int32_t numbers[WEIGHTS_MAX];
    struct cox_constants constants;
    cox_status status = COX_OK;

    GST_OBJECT_LOCK(self);
    const int radius = read_weights(self->text, numbers);
    const struct cox_filter_weights weights = {.across_int = numbers, .shift = self->shift};

    GST_OBJECT_UNLOCK(self);
    if (radius < 0)
        status = COX_E_INVALID;
    if (!strides_suit(in) || !strides_suit(out)) {
        GST_ELEMENT_ERROR(self, STREAM, FORMAT,
                          ("The row stride must be positive and a multiple of 4 bytes"), (NULL));
        return GST_FLOW_ERROR;
    }

    for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES(in) && status == COX_OK; p++) {
        struct cox_filter_shape shape = {
            .width = (uint32_t)GST_VIDEO_FRAME_COMP_WIDTH(in, p),
            .height = (uint32_t)GST_VIDEO_FRAME_COMP_HEIGHT(in, p),
            .sample = COX_FILTER_8,
            .in_pitch_bytes = (size_t)GST_VIDEO_FRAME_COMP_STRIDE(in, p),
            .out_pitch_bytes = (size_t)GST_VIDEO_FRAME_COMP_STRIDE(out, p),
            .radius_x = (uint32_t)radius,
            .radius_y = (uint32_t)radius};
        status = use_shape(self, &self->planes[p], &shape);
        if (status == COX_OK)
            status = cox_filter_convolution_prepare(&shape, &weights, &constants);
        if (status == COX_OK)
            status = convolve(self, &self->planes[p], &constants, GST_VIDEO_FRAME_COMP_DATA(in, p),
                              GST_VIDEO_FRAME_COMP_DATA(out, p));
    }

    if (status == COX_OK)
        return GST_FLOW_OK;
    GST_ELEMENT_ERROR(self, LIBRARY, FAILED,
                      ("Cannot convolve a frame: %s", cox_status_text(status)), (NULL));
    return GST_FLOW_ERROR;
}

static gboolean start(GstBaseTransform *base)
{
    GstCoxConvolve *self = (GstCoxConvolve *)base;
    char *why = NULL;
    self->shared = shared_runtime_get(NULL, NULL, &why);
    if (!self->shared)
        GST_ELEMENT_ERROR(self, RESOURCE, OPEN_READ_WRITE, ("No device: %s", why), (NULL));
    g_free(why);
    return self->shared != NULL;
}

static gboolean stop(GstBaseTransform *base)
{
    GstCoxConvolve *self = (GstCoxConvolve *)base;
    for (guint p = 0; p < GST_VIDEO_MAX_PLANES; p++)
        cox_session_destroy(&self->planes[p].session);
    shared_runtime_unref(g_steal_pointer(&self->shared));
    return TRUE;
}

static void set_property(GObject *object, guint number, const GValue *value, GParamSpec *spec)
{
    (void)spec;
    GstCoxConvolve *self = (GstCoxConvolve *)object;

    GST_OBJECT_LOCK(self);
    if (number == PROPERTY_SHIFT) {
        self->shift = g_value_get_uint(value);
    } else {
        g_free(self->text);
        self->text = g_strdup(g_value_get_string(value) ? g_value_get_string(value) : "");
    }
    GST_OBJECT_UNLOCK(self);
}

static void finalize(GObject *object)
{
    g_free(((GstCoxConvolve *)object)->text);
    G_OBJECT_CLASS(gst_cox_convolve_parent_class)->finalize(object);
}

static void gst_cox_convolve_class_init(GstCoxConvolveClass *class)
{
    GObjectClass *object = G_OBJECT_CLASS(class);
    GstElementClass *element = GST_ELEMENT_CLASS(class);
    const GParamFlags flags = G_PARAM_WRITABLE | G_PARAM_CONSTRUCT | G_PARAM_STATIC_STRINGS |
                              GST_PARAM_MUTABLE_PLAYING;
    GstCaps *caps = gst_caps_from_string(formats);

    object->set_property = set_property;
    object->finalize = finalize;
    g_object_class_install_property(object, PROPERTY_WEIGHTS,
                                    g_param_spec_string("weights", "Weights",
                                                        "Integers of a square matrix, row by row",
                                                        "1 2 1 2 4 2 1 2 1", flags));
    g_object_class_install_property(object, PROPERTY_SHIFT,
                                    g_param_spec_uint("shift", "Shift",
                                                      "The sum is divided by 2^shift", 0, 28, 4,
                                                      flags));
    gst_element_class_add_pad_template(element, gst_pad_template_new("sink", GST_PAD_SINK,
                                                                     GST_PAD_ALWAYS, caps));
    gst_element_class_add_pad_template(element, gst_pad_template_new("src", GST_PAD_SRC,
                                                                     GST_PAD_ALWAYS, caps));
    gst_caps_unref(caps);
    gst_element_class_set_static_metadata(element, "Convolution", "Filter/Effect/Video",
                                          "Convolves video on all OpenCL devices together",
                                          "Coxswain");
    class->transform_frame = transform_frame;
    class->parent_class.start = start;
    class->parent_class.stop = stop;
}

static void gst_cox_convolve_init(GstCoxConvolve *self)
{
}
