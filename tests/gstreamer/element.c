/* coxtonemap as other elements meet it: what caps it takes and gives, whose memory frames are in, in which order they
 * and events come out, and that nothing hangs where a stream is sought through, changes or ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

static void setup(void)
{
    gst_init(NULL, NULL);
    g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL | G_LOG_FATAL_MASK);
    GstElement *element = gst_element_factory_make("coxtonemap", NULL);
    cr_assert_not_null(element, "the plugin is not in GST_PLUGIN_PATH");
    gst_object_unref(gst_object_ref_sink(element));
}

TestSuite(gstreamer, .init = setup, .timeout = 600);

#define PQ "colorimetry=bt2100-pq"
#define SMALL "width=64,height=48,framerate=25/1"
#define RAW "video/x-raw,"

/* --- Caps --------------------------------------------------------------------------------------------------------- */

/* Whether the element takes `in` and can give `out` for it. */
static bool takes(const char *properties, const char *in, const char *out)
{
    char *text = g_strdup_printf("coxtonemap %s", properties);
    GstHarness *h = gst_harness_new_parse(text);
    GstCaps *in_caps = gst_caps_from_string(in), *out_caps = gst_caps_from_string(out);
    cr_assert(in_caps && out_caps);
    gst_harness_set_sink_caps(h, out_caps);
    GstQuery *query = gst_query_new_accept_caps(in_caps);
    gboolean accepted = FALSE;
    cr_assert(gst_pad_peer_query(h->srcpad, query));
    gst_query_parse_accept_caps_result(query, &accepted);
    if (accepted) {
        GstCaps *possible = gst_pad_peer_query_caps(h->srcpad, in_caps);
        accepted = gst_caps_can_intersect(possible, in_caps);
        gst_caps_unref(possible);
    }
    gst_query_unref(query);
    gst_caps_unref(in_caps);
    gst_harness_teardown(h);
    g_free(text);
    return accepted;
}

Test(gstreamer, takes_hdr_and_gives_sdr_of_no_more_chroma)
{
    static const struct {
        const char *in, *out;
        bool works;
    } table[] = {
        {"I420_10LE", "I420", true},  {"I420_10LE", "NV12", true},      {"I420_10LE", "P010_10LE", true},
        {"I420_10LE", "RGBA", true},  {"I420_10LE", "Y42B", false},     {"I420_10LE", "Y444", false},
        {"P010_10LE", "NV12", true},  {"P010_10LE", "I420", true},      {"P012_LE", "NV12", true},
        {"P016_LE", "NV12", true},    {"NV12", "NV12", true},           {"I420", "I420", true},
        {"I422_10LE", "Y42B", true},  {"I422_10LE", "I420", true},      {"I422_10LE", "Y444", false},
        {"Y444_10LE", "Y444", true},  {"Y444_10LE", "I422_10LE", true}, {"Y444_12LE", "NV12", true},
        {"I420_12LE", "I420", true},  {"I422_12LE", "Y42B", true},      {"Y444_16LE", "Y444_10LE", true},
        {"Y42B", "Y42B", true},       {"Y444", "Y444", true},           {"I420_10LE", "GRAY8", false},
        {"NV16", "NV16", true},       {"v210", "Y42B", true},           {"v210", "v210", false},
        {"v210", "Y444", false},      {"I420_10LE", "BGRx", true},      {"I420_10LE", "BGRA", true},
        {"I420_10LE", "RGBx", true},  {"I420_10LE", "GBR", true},       {"Y444_12LE", "GBR_10LE", true},
        {"I420_10LE", "YUY2", false}, {"RGBA", "RGBA", false},          {"YUY2", "I420", false},
    };
    for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
        char *in = g_strdup_printf(RAW "format=%s," SMALL "," PQ, table[i].in);
        char *out = g_strdup_printf(RAW "format=%s", table[i].out);
        cr_expect_eq(takes("", in, out), table[i].works, "%s to %s", table[i].in, table[i].out);
        g_free(in);
        g_free(out);
    }
}

Test(gstreamer, interlaced_frames_are_not_scaled)
{
    static const char *const in = RAW
        "format=I420_10LE,width=64,height=48,framerate=25/1,interlace-mode=interleaved," PQ;
    cr_expect(takes("", in, RAW "format=I420"));
    cr_expect(takes("", in, RAW "format=I420,interlace-mode=interleaved"));
    cr_expect_not(takes("", in, RAW "format=I420,width=32,height=24"));
}

Test(gstreamer, takes_rgb_of_full_range)
{
    static const char *const formats[] = {"RGBA64_LE", "BGRA64_LE", "GBR", "GBR_10LE", "GBR_12LE"};
    for (guint i = 0; i < G_N_ELEMENTS(formats); i++) {
        char *in = g_strdup_printf(RAW "format=%s," SMALL ",colorimetry=1:1:14:7", formats[i]);
        char *limited = g_strdup_printf(RAW "format=%s," SMALL ",colorimetry=2:1:14:7", formats[i]);
        cr_expect(takes("", in, RAW "format=NV12"), "%s", formats[i]);
        cr_expect(takes("", in, RAW "format=GBR"), "%s", formats[i]);
        cr_expect_not(takes("", limited, RAW "format=NV12"), "%s of limited range", formats[i]);
        g_free(in);
        g_free(limited);
    }
}

Test(gstreamer, takes_each_way_that_hdr_is_said)
{
    static const struct {
        const char *colours;
        bool works;
    } table[] = {{"bt2100-pq", true}, {"bt2100-hlg", true}, {"1:6:14:7", true},  {"1:6:15:7", true},
                 {"2:0:14:7", true},  {"2:6:14:0", true},   {"2:3:14:1", true},  {"2:0:14:0", true},
                 {"bt709", false},    {"bt2020-10", false}, {"2:6:14:1", false}, {"2:4:14:7", false}};
    for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
        char *in = g_strdup_printf(RAW "format=I420_10LE," SMALL ",colorimetry=%s", table[i].colours);
        cr_expect_eq(takes("passthrough-sdr=false", in, RAW "format=I420"), table[i].works, "%s", table[i].colours);
        g_free(in);
    }
}

Test(gstreamer, refuses_sdr_where_it_is_not_to_pass)
{
    cr_expect(takes("", RAW "format=I420," SMALL ",colorimetry=bt709", RAW "format=I420"));
    cr_expect_not(takes("", RAW "format=I420," SMALL ",colorimetry=bt709", RAW "format=NV12"));
    cr_expect_not(takes("passthrough-sdr=false", RAW "format=I420," SMALL ",colorimetry=bt709", RAW "format=I420"));
    cr_expect(takes("", RAW "format=BGRx," SMALL, RAW "format=BGRx"));
    cr_expect_not(takes("passthrough-sdr=false", RAW "format=I420_10LE," SMALL, RAW "format=I420"));
}

Test(gstreamer, takes_what_says_nothing_for_what_the_property_says)
{
    cr_expect(takes("transfer=pq", RAW "format=I420_10LE," SMALL, RAW "format=NV12"));
    cr_expect(takes("transfer=hlg", RAW "format=I420," SMALL ",colorimetry=bt709", RAW "format=NV12"));
}

Test(gstreamer, offers_upstream_nothing_that_cannot_be_done)
{
    GstHarness *h = gst_harness_new("coxtonemap");
    gst_harness_set_sink_caps_str(h, RAW "format=NV12,width=640,height=480,colorimetry=bt709");
    GstCaps *caps = gst_pad_peer_query_caps(h->srcpad, NULL);
    GstCaps *sdr = gst_caps_from_string(RAW "format=I420_10LE,width=640,height=480,colorimetry=bt709");
    GstCaps *hdr = gst_caps_from_string(RAW "format=I420_10LE,width=1280,height=960," PQ);
    GstCaps *huge = gst_caps_from_string(RAW "format=I420_10LE,width=5121,height=480," PQ);
    cr_expect_not(gst_caps_can_intersect(caps, sdr));
    cr_expect(gst_caps_can_intersect(caps, hdr));
    cr_expect_not(gst_caps_can_intersect(caps, huge), "more than eightfold");
    gst_caps_unref(caps);
    gst_caps_unref(sdr);
    gst_caps_unref(hdr);
    gst_caps_unref(huge);
    gst_harness_teardown(h);
}

