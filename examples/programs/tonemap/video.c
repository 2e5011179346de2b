/* Video: what is read, how it is to look, what is written; the frames' way between is in film.c.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tonemap/bound.h"
#include "media/muxed.h"
#include "tonemap/progress.h"
#include "devices.h"
#include "files.h"
#include "film.h"
#include "jobs.h"
#include "range.h"
#include "scenes.h"
#include "source.h"
#include "words.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct job {
    const struct options *options; /* `own` */
    struct options own;            /* as given, or where a file of scenes says it, as that says */
    struct scenes scenes;
    struct range range;
    struct devices devices;
    struct records records;
    struct source from;
    struct video_output *output;
    struct picture_output *picture;
    struct muxed_file *finished;
    char encoder[64]; /* the finished file's */
    uint32_t copied;  /* streams of it */
    struct report *report;
    struct film film;
    struct cox_session_info info;
    struct progress progress;
    struct video_producer producer;           /* of the frames, as it was when last looked at */
    uint64_t bound_ns, waited_ns[FILM_WAITS]; /* what was waited for up to then */
    uint64_t looked_ns,
        cpu_began_ns; /* when that was; this process's processor time before the film */
    uint64_t started_ns;
    uint64_t hash;
    uint64_t lines_printed;
    bool output_failed;    /* and a message has said why */
    struct outfile *place; /* of a piece that is not whole; NULL = it has none */
    char path[32];         /* where it is written meanwhile */
    bool rate_warned;      /* that the input's rate varies */
};

/* --- A film's light, where it has been found before --------------------------------------------------------------- */

/* Whether the output holds the samples that the file of scenes says. */
static bool holds(const struct options *options, const struct cox_video_format *pixel)
{
    const bool p010 = options->to == OUTPUT_P010;
    if (options->to == OUTPUT_NULL)
        return true;
    if (!options_want_raw(options))
        return pixel->layout == COX_VIDEO_PLANAR && !pixel->high_bits;
    return pixel->layout == COX_VIDEO_SEMI_PLANAR && pixel->chroma_x_log2 && pixel->chroma_y_log2 &&
           pixel->depth == (p010 ? 10 : 8) && pixel->high_bits == p010;
}

/* What the file of scenes says, and which of its frames are wanted. */
static bool take_scenes(struct job *job)
{
    struct options *own = &job->own;
    struct scenes *scenes = &job->scenes;
    const char *path = own->scenes;
    if (outfile_same_place(path, own->output))
        return complain("%s: is the output and the file of scenes; give the output another name",
                        path);
    if (!scenes_read(scenes, path) || !profile_apply(&scenes->profile, &job->from, path))
        return false;
    if (!holds(own, &scenes->profile.shape.out))
        return misfit("%s: is of frames with other samples than those of %s", path, own->output);
    if (own->step != FILM_MAP) { /* the whole of it, or what --start and --frames say */
        const uint64_t start = own->start ? own->start : scenes->first;
        own->ranged = true;
        own->range_first = start;
        own->range_end = own->frames ? start + own->frames : UINT64_MAX;
    }
    if (!range_of(&job->range, own, scenes->first, scenes->count))
        return false;
    if (!job->range.count)
        return misfit("%s: has no frames for this share", path);
    own->start = job->range.first;
    own->frames = job->range.count;
    own->arithmetic = scenes->profile.arithmetic;
    own->op = scenes->profile.shape.op;
    job->from.plan.scenes = scenes;
    if (own->step == FILM_MAP)
        scenes_piece(scenes, job->range.first, job->range.count, options_encoding(own),
                     job->from.target.piece);
    if (own->piece && strcmp(own->piece, job->from.target.piece))
        return complain("%s: was changed while its frames were being mapped", path);
    return true;
}

