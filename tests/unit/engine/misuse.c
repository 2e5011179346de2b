/* Calls from the wrong place, and calls on invalid objects. Each is refused, with a line in the log if there is
 * one, and everything still works afterwards.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "engine/engine.h"
#include "support/fake_shapes.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(engine_misuse, .timeout = 300);

enum { ROWS = 40, COLUMNS = 16, FRAMES = 4 };

static const struct fake_params devices = {
    .device_count = 2,
    .real_time = true,
    .devices = {{.fixed_ns = 20e3, .ns_per_row = 1e3}, {.mode = COX_MODE_STAGED, .fixed_ns = 50e3, .ns_per_row = 2e3}},
};

/* ---- a session whose callbacks can all make a wrong call ---- */

enum place { DONE, REPORT, MERGE, METER, SPLIT, NEXT, OBSERVE, OBSERVE_FRAME, PLACES };

static const char *const place_names[PLACES] = {"done",  "report", "merge",   "meter",
                                                "split", "next",   "observe", "observe_frame"};

/* Calls that are refused in some places. Those before BLOCKING wait for frames. */
enum call {
    DESTROY_SESSION,
    RUN,
    WAIT,
    WARM,
    CREATE_SESSION,
    DESTROY_RUNTIME,
    BLOCKING,
    SUBMIT = BLOCKING,
    CANCEL,
    INFO,
    CREATE_BUFFER,
    WRAP_BUFFER,
    DESTROY_BUFFER,
    CALLS
};

struct world {
    struct rig *rig;
    struct shape_frames *frames;
    cox_session *session;
    enum place place;
    void (*misuse)(struct world *world);
    enum call call; /* for make_the_call */
    bool began;     /* the wrong call is made only once */
    sem_t may_fire; /* the callback waits for it */
    sem_t fired;
    char wrong[200]; /* an effect that the wrong call should not have had; "" if none */
};

/* Wait for at most two minutes. */
static bool await(sem_t *semaphore)
{
    struct timespec until;
    int failed;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 120;
    while ((failed = sem_timedwait(semaphore, &until)) != 0 && errno == EINTR)
        continue;
    return failed == 0;
}

/* The policy's functions and merge get no user pointer, so they find the world here. */
static struct world *world;

static void visit(enum place place)
{
    if (place != world->place || world->began || !world->misuse)
        return;
    world->began = true;
    if (!await(&world->may_fire))
        abort();
    world->misuse(world);
    sem_post(&world->fired);
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    visit(DONE);
    rig_done(user, frame, status);
}

static void on_report(void *user, const struct cox_frame_report *report)
{
    (void)user, (void)report;
    visit(REPORT);
}

static void on_merge(void *into, const void *partial, size_t bytes, void *user)
{
    visit(MERGE);
    rig_merge_sum(into, partial, bytes, user);
}

static double on_meter(void *user)
{
    (void)user;
    visit(METER);
    return 1;
}

/* Half of the rows for the first device, the rest on demand. */
static cox_status policy_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)state;
    visit(SPLIT);
    out->reason = COX_REASON_GIVEN;
    out->band_count = 1;
    out->bands[0] = (struct cox_band){.rows = ROWS / 2};
    out->pool_first_row = ROWS / 2;
    out->pool_rows = view->rows - ROWS / 2;
    return COX_OK;
}

static void policy_next(void *state, const struct cox_sched_view *view, const struct cox_chunk_request *offer,
                        struct cox_chunk *out)
{
    (void)state, (void)view;
    visit(NEXT);
    out->rows = offer->rows;
}

static void policy_observe(void *state, const struct cox_measurement *measurement)
{
    (void)state, (void)measurement;
    visit(OBSERVE);
}

static void policy_observe_frame(void *state, const struct cox_frame_measurement *measurement)
{
    (void)state, (void)measurement;
    visit(OBSERVE_FRAME);
}

static const struct cox_policy policy = {.name = "misuse",
                                         .state_bytes = rig_policy_bytes,
                                         .init = rig_policy_init,
                                         .split = policy_split,
                                         .observe = policy_observe,
                                         .assign = policy_next,
                                         .observe_frame = policy_observe_frame};

