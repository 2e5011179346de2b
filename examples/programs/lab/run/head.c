/* The beginning of a run: records and prints its conditions before the first frame.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/text.h"
#include "state.h"

#include <inttypes.h>

static void record_settings(const struct run *run)
{
    struct lab_store *store = run->command->store;
    const struct lab_user_kernel *user = run->command->user;
    struct cox_host_info host;
    char number[16], hash[SHA256_TEXT_BYTES];

    cox_runtime_host_info(run->runtime, &host);
    lab_store_setting(store, "reserve", lab_run_reserve_name(run->command->reserve));
    lab_store_setting(store, "reserved_core", host.reserve_reason);

    if (lab_kernel_has_work(run->kernel)) {
        snprintf(number, sizeof number, "%" PRIu32, run->ratio);
        lab_store_setting(store, "ratio", number);
        snprintf(number, sizeof number, "%" PRId32, lab_kernel_work(run->kernel));
        lab_store_setting(store, "work", number);
    }

    lab_kernel_sha256(run->kernel, hash);
    lab_store_setting(store, "kernel_sha256", hash);
    if (user) {
        lab_store_setting(store, "source", user->source);
        lab_store_setting(store, "bindings", user->json);
    }
}

static void record_passes(const struct run *run)
{
    struct lab_kernel_pass passes[COX_PASSES_MAX];
    const uint32_t count = lab_kernel_passes(run->kernel, passes);

    for (uint32_t p = 0; p < count; p++)
        lab_store_pass(run->command->store, p, passes[p].name, passes[p].rows, passes[p].stages);
}

void lab__run_begin_recording(struct run *run)
{
    const struct lab_run_options *options = run->options;
    const struct command *command = run->command;
    struct cox_session_info info;
    char system[320];

    cox_session_info(run->references.session, &info);
    snprintf(system, sizeof system, "%s, %s, %u hardware threads", command->machine.system,
             command->machine.cpu, command->machine.cpus);

    run->number = lab_store_begin_run(command->store,
                                      &(const struct lab_store_run){
                                          .source = "devices",
                                          .host = options->anonymous ? "" : NULL,
                                          .system = system,
                                          .command = options->command,
                                          .kernel = lab_kernel_name(run->kernel),
                                          .columns = run->size.columns,
                                          .rows = run->size.rows,
                                          .row_alignment = info.row_alignment,
                                          .in_flight = options->in_flight,
                                          .frames = options->frames,
                                          .objective = options->objective,
                                          .deadline_ns = options->deadline_ns,
                                          .meter = command->energy
                                                       ? lab_energy_name(command->energy)
                                                       : NULL});

    record_settings(run);
    record_passes(run);

    for (uint32_t d = 0; d < run->device_count; d++)
        lab_store_device(command->store, d, &run->devices[d]);

    for (uint32_t p = 0; p < run->phase_count; p++)
        lab_store_phase(command->store, p, run->phases[p].first_frame, run->phases[p].end_frame,
                        run->phases[p].text);

    for (uint32_t i = 0; i < options->disturbance_count; i++) {
        const struct lab_disturbance *d = &options->disturbances[i];
        lab_store_disturbance(command->store, i, lab_disturb_kind_name(d->kind), d->text,
                              d->first_frame, d->end_frame, !run->artificial[i], run->notes[i]);
    }
}

void lab__run_print_head(const struct run *run)
{
    const struct lab_run_options *options = run->options;
    const struct machine *machine = &run->command->machine;
    struct lab_kernel_pass passes[COX_PASSES_MAX];
    struct cox_host_info host;
    char texts[3][1024]; /* drivers' texts, made printable */

    cox_runtime_host_info(run->runtime, &host);
    printf("machine: %s, %u hardware threads, %s, load %.2f\n", machine->cpu, machine->cpus,
           machine->system, machine->load);

    for (uint32_t d = 0; d < run->device_count; d++) {
        const struct cox_device_info *device = &run->devices[d];
        printf("device %u: %s (%s %s), %u compute unit%s, %s memory\n", d,
               text_plain(device->name, texts[0], sizeof texts[0]),
               text_plain(device->platform, texts[1], sizeof texts[1]),
               text_plain(device->driver, texts[2], sizeof texts[2]), device->compute_units,
               device->compute_units == 1 ? "" : "s", cox_memory_mode_name(device->mode));
    }

    if (options->reserve != LAB_RESERVE_AUTO)
        printf("reserved core: %s\n", host.reserve_reason);

    printf("kernel: %s, %u x %u",
           text_plain(lab_kernel_name(run->kernel), texts[0], sizeof texts[0]), run->size.columns,
           run->size.rows);

    const uint32_t pass_count = lab_kernel_passes(run->kernel, passes);
    if (pass_count > 1)
        printf(", %" PRIu32 " passes", pass_count);
    if (lab_kernel_has_work(run->kernel))
        printf(", %" PRId32 " rounds per item, %u times as many on device 1",
               lab_kernel_work(run->kernel), run->ratio);

    printf("; %" PRIu64 " frames of each policy", options->frames);
    if (options->repeats > 1)
        printf(" in each of %u repeats", options->repeats);
    printf(", %u in flight; %.2f GB of frames in memory\n", options->in_flight,
           lab_kernel_gigabytes(run->kernel));

    for (uint32_t i = 0; i < options->disturbance_count; i++)
        printf("disturbance: %s, %s%s\n", options->disturbances[i].text,
               run->artificial[i] ? "" : "real, ",
               run->notes[i][0] ? text_plain(run->notes[i], texts[0], sizeof texts[0])
                                : "for the whole process");

    if (run->command->energy)
        printf("energy: %s\n", lab_energy_name(run->command->energy));
    if (run->number)
        printf("recorded: %s, run %" PRId64 "\n", options->output, run->number);
}
