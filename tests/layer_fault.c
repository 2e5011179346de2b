/* An OpenCL layer that makes devices fail, hang, lie and vanish by a plan: see docs/fault-layer.md.
 *
 * Every call goes through this file's table and on to the drivers. A command that is to be late, or never to run, gets a user
 * event of the layer's own into its wait list, its gate: so the driver itself keeps back what comes behind it in the queue
 * and whatever waits for it. A command whose end is to be seen late gets a marker behind it that waits for a gate too,
 * and the application is given the marker's event. Lies about events (status, times, callbacks) are told when it asks.
 *
 * Threads: `lock` guards everything here. It is not held across a call into a driver, but for clRetainCommandQueue, since some run the
 * kernel and the callbacks inside the enqueue. The ticker, a thread that is there once something is to happen later,
 * opens gates and makes late callbacks. Before a driver sees the last release of an object it is forgotten here; so
 * an address that a driver uses again is not taken for the old object.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#undef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_layer.h>

#include "fault_plan.h"
#include "layer_info.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { DEVICES_MAX = 64, ARGS_MAX = 128, BUCKETS = 4096, POLL_NS = 200000, STUCK_NS = 100000000 };

static cl_icd_dispatch next; /* where the calls go on to */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *must_alloc(size_t count, size_t bytes)
{
    void *memory = calloc(count > 0 ? count : 1, bytes);
    if (!memory) {
        fputs("layer_fault: out of memory\n", stderr);
        abort();
    }
    return memory;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
    do {
        uint64_t part = ns < 1000000000u ? ns : 1000000000u;
        struct timespec t = {.tv_sec = (time_t)(part / 1000000000u), .tv_nsec = (long)(part % 1000000000u)};
        while (nanosleep(&t, &t) != 0 && errno == EINTR)
            continue;
        if (ns != FAULT_FOREVER)
            ns -= part;
    } while (ns > 0);
}

/* --- The plan in force ----------------------------------------------------------------------------------- */

struct line {
    struct fault_line plan;
    uint64_t devices;         /* of the known ones, those that it is about */
    uint64_t matched, chosen; /* calls that it is about; those that it picked */
    _Atomic uint64_t struck;  /* faults that have really happened */
};

/* Plans are not freed: commands under way and callbacks remember their lines. */
struct active {
    struct active *older;
    uint32_t line_count;
    bool vanishing;
    uint64_t begin_ns;
    struct line *lines;
};
static struct active *active;

/* What has been picked for one call. */
struct faults {
    struct line *by[FAULT_KINDS];
};

static void struck(struct line *line)
{
    atomic_fetch_add_explicit(&line->struck, 1, memory_order_relaxed);
}

/* --- Devices --------------------------------------------------------------------------------------------- */

/* A sub-device is told by its parent's number and its place among those made with it, so that it is the same one when it
 * is made again. */
struct device {
    uint32_t number;
    int sub; /* -1 = no sub-device */
    cl_device_type type;
    uint64_t back_ns; /* when it is gone: until then */
    cl_int code;      /* what calls answer meanwhile; 0 = the usual */
    bool gone;
    bool gateless; /* user events stop it for ever */
    char name[256];
};
static struct device devices[DEVICES_MAX];
static uint32_t device_count, root_count;

static bool line_is_about(const struct fault_line *line, const struct device *device)
{
    switch (line->device_kind) {
    case FAULT_DEVICE_ANY:
        return true;
    case FAULT_DEVICE_INDEX:
        return device->number == line->device;
    case FAULT_DEVICE_SUB:
        return device->number == line->device && device->sub >= 0 && (uint32_t)device->sub == line->sub;
    case FAULT_DEVICE_CPU:
        return device->type & CL_DEVICE_TYPE_CPU;
    case FAULT_DEVICE_GPU:
        return device->type & CL_DEVICE_TYPE_GPU;
    case FAULT_DEVICE_ACCELERATOR:
        return device->type & CL_DEVICE_TYPE_ACCELERATOR;
    case FAULT_DEVICE_NAME:
        return strstr(device->name, line->device_name);
    }
    return false;
}

static uint64_t bit(uint32_t device)
{
    return UINT64_C(1) << device;
}

/* --- What the application has made ----------------------------------------------------------------------- */

enum type { TYPE_DEVICE, TYPE_CONTEXT, TYPE_QUEUE, TYPE_MEM, TYPE_PROGRAM, TYPE_KERNEL, TYPE_EVENT, TYPE_OTHER };

struct context {
    unsigned refs;
    uint64_t devices, dead;
    bool stuck; /* what was held back when its device vanished is held for ever */
};

struct queue {
    unsigned refs;
    cl_command_queue handle;
    bool alive; /* the application has not released it */
    cl_context context_handle;
    struct context *context;
    uint32_t device;
    struct flush_gate *flush_gates;
    unsigned unseen;      /* commands that never end as far as anybody can see */
    uint64_t last_end_ns; /* of a slowed command */
};

struct flush_gate {
    struct flush_gate *next;
    cl_event gate;
};

enum hold { FREE, HELD, TAILED };

struct command {
    unsigned refs;
    int call;
    struct queue *queue;
    struct faults faults;
    enum hold hold;
    cl_event head; /* TAILED: of the command itself, else NULL */
    bool profile_told, query_told, status_told;
    bool doomed; /* its device vanished before the application saw its end */
    uint64_t doomed_ns;
    cl_int doom_code;
    uint64_t enqueued_ns;
    uint64_t stretch_ns; /* of its end, where no marker behind it tells of that */
};

/* Kernels that are to have given wrong results: the next read of one of these ranges shows it. */
struct lie {
    unsigned refs;
    struct line *line;
    bool told;
};
struct taint {
    struct taint *next;
    struct lie *lie;
    size_t from, to; /* in the root buffer */
};
struct mem {
    unsigned refs;
    struct mem *root; /* itself, or the parent */
    size_t from, bytes;
    cl_mem_flags flags;
    struct taint *taints; /* of a root */
};

struct object {
    struct object *next; /* in its bucket */
    const void *handle;
    enum type type;
    unsigned refs; /* the application's */
    uint64_t devices;
    struct context *context;
    struct queue *queue;
    struct mem *mem;
    struct command *command;
    cl_mem *args; /* of a kernel */
};
static struct object *bucket[BUCKETS];

static struct object **find_place(const void *handle)
{
    size_t hash = (size_t)(((uint64_t)(uintptr_t)handle >> 3) * 0x9e3779b97f4a7c15u >> 52) % BUCKETS;
    struct object **place = &bucket[hash];
    while (*place && (*place)->handle != handle)
        place = &(*place)->next;
    return place;
}

static struct object *find(const void *handle, enum type type)
{
    struct object *object = handle ? *find_place(handle) : NULL;
    return object && object->type == type ? object : NULL;
}

static void context_put(struct context *context)
{
    if (context && --context->refs == 0)
        free(context);
}

static void queue_put(struct queue *queue)
{
    if (!queue || --queue->refs > 0)
        return;
    context_put(queue->context);
    free(queue);
}

/* Events of commands that are forgotten, to be released once the lock is given back. */
static cl_event *spent_events;
static size_t spent_count, spent_room;

static void command_put(struct command *command)
{
    if (!command || --command->refs > 0)
        return;
    if (command->head) {
        if (spent_count == spent_room) {
            spent_room = spent_room ? 2 * spent_room : 64;
            spent_events = realloc(spent_events, spent_room * sizeof(cl_event));
            if (!spent_events)
                abort();
        }
        spent_events[spent_count++] = command->head;
    }
    queue_put(command->queue);
    free(command);
}

static void release_spent(void)
{
    for (;;) {
        cl_event event = NULL;
        pthread_mutex_lock(&lock);
        if (spent_count > 0)
            event = spent_events[--spent_count];
        pthread_mutex_unlock(&lock);
        if (!event)
            return;
        next.clReleaseEvent(event);
    }
}

static void taint_free(struct taint *taint)
{
    if (--taint->lie->refs == 0)
        free(taint->lie);
    free(taint);
}

static void mem_put(struct mem *mem)
{
    if (!mem || --mem->refs > 0)
        return;
    while (mem->taints) {
        struct taint *taint = mem->taints;
        mem->taints = taint->next;
        taint_free(taint);
    }
    if (mem->root != mem)
        mem_put(mem->root);
    free(mem);
}

static void forget(struct object **place)
{
    struct object *object = *place;
    *place = object->next;
    if (object->queue)
        object->queue->alive = false;
    queue_put(object->queue);
    context_put(object->context);
    mem_put(object->mem);
    command_put(object->command);
    free(object->args);
    free(object);
}

/* Enter an object, under the lock. */
static struct object *enter_object(const void *handle, enum type type, uint64_t of_devices, struct context *context)
{
    struct object **place = find_place(handle);
    if (*place)
        forget(place); /* its release went past us */
    struct object *object = must_alloc(1, sizeof *object);
    *object = (struct object){.handle = handle, .type = type, .refs = 1, .devices = of_devices, .context = context};
    if (context)
        context->refs++;
    *place = object;
    return object;
}

/* One made from another: of the same devices, in the same context. */
static struct object *enter_from(const void *handle, enum type type, const void *from)
{
    const struct object *parent = from ? *find_place(from) : NULL;
    return enter_object(handle, type, parent ? parent->devices : 0, parent ? parent->context : NULL);
}

static void made(const void *handle, enum type type, const void *from)
{
    if (!handle)
        return;
    pthread_mutex_lock(&lock);
    enter_from(handle, type, from);
    pthread_mutex_unlock(&lock);
}

/* --- Devices: finding them -------------------------------------------------------------------------------- */

/* Under the lock: the device's number among ours. */
static uint32_t device_entry(uint32_t number, int sub, cl_device_type type, const char *name)
{
    for (uint32_t d = 0; d < device_count; d++)
        if (devices[d].number == number && devices[d].sub == sub)
            return d;
    if (device_count == DEVICES_MAX)
        return DEVICES_MAX - 1;
    struct device *device = &devices[device_count];
    *device = (struct device){.number = number, .sub = sub, .type = type};
    snprintf(device->name, sizeof device->name, "%s", name);
    device->gateless = !strncmp(name, "basic", 5) || !strncmp(name, "Oclgrind", 8);
    for (struct active *a = active; a; a = a->older)
        for (uint32_t i = 0; i < a->line_count; i++)
            if (line_is_about(&a->lines[i].plan, device))
                a->lines[i].devices |= bit(device_count);
    return device_count++;
}

