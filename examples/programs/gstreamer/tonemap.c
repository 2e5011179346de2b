/* coxtonemap: HDR video in, SDR video out, each frame on all OpenCL devices together.
 *
 * The element is a GstBaseTransform, which negotiates, finds pools, passes SDR through and drops what comes too late;
 * but it pushes nothing from the thread that frames come in on. That thread sends a frame to a stream of the library's
 * (stream.h) and goes back for the next one; a task on the source pad receives what is done and pushes it. So a frame
 * goes out when it is done and not when the next one comes, and decoding, mapping and encoding overlap without a queue
 * on either side.
 *
 *     chain ──► send ──► [devices] ──► receive ──► push     (the source pad's task)
 *        '───────────► items ────────────'
 *
 * Frames and serialized events wait in `items`, in order. An event is pushed by the thread it came on if nothing is
 * before it. Caps go out from there too (GstBaseTransform does it), after all items: sizes and formats of the input
 * change without that.
 *
 * `lock` guards items and what the task and the chain tell each other. The stream is sent to by the chain alone, and
 * received from by the task, or, while that is paused, by the thread that flushes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "elements.h"
#include "pool.h"
#include "properties.h"

#include <gst/base/gstbasetransform.h>

/* A frame under way, or an event behind it. */
struct item {
    GstEvent *event;  /* NULL: a frame */
    GstVideoFrame in; /* mapped, as is out; both own their buffer */
    GstVideoFrame out;
};

typedef struct {
    GstBaseTransform parent;
    struct properties properties; /* under the object's lock */
    GstPadActivateModeFunction activate_source;

    /* From the first caps of HDR until the stop. */
    struct shared_runtime *shared;
    GstAllocator *allocator;
    char *policy; /* the stream points to it */
    guint in_flight;
    cox_video_stream *stream; /* made and destroyed under `lock` */
    bool scales;              /* the frames of the newest caps; under `lock`, as the next one */
    enum cox_operator op;     /* the last one that was not the local one */

    /* Of the chain. */
    struct caps_rules rules;
    GstVideoInfo in_info, out_info;
    struct cox_video_image in_image, out_image; /* without planes */
    bool discont;                               /* something before the next frame is missing */
    bool restart;                               /* the next frame does not follow the one before */

    GMutex task_lock; /* around starting the task: not once the pad is inactive */
    bool active;

    GMutex lock;
    GCond changed;
    GQueue items; /* the one that the task is at stays in until it is pushed */
    guint frames; /* of them */
    bool flushing;
    bool task_runs;
    bool relinked;      /* downstream, since a frame went out last */
    GstFlowReturn flow; /* what the task got when it pushed */

    /* Of the task, under `lock`. */
    guint64 frames_done, frames_dropped;
    gint64 position; /* where the last frame ends in the stream's time; -1 = not known */
    guint64 sessions_seen;
    uint32_t lost_seen[COX_DEVICES_MAX]; /* in the newest session */
} GstCoxTonemap;
typedef GstBaseTransformClass GstCoxTonemapClass;

