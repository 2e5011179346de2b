/* A video: source, look and output of its frames. film.c moves the frames through the devices.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "bound.h"
#include "common/now.h"
#include "common/outfile.h"
#include "common/plain_output.h"
#include "devices.h"
#include "files.h"
#include "film.h"
#include "interrupt.h"
#include "jobs.h"
#include "judge.h"
#include "look_table.h"
#include "media/muxed.h"
#include "media/identity.h"
#include "progress.h"
#include "range.h"
#include "scenes.h"
#include "source.h"
#include "stills.h"
#include "messages.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct job {
    const struct options *options; /* `own` */
    struct options own;            /* as given, or as the scene file says */
    struct scenes scenes;
    struct look_table look;
    struct range range;
    struct devices devices;
    struct records records;
    struct source from;
    struct video_output *output;
    struct stills stills;
    struct muxed_file *muxed;
    char encoder[64]; /* of the finished file */
    uint32_t copied;  /* its streams that are copied */
    struct report *report;
    struct judge *judge; /* NULL = no comparison */
    struct film film;
    struct cox_session_info info;
    struct progress progress;
    struct video_producer producer;           /* of the frames; updated by look_at_producer */
    uint64_t bound_ns, waited_ns[FILM_WAITS]; /* the last update by note_bound */
    uint64_t looked_ns;                       /* when that was */
    uint64_t cpu_began_ns;                    /* processor time of this process before the film */
    uint64_t started_ns;
    uint64_t hash;
    uint64_t lines_printed;
    bool output_failed;    /* and an error was printed */
    uint64_t damaged;      /* packets of sound or subtitles in the finished file */
    struct outfile *place; /* of a piece that is not whole; NULL = none */
    char path[32];         /* of that file */
    bool rate_warned;      /* a warning about a varying frame rate was printed */
};

/* --- A scene file --- */

/* Whether the output can hold the samples of the scene file. */
static bool holds(const struct options *options, const struct cox_video_format *pixel)
{
    const bool p010 = options->to == OUTPUT_P010;
    const uint32_t depth = p010 ? 10 : 8;
    if (options->to == OUTPUT_NULL)
        return true;

    if (!options_want_raw(options))
        return pixel->layout == COX_VIDEO_PLANAR && !pixel->msb_aligned;
    return pixel->layout == COX_VIDEO_SEMI_PLANAR && pixel->chroma_x_log2 && pixel->chroma_y_log2 &&
           pixel->depth == depth && pixel->msb_aligned == p010;
}

/* Choose the frames of the scene file: for map by --range or --share, otherwise by --start and
 * --frames. */
static bool choose_range(struct job *job)
{
    struct options *own = &job->own;
    const struct scenes *scenes = &job->scenes;
    if (own->step != FILM_MAP) {
        own->ranged = true;
        own->range_first = scenes->first;
        if (own->start)
            own->range_first = own->start;
        own->range_end = UINT64_MAX;
        if (own->frames)
            own->range_end = own->range_first + own->frames;
    }

    if (!range_of(&job->range, own, scenes->first, scenes->count))
        return false;
    return job->range.count ||
           message_incompatible("%s: has no frames for this part of the film", own->scenes);
}

/* Set look and frames as the scene file says. */
static bool take_scenes(struct job *job)
{
    struct options *own = &job->own;
    struct scenes *scenes = &job->scenes;
    char *piece = job->from.target.piece;
    const char *path = own->scenes;
    if (outfile_same_place(path, own->output))
        return message_error(
            "%s: output and --scene are the same file; give the output another name", path);
    if (!scenes_read(scenes, path) || !profile_apply(&scenes->profile, &job->from, path))
        return false;
    if (!holds(own, &scenes->profile.shape.out))
        return message_incompatible("%s: its frames have another sample format than %s", path,
                                    own->output);
    if (!choose_range(job))
        return false;

    own->start = job->range.first;
    own->frames = job->range.count;
    own->arithmetic = scenes->profile.arithmetic;
    job->from.passes_sdr = true; /* where steer had SDR */
    own->op = scenes->profile.shape.op;
    job->from.plan.scenes = scenes;

    if (own->step == FILM_MAP)
        scenes_piece(scenes, own->start, own->frames, options_encoding(own), piece);
    if (own->piece && strcmp(own->piece, piece))
        return message_error("%s: changed while its frames were being mapped", path);
    return true;
}

