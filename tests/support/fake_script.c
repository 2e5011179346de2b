/* The scripted devices' faults, their record, and the functions with which tests query and wait.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fake_inside.h"
#include "base/clock.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Limit of the waiting functions. */
enum { AWAIT_S = 120 };

void fake__violate(struct fake *fake, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fake__violate(struct fake *fake, const char *format, ...)
{
    if (fake->violations++ == 0) {
        va_list list;
        va_start(list, format);
        vsnprintf(fake->violation, sizeof fake->violation, format, list);
        va_end(list);
    }
}

void fake__note(struct fake *fake, enum fake_step step, uint32_t device, const struct slot *slot, bool failed)
{
    fake->calls += step != FAKE_STEP_END && step != FAKE_STEP_POST && step != FAKE_STEP_WAIT;
    if (fake->record_count == fake->record_room) {
        fake->record_room = fake->record_room ? 2 * fake->record_room : 1024;
        fake->record = must(realloc(fake->record, fake->record_room * sizeof *fake->record));
    }
    struct fake_record *record = &fake->record[fake->record_count++];
    *record = (struct fake_record){.step = step, .time_ns = fake_now(fake), .device = device, .failed = failed};
    if (slot) {
        const struct work *work = &slot->work;
        record->slot = work->slot;
        record->first_row = work->first_row;
        record->rows = work->rows;
        record->band = work->band;
        record->frame = work->frame;
        record->session = work->session;
        record->out = work->out;
        record->pass = work->pass;
        record->kind = (uint32_t)work->kind;
        record->kept = work->resident & ~work->copied_out;
        for (uint32_t b = 0; b < work->back_count; b++)
            record->back_rows += work->back[b].count;
        for (uint32_t r = 0; r < work->range_count; r++)
            record->copied_rows += work->ranges[r].count;
    }
}

void fake__note_instance(struct fake *fake, enum fake_step step, uint32_t device, bool fresh, bool failed)
{
    fake__note(fake, step, device, NULL, failed);
    fake->record[fake->record_count - 1].fresh = fresh;
}

/* ---- faults ---- */

const struct fake_fault *fake__strike(struct fake *fake, enum fake_fault_kind kind, uint32_t device)
{
    for (uint32_t i = 0; i < fake->fault_count; i++) {
        struct fake_fault *fault = &fake->faults[i];
        if (fault->kind != kind || fault->count == 0 || (kind != FAKE_MEM_FAILS && fault->device != device))
            continue;
        if (fault->skip > 0) {
            fault->skip--;
            continue;
        }
        if (fault->count != UINT32_MAX)
            fault->count--;
        fake->struck[kind]++;
        return fault;
    }
    return NULL;
}

void fake_script(struct fake *fake, const struct fake_fault *fault)
{
    pthread_mutex_lock(&fake->lock);
    if (fake->fault_count == FAULTS_MAX)
        abort();
    struct fake_fault *copy = &fake->faults[fake->fault_count++];
    *copy = *fault;
    if (copy->count == 0)
        copy->count = 1;
    pthread_mutex_unlock(&fake->lock);
}

uint32_t fake_struck(struct fake *fake)
{
    uint32_t result = 0;
    for (uint32_t kind = 0; kind < FAKE_KINDS; kind++)
        result += fake_struck_by(fake, (enum fake_fault_kind)kind);
    return result;
}

static uint32_t count_of(struct fake *fake, const uint32_t *count)
{
    pthread_mutex_lock(&fake->lock);
    const uint32_t result = *count;
    pthread_mutex_unlock(&fake->lock);
    return result;
}

uint32_t fake_struck_by(struct fake *fake, enum fake_fault_kind kind)
{
    return count_of(fake, &fake->struck[kind]);
}

/* Uniform in -1 .. 1. Depends on the arguments alone (splitmix64). */
static double noise(uint64_t device, uint64_t job)
{
    uint64_t x = device * 0x9e3779b97f4a7c15u + job * 0xd1342543de82ef95u + 1;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return (double)(x >> 11) / (double)(1ull << 52) - 1.0;
}

/* Draw the faults and the duration of the slot's band. */
void fake__draw_faults(struct fake *fake, struct slot *slot)
{
    const uint32_t index = slot->instance->device, rows = slot->work.rows;
    struct device *device = &fake->devices[index];
    const struct fake_device *script = &device->script;
    for (uint32_t kind = FAKE_EVENT_FAILS; kind <= FAKE_SLOW; kind++) {
        const struct fake_fault *fault = kind == FAKE_SUBMIT_BLOCKS ? NULL : fake__strike(fake, kind, index);
        if (fault)
            slot->fate[kind] = *fault;
    }
    slot->fails = fate(slot, FAKE_EVENT_FAILS);
    slot->hung = slot->fate[FAKE_HANGS].delay_ns == UINT64_MAX;
    double factor = 1.0 + script->jitter * noise(index, device->jobs++);
    if (fate(slot, FAKE_SLOW))
        factor *= slot->fate[FAKE_SLOW].factor;
    slot->kernel_ns = (uint64_t)((script->fixed_ns + script->ns_per_row * rows) * factor + 0.5);
    if (script->mode == COX_MODE_STAGED) {
        slot->in_ns = (uint64_t)(script->copy_in_ns_per_row * rows * factor + 0.5);
        slot->out_ns = (uint64_t)(script->copy_out_ns_per_row * rows * factor + 0.5);
    }
}

/* ---- for tests ---- */

void fake_hold(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->held = true;
    pthread_mutex_unlock(&fake->lock);
}

void fake_release(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->held = false;
    const struct cox_runtime *runtime = fake->post.ctx;
    pthread_mutex_unlock(&fake->lock);
    if (runtime) /* its loop may believe that no event is pending */
        cox__loop_wake(runtime->loop);
}

bool fake_await_gone(struct fake *fake)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (uint32_t tries = 0; fake_alive(fake) > 0 && tries < AWAIT_S * 1000; tries++)
        nanosleep(&pause, NULL);
    return fake_alive(fake) == 0;
}

