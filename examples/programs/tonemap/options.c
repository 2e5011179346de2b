/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "options.h"
#include "media/identity.h"
#include "common/option_name.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEAT_MAX = 1000000 };

const char options_usage[] =
    "Usage: cox-tonemap INPUT... -o OUTPUT [options]\n"
    "       cox-tonemap analyse|steer|map|join ... -o OUTPUT [options]\n"
    "\n"
    "Tone-maps HDR video or an HDR picture to SDR, on all OpenCL devices together.\n"
    "\n"
    "  cox-tonemap movie.mkv -o movie.y4m\n"
    "  cox-tonemap movie.mkv -o still.png --frame 1000 --operator bt2390\n"
    "  cox-tonemap room.exr -o room.png --peak 4000 --devices gpu,cpu\n"
    "\n"
    "  INPUT               video: y4m, raw frames, and what libavformat reads where\n"
    "                      it is built in; picture: OpenEXR, Radiance .hdr, PFM.\n"
    "                      Told by content; - is standard input. Several go\n"
    "                      to a folder, one after the other\n"
    "  -o, --output FILE   video: .mkv, .mp4, .y4m, .nv12, .p010, or .png for one\n"
    "                      frame; null: for nothing; picture: .png. - is standard\n"
    "                      output. A folder: a file there of the input's name\n"
    "  --to KIND           video: mkv, mp4, y4m, nv12, p010, png or null, whatever\n"
    "                      the output's name\n"
    "\n"
    "A finished file (.mkv, .mp4), with the input's sound and subtitles:\n"
    "  --encoder NAME[:KEY=VALUE,...]\n"
    "                      libavcodec's encoder and its options (default libx264)\n"
    "  --crf N             its quality: less is better and larger\n"
    "  --preset NAME       its speed: ultrafast to veryslow\n"
    "  --overwrite         replace a finished file that exists\n"
    "\n"
    "How the result looks:\n"
    "  --operator NAME     hable (default), reinhard, mobius, bt2390, aces, linear,\n"
    "                      clip, local, exposure (pictures)\n"
    "  --peak NITS|auto    the brightest light that keeps its gradation, in cd/m2;\n"
    "                      auto (default): from the picture, or from scene to scene\n"
    "  --exposure STOPS    brighten (> 0) or darken (< 0); added to what --peak auto\n"
    "                      finds\n"
    "  --desat STRENGTH    how much colours brighter than white fade to white, 0 to\n"
    "                      1 (default 0.75)\n"
    "  --detail FACTOR     --operator local: factor on the contrast of the detail,\n"
    "                      0.25 to 4; 1 (default): as in the light\n"
    "  --depth BITS        PNG: 8 or 16; y4m, mkv, mp4: 8 or 10 (default 8)\n"
    "  --alpha             pictures: keep an alpha channel (default: transparent\n"
    "                      parts lie over black)\n"
    "  --sdr-white NITS    video: the light that becomes SDR white (default 203)\n"
    "  --dither WHICH      video: none or ordered (default: ordered where the output\n"
    "                      has fewer bits than the input)\n"
    "  --gamut WHICH       video: compress[:KNEE] or clip: colours that SDR has not\n"
    "                      move towards grey and keep their hue (default of\n"
    "                      BT.2020), or are cut\n"
    "  --scale 1/2|WxH     video: half the width and height; or another size, also\n"
    "                      Wx or xH, to keep the picture's shape\n"
    "\n"
    "What the video is, where it does not say so itself:\n"
    "  --transfer CURVE    pq (default of more than 8 bits), hlg or linear\n"
    "  --primaries WHICH   bt2020 (default) or bt709\n"
    "  --range WHICH       limited (default) or full\n"
    "  --size WxH          the input is raw frames of this size\n"
    "  --format NAME       their format: yuv420p10, p010, nv12, rgba16f, ...;\n"
    "                      default: by the name's ending\n"
    "  --rate FPS          frames per second: 25, 23.976 or 24000/1001\n"
    "\n"
    "Which frames of the video:\n"
    "  --start N           begin with frame N, counted from 0\n"
    "  --frames N          end after N frames\n"
    "  --frame N           only frame N, as a PNG\n"
    "  --lookahead 0|1     with --peak auto: 1 looks at each frame before it is\n"
    "                      mapped (default 0)\n"
    "  --trust-metadata    with --peak auto: no light over the peak that the stream\n"
    "                      names (default: what the frames show counts)\n"
    "\n"
    "A film in pieces, by as many machines as there are (docs: pieces.md):\n"
    "  analyse FILM -o PART        look at a part of it\n"
    "  steer PART... -o SCENE      find each frame's light from all parts\n"
    "  map FILM --scene SCENE -o PIECE.mkv|.y4m\n"
    "                              map a piece of it\n"
    "  join PIECE... -o OUTPUT     put the pieces together\n"
    "  --range FIRST:END   analyse, map: frames from FIRST up to END, not with it\n"
    "  --share I/N         analyse, map: the I-th of N equal parts, from 1\n"
    "  --scene FILE        each frame's light, and all else that decides how it looks\n"
    "  --source FILE       join: sound, subtitles and the rest come from there\n"
    "\n"
    "The devices and the split:\n"
    "  --devices LIST      cpu, gpu, all, PLATFORM.DEVICE, part of a name; :NxC for\n"
    "                      N sub-devices of C compute units; =shared, =mapped or\n"
    "                      =staged; comma-separated (default: every device)\n"
    "  --policy NAME       how rows are shared out; --policy help lists the names\n"
    "  --split A,B,...     fixed shares of the rows, one for each device, summing\n"
    "                      to 1\n"
    "  --reserve WHICH     keep a core for feeding devices: auto (default), on, off\n"
    "                      or a CPU's number\n"
    "  --arithmetic WHICH  fma, muladd, or auto (default): fma where all devices are\n"
    "                      quick at it. The same bits everywhere need the same\n"
    "  --in-flight N       frames under way at once, 1 to 16 (default 2)\n"
    "  --deadline MS       count the frames that take longer from when the devices\n"
    "                      are given them to when they are done\n"
    "  --no-cache          compile the kernels and measure the devices anew\n"
    "  --verify SHARE      have that share of the bands done by two devices and\n"
    "                      compared, 0 to 1 (default 0)\n"
    "\n"
    "Measuring:\n"
    "  --repeat N          do the picture N times (default 1)\n"
    "  --stats FILE        write what each frame cost, as JSON\n"
    "  --trace FILE        write a trace for Perfetto or chrome://tracing\n"
    "  --verify            without a share: do the picture on each device alone too\n"
    "                      and compare every bit\n"
    "  --hash              print a hash of the output's pixels\n"
    "  --progress WHICH    video: live (default, on a terminal) or json: a line each\n"
    "                      second on standard error\n"
    "  -v, --verbose       say more\n"
    "  -q, --quiet         say nothing but errors\n"
    "  -h, --help          this text\n"
    "  --version           versions\n";

