/* How time works here.
 *
 * Virtual clock: job_submit queues a band, unit_flush lays the queued bands out on the device's three timelines (copy-in,
 * kernel, copy-out) and puts their ends into an event list; advance() takes the earliest event, sets the clock to it,
 * runs the kernel and posts. So a kernel runs when its band *ends*: an input overwritten too early or a
 * buffer freed too early shows in the results. A device that runs inside submit moves the clock in job_submit.
 *
 * Real clock: unit_flush hands the bands to the device's thread, which sleeps, runs the kernel and posts.
 *
 * One mutex guards everything. The state of a band changes and its post is made under one hold of it, so that poll
 * cannot report the end of a band whose post is still to come, unless the script asks for that.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fake_backend.h"
#include "log.h"
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EVENTS_MAX = 1024, UNITS_MAX = 256, FAULTS_MAX = 64, LANES_MAX = 256 };

enum lane_state { LANE_FREE = 0, LANE_QUEUED, LANE_RUNNING, LANE_ENDED };

struct lane {
    struct cox__unit *unit;
    struct cox__job *job;
    enum lane_state state;
    bool failed;
    bool hung;
    bool ran; /* already executed inside submit */
    bool dies;
    bool fails;
    bool no_post;
    bool post_twice;
    bool post_early;
    uint64_t post_late_ns;
    uint64_t hang_ns;
    uint64_t kernel_ns;
    uint64_t in_ns;
    uint64_t out_ns;
    uint32_t number;   /* order of submission, for queues */
    struct lane *next; /* real time: behind it in the device's queue */
    void *partial[COX_BINDINGS_MAX];
};

struct cox__unit {
    struct fake *fake;
    uint32_t device;
    const struct cox__pipeline *pipeline;
    fake_kernel_fn *kernels[COX_STAGES_MAX];
    uint32_t max_rows;
    uint32_t lane_count;
    uint32_t queued;
    struct lane lanes[LANES_MAX];
};

struct cox__mem {
    struct fake *fake;
    unsigned char *data;
    size_t bytes;
    bool wrapped;
};

enum event_kind { EVENT_START, EVENT_END, EVENT_POST };

struct event {
    uint64_t time_ns;
    uint64_t order;
    enum event_kind kind;
    struct lane *lane;
};

struct device {
    struct fake_device script;
    uint64_t in_free;
    uint64_t kernel_free;
    uint64_t out_free;
    uint64_t jobs;
    bool dead;
    /* real time */
    pthread_t thread;
    pthread_cond_t wake;
    struct lane *first, *last;
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
    bool late_overlap;
    bool held;
    bool made;
    bool stopping;
    _Atomic uint64_t clock_ns;
    uint64_t order;
    uint32_t submits;
    uint32_t running; /* flushed and not ended */
    uint32_t alive;

