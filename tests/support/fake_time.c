/* The clocks of the scripted devices.
 *
 * Virtual clock:
 *   A band is queued by job_submit.
 *   The queued bands are placed by instance_flush on the three timelines of the instance's context (copy-in,
 *     kernel, copy-out). It adds their ends to a list of events.
 *   The clock is moved by fake__advance. It takes the earliest event, sets the clock to its time, runs the kernel
 *     and posts.
 *
 * A kernel therefore runs when its band *ends*. If the engine overwrites an input or frees a buffer too early, the
 * results are wrong. A device that runs bands inside job_submit advances the clock there.
 *
 * Real clock: instance_flush passes the bands to the device's thread, which sleeps, runs the kernel and posts. The
 * kernel runs without the mutex. If the host uses the band's rows meanwhile, ThreadSanitizer reports a race.
 *
 * Instances of a device share its context; fresh instances have their own. A band that hangs delays only its
 * context. Bands of an abandoned instance still end at their time, even after instance_destroy, but are not posted.
 * So a band works on copies of its job's fields.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fake_inside.h"
#include "base/clock.h"
#include <time.h>

/* ---- events ---- */

static void push_event(struct fake *fake, uint64_t time_ns, enum event_kind kind, struct slot *slot)
{
    if (time_ns == UINT64_MAX)
        return; /* never */
    if (fake->event_count == EVENTS_MAX)
        abort();
    fake->events[fake->event_count++] = (struct event){time_ns, fake->order++, kind, slot};
}

static void post(struct slot *slot)
{
    struct fake *fake = slot->instance->fake;
    if (slot->instance->abandoned)
        return;
    fake__note(fake, FAKE_STEP_POST, slot->instance->device, slot, false);
    uint64_t end_ns = fake_now(fake);
    if (fate(slot, FAKE_END_EARLY)) {
        const uint64_t early_ns = max_ns(slot->fate[FAKE_END_EARLY].delay_ns, 1);
        end_ns = slot->submit_ns > early_ns ? slot->submit_ns - early_ns : 1;
    }
    if (fate(slot, FAKE_END_LATE))
        end_ns = add_ns(end_ns, max_ns(slot->fate[FAKE_END_LATE].delay_ns, 1));
    atomic_store(&slot->job->end_ns, end_ns);
    fake->post.post(fake->post.ctx, slot->job);
}

static void fill_profile(struct slot *slot)
{
    const struct device *device = &slot->instance->fake->devices[slot->instance->device];
    const bool profile = !slot->failed && !device->script.no_profile;
    const uint64_t lie_ns = slot->fate[FAKE_LIES_PROFILE].delay_ns;
    slot->job->kernel_ns = profile ? slot->kernel_ns : 0;
    if (profile && fate(slot, FAKE_LIES_PROFILE))
        slot->job->kernel_ns = lie_ns ? lie_ns : UINT64_MAX / 2;
    slot->job->copy_in_ns = profile ? slot->in_ns : 0;
    slot->job->copy_out_ns = profile ? slot->out_ns : 0;
}

bool fake__is_at_work(const struct cox__instance *instance)
{
    for (uint32_t i = 0; i < instance->slot_count; i++)
        if (is_under_way(&instance->slots[i]))
            return true;
    return false;
}

/* Called once the instance is destroyed and its bands have ended. */
void fake__tell_ended(struct cox__instance *instance)
{
    cox__ended_fn *ended = instance->ended;
    if (!instance->gone || fake__is_at_work(instance) || !ended)
        return;
    instance->ended = NULL;
    ended(instance->ended_ctx);
}

/* The last step of a band, after its results are written: change its state and post. Called with the lock held. */
static void end_band(struct slot *slot, bool failed)
{
    struct cox__instance *instance = slot->instance;
    struct fake *fake = instance->fake;
    const struct fake_handover_band band = handover_of(&slot->work);
    slot->failed = failed;
    if (slot->work.of_frame && slot->work.kind == COX__JOB_BAND && !failed && !instance->abandoned)
        fake_handover_end(fake->handover, &instance->pipeline, &band);
    if (!instance->abandoned) {
        fill_profile(slot);
        if (slot->state == SLOT_RUNNING)
            fake->running--;
    }
    slot->state = SLOT_ENDED;
    fake__note(fake, FAKE_STEP_END, instance->device, slot, failed);
    fake__tell_ended(instance);
    if (fate(slot, FAKE_NO_POST))
        return;
    if (slot->fate[FAKE_POST_LATE].delay_ns > 0) {
        push_event(fake, add_ns(fake_now(fake), slot->fate[FAKE_POST_LATE].delay_ns), EVENT_POST, slot);
        return;
    }
    post(slot);
    if (fate(slot, FAKE_POST_TWICE))
        post(slot);
}

