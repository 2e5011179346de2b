/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"
#include "report_data.h"
#include "report_json.h"

#include <inttypes.h>
#include <stdlib.h>

/* Thread numbers of the tracks. */
enum { TRACK_SCHEDULER = 1, TRACK_DEVICES = 2 };

/* The members that every event has. The object stays open for more. */
static void begin_event(struct json *json, const char *phase, const char *name,
                        const char *category, uint32_t track, uint64_t ts_ns)
{
    json_open_object(json, true);
    json_member_string(json, "ph", phase);
    json_member_string(json, "name", name);
    json_member_string(json, "cat", category);

    json_member_unsigned(json, "pid", 1);
    json_member_unsigned(json, "tid", track);
    json_member_us(json, "ts", ts_ns);
}

/* End an event and its "args". */
static void end_event(struct json *json)
{
    json_close_object(json);
    json_close_object(json);
}

static void write_name(struct json *json, const char *what, uint32_t track, const char *name)
{
    begin_event(json, "M", what, "__metadata", track, 0);
    json_member_object(json, "args", true);
    json_member_string(json, "name", name);
    end_event(json);
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
        json_member_object(json, "args", true);
        json_member_unsigned(json, "sort_index", track);
        end_event(json);
    }
}

/* "warm-up", "shadow", or `usual`. */
static const char *kind_of(const struct report_frame *frame, const char *usual)
{
    if (frame->warmup)
        return "warm-up";

    return frame->shadow ? "shadow" : usual;
}

static void frame_name(const struct report_frame *frame, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s %" PRIu64, kind_of(frame, "frame"), frame->index);
}

/* The end of the scheduler's work on a frame: the last band of its split is submitted. A band may
 * wait for room on its device, so that the next frame begins before. */
static uint64_t split_end_ns(const struct report_frame *frame, const struct cox_band_report *bands,
                             uint64_t next_ns)
{
    uint64_t end_ns = frame->start_ns;
    for (uint32_t b = 0; b < frame->band_count; b++)
        if (!bands[b].attempt && !bands[b].on_demand && bands[b].submit_ns > end_ns)
            end_ns = bands[b].submit_ns;

    if (end_ns <= next_ns)
        return end_ns;
    return next_ns > frame->start_ns ? next_ns : frame->start_ns;
}

static void write_split(struct json *json, const struct report_frame *frame,
                        const struct cox_band_report *bands, uint64_t origin_ns, uint64_t next_ns)
{
    char name[64];
    snprintf(name, sizeof name, "split %s%" PRIu64, frame->warmup ? "warm-up " : "", frame->index);
    begin_event(json, "X", name, "split", TRACK_SCHEDULER, frame->start_ns - origin_ns);
    json_member_us(json, "dur", split_end_ns(frame, bands, next_ns) - frame->start_ns);

    json_member_object(json, "args", true);
    json_member_unsigned(json, "frame", frame->index);
    put_decision(json, frame);
    json_member_string(json, "status", cox_status_name(frame->status));

    json_member_array(json, "bands", true);
    for (uint32_t b = 0; b < frame->band_count; b++) {
        json_open_object(json, true);
        json_member_unsigned(json, "device", bands[b].device);
        json_member_unsigned(json, "first_row", bands[b].first_row);
        json_member_unsigned(json, "rows", bands[b].rows);
        json_close_object(json);
    }
    json_close_array(json);
    end_event(json);
}

static void write_flight_event(struct json *json, const char *phase, const char *name,
                               const char *id, uint64_t ts_ns)
{
    begin_event(json, phase, name, "frame", TRACK_SCHEDULER, ts_ns);
    json_member_string(json, "id", id);
    json_close_object(json);
}

/* A frame in flight, as an asynchronous event, because several overlap. */
static void write_flight(struct json *json, const struct report_frame *frame, uint64_t origin_ns,
                         uint64_t number)
{
    char name[64], id[32];
    frame_name(frame, name, sizeof name);
    snprintf(id, sizeof id, "%" PRIu64, number);

    write_flight_event(json, "b", name, id, frame->start_ns - origin_ns);
    write_flight_event(json, "e", name, id, frame->end_ns - origin_ns);
}

