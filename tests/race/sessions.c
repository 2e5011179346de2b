/* Several threads create and destroy sessions, buffers and runtimes at the same time. Some sessions are destroyed
 * with frames in flight. Plain program, for ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "race.h"

enum { THREADS = 4, ROUNDS = 80, ROWS = 32, COLUMNS = 16, FRAMES = 5 };

static const struct fake_params devices = {
    .device_count = 2,
    .real_time = true,
    .devices = {{.fixed_ns = 20e3, .ns_per_row = 1e3}, {.mode = COX_MODE_STAGED, .fixed_ns = 50e3}}};

struct counter {
    uint32_t done; /* not atomic: read after destroy, which waits for the last callback */
    uint32_t ran;  /* frames without a callback */
};

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct counter *counter = user;
    CHECK(frame >= counter->done);
    CHECK(status == COX_OK);
    counter->done++;
}

static void use_a_session(struct rig *rig, uint32_t round)
{
    struct rig_frames *frames = rig_frames_new(rig, ROWS, COLUMNS, COLUMNS, FRAMES);
    struct counter counter = {0};
    cox_session *session;
    CHECK(rig_map_session(frames, &(const struct cox__session_spec){.in_flight = 1 + round % 5, .no_warmup = round % 3},
                          &session) == COX_OK);
    const uint32_t count = round % (FRAMES + 1);
    for (uint32_t i = 0; i < count; i++) {
        cox_buffer *buffers[2];
        const struct cox__frame_spec frame = race_map_frame(frames, i, buffers);
        if ((round + i) % 2) {
            CHECK(cox__session_submit(session, &frame, on_done, &counter) == COX_OK);
            continue;
        }
        /* This thread also submits bands of other threads' sessions. */
        CHECK(cox__session_run(session, &frame) == COX_OK);
        counter.ran++;
    }
    cox_session_destroy(&session);
    CHECK(counter.done + counter.ran == count);
    for (uint32_t i = 0; i < count; i++)
        race_right("frame", i, rig_check(frames, i));
    rig_frames_free(&frames);
}

static void *share_a_runtime(void *rig)
{
    for (uint32_t round = 0; round < ROUNDS; round++)
        use_a_session(rig, round);
    return NULL;
}

static void *own_runtimes(void *data)
{
    (void)data;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct rig *rig = rig_new(&devices);
        use_a_session(rig, round);
        cox_runtime *runtime = rig_runtime(rig);
        CHECK(cox_runtime_device_count(runtime) == 2);
        race_end("round", round, &rig);
    }
    return NULL;
}

int main(void)
{
    struct rig *rig = rig_new(&devices);
    for (uint32_t d = 0; d < devices.device_count; d++) /* late posts */
        fake_script(rig_fake(rig), &(struct fake_fault){.kind = FAKE_POST_TWICE, .device = d, .count = UINT32_MAX});
    pthread_t own;
    check_limit("sessions that come and go");
    race_start(&own, 1, own_runtimes, NULL, 0);
    race_run(THREADS, share_a_runtime, rig, 0);
    race_join(&own, 1);
    CHECK(fake_await_gone(rig_fake(rig)));
    race_end("rig", 0, &rig);
    return 0;
}
