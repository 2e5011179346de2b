/* How time works here.
 *
 * Virtual clock: job_submit queues a band, instance_flush lays the queued bands out on the three timelines (copy-in,
 * kernel, copy-out) of the instance's context and puts their ends into an event list; advance() takes the earliest
 * event, sets the clock to it, runs the kernel and posts. So a kernel runs when its band *ends*: an input overwritten
 * too early or a buffer freed too early shows in the results. A device that runs inside submit moves the clock in
 * job_submit.
 *
 * Real clock: instance_flush hands the bands to the device's thread, which sleeps, runs the kernel and posts. The
 * kernel runs without the mutex, so that a host that touches the band's rows meanwhile is a race that ThreadSanitizer
 * sees.
 *
 * Instances share their device's context, fresh ones have their own: a band that hangs holds up its context alone. What
 * an abandoned instance had under way still happens when its time comes, after instance_destroy too, but is not posted;
 * so a band works from copies of what its job says.
 *
 * One mutex guards everything else. The state of a band changes and its post is made under one hold of it, so that poll
 * cannot report the end of a band whose post is still to come, unless the script asks for that.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fake_backend.h"
#include "engine/state.h"
#include "fake_handover.h"
#include "host/clock.h"
#include "host/leak.h"
#include "api/log.h"
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* In real time, how long a band takes before its instance may have been abandoned. */
#define LATE_NS 10000000u

enum { EVENTS_MAX = 4096, INSTANCES_MAX = 1024, FAULTS_MAX = 64, SLOTS_MAX = 256 };

enum slot_state { SLOT_FREE = 0, SLOT_QUEUED, SLOT_RUNNING, SLOT_ENDED };

/* What the job said when it was submitted. */
struct work {
    uint32_t slot;
    uint32_t band;
    uint32_t pass;
    uint32_t first_row;
    uint32_t rows;
    bool preserve;
    bool fetch;
    uint32_t resident, copied_out, set;
    uint32_t range_count, back_count;
    struct cox__job_range ranges[COX__JOB_RANGES_MAX], back[COX__JOB_BACK_MAX];
    const void *frame;
    bool of_frame;  /* it does the rows of a frame of the application's in that frame's memory, */
    uint64_t index; /* of this number */
    const void *session;
    const void *out; /* where the first binding that is written begins; of a job that writes none, the first one */
    struct cox__mem *mems[COX_BINDINGS_MAX];
    unsigned char params[COX_PARAMS_MAX];
};

struct slot {
    struct cox__instance *instance;
    struct cox__job *job; /* not touched any more once the instance is abandoned */
    struct work work;
    enum slot_state state;
    bool failed;
    bool failing; /* a command of it has failed, the others have not ended */
    bool hung;    /* for ever */
    bool dies;
    uint64_t dead_ns; /* for how long then */
    bool fails;
    uint64_t fails_late_ns; /* how long the rest of it takes after a command has failed */
    uint32_t corrupt_rows;
    bool strays; /* wrong in the last byte of each row */
    uint64_t lie_ns;
    uint64_t early_end_ns;
    bool no_post;
    bool post_twice;
    bool post_early;
    uint64_t post_late_ns;
    uint64_t hang_ns;
    uint64_t kernel_ns;
    uint64_t in_ns;
    uint64_t out_ns;
    uint64_t submit_ns;
    uint32_t number;   /* order of submission, for queues */
    struct slot *next; /* real time: behind it in the device's queue */
    uint64_t due_ns;   /* real time: when it ends; 0 = it has not begun */
    void *partial[COX_BINDINGS_MAX];
};

/* A driver's context: its bands run one after the other. */
struct context {
    uint64_t in_free;
    uint64_t kernel_free;
    uint64_t out_free;
};

struct cox__instance {
    struct fake *fake;
    uint32_t device;
    struct context *context;
    struct context own;
    bool dead;      /* was there when the device died */
    bool abandoned; /* its bands are not posted any more */
    bool isolated;  /* a thread is stuck in a driver call of it */
    bool unsettled; /* a thread was stuck in one, and it has not been flushed since */
    bool gone;      /* destroyed, but a band of it is still to happen */
    struct cox__pipeline pipeline;
    fake_kernel_fn *kernels[COX_PASSES_MAX][COX_STAGES_MAX];
    uint32_t max_rows[COX_PASSES_MAX];
    uint32_t slot_count;
    uint32_t queued;
    uint32_t resident;
    unsigned char **sets; /* [set * COX_BINDINGS_MAX + binding]: memory of whole frames */
    cox__ended_fn *ended; /* instance_destroy's, once `gone` */
    void *ended_ctx;
    struct slot slots[];
};

struct cox__mem {
    struct cox__mem_link link;
    struct fake *fake;
    unsigned char *data;
    size_t bytes;
    bool wrapped;
    bool kept;      /* leaked by mem_abandon */
    bool destroyed; /* though a device works on it, which is a violation: kept so that the test lives to say so */
    struct cox__mem *next; /* of the kept ones */
};

enum event_kind { EVENT_START, EVENT_END, EVENT_POST };

struct event {
    uint64_t time_ns;
    uint64_t order;
    enum event_kind kind;
    struct slot *slot;
};

struct device {
    struct fake_device script;
    struct context context;
    uint64_t jobs;
    bool dead;         /* the context that instances share is lost */
    uint64_t alive_ns; /* from then on fresh contexts can be had again */
    /* real time */
    pthread_t thread;
    pthread_cond_t wake;
    struct slot *first, *last;
};

struct fake {
    struct cox__backend base;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct cox__post post;
    struct cox__log *log;
    uint32_t device_count;
    struct device devices[FAKE_DEVICES_MAX];
    uint32_t kernel_count;
    struct fake_kernel kernels[FAKE_KERNELS_MAX];
    bool real_time;
    bool held;
    bool made;
    bool destroyed;
    bool stopping;
    bool unblocked;
    uint32_t blocked; /* threads inside a call that blocks */
    _Atomic uint64_t clock_ns;
    uint64_t order;
    uint32_t submits;
    uint32_t running; /* flushed and not ended */
    uint32_t alive;
    uint32_t abandoned; /* memory */
    struct fake_handover *handover;

    uint32_t event_count;
    struct event events[EVENTS_MAX];
    uint32_t instance_count;
    struct cox__instance *instances[INSTANCES_MAX];
    struct cox__mem *kept; /* leaked by mem_abandon */
    uint32_t struck[FAKE_KINDS];
    uint32_t fault_count;
    struct fake_fault faults[FAULTS_MAX];

    size_t record_count, record_room;
    struct fake_record *record;
    uint32_t violations;
    char violation[512];
};

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static void violate(struct fake *fake, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void violate(struct fake *fake, const char *format, ...)
{
    if (fake->violations++ == 0) {
        va_list list;
        va_start(list, format);
        vsnprintf(fake->violation, sizeof fake->violation, format, list);
        va_end(list);
    }
}

static uint64_t clock_now(struct fake *fake)
{
    if (!fake->real_time)
        return atomic_load(&fake->clock_ns);
    return cox__clock_ns();
}

static void note(struct fake *fake, enum fake_step step, uint32_t device, const struct slot *slot, bool failed)
{
    if (fake->record_count == fake->record_room) {
        fake->record_room = fake->record_room ? 2 * fake->record_room : 1024;
        fake->record = must(realloc(fake->record, fake->record_room * sizeof *fake->record));
    }
    struct fake_record *record = &fake->record[fake->record_count++];
    *record = (struct fake_record){.step = step, .time_ns = clock_now(fake), .device = device, .failed = failed};
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
        record->fetch = work->fetch;
        record->kept = work->resident & ~work->copied_out;
        for (uint32_t b = 0; b < work->back_count; b++)
            record->back_rows += work->back[b].count;
        for (uint32_t r = 0; r < work->range_count; r++)
            record->copied_rows += work->ranges[r].count;
    }
}

static void note_instance(struct fake *fake, enum fake_step step, uint32_t device, bool fresh, bool failed)
{
    note(fake, step, device, NULL, failed);
    fake->record[fake->record_count - 1].fresh = fresh;
}