static void world_begin(struct world *w, const struct fake_params *params, enum shape shape, uint32_t in_flight)
{
    *w = (struct world){.rig = rig_new(params)};
    world = w;
    sem_init(&w->may_fire, 0, 0);
    sem_init(&w->fired, 0, 0);
    w->frames = shape_frames_new(w->rig, shape, ROWS, COLUMNS, FRAMES);
    if (shape == SHAPE_COUNT)
        w->frames->bindings[1].merge = on_merge;
    cr_assert_eq(shape_session(w->frames,
                               &(const struct cox__session_spec){.custom_policy = &policy,
                                                                 .in_flight = in_flight,
                                                                 .no_warmup = true,
                                                                 .report = on_report,
                                                                 .meter = on_meter},
                               &w->session),
                 COX_OK, "%s", rig_log(w->rig));
}

static cox_status world_submit(struct world *w, uint32_t index)
{
    const struct cox__frame_spec frame = shape_frame(w->frames, index);
    shape_prepare(w->frames, index);
    return cox__session_submit(w->session, &frame, on_done, w->rig);
}

static void world_works(struct world *w)
{
    for (uint32_t i = 0; i < FRAMES; i++) {
        const struct cox__frame_spec frame = shape_frame(w->frames, i);
        shape_prepare(w->frames, i);
        cr_assert_eq(cox__session_run(w->session, &frame), COX_OK, "%s", rig_log(w->rig));
        cr_assert_str_empty(shape_check(w->frames, i));
    }
    cr_assert_eq(world_submit(w, 0), COX_OK);
    cr_assert_eq(cox_session_wait(w->session), COX_OK);
    cr_assert_str_empty(shape_check(w->frames, 0));
}

static void world_end(struct world *w)
{
    cox_session_destroy(&w->session);
    cr_assert_null(w->session);
    shape_frames_free(&w->frames);
    sem_destroy(&w->may_fire);
    sem_destroy(&w->fired);
    cr_assert_str_empty(rig_end(&w->rig));
}

static void world_works_and_ends(struct world *w)
{
    world_works(w);
    world_end(w);
}

/* Plan a wrong call from the callback `place`. */
static void world_plan(struct world *w, int place, void (*misuse)(struct world *world), uint32_t in_flight)
{
    world_begin(w, &devices, SHAPE_COUNT, in_flight);
    w->place = (enum place)place;
    w->misuse = misuse;
}

/* Let the callback make the wrong call, and check that it has no bad effect. Frames are under way, or wait for this
 * call. */
static void world_fire(struct world *w)
{
    sem_post(&w->may_fire);
    cr_assert(await(&w->fired), "no %s came", place_names[w->place]);
    cr_assert_str_empty(w->wrong, "in %s: %s", place_names[w->place], w->wrong);
    cr_assert_eq(cox_session_wait(w->session), COX_OK);
}

/* The frames have the right contents. */
static void world_check(struct world *w, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const char *wrong = shape_check(w->frames, i);
        cr_assert_str_empty(wrong, "%s: %s", place_names[w->place], wrong);
    }
}

/* Record a condition that does not hold; only the first is kept. Criterion's assertions work only in the test's own
 * thread. */
#define EXPECT(w, condition)                                                                 \
    do {                                                                                     \
        if (!(condition) && !*(w)->wrong)                                                    \
            snprintf((w)->wrong, sizeof(w)->wrong, "line %d: not %s", __LINE__, #condition); \
    } while (0)

/* ---- calls that are refused in some places ---- */

static const char *const call_names[CALLS] = {"cox_session_destroy", "cox_session_run",    "cox_session_wait",
                                              "cox_session_warm",    "cox_session_create", "cox_runtime_destroy",
                                              "cox_session_submit",  "cox_session_cancel", "cox_session_info",
                                              "cox_buffer_create",   "cox_buffer_wrap",    "cox_buffer_destroy"};

static bool is_zero(const void *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)memory)[i])
            return false;
    return true;
}

