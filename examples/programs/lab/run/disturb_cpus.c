/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "disturb_cpus.h"

#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 1024 };

struct thread {
    pid_t id;
    uint64_t ran_ns;
};

struct lab_threads {
    uint32_t count;
    struct thread threads[THREADS_MAX];
};

static bool read_thread(const char *name, struct thread *thread)
{
    char path[64], *end;

    thread->id = (pid_t)strtol(name, &end, 10);
    if (end == name || *end)
        return false;

    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)thread->id);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;

    bool good = fscanf(file, "%" SCNu64, &thread->ran_ns) == 1;
    fclose(file);
    return good;
}

struct lab_threads *lab_threads_read(void)
{
    DIR *folder = opendir("/proc/self/task");
    if (!folder)
        return NULL;

    struct lab_threads *threads = calloc(1, sizeof *threads);
    for (struct dirent *entry;
         threads && (entry = readdir(folder)) && threads->count < THREADS_MAX;)
        threads->count += read_thread(entry->d_name, &threads->threads[threads->count]);

    closedir(folder);
    if (threads && threads->count == 0)
        lab_threads_free(&threads);
    return threads;
}

static uint64_t ran_before(const struct lab_threads *before, pid_t id)
{
    for (uint32_t i = 0; i < before->count; i++)
        if (before->threads[i].id == id)
            return before->threads[i].ran_ns;
    return 0;
}

uint32_t lab_threads_cpus(const struct lab_threads *before, uint16_t *cpus, uint32_t cpus_max)
{
    struct lab_threads *after = lab_threads_read();
    cpu_set_t all, workers;
    uint64_t most = 0;
    uint32_t count = 0;

    if (!after || !before || sched_getaffinity(0, sizeof all, &all) != 0) {
        lab_threads_free(&after);
        return 0;
    }

    for (uint32_t i = 0; i < after->count; i++) {
        after->threads[i].ran_ns -= ran_before(before, after->threads[i].id);
        if (after->threads[i].ran_ns > most)
            most = after->threads[i].ran_ns;
    }

    CPU_ZERO(&workers);
    for (uint32_t i = 0; i < after->count; i++) {
        cpu_set_t mask;

        if (most && after->threads[i].ran_ns > most / 2 &&
            sched_getaffinity(after->threads[i].id, sizeof mask, &mask) == 0)
            CPU_OR(&workers, &workers, &mask);
    }

    /* Workers that may run on every CPU say nothing. */
    for (uint32_t cpu = 0; cpu < CPU_SETSIZE && !CPU_EQUAL(&workers, &all) && count < cpus_max;
         cpu++)
        if (CPU_ISSET(cpu, &workers))
            cpus[count++] = (uint16_t)cpu;

    lab_threads_free(&after);
    return count;
}

void lab_threads_free(struct lab_threads **threads)
{
    free(*threads);
    *threads = NULL;
}
