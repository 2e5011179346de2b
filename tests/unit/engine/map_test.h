/* Shared by the tests of rig_map sessions: the rig, its frames and one session, and functions to open and close
 * them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_MAP_TEST_H
#define COX_TESTS_MAP_TEST_H

#include "specs.h"
#include "support/rig_play.h"
#include <stdlib.h>
#include <string.h>

/* Each test runs in its own process and has one of each at a time. */
static struct rig *rig;
static struct fake *fake;
static struct rig_frames *frames;
static cox_session *session;

/* Open a rig with frames whose rows are 16 bytes apart. */
static inline void open_rig(const struct fake_params *devices, uint32_t rows, uint32_t columns, uint32_t count)
{
    rig = rig_new(devices);
    fake = rig_fake(rig);
    frames = rig_frames_new(rig, rows, columns, 16, count);
}

/* Open a session for these frames. It keeps reports, unless the parameters have a `report`. */
static inline void open_session(const struct cox__session_spec *given)
{
    struct cox__session_spec params = *given;
    if (!params.report) {
        params.report = rig_report;
        params.report_user = rig;
    }
    cr_assert_eq(rig_map_session(frames, &params, &session), COX_OK, "%s", rig_log(rig));
}

/* Create a session from exactly these parameters. */
static inline void create_session(const struct cox__session_spec *params)
{
    cr_assert_eq(cox__session_create(rig_runtime(rig), params, &session), COX_OK, "%s", rig_log(rig));
}

static inline cox_buffer *new_buffer(size_t bytes)
{
    cox_buffer *buffer;
    cr_assert_eq(cox_buffer_create(rig_runtime(rig), bytes, &buffer), COX_OK);
    return buffer;
}

/* Close everything that is open. */
static inline void close_rig(void)
{
    cox_session_destroy(&session);
    if (frames)
        rig_frames_free(&frames);
    cr_assert(fake_await_gone(fake), "memory was not released");
    END(rig);
}

/* Submit `count` frames, starting with `first`. */
static inline void submit_frames(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        cr_assert_eq(rig_submit(frames, session, i, false), COX_OK, "%s", rig_log(rig));
}

static inline void run_frames(uint32_t first, uint32_t count)
{
    submit_frames(first, count);
    cox_session_wait(session);
}

static inline const struct cox_frame_report *reported(uint32_t index)
{
    return &rig_report_at(rig, index)->frame;
}

#define FAULT(...) fake_script(fake, &(struct fake_fault){__VA_ARGS__})

#endif
