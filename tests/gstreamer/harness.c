/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

static void setup(void)
{
    gst_init(NULL, NULL);
    g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL | G_LOG_FATAL_MASK);
    GstElement *element = gst_element_factory_make("coxtonemap", NULL);
    cr_assert_not_null(element, "the plugin is not in GST_PLUGIN_PATH");
    gst_object_unref(gst_object_ref_sink(element));
}

TestSuite(gstreamer, .init = setup, .timeout = 600);

void info_of(const char *caps_text, GstVideoInfo *info)
{
    g_autoptr(GstCaps) caps = gst_caps_from_string(caps_text);
    cr_assert(gst_video_info_from_caps(info, caps), "%s", caps_text);
}

struct bench bench_open(const char *properties, const char *in, const char *out)
{
    g_autofree char *text = g_strdup_printf("coxtonemap devices=cpu policy=static cache-dir=\"\" %s",
                                            properties ? properties : "");
    struct bench bench = {.h = gst_harness_new_parse(text), .bus = gst_bus_new(), .out = out};
    bench.element = gst_harness_find_element(bench.h, "coxtonemap");
    gst_element_set_bus(bench.element, bench.bus);
    info_of(in, &bench.in);
    gst_harness_set_sink_caps_str(bench.h, out);
    if (properties)
        gst_harness_set_src_caps_str(bench.h, in);
    return bench;
}

void bench_close(struct bench *bench)
{
    gst_element_set_bus(bench->element, NULL);
    gst_object_unref(bench->element);
    gst_object_unref(bench->bus);
    gst_harness_teardown(bench->h);
}

GstBuffer *make_frame(GstBuffer *buffer, const GstVideoInfo *info, guint seed)
{
    GstVideoFrame frame;
    if (!buffer)
        buffer = gst_buffer_new_allocate(NULL, info->size, NULL);
    cr_assert(gst_video_frame_map(&frame, info, buffer, GST_MAP_WRITE));
    for (guint c = 0; c < GST_VIDEO_FRAME_N_COMPONENTS(&frame); c++)
        for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT(&frame, c); y++) {
            const gboolean bytes = GST_VIDEO_FRAME_COMP_DEPTH(&frame, c) == 8;
            const gint step = GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, c);
            guint8 *row = GST_VIDEO_FRAME_COMP_DATA(&frame, c);
            row += (gssize)y * GST_VIDEO_FRAME_COMP_STRIDE(&frame, c);
            row += GST_VIDEO_FRAME_COMP_POFFSET(&frame, c) == 1 && !bytes; /* P010 */
            for (gint x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH(&frame, c); x++) {
                const guint value = (guint)(x * 7 + y * 5 + (gint)(c * 31 + seed * 13));
                const guint16 wide = (guint16)((64 + value % 800) << info->finfo->shift[0]);
                if (bytes)
                    row[x * step] = (guint8)(16 + value % 200);
                else
                    memcpy(row + x * step, &wide, sizeof wide);
            }
        }
    gst_video_frame_unmap(&frame);
    GST_BUFFER_PTS(buffer) = seed * FRAME_MS * GST_MSECOND;
    GST_BUFFER_DURATION(buffer) = FRAME_MS * GST_MSECOND;
    return buffer;
}

void bench_push(struct bench *bench, GstBuffer *buffer)
{
    const GstClockTime pts = GST_BUFFER_PTS(buffer);
    const GstFlowReturn flow = gst_harness_push(bench->h, buffer);
    cr_assert_eq(flow, GST_FLOW_OK, "the frame at %" GST_TIME_FORMAT " to %s: %s", GST_TIME_ARGS(pts), bench->out,
                 gst_flow_get_name(flow));
}

void bench_pass(struct bench *bench, guint seed)
{
    bench_push(bench, make_frame(NULL, &bench->in, seed));
    gst_buffer_unref(gst_harness_pull(bench->h));
}

GBytes *samples(GstBuffer *buffer, const char *caps_text)
{
    GstVideoInfo info;
    GstVideoFrame frame;
    GByteArray *all = g_byte_array_new();
    info_of(caps_text, &info);
    cr_assert(buffer && gst_video_frame_map(&frame, &info, buffer, GST_MAP_READ));
    for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES(&frame); p++)
        for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT(&frame, p); y++)
            g_byte_array_append(all,
                                (guint8 *)GST_VIDEO_FRAME_PLANE_DATA(&frame, p) +
                                    (gssize)y * GST_VIDEO_FRAME_PLANE_STRIDE(&frame, p),
                                (guint)(GST_VIDEO_FRAME_COMP_WIDTH(&frame, p) *
                                        GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, p)));
    gst_video_frame_unmap(&frame);
    gst_buffer_unref(buffer);
    return g_byte_array_free_to_bytes(all);
}

GBytes *bench_pull(struct bench *bench)
{
    return samples(gst_harness_pull(bench->h), bench->out);
}

guint difference(GBytes *a, GBytes *b)
{
    gsize count, other_count;
    const guint8 *one = g_bytes_get_data(a, &count), *other = g_bytes_get_data(b, &other_count);
    guint most = count == other_count ? 0 : G_MAXUINT;
    for (gsize n = 0; n < MIN(count, other_count); n++)
        most = MAX(most, (guint)abs(one[n] - other[n]));
    return most;
}

guint64 bench_stat(const struct bench *bench, const char *field)
{
    g_autoptr(GstStructure) stats = NULL;
    guint64 value = G_MAXUINT64;
    g_object_get(bench->element, "stats", &stats, NULL);
    gst_structure_get_uint64(stats, field, &value);
    return value;
}

void bench_has_message(const struct bench *bench, GstMessageType type)
{
    g_autoptr(GstMessage) message = gst_bus_pop_filtered(bench->bus, type);
    cr_assert_not_null(message, "no message: %s", gst_message_type_get_name(type));
}

GstBufferPool *pool_open(const struct bench *bench, const char *caps_text, const GstVideoAlignment *align)
{
    GstBufferPool *pool = NULL;
    guint size, least, most;
    g_autoptr(GstCaps) caps = gst_caps_from_string(caps_text);
    GstQuery *query = gst_query_new_allocation(caps, TRUE);
    cr_assert(gst_pad_peer_query(bench->h->srcpad, query));
    cr_assert(gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, NULL));
    cr_assert_gt(gst_query_get_n_allocation_pools(query), 0);
    gst_query_parse_nth_allocation_pool(query, 0, &pool, &size, &least, &most);
    gst_query_unref(query);

    GstStructure *config = gst_buffer_pool_get_config(pool);
    gst_buffer_pool_config_set_params(config, caps, size, 2, 0);
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
    if (align) {
        gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
        gst_buffer_pool_config_set_video_alignment(config, align);
    }
    cr_assert(gst_buffer_pool_set_config(pool, config));
    cr_assert(gst_buffer_pool_set_active(pool, TRUE));
    return pool;
}

GstBuffer *pool_frame(GstBufferPool *pool)
{
    GstBuffer *buffer = NULL;
    cr_assert_eq(gst_buffer_pool_acquire_buffer(pool, &buffer, NULL), GST_FLOW_OK);
    return buffer;
}

void pool_close(GstBufferPool **pool)
{
    gst_buffer_pool_set_active(*pool, FALSE);
    gst_object_unref(*pool);
}
