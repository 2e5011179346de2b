/* Frames in DMA-BUFs and in memory of VA: which caps are taken, and that frames come out as those in system memory do.
 * The DMA-BUFs are memfds (support/dmabuf_audit.h): a touch outside of a map ends the test. Real memory of VA needs a
 * GPU, so the caps of that memory are tested with other memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "support/dmabuf_audit.h"
#include <gst/allocators/gstdmabuf.h>

#define DMABUF "video/x-raw(memory:DMABuf),"
#define VA "video/x-raw(memory:VAMemory),"
#define IN_P010 "format=P010_10LE," SIZED PQ
#define IN_DRM "format=DMA_DRM,drm-format=P010," SIZED PQ

/* --- Caps --------------------------------------------------------------------------------------------------------- */

Test(gstreamer, takes_memory_that_can_be_mapped)
{
    static const struct {
        const char *in, *out;
        bool works;
    } table[] = {
        {DMABUF IN_P010, RAW "format=NV12", true},
        {DMABUF IN_DRM, RAW "format=NV12", true},
        {VA IN_P010, RAW "format=NV12", true},
        {DMABUF "format=DMA_DRM,drm-format=(string)P010:0x0100000000000002," SIZED PQ, RAW "format=NV12", false},
        {DMABUF "format=DMA_DRM,drm-format=XR24," SIZED PQ, RAW "format=NV12", false},
        {"video/x-raw(memory:GLMemory)," IN_P010, RAW "format=NV12", false},
        {DMABUF IN_P010, DMABUF "format=NV12", false},                                 /* output is in system memory */
        {DMABUF "format=NV12," SIZED "colorimetry=bt709", DMABUF "format=NV12", true}, /* SDR passes */
        {VA "format=NV12," SIZED "colorimetry=bt709", RAW "format=NV12", false},
    };
    for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
        GstHarness *h = gst_harness_new("coxtonemap");
        gst_harness_set_sink_caps_str(h, table[i].out);
        g_autoptr(GstCaps) offered = gst_pad_peer_query_caps(h->srcpad, NULL);
        g_autoptr(GstCaps) in = gst_caps_from_string(table[i].in);
        cr_expect_eq(gst_caps_can_intersect(offered, in), table[i].works, "%s to %s", table[i].in, table[i].out);
        gst_harness_teardown(h);
    }
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

/* Where the planes of a frame are in its memory. */
struct place {
    gsize offset[GST_VIDEO_MAX_PLANES];
    gint stride[GST_VIDEO_MAX_PLANES];
};

static const struct place places[] = {
    {{0, 768 * 180}, {768, 768}},            /* as a decoder pads */
    {{52, 52 + 700 * 180 + 12}, {700, 664}}, /* odd places, pitches that differ */
    {{0, 660 * 180}, {660, 660}},            /* no padding */
};

static void set_places(GstBuffer *buffer, const GstVideoInfo *info, const struct place *place, GstVideoFormat format)
{
    gsize offset[GST_VIDEO_MAX_PLANES];
    gint stride[GST_VIDEO_MAX_PLANES];
    memcpy(offset, place->offset, sizeof offset);
    memcpy(stride, place->stride, sizeof stride);
    gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, format, (guint)info->width, (guint)info->height,
                                   2, offset, stride);
}

/* A frame in a DMA-BUF, watched. */
static GstBuffer *in_dmabuf(const GstVideoInfo *info, const struct place *place, guint seed, GstVideoFormat named)
{
    struct dmabuf *dmabuf = dmabuf_new(1 << 19, false);
    cr_assert_not_null(dmabuf);
    GstBuffer *painter = gst_buffer_new_wrapped_full(0, dmabuf->own, dmabuf->bytes, 0, dmabuf->bytes, NULL, NULL);
    set_places(painter, info, place, GST_VIDEO_INFO_FORMAT(info));
    make_frame(painter, info, seed);

    g_autoptr(GstAllocator) allocator = gst_dmabuf_allocator_new();
    GstMemory *memory = gst_dmabuf_allocator_alloc_with_flags(allocator, dup(dmabuf->fd), dmabuf->bytes,
                                                              GST_FD_MEMORY_FLAG_KEEP_MAPPED);
    GstMapInfo map;
    cr_assert(gst_memory_map(memory, &map, GST_MAP_READ));
    dmabuf_watch(dmabuf, map.data, map.size);
    gst_memory_unmap(memory, &map);

    GstBuffer *frame = gst_buffer_new();
    gst_buffer_append_memory(frame, memory);
    set_places(frame, info, place, named);
    gst_buffer_copy_into(frame, painter, GST_BUFFER_COPY_TIMESTAMPS, 0, (gsize)-1);
    gst_buffer_unref(painter);
    return frame;
}

static struct bench open_bench(const char *in)
{
    struct bench bench = bench_open(NULL, RAW IN_P010, RAW "format=NV12," SIZED "colorimetry=bt709");
    g_object_set(bench.element, "peak", 1000.0, NULL);
    gst_harness_set_src_caps_str(bench.h, in);
    return bench;
}

/* The frame of this seed, in system memory. */
static GBytes *expected(guint seed)
{
    __attribute__((cleanup(bench_close))) struct bench bench = open_bench(RAW IN_P010);
    bench_push(&bench, make_frame(NULL, &bench.in, seed));
    return bench_pull(&bench);
}

