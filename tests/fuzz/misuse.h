/* Shared by the fuzz targets of the engine: what an application must not do. Each call is refused with the status
 * that its header promises, and has no other effect.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FUZZ_MISUSE_H
#define COX_TESTS_FUZZ_MISUSE_H

#include "client_act.h"

static void refused(const char *what, cox_status status)
{
    tell("  %.6f misuse, %s: %s\n", (double)now() * 1e-9, what, cox_status_name(status));
    CHECK(status == COX_E_INVALID, "%s: %s", what, cox_status_name(status));
}

/* Submit a frame that is wrong. No callback runs. */
static void submit_wrong(const char *what, struct cox__frame_spec frame)
{
    refused(what, cox__session_submit(c->session, &frame, on_done, NULL));
}

/* ---- frames ---- */

/* The first binding that frames give; binding_count = none. */
static uint32_t first_given(bool written)
{
    uint32_t i = 0;
    while (i < c->frames->binding_count &&
           (c->frames->bindings[i].scratch || (written && c->frames->bindings[i].access == COX__READ)))
        i++;
    return i;
}

static void give_wrong_buffers(uint32_t how)
{
    cox_buffer *buffers[COX_BUFFERS_MAX] = {NULL}, *shorter = NULL;
    const uint32_t set = c->submitted % c->sets, count = c->frames->binding_count;
    struct cox__frame_spec frame = shape_frame(c->frames, set);
    const uint32_t given = first_given(false), written = first_given(true);
    if (c->dropped[set])
        return;
    memcpy(buffers, c->frames->buffers[set], count * sizeof *buffers);
    frame.buffers = buffers;
    switch (how % 4) {
    case 0:
        buffers[given] = NULL;
        submit_wrong("a buffer is missing", frame);
        break;
    case 1:
        /* There may be no memory. */
        if (buffers[given]->bytes == 1 || cox_buffer_create(rig_runtime(w.rig), buffers[given]->bytes - 1, &shorter))
            return;
        buffers[given] = shorter;
        submit_wrong("a buffer is too short", frame);
        cox_buffer_destroy(&shorter);
        CHECK(!shorter, "a buffer is not destroyed");
        break;
    case 2:
        if (given == written)
            return;
        buffers[given] = buffers[written];
        submit_wrong("a buffer is given twice, or is too short", frame);
        break;
    default:
        for (uint32_t i = 0; i < count; i++)
            if (c->frames->bindings[i].scratch) {
                buffers[i] = buffers[given];
                submit_wrong("a buffer is given for scratch", frame);
                return;
            }
    }
}

static void give_wrong_frame(uint32_t how)
{
    struct cox__frame_spec frame = shape_frame(c->frames, c->submitted);
    switch (how % 4) {
    case 0:
        frame.buffer_count += how & 4 ? 1 : UINT32_MAX;
        submit_wrong("a wrong number of buffers", frame);
        break;
    case 1:
        frame.buffers = NULL;
        submit_wrong("no buffers", frame);
        break;
    case 2:
        frame.late = 7;
        if (!c->dropped[c->submitted % c->sets])
            submit_wrong("no value of enum cox_late", frame);
        break;
    default:
        refused("no frame", cox__session_submit(c->session, NULL, on_done, NULL));
    }
}

/* ---- sessions and runtimes ---- */

static void create_wrong(uint32_t how)
{
    struct cox__session_spec params = c->params;
    cox_session *session = c->session;
    params.warm_start = NULL;
    if (how % 4 == 0)
        params.in_flight = COX_IN_FLIGHT_MAX + 1;
    if (how % 4 == 1)
        params.verify = -0.5;
    if (how % 4 == 2)
        params.verify = 2;
    if (how % 4 == 3) {
        refused("no parameters", cox__session_create(rig_runtime(w.rig), NULL, &session));
        refused("nowhere for the session", shape_session(c->frames, &c->params, NULL));
    } else {
        refused("a session with wrong parameters", shape_session(c->frames, &params, &session));
    }
    CHECK(!session, "a session in spite of an error");
}

static void use_nothing(void)
{
    struct cox_session_info info;
    cox_session *session = NULL;
    cox_buffer *buffer = NULL;
    cox_session_destroy(NULL);
    cox_session_destroy(&session);
    cox_session_destroy(&session);
    cox_buffer_destroy(NULL);
    cox_buffer_destroy(&buffer);
    cox_session_info(NULL, &info);
    cox_session_info(c->session, NULL);
    CHECK(info.device_count == 0, "info of no session");
    refused("cancel nothing", cox_session_cancel(NULL));
    refused("wait for nothing", cox_session_wait(NULL));
    refused("warm nothing", cox_session_warm(NULL, NULL));
    refused("run nothing", cox__session_run(NULL, NULL));
    refused("a buffer of no bytes", cox_buffer_create(rig_runtime(w.rig), 0, &buffer));
    refused("a buffer of too many bytes", cox_buffer_create(rig_runtime(w.rig), SIZE_MAX, &buffer));
    refused("wrapped nothing", cox_buffer_wrap(rig_runtime(w.rig), NULL, 1, NULL, NULL, &buffer));
    refused("fetch nothing", cox_session_fetch(c->session, NULL));
}

static void destroy_runtime_in_use(void)
{
    cox_runtime *runtime = rig_runtime(w.rig);
    cox_runtime_destroy(&runtime);
    CHECK(runtime, "a runtime with sessions is destroyed");
}

static void misuse(uint32_t how)
{
    switch (how % 8) {
    case 0:
    case 1:
        give_wrong_buffers(how / 8);
        break;
    case 2:
    case 3:
        give_wrong_frame(how / 8);
        break;
    case 4:
        create_wrong(how / 8);
        break;
    case 5:
        use_nothing();
        break;
    case 6:
        destroy_runtime_in_use();
        break;
    default:
        c->misuses = true;
    }
}

/* ---- in callbacks ---- */

static void misuse_in_callback(void)
{
    cox_session *session = c->session, *other = NULL;
    if (!c->misuses || !session)
        return;
    c->misuses = false;
    const struct cox__frame_spec frame = shape_frame(c->frames, 0);
    refused("run in a callback", cox__session_run(session, &frame));
    refused("wait in a callback", cox_session_wait(session));
    refused("warm in a callback", cox_session_warm(session, NULL));
    refused("create in a callback", shape_session(c->frames, &c->params, &other));
    if (c->frames->buffers[0][0])
        refused("fetch in a callback", cox_session_fetch(session, c->frames->buffers[0][0]));
    cox_session_destroy(&session);
    CHECK(session, "a session is destroyed in a callback");
    CHECK(!other, "a session is created in a callback");
    destroy_runtime_in_use();
}

#endif