/* Values of getopt_long; bit `value - OPTION_FIRST` of options.given. */
enum {
    OPTION_FIRST = 256,
    OPTION_TO = OPTION_FIRST,
    OPTION_ENCODER,
    OPTION_CRF,
    OPTION_PRESET,
    OPTION_OVERWRITE,
    OPTION_PROGRESS,
    OPTION_OPERATOR,
    OPTION_EXPOSURE,
    OPTION_PEAK,
    OPTION_DESAT,
    OPTION_DETAIL,
    OPTION_DEPTH,
    OPTION_ALPHA,
    OPTION_SDR_WHITE,
    OPTION_DITHER,
    OPTION_GAMUT,
    OPTION_SCALE,
    OPTION_TRANSFER,
    OPTION_PRIMARIES,
    OPTION_RANGE,
    OPTION_SIZE,
    OPTION_FORMAT,
    OPTION_RATE,
    OPTION_START,
    OPTION_FRAMES,
    OPTION_FRAME,
    OPTION_LOOKAHEAD,
    OPTION_TRUST_METADATA,
    OPTION_DEVICES,
    OPTION_POLICY,
    OPTION_SPLIT,
    OPTION_RESERVE,
    OPTION_ARITHMETIC,
    OPTION_IN_FLIGHT,
    OPTION_DEADLINE,
    OPTION_NO_CACHE,
    OPTION_REPEAT,
    OPTION_STATS,
    OPTION_TRACE,
    OPTION_VERIFY,
    OPTION_HASH,
    OPTION_VERSION,
    OPTION_SHARE,
    OPTION_SCENES,
    OPTION_SOURCE,
};
#define GIVEN(option) (UINT64_C(1) << ((option)-OPTION_FIRST))

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"to", required_argument, NULL, OPTION_TO},
    {"encoder", required_argument, NULL, OPTION_ENCODER},
    {"crf", required_argument, NULL, OPTION_CRF},
    {"preset", required_argument, NULL, OPTION_PRESET},
    {"overwrite", no_argument, NULL, OPTION_OVERWRITE},
    {"progress", required_argument, NULL, OPTION_PROGRESS},
    {"operator", required_argument, NULL, OPTION_OPERATOR},
    {"exposure", required_argument, NULL, OPTION_EXPOSURE},
    {"peak", required_argument, NULL, OPTION_PEAK},
    {"desat", required_argument, NULL, OPTION_DESAT},
    {"detail", required_argument, NULL, OPTION_DETAIL},
    {"depth", required_argument, NULL, OPTION_DEPTH},
    {"alpha", no_argument, NULL, OPTION_ALPHA},
    {"sdr-white", required_argument, NULL, OPTION_SDR_WHITE},
    {"dither", required_argument, NULL, OPTION_DITHER},
    {"gamut", required_argument, NULL, OPTION_GAMUT},
    {"scale", required_argument, NULL, OPTION_SCALE},
    {"transfer", required_argument, NULL, OPTION_TRANSFER},
    {"primaries", required_argument, NULL, OPTION_PRIMARIES},
    {"range", required_argument, NULL, OPTION_RANGE},
    {"size", required_argument, NULL, OPTION_SIZE},
    {"format", required_argument, NULL, OPTION_FORMAT},
    {"rate", required_argument, NULL, OPTION_RATE},
    {"start", required_argument, NULL, OPTION_START},
    {"frames", required_argument, NULL, OPTION_FRAMES},
    {"frame", required_argument, NULL, OPTION_FRAME},
    {"lookahead", required_argument, NULL, OPTION_LOOKAHEAD},
    {"trust-metadata", no_argument, NULL, OPTION_TRUST_METADATA},
    {"devices", required_argument, NULL, OPTION_DEVICES},
    {"policy", required_argument, NULL, OPTION_POLICY},
    {"split", required_argument, NULL, OPTION_SPLIT},
    {"reserve", required_argument, NULL, OPTION_RESERVE},
    {"arithmetic", required_argument, NULL, OPTION_ARITHMETIC},
    {"in-flight", required_argument, NULL, OPTION_IN_FLIGHT},
    {"deadline", required_argument, NULL, OPTION_DEADLINE},
    {"no-cache", no_argument, NULL, OPTION_NO_CACHE},
    {"repeat", required_argument, NULL, OPTION_REPEAT},
    {"stats", required_argument, NULL, OPTION_STATS},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"verify", optional_argument, NULL, OPTION_VERIFY},
    {"hash", no_argument, NULL, OPTION_HASH},
    {"verbose", no_argument, NULL, 'v'},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"share", required_argument, NULL, OPTION_SHARE},
    {"scene", required_argument, NULL, OPTION_SCENES},
    {"source", required_argument, NULL, OPTION_SOURCE},
    {NULL, 0, NULL, 0}};

