/* SPDX-License-Identifier: Apache-2.0 */
#include "times.h"
#include "lab/strict_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES_BYTES_MAX = 64 << 20 };

/* --- reading --- */

static bool add(struct times *times, const struct times_range *range)
{
    /* The array grows at powers of two, from 0 to 1 entry on. */
    if (!(times->count & (times->count - 1))) {
        const size_t room = times->count ? 2 * times->count : 1;
        struct times_range *more = realloc(times->ranges, room * sizeof *more);
        if (!more)
            return false;
        times->ranges = more;
    }

    times->ranges[times->count++] = *range;
    return true;
}

/* Where the seconds of a serial step go; NULL for other steps. */
static double *serial_step(struct times *times, const char *step)
{
    if (strcmp(step, "begin") == 0)
        return &times->begin_s;
    if (strcmp(step, "steer") == 0)
        return &times->steer_s;
    if (strcmp(step, "join") == 0)
        return &times->join_s;
    return NULL;
}

/* Read a line of the file. False if it is invalid, or if out of memory. */
static bool read_line(struct times *times, const char *line)
{
    char step[16];
    uint32_t rank;
    uint64_t first, count;
    double start_s, seconds;
    int end = 0;
    if (sscanf(line, "%15[a-z],%" SCNu32 ",%" SCNu64 ",%" SCNu64 ",%lf,%lf%n", step, &rank, &first,
               &count, &start_s, &seconds, &end) != 6 ||
        line[end] || rank >= CLUSTER_MACHINES_MAX || !count || count > CLUSTER_FRAMES_MAX ||
        !(seconds >= 0) || !(start_s >= 0) || !isfinite(start_s + seconds))
        return false;

    double *serial = serial_step(times, step);
    times->total_s = fmax(times->total_s, start_s + seconds);
    if (serial) {
        const bool same = !times->frames || times->frames == count;
        *serial = seconds;
        times->frames = count;
        return same;
    }

    struct times_range range = {CLUSTER_ANALYSE, rank, (double)count, start_s, seconds};
    while (range.step < CLUSTER_STEPS && strcmp(step, cluster_step_name(range.step)) != 0)
        range.step++;
    if (rank >= times->ranks)
        times->ranks = rank + 1;
    return range.step < CLUSTER_STEPS && add(times, &range);
}

/* Whether all frames were mapped, and all or none analysed. A run that continued another one has no
 * times of a whole film. */
static bool is_whole(const struct times *times)
{
    double frames[CLUSTER_STEPS] = {0};

    for (size_t i = 0; i < times->count; i++)
        frames[times->ranges[i].step] += times->ranges[i].frames;

    const double all = (double)times->frames;
    return frames[CLUSTER_MAP] == all &&
           (frames[CLUSTER_ANALYSE] == all || frames[CLUSTER_ANALYSE] == 0);
}

/* A step lasts from the beginning of its first range to the end of its last. */
static void measure_steps(struct times *times)
{
    for (int step = 0; step < CLUSTER_STEPS; step++) {
        double from = HUGE_VAL, to = 0;

        for (size_t i = 0; i < times->count; i++)
            if ((int)times->ranges[i].step == step) {
                from = fmin(from, times->ranges[i].start_s);
                to = fmax(to, times->ranges[i].start_s + times->ranges[i].seconds);
            }
        times->step_s[step] = fmax(0, to - from);
    }
}

bool times_read(struct times *out, const char *path, char *why, size_t why_bytes)
{
    size_t bytes;
    unsigned number = 1;

    *out = (struct times){0};
    char *text = strict_read_file(path, TIMES_BYTES_MAX, &bytes, why, why_bytes);
    if (!text)
        return false;

    char *rest, *line = strtok_r(text, "\n", &rest);
    bool good = bytes <= TIMES_BYTES_MAX && line &&
                strcmp(line, "step,rank,first,count,start_s,seconds") == 0;
    while (good && (line = strtok_r(NULL, "\n", &rest))) {
        number++;
        good = read_line(out, line);
    }
    free(text);

    if (!good || !out->frames) {
        snprintf(why, why_bytes, "%s: line %u: not a times.csv file of cox-tonemap-mpi", path,
                 number);
        times_free(out);
        return false;
    }
    if (!is_whole(out)) {
        snprintf(why, why_bytes, "%s: from a resumed run; a run of the whole film is needed", path);
        times_free(out);
        return false;
    }

    measure_steps(out);
    return true;
}

void times_free(struct times *times)
{
    free(times->ranges);
    *times = (struct times){0};
}

/* --- fitting --- */

/* The formula for a range's time: begin + frames / fps of its step. The fit has the least squares
 * of (formula - time) / time, since ranges have very different lengths. */
struct fit {
    uint32_t rank;
    double begin_s, frame_s[CLUSTER_STEPS];
};

