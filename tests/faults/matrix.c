/* Every kind of fault on every kind of device: is a frame lost, delivered twice, out of order or wrong?
 *
 *   fault_matrix [--all] [--brief] [--passes] [--frames N] [--setup NAME] [--kind PART] [--vendors DIR]
 *                [--verbose]
 *   fault_matrix --list
 *   fault_matrix --death        what a frame costs in which a device dies (death.h)
 *
 * Real devices are in child processes under the fault layer ($COX_TEST_LAYER_DIR/layer_fault.so), with the vendor
 * folders that support/setups.sh makes in DIR; scripted ones are in this process and on a virtual clock. Without --all
 * the selection that every run of the tests takes; with --passes frames of two passes. Prints a table in markdown
 * (--brief: one row for each kind) and what was wrong; exit status 0 if nothing was, 77 if no set-up could run.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "death.h"
#include "kinds.h"
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

enum { FRAMES = 200, IN_FLIGHT = 2, CHILD_SECONDS = 300, LINES_MAX = 16 };

static const uint64_t timeout_ns = 500000000, no_device_ns = 3000000000;

struct options {
    bool all, brief, verbose, list, death, passes;
    int run; /* a kind, in a child; -1 = none */
    uint32_t frames;
    const char *setup, *kind, *vendors;
};

