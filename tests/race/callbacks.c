/* Completion callbacks run on driver threads while the scheduler thread arms and disarms them. They come early,
 * late, twice and several at once, while bands begin and end. After a band is disarmed, no callback may touch its
 * job, which is freed at once. Plain program, for ThreadSanitizer and AddressSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "opencl/callback.h"

#include "race.h"

#include <sched.h>

enum { DRIVERS = 3, BANDS = 30000, POSTS = 1000, SLOTS = 256, UNDER_WAY = 4 };

/* ---- a driver that calls the registered callbacks again and again ---- */

struct given {
    void(CL_CALLBACK *fn)(cl_event, cl_int, void *);
    cl_event event;
    void *user;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct given slots[SLOTS];
static uint32_t given_count;
static atomic_bool over;

/* Takes the place of the loader's function. */
CL_API_ENTRY cl_int CL_API_CALL clSetEventCallback(cl_event event, cl_int type,
                                                   void(CL_CALLBACK *fn)(cl_event, cl_int, void *), void *user)
{
    (void)type;
    pthread_mutex_lock(&lock);
    const struct given old = slots[given_count % SLOTS];
    slots[given_count++ % SLOTS] = (struct given){fn, event, user};
    pthread_mutex_unlock(&lock);
    if (old.fn) /* its slot is reused, so call it now at the latest */
        old.fn(old.event, CL_COMPLETE, old.user);
    return CL_SUCCESS;
}

static void *drive(void *arg)
{
    uint32_t state = *(const uint32_t *)arg;
    while (!atomic_load(&over)) {
        state = state * 1664525u + 1013904223u;
        pthread_mutex_lock(&lock);
        const uint32_t most = given_count < SLOTS ? given_count : SLOTS;
        const uint32_t back = 1 + (state >> 16) % (state & 1 ? 8 : SLOTS); /* often a recent one */
        const struct given given = back <= most ? slots[(given_count - back) % SLOTS] : (struct given){0};
        pthread_mutex_unlock(&lock);
        if (given.fn)
            given.fn(given.event, state & 2 ? CL_COMPLETE : -9999, given.user);
        else
            sched_yield();
    }
    return NULL;
}

/* ---- the thread that owns the bands ---- */

static _Atomic uint32_t posts;

/* Reads the job, which is freed once it is disarmed. */
static void on_post(void *ctx, struct cox__job *job)
{
    CHECK(ctx == &posts);
    CHECK(job->band != UINT32_MAX);
    atomic_fetch_add(&posts, 1);
}

int main(void)
{
    struct cox__cl_backend backend = {0};
    const struct cox__log silent = {0};
    struct cox__job *jobs[UNDER_WAY] = {0};
    struct cox__cl_callback *callbacks[UNDER_WAY] = {0};
    pthread_t drivers[DRIVERS];
    uint32_t without = 0, seeds[DRIVERS] = {1, 2, 3};
    check_limit("bands whose driver calls back");
    backend.log = &silent;
    backend.callbacks = cox__cl_callbacks_create((struct cox__post){.post = on_post, .ctx = &posts});
    CHECK(backend.callbacks);
    race_start(drivers, DRIVERS, drive, seeds, sizeof *seeds);
    uint32_t band = 0;
    for (; band < BANDS || atomic_load(&posts) < POSTS; band++) { /* waits for POSTS even if the threads start late */
        const uint32_t slot = band % UNDER_WAY;
        const uint64_t told_ns = cox__cl_callback_end_ns(callbacks[slot]);
        if (told_ns && band % 3 == 0)
            cox__cl_callback_was_early(callbacks[slot], told_ns, band % 2);
        cox__cl_callback_disarm(callbacks[slot]);
        if (jobs[slot])
            memset(jobs[slot], 0xff, sizeof *jobs[slot]);
        free(jobs[slot]);
        jobs[slot] = calloc(1, sizeof *jobs[slot]);
        CHECK(jobs[slot]);
        jobs[slot]->band = band;
        /* Drivers reuse handles, and so does this one. */
        const cl_event event = (cl_event)(uintptr_t)(64 + band % 100 * 64); /* NOLINT(performance-no-int-to-ptr) */
        callbacks[slot] = cox__cl_callback_arm(&backend, event, jobs[slot], "a driver");
        without += !callbacks[slot];
    }
    for (uint32_t slot = 0; slot < UNDER_WAY; slot++) {
        cox__cl_callback_disarm(callbacks[slot]);
        free(jobs[slot]);
    }
    atomic_store(&over, true);
    race_join(drivers, DRIVERS);
    CHECK(without == 0); /* records are reused after their callbacks came */
    cox__cl_callbacks_destroy(backend.callbacks, &silent);
    printf("%u bands, %u posts, none of a band that was over\n", band, atomic_load(&posts));
    return 0;
}