    uint32_t event_count;
    struct event events[EVENTS_MAX];
    uint32_t unit_count;
    struct cox__unit *units[UNITS_MAX];
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
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void note(struct fake *fake, enum fake_step step, uint32_t device, const struct lane *lane, bool failed)
{
    if (fake->record_count == fake->record_room) {
        fake->record_room = fake->record_room ? 2 * fake->record_room : 1024;
        fake->record = must(realloc(fake->record, fake->record_room * sizeof *fake->record));
    }
    struct fake_record *record = &fake->record[fake->record_count++];
    *record = (struct fake_record){.step = step, .time_ns = clock_now(fake), .device = device, .failed = failed};
    if (lane && lane->job) {
        const struct cox__job *job = lane->job;
        record->lane = job->lane;
        record->first_row = job->first_row;
        record->rows = job->rows;
        record->band = job->band;
        record->slot = job->slot;
        record->session = job->session;
    }
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

/* ---- running a band ---- */

static size_t binding_bytes(const struct cox__pipeline *pipeline, uint32_t index, const struct cox__job *job,
                            size_t *offset, uint32_t *origin)
{
    const struct cox_binding *binding = &pipeline->bindings[index];
    *offset = 0;
    *origin = 0;
    if (binding->contract == COX_WHOLE || binding->contract == COX_REDUCE)
        return binding->bytes;
    uint32_t first, count;
    cox__binding_rows(pipeline, index, job->first_row, job->rows, &first, &count);
    *offset = (size_t)first * binding->pitch_bytes;
    *origin = first;
    return (size_t)count * binding->pitch_bytes;
}

static bool written(const struct cox_binding *binding)
{
    return binding->contract == COX_ROWS && binding->access != COX_READ;
}

static void run_kernels(struct lane *lane)
{
    struct cox__unit *unit = lane->unit;
    const struct cox__pipeline *pipeline = unit->pipeline;
    const struct cox__job *job = lane->job;
    const bool staged = unit->fake->devices[unit->device].script.mode == COX_MODE_STAGED;
    struct fake_args args = {
        .pipeline = pipeline,
        .device = unit->device,
        .first_row = job->first_row,
        .rows = job->rows,
        .frame_rows = pipeline->rows,
        .params = job->params,
    };
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        size_t offset;
        const size_t bytes = binding_bytes(pipeline, i, job, &offset, &args.origin[i]);
        if (binding->contract == COX_REDUCE) {
            args.data[i] = memset(lane->partial[i], 0, bytes);
            continue;
        }
        args.data[i] = job->mems[i]->data + offset;
        if (staged) { /* memory of its own, exactly as long as the band, so that sanitizers see an overrun */
            unsigned char *copy = must(malloc(bytes));
            if (binding->access == COX_WRITE)
                memset(copy, 0xa5, bytes);
            else
                memcpy(copy, args.data[i], bytes);
            args.data[i] = copy;
        }
    }
    for (uint32_t i = 0; i < pipeline->stage_count; i++) {
        args.stage = &pipeline->stages[i];
        unit->kernels[i](&args);
    }
    if (!staged)
        return;
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        if (binding->contract == COX_REDUCE)
            continue;
        size_t offset;
        uint32_t origin;
        const size_t bytes = binding_bytes(pipeline, i, job, &offset, &origin);
        if (written(binding))
            memcpy(job->mems[i]->data + offset, args.data[i], bytes);
        free(args.data[i]);
    }
}

static void leave_garbage(struct lane *lane)
{
    const struct cox__pipeline *pipeline = lane->unit->pipeline;
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        size_t offset;
        uint32_t origin;
        const size_t bytes = binding_bytes(pipeline, i, lane->job, &offset, &origin);
        if (written(&pipeline->bindings[i]))
            memset(lane->job->mems[i]->data + offset, 0xdb, bytes);
        else if (pipeline->bindings[i].contract == COX_REDUCE)
            memset(lane->partial[i], 0xdb, bytes);
    }
}

static void push_event(struct fake *fake, uint64_t time_ns, enum event_kind kind, struct lane *lane)
{
    if (time_ns == UINT64_MAX)
        return; /* never */
    if (fake->event_count == EVENTS_MAX)
        abort();
    fake->events[fake->event_count++] = (struct event){time_ns, fake->order++, kind, lane};
}

static void post(struct lane *lane)
{
    struct fake *fake = lane->unit->fake;
    note(fake, FAKE_STEP_POST, lane->unit->device, lane, false);
    atomic_store(&lane->job->end_ns, clock_now(fake));
    fake->post.post(fake->post.ctx, lane->job);
}

/* The band's last step: results, state, post. Called with the lock held. */
static void end_band(struct lane *lane, bool failed)
{
    struct cox__unit *unit = lane->unit;
    struct fake *fake = unit->fake;
    struct device *device = &fake->devices[unit->device];
    if (failed)
        leave_garbage(lane);
    else if (!lane->ran)
        run_kernels(lane);
    const bool profile = !failed && !device->script.no_profile;
    lane->job->kernel_ns = profile ? lane->kernel_ns : 0;
    lane->job->copy_in_ns = profile ? lane->in_ns : 0;
    lane->job->copy_out_ns = profile ? lane->out_ns : 0;
    lane->failed = failed;
    if (lane->state == LANE_RUNNING)
        fake->running--;
    lane->state = LANE_ENDED;
    note(fake, FAKE_STEP_END, unit->device, lane, failed);
    if (lane->no_post)
        return;
    if (lane->post_late_ns > 0) {
        push_event(fake, add_ns(clock_now(fake), lane->post_late_ns), EVENT_POST, lane);
        return;
    }
    post(lane);
    if (lane->post_twice)
        post(lane);
}