G_DEFINE_TYPE(GstCoxTonemap, gst_cox_tonemap, GST_TYPE_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE(coxtonemap, "coxtonemap", GST_RANK_NONE, gst_cox_tonemap_get_type())

#define GST_CAT_DEFAULT gst_cox_debug
#define SELF(object) ((GstCoxTonemap *)(object))
#define BASE GST_BASE_TRANSFORM_CLASS(gst_cox_tonemap_parent_class)

/* --- Errors and warnings ------------------------------------------------------------------------------------------ */

static void post_error(GstCoxTonemap *self, const char *what, cox_status status)
{
    char *line = shared_runtime_last_line(self->shared);
    GST_ELEMENT_ERROR(self, RESOURCE, FAILED, ("%s: %s", what, cox_status_text(status)),
                      ("%s. The log's last warning: %s", cox_status_name(status), line));
    g_free(line);
}

/* A warning for each device that went out since the last look. */
static void note_devices(GstCoxTonemap *self)
{
    struct cox_video_stream_info info;
    struct cox_session_info session;
    struct cox_device_info device;
    cox_video_stream_info(self->stream, &info);
    cox_video_stream_session_info(self->stream, false, &session);
    if (info.sessions_made != self->sessions_seen)
        memset(self->lost_seen, 0, sizeof self->lost_seen);
    self->sessions_seen = info.sessions_made;
    for (uint32_t i = 0; i < session.device_count; i++) {
        const struct cox_session_device *now = &session.devices[i];
        if (now->lost > self->lost_seen[i] &&
            cox_runtime_device_info(shared_runtime_of(self->shared), now->device, &device) ==
                COX_OK)
            GST_ELEMENT_WARNING_WITH_DETAILS(
                self, RESOURCE, FAILED,
                ("%s failed; its part of the frames is done by other devices", device.name),
                ("lost %u times, returned %u times", now->lost, now->returned),
                ("device", G_TYPE_STRING, device.name, "device-index", G_TYPE_UINT, now->device,
                 "lost", G_TYPE_UINT, now->lost, "returned", G_TYPE_UINT, now->returned, NULL));
        self->lost_seen[i] = now->lost;
    }
}

/* --- Items -------------------------------------------------------------------------------------------------------- */

static void unmap(GstVideoFrame *frame)
{
    gst_video_frame_unmap(frame);
    frame->buffer = NULL;
}

/* Map a buffer, and take a reference to it. */
static bool map(GstVideoFrame *frame, const GstVideoInfo *info, GstBuffer *buffer,
                GstMapFlags flags)
{
    if (!gst_video_frame_map(frame, info, buffer,
                             flags | (GstMapFlags)GST_VIDEO_FRAME_MAP_FLAG_NO_REF)) {
        frame->buffer = NULL;
        return false;
    }
    gst_buffer_ref(buffer);
    return true;
}

static void free_item(struct item *item)
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

static void run_task(GstCoxTonemap *self);

/* At the end of the line. */
static void append(GstCoxTonemap *self, struct item *item)
{
    g_mutex_lock(&self->lock);
    g_queue_push_tail(&self->items, item);
    self->frames += !item->event;
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->lock);
    run_task(self);
}

/* Wait until everything has gone out, or cannot any more. */
static void drain(GstCoxTonemap *self)
{
    run_task(self);
    g_mutex_lock(&self->lock);
    while (!g_queue_is_empty(&self->items) && self->flow == GST_FLOW_OK && !self->flushing)
        g_cond_wait(&self->changed, &self->lock);
    g_mutex_unlock(&self->lock);
}

/* Drop what has not gone out, but for what is to stay known of the stream. The task is paused and the chain does not
 * run. */
static void discard_items(GstCoxTonemap *self)
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
        free_item(item);
    }
    self->frames = 0;
}

/* End what waits, soon. */
static void begin_flush(GstCoxTonemap *self)
{
    g_mutex_lock(&self->lock);
    self->flushing = true;
    if (self->stream)
        cox_video_stream_cancel(self->stream);
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->lock);
}

static void end_flush(GstCoxTonemap *self)
{
    discard_items(self);
    g_mutex_lock(&self->lock);
    self->flushing = false;
    self->flow = GST_FLOW_OK;
    self->position = -1;
    g_mutex_unlock(&self->lock);
    self->restart = true;
}

/* --- The source pad's task ---------------------------------------------------------------------------------------- */

/* No thread but this one would tell the application that a stream has ended with this flow. */
static bool is_fatal(GstFlowReturn flow)
{
    return flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS;
}

static bool is_flushing(GstCoxTonemap *self)
{
    g_mutex_lock(&self->lock);
    const bool flushing = self->flushing;
    g_mutex_unlock(&self->lock);
    return flushing;
}

