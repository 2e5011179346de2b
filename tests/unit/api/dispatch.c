/* An application with a poll loop of its own, on real OpenCL devices, through public headers only.
 * SPDX-License-Identifier: Apache-2.0 */
#include "real.h"
#include <poll.h>
#include <pthread.h>

TestSuite(api_dispatch, .fini = close_all, .timeout = 600);

enum { IN_FLIGHT = 3 };

static pthread_t thread; /* callbacks are to run on it */

static struct scene *open_dispatched(uint32_t which)
{
    thread = pthread_self();
    if (!runtime)
        open_runtime(NULL);
    return open_scene(which, runtime, &(const struct cox_session_params){.in_flight = IN_FLIGHT, .dispatch = true});
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct scene *scene = user;
    cr_assert(pthread_equal(pthread_self(), thread), "on the thread of the loop");
    cr_assert_eq(frame, scene->done, "in order, none twice");
    cr_assert_eq(status, COX_OK);
    check_frame(scene, scene->done);
    scene->done++;
    if (scene->submitted < scene->target)
        cr_assert_eq(submit_frame(scene, false, on_done), COX_OK);
}

/* Give the session what it takes of so many frames. */
static void feed(struct scene *scene, uint32_t frames)
{
    cox_status status = COX_OK;
    while (scene->submitted < frames && !status)
        status = submit_frame(scene, false, on_done);
    cr_assert(status == COX_OK || status == COX_E_BUSY);
}

/* An application's loop: nothing but poll blocks. `frames`: of each session. */
static void loop(uint32_t count, const uint32_t *frames)
{
    struct pollfd on[SCENES];
    for (uint32_t s = 0; s < count; s++) {
        on[s] = (struct pollfd){.fd = cox_session_descriptor(scenes[s].session), .events = POLLIN};
        cr_assert_geq(on[s].fd, 0);
        feed(&scenes[s], scenes[s].target ? IN_FLIGHT - 1 : frames[s]);
    }
    for (uint32_t left = count; left > 0;) {
        cr_assert_gt(poll(on, count, 60000), 0, "no frame is done within a minute");
        left = 0;
        for (uint32_t s = 0; s < count; s++) {
            if (on[s].revents & POLLIN)
                cr_assert_gt(cox_session_dispatch(scenes[s].session, 0), 0, "readable means that there are some");
            if (!scenes[s].target)
                feed(&scenes[s], frames[s]);
            left += scenes[s].done < frames[s];
        }
    }
    cr_assert_eq(poll(on, count, 0), 0, "nothing is left");
    for (uint32_t s = 0; s < count; s++) {
        cox_session_destroy(&scenes[s].session);
        cr_assert_eq(scenes[s].done, frames[s], "each callback has run once");
    }
}

Test(api_dispatch, a_poll_loop_runs_the_callbacks_of_its_session_in_order)
{
    struct scene *scene = open_dispatched(0);
    loop(1, (const uint32_t[]){60});
    cr_assert_geq(scene->busy, 1, "more frames were offered than have a place");
}

Test(api_dispatch, one_poll_loop_serves_two_sessions)
{
    for (uint32_t s = 0; s < SCENES; s++)
        open_dispatched(s);
    cr_assert_neq(cox_session_descriptor(scenes[0].session), cox_session_descriptor(scenes[1].session));
    loop(SCENES, (const uint32_t[]){30, 50});
}

Test(api_dispatch, callbacks_submit_the_next_frames)
{
    open_dispatched(0)->target = 60;
    loop(1, (const uint32_t[]){60});
}

Test(api_dispatch, a_full_session_refuses_frames_until_callbacks_have_run)
{
    struct scene *scene = open_dispatched(0);
    feed(scene, IN_FLIGHT);
    cr_assert_eq(scene->submitted, IN_FLIGHT);
    cr_assert_eq(submit_frame(scene, false, on_done), COX_E_BUSY);
    cr_assert_eq(cox_session_wait(scene->session), COX_OK);
    cr_assert_eq(submit_frame(scene, false, on_done), COX_E_BUSY);
    cr_assert_eq(cox_session_dispatch(scene->session, 0), IN_FLIGHT);
    cr_assert_eq(submit_frame(scene, false, on_done), COX_OK);
    cr_assert_eq(cox_session_dispatch(scene->session, UINT64_MAX), 1);
    cr_assert_eq(scene->done, IN_FLIGHT + 1);
}

Test(api_dispatch, cox_session_wait_and_run_go_on_without_callbacks)
{
    struct scene *scene = open_dispatched(0);
    feed(scene, 2);
    const struct stir_params params = {.pitch = (int32_t)(scene->pitch / 4), .add = 2000};
    cox_buffer *const buffers[] = {scene->in[2], scene->out[2]};
    cr_assert_eq(cox_session_run(scene->session,
                                 &(const struct cox_frame){.buffers = buffers, .buffer_count = 2, .params = &params}),
                 COX_OK);
    check_frame(scene, 2);
    cr_assert_eq(cox_session_wait(scene->session), COX_OK);
    cr_assert_eq(scene->done, 0);
    cr_assert_eq(cox_session_dispatch(scene->session, UINT64_MAX), 2);
    cr_assert_eq(cox_session_dispatch(scene->session, UINT64_MAX), 0, "no frame is under way");
    cr_assert_eq(scene->done, 2);
}

/* Whether or not it is delivered. */
Test(api_dispatch, destroying_the_session_runs_what_is_left_on_this_thread)
{
    for (uint32_t waits = 0; waits < 2; waits++) {
        struct scene *scene = open_dispatched(0);
        feed(scene, IN_FLIGHT);
        if (waits)
            cox_session_wait(scene->session);
        close_scene(scene);
        cr_assert_eq(scene->done, IN_FLIGHT);
    }
}