/* What means something for one kind of input only. */
static const uint64_t picture_only = GIVEN(OPTION_ALPHA) | GIVEN(OPTION_REPEAT);
static const uint64_t video_only =
    GIVEN(OPTION_TO) | GIVEN(OPTION_SDR_WHITE) | GIVEN(OPTION_DITHER) | GIVEN(OPTION_GAMUT) |
    GIVEN(OPTION_SCALE) | GIVEN(OPTION_TRANSFER) | GIVEN(OPTION_PRIMARIES) | GIVEN(OPTION_RANGE) |
    GIVEN(OPTION_SIZE) | GIVEN(OPTION_FORMAT) | GIVEN(OPTION_RATE) | GIVEN(OPTION_START) |
    GIVEN(OPTION_FRAMES) | GIVEN(OPTION_FRAME) | GIVEN(OPTION_LOOKAHEAD) |
    GIVEN(OPTION_TRUST_METADATA) | GIVEN(OPTION_ENCODER) | GIVEN(OPTION_CRF) |
    GIVEN(OPTION_PRESET) | GIVEN(OPTION_OVERWRITE) | GIVEN(OPTION_PROGRESS);

/* What decides on a film's mapped frames, or which of them there are: a file of scenes says it all. */
static const uint64_t look_options = GIVEN(OPTION_OPERATOR) | GIVEN(OPTION_EXPOSURE) |
                                     GIVEN(OPTION_PEAK) | GIVEN(OPTION_DESAT) |
                                     GIVEN(OPTION_DETAIL) | GIVEN(OPTION_DEPTH) |
                                     GIVEN(OPTION_SDR_WHITE) | GIVEN(OPTION_DITHER) |
                                     GIVEN(OPTION_GAMUT) | GIVEN(OPTION_SCALE) |
                                     GIVEN(OPTION_TRANSFER) | GIVEN(OPTION_PRIMARIES) |
                                     GIVEN(OPTION_RANGE) | GIVEN(OPTION_LOOKAHEAD) |
                                     GIVEN(OPTION_TRUST_METADATA) | GIVEN(OPTION_ARITHMETIC);

/* What the steps of a film in pieces take besides: the input's format, and the devices. */
static const uint64_t step_options = GIVEN(OPTION_SIZE) | GIVEN(OPTION_FORMAT) |
                                     GIVEN(OPTION_RATE) | GIVEN(OPTION_SHARE) |
                                     GIVEN(OPTION_DEVICES) | GIVEN(OPTION_POLICY) |
                                     GIVEN(OPTION_SPLIT) | GIVEN(OPTION_RESERVE) |
                                     GIVEN(OPTION_IN_FLIGHT) | GIVEN(OPTION_NO_CACHE) |
                                     GIVEN(OPTION_VERIFY) | GIVEN(OPTION_OVERWRITE);
static const uint64_t map_options = GIVEN(OPTION_TO) | GIVEN(OPTION_ENCODER) | GIVEN(OPTION_CRF) |
                                    GIVEN(OPTION_PRESET) | GIVEN(OPTION_STATS) |
                                    GIVEN(OPTION_TRACE) | GIVEN(OPTION_HASH) |
                                    GIVEN(OPTION_PROGRESS) | GIVEN(OPTION_SCENES) |
                                    GIVEN(OPTION_DEADLINE);

static const struct {
    const char *name;
    uint64_t options; /* 0 = all but those of the steps */
} steps[] = {
    [FILM_WHOLE] = {"", 0},
    [FILM_ANALYSE] = {"analyse", look_options | step_options},
    [FILM_STEER] = {"steer", GIVEN(OPTION_OVERWRITE)},
    [FILM_MAP] = {"map", step_options | map_options},
    [FILM_JOIN] = {"join", GIVEN(OPTION_SOURCE) | GIVEN(OPTION_SCENES) | GIVEN(OPTION_OVERWRITE)}};

/* What means something for a finished file only. */
static const uint64_t finished_only = GIVEN(OPTION_ENCODER) | GIVEN(OPTION_CRF) |
                                      GIVEN(OPTION_PRESET) | GIVEN(OPTION_OVERWRITE);

/* Sets the text; returns false. */
__attribute__((format(printf, 2, 3))) static bool wrong(struct options_error *error,
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return false;
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

static bool parse_number(const char *text, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value);
}

static bool parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    size_t digits = strspn(text, "0123456789");
    if (!digits || text[digits] || digits > 18)
        return false;
    *value = strtoull(text, NULL, 10);
    return *value >= least && *value <= most;
}

/* Place of `text` in a list that ends with NULL; -1 if it is not there. */
static int parse_word(const char *text, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp(text, words[i]))
            return i;
    return -1;
}

/* From OUTPUT_PNG on: what --to says, and but for null what names end with. */
static const char *const kind_names[] = {"png", "y4m", "nv12", "p010", "null", "mkv", "mp4", NULL};

static enum output_kind find_kind(const char *name)
{
    const int word = parse_word(name, kind_names);
    return word >= 0 ? (enum output_kind)(OUTPUT_PNG + word) : OUTPUT_NAME;
}

const char *options_kind_name(enum output_kind kind)
{
    return kind_names[kind - OUTPUT_PNG];
}

static void operator_names(char *text, size_t bytes)
{
    size_t used = 0;
    for (int op = 0; op < COX_OPERATOR_COUNT && used < bytes; op++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", op ? ", " : "",
                                 cox_operator_name((enum cox_operator)op));
}

void options_policy_names(char *text, size_t bytes)
{
    size_t used = 0;
    const struct cox_policy *policy;
    for (uint32_t i = 0; (policy = cox_policy_at(i)) && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", policy->name);
}

static bool parse_split(struct options *options, const char *text, struct options_error *error)
{
    double sum = 0;
    const char *at = text;
    options->policy_options.ratios = options->ratios;
    options->policy_options.ratio_count = 0;
    for (;;) {
        char *end;
        double ratio = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !isfinite(ratio) || ratio < 0 || ratio > 1)
            return wrong(
                error,
                "--split %s: give shares between 0 and 1 separated by commas, such as 0.75,0.25",
                text);
        if (options->policy_options.ratio_count == COX_DEVICES_MAX)
            return wrong(error, "--split %s: more than %d shares", text, COX_DEVICES_MAX);
        options->ratios[options->policy_options.ratio_count++] = ratio;
        sum += ratio;
        if (!*end)
            break;
        at = end + 1;
    }
    if (fabs(sum - 1.0) > 1e-6)
        return wrong(error, "--split %s: the shares sum to %g, not to 1", text, sum);
    return true;
}

