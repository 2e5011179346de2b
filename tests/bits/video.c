/* Same bits: mapped video and its histograms are equal to the last bit whichever device made which rows, and within the
 * promised codes of the double-precision reference.
 *
 *   bits_video [--devices SEL] [--cache DIR] [--expect N] [--splits N] [--reference] [--small] [--scalars] [--verbose]
 *
 * Films of made-up codes, from 1x1 to 1917x1081, in several formats and both transfers. Of each, with its histogram,
 *   (a) one frame by each device alone,
 *   (b) one frame by all devices under random splits, each time another one: --splits N of them, 50 unless said,
 *   (c) the histogram alone, by both ways,
 *   (d) of the films that say so, two dozen frames of two scenes, where each frame's histogram steers the next one's
 *       curve as with "--peak auto": by each device alone and by all under random splits.
 * In (a) to (c) two frames are in flight at a time. Every result is compared byte by byte with the first device's, and
 * before each frame the output is filled with the complement of what is expected, so that a row nobody wrote shows. The
 * bands that really ran are taken from the session's reports and compared with the splits that were drawn.
 *
 * --small cuts the films down to a corner and the splits to four, for a simulator; --scalars gives every device the
 * kernels' scalar form.
 *
 * What is printed is said in support/bits.sh, which compares the hashes of several set-ups. The exit status is 0 if
 * nothing failed, 77 without OpenCL devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/bits_suite.h"
#include "support/random_splits.h"
#include "support/ref_video.h"
#include <coxswain/coxswain.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 2, STEERED_FRAMES = 24, STEERED_CUT = 11 };

#define PLANAR(bits, x, y, where, what)                                                               \
    {                                                                                                 \
        .depth = (bits), .chroma_x_log2 = (x), .chroma_y_log2 = (y), .site = (where), .range = (what) \
    }
#define SEMI_PLANAR(bits, high)                                                                                       \
    {                                                                                                                 \
        .layout = COX_VIDEO_SEMI_PLANAR, .depth = (bits), .high_bits = (high), .chroma_x_log2 = 1, .chroma_y_log2 = 1 \
    }
#define RGBA(bits)                                                         \
    {                                                                      \
        .layout = COX_VIDEO_RGBA, .depth = (bits), .range = COX_RANGE_FULL \
    }

#define SEMI_PLANAR_422(bits, high)                                                               \
    {                                                                                             \
        .layout = COX_VIDEO_SEMI_PLANAR, .depth = (bits), .high_bits = (high), .chroma_x_log2 = 1 \
    }
#define BGRA(bits)                                                         \
    {                                                                      \
        .layout = COX_VIDEO_BGRA, .depth = (bits), .range = COX_RANGE_FULL \
    }
#define GBR(bits, what)                                           \
    {                                                             \
        .layout = COX_VIDEO_GBR, .depth = (bits), .range = (what) \
    }
#define V210(where)                                                                \
    {                                                                              \
        .layout = COX_VIDEO_V210, .depth = 10, .chroma_x_log2 = 1, .site = (where) \
    }

static const struct kind {
    const char *name;
    bool steered;
    struct cox_video_shape shape; /* without pitches */
} kinds[] = {
    {"one-pixel", true, {.width = 1, .height = 1, .in = PLANAR(10, 1, 1, 0, 0), .out = PLANAR(8, 1, 1, 0, 0)}},
    {"small",
     true,
     {.width = 3,
      .height = 5,
      .in = SEMI_PLANAR(10, true),
      .out = SEMI_PLANAR(10, true),
      .transfer = COX_TRANSFER_HLG,
      .op = COX_OPERATOR_REINHARD,
      .dither = COX_DITHER_ORDERED}},
    {"flat",
     true,
     {.width = 33,
      .height = 2,
      .in = PLANAR(12, 1, 0, COX_SITE_CENTRE, COX_RANGE_FULL),
      .out = PLANAR(8, 1, 1, COX_SITE_CENTRE, COX_RANGE_FULL),
      .op = COX_OPERATOR_MOBIUS,
      .fade = true}},
    {"odd-pq-8",
     true,
     {.width = 1917, .height = 1081, .in = PLANAR(10, 1, 1, 0, 0), .out = PLANAR(8, 1, 1, 0, 0), .fade = true}},
    {"odd-pq-10",
     false,
     {.width = 1917,
      .height = 1081,
      .in = PLANAR(10, 1, 1, COX_SITE_TOP_LEFT, 0),
      .out = PLANAR(10, 1, 1, 0, 0),
      .op = COX_OPERATOR_BT2390}},
    {"odd-hlg-8",
     false,
     {.width = 1917,
      .height = 1081,
      .in = SEMI_PLANAR(10, true),
      .out = SEMI_PLANAR(8, false),
      .transfer = COX_TRANSFER_HLG,
      .op = COX_OPERATOR_BT2390,
      .dither = COX_DITHER_ORDERED}},
    {"odd-hlg-10",
     true,
     {.width = 1917,
      .height = 1081,
      .in = PLANAR(10, 1, 1, 0, 0),
      .out = PLANAR(10, 1, 1, 0, 0),
      .transfer = COX_TRANSFER_HLG,
      .op = COX_OPERATOR_HABLE,
      .dither = COX_DITHER_ORDERED}},
    {"full-chroma",
     false,
     {.width = 613,
      .height = 127,
      .in = PLANAR(10, 0, 0, 0, 0),
      .out = PLANAR(10, 0, 0, 0, 0),
      .primaries = COX_PRIMARIES_BT709,
      .op = COX_OPERATOR_ACES}},
    {"light",
     true,
     {.width = 301,
      .height = 203,
      .in = RGBA(16),
      .out = RGBA(8),
      .transfer = COX_TRANSFER_LINEAR,
      .op = COX_OPERATOR_HABLE,
      .fade = true}},
    {"halved",
     true,
     {.width = 646,
      .height = 358,
      .in = SEMI_PLANAR(10, true),
      .out = PLANAR(8, 1, 1, 0, 0),
      .op = COX_OPERATOR_HABLE,
      .gamut = COX_GAMUT_COMPRESS,
      .scale = COX_SCALE_HALF}},
    {"smaller",
     true,
     {.width = 641,
      .height = 359,
      .out_width = 427,
      .out_height = 239,
      .in = PLANAR(10, 1, 1, 0, 0),
      .out = PLANAR(8, 1, 1, 0, 0),
      .op = COX_OPERATOR_HABLE,
      .scale = COX_SCALE_FILTER}},
    {"larger",
     false,
     {.width = 203,
      .height = 101,
      .out_width = 322,
      .out_height = 180,
      .in = SEMI_PLANAR(10, true),
      .out = PLANAR(10, 1, 1, 0, 0),
      .transfer = COX_TRANSFER_HLG,
      .op = COX_OPERATOR_BT2390,
      .scale = COX_SCALE_FILTER}},
    {"captured",
     true,
     {.width = 643,
      .height = 361,
      .in = V210(0),
      .out = BGRA(8),
      .op = COX_OPERATOR_HABLE,
      .dither = COX_DITHER_ORDERED}},
    {"captured-half",
     false,
     {.width = 646,
      .height = 358,
      .in = V210(COX_SITE_CENTRE),
      .out = SEMI_PLANAR_422(10, true),
      .transfer = COX_TRANSFER_HLG,
      .op = COX_OPERATOR_HABLE,
      .scale = COX_SCALE_HALF}},
    {"captured-smaller",
     false,
     {.width = 641,
      .height = 359,
      .out_width = 427,
      .out_height = 239,
      .in = V210(0),
      .out = PLANAR(8, 1, 1, 0, 0),
      .op = COX_OPERATOR_BT2390,
      .scale = COX_SCALE_FILTER}},
    {"two-planes",
     false,
     {.width = 613,
      .height = 127,
      .in = SEMI_PLANAR_422(10, true),
      .out = SEMI_PLANAR_422(8, false),
      .op = COX_OPERATOR_BT2390,
      .gamut = COX_GAMUT_COMPRESS}},
    {"colours",
     true,
     {.width = 301,
      .height = 203,
      .in = GBR(12, COX_RANGE_FULL),
      .out = GBR(10, COX_RANGE_LIMITED),
      .op = COX_OPERATOR_HABLE}},
    {"pixels",
     false,
     {.width = 301,
      .height = 203,
      .in = BGRA(16),
      .out = PLANAR(10, 0, 0, 0, 0),
      .transfer = COX_TRANSFER_HLG,
      .op = COX_OPERATOR_MOBIUS}},
    {"pixels-larger",
     false,
     {.width = 203,
      .height = 101,
      .out_width = 322,
      .out_height = 180,
      .in = RGBA(8),
      .out = BGRA(8),
      .op = COX_OPERATOR_HABLE,
      .scale = COX_SCALE_FILTER}},
};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

