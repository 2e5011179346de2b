/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "film.h"
#include "words.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *film_wait_name(enum film_wait wait)
{
    static const char *const names[FILM_WAITS] = {"input", "devices", "output"};
    return names[wait];
}

/* --- Slots -------------------------------------------------------------------------------------------------------- */

static void describe_side(struct film_side *side, cox_runtime *runtime, const struct cox_video_format *format,
                          uint32_t width, uint32_t height)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    side->plane_count = cox_video_planes(format, width, height, planes);
    for (uint32_t p = 0; p < side->plane_count; p++) {
        if (!side->lent)
            side->pitch_bytes[p] = cox_runtime_pitch_bytes(runtime, planes[p].row_bytes);
        side->plane_bytes[p] = side->pitch_bytes[p] * planes[p].rows;
    }
}

/* The buffers of the slot that a frame uses; made when its first frame comes. */
static cox_status use_slot(struct film_side *side, cox_runtime *runtime, uint64_t frame, cox_buffer ***planes)
{
    uint32_t slot = (uint32_t)(frame % side->slot_count);
    *planes = side->slots[slot];
    for (uint32_t p = 0; slot == side->slots_made && p < side->plane_count; p++) {
        cox_status status = cox_buffer_create(runtime, side->plane_bytes[p], &side->slots[slot][p]);
        if (status != COX_OK)
            return status;
    }
    if (slot == side->slots_made)
        side->slots_made++;
    return COX_OK;
}

double film_bytes(const struct film *film)
{
    double bytes = 0;
    const struct film_side *const sides[] = {&film->in, &film->out};
    for (int s = film->in.lent ? 1 : 0; s < 2; s++) /* what is lent is the input's */
        for (uint32_t p = 0; p < sides[s]->plane_count; p++)
            bytes += (double)sides[s]->plane_bytes[p] * sides[s]->slot_count;
    return bytes;
}

static void free_slots(struct film_side *side)
{
    for (uint32_t slot = 0; slot < FILM_SLOTS_MAX; slot++)
        for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++)
            cox_buffer_destroy(&side->slots[slot][p]);
}

/* --- The reader --------------------------------------------------------------------------------------------------- */

/* Wait for a slot that no device needs any more. False: there is no need to go on. */
static bool await_input_slot(struct film *film, uint64_t frame)
{
    pthread_mutex_lock(&film->lock);
    while (!film->stop_reading && frame - film->mapped >= film->in.slot_count)
        pthread_cond_wait(&film->reader_wake, &film->lock);
    bool go = !film->stop_reading;
    pthread_mutex_unlock(&film->lock);
    return go;
}

static enum video_read read_one(struct film *film, uint64_t frame, struct picture_error *error)
{
    cox_buffer **planes;
    void *memory[COX_VIDEO_PLANES_MAX] = {NULL};
    if (film->in.lent) {
        planes = film->in.slots[frame % film->in.slot_count];
        video_input_return(film->plan.input, planes);
        return video_input_borrow(film->plan.input, planes, error);
    }
    cox_status status = use_slot(&film->in, film->plan.runtime, frame, &planes);
    if (status != COX_OK) {
        picture_fail(error, "no memory to read a frame to: %s", cox_status_text(status));
        return VIDEO_READ_ERROR;
    }
    for (uint32_t p = 0; p < film->in.plane_count; p++)
        memory[p] = cox_buffer_data(planes[p]);
    return video_input_read(film->plan.input, memory, film->in.pitch_bytes, error);
}

static void *read_frames(void *user)
{
    struct film *film = user;
    const uint64_t frames = film->plan.frames;
    struct picture_error error = {""};
    enum video_read result = VIDEO_READ_FRAME;
    if (film->plan.start)
        result = video_input_skip(film->plan.input, film->plan.start, &error);
    for (uint64_t n = 0; result == VIDEO_READ_FRAME && (!frames || n < frames); n++) {
        if (!await_input_slot(film, n))
            break;
        result = read_one(film, n, &error);
        pthread_mutex_lock(&film->lock);
        film->times[n % FILM_TIMES] = video_input_time(film->plan.input);
        film->read += result == VIDEO_READ_FRAME;
        pthread_cond_signal(&film->main_wake);
        pthread_mutex_unlock(&film->lock);
    }
    struct timespec cpu = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    pthread_mutex_lock(&film->lock);
    film->reader_cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
    film->read_ended = true;
    if (!film->read_failed) {
        film->read_failed = result == VIDEO_READ_ERROR;
        film->read_error = error;
    }
    pthread_cond_signal(&film->main_wake);
    pthread_mutex_unlock(&film->lock);
    return NULL;
}