static uint64_t add_ns(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t max_ns(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Uniform in -1 .. 1, a function of its arguments alone (splitmix64). */
static double noise(uint64_t device, uint64_t job)
{
    uint64_t x = device * 0x9e3779b97f4a7c15u + job * 0xd1342543de82ef95u + 1;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return (double)(x >> 11) / (double)(1ull << 52) - 1.0;
}

/* ---- faults ---- */

static const struct fake_fault *strike(struct fake *fake, enum fake_fault_kind kind, uint32_t device)
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

uint32_t fake_struck_by(struct fake *fake, enum fake_fault_kind kind)
{
    pthread_mutex_lock(&fake->lock);
    const uint32_t result = fake->struck[kind];
    pthread_mutex_unlock(&fake->lock);
    return result;
}

/* ---- running a band ---- */

static const struct cox__pass *pass_of(const struct cox__instance *instance, const struct work *work)
{
    return &instance->pipeline.passes[work->pass];
}

static size_t binding_bytes(const struct cox__pass *pass, uint32_t index, const struct work *work, size_t *offset,
                            uint32_t *origin)
{
    const struct cox_binding *binding = &pass->bindings[index];
    *offset = 0;
    *origin = 0;
    if (binding->contract == COX__UNUSED)
        return 0;
    if (binding->contract == COX_WHOLE || binding->contract == COX_REDUCE)
        return binding->bytes;
    uint32_t first, count;
    cox__binding_rows(pass, index, work->first_row, work->rows, &first, &count);
    *offset = (size_t)first * binding->pitch_bytes;
    *origin = first;
    return (size_t)count * binding->pitch_bytes;
}

static bool written(const struct cox_binding *binding)
{
    return binding->contract == COX_ROWS && binding->access != COX_READ;
}

static bool keeps(const struct work *work, uint32_t binding)
{
    return work->resident >> binding & 1;
}

/* The device's memory of a binding, of the whole frame. */
static unsigned char *kept_data(const struct cox__instance *instance, const struct work *work, uint32_t binding)
{
    return instance->sets[work->set * COX_BINDINGS_MAX + binding];
}

static void copy_range(const struct cox__instance *instance, const struct work *work,
                       const struct cox__job_range *range, bool in)
{
    const size_t pitch = instance->pipeline.bindings[range->binding].pitch_bytes;
    unsigned char *there = kept_data(instance, work, range->binding) + range->first * pitch;
    unsigned char *here = work->mems[range->binding]->data + range->first * pitch;
    memcpy(in ? there : here, in ? here : there, range->count * pitch);
}

/* The n-th part of the binding's host memory that the work writes. False: there is none. */
static bool writes_host(const struct cox__instance *instance, const struct work *work, uint32_t binding, uint32_t n,
                        size_t *offset, size_t *bytes)
{
    const size_t pitch = instance->pipeline.bindings[binding].pitch_bytes;
    const bool all = !keeps(work, binding) || work->copied_out >> binding & 1;
    const struct cox__job_range *ranges = work->fetch ? work->ranges : work->back;
    const uint32_t count = work->fetch ? 1 : work->back_count;
    uint32_t origin;
    if (!work->fetch && all) {
        *bytes = binding_bytes(pass_of(instance, work), binding, work, offset, &origin);
        return n == 0 && written(&pass_of(instance, work)->bindings[binding]);
    }
    for (uint32_t r = 0; r < count; r++) {
        if (ranges[r].binding != binding || n-- > 0)
            continue;
        *offset = ranges[r].first * pitch;
        *bytes = ranges[r].count * pitch;
        return true;
    }
    return false;
}

/* Whether the work reads that part of the binding's host memory. */
static bool reads_host(const struct cox__instance *instance, const struct work *work, uint32_t binding, size_t first,
                       size_t end)
{
    const struct cox_binding *of = &pass_of(instance, work)->bindings[binding];
    size_t offset;
    uint32_t origin;
    bool any = false;
    for (uint32_t r = 0; r < work->range_count && !work->fetch; r++) {
        const struct cox__job_range *range = &work->ranges[r];
        const size_t pitch = instance->pipeline.bindings[binding].pitch_bytes;
        any |= range->binding == binding && range->first * pitch < end && (range->first + range->count) * pitch > first;
    }
    if (work->fetch || keeps(work, binding) || !cox__is_shared(of) || of->contract == COX_REDUCE)
        return any;
    const size_t bytes = binding_bytes(pass_of(instance, work), binding, work, &offset, &origin);
    return offset < end && offset + bytes > first;
}

static void run_kernels(struct slot *slot)
{
    struct cox__instance *instance = slot->instance;
    const struct work *work = &slot->work;
    const struct cox__pass *pass = pass_of(instance, work);
    const bool staged = instance->fake->devices[instance->device].script.mode == COX_MODE_STAGED;
    struct fake_args args = {
        .pass = pass,
        .device = instance->device,
        .frame_rows = pass->rows,
        .params = work->params,
    };
    for (uint32_t r = 0; r < work->range_count; r++)
        copy_range(instance, work, &work->ranges[r], !work->fetch);
    if (work->fetch)
        return;
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox_binding *binding = &pass->bindings[i];
        size_t offset;
        const size_t bytes = binding_bytes(pass, i, work, &offset, &args.origin[i]);
        if (binding->contract == COX__UNUSED)
            continue;
        if (binding->contract == COX_REDUCE) {
            args.data[i] = memset(slot->partial[i], 0, bytes);
            continue;
        }
        if (cox__is_own(binding)) {
            args.data[i] = memset(must(malloc(bytes)), 0xa5, bytes);
            continue;
        }
        args.data[i] = (keeps(work, i) ? kept_data(instance, work, i) : work->mems[i]->data) + offset;
        if (staged) { /* memory of its own, exactly as long as the band, so that sanitizers see an overrun */
            unsigned char *copy = must(malloc(bytes));
            if (binding->access == COX_WRITE && !work->preserve)
                memset(copy, 0xa5, bytes);
            else
                memcpy(copy, args.data[i], bytes);
            args.data[i] = copy;
        }
    }
    for (uint32_t i = 0; i < pass->stage_count; i++) {
        const uint32_t extent = pass->extents[i], end = work->first_row + work->rows;
        args.stage = &pass->stages[i];
        args.first_row = work->first_row > extent ? work->first_row - extent : 0;
        args.rows = (pass->rows - end > extent ? end + extent : pass->rows) - args.first_row;
        instance->kernels[work->pass][i](&args);
    }
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox_binding *binding = &pass->bindings[i];
        if (binding->contract == COX_REDUCE || binding->contract == COX__UNUSED || !(staged || cox__is_own(binding)))
            continue;
        size_t offset;
        uint32_t origin;
        const size_t bytes = binding_bytes(pass, i, work, &offset, &origin);
        if (written(binding) && keeps(work, i))
            memcpy(kept_data(instance, work, i) + offset, args.data[i], bytes);
        if (written(binding) && (!keeps(work, i) || work->copied_out >> i & 1))
            memcpy(work->mems[i]->data + offset, args.data[i], bytes);
        free(args.data[i]);
    }
    for (uint32_t b = 0; b < work->back_count; b++)
        copy_range(instance, work, &work->back[b], false);
}

/* Flip a bit in so many of the band's rows of each output: in their first byte, which every kernel writes, or the last
 * one. The same rows come out wrong in the same way again, but not on another device. */
static void corrupt(struct slot *slot)
{
    const struct cox__pass *pass = pass_of(slot->instance, &slot->work);
    const uint32_t first_row = slot->work.first_row;
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox_binding *binding = &pass->bindings[i];
        const bool partial = binding->contract == COX_REDUCE;
        if ((!written(binding) && !partial) || slot->work.fetch)
            continue;
        size_t offset;
        uint32_t origin;
        const size_t bytes = binding_bytes(pass, i, &slot->work, &offset, &origin);
        unsigned char *data = partial                 ? slot->partial[i]
                              : keeps(&slot->work, i) ? kept_data(slot->instance, &slot->work, i) + offset
                                                      : slot->work.mems[i]->data + offset;
        const size_t step = partial ? 1 : binding->pitch_bytes;
        for (uint32_t k = 0; k < slot->corrupt_rows && k < bytes / step; k++)
            data[k * step + (slot->strays ? step - 1 : 0)] ^=
                (unsigned char)(1u << (first_row + k + slot->instance->device) % 8);
    }
}

