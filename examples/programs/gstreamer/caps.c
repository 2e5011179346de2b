/* SPDX-License-Identifier: Apache-2.0 */
#include "caps.h"
#include "memory_caps.h"

#include <string.h>

/* --- Formats ---------------------------------------------------------------------------------- */

enum { IN = 1, OUT = 2 };

/* The formats that the library supports, and on which side. GStreamer describes them; the library's
 * description follows from that. */
static const struct format {
    GstVideoFormat gst;
    int sides;
} formats[] = {
    {GST_VIDEO_FORMAT_NV12, IN | OUT},      {GST_VIDEO_FORMAT_I420, IN | OUT},
    {GST_VIDEO_FORMAT_P010_10LE, IN | OUT}, {GST_VIDEO_FORMAT_I420_10LE, IN | OUT},
    {GST_VIDEO_FORMAT_P012_LE, IN},         {GST_VIDEO_FORMAT_I420_12LE, IN},
    {GST_VIDEO_FORMAT_P016_LE, IN},         {GST_VIDEO_FORMAT_NV16, IN | OUT},
    {GST_VIDEO_FORMAT_Y42B, IN | OUT},      {GST_VIDEO_FORMAT_I422_10LE, IN | OUT},
    {GST_VIDEO_FORMAT_I422_12LE, IN},       {GST_VIDEO_FORMAT_v210, IN},
    {GST_VIDEO_FORMAT_Y444, IN | OUT},      {GST_VIDEO_FORMAT_Y444_10LE, IN | OUT},
    {GST_VIDEO_FORMAT_Y444_12LE, IN},       {GST_VIDEO_FORMAT_Y444_16LE, IN},
    {GST_VIDEO_FORMAT_GBR, IN | OUT},       {GST_VIDEO_FORMAT_GBR_10LE, IN | OUT},
    {GST_VIDEO_FORMAT_GBR_12LE, IN},        {GST_VIDEO_FORMAT_RGBA64_LE, IN},
    {GST_VIDEO_FORMAT_BGRA64_LE, IN},       {GST_VIDEO_FORMAT_RGBA, OUT},
    {GST_VIDEO_FORMAT_BGRA, OUT},           {GST_VIDEO_FORMAT_RGBx, OUT},
    {GST_VIDEO_FORMAT_BGRx, OUT},
};

static const GstVideoFormatInfo *info_of(const struct format *format)
{
    return gst_video_format_get_info(format->gst);
}

static const char *name_of(const struct format *format)
{
    return gst_video_format_to_string(format->gst);
}

static enum cox_video_layout layout_of(const struct format *format)
{
    switch (format->gst) {
    case GST_VIDEO_FORMAT_v210:
        return COX_VIDEO_V210;
    case GST_VIDEO_FORMAT_GBR:
    case GST_VIDEO_FORMAT_GBR_10LE:
    case GST_VIDEO_FORMAT_GBR_12LE:
        return COX_VIDEO_GBR;
    case GST_VIDEO_FORMAT_RGBA64_LE:
    case GST_VIDEO_FORMAT_RGBA:
    case GST_VIDEO_FORMAT_RGBx:
        return COX_VIDEO_RGBA;
    case GST_VIDEO_FORMAT_BGRA64_LE:
    case GST_VIDEO_FORMAT_BGRA:
    case GST_VIDEO_FORMAT_BGRx:
        return COX_VIDEO_BGRA;
    default:
        return info_of(format)->n_planes == 2 ? COX_VIDEO_SEMI_PLANAR : COX_VIDEO_PLANAR;
    }
}

/* The library's description, without site and range. */
static struct cox_video_format cox_format(const struct format *format)
{
    const GstVideoFormatInfo *info = info_of(format);
    return (struct cox_video_format){.layout = layout_of(format),
                                     .depth = info->depth[0],
                                     .msb_aligned = info->n_planes == 2 && info->shift[0] > 0,
                                     .chroma_x_log2 = info->w_sub[1],
                                     .chroma_y_log2 = info->h_sub[1]};
}

static bool is_rgb(const struct format *format)
{
    return GST_VIDEO_FORMAT_INFO_IS_RGB(info_of(format));
}

