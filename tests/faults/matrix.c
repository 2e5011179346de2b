/* Tests every kind of fault on every kind of device: no frame may be lost, delivered twice, out of order or wrong.
 *
 *   fault_matrix [--all] [--brief] [--passes] [--frames N] [--setup NAME] [--kind PART] [--vendors DIR] [--verbose]
 *   fault_matrix --list
 *   fault_matrix --death        measure the cost of a device's death (death.h)
 *
 * Real devices run in child processes under the fault layer ($COX_TEST_LAYER_DIR/layer_fault.so). DIR has the
 * vendor folders that support/setups.sh makes. Scripted devices run in this process, on a virtual clock.
 *
 *   Without --all, only the quick selection runs.
 *   With --passes, frames have two passes.
 *   With --brief, the table has one row per kind.
 *
 * It prints a table in Markdown and all failures. The exit status is 0 without failures, and 77 if no set-up could
 * run.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "specs.h"
#include "death.h"
#include "base/clock.h"
#include "kinds.h"
#include "split/layout.h"
#include "support/ref_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES = 200, IN_FLIGHT = 2, CHILD_SECONDS = 300, RESULT_FD = 3 };

/* For real devices: long enough for a busy machine, but shorter than the delays in the plans. */
static const uint64_t scripted_timeout_ns = 500000000, real_timeout_ns = 1000000000, no_device_ns = 3000000000;

struct options {
    bool all, brief, verbose, list, death, passes;
    int run; /* number of a kind, in a child process; -1 = none */
    uint32_t frames;
    const char *setup, *kind, *vendors;
};

/* A set-up of real devices. */
struct bench {
    const char *devices, *victim; /* in the library's and in the layer's syntax */
    const char *vendors;          /* folder under --vendors */
    bool rusticl;
    uint32_t count;
    enum cox_memory_mode mode;
};

static const struct bench benches[FAULT_SETUPS] = {
    [FAULT_ON_ONE] = {"cpu", "cpu", "pocl", false, 1, COX_MODE_MAPPED},
    [FAULT_ON_SHARED] = {"cpu:2x1", "0.1", "pocl", false, 2, COX_MODE_SHARED},
    [FAULT_ON_MAPPED] = {"cpu,gpu", "gpu", "both", true, 2, COX_MODE_MAPPED},
    [FAULT_ON_STAGED] = {"cpu:2x1=staged", "0.1", "pocl", false, 2, COX_MODE_STAGED},
};

/* The counts, in the order of the table. */
enum count {
    TAKEN,
    CALLBACKS,
    LOST,
    DUPLICATED,
    UNORDERED,
    WRONG,
    ERRORS,
    REFUSED,
    MISMATCHES,
    STRUCK,
    DEVICES_LOST,
    RETURNED,
    COUNTS
};

/* The result of one kind in one set-up. */
struct outcome {
    uint64_t counts[COUNTS];
    uint32_t lines, lines_struck; /* of the plan */
    double seconds;
    char why[200]; /* "" = passed */
};

/* --- One run ------------------------------------------------------------------------------------------------------ */

static void log_line(void *user, enum cox_log_level level, const char *line)
{
    const bool *verbose = user;
    if (*verbose)
        fprintf(stderr, "%d: %s\n", (int)level, line);
}

static void note_counts(struct outcome *outcome, const struct ref_stream_counts *counts,
                        const struct cox_session_info *info)
{
    const uint64_t all[COUNTS] = {[TAKEN] = counts->frames,
                                  [CALLBACKS] = counts->callbacks,
                                  [LOST] = counts->lost,
                                  [DUPLICATED] = counts->duplicated,
                                  [UNORDERED] = counts->unordered,
                                  [WRONG] = counts->wrong,
                                  [ERRORS] = counts->errors,
                                  [REFUSED] = counts->refused,
                                  [MISMATCHES] = counts->errors_by[-COX_E_MISMATCH]};
    memcpy(outcome->counts, all, sizeof all);
    for (uint32_t d = 0; d < info->device_count; d++) {
        outcome->counts[DEVICES_LOST] += info->devices[d].lost;
        outcome->counts[RETURNED] += info->devices[d].returned;
    }
}

static size_t moving_bytes(uint32_t device_count)
{
    (void)device_count;
    return 1;
}

static cox_status moving_init(void *state, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    (void)state, (void)view, (void)options;
    return COX_OK;
}

