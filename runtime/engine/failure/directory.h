/* Which device has which rows of buffers that stay on devices from frame to frame
 * (cox_buffer_layout.stays). Above buffers.c and frame.c, of level 1 of the engine.
 *
 * The session's devices have memory for as many buffers as the session has bindings that stay.
 * A frame opens an entry for each of its buffers that stay, and closes it when it is delivered.
 * An entry goes to another buffer only if the host's memory has all rows of the buffer before.
 *
 * A buffer has a keeper while a session's devices have newer rows than the host's memory. Other
 * sessions cannot use it then. cox_session_fetch ends that.
 *
 * If a lost device had the only copy of a row, frames that read the row fail, since it cannot be
 * computed again.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_DIRECTORY_H
#define COX_ENGINE_DIRECTORY_H

#include "engine/state.h"

/* Where rows can be besides the devices: in the host's memory, and on their way there. */
enum { COX__PLACE_HOST = COX_DEVICES_MAX, COX__PLACE_COMING, COX__PLACE_NONE };

/* The index of a place in an array of row sets. */
static inline uint32_t cox__place_index(uint32_t place, uint32_t device_count)
{
    return place < COX__PLACE_HOST ? place : device_count + (place - COX__PLACE_HOST);
}

/* Rows of a binding's memory. Memory that has no rows counts as one. */
static inline uint32_t cox__kept_rows(const struct cox__pipeline *pipeline, uint32_t binding)
{
    const struct cox__binding *of = &pipeline->bindings[binding];
    if (!of->pitch_bytes || pipeline->bytes[binding] < of->pitch_bytes)
        return 1;

    return (uint32_t)((pipeline->bytes[binding] - of->offset_bytes) / of->pitch_bytes);
}

/* Make and free the row sets of all entries. False: there is no memory; call
 * cox__directory_free even so. */
bool cox__directory_allocate(struct cox_session *session);
void cox__directory_free(struct cox_session *session);

/* Whether the session may use the buffer: no other session keeps it, and this session keeps it only
 * if it stays in this binding. Errors (logged): E_INVALID. Any thread. */
cox_status cox__directory_check(const struct cox_session *session, uint32_t binding,
                                const cox_buffer *buffer);

/* Whether a frame that starts now gets entries for its buffers that stay. False: earlier frames
 * under way use the entries. */
bool cox__directory_has_room(struct cox_session *session, const struct cox__frame *frame);

/* Check the buffers of a frame that starts, and open entries for those that stay. Errors (logged):
 * E_INVALID, E_NOMEM. Call cox__directory_close even so. */
cox_status cox__directory_open(struct cox_session *session, struct cox__frame *frame);

/* Whether the host's memory has all rows of the frame's buffers that stay. */
bool cox__directory_is_fetched(const struct cox_session *session, const struct cox__frame *frame);

/* The frame has left its buffers (cox__buffers_leave). */
void cox__directory_close(struct cox_session *session, const struct cox__frame *frame);

/* The device is lost, and with it all rows that it had. */
void cox__directory_forget(struct cox_session *session, uint32_t device);

/* The number of a frame's entry, and of the device memory. */
static inline unsigned char cox__directory_number(const struct cox_session *session,
                                                  const struct cox__kept *kept)
{
    return (unsigned char)(kept - session->residency.kept);
}

#endif
