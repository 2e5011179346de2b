/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"
#include "media/muxed.h"
#include "messages.h"
#include "option_table.h"

#include <inttypes.h>
#include <math.h>

bool source_open(struct source *from)
{
    const struct options *options = from->options;
    struct error error;
    if (options->raw_by_name && video_kind_of(options->input) == VIDEO_KIND_NONE)
        return message_error(
            "%s: the size of raw frames is unknown; use --size, such as --size 3840x2160",
            options->input);
    struct video_raw raw = options->raw;
    raw.goes_on = !options->strict && !options->step && !options->scenes;
    raw.tell = message_file_warning;
    raw.tell_user = (void *)(uintptr_t)options->input;
    if (!video_input_open(&from->input, options->input, &raw, &error))
        return message_file_error(options->input, &error);

    if (options->no_cache)
        video_input_without_cache(from->input);
    from->format = video_input_format(from->input);
    if (raw.has_stream && !from->format->can_name_colours)
        return message_error("--stream is for containers, but %s is %s", options->input,
                             from->format->text);
    if (raw.hwdec && !from->format->can_name_colours)
        return message_error("--hwdec is for containers, but %s is %s", options->input,
                             from->format->text);

    uint64_t first = options->start;
    if (options->to == OUTPUT_PNG)
        first = options->frame;
    if (from->format->frames && first >= from->format->frames)
        return message_error("%s: has no frame %" PRIu64 "; the last frame is %" PRIu64,
                             options->input, first, from->format->frames - 1);
    return true;
}

bool source_input_sound(struct video_input *input, const char *path, bool strict)
{
    const bool fatal = strict || video_input_damaged(input);
    char notice[VIDEO_NOTICE_BYTES];
    bool sound = true;

    for (uint32_t n = 0; video_input_notice(input, n, notice, sizeof notice); n++) {
        sound = !fatal;
        if (fatal)
            message_error("%s: %s", path, notice);
        else
            message_warning("%s: %s", path, notice);
    }
    return sound;
}

bool source_was_sound(const struct source *from)
{
    return source_input_sound(from->input, from->options->input, from->options->strict);
}

bool source_is_packed_rgb(const struct cox_video_format *pixel)
{
    return pixel->layout == COX_VIDEO_RGBA || pixel->layout == COX_VIDEO_BGRA;
}

/* The samples of the output. y4m keeps the input's chroma, raw formats have their own. */
static struct cox_video_format target_pixel(const struct options *options,
                                            const struct cox_video_format *in)
{
    const bool rgb = source_is_packed_rgb(in) || in->layout == COX_VIDEO_GBR;
    const bool semi = options_want_raw(options) ||
                      (options_want_finished(options) &&
                       muxed_interleaves(options->encoder, options->depth));
    struct cox_video_format out = {.layout = COX_VIDEO_PLANAR,
                                   .depth = options->depth,
                                   .chroma_x_log2 = in->chroma_x_log2,
                                   .chroma_y_log2 = in->chroma_y_log2,
                                   .chroma_location = in->chroma_location,
                                   .range = options->full_range ? COX_RANGE_FULL
                                                                : COX_RANGE_LIMITED};
    if (options->to == OUTPUT_PNG)
        return (struct cox_video_format){
            .layout = COX_VIDEO_RGBA, .depth = options->depth, .range = COX_RANGE_FULL};

    if (rgb || semi)
        out.chroma_x_log2 = out.chroma_y_log2 = 1;
    if ((rgb || semi) && !in->chroma_x_log2)
        out.chroma_location = COX_CHROMA_LEFT;
    if (semi)
        out.layout = COX_VIDEO_SEMI_PLANAR;
    out.msb_aligned = semi && out.depth > 8;
    return out;
}

/* Whether Y'CbCr frames without a transfer curve may be taken for PQ: HDR has more than 8 bits,
 * wider primaries than BT.709, and a codec that is used for HDR. False, and `error` says how they
 * can be taken for HDR all the same. */
