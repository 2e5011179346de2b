/* Unused memory, and memory that a lost device may still touch. Level 0 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_MEMORY_H
#define COX_ENGINE_MEMORY_H

#include "state.h"

/* Whether a lost device may still read or write the memory, or, with `written`, write it. Call it
 * under the engine lock. */
bool cox__memory_is_tainted(const struct cox_runtime *runtime, const struct cox__mem *mem,
                            bool written);

/* Let the worker thread destroy unused memory, at once or, if it is tainted, when the device has
 * ended. Does not block. Call it under the engine lock. */
void cox__memory_let_go(struct cox_runtime *runtime, struct cox__mem *mem);

/* A lost queue is gone: let go of the memory that was kept only for it. */
void cox__memory_release_kept(struct cox_runtime *runtime);

#endif
