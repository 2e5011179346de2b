/* Helpers for Criterion tests of the engine with a rig: run frames, check each result, and check the end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_RIG_PLAY_H
#define COX_TESTS_RIG_PLAY_H

#include "specs.h"
#include "fake_rig.h"
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define END(rig) cr_assert_str_empty(rig_end(&(rig)))

/* Devices of different kinds and speeds. */
static const struct fake_params play_trio = {
    .device_count = 3,
    .devices = {{.name = "a", .fixed_ns = 10e3, .ns_per_row = 5e3},
                {.name = "b", .type = COX_DEVICE_GPU, .fixed_ns = 100e3, .ns_per_row = 2e3},
                {.name = "c",
                 .type = COX_DEVICE_GPU,
                 .mode = COX_MODE_STAGED,
                 .fixed_ns = 50e3,
                 .ns_per_row = 1e3,
                 .copy_in_ns_per_row = 1e3,
                 .copy_out_ns_per_row = 1e3}},
};

/* A rig with frames and a session of rig_map. */
struct play {
    struct rig *rig;
    struct fake *fake;
    struct rig_frames *frames;
    cox_session *session;
    char what[40]; /* for messages: the case, in a test with several */
};

/* Create the rig and the frames, as with rig_frames_new. */
static inline struct play play_open(const struct fake_params *devices, uint32_t rows, uint32_t columns, size_t pitch,
                                    uint32_t count)
{
    struct rig *rig = rig_new(devices);
    return (struct play){rig, rig_fake(rig), rig_frames_new(rig, rows, columns, pitch, count), NULL, ""};
}

/* Create a session for the frames. `.report = rig_report` needs no user pointer. */
static inline cox_session *play_session(const struct play *play, const struct cox__session_spec *extra)
{
    struct cox__session_spec params = *extra;
    cox_session *session = NULL;
    if (params.report == rig_report)
        params.report_user = play->rig;
    cr_assert_eq(rig_map_session(play->frames, &params, &session), COX_OK, "%s", rig_log(play->rig));
    return session;
}

static inline struct play play_begin(const struct fake_params *devices, uint32_t rows, uint32_t columns, size_t pitch,
                                     uint32_t count, const struct cox__session_spec *extra)
{
    struct play play = play_open(devices, rows, columns, pitch, count);
    play.session = play_session(&play, extra);
    return play;
}

static inline void play_end(struct play *play)
{
    cox_session_destroy(&play->session);
    cr_assert_null(play->session);
    rig_frames_free(&play->frames);
    END(play->rig);
}

/* Submit frames `from` to `to` - 1. */
static inline void play_submit(const struct play *play, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        cr_assert_eq(rig_submit(play->frames, play->session, i, false), COX_OK, "%s\n%s", play->what,
                     rig_log(play->rig));
}

/* Check that the rig's callbacks so far are those of `count` frames, in order, with this status. */
static inline void play_was_told(const struct play *play, uint32_t count, cox_status status)
{
    cr_assert_eq(rig_done_count(play->rig), count, "%s", play->what);
    for (uint32_t i = 0; i < count; i++) {
        const cox_status its = rig_done_status(play->rig, i);
        cr_assert_eq(rig_done_frame(play->rig, i), i, "%s: callback %u", play->what, i);
        cr_assert_eq(its, status, "%s: frame %u: %s", play->what, i, cox_status_name(its));
    }
}

static inline double play_frame_ns(const struct rig_report *report)
{
    return (double)(report->frame.end_ns - report->frame.start_ns);
}

/* Check the results of frames `from` to `to` - 1. */
static inline void play_check(const struct play *play, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const char *wrong = rig_check(play->frames, i);
        cr_assert_str_empty(wrong, "%s: %s", play->what, wrong);
    }
}

/* Run frames `from` to `to` - 1, `at_once` at a time, and check the results and the order of all callbacks. */
static inline void play_frames(const struct play *play, uint32_t from, uint32_t to, uint32_t at_once)
{
    for (uint32_t i = from, end; i < to; i = end) {
        end = i + at_once < to ? i + at_once : to;
        play_submit(play, i, end);
        cox_session_wait(play->session);
        play_check(play, i, end);
    }
    play_was_told(play, to, COX_OK);
}

/* A submit that waits for a free frame slot, on its own thread. */
struct play_blocked {
    const struct play *play;
    uint32_t index;
    cox_status status;
    pthread_t thread;
    _Atomic pid_t id; /* 0 = not started */
};

static inline void *play_submit_blocked(void *data)
{
    struct play_blocked *blocked = data;
    atomic_store(&blocked->id, gettid());
    blocked->status = rig_submit(blocked->play->frames, blocked->play->session, blocked->index, false);
    return NULL;
}

/* Whether the thread sleeps in the kernel. Also false if it has ended. */
static inline bool play_sleeps(pid_t thread)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (file)
        fclose(file);
    return state == 'S';
}

