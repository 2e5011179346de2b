/* Sizes that a damaged or hostile file may ask for. Each constructor refuses them, or makes a session whose offsets
 * all fit. No step may overflow under UndefinedBehaviorSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "engine/pipeline.h"
#include "support/random_splits.h"

#include <coxswain/tonemap.h>
#include <coxswain/video.h>
#include <criterion/criterion.h>
#include <string.h>

enum { TRIES = 1000000, SIDE_MAX = 65536 };

static uint64_t state;

/* A number at which something may overflow, or a neighbour of it. */
static uint64_t extreme(void)
{
    static const uint64_t at[] = {0,
                                  8,
                                  480,
                                  4096,
                                  65536,
                                  (uint64_t)INT32_MAX,
                                  1ull << 29,
                                  1ull << 30,
                                  1ull << 32,
                                  (uint64_t)INT64_MAX,
                                  SIZE_MAX / 2,
                                  SIZE_MAX};
    uint64_t number = at[random_below(&state, sizeof at / sizeof *at)];
    return random_below(&state, 3) ? number : number + random_below(&state, 9) - 4;
}

/* A pitch that is often valid. */
static size_t pitch_of(uint64_t row_bytes)
{
    return random_below(&state, 2) ? extreme() : (row_bytes + 63) / 64 * 64;
}

static uint32_t side(void)
{
    return random_below(&state, 2) ? (uint32_t)extreme() : 1 + (uint32_t)random_below(&state, SIDE_MAX);
}

static void expect_options(const struct cox__stage *stages, uint32_t count, size_t options_bytes)
{
    for (uint32_t s = 0; s < count; s++)
        for (uint32_t v = 0; v < stages[s].variant_count; v++)
            cr_assert_lt(strnlen(stages[s].variants[v].options, options_bytes) + 1, options_bytes,
                         "the build options are cut");
}

static void expect_bindings(const struct cox__pass *pass, const size_t *bytes)
{
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        uint32_t first, count;
        cr_assert_leq(binding->pitch_bytes, (size_t)INT32_MAX, "kernels count in ints within a row");
        if (!cox__by_rows(binding))
            continue;
        cox__pipeline_binding_rows(pass, i, pass->rows - 1, 1, &first, &count);
        cr_assert_leq(((uint64_t)first + count) * binding->pitch_bytes, bytes[i]);
    }
}

/* What was made from a shape is consistent, and a session accepts it. */
static void expect_sound(const struct cox__session_spec *session, size_t options_bytes)
{
    static const struct cox__log silent = {.level = COX_LOG_ERROR};
    struct cox__pipeline pipeline;
    size_t sum = 0;
    cr_assert(session->rows > 0 && session->rows <= SIDE_MAX);
    expect_options(session->stages, session->stage_count, options_bytes);
    for (uint32_t p = 0; p < session->pass_count; p++)
        expect_options(session->passes[p].stages, session->passes[p].stage_count, options_bytes);
    cr_assert_eq(cox__pipeline_init(&pipeline, session, &silent), COX_OK);
    for (uint32_t p = 0; p < pipeline.pass_count; p++)
        expect_bindings(&pipeline.passes[p], pipeline.bytes);
    for (uint32_t i = 0; i < pipeline.binding_count; i++)
        sum += pipeline.bytes[i];
    cr_assert_leq(sum, (size_t)SIDE_MAX * INT32_MAX * COX_BUFFERS_MAX);
    cox__pipeline_clear(&pipeline);
}

Test(sizes, of_pictures_are_refused_or_sound, .timeout = 600)
{
    static struct cox__pipeline_storage storage;
    uint32_t taken = 0;
    state = 3;
    for (uint32_t i = 0; i < TRIES; i++) {
        struct cox_tonemap_shape shape = {.width = side(),
                                          .height = side(),
                                          .in = (enum cox_pixel_in)random_below(&state, 4),
                                          .out = (enum cox_pixel_out)random_below(&state, 4),
                                          .local = random_below(&state, 2)};
        shape.in_pitch_bytes = pitch_of((uint64_t)shape.width * 16);
        shape.out_pitch_bytes = pitch_of((uint64_t)shape.width * 8);
        struct cox__session_spec session = {0};
        const struct cox_tonemap_settings settings = {.op = (enum cox_operator)(random_below(&state, 12) - 2)};
        struct cox_constants params;
        cox_status status = cox__tonemap_mapping(&shape, &storage, &session);
        cr_assert(status == COX_OK || status == COX_E_INVALID);
        if (cox_tonemap_prepare(&shape, &settings, &params) == COX_OK)
            cr_assert_eq(status, COX_OK);
        if (status)
            continue;
        taken++;
        expect_sound(&session, shape.local ? 512 : 160);
        session = (struct cox__session_spec){0};
        if (cox__tonemap_analysis_spec(&shape, &storage, &session) == COX_OK)
            expect_sound(&session, 160);
    }
    cr_assert_gt(taken, 500, "of %d shapes only %u were taken", TRIES, taken);
}

static struct cox_video_format any_format(void)
{
    static const uint32_t depths[] = {0, 7, 8, 10, 16, 17, UINT32_MAX};
    bool tame = random_below(&state, 2);
    return (struct cox_video_format){.layout = (enum cox_video_layout)random_below(&state, tame ? 3 : 5),
                                     .depth = tame ? 8 + 8 * (uint32_t)random_below(&state, 2)
                                                   : depths[random_below(&state, 7)],
                                     .msb_aligned = !tame && random_below(&state, 2),
                                     .chroma_x_log2 = tame ? 0 : (uint32_t)random_below(&state, 40),
                                     .chroma_y_log2 = tame ? 0 : (uint32_t)random_below(&state, 3),
                                     .chroma_location = (enum cox_chroma_location)random_below(&state, tame ? 3 : 5),
                                     .range = (enum cox_color_range)random_below(&state, tame ? 2 : 4)};
}

Test(sizes, of_films_are_refused_or_sound, .timeout = 600)
{
    static struct cox__pipeline_storage storage;
    uint32_t taken = 0;
    state = 4;
    for (uint32_t i = 0; i < TRIES; i++) {
        struct cox_video_shape shape = {.width = side(),
                                        .height = side(),
                                        .in = any_format(),
                                        .out = any_format(),
                                        .transfer = (enum cox_transfer)random_below(&state, 5),
                                        .primaries = (enum cox_primaries)random_below(&state, 7),
                                        .matrix = (enum cox_matrix)random_below(&state, 5),
                                        .op = (enum cox_operator)random_below(&state, 12),
                                        .dither = (enum cox_dither)random_below(&state, 3),
                                        .gamut = (enum cox_gamut)(i & 1)};
        for (int p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
            shape.in_pitch_bytes[p] = pitch_of((uint64_t)shape.width * 8);
            shape.out_pitch_bytes[p] = pitch_of((uint64_t)shape.width * 8);
        }
        struct cox__session_spec session = {0};
        struct cox_constants params;
        cox_status status = cox__video_mapping(&shape, true, &storage, &session);
        cr_assert(status == COX_OK || status == COX_E_INVALID);
        cr_assert_eq(cox_video_prepare(&shape, &(struct cox_video_settings){0}, &params), status);
        if (status)
            continue;
        taken++;
        expect_sound(&session, 512);
        session = (struct cox__session_spec){0};
        cr_assert_eq(cox__video_analysis(&shape, &storage, &session), COX_OK);
        expect_sound(&session, 512);
    }
    cr_assert_gt(taken, 500, "of %d shapes only %u were taken", TRIES, taken);
}
