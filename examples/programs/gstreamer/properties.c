/* SPDX-License-Identifier: Apache-2.0 */
#include "properties.h"

#include <math.h>
#include <stddef.h>

/* --- Types ------------------------------------------------------------------------------------ */

/* All operators for video, by the library's names. */
static GType operator_type(void)
{
    static gsize type;

    if (g_once_init_enter(&type)) {
        static GEnumValue values[COX_OPERATOR_COUNT + 1];
        guint count = 0;
        for (int op = 0; op < COX_OPERATOR_COUNT; op++) {
            const char *name = cox_operator_name((enum cox_operator)op);
            if (op != COX_OPERATOR_EXPOSURE)
                values[count++] = (GEnumValue){op, name, name};
        }
        g_once_init_leave(&type, g_enum_register_static("GstCoxOperator", values));
    }
    return type;
}

static GType enum_type(gsize *type, const char *name, const GEnumValue *values)
{
    if (g_once_init_enter(type))
        g_once_init_leave(type, g_enum_register_static(name, values));
    return *type;
}

static GType dither_type(void)
{
    static const GEnumValue values[] = {
        {COX_AUTO, "ordered if the output has fewer bits than the input", "auto"},
        {COX_NO, "none", "none"},
        {COX_YES, "ordered", "ordered"},
        {0, NULL, NULL}};
    static gsize type;
    return enum_type(&type, "GstCoxDither", values);
}

static GType gamut_type(void)
{
    static const GEnumValue values[] = {
        {COX_GAMUT_AUTO, "compress BT.2020, clip BT.709", "auto"},
        {COX_GAMUT_ALWAYS_CLIP, "clip colours outside SDR", "clip"},
        {COX_GAMUT_ALWAYS_COMPRESS, "move colours outside SDR towards grey", "compress"},
        {COX_GAMUT_ALWAYS_HUE, "move colours outside SDR towards grey and keep their hue", "hue"},
        {0, NULL, NULL}};
    static gsize type;

    return enum_type(&type, "GstCoxGamut", values);
}

static GType transfer_type(void)
{
    static const GEnumValue values[] = {{CAPS_AS_SAID, "as the stream says", "auto"},
                                        {COX_TRANSFER_PQ, "PQ, overrides the stream", "pq"},
                                        {COX_TRANSFER_HLG, "HLG, overrides the stream", "hlg"},
                                        {0, NULL, NULL}};
    static gsize type;
    return enum_type(&type, "GstCoxTransfer", values);
}

static GType primaries_type(void)
{
    static const GEnumValue values[] = {
        {CAPS_AS_SAID, "as the stream says; BT.2020 if `transfer` is set", "auto"},
        {COX_PRIMARIES_BT2020, "BT.2020, overrides the stream", "bt2020"},
        {COX_PRIMARIES_BT709, "BT.709, overrides the stream", "bt709"},
        {0, NULL, NULL}};
    static gsize type;
    return enum_type(&type, "GstCoxPrimaries", values);
}

/* --- The list --------------------------------------------------------------------------------- */