/* Other bands in every frame. */
static cox_status moving_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    double ns_per_row[COX_DEVICES_MAX];
    uint32_t rows[COX_DEVICES_MAX];
    (void)state;
    for (uint32_t d = 0; d < view->device_count; d++)
        ns_per_row[d] = 3 + (double)((view->frame + d) % 5);
    if (cox__layout_balance(view, ns_per_row, rows) < 0)
        return COX_E_NO_DEVICE;
    cox__layout_bands(view, rows, out);
    return COX_OK;
}

static const struct cox_policy moving = {
    .name = "moving", .state_bytes = moving_bytes, .init = moving_init, .split = moving_split};

/* All frames of a session on this runtime. */
static void stream_frames(cox_runtime *runtime, const struct options *options, const struct fault_case *fault,
                          uint64_t timeout_ns, struct outcome *outcome)
{
    const struct cox__session_spec params = {.policy = "static",
                                             .custom_policy = fault->flags & FAULT_MOVING ? &moving : NULL,
                                             .in_flight = IN_FLIGHT,
                                             .device_timeout_ns = timeout_ns,
                                             .no_profile = true,
                                             .verify = fault->flags & FAULT_VERIFY ? 1 : 0};
    struct ref_stream_counts counts;
    struct cox_session_info info = {0};
    cox_status status;
    struct ref_stream *stream = (options->passes ? ref_stream_open_passes : ref_stream_open)(runtime, &params, &status);
    if (!stream) {
        snprintf(outcome->why, sizeof outcome->why, "no session: %s", cox_status_name(status));
        return;
    }
    if (fault->flags & FAULT_RENEW)
        ref_stream_renew_buffers(stream);
    uint64_t wait_ns = no_device_ns; /* if no device is back after this time, none will be */
    for (uint32_t i = 0; i < options->frames; i++) {
        status = ref_stream_submit(stream, wait_ns);
        if (status == COX_E_NO_DEVICE)
            wait_ns = 0;
        else if (status != COX_OK && !*outcome->why)
            snprintf(outcome->why, sizeof outcome->why, "frame %u was refused: %s", i, cox_status_name(status));
    }
    ref_stream_close(&stream, &counts, &info);
    note_counts(outcome, &counts, &info);
}

/* --- Scripted devices --------------------------------------------------------------------------------------------- */

static void run_scripted(const struct options *options, const struct fault_case *fault, struct outcome *outcome)
{
    struct fake_params params = {
        .device_count = 3, .kernel_count = 2, .kernels = {ref_stream_kernel, ref_stream_copy_kernel}};
    for (uint32_t d = 0; d < params.device_count; d++)
        params.devices[d] = (struct fake_device){.mode = COX_MODE_STAGED,
                                                 .type = COX_DEVICE_GPU,
                                                 .align_bytes = 128,
                                                 .fixed_ns = 50e3 + 10e3 * d,
                                                 .ns_per_row = 30e3 + 15e3 * d,
                                                 .copy_in_ns_per_row = 5e3,
                                                 .copy_out_ns_per_row = 3e3,
                                                 .jitter = 0.02};
    struct fake *fake = fake_new(&params);
    for (uint32_t i = 0; i < 2 && fault->fake[i].kind; i++) {
        struct fake_fault script = fault->fake[i];
        script.device = 1;
        fake_script(fake, &script);
    }
    bool verbose = options->verbose;
    cox_runtime *runtime = NULL;
    const struct cox_runtime_params runtime_params = {
        .log = log_line, .log_user = &verbose, .log_level = COX_LOG_DEBUG};
    if (cox__runtime_create_with(&runtime, &runtime_params, fake_make, fake) != COX_OK) {
        snprintf(outcome->why, sizeof outcome->why, "no runtime");
        fake_free(&fake);
        return;
    }
    stream_frames(runtime, options, fault, scripted_timeout_ns, outcome);
    cox_runtime_destroy(&runtime);
    outcome->counts[STRUCK] = fake_struck(fake);
    outcome->lines = outcome->lines_struck = 1;
    if (*fake_violation(fake) && !*outcome->why)
        snprintf(outcome->why, sizeof outcome->why, "%s", fake_violation(fake));
    fake_free(&fake);
}

/* --- Real devices, in the child ----------------------------------------------------------------------------------- */

