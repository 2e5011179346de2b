/* Opening a telemetry: looks for every kind of source.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "discover.h"
#include "add_source.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

/* An event of the whole system takes a CPU and no process. */
static int open_event(uint32_t type, uint64_t config, int cpu)
{
    struct perf_event_attr event = {.type = type, .size = sizeof event, .config = config};
    return (int)syscall(SYS_perf_event_open, &event, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

struct lab_telemetry *lab_telemetry_open(const struct lab_telemetry_params *params)
{
    const char *root = params->sysfs, *library = params->nvml;
    int (*event_open)(uint32_t, uint64_t, int) = params->event_open;

    if (!root) {
        root = "/sys";
        if (!library)
            library = "libnvidia-ml.so.1";
        if (!event_open)
            event_open = open_event;
    }

    struct lab_telemetry *telemetry = lab__telemetry_create(root);
    if (!telemetry)
        return NULL;

    lab__find_cpus(telemetry, root);
    lab__find_gpus(telemetry, root);
    lab__find_heat(telemetry, root);
    lab__find_power(telemetry, root, event_open);
    lab__find_supplies(telemetry, root);
    if (library)
        lab__find_nvml(telemetry, root, library);
    return telemetry;
}
