/* A frame and its table of bands. Level 1 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_FRAME_H
#define COX_ENGINE_FRAME_H

#include "state.h"

/* Memory for the bands of a frame slot. False: none; call cox__frame_free all the same. */
bool cox__frame_allocate(const struct cox_session *session, struct cox__frame *frame);
void cox__frame_free(struct cox__frame *frame);

/* Begin to use a frame slot: its first pass, no bands yet. */
void cox__frame_start(const struct cox_session *session, struct cox__frame *frame,
                      enum cox__frame_kind kind);

/* Go on with another pass: no bands of it yet. The bands of the pass before have ended. */
void cox__frame_begin_pass(const struct cox_session *session, struct cox__frame *frame,
                           uint32_t pass);

/* Begin again with the first pass: none of the bands so far counts, their status is `why`. They
 * have ended. */
void cox__frame_begin_anew(const struct cox_session *session, struct cox__frame *frame,
                           cox_status why);

/* Whether every row of the pass under way is done, or will not be. */
bool cox__frame_pass_is_done(const struct cox__frame *frame);

/* Whether every row of the last pass is done, or nothing of the frame will be any more. */
bool cox__frame_is_complete(const struct cox_session *session, const struct cox__frame *frame);

/* Whether rows of the frame, of this pass or a later one, have yet to begin on a device. */
bool cox__frame_has_more(const struct cox_session *session, const struct cox__frame *frame);

/* Put the slot of a frame that is over back: first of all there is one for a frame that its
 * callback submits. With the session's lock held. */
void cox__frame_put_back(struct cox_session *session, struct cox__frame *frame);

/* Add PLANNED bands for these rows of the pass on one device, cut to what the device can hold at
 * once. False: the frame has too many bands. */
bool cox__frame_add(const struct cox_session *session, struct cox__frame *frame, uint32_t device,
                    uint32_t first_row, uint32_t rows, uint32_t attempt);

/* Add a band with which the device copies rows of a binding out, first .. end - 1 of the buffer.
 * False: as above. */
bool cox__frame_add_fetch(const struct cox_session *session, struct cox__frame *frame,
                          uint32_t device, uint32_t binding, uint32_t first, uint32_t end);

/* A band that was at work has ended: DONE, or FAILED with a status that is not COX_OK. */
void cox__frame_end_band(struct cox__frame *frame, uint32_t band, cox_status status);

/* A band that was DONE does not count after all. */
void cox__frame_revoke_band(struct cox__frame *frame, uint32_t band, cox_status status);

/* The band that did the rows of a pass from `first_row` on. All bands of the pass are in. */
uint32_t cox__frame_band_from(const struct cox__frame *frame, uint32_t pass, uint32_t first_row);

/* Keep a band's partial results until all bands are in, since its queue slot is wanted for other
 * bands before that. False: no memory. */
bool cox__frame_save_partials(struct cox_session *session, struct cox__frame *frame, uint32_t band,
                              struct cox__job *job);

/* Merge the pass's partial results into the frame's buffers, in row order. All its bands are in. */
void cox__frame_merge_partials(struct cox_session *session, struct cox__frame *frame);

/* Call the application's report function, if there is one. */
void cox__frame_report(struct cox_session *session, struct cox__frame *frame);

#endif