static bool parse_reserve(struct options *options, const char *text, struct options_error *error)
{
    static const char *const words[] = {"auto", "off", "on", NULL};
    static const enum cox_reserve reserves[] = {COX_RESERVE_AUTO, COX_RESERVE_OFF, COX_RESERVE_ON};
    uint64_t cpu;
    int which = parse_word(text, words);
    if (which >= 0) {
        options->reserve = reserves[which];
    } else if (parse_count(text, 0, UINT32_MAX, &cpu)) {
        options->reserve = COX_RESERVE_CORE;
        options->reserve_cpu = (uint32_t)cpu;
    } else {
        return wrong(error, "--reserve %s: not auto, on, off or the number of a CPU", text);
    }
    return true;
}

static bool parse_size(struct options *options, const char *text, struct options_error *error)
{
    char width[8] = "", height[8] = "";
    uint64_t w, h;
    int end = 0;
    if (sscanf(text, "%7[0-9]x%7[0-9]%n", width, height, &end) != 2 || text[end] ||
        !parse_count(width, 1, VIDEO_SIDE_MAX, &w) || !parse_count(height, 1, VIDEO_SIDE_MAX, &h))
        return wrong(error, "--size %s: not a size such as 3840x2160, with sides from 1 to %d",
                     text, VIDEO_SIDE_MAX);
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
    } else if (parse_number(text, &fps) && fps >= 0.001 && fps <= 100000) {
        bool whole = fps == floor(fps);
        options->rate = (struct video_rational){(uint32_t)lround(whole ? fps : fps * 1000),
                                                whole ? 1 : 1000};
        return true;
    }
    return wrong(error,
                 "--rate %s: not a number of frames per second such as 25, 23.976 or 24000/1001",
                 text);
}

/* --- Options by what they are about ------------------------------------------------------------------------------- */

/* A luminance in cd/m2. */
static bool parse_nits(const char *text, double *nits)
{
    return parse_number(text, nits) && *nits >= 1 && *nits <= 1e6;
}

/* clip, compress, or compress:KNEE */
static bool parse_gamut(struct options *options, const char *text, struct options_error *error)
{
    static const char compress[] = "compress";
    const char *after = text + sizeof compress - 1;
    double knee = 0;
    options->has_gamut = true;
    options->gamut = strcmp(text, "clip") ? COX_GAMUT_COMPRESS : COX_GAMUT_CLIP;
    if (options->gamut == COX_GAMUT_CLIP || !strcmp(text, compress))
        return true;
    if (strncmp(text, compress, sizeof compress - 1) || *after != ':')
        return wrong(error, "--gamut %s: neither clip nor compress, nor compress:KNEE", text);
    if (!parse_number(after + 1, &knee) || knee < 0.25 || knee > 0.95)
        return wrong(error, "--gamut %s: not a knee between 0.25 and 0.95", text);
    options->gamut_knee = (float)knee;
    return true;
}

/* 1/2, WxH, Wx or xH. */
static bool parse_scale(struct options *options, const char *text, struct options_error *error)
{
    unsigned long sides[2] = {0, 0};
    const char *at = text;
    options->scale = strcmp(text, "1/2") ? COX_SCALE_FILTER : COX_SCALE_HALF;
    if (options->scale == COX_SCALE_HALF)
        return true;
    bool good = true;
    for (int i = 0; i < 2 && good; i++) {
        char *end = (char *)at;
        if (*at >= '1' && *at <= '9')
            sides[i] = strtoul(at, &end, 10);
        good = sides[i] <= 65536 && *end == (i ? '\0' : 'x');
        at = end + 1;
    }
    options->scale_width = (uint32_t)sides[0];
    options->scale_height = (uint32_t)sides[1];
    return (good && (sides[0] || sides[1])) ||
           wrong(error, "--scale %s: neither 1/2 nor a size such as 1920x1080, 1920x or x1080",
                 text);
}

/* How the result is to look. */
static bool parse_look(struct options *options, int which, const char *text,
                       struct options_error *error)
{
    static const char *const dithers[] = {"none", "ordered", NULL};
    char names[256];
    double number;
    int word;
    switch (which) {
    case OPTION_OPERATOR:
        if (cox_operator_find(text, &options->op) == COX_OK)
            return true;
        operator_names(names, sizeof names);
        return wrong(error, "there is no operator '%s'; there are: %s", text, names);
    case OPTION_EXPOSURE:
        if (!parse_number(text, &options->exposure_stops) || fabs(options->exposure_stops) > 32)
            return wrong(error, "--exposure %s: not a number of stops between -32 and 32", text);
        return true;
    case OPTION_PEAK:
        options->peak_auto = !strcmp(text, "auto");
        if (!options->peak_auto && !parse_nits(text, &options->peak_nits))
            return wrong(error,
                         "--peak %s: neither auto nor a luminance between 1 and 1000000 cd/m2",
                         text);
        return true;
    case OPTION_SDR_WHITE:
        if (!parse_nits(text, &options->sdr_white_nits) || options->sdr_white_nits > 10000)
            return wrong(error, "--sdr-white %s: not a luminance between 1 and 10000 cd/m2", text);
        return true;
    case OPTION_DESAT:
        if (!parse_number(text, &number) || number < 0 || number > 1)
            return wrong(error, "--desat %s: not a strength between 0 and 1", text);
        options->desaturate = number > 0 ? (float)number
                                         : -1.0f; /* the library's 0 means its default */
        return true;
    case OPTION_DETAIL:
        options->detail = parse_number(text, &number) ? (float)number : 0;
        return (options->detail >= 0.25f && options->detail <= 4) ||
               wrong(error, "--detail %s: not a factor between 0.25 and 4", text);
    case OPTION_DITHER:
        word = parse_word(text, dithers);
        options->dither = word > 0 ? COX_DITHER_ORDERED : COX_DITHER_NONE;
        options->has_dither = true;
        return word >= 0 || wrong(error, "--dither %s: neither none nor ordered", text);
    case OPTION_GAMUT:
        return parse_gamut(options, text, error);
    case OPTION_SCALE:
        return parse_scale(options, text, error);
    default:
        if (strcmp(text, "8") && strcmp(text, "10") && strcmp(text, "16"))
            return wrong(error, "--depth %s: neither 8 nor 16, nor 10 for y4m", text);
        options->depth = (uint32_t)strtoul(text, NULL, 10);
        return true;
    }
}