static void drop_events(struct fake *fake, const struct lane *lane)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < fake->event_count; i++)
        if (fake->events[i].lane != lane)
            fake->events[kept++] = fake->events[i];
    fake->event_count = kept;
}

static void kill_device(struct fake *fake, uint32_t index)
{
    struct device *device = &fake->devices[index];
    device->dead = true;
    device->first = device->last = NULL;
    for (uint32_t u = 0; u < fake->unit_count; u++) {
        struct cox__unit *unit = fake->units[u];
        if (unit->device != index)
            continue;
        for (uint32_t i = 0; i < unit->lane_count; i++) {
            struct lane *lane = &unit->lanes[i];
            if (lane->state == LANE_QUEUED) {
                unit->queued--;
                lane->state = LANE_RUNNING;
                fake->running++;
            }
            if (lane->state == LANE_RUNNING) {
                drop_events(fake, lane);
                end_band(lane, true);
            }
        }
    }
}

static void handle_end(struct lane *lane)
{
    if (lane->dies)
        kill_device(lane->unit->fake, lane->unit->device);
    else
        end_band(lane, lane->fails);
}

static void handle_event(struct fake *fake, struct event event)
{
    if (event.time_ns > atomic_load(&fake->clock_ns) && !fake->real_time)
        atomic_store(&fake->clock_ns, event.time_ns);
    switch (event.kind) {
    case EVENT_START:
    case EVENT_POST:
        post(event.lane);
        break;
    case EVENT_END:
        handle_end(event.lane);
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
    };
    if (script->name)
        snprintf(info->name, sizeof info->name, "%s", script->name);
    else
        snprintf(info->name, sizeof info->name, "fake %u", index);
    snprintf(info->platform, sizeof info->platform, "fake platform");
    snprintf(info->driver, sizeof info->driver, "%s", script->driver ? script->driver : "1");
    snprintf(info->id, sizeof info->id, "fake:%u", index);
}

static uint32_t granule_of(struct fake *fake, const struct cox__pipeline *pipeline, uint32_t device)
{
    struct cox_device_info info;
    op_device_info(&fake->base, device, &info);
    return cox__pipeline_granule(pipeline, device, &info);
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

static void op_mem_destroy(struct cox__backend *backend, struct cox__mem *mem)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    for (uint32_t u = 0; u < fake->unit_count; u++)
        for (uint32_t i = 0; i < fake->units[u]->lane_count; i++) {
            const struct lane *lane = &fake->units[u]->lanes[i];
            if ((lane->state != LANE_QUEUED && lane->state != LANE_RUNNING) || lane->hung)
                continue;
            for (uint32_t b = 0; b < fake->units[u]->pipeline->binding_count; b++)
                if (lane->job->mems[b] == mem)
                    violate(fake, "memory destroyed while device %u works on it", fake->units[u]->device);
        }
    fake->alive--;
    pthread_mutex_unlock(&fake->lock);
    if (!mem->wrapped)
        free(mem->data);
    free(mem);
}

