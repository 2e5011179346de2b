/* A picture: it is read once and mapped --repeat times; the last result is written.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/now.h"
#include "common/plain_output.h"
#include "devices.h"
#include "files.h"
#include "interrupt.h"
#include "jobs.h"
#include "judge.h"
#include "media/half.h"
#include "media/identity.h"
#include "progress.h"
#include "messages.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FRAME_LINES_MAX = 12 };

/* SDR white of an HDR picture, in cd/m2 (ITU-R BT.2408). */
static const double white_nits = 203.0;

/* Frames in flight. `done` counts the frames that the session has completed, in order. */
struct flight {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t done;
    uint64_t failed_frame;
    cox_status status; /* of the first frame that failed */
};

struct job {
    const struct options *options;
    struct picture_input *input;
    struct picture_output *output; /* NULL = the picture is only judged */
    struct judge *judge;           /* NULL = no comparison */
    struct records records;
    const struct picture_format *format;
    struct devices devices;
    struct cox_tonemap_shape shape;
    bool as_frame; /* it is mapped as a frame of video, for colours that pictures cannot have */
    struct cox_video_shape frame_shape;
    struct cox_constants constants;
    double light_stops;  /* exposure of the picture as HDR */
    double light_peak;   /* its brightest light then, in multiples of SDR white */
    uint32_t slot_count; /* copies of the picture: one for each frame in flight */
    cox_buffer *in[COX_IN_FLIGHT_MAX];
    cox_buffer *out[COX_IN_FLIGHT_MAX];
    cox_session *session;
    struct cox_session_info info;
    struct report *report;
    struct flight flight;
    struct progress progress;
    uint64_t lines_printed;
};

static enum cox_pixel_out out_pixel(const struct options *options)
{
    return options->depth == 16 ? COX_PIXEL_RGBA16 : COX_PIXEL_RGBA8;
}

static bool begin_judge(struct job *job)
{
    const struct options *options = job->options;
    const bool hdr = options->hdr_nits > 0;
    const struct video_format target = {
        .width = job->format->width,
        .height = job->format->height,
        .pixel = {.layout = COX_VIDEO_RGBA, .depth = options->depth, .range = COX_RANGE_FULL},
        .colours = {.has_primaries = options->wide, .primaries = COX_PRIMARIES_BT2020}};
    return judge_begin(job->judge, &target, hdr ? COX_ENCODING_PQ : COX_ENCODING_SRGB,
                       options->hdr_nits);
}

/* Find errors of the files before any device works. */
static bool open_files(struct job *job)
{
    const struct options *options = job->options;
    struct error error;

    if (!picture_input_open(&job->input, options->input, options->alpha, options->layer, &error))
        return message_file_error(options->input, &error);
    job->format = picture_input_format(job->input);
    if (!files_differ(options) || !judge_open(&job->judge, options) || !begin_judge(job))
        return false;
    if (options->judge && !strcmp(options->output, "null:"))
        return records_open(&job->records, options);

    if (!picture_output_open(&job->output, options->output, job->format->width, job->format->height,
                             out_pixel(options), &error))
        return message_file_error(options->output, &error);
    if (options->hdr_nits > 0)
        picture_output_colours(job->output, PICTURE_PQ);
    else if (options->wide)
        picture_output_colours(job->output, PICTURE_WIDE);
    picture_output_aspect(job->output, job->format->aspect_width, job->format->aspect_height);
    return records_open(&job->records, options);
}

static size_t in_pixel_bytes(const struct job *job)
{
    return job->shape.in == COX_PIXEL_RGBA_HALF ? 8 : 16;
}

static size_t out_pixel_bytes(const struct job *job)
{
    return job->shape.out == COX_PIXEL_RGBA8 ? 4 : 8;
}

/* The kernels of video write BT.2020 and PQ. They read half floats. */
static void choose_frame_shape(struct job *job)
{
    const struct options *options = job->options;
    const struct cox_tonemap_shape *shape = &job->shape;
    job->frame_shape = (struct cox_video_shape){
        .width = shape->width,
        .height = shape->height,
        .in = {.layout = COX_VIDEO_RGBA, .depth = 16, .range = COX_RANGE_FULL},
        .out = {.layout = COX_VIDEO_RGBA, .depth = options->depth, .range = COX_RANGE_FULL},
        .in_pitch_bytes = {shape->in_pitch_bytes},
        .out_pitch_bytes = {shape->out_pitch_bytes},
        .transfer = COX_TRANSFER_LINEAR,
        .primaries = COX_PRIMARIES_BT709,
        .op = options->op,
        .desaturate_highlights = options->desaturate >= 0,
        .encoding = options->hdr_nits > 0 ? COX_ENCODING_PQ : COX_ENCODING_SRGB,
        .out_primaries = COX_OUT_BT2020};
}