/* Whether the file `piece` is whole. A container knows this; y4m only by its number of frames. */
static bool is_whole(const struct job *job, struct video_input *piece)
{
    uint64_t frames;
    struct error error;
    if (!video_input_whole(piece))
        return false;

    return job->options->to != OUTPUT_Y4M ||
           (video_input_count(piece, &frames, &error) && frames == job->range.count);
}

/* Whether the output is this piece already, and whole. */
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

    const bool done = !strcmp(video_input_format(piece)->piece, job->from.target.piece) &&
                      is_whole(job, piece);
    video_input_close(&piece);
    return done;
}

/* --- The output --- */

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
        return message_error("--rate is for inputs without time stamps, but %s has them",
                             options->input);

    struct muxed_params params = {.container = "mp4",
                                  .encoder = options->encoder,
                                  .crf = options->crf,
                                  .preset = options->preset,
                                  .start = options->start,
                                  .frames = options->frames,
                                  .strict = options->strict,
                                  .keep_existing = !options->step && !options->overwrite,
                                  .left_out = message_file_warning,
                                  .user = (void *)options->output};
    if (options->to == OUTPUT_MKV)
        params.container = "matroska";
    if (job->from.format->tick.num && !options->step)
        params.source = options->input;
    if (options->raw.has_stream)
        params.stream = &options->raw.stream;
    if (*job->from.target.piece)
        params.piece = job->from.target.piece;

    if (!muxed_open(&job->muxed, options->output, &params, &job->from.target, &error))
        return message_file_error(options->output, &error);

    snprintf(job->encoder, sizeof job->encoder, "%s", muxed_encoder(job->muxed));
    job->copied = muxed_copied(job->muxed);
    return true;
}

/* Open the file of a y4m piece. It gets its name when it is whole. */
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

/* Open a PNG or a stream of frames. */
static bool open_frames(struct job *job, struct error *error)
{
    static const enum video_output_kind kinds[] = {[OUTPUT_Y4M] = VIDEO_OUTPUT_Y4M,
                                                   [OUTPUT_NV12] = VIDEO_OUTPUT_RAW,
                                                   [OUTPUT_P010] = VIDEO_OUTPUT_RAW,
                                                   [OUTPUT_NULL] = VIDEO_OUTPUT_NULL};
    const struct options *options = job->options;
    const struct video_format *target = &job->from.target;
    const char *path = *job->path ? job->path : options->output;
    if (options->to == OUTPUT_PNG)
        return stills_begin(&job->stills, target, error);

    if (options->place)
        return video_output_open_place(&job->output, options->place, kinds[options->to], target,
                                       error);
    return video_output_open(&job->output, path, kinds[options->to], target, error);
}

/* `begin` of film_plan. The output is opened late, so that a bad input does not destroy an old
 * file. */
static bool open_output(void *user)
{
    struct job *job = user;
    struct error error;
    const bool good = job->muxed || (open_place(job, &error) && open_frames(job, &error));
    job->output_failed = !good;

    return good || message_file_error(job->options->output, &error);
}

/* Add a frame to the hash: the samples in the order of raw frames, without the padding of rows. */
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

/* `recolour` of film_plan. */
static bool recolour(void *user, struct film_plan *plan, uint64_t frame,
                     const struct video_colours *colours, struct error *error)
{
    struct job *job = user;
    progress_clear(&job->progress);
    return source_recolour(&job->from, plan, frame, colours, error);
}

/* `take` of film_plan. */
static bool write_frame(void *user, const void *const memory[], const size_t pitch_bytes[],
                        int64_t time, struct error *error)
{
    struct job *job = user;
    if (job->options->hash)
        hash_frame(job, memory, pitch_bytes);
    judge_take(job->judge, film_frame(&job->film, job->film.written), memory, pitch_bytes);

    if (job->muxed)
        return muxed_write(job->muxed, memory, pitch_bytes, time, error);
    if (job->options->to == OUTPUT_PNG)
        return stills_take(&job->stills, &job->from.target, memory[0], pitch_bytes[0], error);
    return video_output_write(job->output, memory, pitch_bytes, error);
}

