/* JPEG XL pictures through libjxl, which also turns them: PQ, HLG, and linear light.
 *
 * Linear light has 1.0 for SDR white, as PFM and OpenEXR have. If the picture names an intensity
 * above that of SDR, 1.0 is that many cd/m2.
 * SPDX-License-Identifier: Apache-2.0 */
#include "photo.h"

#include <string.h>

static bool jxl_matches(const uint8_t *data, size_t bytes)
{
    return (bytes >= 2 && !memcmp(data, "\xff\x0a", 2)) ||
           (bytes >= 12 && !memcmp(data, "\0\0\0\x0cJXL \r\n\x87\n", 12));
}

#ifndef COX_HAVE_JXL

const struct picture_kind picture_kind_jxl = {
    .matches = jxl_matches,
    .missing = "a JPEG XL picture, but this program was built without libjxl (Debian: libjxl-dev)"};

#else

#include <jxl/decode.h>
#include <jxl/version.h>
#include <stdio.h>
#include <stdlib.h>

/* SDR white of BT.2408, and the intensity that libjxl gives to SDR pictures. */
static const float white_nits = 203, sdr_nits = 255;

/* The `library` of the photograph. */
struct jxl {
    bool linear;
    float scale; /* of linear light */
    JxlColorEncoding encoding;
};

static void jxl_close(struct picture_input *input)
{
    struct photo *photo = input->state;
    if (photo)
        free(photo->library);
    free(photo);
    input->state = NULL;
}

/* A decoder with the whole file that stops at `events`. */
static JxlDecoder *begin(const struct picture_input *input, int events)
{
    JxlDecoder *decoder = JxlDecoderCreate(NULL);
    if (!decoder)
        return NULL;
    JxlDecoderSubscribeEvents(decoder, events);
    JxlDecoderSetInput(decoder, input->data, input->bytes);
    return decoder;
}

static struct primaries primaries_of(const JxlColorEncoding *encoding)
{
    struct primaries primaries = {{0.64, 0.33}, {0.30, 0.60}, {0.15, 0.06}, {0.3127, 0.3290}};
    if (encoding->color_space == JXL_COLOR_SPACE_RGB) {
        memcpy(primaries.red, encoding->primaries_red_xy, sizeof primaries.red);
        memcpy(primaries.green, encoding->primaries_green_xy, sizeof primaries.green);
        memcpy(primaries.blue, encoding->primaries_blue_xy, sizeof primaries.blue);
        memcpy(primaries.white, encoding->white_point_xy, sizeof primaries.white);
    }
    return primaries;
}

/* The curve of PQ or HLG is photo_open's; the primaries are those of the file. */
static bool choose_light(struct picture_input *input, const JxlBasicInfo *info,
                         const JxlColorEncoding *encoding, struct error *error)
{
    const bool floats = info->exponent_bits_per_sample > 0;
    const bool linear = encoding->transfer_function == JXL_TRANSFER_FUNCTION_LINEAR &&
                        (floats || info->intensity_target > sdr_nits);
    const struct cicp cicp = {9, linear ? CICP_PQ : (unsigned)encoding->transfer_function, 0, true};
    const struct primaries primaries = primaries_of(encoding);
    double weights[3];

    if (!photo_open(input, "JPEG XL", &cicp, info->bits_per_sample, 16, error))
        return false;
    struct photo *photo = input->state;
    struct jxl *jxl = photo->library = calloc(1, sizeof *jxl);
    if (!jxl)
        return error_set(error, "out of memory");
    jxl->linear = linear;
    jxl->scale = info->intensity_target > sdr_nits ? info->intensity_target / white_nits : 1;
    jxl->encoding = *encoding;

    struct photo_light *light = &photo->light;
    const enum primaries_match match = primaries_to_bt709(&primaries, light->matrix);
    if (match == PRIMARIES_BROKEN || !primaries_luminance(&primaries, weights))
        return error_set(error, "damaged JPEG XL: impossible primaries");
    light->convert = match == PRIMARIES_CONVERT;
    for (int c = 0; c < 3; c++)
        light->weights[c] = (float)weights[c];

    if (linear)
        input->format.pixel = COX_PIXEL_RGBA_FLOAT;
    snprintf(input->format.text, sizeof input->format.text, "JPEG XL, %u bits, %s",
             info->bits_per_sample, linear ? "linear" : photo_transfer_name(cicp.transfer));
    return true;
}

/* libjxl 0.9 dropped a parameter that had no use. */
#if JPEGXL_NUMERIC_VERSION >= JPEGXL_COMPUTE_NUMERIC_VERSION(0, 9, 0)
#define GET_COLOURS(decoder, encoding) \
    JxlDecoderGetColorAsEncodedProfile(decoder, JXL_COLOR_PROFILE_TARGET_ORIGINAL, encoding)
