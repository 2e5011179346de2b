/* The caps that coxtonemap accepts and produces.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

/* Whether the element accepts `in` and can produce `out` from it. */
static bool takes(const char *properties, const char *in, const char *out)
{
    g_autofree char *text = g_strdup_printf("coxtonemap %s", properties);
    GstHarness *h = gst_harness_new_parse(text);
    g_autoptr(GstCaps) in_caps = gst_caps_from_string(in);
    GstCaps *out_caps = gst_caps_from_string(out);
    gboolean accepted = FALSE;
    cr_assert(in_caps && out_caps);
    gst_harness_set_sink_caps(h, out_caps);
    g_autoptr(GstQuery) query = gst_query_new_accept_caps(in_caps);
    cr_assert(gst_pad_peer_query(h->srcpad, query));
    gst_query_parse_accept_caps_result(query, &accepted);
    if (accepted) {
        g_autoptr(GstCaps) possible = gst_pad_peer_query_caps(h->srcpad, in_caps);
        accepted = gst_caps_can_intersect(possible, in_caps);
    }
    gst_harness_teardown(h);
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
        g_autofree char *in = g_strdup_printf(RAW "format=%s," SMALL "," PQ, table[i].in);
        g_autofree char *out = g_strdup_printf(RAW "format=%s", table[i].out);
        cr_expect_eq(takes("", in, out), table[i].works, "%s to %s", table[i].in, table[i].out);
    }
}

Test(gstreamer, takes_rgb_of_full_range)
{
    static const char *const formats[] = {"RGBA64_LE", "BGRA64_LE", "GBR", "GBR_10LE", "GBR_12LE"};
    for (guint i = 0; i < G_N_ELEMENTS(formats); i++) {
        g_autofree char *in = g_strdup_printf(RAW "format=%s," SMALL ",colorimetry=1:1:14:7", formats[i]);
        g_autofree char *limited = g_strdup_printf(RAW "format=%s," SMALL ",colorimetry=2:1:14:7", formats[i]);
        cr_expect(takes("", in, RAW "format=NV12"), "%s", formats[i]);
        cr_expect(takes("", in, RAW "format=GBR"), "%s", formats[i]);
        cr_expect_not(takes("", limited, RAW "format=NV12"), "%s of limited range", formats[i]);
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
        g_autofree char *in = g_strdup_printf(RAW "format=I420_10LE," SMALL ",colorimetry=%s", table[i].colours);
        cr_expect_eq(takes("passthrough-sdr=false", in, RAW "format=I420"), table[i].works, "%s", table[i].colours);
    }
}

#define I420_SDR RAW "format=I420," SMALL ",colorimetry=bt709"
#define INTERLACED RAW "format=I420_10LE,width=64,height=48,framerate=25/1,interlace-mode=interleaved," PQ

Test(gstreamer, takes_what_the_properties_allow)
{
    static const struct {
        const char *what, *properties, *in, *out;
        bool works;
    } table[] = {
        {"interlaced frames", "", INTERLACED, RAW "format=I420", true},
        {"interlaced frames stay so", "", INTERLACED, RAW "format=I420,interlace-mode=interleaved", true},
        {"interlaced frames are not scaled", "", INTERLACED, RAW "format=I420,width=32,height=24", false},
        {"SDR passes", "", I420_SDR, RAW "format=I420", true},
        {"SDR is not converted", "", I420_SDR, RAW "format=NV12", false},
        {"SDR is not to pass", "passthrough-sdr=false", I420_SDR, RAW "format=I420", false},
        {"RGB passes", "", RAW "format=BGRx," SMALL, RAW "format=BGRx", true},
        {"what says nothing", "passthrough-sdr=false", RAW "format=I420_10LE," SMALL, RAW "format=I420", false},
        {"what the property says", "transfer=pq", RAW "format=I420_10LE," SMALL, RAW "format=NV12", true},
        {"what the property says of SDR", "transfer=hlg", I420_SDR, RAW "format=NV12", true},
    };
    for (guint i = 0; i < G_N_ELEMENTS(table); i++)
        cr_expect_eq(takes(table[i].properties, table[i].in, table[i].out), table[i].works, "%s", table[i].what);
}

Test(gstreamer, offers_upstream_nothing_that_cannot_be_done)
{
    static const struct {
        const char *what, *caps;
        bool offered;
    } table[] = {{"SDR", RAW "format=I420_10LE,width=640,height=480,colorimetry=bt709", false},
                 {"HDR", RAW "format=I420_10LE,width=1280,height=960," PQ, true},
                 {"more than eightfold", RAW "format=I420_10LE,width=5121,height=480," PQ, false}};
    GstHarness *h = gst_harness_new("coxtonemap");
    gst_harness_set_sink_caps_str(h, RAW "format=NV12,width=640,height=480,colorimetry=bt709");
    g_autoptr(GstCaps) caps = gst_pad_peer_query_caps(h->srcpad, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
        g_autoptr(GstCaps) asked = gst_caps_from_string(table[i].caps);
        cr_expect_eq(gst_caps_can_intersect(caps, asked), table[i].offered, "%s", table[i].what);
    }
    gst_harness_teardown(h);
}

