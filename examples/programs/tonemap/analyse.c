/* cox-tonemap analyse: the histograms of a part of a film. Steer (steer.c) finds the light of all
 * frames from the histograms of all parts. The devices count while the next frame is read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/now.h"
#include "devices.h"
#include "files.h"
#include "film_side.h"
#include "interrupt.h"
#include "jobs.h"
#include "part.h"
#include "range.h"
#include "source.h"
#include "messages.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

enum { SLOTS = 3 };

/* A frame in flight; its planes are in the slot of `in`. */
struct slot {
    cox_buffer *histogram;
    cox_buffer *reshaping; /* its table */
    struct film_plan plan; /* with the frame's colours */
    struct analysis *analysis;
    bool busy, done; /* `done` under the lock */
    cox_status status;
};

struct analysis {
    const struct options *options;
    struct source from;
    struct devices devices;
    struct range range;
    struct part_writer part;
    struct video_colours colours; /* of the last frame; those of the session */
    uint64_t counted, began_ns;
    cox_session *session;
    struct cox_video_shape shape; /* of the session, with pitches */
    struct cox_constants constants;
    struct film_side in;
    struct slot slots[SLOTS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct slot *slot = user;
    struct analysis *analysis = slot->analysis;
    (void)frame;

    pthread_mutex_lock(&analysis->lock);
    slot->done = true;
    slot->status = status;
    pthread_cond_signal(&analysis->changed);
    pthread_mutex_unlock(&analysis->lock);
}

/* --- Beginning --- */

static bool make_slots(struct analysis *analysis)
{
    cox_runtime *runtime = analysis->devices.runtime;

    cox_status status = COX_OK;
    analysis->in.slot_count = SLOTS;

    film_side_describe_input(&analysis->in, runtime, analysis->from.input,
                             &analysis->from.plan.shape);

    for (uint32_t s = 0; s < SLOTS && status == COX_OK; s++) {
        analysis->slots[s].analysis = analysis;
        status = cox_buffer_create(runtime, COX_VIDEO_RESHAPE_BYTES, &analysis->slots[s].reshaping);
        if (status == COX_OK)
            status = cox_buffer_create(runtime, COX_VIDEO_HISTOGRAM_BYTES,
                                       &analysis->slots[s].histogram);
    }

    return status == COX_OK || message_status_error("cannot allocate memory for frames", status);
}

static bool make_session(struct analysis *analysis)
{
    const struct film_plan *plan = &analysis->from.plan;
    struct cox_video_shape shape = plan->shape;
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];

    cox_pipeline *pipeline = NULL;
    struct cox_session_params params = {0};
    const uint32_t count = cox_video_planes(&shape.out, plan->out_width, plan->out_height, planes);

    memcpy(shape.in_pitch_bytes, analysis->in.pitch_bytes, sizeof shape.in_pitch_bytes);
    for (uint32_t p = 0; p < count; p++)
        shape.out_pitch_bytes[p] = cox_runtime_pitch_bytes(analysis->devices.runtime,
                                                           planes[p].row_bytes);

    devices_choose(analysis->options, &params);
    params.in_flight = SLOTS - 1;

    cox_status status = cox_video_analysis(&shape, &pipeline);
    params.pipeline = pipeline;
    if (status == COX_OK)
        status = cox_session_create(analysis->devices.runtime, &params, &analysis->session);
    cox_pipeline_destroy(&pipeline);

    analysis->shape = shape;
    return status == COX_OK || message_status_error("cannot build the pipeline", status);
}

/* --- Frames --- */

/* Wait for the frame in the slot of frame `n`, add its counts to the part, and free the slot. */
static bool take(struct analysis *analysis, uint64_t n)
{
    struct slot *slot = &analysis->slots[n % SLOTS];
    struct error error;
    if (!slot->busy)
        return true;

    pthread_mutex_lock(&analysis->lock);
    while (!slot->done)
        pthread_cond_wait(&analysis->changed, &analysis->lock);
    pthread_mutex_unlock(&analysis->lock);

    slot->busy = false;

    if (slot->status != COX_OK)
        return message_status_error("frame failed", slot->status);

    if (analysis->in.lent &&
        !video_input_kept(analysis->from.input, film_side_planes(&analysis->in, n), &error))
        return message_file_error(analysis->options->input, &error);
    return part_add(&analysis->part, &slot->plan, cox_buffer_data(slot->histogram));
}

