/* A stream: one thread sends frames, one thread receives them in the same order.
 *
 *     send ─► [shape ─► mapper] ─► planes to buffers ─► session ─► done ─► receive
 *
 * `done` runs on the scheduler thread. Frames that were sent and not received are in a list, oldest
 * first. `lock` guards the list and all that the scheduler thread uses. Fields that only the
 * sending thread uses need no lock. Rows are copied without the lock: in on the sending thread, out
 * on the receiving one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/misuse.h"
#include "mapper.h"
#include "options.h"
#include "side.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A frame that was sent. */
struct sent {
    struct sent *next; /* sent after it */
    struct cox_video_stream *stream;
    struct cox__mapper *mapper;
    struct cox__side in, out;
    struct cox_tonemap_options look;
    enum cox__counting counting;
    cox_buffer *histogram;    /* NULL if it is not counted */
    uint32_t histogram_index; /* of the mapper's bindings */
    bool learnt;              /* the curve has followed its histogram already; under the lock */
    bool admitted;
    struct cox__curve curve_before; /* if the frame is refused after its turn */
    struct cox__curve curve;        /* without this frame's light; COX__COUNTING_FIRST */
    bool done;                      /* mapped or failed; under the lock */
    struct cox_video_result result;
};

struct cox_video_stream {
    cox_runtime *runtime;
    bool restarts; /* the next frame begins a scene; only for the thread that sends */
    struct cox__image_devices devices;
    struct cox__mappers mappers;
    struct cox__pool pool;

    /* Used by the sending thread only. */
    struct cox_video_shape wanted_before; /* the shape that the frame before preferred */
    enum cox_transfer transfer_before;    /* the frame before's */

    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    struct cox_tonemap_options look;
    struct cox__curve curve;
    struct sent *oldest, *newest;
    uint32_t on_devices; /* frames that were sent and are not done */
    uint32_t steering;   /* those of them whose light is not known yet */
    bool readable;       /* whether the descriptor is readable */
    struct cox_video_stream_info totals;
    uint64_t frames_sent;
    int descriptor;
};

/* ---- receiving ---- */

/* Make the descriptor readable while the oldest frame is done. Called with the lock held. */
static void show_readable(cox_video_stream *stream)
{
    const bool readable = stream->oldest && stream->oldest->done;
    if (readable == stream->readable)
        return;

    uint64_t count = 1;
    ssize_t moved;
    if (readable)
        moved = write(stream->descriptor, &count, sizeof count);
    else
        moved = read(stream->descriptor, &count, sizeof count);
    if (moved == sizeof count)
        stream->readable = readable;
}

