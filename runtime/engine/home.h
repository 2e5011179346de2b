/* Buffers that lie in the memory of a device, their home (cox_opencl_buffer). Above
 * failure/residency.c.
 *
 * The home device works on such a buffer in place. For other devices, rows that they read are
 * fetched to the host's memory. Rows that they wrote are in the host's memory, and are pushed to
 * the home device when the frame is complete. So a frame of the home device alone copies nothing.
 *
 * If the home device is lost, frames with the buffer end with COX_E_DEVICE_LOST: the memory
 * belongs to the lost context.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_HOME_H
#define COX_ENGINE_HOME_H

#include "engine/state.h"

/* Whether the memory lies on a device; if so, *home says on which. `mem` may be NULL. */
bool cox__home_find(const struct cox_runtime *runtime, const struct cox__mem *mem,
                    struct cox__mem_home *home);

/* Whether a frame may use the buffer for a binding. Allocates host memory for it, if other devices
 * may use its rows. May block. Errors (logged): E_INVALID, E_UNSUPPORTED, E_NOMEM,
 * E_DEVICE_MEMORY. Any thread. */
cox_status cox__home_check(const struct cox_session *session, uint32_t binding,
                           const cox_buffer *buffer);

/* Whether a device on which a buffer of the frame lies has yet to join the session. */
bool cox__home_is_joining(const struct cox_session *session, const struct cox__frame *frame);

/* A frame starts: note which of its buffers lie on which device. It ends with COX_E_DEVICE_LOST if
 * such a device cannot be used. */
void cox__home_open(struct cox_session *session, struct cox__frame *frame);

/* Add bands that acquire the frame's buffers, if some must be acquired. */
void cox__home_acquire(struct cox__frame *frame);

/* The device is lost: frames with buffers on it end. */
void cox__home_forget(const struct cox_session *session, uint32_t device);

/* A frame is complete: add bands that push rows to the home devices and release the buffers.
 * Returns whether there are such bands. May give the frame an error status. */
bool cox__home_hand_back(struct cox_session *session, struct cox__frame *frame);

#endif
