/* What the figures were measured on, and who else was there.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "bench.h"
#include "common/json.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static void read_cpu(char *text, size_t bytes)
{
    snprintf(text, bytes, "unknown CPU");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file)
        return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        colon[1 + strcspn(colon + 1, "\n")] = '\0';
        snprintf(text, bytes, "%s", colon + 1 + strspn(colon + 1, " "));
        break;
    }
    fclose(file);
}

void bench_machine_read(struct bench_machine *machine)
{
    *machine = (struct bench_machine){.load = -1};
    read_cpu(machine->cpu, sizeof machine->cpu);
    struct utsname name;
    if (uname(&name) == 0)
        snprintf(machine->system, sizeof machine->system, "%.64s %.64s", name.sysname, name.release);
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        machine->cpus = (unsigned)CPU_COUNT(&set);
    double loads[3];
    if (getloadavg(loads, 3) > 0)
        machine->load = loads[0];
}

void bench_machine_json(const struct bench_machine *machine, struct json *json)
{
    json_key(json, "cpu");
    json_string(json, machine->cpu);
    json_key(json, "hardware_threads");
    json_unsigned(json, machine->cpus);
    json_key(json, "system");
    json_string(json, machine->system);
    json_key(json, "load");
    json_number(json, machine->load);
}

/* Busy time of all processors since boot, everybody's, in nanoseconds (of ticks, usually 10 ms); 0 = unknown. */
static uint64_t read_busy_ns(void)
{
    FILE *file = fopen("/proc/stat", "r");
    if (!file)
        return 0;
    unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
    int got = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait, &irq,
                     &softirq, &steal);
    fclose(file);
    long ticks = sysconf(_SC_CLK_TCK);
    if (got != 8 || ticks <= 0)
        return 0;
    return (user + nice + system + irq + softirq + steal) * (1000000000ull / (unsigned long)ticks);
}

static uint64_t read_own_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Processor time of others since bench_quiet_begin; 0 if unknown. */
static double others_ns(const struct bench_quiet *quiet)
{
    uint64_t busy = read_busy_ns();
    return busy ? (double)(busy - quiet->busy_ns) - (double)(read_own_ns() - quiet->own_ns) : 0;
}

static bool is_quiet(const struct bench_quiet *quiet, double length_ns)
{
    return others_ns(quiet) <= 0.1 * length_ns;
}

/* Sleep until nothing else runs, or the time is used up. */
static void wait_for_quiet(struct bench_quiet *quiet)
{
    while (quiet->budget_ns > 0) {
        const struct timespec pause = {.tv_nsec = 200000000};
        bench_quiet_begin(quiet);
        nanosleep(&pause, NULL);
        double length = (double)(bench_now_ns() - quiet->begin_ns);
        if (is_quiet(quiet, length))
            return;
        quiet->budget_ns -= length;
    }
}

void bench_quiet_start(struct bench_quiet *quiet, const struct bench_options *options)
{
    *quiet = (struct bench_quiet){.budget_ns = options->quiet_s * 1e9};
    wait_for_quiet(quiet);
}

void bench_quiet_begin(struct bench_quiet *quiet)
{
    quiet->begin_ns = bench_now_ns();
    quiet->busy_ns = read_busy_ns();
    quiet->own_ns = read_own_ns();
}

bool bench_quiet_keep(struct bench_quiet *quiet)
{
    double length = (double)(bench_now_ns() - quiet->begin_ns);
    if (quiet->budget_ns > 0 && !is_quiet(quiet, length)) {
        quiet->budget_ns -= length;
        quiet->again++;
        wait_for_quiet(quiet);
        return false;
    }
    quiet->kept++;
    quiet->kept_ns += length;
    quiet->others_ns += others_ns(quiet);
    return true;
}

bool bench_quiet_busy(const struct bench_quiet *quiet)
{
    return bench_quiet_others(quiet) > 0.25;
}

double bench_quiet_others(const struct bench_quiet *quiet)
{
    if (quiet->busy_ns == 0 || quiet->kept_ns <= 0)
        return -1;
    return quiet->others_ns > 0 ? quiet->others_ns / quiet->kept_ns : 0;
}
