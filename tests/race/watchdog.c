/* Driver calls of two of three devices block now and then. They block the scheduler thread, or a thread that waits
 * in cox_session_run. Other threads submit and run frames meanwhile. Every frame must complete once, with the right
 * result. Plain program, for ThreadSanitizer.
 *
 *   race_watchdog [ROUNDS [FIRST_SEED]]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "race.h"

#include <stdatomic.h>

enum { ROUNDS = 4, AT_ONCE = 4, THREADS = 4, SESSIONS = 2, FRAMES = 40, POOL = 4, ROWS = 48, COLUMNS = 16 };

/* The watchdog excludes the time that a thread waits for a core. Calls of the third device are shorter than this. */
static const uint64_t timeout_ns = 600000000;

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
            const struct cox__frame_spec frame = shape_frame(frames, k);
            shape_prepare(frames, k);
            if (worker->runs)
                CHECK(cox__session_run(worker->session, &frame) == COX_OK);
            else
                CHECK(cox__session_submit(worker->session, &frame, on_done, &left) == COX_OK);
        }
        if (!worker->runs) {
            cox_session_wait(worker->session);
            CHECK(atomic_load(&left) == 0);
        }
        for (uint32_t k = 0; k < POOL; k++)
            race_right("frame", i + k, shape_check(frames, k));
        worker->good += POOL;
    }
    shape_frames_free(&frames);
    return NULL;
}

static void script(struct fake *fake, uint64_t random)
{
    static const enum fake_fault_kind kinds[] = {FAKE_SUBMIT_STUCK, FAKE_CONTINUE_STUCK, FAKE_FLUSH_STUCK,
                                                 FAKE_POLL_STUCK};
    for (uint32_t i = 0; i < 6; i++)
        fake_script(fake, &(struct fake_fault){.kind = kinds[rig_random(&random) % 4],
                                               .device = 1 + i % 2,
                                               .skip = 60 + 20 * i + (uint32_t)(rig_random(&random) % 20),
                                               .delay_ns = timeout_ns + 100000000 + rig_random(&random) % 400000000});
}

static void play(uint64_t seed)
{
    struct rig *rig =
        rig_new(&(const struct fake_params){.device_count = 3,
                                            .real_time = true,
                                            .devices = {{.ns_per_row = 3e3},
                                                        {.fixed_ns = 50e3, .ns_per_row = 1e3, .parts = 2},
                                                        {.mode = COX_MODE_STAGED, .ns_per_row = 4e3, .parts = 3}}});
    static const enum shape shapes[SESSIONS] = {SHAPE_HALO, SHAPE_COUNT};
    cox_session *sessions[SESSIONS];
    struct worker workers[THREADS];
    for (uint32_t s = 0; s < SESSIONS; s++)
        sessions[s] = race_shape_session(rig, shapes[s], ROWS, COLUMNS,
                                         &(const struct cox__session_spec){.policy = s ? "adaptive" : "static",
                                                                           .in_flight = 2 + s,
                                                                           .device_timeout_ns = timeout_ns});
    script(rig_fake(rig), seed);
    for (uint32_t t = 0; t < THREADS; t++)
        workers[t] = (struct worker){
            .rig = rig, .session = sessions[t % SESSIONS], .shape = shapes[t % SESSIONS], .runs = t >= THREADS / 2};
    race_run(THREADS, work, workers, sizeof *workers);

    uint32_t good = 0, lost = 0;
    for (uint32_t t = 0; t < THREADS; t++)
        good += workers[t].good;
    for (uint32_t s = 0; s < SESSIONS; s++) {
        lost += rig_times_lost(sessions[s]);
        cox_session_destroy(&sessions[s]);
    }
    CHECK(fake_struck(rig_fake(rig)) > 0);
    race_end("seed", seed, &rig);
    printf("seed %llu: %u frames, devices lost %u times\n", (unsigned long long)seed, good, lost);
}

int main(int argc, char **argv)
{
    check_limit("frames beside drivers that keep threads");
    race_rounds(argc > 2 ? strtoull(argv[2], NULL, 10) : 1, argc > 1 ? strtoull(argv[1], NULL, 10) : ROUNDS, AT_ONCE,
                play);
    return 0;
}