/* The caps that frames of `in` come out with, where downstream takes `out`. */
static GstStructure *given(const char *properties, const char *in, const char *out)
{
    char *text = g_strdup_printf("coxtonemap %s", properties);
    GstHarness *h = gst_harness_new_parse(text);
    gst_harness_set_sink_caps_str(h, out);
    gst_harness_set_src_caps_str(h, in);
    GstPad *pad = gst_pad_get_peer(h->sinkpad);
    GstCaps *caps = gst_pad_get_current_caps(pad);
    cr_assert_not_null(caps, "%s does not become %s", in, out);
    GstStructure *structure = gst_structure_copy(gst_caps_get_structure(caps, 0));
    gst_caps_unref(caps);
    gst_object_unref(pad);
    gst_harness_teardown(h);
    g_free(text);
    return structure;
}

static void is_text(const GstStructure *structure, const char *field, const char *text)
{
    const char *got = gst_structure_get_string(structure, field);
    cr_expect(!g_strcmp0(got, text), "%s is %s, not %s", field, got ? got : "missing", text ? text : "missing");
}

static void is_size(const GstStructure *structure, int width, int height, int par_n, int par_d)
{
    int w = 0, h = 0, n = 1, d = 1;
    gst_structure_get_int(structure, "width", &w);
    gst_structure_get_int(structure, "height", &h);
    gst_structure_get_fraction(structure, "pixel-aspect-ratio", &n, &d);
    cr_expect(w == width && h == height && n == par_n && d == par_d, "%d x %d, %d:%d", w, h, n, d);
}

Test(gstreamer, output_is_like_the_input_and_says_what_it_is)
{
    const char *in = RAW "format=I422_10LE,width=640,height=360,framerate=24000/1001,pixel-aspect-ratio=1/1,"
                         "interlace-mode=progressive,chroma-site=jpeg," PQ
                         ",mastering-display-info=(string)35400:14600:8500:39850:6550:2300:15635:16450:10000000:1,"
                         "content-light-level=(string)1000:400";
    int num, den;
    GstStructure *got = given("", in, "video/x-raw");
    is_text(got, "format", "Y42B");
    is_text(got, "colorimetry", "bt709");
    is_text(got, "chroma-site", "jpeg");
    is_size(got, 640, 360, 1, 1);
    cr_expect(gst_structure_get_fraction(got, "framerate", &num, &den) && num == 24000 && den == 1001);
    cr_expect_not(gst_structure_has_field(got, "mastering-display-info"));
    cr_expect_not(gst_structure_has_field(got, "content-light-level"));
    gst_structure_free(got);

    got = given("", RAW "format=P010_10LE," SMALL "," PQ, RAW "format={RGBA,I420,NV12}");
    is_text(got, "format", "NV12");
    is_text(got, "chroma-site", "mpeg2");
    gst_structure_free(got);

    got = given("", RAW "format=P010_10LE," SMALL "," PQ, RAW "format=RGBA");
    is_text(got, "colorimetry", "1:1:5:1");
    is_text(got, "chroma-site", NULL);
    gst_structure_free(got);

    got = given("", RAW "format=P010_10LE," SMALL "," PQ, RAW "format=NV12,colorimetry=(string)1:3:5:1");
    is_text(got, "colorimetry", "1:3:5:1");
    gst_structure_free(got);
}

Test(gstreamer, another_size_keeps_the_pictures_shape)
{
    const char *in = RAW "format=I420_10LE,width=640,height=360,framerate=25/1,pixel-aspect-ratio=1/1," PQ;
    GstStructure *got = given("", in, RAW "width=320,pixel-aspect-ratio=1/1");
    is_size(got, 320, 180, 1, 1);
    gst_structure_free(got);
    got = given("", in, RAW "height=90,pixel-aspect-ratio=1/1");
    is_size(got, 160, 90, 1, 1);
    gst_structure_free(got);
    got = given("", in, RAW "width=240"); /* an encoder of 4:2:0 wants no 135 */
    is_size(got, 240, 136, 1, 1);
    gst_structure_free(got);
    got = given("", RAW "format=I420_10LE,width=333,height=111,framerate=25/1," PQ, "video/x-raw");
    is_size(got, 333, 111, 1, 1);
    gst_structure_free(got);
    got = given("", in, RAW "width=320,height=360");
    is_size(got, 320, 360, 2, 1);
    gst_structure_free(got);
    got = given("", RAW "format=I420_10LE,width=720,height=576,framerate=25/1,pixel-aspect-ratio=16/15," PQ,
                RAW "pixel-aspect-ratio=1/1");
    is_size(got, 768, 576, 1, 1);
    gst_structure_free(got);
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

/* A frame of these caps in memory of anybody's, of a pattern that differs with `seed`. */
static GstBuffer *make_frame(GstBuffer *buffer, const GstVideoInfo *info, guint seed)
{
    GstVideoFrame frame;
    if (!buffer)
        buffer = gst_buffer_new_allocate(NULL, info->size, NULL);
    cr_assert(gst_video_frame_map(&frame, info, buffer, GST_MAP_WRITE));
    for (guint c = 0; c < GST_VIDEO_FRAME_N_COMPONENTS(&frame); c++)
        for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT(&frame, c); y++) {
            guint8 *row = GST_VIDEO_FRAME_COMP_DATA(&frame, c);
            row += (gssize)y * GST_VIDEO_FRAME_COMP_STRIDE(&frame, c);
            row += GST_VIDEO_FRAME_COMP_POFFSET(&frame, c) == 1 && GST_VIDEO_FRAME_COMP_DEPTH(&frame, c) > 8; /* P010 */
            for (gint x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH(&frame, c); x++) {
                const guint shift = info->finfo->shift[0];
                if (GST_VIDEO_FRAME_COMP_DEPTH(&frame, c) == 8) {
                    row[x * GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, c)] =
                        (guint8)(16 + (x * 7 + y * 5 + (gint)(c * 31 + seed * 13)) % 200);
                    continue;
                }
                const guint16 value = (guint16)((64 + (guint)(x * 7 + y * 5 + (gint)(c * 31 + seed * 13)) % 800)
                                                << shift);
                memcpy(row + x * GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, c), &value, sizeof value);
            }
        }
    gst_video_frame_unmap(&frame);
    GST_BUFFER_PTS(buffer) = seed * 40 * GST_MSECOND;
    GST_BUFFER_DURATION(buffer) = 40 * GST_MSECOND;
    return buffer;
}

/* The samples of a frame, without what lies between rows. */
static GBytes *samples(GstBuffer *buffer, const char *caps_text)
{
    GstCaps *caps = gst_caps_from_string(caps_text);
    GstVideoInfo info;
    GstVideoFrame frame;
    GByteArray *all = g_byte_array_new();
    cr_assert(gst_video_info_from_caps(&info, caps));
    cr_assert(gst_video_frame_map(&frame, &info, buffer, GST_MAP_READ));
    for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES(&frame); p++)
        for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT(&frame, p); y++)
            g_byte_array_append(all,
                                (guint8 *)GST_VIDEO_FRAME_PLANE_DATA(&frame, p) +
                                    (gssize)y * GST_VIDEO_FRAME_PLANE_STRIDE(&frame, p),
                                (guint)(GST_VIDEO_FRAME_COMP_WIDTH(&frame, p) *
                                        GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, p)));
    gst_video_frame_unmap(&frame);
    gst_caps_unref(caps);
    return g_byte_array_free_to_bytes(all);
}

static guint64 stat_of(GstHarness *h, const char *field)
{
    GstStructure *stats = NULL;
    guint64 value = G_MAXUINT64;
    GstElement *element = gst_harness_find_element(h, "coxtonemap");
    g_object_get(element, "stats", &stats, NULL);
    gst_structure_get_uint64(stats, field, &value);
    gst_structure_free(stats);
    gst_object_unref(element);
    return value;
}

