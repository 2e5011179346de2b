/* The order of a run. Frames come in blocks: each policy in turn runs its next few frames, then the
 * references run some, under the same disturbances. So other events on the machine affect all
 * contestants alike. Disturbances start and end between blocks, when no frame is under way. Each
 * repeat has its own sessions; the references are measured over all repeats.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "measure.h"
#include "common/plain_output.h"
#include "disturb_quota.h"
#include "interrupt.h"
#include "lab/commands.h"
#include "state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- Phases ----------------------------------------------------------------------------------- */

static void show_progress(const struct run *run, uint32_t repeat, uint32_t phase, uint64_t frame)
{
    if (isatty(STDERR_FILENO))
        fprintf(plain_output_terminal(),
                "\rrepeat %u of %u, phase %u of %u, %s: frame %" PRIu64 " of %" PRIu64 " \033[K",
                repeat + 1, run->options->repeats, phase + 1, run->phase_count,
                run->phases[phase].text, frame, run->options->frames);
}

static void clear_progress(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", plain_output_terminal());
}

/* Wait for this side's turn to measure. Then exactly the disturbances of `active` are on. */
static bool take_turn(struct run *run, uint32_t active)
{
    char why[320];

    if (!lab_sides_take(run->command->sides)) {
        run->failed = true;
        return !lab__run_interrupted() &&
               lab_fail("the process %s a reserved core has ended",
                        run->command->reserve == LAB_RESERVE_ON ? "without" : "with");
    }

    if (run->command->sides)
        lab_sampler_pause(run->sampler, false);

    return lab_disturber_set(run->command->disturber, active, why, sizeof why) ||
           lab_fail("%s", why);
}

/* Give the other side its turn, with all disturbances off. */
static bool pass_turn(struct run *run)
{
    char why[320];

    if (!run->command->sides)
        return true;

    lab_sampler_pause(run->sampler, true);
    lab_store_commit(run->command->store);
    if (!lab_disturber_set(run->command->disturber, 0, why, sizeof why))
        return lab_fail("%s", why);

    lab_sides_pass(run->command->sides);
    return true;
}

/* Run a block of each policy, unless there are no frames left, and a round of the references. */
static bool run_round(struct run *run, uint32_t phase, uint64_t first, uint64_t end)
{
    uint32_t policies = run->options->policy_count;

    lab_sweep_mark(&run->at->sweep);
    quiet_begin(&run->quiet);

    for (uint32_t i = 0; i < policies && first < end; i++) {
        uint32_t turn = (uint32_t)((i + run->rounds) % policies);
        const struct lab_run_policy *policy = &run->options->policies[turn];
        struct lane *lane = &run->policies[turn];
        bool good;

        if (policy->baseline)
            good = lab__run_baseline_frames(run, lane, end - first);
        else
            good = lab__run_checked(run, lane, end - first, policy->name);
        if (!good)
            return false;
    }

    if (!lab__run_sweep_round(run, phase))
        return false;
    run->rounds++;

    if (quiet_keep(&run->quiet))
        return true;

    /* Other programs ran during the round: drop it. */
    for (uint32_t i = 0; i < policies; i++)
        for (uint64_t f = first; f < end; f++)
            run->policies[i].frames[f].disturbed = true;
    lab_sweep_undo(&run->at->sweep);
    return true;
}

static void begin_phase(struct run *run, uint32_t phase)
{
    int32_t steps = 0;

    run->at = &run->sweeps[phase];

    for (uint32_t i = 0; i < run->options->disturbance_count; i++)
        if (run->phases[phase].active >> i & 1 && run->delay_steps[i] > steps)
            steps = run->delay_steps[i];
    lab_kernel_set_delay(run->kernel, steps);
}

static bool run_phase(struct run *run, uint32_t repeat, uint32_t phase)
{
    const struct lab_phase *p = &run->phases[phase];
    const uint64_t block = lab__run_block(run->options);

    begin_phase(run, phase);
    if (run->options->soak_s > 0 && repeat == 0 && phase == 0 && !lab__run_soak(run))
        return false;

    for (uint64_t first = p->first_frame;
         first < p->end_frame || run->at->rounds < run->options->rounds;) {
        uint64_t end = p->end_frame;

        if (end - first > block)
            end = first + block;

        show_progress(run, repeat, phase, end);
        if (!take_turn(run, p->active) || !run_round(run, phase, first, end) || !pass_turn(run))
            return false;
        first = end;
    }

    return take_turn(run, 0) && lab__run_refer(run, phase) && pass_turn(run);
}

/* --- Before the first frame ------------------------------------------------------------------- */

static void on_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user, (void)level;
    lab_fail("%s", line);
}

