/* AVIF pictures through libavif.
 * SPDX-License-Identifier: Apache-2.0 */
#include "photo.h"

#include <string.h>

static bool avif_matches(const uint8_t *data, size_t bytes)
{
    return photo_brand(data, bytes) == PHOTO_BRAND_AVIF;
}

#ifndef COX_HAVE_AVIF

const struct picture_kind picture_kind_avif = {
    .matches = avif_matches,
    .missing = "an AVIF picture, but this program was built without libavif (Debian: libavif-dev)"};

#else

#include "icc.h"
#include "photo_planes.h"

#include <avif/avif.h>
#include <stdlib.h>

static bool fail(const avifDecoder *decoder, avifResult result, struct error *error)
{
    return error_set(error, "damaged AVIF: %s%s%.160s", avifResultToString(result),
                     *decoder->diag.error ? ": " : "", decoder->diag.error);
}

static void avif_close(struct picture_input *input)
{
    struct photo *photo = input->state;
    if (photo && photo->library)
        avifDecoderDestroy(photo->library);
    free(photo);
    input->state = NULL;
}

#if AVIF_VERSION_MAJOR >= 1 /* the same value has another name */
#define MIRROR_OF(image) ((image)->imir.axis)
#else
#define MIRROR_OF(image) ((image)->imir.mode)
#endif

/* MIAF has the order: crop, turn, mirror. */
static unsigned orientation_of(const avifImage *image)
{
    static const uint8_t orientations[4][3] = {{1, 4, 2}, {8, 5, 7}, {3, 2, 4}, {6, 7, 5}};
    const bool turned = image->transformFlags & AVIF_TRANSFORM_IROT;
    const bool mirrored = image->transformFlags & AVIF_TRANSFORM_IMIR;
    return orientations[turned ? image->irot.angle & 3 : 0]
                       [mirrored ? 1 + (MIRROR_OF(image) & 1) : 0];
}

static bool crop_of(const avifImage *image, avifCropRect *crop, struct error *error)
{
    avifDiagnostics diagnostics = {""};
    *crop = (avifCropRect){0, 0, image->width, image->height};
    if ((image->transformFlags & AVIF_TRANSFORM_CLAP) &&
        !avifCropRectConvertCleanApertureBox(crop, &image->clap, image->width, image->height,
                                             image->yuvFormat, &diagnostics))
        return error_set(error, "damaged AVIF: an impossible crop");
    return true;
}

static bool read_header(struct picture_input *input, avifDecoder *decoder, struct error *error)
{
    const avifImage *image = decoder->image;
    struct photo_planes planes = {0};
    avifCropRect crop;
    struct cicp cicp = {image->colorPrimaries, image->transferCharacteristics,
                        image->matrixCoefficients, image->yuvRange == AVIF_RANGE_FULL};
    struct cicp named;
    if (cicp.transfer == CICP_UNKNOWN && icc_cicp(image->icc.data, image->icc.size, &named)) {
        cicp.primaries = named.primaries;
        cicp.transfer = named.transfer;
    }

    const struct cicp light = {cicp.primaries, cicp.transfer, 0, true};
    if (!photo_open(input, "AVIF", &light, image->depth, 16, error))
        return false;
    struct photo *photo = input->state;
    photo->cicp = planes.cicp = cicp;
    photo->orientation = orientation_of(image);
    input->format.alpha = decoder->alphaPresent && input->alpha == PICTURE_ALPHA_STRAIGHT;
    return photo_planes_ready(&planes, error) && crop_of(image, &crop, error) &&
           photo_size(input, crop.width, crop.height, photo->orientation, error);
}

static bool avif_open(struct picture_input *input, struct error *error)
{
    avifDecoder *decoder = avifDecoderCreate();
    if (!decoder)
        return error_set(error, "out of memory");
    decoder->strictFlags = AVIF_STRICT_DISABLED;
    decoder->imageSizeLimit = PICTURE_PIXELS_MAX < AVIF_DEFAULT_IMAGE_SIZE_LIMIT
                                  ? (uint32_t)PICTURE_PIXELS_MAX
                                  : AVIF_DEFAULT_IMAGE_SIZE_LIMIT;
    decoder->maxThreads = 4;
    avifDecoderSetSource(decoder, AVIF_DECODER_SOURCE_PRIMARY_ITEM);
    avifDecoderSetIOMemory(decoder, input->data, input->bytes);

    const avifResult result = avifDecoderParse(decoder);
    if (result != AVIF_RESULT_OK)
        fail(decoder, result, error);
    else if (read_header(input, decoder, error)) {
        ((struct photo *)input->state)->library = decoder;
        return true;
    }

    avif_close(input);
    avifDecoderDestroy(decoder);
    return false;
}

static bool avif_read(struct picture_input *input, uint8_t *pixels, size_t pitch_bytes,
                      struct error *error)
{
    const struct photo *photo = input->state;
    avifDecoder *decoder = photo->library;
    const avifResult result = avifDecoderNextImage(decoder);
    if (result != AVIF_RESULT_OK)
        return fail(decoder, result, error);

    const avifImage *image = decoder->image;
    const avifPixelFormat format = image->yuvFormat;
    const avifChromaSamplePosition site = image->yuvChromaSamplePosition;
    const bool half_height = format == AVIF_PIXEL_FORMAT_YUV420;
    avifCropRect crop;
    struct photo_planes planes = {
        .width = image->width,
        .height = image->height,
        .bits = image->depth,
        .half_width = half_height || format == AVIF_PIXEL_FORMAT_YUV422,
        .half_height = half_height,
        .on_column = half_height && site != AVIF_CHROMA_SAMPLE_POSITION_UNKNOWN,
        .on_row = site == AVIF_CHROMA_SAMPLE_POSITION_COLOCATED,
        .multiplied = image->alphaPremultiplied,
        .cicp = photo->cicp,
    };
    for (int c = 0; c < 4; c++) {
        planes.plane[c] = c < 3 ? image->yuvPlanes[c] : image->alphaPlane;
        planes.pitch_bytes[c] = c < 3 ? image->yuvRowBytes[c] : image->alphaRowBytes;
        planes.wide[c] = image->depth > 8;
    }
    if (!photo_planes_ready(&planes, error) || !crop_of(image, &crop, error))
        return false;
    return photo_planes_put(input, &planes, crop.x, crop.y, crop.width, crop.height, pixels,
                            pitch_bytes, error);
}

const struct picture_kind picture_kind_avif = {avif_matches, avif_open, avif_read, avif_close,
                                               NULL};

#endif
