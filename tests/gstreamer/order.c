/* The order of coxtonemap's frames, events and messages. Seeks, changes and ends of streams must not hang.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

/* --- Frames, events and messages ---------------------------------------------------------------------------------- */

Test(gstreamer, sdr_passes_untouched)
{
    BENCH(bench, "", RAW "format=I420," SMALL ",colorimetry=bt709", "video/x-raw");
    g_autoptr(GstBuffer) buffer = gst_buffer_new_allocate(NULL, bench.in.size, NULL);
    bench_push(&bench, gst_buffer_ref(buffer));
    g_autoptr(GstBuffer) out = gst_harness_pull(bench.h);
    cr_expect_eq(out, buffer);
    cr_expect_eq(bench_stat(&bench, "frames"), 0);
}

Test(gstreamer, a_stream_may_turn_from_hdr_to_sdr_and_back)
{
    static const char *const kinds[] = {IN_10, IN_SDR};
    BENCH(bench, "", IN_10, "video/x-raw");
    for (guint n = 0; n < 12; n++) {
        gst_harness_set_src_caps_str(bench.h, kinds[n / 2 % 2]);
        bench_push(&bench, make_frame(NULL, &bench.in, n));
    }
    gst_harness_push_event(bench.h, gst_event_new_eos());
    for (guint n = 0; n < 12; n++) {
        g_autoptr(GstBuffer) out = gst_harness_pull(bench.h);
        cr_assert_not_null(out);
        cr_expect_eq(GST_BUFFER_PTS(out), n * FRAME_MS * GST_MSECOND, "frame %u", n);
    }
    cr_expect_eq(bench_stat(&bench, "frames"), 6);
}

Test(gstreamer, reports_the_latency_of_the_frames_in_flight)
{
    BENCH(bench, "in-flight=3", IN_10, OUT_8);
    cr_expect_eq(gst_harness_query_latency(bench.h), 120 * GST_MSECOND);
}

Test(gstreamer, a_new_rate_is_a_new_latency)
{
    BENCH(bench, "in-flight=2", IN_10, "video/x-raw");
    gst_bus_set_flushing(bench.bus, TRUE);
    gst_bus_set_flushing(bench.bus, FALSE);
    gst_harness_set_src_caps_str(bench.h, RAW "format=I420_10LE,width=330,height=180,framerate=50/1," PQ);
    bench_has_message(&bench, GST_MESSAGE_LATENCY);
    cr_expect_eq(gst_harness_query_latency(bench.h), 40 * GST_MSECOND);
}

Test(gstreamer, drops_what_comes_too_late_and_says_so)
{
    BENCH(bench, "", IN_10, OUT_8);
    bench_pass(&bench, 0);
    gst_harness_push_upstream_event(bench.h, gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 2.0, 100 * GST_MSECOND, 0));
    bench_push(&bench, make_frame(NULL, &bench.in, 1));
    bench_push(&bench, make_frame(NULL, &bench.in, 5));
    g_autoptr(GstBuffer) out = gst_harness_pull(bench.h);
    cr_expect_eq(GST_BUFFER_PTS(out), 200 * GST_MSECOND);
    cr_expect(GST_BUFFER_IS_DISCONT(out));
    cr_expect_eq(bench_stat(&bench, "frames-dropped"), 1);
    bench_has_message(&bench, GST_MESSAGE_QOS);
}

static gint64 position_of(GstHarness *h)
{
    gint64 position = -1;
    g_autoptr(GstPad) pad = gst_pad_get_peer(h->sinkpad);
    gst_pad_query_position(pad, GST_FORMAT_TIME, &position);
    return position;
}

Test(gstreamer, tells_how_far_it_is)
{
    BENCH(bench, "", IN_10, "video/x-raw");
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.start = 400 * GST_MSECOND;
    segment.time = 5 * GST_SECOND;
    gst_harness_push_event(bench.h, gst_event_new_segment(&segment));
    bench_pass(&bench, 15);
    cr_expect_eq(position_of(bench.h), 5240 * GST_MSECOND, "%" G_GINT64_FORMAT, position_of(bench.h));
    gst_harness_set_src_caps_str(bench.h, IN_SDR);
    bench_pass(&bench, 20);
    cr_expect_eq(position_of(bench.h), 840 * GST_MSECOND, "that passes: %" G_GINT64_FORMAT, position_of(bench.h));
}

/* An application that learns of a new thread may query the element and set properties. */
static GstBusSyncReply ask(GstBus *bus, GstMessage *message, gpointer element)
{
    (void)bus;
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_STREAM_STATUS) {
        g_autoptr(GstStructure) stats = NULL;
        g_object_get(element, "stats", &stats, NULL);
        g_object_set(element, "exposure", 1.0, NULL);
    }
    gst_message_unref(message);
    return GST_BUS_DROP;
}

