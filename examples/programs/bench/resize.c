/* cox-bench resize: what a change of the frame size costs a stream. 1080p and 720p video is
 * tone-mapped in turn, with three frames in flight. By hand, each change creates a session for the
 * new size while frames of the old one run, with the old session as its warm_start and without. A
 * cox_video_stream keeps its sessions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"
#include "common/quantiles.h"
#include "common/now.h"
#include "json_members.h"
#include "message.h"
#include "session.h"
#include "open_runtime.h"
#include "stream_frames.h"

#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

enum {
    SIZES = 2,
    IN_FLIGHT = 3,
    SETS = IN_FLIGHT + 1,
    CHANGES = 20,
    FRAMES = 30,
    FRAMES_MAX = 1000,
    ABOUT = 4,
    FORMS = 3
};

static const uint32_t widths[SIZES] = {1920, 1280}, heights[SIZES] = {1080, 720};
static const double bar_frames = 2;

/* Deliveries in order. The scheduler thread writes them; they are read when no frame is in
 * flight. */
struct deliveries {
    uint32_t count;
    cox_status status;
    uint64_t at_ns[(CHANGES + 1) * FRAMES_MAX];
};

enum form_kind { FORM_STREAM, FORM_PREDECESSOR, FORM_NONE };
static const char *const form_names[FORMS] = {"stream", "predecessor", "none"};
static const char *const form_texts[FORMS] = {"a cox_video_stream", "with its predecessor",
                                              "without"};

struct form {
    double create_ms[CHANGES], gap_ms[CHANGES], gap_frames[CHANGES];
};

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct deliveries *deliveries = user;
    (void)frame;
    deliveries->at_ns[deliveries->count++] = now_ns();
    if (deliveries->status == COX_OK)
        deliveries->status = status;
}

/* A size of the video. */
struct size {
    struct stream_frames frames;
    cox_pipeline *pipeline;
    struct cox_constants constants;
};

static cox_status create_session(cox_runtime *runtime, const struct size *size,
                                 cox_session *warm_start, cox_session **session)
{
    return bench_session_create(runtime,
                                &(const struct cox_session_params){.pipeline = size->pipeline,
                                                                   .in_flight = IN_FLIGHT,
                                                                   .warm_start = warm_start},
                                session);
}

static cox_status submit_frames(cox_session *session, struct size *size, uint32_t frames,
                                struct deliveries *deliveries)
{
    cox_status status = COX_OK;

    for (uint32_t i = 0; i < frames && status == COX_OK; i++)
        status =
            cox_session_submit(session,
                               &(const struct cox_frame){.buffers = size->frames.buffers[i % SETS],
                                                         .constants = &size->constants},
                               on_done, deliveries);

    return status;
}

/* Find the longest time between two deliveries from the last one before frame `first` to a few
 * after it, and its ratio to the usual time after them. */
static void look_at_change(const struct deliveries *deliveries, uint32_t first, uint32_t frames,
                           double *gap_ms, double *gap_frames)
{
    double longest = 0;

    for (uint32_t i = 0; i < ABOUT; i++) {
        const double between = (double)(deliveries->at_ns[first + i] -
                                        deliveries->at_ns[first + i - 1]);
        longest = fmax(longest, between);
    }

    /* The usual time is a mean: if two frames end together, the second one takes no time. */
    const uint64_t rest_ns = deliveries->at_ns[first + frames - 1] -
                             deliveries->at_ns[first + ABOUT - 1];
    *gap_ms = longest / 1e6;
    *gap_frames = longest / ((double)rest_ns / (frames - ABOUT));
}

/* A stream of sessions. The first session exists when the changes begin, so all kernels are
 * compiled. */
