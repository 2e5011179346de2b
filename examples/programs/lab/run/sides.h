/* --reserve both: two processes, the sides, that measure in turn, since a CPU platform's workers are started once in a
 * process, on the cores that they may use from then on. Each has devices, sessions and references of its own; only the
 * one that has the turn does anything.
 * Thread-safety: from one thread of each process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SIDES_H
#define COX_EXAMPLES_LAB_SIDES_H

#include <stdbool.h>
#include <stddef.h>

struct lab_sides;

/* Begin the second process, before anything in this one touches OpenCL or starts a thread. Both return from here: the
 * first side has the turn. `shared_bytes` of zeros are mapped in both. NULL with errno set, and no second process. */
struct lab_sides *lab_sides_begin(size_t shared_bytes);

bool lab_sides_is_second(const struct lab_sides *sides);
void *lab_sides_shared(const struct lab_sides *sides);

/* Wait for the turn. False: the other side has ended. NULL is one side alone, as for the next. */
bool lab_sides_take(struct lab_sides *sides);
void lab_sides_pass(struct lab_sides *sides);

/* The side ends, and gives its turn away; sets to NULL, NULL is accepted. The first one waits for the second and
 * returns its exit status; else `status` comes back. */
int lab_sides_end(struct lab_sides **sides, int status);

#endif