/* FIRST:END, either of which may be missing. */
static bool parse_range(struct options *options, const char *text, struct options_error *error)
{
    char first[20] = "0", end[20] = "";
    const char *colon = strchr(text, ':');
    if (colon != text)
        snprintf(first, sizeof first, "%.*s", (int)(colon - text), text);
    snprintf(end, sizeof end, "%s", colon + 1);
    options->ranged = true;
    options->range_end = UINT64_MAX;
    return (parse_count(first, 0, VIDEO_FRAMES_MAX, &options->range_first) &&
            (!*end || (parse_count(end, 1, VIDEO_FRAMES_MAX, &options->range_end) &&
                       options->range_end > options->range_first))) ||
           wrong(error, "--range %s: not FIRST:END, frames from 0 on, such as 1000:2000", text);
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
           wrong(error, "--share %s: not I/N, the I-th of N parts, such as 1/16", text);
}

/* What the input is. */
static bool parse_stream(struct options *options, int which, const char *text,
                         struct options_error *error)
{
    static const char *const transfers[] = {"pq", "hlg", "linear", NULL};
    static const char *const primaries[] = {"bt2020", "bt709", NULL};
    static const char *const ranges[] = {"limited", "full", NULL};
    int word;
    switch (which) {
    case OPTION_TRANSFER:
        word = parse_word(text, transfers);
        options->has_transfer = true;
        options->transfer = word > 0 ? (enum cox_transfer)word : COX_TRANSFER_PQ;
        return word >= 0 || wrong(error, "--transfer %s: not pq, hlg or linear", text);
    case OPTION_PRIMARIES:
        word = parse_word(text, primaries);
        options->has_primaries = true;
        options->primaries = word > 0 ? COX_PRIMARIES_BT709 : COX_PRIMARIES_BT2020;
        return word >= 0 || wrong(error, "--primaries %s: neither bt2020 nor bt709", text);
    case OPTION_RANGE:
        if (strchr(text, ':'))
            return parse_range(options, text, error);
        options->given |= GIVEN(OPTION_RANGE);
        word = parse_word(text, ranges);
        options->has_range = true;
        options->range = word > 0 ? COX_RANGE_FULL : COX_RANGE_LIMITED;
        return word >= 0 ||
               wrong(error, "--range %s: neither limited nor full, nor FIRST:END of frames", text);
    case OPTION_SIZE:
        return parse_size(options, text, error);
    case OPTION_RATE:
        return parse_rate(options, text, error);
    default:
        if (!video_raw_find(text, &options->raw))
            return wrong(error, "there is no format '%s'; there are: %s", text, video_raw_names);
        return true;
    }
}

/* Which frames of it. */
static bool parse_frames(struct options *options, int which, const char *text,
                         struct options_error *error)
{
    switch (which) {
    case OPTION_START:
        return parse_count(text, 0, VIDEO_FRAMES_MAX, &options->start) ||
               wrong(error, "--start %s: not the number of a frame, 0 to %d", text,
                     VIDEO_FRAMES_MAX);
    case OPTION_FRAMES:
        return parse_count(text, 1, VIDEO_FRAMES_MAX, &options->frames) ||
               wrong(error, "--frames %s: not a number of frames, 1 to %d", text, VIDEO_FRAMES_MAX);
    case OPTION_FRAME:
        options->one_frame = true;
        return parse_count(text, 0, VIDEO_FRAMES_MAX, &options->frame) ||
               wrong(error, "--frame %s: not the number of a frame, 0 to %d", text,
                     VIDEO_FRAMES_MAX);
    default:
        options->lookahead = !strcmp(text, "1");
        return options->lookahead || !strcmp(text, "0") ||
               wrong(error, "--lookahead %s: neither 0 nor 1", text);
    }
}

/* With a share, of the bands; without one, of a picture as a whole. */
static bool parse_verify(struct options *options, const char *text, struct options_error *error)
{
    if (!text) {
        options->verify = true;
        return true;
    }
    if (!parse_number(text, &options->verify_share) || options->verify_share < 0 ||
        options->verify_share > 1)
        return wrong(error, "--verify %s: not a share of the bands between 0 and 1", text);
    return true;
}

static bool parse_deadline(struct options *options, const char *text, struct options_error *error)
{
    double ms;
    if (!parse_number(text, &ms) || !(ms >= 0.001 && ms <= 1e6))
        return wrong(error, "--deadline %s: not a number of milliseconds between 0.001 and 1000000",
                     text);
    options->policy_options.deadline_ns = (uint64_t)(ms * 1e6 + 0.5);
    return true;
}

/* The devices and the split. */
static bool parse_work(struct options *options, int which, const char *text,
                       struct options_error *error)
{
    char names[256];
    uint64_t count;
    switch (which) {
    case OPTION_DEVICES:
        options->devices = text;
        return true;
    case OPTION_POLICY:
        options->policy = text;
        options_policy_names(names, sizeof names);
        return cox_policy_find(text) ||
               wrong(error, "there is no policy '%s'; there are: %s", text, names);
    case OPTION_SPLIT:
        return parse_split(options, text, error);
    case OPTION_RESERVE:
        return parse_reserve(options, text, error);
    case OPTION_ARITHMETIC:
        return option_arithmetic(text, &options->arithmetic) ||
               wrong(error, "--arithmetic %s: not auto, muladd or fma", text);
    case OPTION_IN_FLIGHT:
        if (!parse_count(text, 1, COX_IN_FLIGHT_MAX, &count))
            return wrong(error, "--in-flight %s: not a number of frames between 1 and %d", text,
                         COX_IN_FLIGHT_MAX);
        options->in_flight = (uint32_t)count;
        return true;
    case OPTION_DEADLINE:
        return parse_deadline(options, text, error);
    default:
        return parse_count(text, 1, REPEAT_MAX, &options->repeat) ||
               wrong(error, "--repeat %s: not a number between 1 and %d", text, REPEAT_MAX);
    }
}

