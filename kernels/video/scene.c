/* Reading the light of a frame from its histogram, and adapting the curve to it through a film
 * (docs/internals/kernels.md, Steering).
 *
 * Pure: no allocation, no clock, no state but the caller's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "math/curve.h"
#include "scene.h"
#include <math.h>
#include <string.h>

enum { COARSE = sizeof(((struct cox_adaptation_state *)0)->coarse) / sizeof(uint32_t) };
enum { FOLLOW_FRAMES = 24 };
#define CUT_SHARE 0.2
/* One block in LEFT_OUT may be brighter than the peak. In small frames SPECKS blocks may, up to one
 * in SPECKS_MOST: hot pixels do not become fewer with the size of the frame. */
enum { LEFT_OUT = 20000, SPECKS = 16, SPECKS_MOST = 512 };
/* What lasts up to FLASH_FRAMES frames is a flash and leaves the curve alone. A peak may be one if
 * it rises by FLASH_RISE of the signal, a third more light. A smaller rise moves the filter by less
 * than 1/100 in that time. */
enum { FLASH_FRAMES = 3 };
#define FLASH_RISE (1.0 / 32)
enum { LINEAR_BINS_PER_STOP = 16, LINEAR_LOWEST_STOP = -16 };
/* The results move in steps of these sizes: far below what can be seen, far above the differences
 * between two C libraries' pow. */
enum { SIGNAL_STEPS = 16384, GAIN_STEPS = 4096 };

static double white_of(const struct cox_video_settings *settings)
{
    return fmin(cox__given(settings->sdr_white_nits, COX__SDR_WHITE_NITS), COX__PQ_NITS);
}

double cox__scene_sdr_nits(const struct cox_video_shape *shape,
                           const struct cox_video_settings *settings)
{
    const double white = white_of(settings);

    return shape->encoding == COX_ENCODING_PQ ? fmin(white, COX__SDR_WHITE_NITS) : white;
}

/* The light at a place on the histogram's axis, 0 .. COX_VIDEO_BINS. */
static double nits_at(const struct cox_video_shape *shape,
                      const struct cox_video_settings *settings, double place)
{
    const double signal = place / COX_VIDEO_BINS;

    if (shape->transfer == COX_TRANSFER_LINEAR)
        return white_of(settings) * exp2(place / LINEAR_BINS_PER_STOP + LINEAR_LOWEST_STOP);

    if (shape->transfer == COX_TRANSFER_SDR)
        return cox__scene_sdr_nits(shape, settings) * pow(signal, 2.4);

    /* BT.2100: a grey through the OOTF. */
    if (shape->transfer == COX_TRANSFER_HLG) {
        const double a = 0.17883277, b = 1 - 4 * a, c = 0.5 - a * log(4 * a);
        const double peak = cox__given(settings->hlg_peak_nits, COX__HLG_PEAK_NITS);
        double scene = signal * signal / 3;
        if (signal > 0.5)
            scene = (exp((signal - c) / a) + b) / 12;
        return peak * pow(scene, 1.2 + 0.42 * log10(peak / 1000));
    }

    return COX__PQ_NITS * cox__curve_pq_light(signal);
}

/* Peak and average of a histogram, on its own axis of 0 .. COX_VIDEO_BINS. */
struct reading {
    double peak;
    double average;
    uint64_t blocks;
    bool black; /* or empty: everything up to the peak lies in the lowest bin */
};

/* The number of blocks that may be brighter than the peak. */
static uint64_t left_out(uint64_t blocks)
{
    const uint64_t share = blocks / LEFT_OUT, most = blocks / SPECKS_MOST;
    const uint64_t specks = most < SPECKS ? most : SPECKS;

    return share > specks ? share : specks;
}

static struct reading read_histogram(const uint32_t *histogram)
{
    struct reading r = {0};
    uint64_t sum = 0; /* of twice the bins' centres; 512 counts of 32 bits times 1023 fit */

    for (uint32_t i = 0; i < COX_VIDEO_BINS; i++) {
        r.blocks += histogram[i];
        sum += (uint64_t)histogram[i] * (2 * i + 1);
    }

    uint64_t above = left_out(r.blocks);
    uint32_t bin = COX_VIDEO_BINS - 1;
    while (bin > 0 && histogram[bin] <= above)
        above -= histogram[bin--];

    if (bin == 0) {
        r.black = true;
        return r;
    }

    /* As if the bin's blocks were spread evenly over it, so that a slow change stays slow. */
    r.peak = bin + 1 - (double)above / histogram[bin];
    r.average = (double)sum / (2 * (double)r.blocks);

    return r;
}

void cox__scene_read(const struct cox_video_shape *shape, const struct cox_video_settings *settings,
                     const uint32_t *histogram, struct cox__scene *out)
{
    const struct reading r = read_histogram(histogram);
    *out = (struct cox__scene){.blocks = r.blocks};

    if (r.black)
        return;

    out->peak_nits = (float)nits_at(shape, settings, r.peak);
    out->average_nits = (float)nits_at(shape, settings, r.average);
}

/* --- Cuts --- */

