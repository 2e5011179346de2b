/* An application with a poll loop of its own, on real OpenCL devices, through public headers only.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/captured_log.h"
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>

TestSuite(api_dispatch, .timeout = 600);

enum { ROWS = 64, COLUMNS = 50, POOL = 4, IN_FLIGHT = 3, STREAMS = 2 };

static const char source[] =
    "kernel void raise(global const uint *in, global uint *out, int columns, int rows, uint pitch, uint add) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows)\n"
    "        out[y * pitch + x] = in[y * pitch + x] + add;\n"
    "}\n";

struct raise_params {
    uint32_t pitch;
    uint32_t add;
};

/* One session and its frames, which are used in turn. */
struct stream {
    cox_session *session;
    uint32_t pitch; /* in elements */
    cox_buffer *in[POOL], *out[POOL];
    uint32_t target;    /* frames in all */
    uint32_t submitted; /* of them */
    uint32_t done;
    uint32_t busy;    /* submissions that were refused */
    bool chains;      /* callbacks submit the frames after the first ones */
    pthread_t thread; /* callbacks are to run on it */
};

static cox_runtime *open_runtime(void)
{
    cox_runtime *runtime = NULL;
    const cox_status status = cox_runtime_create(&runtime, COX_RUNTIME_PARAMS(.log = on_log));
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE)
        cr_skip_test("skipped, because there is no OpenCL device: %s", cox_status_text(status));
    cr_assert_eq(status, COX_OK, "%s\n%s", cox_status_name(status), logged);
    return runtime;
}

static void open_stream(struct stream *stream, cox_runtime *runtime, uint32_t target)
{
    const size_t pitch_bytes = cox_runtime_pitch_bytes(runtime, COLUMNS * sizeof(uint32_t));
    const struct cox_binding bindings[] = {{.name = "in", .access = COX_READ, .pitch_bytes = pitch_bytes},
                                           {.name = "out", .access = COX_WRITE, .pitch_bytes = pitch_bytes}};
    const struct cox_arg args[] = {COX_ARG_BUFFER(0),
                                   COX_ARG_BUFFER(1),
                                   COX_ARG_COLUMNS,
                                   COX_ARG_ROWS,
                                   COX_ARG_FIELD(struct raise_params, pitch),
                                   COX_ARG_FIELD(struct raise_params, add)};
    const struct cox_variant variant = {.source = source, .local_columns = 32};
    const struct cox_stage stage = {
        .kernel = "raise", .columns = COLUMNS, .variant_count = 1, .variants = &variant, .arg_count = 6, .args = args};
    *stream = (struct stream){
        .pitch = (uint32_t)(pitch_bytes / sizeof(uint32_t)), .target = target, .thread = pthread_self()};
    cr_assert_eq(cox_session_create(runtime,
                                    COX_SESSION_PARAMS(.rows = ROWS, .binding_count = 2, .bindings = bindings,
                                                       .stage_count = 1, .stages = &stage,
                                                       .params_bytes = sizeof(struct raise_params),
                                                       .in_flight = IN_FLIGHT, .dispatch = true),
                                    &stream->session),
                 COX_OK, "%s", logged);
    for (uint32_t i = 0; i < POOL; i++) {
        cr_assert_eq(cox_buffer_create(runtime, ROWS * pitch_bytes, &stream->in[i]), COX_OK);
        cr_assert_eq(cox_buffer_create(runtime, ROWS * pitch_bytes, &stream->out[i]), COX_OK);
        uint32_t *in = cox_buffer_data(stream->in[i]);
        for (uint32_t e = 0; e < ROWS * stream->pitch; e++)
            in[e] = 7 * e + i;
    }
}

static void close_stream(struct stream *stream)
{
    cox_session_destroy(&stream->session);
    cr_assert_eq(stream->done, stream->target, "each callback has run once");
    for (uint32_t i = 0; i < POOL; i++) {
        cox_buffer_destroy(&stream->in[i]);
        cox_buffer_destroy(&stream->out[i]);
    }
}

/* What frame `number` writes; each frame raises by its number. */
static void check(const struct stream *stream, uint32_t number)
{
    const uint32_t *in = cox_buffer_data(stream->in[number % POOL]), *out = cox_buffer_data(stream->out[number % POOL]);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < COLUMNS; c++)
            cr_assert_eq(out[r * stream->pitch + c], in[r * stream->pitch + c] + number);
}

static void on_done(void *user, uint64_t frame, cox_status status);

static cox_status submit(struct stream *stream)
{
    const uint32_t i = stream->submitted % POOL;
    cox_buffer *const buffers[] = {stream->in[i], stream->out[i]};
    const struct raise_params params = {.pitch = stream->pitch, .add = stream->submitted};
    const cox_status status = cox_session_submit(stream->session,
                                                 COX_FRAME(.buffers = buffers, .buffer_count = 2, .params = &params),
                                                 on_done, stream);
    stream->submitted += status == COX_OK;
    return status;
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct stream *stream = user;
    cr_assert(pthread_equal(pthread_self(), stream->thread), "on the thread of the loop");
    cr_assert_eq(frame, stream->done, "in order, none twice");
    cr_assert_eq(status, COX_OK);
    check(stream, stream->done);
    stream->done++;
    if (stream->chains && stream->submitted < stream->target)
        cr_assert_eq(submit(stream), COX_OK);
}