/* Whether a whole piece of these frames, with this light, is there. */
static bool is_done(const struct job *job)
{
    static const struct video_raw none;
    const struct options *options = job->options;
    struct video_input *piece;
    struct error error;
    if (options->step != FILM_MAP || options->overwrite || options->to == OUTPUT_NULL ||
        options->place || access(options->output, R_OK) ||
        !video_input_open(&piece, options->output, &none, &error))
        return false;
    uint64_t frames;
    const bool y4m = options->to == OUTPUT_Y4M;
    const bool done = !strcmp(video_input_format(piece)->piece, job->from.target.piece) &&
                      video_input_whole(piece) &&
                      (!y4m ||
                       (video_input_count(piece, &frames, &error) && frames == job->range.count));
    video_input_close(&piece);
    return done;
}

/* --- The output --------------------------------------------------------------------------------------------------- */

/* Before any device works, since an encoder may refuse its options or the frames' format. */
static bool open_finished(struct job *job)
{
    const struct options *options = job->options;
    struct error error;
    if (!options_want_finished(options))
        return true;
    if (!options->step && !files_may_write(options))
        return false;
    if (options->rate.num && job->from.format->tick.num)
        return complain("--rate is for what has no times, and those of %s are kept",
                        options->input);
    const struct muxed_params params = {
        .container = options->to == OUTPUT_MKV ? "matroska" : "mp4",
        .encoder = options->encoder,
        .crf = options->crf,
        .preset = options->preset,
        .source = job->from.format->tick.num && !options->step ? options->input : NULL,
        .piece = *job->from.target.piece ? job->from.target.piece : NULL,
        .start = options->start,
        .frames = options->frames,
        .left_out = warn_about,
        .user = (void *)options->output};
    if (!muxed_open(&job->finished, options->output, &params, &job->from.target, &error))
        return complain_about(options->output, &error);
    snprintf(job->encoder, sizeof job->encoder, "%s", muxed_encoder(job->finished));
    job->copied = muxed_copied(job->finished);
    return true;
}

/* A piece of y4m is written to a file that has no name until it is whole. */
static bool open_place(struct job *job, struct error *error)
{
    const struct options *options = job->options;
    if (options->step != FILM_MAP || options->to != OUTPUT_Y4M || options->place ||
        !strcmp(options->output, "-"))
        return true;
    if (!outfile_open(&job->place, options->output, error))
        return false;
    if (outfile_is_special(job->place))
        outfile_abandon(&job->place);
    else
        snprintf(job->path, sizeof job->path, "/proc/self/fd/%d",
                 fileno(outfile_stream(job->place)));
    return true;
}

/* A film_plan's begin: not before there is something to write, so that a bad input leaves the file of before. */
static bool open_output(void *user)
{
    struct job *job = user;
    const struct options *options = job->options;
    static const enum video_output_kind kinds[] = {[OUTPUT_Y4M] = VIDEO_OUTPUT_Y4M,
                                                   [OUTPUT_NV12] = VIDEO_OUTPUT_RAW,
                                                   [OUTPUT_P010] = VIDEO_OUTPUT_RAW,
                                                   [OUTPUT_NULL] = VIDEO_OUTPUT_NULL};
    struct error error;
    bool good;
    if (job->finished)
        good = true;
    else if (!open_place(job, &error))
        good = false;
    else if (options->to == OUTPUT_PNG)
        good = picture_output_open(&job->picture, options->output, job->from.target.width,
                                   job->from.target.height,
                                   options->depth == 16 ? COX_PIXEL_RGBA16 : COX_PIXEL_RGBA8,
                                   &error);
    else if (options->place)
        good = video_output_open_place(&job->output, options->place, kinds[options->to],
                                       &job->from.target, &error);
    else
        good = video_output_open(&job->output, *job->path ? job->path : options->output,
                                 kinds[options->to], &job->from.target, &error);
    job->output_failed = !good;
    return good || complain_about(options->output, &error);
}

