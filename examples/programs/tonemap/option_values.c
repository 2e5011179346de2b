/* SPDX-License-Identifier: Apache-2.0 */
#include "option_values.h"
#include "common/option_name.h"
#include "media/hardware.h"
#include "option_table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEAT_MAX = 1000000 };

/* --- Numbers --- */

bool option_value_number(const char *text, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);

    return end != text && !*end && isfinite(*value);
}

static bool parse_between(const char *text, double least, double most, double *value)
{
    return option_value_number(text, value) && *value >= least && *value <= most;
}

static bool parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    const size_t digits = strspn(text, "0123456789");
    if (!digits || text[digits] || digits > 18)
        return false;

    *value = strtoull(text, NULL, 10);
    return *value >= least && *value <= most;
}

/* --- The look --- */

static bool parse_operator(struct options *options, const char *text, struct options_error *error)
{
    char names[256];
    size_t used = 0;
    if (cox_operator_find(text, &options->op) == COX_OK)
        return true;

    const char *separator = "";
    for (int op = 0; op < COX_OPERATOR_COUNT && used < sizeof names; op++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", separator,
                                 cox_operator_name((enum cox_operator)op));
        separator = ", ";
    }
    return options_refuse(error, "unknown operator '%s'; operators: %s", text, names);
}

/* clip, compress, hue, compress:KNEE or hue:KNEE */
static bool parse_gamut(struct options *options, const char *text, struct options_error *error)
{
    static const char *const names[] = {
        [COX_GAMUT_CLIP] = "clip", [COX_GAMUT_COMPRESS] = "compress", [COX_GAMUT_HUE] = "hue"};
    const size_t length = strcspn(text, ":");
    double knee = 0;

    int gamut = COX_GAMUT_HUE;
    while (gamut >= 0 && (strlen(names[gamut]) != length || strncmp(text, names[gamut], length)))
        gamut--;
    if (gamut < 0 || (gamut == COX_GAMUT_CLIP && text[length]))
        return options_refuse(error, "--gamut '%s': expected hue[:KNEE], compress[:KNEE] or clip",
                              text);

    options->has_gamut = true;
    options->gamut = (enum cox_gamut)gamut;
    if (!text[length])
        return true;
    if (!parse_between(text + length + 1, 0.25, 0.95, &knee))
        return options_refuse(error, "--gamut '%s': expected a knee from 0.25 to 0.95", text);

    options->gamut_knee = (float)knee;
    return true;
}

/* A side of WxH at `*at`, which moves behind the character `end`. A missing side is 0. */
static bool parse_side(const char **at, char end, uint32_t *side)
{
    char *behind = (char *)*at;
    unsigned long value = 0;
    if (**at >= '1' && **at <= '9')
        value = strtoul(*at, &behind, 10);
    if (value > 65536 || *behind != end)
        return false;

    *side = (uint32_t)value;
    *at = behind + 1;
    return true;
}

/* 1/2, WxH, Wx or xH. */
static bool parse_scale(struct options *options, const char *text, struct options_error *error)
{
    const char *at = text;
    options->scale_width = options->scale_height = 0;
    options->scale = COX_SCALE_HALF;
    if (!strcmp(text, "1/2"))
        return true;

    options->scale = COX_SCALE_FILTER;
    if (parse_side(&at, 'x', &options->scale_width) &&
        parse_side(&at, '\0', &options->scale_height) &&
        (options->scale_width || options->scale_height))
        return true;
    return options_refuse(error,
                          "--scale '%s': expected 1/2 or a size such as 1920x1080, 1920x or x1080",
                          text);
}

static bool parse_peak(struct options *options, const char *text, struct options_error *error)
{
    options->peak_auto = !strcmp(text, "auto");
    if (options->peak_auto || parse_between(text, 1, 1e6, &options->peak_nits))
        return true;

    return options_refuse(error,
                          "--peak '%s': expected auto or a luminance from 1 to 1000000 cd/m2",
                          text);
}

static bool parse_desaturate(struct options *options, const char *text, struct options_error *error)
{
    double number;
    if (!parse_between(text, 0, 1, &number))
        return options_refuse(error, "--desat '%s': expected a number from 0 to 1", text);

    options->desaturate = -1; /* none: the library's 0 means its default */
    if (number > 0)
        options->desaturate = (float)number;
    return true;
}

