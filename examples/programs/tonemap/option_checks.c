/* SPDX-License-Identifier: Apache-2.0 */
#include "option_checks.h"
#include "option_table.h"

#include <string.h>

/* The options of a step; of the whole film all but those that only steps take. */
static uint64_t step_bits(enum film_step step)
{
    static const unsigned groups[] = {[FILM_ANALYSE] = SETS_LOOK | IN_PIECES,
                                      [FILM_STEER] = IN_STEER,
                                      [FILM_MAP] = IN_PIECES | IN_MAP,
                                      [FILM_JOIN] = IN_JOIN};
    if (step == FILM_WHOLE)
        return ~(OPTION_BIT(OPTION_SHARE) | OPTION_BIT(OPTION_SOURCE));

    return option_group_bits(groups[step]);
}

/* --- Before the kind of the input is known --- */

/* Raw input: by --size and --format, or by the name's ending instead of --format. */
static bool check_raw(struct options *options, struct options_error *error)
{
    static const char *const endings[] = {"p010", "nv12", "yuv", "rgba16f", "v210", NULL};
    static const char *const formats[] = {"p010", "nv12", "yuv420p10", "rgba16f", "v210"};
    const bool size = options->given & OPTION_BIT(OPTION_SIZE);
    const bool format = options->given & OPTION_BIT(OPTION_FORMAT);
    const int ending = options_find_word(options_name_ending(options->input), endings);
    options->raw.given = size || format;
    options->raw_by_name = false;
    options->raw.rate = options->rate;

    if (format && !size)
        return options_refuse(
            error, "--format is for raw frames and needs --size too, such as --size 3840x2160");
    if (!format && ending >= 0) {
        options->raw_by_name = !size;
        return video_raw_find(formats[ending], &options->raw) ||
               options_refuse(error, "unknown format '%s'", formats[ending]);
    }
    if (size && !format)
        return options_refuse(error, "--size is for raw frames and needs --format too; formats: %s",
                              video_raw_names);
    return true;
}

/* Whether the step takes the options that were given. */
static bool check_step_takes(const struct options *options, struct options_error *error)
{
    const enum film_step step = options->step;
    const uint64_t refused = options->given & ~step_bits(step);
    const char *why = "";
    if (!refused)
        return true;
    if (step == FILM_WHOLE)
        return options_refuse(
            error, "--%s needs a step of a film in pieces: cox-tonemap analyse, map or join",
            option_first_name(refused));

    if (refused & option_group_bits(SETS_LOOK))
        why = "; the look is set by analyse";
    return options_refuse(error, "--%s is not an option of cox-tonemap %s%s",
                          option_first_name(refused), options_step_name(step), why);
}

static bool check_step(const struct options *options, struct options_error *error)
{
    const enum film_step step = options->step;
    const bool pieces = step == FILM_ANALYSE || step == FILM_MAP;
    const uint64_t look = options->given & option_group_bits(SETS_LOOK);
    if (!check_step_takes(options, error))
        return false;
    if (options->ranged && !pieces)
        return options_refuse(error, "--range FIRST:END is for cox-tonemap analyse and map; use "
                                     "--start and --frames here");
    if (options->ranged && options->share_count)
        return options_refuse(error, "--range and --share cannot be combined: both select frames");
    if (pieces && options->input_count > 1)
        return options_refuse(error, "cox-tonemap %s takes one film, but %u inputs are given",
                              options_step_name(step), options->input_count);

    if (step == FILM_MAP && !options->scenes)
        return options_refuse(error,
                              "cox-tonemap map needs --scene FILE, which cox-tonemap steer writes");
    if (options->scenes && look)
        return options_refuse(error,
                              "--%s cannot be combined with --scene: the scene file sets the look",
                              option_first_name(look));
    return true;
}

static bool is_standard(const char *path)
{
    return path && !strcmp(path, "-");
}

