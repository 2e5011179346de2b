/* Lifetimes of sessions. Each is a part of this file:
 *   Many threads submit to sessions of all shapes on one runtime.
 *   Callbacks submit the next frame.
 *   Callbacks that take long block the scheduler thread.
 *   Sessions are destroyed with frames in flight, while a second runtime works.
 *
 * Plain program, for ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "race.h"

#include <stdatomic.h>

enum { ROUNDS = 30, COLUMNS = 16, FRAMES = 6, CHAIN = 40 };

static const struct fake_params devices = {.device_count = 3,
                                           .real_time = true,
                                           .devices = {{.fixed_ns = 20e3, .ns_per_row = 1e3},
                                                       {.mode = COX_MODE_STAGED, .fixed_ns = 50e3},
                                                       {.ns_per_row = 2e3, .jitter = 0.5}}};

/* ---- many threads, one session of each shape ---- */

struct stream {
    cox_session *session;
    uint64_t next; /* not atomic: a session's callbacks run one after the other */
};

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct stream *stream = user;
    CHECK(frame == stream->next);
    CHECK(status == COX_OK);
    stream->next++;
    if (frame % 16 == 3)
        race_rest(2000000); /* blocks the scheduler thread; accepted frames must still complete */
}

struct submitter {
    struct rig *rig;
    struct stream *streams;
    uint32_t number;
    uint32_t accepted[SHAPES];
};

static uint32_t rows_of(enum shape shape)
{
    return 24 + 5 * (uint32_t)shape;
}

static void *submit_to_all(void *data)
{
    struct submitter *submitter = data;
    struct shape_frames *frames[SHAPES];
    uint64_t seed = submitter->number;
    for (uint32_t s = 0; s < SHAPES; s++)
        frames[s] = shape_frames_new(submitter->rig, (enum shape)s, rows_of((enum shape)s), COLUMNS, FRAMES);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint32_t s = (uint32_t)(rig_random(&seed) % SHAPES);
        cox_session *session = submitter->streams[s].session;
        for (uint32_t i = 0; i < FRAMES; i++) {
            struct cox__frame_spec frame = shape_frame(frames[s], i);
            frame.nowait = rig_random(&seed) % 2;
            shape_prepare(frames[s], i);
            cox_status status;
            while ((status = cox__session_submit(session, &frame, on_done, &submitter->streams[s])) == COX_E_BUSY)
                race_rest(20000);
            CHECK(status == COX_OK);
            submitter->accepted[s]++;
        }
        /* Several threads may wait here at once. Frames of other threads delay this one only while they run. */
        cox_session_wait(session);
        for (uint32_t i = 0; i < FRAMES; i++)
            race_right("frame", i, shape_check(frames[s], i));
    }
    for (uint32_t s = 0; s < SHAPES; s++)
        shape_frames_free(&frames[s]);
    return NULL;
}

static void every_shape_at_once(struct rig *rig)
{
    enum { THREADS = 3 };
    struct stream streams[SHAPES] = {{0}};
    struct submitter submitters[THREADS];
    for (uint32_t s = 0; s < SHAPES; s++)
        streams[s].session = race_shape_session(rig, (enum shape)s, rows_of((enum shape)s), COLUMNS,
                                                &(const struct cox__session_spec){.in_flight = 1 + s % 4,
                                                                                  .no_warmup = s % 2});
    for (uint32_t t = 0; t < THREADS; t++)
        submitters[t] = (struct submitter){.rig = rig, .streams = streams, .number = t};
    race_run(THREADS, submit_to_all, submitters, sizeof *submitters);
    for (uint32_t s = 0; s < SHAPES; s++) {
        uint32_t accepted = 0;
        for (uint32_t t = 0; t < THREADS; t++)
            accepted += submitters[t].accepted[s];
        cox_session_destroy(&streams[s].session);
        CHECK(streams[s].next == accepted);
    }
}

/* ---- a callback that submits the next frame ---- */

