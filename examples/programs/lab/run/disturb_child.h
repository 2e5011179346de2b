/* A child process that works while it is switched on, and sleeps otherwise. It ends with this
 * process, for any reason.
 *
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_DISTURB_CHILD_H
#define COX_EXAMPLES_LAB_DISTURB_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The functions run in the child. `memory` is shared with the parent. */
struct lab_child_job {
    size_t memory_bytes;
    bool (*prepare)(void *memory, char *why, size_t why_bytes); /* once; NULL = nothing */
    bool (*begin)(void *memory, uint32_t worker); /* once in each worker's thread; NULL = nothing */
    void (*work)(void *memory);                   /* a little work, called repeatedly */
    void (*rest)(void *memory);                   /* after the work, before sleep; NULL = nothing */
};

struct lab_child;

/* Call this before the process has threads, if the job does more than compute. NULL = the system
 * refused. */
struct lab_child *lab_child_start(const struct lab_child_job *job);

/* Fill the memory before lab_child_prepare. */
void *lab_child_memory(struct lab_child *child);

/* Wait until the child has prepared itself. False with a sentence in `why`. */
bool lab_child_prepare(struct lab_child *child, uint32_t workers, char *why, size_t why_bytes);

/* Switch the work on or off. Returns when all workers work, or no worker does. */
bool lab_child_switch(struct lab_child *child, bool on, char *why, size_t why_bytes);

pid_t lab_child_pid(const struct lab_child *child);

/* End the child and set the pointer to NULL. NULL is accepted. */
void lab_child_stop(struct lab_child **child);

#endif
