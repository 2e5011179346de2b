/* What staged devices keep from pass to pass of a frame. Above frame.c, of level 1 of the engine.
 *
 * Of a binding that several passes touch ("resident", a bit for each in struct cox__pipeline) a staged device has
 * memory for the whole frame: rows that it has written, or that were once copied to it, stay there. Outputs of the
 * application are always copied out. Scratch is copied out only where another device reads it: either with the band
 * that writes it, since rows there were read in frames before too, or later, with a FETCH band of the frame; the band
 * that reads the rows waits for that. Which rows are in the host's memory, in each device's, and on their way is known
 * by ranges.
 *
 * When a band needs rows that only a lost device had, the frame begins anew, from its inputs. Rows that were copied to
 * the host before stay valid.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_RESIDENCY_H
#define COX_ENGINE_RESIDENCY_H

#include "engine/state.h"

/* Memory to know a frame slot's rows by, if the session's pipeline has resident bindings. False: none; call
 * cox__residency_free all the same. */
bool cox__residency_allocate(const struct cox_session *session, struct cox__frame *frame);
void cox__residency_free(struct cox__frame *frame);
void cox__residency_free_history(struct cox_session *session);

/* A frame of the application's has been started: its inputs are in the host's memory, no device has anything. */
void cox__residency_start(struct cox_session *session, struct cox__frame *frame);

/* A run of the warm-up, which has begun a pass on this device alone: it counts as if the device had done the passes
 * before. */
void cox__residency_start_warmup(const struct cox_session *session, struct cox__frame *frame,
                                 uint32_t device);

/* Add FETCH bands for rows that planned bands, or a shadow run that the policy wishes for, read and that are only on
 * other devices. Or the frame is to begin anew. Returns whether there is something new to do. */
bool cox__residency_plan(struct cox_session *session, struct cox__frame *frame);

/* Whether all that a planned band reads is on its device or in the host's memory. */
bool cox__residency_is_ready(const struct cox_session *session, const struct cox__frame *frame,
                             uint32_t band);

/* Whether all that the pass reads for these rows is in the host's memory. */
bool cox__residency_is_on_host(const struct cox_session *session, const struct cox__frame *frame,
                               uint32_t first_row, uint32_t rows);

/* Fill in for a job what its device keeps, what to copy to the device, and what to copy from it.
 * The band is ready. False: the rows are in too many pieces. The frame then starts over, and
 * devices keep no more rows. */
bool cox__residency_fill(struct cox_session *session, struct cox__frame *frame,
                         struct cox__job *job);

/* A band's job has ended well: its rows are where it left them. The
 * device takes part. */
void cox__residency_note_done(struct cox_session *session, struct cox__frame *frame,
                              const struct cox__job *job, uint32_t device);

/* A FETCH band has failed, or will not be done. */
void cox__residency_note_failed(struct cox_session *session, struct cox__frame *frame,
                                uint32_t band);

/* What the device had of the frames under way is gone, since it is lost. */
void cox__residency_forget(struct cox_session *session, uint32_t device);

#endif