/* Make the call. Returns whether it is refused, returns nothing and changes nothing. */
static bool is_refused(struct world *w, enum call call)
{
    _Alignas(64) static unsigned char memory[64];
    const struct cox__frame_spec frame = shape_frame(w->frames, 1);
    struct cox_session_info info;
    cox_session *session = w->session;
    cox_runtime *runtime = rig_runtime(w->rig);
    cox_buffer *buffer = w->frames->buffers[0][0];
    switch (call) {
    case DESTROY_SESSION:
        cox_session_destroy(&session);
        return session == w->session;
    case RUN:
        return cox__session_run(session, &frame) == COX_E_INVALID;
    case WAIT:
        return cox_session_wait(session) == COX_E_INVALID;
    case WARM:
        return cox_session_warm(session, NULL) == COX_E_INVALID;
    case CREATE_SESSION:
        return shape_session(w->frames, &(const struct cox__session_spec){.no_warmup = true}, &session) ==
                   COX_E_INVALID &&
               !session;
    case DESTROY_RUNTIME:
        cox_runtime_destroy(&runtime);
        return runtime == rig_runtime(w->rig);
    case SUBMIT:
        return cox__session_submit(session, &frame, rig_done, w->rig) == COX_E_INVALID;
    case CANCEL:
        return cox_session_cancel(session) == COX_E_INVALID;
    case INFO:
        memset(&info, 0x5a, sizeof info);
        cox_session_info(session, &info);
        return is_zero(&info, sizeof info);
    case CREATE_BUFFER:
        return cox_buffer_create(runtime, 64, &buffer) == COX_E_INVALID && !buffer;
    case WRAP_BUFFER:
        return cox_buffer_wrap(runtime, memory, 64, NULL, NULL, &buffer) == COX_E_INVALID && !buffer;
    case DESTROY_BUFFER:
        cox_buffer_destroy(&buffer);
        return buffer == w->frames->buffers[0][0];
    case CALLS:
        break;
    }
    return false;
}

/* ---- from inside callbacks ---- */

static void make_the_call(struct world *w)
{
    EXPECT(w, is_refused(w, w->call));
}

/* Frames run through cox_session_submit, or with `run` through cox_session_run on this thread. */
static void misuse_everywhere(bool run)
{
    for (int place = run ? REPORT : DONE; place < PLACES; place++)
        for (uint32_t call = 0; call < BLOCKING; call++) {
            struct world w;
            char logged[80];
            world_plan(&w, place, make_the_call, 2);
            w.call = (enum call)call;
            sem_post(&w.may_fire);
            const struct cox__frame_spec frame = shape_frame(w.frames, 0);
            shape_prepare(w.frames, 0);
            cr_assert_eq(run ? cox__session_run(w.session, &frame) : world_submit(&w, 0), COX_OK);
            world_fire(&w);
            snprintf(logged, sizeof logged, "%s: must not be called from a callback", call_names[call]);
            cr_assert(rig_logged(w.rig, logged), "in %s, not in the log: %s", place_names[place], logged);
            world_check(&w, 0, 1);
            world_works_and_ends(&w);
        }
}

Test(engine_misuse, what_would_wait_for_itself_is_refused_in_every_callback_on_the_scheduler_thread)
{
    misuse_everywhere(false);
}

Test(engine_misuse, what_would_wait_for_itself_is_refused_in_every_callback_inside_run)
{
    misuse_everywhere(true);
}

/* Replace a frame's first buffer by wrapped memory of the test. */
static void *wrap_first(struct world *w, uint32_t index, cox_released_fn *released, void *user)
{
    void *memory = aligned_alloc(4096, 4096);
    cox_buffer **buffer = &w->frames->buffers[index][0];
    memcpy(memory, cox_buffer_data(*buffer), (size_t)ROWS * COLUMNS);
    cox_buffer_destroy(buffer);
    cr_assert_eq(cox_buffer_wrap(rig_runtime(w->rig), memory, (size_t)ROWS * COLUMNS, released, user, buffer), COX_OK);
    return memory;
}

