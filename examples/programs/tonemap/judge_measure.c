/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_measure.h"
#include "common/quantiles.h"
#include "common/strict_fp.h"

#include <math.h>
#include <stdlib.h>

/* A histogram of dE ITP in hundredths; there is no difference of more than 1310. */
enum { BINS = 131072, BINS_PER_UNIT = 100 };

enum {
    PLATEAU = 8, /* pixels */
    STEP_LEAST = JUDGE_LUMA_UNITS / 2,
    STEP_MOST = JUDGE_LUMA_UNITS * 4
};

/* A row or column up to a pixel: the run of equal values there, and the run before. */
struct runs {
    int32_t value, before;
    uint32_t length;
    bool plateau_before;
};

struct side {
    struct judge_light *light;
    struct judge_row row;
    struct runs *columns;
    uint64_t band_edges;
    double luma; /* the mean of the last frame, in codes */
};

struct judge_measure {
    uint32_t width, height;
    struct side sides[JUDGE_SIDES];
    uint64_t frames, last;
    uint64_t bins[BINS];
    double sum;
    float most;
    double flicker; /* the sum of the squares of `changes` */
    uint64_t changes;
};

static bool create_side(struct side *side, uint32_t width)
{
    const size_t count = width;
    side->light = judge_light_create(width);
    side->row = (struct judge_row){.i = calloc(3 * count, sizeof(float)),
                                   .luma = calloc(count, sizeof(int32_t))};
    side->columns = calloc(count, sizeof *side->columns);
    if (!side->light || !side->row.i || !side->row.luma || !side->columns)
        return false;

    side->row.t = side->row.i + count;
    side->row.p = side->row.i + 2 * count;
    return true;
}

struct judge_measure *judge_measure_create(uint32_t width, uint32_t height)
{
    struct judge_measure *measure = calloc(1, sizeof *measure);
    if (!measure)
        return NULL;

    measure->width = width;
    measure->height = height;
    for (int s = 0; s < JUDGE_SIDES && measure; s++)
        if (!create_side(&measure->sides[s], width))
            judge_measure_destroy(&measure);
    return measure;
}

void judge_measure_destroy(struct judge_measure **measure)
{
    for (int s = 0; *measure && s < JUDGE_SIDES; s++) {
        struct side *side = &(*measure)->sides[s];
        judge_light_destroy(&side->light);
        free(side->row.i);
        free(side->row.luma);
        free(side->columns);
    }
    free(*measure);
    *measure = NULL;
}

void judge_measure_set(struct judge_measure *measure, enum judge_side side,
                       const struct judge_coding *coding)
{
    judge_light_set(measure->sides[side].light, coding);
}

/* Take the next value of a row or column. True: the run that it is in and the run before are two
 * plateaus with a small step between them, and this was not yet known. */
static inline bool finds_edge(struct runs *runs, int32_t value)
{
    if (value != runs->value) {
        runs->plateau_before = runs->length >= PLATEAU;
        runs->before = runs->value;
        runs->value = value;
        runs->length = 0;
    }

    const int32_t step = abs(runs->value - runs->before);
    return ++runs->length == PLATEAU && runs->plateau_before && step >= STEP_LEAST &&
           step <= STEP_MOST;
}

/* Read row `y` of a side. Returns the sum of its luma. */
static int64_t take_row(struct side *side, const struct judge_frame *frame, uint32_t width,
                        uint32_t y)
{
    const int32_t *luma = side->row.luma;
    struct runs along = {0};
    int64_t sum = 0;

    judge_light_row(side->light, frame, y, &side->row);
    for (uint32_t x = 0; x < width; x++) {
        if (!y)
            side->columns[x] = (struct runs){0};
        side->band_edges += finds_edge(&along, luma[x]);
        side->band_edges += finds_edge(&side->columns[x], luma[x]);
        sum += luma[x];
    }
    return sum;
}

static void compare_rows(struct judge_measure *measure)
{
    const struct judge_row *a = &measure->sides[JUDGE_OUTPUT].row,
                           *b = &measure->sides[JUDGE_REFERENCE].row;
    float *differences = a->i; /* in place */
    const size_t width = measure->width;
    double sum = 0;

    for (size_t x = 0; x < width; x++) {
        const float i = a->i[x] - b->i[x], t = a->t[x] - b->t[x], p = a->p[x] - b->p[x];
        differences[x] = i * i + t * t + p * p;
    }
    for (size_t x = 0; x < width; x++) {
        const float difference = 720 * sqrtf(differences[x]);
        int bin = (int)(difference * BINS_PER_UNIT + 0.5F);
        if (bin >= BINS)
            bin = BINS - 1;

        measure->bins[bin]++;
        sum += (double)difference;
        if (difference > measure->most)
            measure->most = difference;
    }
    measure->sum += sum;
}

void judge_measure_add(struct judge_measure *measure, uint64_t number,
                       const struct judge_frame frames[JUDGE_SIDES])
{
    const double pixels = (double)measure->width * measure->height;
    int64_t luma[JUDGE_SIDES] = {0};
    double change[JUDGE_SIDES];

    for (uint32_t y = 0; y < measure->height; y++) {
        for (int s = 0; s < JUDGE_SIDES; s++)
            luma[s] += take_row(&measure->sides[s], &frames[s], measure->width, y);
        compare_rows(measure);
    }

    for (int s = 0; s < JUDGE_SIDES; s++) {
        const double mean = (double)luma[s] / (JUDGE_LUMA_UNITS * pixels);
        change[s] = mean - measure->sides[s].luma;
        measure->sides[s].luma = mean;
    }
    if (measure->frames && number == measure->last + 1) {
        const double beyond = change[JUDGE_OUTPUT] - change[JUDGE_REFERENCE];
        measure->flicker += beyond * beyond;
        measure->changes++;
    }
    measure->last = number;
    measure->frames++;
}

static double percentile(const struct judge_measure *measure, uint64_t pixels, unsigned per_mille)
{
    const uint64_t rank = rank_of(pixels, per_mille);
    uint64_t below = 0;
    uint32_t bin = 0;
    while (bin < BINS - 1 && below + measure->bins[bin] < rank)
        below += measure->bins[bin++];

    return (double)bin / BINS_PER_UNIT;
}

void judge_measure_figures(const struct judge_measure *measure, struct judge_figures *figures)
{
    const uint64_t count = measure->frames * measure->width * measure->height;
    const double pixels = (double)count;
    *figures = (struct judge_figures){.frames = measure->frames, .flicker = NAN};
    if (!count)
        return;

    figures->mean = measure->sum / pixels;
    figures->p50 = percentile(measure, count, 500);
    figures->p90 = percentile(measure, count, 900);
    figures->p99 = percentile(measure, count, 990);
    figures->most = (double)measure->most;
    if (measure->changes)
        figures->flicker = sqrt(measure->flicker / (double)measure->changes);

    for (int s = 0; s < JUDGE_SIDES; s++) {
        const struct side *side = &measure->sides[s];
        figures->of[s].band_edges = 1000 * (double)side->band_edges / pixels;
        figures->of[s].white = (double)side->row.white / pixels;
        figures->of[s].black = (double)side->row.black / pixels;
    }
}
