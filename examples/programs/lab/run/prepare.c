/* The steps before the first measured frame: how much work, how much delay, which CPUs, and the
 * right output.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/now.h"
#include "disturb_cpus.h"
#include "lab/commands.h"
#include "state.h"

#include <math.h>

enum { WORK_STEPS = 6, WORK_MAX = 10000000, DELAY_STEPS_MAX = 1 << 28 };

static const double work_frame_ns = 9e6;  /* of the kernel `work`, balanced */
static const double probe_ns = 150e6;     /* work on a device, to see which threads compute */
static const double delay_probe_ns = 2e6; /* a delay well above the noise */

bool lab__run_choose_work(struct run *run)
{
    for (int step = 0; step < WORK_STEPS; step++) {
        double rate = 0, ns;

        for (uint32_t d = 0; d < run->device_count; d++) {
            if (!lab__run_measure_alone(run, d, 0.5, &ns))
                return false;
            rate += 1 / ns;
        }

        if (1 / rate > 0.9 * work_frame_ns && 1 / rate < 1.2 * work_frame_ns)
            break;

        double work = lab_kernel_work(run->kernel) * work_frame_ns * rate;
        work = fmin(fmax(work, 1), WORK_MAX);
        lab_kernel_set_work(run->kernel, (int32_t)work);
    }

    return true;
}

bool lab__run_check_kernels(struct run *run)
{
    struct cox_session_params params = *lab_kernel_session(run->kernel);
    cox_session *session;
    if (!run->options->check_kernels)
        return true;

    params.check = true;
    params.warmup = COX_WARMUP_NONE;
    params.no_profile = true;
    cox_status status = cox_session_create(run->runtime, &params, &session);

    if (status == COX_OK) {
        const struct cox_frame frame = lab_kernel_frame(run->kernel, run->references.number, 0);
        status = cox_session_run(session, &frame);
    }

    cox_session_destroy(&session);
    return status == COX_OK || lab_fail("--check-kernels: %s", cox_status_text(status));
}

bool lab__run_know_outputs(struct run *run)
{
    char name[32];

    for (uint32_t d = 0; d < run->device_count && run->command->user; d++) {
        uint32_t rows[COX_DEVICES_MAX] = {0};

        rows[d] = lab_kernel_rows(run->kernel);
        if (d > 0) {
            snprintf(name, sizeof name, "device %u alone", d);
            lab_sweep_choose(rows, run->device_count);
            if (!lab__run_checked(run, &run->references, 1, name))
                return false;
            continue;
        }

        if (!lab__run_split(run, rows, 1))
            return false;
        if (!run->references.turn_count)
            return lab_fail("device %u: cannot compute a frame alone", d);
        if (!lab_kernel_keep(run->kernel, run->references.number, run->references.submitted - 1))
            return lab_fail("out of memory");
    }

    return true;
}

/* Measure how many steps of the artificial delay take `us` microseconds. */
static bool choose_delay(struct run *run, uint32_t device, double us, int32_t *steps)
{
    double without, with = 0;
    int32_t probe = 1024;

    lab_kernel_set_delay(run->kernel, 0);
    if (!lab__run_measure_alone(run, device, 0, &without))
        return false;

    for (; probe < DELAY_STEPS_MAX; probe *= 2) {
        lab_kernel_set_delay(run->kernel, probe);
        if (!lab__run_measure_alone(run, device, 0, &with))
            return false;

        if (with - without > delay_probe_ns && with > 1.2 * without)
            break;
    }

    lab_kernel_set_delay(run->kernel, 0);

    double wanted = probe * us * 1e3 / (with - without);
    if (!(with > without) || wanted > DELAY_STEPS_MAX)
        return lab_fail("the artificial delay of device %u is too long", device);

    *steps = (int32_t)fmax(wanted, 1);
    return true;
}

/* The CPUs on which the first CPU device computes; 0 = unknown. */
static uint32_t find_cpus(struct run *run, uint16_t *cpus)
{
    struct lab_threads *before = NULL;
    uint32_t count = 0, device = 0;
    double ns;

    while (device < run->device_count && run->devices[device].type != COX_DEVICE_CPU)
        device++;
    if (device < run->device_count)
        before = lab_threads_read();

    bool good = before != NULL;
    for (uint64_t until = now_ns() + (uint64_t)probe_ns; good && now_ns() < until;)
        good = lab__run_measure_alone(run, device, 0.5, &ns);

    if (good)
        count = lab_threads_cpus(before, cpus, LAB_HOG_CPUS_MAX);

    lab_threads_free(&before);
    return count;
}