/* Make the buffers. Frames in flight do not share memory, like the frames of a film. */
static bool make_buffers(struct job *job)
{
    const struct picture_format *format = job->format;
    job->shape = (struct cox_tonemap_shape){.width = format->width,
                                            .height = format->height,
                                            .in = job->as_frame ? COX_PIXEL_RGBA_HALF
                                                                : format->pixel,
                                            .out = out_pixel(job->options),
                                            .local = job->options->op == COX_OPERATOR_LOCAL};
    job->shape.in_pitch_bytes = cox_runtime_pitch_bytes(job->devices.runtime,
                                                        format->width * in_pixel_bytes(job));
    job->shape.out_pitch_bytes = cox_runtime_pitch_bytes(job->devices.runtime,
                                                         format->width * out_pixel_bytes(job));

    choose_frame_shape(job);

    job->slot_count = job->options->in_flight;
    if (job->slot_count > job->options->repeat)
        job->slot_count = (uint32_t)job->options->repeat;

    const size_t in_bytes = job->shape.in_pitch_bytes * format->height;
    const size_t out_bytes = job->shape.out_pitch_bytes * format->height;
    if (!devices_memory(job->options, format->file_bytes, format->width, format->height,
                        ((double)in_bytes + (double)out_bytes) * job->slot_count))
        return false;

    cox_status status = COX_OK;
    for (uint32_t i = 0; i < job->slot_count && status == COX_OK; i++) {
        status = cox_buffer_create(job->devices.runtime, in_bytes, &job->in[i]);
        if (status == COX_OK)
            status = cox_buffer_create(job->devices.runtime, out_bytes, &job->out[i]);
    }
    return status == COX_OK ||
           message_status_error("cannot allocate memory for the picture", status);
}

/* Read a picture of floats, and round it to half. */
static enum picture_read read_rounded(struct job *job, uint8_t *pixels, struct error *error)
{
    const size_t row_samples = (size_t)job->format->width * 4;
    const size_t pitch_bytes = row_samples * sizeof(float);
    float *exact = malloc(pitch_bytes * job->format->height);
    if (!exact) {
        error_set(error, "out of memory");
        return PICTURE_READ_ERROR;
    }

    const enum picture_read result = picture_input_read(job->input, exact, pitch_bytes, error);
    for (uint32_t y = 0; y < job->format->height && result == PICTURE_READ_FRAME; y++) {
        uint16_t *row = (uint16_t *)(void *)(pixels + y * job->shape.in_pitch_bytes);
        for (size_t i = 0; i < row_samples; i++)
            row[i] = half_from_float(exact[y * row_samples + i]);
    }
    free(exact);
    return result;
}

/* Read the picture once, and copy it. */
static bool load_picture(struct job *job)
{
    struct error error = {""};
    if (!make_buffers(job))
        return false;

    const size_t pitch_bytes = job->shape.in_pitch_bytes;
    void *pixels = cox_buffer_data(job->in[0]);
    const bool same = job->shape.in == job->format->pixel;
    const enum picture_read result = same ? picture_input_read(job->input, pixels, pitch_bytes,
                                                               &error)
                                          : read_rounded(job, pixels, &error);
    if (result != PICTURE_READ_FRAME)
        return message_file_error(job->options->input, &error);

    for (uint32_t i = 1; i < job->slot_count; i++)
        memcpy(cox_buffer_data(job->in[i]), pixels, pitch_bytes * job->format->height);
    return true;
}

/* The light of the picture as HDR. */
static void set_light(struct job *job, const struct cox_tonemap_settings *settings)
{
    job->light_stops = (double)settings->exposure_stops;
    job->light_peak = (double)settings->peak;
}