/* Submit a frame while no slot is free. Returns once the thread waits for one. */
static inline void play_block(struct play_blocked *blocked, const struct play *play, uint32_t index)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    *blocked = (struct play_blocked){.play = play, .index = index};
    cr_assert_eq(pthread_create(&blocked->thread, NULL, play_submit_blocked, blocked), 0);
    for (uint32_t tries = 0; !atomic_load(&blocked->id) || !play_sleeps(blocked->id); tries++) {
        cr_assert_lt(tries, 120000, "the submit of frame %u does not wait", index);
        nanosleep(&pause, NULL);
    }
}

/* Wait for the submit to return. Returns its status. */
static inline cox_status play_unblocked(struct play_blocked *blocked)
{
    pthread_join(blocked->thread, NULL);
    return blocked->status;
}

/* ---- in place, and REDUCE: 90 rows of 16 bytes in frame 0's buffers ---- */

static inline struct play play_stage(const struct fake_params *devices, const struct cox__stage *stage,
                                     const struct cox__binding *bindings, uint32_t binding_count,
                                     const struct cox__session_spec *extra)
{
    struct play play = play_open(devices, 90, 16, 16, 1);
    struct cox__session_spec params = *extra;
    params.rows = 90;
    params.bindings = bindings;
    params.binding_count = binding_count;
    params.stages = stage;
    params.stage_count = 1;
    params.params_bytes = sizeof(struct rig_params);
    cr_assert_eq(cox__session_create(rig_runtime(play.rig), &params, &play.session), COX_OK, "%s", rig_log(play.rig));
    return play;
}

/* A session that works on `in` in place. */
static inline struct play play_in_place(const struct fake_params *devices, const struct cox_policy *policy)
{
    static const struct cox__binding binding = {
        .name = "buffer", .row_access = COX__ROWS, .access = COX__READ_WRITE, .pitch_bytes = 16};
    return play_stage(devices, &rig_stage_inplace, &binding, 1,
                      &(const struct cox__session_spec){
                          .custom_policy = policy, .allow_in_place = true, .in_flight = 2, .no_warmup = true});
}

/* Run its frame, and check the status and, for COX_OK, the result. Restores the input. */
static inline void play_run_in_place(const struct play *play, cox_status wanted)
{
    unsigned char before[90 * 16], *data = cox_buffer_data(play->frames->in[0]);
    memcpy(before, data, sizeof before);
    cr_assert_eq(cox__session_run(play->session, &(const struct cox__frame_spec){.buffers = play->frames->in,
                                                                                 .buffer_count = 1,
                                                                                 .params = play->frames->params}),
                 wanted);
    for (size_t i = 0; i < sizeof before && wanted == COX_OK; i++)
        cr_assert_eq(data[i], (unsigned char)(before[i] * 3u + 1), "byte %zu", i);
    memcpy(data, before, sizeof before);
}

/* A session that counts the values of `in` in `out`. */
static inline struct play play_count(const struct fake_params *devices, const struct cox_policy *policy, bool warmup)
{
    static const struct cox__binding bindings[] = {
        {.name = "in", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = 16},
        {.name = "histogram", .row_access = COX__REDUCE, .access = COX__WRITE, .bytes = 1024, .merge = rig_merge_sum},
    };
    return play_stage(devices, &rig_stage_count, bindings, 2,
                      &(const struct cox__session_spec){.custom_policy = policy, .in_flight = 1, .no_warmup = !warmup});
}

/* Run its frame and check that every byte is counted once. */
static inline void play_run_count(const struct play *play)
{
    const unsigned char *in = cox_buffer_data(play->frames->in[0]);
    uint32_t want[256] = {0};
    for (uint32_t b = 0; b < 90 * 16; b++)
        want[in[b]]++;
    memset(cox_buffer_data(play->frames->out[0]), 0x77, sizeof want);
    cr_assert_eq(cox__session_run(play->session, RIG_FRAME(play->frames, 0)), COX_OK, "%s", play->what);
    cr_assert_arr_eq(cox_buffer_data(play->frames->out[0]), want, sizeof want, "%s", play->what);
}

/* Run frames `from` to `to` - 1, three at a time, and check the results. */
static inline void rig_play(struct rig *rig, struct rig_frames *frames, cox_session *session, uint32_t from,
                            uint32_t to)
{
    for (uint32_t i = from; i < to; i += 3) {
        for (uint32_t k = 0; k < 3; k++)
            cr_assert_eq(rig_submit(frames, session, i + k, false), COX_OK, "%s", rig_log(rig));
        cox_session_wait(session);
        for (uint32_t k = 0; k < 3; k++) {
            cr_assert_eq(rig_done_status(rig, i + k), COX_OK);
            cr_assert_str_empty(rig_check(frames, i + k));
        }
    }
    cr_assert_eq(rig_done_count(rig), to);
}

#endif