static bool parse_detail(struct options *options, const char *text, struct options_error *error)
{
    double number;
    options->detail = 0;
    if (option_value_number(text, &number))
        options->detail = (float)number;

    return (options->detail >= 0.25f && options->detail <= 4) ||
           options_refuse(error, "--detail '%s': expected a number from 0.25 to 4", text);
}

static bool parse_depth(struct options *options, const char *text, struct options_error *error)
{
    if (strcmp(text, "8") && strcmp(text, "10") && strcmp(text, "16"))
        return options_refuse(error, "--depth '%s': expected 8, 10 or 16", text);

    options->depth = (uint32_t)strtoul(text, NULL, 10);
    return true;
}

static bool parse_dither(struct options *options, const char *text, struct options_error *error)
{
    options->has_dither = true;
    options->dither = COX_DITHER_NONE;
    if (!strcmp(text, "ordered"))
        options->dither = COX_DITHER_ORDERED;
    else if (strcmp(text, "none"))
        return options_refuse(error, "--dither '%s': expected none or ordered", text);

    return true;
}

static bool parse_points(struct options *options, const char *text, struct options_error *error)
{
    uint64_t points;
    if (!parse_count(text, 2, COX_LUT_POINTS_MAX, &points))
        return options_refuse(error, "--points '%s': expected a number of points from 2 to %d",
                              text, COX_LUT_POINTS_MAX);

    options->points = (uint32_t)points;
    return true;
}

static bool set_look(struct options *options, int which, const char *text,
                     struct options_error *error)
{
    switch (which) {
    case OPTION_OPERATOR:
        return parse_operator(options, text, error);
    case OPTION_EXPOSURE:
        return parse_between(text, -32, 32, &options->exposure_stops) ||
               options_refuse(error, "--exposure '%s': expected a number of stops from -32 to 32",
                              text);
    case OPTION_PEAK:
        return parse_peak(options, text, error);
    case OPTION_SDR_WHITE:
        return parse_between(text, 1, 10000, &options->sdr_white_nits) ||
               options_refuse(error, "--sdr-white '%s': expected a luminance from 1 to 10000 cd/m2",
                              text);
    case OPTION_HLG_PEAK:
        return parse_between(text, 100, 10000, &options->hlg_peak_nits) ||
               options_refuse(error,
                              "--hlg-peak '%s': expected a luminance from 100 to 10000 cd/m2",
                              text);
    case OPTION_HDR:
        return parse_between(text, 100, 10000, &options->hdr_nits) ||
               options_refuse(error, "--hdr '%s': expected a luminance from 100 to 10000 cd/m2",
                              text);
    case OPTION_WIDE:
        options->wide = true;
        return true;
    case OPTION_FULL_RANGE:
        options->full_range = true;
        return true;
    case OPTION_DESAT:
        return parse_desaturate(options, text, error);
    case OPTION_DETAIL:
        return parse_detail(options, text, error);
    case OPTION_DITHER:
        return parse_dither(options, text, error);
    case OPTION_GAMUT:
        return parse_gamut(options, text, error);
    case OPTION_SCALE:
        return parse_scale(options, text, error);
    case OPTION_POINTS:
        return parse_points(options, text, error);
    default:
        return parse_depth(options, text, error);
    }
}

/* --- The stream and its frames --- */

static bool parse_size(struct options *options, const char *text, struct options_error *error)
{
    char width[8] = "", height[8] = "";
    uint64_t w, h;
    int end = 0;
    if (sscanf(text, "%7[0-9]x%7[0-9]%n", width, height, &end) != 2 || text[end] ||
        !parse_count(width, 1, VIDEO_SIDE_MAX, &w) || !parse_count(height, 1, VIDEO_SIDE_MAX, &h))
        return options_refuse(
            error, "--size '%s': expected a size such as 3840x2160, with sides from 1 to %d", text,
            VIDEO_SIDE_MAX);

    options->raw.width = (uint32_t)w;
    options->raw.height = (uint32_t)h;
    return true;
}