/* Read from the layer's report how often the faults struck. */
static void read_report(const char *path, struct outcome *outcome)
{
    FILE *stream = fopen(path, "r");
    char line[512];
    while (stream && fgets(line, sizeof line, stream)) {
        unsigned long long struck;
        if (sscanf(line, "line %*u matched %*u chosen %*u struck %llu", &struck) == 1) {
            outcome->lines++;
            outcome->lines_struck += struck > 0;
            outcome->counts[STRUCK] += struck;
        }
    }
    if (stream)
        fclose(stream);
}

static bool right_devices(cox_runtime *runtime, enum fault_setup setup, struct outcome *outcome)
{
    const struct bench *bench = &benches[setup];
    const uint32_t count = cox_runtime_device_count(runtime);
    for (uint32_t d = 0; d < count; d++) {
        struct cox_device_info info;
        if (cox_runtime_device_info(runtime, d, &info) != COX_OK ||
            (info.mode != bench->mode && setup != FAULT_ON_SHARED))
            snprintf(outcome->why, sizeof outcome->why, "device %u is %s", d, cox_memory_mode_name(info.mode));
    }
    if (count != bench->count)
        snprintf(outcome->why, sizeof outcome->why, "%u devices instead of %u", count, bench->count);
    return !*outcome->why;
}

static int run_child(const struct options *options, enum fault_setup setup)
{
    struct outcome outcome = {0};
    bool verbose = options->verbose;
    cox_runtime *runtime = NULL;
    const struct cox_runtime_params params = {.devices = benches[setup].devices,
                                              .reserve = COX_RESERVE_OFF,
                                              .log = log_line,
                                              .log_user = &verbose,
                                              .log_level = COX_LOG_DEBUG};
    const cox_status status = cox_runtime_create(&params, &runtime);
    if (status != COX_OK)
        snprintf(outcome.why, sizeof outcome.why, "no runtime: %s", cox_status_name(status));
    else if (right_devices(runtime, setup, &outcome))
        stream_frames(runtime, options, &fault_cases[options->run], real_timeout_ns, &outcome);
    cox_runtime_destroy(&runtime);
    if (write(RESULT_FD, &outcome, sizeof outcome) != (ssize_t)sizeof outcome)
        return 1;
    return 0;
}

/* --- Real devices, in the parent ---------------------------------------------------------------------------------- */

/* Write the plan, with the device's name in it. */
static bool write_plan(const char *path, const char *plan, const char *victim, bool shares)
{
    FILE *stream = fopen(path, "w");
    if (!stream)
        return false;
    for (const char *at = plan; *at; at++)
        if (*at == '@')
            fputs(victim, stream);
        else if (*at == '%')
            fputs(shares ? "any" : victim, stream);
        else
            fputc(*at, stream);
    fputc('\n', stream);
    return !fclose(stream);
}

static void prepare_child(const struct options *options, enum fault_setup setup, const char *plan, const char *report)
{
    const struct bench *bench = &benches[setup];
    char path[4096];
    const char *layers = getenv("COX_TEST_LAYER_DIR");
    snprintf(path, sizeof path, "%s/layer_fault.so", layers ? layers : ".");
    setenv("OPENCL_LAYERS", path, 1);
    setenv("COX_FAULT_PLAN", plan, 1);
    setenv("COX_FAULT_REPORT", report, 1);
    snprintf(path, sizeof path, "%s/%s", options->vendors, bench->vendors);
    setenv("OCL_ICD_VENDORS", path, 1);
    if (bench->rusticl) {
        setenv("RUSTICL_ENABLE", "llvmpipe", 1);
        setenv("RUSTICL_DEVICE_TYPE", "gpu", 1);
    } else {
        unsetenv("RUSTICL_ENABLE");
    }
}