static bool has_side(const struct format *format, GstPadDirection direction)
{
    return format->sides & (direction == GST_PAD_SINK ? IN : OUT);
}

/* Chroma may be reduced, not increased. */
static bool becomes(const struct format *in, const struct format *out)
{
    const GstVideoFormatInfo *from = info_of(in), *to = info_of(out);
    return is_rgb(out) || (to->w_sub[1] >= from->w_sub[1] && to->h_sub[1] >= from->h_sub[1]);
}

/* --- Fields of caps --------------------------------------------------------------------------- */

/* Whether a field allows `text`: it is missing, is this text, or is a list with it. */
static bool admits(const GstStructure *structure, const char *field, const char *text)
{
    const GValue *value = gst_structure_get_value(structure, field);
    if (!value)
        return true;
    for (guint i = 0; GST_VALUE_HOLDS_LIST(value) && i < gst_value_list_get_size(value); i++)
        if (!g_strcmp0(g_value_get_string(gst_value_list_get_value(value, i)), text))
            return true;
    return G_VALUE_HOLDS_STRING(value) && !g_strcmp0(g_value_get_string(value), text);
}

static void add_text(GValue *list, const char *text)
{
    GValue value = G_VALUE_INIT;
    g_value_init(&value, G_TYPE_STRING);
    g_value_set_string(&value, text);
    gst_value_list_append_and_take_value(list, &value);
}

static bool is_hdr_transfer(const GstVideoColorimetry *colours)
{
    return colours->transfer == GST_VIDEO_TRANSFER_SMPTE2084 ||
           colours->transfer == GST_VIDEO_TRANSFER_ARIB_STD_B67;
}

/* The matrices and primaries that go together, also with one or both left out. The first ones are
 * for R'G'B'. */
enum { KNOWN_OF_RGB = 3 };
static const struct {
    GstVideoColorMatrix matrix;
    GstVideoColorPrimaries primaries;
} known_colours[] = {{GST_VIDEO_COLOR_MATRIX_RGB, GST_VIDEO_COLOR_PRIMARIES_BT2020},
                     {GST_VIDEO_COLOR_MATRIX_RGB, GST_VIDEO_COLOR_PRIMARIES_BT709},
                     {GST_VIDEO_COLOR_MATRIX_RGB, GST_VIDEO_COLOR_PRIMARIES_UNKNOWN},
                     {GST_VIDEO_COLOR_MATRIX_BT2020, GST_VIDEO_COLOR_PRIMARIES_BT2020},
                     {GST_VIDEO_COLOR_MATRIX_UNKNOWN, GST_VIDEO_COLOR_PRIMARIES_BT2020},
                     {GST_VIDEO_COLOR_MATRIX_BT2020, GST_VIDEO_COLOR_PRIMARIES_UNKNOWN},
                     {GST_VIDEO_COLOR_MATRIX_UNKNOWN, GST_VIDEO_COLOR_PRIMARIES_UNKNOWN},
                     {GST_VIDEO_COLOR_MATRIX_BT709, GST_VIDEO_COLOR_PRIMARIES_BT709},
                     {GST_VIDEO_COLOR_MATRIX_UNKNOWN, GST_VIDEO_COLOR_PRIMARIES_BT709},
                     {GST_VIDEO_COLOR_MATRIX_BT709, GST_VIDEO_COLOR_PRIMARIES_UNKNOWN}};

/* Whether this is HDR that the library maps. False if `text` is NULL or unknown. */
static bool is_hdr(const char *text)
{
    GstVideoColorimetry colours;
    bool known = false;

    if (!text || !gst_video_colorimetry_from_string(&colours, text) || !is_hdr_transfer(&colours))
        return false;
    if (colours.matrix == GST_VIDEO_COLOR_MATRIX_RGB &&
        colours.range != GST_VIDEO_COLOR_RANGE_0_255)
        return false;
    for (guint i = 0; i < G_N_ELEMENTS(known_colours); i++)
        known |= colours.matrix == known_colours[i].matrix &&
                 colours.primaries == known_colours[i].primaries;
    return known;
}

static bool is_sdr(const char *text)
{
    GstVideoColorimetry colours;
    return !text || !gst_video_colorimetry_from_string(&colours, text) ||
           !is_hdr_transfer(&colours);
}