/* The fake's own record of what is alive forgets it; the memory stays where a job that hangs may reach it. */
static void op_mem_abandon(struct cox__backend *backend, struct cox__mem *mem)
{
    struct fake *fake = fake_of(backend);
    (void)mem;
    pthread_mutex_lock(&fake->lock);
    fake->alive--;
    pthread_mutex_unlock(&fake->lock);
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

static cox_status op_unit_create(struct cox__backend *backend, uint32_t device, const struct cox__pipeline *pipeline,
                                 uint32_t lanes, bool fresh, struct cox__unit **out, uint32_t *max_rows)
{
    struct fake *fake = fake_of(backend);
    (void)fresh;
    const struct fake_device *script = &fake->devices[device].script;
    *out = NULL;
    pthread_mutex_lock(&fake->lock);
    const struct fake_fault *fault = strike(fake, FAKE_UNIT_FAILS, device);
    const cox_status status = fault ? fault->status : fake->devices[device].dead ? COX_E_DEVICE_LOST : COX_OK;
    if (lanes == 0 || lanes > LANES_MAX)
        violate(fake, "unit of device %u created with %u lanes", device, lanes);
    if (pipeline->granule == 0 ||
        (pipeline->granule != pipeline->rows && pipeline->granule % granule_of(fake, pipeline, device)))
        violate(fake, "granule %u does not suit device %u", pipeline->granule, device);
    pthread_mutex_unlock(&fake->lock);
    if (status != COX_OK)
        return status;

    struct cox__unit *unit = must(calloc(1, sizeof *unit));
    unit->fake = fake;
    unit->device = device;
    unit->pipeline = pipeline;
    unit->lane_count = lanes;
    unit->max_rows = script->max_rows && script->max_rows < pipeline->rows ? script->max_rows : pipeline->rows;
    for (uint32_t i = 0; i < pipeline->stage_count; i++) {
        const struct cox_stage *stage = &pipeline->stages[i];
        unit->kernels[i] = cox__stage_variant(stage, device, script->type) ? find_kernel(fake, stage->kernel) : NULL;
        if (!unit->kernels[i]) {
            cox__log(fake->log, COX_LOG_WARN, "fake %u: kernel %s does not build", device, stage->kernel);
            free(unit);
            return COX_E_BUILD;
        }
    }
    for (uint32_t l = 0; l < lanes; l++) {
        unit->lanes[l].unit = unit;
        for (uint32_t i = 0; i < pipeline->binding_count; i++)
            if (pipeline->bindings[i].contract == COX_REDUCE)
                unit->lanes[l].partial[i] = must(malloc(pipeline->bindings[i].bytes));
    }
    pthread_mutex_lock(&fake->lock);
    if (fake->unit_count == UNITS_MAX)
        abort();
    fake->units[fake->unit_count++] = unit;
    fake->alive++;
    pthread_mutex_unlock(&fake->lock);
    *out = unit;
    *max_rows = unit->max_rows;
    return COX_OK;
}

static void op_unit_abandon(struct cox__backend *backend, struct cox__unit *unit)
{
    (void)backend;
    (void)unit;
}

static void op_unit_destroy(struct cox__backend *backend, struct cox__unit *unit)
{
    struct fake *fake = fake_of(backend);
    struct device *device = &fake->devices[unit->device];
    pthread_mutex_lock(&fake->lock);
    for (uint32_t i = 0; i < unit->lane_count; i++) {
        struct lane *lane = &unit->lanes[i];
        if ((lane->state == LANE_QUEUED || lane->state == LANE_RUNNING) && !lane->hung && !device->dead)
            violate(fake, "unit of device %u destroyed with lane %u under way", unit->device, i);
        if (lane->state == LANE_RUNNING)
            fake->running--;
        drop_events(fake, lane);
        for (struct lane **at = &device->first; *at;) {
            if (*at == lane)
                *at = lane->next;
            else
                at = &(*at)->next;
        }
        for (uint32_t b = 0; b < COX_BINDINGS_MAX; b++)
            free(lane->partial[b]);
    }
    device->last = NULL;
    for (struct lane *lane = device->first; lane; lane = lane->next)
        device->last = lane;
    for (uint32_t u = 0; u < fake->unit_count; u++)
        if (fake->units[u] == unit) {
            fake->units[u] = fake->units[--fake->unit_count];
            break;
        }
    fake->alive--;
    pthread_mutex_unlock(&fake->lock);
    free(unit);
}

static void check_overlap(struct fake *fake, const struct cox__unit *unit, const struct cox__job *job)
{
    const struct cox__pipeline *pipeline = unit->pipeline;
    for (uint32_t u = 0; u < fake->unit_count; u++)
        for (uint32_t l = 0; l < fake->units[u]->lane_count; l++) {
            const struct lane *other = &fake->units[u]->lanes[l];
            if (other->job == job || (other->state != LANE_QUEUED && other->state != LANE_RUNNING))
                continue;
            if (fake->units[u]->device == unit->device)
                continue; /* one in-order queue */
            for (uint32_t a = 0; a < pipeline->binding_count; a++)
                for (uint32_t b = 0; b < fake->units[u]->pipeline->binding_count; b++) {
                    const struct cox_binding *mine = &pipeline->bindings[a];
                    const struct cox_binding *theirs = &fake->units[u]->pipeline->bindings[b];
                    if (job->mems[a] != other->job->mems[b] || (!written(mine) && !written(theirs)) ||
                        mine->contract == COX_REDUCE || theirs->contract == COX_REDUCE)
                        continue;
                    size_t my_offset, their_offset;
                    uint32_t origin;
                    const size_t my_bytes = binding_bytes(pipeline, a, job, &my_offset, &origin);
                    const size_t their_bytes = binding_bytes(fake->units[u]->pipeline, b, other->job, &their_offset,
                                                             &origin);
                    if (my_offset < their_offset + their_bytes && their_offset < my_offset + my_bytes)
                        violate(fake, "rows %u+%u of device %u overlap rows %u+%u under way on device %u",
                                job->first_row, job->rows, unit->device, other->job->first_row, other->job->rows,
                                fake->units[u]->device);
                }
        }
}

static void check_job(struct fake *fake, const struct cox__job *job)
{
    const struct cox__unit *unit = job->unit;
    const struct cox__pipeline *pipeline = unit->pipeline;
    const uint32_t granule = granule_of(fake, pipeline, unit->device);
    const uint64_t end = (uint64_t)job->first_row + job->rows;
    if (job->rows == 0 || end > pipeline->rows)
        violate(fake, "band %u+%u is not inside the frame's %u rows", job->first_row, job->rows, pipeline->rows);
    if (job->first_row % granule || (end % granule && end != pipeline->rows))
        violate(fake, "band %u+%u is not aligned to the granule %u of device %u", job->first_row, job->rows, granule,
                unit->device);
    if (job->rows > unit->max_rows)
        violate(fake, "band of %u rows on device %u, which takes %u", job->rows, unit->device, unit->max_rows);
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        size_t offset;
        uint32_t origin;
        const size_t bytes = binding_bytes(pipeline, i, job, &offset, &origin);
        if (offset % fake->devices[unit->device].script.align_bytes)
            violate(fake, "binding %u of band %u+%u begins at byte %zu, which device %u cannot align", i,
                    job->first_row, job->rows, offset, unit->device);
        if (!job->mems[i])
            violate(fake, "binding %u of band %u+%u has no memory", i, job->first_row, job->rows);
        else if (offset + bytes > job->mems[i]->bytes)
            violate(fake, "band %u+%u reaches beyond the memory of binding %u", job->first_row, job->rows, i);
    }
    if (!fake->late_overlap)
        check_overlap(fake, unit, job);
}