void properties_install(GObjectClass *class)
{
    const GParamFlags both = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;
    const GParamFlags playing = both | GST_PARAM_MUTABLE_PLAYING,
                      ready = both | GST_PARAM_MUTABLE_READY;
    GParamSpec *const specs[] = {
        [PROPERTY_OPERATOR] = g_param_spec_enum("operator", "Operator",
                                                "Tone curve from HDR to SDR", operator_type(),
                                                COX_OPERATOR_HABLE, playing),
        [PROPERTY_PEAK] = g_param_spec_double(
            "peak", "Peak",
            "Brightest luminance that keeps detail, in cd/m2; 0 = measured from scene to scene", 0,
            1e6, 0, playing),
        [PROPERTY_LOOKAHEAD] =
            g_param_spec_boolean("lookahead", "Look-ahead",
                                 "With peak=0: measure each frame before it is mapped", FALSE,
                                 playing),
        [PROPERTY_SDR_WHITE] = g_param_spec_double("sdr-white", "SDR white",
                                                   "Luminance that becomes SDR white, in cd/m2", 1,
                                                   10000, 203, playing),
        [PROPERTY_EXPOSURE] = g_param_spec_double("exposure", "Exposure",
                                                  "Brighten (> 0) or darken (< 0), in stops", -32,
                                                  32, 0, playing),
        [PROPERTY_DESATURATE] =
            g_param_spec_double("desaturate", "Desaturate",
                                "How much colours brighter than white fade to white", 0, 1, 0.75,
                                playing),
        [PROPERTY_DITHER] = g_param_spec_enum("dither", "Dither", "Dithering against banding",
                                              dither_type(), COX_AUTO, playing),
        [PROPERTY_GAMUT] = g_param_spec_enum("gamut", "Gamut",
                                             "How colours outside SDR are handled", gamut_type(),
                                             COX_AUTO, playing),
        [PROPERTY_GAMUT_KNEE] =
            g_param_spec_double("gamut-knee", "Gamut knee",
                                "Where compression begins, from grey to the edge of BT.709 (1)",
                                0.25, 0.95, 0.9, playing),
        [PROPERTY_DETAIL] = g_param_spec_double("detail", "Detail",
                                                "With operator=local: contrast of fine detail",
                                                0.25, 4, 1, playing),
        [PROPERTY_TRUST_METADATA] =
            g_param_spec_boolean("trust-metadata", "Trust metadata",
                                 "No light is above the peak that the stream names", FALSE,
                                 playing),
        [PROPERTY_TRANSFER] = g_param_spec_enum("transfer", "Transfer",
                                                "Transfer curve of the input", transfer_type(),
                                                CAPS_AS_SAID, ready),
        [PROPERTY_PRIMARIES] = g_param_spec_enum("primaries", "Primaries", "Primaries of the input",
                                                 primaries_type(), CAPS_AS_SAID, ready),
        [PROPERTY_PASSTHROUGH_SDR] = g_param_spec_boolean(
            "passthrough-sdr", "Pass SDR",
            "Pass streams that are not HDR unchanged, instead of refusing them", TRUE, ready),
        [PROPERTY_DEVICES] = g_param_spec_string(
            "devices", "Devices",
            "cpu, gpu, PLATFORM.DEVICE or part of a name, comma-separated; unset = all", NULL,
            ready),
        [PROPERTY_POLICY] =
            g_param_spec_string("policy", "Policy",
                                "How rows are shared among devices; unset = adaptive", NULL, ready),
        [PROPERTY_IN_FLIGHT] = g_param_spec_uint(
            "in-flight", "In flight",
            "Frames in progress at once; 1 if the peak comes from the frame before", 1,
            COX_IN_FLIGHT_MAX, 2, ready),
        [PROPERTY_VERIFY] =
            g_param_spec_double("verify", "Verify",
                                "Share of the bands that a second device repeats and compares", 0,
                                1, 0, ready),
        [PROPERTY_CACHE_DIR] = g_param_spec_string(
            "cache-dir", "Cache folder",
            "Folder for compiled kernels and device profiles; unset = coxswain in the user's cache "
            "folder, \"\" = none",
            NULL, ready),
        [PROPERTY_STATS] = g_param_spec_boxed("stats", "Statistics", "Counts since the start",
                                              GST_TYPE_STRUCTURE,
                                              G_PARAM_READABLE | G_PARAM_STATIC_STRINGS),
    };

    for (guint i = 0; i < G_N_ELEMENTS(specs); i++)
        if (specs[i])
            g_object_class_install_property(class, i, specs[i]);

    gst_type_mark_as_plugin_api(operator_type(), 0);
    gst_type_mark_as_plugin_api(dither_type(), 0);
    gst_type_mark_as_plugin_api(gamut_type(), 0);
    gst_type_mark_as_plugin_api(transfer_type(), 0);
    gst_type_mark_as_plugin_api(primaries_type(), 0);
}

void properties_init(struct properties *properties)
{
    *properties = (struct properties){.op = COX_OPERATOR_HABLE,
                                      .sdr_white_nits = 203,
                                      .desaturate = 0.75,
                                      .gamut_knee = 0.9,
                                      .detail = 1,
                                      .transfer = CAPS_AS_SAID,
                                      .primaries = CAPS_AS_SAID,
                                      .passthrough_sdr = TRUE,
                                      .in_flight = 2};
}

void properties_clear(struct properties *properties)
{
    g_free(properties->devices);
    g_free(properties->policy);
    g_free(properties->cache_dir);
}

