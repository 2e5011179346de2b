/* Same bits: mapped video and its histograms are equal to the last bit, whichever device computed which rows. They
 * are within the guaranteed codes of the double-precision reference.
 *
 *   bits_video [--devices SEL] [--cache DIR] [--expect N] [--splits N] [--reference] [--small] [--scalars] [--verbose]
 *
 * The films have generated codes, sizes from 1x1 to 1917x1081, several formats and both transfers.
 * For each film it runs:
 *   (a) one frame with its histogram on each device alone
 *   (b) the same on all devices for each of --splits N random splits (50 by default)
 *   (c) the histogram alone, in both ways
 *   (d) for some films, two dozen frames of two scenes, on each device alone and on all with random splits: each
 *       frame's histogram steers the next one's curve as with "--peak auto"
 * In (a) to (c) two frames are in flight at a time. Every result is compared byte by byte with the first device's.
 * Before each frame the output is filled with the complement of the expected result, so a row that no device wrote
 * shows. The bands that really ran come from the session's reports. They are compared with the splits that were
 * drawn.
 *
 * --small cuts the films down to a corner and the splits to four, for a simulator. --scalars makes every device use
 * the kernels' scalar form.
 *
 * same.sh describes the output and compares the hashes of several set-ups. The exit status is 0 if nothing failed,
 * 77 without OpenCL devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "support/bits_suite.h"
#include "support/ref_video_case.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEERED_FRAMES = 24, STEERED_CUT = 11 };

static const struct kind {
    const char *name;
    bool steered;
    const char *shape;
} kinds[] = {
    {"one-pixel", true, "1x1 yuv420p10 to yuv420p8"},
    {"small", true, "3x5 p010 to p010 hlg reinhard dither"},
    {"flat", true, "33x2 yuv422p12 centre full to yuv420p8 centre full mobius fade"},
    {"odd-pq-8", true, "1917x1081 yuv420p10 to yuv420p8 fade"},
    {"odd-pq-10", false, "1917x1081 yuv420p10 topleft to yuv420p10 bt2390"},
    {"odd-hlg-8", false, "1917x1081 p010 to nv12 hlg bt2390 dither"},
    {"odd-hlg-10", true, "1917x1081 yuv420p10 to yuv420p10 hlg hable dither"},
    {"full-chroma", false, "613x127 yuv444p10 to yuv444p10 bt709 aces"},
    {"light", true, "301x203 rgba16 to rgba8 light hable fade"},
    {"halved", true, "646x358 p010 to yuv420p8 hable compress half"},
    {"smaller", true, "641x359 yuv420p10 to 427x239 yuv420p8 hable"},
    {"larger", false, "203x101 p010 to 322x180 yuv420p10 hlg bt2390"},
    {"captured", true, "643x361 v210 to bgra8 hable dither"},
    {"captured-half", false, "646x358 v210 centre to p210 hlg hable half"},
    {"captured-smaller", false, "641x359 v210 to 427x239 yuv420p8 bt2390"},
    {"hue", true, "643x361 yuv420p10 to yuv420p8 spline hue"},
    {"hue-wide", false, "301x203 gbrp12 to yuv422p10 bt2446a hue wide"},
    {"two-planes", false, "613x127 p210 to nv16 bt2390 compress"},
    {"colours", true, "301x203 gbrp12 full to gbrp10 hable"},
    {"pixels", false, "301x203 bgra16 to yuv444p10 hlg mobius"},
    {"table", false, "643x361 yuv420p10 to yuv420p8 lut33 dither"},
    {"table-halved", false, "646x358 p010 to yuv420p10 hlg half lut16"},
    {"table-smaller", false, "641x359 rgba16 to 427x239 gbrp10 lut5"},
    {"pixels-larger", false, "203x101 rgba8 to 322x180 bgra8 hable"},
    {"sdr", false, "613x127 yuv420p10 to yuv420p8 sdr bt709 dither"},
    {"sdr-captured", false, "643x361 v210 to p210 full sdr bt709"},
    {"sdr-wide", false, "613x127 p010 to yuv420p8 sdr compress"},
    {"sdr-to-hdr", false, "301x203 nv12 to p010 sdr bt709 pq wide local"},
};

static struct bits_suite suite = {.splits = 50};
static bool scalars;

/* --- Contents of films -------------------------------------------------------------------------------------------- */

/* A code near a level that depends on the block and the scene, with noise that depends on the frame. Every eighth
 * block has random codes. Chroma is near its middle. */