struct chain {
    cox_session *session;
    struct shape_frames *frames;
    uint32_t submitted;
    uint32_t done;
    uint32_t busy;
    _Atomic bool over;
};

static void go_on(void *user, uint64_t frame, cox_status status)
{
    struct chain *chain = user;
    CHECK(status == COX_OK);
    CHECK(frame == chain->done);
    race_right("frame", frame, shape_check(chain->frames, chain->done));
    chain->done++;
    /* The session has room for at least one frame. */
    bool first = true;
    while (chain->submitted < CHAIN && chain->submitted < chain->done + chain->frames->count - 1) {
        const struct cox__frame_spec next = shape_frame(chain->frames, chain->submitted);
        shape_prepare(chain->frames, chain->submitted);
        status = cox__session_submit(chain->session, &next, go_on, chain);
        if (status == COX_E_BUSY && !first) {
            chain->busy++;
            break;
        }
        CHECK(status == COX_OK);
        first = false;
        chain->submitted++;
    }
    if (chain->done == CHAIN || chain->submitted == chain->done)
        atomic_store(&chain->over, true);
}

static void callbacks_that_submit(struct rig *rig)
{
    for (uint32_t in_flight = 1; in_flight <= 4; in_flight++) {
        struct chain chain = {.frames = shape_frames_new(rig, SHAPE_HALO, 40, COLUMNS, in_flight + 1)};
        CHECK(shape_session(chain.frames,
                            &(const struct cox__session_spec){.in_flight = in_flight, .no_warmup = in_flight % 2},
                            &chain.session) == COX_OK);
        while (chain.done < CHAIN) {
            atomic_store(&chain.over, false);
            const struct cox__frame_spec first = shape_frame(chain.frames, chain.submitted);
            shape_prepare(chain.frames, chain.submitted);
            chain.submitted++; /* no frame is in flight, so no callback runs now */
            CHECK(cox__session_submit(chain.session, &first, go_on, &chain) == COX_OK);
            while (!atomic_load(&chain.over))
                race_rest(50000);
            cox_session_wait(chain.session);
        }
        cox_session_destroy(&chain.session);
        CHECK(chain.done == CHAIN && chain.submitted == CHAIN);
        shape_frames_free(&chain.frames);
    }
}

/* ---- destroyed with frames in flight, while another runtime works ---- */

static void *come_and_go(void *data)
{
    struct rig *shared = data;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct rig *rig = shared ? shared : rig_new(&devices);
        struct shape_frames *frames = shape_frames_new(rig, (enum shape)(round % SHAPES),
                                                       rows_of((enum shape)(round % SHAPES)), COLUMNS, FRAMES);
        struct stream stream = {0};
        CHECK(shape_session(frames,
                            &(const struct cox__session_spec){.in_flight = 1 + round % FRAMES, .no_warmup = round % 3},
                            &stream.session) == COX_OK);
        for (uint32_t i = 0; i < round % (FRAMES + 1); i++) {
            const struct cox__frame_spec frame = shape_frame(frames, i);
            shape_prepare(frames, i);
            CHECK(cox__session_submit(stream.session, &frame, on_done, &stream) == COX_OK);
        }
        cox_session_destroy(&stream.session);
        CHECK(stream.next == round % (FRAMES + 1));
        for (uint32_t i = 0; i < round % (FRAMES + 1); i++)
            race_right("frame", i, shape_check(frames, i));
        shape_frames_free(&frames);
        if (!shared)
            race_end("round", round, &rig);
    }
    return NULL;
}

int main(void)
{
    struct rig *rig = rig_new(&devices);
    pthread_t own, shared[2];
    check_limit("sessions of every shape");
    race_start(&own, 1, come_and_go, NULL, 0);
    race_start(shared, 2, come_and_go, rig, 0);
    every_shape_at_once(rig);
    callbacks_that_submit(rig);
    race_join(&own, 1);
    race_join(shared, 2);
    CHECK(fake_await_gone(rig_fake(rig)));
    race_end("rig", 0, &rig);
    return 0;
}