/* Where things go, and what takes no value. */
static bool parse_rest(struct options *options, int which, const char *text,
                       struct options_error *error)
{
    switch (which) {
    case OPTION_ENCODER:
        options->encoder = text;
        return (*text && *text != ':') ||
               wrong(error, "--encoder %s: no name of an encoder", *text ? text : "''");
    case OPTION_CRF:
        options->crf = text;
        return true;
    case OPTION_PRESET:
        options->preset = text;
        return true;
    case OPTION_PROGRESS:
        options->progress_json = !strcmp(text, "json");
        return options->progress_json || !strcmp(text, "live") ||
               wrong(error, "--progress %s: neither live nor json", text);
    case OPTION_OVERWRITE:
        options->overwrite = true;
        return true;
    case OPTION_TO:
        options->to = find_kind(text);
        return options->to != OUTPUT_NAME ||
               wrong(error, "--to %s: not mkv, mp4, y4m, nv12, p010, png or null", text);
    case OPTION_STATS:
        options->stats = text;
        return true;
    case OPTION_TRACE:
        options->trace = text;
        return true;
    case OPTION_ALPHA:
        options->alpha = PICTURE_ALPHA_STRAIGHT;
        return true;
    case OPTION_NO_CACHE:
        options->no_cache = true;
        return true;
    default:
        options->hash = true;
        return true;
    }
}

static bool parse_one(struct options *options, int which, const char *text,
                      struct options_error *error)
{
    if (which != OPTION_RANGE) /* of which there are two */
        options->given |= GIVEN(which);
    switch (which) {
    case OPTION_SHARE:
        return parse_share(options, text, error);
    case OPTION_SCENES:
        options->scenes = text;
        return true;
    case OPTION_SOURCE:
        options->source = text;
        return true;
    case OPTION_OPERATOR:
    case OPTION_EXPOSURE:
    case OPTION_PEAK:
    case OPTION_DESAT:
    case OPTION_DETAIL:
    case OPTION_DEPTH:
    case OPTION_SDR_WHITE:
    case OPTION_DITHER:
    case OPTION_GAMUT:
    case OPTION_SCALE:
        return parse_look(options, which, text, error);
    case OPTION_TRANSFER:
    case OPTION_PRIMARIES:
    case OPTION_RANGE:
    case OPTION_SIZE:
    case OPTION_FORMAT:
    case OPTION_RATE:
        return parse_stream(options, which, text, error);
    case OPTION_START:
    case OPTION_FRAMES:
    case OPTION_FRAME:
    case OPTION_LOOKAHEAD:
        return parse_frames(options, which, text, error);
    case OPTION_TRUST_METADATA:
        options->trust_metadata = true;
        return true;
    case OPTION_DEVICES:
    case OPTION_POLICY:
    case OPTION_SPLIT:
    case OPTION_RESERVE:
    case OPTION_ARITHMETIC:
    case OPTION_IN_FLIGHT:
    case OPTION_DEADLINE:
    case OPTION_REPEAT:
        return parse_work(options, which, text, error);
    default:
        return parse_rest(options, which, text, error);
    }
}

/* --- What they say together --------------------------------------------------------------------------------------- */

static const char *name_ending(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && dot != path && !strchr(dot, '/') ? dot + 1 : "";
}

/* Raw input: by --size and --format, or by the name's ending in the place of --format. */
static bool check_raw(struct options *options, struct options_error *error)
{
    static const char *const endings[] = {"p010", "nv12", "yuv", "rgba16f", "v210", NULL};
    static const char *const formats[] = {"p010", "nv12", "yuv420p10", "rgba16f", "v210"};
    bool size = options->given & GIVEN(OPTION_SIZE), format = options->given & GIVEN(OPTION_FORMAT);
    int ending = parse_word(name_ending(options->input), endings);
    options->raw.given = size || format;
    options->raw_by_name = false;
    options->raw.rate = options->rate;
    if (format && !size)
        return wrong(error,
                     "--format is about raw frames: give their size too, such as --size 3840x2160");
    if (!format && ending >= 0) {
        options->raw_by_name = !size;
        return video_raw_find(formats[ending], &options->raw) ||
               wrong(error, "there is no format '%s'", formats[ending]);
    }
    if (size && !format)
        return wrong(
            error,
            "--size is about raw frames: give their format too, with --format; there are: %s",
            video_raw_names);
    return true;
}

static const char *option_name(uint64_t bit)
{
    for (const struct option *option = long_options; option->name; option++)
        if (option->val >= OPTION_FIRST && GIVEN(option->val) == bit)
            return option->name;
    return "";
}

/* Whether the step takes what was given. */
static bool check_step(struct options *options, struct options_error *error)
{
    const enum film_step step = options->step;
    const bool pieces = step == FILM_ANALYSE || step == FILM_MAP;
    const uint64_t strange = options->given &
                             (step == FILM_WHOLE ? GIVEN(OPTION_SHARE) | GIVEN(OPTION_SOURCE)
                                                 : ~steps[step].options);
    if (strange && step != FILM_WHOLE)
        return wrong(error, "--%s: cox-tonemap %s does not take it%s",
                     option_name(strange & -strange), steps[step].name,
                     strange & look_options ? ": the look is what analyse was told" : "");
    if (strange)
        return wrong(error, "--%s is of a step of a film in pieces: analyse, map or join",
                     option_name(strange & -strange));
    if (options->ranged && !pieces)
        return wrong(
            error,
            "--range FIRST:END is of analyse and map; --start and --frames are for the whole");
    if (options->ranged && options->share_count)
        return wrong(error, "--range and --share both say which frames");
    if (pieces && options->input_count > 1)
        return wrong(error, "cox-tonemap %s takes one film, and there are %u inputs",
                     steps[step].name, options->input_count);
    if (step == FILM_MAP && !options->scenes)
        return wrong(error, "cox-tonemap map needs what steer has found: --scene FILE");
    if (options->scenes && options->given & look_options)
        return wrong(error, "--%s: the look is what the file of scenes says",
                     option_name((options->given & look_options) &
                                 -(options->given & look_options)));
    return true;
}

