/* StarPU as a contestant: on the same devices, with the same kernels and buffers, in turns with the
 * policies. It is paused when it is not its turn, since its threads poll.
 *
 * StarPU leaves the number of blocks per frame to the program. So several numbers are tried before
 * the first frame, and the best one by median takes part.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/commands.h"
#include "state.h"
#include "dmda.h"

#include <stdlib.h>

enum {
    CALIBRATION_FRAMES = 12, /* on each device; StarPU trusts a model from ten tasks on */
    TRIAL_TURNS = 3          /* with each number of blocks */
};

const bool lab_run_has_starpu = true;

struct trial {
    uint32_t blocks;
    struct lab_spread spread;
};

struct baseline {
    struct lab_dmda *dmda;
    struct cox_frame frames[COX_IN_FLIGHT_MAX]; /* of each slot */
    uint64_t right[COX_IN_FLIGHT_MAX];          /* hash of the output of device 0 */
    struct trial trials[LAB_DMDA_BLOCKS_MAX];
    uint32_t trial_count, best;
    uint32_t lane; /* of its buffers */
};

/* --- Frames ----------------------------------------------------------------------------------- */

static void collect(struct baseline *baseline, struct lane *lane, uint64_t index)
{
    struct cox_frame_report report;

    lab_dmda_collect(baseline->dmda, index, &report);
    lab__run_report(lane, &report);
}

/* Submit frames as far ahead as `in_flight` allows, and collect the oldest one. */
static bool do_frames(struct run *run, struct lane *lane, uint64_t count, int device)
{
    const uint64_t first = lane->submitted, slots = run->options->in_flight;
    struct baseline *baseline = run->baseline;
    uint64_t collected = first;
    bool good = true;

    lane->turn_count = 0;
    lab_dmda_pause(baseline->dmda, false);

    while (good && lane->submitted < first + count && !lab__run_is_over(run)) {
        if (lane->submitted - collected == slots)
            collect(baseline, lane, collected++);
        good = lab_dmda_submit(baseline->dmda, lane->submitted, device);
        lane->submitted += good;
    }

    while (collected < lane->submitted)
        collect(baseline, lane, collected++);

    lab_dmda_pause(baseline->dmda, true);
    lab_store_write(run->command->store);

    if (!good)
        run->failed = !lab_fail("StarPU: cannot submit a task");

    return !lab__run_is_over(run);
}

/* Run frames and compare the output of the last one. */
bool lab__run_baseline_frames(struct run *run, struct lane *lane, uint64_t count)
{
    struct baseline *baseline = run->baseline;
    const uint64_t last = lane->submitted + count - 1;

    lab_kernel_wipe(run->kernel, baseline->lane, last);
    if (!do_frames(run, lane, count, LAB_DMDA_ANY_DEVICE))
        return false;

    lane->compared++;
    if (lab_kernel_hash(run->kernel, baseline->lane, last) !=
            baseline->right[last % run->options->in_flight] &&
        lane->different++ == 0)
        lab_fail("StarPU, %u blocks: a frame differs from the output of device 0 alone",
                 baseline->trials[baseline->trial_count].blocks);
    return true;
}

/* --- Before the first frame ------------------------------------------------------------------- */

/* Keep the output of device 0 alone for each slot. */
static bool know_outputs(struct run *run)
{
    const uint32_t slots = run->options->in_flight;
    uint32_t rows[COX_DEVICES_MAX] = {lab_kernel_rows(run->kernel)};

    if (!lab__run_split(run, rows, slots))
        return false;

    for (uint32_t i = 0; i < slots; i++) {
        const uint64_t index = run->references.submitted - 1 - i;
        run->baseline->right[index % slots] = lab_kernel_hash(run->kernel, run->references.number,
                                                              index);
    }
    return true;
}

/* Try one number of blocks: calibrate the models on each device, then measure frames. */
static bool try_blocks(struct run *run, struct lane *lane, struct trial *trial)
{
    struct baseline *baseline = run->baseline;
    double ns[TRIAL_TURNS * LAB__RUN_BLOCK_MAX];
    size_t count = 0;
    char why[320];

    if (!lab_dmda_cut(baseline->dmda, trial->blocks, why, sizeof why))
        return lab_fail("--baseline starpu: %s", why);

    for (uint32_t d = 0; d < run->device_count; d++)
        if (!do_frames(run, lane, CALIBRATION_FRAMES, (int)d))
            return false;

    for (int turn = 0; turn < TRIAL_TURNS; turn++) {
        if (!lab__run_baseline_frames(run, lane, lab__run_block(run->options)))
            return false;
        for (uint32_t i = 0; i < lane->turn_count; i++)
            ns[count++] = lane->turn_ns[i];
    }

    trial->spread = lab_spread_of(ns, count);
    return count || lab_fail("--baseline starpu: no frame was computed");
}

