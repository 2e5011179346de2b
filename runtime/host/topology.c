/* The reserved core, and the affinity masks that follow from it.
 *
 * How the core is kept free. A CPU platform starts its worker threads inside its first call. A new
 * thread inherits the mask of the thread that creates it. So the calling thread leaves the core
 * before that call (enter), and the workers never run on it. After the call the thread gets its own
 * mask back (leave). Nothing else in the process changes, except that workers born in a bracket get
 * the core back if no core is reserved in the end.
 *
 * The machine is read once, at creation (machine.h). From then on a table and three masks are
 * enough. The system calls are plain sched_setaffinity, which restores a mask exactly.
 *
 * enter and leave run on application threads and worker threads; decide runs on the application
 * thread that creates the runtime.
 *
 * Lock order: `lock` is the only lock; the logger is never called with it held.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* cpu_mask.h, pthread_setname_np */
#endif
#include "topology.h"
#include "machine.h"
#include "thread_list.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AUTO_CORES_MIN = 3 };

/* A thread between enter and leave. */
struct bracket {
    struct bracket *next;
    pid_t thread;
    uint32_t depth;
    bool narrowed; /* the mask was changed and must be restored */
    struct cox__cpu_mask before;
};

struct cox__topology {
    struct cox__log log;
    enum cox_reserve reserve;
    struct cox__machine machine;
    struct cox__cpu_mask allowed; /* what this process may use */

    pthread_mutex_t lock; /* guards what follows */
    bool active;          /* enter leaves the core */
    bool decided;
    bool reserved;
    bool bind;
    bool kept_off;
    char reason[160];
    struct bracket *brackets; /* threads between enter and leave */
    bool noted;               /* the first bracket has ended */
    bool note_known;          /* /proc could be read before and after the first bracket */
    bool note_narrowed;
    pid_t note_thread; /* the thread of the first bracket; 0 = no bracket yet */
    struct cox__thread_list before;
    struct cox__thread_list born; /* threads that appeared during the first bracket */
};

/* The CPUs of this process, for a machine that cannot be read. */
static uint32_t count_cpus(bool mask_known, const struct cox__cpu_mask *allowed)
{
    if (mask_known)
        return cox__cpu_mask_count(allowed);

    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

cox_status cox__topology_create(struct cox__topology **out, enum cox_reserve reserve,
                                uint32_t reserve_cpu, const struct cox__log *log)
{
    *out = NULL;
    if ((int)reserve < COX_RESERVE_AUTO || reserve > COX_RESERVE_CORE) {
        cox__log(log, COX_LOG_ERROR, "reserve: %d is not a value of enum cox_reserve",
                 (int)reserve);
        return COX_E_INVALID;
    }

    struct cox__cpu_mask allowed;
    bool mask_known = cox__cpu_mask_get(0, &allowed);
    if (reserve == COX_RESERVE_CORE && mask_known && !cox__cpu_mask_has(&allowed, reserve_cpu)) {
        cox__log(log, COX_LOG_ERROR,
                 "reserve: CPU %u does not exist, or this process may not use it", reserve_cpu);
        return COX_E_INVALID;
    }

    struct cox__topology *self = calloc(1, sizeof *self);
    if (!self)
        return COX_E_NOMEM;

    if (log)
        self->log = *log;
    self->reserve = reserve;
    self->allowed = allowed;

    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        free(self);
        return COX_E_SYSTEM;
    }

    const uint32_t *wanted_cpu = NULL;
    if (reserve == COX_RESERVE_CORE)
        wanted_cpu = &reserve_cpu;

    char why[96] = "the system does not list this process's CPUs";
    bool chosen = mask_known &&
                  cox__machine_read(&self->machine, &allowed, wanted_cpu, why, sizeof why);
    if (!chosen && self->machine.core_count == 0) { /* the counts are useful even so */
        self->machine.cpus = count_cpus(mask_known, &allowed);
        self->machine.core_count = self->machine.cpus;
    }

    if (reserve == COX_RESERVE_OFF)
        snprintf(self->reason, sizeof self->reason, "none: switched off");
    else if (!chosen)
        snprintf(self->reason, sizeof self->reason, "none: %s", why);
    else if (self->machine.core_count < 2)
        snprintf(self->reason, sizeof self->reason, "none: the machine has only one core");
    else if (reserve == COX_RESERVE_AUTO && self->machine.core_count < AUTO_CORES_MIN)
        snprintf(
            self->reason, sizeof self->reason,
            "none: %u cores, and a core is reserved only if there are %d or more; it would be CPU "
            "%u (%s)",
            self->machine.core_count, AUTO_CORES_MIN, self->machine.chosen_cpu,
            self->machine.chosen_why);
    else
        self->active = true;

    if (!self->active && reserve != COX_RESERVE_OFF) {
        enum cox_log_level level = COX_LOG_INFO;
        if (reserve != COX_RESERVE_AUTO || !chosen)
            level = COX_LOG_WARN;
        cox__log(&self->log, level, "reserved core: %s", self->reason);
    }

    *out = self;
    return COX_OK;
}

