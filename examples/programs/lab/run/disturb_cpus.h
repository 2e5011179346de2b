/* On which cores a device computes, told from what the system says of this process's threads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_DISTURB_CPUS_H
#define COX_EXAMPLES_LAB_DISTURB_CPUS_H

#include <stdint.h>

struct lab_threads;

/* The threads of this process and the processor time of each. NULL = the system does not say. */
struct lab_threads *lab_threads_read(void);

/* The CPUs on which the threads that worked most since `before` may run, in order. Returns how many; 0 = they are bound
 * to no CPUs, or it cannot be told. */
uint32_t lab_threads_cpus(const struct lab_threads *before, uint16_t *cpus, uint32_t cpus_max);

void lab_threads_free(struct lab_threads **threads);

#endif