/* 25, 23.976 or 24000/1001. */
static bool parse_rate(struct options *options, const char *text, struct options_error *error)
{
    char above[12] = "", below[12] = "";
    uint64_t num, den;
    double fps;
    int end = 0;
    if (sscanf(text, "%11[0-9]%*1[/:]%11[0-9]%n", above, below, &end) == 2 && !text[end]) {
        if (parse_count(above, 1, INT32_MAX, &num) && parse_count(below, 1, INT32_MAX, &den)) {
            options->rate = (struct video_rational){(uint32_t)num, (uint32_t)den};
            return true;
        }
    } else if (parse_between(text, 0.001, 100000, &fps)) {
        const uint32_t unit = fps == floor(fps) ? 1 : 1000;
        options->rate = (struct video_rational){(uint32_t)lround(fps * unit), unit};
        return true;
    }

    return options_refuse(
        error, "--rate '%s': expected frames per second, such as 25, 23.976 or 24000/1001", text);
}

/* FIRST:END, either of which may be missing. */
static bool parse_frame_range(struct options *options, const char *text,
                              struct options_error *error)
{
    char first[20] = "0", end[20] = "";
    const char *colon = strchr(text, ':');
    if (colon != text)
        snprintf(first, sizeof first, "%.*s", (int)(colon - text), text);
    snprintf(end, sizeof end, "%s", colon + 1);
    options->ranged = true;
    options->range_end = UINT64_MAX;

    bool good = parse_count(first, 0, VIDEO_FRAMES_MAX, &options->range_first);
    if (good && *end)
        good = parse_count(end, 1, VIDEO_FRAMES_MAX, &options->range_end) &&
               options->range_end > options->range_first;
    return good ||
           options_refuse(error,
                          "--range '%s': expected FIRST:END with FIRST < END, such as 1000:2000",
                          text);
}

/* I/N */
static bool parse_share(struct options *options, const char *text, struct options_error *error)
{
    char which[20] = "", of[20] = "";
    const char *slash = strchr(text, '/');
    if (slash) {
        snprintf(which, sizeof which, "%.*s", (int)(slash - text), text);
        snprintf(of, sizeof of, "%s", slash + 1);
    }

    return (parse_count(of, 1, 1000000, &options->share_count) &&
            parse_count(which, 1, options->share_count, &options->share)) ||
           options_refuse(error, "--share '%s': expected I/N with I from 1 to N, such as 1/16",
                          text);
}

/* --range has two meanings: FIRST:END of frames, and the range of the stream's codes. Only the
 * second one is noted in `given`. */
static bool parse_range(struct options *options, const char *text, struct options_error *error)
{
    static const char *const ranges[] = {"limited", "full", NULL};
    if (strchr(text, ':'))
        return parse_frame_range(options, text, error);

    const int word = options_find_word(text, ranges);
    options->given |= OPTION_BIT(OPTION_RANGE);
    options->has_range = true;
    options->range = word > 0 ? COX_RANGE_FULL : COX_RANGE_LIMITED;
    return word >= 0 ||
           options_refuse(error, "--range '%s': expected limited, full, or FIRST:END of frames",
                          text);
}

static bool parse_stream_number(struct options *options, const char *text,
                                struct options_error *error)
{
    enum { STREAM_MAX = 100000 };
    uint64_t number;
    if (!parse_count(text, 0, STREAM_MAX, &number))
        return options_refuse(error, "--stream '%s': expected the number of a stream", text);

    options->raw.has_stream = true;
    options->raw.stream = (uint32_t)number;
    return true;
}

static bool parse_hwdec(struct options *options, const char *text, struct options_error *error)
{
    struct error why;
    options->raw.hwdec = text;
    if (!strcmp(text, "none"))
        options->raw.hwdec = NULL;
    return hardware_find(text, &why) || options_refuse(error, "--hwdec '%s': %s", text, why.text);
}