static uint32_t draw_code(const struct ref_film *film, uint32_t plane, uint32_t block, uint32_t scene, uint64_t *seed)
{
    const struct cox_video_format *format = &film->shape.in;
    const uint32_t largest = (1u << format->depth) - 1;
    uint64_t place = block * 2654435761u + plane;
    if (random_below(&place, 8) == 0)
        return random_below(seed, largest + 1);
    const uint32_t noise = random_below(seed, largest / 32 + 1), level = random_below(&place, largest / 4);
    if (film->shape.transfer == COX_TRANSFER_LINEAR) /* halves from 2^-9 to 2^6, one bright scene and one dark */
        return 0x1800 + (scene ? 0x2000 : 0x0800) + (level + noise) / 4;
    const bool colours = format->layout != COX_VIDEO_PLANAR && format->layout != COX_VIDEO_SEMI_PLANAR;
    return plane == 0 || colours ? level + (scene ? largest / 2 : largest / 8) + noise : largest / 3 + level + noise;
}

static void fill_frame(const struct ref_film *film, uint32_t number)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    uint64_t seed = (uint64_t)film->shape.width << 32 | number;
    cox_video_planes(&film->shape.in, film->shape.width, film->shape.height, planes);
    for (uint32_t p = 0; p < film->in_count; p++)
        for (uint32_t y = 0; y < planes[p].rows; y++)
            for (uint32_t i = 0; i < planes[p].row_bytes / planes[p].sample_bytes; i++) {
                const uint32_t block = y * planes[p].row_divisor / 16 * 4096 + i / 16;
                const uint32_t code = draw_code(film, p, block, number >= STEERED_CUT, &seed);
                const uint32_t three = code | (code + code / 8) % 1024 << 10 | (code + code / 4) % 1024 << 20;
                ref_film_put_sample(film, p, y, i, film->shape.in.layout == COX_VIDEO_V210 ? three : code);
            }
}

/* --- Films -------------------------------------------------------------------------------------------------------- */

/* A film with memory for each lane. All lanes have the same input. */
struct lanes {
    struct ref_film films[BITS_LANES];
    struct bits_frame frames[BITS_LANES];
    struct cox__stage scalar;
};

static void open_lanes(struct lanes *lanes, const struct kind *kind, enum ref_pipeline pipeline)
{
    struct cox_video_shape shape = ref_shape(kind->shape);
    if (suite.small) {
        const uint32_t even = shape.scale == COX_SCALE_HALF;
        shape.width = shape.width < 71 ? shape.width : 71 + even;
        shape.height = shape.height < 37 ? shape.height : 37 + even;
        shape.out_width = shape.out_width ? 53 : 0;
        shape.out_height = shape.out_height ? 45 : 0;
    }
    for (int i = 0; i < BITS_LANES; i++) {
        ref_film_open(&lanes->films[i], suite.runtime, &shape, pipeline, REF_ALIGNED, i ? &lanes->films[0] : NULL);
        lanes->frames[i] = lanes->films[i].frame;
    }
    struct cox__session_spec *session = &lanes->films[0].session;
    if (scalars && session->stage_count) {
        lanes->scalar = session->stages[0];
        lanes->scalar.variants++;
        lanes->scalar.variant_count = 1;
        session->stages = &lanes->scalar;
    }
    fill_frame(&lanes->films[0], 0);
}

static void close_lanes(struct lanes *lanes)
{
    for (int i = BITS_LANES; i-- > 0;)
        ref_film_close(&lanes->films[i]);
}

static struct bits_result result_of(const struct kind *kind, struct lanes *lanes, const char *how, const void *params)
{
    struct bits_result result = {.what = kind->name,
                                 .width = lanes->films[0].shape.width,
                                 .height = lanes->films[0].shape.height,
                                 .params = params,
                                 .lanes = lanes->frames,
                                 .lane_count = BITS_LANES,
                                 .splits = suite.splits};
    snprintf(result.how, sizeof result.how, "%s", how);
    return result;
}

/* --- Steering ----------------------------------------------------------------------------------------------------- */

/* Run two scenes, each frame with the settings from the histograms before it. The result is a hash for each frame. */
static bool run_steered(struct bits_session *session, struct lanes *lanes, const struct bits_result *about,
                        uint64_t hashes[STEERED_FRAMES])
{
    const struct cox_video_shape *shape = &lanes->films[0].shape;
    struct cox_video_settings settings = {0}, before = {0};
    struct cox_adaptation_state steer = {0};
    struct cox_constants params;
    struct bits_result result = *about;
    result.params = &params;
    for (uint32_t i = 0; i < STEERED_FRAMES; i++) {
        const uint32_t lane = i % BITS_LANES;
        fill_frame(&lanes->films[0], i);
        bits_need(cox_video_prepare(shape, &settings, &params), result.what);
        if (!bits_submit(session, &result, lane) || !bits_wait(session, &result, lane))
            return false;
        uint8_t *bytes = bits_frame_result(&lanes->frames[lane]);
        hashes[i] = bits_hash(bytes, bits_frame_bytes(&lanes->frames[lane]));
        free(bytes);
        if (i == STEERED_CUT)
            before = settings;
        cox_video_adapt(&steer, shape, ref_film_histogram(&lanes->films[lane]), &settings);
    }
    if (shape->height < 100) /* too small for a representative histogram */
        return true;
    if (steer.cuts != 1)
        return bits_complain(&suite, "%s, steered: %" PRIu64 " cuts instead of one", result.what, steer.cuts);
    if (settings.peak_nits == before.peak_nits && settings.gain == before.gain)
        return bits_complain(&suite, "%s, steered: both scenes at %g cd/m2, gain %g", result.what,
                             (double)settings.peak_nits, (double)settings.gain);
    return true;
}

