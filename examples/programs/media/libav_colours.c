/* Which colours a video has. Each property is what its frames name, else what its container names.
 *
 * A decoder sets the frames' properties from its own bitstream, or leaves those of the container.
 * Some decoders also set properties that their bitstream does not name. Such values are taken for
 * unspecified here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_input.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct libav_colours libav_no_colours = {.primaries = AVCOL_PRI_UNSPECIFIED,
                                               .transfer = AVCOL_TRC_UNSPECIFIED,
                                               .matrix = AVCOL_SPC_UNSPECIFIED};

static bool names_primaries(enum AVColorPrimaries primaries)
{
    return primaries != AVCOL_PRI_UNSPECIFIED && primaries != AVCOL_PRI_RESERVED0;
}

static bool names_transfer(enum AVColorTransferCharacteristic transfer)
{
    return transfer != AVCOL_TRC_UNSPECIFIED && transfer != AVCOL_TRC_RESERVED0;
}

static bool names_matrix(enum AVColorSpace matrix)
{
    return matrix != AVCOL_SPC_UNSPECIFIED && matrix != AVCOL_SPC_RESERVED;
}

/* What the bitstream names, without what only its decoder says. */
static struct libav_colours colours_of_frame(const struct libav *libav)
{
    const AVFrame *frame = libav->frame;
    struct libav_colours colours = {.primaries = frame->color_primaries,
                                    .transfer = frame->color_trc,
                                    .matrix = frame->colorspace,
                                    .range = frame->color_range,
                                    .site = frame->chroma_location};

    /* DNxHR has two bits for the matrix. Encoders leave them at 0, which means BT.709. */
    const bool two_bits = libav->decoder->codec_id == AV_CODEC_ID_DNXHD;
    if (two_bits && colours.matrix == AVCOL_SPC_BT709 &&
        (names_matrix(libav->named.matrix) || names_primaries(libav->named.primaries)))
        colours.matrix = AVCOL_SPC_UNSPECIFIED;

    /* Decoders say "limited" and "left" if the bitstream names nothing. VP9 has no other property
     * than the matrix, so that the rest is the container's. */
    const bool only_matrix = libav->decoder->codec_id == AV_CODEC_ID_VP9;
    const bool silent = !names_matrix(colours.matrix) &&
                        (only_matrix || (!names_primaries(colours.primaries) &&
                                         !names_transfer(colours.transfer)));
    if (silent && colours.range == AVCOL_RANGE_MPEG && libav->named.range)
        colours.range = AVCOL_RANGE_UNSPECIFIED;
    if (colours.site == AVCHROMA_LOC_LEFT && libav->named.site)
        colours.site = AVCHROMA_LOC_UNSPECIFIED;
    return colours;
}

static void __attribute__((format(printf, 2, 3)))
add_conflict(struct video_format *format, const char *text, ...)
{
    const size_t length = strlen(format->conflict);
    va_list arguments;

    va_start(arguments, text);
    vsnprintf(format->conflict + length, sizeof format->conflict - length, text, arguments);
    va_end(arguments);
}

/* Note that frames and container name two values of a property. */
static void note_conflict(struct video_format *format, const char *property, const char *frames,
                          const char *container)
{
    add_conflict(format, "%s%s %s instead of %s", format->conflict[0] ? ", " : "", property,
                 libav_name(frames), libav_name(container));
}

/* HLG may be named as a curve of BT.2020 or BT.709, for receivers that do not know HLG. The frames'
 * "alternative transfer characteristics" then name HLG. */
static bool is_compatible_hlg(enum AVColorTransferCharacteristic frames,
                              enum AVColorTransferCharacteristic container)
{
    return frames == AVCOL_TRC_ARIB_STD_B67 &&
           (container == AVCOL_TRC_BT2020_10 || container == AVCOL_TRC_BT2020_12 ||
            container == AVCOL_TRC_BT709);
}

