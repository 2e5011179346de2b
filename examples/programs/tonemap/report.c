/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"
#include "report_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct report *report_create(uint32_t device_count, uint64_t frames)
{
    struct report *report = calloc(1, sizeof *report);
    if (!report)
        return NULL;
    if (frames > 65536)
        frames = 65536;

    report->frame_capacity = (size_t)frames + 4 * (size_t)device_count + 16;
    report->band_capacity = report->frame_capacity;
    if (device_count)
        report->band_capacity *= device_count;
    report->frames = malloc(report->frame_capacity * sizeof *report->frames);
    report->delivered_at = malloc(report->frame_capacity * sizeof *report->delivered_at);
    report->bands = malloc(report->band_capacity * sizeof *report->bands);
    if (report->frames && report->delivered_at && report->bands &&
        !pthread_mutex_init(&report->lock, NULL))
        return report;

    free(report->frames);
    free(report->delivered_at);
    free(report->bands);
    free(report);
    return NULL;
}

void report_keep_newest(struct report *report)
{
    pthread_mutex_lock(&report->lock);
    report->newest_only = true;
    report->frame_count = report->band_count = 0;
    pthread_mutex_unlock(&report->lock);
}

void report_destroy(struct report **to_destroy)
{
    struct report *report = *to_destroy;
    if (!report)
        return;

    pthread_mutex_destroy(&report->lock);
    free(report->frames);
    free(report->delivered_at);
    free(report->bands);
    free(report);
    *to_destroy = NULL;
}

/* Make room for one more frame with `bands` bands. */
static bool grow(struct report *report, uint32_t bands)
{
    if (report->frame_count == report->frame_capacity) {
        const size_t capacity = report->frame_capacity * 2 + 16;
        struct report_frame *frames = realloc(report->frames, capacity * sizeof *frames);
        if (!frames)
            return false;
        report->frames = frames;

        size_t *places = realloc(report->delivered_at, capacity * sizeof *places);
        if (!places)
            return false;
        report->delivered_at = places;
        report->frame_capacity = capacity;
    }

    if (report->band_capacity - report->band_count < bands) {
        const size_t capacity = report->band_capacity * 2 + bands;
        struct cox_band_report *more = realloc(report->bands, capacity * sizeof *more);
        if (!more)
            return false;
        report->bands = more;
        report->band_capacity = capacity;
    }
    return true;
}

/* Time after the deadline; 0 = in time, failed, or without a deadline. */
static uint64_t late_ns(const struct cox_frame_report *frame)
{
    const uint64_t latency_ns = frame->delivered_ns - frame->submit_ns;
    if (frame->status != COX_OK || !frame->deadline_ns || latency_ns <= frame->deadline_ns)
        return 0;

    return latency_ns - frame->deadline_ns;
}

/* Add a frame; the caller holds the lock. */
static void add_frame(struct report *report, const struct cox_frame_report *from)
{
    const bool delivered = !from->warmup && !from->shadow;
    const uint64_t by_ns = late_ns(from);
    if (report->newest_only && !delivered)
        return;
    if (report->newest_only)
        report->frame_count = report->band_count = 0;

    report->late += by_ns > 0;
    if (by_ns > report->worst_late_ns)
        report->worst_late_ns = by_ns;
    if (!grow(report, from->band_count)) {
        report->lost++;
        return;
    }

    report->frames[report->frame_count] = (struct report_frame){
        .index = from->index,
        .submit_ns = from->submit_ns,
        .start_ns = from->total.start_ns,
        .end_ns = from->total.end_ns,
        .delivered_ns = from->delivered_ns,
        .deadline_ns = from->deadline_ns,
        .predicted_ns = from->total.predicted_ns,
        .rejected_ns = from->total.rejected_ns,
        .status = from->status,
        .reason = from->total.reason,
        .warmup = from->warmup,
        .shadow = from->shadow,
        .pool_rows = from->total.pool_rows,
        .band_count = from->band_count,
        .first_band = report->band_count};
    if (from->band_count)
        memcpy(report->bands + report->band_count, from->bands,
               from->band_count * sizeof *from->bands);

    if (delivered) {
        report->delivered_at[report->newest_only ? 0 : report->delivered] = report->frame_count;
        report->delivered++;
    }
    report->band_count += from->band_count;
    report->frame_count++;
}

