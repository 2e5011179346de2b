/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "film.h"
#include "common/now.h"
#include "scenes.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

const char *film_wait_name(enum film_wait wait)
{
    static const char *const names[FILM_WAITS] = {"input", "devices", "output"};
    return names[wait];
}

/* Wake the caller's thread, or keep it from its next sleep. */
static void wake_main(struct film *film)
{
    const uint64_t one = 1;
    if (write(film->main_wake, &one, sizeof one) < 0)
        return; /* the event is full, so that the thread does not sleep */
}

uint64_t film_frame(const struct film *film, uint64_t n)
{
    return film->plan.only ? film->plan.only[n] : film->plan.start + n;
}

double film_bytes(const struct film *film)
{
    double bytes = 0;
    const struct film_side *const sides[] = {&film->in, &film->out};

    for (int s = 0; s < 2; s++)
        for (uint32_t p = 0; p < sides[s]->plane_count && !sides[s]->lent; p++)
            bytes += (double)sides[s]->plane_bytes[p] * sides[s]->slot_count;
    return bytes;
}

/* --- The reader --- */

/* Wait for a slot that no device reads any more. Returns false if the reader has to end. */
static bool await_input_slot(struct film *film, uint64_t frame)
{
    pthread_mutex_lock(&film->lock);
    while (!film->stop_reading && frame - film->mapped >= film->in.slot_count)
        pthread_cond_wait(&film->reader_wake, &film->lock);
    bool go = !film->stop_reading;

    pthread_mutex_unlock(&film->lock);
    return go;
}

static void *read_frames(void *user)
{
    struct film *film = user;
    const uint64_t frames = film->plan.frames;
    struct error error = {""};
    enum video_read result = VIDEO_READ_FRAME;

    if (film->plan.start)
        result = video_input_skip(film->plan.input, film->plan.start, &error);

    for (uint64_t n = 0; result == VIDEO_READ_FRAME && (!frames || n < frames); n++) {
        if (film->plan.only && n)
            result = video_input_skip(film->plan.input,
                                      film->plan.only[n] - film->plan.only[n - 1] - 1, &error);
        if (result != VIDEO_READ_FRAME || !await_input_slot(film, n))
            break;
        result = film_side_read(&film->in, film->plan.runtime, film->plan.input, n, &error);

        pthread_mutex_lock(&film->lock);
        film->frames[n % FILM_FRAMES] = *video_input_frame(film->plan.input);
        film->read += result == VIDEO_READ_FRAME;
        wake_main(film);
        pthread_mutex_unlock(&film->lock);
    }

    pthread_mutex_lock(&film->lock);
    film->reader_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    film->read_ended = true;
    if (!film->read_failed) {
        film->read_failed = result == VIDEO_READ_ERROR;
        film->read_error = error;
    }
    wake_main(film);
    pthread_mutex_unlock(&film->lock);

    return NULL;
}

/* --- The writer --- */

/* Wait for a mapped frame. Returns false if no more will come. */
static bool await_mapped(struct film *film)
{
    while (film->written == film->mapped && !film->stop_writing)
        pthread_cond_wait(&film->writer_wake, &film->lock);
    return film->written < film->mapped;
}

static void *write_frames(void *user)
{
    struct film *film = user;
    struct error error = {""};
    bool good = true;

    pthread_mutex_lock(&film->lock);
    while (good && await_mapped(film)) {
        cox_buffer **planes = film_side_planes(&film->out, film->written);
        const int64_t time = film->frames[film->written % FILM_FRAMES].time;
        pthread_mutex_unlock(&film->lock);

        const void *memory[COX_VIDEO_PLANES_MAX] = {NULL};
        for (uint32_t p = 0; p < film->out.plane_count; p++)
            memory[p] = cox_buffer_data(planes[p]);
        good = film->plan.take(film->plan.user, memory, film->out.pitch_bytes, time, &error);

        pthread_mutex_lock(&film->lock);
        film->written += good;
        wake_main(film);
    }

    film->write_ended = true;
    if (!good) {
        film->failed = film->write_failed = true;
        film->write_error = error;
    }

    wake_main(film);
    pthread_mutex_unlock(&film->lock);
    return NULL;
}

