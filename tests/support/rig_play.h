/* What Criterion tests of the engine do with a rig: play frames and look at each, and end with nothing wrong.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_RIG_PLAY_H
#define COX_TESTS_RIG_PLAY_H

#include "fake_rig.h"
#include <criterion/criterion.h>

#define END(rig) cr_assert_str_empty(rig_end(&(rig)))

/* Frames `from` to `to` - 1, three at a time, all of which must come out right. */
static inline void rig_play(struct rig *rig, struct rig_frames *frames, cox_session *session, uint32_t from,
                            uint32_t to)
{
    for (uint32_t i = from; i < to; i += 3) {
        for (uint32_t k = 0; k < 3; k++)
            cr_assert_eq(rig_submit(frames, session, i + k, false), COX_OK, "%s", rig_log(rig));
        cox_session_wait(session);
        for (uint32_t k = 0; k < 3; k++) {
            cr_assert_eq(rig_done_status(rig, i + k), COX_OK);
            cr_assert_str_empty(rig_check(frames, i + k));
        }
    }
    cr_assert_eq(rig_done_count(rig), to);
}

#endif
