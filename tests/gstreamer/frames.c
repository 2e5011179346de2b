/* The memory of frames, the layouts of output frames, and the effect of coxtonemap's properties on them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

/* --- Memory ------------------------------------------------------------------------------------------------------- */

/* Whether the strides are exactly those of the alignment: a decoder that has started with such strides accepts no
 * pool with others. */
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

Test(gstreamer, frames_in_pools_are_not_copied_and_come_out_the_same)
{
    static const GstVideoAlignment aligns[] = {
        {0},
        {.padding_bottom = 17, .padding_right = 38, .stride_align = {63, 63, 63, 63}},
        {.padding_top = 4, .padding_left = 32}};
    g_autoptr(GBytes) first = NULL;
    for (guint i = 0; i < G_N_ELEMENTS(aligns); i++) {
        BENCH(bench, "", IN_10, OUT_8);
        POOL(pool, &bench, IN_10, &aligns[i]);
        for (guint n = 0; n < 5; n++) {
            GstBuffer *buffer = pool_frame(pool);
            cr_assert_eq(gst_buffer_n_memory(buffer), 3, "a plane's memory is its own");
            cr_expect(i == 0 || has_strides(buffer, &bench.in, aligns[i]), "alignment %u: other strides", i);
            bench_push(&bench, make_frame(buffer, &bench.in, 1));
            g_autoptr(GBytes) bytes = bench_pull(&bench);
            if (!first)
                first = g_bytes_ref(bytes);
            cr_expect(n == 0 || difference(first, bytes) == 0, "alignment %u", i);
        }
        cr_expect_eq(bench_stat(&bench, "frames"), 5);
        cr_expect_eq(bench_stat(&bench, "bytes-copied-in"), 0);
        cr_expect_eq(bench_stat(&bench, "bytes-copied-out"), 0);
    }
}

/* Checks that each plane is complete and in separate memory. */
static void check_planes(GstBuffer *buffer, const GstVideoInfo *info, const GstVideoAlignment *align, const char *what)
{
    const GstVideoMeta *meta = gst_buffer_get_video_meta(buffer);
    for (guint p = 0; p < meta->n_planes; p++) {
        guint first, count;
        gsize skip;
        const gsize rows = (gsize)GST_VIDEO_FORMAT_INFO_SCALE_HEIGHT(info->finfo, p, info->height);
        cr_assert(gst_buffer_find_memory(buffer, meta->offset[p], 1, &first, &count, &skip));
        cr_expect_eq(first, p, "%s: plane %u is in memory %u", what, p, first);
        cr_expect_leq(skip + rows * (gsize)meta->stride[p],
                      gst_memory_get_sizes(gst_buffer_peek_memory(buffer, first), NULL, NULL) + align->padding_left * 2,
                      "%s: plane %u", what, p);
    }
}

/* Pushes the same frame in the pool's memory and in other memory, and checks that the results are equal. */
static void check_both_memories(struct bench *bench, GstBuffer *own, const char *what)
{
    bench_push(bench, own);
    bench_push(bench, make_frame(NULL, &bench->in, 1));
    g_autoptr(GBytes) a = bench_pull(bench);
    g_autoptr(GBytes) b = bench_pull(bench);
    cr_expect_eq(difference(a, b), 0, "%s: samples differ by up to %u", what, difference(a, b));
}

Test(gstreamer, odd_sizes_fit_their_pools)
{
    static const GstVideoAlignment aligns[] = {{0}, {.padding_top = 3, .padding_left = 5, .padding_bottom = 7}};
    static const char *const formats[] = {"I420_10LE", "I422_10LE", "Y444_10LE", "P010_10LE"};
    static const int sizes[][2] = {{320, 241}, {321, 240}, {31, 17}, {320, 1}, {2, 3}};
    for (guint i = 0; i < G_N_ELEMENTS(formats) * G_N_ELEMENTS(sizes) * G_N_ELEMENTS(aligns); i++) {
        const int *size = sizes[i / 4 % 5];
        const GstVideoAlignment *align = &aligns[i / 20];
        g_autofree char *sized = g_strdup_printf("width=%d,height=%d,framerate=25/1", size[0], size[1]);
        g_autofree char *in = g_strdup_printf(RAW "format=%s,%s," PQ, formats[i % 4], sized);
        g_autofree char *out = g_strdup_printf(RAW "format=I420,%s,colorimetry=bt709", sized);
        BENCH(bench, "peak=1000", in, out);
        POOL(pool, &bench, in, align);
        GstBuffer *buffer = pool_frame(pool);
        check_planes(buffer, &bench.in, align, in);
        check_both_memories(&bench, make_frame(buffer, &bench.in, 1), in);
    }
}

