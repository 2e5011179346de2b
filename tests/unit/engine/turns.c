/* Frames that share a buffer, in one session and in several.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "map_test.h"
#include <pthread.h>

TestSuite(engine_turns, .timeout = 300);

enum { ROWS = 60, COLUMNS = 16, BYTES = ROWS * COLUMNS, BUFFERS = 6, SESSIONS = 2, FRAMES = 300 };

static const struct fake_params trio = {
    .device_count = 3,
    .devices = {{.ns_per_row = 1e4, .jitter = 0.5}, {.ns_per_row = 3e4}, {.mode = COX_MODE_STAGED, .ns_per_row = 2e4}}};
static const struct fake_params real_pair = {
    .device_count = 2, .real_time = true, .devices = {{.ns_per_row = 1e3}, {.ns_per_row = 3e3}}};

struct result {
    cox_status status;
    uint32_t place; /* position of its callback among all callbacks */
};

/* Two sessions of rig_map over a few buffers, and the expected contents of these. */
static cox_session *sessions[SESSIONS];
static cox_buffer *buffers[BUFFERS];
static unsigned char expected[BUFFERS][BYTES];
static uint32_t over[SESSIONS];
static struct result results[SESSIONS][FRAMES];

static void begin(const struct fake_params *devices, uint32_t in_flight)
{
    memset(over, 0, sizeof over);
    open_rig(devices, ROWS, COLUMNS, 1);
    for (uint32_t s = 0; s < SESSIONS; s++)
        cr_assert_eq(rig_map_session(frames,
                                     &(const struct cox__session_spec){.in_flight = in_flight,
                                                                       .policy = s ? "static" : "adaptive"},
                                     &sessions[s]),
                     COX_OK);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        buffers[i] = new_buffer(BYTES);
        for (uint32_t b = 0; b < BYTES; b++)
            expected[i][b] = (unsigned char)(b * 7 + i);
        memcpy(cox_buffer_data(buffers[i]), expected[i], BYTES);
    }
}

static void end(void)
{
    for (uint32_t s = 0; s < SESSIONS; s++)
        cox_session_destroy(&sessions[s]);
    for (uint32_t i = 0; i < BUFFERS; i++)
        cox_buffer_destroy(&buffers[i]);
    close_rig();
}

static void compute(uint32_t from, uint32_t to, uint32_t add)
{
    for (uint32_t b = 0; b < BYTES; b++)
        expected[to][b] = (unsigned char)(expected[from][b] * 3u + b / COLUMNS * 7u + add);
}

/* Number of callbacks so far. */
static uint32_t callbacks;

/* `user`: the frame's result. */
static void on_done(void *user, uint64_t frame, cox_status status)
{
    (void)frame;
    *(struct result *)user = (struct result){status, callbacks++};
}

static void submit(uint32_t session, uint32_t from, uint32_t to, uint32_t add)
{
    cox_buffer *const two[] = {buffers[from], buffers[to]};
    const struct rig_params params = {.add = add, .columns = COLUMNS};
    struct result *result = &results[session][over[session]++];
    result->status = COX_E_SYSTEM;
    cr_assert_eq(cox__session_submit(sessions[session],
                                     &(const struct cox__frame_spec){
                                         .buffers = two, .buffer_count = 2, .params = &params},
                                     on_done, result),
                 COX_OK);
}

static void wait_for_all(void)
{
    for (uint32_t s = 0; s < SESSIONS; s++)
        cr_assert_eq(cox_session_wait(sessions[s]), COX_OK);
}

static void check(void)
{
    for (uint32_t i = 0; i < BUFFERS; i++)
        cr_assert_eq(memcmp(cox_buffer_data(buffers[i]), expected[i], BYTES), 0, "buffer %u", i);
}

