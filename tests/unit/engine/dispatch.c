/* Sessions whose callbacks run inside cox_session_dispatch, on scripted devices: what waits for what and what does not.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/state.h"
#include "support/rig_play.h"
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(engine_dispatch, .timeout = 300);

enum { ROWS = 60, COLUMNS = 16, FRAMES = 8, IN_FLIGHT = 4 };
static const uint64_t ms = 1000000;

static const struct fake_params pair = {.device_count = 2, .devices = {{.ns_per_row = 1e4}, {.ns_per_row = 3e4}}};

struct scene {
    struct rig *rig;
    struct rig_frames *frames;
    cox_session *session;
    pthread_t thread;                 /* callbacks are to run on it */
    uint32_t submitted;               /* frames */
    uint32_t chain;                   /* frames that callbacks are to submit */
    uint32_t refused;                 /* of these */
    void (*act)(struct scene *scene); /* what the first callback does */
};

static struct scene *begin(const struct cox_session_params *given)
{
    struct scene *scene = calloc(1, sizeof *scene);
    struct cox_session_params params = *given;
    cr_assert_not_null(scene);
    scene->rig = rig_new(&pair);
    scene->frames = rig_frames_new(scene->rig, ROWS, COLUMNS, COLUMNS, FRAMES);
    scene->thread = pthread_self();
    params.in_flight = IN_FLIGHT;
    params.dispatch = true;
    cr_assert_eq(rig_map_session(scene->frames, &params, &scene->session), COX_OK, "%s", rig_log(scene->rig));
    return scene;
}

static void end(struct scene *scene)
{
    cox_session_destroy(&scene->session);
    cr_assert_null(scene->session);
    cr_assert_eq(rig_done_count(scene->rig), scene->submitted, "each callback has run once");
    for (uint32_t i = 0; i < scene->submitted; i++)
        cr_assert_eq(rig_done_frame(scene->rig, i), i, "in order");
    rig_frames_free(&scene->frames);
    END(scene->rig);
    free(scene);
}

static void on_done(void *user, uint64_t frame, cox_status status);

static cox_status submit_to(struct scene *scene, uint32_t in, uint32_t out)
{
    cox_buffer *const buffers[] = {scene->frames->in[in], scene->frames->out[out]};
    const cox_status status = cox_session_submit(scene->session,
                                                 COX_FRAME(.buffers = buffers, .buffer_count = 2,
                                                           .params = &scene->frames->params[in]),
                                                 on_done, scene);
    scene->submitted += status == COX_OK;
    return status;
}

static cox_status submit(struct scene *scene)
{
    return submit_to(scene, scene->submitted % FRAMES, scene->submitted % FRAMES);
}

static cox_status run(struct scene *scene)
{
    cox_buffer *const buffers[] = {scene->frames->in[0], scene->frames->out[0]};
    return cox_session_run(scene->session,
                           COX_FRAME(.buffers = buffers, .buffer_count = 2, .params = &scene->frames->params[0]));
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct scene *scene = user;
    cr_assert(pthread_equal(pthread_self(), scene->thread), "on the thread that asked for it");
    rig_done(scene->rig, frame, status);
    if (scene->act && frame == 0)
        scene->act(scene);
    if (!scene->chain)
        return;
    scene->chain--;
    scene->refused += submit(scene) != COX_OK;
}

static bool is_readable(const struct scene *scene)
{
    struct pollfd on = {.fd = cox_session_descriptor(scene->session), .events = POLLIN};
    cr_assert_geq(on.fd, 0);
    const int count = poll(&on, 1, 0);
    cr_assert_geq(count, 0);
    return count == 1;
}

/* ---- the descriptor ---- */

Test(engine_dispatch, the_descriptor_is_readable_for_as_long_as_callbacks_wait)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    fake_hold(rig_fake(scene->rig));
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_eq(submit(scene), COX_OK);
    cr_assert(fake_await_running(rig_fake(scene->rig), 2));
    cr_assert_not(is_readable(scene), "no frame is done");
    cr_assert_eq(cox_session_dispatch(scene->session, 0), 0);
    fake_release(rig_fake(scene->rig));
    cr_assert_eq(cox_session_wait(scene->session), COX_OK);
    for (uint32_t look = 0; look < 3; look++)
        cr_assert(is_readable(scene), "it is level-triggered");
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_str_empty(rig_check(scene->frames, i), "what is readable is delivered");
    cr_assert_eq(rig_done_count(scene->rig), 0);
    cr_assert_eq(cox_session_dispatch(scene->session, 0), 3);
    cr_assert_eq(rig_done_count(scene->rig), 3);
    cr_assert_not(is_readable(scene));
    cr_assert_eq(cox_session_dispatch(scene->session, 0), 0);
    end(scene);
}

static void look(struct scene *scene)
{
    cr_assert(is_readable(scene), "another callback waits");
}