struct suite {
    struct bits_suite base;
    bool scalars;
};

/* Where a frame's output goes. */
struct lane {
    cox_buffer *out[COX_VIDEO_PLANES_MAX];
    cox_buffer *histogram;
    cox_status status;
    bool done;
};

/* A kind with its memory. */
struct film {
    const struct kind *kind;
    struct cox_video_shape shape;
    uint32_t width, height; /* of what comes out */
    uint32_t in_count, out_count;
    struct cox_video_plane in_planes[COX_VIDEO_PLANES_MAX], out_planes[COX_VIDEO_PLANES_MAX];
    cox_buffer *in[COX_VIDEO_PLANES_MAX];
    struct lane lanes[LANES];
};

/* One thing that all devices must agree on. */
struct result {
    const char *name;
    bool planes, histogram; /* what of a frame it holds */
    size_t bytes;
    uint8_t *first; /* the first device's, without padding; NULL = none yet */
    uint32_t runs, wrong;
};

/* ---- what the films show ---- */

static void put_sample(const struct cox_video_format *format, void *row, size_t index, uint32_t code)
{
    if (format->depth == 8)
        ((uint8_t *)row)[index] = (uint8_t)code;
    else if (format->layout == COX_VIDEO_V210)
        ((uint32_t *)row)[index] = code | (code + code / 8) % 1024 << 10 | (code + code / 4) % 1024 << 20;
    else
        ((uint16_t *)row)[index] = (uint16_t)(format->high_bits ? code << (16 - format->depth) : code);
}