/* The frames that the encoder still holds count for the film's time. */
static bool close_muxed(struct job *job, bool good, struct error *error)
{
    const uint64_t before_ns = now_ns();
    struct muxed_written written = {0};
    bool finished = true;

    if (good)
        finished = muxed_finish(&job->muxed, &written, error);
    else
        muxed_abandon(&job->muxed);

    job->progress.bytes = written.bytes;
    job->damaged = written.damaged;
    job->output_failed = !good || !finished;
    job->film.ended_ns = now_ns();
    job->film.waited_ns[FILM_WAIT_OUTPUT] += job->film.ended_ns - before_ns;
    return finished;
}

/* After an error a stream ends with a whole frame; a PNG and a finished file do not appear. */
static bool close_output(struct job *job, bool good)
{
    struct error error;
    bool finished = stills_close(&job->stills, good, &error);

    if (job->muxed)
        finished = close_muxed(job, good, &error);
    if (job->output)
        finished = video_output_finish(&job->output, &error);
    if (job->place && good && finished)
        finished = outfile_finish(&job->place, &error);
    outfile_abandon(&job->place);

    /* film_good has printed why a write failed. */
    return finished || job->film.write_failed || message_file_error(job->options->output, &error);
}

/* --- While it runs --- */

/* Update the producer's processor time, at most ten times a second. A program that writes to the pipe
 * may have ended before the film does, and then its time can no longer be read. */
static void look_at_producer(struct job *job)
{
    const uint64_t here_ns = now_ns();
    if ((!say_wanted() && !job->progress.json) || here_ns - job->looked_ns < 100000000)
        return;

    job->looked_ns = here_ns;
    video_input_producer(job->from.input, &job->producer);
}

/* Warn once, as soon as the input's frame rate varies: the output has one rate, or none. */
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
        message_warning(
            "%s: its frame rate varies, but y4m has one rate: %.6g frames/s is written and the time "
            "stamps are lost (use --rate FPS, or make the rate constant with ffmpeg -vf fps=FPS)",
            options->input, (double)rate.num / rate.den);
    else
        message_warning(
            "%s: its frame rate varies, but the output has no time stamps (make the rate constant "
            "with ffmpeg -vf fps=FPS)",
            options->input);
}

/* The input's frames are not upright, and the output neither turns them nor says so. */
static void warn_of_turn(const struct job *job)
{
    const struct options *options = job->options;
    const struct video_turn turn = job->from.format->turn;
    const bool still = options->to == OUTPUT_PNG,
               turned = turn.transposed || turn.flip_x || turn.flip_y;
    if (turn.odd && still)
        message_warning("%s: turned by an angle that is not a multiple of 90 degrees; the PNG is "
                        "not turned",
                        options->input);
    else if ((turned || turn.odd) && !still && !options->step && options->to != OUTPUT_NULL &&
             !options_want_finished(options))
        message_warning("%s: its picture is to be turned or mirrored, which %s cannot say; the "
                        "frames are written as they are stored",
                        options->input, options_kind_name(options->to));
}

/* What the frames of the last second waited for most. */
static enum film_wait longest_wait(const uint64_t waited_ns[FILM_WAITS])
{
    enum film_wait longest = FILM_WAIT_INPUT;
    for (enum film_wait wait = FILM_WAIT_DEVICES; wait < FILM_WAITS; wait++)
        if (waited_ns[wait] > waited_ns[longest])
            longest = wait;

    return longest;
}

