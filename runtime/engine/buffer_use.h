/* Memory that outlives its use, since a device that was given up may still write to it. Level 1 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_BUFFER_USE_H
#define COX_ENGINE_BUFFER_USE_H

#include "state.h"

/* Note that a device which was given up may still write to this memory. */
void cox__buffer_taint(struct cox_runtime *runtime, struct cox__mem *mem);

/* Take the notes about this memory off the list. False: there are none. */
bool cox__buffer_take_taint(struct cox_runtime *runtime, const struct cox__mem *mem);

/* Free the list. The runtime is going. */
void cox__buffer_forget_taints(struct cox_runtime *runtime);

#endif