void fake__drop_events(struct fake *fake, const struct slot *slot)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < fake->event_count; i++)
        if (fake->events[i].slot != slot)
            fake->events[kept++] = fake->events[i];
    fake->event_count = kept;
}

/* The device of this band dies, with all bands in progress on it. */
static void kill_device(const struct slot *of)
{
    struct fake *fake = of->instance->fake;
    const uint32_t index = of->instance->device;
    const uint64_t for_ns = of->fate[FAKE_DEVICE_DIES].delay_ns;
    struct device *device = &fake->devices[index];
    device->dead = true;
    device->alive_ns = for_ns ? add_ns(fake_now(fake), for_ns) : UINT64_MAX;
    device->first = device->last = NULL;
    for (uint32_t u = 0; u < fake->instance_count; u++) {
        struct cox__instance *instance = fake->instances[u];
        if (instance->device != index)
            continue;
        instance->dead = true;
        for (uint32_t i = 0; i < instance->slot_count; i++) {
            struct slot *slot = &instance->slots[i];
            if (slot->state == SLOT_QUEUED) {
                instance->queued--;
                slot->state = SLOT_RUNNING;
                fake->running += !instance->abandoned;
            }
            if (slot->state == SLOT_RUNNING) {
                fake__drop_events(fake, slot);
                if (!instance->abandoned) { /* an abandoned instance's bands write nothing */
                    fake__check_memory(slot);
                    fake__execute(slot, true);
                }
                end_band(slot, true);
            }
        }
    }
}

/* A command of the band fails now. Returns whether other commands continue, and for how long. */
static bool begin_failing(struct slot *slot, uint64_t *late_ns)
{
    *late_ns = max_ns(slot->fate[FAKE_FAILS_LATE].delay_ns, 1);
    if (!fate(slot, FAKE_FAILS_LATE) || slot->failing)
        return false;
    slot->failing = true;
    slot->fails = true;
    slot->hung = *late_ns == UINT64_MAX;
    post(slot);
    return true;
}

static void handle_end(struct slot *slot)
{
    struct fake *fake = slot->instance->fake;
    uint64_t late_ns;
    if (fate(slot, FAKE_DEVICE_DIES)) {
        kill_device(slot);
    } else if (begin_failing(slot, &late_ns)) {
        push_event(fake, add_ns(fake_now(fake), late_ns), EVENT_END, slot);
    } else {
        fake__check_memory(slot);
        fake__execute(slot, slot->fails || slot->instance->abandoned);
        end_band(slot, slot->fails);
    }
}

static void handle_event(struct fake *fake, struct event event)
{
    if (event.time_ns > atomic_load(&fake->clock_ns) && !fake->real_time)
        atomic_store(&fake->clock_ns, event.time_ns);
    switch (event.kind) {
    case EVENT_START:
    case EVENT_POST:
        post(event.slot);
        break;
    case EVENT_END:
        handle_end(event.slot);
        break;
    }
}

/* Index of the earliest event, or event_count. */
static uint32_t earliest(const struct fake *fake)
{
    uint32_t best = fake->event_count;
    for (uint32_t i = 0; i < fake->event_count; i++) {
        const struct event *a = &fake->events[i];
        if (best == fake->event_count || a->time_ns < fake->events[best].time_ns ||
            (a->time_ns == fake->events[best].time_ns && a->order < fake->events[best].order))
            best = i;
    }
    return best;
}

static struct event take_event(struct fake *fake, uint32_t index)
{
    const struct event event = fake->events[index];
    fake->events[index] = fake->events[--fake->event_count];
    return event;
}