static cox_status op_job_submit(struct cox__backend *backend, struct cox__job *job)
{
    struct fake *fake = fake_of(backend);
    struct cox__unit *unit = job->unit;
    struct device *device = &fake->devices[unit->device];
    pthread_mutex_lock(&fake->lock);
    if (job->lane >= unit->lane_count) {
        violate(fake, "lane %u of %u on device %u", job->lane, unit->lane_count, unit->device);
        pthread_mutex_unlock(&fake->lock);
        return COX_E_INVALID;
    }
    struct lane *lane = &unit->lanes[job->lane];
    if (lane->state != LANE_FREE)
        violate(fake, "lane %u of device %u is occupied by rows %u+%u", job->lane, unit->device, lane->job->first_row,
                lane->job->rows);
    check_job(fake, job);

    drop_events(fake, lane); /* a post that never came in time */
    struct lane fresh = {.unit = unit, .job = job, .number = fake->submits++};
    memcpy(fresh.partial, lane->partial, sizeof fresh.partial);
    *lane = fresh;

    const struct fake_fault *fault = strike(fake, FAKE_SUBMIT_FAILS, unit->device);
    if (fault || device->dead) {
        const cox_status status = fault ? fault->status : COX_E_DEVICE_LOST;
        note(fake, FAKE_STEP_SUBMIT, unit->device, lane, true);
        lane->job = NULL;
        pthread_mutex_unlock(&fake->lock);
        return status;
    }
    double factor = 1.0 + device->script.jitter * noise(unit->device, device->jobs++);
    if ((fault = strike(fake, FAKE_SLOW, unit->device)))
        factor *= fault->factor;
    lane->kernel_ns = (uint64_t)((device->script.fixed_ns + device->script.ns_per_row * job->rows) * factor + 0.5);
    if (device->script.mode == COX_MODE_STAGED) {
        lane->in_ns = (uint64_t)(device->script.copy_in_ns_per_row * job->rows * factor + 0.5);
        lane->out_ns = (uint64_t)(device->script.copy_out_ns_per_row * job->rows * factor + 0.5);
    }
    lane->fails = strike(fake, FAKE_EVENT_FAILS, unit->device) != NULL;
    lane->dies = strike(fake, FAKE_DEVICE_DIES, unit->device) != NULL;
    if ((fault = strike(fake, FAKE_HANGS, unit->device))) {
        lane->hang_ns = fault->delay_ns;
        lane->hung = fault->delay_ns == UINT64_MAX;
    }
    lane->no_post = strike(fake, FAKE_NO_POST, unit->device) != NULL;
    lane->post_twice = strike(fake, FAKE_POST_TWICE, unit->device) != NULL;
    lane->post_early = strike(fake, FAKE_POST_EARLY, unit->device) != NULL;
    if ((fault = strike(fake, FAKE_POST_LATE, unit->device)))
        lane->post_late_ns = fault->delay_ns;

    note(fake, FAKE_STEP_SUBMIT, unit->device, lane, false);
    lane->state = LANE_QUEUED;
    unit->queued++;
    if (device->script.inside_submit && !fake->real_time) {
        const uint64_t end = add_ns(clock_now(fake), lane->kernel_ns);
        lane->ran = true;
        if (!lane->fails && !lane->dies)
            run_kernels(lane);
        pass_time(fake, end);
        if (lane->state == LANE_QUEUED) { /* not killed meanwhile */
            unit->queued--;
            lane->state = LANE_RUNNING;
            fake->running++;
            handle_end(lane);
        }
    }
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return COX_OK;
}