static void leave_garbage(struct slot *slot)
{
    const struct cox__pass *pass = pass_of(slot->instance, &slot->work);
    const struct work *work = &slot->work;
    for (uint32_t r = 0; r < work->range_count && !work->fetch; r++) {
        const size_t pitch = slot->instance->pipeline.bindings[work->ranges[r].binding].pitch_bytes;
        memset(kept_data(slot->instance, work, work->ranges[r].binding) + work->ranges[r].first * pitch, 0xdb,
               work->ranges[r].count * pitch);
    }
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        size_t offset, bytes;
        uint32_t origin;
        for (uint32_t n = 0; writes_host(slot->instance, work, i, n, &offset, &bytes); n++)
            memset(work->mems[i]->data + offset, 0xdb, bytes);
        bytes = binding_bytes(pass, i, work, &offset, &origin);
        if (written(&pass->bindings[i]) && keeps(work, i) && !work->fetch)
            memset(kept_data(slot->instance, work, i) + offset, 0xdb, bytes);
        else if (pass->bindings[i].contract == COX_REDUCE)
            memset(slot->partial[i], 0xdb, bytes);
    }
}

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
    note(fake, FAKE_STEP_POST, slot->instance->device, slot, false);
    uint64_t end_ns = clock_now(fake);
    if (slot->early_end_ns)
        end_ns = slot->submit_ns > slot->early_end_ns ? slot->submit_ns - slot->early_end_ns : 1;
    atomic_store(&slot->job->end_ns, end_ns);
    fake->post.post(fake->post.ctx, slot->job);
}

static void check_memory(const struct slot *slot)
{
    struct fake *fake = slot->instance->fake;
    for (uint32_t i = 0; i < slot->instance->pipeline.binding_count; i++)
        if (slot->work.mems[i] && slot->work.mems[i]->destroyed)
            violate(fake, "device %u works on rows %u+%u of memory that was destroyed", slot->instance->device,
                    slot->work.first_row, slot->work.rows);
    if (slot->instance->abandoned)
        return;
    const struct cox__job *job = slot->job;
    if (memcmp(job->mems, slot->work.mems, slot->instance->pipeline.binding_count * sizeof job->mems[0]) != 0 ||
        (job->params && memcmp(job->params, slot->work.params, slot->instance->pipeline.params_bytes) != 0) ||
        job->first_row != slot->work.first_row || job->rows != slot->work.rows ||
        job->range_count != slot->work.range_count ||
        memcmp(job->ranges, slot->work.ranges, job->range_count * sizeof job->ranges[0]) != 0)
        violate(fake, "the job of rows %u+%u on device %u was changed while it was under way", slot->work.first_row,
                slot->work.rows, slot->instance->device);
}

/* What the band leaves in memory. In real time without the lock. */
static void execute(struct slot *slot, bool failed)
{
    if (failed) {
        leave_garbage(slot);
        return;
    }
    run_kernels(slot);
    if (slot->corrupt_rows)
        corrupt(slot);
}

static void fill_profile(struct slot *slot)
{
    const struct device *device = &slot->instance->fake->devices[slot->instance->device];
    const bool profile = !slot->failed && !device->script.no_profile;
    slot->job->kernel_ns = !profile ? 0 : slot->lie_ns ? slot->lie_ns : slot->kernel_ns;
    slot->job->copy_in_ns = profile ? slot->in_ns : 0;
    slot->job->copy_out_ns = profile ? slot->out_ns : 0;
}

/* The band's last step once its results are there: state, post. Called with the lock held. */
static bool at_work(const struct cox__instance *instance)
{
    for (uint32_t i = 0; i < instance->slot_count; i++)
        if (instance->slots[i].state == SLOT_QUEUED || instance->slots[i].state == SLOT_RUNNING)
            return true;
    return false;
}

/* Once the instance is gone and its bands are over. */
static void tell_ended(struct cox__instance *instance)
{
    cox__ended_fn *ended = instance->ended;
    if (!instance->gone || at_work(instance) || !ended)
        return;
    instance->ended = NULL;
    ended(instance->ended_ctx);
}

static struct fake_handover_band handover_of(const struct work *work)
{
    return (struct fake_handover_band){work->frame, work->session,   work->index,
                                       work->pass,  work->first_row, work->rows};
}

static void end_band(struct slot *slot, bool failed)
{
    struct cox__instance *instance = slot->instance;
    struct fake *fake = instance->fake;
    const struct fake_handover_band band = handover_of(&slot->work);
    slot->failed = failed;
    if (slot->work.of_frame && !slot->work.fetch && !failed && !instance->abandoned)
        fake_handover_end(fake->handover, &instance->pipeline, &band);
    if (!instance->abandoned) {
        fill_profile(slot);
        if (slot->state == SLOT_RUNNING)
            fake->running--;
    }
    slot->state = SLOT_ENDED;
    note(fake, FAKE_STEP_END, instance->device, slot, failed);
    tell_ended(instance);
    if (slot->no_post)
        return;
    if (slot->post_late_ns > 0) {
        push_event(fake, add_ns(clock_now(fake), slot->post_late_ns), EVENT_POST, slot);
        return;
    }
    post(slot);
    if (slot->post_twice)
        post(slot);
}

static void drop_events(struct fake *fake, const struct slot *slot)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < fake->event_count; i++)
        if (fake->events[i].slot != slot)
            fake->events[kept++] = fake->events[i];
    fake->event_count = kept;
}

static void kill_device(struct fake *fake, uint32_t index, uint64_t for_ns)
{
    struct device *device = &fake->devices[index];
    device->dead = true;
    device->alive_ns = for_ns ? add_ns(clock_now(fake), for_ns) : UINT64_MAX;
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
                drop_events(fake, slot);
                if (!instance->abandoned) { /* there the end is the end */
                    check_memory(slot);
                    execute(slot, true);
                }
                end_band(slot, true);
            }
        }
    }
}

/* A command of the band has failed now; returns whether others have not ended. */
static bool begin_failing(struct slot *slot)
{
    if (!slot->fails_late_ns || slot->failing)
        return false;
    slot->failing = true;
    slot->fails = true;
    slot->hung = slot->fails_late_ns == UINT64_MAX;
    post(slot);
    return true;
}