/* What the frames of the last second waited for most. */
static void note_bound(struct job *job)
{
    const char *names[FILM_WAITS] = {"input", "devices", "output"};
    uint64_t waited_ns[FILM_WAITS];
    const uint64_t here_ns = now_ns();
    if (here_ns - job->bound_ns < 1000000000)
        return;

    for (int wait = 0; wait < FILM_WAITS; wait++)
        waited_ns[wait] = job->film.waited_ns[wait] - job->waited_ns[wait];
    if (job->producer.kind == VIDEO_PRODUCER_DECODER)
        names[FILM_WAIT_INPUT] = "decoder";
    if (*job->encoder)
        names[FILM_WAIT_OUTPUT] = "encoder";

    const enum film_wait longest = longest_wait(waited_ns);
    if (waited_ns[longest])
        job->progress.bound = names[longest];
    memcpy(job->waited_ns, job->film.waited_ns, sizeof job->waited_ns);
    job->bound_ns = here_ns;
}

/* `show` of film_plan: every frame with --verbose, and the live line. */
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
    if (job->muxed)
        job->progress.bytes = muxed_bytes(job->muxed);

    if (job->info.device_count > 1 && count &&
        report_frame(job->report, count - 1, &frame, bands, COX_BANDS_MAX))
        report_bar(bands, frame.band_count, PROGRESS_SPLIT_WIDTH, split);
    progress_update(&job->progress, mapped, split, now_ns());
}

/* `enough` of film_plan. */
static bool enough(void *user)
{
    const struct job *job = user;
    if (interrupted())
        judge_cancel(job->judge);

    return interrupted();
}

/* --- Start --- */

static const char *range_text(const struct cox_video_format *pixel)
{
    if (source_is_packed_rgb(pixel))
        return "";

    return pixel->range == COX_RANGE_LIMITED ? ", limited range" : ", full range";
}

static void print_input(const struct job *job)
{
    static const char *const transfers[] = {"PQ", "HLG", "linear light", "SDR"};
    static const char *const primaries[] = {"BT.2020", "BT.709",          "P3-D65",
                                            "DCI-P3",  "BT.601 525-line", "BT.601 625-line"};
    const struct video_format *format = job->from.format;
    const struct cox_video_shape *shape = &job->from.plan.shape;
    const struct video_rational rate = job->from.target.rate;
    const char *other = format->colours.other_transfer;
    say("video     %s: %u x %u, %s%s%s; %s%s, %s%s", job->options->input, format->width,
        format->height, format->text, *other ? ", transfer " : "", other,
        transfers[shape->transfer], job->from.assumed ? " (assumed)" : "",
        primaries[shape->primaries], range_text(&shape->in));

    if (format->dolby_profile)
        say(", Dolby Vision profile %" PRIu32 "%s", format->dolby_profile,
            shape->reshape ? "" : " (base layer)");
    if (rate.num && rate.den)
        say(", %.6g frames/s", (double)rate.num / rate.den);
    if (format->frames)
        say(", %" PRIu64 " frame%s", format->frames, plural(format->frames));
    say("%s\n", job->film.in.lent ? ", not copied" : "");
}

/* Which peak of the metadata was found, and what it is used for. */
static void print_known_peak(const struct job *job)
{
    const struct source *from = &job->from;
    const char *use = "";
    if (job->options->peak_auto)
        use = "; the peak is measured";
    if (job->options->peak_auto && job->options->trust_metadata)
        use = from->known_peak_nits < source_white_nits(job->options)
                  ? "; the upper limit is SDR white, which is brighter"
                  : "; used as the upper limit";

    if (from->known_peak)
        say("          the stream names a peak of %g cd/m2, %s%s\n", from->known_peak_nits,
            from->known_peak, use);
    if (from->odd_peak_nits > 0)
        say("          the stream names a peak of %g cd/m2, which is invalid and ignored\n",
            from->odd_peak_nits);
}

static void print_light(const struct job *job)
{
    const struct options *options = job->options;
    if (options->lut) {
        say("light     table %s, %u points on each side\n", options->lut, job->look.cube.points);
        return;
    }
    if (options->has_transfer && options->transfer == COX_TRANSFER_SDR) {
        say("light     SDR, unchanged");
        if (options->hdr_nits > 0)
            say(", white at %g cd/m2", options->hdr_nits < 203 ? options->hdr_nits : 203);
        say("\n");
        return;
    }
    say("light     %s, %s %g cd/m2, ", cox_operator_name(options->op),
        options->hdr_nits > 0 ? "HDR display" : "SDR white", source_white_nits(options));
    if (options->scenes)
        say("peaks from %.90s", options->scenes);
    else if (!options->peak_auto)
        say("peak %g cd/m2", options->peak_nits);
    else
        say("peak from the %s", job->from.plan.steering.lookahead ? "frame" : "frame before");

    if (options->exposure_stops != 0)
        say(", %+g stops", options->exposure_stops);
    say("\n");
    print_known_peak(job);
}