/* Of the samples as raw frames would hold them, without the padding of rows. */
static void hash_frame(struct job *job, const void *const memory[], const size_t pitch_bytes[])
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    uint32_t count = cox_video_planes(&job->from.target.pixel, job->from.target.width,
                                      job->from.target.height, planes);
    for (uint32_t p = 0; p < count; p++)
        for (uint32_t row = 0; row < planes[p].rows; row++)
            job->hash = hash_bytes(job->hash, (const uint8_t *)memory[p] + row * pitch_bytes[p],
                                   planes[p].row_bytes);
}

/* A film_plan's take. */
static bool write_frame(void *user, const void *const memory[], const size_t pitch_bytes[],
                        int64_t time, struct error *error)
{
    struct job *job = user;
    if (job->options->hash)
        hash_frame(job, memory, pitch_bytes);
    if (job->finished)
        return muxed_write(job->finished, memory, pitch_bytes, time, error);
    if (job->picture)
        return picture_output_write(job->picture, memory[0], pitch_bytes[0], error);
    return video_output_write(job->output, memory, pitch_bytes, error);
}

/* What the encoder still holds is a part of the film's time. */
static bool close_finished(struct job *job, bool good, struct error *error)
{
    const uint64_t before_ns = now_ns();
    bool finished = true;
    if (good)
        finished = muxed_finish(&job->finished, &job->progress.bytes, error);
    else
        muxed_abandon(&job->finished);
    job->output_failed = !good || !finished;
    job->film.ended_ns = now_ns();
    job->film.waited_ns[FILM_WAIT_OUTPUT] += job->film.ended_ns - before_ns;
    return finished;
}

/* A film ends with a whole frame whatever happened; a PNG and a finished file are whole or not there. */
static bool close_output(struct job *job, bool good)
{
    struct error error;
    const char *path = job->options->output;
    bool finished = true;
    if (job->picture && good)
        finished = picture_output_finish(&job->picture, &error);
    else
        picture_output_abandon(&job->picture);
    if (job->finished)
        finished = close_finished(job, good, &error);
    if (job->output)
        finished = video_output_finish(&job->output, &error);
    if (job->place && good && finished)
        finished = outfile_finish(&job->place, &error);
    outfile_abandon(&job->place);
    return finished || job->film.write_failed ||
           complain_about(path, &error); /* film_good has told of write_failed */
}

/* --- While it runs ------------------------------------------------------------------------------------------------ */

/* Ten times a second at most. Not at the end only, since a program that writes to the pipe may have ended then, and its
 * processor time can no longer be read. */
static void look_at_producer(struct job *job)
{
    const uint64_t here_ns = now_ns();
    if ((!say_wanted() && !job->progress.json) || here_ns - job->looked_ns < 100000000)
        return;
    job->looked_ns = here_ns;
    video_input_producer(job->from.input, &job->producer);
}

/* Once, as soon as the input's times vary: an output has one rate at most. */
static void warn_of_rate(struct job *job)
{
    const struct options *options = job->options;
    const struct video_rational rate = job->from.target.rate;
    if (job->rate_warned || options->rate.num || options->to == OUTPUT_PNG ||
        options->to == OUTPUT_NULL || options_want_finished(options) ||
        !video_input_rate_varies(job->from.input))
        return;
    job->rate_warned = true;
    progress_clear(&job->progress);
    if (options->to == OUTPUT_Y4M && rate.num)
        warn(
            "%s: its frame rate varies, and y4m holds one only: %.6g frames/s throughout, so the frames' times are not "
            "kept (--rate FPS says another, ffmpeg -vf fps=FPS before makes it constant)",
            options->input, (double)rate.num / rate.den);
    else
        warn(
            "%s: its frame rate varies, and the output holds none: the frames' times are not kept (ffmpeg -vf fps=FPS "
            "before makes it constant)",
            options->input);
}

