/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/host_machine.h"
#include "common/json.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
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

unsigned machine_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set))
        return 0;
    return (unsigned)CPU_COUNT(&set);
}

void machine_read(struct machine *machine)
{
    *machine = (struct machine){.load = -1};
    read_cpu(machine->cpu, sizeof machine->cpu);
    struct utsname name;

    if (uname(&name) == 0)
        snprintf(machine->system, sizeof machine->system, "%.64s %.64s", name.sysname,
                 name.release);
    machine->cpus = machine_cpus();
    double loads[3];
    if (getloadavg(loads, 3) > 0)
        machine->load = loads[0];
}

void machine_json(const struct machine *machine, struct json *json)
{
    json_member_string(json, "cpu", machine->cpu);
    json_member_unsigned(json, "hardware_threads", machine->cpus);
    json_member_string(json, "system", machine->system);
    json_member_number(json, "load", machine->load);
}
