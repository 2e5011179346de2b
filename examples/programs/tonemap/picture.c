/* A picture: read once, done as often as asked for, the last result written.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tonemap/progress.h"
#include "devices.h"
#include "files.h"
#include "jobs.h"
#include "words.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { FRAME_LINES_MAX = 12 };

/* SDR white of an HDR picture, in cd/m2 (ITU-R BT.2408). */
static const double white_nits = 203.0;

/* Frames under way. `done` counts what the session gave back, in order. */
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
    struct picture_output *output;
    struct records records;
    const struct picture_format *format;
    struct devices devices;
    struct cox_tonemap_shape shape;
    struct cox_tonemap_params params;
    uint32_t slot_count; /* pictures in memory: as many as may be under way */
    cox_buffer *in[COX_IN_FLIGHT_MAX];
    cox_buffer *out[COX_IN_FLIGHT_MAX];
    cox_session *session;
    uint32_t binding_count; /* of the session: input, output and what it has for itself */
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

/* Everything that can be refused before any device works is refused here. */
static bool open_files(struct job *job)
{
    const struct options *options = job->options;
    struct error error;
    if (!picture_input_open(&job->input, options->input, options->alpha, &error))
        return complain_about(options->input, &error);
    job->format = picture_input_format(job->input);
    if (!files_differ(options))
        return false;
    if (!picture_output_open(&job->output, options->output, job->format->width, job->format->height,
                             out_pixel(options), &error))
        return complain_about(options->output, &error);
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

/* The picture is read once and copied: every frame under way has its own memory, as the frames of a film would. */
static bool load_picture(struct job *job)
{
    const struct picture_format *format = job->format;
    job->shape = (struct cox_tonemap_shape){.width = format->width,
                                            .height = format->height,
                                            .in = format->pixel,
                                            .out = out_pixel(job->options),
                                            .local = job->options->op == COX_OPERATOR_LOCAL};
    job->shape.in_pitch_bytes = cox_runtime_pitch_bytes(job->devices.runtime,
                                                        format->width * in_pixel_bytes(job));
    job->shape.out_pitch_bytes = cox_runtime_pitch_bytes(job->devices.runtime,
                                                         format->width * out_pixel_bytes(job));
    job->slot_count = job->options->in_flight;
    if (job->slot_count > job->options->repeat)
        job->slot_count = (uint32_t)job->options->repeat;

    size_t in_bytes = job->shape.in_pitch_bytes * format->height;
    size_t out_bytes = job->shape.out_pitch_bytes * format->height;
    if (!devices_memory(job->options->input, format->width, format->height,
                        ((double)in_bytes + (double)out_bytes) * job->slot_count))
        return false;
    cox_status status = COX_OK;
    for (uint32_t i = 0; i < job->slot_count && status == COX_OK; i++) {
        status = cox_buffer_create(job->devices.runtime, in_bytes, &job->in[i]);
        if (status == COX_OK)
            status = cox_buffer_create(job->devices.runtime, out_bytes, &job->out[i]);
    }
    if (status != COX_OK)
        return complain_status("cannot get memory for the picture", status);

    struct error error = {""};
    void *pixels = cox_buffer_data(job->in[0]);
    if (picture_input_read(job->input, pixels, job->shape.in_pitch_bytes, &error) !=
        PICTURE_READ_FRAME)
        return complain_about(job->options->input, &error);
    for (uint32_t i = 1; i < job->slot_count; i++)
        memcpy(cox_buffer_data(job->in[i]), pixels, in_bytes);
    return true;
}

/* Exposure and peak from the picture: a pass of its own over all devices. */
static bool analyse(struct job *job, struct cox_tonemap_settings *settings)
{
    struct cox_tonemap_storage storage;
    struct cox_session_params params = {.no_warmup = true, .in_flight = 1};
    cox_session *session = NULL;
    cox_buffer *histogram = NULL;
    struct cox_tonemap_analysis analysis;
    cox_status status = cox_tonemap_analysis(&job->shape, &storage, &params);
    if (status == COX_OK)
        status = cox_session_create(job->devices.runtime, &params, &session);
    if (status == COX_OK)
        status = cox_buffer_create(job->devices.runtime, COX_TONEMAP_HISTOGRAM_BYTES, &histogram);
    if (status == COX_OK) {
        cox_buffer *const buffers[2] = {job->in[0], histogram};
        status = cox_session_run(session,
                                 &(const struct cox_frame){.buffers = buffers, .buffer_count = 2});
    }
    if (status == COX_OK) {
        cox_tonemap_read_analysis(cox_buffer_data(histogram), &analysis);
        cox_tonemap_expose(&analysis, settings);
        say("exposure  %+.2f stops, peak %.0f cd/m2 (%.1f x white), from the picture: log-average %.4g, peak %.4g\n",
            (double)settings->exposure_stops, (double)settings->peak * white_nits,
            (double)settings->peak, (double)analysis.log_average, (double)analysis.peak);
    }
    cox_session_destroy(&session);
    cox_buffer_destroy(&histogram);
    return status == COX_OK || complain_status("cannot analyse the picture", status);
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
        say("exposure  %+.2f stops, peak %.0f cd/m2 (%.1f x white)\n", options->exposure_stops,
            options->peak_nits, (double)settings.peak);
    }
    cox_status status = cox_tonemap_prepare(&job->shape, &settings, &job->params);
    return status == COX_OK || complain_status("cannot prepare the operator", status);
}