static bool check_options(struct options *options, struct options_error *error)
{
    if (!options->input && options->step == FILM_STEER)
        return wrong(error, "no input: give the parts that analyse has written");
    if (!options->input)
        return wrong(error, "no input: give a video or a picture (cox-tonemap --help tells more)");
    if (!options->output)
        return wrong(error, "no output: give one with -o (cox-tonemap --help tells more)");
    if (options->given & GIVEN(OPTION_DETAIL) && options->op != COX_OPERATOR_LOCAL)
        return wrong(error, "--detail is about --operator local; the operator is %s",
                     cox_operator_name(options->op));
    if (options->policy_options.ratio_count && options->policy && strcmp(options->policy, "static"))
        return wrong(error, "--split fixes the shares, which --policy %s would change",
                     options->policy);
    if (options->policy_options.ratio_count)
        options->policy = "static";
    unsigned standard = !strcmp(options->output, "-");
    standard += options->stats && !strcmp(options->stats, "-");
    standard += options->trace && !strcmp(options->trace, "-");
    if (standard > 1)
        return wrong(error, "only one of output, statistics and trace can go to standard output");
    if (options->input_count > 1 && (options->stats || options->trace))
        return wrong(error, "--%s is of one input, and there are %u",
                     options->stats ? "stats" : "trace", options->input_count);
    return check_step(options, error) && check_raw(options, error);
}

bool options_take(struct options *options, const char *input, struct options_error *error)
{
    options->input = input;
    return check_raw(options, error);
}

static bool suits_picture(struct options *options, struct options_error *error)
{
    if (options->depth == 10)
        return wrong(error, "--depth 10: neither 8 nor 16, which a PNG may have");
    if (!options->depth)
        options->depth = 8;
    return true;
}

/* A PNG is one frame; everything else is a stream of them. */
static bool suits_frames(const struct options *options, struct options_error *error)
{
    if (options->to == OUTPUT_PNG) {
        if (options->given & (GIVEN(OPTION_START) | GIVEN(OPTION_FRAMES)))
            return wrong(
                error,
                "a PNG is one frame: say with --frame N which, in the place of --start and --frames");
    } else if (options->one_frame) {
        return wrong(
            error,
            "--frame writes one frame as a PNG: name the output .png, or give --start %u --frames 1",
            (unsigned)options->frame);
    }
    return true;
}

static bool suits_depth(struct options *options, struct options_error *error)
{
    static const struct {
        const char *what;
        uint32_t first, second; /* the first is the default */
    } kinds[] = {
        [OUTPUT_PNG] = {"a PNG", 8, 16},          [OUTPUT_Y4M] = {"y4m", 8, 10},
        [OUTPUT_NV12] = {"NV12", 8, 8},           [OUTPUT_P010] = {"P010", 10, 10},
        [OUTPUT_NULL] = {"y4m", 8, 10},           [OUTPUT_MKV] = {"a finished file", 8, 10},
        [OUTPUT_MP4] = {"a finished file", 8, 10}};
    uint32_t first = kinds[options->to].first, second = kinds[options->to].second;
    if (!options->depth)
        options->depth = first;
    if (options->depth == first || options->depth == second)
        return true;
    if (first == second)
        return wrong(error, "--depth %u: %s has %u bits", options->depth, kinds[options->to].what,
                     first);
    return wrong(error, "--depth %u: %s has %u or %u bits", options->depth, kinds[options->to].what,
                 first, second);
}

/* NAME = it does not tell. */
static enum output_kind kind_by_name(const char *output)
{
    const enum output_kind kind = find_kind(name_ending(output));
    if (kind != OUTPUT_NAME && kind != OUTPUT_NULL)
        return kind;
    return !strcmp(output, "null:") ? OUTPUT_NULL : !strcmp(output, "-") ? OUTPUT_Y4M : OUTPUT_NAME;
}

bool options_want_video(const struct options *options)
{
    enum output_kind kind = kind_by_name(options->output);
    return kind != OUTPUT_NAME && kind != OUTPUT_PNG && strcmp(options->output, "-") != 0;
}

uint64_t options_encoding(const struct options *options)
{
    const char *const words[] = {options->encoder, options->crf, options->preset};
    uint64_t hash = HASH_START;
    for (int i = 0; i < 3; i++) {
        const char *word = words[i] ? words[i] : "";
        hash = hash_bytes(hash, word, strlen(word) + 1);
    }
    return hash;
}

bool options_want_raw(const struct options *options)
{
    return options->to == OUTPUT_NV12 || options->to == OUTPUT_P010;
}

bool options_want_finished(const struct options *options)
{
    return options->to == OUTPUT_MKV || options->to == OUTPUT_MP4;
}

static bool suits_video(struct options *options, struct options_error *error)
{
    if (options->to == OUTPUT_NAME)
        options->to = kind_by_name(options->output);
    if (options->to == OUTPUT_NAME)
        return wrong(
            error,
            "%s: what is it to be? There are .mkv, .mp4, .y4m, .nv12, .p010, .png for one frame, and "
            "null:; --to says it whatever the name is",
            *options->output ? options->output : "''");
    const uint64_t of_steps = options->step ? GIVEN(OPTION_OVERWRITE) : 0;
    const uint64_t strange = options_want_finished(options)
                                 ? 0
                                 : options->given & finished_only & ~of_steps;
    if (strange)
        return wrong(error, "--%s is about finished files, .mkv and .mp4",
                     option_name(strange & -strange));
    if (options->op == COX_OPERATOR_EXPOSURE)
        return wrong(
            error, "the operator exposure is for pictures; linear and clip are its like for video");
    if (options->op == COX_OPERATOR_LOCAL && options->scale)
        return wrong(error, "--scale is not for the operator local");
    if (!options->peak_auto && options->trust_metadata)
        return wrong(error, "--trust-metadata is about --peak auto; --peak %g is fixed",
                     options->peak_nits);
    if (!options->peak_auto && options->given & GIVEN(OPTION_LOOKAHEAD))
        return wrong(error, "--lookahead is about --peak auto; --peak %g is fixed",
                     options->peak_nits);
    return suits_frames(options, error) && suits_depth(options, error);
}