Test(engine_dispatch, it_is_readable_inside_a_callback_while_others_wait)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    scene->act = look;
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_eq(submit(scene), COX_OK);
    cox_session_wait(scene->session);
    cr_assert_eq(cox_session_dispatch(scene->session, 0), 2);
    end(scene);
}

/* ---- how long a dispatch waits ---- */

Test(engine_dispatch, waits_until_a_callback_may_run_or_none_will_come)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    cr_assert_eq(cox_session_dispatch(scene->session, UINT64_MAX), 0, "no frame is under way");
    uint32_t ran = 0;
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_eq(submit(scene), COX_OK);
    for (int count; (count = cox_session_dispatch(scene->session, UINT64_MAX)) > 0;)
        ran += (uint32_t)count;
    cr_assert_eq(ran, 3);
    cr_assert_eq(rig_done_count(scene->rig), 3);
    end(scene);
}

Test(engine_dispatch, waits_no_longer_than_it_is_told)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    fake_hold(rig_fake(scene->rig));
    cr_assert_eq(submit(scene), COX_OK);
    cr_assert_eq(cox_session_dispatch(scene->session, 0), 0);
    cr_assert_eq(cox_session_dispatch(scene->session, 20 * ms), 0, "the frame cannot end");
    fake_release(rig_fake(scene->rig));
    cr_assert_eq(cox_session_dispatch(scene->session, 60000 * ms), 1);
    end(scene);
}

/* ---- places ---- */

Test(engine_dispatch, a_frame_holds_its_place_until_its_callback_and_submit_does_not_wait_for_one)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < IN_FLIGHT; i++)
            cr_assert_eq(submit(scene), COX_OK);
        cr_assert_eq(submit(scene), COX_E_BUSY, "nowait is not set");
        cr_assert_eq(run(scene), COX_E_BUSY);
        cox_session_wait(scene->session);
        cr_assert_eq(submit(scene), COX_E_BUSY, "they are delivered, but their callbacks wait");
        cr_assert_eq(cox_session_dispatch(scene->session, 0), IN_FLIGHT);
    }
    end(scene);
}

static void *take_all_places(void *user)
{
    struct scene *scene = user;
    while (submit(scene) == COX_OK)
        continue;
    return NULL;
}

static void compete(struct scene *scene)
{
    pthread_t thread;
    const uint32_t before = scene->submitted;
    cr_assert_eq(pthread_create(&thread, NULL, take_all_places, scene), 0);
    pthread_join(thread, NULL);
    cr_assert_gt(scene->submitted, before);
    cr_assert_eq(submit(scene), COX_OK, "the callback's own place is left");
    cr_assert_eq(submit(scene), COX_E_BUSY);
}

Test(engine_dispatch, a_callback_finds_a_place_for_one_frame_whatever_other_threads_take)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    scene->act = compete;
    cr_assert_eq(submit(scene), COX_OK);
    cr_assert_eq(cox_session_dispatch(scene->session, UINT64_MAX), 1);
    end(scene);
}

Test(engine_dispatch, a_callback_finds_a_place_for_one_frame)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    for (uint32_t i = 0; i < IN_FLIGHT; i++)
        cr_assert_eq(submit(scene), COX_OK);
    scene->chain = 50;
    while (cox_session_dispatch(scene->session, UINT64_MAX) > 0)
        continue;
    cr_assert_eq(scene->chain, 0);
    cr_assert_eq(scene->refused, 0);
    cr_assert_eq(rig_done_count(scene->rig), IN_FLIGHT + 50);
    end(scene);
}

static void fill(struct scene *scene)
{
    uint32_t taken = 0;
    while (submit(scene) == COX_OK)
        taken++;
    cr_assert_eq(taken, IN_FLIGHT + 1, "its own frame has no place any more");
}

Test(engine_dispatch, and_is_told_where_there_is_none_for_more)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    scene->act = fill;
    cr_assert_eq(submit(scene), COX_OK);
    cox_session_wait(scene->session);
    cr_assert_eq(cox_session_dispatch(scene->session, 0), 1, "what callbacks submit is for the next call");
    end(scene);
}

Test(engine_dispatch, a_frame_without_a_callback_holds_no_place)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    cox_buffer *const buffers[] = {scene->frames->in[0], scene->frames->out[0]};
    for (uint32_t i = 0; i < 4 * IN_FLIGHT; i++) {
        cr_assert_eq(cox_session_submit(scene->session,
                                        COX_FRAME(.buffers = buffers, .buffer_count = 2,
                                                  .params = &scene->frames->params[0]),
                                        NULL, NULL),
                     COX_OK);
        cox_session_wait(scene->session);
        cr_assert_not(is_readable(scene));
    }
    end(scene);
}

/* ---- what does not wait for callbacks ---- */

