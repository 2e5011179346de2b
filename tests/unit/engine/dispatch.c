/* Sessions whose callbacks run inside cox_session_dispatch, on scripted devices: what waits for what and what does not.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/state.h"
#include "support/rig_play.h"
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 60, COLUMNS = 16, FRAMES = 8, IN_FLIGHT = 4 };
static const uint64_t ms = 1000000;

static const struct fake_params pair = {.device_count = 2, .devices = {{.ns_per_row = 1e4}, {.ns_per_row = 3e4}}};

static struct scene {
    struct play play;
    pthread_t thread;   /* callbacks are to run on it */
    uint32_t submitted; /* frames */
    uint32_t chain;     /* frames that callbacks are to submit */
    uint32_t refused;   /* of these */
    void (*act)(void);  /* what the first callback does */
} scene;

/* Every test begins with this. */
static void begin(void)
{
    scene = (struct scene){.thread = pthread_self()};
    scene.play =
        play_begin(&pair, ROWS, COLUMNS, COLUMNS, FRAMES,
                   &(const struct cox_session_params){.no_warmup = true, .in_flight = IN_FLIGHT, .dispatch = true});
}

TestSuite(engine_dispatch, .timeout = 300, .init = begin);

static void end(void)
{
    cox_session_destroy(&scene.play.session);
    cr_assert_null(scene.play.session);
    cr_assert_eq(rig_done_count(scene.play.rig), scene.submitted, "each callback has run once");
    for (uint32_t i = 0; i < scene.submitted; i++)
        cr_assert_eq(rig_done_frame(scene.play.rig, i), i, "in order");
    play_end(&scene.play);
}

static void on_done(void *user, uint64_t frame, cox_status status);

static cox_status submit_to(uint32_t in, cox_buffer *out)
{
    const struct rig_frames *frames = scene.play.frames;
    cox_buffer *const buffers[] = {frames->in[in], out};
    const cox_status status = cox_session_submit(scene.play.session,
                                                 &(const struct cox_frame){.buffers = buffers,
                                                                           .buffer_count = 2,
                                                                           .params = &frames->params[in]},
                                                 on_done, NULL);
    scene.submitted += status == COX_OK;
    return status;
}

static cox_status submit(void)
{
    const uint32_t i = scene.submitted % FRAMES;
    return submit_to(i, scene.play.frames->out[i]);
}

static void submit_all(uint32_t frames)
{
    for (uint32_t i = 0; i < frames; i++)
        cr_assert_eq(submit(), COX_OK);
}

static cox_status run(void)
{
    return cox_session_run(scene.play.session, RIG_FRAME(scene.play.frames, 0));
}

static int dispatch(uint64_t timeout_ns)
{
    return cox_session_dispatch(scene.play.session, timeout_ns);
}

/* Until nothing is under way. */
static uint32_t dispatch_all(void)
{
    uint32_t ran = 0;
    for (int count; (count = dispatch(UINT64_MAX)) > 0;)
        ran += (uint32_t)count;
    return ran;
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    (void)user;
    cr_assert(pthread_equal(pthread_self(), scene.thread), "on the thread that asked for it");
    rig_done(scene.play.rig, frame, status);
    if (scene.act && frame == 0)
        scene.act();
    if (!scene.chain)
        return;
    scene.chain--;
    scene.refused += submit() != COX_OK;
}

static bool is_readable(void)
{
    struct pollfd on = {.fd = cox_session_descriptor(scene.play.session), .events = POLLIN};
    cr_assert_geq(on.fd, 0);
    const int count = poll(&on, 1, 0);
    cr_assert_geq(count, 0);
    return count == 1;
}

/* ---- the descriptor ---- */

Test(engine_dispatch, the_descriptor_is_readable_for_as_long_as_callbacks_wait)
{
    fake_hold(scene.play.fake);
    submit_all(3);
    cr_assert(fake_await_running(scene.play.fake, 2));
    cr_assert_not(is_readable(), "no frame is done");
    cr_assert_eq(dispatch(0), 0);
    fake_release(scene.play.fake);
    cr_assert_eq(cox_session_wait(scene.play.session), COX_OK);
    for (uint32_t look = 0; look < 3; look++)
        cr_assert(is_readable(), "it is level-triggered");
    play_check(&scene.play, 0, 3); /* what is readable is delivered */
    cr_assert_eq(rig_done_count(scene.play.rig), 0);
    cr_assert_eq(dispatch(0), 3);
    cr_assert_eq(rig_done_count(scene.play.rig), 3);
    cr_assert_not(is_readable());
    cr_assert_eq(dispatch(0), 0);
    end();
}