static int to_step(int step)
{
    if (step < 0)
        return 0;
    if (step >= COARSE)
        return COARSE - 1;
    return step;
}

/* Blocks of bars, which the histogram lacks. */
static uint64_t missing(const struct cox_video_shape *shape, uint64_t blocks)
{
    const unsigned halved = shape->scale == COX_SCALE_HALF;
    uint64_t width = shape->width >> halved, height = shape->height >> halved;
    if (shape->scale == COX_SCALE_FILTER) {
        width = shape->out_width;
        height = shape->out_height;
    }

    const uint64_t all = (width + 1) / 2 * ((height + 1) / 2);
    return all > blocks ? all - blocks : 0;
}

/* The histogram in steps of 1/64 of a signal, or of a quarter stop of light. Step 0 takes
 * everything up to about 1 cd/m2, on which PQ spends a seventh of its range. Otherwise every fade
 * would begin and end with a jump. */
static void coarsen(const struct cox_video_shape *shape, const uint32_t *histogram,
                    uint32_t coarse[COARSE])
{
    int bins_per_step = COX_VIDEO_BINS / COARSE, dark = 9; /* PQ: 0.8 cd/m2 */

    if (shape->transfer == COX_TRANSFER_HLG) {
        dark = 6; /* 0.9 cd/m2 on a display of 1000 */
    } else if (shape->transfer == COX_TRANSFER_SDR) {
        dark = 7; /* 1 cd/m2 of 203 */
    } else if (shape->transfer == COX_TRANSFER_LINEAR) {
        bins_per_step = LINEAR_BINS_PER_STOP / 4;
        dark = 4 * (-8 - LINEAR_LOWEST_STOP); /* 2^-8 of SDR white; the last step, 2^8 */
    }

    uint64_t wide[COARSE] = {0}, blocks = 0;
    for (int bin = 0; bin < COX_VIDEO_BINS; bin++) {
        const int step = to_step(bin / bins_per_step - dark);
        wide[step] += histogram[bin];
        blocks += histogram[bin];
    }
    wide[0] += missing(shape, blocks);

    for (int step = 0; step < COARSE; step++) {
        coarse[step] = UINT32_MAX;
        if (wide[step] < UINT32_MAX)
            coarse[step] = (uint32_t)wide[step];
    }
}

enum { CUT_REACH = 1, CUT_SHIFT = 5 };

/* The number of blocks of one histogram, made brighter by `shift` steps, that find a partner in the
 * other at most CUT_REACH steps away. Blocks in step 0 may be of any darkness, and may stay there.
 * Blocks look for partners from the dark end, each for the darkest one left; no other order finds
 * more. */
static uint64_t matched(const uint32_t before[COARSE], const uint32_t now[COARSE], int shift)
{
    uint64_t pairs = 0;
    uint32_t left_before = before[0], left_now = now[0];

    for (int b = 0, n = 0; b < COARSE && n < COARSE;) {
        const int at = to_step(b + shift), lowest = b == 0 ? 0 : at - CUT_REACH;
        const int highest = at + CUT_REACH;
        const bool reach = lowest <= n && n <= highest;
        uint32_t some = 0;
        if (reach)
            some = left_before < left_now ? left_before : left_now;
        pairs += some;
        left_before -= some;
        left_now -= some;

        /* Go on from a step that is used up, or too dark for anything left. */
        bool next_before = n > highest;
        if (reach)
            next_before = left_before == 0;
        if (next_before) {
            if (++b < COARSE)
                left_before = before[b];
        } else if (++n < COARSE) {
            left_now = now[n];
        }
    }

    return pairs;
}

/* The share of the blocks that find no partner in the other frame. That frame is also tried darker
 * and brighter as a whole, by up to 5/64 of the signal. The smallest share counts. So noise, a pan
 * or a fade is no cut. */
static double changed(const uint32_t before[COARSE], const uint32_t now[COARSE])
{
    uint64_t total_before = 0, total_now = 0, most = 0;

    for (int i = 0; i < COARSE; i++) {
        total_before += before[i];
        total_now += now[i];
    }

    for (int shift = -CUT_SHIFT; shift <= CUT_SHIFT; shift++) {
        const uint64_t pairs = matched(before, now, shift);
        if (pairs > most)
            most = pairs;
    }

    uint64_t total = total_now;
    if (total_before > total)
        total = total_before;
    if (total == 0)
        return 0;
    return (double)(total - most) / (double)total;
}

/* --- Steering --- */

/* A frame's values on their way into the filters, in the signal domain of PQ. */
struct values {
    double peak, average;
};

/* Set the filters, as if all frames had had these values. */
static void begin_with(struct cox_adaptation_state *steer, struct values now)
{
    steer->peak_signal = now.peak;
    steer->average_signal = now.average;

    for (int i = 0; i < FLASH_FRAMES; i++) {
        steer->recent_peaks[i] = now.peak;
        steer->recent_averages[i] = now.average;
    }
}

/* Remember the scene that ends, unless it is a flash within the scene that is remembered. */
static void remember_scene(struct cox_adaptation_state *steer)
{
    if (steer->past_end && steer->frames - steer->past_end <= FLASH_FRAMES)
        return;

    steer->past_end = steer->frames;
    steer->past_peak_signal = steer->peak_signal;
    steer->past_average_signal = steer->average_signal;
    memcpy(steer->past_coarse, steer->coarse, sizeof(steer->coarse));
}