/* The names of all HDR colorimetries in caps. R'G'B' has full range. */
static void list_hdr(GValue *list, bool rgb)
{
    static const GstVideoTransferFunction transfers[] = {GST_VIDEO_TRANSFER_SMPTE2084,
                                                         GST_VIDEO_TRANSFER_ARIB_STD_B67};
    static const GstVideoColorRange ranges[] = {GST_VIDEO_COLOR_RANGE_0_255,
                                                GST_VIDEO_COLOR_RANGE_16_235};
    const guint first = rgb ? 0 : KNOWN_OF_RGB,
                end = rgb ? KNOWN_OF_RGB : G_N_ELEMENTS(known_colours);

    for (guint i = first * 4; i < end * 4; i++) {
        const GstVideoColorimetry colours = {.range = ranges[i / 2 % 2],
                                             .matrix = known_colours[i / 4].matrix,
                                             .transfer = transfers[i % 2],
                                             .primaries = known_colours[i / 4].primaries};
        if (rgb && colours.range != GST_VIDEO_COLOR_RANGE_0_255)
            continue;
        char *text = gst_video_colorimetry_to_string(&colours);
        add_text(list, text);
        g_free(text);
    }
}

static bool some_colorimetry(const GstStructure *structure, bool (*good)(const char *text))
{
    const GValue *value = gst_structure_get_value(structure, "colorimetry");
    for (guint i = 0; value && GST_VALUE_HOLDS_LIST(value) && i < gst_value_list_get_size(value);
         i++)
        if (good(g_value_get_string(gst_value_list_get_value(value, i))))
            return true;
    return !value || (G_VALUE_HOLDS_STRING(value) && good(g_value_get_string(value)));
}

/* --- From one pad to the other ---------------------------------------------------------------- */

/* Caps describe colours and chroma differently for each of these. */
enum group { SUBSAMPLED, FULL_CHROMA, RGB, GROUPS };

static enum group group_of(const struct format *format)
{
    if (is_rgb(format))
        return RGB;
    return info_of(format)->w_sub[1] ? SUBSAMPLED : FULL_CHROMA;
}

/* Limited range first, and what a display of BT.1886 is given. */
static const char *const out_colours[GROUPS][2] = {
    {"bt709", "1:3:5:1"}, {"bt709", "1:3:5:1"}, {"1:1:5:1", NULL}};

/* Whether a side's caps allow this format. */
static bool offers(const struct format *format, GstPadDirection direction,
                   const GstStructure *structure)
{
    if (!has_side(format, direction) || !admits(structure, "format", name_of(format)))
        return false;
    if (direction == GST_PAD_SINK)
        return true;
    const char *const *colours = out_colours[group_of(format)];
    return admits(structure, "colorimetry", colours[0]) ||
           (colours[1] && admits(structure, "colorimetry", colours[1]));
}

/* List the formats of a group that the other pad can have if this one has those of `structure`. */
static bool list_formats(const GstStructure *structure, GstPadDirection direction, enum group group,
                         GValue *list)
{
    const GstPadDirection other = direction == GST_PAD_SINK ? GST_PAD_SRC : GST_PAD_SINK;

    for (guint there = 0; there < G_N_ELEMENTS(formats); there++) {
        const struct format *to = &formats[there];
        bool found = false;
        for (guint here = 0; here < G_N_ELEMENTS(formats); here++) {
            const struct format *from = &formats[here];
            if (!offers(from, direction, structure))
                continue;
            if (direction == GST_PAD_SINK)
                found |= becomes(from, to);
            else
                found |= becomes(to, from);
        }
        if (found && group_of(to) == group && has_side(to, other))
            add_text(list, name_of(to));
    }

    return gst_value_list_get_size(list) > 0;
}

static void add_site(GValue *list, GstVideoChromaSite site)
{
    char *text = gst_video_chroma_site_to_string(site);
    add_text(list, text);
    g_free(text);
}