static bool check_files(const struct options *options, struct options_error *error)
{
    const int standard = is_standard(options->output) + is_standard(options->stats) +
                         is_standard(options->trace);
    if (standard > 1)
        return options_refuse(error,
                              "only one of -o, --stats and --trace can be standard output (-)");
    if (is_standard(options->input) && is_standard(options->judge))
        return options_refuse(error, "only one of the input and --judge can be standard input (-)");

    const uint64_t alone = options->given & (OPTION_BIT(OPTION_STATS) | OPTION_BIT(OPTION_TRACE) |
                                             OPTION_BIT(OPTION_JUDGE));
    if (options->input_count > 1 && alone)
        return options_refuse(error, "--%s takes one input, but %u are given",
                              option_first_name(alone), options->input_count);
    return true;
}

/* The look of HDR, for a display of `hdr_nits`. */
static void set_hdr(struct options *options)
{
    options->wide = true;
    options->sdr_white_nits = options->hdr_nits;
    if (!(options->given & OPTION_BIT(OPTION_OPERATOR)))
        options->op = COX_OPERATOR_BT2390;
    if (!(options->given & OPTION_BIT(OPTION_DESAT)))
        options->desaturate = -1;
}

/* An output that is not ordinary SDR. */
static bool suit_colours(struct options *options, struct options_error *error)
{
    const bool png = options->to == OUTPUT_PNG;
    if (png && options->full_range)
        return options_refuse(error, "--full-range is for Y'CbCr; a PNG always has the full range");
    if (options->hdr_nits <= 0)
        return true;

    if (options->given & OPTION_BIT(OPTION_SDR_WHITE))
        return options_refuse(error, "--sdr-white and --hdr cannot be combined: HDR keeps the "
                                     "light that its display can show");
    if (png && options->depth && options->depth != 16)
        return options_refuse(error, "--depth %u: an HDR PNG has 16 bits", options->depth);
    if (options->to == OUTPUT_NV12 || options->depth == 8)
        return options_refuse(error, "--hdr needs 10 bits: use .mkv, .mp4, .y4m or .p010; or .png");

    if (!options->depth)
        options->depth = png ? 16 : 10;
    set_hdr(options);
    return true;
}

/* --- Look-up tables --- */

/* A table in the place of the look. */
static bool check_lut(struct options *options, struct options_error *error)
{
    const uint64_t replaced = options->given &
                              (OPTION_BIT(OPTION_OPERATOR) | OPTION_BIT(OPTION_PEAK) |
                               OPTION_BIT(OPTION_EXPOSURE) | OPTION_BIT(OPTION_DESAT) |
                               OPTION_BIT(OPTION_DETAIL) | OPTION_BIT(OPTION_GAMUT) |
                               OPTION_BIT(OPTION_SDR_WHITE) | OPTION_BIT(OPTION_HLG_PEAK) |
                               OPTION_BIT(OPTION_LOOKAHEAD) | OPTION_BIT(OPTION_TRUST_METADATA));
    if (!options->lut)
        return true;
    if (replaced)
        return options_refuse(error, "--%s has no use with --lut: the table replaces it",
                              option_first_name(replaced));
    if (options->scenes)
        return options_refuse(error, "--lut cannot be combined with --scene: the scene file sets "
                                     "the look");
    if (options->has_transfer && options->transfer == COX_TRANSFER_LINEAR)
        return options_refuse(error, "--lut needs --transfer pq or hlg: a table is for a signal");

    options->peak_auto = false;
    return true;
}

/* Whether the command writes its look as a table. */
static bool is_table(const struct options *options)
{
    return options->output && !options->step && options->to == OUTPUT_NAME &&
           !strcmp(options_name_ending(options->output), "cube");
}

