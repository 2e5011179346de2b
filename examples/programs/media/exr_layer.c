/* SPDX-License-Identifier: Apache-2.0 */
#ifdef COX_HAVE_OPENEXR
#include "exr_layer.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* --- Channels --------------------------------------------------------------------------------- */

static bool is_flat(exr_const_context_t context, int part)
{
    exr_storage_t storage;
    return exr_get_storage(context, part, &storage) == EXR_ERR_SUCCESS &&
           (storage == EXR_STORAGE_SCANLINE || storage == EXR_STORAGE_TILED);
}

static const exr_attr_chlist_t *channels_of(exr_const_context_t context, int part)
{
    const exr_attribute_t *attribute = NULL;
    if (exr_get_attribute_by_name(context, part, "channels", &attribute) != EXR_ERR_SUCCESS ||
        !attribute || attribute->type != EXR_ATTR_CHLIST || !attribute->chlist ||
        attribute->chlist->num_channels <= 0)
        return NULL;
    return attribute->chlist;
}

/* The length of the layer's name with the dot behind it; 0 = the unnamed one. */
static size_t prefix_of(const char *channel)
{
    const char *dot = strrchr(channel, '.');
    return dot ? (size_t)(dot - channel) + 1 : 0;
}

static int find_channel(const exr_attr_chlist_t *list, const char *prefix, size_t length,
                        const char *name)
{
    for (int i = 0; i < list->num_channels; i++) {
        const char *channel = list->entries[i].name.str;
        if (!strncmp(channel, prefix, length) && !strcmp(channel + length, name))
            return i;
    }
    return -1;
}

/* Take R, G, B (a missing one is black), or Y with or without chroma. False if the layer has none
 * of them. X, Y, Z of a named layer are directions. */
static bool take_channels(struct exr_layer *layer, const char *prefix, size_t length)
{
    static const char *const names[] = {"R", "G", "B", "A"};
    const exr_attr_chlist_t *list = layer->channels;
    layer->grey = layer->chroma = false;
    for (int c = 0; c < 4; c++)
        layer->channel[c] = find_channel(list, prefix, length, names[c]);
    if (layer->channel[0] >= 0 || layer->channel[1] >= 0 || layer->channel[2] >= 0)
        return true;

    const int y = find_channel(list, prefix, length, "Y");
    const int ry = find_channel(list, prefix, length, "RY");
    const int by = find_channel(list, prefix, length, "BY");
    const bool direction = length && (find_channel(list, prefix, length, "X") >= 0 ||
                                      find_channel(list, prefix, length, "Z") >= 0);
    if (y < 0 || direction)
        return false;

    layer->chroma = ry >= 0 || by >= 0;
    layer->grey = !layer->chroma;
    layer->channel[0] = layer->chroma ? ry : y;
    layer->channel[1] = y;
    layer->channel[2] = layer->chroma ? by : y;
    return true;
}

/* --- Names ------------------------------------------------------------------------------------ */

/* A layer of the file under consideration. */
struct candidate {
    const char *part; /* its name; "" = none */
    const char *prefix;
    size_t length; /* of the prefix with its dot */
    char layer[64];
};

/* PART.LAYER, or only one of them if the other is empty or the same. */
static void name_candidate(const struct candidate *candidate, char *name, size_t bytes)
{
    const bool both = *candidate->part && *candidate->layer &&
                      strcmp(candidate->part, candidate->layer) != 0;
    if (both)
        snprintf(name, bytes, "%.30s.%.30s", candidate->part, candidate->layer);
    else
        snprintf(name, bytes, "%.62s", *candidate->layer ? candidate->layer : candidate->part);
}