/* Set colours and chroma for the other pad. */
static void set_colours(GstStructure *structure, GstPadDirection other, enum group group, bool any)
{
    GValue colours = G_VALUE_INIT, sites = G_VALUE_INIT;

    gst_structure_remove_fields(structure, "colorimetry", "chroma-site", "mastering-display-info",
                                "content-light-level", NULL);
    if (other == GST_PAD_SINK && any)
        return;

    g_value_init(&colours, GST_TYPE_LIST);
    if (other == GST_PAD_SINK)
        list_hdr(&colours, group == RGB);
    for (guint i = 0; other == GST_PAD_SRC && i < 2 && out_colours[group][i]; i++)
        add_text(&colours, out_colours[group][i]);
    gst_structure_take_value(structure, "colorimetry", &colours);
    if (other == GST_PAD_SINK || group != SUBSAMPLED)
        return;
    g_value_init(&sites, GST_TYPE_LIST);
    add_site(&sites, GST_VIDEO_CHROMA_SITE_MPEG2);
    add_site(&sites, GST_VIDEO_CHROMA_SITE_JPEG);
    add_site(&sites, GST_VIDEO_CHROMA_SITE_COSITED);
    gst_structure_take_value(structure, "chroma-site", &sites);
}

/* Allow a side from an eighth to eight times its length. */
static void widen(GstStructure *structure, const char *side)
{
    const GValue *value = gst_structure_get_value(structure, side);
    int least = 1, most = 65536;

    if (value && G_VALUE_HOLDS_INT(value)) {
        least = most = g_value_get_int(value);
    } else if (value && GST_VALUE_HOLDS_INT_RANGE(value)) {
        least = gst_value_get_int_range_min(value);
        most = gst_value_get_int_range_max(value);
    }
    least = CLAMP(least, 1, 65536);
    most = CLAMP(most, 1, 65536);
    gst_structure_set(structure, side, GST_TYPE_INT_RANGE, (least + 7) / 8, MIN(most * 8, 65536),
                      NULL);
}

static void append_unless_there(GstCaps *caps, GstStructure *structure, GstCapsFeatures *features)
{
    if (gst_caps_is_subset_structure_full(caps, structure, features)) {
        gst_structure_free(structure);
        if (features)
            gst_caps_features_free(features);
    } else {
        gst_caps_append_structure_full(caps, structure, features);
    }
}

/* Append what mapping gives, in the same size or scaled. */
static void append_mapped(const struct caps_rules *rules, GstPadDirection direction,
                          const GstStructure *from, bool scaled, GstCaps *to)
{
    const GstPadDirection other = direction == GST_PAD_SINK ? GST_PAD_SRC : GST_PAD_SINK;

    if (scaled && !admits(from, "interlace-mode", "progressive"))
        return; /* rows of two fields would be mixed */

    for (enum group group = SUBSAMPLED; group < GROUPS; group++) {
        GValue list = G_VALUE_INIT;
        g_value_init(&list, GST_TYPE_LIST);
        if (!list_formats(from, direction, group, &list)) {
            g_value_unset(&list);
            continue;
        }
        GstStructure *made = gst_structure_copy(from);
        if (scaled && gst_structure_has_field(made, "interlace-mode"))
            gst_structure_set(made, "interlace-mode", G_TYPE_STRING, "progressive", NULL);
        set_colours(made, other, group, rules->transfer != CAPS_AS_SAID);
        gst_structure_take_value(made, "format", &list);
        if (scaled) {
            widen(made, "width");
            widen(made, "height");
            if (gst_structure_has_field(made, "pixel-aspect-ratio"))
                gst_structure_set(made, "pixel-aspect-ratio", GST_TYPE_FRACTION_RANGE, 1, G_MAXINT,
                                  G_MAXINT, 1, NULL);
        }
        append_unless_there(to, made, NULL);
    }
}

/* Append what passes unchanged: the structure without its HDR colorimetries. */
static void append_passing(const GstStructure *from, const GstCapsFeatures *features, GstCaps *to)
{
    GstStructure *made = gst_structure_copy(from);
    const GValue *value = gst_structure_get_value(from, "colorimetry");

    if (value && GST_VALUE_HOLDS_LIST(value)) {
        GValue kept = G_VALUE_INIT;
        g_value_init(&kept, GST_TYPE_LIST);
        for (guint i = 0; i < gst_value_list_get_size(value); i++)
            if (is_sdr(g_value_get_string(gst_value_list_get_value(value, i))))
                gst_value_list_append_value(&kept, gst_value_list_get_value(value, i));
        gst_structure_take_value(made, "colorimetry", &kept);
    }
    append_unless_there(to, made, features ? gst_caps_features_copy(features) : NULL);
}