/* The rows of each device over time. */
static void write_rows(struct json *json, const struct report_about *about,
                       const struct report_frame *frame, const struct cox_band_report *bands,
                       uint64_t origin_ns)
{
    begin_event(json, "C", "rows", "split", TRACK_SCHEDULER, frame->start_ns - origin_ns);
    json_member_object(json, "args", true);
    for (uint32_t d = 0; d < about->device_count; d++) {
        char key[32];
        uint64_t rows = 0;
        for (uint32_t b = 0; b < frame->band_count; b++)
            if (bands[b].device == d && !bands[b].attempt)
                rows += bands[b].rows;

        snprintf(key, sizeof key, "device %u", d);
        json_member_unsigned(json, key, rows);
    }
    end_event(json);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* `*track_end_ns` is the end of the last band on the track. A queue does one band at a time, but
 * the clocks of the devices may be slightly off: bands are moved so that they do not overlap. */
static void write_band(struct json *json, const struct report_frame *frame,
                       const struct cox_band_report *band, uint64_t origin_ns,
                       uint64_t *track_end_ns)
{
    char name[64];
    uint64_t start_ns = later(*track_end_ns, origin_ns);
    if (band->end_ns > band->wall_ns)
        start_ns = later(start_ns, band->end_ns - band->wall_ns);
    *track_end_ns = later(start_ns, band->end_ns);

    frame_name(frame, name, sizeof name);
    begin_event(json, "X", name, kind_of(frame, "band"), TRACK_DEVICES + band->device,
                start_ns - origin_ns);
    json_member_us(json, "dur", *track_end_ns - start_ns);

    json_member_object(json, "args", true);
    json_member_unsigned(json, "frame", frame->index);
    put_band_rows(json, band);
    json_member_us(json, "copy_in_us", band->copy_in_ns);
    json_member_us(json, "copy_out_us", band->copy_out_ns);
    put_band_end(json, band);
    end_event(json);
}

/* A band and its frame. */
struct placed {
    const struct report_frame *frame;
    const struct cox_band_report *band;
};

static int compare_ends(const void *a, const void *b)
{
    const struct placed *left = a, *right = b;
    return report_compare_times(&left->band->end_ns, &right->band->end_ns);
}

/* The tracks of the devices, each in the order in which its queue worked. The report has the frames
 * in the order of their ends, and their bands in the order of rows. */
static void write_bands(struct json *json, const struct report *report,
                        const struct report_about *about, uint64_t origin_ns)
{
    uint64_t track_end_ns[COX_DEVICES_MAX] = {0};
    struct placed *placed = malloc((report->band_count + 1) * sizeof *placed);
    size_t count = 0;
    if (!placed)
        return;

    for (size_t i = 0; i < report->frame_count; i++) {
        const struct report_frame *frame = &report->frames[i];
        for (uint32_t b = 0; b < frame->band_count; b++)
            placed[count++] = (struct placed){frame, report->bands + frame->first_band + b};
    }
    qsort(placed, count, sizeof *placed, compare_ends);

    for (size_t i = 0; i < count; i++) {
        const uint32_t device = placed[i].band->device;
        if (device < about->device_count && device < COX_DEVICES_MAX)
            write_band(json, placed[i].frame, placed[i].band, origin_ns, &track_end_ns[device]);
    }
    free(placed);
}

static uint64_t first_start_ns(const struct report *report)
{
    uint64_t first_ns = UINT64_MAX;
    if (!report->frame_count)
        return 0;

    for (size_t i = 0; i < report->frame_count; i++)
        if (report->frames[i].start_ns < first_ns)
            first_ns = report->frames[i].start_ns;
    return first_ns;
}

/* The start of the next frame that was split after frame `i`. */
static uint64_t next_start_ns(const struct report *report, size_t i)
{
    while (++i < report->frame_count)
        if (!report->frames[i].shadow)
            return report->frames[i].start_ns;

    return UINT64_MAX;
}

static void write_frames(struct json *json, const struct report *report,
                         const struct report_about *about, uint64_t origin_ns)
{
    for (size_t i = 0; i < report->frame_count; i++) {
        const struct report_frame *frame = &report->frames[i];
        const struct cox_band_report *bands = report->bands + frame->first_band;
        if (frame->shadow) /* one band, which was not split */
            continue;

        write_split(json, frame, bands, origin_ns, next_start_ns(report, i));
        write_flight(json, frame, origin_ns, i);
        if (!frame->warmup)
            write_rows(json, about, frame, bands, origin_ns);
    }
}

void trace_write(struct report *report, const struct report_about *about, FILE *stream)
{
    struct json json;
    json_begin(&json, stream);
    json_open_object(&json, false);
    json_member_string(&json, "displayTimeUnit", "ms");
    json_member_array(&json, "traceEvents", false);
    write_tracks(&json, about);

    pthread_mutex_lock(&report->lock);
    const uint64_t origin_ns = first_start_ns(report);
    write_frames(&json, report, about, origin_ns);
    write_bands(&json, report, about, origin_ns);
    pthread_mutex_unlock(&report->lock);

    json_close_array(&json);
    json_close_object(&json);
    json_end(&json);
}