/* When a frame ends, in the stream's time; -1 = not known. The segment is the one that went out before it. */
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
        const GstClockTime length = GST_BUFFER_DURATION_IS_VALID(frame) ? GST_BUFFER_DURATION(frame)
                                                                        : 0;
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
    if (is_flushing(self))
        return GST_FLOW_FLUSHING;
    note_devices(self);
    if (status ==
        COX_E_TAINTED) /* a processor that hangs may still write there: nobody gets this memory again */
        item->out.buffer = NULL;
    if (status != COX_OK) {
        post_error(self, "A frame failed", status);
        return GST_FLOW_ERROR;
    }
    GstBuffer *in = item->in.buffer;
    unmap(&item->out);
    unmap(&item->in);
    gst_buffer_unref(in); /* a decoder may wait for it */
    const gint64 end = end_of(self, out);
    g_mutex_lock(&self->lock);
    self->frames_done++; /* before it is there to be counted */
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

/* One item goes out. */
static void turn(gpointer user)
{
    GstCoxTonemap *self = user;
    GstPad *pad = GST_BASE_TRANSFORM_SRC_PAD(self);
    g_mutex_lock(&self->lock);
    while (g_queue_is_empty(&self->items) && !self->flushing)
        g_cond_wait(&self->changed, &self->lock);
    struct item *item = self->flushing ? NULL : g_queue_peek_head(&self->items);
    g_mutex_unlock(&self->lock);
    const bool is_frame = item && !item->event;
    const GstFlowReturn flow = item ? push_item(self, item) : GST_FLOW_FLUSHING;

    g_mutex_lock(&self->lock);
    if (item) {
        g_queue_pop_head(&self->items);
        self->frames -= is_frame;
        free_item(item);
    }
    const bool untold = is_fatal(flow) && g_queue_find_custom(&self->items, NULL, is_end);
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

/* By the chain alone. Without the lock: what starts a task tells the bus, and whoever hears that may ask for `stats`. A
 * flush in between does no harm, since the task then pauses itself. */
static void run_task(GstCoxTonemap *self)
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
        self->flow = GST_FLOW_ERROR; /* no thread can be had */
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

static gboolean activate_source(GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active)
{
    GstCoxTonemap *self = SELF(parent);
    if (mode == GST_PAD_MODE_PUSH && !active) {
        begin_flush(self);
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

/* --- Events and queries ------------------------------------------------------------------------------------------- */

/* From the thread that frames come in on: if pushing has stopped with this flow, and its reason is over, discard the
 * items that wait, and push again. */
static void resume_after(GstCoxTonemap *self, GstFlowReturn flow)
{
    g_mutex_lock(&self->lock);
    const bool over = self->flow == flow && (flow != GST_FLOW_NOT_LINKED || self->relinked);
    g_mutex_unlock(&self->lock);
    if (!over)
        return;
    gst_pad_pause_task(
        GST_BASE_TRANSFORM_SRC_PAD(self)); /* waits for the turn in which it has failed */
    discard_items(self);
    g_mutex_lock(&self->lock);
    if (self->flow == flow)
        self->flow = GST_FLOW_OK;
    self->relinked = false;
    g_mutex_unlock(&self->lock);
}

/* What is in front of a serialized event goes out first. */
static gboolean queue_event(GstCoxTonemap *self, GstEvent *event)
{
    GstBaseTransform *base = GST_BASE_TRANSFORM(self);
    const GstEventType type = GST_EVENT_TYPE(event);
    if (type == GST_EVENT_STREAM_START ||
        type == GST_EVENT_SEGMENT) /* after an end that downstream wanted */
        resume_after(self, GST_FLOW_EOS);
    resume_after(self, GST_FLOW_NOT_LINKED);
    g_mutex_lock(&self->lock);
    const bool first = g_queue_is_empty(&self->items);
    const GstFlowReturn flow = self->flow;
    const bool waits = !first && (flow == GST_FLOW_OK ||
                                  (GST_EVENT_IS_STICKY(event) && type != GST_EVENT_EOS));
    if (waits) { /* under the same lock, so that a task that fails now finds it among the items */
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
        run_task(self);
        return TRUE;
    }
    if (type == GST_EVENT_EOS && is_fatal(flow))
        GST_ELEMENT_FLOW_ERROR(self, flow);
    if (first)
        return BASE->sink_event(base, event);
    if (type == GST_EVENT_EOS &&
        (flow == GST_FLOW_EOS || is_fatal(flow))) { /* items that wait cannot be pushed any more */
        discard_items(self);
        return BASE->sink_event(base, event);
    }
    gst_event_unref(event);
    return FALSE;
}

static gboolean sink_event(GstBaseTransform *base, GstEvent *event)
{
    GstCoxTonemap *self = SELF(base);
    gboolean good;
    switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_FLUSH_START:
        begin_flush(self);
        good = BASE->sink_event(base, event);
        gst_pad_pause_task(GST_BASE_TRANSFORM_SRC_PAD(base));
        return good;
    case GST_EVENT_FLUSH_STOP:
        begin_flush(self); /* there may have been no FLUSH_START */
        gst_pad_pause_task(GST_BASE_TRANSFORM_SRC_PAD(base));
        self->task_runs = false;
        end_flush(self);
        return BASE->sink_event(base, event);
    case GST_EVENT_CAPS: /* set_caps drains if need be */
        return BASE->sink_event(base, event);
    case GST_EVENT_STREAM_START:
        self->restart = true;
        return queue_event(self, event);
    default:
        return GST_EVENT_IS_SERIALIZED(event) ? queue_event(self, event)
                                              : BASE->sink_event(base, event);
    }
}

/* Downstream is linked, perhaps again: the next frame or event goes on. */
static gboolean src_event(GstBaseTransform *base, GstEvent *event)
{
    GstCoxTonemap *self = SELF(base);
    if (GST_EVENT_TYPE(event) == GST_EVENT_RECONFIGURE) {
        g_mutex_lock(&self->lock);
        self->relinked = true;
        g_mutex_unlock(&self->lock);
    }
    return BASE->src_event(base, event);
}

/* Frames go past GstBaseTransform, which therefore does not know how far it is. */
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

/* As many frames as are in flight are held back. */
static void add_latency(GstCoxTonemap *self, GstQuery *query)
{
    GstClockTime least, most;
    gboolean live;
    gst_query_parse_latency(query, &live, &least, &most);
    const int num = GST_VIDEO_INFO_FPS_N(&self->in_info),
              den = GST_VIDEO_INFO_FPS_D(&self->in_info);
    const guint frames = self->in_flight;
    const GstClockTime own = gst_util_uint64_scale_int(frames * GST_SECOND, num > 0 ? den : 1,
                                                       num > 0 ? num : 25);
    gst_query_set_latency(query, live, least + own,
                          GST_CLOCK_TIME_IS_VALID(most) ? most + own : most);
}

static gboolean query(GstBaseTransform *base, GstPadDirection direction, GstQuery *query)
{
    GstCoxTonemap *self = SELF(base);
    if (direction == GST_PAD_SINK && GST_QUERY_TYPE(query) == GST_QUERY_DRAIN)
        drain(self);
    if (direction == GST_PAD_SRC && GST_QUERY_TYPE(query) == GST_QUERY_POSITION &&
        set_position(self, query))
        return TRUE;
    const gboolean good = BASE->query(base, direction, query);
    if (good && direction == GST_PAD_SRC && GST_QUERY_TYPE(query) == GST_QUERY_LATENCY &&
        self->stream && !gst_base_transform_is_passthrough(base))
        add_latency(self, query);
    return good;
}

/* --- Caps --------------------------------------------------------------------------------------------------------- */

static struct caps_rules rules_of(GstCoxTonemap *self)
{
    g_mutex_lock(&self->lock);
    const bool scales =
        self->scales; /* and does so until the stop, whatever the operator becomes */
    g_mutex_unlock(&self->lock);
    GST_OBJECT_LOCK(self);
    const struct properties *from = &self->properties;
    const struct caps_rules rules = {.passthrough_sdr = from->passthrough_sdr,
                                     .scale = scales || from->op != COX_OPERATOR_LOCAL,
                                     .transfer = from->transfer,
                                     .primaries = from->primaries};
    GST_OBJECT_UNLOCK(self);
    return rules;
}

static GstCaps *transform_caps(GstBaseTransform *base, GstPadDirection direction, GstCaps *caps,
                               GstCaps *filter)
{
    const struct caps_rules rules = rules_of(SELF(base));
    GstCaps *all = caps_transform(&rules, direction, caps);
    if (!filter)
        return all;
    GstCaps *filtered = gst_caps_intersect_full(filter, all, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(all);
    return filtered;
}

static GstCaps *fixate_caps(GstBaseTransform *base, GstPadDirection direction, GstCaps *caps,
                            GstCaps *wanted)
{
    const struct caps_rules rules = rules_of(SELF(base));
    if (direction == GST_PAD_SINK && !caps_are_hdr(&rules, caps))
        return gst_caps_fixate(wanted);
    return caps_fixate(direction, caps, wanted);
}

static void close_stream(GstCoxTonemap *self)
{
    g_mutex_lock(&self->lock);
    cox_video_stream_destroy(&self->stream);
    self->frames_done = self->frames_dropped = self->sessions_seen = 0;
    self->scales = false;
    memset(self->lost_seen, 0, sizeof self->lost_seen);
    g_mutex_unlock(&self->lock);
    gst_clear_object(&self->allocator);
    shared_runtime_unref(g_steal_pointer(&self->shared));
    g_clear_pointer(&self->policy, g_free);
}

/* What the properties ask for. Frames that are scaled cannot have the local operator, as is agreed on with the caps:
 * they keep the one before. Whether that was so. With the lock held. */
static bool look_now(GstCoxTonemap *self, struct look *look)
{
    GST_OBJECT_LOCK(self);
    properties_look(&self->properties, look);
    GST_OBJECT_UNLOCK(self);
    const bool keeps = self->scales && look->look.op == COX_OPERATOR_LOCAL;
    if (keeps)
        look->look.op = self->op;
    else if (look->look.op != COX_OPERATOR_LOCAL)
        self->op = look->look.op;
    return keeps;
}

/* Frames to come look so. */
static void apply_look(GstCoxTonemap *self)
{
    struct look look;
    g_mutex_lock(&self->lock);
    const bool keeps = look_now(self, &look) && self->stream;
    if (self->stream && cox_video_stream_set(self->stream, &look.look) != COX_OK)
        GST_WARNING_OBJECT(self,
                           "the look stays as it was"); /* each property is within its range */
    g_mutex_unlock(&self->lock);
    if (keeps)
        GST_ELEMENT_WARNING(
            self, LIBRARY, SETTINGS,
            ("The operator stays as it was: operator=local is not for scaled frames"), (NULL));
}

/* The stream, and what it needs, for the first frames of HDR. */
static bool open_stream(GstCoxTonemap *self)
{
    char *why = NULL;
    struct look look;
    GST_OBJECT_LOCK(self);
    const struct properties *from = &self->properties;
    char *devices = g_strdup(from->devices);
    char *cache_dir = from->cache_dir ? g_strdup(from->cache_dir)
                                      : g_build_filename(g_get_user_cache_dir(), "coxswain", NULL);
    self->policy = g_strdup(from->policy);
    self->in_flight = from->in_flight;
    const struct cox_session_params session = {
        .policy = self->policy, .in_flight = from->in_flight, .verify = from->verify};
    GST_OBJECT_UNLOCK(self);
    if (*cache_dir)
        g_mkdir_with_parents(cache_dir, 0700);
    self->shared = shared_runtime_get(devices, *cache_dir ? cache_dir : NULL, &why);
    g_free(devices);
    g_free(cache_dir);
    if (!self->shared) {
        GST_ELEMENT_ERROR(self, RESOURCE, OPEN_READ_WRITE, ("No device: %s", why), (NULL));
        g_free(why);
        close_stream(self);
        return false;
    }
    self->allocator = gst_cox_allocator_new(self->shared);
    g_mutex_lock(&self->lock); /* the look as it is now: making the runtime takes a while */
    look_now(self, &look);
    const cox_status status = cox_video_stream_create(shared_runtime_of(self->shared), &session,
                                                      &look.look, &self->stream);
    g_mutex_unlock(&self->lock);
    if (status == COX_OK)
        return true;
    post_error(self, "The stream cannot begin", status);
    close_stream(self);
    return false;
}

static gboolean set_caps(GstBaseTransform *base, GstCaps *in, GstCaps *out)
{
    GstCoxTonemap *self = SELF(base);
    const struct caps_rules rules = rules_of(self);
    const bool maps = caps_are_hdr(&rules, in);
    GstCaps *before = gst_pad_get_current_caps(GST_BASE_TRANSFORM_SRC_PAD(base));
    if (!maps || !before || !gst_caps_is_equal(before, out))
        drain(self);
    gst_clear_caps(&before);
    gst_base_transform_set_passthrough(base, !maps);
    if (!maps) {
        g_mutex_lock(&self->lock);
        self->position = -1; /* GstBaseTransform knows */
        g_mutex_unlock(&self->lock);
        return TRUE;
    }
    const bool begins = !self->stream;
    const int rate[] = {GST_VIDEO_INFO_FPS_N(&self->in_info), GST_VIDEO_INFO_FPS_D(&self->in_info)};
    if (!gst_video_info_from_caps(&self->in_info, in) ||
        !gst_video_info_from_caps(&self->out_info, out) ||
        !caps_image(&rules, in, &self->in_info, &self->in_image) ||
        !caps_image(&rules, out, &self->out_info, &self->out_image))
        return FALSE;
    const bool scales = self->in_image.width != self->out_image.width ||
                        self->in_image.height != self->out_image.height;
    g_mutex_lock(&self->lock);
    const bool scaled = self->scales;
    self->scales = scales;
    g_mutex_unlock(&self->lock);
    if (begins && !open_stream(self))
        return FALSE;
    gst_cox_allocator_trim(self->allocator);
    if (!begins && scaled != scales)
        apply_look(self);
    if (begins || rate[0] != GST_VIDEO_INFO_FPS_N(&self->in_info) ||
        rate[1] != GST_VIDEO_INFO_FPS_D(&self->in_info))
        gst_element_post_message(GST_ELEMENT(self), gst_message_new_latency(GST_OBJECT(self)));
    return TRUE;
}

/* --- Memory ------------------------------------------------------------------------------------------------------- */

/* A pool of the library's memory for these caps; NULL if they are none of video. */
static GstBufferPool *make_pool(GstCoxTonemap *self, GstCaps *caps,
                                const GstAllocationParams *params, guint least, bool free_layout,
                                guint *size)
{
    GstVideoInfo info;
    if (!caps || !gst_video_info_from_caps(&info, caps))
        return NULL;
    GstBufferPool *pool = gst_cox_pool_new(self->allocator);
    GstStructure *config = gst_buffer_pool_get_config(pool);
    gst_buffer_pool_config_set_params(config, caps, (guint)info.size, least, 0);
    if (params)
        gst_buffer_pool_config_set_allocator(config, NULL, params);
    if (free_layout)
        gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
    if (!gst_buffer_pool_set_config(pool, config)) {
        gst_object_unref(pool);
        return NULL;
    }
    config = gst_buffer_pool_get_config(pool);
    gst_buffer_pool_config_get_params(config, NULL, size, NULL, NULL);
    gst_structure_free(config);
    return pool;
}

static gboolean propose_allocation(GstBaseTransform *base, GstQuery *decided, GstQuery *query)
{
    GstCoxTonemap *self = SELF(base);
    GstCaps *caps;
    gboolean wants_pool;
    guint size = 0;
    if (!BASE->propose_allocation(base, decided, query))
        return FALSE;
    if (!decided || !self->stream) /* frames pass: what is downstream has answered */
        return TRUE;
    gst_query_parse_allocation(query, &caps, &wants_pool);
    GstBufferPool *pool = make_pool(self, caps, NULL, self->in_flight + 1, true, &size);
    if (pool)
        gst_query_add_allocation_pool(query, wants_pool ? pool : NULL, size, self->in_flight + 1,
                                      0);
    gst_clear_object(&pool);
    gst_query_add_allocation_param(query, self->allocator, NULL);
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, NULL);
    gst_query_add_allocation_meta(query, GST_VIDEO_CROP_META_API_TYPE, NULL);
    return TRUE;
}

/* The pool of what is downstream, where it has one; else one of the library's memory. */
static gboolean decide_allocation(GstBaseTransform *base, GstQuery *query)
{
    GstCoxTonemap *self = SELF(base);
    GstBufferPool *pool = NULL;
    guint size = 0, least = 0, most = 0;
    GstCaps *caps;
    GstAllocationParams params;
    gst_allocation_params_init(&params);
    const bool offered = gst_query_get_n_allocation_pools(query) > 0;
    const bool free_layout = gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, NULL);
    if (offered)
        gst_query_parse_nth_allocation_pool(query, 0, &pool, &size, &least, &most);
    if (pool && free_layout) {
        GstStructure *config = gst_buffer_pool_get_config(pool);
        gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
        gst_buffer_pool_set_config(pool, config);
    }
    if (!pool) {
        gst_query_parse_allocation(query, &caps, NULL);
        if (gst_query_get_n_allocation_params(query) > 0)
            gst_query_parse_nth_allocation_param(query, 0, NULL, &params);
        pool = make_pool(self, caps, &params, least, free_layout, &size);
        if (pool && offered)
            gst_query_set_nth_allocation_pool(query, 0, pool, size, least, 0);
        else if (pool)
            gst_query_add_allocation_pool(query, pool, size, least, 0);
    }
    gst_clear_object(&pool);
    return BASE->decide_allocation(base, query);
}

/* What is said about the picture's place and size holds where these stay; memory's and colours' does not. */
static gboolean transform_meta(GstBaseTransform *base, GstBuffer *out, GstMeta *meta, GstBuffer *in)
{
    (void)out, (void)in;
    const GstCoxTonemap *self = SELF(base);
    const gchar *const *tags = gst_meta_api_type_get_tags(meta->info->api);
    const bool same_size = !self->scales; /* the chain alone changes it */
    if (meta->info->api == GST_VIDEO_CROP_META_API_TYPE)
        return FALSE;
    for (; tags && *tags; tags++)
        if (strcmp(*tags, GST_META_TAG_VIDEO_STR) != 0 &&
            strcmp(*tags, GST_META_TAG_VIDEO_ORIENTATION_STR) != 0 &&
            !(same_size && !strcmp(*tags, GST_META_TAG_VIDEO_SIZE_STR)))
            return FALSE;
    return TRUE;
}

/* --- Frames in ---------------------------------------------------------------------------------------------------- */

/* The buffer of the library's that a plane of a mapped frame is in, if it is in one, from the plane's first sample on
 * to the end of its last row's pitch. */
static cox_buffer *memory_of(const GstCoxTonemap *self, const GstVideoFrame *frame, guint plane,
                             gsize bytes)
{
    struct cox_buffer_info info;
    const GstMapInfo *map = frame->map[plane].memory ? &frame->map[plane] : &frame->map[0];
    cox_buffer *buffer = map->memory ? gst_cox_memory_buffer(map->memory, self->allocator) : NULL;
    const guint8 *first = buffer ? cox_buffer_data(buffer) : NULL, *data = frame->data[plane];
    cox_buffer_info(buffer, &info);
    return buffer && data >= first && data + bytes <= first + info.bytes ? buffer : NULL;
}

/* Where the planes of a mapped frame, or of the part of it that is to be seen, are. */
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
        const guint sub_x = p ? image->format.chroma_x_log2 : 0,
                    sub_y = p ? image->format.chroma_y_log2 : 0;
        const gsize column = image->format.layout == COX_VIDEO_V210
                                 ? x / 6 * 16
                                 : (gsize)GST_VIDEO_FRAME_COMP_PSTRIDE(frame, p) * (x >> sub_x);
        image->data[p] = (guint8 *)frame->data[p] + pitch * (gssize)(y >> sub_y) + column;
        image->pitch_bytes[p] = pitch;
        image->memory[p] = memory_of(self, frame, p,
                                     (gsize)pitch * ((y >> sub_y) + planes[p].rows) + column);
    }
}