static bool try_all(struct run *run)
{
    struct baseline *baseline = run->baseline;
    struct lane lane = {.number = baseline->lane};
    char why[320];

    for (uint32_t blocks = 1; blocks <= lab_dmda_blocks_most(baseline->dmda); blocks *= 2) {
        struct trial *trial = &baseline->trials[baseline->trial_count];
        trial->blocks = blocks;

        if (!try_blocks(run, &lane, trial))
            return false;
        if (trial->spread.p50_ns < baseline->trials[baseline->best].spread.p50_ns)
            baseline->best = baseline->trial_count;
        baseline->trial_count++;
    }

    /* The last trial is the one that takes part. */
    baseline->trials[baseline->trial_count] = baseline->trials[baseline->best];

    run->policies[run->options->policy_count - 1].different += lane.different;
    run->policies[run->options->policy_count - 1].compared += lane.compared;

    return lab_dmda_cut(baseline->dmda, baseline->trials[baseline->best].blocks, why, sizeof why) ||
           lab_fail("--baseline starpu: %s", why);
}

static void report_trials(const struct run *run)
{
    const struct baseline *baseline = run->baseline;
    const bool print = run->options->format == LAB_TABLE;
    char version[32], text[1024];

    lab_dmda_version(version, sizeof version);
    int length = snprintf(text, sizeof text, "StarPU %s, dmda, %u blocks", version,
                          baseline->trials[baseline->best].blocks);

    if (print)
        printf("baseline: %s; the sweep:\n  %-18s %9s %9s %9s\n", text, "blocks", "mean ms",
               "p50 ms", "p99 ms");
    for (uint32_t i = 0; i < baseline->trial_count; i++) {
        const struct trial *trial = &baseline->trials[i];
        const struct lab_spread *spread = &trial->spread;

        if (print)
            printf("  %-18u %9.3f %9.3f %9.3f%s\n", trial->blocks, spread->mean_ns / 1e6,
                   spread->p50_ns / 1e6, spread->p99_ns / 1e6,
                   i == baseline->best ? "  the best by median" : "");

        length += snprintf(text + length, sizeof text - (size_t)length, "; %u: %.3f %.3f %.3f ms",
                           trial->blocks, spread->mean_ns / 1e6, spread->p50_ns / 1e6,
                           spread->p99_ns / 1e6);
    }

    lab_store_setting(run->command->store, "baseline", text);
}

bool lab__run_open_baseline(struct run *run)
{
    struct baseline *baseline = calloc(1, sizeof *baseline);
    struct cox_session_info info;
    char why[600];

    if (!baseline)
        return lab_fail("out of memory");
    run->baseline = baseline;
    baseline->lane = run->options->policy_count; /* the last one; the references have number 0 */

    cox_session_info(run->references.session, &info);
    for (uint32_t slot = 0; slot < run->options->in_flight; slot++)
        baseline->frames[slot] = lab_kernel_frame(run->kernel, baseline->lane, slot);

    const struct lab_dmda_params params = {.kernel = lab_kernel_name(run->kernel),
                                           .session = lab_kernel_session(run->kernel),
                                           .row_alignment = info.row_alignment,
                                           .devices = run->devices,
                                           .device_count = run->device_count,
                                           .arithmetic = cox_runtime_arithmetic(run->runtime),
                                           .slots = run->options->in_flight,
                                           .frames = baseline->frames};

    if (!lab_dmda_open(&params, &baseline->dmda, why, sizeof why))
        return lab_fail("--baseline starpu: %s", why);

    if (!know_outputs(run) || !try_all(run))
        return false;

    report_trials(run);
    return true;
}

void lab__run_close_baseline(struct run *run)
{
    if (run->baseline)
        lab_dmda_close(&run->baseline->dmda);
    free(run->baseline);
    run->baseline = NULL;
}
