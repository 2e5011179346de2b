/* How long this process was ready to run and did not: other programs had the processors, the
 * machine slept, or the process was stopped. The caller extends its time limits by that.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_STARVATION_H
#define COX_HOST_STARVATION_H

#include <stdint.h>

/* Threads of the process, as they were at the last look. Use it from one thread at a time. */
struct cox__starvation;

/* NULL: there is no memory. */
struct cox__starvation *cox__starvation_create(void);
void cox__starvation_destroy(struct cox__starvation *starvation);

/* The longest time that any thread of the process has waited for a processor since the call before.
 * Returns 0 in the first call, and if the system does not say. Looks at 1024 threads at most.
 * Source: /proc/self/task/N/schedstat, the second number: nanoseconds on a run queue. */
uint64_t cox__starvation_look(struct cox__starvation *starvation);

#endif
