/* The results of a run: figures, their confidence, tables and rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include <inttypes.h>
#include <math.h>

static void print_quiet(const struct run *run)
{
    double others = quiet_others(&run->quiet);

    if (others >= 0)
        printf("\nother programs used %.2f processors meanwhile; %u of %" PRIu64
               " rounds were left out for them\n",
               others, run->quiet.again, run->rounds);

    if (quiet_busy(&run->quiet))
        printf("The machine was BUSY: the figures say little.\n");
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

    bool good = lab_bootstrap(&own, &single, &out->of);
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

bool lab__run_figures(const struct run *run, struct lab_run_figures *figures,
                      struct lab_run_certainty *certainties)
{
    const struct lab_run_options *options = run->options;
    for (uint32_t i = 0; i < options->policy_count; i++)
        for (uint32_t p = 0; p < run->phase_count; p++) {
            const struct lab_run_range range = {run->phases[p].first_frame,
                                                run->phases[p].end_frame, options->repeats,
                                                options->frames};
            if (!lab_run_figures_of(run->frames[i], &range, &run->reference[p],
                                    &figures[i * run->phase_count + p]) ||
                !certainty_of(run, i, &range, p, &certainties[i * run->phase_count + p]))
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

void lab__run_print(struct run *run, const struct lab_run_figures *figures,
                    const struct lab_run_certainty *certainties)
{
    struct lab_run_table table = {.options = run->options,
                                  .run = run->number,
                                  .kernel = lab_kernel_name(run->kernel),
                                  .reserve = lab_run_reserve_name(run->command->reserve),
                                  .size = run->size,
                                  .ratio = lab_kernel_has_work(run->kernel) ? run->ratio : 0,
                                  .phase_count = run->phase_count,
                                  .phases = run->phases,
                                  .references = run->reference,
                                  .figures = figures,
                                  .certainties = certainties,
                                  .foreign_load = quiet_others(&run->quiet)};

    for (uint32_t i = 0; i < run->options->policy_count; i++) {
        table.compared[i] = run->policies[i].compared;
        table.different[i] = run->policies[i].different;
    }

    lab_run_rows(&run->command->shared->rows, &table);
    if (run->options->format != LAB_TABLE)
        return;

    print_quiet(run);
    lab_run_print(stdout, &table);
}