static void info_of(const char *caps_text, GstVideoInfo *info)
{
    GstCaps *caps = gst_caps_from_string(caps_text);
    cr_assert(gst_video_info_from_caps(info, caps), "%s", caps_text);
    gst_caps_unref(caps);
}

static GstHarness *open_harness(const char *properties, const char *in, const char *out)
{
    char *text = g_strdup_printf("coxtonemap devices=cpu policy=static cache-dir=\"\" %s", properties);
    GstHarness *h = gst_harness_new_parse(text);
    gst_harness_set_sink_caps_str(h, out);
    gst_harness_set_src_caps_str(h, in);
    g_free(text);
    return h;
}

/* The pool that the element offers upstream, active. */
static GstBufferPool *offered_pool(GstHarness *h, const char *caps_text, const GstVideoAlignment *align)
{
    GstBufferPool *pool = NULL;
    guint size, least, most;
    GstCaps *caps = gst_caps_from_string(caps_text);
    GstQuery *query = gst_query_new_allocation(caps, TRUE);
    cr_assert(gst_pad_peer_query(h->srcpad, query));
    cr_assert(gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, NULL));
    cr_assert_gt(gst_query_get_n_allocation_pools(query), 0);
    gst_query_parse_nth_allocation_pool(query, 0, &pool, &size, &least, &most);
    GstStructure *config = gst_buffer_pool_get_config(pool);
    gst_buffer_pool_config_set_params(config, caps, size, 2, 0);
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
    if (align) {
        gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
        gst_buffer_pool_config_set_video_alignment(config, align);
    }
    cr_assert(gst_buffer_pool_set_config(pool, config));
    cr_assert(gst_buffer_pool_set_active(pool, TRUE));
    gst_query_unref(query);
    gst_caps_unref(caps);
    return pool;
}

static void close_pool(GstBufferPool *pool)
{
    gst_buffer_pool_set_active(pool, FALSE);
    gst_object_unref(pool);
}

/* Whether rows are as far apart as the alignment says, and no further: decoders that began with such rows take no pool
 * with others. */
static bool has_strides(GstBuffer *buffer, const GstVideoInfo *info, GstVideoAlignment align)
{
    GstVideoInfo wanted = *info;
    const GstVideoMeta *meta = gst_buffer_get_video_meta(buffer);
    cr_assert(gst_video_info_align(&wanted, &align));
    for (guint p = 0; p < meta->n_planes; p++)
        if (meta->stride[p] != wanted.stride[p])
            return false;
    return true;
}

#define IN_10 RAW "format=I420_10LE,width=330,height=180,framerate=25/1," PQ
#define OUT_8 RAW "format=I420,width=330,height=180,framerate=25/1,colorimetry=bt709"

Test(gstreamer, frames_in_pools_are_not_copied_and_come_out_the_same)
{
    static const GstVideoAlignment aligns[] = {
        {0},
        {.padding_bottom = 17, .padding_right = 38, .stride_align = {63, 63, 63, 63}},
        {.padding_top = 4, .padding_left = 32}};
    GstVideoInfo info;
    GBytes *first = NULL;
    info_of(IN_10, &info);
    for (guint i = 0; i < G_N_ELEMENTS(aligns); i++) {
        GstHarness *h = open_harness("", IN_10, OUT_8);
        GstBufferPool *pool = offered_pool(h, IN_10, &aligns[i]);
        for (guint n = 0; n < 5; n++) {
            GstBuffer *buffer = NULL;
            cr_assert_eq(gst_buffer_pool_acquire_buffer(pool, &buffer, NULL), GST_FLOW_OK);
            cr_assert_eq(gst_buffer_n_memory(buffer), 3, "a plane's memory is its own");
            cr_expect(i == 0 || has_strides(buffer, &info, aligns[i]), "alignment %u: other strides", i);
            cr_assert_eq(gst_harness_push(h, make_frame(buffer, &info, 1)), GST_FLOW_OK);
            GstBuffer *out = gst_harness_pull(h);
            GBytes *bytes = samples(out, OUT_8);
            if (!first)
                first = g_bytes_ref(bytes);
            cr_expect(n == 0 || g_bytes_equal(first, bytes), "alignment %u", i);
            g_bytes_unref(bytes);
            gst_buffer_unref(out);
        }
        close_pool(pool);
        cr_expect_eq(stat_of(h, "frames"), 5);
        cr_expect_eq(stat_of(h, "bytes-copied-in"), 0);
        cr_expect_eq(stat_of(h, "bytes-copied-out"), 0);
        gst_harness_teardown(h);
    }
    g_bytes_unref(first);
}

Test(gstreamer, odd_sizes_fit_their_pools)
{
    static const GstVideoAlignment aligns[] = {{0}, {.padding_top = 3, .padding_left = 5, .padding_bottom = 7}};
    static const char *const formats[] = {"I420_10LE", "I422_10LE", "Y444_10LE", "P010_10LE"};
    static const int sizes[][2] = {{320, 241}, {321, 240}, {31, 17}, {320, 1}, {2, 3}};
    for (guint i = 0; i < G_N_ELEMENTS(formats) * G_N_ELEMENTS(sizes) * G_N_ELEMENTS(aligns); i++) {
        const int *size = sizes[i / 4 % 5];
        GstVideoInfo info;
        GstBuffer *buffer = NULL;
        char *in = g_strdup_printf(RAW "format=%s,width=%d,height=%d,framerate=25/1," PQ, formats[i % 4], size[0],
                                   size[1]);
        char *out = g_strdup_printf(RAW "format=I420,width=%d,height=%d,framerate=25/1,colorimetry=bt709", size[0],
                                    size[1]);
        info_of(in, &info);
        GstHarness *h = open_harness("peak=1000", in, out);
        GstBufferPool *pool = offered_pool(h, in, &aligns[i / 20]);
        cr_assert_eq(gst_buffer_pool_acquire_buffer(pool, &buffer, NULL), GST_FLOW_OK);
        const GstVideoMeta *meta = gst_buffer_get_video_meta(buffer);
        for (guint p = 0; p < meta->n_planes; p++) {
            guint first, count;
            gsize skip;
            const gsize rows = (gsize)GST_VIDEO_FORMAT_INFO_SCALE_HEIGHT(info.finfo, p, size[1]);
            cr_assert(gst_buffer_find_memory(buffer, meta->offset[p], 1, &first, &count, &skip));
            cr_expect_eq(first, p, "%s: plane %u is in memory %u", in, p, first);
            cr_expect_leq(skip + rows * (gsize)meta->stride[p],
                          gst_memory_get_sizes(gst_buffer_peek_memory(buffer, first), NULL, NULL) +
                              aligns[i / 20].padding_left * 2,
                          "%s: plane %u", in, p);
        }
        GstBuffer *own = make_frame(buffer, &info, 1), *elsewhere = make_frame(NULL, &info, 1);
        cr_assert_eq(gst_harness_push(h, own), GST_FLOW_OK, "%s", in);
        cr_assert_eq(gst_harness_push(h, elsewhere), GST_FLOW_OK, "%s", in);
        GstBuffer *outs[] = {gst_harness_pull(h), gst_harness_pull(h)};
        GBytes *a = samples(outs[0], out), *b = samples(outs[1], out);
        gsize bytes_count;
        const guint8 *one = g_bytes_get_data(a, &bytes_count), *other = g_bytes_get_data(b, &bytes_count);
        gsize unlike = 0, at_first = 0;
        for (gsize n = 0; n < bytes_count; n++)
            if (one[n] != other[n] && !unlike++)
                at_first = n;
        cr_expect_eq(unlike, 0, "%s: %zu of %zu samples differ, first %zu", in, unlike, bytes_count, at_first);
        g_bytes_unref(a);
        g_bytes_unref(b);
        gst_buffer_unref(outs[0]);
        gst_buffer_unref(outs[1]);
        close_pool(pool);
        gst_harness_teardown(h);
        g_free(in);
        g_free(out);
    }
}

