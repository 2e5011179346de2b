/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"
#include "common/json.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct report {
    pthread_mutex_t lock; /* around everything below */
    uint32_t device_count;
    struct report_frame *frames;
    size_t frame_count, frame_capacity;
    struct cox_band_report *bands;
    size_t band_count, band_capacity;
    uint64_t delivered, lost;
    uint64_t late, worst_late_ns;
    size_t *delivered_at; /* place of the n-th delivered frame in `frames`; as large as `frames` */
    bool newest_only;     /* there is one frame at most, at place 0 */
};

struct report *report_create(uint32_t device_count, uint64_t frames)
{
    struct report *report = calloc(1, sizeof *report);
    if (!report)
        return NULL;
    size_t guess = frames < 65536 ? (size_t)frames : 65536;
    report->device_count = device_count;
    report->frame_capacity = guess + 4 * (size_t)device_count + 16;
    report->band_capacity = report->frame_capacity * (device_count ? device_count : 1);
    report->frames = malloc(report->frame_capacity * sizeof *report->frames);
    report->delivered_at = malloc(report->frame_capacity * sizeof *report->delivered_at);
    report->bands = malloc(report->band_capacity * sizeof *report->bands);
    if (!report->frames || !report->delivered_at || !report->bands ||
        pthread_mutex_init(&report->lock, NULL)) {
        free(report->frames);
        free(report->delivered_at);
        free(report->bands);
        free(report);
        return NULL;
    }
    return report;
}

void report_keep_newest(struct report *report)
{
    pthread_mutex_lock(&report->lock);
    report->newest_only = true;
    report->frame_count = report->band_count = 0;
    pthread_mutex_unlock(&report->lock);
}

void report_destroy(struct report **report)
{
    if (!*report)
        return;
    pthread_mutex_destroy(&(*report)->lock);
    free((*report)->frames);
    free((*report)->delivered_at);
    free((*report)->bands);
    free(*report);
    *report = NULL;
}

static bool grow(struct report *report, uint32_t bands)
{
    if (report->frame_count == report->frame_capacity) {
        size_t capacity = report->frame_capacity * 2 + 16;
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
        size_t capacity = report->band_capacity * 2 + bands;
        struct cox_band_report *more = realloc(report->bands, capacity * sizeof *more);
        if (!more)
            return false;
        report->bands = more;
        report->band_capacity = capacity;
    }
    return true;
}

static uint64_t late_ns(const struct cox_frame_report *frame)
{
    const uint64_t latency_ns = frame->delivered_ns - frame->submit_ns;
    const bool late = frame->status == COX_OK && frame->deadline_ns &&
                      latency_ns > frame->deadline_ns;
    return late ? latency_ns - frame->deadline_ns : 0;
}

void report_on_frame(void *user, const struct cox_frame_report *from)
{
    struct report *report = user;
    pthread_mutex_lock(&report->lock);
    if (report->newest_only) {
        if (from->warmup || from->shadow) {
            pthread_mutex_unlock(&report->lock);
            return;
        }
        report->frame_count = report->band_count = 0;
    }
    const uint64_t by_ns = late_ns(from);
    report->late += by_ns > 0;
    report->worst_late_ns = by_ns > report->worst_late_ns ? by_ns : report->worst_late_ns;
    if (!grow(report, from->band_count)) {
        report->lost++;
        pthread_mutex_unlock(&report->lock);
        return;
    }
    struct report_frame *frame = &report->frames[report->frame_count];
    *frame = (struct report_frame){.index = from->index,
                                   .submit_ns = from->submit_ns,
                                   .start_ns = from->start_ns,
                                   .end_ns = from->end_ns,
                                   .delivered_ns = from->delivered_ns,
                                   .deadline_ns = from->deadline_ns,
                                   .predicted_ns = from->predicted_ns,
                                   .alternative_ns = from->alternative_ns,
                                   .status = from->status,
                                   .reason = from->reason,
                                   .warmup = from->warmup,
                                   .shadow = from->shadow,
                                   .pool_rows = from->pool_rows,
                                   .band_count = from->band_count,
                                   .first_band = report->band_count};
    if (from->band_count)
        memcpy(report->bands + report->band_count, from->bands,
               from->band_count * sizeof *from->bands);
    report->band_count += from->band_count;
    if (!from->warmup && !from->shadow) {
        report->delivered_at[report->newest_only ? 0 : report->delivered] = report->frame_count;
        report->delivered++;
    }
    report->frame_count++;
    pthread_mutex_unlock(&report->lock);
}