Test(gstreamer, may_be_asked_when_its_task_begins)
{
    BENCH(bench, "", IN_10, OUT_8);
    gst_bus_set_sync_handler(bench.bus, ask, bench.element, NULL);
    bench_pass(&bench, 0);
    gst_element_set_bus(bench.element, NULL);
    gst_bus_set_sync_handler(bench.bus, NULL, NULL, NULL);
}

Test(gstreamer, goes_on_after_a_flush_without_a_beginning)
{
    BENCH(bench, "peak=1000 in-flight=4", IN_10, OUT_8);
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    for (guint n = 0; n < 20; n++) {
        for (guint i = 0; i < 3; i++)
            bench_push(&bench, make_frame(NULL, &bench.in, n));
        gst_harness_push_event(bench.h, gst_event_new_flush_stop(TRUE));
        gst_harness_push_event(bench.h, gst_event_new_segment(&segment));
    }
    gst_harness_push_event(bench.h, gst_event_new_eos());
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

/* --- Pipelines ---------------------------------------------------------------------------------------------------- */

/* The output of a pipeline's coxtonemap, observed by a probe. */
struct seen {
    GstElement *pipeline;
    GMutex lock;
    GstClockTime last; /* PTS */
    GstVideoInfo info; /* of the latest caps */
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

static void watch(struct seen *seen, const char *text)
{
    g_autoptr(GError) error = NULL;
    *seen = (struct seen){.pipeline = gst_parse_launch(text, &error), .last = GST_CLOCK_TIME_NONE};
    cr_assert_null(error, "%s", error ? error->message : "");
    g_autoptr(GstElement) element = gst_bin_get_by_name(GST_BIN(seen->pipeline), "map");
    g_autoptr(GstPad) pad = gst_element_get_static_pad(element, "src");
    g_mutex_init(&seen->lock);
    gst_pad_add_probe(pad,
                      GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_EVENT_FLUSH,
                      see, seen, NULL);
}

static void unwatch(struct seen *seen)
{
    cr_expect_eq(gst_element_set_state(seen->pipeline, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
    gst_object_unref(seen->pipeline);
    g_mutex_clear(&seen->lock);
}

#define WATCH(name, text)                               \
    __attribute__((cleanup(unwatch))) struct seen name; \
    watch(&(name), text)
#define SOURCE(format) "videotestsrc num-buffers=" format " ! " RAW "format=I420_10LE," SMALL "," PQ
#define MAP " ! coxtonemap name=map devices=cpu policy=static cache-dir=\"\" "

/* The current value of a counter. */
static guint seen_now(struct seen *seen, const guint *counter)
{
    g_mutex_lock(&seen->lock);
    const guint count = *counter;
    g_mutex_unlock(&seen->lock);
    return count;
}

/* Sleeps for a moment. Returns false after a minute or two in total. */
static bool moment_passes(guint *moments)
{
    g_usleep(1000);
    return ++*moments < 120000;
}

static void in_order(const struct seen *seen)
{
    cr_expect_eq(seen->wrong_order, 0);
    cr_expect_eq(seen->wrong_caps, 0);
    cr_expect_eq(seen->after_end, 0);
}

/* The next message of this type, or the next error. */
static GstMessage *next_message(GstElement *pipeline, GstMessageType type)
{
    g_autoptr(GstBus) bus = gst_element_get_bus(pipeline);
    GstMessage *message = gst_bus_timed_pop_filtered(bus, 300 * GST_SECOND, type | GST_MESSAGE_ERROR);
    cr_assert_not_null(message, "no message within five minutes: %s", gst_message_type_get_name(type));
    return message;
}

static void await(GstElement *pipeline, GstMessageType type)
{
    g_autoptr(GstMessage) message = next_message(pipeline, type);
    g_autoptr(GError) error = NULL;
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR)
        gst_message_parse_error(message, &error, NULL);
    cr_assert_null(error, "%s", error ? error->message : "");
}

Test(gstreamer, a_device_that_is_not_there_is_an_error)
{
    g_autoptr(GstElement) pipeline = gst_parse_launch("videotestsrc ! " RAW "format=I420_10LE," PQ
                                                      " ! coxtonemap devices=no-such-device ! fakesink",
                                                      NULL);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    g_autoptr(GstMessage) message = next_message(pipeline, GST_MESSAGE_ERROR);
    g_autoptr(GError) error = NULL;
    gst_message_parse_error(message, &error, NULL);
    cr_expect(g_str_has_prefix(error->message, "No device: "), "%s", error->message);
    gst_element_set_state(pipeline, GST_STATE_NULL);
}

Test(gstreamer, the_end_comes_after_all_frames)
{
    static const char *const ways[] = {"", "peak=1000 in-flight=5", "lookahead=true"};
    for (guint i = 0; i < G_N_ELEMENTS(ways); i++) {
        g_autofree char *text = g_strdup_printf(SOURCE("40") MAP "%s ! fakesink", ways[i]);
        WATCH(seen, text);
        gst_element_set_state(seen.pipeline, GST_STATE_PLAYING);
        await(seen.pipeline, GST_MESSAGE_EOS);
        in_order(&seen);
        cr_expect_eq(seen.frames, 40, "%s: %u frames", ways[i], seen.frames);
        cr_expect_eq(seen.ends, 1);
    }
}

Test(gstreamer, ends_when_downstream_wants_no_more)
{
    g_autoptr(GstElement)
        pipeline = gst_parse_launch("videotestsrc num-buffers=50 ! " RAW "format=P010_10LE," SMALL "," PQ
                                    " ! coxtonemap devices=cpu cache-dir=\"\" ! identity eos-after=5 ! fakesink",
                                    NULL);
    cr_assert_not_null(pipeline);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    await(pipeline, GST_MESSAGE_EOS);
    gst_element_set_state(pipeline, GST_STATE_NULL);
}

/* After two of three seeks, wait for a frame. After the third, wait only a moment. */
Test(gstreamer, is_sought_through_two_hundred_times)
{
    WATCH(seen, SOURCE("1000000") MAP "peak=1000 in-flight=4 ! queue max-size-buffers=2 ! fakesink");
    GRand *random = g_rand_new_with_seed(1);
    gst_element_set_state(seen.pipeline, GST_STATE_PLAYING);
    await(seen.pipeline, GST_MESSAGE_ASYNC_DONE);
    for (guint n = 0; n < 200; n++) {
        const GstClockTime to = (GstClockTime)g_rand_int_range(random, 0, 3000) * GST_SECOND;
        const guint segments = seen_now(&seen, &seen.segments), frames = seen_now(&seen, &seen.frames);
        guint moments = 0;
        cr_assert(gst_element_seek_simple(seen.pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, (gint64)to));
        if (n % 3 == 2)
            g_usleep((gulong)g_rand_int_range(random, 0, 8000));
        while (n % 3 < 2 && (seen_now(&seen, &seen.segments) == segments || seen_now(&seen, &seen.frames) == frames))
            cr_assert(moment_passes(&moments), "no frame after seek %u", n);
    }
    in_order(&seen);
    cr_expect_gt(seen.frames, 60);
    cr_expect_gt(seen.segments, 100);
    g_rand_free(random);
}

/* When the caps filter changes, the source may be sending a frame with the old caps. It then ends with "not
 * negotiated", and is restarted here. Any other error is the element's. */
static void restart_after_source(GstElement *pipeline)
{
    g_autoptr(GstBus) bus = gst_element_get_bus(pipeline);
    g_autoptr(GstMessage) message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
    if (!message)
        return;
    const char *whose = GST_OBJECT_NAME(GST_MESSAGE_SRC(message));
    cr_assert(g_str_has_prefix(whose, "videotestsrc"), "%s failed", whose);
    gst_element_set_state(pipeline, GST_STATE_READY);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
}

static void await_frames(struct seen *seen, guint count)
{
    const guint before = seen_now(seen, &seen->frames);
    guint moments = 0;
    while (seen_now(seen, &seen->frames) < before + count) {
        restart_after_source(seen->pipeline);
        cr_assert(moment_passes(&moments), "no frame after %u", before);
    }
}

/* The sink does not wait for anything, since only the element is tested. */
Test(gstreamer, caps_change_between_the_right_frames)
{
    static const char *const kinds[] = {RAW "format=I420_10LE," SMALL "," PQ, RAW "format=P010_10LE," SMALL "," PQ,
                                        RAW "format=I420_10LE,width=96,height=64,framerate=25/1," PQ,
                                        RAW "format=I420_10LE," SMALL ",colorimetry=bt2100-hlg",
                                        RAW "format=I420," SMALL ",colorimetry=bt709"};
    WATCH(seen, "videotestsrc num-buffers=1000000 ! capsfilter name=kind caps=" RAW "format=I420_10LE," SMALL "," PQ MAP
                "peak=1000 in-flight=4 ! fakesink async=false");
    g_autoptr(GstElement) filter = gst_bin_get_by_name(GST_BIN(seen.pipeline), "kind");
    gst_element_set_state(seen.pipeline, GST_STATE_PLAYING);
    await_frames(&seen, 1);
    for (guint n = 0; n < 50; n++) {
        gst_util_set_object_arg(G_OBJECT(filter), "caps", kinds[n * 7 % G_N_ELEMENTS(kinds)]);
        if (n % 10 == 9)
            cr_assert(gst_element_seek_simple(seen.pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, 0));
        await_frames(&seen, 3);
    }
    in_order(&seen);
    cr_expect_gt(seen.caps, 20, "%u", seen.caps);
}

Test(gstreamer, starts_and_stops_under_load)
{
    static const GstState states[] = {GST_STATE_NULL, GST_STATE_READY, GST_STATE_PAUSED};
    WATCH(seen, SOURCE("1000000") MAP "peak=1000 in-flight=4 ! fakesink");
    for (guint n = 0; n < 30; n++) {
        gst_element_set_state(seen.pipeline, GST_STATE_PLAYING);
        g_usleep(n * 1000);
        gst_element_set_state(seen.pipeline, states[n % G_N_ELEMENTS(states)]);
    }
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