static void destroy_wrapped_memory(struct world *w)
{
    cox_buffer *buffer = w->frames->buffers[1][0];
    cox_buffer_destroy(&buffer);
    EXPECT(w, buffer == w->frames->buffers[1][0]);
}

Test(engine_misuse, wrapped_memory_of_another_frame_is_not_waited_for_in_a_callback)
{
    for (int place = DONE; place < PLACES; place++) {
        struct world w;
        world_plan(&w, place, destroy_wrapped_memory, 2);
        void *memory = wrap_first(&w, 1, NULL, NULL);
        cr_assert_eq(world_submit(&w, 0), COX_OK);
        cr_assert_eq(world_submit(&w, 1), COX_OK);
        world_fire(&w); /* both frames are under way during the callback */
        cr_assert(rig_logged(w.rig, "cox_buffer_destroy of wrapped memory in use: must not be called from a callback"),
                  "in %s", place_names[place]);
        world_check(&w, 0, 2);
        world_works(&w);
        shape_drop(w.frames, 1);
        cr_assert_null(w.frames->buffers[1][0]);
        free(memory);
        world_end(&w);
    }
}

static void destroy_memory_of_the_library(struct world *w)
{
    cox_buffer_destroy(&w->frames->buffers[1][0]);
    EXPECT(w, w->frames->buffers[1][0] == NULL);
}

Test(engine_misuse, memory_of_the_library_may_be_destroyed_under_way_in_every_callback)
{
    for (int place = DONE; place < PLACES; place++) {
        struct world w;
        world_plan(&w, place, destroy_memory_of_the_library, 2);
        cr_assert_eq(world_submit(&w, 0), COX_OK);
        cr_assert_eq(world_submit(&w, 1), COX_OK);
        world_fire(&w);
        cr_assert_eq(rig_done_status(w.rig, 1), COX_OK);
        world_check(&w, 1, 2);
        cr_assert_not(rig_logged(w.rig, "must not be called from a callback"));
        shape_drop(w.frames, 1);
        cr_assert(shape_make(w.frames, 1, 5));
        world_works_and_ends(&w);
    }
}

static void destroy_own_wrapped_memory(struct world *w)
{
    cox_buffer_destroy(&w->frames->buffers[0][0]);
    EXPECT(w, w->frames->buffers[0][0] == NULL);
}

Test(engine_misuse, wrapped_memory_of_the_frame_itself_may_be_destroyed_in_its_done)
{
    struct world w;
    world_plan(&w, DONE, destroy_own_wrapped_memory, 2);
    void *memory = wrap_first(&w, 0, NULL, NULL);
    sem_post(&w.may_fire);
    cr_assert_eq(world_submit(&w, 0), COX_OK);
    cr_assert(await(&w.fired), "no callback came");
    free(memory); /* while the callback still runs */
    cr_assert_str_empty(w.wrong);
    cr_assert_eq(cox_session_wait(w.session), COX_OK);
    cr_assert_not(rig_logged(w.rig, "must not be called from a callback"));
    shape_drop(w.frames, 0);
    cr_assert(shape_make(w.frames, 0, 7));
    world_works_and_ends(&w);
}

static void cancel_everything(struct world *w)
{
    EXPECT(w, cox_session_cancel(w->session) == COX_OK);
}

Test(engine_misuse, cancel_is_for_callbacks_too)
{
    for (int place = DONE; place < PLACES; place++) {
        struct world w;
        world_plan(&w, place, cancel_everything, 3);
        for (uint32_t i = 0; i < 3; i++) /* same buffers: one frame after another */
            cr_assert_eq(world_submit(&w, i ? FRAMES : 0), COX_OK);
        world_fire(&w);
        cr_assert_eq(rig_done_count(w.rig), 3);
        cr_assert(rig_done_status(w.rig, 0) == COX_OK || rig_done_status(w.rig, 0) == COX_E_CANCELLED);
        for (uint32_t i = 1; i < 3; i++)
            cr_assert_eq(rig_done_status(w.rig, i), COX_E_CANCELLED, "in %s", place_names[place]);
        world_works_and_ends(&w);
    }
}

