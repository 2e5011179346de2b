/* A frame waits for fresh memory while the engine is late to look at it, because a driver kept the thread or the
 * process was not scheduled. The worker below runs each task at once, as with a virtual clock, except for one
 * allocation that takes a while.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "host/worker.h"
#include "scene_test.h"

TestSuite(engine_late_look, .timeout = 300);

enum { TIMEOUT_MS = 30 };

/* ---- the worker ---- */

struct cox__worker {
    bool holds; /* hold back the next task that waits for no other */
    void (*run)(void *ctx);
    void *ctx;
};

static struct cox__worker the_worker;

static void run_held(void)
{
    void (*const run)(void *ctx) = the_worker.run;
    the_worker.run = NULL;
    if (run)
        run(the_worker.ctx);
}

cox_status cox__worker_create(struct cox__worker **out, struct cox__topology *topology, bool inline_tasks)
{
    (void)topology;
    cr_assert(inline_tasks);
    the_worker = (struct cox__worker){0};
    *out = &the_worker;
    return COX_OK;
}

bool cox__worker_run(struct cox__worker *worker, void (*run)(void *ctx), void *ctx)
{
    (void)worker;
    run(ctx);
    return true;
}

bool cox__worker_run_now(struct cox__worker *worker, void (*run)(void *ctx), void *ctx)
{
    if (!worker->holds)
        return cox__worker_run(worker, run, ctx);
    *worker = (struct cox__worker){.run = run, .ctx = ctx};
    return true;
}

bool cox__worker_destroy(struct cox__worker **worker, uint64_t timeout_ns)
{
    (void)timeout_ns;
    run_held();
    *worker = NULL;
    return true;
}

/* ---- the scene ---- */

static bool released; /* the task that was held back runs when a band ends */

static void on_observe(void *state, const struct cox_measurement *measurement)
{
    (void)state, (void)measurement;
    if (released)
        run_held();
}

/* Three frames follow LEARN. The second and the third lose rows to a device that hangs, and get fresh memory: the
 * third at once, the second when its allocation returns. As soon as the third frame has its memory, the device that
 * repeats its rows blocks the engine for `blocked_ns`. */
static void play(uint64_t blocked_ns)
{
    static struct cox_policy policy; /* lives as long as the session */
    policy = rig_policy;
    policy.observe = on_observe;
    in_thirds();
    scene_begin(&scene, &trio, SHAPE_MAP, 0,
                &(const struct cox__session_spec){
                    .custom_policy = &policy, .in_flight = 3, .no_warmup = true, .device_timeout_ns = TIMEOUT_MS * ms});
    scene_play(&scene, LEARN);
    FAULT(.kind = FAKE_HANGS, .device = 2, .skip = 1, .delay_ns = UINT64_MAX);
    for (uint32_t device = 0; device < 2 && blocked_ns; device++)
        FAULT(.kind = FAKE_SUBMIT_BLOCKS, .device = device, .skip = 3, .delay_ns = blocked_ns);
    the_worker.holds = true;
    scene_play(&scene, 3);
    cr_assert_not(the_worker.holds, "nothing was allocated");
}

Test(engine_late_look, one_late_look_does_not_end_the_wait_for_memory)
{
    released = true;
    play(3000 * ms);
    cr_assert_eq(fake_struck_by(scene.fake, FAKE_SUBMIT_BLOCKS), 1);
    cr_assert_eq(scene_failed(&scene, 0, LEARN + 3), 0, "%s", rig_log(scene.rig));
    end();
}

Test(engine_late_look, memory_that_never_comes_is_not_waited_for)
{
    released = false;
    play(0);
    cr_assert_eq(scene_failed(&scene, 0, LEARN + 3), 1, "%s", rig_log(scene.rig));
    cr_assert_eq(scene.status[LEARN + 1], COX_E_MEMORY_UNSAFE);
    cr_assert_lt(scene.done_ns[LEARN + 1] - scene.done_ns[LEARN], 4 * TIMEOUT_MS * ms);
    end();
}
