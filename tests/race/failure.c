/* Devices fail one by one while several threads submit, until none is left. Every accepted frame must get one
 * callback, blocked submits must return, and several threads may write to the log. Plain program, for
 * ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "race.h"

#include <stdatomic.h>

/* A thread has as many sets of buffers as frames can be in flight, so no two frames write the same output. */
enum { THREADS = 4, ROUNDS = 60, AT_ONCE = 15, ROWS = 32, COLUMNS = 16, IN_FLIGHT_MAX = 4 };

struct shared {
    struct rig *rig;
    cox_session *session;
    uint64_t next; /* not atomic: only callbacks use it */
    uint32_t good;
    _Atomic uint32_t accepted;
};

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct shared *shared = user;
    CHECK(frame == shared->next);
    shared->next++;
    CHECK(status == COX_OK || status == COX_E_DEVICE_LOST);
    shared->good += status == COX_OK;
}

static void *submit_until_refused(void *data)
{
    struct shared *shared = data;
    struct rig_frames *frames = rig_frames_new(shared->rig, ROWS, COLUMNS, COLUMNS, IN_FLIGHT_MAX);
    cox_status status = COX_OK;
    for (uint32_t i = 0; i < 10000 && status == COX_OK; i++) {
        cox_buffer *buffers[2];
        const struct cox__frame_spec frame = race_map_frame(frames, i % IN_FLIGHT_MAX, buffers);
        const struct cox__frame_spec invalid = {.buffers = buffers, .buffer_count = 1};
        /* This refusal is logged from this thread, while the scheduler thread logs lost devices. */
        CHECK(cox__session_submit(shared->session, &invalid, on_done, shared) == COX_E_INVALID);
        const struct cox_session_info info = rig_info(shared->session); /* device states change during this call */
        CHECK(info.device_count == 3);
        status = cox__session_submit(shared->session, &frame, on_done, shared);
        if (status == COX_OK)
            atomic_fetch_add(&shared->accepted, 1);
    }
    CHECK(status == COX_E_NO_DEVICE);
    cox_session_wait(shared->session);
    rig_frames_free(&frames);
    return NULL;
}

static void play(uint64_t number)
{
    static const enum fake_fault_kind kinds[] = {FAKE_DEVICE_DIES, FAKE_EVENT_FAILS, FAKE_SUBMIT_FAILS};
    const uint32_t round = (uint32_t)number;
    struct rig *rig = rig_new(&(const struct fake_params){
        .device_count = 3,
        .real_time = true,
        .devices = {{.fixed_ns = 20e3}, {.fixed_ns = 50e3}, {.mode = COX_MODE_STAGED, .ns_per_row = 1e3}}});
    struct shared shared = {.rig = rig};
    for (uint32_t d = 0; d < 3; d++)
        fake_script(rig_fake(rig), &(struct fake_fault){.kind = kinds[(d + round) % 3],
                                                        .device = d,
                                                        .skip = round % 2 + 7 * d,
                                                        .count = UINT32_MAX,
                                                        .status = COX_E_DEVICE_LOST});
    shared.session = race_map_session(rig, ROWS, COLUMNS,
                                      &(const struct cox__session_spec){.in_flight = 1 + round % IN_FLIGHT_MAX,
                                                                        .no_warmup = round % 2,
                                                                        .device_timeout_ns = 500000000});
    race_run(THREADS, submit_until_refused, &shared, 0);
    cox_session_destroy(&shared.session);
    CHECK(shared.next == atomic_load(&shared.accepted));
    CHECK(shared.good < shared.next);
    race_end("round", round, &rig);
}

int main(void)
{
    check_limit("submitters whose devices fail");
    race_rounds(0, ROUNDS, AT_ONCE, play); /* a frame without a device waits for the timeout */
    return 0;
}
