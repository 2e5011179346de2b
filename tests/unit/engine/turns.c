/* Frames that share a buffer, in one session and in several.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/rig_play.h"
#include "support/fake_shapes.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

TestSuite(engine_turns, .timeout = 300);

enum { ROWS = 60, COLUMNS = 16, BYTES = ROWS * COLUMNS, BUFFERS = 6, SESSIONS = 2, FRAMES = 300 };

static const struct fake_params trio = {
    .device_count = 3,
    .devices = {{.ns_per_row = 1e4, .jitter = 0.5}, {.ns_per_row = 3e4}, {.mode = COX_MODE_STAGED, .ns_per_row = 2e4}}};
static const struct fake_params real_pair = {
    .device_count = 2, .real_time = true, .devices = {{.ns_per_row = 1e3}, {.ns_per_row = 3e3}}};

struct result {
    cox_status status;
    uint32_t place; /* of its callback among all */
};

/* Two sessions of rig_map over a few buffers, and what must be in them. */
struct world {
    struct rig *rig;
    cox_session *sessions[SESSIONS];
    cox_buffer *buffers[BUFFERS];
    unsigned char expected[BUFFERS][BYTES];
    uint32_t over[SESSIONS];
    struct result results[SESSIONS][FRAMES];
};

static const struct cox_binding bindings[] = {
    {.contract = COX_ROWS, .access = COX_READ, .pitch_bytes = COLUMNS},
    {.contract = COX_ROWS, .access = COX_WRITE, .pitch_bytes = COLUMNS},
};

static void begin(struct world *world, const struct fake_params *devices, uint32_t in_flight)
{
    memset(world, 0, sizeof *world);
    world->rig = rig_new(devices);
    for (uint32_t s = 0; s < SESSIONS; s++)
        cr_assert_eq(cox_session_create(rig_runtime(world->rig),
                                        COX_SESSION_PARAMS(.rows = ROWS, .binding_count = 2, .bindings = bindings,
                                                           .stage_count = 1, .stages = &rig_stage_map,
                                                           .params_bytes = sizeof(struct rig_params),
                                                           .in_flight = in_flight, .policy = s ? "ewma" : "adaptive"),
                                        &world->sessions[s]),
                     COX_OK);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        cr_assert_eq(cox_buffer_create(rig_runtime(world->rig), BYTES, &world->buffers[i]), COX_OK);
        for (uint32_t b = 0; b < BYTES; b++)
            world->expected[i][b] = ((unsigned char *)cox_buffer_data(world->buffers[i]))[b] = (unsigned char)(b * 7 +
                                                                                                               i);
    }
}

static void end(struct world *world)
{
    for (uint32_t s = 0; s < SESSIONS; s++)
        cox_session_destroy(&world->sessions[s]);
    for (uint32_t i = 0; i < BUFFERS; i++)
        cox_buffer_destroy(&world->buffers[i]);
    END(world->rig);
}

static void compute(struct world *world, uint32_t from, uint32_t to, uint32_t add)
{
    for (uint32_t b = 0; b < BYTES; b++)
        world->expected[to][b] = (unsigned char)(world->expected[from][b] * 3u + b / COLUMNS * 7u + add);
}

/* Callbacks so far. */
static uint32_t callbacks;

/* `user`: the frame's result. */
static void on_done(void *user, uint64_t frame, cox_status status)
{
    (void)frame;
    *(struct result *)user = (struct result){status, callbacks++};
}

static void submit(struct world *world, uint32_t session, uint32_t from, uint32_t to, uint32_t add)
{
    cox_buffer *const buffers[] = {world->buffers[from], world->buffers[to]};
    const struct rig_params params = {.add = add, .columns = COLUMNS};
    struct result *result = &world->results[session][world->over[session]++];
    result->status = COX_E_SYSTEM;
    cr_assert_eq(cox_session_submit(world->sessions[session],
                                    COX_FRAME(.buffers = buffers, .buffer_count = 2, .params = &params), on_done,
                                    result),
                 COX_OK);
}

static void wait_for_all(struct world *world)
{
    for (uint32_t s = 0; s < SESSIONS; s++)
        cr_assert_eq(cox_session_wait(world->sessions[s]), COX_OK);
}

static void check(struct world *world)
{
    for (uint32_t i = 0; i < BUFFERS; i++)
        cr_assert_eq(memcmp(cox_buffer_data(world->buffers[i]), world->expected[i], BYTES), 0, "buffer %u", i);
}

/* Any frame may read what any other writes, or write what another reads or writes. */
static void play_random(const struct fake_params *devices)
{
    for (uint32_t in_flight = 1; in_flight <= 6; in_flight++) {
        struct world world;
        uint64_t seed = in_flight;
        begin(&world, devices, in_flight);
        for (uint32_t n = 0; n < FRAMES; n++) {
            const uint32_t session = (uint32_t)(rig_random(&seed) % SESSIONS);
            const uint32_t from = (uint32_t)(rig_random(&seed) % BUFFERS);
            const uint32_t to = (from + 1 + (uint32_t)(rig_random(&seed) % (BUFFERS - 1))) % BUFFERS;
            submit(&world, session, from, to, n);
            compute(&world, from, to, n);
        }
        wait_for_all(&world);
        check(&world);
        for (uint32_t s = 0; s < SESSIONS; s++)
            for (uint32_t n = 0; n < world.over[s]; n++)
                cr_assert_eq(world.results[s][n].status, COX_OK);
        end(&world);
    }
}

