/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/quiet.h"
#include "common/now.h"

#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Busy time of all processors since boot, counted in ticks of usually 10 ms; 0 = unknown. */
static uint64_t read_busy_ns(void)
{
    FILE *file = fopen("/proc/stat", "r");
    if (!file)
        return 0;

    unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
    int got = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
                     &idle, &iowait, &irq, &softirq, &steal);

    fclose(file);
    long ticks = sysconf(_SC_CLK_TCK);
    if (got != 8 || ticks <= 0)
        return 0;
    return (user + nice + system + irq + softirq + steal) * (1000000000ull / (unsigned long)ticks);
}

static uint64_t read_own_ns(const struct quiet *quiet)
{
    uint64_t ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < quiet->child_count; i++) {
        clockid_t clock;
        if (clock_getcpuclockid(quiet->children[i], &clock) == 0)
            ns += clock_ns(clock);
    }
    return ns;
}

/* Processor time of others since quiet_begin; 0 if unknown. */
static double others_ns(const struct quiet *quiet)
{
    uint64_t busy = read_busy_ns();
    if (!busy)
        return 0;
    return (double)(busy - quiet->busy_ns) - (double)(read_own_ns(quiet) - quiet->own_ns);
}

static bool is_quiet(const struct quiet *quiet, double length_ns)
{
    return others_ns(quiet) <= 0.1 * length_ns;
}

/* Sleep until nothing else runs, or the time is used up. */
static void wait_for_quiet(struct quiet *quiet)
{
    while (quiet->budget_ns > 0) {
        const struct timespec pause = {.tv_nsec = 200000000};
        quiet_begin(quiet);
        nanosleep(&pause, NULL);
        double length = (double)(now_ns() - quiet->begin_ns);
        if (is_quiet(quiet, length))
            return;
        quiet->budget_ns -= length;
    }
}

void quiet_start(struct quiet *quiet, double seconds)
{
    *quiet = (struct quiet){.budget_ns = seconds * 1e9};
    wait_for_quiet(quiet);
}

void quiet_begin(struct quiet *quiet)
{
    quiet->begin_ns = now_ns();
    quiet->busy_ns = read_busy_ns();
    quiet->own_ns = read_own_ns(quiet);
}

bool quiet_keep(struct quiet *quiet)
{
    double length = (double)(now_ns() - quiet->begin_ns);
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

double quiet_others_now(const struct quiet *quiet)
{
    const double length = (double)(now_ns() - quiet->begin_ns), others = others_ns(quiet);
    if (others <= 0 || length <= 0)
        return 0;
    return others / length;
}

bool quiet_busy(const struct quiet *quiet)
{
    return quiet_others(quiet) > 0.25;
}

double quiet_others(const struct quiet *quiet)
{
    if (quiet->busy_ns == 0 || quiet->kept_ns <= 0)
        return -1;
    return fmax(quiet->others_ns, 0) / quiet->kept_ns;
}
