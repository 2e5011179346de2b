/* The threads of this process, read from /proc.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "thread_list.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int compare_threads(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return (x > y) - (x < y);
}

bool cox__thread_list_has(const struct cox__thread_list *threads, pid_t id)
{
    return threads->count > 0 &&
           bsearch(&id, threads->ids, threads->count, sizeof id, compare_threads);
}

void cox__thread_list_clear(struct cox__thread_list *threads)
{
    free(threads->ids);
    *threads = (struct cox__thread_list){0};
}

struct cox__thread_list cox__thread_list_read(const struct cox__thread_list *except)
{
    struct cox__thread_list list = {0};
    size_t room = 0;
    DIR *dir = opendir("/proc/self/task");
    if (!dir)
        return list;

    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char *end;
        long id = strtol(entry->d_name, &end, 10);
        if (id <= 0 || *end != '\0' || (except && cox__thread_list_has(except, (pid_t)id)))
            continue;

        if (list.count == room) {
            room = room ? 2 * room : 64;
            pid_t *ids = realloc(list.ids, room * sizeof *ids);
            if (!ids)
                goto fail;
            list.ids = ids;
        }

        list.ids[list.count++] = (pid_t)id;
    }

    closedir(dir);
    if (list.count > 0)
        qsort(list.ids, list.count, sizeof *list.ids, compare_threads);
    list.known = true;

    return list;

fail:
    closedir(dir);
    cox__thread_list_clear(&list);
    return list;
}

bool cox__thread_list_is_ours(pid_t id)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/self/task/%ld", (long)id);
    return access(path, F_OK) == 0;
}

pid_t cox__thread_list_number(void)
{
    return (pid_t)syscall(SYS_gettid);
}
