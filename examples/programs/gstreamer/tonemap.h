/* coxtonemap: HDR video in, SDR video out, each frame on all OpenCL devices together.
 *
 * The element is a GstBaseTransform. That negotiates, finds pools, passes SDR through and drops
 * late frames, but it pushes nothing from the thread that frames come in on, the chain. The chain
 * sends a frame to a stream of the library (coxswain/stream.h) and takes the next one. A task on
 * the source pad receives the finished frames and pushes them. So a frame goes out when it is done,
 * and decoding, mapping and encoding overlap without a queue on either side.
 *
 *     chain ──► send ──► [devices] ──► receive ──► push     (the source pad's task)
 *        '───────────► items ────────────'
 *
 * Frames and serialized events wait in `items`, in order. An event that nothing precedes is pushed
 * by the thread that it came on. So are caps, after all items: GstBaseTransform pushes them, and
 * only if the output's change.
 *
 * `lock` guards the items and the state that task and chain share. Only the chain sends to the
 * stream. The task receives from it, or, while that is paused, the thread that flushes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GST_COX_TONEMAP_H
#define GST_COX_TONEMAP_H

#include "elements.h"
#include "pool.h"
#include "properties.h"

#include <gst/base/gstbasetransform.h>

/* A frame under way, or an event that comes after one. */
struct item {
    GstEvent *event;  /* NULL: a frame */
    GstVideoFrame in; /* mapped, as `out` is; both own their buffer */
    GstVideoFrame out;
};

typedef struct {
    GstBaseTransform parent;
    struct properties properties; /* under the object's lock */
    GstPadActivateModeFunction activate_source;

    /* From the first HDR caps until the stop. */
    struct shared_runtime *shared;
    GstAllocator *allocator;
    char *policy; /* the stream points to it */
    guint in_flight;
    cox_video_stream *stream; /* made and destroyed under `lock` */
    bool scales;              /* the frames of the newest caps; under `lock`, as the next one */
    enum cox_operator op;     /* the last one other than COX_OPERATOR_LOCAL */

    /* The chain's own. */
    struct caps_rules rules;
    GstVideoInfo in_info, out_info;
    struct cox_video_image in_image, out_image; /* without planes */
    bool discont;                               /* something before the next frame is missing */
    bool restart;                               /* the next frame does not follow the one before */

    GMutex task_lock; /* around starting the task, which an inactive pad must not do */
    bool active;

    GMutex lock;
    GCond changed;
    GQueue items; /* the first one stays until the task has pushed it */
    guint frames; /* items that are frames */
    bool flushing;
    bool task_runs;
    bool relinked;      /* downstream was linked again since the last frame */
    GstFlowReturn flow; /* what the task got when it pushed */

    /* The task's own, under `lock`. */
    guint64 frames_done, frames_dropped;
    gint64 position; /* end of the last frame, in stream time; -1 = not known */
    guint64 sessions_seen;
    uint32_t lost_seen[COX_DEVICES_MAX]; /* in the newest session */
} GstCoxTonemap;

#define GST_CAT_DEFAULT gst_cox_debug
#define SELF(object) ((GstCoxTonemap *)(object))

static inline GstBaseTransformClass *base_class(void)
{
    return GST_BASE_TRANSFORM_CLASS(g_type_class_peek(GST_TYPE_BASE_TRANSFORM));
}

/* --- mapping.c -------------------------------------------------------------------------------- */

void tonemap_post_error(GstCoxTonemap *self, const char *what, cox_status status);

/* The rules for caps, from the properties. */
struct caps_rules tonemap_rules(GstCoxTonemap *self);

/* Open the stream and what it needs, at the first HDR frames. False: an error was posted. */
bool tonemap_open_stream(GstCoxTonemap *self);
void tonemap_close_stream(GstCoxTonemap *self);

/* The properties' look holds from the next frame on. */
void tonemap_apply_look(GstCoxTonemap *self);

/* --- output_task.c ---------------------------------------------------------------------------- */

/* Map a buffer, and take a reference to it. */
bool tonemap_map(GstVideoFrame *frame, const GstVideoInfo *info, GstBuffer *buffer,
                 GstMapFlags flags);
void tonemap_free_item(struct item *item);

/* Append an item; the task pushes it. */
void tonemap_append(GstCoxTonemap *self, struct item *item);

/* Wait until all items went out, or cannot go out any more. */
void tonemap_drain(GstCoxTonemap *self);

/* Drop all items, but keep sticky events known. The task is paused and the chain does not run. */
void tonemap_discard_items(GstCoxTonemap *self);

/* End all waits. */
void tonemap_begin_flush(GstCoxTonemap *self);
void tonemap_end_flush(GstCoxTonemap *self);
bool tonemap_is_flushing(GstCoxTonemap *self);

/* Whether a stream that ends with this flow needs an error message from this thread: no other one
 * would tell the application. */
bool tonemap_is_fatal(GstFlowReturn flow);

/* Start the task unless it runs. Call this from the chain only, without the lock. The start posts a
 * message on the bus, and its receiver may ask for `stats`. A flush in between does no harm, since
 * the task then pauses itself. */
void tonemap_run_task(GstCoxTonemap *self);

/* From the chain: if pushing stopped with this flow and its reason is over, discard the items that
 * wait, and push again. */
void tonemap_resume_after(GstCoxTonemap *self, GstFlowReturn flow);

/* The source pad's GstPadActivateModeFunction. */
gboolean tonemap_activate_source(GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active);

/* --- GstBaseTransform's functions ------------------------------------------------------------- */

/* events.c */
gboolean tonemap_sink_event(GstBaseTransform *base, GstEvent *event);
gboolean tonemap_src_event(GstBaseTransform *base, GstEvent *event);
gboolean tonemap_query(GstBaseTransform *base, GstPadDirection direction, GstQuery *query);

/* negotiation.c */
GstCaps *tonemap_transform_caps(GstBaseTransform *base, GstPadDirection direction, GstCaps *caps,
                                GstCaps *filter);
GstCaps *tonemap_fixate_caps(GstBaseTransform *base, GstPadDirection direction, GstCaps *caps,
                             GstCaps *wanted);
gboolean tonemap_set_caps(GstBaseTransform *base, GstCaps *in, GstCaps *out);
gboolean tonemap_propose_allocation(GstBaseTransform *base, GstQuery *decided, GstQuery *query);
gboolean tonemap_decide_allocation(GstBaseTransform *base, GstQuery *query);
gboolean tonemap_transform_meta(GstBaseTransform *base, GstBuffer *out, GstMeta *meta,
                                GstBuffer *in);

/* input_frames.c */
GstFlowReturn tonemap_submit(GstBaseTransform *base, gboolean is_discont, GstBuffer *input);
GstFlowReturn tonemap_transform(GstBaseTransform *base, GstBuffer *in, GstBuffer *out);

#endif
