/* Same bits: the tone mapper's pictures and histograms are equal to the last bit whichever device made which rows, and
 * within one code of 8 bits of the double-precision reference.
 *
 *   bits_tonemap [--devices SEL] [--cache DIR] [--expect N] [--splits N] [--reference] [--pictures DIR] [--verbose]
 *
 * Pictures: 1x1, 7x3 and 1279x721 of made-up light, with NaN, infinite, negative and denormal values in it, and the EXR
 * pictures of examples/data. Each is mapped by every operator to 8 bits, and by one to 16 bits as well,
 *   (a) by each device alone,
 *   (b) by all devices under random splits, each frame under another one: --splits N of them for each picture, 100
 *       unless said, shared out over its nine mappings.
 * The analysis pass does (a) and (b) too, under the same splits as far as its granule allows. Two frames are in flight
 * at a time. Every result is compared byte by byte with the first device's, and before each frame the output is filled
 * with the complement of what is expected, so that a row nobody wrote shows. The bands that really ran are taken from
 * the session's reports and compared with the splits that were drawn.
 *
 * The EXR pictures are exposed as cox-tonemap does without options; their hashes are those of cox-tonemap --hash.
 *
 * Prints a line "bits PICTURE SIZE MAPPING HASH RUNS equal" (or DIFFERENT) for each picture and mapping, with
 * --reference a line "error MAPPING …" for each mapping, and "N passed, N failed". The exit status is 0 if nothing
 * failed, 77 without OpenCL devices. tonemap.sh compares the hashes of several set-ups.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/picture.h"
#include "support/bits_suite.h"
#include "support/random_splits.h"
#include "support/ref_tonemap.h"
#include <coxswain/coxswain.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LANES = 2, THREADS_MAX = 8, HISTOGRAM_WORDS = COX_TONEMAP_HISTOGRAM_BINS + 2 };
enum { SYNTHETIC_COUNT = 3, FILE_COUNT = 4, PICTURE_COUNT = SYNTHETIC_COUNT + FILE_COUNT };

static const struct synthetic {
    const char *name;
    uint32_t width, height;
    enum cox_pixel_in pixel;
} synthetics[SYNTHETIC_COUNT] = {
    {"one-pixel", 1, 1, COX_PIXEL_RGBA_HALF},
    {"small", 7, 3, COX_PIXEL_RGBA_HALF},
    {"odd-sized", 1279, 721, COX_PIXEL_RGBA_FLOAT},
};

static const char *const files[FILE_COUNT] = {"StillLife", "CandleGlass", "GoldenGate", "WideColorGamut"};

/* The mappings of a picture; those of one depth lie together, since they share a session. */
static const struct mapping {
    enum cox_operator op;
    enum cox_pixel_out depth;
} mappings[] = {
    {COX_OPERATOR_HABLE, COX_PIXEL_RGBA8},    {COX_OPERATOR_REINHARD, COX_PIXEL_RGBA8},
    {COX_OPERATOR_MOBIUS, COX_PIXEL_RGBA8},   {COX_OPERATOR_ACES, COX_PIXEL_RGBA8},
    {COX_OPERATOR_EXPOSURE, COX_PIXEL_RGBA8}, {COX_OPERATOR_LINEAR, COX_PIXEL_RGBA8},
    {COX_OPERATOR_BT2390, COX_PIXEL_RGBA8},   {COX_OPERATOR_CLIP, COX_PIXEL_RGBA8},
    {COX_OPERATOR_HABLE, COX_PIXEL_RGBA16},
};
enum { MAPPING_COUNT = sizeof mappings / sizeof mappings[0] };

static const uint32_t pixel_bytes_in[] = {[COX_PIXEL_RGBA_HALF] = 8, [COX_PIXEL_RGBA_FLOAT] = 16};
static const uint32_t pixel_bytes_out[] = {[COX_PIXEL_RGBA8] = 4, [COX_PIXEL_RGBA16] = 8};

/* ---- what a run is about ---- */

/* Distance from the reference. */
struct error {
    double codes;   /* largest, from the reference's real number */
    uint32_t steps; /* largest, from the reference's code */
    uint64_t off;   /* pixels with a channel that is not the reference's code */
    uint64_t pixels;
};