static bool open_devices(struct run *run)
{
    static const enum cox_reserve reserves[] = {COX_RESERVE_AUTO, COX_RESERVE_OFF, COX_RESERVE_ON};
    const struct lab_run_options *options = run->options;
    struct lab_kernel_params params = {.kind = options->kernel,
                                       .user = run->command->user,
                                       .columns = run->size.columns,
                                       .rows = run->size.rows,
                                       .lanes = 1 + options->policy_count,
                                       .slots = options->in_flight,
                                       .ratio = run->ratio};
    char why[600];

    if (!lab__run_delayed_device(options, &params.delayed, &params.delay_device))
        return false;

    cox_status status =
        cox_runtime_create(&(const struct cox_runtime_params){.devices = options->devices,
                                                              .reserve =
                                                                  reserves[run->command->reserve],
                                                              .log = on_log},
                           &run->runtime);

    if (status != COX_OK)
        return lab_fail("devices '%s': %s", options->devices ? options->devices : "all",
                        cox_status_text(status));

    run->device_count = cox_runtime_device_count(run->runtime);
    for (uint32_t d = 0; d < run->device_count; d++)
        cox_runtime_device_info(run->runtime, d, &run->devices[d]);

    if (params.delayed && params.delay_device >= run->device_count)
        return lab_fail("cannot delay device %u: only %u are in use", params.delay_device,
                        run->device_count);

    if (!lab_kernel_open(run->runtime, &params, &run->kernel, why, sizeof why))
        return lab_fail("%s", why);

    run->size = (struct lab_size){lab_kernel_columns(run->kernel), lab_kernel_rows(run->kernel)};
    return lab__run_open_lane(run, &run->references, &lab_sweep_policy);
}

static bool open_policies(struct run *run, uint32_t repeat)
{
    for (uint32_t i = 0; i < run->options->policy_count && !lab__run_is_over(run); i++) {
        struct lane *lane = &run->policies[i];
        const struct cox_policy *policy = &run->options->policies[i].policy;
        const struct lab_store_session about = {
            .kind = LAB_SESSION_POLICY, .policy = policy->name, .repeat = repeat};

        lane->number = 1 + i;
        lane->submitted = lane->last_end_ns = 0;
        lane->frames = run->frames[i] + repeat * run->options->frames;
        lane->recorded = lab_store_begin_session(run->command->store, &about);
        if (!run->options->policies[i].baseline &&
            !lab__run_open_lane(run, lane, lab_session_tape(lane->recorded, policy)))
            return false;
    }

    return !lab__run_is_over(run);
}

static void close_policies(struct run *run)
{
    for (uint32_t i = 0; i < run->options->policy_count; i++)
        cox_session_destroy(&run->policies[i].session);
}

static bool run_repeat(struct run *run, uint32_t repeat)
{
    bool good = take_turn(run, 0) && open_policies(run, repeat) && pass_turn(run);

    for (uint32_t p = 0; good && p < run->phase_count; p++)
        good = run_phase(run, repeat, p);

    for (uint32_t i = 0; i < run->options->policy_count; i++)
        lab__run_note_absences(run, &run->policies[i]);

    if (good && repeat + 1 < run->options->repeats)
        close_policies(run);
    return good;
}

/* --- One run ---------------------------------------------------------------------------------- */

/* The meter is the CPU's: it does not see the energy of a discrete GPU. */
static void warn_of_meter(const struct run *run)
{
    for (uint32_t d = 0; d < run->device_count && run->command->energy; d++)
        if (run->devices[d].mode == COX_MODE_STAGED)
            lab_fail("the energy figures do not include device %u (%s): the meter is the "
                     "processor's",
                     d, run->devices[d].name);
}

/* The second side does the same work as the first one, so that they can be compared. */
static bool choose_work(struct run *run)
{
    struct command *command = run->command;

    if (!lab_kernel_has_work(run->kernel))
        return true;

    if (lab_sides_is_second(command->sides))
        lab_kernel_set_work(run->kernel, command->shared->work);
    else if (!lab__run_choose_work(run))
        return false;
    command->shared->work = lab_kernel_work(run->kernel);
    return true;
}

/* With two sides the first one's frames are in the shared memory. */
static bool has_shared_frames(const struct run *run)
{
    return run->command->sides && !lab_sides_is_second(run->command->sides);
}