static bool start_film(struct job *job)
{
    const struct options *options = job->options;
    struct film_plan *plan = &job->from.plan;
    const bool records = options->stats || options->trace;

    job->report = report_create(job->devices.count, records ? 4096 : 1);
    if (!job->report)
        return message_error("out of memory");
    if (!records && !options->verbose)
        report_keep_newest(job->report);

    plan->runtime = job->devices.runtime;
    plan->input = job->from.input;
    plan->start = options->start;
    plan->frames = options->frames;
    if (options->to == OUTPUT_PNG) {
        plan->start = job->stills.frames[0];
        plan->frames = job->stills.frame_count;
        plan->only = job->stills.frames;
    }
    plan->keep_scenes = options->stats;
    plan->discard = options->to == OUTPUT_NULL && !options->hash && !job->judge;

    plan->begin = open_output;
    plan->recolour = recolour;
    plan->take = write_frame;
    plan->show = show;
    plan->enough = enough;
    plan->user = job;
    devices_choose(options, &plan->session);

    plan->session.warmup = devices_warmup(&job->devices, options);
    if (options->to == OUTPUT_PNG && plan->session.warmup == COX_WARMUP_FIRST_FRAME)
        plan->session.warmup = COX_WARMUP_NONE;
    plan->session.report = report_on_frame;
    plan->session.report_user = job->report;

    film_begin(&job->film, plan);
    if (!devices_memory(options, job->from.format->file_bytes, plan->shape.width,
                        plan->shape.height, film_bytes(&job->film)))
        return false;

    cox_status status = film_start(&job->film);
    if (status != COX_OK)
        return message_status_error("cannot build the pipeline", status);

    cox_video_stream_session_info(job->film.stream, &job->info);
    return true;
}

/* --- Results --- */

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

    const enum film_wait longest = longest_wait(film->waited_ns);
    if (film->waited_ns[longest])
        about->bound = film_wait_name(longest);
}

/* The bottleneck for the summary. For input it is the decoder or program that makes the frames. */
static void name_bound(struct job *job, const struct report_film *about, char *text, size_t bytes)
{
    struct bound_facts facts = {.input_ns = about->input_ns,
                                .devices_ns = about->devices_ns,
                                .output_ns = about->output_ns,
                                .own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - job->cpu_began_ns};
    if (*job->encoder)
        facts.encoder = job->encoder;
    job->looked_ns = 0;
    look_at_producer(job);
    facts.producer = job->producer;

    /* The decoder's threads and the reader's belong to this process. */
    if (facts.producer.kind == VIDEO_PRODUCER_DECODER) {
        facts.producer.cpu_ns += job->film.reader_cpu_ns;
        if (facts.own_ns > facts.producer.cpu_ns)
            facts.own_ns -= facts.producer.cpu_ns;
        else
            facts.own_ns = 0;
    }

    for (uint32_t d = 0; d < job->info.device_count; d++)
        facts.on_cpu |= job->devices.info[job->info.devices[d].device].type == COX_DEVICE_CPU;
    bound_text(&facts, text, bytes);
}