static void look(void)
{
    cr_assert(is_readable(), "another callback waits");
}

Test(engine_dispatch, it_is_readable_inside_a_callback_while_others_wait)
{
    scene.act = look;
    submit_all(2);
    cox_session_wait(scene.play.session);
    cr_assert_eq(dispatch(0), 2);
    end();
}

Test(engine_dispatch, a_frame_counts_once_it_is_delivered)
{
    submit_all(3);
    cr_assert_eq(cox_session_wait(scene.play.session), COX_OK);
    cr_assert_eq(rig_info(scene.play.session).frames_done, 3, "before its callback has run");
    cr_assert_eq(dispatch(0), 3);
    cr_assert_eq(rig_info(scene.play.session).frames_done, 3);
    end();
}

/* ---- how long a dispatch waits ---- */

Test(engine_dispatch, waits_until_a_callback_may_run_or_none_will_come)
{
    cr_assert_eq(dispatch(UINT64_MAX), 0, "no frame is under way");
    submit_all(3);
    cr_assert_eq(dispatch_all(), 3);
    cr_assert_eq(rig_done_count(scene.play.rig), 3);
    end();
}

Test(engine_dispatch, waits_no_longer_than_it_is_told)
{
    fake_hold(scene.play.fake);
    submit_all(1);
    cr_assert_eq(dispatch(0), 0);
    cr_assert_eq(dispatch(20 * ms), 0, "the frame cannot end");
    fake_release(scene.play.fake);
    cr_assert_eq(dispatch(60000 * ms), 1);
    end();
}

/* ---- places ---- */

Test(engine_dispatch, a_frame_holds_its_place_until_its_callback_and_submit_does_not_wait_for_one)
{
    for (uint32_t round = 0; round < 3; round++) {
        submit_all(IN_FLIGHT);
        cr_assert_eq(submit(), COX_E_BUSY, "nowait is not set");
        cr_assert_eq(run(), COX_E_BUSY);
        cox_session_wait(scene.play.session);
        cr_assert_eq(submit(), COX_E_BUSY, "they are delivered, but their callbacks wait");
        cr_assert_eq(dispatch(0), IN_FLIGHT);
    }
    end();
}

static void *take_all_places(void *user)
{
    (void)user;
    while (submit() == COX_OK)
        continue;
    return NULL;
}

static void compete(void)
{
    pthread_t thread;
    const uint32_t before = scene.submitted;
    cr_assert_eq(pthread_create(&thread, NULL, take_all_places, NULL), 0);
    pthread_join(thread, NULL);
    cr_assert_gt(scene.submitted, before);
    cr_assert_eq(submit(), COX_OK, "the callback's own place is left");
    cr_assert_eq(submit(), COX_E_BUSY);
}

Test(engine_dispatch, a_callback_finds_a_place_for_one_frame_whatever_other_threads_take)
{
    scene.act = compete;
    submit_all(1);
    cr_assert_eq(dispatch(UINT64_MAX), 1);
    end();
}

Test(engine_dispatch, a_callback_finds_a_place_for_one_frame)
{
    submit_all(IN_FLIGHT);
    scene.chain = 50;
    dispatch_all();
    cr_assert_eq(scene.chain, 0);
    cr_assert_eq(scene.refused, 0);
    cr_assert_eq(rig_done_count(scene.play.rig), IN_FLIGHT + 50);
    end();
}

static void fill(void)
{
    uint32_t taken = 0;
    while (submit() == COX_OK)
        taken++;
    cr_assert_eq(taken, IN_FLIGHT + 1, "its own frame has no place any more");
}

Test(engine_dispatch, and_is_told_where_there_is_none_for_more)
{
    scene.act = fill;
    submit_all(1);
    cox_session_wait(scene.play.session);
    cr_assert_eq(dispatch(0), 1, "what callbacks submit is for the next call");
    end();
}