#else
#define GET_COLOURS(decoder, encoding) \
    JxlDecoderGetColorAsEncodedProfile(decoder, NULL, JXL_COLOR_PROFILE_TARGET_ORIGINAL, encoding)
#endif

static bool read_header(struct picture_input *input, JxlDecoder *decoder, struct error *error)
{
    JxlBasicInfo info;
    JxlColorEncoding encoding;
    JxlDecoderStatus status = JxlDecoderProcessInput(decoder);
    if (status == JXL_DEC_BASIC_INFO && JxlDecoderGetBasicInfo(decoder, &info) == JXL_DEC_SUCCESS)
        status = JxlDecoderProcessInput(decoder);
    if (status != JXL_DEC_COLOR_ENCODING)
        return error_set(error, "damaged or truncated JPEG XL");

    if (GET_COLOURS(decoder, &encoding) != JXL_DEC_SUCCESS)
        return error_set(error, "the JPEG XL picture has an ICC profile that is not PQ or HLG");
    if (!choose_light(input, &info, &encoding, error))
        return false;
    input->format.alpha = info.alpha_bits && input->alpha == PICTURE_ALPHA_STRAIGHT;
    return photo_size(input, info.xsize, info.ysize, 1, error);
}

static bool jxl_open(struct picture_input *input, struct error *error)
{
    JxlDecoder *decoder = begin(input, JXL_DEC_BASIC_INFO | JXL_DEC_COLOR_ENCODING);
    if (!decoder)
        return error_set(error, "out of memory");

    const bool good = read_header(input, decoder, error);
    JxlDecoderDestroy(decoder);
    if (!good)
        jxl_close(input);
    return good;
}

struct target {
    const struct picture_input *input;
    uint8_t *pixels;
    size_t pitch_bytes;
};

/* A part of a row that is decoded. */
static void on_pixels(void *user, size_t x, size_t y, size_t count, const void *from)
{
    const struct target *target = user;
    const struct picture_input *input = target->input;
    const struct photo *photo = input->state;
    const struct jxl *jxl = photo->library;
    const struct photo_light *light = &photo->light;
    uint8_t *row = target->pixels + y * target->pitch_bytes;
    if (x >= input->format.width || count > input->format.width - x || y >= input->format.height)
        return;
    if (!jxl->linear) {
        photo_put(input, light, from, (uint32_t)count, row + x * 8, 8);
        return;
    }

    const float *rgba = from;
    for (size_t i = 0; i < count; i++, rgba += 4) {
        float rgb[3] = {rgba[0] * jxl->scale, rgba[1] * jxl->scale, rgba[2] * jxl->scale};
        if (light->convert)
            photo_convert(light->matrix, rgb);
        photo_put_light(input, rgb, rgba[3], row + (x + i) * 16);
    }
}

static bool decode(JxlDecoder *decoder, struct target *target)
{
    const struct photo *photo = target->input->state;
    const struct jxl *jxl = photo->library;
    const JxlPixelFormat format = {4, jxl->linear ? JXL_TYPE_FLOAT : JXL_TYPE_UINT16,
                                   JXL_LITTLE_ENDIAN, 0};

    for (;;)
        switch (JxlDecoderProcessInput(decoder)) {
        case JXL_DEC_COLOR_ENCODING: /* the file's own, not libjxl's choice; no effect if they are */
            JxlDecoderSetPreferredColorProfile(decoder, &jxl->encoding);
            break;
        case JXL_DEC_NEED_IMAGE_OUT_BUFFER:
            if (JxlDecoderSetImageOutCallback(decoder, &format, on_pixels, target))
                return false;
            break;
        case JXL_DEC_FULL_IMAGE: /* of an animation, the first frame */
        case JXL_DEC_SUCCESS:
            return true;
        default:
            return false;
        }
}

static bool jxl_read(struct picture_input *input, uint8_t *pixels, size_t pitch_bytes,
                     struct error *error)
{
    struct target target = {input, pixels, pitch_bytes};
    JxlDecoder *decoder = begin(input, JXL_DEC_COLOR_ENCODING | JXL_DEC_FULL_IMAGE);
    if (!decoder)
        return error_set(error, "out of memory");

    JxlDecoderSetUnpremultiplyAlpha(decoder, JXL_TRUE);
    const bool good = decode(decoder, &target);
    JxlDecoderDestroy(decoder);
    return good || error_set(error, "damaged or truncated JPEG XL");
}

const struct picture_kind picture_kind_jxl = {jxl_matches, jxl_open, jxl_read, jxl_close, NULL};

#endif
