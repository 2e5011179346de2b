/* Fuzz target: cox-lab's command lines. Parsing must not crash, and options that `run` accepts must be within their
 * limits. The first word is the command. Other commands get too many names, so that they stop before they do any
 * work.
 * SPDX-License-Identifier: Apache-2.0 */
#include "args.h"
#include "lab/commands.h"
#include "lab/run/options.h"

static void check_disturbance(const struct lab_disturbance *disturbance, uint64_t frames)
{
    CHECK(disturbance->first_frame < disturbance->end_frame && disturbance->end_frame <= frames);
    CHECK(*disturbance->text && memchr(disturbance->text, 0, sizeof disturbance->text));
    CHECK(disturbance->cpu_count <= LAB_HOG_CPUS_MAX);
    switch (disturbance->kind) {
    case LAB_HOG:
    case LAB_GPU_HOG:
        break;
    case LAB_QUOTA:
        CHECK(disturbance->percent >= 1 && disturbance->percent <= 100);
        break;
    case LAB_DELAY:
        CHECK(disturbance->device < COX_DEVICES_MAX && disturbance->delay_us >= 1 && disturbance->delay_us <= 1e6);
        break;
    }
}

/* Values by which the run divides or allocates. */
static void check_run(const struct lab_run_options *options, const struct fuzz_args *args)
{
    struct lab_phase phases[LAB_PHASES_MAX];
    CHECK(options->policy_count >= 1 && options->policy_count <= LAB_RUN_POLICIES_MAX);
    for (uint32_t i = 0; i < options->policy_count; i++)
        CHECK(!strcmp(options->policies[i].policy.name, options->policies[i].name));
    CHECK(options->size_count >= 1 && options->size_count <= LAB_RUN_SIZES_MAX);
    for (uint32_t i = 0; i < options->size_count; i++) {
        const struct lab_size *size = &options->sizes[i];
        CHECK(!size->columns == !size->rows && size->columns <= LAB_SIZE_MAX && size->rows <= LAB_SIZE_MAX);
        CHECK(size->columns == 0 || (size->columns >= LAB_SIZE_MIN && size->rows >= LAB_SIZE_MIN));
    }
    CHECK(options->ratio_count >= 1 && options->ratio_count <= LAB_RUN_RATIOS_MAX);
    for (uint32_t i = 0; i < options->ratio_count; i++)
        CHECK(options->ratios[i] >= 1 && options->ratios[i] <= 64);
    CHECK(options->rounds >= 1 && options->rounds <= 100000);
    CHECK(options->frames >= 1 && options->repeats >= 1);
    CHECK(options->frames * options->repeats <= LAB_RUN_FRAMES_MAX);
    CHECK(!options->anova || (options->repeats >= 2 && options->format == LAB_TABLE));
    CHECK(options->reserve <= LAB_RESERVE_BOTH && options->format <= LAB_JSON);
    CHECK((options->kernel == LAB_KERNEL_USER) == (options->kernel_file != NULL));
    CHECK(fuzz_args_hold(args, options->kernel_file) && fuzz_args_hold(args, options->bindings_file));
    CHECK(options->in_flight >= 1 && options->in_flight <= COX_IN_FLIGHT_MAX);
    CHECK(options->deadline_ns <= UINT64_C(1000000000000) && options->fallback_us >= 0);
    CHECK(options->quiet_s >= 0 && options->quiet_s <= 86400);
    CHECK(options->curve == 0 || (options->curve >= 2 && options->curve <= 64));
    CHECK(options->soak_s >= 0 && options->soak_s <= 3600);
    CHECK(options->telemetry_ns <= UINT64_C(10000000000));
    CHECK(fuzz_args_hold(args, options->devices) && fuzz_args_hold(args, options->powercap));
    CHECK(fuzz_args_hold(args, options->sysfs));
    CHECK(options->disturbance_count <= LAB_DISTURBANCES_MAX);
    for (uint32_t i = 0; i < options->disturbance_count; i++)
        check_disturbance(&options->disturbances[i], options->frames);
    uint32_t count = lab_phases(options->disturbances, options->disturbance_count, options->frames, phases);
    CHECK(count >= 1 && count <= LAB_PHASES_MAX && phases[0].first_frame == 0);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(phases[i].first_frame < phases[i].end_frame);
        CHECK(phases[i].end_frame == (i + 1 < count ? phases[i + 1].first_frame : options->frames));
        CHECK(memchr(phases[i].text, 0, sizeof phases[i].text));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char name[] = "too-many";
    struct fuzz_args args;
    struct lab_run_options options;
    /* The words, plus surplus names. */
    char *words[FUZZ_ARGS_MAX + 4];
    int count = 0, status = LAB_USAGE;
    if (!fuzz_args_make(&args, NULL, data, size))
        return 0;
    const char *command = args.count ? args.words[0] : "";
    bool run = strcmp(command, "run") == 0, sim = strcmp(command, "sim") == 0;
    bool replay = strcmp(command, "replay") == 0, report = strcmp(command, "report") == 0;
    for (; count < args.count; count++)
        words[count] = args.words[count];
    /* Three, since an option may take one as its value. */
    for (int i = 0; i < 3 && !run; i++)
        words[count++] = name;
    words[count] = NULL;

    fuzz_hush();
    if (run && lab_run_parse(count, words, &options, &status))
        check_run(&options, &args);
    else if (sim)
        status = lab_sim_main(count, words);
    else if (replay)
        status = lab_replay_main(count, words);
    else if (report)
        status = lab_report_main(count, words);
    fuzz_speak();
    CHECK(status == LAB_OK || status == LAB_USAGE);
    fuzz_args_free(&args);
    return 0;
}
