/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "disturb_child.h"
#include "common/now.h"
#include "lab/refuse.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum command { ASLEEP, PREPARE, OFF, ON };
enum answer { NONE, READY, REFUSED };
enum {
    PREPARE_SECONDS = 120, /* a driver compiles */
    SWITCH_SECONDS = 10    /* a frame under way ends */
};

/* Memory of both processes. */
struct shared {
    _Atomic uint32_t command; /* a futex */
    _Atomic uint32_t answer;
    _Atomic uint32_t working; /* workers at work */
    uint32_t workers;
    char why[240];
    alignas(max_align_t) unsigned char memory[];
};

struct lab_child {
    struct lab_child_job job;
    struct shared *shared;
    size_t bytes;
    uint32_t workers;
    pid_t pid; /* 0 = it has ended */
};

/* --- in the child ----------------------------------------------------------------------------- */

static void await_change(struct shared *shared, uint32_t command)
{
    while (atomic_load(&shared->command) == command)
        syscall(SYS_futex, &shared->command, FUTEX_WAIT, command, NULL, NULL, 0);
}

struct worker {
    const struct lab_child *child;
    uint32_t index;
};

static void *work(void *user)
{
    const struct worker *worker = user;
    const struct lab_child_job *job = &worker->child->job;
    struct shared *shared = worker->child->shared;

    if (job->begin && !job->begin(shared->memory, worker->index))
        _exit(1);

    for (;;) {
        if (atomic_load(&shared->command) == ON) {
            atomic_fetch_add(&shared->working, 1);
            while (atomic_load(&shared->command) == ON)
                job->work(shared->memory);
            if (job->rest)
                job->rest(shared->memory);
            atomic_fetch_sub(&shared->working, 1);
        }
        await_change(shared, OFF);
    }
    return NULL;
}

_Noreturn static void live(struct lab_child *child, pid_t parent)
{
    /* The kernel sends this signal when the thread that forked ends. If the parent ended before the
     * prctl, getppid shows it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    /* An interrupt from the terminal is for the parent. It ends this process when it is done. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);

    struct shared *shared = child->shared;

    await_change(shared, ASLEEP);
    if (child->job.prepare &&
        !child->job.prepare(shared->memory, shared->why, sizeof shared->why)) {
        atomic_store(&shared->answer, REFUSED);
        _exit(1);
    }

    struct worker *workers = calloc(shared->workers, sizeof *workers);
    for (uint32_t w = 0; workers && w < shared->workers; w++) {
        pthread_t thread;
        workers[w] = (struct worker){child, w};
        if (w > 0 && pthread_create(&thread, NULL, work, &workers[w]) != 0)
            _exit(1);
    }

    if (!workers)
        _exit(1);

    atomic_store(&shared->answer, READY);
    work(&workers[0]);
    _exit(1);
}

/* --- in the parent ---------------------------------------------------------------------------- */

struct lab_child *lab_child_start(const struct lab_child_job *job)
{
    struct lab_child *child = calloc(1, sizeof *child);
    if (!child)
        return NULL;

    child->job = *job;
    child->bytes = sizeof(struct shared) + job->memory_bytes;
    child->shared = mmap(NULL, child->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                         0);

    if (child->shared == MAP_FAILED) {
        free(child);
        return NULL;
    }

    pid_t parent = getpid();
    fflush(NULL); /* so that buffered text is written once */
    child->pid = fork();
    if (child->pid == 0)
        live(child, parent);
    if (child->pid < 0) {
        munmap(child->shared, child->bytes);
        free(child);
        return NULL;
    }

    return child;
}

void *lab_child_memory(struct lab_child *child)
{
    return child->shared->memory;
}

static void command(struct lab_child *child, enum command what)
{
    atomic_store(&child->shared->command, what);
    syscall(SYS_futex, &child->shared->command, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Whether the process is still there. */
static bool lives(struct lab_child *child)
{
    if (child->pid && waitpid(child->pid, NULL, WNOHANG) == child->pid)
        child->pid = 0;
    return child->pid != 0;
}

/* Wait until `*value` is `wanted`. */
static bool await_value(struct lab_child *child, _Atomic uint32_t *value, uint32_t wanted,
                        uint32_t seconds, char *why, size_t why_bytes)
{
    const struct timespec pause = {.tv_nsec = 20000};
    uint64_t until = now_ns() + seconds * 1000000000ull;

    while (atomic_load(value) != wanted) {
        if (!lives(child)) {
            const char *reason = child->shared->why;
            return lab_refuse(why, why_bytes, "%s",
                              *reason ? reason : "its process ended unexpectedly");
        }

        if (now_ns() > until)
            return lab_refuse(why, why_bytes, "its process does not answer");

        nanosleep(&pause, NULL);
    }
    return true;
}

bool lab_child_prepare(struct lab_child *child, uint32_t workers, char *why, size_t why_bytes)
{
    child->shared->workers = child->workers = workers;
    command(child, PREPARE);

    if (!await_value(child, &child->shared->answer, READY, PREPARE_SECONDS, why, why_bytes))
        return false;

    command(child, OFF);
    return true;
}

bool lab_child_switch(struct lab_child *child, bool on, char *why, size_t why_bytes)
{
    const uint32_t working = on ? child->workers : 0;

    command(child, on ? ON : OFF);
    return await_value(child, &child->shared->working, working, SWITCH_SECONDS, why, why_bytes);
}

pid_t lab_child_pid(const struct lab_child *child)
{
    return child->pid;
}

void lab_child_stop(struct lab_child **child)
{
    struct lab_child *c = *child;
    *child = NULL;
    if (!c)
        return;

    if (lives(c)) {
        kill(c->pid, SIGKILL);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }

    munmap(c->shared, c->bytes);
    free(c);
}