/* The look of a table: what is the same for each pixel and each frame. */
static bool check_table(struct options *options, struct options_error *error)
{
    const uint64_t taken = OPTION_BIT(OPTION_OPERATOR) | OPTION_BIT(OPTION_PEAK) |
                           OPTION_BIT(OPTION_EXPOSURE) | OPTION_BIT(OPTION_DESAT) |
                           OPTION_BIT(OPTION_GAMUT) | OPTION_BIT(OPTION_SDR_WHITE) |
                           OPTION_BIT(OPTION_HLG_PEAK) | OPTION_BIT(OPTION_HDR) |
                           OPTION_BIT(OPTION_WIDE) | OPTION_BIT(OPTION_POINTS) |
                           OPTION_BIT(OPTION_TRANSFER) | OPTION_BIT(OPTION_PRIMARIES) |
                           OPTION_BIT(OPTION_DEVICES) | OPTION_BIT(OPTION_ARITHMETIC) |
                           OPTION_BIT(OPTION_NO_CACHE);
    const uint64_t refused = options->given & ~taken;
    if (options->input)
        return options_refuse(error, "a .cube table is made of the options alone: leave out %s",
                              options->input);
    if (refused)
        return options_refuse(error, "--%s has no use for a .cube table",
                              option_first_name(refused));
    if (options->given & OPTION_BIT(OPTION_PEAK) && options->peak_auto)
        return options_refuse(error, "a .cube table needs a fixed peak, such as --peak 1000");
    if (options->op == COX_OPERATOR_HDR10PLUS)
        return options_refuse(error, "--operator hdr10plus cannot be a table: each frame has its "
                                     "own curve");
    if (options->op == COX_OPERATOR_LOCAL || options->op == COX_OPERATOR_EXPOSURE)
        return options_refuse(error, "--operator %s cannot be a .cube table: %s",
                              cox_operator_name(options->op),
                              options->op == COX_OPERATOR_LOCAL ? "it depends on the neighbours"
                                                                : "it is for pictures");
    if (options->passes_sdr || (options->has_transfer && options->transfer > COX_TRANSFER_HLG))
        return options_refuse(error,
                              "the input of a .cube table is PQ or HLG: use --transfer pq or "
                              "hlg");

    options->table = true;
    if (options->peak_auto)
        options->peak_nits = 1000;
    options->peak_auto = false;
    return suit_colours(options, error);
}

bool options_check(struct options *options, struct options_error *error)
{
    struct cox_policy_options *policy = &options->policy_options;
    if (is_table(options))
        return check_table(options, error);
    if (options->points)
        return options_refuse(error, "--points is for tables: name an output that ends in .cube");
    if (!options->input && options->step == FILM_STEER)
        return options_refuse(error, "no input: name the parts that cox-tonemap analyse wrote");
    if (!options->input)
        return options_refuse(error, "no input: name a video or a picture; see cox-tonemap --help");
    if (!options->output && options->judge && options->to == OUTPUT_NAME)
        options->output = "null:";
    if (!options->output)
        return options_refuse(error, "no output: name one with -o; see cox-tonemap --help");

    if (options->given & OPTION_BIT(OPTION_DETAIL) && options->op != COX_OPERATOR_LOCAL)
        return options_refuse(error, "--detail needs --operator local; the operator is %s",
                              cox_operator_name(options->op));
    if (policy->ratio_count && options->policy && strcmp(options->policy, "static"))
        return options_refuse(
            error, "--split cannot be combined with --policy %s: only static keeps fixed shares",
            options->policy);
    if (policy->ratio_count)
        options->policy = "static";

    return check_files(options, error) && check_step(options, error) && check_lut(options, error) &&
           check_raw(options, error);
}

bool options_take(struct options *options, const char *input, struct options_error *error)
{
    options->input = input;
    return check_raw(options, error);
}

/* --- For one kind of input --- */