static void describe(cl_device_id id, cl_device_type *type, char *name, size_t bytes)
{
    *type = 0;
    name[0] = 0;
    next.clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof *type, type, NULL);
    if (next.clGetDeviceInfo(id, CL_DEVICE_NAME, bytes, name, NULL) != CL_SUCCESS)
        name[0] = 0;
}

static void add_root(cl_device_id id)
{
    cl_device_type type;
    char name[256];
    describe(id, &type, name, sizeof name);
    pthread_mutex_lock(&lock);
    if (!find(id, TYPE_DEVICE)) {
        uint32_t d = device_entry(root_count++, -1, type, name);
        enter_object(id, TYPE_DEVICE, bit(d), NULL);
    }
    pthread_mutex_unlock(&lock);
}

/* All devices of all platforms, in the order in which the loader lists them. */
static void discover(void)
{
    cl_platform_id platforms[32];
    cl_uint count = 0;
    if (next.clGetPlatformIDs(32, platforms, &count) != CL_SUCCESS)
        return;
    for (cl_uint p = 0; p < count && p < 32; p++) {
        cl_device_id ids[DEVICES_MAX];
        cl_uint found = 0;
        if (next.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, DEVICES_MAX, ids, &found) == CL_SUCCESS)
            for (cl_uint i = 0; i < found && i < DEVICES_MAX; i++)
                add_root(ids[i]);
    }
}

/* The set of these devices. */
static uint64_t set_of(const cl_device_id *ids, cl_uint count)
{
    uint64_t set = 0;
    for (cl_uint i = 0; ids && i < count; i++) {
        for (int attempt = 0; attempt < 3; attempt++) {
            pthread_mutex_lock(&lock);
            struct object *object = find(ids[i], TYPE_DEVICE);
            set |= object ? object->devices : 0;
            pthread_mutex_unlock(&lock);
            if (object || !ids[i])
                break;
            if (attempt == 0)
                discover();
            else
                add_root(ids[i]);
        }
    }
    return set;
}

/* --- The ticker: what happens later ----------------------------------------------------------------------- */

/* A region of host memory, in rows. */
struct region {
    char *host;
    size_t row_bytes, rows, slices, row_pitch, slice_pitch;
};

/* What a command brings to the host, for those that corrupt it. */
struct flips {
    struct line *line;
    size_t offset; /* of the region in what the command brings */
    struct region region;
};

enum job_kind {
    JOB_OPEN, /* at due_ns open the gate */
    JOB_KEEP, /* once the head has ended let go of the queue */
    JOB_TAIL, /* once the head has ended do what is to be done, then open the gate */
    JOB_CALL  /* at due_ns make the callback */
};

struct job {
    struct job *next;
    enum job_kind kind;
    uint64_t due_ns;
    cl_event gate, head;
    cl_command_queue queue;
    struct command *command;
    struct callback *callback;
    struct flips flips;
    bool ended;
};
static struct job *jobs;
static bool ticker_runs, ticker_stops;
static pthread_t ticker;
static pthread_cond_t ticker_wakes;

/* A callback of the application's on its way through the layer; in a list until it is made. */
struct callback {
    struct callback *prev, *next;
    void(CL_CALLBACK *fn)(cl_event, cl_int, void *);
    void *user;
    cl_event event; /* retained */
    struct command *command;
    bool made;     /* because its device vanished: the driver's call, if it comes, is for nothing */
    cl_int status; /* of a late one */
};
static struct callback *callbacks;
static bool doom_pending; /* callbacks of doomed commands are to be looked for */

static void *tick(void *unused);

/* Under the lock. */
static void wake_ticker(void)
{
    if (!ticker_runs && !ticker_stops) {
        sigset_t all, old;
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&ticker_wakes, &attributes);
        pthread_condattr_destroy(&attributes);
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &old);
        if (pthread_create(&ticker, NULL, tick, NULL) != 0) {
            fputs("layer_fault: no thread\n", stderr);
            abort();
        }
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        ticker_runs = true;
    }
    if (ticker_runs)
        pthread_cond_signal(&ticker_wakes);
}

/* Under the lock. */
static void add_job(const struct job *job)
{
    struct job *fresh = must_alloc(1, sizeof *fresh);
    *fresh = *job;
    fresh->next = jobs;
    jobs = fresh;
    if (fresh->command)
        fresh->command->refs++;
    wake_ticker();
}

static void open_gate(cl_event gate)
{
    next.clSetUserEventStatus(gate, CL_COMPLETE);
    next.clReleaseEvent(gate);
}

static cl_int real_status(cl_event event)
{
    cl_int status = CL_QUEUED;
    cl_int code = next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return code == CL_SUCCESS ? status : code;
}

/* Flip bits here and there in the region, each of another byte as long as there are enough. */
static void flip(const struct flips *flips)
{
    const struct region *r = &flips->region;
    const uint64_t size = (uint64_t)r->row_bytes * r->rows * r->slices;
    if (size == 0)
        return;
    const uint64_t count = flips->line->plan.bits < 8 * size ? flips->line->plan.bits : 8 * size;
    const uint64_t stride = count < size ? size / count : 1;
    uint64_t x = (flips->line->plan.seed + 1) * 0x9e3779b97f4a7c15u + atomic_load(&flips->line->struck);
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = (x % size + i * stride) % size;
        char *row = r->host + at / r->row_bytes / r->rows * r->slice_pitch + at / r->row_bytes % r->rows * r->row_pitch;
        row[at % r->row_bytes] = (char)(row[at % r->row_bytes] ^ 1 << ((x >> 40) + i / size) % 8);
    }
    struck(flips->line);
}

/* How long the command took: by its times if its queue keeps them and they are not nonsense, else since it could have
 * begun. */
static uint64_t took_ns(const struct job *job)
{
    cl_ulong start = 0, end = 0;
    if (!next.clGetEventProfilingInfo(job->head, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL) &&
        !next.clGetEventProfilingInfo(job->head, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) &&
        end > start + 1000)
        return end - start;
    const struct command *command = job->command;
    uint64_t from = command->enqueued_ns > command->queue->last_end_ns ? command->enqueued_ns
                                                                       : command->queue->last_end_ns;
    uint64_t now = now_ns();
    return now > from ? now - from : 0;
}

/* The command has ended: what comes between that and its being seen. */
static void begin_tail(struct job *job)
{
    const struct faults *faults = &job->command->faults;
    double wait_ns = 0;
    if (job->flips.line)
        flip(&job->flips);
    pthread_mutex_lock(&lock);
    if (faults->by[FAULT_KIND_SLOW]) {
        wait_ns += (faults->by[FAULT_KIND_SLOW]->plan.factor - 1) * (double)took_ns(job);
        struck(faults->by[FAULT_KIND_SLOW]);
    }
    pthread_mutex_unlock(&lock);
    if (faults->by[FAULT_KIND_LATE_SEEN]) {
        wait_ns += (double)faults->by[FAULT_KIND_LATE_SEEN]->plan.time_ns;
        struck(faults->by[FAULT_KIND_LATE_SEEN]);
    }
    job->ended = true;
    job->due_ns = now_ns() + (uint64_t)(wait_ns < 86400e9 ? wait_ns : 86400e9);
}

static void deliver(struct callback *callback, cl_int status);
static bool deliver_doomed(void);

/* Do what is due of a job that is in no list now. Returns whether that was all. */
static bool run_job(struct job *job)
{
    switch (job->kind) {
    case JOB_OPEN:
        if (now_ns() < job->due_ns)
            return false;
        pthread_mutex_lock(&lock);
        if (job->command->doomed) { /* the device forgot it */
            pthread_mutex_unlock(&lock);
            return true;
        }
        job->command->hold = FREE;
        pthread_mutex_unlock(&lock);
        open_gate(job->gate);
        job->kind = JOB_KEEP;
        return false;
    case JOB_KEEP:
        if (real_status(job->head) > CL_COMPLETE)
            return false;
        next.clReleaseCommandQueue(job->queue);
        next.clReleaseEvent(job->head);
        return true;
    case JOB_TAIL:
        if (!job->ended && real_status(job->head) > CL_COMPLETE)
            return false;
        if (!job->ended)
            begin_tail(job);
        if (now_ns() < job->due_ns)
            return false;
        pthread_mutex_lock(&lock);
        job->command->hold = FREE;
        job->command->queue->last_end_ns = now_ns();
        pthread_mutex_unlock(&lock);
        open_gate(job->gate);
        return true;
    case JOB_CALL:
        if (now_ns() < job->due_ns)
            return false;
        deliver(job->callback, job->callback->status);
        return true;
    }
    return true;
}

/* When the ticker is to look again; 0 = when it is woken. */
static uint64_t next_look(void)
{
    uint64_t soon = now_ns() + POLL_NS, when = doom_pending ? soon : 0;
    for (const struct job *job = jobs; job; job = job->next) {
        bool polls = job->kind == JOB_KEEP || (job->kind == JOB_TAIL && !job->ended);
        uint64_t due = polls ? soon : job->due_ns;
        if (when == 0 || due < when)
            when = due;
    }
    return when;
}