Test(engine_dispatch, a_frame_without_a_callback_holds_no_place)
{
    for (uint32_t i = 0; i < 4 * IN_FLIGHT; i++) {
        cr_assert_eq(cox_session_submit(scene.play.session, RIG_FRAME(scene.play.frames, 0), NULL, NULL), COX_OK);
        cox_session_wait(scene.play.session);
        cr_assert_not(is_readable());
    }
    end();
}

/* ---- what does not wait for callbacks ---- */

Test(engine_dispatch, cox_session_run_and_wait_run_no_callback)
{
    submit_all(2);
    cr_assert_eq(run(), COX_OK);
    play_check(&scene.play, 0, 1);
    cr_assert_eq(cox_session_wait(scene.play.session), COX_OK);
    cr_assert_eq(rig_done_count(scene.play.rig), 0);
    cr_assert_eq(dispatch(0), 2);
    end();
}

static void call_what_waits(void)
{
    cr_assert_eq(submit(), COX_OK);
    cr_assert_eq(run(), COX_OK);
    cr_assert_eq(cox_session_wait(scene.play.session), COX_OK);
    cr_assert_eq(cox_session_warm(scene.play.session, NULL, NULL, NULL), COX_OK);
}

Test(engine_dispatch, a_callback_may_wait)
{
    scene.act = call_what_waits;
    submit_all(1);
    cr_assert_eq(dispatch(UINT64_MAX), 1);
    end();
}

/* Three frames write the same buffer, and the second one's session does not dispatch. */
Test(engine_dispatch, frames_that_share_a_buffer_do_not_wait_for_callbacks)
{
    const struct rig_frames *frames = scene.play.frames;
    cox_session *other = play_session(&scene.play, &(const struct cox_session_params){.no_warmup = true});
    cox_buffer *const buffers[] = {frames->in[1], frames->out[0]};
    cr_assert_eq(submit_to(0, frames->out[0]), COX_OK);
    cr_assert_eq(cox_session_run(other, &(const struct cox_frame){.buffers = buffers,
                                                                  .buffer_count = 2,
                                                                  .params = &frames->params[1]}),
                 COX_OK);
    cr_assert_eq(submit_to(0, frames->out[0]), COX_OK);
    cr_assert_eq(cox_session_wait(scene.play.session), COX_OK);
    play_check(&scene.play, 0, 1);
    cr_assert_eq(dispatch(0), 2);
    cox_session_destroy(&other);
    end();
}

Test(engine_dispatch, destroying_wrapped_memory_does_not_wait_for_a_callback)
{
    static _Alignas(4096) unsigned char memory[4096];
    cox_buffer *wrapped = NULL;
    cr_assert_eq(cox_buffer_wrap(rig_runtime(scene.play.rig), memory, sizeof memory, NULL, NULL, &wrapped), COX_OK);
    cr_assert_eq(submit_to(0, wrapped), COX_OK);
    cox_buffer_destroy(&wrapped);
    cr_assert_null(wrapped);
    cr_assert_eq(dispatch(UINT64_MAX), 1);
    end();
}

Test(engine_dispatch, cancelling_changes_no_frame_that_is_delivered)
{
    submit_all(1);
    cox_session_wait(scene.play.session);
    fake_hold(scene.play.fake);
    submit_all(2);
    cr_assert_eq(cox_session_cancel(scene.play.session), COX_OK);
    fake_release(scene.play.fake);
    dispatch_all();
    cr_assert_eq(rig_done_status(scene.play.rig, 0), COX_OK);
    cr_assert_eq(rig_done_status(scene.play.rig, 1), COX_E_CANCELLED);
    cr_assert_eq(rig_done_status(scene.play.rig, 2), COX_E_CANCELLED);
    end();
}

/* ---- the end ---- */

static void end_with_callbacks_left(bool held)
{
    if (held)
        fake_hold(scene.play.fake);
    scene.chain = 7;
    submit_all(3);
    if (!held)
        cox_session_wait(scene.play.session);
    cr_assert_eq(rig_done_count(scene.play.rig), 0);
    fake_release(scene.play.fake);
    cox_session *handle = scene.play.session; /* which callbacks go on to use */
    cox_session_destroy(&handle);
    scene.play.session = NULL;
    cr_assert_eq(scene.submitted, 10);
    cr_assert_eq(scene.refused, 0);
    end();
}

Test(engine_dispatch, destroying_the_session_runs_the_callbacks_that_are_left_and_those_of_their_frames)
{
    end_with_callbacks_left(false);
    begin();
    end_with_callbacks_left(true);
}

