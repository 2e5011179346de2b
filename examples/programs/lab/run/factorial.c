/* --anova: the design of a command's runs. Its factors are policies, phases, and the sizes and
 * ratios. Each repeat is a block: its policies ran in turns. A time is the mean of a policy's frames
 * in a phase of a repeat.
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"
#include "lab/anova.h"
#include "lab/fail.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct factorial {
    uint32_t runs, phase_count; /* runs noted until now */
    char phases[LAB_PHASES_MAX][sizeof(((struct lab_phase *)0)->text)];
    char sizes[LAB_RUN_SIZES_MAX * LAB_RUN_RATIOS_MAX][48];
    double times[]; /* [run][policy][phase][repeat] */
};

static uint32_t run_count(const struct lab_run_options *options)
{
    return options->size_count * options->ratio_count;
}

/* The mean period of a policy in a phase of a repeat; NaN without a frame. */
static bool time_of(const struct run *run, uint32_t policy, uint32_t phase, uint32_t repeat,
                    double *ns)
{
    const uint64_t stride = run->options->frames;
    const struct lab_run_range range = {run->phases[phase].first_frame,
                                        run->phases[phase].end_frame, 1, stride};
    struct lab_run_figures figures;

    *ns = NAN;
    if (!lab_run_figures_of(run->frames[policy] + repeat * stride, &range, &run->reference[phase],
                            &figures))
        return false;
    if (figures.frames > 0)
        *ns = figures.spread.mean_ns;
    return true;
}

static void name_levels(const struct run *run, struct factorial *factorial)
{
    const struct lab_run_options *options = run->options;
    char *size = factorial->sizes[factorial->runs];
    char ratio[24] = "";

    if (options->ratio_count > 1)
        snprintf(ratio, sizeof ratio, " ratio %" PRIu32, run->ratio);
    snprintf(size, sizeof factorial->sizes[0], "%" PRIu32 "x%" PRIu32 "%s", run->size.columns,
             run->size.rows, ratio);

    factorial->phase_count = run->phase_count;
    for (uint32_t p = 0; p < run->phase_count; p++)
        snprintf(factorial->phases[p], sizeof factorial->phases[p], "%s", run->phases[p].text);
}

bool lab__run_note_times(const struct run *run)
{
    const struct lab_run_options *options = run->options;
    const size_t each = (size_t)options->policy_count * run->phase_count * options->repeats;
    struct factorial *factorial = run->command->factorial;

    if (!options->anova)
        return true;
    if (!factorial)
        factorial = calloc(1, sizeof *factorial +
                                  run_count(options) * each * sizeof factorial->times[0]);
    if (!factorial)
        return lab_fail("out of memory");
    run->command->factorial = factorial;

    double *time = factorial->times + factorial->runs * each;
    for (uint32_t i = 0; i < options->policy_count; i++)
        for (uint32_t p = 0; p < run->phase_count; p++)
            for (uint32_t r = 0; r < options->repeats; r++)
                if (!time_of(run, i, p, r, time++))
                    return lab_fail("out of memory");

    name_levels(run, factorial);
    factorial->runs++;
    return true;
}

bool lab__run_print_anova(const struct command *command)
{
    const struct lab_run_options *options = command->options;
    const struct factorial *factorial = command->factorial;
    const char *sizes[LAB_RUN_SIZES_MAX * LAB_RUN_RATIOS_MAX], *phases[LAB_PHASES_MAX],
        *policies[LAB_RUN_POLICIES_MAX];
    char why[200];

    if (!factorial || factorial->runs < run_count(options))
        return true; /* a run has failed, with a message */

    for (uint32_t i = 0; i < factorial->runs; i++)
        sizes[i] = factorial->sizes[i];
    for (uint32_t i = 0; i < factorial->phase_count; i++)
        phases[i] = factorial->phases[i];
    for (uint32_t i = 0; i < options->policy_count; i++)
        policies[i] = options->policies[i].name;

    const struct anova_design design = {.factor_count = 3,
                                        .factors = {{"size", factorial->runs, sizes},
                                                    {"policy", options->policy_count, policies},
                                                    {"phase", factorial->phase_count, phases}},
                                        .replicates = options->repeats,
                                        .block_name = "repeat",
                                        .block_within = 0,
                                        .times = factorial->times};
    putchar('\n');
    return anova_print(&design, LAB_TABLE, why, sizeof why) || lab_fail("--anova: %s", why);
}