static void *tick(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!ticker_stops) {
        struct job *todo = jobs, *left = NULL;
        const bool look = doom_pending;
        jobs = NULL;
        doom_pending = false;
        pthread_mutex_unlock(&lock);
        while (todo) {
            struct job *job = todo;
            todo = job->next;
            if (!run_job(job)) {
                job->next = left;
                left = job;
                continue;
            }
            pthread_mutex_lock(&lock);
            command_put(job->command);
            pthread_mutex_unlock(&lock);
            release_spent();
            free(job);
        }
        bool doomed = look && deliver_doomed();
        pthread_mutex_lock(&lock);
        doom_pending |= doomed;
        bool more = jobs != NULL;
        while (left) {
            struct job *job = left;
            left = job->next;
            job->next = jobs;
            jobs = job;
        }
        uint64_t when = next_look();
        if (more || ticker_stops)
            continue;
        if (when == 0)
            pthread_cond_wait(&ticker_wakes, &lock);
        else {
            struct timespec t = {.tv_sec = (time_t)(when / 1000000000u), .tv_nsec = (long)(when % 1000000000u)};
            pthread_cond_timedwait(&ticker_wakes, &lock, &t);
        }
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* --- Vanishing -------------------------------------------------------------------------------------------- */

/* Under the lock: the device's state now. */
static bool is_gone(struct device *device)
{
    if (device->gone && device->back_ns != FAULT_FOREVER && now_ns() >= device->back_ns)
        device->gone = false;
    return device->gone;
}

static void doom(struct command *command, uint64_t set, cl_int code)
{
    if (command->doomed || !(bit(command->queue->device) & set))
        return;
    command->doomed = true;
    command->doomed_ns = now_ns();
    command->doom_code = code ? code : CL_OUT_OF_RESOURCES;
    if (command->hold == HELD || command->queue->flush_gates)
        command->queue->context->stuck = true;
}

/* Under the lock: the devices of the set are gone, and with them all that their contexts hold. */
static void vanish(uint64_t set, const struct fault_line *line)
{
    uint64_t now = now_ns();
    for (uint32_t d = 0; d < device_count; d++)
        if (set & bit(d)) {
            devices[d].gone = true;
            devices[d].back_ns = line->time_ns == FAULT_FOREVER ? FAULT_FOREVER : now + line->time_ns;
            devices[d].code = line->code;
        }
    for (int b = 0; b < BUCKETS; b++)
        for (struct object *object = bucket[b]; object; object = object->next) {
            if (object->type == TYPE_CONTEXT)
                object->context->dead |= object->context->devices & set;
            if (object->command)
                doom(object->command, set, line->code);
        }
    for (struct job *job = jobs; job; job = job->next)
        if (job->command)
            doom(job->command, set, line->code);
    for (struct callback *callback = callbacks; callback; callback = callback->next)
        doom(callback->command, set, line->code);
    doom_pending = true;
    if (callbacks)
        wake_ticker();
}

/* --- A call comes ------------------------------------------------------------------------------------------ */

/* What a call on these devices must answer since they are gone, or 0. */
static cl_int gone_code(int call, uint64_t set, const struct context *context)
{
    const uint32_t works = FAULT_COMMAND | FAULT_CREATE | FAULT_BUILD | FAULT_FLUSH;
    cl_int code = 0;
    if (!set ||
        (!(fault_call_classes(call) & works) && call != FAULT_CALL_clSetKernelArg && call != FAULT_CALL_clFinish))
        return 0; /* releasing works, and asking what became of events */
    for (uint32_t d = 0; d < device_count; d++) {
        if (!(set & bit(d)))
            continue;
        if (!is_gone(&devices[d]) && !(context && context->dead & bit(d)))
            return 0;
        code = devices[d].code;
    }
    if (code)
        return code;
    return call == FAULT_CALL_clCreateContext || call == FAULT_CALL_clCreateCommandQueue ||
                   call == FAULT_CALL_clCreateCommandQueueWithProperties
               ? CL_DEVICE_NOT_AVAILABLE
               : CL_OUT_OF_RESOURCES;
}

/* A call on a set of devices: which faults does it suffer? Hangs if it is to. Returns the error that it is to answer with
 * instead of going on to the driver, or CL_SUCCESS. */
static cl_int arrive(int call, uint64_t set, const struct context *context, bool gives_event, struct faults *faults)
{
    *faults = (struct faults){{NULL}};
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; active && i < active->line_count; i++) {
        struct line *line = &active->lines[i];
        if (!fault_line_names(&line->plan, call, gives_event) ||
            (line->plan.device_kind != FAULT_DEVICE_ANY && !(line->devices & set)) ||
            (line->plan.after_ns && now_ns() - active->begin_ns < line->plan.after_ns))
            continue;
        line->matched++;
        if (!fault_line_strikes(&line->plan, line->matched, line->chosen))
            continue;
        line->chosen++;
        if (line->plan.kind == FAULT_KIND_VANISH) {
            vanish(line->plan.device_kind == FAULT_DEVICE_ANY ? ~UINT64_C(0) : line->devices, &line->plan);
            struck(line);
        } else if (!faults->by[line->plan.kind])
            faults->by[line->plan.kind] = line;
    }
    cl_int code = gone_code(call, set, context);
    pthread_mutex_unlock(&lock);
    if (faults->by[FAULT_KIND_HANG]) {
        struck(faults->by[FAULT_KIND_HANG]);
        sleep_ns(faults->by[FAULT_KIND_HANG]->plan.time_ns);
    }
    if (code == CL_SUCCESS && faults->by[FAULT_KIND_ERROR]) {
        struck(faults->by[FAULT_KIND_ERROR]);
        code = faults->by[FAULT_KIND_ERROR]->plan.code;
    }
    return code;
}

/* A call on an object. */
static cl_int arrive_at(int call, const void *handle)
{
    struct faults faults;
    uint64_t set = 0;
    struct context *context = NULL;
    pthread_mutex_lock(&lock);
    const struct object *object = handle ? *find_place(handle) : NULL;
    if (object) {
        set = object->devices;
        context = object->context;
        if (context)
            context->refs++;
    }
    pthread_mutex_unlock(&lock);
    cl_int code = arrive(call, set, context, false, &faults);
    if (context) {
        pthread_mutex_lock(&lock);
        context_put(context);
        pthread_mutex_unlock(&lock);
    }
    return code;
}

/* --- Platforms and devices ---------------------------------------------------------------------------------- */

static cl_int CL_API_CALL fault_clGetPlatformIDs(cl_uint n, cl_platform_id *platforms, cl_uint *count)
{
    cl_int code = arrive_at(FAULT_CALL_clGetPlatformIDs, NULL);
    return code ? code : next.clGetPlatformIDs(n, platforms, count);
}

static cl_int CL_API_CALL fault_clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint n,
                                               cl_device_id *ids, cl_uint *count)
{
    cl_int code = arrive_at(FAULT_CALL_clGetDeviceIDs, NULL);
    return code ? code : next.clGetDeviceIDs(platform, type, n, ids, count);
}

static cl_int CL_API_CALL fault_clGetDeviceInfo(cl_device_id id, cl_device_info info, size_t bytes, void *value,
                                                size_t *got)
{
    struct faults faults;
    const uint64_t set = set_of(&id, 1);
    cl_int code = arrive(FAULT_CALL_clGetDeviceInfo, set, NULL, false, &faults);
    if (code)
        return code;
    code = next.clGetDeviceInfo(id, info, bytes, value, got);
    if (code == CL_SUCCESS && info == CL_DEVICE_AVAILABLE && value) {
        pthread_mutex_lock(&lock);
        for (uint32_t d = 0; d < device_count; d++)
            if (set & bit(d) && is_gone(&devices[d]))
                *(cl_bool *)value = CL_FALSE;
        pthread_mutex_unlock(&lock);
    }
    return code;
}

static cl_int CL_API_CALL fault_clCreateSubDevices(cl_device_id parent, const cl_device_partition_property *how,
                                                   cl_uint room, cl_device_id *out, cl_uint *count)
{
    struct faults faults;
    cl_uint got = 0;
    const uint64_t set = set_of(&parent, 1);
    cl_int code = arrive(FAULT_CALL_clCreateSubDevices, set, NULL, false, &faults);
    if (code)
        return code;
    code = next.clCreateSubDevices(parent, how, room, out, &got);
    if (code)
        return code;
    for (cl_uint i = 0; out && i < got && i < room; i++) {
        cl_device_type type;
        char name[256];
        describe(out[i], &type, name, sizeof name);
        pthread_mutex_lock(&lock);
        uint64_t own = 0;
        for (uint32_t d = 0; d < device_count && !own; d++)
            if (set & bit(d)) /* one of a sub-device counts as that sub-device */
                own = bit(devices[d].sub >= 0 ? d : device_entry(devices[d].number, (int)i, type, name));
        enter_object(out[i], TYPE_DEVICE, own, NULL);
        pthread_mutex_unlock(&lock);
    }
    if (count)
        *count = got;
    return code;
}

/* --- Contexts, queues, memory, programs, kernels -------------------------------------------------------------- */

static void made_context(cl_context handle)
{
    size_t bytes = 0;
    if (!handle || next.clGetContextInfo(handle, CL_CONTEXT_DEVICES, 0, NULL, &bytes) != CL_SUCCESS)
        return;
    cl_device_id *ids = must_alloc(bytes / sizeof *ids, sizeof *ids);
    if (next.clGetContextInfo(handle, CL_CONTEXT_DEVICES, bytes, ids, NULL) != CL_SUCCESS)
        bytes = 0;
    struct context *context = must_alloc(1, sizeof *context);
    context->devices = set_of(ids, (cl_uint)(bytes / sizeof *ids));
    free(ids);
    pthread_mutex_lock(&lock);
    enter_object(handle, TYPE_CONTEXT, context->devices, context);
    pthread_mutex_unlock(&lock);
}

static cl_context CL_API_CALL
fault_clCreateContext(const cl_context_properties *properties, cl_uint count, const cl_device_id *ids,
                      void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *error)
{
    struct faults faults;
    cl_int code = arrive(FAULT_CALL_clCreateContext, set_of(ids, count), NULL, false, &faults);
    if (code) {
        if (error)
            *error = code;
        return NULL;
    }
    cl_context context = next.clCreateContext(properties, count, ids, notify, user, error);
    made_context(context);
    return context;
}

static cl_context CL_API_CALL fault_clCreateContextFromType(const cl_context_properties *properties,
                                                            cl_device_type type,
                                                            void(CL_CALLBACK *notify)(const char *, const void *,
                                                                                      size_t, void *),
                                                            void *user, cl_int *error)
{
    cl_int code = arrive_at(FAULT_CALL_clCreateContextFromType, NULL);
    if (code) {
        if (error)
            *error = code;
        return NULL;
    }
    cl_context context = next.clCreateContextFromType(properties, type, notify, user, error);
    made_context(context);
    return context;
}

static void made_queue(cl_command_queue handle, cl_context context, uint64_t set)
{
    if (!handle)
        return;
    pthread_mutex_lock(&lock);
    const struct object *of = find(context, TYPE_CONTEXT);
    if (of && set) {
        struct queue *queue = must_alloc(1, sizeof *queue);
        *queue = (struct queue){
            .refs = 1, .handle = handle, .alive = true, .context_handle = context, .context = of->context};
        queue->context->refs++;
        while (!(set & bit(queue->device)))
            queue->device++;
        enter_object(handle, TYPE_QUEUE, set, queue->context)->queue = queue;
    }
    pthread_mutex_unlock(&lock);
}

/* A call that names a context and one of its devices. */
static cl_int arrive_in(int call, cl_context context, uint64_t set)
{
    struct faults faults;
    pthread_mutex_lock(&lock);
    const struct object *object = find(context, TYPE_CONTEXT);
    struct context *of = object ? object->context : NULL;
    pthread_mutex_unlock(&lock);
    return arrive(call, set, of, false, &faults);
}