/* What the frames of the last second waited for most. */
static void note_bound(struct job *job)
{
    const struct film *film = &job->film;
    const bool decoder = job->producer.kind == VIDEO_PRODUCER_DECODER;
    const char *const names[FILM_WAITS] = {[FILM_WAIT_INPUT] = decoder ? "decoder" : "input",
                                           [FILM_WAIT_DEVICES] = "devices",
                                           [FILM_WAIT_OUTPUT] = *job->encoder ? "encoder"
                                                                              : "output"};
    const uint64_t here_ns = now_ns();
    enum film_wait most = FILM_WAIT_INPUT;
    if (here_ns - job->bound_ns < 1000000000)
        return;
    for (enum film_wait wait = FILM_WAIT_INPUT; wait < FILM_WAITS; wait++)
        if (film->waited_ns[wait] - job->waited_ns[wait] >
            film->waited_ns[most] - job->waited_ns[most])
            most = wait;
    if (film->waited_ns[most] > job->waited_ns[most])
        job->progress.bound = names[most];
    memcpy(job->waited_ns, film->waited_ns, sizeof job->waited_ns);
    job->bound_ns = here_ns;
}

/* A film_plan's show: every frame with --verbose, and the live line. */
static void show(void *user, uint64_t mapped)
{
    struct job *job = user;
    struct report_frame frame;
    struct cox_band_report bands[COX_BANDS_MAX];
    char split[PROGRESS_SPLIT_WIDTH + 3] = "";
    uint64_t count = report_frame_count(job->report);
    warn_of_rate(job);
    look_at_producer(job);
    for (; job->options->verbose && job->lines_printed < count; job->lines_printed++) {
        progress_clear(&job->progress);
        if (report_frame(job->report, job->lines_printed, &frame, bands, COX_BANDS_MAX))
            devices_print_frame(&frame, bands);
    }
    if ((job->options->quiet && !job->progress.json) || !job->progress.stream)
        return;
    note_bound(job);
    if (job->finished)
        job->progress.bytes = muxed_bytes(job->finished);
    if (job->info.device_count > 1 && count &&
        report_frame(job->report, count - 1, &frame, bands, COX_BANDS_MAX))
        report_bar(bands, frame.band_count, PROGRESS_SPLIT_WIDTH, split);
    progress_update(&job->progress, mapped, split, now_ns());
}

/* A film_plan's enough. */
static bool enough(void *user)
{
    (void)user;
    return interrupted();
}

/* --- Start -------------------------------------------------------------------------------------------------------- */

static void print_input(const struct job *job)
{
    static const char *const transfers[] = {"PQ", "HLG", "linear light"};
    const struct video_format *format = job->from.format;
    const struct cox_video_shape *shape = &job->from.plan.shape;
    char frames[48] = "", rate[48] = "";
    const char *place = job->film.in.lent ? ", not copied" : "";
    if (format->frames)
        snprintf(frames, sizeof frames, ", %" PRIu64 " frame%s", format->frames,
                 format->frames == 1 ? "" : "s");
    if (job->from.target.rate.num && job->from.target.rate.den)
        snprintf(rate, sizeof rate, ", %.6g frames/s",
                 (double)job->from.target.rate.num / job->from.target.rate.den);
    say("video     %s: %u x %u, %s; %s%s, %s%s%s%s%s\n", job->options->input, format->width,
        format->height, format->text, transfers[shape->transfer],
        job->from.assumed ? " (assumed)" : "",
        shape->primaries == COX_PRIMARIES_BT2020 ? "BT.2020" : "BT.709",
        source_is_packed_rgb(&shape->in)       ? ""
        : shape->in.range == COX_RANGE_LIMITED ? ", limited range"
                                               : ", full range",
        rate, frames, place);
}