Test(gstreamer, frames_in_dmabufs_come_out_the_same_and_are_not_copied)
{
    static const struct {
        const char *caps;
        GstVideoFormat named; /* by the GstVideoMeta */
    } table[] = {{DMABUF IN_P010, GST_VIDEO_FORMAT_P010_10LE},
                 {DMABUF IN_DRM, GST_VIDEO_FORMAT_P010_10LE},
                 {DMABUF IN_DRM, GST_VIDEO_FORMAT_UNKNOWN},
                 {RAW IN_P010, GST_VIDEO_FORMAT_P010_10LE}};
    dmabufs.may_nest = true;
    for (guint i = 0; i < G_N_ELEMENTS(table) * G_N_ELEMENTS(places); i++) {
        const guint way = i / G_N_ELEMENTS(places);
        __attribute__((cleanup(bench_close))) struct bench bench = open_bench(table[way].caps);
        for (guint n = 0; n < 3; n++) {
            const struct place *place = &places[i % G_N_ELEMENTS(places)];
            g_autoptr(GBytes) wanted = expected(n);
            bench_push(&bench, in_dmabuf(&bench.in, place, n, table[way].named));
            g_autoptr(GBytes) got = bench_pull(&bench);
            cr_expect_eq(difference(wanted, got), 0, "way %u, place %u, frame %u", way, i % 3, n);
            cr_expect_str_empty(dmabufs_wrong(), "the frame is not mapped any more");
        }
        cr_expect_eq(bench_stat(&bench, "bytes-copied-in"), 0, "way %u, place %u", way, i % 3);
        for (guint d = 0; d < dmabufs.count; d++)
            cr_expect_eq(dmabufs.list[d].starts, dmabufs.list[d].ends);
        dmabufs_end();
    }
}

Test(gstreamer, a_crop_of_a_dmabuf_is_mapped)
{
    dmabufs.may_nest = true;
    GBytes *parts[2];
    for (guint way = 0; way < 2; way++) {
        __attribute__((cleanup(bench_close))) struct bench bench =
            bench_open("peak=1000",
                       way ? DMABUF "format=P010_10LE,width=128,height=96,framerate=25/1," PQ
                           : RAW "format=P010_10LE,width=128,height=96,framerate=25/1," PQ,
                       RAW "format=NV12,width=128,height=96,framerate=25/1,colorimetry=bt709");
        GstVideoInfo whole;
        info_of(RAW IN_P010, &whole);
        GstBuffer *frame;
        if (way) {
            frame = in_dmabuf(&whole, &places[1], 4, GST_VIDEO_FORMAT_P010_10LE);
        } else {
            frame = make_frame(NULL, &whole, 4);
            gst_buffer_add_video_meta(frame, 0, GST_VIDEO_FORMAT_P010_10LE, 330, 180);
        }
        GstVideoCropMeta *crop = gst_buffer_add_video_crop_meta(frame);
        crop->x = 41;
        crop->y = 23;
        crop->width = 128;
        crop->height = 96;
        bench_push(&bench, frame);
        parts[way] = bench_pull(&bench);
    }
    cr_expect_eq(difference(parts[0], parts[1]), 0);
    g_bytes_unref(parts[0]);
    g_bytes_unref(parts[1]);
    cr_expect_str_empty(dmabufs_wrong());
    dmabufs_end();
}

Test(gstreamer, frames_with_caps_of_va_are_mapped)
{
    __attribute__((cleanup(bench_close))) struct bench bench = open_bench(VA IN_P010);
    g_autoptr(GBytes) wanted = expected(7);
    bench_push(&bench, make_frame(NULL, &bench.in, 7));
    g_autoptr(GBytes) got = bench_pull(&bench);
    cr_expect_eq(difference(wanted, got), 0);
}

/* --- Allocation --------------------------------------------------------------------------------------------------- */

static GstQuery *asked(const struct bench *bench, const char *caps_text)
{
    g_autoptr(GstCaps) caps = gst_caps_from_string(caps_text);
    GstQuery *query = gst_query_new_allocation(caps, TRUE);
    cr_assert(gst_pad_peer_query(bench->h->srcpad, query));
    return query;
}

Test(gstreamer, upstream_is_told_which_layouts_are_not_copied)
{
    static const char *const kinds[] = {RAW IN_P010, DMABUF IN_P010, DMABUF IN_DRM, VA IN_P010};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        __attribute__((cleanup(bench_close))) struct bench bench = open_bench(kinds[i]);
        g_autoptr(GstQuery) query = asked(&bench, kinds[i]);
        const GstStructure *layout = NULL;
        guint at, mask = 0;
        cr_assert(gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, &at), "%s", kinds[i]);
        cr_expect(gst_query_find_allocation_meta(query, GST_VIDEO_CROP_META_API_TYPE, NULL), "%s", kinds[i]);
        gst_query_parse_nth_allocation_meta(query, at, &layout);
        cr_assert(layout && gst_structure_has_name(layout, "video-meta"), "%s", kinds[i]);
        cr_expect(gst_structure_get_uint(layout, "stride-align0", &mask) && !(mask & (mask + 1)), "mask %u", mask);
        cr_expect_eq(gst_query_get_n_allocation_pools(query) > 0, i == 0, "%s: host memory is offered for it alone",
                     kinds[i]);
    }
}