void report_on_frame(void *user, const struct cox_frame_report *frame)
{
    struct report *report = user;
    pthread_mutex_lock(&report->lock);
    add_frame(report, frame);
    pthread_mutex_unlock(&report->lock);
}

uint64_t report_frame_count(struct report *report)
{
    pthread_mutex_lock(&report->lock);
    const uint64_t count = report->delivered;
    pthread_mutex_unlock(&report->lock);

    return count;
}

uint64_t report_lost(struct report *report)
{
    pthread_mutex_lock(&report->lock);
    const uint64_t lost = report->lost;
    pthread_mutex_unlock(&report->lock);

    return lost;
}

void report_late(struct report *report, uint64_t *frames, uint64_t *worst_ns)
{
    pthread_mutex_lock(&report->lock);
    *frames = report->late;
    *worst_ns = report->worst_late_ns;
    pthread_mutex_unlock(&report->lock);
}

bool report_frame(struct report *report, uint64_t n, struct report_frame *frame,
                  struct cox_band_report *bands, uint32_t max_bands)
{
    pthread_mutex_lock(&report->lock);

    bool there = n < report->delivered;
    if (there && report->newest_only) {
        there = report->frame_count && n + 1 == report->delivered;
        n = 0;
    }
    if (there) {
        *frame = report->frames[report->delivered_at[n]];
        if (frame->band_count > max_bands)
            frame->band_count = max_bands;
        if (frame->band_count)
            memcpy(bands, report->bands + frame->first_band, frame->band_count * sizeof *bands);
    }

    pthread_mutex_unlock(&report->lock);
    return there;
}

