/* Which rows of a frame are where: of what staged devices keep from pass to pass, and of buffers
 * that lie on a device (home.h). Above frame.c, of level 1 of the engine.
 *
 * A binding that several passes touch is resident (a bit for each in struct cox__pipeline). A
 * staged device has memory for the whole frame of such a binding: rows that it wrote, or that were
 * copied to it once, stay there.
 *
 * Outputs of the application are always copied out. Scratch is copied out only if another device
 * reads it. That happens with the band that writes it, if such rows were read in earlier frames
 * too. Otherwise a FETCH band of the frame copies it later, and the band that reads the rows waits.
 * Row ranges record which rows are in the host's memory, in each device's memory, and on their way.
 *
 * If a band needs rows that only a lost device had, the frame restarts from its inputs. Rows that
 * were copied to the host before stay valid.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_RESIDENCY_H
#define COX_ENGINE_RESIDENCY_H

#include "engine/state.h"

/* Memory for the row sets of a frame slot. False: there is no memory; call cox__residency_free even
 * so. */
bool cox__residency_allocate(struct cox__frame *frame, uint32_t device_count);
void cox__residency_free(struct cox__frame *frame);
void cox__residency_free_history(struct cox__handed_over *history);

/* A frame of the application starts: its inputs are in the host's memory, and no device has any
 * rows. */
void cox__residency_start(struct cox_session *session, struct cox__frame *frame);

/* A run of the warm-up has begun a pass. It counts as if the results of the passes before were in
 * the host's memory. The devices in `holders`, a bit for each, have them in their own memory
 * too. Returns false if there is no memory to note that: the run then uses the host's memory. */
bool cox__residency_start_warmup(const struct cox__devices *devices, struct cox__frame *frame,
                                 uint32_t holders);

/* Add FETCH bands for rows that only other devices have, if a planned band reads them or a shadow
 * run that the policy asks for. Or request a restart of the frame. Returns whether there is
 * something new to do. */
bool cox__residency_plan(struct cox_session *session, struct cox__frame *frame);

/* Whether all rows that a planned band reads are on its device or in the host's memory. */
bool cox__residency_is_ready(const struct cox__frame *frame, uint32_t band);

/* Whether all that the pass reads for these rows is in the host's memory. */
bool cox__residency_is_on_host(const struct cox__frame *frame, uint32_t first_row, uint32_t rows);

/* Fill in for a job what its device keeps, what to copy to the device, and what to copy from it.
 * The band is ready. False: the rows are in too many pieces. The frame then restarts, and devices
 * keep no more rows. */
bool cox__residency_fill(struct cox_session *session, struct cox__frame *frame,
                         struct cox__job *job);

/* A band's job has succeeded: record where its rows are now. The device takes part in the
 * session. */
void cox__residency_note_done(struct cox__frame *frame, const struct cox__job *job,
                              uint32_t device);

/* A band has failed, or will not be done. For bands other than FETCH there is nothing to note. */
void cox__residency_note_failed(struct cox__frame *frame, uint32_t band);

/* The next rows after `*rows` of a buffer that lies on a device, which the host's memory has and
 * that device has not. False: there are none. */
bool cox__residency_next_away(const struct cox__frame *frame, uint32_t binding,
                              struct cox__row_range *rows);

/* The device is lost, and with it what it had of the running frames. */
void cox__residency_forget(const struct cox__order *order, uint32_t device);

/* Time to bring one byte from one device to another, through the host. */
double cox__residency_byte_ns(const struct cox__residency *residency);

/* A fetch took `ns`. Learn how fast rows move. */
void cox__residency_learn_fetch(struct cox__residency *residency,
                                const struct cox__pipeline *pipeline, const struct cox__job *job,
                                uint64_t ns);

#endif