/* Any frame may read what another one writes, or write what another one reads or writes. */
static void play_random(const struct fake_params *devices)
{
    for (uint32_t in_flight = 1; in_flight <= 6; in_flight++) {
        uint64_t seed = in_flight;
        begin(devices, in_flight);
        for (uint32_t n = 0; n < FRAMES; n++) {
            const uint32_t session = (uint32_t)(rig_random(&seed) % SESSIONS);
            const uint32_t from = (uint32_t)(rig_random(&seed) % BUFFERS);
            const uint32_t to = (from + 1 + (uint32_t)(rig_random(&seed) % (BUFFERS - 1))) % BUFFERS;
            submit(session, from, to, n);
            compute(from, to, n);
        }
        wait_for_all();
        check();
        for (uint32_t s = 0; s < SESSIONS; s++)
            for (uint32_t n = 0; n < over[s]; n++)
                cr_assert_eq(results[s][n].status, COX_OK);
        end();
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

/* Both sessions have only one device, and it fails for good. So the frames under way end with an error. */
static const struct fake_params alone = {.device_count = 1, .devices = {{.ns_per_row = 1e4}}};

Test(engine_turns, what_reads_the_rows_of_a_frame_that_failed_fails_too)
{
    begin(&alone, 4);
    submit(0, 0, 1, 1); /* for the warm-up */
    submit(1, 0, 1, 1);
    wait_for_all();
    fake_hold(fake);
    submit(0, 0, 5, 1); /* under way, so that the next frame does not end before the others are submitted */
    cr_assert(fake_await_running(fake, 1));
    submit(0, 0, 1, 1); /* is cancelled */
    cr_assert_eq(cox_session_cancel(sessions[0]), COX_OK);
    submit(1, 1, 2, 2); /* reads what the cancelled frame was to write */
    submit(1, 2, 3, 3); /* reads what the previous frame was to write */
    submit(1, 0, 4, 4); /* reads neither */
    fake_release(fake);
    wait_for_all();
    cr_assert_eq(results[0][2].status, COX_E_CANCELLED);
    cr_assert_eq(results[1][1].status, COX_E_CANCELLED);
    cr_assert_eq(results[1][2].status, COX_E_CANCELLED);
    cr_assert_eq(results[1][3].status, COX_OK);
    cr_assert_lt(results[0][2].place, results[1][1].place);
    /* From now on the expected contents are those of the buffers. */
    memcpy(cox_buffer_data(buffers[1]), expected[0], BYTES);
    memcpy(expected[1], expected[0], BYTES);
    submit(1, 1, 2, 5);
    wait_for_all();
    cr_assert_eq(results[1][4].status, COX_OK);
    compute(1, 2, 5);
    compute(0, 4, 4);
    memcpy(expected[3], cox_buffer_data(buffers[3]), BYTES); /* undefined */
    memcpy(expected[5], cox_buffer_data(buffers[5]), BYTES);
    check();
    end();
}

/* If a cancelled frame ended before its turn, the frames behind it could overtake those in front of it. */
Test(engine_turns, a_cancelled_frame_waits_for_its_turn)
{
    for (uint32_t writes = 0; writes < 2; writes++) {
        begin(&alone, 4);
        submit(0, 0, 1, 1); /* for the warm-up */
        submit(1, 0, 2, 1);
        wait_for_all();
        fake_hold(fake);
        submit(0, 0, 1, 1);
        submit(1, writes ? 3 : 1, writes ? 1 : 3, 2); /* is cancelled */
        cr_assert_eq(cox_session_cancel(sessions[1]), COX_OK);
        submit(1, 2, 1, 3);
        fake_release(fake);
        wait_for_all();
        cr_assert_eq(results[0][1].status, COX_OK);
        cr_assert_eq(results[1][1].status, COX_E_CANCELLED);
        cr_assert_eq(results[1][2].status, COX_OK);
        cr_assert_lt(results[0][1].place, results[1][1].place);
        compute(0, 1, 1);
        compute(0, 2, 1);
        compute(2, 1, 3);
        memcpy(expected[3], cox_buffer_data(buffers[3]), BYTES);
        check();
        end();
    }
}

/* ---- threads inside cox_session_run ---- */

struct runner {
    uint32_t session, from, to;
};

static void *run_all(void *user)
{
    const struct runner *runner = user;
    cox_buffer *const two[] = {buffers[runner->from], buffers[runner->to]};
    const struct rig_params params = {.columns = COLUMNS};
    for (uint32_t i = 0; i < FRAMES; i++)
        cr_assert_eq(cox__session_run(sessions[runner->session], &(const struct cox__frame_spec){.buffers = two,
                                                                                                 .buffer_count = 2,
                                                                                                 .params = &params}),
                     COX_OK);
    return NULL;
}

Test(engine_turns, a_thread_that_delivers_wakes_the_frames_of_other_sessions)
{
    for (uint32_t swapped = 0; swapped < 2; swapped++) {
        pthread_t threads[4];
        struct runner runners[4];
        begin(&real_pair, 4);
        for (uint32_t t = 0; t < 4; t++) {
            runners[t] = (struct runner){
                .session = (t + swapped) % 2, .from = t % 2 ? 1 : 2 + t / 2, .to = t % 2 ? 2 + t / 2 : 1};
            cr_assert_eq(pthread_create(&threads[t], NULL, run_all, &runners[t]), 0);
        }
        for (uint32_t t = 0; t < 4; t++)
            pthread_join(threads[t], NULL);
        end();
    }
}
