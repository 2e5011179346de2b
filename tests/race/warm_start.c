/* A session starts with the timings of another one, to which a second thread submits frames meanwhile.
 *
 * The policy's save_profile is called in the middle of cox_session_create. It lets the other thread submit then, and
 * waits for that. The two threads meet by relaxed atomics, which order no other memory accesses. So ThreadSanitizer
 * sees an access without a lock in every run. Plain program, for ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "race.h"

#include <coxswain/sched.h>
#include <stdatomic.h>

enum { ROWS = 32, COLUMNS = 16, FRAMES = 12, ROUNDS = 3 };

static const struct fake_params devices = {
    .device_count = 2,
    .real_time = true,
    .devices = {{.fixed_ns = 20e3, .ns_per_row = 1e3}, {.fixed_ns = 20e3, .ns_per_row = 2e3}}};

enum { APART, CREATING, SUBMITTED };
static atomic_int meeting;

static int where(void)
{
    return atomic_load_explicit(&meeting, memory_order_relaxed);
}

static void come_to(int place)
{
    atomic_store_explicit(&meeting, place, memory_order_relaxed);
}

static void await(int place)
{
    while (where() != place)
        race_rest(20000);
}

static const struct cox_policy *adaptive;

static void save_profile(const void *state, const struct cox_sched_view *view, struct cox_device_profile *profiles)
{
    adaptive->save_profile(state, view, profiles);
    if (where() != APART)
        return;
    come_to(CREATING);
    await(SUBMITTED);
}

struct submitter {
    struct rig_frames *frames;
    cox_session *session;
};

/* One frame in each round. No frame is under way, so there is a free slot. */
static void *submit_meanwhile(void *data)
{
    const struct submitter *submitter = data;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        await(CREATING);
        CHECK(rig_submit(submitter->frames, submitter->session, round, true) == COX_OK);
        come_to(SUBMITTED);
    }
    return NULL;
}

int main(void)
{
    struct rig *rig = rig_new(&devices);
    struct submitter submitter = {.frames = rig_frames_new(rig, ROWS, COLUMNS, COLUMNS, FRAMES)};
    check_limit("a session that starts warm");

    adaptive = cox_policy_find("adaptive");
    struct cox_policy policy = *adaptive;
    policy.save_profile = save_profile;
    const struct cox__session_spec params = {.custom_policy = &policy};
    CHECK(rig_map_session(submitter.frames, &params, &submitter.session) == COX_OK);
    for (uint32_t i = 0; i < FRAMES; i++)
        CHECK(cox__session_run(submitter.session, RIG_FRAME(submitter.frames, i)) == COX_OK);

    pthread_t thread;
    race_start(&thread, 1, submit_meanwhile, &submitter, 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct cox__session_spec next = params;
        next.warm_start = submitter.session;
        cox_session *session;
        CHECK(rig_map_session(submitter.frames, &next, &session) == COX_OK);
        CHECK(where() == SUBMITTED);
        CHECK(cox_session_wait(submitter.session) == COX_OK);
        cox_session_destroy(&session);
        come_to(APART);
    }
    race_join(&thread, 1);

    cox_session_destroy(&submitter.session);
    rig_frames_free(&submitter.frames);
    race_end("rig", 0, &rig);
    return 0;
}