static void start_band(struct fake *fake, struct device *device, struct lane *lane)
{
    lane->unit->queued--;
    lane->state = LANE_RUNNING;
    fake->running++;
    if (fake->real_time) {
        lane->next = NULL;
        if (device->last)
            device->last->next = lane;
        else
            device->first = lane;
        device->last = lane;
        pthread_cond_signal(&device->wake);
        return;
    }
    const uint64_t start = max_ns(clock_now(fake), device->in_free);
    const uint64_t in_end = add_ns(start, lane->in_ns);
    const uint64_t kernel_start = max_ns(in_end, device->kernel_free);
    const uint64_t kernel_end = add_ns(add_ns(kernel_start, lane->kernel_ns), lane->hang_ns);
    const uint64_t out_end = add_ns(max_ns(kernel_end, device->out_free), lane->out_ns);
    device->in_free = in_end;
    device->kernel_free = kernel_end;
    device->out_free = out_end;
    if (out_end == UINT64_MAX)
        lane->hung = true;
    if (lane->post_early)
        push_event(fake, start, EVENT_START, lane);
    push_event(fake, out_end, EVENT_END, lane);
}

static void op_unit_flush(struct cox__backend *backend, struct cox__unit *unit)
{
    struct fake *fake = fake_of(backend);
    struct device *device = &fake->devices[unit->device];
    pthread_mutex_lock(&fake->lock);
    note(fake, FAKE_STEP_FLUSH, unit->device, NULL, false);
    while (unit->queued > 0) {
        struct lane *next = NULL;
        for (uint32_t i = 0; i < unit->lane_count; i++) {
            struct lane *lane = &unit->lanes[i];
            if (lane->state == LANE_QUEUED && (!next || lane->number < next->number))
                next = lane;
        }
        start_band(fake, device, next);
    }
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

static void check_flushed(struct fake *fake, const char *what)
{
    for (uint32_t u = 0; u < fake->unit_count; u++)
        if (fake->units[u]->queued > 0)
            violate(fake, "%s before device %u was flushed", what, fake->units[u]->device);
}

static enum cox__job_state op_job_poll(struct cox__backend *backend, struct cox__job *job)
{
    struct fake *fake = fake_of(backend);
    struct lane *lane = &job->unit->lanes[job->lane];
    enum cox__job_state state = COX__JOB_RUNNING;
    pthread_mutex_lock(&fake->lock);
    check_flushed(fake, "polled");
    if (lane->job != job || lane->state == LANE_FREE) {
        violate(fake, "polled a job that is not under way (device %u, lane %u)", job->unit->device, job->lane);
        pthread_mutex_unlock(&fake->lock);
        return COX__JOB_FAILED;
    }
    note(fake, FAKE_STEP_POLL, job->unit->device, lane, lane->failed);
    if (lane->state == LANE_ENDED) {
        state = lane->failed ? COX__JOB_FAILED : COX__JOB_DONE;
        if (atomic_load(&job->end_ns) == 0)
            atomic_store(&job->end_ns, clock_now(fake)); /* nobody was told: this is the observation */
        lane->state = LANE_FREE;
    }
    pthread_mutex_unlock(&fake->lock);
    return state;
}

static const void *op_job_partial(struct cox__backend *backend, struct cox__job *job, uint32_t binding)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    const struct lane *lane = &job->unit->lanes[job->lane];
    if (lane->job != job || lane->state != LANE_FREE || lane->failed)
        violate(fake, "partial of binding %u asked for before its band was done, or after its lane was reused",
                binding);
    const void *partial = lane->partial[binding];
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

static void sleep_until(struct fake *fake, struct device *device, uint64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u), .tv_nsec = (long)(until_ns % 1000000000u)};
    while (!fake->stopping && clock_now(fake) < until_ns)
        if (pthread_cond_timedwait(&device->wake, &fake->lock, &until) == ETIMEDOUT)
            break;
}