/* A stream with structure `i` of these caps, on the pad of `direction`, if it can be mapped: as of
 * frames in system memory. Otherwise NULL. The caller owns it. */
static GstStructure *mappable(const struct caps_rules *rules, GstPadDirection direction,
                              const GstCaps *caps, guint i)
{
    if (direction == GST_PAD_SRC && !memory_caps_is_system(caps, i))
        return NULL;

    GstStructure *plain = memory_caps_plain(caps, i);
    if (!plain || direction == GST_PAD_SRC || rules->transfer != CAPS_AS_SAID)
        return plain; /* list_formats looks at the colours of the output */

    const bool says_nothing = !gst_structure_has_field(plain, "colorimetry") &&
                              gst_caps_is_fixed(caps);
    if (!says_nothing && some_colorimetry(plain, is_hdr))
        return plain;

    gst_structure_free(plain);
    return NULL;
}

static bool may_pass(const struct caps_rules *rules, const GstStructure *structure)
{
    return rules->passthrough_sdr && rules->transfer == CAPS_AS_SAID &&
           some_colorimetry(structure, is_sdr);
}

GstCaps *caps_transform(const struct caps_rules *rules, GstPadDirection direction, GstCaps *caps)
{
    GstCaps *to = gst_caps_new_empty();

    for (int scaled = 0; scaled <= rules->scale; scaled++)
        for (guint i = 0; i < gst_caps_get_size(caps); i++) {
            GstStructure *from = mappable(rules, direction, caps, i);
            if (!from)
                continue;
            append_mapped(rules, direction, from, scaled, to);
            gst_structure_free(from);
        }

    const guint mapped = gst_caps_get_size(to);
    for (guint i = 0; direction == GST_PAD_SRC && i < mapped; i++)
        memory_caps_append_others(to, gst_caps_get_structure(to, i));

    for (guint i = 0; i < gst_caps_get_size(caps); i++)
        if (may_pass(rules, gst_caps_get_structure(caps, i)))
            append_passing(gst_caps_get_structure(caps, i), gst_caps_get_features(caps, i), to);
    return to;
}

GstCaps *caps_template(GstPadDirection direction)
{
    GValue list = G_VALUE_INIT;
    GstCaps *caps = gst_caps_from_string("video/x-raw, " /* what is mapped */
                                         "width=(int)[1, 65536], height=(int)[1, 65536], "
                                         "framerate=(fraction)[0/1, max]; "
                                         "video/x-raw(ANY)" /* what passes */);

    g_value_init(&list, GST_TYPE_LIST);
    for (guint i = 0; i < G_N_ELEMENTS(formats); i++)
        if (has_side(&formats[i], direction))
            add_text(&list, name_of(&formats[i]));
    gst_structure_take_value(gst_caps_get_structure(caps, 0), "format", &list);
    return caps;
}

/* --- One of many ------------------------------------------------------------------------------ */

/* How much an output of this format differs from the input. */
static int distance(const GstVideoFormatInfo *in, const GstVideoFormatInfo *out)
{
    const int chroma = abs((int)out->w_sub[1] - (int)in->w_sub[1]) +
                       abs((int)out->h_sub[1] - (int)in->h_sub[1]);
    const bool rgb = GST_VIDEO_FORMAT_INFO_IS_RGB(out) != GST_VIDEO_FORMAT_INFO_IS_RGB(in);
    return 1000 * rgb + 100 * chroma + 10 * (out->depth[0] != 8) +
           (out->n_planes != in->n_planes); /* planar, semi-planar */
}