int report_compare_times(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The smallest value that is not below `percent` % of the values (nearest rank). */
static uint64_t percentile(const uint64_t *sorted, size_t count, unsigned percent)
{
    const size_t rank = (count * percent + 99) / 100;
    return sorted[rank ? rank - 1 : 0];
}

/* 1 / (T * sum of 1/T_d), which is (T_best / T) / (T_best * sum of 1/T_d). For one device it is
 * 1. */
static double efficiency(uint64_t frame_ns, const uint64_t *single_device_ns, uint32_t device_count)
{
    double frames_per_ns = 0;
    if (device_count == 1)
        return 1;
    if (!frame_ns || !device_count)
        return NAN;

    for (uint32_t d = 0; d < device_count; d++) {
        if (!single_device_ns[d])
            return NAN;
        frames_per_ns += 1.0 / (double)single_device_ns[d];
    }
    return 1.0 / ((double)frame_ns * frames_per_ns);
}

static void count_bands(struct report_summary *summary, const struct report_frame *frame,
                        const struct cox_band_report *bands)
{
    for (uint32_t b = 0; b < frame->band_count; b++) {
        summary->timeout_bands += bands[b].status == COX_E_TIMEOUT;
        summary->wrong_bands += bands[b].status == COX_E_MISMATCH;
        summary->failed_bands += bands[b].status != COX_OK && bands[b].status != COX_E_TIMEOUT &&
                                 bands[b].status != COX_E_MISMATCH;
        summary->bands_again += bands[b].attempt > 0;
    }
}

/* Times of the successful frames. */
struct times {
    uint64_t *walls, *periods, *latencies;
    size_t count;
    uint64_t first_start_ns, last_end_ns;
};

static void add_times(struct times *times, const struct report_frame *frame)
{
    const size_t at = times->count++;
    uint64_t from_ns = frame->start_ns;
    if (!at)
        times->first_start_ns = frame->start_ns;
    /* With several frames in flight the wall time of a frame includes work of the frames before it.
     * Its period begins when it is the oldest frame in flight. */
    else if (times->last_end_ns > from_ns)
        from_ns = times->last_end_ns;

    times->walls[at] = frame->end_ns - frame->start_ns;
    times->periods[at] = 0;
    if (frame->end_ns > from_ns)
        times->periods[at] = frame->end_ns - from_ns;
    times->latencies[at] = frame->delivered_ns - frame->submit_ns;
    if (frame->end_ns > times->last_end_ns)
        times->last_end_ns = frame->end_ns;
}

static void summarise_times(struct report_summary *summary, const struct times *times,
                            const uint64_t *single_device_ns, uint32_t device_count)
{
    const size_t count = times->count;
    summary->frames = count;
    if (!count)
        return;

    qsort(times->walls, count, sizeof *times->walls, report_compare_times);
    qsort(times->periods, count, sizeof *times->periods, report_compare_times);
    qsort(times->latencies, count, sizeof *times->latencies, report_compare_times);

    summary->wall_p50_ns = percentile(times->walls, count, 50);
    summary->wall_p99_ns = percentile(times->walls, count, 99);
    summary->latency_p50_ns = percentile(times->latencies, count, 50);
    summary->latency_p99_ns = percentile(times->latencies, count, 99);
    summary->efficiency = efficiency(percentile(times->periods, count, 50), single_device_ns,
                                     device_count);
    if (times->last_end_ns > times->first_start_ns)
        summary->fps = (double)count * 1e9 / (double)(times->last_end_ns - times->first_start_ns);
}

void report_summarise(struct report *report, const uint64_t *single_device_ns,
                      uint32_t device_count, struct report_summary *summary)
{
    *summary = (struct report_summary){.efficiency = NAN};
    pthread_mutex_lock(&report->lock);

    uint64_t *memory = malloc((3 * report->delivered + 1) * sizeof *memory);
    struct times times = {memory, memory + report->delivered, memory + 2 * report->delivered, 0, 0,
                          0};
    for (uint64_t n = 0; memory && n < report->delivered; n++) {
        const struct report_frame *frame = &report->frames[report->delivered_at[n]];
        count_bands(summary, frame, report->bands + frame->first_band);
        if (frame->status == COX_OK)
            add_times(&times, frame);
    }
    summarise_times(summary, &times, single_device_ns, device_count);

    pthread_mutex_unlock(&report->lock);
    free(memory);
}

/* --- Bars --- */

char report_bar_mark(uint32_t device)
{
    static const char marks[] = "#=+o*%x:~^";
    if (device >= sizeof marks - 1)
        return '.';

    return marks[device];
}

bool report_begins_pass(const struct cox_band_report *bands, uint32_t b)
{
    return b && bands[b].pass != bands[b - 1].pass;
}

/* The bands of the last pass of a frame, which maps. */
static const struct cox_band_report *last_pass(const struct cox_band_report *bands, uint32_t *count)
{
    for (uint32_t b = *count; b-- > 1;) {
        if (report_begins_pass(bands, b)) {
            *count -= b;
            return bands + b;
        }
    }
    return bands;
}

void report_bar(const struct cox_band_report *bands, uint32_t count, uint32_t width, char *text)
{
    uint64_t rows = 0, before = 0;
    bands = last_pass(bands, &count);
    for (uint32_t b = 0; b < count; b++)
        if (!bands[b].attempt)
            rows += bands[b].rows;

    memset(text + 1, rows ? report_bar_mark(bands[0].device) : ' ', width);
    for (uint32_t b = 0; b < count && rows; b++) {
        if (bands[b].attempt)
            continue;
        const uint64_t from = (before * width + rows / 2) / rows;
        before += bands[b].rows;
        const uint64_t to = (before * width + rows / 2) / rows;
        for (uint64_t i = from; i < to; i++)
            text[1 + i] = report_bar_mark(bands[b].device);
    }

    text[0] = '[';
    text[1 + width] = ']';
    text[2 + width] = 0;
}