static bool set_stream(struct options *options, int which, const char *text,
                       struct options_error *error)
{
    /* In the order of cox_transfer. The last one, auto, is no transfer. */
    static const char *const transfers[] = {"pq", "hlg", "linear", "sdr", "auto", NULL};
    /* In the order of cox_primaries. */
    static const char *const primaries[] = {"bt2020",    "bt709",     "p3-d65", "p3-dci",
                                            "bt601-525", "bt601-625", NULL};
    int word;
    switch (which) {
    case OPTION_TRANSFER:
        word = options_find_word(text, transfers);
        options->passes_sdr = word > COX_TRANSFER_SDR;
        options->has_transfer = !options->passes_sdr;
        options->transfer = COX_TRANSFER_PQ;
        if (word > 0 && options->has_transfer)
            options->transfer = (enum cox_transfer)word;
        return word >= 0 ||
               options_refuse(error, "--transfer '%s': expected pq, hlg, linear, sdr or auto",
                              text);
    case OPTION_PRIMARIES:
        word = options_find_word(text, primaries);
        options->has_primaries = true;
        options->primaries = (enum cox_primaries)(word > 0 ? word : 0);
        return word >= 0 ||
               options_refuse(
                   error,
                   "--primaries '%s': expected bt2020, bt709, p3-d65, p3-dci, bt601-525 or bt601-625",
                   text);
    case OPTION_RANGE:
        return parse_range(options, text, error);
    case OPTION_SIZE:
        return parse_size(options, text, error);
    case OPTION_RATE:
        return parse_rate(options, text, error);
    case OPTION_STREAM:
        return parse_stream_number(options, text, error);
    case OPTION_HWDEC:
        return parse_hwdec(options, text, error);
    default:
        return video_raw_find(text, &options->raw) ||
               options_refuse(error, "unknown format '%s'; formats: %s", text, video_raw_names);
    }
}

/* Numbers and times, separated by commas. */
static bool parse_frames(struct options *options, const char *text, struct options_error *error)
{
    const char *at = text;
    struct frame_place place;
    options->frame_list = text;
    options->frame_count = 0;
    while (options_next_frame(&at, &place)) {
        if (!options->frame_count)
            options->frame = place.timed ? 0 : place.frame;
        options->frame_count++;
    }

    return (!*at && options->frame_count) ||
           options_refuse(error,
                          "--frame '%s': expected a frame number from 0 to %d or a time such as "
                          "1:30 or 2:00:05.5, or several with commas between them",
                          text, VIDEO_FRAMES_MAX);
}

/* N, or COLUMNSxROWS. */
static bool parse_sheet(struct options *options, const char *text, struct options_error *error)
{
    enum { SIDE_MAX = 100 };
    char columns[8] = "", rows[8] = "";
    uint64_t across = 0, down = 0, count = 0;
    int end = 0;
    if (parse_count(text, 1, SIDE_MAX * SIDE_MAX, &count)) {
        while (across * across < count)
            across++;
        down = (count + across - 1) / across;
    } else if (sscanf(text, "%7[0-9]x%7[0-9]%n", columns, rows, &end) == 2 && !text[end] &&
               parse_count(columns, 1, SIDE_MAX, &across) &&
               parse_count(rows, 1, SIDE_MAX, &down)) {
        count = across * down;
    } else {
        return options_refuse(error,
                              "--sheet '%s': expected a number of frames, or COLUMNSxROWS such as "
                              "4x3",
                              text);
    }

    options->sheet_count = (uint32_t)count;
    options->sheet_columns = (uint32_t)across;
    options->sheet_rows = (uint32_t)down;
    return true;
}

static bool set_frames(struct options *options, int which, const char *text,
                       struct options_error *error)
{
    switch (which) {
    case OPTION_START:
        return parse_count(text, 0, VIDEO_FRAMES_MAX, &options->start) ||
               options_refuse(error, "--start '%s': expected a frame number from 0 to %d", text,
                              VIDEO_FRAMES_MAX);
    case OPTION_FRAMES:
        return parse_count(text, 1, VIDEO_FRAMES_MAX, &options->frames) ||
               options_refuse(error, "--frames '%s': expected a number of frames from 1 to %d",
                              text, VIDEO_FRAMES_MAX);
    case OPTION_FRAME:
        return parse_frames(options, text, error);
    case OPTION_SHEET:
        return parse_sheet(options, text, error);
    default:
        options->lookahead = !strcmp(text, "1");
        return options->lookahead || !strcmp(text, "0") ||
               options_refuse(error, "--lookahead '%s': expected 0 or 1", text);
    }
}

/* --- The devices and the split --- */