static bool allocate(struct run *run)
{
    const struct lab_run_options *options = run->options;
    size_t frames = options->frames * options->repeats;
    bool shared = has_shared_frames(run);
    bool good = true;

    run->reference = calloc(run->phase_count, sizeof *run->reference);
    run->sweeps = calloc(run->phase_count, sizeof *run->sweeps);

    for (uint32_t i = 0; i < options->policy_count; i++) {
        if (shared)
            run->frames[i] = &run->command->shared->frames[i * frames];
        else
            run->frames[i] = calloc(frames, sizeof *run->frames[i]);
        good = good && run->frames[i];
    }

    return (good && run->reference && run->sweeps) || lab_fail("out of memory");
}

static bool start(struct run *run)
{
    if (!take_turn(run, 0) || !allocate(run) || !open_devices(run) ||
        !lab__run_check_kernels(run) || !choose_work(run) || !lab__run_prepare_disturbances(run) ||
        !lab__run_know_outputs(run))
        return false;

    warn_of_meter(run);
    lab__run_begin_recording(run);
    if (run->options->format == LAB_TABLE)
        lab__run_print_head(run);
    if (run->options->baseline && !lab__run_open_baseline(run))
        return false;

    fflush(stdout);
    lab__run_start_telemetry(run);

    quiet_start(&run->quiet, run->options->quiet_s);
    run->quiet.children = lab_disturber_children(run->command->disturber, &run->quiet.child_count);
    return pass_turn(run);
}

/* Returns an exit status. */
static int finish(struct run *run)
{
    int status = LAB_OK;

    if (!take_turn(run, 0))
        return LAB_BAD;
    if (!lab__run_compute_figures(run)) {
        lab_fail("out of memory");
        return LAB_BAD;
    }

    lab__run_note_absences(run, &run->references);
    lab_store_load(run->command->store, quiet_others(&run->quiet), quiet_busy(&run->quiet));
    lab__run_print_telemetry(run);
    lab__run_print(run);
    if (!lab__run_note_times(run))
        status = LAB_BAD;
    if (!run->absences)
        lab_store_finish_run(run->command->store);

    if (run->options->check &&
        !lab_run_judge(run->figures, run->reference, run->phases, run->phase_count).met)
        status = LAB_MISSED;
    if (lab__run_has_differences(run)) {
        lab_fail("%s: outputs of the devices differ; the kernel is wrong, or rounds "
                 "differently on some devices",
                 lab_kernel_name(run->kernel));
        status = LAB_BAD;
    }
    if (!lab_output_written() || run->absences)
        status = LAB_BAD;

    return status;
}

static void close_run(struct run *run)
{
    bool shared = has_shared_frames(run);

    close_policies(run);
    for (uint32_t p = 0; run->sweeps && p < run->phase_count; p++)
        lab_sweep_end(&run->sweeps[p].sweep);
    for (uint32_t i = 0; i < run->options->policy_count && !shared; i++)
        free(run->frames[i]);

    cox_session_destroy(&run->references.session);
    lab__run_close_baseline(run);
    lab_kernel_close(&run->kernel);
    cox_runtime_destroy(&run->runtime);
    free(run->sweeps);
    free(run->reference);
    free(run->figures);
    free(run->certainties);
}

/* Returns an exit status. */
static int run_one(struct command *command, struct lab_size size, uint32_t ratio)
{
    const struct lab_run_options *options = command->options;
    struct run *run = calloc(1, sizeof *run);
    int status = LAB_BAD;

    if (!run) {
        lab_fail("out of memory");
        return LAB_BAD;
    }

    *run = (struct run){.options = options, .command = command, .size = size, .ratio = ratio};
    run->phase_count = lab_phases(options->disturbances, options->disturbance_count,
                                  options->frames, run->phases);

    bool good = start(run);
    for (uint32_t r = 0; good && r < options->repeats; r++)
        good = run_repeat(run, r);

    clear_progress();
    lab__run_stop_telemetry(run);

    if (good)
        status = finish(run);

    if (!good && run->number) {
        (void)lab_sides_take(command->sides); /* fails if the other side has ended */
        lab_store_load(command->store, quiet_others(&run->quiet), quiet_busy(&run->quiet));
    }

    if (lab__run_interrupted() && !good) {
        status = LAB_INTERRUPTED;
        if (run->number)
            lab_fail("interrupted; recorded frames are in %s", options->output);
        else
            lab_fail("interrupted before the first frame; nothing was recorded");
    }

    /* Destroy the sessions first: they may report until then. */
    close_run(run);

    if (good && !pass_turn(run))
        status = LAB_BAD;

    free(run);
    return status;
}

/* --- All of a command's runs ------------------------------------------------------------------ */