static bool may_be_pq(const struct video_format *format, const struct video_colours *colours,
                      struct error *error)
{
    const bool narrow = colours->has_primaries && (colours->primaries == COX_PRIMARIES_BT709 ||
                                                   colours->primaries == COX_PRIMARIES_BT601_525 ||
                                                   colours->primaries == COX_PRIMARIES_BT601_625);
    const char *reason = "8-bit video";
    if (colours->other_transfer[0])
        return error_set(error,
                         "not HDR video (%s, transfer %s); use --transfer pq or hlg to treat it as "
                         "HDR%s",
                         format->text, colours->other_transfer,
                         colours->is_sdr ? ", or auto to pass SDR unchanged" : "");
    if (format->pixel.depth > 8 && !narrow && !format->usually_sdr)
        return true;

    if (narrow && colours->primaries == COX_PRIMARIES_BT709)
        reason = "video with BT.709 primaries";
    else if (narrow)
        reason = "video with BT.601 primaries";
    else if (format->pixel.depth > 8)
        reason = "video of this size and codec";
    return error_set(
        error,
        "it names no transfer curve, and %s is usually SDR (%s); use --transfer pq or hlg to treat "
        "it as HDR",
        reason, format->text);
}

/* The side that keeps the proportion when `of` becomes `to`: the nearest even number to
 * `side` * `to` / `of`. */
static uint32_t in_proportion(uint32_t side, uint32_t of, uint32_t to)
{
    const uint32_t even = (uint32_t)(((uint64_t)side * to + of) / (2 * (uint64_t)of) * 2);
    return even ? even : 1;
}

static bool eighth_to_eightfold(uint32_t from, uint32_t to)
{
    return to && (uint64_t)to * 8 >= from && (uint64_t)from * 8 >= to && to <= 65536;
}

/* The size of a frame on a sheet, upright, unless --scale is given: CELL_WIDTH wide with square
 * pixels, but not larger than the frame, and not smaller than an eighth of it. */
static void choose_cell(struct source *from)
{
    enum { CELL_WIDTH = 320 };
    const struct video_format *format = from->format;
    struct cox_video_shape *shape = &from->plan.shape;
    double width = format->width, height = format->height;
    if (format->aspect.num && format->aspect.den)
        width = width * format->aspect.num / format->aspect.den;

    double scale = CELL_WIDTH / (format->turn.transposed ? height : width);
    scale = fmin(scale, 1);
    scale = fmax(scale, fmax(format->width / 8.0 / width, format->height / 8.0 / height));
    width = fmin(fmax(ceil(width * scale), 1), 8.0 * format->width);
    height = fmin(fmax(ceil(height * scale), 1), 8.0 * format->height);

    shape->scale = COX_SCALE_FILTER;
    shape->out_width = (uint32_t)fmin(width, VIDEO_SIDE_MAX);
    shape->out_height = (uint32_t)fmin(height, VIDEO_SIDE_MAX);
}

/* The output's size, if --scale is given. */
static bool choose_size(struct source *from)
{
    const struct options *options = from->options;
    struct cox_video_shape *shape = &from->plan.shape;
    const uint32_t width = shape->width, height = shape->height;
    if (options->sheet_count && !options->scale && !from->format->light)
        choose_cell(from);
    if (options->scale == COX_SCALE_HALF && (width % 2 || height % 2))
        return message_error("--scale 1/2 needs even sides, but %s is %u x %u; use --scale %ux%u",
                             options->input, width, height, (width + 1) / 2, (height + 1) / 2);
    if (options->scale != COX_SCALE_FILTER)
        return true;
    if (from->format->light)
        return message_error(
            "--scale WxH is not supported for half-float RGBA (%s); use --scale 1/2",
            options->input);

    /* The size of a still is meant upright. */
    const bool across = options->to == OUTPUT_PNG && from->format->turn.transposed;
    shape->out_width = across ? options->scale_height : options->scale_width;
    shape->out_height = across ? options->scale_width : options->scale_height;
    if (!shape->out_width)
        shape->out_width = in_proportion(width, height, shape->out_height);
    if (!shape->out_height)
        shape->out_height = in_proportion(height, width, shape->out_width);
    if (!eighth_to_eightfold(width, shape->out_width) ||
        !eighth_to_eightfold(height, shape->out_height))
        return message_error("%s is %u x %u: --scale %ux%u must be from 1/8 to 8 times that",
                             options->input, width, height, shape->out_width, shape->out_height);
    return true;
}