/* Wait until there is room. Not GST_FLOW_OK: frames cannot go out any more. */
static GstFlowReturn await_room(GstCoxTonemap *self)
{
    resume_after(self, GST_FLOW_NOT_LINKED);
    run_task(self);
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
    const cox_status status =
        cox_video_stream_send(self->stream, &(struct cox_video_frame){
                                                .in = &in, .out = &out, .restart = self->restart});
    if (status == COX_OK) {
        self->restart = false;
        append(self, item);
        return GST_BASE_TRANSFORM_FLOW_DROPPED; /* as far as GstBaseTransform knows */
    }
    free_item(item);
    if (is_flushing(self))
        return GST_FLOW_FLUSHING;
    post_error(self, "A frame cannot be mapped", status);
    return GST_FLOW_ERROR;
}

/* Drops what comes too late. */
static GstFlowReturn submit_input_buffer(GstBaseTransform *base, gboolean is_discont,
                                         GstBuffer *input)
{
    GstCoxTonemap *self = SELF(base);
    const GstFlowReturn flow = BASE->submit_input_buffer(base, is_discont, input);
    if (flow == GST_BASE_TRANSFORM_FLOW_DROPPED) {
        self->discont = true;
        g_mutex_lock(&self->lock);
        self->frames_dropped++;
        g_mutex_unlock(&self->lock);
    }
    return flow == GST_FLOW_OK && !gst_base_transform_is_passthrough(base) ? await_room(self)
                                                                           : flow;
}