/* --- The writer --------------------------------------------------------------------------------------------------- */

/* Wait for a frame; false if no more will come. */
static bool await_mapped(struct film *film)
{
    while (film->written == film->mapped && !film->stop_writing)
        pthread_cond_wait(&film->writer_wake, &film->lock);
    return film->written < film->mapped;
}

static void *write_frames(void *user)
{
    struct film *film = user;
    struct picture_error error = {""};
    bool good = true;
    pthread_mutex_lock(&film->lock);
    while (good && await_mapped(film)) {
        cox_buffer **planes = film->out.slots[film->written % film->out.slot_count];
        const int64_t time = film->times[film->written % FILM_TIMES];
        pthread_mutex_unlock(&film->lock);
        const void *memory[COX_VIDEO_PLANES_MAX] = {NULL};
        for (uint32_t p = 0; p < film->out.plane_count; p++)
            memory[p] = cox_buffer_data(planes[p]);
        good = film->plan.take(film->plan.user, memory, film->out.pitch_bytes, time, &error);
        pthread_mutex_lock(&film->lock);
        film->written += good;
        pthread_cond_signal(&film->main_wake);
    }
    film->write_ended = true;
    if (!good) {
        film->failed = film->write_failed = true;
        film->write_error = error;
    }
    pthread_cond_signal(&film->main_wake);
    pthread_mutex_unlock(&film->lock);
    return NULL;
}

/* --- Steps of a frame --------------------------------------------------------------------------------------------- */

static bool fail(struct film *film, const char *step, cox_status status, uint64_t frame)
{
    pthread_mutex_lock(&film->lock);
    if (!film->failed) {
        film->failed = true;
        film->status = status;
        film->failed_step = step;
        film->failed_frame = frame;
    }
    pthread_cond_signal(&film->main_wake);
    pthread_mutex_unlock(&film->lock);
    return false;
}

/* Whether what the devices made of a frame is of what the input had. */
static bool input_was_kept(struct film *film, uint64_t frame)
{
    struct picture_error error;
    if (!film->in.lent || video_input_kept(film->plan.input, film->in.slots[frame % film->in.slot_count], &error))
        return true;
    pthread_mutex_lock(&film->lock);
    film->failed = film->read_failed = true;
    film->read_error = error;
    pthread_cond_signal(&film->main_wake);
    pthread_mutex_unlock(&film->lock);
    return false;
}

/* A cox_done_fn. After a frame that failed nothing more is written: there would be a hole. */
static void on_mapped(void *user, uint64_t frame, cox_status status)
{
    struct film *film = user;
    if (status != COX_OK) {
        fail(film, "a frame failed", status, frame);
        return;
    }
    if (!input_was_kept(film, frame))
        return;
    pthread_mutex_lock(&film->lock);
    if (!film->failed)
        film->mapped++;
    if (film->plan.discard)
        film->written = film->mapped;
    pthread_cond_signal(&film->main_wake);
    pthread_cond_signal(&film->reader_wake);
    pthread_cond_signal(&film->writer_wake);
    pthread_mutex_unlock(&film->lock);
}

/* A cox_done_fn. */
static void on_analysed(void *user, uint64_t frame, cox_status status)
{
    struct film *film = user;
    if (status != COX_OK) {
        fail(film, "the analysis of a frame failed", status, frame);
        return;
    }
    pthread_mutex_lock(&film->lock);
    film->analysed++;
    pthread_cond_signal(&film->main_wake);
    pthread_mutex_unlock(&film->lock);
}