struct worker {
    struct fake *fake;
    struct device *device;
};

static void *work(void *data)
{
    struct fake *fake = ((struct worker *)data)->fake;
    struct device *device = ((struct worker *)data)->device;
    free(data);
    pthread_mutex_lock(&fake->lock);
    while (!fake->stopping) {
        struct lane *lane = device->first;
        if (!lane || lane->hung) {
            pthread_cond_wait(&device->wake, &fake->lock);
            continue;
        }
        if (lane->post_early)
            post(lane);
        sleep_until(fake, device,
                    add_ns(clock_now(fake), lane->in_ns + lane->kernel_ns + lane->out_ns + lane->hang_ns));
        if (fake->stopping || device->first != lane)
            continue; /* destroyed or killed meanwhile */
        device->first = lane->next;
        if (!device->first)
            device->last = NULL;
        handle_end(lane);
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
    fake->stopping = true;
    for (uint32_t i = 0; i < fake->device_count; i++)
        pthread_cond_broadcast(&fake->devices[i].wake);
    pthread_mutex_unlock(&fake->lock);
    if (fake->real_time)
        for (uint32_t i = 0; i < fake->device_count; i++)
            pthread_join(fake->devices[i].thread, NULL);
    fake->made = false;
}

#define FAKE_OPS                                                                                                  \
    .destroy = op_destroy, .device_count = op_device_count, .device_info = op_device_info,                        \
    .mem_create = op_mem_create, .mem_destroy = op_mem_destroy, .mem_data = op_mem_data, .mem_info = op_mem_info, \
    .mem_abandon = op_mem_abandon, .unit_abandon = op_unit_abandon, .unit_create = op_unit_create,                \
    .unit_destroy = op_unit_destroy, .job_submit = op_job_submit, .unit_flush = op_unit_flush,                    \
    .job_poll = op_job_poll, .job_partial = op_job_partial, .now_ns = op_now_ns

static const struct cox__backend_ops virtual_ops = {FAKE_OPS, .advance = op_advance};
static const struct cox__backend_ops real_ops = {FAKE_OPS};

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
    fake->late_overlap = params->late_overlap;
    fake->base.ops = params->real_time ? &real_ops : &virtual_ops;
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
    for (uint32_t i = 0; i < (*fake)->device_count; i++)
        pthread_cond_destroy(&(*fake)->devices[i].wake);
    pthread_cond_destroy(&(*fake)->changed);
    pthread_mutex_destroy(&(*fake)->lock);
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
            if (pthread_create(&fake->devices[i].thread, NULL, work, worker) != 0)
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
    /* An early post is within the contract and wakes a loop that was told that nothing would ever happen. */
    for (uint32_t u = 0; u < fake->unit_count; u++)
        for (uint32_t i = 0; i < fake->units[u]->lane_count; i++)
            if (fake->units[u]->lanes[i].state == LANE_RUNNING) {
                post(&fake->units[u]->lanes[i]);
                pthread_mutex_unlock(&fake->lock);
                return;
            }
    pthread_mutex_unlock(&fake->lock);
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

uint64_t fake_now(struct fake *fake)
{
    return clock_now(fake);
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