Test(engine_dispatch, cox_session_run_and_wait_run_no_callback)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    cr_assert_eq(submit(scene), COX_OK);
    cr_assert_eq(submit(scene), COX_OK);
    cr_assert_eq(run(scene), COX_OK);
    cr_assert_str_empty(rig_check(scene->frames, 0));
    cr_assert_eq(cox_session_wait(scene->session), COX_OK);
    cr_assert_eq(rig_done_count(scene->rig), 0);
    cr_assert_eq(cox_session_dispatch(scene->session, 0), 2);
    end(scene);
}

static void call_what_waits(struct scene *scene)
{
    cr_assert_eq(submit(scene), COX_OK);
    cr_assert_eq(run(scene), COX_OK);
    cr_assert_eq(cox_session_wait(scene->session), COX_OK);
    cr_assert_eq(cox_session_warm(scene->session, NULL, NULL, NULL), COX_OK);
}

Test(engine_dispatch, a_callback_may_wait)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    scene->act = call_what_waits;
    cr_assert_eq(submit(scene), COX_OK);
    cr_assert_eq(cox_session_dispatch(scene->session, UINT64_MAX), 1);
    end(scene);
}

/* Three frames write the same buffer, and the second one's session does not dispatch. */
Test(engine_dispatch, frames_that_share_a_buffer_do_not_wait_for_callbacks)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    cox_session *other = NULL;
    cr_assert_eq(rig_map_session(scene->frames, COX_SESSION_PARAMS(.no_warmup = true), &other), COX_OK);
    cox_buffer *const buffers[] = {scene->frames->in[1], scene->frames->out[0]};
    cr_assert_eq(submit_to(scene, 0, 0), COX_OK);
    cr_assert_eq(cox_session_run(other,
                                 COX_FRAME(.buffers = buffers, .buffer_count = 2, .params = &scene->frames->params[1])),
                 COX_OK);
    cr_assert_eq(submit_to(scene, 0, 0), COX_OK);
    cr_assert_eq(cox_session_wait(scene->session), COX_OK);
    cr_assert_str_empty(rig_check(scene->frames, 0));
    cr_assert_eq(cox_session_dispatch(scene->session, 0), 2);
    cox_session_destroy(&other);
    end(scene);
}

Test(engine_dispatch, destroying_wrapped_memory_does_not_wait_for_a_callback)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    static _Alignas(4096) unsigned char memory[4096];
    cox_buffer *wrapped = NULL;
    cr_assert_eq(cox_buffer_wrap(rig_runtime(scene->rig), memory, sizeof memory, NULL, NULL, &wrapped), COX_OK);
    cox_buffer *const buffers[] = {scene->frames->in[0], wrapped};
    cr_assert_eq(cox_session_submit(scene->session,
                                    COX_FRAME(.buffers = buffers, .buffer_count = 2,
                                              .params = &scene->frames->params[0]),
                                    on_done, scene),
                 COX_OK);
    scene->submitted++;
    cox_buffer_destroy(&wrapped);
    cr_assert_null(wrapped);
    cr_assert_eq(cox_session_dispatch(scene->session, UINT64_MAX), 1);
    end(scene);
}

Test(engine_dispatch, cancelling_changes_no_frame_that_is_delivered)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    cr_assert_eq(submit(scene), COX_OK);
    cox_session_wait(scene->session);
    fake_hold(rig_fake(scene->rig));
    cr_assert_eq(submit(scene), COX_OK);
    cr_assert_eq(submit(scene), COX_OK);
    cr_assert_eq(cox_session_cancel(scene->session), COX_OK);
    fake_release(rig_fake(scene->rig));
    while (cox_session_dispatch(scene->session, UINT64_MAX) > 0)
        continue;
    cr_assert_eq(rig_done_status(scene->rig, 0), COX_OK);
    cr_assert_eq(rig_done_status(scene->rig, 1), COX_E_CANCELLED);
    cr_assert_eq(rig_done_status(scene->rig, 2), COX_E_CANCELLED);
    end(scene);
}

/* ---- the end ---- */

Test(engine_dispatch, destroying_the_session_runs_the_callbacks_that_are_left_and_those_of_their_frames)
{
    for (uint32_t held = 0; held < 2; held++) {
        struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
        if (held)
            fake_hold(rig_fake(scene->rig));
        scene->chain = 7;
        for (uint32_t i = 0; i < 3; i++)
            cr_assert_eq(submit(scene), COX_OK);
        if (!held)
            cox_session_wait(scene->session);
        cr_assert_eq(rig_done_count(scene->rig), 0);
        fake_release(rig_fake(scene->rig));
        cox_session *handle = scene->session;
        cox_session_destroy(&handle);
        scene->session = NULL;
        cr_assert_eq(scene->submitted, 10);
        cr_assert_eq(scene->refused, 0);
        end(scene);
    }
}

