/* Buffers around memory of other interfaces.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_BUFFER_H
#define COX_API_BUFFER_H

#include "engine/engine.h"

/* Make a buffer of memory, which belongs to the buffer from then on. `wrapped`: the memory is the
 * application's, and no other memory can replace it. Errors: E_NOMEM. */
cox_status cox__buffer_make(cox_runtime *runtime, struct cox__mem *mem, bool wrapped,
                            cox_buffer **out);

/* Wait until no frame uses the buffer. False, with a log line that names `function`: this is a
 * callback, and a frame other than its own uses the buffer. */
bool cox__buffer_wait(cox_buffer *buffer, const char *function);

/* Destroy a wrapped buffer that has no `released` function, as cox_buffer_destroy does.
 *
 * Errors:
 *   COX_E_INVALID        cox_buffer_destroy refuses it; *buffer is unchanged
 *   COX_E_MEMORY_UNSAFE  The buffer is destroyed, but a hung device may still touch its memory. */
cox_status cox__buffer_take_back(cox_buffer **buffer);

#endif