/* A cox_done_fn. */
static void on_done(void *user, uint64_t index, cox_status status)
{
    struct sent *sent = user;
    cox_video_stream *stream = sent->stream;
    (void)index;

    pthread_mutex_lock(&stream->lock);
    sent->result.status = status;
    if (sent->counting == COX__COUNTING_TOO && !sent->learnt && status == COX_OK)
        cox__options_follow_curve(&stream->curve, &sent->look, &sent->mapper->shape,
                                  sent->in.image.image.peak_nits, sent->histogram, &sent->result);
    if (sent->counting == COX__COUNTING_TOO || !sent->learnt)
        stream->steering -= sent->counting != COX__COUNTING_NONE;
    stream->on_devices--;
    sent->done = true;
    show_readable(stream);
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

/* End the use of the application's own buffers. Returns the first error. */
static cox_status end_use(struct sent *sent)
{
    const cox_status in = cox__side_end(&sent->in), out = cox__side_end(&sent->out);

    return in ? in : out;
}

static void free_sent(struct sent *sent)
{
    cox_video_stream *stream = sent->stream;

    end_use(sent);
    cox__side_release(&sent->in, &stream->pool, sent->result.status == COX_OK);
    cox__side_release(&sent->out, &stream->pool, sent->result.status == COX_OK);
    cox__side_pool_give(&stream->pool, &sent->histogram, COX_VIDEO_HISTOGRAM_BYTES,
                        sent->result.status == COX_OK);
    if (sent->mapper)
        atomic_fetch_sub(&sent->mapper->frames, 1);

    free(sent);
}

/* Take the oldest frame off the list if it is done; with `wait`, when it is done.
 * Errors: COX_E_BUSY (it is not done), COX_E_NOT_FOUND (the list is empty). */
static cox_status take_oldest(cox_video_stream *stream, bool wait, struct sent **out)
{
    cox_status status = COX_OK;
    pthread_mutex_lock(&stream->lock);
    while (wait && stream->oldest && !stream->oldest->done)
        pthread_cond_wait(&stream->changed, &stream->lock);

    struct sent *sent = stream->oldest;
    if (!sent) {
        status = COX_E_NOT_FOUND;
    } else if (!sent->done) {
        status = COX_E_BUSY;
    } else {
        stream->oldest = sent->next;
        if (!stream->oldest)
            stream->newest = NULL;
        show_readable(stream);
    }
    pthread_mutex_unlock(&stream->lock);

    *out = sent;
    return status;
}

/* Where a plane is in memory. */
static void *data_of(const struct cox__side *side, uint32_t p)
{
    const struct cox_video_image *image = &side->image.image;
    if (side->place[p] == COX__PLACE_BUFFER)
        return cox_buffer_data(image->memory[p]);

    return image->data[p];
}

cox_status cox_video_stream_receive(cox_video_stream *stream, bool wait,
                                    struct cox_video_result *result)
{
    struct sent *sent;
    if (!stream || !result || cox__misuse(stream->runtime, "cox_video_stream_receive"))
        return COX_E_INVALID;

    const cox_status status = take_oldest(stream, wait, &sent);
    if (status != COX_OK)
        return status;

    struct cox_video_result *about = &sent->result;
    if (about->status == COX_OK)
        cox__side_copy_out(&sent->out);

    const cox_status ended = end_use(sent);
    if (about->status == COX_OK)
        about->status = ended;

    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++)
        about->out_data[p] = data_of(&sent->out, p);
    about->bytes_copied_in = sent->in.copied_bytes;
    about->bytes_copied_out = sent->out.copied_bytes;

    pthread_mutex_lock(&stream->lock);
    stream->totals.bytes_copied_in += about->bytes_copied_in;
    stream->totals.bytes_copied_out += about->bytes_copied_out;
    stream->totals.frames_copied_in += about->bytes_copied_in > 0;
    stream->totals.frames_copied_out += about->bytes_copied_out > 0;
    pthread_mutex_unlock(&stream->lock);

    *result = *about;
    free_sent(sent);
    return COX_OK;
}

/* ---- sending ---- */

/* Whether all pitches suit a plane, because its rows are copied. It has no data if it is only
 * prepared for. */
static bool is_copied(const cox_video_stream *stream, const struct cox__image *image, uint32_t p)
{
    if (!image->image.data[p])
        return !cox__video_image_pitch_suits(image, p, &stream->devices);

    return cox__video_image_place(image, p, &stream->devices) == COX__PLACE_COPY;
}

/* The pitches that a side prefers: its own if devices can use them. `any[p]`: all will do. */
static void like_pitches(const cox_video_stream *stream, const struct cox__image *image,
                         size_t *pitch_bytes, bool *any)
{
    for (uint32_t p = 0; p < image->plane_count; p++) {
        any[p] = is_copied(stream, image, p);
        if (any[p])
            pitch_bytes[p] = cox_runtime_pitch_bytes(stream->runtime, image->planes[p].row_bytes);
        else
            pitch_bytes[p] = (size_t)image->image.pitch_bytes[p];
    }
}

/* The shape to map a frame with: the one that the frame prefers. If that differs from the last one
 * in pitches only, the shape changes after two frames in a row prefer the new one. */
static void choose_shape(cox_video_stream *stream, const struct sent *sent,
                         struct cox_video_shape *shape)
{
    const struct cox__mapper *last = stream->mappers.newest;
    bool any_in[COX_VIDEO_PLANES_MAX] = {false}, any_out[COX_VIDEO_PLANES_MAX] = {false};

    cox__options_shape(&sent->look, &sent->in.image.image, &sent->out.image.image, shape);
    like_pitches(stream, &sent->in.image, shape->in_pitch_bytes, any_in);
    like_pitches(stream, &sent->out.image, shape->out_pitch_bytes, any_out);

    /* Where all pitches will do, keep the last mapper's. */
    const bool alike = last && cox__options_shapes_alike(&last->shape, shape);
    for (uint32_t p = 0; alike && p < COX_VIDEO_PLANES_MAX; p++) {
        if (any_in[p])
            shape->in_pitch_bytes[p] = last->shape.in_pitch_bytes[p];
        if (any_out[p])
            shape->out_pitch_bytes[p] = last->shape.out_pitch_bytes[p];
    }

