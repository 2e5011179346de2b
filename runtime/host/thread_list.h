/* The threads of this process, by the system's numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_THREAD_LIST_H
#define COX_HOST_THREAD_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Ascending. `known` is false if /proc cannot be read or there is no memory. */
struct cox__thread_list {
    bool known;
    size_t count;
    pid_t *ids;
};

/* The threads of this process, without those of `except` (may be NULL). Free with
 * cox__thread_list_clear. */
struct cox__thread_list cox__thread_list_read(const struct cox__thread_list *except);
void cox__thread_list_clear(struct cox__thread_list *threads);
bool cox__thread_list_has(const struct cox__thread_list *threads, pid_t id);

/* Whether `id` is a living thread of this process: the system reuses numbers, in other processes
 * too. */
bool cox__thread_list_is_ours(pid_t id);

/* The calling thread's number. */
pid_t cox__thread_list_number(void);

#endif