static void handle_end(struct slot *slot)
{
    struct fake *fake = slot->instance->fake;
    if (slot->dies) {
        kill_device(fake, slot->instance->device, slot->dead_ns);
    } else if (begin_failing(slot)) {
        push_event(fake, add_ns(clock_now(fake), slot->fails_late_ns), EVENT_END, slot);
    } else {
        check_memory(slot);
        execute(slot, slot->fails || slot->instance->abandoned);
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

/* Let virtual time pass inside a call: everything that ends meanwhile ends. */
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

/* ---- backend operations ---- */

static struct fake *fake_of(struct cox__backend *backend)
{
    return (struct fake *)backend;
}

static uint32_t op_device_count(struct cox__backend *backend)
{
    return fake_of(backend)->device_count;
}

static void op_device_info(struct cox__backend *backend, uint32_t index, struct cox_device_info *info)
{
    const struct fake *fake = fake_of(backend);
    const struct fake_device *script = &fake->devices[index].script;
    *info = (struct cox_device_info){
        .type = script->type,
        .mode = script->mode,
        .platform_index = script->mode == COX_MODE_SHARED ? 0 : index,
        .device_index = index,
        .context_group = script->mode == COX_MODE_SHARED ? 0 : index + 1,
        .compute_units = script->compute_units,
        .parent_units = script->compute_units,
        .max_work_group = 4096,
        .vector_width_float = 8,
        .base_align_bytes = script->align_bytes,
        .global_bytes = 1u << 30,
        .max_alloc_bytes = 1u << 30,
        .unified = script->mode != COX_MODE_STAGED,
        .host_memory = script->host_memory,
    };
    if (script->name)
        snprintf(info->name, sizeof info->name, "%s", script->name);
    else
        snprintf(info->name, sizeof info->name, "fake %u", index);
    snprintf(info->platform, sizeof info->platform, "fake platform");
    snprintf(info->driver, sizeof info->driver, "%s", script->driver ? script->driver : "1");
    snprintf(info->id, sizeof info->id, "fake:%u", index);
}

static uint32_t granule_of(struct fake *fake, const struct cox__pass *pass, uint32_t device)
{
    struct cox_device_info info;
    op_device_info(&fake->base, device, &info);
    return cox__pass_granule(pass, device, &info);
}

static cox_status op_mem_create(struct cox__backend *backend, void *host, size_t bytes, struct cox__mem **out)
{
    struct fake *fake = fake_of(backend);
    *out = NULL;
    pthread_mutex_lock(&fake->lock);
    const struct fake_fault *fault = strike(fake, FAKE_MEM_FAILS, 0);
    if (!fault)
        fake->alive++;
    const cox_status status = fault ? fault->status : COX_OK;
    pthread_mutex_unlock(&fake->lock);
    if (fault)
        return status;
    struct cox__mem *mem = must(calloc(1, sizeof *mem));
    mem->fake = fake;
    mem->bytes = bytes;
    mem->wrapped = host != NULL;
    mem->data = host;
    if (!host) {
        const size_t padded = (bytes + 4095) & ~(size_t)4095;
        mem->data = must(aligned_alloc(4096, padded));
        memset(mem->data, 0, padded);
    }
    *out = mem;
    return COX_OK;
}

static bool works_on(const struct cox__instance *instance, const struct cox__mem *mem)
{
    for (uint32_t i = 0; i < instance->slot_count; i++) {
        const struct slot *slot = &instance->slots[i];
        if (slot->state != SLOT_QUEUED && slot->state != SLOT_RUNNING)
            continue;
        for (uint32_t b = 0; b < instance->pipeline.binding_count; b++)
            if (slot->work.mems[b] == mem)
                return true;
    }
    return false;
}

static void keep(struct fake *fake, struct cox__mem *mem)
{
    mem->kept = true;
    mem->next = fake->kept;
    fake->kept = mem;
}

static void free_mem(struct cox__mem *mem)
{
    if (!mem->wrapped)
        free(mem->data);
    free(mem);
}

static void op_mem_destroy(struct cox__backend *backend, struct cox__mem *mem)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    for (uint32_t u = 0; u < fake->instance_count; u++) {
        const struct cox__instance *instance = fake->instances[u];
        if (!works_on(instance, mem))
            continue;
        violate(fake, "memory destroyed while %sdevice %u works on it",
                instance->abandoned ? "an abandoned instance of " : "", instance->device);
        mem->destroyed = true;
    }
    if (mem->destroyed)
        keep(fake, mem);
    fake->alive--;
    const bool destroyed = mem->destroyed;
    pthread_mutex_unlock(&fake->lock);
    if (!destroyed)
        free_mem(mem);
}

/* The fake's own record of what is alive forgets it; the memory stays where a job that hangs may reach it. */
static void op_mem_abandon(struct cox__backend *backend, struct cox__mem *mem)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    keep(fake, mem);
    fake->alive--;
    fake->abandoned++;
    pthread_mutex_unlock(&fake->lock);
}

static struct cox__mem_link *op_mem_link(struct cox__mem *mem)
{
    return &mem->link;
}

static void *op_mem_data(struct cox__mem *mem)
{
    return mem->data;
}

static void op_mem_info(struct cox__mem *mem, struct cox_buffer_info *info)
{
    bool staged = false;
    for (uint32_t i = 0; i < mem->fake->device_count; i++)
        staged = staged || mem->fake->devices[i].script.mode == COX_MODE_STAGED;
    *info = (struct cox_buffer_info){
        .bytes = mem->bytes,
        .pinned = staged && !mem->wrapped,
        .wrapped = mem->wrapped,
        .zero_copy = (uintptr_t)mem->data % 4096 == 0,
    };
}

static fake_kernel_fn *find_kernel(const struct fake *fake, const char *name)
{
    for (uint32_t i = 0; i < fake->kernel_count; i++)
        if (strcmp(fake->kernels[i].name, name) == 0)
            return fake->kernels[i].fn;
    return NULL;
}

/* Block in real time, for `delay_ns` at most, until fake_unblock; UINT64_MAX = no limit. With the lock held, but not
 * meanwhile. */
static void block(struct fake *fake, uint64_t delay_ns)
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

/* Let a call take its time: of the virtual clock, or of the real one. Called with the lock held; in real time it is not
 * held meanwhile, and a call that takes for ever ends with fake_unblock. */
static void take_time(struct fake *fake, uint64_t delay_ns)
{
    if (fake->real_time) {
        block(fake, delay_ns);
        return;
    }
    if (delay_ns == UINT64_MAX)
        abort();
    pass_time(fake, add_ns(clock_now(fake), delay_ns));
}

/* A driver call that may keep the thread. False: the engine lock was revoked meanwhile, and the thread must leave. */
static bool driver_call(struct fake *fake, struct cox__instance *instance, enum fake_fault_kind kind,
                        struct cox__driver_call *call)
{
    pthread_mutex_lock(&fake->lock);
    const struct fake_fault *fault = strike(fake, kind, instance->device);
    const uint64_t delay_ns = fault ? fault->delay_ns : 0;
    if (instance->isolated)
        violate(fake, "a isolated instance of device %u was asked for something", instance->device);
    pthread_mutex_unlock(&fake->lock);
    if (!fault)
        return true;
    *call = cox__driver_call_begin(fake->post.watchdog);
    pthread_mutex_lock(&fake->lock);
    block(fake, delay_ns);
    pthread_mutex_unlock(&fake->lock);
    if (cox__driver_call_end(call))
        return true;
    pthread_mutex_lock(&fake->lock);
    instance->isolated = false;
    pthread_mutex_unlock(&fake->lock);
    return false;
}

static void op_instance_isolate(struct cox__backend *backend, struct cox__instance *instance)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    note_instance(fake, FAKE_STEP_ISOLATE, instance->device, instance->context == &instance->own, false);
    instance->isolated = instance->unsettled = true;
    pthread_mutex_unlock(&fake->lock);
}

static void free_instance(struct cox__instance *instance)
{
    for (uint32_t i = 0; i < instance->slot_count; i++)
        for (uint32_t b = 0; b < COX_BINDINGS_MAX; b++)
            free(instance->slots[i].partial[b]);
    for (uint32_t n = 0; instance->sets && n < instance->pipeline.sets * COX_BINDINGS_MAX; n++)
        free(instance->sets[n]);
    free(instance->sets);
    free(instance);
}

/* Free the instances that are gone and whose bands are over by now. */
static void reap(struct fake *fake)
{
    for (uint32_t u = 0; u < fake->instance_count;) {
        struct cox__instance *instance = fake->instances[u];
        if (!instance->gone || at_work(instance)) {
            u++;
            continue;
        }
        fake->instances[u] = fake->instances[--fake->instance_count];
        for (uint32_t i = 0; i < instance->slot_count; i++)
            drop_events(fake, &instance->slots[i]); /* posts that come late */
        tell_ended(instance);
        free_instance(instance);
    }
}

/* What instance_create comes to, but for the build. Called with the lock held. */
static cox_status may_create(struct fake *fake, uint32_t index, bool fresh)
{
    const struct device *device = &fake->devices[index];
    const struct fake_fault *fault = strike(fake, FAKE_INSTANCE_BLOCKS, index);
    if (fault) {
        const cox_status status = fault->status;
        take_time(fake, fault->delay_ns);
        if (status != COX_OK)
            return status;
    }
    fault = strike(fake, FAKE_INSTANCE_FAILS, index);
    if (fault)
        return fault->status;
    return device->dead && (!fresh || clock_now(fake) < device->alive_ns) ? COX_E_DEVICE_LOST : COX_OK;
}