static void ask_for_the_state(struct world *w)
{
    const struct cox_session_info info = rig_info(w->session);
    EXPECT(w, info.device_count == 2);
    EXPECT(w, strcmp(info.policy, "misuse") == 0);
}

Test(engine_misuse, the_sessions_state_may_be_asked_for_in_every_callback)
{
    for (int place = DONE; place < PLACES; place++) {
        struct world w;
        world_plan(&w, place, ask_for_the_state, 2);
        cr_assert_eq(world_submit(&w, 0), COX_OK);
        world_fire(&w);
        world_works_and_ends(&w);
    }
}

/* ---- submitting from callbacks ---- */

enum { CHAINED = 60, BY_THREADS = 40, THREADS = 2 };

struct chain {
    struct world world;
    atomic_uint chained, refused, failed, delivered;
};

static void go_on(void *user, uint64_t frame, cox_status status)
{
    struct chain *chain = user;
    (void)frame;
    atomic_fetch_add(&chain->failed, status != COX_OK);
    atomic_fetch_add(&chain->delivered, 1);
    if (atomic_load(&chain->chained) == CHAINED)
        return;
    atomic_fetch_add(&chain->chained, 1);
    struct cox__frame_spec next = shape_frame(chain->world.frames, FRAMES - 1);
    next.nowait = frame % 2;
    atomic_fetch_add(&chain->refused, cox__session_submit(chain->world.session, &next, go_on, chain) != COX_OK);
}

static void *submit_and_block(void *data)
{
    struct chain *chain = data;
    for (uint32_t i = 0; i < BY_THREADS; i++) {
        const struct cox__frame_spec frame = shape_frame(chain->world.frames, i % 2);
        if (cox__session_submit(chain->world.session, &frame, go_on, chain) != COX_OK)
            abort();
    }
    return NULL;
}

Test(engine_misuse, a_callback_finds_a_place_for_its_frame_whatever_other_threads_submit)
{
    for (uint32_t in_flight = 1; in_flight <= 3; in_flight++) {
        struct chain chain = {0};
        pthread_t threads[THREADS];
        world_begin(&chain.world, &devices, SHAPE_MAP, in_flight);
        for (uint32_t t = 0; t < THREADS; t++)
            cr_assert_eq(pthread_create(&threads[t], NULL, submit_and_block, &chain), 0);
        for (uint32_t t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
        cr_assert_eq(cox_session_wait(chain.world.session), COX_OK);
        cr_assert_eq(atomic_load(&chain.refused), 0);
        cr_assert_eq(atomic_load(&chain.failed), 0);
        cr_assert_eq(atomic_load(&chain.chained), CHAINED);
        cr_assert_eq(atomic_load(&chain.delivered), CHAINED + THREADS * BY_THREADS);
        world_works_and_ends(&chain.world);
    }
}

/* ---- in a child process ---- */

static struct world *parents;

/* 0 if everything is right, otherwise the line that failed. */
#define CHILD(condition)     \
    do {                     \
        if (!(condition))    \
            return __LINE__; \
    } while (0)

static int make_every_call(struct world *w)
{
    for (uint32_t call = 0; call < CALLS; call++) {
        char logged[120];
        snprintf(logged, sizeof logged, "%s: called in a child process; the runtime belongs to the parent",
                 call_names[call]);
        CHILD(is_refused(w, (enum call)call));
        CHILD(rig_logged(w->rig, logged));
    }
    return 0;
}

/* Calls that only read work in a child process. */
static int read_objects(struct world *w)
{
    struct cox_device_info info;
    CHILD(cox_runtime_device_count(rig_runtime(w->rig)) == 2);
    CHILD(cox_runtime_device_info(rig_runtime(w->rig), 1, &info) == COX_OK);
    CHILD(cox_runtime_pitch_bytes(rig_runtime(w->rig), 10) == 64);
    CHILD(cox_buffer_bytes(w->frames->buffers[1][0]) == (size_t)ROWS * COLUMNS);
    CHILD(cox_buffer_data(w->frames->buffers[1][0]) != NULL);
    return 0;
}

static int work_on_its_own(struct world *w)
{
    (void)w;
    const struct fake_params params = {.device_count = 1, .devices = {{.ns_per_row = 1e3}}};
    struct rig *rig = rig_new(&params);
    struct shape_frames *frames = shape_frames_new(rig, SHAPE_HALO, ROWS, COLUMNS, 1);
    cox_session *session;
    CHILD(shape_session(frames, &(const struct cox__session_spec){.in_flight = 1}, &session) == COX_OK);
    const struct cox__frame_spec frame = shape_frame(frames, 0);
    shape_prepare(frames, 0);
    CHILD(cox__session_run(session, &frame) == COX_OK);
    CHILD(*shape_check(frames, 0) == 0);
    cox_session_destroy(&session);
    shape_frames_free(&frames);
    CHILD(*rig_end(&rig) == 0);
    return 0;
}

/* The alarm ends a call that blocks. */
static void in_a_child(const char *what, int (*work)(struct world *w))
{
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (!child) {
        alarm(120);
        const int line = work(parents);
        if (line)
            fprintf(stderr, "misuse.c:%d, in a child: %s\n", line, what);
        _exit(line != 0);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status), "%s: ended by signal %d", what, WTERMSIG(status));
    cr_assert_eq(WEXITSTATUS(status), 0, "%s", what);
}