struct suite {
    struct bits_suite base;
    const char *directory;                 /* of the pictures */
    struct error errors[MAPPING_COUNT][2]; /* [0] of the files, [1] of the made-up pictures */
};

struct picture {
    const char *name;
    bool synthetic;
    struct cox_tonemap_shape shape; /* with the pitches; `out` is the mapping's */
    size_t pitch_out[2];            /* by enum cox_pixel_out */
    cox_buffer *in;
    uint32_t histogram[HISTOGRAM_WORDS];
};

/* One thing that all devices must agree on: a mapping of a picture, or its histogram. */
struct result {
    char name[24];
    size_t row_bytes;
    uint32_t rows;
    uint8_t *bytes; /* the first device's, without padding; NULL = none yet */
    uint32_t runs, wrong;
    uint32_t split_first, split_count;
};

/* Where a frame's output goes. */
struct lane {
    cox_buffer *out;
    cox_status status;
    bool done;
};

/* ---- sessions ---- */

/* Where the cuts of the next session of all devices are drawn; 0 = on its own granule. */
static uint32_t split_granule;

static bool open_session(struct suite *suite, const struct picture *picture, bool analysis, uint32_t device,
                         uint32_t split_first, struct bits_session *out)
{
    struct cox_tonemap_storage storage;
    struct cox_session_params params = {.in_flight = LANES};
    *out = (struct bits_session){.suite = &suite->base};
    const cox_status status = analysis ? cox_tonemap_analysis(&picture->shape, &storage, &params)
                                       : cox_tonemap_mapping(&picture->shape, &storage, &params);
    if (status != COX_OK)
        return bits_complain(&suite->base, "%s: no pipeline: %s", picture->name, cox_status_text(status));
    return bits_session_open(&suite->base, picture->name, &params, device, split_first, split_granule, out);
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct lane *lane = user;
    (void)frame;
    lane->status = status;
    lane->done = true;
}

/* ---- results ---- */

/* Nothing of what is expected. */
static void spoil(const struct result *result, cox_buffer *out, size_t pitch)
{
    for (uint32_t r = 0; r < result->rows; r++) {
        uint8_t *to = (uint8_t *)cox_buffer_data(out) + r * pitch;
        if (!result->bytes) {
            memset(to, 0xa5, result->row_bytes);
            continue;
        }
        const uint8_t *from = result->bytes + r * result->row_bytes;
        for (size_t i = 0; i < result->row_bytes; i++)
            to[i] = (uint8_t)~from[i];
    }
}

/* The first result is the one that the others must equal. False if there is none. */
static bool take(struct bits_suite *suite, const struct picture *picture, struct result *result, const cox_buffer *out,
                 size_t pitch, const char *how)
{
    const uint8_t *data = cox_buffer_data(out);
    result->runs++;
    if (!result->bytes) {
        result->bytes = malloc(result->row_bytes * result->rows);
        if (!result->bytes)
            return bits_complain(suite, "no memory");
        for (uint32_t r = 0; r < result->rows; r++)
            memcpy(result->bytes + r * result->row_bytes, data + r * pitch, result->row_bytes);
        return true;
    }
    for (uint32_t r = 0; r < result->rows; r++) {
        const uint8_t *want = result->bytes + r * result->row_bytes, *got = data + r * pitch;
        if (memcmp(want, got, result->row_bytes) == 0)
            continue;
        size_t at = 0;
        while (want[at] == got[at])
            at++;
        result->wrong++;
        bits_complain(suite, "%s, %s, %s: row %u, byte %zu is %u instead of %u", picture->name, result->name, how, r,
                      at, got[at], want[at]);
        break;
    }
    return true;
}