/* --- Steps of a frame --- */

static bool fail(struct film *film, const char *step, cox_status status, uint64_t frame)
{
    pthread_mutex_lock(&film->lock);

    if (!film->failed) {
        film->failed = true;
        film->status = status;
        film->failed_step = step;
        film->failed_frame = frame;
    }

    wake_main(film);
    pthread_mutex_unlock(&film->lock);
    return false;
}

/* Whether the memory that the input lent still held the frame while the devices read it. */
static bool input_was_kept(struct film *film, uint64_t frame)
{
    struct error error;
    if (!film->in.lent ||
        video_input_kept(film->plan.input, film_side_planes(&film->in, frame), &error))
        return true;

    pthread_mutex_lock(&film->lock);
    film->failed = film->read_failed = true;
    film->read_error = error;
    wake_main(film);
    pthread_mutex_unlock(&film->lock);

    return false;
}

/* Space for the scene of a frame; NULL if scenes are not kept or there is no memory. */
static struct report_scene *scene_of(struct film *film, uint64_t frame)
{
    if (!film->plan.keep_scenes)
        return NULL;

    if (frame >= film->scene_capacity) {
        const uint64_t capacity = film->scene_capacity * 2 + 1024;
        struct report_scene *scenes = realloc(film->scenes, capacity * sizeof *scenes);
        if (!scenes)
            return NULL;
        film->scenes = scenes;
        film->scene_capacity = capacity;
    }

    if (film->scene_count <= frame)
        film->scenes[film->scene_count++] = (struct report_scene){0};
    return &film->scenes[frame];
}

static void note_scene(struct film *film, const struct cox_video_result *result)
{
    struct report_scene *kept = scene_of(film, result->frame);
    if (kept)
        *kept = (struct report_scene){.peak_nits = result->scene_peak_nits,
                                      .average_nits = result->scene_average_nits,
                                      .cut = result->cut,
                                      .curve_peak_nits = result->peak_nits,
                                      .curve_gain = result->gain};

    if (result->cut && film->scene_begun)
        film->cuts++;
    film->scene_begun |= result->cut;

    if (film->least_peak_nits <= 0 || result->peak_nits < film->least_peak_nits)
        film->least_peak_nits = result->peak_nits;
    if (result->peak_nits > film->most_peak_nits)
        film->most_peak_nits = result->peak_nits;
}

/* A frame is mapped. After one that failed no other is written, so that the output has no gap. */
static void on_mapped(struct film *film, const struct cox_video_result *result)
{
    if (result->status != COX_OK) {
        fail(film, "failed", result->status, result->frame);
        return;
    }
    if (!input_was_kept(film, result->frame))
        return;

    if (film->plan.steering.on || film->plan.scenes)
        note_scene(film, result);

    pthread_mutex_lock(&film->lock);
    if (!film->failed)
        film->mapped++;
    if (film->plan.discard)
        film->written = film->mapped;

    pthread_cond_signal(&film->reader_wake);
    pthread_cond_signal(&film->writer_wake);
    pthread_mutex_unlock(&film->lock);
}

/* Receive the frames that are mapped; `all`: wait for those that are not, too. */
static void receive(struct film *film, bool all)
{
    struct cox_video_result result;
    while (cox_video_stream_receive(film->stream, all, &result) == COX_OK)
        on_mapped(film, &result);
}

static bool start_writer(struct film *film)
{
    if (film->plan.begin && !film->plan.begin(film->plan.user))
        return fail(film, NULL, COX_OK, 0);
    if (film->plan.discard)
        return true;

    film->writer_runs = !pthread_create(&film->writer, NULL, write_frames, film);
    return film->writer_runs || fail(film, "cannot start a thread", COX_E_SYSTEM, 0);
}