static cl_command_queue CL_API_CALL fault_clCreateCommandQueue(cl_context context, cl_device_id id,
                                                               cl_command_queue_properties properties, cl_int *error)
{
    const uint64_t set = set_of(&id, 1);
    cl_int code = arrive_in(FAULT_CALL_clCreateCommandQueue, context, set);
    if (code) {
        if (error)
            *error = code;
        return NULL;
    }
    cl_command_queue queue = next.clCreateCommandQueue(context, id, properties, error);
    made_queue(queue, context, set);
    return queue;
}

static cl_command_queue CL_API_CALL fault_clCreateCommandQueueWithProperties(cl_context context, cl_device_id id,
                                                                             const cl_queue_properties *properties,
                                                                             cl_int *error)
{
    const uint64_t set = set_of(&id, 1);
    cl_int code = arrive_in(FAULT_CALL_clCreateCommandQueueWithProperties, context, set);
    if (code) {
        if (error)
            *error = code;
        return NULL;
    }
    cl_command_queue queue = next.clCreateCommandQueueWithProperties(context, id, properties, error);
    made_queue(queue, context, set);
    return queue;
}

/* A maker: its last parameter is `error`; what it makes belongs to the devices of `from`. */
#define MAKER(result, kind, name, from, decl, args)       \
    static result CL_API_CALL fault_##name decl           \
    {                                                     \
        cl_int code = arrive_at(FAULT_CALL_##name, from); \
        if (code) {                                       \
            if (error)                                    \
                *error = code;                            \
            return NULL;                                  \
        }                                                 \
        result handle = next.name args;                   \
        made(handle, kind, from);                         \
        return handle;                                    \
    }

MAKER(cl_mem, TYPE_OTHER, clCreateImage, c,
      (cl_context c, cl_mem_flags f, const cl_image_format *m, const cl_image_desc *d, void *v, cl_int *error),
      (c, f, m, d, v, error))
MAKER(cl_sampler, TYPE_OTHER, clCreateSampler, c,
      (cl_context c, cl_bool n, cl_addressing_mode a, cl_filter_mode f, cl_int *error), (c, n, a, f, error))
MAKER(cl_program, TYPE_PROGRAM, clCreateProgramWithSource, c,
      (cl_context c, cl_uint n, const char **s, const size_t *l, cl_int *error), (c, n, s, l, error))
MAKER(cl_program, TYPE_PROGRAM, clCreateProgramWithBinary, c,
      (cl_context c, cl_uint n, const cl_device_id *d, const size_t *l, const unsigned char **b, cl_int *s,
       cl_int *error),
      (c, n, d, l, b, s, error))
MAKER(cl_event, TYPE_OTHER, clCreateUserEvent, c, (cl_context c, cl_int *error), (c, error))
MAKER(cl_kernel, TYPE_KERNEL, clCreateKernel, p, (cl_program p, const char *n, cl_int *error), (p, n, error))

static void made_buffer(cl_mem handle, cl_context context, cl_mem_flags flags, size_t bytes)
{
    if (!handle)
        return;
    struct mem *mem = must_alloc(1, sizeof *mem);
    *mem = (struct mem){.refs = 1, .root = mem, .bytes = bytes, .flags = flags};
    pthread_mutex_lock(&lock);
    enter_from(handle, TYPE_MEM, context)->mem = mem;
    pthread_mutex_unlock(&lock);
}

static cl_mem CL_API_CALL fault_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host,
                                               cl_int *error)
{
    cl_int code = arrive_at(FAULT_CALL_clCreateBuffer, context);
    if (code) {
        if (error)
            *error = code;
        return NULL;
    }
    cl_mem mem = next.clCreateBuffer(context, flags, bytes, host, error);
    made_buffer(mem, context, flags, bytes);
    return mem;
}

static cl_mem CL_API_CALL fault_clCreateBufferWithProperties(cl_context context, const cl_mem_properties *properties,
                                                             cl_mem_flags flags, size_t bytes, void *host,
                                                             cl_int *error)
{
    cl_int code = arrive_at(FAULT_CALL_clCreateBufferWithProperties, context);
    if (code) {
        if (error)
            *error = code;
        return NULL;
    }
    cl_mem mem = next.clCreateBufferWithProperties(context, properties, flags, bytes, host, error);
    made_buffer(mem, context, flags, bytes);
    return mem;
}

static cl_mem CL_API_CALL fault_clCreateSubBuffer(cl_mem parent, cl_mem_flags flags, cl_buffer_create_type type,
                                                  const void *info, cl_int *error)
{
    cl_int code = arrive_at(FAULT_CALL_clCreateSubBuffer, parent);
    if (code) {
        if (error)
            *error = code;
        return NULL;
    }
    cl_mem handle = next.clCreateSubBuffer(parent, flags, type, info, error);
    const cl_buffer_region *region = info;
    if (!handle)
        return handle;
    pthread_mutex_lock(&lock);
    const struct object *of = find(parent, TYPE_MEM);
    struct mem *mem = NULL;
    if (of && type == CL_BUFFER_CREATE_TYPE_REGION && region) {
        const cl_mem_flags access = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
        mem = must_alloc(1, sizeof *mem);
        *mem = (struct mem){.refs = 1,
                            .root = of->mem->root,
                            .from = of->mem->from + region->origin,
                            .bytes = region->size,
                            .flags = flags & access ? flags : of->mem->flags};
        mem->root->refs++;
    }
    enter_from(handle, mem ? TYPE_MEM : TYPE_OTHER, parent)->mem = mem;
    pthread_mutex_unlock(&lock);
    return handle;
}

/* Builds name their devices, or all of the program's. */
static cl_int arrive_build(int call, const void *handle, cl_uint count, const cl_device_id *ids)
{
    struct faults faults;
    if (count == 0 || !ids)
        return arrive_at(call, handle);
    return arrive(call, set_of(ids, count), NULL, false, &faults);
}

static cl_int CL_API_CALL fault_clBuildProgram(cl_program program, cl_uint count, const cl_device_id *ids,
                                               const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                                               void *user)
{
    cl_int code = arrive_build(FAULT_CALL_clBuildProgram, program, count, ids);
    return code ? code : next.clBuildProgram(program, count, ids, options, notify, user);
}

static cl_int CL_API_CALL fault_clCompileProgram(cl_program program, cl_uint count, const cl_device_id *ids,
                                                 const char *options, cl_uint header_count, const cl_program *headers,
                                                 const char **names, void(CL_CALLBACK *notify)(cl_program, void *),
                                                 void *user)
{
    cl_int code = arrive_build(FAULT_CALL_clCompileProgram, program, count, ids);
    return code ? code
                : next.clCompileProgram(program, count, ids, options, header_count, headers, names, notify, user);
}

static cl_program CL_API_CALL fault_clLinkProgram(cl_context context, cl_uint count, const cl_device_id *ids,
                                                  const char *options, cl_uint input_count, const cl_program *inputs,
                                                  void(CL_CALLBACK *notify)(cl_program, void *), void *user,
                                                  cl_int *error)
{
    cl_int code = arrive_build(FAULT_CALL_clLinkProgram, context, count, ids);
    if (code) {
        if (error)
            *error = code;
        return NULL;
    }
    cl_program program = next.clLinkProgram(context, count, ids, options, input_count, inputs, notify, user, error);
    made(program, TYPE_PROGRAM, context);
    return program;
}