static void make_sets(struct cox__instance *instance)
{
    const struct cox__pipeline *pipeline = &instance->pipeline;
    instance->resident = pipeline->resident;
    instance->sets = must(calloc((size_t)pipeline->sets * COX_BINDINGS_MAX + 1, sizeof *instance->sets));
    for (uint32_t n = 0; n < pipeline->sets * COX_BINDINGS_MAX; n++) {
        const size_t bytes = pipeline->bytes[n % COX_BINDINGS_MAX];
        if (instance->resident >> n % COX_BINDINGS_MAX & 1)
            instance->sets[n] = memset(must(malloc(bytes)), 0xc3, bytes);
    }
}

static uint32_t op_instance_resident(struct cox__backend *backend, const struct cox__instance *instance)
{
    (void)backend;
    return instance->resident;
}

static cox_status op_instance_create(struct cox__backend *backend, uint32_t device,
                                     const struct cox__pipeline *pipeline, uint32_t slots, bool fresh,
                                     struct cox__instance **out, uint32_t *max_rows)
{
    struct fake *fake = fake_of(backend);
    const struct fake_device *script = &fake->devices[device].script;
    *out = NULL;
    pthread_mutex_lock(&fake->lock);
    reap(fake);
    if (slots == 0 || slots > SLOTS_MAX)
        violate(fake, "instance of device %u created with %u slots", device, slots);
    for (uint32_t p = 0; p < pipeline->pass_count; p++) {
        const struct cox__pass *pass = &pipeline->passes[p];
        if (pass->granule == 0 || (pass->granule != pass->rows && pass->granule % granule_of(fake, pass, device)))
            violate(fake, "granule %u does not suit device %u", pass->granule, device);
    }
    const cox_status status = may_create(fake, device, fresh);
    note_instance(fake, FAKE_STEP_CREATE, device, fresh, status != COX_OK);
    pthread_mutex_unlock(&fake->lock);
    if (status != COX_OK)
        return status;

    struct cox__instance *instance = must(calloc(1, sizeof *instance + slots * sizeof instance->slots[0]));
    instance->fake = fake;
    instance->device = device;
    instance->context = fresh ? &instance->own : &fake->devices[device].context;
    instance->pipeline = *pipeline;
    instance->slot_count = slots;
    for (uint32_t n = 0; n < pipeline->pass_count * COX_STAGES_MAX; n++) {
        const uint32_t p = n / COX_STAGES_MAX, i = n % COX_STAGES_MAX;
        const struct cox__pass *pass = &pipeline->passes[p];
        const struct cox_stage *stage = &pass->stages[i];
        instance->max_rows[p] = script->max_rows && script->max_rows < pass->rows ? script->max_rows : pass->rows;
        if (i >= pass->stage_count)
            continue;
        instance->kernels[p][i] = cox__stage_variant(stage, device, script->type) ? find_kernel(fake, stage->kernel)
                                                                                  : NULL;
        if (!instance->kernels[p][i]) {
            cox__log(fake->log, COX_LOG_WARN, "fake %u: kernel %s does not build", device, stage->kernel);
            free(instance);
            return COX_E_BUILD;
        }
    }
    for (uint32_t l = 0; l < slots; l++) {
        instance->slots[l].instance = instance;
        for (uint32_t i = 0; i < pipeline->binding_count; i++)
            if (pipeline->bindings[i].contract == COX_REDUCE)
                instance->slots[l].partial[i] = must(malloc(pipeline->bytes[i]));
    }
    if (script->mode == COX_MODE_STAGED && !script->keeps_nothing)
        make_sets(instance);
    pthread_mutex_lock(&fake->lock);
    if (fake->instance_count == INSTANCES_MAX)
        abort();
    fake->instances[fake->instance_count++] = instance;
    fake->alive++;
    pthread_mutex_unlock(&fake->lock);
    *out = instance;
    memcpy(max_rows, instance->max_rows, sizeof instance->max_rows);
    return COX_OK;
}

static void abandon(struct cox__instance *instance)
{
    instance->abandoned = true;
    for (uint32_t i = 0; i < instance->slot_count; i++)
        if (instance->slots[i].state == SLOT_RUNNING)
            instance->fake->running--;
}

static void op_instance_abandon(struct cox__backend *backend, struct cox__instance *instance)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    if (instance->abandoned)
        violate(fake, "instance of device %u abandoned twice", instance->device);
    note_instance(fake, FAKE_STEP_ABANDON, instance->device, instance->context == &instance->own, false);
    abandon(instance);
    pthread_mutex_unlock(&fake->lock);
}

static void leave_queue(struct device *device, const struct slot *slot)
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

/* A driver gives back at once what an abandoned instance held, but its device does not stop for that. */
static void op_instance_destroy(struct cox__backend *backend, struct cox__instance *instance, cox__ended_fn *ended,
                                void *ctx)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    const struct fake_fault *fault = instance->abandoned ? strike(fake, FAKE_DESTROY_BLOCKS, instance->device) : NULL;
    if (fault)
        take_time(fake, fault->delay_ns);
    note_instance(fake, FAKE_STEP_DESTROY, instance->device, instance->context == &instance->own, false);
    for (uint32_t i = 0; i < instance->slot_count; i++) {
        struct slot *slot = &instance->slots[i];
        if (!instance->abandoned && (slot->state == SLOT_QUEUED || slot->state == SLOT_RUNNING)) {
            violate(fake, "instance of device %u destroyed with slot %u under way", instance->device, i);
            abandon(instance);
        }
        if (slot->state == SLOT_RUNNING)
            continue;
        slot->state = SLOT_FREE;
        drop_events(fake, slot);
        leave_queue(&fake->devices[instance->device], slot);
    }
    fake->alive--;
    instance->ended = ended;
    instance->ended_ctx = ctx;
    instance->gone = true;
    reap(fake);
    pthread_mutex_unlock(&fake->lock);
}

/* Whether `writer` writes in host memory what `other` writes or reads there: the same memory, a binding of each. */
static bool collides(const struct cox__instance *writers, const struct work *writer, uint32_t of_writer,
                     const struct cox__instance *others, const struct work *other, uint32_t of_other)
{
    size_t first, bytes, at, count;
    bool any = false;
    for (uint32_t n = 0; writes_host(writers, writer, of_writer, n, &first, &bytes); n++) {
        any |= reads_host(others, other, of_other, first, first + bytes);
        for (uint32_t m = 0; writes_host(others, other, of_other, m, &at, &count); m++)
            any |= at < first + bytes && at + count > first;
    }
    return any;
}

/* Rows that a band writes or reads while one of another queue that has not ended writes them. What an abandoned
 * instance does cannot be waited for. */
static void check_overlap(struct fake *fake, const struct cox__instance *instance, const struct work *work)
{
    for (uint32_t u = 0; u < fake->instance_count; u++) {
        const struct cox__instance *theirs = fake->instances[u];
        if (theirs->context == instance->context || theirs->abandoned)
            continue;
        for (uint32_t l = 0; l < theirs->slot_count; l++) {
            const struct slot *other = &theirs->slots[l];
            if (other->state != SLOT_QUEUED && other->state != SLOT_RUNNING)
                continue;
            for (uint32_t i = 0; i < COX_BINDINGS_MAX * COX_BINDINGS_MAX; i++) {
                const uint32_t one = i / COX_BINDINGS_MAX, two = i % COX_BINDINGS_MAX;
                if (one < instance->pipeline.binding_count && two < theirs->pipeline.binding_count && work->mems[one] &&
                    work->mems[one] == other->work.mems[two] &&
                    (collides(instance, work, one, theirs, &other->work, two) ||
                     collides(theirs, &other->work, two, instance, work, one)))
                    violate(fake, "rows %u+%u of device %u overlap rows %u+%u under way on device %u", work->first_row,
                            work->rows, instance->device, other->work.first_row, other->work.rows, theirs->device);
            }
        }
    }
}