/* Let virtual time pass inside a call: bands that end by then end. */
static void pass_time(struct fake *fake, uint64_t until_ns)
{
    for (;;) {
        const uint32_t next = earliest(fake);
        if (next == fake->event_count || fake->events[next].time_ns > until_ns)
            break;
        handle_event(fake, take_event(fake, next));
    }
    atomic_store(&fake->clock_ns, max_ns(until_ns, atomic_load(&fake->clock_ns)));
}

uint64_t fake_next(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    const uint32_t next = earliest(fake);
    const uint64_t time_ns = next < fake->event_count ? fake->events[next].time_ns : UINT64_MAX;
    pthread_mutex_unlock(&fake->lock);
    return time_ns;
}

void fake_pass(struct fake *fake, uint64_t until_ns)
{
    pthread_mutex_lock(&fake->lock);
    if (!fake->blocked) /* else the thread that must flush it is stuck */
        fake__check_flushed(fake, "waited");
    pass_time(fake, until_ns);
    pthread_mutex_unlock(&fake->lock);
}

bool fake__advance(struct cox__backend *backend, uint64_t deadline_ns)
{
    struct fake *fake = fake_of(backend);
    bool moved = false;
    pthread_mutex_lock(&fake->lock);
    fake__check_flushed(fake, "waited");
    if (!fake->held) {
        const uint32_t next = earliest(fake);
        if (next < fake->event_count && fake->events[next].time_ns <= deadline_ns) {
            fake__note(fake, FAKE_STEP_WAIT, 0, NULL, false);
            handle_event(fake, take_event(fake, next));
            moved = true;
        } else if (deadline_ns != UINT64_MAX) {
            fake__note(fake, FAKE_STEP_WAIT, 0, NULL, false);
            atomic_store(&fake->clock_ns, max_ns(deadline_ns, atomic_load(&fake->clock_ns)));
            moved = true;
        }
    }
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return moved;
}

/* ---- calls with a duration ---- */

/* Block in real time until fake_unblock, but at most `delay_ns`; UINT64_MAX = no limit. Called with the lock held,
 * which is released while it waits. */
void fake__block(struct fake *fake, uint64_t delay_ns)
{
    const uint64_t until_ns = add_ns(cox__clock_ns(), delay_ns);
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                   .tv_nsec = (long)(until_ns % 1000000000u)};
    fake->blocked++;
    pthread_cond_broadcast(&fake->changed);
    while (!fake->unblocked && cox__clock_ns() < until_ns)
        if (delay_ns == UINT64_MAX)
            pthread_cond_wait(&fake->changed, &fake->lock);
        else
            pthread_cond_timedwait(&fake->changed, &fake->lock, &until);
    fake->blocked--;
    pthread_cond_broadcast(&fake->changed);
}

/* Let a call last `delay_ns` of the virtual clock, or of the real one. Called with the lock held. In real time the
 * lock is released while it waits, and fake_unblock ends the wait. */
void fake__take_time(struct fake *fake, uint64_t delay_ns)
{
    if (fake->real_time) {
        fake__block(fake, delay_ns);
        return;
    }
    if (delay_ns == UINT64_MAX)
        abort();
    pass_time(fake, add_ns(fake_now(fake), delay_ns));
}

/* ---- queues ---- */

void fake__leave_queue(struct device *device, const struct slot *slot)
{
    device->last = NULL;
    for (struct slot **at = &device->first; *at;) {
        if (*at == slot) {
            *at = slot->next;
        } else {
            device->last = *at;
            at = &(*at)->next;
        }
    }
}

void fake__start_band(struct fake *fake, struct device *device, struct slot *slot)
{
    slot->instance->queued--;
    slot->state = SLOT_RUNNING;
    fake->running++;
    if (fake->real_time) {
        slot->next = NULL;
        if (device->last)
            device->last->next = slot;
        else
            device->first = slot;
        device->last = slot;
        pthread_cond_signal(&device->wake);
        return;
    }
    struct context *context = slot->instance->context;
    const uint64_t start = max_ns(fake_now(fake), context->in_free);
    const uint64_t in_end = add_ns(start, slot->in_ns);
    const uint64_t kernel_start = max_ns(in_end, context->kernel_free);
    const uint64_t kernel_end = add_ns(add_ns(kernel_start, slot->kernel_ns), slot->fate[FAKE_HANGS].delay_ns);
    const uint64_t out_end = add_ns(max_ns(kernel_end, context->out_free), slot->out_ns);
    context->in_free = in_end;
    context->kernel_free = kernel_end;
    context->out_free = out_end;
    if (out_end == UINT64_MAX)
        slot->hung = true;
    if (fate(slot, FAKE_POST_EARLY))
        push_event(fake, start, EVENT_START, slot);
    push_event(fake, out_end, EVENT_END, slot);
}

