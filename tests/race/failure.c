/* Devices fail while several threads submit, until none is left: every accepted frame still gets its one callback,
 * blocked submitters come back, and the log may be written from several threads. A plain program, to be run under
 * ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"
#include "support/fake_rig.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* A thread has as many frames as can be under way at once, so none of its outputs is written by two of them. */
enum { THREADS = 4, ROUNDS = 60, ROWS = 32, COLUMNS = 16, IN_FLIGHT_MAX = 4 };

struct shared {
    struct rig *rig;
    cox_session *session;
    uint64_t next; /* plain: only callbacks touch it */
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
        const uint32_t set = i % IN_FLIGHT_MAX;
        cox_buffer *const buffers[] = {frames->in[set], frames->out[set]};
        const struct cox_frame frame = {.buffers = buffers, .buffer_count = 2, .params = &frames->params[set]};
        const struct cox_frame invalid = {.buffers = buffers, .buffer_count = 1};
        /* A refusal writes to the log from this thread, while the scheduler thread logs what it loses. */
        CHECK(cox_session_submit(shared->session, &invalid, on_done, shared) == COX_E_INVALID);
        struct cox_session_info info; /* shows devices leaving meanwhile */
        cox_session_info(shared->session, &info, sizeof info);
        CHECK(info.device_count == 3);
        status = cox_session_submit(shared->session, &frame, on_done, shared);
        if (status == COX_OK)
            atomic_fetch_add(&shared->accepted, 1);
    }
    CHECK(status == COX_E_NO_DEVICE);
    cox_session_wait(shared->session);
    rig_frames_free(&frames);
    return NULL;
}

int main(void)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct rig *rig = rig_new(&(const struct fake_params){
            .device_count = 3,
            .real_time = true,
            .devices = {{.fixed_ns = 20e3}, {.fixed_ns = 50e3}, {.mode = COX_MODE_STAGED, .ns_per_row = 1e3}}});
        struct shared shared = {.rig = rig};
        const struct rig_frames shape = {.rig = rig, .rows = ROWS, .columns = COLUMNS, .pitch = COLUMNS};
        static const enum fake_fault_kind kinds[] = {FAKE_DEVICE_DIES, FAKE_EVENT_FAILS, FAKE_SUBMIT_FAILS};
        for (uint32_t d = 0; d < 3; d++)
            fake_script(rig_fake(rig), &(struct fake_fault){.kind = kinds[(d + round) % 3],
                                                            .device = d,
                                                            .skip = round % 2 + 7 * d,
                                                            .count = UINT32_MAX,
                                                            .status = COX_E_DEVICE_LOST});
        CHECK(rig_map_session((struct rig_frames *)&shape,
                              COX_SESSION_PARAMS(.in_flight = 1 + round % IN_FLIGHT_MAX, .no_warmup = round % 2,
                                                 .device_timeout_ns = 20000000),
                              &shared.session) == COX_OK);
        pthread_t threads[THREADS];
        for (uint32_t t = 0; t < THREADS; t++)
            CHECK(pthread_create(&threads[t], NULL, submit_until_refused, &shared) == 0);
        for (uint32_t t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
        cox_session_destroy(&shared.session);
        CHECK(shared.next == atomic_load(&shared.accepted));
        CHECK(shared.good < shared.next);
        const char *wrong = rig_end(&rig);
        if (*wrong) {
            fprintf(stderr, "round %u: %s\n", round, wrong);
            return 1;
        }
    }
    return 0;
}
