/* SPDX-License-Identifier: Apache-2.0 */
#include "certainty.h"

#include <math.h>
#include <string.h>

uint32_t report_first_policy(const struct report_run *run)
{
    uint32_t policy = 0;

    while (policy < run->policy_count && strcmp(run->policies[policy], "oracle") == 0)
        policy++;
    return policy;
}

/* Frames in a row, as `cox-lab run` gives them to a policy. */
static double block_frames(const struct report_run *run)
{
    if (run->in_flight >= 1 && run->in_flight <= COX_IN_FLIGHT_MAX)
        return LAB_BLOCK_FRAMES * floor(run->in_flight);
    return LAB_BLOCK_FRAMES;
}

/* The frames of a session in a phase. A repeat's blocks follow those of the one before. */
static void add_session(const struct report_run *run, const struct report_session *session,
                        uint64_t repeat, uint32_t phase, struct lab_blocks *out)
{
    double first = 0;

    if (phase < run->phase_count && isfinite(run->phases[phase].first_frame))
        first = run->phases[phase].first_frame;

    for (size_t f = 0; f < session->frame_count; f++) {
        const struct report_frame *frame = &session->frames[f];

        if (frame->phase != phase || isnan(frame->time_ns) || frame->frame < first)
            continue;
        lab_blocks_add(out, frame->time_ns,
                       repeat * REPORT_FRAMES_MAX +
                           (uint64_t)((frame->frame - first) / block_frames(run)));
    }
}

/* The phases from `first` to `end` - 1 as strata. phase_count is that of frames without a phase. */
static void add_policy(const struct report_run *run, uint32_t policy, uint32_t first, uint32_t end,
                       struct lab_blocks *out)
{
    for (uint32_t phase = first; phase < end; phase++) {
        uint64_t repeat = 0;

        out->stratum = phase;
        for (size_t i = 0; i < run->session_count; i++)
            if (run->sessions[i].policy == policy)
                add_session(run, &run->sessions[i], repeat++, phase, out);
    }
}

bool report_certainty(const struct report_run *run, uint32_t policy, uint32_t phase,
                      struct report_certainty *out)
{
    const uint32_t other = report_first_policy(run);
    struct lab_blocks own = {0}, first = {0};
    uint32_t begin = phase, end = phase + 1;

    if (phase == REPORT_ALL_PHASES) {
        begin = 0;
        end = run->phase_count + 1;
    }

    add_policy(run, policy, begin, end, &own);
    *out = (struct report_certainty){.blocks = own.blocks, .over_first = lab_no_pair};

    bool good = lab_bootstrap(&own, NULL, &out->of);
    if (good && other != policy && other < run->policy_count) {
        add_policy(run, other, begin, end, &first);
        good = lab_bootstrap_pair(&own, &first, &out->over_first);
    }

    lab_blocks_free(&own);
    lab_blocks_free(&first);
    return good;
}