/* The band runs inside the call that enqueues it. */
void fake__run_inside(struct fake *fake, struct slot *slot)
{
    struct cox__instance *instance = slot->instance;
    pass_time(fake, add_ns(add_ns(fake_now(fake), slot->kernel_ns), slot->hung ? 0 : slot->fate[FAKE_HANGS].delay_ns));
    if (slot->state != SLOT_QUEUED)
        return; /* the device died meanwhile */
    instance->queued--;
    slot->state = SLOT_RUNNING;
    fake->running++;
    if (!slot->hung)
        handle_end(slot);
}

/* ---- real time ---- */

/* The band that ends next, or NULL. Only the first band of each context is considered. */
static struct slot *next_due(struct fake *fake, const struct device *device)
{
    struct slot *best = NULL;
    for (struct slot *slot = device->first; slot; slot = slot->next) {
        bool behind = false;
        for (const struct slot *before = device->first; before != slot; before = before->next)
            behind = behind || before->instance->context == slot->instance->context;
        if (behind || slot->hung)
            continue;
        if (slot->due_ns == 0) {
            slot->due_ns = add_ns(fake_now(fake),
                                  slot->in_ns + slot->kernel_ns + slot->out_ns + slot->fate[FAKE_HANGS].delay_ns);
            if (fate(slot, FAKE_POST_EARLY))
                post(slot);
        }
        if (!best || slot->due_ns < best->due_ns)
            best = slot;
    }
    return best;
}

/* ThreadSanitizer treats a device's memory accesses like those of any thread, so it finds a host that does not wait
 * for the device. The exception is a band whose instance was abandoned: both the band and the host may write its
 * rows, with the same contents. Its accesses are hidden. */
#if defined(__SANITIZE_THREAD__)
#define SEES_RACES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SEES_RACES 1
#endif
#endif
#ifdef SEES_RACES
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

static void execute_unseen(struct slot *slot)
{
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    fake__execute(slot, true);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#else
static void execute_unseen(struct slot *slot)
{
    fake__execute(slot, true);
}
#endif

/* The band has reached its time. Its kernel runs without the lock. That is safe: only this thread kills the device
 * or ends the band, and the instance stays until the band has ended. */
static void finish_band(struct fake *fake, struct device *device, struct slot *slot)
{
    uint64_t late_ns;
    if (!fate(slot, FAKE_DEVICE_DIES) && begin_failing(slot, &late_ns)) {
        slot->due_ns = add_ns(fake_now(fake), late_ns);
        return;
    }
    fake__leave_queue(device, slot);
    if (fate(slot, FAKE_DEVICE_DIES)) {
        kill_device(slot);
        return;
    }
    fake__check_memory(slot);
    /* If the instance was abandoned, the host may read the band's rows while the kernel runs. */
    const bool abandoned = slot->instance->abandoned;
    pthread_mutex_unlock(&fake->lock);
    if (abandoned)
        execute_unseen(slot);
    else
        fake__execute(slot, slot->fails);
    pthread_mutex_lock(&fake->lock);
    end_band(slot, slot->fails);
}

void *fake__serve(void *data)
{
    struct device *device = data;
    struct fake *fake = device->fake;
    pthread_mutex_lock(&fake->lock);
    while (!fake->stopping) {
        struct slot *slot = next_due(fake, device);
        if (!slot) {
            pthread_cond_wait(&device->wake, &fake->lock);
            continue;
        }
        if (fake_now(fake) < slot->due_ns) {
            const struct timespec until = {.tv_sec = (time_t)(slot->due_ns / 1000000000u),
                                           .tv_nsec = (long)(slot->due_ns % 1000000000u)};
            pthread_cond_timedwait(&device->wake, &fake->lock, &until);
            continue; /* it may have been destroyed meanwhile */
        }
        finish_band(fake, device, slot);
        pthread_cond_broadcast(&fake->changed);
    }
    pthread_mutex_unlock(&fake->lock);
    return NULL;
}