Test(gstreamer, frames_in_other_memory_come_out_the_same)
{
    BENCH(bench, "peak=1000", IN_10, OUT_8);
    POOL(pool, &bench, IN_10, NULL);
    check_both_memories(&bench, make_frame(pool_frame(pool), &bench.in, 1), IN_10);
}

/* Like a decoder of gst-libav: a frame is passed on in another GstBuffer while its first buffer is mapped. */
Test(gstreamer, memory_that_stays_mapped_is_shared_and_used_again)
{
    BENCH(bench, "", IN_10, OUT_8);
    POOL(pool, &bench, IN_10, NULL);
    GstVideoFrame decoder, writer;
    gpointer seen[6] = {NULL};
    guint places = 0;
    for (guint n = 0; n < G_N_ELEMENTS(seen); n++) {
        GstBuffer *buffer = make_frame(pool_frame(pool), &bench.in, n);
        cr_assert(gst_video_frame_map(&decoder, &bench.in, buffer, GST_MAP_READWRITE));
        g_autoptr(GstBuffer) other = gst_buffer_make_writable(buffer);
        cr_assert_neq(other, buffer, "the map holds a reference");
        for (guint p = 0; p < 3; p++)
            cr_expect_eq(gst_buffer_peek_memory(other, p), gst_buffer_peek_memory(decoder.buffer, p), "plane %u", p);
        seen[n] = decoder.data[0];
        guint before = 0;
        while (seen[before] != seen[n])
            before++;
        places += before == n;

        /* A writer of the second buffer gets separate memory. */
        if (n == 2) {
            const guint8 sample = *(guint8 *)decoder.data[0];
            cr_assert(gst_video_frame_map(&writer, &bench.in, other, GST_MAP_WRITE));
            *(guint8 *)writer.data[0] = (guint8)~sample;
            cr_expect_eq(*(guint8 *)decoder.data[0], sample);
            gst_video_frame_unmap(&writer);
        }
        gst_video_frame_unmap(&decoder); /* the pool discards the first buffer, whose memory is still read */
    }
    cr_expect_leq(places, 2, "%u places for %zu frames, of a pool that began with 2", places, G_N_ELEMENTS(seen));
}

/* --- Crops -------------------------------------------------------------------------------------------------------- */

static GstBuffer *cropped(GstBuffer *frame, const guint part[4])
{
    gst_buffer_add_video_meta(frame, 0, GST_VIDEO_FORMAT_I420_10LE, 330, 180);
    GstVideoCropMeta *crop = gst_buffer_add_video_crop_meta(frame);
    crop->x = part[0];
    crop->y = part[1];
    crop->width = part[2];
    crop->height = part[3];
    return frame;
}

Test(gstreamer, a_crop_outside_of_the_frame_is_cut_or_ignored)
{
    static const guint crops[][4] = {{0, 4000000, 64, 64}, {200, 100, 300, 300}, {0, 0, 0, 0}, {4000000000u, 0, 8, 8}};
    BENCH(bench, "peak=1000", IN_10, OUT_8);
    for (guint i = 0; i < G_N_ELEMENTS(crops); i++) {
        bench_push(&bench, cropped(make_frame(NULL, &bench.in, i), crops[i]));
        gst_buffer_unref(gst_harness_pull(bench.h));
    }
}