/* Find exposure and peak of the picture in a separate pass over all devices. */
static bool analyse(struct job *job, struct cox_tonemap_settings *settings)
{
    struct cox_session_params params = {.warmup = COX_WARMUP_NONE, .in_flight = 1};
    cox_pipeline *pipeline = NULL;
    cox_session *session = NULL;
    cox_buffer *histogram = NULL;
    struct cox_tonemap_analysis analysis;
    struct cox_tonemap_settings light = *settings;

    cox_status status = cox_tonemap_analysis(&job->shape, &pipeline);
    params.pipeline = pipeline;
    if (status == COX_OK)
        status = cox_session_create(job->devices.runtime, &params, &session);
    if (status == COX_OK)
        status = cox_buffer_create(job->devices.runtime, COX_TONEMAP_HISTOGRAM_BYTES, &histogram);

    if (status == COX_OK)
        status = cox_session_run(session, &(const struct cox_frame){
                                              .buffers = COX_BUFFERS(job->in[0], histogram)});

    if (status == COX_OK) {
        cox_tonemap_read_analysis(cox_buffer_data(histogram), &analysis);

        /* HDR keeps the light: its exposure makes up for no operator. */
        light.op = COX_OPERATOR_LINEAR;
        cox_tonemap_auto_exposure(&analysis, &light);
        set_light(job, &light);
        if (job->options->hdr_nits > 0)
            light.op = settings->op, *settings = light;
        else
            cox_tonemap_auto_exposure(&analysis, settings);
        say("exposure  %+.2f stops, peak %.0f cd/m2 (%.1f x white), measured: log-average %.4g, peak "
            "%.4g\n",
            (double)settings->exposure_stops, (double)settings->peak * white_nits,
            (double)settings->peak, (double)analysis.log_average, (double)analysis.peak);
    }

    cox_session_destroy(&session);
    cox_pipeline_destroy(&pipeline);
    cox_buffer_destroy(&histogram);
    return status == COX_OK || message_status_error("cannot analyse the picture", status);
}

/* The same settings for a frame of video, whose 1.0 is the light of the display's white. */
static cox_status prepare_frame(struct job *job, const struct cox_tonemap_settings *settings)
{
    const struct options *options = job->options;
    const double white = options->hdr_nits > 0 ? options->hdr_nits : white_nits;
    const double gain = exp2((double)settings->exposure_stops) * white_nits / white;
    const double peak_nits = (double)settings->peak * white_nits;
    const struct cox_video_settings frame = {.sdr_white_nits = (float)white,
                                             .peak_nits = (float)fmin(peak_nits, 1e6),
                                             .gain = (float)fmin(fmax(gain, 0x1p-32), 0x1p32),
                                             .desaturate = settings->desaturate,
                                             .detail = settings->detail};
    return cox_video_prepare(&job->frame_shape, &frame, &job->constants);
}

static bool choose_settings(struct job *job)
{
    const struct options *options = job->options;
    struct cox_tonemap_settings settings = {.op = options->op,
                                            .exposure_stops = (float)options->exposure_stops,
                                            .desaturate = options->desaturate,
                                            .detail = options->detail};

    if (options->peak_auto) {
        if (!analyse(job, &settings))
            return false;
    } else {
        settings.peak = (float)(options->peak_nits / white_nits);
        set_light(job, &settings);
        say("exposure  %+.2f stops, peak %.0f cd/m2 (%.1f x white)\n", options->exposure_stops,
            options->peak_nits, (double)settings.peak);
    }

    const cox_status status = job->as_frame
                                  ? prepare_frame(job, &settings)
                                  : cox_tonemap_prepare(&job->shape, &settings, &job->constants);
    return status == COX_OK || message_status_error("cannot prepare the operator", status);
}

/* A session on one device, or with `device` < 0 on all devices, as the options say. */
static cox_status create_session(struct job *job, int64_t device, cox_session **session)
{
    cox_pipeline *pipeline = NULL;
    struct cox_session_params params = {.in_flight = 1};
    char only[16];

    if (device >= 0) {
        snprintf(only, sizeof only, "#%u", (uint32_t)device);
        params.devices = only;
        params.warmup = COX_WARMUP_NONE;
    } else {
        devices_choose(job->options, &params);
        params.report = report_on_frame;
        params.report_user = job->report;
    }

    cox_status status = job->as_frame ? cox_video_mapping(&job->frame_shape, false, &pipeline)
                                      : cox_tonemap_mapping(&job->shape, &pipeline);
    params.pipeline = pipeline;
    if (status == COX_OK)
        status = cox_session_create(job->devices.runtime, &params, session);

    cox_pipeline_destroy(&pipeline);
    return status;
}

