/* Check mode: finds mistakes of kernels before a frame runs.
 *
 * Each pass runs alone, on memory that is larger than its buffers. Rows that a band must not read,
 * outputs and the memory around the buffers hold poison: bytes that follow from a seed. A run is
 * repeated with the inverted poison. What then differs was read, though it must not be, or was not
 * written.
 *
 *   one band   twice, with equal results                          check.c
 *              groups in another order, and more groups           check.c
 *              inverted poison                                    check.c, compare.c
 *   splits     each band alone, against the rows of one band      bands.c
 *   merged     over each split, against one band                  bands.c
 *   devices    each against the first                             check.c
 *
 * poison.c lays out and fills the memory. culprit.c finds the byte that was read. finding.c writes
 * the log lines.
 *
 * Above the engine's pipeline and the backend, and apart from the rest of the engine: it has its
 * own device instances and no frames. All runs are on the thread that submits the frame.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_CHECK_CHECK_H
#define COX_CHECK_CHECK_H

#include "base/log.h"
#include "engine/pipeline.h"

struct cox__check;

/* `pipeline`: of the session that the spec describes; read only during the call. `devices`: of the
 * session, by the runtime's index. Errors (logged): COX_E_UNSUPPORTED, COX_E_NOMEM. */
cox_status cox__check_create(struct cox__backend *backend, const struct cox__log *log,
                             const struct cox__session_spec *spec,
                             const struct cox__pipeline *pipeline, const uint32_t *devices,
                             uint32_t device_count, struct cox__check **out);

/* Check the kernels with a frame's buffers and parameters, which stay unchanged. A buffer is NULL
 * for scratch. The first call compiles.
 *
 * Blocks. One frame is checked at a time.
 *
 * Errors:
 *   COX_E_MISMATCH   There is a finding; each has a log line.
 *   others           A device could not run the check (logged). */
cox_status cox__check_frame(struct cox__check *check, void *const *buffers, const void *params);

/* Accepts NULL. */
void cox__check_destroy(struct cox__check *check);

#endif