static void print_light(const struct job *job)
{
    const struct options *options = job->options;
    char peak[128];
    if (options->scenes)
        snprintf(peak, sizeof peak, "each frame's from %.90s", options->scenes);
    else if (!options->peak_auto)
        snprintf(peak, sizeof peak, "peak %g cd/m2", options->peak_nits);
    else
        snprintf(peak, sizeof peak, "peak from the %s",
                 job->from.plan.steering.lookahead ? "frame" : "frame before");
    say("light     %s, SDR white %g cd/m2, %s", cox_operator_name(options->op),
        source_white_nits(options), peak);
    if (options->exposure_stops != 0)
        say(", %+g stops", options->exposure_stops);
    say("\n");
    if (job->from.known_peak)
        say("          the stream names a peak of %g cd/m2, %s%s\n", job->from.known_peak_nits,
            job->from.known_peak,
            !options->peak_auto       ? ""
            : options->trust_metadata ? ", and no brighter light is expected"
                                      : "; what the frames show counts");
    if (job->from.odd_peak_nits > 0)
        say("          the stream names a peak of %g cd/m2, which cannot be: ignored\n",
            job->from.odd_peak_nits);
}

static bool start_film(struct job *job)
{
    const struct options *options = job->options;
    struct film_plan *plan = &job->from.plan;
    const bool records = options->stats || options->trace;
    job->report = report_create(job->devices.count, records ? 4096 : 1);
    if (!job->report)
        return complain("out of memory");
    if (!records && !options->verbose)
        report_keep_newest(job->report);
    plan->runtime = job->devices.runtime;
    plan->input = job->from.input;
    plan->start = options->to == OUTPUT_PNG ? options->frame : options->start;
    plan->frames = options->to == OUTPUT_PNG ? 1 : options->frames;
    plan->keep_scenes = options->stats;
    plan->discard = options->to == OUTPUT_NULL && !options->hash;
    plan->begin = open_output;
    plan->take = write_frame;
    plan->show = show;
    plan->enough = enough;
    plan->user = job;
    devices_choose(options, &plan->session);
    /* Warm-up is there to learn how the devices compare. */
    plan->session.no_warmup = job->devices.count == 1 || options->policy_options.ratio_count ||
                              options->to == OUTPUT_PNG;
    plan->session.report = report_on_frame;
    plan->session.report_user = job->report;
    film_begin(&job->film, plan);
    if (!devices_memory(options->input, plan->shape.width, plan->shape.height,
                        film_bytes(&job->film)))
        return false;
    cox_status status = film_start(&job->film);
    if (status != COX_OK)
        return complain_status("cannot build the pipeline", status);
    cox_video_stream_session_info(job->film.stream, false, &job->info, sizeof job->info);
    return true;
}

/* --- Results ------------------------------------------------------------------------------------------------------ */

static void describe_film(const struct job *job, struct report_film *about)
{
    const struct film *film = &job->film;
    *about = (struct report_film){.read = film->read,
                                  .written = film->written,
                                  .start_ns = film->began_ns - job->started_ns,
                                  .total_ns = film->ended_ns - job->started_ns,
                                  .input_ns = film->waited_ns[FILM_WAIT_INPUT],
                                  .devices_ns = film->waited_ns[FILM_WAIT_DEVICES],
                                  .output_ns = film->waited_ns[FILM_WAIT_OUTPUT],
                                  .scenes = film->scenes,
                                  .scene_count = film->scene_count,
                                  .cuts = film->cuts};
    enum film_wait most = FILM_WAIT_INPUT;
    for (enum film_wait wait = FILM_WAIT_DEVICES; wait < FILM_WAITS; wait++)
        if (film->waited_ns[wait] > film->waited_ns[most])
            most = wait;
    about->bound = film->waited_ns[most] ? film_wait_name(most) : NULL;
}