/* A frame's passes run one after the other, and hand over every row. */
static void check_passes(struct fake *fake, const struct cox__instance *instance, const struct work *work)
{
    const struct fake_handover_band band = handover_of(work);
    if (!work->of_frame)
        return;
    for (uint32_t u = 0; u < fake->instance_count; u++) {
        const struct cox__instance *theirs = fake->instances[u];
        for (uint32_t l = 0; l < theirs->slot_count && !theirs->abandoned; l++) {
            const struct slot *other = &theirs->slots[l];
            if ((other->state == SLOT_QUEUED || other->state == SLOT_RUNNING) && other->work.of_frame &&
                other->work.frame == work->frame && other->work.pass != work->pass)
                violate(fake, "rows %u+%u of pass %u begin on device %u while rows %u+%u of pass %u are under way",
                        work->first_row, work->rows, work->pass, instance->device, other->work.first_row,
                        other->work.rows, other->work.pass);
        }
    }
    const uint32_t missing = fake_handover_begin(&fake->handover, &instance->pipeline, &band);
    if (missing < COX_BINDINGS_MAX)
        violate(fake, "rows %u+%u of pass %u read rows of binding %u that no band of the frame has written",
                work->first_row, work->rows, work->pass, missing);
}

/* A job that copies out what the device keeps. */
static bool check_fetch(struct fake *fake, const struct cox__instance *instance, const struct work *work)
{
    const struct cox__job_range *range = &work->ranges[0];
    const bool possible = work->range_count == 1 && instance->resident >> range->binding & 1 && range->count &&
                          work->mems[range->binding] &&
                          (range->first + range->count) * instance->pipeline.bindings[range->binding].pitch_bytes <=
                              work->mems[range->binding]->bytes;
    if (!possible)
        violate(fake, "a fetch from device %u of what it cannot have", instance->device);
    else
        check_overlap(fake, instance, work);
    return possible;
}

/* Whether the band can be run at all. */
static bool check_job(struct fake *fake, const struct cox__instance *instance, const struct work *work)
{
    const struct cox__pass *pass = pass_of(instance, work);
    const uint32_t granule = granule_of(fake, pass, instance->device);
    const uint64_t end = (uint64_t)work->first_row + work->rows;
    bool possible = true;
    if (work->rows == 0 || end > pass->rows) {
        violate(fake, "band %u+%u is not inside the frame's %u rows", work->first_row, work->rows, pass->rows);
        return false;
    }
    if (work->fetch)
        return check_fetch(fake, instance, work);
    if (work->first_row % granule || (end % granule && end != pass->rows))
        violate(fake, "band %u+%u is not aligned to the granule %u of device %u", work->first_row, work->rows, granule,
                instance->device);
    if (work->rows > instance->max_rows[work->pass])
        violate(fake, "band of %u rows on device %u, which takes %u", work->rows, instance->device,
                instance->max_rows[work->pass]);
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        if (!cox__is_shared(&pass->bindings[i]))
            continue;
        size_t offset;
        uint32_t origin;
        const size_t bytes = binding_bytes(pass, i, work, &offset, &origin);
        if (offset % fake->devices[instance->device].script.align_bytes)
            violate(fake, "binding %u of band %u+%u begins at byte %zu, which device %u cannot align", i,
                    work->first_row, work->rows, offset, instance->device);
        if (!work->mems[i] || offset + bytes > work->mems[i]->bytes) {
            violate(fake, "band %u+%u reaches beyond the memory of binding %u", work->first_row, work->rows, i);
            possible = false;
        }
    }
    if (possible) {
        check_overlap(fake, instance, work);
        check_passes(fake, instance, work);
    }
    return possible;
}

/* What happens to the slot's band. */
static void draw_faults(struct fake *fake, struct slot *slot)
{
    const struct cox__instance *instance = slot->instance;
    struct device *device = &fake->devices[instance->device];
    const struct fake_fault *fault;
    double factor = 1.0 + device->script.jitter * noise(instance->device, device->jobs++);
    if ((fault = strike(fake, FAKE_SLOW, instance->device)))
        factor *= fault->factor;
    slot->kernel_ns = (uint64_t)((device->script.fixed_ns + device->script.ns_per_row * slot->work.rows) * factor +
                                 0.5);
    if (device->script.mode == COX_MODE_STAGED) {
        slot->in_ns = (uint64_t)(device->script.copy_in_ns_per_row * slot->work.rows * factor + 0.5);
        slot->out_ns = (uint64_t)(device->script.copy_out_ns_per_row * slot->work.rows * factor + 0.5);
    }
    slot->fails = strike(fake, FAKE_EVENT_FAILS, instance->device) != NULL;
    if ((fault = strike(fake, FAKE_FAILS_LATE, instance->device)))
        slot->fails_late_ns = max_ns(fault->delay_ns, 1);
    if ((fault = strike(fake, FAKE_DEVICE_DIES, instance->device))) {
        slot->dies = true;
        slot->dead_ns = fault->delay_ns;
    }
    if ((fault = strike(fake, FAKE_HANGS, instance->device))) {
        slot->hang_ns = fault->delay_ns;
        slot->hung = fault->delay_ns == UINT64_MAX;
    }
    if ((fault = strike(fake, FAKE_CORRUPTS, instance->device)))
        slot->corrupt_rows = fault->factor >= 1 ? (uint32_t)fault->factor : 1;
    if ((slot->strays = strike(fake, FAKE_STRAYS, instance->device) != NULL))
        slot->corrupt_rows = UINT32_MAX;
    if ((fault = strike(fake, FAKE_LIES_PROFILE, instance->device)))
        slot->lie_ns = fault->delay_ns ? fault->delay_ns : UINT64_MAX / 2;
    if ((fault = strike(fake, FAKE_END_EARLY, instance->device)))
        slot->early_end_ns = max_ns(fault->delay_ns, 1);
    slot->no_post = strike(fake, FAKE_NO_POST, instance->device) != NULL;
    slot->post_twice = strike(fake, FAKE_POST_TWICE, instance->device) != NULL;
    slot->post_early = strike(fake, FAKE_POST_EARLY, instance->device) != NULL;
    if ((fault = strike(fake, FAKE_POST_LATE, instance->device)))
        slot->post_late_ns = fault->delay_ns;
}

static struct work work_of(const struct cox__job *job, const struct cox__pipeline *pipeline)
{
    struct work work = {.slot = job->slot,
                        .band = job->band,
                        .pass = job->pass,
                        .first_row = job->first_row,
                        .rows = job->rows,
                        .preserve = job->preserve,
                        .fetch = job->fetch,
                        .resident = job->resident,
                        .copied_out = job->out,
                        .set = job->set,
                        .range_count = job->range_count,
                        .back_count = job->back_count,
                        .frame = job->frame,
                        .session = job->session};
    const struct cox__frame *frame = job->frame;
    if (frame) {
        work.of_frame = frame->kind == COX__FRAME_OF_APPLICATION && !job->preserve; /* else a check */
        work.index = frame->index;
    }
    memcpy(work.ranges, job->ranges, job->range_count * sizeof job->ranges[0]);
    memcpy(work.back, job->back, job->back_count * sizeof job->back[0]);
    memcpy(work.mems, job->mems, pipeline->binding_count * sizeof work.mems[0]);
    work.out = work.mems[0] ? work.mems[0]->data : NULL;
    for (uint32_t i = pipeline->binding_count; i-- > 0;)
        if (pipeline->passes[job->pass].bindings[i].access != COX_READ && work.mems[i])
            work.out = work.mems[i]->data;
    if (job->params)
        memcpy(work.params, job->params, pipeline->params_bytes);
    return work;
}

/* The band runs inside the call that enqueues it. */
static void run_inside(struct fake *fake, struct slot *slot)
{
    struct cox__instance *instance = slot->instance;
    pass_time(fake, add_ns(add_ns(clock_now(fake), slot->kernel_ns), slot->hung ? 0 : slot->hang_ns));
    if (slot->state != SLOT_QUEUED)
        return; /* killed meanwhile */
    instance->queued--;
    slot->state = SLOT_RUNNING;
    fake->running++;
    if (!slot->hung)
        handle_end(slot);
}