static bool parse_split(struct options *options, const char *text, struct options_error *error)
{
    double sum = 0;
    const char *at = text;
    struct cox_policy_options *policy = &options->policy_options;
    policy->ratios = options->ratios;
    policy->ratio_count = 0;

    for (;;) {
        char *end;
        const double ratio = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !isfinite(ratio) || ratio < 0 || ratio > 1)
            return options_refuse(
                error,
                "--split '%s': expected comma-separated numbers from 0 to 1, such as "
                "0.75,0.25",
                text);
        if (policy->ratio_count == COX_DEVICES_MAX)
            return options_refuse(error, "--split '%s': at most %d shares are allowed", text,
                                  COX_DEVICES_MAX);

        options->ratios[policy->ratio_count++] = ratio;
        sum += ratio;
        if (!*end)
            break;
        at = end + 1;
    }

    if (fabs(sum - 1.0) > 1e-6)
        return options_refuse(error, "--split '%s': the shares sum to %g; they must sum to 1", text,
                              sum);
    return true;
}

static bool parse_reserve(struct options *options, const char *text, struct options_error *error)
{
    static const char *const words[] = {"auto", "off", "on", NULL};
    static const enum cox_reserve reserves[] = {COX_RESERVE_AUTO, COX_RESERVE_OFF, COX_RESERVE_ON};
    const int which = options_find_word(text, words);
    uint64_t cpu;
    if (which >= 0) {
        options->reserve = reserves[which];
        return true;
    }
    if (!parse_count(text, 0, UINT32_MAX, &cpu))
        return options_refuse(error,
                              "--reserve '%s': expected auto, on, off or the number of a CPU",
                              text);

    options->reserve = COX_RESERVE_CORE;
    options->reserve_cpu = (uint32_t)cpu;
    return true;
}

static bool parse_policy(struct options *options, const char *text, struct options_error *error)
{
    char names[256];
    options->policy = text;
    if (cox_policy_find(text))
        return true;

    options_policy_names(names, sizeof names);
    return options_refuse(error, "unknown policy '%s'; policies: %s", text, names);
}

static bool parse_in_flight(struct options *options, const char *text, struct options_error *error)
{
    uint64_t count;
    if (!parse_count(text, 1, COX_IN_FLIGHT_MAX, &count))
        return options_refuse(error, "--in-flight '%s': expected a number of frames from 1 to %d",
                              text, COX_IN_FLIGHT_MAX);

    options->in_flight = (uint32_t)count;
    return true;
}

static bool parse_max_memory(struct options *options, const char *text, struct options_error *error)
{
    double gib = 0;
    if (!parse_between(text, 0.00001, 1048576, &gib))
        return options_refuse(error, "--max-memory must be from 0.00001 to 1048576 GiB, not '%s'",
                              text);

    options->raw.memory_max = (uint64_t)(gib * 0x1p30);
    return true;
}

static bool parse_deadline(struct options *options, const char *text, struct options_error *error)
{
    double ms;
    if (!parse_between(text, 0.001, 1e6, &ms))
        return options_refuse(
            error, "--deadline '%s': expected a number of milliseconds from 0.001 to 1000000",
            text);

    options->policy_options.deadline_ns = (uint64_t)(ms * 1e6 + 0.5);
    return true;
}

/* With a value it is a share of the bands; without one the whole picture is verified. */
static bool parse_verify(struct options *options, const char *text, struct options_error *error)
{
    if (!text) {
        options->verify = true;
        return true;
    }

    return parse_between(text, 0, 1, &options->verify_share) ||
           options_refuse(error, "--verify '%s': expected a share of the bands from 0 to 1", text);
}

static bool set_work(struct options *options, int which, const char *text,
                     struct options_error *error)
{
    switch (which) {
    case OPTION_POLICY:
        return parse_policy(options, text, error);
    case OPTION_SPLIT:
        return parse_split(options, text, error);
    case OPTION_RESERVE:
        return parse_reserve(options, text, error);
    case OPTION_ARITHMETIC:
        return option_arithmetic(text, &options->arithmetic) ||
               options_refuse(error, "--arithmetic '%s': expected auto, fma or muladd", text);
    case OPTION_IN_FLIGHT:
        return parse_in_flight(options, text, error);
    case OPTION_MAX_MEMORY:
        return parse_max_memory(options, text, error);
    case OPTION_DEADLINE:
        return parse_deadline(options, text, error);
    case OPTION_VERIFY:
        return parse_verify(options, text, error);
    default:
        return parse_count(text, 1, REPEAT_MAX, &options->repeat) ||
               options_refuse(error, "--repeat '%s': expected a number from 1 to %d", text,
                              REPEAT_MAX);
    }
}

