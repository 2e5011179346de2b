/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_caps.h"

#define DMABUF "memory:DMABuf"
#define VA "memory:VAMemory"

/* Formats of frames that come in, as Linux names them for linear rows (drm_fourcc.h). Others have no name there. */
static const struct {
    const char *linux_name, *name;
} drm_formats[] = {{"NV12", "NV12"},    {"YU12", "I420"},    {"P010", "P010_10LE"},
                   {"P012", "P012_LE"}, {"P016", "P016_LE"}, {"NV16", "NV16"},
                   {"YU16", "Y42B"},    {"YU24", "Y444"}};

static void add_text(GValue *list, const char *text)
{
    GValue value = G_VALUE_INIT;
    g_value_init(&value, G_TYPE_STRING);
    g_value_set_string(&value, text);
    gst_value_list_append_and_take_value(list, &value);
}

/* Whether a string, or a list of strings, has `text`. */
static bool has_text(const GValue *value, const char *text)
{
    if (value && G_VALUE_HOLDS_STRING(value))
        return !g_strcmp0(g_value_get_string(value), text);

    for (guint i = 0; value && GST_VALUE_HOLDS_LIST(value) && i < gst_value_list_get_size(value);
         i++)
        if (has_text(gst_value_list_get_value(value, i), text))
            return true;
    return false;
}

/* Set a field to the one text of the list, or to the list, which is consumed. False: the list is empty. */
static bool take_list(GstStructure *structure, const char *field, GValue *list)
{
    const guint count = gst_value_list_get_size(list);

    if (count == 1)
        gst_structure_set_value(structure, field, gst_value_list_get_value(list, 0));
    if (count > 1)
        gst_structure_take_value(structure, field, list);
    else
        g_value_unset(list);
    return count > 0;
}

/* Replace the fields of DMA-BUFs' caps by a format. False: their rows are not linear, or not known. */
static bool name_formats(GstStructure *structure)
{
    const GValue *names = gst_structure_get_value(structure, "drm-format");
    GValue list = G_VALUE_INIT;

    g_value_init(&list, GST_TYPE_LIST);
    for (guint i = 0; i < G_N_ELEMENTS(drm_formats); i++)
        if (!names || has_text(names, drm_formats[i].linux_name))
            add_text(&list, drm_formats[i].name);

    gst_structure_remove_field(structure, "drm-format");
    return take_list(structure, "format", &list);
}

bool memory_caps_is_system(const GstCaps *caps, guint i)
{
    const GstCapsFeatures *features = gst_caps_get_features(caps, i);
    return !features ||
           gst_caps_features_is_equal(features, GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY);
}

static bool is_only(const GstCapsFeatures *features, const char *feature)
{
    return !gst_caps_features_is_any(features) && gst_caps_features_get_size(features) == 1 &&
           gst_caps_features_contains(features, feature);
}

GstStructure *memory_caps_plain(const GstCaps *caps, guint i)
{
    const GstCapsFeatures *features = gst_caps_get_features(caps, i);
    const bool in_dmabufs = features && is_only(features, DMABUF);
    if (!memory_caps_is_system(caps, i) && !in_dmabufs && !is_only(features, VA))
        return NULL;

    GstStructure *plain = gst_structure_copy(gst_caps_get_structure(caps, i));
    const GValue *format = gst_structure_get_value(plain, "format");
    if (!in_dmabufs || !format || !has_text(format, "DMA_DRM") || name_formats(plain))
        return plain;

    gst_structure_free(plain);
    return NULL;
}

GstCaps *memory_caps_all_plain(const GstCaps *caps)
{
    GstStructure *plain = memory_caps_plain(caps, 0);
    if (!plain)
        return NULL;

    GstCaps *made = gst_caps_new_empty();
    gst_caps_append_structure(made, plain);
    return made;
}

/* Append caps of DMA-BUFs as they are from GStreamer 1.24 on. */
static void append_drm(GstCaps *caps, const GstStructure *structure)
{
    const GValue *formats = gst_structure_get_value(structure, "format");
    GstStructure *made = gst_structure_copy(structure);
    GValue list = G_VALUE_INIT;

    g_value_init(&list, GST_TYPE_LIST);
    for (guint i = 0; i < G_N_ELEMENTS(drm_formats); i++)
        if (has_text(formats, drm_formats[i].name))
            add_text(&list, drm_formats[i].linux_name);

    gst_structure_set(made, "format", G_TYPE_STRING, "DMA_DRM", NULL);
    if (take_list(made, "drm-format", &list))
        gst_caps_append_structure_full(caps, made, gst_caps_features_new(DMABUF, NULL));
    else
        gst_structure_free(made);
}

/* VA first: a decoder of VA that may choose has rows which are not linear, and maps them by a copy. */
void memory_caps_append_others(GstCaps *caps, const GstStructure *structure)
{
    gst_caps_append_structure_full(caps, gst_structure_copy(structure),
                                   gst_caps_features_new(VA, NULL));
    append_drm(caps, structure);
    gst_caps_append_structure_full(caps, gst_structure_copy(structure),
                                   gst_caps_features_new(DMABUF, NULL));
}