static cox_status op_job_submit(struct cox__backend *backend, struct cox__job *job)
{
    struct fake *fake = fake_of(backend);
    struct cox__instance *instance = job->instance;
    const struct work work = work_of(job, &instance->pipeline);
    struct cox__driver_call call;
    if (!driver_call(fake, instance, FAKE_SUBMIT_STUCK, &call)) { /* the band has failed, as polls will say */
        pthread_mutex_lock(&fake->lock);
        struct slot *slot = &instance->slots[job->slot];
        slot->job = job;
        slot->work = work;
        slot->state = SLOT_ENDED;
        slot->failed = true;
        pthread_mutex_unlock(&fake->lock);
        cox__driver_call_abandon(&call);
    }
    pthread_mutex_lock(&fake->lock);
    if (job->slot >= instance->slot_count || instance->abandoned) {
        violate(fake, "slot %u of %u on %s instance of device %u", job->slot, instance->slot_count,
                instance->abandoned ? "an abandoned" : "a", instance->device);
        pthread_mutex_unlock(&fake->lock);
        return COX_E_INVALID;
    }
    struct slot *slot = &instance->slots[job->slot];
    if (slot->state != SLOT_FREE)
        violate(fake, "slot %u of device %u is occupied by rows %u+%u", job->slot, instance->device,
                slot->work.first_row, slot->work.rows);
    const bool possible = check_job(fake, instance, &work);
    const struct fake_fault *fault = strike(fake, FAKE_SUBMIT_BLOCKS, instance->device);
    if (fault)
        take_time(fake, fault->delay_ns);

    drop_events(fake, slot); /* a post that never came in time */
    struct slot fresh = {
        .instance = instance, .job = job, .work = work, .number = fake->submits++, .submit_ns = clock_now(fake)};
    memcpy(fresh.partial, slot->partial, sizeof fresh.partial);
    *slot = fresh;
    job->failing = false;

    fault = strike(fake, FAKE_SUBMIT_FAILS, instance->device);
    if (fault || instance->dead || !possible) {
        const cox_status status = fault ? fault->status : COX_E_DEVICE_LOST;
        note(fake, FAKE_STEP_SUBMIT, instance->device, slot, true);
        slot->job = NULL;
        pthread_mutex_unlock(&fake->lock);
        return status;
    }
    draw_faults(fake, slot);
    note(fake, FAKE_STEP_SUBMIT, instance->device, slot, false);
    slot->state = SLOT_QUEUED;
    instance->queued++;
    if (fake->devices[instance->device].script.inside_submit && !fake->real_time)
        run_inside(fake, slot);
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return COX_OK;
}

static void start_band(struct fake *fake, struct device *device, struct slot *slot)
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
    const uint64_t start = max_ns(clock_now(fake), context->in_free);
    const uint64_t in_end = add_ns(start, slot->in_ns);
    const uint64_t kernel_start = max_ns(in_end, context->kernel_free);
    const uint64_t kernel_end = add_ns(add_ns(kernel_start, slot->kernel_ns), slot->hang_ns);
    const uint64_t out_end = add_ns(max_ns(kernel_end, context->out_free), slot->out_ns);
    context->in_free = in_end;
    context->kernel_free = kernel_end;
    context->out_free = out_end;
    if (out_end == UINT64_MAX)
        slot->hung = true;
    if (slot->post_early)
        push_event(fake, start, EVENT_START, slot);
    push_event(fake, out_end, EVENT_END, slot);
}

static void op_instance_flush(struct cox__backend *backend, struct cox__instance *instance)
{
    struct fake *fake = fake_of(backend);
    struct device *device = &fake->devices[instance->device];
    struct cox__driver_call call;
    if (!driver_call(fake, instance, FAKE_FLUSH_STUCK, &call))
        cox__driver_call_abandon(&call);
    pthread_mutex_lock(&fake->lock);
    note(fake, FAKE_STEP_FLUSH, instance->device, NULL, false);
    if (instance->abandoned)
        violate(fake, "an abandoned instance of device %u was flushed", instance->device);
    instance->unsettled = false;
    while (instance->queued > 0) {
        struct slot *next = NULL;
        for (uint32_t i = 0; i < instance->slot_count; i++) {
            struct slot *slot = &instance->slots[i];
            if (slot->state == SLOT_QUEUED && (!next || slot->number < next->number))
                next = slot;
        }
        start_band(fake, device, next);
    }
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

static void check_flushed(struct fake *fake, const char *what)
{
    for (uint32_t u = 0; u < fake->instance_count; u++)
        if (fake->instances[u]->queued > 0 && !fake->instances[u]->abandoned && !fake->instances[u]->unsettled)
            violate(fake, "%s before device %u was flushed", what, fake->instances[u]->device);
}

static enum cox__job_state op_job_poll(struct cox__backend *backend, struct cox__job *job)
{
    struct fake *fake = fake_of(backend);
    struct slot *slot = &job->instance->slots[job->slot];
    enum cox__job_state state = COX__JOB_RUNNING;
    struct cox__driver_call call;
    if (!driver_call(fake, job->instance, FAKE_POLL_STUCK, &call))
        cox__driver_call_abandon(&call);
    pthread_mutex_lock(&fake->lock);
    check_flushed(fake, "polled");
    if (slot->job != job || slot->state == SLOT_FREE || job->instance->abandoned) {
        violate(fake, "polled a job that is %s (device %u, slot %u)",
                job->instance->abandoned ? "abandoned" : "not under way", job->instance->device, job->slot);
        pthread_mutex_unlock(&fake->lock);
        return COX__JOB_FAILED;
    }
    note(fake, FAKE_STEP_POLL, job->instance->device, slot, slot->failed);
    if (slot->state == SLOT_ENDED) {
        state = slot->failed ? COX__JOB_FAILED : COX__JOB_DONE;
        if (atomic_load(&job->end_ns) == 0)
            atomic_store(&job->end_ns, clock_now(fake)); /* not posted: the poll is the observation */
        slot->state = SLOT_FREE;
    }
    job->failing = state == COX__JOB_RUNNING && slot->failing;
    pthread_mutex_unlock(&fake->lock);
    return state;
}

static const void *op_job_partial(struct cox__backend *backend, struct cox__job *job, uint32_t binding)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    const struct slot *slot = &job->instance->slots[job->slot];
    if (slot->job != job || slot->state != SLOT_FREE || slot->failed || job->instance->abandoned)
        violate(fake, "partial of binding %u asked for before its band was done, or after its slot was reused",
                binding);
    const void *partial = slot->partial[binding];
    pthread_mutex_unlock(&fake->lock);
    return partial;
}

static uint64_t op_now_ns(struct cox__backend *backend)
{
    return clock_now(fake_of(backend));
}

static bool op_advance(struct cox__backend *backend, uint64_t deadline_ns)
{
    struct fake *fake = fake_of(backend);
    bool moved = false;
    pthread_mutex_lock(&fake->lock);
    check_flushed(fake, "waited");
    if (!fake->held) {
        const uint32_t next = earliest(fake);
        if (next < fake->event_count && fake->events[next].time_ns <= deadline_ns) {
            note(fake, FAKE_STEP_WAIT, 0, NULL, false);
            handle_event(fake, take_event(fake, next));
            moved = true;
        } else if (deadline_ns != UINT64_MAX) {
            note(fake, FAKE_STEP_WAIT, 0, NULL, false);
            atomic_store(&fake->clock_ns, max_ns(deadline_ns, atomic_load(&fake->clock_ns)));
            moved = true;
        }
    }
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return moved;
}

/* ---- real time ---- */

struct worker {
    struct fake *fake;
    struct device *device;
};

/* The band that ends next: of each context the first one counts. NULL if none will. */
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
            slot->due_ns = add_ns(clock_now(fake), slot->in_ns + slot->kernel_ns + slot->out_ns + slot->hang_ns);
            if (slot->post_early)
                post(slot);
        }
        if (!best || slot->due_ns < best->due_ns)
            best = slot;
    }
    return best;
}

/* ThreadSanitizer sees what a device does to memory like any thread's work, which finds a host that does not wait for
 * the device. The instance of a band that takes long may have been abandoned; then the band races with the host for
 * rows that both give the same contents. */
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
    execute(slot, true);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#else
static void execute_unseen(struct slot *slot)
{
    execute(slot, true);
}
#endif

/* A band's time has come. Its kernel runs without the lock: no other thread ends it, since only this thread kills the
 * device, and its instance stays until the band has ended. */
