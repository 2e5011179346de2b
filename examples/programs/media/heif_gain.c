/* SPDX-License-Identifier: Apache-2.0 */
#include "exif.h"

#ifdef COX_HAVE_HEIF

#include "heif_gain.h"

#include <stdlib.h>
#include <string.h>

struct heif_gain {
    struct gain_map map;
    struct icc_rgb colours; /* of the SDR picture */
    struct heif_image_handle *samples;
};

static bool has_failed(struct heif_error cause)
{
    return cause.code != heif_error_Ok;
}

/* Apple's auxiliary picture; NULL = none. */
static struct heif_image_handle *find_samples(const struct heif_image_handle *base)
{
    enum { MOST = 16 };
    heif_item_id ids[MOST];
    const int count =
        heif_image_handle_get_list_of_auxiliary_image_IDs(base,
                                                          LIBHEIF_AUX_IMAGE_FILTER_OMIT_ALPHA |
                                                              LIBHEIF_AUX_IMAGE_FILTER_OMIT_DEPTH,
                                                          ids, MOST);

    for (int i = 0; i < count; i++) {
        struct heif_image_handle *handle = NULL;
        const char *type = NULL;
        if (has_failed(heif_image_handle_get_auxiliary_image_handle(base, ids[i], &handle)))
            continue;
        const bool found = !has_failed(heif_image_handle_get_auxiliary_type(handle, &type)) &&
                           !strcmp(type, "urn:com:apple:photo:2020:aux:hdrgainmap");
        if (type)
            heif_image_handle_free_auxiliary_types(handle, &type);
        if (found)
            return handle;
        heif_image_handle_release(handle);
    }
    return NULL;
}

/* The first metadata of this type; NULL = none. The caller frees it. */
static uint8_t *load_metadata(const struct heif_image_handle *handle, const char *type,
                              size_t *bytes)
{
    heif_item_id id;
    *bytes = 0;
    if (heif_image_handle_get_list_of_metadata_block_IDs(handle, type, &id, 1) < 1)
        return NULL;

    *bytes = heif_image_handle_get_metadata_size(handle, id);
    uint8_t *data = *bytes ? malloc(*bytes) : NULL;
    if (data && !has_failed(heif_image_handle_get_metadata(handle, id, data)))
        return data;
    free(data);
    *bytes = 0;
    return NULL;
}

/* That of the notes in Exif, which begins with the place of its TIFF header. */
static double exif_headroom(const struct heif_image_handle *base)
{
    enum { PLACE_BYTES = 4 };
    size_t bytes;
    double headroom = 0;
    uint8_t *exif = load_metadata(base, "Exif", &bytes);
    if (exif && bytes > PLACE_BYTES) {
        const size_t at = PLACE_BYTES + ((size_t)exif[0] << 24 | (size_t)exif[1] << 16 |
                                         (size_t)exif[2] << 8 | exif[3]);
        if (at < bytes)
            headroom = exif_apple_headroom(exif + at, bytes - at);
    }
    free(exif);
    return headroom;
}

/* The colours of the SDR picture: those of its profile, else of its numbers, else sRGB. */
static bool find_colours(const struct heif_image_handle *base, const struct cicp *cicp,
                         struct icc_rgb *colours)
{
    struct primaries primaries;
    const size_t bytes = heif_image_handle_get_raw_color_profile_size(base);
    uint8_t *profile = bytes ? malloc(bytes) : NULL;
    bool good = true;
    icc_srgb(colours);

    if (profile && !has_failed(heif_image_handle_get_raw_color_profile(base, profile)))
        good = icc_rgb(profile, bytes, colours);
    else if (photo_primaries(cicp->primaries, &primaries))
        primaries_to_bt709(&primaries, colours->matrix);
    free(profile);
    return good;
}

struct heif_gain *heif_gain_open(const struct heif_image_handle *base, const struct cicp *cicp,
                                 struct error *error)
{
    struct heif_gain *gain = calloc(1, sizeof *gain);
    if (!gain) {
        error_set(error, "out of memory");
        return NULL;
    }

    size_t bytes = 0;
    const double headroom = exif_headroom(base);
    gain->samples = find_samples(base);
    uint8_t *xmp = gain->samples ? load_metadata(gain->samples, "mime", &bytes) : NULL;
    enum gain_map_found found = GAIN_MAP_NONE;
    if (gain->samples)
        found = gain_map_from_xmp((const char *)xmp, bytes, headroom, &gain->map, error);
    free(xmp);

    if (found == GAIN_MAP_NONE)
        error_set(error, "the HEIC picture is SDR (transfer: %s), without a gain map of Apple",
                  photo_transfer_name(cicp->transfer));
    if (found == GAIN_MAP_FOUND && find_colours(base, cicp, &gain->colours))
        return gain;
    if (found == GAIN_MAP_FOUND)
        error_set(error, "a HEIC picture whose ICC profile is not of an RGB matrix and curves");
    heif_gain_close(&gain);
    return NULL;
}

double heif_gain_headroom(const struct heif_gain *gain)
{
    return gain->map.headroom;
}

static bool decode(const struct heif_image_handle *handle, struct heif_image **image,
                   struct gain_raster *raster, struct error *error)
{
    int pitch = 0;
    const struct heif_error cause = heif_decode_image(handle, image, heif_colorspace_RGB,
                                                      heif_chroma_interleaved_RGB, NULL);
    if (has_failed(cause))
        return error_set(error, "damaged HEIC, or one that libheif cannot read: %.160s",
                         cause.message ? cause.message : "unknown");

    const uint8_t *pixels = heif_image_get_plane_readonly(*image, heif_channel_interleaved, &pitch);
    *raster = (struct gain_raster){
        pixels, (size_t)pitch, (uint32_t)heif_image_get_width(*image, heif_channel_interleaved),
        (uint32_t)heif_image_get_height(*image, heif_channel_interleaved), 3};
    return pixels || error_set(error, "damaged HEIC: no pixels");
}

bool heif_gain_read(const struct heif_gain *gain, const struct heif_image_handle *base,
                    const struct picture_input *input, uint8_t *pixels, size_t pitch_bytes,
                    struct error *error)
{
    struct heif_image *base_image = NULL, *map_image = NULL;
    struct gain_raster raster, samples;
    bool good = decode(base, &base_image, &raster, error) &&
                decode(gain->samples, &map_image, &samples, error);
    if (good && (raster.width != input->format.width || raster.height != input->format.height))
        good = error_set(error, "damaged: the decoded picture has another size");
    good = good && gain_map_put(input, &gain->map, &raster, &samples, &gain->colours, NULL, 1,
                                pixels, pitch_bytes, error);
    if (base_image)
        heif_image_release(base_image);
    if (map_image)
        heif_image_release(map_image);
    return good;
}

void heif_gain_close(struct heif_gain **gain)
{
    if (!*gain)
        return;
    if ((*gain)->samples)
        heif_image_handle_release((*gain)->samples);
    free(*gain);
    *gain = NULL;
}

#endif