/* Open the meter, or print why energy is not measured. Returns an exit status. */
static int open_meter(struct command *command)
{
    char why[600];

    if (lab_energy_open(command->options->powercap, &command->energy, why, sizeof why))
        return LAB_OK;

    if (command->options->objective == COX_OBJECTIVE_ENERGY) {
        lab_fail("--objective energy: %s", why);
        return LAB_USAGE;
    }

    if (command->options->format == LAB_TABLE && !lab_sides_is_second(command->sides))
        printf("energy: not measured; %s\n", why);
    return LAB_OK;
}

/* Open everything that must exist before OpenCL is used. Returns an exit status. */
static int open_all(struct command *command)
{
    const struct lab_run_options *options = command->options;
    char why[600];
    bool (*open_store)(const char *, struct lab_store **, char *, size_t) = lab_store_open;

    if (lab_sides_is_second(command->sides))
        open_store = lab_store_open_beside;
    if (!lab_sides_take(command->sides)) /* the first side has printed the reason */
        return LAB_BAD;
    if (!lab_disturber_start(options->disturbances, options->disturbance_count, &command->disturber,
                             why, sizeof why) ||
        !open_store(options->output, &command->store, why, sizeof why)) {
        lab_fail("%s", why);
        return LAB_BAD;
    }

    int status = open_meter(command);
    if (status == LAB_OK)
        lab_sides_pass(command->sides);
    return status;
}

static int worse(int status, int other)
{
    static const int order[] = {LAB_OK, LAB_MISSED, LAB_INTERRUPTED, LAB_USAGE, LAB_BAD};

    for (int i = 4; i > 0; i--)
        if (status == order[i] || other == order[i])
            return order[i];
    return LAB_OK;
}

static int run_all(struct command *command)
{
    const struct lab_run_options *options = command->options;
    int status = open_all(command);
    bool opened = status == LAB_OK;

    for (uint32_t s = 0; s < options->size_count && opened; s++)
        for (uint32_t r = 0; r < options->ratio_count; r++) {
            if (status == LAB_OK || status == LAB_MISSED)
                status = worse(status, run_one(command, options->sizes[s], options->ratios[r]));
        }
    if (!lab__run_print_anova(command))
        status = worse(status, LAB_BAD);
    return status;
}

/* Wait for the second side. The last process that closes the database makes one file of it. Returns
 * an exit status. */
static int close_all(struct command *command, int status)
{
    bool alone = !command->sides;
    char why[600];

    lab_disturber_stop(&command->disturber);
    lab_energy_close(&command->energy);
    fflush(stdout);

    if (alone)
        free(command->shared);
    free(command->factorial);

    int ended = lab_sides_end(&command->sides, status);
    if (status != LAB_INTERRUPTED)
        status = worse(status, ended);

    if (!lab_store_close(&command->store, why, sizeof why)) {
        lab_fail("%s", why);
        status = worse(status, LAB_BAD);
    }

    lab_user_kernel_free(&command->user);
    return status;
}

/* Start the second process if runs with and without a reserved core are compared. */
static bool open_sides(struct command *command)
{
    const struct lab_run_options *options = command->options;
    bool both = options->reserve == LAB_RESERVE_BOTH;
    size_t frames = 0;
    if (both)
        frames = (size_t)options->policy_count * options->frames * options->repeats;
    size_t bytes = sizeof *command->shared + frames * sizeof command->shared->frames[0];

    command->reserve = options->reserve;

    if (!both) {
        command->shared = calloc(1, bytes);
        return command->shared || lab_fail("out of memory");
    }

    command->sides = lab_sides_begin(bytes);
    if (!command->sides)
        return lab_fail("--reserve both: cannot start a second process: %s", strerror(errno));

    command->shared = lab_sides_shared(command->sides);
    command->reserve = LAB_RESERVE_OFF;
    if (lab_sides_is_second(command->sides))
        command->reserve = LAB_RESERVE_ON;
    return true;
}

int lab_run(const struct lab_run_options *options)
{
    struct command command = {.options = options};
    char why[600];

    if (!lab__run_can_disturb(options))
        return LAB_BAD;

    if (options->kernel == LAB_KERNEL_USER &&
        !lab_user_kernel_load(options->kernel_file, options->bindings_file, &command.user, why,
                              sizeof why)) {
        lab_fail("%s", why);
        return LAB_BAD;
    }

    lab_quota_tidy(NULL); /* after killed runs */
    if (!open_sides(&command)) {
        lab_user_kernel_free(&command.user);
        return LAB_BAD;
    }

    machine_read(&command.machine);
    lab__run_catch_signals();

    if (!lab_sides_is_second(command.sides))
        lab_rows_begin(&command.shared->rows, options->format);

    int status = run_all(&command);
    if (!command.sides || lab_sides_is_second(command.sides))
        lab_rows_end(&command.shared->rows);

    return close_all(&command, status);
}