static void steer_everywhere(const struct kind *kind, bool good)
{
    static struct lanes lanes;
    uint64_t hashes[STEERED_FRAMES];
    open_lanes(&lanes, kind, REF_MAPPING_AND_ANALYSIS);
    struct bits_result result = result_of(kind, &lanes, "steered", NULL);
    result.bytes = sizeof hashes;
    for (uint32_t d = 0; d <= suite.device_count && good; d++) {
        struct bits_session session;
        good = bits_session_open(&suite, kind->name, &lanes.films[0].session,
                                 d < suite.device_count ? d : BITS_ALL_DEVICES, 1000, 0, &session) &&
               run_steered(&session, &lanes, &result, hashes);
        good &= bits_session_close(&session);
        if (!good)
            break;
        if (result.runs++ == 0) {
            result.first = bits_memory(sizeof hashes);
            memcpy(result.first, hashes, sizeof hashes);
        } else if (memcmp(result.first, hashes, sizeof hashes) != 0) {
            result.wrong++;
            bits_complain(&suite, "%s, steered, %s: frames differ", kind->name, session.how);
        }
    }
    bits_result_print(&suite, &result, good);
    close_lanes(&lanes);
}

/* --- One film ----------------------------------------------------------------------------------------------------- */

/* Compare planes and histogram of the film with the reference. */
static void judge(const struct kind *kind, const struct ref_film *film, const struct cox_video_settings *settings)
{
    struct ref_error error = {0};
    uint32_t bin = 0;
    ref_film_judge(film, settings, &error);
    /* Scaled frames are rounded to codes of 16 bits first. */
    const bool counted = ref_film_counted(film, settings, film->shape.scale == COX_SCALE_FILTER ? 1e-2 : 1e-3, &bin);
    printf("error %s %.3f %u %.4f%% %s", kind->name, error.distance, error.steps,
           100.0 * error.off / (double)error.samples, counted ? "counted" : "MISCOUNTED");
    bits_verdict(&suite, error.steps <= (film->shape.out.depth == 8 ? 1 : 2) && counted, "within", "BEYOND");
}

static void run_kind(const struct kind *kind)
{
    static struct lanes lanes, counting;
    const struct cox_video_settings settings = {.peak_nits = 1200};
    struct cox_constants params;
    char how[24];
    open_lanes(&lanes, kind, REF_MAPPING_AND_ANALYSIS);
    open_lanes(&counting, kind, REF_ANALYSIS);
    const struct cox_video_shape *shape = &lanes.films[0].shape;
    bits_need(cox_video_prepare(shape, &settings, &params), kind->name);
    snprintf(how, sizeof how, "%s/%u", cox_operator_name(shape->op), shape->out.depth);

    struct bits_result mapped = result_of(kind, &lanes, how, &params);
    struct bits_result counted = result_of(kind, &counting, "histogram", &params);
    const bool good = bits_result_run(&suite, &lanes.films[0].session, &mapped, 1, NULL) &&
                      bits_result_run(&suite, &counting.films[0].session, &counted, 1, NULL);
    if (good && memcmp(mapped.first + mapped.bytes - COX_VIDEO_HISTOGRAM_BYTES, counted.first,
                       COX_VIDEO_HISTOGRAM_BYTES) != 0) {
        bits_complain(&suite, "%s: the mapping counts otherwise than the analysis", kind->name);
        suite.failed++;
    }
    if (good && suite.reference) {
        bits_frame_put(&lanes.frames[0], mapped.first);
        judge(kind, &lanes.films[0], &settings);
    }
    bits_result_print(&suite, &mapped, good);
    bits_result_print(&suite, &counted, good);
    close_lanes(&lanes);
    close_lanes(&counting);
    if (kind->steered)
        steer_everywhere(kind, good);
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static int read_option(void *user, const char *option, const char *value)
{
    (void)user, (void)value;
    return !strcmp(option, "--scalars") && (scalars = true);
}

int main(int argc, char **argv)
{
    const int status = bits_suite_begin(&suite, argc, argv, read_option, NULL);
    if (status >= 0)
        return status;
    if (suite.reference)
        printf(
            "heading Against the double-precision reference, in codes: the largest distance from its real number, the "
            "largest\nheading from its code, how many samples have another code, and the histogram.\n");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        run_kind(&kinds[i]);
    bits_suite_tally(&suite);
    return bits_suite_end(&suite);
}