/* Codes about a level that differs from block to block and from scene to scene, with noise that differs from frame to
 * frame; every eighth block has any codes at all. Chroma lies about its middle. */
static uint32_t draw_code(const struct film *film, uint32_t plane, uint32_t block, uint32_t scene, uint64_t *seed)
{
    const struct cox_video_format *format = &film->shape.in;
    const uint32_t largest = (1u << format->depth) - 1;
    uint64_t place = block * 2654435761u + plane;
    if (random_below(&place, 8) == 0)
        return random_below(seed, largest + 1);
    const uint32_t noise = random_below(seed, largest / 32 + 1), level = random_below(&place, largest / 4);
    if (film->shape.transfer == COX_TRANSFER_LINEAR) /* halves from 2^-9 to 2^6, a scene of light and one of shade */
        return 0x1800 + (scene ? 0x2000 : 0x0800) + (level + noise) / 4;
    const bool colours = format->layout != COX_VIDEO_PLANAR && format->layout != COX_VIDEO_SEMI_PLANAR;
    return plane == 0 || colours ? level + (scene ? largest / 2 : largest / 8) + noise : largest / 3 + level + noise;
}

static void fill_frame(const struct film *film, uint32_t number)
{
    uint64_t seed = (uint64_t)film->shape.width << 32 | number;
    for (uint32_t p = 0; p < film->in_count; p++) {
        const struct cox_video_plane *plane = &film->in_planes[p];
        for (uint32_t y = 0; y < plane->rows; y++) {
            void *row = (char *)cox_buffer_data(film->in[p]) + y * film->shape.in_pitch_bytes[p];
            for (uint32_t i = 0; i < plane->row_bytes / plane->sample_bytes; i++) {
                const uint32_t block = y * plane->row_divisor / 16 * 4096 + i / 16;
                put_sample(&film->shape.in, row, i, draw_code(film, p, block, number >= STEERED_CUT, &seed));
            }
        }
    }
}

