/* Which colours a video has. Each property is what its frames name, else what its container names.
 *
 * A decoder sets the frames' properties from its own bitstream, or leaves those of the container.
 * Some decoders also set properties that their bitstream does not name. Such values are taken for
 * unspecified here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_input.h"

#include <libavutil/hdr_dynamic_metadata.h>
#include <libavutil/mastering_display_metadata.h>
#include <math.h>
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
static bool take_space(struct video_colours *colours, const struct libav_colours *named, bool rgb,
                       struct error *error)
{
    enum cox_primaries primaries;
    enum cox_matrix matrix;
    if (!cox_av_colours(AVCOL_PRI_UNSPECIFIED, named->matrix, &primaries, &matrix) ||
        (named->matrix == AVCOL_SPC_RGB && !rgb))
        return error_set(error,
                         "unsupported colour matrix %s; supported: bt2020nc, bt709, smpte170m, "
                         "bt470bg",
                         libav_name(lib.av_color_space_name(named->matrix)));

    /* The matrix says which primaries are meant if nothing else does. */
    colours->primaries = primaries;
    colours->matrix = matrix;
    colours->has_primaries = matrix != COX_MATRIX_AUTO;
    if (named->primaries == AVCOL_PRI_UNSPECIFIED)
        return true;

    colours->has_primaries = cox_av_colours(named->primaries, named->matrix, &colours->primaries,
                                            &matrix);
    if (!colours->has_primaries)
        snprintf(colours->other_primaries, sizeof colours->other_primaries, "%s",
                 libav_name(lib.av_color_primaries_name(named->primaries)));
    return true;
}

static void take_light(struct video_colours *colours, const AVMasteringDisplayMetadata *display,
                       const AVContentLightMetadata *content)
{
    if (display && display->has_luminance && display->max_luminance.den)
        colours->mastering_peak_nits = fmax(av_q2d(display->max_luminance), 0);
    if (content)
        colours->max_cll_nits = content->MaxCLL;
}

/* What the container says about light, then what the frame says. */
static void take_metadata(struct video_colours *colours, const struct libav *libav)
{
    enum { STREAM_DISPLAY_BYTES = offsetof(AVMasteringDisplayMetadata, has_luminance) };
    const AVStream *stream = libav->container->streams[libav->stream];

    take_light(colours,
               libav_stream_data(stream, AV_PKT_DATA_MASTERING_DISPLAY_METADATA,
                                 STREAM_DISPLAY_BYTES),
               libav_stream_data(stream, AV_PKT_DATA_CONTENT_LIGHT_LEVEL,
                                 sizeof(AVContentLightMetadata)));
    take_light(colours,
               libav_frame_data(libav->frame, AV_FRAME_DATA_MASTERING_DISPLAY_METADATA,
                                sizeof(AVMasteringDisplayMetadata)),
               libav_frame_data(libav->frame, AV_FRAME_DATA_CONTENT_LIGHT_LEVEL,
                                sizeof(AVContentLightMetadata)));
}

/* HDR10+ (SMPTE ST 2094-40). */
static void take_scene(struct video_colours *colours, const AVFrame *frame)
{
    const AVDynamicHDRPlus *scene = libav_frame_data(frame, AV_FRAME_DATA_DYNAMIC_HDR_PLUS,
                                                     sizeof *scene);
    if (scene)
        colours->scene_peak_nits = cox_av_hdr10plus_peak_nits(scene);
}

void libav_take_hdr10plus(struct video_frame *about, const AVFrame *frame)
{
    const AVDynamicHDRPlus *scene = libav_frame_data(frame, AV_FRAME_DATA_DYNAMIC_HDR_PLUS,
                                                     sizeof *scene);
    about->has_hdr10plus = scene && cox_av_hdr10plus_curve(scene, &about->hdr10plus);
}

static void take_transfer(struct video_colours *colours,
                          enum AVColorTransferCharacteristic transfer)
{
    const bool is_hlg = transfer == AVCOL_TRC_ARIB_STD_B67;
    colours->has_transfer = is_hlg || transfer == AVCOL_TRC_SMPTE2084;
    colours->transfer = is_hlg ? COX_TRANSFER_HLG : COX_TRANSFER_PQ;
    colours->is_sdr = cox_av_curve_is_sdr(transfer);

    if (!colours->has_transfer && transfer != AVCOL_TRC_UNSPECIFIED)
        snprintf(colours->other_transfer, sizeof colours->other_transfer, "%s",
                 libav_name(lib.av_color_transfer_name(transfer)));
}

bool libav_take_colours(struct video_colours *colours, const struct libav *libav,
                        struct error *error)
{
    const struct libav_colours frame = colours_of_frame(libav);
    const struct libav_colours named = merge(&frame, &libav->named);
    struct cox_video_format pixel = {0};

    cox_av_format(libav->frame->format, &pixel);
    *colours = (struct video_colours){.range = pixel.range,
                                      .chroma_location = cox_av_site(named.site)};
    take_transfer(colours, named.transfer);

    colours->has_range = named.range == AVCOL_RANGE_MPEG || named.range == AVCOL_RANGE_JPEG;
    if (named.range == AVCOL_RANGE_JPEG)
        colours->range = COX_RANGE_FULL;
    else if (named.range == AVCOL_RANGE_MPEG)
        colours->range = COX_RANGE_LIMITED;
    take_metadata(colours, libav);
    take_scene(colours, libav->frame);

    if (libav_dolby_reshapes(libav)) {
        colours->reshapes = colours->has_transfer = colours->has_primaries = true;
        colours->transfer = COX_TRANSFER_PQ;
        colours->primaries = COX_PRIMARIES_BT2020;
        colours->other_transfer[0] = '\0';
        colours->is_sdr = false;
        colours->scene_peak_nits = (double)libav->dolby.scene_peak_nits;
        return true;
    }
    return take_space(colours, &named, is_rgb(pixel.layout), error);
}

void libav_compare_colours(struct video_format *format, const struct libav *libav)
{
    const struct libav_colours of_frame = colours_of_frame(libav), *frames = &of_frame,
                               *container = &libav->named;
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

#endif
