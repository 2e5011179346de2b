/* The figures of a run, and their confidence.
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include <math.h>
#include <stdlib.h>

/* Compare with the policy named first. */
static bool compare_with_first(const struct run *run, uint32_t policy,
                               const struct lab_run_range *range, struct lab_blocks *own,
                               struct lab_pair *out)
{
    struct lab_blocks first = {0};

    *out = lab_no_pair;
    if (policy == 0)
        return true;

    lab_run_blocks_of(run->frames[0], range, lab__run_block(run->options), &first);
    const bool good = lab_bootstrap_pair(own, &first, out);
    lab_blocks_free(&first);
    return good;
}

/* The confidence of one policy's figures in one phase, and the effect of a reserved core. */
static bool certainty_of(const struct run *run, uint32_t policy, const struct lab_run_range *range,
                         uint32_t phase, struct lab_run_certainty *out)
{
    const struct lab_sweep *sweep = &run->sweeps[phase].sweep;
    const size_t frames = (size_t)range->stride * range->repeats;
    struct lab_blocks own = {0}, single = {0}, off = {0};
    struct lab_intervals intervals;
    struct lab_run_figures without;
    *out = (struct lab_run_certainty){.over_off = NAN, .over_off_interval = {NAN, NAN}};

    lab_run_blocks_of(run->frames[policy], range, lab__run_block(run->options), &own);
    lab_run_blocks_of_turns(&sweep->candidates[run->reference[phase].best_solo], sweep->turn,
                            &single);

    out->blocks = own.blocks;

    bool good = lab_bootstrap(&own, &single, &out->of) &&
                compare_with_first(run, policy, range, &own, &out->over_first);
    if (good && lab_sides_is_second(run->command->sides)) {
        const struct lab_run_frame *other = &run->command->shared->frames[policy * frames];
        const struct lab_run_reference *reference = &run->reference[phase];
        struct lab_run_figures with;

        lab_run_blocks_of(other, range, lab__run_block(run->options), &off);
        good = lab_bootstrap(&own, &off, &intervals) &&
               lab_run_figures_of(other, range, reference, &without) &&
               lab_run_figures_of(run->frames[policy], range, reference, &with);

        out->over_off_interval = intervals.ratio;
        if (good && with.frames && without.frames)
            out->over_off = with.spread.p50_ns / without.spread.p50_ns;
    }

    lab_blocks_free(&own);
    lab_blocks_free(&single);
    lab_blocks_free(&off);
    return good;
}

bool lab__run_compute_figures(struct run *run)
{
    const struct lab_run_options *options = run->options;
    const size_t count = (size_t)options->policy_count * run->phase_count;

    run->figures = calloc(count, sizeof *run->figures);
    run->certainties = calloc(count, sizeof *run->certainties);
    if (!run->figures || !run->certainties)
        return false;

    for (uint32_t i = 0; i < options->policy_count; i++)
        for (uint32_t p = 0; p < run->phase_count; p++) {
            const struct lab_run_range range = {run->phases[p].first_frame,
                                                run->phases[p].end_frame, options->repeats,
                                                options->frames};
            const uint32_t at = i * run->phase_count + p;

            if (!lab_run_figures_of(run->frames[i], &range, &run->reference[p],
                                    &run->figures[at]) ||
                !certainty_of(run, i, &range, p, &run->certainties[at]))
                return false;
        }

    return true;
}

bool lab__run_has_differences(const struct run *run)
{
    bool any = run->references.different > 0;

    for (uint32_t i = 0; i < run->options->policy_count; i++)
        any = any || run->policies[i].different > 0;
    return any;
}