/* ---- brackets ---- */

void cox__topology_enter(struct cox__topology *self)
{
    if (!self)
        return;

    const char *trouble = NULL;
    pid_t thread = cox__thread_list_number();

    pthread_mutex_lock(&self->lock);
    struct bracket *bracket = self->brackets;
    while (bracket && bracket->thread != thread)
        bracket = bracket->next;

    if (bracket) {
        bracket->depth++;
        goto done;
    }

    if (!self->active)
        goto done;

    bracket = calloc(1, sizeof *bracket);
    if (!bracket) {
        trouble = "no memory to leave the reserved core";
        goto done;
    }

    bracket->thread = thread;
    bracket->depth = 1;
    bracket->next = self->brackets;
    self->brackets = bracket;

    if (!cox__cpu_mask_get(0, &bracket->before)) {
        trouble = "the calling thread's mask cannot be read";
    } else {
        struct cox__cpu_mask narrow = cox__cpu_mask_without(&bracket->before, &self->machine.whole);
        if (cox__cpu_mask_count(&narrow) == 0)
            trouble =
                "the calling thread may run on the reserved core only, and so may the workers that "
                "it starts";
        else if (cox__cpu_mask_meets(&bracket->before, &self->machine.whole)) {
            bracket->narrowed = cox__cpu_mask_set(0, &narrow);
            if (!bracket->narrowed)
                trouble = "the system refuses to move the calling thread off the reserved core";
        }
    }

    if (self->note_thread == 0) {
        self->note_thread = thread;
        self->before = cox__thread_list_read(NULL);
    }

done:
    pthread_mutex_unlock(&self->lock);
    if (trouble)
        cox__log(&self->log, COX_LOG_WARN, "reserved core: %s", trouble);
}

void cox__topology_leave(struct cox__topology *self)
{
    if (!self)
        return;

    bool stuck = false;
    pid_t thread = cox__thread_list_number();
    pthread_mutex_lock(&self->lock);

    struct bracket **link = &self->brackets;
    while (*link && (*link)->thread != thread)
        link = &(*link)->next;
    struct bracket *bracket = *link;

    if (bracket && --bracket->depth == 0) {
        if (!self->noted && self->note_thread == thread) {
            self->noted = true;
            self->note_narrowed = bracket->narrowed;
            if (self->before.known)
                self->born = cox__thread_list_read(&self->before);
            self->note_known = self->born.known;
            cox__thread_list_clear(&self->before);
        }

        if (bracket->narrowed)
            stuck = !cox__cpu_mask_set(0, &bracket->before);
        *link = bracket->next;
        free(bracket);
    }

    pthread_mutex_unlock(&self->lock);
    if (stuck)
        cox__log(&self->log, COX_LOG_WARN,
                 "reserved core: the system refuses to restore the calling thread's CPU mask");
}

/* ---- the decision ---- */

/* Give the core back to the threads that the first bracket kept off it. Needs the lock, except in
 * cox__topology_destroy. */
