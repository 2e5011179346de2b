/* The spare buffers: a second set of buffers, on which devices repeat rows or do extra ones. Level
 * 2 of the engine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_SPARE_H
#define COX_ENGINE_SPARE_H

#include "engine/state.h"

/* Make the spare buffers serve a frame. False: they serve another frame, are being allocated, or
 * are not available (spare.state). */
bool cox__spare_take(struct cox_session *session, const struct cox__frame *owner);

/* A band starts to use the spare buffers, after cox__spare_take; a band has stopped using them. */
void cox__spare_use(struct cox__spare *spare);
void cox__spare_release(struct cox__spare *spare);

/* Copy from the frame's buffers the inputs that a band over these rows only reads. */
void cox__spare_fill_inputs(struct cox_session *session, const struct cox__frame *frame,
                            uint32_t first_row, uint32_t rows);

/* Copy the frame's contents of the rows that such a band writes. Call it each time before a device
 * repeats the rows for a comparison, because bytes that no kernel writes are compared too. A faulty
 * device that used the spare buffers may have changed those bytes there. */
void cox__spare_fill_outputs(struct cox_session *session, const struct cox__frame *frame,
                             uint32_t first_row, uint32_t rows);

/* The same for a repetition in a vote, with other bytes in place of the frame's: a result that
 * depends on what its outputs held before then differs. */
#define COX__SPARE_FLIP 0x5a /* the two are apart by these bits */
void cox__spare_fill_flipped(struct cox_session *session, const struct cox__frame *frame,
                             uint32_t first_row, uint32_t rows);

/* Change as many rows above and below as there are: a result that depends on rows which the band
 * must not read then differs. No band may use the spare buffers. */
void cox__spare_change_neighbours(struct cox_session *session, const struct cox__frame *frame,
                                  uint32_t first_row, uint32_t rows);

/* The binding of a band's inputs whose copy differs from the frame's buffer, so that something has
 * written to one of the two meanwhile. COX_BUFFERS_MAX if they are equal. */
uint32_t cox__spare_changed_input(const struct cox_session *session, const struct cox__frame *frame,
                                  uint32_t first_row, uint32_t rows);

/* Add PLANNED bands that check rows of the band `origin`, after cox__spare_take and both fill
 * functions. False: the frame has too many bands; its status says so. */
bool cox__spare_add_check(struct cox_session *session, struct cox__frame *frame, uint32_t device,
                          uint32_t first_row, uint32_t rows, uint32_t origin);

/* SHA-256 of what a pass wrote in these rows of `mems`, and of the partials if not NULL. */
void cox__spare_digest(struct cox__backend *backend, const struct cox__pass *pass,
                       struct cox__mem *const *mems, const void *partials, uint32_t first_row,
                       uint32_t rows, unsigned char digest[32]);

/* The result of a pass in these rows. The first function gives its size. The second copies it from
 * `mems`. The third finds the binding and the buffer row of byte `at` of such a copy. */
size_t cox__spare_result_bytes(const struct cox__pass *pass, uint32_t first_row, uint32_t rows);
void cox__spare_copy_result(struct cox__backend *backend, const struct cox__pass *pass,
                            struct cox__mem *const *mems, uint32_t first_row, uint32_t rows,
                            unsigned char *to);
void cox__spare_locate(const struct cox__pass *pass, uint32_t first_row, uint32_t rows, size_t at,
                       uint32_t *binding, size_t *row);

/* Whether the spare buffers and the frame have the same contents in these rows. */
bool cox__spare_equals(const struct cox_session *session, const struct cox__frame *frame,
                       uint32_t first_row, uint32_t rows);

#endif