/* The aspect of an output sample with which the picture keeps its own aspect. */
static struct video_rational scaled_aspect(const struct video_format *from, uint32_t width,
                                           uint32_t height)
{
    uint64_t num = (uint64_t)from->aspect.num * from->width * height;
    uint64_t den = (uint64_t)from->aspect.den * from->height * width;
    uint64_t a = num, b = den;
    if (!num || !den || (from->width == width && from->height == height))
        return from->aspect;

    while (b) { /* the greatest common divisor */
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    for (num /= a, den /= a; num > INT32_MAX || den > INT32_MAX;) {
        num /= 2;
        den /= 2;
    }

    if (!num || !den)
        return from->aspect;
    return (struct video_rational){(uint32_t)num, (uint32_t)den};
}

void source_out_size(const struct cox_video_shape *shape, uint32_t *width, uint32_t *height)
{
    const bool half = shape->scale == COX_SCALE_HALF;
    *width = shape->width >> half;
    *height = shape->height >> half;
    if (shape->scale == COX_SCALE_FILTER) {
        *width = shape->out_width;
        *height = shape->out_height;
    }
}

void source_set_target(struct source *from)
{
    const struct video_format *format = from->format;
    struct film_plan *plan = &from->plan;
    source_out_size(&plan->shape, &plan->out_width, &plan->out_height);

    from->target = (struct video_format){
        .width = plan->out_width,
        .height = plan->out_height,
        .pixel = plan->shape.out,
        .rate = format->rate,
        .tick = format->tick,
        .aspect = scaled_aspect(format, plan->out_width, plan->out_height),
        .turn = format->turn,
        .interlacing = format->interlacing,
        .colours = {.has_transfer = plan->shape.encoding == COX_ENCODING_PQ,
                    .transfer = COX_TRANSFER_PQ,
                    .has_primaries = plan->shape.out_primaries == COX_OUT_BT2020,
                    .primaries = COX_PRIMARIES_BT2020}};
    if (from->options->rate.num)
        from->target.rate = from->options->rate;
}

double source_white_nits(const struct options *options)
{
    return options->sdr_white_nits > 0 ? options->sdr_white_nits : 203.0;
}

/* Take a peak of the metadata; 0 = none. A possible one is at least `least` and at most 10 000 cd/m2,
 * where PQ ends. */
static void note_known_peak(struct source *from, double nits, double least, const char *which)
{
    if (nits <= 0)
        return;
    if (nits < least || nits > 10000) {
        from->odd_peak_nits = nits;
        return;
    }

    from->known_peak_nits = nits;
    from->known_peak = which;
}

/* The peak of the scene, else that of the mastering display, else that of the brightest pixel. A
 * film may be darker than SDR white, but hardly a display. */
static void note_known_peaks(struct source *from, const struct video_colours *colours)
{
    from->known_peak_nits = from->odd_peak_nits = 0;
    from->known_peak = NULL;
    note_known_peak(from, colours->max_cll_nits, 1, "of the brightest pixel (MaxCLL)");
    note_known_peak(from, colours->mastering_peak_nits, source_white_nits(from->options),
                    "of the mastering display");
    note_known_peak(from, colours->scene_peak_nits, 1, "of the scene");
}

/* The known peak for the curve, which is not below SDR white; 0 = none. */
static float known_peak(const struct source *from)
{
    if (!from->known_peak)
        return 0;
    return (float)fmax(from->known_peak_nits, source_white_nits(from->options));
}

/* Primaries and matrix. The option sets both. */
static bool choose_primaries(struct cox_video_shape *shape, enum cox_transfer transfer,
                             const struct video_colours *colours, struct error *error)
{
    if (colours->other_primaries[0])
        return error_set(error,
                         "its primaries (%s) are not supported; use --primaries to choose others",
                         colours->other_primaries);

    shape->primaries = COX_PRIMARIES_BT2020;
    if (transfer == COX_TRANSFER_SDR)
        shape->primaries = COX_PRIMARIES_BT709;
    if (colours->has_primaries)
        shape->primaries = colours->primaries;
    shape->matrix = colours->matrix;
    return true;
}

static bool is_bt601(enum cox_primaries primaries)
{
    return primaries == COX_PRIMARIES_BT601_525 || primaries == COX_PRIMARIES_BT601_625;
}

/* What the options have not chosen: transfer curve, primaries, range, chroma location, and what
 * becomes of colours that SDR lacks. */
static bool choose_colours(struct source *from, struct film_plan *plan,
                           const struct video_colours *colours, struct error *error)
{
    const struct film_chosen chosen = plan->chosen;
    struct cox_video_shape *shape = &plan->shape;
    const bool follows = !chosen.transfer && !from->format->light;
    const bool passes = follows && colours->is_sdr && from->passes_sdr;
    const bool assumed = follows && !colours->has_transfer && !passes;
    if (assumed && !may_be_pq(from->format, colours, error))
        return false;

    enum cox_transfer transfer = shape->transfer;
    if (passes)
        transfer = COX_TRANSFER_SDR;
    else if (follows)
        transfer = colours->has_transfer ? colours->transfer : COX_TRANSFER_PQ;
    if (!chosen.primaries && !choose_primaries(shape, transfer, colours, error))
        return false;

    shape->transfer = transfer;
    from->assumed |= assumed;
    from->passes_sdr |= follows && !passes;
    /* An option for the colours is for those of the base layer. */
    shape->reshape = colours->reshapes && follows && !chosen.primaries && !chosen.range;
    if (from->options->lut && !passes) {
        if (from->looked_up && transfer != from->lut_transfer)
            return error_set(error,
                             "its curve changes, but a table is for one curve; map each part "
                             "with --start, --frames and its own --lut");
        from->looked_up = true;
        from->lut_transfer = transfer;
    }
    if (shape->reshape && from->options->lut)
        return error_set(error, "it is Dolby Vision, whose reshaped signal no --lut is for; use "
                                "--transfer pq to map its base layer");
    if (!chosen.range)
        shape->in.range = colours->range;
    shape->in.chroma_location = colours->chroma_location;

    /* SDR of BT.601 hardly leaves BT.709. Compression would only make it paler. */
    const bool fits = shape->primaries == COX_PRIMARIES_BT709 ||
                      shape->out_primaries == COX_OUT_BT2020 ||
                      (transfer == COX_TRANSFER_SDR && is_bt601(shape->primaries));
    if (!chosen.gamut && fits)
        shape->gamut = COX_GAMUT_CLIP;
    else if (!chosen.gamut)
        shape->gamut = COX_GAMUT_COMPRESS;
    return true;
}

bool source_recolour(struct source *from, struct film_plan *plan, uint64_t frame,
                     const struct video_colours *colours, struct error *error)
{
    const bool assumed = from->assumed;
    struct error why;
    if (!choose_colours(from, plan, colours, &why)) {
        if (!plan->chosen.transfer && colours->is_sdr)
            error_set(&why,
                      "not HDR video (transfer %s); use --transfer auto to pass SDR unchanged",
                      colours->other_transfer);
        else if (!plan->chosen.transfer && colours->other_transfer[0])
            error_set(&why,
                      "not HDR video (transfer %s); end before it with --frames, or begin "
                      "after it with --start",
                      colours->other_transfer);
        return error_set(error, "frame %" PRIu64 " (the first is 0): %s", frame, why.text);
    }

    if (!assumed && from->assumed && from->format->can_name_colours)
        message_warning("%s: from frame %" PRIu64 " on it names no transfer curve and is taken for "
                        "PQ, but may be SDR; use --transfer if it is HDR",
                        from->options->input, frame);
    if (plan->shape.transfer == COX_TRANSFER_SDR && !plan->chosen.transfer &&
        !from->options->passes_sdr && !from->told_sdr) {
        message_warning("%s: frame %" PRIu64 " is SDR; such frames pass unchanged",
                        from->options->input, frame);
        from->told_sdr = true;
    }
    if (plan->steering.on) {
        note_known_peaks(from, colours);
        plan->steering.known_peak_nits = known_peak(from);
    }
    return true;
}

/* Warn if the colours may not be right. */
static void note_tags(const struct source *from)
{
    const char *input = from->options->input;
    const struct video_format *format = from->format;
    if (format->conflict[0])
        message_warning("%s: the frames name %s in the container; the frames are followed", input,
                        format->conflict);
    if (format->has_full_enhancement)
        message_warning("%s: the enhancement layer of Dolby Vision (FEL) is not applied", input);
    if (from->assumed && format->can_name_colours)
        message_warning("%s: it names no transfer curve and is taken for PQ, but may be SDR; use "
                        "--transfer if it is HDR",
                        input);
}

/* The colours of the first frame. If the film begins later, its own frames decide. */
static bool choose_first_colours(struct source *from)
{
    const struct options *options = from->options;
    const bool begins_later = options->start || options->frame_list || options->sheet_count;
    struct film_plan *plan = &from->plan;
    struct error error;
    plan->chosen = (struct film_chosen){.transfer = options->has_transfer,
                                        .primaries = options->has_primaries,
                                        .range = options->has_range,
                                        .gamut = options->has_gamut};
    from->passes_sdr = options->passes_sdr;
    if (options->has_transfer)
        plan->shape.transfer = options->transfer;
    else if (from->format->light)
        plan->shape.transfer = COX_TRANSFER_LINEAR;
    if (options->has_primaries)
        plan->shape.primaries = options->primaries;
    if (options->has_range)
        plan->shape.in.range = options->range;
    if (options->has_gamut)
        plan->shape.gamut = options->gamut;

    if (choose_colours(from, plan, &from->format->colours, &error)) {
        note_tags(from);
        return true;
    }
    return begins_later || message_file_error(options->input, &error);
}

/* Whether each frame's own light sets its curve. By default for files: for streams the last frame's
 * light is known sooner. */
static bool looks_ahead(const struct source *from)
{
    const struct options *options = from->options;
    if (options->to == OUTPUT_PNG)
        return true;
    if (options->given & OPTION_BIT(OPTION_LOOKAHEAD))
        return options->lookahead;

    return from->format->file_bytes > 0;
}

bool source_choose_shape(struct source *from)
{
    const struct options *options = from->options;
    const struct video_format *format = from->format;
    struct cox_video_shape *shape = &from->plan.shape;
    *shape = (struct cox_video_shape){.width = format->width,
                                      .height = format->height,
                                      .in = format->pixel,
                                      .out = target_pixel(options, &format->pixel),
                                      .transfer = COX_TRANSFER_PQ,
                                      .op = options->op,
                                      .desaturate_highlights = options->desaturate >= 0,
                                      .dither = options->dither,
                                      .scale = options->scale};
    if (!choose_size(from))
        return false;
    if (options->to == OUTPUT_PNG) /* which names sRGB */
        shape->encoding = COX_ENCODING_SRGB;
    if (options->hdr_nits > 0)
        shape->encoding = COX_ENCODING_PQ;
    if (options->wide)
        shape->out_primaries = COX_OUT_BT2020;
    if (!options->has_dither && shape->out.depth < shape->in.depth)
        shape->dither = COX_DITHER_ORDERED;

    if (!choose_first_colours(from))
        return false;
    if (options->has_range && source_is_packed_rgb(&format->pixel))
        return message_error("--range is for Y'CbCr and planar R'G'B', but %s is RGBA or BGRA",
                             options->input);

    if (format->light && shape->transfer != COX_TRANSFER_LINEAR)
        return message_error(
            "--transfer pq, hlg and sdr are for integer samples, but %s is half-float RGBA",
            options->input);
    if (format->light && options->lut)
        return message_error("--lut is for a signal, but %s is half-float RGBA", options->input);
    if (!format->light && shape->transfer == COX_TRANSFER_LINEAR)
        return message_error("--transfer linear is for half-float RGBA, but %s has integer samples",
                             options->input);
    if (format->light && options->hdr_nits > 0) /* its 1.0 would be the display's peak */
        return message_error("--hdr is not supported for half-float RGBA (%s)", options->input);
    source_set_target(from);
    return true;
}

struct cox_video_settings source_settings(const struct options *options)
{
    return (struct cox_video_settings){.sdr_white_nits = (float)options->sdr_white_nits,
                                       .hlg_peak_nits = (float)options->hlg_peak_nits,
                                       .desaturate = options->desaturate,
                                       .detail = options->detail,
                                       .gamut_knee = options->gamut_knee,
                                       .gain = (float)exp2(options->exposure_stops)};
}

void source_choose_light(struct source *from)
{
    const struct options *options = from->options;
    struct film_plan *plan = &from->plan;

    note_known_peaks(from, &from->format->colours);
    plan->settings = source_settings(options);
    if (options->peak_auto) {
        plan->steering.on = true;
        plan->steering.lookahead = looks_ahead(from);
        plan->steering.known_peak_nits = known_peak(from);
        plan->steering.trusts = options->trust_metadata;
    } else {
        plan->settings.peak_nits = (float)options->peak_nits;
    }
}