static void destroy(void)
{
    cox_session *session = scene.play.session;
    cox_session_destroy(&session);
    cr_assert_eq(session, scene.play.session, "it is left");
}

static void is_not_destroyed_in_a_callback_of(void (*call)(cox_session **handle))
{
    scene.act = destroy;
    submit_all(1);
    cox_session *handle = scene.play.session;
    call(&handle);
    cr_assert(rig_logged(scene.play.rig, "cox_session_destroy: a thread is inside cox_session_dispatch"));
    scene.play.session = handle;
    end();
}

static void dispatch_one(cox_session **handle)
{
    cr_assert_eq(cox_session_dispatch(*handle, UINT64_MAX), 1);
}

Test(engine_dispatch, a_callback_does_not_destroy_its_session)
{
    is_not_destroyed_in_a_callback_of(dispatch_one);
    begin();
    is_not_destroyed_in_a_callback_of(cox_session_destroy);
}

/* ---- calls at a wrong place ---- */

static void dispatch_inside(void)
{
    cr_assert_eq(dispatch(0), COX_E_INVALID);
    cr_assert_eq(dispatch(UINT64_MAX), COX_E_INVALID);
    cr_assert(rig_logged(scene.play.rig, "cox_session_dispatch: not from a callback of the same session"));
}

Test(engine_dispatch, not_inside_itself)
{
    scene.act = dispatch_inside;
    submit_all(2);
    cox_session_wait(scene.play.session);
    cr_assert_eq(dispatch(0), 2);
    end();
}

static void on_scheduler(void *user, uint64_t frame, cox_status status)
{
    (void)user, (void)frame, (void)status;
    cr_assert_eq(dispatch(UINT64_MAX), COX_E_INVALID);
    cr_assert(rig_logged(scene.play.rig, "cox_session_dispatch: not from a callback"));
}

Test(engine_dispatch, not_of_a_session_without_it_nor_on_the_scheduler_thread)
{
    cox_session *other = play_session(&scene.play, &(const struct cox_session_params){.no_warmup = true});
    cr_assert_eq(cox_session_dispatch(NULL, 0), COX_E_INVALID);
    cr_assert_eq(cox_session_descriptor(NULL), COX_E_INVALID);
    cr_assert_eq(cox_session_dispatch(other, 0), COX_E_INVALID);
    cr_assert_eq(cox_session_descriptor(other), COX_E_INVALID);
    cr_assert(rig_logged(scene.play.rig, "cox_session_dispatch: the session was made without"));
    cr_assert(rig_logged(scene.play.rig, "cox_session_descriptor: the session was made without"));
    cr_assert_eq(cox_session_submit(other, RIG_FRAME(scene.play.frames, 1), on_scheduler, NULL), COX_OK);
    cox_session_destroy(&other);
    end();
}

Test(engine_dispatch, not_in_a_child_process)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(dispatch(0) != COX_E_INVALID || cox_session_descriptor(scene.play.session) != COX_E_INVALID);
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    end();
}

/* ---- several threads ---- */

static void *help(void *ran)
{
    *(int *)ran = dispatch(UINT64_MAX);
    return NULL;
}

/* The other thread waits until the session has nothing under way. */
Test(engine_dispatch, a_session_is_not_destroyed_while_another_thread_is_inside)
{
    pthread_t thread;
    int ran = 0;
    fake_hold(scene.play.fake);
    submit_all(1);
    cr_assert_eq(pthread_create(&thread, NULL, help, &ran), 0);
    scene.thread = thread;
    cox_session *session = scene.play.session;
    for (uint32_t tries = 0;; tries++) {
        pthread_mutex_lock(&session->lock);
        const bool inside = session->outbox.visitors > 0;
        pthread_mutex_unlock(&session->lock);
        if (inside)
            break;
        cr_assert_lt(tries, 120000, "the other thread does not come to wait");
        usleep(1000);
    }
    cox_session_destroy(&session);
    cr_assert_not_null(session);
    cr_assert(rig_logged(scene.play.rig, "cox_session_destroy: a thread is inside cox_session_dispatch"));
    fake_release(scene.play.fake);
    pthread_join(thread, NULL);
    cr_assert_eq(ran, 1);
    end();
}