uint64_t report_frame_count(struct report *report)
{
    pthread_mutex_lock(&report->lock);
    uint64_t count = report->delivered;
    pthread_mutex_unlock(&report->lock);
    return count;
}

uint64_t report_lost(struct report *report)
{
    pthread_mutex_lock(&report->lock);
    uint64_t lost = report->lost;
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
    bool there = n < report->delivered &&
                 (!report->newest_only || (report->frame_count && n + 1 == report->delivered));
    if (there) {
        *frame = report->frames[report->delivered_at[report->newest_only ? 0 : n]];
        if (frame->band_count > max_bands)
            frame->band_count = max_bands;
        if (frame->band_count)
            memcpy(bands, report->bands + frame->first_band, frame->band_count * sizeof *bands);
    }
    pthread_mutex_unlock(&report->lock);
    return there;
}

static int compare_times(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The least value that `percent` % of the values do not exceed (nearest rank). */
static uint64_t percentile(const uint64_t *sorted, size_t count, unsigned percent)
{
    size_t rank = (count * percent + 99) / 100;
    return sorted[rank ? rank - 1 : 0];
}

/* 1 / (T * sum of 1/T_d), which is (T_best / T) / (T_best * sum of 1/T_d). One device alone is what it is. */
static double efficiency(uint64_t frame_ns, const uint64_t *solo_ns, uint32_t device_count)
{
    double frames_per_ns = 0;
    if (device_count == 1)
        return 1;
    for (uint32_t d = 0; d < device_count; d++) {
        if (!solo_ns[d])
            return NAN;
        frames_per_ns += 1.0 / (double)solo_ns[d];
    }
    return frame_ns && device_count ? 1.0 / ((double)frame_ns * frames_per_ns) : NAN;
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

void report_summarise(struct report *report, const uint64_t *solo_ns, uint32_t device_count,
                      struct report_summary *summary)
{
    *summary = (struct report_summary){.efficiency = NAN};
    pthread_mutex_lock(&report->lock);
    uint64_t *walls = malloc((report->delivered + 1) * sizeof *walls);
    uint64_t *periods = malloc((report->delivered + 1) * sizeof *periods);
    uint64_t *latencies = malloc((report->delivered + 1) * sizeof *latencies);
    if (!walls || !periods || !latencies)
        goto done;
    size_t count = 0;
    uint64_t first_start = 0, last_end = 0;
    for (uint64_t n = 0; n < report->delivered; n++) {
        const struct report_frame *frame = &report->frames[report->delivered_at[n]];
        count_bands(summary, frame, report->bands + frame->first_band);
        if (frame->status != COX_OK)
            continue;
        /* With several frames in flight a frame's own wall time holds its predecessors' work too; its period is
         * the time from when it was the oldest one under way. */
        uint64_t from = frame->start_ns > last_end ? frame->start_ns : last_end;
        if (!count)
            first_start = from = frame->start_ns;
        walls[count] = frame->end_ns - frame->start_ns;
        periods[count] = frame->end_ns > from ? frame->end_ns - from : 0;
        latencies[count] = frame->delivered_ns - frame->submit_ns;
        if (frame->end_ns > last_end)
            last_end = frame->end_ns;
        count++;
    }
    summary->frames = count;
    if (count) {
        qsort(walls, count, sizeof *walls, compare_times);
        qsort(periods, count, sizeof *periods, compare_times);
        qsort(latencies, count, sizeof *latencies, compare_times);
        summary->wall_p50_ns = percentile(walls, count, 50);
        summary->wall_p99_ns = percentile(walls, count, 99);
        summary->latency_p50_ns = percentile(latencies, count, 50);
        summary->latency_p99_ns = percentile(latencies, count, 99);
        summary->efficiency = efficiency(percentile(periods, count, 50), solo_ns, device_count);
        if (last_end > first_start)
            summary->fps = (double)count * 1e9 / (double)(last_end - first_start);
    }
done:
    pthread_mutex_unlock(&report->lock);
    free(walls);
    free(periods);
    free(latencies);
}

/* --- Statistics --------------------------------------------------------------------------------------------------- */

/* What need not be: what a policy expected, a deadline. */
static void write_expected(struct json *json, const char *key, uint64_t ns)
{
    json_key(json, key);
    if (ns)
        json_us(json, ns);
    else
        json_null(json);
}

/* What statistics and trace both say of a band. */
static void write_band_rows(struct json *json, const struct cox_band_report *band)
{
    json_key(json, "first_row");
    json_unsigned(json, band->first_row);
    json_key(json, "rows");
    json_unsigned(json, band->rows);
    json_key(json, "wall_us");
    json_us(json, band->wall_ns);
    json_key(json, "queue_us");
    json_us(json, band->queue_ns);
    json_key(json, "kernel_us");
    json_us(json, band->kernel_ns);
    write_expected(json, "predicted_us", band->predicted_ns);
    json_key(json, "on_demand");
    json_bool(json, band->on_demand);
}

/* Whether a band's rows count, and whether they had been given to another device before. */
static void write_fate(struct json *json, const struct cox_band_report *band)
{
    json_key(json, "attempt");
    json_unsigned(json, band->attempt);
    json_key(json, "status");
    json_string(json, cox_status_name(band->status));
}

static void write_stats_bands(struct json *json, const struct report_frame *frame,
                              const struct cox_band_report *bands)
{
    json_key(json, "bands");
    json_open_array(json, true);
    bool passes = false; /* more than one */
    for (uint32_t b = 0; b < frame->band_count; b++)
        passes = passes || report_begins_pass(bands, b);
    for (uint32_t b = 0, pass = 0; b < frame->band_count; b++) {
        const struct cox_band_report *band = &bands[b];
        pass += report_begins_pass(bands, b);
        json_open_object(json, true);
        if (passes) {
            json_key(json, "pass");
            json_unsigned(json, pass);
        }
        json_key(json, "device");
        json_unsigned(json, band->device);
        write_band_rows(json, band);
        write_fate(json, band);
        json_close_object(json);
    }
    json_close_array(json);
}

/* Why a frame was split as it was; statistics and trace both say it. */
static void write_decision(struct json *json, const struct report_frame *frame)
{
    json_key(json, "reason");
    json_string(json, cox_reason_text(frame->reason));
    write_expected(json, "predicted_us", frame->predicted_ns);
    write_expected(json, "alternative_us", frame->alternative_ns);
    json_key(json, "pool_rows");
    json_unsigned(json, frame->pool_rows);
}

/* Bands that devices did once more beside a frame; those that failed are not worth a line. */
static void write_shadows(struct json *json, const struct report *report)
{
    json_key(json, "shadows");
    json_open_array(json, false);
    for (size_t i = 0; i < report->frame_count; i++) {
        const struct report_frame *frame = &report->frames[i];
        const struct cox_band_report *band = report->bands + frame->first_band;
        if (!frame->shadow || frame->status != COX_OK || frame->band_count == 0)
            continue;
        json_open_object(json, true);
        json_key(json, "index");
        json_unsigned(json, frame->index);
        json_key(json, "device");
        json_unsigned(json, band->device);
        write_band_rows(json, band);
        json_close_object(json);
    }
    json_close_array(json);
}

static void write_scene(struct json *json, const struct report_scene *scene)
{
    json_key(json, "scene");
    json_open_object(json, true);
    json_key(json, "peak_nits");
    json_number(json, (double)scene->peak_nits);
    json_key(json, "average_nits");
    json_number(json, (double)scene->average_nits);
    json_key(json, "cut");
    json_bool(json, scene->cut);
    json_key(json, "curve_peak_nits");
    json_number(json, (double)scene->curve_peak_nits);
    json_key(json, "curve_gain");
    json_number(json, (double)scene->curve_gain);
    json_close_object(json);
}

static void write_film(struct json *json, const struct report_film *film)
{
    uint64_t work_ns = film->total_ns > film->start_ns ? film->total_ns - film->start_ns : 0;
    json_key(json, "film");
    json_open_object(json, false);
    json_key(json, "frames_read");
    json_unsigned(json, film->read);
    json_key(json, "frames_written");
    json_unsigned(json, film->written);
    json_key(json, "start_us");
    json_us(json, film->start_ns);
    json_key(json, "total_us");
    json_us(json, film->total_ns);
    json_key(json, "fps");
    json_number(json, work_ns ? (double)film->written * 1e9 / (double)work_ns : 0);
    json_key(json, "waited_us");
    json_open_object(json, true);
    json_key(json, "input");
    json_us(json, film->input_ns);
    json_key(json, "devices");
    json_us(json, film->devices_ns);
    json_key(json, "output");
    json_us(json, film->output_ns);
    json_close_object(json);
    json_key(json, "bound");
    if (film->bound)
        json_string(json, film->bound);
    else
        json_null(json);
    if (film->scenes) {
        json_key(json, "cuts");
        json_unsigned(json, film->cuts);
    }
    json_close_object(json);
}

/* How a device did, at the end. */
static void write_state(struct json *json, const struct report_device *device)
{
    json_key(json, "state");
    json_string(json, device->state ? device->state : cox_device_state_name(COX_DEVICE_ACTIVE));
    json_key(json, "lost");
    json_unsigned(json, device->lost);
    json_key(json, "returned");
    json_unsigned(json, device->returned);
}

void report_write_stats(struct report *report, const struct report_about *about, FILE *stream)
{
    struct report_summary summary;
    report_summarise(report, about->solo_ns, about->device_count, &summary);
    struct json json;
    json_begin(&json, stream);
    json_open_object(&json, false);
    json_key(&json, "arithmetic");
    json_string(&json, about->arithmetic);
    json_key(&json, "devices");
    json_open_array(&json, false);
    for (uint32_t d = 0; d < about->device_count; d++) {
        json_open_object(&json, true);
        json_key(&json, "name");
        json_string(&json, about->devices[d].name);
        json_key(&json, "type");
        json_string(&json, about->devices[d].type);
        json_key(&json, "mode");
        json_string(&json, about->devices[d].mode);
        write_state(&json, &about->devices[d]);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_key(&json, "policy");
    json_string(&json, about->policy);
    json_key(&json, "granule");
    json_unsigned(&json, about->granule);
    json_key(&json, "frames");
    json_open_array(&json, false);
    pthread_mutex_lock(&report->lock);
    for (uint64_t n = 0; n < report->delivered; n++) {
        const struct report_frame *frame = &report->frames[report->delivered_at[n]];
        json_open_object(&json, true);
        json_key(&json, "index");
        json_unsigned(&json, frame->index);
        json_key(&json, "wall_us");
        json_us(&json, frame->end_ns - frame->start_ns);
        json_key(&json, "latency_us");
        json_us(&json, frame->delivered_ns - frame->submit_ns);
        write_expected(&json, "deadline_us", frame->deadline_ns);
        write_decision(&json, frame);
        write_stats_bands(&json, frame, report->bands + frame->first_band);
        if (about->film && frame->index < about->film->scene_count)
            write_scene(&json, &about->film->scenes[frame->index]);
        json_close_object(&json);
    }
    json_close_array(&json);
    write_shadows(&json, report);
    pthread_mutex_unlock(&report->lock);
    json_key(&json, "summary");
    json_open_object(&json, true);
    json_key(&json, "frames");
    json_unsigned(&json, summary.frames);
    json_key(&json, "fps");
    json_number(&json, summary.fps);
    json_key(&json, "wall_us_p50");
    json_us(&json, summary.wall_p50_ns);
    json_key(&json, "wall_us_p99");
    json_us(&json, summary.wall_p99_ns);
    json_key(&json, "latency_us_p50");
    json_us(&json, summary.latency_p50_ns);
    json_key(&json, "latency_us_p99");
    json_us(&json, summary.latency_p99_ns);
    json_key(&json, "late_frames");
    json_unsigned(&json, report->late);
    json_key(&json, "worst_late_us");
    json_us(&json, report->worst_late_ns);
    json_key(&json, "efficiency");
    json_number(&json, summary.efficiency);
    json_key(&json, "timeout_bands");
    json_unsigned(&json, summary.timeout_bands);
    json_key(&json, "wrong_bands");
    json_unsigned(&json, summary.wrong_bands);
    json_key(&json, "failed_bands");
    json_unsigned(&json, summary.failed_bands);
    json_key(&json, "bands_again");
    json_unsigned(&json, summary.bands_again);
    json_close_object(&json);
    if (about->film)
        write_film(&json, about->film);
    json_close_object(&json);
    json_end(&json);
}

/* --- Trace -------------------------------------------------------------------------------------------------------- */

/* Thread numbers of the tracks. */
enum { TRACK_SCHEDULER = 1, TRACK_DEVICES = 2 };

/* The head that every event has; the object stays open for more. */
static void begin_event(struct json *json, const char *phase, const char *name,
                        const char *category, uint32_t track, uint64_t ts_ns)
{
    json_open_object(json, true);
    json_key(json, "ph");
    json_string(json, phase);
    json_key(json, "name");
    json_string(json, name);
    json_key(json, "cat");
    json_string(json, category);
    json_key(json, "pid");
    json_unsigned(json, 1);
    json_key(json, "tid");
    json_unsigned(json, track);
    json_key(json, "ts");
    json_us(json, ts_ns);
}

static void write_name(struct json *json, const char *what, uint32_t track, const char *name)
{
    begin_event(json, "M", what, "__metadata", track, 0);
    json_key(json, "args");
    json_open_object(json, true);
    json_key(json, "name");
    json_string(json, name);
    json_close_object(json);
    json_close_object(json);
}

static void write_tracks(struct json *json, const struct report_about *about)
{
    write_name(json, "process_name", TRACK_SCHEDULER, about->program);
    write_name(json, "thread_name", TRACK_SCHEDULER, "scheduler");
    for (uint32_t d = 0; d < about->device_count; d++) {
        char name[256];
        snprintf(name, sizeof name, "queue %u: %.160s (%s, %s)", d, about->devices[d].name,
                 about->devices[d].type, about->devices[d].mode);
        write_name(json, "thread_name", TRACK_DEVICES + d, name);
    }
    for (uint32_t track = TRACK_SCHEDULER; track < TRACK_DEVICES + about->device_count; track++) {
        begin_event(json, "M", "thread_sort_index", "__metadata", track, 0);
        json_key(json, "args");
        json_open_object(json, true);
        json_key(json, "sort_index");
        json_unsigned(json, track);
        json_close_object(json);
        json_close_object(json);
    }
}

static void frame_name(const struct report_frame *frame, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s %llu",
             frame->warmup   ? "warm-up"
             : frame->shadow ? "shadow"
                             : "frame",
             (unsigned long long)frame->index);
}

/* The scheduler's own work: from taking the frame to beginning the last band of its split, or to the next frame: a band
 * may have to wait for room on its device. */
static void write_split(struct json *json, const struct report_frame *frame,
                        const struct cox_band_report *bands, uint64_t origin_ns, uint64_t next_ns)
{
    char name[64];
    uint64_t end_ns = frame->start_ns;
    for (uint32_t b = 0; b < frame->band_count; b++)
        if (!bands[b].attempt && !bands[b].on_demand && bands[b].submit_ns > end_ns)
            end_ns = bands[b].submit_ns;
    if (end_ns > next_ns)
        end_ns = next_ns > frame->start_ns ? next_ns : frame->start_ns;
    snprintf(name, sizeof name, "split %s%llu", frame->warmup ? "warm-up " : "",
             (unsigned long long)frame->index);
    begin_event(json, "X", name, "split", TRACK_SCHEDULER, frame->start_ns - origin_ns);
    json_key(json, "dur");
    json_us(json, end_ns - frame->start_ns);
    json_key(json, "args");
    json_open_object(json, true);
    json_key(json, "frame");
    json_unsigned(json, frame->index);
    write_decision(json, frame);
    json_key(json, "status");
    json_string(json, cox_status_name(frame->status));
    json_key(json, "bands");
    json_open_array(json, true);
    for (uint32_t b = 0; b < frame->band_count; b++) {
        json_open_object(json, true);
        json_key(json, "device");
        json_unsigned(json, bands[b].device);
        json_key(json, "first_row");
        json_unsigned(json, bands[b].first_row);
        json_key(json, "rows");
        json_unsigned(json, bands[b].rows);
        json_close_object(json);
    }
    json_close_array(json);
    json_close_object(json);
    json_close_object(json);
}

/* A frame under way, as an asynchronous event: several overlap. */
static void write_flight(struct json *json, const struct report_frame *frame, uint64_t origin_ns,
                         uint64_t id)
{
    char name[64], text[32];
    frame_name(frame, name, sizeof name);
    snprintf(text, sizeof text, "%llu", (unsigned long long)id);
    for (int end = 0; end < 2; end++) {
        begin_event(json, end ? "e" : "b", name, "frame", TRACK_SCHEDULER,
                    (end ? frame->end_ns : frame->start_ns) - origin_ns);
        json_key(json, "id");
        json_string(json, text);
        json_close_object(json);
    }
}

/* Rows of each device over time. */
static void write_rows(struct json *json, const struct report_about *about,
                       const struct report_frame *frame, const struct cox_band_report *bands,
                       uint64_t origin_ns)
{
    begin_event(json, "C", "rows", "split", TRACK_SCHEDULER, frame->start_ns - origin_ns);
    json_key(json, "args");
    json_open_object(json, true);
    for (uint32_t d = 0; d < about->device_count; d++) {
        char key[32];
        uint64_t rows = 0;
        for (uint32_t b = 0; b < frame->band_count; b++)
            if (bands[b].device == d && !bands[b].attempt)
                rows += bands[b].rows;
        snprintf(key, sizeof key, "device %u", d);
        json_key(json, key);
        json_unsigned(json, rows);
    }
    json_close_object(json);
    json_close_object(json);
}

static void write_band(struct json *json, const struct report_frame *frame,
                       const struct cox_band_report *band, uint64_t origin_ns,
                       uint64_t *track_end_ns)
{
    char name[64];
    uint64_t start_ns = band->end_ns > band->wall_ns ? band->end_ns - band->wall_ns : 0;
    if (start_ns <
        *track_end_ns) /* a queue does one band at a time; clocks read apart may say a little else */
        start_ns = *track_end_ns;
    if (start_ns < origin_ns)
        start_ns = origin_ns;
    uint64_t end_ns = band->end_ns > start_ns ? band->end_ns : start_ns;
    *track_end_ns = end_ns;
    frame_name(frame, name, sizeof name);
    begin_event(json, "X", name,
                frame->warmup   ? "warm-up"
                : frame->shadow ? "shadow"
                                : "band",
                TRACK_DEVICES + band->device, start_ns - origin_ns);
    json_key(json, "dur");
    json_us(json, end_ns - start_ns);
    json_key(json, "args");
    json_open_object(json, true);
    json_key(json, "frame");
    json_unsigned(json, frame->index);
    write_band_rows(json, band);
    json_key(json, "copy_in_us");
    json_us(json, band->copy_in_ns);
    json_key(json, "copy_out_us");
    json_us(json, band->copy_out_ns);
    write_fate(json, band);
    json_close_object(json);
    json_close_object(json);
}

/* A band and the frame that it is of. */
struct placed {
    const struct report_frame *frame;
    const struct cox_band_report *band;
};

static int compare_ends(const void *a, const void *b)
{
    const struct placed *left = a, *right = b;
    return compare_times(&left->band->end_ns, &right->band->end_ns);
}

/* The devices' tracks, each in the order in which its queue worked: frames are told when their last band is in, and
 * their bands in the order of rows. */
static void write_bands(struct json *json, const struct report *report,
                        const struct report_about *about, uint64_t origin_ns)
{
    uint64_t track_end_ns[COX_DEVICES_MAX] = {0};
    struct placed *placed = malloc((report->band_count + 1) * sizeof *placed);
    size_t count = 0;
    for (size_t i = 0; placed && i < report->frame_count; i++)
        for (uint32_t b = 0; b < report->frames[i].band_count; b++)
            placed[count++] = (struct placed){&report->frames[i],
                                              report->bands + report->frames[i].first_band + b};
    if (placed)
        qsort(placed, count, sizeof *placed, compare_ends);
    for (size_t i = 0; i < count; i++) {
        uint32_t device = placed[i].band->device;
        if (device < about->device_count && device < COX_DEVICES_MAX)
            write_band(json, placed[i].frame, placed[i].band, origin_ns, &track_end_ns[device]);
    }
    free(placed);
}

void report_write_trace(struct report *report, const struct report_about *about, FILE *stream)
{
    struct json json;
    json_begin(&json, stream);
    json_open_object(&json, false);
    json_key(&json, "displayTimeUnit");
    json_string(&json, "ms");
    json_key(&json, "traceEvents");
    json_open_array(&json, false);
    write_tracks(&json, about);
    pthread_mutex_lock(&report->lock);
    uint64_t origin_ns = report->frame_count ? UINT64_MAX : 0;
    for (size_t i = 0; i < report->frame_count; i++)
        if (report->frames[i].start_ns < origin_ns)
            origin_ns = report->frames[i].start_ns;
    for (size_t i = 0; i < report->frame_count; i++) {
        const struct report_frame *frame = &report->frames[i];
        const struct cox_band_report *bands = report->bands + frame->first_band;
        if (frame->shadow) /* decided with its frame */
            continue;
        uint64_t next_ns = UINT64_MAX;
        for (size_t n = i + 1; n < report->frame_count && next_ns == UINT64_MAX; n++)
            if (!report->frames[n].shadow)
                next_ns = report->frames[n].start_ns;
        write_split(&json, frame, bands, origin_ns, next_ns);
        write_flight(&json, frame, origin_ns, i);
        if (!frame->warmup)
            write_rows(&json, about, frame, bands, origin_ns);
    }
    write_bands(&json, report, about, origin_ns);
    pthread_mutex_unlock(&report->lock);
    json_close_array(&json);
    json_close_object(&json);
    json_end(&json);
}

/* --- For people --------------------------------------------------------------------------------------------------- */

char report_bar_mark(uint32_t device)
{
    static const char marks[] = "#=+o*%x:~^";
    return device < sizeof marks - 1 ? marks[device] : '.';
}

bool report_begins_pass(const struct cox_band_report *bands, uint32_t b)
{
    return b && !bands[b].first_row && !bands[b].attempt;
}

void report_bar(const struct cox_band_report *bands, uint32_t count, uint32_t width, char *text)
{
    uint64_t rows = 0, before = 0;
    for (uint32_t b = count; b-- > 1;) {
        if (report_begins_pass(bands, b)) {
            bands += b;
            count -= b;
            break;
        }
    }
    for (uint32_t b = 0; b < count; b++)
        rows += bands[b].attempt ? 0 : bands[b].rows;
    text[0] = '[';
    memset(text + 1, rows ? report_bar_mark(bands[0].device) : ' ', width);
    for (uint32_t b = 0; b < count && rows; b++) {
        if (bands[b].attempt)
            continue;
        uint64_t from = (before * width + rows / 2) / rows;
        before += bands[b].rows;
        uint64_t to = (before * width + rows / 2) / rows;
        for (uint64_t i = from; i < to; i++)
            text[1 + i] = report_bar_mark(bands[b].device);
    }
    text[1 + width] = ']';
    text[2 + width] = 0;
}