/* Space for the scene of frame `frame`; NULL where it is not wanted or there is no memory. */
static struct report_scene *scene_of(struct film *film, uint64_t frame)
{
    if (!film->plan.keep_scenes)
        return NULL;
    if (frame >= film->scene_capacity) {
        uint64_t capacity = film->scene_capacity ? film->scene_capacity * 2 : 1024;
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

/* A frame's histogram has its say on the frames from now on, this one too if it has not been mapped. */
static void steer(struct film *film, uint64_t frame, const cox_buffer *histogram)
{
    const struct film_plan *plan = &film->plan;
    struct cox_video_scene scene;
    cox_video_read_scene(&plan->shape, &plan->settings, cox_buffer_data(histogram), &scene);
    bool cut = cox_video_steer(&film->steer, &plan->steering.options, &plan->shape, cox_buffer_data(histogram),
                               &film->settings);
    struct report_scene *kept = scene_of(film, frame);
    if (kept) {
        kept->peak_nits = scene.peak_nits;
        kept->average_nits = scene.average_nits;
        kept->cut = cut;
    }
}

/* A frame is mapped with this peak. The rehearsal's is that of no frame. */
static void note_peak(struct film *film, float peak_nits)
{
    if (!film->rehearsed && !film->plan.steering.lookahead)
        return;
    if (film->least_peak_nits <= 0 || peak_nits < film->least_peak_nits)
        film->least_peak_nits = peak_nits;
    if (peak_nits > film->most_peak_nits)
        film->most_peak_nits = peak_nits;
}

/* The parameters of a frame from the settings as they stand. */
static cox_status prepare(struct film *film, uint64_t frame, struct cox_video_params *params)
{
    struct cox_video_settings settings = film->settings;
    if (film->plan.steering.on) {
        const float gain = (float)film->plan.steering.gain;
        settings.gain = (settings.gain > 0 ? settings.gain : 1.0f) * gain;
        settings.peak_nits *= gain;
        note_peak(film, settings.peak_nits);
        struct report_scene *kept = scene_of(film, frame);
        if (kept) {
            kept->curve_peak_nits = settings.peak_nits;
            kept->curve_gain = settings.gain;
        }
    }
    return cox_video_prepare(&film->plan.shape, &settings, params);
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

/* Give the next frame's histogram to the devices to make. */
static bool analyse_one(struct film *film)
{
    const uint64_t n = film->analysing;
    cox_buffer *buffers[COX_BINDINGS_MAX] = {NULL};
    struct cox_video_params params;
    uint32_t count = film->in.plane_count;
    memcpy(buffers, film->in.slots[n % film->in.slot_count], count * sizeof buffers[0]);
    buffers[count] = film->histograms[n % 2];
    cox_status status = cox_video_prepare(&film->plan.shape, &film->plan.settings, &params);
    const struct cox_frame frame = {.buffers = buffers, .buffer_count = film->analysis_bindings, .params = &params};
    film->analysing++;
    if (status == COX_OK)
        status = cox_session_submit(film->analysis, &frame, on_analysed, film);
    return status == COX_OK || fail(film, "a frame was refused", status, n);
}

/* A cox_report_fn between the session and the caller's: the rehearsal is no frame. */
static void on_report(void *user, const struct cox_frame_report *report)
{
    const struct film *film = user;
    struct cox_frame_report counted = *report;
    if (film->rehearsing && !report->warmup)
        return;
    counted.index -= film->rehearsed;
    film->plan.session.report(film->plan.session.report_user, &counted);
}

/* The first frame has none before it to be steered by, so it is mapped twice, the first time for its histogram. */
static cox_status rehearse(struct film *film, const struct cox_frame *frame)
{
    film->rehearsing = true;
    cox_status status = cox_session_run(film->mapping, frame);
    cox_session_wait(film->mapping); /* the report of a shadow may come after the frame's */
    film->rehearsing = false;
    film->rehearsed = true;
    if (status == COX_OK)
        steer(film, 0, film->histograms[0]);
    return status;
}

/* Map a frame and learn from it for the next one. */
static cox_status map_and_steer(struct film *film, const struct cox_frame *frame, struct cox_video_params *params)
{
    const uint64_t n = film->submitted - 1, before_ns = now_ns();
    cox_status status = COX_OK;
    if (!n)
        status = rehearse(film, frame);
    if (!n && status == COX_OK)
        status = prepare(film, n, params);
    if (status == COX_OK)
        status = cox_session_run(film->mapping, frame);
    film->waited_ns[FILM_WAIT_DEVICES] += now_ns() - before_ns;
    if (n && status == COX_OK)
        steer(film, n, film->histograms[0]);
    on_mapped(film, n, status);
    return status;
}

/* Give the next frame to the devices to map. Where it steers the one after it, wait for it. */
static bool map_one(struct film *film)
{
    const struct film_steering *steering = &film->plan.steering;
    const uint64_t n = film->submitted;
    if (!n && !start_writer(film))
        return false;
    cox_buffer *buffers[COX_BINDINGS_MAX] = {NULL}, **out;
    struct cox_video_params params;
    cox_status status = use_slot(&film->out, film->plan.runtime, n, &out);
    if (status != COX_OK)
        return fail(film, "cannot get memory for a frame", status, n);
    uint32_t count = film->in.plane_count;
    memcpy(buffers, film->in.slots[n % film->in.slot_count], count * sizeof buffers[0]);
    memcpy(buffers + count, out, film->out.plane_count * sizeof buffers[0]);
    count += film->out.plane_count;
    if (steering->lookahead)
        steer(film, n, film->histograms[n % 2]);
    else if (steering->on)
        buffers[count] = film->histograms[0];
    status = prepare(film, n, &params);
    if (status != COX_OK)
        return fail(film, "cannot prepare the operator", status, n);

    const struct cox_frame frame = {.buffers = buffers, .buffer_count = film->mapping_bindings, .params = &params};
    pthread_mutex_lock(&film->lock);
    film->submitted++;
    pthread_mutex_unlock(&film->lock);
    if (!steering->on || steering->lookahead) {
        status = cox_session_submit(film->mapping, &frame, on_mapped, film);
        return status == COX_OK || fail(film, "a frame was refused", status, n);
    }
    return map_and_steer(film, &frame, &params) == COX_OK;
}

/* --- The caller's thread ------------------------------------------------------------------------------------------ */

enum step { STEP_ANALYSE, STEP_MAP, STEP_END, STEP_WAIT };

/* What can be done now; else what has to come first. */
static enum step next_step(const struct film *film, enum film_wait *wait)
{
    const bool lookahead = film->plan.steering.lookahead;
    const uint64_t ready = lookahead ? film->analysed : film->read;
    if (film->failed || film->stop_reading)
        return STEP_END;
    /* One analysis at a time, one frame ahead: its histogram lies in one of two places until it has steered. */
    if (lookahead && film->analysing < film->read && film->analysing == film->analysed &&
        film->analysing - film->submitted < 2)
        return STEP_ANALYSE;
    const bool devices_busy = film->submitted - film->mapped >= film->plan.session.in_flight;
    const bool output_full = film->submitted - film->written >= film->out.slot_count;
    if (film->submitted < ready && !devices_busy && !output_full)
        return STEP_MAP;
    if (film->read_ended && film->submitted == film->read)
        return STEP_END;
    *wait = devices_busy || (lookahead && film->submitted < film->analysing && film->submitted == film->analysed)
                ? FILM_WAIT_DEVICES
            : output_full && film->submitted < ready ? FILM_WAIT_OUTPUT
                                                     : FILM_WAIT_INPUT;
    return STEP_WAIT;
}

/* Sleep until something happened, with the lock held; let the caller look every now and then. */
static void sleep_for(struct film *film, enum film_wait wait)
{
    struct timespec until;
    const uint64_t before_ns = now_ns();
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 50000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&film->main_wake, &film->lock, &until);
    film->waited_ns[wait] += now_ns() - before_ns;
}

/* The caller's say, without the lock. */
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

/* What is under way comes back and is written. */
static void drain(struct film *film)
{
    const uint64_t before_ns = now_ns();
    if (film->analysis)
        cox_session_wait(film->analysis);
    cox_session_wait(film->mapping);
    film->waited_ns[FILM_WAIT_DEVICES] += now_ns() - before_ns;
    pthread_mutex_lock(&film->lock);
    film->stop_writing = true;
    pthread_cond_signal(&film->writer_wake);
    while (film->writer_runs && !film->write_ended) {
        sleep_for(film, FILM_WAIT_OUTPUT);
        pthread_mutex_unlock(&film->lock);
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
        enum film_wait wait;
        look(film);
        pthread_mutex_lock(&film->lock);
        enum step step = next_step(film, &wait);
        if (step == STEP_WAIT)
            sleep_for(film, wait);
        pthread_mutex_unlock(&film->lock);
        if (step == STEP_END || (step == STEP_ANALYSE && !analyse_one(film)) || (step == STEP_MAP && !map_one(film)))
            break;
    }
    drain(film);
    stop_threads(film);
}

/* --- Beginning and end -------------------------------------------------------------------------------------------- */

static void make_locks(struct film *film)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&film->lock, NULL);
    pthread_cond_init(&film->main_wake, &monotonic);
    pthread_cond_init(&film->reader_wake, NULL);
    pthread_cond_init(&film->writer_wake, NULL);
    pthread_condattr_destroy(&monotonic);
}