/* The image of a frame on one side; planes NULL = without buffers. `frame` is for the input. */
static struct cox_video_image image_of(const struct film *film, const struct film_side *side,
                                       cox_buffer *const *planes, const struct video_frame *frame)
{
    const struct film_plan *plan = &film->plan;
    struct cox_video_image image = {.format = plan->shape.out,
                                    .width = plan->out_width,
                                    .height = plan->out_height,
                                    .transfer = plan->shape.transfer,
                                    .primaries = plan->shape.primaries,
                                    .encoding = plan->shape.encoding,
                                    .out_primaries = plan->shape.out_primaries,
                                    .matrix = plan->shape.matrix,
                                    .peak_nits = plan->steering.known_peak_nits};
    if (side == &film->in) {
        image.format = plan->shape.in;
        image.width = plan->shape.width;
        image.height = plan->shape.height;
        if (plan->shape.reshape)
            image.reshape = &frame->dolby.reshape;
        if (frame->has_hdr10plus)
            image.hdr10plus = &frame->hdr10plus;
    }

    for (uint32_t p = 0; p < side->plane_count; p++) {
        image.pitch_bytes[p] = (ptrdiff_t)side->pitch_bytes[p];
        if (planes) {
            image.memory[p] = planes[p];
            image.data[p] = cox_buffer_data(planes[p]);
        }
    }
    return image;
}

/* Where the peak of the curve comes from. */
static enum cox_peak_source peak_of(const struct film_plan *plan)
{
    if (plan->scenes || !plan->steering.on)
        return COX_PEAK_FIXED;

    return plan->steering.lookahead ? COX_PEAK_CURRENT : COX_PEAK_PREVIOUS;
}

static enum cox_tristate choice(bool yes)
{
    return yes ? COX_YES : COX_NO;
}

/* The look of frame `n`. With scenes its settings are its own. */
static struct cox_tonemap_options look_of(const struct film *film, uint64_t n)
{
    const struct film_plan *plan = &film->plan;
    const struct scenes_light *light = NULL;
    struct cox_video_settings settings = plan->settings;
    if (plan->scenes)
        light = scenes_of(plan->scenes, film_frame(film, n));
    if (light) {
        settings.peak_nits = light->peak_nits;
        settings.gain = light->gain;
    }

    /* SDR parts of an HDR film pass the table. */
    const bool looks_up = plan->shape.transfer != COX_TRANSFER_SDR || plan->chosen.transfer;
    return (struct cox_tonemap_options){.op = plan->shape.op,
                                        .peak = peak_of(plan),
                                        .dither = choice(plan->shape.dither == COX_DITHER_ORDERED),
                                        .gamut = COX_GAMUT_ALWAYS_CLIP + plan->shape.gamut,
                                        .settings = settings,
                                        .trust_peak = plan->steering.trusts,
                                        .lut_points = looks_up ? plan->lut_points : 0,
                                        .lut_table = looks_up ? plan->lut_table : NULL,
                                        .box_downscale = plan->shape.scale == COX_SCALE_HALF};
}

/* With a scene file: set the light of frame `n`. */
static bool set_light(struct film *film, uint64_t n)
{
    if (!film->plan.scenes)
        return true;

    const struct cox_tonemap_options look = look_of(film, n);
    const cox_status status = cox_video_stream_set(film->stream, &look);
    return status == COX_OK || fail(film, "cannot set its peak or gain", status, n);
}

/* The film ends before the next frame, as if that could not be read. */
static bool refuse(struct film *film, const struct error *why)
{
    pthread_mutex_lock(&film->lock);
    film->read_failed = film->stop_reading = true;
    film->read_error = *why;
    pthread_cond_signal(&film->reader_wake);
    pthread_mutex_unlock(&film->lock);

    return false;
}

/* Follow the colours of frame `n`. The curve starts again where they change. */
static bool follow_colours(struct film *film, uint64_t n)
{
    const struct video_colours *colours = &film->frames[n % FILM_FRAMES].colours;
    const struct cox_video_shape before = film->plan.shape;
    struct error error;
    if (n && video_colours_equal(colours, &film->colours))
        return true;
    if (!film->plan.recolour(film->plan.user, &film->plan, film_frame(film, n), colours, &error))
        return refuse(film, &error);

    film->colours = *colours;
    if (film_same_colours(&film->plan.shape, &before))
        return true;

    if (n && !film->changes++)
        film->first_change = film_frame(film, n);
    cox_video_stream_restart(film->stream);
    const struct cox_tonemap_options look = look_of(film, n);
    const cox_status status = cox_video_stream_set(film->stream, &look);
    return status == COX_OK || fail(film, "cannot set its colours", status, n);
}