    const struct cox_video_shape wanted = *shape;
    const bool wanted_twice = cox__options_shapes_alike(&wanted, &stream->wanted_before) &&
                              cox__options_pitches_alike(&wanted, &stream->wanted_before);
    if (alike && !wanted_twice && !cox__mappers_find(&stream->mappers, &wanted, sent->counting))
        *shape = last->shape;

    stream->wanted_before = wanted;
}

/* Wait until it is the frame's turn, and the light of all earlier frames is known. A frame that is
 * counted while it is mapped has the devices to itself. Called with the lock held. */
static void await_turn(cox_video_stream *stream, enum cox__counting counting)
{
    uint32_t most = 1;
    if (counting != COX__COUNTING_TOO)
        most = stream->mappers.params.in_flight;

    while (stream->on_devices >= most || stream->steering)
        pthread_cond_wait(&stream->changed, &stream->lock);
}

/* The buffers of a frame, in the order of its mapper's bindings. */
static void fill_buffers(struct sent *sent, cox_buffer *buffers[COX_BUFFERS_MAX])
{
    uint32_t count = sent->in.image.plane_count;

    memcpy(buffers, sent->in.buffers, count * sizeof *buffers);
    if (sent->in.table)
        buffers[count++] = sent->in.table;
    if (sent->look.lut_table)
        buffers[count++] = sent->look.lut_table;
    memcpy(buffers + count, sent->out.buffers, sent->out.image.plane_count * sizeof *buffers);
    count += sent->out.image.plane_count;

    sent->histogram_index = count;
    if (sent->histogram)
        buffers[count] = sent->histogram;
}

/* Add to settings what comes with the frame. */
static void add_frame_settings(const struct sent *sent, struct cox_video_settings *settings)
{
    settings->reshape = sent->in.image.image.reshape;
    settings->hdr10plus = sent->in.image.image.hdr10plus;
}

/* Map the frame once for its histogram alone. The application does not see this frame. */
static cox_status rehearse(struct sent *sent)
{
    const struct cox__mapper *mapper = sent->mapper;
    cox_buffer *buffers[COX_BUFFERS_MAX] = {NULL};
    struct cox_constants params;
    const struct cox__frame_spec frame = {.buffers = buffers,
                                          .buffer_count = mapper->binding_count,
                                          .params = &params,
                                          .deadline_ns = UINT64_MAX};
    fill_buffers(sent, buffers);
    struct cox_video_settings settings = sent->look.settings;
    add_frame_settings(sent, &settings);

    cox_status status = cox_video_prepare(&mapper->shape, &settings, &params);
    if (status != COX_OK)
        return status;

    cox__mapper_number(sent->mapper, sent->result.frame, true);
    status = cox__session_run(mapper->mapping, &frame);
    if (status != COX_OK)
        return status;

    /* The report of a shadow may come later. */
    return cox_session_wait(mapper->mapping);
}

/* Learn the light of a stream's first frame before it is mapped. */
static cox_status learn_light(struct sent *sent)
{
    cox_video_stream *stream = sent->stream;
    const cox_status status = rehearse(sent);
    if (status != COX_OK)
        return status;

    pthread_mutex_lock(&stream->lock);
    cox__options_follow_curve(&stream->curve, &sent->look, &sent->mapper->shape,
                              sent->in.image.image.peak_nits, sent->histogram, &sent->result);
    sent->learnt = true;
    pthread_mutex_unlock(&stream->lock);
    return COX_OK;
}

/* Note in the result what the frame is mapped with. */
static void note_settings(struct sent *sent, const struct cox_video_settings *settings)
{
    sent->result.peak_nits = settings->peak_nits > 0 ? settings->peak_nits : 1000.0f;
    sent->result.gain = settings->gain > 0 ? settings->gain : 1.0f;
}

/* ---- a frame was counted before it is mapped ---- */

/* The frame on the devices whose histogram is in these buffers. Called with the lock held. */
static struct sent *find_counted(const cox_video_stream *stream, void *const *buffers)
{
    struct sent *sent = stream->oldest;
    while (sent && (sent->done || sent->counting != COX__COUNTING_FIRST ||
                    buffers[sent->histogram_index] != cox_buffer_data(sent->histogram)))
        sent = sent->next;

    return sent;
}

/* A cox_pass_done_fn: give the mapping the curve of the frame's own light. If a frame starts again,
 * its curve follows from the same one as before. */
