/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <stdio.h>

void bench_print_machine(const struct machine *machine)
{
    printf("machine: %s, %u hardware threads, %s, load %.2f\n", machine->cpu, machine->cpus,
           machine->system, machine->load);
}

void bench_print_quiet(const struct quiet *quiet, const char *unit)
{
    if (quiet_others(quiet) >= 0)
        printf("other programs used %.2f processors; %u disturbed %s were repeated\n",
               quiet_others(quiet), quiet->again, unit);
    if (quiet_busy(quiet))
        printf("The machine was BUSY: the figures are unreliable.\n");
}

const char *bench_verdict(bool met)
{
    return met ? "met" : "MISSED";
}