/* So many frames, two at a time, each compared. The histogram has no parameters. */
static bool run_frames(struct bits_session *session, const struct picture *picture, struct result *result,
                       const struct cox_tonemap_params *params, struct lane *lanes, size_t pitch, uint32_t count)
{
    struct bits_suite *suite = session->suite;
    const char *how = session->how;
    bool good = true;
    for (uint32_t next = 0; next < count && good;) {
        const uint32_t now = count - next < LANES ? count - next : LANES;
        for (uint32_t i = 0; i < now; i++)
            spoil(result, lanes[i].out, pitch);
        for (uint32_t i = 0; i < now && good; i++) {
            cox_buffer *const buffers[2] = {picture->in, lanes[i].out};
            const struct cox_frame frame = {.buffers = buffers, .buffer_count = 2, .params = params};
            lanes[i].done = false;
            const cox_status status = cox_session_submit(session->session, &frame, on_done, &lanes[i]);
            if (status != COX_OK)
                good = bits_complain(suite, "%s, %s, %s: %s", picture->name, result->name, how,
                                     cox_status_text(status));
        }
        cox_session_wait(session->session);
        for (uint32_t i = 0; i < now && good; i++) {
            if (!lanes[i].done || lanes[i].status != COX_OK)
                good = bits_complain(suite, "%s, %s, %s: %s", picture->name, result->name, how,
                                     cox_status_text(lanes[i].status));
            else
                good = take(suite, picture, result, lanes[i].out, pitch, how);
        }
        next += now;
    }
    return good;
}

/* ---- the reference ---- */

static double half_values[65536];

struct judge {
    pthread_t thread;
    const struct picture *picture;
    const struct result *result;
    const struct cox_tonemap_settings *settings;
    enum cox_pixel_out depth;
    uint32_t first_row, step;
    struct error error;
};

static void *judge_rows(void *user)
{
    struct judge *judge = user;
    const struct cox_tonemap_shape *shape = &judge->picture->shape;
    const double scale = judge->depth == COX_PIXEL_RGBA16 ? 65535 : 255;
    struct ref_operator curve;
    ref_operator_init(&curve, judge->settings->op, (double)judge->settings->peak);
    for (uint32_t y = judge->first_row; y < shape->height; y += judge->step) {
        const void *row = (const char *)cox_buffer_data(judge->picture->in) + y * shape->in_pitch_bytes;
        const void *codes = judge->result->bytes + y * judge->result->row_bytes;
        for (size_t x = 0; x < shape->width; x++) {
            double in[4], out[4];
            bool off = false;
            for (size_t i = 0; i < 4; i++)
                in[i] = shape->in == COX_PIXEL_RGBA_HALF ? half_values[((const uint16_t *)row)[4 * x + i]]
                                                         : (double)((const float *)row)[4 * x + i];
            ref_tonemap_pixel(&curve, judge->settings, shape->in, in, scale, out);
            for (size_t i = 0; i < 4; i++) {
                const double code = judge->depth == COX_PIXEL_RGBA16 ? ((const uint16_t *)codes)[4 * x + i]
                                                                     : ((const uint8_t *)codes)[4 * x + i];
                const uint32_t steps = (uint32_t)fabs(code - round(out[i]));
                judge->error.codes = fmax(judge->error.codes, fabs(code - out[i]));
                judge->error.steps = steps > judge->error.steps ? steps : judge->error.steps;
                off = off || steps > 0;
            }
            judge->error.off += off;
        }
        judge->error.pixels += shape->width;
    }
    return NULL;
}

static void add_error(struct error *to, const struct error *from)
{
    to->codes = fmax(to->codes, from->codes);
    to->steps = from->steps > to->steps ? from->steps : to->steps;
    to->off += from->off;
    to->pixels += from->pixels;
}

static void judge(const struct picture *picture, const struct result *result, enum cox_pixel_out depth,
                  const struct cox_tonemap_settings *settings, struct error *into)
{
    struct judge judges[THREADS_MAX];
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t count = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (uint32_t)cores;
    bool started[THREADS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        judges[i] = (struct judge){
            .picture = picture, .result = result, .settings = settings, .depth = depth, .first_row = i, .step = count};
        started[i] = i > 0 && pthread_create(&judges[i].thread, NULL, judge_rows, &judges[i]) == 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (started[i])
            pthread_join(judges[i].thread, NULL);
        else
            judge_rows(&judges[i]);
        add_error(into, &judges[i].error);
    }
}

/* The promise is one code of 8 bits; of 16 bits the kernels keep one too. */
static bool error_is_small(const struct error *error, enum cox_pixel_out depth)
{
    return error->steps <= 1 && (depth == COX_PIXEL_RGBA16 || error->codes <= 1);
}

/* ---- pictures ---- */

/* The bits of a channel: light within four stops from 2^stops on, and any alpha; unless `plain`, now and then negative,
 * NaN or infinite. */
