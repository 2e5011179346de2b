/* How long this process was ready to run and did not: other programs had the processors, the machine slept, or the
 * process was stopped. What is waited for meanwhile is not late by so much.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_STARVATION_H
#define COX_HOST_STARVATION_H

#include <stdint.h>

/* Threads of the process, as they were when they were looked at last. From one thread at a time. */
struct cox__starvation;

/* NULL: there is no memory. */
struct cox__starvation *cox__starvation_create(void);
void cox__starvation_destroy(struct cox__starvation *starvation);

/* The longest that any thread of the process has waited for a processor since the call before; 0 from the first call,
 * or where the system does not say. At most 1024 threads are looked at.
 * Source: /proc/self/task/N/schedstat, the second number: nanoseconds on a run queue. */
uint64_t cox__starvation_look(struct cox__starvation *starvation);

#endif