/* Two devices on a virtual clock that does not move yet. */
static const struct fake_params held = {
    .device_count = 2, .held = true, .devices = {{.ns_per_row = 1e3}, {.ns_per_row = 1e3}}};

Test(engine_misuse, a_child_process_may_look_at_devices_and_have_a_runtime_of_its_own_but_uses_nothing_of_its_parents)
{
    static const struct {
        const char *what;
        int (*work)(struct world *w);
        bool locked; /* locked by a thread of the parent */
    } cases[] = {{"is refused every call", make_every_call, false},
                 {"and takes no lock for that", make_every_call, true},
                 {"looks at devices and buffers", read_objects, true},
                 {"has a runtime of its own", work_on_its_own, false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct world w;
        world_begin(&w, &held, SHAPE_COUNT, 1);
        parents = &w;
        void *memory = wrap_first(&w, 0, NULL, NULL);
        cr_assert_eq(world_submit(&w, 0), COX_OK);
        cr_assert(fake_await_running(rig_fake(w.rig), 2));
        if (cases[c].locked)
            pthread_mutex_lock(&w.session->lock);
        in_a_child(cases[c].what, cases[c].work);
        if (cases[c].locked)
            pthread_mutex_unlock(&w.session->lock);
        fake_release(rig_fake(w.rig));
        cr_assert_eq(cox_session_wait(w.session), COX_OK);
        cr_assert_eq(rig_done_status(w.rig, 0), COX_OK);
        world_check(&w, 0, 1);
        cr_assert_not(rig_logged(w.rig, "child"), "%s: the child's log is its own", cases[c].what);
        world_works(&w);
        shape_drop(w.frames, 0);
        free(memory);
        world_end(&w);
    }
}

/* ---- NULL ---- */

Test(engine_misuse, functions_of_sessions_and_infos_refuse_null)
{
    struct world w;
    world_begin(&w, &devices, SHAPE_MAP, 1);
    const struct cox__frame_spec frame = shape_frame(w.frames, 0);
    struct cox_session_info info;
    cox_session *session = w.session;
    cr_assert_eq(cox__session_submit(NULL, &frame, rig_done, w.rig), COX_E_INVALID);
    cr_assert_eq(cox__session_run(NULL, &frame), COX_E_INVALID);
    cr_assert_eq(cox_session_wait(NULL), COX_E_INVALID);
    cr_assert_eq(cox_session_warm(NULL, NULL), COX_E_INVALID);
    cr_assert_eq(cox_session_cancel(NULL), COX_E_INVALID);
    memset(&info, 0x5a, sizeof info);
    cox_session_info(NULL, &info);
    cr_assert(is_zero(&info, sizeof info));
    cr_assert_eq(cox__session_create(NULL, &(const struct cox__session_spec){.rows = 1}, &session), COX_E_INVALID);
    cr_assert_null(session);
    cox_session_destroy(NULL);
    cox_session_destroy(&session);
    cr_assert_eq(cox_runtime_device_info(rig_runtime(w.rig), 0, NULL), COX_E_INVALID);
    cr_assert_eq(cox_runtime_platform_info(rig_runtime(w.rig), 0, NULL), COX_E_INVALID);
    cr_assert_eq(cox_runtime_left_out(rig_runtime(w.rig), 0, NULL), COX_E_INVALID);
    cox_runtime_host_info(rig_runtime(w.rig), NULL);
    cox_session_info(w.session, NULL);
    world_works_and_ends(&w);
}

/* ---- frames with wrong buffers ---- */

static void refuse_frame(struct world *w, cox_buffer *const *buffers, uint32_t count, const char *logged)
{
    const struct cox__frame_spec frame = {.buffers = buffers, .buffer_count = count, .params = &w->frames->params[0]};
    cr_assert_not(rig_logged(w->rig, logged), "already in the log: %s", logged);
    cr_assert_eq(cox__session_submit(w->session, &frame, rig_done, w->rig), COX_E_INVALID, "%s", logged);
    cr_assert(rig_logged(w->rig, logged), "not in the log: %s\n%s", logged, rig_log(w->rig));
    cr_assert_eq(cox__session_run(w->session, &frame), COX_E_INVALID, "%s", logged);
    cr_assert_eq(cox_session_wait(w->session), COX_OK);
    world_works(w);
}

Test(engine_misuse, frames_with_wrong_buffers_are_refused_and_the_next_frame_is_right)
{
    struct world w;
    world_begin(&w, &devices, SHAPE_TWO, 1); /* one buffer is read, two are written */
    struct rig *other = rig_new(&devices);
    cox_buffer *strange, *shorter, *const *its = w.frames->buffers[0];
    cr_assert_eq(cox_buffer_create(rig_runtime(other), (size_t)ROWS * COLUMNS, &strange), COX_OK);
    cr_assert_eq(cox_buffer_create(rig_runtime(w.rig), (size_t)ROWS * COLUMNS - 1, &shorter), COX_OK);
    refuse_frame(&w, its, 2, "3 buffers");
    refuse_frame(&w, (cox_buffer *const[]){its[0], strange, its[2]}, 3, "belongs to another runtime");
    refuse_frame(&w, (cox_buffer *const[]){its[0], its[1], shorter}, 3, "too short");
    refuse_frame(&w, (cox_buffer *const[]){NULL, its[1], its[2]}, 3, "buffer 0");
    refuse_frame(&w, (cox_buffer *const[]){its[0], its[1], its[1]}, 3, "buffers 1 and 2 are the same");
    refuse_frame(&w, (cox_buffer *const[]){its[0], its[0], its[2]}, 3, "buffers 0 and 1 are the same");
    cox_buffer_destroy(&strange);
    cox_buffer_destroy(&shorter);
    cr_assert_str_empty(rig_end(&other));
    world_end(&w);
}

/* ---- objects that are destroyed too early ---- */

Test(engine_misuse, a_runtime_in_use_is_not_destroyed)
{
    struct world w;
    world_begin(&w, &devices, SHAPE_MAP, 1);
    cox_runtime *runtime = rig_runtime(w.rig);
    cox_runtime_destroy(&runtime);
    cr_assert_eq(runtime, rig_runtime(w.rig));
    cr_assert(rig_logged(w.rig, "cox_runtime_destroy: destroy its sessions (1) and buffers (8) first"));
    world_works(&w);
    cox_session_destroy(&w.session);
    cox_runtime_destroy(&runtime);
    cr_assert_eq(runtime, rig_runtime(w.rig));
    cr_assert(rig_logged(w.rig, "sessions (0) and buffers (8)"));
    cr_assert_eq(shape_session(w.frames, &(const struct cox__session_spec){.no_warmup = true}, &w.session), COX_OK);
    shape_frames_free(&w.frames);
    cox_runtime_destroy(&runtime);
    cr_assert_eq(runtime, rig_runtime(w.rig));
    cr_assert(rig_logged(w.rig, "sessions (1) and buffers (0)"));
    w.frames = shape_frames_new(w.rig, SHAPE_MAP, ROWS, COLUMNS, FRAMES);
    world_works_and_ends(&w);
}

struct release {
    struct rig *rig;
    cox_buffer *other; /* the callback destroys it */
    atomic_uint count;
    uint32_t done; /* number of callbacks of earlier frames */
    sem_t happened;
};

static void on_released(void *user)
{
    struct release *release = user;
    release->done = rig_done_count(release->rig);
    cox_buffer_destroy(&release->other);
    atomic_fetch_add(&release->count, 1);
    sem_post(&release->happened);
}

/* Replace frame 0's first buffer by wrapped memory of the test, with a callback for its release. */
static void *release_begin(struct release *release, struct world *w)
{
    *release = (struct release){.rig = w->rig};
    sem_init(&release->happened, 0, 0);
    cr_assert_eq(cox_buffer_create(rig_runtime(w->rig), 64, &release->other), COX_OK);
    return wrap_first(w, 0, on_released, release);
}

static void release_end(struct release *release)
{
    cr_assert_eq(atomic_load(&release->count), 1, "once");
    sem_destroy(&release->happened);
}

Test(engine_misuse, buffers_destroyed_under_way_go_after_their_last_frame)
{
    struct world w;
    struct release release;
    world_begin(&w, &held, SHAPE_MAP, 3);
    void *memory = release_begin(&release, &w);
    cox_buffer *second[2] = {w.frames->buffers[0][0], w.frames->buffers[1][1]};
    cr_assert_eq(world_submit(&w, 0), COX_OK);
    cr_assert_eq(cox__session_submit(w.session,
                                     &(const struct cox__frame_spec){
                                         .buffers = second, .buffer_count = 2, .params = &w.frames->params[0]},
                                     rig_done, w.rig),
                 COX_OK);
    cr_assert(fake_await_running(rig_fake(w.rig), 2));
    cox_buffer_destroy(&w.frames->buffers[0][0]);
    cr_assert_null(w.frames->buffers[0][0]);
    cr_assert_eq(atomic_load(&release.count), 0, "frames use it");
    fake_release(rig_fake(w.rig));
    cr_assert_eq(cox_session_wait(w.session), COX_OK);
    cr_assert(await(&release.happened), "it is not released");
    cr_assert_eq(release.done, 2, "after the last frame's callback");
    cr_assert_null(release.other);
    cr_assert_eq(rig_done_status(w.rig, 0), COX_OK);
    cr_assert_eq(rig_done_status(w.rig, 1), COX_OK);
    world_check(&w, 0, 1);
    cr_assert_arr_eq(cox_buffer_data(w.frames->buffers[1][1]), cox_buffer_data(w.frames->buffers[0][1]),
                     (size_t)ROWS * COLUMNS);
    free(memory);
    shape_drop(w.frames, 0);
    cr_assert(shape_make(w.frames, 0, 3));
    world_works_and_ends(&w);
    release_end(&release);
}

Test(engine_misuse, wrapped_memory_is_released_after_its_destroy_and_not_before)
{
    struct world w;
    struct release release;
    world_begin(&w, &devices, SHAPE_MAP, 2);
    void *memory = release_begin(&release, &w);
    world_works(&w);
    cr_assert_eq(atomic_load(&release.count), 0, "the application has not destroyed it");
    cox_session_destroy(&w.session);
    cr_assert_eq(atomic_load(&release.count), 0, "not released with its session");
    cox_buffer_destroy(&w.frames->buffers[0][0]);
    cr_assert_null(w.frames->buffers[0][0]);
    cr_assert(await(&release.happened), "it is not released");
    free(memory);
    world_end(&w);
    release_end(&release);
}
