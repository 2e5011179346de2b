/* What a frame's passes hand over to each other, by rows: for the scripted devices, which note what a pass reads before
 * it is there. Not thread-safe.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAKE_HANDOVER_H
#define COX_TESTS_FAKE_HANDOVER_H

#include "engine/pipeline.h"

/* The rows of one frame that bands have written so far. */
struct fake_handover;

/* A band of a frame of the application's. */
struct fake_handover_band {
    const void *frame; /* its slot, in which one frame follows the other */
    const void *session;
    uint64_t index; /* the frame's number */
    uint32_t pass;
    uint32_t first_row;
    uint32_t rows;
};

/* A band is submitted: what it writes is not there until it ends. Returns the first binding of which it reads rows that
 * an earlier pass writes and that are not there; COX_BUFFERS_MAX = none. */
uint32_t fake_handover_begin(struct fake_handover **all, const struct cox__pipeline *pipeline,
                             const struct fake_handover_band *band);

/* It has ended well. */
void fake_handover_end(struct fake_handover *all, const struct cox__pipeline *pipeline,
                       const struct fake_handover_band *band);

void fake_handover_free(struct fake_handover **all);

#endif