/* Give the session what it takes. */
static void feed(struct stream *stream)
{
    while (stream->submitted < stream->target) {
        const cox_status status = submit(stream);
        if (status == COX_E_BUSY) {
            stream->busy++;
            return;
        }
        cr_assert_eq(status, COX_OK);
    }
}

/* An application's loop: nothing but poll blocks. */
static void loop(struct stream *streams, uint32_t count)
{
    struct pollfd on[STREAMS];
    for (uint32_t s = 0; s < count; s++) {
        on[s] = (struct pollfd){.fd = cox_session_descriptor(streams[s].session), .events = POLLIN};
        cr_assert_geq(on[s].fd, 0);
        feed(&streams[s]);
    }
    for (uint32_t left = count; left > 0;) {
        cr_assert_gt(poll(on, count, -1), 0);
        left = 0;
        for (uint32_t s = 0; s < count; s++) {
            if (on[s].revents & POLLIN)
                cr_assert_gt(cox_session_dispatch(streams[s].session, 0), 0, "readable means that there are some");
            if (!streams[s].chains)
                feed(&streams[s]);
            left += streams[s].done < streams[s].target;
        }
    }
    cr_assert_eq(poll(on, count, 0), 0, "nothing is left");
}

Test(api_dispatch, a_poll_loop_runs_the_callbacks_of_its_session_in_order)
{
    struct stream stream;
    cox_runtime *runtime = open_runtime();
    open_stream(&stream, runtime, 60);
    loop(&stream, 1);
    cr_assert_geq(stream.busy, 1, "more frames were offered than have a place");
    close_stream(&stream);
    cox_runtime_destroy(&runtime);
}

Test(api_dispatch, one_poll_loop_serves_two_sessions)
{
    struct stream streams[STREAMS];
    cox_runtime *runtime = open_runtime();
    for (uint32_t s = 0; s < STREAMS; s++)
        open_stream(&streams[s], runtime, 30 + 20 * s);
    cr_assert_neq(cox_session_descriptor(streams[0].session), cox_session_descriptor(streams[1].session));
    loop(streams, STREAMS);
    for (uint32_t s = 0; s < STREAMS; s++)
        close_stream(&streams[s]);
    cox_runtime_destroy(&runtime);
}

Test(api_dispatch, callbacks_submit_the_next_frames)
{
    struct stream stream;
    cox_runtime *runtime = open_runtime();
    open_stream(&stream, runtime, 2);
    feed(&stream);
    stream.chains = true;
    stream.target = 60;
    loop(&stream, 1);
    close_stream(&stream);
    cox_runtime_destroy(&runtime);
}

Test(api_dispatch, a_full_session_refuses_frames_until_callbacks_have_run)
{
    struct stream stream;
    cox_runtime *runtime = open_runtime();
    open_stream(&stream, runtime, IN_FLIGHT);
    feed(&stream);
    cr_assert_eq(submit(&stream), COX_E_BUSY);
    cr_assert_eq(cox_session_wait(stream.session), COX_OK);
    cr_assert_eq(submit(&stream), COX_E_BUSY);
    cr_assert_eq(cox_session_dispatch(stream.session, 0), IN_FLIGHT);
    stream.target++;
    cr_assert_eq(submit(&stream), COX_OK);
    cr_assert_eq(cox_session_dispatch(stream.session, UINT64_MAX), 1);
    close_stream(&stream);
    cox_runtime_destroy(&runtime);
}

Test(api_dispatch, cox_session_wait_and_run_go_on_without_callbacks)
{
    struct stream stream;
    cox_runtime *runtime = open_runtime();
    open_stream(&stream, runtime, 2);
    feed(&stream);
    const struct raise_params params = {.pitch = stream.pitch, .add = 1000};
    cox_buffer *const buffers[] = {stream.in[2], stream.out[2]};
    cr_assert_eq(cox_session_run(stream.session, COX_FRAME(.buffers = buffers, .buffer_count = 2, .params = &params)),
                 COX_OK);
    cr_assert_eq(*(const uint32_t *)cox_buffer_data(stream.out[2]),
                 *(const uint32_t *)cox_buffer_data(stream.in[2]) + 1000);
    cr_assert_eq(cox_session_wait(stream.session), COX_OK);
    cr_assert_eq(stream.done, 0);
    cr_assert_eq(cox_session_dispatch(stream.session, UINT64_MAX), 2);
    cr_assert_eq(cox_session_dispatch(stream.session, UINT64_MAX), 0, "no frame is under way");
    close_stream(&stream);
    cox_runtime_destroy(&runtime);
}

/* Whether or not it is delivered. */
Test(api_dispatch, destroying_the_session_runs_what_is_left_on_this_thread)
{
    cox_runtime *runtime = open_runtime();
    for (uint32_t waits = 0; waits < 2; waits++) {
        struct stream stream;
        open_stream(&stream, runtime, IN_FLIGHT);
        feed(&stream);
        if (waits)
            cox_session_wait(stream.session);
        close_stream(&stream);
    }
    cox_runtime_destroy(&runtime);
}