static void destroy(struct scene *scene)
{
    cox_session *session = scene->session;
    cox_session_destroy(&session);
    cr_assert_eq(session, scene->session, "it is left");
}

Test(engine_dispatch, a_callback_does_not_destroy_its_session)
{
    for (uint32_t in_destroy = 0; in_destroy < 2; in_destroy++) {
        struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
        scene->act = destroy;
        cr_assert_eq(submit(scene), COX_OK);
        cox_session *handle = scene->session;
        if (in_destroy)
            cox_session_destroy(&handle);
        else
            cr_assert_eq(cox_session_dispatch(scene->session, UINT64_MAX), 1);
        cr_assert(rig_logged(scene->rig, "cox_session_destroy: a thread is inside cox_session_dispatch"));
        scene->session = handle;
        end(scene);
    }
}

/* ---- calls at a wrong place ---- */

static void dispatch(struct scene *scene)
{
    cr_assert_eq(cox_session_dispatch(scene->session, 0), COX_E_INVALID);
    cr_assert_eq(cox_session_dispatch(scene->session, UINT64_MAX), COX_E_INVALID);
    cr_assert(rig_logged(scene->rig, "cox_session_dispatch: not from a callback of the same session"));
}

Test(engine_dispatch, not_inside_itself)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    scene->act = dispatch;
    cr_assert_eq(submit(scene), COX_OK);
    cr_assert_eq(submit(scene), COX_OK);
    cox_session_wait(scene->session);
    cr_assert_eq(cox_session_dispatch(scene->session, 0), 2);
    end(scene);
}

static void on_scheduler(void *user, uint64_t frame, cox_status status)
{
    struct scene *scene = user;
    (void)frame, (void)status;
    cr_assert_eq(cox_session_dispatch(scene->session, UINT64_MAX), COX_E_INVALID);
    cr_assert(rig_logged(scene->rig, "cox_session_dispatch: not from a callback"));
}

Test(engine_dispatch, not_of_a_session_without_it_nor_on_the_scheduler_thread)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    cox_session *other = NULL;
    cr_assert_eq(cox_session_dispatch(NULL, 0), COX_E_INVALID);
    cr_assert_eq(cox_session_descriptor(NULL), COX_E_INVALID);
    cr_assert_eq(rig_map_session(scene->frames, COX_SESSION_PARAMS(.no_warmup = true), &other), COX_OK);
    cr_assert_eq(cox_session_dispatch(other, 0), COX_E_INVALID);
    cr_assert_eq(cox_session_descriptor(other), COX_E_INVALID);
    cr_assert(rig_logged(scene->rig, "cox_session_dispatch: the session was made without"));
    cr_assert(rig_logged(scene->rig, "cox_session_descriptor: the session was made without"));
    cox_buffer *const buffers[] = {scene->frames->in[1], scene->frames->out[1]};
    cr_assert_eq(cox_session_submit(other,
                                    COX_FRAME(.buffers = buffers, .buffer_count = 2,
                                              .params = &scene->frames->params[1]),
                                    on_scheduler, scene),
                 COX_OK);
    cox_session_destroy(&other);
    end(scene);
}

Test(engine_dispatch, not_in_a_child_process)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    const pid_t child = fork();
    if (child == 0)
        _exit(cox_session_dispatch(scene->session, 0) != COX_E_INVALID ||
              cox_session_descriptor(scene->session) != COX_E_INVALID);
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    end(scene);
}

/* ---- several threads ---- */

struct helper {
    struct scene *scene;
    int ran;
};

static void *help(void *user)
{
    struct helper *helper = user;
    helper->ran = cox_session_dispatch(helper->scene->session, UINT64_MAX);
    return NULL;
}

/* The other thread waits until the session has nothing under way. */
Test(engine_dispatch, a_session_is_not_destroyed_while_another_thread_is_inside)
{
    struct scene *scene = begin(COX_SESSION_PARAMS(.no_warmup = true));
    struct helper helper = {.scene = scene};
    pthread_t thread;
    fake_hold(rig_fake(scene->rig));
    cr_assert_eq(submit(scene), COX_OK);
    cr_assert_eq(pthread_create(&thread, NULL, help, &helper), 0);
    scene->thread = thread;
    cox_session *session = scene->session;
    while (session && !rig_logged(scene->rig, "cox_session_destroy: a thread is inside cox_session_dispatch")) {
        usleep(1000);
        pthread_mutex_lock(&session->lock);
        const bool inside = session->outbox.visitors > 0;
        pthread_mutex_unlock(&session->lock);
        if (inside)
            cox_session_destroy(&session);
    }
    cr_assert_not_null(session);
    fake_release(rig_fake(scene->rig));
    pthread_join(thread, NULL);
    cr_assert_eq(helper.ran, 1);
    end(scene);
}