/* Keep the structure and format of `wanted` that are most like the input. */
static GstCaps *choose_format(const GstCaps *caps, GstCaps *wanted)
{
    const GstStructure *from = gst_caps_get_structure(caps, 0);
    const char *in = gst_structure_get_string(from, "format");
    const GstVideoFormatInfo *in_info = NULL;

    if (in)
        in_info = gst_video_format_get_info(gst_video_format_from_string(in));
    const GValue *width = gst_structure_get_value(from, "width"),
                 *height = gst_structure_get_value(from, "height");
    const struct format *best = NULL;
    guint best_at = 0;
    int least = G_MAXINT;

    for (guint at = 0; in_info && at < gst_caps_get_size(wanted); at++) {
        const GstStructure *structure = gst_caps_get_structure(wanted, at);
        const GValue *w = gst_structure_get_value(structure, "width"),
                     *h = gst_structure_get_value(structure, "height");
        const bool same_size = (!w || !width || gst_value_can_intersect(w, width)) &&
                               (!h || !height || gst_value_can_intersect(h, height));
        for (guint i = 0; i < G_N_ELEMENTS(formats); i++) {
            const int far = distance(in_info, info_of(&formats[i])) + 10000 * !same_size;
            if (far < least && admits(structure, "format", name_of(&formats[i]))) {
                best = &formats[i];
                best_at = at;
                least = far;
            }
        }
    }
    GstCaps *one = gst_caps_copy_nth(wanted, best_at);

    gst_caps_unref(wanted);
    if (best)
        gst_structure_set(gst_caps_get_structure(one, 0), "format", G_TYPE_STRING, name_of(best),
                          NULL);
    return one;
}

/* Set a side to the even number nearest to part * num / den. False: that is not allowed. */
static bool choose_side(GstStructure *to, const char *side, int part, guint64 num, guint64 den)
{
    const guint64 scaled = gst_util_uint64_scale_round((guint64)part, num, 2 * den) * 2;
    const int wanted = (int)CLAMP(scaled, 1, 65536);
    int got = 0;
    gst_structure_fixate_field_nearest_int(to, side, wanted);
    return gst_structure_get_int(to, side, &got) && got == wanted;
}

/* Choose width, height and pixel aspect so that the picture keeps its shape: by the nearest even
 * side, or by the pixel aspect if both sides are given. */
static void choose_size(const GstStructure *from, GstStructure *to)
{
    int w, h, to_w = 0, to_h = 0, par_n = 1, par_d = 1, to_n = 1, to_d = 1, num, den;
    bool in_shape = false;

    if (!gst_structure_get_int(from, "width", &w) || !gst_structure_get_int(from, "height", &h))
        return;
    gst_structure_get_fraction(from, "pixel-aspect-ratio", &par_n, &par_d);
    const bool has_par = gst_structure_has_field(to, "pixel-aspect-ratio");
    const bool wide = gst_structure_get_int(to, "width", &to_w),
               high = gst_structure_get_int(to, "height", &to_h);

    if (has_par && !(wide && high))
        gst_structure_fixate_field_nearest_fraction(to, "pixel-aspect-ratio", par_n, par_d);
    if (has_par)
        gst_structure_get_fraction(to, "pixel-aspect-ratio", &to_n, &to_d);
    const guint64 across = (guint64)par_n * (guint)to_d, down = (guint64)par_d * (guint)to_n;

    if (!wide && !high) {
        gst_structure_fixate_field_nearest_int(to, "height", h);
        gst_structure_get_int(to, "height", &to_h);
    }
    if (!wide && to_h == h && across == down) /* odd sides stay, too */
        gst_structure_fixate_field_nearest_int(to, "width", w);
    else if (!wide)
        in_shape = choose_side(to, "width", w, (guint64)to_h * across, (guint64)h * down);
    else if (!high)
        in_shape = choose_side(to, "height", h, (guint64)to_w * down, (guint64)w * across);
    if (in_shape || !gst_structure_get_int(to, "width", &to_w) ||
        !gst_structure_get_int(to, "height", &to_h))
        return;
    if ((to_w != w || to_h != h) && gst_util_fraction_multiply(par_n, par_d, w, to_w, &num, &den) &&
        gst_util_fraction_multiply(num, den, to_h, h, &num, &den)) {
        if (has_par)
            gst_structure_fixate_field_nearest_fraction(to, "pixel-aspect-ratio", num, den);
        else if (num != den)
            gst_structure_set(to, "pixel-aspect-ratio", GST_TYPE_FRACTION, num, den, NULL);
    }
}

