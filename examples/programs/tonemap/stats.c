/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"
#include "judge_measure.h"
#include "report_data.h"
#include "report_json.h"

static void write_devices(struct json *json, const struct report_about *about)
{
    json_member_array(json, "devices", false);
    for (uint32_t d = 0; d < about->device_count; d++) {
        const struct report_device *device = &about->devices[d];
        const char *state = device->state;
        if (!state)
            state = cox_device_state_name(COX_DEVICE_ACTIVE);

        json_open_object(json, true);
        json_member_string(json, "name", device->name);
        json_member_string(json, "type", device->type);
        json_member_string(json, "mode", device->mode);
        json_member_string(json, "state", state);
        json_member_unsigned(json, "lost", device->lost);
        json_member_unsigned(json, "returned", device->returned);
        json_close_object(json);
    }
    json_close_array(json);
}

static void write_bands(struct json *json, const struct report_frame *frame,
                        const struct cox_band_report *bands)
{
    const bool several_passes = frame->band_count && bands[frame->band_count - 1].pass;

    json_member_array(json, "bands", true);
    for (uint32_t b = 0; b < frame->band_count; b++) {
        json_open_object(json, true);
        if (several_passes)
            json_member_unsigned(json, "pass", bands[b].pass);
        json_member_unsigned(json, "device", bands[b].device);
        put_band_rows(json, &bands[b]);
        put_band_end(json, &bands[b]);
        json_close_object(json);
    }
    json_close_array(json);
}

static void write_scene(struct json *json, const struct report_scene *scene)
{
    json_member_object(json, "scene", true);
    json_member_number(json, "peak_nits", (double)scene->peak_nits);
    json_member_number(json, "average_nits", (double)scene->average_nits);
    json_member_bool(json, "cut", scene->cut);

    json_member_number(json, "curve_peak_nits", (double)scene->curve_peak_nits);
    json_member_number(json, "curve_gain", (double)scene->curve_gain);
    json_close_object(json);
}

static void write_frames(struct json *json, const struct report *report,
                         const struct report_film *film)
{
    json_member_array(json, "frames", false);
    for (uint64_t n = 0; n < report->delivered; n++) {
        const struct report_frame *frame = &report->frames[report->delivered_at[n]];
        json_open_object(json, true);
        json_member_unsigned(json, "index", frame->index);
        json_member_us(json, "wall_us", frame->end_ns - frame->start_ns);
        json_member_us(json, "latency_us", frame->delivered_ns - frame->submit_ns);
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
    json_member_array(json, "shadows", false);
    for (size_t i = 0; i < report->frame_count; i++) {
        const struct report_frame *frame = &report->frames[i];
        const struct cox_band_report *band = report->bands + frame->first_band;
        if (!frame->shadow || frame->status != COX_OK || frame->band_count == 0)
            continue;

        json_open_object(json, true);
        json_member_unsigned(json, "index", frame->index);
        json_member_unsigned(json, "device", band->device);
        put_band_rows(json, band);
        json_close_object(json);
    }
    json_close_array(json);
}

static void write_summary(struct json *json, const struct report *report,
                          const struct report_summary *summary)
{
    json_member_object(json, "summary", true);
    json_member_unsigned(json, "frames", summary->frames);
    json_member_number(json, "fps", summary->fps);

    json_member_us(json, "wall_us_p50", summary->wall_p50_ns);
    json_member_us(json, "wall_us_p99", summary->wall_p99_ns);
    json_member_us(json, "latency_us_p50", summary->latency_p50_ns);
    json_member_us(json, "latency_us_p99", summary->latency_p99_ns);

    json_member_unsigned(json, "late_frames", report->late);
    json_member_us(json, "worst_late_us", report->worst_late_ns);
    json_member_number(json, "efficiency", summary->efficiency);

    json_member_unsigned(json, "timeout_bands", summary->timeout_bands);
    json_member_unsigned(json, "wrong_bands", summary->wrong_bands);
    json_member_unsigned(json, "failed_bands", summary->failed_bands);
    json_member_unsigned(json, "bands_again", summary->bands_again);
    json_close_object(json);
}

static void write_judge(struct json *json, const struct judge_figures *figures)
{
    static const char *const sides[] = {[JUDGE_OUTPUT] = "output", [JUDGE_REFERENCE] = "reference"};
    json_member_object(json, "judge", false);
    json_member_unsigned(json, "frames", figures->frames);

    json_member_object(json, "de_itp", true);
    json_member_number(json, "mean", figures->mean);
    json_member_number(json, "p50", figures->p50);
    json_member_number(json, "p90", figures->p90);
    json_member_number(json, "p99", figures->p99);
    json_member_number(json, "max", figures->most);
    json_close_object(json);

    json_member_number(json, "flicker", figures->flicker);
    for (int s = 0; s < JUDGE_SIDES; s++) {
        json_member_object(json, sides[s], true);
        json_member_number(json, "band_edges", figures->of[s].band_edges);
        json_member_number(json, "clipped_white", figures->of[s].white);
        json_member_number(json, "clipped_black", figures->of[s].black);
        json_close_object(json);
    }
    json_close_object(json);
}

static void write_film(struct json *json, const struct report_film *film,
                       const struct judge_figures *judged)
{
    double fps = 0;
    if (film->total_ns > film->start_ns)
        fps = (double)film->written * 1e9 / (double)(film->total_ns - film->start_ns);

    json_member_object(json, "film", false);
    json_member_unsigned(json, "frames_read", film->read);
    json_member_unsigned(json, "frames_written", film->written);
    json_member_us(json, "start_us", film->start_ns);
    json_member_us(json, "total_us", film->total_ns);
    json_member_number(json, "fps", fps);

    json_member_object(json, "waited_us", true);
    json_member_us(json, "input", film->input_ns);
    json_member_us(json, "devices", film->devices_ns);
    json_member_us(json, "output", film->output_ns);
    json_close_object(json);

    json_key(json, "bound");
    if (film->bound)
        json_string(json, film->bound);
    else
        json_null(json);
    if (film->scenes)
        json_member_unsigned(json, "cuts", film->cuts);
    if (judged)
        write_judge(json, judged);
    json_close_object(json);
}

void stats_write(struct report *report, const struct report_about *about, FILE *stream)
{
    struct report_summary summary;
    struct json json;
    report_summarise(report, about->single_device_ns, about->device_count, &summary);
    json_begin(&json, stream);
    json_open_object(&json, false);
    json_member_string(&json, "arithmetic", about->arithmetic);
    write_devices(&json, about);
    json_member_string(&json, "policy", about->policy);
    json_member_unsigned(&json, "granule", about->row_alignment);

    pthread_mutex_lock(&report->lock);
    write_frames(&json, report, about->film);
    write_shadows(&json, report);
    pthread_mutex_unlock(&report->lock);

    write_summary(&json, report, &summary);
    if (about->film)
        write_film(&json, about->film, about->judged);
    else if (about->judged)
        write_judge(&json, about->judged);
    json_close_object(&json);
    json_end(&json);
}
