/* coxtonemap's stream of the library: opening, closing, and how frames look.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tonemap.h"

void tonemap_post_error(GstCoxTonemap *self, const char *what, cox_status status)
{
    char *line = shared_runtime_last_line(self->shared);
    GST_ELEMENT_ERROR(self, RESOURCE, FAILED, ("%s: %s", what, cox_status_text(status)),
                      ("%s. The log's last warning: %s", cox_status_name(status), line));
    g_free(line);
}

struct caps_rules tonemap_rules(GstCoxTonemap *self)
{
    g_mutex_lock(&self->lock);
    const bool scales = self->scales; /* stays until the stop, whatever the operator becomes */

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

void tonemap_close_stream(GstCoxTonemap *self)
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

/* The look that the properties ask for. The local operator is not for scaled frames, as is agreed
 * on with the caps: these keep the operator before. True if that was so. With the lock held. */
static bool look_now(GstCoxTonemap *self, struct cox_tonemap_options *look)
{
    GST_OBJECT_LOCK(self);
    properties_look(&self->properties, look);
    GST_OBJECT_UNLOCK(self);
    const bool keeps = self->scales && look->op == COX_OPERATOR_LOCAL;

    if (keeps)
        look->op = self->op;
    else if (look->op != COX_OPERATOR_LOCAL)
        self->op = look->op;
    return keeps;
}

void tonemap_apply_look(GstCoxTonemap *self)
{
    struct cox_tonemap_options look;
    g_mutex_lock(&self->lock);
    const bool keeps = look_now(self, &look) && self->stream;

    if (self->stream && cox_video_stream_set(self->stream, &look) != COX_OK)
        GST_WARNING_OBJECT(
            self,
            "the new look is invalid; the look is unchanged"); /* properties are within their range */
    g_mutex_unlock(&self->lock);
    if (keeps)
        GST_ELEMENT_WARNING(self, LIBRARY, SETTINGS,
                            ("operator=local does not support scaling; the operator is unchanged"),
                            (NULL));
}

bool tonemap_open_stream(GstCoxTonemap *self)
{
    char *why = NULL;
    struct cox_tonemap_options look;

    GST_OBJECT_LOCK(self);
    const struct properties *from = &self->properties;
    char *devices = g_strdup(from->devices);
    char *cache_dir = g_strdup(from->cache_dir);

    if (!cache_dir)
        cache_dir = g_build_filename(g_get_user_cache_dir(), "coxswain", NULL);
    self->policy = g_strdup(from->policy);
    self->in_flight = from->in_flight;
    struct cox_session_params session = {
        .policy = self->policy, .in_flight = from->in_flight, .verify = from->verify};

    /* Begin on the first device that is ready, unless the application chooses how they work. */
    if (!devices && !self->policy && !(from->verify > 0))
        session.warmup = COX_WARMUP_BACKGROUND;

    GST_OBJECT_UNLOCK(self);
    if (*cache_dir)
        g_mkdir_with_parents(cache_dir, 0700);
    self->shared = shared_runtime_get(devices, *cache_dir ? cache_dir : NULL, &why);
    g_free(devices);
    g_free(cache_dir);
    if (!self->shared) {
        GST_ELEMENT_ERROR(self, RESOURCE, OPEN_READ_WRITE, ("No device: %s", why), (NULL));
        g_free(why);
        tonemap_close_stream(self);
        return false;
    }
    self->allocator = gst_cox_allocator_new(self->shared);
    g_mutex_lock(&self->lock); /* take the look now: making the runtime takes a while */
    look_now(self, &look);
    const cox_status status = cox_video_stream_create(shared_runtime_of(self->shared), &session,
                                                      &look, &self->stream);
    g_mutex_unlock(&self->lock);
    if (status == COX_OK)
        return true;
    tonemap_post_error(self, "Cannot start the stream", status);
    tonemap_close_stream(self);
    return false;
}
