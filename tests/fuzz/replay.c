/* Fuzz target: cox-lab replay reads a generated session database (rows.h). It must not crash. A database is refused
 * with one line, or the policies of its sessions can be called again. fuzz_replay_world runs the simulator.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"
#include "lab/replay/world.h"

enum { SESSIONS_MAX = 4 };

static void check_session(const struct lab_replay_data *data, const struct lab_replay_session *session)
{
    char lacks[160];
    const bool possible = lab_replay_possible(session, lacks, sizeof lacks);
    CHECK(memchr(session->policy, 0, sizeof session->policy));
    for (size_t f = 0; f < session->frame_count; f++) {
        const struct lab_replay_frame *frame = &session->frames[f];
        CHECK(f == 0 || frame->frame > session->frames[f - 1].frame);
        CHECK(frame->first_band <= session->band_count);
        CHECK(frame->band_count <= session->band_count - frame->first_band);
        /* Every frame number up to the last one costs memory. */
        CHECK(!possible || frame->frame < 2 * session->frame_count + 100);
    }
    for (size_t b = 0; b < session->band_count; b++) {
        CHECK(session->bands[b].device < data->device_count && session->bands[b].rows > 0);
        CHECK(session->bands[b].together >= 0 && session->bands[b].together <= 1 + 1e-9);
    }
    CHECK(session->options.ratio_count <= COX_DEVICES_MAX);
}

static void ask_again(struct sqlite3 *db, const struct lab_replay_session *session)
{
    struct lab_replay_decisions decisions;
    struct cox_policy policy;
    char why[400] = "";
    if (!lab_replay_policy(session->policy, &policy))
        return;
    if (!lab_replay_decide(db, session, &policy, &decisions, why, sizeof why))
        fuzz_why(why, sizeof why);
    else
        CHECK(memchr(decisions.recorded, 0, sizeof decisions.recorded));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lab_replay_data *run;
    char why[400] = "";
    struct sqlite3 *db = fuzz_rows(data, size);
    if (lab_replay_read(db, 0, &run, why, sizeof why)) {
        CHECK(run->device_count <= COX_DEVICES_MAX && run->rows >= 1 && run->row_alignment >= 1);
        for (size_t s = 0; s < run->session_count; s++)
            check_session(run, &run->sessions[s]);
        for (size_t s = 0; s < run->session_count && s < SESSIONS_MAX; s++)
            ask_again(db, &run->sessions[s]);
        lab_replay_free(&run);
    } else {
        fuzz_why(why, sizeof why);
    }
    CHECK(!run);
    return 0;
}
