/* Reading a frame's histogram, and adapting the curve to it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "math/curve.h"
#include "video/scene.h"
#include <coxswain/video.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

TestSuite(video_scene, .timeout = 600);

enum { BINS = COX_VIDEO_BINS };

static const struct cox_video_shape pq = {.transfer = COX_TRANSFER_PQ};
static const struct cox_video_shape hlg = {.transfer = COX_TRANSFER_HLG};
static const struct cox_video_shape linear = {.transfer = COX_TRANSFER_LINEAR};
static const struct cox_video_shape sdr = {.transfer = COX_TRANSFER_SDR};
static const struct cox_video_shape sdr_to_hdr = {.transfer = COX_TRANSFER_SDR, .encoding = COX_ENCODING_PQ};
static const struct cox_video_shape *const shapes[] = {&pq, &hlg, &linear};

/* --- Frames ------------------------------------------------------------------------------------------------------- */

/* A frame is described by a few patches of light. Each has a number of blocks around one signal. */
struct patch {
    uint32_t blocks;
    double signal;
    double spread; /* evenly to both sides */
};

static uint32_t random_state = 1;

static double random_part(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) / 16777216.0;
}

static void add(uint32_t *histogram, double signal, uint32_t blocks)
{
    histogram[(int)fmin(fmax(floor(signal * BINS), 0), BINS - 1)] += blocks;
}

/* The histogram of a shot: its patches, with this much noise on each block. */
static void shoot(const struct patch *patches, int count, double noise, uint32_t *histogram)
{
    memset(histogram, 0, BINS * sizeof(*histogram));
    for (int p = 0; p < count; p++)
        for (uint32_t b = 0; b < patches[p].blocks; b++)
            add(histogram,
                patches[p].signal + patches[p].spread * (2.0 * b / patches[p].blocks - 1) +
                    noise * (random_part() + random_part() + random_part() - 1.5),
                1);
}

/* A room with a window, in PQ up to 600 cd/m2. It has 14 400 blocks, as a picture of 320 x 180 pixels does. */
static const struct patch room[] = {{6000, 0.25, 0.1}, {6000, 0.4, 0.1}, {2000, 0.55, 0.05}, {400, 0.68, 0.02}};
/* A beach, up to 1000 cd/m2. */
static const struct patch beach[] = {{7000, 0.58, 0.05}, {7000, 0.66, 0.03}, {400, 0.74, 0.01}};

static void constant(double signal, uint32_t blocks, uint32_t *histogram)
{
    memset(histogram, 0, BINS * sizeof(*histogram));
    add(histogram, signal, blocks);
}