/* `device` < 0: all of them, as the options say; else that one alone. */
static cox_status create_session(struct job *job, int64_t device, cox_session **session)
{
    struct cox_tonemap_storage storage;
    struct cox_session_params params = {.in_flight = 1};
    uint32_t only = (uint32_t)device;
    cox_status status = cox_tonemap_mapping(&job->shape, &storage, &params);
    if (status != COX_OK)
        return status;
    job->binding_count = params.binding_count;
    if (device >= 0) {
        params.devices = &only;
        params.device_count = 1;
        params.no_warmup = true;
    } else {
        devices_choose(job->options, &params);
        params.report = report_on_frame;
        params.report_user = job->report;
    }
    return cox_session_create(job->devices.runtime, &params, session);
}

static bool start_session(struct job *job)
{
    job->report = report_create(job->devices.count, job->options->repeat);
    if (!job->report)
        return complain("out of memory");
    const cox_status status = create_session(job, -1, &job->session);
    if (status != COX_OK)
        return complain_status("cannot build the pipeline", status);
    cox_session_info(job->session, &job->info);
    return true;
}

/* With the frames' own parameters: frame times are not those of the compiler, and how the devices compare is known. */
static bool warm_session(struct job *job)
{
    const cox_status status = cox_session_warm(job->session, &job->params, NULL, NULL);
    if (status != COX_OK)
        return complain_status("cannot build the pipeline", status);
    cox_session_info(job->session, &job->info);
    return true;
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

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

/* The first frames line by line, then only the live line, then the last ones; all of them with --verbose. */
static void show(struct job *job, bool last)
{
    uint64_t count = report_frame_count(job->report),
             total = job->options->repeat; /* printed: the first, the last */
    bool all = job->options->verbose || total <= FRAME_LINES_MAX;
    uint64_t head = all ? total : FRAME_LINES_MAX - 2, tail = count > 2 ? count - 2 : 0;
    for (; say_wanted() && job->lines_printed < count; job->lines_printed++) {
        if (job->lines_printed == head && !all && last)
            say("...\n");
        if (job->lines_printed < head || (last && job->lines_printed >= tail))
            print_frame(job, job->lines_printed);
        else if (!last)
            break; /* kept for the end */
    }
    if (last || job->options->quiet)
        return;
    struct report_frame frame;
    struct cox_band_report bands[COX_BANDS_MAX];
    char split[PROGRESS_SPLIT_WIDTH + 3] = "";
    if (job->info.device_count > 1 && count &&
        report_frame(job->report, count - 1, &frame, bands, COX_BANDS_MAX))
        report_bar(bands, frame.band_count, PROGRESS_SPLIT_WIDTH, split);
    progress_update(&job->progress, count, split, now_ns());
}

/* Wait until so many frames came back, or one failed, or a signal came. */
static bool wait_for(struct job *job, uint64_t done)
{
    struct flight *flight = &job->flight;
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_mutex_lock(&flight->lock);
        if (flight->done < done && flight->status == COX_OK && !interrupted())
            pthread_cond_timedwait(&flight->changed, &flight->lock, &until);
        bool reached = flight->done >= done, stop = flight->status != COX_OK || interrupted();
        pthread_mutex_unlock(&flight->lock);
        show(job, false);
        if (reached || stop)
            return !stop;
    }
}

static bool run_frames(struct job *job)
{
    struct flight *flight = &job->flight;
    progress_begin(&job->progress, stderr, job->options->repeat, now_ns());
    cox_status status = COX_OK;
    for (uint64_t i = 0; i < job->options->repeat && status == COX_OK; i++) {
        if (!wait_for(job, i >= job->slot_count ? i - job->slot_count + 1 : 0))
            break;
        uint32_t slot = (uint32_t)(i % job->slot_count);
        cox_buffer *const buffers[COX_BINDINGS_MAX] = {job->in[slot], job->out[slot]};
        const struct cox_frame frame = {
            .buffers = buffers, .buffer_count = job->binding_count, .params = &job->params};
        status = cox_session_submit(job->session, &frame, on_done, flight);
    }
    if (status == COX_OK)
        wait_for(job, job->options->repeat);
    cox_session_wait(job->session);
    show(job, true);
    progress_clear(&job->progress);
    if (status != COX_OK)
        return complain_status("a frame was refused", status);
    if (flight->status != COX_OK) {
        char what[64];
        snprintf(what, sizeof what, "frame %" PRIu64 " failed", flight->failed_frame);
        return complain_status(what, flight->status);
    }
    if (interrupted())
        return complain("interrupted");
    words_warn();
    cox_session_info(job->session, &job->info);
    return true;
}