/* Wait for the child's outcome and its end, with a time limit. Returns its wait status; -1 = it was killed. */
static int listen_to(pid_t child, int from, struct outcome *outcome)
{
    struct pollfd ready = {.fd = from, .events = POLLIN};
    int status = 0;
    if (poll(&ready, 1, CHILD_SECONDS * 1000) <= 0 ||
        read(from, outcome, sizeof *outcome) != (ssize_t)sizeof *outcome) /* so few bytes arrive at once */
        *outcome = (struct outcome){.why = "the child process reported nothing"};
    for (int i = 0; i < 600; i++) { /* it may still be releasing objects */
        if (waitpid(child, &status, WNOHANG) == child)
            return status;
        nanosleep(&(const struct timespec){.tv_nsec = 100000000}, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
}

static void run_real(const struct options *options, uint32_t kind, enum fault_setup setup, struct outcome *outcome)
{
    char plan[4096], report[4096], number[16], frames[16];
    int pipes[2];
    snprintf(plan, sizeof plan, "%s/plan", options->vendors);
    snprintf(report, sizeof report, "%s/report", options->vendors);
    snprintf(number, sizeof number, "%u", kind);
    snprintf(frames, sizeof frames, "%u", options->frames);
    remove(report);
    const bool shares = benches[setup].count > 1 && !benches[setup].rusticl;
    if (!write_plan(plan, fault_cases[kind].plan, benches[setup].victim, shares) || pipe(pipes)) {
        snprintf(outcome->why, sizeof outcome->why, "cannot begin: %s", strerror(errno));
        return;
    }
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO); /* drivers may print messages */
        dup2(pipes[1], RESULT_FD);
        prepare_child(options, setup, plan, report);
        execl("/proc/self/exe", "fault_matrix", "--run", number, "--setup", fault_setup_name(setup), "--frames", frames,
              options->passes    ? "--passes"
              : options->verbose ? "--verbose"
                                 : (char *)NULL,
              options->verbose ? "--verbose" : (char *)NULL, (char *)NULL);
        _exit(127);
    }
    close(pipes[1]);
    const int status = child > 0 ? listen_to(child, pipes[0], outcome) : -1;
    close(pipes[0]);
    if (status == -1)
        snprintf(outcome->why, sizeof outcome->why, "it hung");
    else if (WIFSIGNALED(status))
        snprintf(outcome->why, sizeof outcome->why, "it was killed by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status))
        snprintf(outcome->why, sizeof outcome->why, "its exit status was %d", WEXITSTATUS(status));
    read_report(report, outcome);
}

/* --- The matrix --------------------------------------------------------------------------------------------------- */

/* Errors are allowed if no device was left, or if nothing could decide which of two devices was right. */
static bool errors_allowed(const struct fault_case *fault, enum fault_setup setup, const uint64_t *counts)
{
    const uint64_t bad = counts[ERRORS] + counts[REFUSED];
    return setup == FAULT_ON_ONE || bad == 0 || (fault->flags & FAULT_UNSURE && bad == counts[MISMATCHES]);
}

static void judge(const struct options *options, const struct fault_case *fault, enum fault_setup setup,
                  struct outcome *outcome)
{
    const uint64_t *counts = outcome->counts;
    const char *why = "";
    if (*outcome->why)
        return;
    if (counts[TAKEN] + counts[REFUSED] != options->frames)
        why = "frames are missing";
    else if (counts[CALLBACKS] != counts[TAKEN] || counts[LOST] || counts[DUPLICATED])
        why = "not one callback for each frame";
    else if (counts[UNORDERED])
        why = "callbacks out of order";
    else if (counts[WRONG])
        why = "wrong bits";
    else if (!errors_allowed(fault, setup, counts))
        why = "errors though a device was left";
    else if (!counts[STRUCK])
        why = "the fault never struck";
    else if (outcome->lines_struck < outcome->lines && !(fault->flags & FAULT_PARTIAL))
        why = "a line of the plan never struck";
    snprintf(outcome->why, sizeof outcome->why, "%s", why);
}

/* "| 200 | 200 | 0 ": these counts, each in its column. */
static void print_counts(FILE *stream, const uint64_t *counts, enum count from, enum count to)
{
    for (enum count i = from; i <= to; i++)
        fprintf(stream, "| %" PRIu64 " ", counts[i]);
}

static void print_head(FILE *stream)
{
    fprintf(stream,
            "| fault | set-up | frames | callbacks | lost | duplicated | out of order | wrong | errors | struck | "
            "devices lost | returned | s | |\n"
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

static void print_row(FILE *stream, const struct fault_case *fault, enum fault_setup setup,
                      const struct outcome *outcome)
{
    const uint64_t *counts = outcome->counts;
    const char *why = "no device left, no verdict";
    if (counts[MISMATCHES] == 0)
        why = "no device left";
    else if (counts[MISMATCHES] == counts[ERRORS])
        why = "no verdict";
    fprintf(stream, "| %s | %s ", fault->name, fault_setup_name(setup));
    print_counts(stream, counts, TAKEN, ERRORS);
    if (counts[ERRORS])
        fprintf(stream, "(%s) ", why);
    if (counts[REFUSED])
        fprintf(stream, "+ %" PRIu64 " refused ", counts[REFUSED]);
    print_counts(stream, counts, STRUCK, RETURNED);
    fprintf(stream, "| %.1f | %s |\n", outcome->seconds, *outcome->why ? outcome->why : "ok");
    fflush(stream);
}

/* Whether this machine has what the set-up needs. */
static bool can(const struct options *options, enum fault_setup setup)
{
    char path[4096];
    const char *layers = getenv("COX_TEST_LAYER_DIR");
    if (setup == FAULT_ON_SCRIPTED)
        return true;
    if (!options->vendors || !layers)
        return false;
    snprintf(path, sizeof path, "%s/%s", options->vendors, benches[setup].vendors);
    if (access(path, R_OK))
        return false;
    if (benches[setup].count > 1 && sysconf(_SC_NPROCESSORS_ONLN) < 2)
        return false;
    snprintf(path, sizeof path, "%s/layer_fault.so", layers);
    return !access(path, R_OK);
}

static bool chosen(const struct options *options, const struct fault_case *fault, enum fault_setup setup)
{
    if (options->setup && strcmp(options->setup, fault_setup_name(setup)) != 0)
        return false;
    if (options->kind)
        return strstr(fault->name, options->kind) != NULL;
    if (options->all)
        return true;
    /* Each kind runs on two of the four real set-ups, since starting OpenCL takes most of the time. */
    const bool turn = setup == FAULT_ON_SCRIPTED || ((uint32_t)(fault - fault_cases) + setup) % 2 == 0;
    return fault->flags & FAULT_QUICK && turn;
}

/* Sums over the runs of one kind, or of all. */
struct tally {
    uint32_t runs, failed, kinds;
    uint64_t counts[COUNTS], struck[FAULT_SETUPS];
    bool ran[FAULT_SETUPS];
};

static void add_outcome(struct tally *tally, enum fault_setup setup, const struct outcome *outcome)
{
    tally->runs++;
    tally->failed += *outcome->why != 0;
    for (int i = 0; i < COUNTS; i++)
        tally->counts[i] += outcome->counts[i];
    tally->struck[setup] += outcome->counts[STRUCK];
    tally->ran[setup] = true;
}

static void print_brief_head(FILE *stream)
{
    fprintf(stream,
            "| fault | struck: one, shared, mapped, staged, scripted | frames | callbacks | lost | duplicated | "
            "out of order | wrong | errors + refused | devices lost, returned | |\n"
            "|---|---|---|---|---|---|---|---|---|---|---|\n");
}

static void print_brief_row(FILE *stream, const struct fault_case *fault, const struct tally *tally)
{
    const uint64_t *counts = tally->counts;
    fprintf(stream, "| %s | ", fault->name);
    for (enum fault_setup setup = 0; setup < FAULT_SETUPS; setup++) {
        if (tally->ran[setup])
            fprintf(stream, "%" PRIu64, tally->struck[setup]);
        else
            fputs("–", stream);
        fputs(setup + 1 < FAULT_SETUPS ? ", " : "", stream);
    }
    fputc(' ', stream);
    print_counts(stream, counts, TAKEN, ERRORS);
    fprintf(stream, "+ %" PRIu64 " | %" PRIu64 ", %" PRIu64 " | %s |\n", counts[REFUSED], counts[DEVICES_LOST],
            counts[RETURNED], tally->failed ? "FAILED" : "ok");
    fflush(stream);
}

static void run_one(const struct options *options, uint32_t kind, enum fault_setup setup, struct outcome *outcome)
{
    const uint64_t start_ns = cox__clock_ns();
    *outcome = (struct outcome){0};
    if (setup == FAULT_ON_SCRIPTED)
        run_scripted(options, &fault_cases[kind], outcome);
    else
        run_real(options, kind, setup, outcome);
    outcome->seconds = (double)(cox__clock_ns() - start_ns) * 1e-9;
    judge(options, &fault_cases[kind], setup, outcome);
}

static int run_matrix(const struct options *options)
{
    struct tally all = {0};
    bool able[FAULT_SETUPS];
    for (enum fault_setup setup = 0; setup < FAULT_SETUPS; setup++) {
        able[setup] = can(options, setup);
        if (!able[setup] && (!options->setup || !strcmp(options->setup, fault_setup_name(setup))))
            printf("%s: skipped, because this machine has no such devices\n", fault_setup_name(setup));
    }
    (options->brief ? print_brief_head : print_head)(stdout);
    for (uint32_t k = 0; k < fault_case_count; k++) {
        const struct fault_case *fault = &fault_cases[k];
        struct tally of_kind = {0};
        for (enum fault_setup setup = 0; setup < FAULT_SETUPS; setup++) {
            if (!able[setup] || !chosen(options, fault, setup) || fault->not_on & 1u << setup)
                continue;
            struct outcome outcome;
            run_one(options, k, setup, &outcome);
            if (!options->brief || *outcome.why)
                print_row(options->brief ? stderr : stdout, fault, setup, &outcome);
            add_outcome(&of_kind, setup, &outcome);
            add_outcome(&all, setup, &outcome);
        }
        if (of_kind.runs && options->brief)
            print_brief_row(stdout, fault, &of_kind);
        all.kinds += of_kind.runs > 0;
    }
    const uint64_t *n = all.counts;
    printf("\n%u kinds of fault, %u runs: %" PRIu64 " frames, %" PRIu64 " callbacks, %" PRIu64 " lost, %" PRIu64
           " duplicated, %" PRIu64 " out of order, %" PRIu64 " wrong, %" PRIu64 " errors, %" PRIu64
           " refused; faults struck %" PRIu64 " times, devices were lost %" PRIu64 " times and came back %" PRIu64
           " times; %u runs failed\n",
           all.kinds, all.runs, n[TAKEN], n[CALLBACKS], n[LOST], n[DUPLICATED], n[UNORDERED], n[WRONG], n[ERRORS],
           n[REFUSED], n[STRUCK], n[DEVICES_LOST], n[RETURNED], all.failed);
    return all.failed ? 1 : all.runs ? 0 : 77;
}

static int list_kinds(void)
{
    for (uint32_t k = 0; k < fault_case_count; k++) {
        printf("%s%s\n", fault_cases[k].name, fault_cases[k].flags & FAULT_QUICK ? " (quick)" : "");
        for (enum fault_setup setup = 0; setup < FAULT_SETUPS; setup++)
            if (fault_cases[k].not_on & 1u << setup)
                printf("    not on %s: %s\n", fault_setup_name(setup), fault_cases[k].reason);
    }
    printf("%u kinds\n", fault_case_count);
    return 0;
}

/* --- The command line --------------------------------------------------------------------------------------------- */

static bool parse(struct options *options, int argc, char **argv)
{
    const char *run = "-1", *frames = NULL;
    const struct {
        const char *name;
        bool *flag;
        const char **value;
    } known[] = {{"--all", &options->all, NULL},
                 {"--brief", &options->brief, NULL},
                 {"--verbose", &options->verbose, NULL},
                 {"--passes", &options->passes, NULL},
                 {"--list", &options->list, NULL},
                 {"--death", &options->death, NULL},
                 {"--run", NULL, &run},
                 {"--frames", NULL, &frames},
                 {"--setup", NULL, &options->setup},
                 {"--kind", NULL, &options->kind},
                 {"--vendors", NULL, &options->vendors}};
    const size_t count = sizeof known / sizeof *known;
    *options = (struct options){0};
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < count && strcmp(argv[i], known[k].name) != 0)
            k++;
        if (k == count || (known[k].value && i + 1 == argc))
            return false;
        if (known[k].flag)
            *known[k].flag = true;
        else
            *known[k].value = argv[++i];
    }
    options->run = atoi(run);
    options->frames = frames ? (uint32_t)atoi(frames) : FRAMES;
    return options->run < (int)fault_case_count;
}

int main(int argc, char **argv)
{
    struct options options;
    if (!parse(&options, argc, argv)) {
        fputs(
            "usage: fault_matrix [--all] [--brief] [--passes] [--frames N] [--setup NAME] [--kind PART] [--vendors DIR]\n"
            "                    [--verbose]\n"
            "       fault_matrix --list | --death\n",
            stderr);
        return 2;
    }
    if (options.list)
        return list_kinds();
    if (options.death)
        return fault_death_print(stdout) ? 0 : 1;
    for (enum fault_setup setup = 0; options.run >= 0 && setup < FAULT_ON_SCRIPTED; setup++)
        if (options.setup && !strcmp(options.setup, fault_setup_name(setup)))
            return run_child(&options, setup);
    return run_matrix(&options);
}
