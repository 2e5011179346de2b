/* Completion callbacks, from drivers that may call back early, late, twice or never.
 *
 * A callback only tells the scheduler thread to poll. Each callback has a record that outlives the
 * band, the queue slot and the session, since the callback may come late. A record is armed for one
 * event and one job, and disarmed when it must have no further effect:
 *
 *     IDLE ──arm──► ARMED ──callback──► POSTING ──► ARMED … ──disarm──► IDLE
 *
 * Only the callback that changed ARMED to POSTING touches the job, and disarm waits for it. So the
 * job may be freed after disarm. A record is armed again only when its callback has come: until
 * then the callback of an earlier event may still come. A second callback of an earlier event finds
 * another event in the record, or the same handle in use again. In the second case it posts a job
 * once too often, which the engine allows.
 *
 * Records are freed with the backend. They are leaked if a callback has not come, or if the driver
 * called too often or too early.
 *
 * Records are armed and disarmed with the engine lock held. Callbacks run on the driver's threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "callback.h"
#include "host/leak.h"

#include <sched.h>
#include <stdlib.h>

enum { CHUNK = 64, CHUNKS_MAX = 64 };

enum { IDLE, ARMED, POSTING };

struct cox__cl_callback {
    struct cox__cl_callbacks *all;
    atomic_int state;
    atomic_bool awaited; /* the driver has the callback and has not called it */
    _Atomic(cl_event) event;
    _Atomic(struct cox__job *) job;
    _Atomic uint64_t end_ns;
};

struct chunk {
    struct cox__cl_callback callbacks[CHUNK];
};

struct cox__cl_callbacks {
    struct cox__post post;
    atomic_bool distrusted; /* a callback came early, or twice */
    bool refused;           /* the driver took no callback: logged once */
    uint32_t chunk_count;
    uint32_t next; /* where the search for a free record goes on */
    struct chunk *chunks[CHUNKS_MAX];
};

struct cox__cl_callbacks *cox__cl_callbacks_create(struct cox__post post)
{
    struct cox__cl_callbacks *all = calloc(1, sizeof *all);
    if (all)
        all->post = post;
    return all;
}

void cox__cl_callbacks_destroy(struct cox__cl_callbacks *all, const struct cox__log *log)
{
    if (!all)
        return;

    uint32_t awaited = 0;
    for (uint32_t c = 0; c < all->chunk_count; c++)
        for (uint32_t i = 0; i < CHUNK; i++)
            awaited += atomic_load(&all->chunks[c]->callbacks[i].awaited);

    if (awaited || atomic_load(&all->distrusted)) {
        cox__log(log, COX_LOG_WARN, "%u driver callbacks never came%s; their memory is leaked",
                 awaited, atomic_load(&all->distrusted) ? ", others came too early or twice" : "");
        cox__leak(all);
        return;
    }

    for (uint32_t c = 0; c < all->chunk_count; c++)
        free(all->chunks[c]);
    free(all);
}

static struct cox__cl_callback *at(const struct cox__cl_callbacks *all, uint32_t index)
{
    return &all->chunks[index / CHUNK]->callbacks[index % CHUNK];
}

static bool add_chunk(struct cox__cl_callbacks *all)
{
    if (all->chunk_count == CHUNKS_MAX)
        return false;

    struct chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return false;

    for (uint32_t i = 0; i < CHUNK; i++)
        chunk->callbacks[i].all = all;

    all->next = all->chunk_count * CHUNK;
    all->chunks[all->chunk_count++] = chunk;
    return true;
}

/* A record whose callback has come. If no chunk can be added, the search stops after CHUNK
 * records, so that it stays quick. */
static struct cox__cl_callback *find_free(struct cox__cl_callbacks *all)
{
    const uint32_t count = all->chunk_count * CHUNK;

    for (uint32_t tries = 0; tries < count && (all->chunk_count < CHUNKS_MAX || tries < CHUNK);
         tries++) {
        struct cox__cl_callback *callback = at(all, all->next++ % count);
        if (atomic_load(&callback->state) == IDLE && !atomic_load(&callback->awaited))
            return callback;
    }

    if (!add_chunk(all))
        return NULL;
    return at(all, all->next++);
}

/* Runs on a driver's thread. It only posts: no OpenCL call is safe here, and the driver's status
 * cannot be trusted. */
static void CL_CALLBACK on_complete(cl_event event, cl_int status, void *user)
{
    struct cox__cl_callback *callback = user;
    struct cox__cl_callbacks *all = callback->all;
    (void)status;

    if (event != atomic_load(&callback->event)) {
        atomic_store(&all->distrusted, true);
        return;
    }

    int armed = ARMED;
    if (!atomic_compare_exchange_strong(&callback->state, &armed, POSTING)) {
        if (!atomic_exchange(&callback->awaited, false))
            atomic_store(&all->distrusted, true);
        return;
    }

    uint64_t none = 0;
    atomic_compare_exchange_strong(&callback->end_ns, &none, cox__clock_ns());
    all->post.post(all->post.ctx, atomic_load(&callback->job));

    if (!atomic_exchange(&callback->awaited, false))
        atomic_store(&all->distrusted, true);
    atomic_store(&callback->state, ARMED); /* last: from here on the record may be disarmed */
}

struct cox__cl_callback *cox__cl_callback_arm(struct cox__cl_backend *backend, cl_event event,
                                              struct cox__job *job, const char *device)
{
    struct cox__cl_callbacks *all = backend->callbacks;
    struct cox__cl_callback *callback = find_free(all);
    if (!callback)
        return NULL;

    atomic_store(&callback->event, event);
    atomic_store(&callback->job, job);
    atomic_store(&callback->end_ns, 0);
    atomic_store(&callback->awaited, true);
    atomic_store(&callback->state, ARMED);

    const struct cox__driver_call call = cox__watchdog_call_begin(backend->post.watchdog);
    const cl_int code = clSetEventCallback(event, CL_COMPLETE, on_complete, callback);
    if (!cox__watchdog_call_end(&call)) {
        cox__cl_callback_disarm(callback); /* no queue slot knows the record */
        cox__watchdog_call_abandon(&call);
    }

    if (code == CL_SUCCESS)
        return callback;

    cox__cl_callback_disarm(callback);
    atomic_store(&callback->awaited, false);
    if (!all->refused)
        cox__cl_error_check(backend->log, code, "clSetEventCallback", device);
    all->refused = true;
    return NULL;
}

uint64_t cox__cl_callback_end_ns(const struct cox__cl_callback *callback)
{
    if (!callback)
        return 0;
    return atomic_load(&callback->end_ns);
}

void cox__cl_callback_was_early(struct cox__cl_callback *callback, uint64_t end_ns, bool proven)
{
    atomic_compare_exchange_strong(&callback->end_ns, &end_ns, 0);
    if (proven)
        atomic_store(&callback->all->distrusted, true);
}

void cox__cl_callback_disarm(struct cox__cl_callback *callback)
{
    int armed = ARMED;
    while (callback && !atomic_compare_exchange_strong(&callback->state, &armed, IDLE) &&
           armed != IDLE) {
        armed = ARMED;
        sched_yield();
    }
}