static bool start_session(struct job *job)
{
    job->report = report_create(job->devices.count, job->options->repeat);
    if (!job->report)
        return message_error("out of memory");

    const cox_status status = create_session(job, -1, &job->session);
    if (status != COX_OK)
        return message_status_error("cannot build the pipeline", status);
    cox_session_info(job->session, &job->info);
    return true;
}

/* Warm up with the constants of the frames, so that frame times have no compilation in them and
 * the relative speed of the devices is known. */
static bool warm_session(struct job *job)
{
    const cox_status status = cox_session_warm(job->session, &job->constants);
    if (status != COX_OK)
        return message_status_error("cannot build the pipeline", status);
    cox_session_info(job->session, &job->info);

    return true;
}

/* --- Frames --- */

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct flight *flight = user;
    pthread_mutex_lock(&flight->lock);

    if (status != COX_OK && flight->status == COX_OK) {
        flight->status = status;
        flight->failed_frame = frame;
    }
    flight->done++;

    pthread_cond_signal(&flight->changed);
    pthread_mutex_unlock(&flight->lock);
}

static void print_frame(struct job *job, uint64_t n)
{
    struct report_frame frame;
    struct cox_band_report bands[COX_BANDS_MAX];
    if (!report_frame(job->report, n, &frame, bands, COX_BANDS_MAX))
        return;

    progress_clear(&job->progress);
    devices_print_frame(&frame, bands);
}

/* Print the lines of frames: all of them with --verbose or if there are few. Otherwise the first
 * frames at once and the last two at the end. */
static void print_frames(struct job *job, uint64_t count, bool last)
{
    const uint64_t total = job->options->repeat;
    const bool all = job->options->verbose || total <= FRAME_LINES_MAX;
    uint64_t head = total, tail = 0;
    if (!all)
        head = FRAME_LINES_MAX - 2;
    if (count > 2)
        tail = count - 2;

    for (; say_wanted() && job->lines_printed < count; job->lines_printed++) {
        if (job->lines_printed == head && !all && last)
            say("...\n");
        if (job->lines_printed < head || (last && job->lines_printed >= tail))
            print_frame(job, job->lines_printed);
        else if (!last)
            break; /* kept for the end */
    }
}

/* Lines of frames, and until the end the live line. */
static void show(struct job *job, bool last)
{
    const uint64_t count = report_frame_count(job->report);
    struct report_frame frame;
    struct cox_band_report bands[COX_BANDS_MAX];
    char split[PROGRESS_SPLIT_WIDTH + 3] = "";
    print_frames(job, count, last);
    if (last || job->options->quiet)
        return;

    if (job->info.device_count > 1 && count &&
        report_frame(job->report, count - 1, &frame, bands, COX_BANDS_MAX))
        report_bar(bands, frame.band_count, PROGRESS_SPLIT_WIDTH, split);
    progress_update(&job->progress, count, split, now_ns());
}

/* The time of CLOCK_REALTIME in 50 ms. */
static struct timespec soon(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += 50000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }

    return time;
}

/* Wait until `done` frames are completed. Returns false if one failed or a signal came. */
static bool wait_for(struct job *job, uint64_t done)
{
    struct flight *flight = &job->flight;
    for (;;) {
        const struct timespec until = soon();
        pthread_mutex_lock(&flight->lock);
        if (flight->done < done && flight->status == COX_OK && !interrupted())
            pthread_cond_timedwait(&flight->changed, &flight->lock, &until);
        const bool reached = flight->done >= done;
        const bool stop = flight->status != COX_OK || interrupted();
        pthread_mutex_unlock(&flight->lock);

        show(job, false);
        if (reached || stop)
            return !stop;
    }
}

/* Submit all frames, each when its slot is free. */
static cox_status submit_frames(struct job *job)
{
    cox_status status = COX_OK;
    for (uint64_t i = 0; i < job->options->repeat && status == COX_OK; i++) {
        uint64_t done = 0;
        if (i >= job->slot_count)
            done = i - job->slot_count + 1;
        if (!wait_for(job, done))
            return COX_OK;

        const uint32_t slot = (uint32_t)(i % job->slot_count);
        const struct cox_frame frame = {.buffers = COX_BUFFERS(job->in[slot], job->out[slot]),
                                        .constants = &job->constants};
        status = cox_session_submit(job->session, &frame, on_done, &job->flight);
    }

    if (status == COX_OK)
        wait_for(job, job->options->repeat);
    return status;
}