/* Send the next frame. */
static bool map_one(struct film *film)
{
    const uint64_t n = film->submitted, before_ns = now_ns();
    if (!follow_colours(film, n) || (!n && !start_writer(film)) || !set_light(film, n))
        return false;

    cox_status status = film_side_make(&film->out, film->plan.runtime, n);
    if (status != COX_OK)
        return fail(film, "cannot allocate memory", status, n);

    const struct video_frame *frame = &film->frames[n % FILM_FRAMES];
    const struct cox_video_image in = image_of(film, &film->in, film_side_planes(&film->in, n),
                                               frame);
    const struct cox_video_image out = image_of(film, &film->out, film_side_planes(&film->out, n),
                                                NULL);

    film->curveless += film->plan.shape.op == COX_OPERATOR_HDR10PLUS && !frame->has_hdr10plus &&
                       film->plan.shape.transfer != COX_TRANSFER_SDR;

    pthread_mutex_lock(&film->lock);
    film->submitted++;
    pthread_mutex_unlock(&film->lock);

    if (film->plan.only) /* the frames do not continue each other */
        cox_video_stream_restart(film->stream);
    status = cox_video_stream_send(film->stream, &in, &out, NULL);
    film->waited_ns[FILM_WAIT_DEVICES] += now_ns() - before_ns;
    return status == COX_OK || fail(film, "cannot submit it", status, n);
}

/* --- The caller's thread --- */

enum step { STEP_MAP, STEP_END, STEP_WAIT };

/* The next step of the caller's thread. STEP_WAIT: `*wait` is what the next frame waits for. */
static enum step next_step(const struct film *film, enum film_wait *wait)
{
    if (film->failed || film->stop_reading)
        return STEP_END;

    const bool devices_busy = film->submitted - film->mapped >= film->plan.session.in_flight;
    const bool output_full = film->submitted - film->written >= film->out.slot_count;
    if (film->submitted < film->read && !devices_busy && !output_full)
        return STEP_MAP;

    if (film->read_ended && film->submitted == film->read)
        return STEP_END;

    *wait = FILM_WAIT_INPUT;
    if (devices_busy)
        *wait = FILM_WAIT_DEVICES;
    else if (output_full && film->submitted < film->read)
        *wait = FILM_WAIT_OUTPUT;
    return STEP_WAIT;
}

/* Sleep until a frame is mapped or another thread calls wake_main, and for 50 ms at most. */
static void sleep_for(struct film *film, enum film_wait wait)
{
    struct pollfd waits[] = {{.fd = film->main_wake, .events = POLLIN},
                             {.fd = cox_video_stream_descriptor(film->stream), .events = POLLIN}};
    uint64_t count;
    const uint64_t before_ns = now_ns();

    if (poll(waits, 2, 50) > 0 && waits[0].revents &&
        read(film->main_wake, &count, sizeof count) < 0)
        return; /* interrupted by a signal */

    film->waited_ns[wait] += now_ns() - before_ns;
}

/* Call the plan's `show` and `enough`, without the lock. */
static void look(struct film *film)
{
    pthread_mutex_lock(&film->lock);
    uint64_t mapped = film->mapped;
    pthread_mutex_unlock(&film->lock);

    if (film->plan.show)
        film->plan.show(film->plan.user, mapped);

    if (film->plan.enough && film->plan.enough(film->plan.user)) {
        pthread_mutex_lock(&film->lock);
        film->stop_reading = true;
        pthread_cond_signal(&film->reader_wake);
        pthread_mutex_unlock(&film->lock);
    }
}

/* Receive the frames in flight, and wait until all are written. */
static void drain(struct film *film)
{
    const uint64_t before_ns = now_ns();
    receive(film, true);
    film->waited_ns[FILM_WAIT_DEVICES] += now_ns() - before_ns;
    look(film);

    pthread_mutex_lock(&film->lock);
    film->stop_writing = true;
    pthread_cond_signal(&film->writer_wake);

    while (film->writer_runs && !film->write_ended) {
        pthread_mutex_unlock(&film->lock);
        sleep_for(film, FILM_WAIT_OUTPUT);
        look(film);
        pthread_mutex_lock(&film->lock);
    }

    pthread_mutex_unlock(&film->lock);
    film->ended_ns = now_ns();
}