static void on_counted(void *user, void *const *buffers, void *constants)
{
    cox_video_stream *stream = user;
    struct cox_constants params;

    pthread_mutex_lock(&stream->lock);
    struct sent *sent = find_counted(stream, buffers);
    if (sent) {
        struct cox__curve curve = sent->curve;
        cox__options_follow_curve(&curve, &sent->look, &sent->mapper->shape,
                                  sent->in.image.image.peak_nits, sent->histogram, &sent->result);

        struct cox_video_settings settings = cox__options_curve_settings(&curve, &sent->look);
        add_frame_settings(sent, &settings);
        if (cox_video_prepare(&sent->mapper->shape, &settings, &params) == COX_OK)
            memcpy(constants, &params, sent->mapper->params_bytes);
        note_settings(sent, &settings);

        if (sent == stream->newest)
            stream->curve = curve;
        stream->steering -= !sent->learnt;
        sent->learnt = true;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
}

/* ---- submitting ---- */

/* Put the frame at the end of the list, where the scheduler thread and the receiver find it. Called
 * with the lock held. */
static void append(cox_video_stream *stream, struct sent *sent)
{
    if (stream->newest)
        stream->newest->next = sent;
    else
        stream->oldest = sent;
    stream->newest = sent;

    stream->on_devices++;
    stream->steering += sent->counting != COX__COUNTING_NONE;
    stream->frames_sent++;
}

/* Undo `append` for a frame that was refused. Called with the lock held. */
static void take_off_newest(cox_video_stream *stream, const struct sent *sent)
{
    struct sent *before = stream->oldest == sent ? NULL : stream->oldest;
    while (before && before->next != sent)
        before = before->next;

    if (before)
        before->next = NULL;
    else
        stream->oldest = NULL;
    stream->newest = before;

    stream->on_devices--;
    stream->steering -= sent->counting != COX__COUNTING_NONE;
    stream->frames_sent--;
    pthread_cond_broadcast(&stream->changed);
}

/* The parameters of the frame's mapping, and what the result says about them. */
static cox_status prepare(struct sent *sent, const struct cox_constants **params)
{
    cox_video_stream *stream = sent->stream;
    struct cox_video_settings settings = sent->look.settings;
    if (sent->counting != COX__COUNTING_FIRST) {
        pthread_mutex_lock(&stream->lock);
        settings = cox__options_curve_settings(&stream->curve, &sent->look);
        pthread_mutex_unlock(&stream->lock);
    }
    add_frame_settings(sent, &settings);

    const cox_status status = cox__mapper_prepare(sent->mapper, &settings, params);
    if (status == COX_OK)
        note_settings(sent, &settings);
    return status;
}

static cox_status submit(struct sent *sent)
{
    cox_video_stream *stream = sent->stream;
    cox_buffer *buffers[COX_BUFFERS_MAX] = {NULL};
    const struct cox_constants *params;
    struct cox__frame_spec frame = {.buffers = buffers,
                                    .buffer_count = sent->mapper->binding_count};
    fill_buffers(sent, buffers);
    cox_status status = prepare(sent, &params);
    if (status != COX_OK)
        return status;

    frame.params = params;
    pthread_mutex_lock(&stream->lock);
    append(stream, sent);
    pthread_mutex_unlock(&stream->lock);

    cox__mapper_number(sent->mapper, sent->result.frame, false);
    status = cox__session_submit(sent->mapper->mapping, &frame, on_done, sent);
    if (status == COX_OK)
        return COX_OK;

    cox__mapper_take_back(sent->mapper);
    pthread_mutex_lock(&stream->lock);
    take_off_newest(stream, sent);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

static cox_status find_mapper(struct sent *sent)
{
    struct cox_video_shape shape;

    choose_shape(sent->stream, sent, &shape);
    const cox_status status = cox__mappers_use(&sent->stream->mappers, &shape, sent->counting,
                                               &sent->mapper);
    if (status != COX_OK) {
        sent->mapper = NULL;
        return status;
    }

    atomic_fetch_add(&sent->mapper->frames, 1);
    return COX_OK;
}

/* Find the black bars of the frame. */
static void find_bars(struct sent *sent)
{
    const void *data[COX_VIDEO_PLANES_MAX] = {NULL};
    for (uint32_t p = 0; p < sent->in.image.plane_count; p++)
        data[p] = data_of(&sent->in, p);

    cox_video_find_bars(&sent->mapper->shape, data, sent->in.image.image.pitch_bytes,
                        &sent->look.settings);
}

/* Get what the frame needs: a mapper, buffers, and its light if the curve has not begun. */
static cox_status make_ready(struct sent *sent)
{
    cox_video_stream *stream = sent->stream;
    cox_status status = find_mapper(sent);
    if (status == COX_OK)
        status = cox__side_begin(&sent->in, false);
    if (status == COX_OK)
        status = cox__side_begin(&sent->out, true);
    if (status == COX_OK)
        status = cox__side_bind(&sent->in, &stream->devices, sent->mapper->shape.in_pitch_bytes,
                                &stream->pool);
    if (status == COX_OK)
        status = cox__side_bind(&sent->out, &stream->devices, sent->mapper->shape.out_pitch_bytes,
                                &stream->pool);
    if (status == COX_OK && sent->counting != COX__COUNTING_NONE)
        status = cox__side_pool_take(&stream->pool, COX_VIDEO_HISTOGRAM_BYTES, &sent->histogram);
    if (status != COX_OK)
        return status;

    cox__side_copy_in(&sent->in);
    find_bars(sent);
    if (sent->counting == COX__COUNTING_TOO && !stream->curve.begun)
        status = learn_light(sent);
    return status;
}

static enum cox__counting counting_of(const struct cox_tonemap_options *look)
{
    switch (look->peak) {
    case COX_PEAK_PREVIOUS:
        return COX__COUNTING_TOO;
    case COX_PEAK_CURRENT:
        return COX__COUNTING_FIRST;
    default:
        return COX__COUNTING_NONE;
    }
}

static enum cox_transfer transfer_of(const struct sent *sent)
{
    const struct cox_video_image *in = &sent->in.image.image;

    return in->reshape ? COX_TRANSFER_PQ : in->transfer;
}

/* Read a frame's description, and wait for its turn. */
static cox_status admit(cox_video_stream *stream, const struct cox_video_image *in,
                        const struct cox_video_image *out, struct sent *sent)
{
    sent->stream = stream;

    cox_status status = cox__video_image_read(&sent->in.image, in, "a frame's input",
                                              stream->runtime);
    if (status == COX_OK)
        status = cox__video_image_read(&sent->out.image, out, "a frame's output", stream->runtime);
    if (status != COX_OK)
        return status;
    sent->out.image.image.reshape = NULL; /* these are of input */
    sent->out.image.image.hdr10plus = NULL;

    pthread_mutex_lock(&stream->lock);
    sent->look = stream->look;
    sent->counting = counting_of(&sent->look);
    await_turn(stream, sent->counting);
    sent->admitted = true;
    sent->curve_before = stream->curve;
    if (stream->restarts || transfer_of(sent) != stream->transfer_before)
        memset(&stream->curve, 0, sizeof stream->curve);
    sent->curve = stream->curve;
    sent->result.frame = stream->frames_sent;
    pthread_mutex_unlock(&stream->lock);
    return COX_OK;
}

/* Drop a frame that was not taken, and restore the curve. */
static void forget(struct sent *sent, cox_status why)
{
    cox_video_stream *stream = sent->stream;

    /* No other frame steers during the turn of one that does. */
    pthread_mutex_lock(&stream->lock);
    if (sent->admitted)
        stream->curve = sent->curve_before;
    pthread_mutex_unlock(&stream->lock);

    sent->result.status = why; /* a device may still use its buffers */
    free_sent(sent);
}

cox_status cox_video_stream_send(cox_video_stream *stream, const struct cox_video_image *in,
                                 const struct cox_video_image *out, void *user)
{
    if (!stream || cox__misuse(stream->runtime, "cox_video_stream_send"))
        return COX_E_INVALID;

    struct sent *sent = calloc(1, sizeof *sent);
    if (!sent)
        return COX_E_NOMEM;

    sent->result.user = user;
    cox_status status = admit(stream, in, out, sent);
    const enum cox_transfer transfer = transfer_of(sent);
    if (status == COX_OK)
        status = make_ready(sent);
    if (status == COX_OK)
        status = submit(sent);

    if (status != COX_OK) {
        forget(sent, status);
        return status;
    }

    /* From here on the frame may have been received. */
    stream->restarts = false;
    stream->transfer_before = transfer;
    return COX_OK;
}

void cox_video_stream_restart(cox_video_stream *stream)
{
    if (stream)
        stream->restarts = true;
}

cox_status cox_video_stream_prepare(cox_video_stream *stream, const struct cox_video_image *in,
                                    const struct cox_video_image *out)
{
    if (!stream || cox__misuse(stream->runtime, "cox_video_stream_prepare"))
        return COX_E_INVALID;

    struct sent *sent = calloc(1, sizeof *sent);
    if (!sent)
        return COX_E_NOMEM;

    sent->stream = stream;
    pthread_mutex_lock(&stream->lock);
    sent->look = stream->look;
    sent->counting = counting_of(&sent->look);
    pthread_mutex_unlock(&stream->lock);

    cox_status status = cox__video_image_describe(&sent->in.image, in, "the input to prepare for",
                                                  stream->runtime);
    if (status == COX_OK)
        status = cox__video_image_describe(&sent->out.image, out, "the output to prepare for",
                                           stream->runtime);

    /* There are no frames yet: their memory does not count. */
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        sent->in.image.image.data[p] = sent->out.image.image.data[p] = NULL;
        sent->in.image.image.memory[p] = sent->out.image.image.memory[p] = NULL;
    }
    if (status == COX_OK)
        status = find_mapper(sent);

    free_sent(sent);
    return status;
}

/* ---- the stream itself ---- */

/* Log a look that cannot be used. Returns `status`. */
static cox_status log_look(const cox_video_stream *stream, cox_status status)
{
    if (status == COX_E_INVALID)
        cox__log(&stream->runtime->log, COX_LOG_ERROR,
                 "a stream's look: a field is out of range (see cox_video_mapping and "
                 "cox_video_prepare)");

    return status;
}

cox_status cox_video_stream_create(cox_runtime *runtime, const struct cox_session_params *session,
                                   const struct cox_tonemap_options *look, cox_video_stream **out)
{
    if (out)
        *out = NULL;
    if (!runtime || cox__misuse_null(runtime, out, "cox_video_stream_create", "out") ||
        cox__misuse(runtime, "cox_video_stream_create"))
        return COX_E_INVALID;

    cox_video_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return COX_E_NOMEM;

    stream->runtime = runtime;
    cox__video_image_devices_read(runtime, &stream->devices);
    cox__side_pool_init(&stream->pool, runtime);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    stream->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    cox_status status = cox__mappers_init(&stream->mappers, runtime, session);
    stream->mappers.counted = on_counted;
    stream->mappers.counted_user = stream;
    if (status == COX_OK)
        status = log_look(stream, cox__options_read(&stream->look, look));
    if (status == COX_OK && stream->descriptor < 0)
        status = COX_E_SYSTEM;
    if (status != COX_OK) {
        cox_video_stream_destroy(&stream);
        return status;
    }

    *out = stream;
    return COX_OK;
}

void cox_video_stream_destroy(cox_video_stream **out)
{
    if (!out || !*out)
        return;

    cox_video_stream *stream = *out;
    if (cox__misuse(stream->runtime, "cox_video_stream_destroy"))
        return;

    *out = NULL;
    cox__mappers_cancel(&stream->mappers);
    struct sent *sent;
    while (take_oldest(stream, true, &sent) == COX_OK)
        free_sent(sent);

    cox__mappers_clear(&stream->mappers);
    cox__side_pool_clear(&stream->pool);
    if (stream->descriptor >= 0)
        close(stream->descriptor);

    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

cox_status cox_video_stream_set(cox_video_stream *stream, const struct cox_tonemap_options *from)
{
    struct cox_tonemap_options look;
    if (!stream || cox__misuse_null(stream->runtime, from, "cox_video_stream_set", "look"))
        return COX_E_INVALID;

    const cox_status status = log_look(stream, cox__options_read(&look, from));
    if (status != COX_OK)
        return status;

    pthread_mutex_lock(&stream->lock);
    stream->look = look;
    pthread_mutex_unlock(&stream->lock);
    return COX_OK;
}

int cox_video_stream_descriptor(const cox_video_stream *stream)
{
    return stream ? stream->descriptor : -1;
}

void cox_video_stream_cancel(cox_video_stream *stream)
{
    if (stream)
        cox__mappers_cancel(&stream->mappers);
}

void cox_video_stream_info(cox_video_stream *stream, struct cox_video_stream_info *info)
{
    if (!info)
        return;

    *info = (struct cox_video_stream_info){0};
    if (!stream)
        return;

    pthread_mutex_lock(&stream->lock);
    *info = stream->totals;
    pthread_mutex_unlock(&stream->lock);
    info->sessions_made = atomic_load(&stream->mappers.made);
}

void cox_video_stream_session_info(cox_video_stream *stream, struct cox_session_info *info)
{
    if (!info)
        return;

    *info = (struct cox_session_info){0};
    if (stream)
        cox__mappers_session_info(&stream->mappers, info);
}