static uint32_t draw_channel(uint64_t *seed, enum cox_pixel_in pixel, bool alpha, int stops, bool plain)
{
    const uint32_t special = plain ? UINT32_MAX : random_below(seed, 64);
    const int up = (int)random_below(seed, 4);
    double value = ldexp(1 + random_below(seed, 4096) / 4096.0, stops + up);
    if (alpha)
        value = random_below(seed, 1400) / 1000.0 - 0.2;
    if (special < 3)
        value = special == 0 ? (double)NAN : special == 1 ? (double)INFINITY : -(double)INFINITY;
    else if (special < 7)
        value = -value;
    if (pixel == COX_PIXEL_RGBA_FLOAT) {
        const float narrow = (float)value;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        return bits;
    }
    if (isnan(value))
        return 0x7e00;
    if (isinf(value))
        return value < 0 ? 0xfc00 : 0x7c00;
    return ref_to_half(fmin(fmax(value, -65504), 65504));
}

/* Light over 40 stops around white; every eighth pixel has any bits at all, denormals and NaN of all kinds among them.
 * The first pixel, which is the only one of 1x1, is an ordinary one, so that the operators differ on it. */
static void fill_synthetic(const struct picture *picture)
{
    const struct cox_tonemap_shape *shape = &picture->shape;
    uint64_t seed = shape->width;
    for (uint32_t y = 0; y < shape->height; y++) {
        void *row = (char *)cox_buffer_data(picture->in) + y * shape->in_pitch_bytes;
        for (size_t x = 0; x < shape->width; x++) {
            const bool first = x + y == 0, any = !first && random_below(&seed, 8) == 0;
            const int stops = first ? -2 : (int)random_below(&seed, 37) - 20;
            for (size_t i = 0; i < 4; i++) {
                const uint32_t bits = any ? (uint32_t)random_next(&seed)
                                          : draw_channel(&seed, shape->in, i == 3, stops, first);
                if (shape->in == COX_PIXEL_RGBA_FLOAT)
                    ((uint32_t *)row)[4 * x + i] = bits;
                else
                    ((uint16_t *)row)[4 * x + i] = (uint16_t)bits;
            }
        }
    }
}

static bool make_buffers(struct suite *suite, struct picture *picture, struct lane *lanes, struct lane *histograms)
{
    struct cox_tonemap_shape *shape = &picture->shape;
    cox_status status = COX_OK;
    shape->in_pitch_bytes = cox_runtime_pitch_bytes(suite->base.runtime,
                                                    (size_t)shape->width * pixel_bytes_in[shape->in]);
    for (int depth = COX_PIXEL_RGBA8; depth <= COX_PIXEL_RGBA16; depth++)
        picture->pitch_out[depth] = cox_runtime_pitch_bytes(suite->base.runtime,
                                                            (size_t)shape->width * pixel_bytes_out[depth]);
    shape->out_pitch_bytes = picture->pitch_out[shape->out];
    status = cox_buffer_create(suite->base.runtime, shape->in_pitch_bytes * shape->height, &picture->in);
    for (int i = 0; i < LANES && status == COX_OK; i++) {
        status = cox_buffer_create(suite->base.runtime, picture->pitch_out[COX_PIXEL_RGBA16] * shape->height,
                                   &lanes[i].out);
        if (status == COX_OK)
            status = cox_buffer_create(suite->base.runtime, COX_TONEMAP_HISTOGRAM_BYTES, &histograms[i].out);
    }
    return status == COX_OK || bits_complain(&suite->base, "%s: %s", picture->name, cox_status_text(status));
}

static bool load_picture(struct suite *suite, struct picture *picture, const char *directory, uint32_t index,
                         struct lane *lanes, struct lane *histograms)
{
    struct picture_input *input = NULL;
    struct picture_error error = {""};
    char path[4096];
    bool good = true;
    picture->synthetic = index < SYNTHETIC_COUNT;
    if (picture->synthetic) {
        const struct synthetic *synthetic = &synthetics[index];
        picture->name = synthetic->name;
        picture->shape = (struct cox_tonemap_shape){
            .width = synthetic->width, .height = synthetic->height, .in = synthetic->pixel};
        if (!make_buffers(suite, picture, lanes, histograms))
            return false;
        fill_synthetic(picture);
        return true;
    }
    picture->name = files[index - SYNTHETIC_COUNT];
    snprintf(path, sizeof path, "%s/%s.exr", directory, picture->name);
    if (!picture_input_open(&input, path, PICTURE_ALPHA_BLACK, &error))
        return bits_complain(&suite->base, "%s: %s", path, error.text);
    const struct picture_format *format = picture_input_format(input);
    picture->shape = (struct cox_tonemap_shape){.width = format->width, .height = format->height, .in = format->pixel};
    good = make_buffers(suite, picture, lanes, histograms);
    if (good && picture_input_read(input, cox_buffer_data(picture->in), picture->shape.in_pitch_bytes, &error) !=
                    PICTURE_READ_FRAME)
        good = bits_complain(&suite->base, "%s: %s", path, error.text);
    picture_input_close(&input);
    return good;
}