Test(gstreamer, a_crop_outside_of_the_frame_is_cut_or_ignored)
{
    static const guint crops[][4] = {{0, 4000000, 64, 64}, {200, 100, 300, 300}, {0, 0, 0, 0}, {4000000000u, 0, 8, 8}};
    GstVideoInfo info;
    info_of(IN_10, &info);
    GstHarness *h = open_harness("peak=1000", IN_10, OUT_8);
    for (guint i = 0; i < G_N_ELEMENTS(crops); i++) {
        GstBuffer *frame = make_frame(NULL, &info, i);
        gst_buffer_add_video_meta(frame, 0, GST_VIDEO_FORMAT_I420_10LE, 330, 180);
        GstVideoCropMeta *crop = gst_buffer_add_video_crop_meta(frame);
        crop->x = crops[i][0];
        crop->y = crops[i][1];
        crop->width = crops[i][2];
        crop->height = crops[i][3];
        cr_assert_eq(gst_harness_push(h, frame), GST_FLOW_OK);
        gst_buffer_unref(gst_harness_pull(h));
    }
    gst_harness_teardown(h);
}

/* As decoders of gst-libav do: a frame goes on through another GstBuffer while its first one is mapped. */
Test(gstreamer, memory_that_stays_mapped_is_shared_and_used_again)
{
    GstHarness *h = open_harness("", IN_10, OUT_8);
    GstBufferPool *pool = offered_pool(h, IN_10, NULL);
    GstVideoInfo info;
    GstVideoFrame decoder, writer;
    GstBuffer *buffer = NULL;
    gpointer seen[6] = {NULL};
    guint places = 0;
    info_of(IN_10, &info);
    for (guint n = 0; n < G_N_ELEMENTS(seen); n++) {
        cr_assert_eq(gst_buffer_pool_acquire_buffer(pool, &buffer, NULL), GST_FLOW_OK);
        make_frame(buffer, &info, n);
        cr_assert(gst_video_frame_map(&decoder, &info, buffer, GST_MAP_READWRITE));
        GstBuffer *other = gst_buffer_make_writable(buffer);
        cr_assert_neq(other, buffer, "the map holds a reference");
        for (guint p = 0; p < 3; p++)
            cr_expect_eq(gst_buffer_peek_memory(other, p), gst_buffer_peek_memory(decoder.buffer, p), "plane %u", p);
        seen[n] = decoder.data[0];
        guint before = 0;
        while (seen[before] != seen[n])
            before++;
        places += before == n;

        /* Who writes to the second gets memory of his own. */
        if (n == 2) {
            const guint8 sample = *(guint8 *)decoder.data[0];
            cr_assert(gst_video_frame_map(&writer, &info, other, GST_MAP_WRITE));
            *(guint8 *)writer.data[0] = (guint8)~sample;
            cr_expect_eq(*(guint8 *)decoder.data[0], sample);
            gst_video_frame_unmap(&writer);
        }
        gst_video_frame_unmap(&decoder); /* the pool throws the first one away: its memory is still read */
        gst_buffer_unref(other);
    }
    cr_expect_leq(places, 2, "%u places for %zu frames, of a pool that began with 2", places, G_N_ELEMENTS(seen));
    close_pool(pool);
    gst_harness_teardown(h);
}

/* What a frame of `in` is mapped to. */
static GBytes *mapped(GstBuffer *buffer, const char *in, const char *out)
{
    GstHarness *h = open_harness("peak=1000 dither=none", in, out);
    cr_assert_eq(gst_harness_push(h, buffer), GST_FLOW_OK, "%s to %s", in, out);
    GstBuffer *got = gst_harness_pull(h);
    GBytes *bytes = samples(got, out);
    gst_buffer_unref(got);
    gst_harness_teardown(h);
    return bytes;
}

/* The same frame in another format, by GStreamer. */
static GstBuffer *converted(GstBuffer *buffer, const char *from, const char *to)
{
    GstVideoInfo in, out;
    GstVideoFrame in_frame, out_frame;
    info_of(from, &in);
    info_of(to, &out);
    GstBuffer *made = gst_buffer_new_allocate(NULL, out.size, NULL);
    GstVideoConverter *converter =
        gst_video_converter_new(&in, &out,
                                gst_structure_new("options", GST_VIDEO_CONVERTER_OPT_DITHER_METHOD,
                                                  GST_TYPE_VIDEO_DITHER_METHOD, GST_VIDEO_DITHER_NONE, NULL));
    cr_assert(gst_video_frame_map(&in_frame, &in, buffer, GST_MAP_READ));
    cr_assert(gst_video_frame_map(&out_frame, &out, made, GST_MAP_WRITE));
    gst_video_converter_frame(converter, &in_frame, &out_frame);
    gst_video_frame_unmap(&in_frame);
    gst_video_frame_unmap(&out_frame);
    gst_video_converter_free(converter);
    GST_BUFFER_PTS(made) = GST_BUFFER_PTS(buffer);
    return made;
}

#define SIZED "width=330,height=180,framerate=25/1,"

Test(gstreamer, each_layout_of_a_frame_comes_out_alike)
{
    static const struct {
        const char *in, *same, *out;
        gsize apart; /* of samples, at most */
    } table[] = {
        {RAW "format=I422_10LE," SIZED PQ, RAW "format=v210," SIZED PQ, RAW "format=Y42B," SIZED "colorimetry=bt709",
         0},
        {RAW "format=NV16," SIZED PQ, RAW "format=Y42B," SIZED PQ, RAW "format=NV16," SIZED "colorimetry=bt709", 0},
        {RAW "format=RGBA64_LE," SIZED "colorimetry=1:1:14:7", RAW "format=BGRA64_LE," SIZED "colorimetry=1:1:14:7",
         RAW "format=NV12," SIZED "colorimetry=bt709", 0},
        {RAW "format=GBR_12LE," SIZED "colorimetry=1:1:14:7", RAW "format=RGBA64_LE," SIZED "colorimetry=1:1:14:7",
         RAW "format=GBR," SIZED "colorimetry=1:1:5:1", 1},
    };
    for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
        GstVideoInfo info;
        gsize count, same_count;
        info_of(table[i].in, &info);
        GstBuffer *frame = make_frame(NULL, &info, i), *same = converted(frame, table[i].in, table[i].same);
        GBytes *a = mapped(frame, table[i].in, table[i].out), *b = mapped(same, table[i].same, table[i].out);
        const guint8 *one = g_bytes_get_data(a, &count), *other = g_bytes_get_data(b, &same_count);
        cr_assert_eq(count, same_count);
        gsize most = 0;
        for (gsize n = 0; n < count; n++)
            most = MAX(most, (gsize)abs(one[n] - other[n]));
        cr_expect_leq(most, table[i].apart, "%s: %zu apart", table[i].same, most);
        g_bytes_unref(a);
        g_bytes_unref(b);
    }
}

Test(gstreamer, pixels_come_out_in_the_order_that_is_wanted)
{
    static const struct {
        const char *format;
        guint order[3]; /* where R, G, B are */
    } table[] = {{"RGBx", {0, 1, 2}}, {"BGRA", {2, 1, 0}}, {"BGRx", {2, 1, 0}}};
    GstVideoInfo info;
    info_of(IN_10, &info);
    GBytes *rgba = mapped(make_frame(NULL, &info, 1), IN_10, RAW "format=RGBA," SIZED "colorimetry=1:1:5:1");
    for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
        gsize count, same_count;
        char *out = g_strdup_printf(RAW "format=%s," SIZED "colorimetry=1:1:5:1", table[i].format);
        GBytes *got = mapped(make_frame(NULL, &info, 1), IN_10, out);
        const guint8 *one = g_bytes_get_data(rgba, &count), *other = g_bytes_get_data(got, &same_count);
        cr_assert_eq(count, same_count);
        gsize unlike = 0;
        for (gsize n = 0; n < count; n += 4)
            for (guint c = 0; c < 3; c++)
                unlike += one[n + c] != other[n + table[i].order[c]];
        cr_expect_eq(unlike, 0, "%s", table[i].format);
        g_bytes_unref(got);
        g_free(out);
    }
    g_bytes_unref(rgba);
}