static void compare(struct video_format *format, const struct libav_colours *frames,
                    const struct libav_colours *container)
{
    if (names_primaries(frames->primaries) && names_primaries(container->primaries) &&
        frames->primaries != container->primaries)
        note_conflict(format, "primaries", lib.av_color_primaries_name(frames->primaries),
                      lib.av_color_primaries_name(container->primaries));
    if (names_transfer(frames->transfer) && names_transfer(container->transfer) &&
        frames->transfer != container->transfer &&
        !is_compatible_hlg(frames->transfer, container->transfer))
        note_conflict(format, "transfer", lib.av_color_transfer_name(frames->transfer),
                      lib.av_color_transfer_name(container->transfer));
    if (names_matrix(frames->matrix) && names_matrix(container->matrix) &&
        frames->matrix != container->matrix)
        note_conflict(format, "matrix", lib.av_color_space_name(frames->matrix),
                      lib.av_color_space_name(container->matrix));
    if (frames->range && container->range && frames->range != container->range)
        note_conflict(format, "range", lib.av_color_range_name(frames->range),
                      lib.av_color_range_name(container->range));
}

/* Each property from the frames, else from the container. */
static struct libav_colours merge(const struct libav_colours *frames,
                                  const struct libav_colours *container)
{
    struct libav_colours colours = *frames;
    if (!names_primaries(colours.primaries))
        colours.primaries = container->primaries;
    if (!names_transfer(colours.transfer))
        colours.transfer = container->transfer;
    if (!names_matrix(colours.matrix))
        colours.matrix = container->matrix;
    if (!colours.range)
        colours.range = container->range;
    if (!colours.site)
        colours.site = container->site;

    if (!names_primaries(colours.primaries))
        colours.primaries = AVCOL_PRI_UNSPECIFIED;
    if (!names_transfer(colours.transfer))
        colours.transfer = AVCOL_TRC_UNSPECIFIED;
    if (!names_matrix(colours.matrix))
        colours.matrix = AVCOL_SPC_UNSPECIFIED;
    return colours;
}

static bool is_rgb(enum cox_video_layout layout)
{
    return layout == COX_VIDEO_RGBA || layout == COX_VIDEO_BGRA || layout == COX_VIDEO_GBR;
}

/* The library's primaries and matrix. False if it does not have the matrix. */
static bool take_space(struct video_format *format, const struct libav_colours *colours,
                       struct error *error)
{
    const bool rgb = colours->matrix == AVCOL_SPC_RGB;
    enum cox_primaries primaries;
    enum cox_matrix matrix;
    if (!cox_av_colours(AVCOL_PRI_UNSPECIFIED, colours->matrix, &primaries, &matrix) ||
        (rgb && !is_rgb(format->pixel.layout)))
        return error_set(error,
                         "unsupported colour matrix %s; supported: bt2020nc, bt709, smpte170m, "
                         "bt470bg",
                         libav_name(lib.av_color_space_name(colours->matrix)));

    /* The matrix says which primaries are meant if nothing else does. */
    format->primaries = primaries;
    format->matrix = matrix;
    format->has_primaries = matrix != COX_MATRIX_AUTO;
    if (colours->primaries == AVCOL_PRI_UNSPECIFIED)
        return true;

    format->has_primaries = cox_av_colours(colours->primaries, colours->matrix, &format->primaries,
                                           &matrix);
    if (!format->has_primaries)
        snprintf(format->other_primaries, sizeof format->other_primaries, "%s",
                 libav_name(lib.av_color_primaries_name(colours->primaries)));
    return true;
}

bool libav_take_colours(struct video_format *format, const struct libav *libav,
                        enum AVColorTransferCharacteristic *transfer, struct error *error)
{
    const struct libav_colours frames = colours_of_frame(libav);
    const struct libav_colours colours = merge(&frames, &libav->named);
    compare(format, &frames, &libav->named);

    const bool is_hlg = colours.transfer == AVCOL_TRC_ARIB_STD_B67;
    *transfer = colours.transfer;
    format->has_transfer = is_hlg || colours.transfer == AVCOL_TRC_SMPTE2084;
    format->transfer = is_hlg ? COX_TRANSFER_HLG : COX_TRANSFER_PQ;

    format->has_range = colours.range == AVCOL_RANGE_MPEG || colours.range == AVCOL_RANGE_JPEG;
    if (colours.range == AVCOL_RANGE_JPEG)
        format->pixel.range = COX_RANGE_FULL;
    else if (colours.range == AVCOL_RANGE_MPEG)
        format->pixel.range = COX_RANGE_LIMITED;
    format->pixel.chroma_location = cox_av_site(colours.site);
    return take_space(format, &colours, error);
}

#endif