/* ---- one picture ---- */

static void set_depth(struct picture *picture, enum cox_pixel_out depth)
{
    picture->shape.out = depth;
    picture->shape.out_pitch_bytes = picture->pitch_out[depth];
}

static bool analyse_alone(struct suite *suite, struct picture *picture, struct result *result, struct lane *lanes)
{
    for (uint32_t d = 0; d < suite->base.device_count; d++) {
        struct bits_session session;
        bool good = open_session(suite, picture, true, d, 0, &session) &&
                    run_frames(&session, picture, result, NULL, lanes, result->row_bytes, 1);
        good &= bits_session_close(&session);
        if (!good || !result->bytes)
            return false;
    }
    memcpy(picture->histogram, result->bytes, sizeof picture->histogram);
    return true;
}

/* Every mapping from `begin` to `end`, which have one depth, on one device or on all. */
static bool map_all(struct suite *suite, struct picture *picture, struct result *results,
                    const struct cox_tonemap_params *params, uint32_t begin, uint32_t end, uint32_t device,
                    struct lane *lanes)
{
    struct bits_session session;
    bool good = open_session(suite, picture, false, device, results[begin].split_first, &session);
    for (uint32_t m = begin; m < end && good; m++)
        good = run_frames(&session, picture, &results[m], &params[m], lanes, picture->shape.out_pitch_bytes,
                          device == BITS_ALL_DEVICES ? results[m].split_count : 1);
    if (device == BITS_ALL_DEVICES)
        split_granule = session.granule;
    return bits_session_close(&session) && good;
}

static void print_result(struct suite *suite, const struct picture *picture, const struct result *result, bool good)
{
    const bool equal = good && result->bytes && result->wrong == 0;
    printf("bits %s %ux%u %s %016" PRIx64 " %u %s\n", picture->name, picture->shape.width, picture->shape.height,
           result->name, result->bytes ? bits_hash(result->bytes, result->row_bytes * result->rows) : 0, result->runs,
           equal ? "equal" : "DIFFERENT");
    suite->base.passed += equal;
    suite->base.failed += !equal;
}

static void choose_settings(const struct picture *picture, enum cox_operator op, struct cox_tonemap_settings *settings)
{
    struct cox_tonemap_analysis analysis;
    *settings = (struct cox_tonemap_settings){.op = op};
    if (picture->synthetic)
        return;
    cox_tonemap_read_analysis(picture->histogram, &analysis);
    cox_tonemap_expose(&analysis, settings);
}