/* --- Results ------------------------------------------------------------------------------------------------------ */

/* Of the pixels, without the padding of rows. */
static uint64_t hash_pixels(const struct job *job, const cox_buffer *buffer)
{
    uint64_t hash = HASH_START;
    for (uint32_t y = 0; y < job->shape.height; y++)
        hash = hash_bytes(hash,
                          (const uint8_t *)cox_buffer_data(buffer) + y * job->shape.out_pitch_bytes,
                          job->shape.width * out_pixel_bytes(job));
    return hash;
}

/* Every device does the picture alone; all must give what they gave together. The memory of the last frame's input
 * is intact; the results go into a buffer of their own. */
static bool verify(struct job *job, uint64_t expected)
{
    cox_buffer *result = NULL;
    bool equal = true;
    for (uint32_t i = 0; i + 1 < job->slot_count;
         i++) /* the other frames that are still in memory */
        equal = equal && hash_pixels(job, job->out[i]) == hash_pixels(job, job->out[i + 1]);
    if (!equal)
        return complain("verification failed: two frames of the same picture differ");
    cox_status status = cox_buffer_create(job->devices.runtime,
                                          job->shape.out_pitch_bytes * job->shape.height, &result);
    if (status != COX_OK)
        return complain_status("cannot get memory to verify", status);
    say("verify    together        %016" PRIx64 "\n", expected);
    for (uint32_t i = 0; i < job->info.device_count && !interrupted(); i++) {
        cox_session *session = NULL;
        uint32_t d = job->info.devices[i].device;
        status = create_session(job, d, &session);
        if (status == COX_OK) {
            cox_buffer *const buffers[COX_BINDINGS_MAX] = {job->in[0], result};
            memset(cox_buffer_data(result), 0, job->shape.out_pitch_bytes * job->shape.height);
            status = cox_session_run(session,
                                     &(const struct cox_frame){.buffers = buffers,
                                                               .buffer_count = job->binding_count,
                                                               .params = &job->params});
        }
        cox_session_destroy(&session);
        if (status != COX_OK) {
            complain_status("cannot verify on one device alone", status);
            break;
        }
        uint64_t hash = hash_pixels(job, result);
        equal = equal && hash == expected;
        say("verify    device %2u alone %016" PRIx64 "  %s\n", d, hash,
            hash == expected ? "equal" : "DIFFERENT");
    }
    cox_buffer_destroy(&result);
    if (interrupted())
        return complain("interrupted");
    if (!equal)
        return complain("verification failed: devices give different pixels");
    return status == COX_OK;
}

static void print_summary(struct job *job, const uint64_t *solo_ns)
{
    struct report_summary summary;
    report_summarise(job->report, solo_ns, job->info.device_count, &summary);
    devices_print_warmup(&job->info);
    say("result    %" PRIu64 " frame%s, %.1f frames/s, %.2f ms (median), %.2f ms (99 %%)",
        summary.frames, summary.frames == 1 ? "" : "s", summary.fps,
        (double)summary.wall_p50_ns / 1e6, (double)summary.wall_p99_ns / 1e6);
    if (isnan(summary.efficiency))
        say(", efficiency unknown\n");
    else
        say(", efficiency %.3f\n", summary.efficiency);
    devices_print_late(job->options, job->report);
}

static bool deliver(struct job *job)
{
    const struct options *options = job->options;
    struct error error;
    struct devices_text text;
    struct report_about about;
    devices_describe(&job->devices, &job->info, &text, &about);
    print_summary(job, text.solo_ns);
    const cox_buffer *last = job->out[(options->repeat - 1) % job->slot_count];
    uint64_t hash = options->hash || options->verbose || options->verify ? hash_pixels(job, last)
                                                                         : 0;
    if (options->verify && !verify(job, hash))
        return false;
    if (options->hash || options->verbose)
        say("hash      %016" PRIx64 "  %s\n", hash, devices_arithmetic(&job->devices));
    if (!picture_output_write(job->output, cox_buffer_data(last), job->shape.out_pitch_bytes,
                              &error))
        return complain_about(options->output, &error);
    records_write(&job->records, job->report, &about);
    if (interrupted())
        return complain("interrupted");
    if (!picture_output_finish(&job->output, &error))
        return complain_about(options->output, &error);
    if (!records_finish(&job->records, options))
        return false;
    say("written   %s (%u x %u, %d bit)\n", options->output, job->format->width,
        job->format->height, (int)options->depth);
    devices_print_trouble(&job->devices, &job->info);
    return true;
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
        return complain("interrupted");
    say("policy    %s, granule %u row%s, %u frame%s in flight\n", job->info.policy,
        job->info.granule, job->info.granule == 1 ? "" : "s", job->slot_count,
        job->slot_count == 1 ? "" : "s");
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
    pthread_cond_destroy(&job->flight.changed);
    pthread_mutex_destroy(&job->flight.lock);
}

bool picture_job(const struct options *options)
{
    struct job job = {
        .options = options,
        .flight = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};
    catch_signals();
    bool good = run(&job);
    clean_up(&job);
    return good;
}
