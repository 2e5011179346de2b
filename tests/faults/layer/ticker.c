/* Gates, and the ticker: a thread that opens gates and calls late callbacks. It starts with the first delayed
 * action.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "faults/layer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct job *jobs;
static bool ticker_runs, ticker_stops;
static bool ticker_works; /* its jobs are not in the list meanwhile */
static pthread_t ticker;
static pthread_cond_t ticker_wakes;
static bool doom_pending; /* callbacks of doomed commands must be looked for */

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

void add_job(const struct job *job)
{
    struct job *fresh = must_alloc(1, sizeof *fresh);
    *fresh = *job;
    fresh->next = jobs;
    jobs = fresh;
    if (fresh->command)
        fresh->command->refs++;
    wake_ticker();
}

void look_for_doomed(void)
{
    doom_pending = true;
    wake_ticker();
}

void doom_jobs(uint64_t set, cl_int code)
{
    for (struct job *job = jobs; job; job = job->next)
        if (job->command)
            doom(job->command, set, code);
}

cl_event new_gate(const struct queue *queue)
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

void open_gate(cl_event gate)
{
    next.clSetUserEventStatus(gate, CL_COMPLETE);
    next.clReleaseEvent(gate);
}

/* The duration of the command: by its profiling times if the queue has plausible ones, else since its earliest
 * start. */
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
    uint64_t now = real_ns();
    return now > from ? now - from : 0;
}

void begin_tail(struct job *job)
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

/* Do the next steps of a job that is in no list. Returns whether the job is finished. */
static bool run_job(struct job *job)
{
    switch (job->kind) {
    case JOB_OPEN:
        if (now_ns() < job->due_ns)
            return false;
        pthread_mutex_lock(&lock);
        if (job->command->doomed) { /* the device has vanished, and the command with it */
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
        job->command->queue->last_end_ns = real_ns();
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

/* Under the lock: wait until the next job is due, or until a wake-up. */
static void wait_for_jobs(void)
{
    const uint64_t now = now_ns();
    uint64_t pause_ns = doom_pending ? POLL_NS : UINT64_MAX;
    for (const struct job *job = jobs; job; job = job->next) {
        bool polls = clock_stands() || job->kind == JOB_KEEP || (job->kind == JOB_TAIL && !job->ended);
        uint64_t left_ns = polls ? POLL_NS : job->due_ns > now ? job->due_ns - now : 0;
        pause_ns = left_ns < pause_ns ? left_ns : pause_ns;
    }
    if (pause_ns == UINT64_MAX) {
        pthread_cond_wait(&ticker_wakes, &lock);
        return;
    }
    const uint64_t until = real_ns() + pause_ns;
    const struct timespec t = {.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};
    pthread_cond_timedwait(&ticker_wakes, &lock, &t);
}

static void *tick(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!ticker_stops) {
        struct job *todo = jobs, *left = NULL;
        const bool look = doom_pending;
        jobs = NULL;
        ticker_works = true;
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
        ticker_works = false;
        if (!more && !ticker_stops)
            wait_for_jobs();
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

void wait_for_due(uint64_t now)
{
    const uint64_t limit_ns = real_ns() + UINT64_C(120000000000);
    bool due = true;
    while (due) {
        if (real_ns() > limit_ns) {
            fputs("layer_fault: what is late does not end now that its time has come: is it flushed?\n", stderr);
            abort();
        }
        pthread_mutex_lock(&lock);
        due = ticker_works;
        for (const struct job *job = jobs; job; job = job->next)
            due |= job->due_ns && job->due_ns <= now;
        pthread_mutex_unlock(&lock);
        if (due)
            poll_pause();
    }
}

void stop_ticker(void)
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