/* The place of a property's value; NULL: it is not one of these. */
static void *place_of(struct properties *properties, guint number)
{
    static const size_t offsets[PROPERTY_STATS] = {
        [PROPERTY_OPERATOR] = offsetof(struct properties, op),
        [PROPERTY_PEAK] = offsetof(struct properties, peak_nits),
        [PROPERTY_LOOKAHEAD] = offsetof(struct properties, lookahead),
        [PROPERTY_SDR_WHITE] = offsetof(struct properties, sdr_white_nits),
        [PROPERTY_EXPOSURE] = offsetof(struct properties, exposure_stops),
        [PROPERTY_DESATURATE] = offsetof(struct properties, desaturate),
        [PROPERTY_DITHER] = offsetof(struct properties, dither),
        [PROPERTY_GAMUT] = offsetof(struct properties, gamut),
        [PROPERTY_GAMUT_KNEE] = offsetof(struct properties, gamut_knee),
        [PROPERTY_DETAIL] = offsetof(struct properties, detail),
        [PROPERTY_TRUST_METADATA] = offsetof(struct properties, trust_metadata),
        [PROPERTY_TRANSFER] = offsetof(struct properties, transfer),
        [PROPERTY_PRIMARIES] = offsetof(struct properties, primaries),
        [PROPERTY_PASSTHROUGH_SDR] = offsetof(struct properties, passthrough_sdr),
        [PROPERTY_DEVICES] = offsetof(struct properties, devices),
        [PROPERTY_POLICY] = offsetof(struct properties, policy),
        [PROPERTY_IN_FLIGHT] = offsetof(struct properties, in_flight),
        [PROPERTY_VERIFY] = offsetof(struct properties, verify),
        [PROPERTY_CACHE_DIR] = offsetof(struct properties, cache_dir),
    };

    if (number == 0 || number >= PROPERTY_STATS || number == PROPERTIES_OF_LOOK)
        return NULL;

    return (char *)properties + offsets[number];
}

bool properties_set(struct properties *properties, guint number, const GValue *value)
{
    void *place = place_of(properties, number);
    if (!place)
        return false;
    if (G_VALUE_HOLDS_ENUM(value)) {
        *(int *)place = g_value_get_enum(value);
    } else if (G_VALUE_HOLDS_DOUBLE(value)) {
        *(double *)place = g_value_get_double(value);
    } else if (G_VALUE_HOLDS_BOOLEAN(value)) {
        *(gboolean *)place = g_value_get_boolean(value);
    } else if (G_VALUE_HOLDS_UINT(value)) {
        *(guint *)place = g_value_get_uint(value);
    } else {
        g_free(*(char **)place);
        *(char **)place = g_value_dup_string(value);
    }

    return true;
}

bool properties_get(const struct properties *properties, guint number, GValue *value)
{
    const void *place = place_of((struct properties *)properties, number);
    if (!place)
        return false;
    if (G_VALUE_HOLDS_ENUM(value))
        g_value_set_enum(value, *(const int *)place);
    else if (G_VALUE_HOLDS_DOUBLE(value))
        g_value_set_double(value, *(const double *)place);
    else if (G_VALUE_HOLDS_BOOLEAN(value))
        g_value_set_boolean(value, *(const gboolean *)place);
    else if (G_VALUE_HOLDS_UINT(value))
        g_value_set_uint(value, *(const guint *)place);
    else
        g_value_set_string(value, *(char *const *)place);

    return true;
}

void properties_look(const struct properties *properties, struct cox_tonemap_options *out)
{
    /* The library's 0 means its default: -1 is 0, and 0.9 is not a float. */
    float peak_nits = 0, desaturate = -1, gamut_knee = 0;
    if (properties->peak_nits > 0)
        peak_nits = (float)MAX(properties->peak_nits, 1);
    if (properties->desaturate > 0)
        desaturate = (float)properties->desaturate;
    if (properties->gamut_knee != 0.9)
        gamut_knee = (float)properties->gamut_knee;

    *out = (struct cox_tonemap_options){
        .op = properties->op,
        .dither = properties->dither,
        .gamut = properties->gamut,
        .settings = {.sdr_white_nits = (float)properties->sdr_white_nits,
                     .peak_nits = peak_nits,
                     .gain = (float)exp2(properties->exposure_stops),
                     .desaturate = desaturate,
                     .detail = (float)properties->detail,
                     .gamut_knee = gamut_knee},
        .trust_peak = properties->trust_metadata};

    out->peak = COX_PEAK_PREVIOUS;
    if (properties->peak_nits > 0)
        out->peak = COX_PEAK_FIXED;
    else if (properties->lookahead)
        out->peak = COX_PEAK_CURRENT;
}
