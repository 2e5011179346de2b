/* Two devices of three whose drivers keep threads now and then, the scheduler's or one that waits in cox_session_run,
 * while threads submit and run: every frame ends once and right. A plain program, to be run under ThreadSanitizer.
 *
 *   race_watchdog [ROUNDS [FIRST_SEED]]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"
#include "support/fake_shapes.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 4, THREADS = 4, SESSIONS = 2, FRAMES = 40, POOL = 4, ROWS = 48, COLUMNS = 16 };

struct worker {
    struct rig *rig;
    cox_session *session;
    enum shape shape;
    bool runs;
    uint32_t good;
};

static void on_done(void *user, uint64_t frame, cox_status status)
{
    atomic_int *left = user;
    (void)frame;
    CHECK(status == COX_OK);
    CHECK(atomic_fetch_sub(left, 1) > 0);
}

static void *work(void *data)
{
    struct worker *worker = data;
    struct shape_frames *frames = shape_frames_new(worker->rig, worker->shape, ROWS, COLUMNS, POOL);
    for (uint32_t i = 0; i < FRAMES; i += POOL) {
        atomic_int left = POOL;
        for (uint32_t k = 0; k < POOL; k++) {
            const struct cox_frame frame = shape_frame(frames, k);
            shape_prepare(frames, k);
            if (worker->runs)
                CHECK(cox_session_run(worker->session, &frame) == COX_OK);
            else
                CHECK(cox_session_submit(worker->session, &frame, on_done, &left) == COX_OK);
        }
        if (!worker->runs) {
            cox_session_wait(worker->session);
            CHECK(atomic_load(&left) == 0);
        }
        for (uint32_t k = 0; k < POOL; k++) {
            const char *wrong = shape_check(frames, k);
            if (*wrong) {
                fprintf(stderr, "%s\n", wrong);
                exit(1);
            }
            worker->good++;
        }
    }
    shape_frames_free(&frames);
    return NULL;
}

static void play(uint64_t seed)
{
    /* The threads of the third device get their turn in less, on a busy machine too. */
    static const uint64_t timeout_ns = 600000000;
    static const enum fake_fault_kind kinds[] = {FAKE_SUBMIT_STUCK, FAKE_FLUSH_STUCK, FAKE_POLL_STUCK};
    struct rig *rig = rig_new(&(const struct fake_params){.device_count = 3,
                                                          .real_time = true,
                                                          .devices = {{.ns_per_row = 3e3},
                                                                      {.fixed_ns = 50e3, .ns_per_row = 1e3},
                                                                      {.mode = COX_MODE_STAGED, .ns_per_row = 4e3}}});
    cox_session *sessions[SESSIONS];
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    uint64_t random = seed;
    for (uint32_t s = 0; s < SESSIONS; s++) {
        struct shape_frames *shape = shape_frames_new(rig, s ? SHAPE_COUNT : SHAPE_HALO, ROWS, COLUMNS, 1);
        CHECK(shape_session(shape,
                            COX_SESSION_PARAMS(.policy = s ? "adaptive" : "ewma", .in_flight = 2 + s,
                                               .device_timeout_ns = timeout_ns),
                            &sessions[s]) == COX_OK);
        shape_frames_free(&shape);
    }
    for (uint32_t i = 0; i < 6; i++)
        fake_script(rig_fake(rig),
                    &(struct fake_fault){.kind = kinds[rig_random(&random) % 3],
                                         .device = 1 + i % 2,
                                         .skip = 60 + 20 * i + (uint32_t)(rig_random(&random) % 20),
                                         .delay_ns = timeout_ns + 100000000 + rig_random(&random) % 900000000});
    for (uint32_t t = 0; t < THREADS; t++) {
        workers[t] = (struct worker){.rig = rig,
                                     .session = sessions[t % SESSIONS],
                                     .shape = t % SESSIONS ? SHAPE_COUNT : SHAPE_HALO,
                                     .runs = t >= THREADS / 2};
        CHECK(pthread_create(&threads[t], NULL, work, &workers[t]) == 0);
    }
    uint32_t good = 0;
    for (uint32_t t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        good += workers[t].good;
    }
    uint32_t lost = 0;
    for (uint32_t s = 0; s < SESSIONS; s++) {
        struct cox_session_info info;
        cox_session_info(sessions[s], &info, sizeof info);
        for (uint32_t d = 0; d < info.device_count; d++)
            lost += info.devices[d].lost;
        cox_session_destroy(&sessions[s]);
    }
    const char *wrong = rig_end(&rig);
    if (*wrong) {
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, wrong);
        exit(1);
    }
    printf("seed %llu: %u frames, devices lost %u times\n", (unsigned long long)seed, good, lost);
}

int main(int argc, char **argv)
{
    const uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : ROUNDS;
    const uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + rounds; seed++)
        play(seed);
    return 0;
}