static bool run_frames(struct job *job)
{
    struct flight *flight = &job->flight;
    progress_begin(&job->progress, plain_output_terminal(), job->options->repeat, now_ns());
    const cox_status status = submit_frames(job);
    cox_session_wait(job->session);
    show(job, true);
    progress_clear(&job->progress);

    if (status != COX_OK)
        return message_status_error("cannot submit a frame", status);
    if (flight->status != COX_OK) {
        char what[64];
        snprintf(what, sizeof what, "frame %" PRIu64 " failed", flight->failed_frame);
        return message_status_error(what, flight->status);
    }
    if (interrupted())
        return message_error("interrupted");

    messages_show_warnings();
    cox_session_info(job->session, &job->info);
    return true;
}

/* --- Results --- */

/* A hash of the pixels, without the padding of rows. */
static uint64_t hash_pixels(const struct job *job, const cox_buffer *buffer)
{
    const uint8_t *row = cox_buffer_data(buffer);
    uint64_t hash = HASH_START;
    for (uint32_t y = 0; y < job->shape.height; y++, row += job->shape.out_pitch_bytes)
        hash = hash_bytes(hash, row, job->shape.width * out_pixel_bytes(job));

    return hash;
}

/* Map the picture on one device alone, into `result`, and hash the pixels. */
static cox_status hash_alone(struct job *job, uint32_t device, cox_buffer *result, uint64_t *hash)
{
    const struct cox_frame frame = {.buffers = COX_BUFFERS(job->in[0], result),
                                    .constants = &job->constants};
    cox_session *session = NULL;
    cox_status status = create_session(job, device, &session);
    if (status == COX_OK) {
        memset(cox_buffer_data(result), 0, job->shape.out_pitch_bytes * job->shape.height);
        status = cox_session_run(session, &frame);
    }
    cox_session_destroy(&session);

    if (status == COX_OK)
        *hash = hash_pixels(job, result);
    return status;
}

/* Whether every device alone gives the pixels that all devices gave together. */
static bool verify_devices(struct job *job, uint64_t expected, cox_buffer *result)
{
    cox_status status = COX_OK;
    bool equal = true;
    say("verify    together        %016" PRIx64 "\n", expected);
    for (uint32_t i = 0; i < job->info.device_count && status == COX_OK && !interrupted(); i++) {
        const uint32_t device = job->info.devices[i].device;
        uint64_t hash;
        status = hash_alone(job, device, result, &hash);
        if (status != COX_OK) {
            message_status_error("cannot verify on a single device", status);
            continue;
        }
        equal = equal && hash == expected;
        say("verify    device %2u alone %016" PRIx64 "  %s\n", device, hash,
            hash == expected ? "equal" : "DIFFERENT");
    }

    if (interrupted())
        return message_error("interrupted");
    if (!equal)
        return message_error("verification failed: devices produced different pixels");
    return status == COX_OK;
}

/* The frames that are still in memory must be equal, and those of each device alone. */
static bool verify(struct job *job, uint64_t expected)
{
    const size_t bytes = job->shape.out_pitch_bytes * job->shape.height;
    cox_buffer *result = NULL;
    for (uint32_t i = 0; i + 1 < job->slot_count; i++)
        if (hash_pixels(job, job->out[i]) != hash_pixels(job, job->out[i + 1]))
            return message_error("verification failed: two frames of the same picture differ");

    const cox_status status = cox_buffer_create(job->devices.runtime, bytes, &result);
    if (status != COX_OK)
        return message_status_error("cannot allocate memory for --verify", status);

    const bool good = verify_devices(job, expected, result);
    cox_buffer_destroy(&result);
    return good;
}

static void print_summary(struct job *job, const uint64_t *single_device_ns)
{
    struct report_summary summary;
    report_summarise(job->report, single_device_ns, job->info.device_count, &summary);
    devices_print_warmup(&job->info);
    say("result    %" PRIu64 " frame%s, %.1f frames/s, %.2f ms (median), %.2f ms (99 %%)",
        summary.frames, plural(summary.frames), summary.fps, (double)summary.wall_p50_ns / 1e6,
        (double)summary.wall_p99_ns / 1e6);

    if (isnan(summary.efficiency))
        say(", efficiency unknown\n");
    else
        say(", efficiency %.3f\n", summary.efficiency);
    devices_print_late(job->options, job->report);
}