/* What the summary says it was bound by; where that is the input, the decoder or program that makes the frames. */
static void name_bound(struct job *job, const struct report_film *about, char *text, size_t bytes)
{
    struct bound_facts facts = {.encoder = *job->encoder ? job->encoder : NULL,
                                .input_ns = about->input_ns,
                                .devices_ns = about->devices_ns,
                                .output_ns = about->output_ns};
    const uint64_t own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - job->cpu_began_ns;
    job->looked_ns = 0;
    look_at_producer(job);
    facts.producer = job->producer;
    facts.own_ns = own_ns;
    if (facts.producer.kind ==
        VIDEO_PRODUCER_DECODER) { /* with the reader's thread; its threads are of this process */
        facts.producer.cpu_ns += job->film.reader_cpu_ns;
        facts.own_ns = own_ns > facts.producer.cpu_ns ? own_ns - facts.producer.cpu_ns : 0;
    }
    for (uint32_t d = 0; d < job->info.device_count; d++)
        facts.on_cpu |= job->devices.info[job->info.devices[d].device].type == COX_DEVICE_CPU;
    bound_text(&facts, text, bytes);
}

static void print_summary(struct job *job, const struct report_film *about)
{
    char bound[128];
    name_bound(job, about, bound, sizeof bound);
    const struct film *film = &job->film;
    const double work_ns = (double)(about->total_ns - about->start_ns),
                 percent = work_ns > 0 ? 100 / work_ns : 0;
    devices_print_warmup(&job->info);
    say("result    %" PRIu64 " frame%s, %.1f frames/s (%.2f s, and %.2f s to start)\n",
        about->written, about->written == 1 ? "" : "s",
        work_ns > 0 ? (double)about->written * 1e9 / work_ns : 0, work_ns / 1e9,
        (double)about->start_ns / 1e9);
    say("waited    for input %.0f %%, for devices %.0f %%, for output %.0f %% of the time%s%s\n",
        (double)about->input_ns * percent, (double)about->devices_ns * percent,
        (double)about->output_ns * percent, *bound ? ": bound by " : "", bound);
    if (job->from.plan.steering.on && film->least_peak_nits > 0)
        say("scenes    peak %.0f to %.0f cd/m2, %" PRIu64 " cut%s\n", (double)film->least_peak_nits,
            (double)film->most_peak_nits, film->cuts, film->cuts == 1 ? "" : "s");
    devices_print_late(job->options, job->report);
    if (job->options->hash)
        say("hash      %016" PRIx64 "  %s\n", job->hash, devices_arithmetic(&job->devices));
}

static void print_written(const struct job *job, uint64_t frames)
{
    static const char *const kinds[] = {
        [OUTPUT_PNG] = "PNG",   [OUTPUT_Y4M] = "y4m",      [OUTPUT_NV12] = "NV12",
        [OUTPUT_P010] = "P010", [OUTPUT_MKV] = "Matroska", [OUTPUT_MP4] = "MP4"};
    const struct cox_video_format *pixel = &job->from.target.pixel;
    if (job->options->to == OUTPUT_NULL)
        return;
    say("written   %s (%s, %u x %u, ", job->options->output, kinds[job->options->to],
        job->from.target.width, job->from.target.height);
    if (job->options->to != OUTPUT_PNG)
        say("%s, %" PRIu64 " frame%s, ",
            !pixel->chroma_x_log2  ? "4:4:4"
            : pixel->chroma_y_log2 ? "4:2:0"
                                   : "4:2:2",
            frames, frames == 1 ? "" : "s");
    say("%u bit", pixel->depth);
    if (*job->encoder)
        say(", %s, %u stream%s copied", job->encoder, job->copied, job->copied == 1 ? "" : "s");
    say(")\n");
}