static cl_int CL_API_CALL fault_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
    cl_int code = arrive_at(FAULT_CALL_clSetKernelArg, kernel);
    if (code)
        return code;
    code = next.clSetKernelArg(kernel, index, bytes, value);
    if (code || index >= ARGS_MAX)
        return code;
    cl_mem mem = NULL;
    if (bytes == sizeof mem && value)
        memcpy(&mem, value, sizeof mem);
    pthread_mutex_lock(&lock);
    struct object *object = find(kernel, TYPE_KERNEL);
    if (object && !find(mem, TYPE_MEM))
        mem = NULL;
    if (object && (mem || object->args)) {
        if (!object->args)
            object->args = must_alloc(ARGS_MAX, sizeof(cl_mem));
        object->args[index] = mem;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* A call on one object that has nothing else to it. */
#define PASS(name, handle, decl, args)                      \
    static cl_int CL_API_CALL fault_##name decl             \
    {                                                       \
        cl_int code = arrive_at(FAULT_CALL_##name, handle); \
        return code ? code : next.name args;                \
    }

PASS(clGetKernelWorkGroupInfo, k,
     (cl_kernel k, cl_device_id d, cl_kernel_work_group_info i, size_t n, void *v, size_t *r), (k, d, i, n, v, r))

static void retained(const void *handle)
{
    pthread_mutex_lock(&lock);
    struct object *object = handle ? *find_place(handle) : NULL;
    if (object)
        object->refs++;
    pthread_mutex_unlock(&lock);
}

static void released(const void *handle)
{
    pthread_mutex_lock(&lock);
    struct object **place = handle ? find_place(handle) : NULL;
    if (place && *place && --(*place)->refs == 0)
        forget(place);
    pthread_mutex_unlock(&lock);
    release_spent();
}

static void pass_flush(const void *handle);

#define COUNTED(type, retain, release)                         \
    static cl_int CL_API_CALL fault_##retain(type handle)      \
    {                                                          \
        cl_int code = arrive_at(FAULT_CALL_##retain, handle);  \
        if (!code && !(code = next.retain(handle)))            \
            retained(handle);                                  \
        return code;                                           \
    }                                                          \
    static cl_int CL_API_CALL fault_##release(type handle)     \
    {                                                          \
        cl_int code = arrive_at(FAULT_CALL_##release, handle); \
        if (code)                                              \
            return code;                                       \
        pass_flush(handle); /* a queue's release is a flush */ \
        released(handle);                                      \
        return next.release(handle);                           \
    }

COUNTED(cl_context, clRetainContext, clReleaseContext)
COUNTED(cl_command_queue, clRetainCommandQueue, clReleaseCommandQueue)
COUNTED(cl_mem, clRetainMemObject, clReleaseMemObject)
COUNTED(cl_program, clRetainProgram, clReleaseProgram)
COUNTED(cl_kernel, clRetainKernel, clReleaseKernel)
COUNTED(cl_event, clRetainEvent, clReleaseEvent)

/* --- Events as the application sees them ------------------------------------------------------------------------ */

/* Under the lock: what the application is to see of a command whose driver says `real`. */
static cl_int visible(struct command *command, cl_int real)
{
    struct line *const *by = command->faults.by;
    if (command->doomed) {
        bool stuck = command->queue->context->stuck && now_ns() - command->doomed_ns > STUCK_NS;
        if (real <= CL_COMPLETE || command->hold == HELD || stuck)
            return command->doom_code;
    }
    if (command->hold != FREE && real > CL_RUNNING)
        return CL_RUNNING;
    if (real != CL_COMPLETE)
        return real;
    struct line *fails = by[FAULT_KIND_STATUS] ? by[FAULT_KIND_STATUS] : by[FAULT_KIND_STATUS_AFTER];
    if (by[FAULT_KIND_NEVER_SEEN])
        return CL_RUNNING;
    if (!fails)
        return real;
    if (!command->status_told)
        struck(fails);
    command->status_told = true;
    return fails->plan.code;
}

static cl_int visible_status(cl_event event)
{
    cl_int status = real_status(event);
    pthread_mutex_lock(&lock);
    struct object *object = find(event, TYPE_EVENT);
    if (object)
        status = visible(object->command, status);
    pthread_mutex_unlock(&lock);
    return status;
}

/* The event's command, with a reference of the caller's; NULL if the layer does not know it. */
static struct command *command_of(cl_event event)
{
    pthread_mutex_lock(&lock);
    struct object *object = find(event, TYPE_EVENT);
    struct command *command = object ? object->command : NULL;
    if (command)
        command->refs++;
    pthread_mutex_unlock(&lock);
    return command;
}

static void put_command(struct command *command)
{
    pthread_mutex_lock(&lock);
    command_put(command);
    pthread_mutex_unlock(&lock);
    release_spent();
}

static cl_command_type type_of(int call)
{
    switch (call) {
#define TYPE(name, type)    \
    case FAULT_CALL_##name: \
        return CL_COMMAND_##type;
        TYPE(clEnqueueNDRangeKernel, NDRANGE_KERNEL)
        TYPE(clEnqueueTask, TASK)
        TYPE(clEnqueueNativeKernel, NATIVE_KERNEL)
        TYPE(clEnqueueReadBuffer, READ_BUFFER)
        TYPE(clEnqueueReadBufferRect, READ_BUFFER_RECT)
        TYPE(clEnqueueReadImage, READ_IMAGE)
        TYPE(clEnqueueWriteBuffer, WRITE_BUFFER)
        TYPE(clEnqueueWriteBufferRect, WRITE_BUFFER_RECT)
        TYPE(clEnqueueWriteImage, WRITE_IMAGE)
        TYPE(clEnqueueCopyBuffer, COPY_BUFFER)
        TYPE(clEnqueueCopyBufferRect, COPY_BUFFER_RECT)
        TYPE(clEnqueueCopyImage, COPY_IMAGE)
        TYPE(clEnqueueCopyImageToBuffer, COPY_IMAGE_TO_BUFFER)
        TYPE(clEnqueueCopyBufferToImage, COPY_BUFFER_TO_IMAGE)
        TYPE(clEnqueueFillBuffer, FILL_BUFFER)
        TYPE(clEnqueueFillImage, FILL_IMAGE)
        TYPE(clEnqueueMapBuffer, MAP_BUFFER)
        TYPE(clEnqueueMapImage, MAP_IMAGE)
        TYPE(clEnqueueUnmapMemObject, UNMAP_MEM_OBJECT)
        TYPE(clEnqueueMigrateMemObjects, MIGRATE_MEM_OBJECTS)
        TYPE(clEnqueueBarrierWithWaitList, BARRIER)
#undef TYPE
    default:
        return CL_COMMAND_MARKER;
    }
}

static cl_int CL_API_CALL fault_clGetEventInfo(cl_event event, cl_event_info info, size_t bytes, void *value,
                                               size_t *got)
{
    cl_int code = arrive_at(FAULT_CALL_clGetEventInfo, event);
    if (code)
        return code;
    struct command *command = command_of(event);
    if (!command)
        return next.clGetEventInfo(event, info, bytes, value, got);
    if (info == CL_EVENT_COMMAND_TYPE) {
        cl_command_type type = type_of(command->call);
        code = layer_answer(&type, sizeof type, bytes, value, got);
    } else if (info != CL_EVENT_COMMAND_EXECUTION_STATUS) {
        code = next.clGetEventInfo(event, info, bytes, value, got);
    } else if (command->faults.by[FAULT_KIND_STATUS_QUERY]) {
        struct line *line = command->faults.by[FAULT_KIND_STATUS_QUERY];
        if (!command->query_told)
            struck(line);
        command->query_told = true;
        code = line->plan.code;
    } else {
        cl_int status = visible_status(event);
        code = layer_answer(&status, sizeof status, bytes, value, got);
    }
    put_command(command);
    return code;
}

static cl_int real_profile(const struct command *command, cl_event event, cl_profiling_info info, cl_ulong *value)
{
    /* The marker behind a command ends when the command is seen to end; all else is the command's own. */
    cl_event of = command->head && info != CL_PROFILING_COMMAND_END ? command->head : event;
    cl_int code = next.clGetEventProfilingInfo(of, info, sizeof *value, value, NULL);
    *value += info == CL_PROFILING_COMMAND_END ? command->stretch_ns : 0;
    return code;
}

static cl_int CL_API_CALL fault_clGetEventProfilingInfo(cl_event event, cl_profiling_info info, size_t bytes,
                                                        void *value, size_t *got)
{
    cl_int code = arrive_at(FAULT_CALL_clGetEventProfilingInfo, event);
    if (code)
        return code;
    struct command *command = command_of(event);
    if (!command)
        return next.clGetEventProfilingInfo(event, info, bytes, value, got);
    struct line *line = command->faults.by[FAULT_KIND_PROFILE];
    cl_ulong time = 0, start = 0, end = 0;
    code = real_profile(command, event, info, &time);
    if (code == CL_SUCCESS && line) {
        real_profile(command, event, CL_PROFILING_COMMAND_START, &start);
        real_profile(command, event, CL_PROFILING_COMMAND_END, &end);
        if (line->plan.profile == FAULT_PROFILE_ERROR)
            code = CL_PROFILING_INFO_NOT_AVAILABLE;
        else if (line->plan.profile == FAULT_PROFILE_ZERO)
            time = 0;
        else if (line->plan.profile == FAULT_PROFILE_BACKWARDS && info == CL_PROFILING_COMMAND_START)
            time = end + 1;
        else if (line->plan.profile == FAULT_PROFILE_BACKWARDS && info == CL_PROFILING_COMMAND_END)
            time = start;
        else if (line->plan.profile == FAULT_PROFILE_HUGE && info == CL_PROFILING_COMMAND_END)
            time = start + (UINT64_C(1) << 62);
        if (!command->profile_told)
            struck(line);
        command->profile_told = true;
    }
    put_command(command);
    return code ? code : layer_answer(&time, sizeof time, bytes, value, got);
}

/* --- Callbacks ---------------------------------------------------------------------------------------------------- */

static void unlink_callback(struct callback *callback)
{
    *(callback->prev ? &callback->prev->next : &callbacks) = callback->next;
    if (callback->next)
        callback->next->prev = callback->prev;
}

static void free_callback(struct callback *callback)
{
    pthread_mutex_lock(&lock);
    unlink_callback(callback);
    command_put(callback->command);
    pthread_mutex_unlock(&lock);
    next.clReleaseEvent(callback->event);
    free(callback);
}

/* Call the application, as often and with what the plan says; the callback is over. */
static void deliver(struct callback *callback, cl_int status)
{
    struct line *line = callback->command->faults.by[FAULT_KIND_CALLBACK];
    if (line && line->plan.callback == FAULT_CALLBACK_WRONG_STATUS)
        status = status < 0 ? CL_COMPLETE : CL_OUT_OF_RESOURCES;
    if (line)
        struck(line);
    callback->fn(callback->event, status, callback->user);
    if (line && line->plan.callback == FAULT_CALLBACK_TWICE)
        callback->fn(callback->event, status, callback->user);
    free_callback(callback);
}

/* The driver's call. */
static void CL_CALLBACK on_callback(cl_event event, cl_int real, void *user)
{
    struct callback *callback = user;
    (void)event;
    pthread_mutex_lock(&lock);
    struct line *line = callback->command->faults.by[FAULT_KIND_CALLBACK];
    cl_int status = visible(callback->command, real);
    const bool over = callback->made, wait = status > CL_COMPLETE;
    const bool late = line && line->plan.callback == FAULT_CALLBACK_LATE;
    callback->made |= !wait;
    callback->status = status;
    if (!over && !wait && late)
        add_job(&(struct job){.kind = JOB_CALL, .due_ns = now_ns() + line->plan.time_ns, .callback = callback});
    pthread_mutex_unlock(&lock);
    if (over)
        free_callback(callback);
    else if (!wait && !late)
        deliver(callback, status);
}

/* Make the callbacks of what went with a device. Returns whether some are still to come. */
static bool deliver_doomed(void)
{
    bool left = false;
    for (;;) {
        struct callback *due = NULL, call = {0};
        left = false;
        pthread_mutex_lock(&lock);
        for (struct callback *callback = callbacks; callback && !due; callback = callback->next) {
            if (callback->made || !callback->command->doomed)
                continue;
            /* One whose command still runs is the driver's to make. */
            left = true;
            if (visible(callback->command, CL_RUNNING) < 0 || callback->command->faults.by[FAULT_KIND_NEVER_SEEN]) {
                due = callback;
                call = *callback;
                call.status = callback->command->doom_code;
                callback->made = true; /* it stays in the list: the driver knows its address */
            }
        }
        pthread_mutex_unlock(&lock);
        if (!due)
            return left;
        call.fn(call.event, call.status, call.user);
    }
}

static cl_int CL_API_CALL fault_clSetEventCallback(cl_event event, cl_int type,
                                                   void(CL_CALLBACK *fn)(cl_event, cl_int, void *), void *user)
{
    cl_int code = arrive_at(FAULT_CALL_clSetEventCallback, event);
    if (code)
        return code;
    struct command *command = fn && type == CL_COMPLETE ? command_of(event) : NULL;
    if (!command)
        return next.clSetEventCallback(event, type, fn, user);
    struct line *line = command->faults.by[FAULT_KIND_CALLBACK];
    if (line && (line->plan.callback == FAULT_CALLBACK_DROP || line->plan.callback == FAULT_CALLBACK_EARLY)) {
        struck(line);
        if (line->plan.callback == FAULT_CALLBACK_EARLY)
            fn(event, CL_COMPLETE, user);
        put_command(command);
        return CL_SUCCESS;
    }
    struct callback *callback = must_alloc(1, sizeof *callback);
    *callback = (struct callback){.fn = fn, .user = user, .event = event, .command = command};
    next.clRetainEvent(event);
    pthread_mutex_lock(&lock);
    callback->next = callbacks;
    if (callbacks)
        callbacks->prev = callback;
    callbacks = callback;
    if (command->doomed) {
        doom_pending = true;
        wake_ticker();
    }
    pthread_mutex_unlock(&lock);
    code = next.clSetEventCallback(event, type, on_callback, callback);
    if (code)
        free_callback(callback);
    return code;
}

/* --- Flushing and waiting ------------------------------------------------------------------------------------------- */

static void open_flush_gates(struct queue *queue)
{
    pthread_mutex_lock(&lock);
    struct flush_gate *gate = queue->flush_gates;
    queue->flush_gates = NULL;
    pthread_mutex_unlock(&lock);
    while (gate) {
        struct flush_gate *rest = gate->next;
        open_gate(gate->gate);
        free(gate);
        gate = rest;
    }
}

/* The queue, with a reference of the caller's; NULL if the layer does not know it. */
static struct queue *queue_of(const void *handle)
{
    pthread_mutex_lock(&lock);
    struct object *object = find(handle, TYPE_QUEUE);
    struct queue *queue = object ? object->queue : NULL;
    if (queue)
        queue->refs++;
    pthread_mutex_unlock(&lock);
    return queue;
}

static void put_queue(struct queue *queue)
{
    pthread_mutex_lock(&lock);
    queue_put(queue);
    pthread_mutex_unlock(&lock);
}

static void pass_flush(const void *handle)
{
    struct queue *queue = queue_of(handle);
    if (!queue)
        return;
    open_flush_gates(queue);
    put_queue(queue);
}

static bool is_dead(struct queue *queue)
{
    pthread_mutex_lock(&lock);
    bool dead = queue->context->dead & bit(queue->device);
    pthread_mutex_unlock(&lock);
    return dead;
}

static bool has_unseen(struct queue *queue)
{
    pthread_mutex_lock(&lock);
    bool has = queue->unseen > 0;
    pthread_mutex_unlock(&lock);
    return has;
}

static cl_int CL_API_CALL fault_clFlush(cl_command_queue handle)
{
    cl_int code = arrive_at(FAULT_CALL_clFlush, handle);
    if (code)
        return code;
    pass_flush(handle);
    return next.clFlush(handle);
}

/* With a plan in which devices vanish nobody may be inside a driver when it happens. */
static bool may_vanish(void)
{
    pthread_mutex_lock(&lock);
    bool may = active && active->vanishing;
    pthread_mutex_unlock(&lock);
    return may;
}

static cl_int finish_by_asking(struct queue *queue)
{
    cl_event marker;
    cl_int code = next.clEnqueueMarkerWithWaitList(queue->handle, 0, NULL, &marker);
    if (code)
        return code;
    next.clFlush(queue->handle);
    while (real_status(marker) > CL_COMPLETE && !is_dead(queue))
        sleep_ns(POLL_NS);
    next.clReleaseEvent(marker);
    return is_dead(queue) ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static cl_int CL_API_CALL fault_clFinish(cl_command_queue handle)
{
    cl_int code = arrive_at(FAULT_CALL_clFinish, handle);
    if (code)
        return code;
    struct queue *queue = queue_of(handle);
    if (!queue)
        return next.clFinish(handle);
    open_flush_gates(queue);
    code = may_vanish() ? finish_by_asking(queue) : next.clFinish(handle);
    while (code == CL_SUCCESS && has_unseen(queue) && !is_dead(queue))
        sleep_ns(POLL_NS);
    put_queue(queue);
    return code;
}

static void flush_of(cl_event event)
{
    struct command *command = command_of(event);
    if (!command)
        return;
    open_flush_gates(command->queue);
    pthread_mutex_lock(&lock);
    bool alive = command->queue->alive && next.clRetainCommandQueue(command->queue->handle) == CL_SUCCESS;
    pthread_mutex_unlock(&lock);
    if (alive) {
        next.clFlush(command->queue->handle);
        next.clReleaseCommandQueue(command->queue->handle);
    }
    put_command(command);
}

/* Wait by asking: the driver does not know the lies. */
static cl_int wait_by_asking(cl_uint count, const cl_event *events)
{
    bool failed = false;
    for (cl_uint i = 0; i < count; i++)
        flush_of(events[i]);
    for (cl_uint i = 0; i < count; i++) {
        cl_int status;
        while ((status = visible_status(events[i])) > CL_COMPLETE)
            sleep_ns(POLL_NS);
        failed |= status < 0;
    }
    return failed ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

static cl_int CL_API_CALL fault_clWaitForEvents(cl_uint count, const cl_event *events)
{
    cl_int code = arrive_at(FAULT_CALL_clWaitForEvents, count > 0 && events ? events[0] : NULL);
    if (code || count == 0 || !events)
        return code ? code : next.clWaitForEvents(count, events);
    bool ask = may_vanish();
    for (cl_uint i = 0; i < count; i++) {
        struct command *command = command_of(events[i]);
        if (!command)
            continue;
        for (int kind = 0; kind < FAULT_KINDS; kind++)
            ask |= command->faults.by[kind] != NULL;
        ask |= command->doomed;
        open_flush_gates(command->queue);
        put_command(command);
    }
    return ask ? wait_by_asking(count, events) : next.clWaitForEvents(count, events);
}

/* --- Commands --------------------------------------------------------------------------------------------------------- */

/* A command on its way to the driver: what it is to be given instead of what the application gave. */
struct issue {
    int call;
    struct queue *queue; /* NULL = one that the layer does not know: it is passed on as it is */
    struct faults faults;
    struct flips flips; /* what it brings to the host */
    cl_bool blocking, wait_here;
    cl_uint wait_count;
    const cl_event *wait;
    cl_event *own_wait;
    cl_event event, *event_place, *wanted; /* the driver's; where it writes it; where the application wants it */
    cl_event gate, flush_gate;
    bool skip; /* a marker instead */
};

static cl_event new_gate(const struct queue *queue)
{
    cl_int code;
    if (devices[queue->device].gateless) {
        fprintf(stderr, "layer_fault: %s does not bear user events, so a command is not held back\n",
                devices[queue->device].name);
        return NULL;
    }
    cl_event gate = next.clCreateUserEvent(queue->context_handle, &code);
    if (!gate)
        fprintf(stderr, "layer_fault: no user event (%d), so a command is not held back\n", code);
    return gate;
}

/* Begin a command. Returns the error that it is to answer with, or CL_SUCCESS. */
static cl_int issue_begin(struct issue *issue, int call, cl_command_queue handle, cl_bool blocking, cl_uint wait_count,
                          const cl_event *wait, cl_event *event)
{
    *issue = (struct issue){.call = call,
                            .queue = queue_of(handle),
                            .blocking = blocking,
                            .wait_count = wait_count,
                            .wait = wait,
                            .wanted = event,
                            .event_place = event};
    struct queue *queue = issue->queue;
    if (!queue)
        return CL_SUCCESS;
    cl_int code = arrive(call, bit(queue->device), queue->context, event != NULL, &issue->faults);
    if (code) {
        put_queue(queue);
        issue->queue = NULL;
        return code;
    }
    return CL_SUCCESS;
}

/* What there is to corrupt is known too: have the command wait for what it is to wait for. */
static void issue_prepare(struct issue *issue)
{
    struct queue *queue = issue->queue;
    struct line **by = issue->faults.by;
    const uint32_t classes = fault_call_classes(issue->call);
    const cl_uint wait_count = issue->wait_count;
    const cl_event *wait = issue->wait;
    bool any = issue->flips.line != NULL;
    if (!queue)
        return;
    if (issue->blocking)
        open_flush_gates(queue);
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        any |= by[kind] && kind != FAULT_KIND_HANG && kind != FAULT_KIND_CORRUPT;
    if (!any && !issue->wanted)
        return;
    issue->event_place = &issue->event;
    if (any && issue->blocking) {
        issue->blocking = CL_FALSE;
        issue->wait_here = CL_TRUE;
    }
    if (by[FAULT_KIND_LATE] || by[FAULT_KIND_NEVER])
        issue->gate = new_gate(queue);
    if (by[FAULT_KIND_NEEDS_FLUSH])
        issue->flush_gate = new_gate(queue);
    if (issue->gate || issue->flush_gate) {
        issue->own_wait = must_alloc(wait_count + 2u, sizeof *issue->own_wait);
        if (wait_count && wait)
            memcpy(issue->own_wait, wait, wait_count * sizeof *wait);
        if (issue->gate)
            issue->own_wait[issue->wait_count++] = issue->gate;
        if (issue->flush_gate)
            issue->own_wait[issue->wait_count++] = issue->flush_gate;
        issue->wait = issue->own_wait;
    }
    /* What gives a pointer, or takes one back, runs all the same. */
    issue->skip = by[FAULT_KIND_STATUS] && !(classes & (FAULT_MAP | FAULT_UNMAP));
}

/* A marker behind the command, which waits for a gate that the ticker opens. On return the event is the marker's. Without
 * gates all that happens here and now. */
static void add_tail(struct issue *issue, struct command *command)
{
    struct job job = {.kind = JOB_TAIL, .head = issue->event, .flips = issue->flips, .command = command};
    cl_event marker;
    if (devices[issue->queue->device].gateless) {
        next.clWaitForEvents(1, &job.head);
        begin_tail(&job);
        uint64_t now = now_ns();
        command->stretch_ns = job.due_ns > now ? job.due_ns - now : 0;
        sleep_ns(command->stretch_ns);
        return;
    }
    job.gate = new_gate(issue->queue);
    const cl_event wait[] = {job.head, job.gate};
    if (!job.gate)
        return;
    if (next.clEnqueueMarkerWithWaitList(issue->queue->handle, 2, wait, &marker) != CL_SUCCESS) {
        open_gate(job.gate);
        return;
    }
    issue->event = marker;
    pthread_mutex_lock(&lock);
    command->head = job.head; /* released with the command, since the application may ask for its times */
    command->hold = TAILED;
    add_job(&job);
    pthread_mutex_unlock(&lock);
}

static void issue_failed(struct issue *issue)
{
    if (issue->gate)
        open_gate(issue->gate);
    if (issue->flush_gate)
        open_gate(issue->flush_gate);
}

/* The command is in the driver's queue, with an event. */
static cl_int issue_made(struct issue *issue)
{
    struct queue *queue = issue->queue;
    struct line **by = issue->faults.by;
    struct command *command = must_alloc(1, sizeof *command);
    *command = (struct command){
        .refs = 1, .call = issue->call, .queue = queue, .faults = issue->faults, .enqueued_ns = now_ns()};
    pthread_mutex_lock(&lock);
    queue->refs++;
    pthread_mutex_unlock(&lock);
    if (issue->gate) {
        /* The queue stays until it is empty: the last release of one waits in some drivers. */
        next.clRetainCommandQueue(queue->handle);
        next.clRetainEvent(issue->event);
        command->hold = HELD;
        pthread_mutex_lock(&lock);
        if (by[FAULT_KIND_NEVER])
            struck(by[FAULT_KIND_NEVER]);
        else {
            struck(by[FAULT_KIND_LATE]);
            add_job(&(struct job){.kind = JOB_OPEN,
                                  .due_ns = command->enqueued_ns + by[FAULT_KIND_LATE]->plan.time_ns,
                                  .gate = issue->gate,
                                  .head = issue->event,
                                  .queue = queue->handle,
                                  .command = command});
        }
        pthread_mutex_unlock(&lock);
    }
    if (issue->flush_gate) {
        struct flush_gate *gate = must_alloc(1, sizeof *gate);
        gate->gate = issue->flush_gate;
        struck(by[FAULT_KIND_NEEDS_FLUSH]);
        pthread_mutex_lock(&lock);
        gate->next = queue->flush_gates;
        queue->flush_gates = gate;
        pthread_mutex_unlock(&lock);
    }
    if (issue->flips.line || by[FAULT_KIND_SLOW] || by[FAULT_KIND_LATE_SEEN])
        add_tail(issue, command);
    pthread_mutex_lock(&lock);
    if (by[FAULT_KIND_NEVER_SEEN]) {
        queue->unseen++;
        struck(by[FAULT_KIND_NEVER_SEEN]);
    }
    enter_object(issue->event, TYPE_EVENT, bit(queue->device), queue->context)->command = command;
    if (queue->context->dead & bit(queue->device)) /* it vanished while the driver took the command */
        doom(command, bit(queue->device), devices[queue->device].code);
    pthread_mutex_unlock(&lock);
    cl_int code = CL_SUCCESS;
    if (issue->wait_here) {
        wait_by_asking(1, &issue->event);
        cl_int status = visible_status(issue->event);
        code = status < 0 ? status : CL_SUCCESS;
    }
    if (issue->wanted)
        *issue->wanted = issue->event;
    else {
        released(issue->event);
        next.clReleaseEvent(issue->event);
    }
    return code;
}

/* The driver has answered. */
static cl_int issue_end(struct issue *issue, cl_int code)
{
    if (code)
        issue_failed(issue);
    else if (issue->queue && issue->event_place == &issue->event)
        code = issue_made(issue);
    free(issue->own_wait);
    if (issue->queue)
        put_queue(issue->queue);
    return code;
}

static cl_int issue_marker(struct issue *issue, cl_command_queue queue)
{
    return next.clEnqueueMarkerWithWaitList(queue, issue->wait_count, issue->wait, issue->event_place);
}

#define WAIT cl_uint wait_count, const cl_event *wait, cl_event *event
#define REST issue.wait_count, issue.wait, issue.event_place

/* A command without more to it than that. */
#define COMMAND(name, block, decl, args)                                                             \
    static cl_int CL_API_CALL fault_##name decl                                                      \
    {                                                                                                \
        struct issue issue;                                                                          \
        cl_int code = issue_begin(&issue, FAULT_CALL_##name, queue, block, wait_count, wait, event); \
        if (code)                                                                                    \
            return code;                                                                             \
        issue_prepare(&issue);                                                                       \
        code = issue.skip ? issue_marker(&issue, queue) : next.name args;                            \
        return issue_end(&issue, code);                                                              \
    }

COMMAND(clEnqueueTask, CL_FALSE, (cl_command_queue queue, cl_kernel k, WAIT), (queue, k, REST))
COMMAND(clEnqueueNativeKernel, CL_FALSE,
        (cl_command_queue queue, void(CL_CALLBACK *fn)(void *), void *a, size_t n, cl_uint m, const cl_mem *l,
         const void **p, WAIT),
        (queue, fn, a, n, m, l, p, REST))
COMMAND(clEnqueueReadImage, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *o, const size_t *r, size_t rp, size_t sp,
         void *p, WAIT),
        (queue, m, issue.blocking, o, r, rp, sp, p, REST))
COMMAND(clEnqueueWriteImage, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *o, const size_t *r, size_t rp, size_t sp,
         const void *p, WAIT),
        (queue, m, issue.blocking, o, r, rp, sp, p, REST))
COMMAND(clEnqueueWriteBuffer, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, size_t o, size_t n, const void *p, WAIT),
        (queue, m, issue.blocking, o, n, p, REST))
COMMAND(clEnqueueWriteBufferRect, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *o, const size_t *ho, const size_t *r,
         size_t rp, size_t sp, size_t hrp, size_t hsp, const void *p, WAIT),
        (queue, m, issue.blocking, o, ho, r, rp, sp, hrp, hsp, p, REST))
COMMAND(clEnqueueCopyBufferRect, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, const size_t *o, const size_t *p, const size_t *r, size_t rp,
         size_t sp, size_t rq, size_t sq, WAIT),
        (queue, a, b, o, p, r, rp, sp, rq, sq, REST))
COMMAND(clEnqueueCopyImage, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, const size_t *o, const size_t *p, const size_t *r, WAIT),
        (queue, a, b, o, p, r, REST))
COMMAND(clEnqueueCopyImageToBuffer, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, const size_t *o, const size_t *r, size_t n, WAIT),
        (queue, a, b, o, r, n, REST))