Test(gstreamer, frames_in_other_memory_come_out_the_same)
{
    GstHarness *h = open_harness("peak=1000", IN_10, OUT_8);
    GstVideoInfo info;
    info_of(IN_10, &info);
    GstBufferPool *pool = offered_pool(h, IN_10, NULL);
    GstBuffer *own = NULL;
    cr_assert_eq(gst_buffer_pool_acquire_buffer(pool, &own, NULL), GST_FLOW_OK);
    cr_assert_eq(gst_harness_push(h, make_frame(own, &info, 3)), GST_FLOW_OK);
    cr_assert_eq(gst_harness_push(h, make_frame(NULL, &info, 3)), GST_FLOW_OK);
    GstBuffer *outs[] = {gst_harness_pull(h), gst_harness_pull(h)};
    GBytes *a = samples(outs[0], OUT_8), *b = samples(outs[1], OUT_8);
    cr_expect(g_bytes_equal(a, b));
    g_bytes_unref(a);
    g_bytes_unref(b);
    gst_buffer_unref(outs[0]);
    gst_buffer_unref(outs[1]);
    close_pool(pool);
    gst_harness_teardown(h);
}

Test(gstreamer, maps_the_part_that_a_crop_names)
{
    const char *small_in = RAW "format=I420_10LE,width=128,height=96,framerate=25/1," PQ;
    const char *small_out = RAW "format=I420,width=128,height=96,framerate=25/1,colorimetry=bt709";
    GstHarness *h = open_harness("peak=1000", small_in, small_out);
    GstVideoInfo info, small;
    GstVideoFrame from, to;
    info_of(IN_10, &info);
    info_of(small_in, &small);
    GstBuffer *large = make_frame(NULL, &info, 2), *cut = gst_buffer_new_allocate(NULL, small.size, NULL);
    cr_assert(gst_video_frame_map(&from, &info, large, GST_MAP_READ));
    cr_assert(gst_video_frame_map(&to, &small, cut, GST_MAP_WRITE));
    for (guint c = 0; c < 3; c++)
        for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT(&to, c); y++)
            memcpy((guint8 *)to.data[c] + y * GST_VIDEO_FRAME_COMP_STRIDE(&to, c),
                   (guint8 *)from.data[c] + (y + (c ? 11 : 22)) * GST_VIDEO_FRAME_COMP_STRIDE(&from, c) +
                       2 * (c ? 20 : 40),
                   2 * (gsize)GST_VIDEO_FRAME_COMP_WIDTH(&to, c));
    gst_video_frame_unmap(&from);
    gst_video_frame_unmap(&to);
    GST_BUFFER_PTS(cut) = 0;
    gst_buffer_add_video_meta(large, 0, GST_VIDEO_FORMAT_I420_10LE, 330, 180);
    GstVideoCropMeta *crop = gst_buffer_add_video_crop_meta(large);
    crop->x = 40;
    crop->y = 22;
    crop->width = 128;
    crop->height = 96;
    cr_assert_eq(gst_harness_push(h, large), GST_FLOW_OK);
    cr_assert_eq(gst_harness_push(h, cut), GST_FLOW_OK);
    GstBuffer *outs[] = {gst_harness_pull(h), gst_harness_pull(h)};
    cr_expect_null(gst_buffer_get_video_crop_meta(outs[0]));
    GBytes *a = samples(outs[0], small_out), *b = samples(outs[1], small_out);
    cr_expect(g_bytes_equal(a, b));
    g_bytes_unref(a);
    g_bytes_unref(b);
    gst_buffer_unref(outs[0]);
    gst_buffer_unref(outs[1]);
    gst_harness_teardown(h);
}

Test(gstreamer, sdr_passes_untouched)
{
    GstHarness *h = open_harness("", RAW "format=I420," SMALL ",colorimetry=bt709", "video/x-raw");
    GstVideoInfo info;
    info_of(RAW "format=I420," SMALL, &info);
    GstBuffer *buffer = gst_buffer_new_allocate(NULL, info.size, NULL);
    cr_assert_eq(gst_harness_push(h, gst_buffer_ref(buffer)), GST_FLOW_OK);
    GstBuffer *out = gst_harness_pull(h);
    cr_expect_eq(out, buffer);
    cr_expect_eq(stat_of(h, "frames"), 0);
    gst_buffer_unref(out);
    gst_buffer_unref(buffer);
    gst_harness_teardown(h);
}

Test(gstreamer, a_stream_may_turn_from_hdr_to_sdr_and_back)
{
    GstHarness *h = open_harness("", IN_10, "video/x-raw");
    const char *const kinds[] = {IN_10, RAW "format=I420_10LE,width=330,height=180,framerate=25/1,colorimetry=bt709"};
    GstVideoInfo info;
    info_of(IN_10, &info);
    for (guint n = 0; n < 12; n++) {
        gst_harness_set_src_caps_str(h, kinds[n / 2 % 2]);
        cr_assert_eq(gst_harness_push(h, make_frame(NULL, &info, n)), GST_FLOW_OK);
    }
    gst_harness_push_event(h, gst_event_new_eos());
    for (guint n = 0; n < 12; n++) {
        GstBuffer *out = gst_harness_pull(h);
        cr_assert_not_null(out);
        cr_expect_eq(GST_BUFFER_PTS(out), n * 40 * GST_MSECOND, "frame %u", n);
        gst_buffer_unref(out);
    }
    cr_expect_eq(stat_of(h, "frames"), 6);
    gst_harness_teardown(h);
}

Test(gstreamer, reports_the_latency_of_the_frames_in_flight)
{
    GstHarness *h = open_harness("in-flight=3", IN_10, OUT_8);
    cr_expect_eq(gst_harness_query_latency(h), 120 * GST_MSECOND);
    gst_harness_teardown(h);
}

Test(gstreamer, drops_what_comes_too_late_and_says_so)
{
    GstHarness *h = open_harness("", IN_10, OUT_8);
    GstBus *bus = gst_bus_new();
    GstElement *element = gst_harness_find_element(h, "coxtonemap");
    GstVideoInfo info;
    info_of(IN_10, &info);
    gst_element_set_bus(element, bus);
    gst_harness_push(h, make_frame(NULL, &info, 0));
    gst_buffer_unref(gst_harness_pull(h));
    gst_harness_push_upstream_event(h, gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 2.0, 100 * GST_MSECOND, 0));
    cr_expect_eq(gst_harness_push(h, make_frame(NULL, &info, 1)), GST_FLOW_OK);
    cr_expect_eq(gst_harness_push(h, make_frame(NULL, &info, 5)), GST_FLOW_OK);
    GstBuffer *out = gst_harness_pull(h);
    cr_expect_eq(GST_BUFFER_PTS(out), 200 * GST_MSECOND);
    cr_expect(GST_BUFFER_IS_DISCONT(out));
    cr_expect_eq(stat_of(h, "frames-dropped"), 1);
    GstMessage *message = gst_bus_pop_filtered(bus, GST_MESSAGE_QOS);
    cr_assert_not_null(message);
    gst_message_unref(message);
    gst_buffer_unref(out);
    gst_element_set_bus(element, NULL);
    gst_object_unref(element);
    gst_object_unref(bus);
    gst_harness_teardown(h);
}

Test(gstreamer, the_look_changes_from_one_frame_to_the_next)
{
    GstHarness *h = open_harness("peak=1000", IN_10, OUT_8);
    GstElement *element = gst_harness_find_element(h, "coxtonemap");
    GstVideoInfo info;
    GBytes *bytes[3];
    info_of(IN_10, &info);
    for (guint n = 0; n < 3; n++) {
        g_object_set(element, "exposure", n == 1 ? -2.0 : 0.0, NULL);
        cr_assert_eq(gst_harness_push(h, make_frame(NULL, &info, 0)), GST_FLOW_OK);
        GstBuffer *out = gst_harness_pull(h);
        bytes[n] = samples(out, OUT_8);
        gst_buffer_unref(out);
    }
    cr_expect(g_bytes_equal(bytes[0], bytes[2]));
    cr_expect_not(g_bytes_equal(bytes[0], bytes[1]));
    for (guint n = 0; n < 3; n++)
        g_bytes_unref(bytes[n]);
    gst_object_unref(element);
    gst_harness_teardown(h);
}