static bool open_film(struct suite *suite, const struct kind *kind, struct film *film)
{
    *film = (struct film){.kind = kind, .shape = kind->shape};
    struct cox_video_shape *shape = &film->shape;
    if (suite->base.small) {
        const uint32_t even = shape->scale == COX_SCALE_HALF;
        shape->width = shape->width < 71 ? shape->width : 71 + even;
        shape->height = shape->height < 37 ? shape->height : 37 + even;
        shape->out_width = shape->out_width ? 53 : 0;
        shape->out_height = shape->out_height ? 45 : 0;
    }
    ref_video_size(shape, &film->width, &film->height);
    film->in_count = cox_video_planes(&shape->in, shape->width, shape->height, film->in_planes);
    film->out_count = cox_video_planes(&shape->out, film->width, film->height, film->out_planes);
    cox_status status = film->in_count && film->out_count ? COX_OK : COX_E_INVALID;
    for (uint32_t p = 0; p < film->in_count && status == COX_OK; p++) {
        shape->in_pitch_bytes[p] = cox_runtime_pitch_bytes(suite->base.runtime, film->in_planes[p].row_bytes);
        status = cox_buffer_create(suite->base.runtime, shape->in_pitch_bytes[p] * film->in_planes[p].rows,
                                   &film->in[p]);
    }
    for (uint32_t p = 0; p < film->out_count && status == COX_OK; p++) {
        shape->out_pitch_bytes[p] = cox_runtime_pitch_bytes(suite->base.runtime, film->out_planes[p].row_bytes);
        for (uint32_t i = 0; i < LANES && status == COX_OK; i++)
            status = cox_buffer_create(suite->base.runtime, shape->out_pitch_bytes[p] * film->out_planes[p].rows,
                                       &film->lanes[i].out[p]);
    }
    for (uint32_t i = 0; i < LANES && status == COX_OK; i++)
        status = cox_buffer_create(suite->base.runtime, COX_VIDEO_HISTOGRAM_BYTES, &film->lanes[i].histogram);
    return status == COX_OK || bits_complain(&suite->base, "%s: %s", kind->name, cox_status_text(status));
}

static void close_film(struct film *film)
{
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        cox_buffer_destroy(&film->in[p]);
        for (uint32_t i = 0; i < LANES; i++)
            cox_buffer_destroy(&film->lanes[i].out[p]);
    }
    for (uint32_t i = 0; i < LANES; i++)
        cox_buffer_destroy(&film->lanes[i].histogram);
}

/* ---- sessions ---- */

struct session {
    struct bits_session base;
    struct film *film;
};

static bool open_session(struct suite *suite, struct film *film, const struct result *result, uint32_t device,
                         uint32_t split_first, struct session *out)
{
    struct cox_video_storage storage;
    struct cox_session_params params = {.in_flight = LANES};
    *out = (struct session){.base.suite = &suite->base, .film = film};
    const cox_status status = result->planes ? cox_video_mapping(&film->shape, result->histogram, &storage, &params)
                                             : cox_video_analysis(&film->shape, &storage, &params);
    if (status != COX_OK)
        return bits_complain(&suite->base, "%s: no pipeline: %s", film->kind->name, cox_status_text(status));
    struct cox_stage scalar = params.stages[0];
    if (suite->scalars) {
        scalar.variants++;
        scalar.variant_count = 1;
        params.stages = &scalar;
    }
    return bits_session_open(&suite->base, film->kind->name, &params, device, split_first, 0, &out->base);
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct lane *lane = user;
    (void)frame;
    lane->status = status;
    lane->done = true;
}

static bool submit(struct session *session, const struct result *result, struct lane *lane,
                   const struct cox_video_params *params)
{
    const struct film *film = session->film;
    cox_buffer *buffers[COX_BINDINGS_MAX] = {NULL};
    uint32_t count = 0;
    for (uint32_t p = 0; p < film->in_count; p++)
        buffers[count++] = film->in[p];
    for (uint32_t p = 0; p < film->out_count && result->planes; p++)
        buffers[count++] = lane->out[p];
    if (result->histogram)
        buffers[count++] = lane->histogram;
    count += ref_video_scratch(&film->shape);
    const struct cox_frame frame = {.buffers = buffers, .buffer_count = count, .params = params};
    lane->done = false;
    const cox_status status = cox_session_submit(session->base.session, &frame, on_done, lane);
    return status == COX_OK || bits_complain(session->base.suite, "%s, %s, %s: %s", film->kind->name, result->name,
                                             session->base.how, cox_status_text(status));
}

/* ---- results ---- */