Test(gstreamer, maps_the_part_that_a_crop_names)
{
    static const guint part[4] = {40, 22, 128, 96};
    BENCH(bench, "peak=1000", RAW "format=I420_10LE,width=128,height=96,framerate=25/1," PQ,
          RAW "format=I420,width=128,height=96,framerate=25/1,colorimetry=bt709");
    GstVideoInfo info;
    GstVideoFrame from, to;
    info_of(IN_10, &info);
    GstBuffer *large = make_frame(NULL, &info, 2), *cut = gst_buffer_new_allocate(NULL, bench.in.size, NULL);
    cr_assert(gst_video_frame_map(&from, &info, large, GST_MAP_READ));
    cr_assert(gst_video_frame_map(&to, &bench.in, cut, GST_MAP_WRITE));
    for (guint c = 0; c < 3; c++) {
        const guint x = part[0] >> (c > 0), y = part[1] >> (c > 0);
        for (gint row = 0; row < GST_VIDEO_FRAME_COMP_HEIGHT(&to, c); row++)
            memcpy((guint8 *)to.data[c] + row * GST_VIDEO_FRAME_COMP_STRIDE(&to, c),
                   (guint8 *)from.data[c] + (row + (gint)y) * GST_VIDEO_FRAME_COMP_STRIDE(&from, c) + 2 * x,
                   2 * (gsize)GST_VIDEO_FRAME_COMP_WIDTH(&to, c));
    }
    gst_video_frame_unmap(&from);
    gst_video_frame_unmap(&to);
    GST_BUFFER_PTS(cut) = 0;

    bench_push(&bench, cropped(large, part));
    bench_push(&bench, cut);
    GstBuffer *out = gst_harness_pull(bench.h);
    cr_expect_null(gst_buffer_get_video_crop_meta(out));
    g_autoptr(GBytes) a = samples(out, bench.out);
    g_autoptr(GBytes) b = bench_pull(&bench);
    cr_expect_eq(difference(a, b), 0);
}

/* --- Layouts ------------------------------------------------------------------------------------------------------ */

/* The frame, mapped by coxtonemap. */
static GBytes *mapped(GstBuffer *buffer, const char *in, const char *out)
{
    BENCH(bench, "peak=1000 dither=none", in, out);
    bench_push(&bench, buffer);
    return bench_pull(&bench);
}

/* The frame, converted to another format by GStreamer. */
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

Test(gstreamer, each_layout_of_a_frame_comes_out_alike)
{
    static const struct {
        const char *in, *same, *out;
        guint apart; /* largest difference of samples */
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
        info_of(table[i].in, &info);
        GstBuffer *frame = make_frame(NULL, &info, i), *same = converted(frame, table[i].in, table[i].same);
        g_autoptr(GBytes) a = mapped(frame, table[i].in, table[i].out);
        g_autoptr(GBytes) b = mapped(same, table[i].same, table[i].out);
        cr_expect_leq(difference(a, b), table[i].apart, "%s: %u apart", table[i].same, difference(a, b));
    }
}

Test(gstreamer, pixels_come_out_in_the_order_that_is_wanted)
{
    static const struct {
        const char *format;
        guint order[3]; /* places of R, G, B */
    } table[] = {{"RGBx", {0, 1, 2}}, {"BGRA", {2, 1, 0}}, {"BGRx", {2, 1, 0}}};
    GstVideoInfo info;
    info_of(IN_10, &info);
    g_autoptr(GBytes) rgba = mapped(make_frame(NULL, &info, 1), IN_10, RAW "format=RGBA," SIZED "colorimetry=1:1:5:1");
    for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
        gsize count, same_count, unlike = 0;
        g_autofree char *out = g_strdup_printf(RAW "format=%s," SIZED "colorimetry=1:1:5:1", table[i].format);
        g_autoptr(GBytes) got = mapped(make_frame(NULL, &info, 1), IN_10, out);
        const guint8 *one = g_bytes_get_data(rgba, &count), *other = g_bytes_get_data(got, &same_count);
        cr_assert_eq(count, same_count);
        for (gsize n = 0; n < count; n += 4)
            for (guint c = 0; c < 3; c++)
                unlike += one[n + c] != other[n + table[i].order[c]];
        cr_expect_eq(unlike, 0, "%s", table[i].format);
    }
}

/* --- Properties --------------------------------------------------------------------------------------------------- */

Test(gstreamer, the_look_changes_from_one_frame_to_the_next)
{
    BENCH(bench, "peak=1000", IN_10, OUT_8);
    GBytes *bytes[3];
    for (guint n = 0; n < 3; n++) {
        g_object_set(bench.element, "exposure", n == 1 ? -2.0 : 0.0, NULL);
        bench_push(&bench, make_frame(NULL, &bench.in, 0));
        bytes[n] = bench_pull(&bench);
    }
    cr_expect_eq(difference(bytes[0], bytes[2]), 0);
    cr_expect_neq(difference(bytes[0], bytes[1]), 0);
    for (guint n = 0; n < 3; n++)
        g_bytes_unref(bytes[n]);
}