/* Each property of the look at the ends of its range, in a film whose light is found. */
Test(gstreamer, no_setting_within_its_range_ends_the_film)
{
    static const char *const names[] = {"peak",       "sdr-white", "exposure",  "desaturate",
                                        "gamut-knee", "detail",    "lookahead", "operator"};
    GstHarness *h = open_harness("", IN_10, OUT_8);
    GstElement *element = gst_harness_find_element(h, "coxtonemap");
    GstVideoInfo info;
    guint frame = 0;
    info_of(IN_10, &info);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        GParamSpec *spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element), names[i]);
        for (guint end = 0; end < 3; end++) {
            if (G_IS_PARAM_SPEC_DOUBLE(spec)) {
                const GParamSpecDouble *range = G_PARAM_SPEC_DOUBLE(spec);
                const double values[] = {range->minimum, range->maximum, i ? range->default_value : 1e-7};
                g_object_set(element, names[i], values[end], NULL);
            } else {
                g_object_set(element, names[i], (int)(end == 1), NULL);
            }
            for (guint n = 0; n < 3; n++, frame++) {
                cr_assert_eq(gst_harness_push(h, make_frame(NULL, &info, frame)), GST_FLOW_OK, "%s, end %u", names[i],
                             end);
                gst_buffer_unref(gst_harness_pull(h));
            }
        }
        g_object_set_property(G_OBJECT(element), names[i], g_param_spec_get_default_value(spec));
    }
    gst_object_unref(element);
    gst_harness_teardown(h);
}

Test(gstreamer, the_local_operator_leaves_a_scaled_film_as_it_is)
{
    GstHarness *h = open_harness("", IN_10, RAW "format=I420,width=160,height=90,framerate=25/1,colorimetry=bt709");
    GstElement *element = gst_harness_find_element(h, "coxtonemap");
    GstBus *bus = gst_bus_new();
    GstVideoInfo info;
    info_of(IN_10, &info);
    gst_element_set_bus(element, bus);
    for (guint n = 0; n < 6; n++) {
        if (n == 2)
            gst_util_set_object_arg(G_OBJECT(element), "operator", "local");
        if (n == 4) /* and is agreed on again */
            gst_harness_push_upstream_event(h, gst_event_new_reconfigure());
        cr_assert_eq(gst_harness_push(h, make_frame(NULL, &info, n)), GST_FLOW_OK, "frame %u", n);
        gst_buffer_unref(gst_harness_pull(h));
    }
    GstMessage *message = gst_bus_pop_filtered(bus, GST_MESSAGE_WARNING);
    cr_assert_not_null(message);
    gst_message_unref(message);
    gst_element_set_bus(element, NULL);
    gst_object_unref(element);
    gst_object_unref(bus);
    gst_harness_teardown(h);
}

static gpointer set_local_while_it_begins(gpointer element)
{
    g_usleep(20000);
    gst_util_set_object_arg(G_OBJECT(element), "operator", "local");
    return NULL;
}

Test(gstreamer, the_local_operator_comes_too_late_for_a_scaled_film_that_begins)
{
    GstVideoInfo info;
    info_of(IN_10, &info);
    GstHarness *h = gst_harness_new_parse("coxtonemap devices=cpu policy=static cache-dir=\"\"");
    GstElement *element = gst_harness_find_element(h, "coxtonemap");
    gst_harness_set_sink_caps_str(h, RAW "format=I420,width=160,height=90,framerate=25/1,colorimetry=bt709");
    GThread *thread = g_thread_new("late", set_local_while_it_begins, element);
    gst_harness_set_src_caps_str(h, IN_10);
    g_thread_join(thread);
    for (guint n = 0; n < 2; n++) {
        cr_assert_eq(gst_harness_push(h, make_frame(NULL, &info, n)), GST_FLOW_OK, "frame %u", n);
        gst_buffer_unref(gst_harness_pull(h));
    }
    gst_object_unref(element);
    gst_harness_teardown(h);
}

/* Runs while the element makes its runtime, which takes long. */
static gpointer set_while_it_begins(gpointer element)
{
    g_usleep(20000);
    g_object_set(element, "exposure", -2.0, NULL);
    return NULL;
}

Test(gstreamer, a_property_set_while_the_devices_are_opened_counts)
{
    GBytes *bytes[2];
    for (guint late = 0; late < 2; late++) {
        GstVideoInfo info;
        info_of(IN_10, &info);
        GstHarness *h = gst_harness_new_parse("coxtonemap devices=cpu policy=static cache-dir=\"\" peak=1000");
        GstElement *element = gst_harness_find_element(h, "coxtonemap");
        if (!late)
            g_object_set(element, "exposure", -2.0, NULL);
        gst_harness_set_sink_caps_str(h, OUT_8);
        GThread *thread = late ? g_thread_new("late", set_while_it_begins, element) : NULL;
        gst_harness_set_src_caps_str(h, IN_10);
        if (thread)
            g_thread_join(thread);
        cr_assert_eq(gst_harness_push(h, make_frame(NULL, &info, 0)), GST_FLOW_OK);
        GstBuffer *out = gst_harness_pull(h);
        bytes[late] = samples(out, OUT_8);
        gst_buffer_unref(out);
        gst_object_unref(element);
        gst_harness_teardown(h);
    }
    cr_expect(g_bytes_equal(bytes[0], bytes[1]));
    g_bytes_unref(bytes[0]);
    g_bytes_unref(bytes[1]);
}

static gint64 position_of(GstHarness *h)
{
    gint64 position = -1;
    GstPad *pad = gst_pad_get_peer(h->sinkpad);
    gst_pad_query_position(pad, GST_FORMAT_TIME, &position);
    gst_object_unref(pad);
    return position;
}

Test(gstreamer, tells_how_far_it_is)
{
    GstHarness *h = open_harness("", IN_10, "video/x-raw");
    GstVideoInfo info;
    GstSegment segment;
    info_of(IN_10, &info);
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.start = 400 * GST_MSECOND;
    segment.time = 5 * GST_SECOND;
    gst_harness_push_event(h, gst_event_new_segment(&segment));
    cr_assert_eq(gst_harness_push(h, make_frame(NULL, &info, 15)), GST_FLOW_OK);
    gst_buffer_unref(gst_harness_pull(h));
    cr_expect_eq(position_of(h), 5240 * GST_MSECOND, "%" G_GINT64_FORMAT, position_of(h));
    gst_harness_set_src_caps_str(h, RAW "format=I420_10LE,width=330,height=180,framerate=25/1,colorimetry=bt709");
    cr_assert_eq(gst_harness_push(h, make_frame(NULL, &info, 20)), GST_FLOW_OK);
    gst_buffer_unref(gst_harness_pull(h));
    cr_expect_eq(position_of(h), 840 * GST_MSECOND, "that passes: %" G_GINT64_FORMAT, position_of(h));
    gst_harness_teardown(h);
}

Test(gstreamer, a_new_rate_is_a_new_latency)
{
    GstHarness *h = open_harness("in-flight=2", IN_10, "video/x-raw");
    GstBus *bus = gst_bus_new();
    GstElement *element = gst_harness_find_element(h, "coxtonemap");
    gst_element_set_bus(element, bus);
    gst_harness_set_src_caps_str(h, RAW "format=I420_10LE,width=330,height=180,framerate=50/1," PQ);
    GstMessage *message = gst_bus_pop_filtered(bus, GST_MESSAGE_LATENCY);
    cr_assert_not_null(message);
    gst_message_unref(message);
    cr_expect_eq(gst_harness_query_latency(h), 40 * GST_MSECOND);
    gst_element_set_bus(element, NULL);
    gst_object_unref(element);
    gst_object_unref(bus);
    gst_harness_teardown(h);
}