static void release_born(struct cox__topology *self)
{
    if (!self->note_narrowed)
        return;

    for (size_t i = 0; i < self->born.count; i++) {
        struct cox__cpu_mask mask;
        pid_t id = self->born.ids[i];
        if (!cox__thread_list_is_ours(id) || !cox__cpu_mask_get(id, &mask) ||
            cox__cpu_mask_meets(&mask, &self->machine.whole))
            continue;

        CPU_OR_S(sizeof mask.set, mask.set, mask.set, self->machine.core.set);
        cox__cpu_mask_set(id, &mask); /* fails if the thread has ended: then it needs no mask */
    }
}

/* Count the `threads` that may not run on the core, and those pinned to it or to a part of the
 * machine that contains it. A thread that may run on all CPUs counts as neither, because it is not
 * a worker that was born in a bracket. It is an application's thread or a driver's housekeeping
 * (Mesa's disk cache gives itself every CPU). Scheduler threads, each bound to a core, do not count
 * either. */
static void count_off(const struct cox__topology *self, const struct cox__thread_list *threads,
                      uint32_t *off, uint32_t *pinned)
{
    *off = *pinned = 0;

    for (size_t i = 0; i < threads->count; i++) {
        struct cox__cpu_mask mask;
        char path[64], name[32] = "";

        snprintf(path, sizeof path, "/proc/self/task/%ld/comm", (long)threads->ids[i]);
        FILE *file = fopen(path, "re");
        if (!file)
            continue; /* it has ended */

        bool named = fgets(name, sizeof name, file) != NULL;
        fclose(file);
        if (named && strcmp(name, COX__SCHEDULER_NAME "\n") == 0)
            continue;

        if (!cox__cpu_mask_get(threads->ids[i], &mask))
            continue;

        if (!cox__cpu_mask_meets(&mask, &self->machine.whole)) {
            ++*off;
            continue;
        }

        struct cox__cpu_mask missing = cox__cpu_mask_without(&self->allowed, &mask);
        if (cox__cpu_mask_count(&missing) > 0)
            ++*pinned;
    }
}

/* A core is reserved: decide whether the scheduler thread is bound to it, and whether the workers
 * stay off it. Needs the lock. Writes the second half of the reason to `tail`, and returns the
 * level to log it with. */
static enum cox_log_level judge_workers(struct cox__topology *self, bool cpu_device, char *tail,
                                        size_t tail_bytes)
{
    const uint32_t workers = self->machine.cpus - self->machine.chosen_cpu_count;
    uint32_t off = 0, pinned = 0;
    count_off(self, &self->born, &off, &pinned);

    if (!cpu_device) {
        self->bind = true;
        self->kept_off = pinned == 0;
        snprintf(tail, tail_bytes, "no CPU device takes part");
        return COX_LOG_INFO;
    }

    if (!self->note_known) {
        /* The bracket has kept the workers off, but only /proc could show it. */
        self->bind = self->note_narrowed;
        snprintf(tail, tail_bytes, "without /proc it is unknown whether workers stay off it");
        return COX_LOG_WARN;
    }

    if (pinned > 0) {
        snprintf(tail, tail_bytes, "but a worker bound itself to it (%u in all)", pinned);
        return COX_LOG_WARN;
    }

    /* At least one worker for each CPU that is left: fewer would be a driver's own threads. */
    if (off >= workers) {
        self->bind = true;
        self->kept_off = true;
        snprintf(tail, tail_bytes, "%u worker thread%s off it", off,
                 off == 1 ? " stays" : "s stay");
        return COX_LOG_INFO;
    }

    /* Workers that were there before may be off the core too, if an earlier runtime kept them off
     * it. Then binding pays. If not, or if workers start later and inherit the scheduler's mask, a
     * bound scheduler would be worse off than a free one. */
    uint32_t earlier = 0;
    struct cox__thread_list all = cox__thread_list_read(&self->born);
    count_off(self, &all, &earlier, &pinned);
    cox__thread_list_clear(&all);

    self->bind = earlier >= workers && pinned == 0;
    if (self->bind) {
        snprintf(tail, tail_bytes, "workers had started already; %u thread%s off it", earlier,
                 earlier == 1 ? " stays" : "s stay");
        return COX_LOG_INFO;
    }

    snprintf(tail, tail_bytes, "but another library started workers before, or they start later");
    return COX_LOG_WARN;
}

