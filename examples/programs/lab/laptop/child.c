/* Runs a part's commands one after the other. Each is this program again, in its own process.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "child.h"
#include "common/now.h"
#include "lab/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS_MAX = 48, SLEPT_TIMES_MAX = 3, CANNOT_START = 127 };

static const int64_t slept_ns = 500000000; /* a suspension is longer */

static volatile sig_atomic_t interrupted, child;

/* Ctrl-C reaches the child too; SIGTERM reaches this process only. */
static void on_signal(int number)
{
    interrupted = 1;
    if (number == SIGTERM && child > 0)
        kill((pid_t)child, SIGTERM);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* How long the machine has been suspended since it was started. The two clocks are not read at the
 * same moment. */
static int64_t suspended_ns(void)
{
    struct timespec boot;

    clock_gettime(CLOCK_BOOTTIME, &boot);
    return (int64_t)boot.tv_sec * 1000000000 + boot.tv_nsec - (int64_t)now_ns();
}

/* Run on these CPUs only. PoCL starts a thread for each CPU of the machine unless
 * POCL_MAX_PTHREAD_COUNT is set. */
static void keep_to(const char *cpus)
{
    char count_text[16];
    unsigned count = 0;
    cpu_set_t set;

    CPU_ZERO(&set);
    for (const char *at = cpus; *at; count++) {
        char *end;
        unsigned long cpu = strtoul(at, &end, 10);

        if (end == at)
            break;
        if (cpu < CPU_SETSIZE)
            CPU_SET(cpu, &set);
        at = end + (*end == ',');
    }

    snprintf(count_text, sizeof count_text, "%u", count);
    setenv("POCL_MAX_PTHREAD_COUNT", count_text, 1);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        lab_fail("cpus %s: %s", cpus, strerror(errno));
        _exit(CANNOT_START);
    }
}

__attribute__((noreturn)) static void become(struct laptop_command *command, int output,
                                             pid_t parent)
{
    char name[] = "cox-lab", *argv[ARGS_MAX + 2] = {name};
    int argc = 1;

    for (size_t at = 0; at < command->used && argc < ARGS_MAX; at += strlen(command->args + at) + 1)
        argv[argc++] = command->args + at;

    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(CANNOT_START);
    dup2(output, STDOUT_FILENO);
    if (*command->cpus)
        keep_to(command->cpus);

    execv("/proc/self/exe", argv);
    lab_fail("/proc/self/exe: %s", strerror(errno));
    _exit(CANNOT_START);
}

/* Returns the exit status. */
static int run_command(struct laptop_command *command, int output)
{
    const pid_t parent = getpid(), made = fork();
    int status = 0;

    if (made == 0)
        become(command, output, parent);
    if (made < 0) {
        lab_fail("cannot start a process: %s", strerror(errno));
        return LAB_BAD;
    }

    child = made;
    if (interrupted) /* before `child` was set */
        kill(made, SIGTERM);
    while (waitpid(made, &status, 0) < 0 && errno == EINTR)
        ;
    child = 0;

    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    if (WTERMSIG(status) == SIGINT)
        return LAB_INTERRUPTED;
    return LAB_BAD;
}

/* Run all commands once. Returns the worst exit status. */
static int run_commands(struct laptop_record *record)
{
    int status = LAB_OK;
    char name[64];

    laptop_record_remove(record);
    laptop_file_name(record, ".txt", name, sizeof name);
    int output = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (output < 0) {
        lab_fail("%s: %s", name, strerror(errno));
        return LAB_BAD;
    }

    for (uint32_t c = 0; c < record->plan.count && status == LAB_OK && !interrupted; c++)
        status = run_command(&record->plan.commands[c], output);
    close(output);
    if (interrupted)
        return LAB_INTERRUPTED;
    return status;
}

bool laptop_run_part(const struct laptop_options *options, struct laptop_record *record)
{
    const uint64_t from = now_ns();

    catch_signals();
    for (int times = 1;; times++) {
        const int64_t suspended = suspended_ns();

        record->status = run_commands(record);
        if (suspended_ns() - suspended < slept_ns || record->status != LAB_OK ||
            times == SLEPT_TIMES_MAX)
            break;
        printf("  the machine was suspended during this part; repeating it\n");
        fflush(stdout);
    }

    record->seconds = (double)(now_ns() - from) / 1e9;
    record->supply_end = laptop_supply_now(laptop_or_null(options->sysfs));
    return record->status != LAB_INTERRUPTED;
}
