/* Finds the cores on which a device computes, from the CPU time of this process's threads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_DISTURB_CPUS_H
#define COX_EXAMPLES_LAB_DISTURB_CPUS_H

#include <stdint.h>

struct lab_threads;

/* The threads of this process and the CPU time of each. NULL if the system does not list them. */
struct lab_threads *lab_threads_read(void);

/* The CPUs of the threads that worked most since `before`, in order. Returns their number; 0 if the
 * threads are not bound to CPUs, or on an error. */
uint32_t lab_threads_cpus(const struct lab_threads *before, uint16_t *cpus, uint32_t cpus_max);

void lab_threads_free(struct lab_threads **threads);

#endif