/* Write the output, if any. It gets its name when it is whole. */
static bool write_output(struct job *job, const cox_buffer *pixels,
                         const struct report_about *about)
{
    const struct options *options = job->options;
    struct error error;
    if (!job->output) {
        records_write(&job->records, job->report, about);
        return records_finish(&job->records, options);
    }

    picture_output_light(job->output,
                         &(const struct picture_light){.pixels = cox_buffer_data(job->in[0]),
                                                       .pitch_bytes = job->shape.in_pitch_bytes,
                                                       .pixel = job->shape.in,
                                                       .gain = (float)exp2(job->light_stops),
                                                       .peak = (float)job->light_peak},
                         options->quality);
    if (!picture_output_write(job->output, cox_buffer_data(pixels), job->shape.out_pitch_bytes,
                              &error))
        return message_file_error(options->output, &error);

    records_write(&job->records, job->report, about);
    if (interrupted())
        return message_error("interrupted");
    if (!picture_output_finish(&job->output, &error))
        return message_file_error(options->output, &error);

    return records_finish(&job->records, options);
}

static bool deliver(struct job *job)
{
    const struct options *options = job->options;
    const cox_buffer *last = job->out[(options->repeat - 1) % job->slot_count];
    const bool print_hash = options->hash || options->verbose;
    struct devices_text text;
    struct report_about about;
    struct judge_figures figures;
    const void *const planes[COX_VIDEO_PLANES_MAX] = {cox_buffer_data(last)};
    const size_t pitch_bytes[COX_VIDEO_PLANES_MAX] = {job->shape.out_pitch_bytes};
    uint64_t hash = 0;
    devices_describe(&job->devices, &job->info, &text, &about);
    print_summary(job, text.single_device_ns);

    if (print_hash || options->verify)
        hash = hash_pixels(job, last);
    if (options->verify && !verify(job, hash))
        return false;
    if (print_hash)
        say("hash      %016" PRIx64 "  %s\n", hash, devices_arithmetic(&job->devices));

    judge_take(job->judge, 0, planes, pitch_bytes);
    if (judge_figures(job->judge, &figures))
        about.judged = &figures;
    judge_print(job->judge);
    const bool writes = job->output; /* which is NULL after it is written */
    if (!write_output(job, last, &about))
        return false;
    if (writes)
        say("written   %s (%u x %u, %d bit)\n", options->output, job->format->width,
            job->format->height, (int)options->depth);
    devices_print_trouble(&job->devices, &job->info);
    return judge_finish(job->judge, true);
}

static bool run(struct job *job)
{
    if (!open_files(job) || !devices_start(&job->devices, job->options) || !load_picture(job) ||
        !start_session(job))
        return false;

    say("picture   %s: %u x %u, %s\n", job->options->input, job->format->width, job->format->height,
        job->format->text);
    devices_print(&job->devices, &job->info, job->options->verbose);
    if (!choose_settings(job) || !warm_session(job))
        return false;
    if (interrupted())
        return message_error("interrupted");

    say("policy    %s, granule %u row%s, %u frame%s in flight\n", job->info.policy,
        job->info.row_alignment, plural(job->info.row_alignment), job->slot_count,
        plural(job->slot_count));
    return run_frames(job) && deliver(job);
}

static void clean_up(struct job *job)
{
    cox_session_destroy(&job->session);
    for (uint32_t i = 0; i < COX_IN_FLIGHT_MAX; i++) {
        cox_buffer_destroy(&job->in[i]);
        cox_buffer_destroy(&job->out[i]);
    }

    devices_stop(&job->devices);
    report_destroy(&job->report);
    picture_output_abandon(&job->output);
    records_abandon(&job->records);
    picture_input_close(&job->input);
    judge_close(&job->judge);

    pthread_cond_destroy(&job->flight.changed);
    pthread_mutex_destroy(&job->flight.lock);
}

bool picture_job(const struct options *options)
{
    struct job job = {
        .options = options,
        .as_frame = options->wide,
        .flight = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};

    interrupt_catch();
    const bool good = run(&job);
    clean_up(&job);
    return good;
}