/* Whether a frame continues the remembered scene after a flash. */
static bool is_back(const struct cox_adaptation_state *steer, const uint32_t coarse[COARSE])
{
    return steer->past_end && steer->frames - steer->past_end <= FLASH_FRAMES &&
           changed(steer->past_coarse, coarse) <= CUT_SHARE;
}

/* Go on where the remembered scene ended. The next cut is remembered whenever it comes. */
static void go_back(struct cox_adaptation_state *steer)
{
    begin_with(steer, (struct values){steer->past_peak_signal, steer->past_average_signal});
    steer->past_end = 0;
}

/* What all of the last frames had at least, this one included. */
static struct values lasting(const struct cox_adaptation_state *steer, struct values now)
{
    for (int i = 0; i < FLASH_FRAMES; i++) {
        now.peak = fmin(now.peak, steer->recent_peaks[i]);
        now.average = fmin(now.average, steer->recent_averages[i]);
    }
    return now;
}

static void remember_values(struct cox_adaptation_state *steer, struct values now)
{
    const uint64_t at = steer->frames % FLASH_FRAMES;

    steer->recent_peaks[at] = now.peak;
    steer->recent_averages[at] = now.average;
}

/* Move the filters towards a frame's values. */
static void approach(struct cox_adaptation_state *steer, struct values now)
{
    const double rate = 1.0 / FOLLOW_FRAMES;
    const struct values least = lasting(steer, now);
    struct values to = now;

    /* A flash of a part of the picture, unless it lasts. */
    if (now.peak - fmax(steer->peak_signal, least.peak) > FLASH_RISE) {
        to.peak = fmax(steer->peak_signal, least.peak);
        to.average = least.average;
    }
    remember_values(steer, now);

    /* A clipped highlight is visible at once; one with a little less contrast than possible is not.
     * So the peak rises up to four times as fast as it falls. Only a rise of nearly a stop gets the
     * full speed, because noise comes and goes. */
    const double rise = fmin(fmax((to.peak - steer->peak_signal) * 16, 0.0), 1.0);
    steer->peak_signal += (to.peak - steer->peak_signal) * fmin(rate * (1 + 3 * rise), 1.0);
    steer->average_signal += (to.average - steer->average_signal) * rate;
}

/* Put a frame that is not black into the filters. Returns whether it begins a scene. */
static bool follow(struct cox_adaptation_state *steer, const struct cox_video_shape *shape,
                   const uint32_t *histogram, struct values now)
{
    uint32_t coarse[COARSE];
    coarsen(shape, histogram, coarse);

    const bool first = steer->peak_signal <= 0;
    const bool begins = first || changed(steer->coarse, coarse) > CUT_SHARE;
    const bool back = is_back(steer, coarse);
    steer->cuts += begins && !first;

    if (back)
        go_back(steer);
    else if (begins && !first)
        remember_scene(steer);
    memcpy(steer->coarse, coarse, sizeof(coarse));

    if (begins && !back)
        begin_with(steer, now);
    else
        approach(steer, now);

    return begins;
}

bool cox_video_adapt(struct cox_adaptation_state *steer, const struct cox_video_shape *shape,
                     const uint32_t *histogram, struct cox_video_settings *settings)
{
    const double white = white_of(settings);
    const double most = fmin(cox__given(settings->most_nits, COX__PQ_NITS), COX__PQ_NITS);
    const struct reading r = read_histogram(histogram);
    bool begins = false;
    steer->frames++;

    /* A black frame is ignored: after it the film goes on, or the next frame shows a cut. */
    const double peak = r.black ? 0 : nits_at(shape, settings, r.peak);
    if (peak >= 1) {
        const double average = nits_at(shape, settings, r.average);
        /* Limited before the filter, so that a rise does not begin below the lower limit. */
        const double limited = fmax(fmin(peak, most), white);
        const struct values now = {cox__curve_pq_signal(limited / COX__PQ_NITS),
                                   cox__curve_pq_signal(average / COX__PQ_NITS)};
        begins = follow(steer, shape, histogram, now);
    }

    double limit = fmin(cox__given(settings->prior_nits, COX__PEAK_NITS), most);
    if (shape->transfer == COX_TRANSFER_SDR)
        limit = white;
    double gain = 1; /* while the film has been black */
    if (steer->peak_signal > 0) {
        limit = COX__PQ_NITS *
                cox__curve_pq_light(round(steer->peak_signal * SIGNAL_STEPS) / SIGNAL_STEPS);

        const double average = COX__PQ_NITS * cox__curve_pq_light(steer->average_signal);
        const bool adapts = shape->op != COX_OPERATOR_HDR10PLUS; /* its curves are for this light */
        if (adapts && average > white)
            gain = fmax(round(white / average * GAIN_STEPS) / GAIN_STEPS, 0.25);
    }

    settings->gain = (float)gain;
    settings->peak_nits = (float)fmax(limit * gain, white);

    return begins;
}