Test(engine_turns, what_one_frame_writes_another_reads)
{
    play_random(&trio);
}

Test(engine_turns, the_same_on_devices_in_real_time)
{
    play_random(&real_pair);
}

/* ---- a frame that fails ---- */

/* In both sessions device 1 fails for good, the only one, so the frames under way end with an error. */
static const struct fake_params alone = {.device_count = 1, .devices = {{.ns_per_row = 1e4}}};

Test(engine_turns, what_reads_the_rows_of_a_frame_that_failed_fails_too)
{
    struct world world;
    begin(&world, &alone, 4);
    submit(&world, 0, 0, 1, 1); /* for the warm-up */
    submit(&world, 1, 0, 1, 1);
    wait_for_all(&world);
    fake_hold(rig_fake(world.rig));
    submit(&world, 0, 0, 5, 1); /* under way, so that the next one is not over before the others are submitted */
    cr_assert(fake_await_running(rig_fake(world.rig), 1));
    submit(&world, 0, 0, 1, 1); /* is cancelled */
    cr_assert_eq(cox_session_cancel(world.sessions[0]), COX_OK);
    submit(&world, 1, 1, 2, 2); /* reads what that was to write */
    submit(&world, 1, 2, 3, 3); /* and this what that was */
    submit(&world, 1, 0, 4, 4); /* this does not */
    fake_release(rig_fake(world.rig));
    wait_for_all(&world);
    cr_assert_eq(world.results[0][2].status, COX_E_CANCELLED);
    cr_assert_eq(world.results[1][1].status, COX_E_CANCELLED);
    cr_assert_eq(world.results[1][2].status, COX_E_CANCELLED);
    cr_assert_eq(world.results[1][3].status, COX_OK);
    cr_assert_lt(world.results[0][2].place, world.results[1][1].place);
    /* From now on the buffers hold what the application says that they do. */
    memcpy(cox_buffer_data(world.buffers[1]), world.expected[0], BYTES);
    memcpy(world.expected[1], world.expected[0], BYTES);
    submit(&world, 1, 1, 2, 5);
    wait_for_all(&world);
    cr_assert_eq(world.results[1][4].status, COX_OK);
    compute(&world, 1, 2, 5);
    compute(&world, 0, 4, 4);
    memcpy(world.expected[3], cox_buffer_data(world.buffers[3]), BYTES); /* undefined */
    memcpy(world.expected[5], cox_buffer_data(world.buffers[5]), BYTES);
    check(&world);
    end(&world);
}

/* A cancelled frame that ended before its turn would let the ones behind it go before those that are before it. */
Test(engine_turns, a_cancelled_frame_waits_for_its_turn)
{
    for (uint32_t writes = 0; writes < 2; writes++) {
        struct world world;
        begin(&world, &alone, 4);
        submit(&world, 0, 0, 1, 1); /* for the warm-up */
        submit(&world, 1, 0, 2, 1);
        wait_for_all(&world);
        fake_hold(rig_fake(world.rig));
        submit(&world, 0, 0, 1, 1);
        submit(&world, 1, writes ? 3 : 1, writes ? 1 : 3, 2); /* is cancelled */
        cr_assert_eq(cox_session_cancel(world.sessions[1]), COX_OK);
        submit(&world, 1, 2, 1, 3);
        fake_release(rig_fake(world.rig));
        wait_for_all(&world);
        cr_assert_eq(world.results[0][1].status, COX_OK);
        cr_assert_eq(world.results[1][1].status, COX_E_CANCELLED);
        cr_assert_eq(world.results[1][2].status, COX_OK);
        cr_assert_lt(world.results[0][1].place, world.results[1][1].place);
        compute(&world, 0, 1, 1);
        compute(&world, 0, 2, 1);
        compute(&world, 2, 1, 3);
        memcpy(world.expected[3], cox_buffer_data(world.buffers[3]), BYTES);
        check(&world);
        end(&world);
    }
}

/* ---- threads inside cox_session_run ---- */

struct runner {
    struct world *world;
    uint32_t session, from, to;
};

static void *run_frames(void *user)
{
    const struct runner *runner = user;
    cox_buffer *const buffers[] = {runner->world->buffers[runner->from], runner->world->buffers[runner->to]};
    const struct rig_params params = {.columns = COLUMNS};
    for (uint32_t i = 0; i < FRAMES; i++)
        cr_assert_eq(cox_session_run(runner->world->sessions[runner->session],
                                     COX_FRAME(.buffers = buffers, .buffer_count = 2, .params = &params)),
                     COX_OK);
    return NULL;
}

Test(engine_turns, a_thread_that_delivers_wakes_the_frames_of_other_sessions)
{
    for (uint32_t swapped = 0; swapped < 2; swapped++) {
        struct world world;
        pthread_t threads[4];
        struct runner runners[4];
        begin(&world, &real_pair, 4);
        for (uint32_t t = 0; t < 4; t++) {
            runners[t] = (struct runner){.world = &world,
                                         .session = (t + swapped) % 2,
                                         .from = t % 2 ? 1 : 2 + t / 2,
                                         .to = t % 2 ? 2 + t / 2 : 1};
            cr_assert_eq(pthread_create(&threads[t], NULL, run_frames, &runners[t]), 0);
        }
        for (uint32_t t = 0; t < 4; t++)
            pthread_join(threads[t], NULL);
        end(&world);
    }
}