static const char *last_word(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static bool is_main(const char *name)
{
    static const char *const names[] = {"Combined", "beauty", "rgba"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcasecmp(last_word(name), names[i]))
            return true;
    return false;
}

/* How well it fits, from 0, the best. -1 = not at all. */
static int rank_of(const struct candidate *candidate, const char *wanted)
{
    char name[64];
    if (!wanted) {
        const bool unnamed = !*candidate->layer && (!*candidate->part || is_main(candidate->part));
        return unnamed || is_main(candidate->layer) ? 0 : 1;
    }

    name_candidate(candidate, name, sizeof name);
    if (!strcmp(wanted, name) || !strcmp(wanted, candidate->layer))
        return 0;
    if (!strcmp(wanted, candidate->part))
        return 1;
    if (*wanted && (!strcasecmp(wanted, last_word(candidate->layer)) ||
                    !strcasecmp(wanted, last_word(candidate->part))))
        return 2;
    return -1;
}

/* --- Search ----------------------------------------------------------------------------------- */

struct search {
    exr_const_context_t context;
    const char *wanted;
    struct exr_layer *best;
    int rank; /* of `best`; -1 = nothing yet */
    char list[160];
};

static void consider(struct search *search, struct exr_layer *layer, struct candidate *candidate)
{
    char name[64];
    if (!take_channels(layer, candidate->prefix, candidate->length))
        return;

    snprintf(candidate->layer, sizeof candidate->layer, "%.*s",
             candidate->length ? (int)candidate->length - 1 : 0, candidate->prefix);
    name_candidate(candidate, name, sizeof name);
    const size_t used = strlen(search->list), room = sizeof search->list - used;
    if (strlen(name) + 20 < room)
        snprintf(search->list + used, room, "%s%s", used ? ", " : "",
                 *name ? name : "'' (unnamed)");
    else if (room > 5 && strcmp(search->list + used - 3, "..."))
        snprintf(search->list + used, room, "...");

    const int rank = rank_of(candidate, search->wanted);
    if (rank < 0 || (search->rank >= 0 && rank >= search->rank))
        return;
    snprintf(layer->name, sizeof layer->name, "%s", name);
    search->rank = rank;
    *search->best = *layer;
}

/* Whether channel `i` is the first one of its layer. The file has its channels in order. */
static bool begins_layer(const exr_attr_chlist_t *list, int i, size_t length)
{
    const char *name = list->entries[i].name.str;
    for (int j = 0; j < i; j++)
        if (prefix_of(list->entries[j].name.str) == length &&
            !strncmp(list->entries[j].name.str, name, length))
            return false;
    return true;
}

static void search_part(struct search *search, int part, int parts)
{
    struct exr_layer layer = {
        .part = part, .parts = parts, .channels = channels_of(search->context, part)};
    struct candidate candidate = {.part = "", .prefix = ""};
    if (!layer.channels)
        return;
    if (exr_get_name(search->context, part, &candidate.part) != EXR_ERR_SUCCESS || !candidate.part)
        candidate.part = "";

    consider(search, &layer, &candidate);
    for (int i = 0; i < layer.channels->num_channels; i++) {
        candidate.prefix = layer.channels->entries[i].name.str;
        candidate.length = prefix_of(candidate.prefix);
        if (candidate.length && begins_layer(layer.channels, i, candidate.length))
            consider(search, &layer, &candidate);
    }
}

static void list_channels(const exr_attr_chlist_t *list, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < list->num_channels && used + 24 < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%.20s", i ? ", " : "",
                                 list->entries[i].name.str);
}

bool exr_layer_find(exr_const_context_t context, const char *wanted, struct exr_layer *layer,
                    struct error *error)
{
    struct search search = {.context = context, .wanted = wanted, .best = layer, .rank = -1};
    const exr_attr_chlist_t *channels = NULL;
    int parts = 0;
    bool flat = false;
    if (exr_get_count(context, &parts) != EXR_ERR_SUCCESS || parts < 1)
        return error_set(error, "a damaged OpenEXR header: no parts");

    for (int part = 0; part < parts; part++) {
        if (!is_flat(context, part))
            continue;
        flat = true;
        if (!channels)
            channels = channels_of(context, part);
        search_part(&search, part, parts);
    }
    if (search.rank >= 0)
        return true;

    if (!flat)
        return error_set(error, "a deep OpenEXR picture, which is not supported: flatten it first");
    if (!channels)
        return error_set(error, "a damaged OpenEXR header: no channels");
    if (*search.list)
        return error_set(error, "the OpenEXR picture has no layer '%.60s'; its layers are %s",
                         wanted, search.list);

    list_channels(channels, search.list, 120);
    return error_set(error, "the OpenEXR picture has no R, G, B or Y channel, only %s",
                     search.list);
}

#endif
