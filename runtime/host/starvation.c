/* Reads what the Linux scheduler counts for each thread. The watchdog's thread looks while frames
 * are running, so a look allocates nothing; opendir and fopen would.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getdents64 */
#endif
#include "starvation.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS_MAX = 1024 };

struct waited {
    pid_t thread;
    uint64_t ns; /* time on a run queue so far */
};

struct cox__starvation {
    uint32_t count;
    struct waited before[THREADS_MAX]; /* ascending */
    struct waited now[THREADS_MAX];
};

struct cox__starvation *cox__starvation_create(void)
{
    return calloc(1, sizeof(struct cox__starvation));
}

void cox__starvation_destroy(struct cox__starvation *starvation)
{
    free(starvation);
}

/* Insert a thread in order; the system lists threads nearly in order. */
static void insert(struct waited *list, uint32_t count, pid_t thread)
{
    for (; count > 0 && list[count - 1].thread > thread; count--)
        list[count] = list[count - 1];
    list[count].thread = thread;
}

/* List the threads of this process, ascending, without their times. `tasks` is /proc/self/task,
 * open. */
static uint32_t list_threads(int tasks, struct waited *list)
{
    union {
        struct dirent64 first;
        char bytes[4096];
    } entries;
    uint32_t count = 0;

    for (ssize_t got; (got = getdents64(tasks, &entries, sizeof entries)) > 0;)
        for (ssize_t at = 0; at < got && count < THREADS_MAX;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries.bytes + at);
            const long id = strtol(entry->d_name, NULL, 10); /* 0 for "." and ".." */
            at += entry->d_reclen;
            if (id > 0)
                insert(list, count++, (pid_t)id);
        }

    return count;
}

/* Read how long a thread has waited so far. False: the thread has ended, or the system does not
 * say.
 *
 * ThreadSanitizer follows files that open() opens. It takes one of openat() for the file that had
 * the number before. */
static bool read_waited(pid_t thread, uint64_t *ns)
{
    char path[64], text[96], *second, *end;
    snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", (long)thread);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;

    const ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    if (got <= 0)
        return false;

    text[got] = '\0';
    strtoull(text, &second, 10); /* the time on a processor */
    *ns = strtoull(second, &end, 10);
    return end != second;
}

uint64_t cox__starvation_look(struct cox__starvation *starvation)
{
    const int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint32_t listed = 0;
    if (tasks >= 0) {
        listed = list_threads(tasks, starvation->now);
        close(tasks);
    }

    uint64_t most = 0;
    uint32_t count = 0, before = 0;

    for (uint32_t t = 0; t < listed; t++) {
        struct waited *waited = &starvation->now[count];
        waited->thread = starvation->now[t].thread;
        if (!read_waited(waited->thread, &waited->ns))
            continue;

        count++;

        while (before < starvation->count && starvation->before[before].thread < waited->thread)
            before++;
        if (before == starvation->count || starvation->before[before].thread != waited->thread)
            continue;

        const uint64_t was = starvation->before[before].ns;
        if (waited->ns > was && waited->ns - was > most)
            most = waited->ns - was;
    }

    for (uint32_t i = 0; i < count; i++)
        starvation->before[i] = starvation->now[i];
    starvation->count = count;
    return most;
}
