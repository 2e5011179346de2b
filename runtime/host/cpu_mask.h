/* Sets of processors, of any size that Linux knows. Include with _GNU_SOURCE defined.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_CPU_MASK_H
#define COX_HOST_CPU_MASK_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { COX__CPUS_MAX = 8192 }; /* what the largest Linux kernels are built for */

struct cox__cpu_mask {
    cpu_set_t set[COX__CPUS_MAX / CPU_SETSIZE];
};

/* Get and set where a thread of the system may run; 0 = the calling thread. False: the system
 * refuses. */
bool cox__cpu_mask_get(pid_t thread, struct cox__cpu_mask *mask);
bool cox__cpu_mask_set(pid_t thread, const struct cox__cpu_mask *mask);

bool cox__cpu_mask_has(const struct cox__cpu_mask *mask, uint32_t cpu);
void cox__cpu_mask_add(struct cox__cpu_mask *mask, uint32_t cpu);
uint32_t cox__cpu_mask_count(const struct cox__cpu_mask *mask);

/* Whether a and b overlap; and a without b. */
bool cox__cpu_mask_meets(const struct cox__cpu_mask *a, const struct cox__cpu_mask *b);
struct cox__cpu_mask cox__cpu_mask_without(const struct cox__cpu_mask *a,
                                           const struct cox__cpu_mask *b);

/* Read the system's notation ("0-3,8,10-11") into a mask; stops at what it does not understand. */
void cox__cpu_mask_read(struct cox__cpu_mask *mask, const char *list);

#endif