/* A set-up of real devices. */
struct bench {
    const char *devices, *victim; /* as the library names them, and as the layer does */
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

/* What came of one kind in one set-up. */
struct outcome {
    struct ref_stream_counts counts;
    uint64_t struck, lost, returned;
    uint32_t lines, lines_struck; /* of the plan */
    double seconds;
    char why[200]; /* "" = everything is as it should be */
};

/* --- One run ------------------------------------------------------------------------------------------------------ */

static void log_line(void *user, enum cox_log_level level, const char *line)
{
    const bool *verbose = user;
    if (*verbose)
        fprintf(stderr, "%d: %s\n", (int)level, line);
}

static void note_devices(struct outcome *outcome, const struct cox_session_info *info)
{
    for (uint32_t d = 0; d < info->device_count; d++) {
        outcome->lost += info->devices[d].lost;
        outcome->returned += info->devices[d].returned;
    }
}

/* All frames of a session on this runtime. */
static void stream_frames(cox_runtime *runtime, const struct options *options, const struct fault_case *fault,
                          struct outcome *outcome)
{
    const struct cox_session_params params = {.policy = fault->flags & FAULT_MOVING ? "ewma" : "static",
                                              .in_flight = IN_FLIGHT,
                                              .device_timeout_ns = timeout_ns,
                                              .no_profile = true,
                                              .verify = fault->flags & FAULT_VERIFY ? 1 : 0};
    struct cox_session_info info = {0};
    cox_status status;
    struct ref_stream *stream = (options->passes ? ref_stream_open_passes : ref_stream_open)(runtime, &params, &status);
    if (!stream) {
        snprintf(outcome->why, sizeof outcome->why, "no session: %s", cox_status_name(status));
        return;
    }
    if (fault->flags & FAULT_RENEW)
        ref_stream_renew_buffers(stream);
    uint64_t wait_ns = no_device_ns; /* once no device has come back for so long, none will */
    for (uint32_t i = 0; i < options->frames; i++) {
        status = ref_stream_submit(stream, wait_ns);
        if (status == COX_E_NO_DEVICE)
            wait_ns = 0;
        else if (status != COX_OK && !*outcome->why)
            snprintf(outcome->why, sizeof outcome->why, "frame %u was refused: %s", i, cox_status_name(status));
    }
    ref_stream_close(&stream, &outcome->counts, &info);
    note_devices(outcome, &info);
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
    stream_frames(runtime, options, fault, outcome);
    cox_runtime_destroy(&runtime);
    outcome->struck = fake_struck(fake);
    outcome->lines = outcome->lines_struck = 1;
    if (*fake_violation(fake) && !*outcome->why)
        snprintf(outcome->why, sizeof outcome->why, "%s", fake_violation(fake));
    fake_free(&fake);
}

/* --- Real devices, in the child ----------------------------------------------------------------------------------- */

/* How often the faults struck, from the layer's report. */
static void read_report(const char *path, struct outcome *outcome)
{
    FILE *stream = fopen(path, "r");
    char line[512];
    while (stream && fgets(line, sizeof line, stream)) {
        unsigned long long struck;
        if (sscanf(line, "line %*u matched %*u chosen %*u struck %llu", &struck) == 1) {
            outcome->lines++;
            outcome->lines_struck += struck > 0;
            outcome->struck += struck;
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
        if (cox_runtime_device_info(runtime, d, &info, sizeof info) != COX_OK ||
            (info.mode != bench->mode && setup != FAULT_ON_SHARED))
            snprintf(outcome->why, sizeof outcome->why, "device %u is %s", d, cox_memory_mode_name(info.mode));
    }
    if (count != bench->count)
        snprintf(outcome->why, sizeof outcome->why, "%u devices instead of %u", count, bench->count);
    return !*outcome->why;
}

static const char result_format[] = "result %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                                    " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n";

static int run_child(const struct options *options, enum fault_setup setup)
{
    struct outcome outcome = {0};
    const struct ref_stream_counts *counts = &outcome.counts;
    bool verbose = options->verbose;
    cox_runtime *runtime = NULL;
    const struct cox_runtime_params params = {.devices = benches[setup].devices,
                                              .reserve = COX_RESERVE_OFF,
                                              .log = log_line,
                                              .log_user = &verbose,
                                              .log_level = COX_LOG_DEBUG};
    const cox_status status = cox_runtime_create(&runtime, &params);
    if (status != COX_OK)
        snprintf(outcome.why, sizeof outcome.why, "no runtime: %s", cox_status_name(status));
    else if (right_devices(runtime, setup, &outcome))
        stream_frames(runtime, options, &fault_cases[options->run], &outcome);
    cox_runtime_destroy(&runtime);
    printf(result_format, counts->frames, counts->refused, counts->callbacks, counts->lost, counts->duplicated,
           counts->unordered, counts->wrong, counts->errors, counts->errors_by[-COX_E_MISMATCH], outcome.lost,
           outcome.returned);
    printf("why %s\n", outcome.why);
    return 0;
}

/* --- Real devices, in the parent ---------------------------------------------------------------------------------- */

/* The plan with the device's name in it. */
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

/* What the child says, until it ends or its time is over. Returns its wait status; -1 = it had to be killed. */
static int listen(pid_t child, int from, char *text, size_t room)
{
    size_t used = 0;
    int status = 0;
    struct pollfd ready = {.fd = from, .events = POLLIN};
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const time_t until = now.tv_sec + CHILD_SECONDS;
    ssize_t got = 1;
    while (got > 0 && now.tv_sec < until) {
        if (poll(&ready, 1, 1000) > 0) {
            got = read(from, text + used, room - 1 - used);
            used += got > 0 ? (size_t)got : 0;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    text[used] = 0;
    for (int i = 0; i < 600; i++) { /* it has closed its output, and may still be releasing things */
        if (waitpid(child, &status, WNOHANG) == child)
            return status;
        nanosleep(&(const struct timespec){.tv_nsec = 100000000}, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
}

static void take_result(const char *text, struct outcome *outcome)
{
    struct ref_stream_counts *counts = &outcome->counts;
    const char *line = strstr(text, "result "), *why = strstr(text, "why ");
    if (!line || !why ||
        sscanf(line,
               "result %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64 " %" SCNu64,
               &counts->frames, &counts->refused, &counts->callbacks, &counts->lost, &counts->duplicated,
               &counts->unordered, &counts->wrong, &counts->errors, &counts->errors_by[-COX_E_MISMATCH], &outcome->lost,
               &outcome->returned) != 11)
        snprintf(outcome->why, sizeof outcome->why, "it said nothing");
    else
        snprintf(outcome->why, sizeof outcome->why, "%.*s", (int)strcspn(why + 4, "\n"), why + 4);
}

static void run_real(const struct options *options, uint32_t kind, enum fault_setup setup, struct outcome *outcome)
{
    char plan[4096], report[4096], number[16], frames[16], text[4096];
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
        dup2(pipes[1], STDOUT_FILENO);
        close(pipes[0]);
        close(pipes[1]);
        prepare_child(options, setup, plan, report);
        execl("/proc/self/exe", "fault_matrix", "--run", number, "--setup", fault_setup_name(setup), "--frames", frames,
              options->passes    ? "--passes"
              : options->verbose ? "--verbose"
                                 : (char *)NULL,
              options->verbose ? "--verbose" : (char *)NULL, (char *)NULL);
        _exit(127);
    }
    close(pipes[1]);
    const int status = child > 0 ? listen(child, pipes[0], text, sizeof text) : -1;
    close(pipes[0]);
    take_result(text, outcome);
    if (status == -1)
        snprintf(outcome->why, sizeof outcome->why, "it hung");
    else if (WIFSIGNALED(status))
        snprintf(outcome->why, sizeof outcome->why, "it was killed by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status))
        snprintf(outcome->why, sizeof outcome->why, "its exit status was %d", WEXITSTATUS(status));
    read_report(report, outcome);
}

/* --- The matrix --------------------------------------------------------------------------------------------------- */

/* Errors are for when nobody was left, or nobody could tell who was right. */
static bool errors_allowed(const struct fault_case *fault, enum fault_setup setup, const struct outcome *outcome)
{
    const struct ref_stream_counts *counts = &outcome->counts;
    const uint64_t bad = counts->errors + counts->refused;
    if (setup == FAULT_ON_ONE)
        return true;
    return bad == 0 || (fault->flags & FAULT_UNSURE && bad == counts->errors_by[-COX_E_MISMATCH]);
}

static void judge(const struct options *options, const struct fault_case *fault, enum fault_setup setup,
                  struct outcome *outcome)
{
    const struct ref_stream_counts *counts = &outcome->counts;
    const char *why = NULL;
    if (*outcome->why)
        return;
    if (counts->frames + counts->refused != options->frames)
        why = "frames are missing";
    else if (counts->callbacks != counts->frames || counts->lost || counts->duplicated)
        why = "not one callback for each frame";
    else if (counts->unordered)
        why = "callbacks out of order";
    else if (counts->wrong)
        why = "wrong bits";
    else if (!errors_allowed(fault, setup, outcome))
        why = "errors though a device was left";
    else if (!outcome->struck)
        why = "the fault never struck";
    else if (outcome->lines_struck < outcome->lines && !(fault->flags & FAULT_PARTIAL))
        why = "a line of the plan never struck";
    if (why)
        snprintf(outcome->why, sizeof outcome->why, "%s", why);
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
    const struct ref_stream_counts *counts = &outcome->counts;
    const uint64_t mismatches = counts->errors_by[-COX_E_MISMATCH];
    char errors[96];
    int at = snprintf(errors, sizeof errors, "%" PRIu64, counts->errors);
    if (counts->errors)
        at += snprintf(errors + at, sizeof errors - (size_t)at, " (%s)",
                       mismatches == 0                ? "no device left"
                       : mismatches == counts->errors ? "no verdict"
                                                      : "no device left, no verdict");
    if (counts->refused)
        snprintf(errors + at, sizeof errors - (size_t)at, " + %" PRIu64 " refused", counts->refused);
    fprintf(stream,
            "| %s | %s | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64
            " | %s | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %.1f | %s |\n",
            fault->name, fault_setup_name(setup), counts->frames, counts->callbacks, counts->lost, counts->duplicated,
            counts->unordered, counts->wrong, errors, outcome->struck, outcome->lost, outcome->returned,
            outcome->seconds, *outcome->why ? outcome->why : "ok");
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
    /* Two of the real set-ups in turn: what takes the time is to start OpenCL. */
    const bool turn = setup == FAULT_ON_SCRIPTED || ((uint32_t)(fault - fault_cases) + setup) % 2 == 0;
    return fault->flags & FAULT_QUICK && turn;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Runs added up: of a kind, of all. */
struct tally {
    uint32_t runs, failed, kinds;
    struct ref_stream_counts counts;
    uint64_t lost, returned;
    uint64_t struck[FAULT_SETUPS];
    bool ran[FAULT_SETUPS];
};

static void add_outcome(struct tally *tally, enum fault_setup setup, const struct outcome *outcome)
{
    struct ref_stream_counts *counts = &tally->counts;
    tally->runs++;
    tally->failed += *outcome->why != 0;
    counts->frames += outcome->counts.frames;
    counts->refused += outcome->counts.refused;
    counts->callbacks += outcome->counts.callbacks;
    counts->lost += outcome->counts.lost;
    counts->duplicated += outcome->counts.duplicated;
    counts->unordered += outcome->counts.unordered;
    counts->wrong += outcome->counts.wrong;
    counts->errors += outcome->counts.errors;
    tally->lost += outcome->lost;
    tally->returned += outcome->returned;
    tally->struck[setup] += outcome->struck;
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
    const struct ref_stream_counts *counts = &tally->counts;
    fprintf(stream, "| %s | ", fault->name);
    for (enum fault_setup setup = 0; setup < FAULT_SETUPS; setup++) {
        if (tally->ran[setup])
            fprintf(stream, "%" PRIu64, tally->struck[setup]);
        else
            fputs("–", stream);
        fputs(setup + 1 < FAULT_SETUPS ? ", " : "", stream);
    }
    fprintf(stream,
            " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64
            " + %" PRIu64 " | %" PRIu64 ", %" PRIu64 " | %s |\n",
            counts->frames, counts->callbacks, counts->lost, counts->duplicated, counts->unordered, counts->wrong,
            counts->errors, counts->refused, tally->lost, tally->returned, tally->failed ? "FAILED" : "ok");
    fflush(stream);
}

static void run_one(const struct options *options, uint32_t kind, enum fault_setup setup, struct outcome *outcome)
{
    const double start_s = now_s();
    *outcome = (struct outcome){0};
    if (setup == FAULT_ON_SCRIPTED)
        run_scripted(options, &fault_cases[kind], outcome);
    else
        run_real(options, kind, setup, outcome);
    outcome->seconds = now_s() - start_s;
    judge(options, &fault_cases[kind], setup, outcome);
}

static int run_matrix(const struct options *options)
{
    struct tally all = {0};
    uint64_t struck = 0;
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
    for (enum fault_setup setup = 0; setup < FAULT_SETUPS; setup++)
        struck += all.struck[setup];
    printf("\n%u kinds of fault, %u runs: %" PRIu64 " frames, %" PRIu64 " callbacks, %" PRIu64 " lost, %" PRIu64
           " duplicated, %" PRIu64 " out of order, %" PRIu64 " wrong, %" PRIu64 " errors, %" PRIu64
           " refused; faults struck %" PRIu64 " times, devices were lost %" PRIu64 " times and came back %" PRIu64
           " times; %u runs not as they should be\n",
           all.kinds, all.runs, all.counts.frames, all.counts.callbacks, all.counts.lost, all.counts.duplicated,
           all.counts.unordered, all.counts.wrong, all.counts.errors, all.counts.refused, struck, all.lost,
           all.returned, all.failed);
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

static bool parse_value(struct options *options, const char *name, const char *value)
{
    if (!strcmp(name, "--run"))
        options->run = atoi(value);
    else if (!strcmp(name, "--frames"))
        options->frames = (uint32_t)atoi(value);
    else if (!strcmp(name, "--setup"))
        options->setup = value;
    else if (!strcmp(name, "--kind"))
        options->kind = value;
    else if (!strcmp(name, "--vendors"))
        options->vendors = value;
    else
        return false;
    return true;
}

static bool parse(struct options *options, int argc, char **argv)
{
    *options = (struct options){.frames = FRAMES, .run = -1};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--all"))
            options->all = true;
        else if (!strcmp(argv[i], "--brief"))
            options->brief = true;
        else if (!strcmp(argv[i], "--verbose"))
            options->verbose = true;
        else if (!strcmp(argv[i], "--passes"))
            options->passes = true;
        else if (!strcmp(argv[i], "--list"))
            options->list = true;
        else if (!strcmp(argv[i], "--death"))
            options->death = true;
        else if (i + 1 == argc || !parse_value(options, argv[i], argv[i + 1]))
            return false;
        else
            i++;
    }
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