static cox_status by_hand(cox_runtime *runtime, struct size *sizes, uint32_t frames,
                          bool warm_start, struct deliveries *deliveries, struct form *form)
{
    cox_session *session = NULL, *next = NULL;

    *deliveries = (struct deliveries){0};
    cox_status status = create_session(runtime, &sizes[0], NULL, &session);
    if (status == COX_OK)
        status = submit_frames(session, &sizes[0], frames, deliveries);
    for (uint32_t c = 0; c < CHANGES && status == COX_OK; c++) {
        struct size *size = &sizes[(c + 1) % SIZES];
        const uint64_t began = now_ns();
        status = create_session(runtime, size, warm_start ? session : NULL, &next);
        form->create_ms[c] = (double)(now_ns() - began) / 1e6;
        if (status == COX_OK)
            status = cox_session_wait(session); /* keep deliveries in order */
        if (status == COX_OK)
            status = submit_frames(next, size, frames, deliveries);
        bench_session_destroy(&session);
        session = next;
        next = NULL;
    }

    bench_session_destroy(&session);
    if (status)
        return status;

    return deliveries->status;
}

/* The planes of one set of buffers. */
static void describe_images(const struct stream_frames *frames, uint32_t set,
                            struct cox_video_image images[2])
{
    const struct cox_video_format formats[2] = {frames->video.in, frames->video.out};

    for (uint32_t side = 0; side < 2; side++) {
        struct cox_video_image *image = &images[side];
        *image = (struct cox_video_image){
            .format = formats[side], .width = frames->width, .height = frames->height};
        for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
            const uint32_t b = side * COX_VIDEO_PLANES_MAX + p;
            image->memory[p] = frames->buffers[set][b];
            image->data[p] = cox_buffer_data(image->memory[p]);
            image->pitch_bytes[p] = (ptrdiff_t)frames->planes[b].pitch_bytes;
        }
    }
}

struct sending {
    cox_video_stream *stream;
    struct size *sizes;
    uint32_t frames; /* of each size */
    struct form *form;
    cox_status status;
};

static void *send_frames(void *user)
{
    struct sending *sending = user;
    struct cox_video_image images[2];

    for (uint32_t n = 0; n < (CHANGES + 1) * sending->frames && sending->status == COX_OK; n++) {
        const uint64_t began = now_ns();
        describe_images(&sending->sizes[n / sending->frames % SIZES].frames, n % SETS, images);
        sending->status = cox_video_stream_send(sending->stream, &images[0], &images[1], NULL);
        if (n >= sending->frames && n % sending->frames == 0)
            sending->form->create_ms[n / sending->frames - 1] = (double)(now_ns() - began) / 1e6;
    }

    return NULL;
}

/* Another thread sends; this one notes when frames are delivered. */
static cox_status as_stream(cox_runtime *runtime, struct size *sizes, uint32_t frames,
                            struct deliveries *deliveries, struct form *form)
{
    struct sending sending = {.sizes = sizes, .frames = frames, .form = form};
    struct cox_video_result result;
    pthread_t thread;

    *deliveries = (struct deliveries){0};
    cox_status status =
        cox_video_stream_create(runtime, &(const struct cox_session_params){.in_flight = IN_FLIGHT},
                                &(const struct cox_tonemap_options){
                                    .op = COX_OPERATOR_BT2390,
                                    .peak = COX_PEAK_FIXED,
                                    .settings = {.peak_nits = 1000, .desaturate = -1}},
                                &sending.stream);
    if (status)
        return status;

    const int descriptor = cox_video_stream_descriptor(sending.stream);
    if (pthread_create(&thread, NULL, send_frames, &sending))
        status = COX_E_SYSTEM;
    while (status == COX_OK && deliveries->count < (CHANGES + 1) * frames) {
        struct pollfd waits = {.fd = descriptor, .events = POLLIN};
        if (poll(&waits, 1, 10000) != 1)
            status = COX_E_TIMEOUT;
        else if (cox_video_stream_receive(sending.stream, false, &result) == COX_OK)
            on_done(deliveries, 0, result.status);
    }

    if (status != COX_E_SYSTEM)
        pthread_join(thread, NULL);
    bench_session_destroy_stream(&sending.stream);
    if (status == COX_OK)
        status = sending.status;
    if (status == COX_OK)
        status = deliveries->status;

    return status;
}

