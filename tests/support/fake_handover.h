/* Tracks which rows a frame's passes have written, so that the scripted devices can record a pass that reads rows
 * too early. Not thread-safe.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAKE_HANDOVER_H
#define COX_TESTS_FAKE_HANDOVER_H

#include "engine/pipeline.h"

/* The rows of one frame that bands have written so far. */
struct fake_handover;

/* A band of an application's frame. */
struct fake_handover_band {
    const void *frame; /* the frame's slot, which later frames reuse */
    const void *session;
    uint64_t index; /* the frame's number */
    uint32_t pass;
    uint32_t first_row;
    uint32_t rows;
};

/* Call this when a band is submitted: the rows that it writes count as missing until it ends. Returns the first
 * binding of which the band reads missing rows of an earlier pass; COX_BUFFERS_MAX = none. */
uint32_t fake_handover_begin(struct fake_handover **all, const struct cox__pipeline *pipeline,
                             const struct fake_handover_band *band);

/* Call this when the band has succeeded. */
void fake_handover_end(struct fake_handover *all, const struct cox__pipeline *pipeline,
                       const struct fake_handover_band *band);

void fake_handover_free(struct fake_handover **all);

#endif
