/* SPDX-License-Identifier: Apache-2.0 */
#include "times.h"
#include "lab/strict_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES_BYTES_MAX = 64 << 20 };

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static bool add(struct times *times, const struct times_range *range)
{
    if (!(times->count & (times->count - 1))) { /* it grows at powers of two */
        struct times_range *more = realloc(times->ranges,
                                           (times->count ? 2 * times->count : 1) * sizeof *more);
        if (!more)
            return false;
        times->ranges = more;
    }
    times->ranges[times->count++] = *range;
    return true;
}

/* A line of the file. False: it is none, or out of memory. */
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
    times->total_s = fmax(times->total_s, start_s + seconds);
    double *serial = !strcmp(step, "begin")   ? &times->begin_s
                     : !strcmp(step, "steer") ? &times->steer_s
                     : !strcmp(step, "join")  ? &times->join_s
                                              : NULL;
    if (serial) {
        const bool same = !times->frames || times->frames == count;
        *serial = seconds;
        times->frames = count;
        return same;
    }
    struct times_range range = {CLUSTER_ANALYSE, rank, (double)count, start_s, seconds};
    while (range.step < CLUSTER_STEPS && strcmp(step, cluster_step_name(range.step)) != 0)
        range.step++;
    times->ranks = rank >= times->ranks ? rank + 1 : times->ranks;
    return range.step < CLUSTER_STEPS && add(times, &range);
}

/* Whether all frames were mapped, and all or none analysed: a run that went on with what another one had begun tells
 * nothing of a whole film. */
static bool is_whole(const struct times *times)
{
    double frames[CLUSTER_STEPS] = {0};
    for (size_t i = 0; i < times->count; i++)
        frames[times->ranges[i].step] += times->ranges[i].frames;
    const double all = (double)times->frames;
    return frames[CLUSTER_MAP] == all &&
           (frames[CLUSTER_ANALYSE] == all || frames[CLUSTER_ANALYSE] == 0);
}

/* A step lasts from its first range's beginning to its last one's end. */
static void measure_steps(struct times *times)
{
    for (int step = 0; step < CLUSTER_STEPS; step++) {
        double from = HUGE_VAL, to = 0;
        for (size_t i = 0; i < times->count; i++)
            if ((int)times->ranges[i].step == step) {
                from = fmin(from, times->ranges[i].start_s);
                to = fmax(to, times->ranges[i].start_s + times->ranges[i].seconds);
            }
        times->step_s[step] = to > from ? to - from : 0;
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
                !strcmp(line, "step,rank,first,count,start_s,seconds");
    while (good && (line = strtok_r(NULL, "\n", &rest))) {
        number++;
        good = read_line(out, line);
    }
    free(text);
    if (good && !out->frames)
        good = false;
    if (!good) {
        snprintf(why, why_bytes, "%s: line %u: these are not the times of a run of cox-tonemap-mpi",
                 path, number);
        times_free(out);
        return false;
    }
    if (!is_whole(out)) {
        snprintf(
            why, why_bytes,
            "%s: it is of a run that went on with what another one had begun, and not of a whole film",
            path);
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

/* --- Fitting ------------------------------------------------------------------------------------------------------ */

/* What a range takes: begin + frames / fps of its step. Least squares of (formula - time) / time, since ranges are of
 * very different lengths. */
struct fit {
    uint32_t rank;
    double begin_s, frame_s[CLUSTER_STEPS];
};

static double predicted_s(const struct fit *fit, const struct times_range *range)
{
    return fit->begin_s + range->frames * fit->frame_s[range->step];
}

/* The seconds of a frame in a step that fit best with this beginning; 0 = no range of it. */
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
    return under > 0 ? over / under : 0;
}

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

/* The sum of squares is a parabola of begin_s once the frames' seconds follow it: three points give its least. */
static struct fit fit_rank(const struct times *times, uint32_t rank)
{
    struct fit fit = {.rank = rank};
    double sums[3], shortest = HUGE_VAL;
    size_t count = 0;
    for (size_t i = 0; i < times->count; i++)
        if (times->ranges[i].rank == rank)
            shortest = fmin(shortest, times->ranges[i].seconds);
    for (int i = 0; i < 4; i++) {
        if (i == 3) {
            const double bend = sums[0] - 2 * sums[1] + sums[2], slope = (sums[2] - sums[0]) / 2;
            fit.begin_s = bend > 0 ? shortest / 2 * (1 - slope / bend) : 0;
            fit.begin_s = fmin(fmax(fit.begin_s, 0), shortest);
        } else {
            fit.begin_s = shortest / 2 * i;
        }
        for (int step = 0; step < CLUSTER_STEPS; step++)
            fit.frame_s[step] = fmax(0,
                                     fit_frame(times, rank, (enum cluster_step)step, fit.begin_s));
        if (i < 3)
            sums[i] = residual(times, &fit, &count);
    }
    return fit;
}

bool times_fit(const struct times *times, const char *path, struct cluster *out, char *why,
               size_t why_bytes)
{
    const size_t length = strlen(path), most = 34;
    const char *tail = length > most ? path + length - most : path;
    double sum = out->spread * out->spread * (double)out->kind_count;
    for (uint32_t rank = 0; rank < times->ranks; rank++) {
        const struct fit fit = fit_rank(times, rank);
        size_t count = 0;
        const double squares = residual(times, &fit, &count);
        const bool analysed = times->step_s[CLUSTER_ANALYSE] > 0;
        if (out->kind_count == CLUSTER_KINDS_MAX || !(fit.frame_s[CLUSTER_MAP] > 0) ||
            (analysed && !(fit.frame_s[CLUSTER_ANALYSE] > 0))) {
            snprintf(why, why_bytes, "%s: rank %u %s", path, rank,
                     out->kind_count == CLUSTER_KINDS_MAX
                         ? "is one too many"
                         : "has done nothing that tells its speed");
            return false;
        }
        struct cluster_kind *kind = &out->kinds[out->kind_count++];
        *kind = (struct cluster_kind){.count = 1, .begin_s = fit.begin_s};
        snprintf(kind->name, sizeof kind->name, "%s, rank %u", tail, rank);
        for (int step = 0; step < CLUSTER_STEPS; step++)
            kind->fps[step] = fit.frame_s[step] > 0 ? 1 / fit.frame_s[step] : 0;
        sum += count ? squares / (double)count : 0;
    }
    out->spread = out->kind_count ? sqrt(sum / out->kind_count) : 0;
    out->frames = times->frames;
    out->begin_s = fmax(out->begin_s, times->begin_s);
    if (times->steer_s > 0)
        out->steer_fps = fmax(1, (double)times->frames / times->steer_s);
    if (times->join_s > 0)
        out->join_fps = fmax(1e-3, (double)times->frames / times->join_s);
    return true;
}