/* Tests each property at the ends of its range, in a film with automatic peak. */
Test(gstreamer, no_setting_within_its_range_ends_the_film)
{
    static const char *const names[] = {"peak",       "sdr-white", "exposure",  "desaturate",
                                        "gamut-knee", "detail",    "lookahead", "operator"};
    BENCH(bench, "", IN_10, OUT_8);
    guint frame = 0;
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        GParamSpec *spec = g_object_class_find_property(G_OBJECT_GET_CLASS(bench.element), names[i]);
        for (guint end = 0; end < 3; end++) {
            if (G_IS_PARAM_SPEC_DOUBLE(spec)) {
                const GParamSpecDouble *range = G_PARAM_SPEC_DOUBLE(spec);
                const double values[] = {range->minimum, range->maximum, i ? range->default_value : 1e-7};
                g_object_set(bench.element, names[i], values[end], NULL);
            } else {
                g_object_set(bench.element, names[i], (int)(end == 1), NULL);
            }
            for (guint n = 0; n < 3; n++)
                bench_pass(&bench, frame++);
        }
        g_object_set_property(G_OBJECT(bench.element), names[i], g_param_spec_get_default_value(spec));
    }
}

Test(gstreamer, the_local_operator_leaves_a_scaled_film_as_it_is)
{
    BENCH(bench, "", IN_10, OUT_SCALED);
    for (guint n = 0; n < 6; n++) {
        if (n == 2)
            gst_util_set_object_arg(G_OBJECT(bench.element), "operator", "local");
        if (n == 4) /* negotiates again */
            gst_harness_push_upstream_event(bench.h, gst_event_new_reconfigure());
        bench_pass(&bench, n);
    }
    bench_has_message(&bench, GST_MESSAGE_WARNING);
}

/* Sets a property while the devices are being opened: at the library's first log line. */
struct late {
    GstElement *element;
    const char *property, *value;
    guint lines;
};

static void set_late(GstDebugCategory *category, GstDebugLevel level, const gchar *file, const gchar *function,
                     gint line, GObject *object, GstDebugMessage *message, gpointer user)
{
    struct late *late = user;
    (void)level, (void)file, (void)function, (void)line, (void)object, (void)message;
    if (!g_strcmp0(gst_debug_category_get_name(category), "coxswain") && late->lines++ == 0)
        gst_util_set_object_arg(G_OBJECT(late->element), late->property, late->value);
}

static void open_and_set(struct bench *bench, const char *property, const char *value)
{
    struct late late = {.element = bench->element, .property = property, .value = value};
    gst_debug_remove_log_function(gst_debug_log_default);
    gst_debug_add_log_function(set_late, &late, NULL);
    gst_debug_set_active(TRUE);
    gst_debug_set_threshold_for_name("coxswain", GST_LEVEL_LOG);
    gst_harness_set_src_caps_str(bench->h, IN_10);
    gst_debug_remove_log_function(set_late);
    cr_assert_gt(late.lines, 0, "the library logs nothing while it opens devices");
}

Test(gstreamer, the_local_operator_comes_too_late_for_a_scaled_film_that_begins)
{
    BENCH(bench, NULL, IN_10, OUT_SCALED);
    open_and_set(&bench, "operator", "local");
    for (guint n = 0; n < 2; n++)
        bench_pass(&bench, n);
}

Test(gstreamer, a_property_set_while_the_devices_are_opened_counts)
{
    GBytes *bytes[2];
    for (guint late = 0; late < 2; late++) {
        BENCH(bench, late ? NULL : "exposure=-2", IN_10, OUT_8);
        if (late)
            open_and_set(&bench, "exposure", "-2");
        bench_push(&bench, make_frame(NULL, &bench.in, 0));
        bytes[late] = bench_pull(&bench);
    }
    cr_expect_eq(difference(bytes[0], bytes[1]), 0);
    g_bytes_unref(bytes[0]);
    g_bytes_unref(bytes[1]);
}