COMMAND(clEnqueueCopyBufferToImage, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, size_t n, const size_t *o, const size_t *r, WAIT),
        (queue, a, b, n, o, r, REST))
COMMAND(clEnqueueFillBuffer, CL_FALSE,
        (cl_command_queue queue, cl_mem m, const void *p, size_t pn, size_t o, size_t n, WAIT),
        (queue, m, p, pn, o, n, REST))
COMMAND(clEnqueueFillImage, CL_FALSE,
        (cl_command_queue queue, cl_mem m, const void *p, const size_t *o, const size_t *r, WAIT),
        (queue, m, p, o, r, REST))
COMMAND(clEnqueueUnmapMemObject, CL_FALSE, (cl_command_queue queue, cl_mem m, void *p, WAIT), (queue, m, p, REST))
COMMAND(clEnqueueMigrateMemObjects, CL_FALSE,
        (cl_command_queue queue, cl_uint n, const cl_mem *m, cl_mem_migration_flags f, WAIT), (queue, n, m, f, REST))
COMMAND(clEnqueueMarkerWithWaitList, CL_FALSE, (cl_command_queue queue, WAIT), (queue, REST))
COMMAND(clEnqueueBarrierWithWaitList, CL_FALSE, (cl_command_queue queue, WAIT), (queue, REST))