/* The constants of frame `n`: its black bars are not counted. */
static cox_status set_constants(struct analysis *analysis, uint64_t n)
{
    const struct film_side *in = &analysis->in;
    struct cox_video_settings settings = analysis->from.plan.settings;
    settings.reshape = &video_input_frame(analysis->from.input)->dolby.reshape;
    const void *data[COX_VIDEO_PLANES_MAX] = {NULL};
    ptrdiff_t pitch_bytes[COX_VIDEO_PLANES_MAX] = {0};

    for (uint32_t p = 0; p < in->plane_count; p++) {
        data[p] = cox_buffer_data(film_side_planes(&analysis->in, n)[p]);
        pitch_bytes[p] = (ptrdiff_t)in->pitch_bytes[p];
    }

    cox_video_find_bars(&analysis->shape, data, pitch_bytes, &settings);
    return cox_video_prepare(&analysis->shape, &settings, &analysis->constants);
}

static bool submit(struct analysis *analysis, uint64_t n)
{
    struct slot *slot = &analysis->slots[n % SLOTS];
    uint32_t count = analysis->in.plane_count;
    cox_status status = COX_OK;

    cox_buffer *buffers[COX_VIDEO_PLANES_MAX + 3] = {NULL}; /* planes, table, histogram, end */
    memcpy(buffers, film_side_planes(&analysis->in, n), count * sizeof *buffers);
    if (analysis->shape.reshape) {
        buffers[count++] = slot->reshaping;
        status = cox_video_reshape_table(&video_input_frame(analysis->from.input)->dolby.reshape,
                                         cox_buffer_data(slot->reshaping));
    }
    buffers[count] = slot->histogram;

    slot->done = false;
    slot->plan = analysis->from.plan;
    if (status == COX_OK)
        status = set_constants(analysis, n);
    if (status == COX_OK)
        status = cox_session_submit(analysis->session,
                                    &(const struct cox_frame){.buffers = buffers,
                                                              .constants = &analysis->constants},
                                    on_done, slot);

    slot->busy = status == COX_OK;

    return slot->busy || message_status_error("cannot submit a frame", status);
}

/* Take all frames in flight, the oldest first. */
static bool take_all(struct analysis *analysis, uint64_t submitted)
{
    bool good = true;
    for (uint64_t i = 0; i < SLOTS; i++)
        good = take(analysis, submitted + i) && good;
    return good;
}

/* If frame `n` of the range names other colours than the frame before, make a session for them. */
static bool follow_colours(struct analysis *analysis, uint64_t n)
{
    struct source *from = &analysis->from;
    const struct video_colours *colours = &video_input_frame(from->input)->colours;
    const struct cox_video_shape before = from->plan.shape;
    struct error error;
    if (video_colours_equal(colours, &analysis->colours))
        return true;
    if (!source_recolour(from, &from->plan, analysis->range.first + n, colours, &error))
        return message_file_error(analysis->options->input, &error);

    analysis->colours = *colours;
    if (film_same_colours(&from->plan.shape, &before) && from->plan.shape.reshape == before.reshape)
        return true;
    if (!take_all(analysis, n))
        return false;
    cox_session_destroy(&analysis->session);
    return make_session(analysis);
}

/* Count all frames of the range. `*last`: the film ends with them. */
static bool count_frames(struct analysis *analysis, bool *last)
{
    struct error error = {""};

    struct range *range = &analysis->range;
    struct video_input *input = analysis->from.input;
    enum video_read result = VIDEO_READ_FRAME;
    uint64_t submitted = 0;
    bool good = true;
    if (range->first)
        result = video_input_skip(input, range->first, &error);

    while (good && result == VIDEO_READ_FRAME && submitted < range->count && !interrupted()) {
        good = take(analysis, submitted);
        if (good)
            result = film_side_read(&analysis->in, analysis->devices.runtime, input, submitted,
                                    &error);
        if (good && result == VIDEO_READ_FRAME)
            good = follow_colours(analysis, submitted) && submit(analysis, submitted);
        submitted += good && result == VIDEO_READ_FRAME;
    }

    good = take_all(analysis, submitted) && good;

    if (result == VIDEO_READ_ERROR)
        return message_file_error(analysis->options->input, &error);
    if (interrupted() || result == VIDEO_READ_CANCELLED)
        return message_error("interrupted; no part was written");

    if (good && !submitted)
        return message_incompatible("%s: has no frame %" PRIu64, analysis->options->input,
                                    range->first);

    /* Is there one more frame? */
    if (good && result == VIDEO_READ_FRAME)
        result = video_input_skip(input, 1, &error);
    *last = result == VIDEO_READ_END;
    return good;
}