/* What the kind of the output allows. */
static bool suit_picture_file(const struct options *options, struct options_error *error)
{
    const bool jpeg = picture_is_jpeg(options->output), hdr = options->hdr_nits > 0;
    const char *colours = hdr ? "hdr" : "wide";
    if (options->judge && options->alpha)
        return options_refuse(error, "--judge and --alpha cannot be combined");
    if (jpeg && options->depth > 8)
        return options_refuse(error, "--depth %u: a JPEG has 8 bits", options->depth);
    if (options->depth == 10)
        return options_refuse(error, "--depth 10: a PNG has 8 or 16 bits");
    if (hdr && options->depth == 8)
        return options_refuse(error, "--depth 8: an HDR PNG has 16 bits");
    if (options->quality && !jpeg)
        return options_refuse(error, "--quality is for JPEG: name a .jpg output");

    if (jpeg && (hdr || options->wide))
        return options_refuse(error, "--%s: a JPEG has sRGB, and a gain map for HDR; use .png",
                              colours);
    if (options->alpha && jpeg)
        return options_refuse(error, "--alpha: a JPEG has no alpha channel; use .png");
    if (options->alpha && (hdr || options->wide))
        return options_refuse(error, "--alpha and --%s cannot be combined", colours);
    return true;
}

static bool suit_picture(struct options *options, struct options_error *error)
{
    if (options->step)
        return options_refuse(error, "%s: not a video; cox-tonemap %s needs a video",
                              options->input, options_step_name(options->step));
    if (!suit_picture_file(options, error))
        return false;

    const bool hdr = options->hdr_nits > 0;
    if ((hdr || options->wide) && options->op == COX_OPERATOR_EXPOSURE)
        return options_refuse(error, "--operator exposure writes sRGB only");
    if (hdr) {
        options->depth = 16;
        set_hdr(options);
    }
    if (!options->quality)
        options->quality = 90;
    if (!options->depth)
        options->depth = 8;
    return true;
}

/* A PNG is one frame; all other outputs are a stream of frames. */
static bool suit_frames(const struct options *options, struct options_error *error)
{
    const uint64_t several = OPTION_BIT(OPTION_START) | OPTION_BIT(OPTION_FRAMES);
    const bool list = options->frame_count > 1;
    if (options->to == OUTPUT_PNG && options->given & several && !options->sheet_count)
        return options_refuse(error, "a PNG holds one frame: use --frame N instead of --start "
                                     "and --frames");
    if (options->sheet_count && (options->to != OUTPUT_PNG || options->frame_list))
        return options_refuse(error, options->frame_list
                                         ? "--sheet and --frame cannot be combined"
                                         : "--sheet writes a PNG: name a .png output");
    if (options->sheet_count && options->op == COX_OPERATOR_LOCAL)
        return options_refuse(error,
                              "--sheet cannot be combined with --operator local, because its "
                              "frames are scaled");
    if (options->to == OUTPUT_PNG && list && !options_number_pattern(options->output))
        return options_refuse(error,
                              "--frame names %u frames: the output's name needs a %%d for their "
                              "number, as in still-%%d.png",
                              options->frame_count);
    if (options->to != OUTPUT_PNG && options->frame_list)
        return options_refuse(
            error,
            "--frame writes one frame as a PNG: name a .png output, or use --start %u "
            "--frames 1",
            (unsigned)options->frame);
    return true;
}

static bool suit_depth(struct options *options, struct options_error *error)
{
    static const struct {
        const char *what;
        uint32_t first, second; /* the first is the default */
    } kinds[] = {
        [OUTPUT_PNG] = {"a PNG", 8, 16},          [OUTPUT_Y4M] = {"y4m", 8, 10},
        [OUTPUT_NV12] = {"NV12", 8, 8},           [OUTPUT_P010] = {"P010", 10, 10},
        [OUTPUT_NULL] = {"y4m", 8, 10},           [OUTPUT_MKV] = {"a finished file", 8, 10},
        [OUTPUT_MP4] = {"a finished file", 8, 10}};
    const char *what = kinds[options->to].what;
    const uint32_t first = kinds[options->to].first, second = kinds[options->to].second;
    if (!options->depth)
        options->depth = first;
    if (options->depth == first || options->depth == second)
        return true;

    if (first == second)
        return options_refuse(error, "--depth %u: %s has %u bits", options->depth, what, first);
    return options_refuse(error, "--depth %u: %s has %u or %u bits", options->depth, what, first,
                          second);
}