/* Call `row` for each row of what a result holds of a lane, in order. */
typedef void row_fn(uint8_t *row, size_t bytes, size_t offset, void *user);

static size_t each_row(const struct film *film, const struct result *result, const struct lane *lane, row_fn *row,
                       void *user)
{
    size_t offset = 0;
    for (uint32_t p = 0; p < film->out_count && result->planes; p++) {
        for (uint32_t y = 0; y < film->out_planes[p].rows; y++) {
            const size_t bytes = film->out_planes[p].row_bytes;
            row((uint8_t *)cox_buffer_data(lane->out[p]) + y * film->shape.out_pitch_bytes[p], bytes, offset, user);
            offset += bytes;
        }
    }
    if (result->histogram) {
        row(cox_buffer_data(lane->histogram), COX_VIDEO_HISTOGRAM_BYTES, offset, user);
        offset += COX_VIDEO_HISTOGRAM_BYTES;
    }
    return offset;
}

static void count_row(uint8_t *row, size_t bytes, size_t offset, void *user)
{
    (void)row, (void)bytes, (void)offset, (void)user;
}

/* Nothing of what is expected. */
static void spoil_row(uint8_t *row, size_t bytes, size_t offset, void *user)
{
    const struct result *result = user;
    for (size_t i = 0; i < bytes; i++)
        row[i] = result->first ? (uint8_t)~result->first[offset + i] : 0xa5;
}

static void keep_row(uint8_t *row, size_t bytes, size_t offset, void *user)
{
    memcpy((uint8_t *)user + offset, row, bytes);
}

struct comparison {
    const struct result *result;
    bool differs;
    size_t at;
};

static void compare_row(uint8_t *row, size_t bytes, size_t offset, void *user)
{
    struct comparison *comparison = user;
    const uint8_t *want = comparison->result->first + offset;
    if (comparison->differs || memcmp(row, want, bytes) == 0)
        return;
    size_t i = 0;
    while (row[i] == want[i])
        i++;
    comparison->differs = true;
    comparison->at = offset + i;
}

/* The first result is the one that the others must equal. */
static bool take(struct session *session, struct result *result, const struct lane *lane)
{
    const struct film *film = session->film;
    if (!lane->done || lane->status != COX_OK)
        return bits_complain(session->base.suite, "%s, %s, %s: %s", film->kind->name, result->name, session->base.how,
                             cox_status_text(lane->status));
    result->runs++;
    if (!result->first) {
        result->bytes = each_row(film, result, lane, count_row, NULL);
        result->first = malloc(result->bytes);
        if (!result->first)
            return bits_complain(session->base.suite, "no memory");
        each_row(film, result, lane, keep_row, result->first);
        return true;
    }
    struct comparison comparison = {.result = result};
    each_row(film, result, lane, compare_row, &comparison);
    if (comparison.differs) {
        result->wrong++;
        bits_complain(session->base.suite, "%s, %s, %s, run %u: byte %zu of %zu differs", film->kind->name,
                      result->name, session->base.how, result->runs, comparison.at, result->bytes);
    }
    return true;
}

/* The same frame so many times, two at a time, each compared. */
static bool run_frames(struct session *session, struct result *result, uint32_t count)
{
    struct film *film = session->film;
    const struct cox_video_settings settings = {.peak_nits = 1200};
    struct cox_video_params params;
    bool good = cox_video_prepare(&film->shape, &settings, &params) == COX_OK ||
                bits_complain(session->base.suite, "%s: no parameters", film->kind->name);
    for (uint32_t next = 0; next < count && good; next += LANES) {
        const uint32_t now = count - next < LANES ? count - next : LANES;
        for (uint32_t i = 0; i < now; i++)
            each_row(film, result, &film->lanes[i], spoil_row, result);
        for (uint32_t i = 0; i < now && good; i++)
            good = submit(session, result, &film->lanes[i], &params);
        cox_session_wait(session->base.session);
        for (uint32_t i = 0; i < now && good; i++)
            good = take(session, result, &film->lanes[i]);
    }
    return good;
}

static void hash_row(uint8_t *row, size_t bytes, size_t offset, void *user)
{
    (void)offset;
    uint64_t *hash = user;
    *hash = *hash * 31 + bits_hash(row, bytes);
}