/* --- The output, and options whose value needs no check --- */

static bool set_output(struct options *options, int which, const char *text,
                       struct options_error *error)
{
    uint64_t quality;
    switch (which) {
    case OPTION_ENCODER:
        options->encoder = text;
        return (*text && *text != ':') ||
               options_refuse(error, "--encoder '%s': expected NAME or NAME:KEY=VALUE,...", text);
    case OPTION_QUALITY:
        options->quality = 0;
        if (!parse_count(text, 1, 100, &quality))
            return options_refuse(error, "--quality '%s': expected a number from 1 to 100", text);
        options->quality = (unsigned)quality;
        return true;
    case OPTION_PROGRESS:
        options->progress_json = !strcmp(text, "json");
        return options->progress_json || !strcmp(text, "live") ||
               options_refuse(error, "--progress '%s': expected live or json", text);
    default:
        options->to = options_find_kind(text);
        return options->to != OUTPUT_NAME ||
               options_refuse(error, "--to '%s': expected mkv, mp4, y4m, nv12, p010, png or null",
                              text);
    }
}

/* The field of an option whose value is kept unchanged; NULL for every other option. */
static const char **text_field(struct options *options, int which)
{
    switch (which) {
    case OPTION_CRF:
        return &options->crf;
    case OPTION_LAYER:
        return &options->layer;
    case OPTION_LUT:
        return &options->lut;
    case OPTION_PRESET:
        return &options->preset;
    case OPTION_DEVICES:
        return &options->devices;
    case OPTION_SCENES:
        return &options->scenes;
    case OPTION_SOURCE:
        return &options->source;
    case OPTION_STATS:
        return &options->stats;
    case OPTION_TRACE:
        return &options->trace;
    case OPTION_JUDGE:
        return &options->judge;
    default:
        return NULL;
    }
}

/* The flag that an option without a value sets; NULL for every other option. */
static bool *flag_field(struct options *options, int which)
{
    switch (which) {
    case OPTION_OVERWRITE:
        return &options->overwrite;
    case OPTION_TRUST_METADATA:
        return &options->trust_metadata;
    case OPTION_NO_CACHE:
        return &options->no_cache;
    case OPTION_STRICT:
        return &options->strict;
    case OPTION_CHECK_KERNELS:
        return &options->check_kernels;
    case OPTION_HASH:
        return &options->hash;
    default:
        return NULL;
    }
}

static bool set_checked(struct options *options, int which, const char *text,
                        struct options_error *error)
{
    switch (which) {
    case OPTION_SHARE:
        return parse_share(options, text, error);
    case OPTION_ALPHA:
        options->alpha = PICTURE_ALPHA_STRAIGHT;
        return true;
    case OPTION_ENCODER:
    case OPTION_PROGRESS:
    case OPTION_QUALITY:
    case OPTION_TO:
        return set_output(options, which, text, error);
    case OPTION_TRANSFER:
    case OPTION_PRIMARIES:
    case OPTION_RANGE:
    case OPTION_SIZE:
    case OPTION_FORMAT:
    case OPTION_RATE:
    case OPTION_STREAM:
    case OPTION_HWDEC:
        return set_stream(options, which, text, error);
    case OPTION_START:
    case OPTION_FRAMES:
    case OPTION_FRAME:
    case OPTION_SHEET:
    case OPTION_LOOKAHEAD:
        return set_frames(options, which, text, error);
    case OPTION_POLICY:
    case OPTION_SPLIT:
    case OPTION_RESERVE:
    case OPTION_ARITHMETIC:
    case OPTION_IN_FLIGHT:
    case OPTION_MAX_MEMORY:
    case OPTION_DEADLINE:
    case OPTION_VERIFY:
    case OPTION_REPEAT:
        return set_work(options, which, text, error);
    default:
        return set_look(options, which, text, error);
    }
}

bool option_value_set(struct options *options, int which, const char *text,
                      struct options_error *error)
{
    const char **kept = text_field(options, which);
    bool *flag = flag_field(options, which);
    if (which != OPTION_RANGE) /* parse_range decides */
        options->given |= OPTION_BIT(which);

    if (kept)
        *kept = text;
    else if (flag)
        *flag = true;
    else
        return set_checked(options, which, text, error);
    return true;
}