/* Gives nothing out here: the task does that, when the frame is done. */
static GstFlowReturn transform(GstBaseTransform *base, GstBuffer *in, GstBuffer *out)
{
    GstCoxTonemap *self = SELF(base);
    if (self->discont)
        GST_BUFFER_FLAG_SET(out, GST_BUFFER_FLAG_DISCONT);
    self->discont = false;
    struct item *item = g_new0(struct item, 1);
    if (map(&item->out, &self->out_info, out, GST_MAP_WRITE) &&
        map(&item->in, &self->in_info, in, GST_MAP_READ))
        return send_frame(self, item);
    free_item(item);
    GST_ELEMENT_ERROR(self, STREAM, FORMAT, ("A frame's memory cannot be used"), (NULL));
    return GST_FLOW_ERROR;
}

/* --- Start, stop, properties -------------------------------------------------------------------------------------- */

static gboolean stop(GstBaseTransform *base)
{
    GstCoxTonemap *self = SELF(base);
    discard_items(self);
    close_stream(self);
    self->restart = self->discont = false;
    return TRUE;
}

static GstStructure *make_stats(GstCoxTonemap *self)
{
    struct cox_video_stream_info info;
    struct cox_session_info session;
    g_mutex_lock(&self->lock);
    cox_video_stream_info(self->stream, &info);
    cox_video_stream_session_info(self->stream, false, &session);
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
        apply_look(self);
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
    class->transform_caps = transform_caps;
    class->fixate_caps = fixate_caps;
    class->set_caps = set_caps;
    class->query = query;
    class->sink_event = sink_event;
    class->src_event = src_event;
    class->propose_allocation = propose_allocation;
    class->decide_allocation = decide_allocation;
    class->transform_meta = transform_meta;
    class->submit_input_buffer = submit_input_buffer;
    class->transform = transform;
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
    gst_pad_set_activatemode_function(source, activate_source);
    gst_base_transform_set_qos_enabled(GST_BASE_TRANSFORM(self), TRUE);
}
