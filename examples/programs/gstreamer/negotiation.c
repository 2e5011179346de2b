/* coxtonemap's caps, and the memory that frames come and go in.
 * SPDX-License-Identifier: Apache-2.0 */
#include "memory_caps.h"
#include "tonemap.h"

GstCaps *tonemap_transform_caps(GstBaseTransform *base, GstPadDirection direction, GstCaps *caps,
                                GstCaps *filter)
{
    const struct caps_rules rules = tonemap_rules(SELF(base));
    GstCaps *all = caps_transform(&rules, direction, caps);
    if (!filter)
        return all;
    GstCaps *filtered = gst_caps_intersect_full(filter, all, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(all);
    return filtered;
}

GstCaps *tonemap_fixate_caps(GstBaseTransform *base, GstPadDirection direction, GstCaps *caps,
                             GstCaps *wanted)
{
    const struct caps_rules rules = tonemap_rules(SELF(base));
    if (direction == GST_PAD_SINK && !caps_are_hdr(&rules, caps))
        return gst_caps_fixate(wanted);
    return caps_fixate(direction, caps, wanted);
}

/* Read the frames' descriptions from caps. False: they cannot be mapped. */
static bool read_caps(GstCoxTonemap *self, const struct caps_rules *rules, const GstCaps *in,
                      const GstCaps *out)
{
    GstCaps *plain = memory_caps_all_plain(in);
    const bool good = plain && gst_video_info_from_caps(&self->in_info, plain) &&
                      gst_video_info_from_caps(&self->out_info, out) &&
                      caps_image(rules, plain, &self->in_info, &self->in_image) &&
                      caps_image(rules, out, &self->out_info, &self->out_image);

    gst_clear_caps(&plain);
    return good;
}

gboolean tonemap_set_caps(GstBaseTransform *base, GstCaps *in, GstCaps *out)
{
    GstCoxTonemap *self = SELF(base);
    const struct caps_rules rules = tonemap_rules(self);
    const bool maps = caps_are_hdr(&rules, in);
    GstCaps *before = gst_pad_get_current_caps(GST_BASE_TRANSFORM_SRC_PAD(base));

    if (!maps || !before || !gst_caps_is_equal(before, out))
        tonemap_drain(self);
    gst_clear_caps(&before);
    gst_base_transform_set_passthrough(base, !maps);
    if (!maps) {
        g_mutex_lock(&self->lock);
        self->position = -1; /* GstBaseTransform knows it */
        g_mutex_unlock(&self->lock);
        return TRUE;
    }
    const bool begins = !self->stream;
    const int rate[] = {GST_VIDEO_INFO_FPS_N(&self->in_info), GST_VIDEO_INFO_FPS_D(&self->in_info)};
    if (!read_caps(self, &rules, in, out))
        return FALSE;
    const bool scales = self->in_image.width != self->out_image.width ||
                        self->in_image.height != self->out_image.height;

    g_mutex_lock(&self->lock);
    const bool scaled = self->scales;

    self->scales = scales;
    g_mutex_unlock(&self->lock);
    if (begins && !tonemap_open_stream(self))
        return FALSE;
    gst_cox_allocator_trim(self->allocator);
    if (!begins && scaled != scales)
        tonemap_apply_look(self);
    if (begins || rate[0] != GST_VIDEO_INFO_FPS_N(&self->in_info) ||
        rate[1] != GST_VIDEO_INFO_FPS_D(&self->in_info))
        gst_element_post_message(GST_ELEMENT(self), gst_message_new_latency(GST_OBJECT(self)));
    return TRUE;
}

/* --- Memory ----------------------------------------------------------------------------------- */

/* A pool of the library's memory for these caps; NULL if they are not video. */
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

/* Offer the library's memory, which devices use without a copy. */
static void propose_pool(GstCoxTonemap *self, GstQuery *query, GstCaps *caps, bool wants_pool)
{
    guint size = 0;
    GstBufferPool *pool = make_pool(self, caps, NULL, self->in_flight + 1, true, &size);

    if (pool)
        gst_query_add_allocation_pool(query, wants_pool ? pool : NULL, size, self->in_flight + 1,
                                      0);
    gst_clear_object(&pool);
    gst_query_add_allocation_param(query, self->allocator, NULL);
}

/* The pitches that spare a copy in memory of upstream's. */
static GstStructure *preferred_layout(const GstCoxTonemap *self)
{
    const guint mask = (guint)cox_runtime_pitch_bytes(shared_runtime_of(self->shared), 1) - 1;

    return gst_structure_new("video-meta", "stride-align0", G_TYPE_UINT, mask, "stride-align1",
                             G_TYPE_UINT, mask, "stride-align2", G_TYPE_UINT, mask, "stride-align3",
                             G_TYPE_UINT, mask, NULL);
}

gboolean tonemap_propose_allocation(GstBaseTransform *base, GstQuery *decided, GstQuery *query)
{
    GstCoxTonemap *self = SELF(base);
    GstCaps *caps;
    gboolean wants_pool;

    if (!base_class()->propose_allocation(base, decided, query))
        return FALSE;
    if (!decided || !self->stream) /* frames pass: downstream has answered */
        return TRUE;

    gst_query_parse_allocation(query, &caps, &wants_pool);
    if (caps && memory_caps_is_system(caps, 0))
        propose_pool(self, query, caps, wants_pool);

    GstStructure *layout = preferred_layout(self);
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, layout);
    gst_structure_free(layout);
    gst_query_add_allocation_meta(query, GST_VIDEO_CROP_META_API_TYPE, NULL);
    return TRUE;
}

/* Downstream's pool, or else one of the library's memory. */
gboolean tonemap_decide_allocation(GstBaseTransform *base, GstQuery *query)
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
    return base_class()->decide_allocation(base, query);
}

/* Keep metadata about the picture's place, and about its size unless that changes; not about memory
 * or colours. */
gboolean tonemap_transform_meta(GstBaseTransform *base, GstBuffer *out, GstMeta *meta,
                                GstBuffer *in)
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