/* As few slots as keep everybody at work: what the devices have, and one more that is being read or written; of frames
 * that are lent two will do, since the input has its own. A look ahead has one frame besides. */
static void plan_slots(struct film *film)
{
    struct film_plan *plan = &film->plan;
    struct cox_video_shape *shape = &plan->shape;
    if (!plan->session.in_flight)
        plan->session.in_flight = 2;
    if (plan->steering.on && !plan->steering.lookahead)
        plan->session.in_flight = 1;
    film->in.lent = video_input_lend(plan->input, plan->runtime, film->in.pitch_bytes);
    describe_side(&film->in, plan->runtime, &shape->in, shape->width, shape->height);
    describe_side(&film->out, plan->runtime, &shape->out, plan->out_width, plan->out_height);
    film->in.slot_count = plan->session.in_flight + plan->steering.lookahead;
    film->in.slot_count += !film->in.lent || film->in.slot_count < 2;
    film->out.slot_count = plan->session.in_flight + !plan->discard;
    memcpy(shape->in_pitch_bytes, film->in.pitch_bytes, sizeof shape->in_pitch_bytes);
    memcpy(shape->out_pitch_bytes, film->out.pitch_bytes, sizeof shape->out_pitch_bytes);
}

static cox_status make_sessions(struct film *film)
{
    struct film_plan *plan = &film->plan;
    const struct film_steering *steering = &plan->steering;
    struct cox_video_storage storage;
    struct cox_session_params params = plan->session;
    cox_status status = COX_OK;
    for (uint32_t i = 0; i < 2 && steering->on && status == COX_OK; i++)
        status = cox_buffer_create(plan->runtime, COX_VIDEO_HISTOGRAM_BYTES, &film->histograms[i]);
    if (status == COX_OK)
        status = cox_video_mapping(&plan->shape, steering->on && !steering->lookahead, &storage, &params);
    film->mapping_bindings = params.binding_count;
    if (params.report) {
        params.report = on_report;
        params.report_user = film;
    }
    if (status == COX_OK)
        status = cox_session_create(plan->runtime, &params, &film->mapping);
    if (!steering->lookahead || status != COX_OK)
        return status;
    params = plan->session;
    params.in_flight = 1;
    params.report = NULL;
    status = cox_video_analysis(&plan->shape, &storage, &params);
    film->analysis_bindings = params.binding_count;
    return status == COX_OK ? cox_session_create(plan->runtime, &params, &film->analysis) : status;
}

void film_begin(struct film *film, const struct film_plan *plan)
{
    *film = (struct film){.plan = *plan, .settings = plan->settings};
    make_locks(film);
    plan_slots(film);
}

cox_status film_start(struct film *film)
{
    film->reader_runs = !pthread_create(&film->reader, NULL, read_frames, film);
    return film->reader_runs ? make_sessions(film) : COX_E_SYSTEM;
}

void film_end(struct film *film)
{
    stop_threads(film);
    cox_session_destroy(&film->analysis);
    cox_session_destroy(&film->mapping);
    if (film->in.lent)
        for (uint32_t slot = 0; slot < FILM_SLOTS_MAX; slot++)
            video_input_return(film->plan.input, film->in.slots[slot]);
    video_input_reclaim(film->plan.input);
    free_slots(&film->in);
    free_slots(&film->out);
    for (uint32_t i = 0; i < 2; i++)
        cox_buffer_destroy(&film->histograms[i]);
    free(film->scenes);
    film->scenes = NULL;
    pthread_cond_destroy(&film->writer_wake);
    pthread_cond_destroy(&film->reader_wake);
    pthread_cond_destroy(&film->main_wake);
    pthread_mutex_destroy(&film->lock);
}