/* Two scenes, each frame mapped as the histograms before it say. The result is a hash for each frame. */
static bool run_steered(struct session *session, struct result *result)
{
    struct film *film = session->film;
    struct cox_video_settings settings = {0}, before = {0};
    struct cox_video_steer steer = {0};
    uint64_t hashes[STEERED_FRAMES] = {0};
    for (uint32_t i = 0; i < STEERED_FRAMES; i++) {
        struct cox_video_params params;
        struct lane *lane = &film->lanes[i % LANES];
        fill_frame(film, i);
        if (cox_video_prepare(&film->shape, &settings, &params) != COX_OK)
            return bits_complain(session->base.suite, "%s, frame %u: no parameters", film->kind->name, i);
        if (!submit(session, result, lane, &params))
            return false;
        cox_session_wait(session->base.session);
        if (!lane->done || lane->status != COX_OK)
            return bits_complain(session->base.suite, "%s, frame %u: %s", film->kind->name, i,
                                 cox_status_text(lane->status));
        each_row(film, result, lane, hash_row, &hashes[i]);
        cox_video_steer(&steer, &(struct cox_video_steer_options){0}, &film->shape, cox_buffer_data(lane->histogram),
                        &settings);
        if (i == STEERED_CUT - 1)
            before = settings;
    }
    result->runs++;
    if (!result->first) {
        result->bytes = sizeof hashes;
        result->first = malloc(sizeof hashes);
        if (!result->first)
            return bits_complain(session->base.suite, "no memory");
        memcpy(result->first, hashes, sizeof hashes);
    } else if (memcmp(result->first, hashes, sizeof hashes) != 0) {
        result->wrong++;
        bits_complain(session->base.suite, "%s, steered, %s: frames differ", film->kind->name, session->base.how);
    }
    if (film->shape.height < 100) /* its histogram is too much chance */
        return true;
    if (steer.cuts != 1)
        return bits_complain(session->base.suite, "%s, steered: %" PRIu64 " cuts instead of one", film->kind->name,
                             steer.cuts);
    if (settings.peak_nits == before.peak_nits && settings.gain == before.gain)
        return bits_complain(session->base.suite, "%s, steered: both scenes at %g cd/m2, gain %g", film->kind->name,
                             (double)settings.peak_nits, (double)settings.gain);
    return true;
}

/* ---- one film ---- */

static bool run_everywhere(struct suite *suite, struct film *film, struct result *result, bool steered)
{
    bool good = true;
    for (uint32_t d = 0; d <= suite->base.device_count && good; d++) {
        const uint32_t device = d < suite->base.device_count ? d : BITS_ALL_DEVICES;
        struct session session;
        good = open_session(suite, film, result, device, steered ? 1000 : 0, &session);
        if (good && steered)
            good = run_steered(&session, result);
        else if (good)
            good = run_frames(&session, result, device == BITS_ALL_DEVICES ? suite->base.splits : 1);
        good &= bits_session_close(&session.base);
    }
    return good;
}

static void print_result(struct suite *suite, const struct film *film, struct result *result, bool good)
{
    const bool equal = good && result->first && result->wrong == 0;
    printf("bits %s %ux%u %s %016" PRIx64 " %u %s\n", film->kind->name, film->shape.width, film->shape.height,
           result->name, result->first ? bits_hash(result->first, result->bytes) : 0, result->runs,
           equal ? "equal" : "DIFFERENT");
    suite->base.passed += equal;
    suite->base.failed += !equal;
}

/* ---- the reference ---- */

