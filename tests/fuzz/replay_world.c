/* Fuzz target: simulates a session of a generated database (rows.h), if cox-lab replay can read it, with the
 * recorded policy and with the oracle. Only short sessions run, since the target tests the effect of recorded
 * times.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"
#include "lab/replay/world.h"

enum { FRAMES_MAX = 12, ROWS_MAX = 128 };

static void simulate(const struct lab_replay_data *data, const struct lab_replay_session *session)
{
    struct lab_sim_frame frames[FRAMES_MAX];
    struct lab_sim_options options;
    struct lab_replay *replay;
    struct cox_policy policy;
    char why[400] = "";
    if (!lab_replay_create(data, session, &replay, why, sizeof why)) {
        CHECK(!replay);
        fuzz_why(why, sizeof why);
        return;
    }
    bool small = true;
    for (uint64_t f = 0; f < replay->world.frames; f++)
        small = small && replay->rows[f] <= ROWS_MAX;
    lab_replay_options(replay, &options);
    bool known = lab_replay_policy(session->policy, &policy);
    for (int p = 0; p < 2 && small; p++)
        if (p == 0 || known)
            (void)lab_simulate(&replay->world, p ? &policy : NULL, &options, 0, frames, why, sizeof why);
    lab_replay_destroy(&replay);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lab_replay_data *run;
    char why[400] = "";
    if (!lab_replay_read(fuzz_rows(data, size), 0, &run, why, sizeof why))
        return 0;
    /* Use the last session: the devices' costs come from the sessions before it. */
    const struct lab_replay_session *last = run->session_count ? &run->sessions[run->session_count - 1] : NULL;
    if (last && (!last->frame_count || last->frames[last->frame_count - 1].frame < FRAMES_MAX))
        simulate(run, last);
    lab_replay_free(&run);
    return 0;
}