static void stop_threads(struct film *film)
{
    pthread_mutex_lock(&film->lock);
    film->stop_reading = film->stop_writing = true;
    pthread_cond_signal(&film->reader_wake);
    pthread_cond_signal(&film->writer_wake);
    bool waits = film->reader_runs && !film->read_ended;
    pthread_mutex_unlock(&film->lock);

    if (waits) /* perhaps for a pipe */
        video_input_cancel(film->plan.input);

    if (film->reader_runs)
        pthread_join(film->reader, NULL);
    if (film->writer_runs)
        pthread_join(film->writer, NULL);

    film->reader_runs = film->writer_runs = false;
}

void film_run(struct film *film)
{
    film->began_ns = now_ns();
    for (;;) {
        enum film_wait wait = FILM_WAIT_INPUT;
        look(film);

        receive(film, false);
        pthread_mutex_lock(&film->lock);
        const enum step step = next_step(film, &wait);
        pthread_mutex_unlock(&film->lock);

        if (step == STEP_WAIT)
            sleep_for(film, wait);

        if (step == STEP_END || (step == STEP_MAP && !map_one(film)))
            break;
    }

    drain(film);
    stop_threads(film);
}

/* --- Beginning and end --- */

/* The fewest slots with which no thread and no device waits for a slot. Each frame of the devices
 * needs one, and the frame that is read or written needs another. An input that lends frames has
 * its own slots: its side does not need that other one, but at least two. Lookahead needs one
 * more. */
static void plan_slots(struct film *film)
{
    struct film_plan *plan = &film->plan;
    struct cox_video_shape *shape = &plan->shape;

    if (!plan->session.in_flight)
        plan->session.in_flight = 2;
    if (plan->steering.on && !plan->steering.lookahead && !plan->scenes)
        plan->session.in_flight = 1;

    film_side_describe_input(&film->in, plan->runtime, plan->input, shape);
    film_side_describe(&film->out, plan->runtime, &shape->out, plan->out_width, plan->out_height);

    film->in.slot_count = plan->session.in_flight + (plan->steering.lookahead && !plan->scenes);
    film->in.slot_count += !film->in.lent || film->in.slot_count < 2;
    film->out.slot_count = plan->session.in_flight + !plan->discard;
}

/* Create the stream, and prepare it for the first frame. */
static cox_status make_stream(struct film *film)
{
    const struct film_plan *plan = &film->plan;
    const struct video_frame any = {0};
    const struct cox_video_image in = image_of(film, &film->in, NULL, &any);
    const struct cox_video_image out = image_of(film, &film->out, NULL, NULL);
    const struct cox_tonemap_options look = look_of(film, 0);

    const cox_status status = cox_video_stream_create(plan->runtime, &plan->session, &look,
                                                      &film->stream);
    if (status != COX_OK)
        return status;

    return cox_video_stream_prepare(film->stream, &in, &out);
}

void film_begin(struct film *film, const struct film_plan *plan)
{
    *film = (struct film){.plan = *plan};
    pthread_mutex_init(&film->lock, NULL);
    pthread_cond_init(&film->reader_wake, NULL);
    pthread_cond_init(&film->writer_wake, NULL);
    film->main_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    plan_slots(film);
}

cox_status film_start(struct film *film)
{
    film->reader_runs = film->main_wake >= 0 &&
                        !pthread_create(&film->reader, NULL, read_frames, film);

    if (!film->reader_runs)
        return COX_E_SYSTEM;

    return make_stream(film);
}

void film_end(struct film *film)
{
    stop_threads(film);
    cox_video_stream_destroy(&film->stream);
    film_side_free(&film->in, film->plan.input);
    film_side_free(&film->out, NULL);
    video_input_reclaim(film->plan.input);
    free(film->scenes);
    film->scenes = NULL;

    pthread_cond_destroy(&film->writer_wake);
    pthread_cond_destroy(&film->reader_wake);
    if (film->main_wake >= 0)
        close(film->main_wake);

    pthread_mutex_destroy(&film->lock);
}