/* The output caps for frames of `in`, if downstream accepts `out`. */
static GstStructure *given(const char *in, const char *out)
{
    GstHarness *h = gst_harness_new("coxtonemap");
    gst_harness_set_sink_caps_str(h, out);
    gst_harness_set_src_caps_str(h, in);
    g_autoptr(GstPad) pad = gst_pad_get_peer(h->sinkpad);
    g_autoptr(GstCaps) caps = gst_pad_get_current_caps(pad);
    cr_assert_not_null(caps, "%s does not become %s", in, out);
    GstStructure *structure = gst_structure_copy(gst_caps_get_structure(caps, 0));
    gst_harness_teardown(h);
    return structure;
}

static const char like[] = RAW
    "format=I422_10LE,width=640,height=360,framerate=24000/1001,pixel-aspect-ratio=1/1,"
    "interlace-mode=progressive,chroma-site=jpeg," PQ
    ",mastering-display-info=(string)35400:14600:8500:39850:6550:2300:15635:16450:10000000:1,"
    "content-light-level=(string)1000:400";

Test(gstreamer, output_says_what_it_is)
{
    static const char *const p010 = RAW "format=P010_10LE," SMALL "," PQ;
    static const struct {
        const char *in, *out, *field, *text; /* NULL: the field is missing */
    } table[] = {
        {like, "video/x-raw", "format", "Y42B"},
        {like, "video/x-raw", "colorimetry", "bt709"},
        {like, "video/x-raw", "chroma-site", "jpeg"},
        {like, "video/x-raw", "mastering-display-info", NULL},
        {like, "video/x-raw", "content-light-level", NULL},
        {p010, RAW "format={RGBA,I420,NV12}", "format", "NV12"},
        {p010, RAW "format={RGBA,I420,NV12}", "chroma-site", "mpeg2"},
        {p010, RAW "format=RGBA", "colorimetry", "1:1:5:1"},
        {p010, RAW "format=RGBA", "chroma-site", NULL},
        {p010, RAW "format=NV12,colorimetry=(string)1:3:5:1", "colorimetry", "1:3:5:1"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
        g_autoptr(GstStructure) made = given(table[i].in, table[i].out);
        const char *got = gst_structure_get_string(made, table[i].field), *text = table[i].text;
        cr_expect(!g_strcmp0(got, text), "row %u: %s is %s, not %s", i, table[i].field, got ? got : "missing",
                  text ? text : "missing");
        cr_expect_eq(gst_structure_has_field(made, table[i].field), text != NULL, "row %u: %s", i, table[i].field);
    }
    int num, den;
    g_autoptr(GstStructure) made = given(like, "video/x-raw");
    cr_expect(gst_structure_get_fraction(made, "framerate", &num, &den) && num == 24000 && den == 1001);
}

Test(gstreamer, another_size_keeps_the_pictures_shape)
{
    static const char *const in = RAW "format=I420_10LE,width=640,height=360,framerate=25/1,pixel-aspect-ratio=1/1," PQ;
    static const char *const odd = RAW "format=I420_10LE,width=333,height=111,framerate=25/1," PQ;
    static const char *const pal = RAW
        "format=I420_10LE,width=720,height=576,framerate=25/1,pixel-aspect-ratio=16/15," PQ;
    static const struct {
        const char *in, *out;
        int size[4]; /* width, height, pixel aspect ratio */
    } table[] = {
        {like, "video/x-raw", {640, 360, 1, 1}},
        {in, RAW "width=320,pixel-aspect-ratio=1/1", {320, 180, 1, 1}},
        {in, RAW "height=90,pixel-aspect-ratio=1/1", {160, 90, 1, 1}},
        {in, RAW "width=240", {240, 136, 1, 1}}, /* encoders of 4:2:0 do not accept 135 */
        {odd, "video/x-raw", {333, 111, 1, 1}},
        {in, RAW "width=320,height=360", {320, 360, 2, 1}},
        {pal, RAW "pixel-aspect-ratio=1/1", {768, 576, 1, 1}},
    };
    for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
        g_autoptr(GstStructure) made = given(table[i].in, table[i].out);
        int got[4] = {0, 0, 1, 1};
        gst_structure_get_int(made, "width", &got[0]);
        gst_structure_get_int(made, "height", &got[1]);
        gst_structure_get_fraction(made, "pixel-aspect-ratio", &got[2], &got[3]);
        cr_expect_arr_eq(got, table[i].size, sizeof got, "%s: %d x %d, %d:%d", table[i].out, got[0], got[1], got[2],
                         got[3]);
    }
}