Test(gstreamer, a_device_that_is_not_there_is_an_error)
{
    GstElement *pipeline = gst_parse_launch("videotestsrc ! " RAW "format=I420_10LE," PQ
                                            " ! coxtonemap devices=no-such-device ! fakesink",
                                            NULL);
    GstBus *bus = gst_element_get_bus(pipeline);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstMessage *message = gst_bus_timed_pop_filtered(bus, GST_CLOCK_TIME_NONE, GST_MESSAGE_ERROR);
    GError *error = NULL;
    gst_message_parse_error(message, &error, NULL);
    cr_expect(g_str_has_prefix(error->message, "No device: "), "%s", error->message);
    g_error_free(error);
    gst_message_unref(message);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(bus);
    gst_object_unref(pipeline);
}

/* --- Order -------------------------------------------------------------------------------------------------------- */

/* What came out of a pipeline's coxtonemap, seen by a probe. */
struct seen {
    GMutex lock;
    GstClockTime last; /* PTS */
    GstVideoInfo info; /* of the newest caps */
    guint frames, caps, ends, segments;
    guint wrong_order, wrong_caps, after_end;
    bool ended;
};

static void see_event(struct seen *seen, GstEvent *event)
{
    GstCaps *caps;
    switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_FLUSH_STOP:
    case GST_EVENT_SEGMENT:
        seen->last = GST_CLOCK_TIME_NONE;
        seen->ended = false;
        seen->segments += GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT;
        break;
    case GST_EVENT_CAPS:
        gst_event_parse_caps(event, &caps);
        gst_video_info_from_caps(&seen->info, caps);
        seen->caps++;
        break;
    case GST_EVENT_EOS:
        seen->ends++;
        seen->ended = true;
        break;
    default:
        break;
    }
}

static GstPadProbeReturn see(GstPad *pad, GstPadProbeInfo *info, gpointer user)
{
    struct seen *seen = user;
    (void)pad;
    g_mutex_lock(&seen->lock);
    if (GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_BUFFER) {
        const GstVideoMeta *meta = gst_buffer_get_video_meta(GST_PAD_PROBE_INFO_BUFFER(info));
        const GstClockTime pts = GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info));
        seen->wrong_order += GST_CLOCK_TIME_IS_VALID(seen->last) && pts <= seen->last;
        if (meta)
            seen->wrong_caps += meta->width != (guint)GST_VIDEO_INFO_WIDTH(&seen->info) ||
                                meta->height != (guint)GST_VIDEO_INFO_HEIGHT(&seen->info) ||
                                meta->format != GST_VIDEO_INFO_FORMAT(&seen->info);
        else
            seen->wrong_caps += gst_buffer_get_size(GST_PAD_PROBE_INFO_BUFFER(info)) != seen->info.size;
        seen->after_end += seen->ended;
        seen->last = pts;
        seen->frames++;
    } else {
        see_event(seen, GST_PAD_PROBE_INFO_EVENT(info));
    }
    g_mutex_unlock(&seen->lock);
    return GST_PAD_PROBE_OK;
}

static GstElement *watched(const char *text, struct seen *seen)
{
    GError *error = NULL;
    GstElement *pipeline = gst_parse_launch(text, &error);
    cr_assert_null(error, "%s", error ? error->message : "");
    GstElement *element = gst_bin_get_by_name(GST_BIN(pipeline), "map");
    GstPad *pad = gst_element_get_static_pad(element, "src");
    *seen = (struct seen){.last = GST_CLOCK_TIME_NONE};
    g_mutex_init(&seen->lock);
    gst_pad_add_probe(pad,
                      GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_EVENT_FLUSH,
                      see, seen, NULL);
    gst_object_unref(pad);
    gst_object_unref(element);
    return pipeline;
}

static void in_order(const struct seen *seen)
{
    cr_expect_eq(seen->wrong_order, 0);
    cr_expect_eq(seen->wrong_caps, 0);
    cr_expect_eq(seen->after_end, 0);
}

/* Wait for a message, which is no error. */
static void await(GstElement *pipeline, GstMessageType type)
{
    GstBus *bus = gst_element_get_bus(pipeline);
    GstMessage *message = gst_bus_timed_pop_filtered(bus, GST_CLOCK_TIME_NONE, type | GST_MESSAGE_ERROR);
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        GError *error = NULL;
        gst_message_parse_error(message, &error, NULL);
        cr_assert_fail("%s", error->message);
    }
    gst_message_unref(message);
    gst_object_unref(bus);
}