/* --- All --- */

/* Whether the output is this part already, and whole. */
static bool is_done(const struct analysis *analysis, const struct profile *profile)
{
    struct part part;
    const struct options *options = analysis->options;

    const struct range *range = &analysis->range;
    if (options->overwrite || !part_is_there(options->output) || !part_open(&part, options->output))
        return false;

    const bool done = profile_equal(profile, &part.profile) && part.first == range->first &&
                      (part.count == range->count || (part.last && part.count < range->count));

    part_close(&part);
    return done;
}

static bool print_written(const struct analysis *analysis)
{
    const double seconds = (double)(now_ns() - analysis->began_ns) / 1e9;

    say("written   %s (%" PRIu64 " frame%s, the first is %" PRIu64, analysis->options->output,
        analysis->counted, plural(analysis->counted), analysis->range.first);

    if (analysis->part.count)
        say(", %.1f frames/s, %s", (double)analysis->counted / seconds,
            devices_arithmetic(&analysis->devices));

    say(")\n");
    return true;
}

static bool analyse(struct analysis *analysis)
{
    const struct options *options = analysis->options;
    struct source *from = &analysis->from;
    struct profile profile;
    bool last = false;

    if (!source_open(from))
        return false;

    interrupt_catch();
    interrupt_cancels(from->input);

    if (!files_differ(options) || !source_choose_shape(from))
        return false;

    source_choose_light(from);
    analysis->colours = from->format->colours;
    if (!range_choose(&analysis->range, options, from->input) ||
        !devices_start(&analysis->devices, options) ||
        !profile_make(&profile, from, cox_runtime_arithmetic(analysis->devices.runtime)))
        return false;

    if (is_done(analysis, &profile)) {
        say("done      %s exists already; use --overwrite to write it again\n", options->output);
        return true;
    }

    /* With a fixed peak no frame needs to be counted. */
    if (!profile.steering.on) {
        analysis->counted = analysis->range.count;
        return part_begin(&analysis->part, options->output, &profile, analysis->range.first) &&
               part_finish(&analysis->part, analysis->range.count, analysis->range.last) &&
               print_written(analysis);
    }

    if (!make_slots(analysis) || !make_session(analysis) ||
        !part_begin(&analysis->part, options->output, &profile, analysis->range.first) ||
        !count_frames(analysis, &last) || !source_was_sound(from))
        return false;

    analysis->counted = analysis->part.count;
    if (!part_finish(&analysis->part, analysis->counted, last))
        return false;

    messages_show_warnings();
    return print_written(analysis);
}

bool analyse_job(const struct options *options)
{
    struct analysis analysis = {.options = options, .from.options = options, .began_ns = now_ns()};
    pthread_mutex_init(&analysis.lock, NULL);
    pthread_cond_init(&analysis.changed, NULL);

    const bool good = analyse(&analysis);

    part_abandon(&analysis.part);
    cox_session_destroy(&analysis.session);
    for (uint32_t s = 0; s < SLOTS; s++) {
        cox_buffer_destroy(&analysis.slots[s].histogram);
        cox_buffer_destroy(&analysis.slots[s].reshaping);
    }
    film_side_free(&analysis.in, analysis.from.input);
    video_input_reclaim(analysis.from.input);
    interrupt_cancels(NULL);
    devices_stop(&analysis.devices);

    video_input_close(&analysis.from.input);
    pthread_cond_destroy(&analysis.changed);
    pthread_mutex_destroy(&analysis.lock);
    return good;
}