static void print_summary(struct job *job, const struct report_film *about)
{
    const struct film *film = &job->film;
    const double work_ns = (double)(about->total_ns - about->start_ns);
    double fps = 0, percent = 0;
    char bound[128];
    name_bound(job, about, bound, sizeof bound);
    if (work_ns > 0) {
        fps = (double)about->written * 1e9 / work_ns;
        percent = 100 / work_ns;
    }

    devices_print_warmup(&job->info);
    say("result    %" PRIu64 " frame%s, %.1f frames/s (%.2f s, plus %.2f s to start)\n",
        about->written, plural(about->written), fps, work_ns / 1e9, (double)about->start_ns / 1e9);
    say("waited    for input %.0f %%, for devices %.0f %%, for output %.0f %% of the time%s%s\n",
        (double)about->input_ns * percent, (double)about->devices_ns * percent,
        (double)about->output_ns * percent, *bound ? ": bound by " : "", bound);

    if (job->from.plan.steering.on && film->least_peak_nits > 0)
        say("scenes    peak %.0f to %.0f cd/m2, %" PRIu64 " cut%s\n", (double)film->least_peak_nits,
            (double)film->most_peak_nits, film->cuts, plural(film->cuts));
    if (film->changes)
        say("colours   %" PRIu64 " change%s, the first at frame %" PRIu64 "\n", film->changes,
            plural(film->changes), film->first_change);
    if (film->curveless)
        say("curves    %" PRIu64 " frame%s without HDR10+, mapped by bt2390\n", film->curveless,
            plural(film->curveless));
    judge_print(job->judge);
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
    const char *chroma = "4:4:4";
    if (job->options->to == OUTPUT_NULL)
        return;

    if (pixel->chroma_x_log2)
        chroma = pixel->chroma_y_log2 ? "4:2:0" : "4:2:2";

    uint32_t width = job->from.target.width, height = job->from.target.height;
    if (job->options->to == OUTPUT_PNG) {
        width = job->options->sheet_count ? job->stills.sheet_width : job->stills.one.width;
        height = job->options->sheet_count ? job->stills.sheet_height : job->stills.one.height;
    }
    say("written   %s (", job->options->output);
    if (job->stills.written > 1 && !job->options->sheet_count)
        say("%u PNGs, %u x %u, ", job->stills.written, width, height);
    else
        say("%s, %u x %u, ", kinds[job->options->to], width, height);
    if (job->options->to != OUTPUT_PNG)
        say("%s, %" PRIu64 " frame%s, ", chroma, frames, plural(frames));
    say("%u bit", pixel->depth);
    if (*job->encoder)
        say(", %s, %u stream%s copied", job->encoder, job->copied, plural(job->copied));
    say(")\n");
}

/* Print why a film failed in the middle. */
static void print_failure(const struct job *job)
{
    const struct film *film = &job->film;
    char what[96];
    if (film->write_failed) {
        message_file_error(job->options->output, &film->write_error);
    } else if (film->failed_step) {
        snprintf(what, sizeof what, "frame %" PRIu64 ": %s", film_frame(film, film->failed_frame),
                 film->failed_step);
        message_status_error(what, film->status);
    }
    if (film->read_failed)
        message_file_error(job->options->input, &film->read_error);
}

/* Whether the film is complete. False after printing why it is not. */
static bool film_good(const struct job *job)
{
    const struct film *film = &job->film;
    const uint64_t first = job->from.plan.start;
    print_failure(job);
    if (film->failed || film->read_failed)
        return false;
    if (interrupted())
        return message_error("interrupted after %" PRIu64 " frame%s%s", film->written,
                             plural(film->written), job->muxed ? "; no file was written" : "");

    if (!film->read && first)
        return message_error("%s: has no frame %" PRIu64, job->options->input, first);
    if (!film->read)
        return message_error("%s: has no frames", job->options->input);
    if (job->from.plan.only && film->written < job->stills.frame_count)
        return message_error("%s: has no frame %" PRIu64, job->options->input,
                             job->stills.frames[film->written]);
    if (job->from.plan.scenes && film->written < job->range.count)
        return message_incompatible("%s: ends with frame %" PRIu64 ", before the last frame of %s",
                                    job->options->input, first + film->written - 1,
                                    job->options->scenes);
    return true;
}

