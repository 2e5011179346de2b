/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sampler.h"
#include "common/now.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

static const uint64_t slow_period_ns = 1000000000;

struct lab_sampler {
    struct lab_telemetry *telemetry;
    struct lab_store *store;
    uint64_t period_ns;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* a setting below has changed */

    /* Under the lock, which every reading holds: */
    bool stopped, paused;
    uint64_t next_ns; /* the time of the next reading */
    struct lab_sampler_cost cost;
    double values[LAB_TELEMETRY_SOURCES_MAX];
};

static void sample(struct lab_sampler *sampler, bool all)
{
    uint32_t count = lab_telemetry_count(sampler->telemetry);
    uint64_t at_ns = now_ns();
    bool changed;

    lab_telemetry_read(sampler->telemetry, all, sampler->values);
    lab_store_values(sampler->store, at_ns, sampler->values, count);

    for (uint32_t i = 0; i < count; i++) {
        const char *text = lab_telemetry_setting(sampler->telemetry, i, &changed);
        if (changed)
            lab_store_source_setting(sampler->store, at_ns, i, *text ? text : "(unknown)");
    }
}

/* Wait for the next reading's time, and while the sampler is paused. False once it is stopped. */
static bool wait_for_next(struct lab_sampler *sampler)
{
    while (!sampler->stopped && (sampler->paused || now_ns() < sampler->next_ns)) {
        struct timespec until = {.tv_sec = (time_t)(sampler->next_ns / 1000000000),
                                 .tv_nsec = (long)(sampler->next_ns % 1000000000)};

        if (sampler->paused)
            pthread_cond_wait(&sampler->wake, &sampler->lock);
        else
            pthread_cond_timedwait(&sampler->wake, &sampler->lock, &until);
    }
    return !sampler->stopped;
}

static void *run(void *user)
{
    struct lab_sampler *sampler = user;
    struct timespec used;

    pthread_mutex_lock(&sampler->lock);
    uint64_t all_ns = sampler->next_ns;

    while (wait_for_next(sampler)) {
        bool all = sampler->next_ns >= all_ns;
        sample(sampler, all);

        if (all)
            all_ns = sampler->next_ns + slow_period_ns;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        sampler->cost.readings++;
        sampler->cost.cpu_ns = (double)used.tv_sec * 1e9 + (double)used.tv_nsec;
        /* A reading that took longer than a period skips the times that have passed. */

        uint64_t late = now_ns() - sampler->next_ns;
        sampler->next_ns += (late / sampler->period_ns + 1) * sampler->period_ns;
    }

    pthread_mutex_unlock(&sampler->lock);
    return NULL;
}

struct lab_sampler *lab_sampler_start(struct lab_telemetry *telemetry, struct lab_store *store,
                                      uint64_t period_ns)
{
    struct lab_sampler *sampler = calloc(1, sizeof *sampler);
    pthread_condattr_t monotonic;
    sigset_t all, before;
    if (!sampler)
        return NULL;

    *sampler = (struct lab_sampler){
        .telemetry = telemetry, .store = store, .period_ns = period_ns, .next_ns = now_ns()};

    for (uint32_t i = 0; i < lab_telemetry_count(telemetry); i++) {
        const struct lab_telemetry_source *source = lab_telemetry_source(telemetry, i);
        lab_store_source(store, i,
                         &(const struct lab_store_source){
                             .name = source->name,
                             .kind = lab_telemetry_kind_name(source->kind),
                             .part = source->part,
                             .unit = lab_telemetry_unit(source->kind),
                             .origin = source->origin});
    }

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&sampler->lock, NULL);
    pthread_cond_init(&sampler->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);

    /* Signals are for the thread that runs the frames. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&sampler->thread, NULL, run, sampler) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    if (started)
        return sampler;

    pthread_cond_destroy(&sampler->wake);
    pthread_mutex_destroy(&sampler->lock);
    free(sampler);
    return NULL;
}

void lab_sampler_pause(struct lab_sampler *sampler, bool paused)
{
    if (!sampler)
        return;

    pthread_mutex_lock(&sampler->lock);
    if (sampler->paused && !paused) {
        lab_telemetry_restart(sampler->telemetry);
        sampler->next_ns = now_ns();
    }

    sampler->paused = paused;
    pthread_cond_signal(&sampler->wake);
    pthread_mutex_unlock(&sampler->lock);
}

void lab_sampler_stop(struct lab_sampler **sampler, struct lab_sampler_cost *cost)
{
    struct lab_sampler *s = *sampler;
    *sampler = NULL;
    *cost = (struct lab_sampler_cost){0};
    if (!s)
        return;

    pthread_mutex_lock(&s->lock);
    s->stopped = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);

    *cost = s->cost;
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
