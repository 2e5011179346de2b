/* What every part of `adaptive` asks of its state: the frame slot of a frame, and a device's time for a whole frame.
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"
#include "split/strict_fp.h"

struct cox__frame_slot *cox__adaptive_frame_slot(struct cox__adaptive *state, uint64_t frame)
{
    struct cox__frame_slot *slot = &state->frame_slots[frame % COX__FRAME_SLOTS];
    return slot->used && slot->frame == frame ? slot : NULL;
}

double cox__adaptive_frame_ns(const struct cox__adaptive_device *device, uint32_t rows)
{
    return cox__estimate_ns(&device->estimate, false, rows);
}