static void run_picture(struct suite *suite, const char *directory, uint32_t index)
{
    struct picture picture = {0};
    struct lane lanes[LANES] = {{0}}, histograms[LANES] = {{0}};
    struct cox_tonemap_settings settings[MAPPING_COUNT];
    struct cox_tonemap_params params[MAPPING_COUNT];
    struct result counts = {
        .name = "histogram", .row_bytes = COX_TONEMAP_HISTOGRAM_BYTES, .rows = 1, .split_count = suite->base.splits};
    struct result results[MAPPING_COUNT] = {{.runs = 0}};
    bool good = load_picture(suite, &picture, directory, index, lanes, histograms) &&
                analyse_alone(suite, &picture, &counts, histograms);
    uint32_t split = 0;
    for (uint32_t m = 0; m < MAPPING_COUNT; m++) {
        struct result *result = &results[m];
        snprintf(result->name, sizeof result->name, "%s/%d", cox_operator_name(mappings[m].op),
                 mappings[m].depth == COX_PIXEL_RGBA16 ? 16 : 8);
        result->row_bytes = (size_t)picture.shape.width * pixel_bytes_out[mappings[m].depth];
        result->rows = picture.shape.height;
        result->split_first = split;
        result->split_count = suite->base.splits / MAPPING_COUNT + (m < suite->base.splits % MAPPING_COUNT);
        split += result->split_count;
        if (good) {
            choose_settings(&picture, mappings[m].op, &settings[m]);
            if (cox_tonemap_prepare(&picture.shape, &settings[m], &params[m]) != COX_OK)
                good = bits_complain(&suite->base, "%s, %s: no parameters", picture.name, result->name);
        }
    }
    for (uint32_t begin = 0, end = 0; good && begin < MAPPING_COUNT; begin = end) {
        while (end < MAPPING_COUNT && mappings[end].depth == mappings[begin].depth)
            end++;
        set_depth(&picture, mappings[begin].depth);
        for (uint32_t d = 0; d < suite->base.device_count && good; d++)
            good = map_all(suite, &picture, results, params, begin, end, d, lanes);
        split_granule = 0;
        good = good && map_all(suite, &picture, results, params, begin, end, BITS_ALL_DEVICES, lanes);
    }
    if (good) { /* with the mapping's granule still in `split_granule` */
        struct bits_session session;
        good = open_session(suite, &picture, true, BITS_ALL_DEVICES, 0, &session) &&
               run_frames(&session, &picture, &counts, NULL, histograms, counts.row_bytes, counts.split_count);
        good &= bits_session_close(&session);
    }
    for (uint32_t m = 0; m < MAPPING_COUNT; m++) {
        print_result(suite, &picture, &results[m], good);
        if (suite->base.reference && good)
            judge(&picture, &results[m], mappings[m].depth, &settings[m], &suite->errors[m][picture.synthetic]);
        free(results[m].bytes);
    }
    print_result(suite, &picture, &counts, good);
    free(counts.bytes);
    for (int i = 0; i < LANES; i++) {
        cox_buffer_destroy(&lanes[i].out);
        cox_buffer_destroy(&histograms[i].out);
    }
    cox_buffer_destroy(&picture.in);
}

/* ---- main ---- */

static void print_errors(struct suite *suite)
{
    printf(
        "heading Against the double-precision reference, in codes: the largest distance from its real number, the largest\n"
        "heading from its code, how many pixels have a channel with another code; of the EXR pictures, then of the made-up "
        "ones.\n");
    for (uint32_t m = 0; m < MAPPING_COUNT; m++) {
        const struct error *error = suite->errors[m];
        const bool good = error[0].pixels > 0 && error_is_small(&error[0], mappings[m].depth) && error[1].pixels > 0 &&
                          error_is_small(&error[1], mappings[m].depth);
        printf("error %s/%d", cox_operator_name(mappings[m].op), mappings[m].depth == COX_PIXEL_RGBA16 ? 16 : 8);
        for (int i = 0; i < 2; i++)
            printf(" %.3f %u %.4f%%", error[i].codes, error[i].steps,
                   100.0 * (double)error[i].off / fmax((double)error[i].pixels, 1));
        printf(" %s\n", good ? "within" : "BEYOND");
        suite->base.passed += good;
        suite->base.failed += !good;
    }
}

static void print_splits(struct suite *suite)
{
    const uint32_t without = random_tally_print(&suite->base.tally, suite->base.device_count);
    if (without > 0) {
        bits_complain(&suite->base, "%u devices got no rows", without);
        suite->base.failed++;
    }
}

static int read_option(void *user, const char *option, const char *value)
{
    struct suite *suite = user;
    if (strcmp(option, "--pictures") != 0 || !value)
        return 0;
    suite->directory = value;
    return 2;
}

int main(int argc, char **argv)
{
    static struct suite suite = {.base.splits = 100, .directory = COX_TEST_SOURCE_DIR "/examples/data"};
    const int status = bits_suite_begin(&suite.base, argc, argv, read_option, &suite);
    if (status >= 0)
        return status;
    for (uint32_t h = 0; h < 65536; h++)
        half_values[h] = ref_half((uint16_t)h);
    for (uint32_t i = 0; i < PICTURE_COUNT; i++)
        run_picture(&suite, suite.directory, i);
    if (suite.base.reference)
        print_errors(&suite);
    print_splits(&suite);
    return bits_suite_end(&suite.base);
}
