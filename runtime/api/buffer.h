/* Buffers around memory that exists.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_BUFFER_H
#define COX_API_BUFFER_H

#include "engine/engine.h"

/* Make a buffer of memory, which belongs to the buffer from then on. `wrapped`: the memory is the
 * application's, and no other memory can replace it. Errors: E_NOMEM. */
cox_status cox__buffer_make(cox_runtime *runtime, struct cox__mem *mem, bool wrapped,
                            cox_buffer **out);

#endif