/* Wait until the count is at least `wanted`. Changes of the count must signal `changed`. */
static bool await_count(struct fake *fake, const uint32_t *count, uint32_t wanted)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += AWAIT_S;
    pthread_mutex_lock(&fake->lock);
    while (*count < wanted)
        if (pthread_cond_timedwait(&fake->changed, &fake->lock, &until) == ETIMEDOUT)
            break;
    const bool reached = *count >= wanted;
    pthread_mutex_unlock(&fake->lock);
    return reached;
}

bool fake_await_running(struct fake *fake, uint32_t bands)
{
    return await_count(fake, &fake->running, bands);
}

bool fake_await_blocked(struct fake *fake, uint32_t calls)
{
    return await_count(fake, &fake->blocked, calls);
}

uint32_t fake_blocked(struct fake *fake)
{
    return count_of(fake, &fake->blocked);
}

void fake_unblock(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->unblocked = true;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

bool fake_destroyed(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    const bool destroyed = fake->destroyed;
    pthread_mutex_unlock(&fake->lock);
    return destroyed;
}

uint32_t fake_abandoned(struct fake *fake)
{
    return count_of(fake, &fake->abandoned);
}

uint64_t fake_now(struct fake *fake)
{
    return fake->real_time ? cox__clock_ns() : atomic_load(&fake->clock_ns);
}

struct fake_record *fake_take_record(struct fake *fake, size_t *count)
{
    pthread_mutex_lock(&fake->lock);
    *count = fake->record_count;
    struct fake_record *copy = must(malloc((fake->record_count + 1) * sizeof *copy));
    memcpy(copy, fake->record, fake->record_count * sizeof *copy);
    pthread_mutex_unlock(&fake->lock);
    return copy;
}

void fake_clear_record(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->record_count = 0;
    pthread_mutex_unlock(&fake->lock);
}

uint32_t fake_steps(struct fake *fake, enum fake_step step, uint32_t device)
{
    uint32_t found = 0;
    pthread_mutex_lock(&fake->lock);
    for (size_t i = 0; i < fake->record_count; i++)
        found += fake->record[i].step == step && (device == UINT32_MAX || fake->record[i].device == device);
    pthread_mutex_unlock(&fake->lock);
    return found;
}

uint64_t fake_calls(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    const uint64_t calls = fake->calls;
    pthread_mutex_unlock(&fake->lock);
    return calls;
}

uint32_t fake_violations(struct fake *fake)
{
    return count_of(fake, &fake->violations);
}

const char *fake_violation(struct fake *fake)
{
    return fake->violation;
}

uint32_t fake_alive(struct fake *fake)
{
    return count_of(fake, &fake->alive);
}
