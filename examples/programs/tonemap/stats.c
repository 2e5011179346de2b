/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"
#include "report_data.h"
#include "report_json.h"

static void write_devices(struct json *json, const struct report_about *about)
{
    put_array(json, "devices", false);
    for (uint32_t d = 0; d < about->device_count; d++) {
        const struct report_device *device = &about->devices[d];
        const char *state = device->state;
        if (!state)
            state = cox_device_state_name(COX_DEVICE_ACTIVE);

        json_open_object(json, true);
        put_text(json, "name", device->name);
        put_text(json, "type", device->type);
        put_text(json, "mode", device->mode);
        put_text(json, "state", state);
        put_number(json, "lost", device->lost);
        put_number(json, "returned", device->returned);
        json_close_object(json);
    }
    json_close_array(json);
}

static void write_bands(struct json *json, const struct report_frame *frame,
                        const struct cox_band_report *bands)
{
    bool several_passes = false;
    for (uint32_t b = 0; b < frame->band_count; b++)
        several_passes = several_passes || report_begins_pass(bands, b);

    put_array(json, "bands", true);
    for (uint32_t b = 0, pass = 0; b < frame->band_count; b++) {
        pass += report_begins_pass(bands, b);
        json_open_object(json, true);
        if (several_passes)
            put_number(json, "pass", pass);
        put_number(json, "device", bands[b].device);
        put_band_rows(json, &bands[b]);
        put_band_end(json, &bands[b]);
        json_close_object(json);
    }
    json_close_array(json);
}

static void write_scene(struct json *json, const struct report_scene *scene)
{
    put_object(json, "scene", true);
    put_real(json, "peak_nits", (double)scene->peak_nits);
    put_real(json, "average_nits", (double)scene->average_nits);
    put_bool(json, "cut", scene->cut);

    put_real(json, "curve_peak_nits", (double)scene->curve_peak_nits);
    put_real(json, "curve_gain", (double)scene->curve_gain);
    json_close_object(json);
}

static void write_frames(struct json *json, const struct report *report,
                         const struct report_film *film)
{
    put_array(json, "frames", false);
    for (uint64_t n = 0; n < report->delivered; n++) {
        const struct report_frame *frame = &report->frames[report->delivered_at[n]];
        json_open_object(json, true);
        put_number(json, "index", frame->index);
        put_us(json, "wall_us", frame->end_ns - frame->start_ns);
        put_us(json, "latency_us", frame->delivered_ns - frame->submit_ns);
        put_known_us(json, "deadline_us", frame->deadline_ns);

        put_decision(json, frame);
        write_bands(json, frame, report->bands + frame->first_band);
        if (film && frame->index < film->scene_count)
            write_scene(json, &film->scenes[frame->index]);
        json_close_object(json);
    }
    json_close_array(json);
}

/* Bands that devices did besides those of the frames. Failed ones are left out. */
static void write_shadows(struct json *json, const struct report *report)
{
    put_array(json, "shadows", false);
    for (size_t i = 0; i < report->frame_count; i++) {
        const struct report_frame *frame = &report->frames[i];
        const struct cox_band_report *band = report->bands + frame->first_band;
        if (!frame->shadow || frame->status != COX_OK || frame->band_count == 0)
            continue;

        json_open_object(json, true);
        put_number(json, "index", frame->index);
        put_number(json, "device", band->device);
        put_band_rows(json, band);
        json_close_object(json);
    }
    json_close_array(json);
}

static void write_summary(struct json *json, const struct report *report,
                          const struct report_summary *summary)
{
    put_object(json, "summary", true);
    put_number(json, "frames", summary->frames);
    put_real(json, "fps", summary->fps);

    put_us(json, "wall_us_p50", summary->wall_p50_ns);
    put_us(json, "wall_us_p99", summary->wall_p99_ns);
    put_us(json, "latency_us_p50", summary->latency_p50_ns);
    put_us(json, "latency_us_p99", summary->latency_p99_ns);

    put_number(json, "late_frames", report->late);
    put_us(json, "worst_late_us", report->worst_late_ns);
    put_real(json, "efficiency", summary->efficiency);

    put_number(json, "timeout_bands", summary->timeout_bands);
    put_number(json, "wrong_bands", summary->wrong_bands);
    put_number(json, "failed_bands", summary->failed_bands);
    put_number(json, "bands_again", summary->bands_again);
    json_close_object(json);
}

static void write_film(struct json *json, const struct report_film *film)
{
    double fps = 0;
    if (film->total_ns > film->start_ns)
        fps = (double)film->written * 1e9 / (double)(film->total_ns - film->start_ns);

    put_object(json, "film", false);
    put_number(json, "frames_read", film->read);
    put_number(json, "frames_written", film->written);
    put_us(json, "start_us", film->start_ns);
    put_us(json, "total_us", film->total_ns);
    put_real(json, "fps", fps);

    put_object(json, "waited_us", true);
    put_us(json, "input", film->input_ns);
    put_us(json, "devices", film->devices_ns);
    put_us(json, "output", film->output_ns);
    json_close_object(json);

    json_key(json, "bound");
    if (film->bound)
        json_string(json, film->bound);
    else
        json_null(json);
    if (film->scenes)
        put_number(json, "cuts", film->cuts);
    json_close_object(json);
}

void stats_write(struct report *report, const struct report_about *about, FILE *stream)
{
    struct report_summary summary;
    struct json json;
    report_summarise(report, about->solo_ns, about->device_count, &summary);
    json_begin(&json, stream);
    json_open_object(&json, false);
    put_text(&json, "arithmetic", about->arithmetic);
    write_devices(&json, about);
    put_text(&json, "policy", about->policy);
    put_number(&json, "granule", about->granule);

    pthread_mutex_lock(&report->lock);
    write_frames(&json, report, about->film);
    write_shadows(&json, report);
    pthread_mutex_unlock(&report->lock);

    write_summary(&json, report, &summary);
    if (about->film)
        write_film(&json, about->film);
    json_close_object(&json);
    json_end(&json);
}