/* `result` holds planes and histogram; the film shows the frame that they are of. */
static bool judge(struct suite *suite, const struct film *film, const struct result *result)
{
    const struct cox_video_settings settings = {.peak_nits = 1200};
    struct ref_video ref;
    const void *in[COX_VIDEO_PLANES_MAX];
    double *real[COX_VIDEO_PLANES_MAX], codes = 0;
    uint64_t off = 0, samples = 0;
    uint32_t steps = 0, counts[COX_VIDEO_BINS], near[COX_VIDEO_BINS], histogram[COX_VIDEO_BINS], bin = 0;
    ref_video_init(&ref, &film->shape, &settings);
    for (uint32_t p = 0; p < film->in_count; p++)
        in[p] = cox_buffer_data(film->in[p]);
    if (!ref_video_map(&ref, in, real))
        return bits_complain(&suite->base, "no memory");
    const uint8_t *at = result->first;
    for (uint32_t p = 0; p < film->out_count; p++) {
        const struct ref_plane plane = ref_video_plane(&film->shape.out, film->width, film->height, p);
        const size_t row = (size_t)plane.width * plane.channels;
        for (size_t i = 0; i < row * plane.height; i++) {
            const uint32_t x = (uint32_t)(i % row / plane.channels), y = (uint32_t)(i / row);
            const uint32_t got = ref_video_sample(&film->shape.out, at, film->out_planes[p].row_bytes, i % row, y);
            const uint32_t want = ref_video_code(&ref, real[p][i], x, y), away = got > want ? got - want : want - got;
            codes = fmax(codes, fabs(got - real[p][i]));
            steps = away > steps ? away : steps;
            off += away > 0;
        }
        samples += row * plane.height;
        at += film->out_planes[p].row_bytes * film->out_planes[p].rows;
        free(real[p]);
    }
    memcpy(histogram, at, sizeof histogram);
    /* Frames of another size are rounded to codes of 16 bits before. */
    ref_video_histogram(&ref, in, film->shape.scale == COX_SCALE_FILTER ? 1e-2 : 1e-3, counts, near);
    const bool counted = ref_video_same_histogram(histogram, counts, near, &bin);
    const bool good = steps <= (film->shape.out.depth == 8 ? 1 : 2) && counted;
    printf("error %s %.3f %u %.4f%% %s %s\n", film->kind->name, codes, steps, 100.0 * (double)off / (double)samples,
           counted ? "counted" : "MISCOUNTED", good ? "within" : "BEYOND");
    suite->base.passed += good;
    suite->base.failed += !good;
    return true;
}

static void run_kind(struct suite *suite, const struct kind *kind)
{
    struct film film;
    char name[24];
    snprintf(name, sizeof name, "%s/%u", cox_operator_name(kind->shape.op), kind->shape.out.depth);
    struct result mapped = {.name = name, .planes = true, .histogram = true};
    struct result counted = {.name = "histogram", .histogram = true};
    struct result steered = {.name = "steered", .planes = true, .histogram = true};
    bool good = open_film(suite, kind, &film);
    if (good) {
        fill_frame(&film, 0);
        good = run_everywhere(suite, &film, &mapped, false) && run_everywhere(suite, &film, &counted, false);
    }
    print_result(suite, &film, &mapped, good);
    print_result(suite, &film, &counted, good);
    if (good && memcmp(mapped.first + mapped.bytes - COX_VIDEO_HISTOGRAM_BYTES, counted.first,
                       COX_VIDEO_HISTOGRAM_BYTES) != 0) {
        bits_complain(&suite->base, "%s: the mapping counts otherwise than the analysis", kind->name);
        suite->base.failed++;
    }
    if (good && suite->base.reference)
        judge(suite, &film, &mapped);
    if (kind->steered) {
        good = good && run_everywhere(suite, &film, &steered, true);
        print_result(suite, &film, &steered, good);
    }
    free(mapped.first);
    free(counted.first);
    free(steered.first);
    close_film(&film);
}

/* ---- main ---- */

static int read_option(void *user, const char *option, const char *value)
{
    struct suite *suite = user;
    (void)value;
    return !strcmp(option, "--scalars") && (suite->scalars = true);
}

int main(int argc, char **argv)
{
    static struct suite suite = {.base.splits = 50};
    const int status = bits_suite_begin(&suite.base, argc, argv, read_option, &suite);
    if (status >= 0)
        return status;
    if (suite.base.reference)
        printf(
            "heading Against the double-precision reference, in codes: the largest distance from its real number, the "
            "largest\nheading from its code, how many samples have another code, and the histogram.\n");
    for (int i = 0; i < KIND_COUNT; i++)
        run_kind(&suite, &kinds[i]);
    const uint32_t without = random_tally_print(&suite.base.tally, suite.base.device_count);
    if (without > 0) {
        bits_complain(&suite.base, "%u devices got no rows", without);
        suite.base.failed++;
    }
    return bits_suite_end(&suite.base);
}
