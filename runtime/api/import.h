/* Use of the memory of buffers outside of frames, as frames use it (engine/sync.h).
 * Thread-safety: safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_IMPORT_H
#define COX_API_IMPORT_H

#include "engine/state.h"

void cox__imports_init(struct cox__imports *imports);
void cox__imports_destroy(struct cox__imports *imports);

/* Begin to use a buffer's memory on the host, and end it. Memory that nothing else shares needs
 * nothing. To begin may wait for other hardware.
 * Errors (logged): COX_E_SYSTEM, COX_E_INVALID (it can only be read). */
cox_status cox__import_begin(const cox_buffer *buffer, bool writes);
cox_status cox__import_end(const cox_buffer *buffer);

#endif
