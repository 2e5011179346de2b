/* A frame and its table of bands. Level 1 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_FRAME_H
#define COX_ENGINE_FRAME_H

#include "state.h"

/* Allocate memory for the bands of a frame slot, which runs this pipeline. False: no memory; call
 * cox__frame_free anyway. */
bool cox__frame_allocate(const struct cox__pipeline *pipeline, struct cox__frame *frame);
void cox__frame_free(struct cox__frame *frame);

/* Begin to use a frame slot: its first pass, no bands yet. */
void cox__frame_start(const struct cox_runtime *runtime, struct cox__frame *frame,
                      enum cox__frame_kind kind);

/* Begin another pass, without bands yet. The bands of the pass before have ended. */
void cox__frame_begin_pass(const struct cox_runtime *runtime, struct cox__frame *frame,
                           uint32_t pass);

/* Start over with the first pass. All bands have ended; none of them counts, and their status
 * becomes `why`. */
void cox__frame_begin_anew(const struct cox_runtime *runtime, struct cox__frame *frame,
                           cox_status why);

/* Whether the pass under way has ended: no band is unfinished, and no rows are left in the pool.
 * After a failure some rows may not be computed. */
bool cox__frame_pass_is_done(const struct cox__frame *frame);

/* Whether the frame is over: its last pass is done, or it has failed and no band is under way. */
bool cox__frame_is_complete(const struct cox__frame *frame);

/* Whether rows of the frame, of this pass or a later one, have yet to begin on a device. */
bool cox__frame_has_more(const struct cox__frame *frame);

/* Add PLANNED bands for these rows of the pass on one device, none longer than the device can hold.
 * False: the frame has too many bands. */
bool cox__frame_add(const struct cox__devices *devices, struct cox__frame *frame, uint32_t device,
                    uint32_t first_row, uint32_t rows, uint32_t attempt);

/* Add a band that only moves rows of a binding, or acquires or releases its buffer. False: the
 * table is full. */
bool cox__frame_add_transfer(struct cox__frame *frame, enum cox__band_kind kind, uint32_t device,
                             uint32_t binding, struct cox__row_range range);

/* End a band under way: DONE if `status` is COX_OK, else FAILED. */
void cox__frame_end_band(struct cox__frame *frame, uint32_t band, cox_status status);

/* Turn a DONE band into a FAILED one: its rows do not count. */
void cox__frame_revoke_band(struct cox__frame *frame, uint32_t band, cox_status status);

/* The band of a pass that begins at `first_row`. All bands of the pass are done. */
uint32_t cox__frame_band_from(const struct cox__frame *frame, uint32_t pass, uint32_t first_row);

/* Copy a band's partial results, because other bands will reuse its queue slot. False: no
 * memory. */
bool cox__frame_save_partials(struct cox__backend *backend, struct cox__frame *frame, uint32_t band,
                              struct cox__job *job);

/* Merge the pass's partial results into the frame's buffers, in row order. Call it when all bands
 * of the pass are done. */
void cox__frame_merge_partials(struct cox__backend *backend, struct cox__frame *frame);

/* Call the application's report function, if there is one. */
void cox__frame_report(struct cox_session *session, struct cox__frame *frame);

#endif
