/* Which of a runtime's devices a text names: cox_session_params.devices and fields like it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_DEVICE_LIST_H
#define COX_API_DEVICE_LIST_H

#include "engine/engine.h"

/* Fill `devices` as cox__device_list_read does. False: an entry names no device. */
bool cox__device_list_find(const cox_runtime *runtime, const char *text,
                           uint32_t devices[COX_DEVICES_MAX], uint32_t *count);

/* Fill `devices` with indices in the runtime, each once, in the runtime's order. `*count` is 0 if
 * `text` is NULL or "all".
 * Errors: COX_E_NOT_FOUND (an entry names no device; the log says which). */
cox_status cox__device_list_read(const cox_runtime *runtime, const char *text,
                                 uint32_t devices[COX_DEVICES_MAX], uint32_t *count);

#endif
