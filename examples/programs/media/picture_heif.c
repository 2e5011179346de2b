/* HEIC pictures through libheif, which also turns and crops them, and rounds R'G'B' to their bits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "photo.h"

#include <string.h>

static bool heif_matches(const uint8_t *data, size_t bytes)
{
    return photo_brand(data, bytes) == PHOTO_BRAND_HEIF;
}

#ifndef COX_HAVE_HEIF

const struct picture_kind picture_kind_heif = {
    .matches = heif_matches,
    .missing = "a HEIC picture, but this program was built without libheif (Debian: libheif-dev)"};

#else

#include "heif_gain.h"
#include "photo_planes.h"

#include <stdio.h>
#include <stdlib.h>

/* The `library` of the photograph. */
struct heif {
    struct heif_image_handle *handle;
    struct heif_gain *gain; /* NULL = the picture is PQ or HLG */
};

static bool fail(struct heif_error cause, struct error *error)
{
    return error_set(error, "damaged HEIC, or one that libheif cannot read: %.160s",
                     cause.message ? cause.message : "unknown");
}

static bool has_failed(struct heif_error cause)
{
    return cause.code != heif_error_Ok;
}

static void heif_close(struct picture_input *input)
{
    struct photo *photo = input->state;
    struct heif *heif = photo ? photo->library : NULL;
    if (heif) {
        heif_gain_close(&heif->gain);
        if (heif->handle)
            heif_image_handle_release(heif->handle);
        free(heif);
    }
    free(photo);
    input->state = NULL;
}

/* Those of the profile `nclx`; without one, those of an ICC profile. */
static struct cicp find_colours(const struct heif_image_handle *handle)
{
    struct heif_color_profile_nclx *nclx = NULL;
    struct cicp cicp = {CICP_UNKNOWN, CICP_UNKNOWN, 6, true};
    if (!has_failed(heif_image_handle_get_nclx_color_profile(handle, &nclx)) && nclx) {
        cicp = (struct cicp){nclx->color_primaries, nclx->transfer_characteristics,
                             nclx->matrix_coefficients, nclx->full_range_flag};
        heif_nclx_color_profile_free(nclx);
        return cicp;
    }

    struct cicp named;
    const size_t bytes = heif_image_handle_get_raw_color_profile_size(handle);
    uint8_t *profile = bytes ? malloc(bytes) : NULL;
    if (profile && !has_failed(heif_image_handle_get_raw_color_profile(handle, profile)) &&
        icc_cicp(profile, bytes, &named)) {
        cicp.primaries = named.primaries;
        cicp.transfer = named.transfer;
    }
    free(profile);
    return cicp;
}

/* Light by the colours, or by a gain map. */
static bool choose_light(struct picture_input *input, struct heif *heif, struct error *error)
{
    const struct cicp cicp = find_colours(heif->handle),
                      rgb = {cicp.primaries, cicp.transfer, 0, true};
    const int bits = heif_image_handle_get_luma_bits_per_pixel(heif->handle);
    struct photo_planes planes = {.cicp = cicp};

    if (cicp.transfer == CICP_PQ || cicp.transfer == CICP_HLG) {
        if (!photo_planes_ready(&planes, error) ||
            !photo_open(input, "HEIC", &rgb, bits > 0 ? (unsigned)bits : 0, 16, error))
            return false;
        ((struct photo *)input->state)->cicp = cicp;
        input->format.alpha = heif_image_handle_has_alpha_channel(heif->handle) &&
                              input->alpha == PICTURE_ALPHA_STRAIGHT;
        return true;
    }

    heif->gain = heif_gain_open(heif->handle, &cicp, error);
    if (!heif->gain)
        return false;
    input->state = calloc(1, sizeof(struct photo));
    if (!input->state)
        return error_set(error, "out of memory");
    input->format.pixel = COX_PIXEL_RGBA_HALF;
    snprintf(input->format.text, sizeof input->format.text, "HEIC, gain map up to %.3g x white",
             heif_gain_headroom(heif->gain));
    return true;
}