/* Options about finished files. A step of a film in pieces takes --overwrite for any output. */
static bool suit_finished(const struct options *options, struct options_error *error)
{
    uint64_t refused = options->given & option_group_bits(FOR_FINISHED);
    if (options->step)
        refused &= ~OPTION_BIT(OPTION_OVERWRITE);
    if (!refused || options_want_finished(options))
        return true;

    return options_refuse(error, "--%s is for finished files, .mkv and .mp4",
                          option_first_name(refused));
}

static bool suit_look(const struct options *options, struct options_error *error)
{
    if (options->op == COX_OPERATOR_EXPOSURE)
        return options_refuse(error, "--operator exposure is for pictures; for video use linear or "
                                     "clip");
    if (options->has_transfer && options->transfer == COX_TRANSFER_SDR &&
        options->given & OPTION_BIT(OPTION_EXPOSURE))
        return options_refuse(error, "--exposure is for HDR; with --transfer sdr no light changes");
    if (options->op == COX_OPERATOR_LOCAL && options->scale)
        return options_refuse(error, "--scale cannot be combined with --operator local");

    if (options->lut)
        return true;
    if (!options->peak_auto && options->trust_metadata)
        return options_refuse(error, "--trust-metadata needs --peak auto; --peak %g is fixed",
                              options->peak_nits);
    if (!options->peak_auto && options->given & OPTION_BIT(OPTION_LOOKAHEAD))
        return options_refuse(error, "--lookahead needs --peak auto; --peak %g is fixed",
                              options->peak_nits);
    return true;
}

/* Pieces are of kinds that can be joined. */
static bool suit_scenes(const struct options *options, struct options_error *error)
{
    const bool joins = options->to == OUTPUT_Y4M || options->to == OUTPUT_MKV ||
                       options->to == OUTPUT_NULL;
    const bool piece = options->step && !options->place;
    if (options->scenes && options->raw.has_stream)
        return options_refuse(error, "--stream cannot be combined with --scene");
    if (!options->scenes || joins || (options->to != OUTPUT_PNG && !piece))
        return true;

    return options_refuse(
        error,
        "%s: with --scene the output is .y4m or .mkv; a whole film can also be .mp4, "
        ".nv12 or .p010",
        options->output);
}

static bool suit_video(struct options *options, struct options_error *error)
{
    if (options->verify)
        return options_refuse(error, "--verify without a share is for pictures; for video use "
                                     "--verify 0.1, or compare --hash between --devices");
    if (options->to == OUTPUT_NAME)
        options->to = options_kind_by_name(options->output);
    if (options->to == OUTPUT_JPEG)
        return options_refuse(error,
                              "%s: a JPEG is written of a picture; write the frame as HDR first, "
                              "with --hdr 10000 -o still.png, then map that",
                              options->output);
    if (options->to == OUTPUT_NAME)
        return options_refuse(
            error,
            "%s: unknown kind of output; use .mkv, .mp4, .y4m, .nv12, .p010, .png "
            "(one frame) or null:, or --to KIND",
            *options->output ? options->output : "''");

    return suit_finished(options, error) && suit_colours(options, error) &&
           suit_look(options, error) && suit_frames(options, error) && suit_depth(options, error) &&
           suit_scenes(options, error);
}

bool options_suit(struct options *options, enum options_job job, struct options_error *error)
{
    const bool video = job == OPTIONS_VIDEO;
    if (options->step == FILM_ANALYSE && !options_want_raw(options))
        options->to = OUTPUT_Y4M;

    if (!video && options->op == COX_OPERATOR_HDR10PLUS)
        return options_refuse(error, "--operator hdr10plus is for video, but %s is not a video",
                              options->input);
    const uint64_t refused = options->given & option_group_bits(video ? FOR_PICTURE : FOR_VIDEO);
    if (refused && video)
        return options_refuse(error, "--%s is for pictures, but %s is a video",
                              option_first_name(refused), options->input);
    if (refused)
        return options_refuse(error, "--%s is for video, but %s is not a video",
                              option_first_name(refused), options->input);
    return video ? suit_video(options, error) : suit_picture(options, error);
}