/* The mean luma, in 8-bit codes, of a shot of greys that is mapped with these settings. */
static double mean_code(const uint32_t *histogram, enum cox_operator op, const struct cox_video_settings *settings)
{
    const double white = 203;
    const struct cox__curve curve = cox__curve_of(op, (double)settings->peak_nits / white, white);
    double sum = 0, blocks = 0;
    for (int i = 0; i < BINS; i++) {
        const double light = 10000 * cox__curve_pq_light((i + 0.5) / BINS) / white * (double)settings->gain;
        sum += histogram[i] * 219 * pow(fmin(cox__curve_at(&curve, light), 1), 1 / 2.4);
        blocks += histogram[i];
    }
    return sum / blocks;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static struct cox__scene scene_of(const struct cox_video_shape *shape, const uint32_t *histogram)
{
    const struct cox_video_settings settings = {0};
    struct cox__scene scene;
    cox__scene_read(shape, &settings, histogram, &scene);
    return scene;
}

/* The levels of Report ITU-R BT.2408, table 1, and HLG's nominal peak. A bin is about 2 % of light wide. */
Test(video_scene, light_is_told_from_each_transfer)
{
    const struct {
        const struct cox_video_shape *shape;
        double place, nits;
    } known[] = {
        {&pq, 0.5081, 100},
        {&pq, 0.5807, 203},
        {&pq, 0.7518, 1000},
        {&pq, 1, 10000},
        {&hlg, 0.75, 203},
        {&hlg, 0.375, 26},
        {&hlg, 1, 1000},
        {&linear, 16 / 32.0, 203},
        {&linear, 20 / 32.0, 16 * 203},
        {&linear, 13 / 32.0, 203 / 8.0},
        {&sdr, 1, 203},
        {&sdr, 0.5, 203 * 0.18946},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        uint32_t histogram[BINS];
        constant(known[i].place - 0.5 / BINS, 100000, histogram);
        const struct cox__scene scene = scene_of(known[i].shape, histogram);
        cr_expect_eq(scene.blocks, 100000);
        cr_expect_float_eq((double)scene.peak_nits / known[i].nits, 1, 0.045, "%zu: %g", i, (double)scene.peak_nits);
        cr_expect_float_eq((double)scene.average_nits / (double)scene.peak_nits, 1, 0.045);
        cr_expect_lt(scene.average_nits, scene.peak_nits);
    }
}

Test(video_scene, settings_scale_the_light_that_is_relative)
{
    const struct cox_video_settings settings = {.sdr_white_nits = 100, .hlg_peak_nits = 2000};
    uint32_t histogram[BINS];
    struct cox__scene scene;
    constant(0.999, 500, histogram);
    cox__scene_read(&hlg, &settings, histogram, &scene);
    cr_expect_float_eq(scene.peak_nits, 2000, 1e-2);
    constant(0.499, 500, histogram);
    cox__scene_read(&linear, &settings, histogram, &scene);
    cr_expect_float_eq(scene.peak_nits, 100, 1e-3);
}

/* SDR is no brighter than its white, so it sets neither peak nor gain. */
Test(video_scene, sdr_is_as_bright_as_the_white_that_is_set_and_203_on_an_hdr_display)
{
    static const struct {
        const struct cox_video_shape *shape;
        float white_nits, brightest_nits;
    } known[] = {{&sdr, 100, 100}, {&sdr, 0, 203}, {&sdr_to_hdr, 1000, 203}, {&sdr_to_hdr, 150, 150}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct cox_video_settings settings = {.sdr_white_nits = known[i].white_nits, .prior_nits = 4000};
        struct cox_adaptation_state steer = {0};
        const float white = known[i].white_nits > 0 ? known[i].white_nits : 203;
        uint32_t histogram[BINS] = {0};
        struct cox__scene scene;
        cox_video_adapt(&steer, known[i].shape, histogram, &settings);
        cr_expect_float_eq(settings.peak_nits, white, 1e-2, "black, %zu: %g", i, (double)settings.peak_nits);
        constant(0.999, 500, histogram);
        cox__scene_read(known[i].shape, &settings, histogram, &scene);
        cr_expect_float_eq(scene.peak_nits, known[i].brightest_nits, 1e-2, "%zu: %g", i, (double)scene.peak_nits);
        cox_video_adapt(&steer, known[i].shape, histogram, &settings);
        cr_expect_float_eq(settings.peak_nits, white, 0.01f * white, "%zu: %g", i, (double)settings.peak_nits);
        cr_expect_float_eq(settings.gain, 1, 0);
    }
}

Test(video_scene, the_peak_leaves_out_one_block_in_20000)
{
    uint32_t histogram[BINS];
    struct cox__scene scene;
    constant(0.4, 999950, histogram);
    add(histogram, 1, 50);
    scene = scene_of(&pq, histogram);
    cr_expect_eq(scene.blocks, 1000000);
    cr_expect_lt(scene.peak_nits, 35, "50 of a million are left out: %g", (double)scene.peak_nits);
    add(histogram, 1, 1);
    scene = scene_of(&pq, histogram);
    cr_expect_gt(scene.peak_nits, 9500, "51 are one too many: %g", (double)scene.peak_nits);
}

Test(video_scene, the_peak_of_a_small_frame_leaves_out_16_blocks_or_one_in_512)
{
    const struct {
        uint32_t blocks, left_out;
    } sizes[] = {{320000, 16}, {230400, 16}, {14400, 16}, {8192, 16}, {3600, 7}, {768, 1}, {500, 0}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint32_t more = 0; more < 2; more++) {
            uint32_t histogram[BINS];
            const uint32_t hot = sizes[i].left_out + more;
            constant(0.4, sizes[i].blocks - hot, histogram);
            add(histogram, 1, hot);
            cr_expect_eq(scene_of(&pq, histogram).peak_nits > 35, more, "%u of %u blocks", hot, sizes[i].blocks);
        }
}

/* The signal of the peak in bins, for a frame with `blocks` blocks in bin `bin` and `next` blocks in the next bin. */
static double peak_bin(uint32_t bin, uint32_t blocks, uint32_t next)
{
    uint32_t histogram[BINS] = {0};
    histogram[bin] = blocks;
    histogram[bin + 1] = next;
    return cox__curve_pq_signal((double)scene_of(&pq, histogram).peak_nits / 10000) * BINS;
}

Test(video_scene, the_peak_moves_without_jumps)
{
    double before = peak_bin(300, 1000000, 0);
    for (uint32_t i = 1; i <= 3000; i++) { /* a million blocks move up by three bins, one after another */
        const uint32_t moved = i % 1000 * 1000;
        const double signal = peak_bin(300 + i / 1000, 1000000 - moved, moved);
        cr_assert(signal > before - 1e-4 && signal < before + 0.96, "%u: %g after %g", i, signal, before);
        before = signal;
    }
    before = peak_bin(300, 20000000, 0);
    for (uint32_t i = 1; i < 1000; i++) { /* a highlight that grows past the limit of one in 20 000 */
        const double signal = peak_bin(300, 20000000 - i * 3, i * 3);
        cr_assert(signal > before - 1e-4 && signal < before + 0.01, "%u: %g after %g", i, signal, before);
        before = signal;
    }
}

Test(video_scene, black_frames_and_empty_ones_have_no_light)
{
    const struct cox_video_settings settings = {0};
    for (int s = 0; s < 3; s++) {
        for (uint32_t blocks = 0; blocks < 2; blocks++) {
            uint32_t histogram[BINS] = {blocks * 5000};
            struct cox__scene scene = {.peak_nits = 1, .average_nits = 1, .blocks = 1};
            cox__scene_read(shapes[s], &settings, histogram, &scene);
            cr_expect_eq(scene.peak_nits, 0);
            cr_expect_eq(scene.average_nits, 0);
            cr_expect_eq(scene.blocks, blocks * 5000);
        }
    }
}

/* --- Steering ----------------------------------------------------------------------------------------------------- */

static const struct cox_video_settings no_settings = {0};

/* A film and its adaptation state. All zeros: PQ, before the first frame. */
struct film {
    const struct cox_video_shape *shape;
    struct cox_adaptation_state steer;
    struct cox_video_settings settings;
};

/* Show a frame. Returns whether it begins a scene. */
static bool show(struct film *film, const uint32_t *histogram)
{
    return cox_video_adapt(&film->steer, film->shape ? film->shape : &pq, histogram, &film->settings);
}

/* The settings after the first frame of a film in PQ, of `settings` what is not steered. */
static struct cox_video_settings after_first(const uint32_t *histogram, struct cox_video_settings settings)
{
    cox_video_adapt(&(struct cox_adaptation_state){0}, &pq, histogram, &settings);
    return settings;
}

static void expect_equal(const struct cox_video_settings *a, const struct cox_video_settings *b)
{
    cr_assert_eq(a->peak_nits, b->peak_nits);
    cr_assert_eq(a->gain, b->gain);
}

static void expect_sane(const struct cox_video_settings *settings, const char *what)
{
    const double white = settings->sdr_white_nits > 0 ? (double)settings->sdr_white_nits : 203;
    cr_assert((double)settings->peak_nits >= (double)(float)white && settings->peak_nits <= 10000, "%s: peak %g", what,
              (double)settings->peak_nits);
    cr_assert(settings->gain >= 0.25f && settings->gain <= 1, "%s: gain %g", what, (double)settings->gain);
}

Test(video_scene, any_histogram_gives_sane_settings)
{
    for (int s = 0; s < 3; s++) {
        struct film film = {.shape = shapes[s]};
        uint32_t histogram[BINS] = {0};
        struct cox__scene scene;
        show(&film, histogram);
        expect_sane(&film.settings, "no blocks");
        for (int bin = 0; bin < BINS; bin++) {
            memset(histogram, 0, sizeof(histogram));
            histogram[bin] = UINT32_MAX;
            scene = scene_of(shapes[s], histogram);
            cr_assert(isfinite(scene.peak_nits) && isfinite(scene.average_nits));
            cr_assert_eq(scene.blocks, UINT32_MAX);
            show(&film, histogram);
            expect_sane(&film.settings, "one bin");
            struct film fresh = {.shape = shapes[s], .settings = film.settings};
            histogram[bin] = 1;
            show(&fresh, histogram);
            expect_sane(&fresh.settings, "one block");
        }
        memset(histogram, 0xff, sizeof(histogram));
        scene = scene_of(shapes[s], histogram);
        cr_expect_eq(scene.blocks, (uint64_t)UINT32_MAX * BINS);
        cr_assert(isfinite(scene.peak_nits) && isfinite(scene.average_nits));
        for (int i = 0; i < 3; i++) {
            show(&film, histogram);
            expect_sane(&film.settings, "everything");
        }
        cr_expect(isfinite(film.steer.peak_signal) && isfinite(film.steer.average_signal));
    }
}

Test(video_scene, constant_content_is_constant_from_the_first_frame_on)
{
    struct film film = {0};
    uint32_t histogram[BINS];
    shoot(room, 4, 0, histogram);
    cr_expect(show(&film, histogram), "the first frame begins a scene");
    cr_expect_float_eq(film.settings.peak_nits / scene_of(&pq, histogram).peak_nits, 1, 1e-3);
    cr_expect_eq(film.settings.gain, 1);
    const struct cox_video_settings first = film.settings;
    for (int i = 0; i < 100; i++) {
        cr_expect_not(show(&film, histogram));
        expect_equal(&film.settings, &first);
    }
    cr_expect_eq(film.steer.frames, 101);
    cr_expect_eq(film.steer.cuts, 0);
}

/* The largest change of the mean code from one frame to the next. Noise alone would change the mean of a noisy
 * shot, so each frame's settings are applied to one and the same frame. */
static double flicker(const struct patch *patches, int count, double noise, enum cox_operator op)
{
    struct film film = {0};
    uint32_t clean[BINS], histogram[BINS];
    double before = 0, worst = 0;
    shoot(patches, count, 0, clean);
    random_state = 1;
    for (int i = 0; i < 300; i++) {
        shoot(patches, count, noise, histogram);
        cr_assert_eq(show(&film, histogram), i == 0, "noise is no cut");
        const double code = mean_code(clean, op, &film.settings);
        if (i > 0)
            worst = fmax(worst, fabs(code - before));
        before = code;
    }
    return worst;
}

Test(video_scene, noise_does_not_flicker)
{
    const enum cox_operator ops[] = {COX_OPERATOR_HABLE, COX_OPERATOR_REINHARD, COX_OPERATOR_MOBIUS,
                                     COX_OPERATOR_LINEAR, COX_OPERATOR_BT2390};
    for (int o = 0; o < 5; o++) {
        const double two_bins = 2.0 / BINS / 1.5; /* shoot() scales its noise by up to 1.5 */
        double worst = fmax(flicker(room, 4, two_bins, ops[o]), flicker(beach, 3, two_bins, ops[o]));
        const double grain = fmax(flicker(room, 4, 0.015, ops[o]), flicker(beach, 3, 0.015, ops[o]));
        fprintf(stderr, "%s: mean luma moves by up to %.3f codes under noise of two bins, %.3f under heavy grain\n",
                cox_operator_name(ops[o]), worst, grain);
        cr_expect_lt(worst, 0.25, "%s", cox_operator_name(ops[o]));
        cr_expect_lt(grain, 0.5, "%s", cox_operator_name(ops[o]));
        worst = flicker((const struct patch[]){{14400, 0.6, 0}}, 1, two_bins, ops[o]);
        cr_expect_lt(worst, 0.5, "%s, one grey: %g", cox_operator_name(ops[o]), worst);
    }
}

/* The picture changes gradually from one shot to the other, as in a pan or a dissolve. */
Test(video_scene, a_slow_change_is_followed_without_a_cut)
{
    enum { FRAMES = 48 };
    struct film film = {0};
    uint32_t from[BINS], to[BINS], histogram[BINS];
    double before = 0;
    shoot(room, 4, 0.004, from);
    shoot(beach, 3, 0.004, to);
    for (int i = 0; i <= FRAMES; i++) {
        for (int bin = 0; bin < BINS; bin++)
            histogram[bin] = (from[bin] * (uint32_t)(FRAMES - i) + to[bin] * (uint32_t)i) / FRAMES;
        cr_expect_eq(show(&film, histogram), i == 0, "frame %d", i);
        const double code = mean_code(to, COX_OPERATOR_HABLE, &film.settings);
        if (i > 0)
            cr_expect(fabs(code - before) < 4, "frame %d: %g codes", i, code - before);
        before = code;
    }
    cr_expect_eq(film.steer.cuts, 0);
    for (int i = 0; i < 120; i++)
        show(&film, to);
    const struct cox_video_settings own = after_first(to, no_settings);
    cr_expect_float_eq(film.settings.peak_nits / own.peak_nits, 1, 0.03);
    cr_expect_float_eq(film.settings.gain / own.gain, 1, 0.03);
}

/* The shot with its light, or its signal, times k. */
static void faded(const struct patch *patches, int count, double k, bool light, uint32_t *histogram)
{
    uint32_t whole[BINS];
    random_state = 1;
    shoot(patches, count, 0.004, whole);
    memset(histogram, 0, BINS * sizeof(*histogram));
    for (int bin = 0; bin < BINS; bin++) {
        const double signal = (bin + 0.5) / BINS;
        add(histogram, light ? cox__curve_pq_signal(cox__curve_pq_light(signal) * k) : signal * k, whole[bin]);
    }
}

Test(video_scene, a_fade_through_black_is_no_cut)
{
    for (int form = 0; form < 4; form++)
        for (int frames = 12; frames <= 48; frames *= 2) {
            struct film film = {0};
            uint32_t histogram[BINS];
            for (int i = 0; i <= 2 * frames; i++) {
                faded(form & 1 ? beach : room, form & 1 ? 3 : 4, fabs(1 - (double)i / frames), form & 2, histogram);
                cr_expect_eq(show(&film, histogram), i == 0, "fade %d of %d frames: a cut at frame %d", form, frames,
                             i);
                expect_sane(&film.settings, "fading");
            }
        }
}

Test(video_scene, what_is_too_dark_to_see_makes_no_cut)
{
    struct film film = {0};
    uint32_t histogram[BINS];
    for (int i = 0; i < 20; i++) { /* half of the frame below 1 cd/m2, at another level in each frame */
        constant(0.4, 7200, histogram);
        add(histogram, i % 5 * 0.03, 7200);
        cr_expect_eq(show(&film, histogram), i == 0);
    }
    for (int i = 0; i < 6; i++) { /* a fade to white between black bars, and back */
        constant(0.4 + 0.06 * (i < 4 ? i : 6 - i), 7200, histogram);
        add(histogram, 0, 7200);
        cr_expect_not(show(&film, histogram), "frame %d", i);
    }
}

Test(video_scene, a_cut_settles_at_once)
{
    for (int s = 0; s < 3; s++) {
        struct film film = {.shape = shapes[s]}, alone = {.shape = shapes[s]};
        uint32_t dark[BINS], bright[BINS];
        struct patch one[4], other[3];
        memcpy(one, room, sizeof(one));
        memcpy(other, beach, sizeof(other));
        for (int p = 0; s == 2 && p < 4; p++) { /* in log2 of light a stop is 1/32 */
            one[p].signal = 0.2 + one[p].signal / 2;
            other[p % 3].signal = 0.4 + beach[p % 3].signal / 4;
        }
        shoot(one, 4, 0.002, dark);
        shoot(other, 3, 0.002, bright);
        for (int i = 0; i < 40; i++)
            cr_expect_eq(show(&film, dark), i == 0);
        cr_expect(show(&film, bright), "transfer %d", s);
        show(&alone, bright);
        expect_equal(&film.settings, &alone.settings);
        cr_expect_eq(film.steer.cuts, 1);
        cr_expect_not(show(&film, bright));
        cr_expect_eq(film.settings.peak_nits, alone.settings.peak_nits);
        cr_expect(show(&film, dark), "and back");
        cr_expect_eq(film.steer.cuts, 2);
    }
}

/* Blocks trade places; their number in each bin is the same. What a cut needs is a fifth of the blocks. */
Test(video_scene, what_a_cut_takes_is_a_fifth_of_the_blocks)
{
    for (int share = 12; share <= 92; share += 10) {
        uint32_t before[BINS] = {0}, now[BINS] = {0};
        add(before, 0.2, 100);
        add(before, 0.5, 900);
        add(now, 0.2, 100);
        add(now, 0.5, 900 - (uint32_t)share * 5);
        add(now, 0.7, (uint32_t)share * 5);
        struct film film = {0};
        show(&film, before);
        cr_expect_eq(show(&film, now), share * 5 > 200, "%d blocks in a thousand move", share * 5);
    }
}

Test(video_scene, a_flash_is_two_cuts_and_leaves_nothing_behind)
{
    struct film film = {0};
    uint32_t shot[BINS], flash[BINS];
    shoot(room, 4, 0.002, shot);
    faded(room, 4, 16, true, flash);
    for (int i = 0; i < 10; i++)
        show(&film, shot);
    const struct cox_video_settings before = film.settings;
    cr_expect(show(&film, flash));
    cr_expect_gt(film.settings.peak_nits, before.peak_nits * 4);
    cr_expect(show(&film, shot));
    expect_equal(&film.settings, &before);
}

/* A film in the middle of a slow change: the filters are away from the values of its frames. */
static struct film changing(uint32_t *shot)
{
    struct film film = {0};
    uint32_t dimmer[BINS];
    faded(room, 4, 0.6, true, dimmer);
    faded(room, 4, 1, true, shot);
    for (int i = 0; i < 10; i++)
        cr_expect_eq(show(&film, dimmer), i == 0);
    for (int i = 0; i < 6; i++)
        cr_expect_not(show(&film, shot));
    return film;
}

/* Show `frames` frames of a flash between frames of a shot. Without it the film would have the same curve after it as
 * `frames` frames earlier. Returns the change of the mean code in the frames around the flash. */
static double change_around(struct film film, const uint32_t *shot, const uint32_t *const *flash, int frames)
{
    struct film without = film;
    const double before = mean_code(shot, COX_OPERATOR_HABLE, &film.settings);
    double most = 0;
    for (int i = 0; i < frames; i++)
        show(&film, flash[i]);
    for (int i = 0; i < 50; i++) {
        show(&film, shot);
        show(&without, shot);
        const double code = mean_code(shot, COX_OPERATOR_HABLE, &film.settings);
        most = fmax(most, fabs(code - mean_code(shot, COX_OPERATOR_HABLE, &without.settings)));
        if (i == 0)
            most = fmax(most, fabs(code - before));
    }
    return most;
}

/* The shot with light of this signal on some blocks. */
static void lit(const uint32_t *shot, double share, double signal, uint32_t *histogram)
{
    uint64_t moved = 0;
    for (int bin = 0; bin < BINS; bin++) {
        const uint32_t some = (uint32_t)(shot[bin] * share);
        histogram[bin] = shot[bin] - some;
        moved += some;
    }
    add(histogram, signal, (uint32_t)moved);
}

Test(video_scene, a_flash_of_up_to_three_frames_changes_no_other_frame)
{
    uint32_t shot[BINS], flash[BINS], flash_end[BINS];
    const struct film film = changing(shot);
    static const double signals[] = {0.99, 0.85, 0.25, 0.05};
    for (size_t s = 0; s < sizeof(signals) / sizeof(signals[0]); s++)
        for (double share = 0.005; share < 1.1; share *= 1.3)
            for (int frames = 1; frames <= 3; frames++) {
                lit(shot, fmin(share, 1), signals[s], flash);
                lit(shot, fmin(share, 1) / 2, signals[s], flash_end); /* it may fade */
                for (int fades = 0; fades < 2; fades++) {
                    const uint32_t *const show_it[] = {flash, fades ? flash_end : flash, fades ? flash_end : flash};
                    const double change = change_around(film, shot, show_it, frames);
                    cr_expect_lt(change, 3, "%d frames of %g on %g of the picture%s: %g codes", frames, signals[s],
                                 fmin(share, 1), fades ? ", fading" : "", change);
                }
            }
}

Test(video_scene, a_strobe_changes_no_other_frame)
{
    uint32_t shot[BINS], flash[BINS];
    for (int form = 0; form < 2; form++) {
        struct film film = changing(shot), without = film;
        lit(shot, form ? 0.9 : 0.1, 0.95, flash);
        for (int i = 0; i < 40; i++) {
            for (int n = 0; n <= i % 3; n++)
                show(&film, flash);
            show(&film, shot);
            show(&without, shot);
            const double change = mean_code(shot, COX_OPERATOR_HABLE, &film.settings) -
                                  mean_code(shot, COX_OPERATOR_HABLE, &without.settings);
            cr_assert(fabs(change) < 6, "form %d, flash %d: %g codes", form, i, change);
        }
    }
}

Test(video_scene, a_flash_that_fades_without_a_cut_leaves_nothing_behind)
{
    struct film film = {0};
    uint32_t shot[BINS], flash[BINS], after[BINS];
    faded(room, 4, 1, true, shot);
    faded(room, 4, 8, true, flash);
    faded(room, 4, 2.5, true, after);
    for (int i = 0; i < 5; i++)
        show(&film, shot);
    const struct cox_video_settings before = film.settings;
    cr_expect(show(&film, flash));
    show(&film, after);
    cr_expect_not(show(&film, shot));
    cr_expect_float_eq(mean_code(shot, COX_OPERATOR_HABLE, &film.settings),
                       mean_code(shot, COX_OPERATOR_HABLE, &before), 3);
}

Test(video_scene, short_scenes_have_their_own_light)
{
    struct film film = {0};
    uint32_t shots[3][BINS];
    shoot(room, 4, 0.002, shots[0]);
    shoot(beach, 3, 0.002, shots[1]);
    constant(0.2, 9000, shots[2]);
    add(shots[2], 0.9, 5400);
    for (int i = 0; i < 60; i++) { /* each scene lasts one frame, or a few */
        const int length = 1 + i % 4;
        struct film alone = {0};
        show(&alone, shots[i % 3]);
        for (int frame = 0; frame < length; frame++) {
            cr_expect_eq(show(&film, shots[i % 3]), frame == 0);
            expect_equal(&film.settings, &alone.settings);
        }
    }
}

Test(video_scene, black_frames_change_nothing)
{
    struct film film = {0};
    uint32_t black[BINS], dim[BINS], shot[BINS];
    constant(0, 14400, black);
    constant(0.14, 14400, dim); /* 0.8 cd/m2 */
    shoot(room, 4, 0.002, shot);
    for (int i = 0; i < 5; i++) {
        cr_expect_not(show(&film, i & 1 ? dim : black));
        cr_expect_eq(film.settings.peak_nits, 1000, "a film that begins in black");
        cr_expect_eq(film.settings.gain, 1);
    }
    cr_expect(show(&film, shot));
    const float peak = film.settings.peak_nits;
    for (int i = 0; i < 50; i++) {
        cr_expect_not(show(&film, i & 1 ? dim : black));
        cr_expect_eq(film.settings.peak_nits, peak);
    }
    cr_expect_not(show(&film, shot), "the same shot again");
    cr_expect_eq(film.settings.peak_nits, peak);
    cr_expect_eq(film.steer.cuts, 0);
    film.settings.most_nits = 600;
    cr_expect_eq(after_first(black, film.settings).peak_nits, 600);
}

/* How far the peak has moved towards another shot's peak after `frames` frames of that shot, as a share. */
static double way(const uint32_t *from, const uint32_t *to, uint64_t frames)
{
    struct film film = {0}, end = {0};
    show(&film, from);
    show(&end, to);
    const double begin = film.steer.peak_signal;
    while (film.steer.frames <= frames)
        cr_expect_not(show(&film, to));
    return (film.steer.peak_signal - begin) / (end.steer.peak_signal - begin);
}

Test(video_scene, a_peak_that_rises_far_is_followed_four_times_as_fast_as_one_that_falls)
{
    uint32_t low[BINS], higher[BINS], lamp[BINS];
    shoot(room, 4, 0, low);
    shoot(room, 4, 0, higher);
    shoot(room, 4, 0, lamp);
    add(higher, 0.715, 100);
    add(lamp, 0.9, 100); /* 3900 cd/m2 */
    cr_expect_eq(way(low, lamp, 3), 0, "it may be a flash");
    cr_expect_float_eq(way(low, lamp, 9), 1 - pow(1 - 4 / 24.0, 6), 1e-6);
    cr_expect_float_eq(way(lamp, low, 24), 1 - pow(1 - 1 / 24.0, 24), 1e-6);
    cr_expect_lt(way(low, higher, 6), 0.4, "noise");
    cr_expect_gt(way(low, higher, 6), 0.25);

    struct film dark = {0};
    constant(0.3, 1000, low);
    show(&dark, low);
    cr_expect_eq(dark.steer.peak_signal, cox__curve_pq_signal(203 / 10000.0),
                 "no way to go from a peak below SDR white");
}

/* The values after the first frame of a film, and the limits of the peak before and after it. */
Test(video_scene, the_first_frame_sets_the_peak_and_the_gain)
{
    enum { WHITE_PAGE, BRIGHT, GLARE, DARK, LAMP, BLACK, SHOTS };
    uint32_t shots[SHOTS][BINS];
    constant(0.5806, 14400, shots[WHITE_PAGE]); /* 203 cd/m2 */
    constant(0.65, 14400, shots[BRIGHT]);       /* 390 cd/m2 */
    constant(0.99, 14400, shots[GLARE]);
    constant(0.3, 14400, shots[DARK]); /* 10 cd/m2 */
    shoot(room, 4, 0, shots[LAMP]);
    add(shots[LAMP], 0.9, 100); /* 3900 cd/m2 */
    constant(0, 1000, shots[BLACK]);
    enum { ANY = 0 };
    static const struct {
        const char *what;
        int shot;
        struct cox_video_settings settings;
        double peak_nits, peak_within, gain, gain_within; /* ANY: is not looked at */
    } rows[] = {
        {"a white page is not darkened", WHITE_PAGE, {0}, 203, 6, 1, 0.01},
        {"a bright scene is", BRIGHT, {0}, 205, 5, 0.52, 0.02},
        {"glare is darkened most", GLARE, {0}, 2300, 100, 0.25, 0},
        {"the peak is never below SDR white", DARK, {0}, 203, 0.2, ANY, 0},
        {"nor below another white", DARK, {.sdr_white_nits = 100}, 100, 0.1, ANY, 0},
        {"it is bounded", LAMP, {.most_nits = 1000}, 1000, 1, ANY, 0},
        {"but by no bound below white", LAMP, {.most_nits = 50}, 203, 0.2, ANY, 0},
        {"nothing is known", BLACK, {0}, 1000, 1, ANY, 0},
        {"before a frame has told a peak", BLACK, {.prior_nits = 4000}, 4000, 1, ANY, 0},
        {"both", BLACK, {.prior_nits = 4000, .most_nits = 600}, 600, 1, ANY, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct cox_video_settings settings = after_first(shots[rows[i].shot], rows[i].settings);
        const double peak = (double)settings.peak_nits, gain = (double)settings.gain;
        if (rows[i].peak_nits > ANY)
            cr_expect(fabs(peak - rows[i].peak_nits) <= rows[i].peak_within, "%s: peak %g", rows[i].what, peak);
        if (rows[i].gain > ANY)
            cr_expect(fabs(gain - rows[i].gain) <= rows[i].gain_within, "%s: gain %g", rows[i].what, gain);
    }

    struct film told = {.settings.prior_nits = 4000};
    show(&told, shots[BLACK]);
    show(&told, shots[DARK]);
    cr_expect_float_eq(told.settings.peak_nits, 203, 0.2, "a frame has set the peak");
}

Test(video_scene, senseless_settings_are_defaults)
{
    uint32_t low[BINS], high[BINS], shot[BINS];
    constant(0.3, 14400, low);
    shoot(room, 4, 0, high);
    add(high, 0.9, 100);
    shoot(room, 4, 0, shot);
    static const float odd[] = {NAN, -1};
    for (int i = 0; i < 2; i++) {
        struct film a = {.settings = {.most_nits = odd[i], .prior_nits = odd[i]}}, b = {0};
        for (int frame = 0; frame < 20; frame++) {
            const uint32_t *histogram = frame % 7 == 0 ? low : frame % 3 == 0 ? high : shot;
            cr_expect_eq(show(&a, histogram), show(&b, histogram));
            expect_equal(&a.settings, &b.settings);
        }
    }
    const float odd_whites[] = {NAN, -5, INFINITY, 1e-30f};
    for (int i = 0; i < 4; i++) {
        struct cox_video_settings settings = {.sdr_white_nits = odd_whites[i]};
        for (int s = 0; s < 3; s++) {
            cox_video_adapt(&(struct cox_adaptation_state){0}, shapes[s], high, &settings);
            cr_expect(settings.peak_nits > 0 && settings.peak_nits <= 10000 && settings.gain >= 0.25f, "white %d", i);
        }
    }
}

/* Equal histograms give equal settings. Nearly equal states do too, so another C library's pow does not matter. */
Test(video_scene, equal_histograms_give_equal_settings)
{
    for (int s = 0; s < 3; s++) {
        struct film a = {.shape = shapes[s]}, b = {.shape = shapes[s]}, near = {.shape = shapes[s]};
        for (int frame = 0; frame < 200; frame++) {
            uint32_t histogram[BINS];
            shoot(frame / 50 % 2 ? beach : room, frame / 50 % 2 ? 3 : 4, 0.01, histogram);
            const bool begins = show(&a, histogram);
            cr_assert_eq(show(&b, histogram), begins);
            cr_assert_eq(memcmp(&a.steer, &b.steer, sizeof a.steer), 0);
            cr_assert_eq(memcmp(&a.settings, &b.settings, sizeof a.settings), 0);
            show(&near, histogram);
            expect_equal(&near.settings, &a.settings);
            near.steer.peak_signal *= 1 + 1e-10;
            near.steer.average_signal *= 1 + 1e-10;
        }
    }
}