static bool heif_open(struct picture_input *input, struct error *error)
{
    struct heif *heif = calloc(1, sizeof *heif);
    struct heif_context *context = heif_context_alloc();
    if (!heif || !context) {
        free(heif);
        if (context)
            heif_context_free(context);
        return error_set(error, "out of memory");
    }

    struct heif_error cause = heif_context_read_from_memory_without_copy(context, input->data,
                                                                         input->bytes, NULL);
    if (!has_failed(cause))
        cause = heif_context_get_primary_image_handle(context, &heif->handle);
    bool good = !has_failed(cause) || fail(cause, error); /* the context owns the message */
    heif_context_free(context);                           /* the handle keeps what it needs */
    good = good && choose_light(input, heif, error) &&
           photo_size(input, heif_image_handle_get_width(heif->handle),
                      heif_image_handle_get_height(heif->handle), 1, error);
    struct photo *photo = input->state;
    if (photo)
        photo->library = heif;
    if (!good && photo)
        heif_close(input);
    else if (!good) {
        heif_gain_close(&heif->gain);
        if (heif->handle)
            heif_image_handle_release(heif->handle);
        free(heif);
    }
    return good;
}

/* The planes of a decoded image: R'G'B' in full range, to which libheif converts colour, or luma
 * alone. False if their sizes or depths contradict each other. */
static bool find_planes(const struct heif_image *image, struct photo_planes *planes,
                        struct error *error)
{
    static const enum heif_channel rgb[] = {heif_channel_G, heif_channel_B, heif_channel_R,
                                            heif_channel_Alpha};
    static const enum heif_channel luma[] = {heif_channel_Y, heif_channel_Alpha};
    const bool colour = heif_image_has_channel(image, heif_channel_G);
    const enum heif_channel first = colour ? heif_channel_G : heif_channel_Y;
    const int width = heif_image_get_primary_width(image);
    const int height = heif_image_get_primary_height(image);
    int bits = 0;
    if (heif_image_has_channel(image, first))
        bits = heif_image_get_bits_per_pixel_range(image, first);
    bool good = width > 0 && height > 0 && bits >= 8 && bits <= 16;

    planes->width = (uint32_t)width;
    planes->height = (uint32_t)height;
    planes->bits = (unsigned)bits;
    if (colour)
        planes->cicp = (struct cicp){0, 0, 0, true};
    for (int c = 0; c < (colour ? 4 : 2); c++) {
        const enum heif_channel channel = colour ? rgb[c] : luma[c];
        const int to = channel == heif_channel_Alpha ? 3 : c;
        int pitch = 0;
        if (!good || !heif_image_has_channel(image, channel))
            continue;
        planes->plane[to] = heif_image_get_plane_readonly(image, channel, &pitch);
        planes->pitch_bytes[to] = (size_t)pitch;
        planes->wide[to] = bits > 8;
        good = heif_image_get_bits_per_pixel_range(image, channel) == bits &&
               heif_image_get_width(image, channel) >= width &&
               heif_image_get_height(image, channel) >= height;
    }
    return (good && planes->plane[0] && (!colour || (planes->plane[1] && planes->plane[2]))) ||
           error_set(error, "a HEIC picture whose planes do not fit together");
}

static bool heif_read(struct picture_input *input, uint8_t *pixels, size_t pitch_bytes,
                      struct error *error)
{
    const struct photo *photo = input->state;
    const struct heif *heif = photo->library;
    struct photo_planes planes = {.cicp = photo->cicp};
    struct heif_image *image = NULL;
    if (heif->gain)
        return heif_gain_read(heif->gain, heif->handle, input, pixels, pitch_bytes, error);

    planes.multiplied = heif_image_handle_is_premultiplied_alpha(heif->handle);
    const struct heif_error cause = heif_decode_image(heif->handle, &image,
                                                      heif_colorspace_undefined,
                                                      heif_chroma_undefined, NULL);
    if (has_failed(cause))
        return fail(cause, error);

    const bool good = find_planes(image, &planes, error) && photo_planes_ready(&planes, error) &&
                      photo_planes_put(input, &planes, 0, 0, planes.width, planes.height, pixels,
                                       pitch_bytes, error);
    heif_image_release(image);
    return good;
}

const struct picture_kind picture_kind_heif = {heif_matches, heif_open, heif_read, heif_close,
                                               NULL};

#endif
