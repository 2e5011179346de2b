/* Memory that nothing uses any more, and memory that a device which was given up may still
 * touch. Level 0 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_MEMORY_H
#define COX_ENGINE_MEMORY_H

#include "state.h"

/* Whether a device that was given up may still read or write the memory; `written`: write it.
 * Engine lock held. */
bool cox__memory_is_tainted(const struct cox_runtime *runtime, const struct cox__mem *mem,
                            bool written);

/* Let go of memory that nothing uses any more. The worker thread destroys it: at once, or, if it
 * is tainted, when the device has ended. Does not block. Engine lock held. */
void cox__memory_let_go(struct cox_runtime *runtime, struct cox__mem *mem);

/* A lost queue is gone: what was kept for it alone goes too. */
void cox__memory_release_kept(struct cox_runtime *runtime);

#endif