static double predicted_s(const struct fit *fit, const struct times_range *range)
{
    return fit->begin_s + range->frames * fit->frame_s[range->step];
}

/* The seconds per frame of a step that fit best with this `begin_s`; 0 = no range of the step. */
static double fit_frame(const struct times *times, uint32_t rank, enum cluster_step step,
                        double begin_s)
{
    double over = 0, under = 0;

    for (size_t i = 0; i < times->count; i++) {
        const struct times_range *range = &times->ranges[i];
        if (range->rank != rank || range->step != step || !(range->seconds > 0))
            continue;

        const double weight = range->frames / range->seconds;
        over += weight * (1 - begin_s / range->seconds);
        under += weight * weight;
    }

    if (!(under > 0))
        return 0;
    return over / under;
}

/* The sum of squares of a rank, and in `count` the number of its ranges. */
static double residual(const struct times *times, const struct fit *fit, size_t *count)
{
    double sum = 0;

    for (size_t i = 0; i < times->count; i++) {
        const struct times_range *range = &times->ranges[i];
        if (range->rank != fit->rank || !(range->seconds > 0))
            continue;

        const double off = predicted_s(fit, range) / range->seconds - 1;
        sum += off * off;
        (*count)++;
    }

    return sum;
}

/* Fit the speeds of a rank to its `begin_s`. Returns the sum of squares. */
static double fit_speeds(const struct times *times, struct fit *fit)
{
    size_t count = 0;

    for (int step = 0; step < CLUSTER_STEPS; step++)
        fit->frame_s[step] = fmax(0, fit_frame(times, fit->rank, (enum cluster_step)step,
                                               fit->begin_s));
    return residual(times, fit, &count);
}

/* The sum of squares is a parabola of begin_s, since the speeds are fitted to it. Three points give
 * its minimum. */
static struct fit fit_rank(const struct times *times, uint32_t rank)
{
    struct fit fit = {.rank = rank};
    double sums[3], shortest = HUGE_VAL;

    for (size_t i = 0; i < times->count; i++)
        if (times->ranges[i].rank == rank)
            shortest = fmin(shortest, times->ranges[i].seconds);
    for (int i = 0; i < 3; i++) {
        fit.begin_s = shortest / 2 * i;
        sums[i] = fit_speeds(times, &fit);
    }

    const double bend = sums[0] - 2 * sums[1] + sums[2], slope = (sums[2] - sums[0]) / 2;
    fit.begin_s = 0;
    if (bend > 0)
        fit.begin_s = fmin(fmax(shortest / 2 * (1 - slope / bend), 0), shortest);
    fit_speeds(times, &fit);
    return fit;
}

/* A rank whose speed in a step is not known. */
static bool lacks_speed(const struct times *times, const struct fit *fit)
{
    const bool analysed = times->step_s[CLUSTER_ANALYSE] > 0;
    return !(fit->frame_s[CLUSTER_MAP] > 0) || (analysed && !(fit->frame_s[CLUSTER_ANALYSE] > 0));
}

bool times_fit(const struct times *times, const char *path, struct cluster *out, char *why,
               size_t why_bytes)
{
    const size_t length = strlen(path), most = 34;
    const char *tail = path;
    double sum = out->spread * out->spread * (double)out->kind_count;

    if (length > most)
        tail += length - most;

    for (uint32_t rank = 0; rank < times->ranks; rank++) {
        const struct fit fit = fit_rank(times, rank);
        size_t count = 0;
        const double squares = residual(times, &fit, &count);
        const char *fault = NULL;

        if (out->kind_count == CLUSTER_KINDS_MAX)
            fault = "exceeds the limit of 64 ranks";
        else if (lacks_speed(times, &fit))
            fault = "mapped no frames, so its speed is unknown";
        if (fault) {
            snprintf(why, why_bytes, "%s: rank %u %s", path, rank, fault);
            return false;
        }

        struct cluster_kind *kind = &out->kinds[out->kind_count++];
        *kind = (struct cluster_kind){.count = 1, .begin_s = fit.begin_s};
        snprintf(kind->name, sizeof kind->name, "%s, rank %u", tail, rank);
        for (int step = 0; step < CLUSTER_STEPS; step++)
            if (fit.frame_s[step] > 0)
                kind->fps[step] = 1 / fit.frame_s[step];
        if (count)
            sum += squares / (double)count;
    }

    out->spread = 0;
    if (out->kind_count > 0)
        out->spread = sqrt(sum / out->kind_count);
    out->frames = times->frames;
    out->begin_s = fmax(out->begin_s, times->begin_s);
    if (times->steer_s > 0)
        out->steer_fps = fmax(1, (double)times->frames / times->steer_s);
    if (times->join_s > 0)
        out->join_fps = fmax(1e-3, (double)times->frames / times->join_s);
    return true;
}