void cox__topology_decide(struct cox__topology *self, bool async_device, bool cpu_device)
{
    if (!self)
        return;

    enum cox_log_level level = COX_LOG_INFO;

    pthread_mutex_lock(&self->lock);
    if (self->decided || !self->active) {
        self->decided = true;
        pthread_mutex_unlock(&self->lock);
        return;
    }
    self->decided = true;

    if (self->reserve == COX_RESERVE_AUTO && !(async_device && cpu_device)) {
        const char *missing = "no asynchronous device takes part";
        if (async_device)
            missing = "no CPU device takes part, so nothing keeps the cores busy";
        self->active = false;
        release_born(self);
        snprintf(self->reason, sizeof self->reason, "none: %s; it would be CPU %u (%s)", missing,
                 self->machine.chosen_cpu, self->machine.chosen_why);
    } else {
        char tail[80];
        self->reserved = true;
        level = judge_workers(self, cpu_device, tail, sizeof tail);
        snprintf(self->reason, sizeof self->reason, "CPU %u (%s): %s", self->machine.chosen_cpu,
                 self->machine.chosen_why, tail);
    }

    cox__thread_list_clear(&self->born);
    pthread_mutex_unlock(&self->lock);

    /* Nothing writes `reason` any more. */
    cox__log(&self->log, level, "reserved core: %s", self->reason);
}

void cox__topology_destroy(struct cox__topology **topology)
{
    if (!topology || !*topology)
        return;

    struct cox__topology *self = *topology;

    /* If nothing was decided, the runtime's creation failed after the first bracket: no scheduler
     * thread will need the core. */
    if (!self->decided)
        release_born(self);

    while (self->brackets) {
        struct bracket *next = self->brackets->next;
        free(self->brackets);
        self->brackets = next;
    }

    cox__thread_list_clear(&self->before);
    cox__thread_list_clear(&self->born);
    pthread_mutex_destroy(&self->lock);
    free(self);
    *topology = NULL;
}

bool cox__topology_reserved(const struct cox__topology *self)
{
    return self && self->reserved;
}

bool cox__topology_scheduler_alone(const struct cox__topology *self)
{
    return self && self->reserved && self->bind;
}

uint32_t cox__topology_worker_cpus(const struct cox__topology *self)
{
    if (!self)
        return 1;

    uint32_t cpus = self->machine.cpus;
    if (self->reserved)
        cpus -= self->machine.chosen_cpu_count;
    return cpus;
}

void cox__topology_bind_scheduler(struct cox__topology *self)
{
    if (!self)
        return;

    pthread_setname_np(pthread_self(), COX__SCHEDULER_NAME);
    if (!cox__topology_scheduler_alone(self))
        return;

    if (!cox__cpu_mask_set(0, &self->machine.core))
        cox__log(&self->log, COX_LOG_WARN,
                 "reserved core: the system refuses to bind the scheduler thread to CPU %u",
                 self->machine.chosen_cpu);
}

void cox__topology_host_info(const struct cox__topology *self, struct cox_host_info *info)
{
    memset(info, 0, sizeof *info);
    if (!self)
        return;

    info->cores = self->machine.core_count;
    info->cpus = self->machine.cpus;
    info->kind_count = self->machine.kind_count;
    memcpy(info->kind_cores, self->machine.kind_cores, sizeof info->kind_cores);
    memcpy(info->kind_name, self->machine.kind_name, sizeof info->kind_name);

    info->reserved = self->reserved;
    info->workers_kept_off = self->kept_off;
    info->reserved_cpu = self->machine.chosen_cpu;
    memcpy(info->reserve_reason, self->reason, sizeof info->reserve_reason);
}
