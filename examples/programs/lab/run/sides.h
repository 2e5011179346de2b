/* --reserve both: two processes, the sides, that measure in turns. A CPU platform starts its
 * workers once in a process and binds them to the cores that it may use then, so one process
 * cannot do both. Each side has its own devices, sessions and references. A side only works
 * during its turn.
 *
 * Thread-safety: from one thread of each process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SIDES_H
#define COX_EXAMPLES_LAB_SIDES_H

#include <stdbool.h>
#include <stddef.h>

struct lab_sides;

/* Start the second process. Call this before the process uses OpenCL or starts a thread. Both
 * processes return; the first side has the turn. Both map `shared_bytes` of zeros. On failure
 * NULL with errno set, and there is no second process. */
struct lab_sides *lab_sides_begin(size_t shared_bytes);

bool lab_sides_is_second(const struct lab_sides *sides);
void *lab_sides_shared(const struct lab_sides *sides);

/* Wait for the turn. False if the other side has ended. Both functions accept NULL: one side
 * alone. */
bool lab_sides_take(struct lab_sides *sides);
void lab_sides_pass(struct lab_sides *sides);

/* End this side, pass its turn and set the pointer to NULL. NULL is accepted. The first side
 * waits for the second one and returns its exit status; otherwise returns `status`. */
int lab_sides_end(struct lab_sides **sides, int status);

#endif