static void finish_band(struct fake *fake, struct device *device, struct slot *slot)
{
    if (!slot->dies && begin_failing(slot)) {
        slot->due_ns = add_ns(clock_now(fake), slot->fails_late_ns);
        return;
    }
    leave_queue(device, slot);
    if (slot->dies) {
        kill_device(fake, slot->instance->device, slot->dead_ns);
        return;
    }
    check_memory(slot);
    /* What the band left in its rows may be copied while that happens. */
    const bool abandoned = slot->instance->abandoned;
    pthread_mutex_unlock(&fake->lock);
    if (abandoned)
        execute_unseen(slot);
    else
        execute(slot, slot->fails);
    pthread_mutex_lock(&fake->lock);
    end_band(slot, slot->fails);
}

static void *serve(void *data)
{
    struct fake *fake = ((struct worker *)data)->fake;
    struct device *device = ((struct worker *)data)->device;
    free(data);
    pthread_mutex_lock(&fake->lock);
    while (!fake->stopping) {
        struct slot *slot = next_due(fake, device);
        if (!slot) {
            pthread_cond_wait(&device->wake, &fake->lock);
            continue;
        }
        if (clock_now(fake) < slot->due_ns) {
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

/* ---- life ---- */

static void op_destroy(struct cox__backend *backend)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    if (fake->alive > 0)
        violate(fake, "backend destroyed with %u objects alive", fake->alive);
    if (fake->blocked > 0)
        violate(fake, "backend destroyed while %u calls block", fake->blocked);
    fake->stopping = true;
    for (uint32_t i = 0; i < fake->device_count; i++)
        pthread_cond_broadcast(&fake->devices[i].wake);
    pthread_mutex_unlock(&fake->lock);
    if (fake->real_time)
        for (uint32_t i = 0; i < fake->device_count; i++)
            pthread_join(fake->devices[i].thread, NULL);
    fake->destroyed = true;
}

static const char *op_instance_may_write(struct cox__backend *backend, const struct cox__instance *instance,
                                         uint32_t pass, uint32_t stage, uint32_t arg)
{
    (void)pass;
    (void)stage;
    return fake_of(backend)->devices[instance->device].script.writable_args >> arg & 1 ? "" : NULL;
}

#define FAKE_OPS                                                                                                  \
    .destroy = op_destroy, .device_count = op_device_count, .device_info = op_device_info,                        \
    .mem_create = op_mem_create, .mem_destroy = op_mem_destroy, .mem_link = op_mem_link, .mem_data = op_mem_data, \
    .mem_info = op_mem_info, .mem_abandon = op_mem_abandon, .instance_abandon = op_instance_abandon,              \
    .instance_isolate = op_instance_isolate, .instance_create = op_instance_create,                               \
    .instance_destroy = op_instance_destroy, .job_submit = op_job_submit, .instance_flush = op_instance_flush,    \
    .job_poll = op_job_poll, .job_partial = op_job_partial, .now_ns = op_now_ns,                                  \
    .instance_resident = op_instance_resident, .instance_may_write = op_instance_may_write

static const struct cox__backend_ops virtual_ops = {FAKE_OPS, .advance = op_advance};
static const struct cox__backend_ops other_ops = {FAKE_OPS};

struct fake *fake_new(const struct fake_params *params)
{
    struct fake *fake = must(calloc(1, sizeof *fake));
    pthread_mutex_init(&fake->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&fake->changed, &monotonic);
    fake->real_time = params->real_time;
    fake->held = params->held;
    fake->base.ops = params->real_time || params->driven ? &other_ops : &virtual_ops;
    atomic_init(&fake->clock_ns, 1000000000u); /* not 0, which means "unknown" in reports */
    fake->kernel_count = params->kernel_count;
    memcpy(fake->kernels, params->kernels, sizeof fake->kernels);
    fake->device_count = params->device_count;
    for (uint32_t i = 0; i < params->device_count; i++) {
        struct fake_device *script = &fake->devices[i].script;
        *script = params->devices[i];
        script->type = script->type ? script->type : COX_DEVICE_CPU;
        script->mode = script->mode ? script->mode : COX_MODE_MAPPED;
        script->align_bytes = script->align_bytes ? script->align_bytes : 4;
        script->compute_units = script->compute_units ? script->compute_units : 4;
        pthread_cond_init(&fake->devices[i].wake, &monotonic);
    }
    pthread_condattr_destroy(&monotonic);
    return fake;
}

void fake_free(struct fake **fake)
{
    if (!*fake)
        return;
    if ((*fake)->made && !(*fake)->destroyed) { /* a call still blocks in it */
        cox__leak(*fake);
        *fake = NULL;
        return;
    }
    for (uint32_t u = 0; u < (*fake)->instance_count; u++)
        free_instance((*fake)->instances[u]);
    for (struct cox__mem *mem = (*fake)->kept, *next; mem; mem = next) {
        next = mem->next;
        free_mem(mem);
    }
    for (uint32_t i = 0; i < (*fake)->device_count; i++)
        pthread_cond_destroy(&(*fake)->devices[i].wake);
    pthread_cond_destroy(&(*fake)->changed);
    pthread_mutex_destroy(&(*fake)->lock);
    fake_handover_free(&(*fake)->handover);
    free((*fake)->record);
    free(*fake);
    *fake = NULL;
}

cox_status fake_make(void *user, struct cox__post post_fn, struct cox__log *log, struct cox__backend **out)
{
    struct fake *fake = user;
    fake->post = post_fn;
    fake->log = log;
    fake->made = true;
    if (fake->real_time)
        for (uint32_t i = 0; i < fake->device_count; i++) {
            struct worker *worker = must(malloc(sizeof *worker));
            *worker = (struct worker){fake, &fake->devices[i]};
            if (pthread_create(&fake->devices[i].thread, NULL, serve, worker) != 0)
                abort();
        }
    *out = &fake->base;
    return COX_OK;
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
    if (runtime) /* its loop may have been told that nothing would ever happen */
        cox__loop_wake(runtime->loop);
}

bool fake_await_gone(struct fake *fake)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (uint32_t tries = 0; fake_alive(fake) > 0 && tries < 10000; tries++)
        nanosleep(&pause, NULL);
    return fake_alive(fake) == 0;
}

bool fake_await_running(struct fake *fake, uint32_t bands)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 10;
    pthread_mutex_lock(&fake->lock);
    while (fake->running < bands)
        if (pthread_cond_timedwait(&fake->changed, &fake->lock, &until) == ETIMEDOUT)
            break;
    const bool reached = fake->running >= bands;
    pthread_mutex_unlock(&fake->lock);
    return reached;
}

bool fake_await_blocked(struct fake *fake, uint32_t calls)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 10;
    pthread_mutex_lock(&fake->lock);
    while (fake->blocked < calls)
        if (pthread_cond_timedwait(&fake->changed, &fake->lock, &until) == ETIMEDOUT)
            break;
    const bool reached = fake->blocked >= calls;
    pthread_mutex_unlock(&fake->lock);
    return reached;
}

uint32_t fake_blocked(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    const uint32_t blocked = fake->blocked;
    pthread_mutex_unlock(&fake->lock);
    return blocked;
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
    pthread_mutex_lock(&fake->lock);
    const uint32_t abandoned = fake->abandoned;
    pthread_mutex_unlock(&fake->lock);
    return abandoned;
}

uint64_t fake_now(struct fake *fake)
{
    return clock_now(fake);
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
    if (!fake->blocked) /* else the thread that would have to flush it is stuck */
        check_flushed(fake, "waited");
    pass_time(fake, until_ns);
    pthread_mutex_unlock(&fake->lock);
}

bool fake_at_work(struct fake *fake, const struct cox__mem *mem)
{
    bool found = false;
    pthread_mutex_lock(&fake->lock);
    for (uint32_t u = 0; u < fake->instance_count; u++)
        found |= !fake->instances[u]->abandoned && works_on(fake->instances[u], mem);
    pthread_mutex_unlock(&fake->lock);
    return found;
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

uint32_t fake_violations(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    const uint32_t violations = fake->violations;
    pthread_mutex_unlock(&fake->lock);
    return violations;
}

const char *fake_violation(struct fake *fake)
{
    return fake->violation;
}

uint32_t fake_alive(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    const uint32_t alive = fake->alive;
    pthread_mutex_unlock(&fake->lock);
    return alive;
}