static bool wants(const struct lab_run_options *options, enum lab_disturb_kind kind)
{
    for (uint32_t i = 0; i < options->disturbance_count; i++)
        if (options->disturbances[i].kind == kind)
            return true;
    return false;
}

static bool cannot_disturb(const struct lab_disturbance *disturbance, const char *why)
{
    return lab_fail("--disturb %s: %s; --fallback-delay MICROSECONDS would delay device 0 instead",
                    disturbance->text, why);
}

bool lab__run_can_disturb(const struct lab_run_options *options)
{
    char why[320];

    for (uint32_t i = 0; i < options->disturbance_count && options->fallback_us <= 0; i++)
        if (!lab_disturbance_possible(&options->disturbances[i], why, sizeof why))
            return cannot_disturb(&options->disturbances[i], why);
    return true;
}

/* Delay device 0 because the disturbance is not possible. */
static bool delay_instead(struct run *run, uint32_t which)
{
    double us = run->options->fallback_us;

    run->artificial[which] = true;
    snprintf(run->notes[which], sizeof run->notes[which],
             "artificial, %g us on device 0, because: %.200s", us, run->command->cannot[which]);
    return choose_delay(run, 0, us, &run->delay_steps[which]);
}

static const struct cox_device_info *first_gpu(const struct run *run)
{
    for (uint32_t d = 0; d < run->device_count; d++)
        if (run->devices[d].type == COX_DEVICE_GPU)
            return &run->devices[d];
    return NULL;
}

/* Make the processes of the disturbances ready. Those that are not possible are noted in
 * `cannot`. */
static bool prepare_processes(struct run *run)
{
    const struct lab_run_options *options = run->options;
    struct command *command = run->command;
    uint16_t cpus[LAB_HOG_CPUS_MAX];
    uint32_t which, cpu_count = 0;
    char why[320];

    if (wants(options, LAB_HOG))
        cpu_count = find_cpus(run, cpus);
    while (!lab__run_is_over(run) &&
           !lab_disturber_prepare(command->disturber, cpus, cpu_count, first_gpu(run), &which, why,
                                  sizeof why)) {
        if (options->fallback_us <= 0)
            return cannot_disturb(&options->disturbances[which], why);

        lab_fail("--disturb %s: %s; delaying device 0 by %g us instead",
                 options->disturbances[which].text, why, options->fallback_us);

        lab_disturber_drop(command->disturber, which);
        snprintf(command->cannot[which], sizeof command->cannot[which], "%.239s", why);
    }
    return true;
}

bool lab__run_prepare_disturbances(struct run *run)
{
    const struct lab_run_options *options = run->options;

    if (!prepare_processes(run))
        return false;
    /* An earlier run of the command may have noted some, too. */
    for (uint32_t i = 0; i < options->disturbance_count; i++)
        if (run->command->cannot[i][0] && !delay_instead(run, i))
            return false;

    for (uint32_t i = 0; i < options->disturbance_count && !lab__run_is_over(run); i++) {
        const struct lab_disturbance *d = &options->disturbances[i];

        if (d->kind == LAB_DELAY) {
            run->artificial[i] = true;
            snprintf(run->notes[i], sizeof run->notes[i],
                     "artificial: added work in each launch on device %u", d->device);
            if (!choose_delay(run, d->device, d->delay_us, &run->delay_steps[i]))
                return false;
        } else if (!run->artificial[i]) {
            snprintf(run->notes[i], sizeof run->notes[i], "%.300s",
                     lab_disturber_note(run->command->disturber, i));
        }
    }

    return !lab__run_is_over(run);
}

bool lab__run_delayed_device(const struct lab_run_options *options, bool *delayed, uint32_t *device)
{
    *delayed = options->fallback_us > 0;
    *device = 0;

    for (uint32_t i = 0; i < options->disturbance_count; i++) {
        const struct lab_disturbance *d = &options->disturbances[i];
        if (d->kind != LAB_DELAY)
            continue;

        if (*delayed && *device != d->device)
            return lab_fail("--disturb %s: only one device can be delayed in a run", d->text);
        *delayed = true;
        *device = d->device;
    }
    return true;
}