/* `caps` is of system memory. */
static GstCaps *fixate(GstPadDirection direction, const GstCaps *caps, GstCaps *wanted)
{
    const GstStructure *from = gst_caps_get_structure(caps, 0);
    const char *site = gst_structure_get_string(from, "chroma-site");
    GstCaps *one = gst_caps_make_writable(choose_format(caps, wanted));
    GstStructure *to = gst_caps_get_structure(one, 0);

    choose_size(from, to);
    if (direction == GST_PAD_SINK) {
        gst_structure_fixate_field_string(to, "colorimetry", out_colours[SUBSAMPLED][0]);
        if (gst_structure_has_field(to, "chroma-site"))
            gst_structure_fixate_field_string(to, "chroma-site", site ? site : "mpeg2");
    }
    return gst_caps_fixate(one);
}

GstCaps *caps_fixate(GstPadDirection direction, const GstCaps *caps, GstCaps *wanted)
{
    GstCaps *plain = memory_caps_all_plain(caps);
    GstCaps *one = fixate(direction, plain ? plain : caps, wanted);

    gst_clear_caps(&plain);
    return one;
}

/* --- What frames are -------------------------------------------------------------------------- */

bool caps_are_hdr(const struct caps_rules *rules, const GstCaps *caps)
{
    GstStructure *plain = mappable(rules, GST_PAD_SINK, caps, 0);
    if (plain)
        gst_structure_free(plain);
    return plain != NULL;
}

static enum cox_chroma_location site_of(const GstStructure *structure)
{
    const char *text = gst_structure_get_string(structure, "chroma-site");
    GstVideoChromaSite site = GST_VIDEO_CHROMA_SITE_UNKNOWN;

    if (text)
        site = gst_video_chroma_site_from_string(text);
    if (site == GST_VIDEO_CHROMA_SITE_NONE)
        return COX_CHROMA_CENTER;
    if ((site & GST_VIDEO_CHROMA_SITE_COSITED) == GST_VIDEO_CHROMA_SITE_COSITED)
        return COX_CHROMA_TOP_LEFT;
    return COX_CHROMA_LEFT;
}

/* The mastering display's peak if that is an HDR display, else the brightest pixel; 0 = unknown. */
static float said_peak(const GstCaps *caps)
{
    GstVideoMasteringDisplayInfo display;
    GstVideoContentLightLevel content;

    if (gst_video_mastering_display_info_from_caps(&display, caps)) {
        const float nits = (float)display.max_display_mastering_luminance / 10000.0f;
        if (nits >= 203 && nits <= 10000)
            return nits;
    }
    if (gst_video_content_light_level_from_caps(&content, caps))
        return content.max_content_light_level;
    return 0;
}

bool caps_image(const struct caps_rules *rules, const GstCaps *caps, const GstVideoInfo *info,
                struct cox_video_image *image)
{
    const struct format *format = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(formats); i++)
        if (formats[i].gst == GST_VIDEO_INFO_FORMAT(info))
            format = &formats[i];

    if (!format)
        return false;
    *image = (struct cox_video_image){.format = cox_format(format),
                                      .width = (uint32_t)GST_VIDEO_INFO_WIDTH(info),
                                      .height = (uint32_t)GST_VIDEO_INFO_HEIGHT(info),
                                      .peak_nits = said_peak(caps)};
    image->format.chroma_location = site_of(gst_caps_get_structure(caps, 0));
    if (is_rgb(format) || info->colorimetry.range == GST_VIDEO_COLOR_RANGE_0_255)
        image->format.range = COX_RANGE_FULL;
    if (info->colorimetry.transfer == GST_VIDEO_TRANSFER_ARIB_STD_B67)
        image->transfer = COX_TRANSFER_HLG;
    if (rules->transfer != CAPS_AS_SAID)
        image->transfer = (enum cox_transfer)rules->transfer;
    else if (info->colorimetry.primaries == GST_VIDEO_COLOR_PRIMARIES_BT709 ||
             (info->colorimetry.primaries == GST_VIDEO_COLOR_PRIMARIES_UNKNOWN &&
              info->colorimetry.matrix == GST_VIDEO_COLOR_MATRIX_BT709))
        image->primaries = COX_PRIMARIES_BT709;
    if (rules->primaries != CAPS_AS_SAID)
        image->primaries = (enum cox_primaries)rules->primaries;
    return true;
}