static void print_json(struct form *forms, uint32_t frames, double create_ms)
{
    struct json json;

    json_begin(&json, stdout);
    json_open_object(&json, false);
    json_member_unsigned(&json, "frames", frames);
    json_member_number(&json, "first_create_ms", create_ms);

    for (int f = 0; f < FORMS; f++) {
        json_member_object(&json, form_names[f], true);
        json_member_number(&json, "create_ms", quantile_of(forms[f].create_ms, CHANGES, 0.5));
        json_member_number(&json, "gap_ms", quantile_of(forms[f].gap_ms, CHANGES, 0.5));
        json_member_number(&json, "gap_frames", quantile_of(forms[f].gap_frames, CHANGES, 0.5));
        json_member_number(&json, "gap_frames_worst", quantile_of(forms[f].gap_frames, CHANGES, 1));
        json_close_object(&json);
    }

    json_report_end(&json);
}

static void print_text(struct form *forms, uint32_t frames, double create_ms, bool met)
{
    printf("1080p and 720p in turns, %d changes, %u frames after each; creating the first "
           "session took %.1f ms\n",
           CHANGES, frames, create_ms);

    for (int f = 0; f < FORMS; f++)
        printf("%-22s create %6.2f ms, longest gap %7.2f ms = %.2f frames (medians; worst %.2f "
               "frames)\n",
               form_texts[f], quantile_of(forms[f].create_ms, CHANGES, 0.5),
               quantile_of(forms[f].gap_ms, CHANGES, 0.5),
               quantile_of(forms[f].gap_frames, CHANGES, 0.5),
               quantile_of(forms[f].gap_frames, CHANGES, 1));

    printf("bar: at most %g frames, %s\n", bar_frames, met ? "met" : "missed");
}

/* Compile the kernels with a first session, which takes `create_ms`, then run all forms. */
static cox_status measure(cox_runtime *runtime, struct size *sizes, uint32_t frames,
                          double *create_ms, struct form *forms)
{
    static struct deliveries deliveries; /* too large for a stack */
    cox_session *first = NULL;
    const uint64_t began = now_ns();
    cox_status status = create_session(runtime, &sizes[0], NULL, &first);
    *create_ms = (double)(now_ns() - began) / 1e6;
    if (status == COX_OK)
        status = submit_frames(first, &sizes[0], frames, &deliveries);
    bench_session_destroy(&first);

    for (int f = 0; f < FORMS && status == COX_OK; f++) {
        struct form *form = &forms[f];

        if (f == FORM_STREAM)
            status = as_stream(runtime, sizes, frames, &deliveries, form);
        else
            status = by_hand(runtime, sizes, frames, f == FORM_PREDECESSOR, &deliveries, form);
        for (uint32_t c = 0; c < CHANGES && status == COX_OK; c++)
            look_at_change(&deliveries, (c + 1) * frames, frames, &form->gap_ms[c],
                           &form->gap_frames[c]);
    }

    return status;
}

static bool make_size(struct size *size, cox_runtime *runtime, uint32_t index)
{
    const struct bench_options of = {.width = widths[index], .height = heights[index]};

    return stream_frames_make(&size->frames, runtime, &of, SETS) &&
           bench_good(stream_frames_mapping(&size->frames, &size->pipeline, &size->constants),
                      "video");
}

bool bench_resize(const struct bench_options *options, bool *met)
{
    static struct size sizes[SIZES];
    static struct form forms[FORMS];
    const uint32_t frames = bench_value(options->frames, FRAMES);
    cox_runtime *runtime = NULL;
    double create_ms = 0;

    if (frames > FRAMES_MAX)
        return bench_fail("--frames: must be at most %d for resize", FRAMES_MAX);
    if (!bench_open_runtime(options, COX_ARITHMETIC_AUTO, &runtime))
        return false;

    bool good = true;
    for (uint32_t s = 0; s < SIZES && good; s++)
        good = make_size(&sizes[s], runtime, s);

    good = good && bench_good(measure(runtime, sizes, frames, &create_ms, forms), NULL);
    for (uint32_t s = 0; s < SIZES; s++) {
        cox_pipeline_destroy(&sizes[s].pipeline);
        stream_frames_free(&sizes[s].frames);
    }

    cox_runtime_destroy(&runtime);
    if (!good)
        return false;
    *met = quantile_of(forms[FORM_STREAM].gap_frames, CHANGES, 0.5) <= bar_frames;
    if (options->json)
        print_json(forms, frames, create_ms);
    else
        print_text(forms, frames, create_ms, *met);

    return true;
}
