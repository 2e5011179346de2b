/* The devices of a session: chosen and created with it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_SESSION_DEVICES_H
#define COX_API_SESSION_DEVICES_H

#include "engine/engine.h"

/* Fill `devices` with the runtime's devices that take part.
 * Errors: COX_E_INVALID (the list is too long, NULL, or has a wrong entry; the log says which). */
cox_status cox__session_devices_choose(cox_runtime *runtime, const struct cox__session_spec *params,
                                       uint32_t devices[COX_DEVICES_MAX], uint32_t *count);

/* Check that each pass can run on one of the devices at least.
 * Errors: COX_E_INVALID (the log says which pass cannot). */
cox_status cox__session_devices_check(const cox_session *session, const uint32_t *devices,
                                      uint32_t count);

/* Compile for the devices and add them to the session. A device that fails is left out.
 * Errors: the first device's, if all fail. */
cox_status cox__session_devices_create(cox_session *session, const uint32_t *devices,
                                       uint32_t count);

/* Add the devices without their kernels: they join in the background. */
void cox__session_devices_announce(cox_session *session, const uint32_t *devices, uint32_t count);

/* The session's devices that pass `number` may use, a bit for each. All bits are set if none of
 * the pass's own devices could be created. */
uint32_t cox__session_devices_of_pass(const cox_session *session, uint32_t number);

#endif