static bool deliver(struct job *job)
{
    struct devices_text text;
    struct report_about about;
    struct report_film film;
    struct judge_figures figures;
    progress_clear(&job->progress);
    warn_of_rate(job);

    /* What is left of a damaged film is written all the same, unless --strict is given. */
    const bool complete = film_good(job);
    const bool sound = complete && source_was_sound(&job->from);
    const bool kept = complete && (sound || !job->options->strict);
    if (kept)
        messages_show_warnings();

    bool good = close_output(job, kept) && sound;
    if (job->damaged)
        good = message_error("%s: up to %" PRIu64 " packet%s of sound or subtitles %s damaged",
                             job->options->input, job->damaged, plural(job->damaged),
                             job->damaged == 1 ? "is" : "are");
    progress_end(&job->progress, job->film.written, now_ns());

    cox_video_stream_session_info(job->film.stream, &job->info);

    describe_film(job, &film);
    if (job->film.submitted) {
        print_summary(job, &film);
        if (!job->output_failed)
            print_written(job, film.written);
        devices_print_trouble(&job->devices, &job->info);
    }
    devices_describe(&job->devices, &job->info, &text, &about);
    about.film = &film;
    if (judge_figures(job->judge, &figures))
        about.judged = &figures;
    records_write(&job->records, job->report, &about);
    const bool judged = judge_finish(job->judge, good && !job->from.plan.frames);
    return records_finish(&job->records, job->options) && good && judged;
}

/* The film, and what the devices need for it. */
static bool prepare(struct job *job)
{
    const struct options *options = job->options;
    if (!options->scenes)
        source_choose_light(&job->from);
    const double peak_nits = (double)job->from.plan.settings.sdr_white_nits; /* of PQ */
    return judge_begin(job->judge, &job->from.target, job->from.plan.shape.encoding, peak_nits) &&
           open_finished(job) && records_open(&job->records, options) &&
           devices_start(&job->devices, options) &&
           look_table_use(&job->look, job->options, job->devices.runtime, &job->from.plan) &&
           start_film(job);
}

static void print_start(const struct job *job)
{
    const uint32_t in_flight = job->film.plan.session.in_flight;
    print_input(job);
    devices_print(&job->devices, &job->info, job->options->verbose);
    print_light(job);
    say("policy    %s, granule %u row%s, %u frame%s in flight\n", job->info.policy,
        job->info.row_alignment, plural(job->info.row_alignment), in_flight, plural(in_flight));
}

/* Frames that will be done; 0 = not known. */
static uint64_t total_frames(const struct job *job)
{
    const uint64_t wanted = job->from.plan.frames, all = job->from.format->frames;
    if (!all || job->from.plan.only)
        return wanted;

    const uint64_t left = all - job->from.plan.start;
    return wanted && wanted < left ? wanted : left;
}

static bool choose_stills(struct job *job)
{
    const uint64_t frames = job->from.format->frames;
    if (!stills_choose(&job->stills, job->options, job->from.input))
        return false;

    const uint64_t last = job->stills.frames[job->stills.frame_count - 1];
    return !frames || last < frames ||
           message_error("%s: has no frame %" PRIu64 "; the last frame is %" PRIu64,
                         job->options->input, last, frames - 1);
}

static bool run(struct job *job)
{
    const struct options *options = job->options;
    if (!source_open(&job->from) || !judge_open(&job->judge, options) ||
        !look_table_read(&job->look, options))
        return false;

    /* Until here a signal ends the program: opening a pipe may block. */
    interrupt_catch();
    interrupt_cancels(job->from.input);
    if (!files_differ(options))
        return false;
    const bool chosen = options->scenes ? take_scenes(job) : source_choose_shape(&job->from);
    if (!chosen || (options->to == OUTPUT_PNG && !choose_stills(job)))
        return false;
    if (is_done(job)) {
        say("done      %s exists already; use --overwrite to map it again\n", options->output);
        return true;
    }

    if (!prepare(job))
        return false;
    print_start(job);
    warn_of_turn(job);
    progress_begin(&job->progress, plain_output_terminal(), total_frames(job), now_ns());
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
    interrupt_cancels(NULL);

    look_table_free(&job->look);
    devices_stop(&job->devices);
    report_destroy(&job->report);
    stills_free(&job->stills);

    muxed_abandon(&job->muxed);
    outfile_abandon(&job->place);
    records_abandon(&job->records);
    judge_close(&job->judge);
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