/* --- Commands: wrong results -------------------------------------------------------------------------------------------- */

/* Under the lock: bytes [from, to) of the buffer are the kernel's, and wrong. */
static void taint(struct mem *mem, size_t from, size_t to, struct lie *lie)
{
    struct taint *fresh = must_alloc(1, sizeof *fresh);
    struct taint **place = &mem->root->taints;
    *fresh = (struct taint){.lie = lie, .from = mem->from + from, .to = mem->from + to};
    lie->refs++;
    while (*place) { /* those that have been told need not be remembered */
        struct taint *old = *place;
        if (!old->lie->told) {
            place = &old->next;
            continue;
        }
        *place = old->next;
        taint_free(old);
    }
    *place = fresh;
}

/* A kernel whose results are to be wrong: what it may write is. */
static void taint_outputs(const struct issue *issue, cl_kernel kernel)
{
    struct line *line = issue->faults.by[FAULT_KIND_CORRUPT];
    if (!line || !issue->queue)
        return;
    struct lie *lie = must_alloc(1, sizeof *lie);
    *lie = (struct lie){.refs = 1, .line = line};
    pthread_mutex_lock(&lock);
    const struct object *object = find(kernel, TYPE_KERNEL);
    for (int i = 0; object && object->args && i < ARGS_MAX; i++) {
        const struct object *of = find(object->args[i], TYPE_MEM);
        if (of && !(of->mem->flags & CL_MEM_READ_ONLY))
            taint(of->mem, 0, of->mem->bytes, lie);
    }
    if (--lie->refs == 0)
        free(lie);
    pthread_mutex_unlock(&lock);
}

/* A copy takes wrong results along. */
static void taint_copy(cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t bytes)
{
    pthread_mutex_lock(&lock);
    const struct object *source = find(from, TYPE_MEM), *target = find(to, TYPE_MEM);
    if (source && target && source->mem->root != target->mem->root) {
        size_t first = source->mem->from + from_offset;
        for (struct taint *t = source->mem->root->taints; t; t = t->next) {
            size_t low = t->from > first ? t->from : first;
            size_t high = t->to < first + bytes ? t->to : first + bytes;
            if (!t->lie->told && low < high)
                taint(target->mem, to_offset + (low - first), to_offset + (high - first), t->lie);
        }
    }
    pthread_mutex_unlock(&lock);
}

/* A command brings bytes [offset, offset + bytes) of the buffer to the host: what of them is to be wrong there? Leaves
 * open where they go. */
static void find_flips(struct issue *issue, cl_mem mem, size_t offset, size_t bytes)
{
    struct line *line = issue->faults.by[FAULT_KIND_CORRUPT];
    if (!issue->queue)
        return;
    if (line) {
        issue->flips = (struct flips){.line = line, .region = {.row_bytes = bytes, .rows = 1, .slices = 1}};
        return;
    }
    pthread_mutex_lock(&lock);
    const struct object *object = find(mem, TYPE_MEM);
    size_t first = object ? object->mem->from + offset : 0;
    for (struct taint *t = object ? object->mem->root->taints : NULL; t; t = t->next) {
        size_t low = t->from > first ? t->from : first;
        size_t high = t->to < first + bytes ? t->to : first + bytes;
        if (t->lie->told || low >= high)
            continue;
        t->lie->told = true;
        issue->flips = (struct flips){
            .line = t->lie->line, .offset = low - first, .region = {.row_bytes = high - low, .rows = 1, .slices = 1}};
        break;
    }
    pthread_mutex_unlock(&lock);
}