static void close_pipeline(GstElement *pipeline, struct seen *seen)
{
    cr_expect_eq(gst_element_set_state(pipeline, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
    gst_object_unref(pipeline);
    g_mutex_clear(&seen->lock);
}

#define MAP " ! coxtonemap name=map devices=cpu policy=static cache-dir=\"\" "

Test(gstreamer, the_end_comes_after_all_frames)
{
    struct seen seen;
    static const char *const ways[] = {"", "peak=1000 in-flight=5", "lookahead=true"};
    for (guint i = 0; i < G_N_ELEMENTS(ways); i++) {
        char *text = g_strdup_printf("videotestsrc num-buffers=40 ! " RAW "format=I420_10LE," SMALL "," PQ MAP
                                     "%s ! fakesink",
                                     ways[i]);
        GstElement *pipeline = watched(text, &seen);
        gst_element_set_state(pipeline, GST_STATE_PLAYING);
        await(pipeline, GST_MESSAGE_EOS);
        in_order(&seen);
        cr_expect_eq(seen.frames, 40, "%s: %u frames", ways[i], seen.frames);
        cr_expect_eq(seen.ends, 1);
        close_pipeline(pipeline, &seen);
        g_free(text);
    }
}

Test(gstreamer, ends_when_downstream_wants_no_more)
{
    GstElement *pipeline =
        gst_parse_launch("videotestsrc num-buffers=50 ! " RAW "format=P010_10LE," SMALL "," PQ
                         " ! coxtonemap devices=cpu cache-dir=\"\" ! identity eos-after=5 ! fakesink",
                         NULL);
    cr_assert_not_null(pipeline);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    await(pipeline, GST_MESSAGE_EOS);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
}

Test(gstreamer, is_sought_through_two_hundred_times)
{
    struct seen seen;
    GstElement *pipeline = watched("videotestsrc num-buffers=1000000 ! " RAW "format=I420_10LE," SMALL "," PQ MAP
                                   "peak=1000 in-flight=4 ! queue max-size-buffers=2 ! fakesink",
                                   &seen);
    GRand *random = g_rand_new_with_seed(1);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    await(pipeline, GST_MESSAGE_ASYNC_DONE);
    for (guint n = 0; n < 200; n++) {
        const GstClockTime to = (GstClockTime)g_rand_int_range(random, 0, 3000) * GST_SECOND;
        cr_assert(gst_element_seek_simple(pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, (gint64)to));
        if (n % 3 == 0)
            await(pipeline, GST_MESSAGE_ASYNC_DONE);
        else
            g_usleep((gulong)g_rand_int_range(random, 0, 8000));
    }
    in_order(&seen);
    cr_expect_gt(seen.frames, 60);
    cr_expect_gt(seen.segments, 100);
    g_rand_free(random);
    close_pipeline(pipeline, &seen);
}

/* A source may have a frame of the old caps on its way when its filter changes, and ends with "not negotiated" then: it
 * begins again. Any other error is the element's. */
static void restart_after_source(GstElement *pipeline)
{
    GstBus *bus = gst_element_get_bus(pipeline);
    GstMessage *message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
    if (message) {
        cr_assert(g_str_has_prefix(GST_OBJECT_NAME(GST_MESSAGE_SRC(message)), "videotestsrc"), "%s failed",
                  GST_OBJECT_NAME(GST_MESSAGE_SRC(message)));
        gst_message_unref(message);
        gst_element_set_state(pipeline, GST_STATE_READY);
        gst_element_set_state(pipeline, GST_STATE_PLAYING);
    }
    gst_object_unref(bus);
}

Test(gstreamer, caps_change_between_the_right_frames)
{
    struct seen seen;
    static const char *const kinds[] = {"format=I420_10LE,width=64,height=48,framerate=25/1," PQ,
                                        "format=P010_10LE,width=64,height=48,framerate=25/1," PQ,
                                        "format=I420_10LE,width=96,height=64,framerate=25/1," PQ,
                                        "format=I420_10LE,width=64,height=48,framerate=25/1,colorimetry=bt2100-hlg",
                                        "format=I420,width=64,height=48,framerate=25/1,colorimetry=bt709"};
    GstElement *pipeline =
        watched("videotestsrc num-buffers=1000000 ! capsfilter name=kind caps=video/x-raw,format=I420_10LE," SMALL
                "," PQ MAP "peak=1000 in-flight=4 ! fakesink async=false",
                &seen);
    GstElement *filter = gst_bin_get_by_name(GST_BIN(pipeline), "kind");
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    for (guint i = 0; i < 2000 && !seen.frames; i++) /* the sink never waits: it is the element that is tried */
        g_usleep(10000);
    for (guint n = 0; n < 50; n++) {
        char *text = g_strdup_printf(RAW "%s", kinds[n * 7 % G_N_ELEMENTS(kinds)]);
        GstCaps *caps = gst_caps_from_string(text);
        g_object_set(filter, "caps", caps, NULL);
        gst_caps_unref(caps);
        g_free(text);
        if (n % 10 == 9)
            cr_assert(gst_element_seek_simple(pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, 0));
        const guint before = seen.frames;
        for (guint i = 0; i < 2000 && seen.frames < before + 3; i++) {
            restart_after_source(pipeline);
            g_usleep(10000);
        }
    }
    in_order(&seen);
    cr_expect_gt(seen.caps, 20, "%u", seen.caps);
    gst_object_unref(filter);
    close_pipeline(pipeline, &seen);
}

Test(gstreamer, goes_on_after_a_flush_without_a_beginning)
{
    GstHarness *h = open_harness("peak=1000 in-flight=4", IN_10, OUT_8);
    GstVideoInfo info;
    GstSegment segment;
    info_of(IN_10, &info);
    gst_segment_init(&segment, GST_FORMAT_TIME);
    for (guint n = 0; n < 20; n++) {
        for (guint i = 0; i < 3; i++)
            cr_assert_eq(gst_harness_push(h, make_frame(NULL, &info, n)), GST_FLOW_OK);
        gst_harness_push_event(h, gst_event_new_flush_stop(TRUE));
        gst_harness_push_event(h, gst_event_new_segment(&segment));
    }
    gst_harness_push_event(h, gst_event_new_eos());
    gst_harness_teardown(h);
}

Test(gstreamer, goes_on_when_it_is_linked_again)
{
    GstHarness *h = gst_harness_new_with_padnames("coxtonemap", "sink", NULL);
    GstElement *element = h->element, *sink = gst_element_factory_make("fakesink", NULL);
    GstPad *source = gst_element_get_static_pad(element, "src"), *pad = gst_element_get_static_pad(sink, "sink");
    GstVideoInfo info;
    guint got = 0;
    info_of(IN_10, &info);
    gst_util_set_object_arg(G_OBJECT(element), "devices", "cpu");
    gst_util_set_object_arg(G_OBJECT(element), "cache-dir", "");
    g_object_set(sink, "async", FALSE, NULL);
    gst_object_ref_sink(sink);
    gst_element_set_state(sink, GST_STATE_PLAYING);
    cr_assert_eq(gst_pad_link(source, pad), GST_PAD_LINK_OK);
    gst_harness_set_src_caps_str(h, IN_10);
    for (guint n = 0; n < 40; n++) {
        if (n == 10)
            gst_pad_unlink(source, pad);
        if (n == 20)
            cr_assert_eq(gst_pad_link(source, pad), GST_PAD_LINK_OK);
        const GstFlowReturn flow = gst_harness_push(h, make_frame(NULL, &info, n));
        cr_expect(flow == GST_FLOW_OK || (n >= 10 && flow == GST_FLOW_NOT_LINKED), "frame %u: %s", n,
                  gst_flow_get_name(flow));
        got += n >= 20 && flow == GST_FLOW_OK;
    }
    cr_expect_gt(got, 15, "%u", got);
    gst_harness_push_event(h, gst_event_new_eos());
    gst_pad_unlink(source, pad);
    gst_element_set_state(sink, GST_STATE_NULL);
    gst_object_unref(pad);
    gst_object_unref(source);
    gst_object_unref(sink);
    gst_harness_teardown(h);
}

/* Who hears of a thread that begins may ask, and change what he likes. */
static GstBusSyncReply ask(GstBus *bus, GstMessage *message, gpointer element)
{
    (void)bus;
    GstStructure *stats = NULL;
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_STREAM_STATUS) {
        g_object_get(element, "stats", &stats, NULL);
        g_object_set(element, "exposure", 1.0, NULL);
        gst_clear_structure(&stats);
    }
    gst_message_unref(message);
    return GST_BUS_DROP;
}

Test(gstreamer, may_be_asked_when_its_task_begins)
{
    GstHarness *h = open_harness("", IN_10, OUT_8);
    GstElement *element = gst_harness_find_element(h, "coxtonemap");
    GstBus *bus = gst_bus_new();
    GstVideoInfo info;
    info_of(IN_10, &info);
    gst_bus_set_sync_handler(bus, ask, element, NULL);
    gst_element_set_bus(element, bus);
    cr_assert_eq(gst_harness_push(h, make_frame(NULL, &info, 0)), GST_FLOW_OK);
    gst_buffer_unref(gst_harness_pull(h));
    gst_element_set_bus(element, NULL);
    gst_bus_set_sync_handler(bus, NULL, NULL, NULL);
    gst_object_unref(bus);
    gst_object_unref(element);
    gst_harness_teardown(h);
}

Test(gstreamer, starts_and_stops_under_load)
{
    struct seen seen;
    GstElement *pipeline = watched("videotestsrc num-buffers=1000000 ! " RAW "format=I420_10LE," SMALL "," PQ MAP
                                   "peak=1000 in-flight=4 ! fakesink",
                                   &seen);
    for (guint n = 0; n < 30; n++) {
        static const GstState states[] = {GST_STATE_NULL, GST_STATE_READY, GST_STATE_PAUSED};
        gst_element_set_state(pipeline, GST_STATE_PLAYING);
        g_usleep(n * 1000);
        gst_element_set_state(pipeline, states[n % G_N_ELEMENTS(states)]);
    }
    close_pipeline(pipeline, &seen);
}

/* --- coxconvolve -------------------------------------------------------------------------------------------------- */

Test(gstreamer, convolves_each_plane)
{
    GstHarness *h = gst_harness_new_parse("coxconvolve weights=\"0 0 0 1 0 1 0 0 0\" shift=1");
    const char *caps = RAW "format=GRAY8,width=64,height=8,framerate=25/1";
    GstMapInfo map;
    gst_harness_set_src_caps_str(h, caps);
    GstBuffer *in = gst_buffer_new_allocate(NULL, 64 * 8, NULL);
    gst_buffer_map(in, &map, GST_MAP_WRITE);
    for (guint i = 0; i < 64 * 8; i++)
        map.data[i] = (guint8)(i % 64 * 2);
    gst_buffer_unmap(in, &map);
    cr_assert_eq(gst_harness_push(h, in), GST_FLOW_OK);
    GstBuffer *out = gst_harness_pull(h);
    gst_buffer_map(out, &map, GST_MAP_READ);
    for (guint x = 1; x < 63; x++)
        cr_expect_eq(map.data[3 * 64 + x], x * 2, "column %u", x);
    gst_buffer_unmap(out, &map);
    gst_buffer_unref(out);
    gst_harness_teardown(h);
}