/* Pieces are what can be joined. */
static bool suits_step(const struct options *options, struct options_error *error)
{
    const bool any = options->to == OUTPUT_Y4M || options->to == OUTPUT_MKV ||
                     options->to == OUTPUT_NULL;
    if (options->scenes && !any &&
        (options->to == OUTPUT_PNG || (options->step && !options->place)))
        return wrong(
            error,
            "%s: frames of a file of scenes go to .y4m, .mkv and, as a whole, .mp4, .nv12 and .p010",
            options->output);
    return true;
}

bool options_suit(struct options *options, enum options_job job, struct options_error *error)
{
    if (options->step == FILM_ANALYSE && !options_want_raw(options))
        options->to = OUTPUT_Y4M;
    uint64_t strange = options->given & (job == OPTIONS_VIDEO ? picture_only : video_only);
    if (strange) {
        const char *name = option_name(strange & -strange);
        if (job == OPTIONS_PICTURE)
            return wrong(error, "--%s is for video, and %s is none", name, options->input);
        return wrong(error, "--%s is for pictures, and %s is video", name, options->input);
    }
    if (job == OPTIONS_VIDEO && options->verify)
        return wrong(
            error,
            "--verify without a share is for pictures; --verify 0.1 has a tenth of the bands done by two "
            "devices, and --hash prints what can be compared with other --devices");
    if (job == OPTIONS_PICTURE && options->step)
        return wrong(error, "%s is no video: cox-tonemap %s is for films", options->input,
                     steps[options->step].name);
    return job == OPTIONS_VIDEO ? suits_video(options, error) && suits_step(options, error)
                                : suits_picture(options, error);
}

/* --- The command line --------------------------------------------------------------------------------------------- */

/* A long option that there is none of, or that is short for several. */
static bool complain_unknown(const char *written, struct options_error *error)
{
    char name[64], several[256];
    const char *begin = written + strspn(written, "-"), *nearest;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(begin, "="), begin);
    if (option_name_list(long_options, name, several, sizeof several) > 1)
        return wrong(error, "the option '--%s' is short for several: %s", name, several);
    nearest = option_name_nearest(long_options, name);
    if (nearest)
        return wrong(error, "unknown option '--%s'; did you mean '--%s'?", name, nearest);
    return wrong(error, "unknown option '--%s' (cox-tonemap --help lists them)", name);
}

/* The option that getopt refused, as it was written. */
static bool complain_option(bool lacks_value, char **argv, struct options_error *error)
{
    const char letter[3] = {'-', (char)optopt, 0};
    bool is_letter = optopt && optopt < OPTION_FIRST &&
                     !strchr("vqh", optopt); /* these are right: --quiet=x */
    const char *written = is_letter ? letter : argv[optind - 1];
    if (lacks_value)
        return wrong(error, "the option %s needs a value", written);
    if (optopt && !is_letter)
        return wrong(error, "the option %s takes no value", written);
    if (is_letter)
        return wrong(error, "unknown option '%s' (cox-tonemap --help lists them)", written);
    return complain_unknown(written, error);
}

static enum options_parsed parse_all(struct options *options, int argc, char **argv,
                                     struct options_error *error)
{
    double number;
    for (;;) {
        int which = getopt_long(argc, argv, ":o:vqh", long_options, NULL);
        bool good = true;
        switch (which) {
        case -1:
            options->inputs = argv + optind;
            options->input_count = (uint32_t)(argc - optind);
            options->input = argv[optind]; /* NULL after the last one */
            return check_options(options, error) ? OPTIONS_RUN : OPTIONS_WRONG;
        case 'o':
            options->output = optarg;
            break;
        case 'v':
            options->verbose = true;
            break;
        case 'q':
            options->quiet = true;
            break;
        case 'h':
            return OPTIONS_HELP;
        case OPTION_VERSION:
            return OPTIONS_VERSION;
        case OPTION_VERIFY: /* its value is optional, and may be written apart like those of the others */
            options->given |= GIVEN(OPTION_VERIFY);
            if (!optarg && optind < argc && parse_number(argv[optind], &number))
                optarg = argv[optind++];
            good = parse_verify(options, optarg, error);
            break;
        case ':':
        case '?':
            good = complain_option(which == ':', argv, error);
            break;
        default:
            if (which == OPTION_POLICY && optarg && !strcmp(optarg, "help"))
                return OPTIONS_POLICIES;
            good = parse_one(options, which, optarg, error);
            break;
        }
        if (!good)
            return OPTIONS_WRONG;
    }
}

enum options_parsed options_parse(struct options *options, int argc, char **argv,
                                  struct options_error *error)
{
    *options = (struct options){.op = COX_OPERATOR_HABLE,
                                .peak_auto = true,
                                .in_flight = 2,
                                .repeat = 1,
                                .policy_options = {0}};
    error->text[0] = 0;
    for (int step = FILM_ANALYSE; step <= FILM_JOIN && argc > 1 && !options->step; step++)
        if (!strcmp(argv[1], steps[step].name))
            options->step = (enum film_step)step;
    argc -= options->step != FILM_WHOLE;
    argv += options->step != FILM_WHOLE;
    opterr = 0;
    optind = 0; /* from the beginning, also in the middle of what was read before */
    enum options_parsed parsed = parse_all(options, argc, argv, error);
    optind = 0;
    return parsed;
}