static cl_int CL_API_CALL fault_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                                                       const size_t *offset, const size_t *global, const size_t *local,
                                                       WAIT)
{
    struct issue issue;
    cl_int code = issue_begin(&issue, FAULT_CALL_clEnqueueNDRangeKernel, queue, CL_FALSE, wait_count, wait, event);
    if (code)
        return code;
    issue_prepare(&issue);
    code = issue.skip ? issue_marker(&issue, queue)
                      : next.clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, REST);
    if (code == CL_SUCCESS)
        taint_outputs(&issue, kernel);
    return issue_end(&issue, code);
}

static cl_int CL_API_CALL fault_clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                                                    size_t to_offset, size_t bytes, WAIT)
{
    struct issue issue;
    cl_int code = issue_begin(&issue, FAULT_CALL_clEnqueueCopyBuffer, queue, CL_FALSE, wait_count, wait, event);
    if (code)
        return code;
    issue_prepare(&issue);
    code = issue.skip ? issue_marker(&issue, queue)
                      : next.clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes, REST);
    if (code == CL_SUCCESS)
        taint_copy(from, to, from_offset, to_offset, bytes);
    return issue_end(&issue, code);
}

static cl_int CL_API_CALL fault_clEnqueueReadBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t offset,
                                                    size_t bytes, void *host, WAIT)
{
    struct issue issue;
    cl_int code = issue_begin(&issue, FAULT_CALL_clEnqueueReadBuffer, queue, blocking, wait_count, wait, event);
    if (code)
        return code;
    find_flips(&issue, mem, offset, bytes);
    issue.flips.region.host = (char *)host + issue.flips.offset;
    issue_prepare(&issue);
    code = issue.skip ? issue_marker(&issue, queue)
                      : next.clEnqueueReadBuffer(queue, mem, issue.blocking, offset, bytes, host, REST);
    return issue_end(&issue, code);
}

static cl_int CL_API_CALL fault_clEnqueueReadBufferRect(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                                        const size_t *mem_origin, const size_t *host_origin,
                                                        const size_t *region, size_t mem_row, size_t mem_slice,
                                                        size_t host_row, size_t host_slice, void *host, WAIT)
{
    struct issue issue;
    cl_int code = issue_begin(&issue, FAULT_CALL_clEnqueueReadBufferRect, queue, blocking, wait_count, wait, event);
    if (code)
        return code;
    if (region && host_origin && mem_origin) {
        size_t row = host_row ? host_row : region[0], slice = host_slice ? host_slice : row * region[1];
        size_t from_row = mem_row ? mem_row : region[0], from_slice = mem_slice ? mem_slice : from_row * region[1];
        size_t first = mem_origin[2] * from_slice + mem_origin[1] * from_row + mem_origin[0];
        find_flips(&issue, mem, first, region[2] * from_slice);
        issue.flips.region = (struct region){(char *)host + host_origin[2] * slice + host_origin[1] * row +
                                                 host_origin[0],
                                             region[0],
                                             region[1],
                                             region[2],
                                             row,
                                             slice};
    }
    issue_prepare(&issue);
    code = issue.skip ? issue_marker(&issue, queue)
                      : next.clEnqueueReadBufferRect(queue, mem, issue.blocking, mem_origin, host_origin, region,
                                                     mem_row, mem_slice, host_row, host_slice, host, REST);
    return issue_end(&issue, code);
}

static void *CL_API_CALL fault_clEnqueueMapBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                                  cl_map_flags flags, size_t offset, size_t bytes, WAIT, cl_int *error)
{
    struct issue issue;
    void *pointer = NULL;
    cl_int code = issue_begin(&issue, FAULT_CALL_clEnqueueMapBuffer, queue, blocking, wait_count, wait, event);
    if (code == CL_SUCCESS) {
        if (flags & CL_MAP_READ)
            find_flips(&issue, mem, offset, bytes);
        issue_prepare(&issue);
        pointer = next.clEnqueueMapBuffer(queue, mem, issue.blocking, flags, offset, bytes, REST, &code);
        issue.flips.region.host = (char *)pointer + issue.flips.offset;
        code = issue_end(&issue, code);
    }
    if (error)
        *error = code;
    return pointer;
}

static void *CL_API_CALL fault_clEnqueueMapImage(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                                 cl_map_flags flags, const size_t *origin, const size_t *region,
                                                 size_t *row_pitch, size_t *slice_pitch, WAIT, cl_int *error)
{
    struct issue issue;
    void *pointer = NULL;
    cl_int code = issue_begin(&issue, FAULT_CALL_clEnqueueMapImage, queue, blocking, wait_count, wait, event);
    if (code == CL_SUCCESS) {
        issue_prepare(&issue);
        pointer = next.clEnqueueMapImage(queue, mem, issue.blocking, flags, origin, region, row_pitch, slice_pitch,
                                         REST, &code);
        code = issue_end(&issue, code);
    }
    if (error)
        *error = code;
    return pointer;
}

/* --- Plans and reports ---------------------------------------------------------------------------------------------------- */

/* Put a plan in force, in the place of the one before; devices that had vanished are back. */
EXPORT int cox_fault_load(const char *text, char *why, size_t why_bytes)
{
    struct fault_plan *plan = fault_plan_parse(text, strlen(text), "plan", why, why_bytes);
    if (!plan)
        return -1;
    struct active *fresh = must_alloc(1, sizeof *fresh);
    *fresh = (struct active){.line_count = plan->line_count,
                             .begin_ns = now_ns(),
                             .lines = must_alloc(plan->line_count, sizeof *fresh->lines)};
    for (uint32_t i = 0; i < plan->line_count; i++) {
        fresh->lines[i].plan = plan->lines[i];
        fresh->vanishing |= plan->lines[i].kind == FAULT_KIND_VANISH;
    }
    fault_plan_free(&plan);
    pthread_mutex_lock(&lock);
    for (uint32_t d = 0; d < device_count; d++) {
        devices[d].gone = false;
        for (uint32_t i = 0; i < fresh->line_count; i++)
            if (line_is_about(&fresh->lines[i].plan, &devices[d]))
                fresh->lines[i].devices |= bit(d);
    }
    fresh->older = active;
    active = fresh;
    pthread_mutex_unlock(&lock);
    return 0;
}

EXPORT uint64_t cox_fault_count(unsigned line, int what)
{
    uint64_t count = 0;
    pthread_mutex_lock(&lock);
    if (active && line < active->line_count) {
        const struct line *of = &active->lines[line];
        count = what == 0 ? of->matched : what == 1 ? of->chosen : atomic_load(&of->struck);
    }
    pthread_mutex_unlock(&lock);
    return count;
}

EXPORT int cox_fault_write(const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stderr : fopen(path, "w");
    if (!file)
        return -1;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; active && i < active->line_count; i++) {
        const struct line *line = &active->lines[i];
        fprintf(file, "line %u matched %llu chosen %llu struck %llu: %s\n", (unsigned)line->plan.number,
                (unsigned long long)line->matched, (unsigned long long)line->chosen,
                (unsigned long long)atomic_load(&line->struck), line->plan.text);
    }
    pthread_mutex_unlock(&lock);
    int failed = ferror(file);
    if (file != stderr)
        failed |= fclose(file);
    return failed ? -1 : 0;
}

/* The whole file, with a NUL behind it; NULL if it cannot be read. */
static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t bytes = 0, room = 4096;
    char *text = file ? must_alloc(room, 1) : NULL;
    while (text) {
        bytes += fread(text + bytes, 1, room - bytes - 1, file);
        if (bytes + 1 < room)
            break;
        char *larger = realloc(text, room *= 2);
        if (!larger)
            abort();
        text = larger;
    }
    if (text) {
        text[bytes] = 0;
        if (ferror(file) || strlen(text) != bytes) {
            free(text);
            text = NULL;
        }
    }
    if (file)
        fclose(file);
    return text;
}

/* A plan that cannot be followed ends the program: going on without faults would look like a test passed. */
static void load_from_environment(void)
{
    static const char inline_plan[] = "plan:";
    const char *plan = getenv("COX_FAULT_PLAN");
    char why[512];
    if (!plan || !*plan)
        return;
    bool is_text = strncmp(plan, inline_plan, sizeof inline_plan - 1) == 0;
    char *text = is_text ? strdup(plan + sizeof inline_plan - 1) : read_whole(plan);
    if (!text) {
        fprintf(stderr, "layer_fault: cannot read the plan %s\n", plan);
        _exit(2);
    }
    if (cox_fault_load(text, why, sizeof why) != 0) {
        fprintf(stderr, "layer_fault: %s%s%s\n", is_text ? "" : plan, is_text ? "" : ": ", why);
        _exit(2);
    }
    free(text);
}

/* Before the drivers go: nothing happens any more. Gates that are closed stay so; what was never to run does not. */
static void stop_ticker(void)
{
    pthread_mutex_lock(&lock);
    bool runs = ticker_runs;
    ticker_stops = true;
    ticker_runs = false;
    if (runs)
        pthread_cond_signal(&ticker_wakes);
    pthread_mutex_unlock(&lock);
    if (runs && !pthread_equal(ticker, pthread_self())) {
        struct timespec limit;
        clock_gettime(CLOCK_REALTIME, &limit);
        limit.tv_sec += 2;
        pthread_timedjoin_np(ticker, NULL, &limit); /* it may be in a callback that does not return */
    }
}

/* After the program's own exit handlers. */
__attribute__((destructor)) static void report_at_exit(void)
{
    const char *path = getenv("COX_FAULT_REPORT");
    if (next.clGetPlatformIDs && path && *path && cox_fault_write(path) != 0)
        fprintf(stderr, "layer_fault: cannot write %s\n", path);
}

/* --- The loader's side ------------------------------------------------------------------------------------------------------ */

EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info info, size_t bytes, void *value, size_t *got)
{
    return layer_info("coxswain fault", info, bytes, value, got);
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target, cl_uint *entries_ret,
                                                   const cl_icd_dispatch **table)
{
    static cl_icd_dispatch ours;
    const cl_uint known = sizeof ours / sizeof ours.clGetPlatformIDs;
    if (!target || !entries_ret || !table || entries < known)
        return CL_INVALID_VALUE;
    next = *target;
    ours = *target; /* what the layer does not stand in front of goes straight on */
#define X(name, classes) \
    if (next.name)       \
        ours.name = fault_##name;
    FAULT_CALLS(X)
#undef X
    load_from_environment();
    atexit(stop_ticker);
    *table = &ours;
    *entries_ret = known;
    return CL_SUCCESS;
}