/* Why the film ended before its end, if it did. */
static bool film_good(const struct job *job)
{
    const struct film *film = &job->film;
    const uint64_t first = job->from.plan.start;
    char what[96];
    if (film->write_failed)
        complain_about(job->options->output, &film->write_error);
    else if (film->failed_step) {
        snprintf(what, sizeof what, "frame %" PRIu64 ": %s", first + film->failed_frame,
                 film->failed_step);
        complain_status(what, film->status);
    }
    if (film->read_failed)
        return complain_about(job->options->input, &film->read_error);
    if (film->failed)
        return false;
    if (interrupted())
        return complain("interrupted after %" PRIu64 " frame%s%s", film->written,
                        film->written == 1 ? "" : "s", job->finished ? ": no file is written" : "");
    if (!film->read && first)
        return complain("%s: there is no frame %" PRIu64, job->options->input, first);
    if (!film->read)
        return complain("%s: there are no frames", job->options->input);
    if (job->from.plan.scenes && film->written < job->range.count)
        return misfit("%s: ends with frame %" PRIu64 ", before the frames of %s do",
                      job->options->input, first + film->written - 1, job->options->scenes);
    return true;
}

static bool deliver(struct job *job)
{
    struct devices_text text;
    struct report_about about;
    struct report_film film;
    progress_clear(&job->progress);
    warn_of_rate(job);
    bool good = film_good(job);
    if (good)
        words_warn();
    good = close_output(job, good) && good;
    progress_end(&job->progress, job->film.written, now_ns());
    struct cox_session_info analysis;
    cox_video_stream_session_info(job->film.stream, false, &job->info, sizeof job->info);
    cox_video_stream_session_info(job->film.stream, true, &analysis, sizeof analysis);
    devices_add_trouble(&job->info, &analysis);
    describe_film(job, &film);
    if (job->film.submitted) {
        print_summary(job, &film);
        if (!job->output_failed)
            print_written(job, film.written);
        devices_print_trouble(&job->devices, &job->info);
    }
    devices_describe(&job->devices, &job->info, &text, &about);
    about.film = &film;
    records_write(&job->records, job->report, &about);
    return records_finish(&job->records, job->options) && good;
}

static bool run(struct job *job)
{
    const struct options *options = job->options;
    if (!source_open(&job->from))
        return false;
    catch_signals(); /* before, a signal ends the program: to open a pipe may take for ever */
    interruption_cancels(job->from.input);
    if (!files_differ(options))
        return false;
    if (options->scenes ? !take_scenes(job) : !source_choose_shape(&job->from))
        return false;
    if (is_done(job)) {
        say("done      %s is there already (--overwrite maps it again)\n", options->output);
        return true;
    }
    if (!options->scenes)
        source_choose_light(&job->from);
    if (!open_finished(job))
        return false;
    if (!records_open(&job->records, options) || !devices_start(&job->devices, options) ||
        !start_film(job))
        return false;
    print_input(job);
    devices_print(&job->devices, &job->info, options->verbose);
    print_light(job);
    const uint32_t in_flight = job->film.plan.session.in_flight;
    say("policy    %s, granule %u row%s, %u frame%s in flight\n", job->info.policy,
        job->info.granule, job->info.granule == 1 ? "" : "s", in_flight, in_flight == 1 ? "" : "s");
    uint64_t total = job->from.plan.frames;
    if (job->from.format->frames &&
        (!total || total > job->from.format->frames - job->from.plan.start))
        total = job->from.format->frames - job->from.plan.start;
    progress_begin(&job->progress, stderr, total, now_ns());
    if (options->progress_json)
        progress_use_json(&job->progress, stderr);
    job->bound_ns = now_ns();
    look_at_producer(job);
    job->cpu_began_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    film_run(&job->film);
    return deliver(job);
}

static void clean_up(struct job *job)
{
    if (job->film.plan.input)
        film_end(&job->film);
    interruption_cancels(NULL);
    devices_stop(&job->devices);
    report_destroy(&job->report);
    picture_output_abandon(&job->picture);
    muxed_abandon(&job->finished);
    outfile_abandon(&job->place);
    records_abandon(&job->records);
    video_input_close(&job->from.input);
}

bool video_job(const struct options *options)
{
    struct job job = {.own = *options, .hash = HASH_START, .started_ns = now_ns()};
    job.options = job.from.options = &job.own;
    bool good = run(&job);
    clean_up(&job);
    scenes_free(&job.scenes);
    return good;
}
